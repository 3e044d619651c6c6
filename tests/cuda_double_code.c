/* cuda_double_code.c: code in the double of NVIDIA's libraries: NVRTC, which keeps the text, and the
 * driver's calls that load it, find kernels in it and launch them. */
#include "cuda_double_state.h"

/* ---- code ---- */

#define IMAGE "code of the double\n"

typedef struct module {
    size_t size;
    char *bytes;
} module;

/* Bytes of code: a text of this double's compiler, or an ELF file of the real one, which ends with its
 * table of sections. 0: neither. */
static size_t size_of_code(const char *image)
{
    uint64_t table;
    uint16_t each, count;
    if (strncmp(image, IMAGE, strlen(IMAGE)) == 0) {
        return strlen(image) + 1;
    }
    if (memcmp(image, "\177ELF", 4) != 0) {
        return 0;
    }
    memcpy(&table, image + 0x28, sizeof(table));
    memcpy(&each, image + 0x3a, sizeof(each));
    memcpy(&count, image + 0x3c, sizeof(count));
    return (size_t)table + (size_t)each * count;
}

CALL(cuModuleLoadData, (void **made, const void *image), {
    NEED_CONTEXT
    module *m = calloc(1, sizeof(*m));
    size_t size = double_is("refuse") ? 0 : size_of_code(image);
    code = code == 0 && size == 0 ? INVALID_IMAGE : code;
    if (code == 0 && m) {
        m->size = size;
        m->bytes = malloc(size);
    }
    code = code == 0 && !(m && m->bytes) ? OUT_OF_MEMORY : code;
    if (code == 0) {
        memcpy(m->bytes, image, size);
        add("modules", 1);
        add("loads", 1);
    } else {
        free(m);
        m = NULL;
    }
    *made = m;
})
CALL(cuModuleUnload, (void *unloaded), {
    module *m = unloaded;
    NEED_CONTEXT
    free(m->bytes);
    free(m);
    add("modules", -1);
})
CALL(cuModuleGetFunction, (void **function, void *from, const char *name), {
    const module *m = from;
    NEED_CONTEXT
    const char *text = code == 0 ? memchr(m->bytes, '\n', m->size) : NULL;
    bool made = strcmp(name, "chain") == 0 && text; /* no kernel that is built in */
    *function = (void *)(uintptr_t)(made ? double_make(name, text + 1) : double_find(name));
    if (code == 0 && (!*function || !memmem(m->bytes, m->size, name, strlen(name)))) {
        code = NOT_FOUND; /* it must stand in what was compiled */
    }
})
CALL(cuFuncGetAttribute, (int *v, int what, void *function), {
    CHECK(what == 0 && function, INVALID_VALUE, "no such attribute of a function")
    *v = MOST_BLOCK;
})

/* A parameter too many is not looked at, as with the driver: it knows how many a function has. */
CALL(cuLaunchKernel,
     (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
      unsigned shared, void *stream, void **parameters, void **extra),
     {
    const double_kernel *k = function;
    step *s = calloc(1, sizeof(*s));
    NEED_CONTEXT
    NEED_STREAM
    CHECK(s && k && !extra, INVALID_VALUE, "no function is launched")
    CHECK(gx && gy && gz && bx && by && bz, INVALID_VALUE, "a grid is empty")
    CHECK(gx <= INT32_MAX && gy <= 65535 && gz <= 65535, INVALID_VALUE, "a grid is too large")
    CHECK((uint64_t)bx * by * bz <= MOST_BLOCK && bz <= 64, INVALID_VALUE, "a block is too large")
    CHECK(shared <= MOST_SHARED, INVALID_VALUE, "a block has too much memory")
    if (code == 0) {
        *s = (step){.kernel = k, .grid = {gx, gy, gz}, .threads = {bx, by, bz}, .shared = shared};
        for (int i = 0; i < k->count; i++) {
            memcpy(s->values[i], parameters[i], k->sizes[i]);
        }
        put(now.capturing ? &now.recorded : &now.queue, s);
        add("launches", !now.capturing);
    } else {
        free(s);
    }
})

/* ---- the compiler ---- */

typedef struct program {
    char *source;
    char *code;
} program;

int nvrtcVersion(int *major, int *minor);
int nvrtcVersion(int *major, int *minor)
{
    *major = 12;
    *minor = 4;
    return 0;
}

const char *nvrtcGetErrorString(int code);
const char *nvrtcGetErrorString(int code)
{
    return code == 6 ? "NVRTC_ERROR_COMPILATION" : code == 5 ? "NVRTC_ERROR_INVALID_OPTION" : "?";
}

int nvrtcGetNumSupportedArchs(int *count);
int nvrtcGetNumSupportedArchs(int *count)
{
    *count = 3;
    return 0;
}

int nvrtcGetSupportedArchs(int *archs);
int nvrtcGetSupportedArchs(int *archs)
{
    archs[0] = 52;
    archs[1] = 75;
    archs[2] = double_is("arch") ? 90 : 86;
    return 0;
}

int nvrtcCreateProgram(void **p, const char *source, const char *name, int headers,
                       const char *const *texts, const char *const *names);
int nvrtcCreateProgram(void **p, const char *source, const char *name, int headers,
                       const char *const *texts, const char *const *names)
{
    program *made = calloc(1, sizeof(*made));
    size_t size = strlen(source) + 1;
    (void)name, (void)texts, (void)names;
    if (!made || headers != 0 || !(made->source = malloc(size))) {
        free(made);
        return 1;
    }
    memcpy(made->source, source, size);
    *p = made;
    return 0;
}

int nvrtcDestroyProgram(void **p);
int nvrtcDestroyProgram(void **p)
{
    program *made = *p;
    free(made->source);
    free(made->code);
    free(made);
    *p = NULL;
    return 0;
}

/* "Code" is the source behind a line that says so. */
int nvrtcCompileProgram(void *p, int count, const char *const *options);
int nvrtcCompileProgram(void *p, int count, const char *const *options)
{
    program *made = p;
    const char *want = double_is("arch") ? "--gpu-architecture=compute_75" : "--gpu-architecture=sm_86";
    double_lock();
    add("compiles", 1);
    if (count < 1 || strcmp(options[0], want) != 0) {
        wrong(0, "kernels are not compiled for the device's architecture");
    }
    double_unlock();
    if (double_is("source")) {
        return 6;
    }
    size_t size = strlen(made->source) + sizeof(IMAGE);
    made->code = malloc(size);
    if (made->code) {
        snprintf(made->code, size, "%s%s", IMAGE, made->source);
    }
    return made->code ? 0 : 1;
}

#define COMPILE_LOG "kernels(7): error: identifier \"sigmoid\" is undefined\n\n1 error detected\n"
int nvrtcGetProgramLogSize(void *p, size_t *size);
int nvrtcGetProgramLogSize(void *p, size_t *size)
{
    (void)p;
    *size = sizeof(COMPILE_LOG);
    return 0;
}

int nvrtcGetProgramLog(void *p, char *text);
int nvrtcGetProgramLog(void *p, char *text)
{
    (void)p;
    memcpy(text, COMPILE_LOG, sizeof(COMPILE_LOG));
    return 0;
}

#define CODE(kind)                                        \
    int nvrtcGet##kind##Size(void *p, size_t *size);      \
    int nvrtcGet##kind##Size(void *p, size_t *size)       \
    {                                                     \
        *size = strlen(((program *)p)->code) + 1;         \
        return 0;                                         \
    }                                                     \
    int nvrtcGet##kind(void *p, char *code);              \
    int nvrtcGet##kind(void *p, char *code)               \
    {                                                     \
        memcpy(code, ((program *)p)->code, strlen(((program *)p)->code) + 1); \
        return 0;                                         \
    }
CODE(PTX)
CODE(CUBIN)

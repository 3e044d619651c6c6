/* cuda_double.c: a library with the calls of NVIDIA's driver and of NVRTC that nori uses, and no device: it
 * looks at every call and runs kernels on the host (cuda_kernels.cpp). As on a device, nothing that is
 * started happens before it is waited for; a call against the rules is an error, and counted.
 *
 * Looked at: a context is current; handles are alive; copies and pointers given to kernels lie within
 * memory that is allocated; nothing is written behind it; grids, blocks and their memory are within the
 * device's limits; parameters are as many as the kernel has; nothing waits while a graph is recorded.
 * Built with WITHOUT_REPLAY it lacks a symbol. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_double.h"

enum {
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    LAUNCH_FAILED = 719,
    CAPTURING = 900
};

#define GUARD 64 /* bytes behind an allocation that nobody may write */
#define MOST_BLOCK 1024
#define MOST_SHARED 49152

typedef struct block {
    struct block *next;
    size_t bytes;
    unsigned char *data;
    bool host;
} block;

typedef struct step {
    struct step *next;
    const double_kernel *kernel; /* NULL: a copy, or act */
    const char *(*act)(const void *what); /* on values */
    unsigned grid[3], threads[3], shared;
    _Alignas(16) unsigned char values[DOUBLE_PARAMETERS][32];
    void *to;
    void *from;
    size_t bytes;
} step;

typedef struct list {
    step *first, **end;
} list;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block *blocks;
static list queue;    /* started and not waited for */
static list recorded; /* while capturing */
static bool capturing, initialized;
static _Thread_local int current; /* contexts pushed by this thread */
static char complaint[256], mode[16];
static int context_object, stream_object;

static struct {
    const char *name;
    long count;
} counts[] = {{"allocations", 0}, {"pinned", 0},   {"modules", 0},  {"streams", 0}, {"graphs", 0},
              {"contexts", 0},    {"launches", 0}, {"replays", 0},  {"compiles", 0}, {"loads", 0},
              {"bytes in", 0},    {"bytes out", 0}, {"wrong", 0},    {"handles", 0}, {"products", 0},
              {"convolutions", 0}};

static long *count_of(const char *what)
{
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        if (strcmp(counts[i].name, what) == 0) {
            return &counts[i].count;
        }
    }
    return NULL;
}

static void add(const char *what, long n)
{
    *count_of(what) += n;
}

static int wrong(int code, const char *what)
{
    if (!complaint[0]) {
        snprintf(complaint, sizeof(complaint), "%s", what);
    }
    add("wrong", 1);
    return code;
}

long cuda_double_count(const char *what)
{
    pthread_mutex_lock(&lock);
    const long *n = count_of(what);
    long result = n ? *n : -1;
    pthread_mutex_unlock(&lock);
    return result;
}

const char *cuda_double_complaint(void)
{
    return complaint;
}

void cuda_double_mode(const char *text)
{
    snprintf(mode, sizeof(mode), "%s", text);
}

static bool is(const char *text)
{
    return strcmp(mode, text) == 0;
}

/* ---- memory ---- */

/* The allocation that holds bytes from at on; NULL: none. */
static block *block_with(const void *at, size_t bytes, bool host)
{
    for (block *b = blocks; b; b = b->next) {
        const unsigned char *p = at;
        if (b->host == host && p >= b->data && p <= b->data + b->bytes &&
            bytes <= (size_t)(b->data + b->bytes - p)) {
            return b;
        }
    }
    return NULL;
}

static int allocate(void **at, size_t bytes, bool host)
{
    if (current == 0) {
        return wrong(INVALID_CONTEXT, "memory is allocated without a context");
    }
    if (is("memory") || bytes == 0) {
        return bytes ? OUT_OF_MEMORY : wrong(INVALID_VALUE, "no bytes are allocated");
    }
    block *b = calloc(1, sizeof(*b));
    unsigned char *data = malloc(bytes + GUARD);
    if (!b || !data) {
        free(b);
        free(data);
        return OUT_OF_MEMORY;
    }
    memset(data, 0x7f, bytes); /* what is read before it is written is large, and not 0 */
    memset(data + bytes, 0xa5, GUARD);
    *b = (block){.next = blocks, .bytes = bytes, .data = data, .host = host};
    blocks = b;
    *at = data;
    add(host ? "pinned" : "allocations", 1);
    return 0;
}

static int give_back(void *at, bool host)
{
    for (block **p = &blocks; *p; p = &(*p)->next) {
        block *b = *p;
        if (b->data != at || b->host != host) {
            continue;
        }
        int code = current ? 0 : wrong(INVALID_CONTEXT, "memory is freed without a context");
        for (int i = 0; i < GUARD; i++) {
            if (b->data[b->bytes + (size_t)i] != 0xa5) {
                code = wrong(LAUNCH_FAILED, "something wrote behind an allocation");
                break;
            }
        }
        *p = b->next;
        free(b->data);
        free(b);
        add(host ? "pinned" : "allocations", -1);
        return code;
    }
    return wrong(INVALID_VALUE, "what is freed is not allocated");
}

/* ---- what is started ---- */

static void put(list *l, step *s)
{
    if (!l->first) {
        l->end = &l->first;
    }
    s->next = NULL;
    *l->end = s;
    l->end = &s->next;
}

static void drop(list *l)
{
    while (l->first) {
        step *next = l->first->next;
        free(l->first);
        l->first = next;
    }
}

static int copy(const step *s)
{
    block *to = block_with(s->to, s->bytes, false), *from = block_with(s->from, s->bytes, false);
    bool in = to != NULL;
    if (!to && !from) {
        return wrong(INVALID_VALUE, "a copy does not lie within memory of the device");
    }
    memcpy(s->to, s->from, s->bytes);
    add(in ? "bytes in" : "bytes out", (long)s->bytes);
    return 0;
}

static int start_kernel(const step *s)
{
    void *parameters[DOUBLE_PARAMETERS];
    for (int i = 0; i < s->kernel->count; i++) {
        void *at;
        parameters[i] = (void *)(uintptr_t)s->values[i];
        memcpy(&at, s->values[i], sizeof(at));
        if (s->kernel->pointers[i] && !block_with(at, 1, false)) {
            char text[128];
            snprintf(text, sizeof(text), "parameter %d of %s points to no memory of the device", i,
                     s->kernel->name);
            return wrong(LAUNCH_FAILED, text);
        }
    }
    const char *bad = double_run(s->kernel, s->grid, s->threads, s->shared, parameters);
    return bad ? wrong(LAUNCH_FAILED, bad) : 0;
}

static int run_queue(void)
{
    int code = 0;
    for (const step *s = queue.first; s && code == 0; s = s->next) {
        const char *bad = s->act ? s->act(s->values) : NULL;
        code = bad          ? wrong(LAUNCH_FAILED, bad)
               : s->act     ? 0
               : s->kernel  ? start_kernel(s)
                            : copy(s);
    }
    drop(&queue);
    return code;
}

static int later(const void *to, const void *from, size_t bytes)
{
    step *s = calloc(1, sizeof(*s));
    if (!s) {
        return OUT_OF_MEMORY;
    }
    s->to = (void *)(uintptr_t)to;
    s->from = (void *)(uintptr_t)from;
    s->bytes = bytes;
    put(&queue, s);
    return 0;
}

/* ---- for other libraries ---- */

int double_wrong(int code, const char *what)
{
    pthread_mutex_lock(&lock);
    wrong(code, what);
    pthread_mutex_unlock(&lock);
    return code;
}

int double_context(void)
{
    return current > 0;
}

int double_stream(const void *stream)
{
    return stream == &stream_object;
}

int double_within(const void *at, size_t bytes)
{
    pthread_mutex_lock(&lock);
    int within = block_with(at, bytes, false) != NULL;
    pthread_mutex_unlock(&lock);
    return within;
}

void double_add(const char *what, long n)
{
    pthread_mutex_lock(&lock);
    add(what, n);
    pthread_mutex_unlock(&lock);
}

int double_later(const char *(*act)(const void *what), const void *what, size_t size)
{
    step *s = calloc(1, sizeof(*s));
    if (!s || size > sizeof(s->values)) {
        free(s);
        return OUT_OF_MEMORY;
    }
    s->act = act;
    memcpy(s->values, what, size);
    pthread_mutex_lock(&lock);
    put(capturing ? &recorded : &queue, s);
    pthread_mutex_unlock(&lock);
    return 0;
}

/* ---- the driver ---- */

#define CALL(name, parameters, ...)         \
    int name parameters;                    \
    int name parameters                     \
    {                                       \
        int code = 0;                       \
        pthread_mutex_lock(&lock);          \
        if (!initialized) {                 \
            code = NOT_INITIALIZED;         \
        } else {                            \
            __VA_ARGS__                     \
        }                                   \
        pthread_mutex_unlock(&lock);        \
        return code;                        \
    }
#define CHECK(what, failure, text)          \
    if (code == 0 && !(what)) {             \
        code = wrong(failure, text);        \
    }
#define NEED_CONTEXT CHECK(current > 0, INVALID_CONTEXT, "a call needs a current context")
#define NEED_STREAM CHECK(stream == &stream_object, INVALID_HANDLE, "no such stream")

int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    if (is("none") || is("init")) {
        return is("none") ? NO_DEVICE : 999;
    }
    initialized = flags == 0;
    return initialized ? 0 : wrong(INVALID_VALUE, "cuInit takes no flags");
}

int cuGetErrorName(int code, const char **name);
int cuGetErrorName(int code, const char **name)
{
    static const struct {
        int code;
        const char *name;
    } names[] = {{1, "CUDA_ERROR_INVALID_VALUE"},   {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {3, "CUDA_ERROR_NOT_INITIALIZED"}, {100, "CUDA_ERROR_NO_DEVICE"},
                 {200, "CUDA_ERROR_INVALID_IMAGE"}, {201, "CUDA_ERROR_INVALID_CONTEXT"},
                 {400, "CUDA_ERROR_INVALID_HANDLE"}, {500, "CUDA_ERROR_NOT_FOUND"},
                 {719, "CUDA_ERROR_LAUNCH_FAILED"}, {999, "CUDA_ERROR_UNKNOWN"},
                 {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].code == code) {
            *name = names[i].name;
            return 0;
        }
    }
    return INVALID_VALUE;
}

CALL(cuDriverGetVersion, (int *version), { *version = is("old") ? 11020 : 12040; })
CALL(cuDeviceGetCount, (int *count), { *count = 1; })
CALL(cuDeviceGet, (int *device, int ordinal), {
    CHECK(ordinal == 0, INVALID_VALUE, "there is one device")
    *device = 7; /* not the ordinal */
})
CALL(cuDeviceGetName, (char *name, int size, int device), {
    CHECK(device == 7, INVALID_VALUE, "no such device")
    snprintf(name, (size_t)size, "Double of a device");
})
CALL(cuDeviceGetAttribute, (int *v, int what, int device), {
    CHECK(device == 7, INVALID_VALUE, "no such device")
    *v = what == 1 || what == 2 || what == 3 ? MOST_BLOCK : what == 4 ? 64 : what == 8 ? MOST_SHARED
         : what == 13 ? 1500000 : what == 16 ? 10 : what == 75 ? 8 : what == 76 ? 6 : 0;
})
CALL(cuDeviceTotalMem_v2, (size_t *bytes, int device), {
    CHECK(device == 7, INVALID_VALUE, "no such device")
    *bytes = (size_t)4 << 30;
})
CALL(cuDevicePrimaryCtxRetain, (void **context, int device), {
    CHECK(device == 7, INVALID_VALUE, "no such device")
    *context = &context_object;
    add("contexts", 1);
})
CALL(cuDevicePrimaryCtxRelease_v2, (int device), {
    CHECK(device == 7, INVALID_VALUE, "no such device")
    add("contexts", -1);
})
CALL(cuCtxPushCurrent_v2, (void *context), {
    CHECK(context == &context_object, INVALID_CONTEXT, "no such context")
    current += code == 0;
})
CALL(cuCtxPopCurrent_v2, (void **context), {
    NEED_CONTEXT
    *context = &context_object;
    current -= code == 0;
})
CALL(cuStreamCreate, (void **stream, unsigned flags), {
    NEED_CONTEXT
    CHECK(flags <= 1, INVALID_VALUE, "no such flags of a stream")
    *stream = &stream_object;
    add("streams", 1);
})
CALL(cuStreamDestroy_v2, (void *stream), {
    NEED_CONTEXT
    NEED_STREAM
    add("streams", -1);
})
CALL(cuStreamSynchronize, (void *stream), {
    NEED_CONTEXT
    NEED_STREAM
    CHECK(!capturing, CAPTURING, "a wait while a graph is recorded")
    code = code ? code : run_queue();
})
CALL(cuMemAlloc_v2, (uint64_t *at, size_t bytes), {
    void *p = NULL;
    CHECK(!capturing, CAPTURING, "memory is allocated while a graph is recorded")
    code = code ? code : allocate(&p, bytes, false);
    *at = (uint64_t)(uintptr_t)p;
})
CALL(cuMemFree_v2, (uint64_t at), {
    code = run_queue();
    int freed = give_back((void *)(uintptr_t)at, false);
    code = code ? code : freed;
})
CALL(cuMemAllocHost_v2, (void **at, size_t bytes), { code = allocate(at, bytes, true); })
CALL(cuMemFreeHost, (void *at), {
    code = run_queue();
    int freed = give_back(at, true);
    code = code ? code : freed;
})
CALL(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, void *stream), {
    void *at = (void *)(uintptr_t)to;
    NEED_CONTEXT
    NEED_STREAM
    CHECK(!capturing, CAPTURING, "a copy while a graph is recorded")
    CHECK(block_with(at, bytes, false), INVALID_VALUE, "a copy goes beyond memory of the device")
    code = code ? code : later(at, from, bytes);
})
CALL(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, void *stream), {
    void *at = (void *)(uintptr_t)from;
    NEED_CONTEXT
    NEED_STREAM
    CHECK(!capturing, CAPTURING, "a copy while a graph is recorded")
    CHECK(block_with(at, bytes, false), INVALID_VALUE, "a copy comes from beyond memory of the device")
    CHECK(block_with(to, bytes, true), INVALID_VALUE, "a copy goes to memory that is not pinned")
    code = code ? code : later(to, at, bytes);
})

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
    size_t size = is("refuse") ? 0 : size_of_code(image);
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
        put(capturing ? &recorded : &queue, s);
        add("launches", !capturing);
    } else {
        free(s);
    }
})

/* ---- graphs ---- */

CALL(cuStreamBeginCapture_v2, (void *stream, int how), {
    NEED_CONTEXT
    NEED_STREAM
    CHECK(!capturing && how >= 0 && how <= 2, INVALID_VALUE, "a recording cannot begin")
    capturing = code == 0;
})
CALL(cuStreamEndCapture, (void *stream, void **graph), {
    list *g = calloc(1, sizeof(*g));
    NEED_STREAM
    CHECK(capturing && g, INVALID_VALUE, "no recording ends")
    if (g) {
        g->first = recorded.first;
        recorded.first = NULL;
    }
    capturing = false;
    *graph = g;
    add("graphs", 1);
})
CALL(cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags), {
    list *e = calloc(1, sizeof(*e));
    CHECK(e && flags == 0, INVALID_VALUE, "a graph cannot be made ready")
    for (const step *s = ((list *)graph)->first; s && e; s = s->next) {
        step *mine = malloc(sizeof(*mine));
        if (mine) {
            *mine = *s;
            put(e, mine);
        }
    }
    *exec = e;
    add("graphs", 1);
})
static void free_graph(void *graph)
{
    drop(graph);
    free(graph);
    add("graphs", -1);
}
CALL(cuGraphDestroy, (void *graph), { free_graph(graph); })
CALL(cuGraphExecDestroy, (void *exec), { free_graph(exec); })
#ifndef WITHOUT_REPLAY
CALL(cuGraphLaunch, (void *exec, void *stream), {
    NEED_CONTEXT
    NEED_STREAM
    for (const step *s = ((list *)exec)->first; s && code == 0; s = s->next) {
        step *mine = malloc(sizeof(*mine));
        code = mine ? 0 : OUT_OF_MEMORY;
        if (mine) {
            *mine = *s;
            put(&queue, mine);
        }
    }
    add("replays", 1);
})
#endif

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
    archs[2] = is("arch") ? 90 : 86;
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
    const char *want = is("arch") ? "--gpu-architecture=compute_75" : "--gpu-architecture=sm_86";
    pthread_mutex_lock(&lock);
    add("compiles", 1);
    if (count < 1 || strcmp(options[0], want) != 0) {
        wrong(0, "kernels are not compiled for the device's architecture");
    }
    pthread_mutex_unlock(&lock);
    if (is("source")) {
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

/* ocl_program.c: kernels from source to the device. Sources are in kernels/, embedded when nori is
 * built (kernels.cmake); the numbers they share with C are defined in front of them. */
#include <stdio.h>

#include "ocl_kernels.h"
#include "providers/opencl/opencl.h"

#define OPTIONS "-cl-std=CL1.2"

static const char *const names[] = {
#define OCL_NAME(name) #name,
    OCL_PROGRAMS(OCL_NAME)
};

static void define_numbers(const ocl_self *self, nori__text *t)
{
#define OCL_NUMBER(name) nori__text_printf(t, "#define UNARY_" #name " %d\n", (int)UNARY_##name);
    OCL_UNARY(OCL_NUMBER)
#undef OCL_NUMBER
#define OCL_NUMBER(name) nori__text_printf(t, "#define BINARY_" #name " %d\n", (int)BINARY_##name);
    OCL_BINARY(OCL_NUMBER)
#undef OCL_NUMBER
#define OCL_NUMBER(name) nori__text_printf(t, "#define REDUCE_" #name " %d\n", (int)REDUCE_##name);
    OCL_REDUCE(OCL_NUMBER)
#undef OCL_NUMBER
#define OCL_NUMBER(name) nori__text_printf(t, "#define POOL_" #name " %d\n", (int)POOL_##name);
    OCL_POOL(OCL_NUMBER)
#undef OCL_NUMBER
    nori__text_printf(t, "%s#line 1\n", self->half ? "#define NORI_HALF\n" : "");
}

static nori_status source_of(const ocl_self *self, ocl_source which, nori__text *t, nori_error *err)
{
    static const struct {
        const unsigned char *text;
        size_t size;
    } sources[] = {
#define OCL_TEXT(name) {ocl_kernels_##name, sizeof(ocl_kernels_##name)},
        OCL_PROGRAMS(OCL_TEXT)
#undef OCL_TEXT
    };
    define_numbers(self, t);
    nori__text_add(t, (const char *)ocl_kernels_common, sizeof(ocl_kernels_common));
    nori__text_add(t, (const char *)sources[which].text, sources[which].size);
    return t->failed ? nori__no_memory(err) : NORI_OK;
}

/* The first lines of what the compiler says, on one line. */
static void build_log(const ocl_self *self, ocl_program *program, char *out, size_t size)
{
    size_t used = 0, bytes = 0;
    int lines = 0;
    out[0] = 0;
    if (self->api.clGetProgramBuildInfo(program, self->device, OCL_BUILD_LOG, 0, NULL, &bytes) != 0 ||
        bytes == 0) {
        return;
    }
    char *log = nori__alloc_zero(&nori__malloc, bytes + 1);
    if (log && self->api.clGetProgramBuildInfo(program, self->device, OCL_BUILD_LOG, bytes, log,
                                               NULL) == 0) {
        for (const char *p = log; *p && lines < 6 && used + 3 < size; p++) {
            if (*p == '\n') {
                lines++;
                out[used++] = ' ';
                out[used++] = '|';
            }
            out[used++] = *p == '\n' || *p == '\t' ? ' ' : *p;
        }
        out[used] = 0;
    }
    nori__release(&nori__malloc, log, bytes + 1);
}

static nori_status build(ocl_self *self, ocl_program *program, const char *name,
                         nori_error *err)
{
    int32_t code = self->api.clBuildProgram(program, 1, &self->device, OPTIONS, NULL, NULL);
    if (code == 0) {
        return NORI_OK;
    }
    char log[1024];
    build_log(self, program, log, sizeof(log));
    return nori__fail(err, NORI_ERROR_UNAVAILABLE,
                      "OpenCL: kernels \"%s\" cannot be built for %s (driver %s): %s%s%s", name,
                      self->device_name, self->driver_version, nori__ocl_word(code),
                      log[0] ? ": " : "", log);
}

static nori_status from_source(ocl_self *self, const char *name, const nori__text *source,
                               ocl_program **program, nori_error *err)
{
    int32_t code = 0;
    const char *text = source->data;
    *program =
        self->api.clCreateProgramWithSource(self->context, 1, &text, &source->size, &code);
    NORI__TRY(nori__ocl_check(self, *program ? 0 : code, "clCreateProgramWithSource",
                              NORI_ERROR_UNAVAILABLE, err));
    nori_status status = build(self, *program, name, err);
    if (status != NORI_OK) {
        self->api.clReleaseProgram(*program);
        *program = NULL;
    }
    return status;
}

nori_status nori__ocl_program(ocl_self *self, ocl_source which, nori_error *err)
{
    if (self->programs[which]) {
        return NORI_OK;
    }
    const char *name = names[which];
    nori__text source;
    nori__text_init(&source, &nori__malloc);
    nori_status status = source_of(self, which, &source, err);
    if (status == NORI_OK) {
        const nori__str text = {source.data, source.size};
        self->programs[which] = nori__ocl_cached(self, name, text);
        if (!self->programs[which]) {
            status = from_source(self, name, &source, &self->programs[which], err);
            if (status == NORI_OK) {
                nori__ocl_keep(self, self->programs[which], name, text);
            }
        }
    }
    nori__text_free(&source);
    return status;
}

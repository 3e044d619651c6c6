/* ocl_binary.c: built programs as the driver's binaries, from and to the cache of gpu/. */
#include <stdio.h>

#include "providers/opencl/opencl.h"

typedef struct taking {
    ocl_self *self;
    ocl_program *program;
} taking;

static bool take(void *user, const void *bytes, size_t size, char why[128])
{
    taking *t = user;
    ocl_self *self = t->self;
    int32_t code = 0, taken = 0;
    const unsigned char *binary = bytes;
    ocl_program *program = self->api.clCreateProgramWithBinary(self->context, 1, &self->device, &size,
                                                               &binary, &taken, &code);
    if (program && taken == 0) {
        code = self->api.clBuildProgram(program, 1, &self->device, NULL, NULL, NULL);
    }
    if (program && (taken != 0 || code != 0)) {
        self->api.clReleaseProgram(program);
        program = NULL;
    }
    if (!program) {
        snprintf(why, 128, "%s", nori__ocl_word(taken ? taken : code));
    }
    t->program = program;
    return program != NULL;
}

/* Texts a program of this device is named by; each is as long as what it holds. */
typedef struct names {
    char device[300], made_for[640];
} names;

static gpu_kept describe(const ocl_self *self, const char *name, nori__str source, names *n)
{
    snprintf(n->device, sizeof(n->device), "%s%s", self->platform_name, self->gpu.device_name);
    snprintf(n->made_for, sizeof(n->made_for), "driver %s\n%s\n%s\n%s", self->driver_version,
             self->device_version, self->platform_version, self->gpu.device_name);
    return (gpu_kept){name, n->device, n->made_for, source};
}

ocl_program *nori__ocl_cached(ocl_self *self, const char *name, nori__str source)
{
    names n;
    taking t = {self, NULL};
    const gpu_kept kept = describe(self, name, source, &n);
    return nori__gpu_cached(&self->gpu, &kept, take, &t) ? t.program : NULL;
}

/* The program's binary for its one device, in fresh memory; NULL: it has none. */
static unsigned char *binary_of(ocl_self *self, ocl_program *program, size_t *size)
{
    *size = 0;
    if (self->api.clGetProgramInfo(program, OCL_PROGRAM_BINARY_SIZES, sizeof(*size), size, NULL) != 0 ||
        *size == 0) {
        return NULL;
    }
    unsigned char *bytes = nori__alloc(&nori__malloc, *size);
    if (bytes && self->api.clGetProgramInfo(program, OCL_PROGRAM_BINARIES, sizeof(bytes), &bytes,
                                            NULL) != 0) {
        nori__release(&nori__malloc, bytes, *size);
        bytes = NULL;
    }
    return bytes;
}

void nori__ocl_keep(ocl_self *self, ocl_program *program, const char *name, nori__str source)
{
    names n;
    size_t size = 0;
    if (!self->gpu.cache_dir) {
        return;
    }
    const gpu_kept kept = describe(self, name, source, &n);
    unsigned char *bytes = binary_of(self, program, &size);
    nori__gpu_keep(&self->gpu, &kept, bytes, size);
    nori__release(&nori__malloc, bytes, size);
}

/* ocl_program.c: kernels from source, or from the cache, to the device. */
#include "providers/opencl/opencl.h"

#define OPTIONS "-cl-std=CL1.2"

/* The first lines of what the compiler says, on one line. */
static void build_log(const ocl_self *self, ocl_program *program, char *out, size_t size)
{
    size_t bytes = 0;
    out[0] = 0;
    if (self->api.clGetProgramBuildInfo(program, self->device, OCL_BUILD_LOG, 0, NULL, &bytes) != 0 ||
        bytes == 0) {
        return;
    }
    char *log = nori__alloc_zero(&nori__malloc, bytes + 1);
    if (log && self->api.clGetProgramBuildInfo(program, self->device, OCL_BUILD_LOG, bytes, log,
                                               NULL) == 0) {
        nori__gpu_first_lines(log, out, size);
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
                      self->gpu.device_name, self->driver_version, nori__ocl_word(code),
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

nori_status nori__ocl_program(gpu_self *user, gpu_source which, nori_error *err)
{
    ocl_self *self = (ocl_self *)user;
    gpu_program *made = nori__gpu_program(user, which);
    ocl_program *program = NULL;
    if (made->built) {
        return NORI_OK;
    }
    nori__text source;
    nori__text_init(&source, &nori__malloc);
    nori_status status = nori__gpu_source(user, which, &source, err);
    if (status == NORI_OK) {
        const nori__str text = {source.data, source.size};
        program = nori__ocl_cached(self, made->name, text);
        if (!program) {
            status = from_source(self, made->name, &source, &program, err);
            if (status == NORI_OK) {
                nori__ocl_keep(self, program, made->name, text);
            }
        }
    }
    made->built = program;
    nori__text_free(&source);
    return status;
}

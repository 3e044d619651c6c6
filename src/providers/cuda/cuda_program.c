/* cuda_program.c: kernels from source, or from the cache, to the device. NVRTC makes code of the device's
 * architecture where it knows that; else PTX of the newest it knows, which the driver compiles. */
#include <stdio.h>

#include "cuda_kernels.h"
#include "providers/cuda/cuda.h"

#define MOST_ARCHS 64

static nori_status source_of(cuda_self *self, gpu_source which, nori__text *t, nori_error *err)
{
    nori__text_add(t, (const char *)cuda_kernels_prelude, sizeof(cuda_kernels_prelude));
    NORI__TRY(nori__gpu_source(&self->gpu, which, t, err));
    if (which == GPU_IN_conv) {
        nori__text_add(t, (const char *)cuda_kernels_conv_tiles, sizeof(cuda_kernels_conv_tiles));
    } else if (which == GPU_IN_gemm) {
        nori__text_add(t, (const char *)cuda_kernels_gemm_tiles, sizeof(cuda_kernels_gemm_tiles));
    }
    nori__text_add(t, "", 1); /* NVRTC takes a string */
    return t->failed ? nori__no_memory(err) : NORI_OK;
}

/* The largest architecture NVRTC knows that is not beyond the device's; 0: none. */
static int best_arch(const cuda_self *self)
{
    int archs[MOST_ARCHS] = {0}, count = 0, best = 0;
    if (self->api.nvrtcGetNumSupportedArchs(&count) != 0 || count > MOST_ARCHS ||
        self->api.nvrtcGetSupportedArchs(archs) != 0) {
        return 0;
    }
    for (int i = 0; i < count; i++) {
        best = archs[i] <= self->arch && archs[i] > best ? archs[i] : best;
    }
    return best;
}

static nori_status compile_failed(const cuda_self *self, nvrtc_program *program, int code,
                                  const char *name, const char *arch, nori_error *err)
{
    char first[1024] = "";
    size_t bytes = 0;
    char *log = self->api.nvrtcGetProgramLogSize(program, &bytes) == 0
                    ? nori__alloc_zero(&nori__malloc, bytes + 1)
                    : NULL;
    if (log && self->api.nvrtcGetProgramLog(program, log) == 0) {
        nori__gpu_first_lines(log, first, sizeof(first));
    }
    nori__release(&nori__malloc, log, bytes + 1);
    return nori__fail(err, NORI_ERROR_UNAVAILABLE,
                      "CUDA: kernels \"%s\" cannot be compiled for %s (%s, NVRTC %d.%d): %s (%d)%s%s",
                      name, self->gpu.device_name, arch, self->compiler_version[0],
                      self->compiler_version[1], self->api.nvrtcGetErrorString(code), code,
                      first[0] ? ": " : "", first);
}

/* Code in fresh memory. */
static nori_status code_of(const cuda_self *self, nvrtc_program *program, bool ptx, char **code,
                           size_t *size, nori_error *err)
{
    const cuda_api *api = &self->api;
    int failed = ptx ? api->nvrtcGetPTXSize(program, size) : api->nvrtcGetCUBINSize(program, size);
    *code = failed == 0 ? nori__alloc_zero(&nori__malloc, *size + 1) : NULL;
    if (failed == 0 && !*code) {
        return nori__no_memory(err);
    }
    if (failed == 0) {
        failed = ptx ? api->nvrtcGetPTX(program, *code) : api->nvrtcGetCUBIN(program, *code);
    }
    if (failed != 0) {
        nori__release(&nori__malloc, *code, *size + 1);
        *code = NULL;
        return nori__fail(err, NORI_ERROR_UNAVAILABLE, "NVRTC: no code comes out: %s (%d)",
                          api->nvrtcGetErrorString(failed), failed);
    }
    return NORI_OK;
}

static nori_status compile(const cuda_self *self, const char *name, const char *source, char **code,
                           size_t *size, nori_error *err)
{
    int best = best_arch(self), failed;
    bool ptx = best != self->arch;
    char arch[64];
    nvrtc_program *program = NULL;
    if (best == 0) {
        return nori__fail(err, NORI_ERROR_UNAVAILABLE,
                          "CUDA: NVRTC %d.%d (%s) knows no architecture up to compute capability %d.%d "
                          "of %s",
                          self->compiler_version[0], self->compiler_version[1], self->compiler_path,
                          self->arch / 10, self->arch % 10, self->gpu.device_name);
    }
    snprintf(arch, sizeof(arch), "--gpu-architecture=%s_%d", ptx ? "compute" : "sm", best);
    const char *const options[] = {arch, "--std=c++14", "--device-as-default-execution-space"};
    failed = self->api.nvrtcCreateProgram(&program, source, name, 0, NULL, NULL);
    if (failed != 0) {
        return nori__fail(err, NORI_ERROR_UNAVAILABLE, "NVRTC: nvrtcCreateProgram gave %s (%d)",
                          self->api.nvrtcGetErrorString(failed), failed);
    }
    failed = self->api.nvrtcCompileProgram(program, (int)NORI__COUNT(options), options);
    nori_status status = failed == 0 ? code_of(self, program, ptx, code, size, err)
                                     : compile_failed(self, program, failed, name, arch, err);
    self->api.nvrtcDestroyProgram(&program);
    return status;
}

typedef struct taking {
    cuda_self *self;
    cuda_module *module;
} taking;

static bool take(void *user, const void *bytes, size_t size, char why[128])
{
    taking *t = user;
    char *text = nori__alloc_zero(&nori__malloc, size + 1); /* PTX ends with a 0, in any case */
    nori_error err = {0};
    if (!text) {
        snprintf(why, 128, "out of memory");
        return false;
    }
    memcpy(text, bytes, size);
    int code = t->self->api.cuModuleLoadData(&t->module, text);
    if (nori__cuda_check(t->self, code, "cuModuleLoadData", NORI_ERROR_UNAVAILABLE, &err) != NORI_OK) {
        snprintf(why, 128, "%.127s", err.message);
        t->module = NULL;
    }
    nori__release(&nori__malloc, text, size + 1);
    return t->module != NULL;
}

static nori_status from_source(cuda_self *self, const gpu_kept *kept, taking *t, nori_error *err)
{
    char *code = NULL, why[128] = "";
    size_t size = 0;
    NORI__TRY(compile(self, kept->name, kept->source.p, &code, &size, err));
    if (take(t, code, size, why)) {
        nori__gpu_keep(&self->gpu, kept, code, size);
    }
    nori__release(&nori__malloc, code, size + 1);
    return t->module ? NORI_OK
                     : nori__fail(err, NORI_ERROR_UNAVAILABLE, "CUDA: kernels \"%s\": %s", kept->name,
                                  why);
}

nori_status nori__cuda_program(gpu_self *user, gpu_source which, nori_error *err)
{
    cuda_self *self = (cuda_self *)user;
    char device[64], made_for[256];
    taking t = {self, NULL};
    nori__text source;
    gpu_program *made = nori__gpu_program(user, which);
    if (made->built) {
        return NORI_OK;
    }
    snprintf(device, sizeof(device), "sm_%d", self->arch); /* code fits every device of it */
    snprintf(made_for, sizeof(made_for), "CUDA driver %d\nNVRTC %d.%d\n%s", self->driver_version,
             self->compiler_version[0], self->compiler_version[1], device);
    nori__text_init(&source, &nori__malloc);
    nori_status status = source_of(self, which, &source, err);
    if (status == NORI_OK) {
        const gpu_kept kept = {
            made->name, device, made_for, {source.data, source.size}};
        if (!nori__gpu_cached(user, &kept, take, &t)) {
            status = from_source(self, &kept, &t, err);
        }
        made->built = t.module;
    }
    nori__text_free(&source);
    return status;
}

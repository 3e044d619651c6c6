/* cuda_options.c: what stands behind "cuda:": key=value, comma-separated. */
#include <stdlib.h>

#include "providers/cuda/cuda.h"

static nori_status take_option(gpu_self *gpu, const char *key, const char *value, nori_error *err)
{
    cuda_self *self = (cuda_self *)gpu; /* its first member */
    if (nori__same(key, "device")) {
        char *end;
        long n = strtol(value, &end, 10);
        self->device_want = (int)n;
        return *value && !*end && n >= 0 && n < 1000
                   ? NORI_OK
                   : nori__gpu_bad_value(gpu, key, value, "a number", err);
    }
    if (nori__same(key, "graphs")) {
        self->graphs = nori__same(value, "1");
        return self->graphs || nori__same(value, "0")
                   ? NORI_OK
                   : nori__gpu_bad_value(gpu, key, value, "0 or 1", err);
    }
    const char **text = nori__same(key, "lib")        ? &self->lib
                        : nori__same(key, "nvrtc")    ? &self->nvrtc
                        : nori__same(key, "cublaslt") ? &self->blas_want
                        : nori__same(key, "cudnn")    ? &self->dnn_want
                                                      : NULL;
    if (!text) {
        nori__fail(err, NORI_ERROR_ARGUMENT, "cuda has no option \"%s\"", key);
        nori__hint(err, "there are device=N, graphs=0|1, costs=estimate|none, chains=0|1, lib=PATH, "
                        "nvrtc=PATH, cublaslt=PATH|none, cudnn=PATH|none");
        return NORI_ERROR_ARGUMENT;
    }
    *text = value;
    return *value ? NORI_OK : nori__gpu_bad_value(gpu, key, value, "a path", err);
}

nori_status nori__cuda_options(cuda_self *self, const nori_provider_open *how, nori_error *err)
{
    self->graphs = true;
    return nori__gpu_options(&self->gpu, how, take_option, err);
}

/* cuda_libraries.c: cuBLASLt for products and cuDNN for convolutions, opened where they are there. Without
 * them kernels of nori's own do both; which it is stands behind the provider's name in reports. */
#include <stdio.h>

#include "providers/cuda/cuda.h"

nori_status nori__cuda_without(const char *want, nori_status status, const nori_error *why, char *text,
                               size_t size, nori_error *err)
{
    if (want) {
        return nori__fail(err, status, "%s", why->message);
    }
    snprintf(text, size, "own kernels (%.100s)", why->message);
    return NORI_OK;
}

nori_status nori__cuda_find_libraries(cuda_self *self, nori_error *err)
{
    char blas[128] = "own kernels", dnn[128] = "own kernels";
    NORI__TRY(nori__cuda_blas_open(self, blas, sizeof(blas), err));
    NORI__TRY(nori__cuda_dnn_open(self, dnn, sizeof(dnn), err));
    self->gpu.products = self->blas != NULL;
    self->gpu.convolutions = self->dnn != NULL;
    snprintf(self->libraries, sizeof(self->libraries), "products by %s, convolutions by %s",
             blas, dnn);
    return NORI_OK;
}

void nori__cuda_drop_libraries(cuda_self *self)
{
    nori__cuda_dnn_close(self);
    nori__cuda_blas_close(self);
}

void nori__cuda_drop_call(gpu_self *self, void *call)
{
    ((cuda_call *)call)->drop((cuda_self *)self, call);
}

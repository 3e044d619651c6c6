/* weights.h: named tensors of a file, whoever wrote it: .safetensors, .npz, .onnx. Built on nori.h; the
 * same conventions. */
#ifndef NORI_WEIGHTS_H
#define NORI_WEIGHTS_H

#include "nori/nori.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Immutable; any thread may read it. */
typedef struct nori_weights nori_weights;

/* Opens a file of weights, told apart by content: a .safetensors file, a .npz archive, an ONNX model
 * (initializers of its main graph and values of its Constant nodes, by the name of what they make).
 * Nothing is read before it is asked for, but from archives. Errors: IO, FORMAT (damaged: names,
 * types, offsets and sizes are all checked here), UNSUPPORTED, MEMORY. */
NORI_API nori_status nori_weights_open(nori_env *env, const char *path, nori_weights **weights,
                                       nori_error *error);
NORI_API void nori_weights_free(nori_weights *weights);
NORI_API size_t nori_weights_count(const nori_weights *weights);
NORI_API const char *nori_weights_name(const nori_weights *weights, size_t index); /* or NULL */
/* A tensor by its name; the caller frees it, also after the weights. Errors: ARGUMENT (no such name;
 * the message has the nearest one), MEMORY. */
NORI_API nori_status nori_weights_tensor(const nori_weights *weights, const char *name,
                                         nori_tensor **tensor, nori_error *error);
/* Whether there is such a name. */
NORI_API int nori_weights_has(const nori_weights *weights, const char *name);

#ifdef __cplusplus
}
#endif
#endif

/* model_limits.h: a model's messages against the limits of their environment, before anything is built. */
#ifndef NORI_ONNX_MODEL_LIMITS_H
#define NORI_ONNX_MODEL_LIMITS_H

#include "nori/limits.h"
#include "onnx/onnx.h"

nori_status nori__pb_check_limits(const nori__pb_model *model, const nori_limits *limits,
                                  nori_error *err);
/* Shows each tensor of a model: initializers and attributes of all its graphs and functions, values and
 * indices of sparse ones. */
void nori__pb_see_tensors(const nori__pb_model *model,
                          void (*see)(void *user, const nori__pb_tensor *tensor), void *user);
/* The error of a limit: what was found, and how to raise it. option: its name after --limit. */
nori_status nori__past_limit(nori_error *err, const char *what, uint64_t found, uint64_t limit,
                             const char *field, const char *option);

#endif

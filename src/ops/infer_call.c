/* infer_call.c: what the inference of a custom operator may ask and say: the public face of
 * nori__infer. */
#include <stdio.h>

#include "ops/op.h"

const nori_node *nori_infer_node(const nori_infer *c)
{
    return c->node;
}

nori_type nori_infer_type(const nori_infer *c, size_t input)
{
    return input < c->node->input_count ? nori__in_elem(c, (uint32_t)input) : NORI_UNDEFINED;
}

int nori_infer_rank(const nori_infer *c, size_t input)
{
    return input < c->node->input_count ? nori__in_rank(c, (uint32_t)input) : -1;
}

int64_t nori_infer_dim(const nori_infer *c, size_t input, int axis)
{
    return axis >= 0 && axis < nori_infer_rank(c, input) ? c->in[input].dims[axis].value : -1;
}

const nori_tensor *nori_infer_tensor(const nori_infer *c, size_t input)
{
    return input < c->node->input_count && c->node->inputs[input] ? c->in[input].tensor : NULL;
}

nori_status nori_infer_output(nori_infer *c, size_t output, nori_type type, int rank,
                              const int64_t *dims)
{
    nori__dim shape[NORI_MAX_RANK];
    if (rank < -1 || rank > NORI_MAX_RANK || type >= NORI_TYPE_COUNT) {
        return nori__fail(c->err, NORI_ERROR_ARGUMENT,
                          "inference gave output %zu rank %d and type %d", output, rank, (int)type);
    }
    for (int d = 0; d < rank; d++) {
        shape[d] = (nori__dim){dims[d] < 0 ? -1 : dims[d], NULL};
    }
    if (rank >= 0 && output < c->node->output_count) {
        nori__out_set(c, (uint32_t)output, type, rank, shape);
    } else if (output < c->node->output_count) {
        nori__out_elem(c, (uint32_t)output, type);
    }
    return NORI_OK;
}

nori_status nori_infer_like(nori_infer *c, size_t output, size_t input)
{
    if (input < c->node->input_count && output < c->node->output_count) {
        nori__out_like(c, (uint32_t)output, (uint32_t)input);
    }
    return NORI_OK;
}

nori_error *nori_infer_error(const nori_infer *c)
{
    return c->err;
}

nori_status nori_error_set(nori_error *error, nori_status status, const char *format, ...)
{
    char text[sizeof(error->message)];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return nori__fail(error, status, "%s", text);
}

/* infer_training.c: Gradient, and the optimizers of ai.onnx.preview.training: their inputs are rate,
 * count, then the tensors, their gradients and their states; outputs the new tensors and states. */
#include "ops/content.h"

/* states: how many tensors of state each optimized tensor has. */
static nori_status optimizer(nori__infer *c, uint32_t states)
{
    uint32_t lists = states + 2, n_in = c->node->input_count;
    if (n_in < 2 + lists || (n_in - 2) % lists != 0 ||
        c->node->output_count > (n_in - 2) / lists * (states + 1)) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "%u inputs are not rate, count and %u lists of one length", n_in, lists);
    }
    uint32_t n = (n_in - 2) / lists;
    for (uint32_t o = 0; o < c->node->output_count; o++) {
        nori__out_like(c, o, o < n ? 2 + o : 2 + o + n); /* the gradients give no output */
    }
    return NORI_OK;
}

nori_status nori__infer_adagrad(nori__infer *c)
{
    return optimizer(c, 1);
}

nori_status nori__infer_momentum(nori__infer *c)
{
    return optimizer(c, 1);
}

nori_status nori__infer_adam(nori__infer *c)
{
    return optimizer(c, 2);
}

/* A derivative has the shape of what y is differentiated by: of the input in its place. */
nori_status nori__infer_gradient(nori__infer *c)
{
    for (uint32_t o = 0; o < c->node->output_count && o < c->node->input_count; o++) {
        nori__out_like(c, o, o);
    }
    return NORI_OK;
}

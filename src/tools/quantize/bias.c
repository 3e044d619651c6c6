/* bias.c: rounding moves weights by a little each, and where that does not cancel, every output of a
 * channel is off by about the same. The mean of it, over what the samples hold in each channel of the
 * input, goes into the bias: b' = b - sum over weights of (W' - W) mean(x). */
#include <math.h>

#include "ops/op.h"
#include "tools/quantize/search.h"

static double weight_of(const nori__q_weight *made, int axis, int64_t index)
{
    int64_t c = 0;
    if (axis >= 0) {
        int64_t inner = 1;
        for (int d = axis + 1; d < made->integers->rank; d++) {
            inner *= made->integers->dims[d];
        }
        c = index / inner % made->integers->dims[axis];
    }
    return nori__tensor_get_f64(made->scales, c) *
           (double)(nori__tensor_get_i64(made->integers, index) - nori__tensor_get_i64(made->zeros, c));
}

nori_status nori__q_correct_bias(nori__quantizer *q, const nori__node *n, const nori_tensor *w,
                                 const nori__q_weight *made, int axis, const nori_tensor *old,
                                 nori_tensor **bias)
{
    const nori__q_channels *c =
        q->steps & NORI_QUANTIZE_CORRECT_BIAS ? nori__map_get(&q->channels, n->inputs[0]->name) : NULL;
    int64_t channels = c ? nori__q_out_channels(n, w) : 0;
    *bias = NULL;
    bool product = nori__node_is(n, NORI__OP_ONNX_MatMul); /* has no bias */
    if (channels == 0 || c->numbers == 0 || c->count != nori__q_in_channels(n, w) || product ||
        !nori__q_plain(n) || (old && (old->rank != 1 || old->count != channels))) {
        return NORI_OK;
    }
    nori__arena room;
    nori__arena_init(&room, q->allocator);
    double *off = nori__arena_array(&room, (size_t)channels, sizeof(*off));
    nori_status s = off ? nori__tensor_new(q->ir->allocator, NORI_FLOAT, 1, &channels, bias, q->err)
                        : nori__no_memory(q->err);
    for (nori__q_walk k = nori__q_walk_begin(n, w); s == NORI_OK && nori__q_walk_next(&k);) {
        double e = 0;
        for (int64_t i = k.at; i < k.at + k.count; i++) {
            e += weight_of(made, axis, i) - nori__tensor_get_f64(w, i);
        }
        off[k.out] += e * c->sum[k.in] / c->numbers;
    }
    for (int64_t k = 0; s == NORI_OK && k < channels; k++) {
        double b = (old ? nori__tensor_get_f64(old, k) : 0) - off[k];
        nori__tensor_set_f64(*bias, k, isfinite(b) ? b : old ? nori__tensor_get_f64(old, k) : 0);
    }
    nori__arena_free(&room);
    return s;
}

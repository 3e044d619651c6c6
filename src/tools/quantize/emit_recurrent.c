/* emit_recurrent.c: LSTM, GRU and RNN with 8-bit weights: W and R become DequantizeLinear of their
 * integers, a scale for every row of a gate. The sums stay float, for no standard operator has them on
 * integers: the file is a quarter in size, and every runtime reads it. */
#include "ops/op.h"
#include "tools/quantize/quantize.h"

bool nori__q_recurrent(const nori__node *n)
{
    return nori__node_is(n, NORI__OP_ONNX_LSTM) || nori__node_is(n, NORI__OP_ONNX_GRU) ||
           nori__node_is(n, NORI__OP_ONNX_RNN);
}

/* W or R: [directions, gates x hidden, columns]. */
static nori_status one_weight(nori__quantizer *q, nori__node *n, uint32_t index, double *worst)
{
    const nori_quantize_options *o = q->options;
    const nori_tensor *w = nori__value_const(n->inputs[index]);
    bool symmetric = o->weight_type == NORI_INT8 || o->weight_type == NORI_INT4;
    int axis = o->per_channel && nori__ir_opset(q->ir, "") >= 13 ? 1 : -1;
    nori__q_weight made;
    nori__value *to;
    NORI__TRY(nori__q_weight_make(q->ir->allocator, w, axis, o->weight_type, symmetric, NULL, 1, &made,
                                  q->err));
    *worst = made.sqnr < *worst ? made.sqnr : *worst;
    NORI__TRY(nori__q_constant(q, n, n->inputs[index]->name, made.integers, made.scales, made.zeros, axis,
                               0, &to));
    return nori__node_set_input(n, index, to) ? NORI_OK : nori__no_memory(q->err);
}

bool nori__q_recurrent_fits(const nori__node *n)
{
    for (uint32_t i = 1; i < 3; i++) {
        const nori_tensor *w = i < n->input_count ? nori__value_const(n->inputs[i]) : NULL;
        if (!w || w->type != NORI_FLOAT || w->rank != 3 || w->count == 0) {
            return false;
        }
    }
    return true;
}

nori_status nori__q_emit_recurrent(nori__quantizer *q, nori__node *n)
{
    double worst = 1e300;
    NORI__TRY(one_weight(q, n, 1, &worst));
    NORI__TRY(one_weight(q, n, 2, &worst));
    nori__q_report_weight(q, n, worst);
    nori__q_report_node(q, n, NULL);
    return NORI_OK;
}

/* emit_common.c: what the forms of quantized graphs share. */
#include "ops/op.h"
#include "tools/quantize/quantize.h"

const char *nori__q_name(nori__quantizer *q, const char *base, const char *what)
{
    return nori__arena_printf(&q->arena, "%s_%s", base, what);
}

bool nori__q_plain(const nori__node *n)
{
    return !nori__node_is(n, NORI__OP_ONNX_Gemm) ||
           (nori__attr_f(n, "alpha", 1) == 1 && nori__attr_f(n, "beta", 1) == 1);
}

int nori__q_channel_axis(const nori__quantizer *q, const nori__node *n, const nori_tensor *w)
{
    if (!q->options->per_channel || nori__ir_opset(q->ir, "") < 13) {
        return -1;
    }
    if (nori__node_is(n, NORI__OP_ONNX_Conv)) {
        return 0;
    }
    if (nori__node_is(n, NORI__OP_ONNX_ConvTranspose)) {
        return nori__attr_i(n, "group", 1) == 1 ? 1 : -1; /* grouped: channels repeat on axis 1 */
    }
    if (nori__node_is(n, NORI__OP_ONNX_Gemm)) {
        return nori__attr_i(n, "transB", 0) ? 0 : 1;
    }
    return w->rank == 2 ? 1 : -1;
}

nori_status nori__q_constant(nori__quantizer *q, nori__node *n, const char *name,
                             nori_tensor *integers, nori_tensor *scales, nori_tensor *zeros,
                             int axis, int block, nori__value **out)
{
    nori__graph *g = q->ir->main;
    nori__value *in[3] = {
        nori__const_new(g, nori__q_name(q, name, "quantized"), integers),
        nori__const_new(g, nori__q_name(q, name, "scale"), scales),
        zeros ? nori__const_new(g, nori__q_name(q, name, "zero_point"), zeros) : NULL};
    *out = nori__value_new(g, nori__q_name(q, name, "dequantized"));
    if (!in[0] || !in[1] || (zeros && !in[2]) || !*out) {
        return nori__no_memory(q->err);
    }
    nori__node *d = nori__node_new(g, n, "", "DequantizeLinear", in, zeros ? 3 : 2, out, 1);
    bool ok = d && (axis < 0 || nori__ir_opset(q->ir, "") < 13 ||
                    nori__node_set_int(d, "axis", axis));
    ok = ok && (block == 0 || nori__node_set_int(d, "block_size", block));
    return ok ? NORI_OK : nori__no_memory(q->err);
}

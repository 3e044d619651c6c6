/* roles.c: what each operator means to the quantizer. */
#include "ops/op.h"
#include "tools/quantize/quantize.h"

static const struct {
    nori__op_id id;
    nori__q_role role;
} roles[] = {
    {NORI__OP_ONNX_Conv, NORI__Q_WEIGHTED},
    {NORI__OP_ONNX_ConvTranspose, NORI__Q_WEIGHTED},
    {NORI__OP_ONNX_Gemm, NORI__Q_WEIGHTED},
    {NORI__OP_ONNX_MatMul, NORI__Q_WEIGHTED},
    {NORI__OP_ONNX_Add, NORI__Q_COMPUTE},
    {NORI__OP_ONNX_Mul, NORI__Q_COMPUTE},
    {NORI__OP_ONNX_AveragePool, NORI__Q_COMPUTE},
    {NORI__OP_ONNX_GlobalAveragePool, NORI__Q_COMPUTE},
    {NORI__OP_ONNX_Concat, NORI__Q_COMPUTE},
    {NORI__OP_ONNX_LeakyRelu, NORI__Q_COMPUTE},
    {NORI__OP_ONNX_Sigmoid, NORI__Q_COMPUTE},
    {NORI__OP_ONNX_Softmax, NORI__Q_COMPUTE},
    {NORI__OP_ONNX_Relu, NORI__Q_ACTIVATION},
    {NORI__OP_ONNX_Clip, NORI__Q_ACTIVATION},
    {NORI__OP_ONNX_MaxPool, NORI__Q_PASS},
    {NORI__OP_ONNX_Reshape, NORI__Q_PASS},
    {NORI__OP_ONNX_Flatten, NORI__Q_PASS},
    {NORI__OP_ONNX_Transpose, NORI__Q_PASS},
    {NORI__OP_ONNX_Squeeze, NORI__Q_PASS},
    {NORI__OP_ONNX_Unsqueeze, NORI__Q_PASS},
    {NORI__OP_ONNX_Split, NORI__Q_PASS},
    {NORI__OP_ONNX_Slice, NORI__Q_PASS},
    {NORI__OP_ONNX_DepthToSpace, NORI__Q_PASS},
    {NORI__OP_ONNX_SpaceToDepth, NORI__Q_PASS},
};

/* Resize moves values when it takes the nearest, and computes when it blends them. */
static nori__q_role of_resize(const nori__node *n)
{
    const char *mode = nori__attr_s(n, "mode", "nearest");
    return nori__same(mode, "nearest") ? NORI__Q_PASS : NORI__Q_FLOAT;
}

nori__q_role nori__q_role_of(const nori__node *n)
{
    if (nori__node_is(n, NORI__OP_ONNX_Resize)) {
        return of_resize(n);
    }
    for (size_t i = 0; n->op && i < NORI__COUNT(roles); i++) {
        if (roles[i].id == n->op->id) {
            return roles[i].role;
        }
    }
    return NORI__Q_FLOAT;
}

uint32_t nori__q_data_inputs(const nori__node *n)
{
    uint32_t most = 1;
    if (nori__q_role_of(n) == NORI__Q_WEIGHTED) {
        most = 2;
    } else if (nori__node_is(n, NORI__OP_ONNX_Add) || nori__node_is(n, NORI__OP_ONNX_Mul) ||
               nori__node_is(n, NORI__OP_ONNX_Concat)) {
        most = n->input_count;
    }
    return most < n->input_count ? most : n->input_count;
}

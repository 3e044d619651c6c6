/* cpu_kernels.c: the table of the cpu provider: which kernel takes which node. */
#include "base/built.h"
#include "providers/cpu/blocked.h"
#include "providers/cpu/integers.h"
#include "providers/cpu/joined.h"
#include "providers/cpu/lastc.h"

/* Nodes with float inputs 0 and 1 (as far as they are there). */
static bool floats(const nori__node *node)
{
    return nori__cpu_is_f32(node, 0) && (node->input_count < 2 || !node->inputs[1] ||
                                         nori__cpu_is_f32(node, 1));
}

static bool first_float(const nori__node *node)
{
    return nori__cpu_is_f32(node, 0);
}

/* Integers of eight bits; what else they must be, the kernel looks for itself. */
static bool eight_bits(const nori__node *node)
{
    const nori__value *v = nori__cpu_value(node, 0);
    return v && nori__cpu_is_8bit((nori_type)v->type.elem);
}

/* Elements of four bytes, or of one. */
static bool words(const nori__node *node)
{
    const nori__value *v = nori__cpu_value(node, 0);
    return v && (v->type.elem == NORI_FLOAT || v->type.elem == NORI_INT32 ||
                 v->type.elem == NORI_UINT32 || nori__cpu_is_8bit((nori_type)v->type.elem));
}

/* float16 to float32, or back. */
static bool half_and_float(const nori__node *node)
{
    const nori__value *v = nori__cpu_value(node, 0);
    int64_t to = nori__attr_i(node, "to", 0);
    return v && ((v->type.elem == NORI_FLOAT16 && to == NORI_FLOAT) ||
                 (v->type.elem == NORI_FLOAT && to == NORI_FLOAT16));
}

static bool always(const nori__node *node)
{
    (void)node;
    return true;
}

#define ROW(name, accepts, runs) \
    NORI__IF_BUILT(name, {NORI__OP_##name, accepts, &nori__cpu_##runs},)
static const struct row {
    nori__op_id op;
    bool (*accepts)(const nori__node *node);
    const nori__kernel *kernel;
} rows[] = {
    ROW(ONNX_Conv, floats, conv)
    ROW(MS_FusedConv, floats, conv)
    ROW(ONNX_MatMul, floats, matmul)
    ROW(ONNX_Gemm, floats, matmul)
    ROW(MS_FusedGemm, floats, matmul)
    ROW(ONNX_Relu, floats, unary)
    ROW(ONNX_LeakyRelu, floats, unary)
    ROW(ONNX_Clip, floats, unary)
    ROW(ONNX_HardSigmoid, floats, unary)
    ROW(ONNX_HardSwish, floats, unary)
    ROW(ONNX_Sigmoid, floats, unary)
    ROW(ONNX_Tanh, floats, unary)
    ROW(ONNX_Exp, floats, unary)
    ROW(ONNX_Erf, floats, unary)
    ROW(ONNX_Gelu, floats, unary)
    ROW(ONNX_Swish, floats, unary)
    ROW(ONNX_Sqrt, floats, unary)
    ROW(ONNX_Reciprocal, floats, unary)
    ROW(ONNX_Neg, floats, unary)
    ROW(ONNX_Abs, floats, unary)
    ROW(MS_FastGelu, floats, unary)
    ROW(ONNX_Elu, floats, unary)
    ROW(ONNX_Pow, floats, power)
    ROW(ONNX_PRelu, floats, prelu)
    ROW(ML_TreeEnsemble, always, tree)
    ROW(ML_TreeEnsembleClassifier, always, tree)
    ROW(ML_TreeEnsembleRegressor, always, tree)
    ROW(ONNX_Add, floats, binary)
    ROW(ONNX_Sub, floats, binary)
    ROW(ONNX_Mul, floats, binary)
    ROW(ONNX_Div, floats, binary)
    ROW(ONNX_Max, floats, binary)
    ROW(ONNX_Min, floats, binary)
    ROW(ONNX_BatchNormalization, floats, batch_norm)
    ROW(ONNX_Softmax, floats, softmax)
    ROW(ONNX_LayerNormalization, floats, layer_norm)
    ROW(ONNX_RMSNormalization, floats, layer_norm)
    ROW(ONNX_InstanceNormalization, floats, instance_norm)
    ROW(ONNX_GlobalAveragePool, floats, reduce)
    ROW(ONNX_GlobalMaxPool, floats, reduce)
    ROW(ONNX_MaxPool, floats, pool)
    ROW(ONNX_AveragePool, floats, pool)
    ROW(ONNX_Resize, first_float, resize)
    ROW(MS_SkipLayerNormalization, floats, skip_norm)
    ROW(ONNX_ConvInteger, eight_bits, qconv)
    ROW(ONNX_QLinearConv, eight_bits, qconv)
    ROW(ONNX_MatMulInteger, eight_bits, qmatmul)
    ROW(ONNX_QLinearMatMul, eight_bits, qmatmul)
    ROW(ONNX_QuantizeLinear, first_float, quantize)
    ROW(ONNX_DequantizeLinear, eight_bits, dequantize)
    ROW(ONNX_DynamicQuantizeLinear, first_float, dynamic_quantize)
    ROW(ONNX_ReduceMean, first_float, reduce)
    ROW(ONNX_ReduceSum, first_float, reduce)
    ROW(ONNX_ReduceMax, first_float, reduce)
    ROW(ONNX_ReduceMin, first_float, reduce)
    ROW(ONNX_Cast, half_and_float, cast)
    ROW(ONNX_Transpose, words, transpose)
    ROW(ONNX_LSTM, floats, recurrent)
    ROW(ONNX_GRU, floats, recurrent)
    ROW(ONNX_RNN, floats, recurrent)
    ROW(MS_DynamicQuantizeLSTM, first_float, dynamic_lstm)
    NORI__IF_BUILT(rewrite_integers, ROW(ONNX_MaxPool, eight_bits, q8_max_pool))
    ROW(MS_QGemm, eight_bits, qgemm)
    ROW(MS_QLinearAdd, eight_bits, q8_binary)
    ROW(MS_QLinearMul, eight_bits, q8_binary)
    ROW(MS_QLinearSoftmax, eight_bits, q8_softmax)
    ROW(MS_QLinearAveragePool, eight_bits, q8_average_pool)
    ROW(MS_QLinearGlobalAveragePool, eight_bits, q8_mean)
    ROW(MS_QLinearConcat, always, q8_concat)
    {NORI__OP_COUNT, always, NULL}, /* the end */
};
#undef ROW

const nori__kernel *nori__cpu_kernel(const nori__node *node)
{
    const nori__kernel *own = nori__blocked_kernel(node);
    own = own ? own : nori__integer_kernel(node);
    own = own ? own : nori__joined_kernel(node);
    own = own ? own : nori__lastc_kernel(node);
    if (own) {
        return own;
    }
    for (size_t i = 0; node->op && rows[i].kernel; i++) {
        if (rows[i].op == node->op->id && rows[i].accepts(node)) {
            return rows[i].kernel;
        }
    }
    return NULL;
}

static const nori_kernel *kernel_for(void *self, const nori_node *node)
{
    (void)self;
    return nori__cpu_kernel(node);
}

const nori_provider nori__cpu_provider = {
    .size = sizeof(nori_provider),
    .name = "cpu",
    .description = "kernels for this CPU: SSE2, AVX2, AVX-512 or AMX by what it has; packed weights",
    .kernel = kernel_for,
};

/* cpu_kernels.c: the table of the cpu provider: which kernel takes which node. */
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

static const struct row {
    nori__op_id op;
    bool (*accepts)(const nori__node *node);
    const nori__kernel *kernel;
} rows[] = {
    {NORI__OP_ONNX_Conv, floats, &nori__cpu_conv},
    {NORI__OP_MS_FusedConv, floats, &nori__cpu_conv},
    {NORI__OP_ONNX_MatMul, floats, &nori__cpu_matmul},
    {NORI__OP_ONNX_Gemm, floats, &nori__cpu_matmul},
    {NORI__OP_MS_FusedGemm, floats, &nori__cpu_matmul},
    {NORI__OP_ONNX_Relu, floats, &nori__cpu_unary},
    {NORI__OP_ONNX_LeakyRelu, floats, &nori__cpu_unary},
    {NORI__OP_ONNX_Clip, floats, &nori__cpu_unary},
    {NORI__OP_ONNX_HardSigmoid, floats, &nori__cpu_unary},
    {NORI__OP_ONNX_HardSwish, floats, &nori__cpu_unary},
    {NORI__OP_ONNX_Sigmoid, floats, &nori__cpu_unary},
    {NORI__OP_ONNX_Tanh, floats, &nori__cpu_unary},
    {NORI__OP_ONNX_Exp, floats, &nori__cpu_unary},
    {NORI__OP_ONNX_Erf, floats, &nori__cpu_unary},
    {NORI__OP_ONNX_Gelu, floats, &nori__cpu_unary},
    {NORI__OP_ONNX_Swish, floats, &nori__cpu_unary},
    {NORI__OP_ONNX_Sqrt, floats, &nori__cpu_unary},
    {NORI__OP_ONNX_Reciprocal, floats, &nori__cpu_unary},
    {NORI__OP_ONNX_Neg, floats, &nori__cpu_unary},
    {NORI__OP_ONNX_Abs, floats, &nori__cpu_unary},
    {NORI__OP_MS_FastGelu, floats, &nori__cpu_unary},
    {NORI__OP_ONNX_Elu, floats, &nori__cpu_unary},
    {NORI__OP_ONNX_Pow, floats, &nori__cpu_power},
    {NORI__OP_ONNX_PRelu, floats, &nori__cpu_prelu},
    {NORI__OP_ML_TreeEnsemble, always, &nori__cpu_tree},
    {NORI__OP_ML_TreeEnsembleClassifier, always, &nori__cpu_tree},
    {NORI__OP_ML_TreeEnsembleRegressor, always, &nori__cpu_tree},
    {NORI__OP_ONNX_Add, floats, &nori__cpu_binary},
    {NORI__OP_ONNX_Sub, floats, &nori__cpu_binary},
    {NORI__OP_ONNX_Mul, floats, &nori__cpu_binary},
    {NORI__OP_ONNX_Div, floats, &nori__cpu_binary},
    {NORI__OP_ONNX_Max, floats, &nori__cpu_binary},
    {NORI__OP_ONNX_Min, floats, &nori__cpu_binary},
    {NORI__OP_ONNX_BatchNormalization, floats, &nori__cpu_batch_norm},
    {NORI__OP_ONNX_Softmax, floats, &nori__cpu_softmax},
    {NORI__OP_ONNX_LayerNormalization, floats, &nori__cpu_layer_norm},
    {NORI__OP_ONNX_RMSNormalization, floats, &nori__cpu_layer_norm},
    {NORI__OP_ONNX_InstanceNormalization, floats, &nori__cpu_instance_norm},
    {NORI__OP_ONNX_GlobalAveragePool, floats, &nori__cpu_reduce},
    {NORI__OP_ONNX_GlobalMaxPool, floats, &nori__cpu_reduce},
    {NORI__OP_ONNX_MaxPool, floats, &nori__cpu_pool},
    {NORI__OP_ONNX_AveragePool, floats, &nori__cpu_pool},
    {NORI__OP_ONNX_Resize, first_float, &nori__cpu_resize},
    {NORI__OP_MS_SkipLayerNormalization, floats, &nori__cpu_skip_norm},
    {NORI__OP_ONNX_ConvInteger, eight_bits, &nori__cpu_qconv},
    {NORI__OP_ONNX_QLinearConv, eight_bits, &nori__cpu_qconv},
    {NORI__OP_ONNX_MatMulInteger, eight_bits, &nori__cpu_qmatmul},
    {NORI__OP_ONNX_QLinearMatMul, eight_bits, &nori__cpu_qmatmul},
    {NORI__OP_ONNX_QuantizeLinear, first_float, &nori__cpu_quantize},
    {NORI__OP_ONNX_DequantizeLinear, eight_bits, &nori__cpu_dequantize},
    {NORI__OP_ONNX_DynamicQuantizeLinear, first_float, &nori__cpu_dynamic_quantize},
    {NORI__OP_ONNX_ReduceMean, first_float, &nori__cpu_reduce},
    {NORI__OP_ONNX_ReduceSum, first_float, &nori__cpu_reduce},
    {NORI__OP_ONNX_ReduceMax, first_float, &nori__cpu_reduce},
    {NORI__OP_ONNX_ReduceMin, first_float, &nori__cpu_reduce},
    {NORI__OP_ONNX_Cast, half_and_float, &nori__cpu_cast},
    {NORI__OP_ONNX_Transpose, words, &nori__cpu_transpose},
    {NORI__OP_ONNX_LSTM, floats, &nori__cpu_recurrent},
    {NORI__OP_ONNX_GRU, floats, &nori__cpu_recurrent},
    {NORI__OP_ONNX_RNN, floats, &nori__cpu_recurrent},
    {NORI__OP_MS_DynamicQuantizeLSTM, first_float, &nori__cpu_dynamic_lstm},
    {NORI__OP_ONNX_MaxPool, eight_bits, &nori__cpu_q8_max_pool},
    {NORI__OP_MS_QGemm, eight_bits, &nori__cpu_qgemm},
    {NORI__OP_MS_QLinearAdd, eight_bits, &nori__cpu_q8_binary},
    {NORI__OP_MS_QLinearMul, eight_bits, &nori__cpu_q8_binary},
    {NORI__OP_MS_QLinearSoftmax, eight_bits, &nori__cpu_q8_softmax},
    {NORI__OP_MS_QLinearAveragePool, eight_bits, &nori__cpu_q8_average_pool},
    {NORI__OP_MS_QLinearGlobalAveragePool, eight_bits, &nori__cpu_q8_mean},
    {NORI__OP_MS_QLinearConcat, always, &nori__cpu_q8_concat},
};

const nori__kernel *nori__cpu_kernel(const nori__node *node)
{
    const nori__kernel *own = nori__blocked_kernel(node);
    own = own ? own : nori__integer_kernel(node);
    own = own ? own : nori__joined_kernel(node);
    own = own ? own : nori__lastc_kernel(node);
    if (own) {
        return own;
    }
    for (size_t i = 0; node->op && i < NORI__COUNT(rows); i++) {
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

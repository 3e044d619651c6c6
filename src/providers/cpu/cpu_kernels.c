/* cpu_kernels.c: the table of the cpu provider: which kernel takes which node. */
#include "providers/cpu/cpu.h"

/* Nodes with float inputs 0 and 1 (as far as they are there). */
static bool floats(const nori__node *node)
{
    return nori__cpu_is_f32(node, 0) && (node->input_count < 2 || !node->inputs[1] ||
                                         nori__cpu_is_f32(node, 1));
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
};

const nori__kernel *nori__cpu_kernel(const nori__node *node)
{
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
    .description = "kernels for this CPU: SSE2, AVX2 and FMA by what it has; packed weights",
    .kernel = kernel_for,
};

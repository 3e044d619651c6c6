/* cpu_makes.h: what the rewrites of cpu_rewrites.c make, and which micro-kernels operators run on; rows as in
 * ops/makes.h. Operators of the domain "nori" have that in front ("nori_Block"), groups of micro-kernels
 * "kernels_". The first column is the rewrite's name in cpu_rewrites.c: a reduced build has it if one
 * of its rows applies. */

/* half_islands.c: Casts at the borders of what computes in half floats. */
NORI__MAKES(half_islands, "Cast", "half")

NORI__MAKES(pads, "", "Pad Conv")

NORI__MAKES(patterns, "Swish", "Mul Sigmoid")
NORI__MAKES(patterns, "HardSwish", "Mul HardSigmoid")
NORI__MAKES(patterns, "HardSwish", "Mul Div Clip Add")
NORI__MAKES(patterns, "Gelu", "Mul Erf Add")
NORI__MAKES(patterns, "Gelu", "Mul Tanh Add")
NORI__MAKES(patterns, "LayerNormalization", "Add Mul Div Sqrt ReduceMean Pow Sub")

/* integers.c: around DequantizeLinear and QuantizeLinear. */
NORI__MAKES(integers, "QLinearConv", "Conv DequantizeLinear QuantizeLinear")
NORI__MAKES(integers, "QLinearMatMul", "MatMul|Gemm DequantizeLinear QuantizeLinear")
NORI__MAKES(integers, "MS_QGemm", "MatMul|Gemm DequantizeLinear QuantizeLinear")
NORI__MAKES(integers, "nori_ConvToFloat", "Conv DequantizeLinear")
NORI__MAKES(integers, "nori_MatMulToFloat", "MatMul|Gemm DequantizeLinear")
NORI__MAKES(integers, "MS_QLinearAdd", "Add|Sub DequantizeLinear QuantizeLinear")
NORI__MAKES(integers, "MS_QLinearMul", "Mul DequantizeLinear QuantizeLinear")
NORI__MAKES(integers, "MS_QLinearConcat", "Concat DequantizeLinear QuantizeLinear")
NORI__MAKES(integers, "MS_QLinearSoftmax", "Softmax DequantizeLinear QuantizeLinear")
NORI__MAKES(integers, "MS_QLinearAveragePool", "AveragePool DequantizeLinear QuantizeLinear")
NORI__MAKES(integers, "MS_QLinearGlobalAveragePool",
            "GlobalAveragePool|ReduceMean DequantizeLinear QuantizeLinear")
NORI__MAKES(integers, "Squeeze", "ReduceMean DequantizeLinear QuantizeLinear")
NORI__MAKES(integers, "nori_Table", "DequantizeLinear QuantizeLinear")
NORI__MAKES(integers, "nori_Table", "MS_QLinearSigmoid|MS_QLinearLeakyRelu")
NORI__MAKES(integers, "", "MS_QGemm")
NORI__MAKES(integers, "", "DequantizeLinear")
/* integers_dynamic.c: scales found in each run. */
NORI__MAKES(integers, "nori_ConvToFloat", "ConvInteger Cast Mul")
NORI__MAKES(integers, "nori_MatMulToFloat", "MatMulInteger Cast Mul")

NORI__MAKES(lastc, "nori_ToLast nori_ToPlanes nori_LastConv", "QLinearConv")
NORI__MAKES(lastc, "nori_LastMaxPool", "QLinearConv MaxPool")
NORI__MAKES(lastc, "nori_LastMean", "QLinearConv MS_QLinearGlobalAveragePool")
NORI__MAKES(lastc, "nori_LastAveragePool", "QLinearConv MS_QLinearAveragePool")

NORI__MAKES(fuse, "MS_FusedConv",
            "Conv Add|Relu|Sigmoid|Tanh|HardSwish|Swish|LeakyRelu|HardSigmoid|Clip")
NORI__MAKES(fuse, "MS_FusedGemm", "Gemm Relu|Sigmoid|Tanh")
NORI__MAKES(fuse, "Gemm", "MatMul Add")
NORI__MAKES(fuse, "", "Conv BatchNormalization")
NORI__MAKES(fuse, "", "MS_FusedConv")
NORI__MAKES(fuse, "nori_Product", "MatMul Add")
NORI__MAKES(fuse, "nori_Attend", "MatMul Softmax")

NORI__MAKES(block, "nori_Block nori_Unblock", "Conv|MS_FusedConv|ConvTranspose")
NORI__MAKES(block, "nori_BlockedConv", "Conv|MS_FusedConv")
NORI__MAKES(block, "nori_BlockedExpand", "Conv|MS_FusedConv")
NORI__MAKES(block, "nori_BlockedStem", "nori_BlockedConv MaxPool")
NORI__MAKES(block, "nori_BlockedConvTranspose", "ConvTranspose")
NORI__MAKES(block, "nori_BlockedPool", "nori_Block MaxPool|AveragePool")
NORI__MAKES(block, "nori_BlockedMean", "nori_Block GlobalAveragePool|ReduceMean")
NORI__MAKES(block, "nori_BlockedScale", "nori_Block Mul")
NORI__MAKES(block, "nori_BlockedNorm", "nori_Block BatchNormalization")
NORI__MAKES(block, "nori_BlockedPRelu", "nori_Block PRelu")
NORI__MAKES(block, "nori_BlockedResize", "nori_Block Resize")

NORI__MAKES(kernels, "kernels_unary kernels_vector", "")
NORI__MAKES(kernels, "kernels_gemm",
            "Conv|MS_FusedConv|MatMul|Gemm|MS_FusedGemm|nori_Product|nori_Attend|LSTM|GRU|RNN|"
            "MS_DynamicQuantizeLSTM")
NORI__MAKES(kernels, "kernels_int8 kernels_quant kernels_product8",
            "QuantizeLinear|DequantizeLinear|DynamicQuantizeLinear|ConvInteger|MatMulInteger|QLinearConv|"
            "QLinearMatMul|MS_QGemm|MS_QLinearAdd|MS_QLinearMul|MS_QLinearSoftmax|MS_QLinearAveragePool|"
            "MS_QLinearGlobalAveragePool|MS_QLinearConcat|MS_DynamicQuantizeLSTM|nori_Table")
NORI__MAKES(kernels, "kernels_recurrent", "LSTM|GRU|RNN|MS_DynamicQuantizeLSTM")
NORI__MAKES(kernels, "kernels_window", "Conv|MS_FusedConv|MaxPool|AveragePool")
NORI__MAKES(kernels, "kernels_move", "Cast|Transpose|Softmax|kernels_int8|nori_Block")
NORI__MAKES(kernels, "kernels_block", "nori_Block")

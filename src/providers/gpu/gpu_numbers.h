/* gpu_numbers.h: what C and the kernels number alike: kernels are told them as UNARY_Relu and so on. Only
 * lists, so that whoever compiles the kernels otherwise can take them from here. */
#ifndef NORI_PROVIDERS_GPU_GPU_NUMBERS_H
#define NORI_PROVIDERS_GPU_GPU_NUMBERS_H

#define GPU_UNARY(X)                                                                              \
    X(Identity) X(Relu) X(LeakyRelu) X(Clip) X(Sigmoid) X(Tanh) X(HardSigmoid) X(HardSwish)       \
    X(Swish) X(Mish) X(Gelu) X(GeluTanh) X(Elu) X(Celu) X(Selu) X(ThresholdedRelu) X(Softplus)    \
    X(Softsign) X(Exp) X(Log) X(Sqrt) X(Reciprocal) X(Abs) X(Neg) X(Floor) X(Ceil) X(Round)       \
    X(Sign) X(Erf) X(Sin) X(Cos)
#define GPU_BINARY(X) X(Add) X(Sub) X(Mul) X(Div) X(Pow) X(Max) X(Min) X(PRelu)
#define GPU_REDUCE(X)                                                                             \
    X(Sum) X(Mean) X(Max) X(Min) X(Prod) X(L1) X(L2) X(SumSquare) X(LogSum)
#define GPU_POOL(X) X(max) X(average)

#endif

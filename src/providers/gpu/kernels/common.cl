/* common.cl: stands before every program. It is OpenCL C, and with the words of cuda/kernels/prelude.cu
 * in front of it CUDA C. Activations and weights are stored as float, or as half
 * when built with NORI_HALF; arithmetic is float throughout, so no extension is needed: OpenCL C 1.0
 * has vload_half and vstore_half. In front of this text nori defines UNARY_, BINARY_, REDUCE_ and
 * POOL_ numbers.
 *
 * Global sizes are rounded up to whole work-groups: every kernel looks whether it is wanted. */
#ifndef NORI_CUDA
#define FLOAT4(a, b, c, d) ((float4)(a, b, c, d))
#define ROOM_PARAMETER __local float *room, /* a float for each work-item of a group */
#define ROOM
#define SHARED __local /* arrays of a group, declared in a kernel */
#define PLANE get_global_id(2)
#define FIRST_PLANE /* last parameter of kernels that use PLANE */
#endif
#ifdef NORI_HALF
#define STORED half
#define LOAD(p, i) vload_half((size_t)(i), (p))
#define LOAD4(p, i) vload_half4(0, (p) + (i))
#define STORE(v, p, i) vstore_half((v), (size_t)(i), (p))
#define STORE4(v, p, i) vstore_half4((v), 0, (p) + (i))
#else
#define STORED float
#define LOAD(p, i) ((p)[i])
#define LOAD4(p, i) vload4(0, (p) + (i))
#define STORE(v, p, i) ((p)[i] = (v))
#define STORE4(v, p, i) vstore4((v), 0, (p) + (i))
#endif

float sigmoid(float x)
{
    return 1.0f / (1.0f + exp(-x));
}

float softplus(float x)
{
    return fmax(x, 0.0f) + log1p(exp(-fabs(x)));
}

/* x * f(x) where f falls to 0 faster than x to -infinity. */
float gated(float x, float gate)
{
    return x == -INFINITY ? -0.0f : x * gate;
}

/* One function of one number; a and b are the operator's settings. NaN stays NaN, but for
 * ThresholdedRelu. */
float unary(int kind, float a, float b, float x)
{
    switch (kind) {
    case UNARY_Relu: return x < 0.0f ? 0.0f : x;
    case UNARY_LeakyRelu: return x < 0.0f ? a * x : x;
    case UNARY_Clip: x = x < a ? a : x; return x > b ? b : x;
    case UNARY_Sigmoid: return sigmoid(x);
    case UNARY_Tanh: return tanh(x);
    case UNARY_HardSigmoid: x = a * x + b; x = x < 0.0f ? 0.0f : x; return x > 1.0f ? 1.0f : x;
    case UNARY_HardSwish: a = x / 6.0f + 0.5f; return gated(x, a < 0.0f ? 0.0f : a > 1.0f ? 1.0f : a);
    case UNARY_Swish: return x == 0.0f || (isinf(x) && a * x < 0.0f) ? 0.0f : x * sigmoid(a * x);
    case UNARY_Mish: return gated(x, tanh(softplus(x)));
    case UNARY_Gelu: return gated(x, 0.5f * (1.0f + erf(x * 0.70710678f)));
    case UNARY_GeluTanh: 
        return gated(x, 0.5f * (1.0f + tanh(0.79788456f * (x + 0.044715f * x * x * x))));
    case UNARY_Elu: return x < 0.0f ? a * expm1(x) : x;
    case UNARY_Celu: return x < 0.0f ? a * expm1(x / a) : x;
    case UNARY_Selu: return b * (x < 0.0f ? a * expm1(x) : x);
    case UNARY_ThresholdedRelu: return x > a ? x : 0.0f;
    case UNARY_Softplus: return softplus(x);
    case UNARY_Softsign: return isinf(x) ? copysign(1.0f, x) : x / (1.0f + fabs(x));
    case UNARY_Exp: return exp(x);
    case UNARY_Log: return log(x);
    case UNARY_Sqrt: return sqrt(x);
    case UNARY_Reciprocal: return 1.0f / x;
    case UNARY_Abs: return fabs(x);
    case UNARY_Neg: return -x;
    case UNARY_Floor: return floor(x);
    case UNARY_Ceil: return ceil(x);
    case UNARY_Round: return rint(x);
    case UNARY_Sign: return isnan(x) ? x : x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f;
    case UNARY_Erf: return erf(x);
    case UNARY_Sin: return sin(x);
    case UNARY_Cos: return cos(x);
    default: return x;
    }
}

/* unary_body.h: one-argument functions over rows; errors are stated in simd_math.h. Included once a
 * level, after simd.h and simd_math.h. */
#include <float.h>

/* f is a constant where this is inlined. */
ALWAYS void row(size_t n, const float *x, float *y, const float *p,
                vf (*f)(vf x, const float *p))
{
    size_t i = 0;
    for (; i + VL <= n; i += VL) {
        v_store(y + i, f(v_load(x + i), p));
    }
    if (i < n) {
        v_store_some(y + i, n - i, f(v_load_some(x + i, n - i), p));
    }
}

ALWAYS vf relu(vf x, const float *p)
{
    (void)p;
    return v_max(v_zero(), x);
}

ALWAYS vf leaky(vf x, const float *p)
{
    return v_pick(v_less(x, v_zero()), v_mul(x, v_set(p[0])), x);
}

ALWAYS vf clamp(vf x, const float *p)
{
    return v_clamp(x, v_set(p[0]), v_set(p[1]));
}

ALWAYS vf hardsigmoid(vf x, const float *p)
{
    return v_clamp(v_add(v_mul(x, v_set(p[0])), v_set(p[1])), v_zero(), v_set(1));
}

ALWAYS vf hardswish(vf x, const float *p)
{
    const float q[2] = {1.0f / 6, 0.5f};
    (void)p;
    /* -inf times 0 would be NaN. */
    return v_mul(v_max(v_set(-FLT_MAX), x), hardsigmoid(x, q));
}

ALWAYS vf sigmoid(vf x, const float *p)
{
    (void)p;
    return vsigmoid(x);
}

ALWAYS vf hyperbolic(vf x, const float *p)
{
    (void)p;
    return vtanh(x);
}

ALWAYS vf exponential(vf x, const float *p)
{
    (void)p;
    return vexp(x);
}

ALWAYS vf error_function(vf x, const float *p)
{
    (void)p;
    return verf(x);
}

ALWAYS vf gelu(vf x, const float *p)
{
    (void)p;
    return vgelu(x);
}

ALWAYS vf gelu_tanh(vf x, const float *p)
{
    /* 1 + tanh(u) = 2 / (1 + e^-2u) */
    vf s = v_mul(x, x);
    vf u = v_mul(x, v_fma(s, v_set(0.0713548163f), v_set(1.59576912f)));
    (void)p;
    return vgate(x, u);
}

ALWAYS vf silu(vf x, const float *p)
{
    return vgate(x, v_mul(x, v_set(p[0])));
}

/* e^x - 1 by its series near 0, where the difference would cancel. */
ALWAYS vf elu(vf x, const float *p)
{
    vf s = v_set(1.0f / 362880);
    s = v_fma(s, x, v_set(1.0f / 40320));
    s = v_fma(s, x, v_set(1.0f / 5040));
    s = v_fma(s, x, v_set(1.0f / 720));
    s = v_fma(s, x, v_set(1.0f / 120));
    s = v_fma(s, x, v_set(1.0f / 24));
    s = v_fma(s, x, v_set(1.0f / 6));
    s = v_fma(s, x, v_set(0.5f));
    s = v_fma(v_mul(x, x), s, x);
    s = v_pick(v_less(x, v_set(-0.5f)), v_sub(vexp(x), v_set(1)), s);
    return v_pick(v_less(x, v_zero()), v_mul(s, v_set(p[0])), x);
}

ALWAYS vf root(vf x, const float *p)
{
    (void)p;
    return v_sqrt(x);
}

ALWAYS vf reciprocal(vf x, const float *p)
{
    (void)p;
    return v_div(v_set(1), x);
}

ALWAYS vf negative(vf x, const float *p)
{
    (void)p;
    return v_xor(x, v_set(-0.0f));
}

ALWAYS vf absolute(vf x, const float *p)
{
    (void)p;
    return v_abs(x);
}

ALWAYS vf affine(vf x, const float *p)
{
    return v_add(v_mul(x, v_set(p[0])), v_set(p[1]));
}

#define ROW(name, f)                                                            \
    static void name(size_t n, const float *x, float *y, const float *p)        \
    {                                                                           \
        row(n, x, y, p, f);                                                     \
    }
ROW(f32_relu, relu)
ROW(f32_leaky, leaky)
ROW(f32_clamp, clamp)
ROW(f32_hardsigmoid, hardsigmoid)
ROW(f32_hardswish, hardswish)
ROW(f32_sigmoid, sigmoid)
ROW(f32_tanh, hyperbolic)
ROW(f32_exp, exponential)
ROW(f32_erf, error_function)
ROW(f32_gelu, gelu)
ROW(f32_gelu_tanh, gelu_tanh)
ROW(f32_silu, silu)
ROW(f32_elu, elu)
ROW(f32_sqrt, root)
ROW(f32_reciprocal, reciprocal)
ROW(f32_neg, negative)
ROW(f32_abs, absolute)
ROW(f32_affine, affine)

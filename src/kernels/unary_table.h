/* unary_table.h: enters what the functions f32_* of a level are; included last by that level's file. */
static void unary_table(nori__kernels *k)
{
    k->f32_unary[NORI__U_RELU] = f32_relu;
    k->f32_unary[NORI__U_LEAKY] = f32_leaky;
    k->f32_unary[NORI__U_CLAMP] = f32_clamp;
    k->f32_unary[NORI__U_HARDSIGMOID] = f32_hardsigmoid;
    k->f32_unary[NORI__U_HARDSWISH] = f32_hardswish;
    k->f32_unary[NORI__U_SIGMOID] = f32_sigmoid;
    k->f32_unary[NORI__U_TANH] = f32_tanh;
    k->f32_unary[NORI__U_EXP] = f32_exp;
    k->f32_unary[NORI__U_ERF] = f32_erf;
    k->f32_unary[NORI__U_GELU] = f32_gelu;
    k->f32_unary[NORI__U_GELU_TANH] = f32_gelu_tanh;
    k->f32_unary[NORI__U_SILU] = f32_silu;
    k->f32_unary[NORI__U_ELU] = f32_elu;
    k->f32_unary[NORI__U_SQRT] = f32_sqrt;
    k->f32_unary[NORI__U_RECIPROCAL] = f32_reciprocal;
    k->f32_unary[NORI__U_NEG] = f32_neg;
    k->f32_unary[NORI__U_ABS] = f32_abs;
    k->f32_unary[NORI__U_AFFINE] = f32_affine;
}

/* graph_recipes_quant.c: layers computed on integers: float operators between DequantizeLinear and
 * QuantizeLinear with what stands beside a convolution in a network, integer products, QLinear
 * operators. */
#include "graphs.h"

static graphs_value *quantized(drawing *d, const char *op, const char *x, double scale, int zero,
                               nori_type t)
{
    char inputs[96];
    snprintf(inputs, sizeof(inputs), "%s %s %s", x, draw_scalar(d, NORI_FLOAT, scale),
             draw_scalar(d, t, zero));
    draw_node(d, "", op, inputs, 1);
    return draw_try(d);
}

static double some_scale(drawing *d, double least)
{
    return least * (2 + graphs_unit(&d->rng));
}

/* Quantized and back; *used: the scale. */
static graphs_value *around(drawing *d, const graphs_value *x, nori_type t, double *used)
{
    /* Multiples of sixteenths make ties, which are not worth a comparison, but exact sums. */
    double scale =
        graphs_chance(&d->rng, 30) ? 0.0625 * (1 + graphs_below(&d->rng, 3)) : some_scale(d, 0.03);
    *used = scale;
    int zero = t == NORI_UINT8 ? 100 + graphs_below(&d->rng, 56) : graphs_below(&d->rng, 5) - 2;
    zero = graphs_chance(&d->rng, 25) ? 0 : zero;
    graphs_value *q = quantized(d, "QuantizeLinear", x->name, scale, zero, t);
    return q ? quantized(d, "DequantizeLinear", q->name, scale, zero, t) : NULL;
}

/* A constant of that shape, dequantized; axis: a scale for each entry of that axis, -1: one for
 * all. */
static graphs_value *weights(drawing *d, int rank, const int64_t *dims, int axis, double *scale)
{
    char inputs[96];
    const char *w = draw_constant(d, NORI_INT8, rank, dims, -127, 127.9);
    *scale = some_scale(d, 0.008);
    snprintf(inputs, sizeof(inputs), "%s %s %s", w,
             axis >= 0 ? draw_constant(d, NORI_FLOAT, 1, &dims[axis], 0.002, 0.06)
                       : draw_scalar(d, NORI_FLOAT, *scale),
             axis >= 0 ? draw_constant(d, NORI_INT8, 1, &dims[axis], 0, 0)
                       : draw_scalar(d, NORI_INT8, 0));
    nori__pb_node *node = draw_node(d, "", "DequantizeLinear", inputs, 1);
    if (axis >= 0 && d->opset >= 13) {
        make_attr_int(&d->c->m, node, "axis", axis);
    }
    return draw_try(d);
}

/* In units of the sums, as exporters have it: others may be off by half of one
 * (integers_products.c). */
static const graphs_value *bias(drawing *d, int64_t count, double scale, double own)
{
    char inputs[64];
    snprintf(inputs, sizeof(inputs), "%s %s", draw_constant(d, NORI_INT32, 1, &count, -900, 900),
             draw_scalar(d, NORI_FLOAT, (double)((float)scale * (float)own)));
    draw_node(d, "", "DequantizeLinear", inputs, 1);
    return draw_try(d);
}

static graphs_value *quantized_conv(drawing *d, const graphs_value *x, double scale)
{
    static const int64_t channels[] = {1, 3, 4, 8, 16, 16, 24, 32, 17};
    const int64_t *in = nori_tensor_dims(x->v[0]);
    bool depthwise = graphs_chance(&d->rng, 30);
    int64_t made = depthwise ? in[1] : channels[graphs_below(&d->rng, NORI__COUNT(channels))];
    int64_t k = (int64_t[]){1, 3, 3, 2}[graphs_below(&d->rng, 4)],
            dims[4] = {made, depthwise ? 1 : in[1], k, k};
    char inputs[96];
    bool each = graphs_chance(&d->rng, 50) && d->opset >= 13;
    double own;
    graphs_value *w = weights(d, 4, dims, each ? 0 : -1, &own);
    if (!w) {
        return NULL;
    }
    size_t n = (size_t)snprintf(inputs, sizeof(inputs), "%s %s", x->name, w->name);
    const graphs_value *b = !each && graphs_chance(&d->rng, 70) ? bias(d, made, scale, own) : NULL;
    if (b) {
        snprintf(inputs + n, sizeof(inputs) - n, " %s", b->name);
    }
    nori__pb_node *node = draw_node(d, "", "Conv", inputs, 1);
    if (depthwise) {
        make_attr_int(&d->c->m, node, "group", in[1]);
    }
    if (graphs_chance(&d->rng, 70)) {
        draw_pads(d, node, 2, k / 2);
    }
    if (graphs_chance(&d->rng, 25)) {
        draw_each(d, node, "strides", 2, 2);
    }
    return draw_try(d);
}

static graphs_value *quantized_product(drawing *d, const graphs_value *x, double scale)
{
    int rank = nori_tensor_rank(x->v[0]);
    int64_t dims[2] = {nori_tensor_dims(x->v[0])[rank - 1], 1 + graphs_below(&d->rng, 20)};
    bool turned = rank == 2 && graphs_chance(&d->rng, 40);
    int64_t other[2] = {turned ? dims[1] : dims[0], turned ? dims[0] : dims[1]};
    bool each = graphs_chance(&d->rng, 40) && d->opset >= 13;
    double own;
    graphs_value *w = weights(d, 2, other, each ? !turned : -1, &own);
    if (!w) {
        return NULL;
    }
    if (rank == 2 && (turned || graphs_chance(&d->rng, 30))) {
        char inputs[96];
        const graphs_value *c = each ? NULL : bias(d, dims[1], scale, own);
        if (!c && d->opset < 11) {
            return NULL;
        }
        snprintf(inputs, sizeof(inputs), "%s %s %s", x->name, w->name, c ? c->name : "");
        nori__pb_node *n = draw_node(d, "", "Gemm", inputs, 1);
        if (turned) {
            make_attr_int(&d->c->m, n, "transB", 1);
        }
        return draw_try(d);
    }
    return draw_binary(d, "MatMul", x->name, w->name);
}

/* What stands between convolutions, on values that are integers underneath. */
static graphs_value *between(drawing *d, graphs_value *x, const graphs_value *before)
{
    static const char *const plain[] = {
        "Relu",      "Sigmoid",  "Tanh",        "LeakyRelu", "HardSwish",
        "Softmax",   "Abs",      "HardSigmoid", "Flatten",   "GlobalAveragePool",
        "Transpose", "Identity", "Neg",         "Elu",       "GlobalMaxPool"};
    int which = graphs_below(&d->rng, 24);
    char inputs[96];
    int rank = nori_tensor_rank(x->v[0]);
    if (which < 4) { /* a shortcut, or two values of one shape */
        return draw_binary(d, which < 3 ? "Add" : "Mul", x->name, before->name);
    }
    if (which < 6 && rank == 4) {
        return draw_pool(d, x);
    }
    if (which < 8) {
        snprintf(inputs, sizeof(inputs), "%s %s", x->name, before->name);
        make_attr_int(&d->c->m, draw_node(d, "", "Concat", inputs, 1), "axis", rank > 1 ? 1 : 0);
        return draw_try(d);
    }
    if (which == 8) {
        snprintf(inputs, sizeof(inputs), "%s %s %s", x->name, draw_scalar(d, NORI_FLOAT, 0),
                 draw_scalar(d, NORI_FLOAT, 6));
        draw_node(d, "", "Clip", inputs, 1);
        return draw_try(d);
    }
    draw_node(d, "", plain[which - 9], x->name, 1);
    return draw_try(d);
}

void draw_quantized_chain(drawing *d)
{
    nori_type t = graphs_chance(&d->rng, 50) ? NORI_UINT8 : NORI_INT8;
    graphs_value *x = draw_value(d, DRAW_FLOAT, 2, 4);
    double scale;
    x = x ? around(d, x, t, &scale) : NULL;
    graphs_value *before = x;
    for (int i = 0, n = 1 + graphs_below(&d->rng, 4); x && i < n; i++) {
        graphs_value *now = x;
        bool layer = i == 0 || graphs_chance(&d->rng, 45);
        x = !layer                           ? between(d, x, before)
            : nori_tensor_rank(x->v[0]) == 4 ? quantized_conv(d, x, scale)
            : nori_tensor_rank(x->v[0]) >= 2 ? quantized_product(d, x, scale)
                                             : NULL;
        x = x && layer && graphs_chance(&d->rng, 40) ? draw_unary(d, "Relu", x) : x;
        x = x ? around(d, x, t, &scale) : NULL;
        before = graphs_chance(&d->rng, 50) ? now : before;
    }
}

void draw_integer_product(drawing *d)
{
    graphs_value *x = draw_value(d, 1 << NORI_UINT8 | 1 << NORI_INT8, 2, 4);
    if (!x) {
        graphs_value *from = draw_value(d, DRAW_FLOAT, 2, 4);
        if (from) {
            draw_node(d, "", "DynamicQuantizeLinear", from->name, 3);
            x = draw_try(d);
        }
    }
    if (x) {
        int rank = nori_tensor_rank(x->v[0]);
        int64_t dims[2] = {nori_tensor_dims(x->v[0])[rank - 1], 1 + graphs_below(&d->rng, 12)};
        nori_type t = graphs_chance(&d->rng, 50) ? NORI_INT8 : NORI_UINT8;
        char inputs[96];
        size_t n = (size_t)snprintf(inputs, sizeof(inputs), "%s %s", x->name,
                                    draw_constant(d, t, 2, dims, -128, 255.9));
        if (graphs_chance(&d->rng, 50)) {
            snprintf(inputs + n, sizeof(inputs) - n, " %s %s",
                     draw_scalar(d, nori_tensor_type(x->v[0]), graphs_below(&d->rng, 100)),
                     draw_scalar(d, t, graphs_below(&d->rng, 100)));
        }
        draw_node(d, "", "MatMulInteger", inputs, 1);
        graphs_value *y = draw_try(d);
        if (y) {
            make_attr_int(&d->c->m, draw_node(d, "", "Cast", y->name, 1), "to", NORI_FLOAT);
            y = draw_try(d);
        }
        if (y) {
            draw_binary(d, "Mul", y->name, draw_scalar(d, NORI_FLOAT, 0.0009765625));
        }
    }
}

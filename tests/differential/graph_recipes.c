/* graph_recipes.c: chains of nodes as networks have them, so that what providers fuse, quantize and
 * lay out in another way is met: convolutions with what follows them, products, attention, norms,
 * quantized layers. A chain ends where a node of it would not run. */
#include "graphs.h"

/* ---- short words for chains ---- */

graphs_value *draw_unary(drawing *d, const char *op, const graphs_value *x)
{
    draw_node(d, "", op, x->name, 1);
    return draw_try(d);
}

graphs_value *draw_binary(drawing *d, const char *op, const char *a, const char *b)
{
    char inputs[64];
    snprintf(inputs, sizeof(inputs), "%s %s", a, b);
    draw_node(d, "", op, inputs, 1);
    return draw_try(d);
}

static graphs_value *activation(drawing *d, graphs_value *x)
{
    static const char *const ops[] = {"Relu",      "Sigmoid",     "Tanh",  "LeakyRelu",
                                      "HardSwish", "HardSigmoid", "Elu",   "Clip",
                                      "Silu",      "Gelu",        "PRelu", "Softplus"};
    const char *op = ops[graphs_below(&d->rng, NORI__COUNT(ops))];
    nori_type type = nori_tensor_type(x->v[0]);
    char inputs[96];
    if (strcmp(op, "Silu") == 0) {
        graphs_value *s = draw_unary(d, "Sigmoid", x);
        return s ? draw_binary(d, "Mul", x->name, s->name) : NULL;
    }
    if (strcmp(op, "Gelu") == 0) { /* by Erf, as exporters write it */
        graphs_value *a = draw_binary(d, "Div", x->name, draw_scalar(d, type, 1.4142135));
        a = a ? draw_unary(d, "Erf", a) : NULL;
        a = a ? draw_binary(d, "Add", a->name, draw_scalar(d, type, 1)) : NULL;
        a = a ? draw_binary(d, "Mul", x->name, a->name) : NULL;
        return a ? draw_binary(d, "Mul", a->name, draw_scalar(d, type, 0.5)) : NULL;
    }
    if (strcmp(op, "Clip") == 0) {
        snprintf(inputs, sizeof(inputs), "%s %s %s", x->name, draw_scalar(d, type, 0),
                 draw_scalar(d, type, 6));
        draw_node(d, "", "Clip", inputs, 1);
        return draw_try(d);
    }
    if (strcmp(op, "PRelu") == 0) {
        int64_t dims[3] = {nori_tensor_rank(x->v[0]) > 1 ? nori_tensor_dims(x->v[0])[1] : 1, 1, 1};
        int rank = nori_tensor_rank(x->v[0]) > 2 ? nori_tensor_rank(x->v[0]) - 1 : 1;
        dims[0] = rank == 1 ? 1 : dims[0];
        return rank <= 3
                   ? draw_binary(d, "PRelu", x->name, draw_constant(d, type, rank, dims, -1, 1))
                   : NULL;
    }
    return draw_unary(d, op, x);
}

void draw_pads(drawing *d, nori__pb_node *n, int spatial, int64_t most)
{
    int64_t v[8];
    for (int i = 0; i < 2 * spatial; i++) {
        v[i] = graphs_below(&d->rng, (int)most + 1);
    }
    if (graphs_chance(&d->rng, 60)) { /* alike on all sides */
        for (int i = 0; i < 2 * spatial; i++) {
            v[i] = v[0];
        }
    }
    make_attr_ints(&d->c->m, n, "pads", 2 * (size_t)spatial, v);
}

void draw_each(drawing *d, nori__pb_node *n, const char *name, int spatial, int64_t value)
{
    int64_t v[4] = {value, value, value, value};
    make_attr_ints(&d->c->m, n, name, (size_t)spatial, v);
}

/* ---- convolutions ---- */

static graphs_value *conv(drawing *d, const graphs_value *x)
{
    static const int64_t channels[] = {1, 2, 3, 4, 8, 16, 17, 24};
    const int64_t *in = nori_tensor_dims(x->v[0]);
    nori_type type = nori_tensor_type(x->v[0]);
    int rank = nori_tensor_rank(x->v[0]), spatial = rank - 2;
    bool depthwise = graphs_chance(&d->rng, 25), back = graphs_chance(&d->rng, 10);
    static const int64_t many[] = {16, 16, 24, 32, 33, 48};
    int64_t k = (int64_t[]){1, 3, 3, 2, 5}[graphs_below(&d->rng, 5)];
    int64_t out = depthwise ? in[1]
                  : d->wide ? many[graphs_below(&d->rng, NORI__COUNT(many))]
                            : channels[graphs_below(&d->rng, NORI__COUNT(channels))];
    k = nori_tensor_elements(x->v[0]) * out * k * k > 4000000 ? 1 : k;
    int64_t dims[5] = {out, depthwise ? 1 : in[1], k, k, k};
    char inputs[96];
    if (back) {
        dims[0] = in[1];
        dims[1] = depthwise ? 1 : out;
    }
    size_t n = (size_t)snprintf(inputs, sizeof(inputs), "%s %s", x->name,
                                draw_constant(d, type, rank, dims, -0.5, 0.5));
    if (graphs_chance(&d->rng, 60)) {
        snprintf(inputs + n, sizeof(inputs) - n, " %s", draw_constant(d, type, 1, &out, -1, 1));
    }
    nori__pb_node *node = draw_node(d, "", back ? "ConvTranspose" : "Conv", inputs, 1);
    if (graphs_chance(&d->rng, 80)) {
        draw_each(d, node, "kernel_shape", spatial, k);
    }
    if (depthwise) {
        make_attr_int(&d->c->m, node, "group", in[1]);
    }
    if (graphs_chance(&d->rng, 70)) {
        draw_pads(d, node, spatial, k / 2);
    } else if (graphs_chance(&d->rng, 50)) {
        make_attr_text(&d->c->m, node, "auto_pad",
                       graphs_chance(&d->rng, 50) ? "SAME_UPPER" : "SAME_LOWER");
    }
    if (graphs_chance(&d->rng, 30)) {
        draw_each(d, node, "strides", spatial, 2);
    }
    if (graphs_chance(&d->rng, 10)) {
        draw_each(d, node, "dilations", spatial, 2);
    }
    return draw_try(d);
}

static graphs_value *batch_norm(drawing *d, const graphs_value *x)
{
    char inputs[128];
    int64_t c = nori_tensor_dims(x->v[0])[1];
    nori_type t = nori_tensor_type(x->v[0]);
    snprintf(inputs, sizeof(inputs), "%s %s %s %s %s", x->name, draw_constant(d, t, 1, &c, 0.5, 2),
             draw_constant(d, t, 1, &c, -1, 1), draw_constant(d, t, 1, &c, -1, 1),
             draw_constant(d, t, 1, &c, 0.25, 2));
    draw_node(d, "", "BatchNormalization", inputs, 1);
    return draw_try(d);
}

graphs_value *draw_pool(drawing *d, const graphs_value *x)
{
    int spatial = nori_tensor_rank(x->v[0]) - 2;
    bool mean = graphs_chance(&d->rng, 50);
    if (graphs_chance(&d->rng, 25)) {
        return draw_unary(d, mean ? "GlobalAveragePool" : "GlobalMaxPool", x);
    }
    nori__pb_node *n = draw_node(d, "", mean ? "AveragePool" : "MaxPool", x->name, 1);
    draw_each(d, n, "kernel_shape", spatial, 2 + graphs_below(&d->rng, 2));
    draw_each(d, n, "strides", spatial, 1 + graphs_below(&d->rng, 2));
    if (graphs_chance(&d->rng, 50)) {
        draw_pads(d, n, spatial, 1);
    }
    if (d->opset >= 10 && graphs_chance(&d->rng, 30)) {
        make_attr_int(&d->c->m, n, "ceil_mode", 1);
    }
    if (mean && graphs_chance(&d->rng, 30)) {
        make_attr_int(&d->c->m, n, "count_include_pad", 1);
    }
    return draw_try(d);
}

static void conv_chain(drawing *d)
{
    graphs_value *x = draw_value(d, DRAW_FLOAT, 3, 5);
    for (int i = 0, n = 1 + graphs_below(&d->rng, 3); x && i < n; i++) {
        graphs_value *before = x;
        x = conv(d, x);
        if (x && graphs_chance(&d->rng, 30)) {
            x = batch_norm(d, x);
        }
        if (x && graphs_chance(&d->rng, 25)) { /* a shortcut */
            graphs_value *sum = draw_binary(d, "Add", x->name, before->name);
            x = sum ? sum : x;
        }
        if (x && graphs_chance(&d->rng, 60)) {
            x = activation(d, x);
        }
        if (x && graphs_chance(&d->rng, 20)) {
            x = draw_pool(d, x);
        }
    }
}

/* ---- products ---- */

static graphs_value *dense(drawing *d, const graphs_value *x, int64_t out)
{
    int rank = nori_tensor_rank(x->v[0]);
    nori_type t = nori_tensor_type(x->v[0]);
    int64_t k = nori_tensor_dims(x->v[0])[rank - 1], dims[2] = {k, out};
    if (rank == 2 && graphs_chance(&d->rng, 40)) {
        bool turned = graphs_chance(&d->rng, 50);
        char inputs[96];
        int64_t other[2] = {turned ? out : k, turned ? k : out};
        snprintf(inputs, sizeof(inputs), "%s %s %s", x->name,
                 draw_constant(d, t, 2, other, -0.5, 0.5), draw_constant(d, t, 1, &out, -1, 1));
        nori__pb_node *n = draw_node(d, "", "Gemm", inputs, 1);
        if (turned) {
            make_attr_int(&d->c->m, n, "transB", 1);
        }
        if (graphs_chance(&d->rng, 25)) {
            draw_attr_float(d, n, "alpha", 0.5);
            draw_attr_float(d, n, "beta", 2);
        }
        return draw_try(d);
    }
    graphs_value *y = draw_binary(d, "MatMul", x->name, draw_constant(d, t, 2, dims, -0.5, 0.5));
    return y && graphs_chance(&d->rng, 60)
               ? draw_binary(d, "Add", y->name, draw_constant(d, t, 1, &out, -1, 1))
               : y;
}

static graphs_value *last_mean(drawing *d, const graphs_value *x)
{
    int64_t last = -1;
    if (d->opset >= 18) {
        return draw_binary(d, "ReduceMean", x->name, draw_ints(d, 1, &last));
    }
    make_attr_ints(&d->c->m, draw_node(d, "", "ReduceMean", x->name, 1), "axes", 1, &last);
    return draw_try(d);
}

static graphs_value *normed(drawing *d, graphs_value *x)
{
    nori_type t = nori_tensor_type(x->v[0]);
    int rank = nori_tensor_rank(x->v[0]);
    int64_t n = nori_tensor_dims(x->v[0])[rank - 1];
    char inputs[96];
    if (graphs_chance(&d->rng, 50)) {
        snprintf(inputs, sizeof(inputs), "%s %s %s", x->name, draw_constant(d, t, 1, &n, 0.5, 2),
                 draw_constant(d, t, 1, &n, -1, 1));
        draw_node(d, "", "LayerNormalization", inputs, 1);
        return draw_try(d);
    }
    /* As operator sets before 17 have it. */
    graphs_value *mean = last_mean(d, x);
    graphs_value *off = mean ? draw_binary(d, "Sub", x->name, mean->name) : NULL;
    graphs_value *square = off ? draw_binary(d, "Pow", off->name, draw_scalar(d, t, 2)) : NULL;
    graphs_value *var = square ? last_mean(d, square) : NULL;
    var = var ? draw_binary(d, "Add", var->name, draw_scalar(d, t, 0.0625)) : NULL;
    var = var ? draw_unary(d, "Sqrt", var) : NULL;
    graphs_value *y = var ? draw_binary(d, "Div", off->name, var->name) : NULL;
    y = y ? draw_binary(d, "Mul", y->name, draw_constant(d, t, 1, &n, 0.5, 2)) : NULL;
    return y ? draw_binary(d, "Add", y->name, draw_constant(d, t, 1, &n, -1, 1)) : NULL;
}

static void dense_chain(drawing *d)
{
    graphs_value *x = draw_value(d, DRAW_FLOAT | 1 << NORI_FLOAT16 | 1 << NORI_DOUBLE, 2, 4);
    for (int i = 0, n = 1 + graphs_below(&d->rng, 3); x && i < n; i++) {
        x = dense(d, x, 1 + graphs_below(&d->rng, 20));
        x = x && graphs_chance(&d->rng, 50) ? activation(d, x) : x;
        x = x && graphs_chance(&d->rng, 25) ? normed(d, x) : x;
    }
}

static graphs_value *turned(drawing *d, const graphs_value *x, int64_t a, int64_t b, int64_t c,
                            int64_t e)
{
    nori__pb_node *n = draw_node(d, "", "Transpose", x->name, 1);
    make_attr_ints(&d->c->m, n, "perm", 4, (int64_t[]){a, b, c, e});
    return draw_try(d);
}

static graphs_value *shaped(drawing *d, const graphs_value *x, int count, const int64_t *dims)
{
    return draw_binary(d, "Reshape", x->name, draw_ints(d, count, dims));
}

/* softmax(q k' / scale + mask) v over heads. */
static void attention(drawing *d)
{
    graphs_value *x = draw_value(d, DRAW_FLOAT, 3, 3);
    if (!x) {
        x = draw_value(d, DRAW_FLOAT, 4, 4);
        x = x ? shaped(d, x, 3, (int64_t[]){0, 0, -1}) : NULL;
    }
    int64_t heads = 1 + graphs_below(&d->rng, 3), size = 2 + graphs_below(&d->rng, 5),
            wide = heads * size;
    graphs_value *q = x ? dense(d, x, wide) : NULL, *k = q ? dense(d, x, wide) : NULL,
                 *v = k ? dense(d, x, wide) : NULL;
    int64_t dims[4] = {0, 0, heads, size};
    q = v ? shaped(d, q, 4, dims) : NULL;
    k = q ? shaped(d, k, 4, dims) : NULL;
    v = k ? shaped(d, v, 4, dims) : NULL;
    q = v ? turned(d, q, 0, 2, 1, 3) : NULL;
    k = q ? turned(d, k, 0, 2, 3, 1) : NULL;
    v = k ? turned(d, v, 0, 2, 1, 3) : NULL;
    graphs_value *s = v ? draw_binary(d, "MatMul", q->name, k->name) : NULL;
    s = s ? draw_binary(d, graphs_chance(&d->rng, 50) ? "Div" : "Mul", s->name,
                        draw_scalar(d, NORI_FLOAT, 0.75))
          : NULL;
    if (s && graphs_chance(&d->rng, 50)) {
        int64_t mask[4] = {1, 1, nori_tensor_dims(s->v[0])[2], nori_tensor_dims(s->v[0])[3]};
        s = draw_binary(d, "Add", s->name, draw_constant(d, NORI_FLOAT, 4, mask, -4, 0));
    }
    if (s) {
        nori__pb_node *n = draw_node(d, "", "Softmax", s->name, 1);
        make_attr_int(&d->c->m, n, "axis", graphs_chance(&d->rng, 50) ? -1 : 3);
        s = draw_try(d);
    }
    s = s ? draw_binary(d, "MatMul", s->name, v->name) : NULL;
    s = s ? turned(d, s, 0, 2, 1, 3) : NULL;
    s = s ? shaped(d, s, 3, (int64_t[]){0, 0, wide}) : NULL;
    if (s && graphs_chance(&d->rng, 50)) {
        dense(d, s, nori_tensor_dims(x->v[0])[2]);
    }
}

/* ---- the rest ---- */

static void recurrent(drawing *d)
{
    graphs_value *x = draw_value(d, DRAW_FLOAT, 3, 3);
    int which = graphs_below(&d->rng, 3), gates = (int[]){4, 3, 1}[which];
    int64_t hidden = 1 + graphs_below(&d->rng, 6), dirs = 1 + graphs_below(&d->rng, 2);
    if (!x) {
        return;
    }
    int64_t w[3] = {dirs, gates * hidden, nori_tensor_dims(x->v[0])[2]},
            r[3] = {dirs, gates * hidden, hidden};
    char inputs[96];
    snprintf(inputs, sizeof(inputs), "%s %s %s", x->name,
             draw_constant(d, NORI_FLOAT, 3, w, -0.5, 0.5),
             draw_constant(d, NORI_FLOAT, 3, r, -0.5, 0.5));
    nori__pb_node *n =
        draw_node(d, "", (const char *const[]){"LSTM", "GRU", "RNN"}[which], inputs, 1);
    make_attr_int(&d->c->m, n, "hidden_size", hidden);
    make_attr_text(&d->c->m, n, "direction", dirs == 2 ? "bidirectional" : "forward");
    draw_try(d);
}

static void joined(drawing *d)
{
    graphs_value *x =
        draw_value(d, DRAW_FLOAT | 1 << NORI_INT64 | 1 << NORI_UINT8 | 1 << NORI_FLOAT16, 1, 4);
    if (!x) {
        return;
    }
    int rank = nori_tensor_rank(x->v[0]), axis = graphs_below(&d->rng, rank);
    int64_t dims[4] = {0};
    char inputs[96];
    memcpy(dims, nori_tensor_dims(x->v[0]), sizeof(*dims) * (size_t)rank);
    dims[axis] = 1 + graphs_below(&d->rng, 4);
    snprintf(inputs, sizeof(inputs), "%s %s", x->name,
             draw_constant(d, nori_tensor_type(x->v[0]), rank, dims, -2, 2));
    nori__pb_node *n = draw_node(d, "", "Concat", inputs, 1);
    make_attr_int(&d->c->m, n, "axis", graphs_chance(&d->rng, 50) ? axis : axis - rank);
    graphs_value *y = draw_try(d);
    int64_t length = y ? nori_tensor_dims(y->v[0])[axis] : 0;
    if (y && length > 1 && graphs_chance(&d->rng, 60)) {
        int64_t cut = 1 + graphs_below(&d->rng, (int)length - 1), parts[2] = {cut, length - cut};
        snprintf(inputs, sizeof(inputs), "%s %s", y->name, draw_ints(d, 2, parts));
        n = draw_node(d, "", "Split", d->opset >= 13 ? inputs : y->name, 2);
        make_attr_int(&d->c->m, n, "axis", axis);
        if (d->opset < 13) {
            make_attr_ints(&d->c->m, n, "split", 2, parts);
        }
        draw_try(d);
    }
}

static void larger(drawing *d)
{
    graphs_value *x = draw_value(d, DRAW_FLOAT, 4, 4);
    char inputs[96];
    int64_t four = 4, times = 1 + graphs_below(&d->rng, 2);
    if (!x || d->opset < 11) {
        return;
    }
    const char *s = draw_constant(d, NORI_FLOAT, 1, &four, 1, 1);
    graphs_value *known = graphs_find(d->all, (nori__str){s, strlen(s)});
    float *at = known ? nori_tensor_data(known->v[0]) : NULL;
    nori__pb_tensor *pb = &d->into->initializers.items[d->into->initializers.count - 1];
    if (!at) {
        return;
    }
    at[2] = at[3] = (float)(1 + times);
    pb->raw.p = nori__arena_copy(&d->c->m.arena, (const char *)at, sizeof(float) * 4);
    int64_t none = 0; /* before 13 roi must be there */
    snprintf(inputs, sizeof(inputs), "%s %s %s", x->name,
             d->opset < 13 ? draw_constant(d, NORI_FLOAT, 1, &none, 0, 0) : "-", s);
    nori__pb_node *n = draw_node(d, "", "Resize", inputs, 1);
    bool nearest = graphs_chance(&d->rng, 50);
    make_attr_text(&d->c->m, n, "mode", nearest ? "nearest" : "linear");
    make_attr_text(&d->c->m, n, "coordinate_transformation_mode",
                   (const char *const[]){"asymmetric", "half_pixel",
                                         "align_corners"}[graphs_below(&d->rng, 3)]);
    if (nearest) {
        make_attr_text(&d->c->m, n, "nearest_mode",
                       graphs_chance(&d->rng, 50) ? "floor" : "round_prefer_floor");
    }
    draw_try(d);
}

static void halves(drawing *d)
{
    graphs_value *x = draw_value(d, DRAW_FLOAT, 1, 4);
    if (x) {
        nori__pb_node *n = draw_node(d, "", "Cast", x->name, 1);
        make_attr_int(&d->c->m, n, "to", NORI_FLOAT16);
        x = draw_try(d);
    }
    if (x) {
        x = activation(d, x);
    }
    if (x && graphs_chance(&d->rng, 50)) {
        nori__pb_node *n = draw_node(d, "", "Cast", x->name, 1);
        make_attr_int(&d->c->m, n, "to", NORI_FLOAT);
        draw_try(d);
    }
}

static void any_activation(drawing *d)
{
    graphs_value *x = draw_value(d, DRAW_FLOAT, 0, 5);
    if (x) {
        activation(d, x);
    }
}

static void any_norm(drawing *d)
{
    graphs_value *x = draw_value(d, DRAW_FLOAT, 1, 4);
    if (x) {
        normed(d, x);
    }
}

void draw_recipe(drawing *d)
{
    static void (*const recipes[])(drawing *) = {
        conv_chain, conv_chain,           dense_chain, attention, draw_quantized_chain,
        joined,     draw_integer_product, recurrent,   larger,    halves,
        any_norm,   any_activation};
    recipes[graphs_below(&d->rng, NORI__COUNT(recipes))](d);
}

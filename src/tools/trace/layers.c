/* layers.c: layers as programs know them, over the one call for any operator. Forms are chosen for the
 * lowest operator set that has them. */
#include <math.h>

#include "tools/trace/tracer.h"

#define ONE(v) ((nori_traced *[]){(v)})

nori_traced *nori_layer_unary(nori_tracer *t, const char *op, nori_traced *x)
{
    return nori_traced_op(t, op, ONE(x), 1, NULL, 0);
}

nori_traced *nori_layer_binary(nori_tracer *t, const char *op, nori_traced *a, nori_traced *b)
{
    return nori_traced_op(t, op, (nori_traced *[]){a, b}, 2, NULL, 0);
}

/* Fails where a layer's input has another rank than it is for. 0 as rank: any but 0. */
static bool ranked(nori_tracer *t, const char *layer, const char *what, const nori_traced *v, int rank)
{
    if (!nori__tracer_goes(t)) {
        return false;
    }
    if (!v) {
        return nori__tracer_stop(t, NORI_ERROR_ARGUMENT, "%s: %s is absent", layer, what);
    }
    int got = nori_traced_rank(v);
    return got == rank || (rank == 0 && got > 0) ||
           nori__tracer_stop(t, NORI_ERROR_ARGUMENT, "%s: %s \"%s\" has rank %d, %s%d was expected", layer,
                             what, v->name, got, rank ? "" : "at least ", rank ? rank : 1);
}

nori_traced *nori_layer_transpose(nori_tracer *t, nori_traced *x, const int64_t *order, size_t rank)
{
    nori_attr a = nori_attr_ints("perm", order, rank);
    return nori_traced_op(t, "Transpose", ONE(x), 1, &a, 1);
}

/* A constant with its two axes exchanged is a constant of its own; else a node does it. */
static nori_traced *turned(nori_tracer *t, nori_traced *w)
{
    static const int64_t order[2] = {1, 0};
    const nori_tensor *x = w->tensor;
    size_t item = nori_type_bits((nori_type)x->type) / 8;
    int64_t rows = x->dims[0], columns = x->dims[1], dims[2] = {columns, rows};
    nori_tensor *y = NULL;
    if (w->depends || w->made || item == 0) {
        return nori_layer_transpose(t, w, order, 2);
    }
    if (nori__tensor_new(t->allocator, (nori_type)x->type, 2, dims, &y, NULL) != NORI_OK) {
        nori__tracer_stop(t, NORI_ERROR_MEMORY, "out of memory");
        return NULL;
    }
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            memcpy((char *)y->data + (size_t)(c * rows + r) * item,
                   (const char *)x->data + (size_t)(r * columns + c) * item, item);
        }
    }
    nori_traced *v = nori_traced_constant(t, w->name, y);
    nori_tensor_free(y);
    return v;
}

nori_traced *nori_layer_linear(nori_tracer *t, nori_traced *x, nori_traced *weight, nori_traced *bias)
{
    if (!ranked(t, "linear", "input", x, 0) || !ranked(t, "linear", "weight", weight, 2)) {
        return NULL;
    }
    if (nori_traced_rank(x) == 2) {
        nori_attr a = nori_attr_int("transB", 1);
        return nori_traced_op(t, "Gemm", (nori_traced *[]){x, weight, bias}, 3, &a, 1);
    }
    nori_traced *y = nori_layer_binary(t, "MatMul", x, turned(t, weight));
    return bias ? nori_layer_binary(t, "Add", y, bias) : y;
}

static size_t window_attrs(const nori_window *w, nori_window *own, nori_attr *attrs)
{
    size_t n = 0;
    *own = w ? *w : (nori_window){{0, 0}, {0, 0}, {0, 0, 0, 0}, {0, 0}, 0};
    for (int i = 0; i < 2; i++) {
        own->stride[i] = own->stride[i] ? own->stride[i] : 1;
        own->dilation[i] = own->dilation[i] ? own->dilation[i] : 1;
    }
    attrs[n++] = nori_attr_ints("strides", own->stride, 2);
    attrs[n++] = nori_attr_ints("pads", own->pad, 4);
    return n;
}

nori_traced *nori_layer_conv2d(nori_tracer *t, nori_traced *x, nori_traced *weight, nori_traced *bias,
                               const nori_window *window)
{
    nori_window own;
    nori_attr attrs[5];
    if (!ranked(t, "conv2d", "input", x, 4) || !ranked(t, "conv2d", "weight", weight, 4)) {
        return NULL;
    }
    size_t n = window_attrs(window, &own, attrs);
    memcpy(own.kernel, weight->tensor->dims + 2, sizeof(own.kernel));
    attrs[n++] = nori_attr_ints("kernel_shape", own.kernel, 2);
    attrs[n++] = nori_attr_ints("dilations", own.dilation, 2);
    attrs[n++] = nori_attr_int("group", own.groups ? own.groups : 1);
    return nori_traced_op(t, "Conv", (nori_traced *[]){x, weight, bias}, 3, attrs, n);
}

static nori_traced *pool(nori_tracer *t, const char *op, nori_traced *x, const nori_window *window)
{
    nori_window own;
    nori_attr attrs[3];
    if (!ranked(t, op, "input", x, 4)) {
        return NULL;
    }
    if (!window || window->kernel[0] < 1 || window->kernel[1] < 1) {
        nori__tracer_stop(t, NORI_ERROR_ARGUMENT, "%s: a window with a kernel of at least 1 was expected",
                          op);
        return NULL;
    }
    size_t n = window_attrs(window, &own, attrs);
    attrs[n++] = nori_attr_ints("kernel_shape", own.kernel, 2);
    return nori_traced_op(t, op, ONE(x), 1, attrs, n);
}

nori_traced *nori_layer_max_pool2d(nori_tracer *t, nori_traced *x, const nori_window *window)
{
    return pool(t, "MaxPool", x, window);
}

nori_traced *nori_layer_average_pool2d(nori_tracer *t, nori_traced *x, const nori_window *window)
{
    return pool(t, "AveragePool", x, window);
}

nori_traced *nori_layer_global_average_pool(nori_tracer *t, nori_traced *x)
{
    return nori_layer_unary(t, "GlobalAveragePool", x);
}

nori_traced *nori_layer_batch_norm(nori_tracer *t, nori_traced *x, nori_traced *scale, nori_traced *bias,
                                   nori_traced *mean, nori_traced *variance, float epsilon)
{
    nori_attr a = nori_attr_float("epsilon", epsilon);
    return nori_traced_op(t, "BatchNormalization", (nori_traced *[]){x, scale, bias, mean, variance}, 5, &a,
                          1);
}

nori_traced *nori_layer_layer_norm(nori_tracer *t, nori_traced *x, nori_traced *scale, nori_traced *bias,
                                   float epsilon)
{
    if (!ranked(t, "layer_norm", "scale", scale, 0)) {
        return NULL;
    }
    nori_attr attrs[2] = {nori_attr_float("epsilon", epsilon),
                          nori_attr_int("axis", -(int64_t)nori_traced_rank(scale))};
    return nori_traced_op(t, "LayerNormalization", (nori_traced *[]){x, scale, bias}, 3, attrs, 2);
}

/* Gates of PyTorch (input, forget, cell, output) in the order of ONNX (input, output, forget, cell), with
 * an axis for the direction in front. */
static nori_traced *gates(nori_tracer *t, const nori_traced *w, int64_t hidden)
{
    static const int from[4] = {0, 3, 1, 2};
    const nori_tensor *x = w->tensor;
    int64_t dims[3] = {1, x->dims[0], x->rank > 1 ? x->dims[1] : 0};
    nori_tensor *y = NULL;
    if (nori__tensor_new(t->allocator, (nori_type)x->type, x->rank + 1, dims, &y, NULL) != NORI_OK) {
        nori__tracer_stop(t, NORI_ERROR_MEMORY, "out of memory");
        return NULL;
    }
    size_t part = x->bytes / 4;
    for (size_t g = 0; g < 4 && hidden; g++) {
        memcpy((char *)y->data + g * part, (const char *)x->data + (size_t)from[g] * part, part);
    }
    nori_traced *v = nori_traced_constant(t, w->name, y);
    nori_tensor_free(y);
    return v;
}

static bool lstm_fits(nori_tracer *t, nori_traced *const *w, int64_t hidden)
{
    static const char *const names[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    for (int i = 0; i < 4; i++) {
        if (i >= 2 && !w[2] && !w[3]) {
            break;
        }
        if (!ranked(t, "lstm", names[i], w[i], i < 2 ? 2 : 1)) {
            return false;
        }
        if (w[i]->depends || w[i]->made || w[i]->tensor->dims[0] != 4 * hidden ||
            nori_type_bits((nori_type)w[i]->tensor->type) < 16) {
            return nori__tracer_stop(t, NORI_ERROR_ARGUMENT,
                                     "lstm: %s was expected to be a constant of floats with 4 x %lld rows",
                                     names[i], (long long)hidden);
        }
    }
    return true;
}

nori_traced *nori_layer_lstm(nori_tracer *t, nori_traced *x, nori_traced *weight_ih, nori_traced *weight_hh,
                             nori_traced *bias_ih, nori_traced *bias_hh)
{
    nori_traced *w[4] = {weight_ih, weight_hh, bias_ih, bias_hh}, *in[4] = {x, NULL, NULL, NULL};
    if (!ranked(t, "lstm", "input", x, 3) || !ranked(t, "lstm", "weight_hh", weight_hh, 2)) {
        return NULL;
    }
    int64_t hidden = weight_hh->tensor->dims[1];
    if (!lstm_fits(t, w, hidden)) {
        return NULL;
    }
    for (int i = 0; i < 2; i++) {
        in[i + 1] = gates(t, w[i], hidden);
    }
    if (bias_ih) {
        nori_traced *both[2] = {gates(t, bias_ih, hidden), gates(t, bias_hh, hidden)};
        in[3] = nori_layer_concat(t, both, 2, 1);
    }
    nori_attr a = nori_attr_int("hidden_size", hidden);
    nori_traced *y = nori_traced_op(t, "LSTM", in, 4, &a, 1);
    /* [steps, directions, batch, hidden] */
    static const int64_t flat[3] = {0, 0, -1}, order[4] = {0, 2, 1, 3};
    return nori_layer_reshape(t, nori_layer_transpose(t, y, order, 4), flat, 3);
}

/* [batch, steps, heads * size] to [batch, heads, steps, size], or with the last two exchanged. */
static nori_traced *split_heads(nori_tracer *t, nori_traced *x, int64_t heads, bool keys)
{
    static const int64_t plain[4] = {0, 2, 1, 3}, turn[4] = {0, 2, 3, 1};
    int64_t size = x->tensor->dims[2] / heads, dims[4] = {0, 0, heads, size};
    return nori_layer_transpose(t, nori_layer_reshape(t, x, dims, 4), keys ? turn : plain, 4);
}

nori_traced *nori_layer_attention(nori_tracer *t, nori_traced *q, nori_traced *k, nori_traced *v,
                                  nori_traced *mask, int64_t heads)
{
    static const int64_t order[4] = {0, 2, 1, 3};
    nori_traced *const all[3] = {q, k, v};
    for (int i = 0; i < 3; i++) {
        if (!ranked(t, "attention", i == 0 ? "q" : i == 1 ? "k" : "v", all[i], 3)) {
            return NULL;
        }
        if (heads < 1 || all[i]->tensor->dims[2] % heads) {
            nori__tracer_stop(t, NORI_ERROR_ARGUMENT, "attention: \"%s\" has %lld features, which are not "
                              "for %lld heads", all[i]->name, (long long)all[i]->tensor->dims[2],
                              (long long)heads);
            return NULL;
        }
    }
    int64_t size = q->tensor->dims[2] / heads, flat[3] = {0, 0, v->tensor->dims[2]};
    nori_traced *scores = nori_layer_binary(t, "MatMul", split_heads(t, q, heads, false),
                                            split_heads(t, k, heads, true));
    scores = nori_layer_binary(t, "Mul", scores, nori_traced_float(t, 1.0f / sqrtf((float)size)));
    scores = mask ? nori_layer_binary(t, "Add", scores, mask) : scores;
    nori_traced *y = nori_layer_binary(t, "MatMul", nori_layer_softmax(t, scores, -1),
                                       split_heads(t, v, heads, false));
    return nori_layer_reshape(t, nori_layer_transpose(t, y, order, 4), flat, 3);
}

nori_traced *nori_layer_embedding(nori_tracer *t, nori_traced *table, nori_traced *ids)
{
    return nori_layer_binary(t, "Gather", table, ids);
}

nori_traced *nori_layer_gelu(nori_tracer *t, nori_traced *x)
{
    nori_traced *e = nori_layer_unary(t, "Erf", nori_layer_binary(t, "Div", x,
                                                                 nori_traced_float(t, sqrtf(2.0f))));
    nori_traced *y = nori_layer_binary(t, "Mul", x, nori_layer_binary(t, "Add", e, nori_traced_float(t, 1)));
    return nori_layer_binary(t, "Mul", y, nori_traced_float(t, 0.5f));
}

nori_traced *nori_layer_leaky_relu(nori_tracer *t, nori_traced *x, float alpha)
{
    nori_attr a = nori_attr_float("alpha", alpha);
    return nori_traced_op(t, "LeakyRelu", ONE(x), 1, &a, 1);
}

nori_traced *nori_layer_softmax(nori_tracer *t, nori_traced *x, int64_t axis)
{
    nori_attr a = nori_attr_int("axis", axis);
    return nori_traced_op(t, "Softmax", ONE(x), 1, &a, 1);
}

nori_traced *nori_layer_reshape(nori_tracer *t, nori_traced *x, const int64_t *dims, size_t rank)
{
    return nori_layer_binary(t, "Reshape", x, nori_traced_ints(t, dims, rank));
}

nori_traced *nori_layer_flatten(nori_tracer *t, nori_traced *x, int64_t axis)
{
    nori_attr a = nori_attr_int("axis", axis);
    return nori_traced_op(t, "Flatten", ONE(x), 1, &a, 1);
}

nori_traced *nori_layer_concat(nori_tracer *t, nori_traced *const *parts, size_t count, int64_t axis)
{
    nori_attr a = nori_attr_int("axis", axis);
    return nori_traced_op(t, "Concat", parts, count, &a, 1);
}

nori_traced *nori_layer_slice(nori_tracer *t, nori_traced *x, int64_t axis, int64_t begin, int64_t end)
{
    nori_traced *in[4] = {x, nori_traced_ints(t, &begin, 1), nori_traced_ints(t, &end, 1),
                          nori_traced_ints(t, &axis, 1)};
    return nori_traced_op(t, "Slice", in, 4, NULL, 0);
}

nori_traced *nori_layer_mean(nori_tracer *t, nori_traced *x, int64_t axis)
{
    return nori_layer_binary(t, "ReduceMean", x, nori_traced_ints(t, &axis, 1));
}

nori_traced *nori_layer_size(nori_tracer *t, nori_traced *x, int64_t axis)
{
    nori_traced *shape = nori_layer_unary(t, "Shape", x);
    int64_t at = axis < 0 ? axis + nori_traced_rank(x) : axis;
    return nori_layer_binary(t, "Gather", shape, nori_traced_ints(t, &at, 1));
}

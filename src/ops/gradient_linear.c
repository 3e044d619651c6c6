/* gradient_linear.c: derivatives of products and convolutions, by products and convolutions. */
#include "ops/gradient.h"

typedef nori__value *value;

/* The last two axes swapped. */
static value swapped(nori__grad *d, value v, int rank)
{
    int64_t perm[NORI_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    }
    value out = nori__emit(d, "Transpose", v, NULL, NULL);
    nori__emit_attrs(d, "perm", perm, (size_t)rank);
    return out;
}

static value unsqueezed(nori__grad *d, value v, int64_t axis)
{
    return nori__emit(d, "Unsqueeze", v, nori__emit_ints(d, &axis, 1), NULL);
}

/* dA = g B', dB = A' g, summed over the batch axes that were broadcast. Vectors become matrices of
 * one row (A) or column (B) first, and the shapes of the inputs again in the end. */
void nori__grad_matmul(nori__grad *d, nori__node *n)
{
    value a = n->inputs[0], b = n->inputs[1], g = nori__grad_out(d, n, 0);
    int rank[2] = {a->type.rank, b->type.rank};
    if (rank[0] < 1 || rank[1] < 1) {
        nori__grad_refuse(d, n, "the rank of an input is not known");
        return;
    }
    if (rank[1] == 1) {
        b = unsqueezed(d, b, 1);
        g = unsqueezed(d, g, -1);
    }
    if (rank[0] == 1) {
        a = unsqueezed(d, a, 0);
        g = unsqueezed(d, g, -2);
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (!nori__grad_wants(d, n, i)) {
            continue;
        }
        int other = rank[1 - i] < 2 ? 2 : rank[1 - i], own = rank[i] < 2 ? 2 : rank[i];
        value out = i == 0 ? nori__emit(d, "MatMul", g, swapped(d, b, other), NULL)
                           : nori__emit(d, "MatMul", swapped(d, a, other), g, NULL);
        if (other > own) { /* batch axes this input does not have */
            int64_t axes[NORI_MAX_RANK];
            for (int k = 0; k < other - own; k++) {
                axes[k] = k;
            }
            out = nori__emit(d, "ReduceSum", out, nori__emit_ints(d, axes, other - own), NULL);
            nori__emit_attr(d, "keepdims", 0);
        }
        for (int k = 0; k < own - 2; k++) { /* batch axes of size 1 that were repeated */
            const nori__dim *mine = &n->inputs[i]->type.dims[k];
            int at = k + other - own;
            const nori__dim *its = at >= 0 && rank[1 - i] > 2 ? &n->inputs[1 - i]->type.dims[at] : NULL;
            if (its && (mine->value < 0 || its->value < 0) && !nori__dim_same(*mine, *its)) {
                nori__grad_refuse(d, n, "a batch size of an input is not known");
            } else if (its && mine->value == 1 && its->value != 1) {
                out = nori__emit(d, "ReduceSum", out, nori__emit_ints(d, (int64_t[]){k}, 1), NULL);
            }
        }
        nori__grad_give(d, n, i, rank[i] == 1 ? nori__emit_reshape(d, out, n->inputs[i]) : out);
    }
}

static value gemm(nori__grad *d, value a, value b, float alpha, bool turn_a, bool turn_b)
{
    value out = nori__emit(d, "Gemm", a, b, NULL);
    nori__emit_attr_float(d, "alpha", alpha);
    nori__emit_attr(d, "transA", turn_a);
    nori__emit_attr(d, "transB", turn_b);
    return out;
}

void nori__grad_gemm(nori__grad *d, nori__node *n)
{
    value a = n->inputs[0], b = n->inputs[1], g = nori__grad_out(d, n, 0);
    float alpha = nori__attr_f(n, "alpha", 1), beta = nori__attr_f(n, "beta", 1);
    bool turn_a = nori__attr_i(n, "transA", 0) != 0, turn_b = nori__attr_i(n, "transB", 0) != 0;
    if (nori__grad_wants(d, n, 0)) {
        nori__grad_give(d, n, 0, turn_a ? gemm(d, b, g, alpha, turn_b, true)
                                        : gemm(d, g, b, alpha, false, !turn_b));
    }
    if (nori__grad_wants(d, n, 1)) {
        nori__grad_give(d, n, 1, turn_b ? gemm(d, g, a, alpha, true, turn_a)
                                        : gemm(d, a, g, alpha, !turn_a, false));
    }
    if (nori__grad_wants(d, n, 2)) {
        value number = nori__emit_number(d, (double)beta, n->outputs[0]);
        value scaled = nori__emit(d, "Mul", g, number, NULL);
        nori__grad_give(d, n, 2,
                        nori__emit_sum_to(d, beta == 1 ? g : scaled, n->outputs[0], n->inputs[2]));
    }
}

/* ---- convolution ---- */

typedef struct conv {
    int axes;                 /* spatial ones */
    int64_t group, in_channels, out_channels;
    int64_t in[NORI_MAX_RANK], out[NORI_MAX_RANK], kernel[NORI_MAX_RANK];
    int64_t strides[NORI_MAX_RANK], dilations[NORI_MAX_RANK], pads[2 * NORI_MAX_RANK];
} conv;

static bool known_dims(const nori__value *v, int first, int count, int64_t *out)
{
    for (int i = 0; i < count; i++) {
        out[i] = v->type.rank == first + count ? v->type.dims[first + i].value : -1;
        if (out[i] < 1) {
            return false;
        }
    }
    return true;
}

static bool read_conv(const nori__node *n, conv *c)
{
    const nori__value *x = n->inputs[0], *w = n->inputs[1];
    size_t count;
    c->axes = x->type.rank - 2;
    if (c->axes < 1 || w->type.rank != x->type.rank || x->type.dims[1].value < 1 ||
        w->type.dims[0].value < 1 || !known_dims(x, 2, c->axes, c->in) ||
        !known_dims(w, 2, c->axes, c->kernel) ||
        !known_dims(n->outputs[0], 2, c->axes, c->out)) {
        return false;
    }
    c->in_channels = x->type.dims[1].value;
    c->out_channels = w->type.dims[0].value;
    c->group = nori__attr_i(n, "group", 1);
    const int64_t *strides = nori__attr_ints(n, "strides", &count);
    const int64_t *dilations = nori__attr_ints(n, "dilations", &count);
    const int64_t *pads = nori__attr_ints(n, "pads", &count);
    const char *same = nori__attr_s(n, "auto_pad", "NOTSET");
    for (int i = 0; i < c->axes; i++) {
        c->strides[i] = strides ? strides[i] : 1;
        c->dilations[i] = dilations ? dilations[i] : 1;
        int64_t covered = (c->kernel[i] - 1) * c->dilations[i] + 1;
        int64_t need = (c->out[i] - 1) * c->strides[i] + covered - c->in[i];
        need = need > 0 ? need : 0;
        if (nori__same(same, "NOTSET")) {
            c->pads[i] = pads ? pads[i] : 0;
            c->pads[i + c->axes] = pads ? pads[i + c->axes] : 0;
        } else if (nori__same(same, "VALID")) {
            c->pads[i] = c->pads[i + c->axes] = 0;
        } else {
            c->pads[i] = nori__same(same, "SAME_LOWER") ? need - need / 2 : need / 2;
            c->pads[i + c->axes] = need - c->pads[i];
        }
    }
    return c->group > 0 && c->in_channels % c->group == 0 && c->out_channels % c->group == 0;
}

static void attributes(nori__grad *d, const conv *c, const int64_t *strides,
                       const int64_t *dilations, const int64_t *pads)
{
    nori__emit_attrs(d, "strides", strides, (size_t)c->axes);
    nori__emit_attrs(d, "dilations", dilations, (size_t)c->axes);
    nori__emit_attrs(d, "pads", pads, 2 * (size_t)c->axes);
    nori__emit_attr(d, "group", c->group);
}

/* By the data: the transposed convolution; what its size falls short of is padded at the end. */
static value by_data(nori__grad *d, const conv *c, value g, value w)
{
    int64_t more[NORI_MAX_RANK];
    for (int i = 0; i < c->axes; i++) {
        int64_t covered = (c->kernel[i] - 1) * c->dilations[i] + 1;
        more[i] = c->in[i] - ((c->out[i] - 1) * c->strides[i] + covered - c->pads[i] -
                              c->pads[i + c->axes]);
    }
    value out = nori__emit(d, "ConvTranspose", g, w, NULL);
    attributes(d, c, c->strides, c->dilations, c->pads);
    nori__emit_attrs(d, "output_padding", more, (size_t)c->axes);
    return out;
}

static value reshaped(nori__grad *d, value v, const int64_t *dims, int rank)
{
    return nori__emit(d, "Reshape", v, nori__emit_ints(d, dims, rank), NULL);
}

static value permuted(nori__grad *d, value v, const int64_t *perm, int rank)
{
    value out = nori__emit(d, "Transpose", v, NULL, NULL);
    nori__emit_attrs(d, "perm", perm, (size_t)rank);
    return out;
}

/* v [N, G C, ...] to [C, G N, ...] (lead 2) or [G C, N, ...] (lead 1): batch and channels change
 * places within each group. */
static value regrouped(nori__grad *d, const conv *c, value v, int64_t channels, const int64_t *sizes,
                       int lead)
{
    int64_t dims[NORI_MAX_RANK + 1] = {0, c->group, channels / c->group};
    int64_t first[NORI_MAX_RANK + 1] = {2, 1, 0}, second[NORI_MAX_RANK + 1] = {1, 2, 0};
    for (int i = 0; i < c->axes; i++) {
        dims[3 + i] = sizes[i];
        first[3 + i] = second[3 + i] = 3 + i;
    }
    v = reshaped(d, v, dims, 3 + c->axes);
    v = permuted(d, v, lead == 2 ? first : second, 3 + c->axes);
    dims[0] = lead == 2 ? channels / c->group : channels;
    dims[1] = -1;
    for (int i = 0; i < c->axes; i++) {
        dims[2 + i] = sizes[i];
    }
    return reshaped(d, v, dims, 2 + c->axes);
}

/* By the weights: a convolution of the data with g, in which batch and channels change places, and
 * so do strides and dilations. It may run over by some places, which are cut off. */
static value by_weights(nori__grad *d, const conv *c, value g, value x)
{
    value data = regrouped(d, c, x, c->in_channels, c->in, 2);
    value kernel = regrouped(d, c, g, c->out_channels, c->out, 1);
    value out = nori__emit(d, "Conv", data, kernel, NULL);
    attributes(d, c, c->dilations, c->strides, c->pads);
    int64_t from[NORI_MAX_RANK] = {0}, axes[NORI_MAX_RANK], perm[NORI_MAX_RANK] = {1, 0};
    for (int i = 0; i < c->axes; i++) {
        axes[i] = perm[2 + i] = 2 + i;
    }
    value cut = nori__emit(d, "Slice", out, nori__emit_ints(d, from, c->axes),
                           nori__emit_ints(d, c->kernel, c->axes));
    value along = nori__emit_ints(d, axes, c->axes);
    if (d->status == NORI_OK && !nori__node_set_input(cut->producer, 3, along)) {
        d->status = nori__no_memory(d->err);
    }
    return permuted(d, cut, perm, 2 + c->axes);
}

void nori__grad_conv(nori__grad *d, nori__node *n)
{
    conv c = {0};
    value g = nori__grad_out(d, n, 0);
    if (n->inputs[0]->type.rank + 1 > NORI_MAX_RANK || !read_conv(n, &c)) {
        nori__grad_refuse(d, n, "channels and sizes of its inputs must be known; --dim fixes them");
        return;
    }
    if (nori__grad_wants(d, n, 0)) {
        nori__grad_give(d, n, 0, by_data(d, &c, g, n->inputs[1]));
    }
    if (nori__grad_wants(d, n, 1)) {
        nori__grad_give(d, n, 1, by_weights(d, &c, g, n->inputs[0]));
    }
    if (nori__grad_wants(d, n, 2)) {
        int64_t axes[NORI_MAX_RANK] = {0};
        for (int i = 0; i < c.axes; i++) {
            axes[1 + i] = 2 + i;
        }
        value sum = nori__emit(d, "ReduceSum", g, nori__emit_ints(d, axes, 1 + c.axes), NULL);
        nori__emit_attr(d, "keepdims", 0);
        nori__grad_give(d, n, 2, sum);
    }
}

/* op_conv.c: convolution and transposed convolution in one and two dimensions. Weights are packed
 * once, as kernels/conv.cl says. */
#include "ops/window.h"
#include "providers/gpu/gpu.h"

#define WIDE 8 /* output channels of a group from which on tiles of 64 are not mostly empty */

enum { BLOCKED, DEPTHWISE, TRANSPOSED, LIBRARY }; /* gpu_node.form */

/* Constant weights as two-dimensional ones. */
typedef struct weights {
    int64_t first, second, kh, kw; /* M, C / group or, transposed, C, M / group */
    int64_t groups;
} weights;

static bool read_weights(const nori__node *node, weights *w)
{
    const nori_tensor *t = nori__gpu_const(node, 1);
    if (!t || t->type != NORI_FLOAT || t->rank < 3 || t->rank > 4) {
        return false;
    }
    *w = (weights){.first = t->dims[0], .second = t->dims[1],
                   .kh = t->rank == 4 ? t->dims[2] : 1, .kw = t->dims[t->rank - 1],
                   .groups = nori__attr_i(node, "group", 1)};
    return w->groups > 0 && w->first % w->groups == 0;
}

static bool takes_conv(const gpu_ask *ask)
{
    weights w;
    if (!nori__gpu_fixed(ask, 1, "weights") || !nori__gpu_fixed(ask, 2, "bias")) {
        return false;
    }
    return read_weights(ask->node, &w) ||
           nori__gpu_no(ask, "it takes one or two spatial dimensions and float32 weights only");
}

/* [group][blocks of 4 of M / group][C / group * KH * KW][4]; per is M / group. */
static void pack_blocks(const float *from, int64_t groups, int64_t per, int64_t inner, float *to)
{
    int64_t blocks = (per + 3) / 4;
    for (int64_t g = 0; g < groups; g++) {
        for (int64_t m = 0; m < blocks * 4; m++) {
            float *place = to + (g * blocks + m / 4) * inner * 4 + m % 4;
            for (int64_t i = 0; i < inner; i++) {
                place[i * 4] = m < per ? from[(g * per + m) * inner + i] : 0;
            }
        }
    }
}

/* Packed by blocks, or as it is; stored as activations are, or as float for bias. */
static gpu_mem *packed(gpu_self *self, const nori_tensor *t, int64_t groups, int64_t per,
                       int64_t inner, bool blocks, bool bias, nori_error *err)
{
    int64_t room, padded = blocks ? (per + 3) / 4 * 4 : per;
    if (!nori__mul_dim(groups, padded, &room) || !nori__mul_dim(room, inner, &room)) {
        nori__no_memory(err);
        return NULL;
    }
    size_t count = (size_t)(groups * per * inner), size = (size_t)room;
    float *to = nori__alloc_zero(&nori__malloc, size * sizeof(*to));
    float *from = t ? nori__gpu_take_floats(t, count, err) : NULL;
    gpu_mem *mem = NULL;
    if (!to || (t && !from)) {
        nori__no_memory(err);
    } else {
        if (from && blocks) {
            pack_blocks(from, groups, per, inner, to);
        } else if (from) {
            memcpy(to, from, count * sizeof(*to));
        }
        mem = bias ? nori__gpu_floats(self, to, size, err) : nori__gpu_stored(self, to, size, err);
    }
    nori__gpu_give_floats(from, count);
    nori__gpu_give_floats(to, size);
    return mem;
}

/* The driver's library pads both ends alike. */
static bool for_library(const gpu_self *self, const nori__node *node, const weights *w)
{
    nori_error ignored = {0};
    nori__window win;
    int64_t kernel[2] = {w->kh, w->kw};
    int dims = nori__gpu_const(node, 1)->rank - 2;
    bool alike = self->convolutions &&
                 nori__window_read(node, &ignored, dims, kernel + 2 - dims, &win) == NORI_OK &&
                 (win.auto_pad == NORI__PAD_GIVEN || win.auto_pad == NORI__PAD_VALID);
    for (int d = 0; d < dims && alike; d++) {
        alike = win.auto_pad == NORI__PAD_VALID || (win.begin[d] == win.end[d] && win.begin[d] >= 0);
    }
    return alike;
}

/* As they are: filters, bias, and the factor 1 of channel_affine, which adds it. */
static nori_status pack_plain(gpu_self *self, gpu_node *n, const weights *w, nori_error *err)
{
    const nori_tensor *t = nori__gpu_const(n->node, 1), *bias = nori__gpu_const(n->node, 2);
    size_t size = (size_t)w->first;
    float *ones = nori__alloc(&nori__malloc, size * sizeof(*ones));
    if (!ones) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < size; i++) {
        ones[i] = 1;
    }
    n->packed[0] = packed(self, t, 1, w->first, t->count / w->first, false, false, err);
    n->packed[1] = packed(self, bias, 1, w->first, 1, false, true, err);
    n->packed[2] = nori__gpu_floats(self, ones, size, err);
    nori__gpu_give_floats(ones, size);
    return n->packed[0] && n->packed[1] && n->packed[2] ? NORI_OK : NORI_ERROR_MEMORY;
}

static nori_status pack(gpu_self *self, gpu_node *n, nori_error *err)
{
    weights w;
    const nori_tensor *t = nori__gpu_const(n->node, 1), *bias = nori__gpu_const(n->node, 2);
    bool transposed = nori__same(n->op->name, "ConvTranspose");
    if (!read_weights(n->node, &w)) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED, "weights of this form are not taken");
    }
    int64_t per = transposed ? w.second : w.first / w.groups;
    n->form = transposed ? TRANSPOSED : w.second == 1 && per == 1 ? DEPTHWISE : BLOCKED;
    if (t->count == 0 || (bias && bias->count != per * w.groups)) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED,
                          "weights are empty, or bias has not one number a channel");
    }
    if (n->form == BLOCKED && for_library(self, n->node, &w)) {
        n->form = LIBRARY;
        NORI__TRY(self->driver->program(self, GPU_IN_elementwise, err)); /* channel_affine */
        return pack_plain(self, n, &w, err);
    }
    bool blocks = n->form == BLOCKED;
    n->packed[0] = transposed ? packed(self, t, 1, w.first, t->count / w.first, false, false, err)
                              : packed(self, t, w.groups, per, w.second * w.kh * w.kw, blocks, false,
                                       err);
    n->packed[1] = packed(self, bias, w.groups, per, 1, blocks, true, err);
    return n->packed[0] && n->packed[1] ? NORI_OK : NORI_ERROR_MEMORY;
}

/* Strides, dilations and pads of two dimensions. */
typedef struct geometry {
    int64_t in[2], out[2], stride[2], dilation[2], pad[2];
} geometry;

static bool read_geometry(gpu_lower *l, const gpu_node *n, const weights *w, geometry *g)
{
    const gpu_shape *x = nori__gpu_in_shape(l, n, 0), *y = nori__gpu_out_shape(l, n, 0);
    nori__window win;
    int64_t kernel[2] = {w->kh, w->kw}, size;
    int dims = x->rank - 2, skip = 2 - dims;
    *g = (geometry){.in = {1, 1}, .out = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
    nori_status status = nori__window_read(n->node, nori__gpu_error(l), dims, kernel + skip, &win);
    for (int d = 0; d < dims && status == NORI_OK; d++) {
        int64_t in = x->dims[2 + d];
        status = n->form == TRANSPOSED
                     ? nori__window_out_transposed(&win, n->node, nori__gpu_error(l), d, in, &size)
                     : nori__window_out(&win, nori__gpu_error(l), d, in, &size);
        g->in[skip + d] = in;
        g->out[skip + d] = y->dims[2 + d];
        g->stride[skip + d] = win.stride[d];
        g->dilation[skip + d] = win.dilation[d];
        g->pad[skip + d] = win.begin[d];
    }
    if (status != NORI_OK) {
        nori__gpu_fail(l, status);
    }
    return status == NORI_OK;
}

static bool is_pointwise(const weights *w, const geometry *g)
{
    return w->kh == 1 && w->kw == 1 && g->stride[0] == 1 && g->stride[1] == 1 && g->pad[0] == 0 &&
           g->pad[1] == 0 && g->in[0] == g->out[0] && g->in[1] == g->out[1];
}

/* Filters and bias of a layout, for own kernels where the library has none for these sizes. */
static gpu_mem *blocks_of(gpu_lower *l, const nori_tensor *t, int64_t groups, int64_t per, int64_t inner)
{
    size_t count = (size_t)(groups * per * inner);
    size_t size = (size_t)(groups * ((per + 3) / 4 * 4) * inner);
    float *to = nori__gpu_host_room(l, size, sizeof(*to));
    float *from = to && t ? nori__gpu_take_floats(t, count, nori__gpu_error(l)) : NULL;
    if (from) {
        pack_blocks(from, groups, per, inner, to);
        nori__gpu_give_floats(from, count);
    } else if (to && t) {
        nori__gpu_fail(l, NORI_ERROR_MEMORY);
    }
    return to ? nori__gpu_weights(l, to, size) : NULL;
}

/* By the driver's library; false: not for these sizes. */
static bool by_library(gpu_lower *l, const gpu_node *n, const weights *w, const geometry *g)
{
    gpu_convolution c = {.batch = nori__gpu_in_shape(l, n, 0)->dims[0], .groups = w->groups,
                         .in = w->second, .out = w->first / w->groups, .kernel = {w->kh, w->kw},
                         .x = nori__gpu_in(l, n, 0), .w = n->packed[0], .y = nori__gpu_out(l, n, 0)};
    for (int d = 0; d < 2; d++) {
        int64_t reach = (c.kernel[d] - 1) * g->dilation[d] + 1;
        c.size[d] = g->in[d];
        c.made[d] = g->out[d];
        c.stride[d] = g->stride[d];
        c.dilation[d] = g->dilation[d];
        c.pad[d] = g->pad[d];
        if ((g->in[d] + 2 * g->pad[d] - reach) / g->stride[d] + 1 != g->out[d]) {
            return false;
        }
    }
    if (!nori__gpu_by_library(l, NULL, &c)) {
        return false;
    }
    int64_t count = nori__gpu_out_shape(l, n, 0)->count;
    if (nori__gpu_has(n->node, 2) || n->then.kind != UNARY_Identity) {
        nori__gpu_kernel(l, GPU_IN_elementwise, "channel_affine");
        nori__gpu_mem(l, c.y);
        nori__gpu_mem(l, n->packed[2]);
        nori__gpu_mem(l, n->packed[1]);
        nori__gpu_mem(l, c.y);
        nori__gpu_int(l, count);
        nori__gpu_int(l, w->first);
        nori__gpu_int(l, g->out[0] * g->out[1]);
        nori__gpu_fused(l, n);
        nori__gpu_items(l, count, 1, 1);
    }
    return true;
}

static void lower_conv(gpu_lower *l, const gpu_node *n)
{
    weights w;
    geometry g;
    if (!read_weights(n->node, &w) || !read_geometry(l, n, &w, &g)) {
        nori__gpu_fail(l, NORI_ERROR_INTERNAL);
        return;
    }
    if (n->form == LIBRARY && by_library(l, n, &w, &g)) {
        return;
    }
    bool transposed = n->form == TRANSPOSED, blocked = n->form == BLOCKED || n->form == LIBRARY;
    bool tiles = blocked && nori__gpu_tiles(l) && w.first / w.groups >= WIDE;
    bool point = blocked && !tiles && is_pointwise(&w, &g);
    int64_t batch = nori__gpu_in_shape(l, n, 0)->dims[0];
    int64_t inner = transposed ? w.first / w.groups : w.second;
    int64_t per = transposed ? w.second : w.first / w.groups, blocks = (per + 3) / 4;
    int64_t units = batch * w.groups, columns = (g.out[1] + 3) / 4;
    gpu_mem *filters = n->packed[0], *bias = n->packed[1];
    if (n->form == LIBRARY) {
        filters = blocks_of(l, nori__gpu_const(n->node, 1), w.groups, per, w.second * w.kh * w.kw);
        bias = blocks_of(l, nori__gpu_const(n->node, 2), w.groups, per, 1);
    }
    nori__gpu_kernel(l, GPU_IN_conv, transposed               ? "conv_transposed"
                                     : n->form == DEPTHWISE ? "conv_depthwise"
                                     : tiles                ? "conv_tiles"
                                     : point                ? "conv_pointwise"
                                                            : "conv_direct");
    nori__gpu_mem(l, nori__gpu_in(l, n, 0));
    nori__gpu_mem(l, filters);
    nori__gpu_mem(l, bias);
    nori__gpu_mem(l, nori__gpu_out(l, n, 0));
    nori__gpu_int4(l, inner, g.in[0], g.in[1], w.groups);
    nori__gpu_int4(l, per, g.out[0], g.out[1], batch);
    if (!point) {
        nori__gpu_int4(l, w.kh, w.kw, g.stride[0], g.stride[1]);
        nori__gpu_int4(l, g.dilation[0], g.dilation[1], g.pad[0], g.pad[1]);
    }
    nori__gpu_fused(l, n);
    if (tiles) {
        nori__gpu_groups(l, (g.out[0] * g.out[1] + 63) / 64, (per + 63) / 64, units, 256);
    } else if (point) {
        nori__gpu_items(l, (g.in[0] * g.in[1] + 3) / 4, blocks, units);
    } else if (transposed) {
        nori__gpu_items(l, g.out[1], g.out[0], units * per);
    } else {
        nori__gpu_items(l, columns, g.out[0], n->form == DEPTHWISE ? units : units * blocks);
    }
}

const gpu_op nori__gpu_conv_ops[] = {
    {"Conv", GPU_IN_conv, true, 0, takes_conv, pack, lower_conv},
    {"ConvTranspose", GPU_IN_conv, true, 0, takes_conv, pack, lower_conv},
    {0},
};

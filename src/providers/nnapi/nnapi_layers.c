/* nnapi_layers.c: convolutions, products and sums of bytes.
 *
 * Weights with one scale have the activations' type, whatever the file has: a byte with its sign bit
 * turned and a zero point 128 further stands for the same. With a scale a channel they are int8 of
 * zero point 0, for either type; of products, which NNAPI has with one scale only, such a one is a
 * convolution of a 1 x 1 window. The bias counts in steps of input scale times weight scale. */
#include <math.h>

#include "providers/nnapi/nnapi_bytes.h"

static int64_t outputs_of(const na_layer *l)
{
    return l->weight->dims[l->rows && !l->turned ? 1 : 0];
}

static float scale_at(const na_layer *l, int64_t i)
{
    return l->factor * ((const float *)l->scale->data)[l->scale->count == 1 ? 0 : i];
}

/* As if weights were int8. */
static int32_t zero_at(const na_layer *l, int64_t i)
{
    int32_t z = l->zero ? (int32_t)nori__tensor_get_i64(l->zero, l->zero->count == 1 ? 0 : i) : 0;
    return z - (l->weight->type == NORI_UINT8 ? 128 : 0);
}

/* Whether one scale and zero point hold for all; middle: whether all zero points are 0 of int8. */
static bool uniform(const na_layer *l, bool *middle)
{
    bool same = true;
    *middle = true;
    for (int64_t i = 0; i < outputs_of(l); i++) {
        same = same && scale_at(l, i) == scale_at(l, 0) && zero_at(l, i) == zero_at(l, 0);
        *middle = *middle && zero_at(l, i) == 0;
    }
    return same;
}

static const char *shapes_fit(const na_self *self, const nori__node *n, const na_layer *l)
{
    const nori__value *x = n->inputs[0];
    if (!l->rows) {
        return nori__na_conv_fits(self, n, l->weight, NULL);
    }
    int depth = l->turned ? 1 : 0;
    return l->weight->rank != 2 || x->type.rank < 2 ||
                   x->type.dims[x->type.rank - 1].value != l->weight->dims[depth]
               ? "it is no product with a constant matrix"
               : NULL;
}

const char *nori__na_layer_fits(const na_self *self, const nori__node *n, const na_layer *l)
{
    bool middle;
    if (!l->weight || (l->weight->type != NORI_INT8 && l->weight->type != NORI_UINT8) ||
        l->weight->count == 0 || !l->scale || l->scale->type != NORI_FLOAT ||
        (l->rows ? l->weight->rank != 2 : l->weight->rank < 3 || l->weight->rank > 4)) {
        return "its weights are no 8-bit constants";
    }
    int64_t made = outputs_of(l);
    if ((l->scale->count != 1 && l->scale->count != made) ||
        (l->zero && (l->zero->type != l->weight->type ||
                     (l->zero->count != 1 && l->zero->count != made)))) {
        return "its scales are neither one nor one a channel";
    }
    if (l->bias && (l->bias->count != made ||
                    (l->bias->type != NORI_INT32 && l->bias->type != NORI_FLOAT))) {
        return "its bias does not fit";
    }
    for (int64_t i = 0; i < made; i++) {
        if (!isnormal(scale_at(l, i)) || !(scale_at(l, i) > 0) ||
            !isnormal(l->x.scale * scale_at(l, i))) {
            return "a scale of its weights is not above 0, or too small";
        }
    }
    if (l->x.type != l->y.type) {
        return "NNAPI gives bytes of the type that went in";
    }
    if (!uniform(l, &middle) && !(middle && self->level >= 29)) {
        return middle ? "NNAPI has scales a channel from feature level 29 on"
                      : "NNAPI has scales a channel only for weights of zero point 0";
    }
    if (self->level < 29 && !(l->y.scale > l->x.scale * scale_at(l, 0))) {
        return "before feature level 29 the output's scale must be above that of the product";
    }
    return shapes_fit(self, n, l);
}

/* ---- making ---- */

/* [units][inputs], or [out][in][h][w] turned to NNAPI's order; bytes are turned by flip. */
static void order_weights(const na_layer *l, bool depthwise, uint8_t flip, uint8_t *room)
{
    const nori_tensor *t = l->weight;
    const uint8_t *from = t->data;
    if (l->rows) {
        int64_t units = outputs_of(l), depth = t->count / units;
        for (int64_t u = 0; u < units; u++) {
            for (int64_t i = 0; i < depth; i++) {
                room[u * depth + i] = from[l->turned ? u * depth + i : i * units + u] ^ flip;
            }
        }
        return;
    }
    int64_t out = t->dims[0], in = t->dims[1], taps = t->count / out / in;
    for (int64_t o = 0; o < out; o++) {
        for (int64_t i = 0; i < in; i++) {
            for (int64_t k = 0; k < taps; k++) {
                room[depthwise ? k * out + o : (o * taps + k) * in + i] = *from++ ^ flip;
            }
        }
    }
}

static uint32_t add_weights(na_part *p, const na_layer *l, bool depthwise, bool channels)
{
    const nori_tensor *t = l->weight;
    int64_t made = outputs_of(l);
    bool is_signed = channels || l->x.type == NORI_INT8;
    uint8_t *room = nori__na_bytes_room(p, t->count, 1);
    float *scales = nori__na_room(p, made);
    na_shape s = {.rank = 4, .d = {made, 1, 1, t->count / made}, .count = t->count};
    if (!room || !scales) {
        return NA_NONE;
    }
    if (l->rows && !channels) {
        s = (na_shape){.rank = 2, .d = {made, t->count / made}, .count = t->count};
    } else if (!l->rows) {
        const int64_t d[4] = {depthwise ? 1 : made, t->rank == 4 ? t->dims[2] : 1, t->dims[t->rank - 1],
                              depthwise ? made : t->dims[1]};
        memcpy(s.d, d, sizeof(d));
    }
    order_weights(l, depthwise, (t->type == NORI_INT8) != is_signed ? 0x80 : 0, room);
    na_type type = {.type = channels    ? NA_TENSOR_PER_CHANNEL
                            : is_signed ? NA_TENSOR_INT8
                                        : NA_TENSOR_UINT8};
    if (!channels) {
        type.scale = scale_at(l, 0);
        type.zero_point = zero_at(l, 0) + (is_signed ? 0 : 128);
        return nori__na_constant_of(p, &type, &s, NULL, room, (size_t)t->count);
    }
    for (int64_t i = 0; i < made; i++) {
        scales[i] = scale_at(l, i);
    }
    na_channels c = {.dim = depthwise ? 3 : 0, .count = (uint32_t)made, .scales = scales};
    return nori__na_constant_of(p, &type, &s, &c, room, (size_t)t->count);
}

static uint32_t add_bias(na_part *p, const na_layer *l, bool channels)
{
    int64_t made = outputs_of(l);
    na_shape s = {.rank = 1, .d = {made}, .count = made};
    int32_t *room = nori__na_bytes_room(p, made, sizeof(*room));
    na_type type = {.type = NA_TENSOR_INT32, .scale = channels ? 0 : l->x.scale * scale_at(l, 0)};
    for (int64_t i = 0; room && l->bias && i < made; i++) {
        if (l->bias->type == NORI_INT32) {
            room[i] = ((const int32_t *)l->bias->data)[i];
        } else {
            double q = nearbyint((double)((const float *)l->bias->data)[i] /
                                 ((double)l->x.scale * (double)scale_at(l, i)));
            room[i] = q >= INT32_MAX ? INT32_MAX : q <= INT32_MIN ? INT32_MIN : (int32_t)q;
        }
    }
    return room ? nori__na_constant_of(p, &type, &s, NULL, room, (size_t)made * sizeof(*room)) : NA_NONE;
}

/* A product with a scale a channel: x as rows of pictures of one point. */
static void add_points(na_part *p, uint32_t in, uint32_t out, const na_layer *l, const uint32_t *weights)
{
    int64_t units = outputs_of(l), depth = l->weight->count / units;
    na_shape x = nori__na_shape(p, in, NA_PLAIN), y = nori__na_shape(p, out, NA_PLAIN);
    na_shape rows = {.rank = 4, .d = {x.count / depth, 1, 1, depth}, .count = x.count};
    na_shape made = {.rank = 4, .d = {x.count / depth, 1, 1, units}, .count = y.count};
    const int64_t four[] = {4}, rank[] = {y.rank};
    uint32_t first[2] = {nori__na_want(p, in, NA_PLAIN), nori__na_ints(p, rows.d, 1, four)};
    uint32_t conv[10] = {nori__na_operand_like(p, in, &rows), weights[1], weights[2]};
    nori__na_op(p, NA_RESHAPE, first, 2, conv[0]);
    for (int i = 3; i < 7; i++) {
        conv[i] = nori__na_int(p, 0);
    }
    conv[7] = conv[8] = nori__na_int(p, 1);
    conv[9] = nori__na_int(p, l->fused);
    uint32_t last[2] = {nori__na_operand_like(p, out, &made), nori__na_ints(p, y.d, 1, rank)};
    nori__na_op(p, NA_CONV_2D, conv, 10, last[0]);
    nori__na_op(p, NA_RESHAPE, last, 2, nori__na_make(p, out, NA_PLAIN));
}

void nori__na_add_layer(na_part *p, const nori__node *n, uint32_t in, uint32_t out, const na_layer *l)
{
    bool middle, channels = !uniform(l, &middle);
    bool depthwise = !l->rows && nori__na_depthwise(n, l->weight);
    uint32_t ops[4] = {NA_NONE, add_weights(p, l, depthwise, channels), add_bias(p, l, channels)};
    if (l->rows && channels) {
        add_points(p, in, out, l, ops);
        return;
    }
    if (l->rows) {
        ops[0] = nori__na_want(p, in, NA_PLAIN);
        ops[3] = nori__na_int(p, l->fused);
        nori__na_add_connected(p, ops, outputs_of(l), out);
        return;
    }
    ops[0] = nori__na_picture(p, in);
    uint32_t picture = nori__na_make_picture(p, out);
    nori__na_add_conv(p, n, l->weight, ops, l->fused, picture);
    nori__na_picture_made(p, out, picture);
}

/* ---- two operands ---- */

const char *nori__na_binary8_fits(const na_self *self, int32_t code, const na_quant *a,
                                  const na_quant *b, const na_quant *y)
{
    if (a->type != y->type || b->type != y->type) {
        return "NNAPI has operands and result of one type";
    }
    if (code == NA_SUB && self->level < 29) {
        return "NNAPI has differences of bytes from feature level 29 on";
    }
    return code == NA_MUL && !(y->scale > a->scale * b->scale)
               ? "the scale of a product must be above the product of the scales"
               : NULL;
}

void nori__na_add_binary8(na_part *p, int32_t code, const uint32_t *in, uint32_t out, int fused)
{
    int rank = nori__na_shape(p, out, NA_PLAIN).rank, form = nori__na_binary_form(p, in, rank);
    for (int i = 0; i < 2; i++) { /* lined up at the end, which channels last would move */
        na_shape s = nori__na_shape(p, in[i], NA_PLAIN);
        form = s.rank < rank && s.count > 1 ? NA_PLAIN : form;
    }
    uint32_t ops[3] = {nori__na_want(p, in[0], form), nori__na_want(p, in[1], form),
                       nori__na_int(p, fused)};
    nori__na_op(p, code, ops, 3, nori__na_make(p, out, form));
}

bool nori__na_fixed_meaning(const na_self *self, int32_t code, const na_quant *y)
{
    int32_t low = y->type == NORI_UINT8 ? 0 : -128;
    return code == NA_TANH ? self->level >= 29 && y->scale == 0x1p-7f && y->zero == low + 128
                           : y->scale == 0x1p-8f && y->zero == low;
}

/* nnapi_window.c: what slides a window over pictures or lines: convolutions and pools. */
#include "ops/window.h"
#include "providers/nnapi/nnapi.h"

/* ---- geometry ---- */

static const char no_picture[] = "NNAPI has one or two spatial dimensions";

/* A window over a line as one over a picture of height 1. */
static void lay_down(nori__window *w)
{
    int64_t *const of[] = {w->kernel, w->stride, w->dilation, w->begin, w->end};
    for (size_t i = 0; i < NORI__COUNT(of); i++) {
        of[i][1] = of[i][0];
        of[i][0] = i < 3 ? 1 : 0;
    }
    w->n = 2;
}

/* NULL: read, with pads of SAME_* filled in; of two dimensions. */
static const char *read_window(const nori__node *n, const nori_tensor *weight, nori__window *w)
{
    const nori__value *x = n->inputs[0];
    nori_error ignored = {0};
    int spatial = x->type.rank - 2;
    if (spatial < 1 || spatial > 2) {
        return no_picture;
    }
    if (nori__window_read(n, NULL, spatial, weight ? weight->dims + 2 : NULL, w) != NORI_OK) {
        return "its window cannot be read";
    }
    for (int d = 0; d < spatial; d++) {
        int64_t out;
        if (nori__window_out(w, &ignored, d, x->type.dims[d + 2].value, &out) != NORI_OK || out < 1) {
            return "its window does not fit its input";
        }
        if (w->begin[d] < 0 || w->end[d] < 0) {
            return "it has pads below 0";
        }
    }
    if (spatial == 1) {
        lay_down(w);
    }
    return NULL;
}

/* [N,1,L,C] of a line [N,C,L]. */
static na_shape line_shape(const na_part *p, uint32_t value)
{
    na_shape s = nori__na_shape(p, value, NA_PLAIN);
    return (na_shape){.rank = 4, .d = {s.d[0], 1, s.d[2], s.d[1]}, .count = s.count};
}

static bool is_line(const na_part *p, uint32_t value)
{
    return nori__na_shape(p, value, NA_PLAIN).rank == 3;
}

static void reshape(na_part *p, uint32_t from, const na_shape *s, uint32_t to)
{
    const int64_t rank[] = {s->rank};
    uint32_t in[2] = {from, nori__na_ints(p, s->d, 1, rank)};
    nori__na_op(p, NA_RESHAPE, in, 2, to);
}

uint32_t nori__na_picture(na_part *p, uint32_t value)
{
    uint32_t x = nori__na_want(p, value, NA_LAST);
    if (!is_line(p, value)) {
        return x;
    }
    na_shape s = line_shape(p, value);
    uint32_t picture = nori__na_operand_like(p, value, &s);
    reshape(p, x, &s, picture);
    return picture;
}

uint32_t nori__na_make_picture(na_part *p, uint32_t value)
{
    na_shape s = line_shape(p, value);
    return is_line(p, value) ? nori__na_operand_like(p, value, &s) : nori__na_make(p, value, NA_LAST);
}

void nori__na_picture_made(na_part *p, uint32_t value, uint32_t picture)
{
    if (is_line(p, value)) {
        na_shape s = nori__na_shape(p, value, NA_LAST);
        uint32_t line = nori__na_make(p, value, NA_LAST);
        reshape(p, picture, &s, line);
    }
}

/* left, right, top, bottom */
static uint32_t add_pads(na_part *p, const nori__window *w, uint32_t *in)
{
    in[0] = nori__na_int(p, w->begin[1]);
    in[1] = nori__na_int(p, w->end[1]);
    in[2] = nori__na_int(p, w->begin[0]);
    in[3] = nori__na_int(p, w->end[0]);
    in[4] = nori__na_int(p, w->stride[1]);
    in[5] = nori__na_int(p, w->stride[0]);
    return 6;
}

/* ---- convolutions ---- */

bool nori__na_depthwise(const nori__node *n, const nori_tensor *weight)
{
    int64_t groups = nori__attr_i(n, "group", 1);
    return groups > 1 && groups == n->inputs[0]->type.dims[1].value && weight->dims[1] == 1;
}

const char *nori__na_conv_fits(const na_self *self, const nori__node *n, const nori_tensor *weight,
                               const nori_tensor *bias)
{
    nori__window w;
    int64_t groups = nori__attr_i(n, "group", 1);
    const char *why = read_window(n, weight, &w);
    if (why) {
        return why;
    }
    const nori__type *x = &n->inputs[0]->type;
    if (groups < 1 || weight->rank != x->rank || weight->dims[1] * groups != x->dims[1].value ||
        weight->dims[0] % groups != 0 || (bias && bias->count != weight->dims[0])) {
        return "its groups and weights do not fit";
    }
    bool grouped = groups > 1 && !nori__na_depthwise(n, weight);
    bool dilated = w.dilation[0] > 1 || w.dilation[1] > 1;
    if (grouped && dilated) {
        return "NNAPI dilates no convolution of groups";
    }
    return (grouped || dilated) && self->level < 29
               ? "NNAPI has groups and dilation from feature level 29 on"
               : NULL;
}

const char *nori__na_claim_conv(const na_self *self, const nori__node *n)
{
    const nori_tensor *weight = nori__na_weights(n, 1), *bias = nori__na_weights(n, 2);
    if (!weight || weight->rank != n->inputs[0]->type.rank || (nori__na_in(n, 2) && !bias)) {
        return "its weights are not constant floats";
    }
    return nori__na_conv_fits(self, n, weight, bias);
}

/* [out][in][h][w] to [out][h][w][in], of depthwise ones [out][1][h][w] to [1][h][w][out]. */
static uint32_t add_filter(na_part *p, const nori_tensor *t, bool depthwise)
{
    int64_t out = t->dims[0], in = t->dims[1], taps = t->count / out / in;
    int64_t width = t->dims[t->rank - 1];
    na_shape s = {.rank = 4, .d = {out, taps / width, width, in}, .count = t->count};
    float *room = nori__na_room(p, t->count);
    const float *from = t->data;
    if (!room) {
        return NA_NONE;
    }
    if (depthwise) {
        s.d[0] = 1;
        s.d[3] = out;
    }
    for (int64_t o = 0; o < out; o++) {
        for (int64_t i = 0; i < in; i++) {
            for (int64_t k = 0; k < taps; k++) {
                room[depthwise ? k * out + o : (o * taps + k) * in + i] = *from++;
            }
        }
    }
    return nori__na_constant(p, &s, room);
}

static uint32_t add_bias(na_part *p, const nori_tensor *bias, int64_t count)
{
    na_shape s = {.rank = 1, .d = {count}, .count = count};
    float *room = nori__na_room(p, count);
    if (room && bias) {
        memcpy(room, bias->data, (size_t)count * sizeof(*room));
    }
    return room ? nori__na_constant(p, &s, room) : NA_NONE;
}

void nori__na_add_conv(na_part *p, const nori__node *node, const nori_tensor *weight,
                       const uint32_t *given, int fused, uint32_t out)
{
    nori__window w;
    const char *why = read_window(node, weight, &w);
    int64_t groups = nori__attr_i(node, "group", 1);
    bool depthwise = nori__na_depthwise(node, weight), grouped = groups > 1 && !depthwise;
    uint32_t in[16] = {given[0], given[1], given[2]}, n = 3;
    if (why) {
        nori__na_refuse(p, why);
        return;
    }
    n += add_pads(p, &w, in + n);
    if (depthwise) {
        in[n++] = nori__na_int(p, weight->dims[0] / groups);
    } else if (grouped) {
        in[n++] = nori__na_int(p, groups);
    }
    in[n++] = nori__na_int(p, fused);
    bool dilated = w.dilation[0] > 1 || w.dilation[1] > 1;
    if (grouped || dilated) {
        in[n++] = nori__na_bool(p, false); /* channels last */
    }
    if (dilated) {
        in[n++] = nori__na_int(p, w.dilation[1]);
        in[n++] = nori__na_int(p, w.dilation[0]);
    }
    nori__na_op(p, depthwise ? NA_DEPTHWISE_CONV_2D : grouped ? NA_GROUPED_CONV_2D : NA_CONV_2D, in, n,
                out);
}

void nori__na_emit_conv(na_part *p, const na_job *j)
{
    nori_tensor *made[2] = {NULL, NULL};
    const nori_tensor *weight = nori__na_weight_floats(j->node, 1, &made[0]);
    const nori_tensor *bias = nori__na_weight_floats(j->node, 2, &made[1]);
    int fused;
    if (weight && (bias || !nori__na_in(j->node, 2))) {
        uint32_t in[3] = {nori__na_picture(p, j->in[0]),
                          add_filter(p, weight, nori__na_depthwise(j->node, weight)),
                          add_bias(p, bias, weight->dims[0])};
        uint32_t out = nori__na_fuse(p, j->out, &fused);
        uint32_t picture = nori__na_make_picture(p, out);
        nori__na_add_conv(p, j->node, weight, in, fused, picture);
        nori__na_picture_made(p, out, picture);
    } else {
        nori__na_refuse(p, "its weights cannot be had as floats");
    }
    nori_tensor_free(made[0]);
    nori_tensor_free(made[1]);
}

/* ---- pools ---- */

/* Rounding sizes up is more pads at the end. */
static void pads_for(const nori__node *n, nori__window *w)
{
    int rank = n->inputs[0]->type.rank;
    for (int d = 4 - rank; d < 2; d++) {
        int64_t in = n->inputs[0]->type.dims[rank - 2 + d].value;
        int64_t out = n->outputs[0]->type.dims[rank - 2 + d].value;
        int64_t reach = (out - 1) * w->stride[d] + w->kernel[d], have = in + w->begin[d];
        w->end[d] = reach > have ? reach - have : 0;
    }
}

const char *nori__na_claim_pool(const na_self *self, const nori__node *n)
{
    nori__window w;
    const char *why = read_window(n, NULL, &w);
    (void)self;
    if (why) {
        return why;
    }
    bool padded = false;
    pads_for(n, &w);
    for (int d = 0; d < 2; d++) {
        padded = padded || w.begin[d] || w.end[d];
        if (w.dilation[d] > 1) {
            return "NNAPI dilates no pool";
        }
        if (w.begin[d] >= w.kernel[d] || w.end[d] >= w.kernel[d]) {
            return "its pads are as wide as its window";
        }
    }
    return padded && !nori__node_is(n, NORI__OP_ONNX_MaxPool) &&
                   nori__attr_i(n, "count_include_pad", 0)
               ? "NNAPI does not count pads in averages"
               : NULL;
}

static void add_pool(na_part *p, const na_job *j, int32_t code, const nori__window *w)
{
    int fused;
    uint32_t in[10] = {nori__na_picture(p, j->in[0])}, n = 1;
    uint32_t out = nori__na_fuse(p, j->out, &fused), picture = nori__na_make_picture(p, out);
    n += add_pads(p, w, in + n);
    in[n++] = nori__na_int(p, w->kernel[1]);
    in[n++] = nori__na_int(p, w->kernel[0]);
    in[n++] = nori__na_int(p, fused);
    nori__na_op(p, code, in, n, picture);
    nori__na_picture_made(p, out, picture);
}

void nori__na_emit_pool(na_part *p, const na_job *j)
{
    nori__window w;
    const char *why = read_window(j->node, NULL, &w);
    if (why) {
        nori__na_refuse(p, why);
        return;
    }
    pads_for(j->node, &w);
    add_pool(p, j, nori__node_is(j->node, NORI__OP_ONNX_MaxPool) ? NA_MAX_POOL_2D : NA_AVERAGE_POOL_2D,
             &w);
}

const char *nori__na_claim_global_pool(const na_self *self, const nori__node *n)
{
    (void)self;
    int rank = n->inputs[0]->type.rank;
    return rank == 3 || rank == 4 ? NULL : no_picture;
}

void nori__na_emit_global_pool(na_part *p, const na_job *j)
{
    na_shape x = nori__na_shape(p, j->in[0], NA_PLAIN);
    nori__window w = {.n = 2, .kernel = {x.d[2], x.d[3]}, .stride = {1, 1}};
    if (x.rank == 3) {
        w.kernel[0] = 1;
        w.kernel[1] = x.d[2];
    }
    add_pool(p, j, NA_AVERAGE_POOL_2D, &w);
}

/* nnapi_window.c: what slides a window over pictures or resizes them: convolutions, pools, Resize. */
#include "ops/resize.h"
#include "ops/window.h"
#include "providers/nnapi/nnapi.h"

/* ---- geometry ---- */

/* NULL: read, with pads of SAME_* filled in. */
static const char *read_window(const nori__node *n, const nori_tensor *weight, nori__window *w)
{
    const nori__value *x = n->inputs[0];
    nori_error ignored = {0};
    if (x->type.rank != 4) {
        return "NNAPI has two spatial dimensions";
    }
    if (nori__window_read(n, NULL, 2, weight ? weight->dims + 2 : NULL, w) != NORI_OK) {
        return "its window cannot be read";
    }
    for (int d = 0; d < 2; d++) {
        int64_t out;
        if (nori__window_out(w, &ignored, d, x->type.dims[d + 2].value, &out) != NORI_OK || out < 1) {
            return "its window does not fit its input";
        }
        if (w->begin[d] < 0 || w->end[d] < 0) {
            return "it has pads below 0";
        }
    }
    return NULL;
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
    if (groups < 1 || weight->dims[1] * groups != n->inputs[0]->type.dims[1].value ||
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
    int64_t out = t->dims[0], in = t->dims[1], taps = t->dims[2] * t->dims[3];
    na_shape s = {.rank = 4, .d = {out, t->dims[2], t->dims[3], in}, .count = t->count};
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
        uint32_t in[3] = {nori__na_want(p, j->in[0], NA_LAST),
                          add_filter(p, weight, nori__na_depthwise(j->node, weight)),
                          add_bias(p, bias, weight->dims[0])};
        uint32_t out = nori__na_fuse(p, j->out, &fused);
        nori__na_add_conv(p, j->node, weight, in, fused, nori__na_make(p, out, NA_LAST));
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
    for (int d = 0; d < 2; d++) {
        int64_t in = n->inputs[0]->type.dims[d + 2].value, out = n->outputs[0]->type.dims[d + 2].value;
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
    uint32_t in[10] = {nori__na_want(p, j->in[0], NA_LAST)}, n = 1;
    uint32_t out = nori__na_fuse(p, j->out, &fused);
    n += add_pads(p, w, in + n);
    in[n++] = nori__na_int(p, w->kernel[1]);
    in[n++] = nori__na_int(p, w->kernel[0]);
    in[n++] = nori__na_int(p, fused);
    nori__na_op(p, code, in, n, nori__na_make(p, out, NA_LAST));
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
    return n->inputs[0]->type.rank == 4 ? NULL : "NNAPI has two spatial dimensions";
}

void nori__na_emit_global_pool(na_part *p, const na_job *j)
{
    na_shape x = nori__na_shape(p, j->in[0], NA_PLAIN);
    nori__window w = {.n = 2, .kernel = {x.d[2], x.d[3]}, .stride = {1, 1}};
    add_pool(p, j, NA_AVERAGE_POOL_2D, &w);
}

/* ---- Resize ---- */

static bool read_resize(const nori__node *n, nori__resize *r)
{
    const nori__value *x = n->inputs[0];
    int64_t in[NORI_MAX_RANK], sizes[NORI_MAX_RANK];
    nori_error ignored = {0};
    for (int d = 0; d < x->type.rank; d++) {
        in[d] = x->type.dims[d].value;
    }
    if (nori__resize_read(n, &ignored, r) != NORI_OK) {
        return false;
    }
    const nori_tensor *scales = r->scales_in != UINT32_MAX ? nori__na_const(n, r->scales_in) : NULL;
    const nori_tensor *given = r->sizes_in != UINT32_MAX ? nori__na_const(n, r->sizes_in) : NULL;
    int n_sizes = given && given->count <= NORI_MAX_RANK ? (int)given->count : -1;
    for (int d = 0; d < n_sizes; d++) {
        sizes[d] = nori__tensor_get_i64(given, d);
    }
    scales = scales && scales->count > 0 ? scales : NULL;
    return (scales || n_sizes >= 0) &&
           nori__resize_sizes(n, &ignored, x->type.rank, in, NULL, scales, sizes, n_sizes, r) == NORI_OK;
}

/* The pixels NNAPI reads: by corners, by halves of pixels (both from level 30 on), or neither. */
static const char *sampling(const nori__resize *r, const nori__value *x, bool *corners, bool *halves)
{
    bool whole = true;
    *corners = r->coords == NORI__ALIGN_CORNERS;
    *halves = r->coords == NORI__HALF_PIXEL ||
              (r->coords == NORI__PYTORCH_HALF_PIXEL && r->out[2] > 1 && r->out[3] > 1);
    for (int d = 2; d < 4; d++) {
        int64_t in = x->type.dims[d].value;
        whole = whole && r->out[d] % in == 0;
        if ((double)in * r->scale[d] != (double)r->out[d]) {
            return "its scales are not the ratio of its sizes";
        }
    }
    if (!*corners && !*halves && r->coords != NORI__ASYMMETRIC) {
        return "NNAPI has no such sampling";
    }
    if (r->mode == NORI__LINEAR) {
        return NULL;
    }
    bool near = r->mode == NORI__NEAREST &&
                (*halves ? whole && (r->round == NORI__ROUND_PREFER_FLOOR ||
                                     r->round == NORI__ROUND_PREFER_CEIL)
                         : !*corners && whole && r->round == NORI__ROUND_FLOOR);
    return near ? NULL : "NNAPI does not round so";
}

const char *nori__na_claim_resize(const na_self *self, const nori__node *n)
{
    const nori__value *x = n->inputs[0];
    nori__resize r;
    bool corners, halves;
    if (x->type.rank != 4) {
        return "NNAPI has two spatial dimensions";
    }
    if (!read_resize(n, &r) || r.out[0] != x->type.dims[0].value || r.out[1] != x->type.dims[1].value) {
        return "its sizes are not constant, or not of pictures";
    }
    if (r.antialias || r.exclude_outside) {
        return "NNAPI has plain resizing only";
    }
    const char *why = sampling(&r, x, &corners, &halves);
    if (why) {
        return why;
    }
    int level = corners || halves ? 30 : r.mode == NORI__NEAREST ? 29 : 27;
    return self->level < level ? "NNAPI samples so from a later feature level on (29 or 30)" : NULL;
}

void nori__na_emit_resize(na_part *p, const na_job *j)
{
    nori__resize r;
    bool corners, halves;
    if (!read_resize(j->node, &r) || sampling(&r, j->node->inputs[0], &corners, &halves)) {
        nori__na_refuse(p, "its sizes are not constant");
        return;
    }
    bool near = r.mode == NORI__NEAREST;
    uint32_t in[6] = {nori__na_want(p, j->in[0], NA_LAST)}, n = 1;
    in[n++] = nori__na_int(p, r.out[3]);
    in[n++] = nori__na_int(p, r.out[2]);
    if (near || corners || halves) {
        in[n++] = nori__na_bool(p, false); /* channels last */
    }
    if (corners || halves) {
        in[n++] = nori__na_bool(p, corners);
        in[n++] = nori__na_bool(p, halves);
    }
    nori__na_op(p, near ? NA_RESIZE_NEAREST_NEIGHBOR : NA_RESIZE_BILINEAR, in, n,
                nori__na_make(p, j->out, NA_LAST));
}

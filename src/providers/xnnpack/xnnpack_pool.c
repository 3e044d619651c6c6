/* xnnpack_pool.c: pools, averages over all positions, linear resizing. Operators without weights are
 * made anew for each set of shapes. */
#include <math.h>

#include "ops/resize.h"
#include "providers/xnnpack/xnnpack.h"

/* XNNPACK sums floats nearly one after the other: of more than this, too many digits are lost. */
#define MOST_SUMMED 4096

/* ---- windows ---- */

typedef struct pool_args {
    xp_window w;
    bool max;
    float low, high;
} pool_args;

const char *nori__xp_claim_pool(const nori__node *n)
{
    xp_window w;
    bool max = nori__node_is(n, NORI__OP_ONNX_MaxPool);
    if (!nori__xp_is(n->inputs[0], max ? NORI_UNDEFINED : NORI_FLOAT, 1)) {
        return "it is not on floats or bytes of a known rank";
    }
    if (n->output_count > 1 && n->outputs[1]) {
        return "its second output is wanted";
    }
    const char *why = nori__xp_window(n, NULL, &w);
    if (why) {
        return why;
    }
    bool padded = w.begin[0] || w.begin[1] || w.end[0] || w.end[1];
    bool dilated = w.dilation[0] > 1 || w.dilation[1] > 1;
    if (w.kernel[0] * (uint64_t)w.kernel[1] < 2) {
        return "XNNPACK takes no window of one element";
    }
    if (!max && w.kernel[0] * (uint64_t)w.kernel[1] > MOST_SUMMED) {
        return "XNNPACK sums so many floats less exactly";
    }
    if (dilated && (padded || w.ceil || !max)) {
        return "XNNPACK pads no dilated window as ONNX does";
    }
    if (w.begin[0] >= w.kernel[0] || w.begin[1] >= w.kernel[1] || w.end[0] >= w.kernel[0] ||
        w.end[1] >= w.kernel[1]) {
        return "its pads are as wide as its window";
    }
    if (!max && nori__attr_i(n, "count_include_pad", 0) && (padded || w.ceil)) {
        return "XNNPACK does not count pads in averages";
    }
    return NULL;
}

/* Pads at the end such that as many windows fit as the output has: rounding up is more pads. */
static uint32_t pad_end(const xp_window *w, int d, size_t in, size_t out)
{
    size_t reach = (out - 1) * w->stride[d] + (size_t)(w->kernel[d] - 1) * w->dilation[d] + 1;
    size_t have = in + w->begin[d];
    return reach > have ? (uint32_t)(reach - have) : 0;
}

static nori_status setup_pool(xp_part *p, xp_step *s, nori_error *err)
{
    const pool_args *a = s->args;
    const xp_window *w = &a->w;
    xp_image x = nori__xp_image(p, s->in[0]), y = nori__xp_image(p, s->out);
    nori__xp_drop(s);
    s->idle = nori__xp_shape(p, s->out).count == 0;
    if (s->idle) {
        return NORI_OK;
    }
    if (x.h == 0 || x.w == 0) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED, "XNNPACK takes no pool of nothing");
    }
    uint32_t t = w->begin[0], l = w->begin[1], b = pad_end(w, 0, x.h, y.h),
             r = pad_end(w, 1, x.w, y.w);
    unsigned width = nori__xp_buffer(p, s->in[0])->width;
    if (!a->max) {
        XP_TRY(XNN(create_average_pooling2d_nhwc_f32)(t, r, b, l, w->kernel[0], w->kernel[1],
                                                     w->stride[0], w->stride[1], x.c, x.c, x.c,
                                                     a->low, a->high, 0, &s->op),
               s->node, err);
        XP_TRY(XNN(setup_average_pooling2d_nhwc_f32)(s->op, x.n, x.h, x.w,
                                                    nori__xp_floats(p, s->in[0]),
                                                    nori__xp_floats(p, s->out), nori__xp_pool(p)),
               s->node, err);
    } else if (width == 4) {
        XP_TRY(XNN(create_max_pooling2d_nhwc_f32)(t, r, b, l, w->kernel[0], w->kernel[1],
                                                 w->stride[0], w->stride[1], w->dilation[0],
                                                 w->dilation[1], x.c, x.c, x.c, a->low, a->high, 0,
                                                 &s->op),
               s->node, err);
        XP_TRY(XNN(setup_max_pooling2d_nhwc_f32)(s->op, x.n, x.h, x.w, nori__xp_floats(p, s->in[0]),
                                                nori__xp_floats(p, s->out), nori__xp_pool(p)),
               s->node, err);
    } else { /* lies as int8 */
        XP_TRY(XNN(create_max_pooling2d_nhwc_s8)(t, r, b, l, w->kernel[0], w->kernel[1],
                                                w->stride[0], w->stride[1], w->dilation[0],
                                                w->dilation[1], x.c, x.c, x.c, INT8_MIN, INT8_MAX, 0,
                                                &s->op),
               s->node, err);
        XP_TRY(XNN(setup_max_pooling2d_nhwc_s8)(s->op, x.n, x.h, x.w, nori__xp_bytes(p, s->in[0]),
                                               nori__xp_bytes(p, s->out), nori__xp_pool(p)),
               s->node, err);
    }
    return NORI_OK;
}

nori_status nori__xp_emit_pool(xp_part *p, const xp_job *j, nori_error *err)
{
    const nori__value *x = nori__xp_value(p, j->in[0]);
    bool floats = x->type.elem == NORI_FLOAT;
    unsigned form = XP_LAST | (x->type.elem == NORI_UINT8 ? XP_FLIP : 0);
    float low = -INFINITY, high = INFINITY;
    uint32_t out = floats ? nori__xp_clamp(p, j->out, &low, &high) : j->out;
    uint32_t in = nori__xp_want(p, j->in[0], form);
    xp_step *s = nori__xp_step(p, j->node, &in, 1, nori__xp_make(p, out, form), sizeof(pool_args),
                               setup_pool);
    if (!s) {
        return nori__no_memory(err);
    }
    pool_args *a = s->args;
    const char *why = nori__xp_window(j->node, NULL, &a->w);
    if (why) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED, "%s", why);
    }
    a->max = nori__node_is(j->node, NORI__OP_ONNX_MaxPool);
    a->low = low;
    a->high = high;
    return NORI_OK;
}

/* ---- all positions ---- */

/* ReduceMean over all axes behind channels is GlobalAveragePool. */
static bool over_positions(const nori__node *n)
{
    const nori_tensor *axes = nori__xp_const(n, 1);
    int rank = n->inputs[0]->type.rank;
    uint32_t seen = 0;
    if (!axes || axes->type != NORI_INT64 || axes->count != rank - 2) {
        return false;
    }
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = ((const int64_t *)axes->data)[i];
        axis += axis < 0 ? rank : 0;
        seen |= axis >= 2 && axis < rank ? 1u << axis : 0;
    }
    return seen == ((1u << rank) - 1) - 3;
}

const char *nori__xp_claim_global_pool(const nori__node *n)
{
    if (!nori__xp_is(n->inputs[0], NORI_FLOAT, 3)) {
        return "it is not on floats of a known rank of at least 3";
    }
    double positions = 1;
    for (int d = 2; d < n->inputs[0]->type.rank; d++) {
        int64_t size = n->inputs[0]->type.dims[d].value;
        positions *= size > 0 ? (double)size : 1;
    }
    if (positions > MOST_SUMMED) {
        return "XNNPACK sums so many floats less exactly";
    }
    return nori__node_is(n, NORI__OP_ONNX_GlobalAveragePool) || over_positions(n)
               ? NULL
               : "it is no mean over all positions of each channel";
}

static nori_status setup_global(xp_part *p, xp_step *s, nori_error *err)
{
    xp_shape x = nori__xp_shape(p, s->in[0]);
    nori__xp_drop(s);
    s->idle = nori__xp_shape(p, s->out).count == 0;
    if (s->idle) {
        return NORI_OK;
    }
    size_t c = x.d[x.rank - 1], n = x.d[0];
    if (x.count == 0) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED, "XNNPACK takes no mean of nothing");
    }
    XP_TRY(XNN(create_global_average_pooling_nwc_f32)(c, c, c, -INFINITY, INFINITY, 0, &s->op), s->node,
           err);
    XP_TRY(XNN(setup_global_average_pooling_nwc_f32)(s->op, n, x.count / n / c,
                                                    nori__xp_floats(p, s->in[0]),
                                                    nori__xp_floats(p, s->out), nori__xp_pool(p)),
           s->node, err);
    return NORI_OK;
}

/* One position: channels last is as ONNX has it, whether the axes are kept or not. */
nori_status nori__xp_emit_global_pool(xp_part *p, const xp_job *j, nori_error *err)
{
    uint32_t in = nori__xp_want(p, j->in[0], XP_LAST), out = nori__xp_make(p, j->out, 0);
    xp_step *s = nori__xp_step(p, j->node, &in, 1, out, 0, setup_global);
    return s && (nori__xp_rank(p, j->out) < 3 || nori__xp_share(p, j->out, XP_LAST, out))
               ? NORI_OK
               : nori__no_memory(err);
}

/* ---- Resize ---- */

static const struct {
    nori__resize_coords coords;
    uint32_t flags;
} samplings[] = {
    {NORI__HALF_PIXEL, 0},
    {NORI__PYTORCH_HALF_PIXEL, 0},
    {NORI__ALIGN_CORNERS, XNN_FLAG_ALIGN_CORNERS},
    {NORI__ASYMMETRIC, XNN_FLAG_TENSORFLOW_LEGACY_MODE},
};

/* XNNPACK takes the ratio of sizes as scale, ONNX the scale that is given. */
static bool exact_scale(double scale, int64_t in, int64_t out)
{
    return in > 0 && out > 0 ? scale * (double)in == (double)out : scale >= 1 && scale == floor(scale);
}

static bool read_resize(const nori__node *n, nori__resize *r)
{
    const nori__value *x = n->inputs[0];
    int64_t in[NORI_MAX_RANK], sizes[NORI_MAX_RANK];
    if (nori__resize_read(n, NULL, r) != NORI_OK) {
        return false;
    }
    for (int d = 0; d < x->type.rank; d++) {
        in[d] = x->type.dims[d].value;
    }
    const nori_tensor *scales = nori__xp_const(n, r->scales_in), *given = nori__xp_const(n, r->sizes_in);
    bool by_sizes = given && given->type == NORI_INT64 && given->count <= NORI_MAX_RANK;
    if ((!scales || scales->count == 0) && !by_sizes) {
        return false;
    }
    for (int64_t i = 0; by_sizes && i < given->count; i++) {
        sizes[i] = ((const int64_t *)given->data)[i];
    }
    return nori__resize_sizes(n, NULL, x->type.rank, in, NULL, scales, sizes,
                              by_sizes ? (int)given->count : -1, r) == NORI_OK;
}

const char *nori__xp_claim_resize(const nori__node *n)
{
    const nori__value *x = n->inputs[0];
    nori__resize r;
    if (!nori__xp_is(x, NORI_FLOAT, 4) || x->type.rank != 4) {
        return "it is not on pictures of floats";
    }
    if (!read_resize(n, &r)) {
        return "its sizes are not constant";
    }
    for (int d = 0; d < 4; d++) {
        if (d < 2 ? r.scale[d] != 1 : !exact_scale(r.scale[d], x->type.dims[d].value, r.out[d])) {
            return "its scales are not the ratio of its sizes";
        }
    }
    if (r.antialias || r.exclude_outside) {
        return "XNNPACK has plain linear resizing only";
    }
    if (r.mode == NORI__NEAREST) {
        bool grows = r.scale[2] == floor(r.scale[2]) && r.scale[3] == floor(r.scale[3]) &&
                     r.scale[2] >= 1 && r.scale[3] >= 1;
        bool first = (r.coords == NORI__ASYMMETRIC && r.round == NORI__ROUND_FLOOR) ||
                     (r.coords == NORI__HALF_PIXEL && r.round == NORI__ROUND_PREFER_FLOOR);
        return grows && first ? NULL : "it is no repetition of elements";
    }
    for (size_t i = 0; r.mode == NORI__LINEAR && i < NORI__COUNT(samplings); i++) {
        bool single = r.coords == NORI__PYTORCH_HALF_PIXEL && (r.out[2] <= 1 || r.out[3] <= 1);
        if (samplings[i].coords == r.coords && !single) {
            return NULL;
        }
    }
    return "XNNPACK has no such sampling";
}

static nori_status setup_resize(xp_part *p, xp_step *s, nori_error *err)
{
    xp_image x = nori__xp_image(p, s->in[0]), y = nori__xp_image(p, s->out);
    nori__xp_drop(s);
    s->idle = x.n == 0 || x.c == 0 || y.h == 0 || y.w == 0;
    if (s->idle) {
        return NORI_OK;
    }
    XP_TRY(XNN(create_resize_bilinear2d_nhwc_f32)(x.c, x.c, x.c, *(const uint32_t *)s->args, &s->op),
           s->node, err);
    XP_TRY(XNN(setup_resize_bilinear2d_nhwc_f32)(s->op, x.n, x.h, x.w, y.h, y.w,
                                                nori__xp_floats(p, s->in[0]),
                                                nori__xp_floats(p, s->out), nori__xp_pool(p)),
           s->node, err);
    return NORI_OK;
}

/* Each element, repeated: an axis that does not move where it comes from. */
static nori_status setup_repeat(xp_part *p, xp_step *s, nori_error *err)
{
    xp_move *m = s->args;
    xp_image x = nori__xp_image(p, s->in[0]), y = nori__xp_image(p, s->out);
    (void)err;
    s->idle = x.n == 0 || x.c == 0 || x.h == 0 || x.w == 0;
    if (s->idle) {
        return NORI_OK;
    }
    size_t dims[] = {x.n, x.h, y.h / x.h, x.w, y.w / x.w, x.c}, step = 1;
    size_t in[] = {x.h * x.w * x.c, x.w * x.c, 0, x.c, 0, 1};
    m->rank = 6;
    for (int d = 5; d >= 0; d--) {
        m->dims[d] = dims[d];
        m->in[d] = in[d];
        m->out[d] = step;
        step *= dims[d];
    }
    return NORI_OK;
}

nori_status nori__xp_emit_resize(xp_part *p, const xp_job *j, nori_error *err)
{
    nori__resize r;
    if (!read_resize(j->node, &r)) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED, "its sizes are not constant");
    }
    uint32_t in = nori__xp_want(p, j->in[0], XP_LAST), out = nori__xp_make(p, j->out, XP_LAST);
    if (r.mode == NORI__NEAREST) {
        return nori__xp_step_move(p, j->node, in, out, sizeof(xp_move), setup_repeat)
                   ? NORI_OK
                   : nori__no_memory(err);
    }
    xp_step *s = nori__xp_step(p, j->node, &in, 1, out, sizeof(uint32_t), setup_resize);
    if (!s) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < NORI__COUNT(samplings); i++) {
        if (samplings[i].coords == r.coords) {
            *(uint32_t *)s->args = samplings[i].flags;
        }
    }
    return NORI_OK;
}

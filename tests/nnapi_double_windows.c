/* nnapi_double_windows.c: operations of NNAPI on pictures, channels last: [batch][height][width][depth]. */
#include "nnapi_double.h"

#include <math.h>

/* ---- windows ---- */

typedef struct window {
    int64_t left, right, top, bottom, step_w, step_h, kernel_w, kernel_h, wide, high; /* dilation */
    int64_t groups;                                                                    /* of channels */
    int32_t fused;
} window;

static void read_pads(const model *m, const operation *o, uint32_t i, window *w)
{
    w->left = arg_int(m, o, i);
    w->right = arg_int(m, o, i + 1);
    w->top = arg_int(m, o, i + 2);
    w->bottom = arg_int(m, o, i + 3);
    w->step_w = arg_int(m, o, i + 4);
    w->step_h = arg_int(m, o, i + 5);
    w->wide = w->high = w->groups = 1;
}

static const char *shape_window(const operand *x, const window *w, uint32_t depth, operand *out)
{
    int64_t high = (w->kernel_h - 1) * w->high + 1, wide = (w->kernel_w - 1) * w->wide + 1;
    int64_t h = x->dims[1] + w->top + w->bottom - high, v = x->dims[2] + w->left + w->right - wide;
    if (x->rank != 4) {
        return "not of rank 4";
    }
    if (w->left < 0 || w->right < 0 || w->top < 0 || w->bottom < 0 || w->step_w < 1 || w->step_h < 1 ||
        w->wide < 1 || w->high < 1 || w->kernel_w < 1 || w->kernel_h < 1) {
        return "pads below 0, or steps, dilations or a window below 1";
    }
    if (w->left >= wide || w->right >= wide || w->top >= high || w->bottom >= high) {
        return "pads as wide as the window";
    }
    if (w->fused < 0 || w->fused > 3) {
        return "no such activation";
    }
    if (h < 0 || v < 0) {
        return "a window larger than the picture";
    }
    out->rank = 4;
    out->dims[0] = x->dims[0];
    out->dims[1] = (uint32_t)(h / w->step_h + 1);
    out->dims[2] = (uint32_t)(v / w->step_w + 1);
    out->dims[3] = depth;
    return NULL;
}

enum { CONV = 3, DEPTHWISE = 4, GROUPED = 55 };

/* Where the parameters behind the strides are depends on the operation. */
static const char *read_conv(const model *m, const operation *o, window *w)
{
    const operand *f = arg(m, o, 1);
    int32_t code = o->rule->code;
    uint32_t i = 9;
    read_pads(m, o, 3, w);
    if (f->rank != 4 || arg(m, o, 2)->rank != 1 || arg(m, o, 0)->rank != 4) {
        return "a filter, bias or input of another rank";
    }
    w->kernel_h = f->dims[1];
    w->kernel_w = f->dims[2];
    if (code == DEPTHWISE) {
        w->groups = arg(m, o, 0)->dims[3];
        if (f->dims[0] != 1 || f->dims[3] != w->groups * arg_int(m, o, i++)) {
            return "a filter that is not [1][h][w][depth * multiplier]";
        }
    } else if (code == GROUPED) {
        w->groups = arg_int(m, o, i++);
        if (w->groups < 1 || f->dims[0] % w->groups != 0) {
            return "groups that do not divide the filters";
        }
    }
    w->fused = arg_int(m, o, i++);
    if (i < o->n_in && arg_int(m, o, i++) != 0) {
        return "channels first";
    }
    if (i < o->n_in) {
        w->wide = arg_int(m, o, i);
        w->high = arg_int(m, o, i + 1);
    }
    return NULL;
}

static const char *shape_conv(const model *m, const operation *o, operand *out)
{
    window w;
    const operand *x = arg(m, o, 0), *f = arg(m, o, 1);
    const char *broken = read_conv(m, o, &w);
    bool depthwise = o->rule->code == DEPTHWISE;
    uint32_t depth = f->dims[depthwise ? 3 : 0];
    if (broken) {
        return broken;
    }
    if (!depthwise && f->dims[3] * (uint64_t)w.groups != x->dims[3]) {
        return "a filter of another depth than the input";
    }
    if (f->type == TENSOR_CHANNELS && f->channels.dim != (depthwise ? 3 : 0)) {
        return "scales of another dimension than that of what comes out";
    }
    if (arg(m, o, 2)->dims[0] != depth) {
        return "a bias of another length than the filters";
    }
    return shape_window(x, &w, depth, out);
}

/* One output: filters are [out][h][w][in of the group], or [h][w][out] of depthwise ones. */
static double conv_at(const job *j, const window *w, const int64_t *at)
{
    const operand *x = arg(j->m, j->o, 0), *y = &j->m->operands[j->o->out];
    bool depthwise = j->o->rule->code == DEPTHWISE;
    int64_t depth = x->dims[3], filters = y->dims[3], in = depth / w->groups, c = at[3];
    int64_t first = c / (filters / w->groups) * in;
    double sum = bias_at(j, (size_t)c);
    for (int64_t r = 0; r < w->kernel_h; r++) {
        int64_t row = at[1] * w->step_h - w->top + r * w->high;
        for (int64_t k = 0; k < w->kernel_w; k++) {
            int64_t column = at[2] * w->step_w - w->left + k * w->wide, tap = r * w->kernel_w + k;
            if (row < 0 || row >= x->dims[1] || column < 0 || column >= x->dims[2]) {
                continue;
            }
            const float *from =
                in_data(j, 0) + ((at[0] * x->dims[1] + row) * x->dims[2] + column) * depth + first;
            const float *filter =
                in_data(j, 1) + (depthwise ? tap * filters + c : (c * w->kernel_h * w->kernel_w + tap) * in);
            for (int64_t i = 0; i < in; i++) {
                sum += (double)from[i] * (double)filter[i];
            }
        }
    }
    return sum * product_unit(j, (size_t)c);
}

static double pool_at(const job *j, const window *w, const int64_t *at)
{
    const operand *x = arg(j->m, j->o, 0);
    bool most = j->o->rule->code == 17;
    double v = most ? -INFINITY : 0;
    int64_t n = 0;
    for (int64_t r = 0; r < w->kernel_h; r++) {
        for (int64_t k = 0; k < w->kernel_w; k++) {
            int64_t row = at[1] * w->step_h - w->top + r, column = at[2] * w->step_w - w->left + k;
            if (row < 0 || row >= x->dims[1] || column < 0 || column >= x->dims[2]) {
                continue;
            }
            double e = (double)in_data(j, 0)[((at[0] * x->dims[1] + row) * x->dims[2] + column) *
                                                 x->dims[3] + at[3]];
            v = most ? fmax(v, e) : v + e;
            n++;
        }
    }
    return most ? v : v / (double)n; /* pads do not count */
}

static void over_outputs(const job *j, const window *w,
                         double (*value)(const job *, const window *, const int64_t *))
{
    const operand *y = &j->m->operands[j->o->out];
    for (size_t i = 0; i < y->count; i++) {
        size_t c = y->dims[3], v = y->dims[2], h = y->dims[1];
        int64_t at[4] = {(int64_t)(i / c / v / h), (int64_t)(i / c / v % h), (int64_t)(i / c % v),
                         (int64_t)(i % c)};
        put(j, i, fused(j, w->fused, value(j, w, at)));
    }
}

static void run_conv(const job *j)
{
    window w;
    read_conv(j->m, j->o, &w);
    over_outputs(j, &w, conv_at);
}

static void read_pool(const model *m, const operation *o, window *w)
{
    read_pads(m, o, 1, w);
    w->kernel_w = arg_int(m, o, 7);
    w->kernel_h = arg_int(m, o, 8);
    w->fused = arg_int(m, o, 9);
}

static const char *shape_pool(const model *m, const operation *o, operand *out)
{
    window w;
    read_pool(m, o, &w);
    return o->n_in > 10 && arg_int(m, o, 10) ? "channels first"
                                             : shape_window(arg(m, o, 0), &w, arg(m, o, 0)->dims[3], out);
}

static void run_pool(const job *j)
{
    window w;
    read_pool(j->m, j->o, &w);
    over_outputs(j, &w, pool_at);
}

/* ---- resizing ---- */

static const char *shape_resize(const model *m, const operation *o, operand *out)
{
    const operand *x = arg(m, o, 0);
    if (x->rank != 4 || (o->n_in > 3 && arg_int(m, o, 3))) {
        return "not of rank 4, or channels first";
    }
    if (arg_int(m, o, 1) < 1 || arg_int(m, o, 2) < 1) {
        return "a size below 1";
    }
    if (o->n_in > 5 && arg_int(m, o, 4) && arg_int(m, o, 5)) {
        return "corners and halves of pixels at once";
    }
    out->rank = 4;
    out->dims[0] = x->dims[0];
    out->dims[1] = (uint32_t)arg_int(m, o, 2);
    out->dims[2] = (uint32_t)arg_int(m, o, 1);
    out->dims[3] = x->dims[3];
    return NULL;
}

/* Where an output pixel lies in the input. */
static double source(const job *j, int64_t at, uint32_t in, uint32_t out)
{
    bool corners = j->o->n_in > 4 && arg_int(j->m, j->o, 4);
    bool halves = j->o->n_in > 5 && arg_int(j->m, j->o, 5);
    double scale = corners && out > 1 ? (double)(in - 1) / (out - 1) : (double)in / out;
    bool near = j->o->rule->code == 94;
    return halves ? ((double)at + 0.5) * scale - (near ? 0 : 0.5) : (double)at * scale;
}

static double resize_at(const job *j, const window *w, const int64_t *at)
{
    const operand *x = arg(j->m, j->o, 0), *y = &j->m->operands[j->o->out];
    int64_t low[2], high[2];
    double part[2], sum = 0;
    (void)w;
    for (int d = 0; d < 2; d++) {
        int64_t last = (int64_t)x->dims[d + 1] - 1;
        double from = source(j, at[d + 1], x->dims[d + 1], y->dims[d + 1]);
        bool corners = j->o->n_in > 4 && arg_int(j->m, j->o, 4);
        if (j->o->rule->code == 94) {
            from = corners ? round(from) : floor(from);
        }
        from = fmin(fmax(from, 0), (double)last);
        low[d] = (int64_t)floor(from);
        high[d] = low[d] < last ? low[d] + 1 : last;
        part[d] = from - (double)low[d];
    }
    for (int k = 0; k < 4; k++) {
        int64_t row = k & 2 ? high[0] : low[0], column = k & 1 ? high[1] : low[1];
        sum += (k & 2 ? part[0] : 1 - part[0]) * (k & 1 ? part[1] : 1 - part[1]) *
               (double)in_data(j, 0)[((at[0] * x->dims[1] + row) * x->dims[2] + column) * x->dims[3] + at[3]];
    }
    return sum;
}

static void run_resize(const job *j)
{
    window w = {.fused = 0};
    over_outputs(j, &w, resize_at);
}

/* ---- squares of channels ---- */

static const char *shape_depth(const model *m, const operation *o, operand *out)
{
    const operand *x = arg(m, o, 0);
    int32_t b = arg_int(m, o, 1);
    if (x->rank != 4 || b < 1 || x->dims[3] % ((uint32_t)b * (uint32_t)b) != 0) {
        return "a depth that does not hold squares";
    }
    out->rank = 4;
    out->dims[0] = x->dims[0];
    out->dims[1] = x->dims[1] * (uint32_t)b;
    out->dims[2] = x->dims[2] * (uint32_t)b;
    out->dims[3] = x->dims[3] / ((uint32_t)b * (uint32_t)b);
    return NULL;
}

static double depth_at(const job *j, const window *w, const int64_t *at)
{
    const operand *x = arg(j->m, j->o, 0), *y = &j->m->operands[j->o->out];
    int64_t b = arg_int(j->m, j->o, 1), row = at[1] / b, column = at[2] / b;
    int64_t c = (at[1] % b * b + at[2] % b) * y->dims[3] + at[3];
    (void)w;
    return (double)in_data(j, 0)[((at[0] * x->dims[1] + row) * x->dims[2] + column) * x->dims[3] + c];
}

static void run_depth(const job *j)
{
    window w = {.fused = 0};
    over_outputs(j, &w, depth_at);
}

const rule nnapi_double_windows[] = {
    {1, "AVERAGE_POOL_2D", 27, "Tiiiiiiiii|9b", 27, MEANS_SAME, shape_pool, run_pool},
    {17, "MAX_POOL_2D", 27, "Tiiiiiiiii|9b", 27, MEANS_SAME, shape_pool, run_pool},
    {CONV, "CONV_2D", 27, "TFBiiiiiii|9b|9ii", 27, MEANS_PRODUCT, shape_conv, run_conv},
    {DEPTHWISE, "DEPTHWISE_CONV_2D", 27, "TFBiiiiiiii|9b|9ii", 27, MEANS_PRODUCT, shape_conv, run_conv},
    {GROUPED, "GROUPED_CONV_2D", 29, "TFBiiiiiiiib", 29, MEANS_PRODUCT, shape_conv, run_conv},
    {23, "RESIZE_BILINEAR", 27, "Tii|9b|0bb", 29, MEANS_SAME, shape_resize, run_resize},
    {94, "RESIZE_NEAREST_NEIGHBOR", 29, "Tiib|0bb", 29, MEANS_SAME, shape_resize, run_resize},
    {5, "DEPTH_TO_SPACE", 27, "Ti|9b", 27, MEANS_SAME, shape_depth, run_depth},
    {0, NULL, 0, NULL, 0, MEANS_ANY, NULL, NULL},
};

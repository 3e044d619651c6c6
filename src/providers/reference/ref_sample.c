/* ref_sample.c: GridSample and AffineGrid, in double, rounded once.
 *
 * A NaN or infinite coordinate is outside: zeros (padding "zeros") or the edge (NaN: the first). A
 * tap of weight 0 is not read, so NaN pixels spread only to samples that touch them. */
#include "providers/reference/ref_nn.h"

#include <math.h>

typedef enum sample_mode { SAMPLE_LINEAR, SAMPLE_NEAREST, SAMPLE_CUBIC } sample_mode;
typedef enum sample_pad { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION } sample_pad;

typedef struct sampler {
    int n; /* spatial dimensions */
    sample_mode mode;
    sample_pad pad;
    bool align;
    int64_t in[NORI__SPATIAL];
    /* Of the position at work: taps of each dimension, inputs (-1: zero) and weights. */
    int taps;
    int64_t index[NORI__SPATIAL][4];
    double weight[NORI__SPATIAL][4];
} sampler;

static double reflect(double x, double low, double high)
{
    double range = high - low;
    if (!(range > 0)) {
        return low;
    }
    if (x >= low && x <= high) {
        return x;
    }
    double away = x < low ? low - x : x - high, turns = floor(away / range);
    double rest = away - turns * range;
    bool from_near = fmod(turns, 2) == 0;
    return (x < low) == from_near ? low + rest : high - rest;
}

static double clamp_to(double x, double high)
{
    return x < 0 ? 0 : x > high ? high : x;
}

/* The input that an integer position stands for, -1: zero. */
static int64_t resolve(const sampler *s, double at, int d, double low, double high)
{
    double last = (double)s->in[d] - 1;
    if (s->pad == PAD_REFLECTION) {
        at = reflect(at, low, high);
    }
    if (s->pad == PAD_ZEROS) {
        return at >= 0 && at <= last ? (int64_t)at : -1;
    }
    return (int64_t)clamp_to(at, last);
}

static double cubic(double x)
{
    const double a = -0.75;
    x = fabs(x);
    if (x <= 1) {
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    }
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* Taps of one dimension for a coordinate in [-1, 1] of the grid. */
static void place(sampler *s, int d, double coordinate)
{
    double n = (double)s->in[d];
    double x = s->align ? (coordinate + 1) / 2 * (n - 1) : ((coordinate + 1) * n - 1) / 2;
    double low = s->align ? 0 : -0.5, high = s->align ? n - 1 : n - 0.5;
    x = x != x || x < -1e15 ? -1e15 : x > 1e15 ? 1e15 : x;
    if (s->mode == SAMPLE_NEAREST) {
        x = rint(x);
    }
    if (x < low || x > high) {
        x = s->pad == PAD_BORDER ? clamp_to(x, n - 1)
                                 : s->pad == PAD_REFLECTION ? reflect(x, low, high) : x;
    }
    double first = s->mode == SAMPLE_NEAREST ? rint(x) : floor(x);
    double ratio = x - first;
    first -= s->mode == SAMPLE_CUBIC ? 1 : 0;
    for (int t = 0; t < s->taps; t++) {
        s->index[d][t] = resolve(s, first + t, d, low, high);
        s->weight[d][t] = s->mode == SAMPLE_NEAREST ? 1
                          : s->mode == SAMPLE_LINEAR ? (t == 0 ? 1 - ratio : ratio)
                                                     : cubic(ratio + 1 - t);
    }
}

/* Sum over all combinations of taps for one channel. */
static double sample(const sampler *s, const double *x)
{
    int t[NORI__SPATIAL] = {0};
    double sum = 0;
    for (;;) {
        int64_t at = 0;
        double w = 1;
        bool inside = true;
        for (int d = 0; d < s->n; d++) {
            inside = inside && s->index[d][t[d]] >= 0;
            at = inside ? at * s->in[d] + s->index[d][t[d]] : 0;
            w *= s->weight[d][t[d]];
        }
        if (inside && w != 0) {
            sum += w * x[at];
        }
        int d = s->n - 1;
        while (d >= 0 && ++t[d] == s->taps) {
            t[d--] = 0;
        }
        if (d < 0) {
            return sum;
        }
    }
}

static nori_status read_modes(nori_call *call, sampler *s)
{
    const char *mode = nori__attr_s(call->node, "mode", "linear");
    const char *pad = nori__attr_s(call->node, "padding_mode", "zeros");
    bool cube = nori__same(mode, "cubic") || nori__same(mode, "bicubic");
    bool near = nori__same(mode, "nearest");
    if (!cube && !near && !nori__same(mode, "linear") && !nori__same(mode, "bilinear")) {
        return nori__fail(call->err, NORI_ERROR_DATA, "mode is \"%s\"", mode);
    }
    s->mode = cube ? SAMPLE_CUBIC : near ? SAMPLE_NEAREST : SAMPLE_LINEAR;
    s->taps = cube ? 4 : near ? 1 : 2;
    s->pad = nori__same(pad, "border") ? PAD_BORDER
             : nori__same(pad, "reflection") ? PAD_REFLECTION : PAD_ZEROS;
    if (s->pad == PAD_ZEROS && !nori__same(pad, "zeros")) {
        return nori__fail(call->err, NORI_ERROR_DATA, "padding_mode is \"%s\"", pad);
    }
    s->align = nori__attr_i(call->node, "align_corners", 0) != 0;
    if (cube && s->n > 6) {
        return nori__fail(call->err, NORI_ERROR_UNSUPPORTED, "cubic sampling of %d dimensions",
                          s->n);
    }
    return NORI_OK;
}

static nori_status grid_sample(nori_call *call)
{
    sampler s;
    memset(&s, 0, sizeof s);
    NORI__TRY(nori__nn_need(call, 0, "X", -1));
    NORI__TRY(nori__nn_need(call, 1, "grid", call->in[0]->rank));
    const nori_tensor *x = call->in[0], *grid = call->in[1];
    s.n = x->rank - 2;
    if (s.n < 1 || x->type != NORI_DOUBLE || grid->type != NORI_DOUBLE) {
        return nori__nn_type_error(call, grid->type != NORI_DOUBLE ? 1 : 0);
    }
    if (grid->dims[0] != x->dims[0] || grid->dims[x->rank - 1] != s.n) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "the grid has batch %lld and %lld coordinates, expected %lld and %d",
                          (long long)grid->dims[0], (long long)grid->dims[x->rank - 1],
                          (long long)x->dims[0], s.n);
    }
    NORI__TRY(read_modes(call, &s));
    memcpy(s.in, x->dims + 2, (size_t)s.n * sizeof s.in[0]);
    double *y = call->out[0]->data;
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    if (x->count == 0) { /* nothing to sample: every place is outside */
        for (int64_t i = 0; i < call->out[0]->count; i++) {
            y[i] = 0;
        }
        return NORI_OK;
    }
    int64_t places = nori__nn_product(grid->dims, 1, x->rank - 1), channels = x->dims[1];
    int64_t plane = nori__nn_product(x->dims, 2, x->rank);
    const double *g = grid->data;
    for (int64_t b = 0; b < x->dims[0]; b++) {
        const double *image = (const double *)x->data + b * channels * plane;
        for (int64_t p = 0; p < places; p++, g += s.n) {
            for (int d = 0; d < s.n; d++) {
                place(&s, d, g[s.n - 1 - d]); /* innermost first in the grid */
            }
            for (int64_t c = 0; c < channels; c++) {
                y[(b * channels + c) * places + p] = sample(&s, image + c * plane);
            }
        }
    }
    return NORI_OK;
}

nori_status nori__ref_GridSample(nori_call *call)
{
    return nori__nn_double(call, 1u | 1u << 16, grid_sample);
}

/* ---- AffineGrid ---- */

static double grid_position(int64_t i, int64_t n, bool align)
{
    if (align) {
        return n > 1 ? 2 * (double)i / (double)(n - 1) - 1 : 0;
    }
    return (2 * (double)i + 1) / (double)n - 1;
}

static nori_status affine_grid(nori_call *call)
{
    NORI__TRY(nori__nn_need(call, 0, "theta", 3));
    const nori_tensor *theta = call->in[0];
    const nori_tensor *out = call->out[0];
    int n = out->rank - 2;
    if (theta->type != NORI_DOUBLE || theta->dims[0] != out->dims[0] || theta->dims[1] != n ||
        theta->dims[2] != n + 1) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "theta is %lld x %lld x %lld, expected %lld x %d x %d",
                          (long long)theta->dims[0], (long long)theta->dims[1],
                          (long long)theta->dims[2], (long long)out->dims[0], n, n + 1);
    }
    bool align = nori__attr_i(call->node, "align_corners", 0) != 0;
    int64_t places = nori__nn_product(out->dims, 1, n + 1);
    double *y = out->data, at[3];
    for (int64_t i = 0; i < out->count / n; i++) {
        const double *m = (const double *)theta->data + i / places * n * (n + 1);
        int64_t rest = i % places;
        for (int d = n; d >= 1; d--) {
            at[n - d] = grid_position(rest % out->dims[d], out->dims[d], align);
            rest /= out->dims[d];
        }
        for (int r = 0; r < n; r++, m += n + 1) {
            double sum = m[n];
            for (int k = 0; k < n; k++) {
                sum += m[k] * at[k];
            }
            *y++ = sum;
        }
    }
    return NORI_OK;
}

nori_status nori__ref_AffineGrid(nori_call *call)
{
    return nori__nn_double(call, 0, affine_grid);
}

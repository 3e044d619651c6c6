/* ref_resize.c: Resize and Upsample of every version.
 *
 * Interpolation is separable: linear and cubic go axis by axis in double, rounded once at the end
 * (integers: to nearest even, saturated); axes that do not change are skipped. Nearest moves whole
 * elements, of any type. A NaN reaches the outputs whose weights touch it. Empty inputs or outputs
 * give nothing to write; a region of an empty input is an error. */
#include "providers/reference/ref_resize.h"

#include "providers/reference/ref_nn.h"

#include <math.h>

/* Position in the input of output o along axis d; false: outside, the extrapolation value. */
static bool source(const nori__resize *r, int d, int64_t in, int64_t o, double *x)
{
    double scale = r->scale[d], n = (double)in, at = (double)o;
    double length = scale * n; /* may be fractional */
    switch (r->coords) {
    case NORI__HALF_PIXEL:
        *x = (at + 0.5) / scale - 0.5;
        return true;
    case NORI__HALF_PIXEL_SYMMETRIC:
        *x = n / 2 * (1 - (double)r->out[d] / length) + (at + 0.5) / scale - 0.5;
        return true;
    case NORI__PYTORCH_HALF_PIXEL:
        *x = r->out[d] > 1 ? (at + 0.5) / scale - 0.5 : 0;
        return true;
    case NORI__ALIGN_CORNERS:
        *x = length == 1 || r->out[d] == 1 ? 0 : at * (n - 1) / (length - 1);
        return true;
    case NORI__ASYMMETRIC:
        *x = at / scale;
        return true;
    case NORI__TF_HALF_PIXEL_NN:
        *x = (at + 0.5) / scale;
        return true;
    default: { /* NORI__TF_CROP */
        double span = (r->end[d] - r->start[d]) * (n - 1), first = r->start[d] * (n - 1);
        *x = r->out[d] > 1 ? first + at * span / (double)(r->out[d] - 1)
                           : 0.5 * (r->start[d] + r->end[d]) * (n - 1);
        return *x >= 0 && *x <= n - 1;
    }
    }
}

static int64_t limit(double v, int64_t n)
{
    return !(v > 0) ? 0 : v >= (double)n ? n - 1 : (int64_t)v;
}

static int64_t nearest(const nori__resize *r, int d, double x, int64_t n)
{
    x = (double)(float)x; /* scales are floats: a tie stays one (4.5, not 4.50000009 for 0.7) */
    double low = floor(x);
    if (x != low) {
        double ratio = x - low;
        bool up = r->round == NORI__ROUND_CEIL ||
                  (r->round == NORI__ROUND_OUTWARD && r->scale[d] < 1) ||
                  (r->round == NORI__ROUND_PREFER_FLOOR && ratio > 0.5) ||
                  (r->round == NORI__ROUND_PREFER_CEIL && ratio >= 0.5);
        low += up ? 1 : 0;
    }
    return limit(low, n);
}

static bool changes(const nori__resize *r, int d, const nori_tensor *x)
{
    return r->coords == NORI__TF_CROP
               ? r->out[d] != x->dims[d] || r->start[d] != 0 || r->end[d] != 1
               : r->scale[d] != 1 || r->out[d] != x->dims[d];
}

/* ---- nearest ---- */

static nori_status copy_element(nori_call *call, int64_t to, int64_t from, size_t width)
{
    const nori_tensor *x = call->in[0];
    nori_tensor *y = call->out[0];
    if (x->type == NORI_STRING) {
        const nori_string *s = (const nori_string *)x->data + from;
        return nori__tensor_set_string(y, to, s->data, s->size, call->err);
    }
    if (width == 0) { /* less than a byte */
        nori__tensor_set_i64(y, to, nori__tensor_get_i64(x, from));
        return NORI_OK;
    }
    memcpy((char *)y->data + (size_t)to * width, (const char *)x->data + (size_t)from * width,
           width);
    return NORI_OK;
}

/* For each axis the input index of every output, or -1: outside. */
static nori_status resize_nearest(nori_call *call, const nori__resize *r)
{
    const nori_tensor *x = call->in[0];
    nori_tensor *y = call->out[0];
    int64_t total = 0, *first[NORI_MAX_RANK], step[NORI_MAX_RANK], at[NORI_MAX_RANK] = {0};
    size_t bytes, width = nori_type_bits((nori_type)x->type) / 8;
    for (int d = 0; d < x->rank; d++) {
        total += y->dims[d];
    }
    int64_t *index = nori__nn_scratch(call, total, sizeof *index, &bytes), *next = index;
    if (!index) {
        return nori__no_memory(call->err);
    }
    for (int d = 0; d < x->rank; d++) {
        first[d] = next;
        step[d] = nori__nn_product(x->dims, d + 1, x->rank);
        for (int64_t o = 0; o < y->dims[d]; o++) {
            double p = (double)o;
            bool inside = !changes(r, d, x) || source(r, d, x->dims[d], o, &p);
            *next++ = inside ? nearest(r, d, p, x->dims[d]) : -1;
        }
    }
    nori_status status = NORI_OK;
    for (int64_t i = 0; i < y->count && status == NORI_OK; i++) {
        int64_t from = 0;
        bool inside = true;
        for (int d = 0; d < x->rank; d++) {
            int64_t j = first[d][at[d]];
            inside = inside && j >= 0;
            from += j * step[d];
        }
        if (inside) {
            status = copy_element(call, i, from, width);
        } else {
            nori__tensor_set_f64(y, i, r->extrapolation);
        }
        for (int d = x->rank - 1; d >= 0 && ++at[d] == y->dims[d]; d--) {
            at[d] = 0;
        }
    }
    nori__release(call->allocator, index, bytes);
    return status;
}

/* ---- linear and cubic ---- */

static double cubic_weight(double a, double x)
{
    x = fabs(x);
    if (x <= 1) {
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    }
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* Inputs that an output sees along an axis: 2 or 4, more when antialiasing a downscale. */
static int64_t taps_of(const nori__resize *r, int d)
{
    double reach = r->mode == NORI__LINEAR ? 1 : 2;
    double scale = r->antialias && r->scale[d] < 1 ? r->scale[d] : 1;
    return 2 - 2 * (int64_t)(floor(-reach / scale) + 1);
}

/* Weights of the taps for a position; *base: input index of the first (may be outside). */
static void weigh(const nori__resize *r, int d, double x, int64_t in, int64_t taps, double *weights,
                  int64_t *base)
{
    double low = floor(x), sum = 0;
    if (x == low) {
        low -= 1; /* the ratio is in (0, 1] */
    }
    double ratio = x - low, scale = r->antialias && r->scale[d] < 1 ? r->scale[d] : 1;
    int64_t first = 1 - taps / 2;
    *base = (int64_t)low + first;
    for (int64_t t = 0; t < taps; t++) {
        double away = scale * ((double)(first + t) - ratio);
        double w = r->mode == NORI__CUBIC ? cubic_weight(r->cubic_a, away) : 1 - fabs(away);
        w = r->mode == NORI__LINEAR && w < 0 ? 0 : w;
        if (r->exclude_outside && (*base + t < 0 || *base + t >= in)) {
            w = 0;
        }
        weights[t] = w;
        sum += w;
    }
    for (int64_t t = 0; t < taps && (r->exclude_outside || r->antialias) && sum != 0; t++) {
        weights[t] /= sum;
    }
}

int64_t nori__resize_nearest_at(const nori__resize *r, int d, int64_t in, int64_t o)
{
    double x = (double)o;
    bool inside = (r->scale[d] == 1 && r->out[d] == in) || source(r, d, in, o, &x);
    return inside ? nearest(r, d, x, in) : -1;
}

void nori__resize_linear_at(const nori__resize *r, int d, int64_t in, int64_t o, int64_t at[2],
                            double weight[2])
{
    double x;
    at[0] = at[1] = o;
    weight[0] = 1;
    weight[1] = 0;
    if (r->scale[d] != 1 || r->out[d] != in) {
        int64_t base;
        source(r, d, in, o, &x);
        x = x < -4.0e9 ? -4.0e9 : x > 4.0e15 ? 4.0e15 : x;
        weigh(r, d, x, in, 2, weight, &base);
        for (int t = 0; t < 2; t++) {
            at[t] = base + t < 0 ? 0 : base + t >= in ? in - 1 : base + t;
        }
    }
}

/* One axis: x of outer x in x inner becomes y of outer x out x inner. */
static void resize_axis(const nori__resize *r, int d, int64_t outer, int64_t in, int64_t inner,
                        const double *x, double *y, double *weights, int64_t taps)
{
    int64_t out = r->out[d], base;
    for (int64_t o = 0; o < out; o++) {
        double p;
        bool inside = source(r, d, in, o, &p);
        /* Far positions read the edge; keeps the index in range of int64. */
        p = p < -4.0e9 ? -4.0e9 : p > 4.0e15 ? 4.0e15 : p;
        weigh(r, d, p, in, taps, weights, &base);
        for (int64_t u = 0; u < outer; u++) {
            double *to = y + (u * out + o) * inner;
            for (int64_t j = 0; j < inner; j++) {
                to[j] = inside ? 0 : r->extrapolation;
            }
            for (int64_t t = 0; t < taps && inside; t++) {
                int64_t i = base + t;
                i = i < 0 ? 0 : i >= in ? in - 1 : i;
                const double *from = x + (u * in + i) * inner;
                for (int64_t j = 0; j < inner && weights[t] != 0; j++) {
                    to[j] += weights[t] * from[j];
                }
            }
        }
    }
}

static void store(nori_tensor *y, double *v)
{
    if (!nori__type_is_float((nori_type)y->type)) {
        double low, high;
        nori__nn_range((nori_type)y->type, &low, &high);
        for (int64_t i = 0; i < y->count; i++) {
            v[i] = rint(v[i]);
            v[i] = high > low ? nori__nn_clamp(v[i], low, high) : v[i];
        }
    }
    nori__nn_store_f64(y, 0, y->count, v);
}

/* Both buffers hold the largest stage. */
static nori_status resize_smooth(nori_call *call, const nori__resize *r)
{
    const nori_tensor *x = call->in[0];
    int64_t dims[NORI_MAX_RANK], largest = x->count, taps = 0;
    size_t bytes, weight_bytes;
    nori__tensor_dims(x, dims);
    for (int d = 0; d < x->rank; d++) {
        int64_t size;
        if (changes(r, d, x)) {
            dims[d] = r->out[d];
            taps = taps_of(r, d) > taps ? taps_of(r, d) : taps;
            if (!nori__dims_count(x->rank, dims, &size)) {
                return nori__no_memory(call->err);
            }
            largest = size > largest ? size : largest;
        }
    }
    double *room = nori__nn_scratch(call, largest, 2 * sizeof *room, &bytes);
    double *weights = nori__nn_scratch(call, taps, sizeof *weights, &weight_bytes);
    nori_status status = room && weights ? NORI_OK : nori__no_memory(call->err);
    if (status == NORI_OK) {
        double *a = room, *b = room + largest;
        nori__nn_load_f64(x, 0, x->count, a);
        nori__tensor_dims(x, dims);
        for (int d = 0; d < x->rank; d++) {
            if (changes(r, d, x)) {
                resize_axis(r, d, nori__nn_product(dims, 0, d), dims[d],
                            nori__nn_product(dims, d + 1, x->rank), a, b, weights, taps_of(r, d));
                dims[d] = r->out[d];
                double *t = a;
                a = b;
                b = t;
            }
        }
        store(call->out[0], a);
    }
    nori__release(call->allocator, weights, weight_bytes);
    nori__release(call->allocator, room, bytes);
    return status;
}

static nori_status resize(nori_call *call)
{
    nori__resize r;
    NORI__TRY(nori__nn_need(call, 0, "X", -1));
    NORI__TRY(nori__resize_read(call->node, call->err, &r));
    const nori_tensor *x = call->in[0], *sizes = NULL, *scales = NULL, *roi = NULL;
    int64_t want[NORI_MAX_RANK];
    int n = -1;
    if (r.sizes_in != UINT32_MAX && nori__nn_has(call, r.sizes_in)) {
        sizes = call->in[r.sizes_in];
        n = sizes->count <= NORI_MAX_RANK ? (int)sizes->count : NORI_MAX_RANK;
        for (int i = 0; i < n; i++) {
            want[i] = nori__tensor_get_i64(sizes, i);
        }
    }
    scales = nori__nn_has(call, r.scales_in) ? call->in[r.scales_in] : NULL;
    roi = r.roi_in != UINT32_MAX && nori__nn_has(call, r.roi_in) ? call->in[r.roi_in] : NULL;
    NORI__TRY(
        nori__resize_sizes(call->node, call->err, x->rank, x->dims, roi, scales, want, n, &r));
    for (int d = 0; d < x->rank; d++) {
        if (r.out[d] != call->out[0]->dims[d]) {
            return nori__fail(call->err, NORI_ERROR_DATA, "output axis %d has size %lld, not %lld",
                              d, (long long)call->out[0]->dims[d], (long long)r.out[d]);
        }
        if (!isfinite(r.start[d]) || !isfinite(r.end[d])) {
            return nori__fail(call->err, NORI_ERROR_DATA, "roi of axis %d is not finite", d);
        }
    }
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    if (x->count == 0) {
        return nori__fail(call->err, NORI_ERROR_DATA, "an empty input cannot be resized to a "
                          "non-empty output");
    }
    if (r.mode == NORI__NEAREST) {
        return resize_nearest(call, &r);
    }
    if (x->type == NORI_STRING || x->type == NORI_COMPLEX64 || x->type == NORI_COMPLEX128) {
        return nori__nn_type_error(call, 0);
    }
    return resize_smooth(call, &r);
}

nori_status nori__ref_Resize(nori_call *call)
{
    return resize(call);
}

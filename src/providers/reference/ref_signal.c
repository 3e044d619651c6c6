/* ref_signal.c: DFT and STFT, in double, rounded once. Lengths that are powers of two by the fast
 * transform, others by the sum. A NaN or infinity reaches the whole line. Length 0 has no results.
 */
#include "providers/reference/ref_nn.h"

#include <math.h>

/* Room for transforms of one length. */
typedef struct fourier {
    int64_t n;
    bool inverse;
    double *cosines, *sines; /* of 2 pi k / n, sign of the direction in sines */
    double *re, *im;         /* in and out */
    double *out_re, *out_im; /* for the plain sum */
    double *room;
    size_t bytes;
} fourier;

static nori_status fourier_new(const nori_call *call, int64_t n, bool inverse, fourier *f)
{
    *f = (fourier){.n = n, .inverse = inverse};
    if (n > INT32_MAX) {
        return nori__fail(call->err, NORI_ERROR_DATA, "a transform of length %lld", (long long)n);
    }
    f->room = nori__nn_scratch(call, n, 6 * sizeof(double), &f->bytes);
    if (!f->room) {
        return nori__no_memory(call->err);
    }
    double **parts[] = {&f->cosines, &f->sines, &f->re, &f->im, &f->out_re, &f->out_im};
    for (size_t i = 0; i < NORI__COUNT(parts); i++) {
        *parts[i] = f->room + (int64_t)i * n;
    }
    const double turn = 2 * 3.14159265358979323846;
    for (int64_t k = 0; k < n; k++) {
        f->cosines[k] = cos(turn * (double)k / (double)n);
        f->sines[k] = (inverse ? 1 : -1) * sin(turn * (double)k / (double)n);
    }
    return NORI_OK;
}

static void by_sum(fourier *f)
{
    for (int64_t k = 0; k < f->n; k++) {
        double re = 0, im = 0;
        for (int64_t i = 0, at = 0; i < f->n; i++) {
            re += f->re[i] * f->cosines[at] - f->im[i] * f->sines[at];
            im += f->re[i] * f->sines[at] + f->im[i] * f->cosines[at];
            at += k;
            at -= at >= f->n ? f->n : 0;
        }
        f->out_re[k] = re;
        f->out_im[k] = im;
    }
    memcpy(f->re, f->out_re, (size_t)f->n * sizeof *f->re);
    memcpy(f->im, f->out_im, (size_t)f->n * sizeof *f->im);
}

static void swap(double *v, int64_t a, int64_t b)
{
    double t = v[a];
    v[a] = v[b];
    v[b] = t;
}

static void by_halves(fourier *f)
{
    for (int64_t i = 1, j = 0; i < f->n; i++) { /* bit-reversed order */
        int64_t bit = f->n >> 1;
        for (; j & bit; bit >>= 1) {
            j ^= bit;
        }
        j ^= bit;
        if (i < j) {
            swap(f->re, i, j);
            swap(f->im, i, j);
        }
    }
    for (int64_t size = 2; size <= f->n; size *= 2) {
        int64_t half = size / 2, step = f->n / size;
        for (int64_t from = 0; from < f->n; from += size) {
            for (int64_t k = 0; k < half; k++) {
                int64_t a = from + k, b = a + half;
                double c = f->cosines[k * step], s = f->sines[k * step];
                double re = f->re[b] * c - f->im[b] * s, im = f->re[b] * s + f->im[b] * c;
                f->re[b] = f->re[a] - re;
                f->im[b] = f->im[a] - im;
                f->re[a] += re;
                f->im[a] += im;
            }
        }
    }
}

static void transform(fourier *f)
{
    if ((f->n & (f->n - 1)) == 0) {
        by_halves(f);
    } else {
        by_sum(f);
    }
    for (int64_t i = 0; i < f->n && f->inverse; i++) {
        f->re[i] /= (double)f->n;
        f->im[i] /= (double)f->n;
    }
}

static nori_status scalar_in(const nori_call *call, uint32_t i, const char *name, int64_t *out)
{
    NORI__TRY(nori__nn_need(call, i, name, -1));
    NORI__TRY(nori__nn_count(call, i, name, 1));
    *out = nori__tensor_get_i64(call->in[i], 0);
    return NORI_OK;
}

/* ---- DFT ---- */

typedef struct dft {
    int64_t size, length, parts; /* of the axis; 1 or 2 numbers an element */
    int64_t out_size, out_parts;
    bool half_in; /* a one-sided spectrum: the other half is its conjugate */
} dft;

static void load_line(const dft *d, fourier *f, const double *x, int64_t step)
{
    int64_t half = d->length / 2 + 1, n = d->half_in ? half : d->length;
    for (int64_t i = 0; i < d->length; i++) {
        f->re[i] = f->im[i] = 0;
    }
    for (int64_t i = 0; i < n && i < d->size && i < d->length; i++) {
        f->re[i] = x[i * step];
        f->im[i] = d->parts == 2 ? x[i * step + 1] : 0;
    }
    if (d->half_in && d->length > 0) {
        f->im[0] = 0;
        if (d->length % 2 == 0) {
            f->im[d->length / 2] = 0;
        }
        for (int64_t i = 1; i < d->length - i; i++) {
            f->re[d->length - i] = f->re[i];
            f->im[d->length - i] = -f->im[i];
        }
    }
}

static nori_status dft_setup(nori_call *call, dft *d, int *axis)
{
    NORI__TRY(nori__nn_need(call, 0, "input", -1));
    const nori_tensor *x = call->in[0];
    bool inverse = nori__attr_i(call->node, "inverse", 0) != 0;
    bool onesided = nori__attr_i(call->node, "onesided", 0) != 0;
    bool old = call->node->version > 0 && call->node->version < 20;
    int64_t at = old ? nori__attr_i(call->node, "axis", 1) : -2;
    if (!old && nori__nn_has(call, 2)) {
        NORI__TRY(scalar_in(call, 2, "axis", &at));
    }
    NORI__TRY(nori__fix_axis(call->err, at, x->rank, axis));
    int last = x->rank - 1;
    d->parts = x->rank > 0 ? x->dims[last] : 0;
    d->half_in = inverse && onesided;
    bool fits = x->type == NORI_DOUBLE && x->rank >= 2 && *axis != last &&
                (d->parts == 1 || d->parts == 2);
    if (!fits || (onesided && !inverse && d->parts == 2)) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "the last dimension of input 0 is %lld, expected 1%s",
                          (long long)d->parts, onesided && !inverse ? " (one-sided)" : " or 2");
    }
    d->size = x->dims[*axis];
    d->length = d->half_in ? (d->size > 0 ? 2 * (d->size - 1) : 0) : d->size;
    if (nori__nn_has(call, 1)) {
        NORI__TRY(scalar_in(call, 1, "dft_length", &d->length));
    }
    d->out_size = call->out[0]->dims[*axis];
    d->out_parts = d->half_in ? 1 : 2;
    if (d->length < 0 || d->out_size != (onesided && !inverse ? d->length / 2 + 1 : d->length)) {
        return nori__fail(call->err, NORI_ERROR_DATA, "dft_length is %lld", (long long)d->length);
    }
    return NORI_OK;
}

static nori_status dft_run(nori_call *call)
{
    dft d = {0};
    fourier f;
    int axis = 0;
    NORI__TRY(dft_setup(call, &d, &axis));
    const nori_tensor *x = call->in[0];
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    if (d.length == 0) {
        return nori__fail(call->err, NORI_ERROR_DATA, "dft_length is 0");
    }
    NORI__TRY(fourier_new(call, d.length, nori__attr_i(call->node, "inverse", 0) != 0, &f));
    int64_t outer = nori__nn_product(x->dims, 0, axis);
    int64_t inner = nori__nn_product(x->dims, axis + 1, x->rank - 1);
    const double *in = x->data;
    double *out = call->out[0]->data;
    for (int64_t line = 0; line < outer * inner; line++) {
        int64_t o = line / inner, j = line % inner;
        load_line(&d, &f, in + (o * d.size * inner + j) * d.parts, inner * d.parts);
        transform(&f);
        for (int64_t k = 0; k < d.out_size; k++) {
            double *to = out + ((o * d.out_size + k) * inner + j) * d.out_parts;
            to[0] = f.re[k];
            if (d.out_parts == 2) {
                to[1] = f.im[k];
            }
        }
    }
    nori__release(call->allocator, f.room, f.bytes);
    return NORI_OK;
}

nori_status nori__ref_DFT(nori_call *call)
{
    return nori__nn_double(call, 0, dft_run);
}

/* ---- STFT ---- */

static nori_status stft(nori_call *call)
{
    int64_t step, length;
    NORI__TRY(nori__nn_need(call, 0, "signal", -1));
    NORI__TRY(scalar_in(call, 1, "frame_step", &step));
    const nori_tensor *x = call->in[0], *window = nori__nn_has(call, 2) ? call->in[2] : NULL;
    const nori_tensor *y = call->out[0];
    length = window ? window->count : 0;
    if (nori__nn_has(call, 3)) {
        NORI__TRY(scalar_in(call, 3, "frame_length", &length));
    }
    int64_t parts = x->rank == 3 ? x->dims[2] : 1;
    if (x->type != NORI_DOUBLE || (x->rank != 2 && x->rank != 3) || (parts != 1 && parts != 2)) {
        return nori__nn_type_error(call, 0);
    }
    if (step < 1 || length < 1 || (window && window->count != length)) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "frame_step %lld, frame_length %lld, window of %lld", (long long)step,
                          (long long)length, (long long)(window ? window->count : 0));
    }
    int64_t size = x->dims[1], frames = size < length ? 0 : (size - length) / step + 1;
    int64_t bins = nori__attr_i(call->node, "onesided", 1) ? length / 2 + 1 : length;
    if (y->dims[1] != frames || y->dims[2] != bins) {
        return nori__fail(call->err, NORI_ERROR_DATA, "%lld frames of %lld do not fit the output",
                          (long long)frames, (long long)bins);
    }
    fourier f;
    NORI__TRY(fourier_new(call, length, false, &f));
    double *out = y->data;
    for (int64_t i = 0; i < x->dims[0] * frames; i++) {
        const double *p = (const double *)x->data + (i / frames * size + i % frames * step) * parts;
        for (int64_t k = 0; k < length; k++) {
            double w = window ? ((const double *)window->data)[k] : 1;
            f.re[k] = w * p[k * parts];
            f.im[k] = parts == 2 ? w * p[k * parts + 1] : 0;
        }
        transform(&f);
        for (int64_t k = 0; k < bins; k++) {
            *out++ = f.re[k];
            *out++ = f.im[k];
        }
    }
    nori__release(call->allocator, f.room, f.bytes);
    return NORI_OK;
}

nori_status nori__ref_STFT(nori_call *call)
{
    return nori__nn_double(call, 0, stft);
}

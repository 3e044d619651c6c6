/* compare.c: agreement to a tolerance: |got - want| <= atol + rtol |want|. */
#include <math.h>
#include <stdio.h>

#include "graph/tensor.h"
#include "base/given.h"
#include "nori/tools.h"

static bool same_string(const nori_tensor *a, const nori_tensor *b, int64_t i)
{
    const nori_string *x = (const nori_string *)a->data + i, *y = (const nori_string *)b->data + i;
    return x->size == y->size && (x->size == 0 || memcmp(x->data, y->data, x->size) == 0);
}

static void shape_text(const nori_tensor *t, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "%s[", nori_type_name(t->type));
    for (int d = 0; d < t->rank && used + 1 < size; d++) {
        used += (size_t)snprintf(out + used, size - used, "%s%lld", d ? "," : "",
                                 (long long)t->dims[d]);
    }
    if (used + 1 < size) {
        snprintf(out + used, size - used, "]");
    }
}

static bool same_form(const nori_tensor *got, const nori_tensor *want, nori_difference *d)
{
    char a[100], b[100];
    if (got->kind != want->kind) {
        snprintf(d->reason, sizeof(d->reason), "another kind of value was expected");
        return false;
    }
    if (got->kind == NORI_KIND_TENSOR &&
        (got->type != want->type || got->rank != want->rank ||
         memcmp(got->dims, want->dims, (size_t)got->rank * sizeof(int64_t)) != 0)) {
        shape_text(got, a, sizeof(a));
        shape_text(want, b, sizeof(b));
        snprintf(d->reason, sizeof(d->reason), "expected %s, got %s", b, a);
        return false;
    }
    if (got->kind != NORI_KIND_TENSOR && got->count != want->count) {
        snprintf(d->reason, sizeof(d->reason), "expected %lld items, got %lld",
                 (long long)want->count, (long long)got->count);
        return false;
    }
    return true;
}

/* One real number; returns how far it is over its tolerance (0: within). */
static double judge(double got, double want, double atol, double rtol, nori_difference *d,
                    double *sums)
{
    if (isnan(got) && isnan(want)) {
        return 0;
    }
    if (got == want) {
        sums[1] += isinf(want) ? 0 : want * want;
        return 0;
    }
    double diff = fabs(got - want);
    if (!isfinite(diff)) { /* NaN or infinity on one side only */
        d->max_abs = INFINITY;
        d->max_rel = INFINITY;
        return INFINITY;
    }
    double scale = fabs(want) > 1e-6 ? fabs(want) : 1e-6;
    d->max_abs = diff > d->max_abs ? diff : d->max_abs;
    d->max_rel = diff / scale > d->max_rel ? diff / scale : d->max_rel;
    sums[0] += diff * diff;
    sums[1] += want * want;
    double over = diff - (atol + rtol * fabs(want));
    return over > 0 ? over : 0;
}

static void compare_tensor(const nori_tensor *got, const nori_tensor *want, double atol,
                           double rtol, nori_difference *d, double *sums, double *worst)
{
    int parts = got->type == NORI_COMPLEX64 || got->type == NORI_COMPLEX128 ? 2 : 1;
    for (int64_t i = 0; i < got->count * parts; i++) {
        double over = 0, a = 0, b = 0;
        if (got->type == NORI_STRING) {
            over = same_string(got, want, i) ? 0 : 1;
        } else if (got->type == NORI_COMPLEX64) {
            a = (double)((const float *)got->data)[i];
            b = (double)((const float *)want->data)[i];
            over = judge(a, b, atol, rtol, d, sums);
        } else if (got->type == NORI_COMPLEX128) {
            a = ((const double *)got->data)[i];
            b = ((const double *)want->data)[i];
            over = judge(a, b, atol, rtol, d, sums);
        } else if ((got->type == NORI_INT64 || got->type == NORI_UINT64) && atol == 0) {
            over = nori__tensor_get_i64(got, i) == nori__tensor_get_i64(want, i) ? 0 : 1;
            a = nori__tensor_get_f64(got, i);
            b = nori__tensor_get_f64(want, i);
            judge(a, b, atol, rtol, d, sums);
        } else {
            a = nori__tensor_get_f64(got, i);
            b = nori__tensor_get_f64(want, i);
            over = judge(a, b, atol, rtol, d, sums);
        }
        d->elements++;
        if (over > 0) {
            d->beyond++;
            if (over > *worst) {
                *worst = over;
                d->worst = (uint64_t)(i / parts);
                d->worst_got = a;
                d->worst_want = b;
            }
        }
    }
}

static bool walk(const nori_tensor *got, const nori_tensor *want, double atol, double rtol,
                 nori_difference *d, double *sums, double *worst)
{
    if (!same_form(got, want, d)) {
        return false;
    }
    if (got->kind == NORI_KIND_TENSOR) {
        compare_tensor(got, want, atol, rtol, d, sums, worst);
        return true;
    }
    for (int64_t i = 0; i < got->count; i++) { /* as deep as types nest */
        if (!walk(((nori_tensor **)got->data)[i], ((nori_tensor **)want->data)[i], atol, rtol, d,
                  sums, worst)) {
            return false;
        }
    }
    return true;
}

void nori_tensor_compare(const nori_tensor *got, const nori_tensor *want, double atol, double rtol,
                         nori_difference *difference)
{
    NORI__ASKED(got, );
    NORI__ASKED(want, );
    NORI__ASKED(difference, );
    nori_difference d = {.size = difference->size};
    double sums[2] = {0, 0}, worst = 0;
    bool same = walk(got, want, atol, rtol, &d, sums, &worst);
    d.rms = sums[1] > 0 ? sqrt(sums[0] / sums[1]) : sums[0] > 0 ? INFINITY : 0;
    d.passes = same && d.beyond == 0;
    memcpy(difference, &d, d.size < sizeof(d) ? d.size : sizeof(d));
}

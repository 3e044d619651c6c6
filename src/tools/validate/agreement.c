/* agreement.c: how well two results agree, added up over many pairs. */
#include <math.h>
#include <stdio.h>

#include "graph/tensor.h"
#include "base/given.h"
#include "nori/tools.h"

#define MOST_TOP 100

void nori_agreement_options_default(nori_agreement_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_agreement_options){.size = sizeof(*options), .atol = -1, .rtol = -1,
                                        .top_k = 5};
}

/* Digits after the point of a type's significand. */
static int significand_bits(nori_type type)
{
    switch (type) {
    case NORI_FLOAT16:
        return 10;
    case NORI_BFLOAT16:
        return 7;
    case NORI_FLOAT8E4M3FN:
    case NORI_FLOAT8E4M3FNUZ:
        return 3;
    case NORI_FLOAT8E5M2:
    case NORI_FLOAT8E5M2FNUZ:
        return 2;
    case NORI_FLOAT4E2M1:
        return 1;
    default:
        return 23;
    }
}

/* The type of a value, or of the first tensor in a group that has one. */
static nori_type type_of(const nori_tensor *t)
{
    while (t->kind != NORI_KIND_TENSOR && t->count > 0 && t->data) {
        t = ((nori_tensor **)t->data)[t->count - 1]; /* a map's values come after its keys */
    }
    return t->kind == NORI_KIND_TENSOR ? (nori_type)t->type : NORI_FLOAT;
}

static void fill_tolerances(nori_agreement_options *o, const nori_tensor *want)
{
    nori_type type = type_of(want);
    bool inexact = nori__type_is_float(type) || type == NORI_COMPLEX64 || type == NORI_COMPLEX128;
    double ulps = 4 * ldexp(1, -significand_bits(type));
    double rtol = !inexact ? 0 : ulps > 1e-3 ? ulps : 1e-3;
    o->atol = o->atol < 0 ? rtol / 10 : o->atol;
    o->rtol = o->rtol < 0 ? rtol : o->rtol;
}

static void add_error(nori_agreement *a, double error)
{
    int i = 0;
    if (error > 0) {
        double limit = 1e-11;
        for (i = 1; i < NORI_DECADES - 1 && error >= limit; i++) {
            limit *= 10;
        }
    }
    a->decades[i]++;
}

static bool is_real(const nori_tensor *t)
{
    return t->kind == NORI_KIND_TENSOR && t->type != NORI_STRING && t->type != NORI_COMPLEX64 &&
           t->type != NORI_COMPLEX128;
}

static void add_numbers(nori_agreement *a, const nori_tensor *got, const nori_tensor *want)
{
    for (int64_t i = 0; i < got->count; i++) {
        double g = nori__tensor_get_f64(got, i), w = nori__tensor_get_f64(want, i);
        a->nan_got += isnan(g) != 0;
        a->nan_want += isnan(w) != 0;
        a->inf_got += isinf(g) != 0;
        a->inf_want += isinf(w) != 0;
        if (isfinite(g) && isfinite(w)) {
            add_error(a, fabs(g - w));
            a->sum_error += (g - w) * (g - w);
            a->sum_want += w * w;
            a->sum_got += g * g;
            a->sum_product += g * w;
        }
    }
}

/* Positions of the k largest of n numbers, largest first; of equal ones the first. */
static void find_top(const nori_tensor *t, int64_t begin, int64_t n, int k, int64_t *top)
{
    int have = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = nori__tensor_get_f64(t, begin + i);
        int at = have;
        while (at > 0 && v > nori__tensor_get_f64(t, begin + top[at - 1])) {
            at--;
        }
        if (at < k) {
            int last = have < k ? have : k - 1;
            for (int m = last; m > at; m--) {
                top[m] = top[m - 1];
            }
            top[at] = i;
            have += have < k;
        }
    }
}

/* Rows of class scores: the last axis of floats of rank 1 or 2. */
static void add_ranks(nori_agreement *a, const nori_tensor *got, const nori_tensor *want, int k)
{
    int64_t x[MOST_TOP], y[MOST_TOP];
    int64_t n = got->rank >= 1 && got->rank <= 2 ? got->dims[got->rank - 1] : 0;
    if (n < 2 || !nori__type_is_float((nori_type)got->type) || got->count == 0) {
        return;
    }
    k = k > MOST_TOP ? MOST_TOP : k < 1 ? 1 : k;
    k = k > n ? (int)n : k;
    for (int64_t begin = 0; begin < got->count; begin += n) {
        int common = 0;
        find_top(got, begin, n, k, x);
        find_top(want, begin, n, k, y);
        for (int i = 0; i < k; i++) {
            for (int j = 0; j < k; j++) {
                common += x[i] == y[j];
            }
        }
        a->rows++;
        a->sum_top1 += x[0] == y[0];
        a->sum_topk += (double)common / k;
    }
}

/* Items of groups one by one: forms are known to be equal. Groups nest as deep as types do. */
static void walk(nori_agreement *a, const nori_tensor *got, const nori_tensor *want, int k)
{
    if (is_real(got)) {
        add_numbers(a, got, want);
        add_ranks(a, got, want, k);
    }
    for (int64_t i = 0; got->kind != NORI_KIND_TENSOR && i < got->count; i++) {
        walk(a, ((nori_tensor **)got->data)[i], ((nori_tensor **)want->data)[i], k);
    }
}

static void conclude(nori_agreement *a, const nori_agreement_options *o)
{
    double finite = (double)a->elements;
    double lengths = sqrt(a->sum_want) * sqrt(a->sum_got);
    a->rms = finite > 0 ? sqrt(a->sum_error / finite) : 0;
    a->cosine = lengths > 0 ? a->sum_product / lengths : a->sum_error > 0 ? 0 : 1;
    a->sqnr_db = a->sum_error > 0 ? 10 * log10(a->sum_want / a->sum_error) : INFINITY;
    a->top1 = a->rows ? a->sum_top1 / (double)a->rows : 0;
    a->topk = a->rows ? a->sum_topk / (double)a->rows : 0;
    a->passes = !a->reason[0] && a->nan_got == a->nan_want &&
                (double)a->beyond <= o->max_beyond * (double)a->elements &&
                !(o->min_sqnr_db > 0 && a->sqnr_db < o->min_sqnr_db);
}

void nori_agreement_add(nori_agreement *agreement, const nori_tensor *got, const nori_tensor *want,
                        const nori_agreement_options *options)
{
    NORI__ASKED(agreement, );
    NORI__ASKED(got, );
    NORI__ASKED(want, );
    nori_agreement_options o;
    nori_difference d = {.size = sizeof(d)};
    nori_agreement a = {.size = agreement->size};
    size_t size = a.size < sizeof(a) ? a.size : sizeof(a);
    memcpy(&a, agreement, size);
    nori_agreement_options_default(&o);
    if (options) {
        memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
    }
    fill_tolerances(&o, want);
    a.atol = o.atol;
    a.rtol = o.rtol;
    nori_tensor_compare(got, want, o.atol, o.rtol, &d);
    a.pairs++;
    a.elements += d.elements;
    a.beyond += d.beyond;
    a.max_abs = d.max_abs > a.max_abs ? d.max_abs : a.max_abs;
    a.max_rel = d.max_rel > a.max_rel ? d.max_rel : a.max_rel;
    if (d.reason[0] && !a.reason[0]) {
        snprintf(a.reason, sizeof(a.reason), "%s", d.reason);
    }
    if (!d.reason[0]) {
        walk(&a, got, want, o.top_k);
    }
    conclude(&a, &o);
    memcpy(agreement, &a, size);
}

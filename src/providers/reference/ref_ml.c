/* ref_ml.c: shared parts of ai.onnx.ml: post transforms, labels, rows. */
#include "providers/reference/ref_ml.h"

#include <math.h>

nori_status nori__post_read(const nori_call *call, nori__post *post)
{
    static const char *const names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
    const char *text = nori__attr_s(call->node, "post_transform", NULL);
    int64_t number = nori__attr_i(call->node, "post_transform", 0);
    for (int i = 0; i < (int)NORI__COUNT(names); i++) {
        if (text ? nori__same(text, names[i]) : number == i) {
            *post = (nori__post)i;
            return NORI_OK;
        }
    }
    return nori__fail(call->err, NORI_ERROR_MODEL,
                      "post_transform is %.40s, expected NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or "
                      "PROBIT",
                      text ? text : "another number");
}

/* Inverse of the error function: a closed first guess (Winitzki), then Newton's steps on erf. */
static double inverse_erf(double y)
{
    if (!(y > -1 && y < 1)) {
        return y == 1 ? HUGE_VAL : y == -1 ? -HUGE_VAL : (double)NAN;
    }
    double l = log((1 - y) * (1 + y)), b = 2 / (3.14159265358979323846 * 0.147) + l / 2;
    double x = sqrt(sqrt(b * b - l / 0.147) - b);
    x = y < 0 ? -x : x;
    for (int i = 0; i < 3; i++) {
        x -= (erf(x) - y) * 0.88622692545275801365 * exp(x * x);
    }
    return x;
}

static double logistic(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

void nori__post_apply(nori__post post, double *scores, int64_t n)
{
    double most = n > 0 ? scores[0] : 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        most = scores[i] > most ? scores[i] : most;
    }
    for (int64_t i = 0; i < n; i++) {
        bool zero = post == NORI__POST_SOFTMAX_ZERO && fabs(scores[i]) <= 1e-7;
        switch (post) {
        case NORI__POST_SOFTMAX:
        case NORI__POST_SOFTMAX_ZERO: /* softmax over what is not 0, as ONNX's own evaluator has it */
            scores[i] = zero ? scores[i] * exp(-most) : exp(scores[i] - most);
            sum += scores[i];
            break;
        case NORI__POST_LOGISTIC:
            scores[i] = logistic(scores[i]);
            break;
        case NORI__POST_PROBIT:
            scores[i] = 1.41421356237309504880 * inverse_erf(2 * scores[i] - 1);
            break;
        default:
            break;
        }
    }
    bool nothing = post == NORI__POST_SOFTMAX_ZERO && sum == 0;
    for (int64_t i = 0; (sum != 0 || nothing) && i < n; i++) {
        scores[i] = nothing ? 0.5 : scores[i] / sum;
    }
}

nori_status nori__rows_of(const nori_call *call, nori__rows *rows)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *t = call->in[0];
    if (t->type == NORI_STRING) {
        return nori__ref_bad_type(call, 0);
    }
    if (t->rank < 1 || t->rank > 2) {
        return nori__fail(call->err, NORI_ERROR_DATA, "input 0 has rank %d, expected [N, C] or [C]",
                          t->rank);
    }
    *rows = (nori__rows){t, t->rank == 2 ? t->dims[0] : 1, t->dims[t->rank - 1]};
    return NORI_OK;
}

const nori__str *nori__attr_strings(const nori__node *node, const char *name, size_t *count)
{
    const nori__attr *a = nori__attr_find(node, name);
    bool there = a && a->kind == NORI__ATTR_STRINGS;
    *count = there ? a->count : 0;
    return there ? a->v.strings : NULL;
}

nori__labels nori__labels_read(const nori__node *node)
{
    nori__labels l = {NULL, NULL, 0};
    l.text = nori__attr_strings(node, "classlabels_strings", &l.count);
    if (l.count == 0) {
        l.text = NULL;
        l.ints = nori__attr_ints(node, "classlabels_int64s", &l.count);
    }
    if (!l.text && l.count == 0) {
        l.ints = nori__attr_ints(node, "classlabels_ints", &l.count);
    }
    return l;
}

nori_status nori__labels_put(const nori__labels *l, nori_tensor *out, int64_t i, int64_t k,
                             nori_error *err)
{
    if (out->type == NORI_STRING) {
        bool there = l->text && (uint64_t)k < l->count;
        return nori__tensor_set_string(out, i, there ? l->text[k].p : "", there ? l->text[k].n : 0,
                                       err);
    }
    ((int64_t *)out->data)[i] = l->ints && (uint64_t)k < l->count ? l->ints[k] : k;
    return NORI_OK;
}

int64_t nori__largest(const double *v, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        best = v[i] > v[best] ? i : best;
    }
    return best;
}

void nori__scores_put(nori_tensor *out, int64_t row, const double *scores, int64_t n)
{
    for (int64_t i = 0; out && i < n; i++) {
        nori__tensor_set_f64(out, row * n + i, scores[i]);
    }
}

nori_status nori__doubles(const nori_call *call, int64_t count, double **out)
{
    size_t bytes;
    *out = NULL;
    if (!nori__mul_size((size_t)count + 1, sizeof(double), &bytes) ||
        !(*out = nori__alloc_zero(call->allocator, bytes))) {
        return nori__no_memory(call->err);
    }
    return NORI_OK;
}

void nori__doubles_free(const nori_call *call, double *p, int64_t count)
{
    nori__release(call->allocator, p, ((size_t)count + 1) * sizeof(double));
}

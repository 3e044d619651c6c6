/* ref_ml.h: what the kernels of ai.onnx.ml share. Scores are computed in double and stored as the
 * output's type says. */
#ifndef NORI_PROVIDERS_REFERENCE_REF_ML_H
#define NORI_PROVIDERS_REFERENCE_REF_ML_H

#include "providers/reference/ref_move.h"

typedef enum nori__post {
    NORI__POST_NONE,
    NORI__POST_SOFTMAX,
    NORI__POST_LOGISTIC,
    NORI__POST_SOFTMAX_ZERO,
    NORI__POST_PROBIT
} nori__post;

/* From the attribute post_transform, text or (TreeEnsemble) number. */
nori_status nori__post_read(const nori_call *call, nori__post *post);
void nori__post_apply(nori__post post, double *scores, int64_t n);

/* Input 0 as rows of features: [N, C], or [C] as one row. */
typedef struct nori__rows {
    const nori_tensor *t;
    int64_t n, width;
} nori__rows;
nori_status nori__rows_of(const nori_call *call, nori__rows *rows);
static inline double nori__rows_get(const nori__rows *r, int64_t row, int64_t column)
{
    return nori__tensor_get_f64(r->t, row * r->width + column);
}

/* Class labels, text or integers, from attributes classlabels_strings and classlabels_ints or
 * classlabels_int64s. */
typedef struct nori__labels {
    const nori__str *text;
    const int64_t *ints;
    size_t count;
} nori__labels;
nori__labels nori__labels_read(const nori__node *node);
/* Label k as element i of out: k itself when there are no labels. */
nori_status nori__labels_put(const nori__labels *l, nori_tensor *out, int64_t i, int64_t k,
                             nori_error *err);

/* A list of strings; NULL when absent. */
const nori__str *nori__attr_strings(const nori__node *node, const char *name, size_t *count);
/* First of the largest; NaN is never larger. */
int64_t nori__largest(const double *v, int64_t n);
/* Scores of one row written to `out`, if wanted. */
void nori__scores_put(nori_tensor *out, int64_t row, const double *scores, int64_t n);
/* count doubles from the call's allocator; given back by nori__doubles_free. */
nori_status nori__doubles(const nori_call *call, int64_t count, double **out);
void nori__doubles_free(const nori_call *call, double *p, int64_t count);

#endif

/* ref_linear.c: LinearClassifier, LinearRegressor, SVMClassifier, SVMRegressor: sums in double. */
#include "providers/reference/ref_ml.h"

#include <math.h>

static nori_status bad(const nori_call *call, const char *what)
{
    return nori__fail(call->err, NORI_ERROR_MODEL, "%s: %s", call->node->op_type, what);
}

/* scores[k] = x . coefficients[k] + intercepts[k] */
static void products(const nori__rows *x, int64_t row, const float *w, const float *b, int64_t n,
                     double *scores)
{
    for (int64_t k = 0; k < n; k++) {
        double sum = 0;
        for (int64_t i = 0; i < x->width; i++) {
            sum += nori__rows_get(x, row, i) * (double)w[k * x->width + i];
        }
        scores[k] = sum + (b ? (double)b[k] : 0);
    }
}

static nori_status linear_scores(const nori_call *call, int64_t want, nori__rows *x,
                                 const float **w, const float **b, int64_t *n)
{
    size_t n_w, n_b;
    NORI__TRY(nori__rows_of(call, x));
    *w = nori__attr_floats(call->node, "coefficients", &n_w);
    *b = nori__attr_floats(call->node, "intercepts", &n_b);
    *n = want > 0 ? want : x->width > 0 ? (int64_t)n_w / x->width : 0;
    int64_t need;
    if (!*w || *n < 1 || !nori__mul_dim(*n, x->width, &need) || (int64_t)n_w != need) {
        return nori__fail(call->err, NORI_ERROR_DATA, "%zu coefficients do not fit %lld features",
                          n_w, (long long)x->width);
    }
    if (n_b > 0 && (int64_t)n_b != *n) {
        return bad(call, "there is not one intercept for each score");
    }
    *b = n_b > 0 ? *b : NULL;
    return NORI_OK;
}

nori_status nori__ref_ml_LinearRegressor(nori_call *call)
{
    nori__rows x;
    nori__post post;
    const float *w, *b;
    int64_t n;
    double *scores = NULL;
    NORI__TRY(nori__post_read(call, &post));
    NORI__TRY(linear_scores(call, nori__attr_i(call->node, "targets", 1), &x, &w, &b, &n));
    NORI__TRY(nori__doubles(call, n, &scores));
    for (int64_t r = 0; r < x.n; r++) {
        products(&x, r, w, b, n, scores);
        nori__post_apply(post, scores, n);
        nori__scores_put(nori__ref_out(call, 0), r, scores, n);
    }
    nori__doubles_free(call, scores, n);
    return NORI_OK;
}

/* One score for two labels is the second's; above 0 it wins. */
nori_status nori__ref_ml_LinearClassifier(nori_call *call)
{
    nori__rows x;
    nori__post post;
    const float *w, *b;
    int64_t n;
    double *scores = NULL;
    nori__labels labels = nori__labels_read(call->node);
    nori_tensor *label = nori__ref_out(call, 0), *out = nori__ref_out(call, 1);
    nori_status status = NORI_OK;
    NORI__TRY(nori__post_read(call, &post));
    NORI__TRY(linear_scores(call, 0, &x, &w, &b, &n));
    bool single = n == 1 && labels.count == 2;
    if (!single && labels.count > 0 && (int64_t)labels.count != n) {
        return bad(call, "there are not as many labels as scores");
    }
    NORI__TRY(nori__doubles(call, n + 1, &scores));
    for (int64_t r = 0; status == NORI_OK && r < x.n; r++) {
        products(&x, r, w, b, n, scores);
        int64_t best = n > 1 ? nori__largest(scores, n) : single ? scores[0] > 0 : 0;
        if (single && post != NORI__POST_SOFTMAX && post != NORI__POST_SOFTMAX_ZERO) {
            nori__post_apply(post, scores, 1);
            scores[1] = scores[0];
            scores[0] = 1 - scores[1];
        } else if (single) {
            scores[1] = scores[0];
            scores[0] = -scores[1];
            nori__post_apply(post, scores, 2);
        } else {
            nori__post_apply(post, scores, n);
        }
        nori__scores_put(out, r, scores, single ? 2 : n);
        if (label) {
            status = nori__labels_put(&labels, label, r, best, call->err);
        }
    }
    nori__doubles_free(call, scores, n + 1);
    return status;
}

/* ---- support vectors ---- */

typedef struct machine {
    const nori_call *call;
    nori__rows x;
    char kernel; /* first letter of its name */
    double gamma, coef0, degree;
    const float *vectors, *weights, *rho, *prob_a, *prob_b;
    int64_t n_vectors, n_rho, n_weights, n_prob;
} machine;

static nori_status machine_read(const nori_call *call, machine *m)
{
    size_t n, n_vectors, n_weights, n_rho, n_a, n_b;
    m->call = call;
    NORI__TRY(nori__rows_of(call, &m->x));
    const char *kernel = nori__attr_s(call->node, "kernel_type", "LINEAR");
    const float *p = nori__attr_floats(call->node, "kernel_params", &n);
    if (!nori__same(kernel, "LINEAR") && !nori__same(kernel, "POLY") &&
        !nori__same(kernel, "RBF") && !nori__same(kernel, "SIGMOID")) {
        return bad(call, "kernel_type is not LINEAR, POLY, RBF or SIGMOID");
    }
    m->kernel = kernel[0];
    m->gamma = n > 0 ? (double)p[0] : 0;
    m->coef0 = n > 1 ? (double)p[1] : 0;
    m->degree = n > 2 ? (double)p[2] : 0;
    m->vectors = nori__attr_floats(call->node, "support_vectors", &n_vectors);
    m->weights = nori__attr_floats(call->node, "coefficients", &n_weights);
    m->rho = nori__attr_floats(call->node, "rho", &n_rho);
    m->prob_a = nori__attr_floats(call->node, "prob_a", &n_a);
    m->prob_b = nori__attr_floats(call->node, "prob_b", &n_b);
    m->n_weights = (int64_t)n_weights;
    m->n_rho = (int64_t)n_rho;
    m->n_prob = (int64_t)n_a;
    if (n_a != n_b || (n_vectors > 0 && (m->x.width < 1 || (int64_t)n_vectors % m->x.width != 0))) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "%zu numbers of support vectors do not fit %lld features, or prob_a and "
                          "prob_b differ in length",
                          n_vectors, (long long)m->x.width);
    }
    m->n_vectors = n_vectors > 0 ? (int64_t)n_vectors / m->x.width : 0;
    return NORI_OK;
}

static double kernel(const machine *m, int64_t row, const float *v)
{
    double sum = 0;
    for (int64_t i = 0; i < m->x.width; i++) {
        double a = nori__rows_get(&m->x, row, i), b = (double)v[i];
        sum += m->kernel == 'R' ? (a - b) * (a - b) : a * b;
    }
    switch (m->kernel) {
    case 'P':
        return pow(m->gamma * sum + m->coef0, m->degree);
    case 'R':
        return exp(-m->gamma * sum);
    case 'S':
        return tanh(m->gamma * sum + m->coef0);
    default:
        return sum;
    }
}

nori_status nori__ref_ml_SVMRegressor(nori_call *call)
{
    machine m;
    nori__post post;
    NORI__TRY(machine_read(call, &m));
    NORI__TRY(nori__post_read(call, &post));
    bool linear = nori__attr_i(call->node, "n_supports", 0) == 0;
    bool one_class = nori__attr_i(call->node, "one_class", 0) != 0;
    int64_t n = linear ? m.x.width : m.n_vectors;
    if (m.n_rho < 1 || m.n_weights != n) {
        return bad(call, "rho is missing, or the coefficients do not fit");
    }
    for (int64_t r = 0; r < m.x.n; r++) {
        double sum = linear ? kernel(&m, r, m.weights) : 0;
        for (int64_t i = 0; !linear && i < n; i++) {
            sum += (double)m.weights[i] * kernel(&m, r, m.vectors + i * m.x.width);
        }
        sum += (double)m.rho[0];
        if (one_class) {
            sum = sum > 0 ? 1 : -1;
        }
        nori__post_apply(post, &sum, 1);
        nori__scores_put(nori__ref_out(call, 0), r, &sum, 1);
    }
    return NORI_OK;
}

/* Class probabilities from those of pairs: the second method of Wu, Lin and Weng, "Probability
 * Estimates for Multi-class Classification by Pairwise Coupling" (2004), their algorithm 2. r is
 * n x n, q n x n scratch, qp n scratch. */
static void couple(int64_t n, const double *r, double *q, double *qp, double *p)
{
    for (int64_t t = 0; t < n; t++) {
        p[t] = 1 / (double)n;
        q[t * n + t] = 0;
        for (int64_t j = 0; j < n; j++) {
            if (j != t) {
                q[t * n + t] += r[j * n + t] * r[j * n + t];
                q[t * n + j] = -r[j * n + t] * r[t * n + j];
            }
        }
    }
    for (int64_t round = 0; round < (n > 100 ? n : 100); round++) {
        double total = 0, worst = 0;
        for (int64_t t = 0; t < n; t++) {
            qp[t] = 0;
            for (int64_t j = 0; j < n; j++) {
                qp[t] += q[t * n + j] * p[j];
            }
            total += p[t] * qp[t];
        }
        for (int64_t t = 0; t < n; t++) {
            worst = fabs(qp[t] - total) > worst ? fabs(qp[t] - total) : worst;
        }
        if (worst < 0.005 / (double)n) {
            return;
        }
        for (int64_t t = 0; t < n; t++) {
            double diff = (total - qp[t]) / q[t * n + t];
            p[t] += diff;
            total = (total + diff * (diff * q[t * n + t] + 2 * qp[t])) / (1 + diff) / (1 + diff);
            for (int64_t j = 0; j < n; j++) {
                qp[j] = (qp[j] + diff * q[t * n + j]) / (1 + diff);
                p[j] /= 1 + diff;
            }
        }
    }
}

/* Decisions of all pairs of classes i < j: above 0 is a vote for i. */
static void decide(const machine *m, const int64_t *sizes, int64_t n, const double *k,
                   double *pairs, double *votes)
{
    int64_t pair = 0, start_i = 0;
    for (int64_t i = 0; i < n; i++) {
        votes[i] = 0;
    }
    for (int64_t i = 0; i < n; start_i += sizes[i], i++) {
        int64_t start_j = start_i + sizes[i];
        for (int64_t j = i + 1; j < n; start_j += sizes[j], j++, pair++) {
            double sum = 0;
            const float *wi = m->weights + (j - 1) * m->n_vectors,
                        *wj = m->weights + i * m->n_vectors;
            for (int64_t s = start_i; s < start_i + sizes[i]; s++) {
                sum += (double)wi[s] * k[s];
            }
            for (int64_t s = start_j; s < start_j + sizes[j]; s++) {
                sum += (double)wj[s] * k[s];
            }
            pairs[pair] = sum + (double)m->rho[pair];
            votes[pairs[pair] > 0 ? i : j]++;
        }
    }
}

static void probabilities(const machine *m, int64_t n, const double *pairs, double *work, double *p)
{
    double *r = work, *q = work + n * n, *qp = work + 2 * n * n;
    for (int64_t i = 0, pair = 0; i < n; i++) {
        for (int64_t j = i + 1; j < n; j++, pair++) {
            double v = pairs[pair] * (double)m->prob_a[pair] + (double)m->prob_b[pair];
            double one = 1 / (1 + exp(v));
            one = one < 1e-7 ? 1e-7 : one > 1 - 1e-7 ? 1 - 1e-7 : one;
            r[i * n + j] = one;
            r[j * n + i] = 1 - one;
        }
    }
    couple(n, r, q, qp, p);
}

static nori_status classify(const machine *m, const nori__labels *labels, const int64_t *sizes,
                            nori__post post, double *work)
{
    int64_t n = (int64_t)labels->count, n_pairs = n * (n - 1) / 2;
    double *k = work, *pairs = k + m->n_vectors, *votes = pairs + n_pairs + 1, *p = votes + n;
    double *more = p + n + 1;
    nori_tensor *label = nori__ref_out(m->call, 0), *out = nori__ref_out(m->call, 1);
    for (int64_t r = 0; r < m->x.n; r++) {
        int64_t best, n_scores = n;
        const double *scores = p;
        if (!sizes) { /* one linear function a class */
            for (int64_t c = 0; c < n; c++) {
                p[c] = kernel(m, r, m->weights + c * m->x.width) + (double)m->rho[0];
            }
            best = nori__largest(p, n);
            nori__post_apply(post, p, n);
        } else {
            for (int64_t s = 0; s < m->n_vectors; s++) {
                k[s] = kernel(m, r, m->vectors + s * m->x.width);
            }
            decide(m, sizes, n, k, pairs, votes);
            best = nori__largest(votes, n); /* also where probabilities would say otherwise */
            if (m->n_prob > 0) {
                probabilities(m, n, pairs, more, p);
            } else if (n == 2) { /* as ONNX's own evaluator: the label is by the vote alone */
                p[0] = -pairs[0];
                p[1] = pairs[0];
            } else {
                scores = pairs;
                n_scores = n_pairs;
            }
            nori__post_apply(post, scores == p ? p : pairs, n_scores);
        }
        nori__scores_put(out, r, scores, n_scores);
        if (label) {
            NORI__TRY(nori__labels_put(labels, label, r, best, m->call->err));
        }
    }
    return NORI_OK;
}

nori_status nori__ref_ml_SVMClassifier(nori_call *call)
{
    machine m;
    nori__post post;
    nori__labels labels = nori__labels_read(call->node);
    size_t n_sizes;
    const int64_t *sizes = nori__attr_ints(call->node, "vectors_per_class", &n_sizes);
    NORI__TRY(machine_read(call, &m));
    NORI__TRY(nori__post_read(call, &post));
    int64_t n = (int64_t)labels.count, total = 0;
    bool vectors = n_sizes > 0;
    if (n < 2 || n > 65536 || (vectors && n_sizes != labels.count)) {
        return bad(call, "the class labels are missing or do not fit vectors_per_class");
    }
    for (size_t i = 0; i < n_sizes; i++) {
        if (sizes[i] < 0 || !nori__add_i64(total, sizes[i], &total)) {
            return bad(call, "vectors_per_class has a negative entry");
        }
    }
    int64_t n_pairs = n * (n - 1) / 2, wide = vectors ? m.n_vectors * (n - 1) : n * m.x.width;
    if ((vectors && total != m.n_vectors) || m.n_weights != wide ||
        (vectors ? m.n_rho != n_pairs : m.n_rho != 1 && m.n_rho != n) ||
        (m.n_prob > 0 && m.n_prob != n_pairs)) {
        return bad(call,
                   "support vectors, coefficients, rho or probabilities do not fit the classes");
    }
    int64_t count = m.n_vectors + n_pairs + 4 * n + 4 + (m.n_prob > 0 ? 2 * n * n : 0);
    double *work = NULL;
    NORI__TRY(nori__doubles(call, count, &work));
    nori_status status = classify(&m, &labels, vectors ? sizes : NULL, post, work);
    nori__doubles_free(call, work, count);
    return status;
}

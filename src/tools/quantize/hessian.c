/* hessian.c: what samples feed into products, as sums of x x^T: how much an error of one weight of a
 * column matters, and which others can make up for it. Memory depends on the model alone: products
 * whose inputs are too wide for it are left out. */
#include <math.h>

#include "ops/op.h"
#include "tools/quantize/search.h"
#include "tools/quantize/weight_fit.h"

#define MOST_ROWS 2048                   /* the factor takes rows^3 */
#define MOST_BYTES ((size_t)512 << 20)   /* of all sums */
#define DAMPING 0.01                     /* of the mean of the diagonal, added to it */

typedef struct look {
    nori__map *hessians;
    bool failed;
} look;

static void add(void *user, const char *name, const nori_tensor *t)
{
    look *l = user;
    nori__q_hessian *h = nori__map_get(l->hessians, name);
    if (!h || t->kind != NORI_KIND_TENSOR || t->type != NORI_FLOAT || t->rank < 1 ||
        t->dims[t->rank - 1] != h->size) {
        return;
    }
    const float *x = t->data;
    for (int64_t r = 0; r < t->count / h->size; r++, x += h->size) {
        for (int64_t i = 0; i < h->size; i++) {
            double v = (double)x[i], *row = h->sums + i * h->size;
            for (int64_t k = i; isfinite(v) && v != 0 && k < h->size; k++) {
                row[k] += v * (double)x[k];
            }
        }
        h->rows++;
    }
}

nori_status nori__q_see_products(nori__quantizer *q, nori__arena *arena, nori__map *hessians)
{
    size_t bytes = 0, left_out = 0;
    look l = {.hessians = hessians};
    for (const nori__node *n = q->ir->main->first; n; n = n->next) {
        const nori_tensor *w = q->chosen[n->id] ? nori__value_const(n->inputs[1]) : NULL;
        bool product = nori__node_is(n, NORI__OP_ONNX_MatMul) || nori__node_is(n, NORI__OP_ONNX_Gemm);
        int64_t size = w && product ? nori__q_in_channels(n, w) : 0;
        if (size == 0 || nori__attr_i(n, "transA", 0) || nori__map_get(hessians, n->inputs[0]->name)) {
            continue;
        }
        size_t need = size <= MOST_ROWS ? (size_t)size * (size_t)size * sizeof(double) : SIZE_MAX;
        if (need > MOST_BYTES - bytes) {
            left_out++;
            continue;
        }
        nori__q_hessian *h = nori__arena_alloc(arena, sizeof(*h));
        char *name = nori__arena_text(arena, n->inputs[0]->name);
        double *sums = nori__arena_array(arena, (size_t)size * (size_t)size, sizeof(*sums));
        if (!h || !name || !sums || !nori__map_put(hessians, name, h)) {
            return nori__no_memory(q->err);
        }
        *h = (nori__q_hessian){size, sums, 0};
        bytes += need;
    }
    if (left_out > 0) {
        nori__q_note(q, "%zu products have inputs too wide for GPTQ: their weights are rounded to nearest, "
                        "with scales of least squared error",
                     left_out);
    }
    return nori__q_watch(q, "products", add, &l);
}

/* In place, upper: A = U^T U from A's upper half; false: not positive. */
static bool cholesky(double *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double *row = a + i * n;
        for (int64_t k = 0; k < i; k++) {
            const double *above = a + k * n;
            double f = above[i];
            for (int64_t j = i; f != 0 && j < n; j++) {
                row[j] -= f * above[j];
            }
        }
        if (!(row[i] > 0)) {
            return false;
        }
        double root = 1 / sqrt(row[i]);
        for (int64_t j = i; j < n; j++) {
            row[j] *= root;
        }
    }
    return true;
}

/* inverse = V V^T with V = U^-1, upper. */
static void invert(const double *u, int64_t n, double *v, double *inverse)
{
    memset(v, 0, (size_t)n * (size_t)n * sizeof(*v));
    for (int64_t i = n - 1; i >= 0; i--) { /* rows from below: v[i] = (e_i - sum u[i][k] v[k]) / u[i][i] */
        double *row = v + i * n;
        row[i] = 1;
        for (int64_t k = i + 1; k < n; k++) {
            double f = u[i * n + k];
            const double *below = v + k * n;
            for (int64_t j = k; f != 0 && j < n; j++) {
                row[j] -= f * below[j];
            }
        }
        for (int64_t j = i; j < n; j++) {
            row[j] /= u[i * n + i];
        }
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = i; j < n; j++) {
            double sum = 0;
            for (int64_t k = j; k < n; k++) {
                sum += v[i * n + k] * v[j * n + k];
            }
            inverse[i * n + j] = sum;
        }
    }
}

bool nori__q_hessian_factor(const nori_allocator *a, nori__q_hessian *h)
{
    int64_t n = h->size;
    double mean = 0;
    size_t bytes = (size_t)n * (size_t)n * sizeof(double);
    for (int64_t i = 0; i < n; i++) {
        mean += h->sums[i * n + i] / (double)n;
    }
    double *v = mean > 0 ? nori__alloc(a, bytes) : NULL;
    double *inverse = v ? nori__alloc(a, bytes) : NULL;
    for (int64_t i = 0; inverse && i < n; i++) {
        h->sums[i * n + i] += DAMPING * mean;
    }
    bool ok = inverse && cholesky(h->sums, n);
    if (ok) {
        invert(h->sums, n, v, inverse);
        ok = cholesky(inverse, n);
        memcpy(h->sums, inverse, bytes);
    }
    nori__release(a, v, v ? bytes : 0);
    nori__release(a, inverse, inverse ? bytes : 0);
    return ok;
}

/* ref_reduce.c: the Reduce operators.
 *
 * Axes that run alike (kept or folded) are joined; then each block of results goes over what folds
 * into it. Floats are summed in double in a fixed order and rounded once; integers wrap, Mean of
 * integers truncates. NaN spreads, in Max and Min too. Nothing to fold gives: sums 0, product 1, Max
 * the smallest and Min the largest value of the type, logarithms -infinity, Mean NaN (integers 0).
 * L2 and the logarithms of integers go through double and truncate. */
#include <math.h>

#include "ops/families.h"
#include "ops/reduce.h"
#include "providers/reference/ref.h"

enum { GRAIN = 16384 };

#define SIGN_BIT ((uint64_t)1 << 63)

typedef enum fold_kind { FOLD_SUM, FOLD_ABS, FOLD_SQUARE, FOLD_MAX, FOLD_MIN, FOLD_PROD, FOLD_EXP } fold_kind;
typedef enum finish_kind { FINISH_NONE, FINISH_MEAN, FINISH_SQRT, FINISH_LOG, FINISH_LOG_EXP } finish_kind;

typedef struct job {
    const nori_tensor *x;
    nori_tensor *y;
    fold_kind fold;
    finish_kind finish;
    bool integer;
    /* Joined axes but the innermost, which is: wide, kept (a row of results) or folded. */
    int kept, folded;
    int64_t kept_dim[NORI_MAX_RANK], kept_stride[NORI_MAX_RANK];
    int64_t fold_dim[NORI_MAX_RANK], fold_stride[NORI_MAX_RANK];
    int64_t folds; /* product of fold_dim */
    bool inner_folds;
    int64_t inner;  /* size of the innermost joined axis */
    int64_t pieces; /* blocks in a row of results */
    int64_t count;  /* elements that fold into one result */
} job;

/* ---- folding one block into results ---- */

/* acc[i * by] takes in x[i]: by 0 folds the block into one result, 1 keeps places. */
static void fold_f64(fold_kind fold, const double *x, int64_t n, int64_t by, double *acc,
                     const double *shift)
{
#define EACH(expression)                 \
    for (int64_t i = 0; i < n; i++) {    \
        double *a = acc + i * by;        \
        double v = x[i];                 \
        *a = (expression);               \
    }                                    \
    break
    if (fold == FOLD_SUM && by == 0) { /* four chains, so that additions overlap */
        double s[4] = {0, 0, 0, 0};
        int64_t i = 0;
        for (; i + 4 <= n; i += 4) {
            s[0] += x[i];
            s[1] += x[i + 1];
            s[2] += x[i + 2];
            s[3] += x[i + 3];
        }
        for (; i < n; i++) {
            s[0] += x[i];
        }
        *acc += (s[0] + s[1]) + (s[2] + s[3]);
        return;
    }
    switch (fold) {
    case FOLD_SUM:
        EACH(*a + v);
    case FOLD_ABS:
        EACH(*a + fabs(v));
    case FOLD_SQUARE:
        EACH(*a + v * v);
    case FOLD_MAX:
        EACH(v > *a || isnan(v) ? v : *a);
    case FOLD_MIN:
        EACH(v < *a || isnan(v) ? v : *a);
    case FOLD_PROD:
        EACH(*a * v);
    case FOLD_EXP: /* an infinite shift is the result itself: see finish_f64 */
        EACH(isinf(shift[i * by]) ? *a : *a + exp(v - shift[i * by]));
    }
#undef EACH
}

static void fold_i64(fold_kind fold, const int64_t *x, int64_t n, int64_t by, int64_t *acc)
{
#define EACH(expression)                 \
    for (int64_t i = 0; i < n; i++) {    \
        int64_t *a = acc + i * by;       \
        uint64_t s = (uint64_t)*a;       \
        uint64_t v = (uint64_t)x[i];     \
        *a = (int64_t)(expression);      \
    }                                    \
    break
    switch (fold) {
    case FOLD_SUM:
        EACH(s + v);
    case FOLD_ABS:
        EACH(x[i] < 0 ? s - v : s + v);
    case FOLD_SQUARE:
        EACH(s + v * v);
    case FOLD_MAX:
        EACH(x[i] > *a ? v : s);
    case FOLD_MIN:
        EACH(x[i] < *a ? v : s);
    case FOLD_PROD:
        EACH(s * v);
    case FOLD_EXP:
        break;
    }
#undef EACH
}

/* ---- one block of results ---- */

/* Runs fn over every block of x that folds into n results whose first element is at. */
typedef struct results {
    const job *j;
    int64_t at, n;
    bool flip; /* uint64 in order as int64 */
    union {
        double f[NORI__REF_BLOCK];
        int64_t i[NORI__REF_BLOCK];
    } acc;
} results;

static void take_in(results *r, fold_kind fold, int64_t at, const double *shift)
{
    const job *j = r->j;
    int64_t total = j->inner_folds ? j->inner : r->n, by = j->inner_folds ? 0 : 1;
    for (int64_t k = 0; k < total; k += NORI__REF_BLOCK) {
        int64_t m = total - k < NORI__REF_BLOCK ? total - k : NORI__REF_BLOCK;
        if (j->integer) {
            int64_t block[NORI__REF_BLOCK];
            nori__ref_load_i64(j->x, at + k, 1, m, block);
            for (int64_t i = 0; i < m && r->flip; i++) {
                block[i] = (int64_t)((uint64_t)block[i] ^ SIGN_BIT);
            }
            fold_i64(fold, block, m, by, r->acc.i);
        } else {
            double block[NORI__REF_BLOCK];
            nori__ref_load_f64(j->x, at + k, 1, m, block);
            fold_f64(fold, block, m, by, r->acc.f, shift);
        }
    }
}

static void take_all(results *r, fold_kind fold, const double *shift)
{
    const job *j = r->j;
    int64_t index[NORI_MAX_RANK] = {0}, at = r->at;
    for (int64_t i = 0; i < j->folds; i++) {
        take_in(r, fold, at, shift);
        for (int d = j->folded - 1; d >= 0; d--) {
            at += j->fold_stride[d];
            if (++index[d] < j->fold_dim[d]) {
                break;
            }
            at -= j->fold_stride[d] * j->fold_dim[d];
            index[d] = 0;
        }
    }
}

static int64_t type_limit(nori_type type, bool largest)
{
    unsigned bits = type == NORI_BOOL ? 1 : nori_type_bits(type);
    bool is_signed = type == NORI_INT8 || type == NORI_INT16 || type == NORI_INT32 ||
                     type == NORI_INT64;
    if (bits == 64) { /* uint64 is flipped into this order */
        return largest ? INT64_MAX : INT64_MIN;
    }
    if (is_signed) {
        return largest ? ((int64_t)1 << (bits - 1)) - 1 : -((int64_t)1 << (bits - 1));
    }
    return largest ? ((int64_t)1 << bits) - 1 : 0;
}

static void start(results *r, fold_kind fold)
{
    for (int64_t i = 0; i < r->n; i++) {
        if (r->j->integer) {
            r->acc.i[i] = fold == FOLD_PROD                       ? 1
                          : fold == FOLD_MAX || fold == FOLD_MIN
                              ? type_limit((nori_type)r->j->x->type, fold == FOLD_MIN)
                              : 0;
        } else {
            r->acc.f[i] = fold == FOLD_PROD  ? 1
                          : fold == FOLD_MAX ? -(double)INFINITY
                          : fold == FOLD_MIN ? (double)INFINITY
                                             : 0;
        }
    }
}

static void finish_i64(results *r)
{
    const job *j = r->j;
    for (int64_t i = 0; i < r->n; i++) {
        int64_t *a = &r->acc.i[i];
        if (r->flip) {
            *a = (int64_t)((uint64_t)*a ^ SIGN_BIT);
        } else if (j->finish == FINISH_MEAN && j->count == 0) {
            *a = 0;
        } else if (j->finish == FINISH_MEAN) {
            *a = j->x->type == NORI_UINT64 ? (int64_t)((uint64_t)*a / (uint64_t)j->count)
                                           : *a / j->count;
        }
    }
}

static void finish_f64(results *r, const double *shift)
{
    for (int64_t i = 0; i < r->n; i++) {
        double *a = &r->acc.f[i];
        switch (r->j->finish) {
        case FINISH_NONE:
            break;
        case FINISH_MEAN:
            *a /= (double)r->j->count;
            break;
        case FINISH_SQRT:
            *a = sqrt(*a);
            break;
        case FINISH_LOG:
            *a = log(*a);
            break;
        case FINISH_LOG_EXP:
            *a = isinf(shift[i]) ? shift[i] : log(*a) + shift[i];
            break;
        }
    }
}

static void run(void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const job *j = user;
    for (int64_t u = begin; u < end; u++) {
        int64_t piece = u % j->pieces * NORI__REF_BLOCK, row = u / j->pieces;
        int64_t width = j->inner_folds ? 1 : j->inner, rest = row;
        results r = {.j = j, .at = piece};
        r.n = width - piece < NORI__REF_BLOCK ? width - piece : NORI__REF_BLOCK;
        r.flip = j->integer && j->x->type == NORI_UINT64 &&
                 (j->fold == FOLD_MAX || j->fold == FOLD_MIN);
        for (int d = j->kept - 1; d >= 0; d--) {
            r.at += rest % j->kept_dim[d] * j->kept_stride[d];
            rest /= j->kept_dim[d];
        }
        double shift[NORI__REF_BLOCK];
        if (j->finish == FINISH_LOG_EXP) { /* the largest first, so that exp cannot overflow */
            start(&r, FOLD_MAX);
            take_all(&r, FOLD_MAX, NULL);
            memcpy(shift, r.acc.f, (size_t)r.n * sizeof(*shift));
        }
        start(&r, j->fold);
        take_all(&r, j->fold, shift);
        if (j->integer) {
            finish_i64(&r);
            nori__ref_store_i64(j->y, row * width + piece, r.n, r.acc.i);
        } else {
            finish_f64(&r, shift);
            nori__ref_store_f64(j->y, row * width + piece, r.n, r.acc.f);
        }
    }
}

/* ---- the operators ---- */

/* Joins neighbouring axes of one sort; those of size 1 vanish. */
static void join_axes(job *j, const bool *folds)
{
    int64_t dims[NORI_MAX_RANK];
    bool sort[NORI_MAX_RANK];
    int n = 0;
    if (j->x->count == 0) { /* nothing folds; products of the other sizes need not fit */
        j->inner = j->y->count;
        return;
    }
    for (int d = 0; d < j->x->rank; d++) {
        if (j->x->dims[d] == 1) {
            continue;
        }
        if (n > 0 && sort[n - 1] == folds[d]) {
            dims[n - 1] *= j->x->dims[d];
        } else {
            sort[n] = folds[d];
            dims[n++] = j->x->dims[d];
        }
    }
    j->inner = n > 0 ? dims[n - 1] : 1;
    j->inner_folds = n > 0 && sort[n - 1];
    j->count = j->inner_folds ? j->inner : 1;
    j->folds = 1;
    int64_t stride = j->inner;
    int64_t strides[NORI_MAX_RANK];
    for (int d = n - 2; d >= 0; d--) {
        strides[d] = stride;
        stride *= dims[d];
    }
    for (int d = 0; d < n - 1; d++) {
        if (sort[d]) {
            j->fold_dim[j->folded] = dims[d];
            j->fold_stride[j->folded++] = strides[d];
            j->folds *= dims[d];
            j->count *= dims[d];
        } else {
            j->kept_dim[j->kept] = dims[d];
            j->kept_stride[j->kept++] = strides[d];
        }
    }
}

static nori_status reduce(nori_call *call, fold_kind fold, finish_kind finish)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *x = call->in[0], *axes = nori__ref_in(call, 1);
    nori_tensor *y = nori__ref_out(call, 0);
    bool extreme = fold == FOLD_MAX || fold == FOLD_MIN;
    int64_t list[NORI_MAX_RANK];
    bool folds[NORI_MAX_RANK];
    if (!y || y->count == 0) {
        return NORI_OK;
    }
    bool number = nori__type_is_float((nori_type)x->type) ||
                  (x->type >= NORI_UINT8 && x->type <= NORI_INT64) || x->type == NORI_UINT32 ||
                  x->type == NORI_UINT64;
    if (!number && !(x->type == NORI_BOOL && extreme)) {
        return nori__ref_bad_type(call, 0);
    }
    if (axes && axes->count > NORI_MAX_RANK) {
        return nori__fail(call->err, NORI_ERROR_DATA, "axes (input 1) has %lld entries, rank is %d",
                          (long long)axes->count, x->rank);
    }
    if (axes) {
        nori__ref_load_i64(axes, 0, 1, axes->count, list);
    }
    NORI__TRY(nori__reduce_axes(call->node, axes ? list : NULL, axes ? axes->count : 0, x->rank,
                                NORI_ERROR_DATA, call->err, folds));
    job j = {.x = x, .y = y, .fold = fold, .finish = finish};
    j.integer = !nori__type_is_float((nori_type)x->type) &&
                (finish == FINISH_NONE || finish == FINISH_MEAN);
    join_axes(&j, folds);
    int64_t width = j.inner_folds ? 1 : j.inner;
    j.pieces = (width - 1) / NORI__REF_BLOCK + 1;
    int64_t cost = j.count * (width < NORI__REF_BLOCK ? width : NORI__REF_BLOCK);
    int64_t grain = cost > 0 ? GRAIN / cost : GRAIN;
    nori__parallel_for(call->pool, call->threads, y->count / width * j.pieces,
                       grain > 0 ? grain : 1, run, &j);
    return NORI_OK;
}

#define REDUCE(name, fold, finish)                   \
    nori_status nori__ref_##name(nori_call *call)    \
    {                                                \
        return reduce(call, fold, finish);           \
    }
REDUCE(ReduceSum, FOLD_SUM, FINISH_NONE)
REDUCE(ReduceMean, FOLD_SUM, FINISH_MEAN)
REDUCE(ReduceMax, FOLD_MAX, FINISH_NONE)
REDUCE(ReduceMin, FOLD_MIN, FINISH_NONE)
REDUCE(ReduceProd, FOLD_PROD, FINISH_NONE)
REDUCE(ReduceSumSquare, FOLD_SQUARE, FINISH_NONE)
REDUCE(ReduceL1, FOLD_ABS, FINISH_NONE)
REDUCE(ReduceL2, FOLD_SQUARE, FINISH_SQRT)
REDUCE(ReduceLogSum, FOLD_SUM, FINISH_LOG)
REDUCE(ReduceLogSumExp, FOLD_EXP, FINISH_LOG_EXP)

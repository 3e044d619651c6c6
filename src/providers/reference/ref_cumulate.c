/* ref_cumulate.c: CumSum and CumProd.
 *
 * Floats run in double and are rounded where stored; integers wrap. NaN and infinities spread to
 * all that follows. `exclusive` starts from 0 (1 for products), `reverse` from the end. */
#include "ops/families.h"
#include "providers/reference/ref.h"

enum { GRAIN = 16384 };

typedef struct job {
    const nori_tensor *x;
    nori_tensor *y;
    bool product, exclusive, reverse, integer;
    nori__ref_split s;
    int64_t pieces; /* blocks of columns in one outer step */
} job;

typedef union block {
    double f[NORI__REF_BLOCK];
    int64_t i[NORI__REF_BLOCK];
} block;

static void load(const job *j, int64_t at, int64_t n, block *b)
{
    if (j->integer) {
        nori__ref_load_i64(j->x, at, 1, n, b->i);
    } else {
        nori__ref_load_f64(j->x, at, 1, n, b->f);
    }
}

static void store(const job *j, int64_t at, int64_t n, const block *b)
{
    if (j->integer) {
        nori__ref_store_i64(j->y, at, n, b->i);
    } else {
        nori__ref_store_f64(j->y, at, n, b->f);
    }
}

static void start(const job *j, int64_t n, block *acc)
{
    for (int64_t k = 0; k < n; k++) {
        if (j->integer) {
            acc->i[k] = j->product;
        } else {
            acc->f[k] = j->product;
        }
    }
}

/* acc[a] takes in b[k], and b[k] becomes what acc was or is. */
static void step(const job *j, int64_t a, int64_t k, block *acc, block *b)
{
    if (j->integer) {
        int64_t old = acc->i[a];
        uint64_t x = (uint64_t)old, y = (uint64_t)b->i[k];
        acc->i[a] = (int64_t)(j->product ? x * y : x + y);
        b->i[k] = j->exclusive ? old : acc->i[a];
    } else {
        double old = acc->f[a];
        acc->f[a] = j->product ? old * b->f[k] : old + b->f[k];
        b->f[k] = j->exclusive ? old : acc->f[a];
    }
}

static void one_line(const job *j, int64_t at)
{
    block acc, b;
    int64_t n = j->s.length;
    start(j, 1, &acc);
    for (int64_t done = 0; done < n; done += NORI__REF_BLOCK) {
        int64_t m = n - done < NORI__REF_BLOCK ? n - done : NORI__REF_BLOCK;
        int64_t from = at + (j->reverse ? n - done - m : done);
        load(j, from, m, &b);
        for (int64_t k = 0; k < m; k++) {
            step(j, 0, j->reverse ? m - 1 - k : k, &acc, &b);
        }
        store(j, from, m, &b);
    }
}

static void run(void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const job *j = user;
    for (int64_t i = begin; i < end; i++) {
        block acc, b;
        int64_t outer = i / j->pieces, column = i % j->pieces * NORI__REF_BLOCK;
        int64_t left = j->s.inner - column, m = left < NORI__REF_BLOCK ? left : NORI__REF_BLOCK;
        if (j->s.inner == 1) {
            one_line(j, outer * j->s.length);
            continue;
        }
        start(j, m, &acc);
        for (int64_t r = 0; r < j->s.length; r++) {
            int64_t row = outer * j->s.length + (j->reverse ? j->s.length - 1 - r : r);
            load(j, row * j->s.inner + column, m, &b);
            for (int64_t k = 0; k < m; k++) {
                step(j, k, k, &acc, &b);
            }
            store(j, row * j->s.inner + column, m, &b);
        }
    }
}

static nori_status cumulate(nori_call *call, bool product)
{
    NORI__TRY(nori__ref_need(call, 0));
    NORI__TRY(nori__ref_need(call, 1));
    const nori_tensor *x = call->in[0], *at = call->in[1];
    nori_tensor *y = nori__ref_out(call, 0);
    int axis;
    if (!y || y->count == 0) {
        return NORI_OK;
    }
    bool real = nori__type_is_float((nori_type)x->type);
    if (!real && !(x->type >= NORI_UINT8 && x->type <= NORI_INT64) && x->type != NORI_UINT32 &&
        x->type != NORI_UINT64) {
        return nori__ref_bad_type(call, 0);
    }
    if (at->count != 1) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "axis (input 1) has %lld elements, expected 1", (long long)at->count);
    }
    NORI__TRY(nori__ref_axis(call, nori__tensor_get_i64(at, 0), x->rank > 0 ? x->rank : 1, &axis));
    job j = {x, y, product, nori__attr_i(call->node, "exclusive", 0) != 0,
             nori__attr_i(call->node, "reverse", 0) != 0, !real, nori__ref_split_at(x, axis), 1};
    j.pieces = (j.s.inner - 1) / NORI__REF_BLOCK + 1;
    int64_t width = j.s.inner < NORI__REF_BLOCK ? j.s.inner : NORI__REF_BLOCK;
    int64_t grain = GRAIN / width / j.s.length;
    nori__parallel_for(call->pool, call->threads, j.s.outer * j.pieces, grain > 0 ? grain : 1, run,
                       &j);
    return NORI_OK;
}

nori_status nori__ref_CumSum(nori_call *call)
{
    return cumulate(call, false);
}

nori_status nori__ref_CumProd(nori_call *call)
{
    return cumulate(call, true);
}

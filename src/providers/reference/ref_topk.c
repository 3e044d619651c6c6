/* ref_topk.c: TopK, ArgMax, ArgMin.
 *
 * All compare through one key: an int64 whose order is the order of the values, whatever their
 * type. -0 equals 0. NaN is above everything for TopK (first among the largest, last among the
 * smallest) and wins ArgMax and ArgMin, as numpy has it. Of equal values the lower index comes
 * first; select_last_index takes the last. ArgMax along an axis of size 0 is an error DATA. */
#include <math.h>

#include "ops/families.h"
#include "ops/reduce.h"
#include "providers/reference/ref.h"

enum { GRAIN = 8192 };

#define SIGN_BIT ((uint64_t)1 << 63)

static int64_t key_of_f64(double v, int64_t nan)
{
    int64_t bits;
    if (isnan(v)) {
        return nan;
    }
    v += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &v, sizeof(bits));
    return bits >= 0 ? bits : (int64_t)(~(uint64_t)bits | SIGN_BIT);
}

/* Keys of n <= NORI__REF_BLOCK elements from index first on; down turns the order round. */
static void load_keys(const nori_tensor *t, int64_t first, int64_t step, int64_t n, bool down,
                      bool nan_wins, int64_t *keys)
{
    if (nori__type_is_float((nori_type)t->type)) {
        double block[NORI__REF_BLOCK];
        for (int64_t i = 0; i < n && step != 1; i++) {
            nori__ref_load_f64(t, first + i * step, 1, 1, &block[i]);
        }
        if (step == 1) {
            nori__ref_load_f64(t, first, 1, n, block);
        }
        for (int64_t i = 0; i < n; i++) {
            keys[i] = key_of_f64(block[i], down && nan_wins ? INT64_MIN : INT64_MAX);
        }
    } else {
        for (int64_t i = 0; i < n && step != 1; i++) {
            nori__ref_load_i64(t, first + i * step, 1, 1, &keys[i]);
        }
        if (step == 1) {
            nori__ref_load_i64(t, first, 1, n, keys);
        }
        for (int64_t i = 0; i < n && t->type == NORI_UINT64; i++) {
            keys[i] = (int64_t)((uint64_t)keys[i] ^ SIGN_BIT);
        }
    }
    for (int64_t i = 0; i < n && down; i++) {
        keys[i] = ~keys[i];
    }
}

static bool comparable(const nori_tensor *t)
{
    return t->type != NORI_STRING && t->type != NORI_COMPLEX64 && t->type != NORI_COMPLEX128 &&
           t->type != NORI_UNDEFINED;
}

/* ---- ArgMax, ArgMin ---- */

typedef struct arg {
    const nori_tensor *x;
    int64_t *y;
    bool down, last;
    nori__ref_split s;
    int64_t pieces; /* blocks of columns in one outer step */
} arg;

static void arg_line(const arg *a, int64_t outer)
{
    int64_t keys[NORI__REF_BLOCK], best = 0, where = 0;
    for (int64_t i = 0; i < a->s.length; i += NORI__REF_BLOCK) {
        int64_t m = a->s.length - i < NORI__REF_BLOCK ? a->s.length - i : NORI__REF_BLOCK;
        load_keys(a->x, outer * a->s.length + i, 1, m, a->down, true, keys);
        best = i == 0 ? keys[0] : best;
        for (int64_t k = 0; k < m; k++) {
            if (keys[k] > best || (a->last && keys[k] == best)) {
                best = keys[k];
                where = i + k;
            }
        }
    }
    a->y[outer] = where;
}

static void arg_run(void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const arg *a = user;
    for (int64_t i = begin; i < end; i++) {
        int64_t keys[NORI__REF_BLOCK], best[NORI__REF_BLOCK];
        int64_t outer = i / a->pieces, column = i % a->pieces * NORI__REF_BLOCK;
        int64_t left = a->s.inner - column, m = left < NORI__REF_BLOCK ? left : NORI__REF_BLOCK;
        int64_t *y = a->y + outer * a->s.inner + column;
        if (a->s.inner == 1) {
            arg_line(a, outer);
            continue;
        }
        for (int64_t r = 0; r < a->s.length; r++) {
            load_keys(a->x, (outer * a->s.length + r) * a->s.inner + column, 1, m, a->down, true,
                      keys);
            for (int64_t k = 0; k < m; k++) {
                if (r == 0 || keys[k] > best[k] || (a->last && keys[k] == best[k])) {
                    best[k] = keys[k];
                    y[k] = r;
                }
            }
        }
    }
}

static nori_status arg_of(nori_call *call, bool down)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *x = call->in[0];
    nori_tensor *y = nori__ref_out(call, 0);
    int axis;
    if (!y || y->count == 0) {
        return NORI_OK;
    }
    if (!comparable(x)) {
        return nori__ref_bad_type(call, 0);
    }
    NORI__TRY(nori__scalar_axis(call->node, 0, x->rank, NORI_ERROR_DATA, call->err, &axis));
    arg a = {x, y->data, down, nori__attr_i(call->node, "select_last_index", 0) != 0,
             nori__ref_split_at(x, axis), 1};
    if (a.s.length == 0) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "axis %d of input 0 of %s has size 0: there is no element to name", axis,
                          call->node->op_type);
    }
    a.pieces = (a.s.inner - 1) / NORI__REF_BLOCK + 1;
    int64_t width = a.s.inner < NORI__REF_BLOCK ? a.s.inner : NORI__REF_BLOCK;
    int64_t grain = GRAIN / width / a.s.length;
    nori__parallel_for(call->pool, call->threads, a.s.outer * a.pieces, grain > 0 ? grain : 1,
                       arg_run, &a);
    return NORI_OK;
}

nori_status nori__ref_ArgMax(nori_call *call)
{
    return arg_of(call, false);
}

nori_status nori__ref_ArgMin(nori_call *call)
{
    return arg_of(call, true);
}

/* ---- TopK ---- */

typedef struct entry {
    int64_t key, index;
} entry;

/* a comes before b in the result. */
static bool before(entry a, entry b)
{
    return a.key > b.key || (a.key == b.key && a.index < b.index);
}

/* heap[0] is what comes last among the entries; moves e down from the top of n entries. */
static void sift(entry *heap, int64_t n, entry e)
{
    int64_t at = 0;
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= n) {
            break;
        }
        if (child + 1 < n && before(heap[child], heap[child + 1])) {
            child++;
        }
        if (!before(e, heap[child])) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = e;
}

static void raise(entry *heap, int64_t at, entry e)
{
    while (at > 0 && before(heap[(at - 1) / 2], e)) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = e;
}

/* The first k of one line, in order. */
static void top_line(const nori_tensor *x, int64_t first, int64_t step, int64_t n, int64_t k,
                     bool down, entry *heap)
{
    int64_t keys[NORI__REF_BLOCK];
    for (int64_t i = 0; i < n; i += NORI__REF_BLOCK) {
        int64_t m = n - i < NORI__REF_BLOCK ? n - i : NORI__REF_BLOCK;
        load_keys(x, first + i * step, step, m, down, false, keys);
        for (int64_t j = 0; j < m; j++) {
            entry e = {keys[j], i + j};
            if (i + j < k) {
                raise(heap, i + j, e);
            } else if (before(e, heap[0])) {
                sift(heap, k, e);
            }
        }
    }
    for (int64_t left = k - 1; left > 0; left--) {
        entry last = heap[0];
        sift(heap, left, heap[left]);
        heap[left] = last;
    }
}

static nori_status top_k(nori_call *call, const nori_tensor *x, int axis, int64_t k, entry *heap)
{
    nori_tensor *values = nori__ref_out(call, 0), *indices = nori__ref_out(call, 1);
    bool down = nori__attr_i(call->node, "largest", 1) == 0;
    nori__ref_split s = nori__ref_split_at(x, axis);
    size_t size = nori_type_bits((nori_type)x->type) / 8;
    for (int64_t i = 0; i < s.outer * s.inner; i++) {
        int64_t outer = i / s.inner, inner = i % s.inner;
        int64_t first = outer * s.length * s.inner + inner, to = outer * k * s.inner + inner;
        top_line(x, first, s.inner, s.length, k, down, heap);
        for (int64_t j = 0; j < k; j++) {
            if (values) {
                memcpy((char *)values->data + (size_t)(to + j * s.inner) * size,
                       (const char *)x->data + (size_t)(first + heap[j].index * s.inner) * size,
                       size);
            }
            if (indices) {
                ((int64_t *)indices->data)[to + j * s.inner] = heap[j].index;
            }
        }
    }
    return NORI_OK;
}

nori_status nori__ref_TopK(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *x = call->in[0], *kt = nori__ref_in(call, 1);
    int axis;
    if (!comparable(x) || nori_type_bits((nori_type)x->type) < 8) {
        return nori__ref_bad_type(call, 0);
    }
    NORI__TRY(nori__scalar_axis(call->node, -1, x->rank, NORI_ERROR_DATA, call->err, &axis));
    int64_t length = x->rank > 0 ? x->dims[axis] : 1, k;
    if (kt && kt->count != 1) {
        return nori__fail(call->err, NORI_ERROR_DATA, "k (input 1) has %lld elements, expected 1",
                          (long long)kt->count);
    }
    k = kt ? nori__tensor_get_i64(kt, 0) : nori__attr_i(call->node, "k", -1);
    if (k < 0 || k > length || (x->rank == 0 && k == 0)) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "k is %lld, but axis %d of input 0 has size %lld", (long long)k, axis,
                          (long long)length);
    }
    if (k == 0 || x->count == 0) {
        return NORI_OK;
    }
    size_t bytes;
    entry *heap = nori__mul_size((size_t)k, sizeof(*heap), &bytes)
                      ? nori__alloc(call->allocator, bytes)
                      : NULL;
    if (!heap) {
        return nori__no_memory(call->err);
    }
    nori_status status = top_k(call, x, axis, k, heap);
    nori__release(call->allocator, heap, bytes);
    return status;
}

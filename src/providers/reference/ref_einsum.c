/* ref_einsum.c: Einsum and Det. Float sums in double, rounded once; integers wrap. An empty sum is
 * 0. Det of an empty matrix is 1, of a singular one 0. */
#include "ops/einsum.h"
#include "providers/reference/ref_nn.h"

#include <math.h>

typedef struct einsum_job {
    nori__einsum e;
    int64_t stride[NORI__EINSUM_OPERANDS][NORI__EINSUM_LABELS];
    int64_t inner[NORI__EINSUM_OPERANDS], n_inner; /* the innermost summed label */
    int summed;                                    /* the other summed labels */
    int8_t sums[NORI__EINSUM_LABELS];
    const void *data[NORI__EINSUM_OPERANDS];
    void *out;
} einsum_job;

#define T double
#define NAME(x) x##_f64
#include "providers/reference/ref_einsum_body.h"
#undef T
#undef NAME
#define T uint64_t
#define NAME(x) x##_u64
#include "providers/reference/ref_einsum_body.h"
#undef T
#undef NAME

/* Strides of labels in each operand; which labels are summed. */
static void lay_out(const nori_call *call, einsum_job *j)
{
    bool kept[NORI__EINSUM_LABELS] = {false};
    for (int o = 0; o < j->e.operands; o++) {
        int64_t step = 1;
        for (int d = j->e.rank[o] - 1; d >= 0; d--) {
            int64_t size = call->in[o]->dims[d];
            /* Size 1 is broadcast; a label twice in one operand walks its diagonal. */
            j->stride[o][j->e.label[o][d]] += size == 1 ? 0 : step;
            step = (int64_t)((uint64_t)step * (uint64_t)size);
        }
    }
    for (int d = 0; d < j->e.out_rank; d++) {
        kept[j->e.out[d]] = true;
    }
    j->n_inner = 1;
    int inner = -1;
    for (int l = 0; l < NORI__EINSUM_LABELS; l++) {
        if (j->e.used[l] && !kept[l]) {
            if (inner >= 0) {
                j->sums[j->summed++] = (int8_t)inner;
            }
            inner = l;
        }
    }
    if (inner >= 0) {
        j->n_inner = j->e.size[inner];
        for (int o = 0; o < j->e.operands; o++) {
            j->inner[o] = j->stride[o][inner];
        }
    }
}

static nori_status setup(nori_call *call, einsum_job *j)
{
    int ranks[NORI__EINSUM_OPERANDS];
    int64_t shapes[NORI__EINSUM_OPERANDS][NORI_MAX_RANK];
    memset(j, 0, sizeof *j);
    for (uint32_t i = 0; i < call->n_in && i < NORI__EINSUM_OPERANDS; i++) {
        NORI__TRY(nori__nn_need(call, i, "operand", -1));
        if (call->in[i]->type != call->in[0]->type) {
            return nori__nn_type_error(call, i);
        }
        ranks[i] = call->in[i]->rank;
        nori__tensor_dims(call->in[i], shapes[i]);
    }
    NORI__TRY(nori__einsum_read(nori__attr_s(call->node, "equation", ""),
                                call->n_in > NORI__EINSUM_OPERANDS ? -1 : (int)call->n_in, ranks,
                                (const int64_t(*)[NORI_MAX_RANK])shapes, &j->e, call->err));
    lay_out(call, j);
    return NORI_OK;
}

static void run(nori_call *call, einsum_job *j, nori__body body)
{
    for (int s = 0; s < j->summed; s++) {
        if (j->e.size[j->sums[s]] == 0) {
            j->n_inner = 0; /* nothing to sum anywhere */
            j->summed = 0;
        }
    }
    nori__parallel_for(call->pool, nori__nn_threads(call), call->out[0]->count, 16, body, j);
}

static nori_status einsum_f64(nori_call *call)
{
    einsum_job j;
    NORI__TRY(setup(call, &j));
    for (uint32_t i = 0; i < call->n_in; i++) {
        j.data[i] = call->in[i]->data;
    }
    j.out = call->out[0]->data;
    run(call, &j, einsum_units_f64);
    return NORI_OK;
}

/* Integers widened to 64 bits. */
static nori_status einsum_integer(nori_call *call)
{
    einsum_job j;
    NORI__TRY(setup(call, &j));
    nori_tensor *y = call->out[0];
    int64_t total = y->count;
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (!nori__add_i64(total, call->in[i]->count, &total)) {
            return nori__no_memory(call->err);
        }
    }
    size_t bytes;
    uint64_t *room = nori__nn_scratch(call, total, sizeof *room, &bytes), *next = room;
    if (!room) {
        return nori__no_memory(call->err);
    }
    for (uint32_t i = 0; i < call->n_in; i++) {
        j.data[i] = next;
        for (int64_t k = 0; k < call->in[i]->count; k++) {
            *next++ = (uint64_t)nori__tensor_get_i64(call->in[i], k);
        }
    }
    j.out = next;
    run(call, &j, einsum_units_u64);
    for (int64_t k = 0; k < y->count; k++) {
        nori__tensor_set_i64(y, k, (int64_t)next[k]);
    }
    nori__release(call->allocator, room, bytes);
    return NORI_OK;
}

nori_status nori__ref_Einsum(nori_call *call)
{
    NORI__TRY(nori__nn_need(call, 0, "operand", -1));
    nori_type type = (nori_type)call->in[0]->type;
    if (nori__type_is_float(type)) {
        return nori__nn_double(call, 0, einsum_f64);
    }
    bool integer = (type >= NORI_UINT8 && type <= NORI_INT64) || type == NORI_UINT32 ||
                   type == NORI_UINT64;
    return integer ? einsum_integer(call) : nori__nn_type_error(call, 0);
}

/* ---- Det ---- */

/* Gaussian elimination with row exchange; destroys m. */
static double determinant(double *m, int64_t n)
{
    double det = 1;
    for (int64_t c = 0; c < n; c++) {
        int64_t best = c;
        for (int64_t r = c + 1; r < n; r++) {
            best = fabs(m[r * n + c]) > fabs(m[best * n + c]) ? r : best;
        }
        if (m[best * n + c] == 0) {
            return 0;
        }
        for (int64_t k = 0; k < n && best != c; k++) {
            double t = m[c * n + k];
            m[c * n + k] = m[best * n + k];
            m[best * n + k] = t;
        }
        det *= best != c ? -m[c * n + c] : m[c * n + c];
        for (int64_t r = c + 1; r < n; r++) {
            double f = m[r * n + c] / m[c * n + c];
            for (int64_t k = c; k < n; k++) {
                m[r * n + k] -= f * m[c * n + k];
            }
        }
    }
    return det;
}

static nori_status det(nori_call *call)
{
    NORI__TRY(nori__nn_need(call, 0, "X", -1));
    const nori_tensor *x = call->in[0];
    if (x->type != NORI_DOUBLE || x->rank < 2 || x->dims[x->rank - 1] != x->dims[x->rank - 2]) {
        return nori__nn_type_error(call, 0);
    }
    int64_t n = x->dims[x->rank - 1], size;
    size_t bytes;
    if (!nori__mul_dim(n, n, &size)) {
        return nori__no_memory(call->err);
    }
    double *m = nori__nn_scratch(call, size, sizeof *m, &bytes);
    if (!m) {
        return nori__no_memory(call->err);
    }
    for (int64_t i = 0; i < call->out[0]->count; i++) {
        if (size > 0) {
            memcpy(m, (const double *)x->data + i * size, (size_t)size * sizeof *m);
        }
        ((double *)call->out[0]->data)[i] = determinant(m, n);
    }
    nori__release(call->allocator, m, bytes);
    return NORI_OK;
}

nori_status nori__ref_Det(nori_call *call)
{
    return nori__nn_double(call, 0, det);
}

/* ref_ms_nbits.c: com.microsoft operators on weights of 2, 4 or 8 bits in blocks: MatMulNBits and
 * GatherBlockQuantized. A weight is (q - zero point) * scale, in double, rounded once with the
 * result. Values are packed from the low bits of a byte on. */
#include "providers/reference/ref_nn.h"

/* Value i of bytes packed with 2, 4 or 8 bits each. */
static int64_t packed(const uint8_t *bytes, int64_t i, int64_t bits)
{
    int64_t per = 8 / bits;
    return bytes[i / per] >> (i % per * bits) & ((1 << bits) - 1);
}

/* ---- MatMulNBits: A, B, scales, zero_points, g_idx, bias ---- */

typedef struct nbits {
    int64_t m, n, k, bits, block, blocks, blob, zero_row;
    const double *a, *scales, *zeros, *bias; /* zeros: unpacked ones */
    const uint8_t *b, *zeros_packed;
    const int32_t *group;
    double *y, *room; /* a row of weights for each thread */
} nbits;

static double zero_of(const nbits *w, int64_t n, int64_t block)
{
    if (w->zeros) {
        return w->zeros[n * w->blocks + block];
    }
    return (double)(w->zeros_packed ? packed(w->zeros_packed + n * w->zero_row, block, w->bits)
                                    : (int64_t)1 << (w->bits - 1));
}

static void columns(void *user, int64_t begin, int64_t end, int thread)
{
    const nbits *w = user;
    double *row = w->room + thread * w->k;
    for (int64_t n = begin; n < end; n++) {
        const uint8_t *b = w->b + n * w->blocks * w->blob;
        for (int64_t k = 0; k < w->k; k++) {
            int64_t block = k / w->block, scale = w->group ? w->group[k] : block;
            double q = (double)packed(b + block * w->blob, k % w->block, w->bits);
            row[k] = (q - zero_of(w, n, scale)) * w->scales[n * w->blocks + scale];
        }
        for (int64_t m = 0; m < w->m; m++) {
            const double *a = w->a + m * w->k;
            double sum = 0;
            for (int64_t k = 0; k < w->k; k++) {
                sum += a[k] * row[k];
            }
            w->y[m * w->n + n] = sum + (w->bias ? w->bias[n] : 0);
        }
    }
}

static nori_status read_zeros(nori_call *call, nbits *w)
{
    if (!nori__nn_has(call, 3)) {
        return NORI_OK;
    }
    const nori_tensor *z = call->in[3];
    if (z->type == NORI_UINT8) {
        w->zero_row = (w->blocks * w->bits + 7) / 8;
        w->zeros_packed = z->data;
        return nori__nn_count(call, 3, "zero_points", w->n * w->zero_row);
    }
    w->zeros = z->data;
    return z->type == NORI_DOUBLE ? nori__nn_count(call, 3, "zero_points", w->n * w->blocks)
                                  : nori__nn_type_error(call, 3);
}

static nori_status read_groups(nori_call *call, nbits *w)
{
    if (!nori__nn_has(call, 4)) {
        return NORI_OK;
    }
    const nori_tensor *g = call->in[4];
    if (g->type != NORI_INT32 || (g->count != w->k && g->count != w->blocks * w->block)) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "g_idx (input 4) has %lld elements, expected int32 ones, %lld of them",
                          (long long)g->count, (long long)w->k);
    }
    w->group = g->data;
    for (int64_t k = 0; k < w->k; k++) {
        if (w->group[k] < 0 || w->group[k] >= w->blocks) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "g_idx (input 4) names group %lld, expected 0 to %lld",
                              (long long)w->group[k], (long long)w->blocks - 1);
        }
    }
    return NORI_OK;
}

/* Attributes have been checked by inference. */
static nori_status read_nbits(nori_call *call, nbits *w)
{
    const nori__node *node = call->node;
    NORI__TRY(nori__nn_need(call, 0, "A", -1));
    NORI__TRY(nori__nn_need(call, 1, "B", -1));
    NORI__TRY(nori__nn_need(call, 2, "scales", -1));
    const nori_tensor *a = call->in[0];
    w->k = nori__attr_i(node, "K", 0);
    w->n = nori__attr_i(node, "N", 0);
    w->bits = nori__attr_i(node, "bits", 4);
    w->block = nori__attr_i(node, "block_size", 0);
    w->blocks = (w->k - 1) / w->block + 1;
    w->blob = w->block / 8 * w->bits;
    int64_t cells = 0, bytes = 0;
    if (!nori__mul_dim(w->n, w->blocks, &cells) || !nori__mul_dim(cells, w->blob, &bytes)) {
        return nori__fail(call->err, NORI_ERROR_DATA, "N and K of MatMulNBits are too large");
    }
    if (a->type != NORI_DOUBLE || a->rank < 1 || call->in[2]->type != NORI_DOUBLE ||
        call->in[1]->type != NORI_UINT8) {
        return nori__nn_type_error(call, call->in[1]->type != NORI_UINT8 ? 1 : 0);
    }
    if (a->dims[a->rank - 1] != w->k) {
        return nori__fail(call->err, NORI_ERROR_DATA, "A (input 0) has rows of %lld, K is %lld",
                          (long long)a->dims[a->rank - 1], (long long)w->k);
    }
    NORI__TRY(nori__nn_count(call, 1, "B", bytes));
    NORI__TRY(nori__nn_count(call, 2, "scales", cells));
    NORI__TRY(read_zeros(call, w));
    NORI__TRY(read_groups(call, w));
    NORI__TRY(nori__nn_count(call, 5, "bias", w->n));
    w->m = a->count / w->k;
    w->a = a->data;
    w->b = call->in[1]->data;
    w->scales = call->in[2]->data;
    w->bias = nori__nn_has(call, 5) ? call->in[5]->data : NULL;
    w->y = call->out[0]->data;
    return NORI_OK;
}

static nori_status matmul_nbits(nori_call *call)
{
    nbits w = {0};
    size_t bytes;
    int64_t cells = 0;
    int threads = nori__nn_threads(call);
    NORI__TRY(read_nbits(call, &w));
    w.room = nori__mul_dim(w.k, threads, &cells)
                 ? nori__nn_scratch(call, cells, sizeof *w.room, &bytes)
                 : NULL;
    if (!w.room) {
        return nori__no_memory(call->err);
    }
    nori__parallel_for(call->pool, threads, w.n, 1, columns, &w);
    nori__release(call->allocator, w.room, bytes);
    return NORI_OK;
}

nori_status nori__ref_ms_MatMulNBits(nori_call *call)
{
    return nori__nn_double(call, 0, matmul_nbits);
}

/* ---- GatherBlockQuantized: data, indices, scales, zero_points ---- */

typedef struct blocks {
    const nori_tensor *data, *scales, *zeros;
    int rank, gather, quant;
    int64_t bits, block, zero;           /* bits: of data packed in bytes; 0: data's own type */
    int64_t dims[NORI_MAX_RANK];         /* of data, unpacked */
    int64_t scale_step[NORI_MAX_RANK];   /* of scales; 0 where they are broadcast */
    int64_t scale_last, zero_last;       /* scales and bytes of zero points in a last line */
} blocks;

static nori_status read_blocks(nori_call *call, blocks *q)
{
    const nori__node *node = call->node;
    NORI__TRY(nori__nn_need(call, 0, "data", -1));
    NORI__TRY(nori__nn_need(call, 1, "indices", -1));
    NORI__TRY(nori__nn_need(call, 2, "scales", call->in[0]->rank));
    q->data = call->in[0];
    q->scales = call->in[2];
    q->zeros = nori__nn_has(call, 3) ? call->in[3] : NULL;
    q->rank = q->data->rank;
    NORI__TRY(nori__fix_axis(call->err, nori__attr_i(node, "gather_axis", 0), q->rank, &q->gather));
    NORI__TRY(
        nori__fix_axis(call->err, nori__attr_i(node, "quantize_axis", 1), q->rank, &q->quant));
    q->block = nori__attr_i(node, "block_size", 128);
    nori__tensor_dims(q->data, q->dims);
    if (q->data->type == NORI_UINT8) {
        q->bits = nori__attr_i(node, "bits", 4);
        q->zero = (int64_t)1 << (q->bits - 1);
        q->dims[q->rank - 1] *= 8 / q->bits;
    }
    q->block = q->block > 0 ? q->block : q->dims[q->quant] > 0 ? q->dims[q->quant] : 1;
    bool floats = q->data->type != NORI_UINT8 && q->data->type != NORI_INT4 &&
                  q->data->type != NORI_UINT4;
    int64_t step = 1, zero_count = 1;
    for (int d = q->rank - 1; d >= 0; d--) {
        int64_t have = q->scales->dims[d], want = q->dims[d];
        want = d != q->quant ? want : want > 0 ? (want - 1) / q->block + 1 : 0;
        if (have != want && !(floats && have == 1)) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "scales (input 2) has size %lld on axis %d, expected %lld",
                              (long long)have, d, (long long)want);
        }
        q->scale_step[d] = have == 1 && want != 1 ? 0 : step;
        step *= have;
        int64_t bytes = d == q->rank - 1 && q->bits > 0 ? (want * q->bits + 7) / 8 : want;
        zero_count = (int64_t)((uint64_t)zero_count * (uint64_t)bytes);
        q->zero_last = d == q->rank - 1 ? bytes : q->zero_last;
    }
    q->scale_last = q->scales->dims[q->rank - 1];
    if (q->zeros && (floats || q->zeros->type != q->data->type)) {
        return nori__nn_type_error(call, 3);
    }
    return nori__nn_count(call, 3, "zero_points", zero_count);
}

/* Element of data at a place of the unpacked shape. */
static double element(const blocks *q, const int64_t *at)
{
    int64_t i = 0, scale = 0;
    for (int d = 0; d < q->rank; d++) {
        i = i * q->dims[d] + at[d];
        scale += (d == q->quant ? at[d] / q->block : at[d]) * q->scale_step[d];
    }
    double s = nori__tensor_get_f64(q->scales, scale);
    if (q->bits == 0) {
        double zero = q->zeros ? nori__tensor_get_f64(q->zeros, scale) : 0;
        return (nori__tensor_get_f64(q->data, i) - zero) * s;
    }
    /* Lines of data fill whole bytes, lines of zero points are padded to them. */
    int64_t zero = q->zero, v = packed(q->data->data, i, q->bits);
    if (q->zeros) {
        const uint8_t *line = (const uint8_t *)q->zeros->data + scale / q->scale_last * q->zero_last;
        zero = packed(line, scale % q->scale_last, q->bits);
    }
    return (double)(v - zero) * s;
}

nori_status nori__ref_ms_GatherBlockQuantized(nori_call *call)
{
    blocks q = {0};
    NORI__TRY(read_blocks(call, &q));
    const nori_tensor *indices = call->in[1];
    nori_tensor *y = call->out[0];
    int64_t size = q.dims[q.gather], inner = nori__nn_product(q.dims, q.gather + 1, q.rank);
    for (int64_t i = 0; i < y->count; i++) {
        int64_t at[NORI_MAX_RANK], left = i % inner, outer = i / inner;
        for (int d = q.rank - 1; d > q.gather; d--) {
            at[d] = left % q.dims[d];
            left /= q.dims[d];
        }
        int64_t index = nori__tensor_get_i64(indices, outer % indices->count);
        outer /= indices->count;
        for (int d = q.gather - 1; d >= 0; d--) {
            at[d] = outer % q.dims[d];
            outer /= q.dims[d];
        }
        index = index < 0 ? index + size : index;
        at[q.gather] = index;
        /* The operator's text: what an index outside picks is zero. */
        nori__tensor_set_f64(y, i, index >= 0 && index < size ? element(&q, at) : 0);
    }
    return NORI_OK;
}

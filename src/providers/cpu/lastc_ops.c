/* lastc_ops.c: the operators over channels-last activations: names, shapes, kernels. They are no part
 * of the list of operators: no file names them, and no other provider is asked for them. */
#include "base/built.h"
#include "providers/cpu/lastc.h"

static bool of_rank_4(nori__infer *c, nori_status *status)
{
    int rank = nori__in_rank(c, 0);
    *status = rank < 0 || rank == 4
                  ? NORI_OK
                  : nori__fail(c->err, NORI_ERROR_INTERNAL, "input has rank %d, expected 4", rank);
    return rank == 4;
}

static nori_status infer_from(nori__infer *c)
{
    nori_status status;
    if (of_rank_4(c, &status)) {
        const nori__dim *x = c->in[0].dims;
        nori__dim dims[4] = {x[0], x[2], x[3], x[1]};
        nori__out_set(c, 0, NORI_UINT8, 4, dims);
    }
    return status;
}

static nori_status infer_to(nori__infer *c)
{
    nori_status status;
    if (of_rank_4(c, &status)) {
        const nori__dim *x = c->in[0].dims;
        nori__dim dims[4] = {x[0], x[3], x[1], x[2]};
        nori_type type = (nori_type)nori__attr_i(c->node, "type", NORI_UINT8);
        nori__out_set(c, 0, type, 4, dims);
    }
    return status;
}

/* Height and width of a window's output; a window that changes no size keeps the names. */
static nori_status infer_window(nori__infer *c, const int64_t *kernel, nori__dim channels)
{
    nori__window w;
    NORI__TRY(nori__window_read(c->node, c->err, 2, kernel, &w));
    const nori__dim *x = c->in[0].dims;
    nori__dim dims[4] = {x[0], NORI__DIM_ANY, NORI__DIM_ANY, channels};
    for (int d = 0; d < 2; d++) {
        int64_t size;
        NORI__TRY(nori__window_out(&w, c->err, d, x[d + 1].value, &size));
        bool same = w.stride[d] == 1 && (w.auto_pad >= NORI__PAD_UPPER ||
                                         w.begin[d] + w.end[d] == nori__window_extent(&w, d) - 1);
        dims[d + 1] = size < 0 && same ? x[d + 1] : nori__dim_of(size);
    }
    nori__out_set(c, 0, NORI_UINT8, 4, dims);
    return NORI_OK;
}

static nori_status infer_conv(nori__infer *c)
{
    nori_status status;
    if (!of_rank_4(c, &status) || nori__in_rank(c, 3) != 4) {
        return status;
    }
    const nori__dim *w = c->in[3].dims;
    int64_t kernel[2] = {w[2].value, w[3].value};
    return infer_window(c, kernel, w[0]);
}

static nori_status infer_pool(nori__infer *c)
{
    nori_status status;
    return of_rank_4(c, &status) ? infer_window(c, NULL, c->in[0].dims[3]) : status;
}

static nori_status infer_mean(nori__infer *c)
{
    nori_status status;
    if (of_rank_4(c, &status)) {
        const nori__dim *x = c->in[0].dims;
        nori__dim dims[4] = {x[0], nori__dim_of(1), nori__dim_of(1), x[3]};
        nori__out_set(c, 0, NORI_UINT8, 4, dims);
    }
    return status;
}

#define ROW(id, name, infer, kernel)                                                               \
    {{(nori__op_id)(id), NORI__DOMAINS, #name, "channels last", 0,                                 \
      NORI__WHERE_BUILT(nori_##name, infer), NULL},                                                \
     NORI__WHERE_BUILT(nori_##name, &nori__lastc_##kernel)}
static const struct row {
    nori__op op;
    const nori__kernel *kernel;
} rows[] = {
    ROW(NORI__LASTC_FROM, ToLast, infer_from, from),
    ROW(NORI__LASTC_TO, ToPlanes, infer_to, to),
    ROW(NORI__LASTC_CONV, LastConv, infer_conv, conv),
    ROW(NORI__LASTC_MAX, LastMaxPool, infer_pool, max),
    ROW(NORI__LASTC_MEAN, LastMean, infer_mean, mean),
    ROW(NORI__LASTC_AVERAGE, LastAveragePool, infer_pool, average),
};
#undef ROW

static const struct row *find(int id)
{
    int at = id - (int)NORI__LASTC_FROM;
    return at >= 0 && at < (int)NORI__COUNT(rows) ? &rows[at] : NULL;
}

const nori__op *nori__lastc_op(nori__lastc_id id)
{
    return &find((int)id)->op;
}

const nori__kernel *nori__lastc_kernel(const nori__node *node)
{
    const struct row *row = node->op ? find((int)node->op->id) : NULL;
    return row ? row->kernel : NULL;
}

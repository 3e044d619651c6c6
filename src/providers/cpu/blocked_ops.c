/* blocked_ops.c: the operators over channel blocks: names, shapes, kernels. They are no part of the
 * list of operators: no file names them, and no other provider is asked for them. */
#include "base/built.h"
#include "ops/families.h"
#include "providers/cpu/blocked.h"

static int64_t block(void)
{
    return (int64_t)nori__kernels_get()->block;
}

static nori__dim blocks_of(nori__dim channels)
{
    return nori__dim_of(channels.value < 0 ? -1 : (channels.value + block() - 1) / block());
}

static nori_status rank_error(nori__infer *c, uint32_t i, int rank)
{
    return nori__fail(c->err, NORI_ERROR_INTERNAL, "input %u has rank %d, expected %d", i,
                      nori__in_rank(c, i), rank);
}

static nori_status infer_from(nori__infer *c)
{
    if (nori__in_rank(c, 0) != 4) {
        return nori__in_rank(c, 0) < 0 ? NORI_OK : rank_error(c, 0, 4);
    }
    const nori__dim *x = c->in[0].dims;
    nori__dim dims[5] = {x[0], blocks_of(x[1]), x[2], x[3], nori__dim_of(block())};
    nori__out_set(c, 0, NORI_FLOAT, 5, dims);
    return NORI_OK;
}

static nori_status infer_to(nori__infer *c)
{
    if (nori__in_rank(c, 0) != 5) {
        return nori__in_rank(c, 0) < 0 ? NORI_OK : rank_error(c, 0, 5);
    }
    const nori__dim *x = c->in[0].dims;
    nori__dim dims[4] = {x[0], nori__dim_of(nori__attr_i(c->node, "channels", -1)), x[2], x[3]};
    nori__out_set(c, 0, NORI_FLOAT, 4, dims);
    return NORI_OK;
}

/* Height and width of a window's output; a window that changes no size keeps the names. */
static nori_status window_dims(nori__infer *c, nori__window *w, nori__dim *out)
{
    for (int d = 0; d < 2; d++) {
        int64_t size;
        nori__dim in = c->in[0].dims[d + 2];
        NORI__TRY(nori__window_out(w, c->err, d, in.value, &size));
        bool same = w->stride[d] == 1 && (w->auto_pad >= NORI__PAD_UPPER ||
                                          w->begin[d] + w->end[d] == nori__window_extent(w, d) - 1);
        out[d] = size < 0 && same ? in : nori__dim_of(size);
    }
    return NORI_OK;
}

/* wi: the weight that says how many channels are made, and the kernel. */
static nori_status infer_window(nori__infer *c, uint32_t wi)
{
    int rank = nori__in_rank(c, 0);
    if (rank < 0 || nori__in_rank(c, wi) != 4) {
        return rank < 0 ? NORI_OK : rank_error(c, wi, 4);
    }
    const nori__dim *wd = c->in[wi].dims;
    int64_t kernel[2] = {wd[2].value, wd[3].value};
    nori__window w;
    NORI__TRY(nori__window_read(c->node, c->err, 2, kernel, &w));
    nori__dim dims[5] = {c->in[0].dims[0], blocks_of(wd[0]), NORI__DIM_ANY, NORI__DIM_ANY,
                         nori__dim_of(block())};
    NORI__TRY(window_dims(c, &w, dims + 2));
    nori__out_set(c, 0, NORI_FLOAT, 5, dims);
    return NORI_OK;
}

static nori_status infer_conv(nori__infer *c)
{
    return infer_window(c, 1);
}

static nori_status infer_expand(nori__infer *c)
{
    return infer_window(c, 3);
}

static nori_status infer_turned(nori__infer *c)
{
    int rank = nori__in_rank(c, 0);
    if (rank != 5 || nori__in_rank(c, 1) != 4) {
        return rank < 0 ? NORI_OK : rank_error(c, rank == 5, rank == 5 ? 4 : 5);
    }
    const nori__dim *wd = c->in[1].dims;
    int64_t kernel[2] = {wd[2].value, wd[3].value};
    nori__window w;
    NORI__TRY(nori__window_read(c->node, c->err, 2, kernel, &w));
    nori__dim dims[5] = {c->in[0].dims[0], blocks_of(wd[1]), NORI__DIM_ANY, NORI__DIM_ANY,
                         nori__dim_of(block())};
    for (int d = 0; d < 2; d++) {
        int64_t size;
        NORI__TRY(nori__window_out_transposed(&w, c->node, c->err, d, c->in[0].dims[d + 2].value,
                                              &size));
        dims[d + 2] = nori__dim_of(size);
    }
    nori__out_set(c, 0, NORI_FLOAT, 5, dims);
    return NORI_OK;
}

static nori_status infer_pool(nori__infer *c)
{
    if (nori__in_rank(c, 0) != 5) {
        return nori__in_rank(c, 0) < 0 ? NORI_OK : rank_error(c, 0, 5);
    }
    const nori__dim *x = c->in[0].dims;
    nori__window w;
    NORI__TRY(nori__window_read(c->node, c->err, 2, NULL, &w));
    nori__dim dims[5] = {x[0], x[1], NORI__DIM_ANY, NORI__DIM_ANY, x[4]};
    NORI__TRY(window_dims(c, &w, dims + 2));
    nori__out_set(c, 0, NORI_FLOAT, 5, dims);
    return NORI_OK;
}

/* The pool's window over what the convolution makes. */
static nori_status infer_stem(nori__infer *c)
{
    int rank = nori__in_rank(c, 0);
    size_t n = 0;
    const int64_t *conv = nori__attr_ints(c->node, "conv_window", &n);
    if (rank != 4 || nori__in_rank(c, 1) != 4 || n != 8) {
        return rank < 0 ? NORI_OK : rank_error(c, rank == 4, 4);
    }
    const nori__dim *wd = c->in[1].dims;
    nori__window w;
    NORI__TRY(nori__window_read(c->node, c->err, 2, NULL, &w));
    nori__dim dims[5] = {c->in[0].dims[0], blocks_of(wd[0]), NORI__DIM_ANY, NORI__DIM_ANY,
                         nori__dim_of(block())};
    for (int d = 0; d < 2; d++) {
        int64_t in = c->in[0].dims[d + 2].value, size;
        int64_t rest = in + conv[4 + d] + conv[6 + d] - ((wd[d + 2].value - 1) * conv[2 + d] + 1);
        int64_t made = in < 0 ? -1 : rest >= 0 ? rest / conv[d] + 1 : 0;
        NORI__TRY(nori__window_out(&w, c->err, d, made, &size));
        if (made == 0 && (in != 0 || size != 0)) { /* of an empty map an empty one is made */
            return nori__fail(c->err, NORI_ERROR_MODEL, "the kernel is larger than the padded input");
        }
        dims[d + 2] = nori__dim_of(size);
    }
    nori__out_set(c, 0, NORI_FLOAT, 5, dims);
    return NORI_OK;
}

static nori_status infer_mean(nori__infer *c)
{
    if (nori__in_rank(c, 0) != 5) {
        return nori__in_rank(c, 0) < 0 ? NORI_OK : rank_error(c, 0, 5);
    }
    const nori__dim *x = c->in[0].dims;
    nori__dim dims[5] = {x[0], x[1], nori__dim_of(1), nori__dim_of(1), x[4]};
    nori__out_set(c, 0, NORI_FLOAT, 5, dims);
    return NORI_OK;
}

/* As Resize infers it for the plain value. */
static nori_status infer_resize(nori__infer *c)
{
    nori__shape in[4], out = c->out[0];
    if (nori__in_rank(c, 0) != 5 || c->node->input_count > 4) {
        return nori__in_rank(c, 0) < 0 ? NORI_OK : rank_error(c, 0, 5);
    }
    memcpy(in, c->in, c->node->input_count * sizeof(*in));
    nori__dim channels = nori__dim_of(nori__attr_i(c->node, "channels", -1));
    in[0].rank = 4;
    in[0].dims[1] = channels;
    nori__infer plain = *c;
    plain.in = in;
    plain.out = &out;
    NORI__TRY(nori__infer_resize(&plain));
    if (out.rank == 4) {
        nori__dim dims[5] = {out.dims[0], c->in[0].dims[1], out.dims[2], out.dims[3],
                             c->in[0].dims[4]};
        nori__out_set(c, 0, NORI_FLOAT, 5, dims);
    }
    return NORI_OK;
}

#define ROW(id, name, flags, infer, kernel)                                                        \
    {{(nori__op_id)(id), NORI__DOMAINS, #name, "blocked", flags,                                   \
      NORI__WHERE_BUILT(nori_##name, infer), NULL},                                                \
     NORI__WHERE_BUILT(nori_##name, &nori__blocked_##kernel)}
static const struct row {
    nori__op op;
    const nori__kernel *kernel;
} rows[] = {
    ROW(NORI__BLOCKED_FROM, Block, 0, infer_from, from),
    ROW(NORI__BLOCKED_TO, Unblock, 0, infer_to, to),
    ROW(NORI__BLOCKED_CONV, BlockedConv, 0, infer_conv, conv),
    ROW(NORI__BLOCKED_TURNED, BlockedConvTranspose, 0, infer_turned, turned),
    ROW(NORI__BLOCKED_EXPAND, BlockedExpand, 0, infer_expand, expand),
    ROW(NORI__BLOCKED_STEM, BlockedStem, 0, infer_stem, stem),
    ROW(NORI__BLOCKED_POOL, BlockedPool, 0, infer_pool, pool),
    ROW(NORI__BLOCKED_MEAN, BlockedMean, 0, infer_mean, mean),
    ROW(NORI__BLOCKED_SCALE, BlockedScale, NORI__OP_INPLACE, nori__infer_same, scale),
    ROW(NORI__BLOCKED_NORM, BlockedNorm, NORI__OP_INPLACE, nori__infer_same, norm),
    ROW(NORI__BLOCKED_LEAKY, BlockedPRelu, NORI__OP_INPLACE, nori__infer_same, leaky),
    ROW(NORI__BLOCKED_RESIZE, BlockedResize, 0, infer_resize, resize),
};
#undef ROW

static const struct row *find(int id)
{
    int at = id - (int)NORI__BLOCKED_FROM;
    return at >= 0 && at < (int)NORI__COUNT(rows) ? &rows[at] : NULL;
}

const nori__op *nori__blocked_op(nori__blocked_id id)
{
    return &find((int)id)->op;
}

const nori__kernel *nori__blocked_kernel(const nori__node *node)
{
    const struct row *row = node->op ? find((int)node->op->id) : NULL;
    return row ? row->kernel : NULL;
}

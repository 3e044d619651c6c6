/* blocked_rewrite.c: moves runs of a network onto channel blocks (blocked.h). Types must have been
 * inferred, and convolutions joined with what follows them (fuse.c).
 *
 * A convolution becomes blocked whatever its input is; what follows becomes blocked where all that it
 * reads has a twin already. */
#include "ops/resolve.h"
#include "providers/cpu/blocked_rules.h"

static bool block_type(nori__ir *ir, const nori__value *plain, nori__type *twin)
{
    const nori__dim *d = plain->type.dims;
    int64_t c = (int64_t)nori__kernels_get()->block;
    nori__dim dims[5] = {d[0], nori__dim_of((d[1].value + c - 1) / c), d[2], d[3], nori__dim_of(c)};
    return nori__type_set(&ir->arena, twin, NORI_FLOAT, 5, dims);
}

static nori__node *take(nori__twins *t, nori__node *n)
{
    nori__node *made = nori__block_conv(t, n);
    return made || t->err->status != NORI_OK ? made : nori__block_follow(t, n);
}

static bool plain_channels(nori__node *made, const nori__value *plain)
{
    return nori__node_set_int(made, "channels", plain->type.dims[1].value);
}

nori_status nori__cpu_block(nori__ir *ir, nori_error *err)
{
    if (!NORI__IR_HAS(ir, NORI__OP_ONNX_Conv, NORI__OP_MS_FusedConv, NORI__OP_ONNX_ConvTranspose)) {
        return NORI_OK; /* twins begin there */
    }
    const nori__twin_kind kind = {nori__is_image, block_type, take,
                                  nori__blocked_op(NORI__BLOCKED_FROM),
                                  nori__blocked_op(NORI__BLOCKED_TO), plain_channels};
    return nori__twins_walk(ir, &kind, err);
}

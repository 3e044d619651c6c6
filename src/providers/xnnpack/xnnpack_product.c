/* xnnpack_product.c: Gemm and MatMul with constant weights: fully connected layers. */
#include <math.h>

#include "providers/xnnpack/xnnpack.h"

static nori_status setup_product(xp_part *p, xp_step *s, nori_error *err)
{
    xp_shape y = nori__xp_shape(p, s->out);
    s->idle = y.count == 0;
    if (s->idle) {
        return NORI_OK;
    }
    XP_TRY(XNN(setup_fully_connected_nc_f32)(s->op, y.count / y.d[y.rank - 1],
                                            nori__xp_floats(p, s->in[0]),
                                            nori__xp_floats(p, s->out), nori__xp_pool(p)),
           s->node, err);
    return NORI_OK;
}

/* What is added must be one for all or one a column. */
static bool fits_columns(const nori_tensor *c, int64_t columns)
{
    return c && c->type == NORI_FLOAT &&
           (c->count == 1 || (c->count == columns && c->rank > 0 && c->dims[c->rank - 1] == columns));
}

const char *nori__xp_claim_product(const nori__node *n)
{
    const nori__value *x = n->inputs[0];
    bool gemm = nori__node_is(n, NORI__OP_ONNX_Gemm);
    if (!nori__xp_is(x, NORI_FLOAT, 2)) {
        return "it is not on floats of a known rank";
    }
    if (!nori__xp_has_weights(n, 1, 2)) {
        return "XNNPACK multiplies by a constant matrix only";
    }
    if (!gemm) {
        return NULL;
    }
    const nori_tensor *b = nori__xp_const(n, 1);
    b = b ? b : nori__xp_const(n->inputs[1]->producer, 0);
    int64_t columns = b->dims[nori__attr_i(n, "transB", 0) ? 0 : 1];
    if (nori__attr_i(n, "transA", 0)) {
        return "its first operand is turned";
    }
    if (nori__xp_in(n, 2) && !fits_columns(nori__xp_const(n, 2), columns) &&
        !(nori__xp_has_weights(n, 2, 1) && n->inputs[2]->type.dims[0].value == columns)) {
        return "what it adds is not one constant a column";
    }
    return NULL;
}

/* The product's factor goes into the weights, the sum's into what is added. */
static nori_status create_product(xp_step *s, const nori__node *n, const nori_tensor *b,
                                  const nori_tensor *c, float low, float high, nori_error *err)
{
    bool gemm = nori__node_is(n, NORI__OP_ONNX_Gemm);
    bool turned = gemm && nori__attr_i(n, "transB", 0) != 0;
    float alpha = gemm ? nori__attr_f(n, "alpha", 1) : 1, beta = gemm ? nori__attr_f(n, "beta", 1) : 1;
    size_t made = (size_t)b->dims[turned ? 0 : 1], depth = (size_t)b->dims[turned ? 1 : 0];
    size_t count, bytes;
    float *room = NULL;
    if (!nori__add_size((size_t)b->count, made, &count) || !nori__mul_size(count, 4, &bytes) ||
        !(room = nori__alloc(&nori__malloc, bytes))) {
        return nori__no_memory(err);
    }
    float *bias = room + b->count;
    for (int64_t i = 0; i < b->count; i++) {
        room[i] = alpha * ((const float *)b->data)[i];
    }
    for (size_t i = 0; i < made; i++) {
        bias[i] = c ? beta * ((const float *)c->data)[c->count == 1 ? 0 : i] : 0;
    }
    enum xnn_status status = XNN(create_fully_connected_nc_f32)(
        depth, made, depth, made, room, c ? bias : NULL, low, high,
        turned ? 0 : XNN_FLAG_TRANSPOSE_WEIGHTS, &s->op);
    nori__release(&nori__malloc, room, bytes);
    return nori__xp_check(status, "xnn_create_fully_connected_nc_f32", n, err);
}

nori_status nori__xp_emit_product(xp_part *p, const xp_job *j, nori_error *err)
{
    float low, high;
    nori_tensor *made[2] = {NULL, NULL};
    const nori_tensor *b = nori__xp_weights(j->node, 1, &made[0]);
    const nori_tensor *c = nori__xp_in(j->node, 2) ? nori__xp_weights(j->node, 2, &made[1]) : NULL;
    nori_status status = NORI_OK;
    if (!b || (nori__xp_in(j->node, 2) && !c)) {
        status = nori__fail(err, NORI_ERROR_UNSUPPORTED, "its weights are not there");
    } else {
        uint32_t in = nori__xp_want(p, j->in[0], 0);
        uint32_t out = nori__xp_make(p, nori__xp_clamp(p, j->out, &low, &high), 0);
        xp_step *s = nori__xp_step(p, j->node, &in, 1, out, 0, setup_product);
        status = s ? create_product(s, j->node, b, c, low, high, err) : nori__no_memory(err);
    }
    nori_tensor_free(made[0]);
    nori_tensor_free(made[1]);
    return status;
}

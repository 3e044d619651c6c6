/* nnapi_product.c: products: with a constant matrix FULLY_CONNECTED, of two values BATCH_MATMUL. */
#include "providers/nnapi/nnapi.h"

/* One number a column, or one for all. */
static bool fits_columns(const nori_tensor *t, int64_t columns)
{
    bool row = t && (t->count == 1 || t->count == columns);
    for (int d = 0; row && d < t->rank; d++) {
        row = t->dims[d] == 1 || (d == t->rank - 1 && t->count == columns);
    }
    return row;
}

/* The same batches on both sides: NNAPI repeats none. */
static const char *claim_batch(const na_self *self, const nori__node *n)
{
    const nori__type *a = &n->inputs[0]->type, *b = &n->inputs[1]->type;
    bool same = nori__na_is(n->inputs[1], a->rank) && a->rank >= 2;
    for (int d = 0; same && d < a->rank - 2; d++) {
        same = a->dims[d].value == b->dims[d].value;
    }
    return !same             ? "its second operand is no constant matrix, and of other batches"
           : self->level < 30 ? "NNAPI multiplies two values from feature level 30 on"
                              : NULL;
}

const char *nori__na_claim_product(const na_self *self, const nori__node *n)
{
    const nori_tensor *b = nori__na_weights(n, 1);
    bool gemm = nori__node_is(n, NORI__OP_ONNX_Gemm);
    if (!gemm && n->input_count == 2 && n->inputs[1] && (!b || b->rank != 2)) {
        return claim_batch(self, n);
    }
    if (!b || b->rank != 2) {
        return "NNAPI multiplies by a constant matrix";
    }
    if (n->inputs[0]->type.rank < 2) {
        return "its first operand is no matrix";
    }
    if (gemm && nori__attr_i(n, "transA", 0)) {
        return "its first operand is turned";
    }
    int64_t columns = b->dims[gemm && nori__attr_i(n, "transB", 0) ? 0 : 1];
    return gemm && nori__na_in(n, 2) && !fits_columns(nori__na_weights(n, 2), columns)
               ? "what it adds is not one constant a column"
               : NULL;
}

/* [units][inputs]; the product's factor goes into it. */
static uint32_t add_weights(na_part *p, const nori_tensor *b, bool turned, float alpha)
{
    int64_t inputs = b->dims[turned ? 1 : 0], units = b->dims[turned ? 0 : 1];
    na_shape s = {.rank = 2, .d = {units, inputs}, .count = b->count};
    float *room = nori__na_room(p, b->count);
    const float *from = b->data;
    for (int64_t u = 0; room && u < units; u++) {
        for (int64_t i = 0; i < inputs; i++) {
            room[u * inputs + i] = alpha * from[turned ? u * inputs + i : i * units + u];
        }
    }
    return room ? nori__na_constant(p, &s, room) : NA_NONE;
}

static uint32_t add_bias(na_part *p, const nori_tensor *c, int64_t units, float beta)
{
    na_shape s = {.rank = 1, .d = {units}, .count = units};
    float *room = nori__na_room(p, units);
    for (int64_t u = 0; room && c && u < units; u++) {
        room[u] = beta * ((const float *)c->data)[c->count == 1 ? 0 : u];
    }
    return room ? nori__na_constant(p, &s, room) : NA_NONE;
}

static void emit_batch(na_part *p, const na_job *j)
{
    uint32_t in[4] = {nori__na_want(p, j->in[0], NA_PLAIN), nori__na_want(p, j->in[1], NA_PLAIN),
                      nori__na_bool(p, false), nori__na_bool(p, false)};
    nori__na_op(p, NA_BATCH_MATMUL, in, 4, nori__na_make(p, j->out, NA_PLAIN));
}

/* FULLY_CONNECTED gives a matrix: of more dimensions it is reshaped after. */
void nori__na_add_connected(na_part *p, const uint32_t *in, int64_t units, uint32_t out)
{
    na_shape s = nori__na_shape(p, out, NA_PLAIN);
    if (s.rank == 2) {
        nori__na_op(p, NA_FULLY_CONNECTED, in, 4, nori__na_make(p, out, NA_PLAIN));
        return;
    }
    na_shape flat = {.rank = 2, .d = {s.count / units, units}, .count = s.count};
    const int64_t rank[] = {s.rank};
    uint32_t middle = nori__na_operand_like(p, out, &flat);
    nori__na_op(p, NA_FULLY_CONNECTED, in, 4, middle);
    uint32_t more[2] = {middle, nori__na_ints(p, s.d, 1, rank)};
    nori__na_op(p, NA_RESHAPE, more, 2, nori__na_make(p, out, NA_PLAIN));
}

static void emit_matrix(na_part *p, const na_job *j, const nori_tensor *b, const nori_tensor *c)
{
    const nori__node *n = j->node;
    bool gemm = nori__node_is(n, NORI__OP_ONNX_Gemm);
    bool turned = gemm && nori__attr_i(n, "transB", 0) != 0;
    int64_t units = b->dims[turned ? 0 : 1];
    int fused;
    uint32_t in[4] = {nori__na_want(p, j->in[0], NA_PLAIN)}, out = nori__na_fuse(p, j->out, &fused);
    in[1] = add_weights(p, b, turned, gemm ? nori__attr_f(n, "alpha", 1) : 1);
    in[2] = add_bias(p, c, units, gemm ? nori__attr_f(n, "beta", 1) : 1);
    in[3] = nori__na_int(p, fused);
    nori__na_add_connected(p, in, units, out);
}

void nori__na_emit_product(na_part *p, const na_job *j)
{
    const nori_tensor *kept = nori__na_weights(j->node, 1);
    nori_tensor *made[2] = {NULL, NULL};
    if (!kept || kept->rank != 2) {
        emit_batch(p, j);
        return;
    }
    bool adds = nori__node_is(j->node, NORI__OP_ONNX_Gemm) && nori__na_in(j->node, 2);
    const nori_tensor *b = nori__na_weight_floats(j->node, 1, &made[0]);
    const nori_tensor *c = adds ? nori__na_weight_floats(j->node, 2, &made[1]) : NULL;
    if (b && (c || !adds)) {
        emit_matrix(p, j, b, c);
    } else {
        nori__na_refuse(p, "its weights cannot be had as floats");
    }
    nori_tensor_free(made[0]);
    nori_tensor_free(made[1]);
}

/* op_gemm.c: Gemm and MatMul. A constant second matrix is packed once; others are read by strides,
 * for as many products as broadcasting makes. */
#include "providers/gpu/gpu.h"

#define TALL 8 /* rows from which on tiles of 64 are not mostly empty */

static bool takes_gemm(const gpu_ask *ask)
{
    const nori__node *node = ask->node;
    if (!nori__gpu_has(node, 1) || node->inputs[1]->type.elem != NORI_FLOAT) {
        return nori__gpu_no(ask, "both matrices must be float32");
    }
    return nori__gpu_fixed(ask, 2, "C");
}

static bool is_gemm(const gpu_node *n)
{
    return nori__same(n->op->name, "Gemm");
}

/* B as K rows of N columns, and its strides. False: more than one matrix. */
static bool one_matrix(const gpu_node *n, const nori_tensor *t, int64_t *k, int64_t *columns,
                       int64_t by[2])
{
    for (int d = 0; d < t->rank - 2; d++) {
        if (t->dims[d] != 1) {
            return false;
        }
    }
    bool turned = is_gemm(n) && nori__attr_i(n->node, "transB", 0) != 0;
    int64_t rows = t->rank > 1 ? t->dims[t->rank - 2] : t->rank == 1 ? t->dims[0] : 0;
    int64_t width = t->rank > 1 ? t->dims[t->rank - 1] : 1;
    *k = turned ? width : rows;
    *columns = turned ? rows : width;
    by[0] = turned ? 1 : width;
    by[1] = turned ? width : 1;
    return t->rank > 0;
}

/* [N / 4][K][4] */
static nori_status pack_matrix(gpu_self *self, gpu_node *n, const nori_tensor *t, nori_error *err)
{
    int64_t k, columns, by[2], room;
    if (!one_matrix(n, t, &k, &columns, by) || t->count == 0) {
        return NORI_OK;
    }
    if (!nori__mul_dim((columns + 3) / 4 * 4, k, &room)) {
        return nori__no_memory(err);
    }
    float *to = nori__alloc_zero(&nori__malloc, (size_t)room * sizeof(*to));
    float *from = nori__gpu_take_floats(t, (size_t)t->count, err);
    if (!to || !from) {
        nori__no_memory(err);
    } else {
        for (int64_t i = 0; i < k; i++) {
            for (int64_t c = 0; c < columns; c++) {
                to[(c / 4 * k + i) * 4 + c % 4] = from[i * by[0] + c * by[1]];
            }
        }
        n->packed[0] = nori__gpu_stored(self, to, (size_t)room, err);
    }
    nori__gpu_give_floats(from, (size_t)t->count);
    nori__gpu_give_floats(to, (size_t)room);
    return n->packed[0] ? NORI_OK : NORI_ERROR_MEMORY;
}

/* beta * C */
static nori_status pack_bias(gpu_self *self, gpu_node *n, const nori_tensor *t, nori_error *err)
{
    float beta = nori__attr_f(n->node, "beta", 1);
    float *v = nori__gpu_take_floats(t, (size_t)t->count, err);
    for (int64_t i = 0; v && i < t->count; i++) {
        v[i] *= beta;
    }
    if (v) {
        n->packed[1] = nori__gpu_floats(self, v, (size_t)t->count, err);
        nori__gpu_give_floats(v, (size_t)t->count);
    }
    return n->packed[1] ? NORI_OK : NORI_ERROR_MEMORY;
}

static nori_status pack(gpu_self *self, gpu_node *n, nori_error *err)
{
    const nori_tensor *b = nori__gpu_const(n->node, 1), *c = nori__gpu_const(n->node, 2);
    if (c && is_gemm(n)) {
        NORI__TRY(pack_bias(self, n, c, err));
    }
    if (self->products) { /* what it cannot follow itself */
        NORI__TRY(self->driver->program(self, GPU_IN_elementwise, err));
    }
    return b && !self->products ? pack_matrix(self, n, b, err) : NORI_OK; /* a library reads it as it is */
}

/* Rows of one product, what is summed, columns; strides. */
typedef struct product {
    int64_t m, k, n, count;
    int64_t a_row, a_k, b_k, b_column;
    const int32_t *starts; /* where A and B of each product begin */
} product;

static void read_product(gpu_lower *l, const gpu_node *n, product *p)
{
    const gpu_shape *a = nori__gpu_in_shape(l, n, 0), *b = nori__gpu_in_shape(l, n, 1);
    bool turn_a = is_gemm(n) && nori__attr_i(n->node, "transA", 0) != 0;
    bool turn_b = is_gemm(n) && nori__attr_i(n->node, "transB", 0) != 0;
    int64_t a_rows = a->rank > 1 ? a->dims[a->rank - 2] : 1, a_width = a->dims[a->rank - 1];
    int64_t b_rows = b->rank > 1 ? b->dims[b->rank - 2] : b->dims[0];
    int64_t b_width = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    *p = (product){.m = turn_a ? a_width : a_rows, .k = turn_a ? a_rows : a_width,
                   .n = turn_b ? b_rows : b_width, .count = 1,
                   .a_row = turn_a ? 1 : a_width, .a_k = turn_a ? a_width : 1,
                   .b_k = turn_b ? 1 : b_width, .b_column = turn_b ? b_width : 1};
}

/* Where A and B of each product begin. */
static void find_starts(gpu_lower *l, const gpu_node *n, product *p)
{
    const gpu_shape *s[2] = {nori__gpu_in_shape(l, n, 0), nori__gpu_in_shape(l, n, 1)};
    int rank = s[0]->rank > s[1]->rank ? s[0]->rank : s[1]->rank;
    int64_t sizes[NORI_MAX_RANK], by[2][NORI_MAX_RANK];
    for (int d = 0; d < rank - 2; d++) {
        sizes[d] = 1;
        for (int i = 0; i < 2; i++) {
            int at = d - (rank - s[i]->rank);
            int64_t size = at >= 0 && s[i]->rank > 2 ? s[i]->dims[at] : 1;
            sizes[d] = size != 1 ? size : sizes[d];
            by[i][d] = size != 1 ? nori__gpu_product(s[i]->dims, at + 1, s[i]->rank) : 0;
        }
    }
    p->count = nori__gpu_product(sizes, 0, rank - 2);
    int32_t *table = nori__gpu_host_room(l, (size_t)p->count * 2, sizeof(*table));
    for (int64_t z = 0; table && z < p->count; z++) {
        int64_t rest = z;
        for (int d = rank - 3; d >= 0; d--) {
            table[2 * z] += (int32_t)(rest % sizes[d] * by[0][d]);
            table[2 * z + 1] += (int32_t)(rest % sizes[d] * by[1][d]);
            rest /= sizes[d];
        }
    }
    p->starts = table;
}

/* C goes along rows and columns, or repeats. */
static void bias_strides(const nori_tensor *c, int64_t by[2])
{
    int64_t width = c && c->rank > 0 ? c->dims[c->rank - 1] : 1;
    by[0] = c && c->rank > 1 && c->dims[c->rank - 2] != 1 ? width : 0;
    by[1] = width != 1 ? 1 : 0;
}

/* By the driver's library: products that follow each other at one distance, a bias a column or none.
 * What it does not compute with them comes behind. */
static bool by_library(gpu_lower *l, const gpu_node *n, const product *p, gpu_mem *bias,
                       const int64_t by_bias[2], float alpha)
{
    gpu_product q = {.m = p->m, .n = p->n, .k = p->k, .count = p->count, .a = nori__gpu_in(l, n, 0),
                     .b = nori__gpu_in(l, n, 1), .y = nori__gpu_out(l, n, 0), .bias = bias,
                     .a_row = p->a_row, .a_k = p->a_k, .b_k = p->b_k, .b_column = p->b_column,
                     .alpha = alpha, .relu = n->then.kind == UNARY_Relu};
    if (p->count > 1) {
        q.by_a = p->starts[2];
        q.by_b = p->starts[3];
    }
    for (int64_t z = 0; z < p->count; z++) {
        if (p->starts[2 * z] != z * q.by_a || p->starts[2 * z + 1] != z * q.by_b) {
            return false;
        }
    }
    bool a_column = by_bias[0] == 0 && by_bias[1] == 1 && nori__gpu_const(n->node, 2)->count == p->n;
    if ((bias && !a_column) || !nori__gpu_by_library(l, &q, NULL)) {
        return false;
    }
    if (!q.relu && n->then.kind != UNARY_Identity) {
        int64_t count = nori__gpu_out_shape(l, n, 0)->count;
        nori__gpu_kernel(l, GPU_IN_elementwise, "unary_plain");
        nori__gpu_mem(l, q.y);
        nori__gpu_mem(l, q.y);
        nori__gpu_int(l, count);
        nori__gpu_fused(l, n);
        nori__gpu_items(l, count, 1, 1);
    }
    return true;
}

static void lower_gemm(gpu_lower *l, const gpu_node *n)
{
    static const int32_t at_once[2] = {0, 0};
    product p;
    int64_t by_bias[2], k, columns, by[2];
    bool gemm = is_gemm(n);
    const nori_tensor *b = nori__gpu_const(n->node, 1);
    float alpha = gemm ? nori__attr_f(n->node, "alpha", 1) : 1;
    read_product(l, n, &p);
    bias_strides(gemm ? nori__gpu_const(n->node, 2) : NULL, by_bias);
    gpu_mem *bias = n->packed[1];
    if (n->packed[0] || (b && !gemm && one_matrix(n, b, &k, &columns, by))) {
        p.starts = at_once;
        if (!gemm && p.k > 0) { /* rows of all products lie one below the other */
            p.m = nori__gpu_in_shape(l, n, 0)->count / p.k;
        }
    } else {
        find_starts(l, n, &p);
    }
    if (nori__gpu_bad(l) || (!n->packed[0] && by_library(l, n, &p, bias, by_bias, alpha))) {
        return;
    }
    gpu_mem *table = n->packed[0] ? NULL : nori__gpu_table(l, p.starts, (size_t)p.count * 2);
    bool tiles = nori__gpu_tiles(l) && p.m >= TALL;
    nori__gpu_kernel(l, GPU_IN_gemm, tiles          ? "gemm_tiles"
                                     : n->packed[0] ? "gemm_packed"
                                                    : "gemm_strided");
    nori__gpu_mem(l, nori__gpu_in(l, n, 0));
    nori__gpu_mem(l, n->packed[0] ? n->packed[0] : nori__gpu_in(l, n, 1));
    nori__gpu_mem(l, bias ? bias : nori__gpu_zero(l));
    nori__gpu_mem(l, nori__gpu_out(l, n, 0));
    if (tiles) {
        nori__gpu_mem(l, table ? table : nori__gpu_zero(l)); /* not read with a packed matrix */
        nori__gpu_int(l, n->packed[0] != NULL);
    } else if (!n->packed[0]) {
        nori__gpu_mem(l, table);
    }
    nori__gpu_int4(l, p.m, p.n, p.k, p.count);
    nori__gpu_int4(l, p.a_row, p.a_k, p.b_k, p.b_column);
    nori__gpu_int2(l, bias ? by_bias[0] : 0, bias ? by_bias[1] : 0);
    nori__gpu_float(l, alpha);
    nori__gpu_fused(l, n);
    if (tiles) {
        nori__gpu_groups(l, (p.n + 63) / 64, (p.m + 63) / 64, p.count, 256);
    } else {
        nori__gpu_items(l, (p.n + 3) / 4, (p.m + 3) / 4, p.count);
    }
}

const gpu_op nori__gpu_gemm_ops[] = {
    {"Gemm", GPU_IN_gemm, true, 0, takes_gemm, pack, lower_gemm},
    {"MatMul", GPU_IN_gemm, true, 0, takes_gemm, pack, lower_gemm},
    {0},
};

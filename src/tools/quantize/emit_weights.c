/* emit_weights.c: weights alone as integers. The sums stay float: the file is smaller, and what
 * streams weights from memory is faster.
 *
 * A weight becomes DequantizeLinear of its integers, with a scale a column or a scale for every
 * block of a column; or a product becomes com.microsoft MatMulNBits, which keeps 4 or 8 bits a
 * weight while it runs. How the integers of products are found: weight_fit.c, hessian.c. */
#include "ops/op.h"
#include "tools/quantize/weight_fit.h"

typedef struct emitting {
    nori__quantizer *q;
    nori__map hessians; /* input of a product -> nori__q_hessian *, with GPTQ */
    nori__map factored; /* the same, once it is a factor */
} emitting;

static bool as_matrix(const nori__node *n, const nori_tensor *w, nori__q_matrix *m)
{
    if (!w || w->rank != 2 || (!nori__node_is(n, NORI__OP_ONNX_MatMul) &&
                         !nori__node_is(n, NORI__OP_ONNX_Gemm))) {
        return false;
    }
    bool turned = nori__node_is(n, NORI__OP_ONNX_Gemm) && nori__attr_i(n, "transB", 0);
    *m = (nori__q_matrix){w, w->dims[turned], w->dims[!turned], turned ? 1 : w->dims[1],
                          turned ? w->dims[1] : 1};
    return true;
}

/* What GPTQ goes by for a product; NULL: there is none, rounding is to nearest. Products that read the
 * same share it. */
static nori_status factor_of(emitting *e, const nori__node *n, const double **factor)
{
    const char *name = n->inputs[0]->name;
    nori__q_hessian *h = nori__map_get(&e->hessians, name);
    *factor = NULL;
    if (!h || h->rows == 0) {
        return NORI_OK;
    }
    if (!nori__map_get(&e->factored, name)) {
        if (!nori__q_hessian_factor(e->q->allocator, h)) {
            h->rows = 0;
            nori__q_note(e->q, "%s: the samples say nothing GPTQ could go by: its weights are rounded to "
                               "nearest",
                         n->name);
            return NORI_OK;
        }
        if (!nori__map_put(&e->factored, name, h)) {
            return nori__no_memory(e->q->err);
        }
    }
    *factor = h->sums;
    return NORI_OK;
}

static nori_status fit(emitting *e, const nori__node *n, const nori__q_matrix *m, int64_t block,
                       nori_type type, bool symmetric, nori__q_fitted *f)
{
    const double *factor;
    *f = (nori__q_fitted){0};
    nori__arena_init(&f->arena, e->q->allocator);
    NORI__TRY(factor_of(e, n, &factor));
    NORI__TRY(nori__q_fit(e->q, m, block, type, symmetric, factor, f));
    nori__q_report_weight(e->q, n, f->sqnr);
    return NORI_OK;
}

/* ---- DequantizeLinear, in blocks or with a scale a column ---- */

static nori_status make_tensors(nori__quantizer *q, const nori__q_matrix *m, const nori__q_fitted *f,
                                bool blocks, nori_tensor *made[3])
{
    const nori_allocator *a = q->ir->allocator;
    nori_type type = q->options->weight_type;
    int axis = m->row_step == 1 ? 1 : 0; /* the axis the blocks run along */
    int64_t dims[2] = {axis || !blocks ? m->columns : f->blocks, axis ? f->blocks : m->columns};
    int rank = blocks ? 2 : 1;
    NORI__TRY(nori__tensor_new(a, type, 2, m->w->dims, &made[0], q->err));
    NORI__TRY(nori__tensor_new(a, NORI_FLOAT, rank, dims, &made[1], q->err));
    NORI__TRY(nori__tensor_new(a, type, rank, dims, &made[2], q->err));
    for (int64_t c = 0; c < m->columns; c++) {
        for (int64_t b = 0; b < f->blocks; b++) {
            const nori_quant *quant = &f->quants[c * f->blocks + b];
            int64_t at = axis ? c * f->blocks + b : b * m->columns + c;
            nori__tensor_set_f64(made[1], at, quant->scale);
            nori__tensor_set_i64(made[2], at, quant->zero_point);
        }
        for (int64_t i = 0; i < m->rows; i++) {
            nori__tensor_set_i64(made[0], i * m->row_step + c * m->column_step,
                                 f->integers[c * m->rows + i]);
        }
    }
    return NORI_OK;
}

static nori_status dequantized(emitting *e, nori__node *n, const nori__q_matrix *m)
{
    nori__quantizer *q = e->q;
    const nori_quantize_options *o = q->options;
    bool symmetric = o->weight_type == NORI_INT8 || o->weight_type == NORI_INT4;
    nori_tensor *made[3] = {NULL, NULL, NULL};
    nori__q_fitted f;
    nori__value *to;
    nori_status s = fit(e, n, m, o->block, o->weight_type, symmetric, &f);
    s = s == NORI_OK ? make_tensors(q, m, &f, o->block > 0, made) : s;
    nori__arena_free(&f.arena);
    if (s != NORI_OK) {
        for (int i = 0; i < 3; i++) {
            nori_tensor_free(made[i]);
        }
        return s;
    }
    bool turned = m->row_step == 1;
    int axis = o->block > 0 ? turned : !turned; /* of the blocks, or of the columns */
    NORI__TRY(nori__q_constant(q, n, n->inputs[1]->name, made[0], made[1], made[2], axis, o->block, &to));
    return nori__node_set_input(n, 1, to) ? NORI_OK : nori__no_memory(q->err);
}

/* ---- MatMulNBits ---- */

/* Columns of blocks, two 4-bit weights a byte, first in the low half; zero point 2^(bits-1). */
static nori_status pack(nori__quantizer *q, const nori__q_matrix *m, const nori__q_fitted *f,
                        unsigned bits, nori_tensor **packed, nori_tensor **scales)
{
    int64_t bytes = f->block * bits / 8, flat = m->columns * f->blocks;
    int64_t dims[3] = {m->columns, f->blocks, bytes};
    NORI__TRY(nori__tensor_new(q->ir->allocator, NORI_UINT8, 3, dims, packed, q->err));
    NORI__TRY(nori__tensor_new(q->ir->allocator, NORI_FLOAT, 1, &flat, scales, q->err));
    uint8_t *out = (*packed)->data;
    memset(out, bits == 4 ? 0x88 : 0x80, (*packed)->bytes); /* padding is zero */
    for (int64_t c = 0; c < m->columns; c++) {
        for (int64_t b = 0; b < f->blocks; b++, out += bytes) {
            int64_t row = b * f->block, count = m->rows - row < f->block ? m->rows - row : f->block;
            nori__tensor_set_f64(*scales, c * f->blocks + b, f->quants[c * f->blocks + b].scale);
            for (int64_t i = 0; i < count; i++) {
                unsigned k = (unsigned)f->integers[c * m->rows + row + i];
                if (bits == 8) {
                    out[i] = (uint8_t)k;
                } else {
                    unsigned keep = i % 2 ? out[i / 2] & 0x0fu : out[i / 2] & 0xf0u;
                    out[i / 2] = (uint8_t)(keep | (i % 2 ? k << 4 : k));
                }
            }
        }
    }
    return NORI_OK;
}

static nori_status nbits_node(nori__quantizer *q, nori__node *n, const nori__q_matrix *m, unsigned bits,
                              int64_t block, nori__value *packed, nori__value *scales)
{
    nori__value *bias = n->input_count > 2 ? n->inputs[2] : NULL, *out = n->outputs[0];
    nori__value *in[6] = {n->inputs[0], packed, scales, NULL, NULL, bias};
    n->outputs[0] = NULL;
    nori__node *made = nori__node_new(q->ir->main, n, "com.microsoft", "MatMulNBits", in,
                                      bias ? 6 : 3, &out, 1);
    bool ok = made && nori__node_set_int(made, "K", m->rows) &&
              nori__node_set_int(made, "N", m->columns) &&
              nori__node_set_int(made, "bits", bits) &&
              nori__node_set_int(made, "block_size", block);
    if (!ok) {
        return nori__no_memory(q->err);
    }
    made->name = n->name;
    nori__node_remove(n);
    return NORI_OK;
}

static nori_status as_nbits(emitting *e, nori__node *n, const nori__q_matrix *m)
{
    nori__quantizer *q = e->q;
    unsigned bits = nori_type_bits(q->options->weight_type);
    int64_t block = q->options->block;
    nori_tensor *packed = NULL, *scales = NULL;
    nori__q_fitted f;
    nori_status s = fit(e, n, m, block, bits == 4 ? NORI_UINT4 : NORI_UINT8, true, &f);
    s = s == NORI_OK ? pack(q, m, &f, bits, &packed, &scales) : s;
    nori__arena_free(&f.arena);
    if (s != NORI_OK) {
        nori_tensor_free(packed);
        nori_tensor_free(scales);
        return s;
    }
    const char *base = n->inputs[1]->name;
    nori__value *a = nori__const_new(q->ir->main, nori__q_name(q, base, "packed"), packed);
    nori__value *b = nori__const_new(q->ir->main, nori__q_name(q, base, "scales"), scales);
    return a && b ? nbits_node(q, n, m, bits, block, a, b) : nori__no_memory(q->err);
}

/* ---- */

static nori_status emit_node(emitting *e, nori__node *n)
{
    nori__quantizer *q = e->q;
    const nori_quantize_options *o = q->options;
    const nori_tensor *w = nori__value_const(n->inputs[1]);
    const nori__value *bias = n->input_count > 2 ? n->inputs[2] : NULL;
    nori__q_matrix m = {0};
    bool product = as_matrix(n, w, &m);
    bool plain = nori__q_plain(n) && !nori__attr_i(n, "transA", 0);
    bool vector = !bias || (nori__value_const(bias) && nori__value_const(bias)->rank == 1);
    int axis = nori__q_channel_axis(q, n, w);
    if (o->packed && product && plain && vector) {
        return as_nbits(e, n, &m);
    }
    if (product && (o->block > 0 || axis >= 0)) {
        return dequantized(e, n, &m);
    }
    nori__q_weight made;
    nori__value *to;
    bool symmetric = o->weight_type == NORI_INT8 || o->weight_type == NORI_INT4;
    NORI__TRY(nori__q_weight_make(q->ir->allocator, w, axis, o->weight_type, symmetric, NULL, 1,
                                  &made, q->err));
    nori__q_report_weight(q, n, made.sqnr);
    NORI__TRY(nori__q_constant(q, n, n->inputs[1]->name, made.integers, made.scales, made.zeros,
                               axis, 0, &to));
    return nori__node_set_input(n, 1, to) ? NORI_OK : nori__no_memory(q->err);
}

static nori_status emit_all(emitting *e)
{
    nori__quantizer *q = e->q;
    for (nori__node *n = q->ir->main->first, *next; n; n = next) {
        next = n->next;
        nori__q_matrix m;
        if (n->id >= q->n_nodes || !q->chosen[n->id]) {
            continue;
        }
        if (nori__q_recurrent(n)) {
            NORI__TRY(nori__q_emit_recurrent(q, n));
            continue;
        }
        if (q->options->packed && !as_matrix(n, nori__value_const(n->inputs[1]), &m)) {
            nori__q_report_node(q, n, "the packed form is for products of matrices");
            continue;
        }
        nori__q_report_node(q, n, NULL);
        NORI__TRY(emit_node(e, n));
    }
    return NORI_OK;
}

nori_status nori__q_emit_weights(nori__quantizer *q)
{
    emitting e = {.q = q};
    nori__arena arena;
    nori__arena_init(&arena, q->allocator);
    nori__map_init(&e.hessians, q->allocator);
    nori__map_init(&e.factored, q->allocator);
    nori_status s = NORI_OK;
    if (q->options->rounding == NORI_ROUNDING_GPTQ) {
        s = nori__q_see_products(q, &arena, &e.hessians);
    }
    s = s == NORI_OK ? emit_all(&e) : s;
    nori__map_free(&e.hessians);
    nori__map_free(&e.factored);
    nori__arena_free(&arena);
    return s;
}

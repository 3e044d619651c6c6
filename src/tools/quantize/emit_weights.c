/* emit_weights.c: weights alone as integers. The sums stay float: the file is smaller, and what
 * streams weights from memory is faster.
 *
 * A weight becomes DequantizeLinear of its integers, with a scale a column or a scale for every
 * block of a column; or a product becomes com.microsoft MatMulNBits, which keeps 4 or 8 bits a
 * weight while it runs. Scales are those of least squared error among some shares of the range. */
#include <math.h>

#include "ops/op.h"
#include "tools/quantize/quantize.h"

/* A run of weights with one scale. */
typedef struct run {
    const nori_tensor *w;
    int64_t first, step, count;
} run;

static double squared_error(const run *r, const nori_quant *quant)
{
    double sum = 0;
    for (int64_t i = 0; i < r->count; i++) {
        double v = nori__tensor_get_f64(r->w, r->first + i * r->step);
        double e = v - nori_dequantize_number(quant, nori_quantize_number(quant, v, NULL));
        sum += e * e;
    }
    return sum;
}

/* The scale of least squared error: clipping the largest few of a block often costs less than
 * coarse steps for all the rest. */
static nori_status best(const run *r, nori_type type, bool symmetric, nori_quant *quant,
                        nori_error *err)
{
    double low = 0, high = 0, least = INFINITY;
    for (int64_t i = 0; i < r->count; i++) {
        double v = nori__tensor_get_f64(r->w, r->first + i * r->step);
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    int tries = nori_type_bits(type) < 8 ? 20 : 1;
    for (int t = 0; t < tries; t++) {
        nori_quant q = {.size = sizeof(q)};
        double share = 1 - t * 0.025;
        NORI__TRY(nori_quant_range(type, low * share, high * share, symmetric, &q, err));
        q.scale = (double)(float)q.scale;
        double e = tries > 1 ? squared_error(r, &q) : 0;
        if (e < least) {
            least = e;
            *quant = q;
        }
    }
    return NORI_OK;
}

/* Rows and columns of a weight, as the product sees it: column j is what makes output j. */
typedef struct matrix {
    int64_t rows, columns, row_step, column_step;
} matrix;

static bool as_matrix(const nori__node *n, const nori_tensor *w, matrix *m)
{
    if (w->rank != 2 || (!nori__node_is(n, NORI__OP_ONNX_MatMul) &&
                         !nori__node_is(n, NORI__OP_ONNX_Gemm))) {
        return false;
    }
    bool turned = nori__node_is(n, NORI__OP_ONNX_Gemm) && nori__attr_i(n, "transB", 0);
    m->rows = w->dims[turned];
    m->columns = w->dims[!turned];
    m->row_step = turned ? 1 : w->dims[1];
    m->column_step = turned ? w->dims[1] : 1;
    return true;
}

typedef struct sums {
    double signal, noise;
} sums;

static void add_error(sums *s, const run *r, const nori_quant *quant)
{
    for (int64_t i = 0; i < r->count; i++) {
        double v = nori__tensor_get_f64(r->w, r->first + i * r->step);
        s->signal += v * v;
    }
    s->noise += squared_error(r, quant);
}

static double decibel(const sums *s)
{
    return s->noise > 0 ? 10 * log10(s->signal / s->noise) : INFINITY;
}

/* ---- DequantizeLinear in blocks ---- */

static nori_status in_blocks(nori__quantizer *q, nori__node *n, const nori_tensor *w,
                             const matrix *m)
{
    const nori_quantize_options *o = q->options;
    int axis = m->row_step == 1 ? 1 : 0; /* the axis the blocks run along */
    int64_t blocks = (m->rows + o->block - 1) / o->block;
    int64_t dims[2] = {axis ? m->columns : blocks, axis ? blocks : m->columns};
    bool symmetric = o->weight_type == NORI_INT8 || o->weight_type == NORI_INT4;
    nori_tensor *integers = NULL, *scales = NULL, *zeros = NULL;
    sums total = {0, 0};
    nori_status s = nori__tensor_new(q->ir->allocator, o->weight_type, 2, w->dims, &integers,
                                     q->err);
    s = s == NORI_OK ? nori__tensor_new(q->ir->allocator, NORI_FLOAT, 2, dims, &scales, q->err) : s;
    s = s == NORI_OK ? nori__tensor_new(q->ir->allocator, o->weight_type, 2, dims, &zeros, q->err)
                     : s;
    for (int64_t c = 0; s == NORI_OK && c < m->columns; c++) {
        for (int64_t b = 0; s == NORI_OK && b < blocks; b++) {
            int64_t row = b * o->block, count = m->rows - row < o->block ? m->rows - row : o->block;
            run r = {w, row * m->row_step + c * m->column_step, m->row_step, count};
            nori_quant quant = {.size = sizeof(quant)};
            s = best(&r, o->weight_type, symmetric, &quant, q->err);
            int64_t at = axis ? c * blocks + b : b * m->columns + c;
            nori__tensor_set_f64(scales, at, quant.scale);
            nori__tensor_set_i64(zeros, at, quant.zero_point);
            for (int64_t i = 0; i < count; i++) {
                int64_t k = r.first + i * r.step;
                nori__tensor_set_i64(integers, k, nori_quantize_number(
                                                      &quant, nori__tensor_get_f64(w, k), NULL));
            }
            add_error(&total, &r, &quant);
        }
    }
    if (s != NORI_OK) {
        nori_tensor_free(integers);
        nori_tensor_free(scales);
        nori_tensor_free(zeros);
        return s;
    }
    nori__value *to;
    nori__q_report_weight(q, n, decibel(&total));
    NORI__TRY(nori__q_constant(q, n, n->inputs[1]->name, integers, scales, zeros, axis, o->block,
                               &to));
    return nori__node_set_input(n, 1, to) ? NORI_OK : nori__no_memory(q->err);
}

/* ---- MatMulNBits ---- */

/* Columns of blocks, two 4-bit weights a byte, first in the low half; zero point 2^(bits-1). */
static nori_status pack(nori__quantizer *q, const nori_tensor *w, const matrix *m, unsigned bits,
                        int64_t block, nori_tensor **packed, nori_tensor **scales, sums *total)
{
    int64_t blocks = (m->rows + block - 1) / block, bytes = block * bits / 8;
    int64_t dims[3] = {m->columns, blocks, bytes}, flat = m->columns * blocks;
    nori_type type = bits == 4 ? NORI_UINT4 : NORI_UINT8;
    *packed = *scales = NULL;
    NORI__TRY(nori__tensor_new(q->ir->allocator, NORI_UINT8, 3, dims, packed, q->err));
    NORI__TRY(nori__tensor_new(q->ir->allocator, NORI_FLOAT, 1, &flat, scales, q->err));
    uint8_t *out = (*packed)->data;
    memset(out, bits == 4 ? 0x88 : 0x80, (*packed)->bytes); /* padding is zero */
    for (int64_t c = 0; c < m->columns; c++) {
        for (int64_t b = 0; b < blocks; b++, out += bytes) {
            int64_t row = b * block, count = m->rows - row < block ? m->rows - row : block;
            run r = {w, row * m->row_step + c * m->column_step, m->row_step, count};
            nori_quant quant = {.size = sizeof(quant)};
            NORI__TRY(best(&r, type, true, &quant, q->err));
            nori__tensor_set_f64(*scales, c * blocks + b, quant.scale);
            for (int64_t i = 0; i < count; i++) {
                double v = nori__tensor_get_f64(w, r.first + i * r.step);
                unsigned k = (unsigned)nori_quantize_number(&quant, v, NULL);
                if (bits == 8) {
                    out[i] = (uint8_t)k;
                } else {
                    unsigned keep = i % 2 ? out[i / 2] & 0x0fu : out[i / 2] & 0xf0u;
                    out[i / 2] = (uint8_t)(keep | (i % 2 ? k << 4 : k));
                }
            }
            add_error(total, &r, &quant);
        }
    }
    return NORI_OK;
}

static nori_status nbits_node(nori__quantizer *q, nori__node *n, const matrix *m, unsigned bits,
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

static nori_status as_nbits(nori__quantizer *q, nori__node *n, const nori_tensor *w,
                            const matrix *m)
{
    unsigned bits = nori_type_bits(q->options->weight_type);
    int64_t block = q->options->block;
    nori_tensor *packed, *scales;
    sums total = {0, 0};
    nori_status s = pack(q, w, m, bits, block, &packed, &scales, &total);
    if (s != NORI_OK) {
        nori_tensor_free(packed);
        nori_tensor_free(scales);
        return s;
    }
    const char *base = n->inputs[1]->name;
    nori__value *a = nori__const_new(q->ir->main, nori__q_name(q, base, "packed"), packed);
    nori__value *b = nori__const_new(q->ir->main, nori__q_name(q, base, "scales"), scales);
    nori__q_report_weight(q, n, decibel(&total));
    return a && b ? nbits_node(q, n, m, bits, block, a, b) : nori__no_memory(q->err);
}

/* ---- */

static nori_status emit_node(nori__quantizer *q, nori__node *n)
{
    const nori_quantize_options *o = q->options;
    const nori_tensor *w = nori__value_const(n->inputs[1]);
    const nori__value *bias = n->input_count > 2 ? n->inputs[2] : NULL;
    matrix m = {0, 0, 0, 0};
    bool product = as_matrix(n, w, &m);
    bool plain = nori__q_plain(n) && !nori__attr_i(n, "transA", 0);
    bool vector = !bias || (nori__value_const(bias) && nori__value_const(bias)->rank == 1);
    if (o->packed && product && plain && vector) {
        return as_nbits(q, n, w, &m);
    }
    if (o->block > 0 && product) {
        return in_blocks(q, n, w, &m);
    }
    nori__q_weight made;
    nori__value *to;
    int axis = nori__q_channel_axis(q, n, w);
    bool symmetric = o->weight_type == NORI_INT8 || o->weight_type == NORI_INT4;
    NORI__TRY(nori__q_weight_make(q->ir->allocator, w, axis, o->weight_type, symmetric, NULL, 1,
                                  &made, q->err));
    nori__q_report_weight(q, n, made.sqnr);
    NORI__TRY(nori__q_constant(q, n, n->inputs[1]->name, made.integers, made.scales, made.zeros,
                               axis, 0, &to));
    return nori__node_set_input(n, 1, to) ? NORI_OK : nori__no_memory(q->err);
}

nori_status nori__q_emit_weights(nori__quantizer *q)
{
    for (nori__node *n = q->ir->main->first, *next; n; n = next) {
        next = n->next;
        matrix m;
        if (n->id >= q->n_nodes || !q->chosen[n->id]) {
            continue;
        }
        if (q->options->packed && !as_matrix(n, nori__value_const(n->inputs[1]), &m)) {
            nori__q_report_node(q, n, "the packed form is for products of matrices");
            continue;
        }
        nori__q_report_node(q, n, NULL);
        NORI__TRY(emit_node(q, n));
    }
    return NORI_OK;
}

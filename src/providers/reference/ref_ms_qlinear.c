/* ref_ms_qlinear.c: com.microsoft element-wise operators on quantized tensors: QLinearAdd, Mul,
 * Sigmoid, LeakyRelu, Softmax, Where, Concat.
 *
 * A value is (q - zero point) * scale in float32; results are divided by their scale, rounded half
 * to even, moved by their zero point and saturated. Absent zero points are 0. */
#include "providers/reference/ref.h"
#include "providers/reference/ref_nn.h"

#include <math.h>

/* How one tensor is quantized. */
typedef struct quant {
    float scale;
    int32_t zero;
} quant;

static int32_t at_8bit(const nori_tensor *t, int64_t i)
{
    return t->type == NORI_UINT8 ? ((const uint8_t *)t->data)[i] : ((const int8_t *)t->data)[i];
}

static float value_of(int32_t q, quant by)
{
    return (float)(q - by.zero) * by.scale;
}

/* The byte of a real value that is already divided by the scale. NaN gives the lowest. */
static uint8_t byte_of(float v, int32_t zero, bool is_signed)
{
    float low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
    v = rintf(v) + (float)zero;
    v = v >= low ? (v < high ? v : high) : low;
    return (uint8_t)(int32_t)v;
}

/* Scale from input `scale`, zero point from `zero` (may be absent), of a tensor of type. */
static nori_status read_quant(const nori_call *call, uint32_t scale, uint32_t zero, nori_type type,
                              quant *q)
{
    NORI__TRY(nori__nn_need(call, scale, "scale", -1));
    NORI__TRY(nori__nn_count(call, scale, "scale", 1));
    NORI__TRY(nori__nn_count(call, zero, "zero point", 1));
    if (nori__nn_has(call, zero) && call->in[zero]->type != type) {
        return nori__nn_type_error(call, zero);
    }
    q->scale = (float)nori__tensor_get_f64(call->in[scale], 0);
    q->zero = nori__nn_has(call, zero) ? at_8bit(call->in[zero], 0) : 0;
    return NORI_OK;
}

static nori_status need_8bit(const nori_call *call, uint32_t i)
{
    NORI__TRY(nori__nn_need(call, i, "operand", -1));
    nori_type type = (nori_type)call->in[i]->type;
    bool fits = (type == NORI_UINT8 || type == NORI_INT8) && call->out[0]->type == type;
    return fits ? NORI_OK : nori__nn_type_error(call, i);
}

/* ---- two operands: A, A_scale, A_zero, B, B_scale, B_zero, C_scale, C_zero ---- */

typedef struct binary {
    quant a, b, c;
} binary;

static void add_line(const nori__ref_line *line)
{
    const binary *q = line->user;
    bool is_signed = line->to->type == NORI_INT8;
    for (int64_t i = 0; i < line->n; i++) {
        float a = value_of(at_8bit(line->from[0], line->in[0] + i * line->step[0]), q->a);
        float b = value_of(at_8bit(line->from[1], line->in[1] + i * line->step[1]), q->b);
        ((uint8_t *)line->to->data)[line->out + i] =
            byte_of((a + b) / q->c.scale, q->c.zero, is_signed);
    }
}

static void mul_line(const nori__ref_line *line)
{
    const binary *q = line->user;
    bool is_signed = line->to->type == NORI_INT8;
    float factor = q->a.scale * q->b.scale / q->c.scale;
    for (int64_t i = 0; i < line->n; i++) {
        int32_t a = at_8bit(line->from[0], line->in[0] + i * line->step[0]) - q->a.zero;
        int32_t b = at_8bit(line->from[1], line->in[1] + i * line->step[1]) - q->b.zero;
        ((uint8_t *)line->to->data)[line->out + i] =
            byte_of((float)(a * b) * factor, q->c.zero, is_signed);
    }
}

static nori_status run_binary(nori_call *call, nori__ref_line_fn fn)
{
    binary q;
    NORI__TRY(need_8bit(call, 0));
    NORI__TRY(need_8bit(call, 3));
    nori_type type = (nori_type)call->in[0]->type;
    NORI__TRY(read_quant(call, 1, 2, type, &q.a));
    NORI__TRY(read_quant(call, 4, 5, type, &q.b));
    NORI__TRY(read_quant(call, 6, 7, type, &q.c));
    const nori_tensor *from[2] = {call->in[0], call->in[3]};
    return nori__ref_lines(call, call->out[0], from, 2, fn, &q);
}

nori_status nori__ref_ms_QLinearAdd(nori_call *call)
{
    return run_binary(call, add_line);
}

nori_status nori__ref_ms_QLinearMul(nori_call *call)
{
    return run_binary(call, mul_line);
}

/* ---- by table: X, X_scale, X_zero, Y_scale, Y_zero ---- */

/* What each of the 256 bytes becomes: f of its value (NULL: the value), quantized again. */
static void fill_table(uint8_t table[256], quant x, quant y, bool is_signed,
                       float (*f)(float v, float p), float p)
{
    for (int32_t i = 0; i < 256; i++) {
        float v = value_of(is_signed ? (int8_t)(uint8_t)i : i, x);
        table[i] = byte_of((f ? f(v, p) : v) / y.scale, y.zero, is_signed);
    }
}

static nori_status run_table(nori_call *call, float (*f)(float v, float p), float p)
{
    quant x, y;
    uint8_t table[256];
    NORI__TRY(need_8bit(call, 0));
    nori_type type = (nori_type)call->in[0]->type;
    NORI__TRY(read_quant(call, 1, 2, type, &x));
    NORI__TRY(read_quant(call, 3, 4, type, &y));
    fill_table(table, x, y, type == NORI_INT8, f, p);
    for (int64_t i = 0; i < call->in[0]->count; i++) {
        ((uint8_t *)call->out[0]->data)[i] = table[((const uint8_t *)call->in[0]->data)[i]];
    }
    return NORI_OK;
}

static float leaky(float v, float alpha)
{
    return v >= 0 ? v : alpha * v;
}

static float sigmoid(float v, float p)
{
    (void)p;
    return (float)(1 / (1 + exp(-(double)v)));
}

nori_status nori__ref_ms_QLinearLeakyRelu(nori_call *call)
{
    return run_table(call, leaky, nori__attr_f(call->node, "alpha", 0.01f));
}

nori_status nori__ref_ms_QLinearSigmoid(nori_call *call)
{
    return run_table(call, sigmoid, 0);
}

/* ---- Softmax ---- */

/* Lines along axis; before opset 13 of Softmax axis and all behind it are one line. */
nori_status nori__ref_ms_QLinearSoftmax(nori_call *call)
{
    quant x, y;
    int axis;
    NORI__TRY(need_8bit(call, 0));
    const nori_tensor *in = call->in[0];
    NORI__TRY(read_quant(call, 1, 2, (nori_type)in->type, &x));
    NORI__TRY(read_quant(call, 3, 4, (nori_type)in->type, &y));
    NORI__TRY(nori__ref_axis(call, nori__attr_i(call->node, "axis", -1), in->rank, &axis));
    nori__ref_split s = nori__ref_split_at(in, axis);
    if (nori__attr_i(call->node, "opset", 13) < 13) {
        s.length *= s.inner;
        s.inner = 1;
    }
    for (int64_t line = 0; line < s.outer * s.inner && in->count > 0; line++) {
        int64_t from = line / s.inner * s.length * s.inner + line % s.inner;
        int32_t most = -128;
        double sum = 0;
        for (int64_t i = 0; i < s.length; i++) {
            int32_t q = at_8bit(in, from + i * s.inner);
            most = q > most ? q : most;
        }
        for (int64_t i = 0; i < s.length; i++) {
            sum += exp((double)(at_8bit(in, from + i * s.inner) - most) * (double)x.scale);
        }
        for (int64_t i = 0; i < s.length; i++) {
            double e = exp((double)(at_8bit(in, from + i * s.inner) - most) * (double)x.scale);
            ((uint8_t *)call->out[0]->data)[from + i * s.inner] =
                byte_of((float)(e / sum / (double)y.scale), y.zero, in->type == NORI_INT8);
        }
    }
    return NORI_OK;
}

/* ---- Where: condition, X, x_scale, x_zero, Y, y_scale, y_zero, z_scale, z_zero ---- */

typedef struct choice {
    uint8_t x[256], y[256];
} choice;

static void where_line(const nori__ref_line *line)
{
    const choice *t = line->user;
    for (int64_t i = 0; i < line->n; i++) {
        bool first = ((const uint8_t *)line->from[0]->data)[line->in[0] + i * line->step[0]] != 0;
        int k = first ? 1 : 2;
        uint8_t q = ((const uint8_t *)line->from[k]->data)[line->in[k] + i * line->step[k]];
        ((uint8_t *)line->to->data)[line->out + i] = first ? t->x[q] : t->y[q];
    }
}

nori_status nori__ref_ms_QLinearWhere(nori_call *call)
{
    quant x, y, z;
    choice tables;
    NORI__TRY(nori__nn_need(call, 0, "condition", -1));
    NORI__TRY(need_8bit(call, 1));
    NORI__TRY(need_8bit(call, 4));
    nori_type type = (nori_type)call->in[1]->type;
    if (call->in[0]->type != NORI_BOOL) {
        return nori__nn_type_error(call, 0);
    }
    NORI__TRY(read_quant(call, 2, 3, type, &x));
    NORI__TRY(read_quant(call, 5, 6, type, &y));
    NORI__TRY(read_quant(call, 7, 8, type, &z));
    fill_table(tables.x, x, z, type == NORI_INT8, NULL, 0);
    fill_table(tables.y, y, z, type == NORI_INT8, NULL, 0);
    const nori_tensor *from[3] = {call->in[0], call->in[1], call->in[4]};
    return nori__ref_lines(call, call->out[0], from, 3, where_line, &tables);
}

/* ---- Concat: Y_scale, Y_zero, then tensor, scale, zero point of each part ---- */

nori_status nori__ref_ms_QLinearConcat(nori_call *call)
{
    nori_tensor *out = call->out[0];
    quant y, x;
    int axis;
    uint8_t table[256];
    NORI__TRY(read_quant(call, 0, 1, (nori_type)out->type, &y));
    NORI__TRY(nori__ref_axis(call, nori__attr_i(call->node, "axis", 0), out->rank, &axis));
    nori__ref_split whole = nori__ref_split_at(out, axis);
    int64_t at = 0;
    for (uint32_t i = 2; i + 2 < call->n_in; i += 3) {
        NORI__TRY(need_8bit(call, i));
        const nori_tensor *in = call->in[i];
        NORI__TRY(read_quant(call, i + 1, i + 2, (nori_type)out->type, &x));
        if (in->rank != out->rank) {
            return nori__fail(call->err, NORI_ERROR_DATA, "input %u has rank %d, expected %d", i,
                              in->rank, out->rank);
        }
        nori__ref_split part = nori__ref_split_at(in, axis);
        if (part.outer != whole.outer || part.inner != whole.inner ||
            part.length > whole.length - at) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "input %u does not fit the others but for axis %d", i, axis);
        }
        fill_table(table, x, y, out->type == NORI_INT8, NULL, 0);
        const uint8_t *from = in->data;
        for (int64_t o = 0; o < part.outer; o++) {
            uint8_t *to = (uint8_t *)out->data + (o * whole.length + at) * whole.inner;
            for (int64_t k = 0; k < part.length * part.inner; k++) {
                to[k] = table[*from++];
            }
        }
        at += part.length;
    }
    return NORI_OK;
}

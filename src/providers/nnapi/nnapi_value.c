/* nnapi_value.c: operands and operations of a part's model: made, filled, and turned between forms. */
#include "providers/nnapi/nnapi.h"

/* ---- failures ---- */

static const char *result_text(int result)
{
    static const char *const texts[] = {
        "no error", "out of memory", "incomplete", "unexpected null", "bad data", "operation failed",
        "bad state", "unmappable", "output too small", "device unavailable", "missed deadline",
        "missed deadline", "resources exhausted", "resources exhausted", "dead object"};
    return result >= 0 && result < (int)NORI__COUNT(texts) ? texts[result] : "a result not known";
}

nori_status nori__na_check(na_part *p, int result, const char *call)
{
    if (result != 0 && p->status == NORI_OK) {
        p->status = result == 1 ? NORI_ERROR_MEMORY : NORI_ERROR_UNSUPPORTED;
        nori__fail(p->err, p->status, "NNAPI: ANeuralNetworks%s says %s (%d)", call,
                   result_text(result), result);
    }
    return p->status;
}

void nori__na_refuse(na_part *p, const char *why)
{
    if (p->status == NORI_OK) {
        p->status = nori__fail(p->err, NORI_ERROR_UNSUPPORTED, "%s", why);
    }
}

/* ---- shapes ---- */

int nori__na_axis_in(int form, int rank, int axis)
{
    return form == NA_PLAIN || rank != 4 || axis == 0 ? axis : axis == 1 ? 3 : axis - 1;
}

static na_shape turned(const na_shape *s, int form)
{
    na_shape to = *s;
    for (int d = 0; d < s->rank; d++) {
        to.d[nori__na_axis_in(form, s->rank, d)] = s->d[d];
    }
    return to;
}

const nori_tensor *nori__na_tensor(const na_part *p, uint32_t value)
{
    return nori__value_const(p->part->values[value]);
}

na_shape nori__na_shape(const na_part *p, uint32_t value, int form)
{
    const nori__value *v = p->part->values[value];
    const nori_tensor *t = nori__value_const(v);
    na_shape s = {.rank = t ? t->rank : v->type.rank, .count = 1};
    for (int d = 0; d < s.rank; d++) {
        s.d[d] = t ? t->dims[d] : v->type.dims[d].value;
        s.count *= s.d[d];
    }
    if (s.rank == 0) {
        s.rank = 1;
        s.d[0] = 1;
    }
    return turned(&s, form);
}

/* ---- operands ---- */

static void told(na_part *p, const void *data, size_t size)
{
    if (p->self->cache_dir) {
        nori__hash_add(&p->content, data, size);
    }
}

static uint32_t operand(na_part *p, int32_t code, int rank, const int64_t *dims)
{
    uint32_t sizes[NA_RANK] = {0};
    na_type type = {.type = code, .rank = (uint32_t)rank, .dims = rank ? sizes : NULL};
    if (p->status != NORI_OK) {
        return NA_NONE;
    }
    for (int d = 0; d < rank; d++) {
        sizes[d] = (uint32_t)dims[d];
    }
    told(p, &code, sizeof(code));
    told(p, sizes, sizeof(sizes[0]) * (size_t)rank);
    if (nori__na_check(p, p->self->call.Model_addOperand(p->model, &type), "Model_addOperand") !=
        NORI_OK) {
        return NA_NONE;
    }
    return p->operands++;
}

/* data lives as long as the part when it is longer than what NNAPI copies. */
static uint32_t filled(na_part *p, int32_t code, int rank, const int64_t *dims, const void *data,
                       size_t bytes)
{
    uint32_t i = operand(p, code, rank, dims);
    if (i != NA_NONE) {
        told(p, data, bytes);
        nori__na_check(p, p->self->call.Model_setOperandValue(p->model, (int32_t)i, data, bytes),
                       "Model_setOperandValue");
    }
    return i;
}

uint32_t nori__na_operand(na_part *p, const na_shape *s)
{
    return operand(p, NA_TENSOR_FLOAT32, s->rank, s->d);
}

uint32_t nori__na_int(na_part *p, int64_t value)
{
    int32_t v = (int32_t)value;
    return filled(p, NA_INT32, 0, NULL, &v, sizeof(v));
}

uint32_t nori__na_float(na_part *p, float value)
{
    return filled(p, NA_FLOAT32, 0, NULL, &value, sizeof(value));
}

uint32_t nori__na_bool(na_part *p, bool value)
{
    uint8_t v = value;
    return filled(p, NA_BOOL, 0, NULL, &v, sizeof(v));
}

uint32_t nori__na_ints(na_part *p, const int64_t *values, int rank, const int64_t *dims)
{
    int32_t v[2 * NA_RANK]; /* below what NNAPI copies at once */
    size_t count = 1;
    for (int d = 0; d < rank; d++) {
        count *= (size_t)dims[d];
    }
    for (size_t i = 0; i < count; i++) {
        v[i] = (int32_t)values[i];
    }
    return filled(p, NA_TENSOR_INT32, rank, dims, v, count * sizeof(v[0]));
}

float *nori__na_room(na_part *p, int64_t count)
{
    float *room = p->status == NORI_OK ? nori__arena_array(&p->arena, (size_t)count, sizeof(*room)) : NULL;
    if (!room && p->status == NORI_OK) {
        p->status = nori__no_memory(p->err);
    }
    return room;
}

uint32_t nori__na_constant(na_part *p, const na_shape *s, const float *room)
{
    return filled(p, NA_TENSOR_FLOAT32, s->rank, s->d, room, (size_t)s->count * sizeof(*room));
}

void nori__na_op(na_part *p, int32_t code, const uint32_t *in, uint32_t n_in, uint32_t out)
{
    if (p->status == NORI_OK) {
        told(p, &code, sizeof(code));
        told(p, in, sizeof(in[0]) * n_in);
        told(p, &out, sizeof(out));
        nori__na_check(p, p->self->call.Model_addOperation(p->model, code, n_in, in, 1, &out),
                       "Model_addOperation");
    }
}

/* ---- values and their forms ---- */

static int fitting(const na_part *p, uint32_t value, int form)
{
    return nori__na_shape(p, value, NA_PLAIN).rank == 4 ? form : NA_PLAIN;
}

int nori__na_layout(const na_part *p, uint32_t value)
{
    return p->forms[value][NA_PLAIN] == NA_NONE && p->forms[value][NA_LAST] != NA_NONE ? NA_LAST
                                                                                       : NA_PLAIN;
}

uint32_t nori__na_make(na_part *p, uint32_t value, int form)
{
    form = fitting(p, value, form);
    na_shape s = nori__na_shape(p, value, form);
    return p->forms[value][form] = nori__na_operand(p, &s);
}

void nori__na_share(na_part *p, uint32_t value, int form, uint32_t operand)
{
    p->forms[value][fitting(p, value, form)] = operand;
}

static uint32_t constant_form(na_part *p, uint32_t value, int form)
{
    const nori_tensor *t = nori__na_tensor(p, value);
    na_shape s = nori__na_shape(p, value, form);
    float *room = nori__na_room(p, t->count);
    const float *from = t->data;
    if (!room) {
        return NA_NONE;
    }
    if (form == NA_PLAIN) {
        memcpy(room, from, (size_t)t->count * sizeof(*room));
    } else {
        int64_t area = s.d[1] * s.d[2];
        for (int64_t i = 0; i < t->count; i++) { /* i counts where it goes */
            int64_t c = i % s.d[3], at = i / s.d[3];
            room[i] = from[(at / area * s.d[3] + c) * area + at % area];
        }
    }
    return p->forms[value][form] = nori__na_constant(p, &s, room);
}

uint32_t nori__na_want(na_part *p, uint32_t value, int form)
{
    static const int64_t to_last[] = {0, 2, 3, 1}, to_plain[] = {0, 3, 1, 2};
    static const int64_t four[] = {4};
    form = fitting(p, value, form);
    if (p->status != NORI_OK || p->forms[value][form] != NA_NONE) {
        return p->status == NORI_OK ? p->forms[value][form] : NA_NONE;
    }
    if (nori__na_tensor(p, value)) {
        return constant_form(p, value, form);
    }
    if (p->input[value] != NA_NONE && p->forms[value][NA_PLAIN] == NA_NONE) {
        uint32_t made = nori__na_make(p, value, NA_PLAIN);
        p->in[p->n_in] = made;
        p->in_number[p->n_in++] = p->input[value];
        return form == NA_PLAIN ? made : nori__na_want(p, value, form);
    }
    uint32_t from = p->forms[value][form == NA_PLAIN ? NA_LAST : NA_PLAIN];
    if (from == NA_NONE) {
        nori__na_refuse(p, "a value is read before it is made");
        return NA_NONE;
    }
    uint32_t in[2] = {from, nori__na_ints(p, form == NA_LAST ? to_last : to_plain, 1, four)};
    uint32_t out = nori__na_make(p, value, form);
    nori__na_op(p, NA_TRANSPOSE, in, 2, out);
    return out;
}

uint32_t nori__na_fuse(na_part *p, uint32_t value, int *fused)
{
    uint32_t at = p->is_out[value] ? NA_NONE : p->reader[value];
    const nori__node *n = at == NA_NONE ? NULL : p->part->nodes[at];
    *fused = n && p->part->node_values[at][0] == value ? nori__na_activation(n) : NA_FUSED_NONE;
    if (*fused == NA_FUSED_NONE) {
        return value;
    }
    p->done[at] = true;
    return p->part->node_values[at][n->input_count];
}

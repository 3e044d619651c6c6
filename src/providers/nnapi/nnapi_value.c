/* nnapi_value.c: operands and operations of a part's model: made, filled, and turned between forms. */
#include "providers/nnapi/nnapi_bytes.h"

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
    return form == NA_PLAIN || rank < 3 || axis == 0 ? axis : axis == 1 ? rank - 1 : axis - 1;
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

/* Of a type's code, scale and zero point, and of these dimensions. */
static uint32_t operand(na_part *p, const na_type *of, int rank, const int64_t *dims)
{
    uint32_t sizes[NA_RANK] = {0};
    na_type type = *of;
    if (p->status != NORI_OK) {
        return NA_NONE;
    }
    type.rank = (uint32_t)rank;
    type.dims = rank ? sizes : NULL;
    for (int d = 0; d < rank; d++) {
        sizes[d] = (uint32_t)dims[d];
    }
    told(p, &type.type, sizeof(type.type));
    told(p, &type.scale, sizeof(type.scale));
    told(p, &type.zero_point, sizeof(type.zero_point));
    told(p, sizes, sizeof(sizes[0]) * (size_t)rank);
    if (nori__na_check(p, p->self->call.Model_addOperand(p->model, &type), "Model_addOperand") !=
        NORI_OK) {
        return NA_NONE;
    }
    return p->operands++;
}

/* data lives as long as the part when it is longer than what NNAPI copies. */
static uint32_t filled(na_part *p, const na_type *type, int rank, const int64_t *dims,
                       const na_channels *channels, const void *data, size_t bytes)
{
    uint32_t i = operand(p, type, rank, dims);
    if (i != NA_NONE && channels) {
        told(p, channels->scales, channels->count * sizeof(channels->scales[0]));
        nori__na_check(p,
                       p->self->call.Model_setOperandSymmPerChannelQuantParams(p->model, (int32_t)i,
                                                                               channels),
                       "Model_setOperandSymmPerChannelQuantParams");
    }
    if (i != NA_NONE && p->status == NORI_OK) {
        told(p, data, bytes);
        nori__na_check(p, p->self->call.Model_setOperandValue(p->model, (int32_t)i, data, bytes),
                       "Model_setOperandValue");
    }
    return i;
}

static const na_type floats = {.type = NA_TENSOR_FLOAT32};

uint32_t nori__na_operand(na_part *p, const na_shape *s)
{
    return operand(p, &floats, s->rank, s->d);
}

/* Floats, or bytes of the meaning they have in the graph. */
static na_type type_of(na_part *p, uint32_t value)
{
    const nori__value *v = p->part->values[value];
    na_quant q;
    if (v->type.elem == NORI_FLOAT) {
        return floats;
    }
    if (!nori__na_quant(v, &q)) {
        nori__na_refuse(p, "nothing says what an 8-bit value stands for");
        return floats;
    }
    return nori__na_byte_type(&q);
}

uint32_t nori__na_operand_like(na_part *p, uint32_t value, const na_shape *s)
{
    na_type type = type_of(p, value);
    return operand(p, &type, s->rank, s->d);
}

uint32_t nori__na_int(na_part *p, int64_t value)
{
    int32_t v = (int32_t)value;
    return filled(p, &(na_type){.type = NA_INT32}, 0, NULL, NULL, &v, sizeof(v));
}

uint32_t nori__na_float(na_part *p, float value)
{
    return filled(p, &(na_type){.type = NA_FLOAT32}, 0, NULL, NULL, &value, sizeof(value));
}

uint32_t nori__na_bool(na_part *p, bool value)
{
    uint8_t v = value;
    return filled(p, &(na_type){.type = NA_BOOL}, 0, NULL, NULL, &v, sizeof(v));
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
    return filled(p, &(na_type){.type = NA_TENSOR_INT32}, rank, dims, NULL, v, count * sizeof(v[0]));
}

void *nori__na_bytes_room(na_part *p, int64_t count, size_t size)
{
    void *room = p->status == NORI_OK ? nori__arena_array(&p->arena, (size_t)count, size) : NULL;
    if (!room && p->status == NORI_OK) {
        p->status = nori__no_memory(p->err);
    }
    return room;
}

float *nori__na_room(na_part *p, int64_t count)
{
    return nori__na_bytes_room(p, count, sizeof(float));
}

uint32_t nori__na_constant(na_part *p, const na_shape *s, const float *room)
{
    return filled(p, &floats, s->rank, s->d, NULL, room, (size_t)s->count * sizeof(*room));
}

uint32_t nori__na_constant_of(na_part *p, const na_type *type, const na_shape *s,
                              const na_channels *channels, const void *room, size_t bytes)
{
    return filled(p, type, s->rank, s->d, channels, room, bytes);
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
    return nori__na_shape(p, value, NA_PLAIN).rank >= 3 ? form : NA_PLAIN;
}

int nori__na_layout(const na_part *p, uint32_t value)
{
    uint32_t at = p->links.maker[value];
    bool made = p->forms[value][NA_PLAIN] != NA_NONE || p->forms[value][NA_LAST] != NA_NONE;
    if (!made && at != NA_NONE && nori__node_is(p->part->nodes[at], NORI__OP_ONNX_DequantizeLinear)) {
        value = p->part->node_values[at][0]; /* as its bytes will be turned to floats */
    }
    return p->forms[value][NA_PLAIN] == NA_NONE && p->forms[value][NA_LAST] != NA_NONE ? NA_LAST
                                                                                       : NA_PLAIN;
}

uint32_t nori__na_make(na_part *p, uint32_t value, int form)
{
    form = fitting(p, value, form);
    na_shape s = nori__na_shape(p, value, form);
    return p->forms[value][form] = nori__na_operand_like(p, value, &s);
}

void nori__na_share(na_part *p, uint32_t value, int form, uint32_t operand)
{
    p->forms[value][fitting(p, value, form)] = operand;
}

uint32_t nori__na_constant_form(na_part *p, uint32_t value, int form, const nori_tensor *t)
{
    form = fitting(p, value, form);
    na_type type = type_of(p, value);
    na_shape s = nori__na_shape(p, value, form);
    size_t size = t->type == NORI_FLOAT ? sizeof(float) : 1;
    char *room = nori__na_bytes_room(p, t->count, size);
    const char *from = t->data;
    if (!room) {
        return NA_NONE;
    }
    if (form == NA_PLAIN) {
        memcpy(room, from, (size_t)t->count * size);
    } else {
        int64_t channels = s.d[s.rank - 1], area = s.d[1] * (s.rank == 4 ? s.d[2] : 1);
        for (int64_t i = 0; i < t->count; i++) { /* i counts where it goes */
            int64_t c = i % channels, at = i / channels;
            int64_t of = (at / area * channels + c) * area + at % area;
            memcpy(room + (size_t)i * size, from + (size_t)of * size, size);
        }
    }
    return p->forms[value][form] = filled(p, &type, s.rank, s.d, NULL, room, (size_t)t->count * size);
}

uint32_t nori__na_want(na_part *p, uint32_t value, int form)
{
    static const int64_t to_last[] = {0, 2, 3, 1}, to_plain[] = {0, 3, 1, 2}, line[] = {0, 2, 1};
    form = fitting(p, value, form);
    if (p->status != NORI_OK || p->forms[value][form] != NA_NONE) {
        return p->status == NORI_OK ? p->forms[value][form] : NA_NONE;
    }
    if (nori__na_tensor(p, value)) {
        return nori__na_constant_form(p, value, form, nori__na_tensor(p, value));
    }
    if (p->links.input[value] != NA_NONE && p->forms[value][NA_PLAIN] == NA_NONE) {
        uint32_t made = nori__na_make(p, value, NA_PLAIN);
        p->in[p->n_in] = made;
        p->in_number[p->n_in++] = p->links.input[value];
        return form == NA_PLAIN ? made : nori__na_want(p, value, form);
    }
    uint32_t from = p->forms[value][form == NA_PLAIN ? NA_LAST : NA_PLAIN];
    if (from == NA_NONE && nori__na_dequantized(p, value, form) != NA_NONE) {
        return nori__na_want(p, value, form);
    }
    if (from == NA_NONE) {
        nori__na_refuse(p, "a value is read before it is made");
        return NA_NONE;
    }
    const int64_t rank[] = {nori__na_shape(p, value, NA_PLAIN).rank};
    const int64_t *perm = rank[0] == 3 ? line : form == NA_LAST ? to_last : to_plain;
    uint32_t in[2] = {from, nori__na_ints(p, perm, 1, rank)};
    uint32_t out = nori__na_make(p, value, form);
    nori__na_op(p, NA_TRANSPOSE, in, 2, out);
    return out;
}

uint32_t nori__na_fuse(na_part *p, uint32_t value, int *fused)
{
    uint32_t at = nori__links_follower(&p->links, value);
    const nori__node *n = at == NA_NONE ? NULL : p->part->nodes[at];
    *fused = n ? nori__na_activation(n) : NA_FUSED_NONE;
    if (*fused == NA_FUSED_NONE) {
        return value;
    }
    p->links.done[at] = true;
    return p->part->node_values[at][n->input_count];
}

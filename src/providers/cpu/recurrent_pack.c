/* recurrent_pack.c: which LSTM, GRU and RNN nodes the cpu provider takes, and their packed weights. */
#include "plan/packed.h"
#include "providers/cpu/recurrent.h"

static bool same_name(nori__str s, const char *name)
{
    size_t n = strlen(name);
    bool same = s.n == n;
    for (size_t i = 0; same && i < n; i++) { /* files differ in case */
        same = (s.p[i] | 32) == (name[i] | 32);
    }
    return same;
}

/* The activations named are the usual ones; RNN may have Relu. */
static bool activations(const nori__node *node, nori__recurrent *s)
{
    static const char *const usual[] = {"Sigmoid", "Tanh", "Tanh"};
    const nori__attr *names = nori__attr_find(node, "activations");
    size_t per = s->cell == NORI__CELL_LSTM ? 3 : s->cell == NORI__CELL_GRU ? 2 : 1;
    s->function = NORI__U_TANH;
    if (!names || names->kind != NORI__ATTR_STRINGS || names->count == 0) {
        return true;
    }
    if (names->count != per * s->directions) {
        return false;
    }
    size_t relu = 0;
    for (size_t i = 0; i < names->count; i++) {
        if (per == 1 && same_name(names->v.strings[i], "Relu")) {
            relu++;
        } else if (!same_name(names->v.strings[i], per == 1 ? "Tanh" : usual[i % per])) {
            return false;
        }
    }
    s->function = relu > 0 ? NORI__U_RELU : NORI__U_TANH;
    return relu == 0 || relu == names->count;
}

static const nori_tensor *constant(const nori__node *node, uint32_t i, int rank)
{
    const nori_tensor *t = nori__value_as_is(nori__cpu_value(node, i));
    return t && t->type == NORI_FLOAT && t->rank == rank && t->count > 0 ? t : NULL;
}

static bool takes(const nori__node *node, nori__recurrent *s)
{
    const char *direction = nori__attr_s(node, "direction", "forward");
    s->cell = nori__node_is(node, NORI__OP_ONNX_LSTM)  ? NORI__CELL_LSTM
              : nori__node_is(node, NORI__OP_ONNX_GRU) ? NORI__CELL_GRU
                                                       : NORI__CELL_RNN;
    s->gates = s->cell == NORI__CELL_LSTM ? 4 : s->cell == NORI__CELL_GRU ? 3 : 1;
    s->directions = nori__same(direction, "bidirectional") ? 2 : 1;
    s->reversed = nori__same(direction, "reverse");
    s->batch_first = nori__attr_i(node, "layout", 0) != 0;
    bool waits = s->cell == NORI__CELL_GRU && nori__attr_i(node, "linear_before_reset", 0) == 0;
    s->early = waits ? 2 : s->gates;
    const nori_tensor *w = constant(node, 1, 3), *r = constant(node, 2, 3);
    const nori__value *b = nori__cpu_value(node, 3);
    if (!w || !r || (b && !constant(node, 3, 2)) || nori__cpu_value(node, 7) ||
        nori__attr_f(node, "clip", 0) > 0 || nori__attr_i(node, "input_forget", 0) != 0 ||
        !activations(node, s)) {
        return false;
    }
    s->hidden = (size_t)r->dims[2];
    s->input = (size_t)w->dims[2];
    int64_t rows = (int64_t)s->gates * r->dims[2], d = (int64_t)s->directions;
    return s->hidden < SIZE_MAX / 64 && w->dims[0] == d && r->dims[0] == d && w->dims[1] == rows &&
           r->dims[1] == rows && (!b || b->constant->count == d * 2 * rows);
}

/* Row of W or R that stands at a column of gates [from, from + count); false: a column of none. */
static bool row_of(const nori__recurrent *s, size_t from, size_t count, size_t column, size_t *row)
{
    size_t lanes = nori__kernels_get()->f32_nr / 2, block = column / (count * lanes);
    size_t gate = from + column / lanes % count, unit = block * lanes + column % lanes;
    *row = gate * s->hidden + unit;
    return unit < s->hidden;
}

/* Packs gates [from, from + count) of a matrix with rows of depth k; turned has room for them. */
static void pack_gates(const nori__recurrent *s, const float *in, size_t k, size_t from,
                       size_t count, float *turned, float *out)
{
    size_t n = s->columns / s->gates * count, row;
    for (size_t j = 0; j < n; j++) {
        if (row_of(s, from, count, j, &row)) {
            memcpy(turned + j * k, in + row * k, k * sizeof(float));
        } else {
            memset(turned + j * k, 0, k * sizeof(float));
        }
    }
    nori__pack_b(n, k, turned, 1, k, out);
}

static void pack_bias(const nori__recurrent *s, const nori__any_f32 *b, size_t direction)
{
    size_t rows = s->gates * s->hidden, row;
    bool gru = s->cell == NORI__CELL_GRU;
    float *bias = s->bias + direction * s->columns;
    size_t step = gru ? s->columns / s->gates * (s->early == 2 ? 1 : 3) : 0;
    float *late = gru ? s->bias_r + direction * step : NULL;
    b += direction * 2 * rows;
    for (size_t j = 0; j < s->columns; j++) {
        bias[j] = 0;
        if (row_of(s, 0, s->gates, j, &row)) {
            bias[j] = gru && row >= 2 * s->hidden ? b[row] : b[row] + b[rows + row];
        }
    }
    for (size_t j = 0; j < step; j++) {
        bool there = s->early == 2 ? row_of(s, 2, 1, j, &row)
                                   : row_of(s, 0, 3, j, &row) && row >= 2 * s->hidden;
        late[j] = there ? b[rows + row] : 0;
    }
}

/* Sizes of the parts of room, in floats; false: too large. */
static bool measure(nori__recurrent *s, bool biased, size_t *total)
{
    size_t lanes = nori__kernels_get()->f32_nr / 2, blocks = (s->hidden + lanes - 1) / lanes;
    s->columns = blocks * lanes * s->gates;
    s->w_step = nori__packed_b(s->columns, s->input);
    s->r_step = nori__packed_b(blocks * lanes * s->early, s->hidden);
    s->late_step = s->early < s->gates ? nori__packed_b(blocks * lanes, s->hidden) : 0;
    *total = 0;
    size_t each = s->w_step;
    return s->w_step > 0 && s->r_step > 0 && nori__add_size(each, s->r_step, &each) &&
           nori__add_size(each, s->late_step, &each) &&
           nori__add_size(each, biased ? 2 * s->columns : 0, &each) &&
           nori__mul_size(each, s->directions, total) &&
           nori__mul_size(*total, sizeof(float), &s->bytes);
}

static void place(nori__recurrent *s, bool biased)
{
    float *at = s->room;
    s->w = at;
    s->r = s->w + s->directions * s->w_step;
    s->late = s->r + s->directions * s->r_step;
    at = s->late + s->directions * s->late_step;
    s->bias = biased ? at : NULL;
    s->bias_r = biased && s->cell == NORI__CELL_GRU ? at + s->directions * s->columns : NULL;
    s->late = s->late_step > 0 ? s->late : NULL;
}

nori_status nori__recurrent_prepare(const nori__node *node, const nori_allocator *a, void **state,
                                    size_t *state_bytes, nori_error *err)
{
    nori__recurrent read = {0};
    if (!takes(node, &read)) {
        return NORI__NOT_TAKEN;
    }
    const nori_tensor *w = constant(node, 1, 3), *r = constant(node, 2, 3);
    const nori_tensor *b = nori__cpu_value(node, 3) ? constant(node, 3, 2) : NULL;
    size_t total, deepest = read.input > read.hidden ? read.input : read.hidden, turned_bytes;
    if (!measure(&read, b != NULL, &total) ||
        !nori__mul_size(read.columns * sizeof(float), deepest, &turned_bytes)) {
        return nori__no_memory(err);
    }
    nori__recurrent *s = nori__alloc(a, sizeof(*s));
    float *turned = nori__alloc(a, turned_bytes);
    bool ready;
    read.room = nori__packed(a, read.bytes, &ready);
    if (!s || !turned || !read.room) {
        nori__release(a, s, sizeof(*s));
        nori__release(a, turned, turned_bytes);
        nori__release(a, read.room, read.bytes);
        return nori__no_memory(err);
    }
    place(&read, b != NULL);
    *s = read;
    size_t rows = s->gates * s->hidden;
    for (size_t d = 0; !ready && d < s->directions; d++) {
        const float *w_in = (const float *)nori__tensor_at(w) + d * rows * s->input;
        const float *r_in = (const float *)nori__tensor_at(r) + d * rows * s->hidden;
        pack_gates(s, w_in, s->input, 0, s->gates, turned, s->w + d * s->w_step);
        pack_gates(s, r_in, s->hidden, 0, s->early, turned, s->r + d * s->r_step);
        if (s->late) {
            pack_gates(s, r_in, s->hidden, 2, 1, turned, s->late + d * s->late_step);
        }
        if (b) {
            pack_bias(s, nori__tensor_at(b), d);
        }
    }
    nori__release(a, turned, turned_bytes);
    *state = s;
    *state_bytes = s->bytes + sizeof(*s);
    return NORI_OK;
}

/* ---- weights of 8 bits ---- */

/* [directions, depth, columns] of bytes, a scale and a zero point a column or a direction, as floats with
 * a row a column; NULL: not of that form. */
static nori_status plain_weight(const nori__node *node, uint32_t at, uint32_t scale_at,
                                const nori_allocator *a, nori_tensor **out, nori_error *err)
{
    const nori_tensor *w = nori__value_const(nori__cpu_value(node, at));
    const nori_tensor *scale = nori__value_const(nori__cpu_value(node, scale_at));
    const nori__value *zero_value = nori__cpu_value(node, scale_at + 1);
    const nori_tensor *zero = nori__value_const(zero_value);
    if (!w || !nori__cpu_is_8bit((nori_type)w->type) || w->rank != 3 || w->count == 0 || !scale ||
        scale->type != NORI_FLOAT || (zero_value && (!zero || zero->type != w->type))) {
        return NORI_OK;
    }
    int64_t depth = w->dims[1], columns = w->dims[2], dims[3] = {w->dims[0], columns, depth};
    int64_t all = w->dims[0] * columns;
    if ((scale->count != w->dims[0] && scale->count != all) ||
        (zero && zero->count != w->dims[0] && zero->count != all)) {
        return NORI_OK;
    }
    NORI__TRY(nori__tensor_new(a, NORI_FLOAT, 3, dims, out, err));
    float *to = (*out)->data;
    for (int64_t c = 0; c < all; c++) {
        float s = ((const float *)scale->data)[scale->count == all ? c : c / columns];
        int64_t z = zero ? nori__tensor_get_i64(zero, zero->count == all ? c : c / columns) : 0;
        for (int64_t k = 0; k < depth; k++) {
            int64_t from = (c / columns * depth + k) * columns + c % columns;
            *to++ = (float)(nori__tensor_get_i64(w, from) - z) * s;
        }
    }
    return NORI_OK;
}

nori_status nori__recurrent_bytes_prepare(const nori__node *node, const nori_allocator *a, void **state,
                                          size_t *state_bytes, nori_error *err)
{
    nori_tensor *made[2] = {NULL};
    nori__value values[2] = {{0}}, *in[8] = {NULL};
    nori__node lstm = *node;
    nori_status s = plain_weight(node, 1, 8, a, &made[0], err);
    s = s == NORI_OK ? plain_weight(node, 2, 10, a, &made[1], err) : s;
    if (s == NORI_OK && (!made[0] || !made[1])) {
        s = NORI__NOT_TAKEN;
    }
    if (s == NORI_OK) { /* the LSTM that it stands for */
        for (uint32_t i = 0; i < NORI__COUNT(in) && i < node->input_count; i++) {
            in[i] = node->inputs[i];
        }
        for (int i = 0; i < 2; i++) {
            values[i].constant = made[i];
            values[i].type = node->inputs[i + 1]->type;
            in[i + 1] = &values[i];
        }
        lstm.op_type = "LSTM";
        lstm.domain = "";
        lstm.op = nori__op_find("", "LSTM");
        lstm.inputs = in;
        lstm.input_count = NORI__COUNT(in);
        s = nori__recurrent_prepare(&lstm, a, state, state_bytes, err);
    }
    if (s == NORI_OK) {
        ((nori__recurrent *)*state)->as_bytes = true;
    }
    nori_tensor_free(made[0]);
    nori_tensor_free(made[1]);
    return s;
}

void nori__recurrent_release(void *state, const nori_allocator *a)
{
    nori__recurrent *s = state;
    if (s) {
        nori__release(a, s->room, s->bytes);
        nori__release(a, s, sizeof(*s));
    }
}

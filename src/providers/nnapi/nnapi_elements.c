/* nnapi_elements.c: what is done element by element, with broadcasting, and Softmax and means. */
#include <math.h>

#include "providers/nnapi/nnapi.h"

/* A constant of one number that every shape takes. */
static uint32_t one(na_part *p, float value)
{
    static const na_shape single = {.rank = 1, .d = {1}, .count = 1};
    float *room = nori__na_room(p, 1);
    if (room) {
        *room = value;
    }
    return room ? nori__na_constant(p, &single, room) : NA_NONE;
}

/* ---- two operands ---- */

static int32_t binary_code(const nori__node *n)
{
    return nori__node_is(n, NORI__OP_ONNX_Add)   ? NA_ADD
           : nori__node_is(n, NORI__OP_ONNX_Sub) ? NA_SUB
           : nori__node_is(n, NORI__OP_ONNX_Mul) ? NA_MUL
           : nori__node_is(n, NORI__OP_ONNX_Div) ? NA_DIV
           : nori__node_is(n, NORI__OP_ONNX_Max) ? NA_MAXIMUM
                                                 : NA_MINIMUM;
}

const char *nori__na_claim_binary(const na_self *self, const nori__node *n)
{
    (void)self;
    return n->input_count == 2 && nori__na_is(n->inputs[1], 0) ? NULL
                                                               : "it is not on two operands of floats";
}

/* Operands of lower rank are lined up at the end, which channels last would move: constants are
 * turned, others make the result plain. */
int nori__na_binary_form(const na_part *p, const uint32_t *in, int rank)
{
    int form = NA_PLAIN;
    for (int i = 0; i < 2 && rank >= 3; i++) {
        na_shape s = nori__na_shape(p, in[i], NA_PLAIN);
        if (s.rank < rank && s.count > 1 && !nori__na_tensor(p, in[i])) {
            return NA_PLAIN;
        }
        form = s.rank == rank && nori__na_layout(p, in[i]) == NA_LAST ? NA_LAST : form;
    }
    return form;
}

/* A constant of lower rank as operand of a result of a rank that lies channels last. */
static uint32_t spread(na_part *p, uint32_t value, int rank)
{
    const nori_tensor *t = nori__na_tensor(p, value);
    int64_t d[4] = {1, 1, 1, 1};
    for (int i = 0; i < t->rank; i++) {
        d[rank - t->rank + i] = t->dims[i];
    }
    na_shape s = {.rank = rank, .d = {1, d[2], d[3], d[1]}, .count = t->count};
    s.d[rank - 1] = d[1];
    float *room = nori__na_room(p, t->count);
    for (int64_t i = 0; room && i < t->count; i++) { /* i counts where it goes */
        room[i] = ((const float *)t->data)[i % d[1] * d[2] * d[3] + i / d[1]];
    }
    return room ? nori__na_constant(p, &s, room) : NA_NONE;
}

static uint32_t binary_operand(na_part *p, uint32_t value, int rank, int form)
{
    na_shape s = nori__na_shape(p, value, NA_PLAIN);
    return form == NA_LAST && s.rank < rank && s.count > 1 ? spread(p, value, rank)
                                                           : nori__na_want(p, value, form);
}

void nori__na_emit_binary(na_part *p, const na_job *j)
{
    int32_t code = binary_code(j->node);
    int rank = nori__na_shape(p, j->out, NA_PLAIN).rank, fused = NA_FUSED_NONE;
    int form = nori__na_binary_form(p, j->in, rank);
    bool fuses = code != NA_MAXIMUM && code != NA_MINIMUM;
    uint32_t out = fuses ? nori__na_fuse(p, j->out, &fused) : j->out;
    uint32_t in[3] = {binary_operand(p, j->in[0], rank, form),
                      binary_operand(p, j->in[1], rank, form)};
    if (fuses) {
        in[2] = nori__na_int(p, fused);
    }
    nori__na_op(p, code, in, fuses ? 3 : 2, nori__na_make(p, out, form));
}

/* ---- one operand ---- */

static int32_t unary_code(const nori__node *n)
{
    static const struct {
        nori__op_id id;
        int32_t code;
    } codes[] = {
        {NORI__OP_ONNX_Sigmoid, NA_LOGISTIC}, {NORI__OP_ONNX_Tanh, NA_TANH},
        {NORI__OP_ONNX_Floor, NA_FLOOR},      {NORI__OP_ONNX_Abs, NA_ABS},
        {NORI__OP_ONNX_Exp, NA_EXP},          {NORI__OP_ONNX_Log, NA_LOG},
        {NORI__OP_ONNX_Neg, NA_NEG},          {NORI__OP_ONNX_Sqrt, NA_SQRT},
        {NORI__OP_ONNX_HardSwish, NA_HARD_SWISH},
    };
    for (size_t i = 0; i < NORI__COUNT(codes); i++) {
        if (nori__node_is(n, codes[i].id)) {
            return codes[i].code;
        }
    }
    return NA_ELU;
}

const char *nori__na_claim_unary(const na_self *self, const nori__node *n)
{
    (void)self;
    (void)n;
    return NULL;
}

void nori__na_emit_unary(na_part *p, const na_job *j)
{
    int form = nori__na_layout(p, j->in[0]);
    int32_t code = unary_code(j->node);
    uint32_t in[2] = {nori__na_want(p, j->in[0], form)}, n = 1;
    if (code == NA_ELU) {
        in[n++] = nori__na_float(p, nori__attr_f(j->node, "alpha", 1));
    }
    nori__na_op(p, code, in, n, nori__na_make(p, j->out, form));
}

/* ---- limits ---- */

static bool limits(const nori__node *n, float *low, float *high)
{
    if (nori__node_is(n, NORI__OP_ONNX_Relu)) {
        *low = 0;
        *high = INFINITY;
        return true;
    }
    return nori__node_is(n, NORI__OP_ONNX_Clip) && nori__na_scalar(n, 1, -INFINITY, low) &&
           nori__na_scalar(n, 2, INFINITY, high) && *low <= *high;
}

int nori__na_activation(const nori__node *n)
{
    float low, high;
    return !limits(n, &low, &high)           ? NA_FUSED_NONE
           : low == 0 && high == INFINITY    ? NA_FUSED_RELU
           : low == 0 && high == 6           ? NA_FUSED_RELU6
           : low == -1 && high == 1          ? NA_FUSED_RELU1
                                             : NA_FUSED_NONE;
}

const char *nori__na_claim_clip(const na_self *self, const nori__node *n)
{
    float low, high;
    if (!limits(n, &low, &high)) {
        return "its limits are not constant";
    }
    return self->level < 29 && nori__na_activation(n) == NA_FUSED_NONE
               ? "NNAPI has limits other than 0, 0 to 6 and -1 to 1 from feature level 29 on"
               : NULL;
}

/* x to limited by low and high, where they limit; last writes out. */
static void add_limits(na_part *p, uint32_t x, float low, float high, uint32_t value, int form)
{
    na_shape s = nori__na_shape(p, value, form);
    uint32_t in[2] = {x, one(p, low)};
    if (high < INFINITY) {
        uint32_t middle = nori__na_operand(p, &s);
        nori__na_op(p, NA_MAXIMUM, in, 2, middle);
        in[0] = middle;
        in[1] = one(p, high);
        nori__na_op(p, NA_MINIMUM, in, 2, nori__na_make(p, value, form));
    } else {
        nori__na_op(p, NA_MAXIMUM, in, 2, nori__na_make(p, value, form));
    }
}

void nori__na_emit_clip(na_part *p, const na_job *j)
{
    static const int32_t codes[] = {0, NA_RELU, NA_RELU1, NA_RELU6};
    float low, high;
    int form = nori__na_layout(p, j->in[0]), code = nori__na_activation(j->node);
    uint32_t x = nori__na_want(p, j->in[0], form);
    limits(j->node, &low, &high);
    if (code != NA_FUSED_NONE) {
        nori__na_op(p, codes[code], &x, 1, nori__na_make(p, j->out, form));
    } else {
        add_limits(p, x, low, high, j->out, form);
    }
}

/* ---- a slope below 0 ---- */

const char *nori__na_claim_prelu(const na_self *self, const nori__node *n)
{
    (void)self;
    return nori__node_is(n, NORI__OP_ONNX_LeakyRelu) || nori__na_floats(n, 1)
               ? NULL
               : "its slopes are not constant floats";
}

void nori__na_emit_prelu(na_part *p, const na_job *j)
{
    bool leaky = nori__node_is(j->node, NORI__OP_ONNX_LeakyRelu);
    int form = nori__na_layout(p, j->in[0]), rank = nori__na_shape(p, j->in[0], NA_PLAIN).rank;
    uint32_t in[2] = {nori__na_want(p, j->in[0], form),
                      leaky ? one(p, nori__attr_f(j->node, "alpha", 0.01f))
                            : binary_operand(p, j->in[1], rank, form)};
    nori__na_op(p, NA_PRELU, in, 2, nori__na_make(p, j->out, form));
}

/* ---- lines: x * scale + shift ---- */

static uint32_t add_line(na_part *p, uint32_t x, uint32_t scale, uint32_t shift, const na_shape *s,
                         uint32_t out, int fused)
{
    uint32_t middle = nori__na_operand(p, s);
    uint32_t mul[3] = {x, scale, nori__na_int(p, NA_FUSED_NONE)};
    uint32_t add[3] = {middle, shift, nori__na_int(p, fused)};
    nori__na_op(p, NA_MUL, mul, 3, middle);
    nori__na_op(p, NA_ADD, add, 3, out);
    return out;
}

const char *nori__na_claim_batch_norm(const na_self *self, const nori__node *n)
{
    bool fits = n->input_count == 5 && n->version >= 9 && n->inputs[0]->type.rank >= 2 &&
                nori__attr_i(n, "training_mode", 0) == 0;
    (void)self;
    for (uint32_t i = 1; fits && i < 5; i++) {
        const nori_tensor *t = nori__na_floats(n, i);
        fits = t && t->rank == 1 && t->count == n->inputs[0]->type.dims[1].value;
    }
    return fits ? NULL : "it is not one of constant floats over channels, for inference";
}

void nori__na_emit_batch_norm(na_part *p, const na_job *j)
{
    na_shape x = nori__na_shape(p, j->in[0], NA_PLAIN), line = {.rank = x.rank, .count = x.d[1]};
    int form = x.rank == 4 ? NA_LAST : nori__na_layout(p, j->in[0]), fused;
    float *a = nori__na_room(p, x.d[1]), *b = nori__na_room(p, x.d[1]);
    double epsilon = (double)nori__attr_f(j->node, "epsilon", 1e-5f);
    const float *t[4];
    for (uint32_t i = 0; i < 4; i++) {
        t[i] = nori__na_floats(j->node, i + 1)->data; /* scale, shift, mean, variance */
    }
    for (int64_t c = 0; a && b && c < x.d[1]; c++) {
        double factor = (double)t[0][c] / sqrt((double)t[3][c] + epsilon);
        a[c] = (float)factor;
        b[c] = (float)((double)t[1][c] - (double)t[2][c] * factor);
    }
    for (int d = 0; d < x.rank; d++) {
        line.d[d] = d == nori__na_axis_in(form, x.rank, 1) ? x.d[1] : 1;
    }
    uint32_t in = nori__na_want(p, j->in[0], form), out = nori__na_fuse(p, j->out, &fused);
    na_shape s = nori__na_shape(p, j->in[0], form);
    uint32_t scale = nori__na_constant(p, &line, a), shift = nori__na_constant(p, &line, b);
    add_line(p, in, scale, shift, &s, nori__na_make(p, out, form), fused);
}

const char *nori__na_claim_hard_sigmoid(const na_self *self, const nori__node *n)
{
    (void)self;
    (void)n;
    return NULL;
}

void nori__na_emit_hard_sigmoid(na_part *p, const na_job *j)
{
    int form = nori__na_layout(p, j->in[0]);
    na_shape s = nori__na_shape(p, j->in[0], form);
    uint32_t scale = one(p, nori__attr_f(j->node, "alpha", 0.2f));
    uint32_t shift = one(p, nori__attr_f(j->node, "beta", 0.5f));
    uint32_t line = add_line(p, nori__na_want(p, j->in[0], form), scale, shift, &s,
                             nori__na_operand(p, &s), NA_FUSED_NONE);
    add_limits(p, line, 0, 1, j->out, form);
}

/* ---- Softmax ---- */

/* Before level 29 along the last of two or four dimensions only. */
const char *nori__na_softmax_fits(const na_self *self, int rank, int axis)
{
    return axis < 0 ? "its axis is not one dimension"
           : self->level < 29 && (axis != rank - 1 || (rank != 2 && rank != 4))
               ? "NNAPI has such an axis from feature level 29 on"
               : NULL;
}

static int softmax_axis(const nori__node *n)
{
    int rank = n->inputs[0]->type.rank;
    int axis = nori__na_axis(nori__attr_i(n, "axis", n->version >= 13 ? -1 : 1), rank);
    return n->version < 13 && axis != rank - 1 ? -1 : axis;
}

const char *nori__na_claim_softmax(const na_self *self, const nori__node *n)
{
    return nori__na_softmax_fits(self, n->inputs[0]->type.rank, softmax_axis(n));
}

void nori__na_add_softmax(na_part *p, uint32_t x, uint32_t y, int axis)
{
    int rank = nori__na_shape(p, x, NA_PLAIN).rank;
    int form = rank >= 3 && axis == 1 ? nori__na_layout(p, x) : NA_PLAIN;
    int at = nori__na_axis_in(form, rank, axis);
    uint32_t in[3] = {nori__na_want(p, x, form), nori__na_float(p, 1)}, n = 2;
    if (at != rank - 1 || (rank != 2 && rank != 4)) {
        in[n++] = nori__na_int(p, at);
    }
    nori__na_op(p, NA_SOFTMAX, in, n, nori__na_make(p, y, form));
}

void nori__na_emit_softmax(na_part *p, const na_job *j)
{
    nori__na_add_softmax(p, j->in[0], j->out, softmax_axis(j->node));
}

/* ---- means ---- */

static int read_axes(const nori__node *n, int rank, bool *over)
{
    size_t count = 0;
    const int64_t *old = nori__attr_ints(n, "axes", &count);
    const nori_tensor *given = nori__na_const(n, 1);
    int many = 0;
    memset(over, 0, sizeof(*over) * NA_RANK);
    count = given ? (size_t)given->count : count;
    if (count == 0 || (nori__na_in(n, 1) && !given)) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        int axis = nori__na_axis(given ? nori__tensor_get_i64(given, (int64_t)i) : old[i], rank);
        if (axis < 0 || over[axis]) {
            return 0;
        }
        over[axis] = true;
        many++;
    }
    return many;
}

const char *nori__na_claim_mean(const na_self *self, const nori__node *n)
{
    bool over[NA_RANK];
    (void)self;
    return read_axes(n, n->inputs[0]->type.rank, over) > 0 ? NULL : "its axes are not constant";
}

void nori__na_emit_mean(na_part *p, const na_job *j)
{
    bool over[NA_RANK], keep = nori__attr_i(j->node, "keepdims", 1) != 0;
    int rank = nori__na_shape(p, j->in[0], NA_PLAIN).rank, n = 0;
    int many = read_axes(j->node, rank, over);
    /* Over all positions: what is left needs no order. */
    bool positions = many == rank - 2 && over[2] && (rank == 3 || over[3]);
    int form = keep || positions ? nori__na_layout(p, j->in[0]) : NA_PLAIN;
    int64_t axes[NA_RANK];
    for (int d = 0; d < rank; d++) {
        if (over[d]) {
            axes[n++] = nori__na_axis_in(form, rank, d);
        }
    }
    const int64_t count[] = {n};
    uint32_t in[3] = {nori__na_want(p, j->in[0], form), nori__na_ints(p, axes, 1, count),
                      nori__na_int(p, keep)};
    nori__na_op(p, NA_MEAN, in, 3, nori__na_make(p, j->out, keep ? form : NA_PLAIN));
}

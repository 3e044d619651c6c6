/* xnnpack_value.c: buffers of values in the forms that steps want, and the steps themselves. */
#include "providers/xnnpack/xnnpack.h"

#include <math.h>

/* ---- looking ---- */

const nori__value *nori__xp_value(const xp_part *p, uint32_t value)
{
    return p->part->values[value];
}

const nori_tensor *nori__xp_tensor(const xp_part *p, uint32_t value)
{
    return nori__value_const(p->part->values[value]);
}

int nori__xp_rank(const xp_part *p, uint32_t value)
{
    return p->part->values[value]->type.rank;
}

/* Of less than three axes both layouts are one. */
static unsigned fitting(const xp_part *p, uint32_t value, unsigned form)
{
    return nori__xp_rank(p, value) > 2 ? form : form & ~(unsigned)XP_LAST;
}

bool nori__xp_has(const xp_part *p, uint32_t value, unsigned form)
{
    return p->forms[value][fitting(p, value, form)] != XP_NONE;
}

unsigned nori__xp_layout(const xp_part *p, uint32_t value)
{
    const uint32_t *f = p->forms[value];
    return f[XP_LAST] != XP_NONE || f[XP_LAST | XP_FLIP] != XP_NONE ? XP_LAST : 0;
}

xp_shape nori__xp_shape(const xp_part *p, uint32_t buffer)
{
    const xp_buffer *b = nori__xp_buffer(p, buffer);
    if (b->value == XP_NONE) {
        return b->fixed_shape;
    }
    xp_shape s = p->shapes[b->value], out = s;
    for (int d = 1; d < s.rank && s.rank > 2 && (b->form & XP_LAST); d++) {
        out.d[d] = d + 1 < s.rank ? s.d[d + 1] : s.d[1];
    }
    return out;
}

uint8_t *nori__xp_data(const xp_part *p, uint32_t buffer)
{
    const xp_buffer *b = nori__xp_buffer(p, buffer);
    while (b->alias != XP_NONE) {
        b = nori__xp_buffer(p, b->alias);
    }
    return b->fixed ? b->fixed : b->data;
}

/* ---- steps ---- */

xp_step *nori__xp_step(xp_part *p, const nori__node *node, const uint32_t *in, uint32_t n_in,
                       uint32_t out, size_t args,
                       nori_status (*setup)(xp_part *, xp_step *, nori_error *))
{
    xp_step *s = nori__arena_alloc(&p->arena, sizeof(*s));
    bool ok = s && out != XP_NONE && !p->failed;
    if (ok) {
        s->in = nori__arena_array(&p->arena, n_in + 1, sizeof(*s->in));
        s->args = nori__arena_alloc(&p->arena, args + 1);
        ok = s->in && s->args;
    }
    for (uint32_t i = 0; ok && i < n_in; i++) {
        s->in[i] = in[i];
        ok = in[i] != XP_NONE;
    }
    if (!ok || !nori__vec_push(&p->steps, s)) {
        p->failed = true;
        return NULL;
    }
    s->node = node;
    s->n_in = n_in;
    s->out = out;
    s->setup = setup;
    return s;
}

/* ---- buffers ---- */

static uint32_t new_buffer(xp_part *p, uint32_t value, unsigned form, unsigned width)
{
    xp_buffer *b = nori__arena_alloc(&p->arena, sizeof(*b));
    if (!b || !nori__vec_push(&p->buffers, b)) {
        p->failed = true;
        return XP_NONE;
    }
    *b = (xp_buffer){.value = value, .form = form, .width = width, .alias = XP_NONE,
                     .first = XP_NONE};
    return (uint32_t)p->buffers.count - 1;
}

static unsigned width_of(const xp_part *p, uint32_t value)
{
    return p->part->values[value]->type.elem == NORI_FLOAT ? 4 : 1;
}

uint32_t nori__xp_make(xp_part *p, uint32_t value, unsigned form)
{
    form = fitting(p, value, form);
    uint32_t b = new_buffer(p, value, form, width_of(p, value));
    p->forms[value][form] = b;
    return b;
}

uint32_t nori__xp_scratch(xp_part *p, uint32_t value, unsigned form, unsigned width)
{
    return new_buffer(p, value, fitting(p, value, form), width);
}

bool nori__xp_share(xp_part *p, uint32_t value, unsigned form, uint32_t buffer)
{
    if (buffer == XP_NONE) {
        return false;
    }
    uint32_t b = nori__xp_make(p, value, form);
    if (b != XP_NONE) {
        nori__xp_buffer(p, b)->alias = buffer;
    }
    return b != XP_NONE;
}

/* XNNPACK may read some bytes past the end of what it is given. */
uint32_t nori__xp_fixed(xp_part *p, const xp_shape *shape, unsigned width, const void *data)
{
    uint32_t i = new_buffer(p, XP_NONE, 0, width);
    if (i == XP_NONE) {
        return i;
    }
    xp_buffer *b = nori__xp_buffer(p, i);
    size_t bytes;
    if (!nori__mul_size(shape->count, width, &bytes) ||
        !nori__add_size(bytes, XNN_EXTRA_BYTES, &b->fixed_bytes) ||
        !(b->fixed = nori__alloc_zero(&nori__malloc, b->fixed_bytes))) {
        p->failed = true;
        return XP_NONE;
    }
    if (data && bytes > 0) {
        memcpy(b->fixed, data, bytes);
    }
    b->fixed_shape = *shape;
    return i;
}

/* ---- forms of a value ---- */

typedef struct turning {
    xp_move move;
    unsigned from, to;
    uint32_t input; /* of the part: where it comes from; XP_NONE: the buffer in[0] */
} turning;

static nori_status setup_turn(xp_part *p, xp_step *s, nori_error *err)
{
    turning *t = s->args;
    (void)err;
    nori__xp_move_layout(&t->move, &p->shapes[nori__xp_buffer(p, s->out)->value], t->from, t->to);
    return NORI_OK;
}

static nori_status run_input(xp_part *p, xp_step *s, nori_call *call)
{
    const turning *t = s->args;
    const nori_tensor *x = nori_call_input(call, t->input);
    nori__xp_move_run(&t->move, x->data, nori__xp_data(p, s->out), call);
    return NORI_OK;
}

static uint32_t fixed_form(xp_part *p, uint32_t value, unsigned form)
{
    const nori_tensor *t = nori__xp_tensor(p, value);
    xp_shape plain = {.rank = t->rank, .count = (size_t)t->count}, shape;
    xp_move m = {.width = width_of(p, value)};
    for (int d = 0; d < t->rank; d++) {
        plain.d[d] = (size_t)t->dims[d];
    }
    nori__xp_move_layout(&m, &plain, 0, form);
    shape = plain;
    for (int d = 0; d < m.rank; d++) {
        shape.d[d] = m.dims[d];
    }
    uint32_t b = nori__xp_fixed(p, &shape, m.width, NULL);
    if (b != XP_NONE) {
        nori__xp_move_run(&m, t->data, nori__xp_buffer(p, b)->fixed, NULL);
        p->forms[value][form] = b;
    }
    return b;
}

/* The form that costs least to come from. */
static unsigned nearest(const xp_part *p, uint32_t value, unsigned form)
{
    static const unsigned order[] = {XP_FLIP, XP_LAST, XP_LAST | XP_FLIP};
    for (size_t i = 0; i < NORI__COUNT(order); i++) {
        if (p->forms[value][form ^ order[i]] != XP_NONE) {
            return form ^ order[i];
        }
    }
    return XP_FORMS;
}

/* A value between DequantizeLinear and an operator on floats: made when first asked for. */
static bool make_late(xp_part *p, uint32_t value)
{
    uint32_t at = p->links.maker[value];
    const nori__node *n = at == XP_NONE ? NULL : p->part->nodes[at];
    if (!n || !nori__node_is(n, NORI__OP_ONNX_DequantizeLinear)) {
        return false;
    }
    xp_job j = {.node = n, .at = at, .in = p->part->node_values[at], .n_in = n->input_count,
                .out = value};
    return nori__xp_emit_dequantize(p, &j, NULL) == NORI_OK;
}

uint32_t nori__xp_want(xp_part *p, uint32_t value, unsigned form)
{
    form = fitting(p, value, form);
    if (p->failed || p->forms[value][form] != XP_NONE) {
        return p->failed ? XP_NONE : p->forms[value][form];
    }
    if (nori__xp_tensor(p, value)) {
        return fixed_form(p, value, form);
    }
    unsigned from = 0;
    if (p->links.input[value] == XP_NONE) {
        from = nearest(p, value, form);
        if (from == XP_FORMS && make_late(p, value)) {
            return nori__xp_want(p, value, form); /* it is there now, in some form */
        }
        if (from == XP_FORMS) {
            p->failed = true;
            return XP_NONE;
        }
    }
    bool outer = p->links.input[value] != XP_NONE;
    uint32_t in = outer ? XP_NONE : p->forms[value][from];
    uint32_t out = nori__xp_make(p, value, form);
    xp_step *s = outer ? nori__xp_step(p, NULL, NULL, 0, out, sizeof(turning), setup_turn)
                       : nori__xp_step_move(p, NULL, in, out, sizeof(turning), setup_turn);
    if (!s) {
        return XP_NONE;
    }
    turning *t = s->args;
    *t = (turning){.move = {.width = width_of(p, value)}, .from = from, .to = form,
                   .input = p->links.input[value]};
    s->run = outer ? run_input : s->run;
    return out;
}

/* ---- activations that follow ---- */

bool nori__xp_limits(const nori__node *n, float *low, float *high)
{
    *low = -INFINITY;
    *high = INFINITY;
    if (nori__node_is(n, NORI__OP_ONNX_Relu)) {
        *low = 0;
        return true;
    }
    return nori__node_is(n, NORI__OP_ONNX_Clip) && nori__xp_scalar(n, 1, -INFINITY, low) &&
           nori__xp_scalar(n, 2, INFINITY, high) && *low < *high;
}

uint32_t nori__xp_clamp(xp_part *p, uint32_t out, float *low, float *high)
{
    *low = -INFINITY;
    *high = INFINITY;
    uint32_t at = nori__links_follower(&p->links, out);
    float a, b;
    if (at == XP_NONE || !nori__xp_limits(p->part->nodes[at], &a, &b)) {
        return out;
    }
    *low = a;
    *high = b;
    p->links.done[at] = true;
    return p->part->node_values[at][p->part->nodes[at]->input_count];
}

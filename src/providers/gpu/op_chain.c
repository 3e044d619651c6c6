/* op_chain.c: functions of one and two numbers one behind the other, as one kernel made for them: its text
 * is written when a part is compiled, and what the device makes of it is kept like other programs.
 *
 * Each but the last is read by the next alone, and all have the result's shape, so that element i depends
 * on element i of what came before. What else they read is an input of the kernel, read as it lies, as one
 * number, or by strides. */
#include <math.h>
#include <stdio.h>

#include "providers/gpu/gpu.h"

#define MOST_STEPS 16
#define MOST_INPUTS 6 /* a kernel has room for 20 arguments */
#define BEFORE MOST_INPUTS /* an operand: what the step before gave */

typedef enum way { AS_IT_LIES, ONE_NUMBER, BY_STRIDES } way;

typedef struct link {
    int two;    /* of two numbers, BINARY_*; -1: of one */
    gpu_then f; /* of one number */
    uint32_t operand[2];
} link;

typedef struct chain {
    link steps[MOST_STEPS];
    uint32_t n_steps, n_inputs, values[MOST_INPUTS];
    way ways[MOST_INPUTS];
    gpu_source program;
} chain;

static bool same_dims(const nori__value *a, const nori__value *b)
{
    bool same = a->type.rank >= 0 && a->type.rank == b->type.rank;
    for (int d = 0; d < a->type.rank && same; d++) {
        same = nori__dim_same(a->type.dims[d], b->type.dims[d]);
    }
    return same;
}

static bool is_one(const nori__value *v)
{
    bool one = v->type.rank >= 0;
    for (int d = 0; d < v->type.rank; d++) {
        one = one && v->type.dims[d].value == 1;
    }
    return one;
}

/* The operand a value is; inputs are added. False: there is no room. */
static bool operand(chain *c, const nori__value *v, uint32_t value, uint32_t before,
                    const nori__value *out, uint32_t *number)
{
    *number = BEFORE;
    if (value == before) {
        return true;
    }
    for (*number = 0; *number < c->n_inputs; ++*number) {
        if (c->values[*number] == value) {
            return true;
        }
    }
    if (c->n_inputs == MOST_INPUTS) {
        return false;
    }
    c->ways[c->n_inputs] = same_dims(v, out) ? AS_IT_LIES : is_one(v) ? ONE_NUMBER : BY_STRIDES;
    c->values[c->n_inputs++] = value;
    return true;
}

/* Adds a node as the next step. False: it is none, or there is no room; c is then as before. */
static bool add_step(chain *c, const nori_part *part, uint32_t at, uint32_t before)
{
    const nori__node *n = part->nodes[at];
    const uint32_t *values = part->node_values[at];
    uint32_t inputs = c->n_inputs;
    link s = {.two = nori__gpu_binary_kind(n)};
    bool fits = s.two >= 0 || nori__gpu_then(n, &s.f);
    for (uint32_t i = 0; fits && i < (s.two >= 0 ? 2u : 1u); i++) {
        fits = operand(c, n->inputs[i], values[i], before, n->outputs[0], &s.operand[i]);
    }
    if (!fits || c->n_steps == MOST_STEPS) {
        c->n_inputs = inputs;
        return false;
    }
    c->steps[c->n_steps++] = s;
    return true;
}

/* ---- the text ---- */

/* "1.5f"; infinities by name. */
static void number(nori__text *t, float v)
{
    char digits[32];
    if (isinf(v) || isnan(v)) {
        nori__text_printf(t, isnan(v) ? "(INFINITY - INFINITY)" : v < 0 ? "-INFINITY" : "INFINITY");
        return;
    }
    snprintf(digits, sizeof(digits), "%.9g", (double)v);
    nori__text_printf(t, "%s%sf", digits, strpbrk(digits, ".e") ? "" : ".0");
}

static void write_reads(nori__text *t, const chain *c)
{
    static const char *const axes[] = {"s7", "s6", "s5", "s4", "s3", "s2", "s1", "s0"};
    bool strides = false;
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        strides = strides || c->ways[i] == BY_STRIDES;
    }
    if (strides) {
        nori__text_printf(t, "    int rest = i;\n");
        for (uint32_t i = 0; i < c->n_inputs; i++) {
            if (c->ways[i] == BY_STRIDES) {
                nori__text_printf(t, "    int at%u = 0;\n", i);
            }
        }
        for (size_t d = 0; d < NORI__COUNT(axes); d++) {
            for (uint32_t i = 0; i < c->n_inputs; i++) {
                if (c->ways[i] == BY_STRIDES) {
                    nori__text_printf(t, "    at%u += rest %% sizes.%s * by%u.%s;\n", i, axes[d], i, axes[d]);
                }
            }
            nori__text_printf(t, "    rest /= sizes.%s;\n", axes[d]);
        }
    }
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        char at[16] = "i";
        if (c->ways[i] == BY_STRIDES) {
            snprintf(at, sizeof(at), "at%u", i);
        }
        nori__text_printf(t, "    float v%u = LOAD(x%u, %s);\n", i, i, c->ways[i] == ONE_NUMBER ? "0" : at);
    }
}

static void write_operand(nori__text *t, uint32_t operand)
{
    if (operand == BEFORE) {
        nori__text_printf(t, "v");
    } else {
        nori__text_printf(t, "v%u", operand);
    }
}

static void write_step(nori__text *t, const link *s, bool first)
{
    nori__text_printf(t, "    %sv = ", first ? "float " : "");
    if (s->two >= 0) {
        nori__text_printf(t, "binary(%d, ", s->two);
        write_operand(t, s->operand[0]);
        nori__text_printf(t, ", ");
        write_operand(t, s->operand[1]);
    } else {
        nori__text_printf(t, "unary(%d, ", s->f.kind);
        number(t, s->f.a);
        nori__text_printf(t, ", ");
        number(t, s->f.b);
        nori__text_printf(t, ", ");
        write_operand(t, s->operand[0]);
    }
    nori__text_printf(t, ");\n");
}

static void write_kernel(nori__text *t, const chain *c)
{
    bool strides = false;
    nori__text_printf(t, "\n__kernel void chain(");
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        nori__text_printf(t, "__global const STORED *x%u, ", i);
    }
    nori__text_printf(t, "__global STORED *y, int count");
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        if (c->ways[i] == BY_STRIDES) {
            nori__text_printf(t, "%s, int8 by%u", strides ? "" : ", int8 sizes", i);
            strides = true;
        }
    }
    nori__text_printf(t, ")\n{\n    int i = get_global_id(0);\n");
    nori__text_printf(t, "    if (i >= count) {\n        return;\n    }\n");
    write_reads(t, c);
    for (uint32_t i = 0; i < c->n_steps; i++) {
        write_step(t, &c->steps[i], i == 0);
    }
    nori__text_printf(t, "    STORE(v, y, i);\n}\n");
}

/* ---- as an operator ---- */

static nori_status pack(gpu_self *self, gpu_node *n, nori_error *err)
{
    chain *c = n->more;
    nori__text t;
    nori__text_init(&t, &nori__malloc);
    write_kernel(&t, c);
    nori_status status = t.failed ? nori__no_memory(err)
                                  : nori__gpu_make_program(self, "chain", (nori__str){t.data, t.size},
                                                           &c->program, err);
    nori__text_free(&t);
    return status;
}

static void lower(gpu_lower *l, const gpu_node *n)
{
    const chain *c = n->more;
    const gpu_shape *y = nori__gpu_out_shape(l, n, 0);
    int64_t sizes[8] = {1, 1, 1, 1, 1, 1, 1, 1}, by[8];
    bool strides = false;
    nori__gpu_kernel(l, c->program, "chain");
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        nori__gpu_mem(l, nori__gpu_in(l, n, i));
    }
    nori__gpu_mem(l, nori__gpu_out(l, n, 0));
    nori__gpu_int(l, y->count);
    for (int d = 0; d < y->rank; d++) {
        sizes[8 - y->rank + d] = y->dims[d] > 0 ? y->dims[d] : 1;
    }
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        if (c->ways[i] == BY_STRIDES) {
            nori__gpu_spread(nori__gpu_in_shape(l, n, i), by);
            if (!strides) {
                nori__gpu_int8(l, sizes);
            }
            nori__gpu_int8(l, by);
            strides = true;
        }
    }
    nori__gpu_items(l, y->count, 1, 1);
}

static const gpu_op chain_op = {
    .name = "chain", .source = GPU_IN_elementwise, .pack = pack, .lower = lower};

/* Two steps that one kernel has anyhow: of two numbers, then of one. */
static bool is_plain(const chain *c)
{
    return c->n_steps < 2 || (c->n_steps == 2 && c->steps[0].two >= 0 && c->steps[1].two < 0);
}

bool nori__gpu_find_chain(const gpu_self *self, gpu_part *p, uint32_t first, bool *taken, gpu_node *found)
{
    const nori_part *part = p->part;
    uint32_t members[MOST_STEPS], at = first, input;
    chain c = {.n_steps = 0};
    if (!self->chains || !add_step(&c, part, first, UINT32_MAX)) {
        return false;
    }
    members[0] = first;
    for (;;) {
        const nori__node *n = part->nodes[at];
        uint32_t value = part->node_values[at][n->input_count];
        uint32_t next = nori__gpu_only_reader(part, at, value, &input);
        if (next == UINT32_MAX || taken[next] || !same_dims(part->nodes[next]->outputs[0], n->outputs[0]) ||
            !add_step(&c, part, next, value)) {
            break;
        }
        members[c.n_steps - 1] = at = next;
    }
    chain *more = is_plain(&c) ? NULL : nori__arena_alloc(&p->arena, sizeof(*more));
    uint32_t *in = more ? nori__arena_array(&p->arena, c.n_inputs + 1, sizeof(*in)) : NULL;
    if (!in) {
        return false;
    }
    *more = c;
    memcpy(in, c.values, c.n_inputs * sizeof(*in));
    in[c.n_inputs] = part->node_values[at][part->nodes[at]->input_count];
    *found = (gpu_node){.at = at, .node = part->nodes[at], .op = &chain_op, .in = in,
                        .out = in + c.n_inputs, .n_in = c.n_inputs, .n_out = 1, .more = more};
    for (uint32_t i = 0; i < c.n_steps; i++) {
        taken[members[i]] = true;
    }
    return true;
}

/* elementwise.c: an execution provider of nori in one file, as a shared object.
 *
 * It takes chains of elementwise float operators and runs each as one loop over the elements.
 *     cc -shared -fPIC -I include -o elementwise.so examples/provider/elementwise.c
 *     nori run model.onnx --provider ./elementwise.so:copy_us=20,cpu
 * copy_us: what copying a tensor costs, as to a device. docs/add_provider.md walks through this. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nori/provider.h"

#define MOST 64 /* values of a part: larger ones are left to others */

static const struct {
    const char *op;
    char code;
} table[] = {{"Relu", 'r'}, {"Neg", 'n'}, {"Abs", 'a'}, {"Add", '+'}, {"Mul", '*'}};

static char code_of(const nori_node *node)
{
    for (size_t k = 0; !nori_node_domain(node)[0] && k < sizeof(table) / sizeof(table[0]); k++) {
        if (strcmp(table[k].op, nori_node_op(node)) == 0) {
            return table[k].code;
        }
    }
    return 0;
}

/* A compiled part: instructions over numbered values, inputs first. */
typedef struct program {
    struct {
        char code;
        size_t a, b, to;
    } step[MOST];
    size_t steps, values, n_in, n_out, out[MOST];
    const nori_value *value[MOST];
} program;

static nori_status fail(nori_error *err, nori_status status, const char *text, const char *detail)
{
    if (err && err->status == NORI_OK) {
        err->status = status;
        snprintf(err->message, sizeof(err->message), "%s%s", text, detail);
    }
    return status;
}

static nori_status open_it(const nori_provider_open *how, void **self, nori_error *err)
{
    double us = 0, *copy_ns = NULL;
    if (how->options[0] && (sscanf(how->options, "copy_us=%lf", &us) != 1 || us < 0)) {
        return fail(err, NORI_ERROR_ARGUMENT, "copy_us=NUMBER was expected, found ", how->options);
    }
    *self = copy_ns = malloc(sizeof(*copy_ns));
    if (!copy_ns) {
        return fail(err, NORI_ERROR_MEMORY, "out of memory", "");
    }
    *copy_ns = us * 1e3;
    return NORI_OK;
}

static nori_status describe(void *self, nori_provider_info *info, nori_error *err)
{
    (void)err;
    info->copy_in_fixed_ns = info->copy_out_fixed_ns = *(double *)self;
    info->launch_ns = 200;
    return NORI_OK;
}

/* Certainly of one shape: sizes are equal, or their names are. */
static int same_shape(const nori_value *x, const nori_value *y)
{
    int same = nori_value_rank(x) >= 0 && nori_value_rank(x) == nori_value_rank(y);
    for (int d = 0; same && d < nori_value_rank(x); d++) {
        const char *m, *n;
        int64_t a = nori_value_dim(x, d, &m), b = nori_value_dim(y, d, &n);
        same = a == b && (a >= 0 || (m && n && strcmp(m, n) == 0));
    }
    return same;
}

static nori_status claim(void *self, const nori_node *node, nori_claim *c, nori_error *err)
{
    const nori_value *y = nori_node_output(node, 0);
    (void)self, (void)err;
    c->taken = code_of(node) != 0; /* without a reason, "it does not take X" is told */
    c->cost_ns = 0.5;
    for (size_t i = 0; c->taken && i < nori_node_input_count(node); i++) {
        const nori_value *x = nori_node_input(node, i);
        if (nori_value_type(x) != NORI_FLOAT || !same_shape(x, y) || nori_value_initializer(x)) {
            snprintf(c->reason, sizeof(c->reason), "it takes computed floats of one shape only");
            c->taken = 0;
        }
    }
    for (int d = 0; c->taken && d < nori_value_rank(y); d++) {
        int64_t n = nori_value_dim(y, d, NULL);
        c->cost_ns *= n > 0 ? (double)n : 1;
    }
    return NORI_OK;
}

static size_t number_of(const program *p, const nori_value *v)
{
    size_t k = 0;
    while (k < p->values && p->value[k] != v) {
        k++;
    }
    return k;
}

static nori_status compile(void *self, nori_part *part, void **compiled, nori_error *err)
{
    size_t nodes = nori_part_node_count(part);
    (void)self;
    if (nodes + nori_part_input_count(part) > MOST) {
        return fail(err, NORI_ERROR_UNSUPPORTED, "the part has too many values", "");
    }
    program *p = calloc(1, sizeof(*p));
    if (!p) {
        return fail(err, NORI_ERROR_MEMORY, "out of memory", "");
    }
    for (; p->n_in < nori_part_input_count(part); p->n_in++) {
        p->value[p->values++] = nori_part_input(part, p->n_in);
    }
    for (; p->steps < nodes; p->steps++) {
        const nori_node *node = nori_part_node(part, p->steps);
        size_t second = nori_node_input_count(node) > 1;
        p->step[p->steps].code = code_of(node);
        p->step[p->steps].a = number_of(p, nori_node_input(node, 0));
        p->step[p->steps].b = number_of(p, nori_node_input(node, second));
        p->step[p->steps].to = p->values;
        p->value[p->values++] = nori_node_output(node, 0);
    }
    for (; p->n_out < nori_part_output_count(part); p->n_out++) {
        p->out[p->n_out] = number_of(p, nori_part_output(part, p->n_out));
    }
    *compiled = p;
    return NORI_OK;
}

static float apply(char code, float a, float b)
{
    return code == 'r'   ? (a < 0 ? 0 : a) /* NaN stays NaN */
           : code == 'n' ? -a
           : code == 'a' ? fabsf(a)
                         : (code == '+' ? a + b : a * b);
}

static nori_status run(void *self, void *compiled, nori_call *call)
{
    const program *p = compiled;
    const nori_tensor *first = nori_call_input(call, 0);
    const float *in[MOST];
    float *out[MOST], v[MOST];
    (void)self;
    for (size_t k = 0; k < p->n_in; k++) {
        in[k] = nori_tensor_const_data(nori_call_input(call, k));
    }
    for (size_t k = 0; k < p->n_out; k++) {
        nori_tensor *t = nori_call_output(call, k); /* NULL: its shape was not known beforehand */
        if (!t && nori_call_alloc(call, k, NORI_FLOAT, nori_tensor_rank(first),
                                  nori_tensor_dims(first), &t) != NORI_OK) {
            return NORI_ERROR_MEMORY;
        }
        out[k] = nori_tensor_data(t);
    }
    for (int64_t i = 0; i < nori_tensor_elements(first); i++) {
        for (size_t k = 0; k < p->n_in; k++) {
            v[k] = in[k][i];
        }
        for (size_t k = 0; k < p->steps; k++) {
            v[p->step[k].to] = apply(p->step[k].code, v[p->step[k].a], v[p->step[k].b]);
        }
        for (size_t k = 0; k < p->n_out; k++) {
            out[k][i] = v[p->out[k]];
        }
    }
    return NORI_OK;
}

static void free_part(void *self, void *compiled)
{
    (void)self;
    free(compiled);
}

static const nori_provider provider = {
    .size = sizeof(nori_provider), .name = "elementwise", .description = "an example",
    .open = open_it, .close = free, .describe = describe, .claim = claim,
    .compile = compile, .run = run, .free_part = free_part,
};

NORI_API const nori_provider *nori_provider_entry(int abi);
const nori_provider *nori_provider_entry(int abi)
{
    return abi == NORI_PROVIDER_ABI ? &provider : NULL;
}

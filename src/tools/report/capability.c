/* capability.c: which operators, versions and types this build has kernels for. Nothing is listed
 * by hand: the facts say what there is, and each provider is offered nodes made up for the question. */
#include <stdio.h>

#include "nori/tools.h"
#include "base/given.h"
#include "ops/custom.h"
#include "providers/providers.h"

static void types_text(uint64_t types, char *out, size_t size)
{
    size_t used = 0;
    if (size > 0) {
        out[0] = 0;
    }
    for (int t = 1; t < NORI_TYPE_COUNT && used + 1 < size; t++) {
        if (types >> t & 1) {
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "," : "",
                                     nori_type_name((nori_type)t));
        }
    }
}

/* What the operator is told by: its first input, or output. */
static const nori__schema_arg *leading(const nori__schema *s)
{
    return s->n_in > 0 ? &s->in[0] : s->n_out > 0 ? &s->out[0] : NULL;
}

/* The facts by index: the table, then what is registered with the default environment. */
static const nori__schema *facts_at(size_t index, bool *custom)
{
    size_t count = 0;
    const nori__schema *s = nori__schema_at(index);
    *custom = !s;
    while (!s && nori__schema_at(count)) {
        count++;
    }
    return s ? s : nori__custom_at(NULL, index - count);
}

int nori_capability_at(size_t index, nori_capability *capability)
{
    NORI__ASKED(capability, 0);
    bool custom;
    const nori__schema *s = facts_at(index, &custom);
    if (!s) {
        return 0;
    }
    const nori__op *op = nori__op_find(s->domain, s->name);
    const nori__schema_arg *arg = leading(s);
    nori_capability c = {.size = capability->size,
                         .domain = s->domain,
                         .op = s->name,
                         .family = custom ? "custom" : op ? op->family : "",
                         .since = s->since,
                         .kernel = custom ? "custom" : nori__op_runs(op) ? "reference" : ""};
    types_text(arg ? arg->types : 0, c.types, sizeof(c.types));
    memcpy(capability, &c, c.size < sizeof(c) ? c.size : sizeof(c));
    return 1;
}

#define MOST_INPUTS 32

/* Type of an input when the leading one has type t. */
static uint8_t type_beside(const nori__schema_arg *first, const nori__schema_arg *arg, int t)
{
    bool bound = arg == first || (arg->constraint && first->constraint &&
                                  nori__same(arg->constraint, first->constraint));
    if (bound && arg->types >> t & 1) {
        return (uint8_t)t;
    }
    if (arg->types >> NORI_FLOAT & 1) {
        return NORI_FLOAT;
    }
    for (int k = 1; k < NORI_TYPE_COUNT; k++) {
        if (arg->types >> k & 1) {
            return (uint8_t)k;
        }
    }
    return NORI_UNDEFINED;
}

/* Whether the provider takes a node of this operator whose leading type is t: required inputs are
 * there, of any shape, attributes are left to their defaults. */
static bool takes(const nori_provider *p, const nori__schema *s, const nori__op *op, int t)
{
    nori__ir ir = {.allocator = &nori__malloc};
    nori__graph graph = {.name = "", .ir = &ir};
    nori__value values[MOST_INPUTS + 1];
    nori__value *inputs[MOST_INPUTS], *outputs[1];
    nori__node node = {.name = "", .op_type = s->name, .domain = s->domain, .overload = "",
                       .op = op, .version = s->since, .inputs = inputs, .outputs = outputs,
                       .output_count = 1, .graph = &graph};
    memset(values, 0, sizeof(values));
    ir.main = &graph;
    unsigned wanted = s->min_in > 0 ? s->min_in : s->n_in > 0;
    for (unsigned i = 0; i < wanted && i < MOST_INPUTS && s->n_in > 0; i++) {
        const nori__schema_arg *arg = &s->in[i < s->n_in ? i : s->n_in - 1u];
        values[i] = (nori__value){.name = "x", .graph = &graph, .type = {
            .kind = NORI_KIND_TENSOR, .elem = type_beside(&s->in[0], arg, t), .rank = -1}};
        inputs[node.input_count++] = &values[i];
    }
    values[MOST_INPUTS] = (nori__value){.name = "y", .graph = &graph, .producer = &node, .type = {
        .kind = NORI_KIND_TENSOR, .elem = (uint8_t)t, .rank = -1}};
    outputs[0] = &values[MOST_INPUTS];
    return p->kernel(NULL, &node) != NULL;
}

void nori_capability_types(size_t index, const nori_provider *provider, char *types, size_t size)
{
    NORI__ASKED(provider, );
    NORI__ASKED(types, );
    const nori__schema *s = nori__schema_at(index);
    const nori__op *op = s ? nori__op_find(s->domain, s->name) : NULL;
    const nori__schema_arg *arg = s ? leading(s) : NULL;
    uint64_t taken = 0;
    if (op && arg && provider == &nori__reference_provider) {
        taken = nori__op_runs(op) ? arg->types : 0;
    } else if (op && arg && provider->kernel && !provider->claim && !provider->open) {
        for (int t = 1; t < NORI_TYPE_COUNT; t++) {
            if (arg->types >> t & 1 && takes(provider, s, op, t)) {
                taken |= UINT64_C(1) << t;
            }
        }
    }
    types_text(taken, types, size);
}

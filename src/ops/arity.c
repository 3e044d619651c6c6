/* arity.c: what a node is given against the facts of its version, before anything is compiled:
 * kernels and inference may then count on inputs that must be there, and on the kinds of
 * attributes. The checker says the same of every node at once (tools/check/check_facts.c). */
#include "ops/arity.h"

#include <inttypes.h>

#include "ops/custom.h"

enum { ANY = 65535 };

static const char *const kind_names[] = {
    "none",    "float",   "int",    "string", "tensor",         "graph", "floats", "ints",
    "strings", "tensors", "graphs", "sparse", "sparse tensors", "type",  "types",
};

const char *nori__attr_kind_name(nori__pb_attr_kind kind)
{
    return (unsigned)kind < NORI__COUNT(kind_names) ? kind_names[kind] : "unknown";
}

/* Entries up to the last one that is there: trailing empty names stand for nothing. */
static uint32_t used(nori__value *const *list, uint32_t count)
{
    while (count > 0 && !list[count - 1]) {
        count--;
    }
    return count;
}

/* A later version lets the input be left out: files of older ones do so too (roi of Resize). */
static bool optional_later(const nori__schema *s, unsigned i)
{
    const nori__schema *newest = nori__schema_find(s->domain, s->name, nori__opset_max(s->domain));
    return newest && i < newest->n_in && newest->in[i].option != NORI__ARG_SINGLE;
}

static nori_status check_inputs(const nori__node *n, const nori__schema *s, nori_error *err)
{
    uint32_t count = used(n->inputs, n->input_count);
    for (unsigned i = 0; i < s->n_in; i++) {
        if (s->in[i].option == NORI__ARG_SINGLE && (i >= count || !n->inputs[i]) &&
            !optional_later(s, i)) {
            return nori__fail(err, NORI_ERROR_MODEL,
                              "%s (version %d) needs input %u, %s, which is left out", n->op_type,
                              s->since, i, s->in[i].name);
        }
    }
    if (s->max_in != ANY && count > s->max_in) {
        return nori__fail(err, NORI_ERROR_MODEL,
                          "%s (version %d) takes at most %u inputs, found %" PRIu32, n->op_type,
                          s->since, s->max_in, count);
    }
    /* Empty names count where they stand for inputs that may be left out. */
    if (n->input_count < s->min_in && s->n_in > 0 &&
        s->in[s->n_in - 1].option == NORI__ARG_VARIADIC) {
        return nori__fail(err, NORI_ERROR_MODEL,
                          "%s (version %d) takes at least %u inputs, found %" PRIu32, n->op_type,
                          s->since, s->min_in, n->input_count);
    }
    return NORI_OK;
}

static nori_status check_outputs(const nori__node *n, const nori__schema *s, nori_error *err)
{
    uint32_t count = used(n->outputs, n->output_count);
    if (s->max_out != ANY && count > s->max_out) {
        return nori__fail(err, NORI_ERROR_MODEL,
                          "%s (version %d) has at most %u outputs, found %" PRIu32, n->op_type,
                          s->since, s->max_out, count);
    }
    if (n->output_count < s->min_out) {
        return nori__fail(err, NORI_ERROR_MODEL, "%s (version %d) has at least %u outputs, found %" PRIu32,
                          n->op_type, s->since, s->min_out, n->output_count);
    }
    return NORI_OK;
}

/* Kernels write what an operator always has: where nobody gave it a name, a value stands for it. */
static nori_status name_outputs(nori__node *n, const nori__schema *s, nori_error *err)
{
    for (uint32_t i = 0; i < n->output_count && i < s->n_out; i++) {
        if (s->out[i].option == NORI__ARG_SINGLE && !n->outputs[i]) {
            nori__value *made = nori__value_new(n->graph, NULL);
            if (!made) {
                return nori__no_memory(err);
            }
            made->producer = n;
            n->outputs[i] = made;
        }
    }
    return NORI_OK;
}

static nori_status check_attributes(const nori__node *n, const nori__schema *s, nori_error *err)
{
    for (unsigned i = 0; i < s->n_attr; i++) {
        const nori__schema_attr *fact = &s->attrs[i];
        const nori__attr *a = nori__attr_find(n, fact->name);
        /* Files of IR version 1 do not say the kind: it is a guess. */
        if (a && !a->ref && a->kind != fact->kind && !(a->pb && a->pb->kind == NORI__ATTR_NONE)) {
            return nori__fail(err, NORI_ERROR_MODEL,
                              "attribute %s of %s (version %d) must be %s, found %s", fact->name,
                              n->op_type, s->since, nori__attr_kind_name(fact->kind),
                              nori__attr_kind_name(a->kind));
        }
    }
    return NORI_OK;
}

nori_status nori__require_arity(nori__ir *ir, nori_error *err)
{
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first; n; n = n->next) {
            const nori__schema *s = n->op ? n->schema : NULL;
            nori_status status = s ? check_inputs(n, s, err) : NORI_OK;
            if (s && status == NORI_OK) {
                status = check_outputs(n, s, err);
            }
            if (s && status == NORI_OK) {
                status = check_attributes(n, s, err);
            }
            if (s && status == NORI_OK) {
                status = name_outputs(n, s, err);
            }
            if (status != NORI_OK) {
                char path[512];
                nori__node_path(n, path, sizeof(path));
                nori__where(err, "%s", path);
                nori__hint(err, "`nori check` lists everything that is wrong with the model");
                return status;
            }
        }
    }
    return NORI_OK;
}

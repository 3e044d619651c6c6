/* check_types.c: element types of one node's inputs and outputs against its version's facts. */
#include <stdio.h>

#include "ops/takes.h"
#include "tools/check/check_internal.h"

#define TENSOR_BITS ((UINT64_C(1) << NORI_TYPE_COUNT) - 2)

static uint64_t type_bits(const nori__type *t)
{
    return nori__types_of((nori_kind)t->kind, (nori_type)t->elem, t->of);
}

/* The same kind and element type all the way down, as far as both are known. */
static bool same_type(const nori__type *a, const nori__type *b)
{
    while (a && b && a->kind != NORI_KIND_UNKNOWN && b->kind != NORI_KIND_UNKNOWN) {
        if (a->kind != b->kind || (a->elem && b->elem && a->elem != b->elem)) {
            return false;
        }
        a = a->of;
        b = b->of;
    }
    return true;
}

static const nori__schema_arg *argument(const nori__schema *s, uint32_t i, bool output)
{
    return output ? nori__schema_arg_at(s->out, s->n_out, i) : nori__schema_arg_at(s->in, s->n_in, i);
}

/* The first later version whose argument takes the type, or else any version, or 0. */
static int version_taking(const nori__schema *s, uint32_t i, bool output, uint64_t bits)
{
    int found = 0;
    for (int64_t v = 1; v <= nori__opset_max(s->domain); v++) {
        const nori__schema *other = nori__schema_find(s->domain, s->name, v);
        if (!other || other->since != v) {
            continue;
        }
        const nori__schema_arg *there = argument(other, i, output);
        if (there && (there->types & bits)) {
            found = (int)v;
            if (v > s->since) {
                break;
            }
        }
    }
    return found;
}

/* Types bound to constraint names while a node is looked at. */
typedef struct binding {
    const char *constraint;
    const nori__type *type;
    const char *arg; /* formal name that bound it */
} binding;
enum { MAX_BINDINGS = 8 }; /* no operator has more type constraints */

static void check_one(nori_findings *f, const nori__node *node, const nori__schema *s, uint32_t i,
                      bool output, binding *bound)
{
    const nori__schema_arg *fact = argument(s, i, output);
    const nori__type *type = &(output ? node->outputs : node->inputs)[i]->type;
    uint64_t bits = type_bits(type);
    if (bits == 0) {
        return;
    }
    const char *side = output ? "output" : "input";
    char found[128];
    nori__types_text(bits, found, sizeof(found));
    if (!(fact->types & bits)) {
        char list[512];
        nori__types_text(fact->types, list, sizeof(list));
        int other = version_taking(s, i, output, bits);
        const char *hint;
        if (other) {
            hint = nori__arena_printf(&f->arena,
                                      other > s->since ? "%s needs opset %d: nori runs it by the rules of "
                                                         "that, other engines may refuse the file"
                                                       : "%s was taken at version %d",
                                      found, other);
        } else {
            hint = nori__arena_printf(&f->arena, "no version of %s takes %s there", s->name, found);
        }
        nori__found_at(f, NORI_SEVERITY_ERROR, "type", node, hint,
                       "%s at version %d takes %s for %s %s, found %s", node->op_type, s->since,
                       list, side, fact->name, found);
        return;
    }
    if (!fact->constraint || (fact->option == NORI__ARG_VARIADIC && !fact->homogeneous)) {
        return;
    }
    for (unsigned k = 0; k < MAX_BINDINGS; k++) {
        if (!bound[k].constraint) {
            bound[k] = (binding){fact->constraint, type, fact->name};
            return;
        }
        if (nori__same(bound[k].constraint, fact->constraint)) {
            if (!same_type(bound[k].type, type)) {
                char first[128];
                nori__types_text(type_bits(bound[k].type), first, sizeof(first));
                nori__found_at(f, NORI_SEVERITY_ERROR, "type", node, NULL,
                               "%s: %s %s (%s) and %s (%s) must have one type, %s", node->op_type,
                               side, fact->name, found, bound[k].arg, first, fact->constraint);
            }
            return;
        }
    }
}

bool nori__check_types(nori_findings *f, const nori__node *node, const nori__schema *s,
                       nori__type *known)
{
    binding bound[MAX_BINDINGS] = {{0}};
    size_t before = f->said;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] && argument(s, i, false)) {
            check_one(f, node, s, i, false, bound);
        }
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        known[i] = (nori__type){.kind = NORI_KIND_UNKNOWN, .rank = -1};
        const nori__schema_arg *fact = argument(s, i, true);
        if (!fact || !node->outputs[i]) {
            continue;
        }
        check_one(f, node, s, i, true, bound);
        if (fact->option == NORI__ARG_VARIADIC && !fact->homogeneous) {
            continue;
        }
        /* A constraint the inputs have bound, or the only type there is. */
        for (unsigned k = 0; k < MAX_BINDINGS && fact->constraint && bound[k].constraint; k++) {
            if (nori__same(bound[k].constraint, fact->constraint)) {
                known[i].kind = bound[k].type->kind;
                known[i].elem = bound[k].type->elem;
                known[i].of = bound[k].type->of;
            }
        }
        if (known[i].kind == NORI_KIND_UNKNOWN && (fact->types & TENSOR_BITS) == fact->types &&
            (fact->types & (fact->types - 1)) == 0) {
            known[i].kind = NORI_KIND_TENSOR;
            while (!(fact->types & (UINT64_C(1) << known[i].elem))) {
                known[i].elem++;
            }
        }
    }
    return f->said == before;
}

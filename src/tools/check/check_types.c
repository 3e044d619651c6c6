/* check_types.c: element types of one node's inputs and outputs against its version's facts. */
#include <stdio.h>

#include "tools/check/check_internal.h"

#define BIT(n) (UINT64_C(1) << (n))
#define TENSOR_BITS (BIT(NORI_TYPE_COUNT) - 2)

/* What a value is as a bit of nori__schema_arg.types; 0: not known. */
static uint64_t type_bit(const nori__type *t)
{
    switch (t->kind) {
    case NORI_KIND_TENSOR:
        return t->elem > 0 && t->elem < NORI_TYPE_COUNT ? BIT(t->elem) : 0;
    case NORI_KIND_SEQUENCE:
        if (!t->of || t->of->kind == NORI_KIND_UNKNOWN) {
            return 0;
        }
        return BIT(t->of->kind == NORI_KIND_MAP ? NORI__TYPES_SEQ_MAP : NORI__TYPES_SEQ_TENSOR);
    case NORI_KIND_OPTIONAL:
        if (!t->of || t->of->kind == NORI_KIND_UNKNOWN) {
            return 0;
        }
        return BIT(t->of->kind == NORI_KIND_SEQUENCE ? NORI__TYPES_OPT_SEQ
                                                     : NORI__TYPES_OPT_TENSOR);
    case NORI_KIND_MAP:
        return BIT(NORI__TYPES_MAP);
    case NORI_KIND_SPARSE:
        return BIT(NORI__TYPES_SPARSE);
    default:
        return 0;
    }
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

static const char *const kind_words[] = {
    [NORI__TYPES_SEQ_TENSOR - 32] = "sequence of tensors",
    [NORI__TYPES_SEQ_MAP - 32] = "sequence of maps",
    [NORI__TYPES_OPT_TENSOR - 32] = "optional tensor",
    [NORI__TYPES_OPT_SEQ - 32] = "optional sequence",
    [NORI__TYPES_MAP - 32] = "map",
    [NORI__TYPES_SPARSE - 32] = "sparse tensor",
};

/* "bool, int32, int64" into out, cut to size. */
static void types_text(uint64_t types, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (unsigned i = 1; i < 32 + NORI__COUNT(kind_words); i++) {
        if (!(types & BIT(i))) {
            continue;
        }
        const char *word = i < NORI_TYPE_COUNT ? nori_type_name((nori_type)i)
                           : i >= 32           ? kind_words[i - 32]
                                               : "?";
        int n = snprintf(out + at, size - at, "%s%s", at ? ", " : "", word);
        if (n < 0 || (size_t)n >= size - at) {
            return;
        }
        at += (size_t)n;
    }
}

/* The first later version whose argument takes the type, or else any version, or 0. */
static int version_taking(const nori__schema *s, unsigned arg, bool output, uint64_t bit)
{
    int found = 0;
    for (int64_t v = 1; v <= nori__opset_max(s->domain); v++) {
        const nori__schema *other = nori__schema_find(s->domain, s->name, v);
        if (!other || other->since != v) {
            continue;
        }
        unsigned n = output ? other->n_out : other->n_in;
        if (arg < n && ((output ? other->out : other->in)[arg].types & bit)) {
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

static void check_one(nori_findings *f, const nori__node *node, const nori__schema *s, unsigned arg,
                      bool output, const nori__type *type, binding *bound)
{
    const nori__schema_arg *fact = &(output ? s->out : s->in)[arg];
    uint64_t bit = type_bit(type);
    if (bit == 0) {
        return;
    }
    const char *side = output ? "output" : "input";
    char found[64];
    types_text(bit, found, sizeof(found));
    if (!(fact->types & bit)) {
        char list[512];
        types_text(fact->types, list, sizeof(list));
        int other = version_taking(s, arg, output, bit);
        const char *hint;
        if (other) {
            hint = nori__arena_printf(
                &f->arena, other > s->since ? "%s needs opset %d" : "%s was taken at version %d",
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
    for (unsigned i = 0; i < MAX_BINDINGS; i++) {
        if (!bound[i].constraint) {
            bound[i] = (binding){fact->constraint, type, fact->name};
            return;
        }
        if (nori__same(bound[i].constraint, fact->constraint)) {
            if (!same_type(bound[i].type, type)) {
                char first[64];
                types_text(type_bit(bound[i].type), first, sizeof(first));
                nori__found_at(f, NORI_SEVERITY_ERROR, "type", node, NULL,
                               "%s: %s %s (%s) and %s (%s) must have one type, %s", node->op_type,
                               side, fact->name, found, bound[i].arg, first, fact->constraint);
            }
            return;
        }
    }
}

/* Formal argument of position i: the last one repeats when variadic. */
static int formal(uint32_t i, unsigned n, const nori__schema_arg *args)
{
    if (i < n) {
        return (int)i;
    }
    return n > 0 && args[n - 1].option == NORI__ARG_VARIADIC ? (int)n - 1 : -1;
}

bool nori__check_types(nori_findings *f, const nori__node *node, const nori__schema *s,
                       nori__type *known)
{
    binding bound[MAX_BINDINGS] = {{0}};
    size_t before = f->said;
    for (uint32_t i = 0; i < node->input_count; i++) {
        int arg = formal(i, s->n_in, s->in);
        if (node->inputs[i] && arg >= 0) {
            check_one(f, node, s, (unsigned)arg, false, &node->inputs[i]->type, bound);
        }
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        known[i] = (nori__type){.kind = NORI_KIND_UNKNOWN, .rank = -1};
        int arg = formal(i, s->n_out, s->out);
        if (arg < 0 || !node->outputs[i]) {
            continue;
        }
        const nori__schema_arg *fact = &s->out[arg];
        check_one(f, node, s, (unsigned)arg, true, &node->outputs[i]->type, bound);
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
            while (!(fact->types & BIT(known[i].elem))) {
                known[i].elem++;
            }
        }
    }
    return f->said == before;
}

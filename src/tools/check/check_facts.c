/* check_facts.c: one node's inputs, outputs and attributes against the facts of its version. */
#include <inttypes.h>
#include <stdio.h>

#include "ops/arity.h"
#include "tools/check/check_internal.h"

enum { ANY = 65535 };

/* Entries up to the last one that is there: trailing empty names stand for nothing. */
static uint32_t used(nori__value *const *list, uint32_t count)
{
    while (count > 0 && !list[count - 1]) {
        count--;
    }
    return count;
}

/* "2", "at least 1", "1 to 3" */
static void range_text(char *out, size_t size, unsigned low, unsigned high)
{
    if (high == ANY) {
        snprintf(out, size, "at least %u", low);
    } else if (low == high) {
        snprintf(out, size, "%u", low);
    } else {
        snprintf(out, size, "%u to %u", low, high);
    }
}

static bool check_count(nori_findings *f, const nori__node *node, const nori__schema *s,
                        bool outputs)
{
    const char *rule = outputs ? "outputs" : "inputs";
    const nori__schema_arg *args = outputs ? s->out : s->in;
    unsigned n_args = outputs ? s->n_out : s->n_in;
    unsigned low = outputs ? s->min_out : s->min_in, high = outputs ? s->max_out : s->max_in;
    nori__value *const *list = outputs ? node->outputs : node->inputs;
    uint32_t listed = outputs ? node->output_count : node->input_count;
    uint32_t count = used(list, listed);
    /* Empty names count towards the least number where they stand for optional ones. */
    if (listed < low || (high != ANY && count > high)) {
        char range[64];
        range_text(range, sizeof(range), low, high);
        nori__found_at(f, NORI_SEVERITY_ERROR, rule, node, NULL,
                       "%s (version %d) takes %s %s, found %" PRIu32, node->op_type, s->since,
                       range, rule, listed < low ? listed : count);
        return false;
    }
    bool good = true;
    for (unsigned i = 0; i < n_args && !outputs; i++) {
        if (args[i].option == NORI__ARG_SINGLE && (i >= count || !list[i])) {
            nori__found_at(f, NORI_SEVERITY_ERROR, rule, node, NULL,
                           "%s (version %d) needs input %u, %s, which is left out", node->op_type,
                           s->since, i, args[i].name);
            good = false;
        }
    }
    return good;
}

static const nori__schema_attr *find(const nori__schema *s, const char *name)
{
    for (unsigned i = 0; i < s->n_attr; i++) {
        if (nori__same(s->attrs[i].name, name)) {
            return &s->attrs[i];
        }
    }
    return NULL;
}

/* Which other version has the attribute; 0: none. */
static int version_with(const nori__schema *s, const char *name)
{
    int found = 0;
    for (int64_t v = 1; v <= nori__opset_max(s->domain); v++) {
        const nori__schema *other = nori__schema_find(s->domain, s->name, v);
        if (other && other->since == v && find(other, name)) {
            found = (int)v;
            if (v > s->since) {
                break; /* the first later one, else the last earlier one */
            }
        }
    }
    return found;
}

static bool check_attribute(nori_findings *f, const nori__node *node, const nori__schema *s,
                            const nori__attr *attr)
{
    const nori__schema_attr *fact = find(s, attr->name);
    if (!fact) {
        /* Frameworks mark their own with two underscores; old exporters left consumed_inputs. */
        if (strncmp(attr->name, "__", 2) == 0 || nori__same(attr->name, "consumed_inputs")) {
            return true;
        }
        int other = version_with(s, attr->name);
        const char *hint = NULL;
        if (other) {
            hint = nori__arena_printf(&f->arena,
                                      other > s->since ? "opset %d and newer have it"
                                                       : "version %d of the operator had it",
                                      other);
        }
        /* The facts of com.microsoft are not as firm as those of the standard. */
        bool firm = strncmp(s->domain, "com.", 4) != 0;
        nori__found_at(f, firm ? NORI_SEVERITY_ERROR : NORI_SEVERITY_WARNING, "attribute", node,
                       hint, "%s (version %d) has no attribute %s", node->op_type, s->since,
                       attr->name);
        return !firm;
    }
    /* Files of IR version 1 do not say the kind: it is a guess. */
    if (attr->kind != fact->kind && !(attr->pb && attr->pb->kind == NORI__ATTR_NONE)) {
        nori__found_at(f, NORI_SEVERITY_ERROR, "attribute", node, NULL,
                       "attribute %s of %s (version %d) must be %s, found %s", attr->name,
                       node->op_type, s->since, nori__attr_kind_name(fact->kind),
                       nori__attr_kind_name(attr->kind));
        return false;
    }
    return true;
}

bool nori__check_facts(nori_findings *f, const nori__node *node, const nori__schema *s)
{
    if (s->runtime && !s->deprecated) {
        nori__found_at(f, NORI_SEVERITY_INFO, "runtime-only", node, NULL,
                       "%s is no operator of ONNX at this operator set: ONNX Runtime knows it, others "
                       "may not", node->op_type);
    }
    if (s->deprecated && s->since == 1) {
        nori__found_at(f, NORI_SEVERITY_INFO, "deprecated", node, NULL,
                       "%s was experimental and is no longer part of the standard", node->op_type);
    } else if (s->deprecated) {
        nori__found_at(f, NORI_SEVERITY_WARNING, "deprecated", node, NULL,
                       "%s is deprecated from version %d on", node->op_type, s->since);
    }
    bool good = check_count(f, node, s, false);
    good &= check_count(f, node, s, true);
    for (uint32_t i = 0; i < node->attr_count; i++) {
        good &= check_attribute(f, node, s, &node->attrs[i]);
    }
    for (unsigned i = 0; i < s->n_attr; i++) {
        uint32_t given = 0;
        for (uint32_t k = 0; k < node->attr_count; k++) {
            given += nori__same(node->attrs[k].name, s->attrs[i].name);
        }
        if (given > 1) {
            nori__found_at(f, NORI_SEVERITY_ERROR, "attribute", node, NULL,
                           "attribute %s is given %" PRIu32 " times", s->attrs[i].name, given);
            good = false;
        }
        if (s->attrs[i].required && given == 0) {
            nori__found_at(f, NORI_SEVERITY_ERROR, "attribute", node, NULL,
                           "%s (version %d) needs attribute %s (%s), which is missing",
                           node->op_type, s->since, s->attrs[i].name,
                           nori__attr_kind_name(s->attrs[i].kind));
            good = false;
        }
    }
    return good;
}

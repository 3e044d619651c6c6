/* check_graph.c: rules about the graph as a whole: opset imports, what nothing uses. */
#include <inttypes.h>

#include "tools/check/check_internal.h"

static bool domain_used(const nori__ir *ir, const char *domain)
{
    for (const nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (const nori__node *n = g->first; n; n = n->next) {
            if (nori__same(n->domain, domain)) {
                return true;
            }
        }
    }
    return false;
}

void nori__check_imports(nori_findings *f, const nori__ir *ir)
{
    for (size_t i = 0; i < ir->opset_count; i++) {
        const nori__opset *o = &ir->opsets[i];
        const char *shown = o->domain[0] ? o->domain : "ai.onnx";
        int64_t newest = nori__opset_max_in(ir, o->domain);
        bool twice = false;
        for (size_t k = 0; k < i; k++) {
            twice |= nori__same(ir->opsets[k].domain, o->domain);
        }
        if (twice) {
            nori__found(f, NORI_SEVERITY_ERROR, "opset", shown, "keep one of the imports",
                        "domain %s is imported twice", shown);
        } else if (o->version < 1) {
            nori__found(f, NORI_SEVERITY_ERROR, "opset", shown, NULL,
                        "domain %s is imported with version %" PRId64, shown, o->version);
        } else if (o->version > newest && !domain_used(ir, o->domain)) {
            if (newest) {
                nori__found(f, NORI_SEVERITY_INFO, "opset", shown, NULL,
                            "%s %" PRId64 " is imported, newer than the newest known, %" PRId64
                            "; no node uses it",
                            shown, o->version, newest);
            } else {
                nori__found(f, NORI_SEVERITY_INFO, "domain", shown, NULL,
                            "domain %s is imported but not known; no node uses it", shown);
            }
        }
    }
    if (nori__ir_opset(ir, "") == 0 && domain_used(ir, "")) {
        nori__found(f, NORI_SEVERITY_ERROR, "opset", "", "add an opset import for ai.onnx",
                    "no opset is imported for the default domain");
    }
}

/* What loading warned of: a check says all there is to say. */
void nori__check_warnings(nori_findings *f, const nori__ir *ir)
{
    for (size_t i = 0; i < ir->warnings.count; i++) {
        nori__found(f, NORI_SEVERITY_WARNING, "model", "", NULL, "%s",
                    (const char *)ir->warnings.items[i]);
    }
}

void nori__check_unused(nori_findings *f, const nori__ir *ir)
{
    for (const nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (const nori__value *v = g->values; v; v = v->next) {
            if (v->uses > 0 || (v->flags & NORI__VALUE_OUTPUT)) {
                continue;
            }
            if (v->flags & NORI__VALUE_INITIALIZER) {
                nori__found(f, NORI_SEVERITY_INFO, "unused", v->name, NULL,
                            "initializer that nothing uses");
            } else if ((v->flags & NORI__VALUE_INPUT) && !g->parent) {
                nori__found(f, NORI_SEVERITY_INFO, "unused", v->name, NULL,
                            "input that nothing uses");
            }
        }
        for (const nori__node *n = g->first; n; n = n->next) {
            bool wanted = false;
            for (uint32_t i = 0; i < n->output_count; i++) {
                const nori__value *v = n->outputs[i];
                wanted |= v && (v->uses > 0 || (v->flags & NORI__VALUE_OUTPUT));
            }
            if (!wanted) {
                nori__found_at(f, NORI_SEVERITY_INFO, "unused", n, NULL,
                               "node whose outputs nothing uses");
            }
        }
    }
}

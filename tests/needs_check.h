/* needs_check.h: what a session made against what nori/needs.h says it may make. */
#ifndef NORI_TESTS_NEEDS_CHECK_H
#define NORI_TESTS_NEEDS_CHECK_H

#include <stdio.h>

#include "nori/needs.h"
#include "run/run.h"

static inline bool needs__has(const nori_needs *needs, const char *domain, const char *op)
{
    nori_need n = {.size = sizeof(n)};
    for (size_t i = 0; nori_needs_at(needs, i, &n); i++) {
        if (nori__same(n.domain, domain[0] ? domain : "ai.onnx") && nori__same(n.op, op)) {
            return true;
        }
    }
    return false;
}

/* The first operator that the session's copy has, or had on the way, and that needs do not name; NULL:
 * none. Nodes made for parts of other providers are not asked about. */
static inline const char *needs_lack(const nori_needs *needs, const nori_session *session)
{
    const nori__op *op;
    for (size_t i = 0; (op = nori__op_at(i)) != NULL; i++) {
        if ((session->ir->met[op->id / 64] >> op->id % 64 & 1) &&
            !needs__has(needs, nori__domain_name(op->domain), op->name)) {
            return op->name;
        }
    }
    for (const nori__graph *g = session->ir->graphs; g; g = g->next_graph) {
        for (const nori__node *n = g->first; n; n = n->next) {
            if (nori__same(n->domain, "nori") && !nori__same(n->op_type, "Part") &&
                !needs__has(needs, "nori", n->op_type)) {
                return n->op_type;
            }
        }
    }
    return NULL;
}

#endif

/* constant.h: which attribute says the value of a Constant node. Inference and kernel ask here, so that
 * what one takes for the shape is what the other writes. */
#ifndef NORI_OPS_CONSTANT_H
#define NORI_OPS_CONSTANT_H

#include "graph/graph.h"

static inline bool nori__constant_says(const nori__attr *a)
{
    static const struct {
        const char *name;
        nori__pb_attr_kind kind;
    } rows[] = {{"value", NORI__ATTR_TENSOR},        {"value", NORI__ATTR_SPARSE},
                {"sparse_value", NORI__ATTR_SPARSE}, {"sparse_value", NORI__ATTR_TENSOR},
                {"value_int", NORI__ATTR_INT},       {"value_ints", NORI__ATTR_INTS},
                {"value_float", NORI__ATTR_FLOAT},   {"value_floats", NORI__ATTR_FLOATS},
                {"value_string", NORI__ATTR_STRING}, {"value_strings", NORI__ATTR_STRINGS}};
    for (size_t i = 0; i < NORI__COUNT(rows); i++) {
        if (a->kind == rows[i].kind && nori__same(a->name, rows[i].name)) {
            bool tensor = a->kind == NORI__ATTR_TENSOR || a->kind == NORI__ATTR_SPARSE;
            return !tensor || a->v.tensor;
        }
    }
    return false;
}

/* The one; NULL: there is none, or more than one (then *many). */
static inline const nori__attr *nori__constant_value(const nori__node *n, bool *many)
{
    const nori__attr *found = NULL;
    *many = false;
    for (uint32_t i = 0; i < n->attr_count; i++) {
        if (nori__constant_says(&n->attrs[i])) {
            *many = found != NULL;
            found = &n->attrs[i];
            if (*many) {
                return NULL;
            }
        }
    }
    return found;
}

#endif

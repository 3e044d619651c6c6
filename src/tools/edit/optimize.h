/* optimize.h: rewrites of a graph at its file's own operator set; the list is in optimize.c. */
#ifndef NORI_TOOLS_EDIT_OPTIMIZE_H
#define NORI_TOOLS_EDIT_OPTIMIZE_H

#include "tools/edit/editing.h"

/* Each adds to *changes what it did. Types of the main graph's values are known. */
nori_status nori__opt_transposes(nori__ir *ir, size_t *changes, nori_error *err);
nori_status nori__opt_gemm(nori__ir *ir, size_t *changes, nori_error *err);
nori_status nori__opt_pads(nori__ir *ir, size_t *changes, nori_error *err);
nori_status nori__opt_same_constants(nori__ir *ir, size_t *changes, nori_error *err);
nori_status nori__opt_same_nodes(nori__ir *ir, size_t *changes, nori_error *err);

#endif

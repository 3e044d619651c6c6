/* forms.h: whether a node can stand as it is under another operator set of ai.onnx (raise.c). For
 * nodes of that domain whose operator is known. */
#ifndef NORI_OPS_FORMS_H
#define NORI_OPS_FORMS_H

#include "graph/graph.h"

/* Whether the version in force under opset has the node's operator, inputs, outputs, attributes and
 * types, as far as they are known; else why it does not. */
bool nori__form_fits(const nori__node *node, int64_t opset, char *why, size_t size);
/* Whether that version means what the node's own does, for one form. */
bool nori__form_means_same(const nori__node *node, int64_t opset);
/* The file format's version that an operator set came with: older readers would refuse it. */
int64_t nori__ir_of_opset(int64_t opset);

#endif

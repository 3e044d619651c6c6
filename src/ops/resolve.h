/* resolve.h: what is done to a whole graph with the knowledge of operators. */
#ifndef NORI_OPS_RESOLVE_H
#define NORI_OPS_RESOLVE_H

#include "ops/op.h"

/* Sets op and version of every node by the model's operator sets; unknown ones stay NULL, 0. */
void nori__resolve(nori__ir *ir);
void nori__node_resolve(nori__node *node);
void nori__node_resolve_at(nori__node *node, int64_t opset); /* of the node's domain */
/* False: no node of the graph or its subgraphs is, or was, one of these operators of the list. A
 * rewrite that starts from them need not go over the nodes. */
bool nori__ir_has(const nori__ir *ir, const nori__op_id *ops, size_t count);
#define NORI__IR_HAS(ir, ...) \
    nori__ir_has(ir, (const nori__op_id[]){__VA_ARGS__}, \
                 sizeof((const nori__op_id[]){__VA_ARGS__}) / sizeof(nori__op_id))

/* Infers types and shapes in order. Declared types are hints: what is inferred wins, a real
 * conflict is a warning. Errors carry the node's path. */
nori_status nori__infer_graph(nori__ir *ir, nori_error *err);
/* The same where nodes, wiring or attributes were edited since it was last done; else nothing. */
nori_status nori__infer_edited(nori__ir *ir, nori_error *err);
/* nori__infer_graph with a rewrite of each node when its inputs' types are known. It may change
 * the node and put others in front of it, and is asked again for the node after them. */
typedef nori_status (*nori__rewrite_fn)(nori__node *n, nori_error *err);
nori_status nori__infer_rewriting(nori__ir *ir, nori__rewrite_fn before, nori_error *err);

/* Runs a node's reference kernel on constant inputs; out[i] (fresh references) for each output.
 * UNSUPPORTED without an error text when the node cannot be run so. */
nori_status nori__node_evaluate(const nori__node *node, const nori_allocator *a,
                                nori_tensor **out, nori_error *err);

/* Old forms become the newest, on a compiled copy only. Infers on the way: old forms that inference
 * would refuse are new before it comes to them. */
nori_status nori__upgrade(nori__ir *ir, nori_error *err);

/* raise.c: the same model under a newer operator set of ai.onnx; nodes change where their form or
 * meaning did. UNSUPPORTED lists what cannot be written so, and leaves an ir only fit to be freed.
 */
nori_status nori__raise_opset(nori__ir *ir, int64_t opset, nori_error *err);

/* Calls of the model's own functions become their bodies, nested ones too. A function's nodes get
 * the versions that its own operator sets say. Functions that call themselves are an error. */
nori_status nori__inline_functions(nori__ir *ir, nori_error *err);

/* One error that lists every operator nothing can run: each once, with domain, operator set,
 * first node and how many there are. */
nori_status nori__require_supported(const nori__ir *ir, nori_error *err);

#endif

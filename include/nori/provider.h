/* provider.h: for those who look into a graph or add to nori: read-only views of a graph, the
 * kernel interface, and the execution provider ABI. Custom operators use the same kernels.
 *
 * All structs given to nori begin with their size, so that later versions can add fields. Views
 * belong to the model or session they came from and die with it or when it is edited. */
#ifndef NORI_PROVIDER_H
#define NORI_PROVIDER_H

#include "nori/nori.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- views ------------------------------------------------------------------------------ */

typedef struct nori__graph nori_graph;
typedef struct nori__node nori_node;
typedef struct nori__value nori_value;

/* The main graph as the file has it. */
NORI_API const nori_graph *nori_model_graph(const nori_model *model);
NORI_API int64_t nori_model_ir_version(const nori_model *model);
NORI_API const char *nori_model_producer(const nori_model *model); /* "pytorch 1.13.1" or "" */
NORI_API const char *nori_model_path(const nori_model *model);     /* "" when from memory */
NORI_API uint64_t nori_model_file_bytes(const nori_model *model);
/* Imported operator sets; false past the last. domain "" is ai.onnx. */
NORI_API int nori_model_opset(const nori_model *model, size_t index, const char **domain,
                              int64_t *version);
/* Metadata entries; false past the last. */
NORI_API int nori_model_metadata(const nori_model *model, size_t index, const char **key,
                                 const char **value);
/* Model-local functions; false past the last. */
NORI_API int nori_model_function(const nori_model *model, size_t index, const char **domain,
                                 const char **name, size_t *node_count);
/* Files of external data the initializers name, each once; NULL past the last. */
NORI_API const char *nori_model_external(const nori_model *model, size_t index);

NORI_API const char *nori_graph_name(const nori_graph *graph);
NORI_API size_t nori_graph_node_count(const nori_graph *graph);
NORI_API const nori_node *nori_graph_first(const nori_graph *graph); /* in order of execution */
NORI_API const nori_node *nori_node_next(const nori_node *node);     /* NULL after the last */
NORI_API const nori_value *nori_graph_input(const nori_graph *graph, size_t index);  /* or NULL */
NORI_API const nori_value *nori_graph_output(const nori_graph *graph, size_t index); /* or NULL */
/* Values defined in the graph, in no particular order; NULL ends. */
NORI_API const nori_value *nori_graph_value(const nori_graph *graph);
NORI_API const nori_value *nori_value_next(const nori_value *value);

NORI_API const char *nori_node_name(const nori_node *node);
NORI_API const char *nori_node_op(const nori_node *node);
NORI_API const char *nori_node_domain(const nori_node *node); /* "" is ai.onnx */
NORI_API int nori_node_version(const nori_node *node);        /* 0: unknown operator */
/* "then_branch/Conv_0 (Conv)": written into out, cut to size. */
NORI_API void nori_node_path(const nori_node *node, char *out, size_t size);
NORI_API size_t nori_node_input_count(const nori_node *node);
NORI_API const nori_value *nori_node_input(const nori_node *node, size_t index); /* NULL: absent */
NORI_API size_t nori_node_output_count(const nori_node *node);
NORI_API const nori_value *nori_node_output(const nori_node *node, size_t index);
NORI_API size_t nori_node_attr_count(const nori_node *node);
NORI_API const char *nori_node_attr_name(const nori_node *node, size_t index);
/* The attribute as text, cut to size ("[1, 1]", "0.5", "\"same\"", "graph of 12 nodes"). */
NORI_API void nori_node_attr_text(const nori_node *node, size_t index, char *out, size_t size);
/* Subgraphs of the node's attributes; NULL past the last. */
NORI_API const nori_graph *nori_node_subgraph(const nori_node *node, size_t index);
/* Attributes by name; absent or of another kind: otherwise. */
NORI_API int64_t nori_node_int(const nori_node *node, const char *name, int64_t otherwise);
NORI_API float nori_node_float(const nori_node *node, const char *name, float otherwise);
NORI_API const char *nori_node_text(const nori_node *node, const char *name,
                                    const char *otherwise);
NORI_API const int64_t *nori_node_ints(const nori_node *node, const char *name, size_t *count);

NORI_API const char *nori_value_name(const nori_value *value);
NORI_API nori_kind nori_value_kind(const nori_value *value);
NORI_API nori_type nori_value_type(const nori_value *value); /* UNDEFINED: not known */
NORI_API int nori_value_rank(const nori_value *value);       /* -1: not known */
NORI_API int64_t nori_value_dim(const nori_value *value, int axis, const char **name); /* -1 */
NORI_API const nori_tensor *nori_value_initializer(const nori_value *value); /* NULL: none */
NORI_API const nori_node *nori_value_producer(const nori_value *value);      /* NULL: none */

/* ---- kernels ---------------------------------------------------------------------------- */

/* One run of one node. */
typedef struct nori_call nori_call;
NORI_API const nori_node *nori_call_node(const nori_call *call);
NORI_API const nori_tensor *nori_call_input(const nori_call *call, size_t index); /* or NULL */
/* Output with type, shape and memory set; NULL when nobody wants it. */
NORI_API nori_tensor *nori_call_output(const nori_call *call, size_t index);
NORI_API void *nori_call_workspace(const nori_call *call); /* of the size workspace() asked */
NORI_API nori_error *nori_call_error(const nori_call *call);
/* Splits [0, count) over the run's threads; see the ABI rule: results must not depend on it. */
NORI_API void nori_call_parallel(nori_call *call, int64_t count, int64_t grain,
                                 void (*body)(void *user, int64_t begin, int64_t end, int thread),
                                 void *user);

/* What runs a node. state is what prepare made: immutable while running, shared by threads. */
typedef struct nori_kernel {
    size_t size;
    /* May be NULL. Looks at the node once: attributes, constant inputs, static shapes; packs
     * weights (state_bytes: how much, for reports). */
    nori_status (*prepare)(const nori_node *node, const nori_allocator *allocator, void **state,
                           size_t *state_bytes, nori_error *error);
    /* May be NULL: 0. Scratch bytes for the shapes of this call; data may be NULL here. */
    size_t (*workspace)(const void *state, const nori_call *call);
    nori_status (*run)(const void *state, nori_call *call);
    void (*release)(void *state, const nori_allocator *allocator); /* NULL if prepare is */
} nori_kernel;

/* ---- providers -------------------------------------------------------------------------- */

/* An engine that computes nodes. Static storage; one struct serves all sessions. */
typedef struct nori_provider {
    size_t size;
    const char *name;        /* as the user writes it: "cpu" */
    const char *description; /* one line */
    /* May be NULL. Called once a session; options is what followed ':' in the provider's name, or
     * "". Errors say which library, symbol, version or driver is missing. */
    nori_status (*open)(const char *options, void **self, nori_error *error);
    void (*close)(void *self);
    /* The kernel for a node of the compiled graph (newest opset, types inferred), NULL: not taken.
     * Earlier providers of the list are asked first; reference takes what is left. */
    const nori_kernel *(*kernel)(void *self, const nori_node *node);
} nori_provider;

/* Built-in providers, NULL past the last. */
NORI_API const nori_provider *nori_provider_at(size_t index);

#ifdef __cplusplus
}
#endif
#endif

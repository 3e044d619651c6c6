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
NORI_API const float *nori_node_floats(const nori_node *node, const char *name, size_t *count);

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
/* Output with type, shape and memory set; NULL when nobody wants it, or it is yet to be made. */
NORI_API nori_tensor *nori_call_output(const nori_call *call, size_t index);
NORI_API void *nori_call_workspace(const nori_call *call); /* of the size workspace() asked */
NORI_API nori_error *nori_call_error(const nori_call *call);
/* New memory as output i, where nori_call_output gave NULL; the tensor is nori's. */
NORI_API nori_status nori_call_alloc(nori_call *call, size_t index, nori_type type, int rank,
                                     const int64_t *dims, nori_tensor **tensor);
/* A tensor of the caller's as output i (nori takes a reference): also sequences and maps. */
NORI_API nori_status nori_call_set(nori_call *call, size_t index, nori_tensor *tensor);
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
    /* Bit i: what run needs of a constant input i is in the state, it looks at type and shape alone.
     * Saves memory: content that stands at an odd address of the file need not be copied. */
    uint32_t packed_inputs;
} nori_kernel;

/* ---- custom operators ------------------------------------------------------------------- */

/* What inference knows of a node, and is told: for the callback of an operator. Sizes that are not
 * known are -1; while a model runs all are known. */
typedef struct nori__infer nori_infer;
NORI_API const nori_node *nori_infer_node(const nori_infer *infer);
NORI_API nori_type nori_infer_type(const nori_infer *infer, size_t input); /* UNDEFINED: unknown */
NORI_API int nori_infer_rank(const nori_infer *infer, size_t input);       /* -1: unknown, absent */
NORI_API int64_t nori_infer_dim(const nori_infer *infer, size_t input, int axis);
/* The content of an input that is constant, or at hand while running; else NULL. */
NORI_API const nori_tensor *nori_infer_tensor(const nori_infer *infer, size_t input);
/* Says what an output is. rank -1: only the type. An output nobody wants is taken silently. */
NORI_API nori_status nori_infer_output(nori_infer *infer, size_t output, nori_type type, int rank,
                                       const int64_t *dims);
/* The output has the input's type and shape, the names of its dimensions too. */
NORI_API nori_status nori_infer_like(nori_infer *infer, size_t output, size_t input);
NORI_API nori_error *nori_infer_error(const nori_infer *infer);
/* Fills an error and returns its status: return nori_error_set(nori_infer_error(infer),
 * NORI_ERROR_MODEL, "alpha is %d, expected 0 or 1", alpha); the first error stays. */
NORI_API nori_status nori_error_set(nori_error *error, nori_status status, const char *format, ...);

/* Bits of nori_op_arg.types. */
#define NORI_TYPE_BIT(type) (UINT64_C(1) << (type))

typedef enum nori_op_option {
    NORI_OP_REQUIRED,
    NORI_OP_OPTIONAL,
    NORI_OP_VARIADIC /* the last one only: any number more */
} nori_op_option;

/* An input or output. Zeroed but for its name, it takes any type. Of lists, this and the next have no
 * size: they do not grow. */
typedef struct nori_op_arg {
    const char *name;
    uint64_t types;         /* NORI_TYPE_BIT of each it takes; 0: any */
    const char *constraint; /* those of one name ("T") have one type; NULL: on its own */
    nori_op_option option;
} nori_op_arg;

/* Numbers of AttributeProto.AttributeType. */
typedef enum nori_attr_kind {
    NORI_ATTR_FLOAT = 1,
    NORI_ATTR_INT = 2,
    NORI_ATTR_STRING = 3,
    NORI_ATTR_FLOATS = 6,
    NORI_ATTR_INTS = 7,
    NORI_ATTR_STRINGS = 8
} nori_attr_kind;

typedef struct nori_op_attr {
    const char *name;
    nori_attr_kind kind;
    int required;
} nori_op_attr;

enum {
    NORI_OP_INPLACE = 2, /* output 0 may overwrite input 0 of the same size, element by element */
    NORI_OP_DYNAMIC = 4, /* shapes are known by running: run makes its outputs by nori_call_alloc */
    NORI_OP_RANDOM = 8   /* never computed ahead */
};

/* An operator of the caller's own. It takes part in inference, checks, reports, planning and
 * profiles like the built-in ones. Zero it, set size, fill in; everything is copied. */
typedef struct nori_custom_op {
    size_t size;
    const char *domain, *name; /* domain: not that of ai.onnx */
    int since;                 /* first version of the domain's operator set that has this form */
    unsigned flags;            /* NORI_OP_* */
    const nori_op_arg *inputs, *outputs;
    size_t n_inputs, n_outputs;
    const nori_op_attr *attributes;
    size_t n_attributes;
    /* Types and shapes of the outputs; may be NULL with NORI_OP_DYNAMIC. Called while loading, when
     * much may be unknown (not an error), and for new input shapes. Errors are MODEL. */
    nori_status (*infer)(nori_infer *infer);
    const nori_kernel *kernel;
} nori_custom_op;

/* Adds an operator to an environment: before models that use it are loaded with it. ARGUMENT with
 * the reason when it is incomplete, or there already is one of the name and version. Any thread. */
NORI_API nori_status nori_env_register_op(nori_env *env, const nori_custom_op *op,
                                          nori_error *error);

/* Opens a shared object and calls what it exports as nori_register_ops, which registers operators
 * with nori_env_register_op. The library stays open as long as the environment. It calls the
 * functions of this header, so the program must offer them to it: one that links libnori.so does, a
 * static one is linked with -rdynamic. UNAVAILABLE with library and symbol when it cannot be. */
NORI_API nori_status nori_env_load_ops(nori_env *env, const char *path, nori_error *error);
/* What a library of operators exports under the name nori_register_ops. */
typedef nori_status (*nori_register_ops_fn)(nori_env *env, nori_error *error);

/* The operators registered with an environment, in the order of registration: 0 past the last. */
NORI_API int nori_env_op(nori_env *env, size_t index, const char **domain, const char **name,
                         int *since);

/* ---- execution providers ---------------------------------------------------------------- */

/* An execution provider computes nodes: one at a time by kernels, or in parts, sets of nodes it
 * compiles and runs as one. The model stays the same; results agree to a tolerance. What a
 * provider does not take is asked of the next one; `reference` takes what is left.
 *
 * A session calls, in this order: open; describe; claim_model, and when that is not taken claim
 * for each node; compile for each part; run for each part of each run; free_part; close. All but
 * run come from one thread at a time. docs/add_provider.md walks through an example. */

#define NORI_PROVIDER_ABI 1

/* How a session opens a provider. */
typedef struct nori_provider_open {
    size_t size;
    const char *options; /* what followed ':' in the provider's name ("device=1,x=y"), or "" */
    int threads;         /* at most this many per run */
    int level;           /* optimization, see nori_session_options */
    const char *cache_dir; /* the session's, for engines that keep files of their own; or NULL */
    /* Tells how far a long compile is (phase "compile"); from the thread that called open or compile,
     * and only until that call returns. Never NULL. */
    void (*report)(void *user, const nori_progress *progress);
    void *report_user;
} nori_provider_open;

/* A device and the memory it works in. Strings live until close. */
typedef struct nori_device {
    size_t size;
    const char *name;      /* "NVIDIA A2", "8 cores" */
    const char *kind;      /* cpu, gpu, npu or dsp */
    const char *memory;    /* host: it reads nori's tensors where they lie; device: they are
                              copied; shared: both see the same pages */
    uint64_t memory_bytes; /* 0: not known */
} nori_device;

/* A named dimension the provider can only take in a range. */
typedef struct nori_dim_range {
    const char *name;
    int64_t low, high; /* both included */
} nori_dim_range;

/* What a provider is and costs. Zeroed before describe fills it; zero costs mean free. */
typedef struct nori_provider_info {
    size_t size;
    char label[64];   /* in reports, when not the provider's name: "ort:cuda" */
    char engine[256]; /* library, version, driver: for reports */
    const nori_device *devices;
    size_t device_count;
    double copy_in_fixed_ns, copy_in_bytes_per_s;   /* of one tensor into a part; 0 bytes/s: */
    double copy_out_fixed_ns, copy_out_bytes_per_s; /* bytes cost nothing */
    double launch_ns;                               /* of one run of one part */
    const nori_dim_range *ranges; /* of named dimensions; others are not limited */
    size_t range_count;
    int serial; /* 1: a part cannot run in two threads at once; nori then takes turns */
} nori_provider_info;

/* The answer for one node or a whole model. Zeroed before the provider fills it. */
typedef struct nori_claim {
    size_t size;
    int taken;
    int static_only; /* 1: only with all sizes known before it is compiled */
    double cost_ns;  /* of one run at the sizes known (others count as 1); 0: less than any other */
    char reason[192]; /* why it is not taken */
} nori_claim;

/* A set of nodes to compile: no path leaves it and comes back. Its nodes, inputs and outputs are
 * views that stay good until the part is freed. */
typedef struct nori_part nori_part;
NORI_API size_t nori_part_node_count(const nori_part *part);
NORI_API const nori_node *nori_part_node(const nori_part *part, size_t index); /* in order */
/* What it reads from outside, constants excepted, and what it must deliver. */
NORI_API size_t nori_part_input_count(const nori_part *part);
NORI_API const nori_value *nori_part_input(const nori_part *part, size_t index);
NORI_API size_t nori_part_output_count(const nori_part *part);
NORI_API const nori_value *nori_part_output(const nori_part *part, size_t index);
/* 1: the part is the whole model as its file has it, at its own operator sets. */
NORI_API int nori_part_is_model(const nori_part *part);
/* The file, when the part is a whole unchanged model and came from one; else NULL. */
NORI_API const char *nori_part_file(const nori_part *part);
/* The part as a serialized ONNX model; good until the part is freed. Data in external files is
 * named, not held, by a whole model. */
NORI_API nori_status nori_part_onnx(nori_part *part, const void **bytes, size_t *size,
                                    nori_error *error);
/* Sizes that were fixed by name for this session; 0 past the last. */
NORI_API int nori_part_fixed_dim(const nori_part *part, size_t index, const char **name,
                                 int64_t *value);

/* Compiled forms kept between sessions, in the folder of the session's option cache_dir; while a part
 * is compiled. `made_for` says what else the form depends on (driver, options); nori adds the part
 * itself with its weights, the provider's label and its engine. 1: bytes and size are what was kept,
 * good until the part is freed, to be checked as far as the engine does not. 0: a miss. Both are told to the
 * session's progress, with the reason. */
NORI_API int nori_part_load(nori_part *part, const char *made_for, const void **bytes,
                            size_t *size);
/* Keeps a form. Without a folder, or when it cannot be written, nothing is kept, which is no error. */
NORI_API void nori_part_store(nori_part *part, const char *made_for, const void *bytes,
                              size_t size);

/* Static storage; one struct serves all sessions. A shared object is a provider when it exports
 *     const nori_provider *nori_provider_entry(int abi);
 * which gives NULL when it cannot serve NORI_PROVIDER_ABI. */
typedef struct nori_provider {
    size_t size;
    const char *name;        /* as the user writes it: "cpu" */
    const char *description; /* one line */
    /* May be NULL. Called once a session. Errors (UNAVAILABLE) say which library, symbol, version
     * or driver is missing. */
    nori_status (*open)(const nori_provider_open *how, void **self, nori_error *error);
    void (*close)(void *self);
    /* The kernel for a node of the compiled graph (newest opset, types inferred), NULL: not taken.
     * May be NULL, as may all that follow; whoever has claim or claim_model also has compile, run
     * and free_part. */
    const nori_kernel *(*kernel)(void *self, const nori_node *node);
    nori_status (*describe)(void *self, nori_provider_info *info, nori_error *error);
    /* For the first provider of a session: the model as its file has it, before any rewriting. */
    nori_status (*claim_model)(void *self, nori_part *model, nori_claim *claim, nori_error *error);
    /* For each node of the standard graph: after the standard rewrites, before any provider's own.
     * Newest form of the operator, types inferred as far as they can be. */
    nori_status (*claim)(void *self, const nori_node *node, nori_claim *claim, nori_error *error);
    /* UNSUPPORTED: the part is left to others, and the text is the reason in reports. */
    nori_status (*compile)(void *self, nori_part *part, void **compiled, nori_error *error);
    /* Inputs and outputs by nori_call_*, in the part's order. An output whose shape could be told
     * beforehand has its memory; others are made here by nori_call_alloc or nori_call_set. */
    nori_status (*run)(void *self, void *compiled, nori_call *call);
    void (*free_part)(void *self, void *compiled);
    /* For engines with a queue; both or none. start begins what run would do and returns before it is
     * done, with all inputs read; outputs have their memory, and hold nothing until finish, which waits.
     * Between them nori runs what does not need them, on the same thread, but no other part and no
     * subgraph. finish comes for every start that gave NORI_OK, once, with the same call. nori uses run
     * where shapes are known only by running, and where each step is timed or watched. */
    nori_status (*start)(void *self, void *compiled, nori_call *call, void **started);
    nori_status (*finish)(void *self, void *compiled, void *started, nori_call *call);
} nori_provider;

/* Built-in providers, NULL past the last. */
NORI_API const nori_provider *nori_provider_at(size_t index);
/* ---- the split over providers ------------------------------------------------------------ */

/* A set of nodes that could run as one part of a provider, given to it or not. Times are
 * estimates (nanoseconds a run), sizes not known count as 1. Text lives as long as the session. */
typedef struct nori_part_info {
    size_t size; /* sizeof, set by the caller */
    const char *provider;
    size_t node_count;
    const nori_node *first; /* of its nodes */
    int whole;              /* 1: the model as its file has it; nothing is estimated */
    int given;
    const char *why;        /* not given: the reason; else "" */
    double base_ns;         /* what nori would take on its own */
    double cost_ns, copy_ns, launch_ns; /* what the provider takes */
    size_t in_count, out_count;         /* tensors that are copied */
    uint64_t in_bytes, out_bytes;
} nori_part_info;
/* 0 past the last. */
NORI_API int nori_session_part(const nori_session *session, size_t index, nori_part_info *info);

/* A node that keeps two parts of one provider from being one. */
typedef struct nori_splitter_info {
    size_t size; /* sizeof, set by the caller */
    const nori_node *node;
    const char *provider;
    size_t before, after; /* parts, by index */
    const char *reason;   /* why the provider does not have it */
    const char *advice;   /* what would join the parts */
} nori_splitter_info;
NORI_API int nori_session_splitter(const nori_session *session, size_t index,
                                   nori_splitter_info *info);

/* Which provider runs a node of the compiled model, those inside parts and subgraphs included.
 * part: index of its part, or SIZE_MAX. */
typedef struct nori_node_info {
    size_t size; /* sizeof, set by the caller */
    const nori_node *node;
    const char *provider;
    size_t part;
} nori_node_info;
NORI_API int nori_session_node(const nori_session *session, size_t index, nori_node_info *info);

/* Providers a session has open, first choice first; 0 past the last. engine is "" or says library
 * and version. */
NORI_API int nori_session_provider(const nori_session *session, size_t index, const char **label,
                                   const char **engine);

#ifdef __cplusplus
}
#endif
#endif

/* op.h: what each operator is. THE list (op_list.h), its facts by version (schema.h), shape
 * inference, and the interface through which kernels of every provider are called.
 *
 * Kernels see only the newest form of an operator (upgrade.c rewrites old ones on the compiled
 * copy); what has no rewrite keeps node->version and its kernel looks at it. */
#ifndef NORI_OPS_OP_H
#define NORI_OPS_OP_H

#include "graph/graph.h"
#include "nori/provider.h"
#include "platform/platform.h"

/* ---- flags of a row in op_list.h ---- */
enum {
    NORI__OP_VIEW = 1,      /* output 0 has the bytes of input 0: the planner lets them share */
    NORI__OP_INPLACE = 2,   /* output 0 may overwrite an input of the same size: element by
                               element, each read before its place is written */
    NORI__OP_DYNAMIC = 4,   /* output shapes are known only by running: the kernel calls
                               nori__call_alloc or nori__call_set for every output */
    NORI__OP_RANDOM = 8,    /* never folded or merged */
    NORI__OP_CONTROL = 16,  /* runs subgraphs; outputs as with DYNAMIC */
    NORI__OP_OBJECTS = 32,  /* sequences, optionals, maps go in or out; outputs as DYNAMIC */
    NORI__OP_SHAPE = 64,    /* reads only the shape of input 0, not its bytes (Shape, Size) */
    NORI__OP_REWRITTEN = 128, /* never runs: upgrading makes other nodes of it */
    NORI__OP_LATE_ALLOC = 256, /* the kernel makes the outputs whose shapes cannot be inferred */
    NORI__OP_LOOSE = 512       /* the reference kernel takes a loose tensor as input 0 (tensor.h) */
};
#define NORI__OP_SELF_ALLOC (NORI__OP_DYNAMIC | NORI__OP_CONTROL | NORI__OP_OBJECTS)

/* ---- shape inference ---- */

/* Type, shape and, where known, content of one input or output while inferring. The same
 * functions serve the graph (dims may be unknown or named) and the planner (all known). */
typedef struct nori__shape {
    uint8_t kind, elem;
    int8_t rank; /* -1: not known */
    nori__dim dims[NORI_MAX_RANK];
    const nori__type *of;
    const nori_tensor *tensor; /* whole content, or NULL */
    int32_t data_count;        /* content known in part (1-D or scalar integers): entries, or -1 */
    nori__dim data[NORI_MAX_RANK];
} nori__shape;

typedef struct nori__infer {
    const nori__node *node;
    const nori__shape *in; /* node->input_count; kind UNKNOWN where absent or nothing known */
    nori__shape *out;      /* node->output_count; starts as kind UNKNOWN, rank -1 */
    nori__arena *arena;    /* for nested types and made-up names; may be NULL at run time */
    nori_error *err;
} nori__infer;

/* Sets out[] from in[] and attributes. What cannot be told stays unknown; what is certainly
 * wrong (rank, sizes, axis out of range, type) is NORI_ERROR_MODEL with a message that names
 * input, expected and found (the caller adds the node's path). Never fails for what is unknown. */
typedef nori_status (*nori__infer_fn)(nori__infer *c);

/* Helpers, ops/infer.c. */
bool nori__has_in(const nori__infer *c, uint32_t i); /* input is wired (known or not) */
nori_type nori__in_elem(const nori__infer *c, uint32_t i);
int nori__in_rank(const nori__infer *c, uint32_t i); /* -1: not known or absent */
/* Integers of input i's content (tensor or data) as dims; count -1 when nothing is known. */
int nori__in_data(const nori__infer *c, uint32_t i, nori__dim *out, int max);
void nori__out_set(nori__infer *c, uint32_t i, nori_type elem, int rank, const nori__dim *dims);
void nori__out_like(nori__infer *c, uint32_t i, uint32_t in); /* type and shape of an input */
void nori__out_elem(nori__infer *c, uint32_t i, nori_type elem); /* kind TENSOR, rank unknown */
/* Multidirectional broadcasting of two shapes into out (may alias a). */
nori_status nori__broadcast(nori__infer *c, const nori__shape *a, const nori__shape *b,
                            nori__shape *out);
/* axis in [-rank, rank) made non-negative; error MODEL otherwise. */
nori_status nori__fix_axis(nori_error *err, int64_t axis, int rank, int *out);
nori_status nori__infer_same(nori__infer *c);      /* every output like input 0 */
nori_status nori__infer_broadcast(nori__infer *c); /* output 0: inputs broadcast, elem of 0 */
nori_status nori__infer_compare(nori__infer *c);   /* the same, elem BOOL */
nori_status nori__infer_none(nori__infer *c);      /* nothing is known */

/* ---- kernels ---- */

/* How a running kernel reaches the executor. */
typedef struct nori__exec {
    /* New tensor as output i of a SELF_ALLOC operator. */
    nori_status (*alloc)(nori_call *call, uint32_t i, nori_type type, int rank,
                         const int64_t *dims, nori_tensor **tensor);
    /* Gives tensor (a reference is taken) as output i: groups, or a tensor passed through. */
    nori_status (*set)(nori_call *call, uint32_t i, nori_tensor *tensor);
    /* Runs a subgraph attribute: in[] are its inputs, out[] receive references the caller frees
     * and that stay valid whatever runs later. */
    nori_status (*subgraph)(nori_call *call, const nori__graph *graph,
                            const nori_tensor *const *in, uint32_t n_in, nori_tensor **out,
                            uint32_t n_out);
} nori__exec;

/* One run of one node. */
struct nori_call {
    const nori__node *node;
    uint32_t n_in, n_out;
    const nori_tensor *const *in; /* NULL: absent */
    nori_tensor *const *out;      /* NULL: not wanted. Type, shape, memory set before run (not
                                     zeroed), but for SELF_ALLOC operators, where all are NULL */
    const nori__exec *exec;
    const nori_allocator *allocator;
    nori__pool *pool;
    int threads;    /* budget for nori__parallel_for */
    void *work;     /* scratch, 64-byte aligned, of the size workspace() asked for */
    size_t work_size;
    nori_error *err;
    void *run;      /* the executor's own */
};

/* What runs a node: see nori/provider.h. */
typedef nori_kernel nori__kernel;

/* A reference kernel: attributes are read on each run. */
typedef nori_status (*nori__run_fn)(nori_call *call);

/* ---- the list ---- */

typedef enum nori__domain {
    NORI__ONNX,
    NORI__ML,
    NORI__TRAINING,
    NORI__PREVIEW,
    NORI__MS,
    NORI__DOMAINS
} nori__domain;
const char *nori__domain_name(nori__domain domain); /* "", "ai.onnx.ml", ..., "com.microsoft" */

typedef enum nori__op_id {
#define NORI__OP(domain, name, family, flags, infer, reference) NORI__OP_##domain##_##name,
#include "ops/op_list.h"
#undef NORI__OP
    NORI__OP_COUNT,
    NORI__OP_CUSTOM = 1 << 20 /* registered at run time: ops/custom.h */
} nori__op_id;

typedef struct nori__op {
    nori__op_id id;
    nori__domain domain;
    const char *name;
    const char *family;
    uint32_t flags;
    nori__infer_fn infer;
    nori__run_fn reference; /* NULL: the operator is known but has no kernel yet */
} nori__op;

/* NULL: not in the list. "ai.onnx" and "" are the same domain. */
const nori__op *nori__op_find(const char *domain, const char *name);
const nori__op *nori__op_at(size_t index); /* NULL past the last */
/* Whether every build runs it. */
static inline bool nori__op_runs(const nori__op *op)
{
    return op && (op->reference || (op->flags & NORI__OP_REWRITTEN));
}
static inline bool nori__node_is(const nori__node *n, nori__op_id id)
{
    return n->op && n->op->id == id;
}

#endif

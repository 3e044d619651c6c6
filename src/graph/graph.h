/* graph.h: the graph in memory: values, nodes, attributes, subgraphs.
 *
 * Built from onnx/ messages (build.c), at the file's own opset; checked, edited and ordered here;
 * everything to the right works on it. All of a graph, its subgraphs included, lives in one arena
 * owned by its nori__ir. Text is NUL-terminated here. Not thread-safe while being edited. */
#ifndef NORI_GRAPH_GRAPH_H
#define NORI_GRAPH_GRAPH_H

#include "graph/tensor.h"
#include "nori/provider.h"

/* Public views are the same structs, see nori/provider.h. */
typedef nori_graph nori__graph;
typedef nori_node nori__node;
typedef nori_value nori__value;
typedef struct nori__ir nori__ir;
struct nori__op; /* ops/op.h */

/* ---- types ---- */

typedef struct nori__dim {
    int64_t value;    /* at least 0 when known, else -1 */
    const char *name; /* symbol when not known, or NULL; compare with nori__dim_same */
} nori__dim;
#define NORI__DIM_ANY ((nori__dim){-1, NULL})
static inline nori__dim nori__dim_of(int64_t value)
{
    return (nori__dim){value, NULL};
}
/* Certain to be equal: both known and equal, or the same symbol. */
static inline bool nori__dim_same(nori__dim a, nori__dim b)
{
    if (a.value >= 0 || b.value >= 0) {
        return a.value == b.value;
    }
    return a.name && b.name && nori__same(a.name, b.name);
}

typedef struct nori__type {
    uint8_t kind;      /* nori_kind; UNKNOWN when nothing is known */
    uint8_t elem;      /* nori_type of elements (map: of keys); UNDEFINED when not known */
    int8_t rank;       /* -1 when not known */
    nori__dim *dims;   /* rank entries, in the arena */
    const struct nori__type *of; /* sequence, optional: element; map: value. May be NULL */
} nori__type;

/* ---- values ---- */

enum {
    NORI__VALUE_INPUT = 1,
    NORI__VALUE_OUTPUT = 2,
    NORI__VALUE_INITIALIZER = 4,
    NORI__VALUE_WARNED = 8, /* its declaration was found wrong, and that was said */
    NORI__VALUE_HINTED = 16 /* its shape rests on a declaration: good for planning ahead, not for
                               dropping or folding a node */
};

/* Passes go over all nodes and values of a graph, some thirty times, and a large graph does not fit
 * the caches: what most of them look at is one line of 64 bytes, in both structs. */
struct nori__value {
    nori__node *producer;  /* NULL: input, initializer */
    nori_tensor *constant; /* initializer or folded content; NULL: not constant. Owned (retained)
                              by the ir. An INPUT with a constant has it as default only: use
                              nori__value_const(). */
    uint32_t flags;
    uint32_t uses;         /* node inputs (subgraphs included) and graph outputs that name it */
    uint32_t id;           /* dense in the ir: index for side tables of ir->value_count */
    int32_t data_count;    /* entries of data; rank 0 has 1 */
    nori__type type;       /* declared, later inferred */
    nori__graph *graph;    /* where it is defined */
    /* ---- */
    const nori__dim *data; /* small integer content known in part (shape arithmetic), or NULL */
    nori__type declared;   /* as the file says: a hint for inference, but for graph inputs */
    const char *name;      /* never empty; unique within its graph */
    nori__value *next;     /* in graph->values */
    const nori__pb_value *pb; /* declaration in the file, or NULL */
};

/* Optional inputs. From IR 4 on an initializer that is also a graph input is a default the caller
 * may override: INPUT and INITIALIZER are both set. Before IR 4 every initializer had to be listed
 * as an input, so being listed says nothing: INPUT is cleared, the value is a plain constant (old
 * exporters list all weights, and folding and packing need constants). */


/* The content, when it cannot change from run to run; else NULL. As the file has it: for those who
 * look at type and shape, or take the bytes by nori__tensor_at. */
static inline const nori_tensor *nori__value_as_is(const nori__value *v)
{
    return v && !(v->flags & NORI__VALUE_INPUT) ? v->constant : NULL;
}
/* The same with data to be read; also NULL when there is no memory for them (loose.c). */
const nori_tensor *nori__value_const(const nori__value *v);

/* ---- attributes ---- */

typedef struct nori__attr {
    const char *name;
    const char *ref; /* in functions: the function attribute it stands for, or NULL */
    nori__pb_attr_kind kind;
    size_t count; /* of a list; bytes of s */
    union {
        float f;
        int64_t i;
        const char *s; /* terminated; count bytes */
        const float *floats;
        const int64_t *ints;
        const nori__str *strings;
        nori_tensor *tensor; /* owned by the ir; sparse ones are made dense */
        nori_tensor **tensors;
        nori__graph *graph;
        nori__graph **graphs;
        const nori__type *type;
    } v;
    const nori__pb_attr *pb;
} nori__attr;

/* ---- nodes ---- */

struct nori__node {
    const struct nori__op *op; /* set by ops/resolve.c; NULL: unknown operator */
    nori__node *next;
    nori__value **inputs;  /* NULL entries: absent optional */
    nori__value **outputs; /* NULL entries: not wanted */
    uint32_t input_count, output_count;
    nori__attr *attrs;
    nori__graph *graph;
    uint32_t attr_count;
    uint32_t id;           /* dense in the ir */
    /* ---- */
    const struct nori__schema *schema; /* what was found for it then; NULL: unknown */
    int version;           /* since_version in force under the opset; 0: unknown. Also resolve.c */
    bool settled;          /* its form is the one wanted: upgrade.c leaves it alone */
    bool even;             /* a Split written before opset 18, rewritten: its parts are of one size */
    const char *op_type;
    const char *domain;    /* "" for ai.onnx */
    const char *name;      /* as in the file, may be "" */
    const char *overload;
    nori__node *prev;
    const nori__pb_node *pb;
    nori_part *part;       /* compiled copies: the nodes this one stands for (plan/part.h) */
};

/* ---- graphs ---- */

struct nori__graph {
    const char *name;
    nori__ir *ir;
    nori__graph *parent;      /* enclosing graph, NULL for the main one */
    nori__node *parent_node;
    nori__node *first, *last; /* topological order */
    uint32_t node_count;
    nori__value *values;      /* all defined here, newest first */
    uint32_t value_count;
    nori__value **inputs, **outputs; /* outputs may name values of an enclosing graph */
    uint32_t input_count, output_count;
    nori__map names;          /* name -> value; read it by nori__graph_names */
    bool names_wait;          /* copied, and not yet entered: there is room for them */
    nori__graph *next_graph;  /* all graphs of the ir, in ir->graphs order */
    nori__graph *tail;        /* of the list that begins here: in the outermost graph only */
    uint32_t depth;           /* 0 for the main one */
    bool dead;                /* its node was removed: no longer in ir->graphs */
    const nori__pb_graph *pb;
};

typedef struct nori__opset {
    const char *domain;
    int64_t version;
} nori__opset;

/* Names and other text, and tensors: made once, never changed, so that a graph's copies share them. */
typedef struct nori__shared nori__shared;

#define NORI__IR_OPS 512 /* at least as many as THE list has */

struct nori__ir {
    nori__arena arena;
    nori__shared *shared;
    const nori_allocator *allocator;
    nori__graph *main;
    nori__graph *graphs; /* linked by next_graph, main first, outer before inner */
    nori__opset *opsets;
    size_t opset_count;
    int64_t ir_version;
    uint32_t value_count, node_count; /* ids handed out so far */
    uint32_t fresh;                   /* for made-up names */
    bool loose;                       /* some constant may be a loose tensor (tensor.h) */
    uint64_t edits;                   /* changes of nodes and wiring so far (edit.c, attr.c) */
    uint64_t inferred;                /* edits + 1 when types were last inferred; 0: never */
    uint64_t folded;                  /* edits + 1 when nothing was left to fold; 0: never */
    uint64_t fold_bytes;              /* that folding has made so far */
    uint64_t fold_most;               /* that it may make; 0: not yet known (passes/fold.c) */
    uint64_t met[NORI__IR_OPS / 64];  /* operators that some node was found to be (ops/resolve.h) */
    const void *custom;               /* registry of the environment (ops/custom.h), or NULL */
    const nori__pb_model *pb;         /* NULL for copies without a file */
    nori__external *external;         /* as given to build; only used while compiling */
    nori__vec warnings;               /* char * in the arena */
};

/* build.c: messages to graph. Resolves names through enclosing graphs (an inner definition hides
 * an outer one of the same name, with a warning), orders nodes topologically where the file does
 * not (order.c; a cycle is an error that names its nodes), loads initializers and tensor
 * attributes by nori__tensor_from_pb. Declared types become value types. Operators are not looked
 * up here: node->op and version stay NULL and 0 until nori__resolve() (ops/resolve.h). Linear in
 * the size of the graph. pb and external must outlive the ir. */
nori_status nori__ir_build(const nori_allocator *a, const nori__pb_model *pb,
                           nori__external *external, nori__ir **ir, nori_error *err);
/* to_pb.c: the graph as messages again, for writing what was edited. Initializers nobody uses are
 * left out. Memory from arena; text and weights are pointed at, so the ir must outlive it. A tool
 * that changes an initializer's content makes a new value (nori__const_new): under its old name
 * the file's own bytes are written. */
nori_status nori__ir_to_pb(const nori__ir *ir, nori__arena *arena, nori__pb_model **model,
                           nori_error *err);
/* The same, with tensors whose data the file has elsewhere still saying so. */
nori_status nori__ir_to_pb_outside(const nori__ir *ir, nori__arena *arena, nori__pb_model **model,
                                   nori_error *err);
/* Some nodes of one graph as a model of their own: in and out are its inputs and outputs, with the
 * types now known; constants the nodes read become its initializers. */
typedef struct nori__subset {
    nori__node *const *nodes; /* in order */
    nori__value *const *in, *const *out;
    size_t n_nodes, n_in, n_out;
    const nori__opset *opsets; /* under which the nodes mean what they mean */
    size_t n_opsets;
} nori__subset;
nori_status nori__subset_to_pb(const nori__ir *ir, const nori__subset *subset, nori__arena *arena,
                               nori__pb_model **model, nori_error *err);
/* to_pb_item.c: a declaration of its own. Memory from arena; false: out of memory. */
bool nori__declare(nori__arena *arena, const char *name, const nori__type *type,
                   nori__pb_value *pb);
/* copy.c: deep copy of the structure; tensors and text are shared. pb pointers are kept. */
nori_status nori__ir_copy(const nori__ir *from, nori__ir **ir, nori_error *err);
void nori__ir_free(nori__ir *ir); /* NULL is fine */
/* All constants have data from now on: for tools that read and change them. */
nori_status nori__ir_settle(const nori__ir *ir, nori_error *err);
bool nori__ir_keep(nori__ir *ir, nori_tensor *t); /* takes the reference, also on failure */
/* Of the data of all tensors the ir and those it was copied from keep. */
uint64_t nori__ir_tensor_bytes(const nori__ir *ir);
/* A function's body as a graph of its own, outside ir->graphs (its subgraphs follow it by
 * next_graph): inputs and outputs are the function's, attributes may have ref set. */
nori_status nori__function_build(nori__ir *ir, const nori__pb_function *pb, nori__graph **body,
                                 nori_error *err);
void nori__function_free(nori__graph *body); /* the name tables; the rest is the arena's */
/* One attribute outside any node, as defaults of functions are (no graphs). */
nori_status nori__attr_build(nori__ir *ir, const nori__pb_attr *pb, nori__attr *attr,
                             nori_error *err);

/* copy.c: inlining. Table of where values went; kept between calls so that many are cheap. */
typedef struct nori__cloner {
    const nori_allocator *allocator;
    nori__value **values; /* by id of the value cloned */
    size_t capacity;
} nori__cloner;
void nori__cloner_init(nori__cloner *cloner, const nori_allocator *a);
void nori__cloner_free(nori__cloner *cloner);
typedef struct nori__inlining {
    const nori__graph *body;
    const char *prefix;          /* copies are named prefix/name */
    nori__value *const *in;      /* what body's inputs become; NULL: absent */
    nori__value *const *out;     /* what body's outputs become, NULL: not wanted */
    size_t n_in, n_out;
    const nori__node *call;      /* attributes with ref become those of call, or NULL */
    const nori__attr *defaults;  /* else one of these, else they are dropped */
    size_t n_defaults;
    nori__graph *call_graph;     /* set by nori__graph_inline */
} nori__inlining;
/* Copies the nodes of body (subgraphs included) in front of at, into at's graph. The values out[]
 * get a producer there; they must not have one but at. Values of graphs around body stay what
 * they are; constants are shared. */
nori_status nori__graph_inline(nori__cloner *cloner, nori__node *at, const nori__inlining *what,
                               nori_error *err);
nori_status nori__ir_warn(nori__ir *ir, const char *fmt, ...) NORI__PRINTF(2, 3);
int64_t nori__ir_opset(const nori__ir *ir, const char *domain); /* 0: not imported */

/* reads.c: calls fn for every value of the node's own graph that it reads, those its subgraphs
 * read included; a value may come more than once. Stops and gives false when fn does. */
typedef bool (*nori__read_fn)(void *user, nori__value *v);
bool nori__node_reads(nori__node *node, nori__read_fn fn, void *user);
/* order.c: brings every graph of the ir into topological order, after nodes were moved. */
nori_status nori__ir_order(nori__ir *ir, nori_error *err);
/* Moves a node without subgraphs to right behind the last one that makes what it reads. */
void nori__node_advance(nori__node *node);

/* verify.c: whether uses, producers, links, scopes and order are as they must be. INTERNAL with
 * what is wrong: for tests and debug builds, after an edit. */
nori_status nori__ir_verify(const nori__ir *ir, nori_error *err);

/* "If_3 > Conv_0 (Conv)": nodes from outer to inner (name, or first output), operator. */
void nori__node_path(const nori__node *node, char *out, size_t size);

/* edit.c. All return NULL or MEMORY errors on allocation failure only. */
/* Text that lives as long as the ir or a copy of it; NULL: out of memory. */
const char *nori__ir_text(nori__ir *ir, const char *bytes, size_t size);
/* The table of names of one graph; a copied one is filled at the first call. */
const nori__map *nori__graph_names(const nori__graph *g);
/* A name that is taken gets a number behind it; NULL: made up. */
nori__value *nori__value_new(nori__graph *g, const char *name);
nori__value *nori__value_find(const nori__graph *g, const char *name); /* enclosing graphs too */
nori__value *nori__const_new(nori__graph *g, const char *name, nori_tensor *t); /* takes t's ref */
/* New node before `before` (NULL: at the end); in/out arrays are copied, out[] get it as producer.
 * op and version are left NULL and 0: callers in ops/ and passes/ call nori__node_resolve(). */
nori__node *nori__node_new(nori__graph *g, nori__node *before, const char *domain,
                           const char *op_type, nori__value *const *in, size_t n_in,
                           nori__value *const *out, size_t n_out);
/* Unlinks; outputs lose their producer; subgraphs leave the ir. The memory stays readable. */
void nori__node_remove(nori__node *node);
bool nori__node_set_input(nori__node *node, uint32_t index, nori__value *v); /* grows */
/* Every use of from (in all graphs that see it, graph outputs included) becomes to. */
void nori__value_replace(nori__value *from, nori__value *to);
/* Next of the graphs in node's attributes; start with *state = 0; NULL ends. */
nori__graph *nori__node_subgraph(const nori__node *node, uint32_t *state);
bool nori__node_set_int(nori__node *node, const char *name, int64_t value);
bool nori__node_set_ints(nori__node *node, const char *name, const int64_t *v, size_t n);
bool nori__node_set_float(nori__node *node, const char *name, float value);
bool nori__node_set_floats(nori__node *node, const char *name, const float *v, size_t n);
bool nori__node_set_text(nori__node *node, const char *name, const char *value);
void nori__node_drop_attr(nori__node *node, const char *name);
bool nori__type_set(nori__arena *arena, nori__type *type, nori_type elem, int rank,
                    const nori__dim *dims);

/* attr.c: reading attributes; absent or wrongly typed gives the default. */
const nori__attr *nori__attr_find(const nori__node *node, const char *name);
int64_t nori__attr_i(const nori__node *node, const char *name, int64_t otherwise);
float nori__attr_f(const nori__node *node, const char *name, float otherwise);
const char *nori__attr_s(const nori__node *node, const char *name, const char *otherwise);
const int64_t *nori__attr_ints(const nori__node *node, const char *name, size_t *count);
const float *nori__attr_floats(const nori__node *node, const char *name, size_t *count);
const nori_tensor *nori__attr_tensor(const nori__node *node, const char *name);
nori__graph *nori__attr_graph(const nori__node *node, const char *name);

#endif

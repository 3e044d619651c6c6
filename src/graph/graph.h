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

enum { NORI__VALUE_INPUT = 1, NORI__VALUE_OUTPUT = 2, NORI__VALUE_INITIALIZER = 4 };

struct nori__value {
    const char *name;      /* never empty; unique within its graph */
    nori__type type;       /* declared, later inferred */
    nori_tensor *constant; /* initializer or folded content; NULL: not constant. Owned (retained)
                              by the ir. An INPUT with a constant has it as default only: use
                              nori__value_const(). */
    const nori__dim *data; /* small integer content known in part (shape arithmetic), or NULL */
    int32_t data_count;    /* entries of data; rank 0 has 1 */
    uint32_t flags;
    uint32_t id;           /* dense in the ir: index for side tables of ir->value_count */
    uint32_t uses;         /* node inputs (subgraphs included) and graph outputs that name it */
    nori__node *producer;  /* NULL: input, initializer */
    nori__graph *graph;    /* where it is defined */
    nori__value *next;     /* in graph->values */
    const nori__pb_value *pb; /* declaration in the file, or NULL */
};

/* The content, when it cannot change from run to run; else NULL. */
static inline const nori_tensor *nori__value_const(const nori__value *v)
{
    return v && !(v->flags & NORI__VALUE_INPUT) ? v->constant : NULL;
}

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
        nori_tensor *tensor; /* owned by the ir; sparse: a NORI_KIND_SPARSE group */
        nori_tensor **tensors;
        nori__graph *graph;
        nori__graph **graphs;
        const nori__type *type;
    } v;
    const nori__pb_attr *pb;
} nori__attr;

/* ---- nodes ---- */

struct nori__node {
    const char *name;      /* as in the file, may be "" */
    const char *op_type;
    const char *domain;    /* "" for ai.onnx */
    const char *overload;
    const struct nori__op *op; /* NULL: unknown operator */
    int version;           /* since_version in force under the model's opset; 0: unknown */
    nori__value **inputs;  /* NULL entries: absent optional */
    nori__value **outputs; /* NULL entries: not wanted */
    uint32_t input_count, output_count;
    nori__attr *attrs;
    uint32_t attr_count;
    uint32_t id;           /* dense in the ir */
    nori__graph *graph;
    nori__node *prev, *next;
    const nori__pb_node *pb;
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
    nori__value **inputs, **outputs; /* outputs may name values of an enclosing graph */
    uint32_t input_count, output_count;
    nori__map names;          /* name -> value */
    nori__graph *next_graph;  /* all graphs of the ir, in ir->graphs order */
    const nori__pb_graph *pb;
};

typedef struct nori__opset {
    const char *domain;
    int64_t version;
} nori__opset;

struct nori__ir {
    nori__arena arena;
    const nori_allocator *allocator;
    nori__graph *main;
    nori__graph *graphs; /* linked by next_graph, main first */
    nori__opset *opsets;
    size_t opset_count;
    int64_t ir_version;
    uint32_t value_count, node_count; /* ids handed out so far */
    uint32_t fresh;                   /* for made-up names */
    nori__vec tensors;                /* every tensor the ir retains */
    const nori__pb_model *pb;         /* NULL for copies without a file */
    nori__vec warnings;               /* char * in the arena */
};

/* build.c: messages to graph. Resolves names through enclosing graphs, looks operators up,
 * orders nodes topologically (a cycle is an error that names its nodes), loads initializers and
 * tensor attributes by nori__tensor_from_pb. Declared types become value types. */
nori_status nori__ir_build(const nori_allocator *a, const nori__pb_model *pb,
                           nori__external *external, nori__ir **ir, nori_error *err);
/* copy.c: deep copy of the structure; tensors are shared (retained). pb pointers are kept. */
nori_status nori__ir_copy(const nori__ir *from, nori__ir **ir, nori_error *err);
void nori__ir_free(nori__ir *ir);
nori_status nori__ir_warn(nori__ir *ir, const char *fmt, ...) NORI__PRINTF(2, 3);
int64_t nori__ir_opset(const nori__ir *ir, const char *domain); /* 0: not imported */

/* "If_3/then_branch/Conv_0 (Conv)": graph path, node name (or #index), operator. */
void nori__node_path(const nori__node *node, char *out, size_t size);

/* edit.c. All return NULL or MEMORY errors on allocation failure only. */
nori__value *nori__value_new(nori__graph *g, const char *name); /* NULL name: made up, unique */
nori__value *nori__value_find(const nori__graph *g, const char *name); /* enclosing graphs too */
nori__value *nori__const_new(nori__graph *g, const char *name, nori_tensor *t); /* takes t's ref */
/* New node before `before` (NULL: at the end); in/out arrays are copied. Sets op and version. */
nori__node *nori__node_new(nori__graph *g, nori__node *before, const char *domain,
                           const char *op_type, nori__value *const *in, size_t n_in,
                           nori__value *const *out, size_t n_out);
void nori__node_remove(nori__node *node); /* unlinks; outputs lose their producer */
bool nori__node_set_input(nori__node *node, uint32_t index, nori__value *v); /* grows */
/* Every use of from (in all graphs that see it, graph outputs included) becomes to. */
void nori__value_replace(nori__value *from, nori__value *to);
bool nori__node_set_int(nori__node *node, const char *name, int64_t value);
bool nori__node_set_ints(nori__node *node, const char *name, const int64_t *v, size_t n);
bool nori__node_set_float(nori__node *node, const char *name, float value);
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

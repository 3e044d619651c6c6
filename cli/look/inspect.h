/* inspect.h: what the files of `nori inspect` share. */
#ifndef NORI_CLI_INSPECT_H
#define NORI_CLI_INSPECT_H

#include "cli.h"

/* One operator of the model. */
typedef struct inspect_op {
    const char *domain, *op;
    size_t count;
    uint64_t macs; /* 0: none, or not known */
} inspect_op;

/* How pictures are resized: one row for all nodes that do it alike. */
typedef struct inspect_resize {
    char text[240];
    size_t count;
} inspect_resize;

typedef struct inspect {
    cli_args *args;
    nori_model *model;
    inspect_op *ops;
    size_t n_ops;
    inspect_resize *resizes;
    size_t n_resizes;
    size_t nodes, subgraphs, initializers;
    uint64_t weight_bytes, weight_elements;
    uint64_t elements_of[NORI_TYPE_COUNT]; /* weights by type */
    bool no_memory;
    /* The model as it stands, laid out for the dimensions asked for; NULL: why says why not. */
    nori_session *session;
    nori_costs *costs;
    nori_cost *rows; /* by name of output */
    size_t n_rows;
    nori_cost_total total;
    /* The same, compiled as it would run. */
    bool planned;
    uint64_t activation_bytes, packed_bytes;
    size_t late;
    nori_error why;
} inspect;

void inspect_text(const inspect *in);
void inspect_json(const inspect *in);
/* What is remarkable about the model's own words: outputs whose declared size is free while the
 * model computes one size; trees that know nothing of missing values. */
void inspect_warnings(const inspect *in, void (*say)(void *user, const char *text), void *user);

/* inspect_node.c */
/* Nodes of that name, output or path; the number found. */
int inspect_node(const inspect *in, const char *name);
void inspect_nodes(const inspect *in); /* a line each */
/* "float32[1,3]": as the plan has it where there is one, else as the file declares it. */
void inspect_value_shape(const inspect *in, const nori_value *v, char *out, size_t size);
/* The row of a node of the main graph or below, by its first output, or NULL. */
const nori_cost *inspect_cost(const inspect *in, const nori_node *node);

/* inspect_dot.c: the graph for Graphviz. 0 or an exit code. */
int inspect_dot(const inspect *in);

/* inspect_source.c: --text; the exit code. */
int inspect_source(const cli_args *args, const nori_model *model);

#endif

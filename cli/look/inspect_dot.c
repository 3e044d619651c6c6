/* inspect_dot.c: the graph as a drawing, in the language of Graphviz. */
#include <stdint.h>
#include <stdlib.h>

#include "inspect.h"

/* Nodes may lack a name or share one: what tells them apart is a number, in the order of the file,
 * so that a model gives the same text each time. */
typedef struct numbered {
    const nori_node *node;
    size_t number;
} numbered;

typedef struct drawing {
    const inspect *in;
    numbered *rows; /* by address */
    size_t count;
} drawing;

static int by_place(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const numbered *)a)->node, y = (uintptr_t)((const numbered *)b)->node;
    return (x > y) - (x < y);
}

/* Subgraphs nest as deep as loading allows, here and below. */
static void number_nodes(drawing *d, const nori_graph *g)
{
    for (const nori_node *n = nori_graph_first(g); n && d->count < d->in->nodes;
         n = nori_node_next(n)) {
        d->rows[d->count] = (numbered){n, d->count};
        d->count++;
        const nori_graph *sub;
        for (size_t i = 0; (sub = nori_node_subgraph(n, i)) != NULL; i++) {
            number_nodes(d, sub);
        }
    }
}

static size_t number_of(const drawing *d, const nori_node *n)
{
    const numbered key = {n, 0};
    const numbered *row = bsearch(&key, d->rows, d->count, sizeof(key), by_place);
    return row ? row->number : d->count;
}

/* A string of the dot language, where only quotes and backslashes mean something. */
static void dot_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') {
            putchar('\\');
        }
        putchar(*text == '\n' ? ' ' : *text);
    }
    putchar('"');
}

static void dot_edges(const drawing *d, const nori_node *n)
{
    char shape[256];
    for (size_t i = 0; i < nori_node_input_count(n); i++) {
        const nori_value *v = nori_node_input(n, i);
        if (!v || nori_value_initializer(v)) {
            continue;
        }
        inspect_value_shape(d->in, v, shape, sizeof(shape));
        if (nori_value_producer(v)) {
            printf("  \"node %zu\"", number_of(d, nori_value_producer(v)));
        } else {
            printf("  ");
            dot_text(nori_value_name(v));
        }
        printf(" -> \"node %zu\" [label=", number_of(d, n));
        dot_text(shape);
        printf("];\n");
    }
}

static void dot_graph(const drawing *d, const nori_graph *g)
{
    for (const nori_node *n = nori_graph_first(g); n; n = nori_node_next(n)) {
        printf("  \"node %zu\" [label=", number_of(d, n));
        dot_text(nori_node_op(n));
        printf(", tooltip=");
        dot_text(nori_node_name(n));
        printf("];\n");
        dot_edges(d, n);
        const nori_graph *sub;
        for (size_t i = 0; (sub = nori_node_subgraph(n, i)) != NULL; i++) {
            printf("  subgraph \"cluster_%zu_%zu\" {\n  label=", number_of(d, n), i);
            dot_text(nori_graph_name(sub));
            printf(";\n");
            dot_graph(d, sub);
            printf("  }\n");
        }
    }
}

int inspect_dot(const inspect *in)
{
    const nori_graph *g = nori_model_graph(in->model);
    drawing d = {.in = in, .rows = calloc(in->nodes + 1, sizeof(*d.rows))};
    if (!d.rows) {
        return cli_fail_text(in->args, NORI_ERROR_MEMORY, "out of memory");
    }
    number_nodes(&d, g);
    qsort(d.rows, d.count, sizeof(*d.rows), by_place);
    printf("digraph model {\n  node [shape=box, fontname=\"sans-serif\"];\n");
    for (size_t i = 0; i < nori_model_input_count(in->model); i++) {
        printf("  ");
        dot_text(nori_model_input(in->model, i)->name);
        printf(" [shape=ellipse];\n");
    }
    dot_graph(&d, g);
    for (size_t i = 0; nori_graph_output(g, i); i++) {
        const nori_value *v = nori_graph_output(g, i);
        if (nori_value_producer(v)) {
            printf("  \"node %zu\" -> ", number_of(&d, nori_value_producer(v)));
            dot_text(nori_value_name(v));
            printf(";\n  ");
            dot_text(nori_value_name(v));
            printf(" [shape=ellipse];\n");
        }
    }
    printf("}\n");
    free(d.rows);
    return EXIT_YES;
}

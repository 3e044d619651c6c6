/* fuzz_graph.h: graphs made by bytes, and running them. */
#ifndef NORI_FUZZ_GRAPH_H
#define NORI_FUZZ_GRAPH_H

#include <stdbool.h>

#include "base/base.h"
#include "fuzz.h"

enum { FUZZ_GRAPH_INPUTS = 4, FUZZ_GRAPH_OUTPUTS = 8 };

typedef struct fuzz_graph {
    nori__text bytes; /* of the model */
    nori_model *model;
    nori_tensor *in[FUZZ_GRAPH_INPUTS];
    size_t n_in;
    bool jumps; /* rounding may show: results on two providers are not compared by value */
} fuzz_graph;
/* False: what was made is no valid model, which is no fault. */
bool fuzz_graph_make(nori_env *env, const uint8_t *data, size_t size, int most_nodes, fuzz_graph *graph);
void fuzz_graph_free(fuzz_graph *graph);

typedef struct fuzz_way {
    const char *provider;
    int level, threads;
} fuzz_way;
/* Compiles and runs; out[] has room for FUZZ_GRAPH_OUTPUTS. False: refused, by an error that holds. */
bool fuzz_graph_run(const nori_model *model, const fuzz_way *way, const fuzz_graph *graph,
                    nori_tensor **out);

#endif

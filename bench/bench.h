/* bench.h: what the files of nori-bench-kernels share. */
#ifndef NORI_BENCH_BENCH_H
#define NORI_BENCH_BENCH_H

#include "graph/graph.h"
#include "providers/cpu/cpu.h"

/* Random content; no memory ends the program. */
nori_tensor *bench_tensor(nori_type type, int rank, const int64_t *dims);
/* Whether the command asks for what has this name. */
bool bench_wanted(const char *name, int argc, char **argv);
/* Prepares a node, runs it for a while, prints its line. */
bool bench_node(const char *name, nori__node *node, const nori_tensor *const *in, uint32_t n_in,
                nori_tensor *y, double flop);

bool bench_int8(int argc, char **argv); /* int8_layers.c */

#endif

/* bench_versus.h: `nori bench --versus`. */
#ifndef NORI_CLI_BENCH_VERSUS_H
#define NORI_CLI_BENCH_VERSUS_H

#include "inputs.h"

#define CLI_VERSUS_OPTIONS                                                                       \
    {"--versus", "PROVIDERS", "measure against these, side by side: ort:cpu, reference ..."},    \
    {"--rounds", "N", "with --versus: rounds in turns, 7 or more (default 9)"},                  \
    {"--atol", "X", "with --versus: outputs agree within X times their size (default 1e-3) ..."}, \
    {"--rtol", "X", "... plus X of the other side's value (default 1e-3)"}

int cli_bench_versus(cli_args *args);

#endif

/* ranks.h: several processes that share one task, as mpirun starts them. Alone, a process is rank 0
 * of 1. */
#ifndef NORI_CLI_RANKS_H
#define NORI_CLI_RANKS_H

#include "cli.h"

struct nori__ranks_module;
typedef struct cli_ranks {
    int rank, size;
    const struct nori__ranks_module *module; /* NULL: alone */
} cli_ranks;

/* 0 or an exit code (a message was given): mpirun started this, but there is nothing to talk by. */
int cli_ranks_begin(const cli_args *args, cli_ranks *ranks);
/* Rank 0's calibration becomes what all have seen. code: how this rank has fared; the worst of all
 * comes back, on every rank. */
int cli_ranks_gather(const cli_args *args, const cli_ranks *ranks, int code,
                     nori_calibration *calibration);
/* Leaves the group; every rank gives back rank 0's code. */
int cli_ranks_end(cli_ranks *ranks, int code);

#endif

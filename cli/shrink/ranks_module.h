/* ranks_module.h: what the command and its module for MPI say to each other. The module is a shared
 * object, loaded where mpirun started the command, so that nothing else needs an MPI library. */
#ifndef NORI_CLI_RANKS_MODULE_H
#define NORI_CLI_RANKS_MODULE_H

#include <stddef.h>

#define NORI__RANKS_VERSION 1

typedef struct nori__ranks_module {
    int version; /* NORI__RANKS_VERSION */
    /* All return 0, or an error of the library's own. */
    int (*begin)(int *rank, int *size);
    int (*worst)(int mine, int *all);    /* the greatest of all ranks, on all */
    int (*first)(int mine, int *all);    /* rank 0's, on all */
    int (*send)(const void *data, size_t size);               /* to rank 0 */
    int (*receive_size)(int rank, size_t *size);              /* on rank 0 */
    int (*receive)(int rank, void *data, size_t size);        /* then this */
    int (*end)(void);
} nori__ranks_module;

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const nori__ranks_module *nori_ranks_module(void);

#endif

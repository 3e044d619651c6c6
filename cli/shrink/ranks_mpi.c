/* ranks_mpi.c: the module nori-mpi.so: ranks_module.h by way of MPI. */
#include <mpi.h>
#include <stdint.h>

#include "ranks_module.h"

#define MOST (1 << 30) /* bytes of a message; MPI counts in int */
#define TAG_SIZE 1
#define TAG_DATA 2

static int begin(int *rank, int *size)
{
    int code = MPI_Init(NULL, NULL);
    code = code ? code : MPI_Comm_rank(MPI_COMM_WORLD, rank);
    return code ? code : MPI_Comm_size(MPI_COMM_WORLD, size);
}

static int worst(int mine, int *all)
{
    return MPI_Allreduce(&mine, all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
}

static int first(int mine, int *all)
{
    *all = mine;
    return MPI_Bcast(all, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

static int send(const void *data, size_t size)
{
    uint64_t total = size;
    const char *p = data;
    int code = MPI_Send(&total, 1, MPI_UINT64_T, 0, TAG_SIZE, MPI_COMM_WORLD);
    while (code == 0 && size > 0) {
        int n = size < MOST ? (int)size : MOST;
        code = MPI_Send(p, n, MPI_BYTE, 0, TAG_DATA, MPI_COMM_WORLD);
        p += n;
        size -= (size_t)n;
    }
    return code;
}

static int receive_size(int rank, size_t *size)
{
    uint64_t total = 0;
    int code = MPI_Recv(&total, 1, MPI_UINT64_T, rank, TAG_SIZE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    *size = (size_t)total;
    return code;
}

static int receive(int rank, void *data, size_t size)
{
    char *p = data;
    int code = 0;
    while (code == 0 && size > 0) {
        int n = size < MOST ? (int)size : MOST;
        code = MPI_Recv(p, n, MPI_BYTE, rank, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        p += n;
        size -= (size_t)n;
    }
    return code;
}

static int end(void)
{
    return MPI_Finalize();
}

const nori__ranks_module *nori_ranks_module(void)
{
    static const nori__ranks_module module = {NORI__RANKS_VERSION, begin, worst,   first, send,
                                              receive_size,        receive, end};
    return &module;
}

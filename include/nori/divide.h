/* divide.h: where a model may be cut in two, the first part run on a device and the rest on a server, and
 * which cut is best.
 *
 * A cut sends the values that the first part makes and the second reads. Nodes are never cut: what lies
 * in an If, Loop or Scan goes where its node goes. Nothing comes back but outputs of the model, so what
 * reads a value made on the server is on the server. What depends on constants alone (inputs with a
 * default are such) is free: either side computes it when it prepares. Seconds, bytes, bytes a second. */
#ifndef NORI_DIVIDE_H
#define NORI_DIVIDE_H

#include "nori/nori.h"
#include "nori/tools.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the problem alone -------------------------------------------------------------------- */

#define NORI_DIVIDE_INPUT SIZE_MAX /* producer of what comes from outside: it is on the device */

typedef struct nori_divide_value {
    size_t producer;       /* index of a node, or NORI_DIVIDE_INPUT */
    const size_t *readers; /* indices of nodes */
    size_t reader_count;
    double up_s;           /* sending it to the server, once; below 0: it may not leave the device */
    double down_s;         /* bringing it back when it is made on the server: 0 unless it is an output */
} nori_divide_value;

typedef struct nori_divide_problem {
    size_t size;           /* sizeof, set by the caller */
    size_t node_count;
    const double *edge_s, *cloud_s; /* of each node on either side */
    const nori_divide_value *values;
    size_t value_count;
    double far_s;          /* once, as soon as anything runs on the server: round trip, queue */
} nori_divide_problem;
/* The exact best: cloud[i] becomes 1 where node i runs on the server; *seconds is the sum of all nodes'
 * times and of what is sent. A minimum cut of a network with a node for each node and each value, found
 * by Dinic's algorithm; of several best ones the one with most on the device. Errors: ARGUMENT (indices,
 * numbers that are negative or not finite, values read before they are made), MEMORY. Any thread. */
NORI_API nori_status nori_divide_solve(const nori_divide_problem *problem, unsigned char *cloud,
                                   double *seconds, nori_error *error);

/* ---- the cuts of a model ------------------------------------------------------------------ */

/* A model's nodes in their order, with the bytes each value really has. One thread at a time. */
typedef struct nori_divide nori_divide;
/* Runs the model once, as its file says it, on these inputs (as nori_session_run takes them). options:
 * its dims and threads are looked at; may be NULL. The model must outlive the cuts. */
NORI_API nori_status nori_divide_create(const nori_model *model, const nori_session_options *options,
                                      const nori_tensor *const *inputs, size_t input_count,
                                      nori_divide **cuts, nori_error *error);
NORI_API void nori_divide_free(nori_divide *cuts);
/* Nodes that are placed: those that depend on inputs. */
NORI_API size_t nori_divide_node_count(const nori_divide *cuts);
/* Times of a side (0: the device, 1: the server) as a profile has them: what made values[i] took
 * seconds[i]. A node that was joined with a later one counts there. All are scaled to add up to
 * total_s. None given (count 0): total_s shared out as the device's are, or evenly. */
NORI_API nori_status nori_divide_times(nori_divide *cuts, int side, const char *const *values,
                                     const double *seconds, size_t count, double total_s,
                                     nori_error *error);

typedef struct nori_divide_link {
    size_t size;                 /* sizeof, set by the caller */
    double up_speed, down_speed; /* 0: bytes cost nothing */
    double far_s;                /* once: round trip, queue, what a message costs whatever its size */
    int inputs_stay;             /* 1: inputs of the model may not leave the device, features may */
    int int8;                    /* 1: float values are sent in 8 bits */
} nori_divide_link;

typedef struct nori_division {
    size_t size;                 /* sizeof, set by the caller */
    size_t edge_nodes, cloud_nodes;
    const char *const *values;   /* names of what is sent; until the next call with these cuts */
    size_t value_count;
    int raw;                     /* 1: inputs of the model are among them */
    uint64_t bytes, int8_bytes;  /* of them, as they are and with floats in 8 bits */
    uint64_t down_bytes;         /* of outputs that come back */
    double edge_s, cloud_s;      /* what either side computes */
    double total_s;              /* with what is sent and far_s */
} nori_division;
/* The exact best of all, both ends included (edge_nodes or cloud_nodes is 0 then). */
NORI_API nori_status nori_divide_best(nori_divide *cuts, const nori_divide_link *link, nori_division *cut,
                                    nori_error *error);
/* The cut behind the first index + 1 nodes, in the order of the file; 0 past the last. */
NORI_API int nori_divide_at(nori_divide *cuts, size_t index, const nori_divide_link *link,
                            nori_division *cut);
/* How outputs agree with the model's own when the last cut told (by best or at) sends its float values
 * as uint8, each with scale and zero point of its own range. agreement: as nori_agreement_add fills it.
 * Errors: UNSUPPORTED (an operator set below 11), and what running gives. */
NORI_API nori_status nori_divide_int8(nori_divide *cuts, nori_agreement *agreement, nori_error *error);

#ifdef __cplusplus
}
#endif
#endif

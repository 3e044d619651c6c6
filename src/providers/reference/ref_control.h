/* ref_control.h: stacking what a body gives in each iteration, for Loop and Scan. */
#ifndef NORI_PROVIDERS_REFERENCE_REF_CONTROL_H
#define NORI_PROVIDERS_REFERENCE_REF_CONTROL_H

#include "providers/reference/ref_move.h"

/* Tensors of one scan output, one an iteration; each is a reference held. */
typedef struct nori__stack {
    nori__vec items;
} nori__stack;

/* What one run of a body needs: arrays for its inputs and outputs, and the stacks. */
typedef struct nori__body_runs {
    nori_call *call;
    const nori__graph *graph;
    uint32_t n_in, n_out;
    uint32_t first_scan, n_scan; /* outputs [first_scan, first_scan + n_scan) are stacked */
    const nori_tensor **in;
    nori_tensor **out;   /* of the last run; references */
    nori_tensor **state; /* references kept between runs: n_out entries, or NULL */
    nori__stack *stacks;
    nori__arena arena;
} nori__body_runs;

nori_status nori__body_open(nori__body_runs *b, nori_call *call, const nori__graph *graph,
                            uint32_t first_scan);
void nori__body_close(nori__body_runs *b);
/* Runs the body on b->in; b->out is new. */
nori_status nori__body_run(nori__body_runs *b);
/* Moves the scan outputs of the last run to their stacks. */
nori_status nori__body_push(nori__body_runs *b);
/* Output o of the call: the items of stack k along axis, last first if backward. type says the
 * rest when there are none. */
nori_status nori__body_stack(nori__body_runs *b, uint32_t k, uint32_t o, int64_t axis,
                             bool backward);
void nori__stack_clear(nori__stack *s);

#endif

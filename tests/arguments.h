/* arguments.h: what calls with wrong arguments are made of; see make_arguments.py and test_arguments.c. */
#ifndef NORI_TESTS_ARGUMENTS_H
#define NORI_TESTS_ARGUMENTS_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "nori/nori.h"

/* Objects of each kind; those that only a callback is given stay NULL. */
typedef struct objects {
    void *env, *model, *session, *tensor, *weights, *cuts, *costs, *archive, *findings, *cancel,
        *opset_report, *graph, *node, *value, *policy, *calibration, *split_report,
        *rebatch_report, *quantize_report, *prune_report, *convert_report, *divide, *layers,
        *versus, *trace_report, *route, *tracer, *traced, *call, *infer, *part;
    nori_error err;
    void *out;           /* where a result goes */
    const char *texts[8];
    void *tensors[8];    /* the tensor, for lists of inputs */
    void *nothing[8];    /* NULL, for other lists */
    max_align_t room[256]; /* zero: an options struct of size 0, a struct to be filled, numbers */
} objects;

typedef struct wrong_call {
    const char *function, *what;
    long long (*call)(objects *given); /* the status; -1 where there is none; -2 for
                                          what an accessor found in nothing */
    int zero;                          /* every argument is */
} wrong_call;

extern const wrong_call wrong_calls[];
extern const size_t wrong_call_count;

#endif

/* rebatch.h: what the files of rebatch share: one graph at two batch sizes, and the file's own. */
#ifndef NORI_TOOLS_EDIT_REBATCH_H
#define NORI_TOOLS_EDIT_REBATCH_H

#include "tools/edit/editing.h"

typedef struct nori__rebatching {
    const nori_model *model;
    const nori_rebatch_options *options;
    nori_rebatch_report *report;
    nori__arena *arena;   /* the report's */
    nori__ir *own;        /* the file's form; gets the changes */
    nori__ir *one, *more; /* the newest form with types: at the old batch, and at a larger one, which
                             gets the changes, too */
    int64_t was, now;     /* these batches */
    int *axis;            /* by input of the main graph: its axis of the batch, -1: has none */
    nori_error *err;
} nori__rebatching;

/* The axis along which a value holds the batch: where its two sizes differ as the batches do. -1: none,
 * or not known. was: the value at the old batch, or NULL. */
int nori__batch_axis(const nori__rebatching *r, const nori__value *more, const nori__value **was);
/* Looks at one node whose inputs are known at both sizes; changes it in more and own where a size of
 * the old batch is written into it. */
nori_status nori__batch_mend(nori__rebatching *r, nori__node *n, bool *changed);
nori_status nori__batch_note(nori__rebatching *r, const nori__node *n, const char *fmt, ...)
    NORI__PRINTF(3, 4);
/* rebatch_bodies.c: the value of ir that stands where v does in its own graph, bodies included; NULL: none.
 * forget: types that were written down for the old batch. bodies: the same in messages. */
nori__value *nori__batch_value(const nori__ir *ir, const nori__value *v);
void nori__batch_forget(nori__ir *ir);
nori_status nori__batch_bodies(nori__rebatching *r, nori__pb_graph *pb, const nori__graph *more,
                               nori__arena *arena);
/* Rows of a larger batch against runs of their own. */
nori_status nori__batch_prove(nori__rebatching *r, const nori_model *made);

struct nori_rebatch_report {
    nori__arena arena;
    nori__vec rows; /* nori_rebatch_change * */
    int64_t before;
    nori_proof proof;
};

#endif

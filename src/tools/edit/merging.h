/* merging.h: what the files of merge share. */
#ifndef NORI_TOOLS_EDIT_MERGING_H
#define NORI_TOOLS_EDIT_MERGING_H

#include "tools/edit/names.h"

typedef struct nori__merging {
    const nori_model *a, *b;    /* under one operator set and IR version */
    const nori_merge_options *options;
    nori_joint *joints;
    size_t n_joints;
    const char *prefix;
    nori__arena *arena;
    nori__names names;          /* of b */
    nori__map shared;           /* inputs of b that a has, too */
    nori__name_sets in_a, in_b;
    nori_merge_report *report;
    nori_error *err;
} nori__merging;

/* Whether an input of the second model is none of the merged one's, or the first's already. */
bool nori__merge_joined_input(const nori__merging *m, nori__str name);
/* merge_join.c: lists of both in one; graph begins as a's, to as a's model. other: b's graph under its new
 * names. */
nori_status nori__merge_join(nori__merging *m, nori__pb_graph *other, nori__pb_graph *graph,
                             nori__pb_model *to);
/* merge_prove.c: the models as they were given, one after the other, against the merged one. */
nori_status nori__merge_prove(nori__merging *m, const nori_model *a, const nori_model *b,
                              const nori_model *merged);

#endif

/* place_data.h: where a model's writer puts the data of each initializer: into its message, or one after
 * the other into a place of their own (a file beside the model, a section of a plan). */
#ifndef NORI_RUN_PLACE_DATA_H
#define NORI_RUN_PLACE_DATA_H

#include "run/run.h"

/* One initializer's bytes in that place. */
typedef struct nori__placed {
    nori__str bytes;
    uint64_t offset;
    bool of_file; /* nori__map_relax_range may be used on them */
} nori__placed;

typedef struct nori__placing {
    const nori_model *model;
    const char *location; /* of the place, as messages name it; NULL: all into the messages */
    uint64_t threshold;   /* what has fewer bytes stays in its message */
    nori__arena *arena;
    nori__vec data;       /* nori__placed *, in order */
    nori__vec tensors;    /* made on the way */
    uint64_t end;         /* of the data so far */
} nori__placing;
void nori__placing_init(nori__placing *s, const nori_model *model, uint64_t threshold,
                        nori__arena *arena);
void nori__placing_free(nori__placing *s);
/* For nori__pb_each_tensor; user: the nori__placing. */
nori_status nori__place_tensor(void *user, nori__pb_tensor *t, bool initializer, nori_error *err);

#endif

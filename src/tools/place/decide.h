/* decide.h: what the files of the decision share. */
#ifndef NORI_TOOLS_PLACE_DECIDE_H
#define NORI_TOOLS_PLACE_DECIDE_H

#include "base/base.h"
#include "nori/place.h"

/* decide.c: the three options, the two sides of the inequality. */
nori_status nori__place_options(const nori_place_question *q, nori_place_answer *a);
/* flips.c: where the answer turns. */
void nori__place_flips(const nori_place_question *q, nori_place_answer *a);
/* reasons.c: the answer in a few sentences. */
void nori__place_words(const nori_place_question *q, nori_place_answer *a);

#endif

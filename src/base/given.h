/* given.h: what a caller of a public function must give. */
#ifndef NORI_BASE_GIVEN_H
#define NORI_BASE_GIVEN_H

#include "base/base.h"

/* ARGUMENT: "nori_x: what must not be NULL". */
nori_status nori__not_given(nori_error *err, const char *function, const char *what);

/* Leaves the function with that error. */
#define NORI__GIVEN(err, what)                                   \
    do {                                                         \
        if (!(what)) {                                           \
            return nori__not_given((err), __func__, #what);      \
        }                                                        \
    } while (0)

/* A list, which may be NULL where it is empty. */
#define NORI__GIVEN_LIST(err, what, count)                       \
    do {                                                         \
        if (!(what) && (count) > 0) {                            \
            return nori__not_given((err), __func__, #what);      \
        }                                                        \
    } while (0)

/* An accessor of nothing, or that is given nowhere to write to: it returns what there is of nothing. */
#define NORI__ASKED(what, otherwise)                             \
    do {                                                         \
        if (!(what)) {                                           \
            return otherwise;                                    \
        }                                                        \
    } while (0)

#endif

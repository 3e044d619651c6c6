/* ref_cast.h: the two halves of Cast: numbers (ref_cast.c) and text (ref_cast_text.c). */
#ifndef NORI_PROVIDERS_REFERENCE_REF_CAST_H
#define NORI_PROVIDERS_REFERENCE_REF_CAST_H

#include "providers/reference/ref.h"

/* Input 0 has strings, output 0 numbers or booleans, and the reverse. */
nori_status nori__ref_cast_from_text(nori_call *call);
nori_status nori__ref_cast_to_text(nori_call *call);

#endif

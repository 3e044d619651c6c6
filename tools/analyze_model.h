/* analyze_model.h: what tools/analyze.py tells analysers that see one file at a time: functions that make an
 * error return it. Without that they follow "failed, and yet NORI_OK" through every caller. */
#ifndef NORI_ANALYZE_MODEL_H
#define NORI_ANALYZE_MODEL_H

#include "base/base.h"

static inline nori_status nori__made(nori_status made, nori_status status)
{
    (void)made;
    return status;
}

#define nori__fail(err, status, ...) nori__made(nori__fail((err), (status), __VA_ARGS__), (status))
#define nori__no_memory(err) nori__made(nori__no_memory(err), NORI_ERROR_MEMORY)

#endif

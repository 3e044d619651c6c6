/* content.h: what inference and kernels of the shape and move families share: small integer
 * content (shapes, axes, pads ...), known whole, in part or not at all. */
#ifndef NORI_OPS_CONTENT_H
#define NORI_OPS_CONTENT_H

#include "ops/families.h"

/* A list of integers given by an input or, in old forms, by an attribute. */
enum { NORI__INTS_ABSENT = -2, NORI__INTS_UNKNOWN = -1 };

/* Entries of a list parameter: input `input` if the node has it, else attribute `attr` (may be
 * NULL). Returns the count, ABSENT, or UNKNOWN when the content is not known (or not all of it).
 * More than max entries, or content that is no integers, is an error: *bad is set. */
int nori__infer_ints(const nori__infer *c, uint32_t input, const char *attr, int64_t *out, int max,
                     nori_status *bad);
/* The same while running; never UNKNOWN. */
int nori__call_ints(const nori_call *call, uint32_t input, const char *attr, int64_t *out, int max,
                    nori_status *bad);

/* Integer content (int32, int64; rank 0 or 1, at most NORI_MAX_RANK entries) of input i, as far as
 * it is known: the count or -1. What is negative comes as not known. */
int nori__content(const nori__infer *c, uint32_t i, nori__dim *out);
/* Makes content known of output i, whose type and shape are set; nothing if it does not fit. */
void nori__content_set(nori__infer *c, uint32_t i, int count, const nori__dim *data);
/* The content of input `in` is also that of output 0. */
void nori__content_pass(nori__infer *c, uint32_t in);

/* Dims from the content of a shape input; open ones when only the count of entries is known (then
 * -1 in the content reads as open too). -1: not even that. */
int nori__shape_input(const nori__infer *c, uint32_t i, nori__dim *dims);
/* Error unless a shape input whose content is known is a list of integers, not too long. */
nori_status nori__shape_check(const nori__infer *c, uint32_t i);
/* The whole content of an input is known. */
bool nori__whole(const nori__infer *c, uint32_t i);

/* Axes made non-negative for rank, each once. */
nori_status nori__fix_axes(nori_error *err, int rank, int64_t *axes, int count);

/* One axis of a slice: first index and count of what start, end, step select of a dimension, as
 * numpy does: negative from the end, then clamped with the sign of the step (so that INT64_MIN and
 * INT64_MAX mean "to the end"). step is not 0. */
void nori__slice_axis(int64_t dim, int64_t start, int64_t end, int64_t step, int64_t *first,
                      int64_t *count);

/* Sizes of n parts of dim: all alike but a smaller last one. */
static inline int64_t nori__split_size(int64_t dim, int64_t parts, int64_t i)
{
    int64_t each = dim / parts + (dim % parts != 0);
    int64_t left = dim - each * i; /* each * i is at most dim + parts * each */
    return left < 0 ? 0 : left < each ? left : each;
}

#endif

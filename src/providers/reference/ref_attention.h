/* ref_attention.h: scaled dot-product attention on ready views, shared by the attention operators.
 */
#ifndef NORI_PROVIDERS_REFERENCE_REF_ATTENTION_H
#define NORI_PROVIDERS_REFERENCE_REF_ATTENTION_H

#include "providers/reference/ref_nn.h"

/* A [batch, heads, length, size] tensor over memory; size lies dense. Strides in elements. */
typedef struct nori__heads {
    double *data;
    int64_t batch, head, row;
} nori__heads;

typedef struct nori__attention {
    int64_t batch, heads, kv_heads, q_length, past, length; /* keys: past + length */
    int64_t size, v_size;
    nori__heads q, k, v, y;
    nori__heads past_k, past_v; /* used when past > 0 */
    double scale, softcap;      /* softcap 0: none */
    nori_type precision;        /* FLOAT16, BFLOAT16: softmax rounds to it; else double */
    /* Fills what is added to the scores of query i: past + length values, -infinity to forbid.
     * A query to which everything is forbidden gets zeros. NULL: nothing is added. */
    void (*bias)(const void *user, int64_t batch, int64_t head, int64_t i, double *out);
    const void *user;
    bool strict; /* a forbidden key does not count even if its score is NaN (a cache's old rows) */
    const double *sinks; /* a score for each head that takes its share and gives no value, or NULL */
    double *scores; /* [batch, heads, q_length, past + length] at the stage of mode, or NULL */
    int mode;       /* 0: scaled products, 1: after softcap, 2: with bias, 3: after softmax */
} nori__attention;

nori_status nori__attention_run(nori_call *call, const nori__attention *a);
/* View of a rank-4 tensor, or of a rank-3 one [batch, length, heads * size]. */
nori__heads nori__heads_of(const nori_tensor *t, int64_t heads);
/* past and new keys or values joined into out [batch, heads, past + length, size]. */
void nori__heads_join(const nori__heads *past, const nori__heads *now, int64_t batch,
                      int64_t heads, int64_t n_past, int64_t n_now, int64_t size, double *out);

/* ---- com.microsoft (ref_ms_mask.c) ---- */

/* What is added to the scores: a mask of one of the documented ranks, a bias, the future. Masked
 * keys get `filter` added, so that a query with every key masked still spreads over them. */
typedef struct nori__ms_mask {
    const nori__attention *a;
    const nori_tensor *mask, *added;
    double filter;
    bool causal;
} nori__ms_mask;
/* Reads the mask from input `mask` and the bias from input `added` (either may be absent), the rest
 * from attributes, and hooks them into a, whose sizes are set. */
nori_status nori__ms_mask_read(nori_call *call, uint32_t mask, uint32_t added, nori__attention *a,
                               nori__ms_mask *m);
/* Valid keys behind a cache shared with the result: the one number of input i, 0 to most. */
nori_status nori__ms_past_length(nori_call *call, uint32_t i, int64_t most, int64_t *length);

/* Turns the first `turned` values of a head (ref_rotary.c); y may be x. */
void nori__rotary_turn(int64_t turned, int64_t size, bool interleaved, const double *x,
                       const double *cosines, const double *sines, double *y);

#endif

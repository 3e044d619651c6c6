/* qconv_pack.c: constant weights of 8-bit convolutions in the forms that qconv_run.c works with. */
#include "providers/cpu/qconv.h"

/* Where the weights of a channel lie, [per_group][taps], in the order of the bytes of its terms. */
static void term_order(const nori__qconv *s, size_t last, size_t *from)
{
    size_t terms = s->rows ? s->taps / last : s->taps, inside = s->rows ? last : 1;
    for (size_t t = 0; t < terms; t++) {
        for (size_t p = 0; p < inside; p++) {
            for (size_t c = 0; c < s->per_group; c++) {
                *from++ = c * s->taps + t * inside + p;
            }
        }
    }
}

static nori_status make_blocks(nori__qconv *s, const nori_tensor *w, const nori_tensor *zero,
                               const nori_allocator *a, nori_error *err)
{
    size_t k = s->per_group * s->taps, last = (size_t)w->dims[w->rank - 1], bytes;
    size_t *from = nori__mul_size(k, sizeof(*from), &bytes) ? nori__alloc(a, bytes) : NULL;
    if (!from) {
        return nori__no_memory(err);
    }
    term_order(s, last, from);
    nori__qweights weights = {.data = w, .zero = zero, .groups = s->group,
                              .made = s->made / s->group,
                              .terms = s->rows ? s->taps / last : s->taps,
                              .bytes = s->rows ? last * s->per_group : s->per_group, .step = k,
                              .from = from};
    nori_status status = nori__qpack_make(&weights, a, &s->w, err);
    nori__release(a, from, bytes);
    s->wide = s->w.groups * s->w.wide;
    return status;
}

static nori_status make_deep(nori__qconv *s, const nori_tensor *w, const nori_tensor *zero,
                             const nori_allocator *a, nori_error *err)
{
    const nori__kernels *kern = nori__kernels_get();
    size_t deep = kern->u8_deep, pairs = (s->taps + 1) / 2, blocks = (s->made + deep - 1) / deep;
    s->wide = blocks * deep;
    s->sums_bytes = s->wide * sizeof(*s->sums);
    if (!nori__mul_size(s->wide, pairs * 2 * sizeof(*s->weights), &s->weights_bytes)) {
        return nori__no_memory(err);
    }
    s->weights = nori__alloc_zero(a, s->weights_bytes);
    s->sums = nori__alloc_zero(a, s->sums_bytes);
    if (!s->weights || !s->sums) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < s->wide; i++) {
        size_t c = i / deep * deep + kern->u8_deep_order[i % deep];
        int16_t *to = s->weights + (i / deep * pairs * deep + i % deep) * 2;
        int64_t z = zero && c < s->made
                        ? nori__tensor_get_i64(zero, zero->count == 1 ? 0 : (int64_t)c)
                        : 0;
        for (size_t t = 0; c < s->made && t < s->taps; t++) {
            int64_t v = nori__tensor_get_i64(w, (int64_t)(c * s->taps + t)) - z;
            to[t / 2 * deep * 2 + t % 2] = (int16_t)v;
            s->sums[c] += (int32_t)v;
        }
    }
    return NORI_OK;
}

nori_status nori__qconv_make(const nori_tensor *w, const nori_tensor *zero, int64_t group,
                             bool dilated, const nori_allocator *a, nori__qconv *out,
                             nori_error *err)
{
    memset(out, 0, sizeof(*out));
    out->made = (size_t)w->dims[0];
    out->per_group = (size_t)w->dims[1];
    out->group = (size_t)group;
    out->taps = (size_t)w->count / out->made / out->per_group;
    out->deep = out->per_group == 1 && out->group > 1 && out->made == out->group;
    out->rows = out->group == 1 && !dilated;
    nori_status status = out->deep ? make_deep(out, w, zero, a, err)
                                   : make_blocks(out, w, zero, a, err);
    if (status != NORI_OK) {
        nori__qconv_free(out, a);
    }
    return status;
}

void nori__qconv_free(nori__qconv *s, const nori_allocator *a)
{
    nori__qpack_free(&s->w, a);
    nori__release(a, s->weights, s->weights_bytes);
    nori__release(a, s->sums, s->sums_bytes);
    s->weights = NULL;
    s->sums = NULL;
}

size_t nori__qconv_bytes(const nori__qconv *s)
{
    return nori__qpack_bytes(&s->w) + s->weights_bytes + s->sums_bytes;
}

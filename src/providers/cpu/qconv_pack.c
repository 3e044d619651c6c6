/* qconv_pack.c: constant weights of 8-bit convolutions in the forms that qconv_run.c works with. */
#include "plan/packed.h"
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

/* Weight t of channel c of a depthwise convolution, its zero point taken off. */
static int64_t deep_weight(const nori__qconv *s, const nori_tensor *w, const nori_tensor *zero,
                           size_t c, size_t t)
{
    int64_t z = zero ? nori__tensor_get_i64(zero, zero->count == 1 ? 0 : (int64_t)c) : 0;
    return nori__tensor_get_i64(w, (int64_t)(c * s->taps + t)) - z;
}

static bool fits_8bit(const nori__qconv *s, const nori_tensor *w, const nori_tensor *zero)
{
    for (size_t i = 0; i < s->made * s->taps; i++) {
        int64_t v = deep_weight(s, w, zero, i / s->taps, i % s->taps);
        if (v < -128 || v > 127) {
            return false;
        }
    }
    return true;
}

static nori_status make_deep(nori__qconv *s, const nori_tensor *w, const nori_tensor *zero,
                             const nori_allocator *a, nori_error *err)
{
    const nori__kernels *kern = nori__kernels_get();
    s->narrow = kern->u8_depthwise4 && fits_8bit(s, w, zero);
    size_t deep = s->narrow ? kern->u8_deep4 : kern->u8_deep, few = s->narrow ? 4 : 2;
    const uint8_t *order = s->narrow ? kern->u8_deep4_order : kern->u8_deep_order;
    size_t groups = (s->taps + few - 1) / few, blocks = (s->made + deep - 1) / deep;
    s->wide = blocks * deep;
    s->repeat = s->narrow && s->made <= deep / 2 ? deep / s->made : 1;
    s->sums_bytes = s->wide * sizeof(*s->sums);
    if (!nori__mul_size(s->wide, groups * 4, &s->weights_bytes)) { /* two of 16 bits, four of 8 */
        return nori__no_memory(err);
    }
    bool ready[2];
    s->weights = nori__packed(a, s->weights_bytes, &ready[0]);
    s->sums = nori__packed(a, s->sums_bytes, &ready[1]);
    if (ready[0] != ready[1]) { /* a file's: nothing is written to it */
        nori__release(a, s->weights, s->weights_bytes);
        nori__release(a, s->sums, s->sums_bytes);
        s->weights = nori__alloc(a, s->weights_bytes);
        s->sums = nori__alloc(a, s->sums_bytes);
    } else if (ready[0] && s->weights && s->sums) {
        return NORI_OK;
    }
    if (!s->weights || !s->sums) {
        return nori__no_memory(err);
    }
    memset(s->weights, 0, s->weights_bytes);
    memset(s->sums, 0, s->sums_bytes);
    for (size_t i = 0; i < s->wide; i++) {
        size_t c = i / deep * deep + order[i % deep];
        size_t to = (i / deep * groups * deep + i % deep) * few;
        for (size_t t = 0; c < s->repeat * s->made && t < s->taps; t++) {
            int64_t v = deep_weight(s, w, zero, c % s->made, t);
            size_t at = to + t / few * deep * few + t % few;
            if (s->narrow) {
                ((int8_t *)s->weights)[at] = (int8_t)v;
            } else {
                ((int16_t *)s->weights)[at] = (int16_t)v;
            }
            s->sums[c] += (int32_t)v;
        }
    }
    return NORI_OK;
}

static nori__layer layer(const nori__qconv *s, const nori_tensor *w, const nori__window *window,
                         const nori__type *x, bool last)
{
    nori__layer l = nori__layer_unknown();
    int n = window->n < 2 ? window->n : 2;
    l.batch = x->rank > 0 ? x->dims[0].value : -1;
    l.channels = w->dims[1];
    l.made = w->dims[0];
    l.group = (int64_t)s->group;
    l.joined = s->deep;
    for (int d = 0; d < n; d++) { /* the last two dimensions */
        int from = window->n - n + d;
        nori__window copy = *window;
        l.kernel[2 - n + d] = w->dims[2 + from];
        l.stride[2 - n + d] = window->stride[from];
        l.dilation[2 - n + d] = window->dilation[from];
        l.in[2 - n + d] = x->rank == window->n + 2 ? x->dims[from + (last ? 1 : 2)].value : -1;
        if (nori__window_out(&copy, NULL, from, l.in[2 - n + d], &l.out[2 - n + d]) != NORI_OK) {
            l.out[2 - n + d] = -1;
        }
    }
    return l;
}

nori_status nori__qconv_make(const nori_tensor *w, const nori_tensor *zero, int64_t group,
                             const nori__window *window, const nori__type *x, bool last,
                             const nori_allocator *a, nori__qconv *out, nori_error *err)
{
    memset(out, 0, sizeof(*out));
    out->made = (size_t)w->dims[0];
    out->per_group = (size_t)w->dims[1];
    out->group = (size_t)group;
    out->taps = (size_t)w->count / out->made / out->per_group;
    out->deep = out->per_group == 1 && out->group > 1 && out->made == out->group;
    nori__layer l = layer(out, w, window, x, last);
    out->way = nori__way_for(a, NORI__WAYS_CONV8, &l);
    out->rows = out->group == 1 && window->dilation[window->n - 1] == 1 &&
                out->way->form == NORI__TERMS_ROWS;
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

/* bconv_depthwise.c: depthwise convolutions over channel blocks: a unit is rows of one block. */
#include "providers/cpu/blocked.h"

/* Output bytes a unit handles before its activation: they stay in the first cache. */
#define SPAN_BYTES (16 * 1024)

bool nori__bconv_depthwise_plan(nori__bconv_run *r, int threads)
{
    (void)threads;
    size_t line = r->g.out[1] * r->s->block * sizeof(float);
    size_t most = nori__way_span(r->s->way, SPAN_BYTES) / line;
    r->span = most > 0 ? most : 1;
    r->span = r->span < r->g.out[0] ? r->span : r->g.out[0];
    r->spans = nori__div_up(r->g.out[0], r->span);
    r->shares = r->x_blocks;
    r->share = 1;
    return true;
}

void nori__bconv_depthwise_units(void *run, int64_t begin, int64_t end, int thread)
{
    const nori__bconv_run *r = run;
    const nori__bconv *s = r->s;
    const nori__kernels *kern = nori__kernels_get();
    size_t c = s->block, taps = s->kernel[0] * s->kernel[1];
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        /* Spans of one block follow each other: they share input rows. */
        size_t span = (size_t)u % r->spans, block = (size_t)u / r->spans % r->shares;
        size_t image = (size_t)u / r->spans / r->shares;
        size_t row = span * r->span, stop = row + r->span < r->g.out[0] ? row + r->span : r->g.out[0];
        size_t at = image * r->y_batch + block * r->y_plane + row * r->g.out[1] * c;
        nori__block_finish f = {.bias = s->bias + block * c, .add = r->add ? r->add + at : NULL,
                                .clamp = s->act.clamp, .low = s->act.low, .high = s->act.high};
        kern->f32_block_depthwise(&r->g, row, stop,
                                  r->x + image * r->x_batch + block * r->x_plane,
                                  s->weights + block * taps * c, r->y + at, &f);
        if (s->act.apply) {
            kern->f32_unary[s->act.function]((stop - row) * r->g.out[1] * c, r->y + at, r->y + at,
                                             s->act.p);
        }
    }
}

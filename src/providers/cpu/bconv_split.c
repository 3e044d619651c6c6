/* bconv_split.c: cutting a convolution over channel blocks into units for threads, by what units cost.
 *
 * A unit is a span of lines (pixels, rows or tiles) by a share of the pairs of output blocks. Spans that
 * fit the cache are cut finer, or pairs shared out, so that the last thread ends as early as it can:
 * a share pays for its span's input again, a span for its pairs' weights. One thread keeps the spans
 * that the cache asks for. */
#include "providers/cpu/blocked.h"

#define UNIT_CYCLES 400.0 /* taking a unit, and what its first touches wait for */
#define LATE 0.05
#define MOST_TRIES 16

typedef struct cutting {
    const nori__bconv_cost *cost;
    size_t batch, lines, pairs;
    double all; /* pairs' worth of work */
    double threads;
} cutting;

/* The last pair of a group may be one block alone. */
static double pairs_of(const cutting *c, size_t share)
{
    return share < c->pairs ? (double)share : c->all;
}

/* When the last thread is done, in cycles. Units come in order, each to the thread that is free. */
static double ends(const cutting *c, size_t span, size_t share)
{
    size_t spans = nori__div_up(c->lines, span), shares = nori__div_up(c->pairs, share);
    double units = (double)(c->batch * spans * shares), images = (double)c->batch;
    double own = pairs_of(c, share);
    const nori__bconv_cost *k = c->cost;
    double largest = UNIT_CYCLES + (double)span * (k->line + own * k->pair) +
                     own * k->weights;
    double total = units * UNIT_CYCLES +
                   images * (double)c->lines * ((double)shares * k->line + c->all * k->pair) +
                   images * (double)spans * c->all * k->weights;
    double turns = (double)(size_t)((units + c->threads - 1) / c->threads) * largest;
    double mixed = largest + (total - largest) / c->threads; /* no list of jobs takes longer */
    /* Threads are late, or lose their CPU: with smaller units the others take over more. */
    return (turns < mixed ? turns : mixed) + largest * LATE;
}

void nori__bconv_split(nori__bconv_run *r, const nori__bconv_cut_up *how, int threads)
{
    size_t spans = how->lines < how->most + how->most / 2 ? 1 : nori__div_up(how->lines, how->most);
    cutting c = {&how->cost, r->batch, how->lines, how->pairs, (double)how->pairs, (double)threads};
    c.all -= (double)r->s->group * (double)(r->s->blocks % 2) / 2;
    size_t quantum = how->quantum, finest = nori__div_up(how->lines, quantum);
    size_t best_span = how->lines, best_share = how->pairs;
    double best = -1;
    size_t step = nori__div_up((size_t)threads, MOST_TRIES / 2);
    for (size_t tries = 0; tries < (threads > 1 ? MOST_TRIES : 1); tries++) {
        size_t n = spans + tries * step;
        if (tries > 0 && n > finest) {
            break;
        }
        size_t span = nori__div_up(nori__div_up(how->lines, n), quantum) * quantum;
        size_t most = threads > 1 ? how->pairs : 1;
        for (size_t shares = 1, at = 0; shares <= most && at < MOST_TRIES; shares += step, at++) {
            size_t share = nori__div_up(how->pairs, shares);
            double end = ends(&c, span < how->lines ? span : how->lines, share);
            if (best < 0 || end < best) {
                best = end;
                best_span = span;
                best_share = share;
            }
        }
    }
    r->span = best_span;
    r->spans = nori__div_up(how->lines, r->span);
    r->share = best_share;
    r->shares = nori__div_up(how->pairs, r->share);
}

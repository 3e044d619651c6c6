/* reasons.c: the decision in a few sentences. */
#include <stdio.h>

#include "tools/place/decide.h"

static const char *const names[] = {"nowhere", "on the edge", "in the cloud", "split over both"};

static void add(nori_place_answer *a, const char *fmt, ...) NORI__PRINTF(2, 3);
static void add(nori_place_answer *a, const char *fmt, ...)
{
    size_t used = strlen(a->words);
    va_list list;
    va_start(list, fmt);
    vsnprintf(a->words + used, sizeof(a->words) - used, fmt, list);
    va_end(list);
}

static void removed(nori_place_answer *a, int i, const char *name)
{
    if (!a->option[i].possible) {
        add(a, " Not %s: %s.", name, a->option[i].reason);
    }
}

void nori__place_words(const nori_place_question *q, nori_place_answer *a)
{
    const nori_place_option *edge = &a->option[0], *cloud = &a->option[1];
    if (a->place == NORI_PLACE_NONE) {
        add(a, "Run it nowhere: the rules leave no place.");
    } else {
        const nori_place_option *best = &a->option[a->place - 1];
        add(a, "Run it %s: %.4g ms a call on the mean", names[a->place], 1e3 * best->mean);
        if (a->saved > 0) {
            add(a, ", %.4g ms less than the next best", 1e3 * a->saved);
        }
        add(a, ".");
        if (q->deadline > 0) {
            double at = nori_times_quantile(&best->total, q->percentile);
            add(a, " %.4g %% of its calls take at most %.4g ms, the deadline is %.4g ms%s.",
                100 * q->percentile, 1e3 * at, 1e3 * q->deadline,
                at <= q->deadline ? "" : ": it is not kept, but nothing keeps it better");
        }
        for (int i = 0; i < 3; i++) {
            const nori_place_option *o = &a->option[i];
            if (o->possible && o->mean < best->mean && q->deadline > 0) {
                add(a, " The %s is faster on the mean, %.4g ms, but only %.4g %% of its calls are in time.",
                    i == 0 ? "edge" : i == 1 ? "cloud" : "split", 1e3 * o->mean, 100 * o->within);
            }
        }
    }
    if (edge->possible && cloud->possible) {
        add(a, a->gain >= 0 ? " The cloud computes %.4g ms faster; the way there costs %.4g ms"
                            : " The cloud computes %.4g ms slower; the way there costs %.4g ms",
            1e3 * (a->gain < 0 ? -a->gain : a->gain), 1e3 * a->penalty);
        add(a, a->penalty > 0 ? ", most of it %s." : ".",
            cloud->up >= cloud->down && cloud->up >= cloud->queue && cloud->up >= cloud->rtt ? "sending"
            : cloud->down >= cloud->queue && cloud->down >= cloud->rtt ? "receiving"
            : cloud->queue >= cloud->rtt ? "waiting for a server" : "the round trip");
    }
    removed(a, 0, "on the edge");
    removed(a, 1, "in the cloud");
    if (q->can_split) {
        removed(a, 2, "split");
    }
    if (a->inversion > 0) {
        add(a, " From %.4g calls a second on, the device's own queue makes it lose.", a->inversion);
    }
}

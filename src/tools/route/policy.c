/* policy.c: where the next call goes: the place in use, until another is better by a margin; the device
 * while the server does not answer. */
#include <math.h>

#include "base/given.h"
#include "tools/route/policy.h"

#define RETRY_MOST 16 /* times retry_s */
#define EDGE 0

struct nori_policy {
    nori_policy_options o;
    nori__policy_place place[NORI_PLACES];
    int now;               /* in use */
    uint64_t calls, switches;
    uint64_t since;        /* calls since it was taken into use */
    double explore;        /* adds up to 1: then one call asks elsewhere, too */
    int next_explored;
    int failed;            /* in a row, by the server */
    bool open;             /* the server is not called */
    double retry_at, retry_s;
};

void nori_policy_options_default(nori_policy_options *o)
{
    NORI__ASKED(o, );
    *o = (nori_policy_options){.size = sizeof(*o), .percentile = 0.99, .margin = 0.1, .dwell = 5,
                               .weight = 0.2, .explore = 0.02, .failures = 2, .retry_s = 1};
}

static nori_status check(const nori_policy_options *o, nori_error *err)
{
    bool share = o->percentile > 0 && o->percentile <= 1 && o->margin >= 0 && o->margin < 1 &&
                 o->weight > 0 && o->weight <= 1 && o->explore >= 0 && o->explore <= 1;
    if (!o->possible[0] && !o->possible[1] && !o->possible[2]) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "no place is possible: at least one was expected");
    }
    if (!share || o->dwell < 0 || o->failures < 1 || !(isfinite(o->retry_s) && o->retry_s > 0) ||
        !(isfinite(o->deadline) && o->deadline >= 0)) {
        return nori__fail(
            err, NORI_ERROR_ARGUMENT,
            "an option of the policy is out of its range: shares from "
            "0 to 1, failures from 1, retry_s above 0 and deadline from 0 on were expected");
    }
    return NORI_OK;
}

/* ---- which is better ---- */

static bool usable(const nori_policy *p, int i)
{
    return p->o.possible[i] && (i == EDGE || !p->open || !p->o.possible[EDGE]);
}

static bool known(const nori_policy *p, int i)
{
    return p->place[i].count > 0;
}

/* Whether a is better than b, by `margin` where that is above 0. */
static bool better(const nori_policy *p, int a, int b, double margin)
{
    const nori__policy_place *x = &p->place[a], *y = &p->place[b];
    if (p->o.deadline > 0) {
        double may = 1 - p->o.percentile, slack = margin > 0 ? 1.5 : 1;
        bool keeps_x = x->late <= may, keeps_y = y->late <= may * (keeps_x ? slack : 1);
        if (keeps_x != keeps_y) {
            return keeps_x;
        }
        if (!keeps_x) {
            return x->late < y->late * (1 - margin) ||
                   (x->late <= y->late && x->mean < y->mean * (1 - margin));
        }
    }
    return x->mean < y->mean * (1 - margin);
}

/* The best of those that are usable; places nothing is known of come last. */
static int best_of(const nori_policy *p)
{
    int best = -1;
    for (int i = 0; i < NORI_PLACES; i++) {
        if (usable(p, i) && (best < 0 || (known(p, i) && (!known(p, best) || better(p, i, best, 0))))) {
            best = i;
        }
    }
    return best;
}

nori_status nori_policy_create(const nori_policy_options *options, nori_policy **policy, nori_error *err)
{
    NORI__GIVEN(err, options);
    NORI__GIVEN(err, policy);
    nori_policy_options o;
    nori_policy_options_default(&o);
    memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
    NORI__TRY(check(&o, err));
    nori_policy *p = nori__alloc_zero(&nori__malloc, sizeof(*p));
    if (!p) {
        return nori__no_memory(err);
    }
    p->o = o;
    p->retry_s = o.retry_s;
    for (int i = 0; i < NORI_PLACES; i++) {
        if (o.has_prior[i]) {
            nori__policy_prior(&p->place[i], &o.prior[i], o.deadline);
        }
    }
    p->now = best_of(p);
    *policy = p;
    return NORI_OK;
}

void nori_policy_free(nori_policy *p)
{
    nori__release(&nori__malloc, p, sizeof(*p));
}

/* ---- choosing ---- */

static void move_to(nori_policy *p, int place)
{
    p->now = place;
    p->switches++;
    p->since = 0;
}

static void settle(nori_policy *p)
{
    if (!usable(p, p->now)) { /* no dwelling where nothing answers */
        move_to(p, best_of(p));
        return;
    }
    int best = best_of(p);
    if (best != p->now && p->since >= (uint64_t)p->o.dwell && known(p, best) &&
        (!known(p, p->now) || better(p, best, p->now, p->o.margin))) {
        move_to(p, best);
    }
}

/* A place to look at beside: one that nothing is known of, one that just surprised, or in turn. */
static nori_place look_beside(nori_policy *p)
{
    int others[NORI_PLACES], n = 0;
    for (int i = 0; i < NORI_PLACES; i++) {
        if (i != p->now && usable(p, i)) {
            others[n++] = i;
        }
    }
    if (n == 0 || p->o.explore <= 0) {
        return NORI_PLACE_NONE;
    }
    for (int k = 0; k < n; k++) {
        nori__policy_place *place = &p->place[others[k]];
        if (place->count == 0 || place->surprised) {
            place->surprised = false;
            return (nori_place)(others[k] + 1);
        }
    }
    p->explore += p->o.explore;
    if (p->explore < 1) {
        return NORI_PLACE_NONE;
    }
    p->explore -= 1;
    return (nori_place)(others[p->next_explored++ % n] + 1);
}

nori_place nori_policy_choose(nori_policy *p, double now, nori_place *also)
{
    NORI__ASKED(p, 0);
    (void)now;
    settle(p);
    p->calls++;
    p->since++;
    nori_place beside = look_beside(p);
    if (also) {
        *also = beside;
    }
    return (nori_place)(p->now + 1);
}

/* ---- being told ---- */

static void open_circuit(nori_policy *p, double now)
{
    p->retry_s = p->open ? p->retry_s * 2 : p->o.retry_s;
    p->retry_s = p->retry_s > RETRY_MOST * p->o.retry_s ? RETRY_MOST * p->o.retry_s : p->retry_s;
    p->open = true;
    p->retry_at = now + p->retry_s;
}

void nori_policy_told(nori_policy *p, nori_place place, double seconds, int answered, double now)
{
    NORI__ASKED(p, );
    int i = (int)place - 1;
    if (i < 0 || i >= NORI_PLACES || !(isfinite(seconds) && seconds >= 0)) {
        return;
    }
    if (!answered && i != EDGE) { /* the device has to do it then */
        seconds += p->place[EDGE].mean;
    }
    nori__policy_time(&p->place[i], seconds, answered, p->o.weight, p->o.deadline);
    if (i != EDGE) {
        p->failed = answered ? 0 : p->failed + 1;
        if (!answered && p->failed >= p->o.failures && !p->open) {
            open_circuit(p, now);
        } else if (answered) {
            p->open = false;
        }
    }
}

void nori_policy_overdue(nori_policy *p, nori_place place, double now)
{
    if (place == NORI_PLACE_CLOUD || place == NORI_PLACE_SPLIT) {
        p->failed++;
        if (p->failed >= p->o.failures && !p->open && p->o.possible[EDGE]) {
            open_circuit(p, now);
        }
    }
}

int nori_policy_probe_due(nori_policy *p, double now)
{
    NORI__ASKED(p, 0);
    return p->open && now >= p->retry_at;
}

void nori_policy_probed(nori_policy *p, int answered, double now)
{
    NORI__ASKED(p, );
    if (answered) { /* what was lost while it was gone says nothing of what it takes now */
        p->open = false;
        p->failed = p->o.failures - 1;
        for (int i = 1; i < NORI_PLACES; i++) {
            p->place[i].surprised = p->place[i].count > 0;
        }
    } else if (p->open) {
        open_circuit(p, now);
    }
}

double nori_policy_hedge(const nori_policy *p, nori_place place)
{
    NORI__ASKED(p, 0.0);
    int i = (int)place - 1;
    if (i < 0 || i >= NORI_PLACES) {
        return 0;
    }
    double wait = nori__policy_quantile(&p->place[i], 0.95);
    double own = nori__policy_quantile(&p->place[EDGE], 0.95);
    if (p->o.deadline > 0 && own > 0) {
        double latest = p->o.deadline - own;
        wait = latest > 0 && (wait <= 0 || latest < wait) ? latest : wait;
    }
    return wait;
}

void nori_policy_look(const nori_policy *p, nori_policy_view *view)
{
    NORI__ASKED(p, );
    NORI__ASKED(view, );
    nori_policy_view v = {.size = view->size, .place = (nori_place)(p->now + 1), .open = p->open,
                          .calls = p->calls, .switches = p->switches};
    for (int i = 0; i < NORI_PLACES; i++) {
        v.mean[i] = p->place[i].mean;
        v.p50[i] = nori__policy_quantile(&p->place[i], 0.5);
        v.p95[i] = nori__policy_quantile(&p->place[i], 0.95);
        v.within[i] = 1 - p->place[i].late;
    }
    memcpy(view, &v, view->size < sizeof(v) ? view->size : sizeof(v));
}

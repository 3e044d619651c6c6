/* replay.c: deciders over calls of the past, and what they cost. The oracle is a dynamic program over
 * places: the least cost up to each call, given where it goes. */
#include <math.h>
#include <stdlib.h>

#include "base/given.h"
#include "base/base.h"
#include "nori/route.h"

#define LATE_DEADLINES 10

typedef struct replay {
    const nori_replay_options *o;
    const nori_replay_call *calls;
    size_t count;
    double late_s;
    double *seconds;      /* what each call took */
    unsigned char *chosen; /* index of a place */
    bool *hedged;
    nori_error *err;
} replay;

void nori_replay_options_default(nori_replay_options *o)
{
    NORI__ASKED(o, );
    *o = (nori_replay_options){.size = sizeof(*o), .late_s = -1, .lost_s = 1};
    nori_policy_options_default(&o->policy);
}

static nori_status check(const replay *r)
{
    const double *numbers[] = {&r->o->switch_s, &r->o->lost_s, &r->o->policy.deadline};
    for (size_t i = 0; i < NORI__COUNT(numbers); i++) {
        if (!(isfinite(*numbers[i]) && *numbers[i] >= 0)) {
            return nori__fail(r->err, NORI_ERROR_ARGUMENT,
                              "switch_s, lost_s or the deadline is %g, at least 0 was "
                              "expected",
                              *numbers[i]);
        }
    }
    if (r->count == 0) {
        return nori__fail(r->err, NORI_ERROR_ARGUMENT, "there are no calls");
    }
    for (size_t i = 0; i < r->count; i++) {
        const nori_replay_call *c = &r->calls[i];
        bool ok = isfinite(c->at) && (i == 0 || c->at >= r->calls[i - 1].at);
        for (int k = 0; k < NORI_PLACES; k++) {
            ok = ok && isfinite(c->seconds[k]);
        }
        if (!ok) {
            return nori__fail(r->err, NORI_ERROR_ARGUMENT,
                              "call %zu: times that are finite and do not go back were "
                              "expected",
                              i);
        }
    }
    return NORI_OK;
}

/* ---- what a choice costs ---- */

/* Of a call that goes to a place, the device standing in where there is no answer; below 0: none. */
static double takes(const replay *r, size_t i, int place)
{
    const double *s = r->calls[i].seconds;
    if (s[place] >= 0) {
        return s[place];
    }
    return place != 0 && r->o->policy.possible[0] && s[0] >= 0 ? r->o->lost_s + s[0] : -1;
}

static bool is_late(const replay *r, double seconds)
{
    return seconds < 0 || (r->o->policy.deadline > 0 && seconds > r->o->policy.deadline);
}

static double cost_of(const replay *r, double seconds)
{
    return (seconds < 0 ? r->o->lost_s : seconds) + (is_late(r, seconds) ? r->late_s : 0);
}

/* ---- who decides ---- */

static void always(replay *r, int place)
{
    for (size_t i = 0; i < r->count; i++) {
        r->chosen[i] = (unsigned char)place;
        r->seconds[i] = takes(r, i, place);
    }
}

static nori_status by_policy(replay *r)
{
    nori_policy *p = NULL;
    NORI__TRY(nori_policy_create(&r->o->policy, &p, r->err));
    bool edge = r->o->policy.possible[0] != 0;
    for (size_t i = 0; i < r->count; i++) {
        const nori_replay_call *c = &r->calls[i];
        nori_place also;
        if (nori_policy_probe_due(p, c->at)) {
            nori_policy_probed(p, c->seconds[1] >= 0 || c->seconds[2] >= 0, c->at);
        }
        int place = (int)nori_policy_choose(p, c->at, &also) - 1;
        double own = c->seconds[place], took = takes(r, i, place);
        double wait = place == 0 ? 0 : nori_policy_hedge(p, (nori_place)(place + 1));
        wait = wait > 0 ? wait : r->o->lost_s;
        if (place != 0 && edge && c->seconds[0] >= 0 && (own < 0 || own > wait)) {
            double with = wait + c->seconds[0]; /* the device is started then */
            r->hedged[i] = true;
            took = own >= 0 && own < with ? own : with;
        }
        r->chosen[i] = (unsigned char)place;
        r->seconds[i] = took;
        nori_policy_told(p, (nori_place)(place + 1), own >= 0 ? own : wait, own >= 0, c->at);
        if (r->hedged[i]) {
            nori_policy_told(p, NORI_PLACE_EDGE, c->seconds[0], 1, c->at);
        } else if (also != NORI_PLACE_NONE) {
            double other = c->seconds[also - 1];
            nori_policy_told(p, also, other >= 0 ? other : r->o->lost_s, other >= 0, c->at);
        }
    }
    nori_policy_free(p);
    return NORI_OK;
}

/* least[k]: of all calls so far, the last one going to k; from: where the one before went then. */
static nori_status by_oracle(replay *r)
{
    size_t bytes;
    unsigned char *from =
        nori__mul_size(r->count, NORI_PLACES, &bytes) ? nori__alloc(&nori__malloc, bytes) : NULL;
    double least[NORI_PLACES] = {0}, next[NORI_PLACES];
    if (!from) {
        return nori__no_memory(r->err);
    }
    for (size_t i = 0; i < r->count; i++) {
        for (int k = 0; k < NORI_PLACES; k++) {
            double best = INFINITY;
            for (int b = 0; b < NORI_PLACES; b++) {
                double before = i == 0 ? (b == k ? 0 : INFINITY) : least[b] + (b == k ? 0 : r->o->switch_s);
                if (before < best || (before == best && b == k)) {
                    best = before;
                    from[i * NORI_PLACES + (size_t)k] = (unsigned char)b;
                }
            }
            next[k] = r->o->policy.possible[k] ? best + cost_of(r, takes(r, i, k)) : INFINITY;
        }
        memcpy(least, next, sizeof(least));
    }
    int place = 0;
    for (int k = 1; k < NORI_PLACES; k++) {
        place = least[k] < least[place] ? k : place;
    }
    for (size_t i = r->count; i-- > 0;) {
        r->chosen[i] = (unsigned char)place;
        r->seconds[i] = takes(r, i, place);
        place = from[i * NORI_PLACES + (size_t)place];
    }
    nori__release(&nori__malloc, from, bytes);
    return NORI_OK;
}

/* ---- adding up ---- */

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static void add_up(replay *r, nori_replay_result *out)
{
    double sum = 0;
    for (size_t i = 0; i < r->count; i++) {
        double s = r->seconds[i];
        bool moved = i > 0 && r->chosen[i] != r->chosen[i - 1];
        bool there = r->calls[i].seconds[r->chosen[i]] >= 0;
        out->hits += !is_late(r, s);
        out->lost += s < 0;
        out->hedged += r->hedged[i];
        out->switches += moved;
        out->at[r->chosen[i]]++;
        out->cost_s += cost_of(r, s) + (moved ? r->o->switch_s : 0);
        out->price += (there ? r->o->price[r->chosen[i]] : 0) +
                      ((r->hedged[i] || !there) && r->chosen[i] != 0 ? r->o->price[0] : 0);
        r->seconds[i] = s < 0 ? r->o->lost_s : s;
        sum += r->seconds[i];
    }
    out->calls = r->count;
    out->mean_s = sum / (double)r->count;
    qsort(r->seconds, r->count, sizeof(*r->seconds), by_size);
    out->p99_s = r->seconds[(size_t)ceil(0.99 * (double)r->count) - 1];
}

static nori_status decide(replay *r, nori_replay_who who, nori_replay_result *out)
{
    nori_status s = NORI_OK;
    memset(r->hedged, 0, r->count * sizeof(*r->hedged));
    if (who == NORI_REPLAY_POLICY) {
        s = by_policy(r);
    } else if (who == NORI_REPLAY_ORACLE) {
        s = by_oracle(r);
    } else {
        always(r, (int)who);
    }
    if (s == NORI_OK) {
        add_up(r, out);
    }
    return s;
}

nori_status nori_replay(const nori_replay_options *options, nori_replay_who who,
                        const nori_replay_call *calls, size_t count, nori_place *chosen,
                        nori_replay_result *result, nori_error *err)
{
    NORI__GIVEN(err, options);
    NORI__GIVEN_LIST(err, calls, count);
    NORI__GIVEN(err, result);
    nori_replay_options o;
    nori_replay_result out = {.size = result->size}, oracle = {.size = 0};
    nori__arena arena;
    nori_replay_options_default(&o);
    memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
    replay r = {.o = &o, .calls = calls, .count = count, .err = err};
    r.late_s = o.late_s >= 0 ? o.late_s : LATE_DEADLINES * o.policy.deadline;
    NORI__TRY(check(&r));
    bool any = o.policy.possible[0] || o.policy.possible[1] || o.policy.possible[2];
    if (!any || (who <= NORI_REPLAY_SPLIT && !o.policy.possible[who]) || who > NORI_REPLAY_ORACLE) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "the place that calls should go to is not possible");
    }
    nori__arena_init(&arena, &nori__malloc);
    r.seconds = nori__arena_array(&arena, count, sizeof(*r.seconds));
    r.chosen = nori__arena_array(&arena, count, 1);
    r.hedged = nori__arena_array(&arena, count, sizeof(*r.hedged));
    nori_status s = r.seconds && r.chosen && r.hedged ? decide(&r, NORI_REPLAY_ORACLE, &oracle)
                                                      : nori__no_memory(err);
    s = s == NORI_OK ? decide(&r, who, &out) : s;
    if (s == NORI_OK) {
        out.regret_s = out.cost_s - oracle.cost_s;
        for (size_t i = 0; chosen && i < count; i++) {
            chosen[i] = (nori_place)(r.chosen[i] + 1);
        }
        memcpy(result, &out, result->size < sizeof(out) ? result->size : sizeof(out));
    }
    nori__arena_free(&arena);
    return s;
}

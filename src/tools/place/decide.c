/* decide.c: which place, by rules and by what the terms add up to. */
#include <math.h>
#include <stdio.h>

#include "base/given.h"
#include "tools/place/decide.h"

void nori_place_question_default(nori_place_question *q)
{
    NORI__ASKED(q, );
    *q = (nori_place_question){.size = sizeof(*q), .margin = 0.1, .percentile = 0.99};
}

/* ---- the terms ---- */

/* Of the bytes over a link, and what was measured. */
static void transfer(const nori_times *measured, double bytes, double speed, nori_times *out)
{
    nori_times fixed;
    nori_times_constant(&fixed, speed > 0 ? bytes / speed : 0);
    nori_times_add(out, measured, &fixed);
}

/* The wait before a side; false: its load is 1 or more. */
static bool queue_of(const nori_place_side *side, const nori_times *service, double rate,
                     nori_times *wait, double *load)
{
    *load = 0;
    if (side->has_queue) {
        *wait = side->queue;
        return true;
    }
    nori_times_constant(wait, 0);
    return rate <= 0 || nori_queue_wait(service, side->servers, rate, wait, load);
}

static void refuse(nori_place_option *o, const char *fmt, ...) NORI__PRINTF(2, 3);
static void refuse(nori_place_option *o, const char *fmt, ...)
{
    va_list list;
    if (o->possible) { /* the first rule is the one that is named */
        o->possible = 0;
        va_start(list, fmt);
        vsnprintf(o->reason, sizeof(o->reason), fmt, list);
        va_end(list);
    }
}

static void conclude(nori_place_option *o, const nori_place_question *q)
{
    const double terms[] = {o->compute, o->up, o->down, o->queue, o->rtt};
    static const char *const names[] = {"compute", "up", "down", "queue", "rtt"};
    size_t most = 0;
    for (size_t i = 1; i < NORI__COUNT(terms); i++) {
        most = terms[i] > terms[most] ? i : most;
    }
    o->dominant = names[most];
    o->mean = nori_times_mean(&o->total);
    o->p50 = nori_times_quantile(&o->total, 0.5);
    o->p95 = nori_times_quantile(&o->total, 0.95);
    o->p99 = nori_times_quantile(&o->total, 0.99);
    o->within = q->deadline > 0 ? nori_times_within(&o->total, q->deadline) : 1;
}

static void edge_option(const nori_place_question *q, nori_place_option *o)
{
    nori_times wait;
    if (!queue_of(&q->edge, &q->edge.service, q->rate, &wait, &o->load)) {
        refuse(o, "%.3g calls a second are more than it can serve: load %.4g", q->rate, o->load);
    }
    o->compute = nori_times_mean(&q->edge.service);
    o->queue = nori_times_mean(&wait);
    nori_times_add(&o->total, &q->edge.service, &wait);
    conclude(o, q);
}

/* What the far side of a call costs beyond `near`: the way there and back, waiting, computing. */
static void far_option(const nori_place_question *q, const nori_times *near,
                       const nori_times *service, double up_bytes, nori_place_option *o)
{
    nori_times wait, near_wait, up, down, sum;
    double load = 0;
    if (!queue_of(&q->cloud, service, q->cloud_rate > 0 ? q->cloud_rate : q->rate, &wait, &o->load)) {
        refuse(o, "the servers get more calls than they can serve: load %.4g", o->load);
    }
    nori_times_constant(&near_wait, 0);
    if (near && !queue_of(&q->edge, near, q->rate, &near_wait, &load)) {
        refuse(o, "its part on the device gets more calls than it can serve: load %.4g", load);
    }
    o->load = load > o->load ? load : o->load;
    transfer(&q->up, up_bytes, q->up_speed, &up);
    transfer(&q->down, q->down_bytes, q->down_speed, &down);
    o->compute = nori_times_mean(service) + (near ? nori_times_mean(near) : 0);
    o->up = nori_times_mean(&up);
    o->down = nori_times_mean(&down);
    o->queue = nori_times_mean(&wait) + nori_times_mean(&near_wait);
    o->rtt = nori_times_mean(&q->rtt);
    nori_times_add(&sum, service, &wait);
    nori_times_add(&sum, &sum, &up);
    nori_times_add(&sum, &sum, &down);
    nori_times_add(&sum, &sum, &q->rtt);
    if (near) {
        nori_times_add(&sum, &sum, near);
        nori_times_add(&sum, &sum, &near_wait);
    }
    o->total = sum;
    conclude(o, q);
}

/* ---- the rules ---- */

static void side_rules(const nori_place_question *q, const nori_place_side *side, const char *name,
                       nori_place_option *o)
{
    double needs = q->model_bytes + q->activation_bytes;
    if (!side->there) {
        refuse(o, "there is no %s", name);
    }
    if (side->memory > 0 && needs > side->memory) {
        refuse(o, "model and activations need %.3g GB, the %s has %.3g GB", needs / 1e9, name,
               side->memory / 1e9);
    }
    if (side->disagrees) {
        refuse(o, "the results of the %s do not agree", name);
    }
    if (q->most_energy > 0 && side->energy > q->most_energy) {
        refuse(o, "a call costs the device %.3g J, at most %.3g J are allowed", side->energy,
               q->most_energy);
    }
    if (q->most_price > 0 && side->price > q->most_price) {
        refuse(o, "1,000 calls cost %.4g, at most %.4g are allowed", 1000 * side->price,
               1000 * q->most_price);
    }
}

static void far_rules(const nori_place_question *q, nori_place_option *o)
{
    if (q->offline) {
        refuse(o, "there is no network");
    }
    if (q->deadline > 0 && q->rtt.at[0] > q->deadline) {
        refuse(o, "the round trip alone takes %.4g ms, the deadline is %.4g ms", 1e3 * q->rtt.at[0],
               1e3 * q->deadline);
    }
}

/* A split holds a part of the model on either side: memory is not judged, as nobody said how much. */
static void split_rules(const nori_place_question *q, nori_place_option *o)
{
    if (!q->can_split) {
        refuse(o, "no split was offered");
    }
    if (!q->edge.there || !q->cloud.there) {
        refuse(o, "it needs both sides");
    }
    if (q->features_stay) {
        refuse(o, "features may not leave the device");
    }
    if (q->cloud.disagrees || q->edge.disagrees) {
        refuse(o, "the results of the two sides do not agree");
    }
    if (q->most_price > 0 && q->cloud.price > q->most_price) {
        refuse(o, "1,000 calls cost %.4g, at most %.4g are allowed", 1000 * q->cloud.price,
               1000 * q->most_price);
    }
    far_rules(q, o);
}

/* ---- the verdict ---- */

/* Whether a keeps the deadline and b does not, or better where neither does; then the mean. */
static bool better(const nori_place_question *q, const nori_place_option *a,
                   const nori_place_option *b)
{
    if (q->deadline > 0) {
        double p = q->percentile;
        bool keeps_a = nori_times_quantile(&a->total, p) <= q->deadline;
        bool keeps_b = nori_times_quantile(&b->total, p) <= q->deadline;
        if (keeps_a != keeps_b) {
            return keeps_a;
        }
        if (!keeps_a && a->within != b->within) {
            return a->within > b->within;
        }
    }
    return a->mean < b->mean;
}

static void choose(const nori_place_question *q, nori_place_answer *a)
{
    const nori_place_option *best = NULL;
    for (int i = 0; i < 2; i++) {
        const nori_place_option *o = &a->option[i];
        best = o->possible && (!best || better(q, o, best)) ? o : best;
    }
    nori_place_option *split = &a->option[2];
    if (best && split->possible && (split->mean > best->mean * (1 - q->margin) ||
                                    !better(q, split, best))) {
        refuse(split, "it wins less than %.3g %% over %s", 100 * q->margin,
               best->place == NORI_PLACE_EDGE ? "the edge" : "the cloud");
    }
    best = split->possible ? split : best;
    a->place = best ? best->place : NORI_PLACE_NONE;
    for (int i = 0; i < 3 && best; i++) {
        const nori_place_option *o = &a->option[i];
        double more = o->mean - best->mean;
        if (o->possible && o != best && (a->saved == 0 || more < a->saved)) {
            a->saved = more;
        }
    }
}

nori_status nori__place_options(const nori_place_question *q, nori_place_answer *a)
{
    static const nori_place places[] = {NORI_PLACE_EDGE, NORI_PLACE_CLOUD, NORI_PLACE_SPLIT};
    for (int i = 0; i < 3; i++) {
        a->option[i] = (nori_place_option){.place = places[i], .possible = 1};
    }
    if (q->raw_stays) {
        refuse(&a->option[1], "raw data may not leave the device");
    }
    far_rules(q, &a->option[1]);
    side_rules(q, &q->edge, "edge", &a->option[0]);
    side_rules(q, &q->cloud, "cloud", &a->option[1]);
    split_rules(q, &a->option[2]);
    edge_option(q, &a->option[0]);
    far_option(q, NULL, &q->cloud.service, q->up_bytes, &a->option[1]);
    if (q->can_split) {
        far_option(q, &q->split_edge, &q->split_cloud, q->feature_bytes, &a->option[2]);
    }
    const nori_place_option *far = &a->option[1];
    a->gain = nori_times_mean(&q->edge.service) + a->option[0].queue - far->compute;
    a->penalty = far->up + far->down + far->queue + far->rtt;
    return NORI_OK;
}

static nori_status check_number(const char *what, double v, nori_error *err)
{
    return isfinite(v) && v >= 0
               ? NORI_OK
               : nori__fail(err, NORI_ERROR_ARGUMENT, "%s is %g, at least 0 was expected", what, v);
}

static nori_status check_times(const char *what, const nori_times *t, nori_error *err)
{
    for (int i = 0; i < NORI_TIMES_POINTS; i++) {
        NORI__TRY(check_number(what, t->at[i], err));
    }
    return NORI_OK;
}

static nori_status check(const nori_place_question *q, nori_error *err)
{
    const struct {
        const char *name;
        double v;
    } numbers[] = {
        {"up_bytes", q->up_bytes},     {"down_bytes", q->down_bytes},
        {"up_speed", q->up_speed},     {"down_speed", q->down_speed},
        {"rate", q->rate},             {"cloud_rate", q->cloud_rate},
        {"model_bytes", q->model_bytes}, {"activation_bytes", q->activation_bytes},
        {"deadline", q->deadline},     {"percentile", q->percentile},
        {"margin", q->margin},         {"feature_bytes", q->feature_bytes},
        {"most_energy", q->most_energy}, {"most_price", q->most_price},
        {"edge.memory", q->edge.memory}, {"cloud.memory", q->cloud.memory},
        {"edge.energy", q->edge.energy}, {"cloud.energy", q->cloud.energy},
        {"edge.price", q->edge.price}, {"cloud.price", q->cloud.price},
    };
    const struct {
        const char *name;
        const nori_times *t;
    } times[] = {
        {"edge.service", &q->edge.service}, {"cloud.service", &q->cloud.service},
        {"edge.queue", &q->edge.queue},     {"cloud.queue", &q->cloud.queue},
        {"up", &q->up},                     {"down", &q->down},
        {"rtt", &q->rtt},                   {"split_edge", &q->split_edge},
        {"split_cloud", &q->split_cloud},
    };
    for (size_t i = 0; i < NORI__COUNT(numbers); i++) {
        NORI__TRY(check_number(numbers[i].name, numbers[i].v, err));
    }
    for (size_t i = 0; i < NORI__COUNT(times); i++) {
        NORI__TRY(check_times(times[i].name, times[i].t, err));
    }
    if (q->percentile > 1 || q->margin >= 1) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "percentile is %g, margin %g: shares below 1 were "
                          "expected", q->percentile, q->margin);
    }
    return NORI_OK;
}

nori_status nori_place_decide(const nori_place_question *question, nori_place_answer *answer,
                              nori_error *err)
{
    NORI__GIVEN(err, question);
    NORI__GIVEN(err, answer);
    nori_place_question q;
    nori_place_question_default(&q);
    memcpy(&q, question, question->size < sizeof(q) ? question->size : sizeof(q));
    NORI__TRY(check(&q, err));
    nori_place_answer *a = nori__alloc_zero(&nori__malloc, sizeof(*a));
    if (!a) {
        return nori__no_memory(err);
    }
    a->size = answer->size;
    nori_status status = nori__place_options(&q, a);
    choose(&q, a);
    if (status == NORI_OK) {
        nori__place_flips(&q, a);
        nori__place_words(&q, a);
        memcpy(answer, a, a->size < sizeof(*a) ? a->size : sizeof(*a));
    }
    nori__release(&nori__malloc, a, sizeof(*a));
    return status;
}

/* tune.c: which way is fastest for each layer of a model, on this machine and with these threads.
 *
 * A session that goes the usual ways runs in turns with one that goes others, each layer one that it has
 * not tried yet, so that as many pairs of sessions are needed as the layer with most ways has: layers are
 * measured where they stand, among the others, by the session's own profile. What won is measured once
 * more, and then the whole model: if that is no faster, nothing is changed. */
#include "base/given.h"
#include "providers/cpu/ways.h"
#include "tools/tune/tune.h"

/* Shares of the time: trying ways, what won once more; the rest is the whole model's. */
#define TRYING 0.6
#define AGAIN 0.75

void nori_tune_options_default(nori_tune_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_tune_options){.size = sizeof(*options), .seconds = 20, .least = 0.05};
}

/* The ways of a step that make a difference with so many threads. */
static uint32_t ways_of(const nori__way_noted *n, int threads)
{
    uint32_t fits = n->ask.fits;
    for (uint32_t w = 0; threads == 1 && w < NORI__WAYS_MOST; w++) {
        if ((fits >> w & 1) != 0 && nori__way_at(n->ask.kind, w)->alone) {
            fits &= ~((uint32_t)1 << w);
        }
    }
    return fits;
}

static bool same_layer(const nori__tuned *l, const nori__way_noted *n, uint32_t fits)
{
    return l->op == n->taken.op && l->ask.kind == n->ask.kind && l->ask.fits == fits &&
           l->ask.usual == n->ask.usual && memcmp(&l->ask.layer, &n->ask.layer, sizeof(n->ask.layer)) == 0;
}

/* The steps of the usual session that have a choice, and the layers they are. */
static nori_status find_layers(nori_tuning *t, const nori_session *s, nori_error *err)
{
    const nori__way_noted *noted;
    size_t count = nori__ways_noted(s->packs, &noted);
    t->steps = nori__arena_array(&t->arena, count + 1, sizeof(*t->steps));
    t->layer_of = nori__arena_array(&t->arena, count + 1, sizeof(*t->layer_of));
    t->entries = nori__arena_array(&t->arena, count + 1, sizeof(*t->entries));
    t->layers = nori__arena_array(&t->arena, count + 1, sizeof(*t->layers));
    if (!t->steps || !t->layer_of || !t->entries || !t->layers) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        uint32_t fits = ways_of(&noted[i], s->threads);
        if ((fits & (fits - 1)) == 0) {
            continue; /* one way only */
        }
        while (at < t->n_layers && !same_layer(&t->layers[at], &noted[i], fits)) {
            at++;
        }
        nori__tuned *l = &t->layers[at];
        if (at == t->n_layers) {
            const char *node = nori__arena_text(&t->arena, s->steps[noted[i].taken.step]->node->name);
            *l = (nori__tuned){.ask = noted[i].ask, .op = noted[i].taken.op, .node = node,
                               .way = noted[i].ask.usual, .taken = noted[i].ask.usual};
            l->ask.fits = fits;
            t->n_layers++;
            if (!node) {
                return nori__no_memory(err);
            }
        }
        l->nodes++;
        t->layer_of[t->n_steps] = (uint32_t)at;
        t->steps[t->n_steps++] = noted[i];
    }
    return NORI_OK;
}

/* A session whose layers go their usual ways (side 0), or those they are told. */
static nori_status make_side(nori__tune_job *job, const nori_model *model, nori_session_options *o,
                             int side)
{
    nori_tuning *t = job->t;
    nori__ways ways = {t->entries, 0, 0};
    for (size_t i = 0; side == 1 && i < t->n_steps; i++) {
        const nori__tuned *l = &t->layers[t->layer_of[i]];
        if (l->way != l->ask.usual) {
            t->entries[ways.count] = t->steps[i].taken;
            t->entries[ways.count++].way = l->way;
        }
    }
    t->n_entries = side == 1 ? ways.count : t->n_entries;
    nori_session_free(job->side[side]);
    job->side[side] = NULL;
    return nori__session_make(model, o, &ways, &job->side[side], job->err);
}

/* The next way of a layer that was not measured; false: there is none, and it goes its usual one. */
static bool next_way(nori__tuned *l)
{
    for (uint32_t w = 0; w < NORI__WAYS_MOST; w++) {
        if ((l->ask.fits >> w & 1) != 0 && w != l->ask.usual && !l->pair[w].measured) {
            l->way = w;
            return true;
        }
    }
    l->way = l->ask.usual;
    return false;
}

static size_t rounds_left(const nori_tuning *t)
{
    size_t most = 0;
    for (size_t i = 0; i < t->n_layers; i++) {
        size_t n = 0;
        const nori__tuned *l = &t->layers[i];
        for (uint32_t w = 0; w < NORI__WAYS_MOST; w++) {
            n += (l->ask.fits >> w & 1) != 0 && w != l->ask.usual && !l->pair[w].measured;
        }
        most = n > most ? n : most;
    }
    return most;
}

static uint64_t share_of(const nori__tune_job *job, double share)
{
    return job->start + (uint64_t)((double)(job->end - job->start) * share);
}

static nori_status try_ways(nori__tune_job *job, const nori_model *model, nori_session_options *o)
{
    nori_tuning *t = job->t;
    size_t total = rounds_left(t), left;
    uint64_t end = share_of(job, TRYING);
    for (size_t done = 0; (left = rounds_left(t)) > 0; done++) {
        uint64_t now = nori__now_ns();
        nori_progress p = {.size = sizeof(p), .phase = "tune", .provider = "", .done = done,
                           .total = total, .text = "ways of layers"};
        if (now >= end) {
            break;
        }
        if (o->progress) {
            o->progress(o->progress_user, &p);
        }
        for (size_t i = 0; i < t->n_layers; i++) {
            next_way(&t->layers[i]);
        }
        nori_session_options quiet = *o;
        quiet.progress = NULL;
        NORI__TRY(make_side(job, model, &quiet, 1));
        NORI__TRY(nori__tune_layers(job, now + (end - now) / left));
    }
    for (size_t i = 0; i < t->n_layers; i++) {
        t->report.unmeasured += next_way(&t->layers[i]);
    }
    return NORI_OK;
}

/* Layers take the way that gains most; false: none does. */
static bool take_best(nori__tune_job *job)
{
    bool any = false;
    for (size_t i = 0; i < job->t->n_layers; i++) {
        nori__tuned *l = &job->t->layers[i];
        double best = 1 + job->o.least;
        l->taken = l->ask.usual;
        for (uint32_t w = 0; w < NORI__WAYS_MOST; w++) {
            if (l->pair[w].measured && l->pair[w].gain > best) {
                best = l->pair[w].gain;
                l->taken = w;
            }
        }
        l->way = l->taken;
        any = any || l->taken != l->ask.usual;
    }
    return any;
}

/* What does not gain a second time goes its usual way. False: nothing is left. */
static bool keep_gains(nori__tune_job *job)
{
    job->t->report.changed = 0;
    for (size_t i = 0; i < job->t->n_layers; i++) {
        nori__tuned *l = &job->t->layers[i];
        if (l->taken != l->ask.usual && l->pair[l->taken].gain <= 1 + job->o.least / 2) {
            l->taken = l->ask.usual;
        }
        l->way = l->taken;
        job->t->report.changed += l->taken != l->ask.usual;
    }
    return job->t->report.changed > 0;
}

static nori_status whole(nori__tune_job *job, const nori_model *model, nori_session_options *o)
{
    nori_session_options plain = *o;
    nori__tuned_whole pair[NORI__TUNE_PAIRS];
    plain.profile = 0;
    int i = 0;
    for (; i < NORI__TUNE_PAIRS && (i < NORI__TUNE_LEAST_PAIRS || nori__now_ns() < job->end); i++) {
        NORI__TRY(make_side(job, model, &plain, i % 2));
        NORI__TRY(make_side(job, model, &plain, 1 - i % 2)); /* each is made first in turns */
        uint64_t now = nori__now_ns(), left = job->end > now ? job->end - now : 0;
        NORI__TRY(nori__tune_whole(job, now + left / (uint64_t)(NORI__TUNE_PAIRS - i), &pair[i]));
    }
    nori__tune_judge(&job->t->report, pair, (size_t)i);
    return NORI_OK;
}

static nori_status tune(nori__tune_job *job, const nori_model *model, nori_session_options *o)
{
    nori_tuning *t = job->t;
    NORI__TRY(make_side(job, model, o, 0));
    NORI__TRY(find_layers(t, job->side[0], job->err));
    t->report.layers = t->n_layers;
    t->report.threads = job->side[0]->threads;
    job->n_out = job->side[0]->n_outputs;
    job->outputs = nori__arena_array(&t->arena, job->n_out + 1, sizeof(*job->outputs));
    for (int i = 0; i < 2; i++) {
        job->samples[i] = nori__arena_array(&t->arena, t->n_layers + 1, NORI__TUNE_RUNS * sizeof(double));
    }
    if (!job->outputs || !job->samples[0] || !job->samples[1]) {
        return nori__no_memory(job->err);
    }
    NORI__TRY(nori__check_inputs(job->side[0], job->o.inputs, job->o.input_count, job->err));
    NORI__TRY(try_ways(job, model, o));
    o->progress = NULL;
    bool any = take_best(job);
    if (any) { /* both anew: where memory came to lie is another */
        NORI__TRY(make_side(job, model, o, 1));
        NORI__TRY(make_side(job, model, o, 0));
        NORI__TRY(nori__tune_layers(job, share_of(job, AGAIN)));
        any = keep_gains(job);
    }
    NORI__TRY(any ? whole(job, model, o) : NORI_OK);
    if (!t->report.faster) {
        t->report.changed = 0;
        t->n_entries = 0;
    }
    return NORI_OK;
}

nori_status nori_tune(const nori_model *model, const nori_session_options *options,
                      const nori_tune_options *given, nori_tuning **tuning, nori_error *err)
{
    NORI__GIVEN(err, model);
    NORI__GIVEN(err, given);
    NORI__GIVEN(err, tuning);
    nori_session_options so;
    nori__tune_job job = {.err = err, .start = nori__now_ns()};
    *tuning = NULL;
    nori_tune_options_default(&job.o);
    memcpy(&job.o, given, given->size < sizeof(job.o) ? given->size : sizeof(job.o));
    NORI__GIVEN_LIST(err, job.o.inputs, job.o.input_count);
    if (!(job.o.seconds > 0) || job.o.seconds > 1e6 || !(job.o.least >= 0) || job.o.least > 10) {
        return nori__fail(err, NORI_ERROR_ARGUMENT,
                          "seconds is %g, more than 0 was expected; least is %g, 0 to 10 was expected",
                          job.o.seconds, job.o.least);
    }
    job.end = job.start + (uint64_t)(job.o.seconds * 1e9);
    nori__session_options(options, &so);
    so.profile = 1;
    so.split_only = 0;
    so.watch = NULL;
    so.cache_dir = NULL;
    const nori_allocator *a = model->source->allocator;
    nori_tuning *t = nori__alloc_zero(a, sizeof(*t));
    if (!t) {
        return nori__no_memory(err);
    }
    t->a = a;
    nori__arena_init(&t->arena, a);
    job.t = t;
    nori_status status = tune(&job, model, &so);
    nori_session_free(job.side[0]);
    nori_session_free(job.side[1]);
    t->report.seconds = (double)(nori__now_ns() - job.start) / 1e9;
    if (status != NORI_OK) {
        nori_tuning_free(t);
        return status;
    }
    *tuning = t;
    return NORI_OK;
}

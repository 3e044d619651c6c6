/* search_layers.c: which layers stay float so that the budget is met. Each layer is first put on
 * integers alone: what it then costs at the outputs is its own error, whatever others add. The errors
 * of layers add up, near enough, as they are small and have nothing to do with each other; so the
 * costliest go first, as many as the sum asks for, and a try tells whether that was enough. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/quantize/search.h"

#define MOST_GROUPS 40 /* layers are looked at in groups where there are more */
#define SAMPLES_EACH 2 /* tell which layers are costly; tries of the whole look at more */
#define MARGIN 0.8     /* of the noise the budget allows: errors do not add up exactly */

/* ---- what there is ---- */

static nori_status add_unit(nori__quantizer *q, const nori__node *n)
{
    char path[512];
    nori__node_path(n, path, sizeof(path));
    nori__q_unit *u = nori__arena_alloc(&q->arena, sizeof(*u));
    char *name = nori__arena_text(&q->arena, n->outputs[0]->name);
    char *shown = nori__arena_text(&q->arena, path);
    if (!u || !name || !shown) {
        return nori__no_memory(q->err);
    }
    *u = (nori__q_unit){.name = name, .path = shown, .alone = -1, .float_ns = -1, .int_ns = -1};
    bool ok = nori__map_put(&q->units, name, u) && nori__vec_push(&q->unit_list, u);
    return ok ? NORI_OK : nori__no_memory(q->err);
}

nori_status nori__q_find_units(nori__quantizer *q)
{
    nori__q_scratch scratch;
    NORI__TRY(nori__q_scratch_begin(q, &scratch));
    nori_status s = nori__q_select(q);
    nori__vec found;
    nori__vec_init(&found, q->allocator);
    for (nori__node *n = q->ir->main->first; s == NORI_OK && n; n = n->next) {
        if (q->chosen[n->id] && nori__q_role_of(n) == NORI__Q_WEIGHTED) {
            s = nori__vec_push(&found, n) ? NORI_OK : nori__no_memory(q->err);
        }
    }
    nori__q_scratch_end(q, &scratch);
    for (size_t i = 0; s == NORI_OK && i < found.count; i++) {
        s = add_unit(q, found.items[i]); /* in memory that stays */
    }
    nori__vec_free(&found);
    return s;
}

/* ---- each alone ---- */

static nori__q_unit *unit_at(const nori__quantizer *q, size_t i)
{
    return q->unit_list.items[i];
}

static void hide_all(nori__quantizer *q, bool hidden)
{
    for (size_t i = 0; i < q->unit_list.count; i++) {
        unit_at(q, i)->hidden = hidden;
    }
}

typedef struct nori__q_group {
    size_t first, count;
    double noise;
} group;

static nori_status look_alone(nori__q_tries *t, group *groups, size_t n_groups)
{
    nori__quantizer *q = t->q;
    nori_status s = NORI_OK;
    q->alone = true;
    t->probe.use = SAMPLES_EACH;
    for (size_t g = 0; s == NORI_OK && g < n_groups; g++) {
        nori__q_score score = {0};
        hide_all(q, true);
        for (size_t i = 0; i < groups[g].count; i++) {
            unit_at(q, groups[g].first + i)->hidden = false;
        }
        s = nori__q_attempt(t, NULL, &score, NULL);
        groups[g].noise = score.noise;
        for (size_t i = 0; i < groups[g].count; i++) {
            unit_at(q, groups[g].first + i)->alone = score.noise;
        }
        if (q->options->progress) {
            q->options->progress(q->options->progress_user, "layers", g + 1, n_groups);
        }
    }
    t->probe.use = 0;
    q->alone = false;
    hide_all(q, false);
    return s;
}

static int louder(const void *a, const void *b)
{
    const group *x = a, *y = b;
    if (x->noise != y->noise) {
        return x->noise > y->noise ? -1 : 1;
    }
    return x->first < y->first ? -1 : x->first > y->first;
}

/* ---- sparing ---- */

static double decibel(double noise)
{
    return noise > 0 ? -10 * log10(noise) : INFINITY;
}

/* The first k groups stay float, the others are on integers. */
static nori_status spare_first(nori__q_tries *t, const group *groups, size_t n_groups, size_t k)
{
    nori__quantizer *q = t->q;
    for (size_t g = 0; g < n_groups; g++) {
        const char *why = NULL;
        if (g < k) {
            why = nori__arena_printf(&q->arena,
                                     groups[g].count > 1
                                         ? "it and layers beside it cost more than the budget: %.1f dB "
                                           "with these alone on integers"
                                         : "it costs more than the budget: %.1f dB with it alone on "
                                           "integers",
                                     decibel(groups[g].noise));
            if (!why) {
                return nori__no_memory(q->err);
            }
        }
        for (size_t i = 0; i < groups[g].count; i++) {
            unit_at(q, groups[g].first + i)->why = why;
        }
    }
    return NORI_OK;
}

static nori_status try_first(nori__q_tries *t, const group *groups, size_t n_groups, size_t k,
                             nori__q_score *score)
{
    char label[64];
    NORI__TRY(spare_first(t, groups, n_groups, k));
    snprintf(label, sizeof(label), "the %zu costliest layers float", k);
    return nori__q_attempt(t, k == 1 ? "the costliest layer float" : label, score, NULL);
}

/* So many as leave less than the budget's noise by the sum of what each costs. */
static size_t predicted(const nori__q_tries *t, const group *groups, size_t n_groups)
{
    double allowed = pow(10, -(t->q->options->least_sqnr + t->stricter) / 10) * MARGIN, rest = 0;
    size_t k = n_groups;
    while (k > 0 && rest + groups[k - 1].noise <= allowed) {
        rest += groups[--k].noise;
    }
    return k > 0 ? k : 1;
}

static nori_status spare(nori__q_tries *t, const group *groups, size_t n_groups,
                         nori__q_score *score)
{
    size_t bad = 0, good = 0, k = predicted(t, groups, n_groups);
    nori__q_score best = *score;
    for (; good == 0; k += k / 2 > 1 ? k / 2 : 1) {
        k = k > n_groups ? n_groups : k;
        NORI__TRY(try_first(t, groups, n_groups, k, &best));
        if (nori__q_good(t->q, t->stricter, &best) || k == n_groups) {
            good = k;
        } else {
            bad = k;
        }
    }
    while (good - bad > 1) { /* fewer may do */
        size_t middle = bad + (good - bad) / 2;
        nori__q_score s;
        NORI__TRY(try_first(t, groups, n_groups, middle, &s));
        if (nori__q_good(t->q, t->stricter, &s)) {
            good = middle;
            best = s;
        } else {
            bad = middle;
        }
    }
    *score = best;
    return spare_first(t, groups, n_groups, good);
}

static nori_status make_groups(nori__q_tries *t)
{
    size_t count = t->q->unit_list.count, n = count < MOST_GROUPS ? count : MOST_GROUPS;
    t->groups = nori__arena_array(&t->q->arena, n + 1, sizeof(*t->groups));
    if (!t->groups) {
        return nori__no_memory(t->q->err);
    }
    t->n_groups = n;
    for (size_t g = 0; g < n; g++) {
        size_t first = g * count / n, end = (g + 1) * count / n;
        t->groups[g] = (group){first, end - first, 0};
    }
    NORI__TRY(look_alone(t, t->groups, n));
    qsort(t->groups, n, sizeof(*t->groups), louder);
    return NORI_OK;
}

nori_status nori__q_spare(nori__q_tries *t, nori__q_score *score)
{
    if (t->q->unit_list.count == 0) {
        return NORI_OK;
    }
    if (!t->groups) {
        NORI__TRY(make_groups(t));
    }
    return spare(t, t->groups, t->n_groups, score);
}

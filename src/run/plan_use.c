/* plan_use.c: a session over the blocks of a plan, and what callers may ask of plans. */
#include <stdio.h>

#include "providers/cpu/ways.h"
#include "run/plan_file.h"
#include "base/given.h"

static void tell(nori_session *s, const nori_session_options *o, nori_log_level level,
                 const char *text)
{
    nori_progress p = {.size = sizeof(p), .phase = "cache", .provider = "cpu", .text = text};
    nori__env_log(s->env, level, "plan: %s", text);
    if (o->progress) {
        o->progress(o->progress_user, &p);
    }
}

/* Whether the cpu provider, whose weights the blocks are, is asked for. */
static bool names_cpu(const char *list)
{
    bool found = !list;
    for (const char *p = list; p && *p && !found; p += *p == ',') {
        size_t n = strcspn(p, ",");
        found = n == 3 && memcmp(p, "cpu", 3) == 0;
        p += n;
    }
    return found;
}

nori_status nori__plan_use(nori_session *s, const nori_model *model, const nori_session_options *o,
                           const nori__ways *record, nori_error *err)
{
    const nori__plan_file *plan = model->source->plan;
    char *now = NULL;
    s->plan_note = "";
    if (record) {
        s->packs = nori__packs_new(s->allocator, NULL, 0, NULL);
        if (s->packs) {
            nori__packs_steer(s->packs, record->entries, record->count);
        }
        return s->packs ? NORI_OK : nori__no_memory(err);
    }
    if (o->split_only || (!plan && (!o->cache_dir || !names_cpu(o->providers) || model->changed ||
                                    nori__source_sealed(model->source)))) {
        return NORI_OK;
    }
    if (!plan) {
        return nori__plan_find(s, model, o, err);
    }
    if (!(now = nori__plan_made_for(&s->arena, o))) {
        return nori__no_memory(err);
    }
    nori__str was = plan->part[NORI__PLAN_TEXT];
    if (!nori__str_is(was, now) || model->changed) {
        char why[256], text[320];
        nori__plan_difference(was, now, why, sizeof(why));
        snprintf(text, sizeof(text), "miss: %s; its weights are packed anew",
                 model->changed ? "the model was changed" : why);
        tell(s, o, names_cpu(o->providers) ? NORI_LOG_WARNING : NORI_LOG_INFO, text);
        s->plan_note = nori__arena_text(&s->arena, text + strlen("miss: "));
        return s->plan_note ? NORI_OK : nori__no_memory(err);
    }
    s->packs = nori__packs_new(s->allocator, plan->entries, plan->count,
                               (const uint8_t *)plan->part[NORI__PLAN_BLOCKS].p);
    s->plan_note = NULL;
    if (s->packs) {
        char text[64];
        nori__packs_steer(s->packs, plan->ways, plan->n_ways);
        snprintf(text, sizeof(text), "hit: %zu blocks of packed weights", plan->count);
        tell(s, o, NORI_LOG_INFO, text);
    }
    return s->packs ? NORI_OK : nori__no_memory(err);
}

void nori__plan_used(nori_session *s, const nori_session_options *o)
{
    const nori__plan_file *plan = s->source->plan;
    char text[192];
    if (!s->packs || !plan || s->kept.path || plan->tuned_threads == 0) {
        return;
    }
    size_t unfit = nori__ways_unfit(s->packs);
    if (unfit > 0) {
        snprintf(text, sizeof(text), "miss: %zu of its %zu tuned layers are no such layers; they go their "
                 "usual way, and their weights are packed anew", unfit, plan->n_ways);
        tell(s, o, NORI_LOG_WARNING, text);
    }
    if (plan->tuned_threads != (uint32_t)s->threads) {
        /* The ways stay: results must not depend on the number of threads. */
        snprintf(text, sizeof(text), "it was tuned for %u thread%s, now there %s %d: its ways stay",
                 plan->tuned_threads, plan->tuned_threads == 1 ? "" : "s",
                 s->threads == 1 ? "is" : "are", s->threads);
        tell(s, o, NORI_LOG_INFO, text);
    }
}

void nori__plan_ready(const nori_session *s)
{
    size_t found = 0, made = 0;
    nori__str blocks = s->kept.blocks;
    if (s->packs && s->source->plan && s->source->file.data) {
        blocks = s->source->plan->part[NORI__PLAN_BLOCKS];
    }
    if (blocks.n > 0) {
        nori__packs_count(s->packs, &found, &made);
        nori__map_need(blocks.p, found > 0 ? blocks.n : 0);
    }
}

/* How many nodes go which way, as lines. NULL: no memory. */
static const char *ways_text(nori__arena *arena, const nori__plan_file *plan)
{
    nori__text t;
    nori__text_init(&t, arena->allocator);
    for (uint32_t kind = 0; nori__ways_name(kind); kind++) {
        for (uint32_t way = 0; nori__way_at(kind, way); way++) {
            size_t count = 0;
            for (size_t i = 0; i < plan->n_ways; i++) {
                count += plan->ways[i].kind == kind && plan->ways[i].way == way;
            }
            if (count > 0) {
                nori__text_printf(&t, "%zu node%s: %s %s\n", count, count == 1 ? "" : "s",
                                  nori__ways_name(kind), nori__way_at(kind, way)->name);
            }
        }
    }
    const char *copy = t.failed ? NULL : nori__arena_copy(arena, t.data ? t.data : "", t.size);
    nori__text_free(&t);
    return copy;
}

int nori_model_plan(const nori_model *model, nori_plan_info *info)
{
    NORI__ASKED(model, 0);
    const nori__plan_file *plan = model->source->plan;
    if (!plan) {
        return 0;
    }
    nori__arena *arena = &model->ir->arena;
    const char *text = nori__arena_copy(arena, plan->part[NORI__PLAN_TEXT].p,
                                        plan->part[NORI__PLAN_TEXT].n);
    const char *ways = ways_text(arena, plan);
    nori_plan_info i = {.size = info->size,
                        .ways = ways ? ways : "",
                        .made_for = text ? text : "",
                        .model_bytes = plan->part[NORI__PLAN_MODEL].n + plan->part[NORI__PLAN_DATA].n,
                        .packed_bytes = plan->part[NORI__PLAN_BLOCKS].n,
                        .blocks = plan->count,
                        .tuned_threads = (int)plan->tuned_threads,
                        .tuned_layers = plan->n_ways};
    memcpy(info, &i, i.size < sizeof(i) ? i.size : sizeof(i));
    return 1;
}

int nori_session_plan(const nori_session *s, nori_plan_use *use)
{
    NORI__ASKED(s, 0);
    NORI__ASKED(use, 0);
    nori_plan_use u = {.size = use->size, .why_not = s->plan_note ? s->plan_note : ""};
    if (!s->source->plan && !s->kept.path) {
        return 0;
    }
    if (s->kept.path && !s->kept.blocks.n) {
        u.why_not = s->kept.why;
    } else if (s->packs) {
        nori__packs_count(s->packs, &u.found, &u.packed);
    }
    memcpy(use, &u, u.size < sizeof(u) ? u.size : sizeof(u));
    return 1;
}

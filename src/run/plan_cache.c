/* plan_cache.c: packed weights kept in a session's cache folder: plans without a model.
 *
 * A file is named by a hash of the model's content and of the options that change its graph; what else
 * it was made for is its text, as that of any plan. Whoever can write to the folder can give wrong
 * numbers to the sessions that use it, and nothing worse. */
#include <stdio.h>

#include "platform/platform.h"
#include "run/plan_file.h"

#define KEPT_LEAST ((uint64_t)1 << 20) /* what is packed in less than a millisecond is not kept */

static void tell(const nori_session *s, const nori_session_options *o, const char *fmt, ...)
    NORI__PRINTF(3, 4);
static void tell(const nori_session *s, const nori_session_options *o, const char *fmt, ...)
{
    char text[768];
    va_list list;
    va_start(list, fmt);
    vsnprintf(text, sizeof(text), fmt, list);
    va_end(list);
    nori_progress p = {.size = sizeof(p), .phase = "cache", .provider = "cpu", .text = text};
    nori__env_log(s->env, NORI_LOG_INFO, "cache: %s", text);
    if (o->progress) {
        o->progress(o->progress_user, &p);
    }
}

/* The bytes of the file, and those of other files that the graphs' constants lie in. */
static void content_hash(const nori_model *model, nori__hash *h)
{
    const nori__source *s = model->source;
    nori__hash_add(h, s->data, s->data_bytes);
    for (const nori__graph *g = model->ir->graphs; s->external && g; g = g->next_graph) {
        for (const nori__value *v = g->values; v; v = v->next) {
            const nori_tensor *t = v->constant;
            if (t && t->type != NORI_STRING && nori__tensor_at(t)) {
                nori__hash_add(h, nori__tensor_at(t), t->bytes);
            }
        }
    }
}

/* Where the file is; what it must be made for. */
static nori_status name(nori_session *s, const nori_model *model, const nori_session_options *o,
                        nori_error *err)
{
    char content[NORI__HASH_TEXT], both[NORI__HASH_TEXT];
    nori__hash h = {0};
    char *made_for = nori__plan_made_for(&s->arena, o);
    if (!made_for) {
        return nori__no_memory(err);
    }
    content_hash(model, &h);
    nori__hash_text(&h, content);
    const char *options = strstr(made_for, "providers ");
    nori__hash_add(&h, options ? options : made_for, strlen(options ? options : made_for));
    nori__hash_text(&h, both);
    s->kept.made_for = nori__arena_printf(&s->arena, "%smodel %s\n", made_for, content);
    s->kept.path = nori__arena_printf(&s->arena, "%s/cpu-%s.noriplan", o->cache_dir, both);
    return s->kept.made_for && s->kept.path ? NORI_OK : nori__no_memory(err);
}

static const nori__plan_file *open(nori_session *s, char *why, size_t room)
{
    nori_error err = {0};
    nori__plan_file *plan = NULL;
    nori_status status = nori__map_open(s->kept.path, &s->kept.file, &err);
    if (status != NORI_OK) {
        s->kept.file = (nori__map_file){0};
        snprintf(why, room, "nothing is kept for this model (%.160s)", err.message);
        return NULL;
    }
    if (!nori__plan_is(s->kept.file.data, s->kept.file.size)) {
        snprintf(why, room, "%.200s is no plan", s->kept.path);
    } else if (nori__plan_open(&s->arena, s->kept.file.data, s->kept.file.size, &plan, &err) !=
               NORI_OK) {
        snprintf(why, room, "%.100s: %.140s", s->kept.path, err.message);
        plan = NULL;
    } else if (!nori__str_is(plan->part[NORI__PLAN_TEXT], s->kept.made_for)) {
        nori__plan_difference(plan->part[NORI__PLAN_TEXT], s->kept.made_for, why, room);
        plan = NULL;
    }
    if (!plan) {
        nori__map_close(&s->kept.file);
        s->kept.file = (nori__map_file){0};
    }
    return plan;
}

nori_status nori__plan_find(nori_session *s, const nori_model *model,
                            const nori_session_options *o, nori_error *err)
{
    NORI__TRY(name(s, model, o, err));
    const nori__plan_file *plan = open(s, s->kept.why, sizeof(s->kept.why));
    if (plan) {
        tell(s, o, "hit: %s, %zu blocks of packed weights", s->kept.path, plan->count);
        s->kept.blocks = plan->part[NORI__PLAN_BLOCKS];
        s->packs = nori__packs_new(s->allocator, plan->entries, plan->count,
                                   (const uint8_t *)plan->part[NORI__PLAN_BLOCKS].p);
    } else {
        s->kept.wanted = true;
        s->packs = nori__packs_new(s->allocator, NULL, 0, NULL);
    }
    return s->packs ? NORI_OK : nori__no_memory(err);
}

void nori__plan_keep(nori_session *s, const nori_session_options *o)
{
    nori_error err = {0};
    nori__plan_head head;
    if (!s->kept.wanted || s->packed_bytes < KEPT_LEAST) {
        return;
    }
    s->kept.wanted = false;
    tell(s, o, "miss: %s", s->kept.why);
    if (nori__plan_write_blocks(s, s->kept.made_for, s->kept.path, &head, &err) == NORI_OK) {
        tell(s, o, "kept: %s, %llu bytes", s->kept.path, (unsigned long long)head.bytes);
    } else {
        tell(s, o, "not kept: %s", err.message);
    }
}

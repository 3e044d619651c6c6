/* derive.c: models that tools make of others. What is small is written and read again, so that it is
 * checked like any file; data that lies in other files stays where it is and is lent: the new model
 * keeps the ones it came from alive. */
#include "run/run.h"

typedef struct lending {
    const nori_model *const *from;
    size_t count;
    nori__arena *arena;
    nori__source *source;
} lending;

/* The model in whose bytes a message's text lies. */
static nori__source *owner(const lending *l, const char *text)
{
    for (size_t i = 0; i < l->count; i++) {
        nori__source *s = l->from[i]->source;
        uintptr_t begin = (uintptr_t)s->data, at = (uintptr_t)text;
        if (at >= begin && at - begin < s->bytes) {
            return s;
        }
    }
    return NULL;
}

static nori_status lend(void *user, nori__pb_tensor *t, bool initializer, nori_error *err)
{
    lending *l = user;
    (void)initializer;
    if (t->data_location != 1) {
        return NORI_OK;
    }
    nori__source *s = t->external.count > 0 ? owner(l, t->external.items[0].key.p) : NULL;
    int64_t count;
    size_t bytes;
    nori__str view;
    bool of_file;
    if (!s || !nori__dims_count((int)t->dims.count, t->dims.items, &count) ||
        !nori__type_bytes((nori_type)t->data_type, count, &bytes)) {
        return nori__fail(err, NORI_ERROR_MODEL, "tensor %.*s: its external data is not said rightly",
                          (int)(t->name.n < 200 ? t->name.n : 200), t->name.n ? t->name.p : "");
    }
    NORI__TRY(nori__external_find(s->external, t, bytes, &view, &of_file, err));
    const char *location = nori__external_lend(l->source->external, view, of_file);
    nori__pb_entry *entry = nori__arena_array(l->arena, 1, sizeof(*entry));
    if (!location || !entry) {
        return nori__no_memory(err);
    }
    entry->key = NORI__STR("location");
    entry->value = nori__str_of(location);
    t->external.items = entry;
    t->external.count = 1;
    return NORI_OK;
}

nori_status nori__model_from_pb(const nori_model *const *from, size_t count,
                                const nori__pb_model *pb, nori_model **model, nori_error *err)
{
    nori__arena scratch;
    nori__pb_model *lent = NULL;
    nori__source *source = NULL;
    *model = NULL;
    nori_status s = nori__source_new(from[0]->source->env, "", &source, err);
    if (s != NORI_OK) {
        nori__source_release(source);
        return s;
    }
    nori__arena_init(&scratch, source->allocator);
    for (size_t i = 0; i < count && i < NORI__COUNT(source->parents); i++) {
        source->parents[i] = from[i]->source;
        atomic_fetch_add(&from[i]->source->refs, 1);
    }
    s = nori__external_create(source->allocator, "", "", false, &source->external, err);
    if (s == NORI_OK) {
        lending l = {from, count, &scratch, source};
        s = nori__pb_each_tensor(&scratch, pb, lend, &l, &lent, err);
    }
    s = s == NORI_OK ? nori__pb_write_model(lent, &source->made, err) : s;
    nori__arena_free(&scratch);
    if (s != NORI_OK) {
        nori__source_release(source);
        return s;
    }
    return nori__model_of_made(source, model, err);
}

nori_status nori__model_from_ir(const nori_model *from, const nori__ir *ir, nori_model **model,
                                nori_error *err)
{
    nori__arena scratch;
    nori__pb_model *pb = NULL;
    *model = NULL;
    nori__arena_init(&scratch, from->source->allocator);
    nori_status s = nori__ir_to_pb_outside(ir, &scratch, &pb, err);
    s = s == NORI_OK ? nori__model_from_pb(&from, 1, pb, model, err) : s;
    nori__arena_free(&scratch);
    return s;
}

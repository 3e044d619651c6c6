/* plan_write.c: making a plan file: a session is compiled, and what its kernels packed is written
 * behind the model. */
#include "run/place_data.h"
#include "run/plan_file.h"

#define INSIDE 64 /* bytes of an initializer that stay in its message */

typedef struct writing {
    nori__placing data;
    nori__plan_head head;
    nori__str part[NORI__PLAN_PART_COUNT]; /* those before the data */
    nori__pack_entry *entries;
    void *const *bytes; /* of blocks */
    size_t count;
    nori__out_file *out;
    uint64_t at;
} writing;

static uint64_t round_up(uint64_t v, uint64_t step)
{
    return (v + step - 1) / step * step;
}

static nori_status write(writing *w, uint64_t at, const void *bytes, size_t size, nori_error *err)
{
    if (at > w->at) {
        NORI__TRY(nori__out_zeros(w->out, at - w->at, err));
    }
    w->at = at + size;
    return size > 0 ? nori__out_write(w->out, bytes, size, err) : NORI_OK;
}

/* Large blocks begin at pages of their own. */
static nori_status table(writing *w, nori_session *s, nori__arena *arena, nori_error *err)
{
    const nori__pack_entry *noted;
    uint64_t end = 0;
    w->count = nori__packs_noted(s->packs, &noted, &w->bytes);
    w->entries = nori__arena_array(arena, w->count + 1, sizeof(*w->entries));
    if (!w->entries) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < w->count; i++) {
        w->entries[i] = noted[i];
        w->entries[i].offset =
            round_up(end, noted[i].size >= 16 * NORI__PLAN_PAGE ? NORI__PLAN_PAGE : NORI__PACK_ALIGN);
        end = w->entries[i].offset + noted[i].size;
    }
    w->head.part[NORI__PLAN_BLOCKS].size = end;
    w->part[NORI__PLAN_TABLE] = (nori__str){(const char *)w->entries, w->count * sizeof(*w->entries)};
    return nori__packs_check(w->entries, w->count, end)
               ? NORI_OK
               : nori__fail(err, NORI_ERROR_INTERNAL, "packed weights are not in order");
}

static void lay_out(writing *w)
{
    nori__plan_head *h = &w->head;
    char hash[NORI__HASH_TEXT];
    uint64_t end = sizeof(*h);
    memcpy(h->magic, NORI__PLAN_MAGIC, sizeof(h->magic));
    h->version = NORI__PLAN_VERSION;
    h->part[NORI__PLAN_DATA].size = w->data.end;
    for (int i = 0; i < NORI__PLAN_PART_COUNT; i++) {
        h->part[i].at = round_up(end, i >= NORI__PLAN_DATA ? NORI__PLAN_PAGE
                                      : i == NORI__PLAN_TABLE ? 64 : 1);
        h->part[i].size = i <= NORI__PLAN_TABLE ? w->part[i].n : h->part[i].size;
        end = h->part[i].at + h->part[i].size;
    }
    h->bytes = end;
    nori__plan_hash(h, w->part, hash);
    memcpy(h->hash, hash, sizeof(h->hash));
}

static nori_status write_all(writing *w, nori_error *err)
{
    const nori__plan_head *h = &w->head;
    NORI__TRY(write(w, 0, h, sizeof(*h), err));
    for (int i = NORI__PLAN_TEXT; i <= NORI__PLAN_TABLE; i++) {
        NORI__TRY(write(w, h->part[i].at, w->part[i].p, w->part[i].n, err));
    }
    for (size_t i = 0; i < w->data.data.count; i++) {
        const nori__placed *p = w->data.data.items[i];
        NORI__TRY(write(w, h->part[NORI__PLAN_DATA].at + p->offset, p->bytes.p, p->bytes.n, err));
        if (p->of_file) {
            nori__map_relax_range(p->bytes.p, p->bytes.n);
        }
    }
    for (size_t i = 0; i < w->count; i++) {
        NORI__TRY(write(w, h->part[NORI__PLAN_BLOCKS].at + w->entries[i].offset, w->bytes[i],
                        (size_t)w->entries[i].size, err));
    }
    return write(w, h->bytes, NULL, 0, err);
}

static nori_status prepare(writing *w, nori_session *s, const nori_session_options *o,
                           nori__text *messages, nori_error *err)
{
    nori__pb_model *whole;
    nori__arena *arena = w->data.arena;
    char *text = nori__plan_made_for(arena, o);
    if (!text) {
        return nori__no_memory(err);
    }
    w->part[NORI__PLAN_TEXT] = nori__str_of(text);
    w->data.location = NORI__PLAN_DATA_NAME;
    NORI__TRY(nori__pb_each_tensor(arena, w->data.model->source->pb, nori__place_tensor, &w->data,
                                   &whole, err));
    NORI__TRY(nori__pb_write_model(whole, messages, err));
    w->part[NORI__PLAN_MODEL] = (nori__str){messages->data, messages->size};
    NORI__TRY(table(w, s, arena, err));
    lay_out(w);
    return NORI_OK;
}

static nori_status write_file(writing *w, const char *path, nori_error *err)
{
    NORI__TRY(nori__out_open(w->data.arena->allocator, path, &w->out, err));
    nori_status status = write_all(w, err);
    if (status == NORI_OK) {
        return nori__out_commit(w->out, err);
    }
    nori__out_abort(w->out);
    return status;
}

nori_status nori__plan_write_blocks(nori_session *s, const char *made_for, const char *path,
                                    nori__plan_head *head, nori_error *err)
{
    nori__arena arena;
    writing w = {.at = 0};
    nori__arena_init(&arena, s->allocator);
    nori__placing_init(&w.data, NULL, INSIDE, &arena);
    w.part[NORI__PLAN_TEXT] = nori__str_of(made_for);
    nori_status status = table(&w, s, &arena, err);
    if (status == NORI_OK) {
        lay_out(&w);
        status = write_file(&w, path, err);
    }
    *head = w.head;
    nori__placing_free(&w.data);
    nori__arena_free(&arena);
    return status;
}

/* The head and entries of the ways' part. */
static nori_status put_ways(writing *w, const nori__ways *ways, nori_error *err)
{
    uint32_t head[2] = {(uint32_t)ways->threads, 0};
    size_t entries = ways->count * sizeof(*ways->entries);
    if (ways->threads == 0) {
        return NORI_OK;
    }
    char *part = nori__arena_alloc(w->data.arena, sizeof(head) + entries);
    if (!part) {
        return nori__no_memory(err);
    }
    memcpy(part, head, sizeof(head));
    if (entries > 0) {
        memcpy(part + sizeof(head), ways->entries, entries);
    }
    w->part[NORI__PLAN_WAYS] = (nori__str){part, sizeof(head) + entries};
    return NORI_OK;
}

static nori_status write_plan(const nori_model *model, nori_session *s,
                              const nori_session_options *o, const nori__ways *ways,
                              const char *path, nori_plan_info *info, nori_error *err)
{
    nori__arena arena;
    nori__text messages;
    writing w = {.at = 0};
    nori__arena_init(&arena, model->source->allocator);
    nori__text_init(&messages, arena.allocator);
    nori__placing_init(&w.data, model, INSIDE, &arena);
    nori_status status = put_ways(&w, ways, err);
    status = status == NORI_OK ? prepare(&w, s, o, &messages, err) : status;
    status = status == NORI_OK ? write_file(&w, path, err) : status;
    if (status == NORI_OK && info) {
        nori_plan_info i = {.size = info->size,
                            .made_for = "",
                            .ways = "",
                            .model_bytes = w.head.part[NORI__PLAN_MODEL].size + w.data.end,
                            .packed_bytes = w.head.part[NORI__PLAN_BLOCKS].size,
                            .blocks = w.count,
                            .tuned_threads = ways->threads,
                            .tuned_layers = ways->count};
        memcpy(info, &i, i.size < sizeof(i) ? i.size : sizeof(i));
    }
    nori__placing_free(&w.data);
    nori__text_free(&messages);
    nori__arena_free(&arena);
    return status;
}

nori_status nori_plan_write(const nori_model *model, const nori_session_options *options,
                            const char *path, nori_plan_info *info, nori_error *err)
{
    static const nori__ways usual = {NULL, 0, 0};
    return nori__plan_write_with(model, options, &usual, path, info, err);
}

nori_status nori__plan_write_with(const nori_model *model, const nori_session_options *options,
                                  const nori__ways *ways, const char *path, nori_plan_info *info,
                                  nori_error *err)
{
    nori_session_options o;
    nori_session *session = NULL;
    nori_model *own = NULL;
    if (!model || !path || !path[0]) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "a model and a path to write to were expected");
    }
    if (nori__source_sealed(model->source)) {
        nori_status s = nori__fail(err, NORI_ERROR_ARGUMENT,
                                   "the model was sealed: its plan would hold its weights in the open");
        nori__hint(err, "make the plan of the open model, and seal the plan");
        return s;
    }
    nori__session_options(options, &o);
    nori_status status = NORI_OK;
    if (model->changed) {
        status = nori__model_from_ir(model, model->ir, &own, err);
        model = own;
    }
    status = status == NORI_OK ? nori__session_make(model, &o, ways, &session, err) : status;
    if (status == NORI_OK) {
        status = write_plan(model, session, &o, ways, path, info, err);
    }
    nori_session_free(session);
    nori_model_free(own);
    return status;
}

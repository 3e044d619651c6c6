/* parts.c: giving parts of a session's graph to the execution providers that take them. */
#include "run/run.h"

/* The parts to compile, as progress is told. */
typedef struct tally {
    size_t done, total;
} tally;

static nori_status compile_part(const nori__opened *o, nori_part *part, tally *t,
                                const nori_session_options *options, nori_error *err)
{
    part->provider = o->provider;
    part->self = o->self;
    part->label = o->label;
    part->info = &o->info;
    part->dim_names = options->dim_names;
    part->dim_values = options->dim_values;
    part->dim_count = options->dim_count;
    part->cache_dir = options->cache_dir;
    part->progress = options->progress;
    part->progress_user = options->progress_user;
    nori__tell_progress(options, "compile", o->label, t->done, t->total);
    nori_status status = o->provider->compile(o->self, part, &part->compiled, err);
    nori__tell_progress(options, "compile", o->label, ++t->done, t->total);
    part->dim_count = 0; /* the caller's memory, as the next two */
    part->cache_dir = NULL;
    part->progress = NULL;
    return status;
}

/* The part of a whole model as the report shows it: nothing was weighed. */
static nori_status note_model(nori_session *s, nori_part *part, nori__island **island,
                              nori_error *err)
{
    *island = nori__arena_alloc(&s->arena, sizeof(**island));
    if (!*island || !nori__vec_push(&s->split.islands, *island)) {
        return nori__no_memory(err);
    }
    **island = (nori__island){.n_nodes = part->n_nodes, .nodes = part->nodes, .why = "",
                              .n_in = part->n_in, .n_out = part->n_out, .whole = true,
                              .given = true};
    return NORI_OK;
}

/* Not taking a model whole is no news when nodes follow; giving up what was claimed is. */
static nori_status refuse(nori_session *s, nori__island *island, const char *label,
                          const nori_error *why, nori_error *err)
{
    island->given = false;
    island->why = nori__arena_text(&s->arena, why->message);
    nori__env_log(s->env, island->whole ? NORI_LOG_INFO : NORI_LOG_WARNING,
                  "%s does not take %s%u nodes: %s", label,
                  island->whole ? "the model's " : "a part of ", island->n_nodes, why->message);
    return island->why ? NORI_OK : nori__no_memory(err);
}

nori_status nori__give_model(nori_session *s, const nori_session_options *options, bool *whole,
                             nori_error *err)
{
    *whole = false;
    const nori__opened *o = &s->providers[0];
    if (s->n_providers == 0 || !o->provider->claim_model || !s->ir->pb) {
        return NORI_OK;
    }
    nori_part *part = NULL;
    NORI__TRY(nori__part_of_model(&s->arena, s->allocator, s->ir, &part, err));
    if (!nori__vec_push(&s->parts, part)) {
        nori__part_free(part);
        return nori__no_memory(err);
    }
    part->file = s->model_file;
    part->dim_names = options->dim_names;
    part->dim_values = options->dim_values;
    part->dim_count = options->dim_count;
    nori_claim claim = {.size = sizeof(claim)};
    nori_error why = {0};
    nori__island *island = NULL;
    nori_status status = o->provider->claim_model(o->self, part, &claim, &why);
    part->dim_count = 0;
    if (status == NORI_OK) {
        NORI__TRY(note_model(s, part, &island, err));
        if (!claim.taken) {
            claim.reason[sizeof(claim.reason) - 1] = 0;
            nori__fail(&why, NORI_ERROR_UNSUPPORTED, "%s", claim.reason);
            status = NORI_ERROR_UNSUPPORTED;
        } else if (options->split_only) {
            *whole = true;
            return NORI_OK;
        } else {
            status = compile_part(o, part, &(tally){0, 1}, options, &why);
        }
    }
    if (status == NORI_ERROR_UNSUPPORTED && island) {
        return refuse(s, island, o->label, &why, err);
    }
    if (status != NORI_OK) {
        nori__fail(err, status, "%s", why.message);
        nori__hint(err, "%s", why.hint);
        return status;
    }
    *whole = true;
    return nori__part_place(part, err);
}

/* ---- by nodes ---- */

static nori_status compile_island(nori_session *s, nori__island *island, uint32_t *scratch,
                                  tally *t, const nori_session_options *options, nori__vec *made,
                                  nori_error *err)
{
    nori_part *part = NULL;
    const nori__opened *o = &s->providers[island->bidder];
    NORI__TRY(nori__part_of_nodes(&s->arena, s->allocator, s->ir, island->nodes, island->n_nodes,
                                  scratch, &part, err));
    if (!nori__vec_push(&s->parts, part)) {
        nori__part_free(part);
        return nori__no_memory(err);
    }
    nori_error why = {0};
    nori_status status = compile_part(o, part, t, options, &why);
    if (status == NORI_ERROR_UNSUPPORTED) {
        return refuse(s, island, o->label, &why, err);
    }
    if (status != NORI_OK) {
        nori__fail(err, status, "%s", why.message);
        nori__hint(err, "%s", why.hint);
        return status;
    }
    return nori__vec_push(made, part) ? NORI_OK : nori__no_memory(err);
}

/* Parts are taken out of the graph when all are compiled: until then each sees it whole. */
static nori_status compile_islands(nori_session *s, const nori_session_options *options,
                                   nori__vec *made, nori_error *err)
{
    size_t bytes = ((size_t)s->ir->value_count + 1) * sizeof(uint32_t);
    uint32_t *scratch = nori__alloc_zero(s->allocator, bytes);
    nori_status status = scratch ? NORI_OK : nori__no_memory(err);
    tally t = {0};
    for (size_t i = 0; i < s->split.islands.count; i++) {
        t.total += ((const nori__island *)s->split.islands.items[i])->given;
    }
    for (size_t i = 0; i < s->split.islands.count && status == NORI_OK; i++) {
        nori__island *island = s->split.islands.items[i];
        if (island->given) {
            status = compile_island(s, island, scratch, &t, options, made, err);
        }
    }
    nori__release(s->allocator, scratch, bytes);
    return status;
}

/* What is started early leaves more to do before it is waited for (frame_queue.c). */
static void start_early(const nori__ir *ir, nori_status status)
{
    for (nori__node *n = ir->main->first, *next; n && status == NORI_OK; n = next) {
        next = n->next;
        if (n->part && nori__part_has_queue(n->part)) {
            nori__node_advance(n);
        }
    }
}

nori_status nori__give_parts(nori_session *s, const nori_session_options *options, nori_error *err)
{
    nori__bidder *bidders = nori__arena_array(&s->arena, s->n_providers + 1, sizeof(*bidders));
    if (!bidders) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < s->n_providers; i++) {
        nori__opened *o = &s->providers[i];
        bidders[i] = (nori__bidder){o->provider, o->self, o->label, &o->info};
    }
    NORI__TRY(nori__partition(&s->arena, s->ir, bidders, s->n_providers, &s->split, err));
    if (options->split_only || s->split.islands.count == 0) {
        return NORI_OK;
    }
    nori__vec made;
    nori__vec_init(&made, s->allocator);
    nori_status status = compile_islands(s, options, &made, err);
    for (size_t i = 0; i < made.count && status == NORI_OK; i++) {
        status = nori__part_place(made.items[i], err);
    }
    if (made.count > 0 && status == NORI_OK) {
        status = nori__ir_order(s->ir, err);
    }
    start_early(s->ir, status);
    nori__vec_free(&made);
    return status;
}

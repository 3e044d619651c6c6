/* parts.c: giving parts of a session's graph to the execution providers that take them. */
#include "run/run.h"

static nori_status compile_part(nori_session *s, const nori__opened *o, nori_part *part,
                                const nori_session_options *options, nori_error *err)
{
    part->provider = o->provider;
    part->self = o->self;
    part->label = o->label;
    part->serial = o->info.serial != 0;
    part->dim_names = options->dim_names;
    part->dim_values = options->dim_values;
    part->dim_count = options->dim_count;
    nori_status status = o->provider->compile(o->self, part, &part->compiled, err);
    part->dim_count = 0; /* the caller's memory */
    (void)s;
    return status;
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
    nori_claim claim = {.size = sizeof(claim)};
    NORI__TRY(o->provider->claim_model(o->self, part, &claim, err));
    if (!claim.taken) {
        return NORI_OK;
    }
    nori_error why = {0};
    nori_status status = compile_part(s, o, part, options, &why);
    if (status == NORI_ERROR_UNSUPPORTED) {
        nori__env_log(s->env, NORI_LOG_WARNING, "%s does not take the model: %s", o->label,
                      why.message);
        return NORI_OK;
    }
    if (status != NORI_OK) {
        nori__fail(err, status, "%s", why.message);
        nori__hint(err, "%s", why.hint);
        return status;
    }
    *whole = true;
    return nori__part_place(part, err);
}

int nori_session_provider(const nori_session *s, size_t index, const char **label,
                          const char **engine)
{
    if (index >= s->n_providers) {
        return 0;
    }
    *label = s->providers[index].label;
    *engine = s->providers[index].info.engine;
    return 1;
}

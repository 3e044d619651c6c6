/* versus_load.c: both sides of a comparison loaded, in turns, with the time that takes. */
#include <stdio.h>
#include <stdlib.h>

#include "base/given.h"
#include "tools/versus/versus.h"

#define MOST_LOADS 5
#define LOAD_BUDGET_NS 3000000000u /* no further loads once this much time is gone */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double nori__versus_quantile(double *values, size_t count, double quantile)
{
    if (count == 0) {
        return 0;
    }
    qsort(values, count, sizeof(*values), by_value);
    double at = quantile * (double)(count - 1);
    size_t low = (size_t)at;
    size_t high = low + 1 < count ? low + 1 : low;
    return values[low] + (at - (double)low) * (values[high] - values[low]);
}

static nori_session *make(nori_versus *v, const versus_side *side, const char *path,
                          const nori_load_options *load, nori_error *err)
{
    nori_model *model = NULL;
    nori_session *session = NULL;
    if (nori_model_load(v->env, path, load, &model, err) == NORI_OK) {
        nori_session_create(model, &side->options, &session, err);
    }
    nori_model_free(model);
    return session;
}

/* Opens the providers once more and keeps them, so that what is loaded once a process (libraries,
 * environments) is not part of each load. */
static nori_status hold(nori_versus *v, versus_side *side, nori_error *err)
{
    const char *list = side->options.providers ? side->options.providers
                                               : nori_provider_at(0)->name;
    size_t most = 1;
    for (const char *p = list; *p; p++) {
        most += *p == ',';
    }
    side->held = nori__arena_array(&v->arena, most, sizeof(*side->held));
    char *text = nori__arena_text(&v->arena, list), *spec;
    if (!side->held || !text) {
        return nori__no_memory(err);
    }
    const nori_provider_open how = {.threads = side->options.threads,
                                    .level = side->options.level,
                                    .cache_dir = side->options.cache_dir};
    uint64_t start = nori__now_ns();
    while ((spec = nori__provider_next(&text)) != NULL) {
        NORI__TRY(nori__provider_open(spec, &how, &v->arena, &side->held[side->n_held], err));
        side->n_held++;
    }
    side->times.start_ms = (double)(nori__now_ns() - start) / 1e6;
    snprintf(side->times.provider, sizeof(side->times.provider), "%s", side->held[0].label);
    snprintf(side->times.engine, sizeof(side->times.engine), "%s", side->held[0].info.engine);
    return NORI_OK;
}

/* A yardstick must not quietly measure another engine. Kernels of the reference provider are what
 * a kernel provider falls back to and count as its own; a provider of parts must take all. */
static nori_status check_nodes(const versus_side *side, nori_error *err)
{
    const nori__opened *o = &side->held[0];
    const nori__plan *plan = side->session->plan;
    uint32_t others = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        others += !plan->steps[i].node->part;
    }
    if (!(o->provider->claim || o->provider->claim_model) || others == 0) {
        return NORI_OK;
    }
    return nori__fail(err, NORI_ERROR_UNSUPPORTED,
                      "%s does not run the whole model: %u nodes are left to others", o->label,
                      others);
}

static nori_status load_both(nori_versus *v, const char *path, const nori_load_options *load,
                             nori_error *err)
{
    double wall[2][MOST_LOADS], cpu[2][MOST_LOADS];
    uint64_t begin = nori__now_ns();
    for (v->loads = 0;
         v->loads < MOST_LOADS && (v->loads == 0 || nori__now_ns() - begin < LOAD_BUDGET_NS);
         v->loads++) {
        for (int i = 0; i < 2; i++) {
            versus_side *side = &v->side[i];
            nori_session_free(side->session);
            uint64_t start = nori__now_ns(), start_cpu = nori__cpu_ns();
            side->session = make(v, side, path, load, err);
            cpu[i][v->loads] = (double)(nori__cpu_ns() - start_cpu) / 1e6;
            wall[i][v->loads] = (double)(nori__now_ns() - start) / 1e6;
            if (!side->session) {
                return err ? err->status : NORI_ERROR_INTERNAL;
            }
        }
    }
    for (int i = 0; i < 2; i++) {
        v->side[i].times.load_ms = nori__versus_quantile(wall[i], (size_t)v->loads, 0.5);
        v->side[i].times.load_cpu_ms = nori__versus_quantile(cpu[i], (size_t)v->loads, 0.5);
    }
    return NORI_OK;
}

/* Reads the file once, so that neither side pays for the disk. */
static nori_status warm_file(const char *path, nori_error *err)
{
    nori__map_file file;
    NORI__TRY(nori__map_open(path, &file, err));
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < file.size; i += 4096) {
        sum = (uint8_t)(sum + file.data[i]);
    }
    nori__map_close(&file);
    return NORI_OK;
}

static nori_status open_both(nori_versus *v, const char *path, const nori_load_options *load,
                             nori_error *err)
{
    NORI__TRY(warm_file(path, err));
    for (int i = 0; i < 2; i++) {
        NORI__TRY(hold(v, &v->side[i], err));
    }
    NORI__TRY(load_both(v, path, load, err));
    v->n_out = v->side[0].session->n_outputs;
    if (v->side[1].session->n_outputs != v->n_out) {
        return nori__fail(err, NORI_ERROR_INTERNAL, "the two sides have different outputs");
    }
    v->difference = nori__arena_array(&v->arena, v->n_out + 1, sizeof(*v->difference));
    for (int i = 0; i < 2; i++) {
        versus_side *side = &v->side[i];
        side->outputs = nori__arena_array(&v->arena, v->n_out + 1, sizeof(*side->outputs));
        if (!side->outputs || !v->difference) {
            return nori__no_memory(err);
        }
        NORI__TRY(check_nodes(side, err));
        /* A part makes its outputs itself: giving it some would add a copy that its users do not
         * have. A kernel writes into what it is given. */
        side->reuse = true;
        for (uint32_t k = 0; k < side->session->plan->n_steps; k++) {
            side->reuse = side->reuse && !side->session->plan->steps[k].node->part;
        }
    }
    return NORI_OK;
}

nori_status nori_versus_open(nori_env *env, const char *path, const nori_load_options *load,
                             const nori_session_options *const sides[2], nori_versus **versus,
                             nori_error *error)
{
    NORI__GIVEN(error, path);
    NORI__GIVEN(error, sides);
    NORI__GIVEN(error, sides[0]);
    NORI__GIVEN(error, sides[1]);
    NORI__GIVEN(error, versus);
    nori_error own = {0}, *err = error ? error : &own;
    const nori_allocator *a = nori__env_allocator(env);
    *versus = NULL;
    nori_versus *v = nori__alloc_zero(a, sizeof(*v));
    if (!v) {
        return nori__no_memory(err);
    }
    v->a = a;
    v->env = env;
    nori__arena_init(&v->arena, a);
    for (int i = 0; i < 2; i++) {
        nori_session_options *o = &v->side[i].options;
        nori_session_options_default(o);
        memcpy(o, sides[i], sides[i]->size < sizeof(*o) ? sides[i]->size : sizeof(*o));
        o->threads = o->threads > 0 ? o->threads : nori_env_threads(env);
        o->fallback = 0;
    }
    nori_status status = open_both(v, path, load, err);
    if (status != NORI_OK) {
        nori_versus_free(v);
        return status;
    }
    *versus = v;
    return NORI_OK;
}

nori_session *nori_versus_session(const nori_versus *v, int side)
{
    NORI__ASKED(v, NULL);
    return side == 0 || side == 1 ? v->side[side].session : NULL;
}

void nori_versus_free(nori_versus *v)
{
    if (!v) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        versus_side *side = &v->side[i];
        for (size_t k = 0; side->outputs && k < v->n_out; k++) {
            nori_tensor_free(side->outputs[k]);
        }
        nori_session_free(side->session);
        for (size_t k = 0; k < side->n_held; k++) {
            nori__provider_close(&side->held[k]);
        }
    }
    nori__arena_free(&v->arena);
    const nori_allocator *a = v->a;
    nori__release(a, v, sizeof(*v));
}

/* session.c: compiling a model for providers, and running it. */
#include "base/built.h"
#include "base/given.h"
#include "onnx/model_limits.h"
#include "ops/arity.h"
#include "ops/resolve.h"
#include "ops/support.h"
#include "passes/passes.h"
#include "platform/env_limits.h"
#include "providers/providers.h"
#include "run/plan_file.h"

#define PACKED_MUCH ((uint64_t)1 << 20)

void nori_session_options_default(nori_session_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_session_options){.size = sizeof(*options), .level = 2};
}

/* ---- providers ---- */

static nori_status add_provider(nori_session *s, const char *spec, const nori_session_options *o,
                                nori_error *err)
{
    nori_error why = {0};
    const nori_provider_open how = {.threads = s->threads,
                                    .level = o->level,
                                    .cache_dir = o->cache_dir,
                                    .report = o->progress,
                                    .report_user = o->progress_user};
    nori_status status =
        nori__provider_open(spec, &how, &s->arena, &s->providers[s->n_providers], &why);
    if (status == NORI_OK) {
        s->n_providers++;
        return NORI_OK;
    }
    if (o->fallback && status == NORI_ERROR_UNAVAILABLE) {
        nori__env_log(s->env, NORI_LOG_WARNING, "going on without provider %s: %s", spec,
                      why.message);
        return NORI_OK;
    }
    nori__fail(err, status, "%s", why.message);
    nori__hint(err, "%s", why.hint);
    return status;
}

static nori_status open_providers(nori_session *s, const nori_session_options *o, nori_error *err)
{
    const char *list = o->providers ? o->providers : nori_provider_at(0)->name;
    size_t most = 1;
    for (const char *p = list; *p; p++) {
        most += *p == ',';
    }
    s->providers = nori__arena_array(&s->arena, most, sizeof(*s->providers));
    char *text = nori__arena_text(&s->arena, list), *spec;
    if (!s->providers || !text) {
        return nori__no_memory(err);
    }
    while ((spec = nori__provider_next(&text)) != NULL) {
        NORI__TRY(add_provider(s, spec, o, err));
    }
    return NORI_OK;
}

/* ---- compiling ---- */

void nori__tell_progress(const nori_session_options *o, const char *phase, const char *provider,
                         size_t done, size_t total)
{
    nori_progress p = {.size = sizeof(p), .phase = phase, .provider = provider, .done = done,
                       .total = total, .text = ""};
    if (o->progress) {
        o->progress(o->progress_user, &p);
    }
}

static nori_status fix_dims(nori_session *s, const nori_session_options *o, nori_error *err)
{
    for (size_t i = 0; i < o->dim_count; i++) {
        bool found = false;
        if (o->dim_values[i] < 0) {
            return nori__fail(err, NORI_ERROR_ARGUMENT, "dimension %s cannot be %lld",
                              o->dim_names[i], (long long)o->dim_values[i]);
        }
        for (nori__graph *g = s->ir->graphs; g; g = g->next_graph) {
            for (nori__value *v = g->values; v; v = v->next) {
                for (int d = 0; v->type.kind == NORI_KIND_TENSOR && d < v->type.rank; d++) {
                    nori__dim *dim = &v->type.dims[d];
                    if (dim->name && nori__same(dim->name, o->dim_names[i])) {
                        *dim = nori__dim_of(o->dim_values[i]);
                        found = true;
                    }
                }
            }
        }
        if (!found) {
            nori_status status = nori__fail(err, NORI_ERROR_ARGUMENT,
                                            "no dimension is named \"%s\"", o->dim_names[i]);
            nori__hint(err, "`nori inspect` shows the names of the model's dimensions");
            return status;
        }
    }
    return NORI_OK;
}

static void index_steps(nori_session *s, const nori__plan *plan)
{
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        s->steps[plan->steps[i].id] = &plan->steps[i];
        for (uint32_t k = 0; k < plan->steps[i].n_sub; k++) {
            index_steps(s, plan->steps[i].sub[k]);
        }
    }
}

static const nori_allocator *kernel_memory(const nori_session *s)
{
    const nori__packs *packs = s->packs ? s->packs : s->plain;
    return packs ? nori__packs_allocator(packs) : s->allocator;
}

static void tell_pages(void *user, const void *data, size_t size, bool needed)
{
    const nori_session *s = user;
    if (!nori__source_maps(s->source, data, size)) {
        return;
    }
    if (needed) {
        nori__map_need(data, size);
    } else {
        nori__map_relax_range(data, size);
    }
}

static nori_status build_plan(nori_session *s, const nori_session_options *o, nori_error *err)
{
    const nori_provider **list = nori__arena_array(&s->arena, s->n_providers + 1, sizeof(*list));
    void **self = nori__arena_array(&s->arena, s->n_providers + 1, sizeof(*self));
    if (!list || !self) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < s->n_providers; i++) {
        list[i] = s->providers[i].provider;
        self[i] = s->providers[i].self;
    }
    nori__tell_progress(o, "plan", "", 0, 1);
    uint64_t start = nori__now_ns();
    nori__plan_options po = {.allocator = kernel_memory(s),
                             .packs = s->packs,
                             .pages = s->packs && nori__packs_ready(s->packs) ? NULL : tell_pages,
                             .pages_user = s,
                             .providers = list,
                             .provider_self = self,
                             .n_providers = s->n_providers,
                             .threads = s->threads};
    NORI__TRY(nori__plan_build(&s->arena, s->ir->main, &po, &s->n_step_ids, &s->plan, err));
    s->timing.plan_ns = nori__now_ns() - start;
    s->packed_bytes = s->plan->state_bytes;
    s->steps = nori__arena_array(&s->arena, (size_t)s->n_step_ids + 1, sizeof(*s->steps));
    if (!s->steps) {
        return nori__no_memory(err);
    }
    index_steps(s, s->plan);
    nori__tell_progress(o, "plan", "", 1, 1);
    NORI__TRY(nori__note_nodes(s, err));
    if (o->profile) {
        s->times = nori__arena_array(&s->arena, (size_t)s->n_step_ids + 1, sizeof(*s->times));
        if (!s->times) {
            return nori__no_memory(err);
        }
    }
    return NORI_OK;
}

static nori_status describe(nori_session *s, nori_error *err)
{
    const nori__graph *g = s->ir->main;
    s->n_inputs = g->input_count;
    s->n_outputs = g->output_count;
    NORI__TRY(nori__describe_values(&s->arena, g->inputs, s->n_inputs, &s->inputs, err));
    return nori__describe_values(&s->arena, g->outputs, s->n_outputs, &s->outputs, err);
}

static nori_status compile(nori_session *s, const nori_session_options *o, const nori_model *model,
                           nori_error *err)
{
    bool whole = false;
    uint64_t start = nori__now_ns();
    s->timing.read_ns = s->source->read_ns;
    s->timing.build_ns = s->source->build_ns;
    nori__tell_progress(o, "infer", "", 0, 1);
    NORI__TRY(nori__ir_copy(model->ir, &s->ir, err));
    NORI__TRY(open_providers(s, o, err));
    NORI__TRY(fix_dims(s, o, err));
    NORI__TRY(NORI__BUILT(parts) ? nori__give_model(s, o, &whole, err) : NORI_OK);
    if (whole) {
        NORI__TRY(describe(s, err));
        return o->split_only ? nori__note_nodes(s, err) : build_plan(s, o, err);
    }
    NORI__TRY(nori__require_supported(s->ir, err));
    NORI__TRY(nori__inline_functions(s->ir, err));
    uint64_t nodes = nori__env_limits(s->env)->nodes;
    if (nodes > 0 && s->ir->node_count > nodes) {
        return nori__past_limit(err, "nodes with functions put in place", s->ir->node_count, nodes,
                                "nodes", "nodes");
    }
    NORI__TRY(nori__require_arity(s->ir, err));
    NORI__TRY(nori__upgrade(s->ir, err));
    /* What callers see are the model's own inputs and outputs, with what is known of them now. */
    NORI__TRY(describe(s, err));
    uint64_t inferred = nori__now_ns();
    s->timing.infer_ns = inferred - start;
    nori__tell_progress(o, "infer", "", 1, 1);
    nori__tell_progress(o, "optimize", "", 0, 1);
    NORI__TRY(nori__passes_run_only(s->ir, o->level, o->passes, err));
    NORI__TRY(NORI__BUILT(parts) ? nori__give_parts(s, o, err) : NORI_OK);
    if (o->split_only) {
        return nori__note_nodes(s, err);
    }
    NORI__TRY(nori__rewrite_for_providers(s, o, err));
    if (o->level > 0 && !o->passes) { /* what folding left for rewrites */
        bool changed = false;
        NORI__TRY(nori__pass_fold_rest(s->ir, &changed, err));
        NORI__TRY(changed ? nori__infer_graph(s->ir, err) : NORI_OK);
    }
    s->timing.optimize_ns = nori__now_ns() - inferred;
    nori__tell_progress(o, "optimize", "", 1, 1);
    return build_plan(s, o, err);
}

/* Weights that were packed have been read: the file's pages need not stay beside the packed ones.
 * Those that a run reads after all come back one by one. */
static void give_pages_back(nori_session *s)
{
    if (s->packed_bytes >= PACKED_MUCH && !(s->packs && s->source->plan)) {
        nori__map_relax(&s->source->file);
        nori__external_relax(s->source->external);
    }
}

void nori__session_options(const nori_session_options *given, nori_session_options *o)
{
    nori_session_options_default(o);
    if (given) {
        memcpy(o, given, given->size < sizeof(*o) ? given->size : sizeof(*o));
    }
}

nori_status nori_session_create(const nori_model *model, const nori_session_options *options,
                                nori_session **session, nori_error *err)
{
    NORI__GIVEN(err, model);
    NORI__GIVEN(err, session);
    nori_session_options o;
    nori__session_options(options, &o);
    return nori__session_make(model, &o, NULL, session, err);
}

nori_status nori__session_make(const nori_model *model, const nori_session_options *o,
                               const nori__ways *record, nori_session **session, nori_error *err)
{
    *session = NULL;
    if (o->threads < 0 || o->level < 0 || o->level > 2) {
        return nori__fail(err, NORI_ERROR_ARGUMENT,
                          "threads is %d, at least 0 was expected; level is %d, 0 to 2 was expected",
                          o->threads, o->level);
    }
    const nori_allocator *a = model->source->allocator;
    nori_session *s = nori__alloc_zero(a, sizeof(*s));
    if (!s) {
        return nori__no_memory(err);
    }
    s->source = model->source;
    atomic_fetch_add(&s->source->refs, 1);
    s->env = s->source->env;
    s->allocator = a;
    /* More than the pool has never run at once; kernels take memory for each. */
    int pool = nori_env_threads(s->env);
    s->threads = o->threads > 0 && o->threads < pool ? o->threads : pool;
    s->cap_of_env = o->max_bytes == 0;
    s->memory_cap = o->max_bytes ? o->max_bytes : nori__env_limits(s->env)->activation_bytes;
    s->watch = o->watch;
    s->watch_user = o->watch_user;
    nori__arena_init(&s->arena, a);
    pthread_mutex_init(&s->lock, NULL);
    nori__vec_init(&s->parts, a);
    nori__vec_init(&s->split.islands, a);
    nori__vec_init(&s->split.splitters, a);
    s->model_file = model->source->path[0] && !model->changed ? model->source->path : NULL;
    nori_status status = nori__plan_use(s, model, o, record, err);
    /* A caller's allocator is asked for each block: what a piece has left is its memory. */
    if (status == NORI_OK && !s->packs && s->allocator->alloc == nori__malloc.alloc &&
        !(s->plain = nori__packs_plain(s->allocator, s->source->file.size))) {
        status = nori__no_memory(err);
    }
    status = status == NORI_OK ? compile(s, o, model, err) : status;
    if (status != NORI_OK) {
        nori_session_free(s);
        return status;
    }
    give_pages_back(s);
    nori__plan_keep(s, o);
    nori__plan_ready(s);
    nori__plan_used(s, o);
    *session = s;
    return NORI_OK;
}

static void free_contexts(nori_session *s, nori__context *list)
{
    while (list) {
        nori__context *next = list->next;
        nori__frame_free(list->frame);
        nori__meter_close(&list->meter);
        nori__release(s->allocator, list->times,
                      ((size_t)s->n_step_ids + 1) * sizeof(*list->times));
        nori__release(s->allocator, list, sizeof(*list));
        list = next;
    }
}

void nori_session_free(nori_session *s)
{
    if (!s) {
        return;
    }
    free_contexts(s, s->idle);
    nori__plan_close(s->plan, kernel_memory(s));
    nori__packs_free(s->packs);
    nori__packs_free(s->plain);
    nori__map_close(&s->kept.file);
    for (size_t i = 0; i < s->parts.count; i++) {
        nori__part_free(s->parts.items[i]);
    }
    nori__vec_free(&s->parts);
    nori__split_free(&s->split);
    for (size_t i = 0; i < s->n_providers; i++) {
        nori__provider_close(&s->providers[i]);
    }
    nori__ir_free(s->ir);
    nori__arena_free(&s->arena);
    pthread_mutex_destroy(&s->lock);
    const nori_allocator *a = s->allocator;
    nori__source_release(s->source);
    nori__release(a, s, sizeof(*s));
}

/* ---- running ---- */

/* A context for one run, with a frame and, when profiling, times of its own. */
static nori_status new_context(nori_session *s, nori__context **out, nori_error *err)
{
    size_t bytes = ((size_t)s->n_step_ids + 1) * sizeof(nori__step_time);
    nori__context *c = nori__alloc_zero(s->allocator, sizeof(*c));
    *out = c;
    if (!c) {
        return nori__no_memory(err);
    }
    nori__meter_init(&c->meter, s->allocator, s->memory_cap);
    if (s->times && !(c->times = nori__alloc_zero(s->allocator, bytes))) {
        return nori__no_memory(err);
    }
    nori_status status = nori__frame_create(s->plan, &c->meter, &c->frame, err);
    return nori__meter_explain(&c->meter, status, err);
}

static nori_status take_context(nori_session *s, nori__context **out, nori_error *err)
{
    pthread_mutex_lock(&s->lock);
    nori__context *c = s->idle;
    if (c) {
        s->idle = c->next;
    }
    pthread_mutex_unlock(&s->lock);
    nori_status status = NORI_OK;
    if (!c && (status = new_context(s, &c, err)) != NORI_OK) {
        free_contexts(s, c);
        c = NULL;
    }
    *out = c;
    return status;
}

/* Adds a run's times to the session's; the newest call is the one kept. */
static void merge_times(nori_session *s, nori__step_time *run)
{
    for (uint32_t i = 0; i < s->n_step_ids; i++) {
        if (run[i].calls > 0) {
            s->times[i].calls += run[i].calls;
            s->times[i].total_ns += run[i].total_ns;
            s->times[i].last_start_ns = run[i].last_start_ns;
            s->times[i].last_end_ns = run[i].last_end_ns;
            run[i] = (nori__step_time){0};
        }
    }
}

static void give_context(nori_session *s, nori__context *c)
{
    size_t bytes = nori__frame_bytes(c->frame);
    pthread_mutex_lock(&s->lock);
    s->peak_bytes = bytes > s->peak_bytes ? bytes : s->peak_bytes;
    if (c->times) {
        merge_times(s, c->times);
    }
    c->next = s->idle;
    s->idle = c;
    pthread_mutex_unlock(&s->lock);
}

/* The hint at a cap names the option of the session: where the environment set the cap, another one is
 * to be raised. */
static nori_status name_the_cap(const nori_session *s, nori_status status, nori_error *err)
{
    if (status == NORI_ERROR_LIMIT && s->cap_of_env && err && nori__same(err->hint, NORI__CAP_HINT)) {
        err->hint[0] = 0;
        nori__hint(err, "raise nori_limits.activation_bytes (--limit activations=N), or use smaller "
                        "inputs");
    }
    return status;
}

nori_status nori_session_run(nori_session *s, const nori_tensor *const *inputs, size_t n_inputs,
                             nori_tensor **outputs, size_t n_outputs, nori_error *err)
{
    return nori_session_run_with(s, NULL, inputs, n_inputs, outputs, n_outputs, err);
}

nori_status nori_session_run_with(nori_session *s, const nori_run_options *options,
                                  const nori_tensor *const *inputs, size_t n_inputs,
                                  nori_tensor **outputs, size_t n_outputs, nori_error *err)
{
    NORI__GIVEN(err, s);
    NORI__GIVEN_LIST(err, inputs, n_inputs);
    NORI__GIVEN_LIST(err, outputs, n_outputs);
    if (n_outputs != s->n_outputs) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "%zu outputs were asked for, the model has %zu",
                          n_outputs, s->n_outputs);
    }
    if (!s->plan) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "the session was made to split only: it cannot run");
    }
    NORI__TRY(nori__check_inputs(s, inputs, n_inputs, err));
    const nori_tensor *few[32], **all = few, **given; /* outputs that the caller gave, after the inputs */
    size_t bytes = (s->n_inputs + n_outputs + 1) * sizeof(*all);
    if (s->n_inputs + n_outputs > NORI__COUNT(few) && !(all = nori__alloc(s->allocator, bytes))) {
        return nori__no_memory(err);
    }
    given = all + s->n_inputs;
    for (size_t i = 0; i < n_outputs; i++) {
        given[i] = outputs[i];
    }
    for (size_t i = 0; i < s->n_inputs; i++) {
        all[i] = i < n_inputs && inputs[i] ? inputs[i] : s->ir->main->inputs[i]->constant;
    }
    nori__context *c = NULL;
    nori__guard guard;
    nori__guard_init(&guard, nori__env_limits(s->env), options);
    nori_status status = take_context(s, &c, err);
    if (status == NORI_OK) {
        nori__run_info info = {.pool = s->threads > 1 ? nori__env_pool(s->env) : NULL,
                               .threads = s->threads,
                               .memory_cap = s->memory_cap,
                               .guard = &guard,
                               .times = c->times,
                               .watch = s->watch,
                               .watch_user = s->watch_user};
        nori__meter_begin(&c->meter);
        nori__pool_begin_run(info.pool);
        status = nori__frame_run(c->frame, &info, all, NULL, outputs, err);
        nori__pool_end_run(info.pool);
        status = nori__meter_explain(&c->meter, status, err);
        bool ran = status == NORI_OK;
        for (size_t i = 0; i < n_outputs && status == NORI_OK; i++) {
            status = given[i] ? NORI_OK : nori__meter_let_go(&c->meter, &outputs[i], err);
        }
        for (size_t i = 0; ran && i < n_outputs && status != NORI_OK; i++) {
            if (!given[i]) {
                nori_tensor_free(outputs[i]);
                outputs[i] = NULL;
            }
        }
        nori__meter_end(&c->meter);
        give_context(s, c);
    }
    if (all != few) {
        nori__release(s->allocator, all, bytes);
    }
    return name_the_cap(s, status, err);
}

void nori_session_trim(nori_session *s)
{
    NORI__ASKED(s, );
    pthread_mutex_lock(&s->lock);
    nori__context *list = s->idle;
    s->idle = NULL;
    pthread_mutex_unlock(&s->lock);
    free_contexts(s, list);
}

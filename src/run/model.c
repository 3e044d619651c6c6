/* model.c: loading: file to messages to graph, and what callers may ask of a model. */
#include <stdio.h>
#include <stdlib.h>

#include "base/given.h"
#include "onnx/model_limits.h"
#include "ops/custom.h"
#include "ops/resolve.h"
#include "platform/env_limits.h"
#include "platform/map_holds.h"
#include "run/plan_file.h"

#define READ_MUCH ((size_t)16 << 20)

void nori_load_options_default(nori_load_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_load_options){.size = sizeof(*options)};
}

bool nori__source_maps(const nori__source *s, const void *data, size_t size)
{
    return nori__map_holds(&s->file, data, size) || nori__external_maps(s->external, data, size);
}

void nori__source_release(nori__source *s)
{
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1) {
        return;
    }
    nori__external_free(s->external);
    nori__arena_free(&s->arena);
    nori__text_free(&s->made);
    nori__map_close(&s->file);
    nori__source *parents[2] = {s->parents[0], s->parents[1]};
    nori__release(s->allocator, s, sizeof(*s));
    for (int i = 0; i < 2; i++) { /* a chain is as long as the tools that made it */
        nori__source_release(parents[i]);
    }
}

bool nori__source_sealed(const nori__source *s)
{
    return s && (s->sealed || nori__source_sealed(s->parents[0]) || nori__source_sealed(s->parents[1]));
}

void nori_model_free(nori_model *model)
{
    if (!model) {
        return;
    }
    const nori_allocator *a = model->source->allocator;
    nori__ir_free(model->ir);
    nori__source_release(model->source);
    nori__release(a, model, sizeof(*model));
}

const nori__ir *nori__model_ir(const nori_model *model)
{
    return model->ir;
}

nori_status nori__describe_values(nori__arena *arena, nori__value *const *values, size_t count,
                                  nori_value_info **out, nori_error *err)
{
    nori_value_info *list = nori__arena_array(arena, count + 1, sizeof(*list));
    *out = list;
    for (size_t i = 0; list && i < count; i++) {
        const nori__type *t = &values[i]->type;
        size_t rank = t->rank > 0 ? (size_t)t->rank : 0;
        int64_t *dims = nori__arena_array(arena, rank + 1, sizeof(*dims));
        const char **names = nori__arena_array(arena, rank + 1, sizeof(*names));
        if (!dims || !names) {
            return nori__no_memory(err);
        }
        for (size_t d = 0; d < rank; d++) {
            dims[d] = t->dims[d].value;
            names[d] = t->dims[d].name;
        }
        list[i] = (nori_value_info){
            .name = values[i]->name,
            .kind = (nori_kind)t->kind,
            .type = (nori_type)t->elem,
            .rank = t->kind == NORI_KIND_TENSOR ? t->rank : -1,
            .dims = dims,
            .dim_names = names,
            .optional = values[i]->constant != NULL,
        };
    }
    return list ? NORI_OK : nori__no_memory(err);
}

/* ---- loading ---- */

typedef struct loading {
    nori_load_options options;
    nori__source *source;
    nori__pb_report report;
    bool quiet; /* its warnings were logged before */
    nori_error *err;
} loading;

nori_status nori__source_new(nori_env *env, const char *path, nori__source **source,
                             nori_error *err)
{
    const nori_allocator *a = nori__env_allocator(env);
    nori__source *s = nori__alloc_zero(a, sizeof(*s));
    *source = s;
    if (!s) {
        return nori__no_memory(err);
    }
    atomic_init(&s->refs, 1);
    s->env = env;
    s->allocator = a;
    nori__arena_init(&s->arena, a);
    nori__text_init(&s->made, a);
    s->path = nori__arena_text(&s->arena, path);
    if (!s->path) {
        nori__source_release(s);
        *source = NULL;
        return nori__no_memory(err);
    }
    return NORI_OK;
}

/* "a/b/c" becomes "a/b", "c" becomes ".". */
static char *folder_of(nori__arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) {
        return nori__arena_text(arena, ".");
    }
    return slash == path ? nori__arena_text(arena, "/")
                         : nori__arena_copy(arena, path, (size_t)(slash - path));
}

static nori_status open_external(loading *l, const char *base_dir)
{
    nori__source *s = l->source;
    char *real = s->path[0] ? realpath(s->path, NULL) : NULL;
    char *real_dir = real ? folder_of(&s->arena, real) : NULL;
    free(real);
    return nori__external_create(s->allocator, base_dir, real_dir, l->options.allow_outside,
                                 &s->external, l->err);
}

/* The data of a plan are in the plan: its model may name no other. */
static nori_status open_own_data(loading *l)
{
    nori__source *s = l->source;
    NORI__TRY(nori__external_create(s->allocator, NULL, NULL, false, &s->external, l->err));
    const char *name = nori__external_lend(s->external, s->plan->part[NORI__PLAN_DATA],
                                           s->file.data != NULL);
    return name ? NORI_OK : nori__no_memory(l->err);
}

/* Things that are odd but readable: warnings, or errors when strict. */
static nori_status judge_version(loading *l, nori__ir *ir)
{
    char text[320] = "";
    if (ir->ir_version > NORI__IR_VERSION_MAX) {
        snprintf(text, sizeof(text),
                 "the file says IR version %lld, the newest known here is %d; it was read as that",
                 (long long)ir->ir_version, NORI__IR_VERSION_MAX);
        if (l->options.strict) {
            return nori__fail(l->err, NORI_ERROR_MODEL, "%s (refused, as strict was asked)", text);
        }
        if (nori__ir_warn(ir, "%s", text) != NORI_OK) {
            return nori__no_memory(l->err);
        }
    }
    if (l->report.unknown_fields > 0) {
        snprintf(text, sizeof(text),
                 "%zu unknown field%s; the first is number %u of %s at byte %llu; kept on saving",
                 l->report.unknown_fields, l->report.unknown_fields == 1 ? "" : "s",
                 l->report.first_number, l->report.first_message,
                 (unsigned long long)l->report.first_offset);
        if (l->options.strict) {
            nori_status s = nori__fail(l->err, NORI_ERROR_MODEL, "%s (refused, as strict was asked)",
                                       text);
            nori__offset(l->err, l->report.first_offset);
            return s;
        }
        if (nori__ir_warn(ir, "%s", text) != NORI_OK) {
            return nori__no_memory(l->err);
        }
    }
    return NORI_OK;
}

static nori_status finish(loading *l, nori_model **out)
{
    nori__source *s = l->source;
    nori_model *m = nori__alloc_zero(s->allocator, sizeof(*m));
    if (!m) {
        return nori__no_memory(l->err);
    }
    nori_status status = nori__ir_build(s->allocator, s->pb, s->external, &m->ir, l->err);
    if (status != NORI_OK) {
        nori__release(s->allocator, m, sizeof(*m));
        return status;
    }
    if (s->file.size >= READ_MUCH) { /* tensors that were decoded or counted need the file's pages no more */
        nori__map_relax(&s->file);
    }
    m->source = s;
    m->ir->custom = nori__registry_of(s->env);
    nori__resolve(m->ir);
    nori__graph *g = m->ir->main;
    nori__arena *arena = &m->ir->arena;
    nori__str name = s->pb->producer_name, version = s->pb->producer_version;
    m->producer = nori__arena_printf(arena, "%.*s%s%.*s", (int)(name.n < 200 ? name.n : 200),
                                     name.n ? name.p : "", version.n ? " " : "",
                                     (int)(version.n < 200 ? version.n : 200),
                                     version.n ? version.p : "");
    m->n_inputs = g->input_count;
    m->n_outputs = g->output_count;
    status = m->producer ? judge_version(l, m->ir) : nori__no_memory(l->err);
    if (status == NORI_OK) {
        status = nori__describe_values(arena, g->inputs, m->n_inputs, &m->inputs, l->err);
    }
    if (status == NORI_OK) {
        status = nori__describe_values(arena, g->outputs, m->n_outputs, &m->outputs, l->err);
    }
    if (status != NORI_OK) {
        m->source = NULL;
        nori__ir_free(m->ir);
        nori__release(s->allocator, m, sizeof(*m));
        return status;
    }
    for (size_t i = 0; !l->quiet && i < m->ir->warnings.count; i++) {
        nori__env_log(s->env, NORI_LOG_WARNING, "%s", (const char *)m->ir->warnings.items[i]);
    }
    *out = m;
    return NORI_OK;
}

static nori_status load_bytes(loading *l, const void *data, size_t size, const char *base_dir,
                              nori_model **out)
{
    nori__source *s = l->source;
    const nori_limits *limits = nori__env_limits(s->env);
    uint64_t most = l->options.max_bytes ? l->options.max_bytes : limits->model_bytes;
    if (most > 0 && size > most) {
        return nori__past_limit(l->err, "bytes of the model", size, most,
                                l->options.max_bytes ? "max_bytes" : "model_bytes", "model");
    }
    s->bytes = size;
    uint64_t start = nori__now_ns();
    if (nori__plan_is(data, size)) {
        NORI__TRY(nori__plan_open(&s->arena, data, size, &s->plan, l->err));
        data = s->plan->part[NORI__PLAN_MODEL].p;
        size = s->plan->part[NORI__PLAN_MODEL].n;
    }
    s->data = data;
    s->data_bytes = size;
    NORI__TRY(nori__pb_read_model(&s->arena, data, size, &s->pb, &l->report, l->err));
    NORI__TRY(nori__pb_check_limits(s->pb, limits, l->err));
    uint64_t read = nori__now_ns();
    s->read_ns += read - start;
    if (s->plan) {
        NORI__TRY(open_own_data(l));
    } else if (base_dir) {
        NORI__TRY(open_external(l, base_dir));
    }
    nori_status status = finish(l, out);
    s->build_ns = nori__now_ns() - read;
    return status;
}

static nori_status load(nori_env *env, const char *path, const void *data, size_t size,
                        const char *base_dir, const nori_load_options *options, nori_model **model,
                        nori_error *err)
{
    *model = NULL;
    loading l = {.err = err};
    nori_load_options_default(&l.options);
    if (options) {
        memcpy(&l.options, options,
               options->size < sizeof(l.options) ? options->size : sizeof(l.options));
    }
    nori_status s = nori__source_new(env, path ? path : "", &l.source, err);
    if (s == NORI_OK && path) {
        uint64_t start = nori__now_ns();
        s = nori__map_open(path, &l.source->file, err);
        l.source->read_ns = nori__now_ns() - start;
        data = l.source->file.data;
        size = l.source->file.size;
        base_dir = folder_of(&l.source->arena, path);
        if (s == NORI_OK && !base_dir) {
            s = nori__no_memory(err);
        }
    }
    if (s == NORI_OK) {
        s = load_bytes(&l, data, size, base_dir, model);
    }
    if (s != NORI_OK) {
        if (path && err && err->status != NORI_ERROR_IO) {
            nori__where(err, "%s", path);
        }
        nori__source_release(l.source);
    }
    return s;
}

nori_status nori_model_load(nori_env *env, const char *path, const nori_load_options *options,
                            nori_model **model, nori_error *err)
{
    NORI__GIVEN(err, path);
    NORI__GIVEN(err, model);
    return load(env, path, NULL, 0, NULL, options, model, err);
}

nori_status nori_model_load_memory(nori_env *env, const void *data, size_t size,
                                   const char *base_dir, const nori_load_options *options,
                                   nori_model **model, nori_error *err)
{
    NORI__GIVEN_LIST(err, data, size);
    NORI__GIVEN(err, model);
    return load(env, NULL, data, size, base_dir, options, model, err);
}

nori_status nori__model_of_made(nori__source *source, nori_model **model, nori_error *err)
{
    loading l = {.err = err, .quiet = true, .source = source};
    *model = NULL;
    nori_load_options_default(&l.options);
    nori_status s = load_bytes(&l, source->made.data, source->made.size, NULL, model);
    if (s != NORI_OK) {
        nori__source_release(source);
    }
    return s;
}

nori_status nori__model_from_bytes(nori_env *env, nori__text *bytes, const char *base_dir,
                                   const nori_load_options *options, nori_model **model,
                                   nori_error *err)
{
    loading l = {.options = *options, .err = err};
    *model = NULL;
    nori_status s = nori__source_new(env, "", &l.source, err);
    if (s != NORI_OK) {
        nori__source_release(l.source);
        return s;
    }
    nori__text *made = &l.source->made;
    *made = *bytes;
    nori__text_init(bytes, made->allocator);
    s = load_bytes(&l, made->data, made->size, base_dir, model);
    if (s != NORI_OK) {
        nori__source_release(l.source);
    }
    return s;
}

/* ---- accessors ---- */

size_t nori_model_input_count(const nori_model *m)
{
    NORI__ASKED(m, 0);
    return m->n_inputs;
}

const nori_value_info *nori_model_input(const nori_model *m, size_t i)
{
    NORI__ASKED(m, NULL);
    return i < m->n_inputs ? &m->inputs[i] : NULL;
}

size_t nori_model_output_count(const nori_model *m)
{
    NORI__ASKED(m, 0);
    return m->n_outputs;
}

const nori_value_info *nori_model_output(const nori_model *m, size_t i)
{
    NORI__ASKED(m, NULL);
    return i < m->n_outputs ? &m->outputs[i] : NULL;
}

const char *nori_model_warning(const nori_model *m, size_t i)
{
    NORI__ASKED(m, NULL);
    return i < m->ir->warnings.count ? m->ir->warnings.items[i] : NULL;
}

const nori_graph *nori_model_graph(const nori_model *m)
{
    NORI__ASKED(m, NULL);
    return m->ir->main;
}

int64_t nori_model_ir_version(const nori_model *m)
{
    NORI__ASKED(m, 0);
    return m->ir->ir_version;
}

const char *nori_model_producer(const nori_model *m)
{
    NORI__ASKED(m, NULL);
    return m->producer;
}

const char *nori_model_path(const nori_model *m)
{
    NORI__ASKED(m, NULL);
    return m->source->path;
}

uint64_t nori_model_file_bytes(const nori_model *m)
{
    NORI__ASKED(m, 0);
    return m->source->bytes;
}

int nori_model_opset(const nori_model *m, size_t i, const char **domain, int64_t *version)
{
    NORI__ASKED(m, 0);
    NORI__ASKED(domain, 0);
    NORI__ASKED(version, 0);
    if (i >= m->ir->opset_count) {
        return 0;
    }
    *domain = m->ir->opsets[i].domain;
    *version = m->ir->opsets[i].version;
    return 1;
}

/* Text of the file, terminated: kept in the model's arena. */
static const char *text_of(const nori_model *m, nori__str s)
{
    const char *copy = nori__arena_copy(&m->ir->arena, s.n ? s.p : "", s.n);
    return copy ? copy : "";
}

int nori_model_metadata(const nori_model *m, size_t i, const char **key, const char **value)
{
    NORI__ASKED(m, 0);
    if (i >= m->source->pb->metadata.count) {
        return 0;
    }
    *key = text_of(m, m->source->pb->metadata.items[i].key);
    *value = text_of(m, m->source->pb->metadata.items[i].value);
    return 1;
}

int nori_model_function(const nori_model *m, size_t i, const char **domain, const char **name,
                        size_t *node_count)
{
    NORI__ASKED(m, 0);
    if (i >= m->source->pb->functions.count) {
        return 0;
    }
    const nori__pb_function *f = &m->source->pb->functions.items[i];
    *domain = text_of(m, f->domain);
    *name = text_of(m, f->name);
    *node_count = f->nodes.count;
    return 1;
}

const char *nori_model_external(const nori_model *m, size_t index)
{
    NORI__ASKED(m, NULL);
    const nori__pb_graph *g = m->source->pb->graph;
    nori__str seen = {NULL, 0};
    if (m->source->plan) { /* in the file itself */
        return NULL;
    }
    for (size_t i = 0; i < g->initializers.count; i++) {
        const nori__pb_tensor *t = &g->initializers.items[i];
        for (size_t k = 0; t->data_location == 1 && k < t->external.count; k++) {
            nori__str v = t->external.items[k].value;
            bool repeat = seen.n == v.n && v.n && memcmp(seen.p, v.p, v.n) == 0;
            if (nori__str_is(t->external.items[k].key, "location") && !repeat) {
                seen = v;
                if (index-- == 0) {
                    return text_of(m, v);
                }
            }
        }
    }
    return NULL;
}

/* serve_info.c: what calls without tensors answer: metadata, configuration, index, readiness. */
#include <inttypes.h>
#include <string.h>

#include "serve_internal.h"

void nori__serve_metadata(serve_model *m, serve_text *t)
{
    bool first = true;
    nori__serve_print(t, "{\"name\":");
    nori__serve_quote(t, m->name);
    nori__serve_print(t, ",\"versions\":[");
    for (serve_model *o = NULL; (o = nori__serve_next(m->server, o)) != NULL;) {
        if (strcmp(o->name, m->name) == 0) {
            nori__serve_print(t, "%s\"%s\"", first ? "" : ",", o->version);
            first = false;
        }
    }
    nori__serve_print(t, "],\"platform\":\"onnx_nori\",\"inputs\":[");
    nori__serve_describe(t, m->signature.inputs, m->signature.input_count);
    nori__serve_print(t, "],\"outputs\":[");
    nori__serve_describe(t, m->signature.outputs, m->signature.output_count);
    nori__serve_print(t, "]}\n");
}

static void config_side(serve_text *t, const char *side, const nori_value_info *const *v, size_t count)
{
    bool first = true;
    nori__serve_print(t, ",\"%s\":[", side);
    for (size_t i = 0; i < count; i++) {
        const char *word = v[i]->kind == NORI_KIND_TENSOR ? nori__serve_word(v[i]->type) : NULL;
        if (!word) {
            continue;
        }
        nori__serve_print(t, "%s{\"name\":", first ? "" : ",");
        nori__serve_quote(t, v[i]->name);
        nori__serve_print(t, ",\"data_type\":\"TYPE_%s\",\"dims\":[",
                          strcmp(word, "BYTES") == 0 ? "STRING" : word);
        for (int k = 0; k < v[i]->rank; k++) {
            nori__serve_print(t, "%s%" PRId64, k ? "," : "", v[i]->dims[k]);
        }
        nori__serve_print(t, "]}");
        first = false;
    }
    nori__serve_print(t, "]");
}

/* The whole shape is in dims, as with max_batch_size 0 there; rows joined are said beside it. */
void nori__serve_config(serve_model *m, serve_text *t)
{
    const nori_serve_options *o = &m->server->options;
    nori__serve_print(t, "{\"name\":");
    nori__serve_quote(t, m->name);
    nori__serve_print(t, ",\"platform\":\"onnx_nori\",\"backend\":\"nori\",\"max_batch_size\":0");
    config_side(t, "input", m->signature.inputs, m->signature.input_count);
    config_side(t, "output", m->signature.outputs, m->signature.output_count);
    nori__serve_print(t, ",\"instance_group\":[{\"name\":");
    nori__serve_quote(t, m->name);
    nori__serve_print(t, ",\"kind\":\"KIND_CPU\",\"count\":%d}],\"parameters\":{", o->workers);
    nori__serve_print(t, "\"joined_rows\":{\"string_value\":\"%d\"}", m->batches ? o->batch : 1);
    if (m->batch_why[0]) {
        nori__serve_print(t, ",\"not_joined_because\":{\"string_value\":");
        nori__serve_quote(t, m->batch_why);
        nori__serve_print(t, "}");
    }
    nori__serve_print(t, ",\"queue\":{\"string_value\":\"%d\"}}}\n", o->queue);
}

/* ---- index ---- */

static const char *state_word(serve_state state)
{
    return state == SERVE_READY ? "READY" : state == SERVE_LOADING ? "LOADING" : "UNAVAILABLE";
}

static void index_entry(serve_text *t, bool *first, const char *name, const char *version,
                        const char *state, const char *reason)
{
    nori__serve_print(t, "%s{\"name\":", *first ? "" : ",");
    nori__serve_quote(t, name);
    nori__serve_print(t, ",\"version\":\"%s\",\"state\":\"%s\",\"reason\":", version, state);
    nori__serve_quote(t, reason);
    nori__serve_print(t, "}");
    *first = false;
}

void nori__serve_index(nori_server *s, bool ready_only, serve_text *t)
{
    bool first = true;
    nori_error err = {0};
    serve_files files = {NULL, 0, 0};
    /* A folder that is gone has no more models; one that memory does not suffice to look at may have. */
    t->failed = t->failed || nori__serve_scan(s, NULL, &files, &err) == NORI_ERROR_MEMORY;
    nori__serve_print(t, "[");
    for (serve_model *m = NULL; (m = nori__serve_next(s, m)) != NULL;) {
        char reason[sizeof(m->reason)];
        pthread_mutex_lock(&m->lock);
        serve_state state = m->state;
        const char *text = state == SERVE_LOADING ? m->phase : m->reason;
        memcpy(reason, text, strlen(text) + 1);
        pthread_mutex_unlock(&m->lock);
        if (!ready_only || state == SERVE_READY) {
            index_entry(t, &first, m->name, m->version, state_word(state), reason);
        }
    }
    for (size_t i = 0; i < files.count && !ready_only; i++) {
        serve_model *there = nori__serve_find(s, files.items[i].name, files.items[i].version);
        nori__serve_model_free(there);
        if (!there) {
            index_entry(t, &first, files.items[i].name, files.items[i].version, "UNAVAILABLE",
                        "not loaded");
        }
    }
    nori__serve_print(t, "]\n");
    nori__serve_files_free(&files);
}

/* ---- readiness ---- */

void nori__serve_readiness(nori_server *s, serve_text *t)
{
    bool first = true;
    nori__serve_print(t, "{\"ready\":%s", nori_serve_ready(s) ? "true" : "false");
    if (atomic_load(&s->stopping)) {
        nori__serve_print(t, ",\"reason\":\"the server is ending\"");
    } else if (atomic_load(&s->starting)) {
        nori__serve_print(t, ",\"reason\":\"models are being prepared\"");
    } else if (atomic_load(&s->start_failed)) {
        pthread_mutex_lock(&s->lock);
        nori__serve_print(t, ",\"reason\":");
        nori__serve_quote(t, s->start_error.message);
        pthread_mutex_unlock(&s->lock);
    }
    nori__serve_print(t, ",\"preparing\":[");
    for (serve_model *m = NULL; (m = nori__serve_next(s, m)) != NULL;) {
        pthread_mutex_lock(&m->lock);
        if (m->state == SERVE_LOADING) {
            nori__serve_print(t, "%s{\"name\":", first ? "" : ",");
            nori__serve_quote(t, m->name);
            nori__serve_print(t, ",\"version\":\"%s\",\"phase\":", m->version);
            nori__serve_quote(t, m->phase);
            nori__serve_print(t, "}");
            first = false;
        }
        pthread_mutex_unlock(&m->lock);
    }
    nori__serve_print(t, "]}\n");
}

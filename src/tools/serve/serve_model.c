/* serve_model.c: a model of the server: how it is made ready, found, and let go of. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "serve_internal.h"

bool nori__serve_stamp(const char *path, serve_stamp *stamp)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        memset(stamp, 0, sizeof(*stamp));
        return false;
    }
    stamp->size = (int64_t)st.st_size;
    stamp->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    stamp->inode = (uint64_t)st.st_ino;
    return true;
}

serve_model *nori__serve_model_new(nori_server *s, const char *name, const char *version,
                                   const char *path)
{
    serve_model *m = calloc(1, sizeof(*m));
    pthread_condattr_t monotonic;
    if (!m) {
        return NULL;
    }
    m->name = strdup(name);
    m->version = strdup(version);
    m->path = strdup(path);
    if (!m->name || !m->version || !m->path) {
        free(m->name);
        free(m->version);
        free(m->path);
        free(m);
        return NULL;
    }
    m->server = s;
    m->number = strtoll(version, NULL, 10);
    atomic_init(&m->refs, 1);
    pthread_mutex_init(&m->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&m->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    nori__serve_stamp(path, &m->stamp);
    pthread_mutex_lock(&s->lock);
    s->live_models++;
    pthread_mutex_unlock(&s->lock);
    return m;
}

void nori__serve_model_free(serve_model *m)
{
    if (!m || atomic_fetch_sub(&m->refs, 1) != 1) {
        return;
    }
    nori_server *s = m->server;
    nori__serve_signature_free(&m->signature);
    nori_session_free(m->session);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->wake);
    free(m->name);
    free(m->version);
    free(m->path);
    free(m);
    pthread_mutex_lock(&s->lock);
    s->live_models--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

serve_model *nori__serve_next(nori_server *s, serve_model *after)
{
    pthread_mutex_lock(&s->lock);
    serve_model *m = s->list;
    while (m && after && m->serial >= after->serial) {
        m = m->next;
    }
    if (m) {
        atomic_fetch_add(&m->refs, 1);
    }
    pthread_mutex_unlock(&s->lock);
    nori__serve_model_free(after);
    return m;
}

serve_model *nori__serve_find(nori_server *s, const char *name, const char *version)
{
    serve_model *best = NULL;
    bool best_ready = false;
    pthread_mutex_lock(&s->lock);
    for (serve_model *m = s->list; m; m = m->next) {
        if (strcmp(m->name, name) != 0 || (version && strcmp(m->version, version) != 0)) {
            continue;
        }
        pthread_mutex_lock(&m->lock);
        bool ready = m->state == SERVE_READY;
        pthread_mutex_unlock(&m->lock);
        if (!best || (ready && !best_ready) || (ready == best_ready && m->number > best->number)) {
            best = m;
            best_ready = ready;
        }
    }
    if (best) {
        atomic_fetch_add(&best->refs, 1);
    }
    pthread_mutex_unlock(&s->lock);
    return best;
}

void nori__serve_unlink(nori_server *s, serve_model *m)
{
    pthread_mutex_lock(&s->lock);
    serve_model **at = &s->list;
    while (*at && *at != m) {
        at = &(*at)->next;
    }
    bool there = *at != NULL;
    if (there) {
        *at = m->next;
        m->next = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    if (there) {
        nori__serve_model_free(m);
    }
}

void nori__serve_tell(nori_server *s, const char *what, const char *model, const char *version,
                      size_t done, size_t total, const char *format, ...)
{
    char text[3000];
    va_list list;
    if (!s->options.event) {
        return;
    }
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    nori_serve_event e = {sizeof(e), what, model, version, text, done, total};
    s->options.event(s->options.event_user, &e);
}

/* ---- making ready ---- */

static void on_progress(void *user, const nori_progress *p)
{
    serve_model *m = user;
    char phase[sizeof(m->phase)];
    bool cache = strcmp(p->phase, "cache") == 0;
    int n = snprintf(phase, sizeof(phase), "%.40s%s%.60s%s%.200s", p->phase, p->provider[0] ? " " : "",
                     p->provider, p->text[0] ? ": " : "", p->text);
    if (p->total > 0 && n > 0 && (size_t)n < sizeof(phase)) {
        snprintf(phase + n, sizeof(phase) - (size_t)n, " (%zu of %zu)", p->done, p->total);
    }
    pthread_mutex_lock(&m->lock);
    memcpy(m->phase, phase, sizeof(phase));
    pthread_mutex_unlock(&m->lock);
    nori__serve_tell(m->server, cache ? "cache" : "preparing", m->name, m->version, p->done, p->total,
                     "%s", cache ? p->text : phase);
}

static nori_status load(serve_model *m, nori_error *err)
{
    nori_server *s = m->server;
    nori_session_options options = s->session;
    nori_model *model = NULL;
    options.progress = on_progress;
    options.progress_user = m;
    nori_status status = nori_model_load(s->options.env, m->path, NULL, &model, err);
    if (status == NORI_OK) {
        status = nori_session_create(model, &options, &m->session, err);
    }
    nori_model_free(model);
    return status ? status : nori__serve_signature_make(m->session, &m->signature, err);
}

nori_status nori__serve_prepare(serve_model *m, nori_error *err)
{
    nori_server *s = m->server;
    uint64_t began = nori__serve_now();
    nori__serve_tell(s, "preparing", m->name, m->version, 0, 0, "%s", m->path);
    nori_status status = load(m, err);
    if (status == NORI_OK) {
        char why[sizeof(m->batch_why)];
        m->has_rows = nori__serve_batch_axis(&m->signature, why, sizeof(why));
    }
    if (status == NORI_OK && s->options.batch > 1) {
        m->batches = nori__serve_batch_proof(m->session, &m->signature, m->batch_why,
                                             sizeof(m->batch_why));
        if (!m->batches) {
            nori__serve_tell(s, "note", m->name, m->version, 0, 0, "requests are not joined: %s",
                             m->batch_why);
        }
    }
    if (status == NORI_OK && m->signature.output_count < m->signature.session_outputs) {
        nori__serve_tell(s, "note", m->name, m->version, 0, 0, "%zu of %zu outputs are no tensors that "
                         "the protocol can say, and are left out", m->signature.session_outputs -
                         m->signature.output_count, m->signature.session_outputs);
    }
    pthread_mutex_lock(&m->lock);
    m->phase[0] = 0;
    if (m->state == SERVE_CLOSED) { /* meanwhile nobody wants it any more: no worker may begin */
        status = nori__serve_fail(err, NORI_ERROR_UNAVAILABLE, "unloaded while it was being prepared");
    } else {
        m->state = status == NORI_OK ? SERVE_READY : SERVE_FAILED;
    }
    if (status != NORI_OK) {
        snprintf(m->reason, sizeof(m->reason), "%s%s%s", err->message, err->where[0] ? " at " : "",
                 err->where);
    }
    pthread_mutex_unlock(&m->lock);
    if (status == NORI_OK && !nori__serve_workers(m, err)) {
        nori__serve_close(m);
        status = err->status;
    }
    if (status == NORI_OK) {
        nori__serve_tell(s, "ready", m->name, m->version, 0, 0, "after %.3f s%s",
                         (double)(nori__serve_now() - began) / 1e9,
                         m->batches ? ", requests are joined" : "");
    } else {
        nori__serve_tell(s, "failed", m->name, m->version, 0, 0, "%s", m->reason);
    }
    return status;
}

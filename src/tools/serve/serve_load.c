/* serve_load.c: the thread that loads models, one after another: those of the start, then what calls
 * ask for. A model that is loaded again answers as it was until the new one is ready. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve_internal.h"

static void link_model(nori_server *s, serve_model *m)
{
    pthread_mutex_lock(&s->lock);
    atomic_fetch_add(&m->refs, 1);
    m->serial = ++s->linked;
    m->next = s->list;
    s->list = m;
    pthread_mutex_unlock(&s->lock);
}

static void retire(nori_server *s, serve_model *m)
{
    nori__serve_unlink(s, m);
    nori__serve_close(m);
}

static bool is_ready(serve_model *m)
{
    pthread_mutex_lock(&m->lock);
    bool ready = m->state == SERVE_READY;
    pthread_mutex_unlock(&m->lock);
    return ready;
}

static nori_status load_file(nori_server *s, const serve_file *f, nori_error *err)
{
    serve_stamp stamp;
    serve_model *old = nori__serve_find(s, f->name, f->version);
    bool keeps = old && is_ready(old); /* it answers meanwhile */
    bool is_there = nori__serve_stamp(f->path, &stamp);
    if (keeps && is_there && stamp.size == old->stamp.size && stamp.mtime_ns == old->stamp.mtime_ns &&
        stamp.inode == old->stamp.inode && strcmp(old->path, f->path) == 0) {
        nori__serve_model_free(old);
        return NORI_OK;
    }
    serve_model *m = nori__serve_model_new(s, f->name, f->version, f->path);
    if (!m) {
        nori__serve_model_free(old);
        return nori__serve_oom(err);
    }
    if (!keeps) {
        link_model(s, m);
        if (old) {
            retire(s, old);
        }
    }
    nori_status status = nori__serve_prepare(m, err);
    if (keeps && status == NORI_OK) {
        link_model(s, m);
        retire(s, old);
    }
    nori__serve_model_free(old);
    nori__serve_model_free(m);
    return status;
}

/* Versions of a model that are loaded but not among the wanted ones go. */
static void retire_others(nori_server *s, const char *name, const serve_file *wanted, size_t count)
{
    for (serve_model *m = NULL; (m = nori__serve_next(s, m)) != NULL;) {
        bool keep = strcmp(m->name, name) != 0;
        for (size_t k = 0; k < count && !keep; k++) {
            keep = strcmp(m->version, wanted[k].version) == 0;
        }
        if (!keep) {
            retire(s, m);
            nori__serve_tell(s, "unloaded", m->name, m->version, 0, 0, "%s", "");
        }
    }
}

/* The newest versions of the model at files[0]; *used: how many entries are its. */
static nori_status load_name(nori_server *s, const serve_file *files, size_t count, size_t *used,
                             nori_error *err)
{
    const size_t most = (size_t)s->options.versions;
    nori_status status = NORI_OK;
    size_t n = 0;
    while (n < count && strcmp(files[n].name, files[0].name) == 0) {
        n++;
    }
    *used = n;
    size_t wanted = n < most ? n : most;
    for (size_t i = 0; i < wanted; i++) {
        nori_error own = {0};
        if (load_file(s, &files[i], &own) != NORI_OK && status == NORI_OK) {
            status = own.status;
            *err = own;
        }
    }
    if (status == NORI_OK) {
        retire_others(s, files[0].name, files, wanted);
    }
    return status;
}

static bool ending(nori_server *s)
{
    pthread_mutex_lock(&s->lock);
    bool ends = s->loader_ends;
    pthread_mutex_unlock(&s->lock);
    return ends;
}

static void load_start(nori_server *s)
{
    serve_files files = {NULL, 0, 0};
    nori_error first = {0};
    nori_server only_named;
    const nori_server *from = s;
    if (s->options.explicit_load) { /* of the folder nothing, files that were named all the same */
        memset(&only_named, 0, sizeof(only_named));
        only_named.options = s->options;
        only_named.options.repository = NULL;
        only_named.models = s->models;
        from = &only_named;
    }
    nori__serve_scan(from, NULL, &files, &first);
    if (first.status == NORI_OK && files.count == 0 && !s->options.explicit_load) {
        nori__serve_hint(&first, "NAME/1/model.onnx or NAME.onnx was expected in it");
        nori__serve_fail(&first, NORI_ERROR_IO, "there is no model in %s",
                         s->options.repository ? s->options.repository : "what was named");
    }
    for (size_t i = 0, used; i < files.count && !ending(s); i += used) {
        nori_error err = {0};
        if (load_name(s, &files.items[i], files.count - i, &used, &err) != NORI_OK &&
            first.status == NORI_OK) {
            first = err;
        }
    }
    nori__serve_files_free(&files);
    pthread_mutex_lock(&s->lock);
    s->start_error = first;
    atomic_store(&s->start_failed, first.status != NORI_OK);
    atomic_store(&s->starting, 0);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void load_one(nori_server *s, const char *name, nori_error *err)
{
    serve_files files = {NULL, 0, 0};
    size_t used = 0;
    if (nori__serve_scan(s, name, &files, err) != NORI_OK) {
        return;
    }
    if (files.count == 0) {
        nori__serve_fail(err, NORI_ERROR_ARGUMENT, "there is no model \"%.200s\" to load", name);
        nori__serve_hint(err, "POST /v2/repository/index lists those there are");
    } else {
        load_name(s, files.items, files.count, &used, err);
    }
    nori__serve_files_free(&files);
}

/* Takes what is to be told off the task, so that it is told once. Under the server's lock. */
static void take_done(serve_task *t, void (**done)(void *user, const nori_error *err), void **user)
{
    *done = t->done;
    *user = t->user;
    t->done = NULL;
}

static void *run(void *user)
{
    nori_server *s = user;
    load_start(s);
    pthread_mutex_lock(&s->lock);
    while (!s->loader_ends) {
        serve_task *t = s->first_task;
        if (!t) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        s->first_task = t->next;
        s->last_task = s->first_task ? s->last_task : NULL;
        s->now_task = t;
        pthread_mutex_unlock(&s->lock);
        nori_error err = {0};
        void (*done)(void *, const nori_error *) = NULL;
        void *who = NULL;
        load_one(s, t->name, &err);
        pthread_mutex_lock(&s->lock);
        take_done(t, &done, &who);
        s->now_task = NULL;
        pthread_mutex_unlock(&s->lock);
        if (done) {
            done(who, &err);
        }
        free(t->name);
        free(t);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

nori_status nori__serve_loader(nori_server *s, nori_error *err)
{
    if (pthread_create(&s->loader, NULL, run, s) != 0) {
        return nori__serve_fail(err, NORI_ERROR_MEMORY, "no thread could be started to load models");
    }
    s->has_loader = true;
    return NORI_OK;
}

bool nori__serve_load(nori_server *s, const char *name, void (*done)(void *user, const nori_error *err),
                      void *user)
{
    serve_task *t = calloc(1, sizeof(*t));
    char *copy = strdup(name);
    if (!t || !copy) {
        free(t);
        free(copy);
        return false;
    }
    *t = (serve_task){NULL, copy, done, user};
    pthread_mutex_lock(&s->lock);
    bool ends = s->loader_ends;
    if (!ends) {
        if (s->last_task) {
            s->last_task->next = t;
        } else {
            s->first_task = t;
        }
        s->last_task = t;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    if (ends) {
        free(copy);
        free(t);
    }
    return !ends;
}

void nori__serve_loader_stop(nori_server *s)
{
    nori_error err = {0};
    void (*done)(void *, const nori_error *) = NULL;
    void *user = NULL;
    nori__serve_fail(&err, NORI_ERROR_UNAVAILABLE, "the server is ending");
    pthread_mutex_lock(&s->lock);
    s->loader_ends = true;
    pthread_cond_broadcast(&s->changed);
    serve_task *rest = s->first_task;
    s->first_task = s->last_task = NULL;
    if (s->now_task) {
        take_done(s->now_task, &done, &user);
    }
    pthread_mutex_unlock(&s->lock);
    if (done) {
        done(user, &err);
    }
    while (rest) {
        serve_task *t = rest;
        rest = t->next;
        if (t->done) {
            t->done(t->user, &err);
        }
        free(t->name);
        free(t);
    }
}

void nori__serve_loader_end(nori_server *s)
{
    if (s->has_loader) {
        nori__serve_loader_stop(s);
        pthread_join(s->loader, NULL);
        s->has_loader = false;
    }
}

nori_status nori__serve_unload(nori_server *s, const char *name, nori_error *err)
{
    size_t gone = 0;
    for (serve_model *m = NULL; (m = nori__serve_next(s, m)) != NULL;) {
        if (strcmp(m->name, name) == 0) {
            retire(s, m);
            nori__serve_tell(s, "unloaded", name, m->version, 0, 0, "%s", "");
            gone++;
        }
    }
    return gone > 0 ? NORI_OK
                    : nori__serve_fail(err, NORI_ERROR_ARGUMENT, "no model \"%.200s\" is loaded", name);
}

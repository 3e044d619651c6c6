/* serve_start.c: a server's life: options, start, graceful end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "serve_internal.h"

void nori_serve_options_default(nori_serve_options *o)
{
    *o = (nori_serve_options){
        .size = sizeof(*o), .address = "127.0.0.1", .port = 8000, .versions = 1, .workers = 1, .batch = 1,
        .queue = 256, .connections = 2048, .header_bytes = 32768, .body_bytes = (size_t)64 << 20,
        .json_bytes = (size_t)16 << 20, .memory_bytes = (size_t)1 << 30, .receive_timeout = 30,
        .idle_timeout = 120,
    };
}

const char *nori_serve_version(void)
{
    return nori_version();
}

/* ---- options ---- */

static bool copy_text(const char **text)
{
    *text = *text ? strdup(*text) : NULL;
    return *text != NULL;
}

static nori_status check(const nori_serve_options *o, nori_error *err)
{
    const struct {
        const char *name;
        double value, low, high;
    } limits[] = {
        {"port", o->port, 0, 65535},
        {"versions", o->versions, 1, 1000},
        {"workers", o->workers, 1, 1024},
        {"batch", o->batch, 1, 65536},
        {"batch_delay", o->batch_delay, 0, 60},
        {"queue", o->queue, 1, 1000000},
        {"timeout", o->timeout, 0, 1e6},
        {"connections", o->connections, 1, 1000000},
        {"http_threads", o->http_threads, 0, 256},
        {"header_bytes", (double)o->header_bytes, 2048, 1 << 24},
        {"body_bytes", (double)o->body_bytes, 1, (double)(SIZE_MAX / 4)},
        {"json_bytes", (double)o->json_bytes, 1, (double)(SIZE_MAX / 4)},
        {"memory_bytes", (double)o->memory_bytes, 1, (double)(SIZE_MAX / 4)},
        {"receive_timeout", o->receive_timeout, 0.01, 1e6},
        {"idle_timeout", o->idle_timeout, 0.01, 1e6},
    };
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        if (!(limits[i].value >= limits[i].low && limits[i].value <= limits[i].high)) {
            return nori__serve_fail(err, NORI_ERROR_ARGUMENT, "%s is %g, from %g to %g was expected",
                                    limits[i].name, limits[i].value, limits[i].low, limits[i].high);
        }
    }
    if (!o->address || (o->model_count > 0 && !o->models)) {
        return nori__serve_fail(err, NORI_ERROR_ARGUMENT, "an address, and models where there are some, "
                                                          "were expected");
    }
    if (!o->certificate != !o->key) {
        return nori__serve_fail(err, NORI_ERROR_ARGUMENT, "TLS needs both a certificate and a key");
    }
    if (o->token && !o->token[0]) {
        return nori__serve_fail(err, NORI_ERROR_ARGUMENT, "the token is empty");
    }
    if (o->model_count == 0 && !o->repository) {
        return nori__serve_fail(err, NORI_ERROR_ARGUMENT, "there is neither a model nor a folder to serve");
    }
    return NORI_OK;
}

/* Texts and lists become the server's own. */
static nori_status keep_options(nori_server *s, nori_error *err)
{
    nori_serve_options *o = &s->options;
    const char **texts[] = {&o->address, &o->token, &o->certificate, &o->key, &o->repository};
    bool fine = true;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        fine = (!*texts[i] || copy_text(texts[i])) && fine;
    }
    s->models = calloc(o->model_count + 1, sizeof(*s->models));
    for (size_t i = 0; i < o->model_count && s->models; i++) {
        s->models[i] = strdup(o->models[i]);
        fine = fine && s->models[i];
    }
    o->models = NULL;
    if (o->session) {
        s->session = *o->session;
    } else {
        nori_session_options_default(&s->session);
    }
    o->session = NULL;
    if (o->http_threads == 0) {
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        o->http_threads = cpus < 1 ? 1 : cpus > 4 ? 4 : (int)cpus;
    }
    return fine && s->models ? NORI_OK : nori__serve_oom(err);
}

static nori_server *new_server(const nori_serve_options *options)
{
    nori_server *s = calloc(1, sizeof(*s));
    pthread_condattr_t monotonic;
    if (!s) {
        return NULL;
    }
    nori_serve_options_default(&s->options);
    memcpy(&s->options, options, options->size < sizeof(s->options) ? options->size : sizeof(s->options));
    s->options.size = sizeof(s->options);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->clients_lock, NULL);
    pthread_cond_init(&s->changed, &monotonic);
    pthread_cond_init(&s->watch_wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    atomic_init(&s->starting, 1);
    s->listening = -1;
    nori__serve_json_watch();
    return s;
}

nori_status nori_serve_start(const nori_serve_options *options, nori_server **server, nori_error *err)
{
    nori_error unwanted = {0};
    err = err ? err : &unwanted;
    *server = NULL;
    nori_status status = check(options, err);
    nori_server *s = status == NORI_OK ? new_server(options) : NULL;
    if (!s) {
        return status ? status : nori__serve_oom(err);
    }
    status = keep_options(s, err);
    if (status == NORI_OK) {
        serve_files files; /* names that cannot be are an error at once */
        status = nori__serve_scan(s, NULL, &files, err);
        nori__serve_files_free(&files);
    }
    status = status ? status : nori__serve_listen(s, err);
    status = status ? status : nori__serve_watcher(s, err);
    status = status ? status : nori__serve_loader(s, err);
    if (status != NORI_OK) {
        nori_serve_free(s);
        return status;
    }
    *server = s;
    return NORI_OK;
}

const char *nori_serve_address(const nori_server *s)
{
    return s->url;
}

int nori_serve_port(const nori_server *s)
{
    return s->port;
}

int nori_serve_ready(const nori_server *server)
{
    nori_server *s = (nori_server *)(uintptr_t)server; /* reading an atomic takes no const one */
    return !atomic_load(&s->starting) && !atomic_load(&s->start_failed) && !atomic_load(&s->stopping);
}

static struct timespec after(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    double whole = seconds > 1e9 ? 1e9 : seconds;
    t.tv_sec += (time_t)whole;
    t.tv_nsec += (long)((whole - (double)(time_t)whole) * 1e9);
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

nori_status nori_serve_wait(nori_server *s, double seconds, nori_error *err)
{
    struct timespec end = after(seconds > 0 ? seconds : 0);
    int late = 0;
    nori_status status = NORI_OK;
    pthread_mutex_lock(&s->lock);
    while (atomic_load(&s->starting) && !late) {
        late = seconds < 0 ? pthread_cond_wait(&s->changed, &s->lock)
                           : pthread_cond_timedwait(&s->changed, &s->lock, &end);
    }
    if (atomic_load(&s->starting)) {
        status = nori__serve_fail(err, NORI_ERROR_CANCELLED, "models are still being prepared");
    } else if (s->start_error.status != NORI_OK) {
        status = s->start_error.status;
        if (err && err->status == NORI_OK) {
            *err = s->start_error;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* ---- the end ---- */

static void doze(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

static void give_up(nori_server *s)
{
    for (serve_model *m = NULL; (m = nori__serve_next(s, m)) != NULL;) {
        atomic_fetch_add(&s->lost, nori__serve_give_up(m));
    }
}

/* Whether some job is with a worker: its connection sleeps and cannot be closed before it is done. */
static bool works(nori_server *s)
{
    bool busy = false;
    for (serve_model *m = NULL; (m = nori__serve_next(s, m)) != NULL;) {
        pthread_mutex_lock(&m->lock);
        busy = busy || m->running + m->waiting + m->reserved > 0;
        pthread_mutex_unlock(&m->lock);
    }
    return busy;
}

static void end_models(nori_server *s)
{
    for (serve_model *m = NULL; (m = nori__serve_next(s, m)) != NULL;) {
        nori__serve_unlink(s, m);
        nori__serve_close(m);
    }
}

size_t nori_serve_stop(nori_server *s, double notice, double drain)
{
    if (!s->daemon || atomic_exchange(&s->stopping, 1) > 0) {
        return (size_t)atomic_load(&s->lost);
    }
    nori__serve_tell(s, "stopping", "", "", 0, 0, "no longer ready; new connections for %g s, then what was "
                     "accepted for at most %g s", notice, drain);
    if (notice > 0) {
        doze(notice < 1e6 ? notice : 1e6);
    }
    atomic_store(&s->stopping, 2);
    nori__serve_quiesce(s);
    uint64_t began = nori__serve_now(), most = (uint64_t)((drain < 1e6 ? drain : 1e6) * 1e9);
    while (!nori__serve_idle(s) && nori__serve_now() - began < most) {
        doze(0.005);
    }
    nori__serve_loader_stop(s);
    give_up(s);
    while (works(s)) { /* what runs is finished: its connection cannot be closed before */
        doze(0.005);
        give_up(s);
    }
    for (int i = 0; atomic_load(&s->exchanges) > 0 && i < 100; i++) {
        doze(0.005); /* and what was answered is sent */
    }
    size_t open = atomic_load(&s->exchanges);
    atomic_fetch_add(&s->lost, open);
    nori__serve_hang_up(s);
    nori__serve_watcher_end(s);
    end_models(s);
    nori__serve_tell(s, "stopped", "", "", 0, 0, "%zu requests got no answer", (size_t)atomic_load(&s->lost));
    return (size_t)atomic_load(&s->lost);
}

void nori_serve_free(nori_server *s)
{
    if (!s) {
        return;
    }
    if (s->daemon) {
        nori_serve_stop(s, 0, 0);
    }
    nori__serve_hang_up(s);
    nori__serve_watcher_end(s);
    nori__serve_loader_end(s);
    end_models(s); /* what the loader still made */
    pthread_mutex_lock(&s->lock);
    while (s->live_models > 0) {
        pthread_cond_wait(&s->changed, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < s->options.model_count && s->models; i++) {
        free(s->models[i]);
    }
    free(s->models);
    const char *texts[] = {s->options.address, s->options.token, s->options.certificate, s->options.key,
                           s->options.repository};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        free((void *)(uintptr_t)texts[i]);
    }
    pthread_cond_destroy(&s->changed);
    pthread_cond_destroy(&s->watch_wake);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->clients_lock);
    free(s);
    nori__serve_json_unwatch();
}

/* serve_routes.c: which path asks for what, and what is answered once a request is there. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve_exchange.h"

/* ---- paths ---- */

/* Copies the part of a path up to the next slash; what follows it, or NULL when there is none or it is
 * too long. */
static const char *part(const char *path, char *out, size_t size)
{
    size_t n = strcspn(path, "/");
    if (n == 0 || n >= size) {
        return NULL;
    }
    memcpy(out, path, n);
    out[n] = 0;
    return path + n;
}

static serve_call model_call(const char *rest)
{
    static const struct {
        const char *path;
        serve_call call;
    } calls[] = {{"", CALL_MODEL},
                 {"/ready", CALL_MODEL_READY},
                 {"/infer", CALL_INFER},
                 {"/stats", CALL_MODEL_STATS},
                 {"/config", CALL_MODEL_CONFIG}};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (strcmp(calls[i].path, rest) == 0) {
            return calls[i].call;
        }
    }
    return CALL_NONE;
}

bool nori__serve_route(const char *path, serve_route *r)
{
    static const struct {
        const char *path;
        serve_call call;
    } fixed[] = {{"/v2/health/live", CALL_LIVE},   {"/v2/health/ready", CALL_READY},
                 {"/v2", CALL_SERVER},             {"/v2/", CALL_SERVER},
                 {"/v2/models/stats", CALL_ALL_STATS}, {"/v2/repository/index", CALL_INDEX},
                 {"/metrics", CALL_METRICS}};
    size_t size;
    const char *type, *rest;
    memset(r, 0, sizeof(*r));
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        if (strcmp(fixed[i].path, path) == 0) {
            r->call = fixed[i].call;
            return true;
        }
    }
    if (strncmp(path, "/v2/models/", 11) == 0) {
        rest = part(path + 11, r->name, sizeof(r->name));
        if (rest && strncmp(rest, "/versions/", 10) == 0) {
            rest = part(rest + 10, r->version, sizeof(r->version));
        }
        r->call = rest ? model_call(rest) : CALL_NONE;
    } else if (strncmp(path, "/v2/repository/models/", 22) == 0) {
        rest = part(path + 22, r->name, sizeof(r->name));
        r->call = !rest                            ? CALL_NONE
                  : strcmp(rest, "/load") == 0     ? CALL_LOAD
                  : strcmp(rest, "/unload") == 0   ? CALL_UNLOAD
                                                   : CALL_NONE;
    } else if (nori__serve_page(path, &size, &type)) {
        snprintf(r->name, sizeof(r->name), "%s", path);
        r->call = CALL_PAGE;
    }
    return r->call != CALL_NONE;
}

const char *nori__serve_allowed(serve_call call)
{
    return call == CALL_INFER || call == CALL_LOAD || call == CALL_UNLOAD ? "POST"
           : call == CALL_INDEX                                          ? "POST, GET, HEAD"
                                                                         : "GET, HEAD";
}

bool nori__serve_is_open(serve_call call)
{
    return call == CALL_LIVE || call == CALL_READY || call == CALL_PAGE;
}

/* ---- answers ---- */

void nori__serve_refuse_error(serve_exchange *x, int code, const nori_error *err)
{
    x->code = code;
    x->reply.size = 0;
    x->reply.failed = false;
    nori__serve_error(&x->reply, err);
    x->type = "application/json";
    if (code == 503 && x->retry_after == 0) {
        x->retry_after = 1;
    }
}

void nori__serve_refuse(serve_exchange *x, int code, const char *format, ...)
{
    nori_error err = {0};
    va_list list;
    va_start(list, format);
    vsnprintf(err.message, sizeof(err.message), format, list);
    va_end(list);
    nori__serve_refuse_error(x, code, &err);
}

/* A model by its path that is not on its way out: one that was just exchanged has a successor. */
static serve_model *find_open(serve_exchange *x, const char *version, serve_state *state)
{
    for (int tries = 0; tries < 4; tries++) {
        serve_model *m = nori__serve_find(x->server, x->route.name, version);
        if (!m) {
            return NULL;
        }
        pthread_mutex_lock(&m->lock);
        *state = m->state;
        pthread_mutex_unlock(&m->lock);
        if (*state != SERVE_CLOSED) {
            return m;
        }
        nori__serve_model_free(m);
    }
    return NULL;
}

/* The model a path names, with a reference; else the answer is filled. */
static serve_model *wanted_model(serve_exchange *x, bool ready)
{
    serve_state state = SERVE_CLOSED;
    const char *version = x->route.version[0] ? x->route.version : NULL;
    serve_model *m = find_open(x, version, &state);
    if (!m && atomic_load(&x->server->starting)) { /* it may be one of those to come */
        nori__serve_refuse(x, 503, "model \"%s\" is not ready: models are being prepared", x->route.name);
    } else if (!m) {
        nori__serve_refuse(x, 404, "there is no model \"%s\"%s%s; POST /v2/repository/index lists them",
                           x->route.name, version ? " of version " : "", version ? version : "");
    }
    if (!m || !ready || state == SERVE_READY) {
        return m;
    }
    pthread_mutex_lock(&m->lock);
    if (state == SERVE_LOADING) {
        nori__serve_refuse(x, 503, "model \"%s\" is being prepared%s%s", m->name,
                           m->phase[0] ? ": " : "", m->phase);
    } else {
        nori__serve_refuse(x, 503, "model \"%s\" is not ready: %s", m->name, m->reason);
    }
    pthread_mutex_unlock(&m->lock);
    nori__serve_model_free(m);
    return NULL;
}

static void model_text(serve_exchange *x, void (*write)(serve_model *m, serve_text *t))
{
    serve_model *m = wanted_model(x, true);
    if (m) {
        write(m, &x->reply);
        nori__serve_model_free(m);
    }
}

static void stats(serve_exchange *x, const char *name)
{
    bool first = true;
    nori__serve_print(&x->reply, "{\"model_stats\":[");
    for (serve_model *m = NULL; (m = nori__serve_next(x->server, m)) != NULL;) {
        if ((!name || strcmp(m->name, name) == 0) &&
            (!x->route.version[0] || strcmp(m->version, x->route.version) == 0)) {
            nori__serve_print(&x->reply, "%s", first ? "" : ",");
            nori__serve_model_stats(m, &x->reply);
            first = false;
        }
    }
    nori__serve_print(&x->reply, "]}\n");
    if (name && first) {
        serve_model *m = wanted_model(x, false); /* says why there is none */
        nori__serve_model_free(m);
    }
}

/* ---- infer ---- */

static void wake(void *user)
{
    serve_exchange *x = user;
    MHD_resume_connection(x->connection);
}

/* Seconds until the queue may have been worked off. */
static int retry_after(serve_model *m)
{
    pthread_mutex_lock(&m->lock);
    const serve_counts *c = &m->counts;
    double run = c->runs > 0 ? (double)(c->infer.ns / (c->infer.count ? c->infer.count : 1)) / 1e9 : 0;
    double rows = c->runs > 0 ? (double)c->rows / (double)c->runs : 1;
    double wait = run * (double)m->waiting / (rows > 1 ? rows : 1) / m->server->options.workers;
    pthread_mutex_unlock(&m->lock);
    return wait < 1 ? 1 : wait > 60 ? 60 : (int)ceil(wait);
}

static void no_place(serve_exchange *x, serve_model *m, serve_place place)
{
    if (place == SERVE_FULL) {
        x->retry_after = retry_after(m);
        nori__serve_refuse(x, 503, "the queue of model \"%s\" is full: %d requests wait", m->name,
                           x->server->options.queue);
    } else {
        nori__serve_refuse(x, 503, "model \"%s\" was unloaded just now", x->route.name);
    }
}

static uint64_t deadline_of(const serve_exchange *x, const serve_job *job)
{
    uint64_t ns = x->header_timeout_ns;
    if (job->request.timeout_us > 0) {
        uint64_t own = job->request.timeout_us > INT64_MAX / 2000 ? UINT64_MAX / 2
                                                                  : (uint64_t)job->request.timeout_us * 1000;
        ns = ns == 0 || own < ns ? own : ns;
    }
    if (ns == 0) {
        ns = (uint64_t)(x->server->options.timeout * 1e9);
    }
    return ns == 0 ? 0 : job->arrived + (ns < UINT64_MAX / 2 ? ns : UINT64_MAX / 2);
}

/* A model with a place in its queue; NULL: the answer is filled. */
static serve_model *reserve(serve_exchange *x)
{
    serve_place place = SERVE_GONE;
    for (int tries = 0; tries < 3; tries++) { /* it may just be exchanged for a newer one */
        serve_model *m = wanted_model(x, true);
        place = m ? nori__serve_reserve(m) : SERVE_GONE;
        if (!m || place == SERVE_PLACE) {
            return m;
        }
        if (place == SERVE_FULL || tries == 2) {
            no_place(x, m, place);
        }
        nori__serve_model_free(m);
        if (place == SERVE_FULL) {
            return NULL;
        }
    }
    return NULL;
}

static void free_job(serve_job *job)
{
    nori__serve_request_free(&job->request);
    free(job->answer.data);
    free(job);
}

static void infer(serve_exchange *x)
{
    nori_error err = {0};
    serve_model *m = reserve(x);
    if (!m) {
        return;
    }
    serve_job *job = calloc(1, sizeof(*job));
    nori_status status = job ? nori__serve_parse(&m->signature, x->data ? x->data : x->no_body, x->size,
                                                 x->json_size, &job->request, &err)
                             : nori__serve_oom(&err);
    if (status != NORI_OK) {
        nori__serve_refuse_error(x, nori__serve_code(status), &err);
        nori__serve_unreserve(m);
        nori__serve_model_free(m);
        free(job);
        return;
    }
    job->arrived = nori__serve_now();
    job->rows = m->has_rows ? nori__serve_rows(m, &job->request) : -1;
    job->deadline = deadline_of(x, job);
    job->done = wake;
    job->user = x;
    uint64_t deadline = job->deadline;
    x->model = m;
    x->job = job;
    x->waiting = true;
    MHD_suspend_connection(x->connection); /* before anyone can wake it */
    nori__serve_push(m, job);
    if (deadline) {
        nori__serve_watch(x->server, deadline);
    }
}

void nori__serve_finish(serve_exchange *x)
{
    serve_job *job = x->job;
    if (x->route.call != CALL_INFER) {
        if (x->load_error.status == NORI_OK) {
            x->code = 200;
        } else {
            bool later = x->load_error.status == NORI_ERROR_UNAVAILABLE ||
                         x->load_error.status == NORI_ERROR_MEMORY;
            nori__serve_refuse_error(x, later ? 503 : 400, &x->load_error);
        }
        return;
    }
    x->timed = true;
    x->queue_ns = job->queue_ns;
    x->infer_ns = job->infer_ns;
    if (job->code == 200) {
        x->code = 200;
        free(x->reply.data);
        x->reply = job->answer;
        job->answer = (serve_text){NULL, 0, 0, false};
        x->reply_json = job->json_size;
        x->type = job->json_size ? "application/octet-stream" : "application/json";
    } else {
        nori__serve_refuse_error(x, job->code, &job->err);
    }
    free_job(job);
    x->job = NULL;
    nori__serve_model_free(x->model);
    x->model = NULL;
}

/* ---- the rest ---- */

static void loaded(void *user, const nori_error *err)
{
    serve_exchange *x = user;
    x->load_error = *err;
    MHD_resume_connection(x->connection);
}

static void load(serve_exchange *x)
{
    nori_error err = {0};
    nori_status status = nori__serve_parse_load(x->data, x->size, &err);
    if (status != NORI_OK) {
        nori__serve_refuse_error(x, nori__serve_code(status), &err);
        return;
    }
    x->waiting = true;
    MHD_suspend_connection(x->connection);
    if (!nori__serve_load(x->server, x->route.name, loaded, x)) {
        if (atomic_load(&x->server->stopping)) {
            nori__serve_fail(&x->load_error, NORI_ERROR_UNAVAILABLE, "the server is ending");
        } else {
            nori__serve_oom(&x->load_error);
        }
        MHD_resume_connection(x->connection);
    }
}

static void index_models(serve_exchange *x)
{
    nori_error err = {0};
    bool ready_only = false;
    nori_status status = nori__serve_parse_index(x->data, x->size, &ready_only, &err);
    if (status != NORI_OK) {
        nori__serve_refuse_error(x, nori__serve_code(status), &err);
    } else {
        nori__serve_index(x->server, ready_only, &x->reply);
    }
}

static void act_page(serve_exchange *x, const char *path)
{
    x->fixed = nori__serve_page(path, &x->fixed_size, &x->type);
    x->page = true;
}

void nori__serve_act(serve_exchange *x)
{
    nori_error err = {0};
    x->code = 200;
    x->type = "application/json";
    switch (x->route.call) {
    case CALL_LIVE: nori__serve_print(&x->reply, "{\"live\":true}\n"); break;
    case CALL_READY:
        x->code = nori_serve_ready(x->server) ? 200 : 503;
        x->retry_after = x->code == 503;
        nori__serve_readiness(x->server, &x->reply);
        break;
    case CALL_SERVER:
        nori__serve_print(&x->reply,
                          "{\"name\":\"nori\",\"version\":\"%s\",\"extensions\":[\"binary_tensor_data\","
                          "\"model_repository\",\"statistics\",\"model_configuration\"]}\n",
                          nori_version());
        break;
    case CALL_MODEL: model_text(x, nori__serve_metadata); break;
    case CALL_MODEL_CONFIG: model_text(x, nori__serve_config); break;
    case CALL_MODEL_READY: {
        serve_model *m = wanted_model(x, true);
        if (m) {
            nori__serve_print(&x->reply, "{\"name\":\"%s\",\"ready\":true}\n", m->name);
            nori__serve_model_free(m);
        }
        break;
    }
    case CALL_MODEL_STATS: stats(x, x->route.name); break;
    case CALL_ALL_STATS: stats(x, NULL); break;
    case CALL_INFER: infer(x); break;
    case CALL_INDEX: index_models(x); break;
    case CALL_LOAD: load(x); break;
    case CALL_UNLOAD:
        if (nori__serve_unload(x->server, x->route.name, &err) != NORI_OK) {
            nori__serve_refuse_error(x, 400, &err);
        }
        break;
    case CALL_METRICS:
        x->type = "text/plain; version=0.0.4; charset=utf-8";
        nori__serve_metrics(x->server, &x->reply);
        break;
    case CALL_PAGE: act_page(x, x->route.name); break;
    default: nori__serve_refuse(x, 404, "there is nothing at this path");
    }
}

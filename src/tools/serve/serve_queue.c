/* serve_queue.c: the bounded queue of a model and the threads that work it off. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "serve_internal.h"

uint64_t nori__serve_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int nori__serve_code(nori_status status)
{
    switch (status) {
    case NORI_OK: return 200;
    case NORI_ERROR_ARGUMENT:
    case NORI_ERROR_DATA:
    case NORI_ERROR_FORMAT:
    case NORI_ERROR_MODEL:
    case NORI_ERROR_UNSUPPORTED: return 400;
    case NORI_ERROR_LIMIT: return 413;
    case NORI_ERROR_MEMORY:
    case NORI_ERROR_UNAVAILABLE: return 503;
    case NORI_ERROR_CANCELLED: return 504;
    default: return 500;
    }
}

/* ---- the list, under the model's lock ---- */

static void take_out(serve_model *m, serve_job *before, serve_job *job)
{
    if (before) {
        before->next = job->next;
    } else {
        m->first = job->next;
    }
    m->last = m->last == job ? before : m->last;
    job->next = NULL;
    m->waiting--;
}

serve_place nori__serve_reserve(serve_model *m)
{
    serve_place result = SERVE_PLACE;
    pthread_mutex_lock(&m->lock);
    if (m->state != SERVE_READY) {
        result = SERVE_GONE;
    } else if (m->waiting + m->reserved >= (size_t)m->server->options.queue) {
        m->counts.rejected++;
        result = SERVE_FULL;
    } else {
        m->reserved++;
    }
    pthread_mutex_unlock(&m->lock);
    return result;
}

void nori__serve_unreserve(serve_model *m)
{
    pthread_mutex_lock(&m->lock);
    m->reserved--;
    if (m->state == SERVE_CLOSED) {
        pthread_cond_broadcast(&m->wake);
    }
    pthread_mutex_unlock(&m->lock);
}

void nori__serve_push(serve_model *m, serve_job *job)
{
    pthread_mutex_lock(&m->lock);
    m->reserved--;
    job->next = NULL;
    if (m->last) {
        m->last->next = job;
    } else {
        m->first = job;
    }
    m->last = job;
    m->waiting++;
    if (m->gathering > 0 || m->state == SERVE_CLOSED) {
        pthread_cond_broadcast(&m->wake);
    } else {
        pthread_cond_signal(&m->wake);
    }
    pthread_mutex_unlock(&m->lock);
}

/* ---- ends of jobs ---- */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void nori__serve_done(serve_model *m, serve_job *job)
{
    job->ended = nori__serve_now();
    if (job->code == 200 && job->deadline && job->ended > job->deadline) {
        job->code = 504;
        nori__serve_fail(&job->err, NORI_ERROR_CANCELLED,
                         "the result came %.1f ms after the request's time was over",
                         (double)(job->ended - job->deadline) / 1e6);
    }
    pthread_mutex_lock(&m->lock);
    serve_counts *c = &m->counts;
    c->last_ms = now_ms();
    if (job->code == 200) {
        nori__serve_count(&c->total, job->ended - job->arrived);
    } else if (job->code == 504) {
        c->expired++;
    } else {
        c->failed++;
        c->failed_ns += job->ended - job->arrived;
    }
    pthread_mutex_unlock(&m->lock);
    job->done(job->user);
}

static void refuse(serve_model *m, serve_job *job, int code, nori_status status, const char *text)
{
    job->code = code;
    job->queue_ns = nori__serve_now() - job->arrived;
    nori__serve_fail(&job->err, status, "%s", text);
    nori__serve_done(m, job);
}

size_t nori__serve_give_up(serve_model *m)
{
    size_t count = 0;
    for (;;) {
        pthread_mutex_lock(&m->lock);
        serve_job *job = m->first;
        if (job) {
            take_out(m, NULL, job);
        }
        pthread_mutex_unlock(&m->lock);
        if (!job) {
            return count;
        }
        refuse(m, job, 503, NORI_ERROR_UNAVAILABLE, "the server ended before the request's turn came");
        count++;
    }
}

uint64_t nori__serve_expire(serve_model *m, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    serve_job *late = NULL;
    pthread_mutex_lock(&m->lock);
    for (serve_job *job = m->first, *before = NULL, *after; job; job = after) {
        after = job->next;
        if (job->deadline && job->deadline <= now) {
            take_out(m, before, job);
            job->next = late;
            late = job;
        } else {
            next = job->deadline && job->deadline < next ? job->deadline : next;
            before = job;
        }
    }
    pthread_mutex_unlock(&m->lock);
    while (late) {
        serve_job *job = late;
        late = job->next;
        refuse(m, job, 504, NORI_ERROR_CANCELLED, "the request's time was over before its turn came");
    }
    return next;
}

/* ---- workers ---- */

#define MOST_JOBS 1024 /* of one run */

/* Takes those that may run with the first one, until the rows are as many as allowed. */
static size_t gather(serve_model *m, serve_job **jobs, size_t count, int64_t *rows)
{
    const int64_t most = m->server->options.batch;
    for (serve_job *job = m->first, *before = NULL, *after; job && *rows < most && count < MOST_JOBS;
         job = after) {
        after = job->next;
        if (job->rows > 0 && job->rows <= most - *rows && nori__serve_alike(m, jobs[0], job)) {
            take_out(m, before, job);
            *rows += job->rows;
            jobs[count++] = job;
        } else {
            before = job;
        }
    }
    return count;
}

/* Waits for others, at most as long as the first one may wait for them. */
static size_t fill_batch(serve_model *m, serve_job **jobs)
{
    int64_t rows = jobs[0]->rows;
    uint64_t until = jobs[0]->arrived + (uint64_t)(m->server->options.batch_delay * 1e9);
    size_t count = gather(m, jobs, 1, &rows);
    m->gathering++;
    while (rows < m->server->options.batch && m->state == SERVE_READY && count < MOST_JOBS &&
           nori__serve_now() < until) {
        struct timespec t = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
        pthread_cond_timedwait(&m->wake, &m->lock, &t);
        count = gather(m, jobs, count, &rows);
    }
    m->gathering--;
    if (m->first) { /* another worker may have been woken for nothing while this one waited */
        pthread_cond_signal(&m->wake);
    }
    return count;
}

static void *work(void *user)
{
    serve_model *m = user;
    serve_job **jobs = malloc(MOST_JOBS * sizeof(*jobs));
    serve_job *one;
    pthread_mutex_lock(&m->lock);
    for (;;) {
        while (!m->first && (m->state != SERVE_CLOSED || m->reserved > 0)) {
            pthread_cond_wait(&m->wake, &m->lock);
        }
        if (!m->first) {
            break;
        }
        serve_job **taken = jobs ? jobs : &one;
        size_t count = 1;
        taken[0] = m->first;
        take_out(m, NULL, m->first);
        if (jobs && m->batches && taken[0]->rows > 0 && taken[0]->rows < m->server->options.batch) {
            count = fill_batch(m, jobs);
        }
        m->running += count;
        pthread_mutex_unlock(&m->lock);
        nori__serve_run(m, taken, count);
        pthread_mutex_lock(&m->lock);
        m->running -= count;
    }
    m->workers--;
    pthread_mutex_unlock(&m->lock);
    free(jobs);
    nori__serve_model_free(m);
    return NULL;
}

bool nori__serve_workers(serve_model *m, nori_error *err)
{
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_mutex_lock(&m->lock);
    for (int i = 0; i < m->server->options.workers; i++) {
        pthread_t thread;
        atomic_fetch_add(&m->refs, 1);
        if (pthread_create(&thread, &detached, work, m) != 0) {
            atomic_fetch_sub(&m->refs, 1);
            break;
        }
        m->workers++;
    }
    bool some = m->workers > 0;
    pthread_mutex_unlock(&m->lock);
    pthread_attr_destroy(&detached);
    if (!some) {
        nori__serve_fail(err, NORI_ERROR_MEMORY, "no thread could be started for the model");
    }
    return some;
}

void nori__serve_close(serve_model *m)
{
    pthread_mutex_lock(&m->lock);
    m->state = SERVE_CLOSED;
    pthread_cond_broadcast(&m->wake);
    pthread_mutex_unlock(&m->lock);
}

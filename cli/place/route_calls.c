/* route_calls.c: makes the calls of `nori route`, at a rate or one after another. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "route_job.h"

static double since(const route_job *j)
{
    return (double)(nori_clock_ns() - j->begin_ns) / 1e9;
}

/* Whether an answer is the device's own, within tolerance. */
static bool agrees(const route_job *j, nori_tensor *const *out)
{
    for (size_t i = 0; i < j->n_out; i++) {
        nori_difference d = {.size = sizeof(d)};
        nori_tensor_compare(out[i], j->wanted[i], j->atol, j->rtol, &d);
        if (!d.passes) {
            return false;
        }
    }
    return true;
}

/* The number of the next call, and when it begins; -1: there are no more. */
static long next_call(route_job *j, double *at)
{
    pthread_mutex_lock(&j->lock);
    long n = j->next;
    *at = j->rate > 0 ? (double)n / j->rate : since(j);
    bool more = j->seconds > 0 ? *at < j->seconds : n < j->calls;
    if (more && (size_t)n >= j->capacity) {
        size_t wanted = j->capacity ? 2 * j->capacity : 1024;
        route_call *grown = realloc(j->all, wanted * sizeof(*grown));
        more = grown != NULL;
        j->all = grown ? grown : j->all;
        j->capacity = grown ? wanted : j->capacity;
    }
    j->next += more;
    pthread_mutex_unlock(&j->lock);
    return more ? n : -1;
}

static void wait_until(const route_job *j, double at)
{
    double left = at - since(j);
    if (left > 0) {
        struct timespec t = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
        nanosleep(&t, NULL);
    }
}

static void *caller(void *user)
{
    route_job *j = user;
    double at;
    long n;
    nori_tensor **out = calloc(j->n_out + 1, sizeof(*out));
    while (out && (n = next_call(j, &at)) >= 0) {
        nori_error err = {0};
        nori_route_result r = {.size = sizeof(r)};
        wait_until(j, at);
        double begun = since(j);
        nori_status s = nori_route_run(j->route, (const nori_tensor *const *)j->in, j->n_in, out,
                                       j->n_out, &r, &err);
        route_call c = {.at = begun, .seconds = since(j) - (j->rate > 0 ? at : begun), .place = r.place,
                        .asked = r.asked, .answered = s == NORI_OK, .hedged = r.hedged != 0};
        c.agrees = s == NORI_OK && agrees(j, out);
        for (size_t i = 0; i < j->n_out; i++) {
            nori_tensor_free(out[i]);
            out[i] = NULL;
        }
        pthread_mutex_lock(&j->lock);
        j->all[n] = c;
        j->done++;
        if (s != NORI_OK && j->error.status == NORI_OK) {
            j->error = err;
        }
        pthread_mutex_unlock(&j->lock);
    }
    free(out);
    return NULL;
}

int route_calls(route_job *j)
{
    pthread_t *threads = calloc((size_t)j->callers, sizeof(*threads));
    long started = 0;
    if (!threads || pthread_mutex_init(&j->lock, NULL) != 0) {
        free(threads);
        return cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
    }
    j->begin_ns = nori_clock_ns();
    while (started < j->callers && pthread_create(&threads[started], NULL, caller, j) == 0) {
        started++;
    }
    for (long i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_mutex_destroy(&j->lock);
    free(threads);
    return started == j->callers && j->done == j->next
               ? EXIT_YES : cli_fail_text(j->args, NORI_ERROR_LIMIT, "%ld callers cannot be had", j->callers);
}

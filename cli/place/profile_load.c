/* profile_load.c: the same model under load: several callers at once, and minutes without a pause,
 * after which a device that throttles shows what it can keep up. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"

#define CALLERS_SECONDS 0.6 /* for each number of callers, and at least a few calls of each */
#define LEAST_CALLS 5
#define LATE_SHARE 0.25     /* the last part of the load is what it comes to */

typedef struct caller {
    const profile_job *j;
    pthread_t thread;
    atomic_int *stop;
    uint64_t until_ns, late_ns; /* calls that begin before late_ns are not counted */
    profile_samples times;
    nori_error err;
} caller;

static void *call_on(void *user)
{
    caller *c = user;
    nori_tensor **out = calloc(c->j->n_out + 1, sizeof(*out));
    size_t calls = 0;
    double took = 0;
    while (out && !atomic_load(c->stop)) {
        uint64_t start = nori_clock_ns();
        if (start >= c->until_ns && calls >= LEAST_CALLS) {
            break;
        }
        if (nori_session_run(c->j->session, (const nori_tensor *const *)c->j->in, c->j->n_in, out,
                             c->j->n_out, &c->err) != NORI_OK) {
            atomic_store(c->stop, 1);
            break;
        }
        took = (double)(nori_clock_ns() - start) / 1e9;
        calls++; /* outputs are kept and written again: a steady run allocates nothing */
        if (start >= c->late_ns && !profile_add(&c->times, took)) {
            c->err.status = NORI_ERROR_MEMORY;
            snprintf(c->err.message, sizeof(c->err.message), "out of memory");
            atomic_store(c->stop, 1);
        }
    }
    if (c->times.count == 0 && calls > 0) { /* the machine stood still in between: the last one counts */
        (void)profile_add(&c->times, took);
    }
    for (size_t i = 0; out && i < c->j->n_out; i++) {
        nori_tensor_free(out[i]);
    }
    free(out);
    return NULL;
}

/* n callers for so many seconds; what they took from share `late` of it on. */
static int load_for(const profile_job *j, int n, double seconds, double late, profile_times *times,
                    double *rate)
{
    atomic_int stop = 0;
    uint64_t begin = nori_clock_ns();
    caller *all = calloc((size_t)n, sizeof(*all));
    profile_samples sum = {0};
    int code = all ? EXIT_YES : cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory"), started = 0;
    for (; code == EXIT_YES && started < n; started++) {
        all[started] = (caller){.j = j, .stop = &stop,
                                .until_ns = begin + (uint64_t)(seconds * 1e9),
                                .late_ns = begin + (uint64_t)(seconds * late * 1e9)};
        if (pthread_create(&all[started].thread, NULL, call_on, &all[started]) != 0) {
            code = cli_fail_text(j->args, NORI_ERROR_LIMIT, "no more than %d threads can be had", started);
            atomic_store(&stop, 1);
            break;
        }
    }
    for (int i = 0; i < started; i++) {
        pthread_join(all[i].thread, NULL);
    }
    double took = (double)(nori_clock_ns() - begin) / 1e9 - seconds * late;
    for (int i = 0; i < started; i++) {
        if (code == EXIT_YES && all[i].err.status != NORI_OK) {
            code = cli_fail(j->args, &all[i].err);
        }
        for (size_t k = 0; code == EXIT_YES && k < all[i].times.count; k++) {
            code = profile_add(&sum, all[i].times.v[k])
                       ? EXIT_YES : cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
        }
        free(all[i].times.v);
    }
    free(all);
    *rate = took > 0 ? (double)sum.count / took : 0;
    profile_settle(&sum, times);
    return code;
}

/* "1,2,4" */
static int read_callers(const profile_job *j, int *list, size_t *count)
{
    const char *text = cli_value(j->args, "--callers");
    text = text ? text : "1,2";
    *count = 0;
    if (strcmp(text, "none") == 0) {
        return EXIT_YES;
    }
    for (const char *p = text; *p; p += *p == ',') {
        char *end;
        long n = strtol(p, &end, 10);
        if (end == p || (*end && *end != ',') || n < 1 || n > 1000 || *count == PROFILE_CALLERS) {
            return cli_usage(j->args, "--callers \"%s\": at most %d numbers from 1 to 1000 were expected, "
                             "as 1,2,4", text, PROFILE_CALLERS);
        }
        list[(*count)++] = (int)n;
        p = end;
    }
    return EXIT_YES;
}

int profile_load(profile_job *j)
{
    int list[PROFILE_CALLERS];
    profile *p = &j->p;
    double rate;
    int code = read_callers(j, list, &p->n_callers);
    for (size_t i = 0; code == EXIT_YES && i < p->n_callers; i++) {
        p->callers[i].callers = list[i];
        cli_progress(j->args, "%d at once", list[i]);
        code = load_for(j, list[i], CALLERS_SECONDS, 0, &p->callers[i].times, &p->callers[i].rate);
    }
    p->minutes = j->minutes;
    if (code == EXIT_YES && j->minutes > 0) {
        cli_progress(j->args, "%.3g minutes under load", j->minutes);
        code = load_for(j, 1, 60 * j->minutes, 1 - LATE_SHARE, &p->loaded, &rate);
    }
    cli_progress_done(j->args);
    return code;
}

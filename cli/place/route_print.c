/* route_print.c: where the calls of `nori route` went and what they took. */
#include <stdlib.h>

#include "route_job.h"

static const char *const names[] = {"nowhere", "edge", "cloud", "split"};

typedef struct sums {
    profile_times all, by[NORI_PLACES]; /* of calls answered, by who answered */
    uint64_t asked[NORI_PLACES];
    uint64_t answered, hedged, agree, late;
} sums;

static bool add_up(const route_job *j, sums *s)
{
    profile_samples all = {0}, by[NORI_PLACES] = {{0}};
    bool ok = true;
    *s = (sums){.answered = 0};
    for (long i = 0; i < j->done; i++) {
        const route_call *c = &j->all[i];
        if (c->asked >= NORI_PLACE_EDGE) {
            s->asked[c->asked - 1]++;
        }
        s->hedged += c->hedged;
        s->agree += c->agrees;
        s->late += j->deadline > 0 && (!c->answered || c->seconds > j->deadline);
        if (c->answered) {
            s->answered++;
            ok = ok && profile_add(&all, c->seconds) && profile_add(&by[c->place - 1], c->seconds);
        }
    }
    profile_settle(&all, &s->all);
    for (int i = 0; i < NORI_PLACES; i++) {
        profile_settle(&by[i], &s->by[i]);
    }
    return ok;
}

static void json_times(cli_json *w, const char *key, const profile_times *t)
{
    cli_json_object(w, key);
    cli_json_uint(w, "answers", t->count);
    if (t->count > 0) {
        cli_json_number(w, "mean_ms", 1e3 * t->mean, 6);
        cli_json_number(w, "p50_ms", 1e3 * t->at[8], 6);
        cli_json_number(w, "p95_ms", 1e3 * t->at[14], 6);
        cli_json_number(w, "p99_ms", 1e3 * t->at[16], 6);
        cli_json_number(w, "most_ms", 1e3 * t->at[PROFILE_SHARES - 1], 6);
    }
    cli_json_end(w);
}

static void print_json(const route_job *j, const sums *s, const nori_policy_view *v)
{
    cli_json w;
    cli_json_begin(&w, stdout);
    cli_json_int(&w, "calls", j->done);
    cli_json_uint(&w, "answered", s->answered);
    cli_json_uint(&w, "agree", s->agree);
    cli_json_uint(&w, "hedged", s->hedged);
    if (j->deadline > 0) {
        cli_json_uint(&w, "late", s->late);
    }
    cli_json_uint(&w, "switches", v->switches);
    cli_json_string(&w, "place", names[v->place]);
    cli_json_bool(&w, "server_not_called", v->open);
    cli_json_uint(&w, "requests", j->records);
    cli_json_uint(&w, "sent_bytes", j->sent);
    cli_json_uint(&w, "received_bytes", j->received);
    cli_json_uint(&w, "not_answered_by_server", j->refused);
    if (j->refused > 0) {
        cli_json_string(&w, "first_not_answered", j->refusal.message);
    }
    json_times(&w, "all", &s->all);
    for (int i = 0; i < NORI_PLACES; i++) {
        json_times(&w, names[i + 1], &s->by[i]);
    }
    cli_json_array(&w, "each");
    for (long i = 0; i < j->done; i++) {
        const route_call *c = &j->all[i];
        cli_json_object(&w, NULL);
        cli_json_number(&w, "at_s", c->at, 7);
        cli_json_number(&w, "ms", 1e3 * c->seconds, 6);
        cli_json_string(&w, "place", c->answered ? names[c->place] : names[0]);
        cli_json_bool(&w, "hedged", c->hedged);
        cli_json_end(&w);
    }
    cli_json_end(&w);
    cli_json_finish(&w);
}

static void print_text(const route_job *j, const sums *s, const nori_policy_view *v)
{
    printf("%-6s %8s %8s %10s %10s %10s %10s %10s\n", "", "asked", "answers", "mean ms", "p50", "p95", "p99",
           "most");
    for (int i = 0; i < NORI_PLACES; i++) {
        const profile_times *t = &s->by[i];
        if (s->asked[i] > 0 || t->count > 0) {
            printf("%-6s %8llu %8zu", names[i + 1], (unsigned long long)s->asked[i], t->count);
            if (t->count > 0) {
                printf(" %10.3f %10.3f %10.3f %10.3f %10.3f", 1e3 * t->mean, 1e3 * t->at[8], 1e3 * t->at[14],
                       1e3 * t->at[16], 1e3 * t->at[PROFILE_SHARES - 1]);
            }
            printf("\n");
        }
    }
    printf("\n%llu of %ld calls answered, %llu by a hedge; %llu answers are the device's own within %g\n",
           (unsigned long long)s->answered, j->done, (unsigned long long)s->hedged,
           (unsigned long long)s->agree, j->atol > j->rtol ? j->atol : j->rtol);
    if (j->deadline > 0) {
        printf("%llu later than %.4g ms\n", (unsigned long long)s->late, 1e3 * j->deadline);
    }
    printf("%llu changes of place; at the end %s%s\n", (unsigned long long)v->switches, names[v->place],
           v->open ? ", the server does not answer and is not called" : "");
    printf("left the device: %llu requests, %llu bytes; came back: %llu bytes\n",
           (unsigned long long)j->records, (unsigned long long)j->sent,
           (unsigned long long)j->received);
}

static void warn(const route_job *j, uint64_t count, const char *what, const nori_error *first)
{
    cli_warn(j->args, "%llu %s; the first of them: %s%s%s", (unsigned long long)count, what, first->message,
             first->hint[0] ? "\n  hint: " : "", first->hint);
}

int route_report(route_job *j)
{
    static sums s;
    nori_policy_view v = {.size = sizeof(v)};
    nori_route_look(j->route, &v);
    nori_route_free(j->route); /* requests that nobody waited for are counted, too */
    j->route = NULL;
    if (!add_up(j, &s)) {
        return cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
    }
    if (j->args->json) {
        print_json(j, &s, &v);
    } else if (!j->args->quiet) {
        print_text(j, &s, &v);
    }
    if (atomic_load(&j->log_failed)) {
        return cli_fail_text(j->args, NORI_ERROR_IO, "%s could not be written; from then on nothing was sent",
                             cli_value(j->args, "--log"));
    }
    if (s.answered < (uint64_t)j->done) {
        warn(j, (uint64_t)j->done - s.answered, "calls had no answer", &j->error);
        return EXIT_NO;
    }
    if (j->refused > 0) {
        warn(j, j->refused, "requests had no answer of the server", &j->refusal);
    }
    return s.agree == s.answered ? EXIT_YES : EXIT_NO;
}

/* serve_events.c: what a server tells, for people and for programs. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "serve_job.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* An object in memory, then as one line: who reads events reads lines. */
typedef struct line {
    cli_json w;
    FILE *f;
    char *text;
    size_t size;
} line;

static bool line_begin(line *l, const char *what)
{
    l->text = NULL;
    l->f = open_memstream(&l->text, &l->size);
    if (l->f) {
        cli_json_begin(&l->w, l->f);
        cli_json_string(&l->w, "event", what);
    }
    return l->f != NULL;
}

static void line_finish(line *l)
{
    cli_json_finish(&l->w);
    if (fclose(l->f) == 0) {
        for (const char *p = l->text; *p; p++) {
            if (*p == '\n') { /* texts hold none: it is an escape there */
                p += strspn(p + 1, " ");
            } else {
                putchar(*p);
            }
        }
        putchar('\n');
        fflush(stdout);
    }
    free(l->text);
}

/* Steps of one phase come by the thousand: the first is told, and one a second. */
static bool worth_telling(serve_job *j, const nori_serve_event *e)
{
    char phase[sizeof(j->phase)];
    if (strcmp(e->what, "preparing") != 0) {
        return true;
    }
    snprintf(phase, sizeof(phase), "%.*s", (int)strcspn(e->text, "("), e->text);
    if (strcmp(phase, j->phase) == 0 && now() - j->told < 1) {
        return false;
    }
    memcpy(j->phase, phase, sizeof(phase));
    j->told = now();
    return true;
}

void serve_on_event(void *user, const nori_serve_event *e)
{
    serve_job *j = user;
    pthread_mutex_lock(&j->lock);
    line l;
    if (j->args->json && line_begin(&l, e->what)) {
        if (e->model[0]) {
            cli_json_string(&l.w, "model", e->model);
            cli_json_string(&l.w, "version", e->version);
        }
        cli_json_string(&l.w, "text", e->text);
        if (e->total > 0) {
            cli_json_uint(&l.w, "done", e->done);
            cli_json_uint(&l.w, "total", e->total);
        }
        line_finish(&l);
    } else if (!j->args->json && !j->args->quiet && worth_telling(j, e)) {
        bool model = e->model[0] != 0;
        fprintf(stderr, "nori: %s%s%s%s%s%s%s\n", model ? e->model : "", model ? " version " : "",
                e->version, model ? ": " : "", e->what, e->text[0] ? ": " : "", e->text);
    }
    pthread_mutex_unlock(&j->lock);
}

void serve_say(serve_job *j, const char *what, const char *address)
{
    pthread_mutex_lock(&j->lock);
    line l;
    if (j->args->json && line_begin(&l, what)) {
        cli_json_string(&l.w, "address", address);
        line_finish(&l);
    } else if (!j->args->json) {
        printf("%s: %s\n", what, address);
    }
    fflush(stdout);
    pthread_mutex_unlock(&j->lock);
}

/* place_split.c: where the model is divided best between device and server, by the times of its nodes,
 * the bytes between them, and the link of the question. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place_job.h"

/* Times of a profile's nodes for one side; none: shared out as the device's. */
static nori_status set_times(nori_divide *d, int side, const profile *p, double total, nori_error *err)
{
    const char **values = calloc(p->n_nodes + 1, sizeof(*values));
    double *seconds = calloc(p->n_nodes + 1, sizeof(*seconds));
    nori_status s = NORI_ERROR_MEMORY;
    if (values && seconds) {
        for (size_t i = 0; i < p->n_nodes; i++) {
            values[i] = p->nodes[i].value;
            seconds[i] = p->nodes[i].s;
        }
        s = nori_divide_times(d, side, values, seconds, p->n_nodes, total, err);
    }
    free(values);
    free(seconds);
    return s;
}

/* What a message costs whatever its size, and what its bytes do. */
static nori_divide_link link_of(const place_job *j, bool int8)
{
    const nori_place_question *q = &j->question;
    double far = nori_times_mean(&q->rtt) + nori_times_mean(&q->up) + nori_times_mean(&q->down);
    far += q->cloud.has_queue ? nori_times_mean(&q->cloud.queue) : 0;
    return (nori_divide_link){.size = sizeof(nori_divide_link), .up_speed = q->up_speed,
                              .down_speed = q->down_speed, .far_s = far, .inputs_stay = q->raw_stays,
                              .int8 = int8};
}

static bool keep(place_cut *to, const nori_division *d)
{
    size_t size = 1;
    for (size_t i = 0; i < d->value_count; i++) {
        size += strlen(d->values[i]) + 1;
    }
    char *names = calloc(size, 1);
    if (!names) {
        return false;
    }
    for (size_t i = 0, at = 0; i < d->value_count; i++) {
        int n = snprintf(names + at, size - at, "%s%s", i ? "," : "", d->values[i]);
        at += n > 0 ? (size_t)n : 0;
    }
    free(to->values);
    to->values = names;
    to->d = *d;
    to->d.values = NULL;
    return true;
}

static bool is_split(const nori_division *d)
{
    return d->edge_nodes > 0 && d->cloud_nodes > 0;
}

/* The best of all; where that is an end, the best of the others in the order of the file. curve: its
 * times and bytes, or NULL. */
static nori_status find(place_job *j, nori_divide *d, bool int8, place_cut *to, bool *exact,
                        nori_error *err)
{
    place_split *s = &j->split;
    nori_divide_link link = link_of(j, int8);
    nori_division cut = {.size = sizeof(cut)};
    size_t best = SIZE_MAX, i = 0;
    double least = INFINITY;
    for (; nori_divide_at(d, i, &link, &cut); i++) {
        bool allowed = !(cut.raw && j->question.raw_stays);
        if (allowed && cut.total_s < least) {
            best = i;
            least = cut.total_s;
        }
        if (!int8) {
            s->mean[i] = allowed ? cut.total_s : NAN;
            s->bytes[i] = (double)cut.bytes;
            s->count = i + 1;
        }
    }
    nori_status status = nori_divide_best(d, &link, &cut, err);
    if (status != NORI_OK) {
        return status;
    }
    *exact = is_split(&cut);
    if (!*exact && (best == SIZE_MAX || !nori_divide_at(d, best, &link, &cut))) {
        return NORI_OK; /* a model of one node */
    }
    s->there = true;
    return keep(to, &cut) ? NORI_OK : NORI_ERROR_MEMORY;
}

static nori_status measure_int8(place_job *j, nori_divide *d)
{
    place_split *s = &j->split;
    nori_error err = {0};
    s->int8 = (nori_agreement){.size = sizeof(s->int8)};
    if (nori_divide_int8(d, &s->int8, &err) != NORI_OK) {
        snprintf(s->int8_lacks, sizeof(s->int8_lacks), "%.250s", err.message);
    }
    return NORI_OK;
}

/* A part of a side's times: the share of it that its nodes are. */
static void part_of(const nori_times *whole, double share, nori_times *out)
{
    for (int i = 0; i < NORI_TIMES_POINTS; i++) {
        out->at[i] = whole->at[i] * share;
    }
}

static void ask(place_job *j)
{
    nori_place_question *q = &j->question;
    bool int8 = cli_has(j->args, "--byte-features");
    const nori_division *d = int8 ? &j->split.best8.d : &j->split.best.d;
    double edge = nori_times_mean(&q->edge.service), cloud = nori_times_mean(&q->cloud.service);
    q->can_split = 1;
    q->feature_bytes = (double)(int8 ? d->int8_bytes : d->bytes);
    part_of(&q->edge.service, edge > 0 ? d->edge_s / edge : 0, &q->split_edge);
    part_of(&q->cloud.service, cloud > 0 ? d->cloud_s / cloud : 0, &q->split_cloud);
}

static nori_status divide(place_job *j, nori_divide *d, nori_error *err)
{
    const nori_place_question *q = &j->question;
    place_split *s = &j->split;
    bool exact8;
    size_t n = nori_divide_node_count(d);
    s->mean = calloc(n + 1, sizeof(*s->mean));
    s->bytes = calloc(n + 1, sizeof(*s->bytes));
    nori_status status = s->mean && s->bytes ? NORI_OK : NORI_ERROR_MEMORY;
    status = status == NORI_OK ? set_times(d, 0, &j->edge, nori_times_mean(&q->edge.service), err) : status;
    status = status == NORI_OK ? set_times(d, 1, &j->cloud_own, nori_times_mean(&q->cloud.service), err)
                               : status;
    status = status == NORI_OK ? find(j, d, false, &s->best, &s->exact, err) : status;
    status = status == NORI_OK ? find(j, d, true, &s->best8, &exact8, err) : status;
    return status == NORI_OK && s->there ? measure_int8(j, d) : status;
}

int place_divide(place_job *j)
{
    nori_error err = {0};
    nori_session_options o;
    nori_divide *d = NULL;
    bool asked = cli_has(j->args, "--byte-features");
    if (!j->model || j->edge.n_nodes == 0 || !j->question.cloud.there) {
        return asked ? cli_usage(j->args, "--byte-features needs a model, and profiles of both sides")
                     : EXIT_YES;
    }
    if (!cli_session_options(j->args, &o)) {
        return EXIT_USAGE;
    }
    nori_status s = nori_divide_create(j->model, &o, (const nori_tensor *const *)j->in, j->n_in, &d, &err);
    s = s == NORI_OK ? divide(j, d, &err) : s;
    nori_divide_free(d);
    if (s != NORI_OK) {
        return err.status != NORI_OK ? cli_fail(j->args, &err) : cli_fail_text(j->args, s, "out of memory");
    }
    if (j->split.there) {
        ask(j);
    }
    return EXIT_YES;
}

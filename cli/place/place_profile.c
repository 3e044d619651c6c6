/* place_profile.c: profiles of `nori profile` as the terms of a question. What options say comes later
 * and goes before it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place_job.h"

/* Below this load a device has pauses: its times are those of a device that has rested. */
#define RESTS_BELOW 0.5

static int wrong_side(const place_job *j, const char *option, const char *path)
{
    return cli_fail_text(j->args, NORI_ERROR_DATA, "%s %s: it holds no times of a call", option, path);
}

static void take_model(place_job *j, const profile *p)
{
    nori_place_question *q = &j->question;
    if (j->args->count == 0) { /* a model given says it itself */
        q->model_bytes = q->model_bytes > 0 ? q->model_bytes : p->model_bytes;
        q->activation_bytes = q->activation_bytes > 0 ? q->activation_bytes : p->activation_bytes;
        q->up_bytes = q->up_bytes > 0 ? q->up_bytes : p->input_bytes;
        q->down_bytes = q->down_bytes > 0 ? q->down_bytes : p->output_bytes;
    }
}

/* How many calls the device works on at once: what it gets done with several callers. */
static int servers_of(const profile *p)
{
    double best = 0;
    for (size_t i = 0; i < p->n_callers; i++) {
        best = p->callers[i].rate > best ? p->callers[i].rate : best;
    }
    double servers = floor(best * p->steady.mean + 0.5);
    return servers < 1 ? 1 : servers > 1e6 ? 1000000 : (int)servers;
}

static int take_edge(place_job *j, const char *path)
{
    nori_place_question *q = &j->question;
    profile *p = &j->edge;
    int code = profile_read(j->args, path, p);
    if (code != EXIT_YES) {
        return code;
    }
    const char *text = cli_value(j->args, "--rate");
    double rate = 0;
    if (text) {
        (void)nori_quantity_parse(text, NORI_QUANTITY_RATE, &rate, NULL); /* refused later if need be */
    }
    bool rests = rate > 0 && rate * p->steady.mean < RESTS_BELOW;
    const profile_times *t = p->loaded.count > 0 && !rests ? &p->loaded : &p->steady;
    if (p->cloud || !profile_as_times(t, &q->edge.service)) {
        return wrong_side(j, "--edge-profile", path);
    }
    q->edge.there = 1;
    q->edge.memory = p->memory;
    q->edge.servers = servers_of(p);
    take_model(j, p);
    return EXIT_YES;
}

/* A way as measured: what its bytes take at its speed, so that both can be changed, and the rest. */
static void take_way(const profile_times *t, double bytes, double speed, nori_times *way,
                     double *to_bytes, double *to_speed)
{
    nori_times as;
    if (!profile_as_times(t, &as)) {
        return;
    }
    double fixed = speed > 0 ? bytes / speed : 0;
    double mean = nori_times_mean(&as);
    if (fixed > mean) { /* the slope was taken in a slower moment than the calls */
        speed = mean > 0 ? bytes / mean : 0;
        fixed = mean;
    }
    double rest = 0;
    for (int i = 0; i < NORI_TIMES_POINTS; i++) {
        way->at[i] = as.at[i] > fixed ? as.at[i] - fixed : 0;
        rest += way->at[i] / NORI_TIMES_POINTS;
    }
    for (int i = 0; i < NORI_TIMES_POINTS && rest > 0; i++) { /* the mean stays what was measured */
        way->at[i] *= (mean - fixed) / rest;
    }
    *to_bytes = bytes;
    *to_speed = speed;
}

static int take_cloud(place_job *j, const char *path)
{
    nori_place_question *q = &j->question;
    profile p;
    int code = profile_read(j->args, path, &p);
    if (code != EXIT_YES) {
        return code;
    }
    profile *to = p.cloud ? &j->cloud : &j->cloud_own;
    if (to->model) {
        profile_free(&p);
        return cli_usage(j->args, "--cloud-profile %s: there is one of this side already", path);
    }
    *to = p;
    take_model(j, to);
    if (!to->cloud) { /* made on the server itself: what it computes, no way there */
        const profile_times *t = to->loaded.count > 0 ? &to->loaded : &to->steady;
        if (!j->cloud.model && !profile_as_times(t, &q->cloud.service)) {
            return wrong_side(j, "--cloud-profile", path);
        }
        q->cloud.there = 1;
        q->cloud.memory = to->memory;
        q->cloud.servers = servers_of(to);
        return EXIT_YES;
    }
    if (!profile_as_times(&to->service, &q->cloud.service)) {
        return wrong_side(j, "--cloud-profile", path);
    }
    q->cloud.there = 1;
    /* As busy as the server was then; where a rate is told, its queue is computed from that. */
    q->cloud.has_queue = !cli_has(j->args, "--rate") && !cli_has(j->args, "--cloud-rate") &&
                         profile_as_times(&to->queue, &q->cloud.queue);
    (void)profile_as_times(&to->rtt, &q->rtt);
    take_way(&to->up, to->up_bytes, to->up_speed, &q->up, &q->up_bytes, &q->up_speed);
    take_way(&to->down, to->down_bytes, to->down_speed, &q->down, &q->down_bytes, &q->down_speed);
    return EXIT_YES;
}

int place_profiles(place_job *j)
{
    const char *edge = cli_value(j->args, "--edge-profile"), *cloud;
    int code = edge ? take_edge(j, edge) : EXIT_YES;
    for (int i = 0; code == EXIT_YES && (cloud = cli_nth(j->args, "--cloud-profile", i)) != NULL; i++) {
        code = take_cloud(j, cloud);
    }
    return code;
}

void place_free(place_job *j)
{
    for (size_t i = 0; j->in && i < j->n_in; i++) {
        nori_tensor_free(j->in[i]);
    }
    free(j->in);
    nori_session_free(j->session);
    nori_model_free(j->model);
    free(j->split.best.values);
    free(j->split.best8.values);
    free(j->split.mean);
    free(j->split.bytes);
    free(j->calls);
    free(j->rows);
    profile_free(&j->edge);
    profile_free(&j->cloud);
    profile_free(&j->cloud_own);
}

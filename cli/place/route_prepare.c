/* route_prepare.c: models, inputs, what to expect, and the way to the server, as a route. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "route_job.h"

/* ---- the way to the server ---- */

/* Calls that were given up here say nothing of the server. */
static void note(route_job *j, nori_status status, const nori_error *err)
{
    if (status != NORI_OK && status != NORI_ERROR_CANCELLED) {
        pthread_mutex_lock(&j->refusal_lock);
        j->refusal = j->refused == 0 ? *err : j->refusal;
        j->refused++;
        pthread_mutex_unlock(&j->refusal_lock);
    }
}

static nori_status send_call(void *user, int second, const nori_tensor *const *inputs, size_t n_in,
                             nori_tensor **outputs, size_t n_out, nori_route_stopped stopped,
                             void *stopped_user, nori_route_traffic *traffic, nori_error *err)
{
    route_job *j = user;
    remote_stop stop = {stopped, stopped_user};
    if (atomic_load(&j->log_failed)) {
        return remote_fail(err, NORI_ERROR_IO, "the log cannot be written: nothing is sent any more");
    }
    remote_times t = {0};
    remote_call call = {.model = second ? j->second : NULL,
                        .inputs = second ? j->feature_info : j->in_info,
                        .tensors = inputs,
                        .n_in = n_in,
                        .outputs = j->out_info,
                        .n_out = n_out,
                        .stop = &stop};
    nori_status s = remote_infer(j->r, &call, outputs, &t, err);
    note(j, s, err);
    traffic->sent_bytes = t.sent;
    traffic->received_bytes = t.received;
    return s;
}

static nori_status send_probe(void *user, nori_route_traffic *traffic, nori_error *err)
{
    route_job *j = user;
    remote_times t = {0};
    nori_status s = remote_get(j->r, "/v2/health/live", NULL, &t, NULL, err);
    note(j, s, err);
    traffic->sent_bytes = t.sent;
    traffic->received_bytes = t.received;
    return s;
}

static void write_record(void *user, const nori_route_record *record)
{
    static const char *const names[] = {"nowhere", "edge", "cloud", "split"};
    route_job *j = user;
    j->records++;
    j->sent += record->traffic.sent_bytes;
    j->received += record->traffic.received_bytes;
    if (j->log) {
        struct timespec now;
        struct tm utc;
        timespec_get(&now, TIME_UTC);
        strftime(j->when, sizeof(j->when), "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &utc));
        fprintf(j->log, "{\"time\": \"%s.%03ldZ\", \"what\": \"%s\", \"model\": \"%s\", \"place\": \"%s\", "
                "\"sent_bytes\": %llu, \"received_bytes\": %llu, \"ms\": %.3f, \"answered\": %s}\n",
                j->when, now.tv_nsec / 1000000, record->what,
                strcmp(record->what, "probe") == 0 ? "" : strcmp(record->model, "second") == 0
                    ? j->second : remote_model(j->r),
                names[record->place], (unsigned long long)record->traffic.sent_bytes,
                (unsigned long long)record->traffic.received_bytes, 1e3 * record->seconds,
                record->answered ? "true" : "false");
        if (fflush(j->log) != 0) {
            atomic_store(&j->log_failed, true);
        }
    }
}

static int open_far(route_job *j)
{
    const char *path = cli_value(j->args, "--log");
    if (!cli_has(j->args, "--cloud")) {
        return path ? cli_usage(j->args, "--log without --cloud: nothing leaves the device") : EXIT_YES;
    }
    if (path && !(j->log = fopen(path, "a"))) {
        return cli_fail_text(j->args, NORI_ERROR_IO, "%s cannot be written to", path);
    }
    if (j->options.raw_stays && j->options.features_stay) {
        return EXIT_YES; /* not even a handle of the library that could send */
    }
    j->options.infer = send_call;
    j->options.probe = send_probe;
    j->options.far_user = j;
    j->options.log = write_record;
    j->options.log_user = j;
    return remote_open(j->args, j->args->positional[0], &j->r);
}

/* ---- models ---- */

static int describe(route_job *j)
{
    j->n_in = nori_model_input_count(j->model);
    j->n_out = nori_model_output_count(j->model);
    j->in_info = calloc(j->n_in + 1, sizeof(*j->in_info));
    j->out_info = calloc(j->n_out + 1, sizeof(*j->out_info));
    j->in = calloc(j->n_in + 1, sizeof(*j->in));
    j->wanted = calloc(j->n_out + 1, sizeof(*j->wanted));
    if (!j->in_info || !j->out_info || !j->in || !j->wanted) {
        return cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < j->n_in; i++) {
        j->in_info[i] = nori_model_input(j->model, i);
    }
    for (size_t i = 0; i < j->n_out; i++) {
        j->out_info[i] = nori_model_output(j->model, i);
    }
    return EXIT_YES;
}

/* The first part of a split, a model of its own. */
static int open_first(route_job *j)
{
    const char *path = cli_value(j->args, "--first");
    nori_error err = {0};
    nori_load_options load;
    nori_session_options o;
    if (!path) {
        return EXIT_YES;
    }
    cli_load_options(j->args, &load);
    if (!cli_session_options(j->args, &o)) {
        return EXIT_USAGE;
    }
    if (nori_model_load(j->args->env, path, &load, &j->first_model, &err) != NORI_OK ||
        nori_session_create(j->first_model, &o, &j->first, &err) != NORI_OK) {
        return cli_fail(j->args, &err);
    }
    size_t n = nori_session_output_count(j->first);
    j->feature_info = calloc(n + 1, sizeof(*j->feature_info));
    if (!j->feature_info) {
        return cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < n; i++) {
        j->feature_info[i] = nori_session_output(j->first, i);
    }
    j->options.first = j->first;
    return nori_session_input_count(j->first) <= j->n_in
               ? EXIT_YES
               : cli_fail_text(j->args, NORI_ERROR_DATA, "%s has %zu inputs, the whole model has %zu", path,
                               nori_session_input_count(j->first), j->n_in);
}

static int open_models(route_job *j)
{
    nori_error err = {0};
    int code = cli_load(j->args, &j->model);
    code = code == EXIT_YES ? describe(j) : code;
    code = code == EXIT_YES ? cli_session(j->args, j->model, 0, &j->session) : code;
    if (code == EXIT_YES) {
        code = cli_inputs(j->args, j->session, j->args->positional + 1, j->args->count - 1, j->in);
    }
    if (code == EXIT_YES && nori_session_run(j->session, (const nori_tensor *const *)j->in, j->n_in,
                                             j->wanted, j->n_out, &err) != NORI_OK) {
        code = cli_fail(j->args, &err);
    }
    j->options.edge = j->session;
    j->options.output_count = j->n_out;
    return code == EXIT_YES ? open_first(j) : code;
}

/* ---- what to expect ---- */

static int expect(route_job *j)
{
    nori_error err = {0};
    static nori_place_answer a;
    nori_place_question *q = &j->place.question;
    if (!cli_has(j->args, "--edge-profile") && !cli_has(j->args, "--cloud-profile")) {
        return EXIT_YES; /* the first calls find out */
    }
    nori_place_question_default(q);
    int code = place_profiles(&j->place);
    if (code != EXIT_YES) {
        return code;
    }
    q->deadline = j->deadline;
    a = (nori_place_answer){.size = sizeof(a)};
    if (nori_place_decide(q, &a, &err) != NORI_OK) {
        return cli_fail(j->args, &err);
    }
    const int there[] = {q->edge.there, q->cloud.there};
    for (int i = 0; i < 2; i++) {
        j->options.policy.has_prior[i] = there[i];
        j->options.policy.prior[i] = a.option[i].total;
    }
    return EXIT_YES;
}

int route_prepare(route_job *j)
{
    nori_error err = {0};
    int code = open_models(j);
    code = code == EXIT_YES ? open_far(j) : code;
    code = code == EXIT_YES ? expect(j) : code;
    if (code == EXIT_YES && nori_route_create(&j->options, &j->route, &err) != NORI_OK) {
        code = cli_fail(j->args, &err);
    }
    return code;
}

static void free_tensors(nori_tensor **list, size_t n)
{
    for (size_t i = 0; list && i < n; i++) {
        nori_tensor_free(list[i]);
    }
    free(list);
}

void route_close(route_job *j)
{
    nori_route_free(j->route);
    pthread_mutex_destroy(&j->refusal_lock);
    remote_free(j->r);
    if (j->log) {
        fclose(j->log);
    }
    free_tensors(j->in, j->n_in);
    free_tensors(j->wanted, j->n_out);
    free(j->in_info);
    free(j->out_info);
    free(j->feature_info);
    free(j->all);
    nori_session_free(j->first);
    nori_model_free(j->first_model);
    nori_session_free(j->session);
    nori_model_free(j->model);
    place_free(&j->place);
}

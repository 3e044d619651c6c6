/* cmd_profile.c: times a model on this device, or on a server as this device sees it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inputs.h"
#include "profile.h"
#include "remote.h"

static const cli_option options[] = {
    CLI_INPUT_OPTIONS,
    CLI_REMOTE_OPTIONS,
    {"--runs", "N", "steady runs, or calls to the server (default 50)"},
    {"--minutes", "M", "under load without a pause, before the last times (default 0.05; 0: none)"},
    {"--callers", "LIST", "at once, each number for a while (default 1,2), or none"},
    {"--output", "FILE", "the profile as JSON, for `nori place`"},
    {"--html", "FILE", "write a page with pictures, readable without a network"},
    CLI_SESSION_OPTIONS,
    CLI_LOAD_OPTIONS,
    CLI_QUIET_OPTION,
    CLI_COMMON_OPTIONS,
};

static int minutes(profile_job *j)
{
    const char *text = cli_value(j->args, "--minutes");
    char *end;
    j->minutes = text ? strtod(text, &end) : 0.05;
    if (text && (end == text || *end || !isfinite(j->minutes) || j->minutes < 0 || j->minutes > 1e5)) {
        return cli_usage(j->args, "--minutes \"%s\": a number from 0 on was expected", text);
    }
    return EXIT_YES;
}

static int check(profile_job *j)
{
    cli_args *args = j->args;
    bool cloud = cli_has(args, "--cloud");
    if (args->count < 1) {
        return cli_usage(args, "a model was expected");
    }
    if (cloud && (cli_has(args, "--minutes") || cli_has(args, "--callers"))) {
        return cli_usage(args, "--minutes and --callers are for this device, not for a server");
    }
    if (!cloud && (cli_has(args, "--cloud-model") || cli_has(args, "--token-file") ||
                   cli_has(args, "--ca") || cli_has(args, "--timeout"))) {
        return cli_usage(args, "--cloud URL says which server");
    }
    if (!cli_number(args, "--runs", 1, 1000000, 50, &j->runs)) {
        return EXIT_USAGE;
    }
    return minutes(j);
}

/* Model, session and inputs; for a server they only say what is sent and what comes back. */
static int prepare(profile_job *j)
{
    uint64_t start = nori_clock_ns(), loaded;
    int code = cli_load(j->args, &j->model);
    loaded = nori_clock_ns();
    code = code == EXIT_YES ? cli_session(j->args, j->model, 0, &j->session) : code;
    if (code != EXIT_YES) {
        return code;
    }
    j->p.load_s = (double)(loaded - start) / 1e9;
    j->p.create_s = (double)(nori_clock_ns() - loaded) / 1e9;
    j->n_in = nori_session_input_count(j->session);
    j->n_out = nori_session_output_count(j->session);
    j->in = calloc(j->n_in + 1, sizeof(*j->in));
    j->p.model = strdup(j->args->positional[0]);
    if (!j->in || !j->p.model) {
        return cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
    }
    j->p.model_bytes = (double)nori_model_file_bytes(j->model);
    return cli_inputs(j->args, j->session, j->args->positional + 1, j->args->count - 1, j->in);
}

static int sizes(profile_job *j)
{
    nori_costs *costs = NULL;
    nori_cost_total total = {.size = sizeof(total)};
    nori_error err = {0};
    if (nori_session_costs(j->session, (const nori_tensor *const *)j->in, j->n_in, &costs, &err) !=
        NORI_OK) {
        return cli_fail(j->args, &err);
    }
    nori_costs_total(costs, &total);
    j->p.activation_bytes = (double)total.activation_bytes;
    for (size_t i = 0; i < j->n_in; i++) {
        j->p.input_bytes += j->in[i] ? (double)nori_tensor_bytes(j->in[i]) : 0;
    }
    j->p.output_bytes = (double)total.output_bytes;
    nori_costs_free(costs);
    return EXIT_YES;
}

static int report(profile_job *j)
{
    const char *path = cli_value(j->args, "--output");
    cli_draft d;
    if (path) {
        if (!cli_draft_begin(j->args, &d)) {
            return EXIT_UNSUPPORTED;
        }
        profile_write(&j->p, d.f);
        int code = cli_draft_finish(j->args, &d, path, true);
        if (code != EXIT_YES) {
            return code;
        }
    }
    int code = profile_page(j->args, &j->p);
    if (code == EXIT_YES && j->args->json) {
        profile_write(&j->p, stdout);
    } else if (code == EXIT_YES && !j->args->quiet) {
        profile_print(&j->p);
    }
    return code;
}

static int run(cli_args *args)
{
    profile_job j = {.args = args};
    int code = check(&j);
    code = code == EXIT_YES ? prepare(&j) : code;
    code = code == EXIT_YES ? sizes(&j) : code;
    if (code == EXIT_YES) {
        code = cli_has(args, "--cloud") ? profile_cloud(&j) : profile_device(&j);
    }
    code = code == EXIT_YES ? report(&j) : code;
    for (size_t i = 0; j.in && i < j.n_in; i++) {
        nori_tensor_free(j.in[i]);
    }
    free(j.in);
    profile_free(&j.p);
    nori_session_free(j.session);
    nori_model_free(j.model);
    return code;
}

const cli_verb cli_profile = {
    "profile", "place", "MODEL [FILE ...]",
    "time a model on this device, or on a server as seen from here, for `nori place`", options, run,
    "  nori profile model.onnx --output edge.json\n"
    "  nori profile model.onnx --minutes 5 --callers 1,2,4,8 --html profile.html\n"
    "  nori profile model.onnx --cloud http://server:8000 --output cloud.json\n"};

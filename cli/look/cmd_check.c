/* cmd_check.c: everything that is wrong or remarkable about a model. */
#include <string.h>

#include "key_file.h"

static const cli_option options[] = {
    {"--target", "LIST", "providers that must be able to run every node, as cpu or ort:cpu"},
    CLI_LOAD_OPTIONS, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

static const char *const severities[] = {"", "info", "warning", "error"};

static void print_json(const cli_args *args, const nori_findings *f)
{
    cli_json j;
    cli_json_begin(&j, stdout);
    cli_json_string(&j, "path", args->positional[0]);
    cli_json_array(&j, "findings");
    for (size_t i = 0; i < nori_findings_count(f); i++) {
        const nori_finding *x = nori_findings_at(f, i);
        cli_json_object(&j, NULL);
        cli_json_string(&j, "severity", severities[x->severity]);
        cli_json_string(&j, "rule", x->rule);
        cli_json_string(&j, "path", x->path);
        cli_json_string(&j, "message", x->message);
        cli_json_string(&j, "hint", x->hint);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    size_t errors = nori_findings_at_least(f, NORI_SEVERITY_ERROR);
    cli_json_uint(&j, "errors", errors);
    cli_json_uint(&j, "warnings", nori_findings_at_least(f, NORI_SEVERITY_WARNING) - errors);
    cli_json_finish(&j);
}

static void print_text(const cli_args *args, const nori_findings *f)
{
    for (size_t i = 0; i < nori_findings_count(f); i++) {
        const nori_finding *x = nori_findings_at(f, i);
        if (args->quiet && x->severity < NORI_SEVERITY_ERROR) {
            continue;
        }
        const char *colour = !cli_colour(stdout)                       ? ""
                             : x->severity == NORI_SEVERITY_ERROR      ? "\033[31m"
                             : x->severity == NORI_SEVERITY_WARNING    ? "\033[33m"
                                                                       : "";
        printf("%s%-8s%s %-10s %s%s%s\n", colour, severities[x->severity],
               colour[0] ? "\033[0m" : "", x->rule, x->path, x->path[0] ? ": " : "", x->message);
        if (x->hint[0]) {
            printf("%19s hint: %s\n", "", x->hint);
        }
    }
    size_t errors = nori_findings_at_least(f, NORI_SEVERITY_ERROR);
    size_t warnings = nori_findings_at_least(f, NORI_SEVERITY_WARNING) - errors;
    printf("%s: %zu error%s, %zu warning%s\n", args->positional[0], errors, errors == 1 ? "" : "s",
           warnings, warnings == 1 ? "" : "s");
}

static int run(cli_args *args)
{
    if (args->count != 1) {
        return cli_usage(args, "one model file was expected");
    }
    nori_error err = {0};
    nori_findings *f = NULL;
    nori_load_options lo;
    nori_check_options co;
    cli_load_options(args, &lo);
    nori_check_options_default(&co);
    co.strict = lo.strict;
    co.targets = cli_value(args, "--target");
    int code = cli_load_ops(args, NULL);
    if (code != EXIT_YES) {
        return code;
    }
    nori_model *sealed = NULL;
    nori_status s = NORI_OK;
    if (cli_has(args, "--seal-key")) {
        s = cli_open_model(args, NULL, args->positional[0], &lo, &sealed, &err);
        s = s == NORI_OK ? nori_check(sealed, &co, &f, &err) : s;
        nori_model_free(sealed);
    } else {
        s = nori_check_file(NULL, args->positional[0], &lo, &co, &f, &err);
    }
    if (s != NORI_OK) {
        return cli_fail(args, &err);
    }
    if (args->json) {
        print_json(args, f);
    } else {
        print_text(args, f);
    }
    size_t errors = nori_findings_at_least(f, NORI_SEVERITY_ERROR);
    bool load = false;
    for (size_t i = 0; i < nori_findings_count(f); i++) {
        load = load || strcmp(nori_findings_at(f, i)->rule, "load") == 0;
    }
    nori_findings_free(f);
    return errors == 0 ? EXIT_YES : load ? EXIT_BAD : EXIT_NO;
}

const cli_verb cli_check = {"check", "look", "MODEL [--target LIST]",
                            "every fault of a model at once, with place and remedy", options, run,
                            "  nori check model.onnx\n  nori check model.onnx --target cpu\n"};

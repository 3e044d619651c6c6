/* cmd_opset.c: the lowest operator set of a model, and which runtimes would refuse the file. */
#include <string.h>

#include "cli.h"
#include "nori/convert.h"

static const cli_option options[] = {
    CLI_LOAD_OPTIONS, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

static void print_json(const cli_args *args, const nori_opset_report *r,
                       const nori_opset_summary *s)
{
    nori_blocker b = {.size = sizeof(b)};
    nori_runtime_verdict v = {.size = sizeof(v)};
    cli_json j;
    cli_json_begin(&j, stdout);
    cli_json_string(&j, "path", args->positional[0]);
    cli_json_int(&j, "opset", s->opset);
    cli_json_int(&j, "ir", s->ir);
    cli_json_int(&j, "lowest", s->lowest);
    cli_json_int(&j, "lowest_ir", s->lowest_ir);
    cli_json_array(&j, "needed_by");
    for (size_t i = 0; nori_opset_report_blocker(r, i, &b); i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "path", b.path);
        cli_json_string(&j, "op", b.op);
        cli_json_string(&j, "reason", b.reason);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    cli_json_array(&j, "runtimes");
    for (size_t i = 0; nori_opset_report_runtime(r, i, &v); i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "name", v.name);
        cli_json_int(&j, "oldest_opset", v.oldest_opset);
        cli_json_int(&j, "opset", v.opset);
        cli_json_int(&j, "ir", v.ir);
        cli_json_bool(&j, "refuses", v.refuses);
        cli_json_string(&j, "reason", v.reason);
        cli_json_bool(&j, "lowest_loads", v.lowest_loads);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    cli_json_finish(&j);
}

static void print_text(const cli_args *args, const nori_opset_report *r,
                       const nori_opset_summary *s)
{
    nori_blocker b = {.size = sizeof(b)};
    nori_runtime_verdict v = {.size = sizeof(v)};
    bool better = false;
    printf("as it is    operator set %lld, IR version %lld\n", (long long)s->opset, (long long)s->ir);
    if (s->lowest > 0) {
        printf("lowest      operator set %lld, IR version %lld\n", (long long)s->lowest,
               (long long)s->lowest_ir);
    } else {
        printf("lowest      none: it can be written in no operator set\n");
    }
    if (args->quiet) {
        return;
    }
    if (nori_opset_report_blocker(r, 0, &b)) {
        printf("\n%s\n", s->lowest > 0 ? "nodes that need it" : "nodes that cannot be written");
    }
    for (size_t i = 0; nori_opset_report_blocker(r, i, &b); i++) {
        printf("  %s: %s\n", b.path, b.reason);
    }
    printf("\n%-28s %6s %3s  %s\n", "runtime, as documented", "opset", "IR", "this file");
    for (size_t i = 0; nori_opset_report_runtime(r, i, &v); i++) {
        bool helps = v.refuses && v.lowest_loads;
        better = better || helps;
        printf("%-28s %6lld %3lld  %s%s%s\n", v.name, (long long)v.opset, (long long)v.ir,
               v.refuses ? "refused: " : "loads", v.reason, helps ? " (its lowest loads)" : "");
    }
    if (better) {
        printf("\nnext: nori convert %s --lowest --output FILE\n", args->positional[0]);
    }
}

static int run(cli_args *args)
{
    nori_model *model = NULL;
    nori_opset_report *report = NULL;
    nori_opset_summary s = {.size = sizeof(s)};
    nori_error err = {0};
    if (args->count != 1) {
        return cli_usage(args, "one model file was expected");
    }
    int code = cli_load(args, &model);
    if (code == EXIT_YES && nori_opset_find(model, &report, &err) != NORI_OK) {
        code = cli_fail(args, &err);
    }
    if (code == EXIT_YES) {
        nori_opset_report_summary(report, &s);
        if (args->json) {
            print_json(args, report, &s);
        } else {
            print_text(args, report, &s);
        }
    }
    nori_opset_report_free(report);
    nori_model_free(model);
    return code;
}

const cli_verb cli_opset = {"opset", "change", "MODEL",
                            "the lowest operator set of a model, and who would refuse the file",
                            options, run,
                            "  nori opset model.onnx\n"
                            "  nori opset model.onnx --json | jq .lowest\n"};

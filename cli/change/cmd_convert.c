/* cmd_convert.c: a model under another operator set or IR version. */
#include <string.h>

#include "change.h"
#include "nori/convert.h"

static const cli_option options[] = {
    {"--output", "FILE", "the converted model"},
    {"--opset", "N", "operator set of ai.onnx to write it in, up or down"},
    {"--lowest", NULL, "the lowest that can be, as `nori opset` finds it"},
    {"--ir", "N", "IR version of the file (default: what the operator set came with)"},
    {"--external", "FILE", "data of large initializers in this file beside the model"},
    {"--threshold", "BYTES", "with --external: from this size on (default 1Ki)"},
    {"--embed", NULL, "all data in one file (most 2 GB)"},
    CLI_LOAD_OPTIONS, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

static void json_blockers(cli_json *j, const nori_convert_report *r)
{
    nori_blocker b = {.size = sizeof(b)};
    cli_json_array(j, "blockers");
    for (size_t i = 0; nori_convert_report_blocker(r, i, &b); i++) {
        cli_json_object(j, NULL);
        cli_json_string(j, "path", b.path);
        cli_json_string(j, "op", b.op);
        cli_json_string(j, "reason", b.reason);
        cli_json_end(j);
    }
    cli_json_end(j);
}

/* Every node that stands in the way, a line each: an error's text may not hold them all. */
static int refuse(cli_args *args, const nori_convert_report *r, const nori_error *err)
{
    nori_blocker b = {.size = sizeof(b)};
    size_t count = 0;
    if (args->json) {
        cli_json j;
        cli_json_begin(&j, stdout);
        cli_json_object(&j, "error");
        cli_json_string(&j, "status", nori_status_text(err->status));
        cli_json_string(&j, "message", err->message);
        cli_json_string(&j, "where", err->where);
        cli_json_string(&j, "hint", err->hint);
        cli_json_end(&j);
        json_blockers(&j, r);
        cli_json_finish(&j);
        args->json = false; /* said */
    }
    while (nori_convert_report_blocker(r, count, &b)) {
        count++;
    }
    const char *wanted = cli_value(args, "--opset");
    int code = cli_fail_text(args, err->status, "%zu node%s cannot be written under operator set %s:",
                             count, count == 1 ? "" : "s", wanted ? wanted : "asked for");
    for (size_t i = 0; nori_convert_report_blocker(r, i, &b); i++) {
        fprintf(stderr, "  %s: %s\n", b.path, b.reason);
    }
    fprintf(stderr, "  hint: --lowest finds the lowest that can be\n");
    return code;
}

static void print(const cli_args *args, const nori_convert_report *r, const char *output)
{
    nori_convert_summary s = {.size = sizeof(s)};
    nori_convert_report_summary(r, &s);
    if (args->json) {
        cli_json j;
        cli_json_begin(&j, stdout);
        cli_json_string(&j, "output", output);
        cli_json_int(&j, "opset_before", s.opset_before);
        cli_json_int(&j, "opset_after", s.opset_after);
        cli_json_int(&j, "ir_before", s.ir_before);
        cli_json_int(&j, "ir_after", s.ir_after);
        cli_json_uint(&j, "nodes", s.nodes);
        cli_json_uint(&j, "rewritten", s.rewritten);
        json_blockers(&j, r);
        cli_json_finish(&j);
    } else if (!args->quiet) {
        printf("opset       %lld, was %lld\n", (long long)s.opset_after, (long long)s.opset_before);
        printf("IR version  %lld, was %lld\n", (long long)s.ir_after, (long long)s.ir_before);
        if (s.opset_after != s.opset_before) {
            printf("nodes       %zu of %zu rewritten\n", s.rewritten, s.nodes);
        }
        printf("\n%s was written; next: nori validate %s --against %s ...\n", output,
               args->positional[0], output);
    }
}

static bool save_options(const cli_args *args, nori_save_options *o)
{
    uint64_t threshold = 0;
    nori_save_options_default(o);
    o->external = cli_value(args, "--external");
    o->embed = cli_has(args, "--embed");
    if (o->external && o->embed) {
        cli_usage(args, "--external FILE or --embed, not both");
        return false;
    }
    if (cli_has(args, "--threshold") && !o->external) {
        cli_usage(args, "--threshold needs --external FILE");
        return false;
    }
    if (!cli_size(args, "--threshold", &threshold)) {
        return false;
    }
    o->threshold = threshold ? threshold : o->threshold;
    return true;
}

static int run(cli_args *args)
{
    const char *output = cli_value(args, "--output");
    nori_convert_options o;
    nori_model *model = NULL, *made = NULL;
    nori_convert_report *report = NULL;
    nori_error err = {0};
    long opset, ir;
    nori_convert_options_default(&o);
    if (args->count != 1 || !output) {
        return cli_usage(args, "a model and --output FILE were expected");
    }
    if (!cli_number(args, "--opset", 1, 1000, 0, &opset) ||
        !cli_number(args, "--ir", 1, 1000, 0, &ir)) {
        return EXIT_USAGE;
    }
    o.opset = opset;
    o.ir = ir;
    o.lowest = cli_has(args, "--lowest");
    if (opset && o.lowest) {
        return cli_usage(args, "--opset N or --lowest, not both");
    }
    nori_save_options save;
    if (!save_options(args, &save)) {
        return EXIT_USAGE;
    }
    if (!opset && !o.lowest && !ir && !save.external && !save.embed) {
        return cli_usage(args, "nothing to change: --opset N, --lowest, --ir N, --external FILE or --embed "
                               "was expected");
    }
    int code = cli_load(args, &model);
    if (code == EXIT_YES && nori_convert(model, &o, &made, &report, &err) != NORI_OK) {
        nori_blocker b = {.size = sizeof(b)};
        code = report && nori_convert_report_blocker(report, 0, &b) ? refuse(args, report, &err)
                                                                     : cli_fail(args, &err);
    }
    code = code == EXIT_YES ? change_save(args, made, output, &save) : code;
    if (code == EXIT_YES) {
        print(args, report, output);
    }
    nori_convert_report_free(report);
    nori_model_free(made);
    nori_model_free(model);
    return code;
}

const cli_verb cli_convert = {"convert", "change", "MODEL --output FILE",
                              "write a model in another operator set or IR version, its data beside it",
                              options, run,
                              "  nori convert model.onnx --output old.onnx --lowest\n"
                              "  nori convert model.onnx --output new.onnx --opset 21\n"
                              "  nori convert model.onnx --output m.onnx --ir 8\n"
                              "  nori convert model.onnx --output m.onnx --external m.bin --threshold 64k\n"};

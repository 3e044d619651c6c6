/* cmd_optimize.c: a model simplified at its own operator set, proved to give the same. */
#include "change.h"

static const cli_option options[] = {
    {"--output", "FILE", "the optimized model"},
    {"--passes", "LIST", "only these, as fold,identity,dead (a wrong one lists all)"},
    CLI_DIM_OPTION, CLI_PROOF_OPTIONS, CLI_LOAD_OPTIONS, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

static void print_json(const nori_optimize_report *r, const char *output)
{
    cli_json j;
    cli_json_begin(&j, stdout);
    cli_json_string(&j, "output", output);
    cli_json_uint(&j, "nodes_before", r->nodes_before);
    cli_json_uint(&j, "nodes_after", r->nodes_after);
    cli_json_uint(&j, "constants_before", r->constants_before);
    cli_json_uint(&j, "constants_after", r->constants_after);
    cli_json_uint(&j, "bytes_before", r->bytes_before);
    cli_json_uint(&j, "bytes_after", r->bytes_after);
    cli_json_object(&j, "passes");
    for (size_t i = 0; i < NORI_OPTIMIZE_PASSES && r->passes[i].name; i++) {
        cli_json_uint(&j, r->passes[i].name, r->passes[i].changes);
    }
    cli_json_end(&j);
    cli_json_string(&j, "left_out", r->left_out);
    change_json_proof(&j, &r->proof);
    cli_json_finish(&j);
}

static void print_text(const nori_optimize_report *r, const char *output)
{
    char before[32], after[32];
    bool any = false;
    printf("%-12s %12s %12s\n", "", "before", "after");
    printf("%-12s %12zu %12zu\n", "nodes", r->nodes_before, r->nodes_after);
    printf("%-12s %12zu %12zu\n", "constants", r->constants_before, r->constants_after);
    cli_bytes_text(r->bytes_before, before, sizeof(before));
    cli_bytes_text(r->bytes_after, after, sizeof(after));
    printf("%-12s %12s %12s\n", "their bytes", before, after);
    if (r->proof.ran) {
        printf("%-12s %9.2f ms %9.2f ms  one run, nodes as written\n", "time",
               (double)r->proof.before_ns / 1e6, (double)r->proof.after_ns / 1e6);
    }
    for (size_t i = 0; i < NORI_OPTIMIZE_PASSES && r->passes[i].name; i++) {
        if (r->passes[i].changes > 0) {
            printf("%s%s %zu", any ? ", " : "rewrites    ", r->passes[i].name, r->passes[i].changes);
            any = true;
        }
    }
    printf("%s", any ? "\n" : "");
    if (r->left_out[0]) {
        printf("left out    %s: with it the results were others\n", r->left_out);
    }
    change_print_proof(&r->proof);
    printf("\n%s was written\n", output);
}

static int run(cli_args *args)
{
    static change_dims dims;
    const char *output = cli_value(args, "--output");
    nori_optimize_options o;
    nori_optimize_report report = {.size = sizeof(report)};
    nori_model *model = NULL, *made = NULL;
    nori_error err = {0};
    nori_optimize_options_default(&o);
    o.passes = cli_value(args, "--passes");
    if (args->count != 1 || !output) {
        return cli_usage(args, "a model and --output FILE were expected");
    }
    int code = change_proof_options(args, &dims, &o.proof) ? cli_load(args, &model) : EXIT_USAGE;
    if (code == EXIT_YES) {
        nori_status s = nori_optimize(model, &o, &made, &report, &err);
        cli_progress_done(args);
        code = s == NORI_OK ? change_save(args, made, output, NULL) : cli_fail(args, &err);
    }
    if (code == EXIT_YES && args->json) {
        print_json(&report, output);
    } else if (code == EXIT_YES && !args->quiet) {
        print_text(&report, output);
    }
    nori_model_free(made);
    nori_model_free(model);
    return code;
}

const cli_verb cli_optimize = {
    "optimize", "change", "MODEL --output FILE",
    "fold, join and remove what any runtime can do without", options, run,
    "  nori optimize model.onnx --output small.onnx\n"
    "  nori optimize model.onnx --output small.onnx --passes identity,dead\n"};

/* cmd_compile.c: a model with its packed weights in one file, which starts at once. */
#include "nori/compile.h"

#include "cli.h"

static const cli_option options[] = {
    {"--output", "FILE", "the plan; verbs take it as they take the model"},
    CLI_PROVIDER_OPTIONS,
    CLI_DIM_OPTION,
    CLI_LOAD_OPTIONS,
    CLI_QUIET_OPTION,
    CLI_COMMON_OPTIONS,
};

static void print(const cli_args *args, const nori_plan_info *info, const char *output)
{
    if (args->json) {
        cli_json j;
        cli_json_begin(&j, stdout);
        cli_json_string(&j, "plan", output);
        cli_json_string(&j, "level", nori_cpu_level());
        cli_json_uint(&j, "model_bytes", info->model_bytes);
        cli_json_uint(&j, "packed_bytes", info->packed_bytes);
        cli_json_uint(&j, "blocks", info->blocks);
        cli_json_finish(&j);
    } else if (!args->quiet) {
        char model[32], packed[32];
        cli_bytes_text(info->model_bytes, model, sizeof(model));
        cli_bytes_text(info->packed_bytes, packed, sizeof(packed));
        printf("%s was written: the model, %s, and %llu blocks of packed weights, %s, for CPUs of the "
               "level %s\n",
               output, model, (unsigned long long)info->blocks, packed, nori_cpu_level());
    }
}

static int run(cli_args *args)
{
    const char *output = cli_value(args, "--output");
    nori_session_options o;
    nori_plan_info info = {.size = sizeof(info)};
    nori_model *model = NULL;
    nori_error err = {0};
    if (args->count != 1 || !output) {
        return cli_usage(args, "a model and --output FILE were expected");
    }
    if (!cli_session_options(args, &o)) {
        return EXIT_USAGE;
    }
    int code = cli_load(args, &model);
    if (code == EXIT_YES) {
        nori_status s = nori_plan_write(model, &o, output, &info, &err);
        cli_progress_done(args);
        code = s == NORI_OK ? EXIT_YES : cli_fail(args, &err);
    }
    if (code == EXIT_YES) {
        print(args, &info, output);
    }
    nori_model_free(model);
    return code;
}

const cli_verb cli_compile = {
    "compile", "run", "MODEL --output FILE",
    "pack the weights for this CPU into a file that starts at once", options, run,
    "  nori compile model.onnx --output model.plan\n"
    "  nori bench model.plan\n"};

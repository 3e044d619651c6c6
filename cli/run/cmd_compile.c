/* cmd_compile.c: a model with its packed weights in one file, which starts at once. */
#include "compile_tune.h"

static const cli_option options[] = {
    {"--output", "FILE", "the plan; verbs take it as they take the model"},
    CLI_TUNE_OPTIONS,
    CLI_INPUT_OPTIONS,
    CLI_PROVIDER_OPTIONS,
    CLI_DIM_OPTION,
    CLI_LOAD_OPTIONS,
    CLI_QUIET_OPTION,
    CLI_COMMON_OPTIONS,
};

static void print(const cli_args *args, const nori_plan_info *info, const nori_tuning *tuning,
                  const char *output)
{
    if (args->json) {
        cli_json j;
        cli_json_begin(&j, stdout);
        cli_json_string(&j, "plan", output);
        cli_json_string(&j, "level", nori_cpu_level());
        cli_json_uint(&j, "model_bytes", info->model_bytes);
        cli_json_uint(&j, "packed_bytes", info->packed_bytes);
        cli_json_uint(&j, "blocks", info->blocks);
        if (tuning) {
            cli_tune_json(&j, tuning);
        }
        cli_json_finish(&j);
    } else if (!args->quiet) {
        char model[32], packed[32];
        cli_bytes_text(info->model_bytes, model, sizeof(model));
        cli_bytes_text(info->packed_bytes, packed, sizeof(packed));
        printf("%s was written: the model, %s, and %llu blocks of packed weights, %s, for CPUs of the "
               "level %s\n",
               output, model, (unsigned long long)info->blocks, packed, nori_cpu_level());
        if (tuning) {
            cli_tune_print(tuning);
        }
    }
}

static int run(cli_args *args)
{
    const char *output = cli_value(args, "--output");
    nori_session_options o;
    nori_plan_info info = {.size = sizeof(info)};
    nori_model *model = NULL;
    nori_tuning *tuning = NULL;
    nori_error err = {0};
    bool tune = cli_has(args, "--tune");
    const char *alone = cli_tune_option_alone(args);
    if (args->count < 1 || (args->count > 1 && !tune) || !output) {
        return cli_usage(args, "a model and --output FILE were expected");
    }
    if (alone) {
        return cli_usage(args, "%s means something with --tune only", alone);
    }
    if (!cli_session_options(args, &o)) {
        return EXIT_USAGE;
    }
    int code = cli_load(args, &model);
    if (code == EXIT_YES && tune) {
        code = cli_tune(args, model, &o, &tuning);
    }
    if (code == EXIT_YES) {
        nori_status s = tuning ? nori_plan_write_tuned(model, &o, tuning, output, &info, &err)
                               : nori_plan_write(model, &o, output, &info, &err);
        cli_progress_done(args);
        code = s == NORI_OK ? EXIT_YES : cli_fail(args, &err);
    }
    if (code == EXIT_YES) {
        print(args, &info, tuning, output);
    }
    nori_tuning_free(tuning);
    nori_model_free(model);
    return code;
}

const cli_verb cli_compile = {
    "compile", "run", "MODEL [FILE ...] --output FILE",
    "pack the weights for this CPU into a file that starts at once", options, run,
    "  nori compile model.onnx --output model.plan\n"
    "  nori compile model.onnx --output model.plan --tune --threads 2\n"
    "  nori bench model.plan\n"};

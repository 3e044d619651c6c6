/* cmd_extract.c: the part of a model between some values and others. */
#include "change.h"

static const cli_option options[] = {
    {"--output", "FILE", "the model of that part"},
    {"--from", "VALUE[,VALUE..]", "its inputs (default: those of the model that it needs)"},
    {"--to", "VALUE[,VALUE..]", "its outputs (default: those of the model)"},
    CLI_LOAD_OPTIONS, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

static void print_values(cli_args *args, const nori_model *part, const char *output)
{
    size_t n_in = nori_model_input_count(part), n_out = nori_model_output_count(part);
    char shape[256];
    cli_json j;
    if (args->json) {
        cli_json_begin(&j, stdout);
        cli_json_string(&j, "output", output);
        cli_json_array(&j, "inputs");
    }
    for (size_t i = 0; i < n_in + n_out; i++) {
        const nori_value_info *v =
            i < n_in ? nori_model_input(part, i) : nori_model_output(part, i - n_in);
        cli_shape(v, shape, sizeof(shape));
        if (!args->json) {
            printf("%-11s %s %s\n", i < n_in ? "input" : "output", v->name, shape);
            continue;
        }
        if (i == n_in) {
            cli_json_end(&j);
            cli_json_array(&j, "outputs");
        }
        cli_json_object(&j, NULL);
        cli_json_string(&j, "name", v->name);
        cli_json_string(&j, "type", shape);
        cli_json_end(&j);
    }
    if (args->json) {
        cli_json_finish(&j);
    } else {
        printf("\n%s was written\n", output);
    }
}

static int run(cli_args *args)
{
    const char *output = cli_value(args, "--output");
    change_names from = {0}, to = {0};
    nori_model *model = NULL, *part = NULL;
    nori_error err = {0};
    if (args->count != 1 || !output) {
        return cli_usage(args, "a model and --output FILE were expected");
    }
    if (!cli_has(args, "--from") && !cli_has(args, "--to")) {
        return cli_usage(args, "--from VALUES, --to VALUES or both were expected");
    }
    int code = change_names_of(args, "--from", &from) && change_names_of(args, "--to", &to)
                   ? cli_load(args, &model) : EXIT_USAGE;
    if (code == EXIT_YES && nori_extract(model, from.items, from.count, to.items, to.count, &part,
                                         &err) != NORI_OK) {
        code = cli_fail(args, &err);
    }
    code = code == EXIT_YES ? change_save(args, part, output, NULL) : code;
    if (code == EXIT_YES && (args->json || !args->quiet)) {
        print_values(args, part, output);
    }
    change_free_names(&from);
    change_free_names(&to);
    nori_model_free(part);
    nori_model_free(model);
    return code;
}

const cli_verb cli_extract = {
    "extract", "change", "MODEL --from VALUES --to VALUES --output FILE",
    "the part of a model between some values and others", options, run,
    "  nori extract model.onnx --to features --output backbone.onnx\n"
    "  nori extract model.onnx --from features --output head.onnx\n"};

/* cmd_rename.c: other names of inputs, outputs, inner values, nodes and dimensions. */
#include <stdlib.h>
#include <string.h>

#include "change.h"

#define MOST 128

static const cli_option options[] = {
    {"--output", "FILE", "the model with the new names"},
    {"--value", "OLD=NEW", "an input, an output or what a node makes; may be repeated"},
    {"--node", "OLD=NEW", "a node; may be repeated"},
    {"--axis", "OLD=NEW", "a named dimension, wherever it stands; may be repeated"},
    CLI_LOAD_OPTIONS, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

static void free_names(nori_name *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free((void *)(uintptr_t)names[i].from);
    }
}

/* Names may have a '=' in them: the first one parts the two. */
static bool read_names(const cli_args *args, const char *option, nori_name_kind kind, nori_name *names,
                       size_t *count)
{
    const char *spec;
    for (int i = 0; (spec = cli_nth(args, option, i)) != NULL; i++) {
        const char *equals = strchr(spec, '=');
        if (!equals || equals == spec || !equals[1]) {
            cli_usage(args, "%s %s: OLD=NEW was expected", option, spec);
            return false;
        }
        if (*count == MOST) {
            cli_usage(args, "more than %d names", MOST);
            return false;
        }
        size_t size = strlen(spec) + 1;
        char *text = malloc(size);
        if (!text) {
            cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
            return false;
        }
        memcpy(text, spec, size);
        text[equals - spec] = 0;
        names[(*count)++] = (nori_name){kind, text, text + (equals - spec) + 1};
    }
    return true;
}

static void print(const cli_args *args, const nori_name *names, size_t count, const char *output)
{
    static const char *const kinds[] = {"value", "node", "axis"};
    cli_json j;
    if (args->json) {
        cli_json_begin(&j, stdout);
        cli_json_string(&j, "output", output);
        cli_json_array(&j, "renamed");
    }
    for (size_t i = 0; i < count; i++) {
        if (args->json) {
            cli_json_object(&j, NULL);
            cli_json_string(&j, "kind", kinds[names[i].kind]);
            cli_json_string(&j, "from", names[i].from);
            cli_json_string(&j, "to", names[i].to);
            cli_json_end(&j);
        } else {
            printf("%-11s %s is %s now\n", kinds[names[i].kind], names[i].from, names[i].to);
        }
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
    nori_name names[MOST];
    size_t count = 0;
    nori_model *model = NULL, *made = NULL;
    nori_error err = {0};
    if (args->count != 1 || !output) {
        return cli_usage(args, "a model and --output FILE were expected");
    }
    bool ok = read_names(args, "--value", NORI_NAME_VALUE, names, &count) &&
              read_names(args, "--node", NORI_NAME_NODE, names, &count) &&
              read_names(args, "--axis", NORI_NAME_DIM, names, &count);
    int code = !ok ? EXIT_USAGE
               : count == 0 ? cli_usage(args, "nothing to rename: --value, --node or --axis OLD=NEW was "
                                              "expected")
                            : cli_load(args, &model);
    if (code == EXIT_YES && nori_rename(model, names, count, &made, &err) != NORI_OK) {
        code = cli_fail(args, &err);
    }
    code = code == EXIT_YES ? change_save(args, made, output, NULL) : code;
    if (code == EXIT_YES && (args->json || !args->quiet)) {
        print(args, names, count, output);
    }
    free_names(names, count);
    nori_model_free(made);
    nori_model_free(model);
    return code;
}

const cli_verb cli_rename = {
    "rename", "change", "MODEL --output FILE",
    "give inputs, outputs, nodes or dimensions other names", options, run,
    "  nori rename model.onnx --value input.1=image --value 545=scores --output named.onnx\n"
    "  nori rename model.onnx --axis unk__6=batch --output named.onnx\n"};

/* cmd_needs.c: which operators a build must hold to run models, as a file that reduced builds take
 * (docs/size.md). */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "nori/needs.h"

static const cli_option options[] = {
    {"--output", "FILE", "write the list there (default: standard output)"},
    CLI_LOAD_OPTIONS, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void print_list(const cli_args *args, const nori_needs *needs, FILE *f)
{
    nori_need n = {.size = sizeof(n)};
    bool told = false;
    fprintf(f, "# Operators of models, made by `nori needs`: cmake -DNORI_OPERATORS=FILE builds these.\n");
    for (int i = 0; i < args->count; i++) {
        fprintf(f, "# model %s\n", file_name(args->positional[i]));
    }
    if (nori_needs_half(needs)) {
        fprintf(f, "half\n");
    }
    for (size_t i = 0; nori_needs_at(needs, i, &n); i++) {
        if (n.made_by && !told) {
            fprintf(f, "# Sessions may make of them, so that a build holds these, too:\n");
            told = true;
        }
        fprintf(f, "%s%s %s", n.made_by ? "#   " : "", n.domain, n.op);
        for (size_t v = 0; v < n.version_count; v++) {
            fprintf(f, " %d", n.versions[v]);
        }
        fprintf(f, n.made_by ? " (%s)\n" : "\n", n.made_by);
    }
}

static void print_json(const nori_needs *needs, FILE *f)
{
    nori_need n = {.size = sizeof(n)};
    cli_json j;
    cli_json_begin(&j, f);
    cli_json_bool(&j, "half", nori_needs_half(needs));
    cli_json_array(&j, "operators");
    for (size_t i = 0; nori_needs_at(needs, i, &n); i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "domain", n.domain);
        cli_json_string(&j, "op", n.op);
        cli_json_array(&j, "versions");
        for (size_t v = 0; v < n.version_count; v++) {
            cli_json_int(&j, NULL, n.versions[v]);
        }
        cli_json_end(&j);
        if (n.made_by) {
            cli_json_string(&j, "made_by", n.made_by);
        }
        cli_json_end(&j);
    }
    cli_json_finish(&j);
}

static int write_list(const cli_args *args, const nori_needs *needs)
{
    const char *output = cli_value(args, "--output");
    cli_draft d;
    if (!output) {
        args->json ? print_json(needs, stdout) : print_list(args, needs, stdout);
        return EXIT_YES;
    }
    if (!cli_draft_begin(args, &d)) {
        return EXIT_BAD;
    }
    args->json ? print_json(needs, d.f) : print_list(args, needs, d.f);
    int code = cli_draft_finish(args, &d, output, true);
    if (code == EXIT_YES && !args->quiet && !args->json) {
        printf("%s was written: cmake -DNORI_OPERATORS=%s -DNORI_TOOLS=OFF makes a library of it\n", output,
               output);
    }
    return code;
}

static int run(cli_args *args)
{
    nori_model *models[sizeof(args->positional) / sizeof(*args->positional)] = {NULL};
    nori_needs *needs = NULL;
    nori_error err = {0};
    if (args->count < 1) {
        return cli_usage(args, "a model was expected, or several");
    }
    int code = cli_load(args, &models[0]);
    nori_load_options lo;
    cli_load_options(args, &lo);
    for (int i = 1; i < args->count && code == EXIT_YES; i++) {
        if (nori_model_load(args->env, args->positional[i], &lo, &models[i], &err) != NORI_OK) {
            code = cli_fail(args, &err);
        }
    }
    if (code == EXIT_YES &&
        nori_needs_find((const nori_model *const *)models, (size_t)args->count, &needs, &err) != NORI_OK) {
        code = cli_fail(args, &err);
    }
    code = code == EXIT_YES ? write_list(args, needs) : code;
    nori_needs_free(needs);
    for (int i = 0; i < args->count; i++) {
        nori_model_free(models[i]);
    }
    return code;
}

const cli_verb cli_needs = {"needs", "look", "MODEL... [--output FILE]",
                            "operators a reduced build must hold for these models", options, run,
                            "  nori needs detect.onnx words.onnx --output operators.txt\n"};

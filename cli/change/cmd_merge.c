/* cmd_merge.c: two models as one. */
#include <stdlib.h>
#include <string.h>

#include "change.h"

#define MOST 64

static const cli_option options[] = {
    {"--output", "FILE", "the merged model"},
    {"--map", "OUT=IN", "output of the first that is input of the second (default: of one name); repeated"},
    {"--prefix", "TEXT", "before names of the second that the first has, too (default b/)"},
    {"--keep", NULL, "outputs that are handed on stay outputs"},
    CLI_DIM_OPTION, CLI_PROOF_OPTIONS, CLI_LOAD_OPTIONS, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

static void print_json(const nori_merge_report *r, const char *output)
{
    cli_json j;
    cli_json_begin(&j, stdout);
    cli_json_string(&j, "output", output);
    cli_json_uint(&j, "joined", r->joints);
    cli_json_uint(&j, "shared", r->shared);
    cli_json_uint(&j, "renamed", r->renamed);
    cli_json_int(&j, "opset_a", r->opset_a);
    cli_json_int(&j, "opset_b", r->opset_b);
    cli_json_int(&j, "opset", r->opset);
    cli_json_int(&j, "ir", r->ir);
    change_json_proof(&j, &r->proof);
    cli_json_finish(&j);
}

static void print_text(const nori_merge_report *r, const char *output)
{
    printf("joined      %zu value%s; %zu inputs are of both; %zu names of the second got the prefix\n",
           r->joints, r->joints == 1 ? "" : "s", r->shared, r->renamed);
    printf("opset       %lld, were %lld and %lld; IR version %lld, were %lld and %lld\n",
           (long long)r->opset, (long long)r->opset_a, (long long)r->opset_b, (long long)r->ir,
           (long long)r->ir_a, (long long)r->ir_b);
    change_print_proof(&r->proof);
    printf("\n%s was written\n", output);
}

static int read_map(const cli_args *args, nori_joint *joints, char **texts, size_t *count)
{
    const char *spec;
    for (int i = 0; (spec = cli_nth(args, "--map", i)) != NULL; i++) {
        const char *equals = strchr(spec, '=');
        if (!equals || equals == spec || !equals[1]) {
            return cli_usage(args, "--map %s: OUT=IN was expected", spec);
        }
        if (*count == MOST) {
            return cli_usage(args, "more than %d of --map", MOST);
        }
        size_t size = strlen(spec) + 1;
        char *text = malloc(size);
        if (!text) {
            return cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
        }
        memcpy(text, spec, size);
        text[equals - spec] = 0;
        texts[*count] = text;
        joints[(*count)++] = (nori_joint){text, text + (equals - spec) + 1};
    }
    return EXIT_YES;
}

/* The second model, loaded as the first was. */
static int load_second(cli_args *args, nori_model **model)
{
    nori_load_options lo;
    nori_error err = {0};
    cli_load_options(args, &lo);
    return nori_model_load(args->env, args->positional[1], &lo, model, &err) == NORI_OK
               ? EXIT_YES : cli_fail(args, &err);
}

static int run(cli_args *args)
{
    static change_dims dims;
    const char *output = cli_value(args, "--output");
    nori_joint joints[MOST];
    char *texts[MOST] = {NULL};
    nori_merge_options o;
    nori_merge_report report = {.size = sizeof(report)};
    nori_model *a = NULL, *b = NULL, *made = NULL;
    nori_error err = {0};
    nori_merge_options_default(&o);
    if (args->count != 2 || !output) {
        return cli_usage(args, "two models and --output FILE were expected");
    }
    int code = change_proof_options(args, &dims, &o.proof) ? EXIT_YES : EXIT_USAGE;
    code = code == EXIT_YES ? read_map(args, joints, texts, &o.joint_count) : code;
    o.joints = joints;
    o.prefix = cli_value(args, "--prefix");
    o.keep = cli_has(args, "--keep");
    code = code == EXIT_YES ? cli_load(args, &a) : code;
    code = code == EXIT_YES ? load_second(args, &b) : code;
    if (code == EXIT_YES) {
        nori_status s = nori_merge(a, b, &o, &made, &report, &err);
        cli_progress_done(args);
        code = s == NORI_OK ? change_save(args, made, output, NULL) : cli_fail(args, &err);
    }
    if (code == EXIT_YES && args->json) {
        print_json(&report, output);
    } else if (code == EXIT_YES && !args->quiet) {
        print_text(&report, output);
    }
    for (size_t i = 0; i < MOST; i++) {
        free(texts[i]);
    }
    nori_model_free(made);
    nori_model_free(b);
    nori_model_free(a);
    return code;
}

const cli_verb cli_merge = {
    "merge", "change", "MODEL MODEL --output FILE",
    "two models as one: outputs of the first are inputs of the second", options, run,
    "  nori merge features.onnx head.onnx --map features=input --output whole.onnx\n"};

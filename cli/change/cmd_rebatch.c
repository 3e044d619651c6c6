/* cmd_rebatch.c: a model that takes any number of items, or N, where it took a fixed one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"

#define MOST 64

static const cli_option options[] = {
    {"--output", "FILE", "the model with the new batch"},
    {"--batch", "N|NAME", "the size, or the name of a free one (default: free, named batch)"},
    {"--input", "NAME[:AXIS]", "an input that holds the batch (default: axis 0 of all); repeated"},
    CLI_DIM_OPTION, CLI_PROOF_OPTIONS, CLI_LOAD_OPTIONS, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

static void print_json(const nori_rebatch_report *r, const nori_rebatch_options *o, const char *output)
{
    nori_rebatch_change c = {.size = sizeof(c)};
    nori_proof proof = {.size = sizeof(proof)};
    cli_json j;
    cli_json_begin(&j, stdout);
    cli_json_string(&j, "output", output);
    cli_json_int(&j, "batch_before", nori_rebatch_report_before(r));
    cli_json_int(&j, "batch", o->batch);
    cli_json_string(&j, "name", o->batch > 0 ? "" : o->name);
    cli_json_array(&j, "mended");
    for (size_t i = 0; nori_rebatch_report_change(r, i, &c); i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "path", c.path);
        cli_json_string(&j, "what", c.what);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    nori_rebatch_report_proof(r, &proof);
    change_json_proof(&j, &proof);
    cli_json_finish(&j);
}

static void print_text(const nori_rebatch_report *r, const nori_rebatch_options *o, const char *output)
{
    nori_rebatch_change c = {.size = sizeof(c)};
    nori_proof proof = {.size = sizeof(proof)};
    long long was = (long long)nori_rebatch_report_before(r);
    if (o->batch > 0) {
        printf("batch       %lld, was %lld\n", (long long)o->batch, was);
    } else {
        printf("batch       %s (free), was %lld\n", o->name, was);
    }
    for (size_t i = 0; nori_rebatch_report_change(r, i, &c); i++) {
        printf("mended      %s: %s\n", c.path, c.what);
    }
    nori_rebatch_report_proof(r, &proof);
    change_print_proof(&proof);
    if (proof.ran) {
        printf("            each row of a batch against a run of its own\n");
    }
    printf("\n%s was written\n", output);
}

static int read_options(cli_args *args, nori_rebatch_options *o, nori_batch_input *inputs, char **texts)
{
    const char *batch = cli_value(args, "--batch"), *spec;
    char *end = NULL;
    if (batch) {
        errno = 0;
        long long n = strtoll(batch, &end, 10);
        bool number = end != batch && *end == 0;
        if (number && (n < 1 || errno != 0)) {
            return cli_usage(args, "--batch %s: a size above 0, or a name was expected", batch);
        }
        o->batch = number ? n : 0;
        o->name = number ? o->name : batch;
    }
    for (int i = 0; (spec = cli_nth(args, "--input", i)) != NULL; i++) {
        if (o->input_count == MOST) {
            return cli_usage(args, "more than %d of --input", MOST);
        }
        size_t size = strlen(spec) + 1;
        char *text = malloc(size);
        if (!text) {
            return cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
        }
        memcpy(text, spec, size);
        texts[o->input_count] = text;
        char *colon = strrchr(text, ':'); /* names may have one in them: a number behind it counts */
        long axis = colon ? strtol(colon + 1, &end, 10) : 0;
        bool said = colon && colon[1] && *end == 0 && axis >= 0 && axis < NORI_MAX_RANK;
        if (said) {
            *colon = 0;
        }
        inputs[o->input_count++] = (nori_batch_input){text, said ? (int)axis : 0};
    }
    return EXIT_YES;
}

static int run(cli_args *args)
{
    static change_dims dims;
    const char *output = cli_value(args, "--output");
    nori_batch_input inputs[MOST];
    char *texts[MOST] = {NULL};
    nori_rebatch_options o;
    nori_rebatch_report *report = NULL;
    nori_model *model = NULL, *made = NULL;
    nori_error err = {0};
    nori_rebatch_options_default(&o);
    if (args->count != 1 || !output) {
        return cli_usage(args, "a model and --output FILE were expected");
    }
    int code = change_proof_options(args, &dims, &o.proof) ? read_options(args, &o, inputs, texts)
                                                           : EXIT_USAGE;
    o.inputs = inputs;
    code = code == EXIT_YES ? cli_load(args, &model) : code;
    if (code == EXIT_YES) {
        nori_status s = nori_rebatch(model, &o, &made, &report, &err);
        cli_progress_done(args);
        code = s == NORI_OK ? change_save(args, made, output, NULL) : cli_fail(args, &err);
    }
    if (code == EXIT_YES && args->json) {
        print_json(report, &o, output);
    } else if (code == EXIT_YES && !args->quiet) {
        print_text(report, &o, output);
    }
    for (size_t i = 0; i < MOST; i++) {
        free(texts[i]);
    }
    nori_rebatch_report_free(report);
    nori_model_free(made);
    nori_model_free(model);
    return code;
}

const cli_verb cli_rebatch = {
    "rebatch", "change", "MODEL --output FILE",
    "let a model take any batch, and prove that rows agree with single runs", options, run,
    "  nori rebatch model.onnx --output free.onnx\n"
    "  nori rebatch model.onnx --output eight.onnx --batch 8\n"
    "  nori rebatch model.onnx --output free.onnx --input tokens --input state:1\n"};

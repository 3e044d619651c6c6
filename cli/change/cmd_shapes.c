/* cmd_shapes.c: sizes of a model's inputs fixed or freed, and what follows from them written down. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"

#define MOST 128

static const cli_option options[] = {
    {"--output", "FILE", "the changed model"},
    {"--fix-dim", "NAME=N", "fix a named dimension; may be repeated"},
    {"--fix", "INPUT:AXIS=N", "fix one axis of an input; may be repeated"},
    {"--free", "INPUT:AXIS[=NAME]", "free one axis of an input, under a name; may be repeated"},
    {"--infer", NULL, "write the type of every value that is known into the file"},
    CLI_LOAD_OPTIONS, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

typedef struct shape_job {
    nori_axis_change changes[MOST];
    char *texts[MOST];
    size_t count;
} shape_job;

static bool to_number(const char *text, long long *n)
{
    char *end = NULL;
    errno = 0;
    *n = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == 0 && *n >= 0;
}

static int usage(const cli_args *args, const char *option, const char *spec)
{
    const char *form = strcmp(option, "--fix-dim") == 0 ? "NAME=N"
                       : strcmp(option, "--fix") == 0   ? "INPUT:AXIS=N"
                                                        : "INPUT:AXIS or INPUT:AXIS=NAME";
    return cli_usage(args, "%s %s: %s was expected", option, spec, form);
}

/* One option's words; text is changed. Names may have ':' and '=' in them: the last ones count. */
static int read_change(const cli_args *args, const char *option, const char *spec, char *text,
                       nori_axis_change *c)
{
    bool by_name = strcmp(option, "--fix-dim") == 0, frees = strcmp(option, "--free") == 0;
    char *equals = strrchr(text, '='), *end = NULL;
    long long n = -1;
    *c = (nori_axis_change){.value = -1};
    if (frees) {
        char *colon = strrchr(text, ':');
        equals = colon ? strchr(colon, '=') : NULL;
    }
    if ((!equals && !frees) || (equals && !equals[1])) {
        return usage(args, option, spec);
    }
    if (equals) {
        *equals = 0;
        if (!frees && !to_number(equals + 1, &n)) {
            return usage(args, option, spec);
        }
        c->value = n;
        c->name = frees ? equals + 1 : NULL;
    }
    if (by_name) {
        c->old = text;
        return text[0] ? EXIT_YES : usage(args, option, spec);
    }
    char *colon = strrchr(text, ':');
    long axis = colon ? strtol(colon + 1, &end, 10) : -1;
    if (!colon || colon == text || end == colon + 1 || *end || axis < 0 || axis >= NORI_MAX_RANK) {
        return usage(args, option, spec);
    }
    *colon = 0;
    c->input = text;
    c->axis = (int)axis;
    return EXIT_YES;
}

static int read_changes(const cli_args *args, shape_job *job)
{
    static const char *const names[] = {"--fix-dim", "--fix", "--free"};
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        const char *spec;
        for (int i = 0; (spec = cli_nth(args, names[k], i)) != NULL; i++) {
            if (job->count == MOST) {
                return cli_usage(args, "more than %d changes", MOST);
            }
            size_t size = strlen(spec) + 1;
            char *text = malloc(size);
            if (!text) {
                return cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
            }
            memcpy(text, spec, size);
            job->texts[job->count] = text;
            int code = read_change(args, names[k], spec, text, &job->changes[job->count++]);
            if (code != EXIT_YES) {
                return code;
            }
        }
    }
    return job->count > 0 || cli_has(args, "--infer")
               ? EXIT_YES
               : cli_usage(args, "nothing to change: --fix-dim, --fix, --free or --infer was expected");
}

static void print(const cli_args *args, const nori_model *made, const char *output)
{
    size_t n_in = nori_model_input_count(made), n_out = nori_model_output_count(made);
    char shape[256];
    cli_json j;
    if (args->json) {
        cli_json_begin(&j, stdout);
        cli_json_string(&j, "output", output);
        cli_json_array(&j, "values");
    }
    for (size_t i = 0; i < n_in + n_out; i++) {
        const nori_value_info *v =
            i < n_in ? nori_model_input(made, i) : nori_model_output(made, i - n_in);
        cli_shape(v, shape, sizeof(shape));
        if (args->json) {
            cli_json_object(&j, NULL);
            cli_json_string(&j, "kind", i < n_in ? "input" : "output");
            cli_json_string(&j, "name", v->name);
            cli_json_string(&j, "type", shape);
            cli_json_end(&j);
        } else {
            printf("%-11s %s %s\n", i < n_in ? "input" : "output", v->name, shape);
        }
    }
    if (args->json) {
        cli_json_finish(&j);
    } else {
        printf("\n%s was written%s\n", output,
               cli_has(args, "--free") ? "; next: nori check says whether its body follows" : "");
    }
}

static int run(cli_args *args)
{
    static shape_job job;
    const char *output = cli_value(args, "--output");
    nori_model *model = NULL, *made = NULL;
    nori_error err = {0};
    if (args->count != 1 || !output) {
        return cli_usage(args, "a model and --output FILE were expected");
    }
    int code = read_changes(args, &job);
    code = code == EXIT_YES ? cli_load(args, &model) : code;
    if (code == EXIT_YES && nori_shapes(model, job.changes, job.count, cli_has(args, "--infer"), &made,
                                        &err) != NORI_OK) {
        code = cli_fail(args, &err);
    }
    code = code == EXIT_YES ? change_save(args, made, output, NULL) : code;
    if (code == EXIT_YES && (args->json || !args->quiet)) {
        print(args, made, output);
    }
    for (size_t i = 0; i < MOST; i++) {
        free(job.texts[i]);
    }
    nori_model_free(made);
    nori_model_free(model);
    return code;
}

const cli_verb cli_shapes = {
    "shapes", "change", "MODEL --output FILE",
    "fix or free sizes of inputs, and write down what follows", options, run,
    "  nori shapes model.onnx --fix-dim batch=1 --output fixed.onnx\n"
    "  nori shapes model.onnx --free image:2=height --free image:3=width --output any.onnx\n"
    "  nori shapes model.onnx --infer --output told.onnx\n"};

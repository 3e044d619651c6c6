/* cmd_run.c: runs a model once on given, random or stored inputs. */
#include <stdlib.h>
#include <string.h>

#include "phases.h"
#include "run_job.h"
#include "run_values.h"

static const cli_option options[] = {
    CLI_INPUT_OPTIONS,
    {"--output", "[NAME=]FILE", "write an output as .npy or .pb, or all as .npz; may be repeated"},
    {"--labels", "FILE", "class names, a line each: the first output as the most likely classes"},
    {"--top", "K", "how many classes to show (default 5); without names, their numbers"},
    {"--test-data", "DIR", "feed DIR/input_N.pb(.gz), compare with DIR/output_N.pb(.gz)"},
    {"--atol", "X[,Y..]", "absolute tolerance, one or one per output (default 1e-5)"},
    {"--rtol", "X[,Y..]", "relative tolerance, one or one per output (default 1e-3)"},
    {"--rms", "X[,Y..]", "also: limit for the relative RMS difference ('-': none)"},
    {"--values", "FILE.npz", "write every value in between as well, by name (the run is at level 0)"},
    {"--timing", NULL, "how long loading, creating and the run took, by phase, on standard error"},
    CLI_SESSION_OPTIONS,
    CLI_LOAD_OPTIONS,
    CLI_QUIET_OPTION,
    CLI_COMMON_OPTIONS,
};

static int add_label(run_job *j, const char *line)
{
    char *copy = strdup(line);
    char **more = copy ? realloc(j->labels, (j->n_labels + 1) * sizeof(*more)) : NULL;
    if (!more) {
        free(copy);
        return cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
    }
    j->labels = more;
    j->labels[j->n_labels++] = copy;
    return EXIT_YES;
}

static int read_labels(run_job *j, const char *path)
{
    nori_error err = {0};
    FILE *f = cli_open(path, true, &err);
    char *line = NULL;
    size_t room = 0;
    int code = EXIT_YES;
    if (!f) {
        return cli_fail(j->args, &err);
    }
    while (code == EXIT_YES && getline(&line, &room, f) >= 0) {
        line[strcspn(line, "\r\n")] = 0;
        code = add_label(j, line);
    }
    free(line);
    fclose(f);
    while (j->n_labels > 0 && !j->labels[j->n_labels - 1][0]) { /* empty lines at the end */
        free(j->labels[--j->n_labels]);
    }
    if (code == EXIT_YES && j->n_labels == 0) {
        return cli_fail_text(j->args, NORI_ERROR_DATA, "%s has no class names, a line each", path);
    }
    return code;
}

/* Options that would be passed over in silence are refused. */
static bool options_fit(const cli_args *args)
{
    static const char *const random[] = {"--input", "--shape", "--seed", "--labels", "--top", "--mean",
                                         "--std", "--range", "--bgr", "--timing", "--values"};
    static const char *const compared[] = {"--atol", "--rtol", "--rms"};
    bool stored = cli_has(args, "--test-data");
    for (size_t i = 0; stored && i < sizeof(random) / sizeof(random[0]); i++) {
        if (cli_has(args, random[i])) {
            cli_usage(args, "--test-data brings its own inputs and compares outputs: %s means nothing "
                            "with it",
                      random[i]);
            return false;
        }
    }
    for (size_t i = 0; !stored && i < sizeof(compared) / sizeof(compared[0]); i++) {
        if (cli_has(args, compared[i])) {
            cli_usage(args, "%s means something with --test-data only", compared[i]);
            return false;
        }
    }
    if (cli_has(args, "--values") && cli_has(args, "--level")) {
        cli_usage(args, "--values is at level 0: higher ones do without some of the model's values");
        return false;
    }
    if (stored && args->count > 1) {
        cli_usage(args, "--test-data brings its own inputs: none other can be given");
        return false;
    }
    return true;
}

int run_once(run_job *j)
{
    nori_error err = {0};
    for (size_t i = 0; i < j->n_out; i++) {
        nori_tensor_free(j->outputs[i]);
        j->outputs[i] = NULL;
    }
    if (nori_session_run(j->session, (const nori_tensor *const *)j->inputs, j->n_in, j->outputs,
                         j->n_out, &err) != NORI_OK) {
        return cli_fail(j->args, &err);
    }
    return EXIT_YES;
}

static int with_session(run_job *j, cli_phases *phases)
{
    j->n_in = nori_session_input_count(j->session);
    j->n_out = nori_session_output_count(j->session);
    j->inputs = calloc(j->n_in + 1, sizeof(*j->inputs));
    j->outputs = calloc(j->n_out + 1, sizeof(*j->outputs));
    j->wanted = calloc(j->n_out + 1, sizeof(*j->wanted));
    if (!j->inputs || !j->outputs || !j->wanted) {
        return cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
    }
    int code = run_check_targets(j);
    if (code == EXIT_YES && cli_has(j->args, "--test-data")) {
        return run_test_data(j);
    }
    if (code == EXIT_YES) {
        code = cli_inputs(j->args, j->session, j->args->positional + 1, j->args->count - 1,
                          j->inputs);
    }
    if (code == EXIT_YES) {
        uint64_t start = nori_clock_ns();
        code = run_once(j);
        phases->first_ns = nori_clock_ns() - start;
    }
    if (code == EXIT_YES) {
        code = run_write_outputs(j);
    }
    return code == EXIT_YES ? run_show_outputs(j) : code;
}

/* The session; values are kept where that is asked. */
static int open_session(run_job *j, const nori_model *model, run_values *values)
{
    nori_session_options o;
    nori_error err = {0};
    if (!cli_has(j->args, "--values")) {
        return cli_session(j->args, model, 0, &j->session);
    }
    if (!cli_session_options(j->args, &o)) {
        return EXIT_USAGE;
    }
    o.level = 0;
    o.watch = run_values_keep;
    o.watch_user = values;
    if (nori_session_create(model, &o, &j->session, &err) != NORI_OK) {
        return cli_fail(j->args, &err);
    }
    cli_session_notes(j->args, j->session);
    return EXIT_YES;
}

/* What was fed is among the values, too: the other side needs it. */
static int write_values(const run_job *j, run_values *values)
{
    for (size_t i = 0; i < j->n_in; i++) {
        if (j->inputs[i]) {
            run_values_keep(values, nori_session_input(j->session, i)->name, j->inputs[i]);
        }
    }
    return run_values_write(j->args, values, cli_value(j->args, "--values"));
}

static void free_tensors(nori_tensor **list, size_t count)
{
    for (size_t i = 0; list && i < count; i++) {
        nori_tensor_free(list[i]);
    }
    free(list);
}

static int run(cli_args *args)
{
    run_job j = {.args = args};
    run_values values = {0};
    cli_phases phases = {0};
    nori_model *model = NULL;
    if (!cli_number(args, "--top", 1, TOP_MOST, 5, &j.top) || !options_fit(args)) {
        return EXIT_USAGE;
    }
    uint64_t start = nori_clock_ns();
    int code = cli_load(args, &model);
    phases.load_ns = nori_clock_ns() - start;
    if (code == EXIT_YES && cli_has(args, "--labels")) {
        code = read_labels(&j, cli_value(args, "--labels"));
    }
    if (code == EXIT_YES) {
        start = nori_clock_ns();
        code = open_session(&j, model, &values);
        phases.create_ns = nori_clock_ns() - start;
    }
    if (code == EXIT_YES) {
        code = with_session(&j, &phases);
    }
    if (code == EXIT_YES && cli_has(args, "--values")) {
        code = write_values(&j, &values);
    }
    if (code == EXIT_YES && cli_has(args, "--timing")) {
        cli_phases_print(stderr, &phases, j.session);
    }
    free_tensors(j.inputs, j.n_in);
    free_tensors(j.outputs, j.n_out);
    free_tensors(j.wanted, j.n_out);
    for (size_t i = 0; i < j.n_labels; i++) {
        free(j.labels[i]);
    }
    free(j.labels);
    nori_session_free(j.session);
    run_values_free(&values);
    nori_model_free(model);
    return code;
}

const cli_verb cli_run = {
    "run", "run", "MODEL [FILE ...] [--test-data DIR]",
    "run a model on files, pictures or random input", options, run,
    "  nori run examples/digits/digits.onnx examples/digits/pictures/7_00.png \\\n"
    "      --labels examples/digits/labels.txt\n"
    "  nori run model.onnx --input image=in.npy --output scores=out.npy\n"
    "  nori run model.onnx --test-data test_data_set_0 --atol 1e-5 --rtol 1e-4\n"};

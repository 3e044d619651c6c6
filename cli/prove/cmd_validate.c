/* cmd_validate.c: whether two ways of running a model agree: providers, levels, model files, stored
 * outputs; which layer or which rewrite parts them. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "samples.h"
#include "validate_page.h"
#include "validate_print.h"
#include "validate_values.h"

static const cli_option options[] = {
    {"--against", "FILE", "another model (default: the same), or stored inner values: .npz or folder"},
    {"--against-provider", "LIST", "providers of the other side (default reference)"},
    {"--against-level", "0|1|2", "optimization of the other side (default 0)"},
    {"--stored", "DIR", "the other side is DIR/output_N.pb for DIR/input_N.pb"},
    {"--outputs", "FILE.npz", "the other side is what a program stored for these inputs, by name"},
    {"--data", "DIR", "inputs one after another: a folder of pictures, tensors or data sets, an .npy"},
    {"--samples", "N", "at most this many of --data (default 1000)"},
    {"--levels", NULL, "levels 1 and 2 against level 0; names the rewrite that parts them"},
    {"--layers", NULL, "value by value: each node's own error, and the inherited one"},
    {"--tries", "N", "random inputs to try, from seeds that follow each other (default 1)"},
    {"--atol", "X", "elements agree within X (default by type; 1e-4 for float32) ..."},
    {"--rtol", "X", "... plus X of the other side's value (1e-3; integers must be equal)"},
    {"--max-beyond", "X", "share of elements that may be beyond that (default 0)"},
    {"--min-sqnr", "DB", "also asked for: signal to error in decibels"},
    {"--top", "K", "classes that are looked at in scores (default 5)"},
    {"--html", "FILE", "also write a page with pictures, readable without a network"},
    CLI_INPUT_OPTIONS,
    CLI_SESSION_OPTIONS,
    CLI_LOAD_OPTIONS,
    CLI_QUIET_OPTION,
    CLI_COMMON_OPTIONS,
};

typedef struct job {
    cli_args *args;
    nori_model *model, *other; /* other: NULL when it is the same */
    nori_session *got, *want;
    nori_session_options got_options, want_options;
    nori_agreement_options agree;
    nori_tensor **inputs, **a, **b;
    size_t n_in, n_out;
    nori_agreement *rows;
    nori_archive *outputs; /* --outputs */
    validate_values values; /* --against, where that is no model */
    bool stored_values;
    cli_samples *samples;  /* --data */
    long tries;
} job;

static bool read_number(const cli_args *args, const char *name, double most, double *out)
{
    const char *text = cli_value(args, name);
    char *end;
    if (!text) {
        return true;
    }
    errno = 0;
    *out = strtod(text, &end);
    if (*text == 0 || *end || errno || !isfinite(*out) || *out < 0 || *out > most) {
        cli_usage(args, "%s \"%s\": a number from 0 to %g was expected", name, text, most);
        return false;
    }
    return true;
}

static bool read_options(job *j)
{
    long top, level;
    nori_agreement_options_default(&j->agree);
    if (!read_number(j->args, "--atol", 1e30, &j->agree.atol) ||
        !read_number(j->args, "--rtol", 1e30, &j->agree.rtol) ||
        !read_number(j->args, "--max-beyond", 1, &j->agree.max_beyond) ||
        !read_number(j->args, "--min-sqnr", 1000, &j->agree.min_sqnr_db) ||
        !cli_number(j->args, "--top", 1, 100, 5, &top) ||
        !cli_number(j->args, "--tries", 1, 10000, 1, &j->tries) ||
        !cli_number(j->args, "--against-level", 0, 2, 0, &level) ||
        !cli_session_options(j->args, &j->got_options)) {
        return false;
    }
    j->agree.top_k = (int)top;
    j->want_options = j->got_options;
    const char *providers = cli_value(j->args, "--against-provider");
    j->want_options.providers = providers ? providers : "reference";
    j->want_options.level = (int)level;
    if ((j->stored_values || cli_has(j->args, "--layers")) && !cli_has(j->args, "--level")) {
        j->got_options.level = 0; /* all values of the model are there */
    }
    return true;
}

/* ---- stored inputs and outputs ---- */

static int read_stored(const job *j, const char *what, size_t index, const nori_value_info *info,
                       nori_tensor **tensor)
{
    static const char *const endings[] = {"pb", "pb.gz", "npy"};
    nori_error err = {0};
    char path[1024] = "";
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s_%zu.%s", cli_value(j->args, "--stored"), what, index,
                 endings[i]);
        FILE *f = fopen(path, "rb");
        if (f) {
            fclose(f);
            return nori_value_read(NULL, path, info->kind, tensor, &err) == NORI_OK
                       ? cli_fit_scalar(j->args, info, tensor)
                       : cli_fail(j->args, &err);
        }
    }
    return cli_fail_text(j->args, NORI_ERROR_IO, "%s/%s_%zu.pb, .pb.gz or .npy was expected",
                         cli_value(j->args, "--stored"), what, index);
}

static int take_stored(job *j)
{
    int code = EXIT_YES;
    for (size_t i = 0; i < j->n_in && code == EXIT_YES; i++) {
        const nori_value_info *info = nori_session_input(j->got, i);
        if (!info->optional) {
            code = read_stored(j, "input", i, info, &j->inputs[i]);
        }
    }
    for (size_t i = 0; i < j->n_out && code == EXIT_YES; i++) {
        code = read_stored(j, "output", i, nori_session_output(j->got, i), &j->b[i]);
    }
    return code;
}

/* Whether an array is worth unpacking: one of many more elements than the output has is no answer to
 * compare with, and a few kilobytes may unfold to a thousand times as many. */
static bool much_more(const nori_value_info *info, const nori_tensor *t)
{
    int64_t elements = 1, most = 2 * nori_tensor_elements(t) + 65536;
    for (int d = 0; d < info->rank; d++) {
        elements *= info->dims[d]; /* fits: the archive has as many */
    }
    return elements > most;
}

/* What another program made of the same inputs, by the names of outputs. */
static int take_archive(job *j)
{
    nori_error err = {0};
    const char *path = cli_value(j->args, "--outputs");
    if (!j->outputs && nori_archive_open(j->args->env, path, &j->outputs, &err) != NORI_OK) {
        return cli_fail(j->args, &err);
    }
    for (size_t i = 0; i < j->n_out; i++) {
        const char *want = nori_session_output(j->got, i)->name, *name;
        size_t k = 0;
        while ((name = nori_archive_name(j->outputs, k)) != NULL && strcmp(name, want) != 0) {
            k++;
        }
        if (!name) {
            return cli_fail_text(j->args, NORI_ERROR_DATA, "%s has no array named \"%s\", as the "
                                 "model's output %zu is", path, want, i);
        }
        if (much_more(nori_archive_info(j->outputs, k), j->a[i])) {
            return cli_fail_text(j->args, NORI_ERROR_DATA, "%s: its array \"%s\" has many more elements than "
                                 "the model's output", path, want);
        }
        if (nori_archive_load(j->outputs, k, &j->b[i], &err) != NORI_OK) {
            return cli_fail(j->args, &err);
        }
    }
    return EXIT_YES;
}

/* ---- outputs ---- */

static void clear(nori_tensor **list, size_t count)
{
    for (size_t i = 0; list && i < count; i++) {
        nori_tensor_free(list[i]);
        list[i] = NULL;
    }
}

static int run_side(const job *j, nori_session *s, nori_tensor **outputs)
{
    nori_error err = {0};
    return nori_session_run(s, (const nori_tensor *const *)j->inputs, j->n_in, outputs, j->n_out,
                            &err) == NORI_OK
               ? EXIT_YES
               : cli_fail(j->args, &err);
}

/* Inputs of one try: given ones each time, random ones anew. */
static int take_inputs(job *j, long attempt)
{
    if (j->samples) {
        nori_error err = {0};
        if (cli_samples_get(j->samples, (size_t)attempt, j->inputs, &err) > 0) {
            return EXIT_YES;
        }
        int code = cli_samples_code(j->samples);
        return code ? code : cli_fail(j->args, &err);
    }
    int code = cli_inputs(j->args, j->got, j->args->positional + 1, j->args->count - 1, j->inputs);
    for (size_t i = 0; attempt > 0 && i < j->n_in && code == EXIT_YES; i++) {
        nori_tensor_free(j->inputs[i]);
        j->inputs[i] = NULL;
        code = cli_random(j->args, nori_session_input(j->got, i),
                          (uint64_t)attempt * 7919u + i, &j->inputs[i]);
    }
    return code;
}

static bool made_up(const job *j)
{
    return !j->samples && j->args->count < 2 && !cli_has(j->args, "--input");
}

static int compare_outputs(job *j)
{
    bool stored = cli_has(j->args, "--stored"), archive = cli_has(j->args, "--outputs");
    int code = EXIT_YES;
    for (long t = 0; t < j->tries && code == EXIT_YES; t++) {
        clear(j->inputs, j->n_in);
        clear(j->a, j->n_out);
        clear(j->b, j->n_out);
        if (j->tries > 1) {
            cli_progress(j->args, "comparing, input %ld of %ld", t + 1, j->tries);
        }
        code = stored ? take_stored(j) : take_inputs(j, t);
        code = code == EXIT_YES ? run_side(j, j->got, j->a) : code;
        if (code == EXIT_YES && !stored) {
            code = archive ? take_archive(j) : run_side(j, j->want, j->b);
        }
        for (size_t i = 0; i < j->n_out && code == EXIT_YES; i++) {
            nori_agreement_add(&j->rows[i], j->a[i], j->b[i], &j->agree);
        }
    }
    cli_progress_done(j->args);
    if (code != EXIT_YES) {
        return code;
    }
    validate_names n = {cli_value(j->args, "--provider") ? cli_value(j->args, "--provider") : "cpu",
                        stored    ? "stored"
                        : archive ? cli_value(j->args, "--outputs")
                                  : j->want_options.providers,
                        !stored && made_up(j)};
    code = validate_page_outputs(j->args, j->got, &n, j->rows, j->n_out);
    if (code != EXIT_YES) {
        return code;
    }
    code = validate_print_outputs(j->args, j->got, &n, j->rows, j->n_out) ? EXIT_YES : EXIT_NO;
    if (code == EXIT_NO && n.random && j->other) { /* int8 ranges are those of real inputs */
        cli_warn(j->args, "the inputs were random; --data PATH or files compare on real ones");
    }
    return code;
}

/* ---- levels, layers ---- */

/* Rewrites and inner values are looked at on one set of inputs. */
static void tell_first(const job *j)
{
    if (j->samples && j->tries > 1) {
        cli_warn(j->args, "one set of inputs is looked at: the first of the %ld of --data", j->tries);
    }
}

static int compare_levels(job *j)
{
    nori_level_row rows[2] = {{.size = sizeof(rows[0])}, {.size = sizeof(rows[0])}};
    nori_error err = {0};
    int code = take_inputs(j, 0);
    if (code != EXIT_YES) {
        return code;
    }
    tell_first(j);
    if (nori_validate_levels(j->model, &j->got_options, (const nori_tensor *const *)j->inputs,
                             j->n_in, &j->agree, rows, &err) != NORI_OK) {
        return cli_fail(j->args, &err);
    }
    code = validate_page_levels(j->args, rows);
    return code != EXIT_YES ? code : validate_print_levels(j->args, rows) ? EXIT_YES : EXIT_NO;
}

/* Inputs that were given, or else those among the values. */
static int take_value_inputs(job *j)
{
    if (!made_up(j)) {
        return take_inputs(j, 0);
    }
    for (size_t i = 0; i < j->n_in; i++) {
        const nori_value_info *info = nori_session_input(j->got, i);
        nori_tensor *t = validate_values_find(&j->values, info->name);
        if (!t && !info->optional) {
            return cli_fail_text(j->args, NORI_ERROR_DATA, "%s does not hold the input \"%s\": give the "
                                 "inputs that its values were made of",
                                 cli_value(j->args, "--against"), info->name);
        }
        j->inputs[i] = t ? nori_tensor_retain(t) : NULL;
    }
    return EXIT_YES;
}

static int compare_layers(job *j)
{
    nori_layers *layers = NULL;
    nori_error err = {0};
    const nori_tensor *const *in = (const nori_tensor *const *)j->inputs;
    int code = j->stored_values ? take_value_inputs(j) : take_inputs(j, 0);
    if (code != EXIT_YES) {
        return code;
    }
    tell_first(j);
    nori_status status =
        j->stored_values
            ? nori_validate_values(j->model, (const char *const *)j->values.names,
                                   (const nori_tensor *const *)j->values.tensors, j->values.count,
                                   &j->got_options, in, j->n_in, &j->agree, &layers, &err)
            : nori_validate_layers(j->model, j->other ? j->other : j->model, &j->got_options,
                                   &j->want_options, in, j->n_in, &j->agree, &layers, &err);
    if (status != NORI_OK) {
        return cli_fail(j->args, &err);
    }
    code = validate_page_layers(j->args, layers);
    code = code != EXIT_YES ? code : validate_print_layers(j->args, layers) ? EXIT_YES : EXIT_NO;
    nori_layers_free(layers);
    return code;
}

/* ---- the verb ---- */

static int load_sides(job *j)
{
    nori_error err = {0};
    nori_load_options load;
    cli_load_options(j->args, &load);
    int code = cli_load(j->args, &j->model);
    if (code == EXIT_YES && j->stored_values) {
        code = validate_values_read(j->args, j->model, cli_value(j->args, "--against"), &j->values);
    } else if (code == EXIT_YES && cli_has(j->args, "--against") &&
               nori_model_load(j->args->env, cli_value(j->args, "--against"), &load, &j->other, &err) !=
                   NORI_OK) {
        return cli_fail(j->args, &err);
    }
    if (code == EXIT_YES &&
        (nori_session_create(j->model, &j->got_options, &j->got, &err) != NORI_OK ||
         nori_session_create(j->other ? j->other : j->model, &j->want_options, &j->want, &err) !=
             NORI_OK)) {
        return cli_fail(j->args, &err);
    }
    if (code == EXIT_YES) {
        cli_session_notes(j->args, j->got);
    }
    if (code == EXIT_YES && cli_has(j->args, "--data")) {
        code = cli_samples_open(j->args, j->model, &j->samples);
        j->tries = code == EXIT_YES ? (long)cli_samples_count(j->samples) : 1;
    }
    if (code != EXIT_YES) {
        return code;
    }
    j->n_in = nori_session_input_count(j->got);
    j->n_out = nori_session_output_count(j->got);
    if (j->n_out != nori_session_output_count(j->want) ||
        j->n_in != nori_session_input_count(j->want)) {
        return cli_fail_text(j->args, NORI_ERROR_DATA,
                             "the two models have different numbers of inputs or outputs");
    }
    j->inputs = calloc(j->n_in + 1, sizeof(*j->inputs));
    j->a = calloc(j->n_out + 1, sizeof(*j->a));
    j->b = calloc(j->n_out + 1, sizeof(*j->b));
    j->rows = calloc(j->n_out + 1, sizeof(*j->rows));
    if (!j->inputs || !j->a || !j->b || !j->rows) {
        return cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < j->n_out; i++) {
        j->rows[i].size = sizeof(j->rows[i]);
    }
    return EXIT_YES;
}

static int run(cli_args *args)
{
    job j = {.args = args};
    bool levels = cli_has(args, "--levels"), layers = cli_has(args, "--layers");
    bool stored = cli_has(args, "--stored");
    bool given = args->count > 1 || cli_has(args, "--input");
    j.stored_values = cli_has(args, "--against") && validate_values_are(cli_value(args, "--against"));
    if (j.stored_values) {
        static const char *const others[] = {"--levels", "--stored", "--outputs", "--tries", "--data",
                                             "--against-provider", "--against-level"};
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
            if (cli_has(args, others[i])) {
                return cli_usage(args, "%s does not go with stored values as the other side", others[i]);
            }
        }
        layers = true;
    }
    if ((levels && (layers || stored || cli_has(args, "--against"))) || (layers && stored)) {
        return cli_usage(args, "--levels, --layers and --stored do not go together");
    }
    if (stored && (given || cli_has(args, "--tries"))) {
        return cli_usage(args, "--stored brings its own inputs: none other can be given");
    }
    if (cli_has(args, "--data") && (given || stored || cli_has(args, "--tries"))) {
        return cli_usage(args, "--data brings its own inputs: none other can be given");
    }
    if (cli_has(args, "--samples") && !cli_has(args, "--data")) {
        return cli_usage(args, "--samples means something with --data only");
    }
    if (cli_has(args, "--outputs") && (levels || layers || stored || cli_has(args, "--data") ||
                                       cli_has(args, "--tries") || cli_has(args, "--against"))) {
        return cli_usage(args, "--outputs are those of one set of inputs and the only other side");
    }
    if (cli_has(args, "--tries") && (given || levels || layers)) {
        return cli_usage(args, "--tries is for random inputs and for outputs alone");
    }
    if (!read_options(&j)) {
        return EXIT_USAGE;
    }
    int code = load_sides(&j);
    if (code == EXIT_YES) {
        code = levels ? compare_levels(&j) : layers ? compare_layers(&j) : compare_outputs(&j);
    }
    clear(j.inputs, j.n_in);
    clear(j.a, j.n_out);
    clear(j.b, j.n_out);
    free(j.inputs);
    free(j.a);
    free(j.b);
    free(j.rows);
    nori_archive_free(j.outputs);
    validate_values_free(&j.values);
    if (j.samples) {
        cli_samples_close(j.samples);
    }
    nori_session_free(j.got);
    nori_session_free(j.want);
    nori_model_free(j.other);
    nori_model_free(j.model);
    return code;
}

const cli_verb cli_validate = {
    "validate", "prove", "MODEL [FILE ...] [--against FILE]",
    "whether two providers, levels, models or stored outputs agree", options, run,
    "  nori validate model.onnx\n"
    "  nori validate model.onnx --against-provider ort:cpu --tries 10\n"
    "  nori validate int8.onnx --against float.onnx --min-sqnr 20 --max-beyond 1\n"
    "  nori validate model.onnx --levels\n"
    "  nori validate int8.onnx --against float.onnx --layers --html layers.html\n"
    "  nori validate model.onnx --input x.npy --outputs torch.npz\n"
    "  nori validate model.onnx --input x.npy --against device_values.npz\n"};

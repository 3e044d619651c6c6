/* cmd_run.c: runs a model once on given, random or stored inputs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inputs.h"

static const cli_option options[] = {
    CLI_INPUT_OPTIONS,
    {"--labels", "FILE", "class names, a line each: outputs are shown as the most likely"},
    {"--top", "K", "how many classes to show (default 5)"},
    {"--output", "NAME=FILE", "write an output as .npy or .pb; may be repeated"},
    {"--test-data", "DIR", "feed DIR/input_N.pb(.gz), compare with DIR/output_N.pb(.gz)"},
    {"--atol", "X[,Y..]", "absolute tolerance, one or one per output (default 1e-5)"},
    {"--rtol", "X[,Y..]", "relative tolerance, one or one per output (default 1e-3)"},
    {"--rms", "X[,Y..]", "also: limit for the relative RMS difference ('-': none)"},
    CLI_SESSION_OPTIONS, CLI_LOAD_OPTIONS, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

#define MAX_VALUES 1024

typedef struct job {
    cli_args *args;
    nori_session *session;
    nori_tensor *inputs[MAX_VALUES], *outputs[MAX_VALUES], *wanted[MAX_VALUES];
    char **labels;
    size_t n_labels;
} job;

/* The nth number of a comma-separated list; the last one repeats when there is one only. NaN for
 * "-"; false when it is not a number. */
static bool nth_number(const char *list, size_t n, double otherwise, double *out)
{
    *out = otherwise;
    if (!list) {
        return true;
    }
    bool single = strchr(list, ',') == NULL;
    for (size_t i = 0; !single && i < n && list; i++) {
        list = strchr(list, ',');
        list = list ? list + 1 : NULL;
    }
    if (!list) {
        return false;
    }
    if (list[0] == '-' && (list[1] == 0 || list[1] == ',')) {
        *out = NAN;
        return true;
    }
    char *end;
    *out = strtod(list, &end);
    return end != list && (*end == 0 || *end == ',') && !(*out < 0);
}

static int read_labels(job *j, const char *path)
{
    FILE *f = fopen(path, "r");
    char line[512];
    if (!f) {
        fprintf(stderr, "nori: error: %s cannot be read\n", path);
        return EXIT_BAD;
    }
    while (fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\r\n")] = 0;
        char **more = realloc(j->labels, (j->n_labels + 1) * sizeof(*more));
        char *copy = malloc(strlen(line) + 1);
        if (!more || !copy) {
            free(copy);
            j->labels = more ? more : j->labels;
            fclose(f);
            return EXIT_BAD;
        }
        memcpy(copy, line, strlen(line) + 1);
        j->labels = more;
        j->labels[j->n_labels++] = copy;
    }
    fclose(f);
    return EXIT_YES;
}

static double value_at(const nori_tensor *t, int64_t i)
{
    const void *d = nori_tensor_const_data(t);
    switch (nori_tensor_type(t)) {
    case NORI_FLOAT:
        return (double)((const float *)d)[i];
    case NORI_DOUBLE:
        return ((const double *)d)[i];
    case NORI_INT64:
        return (double)((const int64_t *)d)[i];
    case NORI_INT32:
        return ((const int32_t *)d)[i];
    case NORI_UINT8:
    case NORI_BOOL:
        return ((const uint8_t *)d)[i];
    case NORI_INT8:
        return ((const int8_t *)d)[i];
    default:
        return NAN;
    }
}

static const char *label_of(const job *j, int64_t i)
{
    static char number[32];
    if ((size_t)i < j->n_labels) {
        return j->labels[i];
    }
    snprintf(number, sizeof(number), "%lld", (long long)i);
    return number;
}

/* The largest entries of each row of the last axis, with softmax if they are no probabilities. */
static void print_top(const job *j, const nori_tensor *t, long top)
{
    int rank = nori_tensor_rank(t);
    int64_t n = rank > 0 ? nori_tensor_dims(t)[rank - 1] : 1;
    int64_t rows = n > 0 ? nori_tensor_elements(t) / n : 0;
    for (int64_t r = 0; r < rows; r++) {
        double max = -INFINITY, sum = 0, low = INFINITY, plain = 0;
        for (int64_t i = 0; i < n; i++) {
            double v = value_at(t, r * n + i);
            max = v > max ? v : max;
            low = v < low ? v : low;
            plain += v;
        }
        for (int64_t i = 0; i < n; i++) {
            sum += exp(value_at(t, r * n + i) - max);
        }
        bool probabilities = low >= 0 && fabs(plain - 1) < 1e-3;
        double before = INFINITY;
        int64_t before_at = -1;
        for (long k = 0; k < top && k < n; k++) {
            int64_t best = -1;
            for (int64_t i = 0; i < n; i++) {
                double v = value_at(t, r * n + i);
                bool next = v < before || (v == before && i > before_at);
                if (next && (best < 0 || v > value_at(t, r * n + best))) {
                    best = i;
                }
            }
            if (best < 0) {
                break;
            }
            before = value_at(t, r * n + best);
            before_at = best;
            printf("  %-20s %8.4f %%\n", label_of(j, best),
                   100 * (probabilities ? before : exp(before - max) / sum));
        }
        if (r + 1 < rows) {
            printf("\n");
        }
    }
}

static void print_values(const nori_tensor *t)
{
    int64_t n = nori_tensor_elements(t), show = n < 8 ? n : 8;
    printf("  ");
    for (int64_t i = 0; i < show; i++) {
        if (nori_tensor_type(t) == NORI_STRING) {
            const nori_string *s = (const nori_string *)nori_tensor_const_data(t) + i;
            printf("%s\"%.*s\"", i ? ", " : "", (int)(s->size < 60 ? s->size : 60), s->data);
        } else {
            printf("%s%.6g", i ? ", " : "", value_at(t, i));
        }
    }
    printf("%s\n", show < n ? ", ..." : "");
}

static int write_outputs(job *j)
{
    const char *spec;
    for (int k = 0; (spec = cli_nth(j->args, "--output", k)) != NULL; k++) {
        const char *equals = strchr(spec, '=');
        size_t n = equals ? (size_t)(equals - spec) : 0;
        bool found = !equals && nori_session_output_count(j->session) > 0;
        size_t at = 0;
        for (size_t i = 0; equals && i < nori_session_output_count(j->session); i++) {
            const char *name = nori_session_output(j->session, i)->name;
            if (strlen(name) == n && strncmp(name, spec, n) == 0) {
                found = true;
                at = i;
            }
        }
        if (!found) {
            return cli_usage(j->args, "--output %s: the model has no such output", spec);
        }
        nori_error err = {0};
        if (nori_tensor_write(j->outputs[at], equals ? equals + 1 : spec, &err) != NORI_OK) {
            return cli_fail(j->args, &err);
        }
    }
    return EXIT_YES;
}

static int show_outputs(job *j)
{
    long top;
    if (!cli_number(j->args, "--top", 1, 1000, 5, &top)) {
        return EXIT_USAGE;
    }
    size_t n = nori_session_output_count(j->session);
    cli_json w;
    if (j->args->json) {
        cli_json_begin(&w, stdout);
        cli_json_array(&w, "outputs");
    }
    for (size_t i = 0; i < n; i++) {
        const nori_tensor *t = j->outputs[i];
        char shape[256];
        cli_tensor_shape(t, shape, sizeof(shape));
        if (j->args->json && nori_tensor_kind(t) != NORI_KIND_TENSOR) {
            cli_json_object(&w, NULL);
            cli_json_string(&w, "name", nori_session_output(j->session, i)->name);
            cli_json_group(&w, "value", t);
            cli_json_end(&w);
        } else if (j->args->json) {
            cli_json_object(&w, NULL);
            cli_json_string(&w, "name", nori_session_output(j->session, i)->name);
            cli_json_string(&w, "type", nori_type_name(nori_tensor_type(t)));
            cli_json_array(&w, "shape");
            for (int d = 0; d < nori_tensor_rank(t); d++) {
                cli_json_int(&w, NULL, nori_tensor_dims(t)[d]);
            }
            cli_json_end(&w);
            cli_json_array(&w, "first");
            for (int64_t k = 0; k < nori_tensor_elements(t) && k < 1000; k++) {
                cli_json_number(&w, NULL, value_at(t, k), 9);
            }
            cli_json_end(&w);
            cli_json_end(&w);
        } else {
            printf("%s %s\n", nori_session_output(j->session, i)->name, shape);
            if (j->n_labels > 0 && i == 0) {
                print_top(j, t, top);
            } else {
                print_values(t);
            }
        }
    }
    if (j->args->json) {
        cli_json_finish(&w);
    }
    return EXIT_YES;
}

/* ---- stored data ---- */

static int read_numbered(job *j, const char *dir, const char *what, size_t i, nori_kind kind,
                         nori_tensor **out)
{
    char path[4096];
    static const char *const ends[] = {"pb", "pb.gz", "npy"};
    for (size_t e = 0; e < sizeof(ends) / sizeof(ends[0]); e++) {
        snprintf(path, sizeof(path), "%s/%s_%zu.%s", dir, what, i, ends[e]);
        FILE *f = fopen(path, "rb");
        if (f) {
            nori_error err = {0};
            fclose(f);
            return nori_value_read(NULL, path, kind, out, &err) == NORI_OK
                       ? EXIT_YES
                       : cli_fail(j->args, &err);
        }
    }
    *out = NULL;
    return EXIT_YES;
}

static int compare(job *j)
{
    size_t n = nori_session_output_count(j->session);
    bool all = true, any = false;
    cli_json w;
    if (j->args->json) {
        cli_json_begin(&w, stdout);
        cli_json_array(&w, "outputs");
    } else if (!j->args->quiet) {
        printf("%-28s %-22s %10s %10s %10s %12s\n", "output", "shape", "max abs", "max rel", "rms",
               "beyond");
    }
    for (size_t i = 0; i < n; i++) {
        double atol, rtol, rms;
        if (!nth_number(cli_value(j->args, "--atol"), i, 1e-5, &atol) ||
            !nth_number(cli_value(j->args, "--rtol"), i, 1e-3, &rtol) ||
            !nth_number(cli_value(j->args, "--rms"), i, NAN, &rms)) {
            return cli_usage(j->args, "--atol, --rtol and --rms take one number, or one per output");
        }
        if (!j->wanted[i]) {
            continue;
        }
        any = true;
        nori_difference d = {.size = sizeof(d)};
        nori_tensor_compare(j->outputs[i], j->wanted[i], isnan(atol) ? 0 : atol,
                            isnan(rtol) ? 0 : rtol, &d);
        bool pass = d.passes && (isnan(rms) || d.rms <= rms);
        all = all && pass;
        char shape[64];
        cli_tensor_shape(j->outputs[i], shape, sizeof(shape));
        const char *name = nori_session_output(j->session, i)->name;
        if (j->args->json) {
            cli_json_object(&w, NULL);
            cli_json_string(&w, "name", name);
            cli_json_bool(&w, "passes", pass);
            cli_json_number(&w, "max_abs", d.max_abs, 9);
            cli_json_number(&w, "max_rel", d.max_rel, 9);
            cli_json_number(&w, "rms", d.rms, 9);
            cli_json_uint(&w, "beyond", d.beyond);
            cli_json_uint(&w, "elements", d.elements);
            cli_json_string(&w, "reason", d.reason);
            cli_json_end(&w);
            continue;
        }
        if (!j->args->quiet || !pass) {
            printf("%-28s %-22s %10.3g %10.3g %10.3g %6llu/%llu  %s\n", name, shape, d.max_abs,
                   d.max_rel, d.rms, (unsigned long long)d.beyond, (unsigned long long)d.elements,
                   pass ? "ok" : "DIFFERS");
            if (d.reason[0]) {
                printf("  %s\n", d.reason);
            } else if (!pass && d.beyond > 0) {
                printf("  worst at element %llu: got %.9g, expected %.9g (atol %g, rtol %g)\n",
                       (unsigned long long)d.worst, d.worst_got, d.worst_want, atol, rtol);
            } else if (!pass) {
                printf("  relative RMS %.3g is over the limit %.3g\n", d.rms, rms);
            }
        }
    }
    if (j->args->json) {
        cli_json_end(&w);
        cli_json_bool(&w, "passes", all && any);
        cli_json_finish(&w);
    }
    if (!any) {
        return cli_usage(j->args, "%s has no output_N.pb", cli_value(j->args, "--test-data"));
    }
    return all ? EXIT_YES : EXIT_NO;
}

static int with_session(job *j)
{
    size_t n_in = nori_session_input_count(j->session), n_out = nori_session_output_count(j->session);
    const char *dir = cli_value(j->args, "--test-data");
    int code = EXIT_YES;
    if (n_in > MAX_VALUES || n_out > MAX_VALUES) {
        return cli_usage(j->args, "more than %d inputs or outputs", MAX_VALUES);
    }
    for (size_t i = 0; dir && code == EXIT_YES && i < n_in; i++) {
        code = read_numbered(j, dir, "input", i, nori_session_input(j->session, i)->kind,
                             &j->inputs[i]);
    }
    for (size_t i = 0; dir && code == EXIT_YES && i < n_out; i++) {
        code = read_numbered(j, dir, "output", i,
                             nori_session_output(j->session, i)->kind, &j->wanted[i]);
    }
    if (!dir && code == EXIT_YES) {
        code = cli_inputs(j->args, j->session, j->args->positional + 1, j->args->count - 1,
                          j->inputs);
    }
    if (code != EXIT_YES) {
        return code;
    }
    nori_error err = {0};
    if (nori_session_run(j->session, (const nori_tensor *const *)j->inputs, n_in, j->outputs, n_out,
                         &err) != NORI_OK) {
        return cli_fail(j->args, &err);
    }
    code = write_outputs(j);
    if (code != EXIT_YES) {
        return code;
    }
    return dir ? compare(j) : show_outputs(j);
}

static int run(cli_args *args)
{
    static job j;
    j.args = args;
    nori_model *model = NULL;
    int code = cli_load(args, &model);
    if (code == EXIT_YES && cli_has(args, "--labels")) {
        code = read_labels(&j, cli_value(args, "--labels"));
    }
    if (code == EXIT_YES) {
        code = cli_session(args, model, 0, &j.session);
    }
    if (code == EXIT_YES) {
        code = with_session(&j);
    }
    for (size_t i = 0; i < MAX_VALUES; i++) {
        nori_tensor_free(j.inputs[i]);
        nori_tensor_free(j.outputs[i]);
        nori_tensor_free(j.wanted[i]);
    }
    for (size_t i = 0; i < j.n_labels; i++) {
        free(j.labels[i]);
    }
    free(j.labels);
    nori_session_free(j.session);
    nori_model_free(model);
    return code;
}

const cli_verb cli_run = {
    "run", "run", "MODEL [FILE ...] [--test-data DIR]", "run a model on files, pictures or random input",
    options, run,
    "  nori run examples/digits/digits.onnx examples/digits/pictures/7_00.png \\\n"
    "      --labels examples/digits/labels.txt\n"
    "  nori run model.onnx --test-data test_data_set_0 --atol 1e-5 --rtol 1e-4\n"};

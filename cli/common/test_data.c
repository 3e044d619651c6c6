/* test_data.c: stored inputs and outputs, as ONNX's own test cases have them: a folder of input_N
 * and output_N files, or several such folders test_data_set_N in one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "run_job.h"

#define PATH_SIZE 4096

typedef struct tolerance {
    double atol, rtol, rms; /* rms NaN: not looked at */
} tolerance;

/* The nth number of a comma-separated list; a single one stands for all. NaN for "-"; false when
 * it is not there, or no number. */
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
    return end != list && (*end == 0 || *end == ',') && *out >= 0;
}

/* How many numbers a list has room for. */
static size_t length_of(const char *list)
{
    size_t n = 1;
    for (; list && *list; list++) {
        n += *list == ',';
    }
    return n;
}

/* One number, or one for each output. */
static int read_numbers(const run_job *j, const char *option, size_t i, double otherwise, double *out)
{
    const char *list = cli_value(j->args, option);
    size_t n = length_of(list);
    *out = otherwise;
    if (n != 1 && n != j->n_out) {
        return cli_usage(j->args, "%s has %zu numbers; one was expected, or one for each of the %zu outputs",
                         option, n, j->n_out);
    }
    if (!nth_number(list, i, otherwise, out)) {
        return cli_usage(j->args, "%s \"%.100s\": a number from 0 on was expected%s, as 1e-4, or - for none",
                         option, list, n > 1 ? " in each place" : "");
    }
    return EXIT_YES;
}

static int read_tolerance(const run_job *j, size_t i, tolerance *t)
{
    int code = read_numbers(j, "--atol", i, 1e-5, &t->atol);
    code = code == EXIT_YES ? read_numbers(j, "--rtol", i, 1e-3, &t->rtol) : code;
    code = code == EXIT_YES ? read_numbers(j, "--rms", i, NAN, &t->rms) : code;
    t->atol = isnan(t->atol) ? 0 : t->atol;
    t->rtol = isnan(t->rtol) ? 0 : t->rtol;
    return code;
}

/* ---- reading ---- */

static int read_numbered(const run_job *j, const char *dir, const char *what, size_t i,
                         const nori_value_info *info, nori_tensor **out)
{
    static const char *const ends[] = {"pb", "pb.gz", "npy"};
    char path[PATH_SIZE];
    struct stat st;
    nori_tensor_free(*out);
    *out = NULL;
    for (size_t e = 0; e < sizeof(ends) / sizeof(ends[0]); e++) {
        int n = snprintf(path, sizeof(path), "%s/%s_%zu.%s", dir, what, i, ends[e]);
        if (n < 0 || (size_t)n >= sizeof(path) || stat(path, &st) != 0) {
            continue;
        }
        nori_error err = {0};
        if (nori_value_read(j->args->env, path, info->kind, out, &err) != NORI_OK) {
            return cli_fail(j->args, &err);
        }
        return what[0] == 'i' ? cli_fit_scalar(j->args, info, out) : EXIT_YES;
    }
    return EXIT_YES;
}

static int read_folder(const run_job *j, const char *dir)
{
    int code = EXIT_YES;
    bool any = false;
    for (size_t i = 0; code == EXIT_YES && i < j->n_in; i++) {
        code = read_numbered(j, dir, "input", i, nori_session_input(j->session, i), &j->inputs[i]);
        const nori_value_info *info = nori_session_input(j->session, i);
        if (code == EXIT_YES && !j->inputs[i] && !info->optional &&
            info->kind == NORI_KIND_TENSOR) {
            return cli_fail_text(j->args, NORI_ERROR_IO,
                                 "%s has no input_%zu.pb for input \"%s\"", dir, i, info->name);
        }
    }
    for (size_t i = 0; code == EXIT_YES && i < j->n_out; i++) {
        code = read_numbered(j, dir, "output", i, nori_session_output(j->session, i),
                             &j->wanted[i]);
        any |= j->wanted[i] != NULL;
    }
    if (code == EXIT_YES && !any) {
        return cli_fail_text(j->args, NORI_ERROR_IO, "%s has no output_N.pb to compare with", dir);
    }
    return code;
}

/* ---- comparing ---- */

static void json_difference(cli_json *w, const char *name, bool pass, const nori_difference *d)
{
    cli_json_object(w, NULL);
    cli_json_string(w, "name", name);
    cli_json_bool(w, "passes", pass);
    cli_json_number(w, "max_abs", d->max_abs, 9);
    cli_json_number(w, "max_rel", d->max_rel, 9);
    cli_json_number(w, "rms", d->rms, 9);
    cli_json_uint(w, "beyond", d->beyond);
    cli_json_uint(w, "elements", d->elements);
    cli_json_string(w, "reason", d->reason);
    cli_json_end(w);
}

static void print_difference(const run_job *j, size_t i, bool pass, const nori_difference *d,
                             const tolerance *t)
{
    char shape[64];
    cli_tensor_shape(j->outputs[i], shape, sizeof(shape));
    printf("%-28s %-22s %10.3g %10.3g %10.3g %6llu/%llu  %s\n",
           nori_session_output(j->session, i)->name, shape, d->max_abs, d->max_rel, d->rms,
           (unsigned long long)d->beyond, (unsigned long long)d->elements, pass ? "ok" : "DIFFERS");
    if (d->reason[0]) {
        printf("  %s\n", d->reason);
    } else if (!pass && d->beyond > 0) {
        printf("  worst at element %llu: got %.9g, expected %.9g (atol %g, rtol %g)\n",
               (unsigned long long)d->worst, d->worst_got, d->worst_want, t->atol, t->rtol);
    } else if (!pass) {
        printf("  relative RMS %.3g is over the limit %.3g\n", d->rms, t->rms);
    }
}

/* The table's head, above the first row there is. */
static void print_head(bool *done)
{
    if (!*done) {
        printf("%-28s %-22s %10s %10s %10s %12s\n", "output", "shape", "max abs", "max rel", "rms",
               "beyond");
        *done = true;
    }
}

/* All outputs that have something to be compared with; whether they pass. */
static bool compare(const run_job *j, cli_json *w)
{
    bool all = true;
    for (size_t i = 0; i < j->n_out; i++) {
        tolerance t;
        nori_difference d = {.size = sizeof(d)};
        if (!j->wanted[i] && !w && !j->args->quiet) {
            printf("%-28s not compared: there is no output_%zu\n",
                   nori_session_output(j->session, i)->name, i);
        }
        if (!j->wanted[i] || read_tolerance(j, i, &t) != EXIT_YES) {
            continue; /* all tolerances were read once before */
        }
        nori_tensor_compare(j->outputs[i], j->wanted[i], t.atol, t.rtol, &d);
        bool pass = d.passes && (isnan(t.rms) || d.rms <= t.rms);
        all = all && pass;
        if (w) {
            json_difference(w, nori_session_output(j->session, i)->name, pass, &d);
        } else if (!j->args->quiet || !pass) {
            print_difference(j, i, pass, &d, &t);
        }
    }
    return all;
}

/* ---- folders ---- */

/* The kth test_data_set_N in dir, or dir itself when it has none; false past the last. */
static bool nth_folder(const char *dir, size_t k, char *path, bool *is_set)
{
    struct stat st;
    int n = snprintf(path, PATH_SIZE, "%s/test_data_set_%zu", dir, k);
    *is_set = n > 0 && n < PATH_SIZE && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (!*is_set && k == 0) {
        n = snprintf(path, PATH_SIZE, "%s", dir);
        return n > 0 && n < PATH_SIZE;
    }
    return *is_set;
}

static int run_folder(run_job *j, const char *path, bool several, cli_json *w, bool *headed, bool *all)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return cli_fail_text(j->args, NORI_ERROR_IO,
                             "%s is no folder: one with input_N.pb and output_N.pb was expected", path);
    }
    int code = read_folder(j, path);
    if (code == EXIT_YES) {
        code = run_once(j);
    }
    if (code == EXIT_YES) {
        code = run_write_outputs(j);
    }
    if (code != EXIT_YES) {
        return code;
    }
    cli_progress_done(j->args);
    if (!w && !j->args->quiet) {
        print_head(headed);
    }
    if (several && !w && !j->args->quiet) {
        printf("%s\n", path);
    }
    *all = compare(j, w) && *all;
    return EXIT_YES;
}

int run_test_data(run_job *j)
{
    cli_json json, *w = j->args->json ? &json : NULL;
    char path[PATH_SIZE];
    const char *dir;
    bool all = true, several = false, headed = false;
    int code = EXIT_YES;
    for (size_t i = 0; i < j->n_out; i++) {
        tolerance t;
        int said = read_tolerance(j, i, &t);
        if (said != EXIT_YES) {
            return said;
        }
    }
    char *text = NULL;
    size_t size = 0;
    FILE *f = w ? open_memstream(&text, &size) : NULL; /* nothing is said twice on an error */
    if (w && !f) {
        return cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
    }
    if (w) {
        cli_json_begin(w, f);
        cli_json_array(w, "outputs");
    }
    for (int n = 0; code == EXIT_YES && (dir = cli_nth(j->args, "--test-data", n)) != NULL; n++) {
        for (size_t k = 0; code == EXIT_YES && nth_folder(dir, k, path, &several); k++) {
            cli_progress(j->args, "%s", path);
            code = run_folder(j, path, several || cli_nth(j->args, "--test-data", 1), w, &headed,
                              &all);
            if (!several) {
                break;
            }
        }
    }
    cli_progress_done(j->args);
    if (w) {
        cli_json_end(w);
        cli_json_bool(w, "passes", all);
        cli_json_finish(w);
        fclose(f);
        if (code == EXIT_YES) {
            fwrite(text, 1, size, stdout);
        }
        free(text);
    }
    return code != EXIT_YES ? code : all ? EXIT_YES : EXIT_NO;
}

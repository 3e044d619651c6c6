/* outputs.c: what came out of a run: on standard output, or in files. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "run_job.h"

/* ---- files ---- */

/* One --output: which output (n_out: all) and where to. False: no such output. */
static bool target_of(const run_job *j, const char *spec, size_t *at, const char **path)
{
    const char *equals = strchr(spec, '=');
    *at = cli_ends_with(spec, ".npz") || j->n_out > 1 ? j->n_out : 0;
    *path = spec;
    for (; equals; equals = strchr(equals + 1, '=')) { /* names may have one in them */
        for (size_t i = 0; i < j->n_out; i++) {
            const char *name = nori_session_output(j->session, i)->name;
            if (strlen(name) == (size_t)(equals - spec) &&
                strncmp(name, spec, (size_t)(equals - spec)) == 0) {
                *at = i;
                *path = equals + 1;
                return true;
            }
        }
    }
    return strchr(spec, '=') == NULL;
}

int run_check_targets(const run_job *j)
{
    const char *spec, *path;
    for (int k = 0; (spec = cli_nth(j->args, "--output", k)) != NULL; k++) {
        size_t at;
        if (!target_of(j, spec, &at, &path)) {
            return cli_usage(j->args, "--output %s: the model has no such output; `nori inspect` "
                                      "lists them",
                             spec);
        }
        bool all = cli_ends_with(path, ".npz");
        if (!all && !cli_ends_with(path, ".npy") && !cli_ends_with(path, ".pb")) {
            return cli_usage(j->args, "--output %s: the file must end in .npy, .npz or .pb", spec);
        }
        if (!all && at == j->n_out) {
            return cli_usage(j->args, "--output %s: the model has %zu outputs: NAME=FILE, or a "
                                      "file that ends in .npz for all",
                             spec, j->n_out);
        }
    }
    return EXIT_YES;
}

static nori_status write_archive(const run_job *j, size_t at, const char *path, nori_error *err)
{
    const char *names[1];
    if (at < j->n_out) {
        names[0] = nori_session_output(j->session, at)->name;
        const nori_tensor *one[1] = {j->outputs[at]};
        return nori_archive_write(path, names, one, 1, err);
    }
    enum { MOST = 1024 };
    static const char *all[MOST];
    if (j->n_out > MOST) {
        err->status = NORI_ERROR_UNSUPPORTED;
        snprintf(err->message, sizeof(err->message), "more than %d outputs in an archive", MOST);
        return err->status;
    }
    for (size_t i = 0; i < j->n_out; i++) {
        all[i] = nori_session_output(j->session, i)->name;
    }
    return nori_archive_write(path, all, (const nori_tensor *const *)j->outputs, j->n_out, err);
}

int run_write_outputs(const run_job *j)
{
    const char *spec, *path;
    for (int k = 0; (spec = cli_nth(j->args, "--output", k)) != NULL; k++) {
        nori_error err = {0};
        size_t at;
        target_of(j, spec, &at, &path);
        nori_status s = cli_ends_with(path, ".npz") ? write_archive(j, at, path, &err)
                                                : nori_tensor_write(j->outputs[at], path, &err);
        if (s != NORI_OK) {
            return cli_fail(j->args, &err);
        }
    }
    return EXIT_YES;
}

/* ---- classes ---- */

typedef struct class_row {
    int64_t index;
    double percent;
} class_row;

static const char *label_of(const run_job *j, int64_t i, char *number, size_t size)
{
    snprintf(number, size, "%" PRId64, i);
    return (size_t)i < j->n_labels ? j->labels[i] : number;
}

/* The largest of n entries from first on, at most most, with softmax if they are no probabilities.
 * Returns how many: NaN is no class. */
static long top_classes(const nori_tensor *t, int64_t first, int64_t n, long most, class_row *rows)
{
    double max = -INFINITY, sum = 0, low = INFINITY, plain = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = nori_tensor_number(t, first + i);
        max = v > max ? v : max;
        low = v < low ? v : low;
        plain += v;
    }
    for (int64_t i = 0; i < n; i++) {
        sum += exp(nori_tensor_number(t, first + i) - max);
    }
    bool probabilities = low >= 0 && fabs(plain - 1) < 1e-3;
    double before = INFINITY;
    int64_t before_at = -1;
    long k = 0;
    for (; k < most && k < n; k++) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++) {
            double v = nori_tensor_number(t, first + i);
            bool next = v < before || (v == before && i > before_at);
            if (next && (best < 0 || v > nori_tensor_number(t, first + best))) {
                best = i;
            }
        }
        if (best < 0) {
            break;
        }
        before = nori_tensor_number(t, first + best);
        before_at = best;
        rows[k] = (class_row){best, 100 * (probabilities ? before : exp(before - max) / sum)};
    }
    return k;
}

/* The classes of each row of the last axis, as lines or, with w, as JSON. */
static void show_classes(const run_job *j, const nori_tensor *t, cli_json *w)
{
    static class_row rows[TOP_MOST];
    int rank = nori_tensor_rank(t);
    int64_t n = rank > 0 ? nori_tensor_dims(t)[rank - 1] : 1;
    int64_t count = n > 0 ? nori_tensor_elements(t) / n : 0;
    if (w) {
        cli_json_array(w, "classes");
    }
    for (int64_t r = 0; r < count; r++) {
        long found = top_classes(t, r * n, n, j->top, rows);
        char number[32];
        if (w) {
            cli_json_array(w, NULL);
        } else if (r > 0) {
            printf("\n");
        }
        for (long k = 0; k < found; k++) {
            const char *label = label_of(j, rows[k].index, number, sizeof(number));
            if (w) {
                cli_json_object(w, NULL);
                cli_json_string(w, "label", label);
                cli_json_int(w, "index", rows[k].index);
                cli_json_number(w, "percent", rows[k].percent, 9);
                cli_json_end(w);
            } else {
                printf("  %-20s %8.4f %%\n", label, rows[k].percent);
            }
        }
        if (w) {
            cli_json_end(w);
        } else if (found == 0) {
            printf("  no class: every value is NaN\n");
        }
    }
    if (w) {
        cli_json_end(w);
    }
}

static bool has_classes(const run_job *j, size_t i)
{
    return (j->n_labels > 0 || cli_has(j->args, "--top")) && i == 0 &&
           nori_tensor_kind(j->outputs[i]) == NORI_KIND_TENSOR &&
           nori_tensor_type(j->outputs[i]) != NORI_STRING;
}

/* Names that are for another model show the wrong classes. */
static void warn_labels(const run_job *j)
{
    const nori_tensor *t = j->n_out > 0 && has_classes(j, 0) ? j->outputs[0] : NULL;
    int rank = t ? nori_tensor_rank(t) : 0;
    int64_t n = rank > 0 ? nori_tensor_dims(t)[rank - 1] : 1;
    if (t && j->n_labels > 0 && (size_t)n != j->n_labels) {
        cli_warn(j->args, "%zu names for classes, but output \"%s\" has %" PRId64 " of them",
                 j->n_labels, nori_session_output(j->session, 0)->name, n);
    }
}

/* ---- values ---- */

static void print_element(const nori_tensor *t, int64_t i)
{
    nori_type type = nori_tensor_type(t);
    if (type == NORI_STRING) {
        const nori_string *s = (const nori_string *)nori_tensor_const_data(t) + i;
        printf("\"%.*s\"", (int)(s->size < 60 ? s->size : 60), s->data ? s->data : "");
    } else if (type == NORI_BOOL) {
        printf(nori_tensor_integer(t, i) ? "true" : "false");
    } else if (type == NORI_UINT64) {
        printf("%" PRIu64, (uint64_t)nori_tensor_integer(t, i));
    } else if (cli_is_integer(type)) {
        printf("%" PRId64, nori_tensor_integer(t, i));
    } else {
        printf("%.6g", nori_tensor_number(t, i));
    }
}

#define SHOWN 8

static void print_elements(const nori_tensor *t)
{
    int64_t n = nori_tensor_elements(t);
    for (int64_t i = 0; i < n && i < SHOWN; i++) {
        printf(i ? ", " : "");
        print_element(t, i);
    }
    printf(n > SHOWN ? ", ...\n" : "\n");
}

/* Groups nest as deep as the model's types do. */
static void print_value(const nori_tensor *t, int indent)
{
    char shape[256];
    if (nori_tensor_kind(t) == NORI_KIND_TENSOR) {
        printf("%*s", indent, "");
        print_elements(t);
        return;
    }
    for (size_t i = 0; i < nori_tensor_item_count(t); i++) {
        const nori_tensor *item = nori_tensor_item(t, i);
        if (i == SHOWN) {
            printf("%*s...\n", indent, "");
            break;
        }
        cli_tensor_shape(item, shape, sizeof(shape));
        printf("%*s%s\n", indent, "", shape);
        print_value(item, indent + 2);
    }
}

#define IN_JSON 1000 /* elements of an output; files are for more */

static void json_output(const run_job *j, size_t i, cli_json *w)
{
    const nori_tensor *t = j->outputs[i];
    cli_json_object(w, NULL);
    cli_json_string(w, "name", nori_session_output(j->session, i)->name);
    if (nori_tensor_kind(t) != NORI_KIND_TENSOR) {
        cli_json_group(w, "value", t);
        cli_json_end(w);
        return;
    }
    cli_json_string(w, "type", nori_type_name(nori_tensor_type(t)));
    cli_json_array(w, "shape");
    for (int d = 0; d < nori_tensor_rank(t); d++) {
        cli_json_int(w, NULL, nori_tensor_dims(t)[d]);
    }
    cli_json_end(w);
    cli_json_int(w, "elements", nori_tensor_elements(t));
    cli_json_array(w, "first");
    for (int64_t k = 0; k < nori_tensor_elements(t) && k < IN_JSON; k++) {
        cli_json_element(w, NULL, t, k);
    }
    cli_json_end(w);
    if (has_classes(j, i)) {
        show_classes(j, t, w);
    }
    cli_json_end(w);
}

int run_show_outputs(const run_job *j)
{
    cli_json w;
    warn_labels(j);
    if (j->args->json) {
        cli_json_begin(&w, stdout);
        cli_json_array(&w, "outputs");
    }
    for (size_t i = 0; i < j->n_out; i++) {
        const nori_tensor *t = j->outputs[i];
        const char *name = nori_session_output(j->session, i)->name;
        char shape[256];
        if (j->args->json) {
            json_output(j, i, &w);
            continue;
        }
        cli_tensor_shape(t, shape, sizeof(shape));
        printf("%s %s\n", name, shape);
        if (has_classes(j, i)) {
            show_classes(j, t, NULL);
        } else {
            print_value(t, 2);
        }
    }
    if (j->args->json) {
        cli_json_finish(&w);
    }
    return EXIT_YES;
}

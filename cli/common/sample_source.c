/* sample_source.c: samples out of one file or folder. Arrays are cut along axis 0: a row is a sample
 * where the input's first dimension is free or 1, else as many rows as the input takes. */
#include "sample_source.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_SIZE 4096

static int bad(nori_error *err, nori_status status, const char *path, const char *what)
{
    err->status = status;
    snprintf(err->message, sizeof(err->message), "%s: %s", path, what);
    return -1;
}

/* How an array is cut for an input: samples in it, and rows that make one. rows 0: it is one sample,
 * as it stands. */
typedef struct cut {
    int64_t samples, rows;
    int axis; /* of an archive's array: that of the batch, where it is not the first */
} cut;

/* whole: the array is one sample where the input takes it as it is. */
static cut cut_of(const nori_value_info *in, int rank, const int64_t *dims, bool whole)
{
    bool same = rank == in->rank && rank > 0, more = in->rank >= 0 && rank == in->rank + 1;
    bool less = rank > 1 && rank == in->rank - 1; /* the input has an axis of 1 for channels */
    if ((!same && !more && !less) || dims[0] < 1) {
        return (cut){1, 0, 0};
    }
    if (!same) {
        return (cut){dims[0], 1, 0};
    }
    if (rank == 1 || (whole && (in->dims[0] < 0 || in->dims[0] == dims[0]))) {
        return (cut){1, dims[0], 0};
    }
    int64_t batch = in->dims[0] > 1 ? in->dims[0] : 1;
    return (cut){(dims[0] + batch - 1) / batch, batch, 0};
}

/* The axis that has the name of another input's free first axis, and so is the batch: states of
 * recurrent networks are [layers, batch, size]. 0: the first, or none. */
static int batch_axis(const nori_model *model, const nori_value_info *in)
{
    for (size_t i = 0; in->rank > 1 && in->dims[0] >= 0 && i < nori_model_input_count(model); i++) {
        const nori_value_info *other = nori_model_input(model, i);
        if (other->rank < 1 || other->dims[0] >= 0 || !other->dim_names[0]) {
            continue;
        }
        for (int d = 1; d < in->rank; d++) {
            if (in->dims[d] < 0 && in->dim_names[d] &&
                strcmp(in->dim_names[d], other->dim_names[0]) == 0) {
                return d;
            }
        }
    }
    return 0;
}

static cut cut_of_many(const nori_model *model, const nori_value_info *in, const nori_value_info *t,
                       bool whole)
{
    int axis = batch_axis(model, in);
    if (axis > 0 && t->rank == in->rank) {
        return whole ? (cut){1, 0, 0} : (cut){t->dims[axis], 1, axis};
    }
    return cut_of(in, t->rank, t->dims, whole);
}

/* ---- opening ---- */

static bool keep_open(source_reader *r, const char *path)
{
    if (r->open_path && strcmp(r->open_path, path) == 0) {
        return true;
    }
    cli_source_close(r);
    r->open_path = malloc(strlen(path) + 1);
    if (r->open_path) {
        memcpy(r->open_path, path, strlen(path) + 1);
    }
    return false;
}

void cli_source_close(source_reader *r)
{
    for (size_t i = 0; r->arrays && i < nori_model_input_count(r->model); i++) {
        nori_tensor_free(r->arrays[i]);
    }
    free(r->arrays);
    r->arrays = NULL;
    nori_tensor_free(r->array);
    nori_archive_free(r->archive);
    free(r->open_path);
    r->array = NULL;
    r->archive = NULL;
    r->open_path = NULL;
}

/* The array whole: column-major ones and other kinds of files. */
static bool open_array(source_reader *r, const char *path, nori_error *err)
{
    if (keep_open(r, path) && r->array) {
        return true;
    }
    return r->open_path && nori_tensor_read(r->args->env, path, &r->array, err) == NORI_OK;
}

static bool open_archive(source_reader *r, const char *path, nori_error *err)
{
    if (keep_open(r, path) && r->archive) {
        return true;
    }
    return r->open_path && nori_archive_open(r->args->env, path, &r->archive, err) == NORI_OK;
}

/* The array of an archive for an input: of its name, numpy's arr_N, or the only one. NULL: there is none. */
static const nori_value_info *array_for(const source_reader *r, size_t input, size_t *index)
{
    char numbered[32];
    const char *name = nori_model_input(r->model, input)->name;
    size_t n = nori_archive_count(r->archive);
    snprintf(numbered, sizeof(numbered), "arr_%zu", input);
    for (int pass = 0; pass < 2; pass++) {
        for (*index = 0; *index < n; ++*index) {
            if (strcmp(nori_archive_name(r->archive, *index), pass ? numbered : name) == 0) {
                return nori_archive_info(r->archive, *index);
            }
        }
    }
    *index = 0;
    return n == 1 && nori_model_input_count(r->model) == 1 ? nori_archive_info(r->archive, 0) : NULL;
}

/* The array for an input, kept until another file is opened: input by input, as what an archive of a few
 * kilobytes unfolds to may be much, and of no use. */
static nori_tensor *load_for(source_reader *r, size_t input, size_t index, nori_error *err)
{
    size_t n = nori_model_input_count(r->model);
    if (!r->arrays && !(r->arrays = calloc(n, sizeof(nori_tensor *)))) {
        bad(err, NORI_ERROR_MEMORY, r->open_path, "out of memory");
        return NULL;
    }
    if (!r->arrays[input]) {
        nori_archive_load(r->archive, index, &r->arrays[input], err);
    }
    return r->arrays[input];
}

static bool is_bytes(const nori_value_info *in, nori_type type)
{
    return in->type == NORI_FLOAT && type == NORI_UINT8;
}

static void warn_ragged(const source_reader *r, const char *path, const nori_value_info *in, cut c,
                        int64_t have)
{
    if (c.rows > 1 && have % c.rows > 0) {
        cli_warn(r->args, "%s: input \"%s\" takes %lld rows at once, and the last %lld of %lld do not "
                          "fill that: the last row stands in for those missing",
                 path, in->name, (long long)c.rows, (long long)(have % c.rows), (long long)have);
    }
}

/* Type and shape of an array on disk; the data are read only where rows cannot be. */
static bool describe(source_reader *r, const char *path, nori_type *type, int *rank, int64_t *dims,
                     nori_error *err)
{
    nori_error no = {0};
    nori_tensor *head = NULL;
    int64_t rows;
    bool by_rows = nori_tensor_read_rows(NULL, path, 0, 0, &head, &rows, &no) == NORI_OK;
    if (!by_rows && !open_array(r, path, err)) {
        return false;
    }
    const nori_tensor *t = by_rows ? head : r->array;
    *type = nori_tensor_type(t);
    *rank = nori_tensor_rank(t);
    for (int d = 0; d < *rank; d++) {
        dims[d] = d == 0 && by_rows ? rows : nori_tensor_dims(t)[d];
    }
    nori_tensor_free(head);
    return true;
}

int cli_source_array(source_reader *r, source *s, bool *bytes)
{
    const nori_value_info *in = nori_model_input(r->model, 0);
    nori_error err = {0};
    nori_type type;
    int rank;
    int64_t dims[NORI_MAX_RANK] = {0};
    if (!describe(r, s->path, &type, &rank, dims, &err)) {
        return cli_fail(r->args, &err);
    }
    cut c = cut_of(in, rank, dims, s->whole);
    s->kind = c.rows > 0 ? SOURCE_ARRAY : SOURCE_FILE;
    s->count = (size_t)c.samples;
    *bytes |= type == NORI_UINT8 && in->type == NORI_FLOAT && c.rows > 0;
    warn_ragged(r, s->path, in, c, rank > 0 ? dims[0] : 1);
    return EXIT_YES;
}

/* Whether what samples are cut to (rows_of, slice_of) is what the input takes, by their array's header. */
static bool sample_fits(const nori_value_info *in, const nori_value_info *t, cut c)
{
    int lead = c.rows > 0 && c.axis == 0 ? in->rank - t->rank + 1 : 0; /* axes in front of a row's */
    if (in->rank < 0 || (in->rank == 0 && t->rank <= 1)) {
        return true; /* anything, or a scalar: one element is taken out */
    }
    if (lead < 0 || (lead == 0 && in->rank != t->rank)) {
        return false;
    }
    for (int d = 0; d < in->rank; d++) {
        int64_t have = lead == 0       ? (c.axis > 0 && d == c.axis ? 1 : t->dims[d])
                       : d == 0        ? c.rows
                       : d < lead      ? 1
                                       : t->dims[d - lead + 1];
        if (in->dims[d] >= 0 && in->dims[d] != have) {
            return false;
        }
    }
    return true;
}

int cli_source_archive(source_reader *r, source *s, bool *bytes)
{
    nori_error err = {0};
    const char *first = NULL;
    if (!open_archive(r, s->path, &err)) {
        return cli_fail(r->args, &err);
    }
    s->count = 1;
    for (size_t i = 0; i < nori_model_input_count(r->model); i++) {
        const nori_value_info *in = nori_model_input(r->model, i);
        size_t index;
        const nori_value_info *t = array_for(r, i, &index);
        if (!t && in->optional) {
            continue;
        }
        if (!t) {
            return cli_fail_text(r->args, NORI_ERROR_DATA, "%s has no array for input \"%s\"",
                                 s->path, in->name);
        }
        cut c = cut_of_many(r->model, in, t, s->whole);
        if (c.samples > 1 && s->count > 1 && (size_t)c.samples != s->count) {
            return cli_fail_text(r->args, NORI_ERROR_DATA,
                                 "%s: its arrays for \"%s\" and \"%s\" hold %zu and %lld samples",
                                 s->path, first, in->name, s->count, (long long)c.samples);
        }
        bool pictures = is_bytes(in, t->type) && c.rows > 0;
        if (in->type != NORI_UNDEFINED && in->type != t->type && !pictures) {
            return cli_fail_text(r->args, NORI_ERROR_DATA,
                                 "%s: its array for input \"%s\" is %s, %s was expected", s->path, in->name,
                                 nori_type_name(t->type), nori_type_name(in->type));
        }
        if (!sample_fits(in, t, c)) {
            return cli_fail_text(r->args, NORI_ERROR_DATA,
                                 "%s: the shape of its array for input \"%s\" holds no samples of it",
                                 s->path, in->name);
        }
        *bytes |= pictures;
        if (c.samples > 1) {
            s->count = (size_t)c.samples;
            first = in->name;
            warn_ragged(r, s->path, in, c, t->dims[c.axis]);
        }
    }
    return EXIT_YES;
}

/* ---- reading ---- */

/* Rows [first, first + count) of from, as an input takes them; rows past the end are the last one.
 * 8-bit pictures for a float input are scaled as pictures from files are. */
static int rows_of(source_reader *r, const nori_value_info *in, const nori_tensor *from,
                   int64_t first, int64_t count, const char *path, nori_tensor **out,
                   nori_error *err)
{
    int64_t dims[NORI_MAX_RANK];
    const int64_t *have = nori_tensor_dims(from);
    int axes = nori_tensor_rank(from) - 1, lead = in->rank - axes;
    size_t row = nori_tensor_bytes(from) / (size_t)have[0];
    const uint8_t *data = nori_tensor_const_data(from);
    if (lead < 0 || lead + axes > NORI_MAX_RANK) {
        return bad(err, NORI_ERROR_DATA, path, "its rows have more axes than the input");
    }
    for (int d = 0; d < lead + axes; d++) {
        dims[d] = d == 0 && lead > 0 ? count : d < lead ? 1 : have[d - lead + 1];
    }
    if (nori_tensor_type(from) == NORI_STRING) { /* their bytes lie elsewhere: no memcpy */
        size_t n = row / sizeof(nori_string);
        const nori_string *strings = (const nori_string *)nori_tensor_const_data(from);
        if (count != 1) {
            return bad(err, NORI_ERROR_UNSUPPORTED, path, "strings are cut into single rows only");
        }
        return nori_tensor_strings(NULL, lead + axes, dims, strings + n * (size_t)first, n, out,
                                   err) == NORI_OK
                   ? 1
                   : -1;
    }
    const char *range = cli_value(r->args, "--range");
    float unit = range && strcmp(range, "255") == 0 ? 1.0f : 1 / 255.0f;
    bool scale = is_bytes(in, nori_tensor_type(from));
    nori_type type = scale ? NORI_FLOAT : nori_tensor_type(from);
    if (nori_tensor_create(NULL, type, lead + axes, dims, out, err) != NORI_OK) {
        return -1;
    }
    for (int64_t k = 0; k < count && row > 0; k++) {
        int64_t at = first + k < have[0] ? first + k : have[0] - 1;
        const uint8_t *line = data + row * (size_t)at;
        if (!scale) {
            memcpy((char *)nori_tensor_data(*out) + row * (size_t)k, line, row);
        }
        for (size_t i = 0; scale && i < row; i++) {
            ((float *)nori_tensor_data(*out))[row * (size_t)k + i] = (float)line[i] * unit;
        }
    }
    return 1;
}

/* Index at of an axis, which stays with a size of 1. */
static int slice_of(const nori_tensor *from, int axis, int64_t at, const char *path, nori_tensor **out,
                    nori_error *err)
{
    int64_t dims[NORI_MAX_RANK];
    int rank = nori_tensor_rank(from);
    size_t outer = 1, size = (size_t)nori_tensor_dims(from)[axis];
    if (nori_tensor_type(from) == NORI_STRING) {
        return bad(err, NORI_ERROR_UNSUPPORTED, path, "strings are cut into single rows only");
    }
    for (int d = 0; d < rank; d++) {
        dims[d] = d == axis ? 1 : nori_tensor_dims(from)[d];
        outer *= d < axis ? (size_t)dims[d] : 1;
    }
    if (nori_tensor_create(NULL, nori_tensor_type(from), rank, dims, out, err) != NORI_OK) {
        return -1;
    }
    size_t piece = outer > 0 ? nori_tensor_bytes(*out) / outer : 0;
    const char *data = nori_tensor_const_data(from);
    for (size_t o = 0; o < outer && piece > 0; o++) {
        memcpy((char *)nori_tensor_data(*out) + o * piece, data + (o * size + (size_t)at) * piece, piece);
    }
    return 1;
}

static int read_array(source_reader *r, const source *s, size_t sample, nori_tensor **out,
                      nori_error *err)
{
    const nori_value_info *in = nori_model_input(r->model, 0);
    nori_tensor *some = NULL;
    nori_type type;
    int rank;
    int64_t total, dims[NORI_MAX_RANK] = {0};
    if (!describe(r, s->path, &type, &rank, dims, err)) {
        return -1;
    }
    cut c = cut_of(in, rank, dims, s->whole);
    int64_t first = (int64_t)sample * c.rows;
    if (c.rows == 0 || first >= dims[0]) {
        return bad(err, NORI_ERROR_DATA, s->path, "it changed while it was read");
    }
    if (r->array && strcmp(r->open_path, s->path) == 0) {
        return rows_of(r, in, r->array, first, c.rows, s->path, out, err);
    }
    int64_t count = dims[0] - first < c.rows ? dims[0] - first : c.rows;
    if (nori_tensor_read_rows(NULL, s->path, first, count, &some, &total, err) != NORI_OK) {
        return -1;
    }
    int got = rows_of(r, in, some, 0, c.rows, s->path, out, err);
    nori_tensor_free(some);
    return got;
}

static int read_archive(source_reader *r, const source *s, size_t sample, nori_tensor **inputs,
                        nori_error *err)
{
    if (!open_archive(r, s->path, err)) {
        return -1;
    }
    for (size_t i = 0; i < nori_model_input_count(r->model); i++) {
        const nori_value_info *in = nori_model_input(r->model, i);
        size_t index;
        const nori_value_info *info = array_for(r, i, &index);
        if (!info) {
            continue; /* optional */
        }
        cut c = cut_of_many(r->model, in, info, s->whole);
        nori_tensor *t = load_for(r, i, index, err);
        if (!t) {
            return -1;
        }
        int64_t first = c.samples == 1 ? 0 : (int64_t)sample * c.rows; /* one is for all samples */
        if (c.rows == 0) {
            inputs[i] = nori_tensor_retain(t);
        } else if (c.axis > 0) {
            if (slice_of(t, c.axis, first, s->path, &inputs[i], err) < 0) {
                return -1;
            }
        } else if (rows_of(r, in, t, first, c.rows, s->path, &inputs[i], err) < 0) {
            return -1;
        }
    }
    return 1;
}

static int read_set(source_reader *r, const source *s, nori_tensor **inputs, nori_error *err)
{
    static const char *const ends[] = {"pb", "pb.gz", "npy"};
    char path[PATH_SIZE];
    for (size_t i = 0; i < nori_model_input_count(r->model); i++) {
        const nori_value_info *in = nori_model_input(r->model, i);
        struct stat st;
        bool found = false;
        for (size_t e = 0; !found && e < sizeof(ends) / sizeof(ends[0]); e++) {
            int n = snprintf(path, sizeof(path), "%s/input_%zu.%s", s->path, i, ends[e]);
            found = n > 0 && n < PATH_SIZE && stat(path, &st) == 0;
        }
        if (!found && in->optional) {
            continue;
        }
        if (!found) {
            snprintf(path, sizeof(path), "%.3900s/input_%zu.pb", s->path, i);
        }
        if (nori_value_read(r->args->env, path, in->kind, &inputs[i], err) != NORI_OK) {
            return -1;
        }
        r->code = cli_fit_scalar(r->args, in, &inputs[i]);
        if (r->code != EXIT_YES) {
            return bad(err, NORI_ERROR_MEMORY, s->path, "out of memory");
        }
    }
    return 1;
}

static int make_up(source_reader *r, size_t row, nori_tensor **inputs, nori_error *err)
{
    int code = EXIT_YES;
    for (size_t i = 0; i < nori_model_input_count(r->model) && code == EXIT_YES; i++) {
        const nori_value_info *in = nori_model_input(r->model, i);
        code = in->optional ? EXIT_YES
                            : cli_random(r->args, in, (row + 1) * 1000003u + i, &inputs[i]);
    }
    r->code = code;
    return code == EXIT_YES ? 1 : bad(err, NORI_ERROR_DATA, "random input", "cannot be made");
}

int cli_source_read(source_reader *r, const source *s, size_t row, nori_tensor **inputs,
                    nori_error *err)
{
    switch (s->kind) {
    case SOURCE_ARRAY:
        return read_array(r, s, row, &inputs[0], err);
    case SOURCE_ARCHIVE:
        return read_archive(r, s, row, inputs, err);
    case SOURCE_SET:
        return read_set(r, s, inputs, err);
    case SOURCE_RANDOM:
        return make_up(r, row, inputs, err);
    case SOURCE_FILE:
        break;
    }
    r->code = cli_read_input(r->args, s->path, nori_model_input(r->model, 0), &inputs[0]);
    return r->code == EXIT_YES ? 1 : bad(err, NORI_ERROR_DATA, s->path, "is no sample");
}

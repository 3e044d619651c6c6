/* samples.c: samples from files, read one at a time so that memory does not grow with them. */
#include "samples.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef enum kind { ONE_FILE, ROW_OF_ARRAY, TEST_SET, RANDOM } kind;

typedef struct entry {
    kind kind;
    char *path;
    size_t row; /* of ROW_OF_ARRAY; seed of RANDOM */
} entry;

struct cli_samples {
    cli_args *args;
    const nori_model *model;
    entry *entries;
    size_t count, room, most;
    int code; /* of a sample that failed with a message of its own */
    char *open_path; /* the array kept open */
    nori_tensor *open_array;
};

/* ---- finding ---- */

static char *copy_of(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = malloc(n);
    if (copy) {
        memcpy(copy, text, n);
    }
    return copy;
}

static bool add(cli_samples *s, kind what, const char *path, size_t row)
{
    if (s->count == s->most) {
        return true;
    }
    if (s->count == s->room) {
        size_t room = s->room ? s->room * 2 : 64;
        entry *grown = realloc(s->entries, room * sizeof(*grown));
        if (!grown) {
            return false;
        }
        s->entries = grown;
        s->room = room;
    }
    char *copy = copy_of(path);
    if (!copy) {
        return false;
    }
    s->entries[s->count++] = (entry){what, copy, row};
    return true;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool is_sample(const char *name)
{
    return cli_is_picture(name) || ends_with(name, ".npy") || ends_with(name, ".pb") ||
           ends_with(name, ".pb.gz") || ends_with(name, ".raw");
}

/* In the order of names, so that a folder gives the same samples everywhere. */
static int add_folder(cli_samples *s, const char *path)
{
    struct dirent **names = NULL;
    int n = scandir(path, &names, NULL, alphasort);
    bool ok = n >= 0, sets = false;
    char full[4096];
    for (int pass = 0; ok && pass < 2; pass++) { /* folders of a set first; else single files */
        for (int i = 0; ok && i < n && (pass == 0 || !sets); i++) {
            const char *name = names[i]->d_name;
            bool set = strncmp(name, "test_data_set_", 14) == 0;
            snprintf(full, sizeof(full), "%s/%s", path, name);
            if (pass == 0 && set) {
                sets = true;
                ok = add(s, TEST_SET, full, 0);
            } else if (pass == 1 && strncmp(name, "output_", 7) != 0 && is_sample(name)) {
                bool member = strncmp(name, "input_", 6) == 0;
                if (member) { /* the folder is one set itself */
                    ok = add(s, TEST_SET, path, 0);
                    break;
                }
                ok = add(s, ONE_FILE, full, 0);
            }
        }
    }
    for (int i = 0; i < n; i++) {
        free(names[i]);
    }
    free(names);
    return ok ? EXIT_YES : cli_fail_text(s->args, NORI_ERROR_IO, "%s cannot be read", path);
}

/* An array of one rank more than a sample, or of the same rank with many along axis 0. */
static int add_array(cli_samples *s, const char *path)
{
    const nori_value_info *in = nori_model_input(s->model, 0);
    nori_error err = {0};
    nori_tensor *t = NULL;
    if (nori_tensor_read(NULL, path, &t, &err) != NORI_OK) {
        return cli_fail(s->args, &err);
    }
    int rank = nori_tensor_rank(t);
    const int64_t *dims = nori_tensor_dims(t);
    bool batched = rank == in->rank && rank > 0 && in->dims[0] <= 1; /* dynamic or 1 */
    bool stacked = rank == in->rank + 1 || (rank == in->rank - 1 && rank > 0);
    size_t rows = (batched || stacked) && rank > 0 ? (size_t)dims[0] : 1;
    bool ok = true;
    for (size_t i = 0; ok && i < rows && s->count < s->most; i++) {
        ok = add(s, rows > 1 ? ROW_OF_ARRAY : ONE_FILE, path, i);
    }
    nori_tensor_free(t);
    return ok ? EXIT_YES : cli_fail_text(s->args, NORI_ERROR_MEMORY, "out of memory");
}

int cli_samples_open(cli_args *args, const nori_model *model, cli_samples **samples)
{
    long most, random;
    picture_options pictures;
    *samples = NULL;
    if (!cli_picture_options(args, &pictures) || !cli_number(args, "--samples", 1, 100000000, 1000, &most) ||
        !cli_number(args, "--random", 0, 1000000, 0, &random)) {
        return EXIT_USAGE;
    }
    cli_samples *s = calloc(1, sizeof(*s));
    if (!s) {
        return cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
    }
    *s = (cli_samples){.args = args, .model = model, .most = (size_t)most};
    int code = EXIT_YES;
    for (int i = 0; code == EXIT_YES && cli_nth(args, "--data", i); i++) {
        const char *path = cli_nth(args, "--data", i);
        struct stat st;
        if (stat(path, &st) != 0) {
            code = cli_fail_text(args, NORI_ERROR_IO, "%s cannot be found", path);
        } else if (S_ISDIR(st.st_mode)) {
            code = add_folder(s, path);
        } else if (ends_with(path, ".npy")) {
            code = add_array(s, path);
        } else {
            code = add(s, ONE_FILE, path, 0)
                       ? EXIT_YES
                       : cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
        }
    }
    for (long i = 0; code == EXIT_YES && s->count == 0 && i < random; i++) {
        add(s, RANDOM, "", (size_t)i + 1);
        for (; i + 1 < random && s->count < s->most; i++) {
            add(s, RANDOM, "", (size_t)i + 2);
        }
    }
    if (code == EXIT_YES && s->count == 0) {
        code = cli_usage(args, "no samples: --data PATH names real inputs (a folder of pictures or "
                               "tensor files, an .npy), --random N makes some up");
    }
    if (code != EXIT_YES) {
        cli_samples_close(s);
        return code;
    }
    *samples = s;
    return EXIT_YES;
}

int cli_samples_code(const cli_samples *s)
{
    return s->code;
}

size_t cli_samples_count(const cli_samples *s)
{
    return s->count;
}

void cli_samples_close(cli_samples *s)
{
    for (size_t i = 0; s && i < s->count; i++) {
        free(s->entries[i].path);
    }
    if (s) {
        nori_tensor_free(s->open_array);
        free(s->open_path);
        free(s->entries);
        free(s);
    }
}

/* ---- reading ---- */

static int bad(nori_error *err, nori_status status, const char *path, const char *what)
{
    err->status = status;
    snprintf(err->message, sizeof(err->message), "%s: %s", path, what);
    return -1;
}

/* uint8 pictures for a float input are scaled to 0..1, as pictures from files are. */
static bool as_float(int rank, const int64_t *dims, const uint8_t *data, float unit,
                     nori_tensor **out, nori_error *err)
{
    if (nori_tensor_create(NULL, NORI_FLOAT, rank, dims, out, err) != NORI_OK) {
        return false;
    }
    float *to = nori_tensor_data(*out);
    for (int64_t i = 0; i < nori_tensor_elements(*out); i++) {
        to[i] = (float)data[i] * unit;
    }
    return true;
}

static int array_row(cli_samples *s, const entry *e, nori_tensor **out, nori_error *err)
{
    const nori_value_info *in = nori_model_input(s->model, 0);
    if (!s->open_path || strcmp(s->open_path, e->path) != 0) {
        nori_tensor_free(s->open_array);
        free(s->open_path);
        s->open_array = NULL;
        s->open_path = copy_of(e->path);
        if (!s->open_path) {
            return bad(err, NORI_ERROR_MEMORY, e->path, "out of memory");
        }
        if (nori_tensor_read(NULL, e->path, &s->open_array, err) != NORI_OK) {
            free(s->open_path);
            s->open_path = NULL;
            return -1;
        }
    }
    const nori_tensor *t = s->open_array;
    int64_t dims[NORI_MAX_RANK];
    int rank = in->rank, from = nori_tensor_rank(t);
    int lead = rank - (from - 1); /* axes of size 1 in front of a row's own */
    if (lead < 0) {
        return bad(err, NORI_ERROR_DATA, e->path, "its rows have more axes than the input");
    }
    for (int d = 0; d < rank; d++) {
        dims[d] = d < lead ? 1 : nori_tensor_dims(t)[d - lead + 1];
    }
    size_t row = nori_tensor_bytes(t) / (size_t)nori_tensor_dims(t)[0];
    const uint8_t *data = (const uint8_t *)nori_tensor_const_data(t) + row * e->row;
    if (nori_tensor_type(t) == NORI_UINT8 && in->type == NORI_FLOAT) {
        const char *range = cli_value(s->args, "--range");
        return as_float(rank, dims, data, range && strcmp(range, "255") == 0 ? 1.0f : 1 / 255.0f,
                        out, err)
                   ? 1
                   : -1;
    }
    if (nori_tensor_type(t) == NORI_STRING) { /* their bytes lie elsewhere: no memcpy */
        size_t count = row / sizeof(nori_string);
        const nori_string *strings = (const nori_string *)nori_tensor_const_data(t) + count * e->row;
        return nori_tensor_strings(NULL, rank, dims, strings, count, out, err) == NORI_OK ? 1 : -1;
    }
    if (nori_tensor_create(NULL, nori_tensor_type(t), rank, dims, out, err) != NORI_OK) {
        return -1;
    }
    memcpy(nori_tensor_data(*out), data, row);
    return 1;
}

static int test_set(cli_samples *s, const entry *e, nori_tensor **inputs, nori_error *err)
{
    char path[4096];
    for (size_t i = 0; i < nori_model_input_count(s->model); i++) {
        struct stat st;
        snprintf(path, sizeof(path), "%s/input_%zu.pb", e->path, i);
        if (stat(path, &st) != 0) {
            snprintf(path, sizeof(path), "%s/input_%zu.pb.gz", e->path, i);
        }
        if (stat(path, &st) != 0 && nori_model_input(s->model, i)->optional) {
            continue;
        }
        if (nori_tensor_read(NULL, path, &inputs[i], err) != NORI_OK) {
            return -1;
        }
    }
    return 1;
}

int cli_samples_get(void *user, size_t index, nori_tensor **inputs, nori_error *err)
{
    cli_samples *s = user;
    if (index >= s->count) {
        return 0;
    }
    const entry *e = &s->entries[index];
    size_t n = nori_model_input_count(s->model);
    int code = EXIT_YES;
    switch (e->kind) {
    case TEST_SET:
        return test_set(s, e, inputs, err);
    case ROW_OF_ARRAY:
        return array_row(s, e, &inputs[0], err);
    case ONE_FILE:
        code = cli_read_input(s->args, e->path, nori_model_input(s->model, 0), &inputs[0]);
        s->code = code;
        return code == EXIT_YES ? 1 : bad(err, NORI_ERROR_DATA, e->path, "is no sample");
    case RANDOM:
        for (size_t i = 0; i < n && code == EXIT_YES; i++) {
            const nori_value_info *info = nori_model_input(s->model, i);
            code = info->optional ? EXIT_YES
                                  : cli_random(s->args, info, e->row * 1000003u + i, &inputs[i]);
        }
        s->code = code;
        return code == EXIT_YES ? 1 : bad(err, NORI_ERROR_DATA, "random input", "cannot be made");
    }
    return 0;
}

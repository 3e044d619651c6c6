/* inputs.c: inputs from files, or random. */
#include "inputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct feeding {
    cli_args *args;
    const nori_session *session;
    nori_tensor **inputs;
    size_t count;
    size_t next; /* input that a file without a name is for */
} feeding;

/* splitmix64: small, seeded, the same everywhere. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static bool names_input(const char *spec, const nori_value_info *info)
{
    size_t n = strlen(info->name);
    return strncmp(spec, info->name, n) == 0 && spec[n] == '=';
}

/* The --shape of an input: "NAME=1,3,8" (a scalar: "NAME="), or "1,3,8" for all that have none of
 * their own. False: it is no shape. */
static bool shape_option(cli_args *args, const nori_value_info *info, int *rank, int64_t *dims)
{
    const char *spec, *found = NULL;
    bool named = false;
    for (int k = 0; (spec = cli_nth(args, "--shape", k)) != NULL && !named; k++) {
        named = names_input(spec, info);
        found = named || !strchr(spec, '=') ? spec : found;
    }
    if (!found) {
        return true;
    }
    const char *text = named ? found + strlen(info->name) + 1 : found;
    for (*rank = 0; *text; ++*rank) {
        char *end;
        errno = 0;
        long long v = strtoll(text, &end, 10);
        bool more = *end == ',' && end[1];
        if (end == text || (*end && !more) || v < 0 || errno || *rank == NORI_MAX_RANK) {
            cli_usage(args, "--shape %s: sizes were expected, as 1,3,224,224", found);
            return false;
        }
        dims[*rank] = v;
        text = more ? end + 1 : end;
    }
    return true;
}

/* Whether each --shape NAME=... names an input. */
static bool shapes_fit(const feeding *f)
{
    const char *spec;
    for (int k = 0; (spec = cli_nth(f->args, "--shape", k)) != NULL; k++) {
        bool any = !strchr(spec, '=');
        for (size_t i = 0; i < f->count && !any; i++) {
            any = names_input(spec, nori_session_input(f->session, i));
        }
        if (!any) {
            cli_usage(f->args, "--shape %s: the model has no such input; `nori inspect` lists them",
                      spec);
            return false;
        }
    }
    return true;
}

int cli_fail_input(const cli_args *args, const nori_value_info *info, int rank,
                   const int64_t *dims, nori_error *err)
{
    char shape[256];
    nori_value_info wanted = *info;
    wanted.rank = rank;
    wanted.dims = dims;
    cli_shape(&wanted, shape, sizeof(shape));
    if (err->status == NORI_ERROR_MEMORY) {
        snprintf(err->message, sizeof(err->message), "out of memory for input \"%s\" as %s",
                 info->name, shape);
        snprintf(err->hint, sizeof(err->hint), "give smaller sizes by --dim, --shape or a file");
    } else if (!err->where[0]) {
        snprintf(err->where, sizeof(err->where), "input \"%s\" as %s", info->name, shape);
    }
    return cli_fail(args, err);
}

int cli_random(cli_args *args, const nori_value_info *info, uint64_t seed, nori_tensor **tensor)
{
    int64_t dims[NORI_MAX_RANK];
    nori_error err = {0};
    int rank = info->rank;
    bool guessed = false;
    for (int d = 0; d < info->rank; d++) {
        dims[d] = info->dims[d] >= 0 ? info->dims[d] : 1;
        guessed |= info->dims[d] < 0;
    }
    if (!shape_option(args, info, &rank, dims)) {
        return EXIT_USAGE;
    }
    if (info->kind != NORI_KIND_TENSOR || rank < 0 || info->type == NORI_STRING) {
        return cli_usage(args, "input \"%s\" cannot be random: give it with --input %s=FILE",
                         info->name, info->name);
    }
    args->guessed |= guessed && !cli_has(args, "--shape");
    args->guessed_integers |= info->type == NORI_INT64 || info->type == NORI_INT32;
    if (nori_tensor_create(NULL, info->type, rank, dims, tensor, &err) != NORI_OK) {
        return cli_fail_input(args, info, rank, dims, &err);
    }
    int64_t n = nori_tensor_elements(*tensor);
    void *data = nori_tensor_data(*tensor);
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = next_random(&seed);
        double unit = (double)(r >> 11) * 0x1p-53; /* [0, 1) */
        switch (info->type) {
        case NORI_FLOAT:
            ((float *)data)[i] = (float)unit;
            break;
        case NORI_DOUBLE:
            ((double *)data)[i] = unit;
            break;
        case NORI_FLOAT16:
            ((uint16_t *)data)[i] = (uint16_t)(0x3800u + (r & 0x3ffu)); /* [0.5, 1) */
            break;
        case NORI_INT64:
        case NORI_UINT64:
            ((int64_t *)data)[i] = (int64_t)(r % 10);
            break;
        case NORI_BFLOAT16:
            ((uint16_t *)data)[i] = (uint16_t)(0x3f00u + (r & 0x7fu)); /* [0.5, 1) */
            break;
        case NORI_INT16:
        case NORI_UINT16:
            ((int16_t *)data)[i] = (int16_t)(r % 10);
            break;
        case NORI_INT32:
        case NORI_UINT32:
            ((int32_t *)data)[i] = (int32_t)(r % 10);
            break;
        case NORI_BOOL:
            ((uint8_t *)data)[i] = (uint8_t)(r & 1);
            break;
        case NORI_UINT8:
        case NORI_INT8:
            ((uint8_t *)data)[i] = (uint8_t)(r & 127);
            break;
        default:
            break; /* others stay zero */
        }
    }
    return EXIT_YES;
}

/* ---- files ---- */

static void *read_whole(const char *path, size_t *size, nori_error *err)
{
    FILE *f = cli_open(path, false, err);
    char *data = NULL;
    *size = 0;
    if (!f) {
        return NULL;
    }
    if (fseek(f, 0, SEEK_END) == 0) {
        long n = ftell(f);
        if (n >= 0 && fseek(f, 0, SEEK_SET) == 0 && (data = malloc((size_t)n + 1)) != NULL) {
            *size = fread(data, 1, (size_t)n, f);
        }
    }
    fclose(f);
    if (!data) {
        snprintf(err->message, sizeof(err->message), "%s cannot be read", path);
    }
    return data;
}

static int read_raw(cli_args *args, const char *path, const nori_value_info *info,
                    nori_tensor **tensor)
{
    int code = cli_random(args, info, 1, tensor); /* type and shape; the bytes are replaced */
    if (code != EXIT_YES) {
        return code;
    }
    nori_error err = {0};
    char shape[256];
    size_t size, need = nori_tensor_bytes(*tensor);
    void *data = read_whole(path, &size, &err);
    if (!data) {
        return cli_fail(args, &err);
    }
    if (size != need) {
        free(data);
        cli_tensor_shape(*tensor, shape, sizeof(shape));
        return cli_fail_text(args, NORI_ERROR_DATA,
                             "%s has %zu bytes, input \"%s\" as %s needs %zu", path, size,
                             info->name, shape, need);
    }
    if (need > 0) {
        memcpy(nori_tensor_data(*tensor), data, size);
    }
    free(data);
    return EXIT_YES;
}

int cli_fit_scalar(const cli_args *args, const nori_value_info *info, nori_tensor **tensor)
{
    nori_tensor *from = *tensor, *scalar = NULL;
    nori_error err = {0};
    if (info->kind != NORI_KIND_TENSOR || info->rank != 0 ||
        nori_tensor_kind(from) != NORI_KIND_TENSOR || nori_tensor_rank(from) == 0 ||
        nori_tensor_elements(from) != 1) {
        return EXIT_YES;
    }
    nori_status s = nori_tensor_type(from) == NORI_STRING
                        ? nori_tensor_strings(NULL, 0, NULL, nori_tensor_const_data(from), 1,
                                              &scalar, &err)
                        : nori_tensor_create(NULL, nori_tensor_type(from), 0, NULL, &scalar, &err);
    if (s != NORI_OK) {
        return cli_fail(args, &err);
    }
    if (nori_tensor_type(from) != NORI_STRING) {
        memcpy(nori_tensor_data(scalar), nori_tensor_const_data(from), nori_tensor_bytes(from));
    }
    cli_warn(args, "input \"%s\" is a scalar: its one element was taken out of a tensor of rank %d",
             info->name, nori_tensor_rank(from));
    nori_tensor_free(from);
    *tensor = scalar;
    return EXIT_YES;
}

/* Test data are often kept as .pb.gz: whoever names the .pb means that. */
static void hint_packed(const char *path, nori_error *err)
{
    char packed[4096];
    int n = snprintf(packed, sizeof(packed), "%s.gz", path);
    if (err->status == NORI_ERROR_IO && n > 0 && (size_t)n < sizeof(packed) &&
        access(path, F_OK) != 0 && access(packed, R_OK) == 0) {
        snprintf(err->hint, sizeof(err->hint), "there is %.300s: give that", packed);
    }
}

int cli_read_input(cli_args *args, const char *path, const nori_value_info *info,
                   nori_tensor **tensor)
{
    nori_error err = {0};
    if (cli_is_picture(path)) {
        return cli_picture(args, path, info, tensor);
    }
    if (cli_ends_with(path, ".raw") || cli_ends_with(path, ".bin")) {
        return read_raw(args, path, info, tensor);
    }
    if (nori_value_read(args->env, path, info->kind, tensor, &err) != NORI_OK) {
        bool known = cli_ends_with(path, ".npy") || cli_ends_with(path, ".pb") ||
                     cli_ends_with(path, ".pb.gz");
        if (!known && err.status != NORI_ERROR_IO) {
            snprintf(err.hint, sizeof(err.hint), "it was read as a TensorProto; other inputs are told "
                     "by their endings: .npy, .npz, .raw, .png, .jpg");
        }
        hint_packed(path, &err);
        return cli_fail(args, &err);
    }
    return cli_fit_scalar(args, info, tensor);
}

/* ---- which file for which input ---- */

/* count when there is none of that name. */
static size_t find_input(const feeding *f, const char *name, size_t n)
{
    for (size_t i = 0; i < f->count; i++) {
        const char *have = nori_session_input(f->session, i)->name;
        if (strlen(have) == n && strncmp(have, name, n) == 0) {
            return i;
        }
    }
    return f->count;
}

/* Whether an array may be fed, by its header: a few kilobytes may unfold to a thousand times as many. One
 * element does for a scalar, too (cli_fit_scalar). */
static bool fits(const feeding *f, size_t at, const nori_value_info *array, nori_error *err)
{
    nori_value_info as = *array;
    const nori_value_info *want = nori_session_input(f->session, at);
    int64_t elements = 1;
    for (int d = 0; d < as.rank && elements == 1; d++) {
        elements = as.dims[d];
    }
    as.rank = want->rank == 0 && elements == 1 ? 0 : as.rank;
    return nori_session_input_fits(f->session, at, &as, err) == NORI_OK;
}

/* The same of an .npy file; true where it cannot be read by rows, or at all: reading it says more. */
static bool array_fits(const feeding *f, size_t at, const char *path, nori_error *err)
{
    nori_error no = {0};
    nori_tensor *none = NULL;
    int64_t rows, dims[NORI_MAX_RANK];
    if (!cli_ends_with(path, ".npy") ||
        nori_tensor_read_rows(f->args->env, path, 0, 0, &none, &rows, &no) != NORI_OK) {
        return true;
    }
    nori_value_info array = {.kind = NORI_KIND_TENSOR, .type = nori_tensor_type(none),
                             .rank = nori_tensor_rank(none), .dims = dims};
    memcpy(dims, nori_tensor_dims(none), (size_t)array.rank * sizeof(*dims));
    dims[0] = rows;
    nori_tensor_free(none);
    return fits(f, at, &array, err);
}

static int set_input(feeding *f, size_t at, const nori_archive *archive, size_t index)
{
    nori_error err = {0};
    nori_tensor_free(f->inputs[at]);
    f->inputs[at] = NULL;
    if (!fits(f, at, nori_archive_info(archive, index), &err)) {
        return cli_fail(f->args, &err);
    }
    if (nori_archive_load(archive, index, &f->inputs[at], &err) != NORI_OK) {
        return cli_fail(f->args, &err);
    }
    return cli_fit_scalar(f->args, nori_session_input(f->session, at), &f->inputs[at]);
}

/* The array of an archive that is for an input: the one of its name, or the only one. */
static int take_array(feeding *f, const nori_archive *archive, size_t at, const char *path)
{
    const char *name = nori_session_input(f->session, at)->name;
    for (size_t i = 0; i < nori_archive_count(archive); i++) {
        if (nori_archive_count(archive) == 1 || strcmp(nori_archive_name(archive, i), name) == 0) {
            return set_input(f, at, archive, i);
        }
    }
    return cli_fail_text(f->args, NORI_ERROR_DATA, "%s has no array \"%s\"", path, name);
}

/* Arrays are for the inputs of their names; those that numpy named arr_N, for the Nth input. */
static int take_arrays(feeding *f, const nori_archive *archive, const char *path)
{
    int code = EXIT_YES;
    for (size_t i = 0; code == EXIT_YES && i < nori_archive_count(archive); i++) {
        const char *name = nori_archive_name(archive, i);
        size_t at = find_input(f, name, strlen(name));
        char *end = NULL;
        if (at == f->count && strncmp(name, "arr_", 4) == 0) {
            unsigned long n = strtoul(name + 4, &end, 10);
            at = *end == 0 && n < f->count ? (size_t)n : at;
        }
        if (at == f->count) {
            return cli_fail_text(f->args, NORI_ERROR_DATA,
                                 "%s has an array \"%s\", but the model has no such input; `nori "
                                 "inspect` lists them",
                                 path, name);
        }
        code = set_input(f, at, archive, i);
    }
    return code;
}

static int take_archive(feeding *f, const char *path, size_t at, bool named)
{
    nori_archive *archive = NULL;
    nori_error err = {0};
    if (nori_archive_open(f->args->env, path, &archive, &err) != NORI_OK) {
        return cli_fail(f->args, &err);
    }
    int code = named ? take_array(f, archive, at, path) : take_arrays(f, archive, path);
    nori_archive_free(archive);
    return code;
}

/* "NAME=FILE" or "FILE"; names and files may have an equals sign in them. */
static int take_file(feeding *f, const char *spec, bool may_name)
{
    const char *path = spec;
    size_t at = f->count;
    nori_error err = {0};
    const char *equals = may_name ? strchr(spec, '=') : NULL;
    for (; equals && at == f->count; equals = strchr(equals + 1, '=')) {
        at = find_input(f, spec, (size_t)(equals - spec));
        path = at < f->count ? equals + 1 : spec;
    }
    bool named = at < f->count;
    if (!named && may_name && (equals = strchr(spec, '=')) != NULL && access(spec, R_OK) != 0) {
        return cli_usage(f->args, "the model has no input \"%.*s\"; `nori inspect` lists them",
                         (int)(equals - spec), spec);
    }
    if (cli_ends_with(path, ".npz")) {
        return take_archive(f, path, at, named);
    }
    at = named ? at : f->next++;
    if (at >= f->count) {
        return cli_usage(f->args, "more inputs were given than the model's %zu", f->count);
    }
    nori_tensor_free(f->inputs[at]);
    f->inputs[at] = NULL;
    if (!array_fits(f, at, path, &err)) {
        return cli_fail(f->args, &err);
    }
    return cli_read_input(f->args, path, nori_session_input(f->session, at), &f->inputs[at]);
}

/* What `run` prints looks the same for made-up numbers: says which inputs got some. Verbs that measure
 * want them. */
static void tell_random(const cli_args *args, const nori_session *session, const bool *random,
                        size_t count, long seed)
{
    size_t n = 0;
    if (args->quiet || strcmp(args->verb->name, "run") != 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (random[i]) {
            fprintf(stderr, "%s%s", n++ ? ", " : "nori: no file given, random values for input ",
                    nori_session_input(session, i)->name);
        }
    }
    if (n > 0) {
        fprintf(stderr, " (seed %ld)\n", seed);
    }
}

int cli_inputs(cli_args *args, const nori_session *session, const char *const *files, int n_files,
               nori_tensor **inputs)
{
    feeding f = {.args = args, .session = session, .inputs = inputs,
                 .count = nori_session_input_count(session)};
    const char *spec;
    long seed;
    int code = EXIT_YES;
    picture_options pictures;
    if (!cli_number(args, "--seed", 0, 1000000000, 1, &seed) ||
        !cli_picture_options(args, &pictures) || !shapes_fit(&f)) {
        return EXIT_USAGE;
    }
    for (int k = 0; code == EXIT_YES && k < n_files; k++) {
        code = take_file(&f, files[k], false);
    }
    for (int k = 0; code == EXIT_YES && (spec = cli_nth(args, "--input", k)) != NULL; k++) {
        code = take_file(&f, spec, true);
    }
    bool *random = calloc(f.count + 1, sizeof(*random));
    for (size_t i = 0; code == EXIT_YES && i < f.count; i++) {
        const nori_value_info *info = nori_session_input(session, i);
        if (!inputs[i] && !info->optional) {
            code = cli_random(args, info, (uint64_t)seed * 1000003u + i, &inputs[i]);
            if (random) {
                random[i] = true;
            }
        }
    }
    if (code == EXIT_YES && random) {
        tell_random(args, session, random, f.count, seed);
    }
    free(random);
    return code;
}

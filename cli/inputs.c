/* inputs.c: inputs from files, or random. */
#include "inputs.h"

#include <stdlib.h>
#include <string.h>

/* splitmix64: small, seeded, the same everywhere. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int cli_random(const cli_args *args, const nori_value_info *info, uint64_t seed,
               nori_tensor **tensor)
{
    int64_t dims[NORI_MAX_RANK];
    nori_error err = {0};
    for (int d = 0; d < info->rank; d++) {
        dims[d] = info->dims[d] >= 0 ? info->dims[d] : 1;
    }
    if (info->kind != NORI_KIND_TENSOR || info->rank < 0 || info->type == NORI_STRING) {
        return cli_usage(args, "input \"%s\" cannot be random: give it with --input %s=FILE",
                         info->name, info->name);
    }
    if (nori_tensor_create(NULL, info->type, info->rank, dims, tensor, &err) != NORI_OK) {
        return cli_fail(args, &err);
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

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static void *read_whole(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
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
    return data;
}

static int read_raw(const cli_args *args, const char *path, const nori_value_info *info,
                    nori_tensor **tensor)
{
    nori_error err = {0};
    int code = cli_random(args, info, 1, tensor);
    if (code != EXIT_YES) {
        return code;
    }
    size_t size;
    void *data = read_whole(path, &size);
    if (!data || size != nori_tensor_bytes(*tensor)) {
        err.status = data ? NORI_ERROR_DATA : NORI_ERROR_IO;
        snprintf(err.message, sizeof(err.message),
                 data ? "%s has %zu bytes, input \"%s\" needs %zu" : "%s cannot be read", path, size,
                 info->name, nori_tensor_bytes(*tensor));
        free(data);
        return cli_fail(args, &err);
    }
    memcpy(nori_tensor_data(*tensor), data, size);
    free(data);
    return EXIT_YES;
}

static int read_input(const cli_args *args, const char *path, const nori_value_info *info,
                      nori_tensor **tensor)
{
    nori_error err = {0};
    if (cli_is_picture(path)) {
        return cli_picture(args, path, info, tensor);
    }
    if (ends_with(path, ".raw") || ends_with(path, ".bin")) {
        return read_raw(args, path, info, tensor);
    }
    return nori_tensor_read(NULL, path, tensor, &err) == NORI_OK ? EXIT_YES : cli_fail(args, &err);
}

static int find_input(const nori_session *s, const char *name, size_t n)
{
    for (size_t i = 0; i < nori_session_input_count(s); i++) {
        const char *have = nori_session_input(s, i)->name;
        if (strlen(have) == n && strncmp(have, name, n) == 0) {
            return (int)i;
        }
    }
    return -1;
}

int cli_inputs(const cli_args *args, const nori_session *session, const char *const *files,
               int n_files, nori_tensor **inputs)
{
    size_t count = nori_session_input_count(session);
    long seed;
    if (!cli_number(args, "--seed", 0, 1000000000, 1, &seed)) {
        return EXIT_USAGE;
    }
    const char *given;
    int next = 0;
    for (int k = 0; k < n_files || (given = cli_nth(args, "--input", k - n_files)) != NULL; k++) {
        const char *spec = k < n_files ? files[k] : cli_nth(args, "--input", k - n_files);
        const char *equals = k < n_files ? NULL : strchr(spec, '=');
        int at = equals ? find_input(session, spec, (size_t)(equals - spec)) : next++;
        if (at < 0) {
            return cli_usage(args, "the model has no input \"%.*s\"; `nori inspect` lists them",
                             (int)(equals - spec), spec);
        }
        if ((size_t)at >= count) {
            return cli_usage(args, "more inputs were given than the model's %zu", count);
        }
        nori_tensor_free(inputs[at]);
        inputs[at] = NULL;
        int code = read_input(args, equals ? equals + 1 : spec, nori_session_input(session, (size_t)at),
                              &inputs[at]);
        if (code != EXIT_YES) {
            return code;
        }
    }
    for (size_t i = 0; i < count; i++) {
        const nori_value_info *info = nori_session_input(session, i);
        if (!inputs[i] && !info->optional) {
            int code = cli_random(args, info, (uint64_t)seed * 1000003u + i, &inputs[i]);
            if (code != EXIT_YES) {
                return code;
            }
        }
    }
    return EXIT_YES;
}

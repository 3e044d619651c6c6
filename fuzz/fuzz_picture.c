/* fuzz_picture.c: pictures as inputs, by the command's own code. */
#include "fuzz.h"

#include "inputs.h"

/* What the command's files ask of its table. */
static const cli_option options[] = {CLI_INPUT_OPTIONS, CLI_END};
static const cli_verb verb = {
    .name = "fuzz", .group = "", .arguments = "", .summary = "", .options = options};
const cli_verb *const cli_verbs[] = {&verb, NULL};

/* Of inputs.c, which would bring most of the command along. */
int cli_fail_input(const cli_args *args, const nori_value_info *info, int rank, const int64_t *dims,
                   nori_error *err)
{
    (void)info;
    (void)rank;
    (void)dims;
    return cli_fail(args, err);
}

void fuzz_picture(const uint8_t *data, size_t size)
{
    fuzz_file file;
    nori_tensor *t = NULL;
    const int64_t dims[4] = {1, 3, 8, 8};
    const char *const names[4] = {NULL, NULL, NULL, NULL};
    const nori_value_info info = {.name = "x", .kind = NORI_KIND_TENSOR, .type = NORI_FLOAT, .rank = 4,
                                  .dims = dims, .dim_names = names};
    cli_args args = {.verb = &verb, .quiet = true, .env = fuzz_env()};
    const char *path = fuzz_file_open(&file, data, size);
    if (!path) {
        return;
    }
    fuzz_silent();
    int code = cli_picture(&args, path, &info, &t);
    fuzz_aloud();
    if (code == EXIT_YES) {
        FUZZ_HOLDS(nori_tensor_bytes(t) == sizeof(float) * 192);
    }
    nori_tensor_free(t);
    fuzz_file_close(&file);
}

/* fuzz_profile.c: what `nori profile` wrote, read by the command's own code. */
#include "fuzz.h"

#include "cli.h"
#include "profile.h"

void fuzz_profile(const uint8_t *data, size_t size)
{
    static const cli_verb verb = {
        .name = "fuzz", .group = "", .arguments = "", .summary = "", .options = NULL};
    fuzz_file file;
    profile p = {0};
    nori_times times;
    cli_args args = {.verb = &verb, .quiet = true, .env = fuzz_env()};
    const char *path = fuzz_file_open(&file, data, size);
    if (!path) {
        return;
    }
    fuzz_silent();
    int code = profile_read(&args, path, &p);
    fuzz_aloud();
    if (code == EXIT_YES) {
        profile_as_times(&p.steady, &times);
        profile_free(&p);
    }
    fuzz_file_close(&file);
}

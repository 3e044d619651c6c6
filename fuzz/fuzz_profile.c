/* fuzz_profile.c: what `nori profile` wrote, read by the command's own code. */
#include "fuzz.h"

#include "cli.h"
#include "profile.h"

void fuzz_profile(const uint8_t *data, size_t size)
{
    static const cli_verb verb = {
        .name = "fuzz", .group = "", .arguments = "", .summary = "", .options = NULL};
    static FILE *nowhere; /* errors of the command go to standard error */
    fuzz_file file;
    profile p = {0};
    nori_times times;
    cli_args args = {.verb = &verb, .quiet = true, .env = fuzz_env()};
    const char *path = fuzz_file_open(&file, data, size);
    if (!nowhere) {
        nowhere = fopen("/dev/null", "w");
    }
    if (!path) {
        return;
    }
    /* The stream alone, and only meanwhile: reports of sanitizers and the fuzzer's own go to file 2. */
    FILE *before = stderr;
    stderr = nowhere ? nowhere : before;
    int code = profile_read(&args, path, &p);
    stderr = before;
    if (code == EXIT_YES) {
        profile_as_times(&p.steady, &times);
        profile_free(&p);
    }
    fuzz_file_close(&file);
}

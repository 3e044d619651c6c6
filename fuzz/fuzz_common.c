/* fuzz_common.c: what targets share. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

fuzz_counts fuzz_count;

nori_env *fuzz_env(void)
{
    static nori_env *env;
    nori_env_options o;
    nori_limits limits;
    if (!env) {
        nori_env_options_default(&o);
        o.threads = 1;
        nori_limits_default(&limits);
        limits.nodes = 20000;
        limits.unfolded_bytes = 1 << 24;
        limits.string_bytes = 1 << 20;
        limits.activation_bytes = 1 << 26;
        limits.iterations = 500;
        limits.run_ms = 2000;
        FUZZ_HOLDS(nori_env_create(&o, &env, NULL) == NORI_OK);
        FUZZ_HOLDS(nori_env_set_limits(env, &limits, NULL) == NORI_OK);
    }
    return env;
}

const char *fuzz_file_open(fuzz_file *file, const uint8_t *data, size_t size)
{
    file->fd = memfd_create("nori-fuzz", MFD_CLOEXEC);
    for (size_t done = 0; file->fd >= 0 && done < size;) {
        ssize_t n = write(file->fd, data + done, size - done);
        if (n <= 0) {
            close(file->fd);
            return NULL;
        }
        done += (size_t)n;
    }
    snprintf(file->path, sizeof(file->path), "/proc/self/fd/%d", file->fd);
    return file->fd >= 0 ? file->path : NULL;
}

void fuzz_file_close(fuzz_file *file)
{
    close(file->fd);
}

void fuzz_broken(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: this must hold: %s\n", file, line, what);
    abort();
}

void fuzz_error_holds(nori_status status, const nori_error *err)
{
    FUZZ_HOLDS(status == err->status);
    FUZZ_HOLDS(memchr(err->message, 0, sizeof(err->message)) != NULL);
    FUZZ_HOLDS(memchr(err->where, 0, sizeof(err->where)) != NULL);
    FUZZ_HOLDS(status == NORI_OK || err->message[0] != 0);
    FUZZ_HOLDS(status != NORI_ERROR_INTERNAL);
}

static FILE *loud;

void fuzz_silent(void)
{
    static FILE *nowhere;
    if (!nowhere) {
        nowhere = fopen("/dev/null", "w");
    }
    loud = stderr;
    stderr = nowhere ? nowhere : loud;
}

void fuzz_aloud(void)
{
    stderr = loud;
}

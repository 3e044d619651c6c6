/* serve_options.c: what `nori serve` is told. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "nori/place.h"
#include "serve_job.h"

static bool seconds(const cli_args *args, const char *name, double *out)
{
    nori_error err = {0};
    const char *text = cli_value(args, name);
    if (!text || nori_quantity_parse(text, NORI_QUANTITY_TIME, out, &err) == NORI_OK) {
        return true;
    }
    cli_usage(args, "%s %s%s%s", name, err.message, err.hint[0] ? ": " : "", err.hint);
    return false;
}

static bool number(const cli_args *args, const char *name, long low, long high, int *out)
{
    long value = *out;
    bool fine = cli_number(args, name, low, high, *out, &value);
    *out = (int)value;
    return fine;
}

static bool size(const cli_args *args, const char *name, size_t low, size_t *out)
{
    uint64_t value = 0;
    if (!cli_has(args, name)) {
        return true;
    }
    if (!cli_size(args, name, &value)) {
        return false;
    }
    if (value < low || value > SIZE_MAX / 4) {
        cli_usage(args, "%s %s: at least %zu bytes were expected", name, cli_value(args, name), low);
        return false;
    }
    *out = (size_t)value;
    return true;
}

#define LARGEST_SECRET 1048576

/* A file's text, to be freed; NULL: a message was given. */
static char *read_text(const cli_args *args, const char *path, int *code)
{
    nori_error err = {0};
    FILE *f = cli_open(path, true, &err);
    char *text = f ? malloc(LARGEST_SECRET + 1) : NULL;
    if (!text) {
        *code = f ? cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory") : cli_fail(args, &err);
    } else {
        size_t n = fread(text, 1, LARGEST_SECRET + 1, f);
        if (ferror(f) || n > LARGEST_SECRET || n == 0 || memchr(text, 0, n)) {
            *code = cli_fail_text(args, NORI_ERROR_DATA, "%s is not a text of 1 byte to 1 MiB", path);
            free(text);
            text = NULL;
        } else {
            text[n] = 0;
        }
    }
    if (f) {
        fclose(f);
    }
    return text;
}

/* The first line, which is the token: what stands in a header must be printable. */
static int read_token(serve_job *j)
{
    int code = EXIT_YES;
    const char *path = cli_value(j->args, "--token-file");
    j->token = path ? read_text(j->args, path, &code) : NULL;
    if (!j->token) {
        return code;
    }
    j->token[strcspn(j->token, "\r\n")] = 0;
    for (const char *p = j->token; *p; p++) {
        if ((unsigned char)*p <= ' ' || (unsigned char)*p > '~') {
            return cli_fail_text(j->args, NORI_ERROR_DATA, "%s: a token of printable ASCII without spaces "
                                 "was expected", path);
        }
    }
    if (strlen(j->token) < 8) {
        return cli_fail_text(j->args, NORI_ERROR_DATA, "%s: a token of at least 8 characters was expected",
                             path);
    }
    j->options.token = j->token;
    return EXIT_YES;
}

static int read_tls(serve_job *j)
{
    int code = EXIT_YES;
    const char *certificate = cli_value(j->args, "--cert"), *key = cli_value(j->args, "--key");
    if (!certificate != !key) {
        return cli_usage(j->args, "TLS needs both --cert FILE and --key FILE");
    }
    if (certificate) {
        j->certificate = read_text(j->args, certificate, &code);
        j->key = j->certificate ? read_text(j->args, key, &code) : NULL;
    }
    j->options.certificate = j->certificate;
    j->options.key = j->key;
    return code;
}

static int read_models(serve_job *j)
{
    for (int i = 0; i < j->args->count; i++) {
        const char *word = j->args->positional[i];
        struct stat info;
        if (stat(word, &info) == 0 && S_ISDIR(info.st_mode)) {
            if (j->options.repository) {
                return cli_usage(j->args, "one folder was expected, %s is the second", word);
            }
            j->options.repository = word;
            continue;
        }
        const char *equals = strchr(word, '=');
        const char *path = equals && !memchr(word, '/', (size_t)(equals - word)) ? equals + 1 : word;
        if (stat(path, &info) != 0) {
            return cli_fail_text(j->args, NORI_ERROR_IO, "%s: %s", path, strerror(errno));
        }
        if (S_ISDIR(info.st_mode)) {
            return cli_usage(j->args, "%s is a folder: folders of models have no name", path);
        }
        j->models[j->options.model_count++] = word;
    }
    j->options.models = j->models;
    if (j->args->count == 0) {
        return cli_usage(j->args, "a model file or a folder of models was expected");
    }
    if (!j->options.repository && (cli_has(j->args, "--explicit") || cli_has(j->args, "--versions"))) {
        return cli_usage(j->args, "--explicit and --versions are about a folder of models");
    }
    return EXIT_YES;
}

int serve_read_options(serve_job *j)
{
    nori_serve_options *o = &j->options;
    const cli_args *args = j->args;
    j->drain = 20;
    o->address = cli_has(args, "--address") ? cli_value(args, "--address") : o->address;
    o->insecure = cli_has(args, "--insecure");
    o->explicit_load = cli_has(args, "--explicit");
    if (!number(args, "--port", 0, 65535, &o->port) || !number(args, "--versions", 1, 1000, &o->versions) ||
        !number(args, "--workers", 1, 1024, &o->workers) || !number(args, "--batch", 1, 65536, &o->batch) ||
        !number(args, "--queue", 1, 1000000, &o->queue) ||
        !number(args, "--connections", 1, 1000000, &o->connections) ||
        !number(args, "--http-threads", 1, 256, &o->http_threads) ||
        !size(args, "--max-header", 2048, &o->header_bytes) ||
        !size(args, "--max-body", 1, &o->body_bytes) || !size(args, "--max-json", 1, &o->json_bytes) ||
        !size(args, "--max-held", 1, &o->memory_bytes) || !seconds(args, "--batch-delay", &o->batch_delay) ||
        !seconds(args, "--timeout", &o->timeout) ||
        !seconds(args, "--receive-timeout", &o->receive_timeout) ||
        !seconds(args, "--idle-timeout", &o->idle_timeout) || !seconds(args, "--notice", &j->notice) ||
        !seconds(args, "--drain", &j->drain)) {
        return EXIT_USAGE;
    }
    if (o->batch_delay > 0 && o->batch == 1) {
        return cli_usage(args, "--batch-delay is how long a request waits for others of its --batch");
    }
    int code = read_models(j);
    code = code == EXIT_YES ? read_token(j) : code;
    code = code == EXIT_YES ? read_tls(j) : code;
    if (code == EXIT_YES && !cli_session_options(args, &j->session)) {
        code = EXIT_USAGE;
    }
    o->session = &j->session;
    return code;
}

/* key_file.c: keys as files: one line, a word that says which kind it is, and hexadecimal digits. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "key_file.h"

static const struct {
    const char *word, *what;
    size_t size;
} kinds[] = {
    {"nori-public-key", "public key", NORI_PUBLIC_KEY_BYTES},
    {"nori-secret-key", "secret key", NORI_SECRET_KEY_BYTES},
    {"nori-seal-key", "key of sealed models", NORI_SEAL_KEY_BYTES},
};

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int cli_key_read(const char *path, cli_key kind, unsigned char *key, nori_error *err)
{
    char line[256] = "";
    FILE *f = cli_open(path, true, err);
    if (!f) {
        return -1;
    }
    *err = (nori_error){0};
    size_t n = fread(line, 1, sizeof(line) - 1, f), word = strlen(kinds[kind].word);
    fclose(f);
    line[n] = 0;
    line[strcspn(line, "\r\n")] = 0;
    bool ok = strncmp(line, kinds[kind].word, word) == 0 && line[word] == ' ' &&
              strlen(line) == word + 1 + 2 * kinds[kind].size;
    for (size_t i = 0; ok && i < kinds[kind].size; i++) {
        int high = digit(line[word + 1 + 2 * i]), low = digit(line[word + 2 + 2 * i]);
        ok = high >= 0 && low >= 0;
        key[i] = ok ? (unsigned char)(high * 16 + low) : 0;
    }
    memset(line, 0, sizeof(line));
    if (!ok) {
        err->status = NORI_ERROR_DATA;
        snprintf(err->message, sizeof(err->message), "%s is no %s of nori's", path, kinds[kind].what);
    }
    return ok ? 0 : -1;
}

nori_status cli_key_write(const char *path, cli_key kind, const unsigned char *key, nori_error *err)
{
    char line[256];
    struct stat info;
    size_t n = (size_t)snprintf(line, sizeof(line), "%s ", kinds[kind].word);
    if (lstat(path, &info) == 0) { /* a key that is lost opens nothing any more */
        err->status = NORI_ERROR_IO;
        snprintf(err->message, sizeof(err->message), "%s is there already: keys are not written over",
                 path);
        return err->status;
    }
    for (size_t i = 0; i < kinds[kind].size; i++) {
        n += (size_t)snprintf(line + n, sizeof(line) - n, "%02x", key[i]);
    }
    n += (size_t)snprintf(line + n, sizeof(line) - n, "\n");
    mode_t before = umask(kind == CLI_PUBLIC_KEY ? 0022 : 0077); /* others need not read it */
    nori_status s = nori_file_write(path, line, n, err);
    umask(before);
    memset(line, 0, sizeof(line));
    return s;
}

/* ---- sealed models ---- */

static int give_key(void *user, unsigned char *key, nori_error *err)
{
    return cli_key_read(user, CLI_SEAL_KEY, key, err);
}

nori_status cli_open_model(const cli_args *args, nori_env *env, const char *path,
                           const nori_load_options *o, nori_model **model, nori_error *err)
{
    const char *key = cli_value(args, "--seal-key");
    if (!key) {
        return nori_model_load(env, path, o, model, err);
    }
    return nori_model_load_sealed(env, path, give_key, (void *)(uintptr_t)key, o, model, err);
}

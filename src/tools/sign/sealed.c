/* sealed.c: models that only a key opens. A file is
 *     8 bytes   "noriseal"
 *     4         version of this form, 1, little-endian
 *     4         zero
 *     24        nonce, drawn for each file
 *     rest      the model, sealed by XChaCha20-Poly1305 with the first 16 bytes as associated data
 * It is opened in memory, in one piece: nothing of it is looked at before all of it was proven whole. */
#include <stdio.h>

#include "base/given.h"
#include "run/run.h"
#include "tools/sign/secrets.h"

#define MAGIC "noriseal"
enum { HEAD = 16, VERSION = 1, NONCE_MOST = 32 };

static void make_head(unsigned char head[HEAD])
{
    memset(head, 0, HEAD);
    memcpy(head, MAGIC, 8);
    head[8] = VERSION;
}

int nori_model_is_sealed(const char *path)
{
    char head[8] = {0};
    FILE *f = path ? fopen(path, "rb") : NULL;
    size_t n = f ? fread(head, 1, sizeof(head), f) : 0;
    if (f) {
        fclose(f);
    }
    return n == sizeof(head) && memcmp(head, MAGIC, sizeof(head)) == 0;
}

nori_status nori_seal_key(unsigned char key[NORI_SEAL_KEY_BYTES], nori_error *err)
{
    const nori__secrets *secrets;
    NORI__TRY(nori__secrets_get(&secrets, err));
    secrets->random(key, NORI_SEAL_KEY_BYTES);
    return NORI_OK;
}

static nori_status write_sealed(const nori__secrets *secrets, const nori__map_file *plain,
                                const unsigned char *key, nori__text *out, const char *path,
                                nori_error *err)
{
    size_t front = HEAD + secrets->nonce_bytes, size;
    nori__out_file *file = NULL;
    if (!nori__add_size(plain->size, front + secrets->seal_extra, &size) ||
        !nori__text_reserve(out, size)) {
        return nori__no_memory(err);
    }
    unsigned char *p = (unsigned char *)out->data;
    make_head(p);
    secrets->random(p + HEAD, secrets->nonce_bytes);
    if (!secrets->seal(plain->data, plain->size, p, HEAD, p + HEAD, key, p + front)) {
        return nori__fail(err, NORI_ERROR_LIMIT, "the model is too large to be sealed");
    }
    NORI__TRY(nori__out_open(out->allocator, path, &file, err));
    nori_status s = nori__out_write(file, p, size, err);
    if (s != NORI_OK) {
        nori__out_abort(file);
        return s;
    }
    return nori__out_commit(file, err);
}

nori_status nori_model_seal(nori_env *env, const char *path,
                            const unsigned char key[NORI_SEAL_KEY_BYTES], const char *sealed_path,
                            nori_error *err)
{
    const nori__secrets *secrets;
    nori_model *model = NULL;
    nori__text out;
    NORI__TRY(nori__secrets_get(&secrets, err));
    NORI__TRY(nori_model_load(env, path, NULL, &model, err));
    const char *data = nori_model_external(model, 0);
    nori__text_init(&out, nori__env_allocator(env));
    nori_status s =
        data ? nori__fail(err, NORI_ERROR_UNSUPPORTED,
                          "the model has its weights in another file, %s, which would stay open to "
                          "all",
                          data)
             : write_sealed(secrets, &model->source->file, key, &out, sealed_path, err);
    if (data) {
        nori__hint(err, "write the model with its weights inside, then seal that");
    }
    nori__text_free(&out);
    nori_model_free(model);
    return s;
}

static nori_status open_sealed(const nori__secrets *secrets, const nori__map_file *file,
                               const char *path, nori_key_function ask, void *user, nori__text *out,
                               nori_error *err)
{
    unsigned char key[NORI_SEAL_KEY_BYTES] = {0}, head[HEAD];
    size_t front = HEAD + secrets->nonce_bytes;
    nori_error own = {0};
    make_head(head);
    if (file->size < 8 || memcmp(file->data, MAGIC, 8) != 0) {
        return nori__fail(err, NORI_ERROR_FORMAT, "%s is not a sealed model", path);
    }
    if (file->size < front + secrets->seal_extra || memcmp(file->data, head, HEAD) != 0) {
        return nori__fail(err, NORI_ERROR_FORMAT,
                          "%s: the sealed model is cut off, or of a newer form than this nori knows",
                          path);
    }
    size_t size = file->size - front - secrets->seal_extra;
    if (!nori__text_reserve(out, size)) {
        return nori__no_memory(err);
    }
    if (ask(user, key, &own) != 0) {
        secrets->wipe(key, sizeof(key));
        return nori__fail(err, own.status ? own.status : NORI_ERROR_DATA, "%s",
                          own.message[0] ? own.message : "there is no key for the sealed model");
    }
    int opened = secrets->open(file->data + front, file->size - front, head, HEAD, file->data + HEAD,
                               key, (unsigned char *)out->data);
    secrets->wipe(key, sizeof(key));
    if (!opened) {
        nori_status s = nori__fail(err, NORI_ERROR_DATA,
                                   "%s cannot be opened: this is not its key, or the file was changed",
                                   path);
        nori__hint(err, "nothing of the file was used");
        return s;
    }
    out->size = size;
    return NORI_OK;
}

nori_status nori_model_load_sealed(nori_env *env, const char *path, nori_key_function key, void *user,
                                   const nori_load_options *options, nori_model **model,
                                   nori_error *err)
{
    NORI__GIVEN(err, path);
    NORI__GIVEN(err, model);
    const nori__secrets *secrets;
    nori_load_options o;
    nori__map_file file;
    nori__text out;
    *model = NULL;
    if (!key) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "a function that gives the key was expected");
    }
    nori_load_options_default(&o);
    if (options) {
        memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
    }
    NORI__TRY(nori__secrets_get(&secrets, err));
    NORI__TRY(nori__map_open(path, &file, err));
    nori__text_init(&out, nori__env_allocator(env));
    nori_status s = open_sealed(secrets, &file, path, key, user, &out, err);
    nori__map_close(&file);
    s = s == NORI_OK ? nori__model_from_bytes(env, &out, NULL, &o, model, err) : s;
    if (s == NORI_OK) {
        (*model)->source->sealed = true;
    }
    if (out.data) { /* not taken by the model */
        secrets->wipe(out.data, out.capacity);
    }
    nori__text_free(&out);
    if (s != NORI_OK && err && !err->where[0]) {
        nori__where(err, "%s", path);
    }
    return s;
}

/* signature.c: who made a model, and that nothing changed since. What is signed is a text with the hash
 * (BLAKE2b, 32 bytes) of the model file and of each file of external data the model names, in the order
 * they come first:
 *     nori signature 1
 *     model <hash>
 *     data <hash> <location>
 * and the file holds that text and a last line "signed <Ed25519 signature>", numbers as hexadecimal digits.
 * To verify, the text is made anew from the files that are there: it is that text the signature must fit. */
#include <stdio.h>

#include "onnx/model_limits.h"
#include "run/run.h"
#include "tools/sign/secrets.h"

enum { HASH = 32, SIGNATURE = 64 };

static void add_hex(nori__text *t, const unsigned char *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        const char two[2] = {digits[bytes[i] >> 4], digits[bytes[i] & 15]};
        nori__text_add(t, two, 2);
    }
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(const char *text, size_t size, unsigned char *out, size_t n)
{
    if (size != 2 * n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* ---- the text of what is there ---- */

typedef struct manifest {
    const nori__secrets *secrets;
    nori__arena arena;
    nori__map seen; /* locations */
    nori__text text;
    const char *folder;
    nori_status status;
    nori_error *err;
} manifest;

static nori_status add_file(manifest *m, nori__str location)
{
    nori__map_file file;
    unsigned char hash[HASH];
    char *name = nori__arena_copy(&m->arena, location.p, location.n);
    char *path = nori__arena_printf(&m->arena, "%s/%.*s", m->folder, (int)location.n, location.p);
    if (!name || !path || location.n > INT32_MAX) {
        return nori__no_memory(m->err);
    }
    if (nori__map_get(&m->seen, name)) {
        return NORI_OK;
    }
    if (memchr(location.p, '\n', location.n)) {
        return nori__fail(m->err, NORI_ERROR_UNSUPPORTED,
                          "the name of a file of external data holds a line break");
    }
    NORI__TRY(nori__map_open(path, &file, m->err));
    m->secrets->hash(file.data, file.size, hash);
    nori__map_close(&file);
    nori__text_add(&m->text, "data ", 5);
    add_hex(&m->text, hash, HASH);
    nori__text_printf(&m->text, " %s\n", name);
    return nori__map_put(&m->seen, name, name) ? NORI_OK : nori__no_memory(m->err);
}

static void see_tensor(void *user, const nori__pb_tensor *t)
{
    manifest *m = user;
    for (size_t i = 0; m->status == NORI_OK && t->data_location == 1 && i < t->external.count; i++) {
        if (nori__str_is(t->external.items[i].key, "location") && t->external.items[i].value.n > 0) {
            m->status = add_file(m, t->external.items[i].value);
        }
    }
}

/* Loads the model, so that locations were judged before any file is opened, and writes the text. */
static nori_status make(manifest *m, nori_env *env, const char *path)
{
    nori_model *model = NULL;
    unsigned char hash[HASH];
    NORI__TRY(nori_model_load(env, path, NULL, &model, m->err));
    const nori__map_file *file = &model->source->file;
    const char *slash = strrchr(path, '/');
    m->folder = slash ? nori__arena_copy(&m->arena, path, (size_t)(slash - path) + (slash == path)) : ".";
    if (!m->folder) {
        nori_model_free(model);
        return nori__no_memory(m->err);
    }
    m->secrets->hash(file->data, file->size, hash);
    nori__text_printf(&m->text, "nori signature 1\nmodel ");
    add_hex(&m->text, hash, HASH);
    nori__text_add(&m->text, "\n", 1);
    nori__pb_see_tensors(model->source->pb, see_tensor, m);
    nori_model_free(model);
    return m->status != NORI_OK ? m->status : m->text.failed ? nori__no_memory(m->err) : NORI_OK;
}

static nori_status begin(manifest *m, nori_env *env, nori_error *err)
{
    *m = (manifest){.err = err};
    nori__arena_init(&m->arena, nori__env_allocator(env));
    nori__map_init(&m->seen, nori__env_allocator(env));
    nori__text_init(&m->text, nori__env_allocator(env));
    return nori__secrets_get(&m->secrets, err);
}

static void end(manifest *m)
{
    nori__text_free(&m->text);
    nori__map_free(&m->seen);
    nori__arena_free(&m->arena);
}

/* ---- signing ---- */

nori_status nori_sign_keys(unsigned char public_key[NORI_PUBLIC_KEY_BYTES],
                           unsigned char secret_key[NORI_SECRET_KEY_BYTES], nori_error *err)
{
    const nori__secrets *secrets;
    NORI__TRY(nori__secrets_get(&secrets, err));
    return secrets->sign_keys(public_key, secret_key)
               ? NORI_OK
               : nori__fail(err, NORI_ERROR_INTERNAL, "no keys could be made");
}

nori_status nori_model_sign(nori_env *env, const char *path,
                            const unsigned char secret_key[NORI_SECRET_KEY_BYTES],
                            const char *signature_path, nori_error *err)
{
    manifest m;
    unsigned char signature[SIGNATURE];
    nori__out_file *out = NULL;
    nori_status s = begin(&m, env, err);
    s = s == NORI_OK ? make(&m, env, path) : s;
    if (s == NORI_OK && !m.secrets->sign(m.text.data, m.text.size, secret_key, signature)) {
        s = nori__fail(err, NORI_ERROR_ARGUMENT, "the key cannot sign");
    }
    if (s == NORI_OK) {
        nori__text_add(&m.text, "signed ", 7);
        add_hex(&m.text, signature, SIGNATURE);
        nori__text_add(&m.text, "\n", 1);
        s = m.text.failed ? nori__no_memory(err) : NORI_OK;
    }
    s = s == NORI_OK ? nori__out_open(nori__env_allocator(env), signature_path, &out, err) : s;
    if (s == NORI_OK) {
        s = nori__out_write(out, m.text.data, m.text.size, err);
        if (s == NORI_OK) {
            s = nori__out_commit(out, err);
        } else {
            nori__out_abort(out);
        }
    }
    end(&m);
    return s;
}

/* ---- verifying ---- */

/* What differs, line by line, for the message; the signature was not right in any case. */
static void tell(const manifest *m, const char *signed_text, size_t size, nori_error *err)
{
    const char *have = m->text.data, *have_end = have + m->text.size;
    const char *was = signed_text, *was_end = signed_text + size;
    while (have < have_end || was < was_end) {
        const char *a = have < have_end ? memchr(have, '\n', (size_t)(have_end - have)) : NULL;
        const char *b = was < was_end ? memchr(was, '\n', (size_t)(was_end - was)) : NULL;
        size_t n = a ? (size_t)(a - have) : 0, k = b ? (size_t)(b - was) : 0;
        if (n != k || memcmp(have, was, n) != 0) {
            const char *line = n ? have : was;
            size_t length = n ? n : k, name = 5 + 2 * HASH + 1;
            bool data = length > name && memcmp(line, "data ", 5) == 0;
            nori__fail(err, NORI_ERROR_DATA, "%s%.*s changed since it was signed",
                       data ? "the external data " : "the model",
                       data ? (int)(length - name < 200 ? length - name : 200) : 0,
                       data ? line + name : "");
            return;
        }
        have += n + 1;
        was += k + 1;
    }
    nori__fail(err, NORI_ERROR_DATA, "another key signed the model, or the signature was changed");
}

static nori_status judge(const manifest *m, const nori__map_file *file, const char *path,
                         const unsigned char *public_key, nori_error *err)
{
    static const char word[] = "signed ";
    enum { LINE = sizeof(word) - 1 + 2 * SIGNATURE + 1 };
    unsigned char signature[SIGNATURE];
    const char *text = (const char *)file->data;
    const char *last = file->size > LINE ? text + file->size - LINE : text;
    if (file->size <= LINE || memcmp(last, word, sizeof(word) - 1) != 0 || last[-1] != '\n' ||
        last[LINE - 1] != '\n' || memcmp(text, "nori signature ", 15) != 0 ||
        !read_hex(last + sizeof(word) - 1, 2 * SIGNATURE, signature, SIGNATURE)) {
        return nori__fail(err, NORI_ERROR_FORMAT, "%s is no signature of nori's", path);
    }
    size_t size = (size_t)(last - text);
    bool same = size == m->text.size && memcmp(text, m->text.data, size) == 0;
    if (same && m->secrets->verify(m->text.data, m->text.size, public_key, signature)) {
        return NORI_OK;
    }
    tell(m, text, size, err);
    return NORI_ERROR_DATA;
}

nori_status nori_model_verify(nori_env *env, const char *path,
                              const unsigned char public_key[NORI_PUBLIC_KEY_BYTES],
                              const char *signature_path, nori_error *err)
{
    manifest m;
    nori__map_file file;
    nori_status s = begin(&m, env, err);
    s = s == NORI_OK ? make(&m, env, path) : s;
    if (s == NORI_OK && (s = nori__map_open(signature_path, &file, err)) == NORI_OK) {
        s = judge(&m, &file, signature_path, public_key, err);
        nori__map_close(&file);
    }
    end(&m);
    return s;
}

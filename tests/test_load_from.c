/* test_load_from.c: models whose bytes a callback gives: decoded on the way, in small pieces, cut off,
 * failing; and sealed ones, where the module for them is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "make_model.h"
#include "nori/limits.h"
#include "nori/sign.h"

typedef struct stored {
    uint8_t bytes[4096]; /* each with all bits turned by 0x5a */
    size_t size, piece, ends_at, fails_at, calls;
} stored;

static int64_t turned(void *user, uint64_t offset, void *to, size_t count, nori_error *err)
{
    stored *s = user;
    s->calls++;
    if (s->fails_at && offset >= s->fails_at) {
        err->status = NORI_ERROR_UNAVAILABLE;
        snprintf(err->message, sizeof(err->message), "the flash does not answer");
        return -1;
    }
    size_t end = s->ends_at ? s->ends_at : s->size;
    size_t n = offset < end ? end - (size_t)offset : 0;
    n = n < count ? n : count;
    n = s->piece && n > s->piece ? s->piece : n;
    for (size_t i = 0; i < n; i++) {
        ((uint8_t *)to)[i] = s->bytes[offset + i] ^ 0x5a;
    }
    return (int64_t)n;
}

static void store(stored *s)
{
    make m;
    nori__text bytes;
    nori_error err = {0};
    *s = (stored){.size = 0};
    make_begin(&m, 17);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "2");
    make_node(&m, &m.graph, "", "Neg", "n", "x", "y");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "2");
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m.model, &bytes, &err), NORI_OK);
    assert_true(bytes.size < sizeof(s->bytes));
    s->size = bytes.size;
    for (size_t i = 0; i < bytes.size; i++) {
        s->bytes[i] = (uint8_t)bytes.data[i] ^ 0x5a;
    }
    nori__text_free(&bytes);
    make_end(&m);
}

static nori_status load(stored *s, nori_env *env, nori_model **model, nori_error *err)
{
    nori_reader r;
    nori_reader_default(&r);
    r.bytes = s->size;
    r.read = turned;
    r.user = s;
    *err = (nori_error){0};
    return nori_model_load_from(env, &r, NULL, model, err);
}

static void runs(nori_model *model)
{
    nori_session *session = NULL;
    nori_tensor *x = NULL, *y = NULL;
    nori_error err = {0};
    assert_int_equal(nori_session_create(model, NULL, &session, &err), NORI_OK);
    nori_model_free(model); /* the session keeps the bytes */
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 1, (int64_t[]){2}, &x, &err), NORI_OK);
    ((float *)nori_tensor_data(x))[1] = 3;
    assert_int_equal(nori_session_run(session, (const nori_tensor *const *)&x, 1, &y, 1, &err), NORI_OK);
    assert_true(((const float *)nori_tensor_const_data(y))[1] == -3);
    nori_tensor_free(x);
    nori_tensor_free(y);
    nori_session_free(session);
}

static void test_reads(void **state)
{
    (void)state;
    stored s;
    nori_model *model = NULL;
    nori_error err;
    store(&s);
    assert_int_equal(load(&s, NULL, &model, &err), NORI_OK);
    assert_int_equal(s.calls, 1);
    runs(model);
    store(&s);
    s.piece = 7; /* short reads are asked for again */
    assert_int_equal(load(&s, NULL, &model, &err), NORI_OK);
    assert_int_equal(s.calls, (s.size + 6) / 7);
    runs(model);
}

static void test_refuses(void **state)
{
    (void)state;
    stored s;
    nori_model *model = NULL;
    nori_error err;
    store(&s);
    s.ends_at = s.size - 1;
    assert_int_equal(load(&s, NULL, &model, &err), NORI_ERROR_IO);
    assert_non_null(strstr(err.message, "promised"));
    store(&s);
    s.piece = 16;
    s.fails_at = 32;
    assert_int_equal(load(&s, NULL, &model, &err), NORI_ERROR_UNAVAILABLE);
    assert_string_equal(err.message, "the flash does not answer");
    store(&s);
    s.bytes[0] ^= 0xff; /* another bit pattern is another file */
    assert_int_not_equal(load(&s, NULL, &model, &err), NORI_OK);
    assert_null(model);
    store(&s);
    s.size = SIZE_MAX / 2; /* past the limit: nothing is asked for */
    assert_int_equal(load(&s, NULL, &model, &err),
                     sizeof(size_t) > 4 ? NORI_ERROR_LIMIT : NORI_ERROR_MEMORY);
    assert_int_equal(s.calls, 0);
}

/* ---- sealed ---- */

static int give(void *user, unsigned char *key, nori_error *err)
{
    (void)err;
    memcpy(key, user, NORI_SEAL_KEY_BYTES);
    return 0;
}

static int give_none(void *user, unsigned char *key, nori_error *err)
{
    (void)user;
    (void)key;
    err->status = NORI_ERROR_UNAVAILABLE;
    snprintf(err->message, sizeof(err->message), "the key is not in this device");
    return -1;
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

static void test_sealed(void **state)
{
    (void)state;
    unsigned char key[NORI_SEAL_KEY_BYTES], other[NORI_SEAL_KEY_BYTES], sealed[4096];
    char folder[] = "/tmp/nori_seal_XXXXXX", plain[64], path[64];
    stored s;
    nori_model *model = NULL;
    nori_error err = {0};
    if (nori_seal_key(key, &err) == NORI_ERROR_UNAVAILABLE) {
        print_message("no module nori-sodium: sealed models are not tested\n");
        skip();
    }
    assert_non_null(mkdtemp(folder));
    snprintf(plain, sizeof(plain), "%s/m.onnx", folder);
    snprintf(path, sizeof(path), "%s/m.sealed", folder);
    store(&s);
    for (size_t i = 0; i < s.size; i++) {
        s.bytes[i] ^= 0x5a;
    }
    write_file(plain, s.bytes, s.size);
    assert_int_equal(nori_model_seal(NULL, plain, key, path, &err), NORI_OK);
    assert_true(nori_model_is_sealed(path));
    assert_false(nori_model_is_sealed(plain));
    assert_int_equal(nori_model_load_sealed(NULL, path, give, key, NULL, &model, &err), NORI_OK);
    runs(model);
    FILE *f = fopen(path, "rb");
    size_t size = fread(sealed, 1, sizeof(sealed), f);
    fclose(f);
    assert_true(size == s.size + 16 + 24 + 16);
    /* The name of the operator's node is nowhere to be read. */
    assert_null(memmem(sealed, size, "main", 4));
    for (size_t bit = 0; bit < 8 * size; bit++) { /* any bit changed: refused, and nothing made */
        sealed[bit / 8] ^= (unsigned char)(1u << bit % 8);
        write_file(path, sealed, size);
        err = (nori_error){0};
        nori_status got = nori_model_load_sealed(NULL, path, give, key, NULL, &model, &err);
        assert_int_equal(got, bit < 8 * 16 ? NORI_ERROR_FORMAT : NORI_ERROR_DATA);
        assert_null(model);
        sealed[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    for (size_t n = 0; n < size; n += 5) {
        write_file(path, sealed, n);
        err = (nori_error){0};
        assert_int_not_equal(nori_model_load_sealed(NULL, path, give, key, NULL, &model, &err), NORI_OK);
    }
    write_file(path, sealed, size);
    memcpy(other, key, sizeof(key));
    other[31] ^= 1;
    err = (nori_error){0};
    assert_int_equal(nori_model_load_sealed(NULL, path, give, other, NULL, &model, &err),
                     NORI_ERROR_DATA);
    assert_non_null(strstr(err.message, "not its key"));
    err = (nori_error){0};
    assert_int_equal(nori_model_load_sealed(NULL, path, give_none, NULL, NULL, &model, &err),
                     NORI_ERROR_UNAVAILABLE);
    assert_string_equal(err.message, "the key is not in this device");
    err = (nori_error){0};
    assert_int_equal(nori_model_load_sealed(NULL, plain, give, key, NULL, &model, &err),
                     NORI_ERROR_FORMAT);
    unlink(plain);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reads), cmocka_unit_test(test_refuses),
                                       cmocka_unit_test(test_sealed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Base: errors, names, checked sizes, memory, text, vectors, maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "base/byte_order.h"
#include "test_alloc.h"

/* ---- errors and names ---- */

static void first_error_wins(void **state)
{
    (void)state;
    nori_error err = {0};
    nori__where(&err, "nowhere");
    nori__hint(&err, "nothing");
    nori__offset(&err, 3);
    assert_int_equal(err.where[0] | err.hint[0] | err.has_offset, 0);
    assert_int_equal(nori__fail(&err, NORI_ERROR_IO, "cannot %s", "read"), NORI_ERROR_IO);
    assert_int_equal(nori__fail(&err, NORI_ERROR_DATA, "other"), NORI_ERROR_DATA);
    assert_int_equal(err.status, NORI_ERROR_IO);
    assert_string_equal(err.message, "cannot read");
    nori__where(&err, "node %d", 7);
    nori__where(&err, "model.onnx");
    assert_string_equal(err.where, "model.onnx: node 7");
    nori__hint(&err, "first");
    nori__hint(&err, "second");
    assert_string_equal(err.hint, "first");
    nori__offset(&err, 12);
    nori__offset(&err, 13);
    assert_int_equal(err.has_offset, 1);
    assert_int_equal(err.offset, 12);
    assert_int_equal(nori__fail(NULL, NORI_ERROR_LIMIT, "x"), NORI_ERROR_LIMIT);
    nori__where(NULL, "x");
    nori__hint(NULL, "x");
    nori__offset(NULL, 1);
    assert_int_equal(nori__no_memory(NULL), NORI_ERROR_MEMORY);
}

static void long_texts_are_cut(void **state)
{
    (void)state;
    static char text[4000];
    memset(text, 'a', sizeof(text) - 1);
    nori_error err = {0};
    nori__fail(&err, NORI_ERROR_DATA, "%s", text);
    assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
    assert_string_equal(err.message + sizeof(err.message) - 4, "...");
    nori__where(&err, "%s", text);
    nori__where(&err, "outer");
    assert_int_equal(strlen(err.where), sizeof(err.where) - 1);
    assert_memory_equal(err.where, "outer: aaa", 10);
    assert_string_equal(err.where + sizeof(err.where) - 4, "...");
    nori__hint(&err, "%s", text);
    assert_string_equal(err.hint + sizeof(err.hint) - 4, "...");
    /* One byte less than the room is not cut. */
    err = (nori_error){0};
    nori__fail(&err, NORI_ERROR_DATA, "%.*s", (int)sizeof(err.message) - 1, text);
    assert_int_equal(err.message[sizeof(err.message) - 2], 'a');
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(nori_version(), "0.1.0");
    assert_string_equal(nori_status_text(NORI_OK), "no error");
    assert_string_equal(nori_status_text(NORI_ERROR_INTERNAL), "a fault in nori itself");
    assert_non_null(nori_status_text((nori_status)999));
    assert_string_equal(nori_type_name(NORI_FLOAT), "float32");
    assert_string_equal(nori_type_name(NORI_INT2), "int2");
    assert_string_equal(nori_type_name((nori_type)-1), "?");
    assert_string_equal(nori_type_name(NORI_TYPE_COUNT), "?");
    static const unsigned bits[NORI_TYPE_COUNT] = {0,  32, 8, 8,  16, 16, 32, 64,  0,
                                                   8,  16, 64, 32, 64, 64, 128, 16, 8,
                                                   8,  8,  8,  4,  4,  4,  8,  2,  2};
    for (int t = 0; t < NORI_TYPE_COUNT; t++) {
        assert_int_equal(nori_type_bits((nori_type)t), bits[t]);
        assert_string_not_equal(nori_type_name((nori_type)t), "?");
    }
    assert_int_equal(nori_type_bits((nori_type)-1), 0);
}

static void sizes_do_not_overflow(void **state)
{
    (void)state;
    size_t n = 5;
    assert_false(nori__add_size(SIZE_MAX, 1, &n));
    assert_false(nori__mul_size(SIZE_MAX / 2 + 1, 2, &n));
    assert_int_equal(n, 5);
    assert_true(nori__add_size(SIZE_MAX - 1, 1, &n) && n == SIZE_MAX);
    assert_true(nori__mul_size(SIZE_MAX, 0, &n) && n == 0);
    int64_t i = 5;
    assert_false(nori__add_i64(INT64_MAX, 1, &i));
    assert_false(nori__add_i64(INT64_MIN, -1, &i));
    assert_false(nori__mul_dim(INT64_MAX / 2 + 1, 2, &i));
    assert_int_equal(i, 5);
    assert_true(nori__add_i64(INT64_MIN, INT64_MAX, &i) && i == -1);
    assert_true(nori__mul_dim(INT64_MAX, 1, &i) && i == INT64_MAX);
}

/* ---- memory ---- */

static void allocator(void **state)
{
    (void)state;
    for (size_t size = 0; size < 300; size += 37) {
        char *p = nori__alloc_zero(&nori__malloc, size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        for (size_t i = 0; i < size; i++) {
            assert_int_equal(p[i], 0);
        }
        nori__release(&nori__malloc, p, size);
    }
    assert_null(nori__alloc(&nori__malloc, SIZE_MAX));
    assert_null(nori__alloc(&nori__malloc, SIZE_MAX - 64));
    nori__release(&nori__malloc, NULL, 8);
}

static void arena(void **state)
{
    (void)state;
    test_alloc t;
    test_alloc_init(&t, 0);
    nori__arena a;
    nori__arena_init(&a, &t.allocator);
    char *kept[200];
    size_t sizes[200];
    for (int i = 0; i < 200; i++) { /* small ones, some larger than a block, some empty */
        sizes[i] = i % 50 == 49 ? 3000000 : (size_t)(i * 131 % 977);
        kept[i] = nori__arena_alloc(&a, sizes[i]);
        assert_non_null(kept[i]);
        assert_int_equal((uintptr_t)kept[i] % 16, 0);
        for (size_t k = 0; k < sizes[i]; k++) {
            assert_true(kept[i][k] == 0);
        }
        memset(kept[i], i + 1, sizes[i]);
    }
    for (int i = 0; i < 200; i++) { /* none lies on another */
        for (size_t k = 0; k < sizes[i]; k++) {
            assert_true((unsigned char)kept[i][k] == i + 1);
        }
    }
    assert_int_equal(a.total, t.live);
    assert_null(nori__arena_alloc(&a, SIZE_MAX));
    assert_null(nori__arena_alloc(&a, SIZE_MAX - 20));
    assert_null(nori__arena_array(&a, SIZE_MAX / 4, 8));
    assert_string_equal(nori__arena_text(&a, "text"), "text");
    assert_memory_equal(nori__arena_copy(&a, "a\0b", 3), "a\0b", 4);
    assert_string_equal(nori__arena_copy(&a, NULL, 0), "");
    assert_string_equal(nori__arena_printf(&a, "%d-%s", 12, "x"), "12-x");
    nori__arena_free(&a);
    assert_int_equal(t.live, 0);
    assert_false(t.wrong_size);
    nori__arena_free(&a);
    assert_non_null(nori__arena_alloc(&a, 1)); /* a freed one can be used again */
    nori__arena_free(&a);
    test_alloc_init(&t, 1);
    nori__arena_init(&a, &t.allocator);
    assert_null(nori__arena_alloc(&a, 1));
    assert_null(nori__arena_text(&a, "x"));
    assert_null(nori__arena_printf(&a, "x"));
    nori__arena_free(&a);
}

/* ---- text, vectors, maps ---- */

static void text(void **state)
{
    (void)state;
    test_alloc t;
    test_alloc_init(&t, 0);
    nori__text s;
    nori__text_init(&s, &t.allocator);
    nori__text_add(&s, NULL, 0);
    assert_string_equal(s.data, "");
    for (int i = 0; i < 1000; i++) {
        nori__text_add(&s, "ab", 2);
        nori__text_printf(&s, "%03d", i);
    }
    assert_false(s.failed);
    assert_int_equal(s.size, 5000);
    assert_int_equal(strlen(s.data), 5000);
    assert_memory_equal(s.data + 4995, "ab999", 5);
    nori__text_free(&s);
    assert_int_equal(t.live, 0);
    assert_false(t.wrong_size);
    test_alloc_init(&t, 2); /* the first growth fails: what was there stays */
    nori__text_init(&s, &t.allocator);
    for (int i = 0; i < 1000; i++) {
        nori__text_add(&s, "x", 1);
    }
    assert_true(s.failed);
    assert_int_equal(strlen(s.data), s.size);
    assert_int_equal(t.calls, 2); /* and nothing is tried again */
    nori__text_free(&s);
    assert_int_equal(t.live, 0);
}

static void vectors(void **state)
{
    (void)state;
    test_alloc t;
    test_alloc_init(&t, 0);
    nori__vec v;
    nori__vec_init(&v, &t.allocator);
    int numbers[1000];
    for (int i = 0; i < 1000; i++) {
        assert_true(nori__vec_push(&v, &numbers[i]));
    }
    assert_int_equal(v.count, 1000);
    for (int i = 0; i < 1000; i++) {
        assert_ptr_equal(v.items[i], &numbers[i]);
    }
    t.fail_at = t.calls + 1;
    while (v.count < v.capacity) {
        assert_true(nori__vec_push(&v, NULL));
    }
    size_t count = v.count;
    assert_false(nori__vec_push(&v, NULL));
    assert_int_equal(v.count, count);
    assert_ptr_equal(v.items[999], &numbers[999]);
    nori__vec_free(&v);
    assert_int_equal(t.live, 0);
    assert_false(t.wrong_size);
}

/* One search to look and to add; room that nothing was put into yet holds nothing. */
static void map_claims(void **state)
{
    (void)state;
    test_alloc t;
    test_alloc_init(&t, 0);
    nori__map m;
    nori__map_init(&m, &t.allocator);
    int value = 0;
    assert_true(nori__map_reserve(&m, 1000));
    assert_true(nori__map_reserve(&m, 100000));
    size_t room = m.capacity;
    assert_null(nori__map_get(&m, "a"));
    void **at = nori__map_claim(&m, "abc", 2);
    assert_non_null(at);
    assert_null(*at);
    *at = &value;
    assert_ptr_equal(nori__map_get_n(&m, "ab", 2), &value);
    assert_null(nori__map_get(&m, "abc"));
    at = nori__map_claim(&m, "ab", 2);
    assert_non_null(at);
    assert_ptr_equal(*at, &value);
    assert_int_equal(m.count, 1);
    assert_int_equal(m.capacity, room);
    nori__map_free(&m);
    assert_int_equal(t.live, 0);
    test_alloc_init(&t, 1);
    nori__map_init(&m, &t.allocator);
    assert_null(nori__map_claim(&m, "a", 1)); /* no memory */
    nori__map_free(&m);
}

static void maps(void **state)
{
    (void)state;
    enum { N = 3000 };
    test_alloc t;
    test_alloc_init(&t, 0);
    nori__map m;
    nori__map_init(&m, &t.allocator);
    static char keys[N][24];
    static int values[N];
    assert_null(nori__map_get(&m, "a"));
    for (int i = 0; i < N; i++) { /* lengths on both sides of the hash's words */
        snprintf(keys[i], sizeof(keys[i]), "%.*s%d", i % 13, "layer/weight_", i);
        assert_true(nori__map_put(&m, keys[i], &values[i]));
    }
    assert_int_equal(m.count, N);
    for (int i = 0; i < N; i++) {
        assert_ptr_equal(nori__map_get(&m, keys[i]), &values[i]);
        assert_ptr_equal(nori__map_get_n(&m, keys[i], strlen(keys[i])), &values[i]);
    }
    assert_null(nori__map_get(&m, "layer/"));
    assert_null(nori__map_get_n(&m, keys[100], 1) == &values[100] ? &m : NULL);
    assert_null(nori__map_get_n(&m, NULL, 0)); /* as empty names of files come */
    assert_true(nori__map_put(&m, "", &values[1]));
    assert_ptr_equal(nori__map_get_n(&m, NULL, 0), &values[1]);
    assert_true(nori__map_put(&m, keys[5], &values[6]));
    assert_ptr_equal(nori__map_get(&m, keys[5]), &values[6]);
    assert_int_equal(m.count, N + 1);
    nori__map_free(&m);
    assert_int_equal(t.live, 0);
    assert_false(t.wrong_size);
    test_alloc_init(&t, 4);
    nori__map_init(&m, &t.allocator);
    int put = 0;
    while (nori__map_put(&m, keys[put], &values[put])) {
        put++;
    }
    assert_in_range(put, 8, 15);
    for (int i = 0; i < put; i++) {
        assert_ptr_equal(nori__map_get(&m, keys[i]), &values[i]);
    }
    nori__map_free(&m);
    assert_int_equal(t.live, 0);
}

/* ---- byte order ---- */

static void order(void **state)
{
    (void)state;
    unsigned char bytes[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    nori__turn(bytes, 9, 4); /* what is left over is no unit */
    assert_memory_equal(bytes, ((unsigned char[]){4, 3, 2, 1, 8, 7, 6, 5, 9}), 9);
    nori__turn(bytes, 8, 8);
    assert_memory_equal(bytes, ((unsigned char[]){5, 6, 7, 8, 1, 2, 3, 4, 9}), 9);
    nori__turn(bytes, 9, 1);
    assert_int_equal(bytes[0], 5);
    static const size_t widths[][2] = {{NORI_FLOAT, 4}, {NORI_COMPLEX64, 4}, {NORI_COMPLEX128, 8},
                                       {NORI_INT4, 1}, {NORI_BOOL, 1}, {NORI_BFLOAT16, 2}, {NORI_STRING, 1}};
    for (size_t i = 0; i < NORI__COUNT(widths); i++) {
        assert_int_equal(nori__order_width((nori_type)widths[i][0]), widths[i][1]);
    }
    /* Whatever this machine is: 258 in a file is 2, 1. */
    nori__arena a;
    nori__arena_init(&a, &nori__malloc);
    const int16_t v[2] = {258, 3};
    nori__str file = nori__file_bytes(&a, NORI_INT16, v, sizeof(v));
    assert_int_equal(file.n, 4);
    assert_memory_equal(file.p, "\2\1\3\0", 4);
    int16_t back[2];
    memcpy(back, file.p, 4);
    nori__order(NORI_INT16, back, 4);
    assert_memory_equal(back, v, sizeof(v));
    assert_non_null(nori__file_bytes(&a, NORI_INT16, NULL, 0).p);
    nori__arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_error_wins),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(names),
        cmocka_unit_test(sizes_do_not_overflow),
        cmocka_unit_test(allocator),
        cmocka_unit_test(arena),
        cmocka_unit_test(text),
        cmocka_unit_test(vectors),
        cmocka_unit_test(map_claims),
        cmocka_unit_test(maps),
        cmocka_unit_test(order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Base: errors, memory, text, vectors, maps, and the small float formats against a search for the
 * nearest value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "base/half.h"
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
    test_alloc_init(&t, 2);
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

/* ---- small floats ---- */

/* A format as a list of values by code, without sign: what is right is found by search. */
typedef struct table {
    int largest;          /* code of the largest finite value */
    double value[32769];  /* one more than the largest: where rounding up would lead */
} table;

static table tab;

/* The code nearest to a magnitude, ties to the even code; largest + 1 when over the top. */
static int nearest(double a)
{
    int low = 0, high = tab.largest + 1;
    if (a >= tab.value[high]) {
        return high;
    }
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (tab.value[middle] <= a) {
            low = middle;
        } else {
            high = middle;
        }
    }
    double down = a - tab.value[low], up = tab.value[high] - a; /* exact: close to each other */
    return down < up || (down == up && low % 2 == 0) ? low : high;
}

static void close_table(int largest)
{
    tab.largest = largest;
    tab.value[largest + 1] = 2 * tab.value[largest] - tab.value[largest - 1];
}

/* Calls check for every value, every middle between neighbours, and the floats around those. */
static void each_hard_case(void (*check)(float f, nori_type type), nori_type type)
{
    for (int i = 0; i <= tab.largest; i++) {
        double middle = (tab.value[i] + tab.value[i + 1]) / 2;
        float at[2] = {(float)tab.value[i], (float)middle};
        for (int k = 0; k < 2; k++) {
            check(at[k], type);
            check(nextafterf(at[k], INFINITY), type);
            check(at[k] > 0 ? nextafterf(at[k], 0) : 0, type);
        }
    }
    uint32_t u = 12345;
    for (int i = 0; i < 20000; i++) { /* and any bits at all */
        u = u * 1664525u + 1013904223u;
        float f;
        memcpy(&f, &u, sizeof(f));
        if (isfinite(f)) {
            check(fabsf(f), type);
        }
    }
}

static void check_f16(float f, nori_type type)
{
    (void)type;
    int want = nearest((double)f);
    assert_int_equal(nori__f32_to_f16(f), want);
    assert_int_equal(nori__f32_to_f16(-f), want | 0x8000);
}

static void half_floats(void **state)
{
    (void)state;
    for (int h = 0; h < 0x7c00; h++) {
        double v = h < 1024 ? h * 0x1p-24 : ldexp(1024 + h % 1024, h / 1024 - 25);
        tab.value[h] = v;
        assert_true((double)nori__f16_to_f32((uint16_t)h) == v);
        assert_true((double)nori__f16_to_f32((uint16_t)(h | 0x8000)) == -v);
    }
    close_table(0x7bff);
    assert_true(tab.value[0x7bff] == 65504);
    each_hard_case(check_f16, NORI_FLOAT16);
    assert_true(signbit(nori__f16_to_f32(0x8000)));
    assert_true(isinf(nori__f16_to_f32(0x7c00)) && nori__f16_to_f32(0xfc00) < 0);
    for (int h = 0x7c01; h < 0x8000; h++) {
        assert_true(isnan(nori__f16_to_f32((uint16_t)h)));
    }
    assert_int_equal(nori__f32_to_f16(INFINITY), 0x7c00);
    assert_int_equal(nori__f32_to_f16(-INFINITY), 0xfc00);
    assert_true(isnan(nori__f16_to_f32(nori__f32_to_f16(NAN))));
    /* One rounding: by way of float this would be a tie and go down. */
    assert_int_equal(nori__f64_to_f16(1.0 + 0x1p-11 + 0x1p-50), 0x3c01);
    assert_int_equal(nori__f64_to_f16(0x1p-25 + 0x1p-70), 1);
    assert_int_equal(nori__f64_to_f16(0x1p-25), 0);
    assert_int_equal(nori__f64_to_f16(-0x1p-1074), 0x8000);
    assert_int_equal(nori__f64_to_f16(1e308), 0x7c00);
    assert_int_equal(nori__f64_to_f16(-INFINITY), 0xfc00);
    fesetround(FE_UPWARD);
    uint16_t up = nori__f64_to_f16(1.0 + 0x1p-20);
    fesetround(FE_TONEAREST);
    assert_int_equal(up, 0x3c00);
}

static void brain_floats(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        uint32_t u = h << 16;
        float f, g = nori__bf16_to_f32((uint16_t)h);
        memcpy(&f, &u, sizeof(f));
        assert_memory_equal(&f, &g, sizeof(f));
        if (!isnan(f)) {
            assert_int_equal(nori__f32_to_bf16(f), h);
        } else {
            assert_true(isnan(nori__bf16_to_f32(nori__f32_to_bf16(f))));
        }
    }
    assert_int_equal(nori__f32_to_bf16(1.0f + 0x1p-8f), 0x3f80);           /* tie to even */
    assert_int_equal(nori__f32_to_bf16(1.0f + 0x1p-7f + 0x1p-8f), 0x3f82); /* tie to even */
    assert_int_equal(nori__f32_to_bf16(1.0f + 0x1p-8f + 0x1p-23f), 0x3f81);
    assert_int_equal(nori__f32_to_bf16(3.4028235e38f), 0x7f80);
    uint32_t quiet = 0x7f800001u; /* a NaN whose upper half alone would be infinity */
    float nan;
    memcpy(&nan, &quiet, sizeof(nan));
    assert_true(isnan(nori__bf16_to_f32(nori__f32_to_bf16(nan))));
}

static bool is_nan_code(uint8_t code, nori_type type)
{
    return isnan(nori__f8_to_f32(code, type));
}

static void check_f8(float f, nori_type type)
{
    int want = nearest((double)f), top = tab.largest;
    int sign = type == NORI_FLOAT4E2M1 ? 8 : 0x80;
    bool fnuz = type == NORI_FLOAT8E4M3FNUZ || type == NORI_FLOAT8E5M2FNUZ;
    bool over = want > top;
    assert_int_equal(nori__f32_to_f8(f, type, true), over ? top : want);
    assert_int_equal(nori__f32_to_f8(-f, type, true),
                     fnuz && want == 0 ? 0 : (over ? top : want) | sign);
    uint8_t hard = nori__f32_to_f8(f, type, false);
    if (!over) {
        assert_int_equal(hard, want);
    } else if (type == NORI_FLOAT4E2M1) {
        assert_int_equal(hard, top);
    } else if (type == NORI_FLOAT8E5M2) {
        assert_int_equal(hard, 0x7c);
    } else {
        assert_true(is_nan_code(hard, type));
    }
}

static void eight_bit_floats(void **state)
{
    (void)state;
    static const struct {
        nori_type type;
        int man_bits, bias, largest;
        double max, least;
    } formats[] = {
        {NORI_FLOAT8E4M3FN, 3, 7, 0x7e, 448, 0x1p-9},
        {NORI_FLOAT8E4M3FNUZ, 3, 8, 0x7f, 240, 0x1p-10},
        {NORI_FLOAT8E5M2, 2, 15, 0x7b, 57344, 0x1p-16},
        {NORI_FLOAT8E5M2FNUZ, 2, 16, 0x7f, 57344, 0x1p-17},
        {NORI_FLOAT4E2M1, 1, 1, 7, 6, 0.5},
    };
    for (size_t k = 0; k < NORI__COUNT(formats); k++) {
        nori_type type = formats[k].type;
        int units = 1 << formats[k].man_bits, sign = type == NORI_FLOAT4E2M1 ? 8 : 0x80;
        for (int c = 0; c <= formats[k].largest; c++) {
            int e = c / units, m = c % units;
            double unit = ldexp(1, (e ? e : 1) - formats[k].bias - formats[k].man_bits);
            tab.value[c] = (e ? units + m : m) * unit;
            assert_true((double)nori__f8_to_f32((uint8_t)c, type) == tab.value[c]);
            if (c > 0) {
                assert_true((double)nori__f8_to_f32((uint8_t)(c | sign), type) == -tab.value[c]);
            }
        }
        close_table(formats[k].largest);
        assert_true(tab.value[1] == formats[k].least);
        assert_true(tab.value[formats[k].largest] == formats[k].max);
        each_hard_case(check_f8, type);
        assert_int_equal(nori__f32_to_f8(INFINITY, type, true), formats[k].largest);
        if (type != NORI_FLOAT4E2M1) {
            assert_true(is_nan_code(nori__f32_to_f8(NAN, type, true), type));
            assert_true(is_nan_code(nori__f32_to_f8(NAN, type, false), type));
        }
    }
    assert_true(is_nan_code(0x7f, NORI_FLOAT8E4M3FN) && is_nan_code(0xff, NORI_FLOAT8E4M3FN));
    assert_true(is_nan_code(0x80, NORI_FLOAT8E4M3FNUZ) && is_nan_code(0x80, NORI_FLOAT8E5M2FNUZ));
    assert_true(is_nan_code(0x7d, NORI_FLOAT8E5M2) && is_nan_code(0xff, NORI_FLOAT8E5M2));
    assert_true(isinf(nori__f8_to_f32(0xfc, NORI_FLOAT8E5M2)));
    assert_int_equal(nori__f32_to_f8(-INFINITY, NORI_FLOAT8E5M2, false), 0xfc);
    assert_true(is_nan_code(nori__f32_to_f8(INFINITY, NORI_FLOAT8E4M3FN, false),
                            NORI_FLOAT8E4M3FN));
}

static void power_floats(void **state)
{
    (void)state;
    nori_type t = NORI_FLOAT8E8M0;
    for (int c = 0; c < 255; c++) {
        float v = nori__f8_to_f32((uint8_t)c, t);
        assert_true((double)v == ldexp(1, c - 127));
        assert_int_equal(nori__f32_to_f8(v, t, true), c);
        assert_int_equal(nori__f32_to_f8(v * 1.25f, t, true), c);
    }
    assert_true(isnan(nori__f8_to_f32(255, t)));
    assert_int_equal(nori__f32_to_f8(1.5f, t, true), 128);
    assert_int_equal(nori__f32_to_f8(1.75f * 0x1p127f, t, true), 254);
    assert_int_equal(nori__f32_to_f8(1.75f * 0x1p127f, t, false), 255);
    assert_int_equal(nori__f32_to_f8(0, t, true), 0);
    assert_int_equal(nori__f32_to_f8(-1, t, true), 255);
    assert_int_equal(nori__f32_to_f8(NAN, t, true), 255);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_error_wins), cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(names),            cmocka_unit_test(sizes_do_not_overflow),
        cmocka_unit_test(allocator),        cmocka_unit_test(arena),
        cmocka_unit_test(text),             cmocka_unit_test(vectors),
        cmocka_unit_test(maps),             cmocka_unit_test(half_floats),
        cmocka_unit_test(brain_floats),     cmocka_unit_test(eight_bit_floats),
        cmocka_unit_test(power_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

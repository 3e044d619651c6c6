/* Small float formats: every code decoded, every hard case encoded, against a search for the
 * nearest value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fenv.h>
#include <math.h>

#include "base/base.h"
#include "base/half.h"

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
        cmocka_unit_test(half_floats),
        cmocka_unit_test(brain_floats),
        cmocka_unit_test(eight_bit_floats),
        cmocka_unit_test(power_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

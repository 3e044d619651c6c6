/* The arithmetic of quantization on numbers worked out by hand, and what calibration sees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/quantize/quantize.h"

static nori_quant range(nori_type type, double low, double high, int symmetric)
{
    nori_quant q = {.size = sizeof(q)};
    assert_int_equal(nori_quant_range(type, low, high, symmetric, &q, NULL), NORI_OK);
    return q;
}

static void near(double got, double want, double within)
{
    if (!(fabs(got - want) <= within)) {
        fail_msg("got %.9g, expected %.9g within %g", got, want, within);
    }
}

/* [-4, 6] to int8. */
static void worked_example(void **state)
{
    (void)state;
    nori_quant q = range(NORI_INT8, -4, 6, 0);
    int saturated;
    near(q.scale, 10.0 / 255, 1e-15);
    assert_int_equal(q.zero_point, -26);
    static const struct {
        double real;
        int q, saturated;
        double back, error;
    } rows[] = {
        {2.5, 38, 0, 2.510, 0.0098}, {-3.2, -108, 0, -3.2157, 0.0157}, {9.0, 127, 1, 6.0, 3.0}};
    for (int i = 0; i < 3; i++) {
        int64_t n = nori_quantize_number(&q, rows[i].real, &saturated);
        double back = nori_dequantize_number(&q, n);
        assert_int_equal(n, rows[i].q);
        assert_int_equal(saturated, rows[i].saturated);
        near(back, rows[i].back, 1e-3);
        near(fabs(rows[i].real - back), rows[i].error, 1e-4);
        assert_true(saturated || fabs(rows[i].real - back) <= q.scale / 2);
    }
    /* 9.0 would be 204 had int8 room for it. */
    near(nearbyint(9.0 / q.scale) + (double)q.zero_point, 204, 0);
}

/* A channel that uses a tenth of the tensor's range rounds ten times finer with its own scale. */
static void per_channel(void **state)
{
    (void)state;
    nori_quant tensor = range(NORI_INT8, -1, 1, 0), channel = range(NORI_INT8, -0.1, 0.1, 0);
    near(tensor.scale / 2, 0.003922, 1e-6);
    near(channel.scale / 2, 0.000392, 1e-6);
    near(tensor.scale / channel.scale, 10, 1e-9);
}

static void sizes(void **state)
{
    (void)state;
    size_t now, then;
    assert_true(nori__type_bytes(NORI_FLOAT, 50000000, &now));
    assert_true(nori__type_bytes(NORI_INT8, 50000000, &then));
    assert_int_equal(now, 200000000);
    assert_int_equal(then, 50000000);
}

static void odd_ranges(void **state)
{
    (void)state;
    nori_quant q = {.size = sizeof(q)};
    nori_error err = {0};
    assert_int_equal(nori_quant_range(NORI_FLOAT, -1, 1, 0, &q, &err), NORI_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "float32"));
    assert_int_equal(nori_quant_range(NORI_INT8, 1, -1, 0, &q, NULL), NORI_ERROR_ARGUMENT);
    assert_int_equal(nori_quant_range(NORI_INT8, 0, INFINITY, 0, &q, NULL), NORI_ERROR_ARGUMENT);
    assert_int_equal(nori_quant_range(NORI_INT8, NAN, 1, 0, &q, NULL), NORI_ERROR_ARGUMENT);
    q = range(NORI_UINT8, 0, 0, 0); /* nothing but zeros */
    near(q.scale, 1, 0);
    assert_int_equal(nori_quantize_number(&q, 0, NULL), q.zero_point);
    q = range(NORI_UINT8, 2, 6, 0); /* widened to hold 0 */
    near(q.scale, 6.0 / 255, 1e-15);
    assert_int_equal(q.zero_point, 0);
    q = range(NORI_INT8, -3, 1, 1);
    near(q.scale, 3.0 / 127, 1e-15);
    assert_int_equal(q.zero_point, 0);
    assert_int_equal(nori_quantize_number(&q, -100, NULL), -127);
    q = range(NORI_UINT8, -3, 1, 1);
    assert_int_equal(q.zero_point, 128);
    near(nori_dequantize_number(&q, nori_quantize_number(&q, 3, NULL)), 3, 1e-12);
    q = range(NORI_INT8, -1e308, 1e308, 0); /* the width overflows a double */
    assert_true(isfinite(q.scale));
    q = range(NORI_INT8, 0, 1e-300, 0);
    assert_true((float)q.scale > 0);
    int saturated;
    assert_int_equal(nori_quantize_number(&q, NAN, &saturated), q.zero_point);
    assert_int_equal(saturated, 1);
}

/* Every type: ends of the range are hit exactly, the error inside stays under half a step. */
static void every_type(void **state)
{
    (void)state;
    static const nori_type types[] = {NORI_INT2,  NORI_UINT2,  NORI_INT4,  NORI_UINT4,
                                      NORI_INT8,  NORI_UINT8,  NORI_INT16, NORI_UINT16,
                                      NORI_INT32, NORI_UINT32};
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        for (int symmetric = 0; symmetric < 2; symmetric++) {
            nori_quant q = range(types[t], -1.7, 2.9, symmetric);
            for (int i = -170; i <= 290; i++) {
                int saturated;
                double r = i / 100.0;
                double back = nori_dequantize_number(&q, nori_quantize_number(&q, r, &saturated));
                /* Z is rounded too: the ends may be half a step outside. */
                assert_true(fabs(r - back) <= q.scale * (saturated ? 1.0 : 0.5) + 1e-9);
            }
        }
    }
}

/* ---- what calibration sees ---- */

static uint32_t seed = 1;
static float noise(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (float)(int32_t)seed / 2147483648.0f;
}

static void draw(float *out, size_t n)
{
    seed = 7;
    for (size_t i = 0; i < n; i++) {
        float v = noise();
        out[i] = v * v * v * (i % 97 == 0 ? 50.0f : 1.0f);
    }
    out[3] = 0;
    out[4] = -0.0f;
}

/* All that is seen of numbers, and not of the samples they came in. */
static void without_calls(nori__observer *o)
{
    o->calls = 0;
    memset(&o->low_sum, 0, sizeof(o->low_sum));
    memset(&o->high_sum, 0, sizeof(o->high_sum));
}

/* One batch, single numbers, backwards, and merged shards: the same state, bit for bit. */
static void any_split(void **state)
{
    (void)state;
    enum { N = 5000 };
    static float v[N];
    static nori__observer all, single, back, shard[4], merged;
    draw(v, N);
    nori__observer_init(&all);
    nori__observer_init(&single);
    nori__observer_init(&back);
    nori__observer_init(&merged);
    nori__observer_add(&all, v, N);
    for (int i = 0; i < N; i++) {
        nori__observer_add(&single, v + i, 1);
        nori__observer_add(&back, v + N - 1 - i, 1);
    }
    for (int s = 3; s >= 0; s--) {
        nori__observer_init(&shard[s]);
        nori__observer_add(&shard[s], v + s * 1000, s == 3 ? N - 3000 : 1000);
        nori__observer_merge(&merged, &shard[s]);
    }
    assert_memory_equal(&single, &back, sizeof(all)); /* 5000 samples of one number */
    without_calls(&all);
    without_calls(&single);
    without_calls(&merged);
    assert_memory_equal(&all, &single, sizeof(all));
    assert_memory_equal(&all, &merged, sizeof(all));
    uint64_t sum = 0;
    for (int i = 0; i < 2 * NORI__BINS; i++) {
        sum += all.bins[i];
    }
    assert_int_equal(sum, N);
    assert_int_equal(all.zeros, 2);
    for (int m = NORI_RANGE_MINMAX; m <= NORI_RANGE_MSE; m++) {
        nori__range a = nori__range_choose(&all, (nori_range_method)m, 99.9, NORI_INT8, false);
        nori__range b = nori__range_choose(&merged, (nori_range_method)m, 99.9, NORI_INT8, false);
        assert_memory_equal(&a, &b, sizeof(a));
    }
}

static void not_finite(void **state)
{
    (void)state;
    static nori__observer o;
    nori__observer_init(&o);
    nori__observer_add(&o, (float[]){NAN, INFINITY, -INFINITY}, 3);
    assert_int_equal(o.count, 0);
    nori__range r = nori__range_choose(&o, NORI_RANGE_MINMAX, 0, NORI_INT8, false);
    assert_true(r.low == 0 && r.high == 0);
    nori__observer_add(&o, (float[]){1e-45f, 3.4e38f, -3.4e38f, NAN}, 4);
    assert_int_equal(o.count, 3);
    assert_int_equal(o.nan, 2);
    assert_int_equal(o.inf, 2);
    nori__observer_add(&o, (float[]){-0x1p127f, 0x1p127f}, 2);
    assert_int_equal(o.count, 5);
}

/* Methods on numbers whose right range is plain: most within 1, a few outliers at 100. */
static void methods(void **state)
{
    (void)state;
    enum { N = 100000 };
    static float v[N];
    static nori__observer o;
    nori__observer_init(&o);
    seed = 3;
    for (int i = 0; i < N; i++) {
        v[i] = noise();
    }
    v[5] = 100;
    v[6] = -100;
    nori__observer_add(&o, v, N);
    nori__range r = nori__range_choose(&o, NORI_RANGE_MINMAX, 0, NORI_INT8, false);
    near(r.low, -100, 1e-6);
    near(r.high, 100, 1e-6);
    near(r.clipped, 0, 0);
    r = nori__range_choose(&o, NORI_RANGE_PERCENTILE, 99.9, NORI_INT8, false);
    assert_true(r.high > 0.9 && r.high < 1.2 && r.low < -0.9 && r.low > -1.2);
    assert_true(r.clipped > 0 && r.clipped < 0.002);
    /* A share s of the range costs 0.2 (1 - s)^2 for the two clipped and 0.0512 s^2 for the steps:
     * least at s = 0.8. */
    r = nori__range_choose(&o, NORI_RANGE_MSE, 0, NORI_INT8, false);
    near(r.high, 80, 1);
    v[5] = v[6] = 3; /* now clipping is cheaper than a coarse step */
    nori__observer_init(&o);
    nori__observer_add(&o, v, N);
    r = nori__range_choose(&o, NORI_RANGE_MSE, 0, NORI_INT4, true);
    assert_true(r.high < 1.5 && r.high > 0.8);
}

/* A bell with two far outliers: its shape is kept better by steps that do not reach them. */
static void entropy(void **state)
{
    (void)state;
    static nori__observer o;
    nori__observer_init(&o);
    seed = 5;
    for (int i = 0; i < 100000; i++) {
        float v = noise() + noise() + noise() + noise();
        nori__observer_add(&o, &v, 1);
    }
    nori__observer_add(&o, (float[]){40, -40}, 2);
    nori__range r = nori__range_choose(&o, NORI_RANGE_ENTROPY, 0, NORI_INT8, false);
    assert_true(r.high < 15 && r.high > 3 && r.low == -r.high);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worked_example), cmocka_unit_test(per_channel),
        cmocka_unit_test(sizes),          cmocka_unit_test(odd_ranges),
        cmocka_unit_test(every_type),     cmocka_unit_test(any_split),
        cmocka_unit_test(not_finite),     cmocka_unit_test(methods),
        cmocka_unit_test(entropy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_quant_kernels.c: micro-kernels element by element on 8-bit values: each level against the
 * plain formula, bit for bit, at odd sizes, with guards around what is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "kernel_harness.h"

static const size_t sizes[] = {0, 1, 7, 8, 31, 32, 33, 64, 100, 257};

static buffer bytes(size_t n)
{
    buffer b = take(n, 1);
    for (size_t i = 0; i < n; i++) {
        ((uint8_t *)b.p)[i] = (uint8_t)(next() * 128 + 128);
    }
    return b;
}

static int32_t number(const void *p, size_t i, bool is_signed)
{
    return is_signed ? ((const int8_t *)p)[i] : ((const uint8_t *)p)[i];
}

static int32_t saturated(float v, int32_t zero, bool is_signed)
{
    double low = is_signed ? -128 : 0, q = (double)rintf(v) + zero;
    return q >= low ? (int32_t)(q < low + 255 ? q : low + 255) : (int32_t)low; /* NaN: low */
}

static void table(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        for (size_t s = 0; s < NORI__COUNT(sizes); s++) {
            size_t n = sizes[s];
            buffer x = bytes(n), t = bytes(256), y = take(n, 1);
            k->x8_table(n, x.p, t.p, y.p);
            for (size_t i = 0; i < n; i++) {
                assert_int_equal(((uint8_t *)y.p)[i], ((uint8_t *)t.p)[((uint8_t *)x.p)[i]]);
            }
            k->x8_table(n, x.p, t.p, x.p); /* in place */
            assert_memory_equal(x.p, y.p, n);
            give(&x);
            give(&t);
            give(&y);
        }
    }
}

static void largest(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        for (size_t s = 0; s < 2 * NORI__COUNT(sizes); s++) {
            size_t n = sizes[s / 2];
            buffer a = bytes(n), b = bytes(n), y = take(n, 1);
            k->x8_max(n, a.p, b.p, s % 2, y.p);
            for (size_t i = 0; i < n; i++) {
                int32_t u = number(a.p, i, s % 2), v = number(b.p, i, s % 2);
                assert_int_equal(number(y.p, i, s % 2), u > v ? u : v);
            }
            give(&a);
            give(&b);
            give(&y);
        }
    }
}

/* Scales at which results are whole and a half, saturate, and are no numbers at all. */
static void pairs(void **state)
{
    (void)state;
    static const float scales[][3] = {
        {0.5f, 0.25f, 1}, {0.013f, 0.02f, 0.05f}, {1, -1, 2}, {1e30f, 1e30f, 1e-30f}, {0, 0, 0}};
    EACH_LEVEL(k) {
        for (size_t s = 0; s < NORI__COUNT(sizes); s++) {
            for (size_t form = 0; form < 8 * NORI__COUNT(scales); form++) {
                size_t n = sizes[s], a_step = form & 1, b_step = form >> 1 & 1;
                bool is_signed = form >> 2 & 1;
                const float *scale = scales[form >> 3];
                nori__q8_pair q = {scale[0], scale[1], scale[2], is_signed ? -3 : 130, 7,
                                   is_signed ? 5 : 120, is_signed};
                buffer a = bytes(a_step ? n : 1), b = bytes(b_step ? n : 1);
                buffer sum = take(n, 1), product = take(n, 3);
                k->q8_add(n, a.p, a_step, b.p, b_step, &q, sum.p);
                k->q8_mul(n, a.p, a_step, b.p, b_step, &q, product.p);
                for (size_t i = 0; i < n; i++) {
                    int32_t u = number(a.p, i * a_step, is_signed) - q.a_zero;
                    int32_t v = number(b.p, i * b_step, is_signed) - q.b_zero;
                    float au = (float)u * q.a_scale, bv = (float)v * q.b_scale;
                    assert_int_equal(number(sum.p, i, is_signed),
                                     saturated((au + bv) / q.y_scale, q.y_zero, is_signed));
                    assert_int_equal(number(product.p, i, is_signed),
                                     saturated((float)(u * v) * q.y_scale, q.y_zero, is_signed));
                }
                give(&a);
                give(&b);
                give(&sum);
                give(&product);
            }
        }
    }
}

static void sums(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        for (size_t s = 0; s < 2 * NORI__COUNT(sizes); s++) {
            size_t n = sizes[s / 2];
            buffer x = bytes(n);
            double want = 0;
            for (size_t i = 0; i < n; i++) {
                want += (double)((float)(number(x.p, n - 1 - i, s % 2) - 9) * 0.0371f);
            }
            assert_true(k->q8_sum(n, x.p, s % 2, 9, 0.0371f) == want);
            give(&x);
        }
    }
}

static void ranges(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        for (size_t s = 0; s < NORI__COUNT(sizes); s++) {
            size_t n = sizes[s];
            float *x = floats(n), low = 0, high = 0, least = 0, most = 0;
            for (size_t i = 0; i < n; i++) {
                least = fminf(least, x[i]);
                most = fmaxf(most, x[i]);
            }
            assert_true(k->f32_range(n, x, &low, &high));
            assert_true(low == least && high == most);
            for (size_t i = 0; i < n; i += 1 + n / 5) {
                float kept = x[i];
                x[i] = NAN;
                assert_false(k->f32_range(n, x, &low, &high));
                x[i] = kept;
            }
            free(x);
        }
    }
}

static void from_sums(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        for (size_t s = 0; s < NORI__COUNT(sizes); s++) {
            for (int form = 0; form < 8; form++) {
                size_t n = sizes[s], scale_step = form & 1, bias_step = form >> 1 & 1;
                float *scale = floats(n + 1), *bias = floats(n + 1);
                buffer x = take(n * sizeof(int32_t), 4), y = take(n * sizeof(float), 4);
                const float *add = form >> 2 ? bias : NULL;
                for (size_t i = 0; i < n; i++) {
                    ((int32_t *)x.p)[i] = (int32_t)(next() * 2e9);
                }
                k->f32_from_sums(n, x.p, scale, scale_step, add, bias_step, y.p);
                for (size_t i = 0; i < n; i++) {
                    float v = (float)((int32_t *)x.p)[i] * scale[i * scale_step];
                    v = add ? v + add[i * bias_step] : v;
                    assert_true(((float *)y.p)[i] == v);
                }
                k->f32_from_sums(n, x.p, scale, scale_step, add, bias_step, x.p); /* in place */
                assert_memory_equal(x.p, y.p, n * sizeof(float));
                give(&x);
                give(&y);
                free(scale);
                free(bias);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table), cmocka_unit_test(largest),   cmocka_unit_test(pairs),
        cmocka_unit_test(sums),  cmocka_unit_test(ranges),    cmocka_unit_test(from_sums),
    };
    levels_fill();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

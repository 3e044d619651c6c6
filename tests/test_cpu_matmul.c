/* test_cpu_matmul.c: matrix products of the cpu provider against the reference kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cpu_compare.h"

static void matmul(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
    } cases[] = {
        {"7x33", "33x21"},     {"1x40", "40x50"},         {"3x17", "17x1"},
        {"4x300", "300x70"},   {"2x5x9", "9x18"},         {"2x3x13x20", "2x3x20x31"},
        {"3x7x20", "1x20x8"},  {"7x20", "4x20x8"},        {"20", "20x9"},
        {"6x20", "20"},        {"13x600", "600x35"},      {"1x1", "1x1"},
        {"65x9", "9x200"},     {"5x1x2x3x4", "2x1x4x6"},  {"5x0", "0x4"},
        {"0x4", "4x3"},        {"2x0x4", "2x4x3"},        {"20", "20"},
        /* Rows that crowd the cache are copied; deep ones are summed in blocks. */
        {"17x512", "512x70"},  {"3x5x1024", "1024x40"},   {"2x15x1536", "2x1536x33"},
        {"1x3x512", "6x512x9"},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        for (uint32_t constants = 0; constants < 4; constants += 2) {
            op o;
            op_begin(&o, "", "MatMul", 13);
            cpu_in(&o, NORI_FLOAT, cases[i].a);
            cpu_in(&o, NORI_FLOAT, cases[i].b);
            cpu_compare(&o, constants, 2e-5, true);
            op_end(&o);
        }
    }
}

static void gemm(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b, *c;
        int ta, tb;
        float alpha, beta;
        bool taken, constant_only;
    } cases[] = {
        {"7x33", "33x21", NULL, 0, 0, 1, 1, true, false},
        {"33x7", "33x21", "21", 1, 0, 1, 1, true, false},
        {"7x33", "21x33", "1x21", 0, 1, 1, 1, true, false},
        {"33x7", "21x33", "7x1", 1, 1, 1, 1, true, false},
        {"1x90", "40x90", "40", 0, 1, 1, 1, true, false},
        {"3x90", "90x37", "3x37", 0, 0, 1, 1, true, false},
        {"3x90", "90x37", "3x1", 0, 0, 1, 1, true, false},
        {"90x3", "90x37", "37", 1, 0, 1, 1, true, false},
        {"9x20", "20x13", "1", 0, 0, 1, 1, true, false},
        {"9x20", "20x13", "9x13", 0, 0, 0.5f, 1, true, true},
        {"9x20", "20x13", "9x13", 0, 0, 1, 2, false, false},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        for (uint32_t constants = 0; constants < 4; constants += 2) {
            op o;
            op_begin(&o, "", "Gemm", 13);
            cpu_in(&o, NORI_FLOAT, cases[i].a);
            cpu_in(&o, NORI_FLOAT, cases[i].b);
            if (cases[i].c) {
                cpu_in(&o, NORI_FLOAT, cases[i].c);
            }
            op_int(&o, "transA", cases[i].ta);
            op_int(&o, "transB", cases[i].tb);
            op_float(&o, "alpha", cases[i].alpha);
            op_float(&o, "beta", cases[i].beta);
            cpu_compare(&o, constants, 2e-5,
                        cases[i].taken && (constants || !cases[i].constant_only));
            op_end(&o);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul),
        cmocka_unit_test(gemm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

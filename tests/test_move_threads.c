/* test_move_threads.c: operators that move elements give the same by one thread and by three, for
 * elements of every width and tensors large enough to be shared out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "op_harness.h"

static nori__pool *pool;

static void counted(op *o, nori_type type, const char *shape)
{
    nori_tensor *t = op_tensor(type, shape, NULL);
    for (int64_t i = 0; i < t->count; i++) {
        nori__tensor_set_i64(t, i, i * 37 % 251 - (nori_type_bits(type) > 2 ? 125 : 0));
    }
    op_give(o, t);
}

/* The operator of o, run by threads; its output copied. */
static nori_tensor *by(op *o, nori__pool *threads)
{
    nori_tensor *copy = NULL;
    o->ran = false;
    o->pool = threads;
    assert_int_equal(op_status(o), NORI_OK);
    assert_int_equal(nori__tensor_copy(&nori__malloc, o->out[0], &copy, NULL), NORI_OK);
    return copy;
}

static const nori_type types[] = {NORI_INT4, NORI_INT8, NORI_INT16, NORI_INT32, NORI_INT64,
                                  NORI_COMPLEX128};

static void begin(op *o, size_t which, nori_type type)
{
    static const int64_t turned[] = {2, 0, 1};
    static const char *const names[] = {"Slice", "Slice", "Slice", "Transpose", "Concat", "Expand"};
    op_begin(o, "", names[which], 13);
    counted(o, type, which == 5 ? "40x1x61" : "40x50x61");
    switch (which) {
    case 0: /* short lines */
        op_in(o, NORI_INT64, "1", (double[]){3});
        op_in(o, NORI_INT64, "1", (double[]){6});
        op_in(o, NORI_INT64, "1", (double[]){2});
        break;
    case 1: /* steps */
        op_in(o, NORI_INT64, "2", (double[]){1, 0});
        op_in(o, NORI_INT64, "2", (double[]){49, 61});
        op_in(o, NORI_INT64, "2", (double[]){1, 2});
        op_in(o, NORI_INT64, "2", (double[]){2, 3});
        break;
    case 2: /* backwards */
        op_in(o, NORI_INT64, "2", (double[]){-1, -2});
        op_in(o, NORI_INT64, "2", (double[]){-1000, -1000});
        op_in(o, NORI_INT64, "2", (double[]){0, 2});
        op_in(o, NORI_INT64, "2", (double[]){-1, -1});
        break;
    case 3:
        op_ints(o, "perm", turned, 3);
        break;
    case 4:
        counted(o, type, "40x50x3");
        op_int(o, "axis", 2);
        break;
    default:
        op_in(o, NORI_INT64, "3", (double[]){40, 50, 61});
    }
}

static void same_by_threads(void **state)
{
    (void)state;
    for (size_t t = 0; t < NORI__COUNT(types); t++) {
        for (size_t which = 0; which < 6; which++) {
            op one, many;
            begin(&one, which, types[t]);
            begin(&many, which, types[t]);
            nori_tensor *a = by(&one, NULL), *b = by(&many, pool);
            assert_true(a->count > 1000);
            assert_int_equal(a->bytes, b->bytes);
            assert_memory_equal(a->data, b->data, a->bytes);
            nori_tensor_free(a);
            nori_tensor_free(b);
            op_end(&one);
            op_end(&many);
        }
    }
}

/* And what it gives is right: each element against where it comes from. */
static void right(void **state)
{
    (void)state;
    for (size_t which = 0; which < 4; which++) {
        op o;
        begin(&o, which, NORI_INT32);
        nori_tensor *y = by(&o, pool);
        const nori_tensor *x = o.in[0];
        int64_t at = 0;
        for (int64_t i = 0; i < y->dims[0]; i++) {
            for (int64_t j = 0; j < y->dims[1]; j++) {
                for (int64_t k = 0; k < y->dims[2]; k++, at++) {
                    int64_t from[3] = {i, j, k};
                    if (which == 0) {
                        from[2] = k + 3;
                    } else if (which == 1) {
                        from[1] = 1 + 2 * j;
                        from[2] = 3 * k;
                    } else if (which == 2) {
                        from[0] = 39 - i;
                        from[2] = 59 - k;
                    } else {
                        from[0] = j;
                        from[1] = k;
                        from[2] = i;
                    }
                    int64_t source = (from[0] * 50 + from[1]) * 61 + from[2];
                    assert_int_equal(((const int32_t *)y->data)[at],
                                     ((const int32_t *)x->data)[source]);
                }
            }
        }
        nori_tensor_free(y);
        op_end(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_by_threads), cmocka_unit_test(right)};
    if (nori__pool_create(&nori__malloc, 3, &pool, NULL) != NORI_OK) {
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    nori__pool_free(pool);
    return failed;
}

/* What a kernel may ask of the run it is in (src/ops/call.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ops/op.h"
#include "platform/env.h"

static void asks_for_its_values(void **state)
{
    (void)state;
    nori_node node = {0};
    nori_error err = {0};
    nori_tensor *a = NULL, *b = NULL;
    const int64_t dims[1] = {3};
    char work[8];
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 1, dims, &a, &err), NORI_OK);
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 1, dims, &b, &err), NORI_OK);
    const nori_tensor *in[2] = {a, NULL};
    nori_tensor *out[1] = {b};
    nori_call call = {.node = &node, .n_in = 2, .n_out = 1, .in = in, .out = out, .work = work,
                      .err = &err};
    assert_ptr_equal(nori_call_node(&call), &node);
    assert_ptr_equal(nori_call_input(&call, 0), a);
    assert_null(nori_call_input(&call, 1)); /* absent */
    assert_null(nori_call_input(&call, 2)); /* past the last */
    assert_ptr_equal(nori_call_output(&call, 0), b);
    assert_null(nori_call_output(&call, 1));
    assert_ptr_equal(nori_call_workspace(&call), work);
    assert_ptr_equal(nori_call_error(&call), &err);
    nori_tensor_free(a);
    nori_tensor_free(b);
}

enum { COUNT = 1000, GRAIN = 8 };

typedef struct job {
    unsigned char seen[COUNT]; /* how often; 100 more by a thread that may not be */
} job;

static void mark(void *user, int64_t begin, int64_t end, int thread)
{
    job *j = user;
    for (int64_t i = begin; i < end; i++) {
        j->seen[i] = (unsigned char)(j->seen[i] + 1 + 100 * (thread > 1));
    }
}

static void splits_over_the_threads_of_the_run(void **state)
{
    (void)state;
    nori_error err = {0};
    nori__pool *pool = NULL;
    assert_int_equal(nori__pool_create(nori__env_allocator(NULL), 4, &pool, &err), NORI_OK);
    for (int threads = 0; threads <= 2; threads++) { /* at most two threads: numbers 0 and 1 */
        job j = {{0}};
        nori_call call = {.pool = threads ? pool : NULL, .threads = threads, .err = &err};
        nori_call_parallel(&call, COUNT, GRAIN, mark, &j);
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(j.seen[i], 1);
        }
    }
    nori__pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_for_its_values),
        cmocka_unit_test(splits_over_the_threads_of_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

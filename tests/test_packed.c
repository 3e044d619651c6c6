/* Memory of packed weights in pieces: blocks that are aligned and do not meet, few allocations, nothing lost
 * where memory runs out. What plans find and note is tested in test_plan.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plan/packed.h"
#include "test_alloc.h"

#define MOST 200

typedef struct block {
    uint8_t *memory;
    size_t size;
} block;

static size_t size_of(size_t i)
{
    return i % 50 == 49 ? ((size_t)3 << 20) + i : i % 7 == 0 ? i / 7 : i * 97; /* 0 is one of them */
}

/* How many blocks could be had. Each is filled with its own number. */
static size_t take_all(nori__packs *p, block *blocks)
{
    const nori_allocator *a = nori__packs_allocator(p);
    size_t n = 0;
    for (; n < MOST; n++) {
        bool ready = true;
        blocks[n] = (block){nori__packed(a, size_of(n), &ready), size_of(n)};
        assert_false(ready);
        if (!blocks[n].memory) {
            break;
        }
        assert_true((uintptr_t)blocks[n].memory % NORI__PACK_ALIGN == 0);
        memset(blocks[n].memory, (int)n, blocks[n].size);
    }
    return n;
}

static void apart(void **state)
{
    (void)state;
    static const uint64_t expected[] = {0, 100000, 5000000, UINT64_MAX};
    for (size_t k = 0; k < sizeof(expected) / sizeof(expected[0]); k++) {
        test_alloc t;
        block blocks[MOST];
        test_alloc_init(&t, 0);
        nori__packs *p = nori__packs_plain(&t.allocator, expected[k]);
        const nori_allocator *a = nori__packs_allocator(p);
        void *other = nori__alloc(a, 100); /* not packed: it goes when it is given back */
        assert_int_equal(take_all(p, blocks), MOST);
        assert_true(t.calls < 100);
        size_t live = t.live;
        nori__release(a, other, 100);
        assert_int_equal(t.live, live - 100);
        for (size_t i = 0; i < MOST; i++) {
            for (size_t at = 0; at < blocks[i].size; at++) {
                if (blocks[i].memory[at] != (uint8_t)i) {
                    fail_msg("block %zu is not as it was written", i);
                }
            }
            nori__release(a, blocks[i].memory, blocks[i].size);
        }
        assert_int_equal(t.live, live - 100); /* pieces go together */
        nori__packs_free(p);
        assert_int_equal(t.live, 0);
        assert_false(t.wrong_size);
    }
}

static void out_of_memory(void **state)
{
    (void)state;
    for (size_t fail_at = 1; fail_at < 8; fail_at++) {
        test_alloc t;
        block blocks[MOST];
        test_alloc_init(&t, fail_at);
        nori__packs *p = nori__packs_plain(&t.allocator, 0);
        assert_true((p == NULL) == (fail_at == 1));
        assert_true(!p || take_all(p, blocks) < MOST);
        nori__packs_free(p);
        assert_int_equal(t.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(apart), cmocka_unit_test(out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

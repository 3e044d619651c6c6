/* Values that share bytes: what a Concat joins and a Split parts takes no memory and no copy of its
 * own, and every value is what it is where each has memory of its own (all of them outputs). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "make_model.h"
#include "nori/nori.h"
#include "text_model.h"

typedef struct ran {
    nori_tensor *out[2];
    uint64_t bytes; /* of activations */
} ran;

/* apart: every node's outputs are the model's too, so that nothing shares. */
static ran run_text(const char *text, size_t n_out, bool apart, const char *provider, int threads)
{
    text_model t;
    text_begin(&t, text, 18, false);
    nori__pb_graph *g = &t.m.graph;
    for (size_t i = 0; apart && i + 1 < g->nodes.count; i++) {
        for (size_t o = 0; o < g->nodes.items[i].outputs.count; o++) {
            make_output(&t.m, g, g->nodes.items[i].outputs.items[o].p, NORI_FLOAT, NULL);
        }
    }
    nori_error err = {0};
    nori_session *session = text_session(&t, provider, threads, 2, &err);
    if (!session) {
        fail_msg("%s: %s: %s", text, err.where, err.message);
    }
    nori_tensor *out[32] = {NULL};
    size_t all = g->outputs.count;
    assert_true(all <= 32);
    ran r = {{NULL, NULL}, 0};
    for (int turn = 0; turn < 2; turn++) { /* the second finds what the first left */
        for (size_t i = 0; i < all; i++) {
            nori_tensor_free(out[i]);
            out[i] = NULL;
        }
        nori_status status = nori_session_run(session, (const nori_tensor *const *)t.in, t.n_in,
                                              out, all, &err);
        if (status != NORI_OK) {
            print_error("%s: %s: %s\n", text, err.where, err.message);
        }
        assert_int_equal(status, NORI_OK);
    }
    for (size_t i = 0; i < all; i++) {
        const char *name = g->outputs.items[i].name.p;
        const nori__pb_node *last = &g->nodes.items[g->nodes.count - 1];
        bool kept = false;
        for (size_t o = 0; o < n_out && o < last->outputs.count; o++) {
            if (strcmp(last->outputs.items[o].p, name) == 0) {
                r.out[o] = out[i];
                kept = true;
            }
        }
        if (!kept) {
            nori_tensor_free(out[i]);
        }
    }
    nori_memory_stats stats = {.size = sizeof(stats)};
    nori_session_memory(session, &stats);
    r.bytes = stats.peak_activation_bytes;
    nori_session_free(session);
    text_end(&t);
    return r;
}

static bool near(const nori_tensor *a, const nori_tensor *b)
{
    bool alike = a->count == b->count;
    for (int64_t i = 0; alike && i < a->count; i++) {
        double x = nori__tensor_get_f64(a, i), y = nori__tensor_get_f64(b, i);
        alike = fabs(x - y) <= 1e-4 * (1 + fabs(y));
    }
    return alike;
}

/* The same values with and without sharing (other operators are joined, so a few bits may differ);
 * the bytes of activations with it. */
static uint64_t same(const char *text, size_t n_out)
{
    uint64_t bytes = 0;
    static const char *const providers[] = {"reference", "cpu"};
    for (size_t p = 0; p < 2; p++) {
        for (int threads = 1; threads <= 3; threads += 2) {
            ran a = run_text(text, n_out, false, providers[p], threads);
            ran b = run_text(text, n_out, true, providers[p], threads);
            for (size_t o = 0; o < n_out; o++) {
                if (!near(a.out[o], b.out[o])) {
                    fail_msg("%s on %s: output %zu differs", text, providers[p], o);
                }
                nori_tensor_free(a.out[o]);
                nori_tensor_free(b.out[o]);
            }
            bytes = a.bytes > bytes ? a.bytes : bytes;
        }
    }
    return bytes;
}

static void joined_values_lie_in_their_whole(void **state)
{
    (void)state;
    /* 2 x 4096 bytes joined, and what is made of them in place: 8192, not 16384. */
    assert_int_equal(same("x=f1,4,16,16; a=Neg x; b=Abs x; c=Concat a b axis=1; d=Neg c; y=Abs d;", 1),
                     8192);
    /* A chain: each whole is a piece of the next. */
    assert_int_equal(same("x=f1,4,16,16; a=Neg x; b=Abs x; c=Concat a b axis=1; d=Exp x;"
                          "e=Concat c d axis=1; f=Sin x; g=Concat f e axis=-3; y=Neg g;", 1),
                     4 * 4096);
    /* Parts of a whole are looked at where they are; two are larger than one of them. */
    assert_int_equal(same("x=f1,4,16,16; a=Neg x; p,q=Split a axis=1; r=Exp p; s=Sin q; y=Add r s;", 1),
                     4096 + 2048);
}

static void values_stay_what_they_are(void **state)
{
    (void)state;
    static const char *const texts[] = {
        /* read again after the whole was made, and after something was made from it in place */
        "x=f1,4,8,8; a=Neg x; b=Abs x; c=Concat a b axis=1; d=Exp c; e=Sin a; f=Sin b;"
        "g=Concat e f axis=1; y=Add d g;",
        "x=f1,4,8,8; a=Neg x; b=Abs x; c=Concat a b axis=1; d=Exp a; e=Concat d b axis=1; y=Add c e;",
        /* one value twice, and in two wholes */
        "x=f1,4,8,8; a=Neg x; c=Concat a a axis=1; y=Exp c;",
        "x=f1,4,8,8; a=Neg x; b=Abs x; c=Concat a b axis=1; d=Concat b a axis=1; y=Sub c d;",
        /* interleaved, unaligned, constants, empty ones */
        "x=f2,4,8,8; a=Neg x; b=Abs x; c=Concat a b axis=1; y=Exp c;",
        "x=f1,5; a=Neg x; b=Abs x; c=Concat a b axis=1; y=Exp c;",
        "x=f1,4,8,8; k=F1,4,8,8; a=Neg x; c=Concat a k a k axis=1; y=Exp c;",
        "x=f1,16; z=F1,0; a=Neg x; c=Concat z a z axis=1; y=Exp c;",
        /* a whole and its piece in one node; a piece that could be overwritten */
        "x=f1,1,8,8; a=Neg x; b=Abs x; c=Concat a b axis=1; y=Add a c;",
        "x=f1,1,8,8; a=Neg x; b=Abs x; c=Concat a b axis=1; d=Mul c a; e=Add d b; y=Add e c;",
        /* views of pieces */
        "x=f1,4,8,8; n=L2:1,256; a=Neg x; r=Reshape a n; b=Abs r; c=Concat r b axis=1; d=Exp c; y=Neg d;",
        /* parts of parts, parts joined again in another order */
        "x=f1,4,8,8; a=Neg x; p,q=Split a axis=1; u,v=Split q axis=1; c=Concat v p u axis=1; y=Exp c;",
        "x=f1,4,8,8; a=Neg x; p,q=Split a axis=1; u=Exp p; v=Neg q; w=Concat u v axis=1; y=Add w a;",
        "x=f1,4,8,8; s=L2:1,3; a=Neg x; p,q=Split a s axis=1; u=Exp q; y=Concat u p axis=1;",
        /* slices: overlapping, with the whole read afterwards, from the end, with steps, across */
        "x=f1,4,8,8; i=L1:0; m=L1:1; e=L1:-1; k=L1:3; z=L1:4; o=L1:1; a=Neg x; p=Slice a i k o;"
        "q=Slice a m k o; u=Slice a e z o; v=Slice a m e o; s=Sin v; t=Add s u; r=Mul t q;"
        "w=Concat s t p r a axis=1; y=Neg w;",
        "x=f1,4,8,8; m=L1:1; k=L1:3; o=L1:1; a=Neg x; q=Slice a m k o; b=Abs q; c=Add b q; y=Exp c;",
        "x=f1,4,8,8; i=L1:3; m=L1:-9; o=L1:1; t=L1:-1; a=Neg x; q=Slice a i m o t; y=Exp q;",
        "x=f1,4,8,8; i=L1:0; m=L1:4; o=L1:1; t=L1:2; a=Neg x; q=Slice a i m o t; y=Exp q;",
        "x=f1,4,8,8; i=L1:1; m=L1:3; o=L1:2; a=Neg x; q=Slice a i m o; y=Exp q;",
        "x=f2,4,8,8; i=L1:1; m=L1:3; o=L1:1; a=Neg x; q=Slice a i m o; y=Exp q;",
        "x=f1,5,3; i=L1:1; m=L1:3; o=L1:1; a=Neg x; q=Slice a i m o; y=Exp q;",
        "x=f1,4,8,8; i=L2:1,2; m=L2:3,4; o=L2:1,2; a=Neg x; q=Slice a i m o; y=Exp q;",
        /* a chain whose pieces live long */
        "x=f1,4,8,8; a=Neg x; b=Conv a w; w=F4,4,1,1; c=Concat a b axis=1; v=F4,8,1,1; d=Conv c v;"
        "e=Concat c d axis=1; f=Relu e; y=Concat f a axis=1;",
    };
    for (size_t i = 0; i < NORI__COUNT(texts); i++) {
        same(texts[i], 1);
    }
    same("x=f1,4,8,8; a=Neg x; p,q=Split a axis=1;", 2);
}

static void channel_blocks_are_joined_in_place(void **state)
{
    (void)state;
    same("x=f1,3,12,12; w=F32,3,3,3; a=Conv x w; u=F32,32,1,1; b=Conv a u; r=Relu b; v=F48,32,3,3;"
         "d=Conv a v pads=[1,1,1,1]; s=Relu d; c=Concat r s axis=1; k=F16,80,1,1; y=Conv c k;", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joined_values_lie_in_their_whole),
        cmocka_unit_test(values_stay_what_they_are),
        cmocka_unit_test(channel_blocks_are_joined_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The time from bytes to session grows with the number of nodes, and hardly faster: chains with and
 * without weights, quantized pairs, wide graphs. CPU time, the least of several tries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "busy.h"
#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#endif

#include "big_model.h"
#include "platform/platform.h"

#define TRIES 60
#define LEAST_TRIES 16 /* a neighbour's bursts last some of them */
#define NODES 10000 /* and twice that, for the growth */
#define MANY 40000
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMIT_NS 20000000000u /* instrumented */
#else
#define LIMIT_NS 1000000000u
#endif
#define DOUBLING 2.3

static const int64_t row[2] = {1, 8};

/* x -> Relu, Sigmoid, Relu ... -> y. */
static void chain(big *b, int n)
{
    char in[32] = "x", out[32];
    for (int i = 0; i < n; i++) {
        snprintf(out, sizeof(out), i + 1 < n ? "v%d" : "y", i);
        big_node(b, i % 2 ? "Sigmoid" : "Tanh", in, out);
        memcpy(in, out, sizeof(in));
    }
}

/* The same with a weight a node: v + w. */
static void weights(big *b, int n)
{
    char in[32] = "x", out[32], both[96], name[32];
    float w[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (int i = 0; i < n; i++) {
        snprintf(out, sizeof(out), i + 1 < n ? "v%d" : "y", i);
        snprintf(name, sizeof(name), "w%d", i);
        snprintf(both, sizeof(both), "%s %s", in, name);
        w[0] = (float)i;
        big_tensor(b, name, NORI_FLOAT, 1, row + 1, w, sizeof(w), NULL, 0);
        big_node(b, i % 2 ? "Mul" : "Add", both, out);
        memcpy(in, out, sizeof(in));
    }
}

/* Quantize, dequantize, Relu, over and over. */
static void pairs(big *b, int n)
{
    char in[32] = "x", out[32], ins[96], q[32];
    float scale = 0.1f;
    uint8_t zero = 128;
    big_tensor(b, "scale", NORI_FLOAT, 0, NULL, &scale, 4, NULL, 0);
    big_tensor(b, "zero", NORI_UINT8, 0, NULL, &zero, 1, NULL, 0);
    for (int i = 0; i < n; i += 3) {
        snprintf(q, sizeof(q), "q%d", i);
        snprintf(ins, sizeof(ins), "%s scale zero", in);
        big_node(b, "QuantizeLinear", ins, q);
        snprintf(ins, sizeof(ins), "%s scale zero", q);
        snprintf(out, sizeof(out), "d%d", i);
        big_node(b, "DequantizeLinear", ins, out);
        snprintf(in, sizeof(in), i + 3 < n ? "v%d" : "y", i);
        big_node(b, "Relu", out, in);
    }
}

/* One value read by all, all of them read by the last: and every one an output in turn. */
static void wide(big *b, int n)
{
    nori__text ins = wire_new();
    char out[32];
    for (int i = 0; i + 1 < n; i++) {
        snprintf(out, sizeof(out), "v%d", i);
        big_node(b, i % 2 ? "Relu" : "Tanh", "x", out);
        nori__text_printf(&ins, "%s%s", i ? " " : "", out);
    }
    big_node(b, "Sum", ins.data, "y");
    nori__text_free(&ins);
}

static void many_outputs(big *b, int n)
{
    char out[32];
    for (int i = 0; i + 1 < n; i++) {
        snprintf(out, sizeof(out), "v%d", i);
        big_node(b, i % 2 ? "Relu" : "Tanh", "x", out);
        big_output(b, out, NORI_FLOAT, 2, row);
    }
    big_node(b, "Relu", "x", "y");
}

/* Bytes to session, and the first run: everything before the first answer. */
static uint64_t create(const big *b, nori_timing *timing)
{
    nori_error err = {0};
    nori_model *model = NULL;
    nori_session *session = NULL;
    uint64_t start = nori__cpu_ns();
    nori_status s = nori_model_load_memory(NULL, b->model.data, b->model.size, NULL, NULL, &model,
                                           &err);
    if (s == NORI_OK) {
        s = nori_session_create(model, NULL, &session, &err);
    }
    uint64_t took = nori__cpu_ns() - start;
    if (s != NORI_OK) {
        print_error("%s: %s\n", err.where, err.message);
    }
    assert_int_equal(s, NORI_OK);
    timing->size = sizeof(*timing);
    nori_session_timing(session, timing);
    nori_session_free(session);
    nori_model_free(model);
    return took;
}

static void make_bytes(big *b, void (*make)(big *, int), int n)
{
    big_begin(b);
    make(b, n);
    big_input(b, "x", NORI_FLOAT, 2, row);
    big_output(b, "y", NORI_FLOAT, 2, row);
    big_finish(b, 17);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* n nodes and twice as many in turn, so that what else the machine does meets both: the growth is the
 * median over pairs of neighbours, or that of the least of each where this is less: a burst that spoils
 * the one leaves the other. As many tries as it takes to be within bounds: a step that grows faster than
 * nodes stays beyond them however often it is tried. once, twice: the least. */
static double growth(void (*make)(big *, int), int n, uint64_t *once, uint64_t *twice)
{
    big b[2];
    double ratio[TRIES], sorted[TRIES], grown = 0;
    *once = *twice = UINT64_MAX;
    make_bytes(&b[0], make, n);
    make_bytes(&b[1], make, 2 * n);
    for (int i = 0; i < TRIES; i++) {
        nori_timing t, other;
        uint64_t first = create(&b[0], &t), second = create(&b[1], &other);
        *once = first < *once ? first : *once;
        *twice = second < *twice ? second : *twice;
        ratio[i] = (double)second / (double)first;
        if (i + 1 < LEAST_TRIES) {
            continue;
        }
        memcpy(sorted, ratio, sizeof(*ratio) * ((size_t)i + 1));
        qsort(sorted, (size_t)i + 1, sizeof(*sorted), by_size);
        grown = (double)*twice / (double)*once;
        grown = sorted[(i + 1) / 2] < grown ? sorted[(i + 1) / 2] : grown;
        if (grown < DOUBLING) {
            break;
        }
    }
    big_end(&b[0]);
    big_end(&b[1]);
    return grown;
}

static void near_linear(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*make)(big *, int);
    } kinds[] = {{"chain", chain}, {"weights", weights}, {"pairs", pairs}, {"wide", wide},
                 {"many outputs", many_outputs}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        nori_timing t = {0};
        uint64_t once, twice, many = UINT64_MAX;
        double grown = growth(kinds[i].make, NODES, &once, &twice);
        big b;
        make_bytes(&b, kinds[i].make, MANY);
        for (int k = 0; k < TRIES && (k < 2 || many >= LIMIT_NS); k++) {
            uint64_t took = create(&b, &t);
            many = took < many ? took : many;
        }
        big_end(&b);
        print_message("%-13s %d nodes %5.1f ms, twice as many %.2f times that; %d nodes %5.1f ms: "
                      "read %.1f build %.1f infer %.1f optimize %.1f plan %.1f\n",
                      kinds[i].name, NODES, (double)once / 1e6, grown, MANY,
                      (double)many / 1e6, (double)t.read_ns / 1e6, (double)t.build_ns / 1e6,
                      (double)t.infer_ns / 1e6, (double)t.optimize_ns / 1e6,
                      (double)t.plan_ns / 1e6);
        ASSERT_TIMES(many, LIMIT_NS);
        ASSERT_TIMES(grown, DOUBLING);
    }
}

/* Every phase of a session takes some time, and together no more than passed. */
static void phases(void **state)
{
    (void)state;
    nori_timing t = {0};
    big b;
    make_bytes(&b, chain, 2000);
    uint64_t start = nori__now_ns();
    create(&b, &t);
    uint64_t passed = nori__now_ns() - start;
    assert_true(t.read_ns > 0 && t.build_ns > 0 && t.infer_ns > 0 && t.optimize_ns > 0 &&
                t.plan_ns > 0);
    assert_true(t.read_ns + t.build_ns + t.infer_ns + t.optimize_ns + t.plan_ns < passed);
    nori_timing small = {.size = offsetof(nori_timing, build_ns), .build_ns = 7};
    nori_model *model = NULL;
    nori_session *session = NULL;
    assert_int_equal(nori_model_load_memory(NULL, b.model.data, b.model.size, NULL, NULL, &model,
                                            NULL), NORI_OK);
    assert_int_equal(nori_session_create(model, NULL, &session, NULL), NORI_OK);
    nori_session_timing(session, &small);
    assert_true(small.read_ns > 0 && small.build_ns == 7); /* an older caller's struct */
    nori_session_free(session);
    nori_model_free(model);
    big_end(&b);
}

/* What the system takes for fresh pages is not what is measured, nor where it puts them: the heap keeps
 * what it once had, in large pages where there are any. */
static void settle_heap(void)
{
#if defined(M_MMAP_MAX) && defined(MADV_HUGEPAGE)
    const size_t page = (size_t)2 << 20, room = 160 * ((size_t)1 << 20);
    mallopt(M_MMAP_MAX, 0); /* no threshold: beyond 32 MB it is refused, and stays at 128 KB */
    mallopt(M_TRIM_THRESHOLD, 2000000000);
    char *heap = malloc(room);
    if (heap) {
        char *first = heap + (page - (uintptr_t)heap % page);
        (void)madvise(first, (size_t)(heap + room - first) / page * page, MADV_HUGEPAGE);
        memset(heap, 0, room);
        free(heap);
    }
#endif
}

int main(void)
{
    settle_heap();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_linear),
        cmocka_unit_test(phases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

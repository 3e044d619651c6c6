/* The steady state allocates nothing, on each provider: runs after the second, with outputs given by
 * the caller, take memory neither from the environment's allocator nor from the C library; with fresh
 * outputs only these. Counted in the allocator hook and by standing in for malloc and its kin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>

#include "big_model.h"

static atomic_int counted;

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define STANDS_IN 1
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
void *malloc(size_t size)
{
    atomic_fetch_add(&counted, 1);
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size)
{
    atomic_fetch_add(&counted, 1);
    return __libc_calloc(count, size);
}
void *realloc(void *memory, size_t size)
{
    atomic_fetch_add(&counted, 1);
    return __libc_realloc(memory, size);
}
void *aligned_alloc(size_t align, size_t size)
{
    atomic_fetch_add(&counted, 1);
    return __libc_memalign(align, size);
}
#else
#define STANDS_IN 0
#endif

static void *count_alloc(void *user, size_t size, size_t align)
{
    (void)align;
    atomic_fetch_add((atomic_int *)user, 1);
    return aligned_alloc(64, (size + 63) / 64 * 64);
}

static void count_release(void *user, void *memory, size_t size)
{
    (void)user;
    (void)size;
    free(memory);
}

/* Convolution, pooling, products, rows, movers: a bit of each. */
static void small_network(big *b)
{
    static float w[8 * 3 * 3 * 3], v[8 * 10];
    big_begin(b);
    big_tensor(b, "w", NORI_FLOAT, 4, (int64_t[]){8, 3, 3, 3}, w, sizeof(w), NULL, 0);
    big_tensor(b, "v", NORI_FLOAT, 2, (int64_t[]){8, 10}, v, sizeof(v), NULL, 0);
    big_node(b, "Conv", "x w", "a");
    big_node(b, "Relu", "a", "b");
    big_node(b, "Sigmoid", "b", "c");
    big_node(b, "Mul", "b c", "d");
    big_node(b, "GlobalAveragePool", "d", "e");
    big_node(b, "Flatten", "e", "f");
    big_node(b, "MatMul", "f v", "g");
    big_node(b, "Softmax", "g", "h");
    big_node(b, "Transpose", "h", "i");
    big_node(b, "Shape", "i", "j");
    big_node(b, "Reshape", "h j", "y");
    big_input(b, "x", NORI_FLOAT, 4, (int64_t[]){-1, 3, 32, 32});
    big_output(b, "y", NORI_FLOAT, 2, (int64_t[]){10, -1});
    big_finish(b, 17);
}

static void steady(const char *provider, int threads)
{
    nori_session_options so;
    atomic_int hooked = 0;
    nori_error err = {0};
    nori_env *env = NULL;
    nori_env_options eo;
    nori_model *model = NULL;
    nori_session *s = NULL;
    nori_tensor *in = NULL, *given[1] = {NULL}, *fresh[1] = {NULL};
    big b;
    small_network(&b);
    nori_env_options_default(&eo);
    eo.allocator = (nori_allocator){count_alloc, count_release, &hooked};
    eo.threads = threads;
    assert_int_equal(nori_env_create(&eo, &env, &err), NORI_OK);
    assert_int_equal(nori_model_load_memory(env, b.model.data, b.model.size, NULL, NULL, &model,
                                            &err), NORI_OK);
    nori_session_options_default(&so);
    so.providers = provider;
    assert_int_equal(nori_session_create(model, &so, &s, &err), NORI_OK);
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 4, (int64_t[]){2, 3, 32, 32}, &in, &err),
                     NORI_OK);
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 2, (int64_t[]){10, 2}, &given[0], &err),
                     NORI_OK);
    for (int i = 0; i < 6; i++) {
        int before = atomic_load(&counted), before_hook = atomic_load(&hooked);
        assert_int_equal(nori_session_run(s, (const nori_tensor *const[]){in}, 1, given, 1, &err),
                         NORI_OK);
        int took = atomic_load(&counted) - before, hook = atomic_load(&hooked) - before_hook;
        if (i == 0) {
            assert_true(hook > 0); /* the counting works */
            assert_true(!STANDS_IN || took > 0);
        } else if (i >= 2) {
            assert_int_equal(hook, 0);
            assert_int_equal(took, 0);
        }
    }
    for (int i = 0; i < 3; i++) {
        int before_hook = atomic_load(&hooked);
        assert_int_equal(nori_session_run(s, (const nori_tensor *const[]){in}, 1, fresh, 1, &err),
                         NORI_OK);
        assert_in_range(atomic_load(&hooked) - before_hook, 1, 2); /* the tensor and its bytes */
        nori_tensor_free(fresh[0]);
        fresh[0] = NULL;
    }
    nori_tensor_free(in);
    nori_tensor_free(given[0]);
    nori_session_free(s);
    nori_model_free(model);
    nori_env_free(env);
    big_end(&b);
}

static void networks(void **state)
{
    (void)state;
    steady("cpu", 1);
    steady("cpu", 3);
    steady("reference", 1);
    steady("reference", 3);
}

/* ---- one operator at a time ---- */

#define MOST_OUT 3
/* Nothing may be taken from the second run on; where data decide the output's shape from the third,
 * as the first run's outputs have left with the caller. */
#define SETTLED(late) ((late) ? 2 : 1)

typedef struct one {
    const char *op, *ins, *attr; /* attr: an integer, or NULL */
    int64_t value;
    int n_out;
    int rank; /* of x, float32 */
    int64_t dims[4];
    bool by_data; /* its outputs' shapes are told by data alone */
} one;

static const one ones[] = {
    {"Conv", "x w", NULL, 0, 1, 4, {1, 3, 9, 9}, false},
    {"ConvTranspose", "x wt", NULL, 0, 1, 4, {1, 3, 5, 5}, false},
    {"MatMul", "x m", NULL, 0, 1, 2, {7, 8}, false},
    {"MatMul", "x x", NULL, 0, 1, 3, {2, 6, 6}, false},
    {"Gemm", "x m", NULL, 0, 1, 2, {7, 8}, false},
    {"ReduceSum", "x first", NULL, 0, 1, 3, {4, 5, 6}, false},
    {"ReduceMax", "x first", NULL, 0, 1, 3, {4, 5, 6}, false},
    {"ReduceLogSumExp", "x first", NULL, 0, 1, 3, {4, 5, 6}, false},
    {"ArgMax", "x", "axis", 1, 1, 3, {4, 5, 6}, false},
    {"Resize", "x  scales", NULL, 0, 1, 4, {1, 2, 5, 5}, false},
    {"GlobalAveragePool", "x", NULL, 0, 1, 4, {1, 2, 5, 5}, false},
    {"Softmax", "x", NULL, 0, 1, 2, {7, 8}, false},
    {"LayerNormalization", "x ones", NULL, 0, 1, 2, {7, 8}, false},
    {"InstanceNormalization", "x three three", NULL, 0, 1, 4, {2, 3, 5, 5}, false},
    {"BatchNormalization", "x three three three three", NULL, 0, 1, 4, {2, 3, 5, 5}, false},
    {"Attention", "x x x", NULL, 0, 1, 4, {1, 2, 6, 8}, false},
    {"LSTM", "x lw lr", "hidden_size", 4, 3, 3, {5, 2, 3}, false},
    {"GRU", "x gw gr", "hidden_size", 4, 2, 3, {5, 2, 3}, false},
    {"RNN", "x rw rr", "hidden_size", 4, 2, 3, {5, 2, 3}, false},
    {"TopK", "x two", NULL, 0, 2, 2, {7, 8}, false},
    {"Gather", "x ids", NULL, 0, 1, 2, {7, 8}, false},
    {"Concat", "x x", "axis", 1, 1, 2, {7, 8}, false},
    {"Pad", "x pads", NULL, 0, 1, 2, {7, 8}, false},
    {"Slice", "x first two", NULL, 0, 1, 2, {7, 8}, false},
    {"Split", "x", "num_outputs", 2, 2, 2, {8, 8}, false},
    {"Transpose", "x", NULL, 0, 1, 3, {4, 5, 6}, false},
    {"CumSum", "x first0", NULL, 0, 1, 2, {7, 8}, false},
    {"Where", "yes x x", NULL, 0, 1, 2, {7, 8}, false},
    {"Mul", "x x", NULL, 0, 1, 2, {7, 8}, false},
    {"Max", "x x x", NULL, 0, 1, 2, {7, 8}, false},
    {"Erf", "x", NULL, 0, 1, 2, {7, 8}, false},
    {"Cast", "x", "to", NORI_INT64, 1, 2, {7, 8}, false},
    {"QuantizeLinear", "x s z", NULL, 0, 1, 2, {7, 8}, false},
    {"DynamicQuantizeLinear", "x", NULL, 0, 3, 2, {7, 8}, false},
    {"DFT", "x", NULL, 0, 1, 3, {1, 12, 1}, false},
    {"NonZero", "x", NULL, 0, 1, 2, {7, 8}, true},
    {"Unique", "x", NULL, 0, 1, 1, {9}, true},
    {"Compress", "x few", "axis", 0, 1, 2, {3, 4}, true},
};

static void add_constants(big *b)
{
    static float many[4 * 3 * 3 * 3], unit[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const float scales[4] = {1, 1, 2, 2}, s = 0.5f;
    static const uint8_t z = 128, yes = 1, few[3] = {1, 0, 1};
    static const int64_t pads[4] = {1, 0, 1, 2}, ids[3] = {0, 2, 1}, zero = 0, two = 2;
    static const struct {
        const char *name;
        int rank;
        int64_t dims[4];
    } weights[] = {{"w", 4, {4, 3, 3, 3}}, {"wt", 4, {3, 2, 3, 3}}, {"m", 2, {8, 5}},
                   {"lw", 3, {1, 16, 3}},  {"lr", 3, {1, 16, 4}},   {"gw", 3, {1, 12, 3}},
                   {"gr", 3, {1, 12, 4}},  {"rw", 3, {1, 4, 3}},    {"rr", 3, {1, 4, 4}}};
    for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
        many[i] = (float)(i % 7) - 3;
    }
    for (size_t i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
        size_t bytes = sizeof(float);
        for (int d = 0; d < weights[i].rank; d++) {
            bytes *= (size_t)weights[i].dims[d];
        }
        assert_true(bytes <= sizeof(many));
        big_tensor(b, weights[i].name, NORI_FLOAT, weights[i].rank, weights[i].dims, many, bytes,
                   NULL, 0);
    }
    big_tensor(b, "ones", NORI_FLOAT, 1, (int64_t[]){8}, unit, 32, NULL, 0);
    big_tensor(b, "three", NORI_FLOAT, 1, (int64_t[]){3}, unit, 12, NULL, 0);
    big_tensor(b, "scales", NORI_FLOAT, 1, (int64_t[]){4}, scales, 16, NULL, 0);
    big_tensor(b, "s", NORI_FLOAT, 0, NULL, &s, 4, NULL, 0);
    big_tensor(b, "z", NORI_UINT8, 0, NULL, &z, 1, NULL, 0);
    big_tensor(b, "yes", NORI_BOOL, 0, NULL, &yes, 1, NULL, 0);
    big_tensor(b, "few", NORI_BOOL, 1, (int64_t[]){3}, few, 3, NULL, 0);
    big_tensor(b, "pads", NORI_INT64, 1, (int64_t[]){4}, pads, 32, NULL, 0);
    big_tensor(b, "ids", NORI_INT64, 1, (int64_t[]){3}, ids, 24, NULL, 0);
    big_tensor(b, "first", NORI_INT64, 1, (int64_t[]){1}, &zero, 8, NULL, 0);
    big_tensor(b, "first0", NORI_INT64, 0, NULL, &zero, 8, NULL, 0);
    big_tensor(b, "two", NORI_INT64, 1, (int64_t[]){1}, &two, 8, NULL, 0);
}

/* Behind Reshape by a shape that is fed, so that sizes are not known before the run: late steps. */
static void one_model(big *b, const one *o, bool late)
{
    char outs[16] = "y0 y1 y2";
    outs[3 * o->n_out - 1] = 0;
    big_begin(b);
    add_constants(b);
    nori__text attrs = wire_new();
    if (o->attr) {
        big_attr_int(&attrs, o->attr, o->value);
    }
    if (late) {
        big_node(b, "Reshape", "fed shape", "x");
    }
    big_node_with(b, o->op, o->ins, outs, &attrs);
    big_input(b, late ? "fed" : "x", NORI_FLOAT, o->rank, o->dims);
    if (late) {
        big_input(b, "shape", NORI_INT64, 1, (int64_t[]){o->rank});
    }
    for (int i = 0; i < o->n_out; i++) {
        char name[3] = {'y', (char)('0' + i), 0};
        big_output(b, name, NORI_UNDEFINED, -1, NULL);
    }
    big_finish(b, 24);
}

static void check_one(const one *o, const char *provider, bool late)
{
    atomic_int hooked = 0;
    nori_error err = {0};
    nori_env *env = NULL;
    nori_env_options eo;
    nori_session_options so;
    nori_model *model = NULL;
    nori_session *s = NULL;
    nori_tensor *in[2] = {NULL, NULL}, *out[MOST_OUT] = {NULL};
    big b;
    one_model(&b, o, late);
    nori_env_options_default(&eo);
    eo.allocator = (nori_allocator){count_alloc, count_release, &hooked};
    eo.threads = 1;
    assert_int_equal(nori_env_create(&eo, &env, &err), NORI_OK);
    nori_session_options_default(&so);
    so.providers = provider;
    nori_status made = nori_model_load_memory(env, b.model.data, b.model.size, NULL, NULL, &model,
                                              &err);
    made = made == NORI_OK ? nori_session_create(model, &so, &s, &err) : made;
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, o->rank, o->dims, &in[0], &err), NORI_OK);
    assert_int_equal(nori_tensor_create(NULL, NORI_INT64, 1, (int64_t[]){o->rank}, &in[1], &err),
                     NORI_OK);
    memcpy(nori_tensor_data(in[1]), o->dims, (size_t)o->rank * sizeof(int64_t));
    for (int64_t i = 0; i < nori_tensor_elements(in[0]); i++) {
        ((float *)nori_tensor_data(in[0]))[i] = (float)(i * 5 % 11) - 4;
    }
    for (int run = 0; made == NORI_OK && run < 5; run++) {
        int before = atomic_load(&counted), before_hook = atomic_load(&hooked);
        made = nori_session_run(s, (const nori_tensor *const *)in, late ? 2 : 1, out,
                                (size_t)o->n_out, &err); /* after the first run into its outputs */
        int took = atomic_load(&counted) - before, hook = atomic_load(&hooked) - before_hook;
        assert_true(run > 0 || hook > 0);
        if (made == NORI_OK && run >= SETTLED(late || o->by_data) && hook + took > 0) {
            print_error("%s on %s%s: run %d takes memory %d times, %d from the hook\n", o->op,
                        provider, late ? ", late" : "", run, took, hook);
            assert_int_equal(took + hook, 0);
        }
    }
    if (made != NORI_OK) {
        print_error("%s: %s: %s\n", o->op, err.where, err.message);
    }
    assert_int_equal(made, NORI_OK);
    for (int i = 0; i < MOST_OUT; i++) {
        nori_tensor_free(out[i]);
    }
    nori_tensor_free(in[0]);
    nori_tensor_free(in[1]);
    nori_session_free(s);
    nori_model_free(model);
    nori_env_free(env);
    big_end(&b);
}

static void operators(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(ones) / sizeof(ones[0]); i++) {
        check_one(&ones[i], "cpu", false);
        check_one(&ones[i], "reference", false);
        check_one(&ones[i], "cpu", true);
        check_one(&ones[i], "reference", true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks),
        cmocka_unit_test(operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

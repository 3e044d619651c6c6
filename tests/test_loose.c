/* Weights at any address of a file: the same bytes, shifted by 0 to 7, give the same results; what is
 * packed or gathered is never copied, what a kernel reads is, once, when it first runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>

#include "big_model.h"
#include "graph/graph.h"
#include "nori/provider.h"
#include "nori/tools.h"

enum { SHIFTS = 8, OUTPUTS = 12 };

static const char *const outputs[OUTPUTS] = {"winograd", "point", "depth", "turned", "product", "gemm",
                                             "rows", "lstm", "sum", "half", "double", "branch"};

static bool lists; /* floats are float_data, doubles double_data: in a file the same bytes as raw_data */

static void list_tensor(big *b, const char *name, nori_type type, int rank, const int64_t *dims,
                        const void *data, size_t size)
{
    nori__text t = wire_new();
    for (int d = 0; d < rank; d++) {
        wire_int(&t, 1, dims[d]);
    }
    wire_int(&t, 2, type);
    wire_list(&t, type == NORI_FLOAT ? 4 : 10, type, data, size);
    wire_str(&t, 8, name);
    wire_sub(&b->graph, 5, &t);
}

/* count values that differ, of a type of floats. */
static void weight(big *b, const char *name, nori_type type, int rank, const int64_t *dims)
{
    size_t count = 1, width = nori_type_bits(type) / 8;
    for (int d = 0; d < rank; d++) {
        count *= (size_t)dims[d];
    }
    assert_true(count * width >= NORI__LOOSE_LEAST);
    char *data = malloc(count * width);
    assert_non_null(data);
    for (size_t i = 0; i < count; i++) {
        double v = (double)(i * 2654435761u % 1000) / 1000 - 0.5;
        if (type == NORI_FLOAT) {
            ((float *)(void *)data)[i] = (float)v;
        } else if (type == NORI_DOUBLE) {
            ((double *)(void *)data)[i] = v;
        } else {
            ((uint16_t *)(void *)data)[i] = (uint16_t)(0x3000 + i % 1000); /* halves below 1 */
        }
    }
    if (lists && type != NORI_FLOAT16) {
        list_tensor(b, name, type, rank, dims, data, count * width);
    } else {
        big_tensor(b, name, type, rank, dims, data, count * width, NULL, 0);
    }
    free(data);
}

static void attr_ints(nori__text *attrs, const char *name, int64_t v)
{
    nori__text a = wire_new();
    wire_str(&a, 1, name);
    wire_int(&a, 8, v);
    wire_int(&a, 8, v);
    wire_int(&a, 20, 7);
    wire_sub(attrs, 5, &a);
}

static void convolutions(big *b)
{
    nori__text group = wire_new(), stride = wire_new();
    weight(b, "w3", NORI_FLOAT, 4, (int64_t[]){64, 16, 3, 3});
    weight(b, "w1", NORI_FLOAT, 4, (int64_t[]){64, 64, 1, 1});
    weight(b, "wd", NORI_FLOAT, 4, (int64_t[]){64, 1, 9, 9});
    weight(b, "wt", NORI_FLOAT, 4, (int64_t[]){64, 16, 2, 2});
    big_node(b, "Conv", "x w3", "winograd");
    big_node(b, "Conv", "winograd w1", "point");
    big_attr_int(&group, "group", 64);
    big_node_with(b, "Conv", "point wd", "depth", &group);
    attr_ints(&stride, "strides", 2);
    big_node_with(b, "ConvTranspose", "depth wt", "turned", &stride);
}

static void branches(big *b)
{
    big then, other;
    nori__text attrs = wire_new();
    big_begin(&then);
    big_begin(&other);
    wire_str(&then.graph, 2, "then");
    wire_str(&other.graph, 2, "else");
    big_node(&then, "Mul", "flat ws", "t");
    big_node(&other, "Sub", "flat ws", "e");
    big_output(&then, "t", NORI_FLOAT, 2, (int64_t[]){1, 4096});
    big_output(&other, "e", NORI_FLOAT, 2, (int64_t[]){1, 4096});
    big_attr_graph(&attrs, "then_branch", &then);
    big_attr_graph(&attrs, "else_branch", &other);
    big_node_with(b, "If", "yes", "branch", &attrs);
    big_end(&then);
    big_end(&other);
}

/* x [1, 16, 20, 20], i [3], yes: a bit of everything that takes weights. */
static void everything(big *b)
{
    nori__text turned = wire_new(), hidden = wire_new(), to = wire_new();
    big_begin(b);
    big_input(b, "x", NORI_FLOAT, 4, (int64_t[]){1, 16, 20, 20});
    big_input(b, "i", NORI_INT64, 1, (int64_t[]){3});
    big_input(b, "yes", NORI_BOOL, 0, NULL);
    convolutions(b);
    big_tensor(b, "to_rows", NORI_INT64, 1, (int64_t[]){1}, (int64_t[]){1}, 8, NULL, 0);
    big_tensor(b, "lines", NORI_INT64, 1, (int64_t[]){2}, (int64_t[]){16, 400}, 16, NULL, 0);
    big_node(b, "Reshape", "x lines", "lines16");
    weight(b, "wp", NORI_FLOAT, 2, (int64_t[]){400, 64});
    big_node(b, "MatMul", "lines16 wp", "product");
    weight(b, "wg", NORI_FLOAT, 2, (int64_t[]){256, 64});
    big_attr_int(&turned, "transB", 1);
    big_node_with(b, "Gemm", "product wg", "gemm", &turned);
    weight(b, "table", NORI_FLOAT, 2, (int64_t[]){600, 16});
    big_node(b, "Gather", "table i", "rows");
    big_node(b, "Unsqueeze", "rows to_rows", "steps");
    weight(b, "wl", NORI_FLOAT, 3, (int64_t[]){1, 256, 16});
    weight(b, "rl", NORI_FLOAT, 3, (int64_t[]){1, 256, 64});
    big_attr_int(&hidden, "hidden_size", 64);
    big_node_with(b, "LSTM", "steps wl rl", "lstm", &hidden);
    weight(b, "ws", NORI_FLOAT, 2, (int64_t[]){1, 4096});
    big_tensor(b, "one", NORI_INT64, 1, (int64_t[]){2}, (int64_t[]){1, 4096}, 16, NULL, 0);
    big_node(b, "Reshape", "gemm one", "flat");
    big_node(b, "Add", "flat ws", "sum");
    weight(b, "wh", NORI_FLOAT16, 2, (int64_t[]){1, 8192});
    nori__text axis = wire_new(), wide = wire_new();
    big_attr_int(&axis, "axis", 1);
    big_node_with(b, "Concat", "flat flat", "twice", &axis);
    big_attr_int(&to, "to", NORI_FLOAT16);
    big_node_with(b, "Cast", "twice", "twice_half", &to);
    big_node(b, "Mul", "twice_half wh", "half");
    weight(b, "w64", NORI_DOUBLE, 2, (int64_t[]){1, 4096});
    big_attr_int(&wide, "to", NORI_DOUBLE);
    big_node_with(b, "Cast", "flat", "flat64", &wide);
    big_node(b, "Add", "flat64 w64", "double");
    branches(b);
    for (int i = 0; i < OUTPUTS; i++) {
        nori__text v = wire_new();
        wire_str(&v, 1, outputs[i]);
        wire_sub(&b->graph, 12, &v);
    }
    nori__text kept = wire_new(); /* a weight that is an output, too */
    wire_str(&kept, 1, "wp");
    wire_sub(&b->graph, 12, &kept);
    big_finish(b, 17);
}

static void ok(nori_status s, const nori_error *err)
{
    if (s != NORI_OK) {
        print_error("%s: %s\n", err->where, err->message);
    }
    assert_int_equal(s, NORI_OK);
}

static nori_model *load(const void *bytes, size_t size)
{
    nori_error err = {0};
    nori_model *model = NULL;
    ok(nori_model_load_memory(NULL, bytes, size, NULL, NULL, &model, &err), &err);
    return model;
}

static nori_session *create(const nori_model *model, const char *providers, int level)
{
    nori_error err = {0};
    nori_session *session = NULL;
    nori_session_options o;
    nori_session_options_default(&o);
    o.providers = providers;
    o.level = level;
    ok(nori_session_create(model, &o, &session, &err), &err);
    return session;
}

static void run(nori_session *session, nori_tensor **out)
{
    nori_error err = {0};
    nori_tensor *in[3] = {NULL};
    ok(nori_tensor_create(NULL, NORI_FLOAT, 4, (int64_t[]){1, 16, 20, 20}, &in[0], &err), &err);
    ok(nori_tensor_create(NULL, NORI_INT64, 1, (int64_t[]){3}, &in[1], &err), &err);
    ok(nori_tensor_create(NULL, NORI_BOOL, 0, NULL, &in[2], &err), &err);
    for (int i = 0; i < 6400; i++) {
        ((float *)nori_tensor_data(in[0]))[i] = (float)(i % 17) / 17 - 0.4f;
    }
    ((int64_t *)nori_tensor_data(in[1]))[1] = 599;
    *(bool *)nori_tensor_data(in[2]) = true;
    ok(nori_session_run(session, (const nori_tensor *const *)in, 3, out, OUTPUTS + 1, &err), &err);
    for (int i = 0; i < 3; i++) {
        nori_tensor_free(in[i]);
    }
}

static void same(nori_tensor *const *a, nori_tensor *const *b, int shift)
{
    for (int i = 0; i <= OUTPUTS; i++) {
        assert_int_equal(nori_tensor_bytes(a[i]), nori_tensor_bytes(b[i]));
        if (memcmp(nori_tensor_const_data(a[i]), nori_tensor_const_data(b[i]), nori_tensor_bytes(a[i]))) {
            fail_msg("output %s differs at shift %d", i < OUTPUTS ? outputs[i] : "wp", shift);
        }
    }
}

static void free_all(nori_tensor **out)
{
    for (int i = 0; i <= OUTPUTS; i++) {
        nori_tensor_free(out[i]);
        out[i] = NULL;
    }
}

/* How many tensors of the model are loose and how many of them have data by now. */
static void count(const nori_model *model, int *loose, int *settled)
{
    *loose = *settled = 0;
    for (const nori_value *v = nori_graph_value(nori_model_graph(model)); v; v = nori_value_next(v)) {
        const nori_tensor *t = nori__value_as_is(v);
        *loose += t && t->loose;
        *settled += t && t->loose == NORI__LOOSE_SETTLED;
    }
}

/* On a provider at a level; most: how many tensors may have been copied for its sake at any shift. */
static void all_shifts(const big *b, const char *providers, int level, int most_made, int most_run,
                       nori_tensor **first)
{
    char *room = malloc(b->model.size + SHIFTS);
    nori_tensor *out[OUTPUTS + 1] = {NULL};
    int met = 0;
    assert_non_null(room);
    for (int shift = 0; shift < SHIFTS; shift++) {
        memcpy(room + shift, b->model.data, b->model.size);
        nori_model *model = load(room + shift, b->model.size);
        int loose, settled;
        count(model, &loose, &settled);
        met += loose;
        assert_int_equal(settled, 0);
        nori_session *session = create(model, providers, level);
        count(model, &loose, &settled);
        assert_in_range(settled, 0, most_made);
        bool compared = first[0] != NULL;
        run(session, compared ? out : first);
        count(model, &loose, &settled);
        assert_in_range(settled, 0, most_run);
        if (compared) {
            same(first, out, shift);
            free_all(out);
        }
        nori_session_free(session);
        nori_model_free(model);
    }
    assert_true(met > 6 * SHIFTS); /* three in four floats */
    free(room);
}

/* In either form of the file the same results, and no more copies. */
static void both_forms(const char *providers, int level, int most_run)
{
    nori_tensor *first[OUTPUTS + 1] = {NULL};
    for (int form = 0; form < 2; form++) {
        big b;
        lists = form == 1;
        everything(&b);
        all_shifts(&b, providers, level, 0, most_run, first);
        big_end(&b);
    }
    free_all(first);
}

static void any_address(void **state)
{
    (void)state;
    /* What no kernel packs: ws (sum, and again in the branch), wh, w64, and the output wp. */
    both_forms("cpu", 2, 4);
    both_forms("cpu", 0, 14);
    both_forms("reference", 1, 14);
}

/* To check a model nobody needs its weights at a better address. */
static void checked_where_they_are(void **state)
{
    (void)state;
    for (int form = 0; form < 2; form++) {
        big b;
        lists = form == 1;
        everything(&b);
        int loose, settled;
        nori_model *model = load(b.model.data, b.model.size);
        nori_findings *findings = NULL;
        nori_error err = {0};
        ok(nori_check(model, NULL, &findings, &err), &err);
        for (const nori_value *v = nori_graph_value(nori_model_graph(model)); v; v = nori_value_next(v)) {
            (void)nori_value_initializer(v);
        }
        count(model, &loose, &settled);
        assert_true(loose > 6 && settled == 0);
        nori_findings_free(findings);
        nori_model_free(model);
        big_end(&b);
    }
}

/* ---- many threads ---- */

typedef struct asker {
    const nori_tensor *t;
    const void *got;
} asker;

static void *ask(void *user)
{
    asker *a = user;
    a->got = nori_tensor_const_data(a->t);
    return NULL;
}

/* All who ask at once get one copy. */
static void threads_share_a_copy(void **state)
{
    (void)state;
    static float values[64 * 1024 + 1];
    const char *odd = (const char *)values + 1;
    for (int round = 0; round < 20; round++) {
        nori_tensor *t = NULL;
        pthread_t thread[4];
        asker askers[4];
        assert_int_equal(nori__tensor_loose(&nori__malloc, NORI_FLOAT, 1, (int64_t[]){64 * 1024}, odd,
                                            &t, NULL), NORI_OK);
        assert_ptr_equal(nori__tensor_at(t), odd);
        for (int i = 0; i < 4; i++) {
            askers[i] = (asker){.t = t};
            assert_int_equal(pthread_create(&thread[i], NULL, ask, &askers[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
            assert_int_equal(pthread_join(thread[i], NULL), 0);
            assert_non_null(askers[i].got);
            assert_ptr_equal(askers[i].got, askers[0].got);
        }
        assert_int_equal((uintptr_t)askers[0].got % sizeof(float), 0);
        assert_memory_equal(askers[0].got, odd, 64 * 1024 * sizeof(float));
        nori_tensor_free(t);
    }
}

static void *no_memory(void *user, size_t size, size_t align)
{
    bool *open = user;
    return *open ? nori__malloc.alloc(NULL, size, align) : NULL;
}

static void give_back(void *user, void *memory, size_t size)
{
    (void)user;
    nori__malloc.release(NULL, memory, size);
}

/* Without memory there are no data, and no harm: the next who asks gets them. */
static void no_memory_for_a_copy(void **state)
{
    (void)state;
    static float values[8];
    bool open = true;
    const nori_allocator a = {no_memory, give_back, &open};
    nori_tensor *t = NULL;
    assert_int_equal(nori__tensor_loose(&a, NORI_FLOAT, 1, (int64_t[]){4}, (char *)values + 2, &t, NULL),
                     NORI_OK);
    open = false;
    assert_null(nori_tensor_const_data(t));
    open = true;
    assert_non_null(nori_tensor_const_data(t));
    nori_tensor_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_address),
        cmocka_unit_test(checked_where_they_are),
        cmocka_unit_test(threads_share_a_copy),
        cmocka_unit_test(no_memory_for_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

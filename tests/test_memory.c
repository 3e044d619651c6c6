/* What sessions hold: mapped weights cost nothing before they are read, contexts share packed ones,
 * runs of any length leave no more than the longest needed, a cap is kept, idle threads sleep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "busy.h"
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "big_model.h"
#include "test_alloc.h"
#include "nori/provider.h"
#include "platform/platform.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEASURED 0 /* shadow memory is not the library's */
#else
#define MEASURED 1
#endif
#define MB (1024 * 1024)

static int64_t resident(void)
{
    long pages = 0, unused;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f) {
        return 0;
    }
    int n = fscanf(f, "%ld %ld", &unused, &pages);
    fclose(f);
    return n == 2 ? (int64_t)pages * sysconf(_SC_PAGESIZE) : 0;
}

static void small_growth(const char *what, int64_t from, int64_t limit)
{
    int64_t grown = resident() - from;
    print_message("%s: %.1f MB, limit %.0f MB\n", what, (double)grown / MB, (double)limit / MB);
    if (MEASURED) {
        assert_true(grown < limit);
    }
}

static void ok(nori_status s, const nori_error *err)
{
    if (s != NORI_OK) {
        print_error("%s: %s\n", err->where, err->message);
    }
    assert_int_equal(s, NORI_OK);
}

/* ---- mapped weights ---- */

#define BIG ((size_t)200 * MB)
static const int64_t table[2] = {BIG / 1024, 256};

static void write_file(const char *path, const nori__text *head, size_t hole)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    assert_true(fd >= 0);
    if (head) {
        assert_int_equal(write(fd, head->data, head->size), head->size);
    }
    assert_int_equal(ftruncate(fd, (off_t)((head ? head->size : 0) + hole)), 0);
    close(fd);
}

/* y = rows i of a table of 200 MB. */
static void lookup(big *b)
{
    big_begin(b);
    big_node(b, "Gather", "w i", "y");
    big_input(b, "i", NORI_INT64, 1, (int64_t[]){-1});
    big_output(b, "y", NORI_FLOAT, 2, (int64_t[]){-1, 256});
}

/* A producer's name so long that what follows in so many bytes stands at rest modulo 4. */
static void pad(nori__text *model, size_t follows, size_t rest)
{
    char name[8] = "aaaaaaa";
    name[(4 + rest - (model->size + 2 + follows) % 4) % 4] = 0;
    wire_str(model, 2, name);
}

/* What is so far becomes the payload of a field that ends in a hole of size bytes. */
static void wrap(nori__text *t, uint32_t number, size_t size, nori__text *before)
{
    wire_tag(before, number, 2);
    wire_varint(before, t->size + size);
    nori__text_add(before, t->data, t->size);
    nori__text_free(t);
    *t = *before;
    *before = wire_new();
}

/* One file whose one weight, w, is a hole of so many bytes that stands at rest modulo 4: the graph's
 * last field, an initializer or a Constant. b holds the nodes, inputs and outputs. */
static void one_file(const char *path, big *b, const int64_t dims[2], size_t rest, bool node)
{
    nori__text t = wire_new(), set = wire_new();
    size_t size = (size_t)dims[0] * (size_t)dims[1] * sizeof(float);
    wire_int(&t, 1, dims[0]);
    wire_int(&t, 1, dims[1]);
    wire_int(&t, 2, NORI_FLOAT);
    wire_str(&t, 8, "w");
    wire_tag(&t, 9, 2);
    wire_varint(&t, size);
    nori__text outer = wire_new();
    if (node) { /* the tensor in its attribute, that in its node */
        wire_str(&outer, 1, "value");
        wire_int(&outer, 20, 4);
        wrap(&t, 5, size, &outer);
        wire_str(&outer, 2, "w");
        wire_str(&outer, 4, "Constant");
        wrap(&t, 5, size, &outer);
    }
    nori__text_free(&outer);
    wire_tag(&b->graph, node ? 1 : 5, 2);
    wire_varint(&b->graph, t.size + size);
    nori__text_add(&b->graph, t.data, t.size);
    wire_int(&b->model, 1, 8);
    wire_int(&set, 2, 17);
    wire_sub(&b->model, 8, &set);
    pad(&b->model, 5 + b->graph.size, rest); /* tag and length of the graph have 5 bytes */
    wire_tag(&b->model, 7, 2);
    wire_varint(&b->model, b->graph.size + size);
    nori__text_add(&b->model, b->graph.data, b->graph.size);
    assert_int_equal(b->model.size % 4, rest);
    write_file(path, &b->model, size);
    nori__text_free(&t);
}

static void load_and_look(const char *path, const char *what)
{
    nori_error err = {0};
    nori_model *model = NULL;
    nori_session *session = NULL;
    int64_t before = resident();
    ok(nori_model_load(NULL, path, NULL, &model, &err), &err);
    ok(nori_session_create(model, NULL, &session, &err), &err);
    small_growth(what, before, 20 * MB);
    nori_tensor *in = NULL, *out[1] = {NULL};
    ok(nori_tensor_create(NULL, NORI_INT64, 1, (int64_t[]){1}, &in, &err), &err);
    *(int64_t *)nori_tensor_data(in) = table[0] - 1;
    ok(nori_session_run(session, (const nori_tensor *const[]){in}, 1, out, 1, &err), &err);
    assert_int_equal(nori_tensor_elements(out[0]), 256);
    assert_true(((const float *)nori_tensor_const_data(out[0]))[255] == 0);
    nori_tensor_free(in);
    nori_tensor_free(out[0]);
    nori_session_free(session);
    nori_model_free(model);
}

static void mapped_weights(void **state)
{
    (void)state;
    char dir[] = "/tmp/nori_memory_XXXXXX", model[64], data[64];
    assert_non_null(mkdtemp(dir));
    snprintf(model, sizeof(model), "%s/m.onnx", dir);
    snprintf(data, sizeof(data), "%s/w.bin", dir);
    big b;
    lookup(&b);
    big_tensor(&b, "w", NORI_FLOAT, 2, table, NULL, BIG, "w.bin", 0);
    big_finish(&b, 17);
    write_file(model, &b.model, 0);
    write_file(data, NULL, BIG);
    big_end(&b);
    load_and_look(model, "external data of 200 MB");
    for (size_t rest = 0; rest < 8; rest++) { /* wherever it stands in one file */
        char what[80];
        snprintf(what, sizeof(what), "one file of 200 MB, floats at %zu modulo 4%s", rest % 4,
                 rest < 4 ? "" : ", in a Constant");
        lookup(&b);
        one_file(model, &b, table, rest % 4, rest >= 4);
        big_end(&b);
        load_and_look(model, what);
    }
    unlink(model);
    unlink(data);
    rmdir(dir);
}

/* Packed weights stand beside nothing: wherever the file has them there is no copy before packing, and
 * the file's pages are given back. */
static void packed_weights(void **state)
{
    (void)state;
    static const int64_t dims[2] = {4096, 4096}; /* 64 MB */
    char path[] = "/tmp/nori_memory_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t rest = 0; rest < 6; rest++) { /* the last two in a Constant */
        char what[80];
        nori_error err = {0};
        nori_model *m = NULL;
        nori_session *s = NULL;
        nori_tensor *in = NULL, *out[1] = {NULL};
        big b;
        big_begin(&b);
        big_node(&b, "MatMul", "x w", "y");
        big_input(&b, "x", NORI_FLOAT, 2, (int64_t[]){1, 4096});
        big_output(&b, "y", NORI_FLOAT, 2, (int64_t[]){1, 4096});
        one_file(path, &b, dims, rest % 4, rest >= 4);
        int64_t before = resident();
        ok(nori_model_load(NULL, path, NULL, &m, &err), &err);
        ok(nori_session_create(m, NULL, &s, &err), &err);
        snprintf(what, sizeof(what), "64 MB packed, floats at %zu modulo 4%s", rest % 4,
                 rest < 4 ? "" : ", in a Constant");
        small_growth(what, before, 72 * MB);
        nori_memory_stats stats = {.size = sizeof(stats)};
        nori_session_memory(s, &stats);
        assert_true(stats.packed_bytes >= 64 * (uint64_t)MB);
        ok(nori_tensor_create(NULL, NORI_FLOAT, 2, (int64_t[]){1, 4096}, &in, &err), &err);
        ok(nori_session_run(s, (const nori_tensor *const[]){in}, 1, out, 1, &err), &err);
        small_growth("after a run", before, 74 * MB);
        nori_tensor_free(in);
        nori_tensor_free(out[0]);
        nori_session_free(s);
        nori_model_free(m);
        big_end(&b);
    }
    unlink(path);
}

/* The most that was resident since mark_peak; 0: the system does not say. */
static int64_t peak(void)
{
    char line[128];
    long long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && kb == 0 && fgets(line, sizeof(line), f)) {
        (void)sscanf(line, "VmHWM: %lld", &kb);
    }
    if (f) {
        fclose(f);
    }
    return (int64_t)kb * 1024;
}

static bool mark_peak(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, "5", 1) == 1;
    if (fd >= 0) {
        close(fd);
    }
    return done;
}

/* While weights are packed, one after the other, those of the file do not gather beside them. */
static void packed_one_by_one(void **state)
{
    (void)state;
    static const int64_t dims[2] = {2048, 2048}; /* 16 MB */
    const size_t each = (size_t)16 * MB;
    enum { WEIGHTS = 6 };
    char dir[] = "/tmp/nori_memory_XXXXXX", model[64], data[64];
    assert_non_null(mkdtemp(dir));
    snprintf(model, sizeof(model), "%s/m.onnx", dir);
    snprintf(data, sizeof(data), "%s/w.bin", dir);
    write_file(data, NULL, WEIGHTS * each);
    nori_error err = {0};
    nori_model *m = NULL;
    nori_session *s = NULL;
    big b;
    big_begin(&b);
    for (int i = 0; i < WEIGHTS; i++) {
        char name[8], in[16], out[8];
        snprintf(name, sizeof(name), "w%d", i);
        snprintf(in, sizeof(in), "x%d w%d", i, i);
        snprintf(out, sizeof(out), "x%d", i + 1);
        big_node(&b, "MatMul", in, out);
        big_tensor(&b, name, NORI_FLOAT, 2, dims, NULL, each, "w.bin", (uint64_t)i * each);
    }
    big_input(&b, "x0", NORI_FLOAT, 2, (int64_t[]){1, 2048});
    big_output(&b, "x6", NORI_FLOAT, 2, (int64_t[]){1, 2048});
    big_finish(&b, 17);
    write_file(model, &b.model, 0);
    ok(nori_model_load(NULL, model, NULL, &m, &err), &err);
    bool marked = mark_peak();
    int64_t before = resident();
    ok(nori_session_create(m, NULL, &s, &err), &err);
    int64_t grown = peak() - before;
    print_message("96 MB packed: %.1f MB at most%s\n", (double)grown / MB,
                  marked ? "" : " (not known here: the system keeps its old mark)");
    if (MEASURED && marked) {
        assert_true(grown < (int64_t)(WEIGHTS + 1) * 16 * MB + 12 * MB);
    }
    nori_session_free(s);
    nori_model_free(m);
    big_end(&b);
    unlink(model);
    unlink(data);
    rmdir(dir);
}

/* ---- the caller's buffer ---- */

static const nori_tensor *initializer(const nori_model *model, const char *name)
{
    const nori_value *v = nori_graph_value(nori_model_graph(model));
    while (v && strcmp(nori_value_name(v), name) != 0) {
        v = nori_value_next(v);
    }
    return v ? nori_value_initializer(v) : NULL;
}

static void shared_buffer(void **state)
{
    (void)state;
    enum { N = 4 * MB };
    int64_t dims[1] = {N};
    float *values = calloc(N, sizeof(float));
    char name[8] = "w";
    assert_non_null(values);
    bool shared = false;
    for (int pad = 0; pad < 4 && !shared; pad++) { /* raw data stands where the name lets it */
        nori_error err = {0};
        nori_model *model = NULL;
        big b;
        big_begin(&b);
        name[pad + 1] = 0;
        memset(name + 1, 'w', (size_t)pad);
        big_tensor(&b, name, NORI_FLOAT, 1, dims, values, N * sizeof(float), NULL, 0);
        big_node(&b, "Identity", name, "y");
        big_output(&b, "y", NORI_FLOAT, 1, dims);
        big_finish(&b, 17);
        int64_t before = resident();
        ok(nori_model_load_memory(NULL, b.model.data, b.model.size, NULL, NULL, &model, &err),
           &err);
        const char *at = nori_tensor_const_data(initializer(model, name));
        shared = at >= b.model.data && at < b.model.data + b.model.size;
        if (shared) {
            small_growth("16 MB from memory", before, 1 * MB);
        }
        nori_model_free(model);
        big_end(&b);
    }
    assert_true(shared);
    free(values);
}

/* ---- runs of many lengths ---- */

static nori_session *two_products(big *b, uint64_t cap, nori_error *err)
{
    static float w[64 * 64];
    nori_model *model = NULL;
    nori_session *session = NULL;
    nori_session_options o;
    nori_session_options_default(&o);
    o.max_bytes = cap;
    big_begin(b);
    big_tensor(b, "w", NORI_FLOAT, 2, (int64_t[]){64, 64}, w, sizeof(w), NULL, 0);
    big_node(b, "MatMul", "x w", "a");
    big_node(b, "Softmax", "a", "c");
    big_node(b, "MatMul", "c w", "d");
    big_node(b, "Transpose", "d", "e");
    big_node(b, "MatMul", "d e", "y");
    big_input(b, "x", NORI_FLOAT, 2, (int64_t[]){-1, 64});
    big_output(b, "y", NORI_FLOAT, 2, (int64_t[]){-1, -1});
    big_finish(b, 17);
    ok(nori_model_load_memory(NULL, b->model.data, b->model.size, NULL, NULL, &model, err), err);
    ok(nori_session_create(model, &o, &session, err), err);
    nori_model_free(model);
    return session;
}

static nori_status run_length(nori_session *s, int64_t n, nori_error *err)
{
    nori_tensor *in = NULL, *out[1] = {NULL};
    ok(nori_tensor_create(NULL, NORI_FLOAT, 2, (int64_t[]){n, 64}, &in, err), err);
    nori_status status =
        nori_session_run(s, (const nori_tensor *const[]){in}, 1, out, 1, err);
    nori_tensor_free(in);
    nori_tensor_free(out[0]);
    return status;
}

static nori_memory_stats memory_of(nori_session *s)
{
    nori_memory_stats m = {.size = sizeof(m)};
    nori_session_memory(s, &m);
    return m;
}

static void many_lengths(void **state)
{
    (void)state;
    nori_error err = {0};
    big b;
    nori_session *s = two_products(&b, 0, &err);
    ok(run_length(s, 512, &err), &err);
    nori_memory_stats largest = memory_of(s);
    assert_true(largest.held_bytes > 0 && largest.held_bytes < 4 * MB);
    int64_t before = resident();
    uint32_t seed = 1;
    for (int i = 0; i < 1000; i++) {
        seed = seed * 1664525u + 1013904223u;
        ok(run_length(s, 1 + (int64_t)(seed >> 8) % 512, &err), &err);
    }
    small_growth("1,000 runs of 1 to 512", before, 2 * MB);
    assert_int_equal(memory_of(s).held_bytes, largest.held_bytes);
    assert_int_equal(memory_of(s).peak_activation_bytes, largest.peak_activation_bytes);
    nori_session_trim(s);
    assert_int_equal(memory_of(s).held_bytes, 0);
    assert_int_equal(memory_of(s).peak_activation_bytes, largest.peak_activation_bytes);
    ok(run_length(s, 7, &err), &err); /* still good */
    nori_session_free(s);
    big_end(&b);
}

static void a_cap_is_named(void **state)
{
    (void)state;
    nori_error err = {0};
    big b;
    nori_session *s = two_products(&b, 100000, &err);
    ok(run_length(s, 16, &err), &err);
    assert_int_equal(run_length(s, 512, &err), NORI_ERROR_LIMIT);
    assert_non_null(strstr(err.message, "100 kB"));
    assert_non_null(strstr(err.hint, "max_bytes"));
    err = (nori_error){0};
    ok(run_length(s, 16, &err), &err);
    nori_session_free(s);
    big_end(&b);
}

/* ---- what only the run can tell the size of ---- */

#define CAP ((size_t)4 * MB)

/* A name whose type is told by what is bound to it. */
static void untyped(big *b, uint32_t number, const char *name)
{
    nori__text v = wire_new();
    wire_str(&v, 1, name);
    wire_sub(&b->graph, number, &v);
}

/* As many rounds as are fed of a body that makes w of the carried v. */
static void loop(big *b, void (*step)(big *body), const char *start)
{
    static const uint8_t yes = 1;
    big body;
    nori__text attrs = wire_new();
    big_begin(&body);
    wire_str(&body.graph, 2, "body");
    big_input(&body, "i", NORI_INT64, 0, NULL);
    big_input(&body, "go", NORI_BOOL, 0, NULL);
    untyped(&body, 11, "v");
    big_node(&body, "Identity", "go", "on");
    step(&body);
    big_output(&body, "on", NORI_BOOL, 0, NULL);
    untyped(&body, 12, "w");
    big_attr_graph(&attrs, "body", &body);
    big_end(&body);
    big_tensor(b, "true", NORI_BOOL, 0, NULL, &yes, 1, NULL, 0);
    char ins[64];
    snprintf(ins, sizeof(ins), "rounds true %s", start);
    big_node_with(b, "Loop", ins, "last", &attrs);
    big_input(b, "rounds", NORI_INT64, 0, NULL);
    big_input(b, "x", NORI_FLOAT, 1, (int64_t[]){16384});
}

static void double_it(big *body)
{
    nori__text attrs = wire_new();
    big_attr_int(&attrs, "axis", 0);
    big_node_with(body, "Concat", "v v", "w", &attrs);
}

static void append_one(big *body)
{
    big_node(body, "Add", "x x", "t"); /* each item has memory of its own */
    big_node(body, "SequenceInsert", "v t", "w");
}

/* 64 KB, and twice as long each round. */
static void concat_model(big *b)
{
    loop(b, double_it, "x");
    big_node(b, "Size", "last", "y");
}

static void sequence_model(big *b)
{
    big_node(b, "SequenceEmpty", "", "none");
    loop(b, append_one, "none");
    big_node(b, "SequenceLength", "last", "y");
}

/* A value as long as the fed number says. */
static void late_model(big *b)
{
    static const int64_t zero = 0, one = 1;
    big_tensor(b, "zero", NORI_INT64, 0, NULL, &zero, 8, NULL, 0);
    big_tensor(b, "one", NORI_INT64, 0, NULL, &one, 8, NULL, 0);
    big_tensor(b, "many", NORI_INT64, 0, NULL, &(int64_t){65536}, 8, NULL, 0);
    big_node(b, "Mul", "rounds many", "end");
    big_node(b, "Range", "zero end one", "r");
    big_node(b, "Size", "r", "y");
    big_input(b, "rounds", NORI_INT64, 0, NULL);
    big_input(b, "x", NORI_FLOAT, 1, (int64_t[]){16384});
}

static nori_status run_rounds(nori_session *s, int64_t rounds, int64_t *y, nori_error *err)
{
    nori_tensor *in[2] = {NULL, NULL}, *out[1] = {NULL};
    ok(nori_tensor_create(NULL, NORI_INT64, 0, NULL, &in[0], err), err);
    ok(nori_tensor_create(NULL, NORI_FLOAT, 1, (int64_t[]){16384}, &in[1], err), err);
    *(int64_t *)nori_tensor_data(in[0]) = rounds;
    nori_status status = nori_session_run(s, (const nori_tensor *const *)in, 2, out, 1, err);
    *y = status == NORI_OK ? *(const int64_t *)nori_tensor_const_data(out[0]) : -1;
    nori_tensor_free(in[0]);
    nori_tensor_free(in[1]);
    nori_tensor_free(out[0]);
    return status;
}

static double times_of(const char *unit)
{
    return unit[0] == 'k' ? 1e3 : unit[0] == 'M' ? 1e6 : 1;
}

static void check_cap(void (*make)(big *), const char *provider, int64_t few, int64_t result)
{
    nori_error err = {0};
    nori_env *env = NULL;
    nori_env_options eo;
    nori_session_options so;
    nori_model *model = NULL;
    nori_session *s = NULL;
    test_alloc counts;
    big b;
    int64_t y;
    big_begin(&b);
    make(&b);
    big_output(&b, "y", NORI_INT64, 0, NULL);
    big_finish(&b, 17);
    test_alloc_init(&counts, 0);
    nori_env_options_default(&eo);
    eo.allocator = counts.allocator;
    eo.threads = 1;
    ok(nori_env_create(&eo, &env, &err), &err);
    ok(nori_model_load_memory(env, b.model.data, b.model.size, NULL, NULL, &model, &err), &err);
    nori_session_options_default(&so);
    so.providers = provider;
    so.max_bytes = CAP;
    ok(nori_session_create(model, &so, &s, &err), &err);
    size_t before = counts.live;
    counts.peak = counts.live;
    for (int i = 0; i < 2; i++) {
        ok(run_rounds(s, few, &y, &err), &err);
        assert_int_equal(y, result);
        assert_int_equal(run_rounds(s, 20 * few, &y, &err), NORI_ERROR_LIMIT);
        assert_non_null(strstr(err.message, "the limit is 4.19 MB"));
        assert_non_null(strstr(err.hint, "max_bytes"));
        double asked = 0, holds = 0;
        char units[2][8];
        if (sscanf(err.message, "the run needs %lf %7s beside the %lf %7s it holds", &asked, units[0],
                   &holds, units[1]) != 4) {
            fail_msg("%s", err.message);
        }
        asked *= times_of(units[0]); /* three digits of each are told */
        holds *= times_of(units[1]);
        assert_true(holds <= 1.01 * (double)CAP && asked + holds > 0.99 * (double)CAP);
        assert_true(err.where[0] != 0); /* the node that asked */
        err = (nori_error){0};
    }
    print_message("%s: %.2f MB at most under a cap of %.0f MB\n", provider,
                  (double)(counts.peak - before) / MB, (double)CAP / MB);
    assert_true(counts.peak - before > CAP / 8);
    assert_true(counts.peak - before <= CAP + 65536); /* what counts the rest is beside it */
    nori_session_trim(s);
    assert_true(counts.live <= before);
    nori_session_free(s);
    nori_model_free(model);
    nori_env_free(env);
    assert_int_equal(counts.live, 0);
    assert_false(counts.wrong_size);
    big_end(&b);
}

static void a_cap_bounds_all(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *provider = i ? "reference" : "cpu";
        check_cap(concat_model, provider, 3, 8 * 16384);
        check_cap(sequence_model, provider, 9, 9);
        check_cap(late_model, provider, 5, 5 * 65536);
    }
}

/* ---- contexts ---- */

#define SIDE 4096
#define CONTEXTS 8

static void *run_some(void *user)
{
    nori_session *s = user;
    nori_tensor *in = NULL, *out[1] = {NULL};
    if (nori_tensor_create(NULL, NORI_FLOAT, 2, (int64_t[]){1, SIDE}, &in, NULL) != NORI_OK) {
        return NULL;
    }
    float *x = nori_tensor_data(in);
    x[1] = 2;
    bool good = true;
    for (int i = 0; good && i < 3; i++) {
        good = nori_session_run(s, (const nori_tensor *const[]){in}, 1, out, 1, NULL) == NORI_OK &&
               ((const float *)nori_tensor_const_data(out[0]))[5] == 10;
        nori_tensor_free(out[0]);
        out[0] = NULL;
    }
    nori_tensor_free(in);
    return good ? s : NULL;
}

static void contexts_share(void **state)
{
    (void)state;
    char path[] = "/tmp/nori_contexts_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    size_t bytes = (size_t)SIDE * SIDE * sizeof(float);
    float *w = calloc(1, bytes);
    assert_non_null(w);
    w[SIDE + 5] = 5;
    big b;
    big_begin(&b);
    big_node(&b, "MatMul", "x w", "y");
    big_input(&b, "x", NORI_FLOAT, 2, (int64_t[]){1, SIDE});
    big_output(&b, "y", NORI_FLOAT, 2, (int64_t[]){1, SIDE});
    big_tensor(&b, "w", NORI_FLOAT, 2, (int64_t[]){SIDE, SIDE}, w, bytes, NULL, 0);
    pad(&b.model, 11 + b.graph.size, 1); /* IR version, operator set, the graph's tag and length */
    big_finish(&b, 17);
    write_file(path, &b.model, 0);
    big_end(&b);
    free(w);
    nori_error err = {0};
    nori_model *model = NULL;
    nori_session *session = NULL;
    int64_t before = resident();
    ok(nori_model_load(NULL, path, NULL, &model, &err), &err);
    ok(nori_session_create(model, NULL, &session, &err), &err);
    nori_model_free(model);
    pthread_t ids[CONTEXTS];
    for (int i = 0; i < CONTEXTS; i++) {
        assert_int_equal(pthread_create(&ids[i], NULL, run_some, session), 0);
    }
    for (int i = 0; i < CONTEXTS; i++) {
        void *good;
        pthread_join(ids[i], &good);
        assert_ptr_equal(good, session);
    }
    small_growth("8 contexts of a 64 MB model", before, 80 * MB);
    nori_session_free(session);
    unlink(path);
}

/* ---- idle threads ---- */

static void idle_threads_sleep(void **state)
{
    (void)state;
    nori_error err = {0};
    nori_env *env = NULL;
    nori_env_options eo;
    nori_env_options_default(&eo);
    eo.threads = 8;
    ok(nori_env_create(&eo, &env, &err), &err);
    assert_int_equal(nori_env_threads(env), 8);
    enum { N = 384 };
    static float w[N * N];
    big b;
    big_begin(&b);
    big_tensor(&b, "w", NORI_FLOAT, 2, (int64_t[]){N, N}, w, sizeof(w), NULL, 0);
    big_node(&b, "MatMul", "x w", "a");
    big_node(&b, "MatMul", "a w", "y");
    big_input(&b, "x", NORI_FLOAT, 2, (int64_t[]){N, N});
    big_output(&b, "y", NORI_FLOAT, 2, (int64_t[]){N, N});
    big_finish(&b, 17);
    nori_model *model = NULL;
    nori_session *s = NULL;
    nori_tensor *in = NULL, *out[1] = {NULL};
    ok(nori_model_load_memory(env, b.model.data, b.model.size, NULL, NULL, &model, &err), &err);
    ok(nori_session_create(model, NULL, &s, &err), &err);
    ok(nori_tensor_create(NULL, NORI_FLOAT, 2, (int64_t[]){N, N}, &in, &err), &err);
    ok(nori_tensor_create(NULL, NORI_FLOAT, 2, (int64_t[]){N, N}, &out[0], &err), &err);
    uint64_t start = nori__cpu_ns(), running = 0;
    for (int i = 0; i < 15; i++) {
        uint64_t from = nori__cpu_ns();
        ok(nori_session_run(s, (const nori_tensor *const[]){in}, 1, out, 1, &err), &err);
        running += nori__cpu_ns() - from;
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    }
    uint64_t total = nori__cpu_ns() - start;
    print_message("15 runs, one in 100 ms, 8 threads: %.1f ms of CPU in runs, %.1f in all\n",
                  (double)running / 1e6, (double)total / 1e6);
    ASSERT_TIMES(total, 1.3 * (double)running);
    nori_tensor_free(in);
    nori_tensor_free(out[0]);
    nori_session_free(s);
    nori_model_free(model);
    nori_env_free(env);
    big_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mapped_weights),
        cmocka_unit_test(packed_weights),  cmocka_unit_test(packed_one_by_one),
        cmocka_unit_test(shared_buffer),
        cmocka_unit_test(many_lengths),    cmocka_unit_test(a_cap_is_named),
        cmocka_unit_test(a_cap_bounds_all),
        cmocka_unit_test(contexts_share),  cmocka_unit_test(idle_threads_sleep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

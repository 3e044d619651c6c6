/* The provider cuda against a double of NVIDIA's libraries: what it says when it cannot be had, which nodes
 * it takes, how parts are compiled, run, recorded and freed, and what is kept. Results of kernels are in
 * test_gpu_cases.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

#include "cuda_double.h"
#include "make_model.h"
#include "gpu_case.h"
#include "platform/platform.h"

#define LIBRARIES "lib=" CUDA_DOUBLE ",nvrtc=" CUDA_DOUBLE ",cublaslt=none,cudnn=none"
#define ON_CUDA "cuda:costs=none," LIBRARIES

static long (*count)(const char *);
static const char *(*complaint)(void);
static void (*set_mode)(const char *);

static void take(void *library, const char *name, void *to)
{
    nori_error err = {0};
    void *symbol = nori__library_symbol(library, name, &err);
    assert_non_null(symbol);
    memcpy(to, &symbol, sizeof(symbol));
}

static int open_double(void **state)
{
    nori_error err = {0};
    void *library = nori__library_open(CUDA_DOUBLE, &err);
    (void)state;
    assert_non_null(library);
    take(library, "cuda_double_count", &count);
    take(library, "cuda_double_complaint", &complaint);
    take(library, "cuda_double_mode", &set_mode);
    return 0;
}

/* Nothing was left, and no call was against the rules. */
static void nothing_left(void)
{
    static const char *const all[] = {"allocations", "pinned", "modules", "streams", "graphs",
                                      "contexts"};
    for (size_t i = 0; i < NORI__COUNT(all); i++) {
        if (count(all[i]) != 0) {
            fail_msg("%ld %s are left", count(all[i]), all[i]);
        }
    }
    if (count("wrong") != 0) {
        fail_msg("the double says: %s", complaint());
    }
}

static void fails(const char *mode, const char *providers, nori_status status, const char *text)
{
    gpu_case c;
    nori_error err = {0};
    set_mode(mode);
    case_begin(&c, "Relu", "2", "", 1, 17);
    nori_session *s = case_session(&c, providers, NULL, &err);
    set_mode("");
    assert_null(s);
    if (!strstr(err.message, text)) {
        fail_msg("\"%s\" does not say \"%s\"", err.message, text);
    }
    assert_int_equal(err.status, status);
    case_end(&c);
    nothing_left();
}

static void options(void **state)
{
    (void)state;
    fails("", "cuda:device=first", NORI_ERROR_ARGUMENT, "device=first: a number was expected");
    fails("", "cuda:graphs=2", NORI_ERROR_ARGUMENT, "graphs=2: 0 or 1 was expected");
    fails("", "cuda:costs=some", NORI_ERROR_ARGUMENT, "estimate or none was expected");
    fails("", "cuda:speed=1", NORI_ERROR_ARGUMENT, "cuda has no option \"speed\"");
    fails("", "cuda:graphs", NORI_ERROR_ARGUMENT, "key=value was expected");
    fails("", "cuda:nvrtc=", NORI_ERROR_ARGUMENT, "a path was expected");
}

static void libraries(void **state)
{
    (void)state;
    fails("", "cuda:lib=/nonexistent/libcuda.so.1", NORI_ERROR_UNAVAILABLE, "/nonexistent/libcuda.so.1");
    fails("", "cuda:lib=" CUDA_DOUBLE ",nvrtc=/nonexistent/libnvrtc.so.12", NORI_ERROR_UNAVAILABLE,
          "/nonexistent/libnvrtc.so.12");
    fails("", "cuda:lib=" LACKING_CUDA, NORI_ERROR_UNAVAILABLE,
          "lacks symbol cuGraphLaunch, which a driver of CUDA 11.4 has");
}

static void drivers(void **state)
{
    (void)state;
    fails("none", ON_CUDA, NORI_ERROR_UNAVAILABLE, "finds no device");
    fails("init", ON_CUDA, NORI_ERROR_UNAVAILABLE, "cuInit gave CUDA_ERROR_UNKNOWN (999)");
    fails("old", ON_CUDA, NORI_ERROR_UNAVAILABLE, "serves CUDA 11.2, 11.4 or newer was expected");
    fails("", "cuda:device=1," LIBRARIES, NORI_ERROR_UNAVAILABLE,
          "device=1 is not there: there are 1, counted from 0");
    fails("memory", ON_CUDA, NORI_ERROR_UNAVAILABLE,
          "gave CUDA_ERROR_OUT_OF_MEMORY (2) on Double of a device");
    fails("source", ON_CUDA, NORI_ERROR_UNAVAILABLE,
          "NVRTC_ERROR_COMPILATION (6): kernels(7): error: identifier \"sigmoid\" is undefined");
    fails("refuse", ON_CUDA, NORI_ERROR_UNAVAILABLE, "cuModuleLoadData gave CUDA_ERROR_INVALID_IMAGE");
}

/* A compiler that does not know the device makes code that the driver compiles. */
static void older_compiler(void **state)
{
    gpu_case c;
    nori_error err = {0};
    (void)state;
    set_mode("arch");
    case_begin(&c, "Relu", "2", "", 1, 17);
    nori_session *s = case_session(&c, ON_CUDA, NULL, &err);
    set_mode("");
    assert_non_null(s);
    nori_session_free(s);
    case_end(&c);
    nothing_left();
}

static void claims(void **state)
{
    static const struct {
        const char *op, *inputs, *attributes;
        bool taken;
    } rows[] = {
        {"Conv", "1x3x5x5 c:4x3x3x3", "", true},   {"Conv", "1x3x5x5 4x3x3x3", "", false},
        {"MatMul", "3x4 4x5", "", true},           {"Softmax", "3x4", "", true},
        {"Resize", "1x1x2x2 - - i:1,1,4,4", "mode=cubic", false},
        {"CumSum", "4 i:0", "", false},
    };
    (void)state;
    for (size_t i = 0; i < NORI__COUNT(rows); i++) {
        gpu_case c;
        nori_error err = {0};
        case_begin(&c, rows[i].op, rows[i].inputs, rows[i].attributes, 1, 21);
        nori_session *s = case_session(&c, ON_CUDA, NULL, &err);
        assert_non_null(s);
        assert_int_equal(case_nodes(s, "cuda"), rows[i].taken);
        nori_session_free(s);
        case_end(&c);
    }
    nothing_left();
}

/* y = Relu(x * w) for x of [N, 6], and y's sum of rows. */
static nori_session *chain(const char *providers, const nori_session_options *options)
{
    float w[36];
    gpu_case c = {0};
    nori_error err = {0};
    for (int i = 0; i < 36; i++) {
        w[i] = (float)(i * 5 % 13 - 6) / 8;
    }
    make_begin(&c.m, 17);
    make_input(&c.m, &c.m.graph, "x", NORI_FLOAT, "N 6");
    make_weights(&c.m, &c.m.graph, "w", "6 6", w);
    make_node(&c.m, &c.m.graph, "", "MatMul", "product", "x w", "p");
    make_node(&c.m, &c.m.graph, "", "Relu", "relu", "p", "r");
    make_node(&c.m, &c.m.graph, "", "Softmax", "softmax", "r", "y");
    make_output(&c.m, &c.m.graph, "y", NORI_FLOAT, NULL);
    nori_session *s = case_session(&c, providers, options, &err);
    if (!s) {
        fail_msg("%s: %s", providers, err.message);
    }
    case_end(&c);
    return s;
}

static nori_tensor *run(nori_session *s, int64_t rows)
{
    nori_tensor *x = NULL, *y = NULL;
    nori_error err = {0};
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 2, (int64_t[]){rows, 6}, &x, NULL), NORI_OK);
    for (int64_t i = 0; i < rows * 6; i++) {
        ((float *)nori_tensor_data(x))[i] = (float)(i * 7 % 31 - 15) / 8;
    }
    if (nori_session_run(s, (const nori_tensor *const[]){x}, 1, &y, 1, &err) != NORI_OK) {
        fail_msg("%s", err.message);
    }
    nori_tensor_free(x);
    return y;
}

static void same(nori_session *got, nori_session *want, int64_t rows)
{
    nori_tensor *a = run(got, rows), *b = run(want, rows);
    nori_difference d = {.size = sizeof(d)};
    nori_tensor_compare(a, b, 1e-5, 1e-5, &d);
    assert_true(d.passes);
    nori_tensor_free(a);
    nori_tensor_free(b);
}

/* Kernels are started in the first run with a shape, recorded in the second, replayed from then on; a
 * run copies its input and output once, and relu is fused: two kernels. */
static void recording(void **state)
{
    (void)state;
    nori_session *got = chain(ON_CUDA, NULL), *want = chain("reference", NULL);
    assert_int_equal(case_nodes(got, "cuda"), 3);
    long in = count("bytes in"), out = count("bytes out"), launches = count("launches");
    long replays = count("replays");
    for (int i = 0; i < 4; i++) {
        same(got, want, 5);
    }
    assert_int_equal(count("launches") - launches, 2);
    assert_int_equal(count("replays") - replays, 3);
    assert_int_equal(count("bytes in") - in, 4 * 5 * 6 * 4);
    assert_int_equal(count("bytes out") - out, 4 * 5 * 6 * 4);
    assert_int_equal(count("graphs"), 1);
    static const int64_t rows[] = {3, 1, 70, 70, 2, 0, 9, 5, 70};
    for (size_t i = 0; i < NORI__COUNT(rows); i++) {
        same(got, want, rows[i]);
    }
    nori_session_free(got);
    nothing_left();
    got = chain("cuda:graphs=0,costs=none," LIBRARIES, NULL);
    replays = count("replays");
    launches = count("launches");
    for (int i = 0; i < 4; i++) {
        same(got, want, 5);
    }
    assert_int_equal(count("launches") - launches, 8);
    assert_int_equal(count("replays"), replays);
    nori_session_free(got);
    nori_session_free(want);
    nothing_left();
}

/* An error in a run leaves nothing behind, and the next run works. */
static void failing_run(void **state)
{
    (void)state;
    nori_session *s = chain(ON_CUDA, NULL), *want = chain("reference", NULL);
    nori_tensor *x = NULL, *y = NULL;
    nori_error err = {0};
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 2, (int64_t[]){4, 6}, &x, NULL), NORI_OK);
    set_mode("memory");
    assert_int_not_equal(nori_session_run(s, (const nori_tensor *const[]){x}, 1, &y, 1, &err), NORI_OK);
    set_mode("");
    assert_non_null(strstr(err.message, "cuMemAlloc of 96 bytes gave CUDA_ERROR_OUT_OF_MEMORY (2)"));
    same(s, want, 4);
    nori_tensor_free(x);
    nori_session_free(s);
    nori_session_free(want);
    nothing_left();
}

typedef struct job {
    nori_session *session, *want;
    int64_t rows;
} job;

static void *many(void *user)
{
    job *j = user;
    for (int i = 0; i < 10; i++) {
        same(j->session, j->want, j->rows);
    }
    return NULL;
}

static void threads(void **state)
{
    pthread_t t[3];
    job jobs[3];
    (void)state;
    nori_session *s = chain(ON_CUDA, NULL), *want = chain("reference", NULL);
    for (int i = 0; i < 3; i++) {
        jobs[i] = (job){s, want, i * 3 + 1};
        assert_int_equal(pthread_create(&t[i], NULL, many, &jobs[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
    }
    nori_session_free(s);
    nori_session_free(want);
    nothing_left();
}

/* ---- what is kept ---- */

static int hits, misses, kept;

static void told(void *user, const nori_progress *p)
{
    (void)user;
    if (p->phase && strcmp(p->phase, "cache") == 0) {
        hits += strncmp(p->text, "hit", 3) == 0;
        misses += strncmp(p->text, "miss", 4) == 0;
        kept += strncmp(p->text, "kept", 4) == 0;
    }
}

static long compiles_with(const nori_session_options *o, const char *mode)
{
    long before = count("compiles");
    hits = misses = kept = 0;
    set_mode(mode);
    nori_session *s = chain(ON_CUDA, o), *want = chain("reference", NULL);
    set_mode("");
    same(s, want, 3);
    nori_session_free(s);
    nori_session_free(want);
    nothing_left();
    return count("compiles") - before;
}

static void empty_folder(const char *folder, bool damage)
{
    char path[512];
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        if (damage) {
            assert_int_equal(truncate(path, 100), 0);
        } else {
            unlink(path);
        }
    }
    closedir(d);
}

static void cache(void **state)
{
    char folder[] = "/tmp/nori-cuda-XXXXXX";
    nori_session_options o;
    (void)state;
    assert_non_null(mkdtemp(folder));
    nori_session_options_default(&o);
    o.cache_dir = folder;
    o.progress = told;
    long programs = compiles_with(&o, "");
    assert_true(programs > 0);
    assert_int_equal(misses, programs);
    assert_int_equal(kept, programs);
    assert_int_equal(compiles_with(&o, ""), 0);
    assert_int_equal(hits, programs);
    empty_folder(folder, true);
    assert_int_equal(compiles_with(&o, ""), programs);
    assert_int_equal(misses, programs);
    empty_folder(folder, false);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options), cmocka_unit_test(libraries),      cmocka_unit_test(drivers),
        cmocka_unit_test(claims),  cmocka_unit_test(older_compiler), cmocka_unit_test(recording),
        cmocka_unit_test(threads), cmocka_unit_test(failing_run),    cmocka_unit_test(cache),
    };
    return cmocka_run_group_tests(tests, open_double, NULL);
}

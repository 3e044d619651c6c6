/* The provider opencl in sessions: shapes that change, threads that share one, indices that are not
 * there, costs, and programs kept in a folder. Exits 77 where there is no OpenCL device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

#include "make_model.h"
#include "gpu_case.h"

#define ON_OPENCL "opencl:costs=none"

static nori_tensor *filled(int64_t rows, int64_t columns)
{
    nori_tensor *t = NULL;
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 2, (int64_t[]){rows, columns}, &t, NULL),
                     NORI_OK);
    for (int64_t i = 0; i < rows * columns; i++) {
        ((float *)nori_tensor_data(t))[i] = (float)(i * 7 % 31 - 15) / 8;
    }
    return t;
}

/* A chain over [N, 6] with a product, a sum of two paths and a softmax. */
static void chain(make *m)
{
    float w[36], b[6];
    for (int i = 0; i < 36; i++) {
        w[i] = (float)(i * 5 % 13 - 6) / 8;
        b[i % 6] = (float)(i % 6) / 4;
    }
    make_begin(m, 17);
    make_input(m, &m->graph, "x", NORI_FLOAT, "N 6");
    make_weights(m, &m->graph, "w", "6 6", w);
    make_weights(m, &m->graph, "b", "6", b);
    make_node(m, &m->graph, "", "MatMul", "product", "x w", "p");
    make_node(m, &m->graph, "", "Add", "bias", "p b", "q");
    make_node(m, &m->graph, "", "Relu", "relu", "q", "r");
    make_node(m, &m->graph, "", "Add", "both", "r x", "s");
    make_node(m, &m->graph, "", "Softmax", "softmax", "s", "y");
    make_output(m, &m->graph, "y", NORI_FLOAT, NULL);
    make_output(m, &m->graph, "r", NORI_FLOAT, NULL); /* seen inside too: nothing is fused over it */
}

static nori_session *chain_session(make *m, const char *providers)
{
    gpu_case c = {.m = *m};
    nori_error err = {0};
    nori_session *s = case_session(&c, providers, NULL, &err);
    *m = c.m;
    if (!s) {
        fail_msg("%s: %s", providers, err.message);
    }
    return s;
}

static void same(nori_session *got, nori_session *want, int64_t rows)
{
    nori_tensor *x = filled(rows, 6), *a[2] = {NULL}, *b[2] = {NULL};
    nori_error err = {0};
    assert_int_equal(nori_session_run(got, (const nori_tensor *const[]){x}, 1, a, 2, &err), NORI_OK);
    assert_int_equal(nori_session_run(want, (const nori_tensor *const[]){x}, 1, b, 2, &err), NORI_OK);
    for (int i = 0; i < 2; i++) {
        nori_difference d = {.size = sizeof(d)};
        nori_tensor_compare(a[i], b[i], 1e-5, 1e-5, &d);
        assert_true(d.passes);
        nori_tensor_free(a[i]);
        nori_tensor_free(b[i]);
    }
    nori_tensor_free(x);
}

/* More shapes than layouts are kept, some again, one empty. */
static void shapes(void **state)
{
    static const int64_t rows[] = {3, 1, 3, 64, 7, 65, 2, 3, 0, 1};
    make m;
    (void)state;
    chain(&m);
    nori_session *got = chain_session(&m, ON_OPENCL), *want = chain_session(&m, "reference");
    assert_int_equal(case_nodes(got, "opencl"), 5);
    for (size_t i = 0; i < NORI__COUNT(rows); i++) {
        same(got, want, rows[i]);
    }
    nori_session_free(got);
    nori_session_free(want);
    make_end(&m);
}

typedef struct job {
    nori_session *session;
    int64_t rows;
    nori_tensor *first[2];
    bool failed;
} job;

static void *many(void *user)
{
    job *j = user;
    nori_tensor *x = filled(j->rows, 6);
    for (int i = 0; i < 50 && !j->failed; i++) {
        nori_tensor *y[2] = {NULL};
        nori_error err = {0};
        j->failed = nori_session_run(j->session, (const nori_tensor *const[]){x}, 1, y, 2, &err) !=
                        NORI_OK ||
                    memcmp(nori_tensor_data(y[0]), nori_tensor_data(j->first[0]),
                           nori_tensor_bytes(y[0])) != 0;
        nori_tensor_free(y[0]);
        nori_tensor_free(y[1]);
    }
    nori_tensor_free(x);
    return NULL;
}

/* Threads with shapes of their own share a session: each gets its results, bit for bit. */
static void threads(void **state)
{
    make m;
    job jobs[4];
    pthread_t ids[4];
    (void)state;
    chain(&m);
    nori_session *s = chain_session(&m, ON_OPENCL);
    for (int i = 0; i < 4; i++) {
        jobs[i] = (job){.session = s, .rows = 1 + 3 * (i / 2)};
        nori_tensor *x = filled(jobs[i].rows, 6);
        assert_int_equal(nori_session_run(s, (const nori_tensor *const[]){x}, 1, jobs[i].first, 2, NULL),
                         NORI_OK);
        nori_tensor_free(x);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&ids[i], NULL, many, &jobs[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(ids[i], NULL);
        assert_false(jobs[i].failed);
        nori_tensor_free(jobs[i].first[0]);
        nori_tensor_free(jobs[i].first[1]);
    }
    nori_session_free(s);
    make_end(&m);
}

/* Indices are checked on the host: a run fails, the next one works. */
static void indices(void **state)
{
    gpu_case c;
    nori_error err = {0};
    nori_tensor *y[1] = {NULL};
    (void)state;
    case_begin(&c, "Gather", "5x7 f:0,4", "", 1, 17);
    nori_session *s = case_session(&c, ON_OPENCL, NULL, &err);
    assert_non_null(s);
    int64_t *at = nori_tensor_data(c.fed[1]);
    at[1] = 5;
    assert_int_equal(nori_session_run(s, (const nori_tensor *const *)c.fed, 2, y, 1, &err),
                     NORI_ERROR_DATA);
    assert_non_null(strstr(err.message, "index 5 at place 1, expected within an axis of 5"));
    at[1] = -5;
    err = (nori_error){0};
    assert_int_equal(nori_session_run(s, (const nori_tensor *const *)c.fed, 2, y, 1, &err), NORI_OK);
    assert_memory_equal(nori_tensor_data(y[0]), nori_tensor_data(c.fed[0]), 7 * sizeof(float));
    nori_tensor_free(y[0]);
    nori_session_free(s);
    case_end(&c);
}

static size_t on_opencl(const char *op, const char *inputs, const char *providers)
{
    gpu_case c;
    nori_error err = {0};
    nori_session_options o;
    nori_session_options_default(&o);
    o.split_only = 1;
    case_begin(&c, op, inputs, "", 1, 17);
    nori_session *s = case_session(&c, providers, &o, &err);
    assert_non_null(s);
    size_t nodes = case_nodes(s, "opencl");
    nori_session_free(s);
    case_end(&c);
    return nodes;
}

/* A small node is not worth its copies; with costs=none it is given all the same. What is not taken
 * says why. */
static void costs(void **state)
{
    gpu_case c;
    nori_error err = {0};
    nori_part_info part = {.size = sizeof(part)};
    (void)state;
    assert_int_equal(on_opencl("Relu", "3x5", "opencl,cpu"), 0);
    assert_int_equal(on_opencl("Relu", "3x5", "opencl:costs=estimate,cpu"), 0);
    assert_int_equal(on_opencl("Relu", "3x5", "opencl:costs=none,cpu"), 1);
    assert_int_equal(on_opencl("Det", "3x3", "opencl:costs=none,cpu"), 0);
    case_begin(&c, "Relu", "3x5", "", 1, 17);
    nori_session *s = case_session(&c, "opencl,cpu", NULL, &err);
    assert_non_null(s);
    assert_true(nori_session_part(s, 0, &part));
    assert_int_equal(part.given, 0);
    assert_true(part.copy_ns > 0 && part.launch_ns > 0);
    nori_session_free(s);
    case_end(&c);
}

/* ---- programs kept in a folder ---- */

typedef struct told {
    size_t hits, misses, kept;
    char text[1024];
} told;

static void listen(void *user, const nori_progress *p)
{
    told *t = user;
    if (strcmp(p->phase, "cache") == 0) {
        t->hits += strncmp(p->text, "hit:", 4) == 0;
        t->misses += strncmp(p->text, "miss:", 5) == 0;
        t->kept += strncmp(p->text, "kept:", 5) == 0;
        if (strncmp(p->text, "miss:", 5) == 0) {
            snprintf(t->text, sizeof(t->text), "%s", p->text);
        }
    }
}

/* A session of one Relu with a cache folder, run once. */
static told with_cache(const char *providers, const char *folder)
{
    gpu_case c;
    nori_error err = {0};
    told t = {0};
    nori_tensor *y[1] = {NULL};
    nori_session_options o;
    nori_session_options_default(&o);
    o.cache_dir = folder;
    o.progress = listen;
    o.progress_user = &t;
    case_begin(&c, "Relu", "33", "", 1, 17);
    nori_session *s = case_session(&c, providers, &o, &err);
    if (!s) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(nori_session_run(s, (const nori_tensor *const *)c.fed, 1, y, 1, &err), NORI_OK);
    const float *x = nori_tensor_data(c.fed[0]), *v = nori_tensor_data(y[0]);
    for (int i = 0; i < 33; i++) {
        assert_true(v[i] == (x[i] > 0 ? x[i] : 0));
    }
    nori_tensor_free(y[0]);
    nori_session_free(s);
    case_end(&c);
    return t;
}

/* Changes every file of a folder at one place, or cuts it there; or removes it. */
static void spoil(const char *folder, long at, bool cut, bool all)
{
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[512];
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        if (e->d_name[0] == '.') {
            continue;
        }
        if (all) {
            assert_int_equal(remove(path), 0);
        } else if (cut) {
            assert_int_equal(truncate(path, at), 0);
        } else {
            FILE *f = fopen(path, "r+b");
            assert_non_null(f);
            assert_int_equal(fseek(f, at, at < 0 ? SEEK_END : SEEK_SET), 0);
            int was = fgetc(f);
            assert_int_equal(fseek(f, at, at < 0 ? SEEK_END : SEEK_SET), 0);
            fputc(was ^ 1, f);
            fclose(f);
        }
    }
    closedir(d);
}

static void cache(void **state)
{
    char folder[] = "/tmp/nori-opencl-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(with_cache(ON_OPENCL, NULL).misses, 0); /* no folder: nothing is said */
    told t = with_cache(ON_OPENCL, folder);
    assert_int_equal(t.hits, 0);
    assert_int_equal(t.misses, 2); /* elementwise, and copies, which every part has */
    assert_int_equal(t.kept, 2);
    assert_non_null(strstr(t.text, "nothing is kept for kernels"));
    t = with_cache(ON_OPENCL, folder);
    assert_int_equal(t.hits, 2);
    assert_int_equal(t.misses + t.kept, 0);
    t = with_cache(ON_OPENCL ",storage=fp16", folder); /* programs of its own */
    assert_int_equal(t.misses, 2);
    spoil(folder, -9, false, false);
    t = with_cache(ON_OPENCL, folder);
    assert_int_equal(t.misses, 2);
    assert_int_equal(t.kept, 2);
    assert_non_null(strstr(t.text, "damaged"));
    spoil(folder, 100, true, false);
    assert_int_equal(with_cache(ON_OPENCL, folder).misses, 2);
    assert_int_equal(with_cache(ON_OPENCL, folder).hits, 2);
    spoil(folder, 57, false, false); /* in the driver's name */
    t = with_cache(ON_OPENCL, folder);
    assert_int_equal(t.misses, 2);
    assert_non_null(strstr(t.text, "was made for"));
    spoil(folder, 0, false, true);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes), cmocka_unit_test(threads), cmocka_unit_test(indices),
        cmocka_unit_test(costs),  cmocka_unit_test(cache),
    };
    return case_device(ON_OPENCL) ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

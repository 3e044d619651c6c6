/* Preparation that takes long: progress while it lasts, compiled parts kept in a folder, and the
 * reason told for every hit and miss. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "make_model.h"
#include "nori/tools.h"
#include "run_node.h"

/* What a session told while it was made. */
typedef struct told {
    size_t steps, compiling; /* calls; those of a provider's own */
    size_t hits, misses, kept;
    size_t parts;
    bool ended; /* the plan was done, after everything else */
    char cache[1024]; /* the last text about the folder, and those before it */
} told;

static void listen(void *user, const nori_progress *p)
{
    told *t = user;
    assert_int_equal(p->size, sizeof(*p));
    assert_true(p->total == 0 || p->done <= p->total);
    assert_false(t->ended);
    t->steps++;
    t->compiling += strcmp(p->text, "kernels") == 0;
    if (strcmp(p->phase, "cache") == 0) {
        t->hits += strncmp(p->text, "hit:", 4) == 0;
        t->misses += strncmp(p->text, "miss:", 5) == 0;
        t->kept += strncmp(p->text, "kept:", 5) == 0;
        size_t n = strlen(t->cache);
        snprintf(t->cache + n, sizeof(t->cache) - n, "%s\n", p->text);
    } else if (strcmp(p->phase, "compile") == 0 && !p->text[0]) {
        t->parts = p->total;
    }
    t->ended = strcmp(p->phase, "plan") == 0 && p->done == p->total;
}

static void chain(make *m, const char *last)
{
    make_begin(m, 17);
    make_input(m, &m->graph, "x", NORI_FLOAT, "N 4");
    make_node(m, &m->graph, "", "Relu", "a", "x", "v");
    make_node(m, &m->graph, "", "Softplus", "b", "v", "w");
    make_node(m, &m->graph, "", last, "c", "w", "y");
    make_output(m, &m->graph, "y", NORI_FLOAT, "N 4");
}

static told prepare(make *m, const char *options, const char *folder)
{
    char spec[512];
    told t = {0};
    nori__text bytes;
    nori_error err = {0};
    nori_model *model = NULL;
    nori_session *session = NULL;
    nori_session_options o;
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m->model, &bytes, &err), NORI_OK);
    assert_int_equal(nori_model_load_memory(NULL, bytes.data, bytes.size, NULL, NULL, &model, &err),
                     NORI_OK);
    snprintf(spec, sizeof(spec), "%s:cost=1,slow=1%s", FAKE_PROVIDER, options);
    nori_session_options_default(&o);
    o.providers = spec;
    o.progress = listen;
    o.progress_user = &t;
    o.cache_dir = folder;
    if (nori_session_create(model, &o, &session, &err) != NORI_OK) {
        fail_msg("%s", err.message);
    }
    assert_true(t.ended);
    nori_tensor *x = node_tensor(NORI_FLOAT, 2, (const int64_t[]){2, 4});
    nori_tensor *y = NULL;
    if (nori_session_run(session, (const nori_tensor *const *)&x, 1, &y, 1, &err) != NORI_OK) {
        fail_msg("%s", err.message);
    }
    nori_tensor_free(x);
    nori_tensor_free(y);
    nori_session_free(session);
    nori_model_free(model);
    nori__text_free(&bytes);
    return t;
}

/* A folder of its own; removed with what is in it. */
static char *new_folder(char *path)
{
    strcpy(path, "/tmp/nori_prepare_XXXXXX");
    assert_non_null(mkdtemp(path));
    return path;
}

/* The files in it, the last one's path in name. */
static size_t files(const char *folder, char name[512], bool drop)
{
    size_t n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] != '.') {
            snprintf(name, 512, "%s/%s", folder, e->d_name);
            n++;
            if (drop) {
                assert_int_equal(unlink(name), 0);
            }
        }
    }
    closedir(d);
    return n;
}

static void drop_folder(const char *folder)
{
    char name[512];
    files(folder, name, true);
    assert_int_equal(rmdir(folder), 0);
}

static void without_folder(void **state)
{
    (void)state;
    make m;
    chain(&m, "Neg");
    told t = prepare(&m, "", NULL);
    assert_int_equal(t.parts, 2);
    assert_int_equal(t.compiling, 20); /* ten steps a part */
    assert_int_equal(t.hits + t.misses + t.kept, 0);
    make_end(&m);
}

static void second_time(void **state)
{
    (void)state;
    make m;
    char folder[64], name[512];
    new_folder(folder);
    chain(&m, "Neg");
    told first = prepare(&m, "", folder), again = prepare(&m, "", folder);
    assert_int_equal(first.misses, 2);
    assert_int_equal(first.kept, 2);
    assert_int_equal(first.compiling, 20);
    assert_non_null(strstr(first.cache, "nothing is kept for this part of 1 nodes"));
    assert_int_equal(again.hits, 2);
    assert_int_equal(again.misses + again.kept + again.compiling, 0);
    make_end(&m);
    chain(&m, "Abs"); /* one part is the same, one is new */
    again = prepare(&m, "", folder);
    assert_int_equal(again.hits, 1);
    assert_int_equal(again.misses, 1);
    assert_int_equal(files(folder, name, false), 3);
    make_end(&m);
    drop_folder(folder);
}

static void other_engine(void **state)
{
    (void)state;
    make m;
    char folder[64];
    new_folder(folder);
    chain(&m, "Neg");
    prepare(&m, "", folder);
    told t = prepare(&m, ",version=3", folder);
    assert_int_equal(t.misses, 2);
    assert_int_equal(t.kept, 2);
    assert_non_null(strstr(t.cache, "was made for \"fake engine 1.0;knobs 1\", now it is "
                                    "\"fake engine 1.3;knobs 1\""));
    assert_int_equal(prepare(&m, ",version=3", folder).hits, 2);
    make_end(&m);
    drop_folder(folder);
}

/* Every single byte of a kept file, and every length: found, told, made anew. */
static void damaged(void **state)
{
    (void)state;
    make m;
    char folder[64], name[512];
    unsigned char bytes[256];
    new_folder(folder);
    make_begin(&m, 17);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "N 4");
    make_node(&m, &m.graph, "", "Relu", "a", "x", "y");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "N 4");
    assert_int_equal(prepare(&m, "", folder).kept, 1);
    assert_int_equal(files(folder, name, false), 1);
    FILE *f = fopen(name, "rb");
    size_t size = f ? fread(bytes, 1, sizeof(bytes), f) : 0;
    assert_in_range(size, 64, sizeof(bytes) - 1);
    fclose(f);
    for (size_t i = 0; i < 2 * size; i += 5) {
        f = fopen(name, "wb");
        assert_non_null(f);
        bytes[i % size] ^= 0x41;
        assert_int_equal(fwrite(bytes, 1, i < size ? size : i - size, f), i < size ? size : i - size);
        bytes[i % size] ^= 0x41;
        fclose(f);
        told t = prepare(&m, "", folder);
        assert_int_equal(t.hits, 0);
        assert_int_equal(t.misses, 1);
        assert_int_equal(t.kept, 1);
        assert_int_equal(prepare(&m, "", folder).hits, 1);
    }
    make_end(&m);
    drop_folder(folder);
}

static void no_such_folder(void **state)
{
    (void)state;
    make m;
    chain(&m, "Neg");
    told t = prepare(&m, "", "/nonexistent/folder");
    assert_int_equal(t.compiling, 20);
    assert_int_equal(t.kept, 0);
    assert_non_null(strstr(t.cache, "not kept: cannot create /nonexistent/folder/fake-"));
    make_end(&m);
}

/* Splitting, changing and reordering bytes changes a hash; so does every bit. */
static void hashes(void **state)
{
    (void)state;
    char seen[300][NORI__HASH_TEXT];
    unsigned char bytes[33] = {0};
    size_t n = 0;
    for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
        nori__hash h = {0};
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        nori__hash_add(&h, bytes, sizeof(bytes));
        nori__hash_text(&h, seen[n++]);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    for (size_t size = 0; size < sizeof(bytes); size++) {
        nori__hash h = {0};
        nori__hash_add(&h, bytes, size);
        nori__hash_text(&h, seen[n++]);
    }
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(strlen(seen[i]), 32);
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(seen[i], seen[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_folder), cmocka_unit_test(second_time),
        cmocka_unit_test(other_engine),   cmocka_unit_test(damaged),
        cmocka_unit_test(no_such_folder), cmocka_unit_test(hashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_roundtrip.c: real model and tensor files are read, written and read again; what was read
 * the second time must mean what was read the first time. The bundled example is always there;
 * the folder of many models, NORI_SHARED_DIR, may not be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <glob.h>
#include <stdio.h>

#include <cmocka.h>

#include "graph/graph.h"
#include "onnx/fields.h"
#include "platform/platform.h"
#include "same_message.h"

/* ---- files ---- */

typedef struct tally {
    size_t files, identical;
} tally;

static void check_model(const char *path, tally *count)
{
    nori__map_file file;
    nori_error err = {0};
    assert_int_equal(nori__map_open(path, &file, &err), NORI_OK);
    nori__arena arena, again;
    nori__arena_init(&arena, &nori__malloc);
    nori__arena_init(&again, &nori__malloc);
    nori__text out;
    nori__text_init(&out, &nori__malloc);
    nori__pb_model *m = NULL, *w = NULL;
    nori_status s = nori__pb_read_model(&arena, file.data, file.size, &m, NULL, &err);
    if (s == NORI_OK) {
        s = nori__pb_write_model(m, &out, &err);
    }
    if (s == NORI_OK) {
        s = nori__pb_read_model(&again, (const uint8_t *)out.data, out.size, &w, NULL, &err);
    }
    if (s != NORI_OK) {
        fail_msg("%s: %s", path, err.message);
    }
    if (!same_message(&nori__pb_model_message, (const char *)m, (const char *)w)) {
        fail_msg("%s changed its meaning", path);
    }
    for (size_t i = 0; i < m->graph->initializers.count; i++) {
        nori_tensor *t = NULL;
        const nori__pb_tensor *pb = &m->graph->initializers.items[i];
        if (pb->data_location == 0) {
            assert_int_equal(nori__tensor_from_pb(&nori__malloc, pb, NULL, &t, &err), NORI_OK);
        }
        nori_tensor_free(t);
    }
    count->files++;
    count->identical += out.size == file.size && memcmp(out.data, file.data, out.size) == 0;
    nori__text_free(&out);
    nori__arena_free(&again);
    nori__arena_free(&arena);
    nori__map_close(&file);
}

/* Through the graph in memory and back: what nobody edited means the same. Unused initializers are
 * dropped and nodes out of order are sorted, so the graph is compared by what it is built to. */
static void check_graph(const char *path, tally *count)
{
    nori__map_file file;
    nori_error err = {0};
    assert_int_equal(nori__map_open(path, &file, &err), NORI_OK);
    nori__arena arena;
    nori__arena_init(&arena, &nori__malloc);
    nori__text first, second;
    nori__text_init(&first, &nori__malloc);
    nori__text_init(&second, &nori__malloc);
    nori__pb_model *m = NULL, *w = NULL, *again = NULL;
    nori__ir *ir = NULL, *ir2 = NULL;
    nori_status s = nori__pb_read_model(&arena, file.data, file.size, &m, NULL, &err);
    char folder[1024];
    snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
    nori__external *external = NULL;
    assert_int_equal(nori__external_create(&nori__malloc, folder, folder, true, &external, &err),
                     NORI_OK);
    s = s == NORI_OK ? nori__ir_build(&nori__malloc, m, external, &ir, &err) : s;
    s = s == NORI_OK ? nori__ir_to_pb(ir, &arena, &w, &err) : s;
    s = s == NORI_OK ? nori__pb_write_model(w, &first, &err) : s;
    s = s == NORI_OK ? nori__pb_read_model(&arena, (const uint8_t *)first.data, first.size, &again,
                                           NULL, &err)
                     : s;
    s = s == NORI_OK ? nori__ir_build(&nori__malloc, again, NULL, &ir2, &err) : s;
    s = s == NORI_OK ? nori__ir_to_pb(ir2, &arena, &w, &err) : s;
    s = s == NORI_OK ? nori__pb_write_model(w, &second, &err) : s;
    if (s != NORI_OK) {
        fail_msg("%s: %s", path, err.message);
    }
    assert_int_equal(ir->node_count, ir2->node_count);
    if (first.size != second.size || memcmp(first.data, second.data, first.size) != 0) {
        fail_msg("%s changed its meaning between two passes through the graph", path);
    }
    count->files++;
    count->identical += first.size == file.size && memcmp(first.data, file.data, file.size) == 0;
    nori__ir_free(ir2);
    nori__ir_free(ir);
    nori__external_free(external);
    nori__text_free(&first);
    nori__text_free(&second);
    nori__arena_free(&arena);
    nori__map_close(&file);
}

static void check_tensor(const char *path, tally *count)
{
    nori__map_file file;
    nori_error err = {0};
    assert_int_equal(nori__map_open(path, &file, &err), NORI_OK);
    nori__arena arena;
    nori__arena_init(&arena, &nori__malloc);
    nori__text out;
    nori__text_init(&out, &nori__malloc);
    nori__pb_tensor *t = NULL, *w = NULL;
    nori_status s = nori__pb_read_tensor(&arena, file.data, file.size, &t, &err);
    if (s != NORI_OK) {
        fail_msg("%s: %s", path, err.message);
    }
    assert_int_equal(nori__pb_write_tensor(t, &out, &err), NORI_OK);
    assert_int_equal(nori__pb_read_tensor(&arena, (const uint8_t *)out.data, out.size, &w, &err),
                     NORI_OK);
    assert_true(same_message(&nori__pb_tensor_message, (const char *)t, (const char *)w));
    count->files++;
    nori__text_free(&out);
    nori__arena_free(&arena);
    nori__map_close(&file);
}

static tally check_all(const char *pattern, void (*check)(const char *path, tally *count))
{
    tally count = {0, 0};
    glob_t found;
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            check(found.gl_pathv[i], &count);
        }
        globfree(&found);
    }
    return count;
}

static void bundled_files(void **state)
{
    (void)state;
    tally models = check_all(NORI_EXAMPLES_DIR "/digits/*.onnx", check_model);
    assert_int_equal(models.files, 1);
    assert_int_equal(models.identical, 1);
    models = check_all(NORI_EXAMPLES_DIR "/digits/*.onnx", check_graph);
    assert_int_equal(models.identical, 1);
    assert_int_equal(
        check_all(NORI_EXAMPLES_DIR "/digits/test_data_set_0/*.pb", check_tensor).files, 2);
}

static void shared_models(void **state)
{
    (void)state;
    tally count = check_all(NORI_SHARED_DIR "/models/*/model.onnx", check_model);
    if (count.files == 0) {
        print_message("no models in %s/models: not tested (set NORI_SHARED_DIR)\n",
                      NORI_SHARED_DIR);
        skip();
    }
    print_message("%zu models, %zu of them written byte for byte as they were\n", count.files,
                  count.identical);
    count = check_all(NORI_SHARED_DIR "/models/*/model.onnx", check_graph);
    print_message("%zu models through the graph, %zu of them byte for byte\n", count.files,
                  count.identical);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bundled_files),
        cmocka_unit_test(shared_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

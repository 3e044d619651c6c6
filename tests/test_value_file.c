/* test_value_file.c: values of every kind from files: what SequenceProto, OptionalProto and MapProto
 * bytes become, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>

#include "graph/tensor.h"
#include "nori/tools.h"
#include "test_alloc.h"
#include "tools/files/group_file.h"
#include "wire.h"

/* A 1-D float TensorProto. */
static void add_floats(nori__text *to, uint32_t number, size_t count, const float *v)
{
    nori__text t = wire_new();
    wire_int(&t, 1, (int64_t)count);
    wire_int(&t, 2, NORI_FLOAT);
    wire_list(&t, 9, NORI_FLOAT, v, count * sizeof(float));
    wire_sub(to, number, &t);
}

static void add_scalar(nori__text *to, uint32_t number, float v)
{
    nori__text t = wire_new();
    wire_int(&t, 2, NORI_FLOAT);
    wire_f32(&t, 4, v);
    wire_sub(to, number, &t);
}

static nori_tensor *read_value(nori__text *bytes, nori_kind kind)
{
    nori_tensor *t = NULL;
    nori_error err = {0};
    nori_status s = nori__group_read(&nori__malloc, (const uint8_t *)bytes->data, bytes->size, kind,
                                     &t, &err);
    if (s != NORI_OK) {
        print_error("%s\n", err.message);
    }
    assert_int_equal(s, NORI_OK);
    nori__text_free(bytes);
    assert_int_equal(t->kind, kind);
    return t;
}

static void read_fails(nori__text *bytes, nori_kind kind, nori_status status, const char *says)
{
    nori_tensor *t = NULL;
    nori_error err = {0};
    assert_int_equal(nori__group_read(&nori__malloc, (const uint8_t *)bytes->data, bytes->size, kind,
                                      &t, &err),
                     status);
    assert_null(t);
    if (!strstr(err.message, says)) {
        fail_msg("\"%s\" does not say \"%s\"", err.message, says);
    }
    nori__text_free(bytes);
}

static void sequences_of_tensors(void **state)
{
    (void)state;
    nori__text b = wire_new();
    wire_str(&b, 1, "name");
    wire_int(&b, 2, 1);
    add_floats(&b, 3, 2, (float[]){1, 2});
    add_floats(&b, 3, 0, NULL);
    nori_tensor *t = read_value(&b, NORI_KIND_SEQUENCE);
    assert_int_equal(nori_tensor_item_count(t), 2);
    const nori_tensor *first = nori_tensor_item(t, 0);
    assert_int_equal(first->rank, 1);
    assert_true(((const float *)first->data)[1] == 2);
    assert_int_equal(nori_tensor_item(t, 1)->count, 0);
    nori_tensor_free(t);

    b = wire_new(); /* no bytes: no items */
    t = read_value(&b, NORI_KIND_SEQUENCE);
    assert_int_equal(nori_tensor_item_count(t), 0);
    nori_tensor_free(t);
}

static void optionals_full_and_empty(void **state)
{
    (void)state;
    nori__text b = wire_new(), inner = wire_new();
    wire_int(&b, 2, 3);
    add_floats(&inner, 3, 1, (float[]){7});
    wire_sub(&b, 5, &inner);
    nori_tensor *t = read_value(&b, NORI_KIND_OPTIONAL);
    assert_int_equal(nori_tensor_item_count(t), 1);
    const nori_tensor *sequence = nori_tensor_item(t, 0);
    assert_int_equal(sequence->kind, NORI_KIND_SEQUENCE);
    assert_true(((const float *)nori_tensor_item(sequence, 0)->data)[0] == 7);
    nori_tensor_free(t);

    b = wire_new();
    wire_int(&b, 2, 1);
    t = read_value(&b, NORI_KIND_OPTIONAL);
    assert_int_equal(nori_tensor_item_count(t), 0);
    nori_tensor_free(t);

    b = wire_new();
    add_floats(&b, 3, 1, (float[]){7});
    add_floats(&b, 3, 1, (float[]){8});
    read_fails(&b, NORI_KIND_OPTIONAL, NORI_ERROR_FORMAT, "holds 2 values");
}

static void maps_by_integer_and_by_text(void **state)
{
    (void)state;
    nori__text b = wire_new(), values = wire_new();
    wire_int(&b, 2, NORI_INT64);
    wire_int(&b, 3, 5);
    wire_int(&b, 3, -6);
    add_scalar(&values, 3, 0.5f);
    add_scalar(&values, 3, 0.25f);
    wire_sub(&b, 5, &values);
    nori_tensor *t = read_value(&b, NORI_KIND_MAP);
    assert_int_equal(((const int64_t *)nori_tensor_item(t, 0)->data)[1], -6);
    assert_true(((const float *)nori_tensor_item(t, 1)->data)[1] == 0.25f);
    nori_tensor_free(t);

    nori__text map = wire_new();
    b = wire_new();
    values = wire_new();
    wire_int(&map, 2, NORI_STRING);
    wire_str(&map, 4, "key");
    add_scalar(&values, 3, 2);
    wire_sub(&map, 5, &values);
    wire_sub(&b, 6, &map); /* in a sequence */
    t = read_value(&b, NORI_KIND_SEQUENCE);
    const nori_tensor *one = nori_tensor_item(t, 0);
    assert_int_equal(one->kind, NORI_KIND_MAP);
    assert_string_equal(((const nori_string *)nori_tensor_item(one, 0)->data)[0].data, "key");
    nori_tensor_free(t);

    b = wire_new();
    wire_int(&b, 2, NORI_INT64);
    wire_int(&b, 3, 5);
    read_fails(&b, NORI_KIND_MAP, NORI_ERROR_FORMAT, "1 keys and another number");
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    nori__text b = wire_new(), empty = wire_new();
    add_floats(&b, 3, 1, (float[]){7});
    wire_sub(&b, 5, &empty);
    read_fails(&b, NORI_KIND_SEQUENCE, NORI_ERROR_FORMAT, "several kinds");

    b = wire_new();
    nori__text sparse = wire_new();
    wire_int(&sparse, 3, 4);
    wire_sub(&b, 4, &sparse);
    read_fails(&b, NORI_KIND_SEQUENCE, NORI_ERROR_UNSUPPORTED, "sparse");

    b = wire_new();
    wire_bytes(&b, 3, "\x0f", 1);
    read_fails(&b, NORI_KIND_SEQUENCE, NORI_ERROR_FORMAT, "TensorProto");

    b = wire_new();
    for (int i = 0; i < 100; i++) { /* sequences in sequences */
        nori__text outer = wire_new();
        wire_sub(&outer, 5, &b);
        b = outer;
    }
    read_fails(&b, NORI_KIND_SEQUENCE, NORI_ERROR_LIMIT, "nested");
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    nori__text b = wire_new(), map = wire_new(), values = wire_new();
    wire_int(&map, 2, NORI_STRING);
    wire_str(&map, 4, "key");
    add_scalar(&values, 3, 2);
    wire_sub(&map, 5, &values);
    wire_sub(&b, 6, &map);
    for (size_t fail_at = 1;; fail_at++) {
        test_alloc ta;
        nori_tensor *t = NULL;
        test_alloc_init(&ta, 0);
        ta.fail_at = fail_at;
        nori_status s = nori__group_read(&ta.allocator, (const uint8_t *)b.data, b.size,
                                         NORI_KIND_SEQUENCE, &t, NULL);
        nori_tensor_free(t);
        assert_int_equal(ta.live, 0);
        if (s == NORI_OK) {
            assert_true(fail_at > 8);
            break;
        }
        assert_int_equal(s, NORI_ERROR_MEMORY);
    }
    nori__text_free(&b);
}

/* The public function: by path, an .npy file included. */
static void by_path(void **state)
{
    (void)state;
    char path[] = "/tmp/nori_value_XXXXXX", npy[64];
    nori__text b = wire_new();
    nori_error err = {0};
    nori_tensor *t = NULL, *plain = NULL;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    add_floats(&b, 3, 2, (float[]){1, 2});
    assert_int_equal(write(fd, b.data, b.size), (ssize_t)b.size);
    close(fd);
    assert_int_equal(nori_value_read(NULL, path, NORI_KIND_OPTIONAL, &t, &err), NORI_OK);
    plain = nori_tensor_item(t, 0);
    snprintf(npy, sizeof(npy), "%s.npy", path);
    assert_int_equal(nori_tensor_write(plain, npy, &err), NORI_OK);
    nori_tensor_free(t);
    assert_int_equal(nori_value_read(NULL, npy, NORI_KIND_OPTIONAL, &t, &err), NORI_OK);
    assert_int_equal(t->kind, NORI_KIND_OPTIONAL);
    assert_true(((const float *)nori_tensor_item(t, 0)->data)[1] == 2);
    nori_tensor_free(t);
    assert_int_equal(nori_value_read(NULL, npy, NORI_KIND_UNKNOWN, &t, &err), NORI_OK);
    assert_int_equal(t->kind, NORI_KIND_TENSOR);
    nori_tensor_free(t);
    unlink(npy);
    unlink(path);
    nori__text_free(&b);
    assert_int_equal(nori_value_read(NULL, path, NORI_KIND_SEQUENCE, &t, &err), NORI_ERROR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_of_tensors),
        cmocka_unit_test(optionals_full_and_empty),
        cmocka_unit_test(maps_by_integer_and_by_text),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(every_failed_allocation_is_reported),
        cmocka_unit_test(by_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

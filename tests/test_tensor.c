/* test_tensor.c: tensors as callers see them, and as a TensorProto says them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>
#include <pthread.h>

#include "base/byte_order.h"
#include "graph/tensor.h"
#include "test_alloc.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

/* ---- making ---- */

static void new_tensors_are_zero(void **state)
{
    (void)state;
    nori_tensor *t = NULL;
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 3, DIMS(2, 3, 4), &t, NULL), NORI_OK);
    assert_int_equal(nori_tensor_kind(t), NORI_KIND_TENSOR);
    assert_int_equal(nori_tensor_type(t), NORI_FLOAT);
    assert_int_equal(nori_tensor_rank(t), 3);
    assert_int_equal(nori_tensor_dims(t)[1], 3);
    assert_int_equal(nori_tensor_elements(t), 24);
    assert_int_equal(nori_tensor_bytes(t), 96);
    assert_int_equal((uintptr_t)nori_tensor_data(t) % 64, 0);
    for (int i = 0; i < 24; i++) {
        assert_true(((const float *)nori_tensor_const_data(t))[i] == 0);
    }
    assert_int_equal(nori_tensor_item_count(t), 0);
    assert_null(nori_tensor_item(t, 0));
    nori_tensor_free(t);
    assert_int_equal(nori_tensor_create(NULL, NORI_INT64, 0, NULL, &t, NULL), NORI_OK);
    assert_int_equal(nori_tensor_elements(t), 1);
    assert_int_equal(nori_tensor_bytes(t), 8);
    nori_tensor_free(t);
    nori_tensor_free(NULL);
}

static void empty_tensors(void **state)
{
    (void)state;
    nori_tensor *t = NULL;
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 2, DIMS(0, 16), &t, NULL), NORI_OK);
    assert_int_equal(nori_tensor_elements(t), 0);
    assert_int_equal(nori_tensor_bytes(t), 0);
    assert_null(nori_tensor_data(t));
    nori_tensor_free(t);
    assert_int_equal(
        nori_tensor_wrap(NULL, NORI_FLOAT, 2, DIMS(0, 16), NULL, 0, NULL, NULL, &t, NULL), NORI_OK);
    assert_int_equal(nori_tensor_dims(t)[1], 16);
    nori_tensor_free(t);
    /* Sizes that only a zero beside them keeps from overflowing. */
    assert_int_equal(
        nori_tensor_create(NULL, NORI_FLOAT, 3, DIMS(INT64_MAX, INT64_MAX, 0), &t, NULL), NORI_OK);
    assert_int_equal(nori_tensor_elements(t), 0);
    nori_tensor_free(t);
}

static void bytes_by_type(void **state)
{
    (void)state;
    static const struct {
        nori_type type;
        size_t bytes; /* of 5 elements */
    } cases[] = {
        {NORI_FLOAT, 20},     {NORI_UINT8, 5},          {NORI_INT8, 5},
        {NORI_UINT16, 10},    {NORI_INT16, 10},         {NORI_INT32, 20},
        {NORI_INT64, 40},     {NORI_BOOL, 5},           {NORI_FLOAT16, 10},
        {NORI_DOUBLE, 40},    {NORI_UINT32, 20},        {NORI_UINT64, 40},
        {NORI_COMPLEX64, 40}, {NORI_COMPLEX128, 80},    {NORI_BFLOAT16, 10},
        {NORI_UINT4, 3},      {NORI_INT4, 3},           {NORI_FLOAT4E2M1, 3},
        {NORI_UINT2, 2},      {NORI_INT2, 2},           {NORI_FLOAT8E4M3FN, 5},
        {NORI_FLOAT8E8M0, 5}, {NORI_FLOAT8E5M2FNUZ, 5}, {NORI_STRING, 5 * sizeof(nori_string)},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        nori_tensor *t = NULL;
        assert_int_equal(nori_tensor_create(NULL, cases[i].type, 1, DIMS(5), &t, NULL), NORI_OK);
        assert_int_equal(nori_tensor_bytes(t), cases[i].bytes);
        nori_tensor_free(t);
    }
}

static void what_cannot_be_made(void **state)
{
    (void)state;
    static const struct {
        int type, rank;
        int64_t dims[2];
        nori_status status;
        const char *message;
    } cases[] = {
        {NORI_FLOAT, -1, {0}, NORI_ERROR_LIMIT, "rank -1"},
        {NORI_FLOAT, NORI_MAX_RANK + 1, {0}, NORI_ERROR_LIMIT, "rank 17, at most 16"},
        {NORI_UNDEFINED, 0, {0}, NORI_ERROR_ARGUMENT, "element type 0"},
        {NORI_TYPE_COUNT, 0, {0}, NORI_ERROR_ARGUMENT, "element type 27"},
        {999, 0, {0}, NORI_ERROR_ARGUMENT, "element type 999"},
        {-1, 0, {0}, NORI_ERROR_ARGUMENT, "element type -1"},
        {NORI_FLOAT, 2, {2, -3}, NORI_ERROR_ARGUMENT, "negative"},
        {NORI_FLOAT, 2, {0, -3}, NORI_ERROR_ARGUMENT, "negative"},
        {NORI_INT4, 2, {INT64_MAX, 3}, NORI_ERROR_LIMIT, "more memory"},
        {NORI_DOUBLE, 1, {INT64_MAX / 4}, NORI_ERROR_LIMIT, "more memory"},
        {NORI_COMPLEX128,
         2,
         {INT64_C(1) << 31, INT64_C(1) << 29},
         NORI_ERROR_LIMIT,
         "more memory"},
        {NORI_STRING, 1, {INT64_MAX / 2}, NORI_ERROR_LIMIT, "more memory"},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        nori_error err = {0};
        nori_tensor *t = (void *)state;
        assert_int_equal(nori_tensor_create(NULL, (nori_type)cases[i].type, cases[i].rank,
                                            cases[i].dims, &t, &err),
                         cases[i].status);
        assert_null(t);
        assert_non_null(strstr(err.message, cases[i].message));
    }
    nori_tensor *t = NULL;
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 1, NULL, &t, NULL), NORI_ERROR_ARGUMENT);
}

static void count_release(void *user, void *data)
{
    *(void **)user = data;
}

static void wrapped_memory_is_given_back_once(void **state)
{
    (void)state;
    float data[7] = {1, 2, 3, 4, 5, 6, 7};
    void *given = NULL;
    nori_tensor *t = NULL;
    nori_error err = {0};
    assert_int_equal(nori_tensor_wrap(NULL, NORI_FLOAT, 2, DIMS(2, 3), data, 24, count_release,
                                      &given, &t, NULL),
                     NORI_OK);
    assert_ptr_equal(nori_tensor_data(t), data);
    assert_ptr_equal(nori_tensor_retain(t), t);
    nori_tensor_free(t);
    assert_null(given);
    nori_tensor_free(t);
    assert_ptr_equal(given, data);
    given = NULL;
    assert_int_equal(nori_tensor_wrap(NULL, NORI_FLOAT, 2, DIMS(2, 3), data, 20, count_release,
                                      &given, &t, &err),
                     NORI_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "20 bytes were given, type and shape need 24"));
    assert_null(t);
    memset(&err, 0, sizeof(err));
    assert_int_equal(
        nori_tensor_wrap(NULL, NORI_FLOAT, 1, DIMS(1), (char *)data + 2, 4, NULL, NULL, &t, &err),
        NORI_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "aligned"));
    assert_int_equal(
        nori_tensor_wrap(NULL, NORI_UINT8, 1, DIMS(1), (char *)data + 1, 1, NULL, NULL, &t, NULL),
        NORI_OK);
    nori_tensor_free(t);
    assert_int_equal(nori_tensor_wrap(NULL, NORI_FLOAT, 1, DIMS(1), NULL, 4, NULL, NULL, &t, NULL),
                     NORI_ERROR_ARGUMENT);
    assert_int_equal(nori_tensor_wrap(NULL, NORI_STRING, 0, NULL, data, sizeof(nori_string), NULL,
                                      NULL, &t, NULL),
                     NORI_ERROR_ARGUMENT);
    assert_null(given); /* what failed does not take the memory */
}

static void strings_are_copied(void **state)
{
    (void)state;
    char text[] = "one";
    nori_string in[] = {{text, 3}, {"a\0b", 3}, {NULL, 0}};
    nori_tensor *t = NULL, *copy = NULL;
    assert_int_equal(nori_tensor_strings(NULL, 1, DIMS(3), in, 3, &t, NULL), NORI_OK);
    text[0] = 'X';
    const nori_string *s = nori_tensor_const_data(t);
    assert_true(s[0].size == 3 && memcmp(s[0].data, "one", 4) == 0);
    assert_true(s[1].size == 3 && memcmp(s[1].data, "a\0b", 4) == 0);
    assert_true(s[2].size == 0);
    assert_int_equal(nori__tensor_copy(&nori__malloc, t, &copy, NULL), NORI_OK);
    assert_int_equal(nori__tensor_set_string(copy, 0, "longer", 6, NULL), NORI_OK);
    assert_memory_equal(s[0].data, "one", 4);
    nori_tensor_free(t);
    s = nori_tensor_const_data(copy);
    assert_true(s[0].size == 6 && memcmp(s[1].data, "a\0b", 4) == 0);
    nori_tensor_free(copy);
    assert_int_equal(nori_tensor_strings(NULL, 1, DIMS(2), in, 3, &t, NULL), NORI_ERROR_ARGUMENT);
    assert_null(t);
}

static void groups_hold_their_items(void **state)
{
    (void)state;
    nori_tensor *a = NULL, *b = NULL, *group = NULL, *copy = NULL;
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 0, NULL, &a, NULL), NORI_OK);
    assert_int_equal(nori_tensor_create(NULL, NORI_INT64, 1, DIMS(2), &b, NULL), NORI_OK);
    nori_tensor *items[] = {a, b};
    assert_int_equal(nori_tensor_group(NULL, NORI_KIND_SEQUENCE, items, 2, 0, NULL, &group, NULL),
                     NORI_OK);
    nori_tensor_free(a);
    nori_tensor_free(b);
    assert_int_equal(nori__tensor_copy(&nori__malloc, group, &copy, NULL), NORI_OK);
    nori_tensor_free(group);
    assert_int_equal(nori_tensor_kind(copy), NORI_KIND_SEQUENCE);
    assert_int_equal(nori_tensor_item_count(copy), 2);
    assert_ptr_equal(nori_tensor_item(copy, 1), b);
    assert_null(nori_tensor_item(copy, 2));
    assert_null(nori_tensor_data(copy));
    assert_int_equal(nori_tensor_bytes(copy), 0);
    nori_tensor *sparse = NULL;
    assert_int_equal(nori_tensor_group(NULL, NORI_KIND_SPARSE, (nori_tensor *[]){a, b}, 2, 2,
                                       DIMS(3, 4), &sparse, NULL),
                     NORI_OK);
    assert_int_equal(nori_tensor_rank(sparse), 2);
    assert_int_equal(nori_tensor_dims(sparse)[1], 4);
    nori_tensor_free(sparse);
    nori_tensor_free(copy);
    assert_int_equal(nori_tensor_group(NULL, NORI_KIND_OPTIONAL, NULL, 0, 0, NULL, &group, NULL),
                     NORI_OK);
    assert_int_equal(nori_tensor_item_count(group), 0);
    nori_tensor *none[] = {group, NULL};
    assert_int_equal(nori_tensor_group(NULL, NORI_KIND_SEQUENCE, none, 2, 0, NULL, &copy, NULL),
                     NORI_ERROR_ARGUMENT);
    assert_int_equal(nori_tensor_group(NULL, NORI_KIND_TENSOR, none, 1, 0, NULL, &copy, NULL),
                     NORI_ERROR_ARGUMENT);
    assert_int_equal(nori_tensor_group(NULL, NORI_KIND_MAP, none, 1, 0, NULL, &copy, NULL),
                     NORI_ERROR_ARGUMENT);
    assert_int_equal(nori_tensor_group(NULL, NORI_KIND_OPTIONAL, none, 2, 0, NULL, &copy, NULL),
                     NORI_ERROR_ARGUMENT);
    nori_tensor_free(group);
}

/* Freeing recurses: without a limit a caller's chain of optionals would end in a stack overflow. */
static void groups_nest_only_so_deep(void **state)
{
    (void)state;
    nori_tensor *inner = NULL, *outer = NULL;
    nori_error err = {0};
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 0, NULL, &inner, NULL), NORI_OK);
    int depth = 0;
    nori_status s;
    while ((s = nori_tensor_group(NULL, NORI_KIND_OPTIONAL, &inner, 1, 0, NULL, &outer, &err)) ==
           NORI_OK) {
        nori_tensor_free(inner);
        inner = outer;
        depth++;
        assert_true(depth <= NORI__PB_MAX_NESTING);
    }
    assert_int_equal(s, NORI_ERROR_LIMIT);
    assert_int_equal(depth, NORI__PB_MAX_NESTING);
    assert_null(outer);
    nori_tensor_free(inner);
}

static void *hold_and_let_go(void *tensor)
{
    for (int i = 0; i < 20000; i++) {
        nori_tensor_free(nori_tensor_retain(tensor));
    }
    nori_tensor_free(tensor);
    return NULL;
}

static void any_thread_may_hold(void **state)
{
    (void)state;
    pthread_t threads[4];
    void *given = NULL;
    int32_t data = 5;
    nori_tensor *t = NULL;
    assert_int_equal(
        nori_tensor_wrap(NULL, NORI_INT32, 0, NULL, &data, 4, count_release, &given, &t, NULL),
        NORI_OK);
    for (size_t i = 0; i < NORI__COUNT(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, hold_and_let_go, nori_tensor_retain(t)),
                         0);
    }
    for (size_t i = 0; i < NORI__COUNT(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_null(given);
    nori_tensor_free(t);
    assert_ptr_equal(given, &data);
}

/* ---- from TensorProto ---- */

typedef struct proto {
    nori__pb_tensor pb;
    int64_t dims[NORI_MAX_RANK + 1];
} proto;

static proto *shaped(proto *p, int type, size_t rank, const int64_t *dims)
{
    *p = (proto){.pb = {.name = NORI__STR("w"), .data_type = type}};
    for (size_t i = 0; i < rank; i++) {
        p->dims[i] = dims[i];
    }
    p->pb.dims.items = p->dims;
    p->pb.dims.count = rank;
    return p;
}

static nori_tensor *made(const proto *p)
{
    nori_tensor *t = NULL;
    nori_error err = {0};
    if (nori__tensor_from_pb(&nori__malloc, &p->pb, NULL, &t, &err) != NORI_OK) {
        fail_msg("%s", err.message);
    }
    return t;
}

/* Each type once by raw bytes and once by its list: the same tensor. expected is element 1. */
static void every_type_by_bytes_and_by_list(void **state)
{
    (void)state;
    static const struct {
        nori_type type;
        int64_t count;
        uint64_t entries[6]; /* of int32_data, int64_data or uint64_data */
        size_t entry_count;
        uint8_t raw[24];
        double expected;
    } cases[] = {
        {NORI_UINT8, 2, {1, 200}, 2, {1, 200}, 200},
        {NORI_INT8, 2, {1, (uint64_t)-56}, 2, {1, 200}, -56},
        {NORI_BOOL, 2, {0, 1}, 2, {0, 1}, 1},
        {NORI_UINT16, 2, {1, 65535}, 2, {1, 0, 255, 255}, 65535},
        {NORI_INT16, 2, {1, (uint64_t)-2}, 2, {1, 0, 254, 255}, -2},
        {NORI_FLOAT16, 2, {0x3c00, 0xc000}, 2, {0, 0x3c, 0, 0xc0}, -2},
        {NORI_BFLOAT16, 2, {0x3f80, 0xc000}, 2, {0x80, 0x3f, 0, 0xc0}, -2},
        {NORI_INT32, 2, {1, (uint64_t)-3}, 2, {1, 0, 0, 0, 253, 255, 255, 255}, -3},
        {NORI_UINT32, 2, {1, 0xfffffffe}, 2, {1, 0, 0, 0, 254, 255, 255, 255}, 4294967294.0},
        {NORI_INT64,
         2,
         {1, (uint64_t)-4},
         2,
         {1, 0, 0, 0, 0, 0, 0, 0, 252, 255, 255, 255, 255, 255, 255, 255},
         -4},
        {NORI_UINT64, 2, {1, 1u << 31}, 2, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128}, 2147483648.0},
        {NORI_FLOAT8E4M3FN, 2, {0, 0x38}, 2, {0, 0x38}, 1},
        {NORI_FLOAT8E4M3FNUZ, 2, {0, 0x40}, 2, {0, 0x40}, 1},
        {NORI_FLOAT8E5M2, 2, {0, 0x3c}, 2, {0, 0x3c}, 1},
        {NORI_FLOAT8E5M2FNUZ, 2, {0, 0x40}, 2, {0, 0x40}, 1},
        {NORI_FLOAT8E8M0, 2, {0, 0x80}, 2, {0, 0x80}, 2},
        {NORI_UINT4, 3, {0x21, 0x3}, 2, {0x21, 0x3}, 2},
        {NORI_INT4, 3, {0xe1, 0x3}, 2, {0xe1, 0x3}, -2},
        {NORI_FLOAT4E2M1, 3, {0x21, 0x3}, 2, {0x21, 0x3}, 1},
        {NORI_UINT2, 5, {0x0c, 0x1}, 2, {0x0c, 0x1}, 3},
        {NORI_INT2, 5, {0x0c, 0x1}, 2, {0x0c, 0x1}, -1},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        proto list, raw;
        bool wide = cases[i].type == NORI_UINT32 || cases[i].type == NORI_UINT64;
        shaped(&list, cases[i].type, 1, &cases[i].count);
        uint64_t entries[6];
        memcpy(entries, cases[i].entries, sizeof(entries));
        list.pb.uints.items = wide ? entries : NULL;
        list.pb.uints.count = wide ? cases[i].entry_count : 0;
        list.pb.ints.items = wide ? NULL : (int64_t *)entries;
        list.pb.ints.count = wide ? 0 : cases[i].entry_count;
        nori_tensor *a = made(&list);
        shaped(&raw, cases[i].type, 1, &cases[i].count);
        raw.pb.has_raw = true;
        raw.pb.raw = (nori__str){(const char *)cases[i].raw, nori_tensor_bytes(a)};
        nori_tensor *b = made(&raw);
        if (memcmp(nori_tensor_data(a), nori_tensor_data(b), nori_tensor_bytes(a)) != 0) {
            fail_msg("%s: list and bytes differ", nori_type_name(cases[i].type));
        }
        if (nori__tensor_get_f64(a, 1) != cases[i].expected) {
            fail_msg("%s: %g, expected %g", nori_type_name(cases[i].type),
                     nori__tensor_get_f64(a, 1), cases[i].expected);
        }
        nori_tensor_free(a);
        nori_tensor_free(b);
    }
}

static void floats_complex_and_strings(void **state)
{
    (void)state;
    float floats[] = {1, 2, 3, 4};
    double doubles[] = {5, 6, 7, 8};
    proto p;
    shaped(&p, NORI_FLOAT, 2, DIMS(2, 2))->pb.floats.items = floats;
    p.pb.floats.count = 4;
    nori_tensor *t = made(&p);
    assert_ptr_equal(nori_tensor_data(t), floats); /* pointed at */
    nori_tensor_free(t);
    shaped(&p, NORI_COMPLEX64, 1, DIMS(2))->pb.floats.items = floats;
    p.pb.floats.count = 4;
    t = made(&p);
    assert_int_equal(nori_tensor_bytes(t), 16);
    assert_true(nori__tensor_get_f64(t, 1) == 3);
    nori_tensor_free(t);
    shaped(&p, NORI_COMPLEX128, 1, DIMS(2))->pb.doubles.items = doubles;
    p.pb.doubles.count = 4;
    t = made(&p);
    assert_int_equal(nori_tensor_bytes(t), 32);
    assert_true(nori__tensor_get_f64(t, 1) == 7);
    nori_tensor_free(t);
    nori__str strings[] = {NORI__STR("a"), NORI__STR("b\0c")};
    shaped(&p, NORI_STRING, 1, DIMS(2))->pb.strings.items = strings;
    p.pb.strings.count = 2;
    t = made(&p);
    assert_memory_equal(((const nori_string *)nori_tensor_data(t))[1].data, "b\0c", 4);
    nori_tensor_free(t);
}

static void raw_bytes_are_pointed_at_when_aligned(void **state)
{
    (void)state;
    char *buffer = malloc(24);
    assert_non_null(buffer);
    memset(buffer, 0, 24);
    proto p;
    for (size_t shift = 0; shift < 8; shift++) {
        shaped(&p, NORI_DOUBLE, 1, DIMS(2))->pb.has_raw = true;
        p.pb.raw = (nori__str){buffer + shift, 16};
        nori_tensor *t = made(&p);
        assert_int_equal(nori_tensor_data(t) == buffer + shift, shift == 0 && !NORI__BIG_ENDIAN);
        assert_int_equal((uintptr_t)nori_tensor_data(t) % 8, 0);
        nori_tensor_free(t);
    }
    memcpy(buffer, "\0\1\2\xff", 4); /* bools of any byte are 0 or 1 afterwards, the file is not */
    shaped(&p, NORI_BOOL, 1, DIMS(4))->pb.has_raw = true;
    p.pb.raw = (nori__str){buffer, 4};
    nori_tensor *t = made(&p);
    assert_memory_equal(nori_tensor_data(t), "\0\1\1\1", 4);
    assert_memory_equal(buffer, "\0\1\2\xff", 4);
    nori_tensor_free(t);
    free(buffer);
}

static void empty_raw_data_and_no_data(void **state)
{
    (void)state;
    double doubles[] = {1, 2};
    proto p;
    shaped(&p, NORI_DOUBLE, 1, DIMS(2))->pb.has_raw = true; /* but empty: the list has them */
    p.pb.doubles.items = doubles;
    p.pb.doubles.count = 2;
    nori_tensor *t = made(&p);
    assert_true(nori__tensor_get_f64(t, 1) == 2);
    nori_tensor_free(t);
    for (int type = 1; type < NORI_TYPE_COUNT; type++) {
        t = made(shaped(&p, type, 2, DIMS(3, 0)));
        assert_int_equal(nori_tensor_elements(t), 0);
        assert_int_equal(nori_tensor_dims(t)[0], 3);
        nori_tensor_free(t);
    }
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    static const struct {
        int type;
        size_t rank;
        int64_t dims[2];
        size_t raw, floats, ints, uints; /* sizes; 0: not there */
        nori_status status;
        const char *message;
    } cases[] = {
        {999, 0, {0}, 4, 0, 0, 0, NORI_ERROR_MODEL, "tensor w: element type 999 does not exist"},
        {0, 0, {0}, 4, 0, 0, 0, NORI_ERROR_MODEL, "element type 0 does not exist"},
        {-1, 0, {0}, 4, 0, 0, 0, NORI_ERROR_MODEL, "element type -1 does not exist"},
        {NORI_FLOAT, 2, {3, -1}, 4, 0, 0, 0, NORI_ERROR_MODEL, "size -1 of axis 1 is negative"},
        {NORI_FLOAT, 2, {INT64_MIN, 0}, 0, 0, 0, 0, NORI_ERROR_MODEL, "of axis 0 is negative"},
        {NORI_FLOAT, 2, {INT64_MAX, 8}, 4, 0, 0, 0, NORI_ERROR_MODEL, "more memory"},
        {NORI_FLOAT, 17, {0}, 4, 0, 0, 0, NORI_ERROR_LIMIT, "rank 17, at most 16"},
        {NORI_FLOAT,
         1,
         {3},
         8,
         0,
         0,
         0,
         NORI_ERROR_MODEL,
         "raw_data has 8 bytes, type float32 and the shape need 12"},
        {NORI_INT4, 1, {5}, 2, 0, 0, 0, NORI_ERROR_MODEL, "need 3"},
        {NORI_FLOAT,
         1,
         {3},
         0,
         2,
         0,
         0,
         NORI_ERROR_MODEL,
         "float_data has 2 entries, type float32 and the shape need 3"},
        {NORI_FLOAT, 1, {3}, 0, 0, 0, 0, NORI_ERROR_MODEL, "float_data has 0 entries"},
        {NORI_COMPLEX64, 1, {3}, 0, 3, 0, 0, NORI_ERROR_MODEL, "need 6"},
        {NORI_DOUBLE, 1, {3}, 0, 3, 0, 0, NORI_ERROR_MODEL, "double_data has 0 entries"},
        {NORI_INT32, 1, {3}, 0, 0, 2, 0, NORI_ERROR_MODEL, "int32_data has 2 entries"},
        {NORI_INT64, 1, {3}, 0, 0, 4, 0, NORI_ERROR_MODEL, "int64_data has 4 entries"},
        {NORI_UINT32, 1, {3}, 0, 0, 0, 4, NORI_ERROR_MODEL, "uint64_data has 4 entries"},
        {NORI_UINT64, 1, {3}, 0, 0, 3, 0, NORI_ERROR_MODEL, "uint64_data has 0 entries"},
        {NORI_INT4, 1, {5}, 0, 0, 5, 0, NORI_ERROR_MODEL, "int32_data has 5 entries"},
        {NORI_STRING, 1, {1}, 4, 0, 0, 0, NORI_ERROR_MODEL, "string_data has 0 entries"},
        {NORI_FLOAT, 2, {1 << 14, 1 << 14}, 0, 0, 0, 0, NORI_ERROR_MODEL, "float_data has 0"},
    };
    static float floats[8];
    static int64_t ints[8];
    static uint64_t uints[8];
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        proto p;
        shaped(&p, cases[i].type, cases[i].rank < 2 ? cases[i].rank : 2, cases[i].dims);
        p.pb.dims.count = cases[i].rank;
        p.pb.has_raw = cases[i].raw > 0;
        p.pb.raw = (nori__str){"        ", cases[i].raw};
        p.pb.floats.items = floats;
        p.pb.floats.count = cases[i].floats;
        p.pb.ints.items = ints;
        p.pb.ints.count = cases[i].ints;
        p.pb.uints.items = uints;
        p.pb.uints.count = cases[i].uints;
        nori_tensor *t = (void *)state;
        nori_error err = {0};
        assert_int_equal(nori__tensor_from_pb(&nori__malloc, &p.pb, NULL, &t, &err),
                         cases[i].status);
        assert_int_equal(err.status, cases[i].status);
        assert_null(t);
        if (!strstr(err.message, cases[i].message)) {
            fail_msg("\"%s\", expected \"%s\"", err.message, cases[i].message);
        }
    }
}

/* ---- elements ---- */

static void elements_as_numbers(void **state)
{
    (void)state;
    static const struct {
        nori_type type;
        double in, out;
    } cases[] = {
        {NORI_FLOAT, 1.5, 1.5},
        {NORI_DOUBLE, 0.1, 0.1},
        {NORI_FLOAT16, 0.1, 0.0999755859375},
        {NORI_BFLOAT16, 3.14, 3.140625},
        {NORI_UINT8, 200, 200},
        {NORI_UINT8, 257, 1},
        {NORI_INT8, -3.9, -3},
        {NORI_INT8, 130, -126},
        {NORI_INT16, -40000, 25536},
        {NORI_UINT16, 65537, 1},
        {NORI_INT32, 2147483648.0, -2147483648.0},
        {NORI_UINT32, 4294967295.0, 4294967295.0},
        {NORI_INT64, -5.5, -5},
        {NORI_UINT64, 18446744073709549568.0, 18446744073709549568.0},
        {NORI_BOOL, 0.5, 1},
        {NORI_BOOL, 0, 0},
        {NORI_COMPLEX64, 2.5, 2.5},
        {NORI_COMPLEX128, -2.5, -2.5},
        {NORI_FLOAT8E4M3FN, 1.1, 1.125},
        {NORI_FLOAT8E5M2, 1.1, 1},
        {NORI_FLOAT8E8M0, 4, 4},
        {NORI_FLOAT4E2M1, -1.6, -1.5},
        {NORI_INT4, -8, -8},
        {NORI_INT4, 9, -7},
        {NORI_UINT4, 15, 15},
        {NORI_INT2, -1, -1},
        {NORI_UINT2, 3, 3},
        {NORI_INT32, NAN, 0},
        {NORI_UINT64, NAN, 0},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        nori_tensor *t = NULL;
        assert_int_equal(nori_tensor_create(NULL, cases[i].type, 1, DIMS(5), &t, NULL), NORI_OK);
        nori__tensor_set_f64(t, 3, cases[i].in);
        double got = nori__tensor_get_f64(t, 3);
        if (got != cases[i].out) {
            fail_msg("%s: %.17g gave %.17g, expected %.17g", nori_type_name(cases[i].type),
                     cases[i].in, got, cases[i].out);
        }
        assert_int_equal(nori__tensor_get_i64(t, 3), cases[i].out >= 0x1p63
                                                         ? (int64_t)(uint64_t)cases[i].out
                                                         : (int64_t)cases[i].out);
        if (cases[i].type != NORI_FLOAT8E8M0) { /* which has no zero */
            assert_true(nori__tensor_get_f64(t, 2) == 0 && nori__tensor_get_f64(t, 4) == 0);
        }
        nori_tensor_free(t);
    }
}

static void integers_keep_64_bits(void **state)
{
    (void)state;
    static const int64_t values[] = {INT64_MIN, INT64_MAX, -1, 0, (INT64_C(1) << 53) + 1};
    nori_tensor *t = NULL;
    assert_int_equal(nori_tensor_create(NULL, NORI_INT64, 1, DIMS(1), &t, NULL), NORI_OK);
    for (size_t i = 0; i < NORI__COUNT(values); i++) {
        nori__tensor_set_i64(t, 0, values[i]);
        assert_true(nori__tensor_get_i64(t, 0) == values[i]);
    }
    nori_tensor_free(t);
    assert_int_equal(nori_tensor_create(NULL, NORI_DOUBLE, 1, DIMS(3), &t, NULL), NORI_OK);
    nori__tensor_set_f64(t, 0, 1e300);
    nori__tensor_set_f64(t, 1, -INFINITY);
    nori__tensor_set_f64(t, 2, NAN);
    assert_true(nori__tensor_get_i64(t, 0) == INT64_MAX);
    assert_true(nori__tensor_get_i64(t, 1) == INT64_MIN);
    assert_true(nori__tensor_get_i64(t, 2) == 0);
    nori_tensor_free(t);
}

/* ---- memory ---- */

static nori_status all_makers(nori_env *env, const nori_allocator *a)
{
    nori_tensor *t = NULL, *strings = NULL, *group = NULL, *copy = NULL;
    nori_string text[] = {{"one", 3}, {"two", 3}};
    nori_status s = nori_tensor_create(env, NORI_FLOAT, 1, DIMS(4), &t, NULL);
    if (s == NORI_OK) {
        s = nori_tensor_strings(env, 1, DIMS(2), text, 2, &strings, NULL);
    }
    nori_tensor *items[] = {t, strings};
    if (s == NORI_OK) {
        s = nori_tensor_group(env, NORI_KIND_MAP, items, 2, 0, NULL, &group, NULL);
    }
    if (s == NORI_OK) {
        s = nori__tensor_copy(a, strings, &copy, NULL);
    }
    nori_tensor_free(copy);
    nori_tensor_free(t);
    nori_tensor_free(strings);
    nori_tensor_free(group);
    return s;
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    for (size_t fail_at = 1;; fail_at++) {
        test_alloc ta;
        test_alloc_init(&ta, 0);
        nori_env_options options;
        nori_env_options_default(&options);
        options.allocator = ta.allocator;
        nori_env *env = NULL;
        assert_int_equal(nori_env_create(&options, &env, NULL), NORI_OK);
        ta.fail_at = ta.calls + fail_at;
        nori_status s = all_makers(env, &ta.allocator);
        nori_env_free(env);
        assert_int_equal(ta.live, 0);
        assert_false(ta.wrong_size);
        if (s == NORI_OK) {
            assert_true(fail_at > 12);
            break;
        }
        assert_int_equal(s, NORI_ERROR_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_tensors_are_zero),
        cmocka_unit_test(empty_tensors),
        cmocka_unit_test(bytes_by_type),
        cmocka_unit_test(what_cannot_be_made),
        cmocka_unit_test(wrapped_memory_is_given_back_once),
        cmocka_unit_test(strings_are_copied),
        cmocka_unit_test(groups_hold_their_items),
        cmocka_unit_test(groups_nest_only_so_deep),
        cmocka_unit_test(any_thread_may_hold),
        cmocka_unit_test(every_type_by_bytes_and_by_list),
        cmocka_unit_test(floats_complex_and_strings),
        cmocka_unit_test(raw_bytes_are_pointed_at_when_aligned),
        cmocka_unit_test(empty_raw_data_and_no_data),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(elements_as_numbers),
        cmocka_unit_test(integers_keep_64_bits),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

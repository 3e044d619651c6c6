/* Tensors whose integers are varints of the file: large lists stay packed until somebody builds the
 * tensor, give what raw bytes give, cost no more memory than their tensor, and are written back as they
 * were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "graph/tensor.h"
#include "nori/nori.h"
#include "test_alloc.h"
#include "wire.h"

enum { MANY = 40000, FEW = 12 };

/* Both signs, and varints of 1 to 10 bytes. */
static int64_t number(size_t i)
{
    uint64_t v = (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15);
    return (int64_t)(v >> (i % 64)) * (i % 3 ? 1 : -1);
}

static nori__text list_of(size_t count, bool half)
{
    nori__text list = wire_new();
    for (size_t i = 0; i < count; i++) {
        wire_varint(&list, (uint64_t)(half ? (int32_t)number(i) : number(i)));
    }
    return list;
}

static nori__text tensor_of(nori_type type, uint32_t field, size_t count)
{
    nori__text t = wire_new(), list = list_of(count, field == 5);
    wire_int(&t, 1, (int64_t)count);
    wire_int(&t, 2, type);
    if (field < 8) { /* in the order of their numbers, as they are written */
        wire_sub(&t, field, &list);
    }
    wire_str(&t, 8, "w");
    if (field > 8) {
        wire_sub(&t, field, &list);
    }
    return t;
}

static nori__pb_tensor *read_of(nori__arena *arena, const nori__text *t, nori_status expected,
                                nori_error *err)
{
    nori__pb_tensor *pb = NULL;
    assert_int_equal(nori__pb_read_tensor(arena, (const uint8_t *)t->data, t->size, &pb, err), expected);
    return pb;
}

static void same_bytes_written(const nori__pb_tensor *pb, const nori__text *expected)
{
    nori__text out = wire_new();
    assert_int_equal(nori__pb_write_tensor(pb, &out, NULL), NORI_OK);
    assert_int_equal(out.size, expected->size);
    assert_memory_equal(out.data, expected->data, out.size);
    nori__text_free(&out);
}

/* Every integer type, from the field it belongs in, with few entries and many. */
static void values_and_bytes(void **state)
{
    (void)state;
    static const struct {
        nori_type type;
        uint32_t field;
    } cases[] = {{NORI_INT8, 5},   {NORI_UINT8, 5},  {NORI_INT16, 5},   {NORI_UINT16, 5}, {NORI_INT32, 5},
                 {NORI_BOOL, 5},   {NORI_INT64, 7},  {NORI_UINT32, 11}, {NORI_UINT64, 11}, {NORI_FLOAT16, 5}};
    for (size_t i = 0; i < 2 * NORI__COUNT(cases); i++) {
        nori_type type = cases[i / 2].type;
        size_t count = i % 2 ? MANY : FEW, width = nori_type_bits(type) / 8;
        nori__text t = tensor_of(type, cases[i / 2].field, count);
        nori__arena arena;
        nori__arena_init(&arena, &nori__malloc);
        nori__pb_tensor *pb = read_of(&arena, &t, NORI_OK, NULL);
        assert_int_equal(pb->ints.packed.p || pb->uints.packed.p, count == MANY);
        nori_tensor *tensor = NULL;
        assert_int_equal(nori__tensor_from_pb(&nori__malloc, pb, NULL, &tensor, NULL), NORI_OK);
        for (size_t k = 0; k < count; k++) {
            int64_t v = number(k), got = 0;
            uint64_t low = cases[i / 2].field == 5 ? (uint64_t)(int32_t)v : (uint64_t)v;
            low = type == NORI_BOOL ? low != 0 : width < 8 ? low & ((UINT64_C(1) << 8 * width) - 1) : low;
            if (type == NORI_FLOAT16) {
                got = ((const uint16_t *)tensor->data)[k];
            } else {
                got = nori__tensor_get_i64(tensor, (int64_t)k);
                got = width < 8 ? got & ((INT64_C(1) << 8 * width) - 1) : got;
            }
            assert_int_equal((uint64_t)got, low);
        }
        same_bytes_written(pb, &t);
        nori_tensor_free(tensor);
        nori__arena_free(&arena);
        nori__text_free(&t);
    }
}

/* -1 in five bytes, as some writers have it, is -1 in any type; int64 in int32_data goes out as
 * int64_data. */
static void halves_have_signs(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        nori__text t = wire_new(), list = wire_new();
        for (int i = 0; i < MANY; i++) {
            wire_varint(&list, UINT64_C(0xffffffff) - (uint64_t)i);
        }
        wire_int(&t, 1, MANY);
        wire_int(&t, 2, wide ? NORI_INT64 : NORI_INT32);
        wire_sub(&t, 5, &list);
        nori__arena arena;
        nori__arena_init(&arena, &nori__malloc);
        nori__pb_tensor *pb = read_of(&arena, &t, NORI_OK, NULL);
        for (int round = 0; round < 2; round++) {
            nori_tensor *tensor = NULL;
            assert_int_equal(nori__tensor_from_pb(&nori__malloc, pb, NULL, &tensor, NULL), NORI_OK);
            for (int i = 0; i < MANY; i++) {
                assert_int_equal(nori__tensor_get_i64(tensor, i), -1 - i);
            }
            nori_tensor_free(tensor);
            if (!wide) {
                same_bytes_written(pb, &t);
            } else if (round == 0) {
                nori__text again = wire_new();
                assert_int_equal(nori__pb_write_tensor(pb, &again, NULL), NORI_OK);
                nori__text_free(&t);
                t = again;
                pb = read_of(&arena, &t, NORI_OK, NULL);
                assert_false(pb->ints.half);
            }
        }
        nori__arena_free(&arena);
        nori__text_free(&t);
    }
}

/* Several payloads, or an entry outside them, are joined as before. */
static void pieces_are_joined(void **state)
{
    (void)state;
    for (int form = 0; form < 3; form++) {
        nori__text t = wire_new(), none = wire_new();
        nori__text list = list_of(MANY, false), more = list_of(MANY, false);
        wire_int(&t, 1, form == 0 ? 2 * MANY : form == 1 ? MANY + 1 : MANY);
        wire_int(&t, 2, NORI_INT64);
        wire_sub(&t, 7, &list);
        if (form == 0) {
            wire_sub(&t, 7, &more);
        } else if (form == 1) {
            wire_int(&t, 7, -5);
        } else {
            wire_sub(&t, 7, &none);
        }
        nori__arena arena;
        nori__arena_init(&arena, &nori__malloc);
        nori__pb_tensor *pb = read_of(&arena, &t, NORI_OK, NULL);
        nori_tensor *tensor = NULL;
        assert_int_equal(nori__tensor_from_pb(&nori__malloc, pb, NULL, &tensor, NULL), NORI_OK);
        for (size_t i = 0; i < (size_t)tensor->count; i++) {
            assert_int_equal(nori__tensor_get_i64(tensor, (int64_t)i),
                             form == 1 && i == MANY ? -5 : number(i % MANY));
        }
        nori_tensor_free(tensor);
        nori__arena_free(&arena);
        nori__text_free(&t);
        nori__text_free(&more);
        nori__text_free(&none);
    }
}

static void damage_is_said(void **state)
{
    (void)state;
    static const uint8_t ends[3][11] = {
        {0x80}, /* cut off */
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, /* bit 64 */
        {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01},
    };
    static const size_t sizes[3] = {1, 10, 11};
    for (int i = 0; i < 4; i++) {
        nori__text t = wire_new(), list = list_of(MANY, false);
        wire_int(&t, 1, MANY + 2);
        wire_int(&t, 2, NORI_INT64);
        if (i < 3) {
            nori__text_add(&list, (const char *)ends[i], sizes[i]);
        }
        wire_sub(&t, 7, &list);
        nori__arena arena;
        nori_error err = {0};
        nori__arena_init(&arena, &nori__malloc);
        nori__pb_tensor *pb = read_of(&arena, &t, i < 3 ? NORI_ERROR_FORMAT : NORI_OK, &err);
        if (i == 3) {
            nori_tensor *tensor = NULL;
            assert_int_equal(nori__tensor_from_pb(&nori__malloc, pb, NULL, &tensor, &err), NORI_ERROR_MODEL);
            assert_non_null(strstr(err.message, "int64_data has 40000 entries"));
        } else {
            assert_non_null(strstr(err.message, "TensorProto.int64_data"));
        }
        nori__arena_free(&arena);
        nori__text_free(&t);
    }
}

/* A million bytes in int32_data: the tensor, and next to nothing else. */
static void a_byte_takes_a_byte(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20 };
    nori__text t = wire_new(), list = wire_new();
    for (int i = 0; i < BYTES; i++) {
        wire_varint(&list, (uint64_t)(i % 128));
    }
    wire_int(&t, 1, BYTES);
    wire_int(&t, 2, NORI_INT8);
    wire_sub(&t, 5, &list);
    test_alloc a;
    test_alloc_init(&a, 0);
    nori__arena arena;
    nori__arena_init(&arena, &a.allocator);
    nori__pb_tensor *pb = read_of(&arena, &t, NORI_OK, NULL);
    nori_tensor *tensor = NULL;
    assert_int_equal(nori__tensor_from_pb(&a.allocator, pb, NULL, &tensor, NULL), NORI_OK);
    assert_in_range(a.peak, BYTES, BYTES + 65536);
    nori_tensor_free(tensor);
    nori__arena_free(&arena);
    assert_int_equal(a.live, 0);
    nori__text_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_bytes), cmocka_unit_test(halves_have_signs),
        cmocka_unit_test(pieces_are_joined), cmocka_unit_test(damage_is_said),
        cmocka_unit_test(a_byte_takes_a_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

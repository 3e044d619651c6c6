/* test_onnx.c: reading and writing of ONNX messages from hand-made bytes. Damaged ones are held in
 * blocks of exactly their size, so that a sanitizer sees a read past the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "graph/tensor.h"
#include "platform/platform.h"
#include "test_alloc.h"
#include "wire.h"

/* ---- a small model that has one of nearly everything ---- */

static nori__text type_bytes(int elem)
{
    nori__text dim = wire_new(), named = wire_new(), shape = wire_new(), tensor = wire_new();
    nori__text type = wire_new();
    wire_int(&dim, 1, 3);
    wire_sub(&shape, 1, &dim);
    wire_str(&named, 2, "N");
    wire_sub(&shape, 1, &named);
    wire_int(&tensor, 1, elem);
    wire_sub(&tensor, 2, &shape);
    wire_sub(&type, 1, &tensor);
    return type;
}

static nori__text value_bytes(const char *name)
{
    nori__text value = wire_new(), type = type_bytes(NORI_FLOAT);
    wire_str(&value, 1, name);
    wire_sub(&value, 2, &type);
    return value;
}

static nori__text attr_bytes(const char *name, int kind)
{
    nori__text attr = wire_new();
    wire_str(&attr, 1, name);
    switch (kind) {
    case NORI__ATTR_FLOAT:
        wire_f32(&attr, 2, 0.5f);
        break;
    case NORI__ATTR_INT:
        wire_int(&attr, 3, -7);
        break;
    case NORI__ATTR_STRING:
        wire_str(&attr, 4, "text");
        break;
    case NORI__ATTR_FLOATS:
        wire_f32(&attr, 7, 1);
        wire_f32(&attr, 7, 2);
        break;
    case NORI__ATTR_INTS:
        wire_int(&attr, 8, 1);
        wire_int(&attr, 8, -1);
        break;
    default: {
        nori__text graph = wire_new();
        wire_str(&graph, 2, "body");
        wire_sub(&attr, 6, &graph);
    }
    }
    wire_int(&attr, 20, kind);
    return attr;
}

/* In the order a writer has: fields by number, so that writing it again gives these bytes. The
 * graph comes last but for the opsets, which may be left away: then every cut is damage. */
static nori__text model_bytes(bool opsets)
{
    static const int kinds[] = {NORI__ATTR_FLOAT,  NORI__ATTR_INT,  NORI__ATTR_STRING,
                                NORI__ATTR_FLOATS, NORI__ATTR_INTS, NORI__ATTR_GRAPH};
    nori__text model = wire_new(), graph = wire_new(), node = wire_new(), t = wire_new();
    wire_str(&node, 1, "x");
    wire_str(&node, 1, "w");
    wire_str(&node, 2, "y");
    wire_str(&node, 3, "n0");
    wire_str(&node, 4, "Conv");
    for (size_t i = 0; i < NORI__COUNT(kinds); i++) {
        nori__text attr = attr_bytes((char[]){(char)('a' + (int)i), 0}, kinds[i]);
        wire_sub(&node, 5, &attr);
    }
    wire_sub(&graph, 1, &node);
    wire_str(&graph, 2, "main");
    wire_int(&t, 1, 2);
    wire_int(&t, 2, NORI_FLOAT);
    wire_str(&t, 8, "w");
    wire_bytes(&t, 9, "\0\0\x80\x3f\0\0\0\x40", 8);
    wire_sub(&graph, 5, &t);
    nori__text x = value_bytes("x"), y = value_bytes("y");
    wire_sub(&graph, 11, &x);
    wire_sub(&graph, 12, &y);
    wire_int(&model, 1, 8);
    wire_str(&model, 2, "tests");
    wire_sub(&model, 7, &graph);
    if (opsets) {
        nori__text opset = wire_new();
        wire_int(&opset, 2, 17);
        wire_sub(&model, 8, &opset);
    }
    assert_false(model.failed);
    return model;
}

static bool is(nori__str s, const char *text)
{
    return nori__str_is(s, text);
}

static nori__pb_model *read_ok(nori__arena *arena, const void *bytes, size_t size,
                               nori__pb_report *report)
{
    nori__pb_model *model = NULL;
    nori_error err = {0};
    nori__arena_init(arena, &nori__malloc);
    nori_status s = nori__pb_read_model(arena, bytes, size, &model, report, &err);
    if (s != NORI_OK) {
        print_error("%s\n", err.message);
    }
    assert_int_equal(s, NORI_OK);
    return model;
}

static void reads_a_model(void **state)
{
    (void)state;
    nori__text bytes = model_bytes(true);
    nori__arena arena;
    nori__pb_report report = {0};
    nori__pb_model *m = read_ok(&arena, bytes.data, bytes.size, &report);
    assert_int_equal(report.unknown_fields, 0);
    assert_int_equal(m->ir_version, 8);
    assert_true(is(m->producer_name, "tests"));
    assert_int_equal(m->opsets.count, 1);
    assert_int_equal(m->opsets.items[0].version, 17);
    assert_true(m->head.bytes.p == bytes.data && m->head.bytes.n == bytes.size);
    const nori__pb_graph *g = m->graph;
    assert_true(is(g->name, "main"));
    assert_int_equal(g->nodes.count, 1);
    const nori__pb_node *n = &g->nodes.items[0];
    assert_int_equal(n->inputs.count, 2);
    assert_true(is(n->inputs.items[1], "w") && is(n->outputs.items[0], "y"));
    assert_true(is(n->op_type, "Conv") && n->domain.n == 0);
    assert_int_equal(n->attrs.count, 6);
    assert_true(n->attrs.items[0].f == 0.5f);
    assert_int_equal(n->attrs.items[1].i, -7);
    assert_true(is(n->attrs.items[2].s, "text"));
    assert_true(n->attrs.items[3].floats.count == 2 && n->attrs.items[3].floats.items[1] == 2);
    assert_true(n->attrs.items[4].ints.count == 2 && n->attrs.items[4].ints.items[1] == -1);
    assert_int_equal(n->attrs.items[5].kind, NORI__ATTR_GRAPH);
    assert_true(is(n->attrs.items[5].g->name, "body"));
    const nori__pb_tensor *t = &g->initializers.items[0];
    assert_true(t->dims.count == 1 && t->dims.items[0] == 2 && t->has_raw && t->raw.n == 8);
    assert_true(t->raw.p > bytes.data && t->raw.p < bytes.data + bytes.size); /* not copied */
    const nori__pb_type *type = g->inputs.items[0].type;
    assert_int_equal(type->kind, NORI_KIND_TENSOR);
    assert_int_equal(type->elem, NORI_FLOAT);
    assert_int_equal(type->shape->dims.count, 2);
    assert_true(type->shape->dims.items[0].has_value && type->shape->dims.items[0].value == 3);
    assert_true(type->shape->dims.items[1].has_param && !type->shape->dims.items[1].has_value);
    assert_true(is(type->shape->dims.items[1].param, "N"));
    nori__arena_free(&arena);
    nori__text_free(&bytes);
}

static void writes_the_same_bytes(void **state)
{
    (void)state;
    nori__text bytes = model_bytes(true), out = wire_new();
    nori__arena arena;
    nori_error err = {0};
    nori__pb_model *m = read_ok(&arena, bytes.data, bytes.size, NULL);
    assert_int_equal(nori__pb_write_model(m, &out, &err), NORI_OK);
    assert_int_equal(out.size, bytes.size);
    assert_memory_equal(out.data, bytes.data, bytes.size);
    nori__arena_free(&arena);
    nori__text_free(&bytes);
    nori__text_free(&out);
}

/* ---- damage ---- */

/* Reads from a block of just the size; on success makes every tensor and writes the model again.
 * Whatever the bytes, nothing may be touched that is not theirs. */
static nori_status try_bytes(const void *bytes, size_t size, nori_error *err)
{
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    nori__arena arena;
    nori__arena_init(&arena, &nori__malloc);
    nori__pb_model *m = NULL;
    nori_status s = nori__pb_read_model(&arena, copy, size, &m, NULL, err);
    if (s == NORI_OK) {
        nori__text out = wire_new();
        for (size_t i = 0; i < m->graph->initializers.count; i++) {
            nori_tensor *t = NULL;
            nori__tensor_from_pb(&nori__malloc, &m->graph->initializers.items[i], NULL, &t, NULL);
            nori_tensor_free(t);
        }
        assert_int_equal(nori__pb_write_model(m, &out, NULL), NORI_OK);
        nori__text_free(&out);
    } else {
        assert_null(m);
        assert_int_equal(err->status, s);
    }
    nori__arena_free(&arena);
    free(copy);
    return s;
}

static void every_cut_is_an_error(void **state)
{
    (void)state;
    nori__text bytes = model_bytes(false);
    for (size_t n = 0; n < bytes.size; n++) {
        nori_error err = {0};
        assert_int_equal(try_bytes(bytes.data, n, &err), NORI_ERROR_FORMAT);
        assert_true(err.message[0] && err.hint[0]);
        assert_true(!err.has_offset || err.offset < n);
    }
    nori_error err = {0};
    assert_int_equal(try_bytes(bytes.data, bytes.size, &err), NORI_OK);
    nori__text_free(&bytes);
}

static void changed_bytes_are_survived(void **state)
{
    (void)state;
    static const uint8_t values[] = {0, 1, 0x0a, 0x7f, 0x80, 0xff};
    nori__text bytes = model_bytes(true);
    size_t refused = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        char was = bytes.data[i];
        for (size_t v = 0; v < NORI__COUNT(values) + 8; v++) {
            nori_error err = {0};
            bytes.data[i] = v < 8 ? (char)(was ^ (1 << v)) : (char)values[v - 8];
            refused += try_bytes(bytes.data, bytes.size, &err) != NORI_OK;
        }
        bytes.data[i] = was;
    }
    assert_true(refused > bytes.size);
    nori__text_free(&bytes);
}

static void wire_faults_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *hex, *message;
        uint64_t offset;
    } cases[] = {
        {"08 08 3a 05 0a",
         "ModelProto.graph: length 5 at byte 4 runs past the end of the file at "
         "byte 5",
         2},
        {"3a 03 0a 7f 00", "GraphProto.node: length 127 at byte 4 runs past the end of the file",
         2},
        {"3a 02 0a 7f 08 08",
         "GraphProto.node: length 127 at byte 4 runs past the end of the "
         "message it is in at byte 4",
         2},
        {"3a ff ff ff ff ff ff ff ff ff 01", "length 18446744073709551615 at byte 11", 0},
        {"08 80 80 80 80 80 80 80 80 80 80 01", "ModelProto.ir_version: expected a varint", 0},
        {"08 08 80 80 80 80 80 80 80 01", "ModelProto: expected a field tag", 2},
        {"08 80", "ModelProto.ir_version: expected a varint, found no whole one", 0},
        {"0a 01 08", "ModelProto.ir_version: expected a varint, found bytes with a length", 0},
        {"08 08 10 05",
         "ModelProto.producer_name: expected bytes with a length, found a "
         "varint",
         2},
        {"00 00", "ModelProto: expected a field tag, found field number 0", 0},
        {"08 08 9b 06", "ModelProto field 99: expected a value, found a group", 2},
        {"08 08 9e 06",
         "ModelProto field 99: expected a value, found a wire type that does "
         "not exist",
         2},
        {"08 08 9d 06 00", "ModelProto field 99: expected 4 bytes, found no whole one", 2},
        {"3a 00 3a 00", "ModelProto.graph: expected one message, found a second one", 2},
        {"3a 06 2a 04 22 02 00 00",
         "TensorProto.float_data: expected a multiple of 4 bytes, "
         "found 2",
         4},
        {"3a 06 2a 04 3a 02 01 80",
         "TensorProto.int64_data: the last of its packed numbers is cut "
         "off",
         4},
        {"3a 0f 2a 0d 3a 0b 80 80 80 80 80 80 80 80 80 80 01",
         "TensorProto.int64_data: expected a packed varint, found no whole one", 4},
        {"3a 08 5a 06 12 04 0a 00 22 00",
         "TypeProto.sequence_type: expected one kind of type, "
         "found a second one",
         8},
        {"08 08", "not an ONNX model: ModelProto has no graph", 0},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        uint8_t bytes[64];
        size_t n = wire_hex(cases[i].hex, bytes, sizeof(bytes));
        nori_error err = {0};
        assert_int_equal(try_bytes(bytes, n, &err), NORI_ERROR_FORMAT);
        if (!strstr(err.message, cases[i].message) || err.offset != cases[i].offset) {
            fail_msg("%s: \"%s\" at %llu, expected \"%s\" at %llu", cases[i].hex, err.message,
                     (unsigned long long)err.offset, cases[i].message,
                     (unsigned long long)cases[i].offset);
        }
        assert_true(err.hint[0]);
    }
}

static void other_files_are_recognized(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *message;
    } cases[] = {
        {"", 0, "the file is empty"},
        {"\x89PNG\r\n\x1a\n", 8, "a PNG picture"},
        {"\xff\xd8\xff\xe0", 4, "a JPEG picture"},
        {"<!DOCTYPE html><html>", 21, "an HTML page"},
        {"\n\n  <HTML lang=en>", 18, "an HTML page"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n", 58, "git lfs pull"},
        {"PK\x03\x04\x14", 5, "a zip archive"},
        {"\x1f\x8b\x08", 3, "gzip"},
        {"{\"error\": 404}", 14, "JSON"},
        {"\x93NUMPY\x01", 7, "NumPy"},
        {"\x1c\0\0\0TFL3", 8, "TensorFlow Lite"},
        {"\x1c\0\0\0ORTM", 8, "ONNX Runtime"},
        {"\x89HDF\r\n\x1a\n", 8, "HDF5"},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        nori_error err = {0};
        assert_int_equal(try_bytes(cases[i].bytes, cases[i].n, &err), NORI_ERROR_FORMAT);
        assert_non_null(strstr(err.message, cases[i].message));
        nori__arena arena;
        nori__arena_init(&arena, &nori__malloc);
        nori__pb_tensor *t = NULL;
        memset(&err, 0, sizeof(err));
        assert_int_equal(
            nori__pb_read_tensor(&arena, (const uint8_t *)cases[i].bytes, cases[i].n, &t, &err),
            NORI_ERROR_FORMAT);
        assert_non_null(strstr(err.message, cases[i].message));
        nori__arena_free(&arena);
    }
    /* Packed dims that begin like JSON behind a line end are a tensor all the same. */
    nori__arena arena;
    nori__arena_init(&arena, &nori__malloc);
    nori__pb_tensor *t = NULL;
    assert_int_equal(
        nori__pb_read_tensor(&arena, (const uint8_t *)"\x0a\x0a{{{{{{{{{{", 12, &t, NULL), NORI_OK);
    assert_int_equal(t->dims.count, 10);
    nori__arena_free(&arena);
}

/* ---- nesting ---- */

/* Puts bytes before those that are there; buffers are filled from the end. */
static void prepend(uint8_t *buffer, size_t *begin, const void *bytes, size_t n)
{
    assert_true(*begin >= n);
    *begin -= n;
    memcpy(buffer + *begin, bytes, n);
}

static void wrap(uint8_t *buffer, size_t *begin, size_t end, uint32_t number)
{
    nori__text t = wire_new();
    wire_tag(&t, number, 2);
    wire_varint(&t, end - *begin);
    prepend(buffer, begin, t.data, t.size);
    nori__text_free(&t);
}

static nori_status read_nested(size_t levels, bool types, nori_error *err)
{
    size_t room = levels * 20 + 100, begin = room;
    uint8_t *buffer = malloc(room);
    assert_non_null(buffer);
    for (size_t i = 0; i < levels; i++) {
        if (types) { /* TypeProto.sequence_type.elem_type */
            wrap(buffer, &begin, room, 1);
            wrap(buffer, &begin, room, 4);
        } else { /* GraphProto.node.attribute.g */
            wrap(buffer, &begin, room, 6);
            wrap(buffer, &begin, room, 5);
            wrap(buffer, &begin, room, 1);
        }
    }
    if (types) {
        wrap(buffer, &begin, room, 2);
        wrap(buffer, &begin, room, 11);
    }
    wrap(buffer, &begin, room, 7);
    nori_status s = try_bytes(buffer + begin, room - begin, err);
    free(buffer);
    return s;
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    for (int types = 0; types < 2; types++) {
        nori_error err = {0};
        assert_int_equal(read_nested(NORI__PB_MAX_NESTING, types, &err), NORI_OK);
        assert_int_equal(read_nested(NORI__PB_MAX_NESTING * 2, types, &err), NORI_ERROR_LIMIT);
        assert_non_null(strstr(err.message, "nested more than"));
        assert_true(err.has_offset);
        memset(&err, 0, sizeof(err));
        assert_int_equal(read_nested(10000, types, &err), NORI_ERROR_LIMIT);
    }
}

static void writing_has_the_same_limit(void **state)
{
    (void)state;
    enum { LEVELS = 500 };
    static nori__pb_graph graphs[LEVELS];
    static nori__pb_node nodes[LEVELS];
    static nori__pb_attr attrs[LEVELS];
    for (size_t i = 0; i + 1 < LEVELS; i++) {
        graphs[i].nodes.items = &nodes[i];
        graphs[i].nodes.count = 1;
        nodes[i].attrs.items = &attrs[i];
        nodes[i].attrs.count = 1;
        attrs[i].kind = NORI__ATTR_GRAPH;
        attrs[i].g = &graphs[i + 1];
    }
    nori__text out = wire_new();
    nori_error err = {0};
    nori__pb_model model = {.graph = graphs};
    assert_int_equal(nori__pb_write_model(&model, &out, &err), NORI_ERROR_LIMIT);
    model.graph = &graphs[LEVELS - NORI__PB_MAX_NESTING];
    assert_int_equal(nori__pb_write_model(&model, &out, NULL), NORI_OK);
    memset(&err, 0, sizeof(err));
    assert_int_equal(try_bytes(out.data, out.size, &err), NORI_OK);
    nori__text_free(&out);
}

/* ---- what a build does not know ---- */

static void unknown_fields_are_kept(void **state)
{
    (void)state;
    nori__text model = wire_new(), graph = wire_new(), node = wire_new(), value = wire_new();
    nori__text type = wire_new(), tensor = wire_new(), out = wire_new();
    wire_int(&node, 900, 1);
    wire_str(&node, 4, "Relu");
    wire_str(&node, 901, "two");
    wire_sub(&graph, 1, &node);
    wire_int(&tensor, 1, NORI_FLOAT);
    wire_f64(&tensor, 77, 0.25);
    wire_sub(&type, 1, &tensor);
    wire_f32(&type, 78, 0.5f);
    wire_str(&value, 1, "x");
    wire_sub(&value, 2, &type);
    wire_sub(&graph, 11, &value);
    wire_int(&model, 1, 99);
    wire_int(&model, 500, -1);
    wire_int(&model, 501, -2);
    wire_sub(&model, 7, &graph);
    nori__arena arena, again;
    nori__pb_report report = {0}, second = {0};
    nori__pb_model *m = read_ok(&arena, model.data, model.size, &report);
    assert_int_equal(report.unknown_fields, 6);
    assert_int_equal(report.first_number, 500);
    assert_int_equal(report.first_offset, 2);
    assert_string_equal(report.first_message, "ModelProto");
    assert_int_equal(m->ir_version, 99);
    assert_non_null(m->head.unknown);
    assert_null(m->head.unknown->next); /* neighbours share a record */
    assert_int_equal(m->head.unknown->bytes.n, 2 * 12);
    assert_int_equal(nori__pb_write_model(m, &out, NULL), NORI_OK);
    assert_int_equal(out.size, model.size); /* the same fields in another order */
    nori__pb_model *w = read_ok(&again, out.data, out.size, &second);
    assert_int_equal(second.unknown_fields, 6);
    const nori__pb_node *n = &w->graph->nodes.items[0];
    assert_true(is(n->op_type, "Relu"));
    assert_memory_equal(n->head.unknown->bytes.p, "\xa0\x38\x01\xaa\x38\x03two", 9);
    const nori__pb_type *t = w->graph->inputs.items[0].type;
    assert_int_equal(t->wrapped->unknown->number, 77);
    assert_int_equal(t->head.unknown->number, 78);
    nori__arena_free(&arena);
    nori__arena_free(&again);
    nori__text_free(&model);
    nori__text_free(&out);
}

/* Many unknown fields that do not neighbour, many nodes: time and memory follow the size. */
static void reading_is_linear(void **state)
{
    (void)state;
    enum { COUNT = 300000 };
    nori__text model = wire_new(), graph = wire_new();
    for (int i = 0; i < COUNT; i++) {
        wire_int(&graph, 99, 1);
        wire_str(&graph, 2, "g");
    }
    wire_sub(&model, 7, &graph);
    nori__arena arena;
    nori__pb_report report = {0};
    uint64_t start = nori__cpu_ns();
    nori__pb_model *m = read_ok(&arena, model.data, model.size, &report);
    assert_int_equal(report.unknown_fields, COUNT);
    assert_true(arena.total < 64u * COUNT + (4u << 20));
    nori__text out = wire_new();
    assert_int_equal(nori__pb_write_model(m, &out, NULL), NORI_OK);
    assert_true(nori__cpu_ns() - start < UINT64_C(10000000000)); /* squared it would be hours */
    nori__text_free(&out);
    nori__arena_free(&arena);
    nori__text_free(&model);
}

static void old_attributes_tell_their_type(void **state)
{
    (void)state;
    static const struct {
        const char *hex;
        nori__pb_attr_kind kind;
    } cases[] = {
        {"15 00 00 00 00", NORI__ATTR_FLOAT}, {"18 00", NORI__ATTR_INT},
        {"22 00", NORI__ATTR_STRING},         {"2a 00", NORI__ATTR_TENSOR},
        {"32 00", NORI__ATTR_GRAPH},          {"3d 00 00 00 00", NORI__ATTR_FLOATS},
        {"40 01", NORI__ATTR_INTS},           {"42 02 01 02", NORI__ATTR_INTS},
        {"4a 00", NORI__ATTR_STRINGS},        {"52 00", NORI__ATTR_TENSORS},
        {"5a 00", NORI__ATTR_GRAPHS},         {"72 00", NORI__ATTR_TYPE},
        {"7a 00", NORI__ATTR_TYPES},          {"b2 01 00", NORI__ATTR_SPARSE},
        {"ba 01 00", NORI__ATTR_SPARSES},     {"aa 01 01 61", NORI__ATTR_NONE},
        {"18 00 a0 01 07", NORI__ATTR_INTS}, /* what it says counts */
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        uint8_t bytes[16];
        size_t size = wire_hex(cases[i].hex, bytes, sizeof(bytes));
        nori__text model = wire_new(), graph = wire_new(), node = wire_new();
        wire_bytes(&node, 5, bytes, size);
        wire_sub(&graph, 1, &node);
        wire_sub(&model, 7, &graph);
        nori__arena arena;
        nori__pb_model *m = read_ok(&arena, model.data, model.size, NULL);
        assert_int_equal(m->graph->nodes.items[0].attrs.items[0].kind, cases[i].kind);
        nori__arena_free(&arena);
        nori__text_free(&model);
    }
}

/* A zero that stands in the file is written; not one that stood in an attribute of another type. */
static void zeros_of_the_file_are_kept(void **state)
{
    (void)state;
    nori__text model = wire_new(), graph = wire_new(), node = wire_new(), attr = wire_new();
    nori__text out = wire_new(), changed = wire_new();
    wire_int(&attr, 3, 0);
    wire_int(&attr, 20, NORI__ATTR_INT);
    wire_str(&node, 3, "");
    wire_sub(&node, 5, &attr);
    wire_sub(&graph, 1, &node);
    wire_int(&model, 5, 0);
    wire_sub(&model, 7, &graph);
    nori__arena arena;
    nori__pb_model *m = read_ok(&arena, model.data, model.size, NULL);
    assert_int_equal(nori__pb_write_model(m, &out, NULL), NORI_OK);
    assert_int_equal(out.size, model.size);
    assert_memory_equal(out.data, model.data, model.size);
    nori__pb_attr *a = &m->graph->nodes.items[0].attrs.items[0];
    a->kind = NORI__ATTR_STRING;
    a->s = NORI__STR("now");
    assert_int_equal(nori__pb_write_model(m, &changed, NULL), NORI_OK);
    assert_int_equal(changed.size, model.size - 2 + 5);
    nori__arena_free(&arena);
    nori__text_free(&model);
    nori__text_free(&out);
    nori__text_free(&changed);
}

/* ---- lists of numbers ---- */

static void packed_and_unpacked(void **state)
{
    (void)state;
    nori__text t = wire_new(), packed = wire_new();
    wire_int(&t, 1, 2); /* dims: one by one, then packed, then one */
    wire_varint(&packed, 3);
    wire_varint(&packed, 300);
    wire_sub(&t, 1, &packed);
    wire_int(&t, 1, 5);
    wire_int(&t, 2, NORI_INT8);
    wire_f32(&t, 4, 1);
    wire_list(&t, 4, NORI_FLOAT, (const float[]){2, 3}, 8);
    wire_f32(&t, 4, 4);
    wire_int(&t, 5, -2);
    wire_varint(&packed, UINT64_C(0xffffffff)); /* -1 in five bytes, as some writers have it */
    wire_varint(&packed, 7);
    wire_sub(&t, 5, &packed);
    wire_f64(&t, 10, 0.5);
    wire_list(&t, 10, NORI_DOUBLE, (const double[]){0.25}, 8);
    wire_int(&t, 11, -1);
    nori__arena arena;
    nori__arena_init(&arena, &nori__malloc);
    nori__pb_tensor *pb = NULL;
    assert_int_equal(nori__pb_read_tensor(&arena, (const uint8_t *)t.data, t.size, &pb, NULL),
                     NORI_OK);
    assert_int_equal(pb->dims.count, 4);
    assert_memory_equal(pb->dims.items, ((const int64_t[]){2, 3, 300, 5}), 32);
    assert_int_equal(pb->floats.count, 4);
    assert_memory_equal(pb->floats.items, ((const float[]){1, 2, 3, 4}), 16);
    assert_int_equal(pb->ints.count, 3);
    assert_memory_equal(pb->ints.items, ((const int64_t[]){-2, -1, 7}), 24);
    assert_int_equal(pb->doubles.count, 2);
    assert_memory_equal(pb->doubles.items, ((const double[]){0.5, 0.25}), 16);
    assert_true(pb->uints.count == 1 && pb->uints.items[0] == UINT64_MAX);
    nori__arena_free(&arena);
    nori__text_free(&t);
}

/* Packed floats of a tensor are pointed at wherever they are; those of an attribute where aligned. */
static void packed_floats_are_not_copied(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0x22, 8, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40};
    uint8_t *buffer = malloc(64);
    assert_non_null(buffer);
    for (size_t shift = 0; shift < 4; shift++) {
        memcpy(buffer + shift, bytes, sizeof(bytes));
        nori__arena arena;
        nori__arena_init(&arena, &nori__malloc);
        nori__pb_tensor *pb = NULL;
        assert_int_equal(nori__pb_read_tensor(&arena, buffer + shift, sizeof(bytes), &pb, NULL),
                         NORI_OK);
        assert_int_equal(pb->floats.count, 2);
        assert_memory_equal((const void *)pb->floats.items, ((const float[]){1, 2}), 8);
        assert_int_equal((const uint8_t *)pb->floats.items == buffer + shift + 2, !NORI__BIG_ENDIAN);
        nori__arena_free(&arena);
    }
    free(buffer);
}

/* ---- memory ---- */

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    nori__text bytes = model_bytes(true);
    for (size_t fail_at = 1;; fail_at++) {
        test_alloc ta;
        test_alloc_init(&ta, fail_at);
        nori__arena arena;
        nori__arena_init(&arena, &ta.allocator);
        nori__pb_model *m = NULL;
        nori__text out;
        nori__text_init(&out, &ta.allocator);
        nori_status s =
            nori__pb_read_model(&arena, (const uint8_t *)bytes.data, bytes.size, &m, NULL, NULL);
        if (s == NORI_OK) {
            s = nori__pb_write_model(m, &out, NULL);
        }
        size_t calls = ta.calls;
        nori__text_free(&out);
        nori__arena_free(&arena);
        assert_int_equal(ta.live, 0);
        assert_false(ta.wrong_size);
        if (s == NORI_OK) {
            assert_true(calls < fail_at && calls >= 4);
            break;
        }
        assert_int_equal(s, NORI_ERROR_MEMORY);
    }
    nori__text_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_model),
        cmocka_unit_test(writes_the_same_bytes),
        cmocka_unit_test(every_cut_is_an_error),
        cmocka_unit_test(changed_bytes_are_survived),
        cmocka_unit_test(wire_faults_are_named),
        cmocka_unit_test(other_files_are_recognized),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(writing_has_the_same_limit),
        cmocka_unit_test(unknown_fields_are_kept),
        cmocka_unit_test(reading_is_linear),
        cmocka_unit_test(old_attributes_tell_their_type),
        cmocka_unit_test(zeros_of_the_file_are_kept),
        cmocka_unit_test(packed_and_unpacked),
        cmocka_unit_test(packed_floats_are_not_copied),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

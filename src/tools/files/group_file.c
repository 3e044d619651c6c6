/* group_file.c: SequenceProto, OptionalProto and MapProto to values. Their bytes do not say which of
 * them they are, so the kind comes from whoever knows the type. Recurses as deep as the values
 * nest, which is limited here as it is where groups are made. */
#include "tools/files/group_file.h"

typedef struct reader {
    const nori_allocator *a;
    nori_error *err;
} reader;

static nori_status make(const reader *r, const nori__pb_group *pb, nori_kind kind, int depth,
                        nori_tensor **value);

/* SequenceProto.DataType and OptionalProto.DataType; 0 where none is said. */
enum { ITEM_TENSOR = 1, ITEM_SPARSE, ITEM_SEQUENCE, ITEM_MAP, ITEM_OPTIONAL };

/* How many items there are, and of which sort; false when they are of several. */
static bool look(const nori__pb_group *pb, size_t *count, int *sort)
{
    size_t counts[] = {pb->tensors.count, pb->sparses.count, pb->sequences.count, pb->maps.count,
                       pb->optionals.count};
    *count = 0;
    *sort = 0;
    for (int i = 0; i < (int)NORI__COUNT(counts); i++) {
        if (counts[i] > 0 && *count > 0) {
            return false;
        }
        *sort = counts[i] > 0 ? i + ITEM_TENSOR : *sort;
        *count += counts[i];
    }
    return true;
}

static nori_status make_tensor(const reader *r, const nori__pb_tensor *pb, nori_tensor **value)
{
    nori_tensor *view = NULL;
    NORI__TRY(nori__tensor_from_pb(r->a, pb, NULL, &view, r->err));
    nori_status s = nori__tensor_copy(r->a, view, value, r->err); /* the file goes away */
    nori_tensor_free(view);
    return s;
}

static nori_status make_item(const reader *r, const nori__pb_group *pb, int sort, size_t i,
                             int depth, nori_tensor **value)
{
    switch (sort) {
    case ITEM_TENSOR:
        return make_tensor(r, &pb->tensors.items[i], value);
    case ITEM_SEQUENCE:
        return make(r, pb->sequences.items[i], NORI_KIND_SEQUENCE, depth, value);
    case ITEM_MAP:
        return make(r, pb->maps.items[i], NORI_KIND_MAP, depth, value);
    case ITEM_OPTIONAL:
        return make(r, pb->optionals.items[i], NORI_KIND_OPTIONAL, depth, value);
    default:
        return nori__fail(r->err, NORI_ERROR_UNSUPPORTED,
                          "the file holds sparse tensors in a sequence or optional");
    }
}

/* The keys of a map as a 1-D tensor. */
static nori_status make_keys(const reader *r, const nori__pb_group *pb, nori_tensor **value)
{
    bool text = pb->elem == NORI_STRING;
    int64_t n = (int64_t)(text ? pb->string_keys.count : pb->keys.count);
    NORI__TRY(nori__tensor_new(r->a, text ? NORI_STRING : NORI_INT64, 1, &n, value, r->err));
    for (int64_t i = 0; i < n; i++) {
        if (!text) {
            ((int64_t *)(*value)->data)[i] = pb->keys.items[i];
            continue;
        }
        const nori__str *key = &pb->string_keys.items[i];
        NORI__TRY(nori__tensor_set_string(*value, i, key->p, key->n, r->err));
    }
    return NORI_OK;
}

/* The values of a map, a tensor of one element each, as a 1-D tensor. */
static nori_status make_values(const reader *r, const nori__pb_group *pb, int64_t n,
                               nori_tensor **value)
{
    if ((pb ? pb->tensors.count : 0) != (size_t)n) {
        return nori__fail(r->err, NORI_ERROR_FORMAT,
                          "a map has %lld keys and another number of tensors", (long long)n);
    }
    nori_type type = n > 0 ? (nori_type)pb->tensors.items[0].data_type : NORI_FLOAT;
    NORI__TRY(nori__tensor_new(r->a, type, 1, &n, value, r->err));
    for (int64_t i = 0; i < n; i++) {
        nori_tensor *one = NULL;
        NORI__TRY(nori__tensor_from_pb(r->a, &pb->tensors.items[i], NULL, &one, r->err));
        nori_status s = NORI_OK;
        unsigned bits = nori_type_bits(type);
        if (one->count != 1 || one->type != type || (type != NORI_STRING && bits < 8)) {
            s = nori__fail(r->err, NORI_ERROR_UNSUPPORTED,
                           "value %lld of a map is not one element of type %s", (long long)i,
                           nori_type_name(type));
        } else if (type == NORI_STRING) {
            const nori_string *text = one->data;
            s = nori__tensor_set_string(*value, i, text->data, text->size, r->err);
        } else {
            memcpy((char *)(*value)->data + (size_t)i * (bits / 8), one->data, bits / 8);
        }
        nori_tensor_free(one);
        NORI__TRY(s);
    }
    return NORI_OK;
}

static nori_status make_map(const reader *r, const nori__pb_group *pb, nori_tensor **value)
{
    nori_tensor *items[2] = {NULL, NULL};
    nori_status s = make_keys(r, pb, &items[0]);
    if (s == NORI_OK) {
        s = make_values(r, pb->values, items[0]->count, &items[1]);
    }
    if (s == NORI_OK) {
        s = nori__tensor_group(r->a, NORI_KIND_MAP, items, 2, value, r->err);
    }
    nori_tensor_free(items[0]);
    nori_tensor_free(items[1]);
    return s;
}

static nori_status make(const reader *r, const nori__pb_group *pb, nori_kind kind, int depth,
                        nori_tensor **value)
{
    if (depth > NORI__PB_MAX_NESTING) {
        return nori__fail(r->err, NORI_ERROR_LIMIT, "values are nested more than %d deep",
                          NORI__PB_MAX_NESTING);
    }
    if (kind == NORI_KIND_MAP) {
        return make_map(r, pb, value);
    }
    size_t n, done = 0, bytes = 0;
    int sort;
    if (!look(pb, &n, &sort)) {
        return nori__fail(r->err, NORI_ERROR_FORMAT, "a sequence or optional mixes values of "
                          "several kinds");
    }
    if (kind == NORI_KIND_OPTIONAL && n > 1) {
        return nori__fail(r->err, NORI_ERROR_FORMAT, "an optional holds %zu values", n);
    }
    nori_tensor **items =
        nori__mul_size(n + 1, sizeof(*items), &bytes) ? nori__alloc_zero(r->a, bytes) : NULL;
    if (!items) {
        return nori__no_memory(r->err);
    }
    nori_status s = NORI_OK;
    for (; s == NORI_OK && done < n; done++) {
        s = make_item(r, pb, sort, done, depth + 1, &items[done]);
    }
    if (s == NORI_OK) {
        s = nori__tensor_group(r->a, kind, items, n, value, r->err);
    }
    for (size_t i = 0; i < done; i++) {
        nori_tensor_free(items[i]);
    }
    nori__release(r->a, items, bytes);
    return s;
}

nori_status nori__group_read(const nori_allocator *a, const uint8_t *data, size_t size,
                             nori_kind kind, nori_tensor **value, nori_error *err)
{
    nori__arena arena;
    nori__arena_init(&arena, a);
    nori__pb_group *pb = NULL;
    *value = NULL;
    nori_status s = nori__pb_read_group(&arena, data, size, kind, &pb, err);
    if (s == NORI_OK) {
        s = make(&(reader){a, err}, pb, kind, 0, value);
    }
    nori__arena_free(&arena);
    if (s != NORI_OK) {
        nori_tensor_free(*value);
        *value = NULL;
    }
    return s;
}

/* tensor_pb.c: TensorProto to tensor. Bytes and lists that are laid out as the tensor's elements
 * are pointed at, the rest is copied: large initializers that stand at an odd address only when
 * somebody needs them elsewhere (loose.c). Type, shape and number of elements are checked here. */
#include <stdio.h>

#include "base/byte_order.h"
#include "graph/internal.h"

static nori_status bad(nori_error *err, nori_status status, const nori__pb_tensor *pb,
                       const char *fmt, ...) NORI__PRINTF(4, 5);
static nori_status bad(nori_error *err, nori_status status, const nori__pb_tensor *pb,
                       const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return nori__fail(err, status, "tensor %.*s: %s", (int)(pb->name.n < 200 ? pb->name.n : 200),
                      pb->name.n ? pb->name.p : "(no name)", text);
}

static nori_status wrong_count(nori_error *err, const nori__pb_tensor *pb, const char *field,
                               size_t have, size_t need)
{
    return bad(err, NORI_ERROR_MODEL, pb, "%s has %zu entries, type %s and the shape need %zu",
               field, have, nori_type_name((nori_type)pb->data_type), need);
}

static bool aligned_for(const void *p, nori_type type)
{
    unsigned bits = nori_type_bits(type);
    unsigned bytes = bits > 64 ? 8 : bits / 8;
    return bytes < 2 || (uintptr_t)p % bytes == 0;
}

/* Kernels rely on 0 and 1. */
static bool clean_bools(nori__str bytes)
{
    for (size_t i = 0; i < bytes.n; i++) {
        if ((unsigned char)bytes.p[i] > 1) {
            return false;
        }
    }
    return true;
}

/* Points at bytes where alignment and byte order allow, or where they may wait (loose); else copies. */
static nori_status from_bytes(const nori_allocator *a, const nori__pb_tensor *pb, nori__str bytes,
                              bool loose, nori_tensor **tensor, nori_error *err)
{
    nori_type type = (nori_type)pb->data_type;
    int rank = (int)pb->dims.count;
    bool clean = type != NORI_BOOL || clean_bools(bytes);
    bool turned = NORI__BIG_ENDIAN && nori__order_width(type) > 1;
    if (clean && !turned && aligned_for(bytes.p, type)) {
        return nori__tensor_view(a, type, rank, pb->dims.items, bytes.p, tensor, err);
    }
    if (loose && !turned && nori__type_is_float(type) && bytes.n >= NORI__LOOSE_LEAST) {
        return nori__tensor_loose(a, type, rank, pb->dims.items, bytes.p, tensor, err);
    }
    NORI__TRY(nori__tensor_new_near(a, type, rank, pb->dims.items, tensor, err));
    if (bytes.n > 0) {
        memcpy((*tensor)->data, bytes.p, bytes.n);
        nori__order(type, (*tensor)->data, bytes.n);
    }
    for (size_t i = 0; !clean && i < bytes.n; i++) {
        uint8_t *b = (uint8_t *)(*tensor)->data + i;
        *b = *b != 0;
    }
    return NORI_OK;
}

/* A list whose entries are the elements (or parts of one: complex numbers have two). */
static nori_status from_list(const nori_allocator *a, const nori__pb_tensor *pb, const char *field,
                             const void *items, size_t have, size_t need, nori_tensor **tensor,
                             nori_error *err)
{
    if (have != need) {
        return wrong_count(err, pb, field, have, need);
    }
    return nori__tensor_view(a, (nori_type)pb->data_type, (int)pb->dims.count, pb->dims.items,
                             items, tensor, err);
}

/* The same of floats, width bytes each. Of a file with this machine's order they are what raw bytes are. */
static nori_status from_floats(const nori_allocator *a, const nori__pb_tensor *pb, const char *field,
                               nori__str bytes, size_t width, size_t need, bool loose,
                               nori_tensor **tensor, nori_error *err)
{
    need *= pb->data_type == NORI_COMPLEX64 || pb->data_type == NORI_COMPLEX128 ? 2 : 1;
    if (NORI__BIG_ENDIAN || bytes.n / width != need) {
        return from_list(a, pb, field, bytes.p, bytes.n / width, need, tensor, err);
    }
    return from_bytes(a, pb, bytes, loose, tensor, err);
}

/* Entries become elements: one entry an element, but two or four sub-byte elements in an entry's low byte,
 * as raw bytes have them. */
static void put_entries(nori__pb_cursor c, size_t have, nori_tensor *t)
{
    unsigned bits = nori_type_bits((nori_type)t->type);
    for (size_t i = 0; i < have; i++) {
        uint64_t v = nori__pb_number(&c);
        if (bits == 64) {
            ((uint64_t *)t->data)[i] = v;
        } else if (bits == 32) {
            ((uint32_t *)t->data)[i] = (uint32_t)v;
        } else if (bits == 16) {
            ((uint16_t *)t->data)[i] = (uint16_t)v;
        } else {
            ((uint8_t *)t->data)[i] = t->type == NORI_BOOL ? v != 0 : (uint8_t)v;
        }
    }
}

static nori_status strings(const nori__pb_tensor *pb, nori_tensor *t, nori_error *err)
{
    for (size_t i = 0; i < pb->strings.count; i++) {
        NORI__TRY(nori__tensor_set_string(t, (int64_t)i, pb->strings.items[i].p,
                                          pb->strings.items[i].n, err));
    }
    return NORI_OK;
}

static nori_status from_lists(const nori_allocator *a, const nori__pb_tensor *pb, size_t count,
                              bool loose, nori_tensor **tensor, nori_error *err)
{
    nori_status status;
    nori__str floats = {(const char *)pb->floats.items, pb->floats.count * sizeof(float)};
    nori__str doubles = {(const char *)pb->doubles.items, pb->doubles.count * sizeof(double)};
    switch (pb->data_type) {
    case NORI_FLOAT:
    case NORI_COMPLEX64:
        return from_floats(a, pb, "float_data", floats, sizeof(float), count, loose, tensor, err);
    case NORI_DOUBLE:
    case NORI_COMPLEX128:
        return from_floats(a, pb, "double_data", doubles, sizeof(double), count, loose, tensor, err);
    case NORI_INT64:
        if (!pb->ints.packed.p) {
            return from_list(a, pb, "int64_data", pb->ints.items, pb->ints.count, count, tensor, err);
        }
        break;
    case NORI_UINT64:
        if (!pb->uints.packed.p) {
            return from_list(a, pb, "uint64_data", pb->uints.items, pb->uints.count, count, tensor, err);
        }
        break;
    default:
        break;
    }
    /* Counted before memory is taken: sizes of a file may ask for any amount. */
    nori_type type = (nori_type)pb->data_type;
    bool text = type == NORI_STRING, wide = type == NORI_UINT32 || type == NORI_UINT64;
    size_t have = text ? pb->strings.count : wide ? pb->uints.count : pb->ints.count, need = count;
    if (nori_type_bits(type) < 8 && !text && !nori__type_bytes(type, (int64_t)count, &need)) {
        return nori__no_memory(err);
    }
    if (have != need) {
        return wrong_count(err, pb,
                           text                 ? "string_data"
                           : wide               ? "uint64_data"
                           : type == NORI_INT64 ? "int64_data"
                                                : "int32_data",
                           have, need);
    }
    NORI__TRY(nori__tensor_new_near(a, type, (int)pb->dims.count, pb->dims.items, tensor, err));
    status = text ? strings(pb, *tensor, err) : NORI_OK;
    if (!text) {
        put_entries(nori__pb_numbers_of(wide ? (const void *)&pb->uints : &pb->ints), have, *tensor);
    }
    if (status != NORI_OK) {
        nori_tensor_free(*tensor);
        *tensor = NULL;
    }
    return status;
}

static bool has_lists(const nori__pb_tensor *pb)
{
    return pb->floats.count > 0 || pb->doubles.count > 0 || pb->ints.count > 0 ||
           pb->uints.count > 0 || pb->strings.count > 0;
}

static nori_status check_shape(const nori__pb_tensor *pb, int64_t *count, size_t *bytes,
                               nori_error *err)
{
    if (pb->data_type <= 0 || pb->data_type >= NORI_TYPE_COUNT) {
        return bad(err, NORI_ERROR_MODEL, pb, "element type %d does not exist (1 to %d do)",
                   (int)pb->data_type, NORI_TYPE_COUNT - 1);
    }
    if (pb->dims.count > NORI_MAX_RANK) {
        return bad(err, NORI_ERROR_LIMIT, pb, "rank %zu, at most %d is taken", pb->dims.count,
                   NORI_MAX_RANK);
    }
    for (size_t d = 0; d < pb->dims.count; d++) {
        if (pb->dims.items[d] < 0) {
            return bad(err, NORI_ERROR_MODEL, pb, "size %lld of axis %zu is negative",
                       (long long)pb->dims.items[d], d);
        }
    }
    if (!nori__dims_count((int)pb->dims.count, pb->dims.items, count) ||
        !nori__type_bytes((nori_type)pb->data_type, *count, bytes)) {
        return bad(err, NORI_ERROR_MODEL, pb, "its shape needs more memory than there can be");
    }
    return NORI_OK;
}

static nori_status from_pb(const nori_allocator *a, const nori__pb_tensor *pb,
                           nori__external *external, bool loose, nori_tensor **tensor,
                           nori_error *err)
{
    int64_t count = 0;
    size_t bytes = 0;
    *tensor = NULL;
    NORI__TRY(check_shape(pb, &count, &bytes, err));
    bool text = pb->data_type == NORI_STRING;
    if (pb->data_location == 1) {
        nori__str view;
        if (text) {
            return bad(err, NORI_ERROR_MODEL, pb, "strings cannot be external data");
        }
        NORI__TRY(nori__external_view(external, pb, bytes, &view, err));
        return from_bytes(a, pb, view, loose, tensor, err);
    }
    if (!text && pb->has_raw && (pb->raw.n > 0 || !has_lists(pb))) {
        if (pb->raw.n != bytes) {
            return bad(err, NORI_ERROR_MODEL, pb,
                       "raw_data has %zu bytes, type %s and the shape need %zu", pb->raw.n,
                       nori_type_name((nori_type)pb->data_type), bytes);
        }
        return from_bytes(a, pb, pb->raw, loose, tensor, err);
    }
    return from_lists(a, pb, (size_t)count, loose, tensor, err);
}

nori_status nori__tensor_from_pb(const nori_allocator *a, const nori__pb_tensor *pb,
                                 nori__external *external, nori_tensor **tensor, nori_error *err)
{
    return from_pb(a, pb, external, false, tensor, err);
}

nori_status nori__initializer_from_pb(const nori_allocator *a, const nori__pb_tensor *pb,
                                      nori__external *external, nori_tensor **tensor,
                                      nori_error *err)
{
    return from_pb(a, pb, external, true, tensor, err);
}

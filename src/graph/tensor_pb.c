/* tensor_pb.c: TensorProto to tensor. Raw bytes are pointed at, typed lists are copied. */
#include "graph/tensor.h"

#include <stdio.h>

static nori_status bad(nori_error *err, const nori__pb_tensor *pb, const char *fmt, ...)
    NORI__PRINTF(3, 4);
static nori_status bad(nori_error *err, const nori__pb_tensor *pb, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return nori__fail(err, NORI_ERROR_MODEL, "tensor %.*s: %s",
                      (int)(pb->name.n < 200 ? pb->name.n : 200),
                      pb->name.n ? pb->name.p : "(no name)", text);
}

static bool aligned_for(const void *p, nori_type type)
{
    unsigned bits = nori_type_bits(type);
    unsigned bytes = bits > 64 ? 8 : bits / 8;
    return bytes < 2 || (uintptr_t)p % bytes == 0;
}

/* Points at bytes where alignment allows, else copies them. */
static nori_status from_bytes(const nori_allocator *a, nori_type type, int rank,
                              const int64_t *dims, nori__str bytes, nori_tensor **tensor,
                              nori_error *err)
{
    if (bytes.n > 0 && aligned_for(bytes.p, type)) {
        int64_t none = 0;
        NORI__TRY(nori__tensor_new(a, type, 1, &none, tensor, err));
        (*tensor)->owned = 0; /* the bytes are the file's */
        nori__tensor_reshape(*tensor, type, rank, dims);
        (*tensor)->data = (void *)(uintptr_t)bytes.p;
        return NORI_OK;
    }
    NORI__TRY(nori__tensor_new(a, type, rank, dims, tensor, err));
    if (bytes.n > 0) {
        memcpy((*tensor)->data, bytes.p, bytes.n);
    }
    return NORI_OK;
}

/* int32_data of the narrow types: one entry an element, but two or four sub-byte elements an
 * entry's low byte, as the raw bytes have them. */
static nori_status from_ints(const nori__pb_tensor *pb, nori_tensor *t, nori_error *err)
{
    unsigned bits = nori_type_bits(t->type);
    size_t need = bits < 8 ? t->bytes : (size_t)t->count;
    if (pb->ints.count != need) {
        return bad(err, pb, "int data has %zu entries, the shape needs %zu", pb->ints.count, need);
    }
    for (size_t i = 0; i < need; i++) {
        int64_t v = pb->ints.items[i];
        switch (bits) {
        case 64:
            ((int64_t *)t->data)[i] = v;
            break;
        case 32:
            ((uint32_t *)t->data)[i] = (uint32_t)v;
            break;
        case 16:
            ((uint16_t *)t->data)[i] = (uint16_t)v;
            break;
        default:
            ((uint8_t *)t->data)[i] = t->type == NORI_BOOL ? v != 0 : (uint8_t)v;
        }
    }
    return NORI_OK;
}

static nori_status from_lists(const nori__pb_tensor *pb, nori_tensor *t, nori_error *err)
{
    size_t parts = t->type == NORI_COMPLEX64 || t->type == NORI_COMPLEX128 ? 2 : 1;
    size_t need = (size_t)t->count * parts, have = 0;
    const void *items = NULL;
    switch (t->type) {
    case NORI_FLOAT:
    case NORI_COMPLEX64:
        have = pb->floats.count;
        items = pb->floats.items;
        break;
    case NORI_DOUBLE:
    case NORI_COMPLEX128:
        have = pb->doubles.count;
        items = pb->doubles.items;
        break;
    case NORI_UINT64:
    case NORI_UINT32:
        have = pb->uints.count;
        if (have == need && t->type == NORI_UINT32) {
            for (size_t i = 0; i < need; i++) {
                ((uint32_t *)t->data)[i] = (uint32_t)pb->uints.items[i];
            }
            return NORI_OK;
        }
        items = pb->uints.items;
        break;
    case NORI_STRING:
        if (pb->strings.count != need) {
            return bad(err, pb, "%zu strings, the shape needs %zu", pb->strings.count, need);
        }
        for (size_t i = 0; i < need; i++) {
            NORI__TRY(nori__tensor_set_string(t, (int64_t)i, pb->strings.items[i].p,
                                              pb->strings.items[i].n, err));
        }
        return NORI_OK;
    default:
        return from_ints(pb, t, err);
    }
    if (have != need) {
        return bad(err, pb, "typed data has %zu entries, the shape needs %zu", have, need);
    }
    if (t->bytes > 0) {
        memcpy(t->data, items, t->bytes);
    }
    return NORI_OK;
}

nori_status nori__tensor_from_pb(const nori_allocator *a, const nori__pb_tensor *pb,
                                 nori__external *external, nori_tensor **tensor, nori_error *err)
{
    *tensor = NULL;
    if (pb->data_type <= 0 || pb->data_type >= NORI_TYPE_COUNT) {
        return bad(err, pb, "element type %d does not exist (1 to %d do)", (int)pb->data_type,
                   NORI_TYPE_COUNT - 1);
    }
    nori_type type = (nori_type)pb->data_type;
    if (pb->dims.count > NORI_MAX_RANK) {
        bad(err, pb, "rank %zu, at most %d is taken", pb->dims.count, NORI_MAX_RANK);
        return NORI_ERROR_LIMIT;
    }
    int rank = (int)pb->dims.count;
    int64_t count;
    size_t bytes;
    if (!nori__dims_count(rank, pb->dims.items, &count) || !nori__type_bytes(type, count, &bytes)) {
        return bad(err, pb, "a size is negative or the shape is larger than memory can be");
    }
    if (pb->data_location == 1) {
        if (type == NORI_STRING) {
            return bad(err, pb, "strings cannot be external data");
        }
        nori__str view;
        NORI__TRY(nori__external_view(external, pb, bytes, &view, err));
        return from_bytes(a, type, rank, pb->dims.items, view, tensor, err);
    }
    if (pb->has_raw && type != NORI_STRING &&
        (pb->raw.n > 0 || (pb->floats.count == 0 && pb->ints.count == 0))) {
        if (pb->raw.n != bytes) {
            return bad(err, pb, "raw data has %zu bytes, type %s and the shape need %zu",
                       pb->raw.n, nori_type_name(type), bytes);
        }
        return from_bytes(a, type, rank, pb->dims.items, pb->raw, tensor, err);
    }
    NORI__TRY(nori__tensor_new(a, type, rank, pb->dims.items, tensor, err));
    nori_status status = from_lists(pb, *tensor, err);
    if (status != NORI_OK) {
        nori_tensor_free(*tensor);
        *tensor = NULL;
    }
    return status;
}

/* ort_value.c: tensors to ONNX Runtime's values and back, without copying where bytes can stay. */
#include "providers/ort/ort.h"

#define CHECK(call) NORI__TRY(nori__ort_check(api, api->call, NORI_ERROR_DATA, err))

/* ---- in ---- */

static nori_status strings_in(const ort_self *self, const nori_tensor *t, ort_value **value,
                              nori_error *err)
{
    const ort_api *api = &self->library.api;
    ort_allocator *allocator = NULL;
    const nori_string *s = nori_tensor_const_data(t);
    CHECK(GetAllocatorWithDefaultOptions(&allocator));
    CHECK(CreateTensorAsOrtValue(allocator, nori_tensor_dims(t), (size_t)nori_tensor_rank(t),
                                 NORI_STRING, value));
    for (int64_t i = 0; i < nori_tensor_elements(t); i++) {
        char *bytes = NULL;
        ort_status *status =
            api->GetResizedStringTensorElementBuffer(*value, (size_t)i, s[i].size, &bytes);
        if (status) {
            api->ReleaseValue(*value);
            *value = NULL;
            return nori__ort_check(api, status, NORI_ERROR_DATA, err);
        }
        if (s[i].size > 0) {
            memcpy(bytes, s[i].data, s[i].size);
        }
    }
    return NORI_OK;
}

static nori_status group_in(const ort_self *self, const nori_tensor *t, ort_value **value,
                            nori_error *err)
{
    const ort_api *api = &self->library.api;
    nori_kind kind = nori_tensor_kind(t);
    size_t n = nori_tensor_item_count(t), bytes;
    if (kind == NORI_KIND_OPTIONAL && n == 1) {
        return nori__ort_value_in(self, nori_tensor_item(t, 0), value, err);
    }
    if ((kind != NORI_KIND_SEQUENCE && kind != NORI_KIND_MAP) || n == 0) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED,
                          "ONNX Runtime's C interface takes no empty optional, empty sequence or "
                          "sparse tensor");
    }
    ort_value **items =
        nori__mul_size(n, sizeof(*items), &bytes) ? nori__alloc_zero(&nori__malloc, bytes) : NULL;
    if (!items) {
        return nori__no_memory(err);
    }
    nori_status status = NORI_OK;
    for (size_t i = 0; i < n && status == NORI_OK; i++) {
        status = nori__ort_value_in(self, nori_tensor_item(t, i), &items[i], err);
    }
    if (status == NORI_OK) {
        status = nori__ort_check(api,
                                 api->CreateValue((const ort_value *const *)items, n,
                                                  kind == NORI_KIND_MAP ? ORT_MAP : ORT_SEQUENCE,
                                                  value),
                                 NORI_ERROR_DATA, err);
    }
    for (size_t i = 0; i < n && items[i]; i++) {
        api->ReleaseValue(items[i]);
    }
    nori__release(&nori__malloc, items, bytes);
    return status;
}

nori_status nori__ort_value_in(const ort_self *self, const nori_tensor *t, ort_value **value,
                               nori_error *err)
{
    static char nothing[64];
    const ort_api *api = &self->library.api;
    *value = NULL;
    if (nori_tensor_kind(t) != NORI_KIND_TENSOR) {
        return group_in(self, t, value, err); /* groups nest as deep as tensors allow */
    }
    if (nori_tensor_type(t) == NORI_STRING) {
        return strings_in(self, t, value, err);
    }
    void *data = (void *)(uintptr_t)nori_tensor_const_data(t); /* inputs are only read */
    CHECK(CreateTensorWithDataAsOrtValue(self->memory, data ? data : nothing, nori_tensor_bytes(t),
                                         nori_tensor_dims(t), (size_t)nori_tensor_rank(t),
                                         (int)nori_tensor_type(t), value));
    return NORI_OK;
}

/* ---- out ---- */

/* Keeps a value alive under the tensor that wraps its bytes. */
typedef struct holder {
    void (*release)(ort_value *);
    ort_value *value;
} holder;

static void let_go(void *user, void *data)
{
    holder *h = user;
    (void)data;
    h->release(h->value);
    nori__release(&nori__malloc, h, sizeof(*h));
}

static nori_status shape_of(const ort_api *api, const ort_value *value, int *type, int *rank,
                            int64_t *dims, nori_error *err)
{
    ort_shape *shape = NULL;
    size_t n = 0;
    CHECK(GetTensorTypeAndShape(value, &shape));
    ort_status *s = api->GetTensorElementType(shape, type);
    s = s ? s : api->GetDimensionsCount(shape, &n);
    if (!s && n <= NORI_MAX_RANK) {
        s = api->GetDimensions(shape, dims, n);
    }
    api->ReleaseTensorTypeAndShapeInfo(shape);
    *rank = (int)n;
    if (!s && n > NORI_MAX_RANK) {
        return nori__fail(err, NORI_ERROR_LIMIT, "ONNX Runtime gave an output of rank %zu", n);
    }
    return nori__ort_check(api, s, NORI_ERROR_DATA, err);
}

static nori_status strings_out(const ort_api *api, ort_value *value, int rank, const int64_t *dims,
                               nori_tensor **tensor, nori_error *err)
{
    NORI__TRY(nori_tensor_create(NULL, NORI_STRING, rank, dims, tensor, err));
    size_t n = (size_t)nori_tensor_elements(*tensor), size = 0, room = 0;
    nori_status status = nori__ort_check(api, api->GetStringTensorDataLength(value, &size),
                                         NORI_ERROR_DATA, err);
    if (status == NORI_OK &&
        (!nori__mul_size(n + 1, sizeof(size_t), &room) || !nori__add_size(room, size, &room))) {
        status = nori__no_memory(err);
    }
    size_t *offsets = status == NORI_OK ? nori__alloc(&nori__malloc, room) : NULL;
    if (status == NORI_OK && !offsets) {
        status = nori__no_memory(err);
    }
    if (status == NORI_OK && n > 0) {
        char *bytes = (char *)(offsets + n + 1);
        status = nori__ort_check(api, api->GetStringTensorContent(value, bytes, size, offsets, n),
                                 NORI_ERROR_DATA, err);
        offsets[n] = size;
        for (size_t i = 0; i < n && status == NORI_OK; i++) {
            status = nori__tensor_set_string(*tensor, (int64_t)i, bytes + offsets[i],
                                             offsets[i + 1] - offsets[i], err);
        }
    }
    nori__release(&nori__malloc, offsets, offsets ? room : 0);
    if (status != NORI_OK) {
        nori_tensor_free(*tensor);
        *tensor = NULL;
    }
    return status;
}

/* Wraps the bytes; the value is given up in every case. */
static nori_status tensor_out(const ort_api *api, ort_value *value, nori_tensor **tensor,
                              nori_error *err)
{
    int type = 0, rank = 0;
    int64_t dims[NORI_MAX_RANK] = {0}, count;
    size_t bytes = 0;
    void *data = NULL;
    nori_status status = shape_of(api, value, &type, &rank, dims, err);
    if (status == NORI_OK && type == NORI_STRING) {
        status = strings_out(api, value, rank, dims, tensor, err);
        api->ReleaseValue(value);
        return status;
    }
    if (status == NORI_OK) {
        status = nori__ort_check(api, api->GetTensorMutableData(value, &data), NORI_ERROR_DATA, err);
    }
    if (status == NORI_OK && (!nori__dims_count(rank, dims, &count) ||
                              !nori__type_bytes((nori_type)type, count, &bytes))) {
        status = nori__fail(err, NORI_ERROR_DATA, "ONNX Runtime gave an output of type %d", type);
    }
    holder *h = status == NORI_OK ? nori__alloc(&nori__malloc, sizeof(*h)) : NULL;
    if (status == NORI_OK && !h) {
        status = nori__no_memory(err);
    }
    if (status == NORI_OK) {
        *h = (holder){api->ReleaseValue, value};
        status = nori_tensor_wrap(NULL, (nori_type)type, rank, dims, data, bytes, let_go, h, tensor,
                                  err);
        if (status == NORI_OK) {
            return NORI_OK;
        }
        nori__release(&nori__malloc, h, sizeof(*h));
    }
    api->ReleaseValue(value);
    return status;
}

static nori_status group_out(const ort_self *self, ort_value *value, nori_kind kind, size_t count,
                             nori_tensor **tensor, nori_error *err)
{
    const ort_api *api = &self->library.api;
    ort_allocator *allocator = NULL;
    size_t bytes = 0;
    CHECK(GetAllocatorWithDefaultOptions(&allocator));
    nori_tensor **items = nori__mul_size(count + 1, sizeof(*items), &bytes)
                              ? nori__alloc_zero(&nori__malloc, bytes)
                              : NULL;
    nori_status status = items ? NORI_OK : nori__no_memory(err);
    for (size_t i = 0; i < count && status == NORI_OK; i++) {
        ort_value *item = NULL;
        status = nori__ort_check(api, api->GetValue(value, (int)i, allocator, &item),
                                 NORI_ERROR_DATA, err);
        if (status == NORI_OK) {
            status = nori__ort_value_out(self, item, &items[i], err);
        }
    }
    if (status == NORI_OK) {
        status = nori_tensor_group(NULL, kind, items, count, 0, NULL, tensor, err);
    }
    for (size_t i = 0; items && i < count; i++) {
        nori_tensor_free(items[i]);
    }
    nori__release(&nori__malloc, items, items ? bytes : 0);
    return status;
}

nori_status nori__ort_value_out(const ort_self *self, ort_value *value, nori_tensor **tensor,
                                nori_error *err)
{
    const ort_api *api = &self->library.api;
    int type = 0, has = 1;
    size_t count = 2; /* a map: keys and values */
    *tensor = NULL;
    ort_status *s = api->HasValue(value, &has);
    s = s ? s : has ? api->GetValueType(value, &type) : NULL;
    if (!s && has && type == ORT_TENSOR) {
        return tensor_out(api, value, tensor, err);
    }
    if (!s && has && type == ORT_SEQUENCE) {
        s = api->GetValueCount(value, &count);
    }
    nori_status status = nori__ort_check(api, s, NORI_ERROR_DATA, err);
    if (status == NORI_OK && !has) {
        status = nori_tensor_group(NULL, NORI_KIND_OPTIONAL, NULL, 0, 0, NULL, tensor, err);
    } else if (status == NORI_OK && (type == ORT_SEQUENCE || type == ORT_MAP)) {
        status = group_out(self, value, type == ORT_MAP ? NORI_KIND_MAP : NORI_KIND_SEQUENCE, count,
                           tensor, err);
    } else if (status == NORI_OK) {
        status = nori__fail(err, NORI_ERROR_UNSUPPORTED,
                            "ONNX Runtime gave an output of kind %d, a tensor, sequence or map was "
                            "expected",
                            type);
    }
    api->ReleaseValue(value);
    return status;
}

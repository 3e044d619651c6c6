/* tensor.c: creation, sharing and reading of tensors. */
#include "base/given.h"
#include "graph/internal.h"
#include "platform/env.h"

/* Of the data of a tensor that are not memory of their own: two pieces for a bias of eight channels
 * cost more than anything else that loading does with it. */
#define INSIDE_MOST ((size_t)128)

/* nori_tensor.owned */
enum {
    BORROWED, /* data belongs to somebody else; release, if set, is called once */
    OWNED,    /* data came from allocator, bytes long */
    INSIDE,   /* data lies behind the header, in one piece of memory with it */
    STRINGS,  /* OWNED, and each nori_string's bytes came from allocator */
    ITEMS,    /* OWNED array of nori_tensor *, each retained */
    LOOSE     /* as in the file; data, once there are some, came from allocator */
};

bool nori__type_bytes(nori_type type, int64_t count, size_t *bytes)
{
    if (count < 0 || (uint64_t)count > SIZE_MAX / 2) {
        return false;
    }
    if (type == NORI_STRING) {
        return nori__mul_size((size_t)count, sizeof(nori_string), bytes);
    }
    unsigned bits = nori_type_bits(type);
    if (bits == 0) {
        return false;
    }
    if (bits < 8) {
        size_t per = 8 / bits;
        *bytes = (size_t)count / per + ((size_t)count % per != 0);
        return true;
    }
    return nori__mul_size((size_t)count, bits / 8, bytes) && *bytes <= SIZE_MAX / 2;
}

bool nori__dims_count(int rank, const int64_t *dims, int64_t *count)
{
    int64_t n = 1;
    bool empty = false, fits = true;
    for (int d = 0; d < rank; d++) {
        if (dims[d] < 0) {
            return false;
        }
        empty = empty || dims[d] == 0;
        fits = fits && nori__mul_dim(n, dims[d], &n);
    }
    *count = empty ? 0 : n;
    return empty || fits;
}

bool nori__tensor_reshape(nori_tensor *t, nori_type type, int rank, const int64_t *dims)
{
    int64_t count;
    size_t bytes;
    if (rank < 0 || rank > NORI_MAX_RANK || !nori__dims_count(rank, dims, &count) ||
        !nori__type_bytes(type, count, &bytes)) {
        return false;
    }
    if (rank > 0) {
        memmove(t->dims, dims, (size_t)rank * sizeof(int64_t));
    }
    t->type = (uint8_t)type;
    t->rank = (uint8_t)rank;
    t->count = count;
    t->bytes = bytes;
    return true;
}

void nori__tensor_init(nori_tensor *t, nori_type type, int rank, const int64_t *dims, void *data)
{
    atomic_init(&t->refs, 1);
    t->kind = NORI_KIND_TENSOR;
    t->owned = BORROWED;
    t->data = data;
    t->allocator = NULL; /* says: a header in somebody's storage, cannot be retained */
    t->release = NULL;
    t->user = NULL;
    atomic_init(&t->loose, 0);
    nori__tensor_reshape(t, type, rank, dims);
}

/* Of a header whose rank never changes: models have many, of few dimensions. */
static size_t short_header(int rank)
{
    return (offsetof(nori_tensor, dims) + (size_t)rank * sizeof(int64_t) + 15) & ~(size_t)15;
}

/* What was taken for t and the data inside. */
static size_t header_bytes(const nori_tensor *t)
{
    bool is_short = t->owned == BORROWED || t->owned == INSIDE || t->owned == LOOSE;
    return (is_short ? short_header(t->rank) : sizeof(*t)) + (t->owned == INSIDE ? t->bytes : 0);
}

/* owned: how its data will be; INSIDE becomes OWNED where they are too many. */
static nori_status new_header(const nori_allocator *a, nori_type type, int rank,
                              const int64_t *dims, int owned, nori_tensor **tensor,
                              nori_error *err)
{
    *tensor = NULL;
    if (rank < 0 || rank > NORI_MAX_RANK) {
        return nori__fail(err, NORI_ERROR_LIMIT, "rank %d, at most %d is taken", rank,
                          NORI_MAX_RANK);
    }
    if ((size_t)type >= NORI_TYPE_COUNT || type == NORI_UNDEFINED) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "element type %d does not exist", (int)type);
    }
    if (rank > 0 && !dims) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "rank %d without dims", rank);
    }
    for (int d = 0; d < rank; d++) {
        if (dims[d] < 0) {
            return nori__fail(err, NORI_ERROR_ARGUMENT, "size %lld of axis %d is negative",
                              (long long)dims[d], d);
        }
    }
    int64_t count;
    size_t bytes;
    if (!nori__dims_count(rank, dims, &count) || !nori__type_bytes(type, count, &bytes)) {
        return nori__fail(err, NORI_ERROR_LIMIT, "the shape needs more memory than exists");
    }
    if (owned == INSIDE && (bytes == 0 || bytes > INSIDE_MOST || type == NORI_STRING)) {
        owned = OWNED;
    }
    owned = owned == OWNED && type == NORI_STRING ? STRINGS : owned;
    bool full = owned == OWNED || owned == STRINGS; /* may be reshaped */
    size_t head = full ? sizeof(nori_tensor) : short_header(rank);
    nori_tensor *t = a->alloc(a->user, owned == INSIDE ? head + bytes : head, 16);
    if (!t) {
        return nori__no_memory(err);
    }
    nori__tensor_init(t, type, rank, dims, owned == INSIDE ? (char *)t + head : NULL);
    t->owned = (uint8_t)owned;
    t->depth = 0;
    t->allocator = a;
    *tensor = t;
    return NORI_OK;
}

static nori_status new_tensor(const nori_allocator *a, nori_type type, int rank,
                              const int64_t *dims, bool inside, nori_tensor **tensor,
                              nori_error *err)
{
    NORI__TRY(new_header(a, type, rank, dims, inside ? INSIDE : OWNED, tensor, err));
    nori_tensor *t = *tensor;
    if (t->bytes > 0 && !t->data) {
        t->data = type == NORI_STRING ? nori__alloc_zero(a, t->bytes) : nori__alloc(a, t->bytes);
        if (!t->data) {
            nori__release(a, t, sizeof(*t));
            *tensor = NULL;
            return nori__no_memory(err);
        }
    }
    nori__tensor_clear_rest(t);
    return NORI_OK;
}

nori_status nori__tensor_new(const nori_allocator *a, nori_type type, int rank,
                             const int64_t *dims, nori_tensor **tensor, nori_error *err)
{
    return new_tensor(a, type, rank, dims, false, tensor, err);
}

nori_status nori__tensor_new_near(const nori_allocator *a, nori_type type, int rank,
                                  const int64_t *dims, nori_tensor **tensor, nori_error *err)
{
    return new_tensor(a, type, rank, dims, true, tensor, err);
}

void nori__tensor_clear_rest(nori_tensor *t)
{
    unsigned bits = nori_type_bits((nori_type)t->type);
    if (bits == 0 || bits >= 8 || t->kind != NORI_KIND_TENSOR || t->bytes == 0) {
        return;
    }
    unsigned used = (unsigned)((uint64_t)t->count % (8 / bits)) * bits;
    if (used > 0) {
        ((uint8_t *)t->data)[t->bytes - 1] &= (uint8_t)((1u << used) - 1);
    }
}

nori_status nori__tensor_view(const nori_allocator *a, nori_type type, int rank,
                              const int64_t *dims, const void *data, nori_tensor **tensor,
                              nori_error *err)
{
    NORI__TRY(new_header(a, type, rank, dims, BORROWED, tensor, err));
    (*tensor)->data = (*tensor)->bytes > 0 ? (void *)(uintptr_t)data : NULL; /* only read */
    return NORI_OK;
}

nori_status nori__tensor_loose(const nori_allocator *a, nori_type type, int rank,
                               const int64_t *dims, const void *bytes, nori_tensor **tensor,
                               nori_error *err)
{
    NORI__TRY(new_header(a, type, rank, dims, LOOSE, tensor, err));
    (*tensor)->user = (void *)(uintptr_t)bytes; /* only read */
    atomic_init(&(*tensor)->loose, NORI__LOOSE);
    return NORI_OK;
}

nori_status nori__tensor_set_string(nori_tensor *t, int64_t index, const char *data, size_t size,
                                    nori_error *err)
{
    nori_string *s = (nori_string *)t->data + index;
    char *copy = NULL;
    size_t bytes;
    /* Of bytes: aligned as other memory is, each short text would fill a cache line. */
    if (!nori__add_size(size, 1, &bytes) || !(copy = t->allocator->alloc(t->allocator->user, bytes, 1))) {
        return nori__no_memory(err);
    }
    if (size > 0) {
        memcpy(copy, data, size);
    }
    copy[size] = 0;
    if (s->data) {
        nori__release(t->allocator, (void *)(uintptr_t)s->data, s->size + 1);
    }
    *s = (nori_string){copy, size};
    return NORI_OK;
}

/* ---- the public functions ---- */

nori_status nori_tensor_create(nori_env *env, nori_type type, int rank, const int64_t *dims,
                               nori_tensor **tensor, nori_error *err)
{
    NORI__GIVEN(err, tensor);
    NORI__TRY(nori__tensor_new(nori__env_allocator(env), type, rank, dims, tensor, err));
    if ((*tensor)->bytes > 0) {
        memset((*tensor)->data, 0, (*tensor)->bytes);
    }
    return NORI_OK;
}

nori_status nori_tensor_wrap(nori_env *env, nori_type type, int rank, const int64_t *dims,
                             void *data, size_t size, void (*release)(void *user, void *data),
                             void *user, nori_tensor **tensor, nori_error *err)
{
    NORI__GIVEN(err, tensor);
    *tensor = NULL;
    if (type == NORI_STRING) {
        return nori__fail(err, NORI_ERROR_ARGUMENT,
                          "string tensors cannot be wrapped; use nori_tensor_strings");
    }
    NORI__TRY(new_header(nori__env_allocator(env), type, rank, dims, BORROWED, tensor, err));
    nori_tensor *t = *tensor;
    if (t->bytes != size || (!data && size > 0)) {
        nori__fail(err, NORI_ERROR_ARGUMENT, "%zu bytes were given%s, type and shape need %zu",
                   size, data ? "" : " at NULL", t->bytes);
        nori__release(t->allocator, t, header_bytes(t));
        *tensor = NULL;
        return NORI_ERROR_ARGUMENT;
    }
    unsigned bits = nori_type_bits(type), align = bits > 64 ? 8 : bits / 8;
    if (align > 1 && (uintptr_t)data % align != 0) {
        nori__release(t->allocator, t, header_bytes(t));
        *tensor = NULL;
        return nori__fail(err, NORI_ERROR_ARGUMENT,
                          "the data are not aligned to the %u bytes of a %s", align,
                          nori_type_name(type));
    }
    t->data = data;
    t->release = release;
    t->user = user;
    return NORI_OK;
}

nori_status nori_tensor_strings(nori_env *env, int rank, const int64_t *dims,
                                const nori_string *strings, size_t count, nori_tensor **tensor,
                                nori_error *err)
{
    NORI__GIVEN(err, tensor);
    NORI__GIVEN_LIST(err, strings, count);
    NORI__TRY(nori__tensor_new(nori__env_allocator(env), NORI_STRING, rank, dims, tensor, err));
    nori_status status = NORI_OK;
    if ((uint64_t)(*tensor)->count != count) {
        status = nori__fail(err, NORI_ERROR_ARGUMENT, "%zu strings were given, the shape needs %lld",
                            count, (long long)(*tensor)->count);
    }
    for (size_t i = 0; status == NORI_OK && i < count; i++) {
        status = nori__tensor_set_string(*tensor, (int64_t)i, strings[i].data, strings[i].size, err);
    }
    if (status != NORI_OK) {
        nori_tensor_free(*tensor);
        *tensor = NULL;
    }
    return status;
}

nori_status nori__tensor_group(const nori_allocator *a, nori_kind kind, nori_tensor *const *items,
                               size_t count, nori_tensor **tensor, nori_error *err)
{
    *tensor = NULL;
    nori_tensor *t = a->alloc(a->user, sizeof(*t), _Alignof(max_align_t));
    if (!t) {
        return nori__no_memory(err);
    }
    memset(t, 0, sizeof(*t));
    atomic_init(&t->refs, 1);
    t->kind = (uint8_t)kind;
    t->allocator = a;
    t->owned = ITEMS;
    t->count = (int64_t)count;
    t->depth = 1;
    for (size_t i = 0; i < count; i++) {
        t->depth = items[i]->depth >= t->depth ? (uint8_t)(items[i]->depth + 1) : t->depth;
    }
    if (t->depth > NORI__PB_MAX_NESTING) { /* freeing recurses; no type nests deeper */
        nori__release(a, t, sizeof(*t));
        return nori__fail(err, NORI_ERROR_LIMIT, "values are nested more than %d deep",
                          NORI__PB_MAX_NESTING);
    }
    if (!nori__mul_size(count, sizeof(void *), &t->bytes) ||
        !(t->data = nori__alloc(a, t->bytes))) {
        nori__release(a, t, sizeof(*t));
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        ((nori_tensor **)t->data)[i] = nori_tensor_retain(items[i]);
    }
    *tensor = t;
    return NORI_OK;
}

nori_status nori_tensor_group(nori_env *env, nori_kind kind, nori_tensor *const *items,
                              size_t count, int rank, const int64_t *dims, nori_tensor **tensor,
                              nori_error *err)
{
    NORI__GIVEN(err, tensor);
    NORI__GIVEN_LIST(err, items, count);
    *tensor = NULL;
    bool pair = kind == NORI_KIND_MAP || kind == NORI_KIND_SPARSE;
    if (kind <= NORI_KIND_TENSOR || kind > NORI_KIND_SPARSE || (pair && count != 2) ||
        (kind == NORI_KIND_OPTIONAL && count > 1) || rank < 0 || rank > NORI_MAX_RANK) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "a group of kind %d cannot have %zu items",
                          (int)kind, count);
    }
    if ((count > 0 && !items) || (rank > 0 && !dims)) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "%s is NULL",
                          rank > 0 && !dims ? "dims" : "items");
    }
    for (size_t i = 0; i < count; i++) {
        if (!items[i]) {
            return nori__fail(err, NORI_ERROR_ARGUMENT, "item %zu of the group is NULL", i);
        }
    }
    NORI__TRY(nori__tensor_group(nori__env_allocator(env), kind, items, count, tensor, err));
    (*tensor)->rank = (uint8_t)rank;
    for (int d = 0; d < rank; d++) {
        (*tensor)->dims[d] = dims[d];
    }
    return NORI_OK;
}

nori_tensor *nori_tensor_retain(const nori_tensor *tensor)
{
    nori_tensor *t = (nori_tensor *)(uintptr_t)tensor;
    if (t) {
        atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    }
    return t;
}

void nori_tensor_free(nori_tensor *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1 || !t->allocator) {
        return;
    }
    const nori_allocator *a = t->allocator;
    for (int64_t i = 0; t->owned == STRINGS && i < t->count; i++) {
        nori_string *s = (nori_string *)t->data + i;
        if (s->data) {
            nori__release(a, (void *)(uintptr_t)s->data, s->size + 1);
        }
    }
    /* Recurses as deep as groups nest, which making them limits. */
    for (int64_t i = 0; t->owned == ITEMS && i < t->count; i++) {
        nori_tensor_free(((nori_tensor **)t->data)[i]);
    }
    if (t->owned == BORROWED) {
        if (t->release) {
            t->release(t->user, t->data);
        }
    } else if (t->owned == LOOSE) {
        nori__release(a, t->data, t->data ? t->bytes : 0);
    } else if (t->owned != INSIDE) {
        nori__release(a, t->data, t->bytes);
    }
    nori__release(a, t, header_bytes(t));
}

size_t nori__tensor_footprint(const nori_tensor *t)
{
    size_t bytes = header_bytes(t);
    if (t->owned != BORROWED && t->owned != INSIDE && t->data) { /* as taken: nothing is less than a byte */
        bytes += t->bytes ? t->bytes : 1;
    }
    for (int64_t i = 0; t->owned == STRINGS && i < t->count; i++) {
        const nori_string *s = (const nori_string *)t->data + i;
        bytes += s->data ? s->size + 1 : 0;
    }
    return bytes;
}

nori_kind nori_tensor_kind(const nori_tensor *t)
{
    NORI__ASKED(t, NORI_KIND_UNKNOWN);
    return (nori_kind)t->kind;
}

nori_type nori_tensor_type(const nori_tensor *t)
{
    NORI__ASKED(t, NORI_UNDEFINED);
    return (nori_type)t->type;
}

int nori_tensor_rank(const nori_tensor *t)
{
    NORI__ASKED(t, 0);
    return t->rank;
}

const int64_t *nori_tensor_dims(const nori_tensor *t)
{
    NORI__ASKED(t, NULL);
    return t->dims;
}

int64_t nori_tensor_elements(const nori_tensor *t)
{
    NORI__ASKED(t, 0);
    return t->kind == NORI_KIND_TENSOR ? t->count : 0;
}

size_t nori_tensor_bytes(const nori_tensor *t)
{
    NORI__ASKED(t, 0);
    return t->kind == NORI_KIND_TENSOR ? t->bytes : 0;
}

void *nori_tensor_data(nori_tensor *t)
{
    NORI__ASKED(t, NULL);
    return t->kind == NORI_KIND_TENSOR && nori__tensor_settle(t) ? t->data : NULL;
}

const void *nori_tensor_const_data(const nori_tensor *t)
{
    NORI__ASKED(t, NULL);
    return t->kind == NORI_KIND_TENSOR && nori__tensor_settle(t) ? t->data : NULL;
}

size_t nori_tensor_item_count(const nori_tensor *t)
{
    NORI__ASKED(t, 0);
    return t->kind == NORI_KIND_TENSOR ? 0 : (size_t)t->count;
}

nori_tensor *nori_tensor_item(const nori_tensor *t, size_t index)
{
    NORI__ASKED(t, NULL);
    return index < nori_tensor_item_count(t) ? ((nori_tensor **)t->data)[index] : NULL;
}

nori_status nori__tensor_copy(const nori_allocator *a, const nori_tensor *from,
                              nori_tensor **tensor, nori_error *err)
{
    if (from->kind != NORI_KIND_TENSOR) { /* items are immutable once grouped: shared */
        NORI__TRY(nori__tensor_group(a, (nori_kind)from->kind, from->data, (size_t)from->count, tensor, err));
        (*tensor)->rank = from->rank;
        memcpy((*tensor)->dims, from->dims, sizeof(from->dims));
        return NORI_OK;
    }
    NORI__TRY(nori__tensor_new(a, from->type, from->rank, from->dims, tensor, err));
    if (from->type != NORI_STRING) {
        if (from->bytes > 0) {
            memcpy((*tensor)->data, nori__tensor_at(from), from->bytes);
        }
        return NORI_OK;
    }
    for (int64_t i = 0; i < from->count; i++) {
        const nori_string *s = (const nori_string *)from->data + i;
        nori_status status = nori__tensor_set_string(*tensor, i, s->data, s->size, err);
        if (status != NORI_OK) {
            nori_tensor_free(*tensor);
            *tensor = NULL;
            return status;
        }
    }
    return NORI_OK;
}

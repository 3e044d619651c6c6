/* tensor_file.c: values from and to files: .npy, TensorProto and its groups, gzipped or not. */
#include <math.h>

#include "base/given.h"
#include "nori/tools.h"
#include "onnx/model_limits.h"
#include "platform/env_limits.h"
#include "tools/files/group_file.h"
#include "tools/files/npy.h"

#ifdef NORI_WITH_ZLIB
#include <zlib.h>

/* most: bytes it may unfold to; 0: any. */
static nori_status gunzip(const uint8_t *data, size_t size, uint64_t most, nori__text *out,
                          nori_error *err)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)size};
    if (size > UINT32_MAX || inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) {
        return nori__fail(err, NORI_ERROR_FORMAT, "the gzip data cannot be read");
    }
    int code = Z_OK;
    char buffer[16384];
    while (code == Z_OK && (most == 0 || out->size <= most) && !out->failed) {
        z.next_out = (Bytef *)buffer;
        z.avail_out = sizeof(buffer);
        code = inflate(&z, Z_NO_FLUSH);
        nori__text_add(out, buffer, sizeof(buffer) - z.avail_out);
    }
    inflateEnd(&z);
    if (out->failed) {
        return nori__no_memory(err);
    }
    if (most > 0 && out->size > most) {
        return nori__past_limit(err, "bytes the gzip data unfold to", out->size, most,
                                "unfolded_bytes", "unfolded");
    }
    return code == Z_STREAM_END ? NORI_OK
                                : nori__fail(err, NORI_ERROR_FORMAT, "the gzip data are damaged");
}
#else
static nori_status gunzip(const uint8_t *data, size_t size, uint64_t most, nori__text *out,
                          nori_error *err)
{
    (void)data;
    (void)size;
    (void)most;
    (void)out;
    nori_status s = nori__fail(err, NORI_ERROR_UNSUPPORTED,
                               "the file is gzipped, and this nori was built without zlib");
    nori__hint(err, "unpack it first, with gunzip");
    return s;
}
#endif

static nori_status read_pb(const nori_allocator *a, const uint8_t *data, size_t size,
                           nori_tensor **tensor, nori_error *err)
{
    nori__arena arena;
    nori__arena_init(&arena, a);
    nori__pb_tensor *pb = NULL;
    nori_tensor *view = NULL;
    nori_status s = nori__pb_read_tensor(&arena, data, size, &pb, err);
    if (s == NORI_OK && pb->data_type == 0) {
        s = nori__fail(err, NORI_ERROR_FORMAT, "the file is not a TensorProto (it has no data type)");
        nori__hint(err, "an .npy file or a serialized TensorProto was expected");
    }
    if (s == NORI_OK) {
        s = nori__tensor_from_pb(a, pb, NULL, &view, err);
    }
    if (s == NORI_OK) { /* the view may point into the file, which goes away */
        s = nori__tensor_copy(a, view, tensor, err);
    }
    nori_tensor_free(view);
    nori__arena_free(&arena);
    return s;
}

/* The bytes of a whole file, unpacked, to a value. An empty file is an empty group. */
static nori_status from_bytes(const nori_allocator *a, const uint8_t *data, size_t size,
                              nori_kind kind, nori_tensor **value, nori_error *err)
{
    bool group = kind == NORI_KIND_SEQUENCE || kind == NORI_KIND_OPTIONAL || kind == NORI_KIND_MAP;
    if (group && !nori__is_npy(data, size)) {
        return nori__group_read(a, data, size, kind, value, err);
    }
    if (size == 0) {
        return nori__fail(err, NORI_ERROR_FORMAT, "the file is empty");
    }
    if (!nori__is_npy(data, size)) {
        return read_pb(a, data, size, value, err);
    }
    nori_tensor *tensor = NULL;
    NORI__TRY(nori__npy_read(a, data, size, &tensor, err));
    if (kind != NORI_KIND_OPTIONAL) {
        *value = tensor;
        return NORI_OK;
    }
    nori_status s = nori__tensor_group(a, kind, &tensor, 1, value, err);
    nori_tensor_free(tensor);
    return s;
}

nori_status nori_tensor_read(nori_env *env, const char *path, nori_tensor **tensor, nori_error *err)
{
    return nori_value_read(env, path, NORI_KIND_TENSOR, tensor, err);
}

nori_status nori_value_read(nori_env *env, const char *path, nori_kind kind, nori_tensor **value,
                            nori_error *err)
{
    NORI__GIVEN(err, path);
    NORI__GIVEN(err, value);
    const nori_allocator *a = nori__env_allocator(env);
    *value = NULL;
    nori__map_file file;
    NORI__TRY(nori__map_open(path, &file, err));
    const uint8_t *data = file.data;
    size_t size = file.size;
    nori__text inflated;
    nori__text_init(&inflated, a);
    nori_status s = NORI_OK;
    if (size >= 2 && data[0] == 0x1f && data[1] == 0x8b) {
        s = gunzip(data, size, nori__env_limits(env)->unfolded_bytes, &inflated, err);
        data = (const uint8_t *)inflated.data;
        size = inflated.size;
    }
    if (s == NORI_OK) {
        s = from_bytes(a, data, size, kind, value, err);
    }
    if (s != NORI_OK) {
        nori__where(err, "%s", path);
    }
    nori__text_free(&inflated);
    nori__map_close(&file);
    return s;
}

nori_status nori_tensor_read_rows(nori_env *env, const char *path, int64_t first, int64_t count,
                                  nori_tensor **tensor, int64_t *rows, nori_error *err)
{
    NORI__GIVEN(err, path);
    NORI__GIVEN(err, tensor);
    NORI__GIVEN(err, rows);
    nori__map_file file;
    *tensor = NULL;
    *rows = 0;
    NORI__TRY(nori__map_open(path, &file, err));
    nori_status s =
        nori__is_npy(file.data, file.size)
            ? nori__npy_rows(nori__env_allocator(env), file.data, file.size, first, count, tensor,
                             rows, err)
            : nori__fail(err, NORI_ERROR_UNSUPPORTED, "only .npy files can be read by rows");
    nori__map_close(&file);
    if (s != NORI_OK) {
        nori__where(err, "%s", path);
    }
    return s;
}

nori_status nori_file_write(const char *path, const void *data, size_t size, nori_error *err)
{
    NORI__GIVEN(err, path);
    NORI__GIVEN_LIST(err, data, size);
    nori__out_file *out = NULL;
    NORI__TRY(nori__out_open(&nori__malloc, path, &out, err));
    nori_status s = nori__out_write(out, data, size, err);
    if (s != NORI_OK) {
        nori__out_abort(out);
        return s;
    }
    return nori__out_commit(out, err);
}

nori_status nori_tensor_write(const nori_tensor *t, const char *path, nori_error *err)
{
    NORI__GIVEN(err, t);
    NORI__GIVEN(err, path);
    size_t n = strlen(path);
    nori__text text;
    nori__text_init(&text, &nori__malloc);
    nori_status s;
    if (n > 4 && nori__same(path + n - 4, ".npy")) {
        s = nori__npy_write(t, &text, err);
    } else if (n > 3 && nori__same(path + n - 3, ".pb")) {
        s = nori__value_write(t, &text, err);
    } else {
        s = nori__fail(err, NORI_ERROR_ARGUMENT, "%s: the name must end in .npy or .pb", path);
    }
    if (s == NORI_OK) {
        s = nori_file_write(path, text.data, text.size, err);
    }
    nori__text_free(&text);
    return s;
}

double nori_tensor_number(const nori_tensor *t, int64_t index)
{
    NORI__ASKED(t, 0.0);
    return t->type == NORI_STRING ? (double)NAN : nori__tensor_get_f64(t, index);
}

int64_t nori_tensor_integer(const nori_tensor *t, int64_t index)
{
    NORI__ASKED(t, 0);
    return t->type == NORI_STRING ? 0 : nori__tensor_get_i64(t, index);
}

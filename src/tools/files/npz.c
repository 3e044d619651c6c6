/* npz.c: NumPy's archives of arrays: a ZIP of .npy entries, one an array. */
#include "base/given.h"
#include "nori/tools.h"
#include "onnx/model_limits.h"
#include "platform/env_limits.h"
#include "tools/files/npy.h"
#include "tools/files/zip.h"

typedef struct array {
    nori_value_info info;
    nori__zip_entry entry;
    nori_tensor *tensor; /* NULL: not read yet */
} array;

struct nori_archive {
    const nori_allocator *allocator;
    nori__arena arena;
    nori__map_file file;
    const char *path;
    uint64_t most; /* bytes one array may unfold to; 0: any */
    array *arrays;
    size_t count;
};

/* Length of the array's name, or 0: the entry is no array. */
static size_t array_name(nori__str name)
{
    return name.n > 4 && memcmp(name.p + name.n - 4, ".npy", 4) == 0 ? name.n - 4 : 0;
}

/* Type and shape, from the first bytes alone. */
static nori_status read_info(nori__arena *arena, array *x, nori_error *err)
{
    uint8_t begin[NORI__NPY_HEAD_MAX];
    size_t n = sizeof(begin);
    nori__npy_head head;
    NORI__TRY(nori__zip_begin_of(&x->entry, begin, &n, err));
    if (!nori__is_npy(begin, n)) {
        return nori__fail(err, NORI_ERROR_FORMAT, "the entry is no .npy file");
    }
    NORI__TRY(nori__npy_head_read(begin, n, x->entry.size, &head, err));
    size_t rank = (size_t)head.rank;
    int64_t *dims = nori__arena_array(arena, rank + 1, sizeof(*dims));
    const char **names = nori__arena_array(arena, rank + 1, sizeof(*names));
    if (!dims || !names) {
        return nori__no_memory(err);
    }
    memcpy(dims, head.dims, rank * sizeof(*dims));
    x->info = (nori_value_info){.name = x->info.name, .kind = NORI_KIND_TENSOR, .type = head.type,
                                .rank = head.rank, .dims = dims, .dim_names = names};
    return NORI_OK;
}

static nori_status read_directory(nori_archive *archive, nori_error *err)
{
    nori__zip zip;
    nori__arena *arena = &archive->arena;
    if (!nori__is_zip(archive->file.data, archive->file.size)) {
        return nori__fail(err, NORI_ERROR_FORMAT, "the file is no .npz archive");
    }
    NORI__TRY(nori__zip_read(arena, archive->file.data, archive->file.size, &zip, err));
    archive->arrays = nori__arena_array(arena, zip.count + 1, sizeof(*archive->arrays));
    if (!archive->arrays) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < zip.count; i++) {
        array *x = &archive->arrays[archive->count];
        size_t n = array_name(zip.entries[i].name);
        if (n == 0) {
            continue;
        }
        *x = (array){.entry = zip.entries[i]};
        x->info.name = nori__arena_copy(arena, zip.entries[i].name.p, n);
        nori_status s = x->info.name ? read_info(arena, x, err) : nori__no_memory(err);
        if (s != NORI_OK) {
            nori__where(err, "array %.100s", x->info.name ? x->info.name : "");
            return s;
        }
        archive->count++;
    }
    return NORI_OK;
}

static nori_status read_array(const nori_archive *archive, const array *x, nori_tensor **tensor,
                              nori_error *err)
{
    const uint8_t *data;
    size_t size;
    void *owned;
    if (x->entry.deflated && archive->most > 0 && x->entry.size > archive->most) {
        nori__past_limit(err, "bytes an array of the archive unfolds to", x->entry.size, archive->most,
                         "unfolded_bytes", "unfolded");
        nori__where(err, "array %.100s", x->info.name);
        nori__where(err, "%s", archive->path);
        return NORI_ERROR_LIMIT;
    }
    nori_status s = nori__zip_content(archive->allocator, &x->entry, &data, &size, &owned, err);
    if (s == NORI_OK) {
        s = nori__npy_read(archive->allocator, data, size, tensor, err);
    }
    nori__release(archive->allocator, owned, size);
    if (s != NORI_OK) {
        nori__where(err, "array %.100s", x->info.name);
        nori__where(err, "%s", archive->path);
    }
    return s;
}

nori_status nori_archive_open(nori_env *env, const char *path, nori_archive **archive,
                              nori_error *err)
{
    NORI__GIVEN(err, path);
    NORI__GIVEN(err, archive);
    const nori_allocator *a = nori__env_allocator(env);
    *archive = NULL;
    nori_archive *r = nori__alloc_zero(a, sizeof(*r));
    if (!r) {
        return nori__no_memory(err);
    }
    r->allocator = a;
    r->most = nori__env_limits(env)->unfolded_bytes;
    nori__arena_init(&r->arena, a);
    r->path = nori__arena_copy(&r->arena, path, strlen(path));
    nori_status s = r->path ? nori__map_open(path, &r->file, err) : nori__no_memory(err);
    if (s == NORI_OK && (s = read_directory(r, err)) != NORI_OK) {
        nori__where(err, "%s", path);
    }
    if (s != NORI_OK) {
        nori_archive_free(r);
        return s;
    }
    *archive = r;
    return NORI_OK;
}

nori_status nori_archive_read(nori_env *env, const char *path, nori_archive **archive,
                              nori_error *err)
{
    NORI__TRY(nori_archive_open(env, path, archive, err));
    nori_archive *r = *archive;
    for (size_t i = 0; i < r->count; i++) {
        nori_status s = read_array(r, &r->arrays[i], &r->arrays[i].tensor, err);
        if (s != NORI_OK) {
            nori_archive_free(r);
            *archive = NULL;
            return s;
        }
    }
    return NORI_OK;
}

nori_status nori_archive_load(const nori_archive *archive, size_t index, nori_tensor **tensor,
                              nori_error *err)
{
    NORI__GIVEN(err, archive);
    NORI__GIVEN(err, tensor);
    *tensor = NULL;
    if (index >= archive->count) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "array %zu was asked for, the archive has %zu",
                          index, archive->count);
    }
    const array *x = &archive->arrays[index];
    if (x->tensor) {
        *tensor = nori_tensor_retain(x->tensor);
        return NORI_OK;
    }
    return read_array(archive, x, tensor, err);
}

void nori_archive_free(nori_archive *archive)
{
    if (!archive) {
        return;
    }
    for (size_t i = 0; i < archive->count; i++) {
        nori_tensor_free(archive->arrays[i].tensor);
    }
    nori__map_close(&archive->file);
    nori__arena_free(&archive->arena);
    nori__release(archive->allocator, archive, sizeof(*archive));
}

size_t nori_archive_count(const nori_archive *archive)
{
    return archive ? archive->count : 0;
}

const nori_value_info *nori_archive_info(const nori_archive *archive, size_t index)
{
    NORI__ASKED(archive, NULL);
    return archive && index < archive->count ? &archive->arrays[index].info : NULL;
}

const char *nori_archive_name(const nori_archive *archive, size_t index)
{
    NORI__ASKED(archive, NULL);
    const nori_value_info *info = nori_archive_info(archive, index);
    return info ? info->name : NULL;
}

nori_tensor *nori_archive_tensor(const nori_archive *archive, size_t index)
{
    NORI__ASKED(archive, NULL);
    return archive && index < archive->count ? archive->arrays[index].tensor : NULL;
}

static nori_status write_array(nori__zip_writer *w, const char *name, const nori_tensor *t,
                               nori_error *err)
{
    nori__text npy, entry;
    nori__text_init(&npy, &nori__malloc);
    nori__text_init(&entry, &nori__malloc);
    nori__text_add(&entry, name, strlen(name));
    nori__text_add(&entry, ".npy", 5); /* its end too */
    nori_status s = entry.failed ? nori__no_memory(err) : nori__npy_write(t, &npy, err);
    if (s == NORI_OK) {
        s = nori__zip_add(w, entry.data, npy.data, npy.size, err);
    }
    if (s != NORI_OK) {
        nori__where(err, "array %.100s", name);
    }
    nori__text_free(&npy);
    nori__text_free(&entry);
    return s;
}

nori_status nori_archive_write(const char *path, const char *const *names,
                               const nori_tensor *const *tensors, size_t count, nori_error *err)
{
    NORI__GIVEN(err, path);
    NORI__GIVEN_LIST(err, names, count);
    NORI__GIVEN_LIST(err, tensors, count);
    nori__text text;
    nori__zip_writer w;
    nori__text_init(&text, &nori__malloc);
    nori__zip_begin(&w, &nori__malloc, &text);
    nori_status s = NORI_OK;
    for (size_t i = 0; s == NORI_OK && i < count; i++) {
        s = write_array(&w, names[i], tensors[i], err);
    }
    nori_status end = nori__zip_end(&w, err);
    s = s == NORI_OK ? end : s;
    if (s == NORI_OK) {
        s = nori_file_write(path, text.data, text.size, err);
    }
    nori__text_free(&text);
    return s;
}

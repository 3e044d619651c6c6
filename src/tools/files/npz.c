/* npz.c: NumPy's archives of arrays: a ZIP of .npy entries, one an array. */
#include "base/given.h"
#include "nori/tools.h"
#include "platform/env.h"
#include "tools/files/npy.h"
#include "tools/files/zip.h"

struct nori_archive {
    const nori_allocator *allocator;
    nori__arena arena;
    char **names;
    nori_tensor **tensors;
    size_t count;
};

/* Length of the array's name, or 0: the entry is no array. */
static size_t array_name(nori__str name)
{
    return name.n > 4 && memcmp(name.p + name.n - 4, ".npy", 4) == 0 ? name.n - 4 : 0;
}

static nori_status read_array(nori_archive *archive, const nori__zip_entry *e, nori_error *err)
{
    const uint8_t *data;
    size_t size, n = array_name(e->name);
    void *owned;
    if (n == 0) {
        return NORI_OK;
    }
    char *name = nori__arena_copy(&archive->arena, e->name.p, n);
    if (!name) {
        return nori__no_memory(err);
    }
    nori_status s = nori__zip_content(archive->allocator, e, &data, &size, &owned, err);
    if (s == NORI_OK && !nori__is_npy(data, size)) {
        s = nori__fail(err, NORI_ERROR_FORMAT, "the entry is no .npy file");
    }
    if (s == NORI_OK) {
        s = nori__npy_read(archive->allocator, data, size, &archive->tensors[archive->count], err);
    }
    nori__release(archive->allocator, owned, size);
    if (s != NORI_OK) {
        nori__where(err, "array %.100s", name);
        return s;
    }
    archive->names[archive->count++] = name;
    return NORI_OK;
}

static nori_status read_all(nori_archive *archive, const uint8_t *data, size_t size,
                            nori_error *err)
{
    nori__zip zip;
    if (!nori__is_zip(data, size)) {
        return nori__fail(err, NORI_ERROR_FORMAT, "the file is no .npz archive");
    }
    NORI__TRY(nori__zip_read(&archive->arena, data, size, &zip, err));
    archive->names = nori__arena_array(&archive->arena, zip.count + 1, sizeof(*archive->names));
    archive->tensors = nori__arena_array(&archive->arena, zip.count + 1,
                                         sizeof(*archive->tensors));
    if (!archive->names || !archive->tensors) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < zip.count; i++) {
        NORI__TRY(read_array(archive, &zip.entries[i], err));
    }
    return NORI_OK;
}

nori_status nori_archive_read(nori_env *env, const char *path, nori_archive **archive,
                              nori_error *err)
{
    NORI__GIVEN(err, path);
    NORI__GIVEN(err, archive);
    const nori_allocator *a = nori__env_allocator(env);
    *archive = NULL;
    nori__map_file file;
    NORI__TRY(nori__map_open(path, &file, err));
    nori_archive *r = nori__alloc_zero(a, sizeof(*r));
    nori_status s = r ? NORI_OK : nori__no_memory(err);
    if (r) {
        r->allocator = a;
        nori__arena_init(&r->arena, a);
        s = read_all(r, file.data, file.size, err);
    }
    nori__map_close(&file);
    if (s != NORI_OK) {
        nori__where(err, "%s", path);
        nori_archive_free(r);
        return s;
    }
    *archive = r;
    return NORI_OK;
}

void nori_archive_free(nori_archive *archive)
{
    if (!archive) {
        return;
    }
    for (size_t i = 0; i < archive->count; i++) {
        nori_tensor_free(archive->tensors[i]);
    }
    nori__arena_free(&archive->arena);
    nori__release(archive->allocator, archive, sizeof(*archive));
}

size_t nori_archive_count(const nori_archive *archive)
{
    return archive->count;
}

const char *nori_archive_name(const nori_archive *archive, size_t index)
{
    return index < archive->count ? archive->names[index] : NULL;
}

nori_tensor *nori_archive_tensor(const nori_archive *archive, size_t index)
{
    return index < archive->count ? archive->tensors[index] : NULL;
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

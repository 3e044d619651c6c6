/* external.c: tensor data in files beside the model. Where a path may lead is decided here. */
#include "onnx/onnx.h"
#include "platform/map_holds.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct mapped {
    const char *location;
    const char *real; /* path; NULL: lent */
    nori__map_file file;
    bool of_file;
} mapped;

struct nori__external {
    const nori_allocator *allocator;
    nori__arena arena;
    const char *base;      /* folder the location is relative to */
    const char *real_base; /* its real path */
    const char *real_dir;  /* folder of the model's own real path */
    bool allow_outside, only_lent;
    nori__vec files; /* mapped * */
    nori__map by_location;
    size_t lent;
};

nori_status nori__external_create(const nori_allocator *a, const char *base_dir,
                                  const char *model_real_dir, bool allow_outside,
                                  nori__external **external, nori_error *err)
{
    *external = NULL;
    nori__external *e = nori__alloc_zero(a, sizeof(*e));
    if (!e) {
        return nori__no_memory(err);
    }
    e->allocator = a;
    e->allow_outside = allow_outside;
    nori__arena_init(&e->arena, a);
    nori__vec_init(&e->files, a);
    nori__map_init(&e->by_location, a);
    e->only_lent = !base_dir;
    base_dir = base_dir && base_dir[0] ? base_dir : "."; /* "" before a slash would be the root */
    char *real = realpath(base_dir, NULL);
    e->base = nori__arena_text(&e->arena, base_dir);
    e->real_base = nori__arena_text(&e->arena, real ? real : base_dir);
    e->real_dir = nori__arena_text(&e->arena, model_real_dir ? model_real_dir : "");
    free(real);
    if (!e->base || !e->real_base || !e->real_dir) {
        nori__external_free(e);
        return nori__no_memory(err);
    }
    *external = e;
    return NORI_OK;
}

void nori__external_relax(const nori__external *e)
{
    for (size_t i = 0; e && i < e->files.count; i++) {
        nori__map_relax(&((const mapped *)e->files.items[i])->file);
    }
}

bool nori__external_maps(const nori__external *e, const void *data, size_t size)
{
    bool found = false;
    for (size_t i = 0; e && i < e->files.count && !found; i++) {
        found = nori__map_holds(&((const mapped *)e->files.items[i])->file, data, size);
    }
    return found;
}

void nori__external_free(nori__external *e)
{
    if (!e) {
        return;
    }
    for (size_t i = 0; i < e->files.count; i++) {
        mapped *m = e->files.items[i];
        nori__map_close(&m->file);
    }
    nori__map_free(&e->by_location);
    nori__vec_free(&e->files);
    nori__arena_free(&e->arena);
    nori__release(e->allocator, e, sizeof(*e));
}

/* Why a location is refused before any file is touched; NULL: it may be opened. */
const char *nori__external_bad_location(nori__str s)
{
    if (s.n == 0) {
        return "is empty";
    }
    if (s.n >= PATH_MAX / 2) {
        return "is too long";
    }
    if (memchr(s.p, 0, s.n)) {
        return "contains a NUL byte";
    }
    if (memchr(s.p, '\\', s.n)) {
        return "contains a backslash";
    }
    if (s.p[0] == '/') {
        return "is an absolute path";
    }
    if (s.n >= 2 && s.p[1] == ':') {
        return "names a drive";
    }
    if (s.p[s.n - 1] == '/') {
        return "names a folder";
    }
    size_t start = 0;
    for (size_t i = 0; i <= s.n; i++) {
        if (i == s.n || s.p[i] == '/') {
            nori__str part = {s.p + start, i - start};
            if (nori__str_is(part, "..")) {
                return "contains '..'";
            }
            if (part.n == 0) {
                return "contains '//'";
            }
            start = i + 1;
        }
    }
    return NULL;
}

static bool inside(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    if (n == 0) {
        return false;
    }
    if (nori__same(folder, "/")) {
        return true;
    }
    return strncmp(path, folder, n) == 0 && path[n] == '/';
}

static nori_status open_location(nori__external *e, nori__str location, mapped **out,
                                 nori_error *err)
{
    mapped *m = nori__map_get_n(&e->by_location, location.p, location.n);
    if (m) {
        *out = m;
        return NORI_OK;
    }
    const char *why = nori__external_bad_location(location);
    if (why) {
        nori_status s = nori__fail(err, NORI_ERROR_MODEL,
                                   "external data location \"%.*s\" %s; a path relative to the "
                                   "model's folder was expected",
                                   (int)(location.n < 200 ? location.n : 200),
                                   location.n ? location.p : "", why);
        nori__hint(err, "the file was not opened; do not trust this model, or export it again");
        return s;
    }
    if (e->only_lent) {
        return nori__fail(err, NORI_ERROR_MODEL,
                          "external data location \"%.*s\": this model has all its data in its own file",
                          (int)(location.n < 200 ? location.n : 200), location.p);
    }
    m = nori__arena_alloc(&e->arena, sizeof(*m));
    char *path = nori__arena_printf(&e->arena, "%s/%.*s", e->base, (int)location.n, location.p);
    if (!m || !path || !(m->location = nori__arena_copy(&e->arena, location.p, location.n))) {
        return nori__no_memory(err);
    }
    char *real = realpath(path, NULL);
    if (!real) {
        nori_status s = nori__fail(err, NORI_ERROR_IO, "external data file %s: %s", path,
                                   strerror(errno));
        nori__hint(err, "keep the data file beside the model, under the name the model gives");
        return s;
    }
    if (!e->allow_outside && !inside(real, e->real_base) && !inside(real, e->real_dir)) {
        nori_status s = nori__fail(err, NORI_ERROR_MODEL,
                                   "external data file %s leads to %s, outside the model's folder",
                                   path, real);
        nori__hint(err, "if you trust the model, use --allow-outside (allow_outside in the API)");
        free(real);
        return s;
    }
    /* Where the other names of a file with several are, nobody can tell: an archive may have made one of
     * them here of any file its unpacker could read. */
    struct stat info;
    if (!e->allow_outside && stat(real, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink > 1) {
        nori_status s = nori__fail(err, NORI_ERROR_MODEL,
                                   "external data file %s has %llu names (hard links), some of which may lie "
                                   "outside the model's folder",
                                   path, (unsigned long long)info.st_nlink);
        nori__hint(err, "copy it to a file of its own, or, if you trust the model, use --allow-outside "
                        "(allow_outside in the API)");
        free(real);
        return s;
    }
    nori_status status = nori__map_open(real, &m->file, err);
    m->of_file = true;
    m->real = nori__arena_text(&e->arena, real);
    free(real);
    if (status == NORI_OK && !m->real) {
        nori__map_close(&m->file);
        return nori__no_memory(err);
    }
    if (status == NORI_OK && !nori__vec_push(&e->files, m)) {
        nori__map_close(&m->file);
        status = nori__no_memory(err);
    } else if (status == NORI_OK && !nori__map_put(&e->by_location, m->location, m)) {
        status = nori__no_memory(err); /* files closes it */
    }
    *out = m;
    return status;
}

/* Decimal digits only. */
static bool to_number(nori__str s, uint64_t *out)
{
    uint64_t v = 0;
    if (s.n == 0 || s.n > 20) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        unsigned d = (unsigned)(s.p[i] - '0');
        if (d > 9 || v > (UINT64_MAX - d) / 10) {
            return false;
        }
        v = v * 10 + d;
    }
    *out = v;
    return true;
}

const char *nori__external_lend(nori__external *e, nori__str bytes, bool of_file)
{
    mapped *m = nori__arena_alloc(&e->arena, sizeof(*m));
    /* An absolute path, which no file of a model can have. */
    char *location = nori__arena_printf(&e->arena, "/lent/%zu", e->lent++);
    if (!m || !location) {
        return NULL;
    }
    *m = (mapped){.location = location, .of_file = of_file};
    m->file.data = (const uint8_t *)bytes.p;
    m->file.size = bytes.n;
    return nori__map_put(&e->by_location, location, m) ? location : NULL;
}

bool nori__external_reads(const nori__external *e, const char *path)
{
    char *real = realpath(path, NULL);
    bool found = false;
    for (size_t i = 0; e && real && i < e->files.count; i++) {
        found = found || strcmp(((const mapped *)e->files.items[i])->real, real) == 0;
    }
    free(real);
    return found;
}

nori_status nori__external_view(nori__external *e, const nori__pb_tensor *tensor,
                                uint64_t expected, nori__str *view, nori_error *err)
{
    bool of_file;
    return nori__external_find(e, tensor, expected, view, &of_file, err);
}

nori_status nori__external_find(nori__external *e, const nori__pb_tensor *tensor,
                                uint64_t expected, nori__str *view, bool *of_file, nori_error *err)
{
    nori__str location = {NULL, 0};
    uint64_t offset = 0, length = expected;
    const int name_n = (int)(tensor->name.n < 200 ? tensor->name.n : 200);
    const char *name = tensor->name.n ? tensor->name.p : "";
    for (size_t i = 0; i < tensor->external.count; i++) {
        const nori__pb_entry *entry = &tensor->external.items[i];
        bool ok = true;
        if (nori__str_is(entry->key, "location")) {
            location = entry->value;
        } else if (nori__str_is(entry->key, "offset")) {
            ok = to_number(entry->value, &offset);
        } else if (nori__str_is(entry->key, "length")) {
            ok = to_number(entry->value, &length);
        }
        if (!ok) {
            return nori__fail(err, NORI_ERROR_MODEL,
                              "tensor %.*s: external data %.*s \"%.*s\" is not a number of bytes",
                              name_n, name, (int)entry->key.n, entry->key.p,
                              (int)(entry->value.n < 40 ? entry->value.n : 40),
                              entry->value.n ? entry->value.p : "");
        }
    }
    if (!e) {
        nori_status s = nori__fail(err, NORI_ERROR_MODEL,
                                   "tensor %.*s has external data, but there is no folder to look "
                                   "in",
                                   name_n, name);
        nori__hint(err, "load the model from a file, or give base_dir");
        return s;
    }
    if (length != expected) {
        return nori__fail(err, NORI_ERROR_MODEL,
                          "tensor %.*s: external data has %llu bytes, type and shape need %llu",
                          name_n, name, (unsigned long long)length, (unsigned long long)expected);
    }
    mapped *m = NULL;
    NORI__TRY(open_location(e, location, &m, err));
    if (offset > m->file.size || length > m->file.size - offset) {
        return nori__fail(err, NORI_ERROR_MODEL,
                          "tensor %.*s: %llu bytes from byte %llu on were expected in external "
                          "data file %s, which has only %zu",
                          name_n, name, (unsigned long long)length, (unsigned long long)offset,
                          m->location, m->file.size);
    }
    if (length == 0) { /* also of an empty file, which is mapped nowhere */
        *view = (nori__str){NULL, 0};
        *of_file = false;
        return NORI_OK;
    }
    *of_file = m->of_file;
    *view = (nori__str){(const char *)m->file.data + offset, (size_t)length};
    return NORI_OK;
}

/* gpu_cache.c: compiled programs kept in the session's cache folder, a file a program, storage and
 * device. A file is good for what made_for says and the sources it was made by; what else is found there
 * is told, and made anew. A device that does not take its own program back counts as damage. */
#include <stdio.h>

#include "platform/kept.h"
#include "providers/gpu/gpu.h"

static void tell(const gpu_self *self, const char *fmt, ...) NORI__PRINTF(2, 3);
static void tell(const gpu_self *self, const char *fmt, ...)
{
    char text[768];
    va_list list;
    if (!self->telling) {
        return;
    }
    va_start(list, fmt);
    vsnprintf(text, sizeof(text), fmt, list);
    va_end(list);
    nori_progress p = {
        .size = sizeof(p), .phase = "cache", .provider = self->driver->name, .text = text};
    self->report(self->report_user, &p);
}

/* Which file, and what it must be made for. False: there is no folder, or no memory. */
static bool name_file(const gpu_self *self, const gpu_kept *k, nori__text *path, nori__text *made_for)
{
    nori__hash device = {0}, code = {0};
    char text[NORI__HASH_TEXT];
    if (!self->cache_dir) {
        return false;
    }
    nori__hash_add(&device, k->device, strlen(k->device));
    nori__hash_text(&device, text);
    nori__text_printf(path, "%s/%s-%s-%s-%s.noripart", self->cache_dir, self->driver->name, k->name,
                      self->half ? "fp16" : "fp32", text);
    nori__hash_add(&code, k->source.p, k->source.n);
    nori__hash_text(&code, text);
    nori__text_printf(made_for, "%s\nsource %s", k->made_for, text);
    return !path->failed && !made_for->failed;
}

static bool load(const gpu_self *self, const gpu_kept *k, const char *path, const char *made_for,
                 bool (*use)(void *user, const void *bytes, size_t size, char why[128]), void *user)
{
    nori__map_file file = {0};
    const void *bytes = NULL;
    size_t size = 0;
    char why[512];
    switch (nori__kept_open(path, made_for, &file, &bytes, &size, why, sizeof(why))) {
    case NORI__KEPT_HIT:
        break;
    case NORI__KEPT_NONE:
        tell(self, "miss: nothing is kept for kernels \"%s\" (%s)", k->name, why);
        return false;
    case NORI__KEPT_OTHER:
        tell(self, "miss: what is kept for kernels \"%s\" %s", k->name, why);
        return false;
    default:
        tell(self, "miss: %s: %s", why, path);
        return false;
    }
    char refusal[128] = "";
    bool used = use(user, bytes, size, refusal);
    if (used) {
        tell(self, "hit: %s, %zu bytes", path, size);
    } else {
        tell(self, "miss: the device does not take the file kept for kernels \"%s\" (%s): %s",
             k->name, refusal, path);
    }
    nori__map_close(&file);
    return used;
}

bool nori__gpu_cached(gpu_self *self, const gpu_kept *k,
                      bool (*use)(void *user, const void *bytes, size_t size, char why[128]),
                      void *user)
{
    nori__text path, made_for;
    nori__text_init(&path, &nori__malloc);
    nori__text_init(&made_for, &nori__malloc);
    bool used = name_file(self, k, &path, &made_for) &&
                load(self, k, path.data, made_for.data, use, user);
    nori__text_free(&path);
    nori__text_free(&made_for);
    return used;
}

void nori__gpu_keep(gpu_self *self, const gpu_kept *k, const void *bytes, size_t size)
{
    nori__text path, made_for;
    nori_error err = {0};
    nori__text_init(&path, &nori__malloc);
    nori__text_init(&made_for, &nori__malloc);
    if (name_file(self, k, &path, &made_for)) {
        if (!bytes) {
            tell(self, "not kept: the driver gives no binary of kernels \"%s\"", k->name);
        } else if (nori__kept_write(&nori__malloc, path.data, made_for.data, bytes, size, &err) ==
                   NORI_OK) {
            tell(self, "kept: %s, %zu bytes", path.data, size);
        } else {
            tell(self, "not kept: %s", err.message);
        }
    }
    nori__text_free(&path);
    nori__text_free(&made_for);
}

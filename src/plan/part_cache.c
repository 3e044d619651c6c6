/* part_cache.c: what providers made of parts, kept in a folder between sessions.
 *
 * A file a part and provider, named by a hash of both, in the form of platform/kept.c. It is made for
 * an engine and what the provider names: with another, it is told and made anew. */
#include <stdio.h>

#include "plan/part.h"
#include "platform/kept.h"

void nori__part_tell(const nori_part *part, const char *fmt, ...)
{
    char text[512];
    va_list list;
    if (!part->progress) {
        return;
    }
    va_start(list, fmt);
    vsnprintf(text, sizeof(text), fmt, list);
    va_end(list);
    nori_progress p = {.size = sizeof(p), .phase = "cache", .provider = part->label, .text = text};
    part->progress(part->progress_user, &p);
}

/* ---- names ---- */

/* A whole model's messages name data in other files without holding it: those bytes count too. */
static void add_constants(const nori_part *part, nori__hash *h)
{
    for (uint32_t n = 0; n < part->n_nodes && part->model; n++) {
        for (uint32_t i = 0; i < part->nodes[n]->input_count; i++) {
            const nori__value *v = part->nodes[n]->inputs[i];
            const nori_tensor *t = v ? nori__value_as_is(v) : NULL;
            if (t && t->type != NORI_STRING && nori__tensor_at(t)) {
                nori__hash_add(h, nori__tensor_at(t), t->bytes);
            }
        }
    }
}

static nori_status part_hash(nori_part *part, nori_error *err)
{
    const void *bytes;
    size_t size;
    nori__hash h = {0};
    if (part->hash[0]) {
        return NORI_OK;
    }
    NORI__TRY(nori_part_onnx(part, &bytes, &size, err));
    nori__hash_add(&h, bytes, size);
    add_constants(part, &h);
    for (size_t i = 0; i < part->dim_count; i++) {
        nori__hash_add(&h, part->dim_names[i], strlen(part->dim_names[i]));
        nori__hash_add(&h, &part->dim_values[i], sizeof(part->dim_values[i]));
    }
    nori__hash_add(&h, part->label, strlen(part->label));
    nori__hash_text(&h, part->hash);
    return NORI_OK;
}

static char *file_path(nori_part *part, nori_error *err)
{
    char label[32];
    size_t n = 0;
    if (part_hash(part, err) != NORI_OK) {
        return NULL;
    }
    for (const char *p = part->label; *p && n + 1 < sizeof(label); p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9');
        label[n++] = plain ? *p : '-';
    }
    label[n] = 0;
    return nori__arena_printf(part->arena, "%s/%s-%s.noripart", part->cache_dir, label,
                              part->hash);
}

static char *made_by(nori_part *part, const char *made_for)
{
    return nori__arena_printf(part->arena, "%s\n%s", part->info->engine, made_for);
}

/* ---- files ---- */

int nori_part_load(nori_part *part, const char *made_for, const void **bytes, size_t *size)
{
    nori_error err = {0};
    if (!part->cache_dir) {
        return 0;
    }
    char *text = made_by(part, made_for);
    char *path = text ? file_path(part, &err) : NULL;
    if (!path) {
        nori__part_tell(part, "miss: %s", err.message[0] ? err.message : "out of memory");
        return 0;
    }
    char why[512];
    nori__map_close(&part->cached);
    switch (nori__kept_open(path, text, &part->cached, bytes, size, why, sizeof(why))) {
    case NORI__KEPT_HIT:
        nori__part_tell(part, "hit: %s, %zu bytes for %u nodes", path, *size, part->n_nodes);
        return 1;
    case NORI__KEPT_NONE:
        nori__part_tell(part, "miss: nothing is kept for this part of %u nodes (%s)", part->n_nodes, why);
        return 0;
    case NORI__KEPT_OTHER:
        nori__part_tell(part, "miss: what is kept for this part of %u nodes %s", part->n_nodes, why);
        return 0;
    default:
        nori__part_tell(part, "miss: %s: %s", why, path);
        return 0;
    }
}

void nori_part_store(nori_part *part, const char *made_for, const void *bytes, size_t size)
{
    nori_error err = {0};
    if (!part->cache_dir) {
        return;
    }
    char *text = made_by(part, made_for);
    char *path = text ? file_path(part, &err) : NULL;
    if (!path) {
        nori__part_tell(part, "not kept: %s", err.message[0] ? err.message : "out of memory");
        return;
    }
    nori_status status = nori__kept_write(part->a, path, text, bytes, size, &err);
    if (status == NORI_OK) {
        nori__part_tell(part, "kept: %s, %zu bytes", path, size);
    } else {
        nori__part_tell(part, "not kept: %s", err.message);
    }
}

/* part_cache.c: what providers made of parts, kept in a folder between sessions.
 *
 * A file a part and provider, named by a hash of both. Its head tells what it was made by, so that a
 * miss can say what has changed; all numbers are little-endian:
 *     8 bytes  "noripart"
 *     4        version of this form, 1
 *     4        bytes of the text that follows
 *     8        bytes of the content
 *     32       hash of text and content, as digits
 *     text     engine, newline, what the provider named
 *     content
 * Files appear whole or not at all, so several processes may share a folder. */
#include <stdio.h>

#include "plan/part.h"

#define MAGIC "noripart"
#define VERSION 1u
#define HEAD 56u

static void put(unsigned char *p, size_t n, uint64_t v)
{
    for (size_t i = 0; i < n; i++) {
        p[i] = (unsigned char)(v >> 8 * i);
    }
}

static uint64_t get(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        v |= (uint64_t)p[i] << 8 * i;
    }
    return v;
}

static void tell(const nori_part *part, const char *fmt, ...) NORI__PRINTF(2, 3);
static void tell(const nori_part *part, const char *fmt, ...)
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
            const nori_tensor *t = v ? nori__value_const(v) : NULL;
            if (t && t->data && t->type != NORI_STRING) {
                nori__hash_add(h, t->data, t->bytes);
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

static void content_hash(const char *text, const void *bytes, size_t size,
                         char out[NORI__HASH_TEXT])
{
    nori__hash h = {0};
    nori__hash_add(&h, text, strlen(text));
    nori__hash_add(&h, bytes, size);
    nori__hash_text(&h, out);
}

/* ---- files ---- */

/* NULL: it is what was asked for. Else the reason why not; the text is the file's. */
static const char *fault(const nori__map_file *file, const char *text, const void **bytes,
                         size_t *size, nori__str *was)
{
    const unsigned char *p = file->data;
    char hash[NORI__HASH_TEXT];
    if (file->size < HEAD || memcmp(p, MAGIC, 8) != 0) {
        return "the file kept for it is damaged";
    }
    if (get(p + 8, 4) != VERSION) {
        return "the file kept for it is of another version of nori";
    }
    uint64_t n = get(p + 12, 4), content = get(p + 16, 8);
    if (n > file->size - HEAD || content != file->size - HEAD - n) {
        return "the file kept for it is damaged";
    }
    *was = (nori__str){(const char *)p + HEAD, (size_t)n};
    if (!nori__str_is(*was, text)) {
        return "it was made for";
    }
    *bytes = p + HEAD + n;
    *size = (size_t)content;
    content_hash(text, *bytes, *size, hash);
    return memcmp(hash, p + 24, 32) == 0 ? NULL : "the file kept for it is damaged";
}

/* What was kept for another engine, against what is asked for now, on one line. */
static void tell_other(const nori_part *part, nori__str was, const char *now)
{
    char line[2][160];
    const nori__str texts[2] = {was, nori__str_of(now)};
    for (int k = 0; k < 2; k++) {
        size_t n = texts[k].n < sizeof(line[k]) - 1 ? texts[k].n : sizeof(line[k]) - 1;
        for (size_t i = 0; i < n; i++) {
            unsigned char c = (unsigned char)texts[k].p[i];
            line[k][i] = c == '\n' ? ';' : c < ' ' || c > '~' ? '?' : (char)c;
        }
        line[k][n] = 0;
    }
    tell(part, "miss: what is kept for this part of %u nodes was made for \"%s\", now it is \"%s\"",
         part->n_nodes, line[0], line[1]);
}

int nori_part_load(nori_part *part, const char *made_for, const void **bytes, size_t *size)
{
    nori_error err = {0};
    if (!part->cache_dir) {
        return 0;
    }
    char *text = made_by(part, made_for);
    char *path = text ? file_path(part, &err) : NULL;
    if (!path) {
        tell(part, "miss: %s", err.message[0] ? err.message : "out of memory");
        return 0;
    }
    nori__map_close(&part->cached);
    if (nori__map_open(path, &part->cached, &err) != NORI_OK) {
        tell(part, "miss: nothing is kept for this part of %u nodes (%s)", part->n_nodes,
             err.message);
        return 0;
    }
    nori__str was = {"", 0};
    const char *why = fault(&part->cached, text, bytes, size, &was);
    if (!why) {
        tell(part, "hit: %s, %zu bytes for %u nodes", path, *size, part->n_nodes);
        return 1;
    }
    if (was.n > 0 && !nori__str_is(was, text)) {
        tell_other(part, was, text);
    } else {
        tell(part, "miss: %s: %s", why, path);
    }
    nori__map_close(&part->cached);
    return 0;
}

void nori_part_store(nori_part *part, const char *made_for, const void *bytes, size_t size)
{
    char hash[NORI__HASH_TEXT];
    unsigned char head[HEAD];
    nori_error err = {0};
    nori__out_file *out = NULL;
    if (!part->cache_dir) {
        return;
    }
    char *text = made_by(part, made_for);
    char *path = text ? file_path(part, &err) : NULL;
    if (!path) {
        tell(part, "not kept: %s", err.message[0] ? err.message : "out of memory");
        return;
    }
    memcpy(head, MAGIC, 8);
    put(head + 8, 4, VERSION);
    put(head + 12, 4, strlen(text));
    put(head + 16, 8, size);
    content_hash(text, bytes, size, hash);
    memcpy(head + 24, hash, 32);
    nori_status status = nori__out_open(part->a, path, &out, &err);
    if (status == NORI_OK) {
        status = nori__out_write(out, head, sizeof(head), &err);
        status = status == NORI_OK ? nori__out_write(out, text, strlen(text), &err) : status;
        status = status == NORI_OK ? nori__out_write(out, bytes, size, &err) : status;
        if (status == NORI_OK) {
            status = nori__out_commit(out, &err);
        } else {
            nori__out_abort(out);
        }
    }
    if (status == NORI_OK) {
        tell(part, "kept: %s, %zu bytes", path, size);
    } else {
        tell(part, "not kept: %s", err.message);
    }
}

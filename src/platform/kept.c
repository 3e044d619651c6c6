/* kept.c: files that hold what was made once and is good until something changes: compiled parts,
 * programs of a device. The head tells what the content was made for, so that whoever does not find
 * it can say what has changed; all numbers are little-endian:
 *     8 bytes  "noripart"
 *     4        version of this form, 1
 *     4        bytes of the text that follows
 *     8        bytes of the content
 *     32       hash of text and content, as digits
 *     text     what it was made for
 *     content
 * Files appear whole or not at all, so several processes may share a folder. */
#include <stdio.h>

#include "platform/kept.h"

#define MAGIC "noripart"
#define VERSION 1u
#define HEAD 56u
#define DAMAGED "the file kept for it is damaged"

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

static void content_hash(const char *text, const void *bytes, size_t size,
                         char out[NORI__HASH_TEXT])
{
    nori__hash h = {0};
    nori__hash_add(&h, text, strlen(text));
    nori__hash_add(&h, bytes, size);
    nori__hash_text(&h, out);
}

/* What it was kept for, against what is asked for now, on one line. */
static void tell_other(nori__str was, const char *now, char *why, size_t room)
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
    snprintf(why, room, "was made for \"%s\", now it is \"%s\"", line[0], line[1]);
}

static nori__kept look(const nori__map_file *file, const char *made_for, const void **bytes,
                       size_t *size, char *why, size_t room)
{
    const unsigned char *p = file->data;
    char hash[NORI__HASH_TEXT];
    snprintf(why, room, "%s", DAMAGED);
    if (file->size < HEAD || memcmp(p, MAGIC, 8) != 0) {
        return NORI__KEPT_BAD;
    }
    if (get(p + 8, 4) != VERSION) {
        snprintf(why, room, "the file kept for it is of another version of nori");
        return NORI__KEPT_BAD;
    }
    uint64_t n = get(p + 12, 4), content = get(p + 16, 8);
    if (n > file->size - HEAD || content != file->size - HEAD - n) {
        return NORI__KEPT_BAD;
    }
    nori__str was = {(const char *)p + HEAD, (size_t)n};
    if (!nori__str_is(was, made_for)) {
        if (n > 0) {
            tell_other(was, made_for, why, room);
        }
        return n > 0 ? NORI__KEPT_OTHER : NORI__KEPT_BAD;
    }
    *bytes = p + HEAD + n;
    *size = (size_t)content;
    content_hash(made_for, *bytes, *size, hash);
    return memcmp(hash, p + 24, 32) == 0 ? NORI__KEPT_HIT : NORI__KEPT_BAD;
}

nori__kept nori__kept_open(const char *path, const char *made_for, nori__map_file *file,
                           const void **bytes, size_t *size, char *why, size_t room)
{
    nori_error err = {0};
    if (nori__map_open(path, file, &err) != NORI_OK) {
        *file = (nori__map_file){0};
        snprintf(why, room, "%s", err.message);
        return NORI__KEPT_NONE;
    }
    nori__kept found = look(file, made_for, bytes, size, why, room);
    if (found != NORI__KEPT_HIT) {
        nori__map_close(file);
        *file = (nori__map_file){0};
    }
    return found;
}

nori_status nori__kept_write(const nori_allocator *a, const char *path, const char *made_for,
                             const void *bytes, size_t size, nori_error *err)
{
    char hash[NORI__HASH_TEXT];
    unsigned char head[HEAD];
    nori__out_file *out = NULL;
    memcpy(head, MAGIC, 8);
    put(head + 8, 4, VERSION);
    put(head + 12, 4, strlen(made_for));
    put(head + 16, 8, size);
    content_hash(made_for, bytes, size, hash);
    memcpy(head + 24, hash, 32);
    NORI__TRY(nori__out_open(a, path, &out, err));
    nori_status status = nori__out_write(out, head, sizeof(head), err);
    status = status == NORI_OK ? nori__out_write(out, made_for, strlen(made_for), err) : status;
    status = status == NORI_OK ? nori__out_write(out, bytes, size, err) : status;
    if (status == NORI_OK) {
        return nori__out_commit(out, err);
    }
    nori__out_abort(out);
    return status;
}

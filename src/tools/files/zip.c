/* zip.c: reads and writes the simple form of ZIP. The directory at the end is what counts; of the
 * headers in front of the entries only the lengths are used. */
#include "tools/files/zip.h"

#ifdef NORI_WITH_ZLIB
#include <zlib.h>
#endif

enum { LOCAL = 0x04034b50, CENTRAL = 0x02014b50, END = 0x06054b50 };
enum { LOCAL_SIZE = 30, CENTRAL_SIZE = 46, END_SIZE = 22, COMMENT_MAX = 65535 };
/* Deflate cannot do better than 1032 to 1. */
#define RATIO_MAX 1040u

static uint32_t get16(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t get32(const uint8_t *p)
{
    return get16(p) | get16(p + 2) << 16;
}

/* CRC-32 of ISO 3309, a nibble at a time: small, and archives must not need zlib to be stored. */
static uint32_t crc_of(const uint8_t *data, size_t size)
{
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
#ifdef NORI_WITH_ZLIB
    if (size <= UINT32_MAX) {
        return (uint32_t)crc32(0, data, (uInt)size);
    }
#endif
    uint32_t c = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        c ^= data[i];
        c = table[c & 15] ^ c >> 4;
        c = table[c & 15] ^ c >> 4;
    }
    return c ^ 0xffffffff;
}

static nori_status damaged(nori_error *err, const char *what)
{
    return nori__fail(err, NORI_ERROR_FORMAT, "the archive is damaged: %s", what);
}

bool nori__is_zip(const uint8_t *data, size_t size)
{
    return size >= END_SIZE && (get32(data) == LOCAL || get32(data) == END);
}

/* ---- reading ---- */

static const uint8_t *find_end(const uint8_t *data, size_t size)
{
    for (size_t back = END_SIZE; back <= size && back <= END_SIZE + COMMENT_MAX; back++) {
        const uint8_t *p = data + size - back;
        if (get32(p) == END && get16(p + 20) <= back - END_SIZE) {
            return p;
        }
    }
    return NULL;
}

/* Where an entry's bytes begin: behind its own header. */
static nori_status locate(const uint8_t *data, size_t size, size_t at, size_t packed,
                          nori__zip_entry *e, nori_error *err)
{
    if (at > size || size - at < LOCAL_SIZE || get32(data + at) != LOCAL) {
        return damaged(err, "an entry is not where the directory says");
    }
    size_t skip = LOCAL_SIZE + get16(data + at + 26) + get16(data + at + 28);
    if (skip > size - at || packed > size - at - skip) {
        return damaged(err, "an entry is cut off");
    }
    e->packed = (nori__str){(const char *)data + at + skip, packed};
    return NORI_OK;
}

/* One entry of the directory at p, which has left bytes; *used: how many it took. */
static nori_status read_entry(const uint8_t *data, size_t size, const uint8_t *p, size_t left,
                              nori__zip_entry *e, size_t *used, nori_error *err)
{
    if (left < CENTRAL_SIZE || get32(p) != CENTRAL) {
        return damaged(err, "its directory is cut off");
    }
    size_t name = get16(p + 28), more = (size_t)get16(p + 30) + get16(p + 32);
    uint32_t flags = get16(p + 8), method = get16(p + 10), packed = get32(p + 20);
    uint32_t whole = get32(p + 24), at = get32(p + 42);
    *used = CENTRAL_SIZE + name + more;
    if (*used > left) {
        return damaged(err, "its directory is cut off");
    }
    e->name = (nori__str){(const char *)p + CENTRAL_SIZE, name};
    int shown = (int)(name < 100 ? name : 100);
    if (flags & 1) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED, "entry %.*s of the archive is encrypted",
                          shown, e->name.p);
    }
    if (method != 0 && method != 8) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED,
                          "entry %.*s of the archive is packed by method %u; stored and deflated "
                          "ones are read",
                          shown, e->name.p, (unsigned)method);
    }
    if (packed == UINT32_MAX || whole == UINT32_MAX || at == UINT32_MAX) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED,
                          "entry %.*s of the archive is larger than 4 GB (zip64)", shown,
                          e->name.p);
    }
    e->deflated = method == 8;
    e->size = whole;
    e->crc = get32(p + 16);
    if (e->deflated ? whole / RATIO_MAX > packed : whole != packed) {
        return damaged(err, "an entry claims more than its bytes can hold");
    }
    return locate(data, size, at, packed, e, err);
}

nori_status nori__zip_read(nori__arena *arena, const uint8_t *data, size_t size, nori__zip *zip,
                           nori_error *err)
{
    *zip = (nori__zip){NULL, 0};
    const uint8_t *end = size >= END_SIZE ? find_end(data, size) : NULL;
    if (!end) {
        return damaged(err, "it has no directory at its end");
    }
    size_t count = get16(end + 10), length = get32(end + 12), at = get32(end + 16);
    size_t before = (size_t)(end - data);
    if (get16(end + 4) != 0 || get16(end + 6) != 0 || get16(end + 8) != count) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED, "the archive is one of several volumes");
    }
    if (count == UINT16_MAX || length == UINT32_MAX || at == UINT32_MAX) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED,
                          "the archive is larger than 4 GB or has more than 65534 entries (zip64)");
    }
    if (at > before || length > before - at || length < count * CENTRAL_SIZE) {
        return damaged(err, "its directory is not where it says");
    }
    zip->entries = nori__arena_array(arena, count + 1, sizeof(*zip->entries));
    if (!zip->entries) {
        return nori__no_memory(err);
    }
    uint64_t packed = 0;
    for (; zip->count < count; zip->count++) {
        nori__zip_entry *e = &zip->entries[zip->count];
        size_t used = 0;
        NORI__TRY(read_entry(data, size, data + at, length, e, &used, err));
        at += used;
        length -= used;
        packed += e->packed.n;
        if (packed > size) { /* the same bytes many times over */
            return damaged(err, "its entries overlap");
        }
    }
    return NORI_OK;
}

#ifdef NORI_WITH_ZLIB
/* The first n bytes of the content; where that is all of it, its end must follow. */
static nori_status inflate_entry(const nori__zip_entry *e, void *out, size_t n, nori_error *err)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)e->packed.p,
                  .avail_in = (uInt)e->packed.n,
                  .next_out = out,
                  .avail_out = (uInt)n};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) {
        return nori__no_memory(err);
    }
    int code = inflate(&z, n < e->size ? Z_SYNC_FLUSH : Z_FINISH);
    bool whole = z.avail_out == 0 && (n < e->size || code == Z_STREAM_END);
    inflateEnd(&z);
    return whole ? NORI_OK : damaged(err, "an entry does not unpack to its size");
}
#else
static nori_status inflate_entry(const nori__zip_entry *e, void *out, size_t n, nori_error *err)
{
    (void)e;
    (void)out;
    (void)n;
    nori_status s = nori__fail(err, NORI_ERROR_UNSUPPORTED,
                               "the archive is compressed, and this nori was built without zlib");
    nori__hint(err, "save it uncompressed, with numpy.savez");
    return s;
}
#endif

nori_status nori__zip_begin_of(const nori__zip_entry *e, void *out, size_t *n, nori_error *err)
{
    *n = *n < e->size ? *n : e->size;
    if (e->deflated) {
        return inflate_entry(e, out, *n, err);
    }
    memcpy(out, e->packed.p, *n);
    return NORI_OK;
}

nori_status nori__zip_content(const nori_allocator *a, const nori__zip_entry *e,
                              const uint8_t **data, size_t *size, void **owned, nori_error *err)
{
    *owned = NULL;
    *size = e->size;
    *data = (const uint8_t *)e->packed.p;
    nori_status s = NORI_OK;
    if (e->deflated) {
        *owned = nori__alloc(a, e->size);
        if (!*owned) {
            return nori__no_memory(err);
        }
        *data = *owned;
        s = inflate_entry(e, *owned, e->size, err);
    }
    if (s == NORI_OK && crc_of(*data, *size) != e->crc) {
        s = damaged(err, "the checksum of an entry is wrong");
    }
    if (s != NORI_OK) {
        nori__release(a, *owned, e->size);
        *owned = NULL;
    }
    return s;
}

/* ---- writing ---- */

static void put16(nori__text *out, uint32_t v)
{
    const char bytes[2] = {(char)(v & 255), (char)(v >> 8 & 255)};
    nori__text_add(out, bytes, 2);
}

static void put32(nori__text *out, uint32_t v)
{
    put16(out, v & 0xffff);
    put16(out, v >> 16);
}

/* What both headers of an entry have: version, flags, method, time, date, sizes, lengths. The date
 * is the format's first day, so that equal content makes equal files. */
static void put_header(nori__text *out, uint32_t crc, size_t size, size_t name)
{
    put16(out, 20);
    put16(out, 0);
    put16(out, 0);
    put16(out, 0);
    put16(out, 33);
    put32(out, crc);
    put32(out, (uint32_t)size);
    put32(out, (uint32_t)size);
    put16(out, (uint32_t)name);
    put16(out, 0);
}

void nori__zip_begin(nori__zip_writer *w, const nori_allocator *a, nori__text *out)
{
    *w = (nori__zip_writer){.out = out};
    nori__text_init(&w->directory, a);
}

nori_status nori__zip_add(nori__zip_writer *w, const char *name, const void *data, size_t size,
                          nori_error *err)
{
    size_t n = strlen(name), at = w->out->size;
    if (n > UINT16_MAX || w->count >= UINT16_MAX - 1 || size >= UINT32_MAX || at >= UINT32_MAX) {
        nori_status s = nori__fail(err, NORI_ERROR_UNSUPPORTED,
                                   "an archive of more than 4 GB or 65534 entries, or a name of "
                                   "more than 65535 bytes, cannot be written");
        nori__hint(err, "write files of their own, .npy or .pb");
        return s;
    }
    uint32_t crc = crc_of(data, size);
    put32(w->out, LOCAL);
    put_header(w->out, crc, size, n);
    nori__text_add(w->out, name, n);
    nori__text_add(w->out, data, size);
    put32(&w->directory, CENTRAL);
    put16(&w->directory, 20);
    put_header(&w->directory, crc, size, n);
    for (int i = 0; i < 5; i++) { /* comment, disk, two sets of attributes */
        put16(&w->directory, 0);
    }
    put32(&w->directory, (uint32_t)at);
    nori__text_add(&w->directory, name, n);
    w->count++;
    return w->out->failed || w->directory.failed ? nori__no_memory(err) : NORI_OK;
}

nori_status nori__zip_end(nori__zip_writer *w, nori_error *err)
{
    nori_status s = NORI_OK;
    size_t at = w->out->size, length = w->directory.size;
    if (at >= UINT32_MAX || length >= UINT32_MAX) {
        s = nori__fail(err, NORI_ERROR_UNSUPPORTED, "an archive of more than 4 GB cannot be written");
    } else {
        nori__text_add(w->out, w->directory.data, length);
        put32(w->out, END);
        put32(w->out, 0);
        put16(w->out, (uint32_t)w->count);
        put16(w->out, (uint32_t)w->count);
        put32(w->out, (uint32_t)length);
        put32(w->out, (uint32_t)at);
        put16(w->out, 0);
        s = w->out->failed ? nori__no_memory(err) : NORI_OK;
    }
    nori__text_free(&w->directory);
    return s;
}

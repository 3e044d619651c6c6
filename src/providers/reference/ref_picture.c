/* ref_picture.c: Windows bitmaps (1 to 32 bits a pixel, uncompressed) and the portable formats PBM,
 * PGM and PPM, plain and raw, to 8-bit RGB. Every size is checked against the bytes there are. */
#include "providers/reference/ref_picture.h"

#include <stdio.h>

static int bad(const nori__picture *p, const char *why)
{
    snprintf(p->why, p->why_size, "%s", why);
    return 0;
}

/* ---- BMP ---- */

static uint32_t le(const uint8_t *p, int bytes)
{
    uint32_t v = 0;
    for (int i = bytes - 1; i >= 0; i--) {
        v = v << 8 | p[i];
    }
    return v;
}

typedef struct bitmap {
    uint32_t width, height, bits, compression;
    bool top_down;
    const uint8_t *palette, *pixels;
    uint32_t colours, entry; /* of the palette; bytes of an entry */
    uint32_t masks[3];       /* red, green, blue of 16 and 32 bits */
    size_t stride;
} bitmap;

/* Bits under a mask, stretched to 0..255. */
static uint8_t masked(uint32_t v, uint32_t mask)
{
    if (mask == 0) {
        return 0;
    }
    while (!(mask & 1)) {
        mask >>= 1;
        v >>= 1;
    }
    return (uint8_t)(((uint64_t)(v & mask) * 255 + mask / 2) / mask);
}

/* The header BITMAPCOREHEADER (12 bytes) or BITMAPINFOHEADER and what grew of it. */
static int bitmap_header(const nori__picture *p, bitmap *b)
{
    if (p->size < 26 || p->bytes[0] != 'B' || p->bytes[1] != 'M') {
        return bad(p, "its header is cut off");
    }
    uint32_t start = le(p->bytes + 10, 4), size = le(p->bytes + 14, 4);
    const uint8_t *h = p->bytes + 14;
    if (size != 12 && (size < 40 || size > p->size - 14)) {
        return bad(p, "its header has no known size");
    }
    bool core = size == 12;
    int32_t height = core ? (int32_t)le(h + 6, 2) : (int32_t)le(h + 8, 4);
    b->width = core ? le(h + 4, 2) : le(h + 4, 4);
    b->top_down = height < 0;
    b->height = height < 0 ? 0 - (uint32_t)height : (uint32_t)height;
    b->bits = core ? le(h + 10, 2) : le(h + 14, 2);
    b->compression = core ? 0 : le(h + 16, 4);
    b->entry = core ? 3 : 4;
    b->colours = core ? 0 : le(h + 32, 4);
    if (b->bits <= 8 && (b->colours == 0 || b->colours > 1u << b->bits)) {
        b->colours = 1u << b->bits;
    }
    bool deep = b->bits == 16 || b->bits == 32;
    bool flat = b->bits == 1 || b->bits == 4 || b->bits == 8 || b->bits == 24 || deep;
    bool fields = b->compression == 3 && deep;
    if (!flat || (b->compression != 0 && !fields)) {
        return bad(p, "it is compressed, or has another number of bits than 1, 4, 8, 16, 24, 32");
    }
    if (b->width == 0 || b->height == 0 || b->width > INT32_MAX || b->height > INT32_MAX) {
        return bad(p, "it has no pixels");
    }
    uint64_t after = 14 + (uint64_t)size;
    static const uint32_t usual[2][3] = {{0x7c00, 0x3e0, 0x1f}, {0xff0000, 0xff00, 0xff}};
    memcpy(b->masks, usual[b->bits == 32], sizeof(b->masks));
    if (fields) {
        if (p->size < 14 + 40 + 12) {
            return bad(p, "its colour masks are cut off");
        }
        for (int i = 0; i < 3; i++) { /* behind the first 40 bytes, in the header or after it */
            b->masks[i] = le(h + 40 + 4 * i, 4);
        }
    }
    b->palette = p->bytes + after;
    uint64_t stride = (((uint64_t)b->width * b->bits + 31) / 32) * 4; /* more than a small machine's size_t */
    b->pixels = p->bytes + start;
    uint64_t entries = b->bits <= 8 ? (uint64_t)b->colours * b->entry : 0;
    if (after + entries > p->size || start > p->size || (p->size - start) / stride < b->height) {
        return bad(p, "its data are cut off");
    }
    b->stride = (size_t)stride;
    return 1;
}

static void bitmap_row(const bitmap *b, const uint8_t *row, uint8_t *to)
{
    for (uint32_t x = 0; x < b->width; x++, to += 3) {
        if (b->bits <= 8) {
            unsigned per = 8 / b->bits, shift = (per - 1 - x % per) * b->bits;
            uint32_t index = row[x / per] >> shift & ((1u << b->bits) - 1);
            const uint8_t *colour = b->palette + (size_t)b->entry * index;
            for (int c = 0; c < 3; c++) {
                to[c] = index < b->colours ? colour[2 - c] : 0;
            }
        } else if (b->bits == 24) {
            for (int c = 0; c < 3; c++) {
                to[c] = row[3 * (size_t)x + 2 - (size_t)c];
            }
        } else {
            uint32_t v = le(row + (size_t)x * (b->bits / 8), (int)b->bits / 8);
            for (int c = 0; c < 3; c++) {
                to[c] = masked(v, b->masks[c]);
            }
        }
    }
}

int nori__picture_bmp(const nori__picture *p)
{
    bitmap b = {0};
    if (!bitmap_header(p, &b)) {
        return 0;
    }
    uint8_t *to = p->begin(p->user, b.height, b.width);
    for (uint32_t y = 0; to && y < b.height; y++) {
        uint32_t at = b.top_down ? y : b.height - 1 - y;
        bitmap_row(&b, b.pixels + at * b.stride, to + 3 * (size_t)b.width * y);
    }
    return to != NULL;
}

/* ---- PBM, PGM, PPM ---- */

typedef struct pnm {
    const uint8_t *at, *end;
} pnm;

static bool blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* A decimal number behind blanks and comments. */
static bool number(pnm *r, uint32_t *out)
{
    while (r->at < r->end && (blank(*r->at) || *r->at == '#')) {
        if (*r->at == '#') {
            while (r->at < r->end && *r->at != '\n') {
                r->at++;
            }
        } else {
            r->at++;
        }
    }
    uint64_t v = 0;
    bool any = false;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9' && v <= UINT32_MAX; r->at++) {
        v = v * 10 + (uint64_t)(*r->at - '0');
        any = true;
    }
    *out = (uint32_t)v;
    return any && v <= INT32_MAX;
}

/* A digit of a plain bitmap: they need no blanks between them. */
static bool bit(pnm *r, uint32_t *out)
{
    while (r->at < r->end && blank(*r->at)) {
        r->at++;
    }
    if (r->at == r->end || (*r->at != '0' && *r->at != '1')) {
        return false;
    }
    *out = *r->at++ == '1';
    return true;
}

static uint8_t scaled(uint32_t v, uint32_t most)
{
    v = v < most ? v : most;
    return most == 255 ? (uint8_t)v : (uint8_t)(((uint64_t)v * 255 + most / 2) / most);
}

static int pnm_plain(const nori__picture *p, pnm *r, char kind, uint32_t most, size_t count,
                     uint8_t *to)
{
    for (size_t i = 0; i < count; i++, to += 3) {
        for (int c = 0; c < (kind == '3' ? 3 : 1); c++) {
            uint32_t v;
            if (kind == '1' ? !bit(r, &v) : !number(r, &v)) {
                return bad(p, "its numbers are cut off or damaged");
            }
            to[c] = kind == '1' ? (uint8_t)(v ? 0 : 255) : scaled(v, most);
        }
        if (kind != '3') {
            to[1] = to[2] = to[0];
        }
    }
    return 1;
}

static void pnm_raw(const pnm *r, char kind, uint32_t most, uint32_t width, uint32_t height,
                    uint8_t *to)
{
    size_t wide = most > 255 ? 2 : 1, channels = kind == '6' ? 3 : 1;
    size_t stride = kind == '4' ? ((size_t)width + 7) / 8 : width * wide * channels;
    for (uint32_t y = 0; y < height; y++) {
        const uint8_t *row = r->at + y * stride;
        for (size_t x = 0; x < width; x++, to += 3) {
            for (size_t c = 0; c < 3; c++) {
                size_t at = (x * channels + c % channels) * wide;
                to[c] = kind == '4' ? (uint8_t)(row[x / 8] >> (7 - x % 8) & 1 ? 0 : 255)
                                    : scaled(wide == 2 ? (uint32_t)row[at] << 8 | row[at + 1] : row[at],
                                             most);
            }
        }
    }
}

int nori__picture_pnm(const nori__picture *p)
{
    pnm r = {p->bytes + 2, p->bytes + p->size};
    char kind = (char)p->bytes[1];
    uint32_t width, height, most = 1;
    bool bits = kind == '1' || kind == '4';
    if (!number(&r, &width) || !number(&r, &height) || (!bits && !number(&r, &most)) ||
        width == 0 || height == 0 || most == 0 || most > 65535) {
        return bad(p, "its header is damaged");
    }
    if (kind >= '4') {
        uint64_t row = kind == '4' ? ((uint64_t)width + 7) / 8
                                   : (uint64_t)width * (most > 255 ? 2 : 1) * (kind == '6' ? 3 : 1);
        r.at++; /* one blank ends the header */
        if (r.at >= r.end || (size_t)(r.end - r.at) / row < height) {
            return bad(p, "its data are cut off");
        }
    }
    uint8_t *to = p->begin(p->user, height, width);
    if (to && kind >= '4') {
        pnm_raw(&r, kind, most, width, height, to);
        return 1;
    }
    return to && pnm_plain(p, &r, kind, most, (size_t)width * height, to);
}

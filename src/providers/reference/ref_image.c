/* ref_image.c: ImageDecoder. The format is told by the first bytes; bitmaps and the portable formats
 * are decoded here, the others by operator modules. Grey values are weighed as ITU-R BT.601 says:
 * (19595 R + 38470 G + 7471 B) / 65536, rounded. Transparency is dropped. */
#include <stdio.h>

#include "ops/families.h"
#include "providers/modules/module_load.h"
#include "providers/reference/ref.h"
#include "providers/reference/ref_picture.h"

enum { MOST_PIXELS = 1 << 28 }; /* a header of a few bytes may claim any size */

typedef struct format {
    const char *name, *module; /* module NULL: decoded here */
    int (*decode)(const nori__picture *p);
    bool (*is)(const uint8_t *p, size_t n);
} format;

static bool starts(const uint8_t *p, size_t n, const char *with, size_t count)
{
    return n >= count && memcmp(p, with, count) == 0;
}
static bool is_png(const uint8_t *p, size_t n)
{
    return starts(p, n, "\x89PNG\r\n\x1a\n", 8);
}
static bool is_jpeg(const uint8_t *p, size_t n)
{
    return starts(p, n, "\xff\xd8\xff", 3);
}
static bool is_tiff(const uint8_t *p, size_t n)
{
    return starts(p, n, "II*\0", 4) || starts(p, n, "MM\0*", 4) || starts(p, n, "II+\0", 4) ||
           starts(p, n, "MM\0+", 4);
}
static bool is_webp(const uint8_t *p, size_t n)
{
    return n >= 12 && starts(p, n, "RIFF", 4) && memcmp(p + 8, "WEBP", 4) == 0;
}
static bool is_jpeg2000(const uint8_t *p, size_t n)
{
    return starts(p, n, "\0\0\0\x0cjP  \r\n\x87\n", 12) || starts(p, n, "\xff\x4f\xff\x51", 4);
}
static bool is_bmp(const uint8_t *p, size_t n)
{
    return starts(p, n, "BM", 2);
}
static bool is_pnm(const uint8_t *p, size_t n)
{
    return n > 3 && p[0] == 'P' && p[1] >= '1' && p[1] <= '6' &&
           (p[2] == ' ' || (p[2] >= '\t' && p[2] <= '\r'));
}

static const format formats[] = {
    {"PNG", "png", NULL, is_png},    {"JPEG", "jpeg", NULL, is_jpeg},
    {"TIFF", "tiff", NULL, is_tiff}, {"WebP", "webp", NULL, is_webp},
    {"JPEG 2000", "jpeg2000", NULL, is_jpeg2000},
    {"BMP", NULL, nori__picture_bmp, is_bmp}, {"PNM", NULL, nori__picture_pnm, is_pnm},
};

/* RGB as a decoder gives it. */
typedef struct pixels {
    const nori_allocator *a;
    uint8_t *rgb;
    size_t bytes;
    int64_t height, width;
    nori_status status;
    nori_error *err;
} pixels;

static uint8_t *begin(void *user, uint64_t height, uint64_t width)
{
    pixels *to = user;
    if (height == 0 || width == 0 || to->rgb || height > MOST_PIXELS || width > MOST_PIXELS / height) {
        to->status = nori__fail(to->err, NORI_ERROR_LIMIT,
                                "the picture has %llu x %llu pixels; 1 to %d are taken",
                                (unsigned long long)height, (unsigned long long)width, MOST_PIXELS);
        return NULL;
    }
    to->height = (int64_t)height;
    to->width = (int64_t)width;
    to->bytes = (size_t)(height * width * 3);
    to->rgb = nori__alloc(to->a, to->bytes);
    to->status = to->rgb ? NORI_OK : nori__no_memory(to->err);
    return to->rgb;
}

static nori_status decode(const format *f, const nori_tensor *in, pixels *to)
{
    char why[256] = "";
    int (*with)(const nori__picture *) = f->decode;
    if (f->module) {
        const nori__module *module;
        NORI__TRY(nori__module_get(f->module, &module, to->err));
        with = module->decode;
    }
    nori__picture p = {.bytes = in->data, .size = in->bytes, .begin = begin, .user = to,
                       .why = why, .why_size = sizeof(why)};
    if (with(&p)) {
        return NORI_OK;
    }
    return to->status != NORI_OK ? to->status
                                 : nori__fail(to->err, NORI_ERROR_DATA,
                                              "the %s picture cannot be decoded: %s", f->name,
                                              why[0] ? why : "it is damaged");
}

static nori_status give(nori_call *call, const pixels *from, const char *layout)
{
    bool grey = nori__same(layout, "Grayscale"), swap = nori__same(layout, "BGR");
    int64_t dims[3] = {from->height, from->width, grey ? 1 : 3};
    nori_tensor *out;
    NORI__TRY(call->exec->alloc(call, 0, NORI_UINT8, 3, dims, &out));
    uint8_t *to = out->data;
    const uint8_t *p = from->rgb;
    for (int64_t i = 0; i < from->height * from->width; i++, p += 3) {
        if (grey) {
            *to++ = (uint8_t)((19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 32768u) >> 16);
        } else {
            *to++ = p[swap ? 2 : 0];
            *to++ = p[1];
            *to++ = p[swap ? 0 : 2];
        }
    }
    return NORI_OK;
}

nori_status nori__ref_ImageDecoder(nori_call *call)
{
    const char *layout = nori__attr_s(call->node, "pixel_format", "RGB");
    const format *f = NULL;
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *in = call->in[0];
    if (in->type != NORI_UINT8) {
        return nori__ref_bad_type(call, 0);
    }
    for (size_t i = 0; i < NORI__COUNT(formats) && !f; i++) {
        f = formats[i].is(in->data, in->bytes) ? &formats[i] : NULL;
    }
    if (!f) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "input 0 of ImageDecoder is no picture that is known by its first bytes: "
                          "PNG, JPEG, JPEG 2000, TIFF, WebP, BMP, PBM, PGM or PPM was expected");
    }
    pixels got = {.a = call->allocator, .status = NORI_OK, .err = call->err};
    nori_status s = decode(f, in, &got);
    if (s == NORI_OK) {
        s = give(call, &got, layout);
    }
    nori__release(call->allocator, got.rgb, got.bytes);
    return s;
}

/* picture_tiff.c: TIFF, by libtiff's RGBA interface: the first image of the file, turned as its
 * orientation says. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>

#include "providers/modules/module.h"

typedef struct source {
    const nori__picture *picture;
    uint64_t at;
} source;

static tmsize_t source_read(thandle_t handle, void *to, tmsize_t size)
{
    source *s = handle;
    uint64_t left = s->at < s->picture->size ? s->picture->size - s->at : 0;
    size_t n = size < 0 ? 0 : (uint64_t)size < left ? (size_t)size : (size_t)left;
    if (n > 0) {
        memcpy(to, s->picture->bytes + s->at, n);
    }
    s->at += n;
    return (tmsize_t)n;
}

static tmsize_t source_write(thandle_t handle, void *from, tmsize_t size)
{
    (void)handle;
    (void)from;
    (void)size;
    return -1;
}

static toff_t source_seek(thandle_t handle, toff_t to, int from)
{
    source *s = handle;
    s->at = from == SEEK_SET ? to : from == SEEK_CUR ? s->at + to : s->picture->size + to;
    return s->at;
}

static int source_close(thandle_t handle)
{
    (void)handle;
    return 0;
}

static toff_t source_size(thandle_t handle)
{
    return ((source *)handle)->picture->size;
}

static int on_error(TIFF *tiff, void *user, const char *module, const char *fmt, va_list args)
{
    const nori__picture *p = user;
    (void)tiff;
    (void)module;
    if (!p->why[0]) { /* the first says what is wrong, the others what follows from it */
        vsnprintf(p->why, p->why_size, fmt, args);
    }
    return 1;
}

static int on_warning(TIFF *tiff, void *user, const char *module, const char *fmt, va_list args)
{
    (void)tiff;
    (void)user;
    (void)module;
    (void)fmt;
    (void)args;
    return 1;
}

static int decode_image(TIFF *tiff, const nori__picture *p)
{
    uint32_t width = 0, height = 0;
    if (!TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width) ||
        !TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height)) {
        return 0;
    }
    uint8_t *to = p->begin(p->user, height, width);
    size_t count = (size_t)width * height;
    uint32_t *pixels = to && count <= SIZE_MAX / 4 ? malloc(count * 4) : NULL;
    int ok = 0;
    if (!pixels) {
        snprintf(p->why, p->why_size, "%s", to ? "it is too large" : "");
    } else if (TIFFReadRGBAImageOriented(tiff, width, height, pixels, ORIENTATION_TOPLEFT, 1)) {
        for (size_t i = 0; i < count; i++) {
            to[3 * i] = (uint8_t)TIFFGetR(pixels[i]);
            to[3 * i + 1] = (uint8_t)TIFFGetG(pixels[i]);
            to[3 * i + 2] = (uint8_t)TIFFGetB(pixels[i]);
        }
        ok = 1;
    }
    free(pixels);
    return ok;
}

static int decode(const nori__picture *p)
{
    source s = {p, 0};
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    TIFF *tiff = NULL;
    if (options) {
        TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, (void *)(uintptr_t)p);
        TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, NULL);
        tiff = TIFFClientOpenExt("picture", "rm", &s, source_read, source_write, source_seek,
                                 source_close, source_size, NULL, NULL, options);
        TIFFOpenOptionsFree(options);
    }
    int ok = tiff && decode_image(tiff, p);
    if (tiff) {
        TIFFClose(tiff);
    }
    return ok;
}

const nori__module *nori_module(void)
{
    static const nori__module module = {.version = NORI__MODULE_VERSION, .decode = decode};
    return &module;
}

/* picture_png.c: PNG, by libpng's simplified interface. 16-bit samples lose their low byte. */
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/modules/module.h"

static int decode(const nori__picture *p)
{
    png_image image;
    memset(&image, 0, sizeof(image));
    image.version = PNG_IMAGE_VERSION;
    if (!png_image_begin_read_from_memory(&image, p->bytes, p->size)) {
        snprintf(p->why, p->why_size, "%s", image.message);
        return 0;
    }
    /* Without an alpha channel in the format, transparent pixels would be blended. */
    image.format = PNG_FORMAT_RGBA;
    image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
    size_t count = (size_t)image.width * image.height;
    uint8_t *to = p->begin(p->user, image.height, image.width);
    uint8_t *with_alpha = to && count <= SIZE_MAX / 4 ? malloc(count * 4) : NULL;
    int ok = 0;
    if (!with_alpha) {
        snprintf(p->why, p->why_size, "%s", to ? "it is too large" : "");
    } else if (!png_image_finish_read(&image, NULL, with_alpha, 0, NULL)) {
        snprintf(p->why, p->why_size, "%s", image.message);
    } else {
        for (size_t i = 0; i < count; i++) {
            memcpy(to + 3 * i, with_alpha + 4 * i, 3);
        }
        ok = 1;
    }
    free(with_alpha);
    png_image_free(&image);
    return ok;
}

const nori__module *nori_module(void)
{
    static const nori__module module = {.version = NORI__MODULE_VERSION, .decode = decode};
    return &module;
}

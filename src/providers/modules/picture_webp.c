/* picture_webp.c: WebP, lossy or lossless, by libwebp; of animations the decoder takes none. */
#include <stdio.h>
#include <webp/decode.h>

#include "providers/modules/module.h"

static int decode(const nori__picture *p)
{
    int width = 0, height = 0;
    if (!WebPGetInfo(p->bytes, p->size, &width, &height)) {
        snprintf(p->why, p->why_size, "its header is damaged");
        return 0;
    }
    uint8_t *to = p->begin(p->user, (uint64_t)height, (uint64_t)width);
    if (!to) {
        return 0;
    }
    size_t room = (size_t)width * (size_t)height * 3;
    if (!WebPDecodeRGBInto(p->bytes, p->size, to, room, 3 * width)) {
        snprintf(p->why, p->why_size, "its data are damaged, or it is an animation");
        return 0;
    }
    return 1;
}

const nori__module *nori_module(void)
{
    static const nori__module module = {.version = NORI__MODULE_VERSION, .decode = decode};
    return &module;
}

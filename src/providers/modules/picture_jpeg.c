/* picture_jpeg.c: JPEG, by libjpeg-turbo's TurboJPEG interface, which reports errors by returning.
 * Decoded with the accurate integer transform. CMYK is made RGB without a colour profile. */
#include <stdio.h>
#include <stdlib.h>
#include <turbojpeg.h>

#include "providers/modules/module.h"

/* Adobe's CMYK is stored inverted: 255 is no ink. */
static void from_cmyk(const uint8_t *from, size_t count, uint8_t *to)
{
    for (size_t i = 0; i < count; i++) {
        unsigned k = from[4 * i + 3];
        for (size_t c = 0; c < 3; c++) {
            to[3 * i + c] = (uint8_t)((from[4 * i + c] * k + 127) / 255);
        }
    }
}

static int decode_with(tjhandle handle, const nori__picture *p)
{
    int width = 0, height = 0, sampling = 0, space = 0;
    if (p->size > UINT32_MAX || tjDecompressHeader3(handle, p->bytes, (unsigned long)p->size, &width,
                                                    &height, &sampling, &space) != 0) {
        snprintf(p->why, p->why_size, "%s", tjGetErrorStr2(handle));
        return 0;
    }
    size_t count = (size_t)width * (size_t)height;
    uint8_t *to = p->begin(p->user, (uint64_t)height, (uint64_t)width), *cmyk = NULL;
    int four = space == TJCS_CMYK || space == TJCS_YCCK;
    if (to && four && count <= SIZE_MAX / 4) {
        cmyk = malloc(count * 4);
    }
    if (!to || (four && !cmyk)) {
        snprintf(p->why, p->why_size, "%s", to ? "it is too large" : "");
        return 0;
    }
    int failed = tjDecompress2(handle, p->bytes, (unsigned long)p->size, four ? cmyk : to, width, 0,
                               height, four ? TJPF_CMYK : TJPF_RGB, TJFLAG_ACCURATEDCT);
    if (failed && tjGetErrorCode(handle) != TJERR_WARNING) {
        snprintf(p->why, p->why_size, "%s", tjGetErrorStr2(handle));
    } else {
        failed = 0;
        if (four) {
            from_cmyk(cmyk, count, to);
        }
    }
    free(cmyk);
    return !failed;
}

static int decode(const nori__picture *p)
{
    tjhandle handle = tjInitDecompress();
    if (!handle) {
        snprintf(p->why, p->why_size, "%s", tjGetErrorStr2(NULL));
        return 0;
    }
    int ok = decode_with(handle, p);
    tjDestroy(handle);
    return ok;
}

const nori__module *nori_module(void)
{
    static const nori__module module = {.version = NORI__MODULE_VERSION, .decode = decode};
    return &module;
}

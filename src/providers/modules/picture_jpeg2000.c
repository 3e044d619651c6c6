/* picture_jpeg2000.c: JPEG 2000, in a JP2 file or as a bare codestream, by OpenJPEG. Subsampled
 * components are repeated, other than 8 bits are scaled, sYCC is made RGB (ITU-T T.800). */
#include <openjpeg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/modules/module.h"

typedef struct source {
    const nori__picture *picture;
    size_t at;
} source;

static OPJ_SIZE_T source_read(void *to, OPJ_SIZE_T size, void *user)
{
    source *s = user;
    size_t left = s->picture->size - s->at, n = size < left ? size : left;
    if (n == 0) {
        return (OPJ_SIZE_T)-1;
    }
    memcpy(to, s->picture->bytes + s->at, n);
    s->at += n;
    return n;
}

static OPJ_OFF_T source_skip(OPJ_OFF_T count, void *user)
{
    source *s = user;
    if (count < 0 || (uint64_t)count > s->picture->size - s->at) {
        return -1;
    }
    s->at += (size_t)count;
    return count;
}

static OPJ_BOOL source_seek(OPJ_OFF_T to, void *user)
{
    source *s = user;
    if (to < 0 || (uint64_t)to > s->picture->size) {
        return OPJ_FALSE;
    }
    s->at = (size_t)to;
    return OPJ_TRUE;
}

static void on_error(const char *text, void *user)
{
    const nori__picture *p = user;
    if (!p->why[0]) {
        snprintf(p->why, p->why_size, "%s", text);
        p->why[strcspn(p->why, "\n")] = 0;
    }
}

/* Sample of a component at a place of the whole picture, as 8 bits. */
static int sample(const opj_image_comp_t *c, uint32_t x, uint32_t y)
{
    uint32_t cx = x / c->dx, cy = y / c->dy;
    cx = cx < c->w ? cx : c->w - 1;
    cy = cy < c->h ? cy : c->h - 1;
    int64_t v = c->data[(size_t)cy * c->w + cx];
    if (c->sgnd) {
        v += (int64_t)1 << (c->prec - 1);
    }
    int64_t most = ((int64_t)1 << c->prec) - 1;
    return c->prec == 8 ? (int)v : (int)((v * 255 + most / 2) / most);
}

static uint8_t clamp(double v)
{
    return v <= 0 ? 0 : v >= 255 ? 255 : (uint8_t)(v + 0.5);
}

static int usable(const opj_image_t *image)
{
    for (uint32_t c = 0; c < (image->numcomps < 3 ? 1 : 3); c++) {
        const opj_image_comp_t *comp = &image->comps[c];
        if (!comp->data || comp->w == 0 || comp->h == 0 || comp->dx == 0 || comp->dy == 0 ||
            comp->prec == 0 || comp->prec > 31) {
            return 0;
        }
    }
    return image->numcomps > 0;
}

static int convert(const opj_image_t *image, const nori__picture *p)
{
    uint32_t width = image->x1 - image->x0, height = image->y1 - image->y0;
    if (!usable(image)) {
        snprintf(p->why, p->why_size, "it has no components that can be shown");
        return 0;
    }
    uint8_t *to = p->begin(p->user, height, width);
    if (!to) {
        return 0;
    }
    int colour = image->numcomps >= 3;
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++, to += 3) {
            int v[3];
            for (int c = 0; c < 3; c++) {
                v[c] = sample(&image->comps[colour ? c : 0], x, y);
            }
            if (colour && image->color_space == OPJ_CLRSPC_SYCC) {
                double blue = v[1] - 128, red = v[2] - 128;
                to[0] = clamp(v[0] + 1.402 * red);
                to[1] = clamp(v[0] - 0.344136 * blue - 0.714136 * red);
                to[2] = clamp(v[0] + 1.772 * blue);
                continue;
            }
            for (int c = 0; c < 3; c++) {
                to[c] = clamp(v[c]);
            }
        }
    }
    return 1;
}

static int decode_stream(opj_codec_t *codec, opj_stream_t *stream, const nori__picture *p)
{
    opj_dparameters_t parameters;
    opj_image_t *image = NULL;
    opj_set_default_decoder_parameters(&parameters);
    opj_set_error_handler(codec, on_error, (void *)(uintptr_t)p);
    int ok = opj_setup_decoder(codec, &parameters) && opj_read_header(stream, codec, &image) &&
             opj_decode(codec, stream, image) && opj_end_decompress(codec, stream) &&
             convert(image, p);
    opj_image_destroy(image);
    return ok;
}

static int decode(const nori__picture *p)
{
    source s = {p, 0};
    int bare = p->size > 1 && p->bytes[0] == 0xff && p->bytes[1] == 0x4f;
    opj_codec_t *codec = opj_create_decompress(bare ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
    opj_stream_t *stream = opj_stream_create(OPJ_J2K_STREAM_CHUNK_SIZE, OPJ_TRUE);
    int ok = 0;
    if (codec && stream) {
        opj_stream_set_user_data(stream, &s, NULL);
        opj_stream_set_user_data_length(stream, p->size);
        opj_stream_set_read_function(stream, source_read);
        opj_stream_set_skip_function(stream, source_skip);
        opj_stream_set_seek_function(stream, source_seek);
        ok = decode_stream(codec, stream, p);
    }
    if (stream) {
        opj_stream_destroy(stream);
    }
    opj_destroy_codec(codec);
    return ok;
}

const nori__module *nori_module(void)
{
    static const nori__module module = {.version = NORI__MODULE_VERSION, .decode = decode};
    return &module;
}

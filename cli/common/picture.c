/* picture.c: PNG and JPEG files as model inputs. */
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "inputs.h"

#ifdef NORI_WITH_PNG
#include <png.h>
#endif
#ifdef NORI_WITH_JPEG
#include <jerror.h>
#include <jpeglib.h>
#endif

#define MAX_PIXELS ((uint64_t)1 << 28)

typedef struct picture {
    uint32_t width, height; /* 3 bytes a pixel: red, green, blue */
    uint8_t *rgb;
} picture;

bool cli_is_picture(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (strcasecmp(dot, ".png") == 0 || strcasecmp(dot, ".jpg") == 0 ||
                   strcasecmp(dot, ".jpeg") == 0);
}

#if defined(NORI_WITH_PNG) || defined(NORI_WITH_JPEG)
static bool allocate(picture *p)
{
    if (p->width == 0 || p->height == 0 || (uint64_t)p->width * p->height > MAX_PIXELS) {
        return false;
    }
    p->rgb = malloc((size_t)p->width * p->height * 3);
    return p->rgb != NULL;
}
#endif

/* What a file's first bytes say: names lie, and a JPEG called .png is a picture all the same. */
typedef enum picture_kind { NO_PICTURE, PNG_PICTURE, JPEG_PICTURE } picture_kind;

static bool kind_of(const char *path, picture_kind *kind, nori_error *err)
{
    static const unsigned char png[] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10}, jpeg[] = {0xff, 0xd8, 0xff};
    unsigned char head[sizeof(png)];
    FILE *f = cli_open(path, false, err);
    if (!f) {
        return false;
    }
    size_t n = fread(head, 1, sizeof(head), f);
    fclose(f);
    *kind = n >= sizeof(png) && memcmp(head, png, sizeof(png)) == 0     ? PNG_PICTURE
            : n >= sizeof(jpeg) && memcmp(head, jpeg, sizeof(jpeg)) == 0 ? JPEG_PICTURE
                                                                         : NO_PICTURE;
    if (*kind == NO_PICTURE) {
        err->status = NORI_ERROR_DATA;
        snprintf(err->message, sizeof(err->message),
                 n == 0 ? "%s: the file is empty" : "%s: neither a PNG nor a JPEG picture", path);
    }
    return *kind != NO_PICTURE;
}

static bool read_png(const char *path, picture *p, nori_error *err)
{
#ifdef NORI_WITH_PNG
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_file(&image, path)) {
        snprintf(err->message, sizeof(err->message), "%s: %s", path, image.message);
        return false;
    }
    image.format = PNG_FORMAT_RGB;
    p->width = image.width;
    p->height = image.height;
    bool ok = allocate(p) && png_image_finish_read(&image, NULL, p->rgb, 0, NULL);
    if (!ok) {
        snprintf(err->message, sizeof(err->message), "%s: %s", path,
                 p->rgb ? image.message : "the picture is too large");
    }
    png_image_free(&image);
    return ok;
#else
    (void)p;
    err->status = NORI_ERROR_UNAVAILABLE;
    snprintf(err->message, sizeof(err->message), "%s: this nori was built without libpng", path);
    return false;
#endif
}

#ifdef NORI_WITH_JPEG
typedef struct jpeg_failure {
    struct jpeg_error_mgr base;
    jmp_buf back; /* libjpeg's own way of reporting errors */
    char text[JMSG_LENGTH_MAX];
} jpeg_failure;

static void jpeg_failed(j_common_ptr info)
{
    jpeg_failure *f = (jpeg_failure *)info->err;
    f->base.format_message(info, f->text);
    longjmp(f->back, 1);
}

static void jpeg_quiet(j_common_ptr info)
{
    (void)info;
}

/* libjpeg fills what is missing with gray and goes on; here a picture that is cut or damaged is an
 * error. Bytes that are too many harm nothing. */
static void jpeg_warned(j_common_ptr info, int level)
{
    const int code = info->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER ||
                      code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC)) {
        jpeg_failed(info);
    }
}
#endif

static bool read_jpeg(const char *path, picture *p, nori_error *err)
{
#ifdef NORI_WITH_JPEG
    FILE *f = cli_open(path, false, err);
    if (!f) {
        return false;
    }
    struct jpeg_decompress_struct info;
    jpeg_failure failure;
    info.err = jpeg_std_error(&failure.base);
    failure.base.error_exit = jpeg_failed;
    failure.base.output_message = jpeg_quiet;
    failure.base.emit_message = jpeg_warned;
    failure.text[0] = 0;
    if (setjmp(failure.back)) {
        snprintf(err->message, sizeof(err->message), "%s: %s", path, failure.text);
        jpeg_destroy_decompress(&info);
        fclose(f);
        return false;
    }
    jpeg_create_decompress(&info);
    jpeg_stdio_src(&info, f);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info);
    p->width = info.output_width;
    p->height = info.output_height;
    bool ok = allocate(p);
    while (ok && info.output_scanline < info.output_height) {
        JSAMPROW row = p->rgb + (size_t)info.output_scanline * p->width * 3;
        jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_destroy_decompress(&info);
    fclose(f);
    if (!ok) {
        snprintf(err->message, sizeof(err->message), "%s: the picture is too large", path);
    }
    return ok;
#else
    (void)p;
    err->status = NORI_ERROR_UNAVAILABLE;
    snprintf(err->message, sizeof(err->message), "%s: this nori was built without libjpeg", path);
    return false;
#endif
}

/* One channel at a place between pixels, half-pixel centres, edges repeated. */
static double sample(const picture *p, double x, double y, int channel)
{
    x = x < 0 ? 0 : x > p->width - 1 ? p->width - 1 : x;
    y = y < 0 ? 0 : y > p->height - 1 ? p->height - 1 : y;
    uint32_t x0 = (uint32_t)x, y0 = (uint32_t)y;
    uint32_t x1 = x0 + 1 < p->width ? x0 + 1 : x0, y1 = y0 + 1 < p->height ? y0 + 1 : y0;
    double fx = x - x0, fy = y - y0;
#define AT(px, py) (double)p->rgb[((size_t)(py) * p->width + (px)) * 3 + (size_t)channel]
    double top = AT(x0, y0) * (1 - fx) + AT(x1, y0) * fx;
    double bottom = AT(x0, y1) * (1 - fx) + AT(x1, y1) * fx;
#undef AT
    return top * (1 - fy) + bottom * fy;
}

static bool three(const cli_args *args, const char *name, double otherwise, double out[3])
{
    const char *text = cli_value(args, name);
    out[0] = out[1] = out[2] = otherwise;
    for (int i = 0; text && i < 3; i++) {
        char *end;
        out[i] = strtod(text, &end);
        bool more = i < 2 ? *end == ',' || (*end == 0 && i == 0) : *end == 0;
        if (end == text || !more || !isfinite(out[i])) {
            cli_usage(args, "%s: one or three numbers were expected, as 0.5,0.5,0.5", name);
            return false;
        }
        if (*end == 0 && i == 0) {
            out[1] = out[2] = out[0];
            return true;
        }
        text = *end ? end + 1 : end;
    }
    return true;
}

bool cli_picture_options(const cli_args *args, picture_options *o)
{
    const char *range = cli_value(args, "--range");
    if (!three(args, "--mean", 0, o->mean) || !three(args, "--std", 1, o->std)) {
        return false;
    }
    if (range && strcmp(range, "255") != 0 && strcmp(range, "1") != 0) {
        cli_usage(args, "--range \"%s\": 255 or 1 was expected", range);
        return false;
    }
    for (int i = 0; i < 3; i++) {
        if (o->std[i] == 0) {
            cli_usage(args, "--std: values are divided by it, so it cannot be 0");
            return false;
        }
    }
    o->scale = range && strcmp(range, "255") == 0 ? 1.0 : 1.0 / 255;
    o->bgr = cli_has(args, "--bgr");
    return true;
}

/* Channels, height and width of the input, and whether channels come last. */
static bool layout(const nori_value_info *info, int64_t *c, int64_t *h, int64_t *w, bool *last)
{
    int at = info->rank == 4 ? 1 : 0;
    if (info->kind != NORI_KIND_TENSOR || (info->rank != 3 && info->rank != 4)) {
        return false;
    }
    const int64_t *d = info->dims + at;
    *last = (d[2] == 1 || d[2] == 3) && d[0] != 1 && d[0] != 3;
    *c = *last ? d[2] : d[0];
    *h = *last ? d[0] : d[1];
    *w = *last ? d[1] : d[2];
    return *c == 1 || *c == 3;
}

int cli_picture_channels(const nori_value_info *info)
{
    int64_t c, h, w;
    bool last;
    return layout(info, &c, &h, &w, &last) ? (int)c : 0;
}

/* A picture of other proportions is stretched, which costs accuracy that nobody looks for there: said of
 * the first one, sides rounded to whole pixels apart. */
static void tell_stretched(const cli_args *args, const char *path, const picture *p, int64_t h, int64_t w)
{
    static bool told;
    double as_wide = (double)p->width * (double)h / (double)p->height;
    if (!told && fabs(as_wide - (double)w) > 1) {
        told = true;
        cli_warn(args, "%s: %u x %u pixels were stretched to %lld x %lld, other proportions; cut it to "
                       "them first if the model was trained so",
                 path, (unsigned)p->width, (unsigned)p->height, (long long)w, (long long)h);
    }
}

int cli_picture(const cli_args *args, const char *path, const nori_value_info *info,
                nori_tensor **tensor)
{
    nori_error err = {0};
    picture p = {0};
    int64_t c, h, w, dims[4];
    bool last;
    picture_kind kind;
    picture_options o;
    if (!cli_picture_options(args, &o)) {
        return EXIT_USAGE;
    }
    if (!layout(info, &c, &h, &w, &last)) {
        return cli_usage(args, "input \"%s\" does not look like a picture (1 or 3 channels, rank 3 "
                               "or 4): give it as .npy",
                         info->name);
    }
    if (info->type != NORI_FLOAT && info->type != NORI_UINT8) {
        return cli_usage(args, "pictures can be fed to float32 and uint8 inputs, \"%s\" has type %s",
                         info->name, nori_type_name(info->type));
    }
    if (info->type == NORI_UINT8 && (cli_has(args, "--mean") || cli_has(args, "--std") ||
                                     cli_has(args, "--range"))) {
        return cli_usage(args, "input \"%s\" takes bytes as they are: --mean, --std and --range are "
                               "for float32 inputs",
                         info->name);
    }
    if (!kind_of(path, &kind, &err)) {
        return cli_fail(args, &err);
    }
    err.status = NORI_ERROR_DATA;
    if (!(kind == PNG_PICTURE ? read_png(path, &p, &err) : read_jpeg(path, &p, &err))) {
        free(p.rgb);
        return cli_fail(args, &err);
    }
    h = h < 0 ? p.height : h;
    w = w < 0 ? p.width : w;
    tell_stretched(args, path, &p, h, w);
    int k = 0;
    if (info->rank == 4) {
        dims[k++] = 1;
    }
    dims[k++] = last ? h : c;
    dims[k++] = last ? w : h;
    dims[k++] = last ? c : w;
    err.status = NORI_OK;
    if (nori_tensor_create(NULL, info->type, info->rank, dims, tensor, &err) != NORI_OK) {
        free(p.rgb);
        return cli_fail_input(args, info, info->rank, dims, &err);
    }
    void *data = nori_tensor_data(*tensor);
    for (int64_t y = 0; y < h; y++) {
        for (int64_t x = 0; x < w; x++) {
            double sx = ((double)x + 0.5) * p.width / (double)w - 0.5;
            double sy = ((double)y + 0.5) * p.height / (double)h - 0.5;
            double v[3];
            for (int i = 0; i < 3; i++) {
                v[i] = sample(&p, sx, sy, o.bgr && c == 3 ? 2 - i : i);
            }
            if (c == 1) { /* ITU-R BT.601 luma */
                v[0] = 0.299 * v[0] + 0.587 * v[1] + 0.114 * v[2];
            }
            for (int64_t i = 0; i < c; i++) {
                int64_t at = last ? (y * w + x) * c + i : (i * h + y) * w + x;
                if (info->type == NORI_UINT8) {
                    ((uint8_t *)data)[at] = (uint8_t)lrint(v[i]);
                } else {
                    ((float *)data)[at] = (float)((v[i] * o.scale - o.mean[i]) / o.std[i]);
                }
            }
        }
    }
    free(p.rgb);
    return EXIT_YES;
}

#ifdef NORI_WITH_JPEG
/* Rows of a tensor's first picture as bytes, as they were before they became numbers. */
static void bytes_of_row(const nori_tensor *t, const picture_options *o, int64_t c, int64_t h, int64_t w,
                         bool last, int64_t y, unsigned char *row)
{
    for (int64_t x = 0; x < w; x++) {
        for (int64_t k = 0; k < c; k++) {
            int64_t from = c == 3 && o->bgr ? 2 - k : k;
            int64_t at = last ? (y * w + x) * c + from : (from * h + y) * w + x;
            double v = (nori_tensor_number(t, at) * o->std[from] + o->mean[from]) / o->scale;
            row[x * c + k] = (unsigned char)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5);
        }
    }
}

uint64_t cli_jpeg_bytes(const nori_tensor *t, const nori_value_info *info, const picture_options *o,
                        int quality)
{
    int64_t c, h, w;
    bool last;
    struct jpeg_compress_struct z;
    jpeg_failure failure;
    unsigned char *volatile row = NULL;
    unsigned char *made = NULL;
    unsigned long size = 0;
    if (!layout(info, &c, &h, &w, &last)) {
        return 0;
    }
    const int64_t *d = nori_tensor_dims(t) + nori_tensor_rank(t) - 3; /* what was free has a size there */
    c = last ? d[2] : d[0];
    h = last ? d[0] : d[1];
    w = last ? d[1] : d[2];
    if (h < 1 || w < 1 || h > JPEG_MAX_DIMENSION || w > JPEG_MAX_DIMENSION || (c != 1 && c != 3)) {
        return 0;
    }
    z.err = jpeg_std_error(&failure.base);
    failure.base.error_exit = jpeg_failed;
    failure.base.output_message = jpeg_quiet;
    row = malloc((size_t)(w * c));
    jpeg_create_compress(&z);
    if (!row || setjmp(failure.back)) {
        jpeg_destroy_compress(&z);
        free(row);
        return 0;
    }
    jpeg_mem_dest(&z, &made, &size);
    z.image_width = (JDIMENSION)w;
    z.image_height = (JDIMENSION)h;
    z.input_components = (int)c;
    z.in_color_space = c == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(&z);
    jpeg_set_quality(&z, quality, TRUE);
    jpeg_start_compress(&z, TRUE);
    for (int64_t y = 0; y < h; y++) {
        JSAMPROW line = row;
        bytes_of_row(t, o, c, h, w, last, y, row);
        jpeg_write_scanlines(&z, &line, 1);
    }
    jpeg_finish_compress(&z);
    jpeg_destroy_compress(&z);
    free(row);
    free(made);
    return size;
}
#else
uint64_t cli_jpeg_bytes(const nori_tensor *t, const nori_value_info *info, const picture_options *o,
                        int quality)
{
    (void)t, (void)info, (void)o, (void)quality;
    return 0;
}
#endif

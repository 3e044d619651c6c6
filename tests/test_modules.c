/* test_modules.c: ImageDecoder and RegexFullMatch, whose work operator modules do, and what is said
 * where a module is missing. Tests of modules that were not built skip. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "op_harness.h"
#include "picture_data.h"
#include "providers/modules/module_load.h"
#include "wire.h"

#define T(...) ((const char *const[]){__VA_ARGS__})

static const uint8_t six[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30, 128, 128, 128, 255, 255, 255};

/* NORI_TEST_MODULES lists the modules of this build: " png jpeg ". */
static bool built(const char *module)
{
    char word[32];
    snprintf(word, sizeof(word), " %s ", module);
    if (strstr(NORI_TEST_MODULES, word)) {
        return true;
    }
    print_message("nori-%s.so was not built: not tested\n", module);
    return false;
}

static void need(const char *module)
{
    if (!built(module)) {
        skip();
    }
}

static void picture(op *o, const void *bytes, size_t size, const char *layout)
{
    char shape[32];
    op_begin(o, "", "ImageDecoder", 20);
    if (layout) {
        op_text(o, "pixel_format", layout);
    }
    snprintf(shape, sizeof(shape), "%zu", size);
    op_in(o, NORI_UINT8, shape, NULL);
    if (size > 0) {
        memcpy(o->in[0]->data, bytes, size);
    }
}

static void decodes(const void *bytes, size_t size, const char *layout, const char *shape,
                    const uint8_t *want)
{
    op o;
    picture(&o, bytes, size, layout);
    const nori_tensor *t = op_out(&o, 0, NORI_UINT8, shape);
    for (int64_t i = 0; i < t->count; i++) {
        if (((const uint8_t *)t->data)[i] != want[i]) {
            fail_msg("sample %d is %d, expected %d", (int)i, ((const uint8_t *)t->data)[i], want[i]);
        }
    }
    op_end(&o);
}

static void decodes_hex(const char *hex, const char *shape, const uint8_t *want)
{
    uint8_t bytes[2048];
    decodes(bytes, wire_hex(hex, bytes, sizeof(bytes)), NULL, shape, want);
}

static void fails(const void *bytes, size_t size, nori_status status, const char *says)
{
    op o;
    picture(&o, bytes, size, NULL);
    assert_int_equal(op_status(&o), status);
    if (!strstr(o.err.message, says)) {
        fail_msg("\"%s\" does not say \"%s\"", o.err.message, says);
    }
    op_end(&o);
}

/* Every cut and many a wrong byte: an error or a picture, never a crash. */
static void survives(const uint8_t *bytes, size_t size)
{
    uint8_t broken[2048];
    for (size_t cut = 0; cut < size; cut += 1 + size / 60) {
        op o;
        picture(&o, bytes, cut, NULL);
        op_status(&o);
        op_end(&o);
        memcpy(broken, bytes, size);
        broken[cut] ^= 0xff;
        picture(&o, broken, size, NULL);
        op_status(&o);
        op_end(&o);
    }
}

static void png_pictures(void **state)
{
    (void)state;
    need("png");
    decodes_hex(png, "2x3x3", six);
    decodes_hex(png_alpha, "2x3x3", six); /* dropped, not blended */
    uint8_t bytes[2048];
    survives(bytes, wire_hex(png, bytes, sizeof(bytes)));
}

static void jpeg_pictures(void **state)
{
    (void)state;
    need("jpeg");
    uint8_t bytes[2048];
    for (int i = 0; i < 2; i++) {
        op o;
        size_t size = wire_hex(i ? jpeg_cmyk : jpeg, bytes, sizeof(bytes));
        const int want[2][3] = {{200, 100, 50}, {100, 50, 25}}; /* 200 * 128 / 255 ... */
        picture(&o, bytes, size, NULL);
        const uint8_t *p = op_out(&o, 0, NORI_UINT8, "8x8x3")->data;
        for (int k = 0; k < 192; k++) {
            assert_in_range(p[k], want[i][k % 3] - 2, want[i][k % 3] + 2);
        }
        op_end(&o);
        survives(bytes, size);
    }
}

static void other_pictures(void **state)
{
    static const struct {
        const char *module, *hex;
    } kinds[] = {{"tiff", tiff}, {"webp", webp}, {"jpeg2000", jp2}, {"jpeg2000", j2k}};
    (void)state;
    for (size_t i = 0; i < NORI__COUNT(kinds); i++) {
        uint8_t bytes[2048];
        if (built(kinds[i].module)) {
            decodes_hex(kinds[i].hex, "2x3x3", six);
            survives(bytes, wire_hex(kinds[i].hex, bytes, sizeof(bytes)));
        }
    }
}

/* ---- BMP ---- */

static void put(uint8_t *p, uint32_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        p[i] = (uint8_t)(v >> (8 * i));
    }
}

/* Headers of a bitmap of 3 x 2 whose pixels begin at byte 14 + 40 + extra. */
static size_t bmp(uint8_t *p, int32_t height, uint32_t bits, uint32_t compression, uint32_t colours,
                  size_t extra)
{
    memset(p, 0, 14 + 40 + extra);
    p[0] = 'B';
    p[1] = 'M';
    put(p + 10, (uint32_t)(54 + extra), 4);
    put(p + 14, 40, 4);
    put(p + 18, 3, 4);
    put(p + 22, (uint32_t)height, 4);
    put(p + 26, 1, 2);
    put(p + 28, bits, 2);
    put(p + 30, compression, 4);
    put(p + 46, colours, 4);
    return 54 + extra;
}

static void bitmaps(void **state)
{
    (void)state;
    uint8_t b[256];
    static const uint8_t grey[] = {76, 150, 29, 18, 128, 255}; /* ITU-R BT.601 of the six */
    static const uint8_t swapped[] = {0, 0, 255, 0, 255, 0, 255, 0, 0,
                                      30, 20, 10, 128, 128, 128, 255, 255, 255};
    for (int down = 0; down < 2; down++) { /* rows from the bottom, then from the top */
        size_t n = bmp(b, down ? -2 : 2, 24, 0, 0, 0);
        for (int y = 0; y < 2; y++) {
            const uint8_t *row = six + 9 * (down ? y : 1 - y);
            for (int k = 0; k < 9; k++) {
                b[n + (size_t)k] = row[k - k % 3 + 2 - k % 3];
            }
            memset(b + n + 9, 0xee, 3); /* rows fill four bytes */
            n += 12;
        }
        decodes(b, n, "RGB", "2x3x3", six);
        decodes(b, n, "BGR", "2x3x3", swapped);
        decodes(b, n, "Grayscale", "2x3x1", grey);
        fails(b, n - 1, NORI_ERROR_DATA, "cut off");
    }
    for (uint32_t bits = 1; bits <= 8; bits *= 2) {
        if (bits == 2) {
            continue;
        }
        size_t n = bmp(b, -2, bits, 0, 2, 8);
        memcpy(b + 54, (uint8_t[]){3, 2, 1, 0, 30, 20, 10, 0}, 8); /* (1, 2, 3), (10, 20, 30) */
        static const uint8_t rows[3][2][3] = {{{0x40}, {0xa0}}, {{0x01, 0x00}, {0x10, 0x10}},
                                              {{0, 1, 0}, {1, 0, 1}}};
        for (int y = 0; y < 2; y++, n += 4) {
            memset(b + n, 0, 4);
            memcpy(b + n, rows[bits == 1 ? 0 : bits == 4 ? 1 : 2][y], 3);
        }
        decodes(b, n, NULL, "2x3x3",
                (uint8_t[]){1, 2, 3, 10, 20, 30, 1, 2, 3, 10, 20, 30, 1, 2, 3, 10, 20, 30});
    }
    size_t n = bmp(b, -2, 16, 3, 0, 12); /* 5, 6 and 5 bits */
    put(b + 54, 0xf800, 4);
    put(b + 58, 0x07e0, 4);
    put(b + 62, 0x001f, 4);
    for (int y = 0; y < 2; y++, n += 8) {
        put(b + n, 0xf800, 2);
        put(b + n + 2, 0x07e0, 2);
        put(b + n + 4, 0x8410, 2);
        put(b + n + 6, 0, 2);
    }
    decodes(b, n, NULL, "2x3x3",
            (uint8_t[]){255, 0, 0, 0, 255, 0, 132, 130, 132, 255, 0, 0, 0, 255, 0, 132, 130, 132});
    n = bmp(b, -2, 32, 0, 0, 0);
    for (int k = 0; k < 6; k++, n += 4) {
        put(b + n, (uint32_t)six[3 * k] << 16 | (uint32_t)six[3 * k + 1] << 8 | six[3 * k + 2], 4);
    }
    decodes(b, n, NULL, "2x3x3", six);
    survives(b, n);
    bmp(b, -2, 8, 1, 0, 0);
    fails(b, 54, NORI_ERROR_DATA, "compressed");
    bmp(b, INT32_MAX, 24, 0, 0, 0);
    put(b + 18, INT32_MAX, 4);
    fails(b, 54, NORI_ERROR_DATA, "cut off");
}

/* ---- PBM, PGM, PPM ---- */

static void portable(const char *text, size_t size, const char *shape, const uint8_t *want)
{
    decodes(text, size, NULL, shape, want);
    uint8_t bytes[2048];
    memcpy(bytes, text, size);
    survives(bytes, size);
}
#define PORTABLE(text, shape, ...) \
    portable(text, sizeof(text) - 1, shape, (const uint8_t[]){__VA_ARGS__})

static void portable_pictures(void **state)
{
    (void)state;
    PORTABLE("P1 # a comment\n2 2\n10\n0 1", "2x2x3", 0, 0, 0, 255, 255, 255, 255, 255, 255, 0, 0, 0);
    PORTABLE("P4\n9 1\n\x80\x80", "1x9x3", 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
             255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0);
    PORTABLE("P2 2 1 15 0 15", "1x2x3", 0, 0, 0, 255, 255, 255);
    PORTABLE("P5 2 1 255\n\x07\xff", "1x2x3", 7, 7, 7, 255, 255, 255);
    PORTABLE("P5 1 1 65535\n\x80\x80", "1x1x3", 128, 128, 128);
    PORTABLE("P3 1 1 255 1 2 3", "1x1x3", 1, 2, 3);
    PORTABLE("P6 1 1 255\n\x01\x02\x03", "1x1x3", 1, 2, 3);
    fails("P6 2 1 255\n\x01\x02\x03", 14, NORI_ERROR_DATA, "cut off");
    fails("P5 99999 99999 255\n", 19, NORI_ERROR_DATA, "cut off");
    fails("P2 99999 99999 255 1", 20, NORI_ERROR_LIMIT, "pixels");
    fails("hello, world", 12, NORI_ERROR_DATA, "no picture that is known");
    fails("", 0, NORI_ERROR_DATA, "no picture that is known");
}

/* ---- regular expressions ---- */

static void matches(const char *pattern, const char *text, bool want)
{
    op o;
    op_begin(&o, "", "RegexFullMatch", 20);
    op_text(&o, "pattern", pattern);
    op_in_text(&o, "1", T(text));
    const uint8_t *is = op_out(&o, 0, NORI_BOOL, "1")->data;
    if (is[0] != want) {
        fail_msg("\"%s\" %s \"%s\"", pattern, want ? "does not match" : "matches", text);
    }
    op_end(&o);
}

static void regex_fails(const char *pattern, const char *says)
{
    op o;
    op_begin(&o, "", "RegexFullMatch", 20);
    op_text(&o, "pattern", pattern);
    op_in_text(&o, "1", T("a"));
    assert_int_equal(op_status(&o), NORI_ERROR_MODEL);
    if (!strstr(o.err.message, says)) {
        fail_msg("\"%s\" does not say \"%s\"", o.err.message, says);
    }
    op_end(&o);
}

static void full_matches(void **state)
{
    (void)state;
    need("regex");
    matches("www\\.[\\w.-]+\\.com", "www.example.com", true);
    matches("www\\.[\\w.-]+\\.com", "see www.example.com", false); /* the whole text only */
    matches("a|ab", "ab", true); /* a later alternative counts */
    matches("a*?", "aaa", true);
    matches("", "", true);
    matches("", "a", false);
    matches("a$", "a\n", false); /* $ is the end of the text */
    matches(".", "\n", false);
    matches("(?s).", "\n", true);
    matches(".", "\xc3\xa9", true); /* a character, not a byte */
    matches("\\w", "\xc3\xa9", false);
    matches("(?i)ABC", "abc", true);
    matches("(?P<year>\\d{4})", "2024", true);
    matches("[]a]+[^]b]", "]ac", true);
    matches("\\Q(?=\\E", "(?=", true);
    matches("[(?=]", "=", true);
    matches(".", "\xff", false); /* not UTF-8 */
    /* What takes a backtracking matcher ages. */
    matches("(a*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false);
    regex_fails("(", "byte 1");
    regex_fails("(?=a)a", "look-around");
    regex_fails("(?<!a)a", "look-around");
    regex_fails("(a)\\1", "reference back");
    regex_fails("a++", "possessive");
    regex_fails("(?>a)", "other than RE2's");
    regex_fails("\\Ka", "escape");
    regex_fails("(*UCP)a", "verb");
}

static void strings_of_any_shape(void **state)
{
    (void)state;
    need("regex");
    op o;
    op_begin(&o, "", "RegexFullMatch", 20);
    op_text(&o, "pattern", "a+");
    op_in_text(&o, "2x2", T("a", "", "aa", "ab"));
    op_expect(&o, 0, NORI_BOOL, "2x2", (double[]){1, 0, 1, 0}, 0);
    op_end(&o);
    op_begin(&o, "", "RegexFullMatch", 20);
    op_text(&o, "pattern", "a+");
    op_in(&o, NORI_STRING, "0", NULL);
    op_expect(&o, 0, NORI_BOOL, "0", NULL, 0);
    op_end(&o);
}

/* ---- where modules come from ---- */

static void absent_modules_are_named(void **state)
{
    const nori__module *module;
    nori_error err = {0};
    char *before = getenv("NORI_MODULES"), kept[4096];
    (void)state;
    snprintf(kept, sizeof(kept), "%s", before ? before : "");
    setenv("NORI_MODULES", "/nowhere/at/all", 1);
    assert_int_equal(nori__module_get("webp", &module, &err), NORI_ERROR_UNAVAILABLE);
    assert_null(module);
    assert_non_null(strstr(err.message, "nori-webp.so"));
    assert_non_null(strstr(err.message, "/nowhere/at/all"));
    assert_non_null(strstr(err.hint, "libwebp"));
    setenv("NORI_MODULES", kept, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_modules_are_named), /* before one is loaded, and kept */
        cmocka_unit_test(png_pictures),
        cmocka_unit_test(jpeg_pictures),
        cmocka_unit_test(other_pictures),
        cmocka_unit_test(bitmaps),
        cmocka_unit_test(portable_pictures),
        cmocka_unit_test(full_matches),
        cmocka_unit_test(strings_of_any_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

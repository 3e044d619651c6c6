/* test_ms_nbits.c: com.microsoft MatMulNBits and GatherBlockQuantized against weights that the test
 * packs and unpacks itself: every width, block size, inner size and kind of zero point. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "op_harness.h"

#define MS "com.microsoft"
#define V(...) ((const double[]){__VA_ARGS__})

enum zero_kind { ZERO_NONE, ZERO_PACKED, ZERO_PLAIN, ZERO_KINDS };

/* A small generator, so that the values are the same everywhere. */
static uint32_t drawn;
static int draw(int below)
{
    drawn = drawn * 1664525u + 1013904223u;
    return (int)((drawn >> 8) % (uint32_t)below);
}

static void put_bits(uint8_t *bytes, int i, int bits, int v)
{
    int shift = i * bits % 8;
    bytes[i * bits / 8] |= (uint8_t)(v << shift);
}

static char *shape_text(char *out, size_t size, int a, int b, int c)
{
    if (c > 0) {
        snprintf(out, size, "%dx%dx%d", a, b, c);
    } else {
        snprintf(out, size, "%dx%d", a, b);
    }
    return out;
}

/* One product of 2 x k by k x n. */
static void product(nori_type type, int bits, int block, int k, int n, enum zero_kind zeros,
                    bool grouped, bool bias)
{
    int blocks = (k + block - 1) / block, blob = block * bits / 8, row = (blocks * bits + 7) / 8;
    double *a = calloc((size_t)k * 2, sizeof *a), *want = calloc((size_t)n * 2, sizeof *want);
    double *scales = calloc((size_t)(n * blocks), sizeof *scales);
    double *plain = calloc((size_t)(n * blocks), sizeof *plain), add[8], *group;
    int *zero = calloc((size_t)(n * blocks), sizeof *zero);
    nori_tensor *b, *packed;
    char text[64];
    op o;
    group = calloc((size_t)k, sizeof *group);
    op_begin(&o, MS, "MatMulNBits", 1);
    b = op_tensor(NORI_UINT8, shape_text(text, sizeof text, n, blocks, blob), NULL);
    packed = op_tensor(NORI_UINT8, shape_text(text, sizeof text, n, row, 0), NULL);
    memset(b->data, 0, b->bytes);
    memset(packed->data, 0, packed->bytes);
    for (int i = 0; i < 2 * k; i++) {
        a[i] = draw(33) / 16.0 - 1; /* exact in every type */
    }
    for (int i = 0; i < n * blocks; i++) {
        scales[i] = (1 + draw(16)) / 64.0;
        zero[i] = zeros == ZERO_NONE ? 1 << (bits - 1) : draw(1 << bits);
        plain[i] = zero[i];
        put_bits((uint8_t *)packed->data + i / blocks * row, i % blocks, bits, zero[i]);
    }
    for (int i = 0; i < k; i++) {
        group[i] = grouped ? draw(blocks) : i / block;
    }
    for (int c = 0; c < n; c++) {
        add[c] = bias ? c - 1.5 : 0;
        want[c] = want[n + c] = add[c];
        for (int i = 0; i < blocks * block; i++) {
            int q = draw(1 << bits); /* what lies behind k must not count */
            put_bits((uint8_t *)b->data + (c * blocks + i / block) * blob, i % block, bits, q);
            if (i < k) {
                int g = c * blocks + (int)group[i];
                want[c] += a[i] * (q - zero[g]) * scales[g];
                want[n + c] += a[k + i] * (q - zero[g]) * scales[g];
            }
        }
    }
    op_in(&o, type, shape_text(text, sizeof text, 2, k, 0), a);
    op_give(&o, b);
    op_in(&o, type, shape_text(text, sizeof text, n, blocks, 0), scales);
    if (zeros == ZERO_PLAIN) {
        op_in(&o, type, text, plain);
    } else {
        op_give(&o, zeros == ZERO_PACKED ? packed : NULL);
    }
    if (grouped) {
        snprintf(text, sizeof text, "%d", k);
        op_in(&o, NORI_INT32, text, group);
    } else {
        op_give(&o, NULL);
    }
    if (bias) {
        snprintf(text, sizeof text, "%d", n);
        op_in(&o, type, text, add);
    }
    op_int(&o, "K", k);
    op_int(&o, "N", n);
    op_int(&o, "block_size", block);
    if (bits != 4) { /* the default */
        op_int(&o, "bits", bits);
    }
    shape_text(text, sizeof text, 2, n, 0);
    op_expect(&o, 0, type, text, want, type == NORI_FLOAT ? 1e-6 : type == NORI_FLOAT16 ? 1e-3 : 8e-3);
    op_end(&o);
    if (zeros != ZERO_PACKED) {
        nori_tensor_free(packed);
    }
    free(a);
    free(want);
    free(scales);
    free(plain);
    free(zero);
    free(group);
}

static void every_width_and_block(void **state)
{
    static const int widths[] = {2, 4, 8};
    (void)state;
    drawn = 7;
    for (int w = 0; w < 3; w++) {
        for (int block = 16; block <= 1024; block *= 2) {
            for (int z = 0; z < ZERO_KINDS; z++) {
                /* an odd number of blocks, an even one, less than one; whole and not whole */
                product(NORI_FLOAT, widths[w], block, 3 * block, 3, z, false, z == 1);
                product(NORI_FLOAT, widths[w], block, block + 5, 2, z, false, false);
                product(NORI_FLOAT, widths[w], block, 2 * block + 7, 3, z, true, true);
                product(NORI_FLOAT16, widths[w], block, 11, 2, z, false, true);
            }
        }
    }
    product(NORI_BFLOAT16, 4, 32, 5, 2, ZERO_PLAIN, false, false);
}

static void nbits(op *o, int64_t bits, int64_t block, int64_t packed)
{
    op_begin(o, MS, "MatMulNBits", 1);
    op_in(o, NORI_FLOAT, "1x16", NULL);
    op_in(o, NORI_UINT8, "1x1x8", NULL);
    op_in(o, NORI_FLOAT, "1x1", NULL);
    op_int(o, "K", 16);
    op_int(o, "N", 1);
    op_int(o, "bits", bits);
    op_int(o, "block_size", block);
    op_int(o, "weight_prepacked", packed);
}

static void infer_fails(op *o, nori_status status, const char *text)
{
    static nori__shape s[2 * OP_MOST];
    nori__infer c = {.node = &o->node, .in = s, .out = s + OP_MOST, .err = &o->err};
    op__shapes(o, true, s);
    assert_int_equal(o->node.op->infer(&c), status);
    if (!strstr(o->err.message, text)) {
        print_error("\"%s\" does not say \"%s\"\n", o->err.message, text);
        fail();
    }
    op_end(o);
}

static void what_does_not_run_is_refused(void **state)
{
    (void)state;
    op o;
    nbits(&o, 3, 16, 0);
    infer_fails(&o, NORI_ERROR_UNSUPPORTED, "bits 3");
    assert_non_null(strstr(o.err.hint, "2, 4 and 8"));
    nbits(&o, 4, 24, 0);
    infer_fails(&o, NORI_ERROR_MODEL, "block_size is 24");
    nbits(&o, 4, 16, 1);
    infer_fails(&o, NORI_ERROR_UNSUPPORTED, "weight_prepacked 1");
    nbits(&o, 8, 16, 0); /* 8 bits need 16 bytes a block */
    infer_fails(&o, NORI_ERROR_MODEL, "input 1 (B) has 8 elements, expected 16");
    nbits(&o, 4, 16, 0);
    op_give(&o, NULL);
    op_in(&o, NORI_INT32, "16", V(0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0));
    /* inference with nothing known must not fail, so only running finds the group */
    nori_tensor *y = op_tensor(NORI_FLOAT, "1x1", NULL);
    nori_call call = {.node = &o.node, .n_in = o.node.input_count, .n_out = 1,
                      .in = (const nori_tensor *const *)o.in, .out = &y,
                      .allocator = &nori__malloc, .threads = 1, .err = &o.err};
    assert_int_equal(o.node.op->reference(&call), NORI_ERROR_DATA);
    assert_non_null(strstr(o.err.message, "group 1"));
    nori_tensor_free(y);
    op_end(&o);
}

static void gathers_blocks(void **state)
{
    (void)state;
    op o;
    /* int4, blocks of 16 along axis 0: rows 0 to 15 share a scale, 16 and 17 the next. */
    double data[36], want[4];
    for (int i = 0; i < 36; i++) {
        data[i] = i % 16 - 8;
    }
    op_begin(&o, MS, "GatherBlockQuantized", 1);
    op_in(&o, NORI_INT4, "18x2", data);
    op_in(&o, NORI_INT64, "2", V(3, -1));
    op_in(&o, NORI_FLOAT, "2x2", V(1, 2, 4, 0.5));
    op_in(&o, NORI_INT4, "2x2", V(1, 0, -2, 3));
    op_int(&o, "block_size", 16);
    op_int(&o, "quantize_axis", 0);
    want[0] = (data[6] - 1) * 1;
    want[1] = data[7] * 2;
    want[2] = (data[34] + 2) * 4;
    want[3] = (data[35] - 3) * 0.5;
    op_expect(&o, 0, NORI_FLOAT, "2x2", want, 0);
    op_end(&o);
    /* Two values a byte, low one first; without zero points 8 is taken off. */
    double bytes[16] = {0x21, 0x43}, row[32];
    for (int i = 0; i < 32; i++) {
        row[i] = -8 * (i < 16 ? 1 : 10);
    }
    row[0] = 1 - 8;
    row[1] = 2 - 8;
    row[2] = 3 - 8;
    row[3] = 4 - 8;
    op_begin(&o, MS, "GatherBlockQuantized", 1);
    op_in(&o, NORI_UINT8, "1x16", bytes);
    op_in(&o, NORI_INT32, "", V(0));
    op_in(&o, NORI_FLOAT16, "1x2", V(1, 10));
    op_int(&o, "block_size", 16);
    op_expect(&o, 0, NORI_FLOAT16, "32", row, 0);
    op_end(&o);
    /* Two bits, packed zero points: 1 for the first block, 3 for the second. */
    double fours[8] = {0xe4}, zero[1] = {0x0d}, quarter[32];
    for (int i = 0; i < 32; i++) {
        quarter[i] = (i < 4 ? i : 0) - (i < 16 ? 1 : 3);
    }
    op_begin(&o, MS, "GatherBlockQuantized", 1);
    op_in(&o, NORI_UINT8, "1x8", fours);
    op_in(&o, NORI_INT64, "1", V(0));
    op_in(&o, NORI_FLOAT, "1x2", V(1, 1));
    op_in(&o, NORI_UINT8, "1x1", zero);
    op_int(&o, "block_size", 16);
    op_int(&o, "bits", 2);
    op_expect(&o, 0, NORI_FLOAT, "1x32", quarter, 0);
    op_end(&o);
}

static void gathers_floats_and_refuses(void **state)
{
    (void)state;
    op o;
    op_begin(&o, MS, "GatherBlockQuantized", 1); /* block_size 0: a scale a row; one for all rows */
    op_in(&o, NORI_FLOAT8E4M3FN, "2x2", V(1, -2, 0.5, 4));
    op_in(&o, NORI_INT64, "3", V(1, 5, 0)); /* 5 is outside: zeros, by the operator's text */
    op_in(&o, NORI_FLOAT, "1x1", V(3));
    op_int(&o, "block_size", 0);
    op_expect(&o, 0, NORI_FLOAT, "3x2", V(1.5, 12, 0, 0, 3, -6), 0);
    op_end(&o);
    op_begin(&o, MS, "GatherBlockQuantized", 1);
    op_in(&o, NORI_UINT8, "4x16", NULL);
    op_in(&o, NORI_INT64, "1", V(0));
    op_in(&o, NORI_FLOAT, "4x1", NULL);
    op_int(&o, "gather_axis", 1);
    infer_fails(&o, NORI_ERROR_UNSUPPORTED, "gather_axis 1");
    op_begin(&o, MS, "GatherBlockQuantized", 1);
    op_in(&o, NORI_UINT4, "4x16", NULL);
    op_in(&o, NORI_INT64, "1", V(0));
    op_in(&o, NORI_FLOAT, "4x1", NULL);
    op_int(&o, "block_size", 8);
    infer_fails(&o, NORI_ERROR_MODEL, "block_size is 8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_width_and_block),
        cmocka_unit_test(what_does_not_run_is_refused),
        cmocka_unit_test(gathers_blocks),
        cmocka_unit_test(gathers_floats_and_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

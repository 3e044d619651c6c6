/* kernels.h: micro-kernels: raw pointers, sizes, strides; no allocation, no thread, no error.
 *
 * One table. Plain C (base_*.c) fills it first, then each level the CPU has overwrites what it does
 * better (x86/avx2_*.c ...). Sizes are elements unless a name says bytes. Sums have a fixed order
 * at a level; levels may differ in the last bits of float results, never in integer results.
 * Pointers need the alignment of their type only. No kernel reads or writes past what it is given,
 * except where "slack" is spoken of. */
#ifndef NORI_KERNELS_KERNELS_H
#define NORI_KERNELS_KERNELS_H

#include "platform/platform.h"

/* Largest tiles of any level: for scratch of fixed size. */
#define NORI__MR_MAX 16
#define NORI__NR_MAX 64
#define NORI__BLOCK_MAX 16
#define NORI__U8_LINES_MAX 32
#define NORI__U8_BLOCKS_MAX 4
/* Output channels a block of packed 8-bit weights. */
#define NORI__U8_BLOCK 16

/* What happens to a tile's sums on their way to c. */
typedef struct nori__f32_finish {
    const float *row; /* added to each row (one value a row), or NULL */
    const float *col; /* added to each column, or NULL */
    const float *add; /* added to each element, or NULL; may be c itself */
    size_t ld_add;    /* its row stride */
    bool clamp;       /* limit to [low, high] at last; NaN stays */
    float low, high;
    const void *fetch; /* f32_tile: what lies here is asked for, into the second cache, fetch_step */
    size_t fetch_step; /* bytes a step of k, two lines (128) at most; nothing is read. NULL: none */
} nori__f32_finish;

/* What happens to the sums of a tile over channel blocks. Blocks lie y_block apart in y and add, one
 * after the other in bias. */
typedef struct nori__block_finish {
    const float *bias; /* what sums start from; NULL: from what y holds */
    const float *add;  /* added at last, laid out like y, or NULL; may not overlap y */
    bool clamp;        /* then limit to [low, high]; NaN stays */
    float low, high;
    size_t step;       /* tiles: floats between pixels of y and add; 0: they are neighbours */
} nori__block_finish;

/* Sixteen output channels of signed 8-bit weights; see u8_tile. */
typedef struct nori__u8_block {
    const int8_t *w;    /* [terms][quads][16][4] */
    const int8_t *rest; /* [rests][16][4]: added to the weights of single quads */
    const uint32_t *at; /* the quads of rests: [rests][2], term and number in it */
    size_t rests;
} nori__u8_block;

/* What becomes of sums of bytes times weights. start, scale, shift hold whole blocks. */
typedef struct nori__u8_finish {
    enum { NORI__U8_SUMS, NORI__U8_BYTES, NORI__U8_FLOATS } form;
    const int32_t *start;     /* what sums start from, one a channel */
    const float *scale;       /* one a channel */
    const float *shift;       /* FLOATS: added at last, one a channel, or NULL */
    float low, high;          /* BYTES: sum * scale is limited to these (whole numbers), */
    int32_t zero;             /* rounded half to even, and this is added */
    size_t channels;          /* that are stored; at most those of the blocks */
} nori__u8_finish;

/* Two 8-bit operands with their zero points; what their real values are divided by. */
typedef struct nori__q8_pair {
    float a_scale, b_scale, y_scale; /* q8_mul: only y_scale, what the product is multiplied by */
    int32_t a_zero, b_zero, y_zero;
    bool is_signed; /* all three */
} nori__q8_pair;

/* A window over a plane of pixels, each a vector of channels; [0] is height, [1] width. */
typedef struct nori__block_window {
    size_t in[2], out[2], kernel[2], stride[2], dilation[2], begin[2]; /* begin: pads before */
} nori__block_window;

/* Where an output of linear resizing looks along an axis. */
typedef struct nori__linear_tap {
    size_t at[2];
    float weight[2];
} nori__linear_tap;

/* The part of a 6 x 6 patch that lies inside the input: rows [row[0], row[1]), columns likewise. */
typedef struct nori__block_patch {
    size_t row[2], col[2];
} nori__block_patch;

/* One-argument functions; p holds the parameters named. Largest errors against exact values, over
 * all finite floats, are stated in base_unary.c and checked in tests/test_kernels.c. */
typedef enum nori__unary {
    NORI__U_RELU,
    NORI__U_LEAKY,       /* p[0]: slope below 0 */
    NORI__U_CLAMP,       /* p[0], p[1]: low, high; NaN stays */
    NORI__U_HARDSIGMOID, /* max(0, min(1, p[0] x + p[1])) */
    NORI__U_HARDSWISH,   /* x * hardsigmoid(x) with 1/6 and 0.5 */
    NORI__U_SIGMOID,
    NORI__U_TANH,
    NORI__U_EXP,
    NORI__U_ERF,
    NORI__U_GELU,        /* x/2 (1 + erf(x / sqrt 2)) */
    NORI__U_GELU_TANH,   /* the approximation with tanh */
    NORI__U_SILU,        /* x sigmoid(p[0] x) */
    NORI__U_ELU,         /* p[0] (e^x - 1) below 0 */
    NORI__U_SQRT,
    NORI__U_RECIPROCAL,
    NORI__U_NEG,
    NORI__U_ABS,
    NORI__U_AFFINE,      /* p[0] x + p[1], rounded twice */
    NORI__U_COUNT
} nori__unary;

typedef enum nori__binary {
    NORI__B_ADD,
    NORI__B_SUB,
    NORI__B_MUL,
    NORI__B_DIV,
    NORI__B_MAX, /* NaN if either is */
    NORI__B_MIN,
    NORI__B_COUNT
} nori__binary;

typedef struct nori__kernels {
    nori__cpu_level level;

    /* ---- float products (base_gemm.c) ----
     * B stands in panels of nr columns, b[k][nr], filled up with zeros (or anything: columns past
     * the end are not stored). Element (i, p) of A is a[i * a_row + p * a_k]: rows or columns of a
     * matrix as they are, or panels of mr rows, a[k][mr]. */
    size_t f32_mr, f32_nr;
    size_t f32_depth; /* steps of k that a product is best cut into, at most, and the bytes of B */
    size_t f32_near;  /* that stay in the second cache while rows go by, with a quarter of it of A */
    /* c[rows][cols] = finish(a * b); rows <= mr, cols <= nr; c has row stride ldc. */
    void (*f32_tile)(size_t rows, size_t cols, size_t k, const float *a, size_t a_row, size_t a_k,
                     const float *b, float *c, size_t ldc, const nori__f32_finish *finish);
    /* One panel: out[k][width] = in[k * k_step + j * step], j < count <= width; else 0. in may stand
     * at any address. */
    void (*f32_pack)(size_t width, size_t k, size_t count, const float *in, size_t k_step,
                     size_t step, float *out);
    /* One panel of nr columns gathered from an image: column j of row k is
     * x[offset[k] + where[s] + (j - from[s]) * step] for the piece s that j lies in
     * (from[s] <= j < from[s + 1], from[0] = 0). Up to nr columns past from[s] are read and
     * written: x needs slack of nr * step elements, out of nr elements. */
    void (*f32_patches)(size_t k, const int64_t *offset, const float *x, size_t pieces,
                        const size_t *from, const int64_t *where, size_t step, float *out);
    /* y[rows][n] = finish(x * b), rows <= 4, b: ceil(n / nr) panels of depth k, each read once. */
    void (*f32_few_rows)(size_t rows, size_t n, size_t k, const float *x, size_t ldx,
                         const float *b, float *y, size_t ldy, const nori__f32_finish *finish);

    /* ---- integer products (base_int8.c) ----
     * 8-bit values minus their zero point fit 9 bits; as int16 in pairs along k they multiply and
     * add exactly. Panels: a[k / 2][mr][2], b[k / 2][nr][2]. Sums wrap modulo 2^32. */
    size_t s16_mr, s16_nr;
    void (*s16_tile)(size_t rows, size_t cols, size_t pairs, const int16_t *a, const int16_t *b,
                     int32_t *c, size_t ldc, bool add);
    /* One panel out[ceil(k / 2)][width][2] of in[k * k_step + j * step] - zero, j < count; else 0.
     * is_signed: in holds int8_t, else uint8_t. */
    void (*s16_pack)(size_t width, size_t k, size_t count, const void *in, size_t k_step,
                     size_t step, bool is_signed, int32_t zero, int16_t *out);
    /* out = saturate(round_half_even((in + bias) * scale) + zero). */
    void (*requantize)(size_t n, const int32_t *in, int32_t bias, float scale, int32_t zero,
                       bool is_signed, void *out);
    /* The same with a scale and a bias (NULL: 0) an element. */
    void (*requantize_each)(size_t n, const int32_t *in, const int32_t *bias, const float *scale,
                            int32_t zero, bool is_signed, void *out);
    /* saturate(round_half_even(x / scale) + zero); NaN gives the lowest. */
    void (*quantize)(size_t n, const float *x, float scale, int32_t zero, bool is_signed,
                     void *out);
    void (*dequantize)(size_t n, const void *in, bool is_signed, int32_t zero, float scale,
                       float *y); /* (in - zero) * scale */

    /* ---- products of bytes (base_product8.c) ----
     * Lines of unsigned bytes (pixels of a convolution, rows of a matrix) by blocks of 16 channels.
     * Term t of line i is 4 * quads bytes at x[i] + offset[t]; sums wrap modulo 2^32:
     * y[i][c] = finish(start[c] + sum over terms, quads, 4 bytes of x * (w + rest)).
     * lines <= u8_lines, blocks <= u8_blocks; y has ldy elements a line. */
    size_t u8_lines, u8_blocks;
    /* Not 0: where terms are multiples of 64 bytes, a tile is best two runs of so many lines at most,
     * each of lines one distance apart. */
    size_t u8_run;
    /* The sums of two neighbouring weights of one sign (0 and 1, 2 and 3 of a quad) must not exceed
     * 128, in w and in each rest: the level adds pairs of products in 16 bits, which saturate. */
    bool u8_pairs;
    void (*u8_tile)(size_t lines, size_t blocks, size_t terms, size_t quads, const int64_t *offset,
                    const uint8_t *const *x, const nori__u8_block *w, void *y, size_t ldy,
                    const nori__u8_finish *finish);
    /* Each channel by its own weights: y[i][c] = finish(start[c] + sum over taps of
     * x[i * step + offset[t] + c] * w[c][t]), lines of a row. Weights: blocks of u8_deep channels,
     * [blocks][ceil(taps / 2)][u8_deep][2] (an odd tap's partner 0); u8_deep_order[i] is the channel
     * of a block at place i. x needs slack to whole blocks of channels; start, scale have them. */
    size_t u8_deep;
    const uint8_t *u8_deep_order;
    void (*u8_depthwise)(size_t lines, size_t taps, const int64_t *offset, const uint8_t *x,
                         size_t step, const int16_t *w, void *y, size_t ldy,
                         const nori__u8_finish *finish);
    /* The same for weights of 8 bits, NULL where a level has no better: blocks of u8_deep4 channels,
     * [blocks][ceil(taps / 4)][u8_deep4][4]; u8_deep4_order as above. x needs no slack. */
    size_t u8_deep4;
    const uint8_t *u8_deep4_order;
    void (*u8_depthwise4)(size_t lines, size_t taps, const int64_t *offset, const uint8_t *x,
                          size_t step, const int8_t *w, void *y, size_t ldy,
                          const nori__u8_finish *finish);

    /* ---- bytes as numbers (base_quant.c); the same bits at every level ---- */
    void (*x8_table)(size_t n, const uint8_t *x, const uint8_t *table, uint8_t *y); /* y may be x */
    /* The larger of two; y may be either. is_signed: int8_t, else uint8_t. */
    void (*x8_max)(size_t n, const void *a, const void *b, bool is_signed, void *y);
    /* saturate(round_half_even(((a - a_zero) a_scale + (b - b_zero) b_scale) / y_scale) + y_zero), and
     * saturate(round_half_even((a - a_zero) (b - b_zero) y_scale) + y_zero), each step in float32;
     * steps are 0 or 1. */
    void (*q8_add)(size_t n, const void *a, size_t a_step, const void *b, size_t b_step,
                   const nori__q8_pair *q, void *y);
    void (*q8_mul)(size_t n, const void *a, size_t a_step, const void *b, size_t b_step,
                   const nori__q8_pair *q, void *y);
    /* The sum of (float)(x - zero) * scale, each rounded to float32, in double: exact below 2^21 of
     * them, whatever the order. */
    double (*q8_sum)(size_t n, const void *x, bool is_signed, int32_t zero, float scale);
    /* Widens [low, high] to hold all of x; false: there is a NaN among them. */
    bool (*f32_range)(size_t n, const float *x, float *low, float *high);
    /* y = (float)sum * scale + bias; steps are 0 or 1; bias may be NULL. y may be sums. */
    void (*f32_from_sums)(size_t n, const int32_t *sums, const float *scale, size_t scale_step,
                          const float *bias, size_t bias_step, float *y);

    /* ---- rows of floats (base_vector.c, base_unary.c) ---- */
    void (*f32_unary[NORI__U_COUNT])(size_t n, const float *x, float *y, const float *p);
    /* y[i] = a[i * a_step] op b[i * b_step]; steps are 0 or 1. y may be a or b. */
    void (*f32_binary[NORI__B_COUNT])(size_t n, const float *a, size_t a_step, const float *b,
                                      size_t b_step, float *y);
    float (*f32_sum)(size_t n, const float *x);
    /* The same with eight sums in turn, no product joined to a sum: one result at every level. */
    float (*f32_sum_turns)(size_t n, const float *x);
    float (*f32_sum_square_turns)(size_t n, const float *x, float mean);
    float (*f32_max)(size_t n, const float *x); /* n = 0: -inf; NaN if any is */
    float (*f32_min)(size_t n, const float *x);
    float (*f32_sum_square)(size_t n, const float *x, float mean); /* of x - mean */
    /* y = exp(x - max) / sum; x may be y. */
    void (*f32_softmax)(size_t n, const float *x, float *y);
    /* y = (x - mean) * factor * scale + bias; scale, bias may be NULL (1, 0). */
    void (*f32_normalize)(size_t n, const float *x, float mean, float factor, const float *scale,
                          const float *bias, float *y);

    /* ---- gates of recurrent cells (base_recurrent.c) ----
     * One step of n hidden units of one sequence. Sums of gates lie as [units / lanes][gates][lanes],
     * lanes being nr / 2, whole blocks: x of the input, r of the recurrence. h has n of a state. */
    /* Gates i, o, f, c; the cell c is updated, h made. */
    void (*f32_lstm)(size_t n, const float *x, const float *r, float *c, float *h);
    /* Gates z, r, h of x; r has all three, or z and r while late has h, one value a unit, made from
     * what f32_gru_reset gives: the reset gate times h. out may not be h. */
    void (*f32_gru)(size_t n, const float *x, const float *r, const float *late, const float *h,
                    float *out);
    void (*f32_gru_reset)(size_t n, const float *x, const float *r, const float *h, float *out);

    /* ---- windows (base_window.c) ----
     * A depthwise convolution of one channel over its padded plane x, rows x_step apart:
     * y[h][w] = finish(sum w[r][c] * x[h * sh + r * dh][w * sw + c * dw]), y dense, finish->row[0]
     * as bias. x needs slack of 32 * sw elements after its end. */
    void (*f32_depthwise)(size_t height, size_t width, size_t kh, size_t kw, size_t sh, size_t sw,
                          size_t dh, size_t dw, const float *x, size_t x_step, const float *w,
                          float *y, const nori__f32_finish *finish);
    /* y[j] = max (sum) over c < kw of x[j * stride + c * dilation]; no slack. NaN stays. */
    void (*f32_window_max)(size_t n, size_t kw, size_t stride, size_t dilation, const float *x,
                           float *y);
    void (*f32_window_sum)(size_t n, size_t kw, size_t stride, size_t dilation, const float *x,
                           float *y);

    /* ---- channel blocks (block_*_body.h) ----
     * Activations as [channels / block][height][width][block]: a pixel is a vector of channels. */
    size_t block;        /* lanes: channels a block */
    size_t block_pixels; /* most pixels of a tile */
    /* Sums for pixels <= block_pixels and blocks <= 2 blocks of output channels:
     * y[b][i] = finish(sum over t < terms, l < lanes of x[offset[t] + l + i * step] *
     * w[t][l][b]), w being vectors; pixel i is at y + i * block. Convolutions of all kinds, 1 x 1
     * and Winograd's products are lists of such terms. Each lane asks for
     * one line of memory, fetch_step bytes past the lane before it, into the second cache (nothing is
     * read there). */
    void (*f32_block_tile)(size_t pixels, size_t blocks, size_t terms, size_t lanes,
                           const int64_t *offset, const float *x, size_t step, const float *w,
                           const float *fetch, size_t fetch_step, float *y, size_t y_block,
                           const nori__block_finish *finish);
    /* Rows [row, end) of a depthwise convolution of one block; x is its plane, w [kernel][block], y
     * where row goes. Pads are zeros. */
    void (*f32_block_depthwise)(const nori__block_window *g, size_t row, size_t end, const float *x,
                                const float *w, float *y, const nori__block_finish *finish);
    /* One row of a pool: the largest (NaN if any is), or the sum over divide[column]; what lies
     * outside the plane does not take part. */
    void (*f32_block_pool)(const nori__block_window *g, bool max, size_t row, const float *x,
                           float *y, const float *divide);
    void (*f32_block_sum)(size_t pixels, const float *x, float *y); /* y[block] */
    /* A channel's own line: y = x * scale + shift (NULL: none); y = x, times slope below 0. */
    void (*f32_block_affine)(size_t pixels, const float *x, const float *scale, const float *shift,
                             float *y);
    void (*f32_block_leaky)(size_t pixels, const float *x, const float *slope, float *y);
    /* Rows of a resized plane: y[i] = x[at[i]]; y[i] from two rows and two columns of each. */
    void (*f32_block_pick)(size_t pixels, const int64_t *at, const float *x, float *y);
    void (*f32_block_linear)(size_t pixels, const nori__linear_tap *tap, const float *x0,
                             const float *x1, float weight0, float weight1, float *y);
    /* Winograd F(tile x tile, 3 x 3), tile 4 or 2: a patch of (tile + 2)^2 pixels to as many vectors,
     * v_step apart. x is the first pixel inside; rows row_step apart. */
    void (*f32_winograd_in)(size_t tile, const float *x, size_t row_step,
                            const nori__block_patch *patch, float *v, size_t v_step);
    /* (tile + 2)^2 vectors of sums, m_step apart, to rows x cols <= tile x tile output pixels. */
    void (*f32_winograd_out)(size_t tile, const float *m, size_t m_step, size_t rows, size_t cols,
                             float *y, size_t row_step, const nori__block_finish *finish);
    /* Weights of output channels, a row each, as vectors of a block of them: out[place[q] + j] =
     * w[j * w_step + q] for q < cols, j < rows <= block; 0 for the block's other j. w may lie at any
     * address. */
    void (*f32_block_weights)(size_t rows, size_t cols, const float *w, size_t w_step,
                              const size_t *place, float *out);
    /* Such vectors of 3 x 3 weights, w[channels][9][block], transformed in double: position t of
     * channel i at u[i * u_channel + t * u_step]. */
    void (*f32_winograd_weights)(size_t tile, size_t channels, const float *w, float *u,
                                 size_t u_channel, size_t u_step);

    /* ---- moving bits (base_move.c) ---- */
    /* out[c * out_step + r] = in[r * in_step + c]. */
    /* Half floats to float and back, to nearest, ties to even; NaN stays NaN. */
    void (*f16_to_f32)(size_t n, const uint16_t *x, float *y);
    void (*f32_to_f16)(size_t n, const float *x, uint16_t *y);
    /* The same for bytes, each xor flip. */
    void (*x8_transpose)(size_t rows, size_t cols, const uint8_t *in, size_t in_step, uint8_t *out,
                         size_t out_step, uint8_t flip);
    void (*x32_transpose)(size_t rows, size_t cols, const uint32_t *in, size_t in_step,
                          uint32_t *out, size_t out_step);
} nori__kernels;

/* The table for the level in use. Filled once; never NULL. */
const nori__kernels *nori__kernels_get(void);
/* The table of a level, for tests; a level that this CPU lacks gives false. */
bool nori__kernels_fill(nori__cpu_level level, nori__kernels *k);

#endif

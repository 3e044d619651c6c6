/* test_ms_attention.c: com.microsoft Attention, MultiHeadAttention and its decoder form against a
 * plain attention written here, form by form: apart, packed, cached, shared caches, beams, masks of
 * every rank, biases. GroupQueryAttention has test_ms_group_query.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "op_harness.h"

#define MS "com.microsoft"

enum { B = 2, N = 2, H = 2, V = 3, MOST = 512 };

/* A number for every place, different and small. */
static double value(int kind, int b, int row, int n, int d)
{
    return ((kind * 31 + b * 17 + row * 7 + n * 5 + d * 3) % 11) / 4.0 - 1.2;
}

/* What every form computes: keys of sequence b are rows 0 to keys - 1 of value(1, ...). */
typedef struct plain {
    int queries, keys, past; /* keys: past ones first */
    int v_size;
    double scale;
    bool causal;
    double (*added)(int b, int n, int i, int j);
    double q_bias, k_bias, v_bias;
} plain;

static void plain_run(const plain *p, double *y, double *scores)
{
    for (int b = 0; b < B; b++) {
        for (int i = 0; i < p->queries; i++) {
            for (int n = 0; n < N; n++) {
                double s[32], total = 0, most = -INFINITY;
                for (int j = 0; j < p->keys; j++) {
                    s[j] = 0;
                    for (int d = 0; d < H; d++) {
                        double kb = j >= p->past ? p->k_bias : 0;
                        s[j] += (value(0, b, i, n, d) + p->q_bias) * (value(1, b, j, n, d) + kb);
                    }
                    s[j] = s[j] * p->scale + (p->added ? p->added(b, n, i, j) : 0);
                    s[j] = p->causal && j > i + p->past ? -INFINITY : s[j];
                    most = s[j] > most ? s[j] : most;
                    if (scores) {
                        scores[((b * N + n) * p->queries + i) * p->keys + j] = s[j];
                    }
                }
                for (int j = 0; j < p->keys; j++) {
                    s[j] = exp(s[j] - most);
                    total += s[j];
                }
                for (int d = 0; d < p->v_size; d++) {
                    double sum = 0;
                    for (int j = 0; j < p->keys; j++) {
                        double vb = j >= p->past ? p->v_bias : 0;
                        sum += s[j] / total * (value(2, b, j, n, d) + vb);
                    }
                    y[((b * p->queries + i) * N + n) * p->v_size + d] = sum;
                }
            }
        }
    }
}

/* ---- inputs in the layouts of the operators ---- */

/* [B, rows, N * size] of a kind, rows from `first` on. */
static void give_rows(op *o, int kind, int first, int rows, int size)
{
    double v[MOST];
    char shape[64];
    int at = 0;
    for (int b = 0; b < B; b++) {
        for (int r = 0; r < rows; r++) {
            for (int n = 0; n < N; n++) {
                for (int d = 0; d < size; d++) {
                    v[at++] = value(kind, b, first + r, n, d);
                }
            }
        }
    }
    snprintf(shape, sizeof shape, "%dx%dx%d", B, rows, N * size);
    op_in(o, NORI_FLOAT, shape, v);
}

/* [B, N, room, size]: valid rows, then 99 to show that they are not looked at. */
static void fill_cache(int kind, int rows, int room, int size, double *v)
{
    int at = 0;
    for (int b = 0; b < B; b++) {
        for (int n = 0; n < N; n++) {
            for (int r = 0; r < room; r++) {
                for (int d = 0; d < size; d++) {
                    v[at++] = r < rows ? value(kind, b, r, n, d) : 99;
                }
            }
        }
    }
}

static void give_cache(op *o, int kind, int rows, int room, int size)
{
    double v[MOST];
    char shape[64];
    fill_cache(kind, rows, room, size, v);
    snprintf(shape, sizeof shape, "%dx%dx%dx%d", B, N, room, size);
    op_in(o, NORI_FLOAT, shape, v);
}

/* [B, rows, N, kinds, H] */
static void give_packed(op *o, int first_kind, int kinds, int rows)
{
    double v[MOST];
    char shape[64];
    int at = 0;
    for (int i = 0; i < B * rows * N * kinds * H; i++) {
        int d = i % H, kind = i / H % kinds, n = i / H / kinds % N, r = i / H / kinds / N % rows;
        v[at++] = value(first_kind + kind, i / H / kinds / N / rows, r, n, d);
    }
    snprintf(shape, sizeof shape, "%dx%dx%dx%dx%d", B, rows, N, kinds, H);
    op_in(o, NORI_FLOAT, shape, v);
}

static void give_bias(op *o, const plain *p)
{
    double v[64];
    char shape[16];
    for (int i = 0; i < 2 * N * H + N * p->v_size; i++) {
        v[i] = i < N * H ? p->q_bias : i < 2 * N * H ? p->k_bias : p->v_bias;
    }
    snprintf(shape, sizeof shape, "%d", 2 * N * H + N * p->v_size);
    op_in(o, NORI_FLOAT, shape, v);
}

static void expect(op *o, const plain *p)
{
    double y[MOST];
    char shape[32];
    plain_run(p, y, NULL);
    snprintf(shape, sizeof shape, "%dx%dx%d", B, p->queries, N * p->v_size);
    op_expect(o, 0, NORI_FLOAT, shape, y, 1e-5);
    op_end(o);
}

static void begin(op *o, const char *name, const plain *p)
{
    op_begin(o, MS, name, 1);
    op_int(o, "num_heads", N);
    if (p->scale != 1 / sqrt(H)) {
        op_float(o, "scale", (float)p->scale);
    }
    if (p->causal) {
        op_int(o, "unidirectional", 1);
    }
}

#define ROOT (1 / sqrt(H))

/* ---- MultiHeadAttention ---- */

static void multi_head_forms(void **state)
{
    (void)state;
    op o;
    plain p = {.queries = 3, .keys = 4, .v_size = V, .scale = ROOT};
    begin(&o, "MultiHeadAttention", &p); /* cross attention, values of another size */
    give_rows(&o, 0, 0, 3, H);
    give_rows(&o, 1, 0, 4, H);
    give_rows(&o, 2, 0, 4, V);
    expect(&o, &p);
    plain biased = p;
    biased.q_bias = 0.5;
    biased.k_bias = -0.25;
    biased.v_bias = 2;
    begin(&o, "MultiHeadAttention", &biased);
    give_rows(&o, 0, 0, 3, H);
    give_rows(&o, 1, 0, 4, H);
    give_rows(&o, 2, 0, 4, V);
    give_bias(&o, &biased);
    expect(&o, &biased);
    plain cached = p; /* K and V as a cache: the bias is for Q alone */
    cached.q_bias = 0.5;
    begin(&o, "MultiHeadAttention", &cached);
    give_rows(&o, 0, 0, 3, H);
    give_cache(&o, 1, 4, 4, H);
    give_cache(&o, 2, 4, 4, V);
    give_bias(&o, &biased);
    expect(&o, &cached);
    plain square = {.queries = 3, .keys = 3, .v_size = H, .scale = 0.75, .causal = true};
    begin(&o, "MultiHeadAttention", &square);
    give_packed(&o, 0, 3, 3);
    expect(&o, &square);
    plain kv = {.queries = 2, .keys = 3, .v_size = H, .scale = ROOT};
    begin(&o, "MultiHeadAttention", &kv);
    give_rows(&o, 0, 0, 2, H);
    give_packed(&o, 1, 2, 3);
    expect(&o, &kv);
}

static void expect_cache(op *o, uint32_t i, int kind, int rows, int room, int size)
{
    double v[MOST];
    char shape[64];
    fill_cache(kind, rows, room, size, v);
    snprintf(shape, sizeof shape, "%dx%dx%dx%d", B, N, room, size);
    op_expect(o, i, NORI_FLOAT, shape, v, 1e-6);
}

/* Two rows before, three new ones; in a cache of its own, or in one of seven rows. */
static void multi_head_past(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        op o;
        double scores[MOST], y[MOST];
        plain p = {.queries = 3, .keys = 5, .past = 2, .v_size = V, .scale = ROOT, .causal = true};
        begin(&o, "MultiHeadAttention", &p);
        op_outputs(&o, 4);
        give_rows(&o, 0, 0, 3, H);
        give_rows(&o, 1, 2, 3, H);
        give_rows(&o, 2, 2, 3, V);
        for (int i = 0; i < 3; i++) {
            op_give(&o, NULL);
        }
        give_cache(&o, 1, 2, shared ? 7 : 2, H);
        give_cache(&o, 2, 2, shared ? 7 : 2, V);
        if (shared) {
            op_in(&o, NORI_INT32, "1", (double[]){2});
        }
        expect_cache(&o, 1, 1, 5, shared ? 7 : 5, H);
        expect_cache(&o, 2, 2, 5, shared ? 7 : 5, V);
        plain_run(&p, y, scores);
        op_expect(&o, 3, NORI_FLOAT, "2x2x3x5", scores, 1e-5);
        expect(&o, &p);
    }
}

/* ---- masks and biases ---- */

static double by_length(int b, int n, int i, int j)
{
    (void)n, (void)i;
    return j < 1 + 2 * b ? 0 : -50;
}
static double by_key(int b, int n, int i, int j)
{
    (void)n, (void)i;
    return (b + j) % 2 ? -50 : 0;
}
static double by_query(int b, int n, int i, int j)
{
    (void)n;
    return (b + i + j) % 2 ? -50 : 0;
}
static double by_head(int b, int n, int i, int j)
{
    (void)b, (void)i;
    return n - j * 0.5;
}
static double everywhere(int b, int n, int i, int j)
{
    return b - 0.5 * n + i * j * 0.25;
}

static void multi_head_masks(void **state)
{
    (void)state;
    double keys[8], full[24], lengths[8] = {1, 3, 7, 7, 7, 7, 7, 7};
    for (int i = 0; i < 24; i++) {
        full[i] = by_query(i / 12, 0, i / 4 % 3, i % 4) == 0;
        if (i < 8) {
            keys[i] = by_key(i / 4, 0, 0, i % 4) == 0;
        }
    }
    const struct {
        const char *shape;
        const double *mask;
        double (*added)(int, int, int, int);
    } masks[] = {{"2", lengths, by_length}, {"8", lengths, by_length}, /* 3B + 2: lengths first */
                 {"2x4", keys, by_key},     {"2x3x4", full, by_query}};
    for (size_t k = 0; k < NORI__COUNT(masks); k++) {
        op o;
        plain p = {.queries = 3, .keys = 4, .v_size = V, .scale = ROOT, .added = masks[k].added};
        begin(&o, "MultiHeadAttention", &p);
        op_float(&o, "mask_filter_value", -50);
        give_rows(&o, 0, 0, 3, H);
        give_rows(&o, 1, 0, 4, H);
        give_rows(&o, 2, 0, 4, V);
        op_give(&o, NULL);
        op_in(&o, NORI_INT32, masks[k].shape, masks[k].mask);
        expect(&o, &p);
    }
    for (int whole = 0; whole < 2; whole++) {
        op o;
        double v[48];
        plain p = {.queries = 3, .keys = 4, .v_size = V, .scale = ROOT,
                   .added = whole ? everywhere : by_head};
        for (int i = 0; i < 48; i++) {
            v[i] = whole ? everywhere(i / 24, i / 12 % 2, i / 4 % 3, i % 4)
                         : by_head(0, i / 12 % 2, 0, i % 4);
        }
        begin(&o, "MultiHeadAttention", &p);
        give_rows(&o, 0, 0, 3, H);
        give_rows(&o, 1, 0, 4, H);
        give_rows(&o, 2, 0, 4, V);
        op_give(&o, NULL);
        op_give(&o, NULL);
        op_in(&o, NORI_FLOAT, whole ? "2x2x3x4" : "1x2x3x4", v);
        expect(&o, &p);
    }
    op o;
    plain p = {.queries = 3, .keys = 4, .v_size = V, .scale = ROOT};
    begin(&o, "MultiHeadAttention", &p);
    give_rows(&o, 0, 0, 3, H);
    give_rows(&o, 1, 0, 4, H);
    give_rows(&o, 2, 0, 4, V);
    op_give(&o, NULL);
    op_in(&o, NORI_INT32, "2x3", keys);
    assert_int_equal(op_status(&o), NORI_ERROR_DATA);
    op_end(&o);
}

/* ---- DecoderMaskedMultiHeadAttention ---- */

static void decoder_masked(void **state)
{
    (void)state;
    op o;
    plain p = {.queries = 1, .keys = 4, .past = 3, .v_size = H, .scale = ROOT, .q_bias = 0.5,
               .k_bias = -0.25, .v_bias = 2};
    begin(&o, "DecoderMaskedMultiHeadAttention", &p);
    op_outputs(&o, 3);
    give_rows(&o, 0, 0, 1, H);
    give_rows(&o, 1, 3, 1, H);
    give_rows(&o, 2, 3, 1, H);
    op_give(&o, NULL);
    op_give(&o, NULL);
    give_cache(&o, 1, 3, 6, H);
    give_cache(&o, 2, 3, 6, H);
    op_in(&o, NORI_INT32, "1", (double[]){3});
    op_give(&o, NULL);
    op_give(&o, NULL);
    give_bias(&o, &p);
    op_int(&o, "past_present_share_buffer", 1);
    expect(&o, &p);
    /* Q, K and V behind each other in a row */
    double v[B * 3 * N * H];
    for (int i = 0; i < B * 3 * N * H; i++) {
        int kind = i / (N * H) % 3;
        v[i] = value(kind, i / (3 * N * H), kind ? 3 : 0, i / H % N, i % H);
    }
    plain joined = {.queries = 1, .keys = 4, .past = 3, .v_size = H, .scale = ROOT};
    begin(&o, "DecoderMaskedMultiHeadAttention", &joined);
    op_in(&o, NORI_FLOAT, "2x1x12", v);
    for (int i = 0; i < 4; i++) {
        op_give(&o, NULL);
    }
    give_cache(&o, 1, 3, 3, H);
    give_cache(&o, 2, 3, 3, H);
    expect(&o, &joined);
}

/* Both beams read every past row of the other one: the results of the two change places, if Q and
 * the new rows are the same. */
static void beams(void **state)
{
    (void)state;
    op o;
    double same[2 * N * H], swap[8] = {1, 1, 1, 1, 0, 0, 0, 0}, got[2][N * H];
    for (int i = 0; i < 2 * N * H; i++) {
        same[i] = value(0, 0, 0, i / H % N, i % H);
    }
    for (int k = 0; k < 2; k++) {
        op_begin(&o, MS, "DecoderMaskedMultiHeadAttention", 1);
        op_int(&o, "num_heads", N);
        for (int i = 0; i < 3; i++) {
            op_in(&o, NORI_FLOAT, "2x1x4", same);
        }
        op_give(&o, NULL);
        op_give(&o, NULL);
        give_cache(&o, 1, 3, 3, H);
        give_cache(&o, 2, 3, 3, H);
        op_give(&o, NULL);
        op_in(&o, NORI_INT32, "1", (double[]){k ? 2 : 1});
        if (k) {
            op_in(&o, NORI_INT32, "1x2x4", swap);
        }
        const nori_tensor *y = op_out(&o, 0, NORI_FLOAT, "2x1x4");
        for (int i = 0; i < N * H; i++) {
            double other = nori__tensor_get_f64(y, k ? N * H + i : i);
            got[k][i] = other;
        }
        op_end(&o);
    }
    for (int i = 0; i < N * H; i++) {
        assert_true(fabs(got[0][i] - got[1][i]) < 1e-6);
    }
}

/* ---- Attention and QAttention: weights that pass the values through ---- */

/* Input rows hold Q, K and V one behind the other; the weights are the unit matrix. */
static void give_joined(op *o, const plain *p, nori_type type, double unit, double zero)
{
    int width = 2 * N * H + N * p->v_size, at = 0;
    double *x = calloc((size_t)(B * p->queries * width), sizeof *x);
    double *w = calloc((size_t)(width * width), sizeof *w);
    char shape[32];
    for (int b = 0; b < B; b++) {
        for (int r = 0; r < p->queries; r++) {
            for (int c = 0; c < width; c++) {
                int kind = c < N * H ? 0 : c < 2 * N * H ? 1 : 2, size = kind == 2 ? p->v_size : H;
                int i = c - kind * N * H, row = kind == 0 ? r : r + p->past;
                x[at++] = value(kind, b, row, i / size, i % size) / unit + zero;
            }
        }
    }
    for (int c = 0; c < width; c++) {
        w[c * width + c] = 1;
    }
    snprintf(shape, sizeof shape, "%dx%dx%d", B, p->queries, width);
    op_in(o, type, shape, x);
    snprintf(shape, sizeof shape, "%dx%d", width, width);
    op_in(o, type == NORI_FLOAT ? NORI_FLOAT : NORI_INT8, shape, w);
    free(x);
    free(w);
}

static void projected(void **state)
{
    (void)state;
    op o;
    plain p = {.queries = 3, .keys = 3, .v_size = V, .scale = ROOT, .q_bias = 1, .k_bias = -0.5,
               .v_bias = 0.25};
    begin(&o, "Attention", &p);
    op_ints(&o, "qkv_hidden_sizes", (int64_t[]){N * H, N * H, N * V}, 3);
    give_joined(&o, &p, NORI_FLOAT, 1, 0);
    give_bias(&o, &p);
    expect(&o, &p);
    /* [2B]: ends, then starts; keys 1 and 2 of the first sequence, 0 of the second */
    plain ends = {.queries = 3, .keys = 3, .v_size = H, .scale = ROOT, .added = NULL};
    begin(&o, "Attention", &ends);
    give_joined(&o, &ends, NORI_FLOAT, 1, 0);
    op_give(&o, NULL);
    op_in(&o, NORI_INT32, "4", (double[]){3, 1, 1, 0});
    op_float(&o, "mask_filter_value", -1e9f);
    const nori_tensor *y = op_out(&o, 0, NORI_FLOAT, "2x3x4");
    for (int i = 0; i < 12; i++) { /* one key alone: its value */
        double got = nori__tensor_get_f64(y, 12 + i);
        assert_true(fabs(got - value(2, 1, 0, i % 4 / H, i % H)) < 1e-6);
    }
    op_end(&o);
    for (int shared = 0; shared < 2; shared++) { /* past as [2, B, N, rows, H] */
        plain q = {.queries = 2, .keys = 4, .past = 2, .v_size = H, .scale = ROOT, .causal = true};
        int room = shared ? 5 : 2;
        double past[2 * MOST], present[2 * MOST];
        char shape[64];
        begin(&o, "Attention", &q);
        op_outputs(&o, 2);
        give_joined(&o, &q, NORI_FLOAT, 1, 0);
        op_give(&o, NULL);
        op_give(&o, NULL);
        fill_cache(1, 2, room, H, past);
        fill_cache(2, 2, room, H, past + B * N * room * H);
        snprintf(shape, sizeof shape, "2x%dx%dx%dx%d", B, N, room, H);
        op_in(&o, NORI_FLOAT, shape, past);
        if (shared) {
            op_give(&o, NULL);
            op_in(&o, NORI_INT32, "1", (double[]){2});
            op_int(&o, "past_present_share_buffer", 1);
        }
        room = shared ? 5 : 4;
        fill_cache(1, 4, room, H, present);
        fill_cache(2, 4, room, H, present + B * N * room * H);
        snprintf(shape, sizeof shape, "2x%dx%dx%dx%d", B, N, room, H);
        op_expect(&o, 1, NORI_FLOAT, shape, present, 1e-6);
        expect(&o, &q);
    }
}

/* value() is in steps of a quarter, off by 0.05: scale 0.05 holds it. */
static void quantized(void **state)
{
    (void)state;
    op o;
    plain p = {.queries = 3, .keys = 3, .v_size = H, .scale = ROOT, .causal = true};
    double zeros[3 * N * H] = {0}, ones[3 * N * H];
    for (int i = 0; i < 3 * N * H; i++) {
        ones[i] = 1;
    }
    begin(&o, "QAttention", &p);
    give_joined(&o, &p, NORI_UINT8, 0.05, 128.001);
    op_in(&o, NORI_FLOAT, "12", zeros);
    op_in(&o, NORI_FLOAT, "", (double[]){0.05});
    op_in(&o, NORI_FLOAT, "12", ones); /* a scale a column */
    op_give(&o, NULL);
    op_in(&o, NORI_UINT8, "", (double[]){128});
    expect(&o, &p);
}

static void infer_fails(op *o, const char *text, const char *hint)
{
    static nori__shape s[2 * OP_MOST];
    nori__infer c = {.node = &o->node, .in = s, .out = s + OP_MOST, .err = &o->err};
    op__shapes(o, true, s);
    assert_int_equal(o->node.op->infer(&c), NORI_ERROR_UNSUPPORTED);
    assert_non_null(strstr(o->err.message, text));
    assert_non_null(strstr(o->err.hint, hint));
    op_end(o);
}

static void refusals(void **state)
{
    (void)state;
    op o;
    plain p = {.queries = 2, .keys = 2, .v_size = H, .scale = ROOT};
    begin(&o, "Attention", &p);
    give_joined(&o, &p, NORI_FLOAT, 1, 0);
    op_int(&o, "do_rotary", 1);
    infer_fails(&o, "Attention, com.microsoft version 1, with do_rotary", "GroupQueryAttention");
    op_begin(&o, MS, "RotaryEmbedding", 1);
    op_in(&o, NORI_FLOAT, "1x1x2", NULL);
    op_float(&o, "scale", 2);
    infer_fails(&o, "a scale other than 1", "multiply");
}

static void rotary(void **state)
{
    (void)state;
    /* Rows of the caches are turns by 0, 90 and 180 degrees. */
    static const double cosines[3] = {1, 0, -1}, sines[3] = {0, 1, 0};
    op o;
    op_begin(&o, MS, "RotaryEmbedding", 1); /* one position: that of the first token */
    op_in(&o, NORI_FLOAT, "1x2x4", (double[]){1, 2, 3, 4, 5, 6, 7, 8});
    op_in(&o, NORI_INT64, "1", (double[]){1});
    op_in(&o, NORI_FLOAT, "3x1", cosines);
    op_in(&o, NORI_FLOAT, "3x1", sines);
    op_expect(&o, 0, NORI_FLOAT, "1x2x4", (double[]){-2, 1, -4, 3, -5, -6, -7, -8}, 1e-6);
    op_end(&o);
    op_begin(&o, MS, "RotaryEmbedding", 1); /* only the first two of each head, token by token */
    op_in(&o, NORI_FLOAT, "1x1x2x4", (double[]){1, 2, 3, 4, 5, 6, 7, 8});
    op_in(&o, NORI_INT64, "1x2", (double[]){2, 1});
    op_in(&o, NORI_FLOAT, "3x1", cosines);
    op_in(&o, NORI_FLOAT, "3x1", sines);
    op_int(&o, "num_heads", 1);
    op_int(&o, "rotary_embedding_dim", 2);
    op_int(&o, "interleaved", 1);
    op_expect(&o, 0, NORI_FLOAT, "1x1x2x4", (double[]){-1, -2, 3, 4, -6, 5, 7, 8}, 1e-6);
    op_end(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multi_head_forms), cmocka_unit_test(multi_head_past),
        cmocka_unit_test(multi_head_masks), cmocka_unit_test(decoder_masked),
        cmocka_unit_test(beams),            cmocka_unit_test(projected),
        cmocka_unit_test(quantized),        cmocka_unit_test(refusals),
        cmocka_unit_test(rotary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

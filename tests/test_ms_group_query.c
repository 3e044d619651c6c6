/* test_ms_group_query.c: com.microsoft GroupQueryAttention against a plain form of it written here:
 * prompts and later tokens, ragged lengths, caches of any room, packed input, rotation, windows,
 * sinks, soft caps, biases, norms of heads, scores as output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "op_harness.h"

enum { N = 4, KV = 2, H = 4, MOST = 1024, ROWS = 16 };

/* One case. Sequence b has past[b] rows in its cache and gets s new ones. */
typedef struct form {
    int batch, s, past[2], room; /* room 0: no cache is given */
    bool packed, rotary, interleaved, partial, sink, smooth, added, norms, open;
    int window, qk, shift; /* shift: position_ids are given, that much further on */
    double softcap;
} form;

static double value(int kind, int b, int row, int n, int d)
{
    return ((kind * 31 + b * 17 + row * 7 + n * 5 + d * 3) % 11) / 4.0 - 1.2;
}

static double bias_of(int n, int i, int j)
{
    return 0.5 * n - 0.25 * i + 0.125 * j;
}

static int total_of(const form *f)
{
    int total = 0;
    for (int b = 0; b < f->batch; b++) {
        total = f->past[b] + f->s > total ? f->past[b] + f->s : total;
    }
    return total;
}

/* A new head of kind 0 (Q) or 1 (K): normalized, then turned by angles (position + 1) / (i + 1). */
static void head_of(const form *f, int kind, int b, int i, int n, double *x)
{
    int p = f->past[b] + i, half = f->partial ? H / 4 : H / 2;
    double squares = 0;
    for (int d = 0; d < H; d++) {
        x[d] = value(kind, b, kind == 0 ? i : p, n, d);
        squares += x[d] * x[d];
    }
    for (int d = 0; d < H && f->norms && kind < 2; d++) {
        x[d] *= (kind == 0 ? 2 : 0.5) / sqrt(squares / H + (double)1e-6f);
    }
    for (int d = 0; d < half && f->rotary && kind < 2; d++) {
        int l = f->interleaved ? 2 * d : d, r = f->interleaved ? 2 * d + 1 : d + half;
        double angle = (p + f->shift + 1.0) / (d + 1), u = x[l], v = x[r];
        x[l] = cos(angle) * u - sin(angle) * v;
        x[r] = sin(angle) * u + cos(angle) * v;
    }
}

/* Row j of a cache after the call: what was there, then the new one. */
static void row_of(const form *f, int kind, int b, int j, int n, double *x)
{
    if (j >= f->past[b]) {
        head_of(f, kind, b, j - f->past[b], n, x);
        return;
    }
    for (int d = 0; d < H; d++) {
        x[d] = value(kind + 4, b, j, n, d);
    }
}

static void plain_run(const form *f, double *y, double *scores)
{
    int total = total_of(f);
    for (int row = 0; row < f->batch * f->s * N; row++) {
        int n = row % N, i = row / N % f->s, b = row / N / f->s, place = f->past[b] + i;
        double q[H], k[H], v[H], s[ROWS], most = f->sink ? n - 1.0 : 0, sum;
        bool extra = f->sink || f->smooth;
        most = extra ? most : -INFINITY;
        head_of(f, 0, b, i, n, q);
        for (int j = 0; j < total; j++) {
            bool seen = f->open ? j < f->past[b] + f->s : j <= place;
            seen = seen && (f->window == 0 || j > place - f->window);
            s[j] = -INFINITY;
            if (seen) {
                row_of(f, 1, b, j, n / (N / KV), k);
                s[j] = 0;
                for (int d = 0; d < H; d++) {
                    s[j] += q[d] * k[d] / sqrt(H);
                }
                s[j] = f->softcap > 0 ? f->softcap * tanh(s[j] / f->softcap) : s[j];
                s[j] += f->added ? bias_of(n, i, j) : 0;
            }
            scores[((b * N + n) * f->s + i) * total + j] = f->qk == 1 && !seen ? 0 : s[j];
            most = s[j] > most ? s[j] : most;
        }
        sum = extra ? exp((f->sink ? n - 1.0 : 0) - most) : 0;
        for (int j = 0; j < total; j++) {
            s[j] = exp(s[j] - most);
            sum += s[j];
        }
        for (int d = 0; d < H; d++) {
            y[row * H + d] = 0;
        }
        for (int j = 0; j < total; j++) {
            row_of(f, 2, b, j, n / (N / KV), v);
            for (int d = 0; d < H; d++) {
                y[row * H + d] += s[j] / sum * v[d];
            }
            if (f->qk == 2) {
                scores[((b * N + n) * f->s + i) * total + j] = s[j] / sum;
            }
        }
    }
}

static void give(op *o, nori_type type, const char *shape, const double *v)
{
    op_in(o, type, shape, v);
}

/* [batch, s, heads of the kinds] */
static void give_tokens(op *o, const form *f, const int *kinds, const int *heads, int count)
{
    double v[MOST];
    char shape[64];
    int at = 0, width = 0;
    for (int b = 0; b < f->batch; b++) {
        for (int i = 0; i < f->s; i++) {
            for (int k = 0; k < count; k++) {
                for (int c = 0; c < heads[k] * H; c++) {
                    v[at++] = value(kinds[k], b, kinds[k] == 0 ? i : f->past[b] + i, c / H, c % H);
                }
            }
        }
    }
    width = at / (f->batch * f->s);
    snprintf(shape, sizeof shape, "%dx%dx%d", f->batch, f->s, width);
    give(o, NORI_FLOAT, shape, v);
}

/* A cache before the call: valid rows, then NaN, which nothing may read. */
static void give_cache(op *o, const form *f, int kind)
{
    double v[MOST];
    char shape[64];
    for (int i = 0; i < f->batch * KV * f->room * H; i++) {
        int d = i % H, j = i / H % f->room, n = i / H / f->room % KV, b = i / H / f->room / KV;
        v[i] = j < f->past[b] ? value(kind + 4, b, j, n, d) : NAN;
    }
    snprintf(shape, sizeof shape, "%dx%dx%dx%d", f->batch, KV, f->room, H);
    give(o, NORI_FLOAT, shape, v);
}

static void give_rotation(op *o, const form *f)
{
    double c[ROWS * H], s[ROWS * H];
    char shape[32];
    int half = f->partial ? H / 4 : H / 2;
    for (int i = 0; i < ROWS * half; i++) {
        double angle = (i / half + 1.0) / (i % half + 1);
        c[i] = cos(angle);
        s[i] = sin(angle);
    }
    snprintf(shape, sizeof shape, "%dx%d", ROWS, half);
    give(o, NORI_FLOAT, shape, c);
    give(o, NORI_FLOAT, shape, s);
}

static void check_cache(op *o, const form *f, uint32_t out, int kind)
{
    int rows = f->room > total_of(f) ? f->room : total_of(f);
    double v[MOST];
    char shape[64];
    for (int i = 0; i < f->batch * KV * rows; i++) {
        int j = i % rows, n = i / rows % KV, b = i / rows / KV;
        if (j < f->past[b] + f->s) {
            row_of(f, kind, b, j, n, v + i * H);
        } else {
            memset(v + i * H, 0, H * sizeof v[0]);
        }
    }
    snprintf(shape, sizeof shape, "%dx%dx%dx%d", f->batch, KV, rows, H);
    op_expect(o, out, NORI_FLOAT, shape, v, 1e-5);
}

static void attributes(op *o, const form *f)
{
    op_int(o, "num_heads", N);
    op_int(o, "kv_num_heads", KV);
    if (f->rotary) {
        op_int(o, "do_rotary", 1);
        op_int(o, "rotary_interleaved", f->interleaved);
    }
    if (f->window) {
        op_int(o, "local_window_size", f->window);
    }
    if (f->softcap > 0) {
        op_float(o, "softcap", (float)f->softcap);
    }
    if (f->smooth) {
        op_int(o, "smooth_softmax", 1);
    }
    if (f->qk) {
        op_int(o, "qk_output", f->qk);
    }
    if (f->open) {
        op_int(o, "causal", 0);
    }
}

static void check(const form *f)
{
    op o;
    double last[2], total = total_of(f), y[MOST], scores[MOST], v[MOST];
    char shape[64];
    op_begin(&o, "com.microsoft", "GroupQueryAttention", 1);
    attributes(&o, f);
    op_outputs(&o, f->qk ? 4 : 3);
    if (f->packed) {
        give_tokens(&o, f, (int[]){0, 1, 2}, (int[]){N, KV, KV}, 3);
        op_give(&o, NULL);
        op_give(&o, NULL);
    } else {
        give_tokens(&o, f, (int[]){0}, (int[]){N}, 1);
        give_tokens(&o, f, (int[]){1}, (int[]){KV}, 1);
        give_tokens(&o, f, (int[]){2}, (int[]){KV}, 1);
    }
    for (int k = 1; k < 3; k++) {
        if (f->room > 0) {
            give_cache(&o, f, k);
        } else {
            op_give(&o, NULL);
        }
    }
    for (int b = 0; b < f->batch; b++) {
        last[b] = f->past[b] + f->s - 1;
    }
    give(&o, NORI_INT32, f->batch == 2 ? "2" : "1", last);
    give(&o, NORI_INT32, "", &total);
    if (f->rotary) {
        give_rotation(&o, f);
    } else {
        op_give(&o, NULL);
        op_give(&o, NULL);
    }
    if (f->shift) { /* of a prompt only the first one counts */
        for (int i = 0; i < f->batch * f->s; i++) {
            int b = i / f->s;
            v[i] = f->room || i == 0 ? f->past[b] + i % f->s + f->shift : 99;
        }
        snprintf(shape, sizeof shape, "%dx%d", f->batch, f->s);
        give(&o, NORI_INT64, shape, v);
    } else {
        op_give(&o, NULL);
    }
    if (f->added) {
        for (int i = 0; i < N * f->s * (int)total; i++) {
            v[i] = bias_of(i / (int)total / f->s, i / (int)total % f->s, i % (int)total);
        }
        snprintf(shape, sizeof shape, "1x%dx%dx%d", N, f->s, (int)total);
        give(&o, NORI_FLOAT, shape, v);
    } else {
        op_give(&o, NULL);
    }
    if (f->sink) {
        give(&o, NORI_FLOAT, "4", (double[]){-1, 0, 1, 2});
    } else {
        op_give(&o, NULL);
    }
    if (f->norms) {
        op_give(&o, NULL);
        op_give(&o, NULL);
        give(&o, NORI_FLOAT, "4", (double[]){2, 2, 2, 2});
        give(&o, NORI_FLOAT, "4", (double[]){0.5, 0.5, 0.5, 0.5});
    }
    plain_run(f, y, scores);
    snprintf(shape, sizeof shape, "%dx%dx%d", f->batch, f->s, N * H);
    op_expect(&o, 0, NORI_FLOAT, shape, y, 2e-5);
    check_cache(&o, f, 1, 1);
    check_cache(&o, f, 2, 2);
    if (f->qk) {
        snprintf(shape, sizeof shape, "%dx%dx%dx%d", f->batch, N, f->s, (int)total);
        op_expect(&o, 3, NORI_FLOAT, shape, scores, 2e-5);
    }
    op_end(&o);
}

static void prompts(void **state)
{
    (void)state;
    check(&(form){.batch = 2, .s = 4});
    check(&(form){.batch = 2, .s = 4, .packed = true});
    check(&(form){.batch = 2, .s = 3, .room = 7}); /* into a cache with room behind */
    check(&(form){.batch = 2, .s = 4, .open = true});
    check(&(form){.batch = 1, .s = 5, .window = 2, .rotary = true});
    check(&(form){.batch = 2, .s = 4, .rotary = true, .shift = 3});
    check(&(form){.batch = 2, .s = 4, .norms = true, .rotary = true, .interleaved = true});
}

static void later_tokens(void **state)
{
    (void)state;
    check(&(form){.batch = 2, .s = 1, .past = {3, 3}, .room = 3});
    check(&(form){.batch = 2, .s = 1, .past = {1, 5}, .room = 5, .rotary = true});
    check(&(form){.batch = 2, .s = 1, .past = {4, 2}, .room = 9, .packed = true, .rotary = true,
                  .partial = true});
    check(&(form){.batch = 1, .s = 3, .past = {2}, .room = 2, .rotary = true,
                  .interleaved = true});
    check(&(form){.batch = 2, .s = 1, .past = {1, 5}, .room = 5, .rotary = true, .shift = 2});
    check(&(form){.batch = 1, .s = 3, .past = {4}, .room = 8, .window = 3});
}

static void scores_and_sinks(void **state)
{
    (void)state;
    check(&(form){.batch = 2, .s = 1, .past = {3, 1}, .room = 4, .softcap = 1.5, .added = true});
    check(&(form){.batch = 2, .s = 3, .sink = true});
    check(&(form){.batch = 2, .s = 3, .smooth = true, .window = 1});
    check(&(form){.batch = 1, .s = 2, .past = {2}, .room = 2, .qk = 1, .added = true});
    check(&(form){.batch = 1, .s = 2, .past = {2}, .room = 2, .qk = 2, .smooth = true});
}

static void wrong_lengths(void **state)
{
    (void)state;
    static const struct {
        double last, total;
    } wrong[] = {{6, 5}, {-1, 5}, {0, 5}, {4, 1}};
    for (size_t i = 0; i < NORI__COUNT(wrong); i++) {
        form f = {.batch = 1, .s = 2, .past = {3}, .room = 3};
        op o;
        op_begin(&o, "com.microsoft", "GroupQueryAttention", 1);
        attributes(&o, &f);
        give_tokens(&o, &f, (int[]){0}, (int[]){N}, 1);
        give_tokens(&o, &f, (int[]){1}, (int[]){KV}, 1);
        give_tokens(&o, &f, (int[]){2}, (int[]){KV}, 1);
        give_cache(&o, &f, 1);
        give_cache(&o, &f, 2);
        give(&o, NORI_INT32, "1", &wrong[i].last);
        give(&o, NORI_INT32, "1", &wrong[i].total);
        assert_int_equal(op_status(&o), NORI_ERROR_DATA);
        op_end(&o);
    }
}

static void refused(const char *attribute, int64_t number, const char *text, nori_type cache,
                    const char *says)
{
    static nori__shape s[2 * OP_MOST];
    form f = {.batch = 1, .s = 1, .past = {1}, .room = 1};
    op o;
    op_begin(&o, "com.microsoft", "GroupQueryAttention", 1);
    attributes(&o, &f);
    give_tokens(&o, &f, (int[]){0}, (int[]){N}, 1);
    give_tokens(&o, &f, (int[]){1}, (int[]){KV}, 1);
    give_tokens(&o, &f, (int[]){2}, (int[]){KV}, 1);
    op_in(&o, cache, "1x2x1x4", NULL);
    op_in(&o, cache, "1x2x1x4", NULL);
    if (text) {
        op_text(&o, attribute, text);
    } else if (attribute) {
        op_int(&o, attribute, number);
    }
    nori__infer c = {.node = &o.node, .in = s, .out = s + OP_MOST, .err = &o.err};
    op__shapes(&o, true, s);
    assert_int_equal(o.node.op->infer(&c), NORI_ERROR_UNSUPPORTED);
    assert_non_null(strstr(o.err.message, says));
    assert_non_null(strstr(o.err.hint, "runs"));
    op_end(&o);
}

static void refusals(void **state)
{
    (void)state;
    refused("k_quant_type", 0, "PER_TENSOR", NORI_FLOAT, "quantized cache");
    refused(NULL, 0, NULL, NORI_INT8, "quantized cache");
    refused(NULL, 0, NULL, NORI_FLOAT16, "another type");
    refused("sliding_window_cache", 1, NULL, NORI_FLOAT, "sliding_window_cache");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts),          cmocka_unit_test(later_tokens),
        cmocka_unit_test(scores_and_sinks), cmocka_unit_test(wrong_lengths),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* int8_layers.c: 8-bit convolutions as they run inside a network: channels last, bytes to bytes. Weights
 * have tails as trained ones do. */
#include "bench.h"
#include "providers/cpu/lastc.h"

typedef struct layer {
    const char *name;
    int64_t x[4], w[4]; /* NHWC; OIHW */
    int64_t group, stride, pad;
} layer;

static const layer layers[] = {
    {"int8 last 3x3 64-64 @56", {1, 56, 56, 64}, {64, 64, 3, 3}, 1, 1, 1},
    {"int8 last 3x3 128-128 @28", {1, 28, 28, 128}, {128, 128, 3, 3}, 1, 1, 1},
    {"int8 last 3x3 256-256 @14", {1, 14, 14, 256}, {256, 256, 3, 3}, 1, 1, 1},
    {"int8 last 3x3 512-512 @7", {1, 7, 7, 512}, {512, 512, 3, 3}, 1, 1, 1},
    {"int8 last 7x7 s2 3-64 @224", {1, 224, 224, 3}, {64, 3, 7, 7}, 1, 2, 3},
    {"int8 last 3x3 s2 3-32 @224", {1, 224, 224, 3}, {32, 3, 3, 3}, 1, 2, 1},
    {"int8 last 1x1 64-256 @56", {1, 56, 56, 64}, {256, 64, 1, 1}, 1, 1, 0},
    {"int8 last 1x1 1024-256 @14", {1, 14, 14, 1024}, {256, 1024, 1, 1}, 1, 1, 0},
    {"int8 last 1x1 512-2048 @7", {1, 7, 7, 512}, {2048, 512, 1, 1}, 1, 1, 0},
    {"int8 last 1x1 16-96 @112", {1, 112, 112, 16}, {96, 16, 1, 1}, 1, 1, 0},
    {"int8 last 1x1 96-24 @56", {1, 56, 56, 96}, {24, 96, 1, 1}, 1, 1, 0},
    {"int8 last depthwise 3x3 96 @56", {1, 56, 56, 96}, {96, 1, 3, 3}, 96, 1, 1},
    {"int8 last depthwise s2 96 @112", {1, 112, 112, 96}, {96, 1, 3, 3}, 96, 2, 1},
    {"int8 last depthwise 3x3 384 @14", {1, 14, 14, 384}, {384, 1, 3, 3}, 384, 1, 1},
    {"int8 last depthwise 5x5 240 @28", {1, 28, 28, 240}, {240, 1, 5, 5}, 240, 1, 2},
};

static nori_tensor *filled(nori_type type, int rank, const int64_t *dims, double value)
{
    nori_tensor *t = bench_tensor(type, rank, dims);
    for (int64_t i = 0; i < t->count; i++) {
        nori__tensor_set_f64(t, i, value);
    }
    return t;
}

/* The product of two even numbers: most are small. */
static void add_tails(nori_tensor *w)
{
    uint32_t seed = 7;
    for (int64_t i = 0; i < w->count; i++) {
        seed = seed * 1664525 + 1013904223;
        int32_t a = (int32_t)(seed >> 24) - 128, b = (int32_t)(seed >> 16 & 255) - 128;
        ((int8_t *)w->data)[i] = (int8_t)(a * b / 160);
    }
}

static bool run_layer(const layer *l)
{
    int64_t out[4] = {l->x[0], 0, 0, l->w[0]};
    double flop = 2.0 * (double)(l->x[0] * l->w[0] * l->x[3] / l->group);
    for (int d = 1; d < 3; d++) {
        out[d] = (l->x[d] + 2 * l->pad - l->w[d + 1]) / l->stride + 1;
        flop *= (double)out[d] * (double)l->w[d + 1];
    }
    nori_tensor *t[9] = {bench_tensor(NORI_UINT8, 4, l->x), filled(NORI_FLOAT, 0, NULL, 0.02),
                         filled(NORI_UINT8, 0, NULL, 120), bench_tensor(NORI_INT8, 4, l->w),
                         filled(NORI_FLOAT, 1, &l->w[0], 0.003), filled(NORI_INT8, 0, NULL, 0),
                         filled(NORI_FLOAT, 0, NULL, 0.1), filled(NORI_UINT8, 0, NULL, 128),
                         filled(NORI_INT32, 1, &l->w[0], 77)};
    nori_tensor *y = bench_tensor(NORI_UINT8, 4, out);
    int64_t pads[4] = {l->pad, l->pad, l->pad, l->pad}, strides[2] = {l->stride, l->stride};
    nori__attr attrs[3] = {{.name = "pads", .kind = NORI__ATTR_INTS, .count = 4, .v.ints = pads},
                           {.name = "strides", .kind = NORI__ATTR_INTS, .count = 2,
                            .v.ints = strides},
                           {.name = "group", .kind = NORI__ATTR_INT, .v.i = l->group}};
    nori__value values[10] = {{.name = "x"}}, *in[9], *made[1] = {&values[9]};
    const nori_tensor *ins[9];
    add_tails(t[3]);
    for (int i = 0; i < 9; i++) {
        values[i].constant = i > 0 ? t[i] : NULL;
        in[i] = &values[i];
        ins[i] = t[i];
    }
    nori__node node = {.name = "", .op_type = "LastConv", .domain = "nori", .overload = "",
                       .version = 1, .op = nori__lastc_op(NORI__LASTC_CONV), .inputs = in,
                       .outputs = made, .input_count = 9, .output_count = 1, .attrs = attrs,
                       .attr_count = 3};
    bool ok = bench_node(l->name, &node, ins, 9, y, flop);
    for (int i = 0; i < 9; i++) {
        nori_tensor_free(t[i]);
    }
    nori_tensor_free(y);
    return ok;
}

bool bench_int8(int argc, char **argv)
{
    bool ok = true;
    for (size_t i = 0; i < NORI__COUNT(layers); i++) {
        ok = (!bench_wanted(layers[i].name, argc, argv) || run_layer(&layers[i])) && ok;
    }
    return ok;
}

/* kernels.c: nori-bench-kernels: products and convolutions of the cpu provider, one thread, as a
 * share of the machine's peak of float multiply-adds at the level in use. Float convolutions are
 * those over channel blocks, blocked input to blocked output, as they run inside a network; with
 * Winograd's form the rate counts the multiply-adds of the direct one.
 *
 *     NORI_CPU=avx2 nori-bench-kernels [name part ...]
 *
 * Time is process CPU time, the best of several passes; the peak is measured between them, so that
 * a busy machine disturbs both alike. Last on a line: the same over the peak right beside it, the middle
 * one of many short passes. That tells products that wait from a clock that falls under such load. */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "peak.h"
#include "providers/cpu/blocked.h"

enum { PASSES = 7, PAIRS = 41, PAIR_NS = 2000000 };

typedef struct layer {
    const char *name;
    const char *op;
    nori_type type;
    int64_t x[4], w[4]; /* MatMul: x[0..1], w[0..1] */
    int64_t group, stride, pad;
} layer;

static const layer layers[] = {
    {"gemm 1024x1024x1024", "MatMul", NORI_FLOAT, {1024, 1024}, {1024, 1024}, 0, 0, 0},
    {"gemm 197x3072x768", "MatMul", NORI_FLOAT, {197, 768}, {768, 3072}, 0, 0, 0},
    {"gemm 128x256x256", "MatMul", NORI_FLOAT, {128, 256}, {256, 256}, 0, 0, 0},
    {"gemm 3136x64x576", "MatMul", NORI_FLOAT, {3136, 576}, {576, 64}, 0, 0, 0},
    {"gemm 128x256x1024", "MatMul", NORI_FLOAT, {128, 1024}, {1024, 256}, 0, 0, 0},
    {"gemm 128x1024x256", "MatMul", NORI_FLOAT, {128, 256}, {256, 1024}, 0, 0, 0},
    {"gemm 197x768x3072", "MatMul", NORI_FLOAT, {197, 3072}, {3072, 768}, 0, 0, 0},
    {"gemm 197x64x197", "MatMul", NORI_FLOAT, {197, 197}, {197, 64}, 0, 0, 0},
    {"gemm 8x1024x256", "MatMul", NORI_FLOAT, {8, 256}, {256, 1024}, 0, 0, 0},
    {"gemm 4x1024x256", "MatMul", NORI_FLOAT, {4, 256}, {256, 1024}, 0, 0, 0},
    {"gemv 1x1024x256", "MatMul", NORI_FLOAT, {1, 256}, {256, 1024}, 0, 0, 0},
    {"gemv 1x1000x2048", "MatMul", NORI_FLOAT, {1, 2048}, {2048, 1000}, 0, 0, 0},
    {"conv 3x3 64-64 @56", "Conv", NORI_FLOAT, {1, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1},
    {"conv 3x3 128-128 @28", "Conv", NORI_FLOAT, {1, 128, 28, 28}, {128, 128, 3, 3}, 1, 1, 1},
    {"conv 3x3 256-256 @14", "Conv", NORI_FLOAT, {1, 256, 14, 14}, {256, 256, 3, 3}, 1, 1, 1},
    {"conv 3x3 512-512 @7", "Conv", NORI_FLOAT, {1, 512, 7, 7}, {512, 512, 3, 3}, 1, 1, 1},
    {"conv 3x3 s2 128-128 @56", "Conv", NORI_FLOAT, {1, 128, 56, 56}, {128, 128, 3, 3}, 1, 2, 1},
    {"conv 3x3 s2 512-512 @14", "Conv", NORI_FLOAT, {1, 512, 14, 14}, {512, 512, 3, 3}, 1, 2, 1},
    {"conv 3x3 64-64 @224", "Conv", NORI_FLOAT, {1, 64, 224, 224}, {64, 64, 3, 3}, 1, 1, 1},
    {"conv 3x3 16-64 @56", "Conv", NORI_FLOAT, {1, 16, 56, 56}, {64, 16, 3, 3}, 1, 1, 1},
    {"conv 7x7 s2 3-64 @224", "Conv", NORI_FLOAT, {1, 3, 224, 224}, {64, 3, 7, 7}, 1, 2, 3},
    {"conv 3x3 s2 3-32 @224", "Conv", NORI_FLOAT, {1, 3, 224, 224}, {32, 3, 3, 3}, 1, 2, 1},
    {"conv 1x1 64-256 @56", "Conv", NORI_FLOAT, {1, 64, 56, 56}, {256, 64, 1, 1}, 1, 1, 0},
    {"conv 1x1 256-64 @56", "Conv", NORI_FLOAT, {1, 256, 56, 56}, {64, 256, 1, 1}, 1, 1, 0},
    {"conv 1x1 1024-256 @14", "Conv", NORI_FLOAT, {1, 1024, 14, 14}, {256, 1024, 1, 1}, 1, 1, 0},
    {"conv 1x1 2048-512 @7", "Conv", NORI_FLOAT, {1, 2048, 7, 7}, {512, 2048, 1, 1}, 1, 1, 0},
    {"conv 1x1 512-2048 @7", "Conv", NORI_FLOAT, {1, 512, 7, 7}, {2048, 512, 1, 1}, 1, 1, 0},
    {"conv 1x1 s2 256-512 @56", "Conv", NORI_FLOAT, {1, 256, 56, 56}, {512, 256, 1, 1}, 1, 2, 0},
    {"conv 1x1 16-96 @112", "Conv", NORI_FLOAT, {1, 16, 112, 112}, {96, 16, 1, 1}, 1, 1, 0},
    {"conv 1x1 96-24 @56", "Conv", NORI_FLOAT, {1, 96, 56, 56}, {24, 96, 1, 1}, 1, 1, 0},
    {"conv 1x1 384-64 @14", "Conv", NORI_FLOAT, {1, 384, 14, 14}, {64, 384, 1, 1}, 1, 1, 0},
    {"conv 1x1 960-160 @7", "Conv", NORI_FLOAT, {1, 960, 7, 7}, {160, 960, 1, 1}, 1, 1, 0},
    {"depthwise 3x3 96 @56", "Conv", NORI_FLOAT, {1, 96, 56, 56}, {96, 1, 3, 3}, 96, 1, 1},
    {"depthwise 3x3 s2 96 @112", "Conv", NORI_FLOAT, {1, 96, 112, 112}, {96, 1, 3, 3}, 96, 2, 1},
    {"depthwise 3x3 384 @14", "Conv", NORI_FLOAT, {1, 384, 14, 14}, {384, 1, 3, 3}, 384, 1, 1},
    {"depthwise 5x5 240 @28", "Conv", NORI_FLOAT, {1, 240, 28, 28}, {240, 1, 5, 5}, 240, 1, 2},
    {"depthwise 5x5 672 @14", "Conv", NORI_FLOAT, {1, 672, 14, 14}, {672, 1, 5, 5}, 672, 1, 2},
    {"int8 matmul 1024x1024x1024", "MatMulInteger", NORI_UINT8, {1024, 1024}, {1024, 1024}, 0, 0, 0},
    {"int8 conv 3x3 64-64 @56", "ConvInteger", NORI_UINT8, {1, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1},
    {"int8 conv 3x3 256-256 @14", "ConvInteger", NORI_UINT8, {1, 256, 14, 14}, {256, 256, 3, 3}, 1, 1, 1},
};

/* share: of some milliseconds. */
static double measure_peak(double share)
{
    uint64_t start = nori__cpu_ns();
    nori__cpu_level level = nori__cpu_level_get();
    double flop;
#if defined(__x86_64__) || defined(__i386__)
    flop = level >= NORI__CPU_AVX512 ? peak_avx512(4e8 * share)
           : level >= NORI__CPU_AVX2 ? peak_avx2(2e8 * share)
                                     : peak_base(2e7 * share);
#else
    (void)level;
    flop = peak_base(2e7 * share);
#endif
    return flop / (double)(nori__cpu_ns() - start);
}

nori_tensor *bench_tensor(nori_type type, int rank, const int64_t *dims)
{
    nori_tensor *t = NULL;
    uint32_t seed = 1;
    if (nori__tensor_new(&nori__malloc, type, rank, dims, &t, NULL) != NORI_OK) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    for (int64_t i = 0; i < t->count; i++) {
        seed = seed * 1664525 + 1013904223;
        if (type == NORI_FLOAT) {
            ((float *)t->data)[i] = (float)(seed >> 8) / 8388608.0f - 1;
        } else if (type != NORI_INT32) {
            ((uint8_t *)t->data)[i] = (uint8_t)(seed >> 24);
        }
    }
    return t;
}

/* Rate of the kernel over at least so long; 0: it failed. */
static double measure(const nori__kernel *k, const void *state, nori_call *call, double flop,
                      uint64_t ns)
{
    uint64_t start = nori__cpu_ns(), spent = 0;
    int rounds = 0;
    for (; spent < ns; rounds++) {
        if (k->run(state, call) != NORI_OK) {
            return 0;
        }
        spent = nori__cpu_ns() - start;
    }
    return flop * rounds / (double)spent;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Its share of the peak around it. */
static double share_beside(const nori__kernel *k, const void *state, nori_call *call, double flop)
{
    double shares[PAIRS], before = measure_peak(0.1);
    for (int i = 0; i < PAIRS; i++) {
        double rate = measure(k, state, call, flop, PAIR_NS), after = measure_peak(0.1);
        shares[i] = 2 * rate / (before + after);
        before = after;
    }
    qsort(shares, PAIRS, sizeof(*shares), by_size);
    return shares[PAIRS / 2];
}

bool bench_node(const char *name, nori__node *node, const nori_tensor *const *in, uint32_t n_in,
                nori_tensor *y, double flop)
{
    const nori__kernel *k = node->op ? nori__cpu_kernel(node) : NULL;
    void *state = NULL;
    size_t bytes = 0;
    nori_error err = {0};
    bool ok = k && (!k->prepare || k->prepare(node, &nori__malloc, &state, &bytes, &err) == NORI_OK);
    if (ok) {
        nori_call call = {.node = node, .n_in = n_in, .n_out = 1, .in = in, .out = &y,
                          .allocator = &nori__malloc, .threads = 1, .err = &err};
        call.work_size = k->workspace ? k->workspace(state, &call) : 0;
        call.work = nori__alloc(&nori__malloc, call.work_size);
        double best = 0, peak = 0;
        for (int pass = 0; ok && pass < PASSES; pass++) {
            double now = measure_peak(1);
            peak = now > peak ? now : peak;
            double rate = measure(k, state, &call, flop, 20000000);
            ok = rate > 0;
            best = rate > best ? rate : best;
        }
        if (ok) {
            printf("%-28s %8.1f GFLOP/s %8.3f ms %6.1f %% of %.1f, %.1f %% beside\n", name, best,
                   flop / best * 1e-6, 100 * best / peak, peak,
                   100 * share_beside(k, state, &call, flop));
        }
        fflush(stdout);
        nori__release(&nori__malloc, call.work, call.work_size);
        if (k->release) {
            k->release(state, &nori__malloc);
        }
    } else {
        printf("%-28s no kernel\n", name);
    }
    return ok || err.status == NORI_OK;
}

/* One layer as a node in memory; prints its line. */
static bool run_layer(const layer *l)
{
    bool conv = l->w[2] > 0;
    int rank = conv ? 4 : 2;
    int64_t out[4] = {l->x[0], conv ? l->w[0] : l->w[1], 0, 0};
    double flop = 2.0 * (double)l->x[0] * (double)out[1] * (double)l->x[1];
    for (int d = 2; conv && d < 4; d++) {
        out[d] = (l->x[d] + 2 * l->pad - l->w[d]) / l->stride + 1;
        flop *= (double)out[d] * (double)l->w[d];
    }
    flop = conv ? flop / (double)l->group : flop;
    bool blocked = conv && l->type == NORI_FLOAT;
    int64_t block = (int64_t)nori__kernels_get()->block;
    int64_t x_dims[5] = {l->x[0], (l->x[1] + block - 1) / block, l->x[2], l->x[3], block};
    int64_t y_dims[5] = {out[0], (out[1] + block - 1) / block, out[2], out[3], block};
    bool planes = blocked && l->x[1] <= 4; /* as the first layer of a network reads its picture */
    nori_tensor *x = blocked && !planes ? bench_tensor(l->type, 5, x_dims)
                                        : bench_tensor(l->type, rank, l->x);
    nori_tensor *w = bench_tensor(l->type == NORI_UINT8 ? NORI_INT8 : l->type, rank, l->w);
    nori_tensor *y = blocked ? bench_tensor(NORI_FLOAT, 5, y_dims)
                             : bench_tensor(l->type == NORI_FLOAT ? NORI_FLOAT : NORI_INT32, rank,
                                             out);
    int64_t pads[4] = {l->pad, l->pad, l->pad, l->pad}, strides[2] = {l->stride, l->stride};
    nori__attr attrs[3] = {{.name = "pads", .kind = NORI__ATTR_INTS, .count = 4, .v.ints = pads},
                           {.name = "strides", .kind = NORI__ATTR_INTS, .count = 2,
                            .v.ints = strides},
                           {.name = "group", .kind = NORI__ATTR_INT, .v.i = l->group}};
    nori__value values[3] = {{.name = "x"}, {.name = "w", .constant = w}, {.name = "y"}};
    nori__dim dims[5];
    for (int d = 0; d < x->rank; d++) {
        dims[d] = nori__dim_of(x->dims[d]);
    }
    values[0].type.rank = (int8_t)x->rank;
    values[0].type.dims = dims;
    values[0].type.elem = x->type;
    values[1].type.elem = w->type;
    values[2].type.elem = y->type;
    nori__value *in[2] = {&values[0], &values[1]}, *made[1] = {&values[2]};
    nori__node node = {.name = "", .op_type = l->op, .domain = "", .overload = "",
                       .version = 13,
                       .op = blocked ? nori__blocked_op(NORI__BLOCKED_CONV)
                                     : nori__op_find("", l->op), .inputs = in,
                       .outputs = made, .input_count = 2, .output_count = 1, .attrs = attrs,
                       .attr_count = conv ? 3 : 0};
    const nori_tensor *ins[2] = {x, w};
    bool ok = bench_node(l->name, &node, ins, 2, y, flop);
    nori_tensor_free(x);
    nori_tensor_free(w);
    nori_tensor_free(y);
    return ok;
}

bool bench_wanted(const char *name, int argc, char **argv)
{
    bool wanted = argc < 2;
    for (int a = 1; a < argc; a++) {
        wanted = wanted || strstr(name, argv[a]);
    }
    return wanted;
}

int main(int argc, char **argv)
{
    bool ok = true;
    printf("%s, level %s\n", nori__cpu_name(), nori__cpu_level_name(nori__cpu_level_get()));
    for (size_t i = 0; i < NORI__COUNT(layers); i++) {
        ok = (!bench_wanted(layers[i].name, argc, argv) || run_layer(&layers[i])) && ok;
    }
    ok = bench_int8(argc, argv) && ok;
    return ok ? 0 : 1;
}

/* test_cpu_blocked.c: small convolutional networks on the cpu provider's channel blocks against the
 * reference provider: every form of convolution, what follows them, what must stay plain; the same
 * bits for 1, 2 and 5 threads. Runs at each level (NORI_CPU). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "make_model.h"
#include "model_run.h"
#include "nori/nori.h"
#include "ops/resolve.h"
#include "providers/cpu/cpu_kernels.h"
#include "providers/providers.h"
#include "rewrite_case.h"
#include "some_cases.h"

/* Nodes are "Op key=value ...:inputs:outputs". Convolutions make their weights (key w) and, unless
 * b=0, bias. Blocked: operators left after the rewrite ("" is not looked at: they depend on the
 * block). */
typedef struct net {
    const char *what, *input;
    const char *nodes[10];
    const char *outputs, *blocked;
} net;

static const net nets[] = {
    {"image", "1 3 17 19", {"Conv w=10x3x3x3 s=2 p=1:x:y"}, "y", "BlockedConv Unblock"},
    {"image, large kernel", "2 3 30 29",
     {"Conv w=20x3x7x7 s=2 p=3:x:a", "Relu:a:b", "MaxPool k=3 s=2 p=1:b:y"},
     "y", "BlockedStem Unblock"},
    {"stem, no pads", "1 3 33 41",
     {"Conv w=64x3x3x3 s=2:x:a", "Relu:a:b", "MaxPool k=3 s=2:b:y"}, "y", "BlockedStem Unblock"},
    {"stem, large, not clamped", "2 4 131 140",
     {"Conv w=35x4x5x5 p=2:x:a", "HardSwish:a:b", "MaxPool k=2 s=2:b:y"}, "y", "BlockedStem Unblock"},
    {"stem, dilated, overlapping", "1 1 60 47",
     {"Conv w=40x1x3x3 d=2 p=1:x:a", "MaxPool k=5 s=1 p=2:a:y"}, "y", "BlockedStem Unblock"},
    {"stem, read twice", "1 3 20 20",
     {"Conv w=16x3x3x3 p=1:x:a", "MaxPool k=3 s=1 p=1:a:b", "Add:a b:y"}, "y",
     "BlockedConv BlockedPool Add Unblock"},
    {"image, no pads", "1 1 9 9", {"Conv w=4x1x3x3:x:y"}, "y", "BlockedConv Unblock"},
    {"pointwise", "2 33 7 7", {"Conv w=50x33x1x1:x:a", "Sigmoid:a:y"}, "y", "Block BlockedConv Unblock"},
    {"pointwise, deep", "1 700 3 5", {"Conv w=19x700x1x1:x:y"}, "y", "Block BlockedConv Unblock"},
    {"pointwise, wide", "1 16 60 61", {"Conv w=16x16x1x1:x:y"}, "y", "Block BlockedConv Unblock"},
    {"pointwise with stride", "1 20 9 8", {"Conv w=35x20x1x1 s=2:x:y"}, "y", "Block BlockedConv Unblock"},
    {"pointwise with pads", "1 8 5 5", {"Conv w=9x8x1x1 p=1:x:y"}, "y", "Block BlockedConv Unblock"},
    {"direct", "1 24 7 7", {"Conv w=40x24x3x3 p=1:x:y"}, "y", "Block BlockedConv Unblock"},
    {"direct, strided", "1 24 15 14", {"Conv w=40x24x3x3 p=1 s=2:x:a", "Clip:a low high:y"}, "y",
     "Block BlockedConv Unblock"},
    {"direct, dilated", "1 18 11 12", {"Conv w=9x18x3x3 p=2 d=2:x:y"}, "y", "Block BlockedConv Unblock"},
    {"direct, wide", "1 5 70 64", {"Conv w=33x5x5x3 p=1:x:y"}, "y", "Block BlockedConv Unblock"},
    {"direct, deep", "1 300 5 6", {"Conv w=16x300x3x3 p=1:x:y"}, "y", "Block BlockedConv Unblock"},
    {"window larger than the map", "1 6 2 2", {"Conv w=7x6x3x3 p=2:x:y"}, "y",
     "Block BlockedConv Unblock"},
    {"winograd", "1 32 16 16", {"Conv w=32x32x3x3 p=1:x:a", "Relu:a:y"}, "y", "Block BlockedConv Unblock"},
    {"winograd, odd sizes", "2 19 21 14", {"Conv w=37x19x3x3 p=1:x:a", "HardSwish:a:y"}, "y",
     "Block BlockedConv Unblock"},
    {"winograd, no pads", "1 16 30 27", {"Conv w=16x16x3x3:x:y"}, "y", "Block BlockedConv Unblock"},
    {"winograd, small tiles", "1 512 7 7", {"Conv w=64x512x3x3 p=1:x:a", "Relu:a:y"}, "y",
     "Block BlockedConv Unblock"},
    {"winograd, small tiles, odd sizes", "1 520 6 7", {"Conv w=72x520x3x3 p=1:x:a", "HardSwish:a:y"}, "y",
     "Block BlockedConv Unblock"},
    {"winograd, more pads", "1 16 14 13", {"Conv w=48x16x3x3 p=2:x:y"}, "y", "Block BlockedConv Unblock"},
    {"groups of whole blocks", "1 64 9 9", {"Conv w=64x32x3x3 p=1 g=2:x:y"}, "y",
     "Block BlockedConv Unblock"},
    {"groups within blocks", "1 16 9 9", {"Conv w=64x4x3x3 p=1 g=4:x:y"}, "y",
     "Block BlockedConv Unblock"},
    {"groups across blocks", "1 12 9 9", {"Conv w=15x4x3x3 p=1 g=3:x:y"}, "y", "Conv"},
    {"depthwise", "1 21 14 14", {"Conv w=21x1x3x3 p=1 g=21:x:a", "Relu:a:y"}, "y",
     "Block BlockedConv Unblock"},
    {"depthwise, strided", "2 17 15 18", {"Conv w=17x1x5x5 p=2 s=2 g=17:x:a", "Sigmoid:a:y"}, "y",
     "Block BlockedConv Unblock"},
    {"depthwise, multiplied", "1 8 9 9", {"Conv w=16x1x3x3 p=1 g=8:x:y"}, "y", "Conv"},
    {"inverted residual", "1 16 12 13",
     {"Conv w=48x16x1x1:x:a", "Clip:a low high:b", "Conv w=48x1x3x3 p=1 g=48:b:c", "Clip:c low high:d",
      "Conv w=16x48x1x1:d:e", "Add:e x:y"}, "y", "Block BlockedExpand BlockedConv Unblock"},
    {"expansion, long", "2 20 70 65",
     {"Conv w=72x20x1x1:x:a", "HardSwish:a:b", "Conv w=72x1x5x5 p=2 s=2 g=72:b:c", "Sigmoid:c:y"}, "y",
     "Block BlockedExpand Unblock"},
    {"expansion, dilated", "1 300 11 9",
     {"Conv w=17x300x1x1:x:a", "Relu:a:b", "Conv w=17x1x3x3 p=2 d=2 g=17:b:y"}, "y",
     "Block BlockedExpand Unblock"},
    {"expansion, read twice", "1 16 9 9",
     {"Conv w=24x16x1x1:x:a", "Conv w=24x1x3x3 p=1 g=24:a:b", "Add:a b:y"}, "y",
     "Block BlockedConv BlockedConv Unblock"},
    {"squeeze and excite", "2 24 9 8",
     {"Conv w=24x24x3x3 p=1:x:a", "GlobalAveragePool:a:m", "Conv w=6x24x1x1:m:n", "Relu:n:o",
      "Conv w=24x6x1x1:o:q", "HardSigmoid:q:r", "Mul:a r:s", "Mul:r a:t", "Add:s t:y"}, "y",
     "Block BlockedConv BlockedMean BlockedConv BlockedConv BlockedScale BlockedScale Add Unblock"},
    {"residual, winograd", "1 16 13 15", {"Conv w=16x16x3x3 p=1:x:a", "Add:x a:b", "Relu:b:y"}, "y",
     "Block BlockedConv Unblock"},
    {"two readers", "1 8 6 6", {"Conv w=8x8x3x3 p=1:x:a", "Neg:a:b", "Softmax:a:c", "Add:b c:y"}, "y a",
     "Block BlockedConv Unblock Neg Unblock Softmax Add"},
    {"concat of whole blocks", "1 16 6 6",
     {"Conv w=32x16x1x1:x:a", "Conv w=16x16x3x3 p=1:x:b", "Conv w=5x16x1x1:x:c", "Concat axis=1:a b c:d",
      "Conv w=8x53x1x1:d:y"}, "y",
     "Block BlockedConv BlockedConv BlockedConv Concat BlockedConv Unblock"},
    {"concat across blocks", "1 16 6 6",
     {"Conv w=18x16x1x1:x:a", "Conv w=16x16x1x1:x:b", "Concat axis=-3:a b:y"}, "y",
     "Block BlockedConv Unblock BlockedConv Unblock Concat"},
    {"pools", "1 20 11 10",
     {"Conv w=20x20x1x1:x:a", "AveragePool k=3 s=2 p=1:a:b", "AveragePool k=2 s=1 p=1 all=1:b:c",
      "MaxPool k=2 s=2:c:y"}, "y", "Block BlockedConv BlockedPool BlockedPool BlockedPool Unblock"},
    {"elementwise", "1 10 5 5",
     {"Conv w=10x10x1x1:x:a", "Mul:a half:b", "Tanh:b:c", "Max:c a:d", "Sub:half d:e", "Abs:e:f",
      "LeakyRelu:f:y"}, "y", "Block BlockedConv Mul Tanh Max Sub Abs LeakyRelu Unblock"},
    {"norm", "2 21 7 8",
     {"Conv w=21x21x1x1:x:a", "Conv w=21x21x1x1:a:c", "Add:a c:s", "BatchNormalization:s n1 n2 n3 n4:d",
      "Relu:d:e", "BatchNormalization:e n1 n2 n3 n4:y"}, "y",
     "Block BlockedConv BlockedConv BlockedNorm BlockedNorm Unblock"},
    {"slopes", "2 21 7 8", {"Conv w=21x21x1x1:x:a", "PRelu:a slopes:b", "PRelu:b half:y"}, "y",
     "Block BlockedConv BlockedPRelu BlockedPRelu Unblock"},
    {"nearest", "1 9 5 6", {"Conv w=10x9x1x1:x:a", "Resize mode=nearest:a - twice:y"}, "y",
     "Block BlockedConv BlockedResize Unblock"},
    {"linear", "2 9 5 6", {"Conv w=10x9x1x1:x:a", "Resize mode=linear:a - twice:b",
      "Resize mode=linear at=align_corners:b - odd:c", "Resize mode=linear at=pytorch_half_pixel:c - less:y"},
     "y", "Block BlockedConv BlockedResize BlockedResize BlockedResize Unblock"},
    {"plain resize", "2 3 5 6",
     {"Resize mode=linear:x - odd:a", "Resize mode=nearest at=asymmetric:a - odd:y"},
     "y", "Resize Resize"},
    {"turned", "2 9 5 6", {"ConvTranspose w=9x20x2x2 s=2:x:a", "Relu:a:y"}, "y",
     "Block BlockedConvTranspose Unblock"},
    {"turned, overlapping", "1 35 7 6", {"ConvTranspose w=35x17x4x4 s=2 p=1:x:a", "Sigmoid:a:y"}, "y",
     "Block BlockedConvTranspose Unblock"},
    {"turned, kernel below the stride", "1 5 4 3", {"ConvTranspose w=5x6x2x3 s=3:x:y"}, "y",
     "Block BlockedConvTranspose Unblock"},
    {"turned, stride 1", "1 8 5 9", {"ConvTranspose w=8x3x5x3 s=1 p=2:x:y"}, "y",
     "Block BlockedConvTranspose Unblock"},
    {"turned, more output", "1 8 5 9", {"ConvTranspose w=8x3x3x3 s=2 p=1 o=1:x:y"}, "y",
     "Block BlockedConvTranspose Unblock"},
    {"turned, same size", "1 8 5 9", {"ConvTranspose w=8x3x3x3 s=2 same=1:x:y"}, "y",
     "Block BlockedConvTranspose Unblock"},
    {"turned, many channels", "1 300 6 6", {"ConvTranspose w=300x16x3x3 s=2 p=1:x:y"}, "y",
     "Block BlockedConvTranspose Unblock"},
    {"a row added", "1 10 5 5", {"Conv w=10x10x1x1:x:a", "Add:a row:y"}, "y",
     "Block BlockedConv Unblock Add"},
    {"empty batch", "0 8 6 6", {"Conv w=8x8x3x3 p=1:x:a", "MaxPool k=2 s=2:a:y"}, "y",
     "Block BlockedConv BlockedPool Unblock"},
    {"no pads, dense", "1 3 8 8", {"Conv w=4x3x1x1:x:y"}, "y", "BlockedConv Unblock"},
};

static void floats(make *m, const char *name, const char *shape, float scale)
{
    nori__pb_tensor *t = MAKE_ADD(m, m->graph.initializers);
    int64_t count = 1;
    uint32_t seed = (uint32_t)strlen(shape) * 77 + (uint8_t)name[0];
    t->name = make_str(m, name);
    t->data_type = NORI_FLOAT;
    for (char *end; *shape; shape = *end ? end + 1 : end) {
        int64_t d = strtoll(shape, &end, 10);
        *MAKE_ADD(m, t->dims) = d;
        count *= d;
    }
    /* At once: adding one by one copies them all each time. */
    t->floats.items = nori__arena_array(&m->arena, (size_t)count + 1, sizeof(float));
    assert_non_null(t->floats.items);
    t->floats.count = (size_t)count;
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        t->floats.items[i] = ((float)(seed >> 8) / 8388608.0f - 1) * scale;
    }
}

static const char *key(const char *text, char letter)
{
    const char *at = strchr(text, ' ');
    for (; at; at = strchr(at + 1, ' ')) {
        if (at[1] == letter && at[2] == '=') {
            return at + 3;
        }
    }
    return NULL;
}

static int64_t number(const char *text, char letter, int64_t otherwise)
{
    const char *at = key(text, letter);
    return at ? strtoll(at, NULL, 10) : otherwise;
}

static void attributes(make *m, nori__pb_node *n, const char *text, bool conv)
{
    int64_t p = number(text, 'p', 0), s = number(text, 's', 1), d = number(text, 'd', 1);
    int64_t pads[4] = {p, p, p, p}, strides[2] = {s, s}, dilations[2] = {d, d};
    int64_t kernel[2] = {number(text, 'k', 0), number(text, 'k', 0)};
    if (strstr(text, " same=1")) {
        make_attr_text(m, n, "auto_pad", "SAME_LOWER");
    }
    int64_t more[2] = {number(text, 'o', 0), number(text, 'o', 0)};
    if (more[0] > 0) {
        make_attr_ints(m, n, "output_padding", 2, more);
    }
    if (conv || kernel[0] > 0) {
        if (!strstr(text, " same=1")) {
            make_attr_ints(m, n, "pads", 4, pads);
        }
        make_attr_ints(m, n, "strides", 2, strides);
    }
    if (conv) {
        make_attr_ints(m, n, "dilations", 2, dilations);
        make_attr_int(m, n, "group", number(text, 'g', 1));
    } else if (kernel[0] > 0) {
        make_attr_ints(m, n, "kernel_shape", 2, kernel);
    }
    if (strstr(text, " all=1")) {
        make_attr_int(m, n, "count_include_pad", 1);
    }
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(text, i == 0 ? " mode=" : " at=");
        if (at) {
            char value[32];
            at = strchr(at, '=') + 1;
            snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, " "), at);
            make_attr_text(m, n, i == 0 ? "mode" : "coordinate_transformation_mode", value);
        }
    }
    if (strstr(text, " axis=")) {
        make_attr_int(m, n, "axis", strtoll(strstr(text, " axis=") + 6, NULL, 10));
    }
}

static void add_node(make *m, const char *spec)
{
    char text[128], name[32], all[96], weight[32], bias[32], shape[32];
    snprintf(text, sizeof(text), "%s", spec);
    char *in = strchr(text, ':'), *out = strrchr(text, ':');
    *in++ = *out++ = 0;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, " "), text);
    bool turned = nori__same(name, "ConvTranspose"), conv = turned || nori__same(name, "Conv");
    snprintf(all, sizeof(all), "%s", in);
    if (conv) {
        const char *w = key(text, 'w');
        snprintf(weight, sizeof(weight), "w_%s", out);
        snprintf(bias, sizeof(bias), "b_%s", out);
        snprintf(all, sizeof(all), "%s %s %s", in, weight, bias);
        snprintf(shape, sizeof(shape), "%.*s", (int)strcspn(w, " "), w);
        char *rest;
        double taps = 1;
        strtoll(shape, &rest, 10);
        for (char *at = rest; *at;) {
            taps *= (double)strtoll(at + 1, &at, 10);
        }
        floats(m, weight, shape, (float)(1 / sqrt(taps)));
        *rest = 0;
        if (turned) { /* channels stand first */
            snprintf(shape, sizeof(shape), "%d", (int)strtoll(strchr(w, 'x') + 1, NULL, 10));
        }
        floats(m, bias, shape, 0.5f);
    }
    attributes(m, make_node(m, &m->graph, "", name, name, all, out), text, conv);
}

static void build(make *m, const net *c)
{
    make_begin(m, 18);
    make_input(m, &m->graph, "x", NORI_FLOAT, c->input);
    floats(m, "low", "", 0.3f);
    floats(m, "high", "", -0.9f);
    m->graph.initializers.items[0].floats.items[0] = -0.2f;
    m->graph.initializers.items[1].floats.items[0] = 0.6f;
    floats(m, "half", "", 0.5f);
    floats(m, "row", "5", 1);
    for (int i = 1; i < 5; i++) {
        char name[4];
        snprintf(name, sizeof(name), "n%d", i);
        floats(m, name, "21", 0.3f);
        nori__pb_tensor *t = &m->graph.initializers.items[m->graph.initializers.count - 1];
        for (size_t e = 0; i == 4 && e < t->floats.count; e++) { /* variances */
            t->floats.items[e] = 0.5f + t->floats.items[e];
        }
    }
    floats(m, "slopes", "21 1 1", 1);
    static const float scales[3][4] = {{1, 1, 2, 2}, {1, 1, 1.7f, 2.4f}, {1, 1, 0.6f, 0.5f}};
    static const char *const scale_names[3] = {"twice", "odd", "less"};
    for (int i = 0; i < 3; i++) {
        floats(m, scale_names[i], "4", 1);
        memcpy(m->graph.initializers.items[m->graph.initializers.count - 1].floats.items, scales[i],
               sizeof(scales[i]));
    }
    for (size_t i = 0; c->nodes[i]; i++) {
        add_node(m, c->nodes[i]);
    }
    rewrite_outputs(m, c->outputs, NORI_FLOAT);
}

static void check_nodes(make *m, const net *c)
{
    nori__ir *ir = make_ir(m);
    nori_error err = {0};
    nori__resolve(ir);
    assert_int_equal(nori__infer_graph(ir, &err), NORI_OK);
    for (const nori__rewrite *r = nori__cpu_rewrites; r->name; r++) {
        assert_int_equal(r->infer ? nori__infer_edited(ir, &err) : NORI_OK, NORI_OK);
        assert_int_equal(r->run(ir, &err), NORI_OK);
    }
    assert_int_equal(nori__ir_verify(ir, &err), NORI_OK);
    rewrite_left(ir, c->blocked, c->what);
    assert_int_equal(nori__infer_graph(ir, &err), NORI_OK);
    nori__ir_free(ir);
}

static nori_tensor *input_of(const net *c)
{
    nori_tensor *x = rewrite_input(NORI_FLOAT, c->input);
    for (int64_t i = 0; i < x->count; i++) {
        ((float *)x->data)[i] = (float)(i * 37 % 101) / 50.0f - 1;
    }
    return x;
}

static void networks(void **state)
{
    static const int threads[] = {1, 2, 5};
    (void)state;
    for (size_t i = 0; i < NORI__COUNT(nets); i++) {
        make m;
        if (case_left_out(i)) {
            continue;
        }
        build(&m, &nets[i]);
        /* What depends on the block (of 4, 8 or 16 channels) is written for all of them. */
        check_nodes(&m, &nets[i]);
        nori_tensor *x = input_of(&nets[i]), *want[2] = {0}, *first[2] = {0};
        rewrite_work(&m, x, nets[i].what);
        size_t n_out = strchr(nets[i].outputs, ' ') ? 2 : 1;
        model_run(&m, "reference", 0, 1, x, want, n_out);
        for (size_t t = 0; t < NORI__COUNT(threads); t++) {
            nori_tensor *got[2] = {0};
            model_run(&m, "cpu", 2, threads[t], x, got, n_out);
            for (size_t o = 0; o < n_out; o++) {
                assert_int_equal(got[o]->count, want[o]->count);
                for (int64_t e = 0; e < got[o]->count; e++) {
                    double a = nori__tensor_get_f64(got[o], e), b = nori__tensor_get_f64(want[o], e);
                    if (!(fabs(a - b) <= 2e-5 * fmax(1, fabs(b)))) {
                        print_error("%s: element %d is %g, expected %g\n", nets[i].what, (int)e, a, b);
                    }
                    assert_true(fabs(a - b) <= 2e-5 * fmax(1, fabs(b)));
                }
                if (t == 0) {
                    first[o] = got[o];
                    continue;
                }
                assert_memory_equal(got[o]->data, first[o]->data, got[o]->bytes);
                nori_tensor_free(got[o]);
            }
        }
        for (size_t o = 0; o < n_out; o++) {
            nori_tensor_free(want[o]);
            nori_tensor_free(first[o]);
        }
        nori_tensor_free(x);
        make_end(&m);
    }
}

/* What Winograd's form costs in accuracy, against sums in double. */
static void winograd_error(void **state)
{
    static const net deep[] = {
        {"16", "1 16 24 24", {"Conv w=16x16x3x3 p=1:x:y"}, "y", NULL},
        {"128", "1 128 16 16", {"Conv w=16x128x3x3 p=1:x:y"}, "y", NULL},
        {"512", "1 512 12 12", {"Conv w=16x512x3x3 p=1:x:y"}, "y", NULL},
        {"512, small tiles", "1 512 7 7", {"Conv w=256x512x3x3 p=1:x:y"}, "y", NULL},
    };
    (void)state;
    for (size_t i = 0; i < NORI__COUNT(deep); i++) {
        make m;
        if (case_left_out(i)) {
            continue;
        }
        build(&m, &deep[i]);
        nori_tensor *x = input_of(&deep[i]), *want = NULL, *got = NULL;
        uint32_t seed = 7;
        for (int64_t e = 0; e < x->count; e++) {
            seed = seed * 1664525 + 1013904223;
            ((float *)x->data)[e] = (float)(seed >> 8) / 8388608.0f - 1;
        }
        model_run(&m, "reference", 0, 1, x, &want, 1);
        model_run(&m, "cpu", 2, 1, x, &got, 1);
        double most = 0, error = 0;
        for (int64_t e = 0; e < want->count; e++) {
            double a = nori__tensor_get_f64(got, e), b = nori__tensor_get_f64(want, e);
            most = fmax(most, fabs(b));
            error = fmax(error, fabs(a - b));
        }
        if (!(error <= 5e-6 * most)) {
            print_error("%s channels: %g\n", deep[i].what, error / most);
        }
        assert_true(error <= 5e-6 * most);
        nori_tensor_free(x);
        nori_tensor_free(want);
        nori_tensor_free(got);
        make_end(&m);
    }
}

/* Weights that a caller may give: their defaults are packed, others are taken when they come. */
static void given_weights(void **state)
{
    (void)state;
    static const net nets_given[] = {
        {"winograd", "1 16 14 14", {"Conv w=20x16x3x3 p=1:x:a", "Relu:a:y"}, "y", NULL},
        {"plain", "1 12 9 9", {"Conv w=15x4x3x3 p=1 g=3:x:a", "Relu:a:y"}, "y", NULL},
    };
    for (size_t i = 0; i < NORI__COUNT(nets_given); i++) {
        make m;
        build(&m, &nets_given[i]);
        make_input(&m, &m.graph, "w_a", NORI_FLOAT, i == 0 ? "20 16 3 3" : "15 4 3 3");
        nori_tensor *x[2] = {input_of(&nets_given[i]), NULL};
        nori_error err = {0};
        nori_model *model = NULL;
        nori__text bytes;
        nori__text_init(&bytes, &nori__malloc);
        assert_int_equal(nori__pb_write_model(&m.model, &bytes, &err), NORI_OK);
        assert_int_equal(nori_model_load_memory(NULL, bytes.data, bytes.size, NULL, NULL, &model, &err),
                         NORI_OK);
        const int64_t dims[2][4] = {{20, 16, 3, 3}, {15, 4, 3, 3}};
        nori_session *sessions[2];
        for (int s = 0; s < 2; s++) {
            nori_session_options options;
            nori_session_options_default(&options);
            options.providers = s == 0 ? "reference" : "cpu";
            options.threads = 2;
            assert_int_equal(nori_session_create(model, &options, &sessions[s], &err), NORI_OK);
        }
        for (int round = 0; round < 3; round++) { /* default, given, default again */
            nori_tensor *out[2] = {0};
            if (round == 1) {
                assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 4, dims[i], &x[1], NULL), NORI_OK);
                for (int64_t e = 0; e < x[1]->count; e++) {
                    ((float *)x[1]->data)[e] = (float)(e * 29 % 83) / 400.0f - 0.1f;
                }
            }
            const nori_tensor *in[2] = {x[0], round == 1 ? x[1] : NULL};
            for (int s = 0; s < 2; s++) {
                assert_int_equal(nori_session_run(sessions[s], in, 2, &out[s], 1, &err), NORI_OK);
            }
            for (int64_t e = 0; e < out[0]->count; e++) {
                double want = nori__tensor_get_f64(out[0], e), got = nori__tensor_get_f64(out[1], e);
                assert_true(fabs(got - want) <= 2e-5 * fmax(1, fabs(want)));
            }
            nori_tensor_free(out[0]);
            nori_tensor_free(out[1]);
        }
        nori_session_free(sessions[0]);
        nori_session_free(sessions[1]);
        nori_model_free(model);
        nori__text_free(&bytes);
        nori_tensor_free(x[0]);
        nori_tensor_free(x[1]);
        make_end(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(networks), cmocka_unit_test(winograd_error),
                                       cmocka_unit_test(given_weights)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

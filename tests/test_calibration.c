/* Calibrations: the same whatever the order, the batches and the parts; their file, also when it
 * lies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "quantize_case.h"
#include "tools/quantize/quantize.h"

static void conv_model(make *m, const float *weights)
{
    make_begin(m, 13);
    make_input(m, &m->graph, "x", NORI_FLOAT, "N 2 4 4");
    make_output(m, &m->graph, "y", NORI_FLOAT, "N 2 4 4");
    make_weights(m, &m->graph, "w", "2 2 1 1", weights);
    make_node(m, &m->graph, "", "Conv", "conv", "x w", "a");
    make_node(m, &m->graph, "", "Relu", "clamp", "a", "y");
}
static const float WEIGHTS[4] = {0.5f, -1.25f, 0.3f, 1};

/* Samples one at a time, some of them, or many in a batch. */
typedef struct split {
    samples *from;
    size_t first, step; /* sample first + step * i */
    const size_t *batches; /* sizes, 0 ends; NULL: single ones */
} split;

static int draw_split(void *user, size_t index, nori_tensor **inputs, nori_error *err)
{
    const split *s = user;
    if (!s->batches) {
        return draw(s->from, s->first + s->step * index, inputs, err);
    }
    size_t before = 0;
    for (size_t i = 0; i < index; i++) {
        before += s->batches[i];
    }
    if (s->batches[index] == 0) {
        return 0;
    }
    const int64_t dims[4] = {(int64_t)s->batches[index], 2, 4, 4};
    if (nori_tensor_create(NULL, NORI_FLOAT, 4, dims, &inputs[0], err) != NORI_OK) {
        return -1;
    }
    for (size_t i = 0; i < s->batches[index]; i++) {
        nori_tensor *one = NULL;
        assert_int_equal(draw(s->from, before + i, &one, err), 1);
        memcpy((float *)nori_tensor_data(inputs[0]) + i * 32, nori_tensor_const_data(one), 128);
        nori_tensor_free(one);
    }
    return 1;
}

static nori_calibration *calibrate(const nori_model *model, split *how)
{
    nori_calibrate_options o;
    nori_calibration *c = NULL;
    nori_error err = {0};
    nori_calibrate_options_default(&o);
    o.sample = draw_split;
    o.sample_user = how;
    if (nori_calibrate(model, &o, &c, &err) != NORI_OK) {
        fail_msg("%s: %s", err.where, err.message);
    }
    return c;
}

static nori_tensor *bytes_of(nori_calibration *c)
{
    nori_tensor *t = NULL;
    assert_int_equal(nori_calibration_encode(c, &t, NULL), NORI_OK);
    return t;
}

static void same(nori_calibration *a, nori_calibration *b)
{
    nori_tensor *x = bytes_of(a), *y = bytes_of(b);
    assert_int_equal(nori_tensor_bytes(x), nori_tensor_bytes(y));
    assert_memory_equal(nori_tensor_const_data(x), nori_tensor_const_data(y), nori_tensor_bytes(x));
    nori_tensor_free(x);
    nori_tensor_free(y);
}

/* ---- order, parts, batches ---- */

static void parts(void **state)
{
    (void)state;
    make m;
    samples from = {4, {1, 2, 4, 4}, 37, -3, 2, 11};
    split all = {&from, 0, 1, NULL};
    conv_model(&m, WEIGHTS);
    nori_model *model = load(&m);
    nori_calibration *whole = calibrate(model, &all), *merged = NULL;
    assert_int_equal(nori_calibration_samples(whole), 37);
    static const size_t order[4] = {2, 0, 3, 1};
    for (int i = 0; i < 4; i++) {
        split some = {&from, order[i], 4, NULL};
        nori_calibration *part = calibrate(model, &some);
        if (!merged) {
            merged = part;
            continue;
        }
        assert_int_equal(nori_calibration_merge(merged, part, NULL), NORI_OK);
        nori_calibration_free(part);
    }
    same(whole, merged);
    nori_calibration_free(merged);
    nori_calibration_free(whole);
    nori_model_free(model);
    make_end(&m);
}

/* Eight samples and then three, eleven at once, one by one: one histogram, one range, by every
 * method that looks at numbers and not at samples. */
static void batches(void **state)
{
    (void)state;
    make m;
    samples from = {4, {1, 2, 4, 4}, 11, -3, 2, 12};
    static const size_t ragged[] = {8, 3, 0}, once[] = {11, 0};
    split how[3] = {{&from, 0, 1, NULL}, {&from, 0, 1, ragged}, {&from, 0, 1, once}};
    nori_calibration *c[3];
    conv_model(&m, WEIGHTS);
    nori_model *model = load(&m);
    for (int i = 0; i < 3; i++) {
        c[i] = calibrate(model, &how[i]);
    }
    for (int i = 1; i < 3; i++) {
        for (size_t v = 0; v < c[0]->names.count; v++) {
            const char *name = c[0]->names.items[v];
            const nori__observer *a = nori__map_get(&c[0]->observers, name);
            const nori__observer *b = nori__map_get(&c[i]->observers, name);
            assert_non_null(b);
            assert_true(a->min == b->min && a->max == b->max && a->count == b->count);
            assert_int_equal(a->exponent, b->exponent);
            assert_memory_equal(a->bins, b->bins, sizeof(a->bins));
            for (int method = NORI_RANGE_MINMAX; method <= NORI_RANGE_MSE; method++) {
                nori__range x = nori__range_choose(a, method, 99.9, NORI_UINT8, false);
                nori__range y = nori__range_choose(b, method, 99.9, NORI_UINT8, false);
                assert_true(x.low == y.low && x.high == y.high);
            }
        }
    }
    for (int i = 0; i < 3; i++) {
        nori_calibration_free(c[i]);
    }
    nori_model_free(model);
    make_end(&m);
}

/* Sums that a double loses, in two orders. */
static void exact_sums(void **state)
{
    (void)state;
    static const float v[] = {0x1p127f, 1, -0x1p127f, 0x1p-149f, -0x1.fffffep-100f, 3.25f, 0,
                              0x1p-126f, -0x1p-149f, -0x1.fffffep127f, 0x1.fffffep127f};
    nori__exact up = {{0}}, down = {{0}}, half = {{0}}, rest = {{0}};
    for (size_t i = 0; i < NORI__COUNT(v); i++) {
        nori__exact_add(&up, v[i]);
        nori__exact_add(&down, v[NORI__COUNT(v) - 1 - i]);
        nori__exact_add(i % 3 ? &half : &rest, v[i]);
    }
    nori__exact_join(&half, &rest);
    assert_memory_equal(&up, &down, sizeof(up));
    assert_memory_equal(&up, &half, sizeof(up));
    assert_true(nori__exact_value(&up) == 4.25);
    nori__exact_add(&up, -4.25f);
    assert_true(nori__exact_value(&up) == 0x1p-126 - 0x1.fffffep-100);
    nori__exact zero = {{0}};
    for (int i = 0; i < 1000; i++) {
        nori__exact_add(&zero, i % 2 ? 0.1f : -0.1f);
    }
    assert_true(nori__exact_value(&zero) == 0);
    nori__exact_add(&zero, -0x1p-149f);
    assert_true(nori__exact_value(&zero) == -0x1p-149);
}

/* Mean of 10 samples' extremes, whatever their order: known sums. */
static void averages(void **state)
{
    (void)state;
    static nori__observer o, back;
    nori__observer_init(&o);
    nori__observer_init(&back);
    for (int i = 0; i < 10; i++) {
        nori__observer_add(&o, (float[]){(float)-i, 0, (float)(i * i)}, 3);
        nori__observer_add(&back, (float[]){(float)(i - 9), (float)((9 - i) * (9 - i))}, 2);
    }
    nori__range r = nori__range_choose(&o, NORI_RANGE_AVERAGE, 0, NORI_INT8, false);
    assert_true(r.low == -4.5 && r.high == 28.5); /* 45 / 10, 285 / 10 */
    assert_true(r.clipped > 0);
    nori__range b = nori__range_choose(&back, NORI_RANGE_AVERAGE, 0, NORI_INT8, false);
    assert_true(b.low == r.low && b.high == r.high);
}

/* ---- quantizing from it ---- */

static void file_and_model(void **state)
{
    (void)state;
    make m, other;
    samples from = {4, {1, 2, 4, 4}, 9, -3, 2, 13};
    split all = {&from, 0, 1, NULL};
    conv_model(&m, WEIGHTS);
    conv_model(&other, (float[]){0.5f, -1.25f, 0.3f, 1.001f}); /* one weight is another */
    nori_model *model = load(&m), *stranger = load(&other), *made = NULL, *direct = NULL;
    nori_calibration *c = calibrate(model, &all), *read = NULL, *wrong = calibrate(stranger, &all);
    nori_error err = {0};
    nori_tensor *bytes = bytes_of(c);
    assert_int_equal(nori_calibration_decode(NULL, nori_tensor_const_data(bytes),
                                             nori_tensor_bytes(bytes), &read, &err),
                     NORI_OK);
    same(c, read);
    nori_quantize_options o;
    nori_quantize_report *report = NULL;
    small_options(&o);
    o.calibration = read;
    assert_int_equal(nori_quantize(model, &o, &made, &report, &err), NORI_OK);
    nori_quantize_summary s = {.size = sizeof(s)};
    nori_quantize_report_summary(report, &s);
    assert_int_equal(s.calibrated, 9);
    assert_int_equal(s.samples, 0);
    nori_quantize_value v = {.size = sizeof(v)}, d = {.size = sizeof(d)};
    nori_quantize_report *straight = NULL;
    o.calibration = NULL;
    o.sample = draw;
    o.sample_user = &from;
    assert_int_equal(nori_quantize(model, &o, &direct, &straight, &err), NORI_OK);
    size_t count = 0;
    for (; nori_quantize_report_value(straight, count, &d); count++) {
        assert_int_equal(nori_quantize_report_value(report, count, &v), 1);
        assert_string_equal(v.name, d.name);
        assert_true(v.scale == d.scale && v.zero_point == d.zero_point && v.low == d.low);
    }
    assert_int_equal(count, 1);
    o.calibration = wrong;
    nori_model *none = NULL;
    assert_int_equal(nori_quantize(model, &o, &none, NULL, &err), NORI_ERROR_DATA);
    assert_non_null(strstr(err.message, "another model"));
    memset(&err, 0, sizeof(err));
    assert_int_equal(nori_calibration_merge(c, wrong, &err), NORI_ERROR_DATA);
    assert_int_equal(nori_calibration_samples(c), 9);
    nori_tensor_free(bytes);
    nori_quantize_report_free(report);
    nori_quantize_report_free(straight);
    nori_calibration_free(c);
    nori_calibration_free(read);
    nori_calibration_free(wrong);
    nori_model_free(made);
    nori_model_free(direct);
    nori_model_free(model);
    nori_model_free(stranger);
    make_end(&m);
    make_end(&other);
}

/* ---- files that lie ---- */

static void seal(uint8_t *data, size_t size)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i + 8 < size; i++) {
        h = (h ^ data[i]) * 0x100000001b3u;
    }
    for (int i = 0; i < 8; i++) {
        data[size - 8 + (size_t)i] = (uint8_t)(h >> 8 * i);
    }
}

static nori_status decode(const uint8_t *data, size_t size, nori_error *err)
{
    nori_calibration *c = NULL;
    memset(err, 0, sizeof(*err));
    nori_status s = nori_calibration_decode(NULL, data, size, &c, err);
    assert_true((s == NORI_OK) == (c != NULL));
    /* What was read can be used. */
    for (size_t i = 0; c && i < c->names.count; i++) {
        const nori__observer *o = nori__map_get(&c->observers, c->names.items[i]);
        nori__range r = nori__range_choose(o, NORI_RANGE_AVERAGE, 99, NORI_UINT8, false);
        assert_true(r.low <= r.high && isfinite(r.low) && isfinite(r.high));
    }
    nori_calibration_free(c);
    return s;
}

static void hostile(void **state)
{
    (void)state;
    make m;
    samples from = {4, {1, 2, 4, 4}, 3, -1, 1, 14};
    split all = {&from, 0, 1, NULL};
    conv_model(&m, WEIGHTS);
    nori_model *model = load(&m);
    nori_calibration *c = calibrate(model, &all);
    nori_tensor *bytes = bytes_of(c);
    size_t size = nori_tensor_bytes(bytes);
    uint8_t *data = malloc(size + 8);
    const uint8_t *good = nori_tensor_const_data(bytes);
    nori_error err;
    memcpy(data, good, size);
    assert_int_equal(decode(data, size, &err), NORI_OK);
    /* Parts exactly as long as they are, so that tools see overreads. */
    for (size_t cut = 0; cut < size; cut += cut < 300 ? 1 : 61) {
        uint8_t *part = malloc(cut ? cut : 1);
        memcpy(part, good, cut);
        assert_int_equal(decode(part, cut, &err), NORI_ERROR_FORMAT);
        if (cut >= 48) {
            seal(part, cut);
            assert_int_equal(decode(part, cut, &err), NORI_ERROR_FORMAT);
        }
        free(part);
    }
    size_t refused = 0, tried = 0;
    for (size_t at = 0; at < size - 8; at += at < 300 ? 1 : 7) {
        for (int bit = 0; bit < 8; bit += 7) {
            memcpy(data, good, size);
            data[at] ^= (uint8_t)(1 << bit);
            assert_int_not_equal(decode(data, size, &err), NORI_OK); /* the checksum */
            seal(data, size);
            refused += decode(data, size, &err) != NORI_OK; /* names and counts may be others */
            tried++;
        }
    }
    assert_true(refused * 2 > tried);
    memcpy(data, good, size);
    data[8] = 2;
    seal(data, size);
    assert_int_equal(decode(data, size, &err), NORI_ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "version 2"));
    memcpy(data, good, size);
    memset(data + 32, 0xff, 8); /* as many values as there can be */
    seal(data, size);
    assert_int_equal(decode(data, size, &err), NORI_ERROR_FORMAT);
    free(data);
    nori_tensor_free(bytes);
    nori_calibration_free(c);
    nori_model_free(model);
    make_end(&m);
}

static void too_much(void **state)
{
    (void)state;
    nori_calibration *a, *b;
    assert_int_equal(nori__calibration_new(&nori__malloc, &a, NULL), NORI_OK);
    assert_int_equal(nori__calibration_new(&nori__malloc, &b, NULL), NORI_OK);
    nori__observer *x = nori__calibration_of(a, "v"), *y = nori__calibration_of(b, "v");
    nori__observer_add(x, (float[]){1}, 1);
    nori__observer_add(y, (float[]){1}, 1);
    x->nan = y->nan = NORI__MOST_SEEN - 1;
    nori_error err = {0};
    assert_int_equal(nori_calibration_merge(a, b, &err), NORI_ERROR_DATA);
    assert_int_equal(x->count, 1);
    nori_calibration_free(a);
    nori_calibration_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts),    cmocka_unit_test(batches),        cmocka_unit_test(exact_sums),
        cmocka_unit_test(averages), cmocka_unit_test(file_and_model), cmocka_unit_test(hostile),
        cmocka_unit_test(too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_ref_resize.c: Resize over its modes against the text's formulas, written out directly: every
 * output as a sum over all inputs of the kernel at its distance, edges extended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "one_node.h"

enum { IN = 5, PAD = 40 };
static const double data[IN] = {1, -2, 4, 0.5, 3};

static const char *const coords[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                     "align_corners", "asymmetric", "tf_crop_and_resize"};
static const char *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};

static double position(int how, double o, double out_int, double out, double n, double scale)
{
    switch (how) {
    case 0:
        return (o + 0.5) / scale - 0.5;
    case 1:
        return n / 2 * (1 - out_int / out) + (o + 0.5) / scale - 0.5;
    case 2:
        return out_int > 1 ? (o + 0.5) / scale - 0.5 : 0;
    case 3:
        return out_int > 1 ? o * (n - 1) / (out - 1) : 0;
    case 4:
        return o / scale;
    default: /* region 0.25 to 0.75 */
        return out_int > 1 ? 0.25 * (n - 1) + o * 0.5 * (n - 1) / (out_int - 1) : 0.5 * (n - 1);
    }
}

static double kernel(bool cubic, double x)
{
    x = fabs(x);
    if (!cubic) {
        return x < 1 ? 1 - x : 0;
    }
    if (x < 1) {
        return 1.25 * x * x * x - 2.25 * x * x + 1;
    }
    return x < 2 ? -0.75 * (x * x * x - 5 * x * x + 8 * x - 4) : 0;
}

static double smooth(bool cubic, bool exclude, double x, int n)
{
    double sum = 0, weights = 0;
    for (int i = -PAD; i < n + PAD; i++) {
        double w = kernel(cubic, x - i);
        if (exclude && (i < 0 || i >= n)) {
            continue;
        }
        sum += w * data[i < 0 ? 0 : i >= n ? n - 1 : i];
        weights += w;
    }
    return exclude ? sum / weights : sum;
}

static double nearest(int round, double x, int n)
{
    x = (double)(float)x; /* ties of float scales */
    double low = floor(x), ratio = x - low;
    double at = round == 0 ? (ratio > 0.5 ? low + 1 : low)
                : round == 1 ? (ratio >= 0.5 ? low + 1 : low)
                : round == 2 ? low : ceil(x);
    int i = (int)at;
    return data[i < 0 ? 0 : i >= n ? n - 1 : i];
}

static void one_case(int mode, int how, int round, bool exclude, int n, float scale, int out)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    one o;
    double want[32];
    /* tf_crop_and_resize makes its size of the region too, so it is given the size. */
    bool by_size = scale == 0 || how == 5;
    double s = by_size ? (double)out / n : (double)scale;
    int size = by_size ? out : (int)floorf((float)n * scale);
    one_begin(&o, "", "Resize", 1, 19);
    one_input(&o, NORI_FLOAT, ONE_DIMS(n), data);
    if (how == 5) {
        one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(0.25, 0.75));
    } else {
        one_absent(&o);
    }
    if (by_size) {
        one_absent(&o);
        one_input(&o, NORI_INT64, ONE_DIMS(1), ONE_F(out));
    } else {
        one_input(&o, NORI_FLOAT, ONE_DIMS(1), ONE_F((double)scale));
    }
    one_s(&o, "mode", modes[mode]);
    one_s(&o, "coordinate_transformation_mode", coords[how]);
    one_s(&o, "nearest_mode", rounds[round]);
    one_i(&o, "exclude_outside", exclude);
    for (int i = 0; i < size; i++) {
        double x = position(how, i, size, s * n, n, s);
        want[i] = mode == 0 ? nearest(round, x, n) : smooth(mode == 2, exclude, x, n);
    }
    one_expect(&o, NORI_FLOAT, ONE_DIMS(size), want);
}

static void test_grid(void **state)
{
    (void)state;
    static const struct {
        int n;
        float scale; /* 0: by size */
        int out;
    } sizes[] = {{5, 2.5f, 12}, {5, 0.4f, 2}, {5, 0, 1}, {1, 0, 4},
                 {1, 3, 3},     {5, 0, 5},    {4, 0, 7}};
    for (int how = 0; how < 6; how++) {
        for (size_t k = 0; k < NORI__COUNT(sizes); k++) {
            for (int round = 0; round < 4; round++) {
                one_case(0, how, round, false, sizes[k].n, sizes[k].scale, sizes[k].out);
            }
            for (int mode = 1; mode < 3; mode++) {
                one_case(mode, how, 0, false, sizes[k].n, sizes[k].scale, sizes[k].out);
                if (how != 5) {
                    one_case(mode, how, 0, true, sizes[k].n, sizes[k].scale, sizes[k].out);
                }
            }
        }
    }
}

/* Values worked out by hand. */
static void test_known(void **state)
{
    (void)state;
    one o;
    one_begin(&o, "", "Resize", 1, 19);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 2, 2), ONE_F(1, 2, 3, 4));
    one_absent(&o);
    one_input(&o, NORI_FLOAT, ONE_DIMS(4), ONE_F(1, 1, 2, 2));
    one_s(&o, "mode", "linear");
    one_expect(
        &o, NORI_FLOAT, ONE_DIMS(1, 1, 4, 4),
        ONE_F(1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4));
    /* Outside the region the extrapolation value. */
    one_begin(&o, "", "Resize", 1, 19);
    one_input(&o, NORI_FLOAT, ONE_DIMS(3), ONE_F(1, 2, 3));
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(0.5, 1.5));
    one_absent(&o);
    one_input(&o, NORI_INT64, ONE_DIMS(1), ONE_F(3));
    one_s(&o, "mode", "linear");
    one_s(&o, "coordinate_transformation_mode", "tf_crop_and_resize");
    one_f(&o, "extrapolation_value", 9);
    one_expect(&o, NORI_FLOAT, ONE_DIMS(3), ONE_F(2, 3, 9));
    /* Antialiased halving of a ramp: weights 1/8 3/8 3/8 1/8 inside, edges repeated. */
    one_begin(&o, "", "Resize", 1, 19);
    one_input(&o, NORI_FLOAT, ONE_DIMS(4), ONE_F(0, 8, 16, 24));
    one_absent(&o);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1), ONE_F(0.5));
    one_s(&o, "mode", "linear");
    one_i(&o, "antialias", 1);
    one_expect(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(5, 19));
    /* 3.5 / 0.7 - 0.5 is a tie, also with 0.7 as the float that it is. */
    one_begin(&o, "", "Resize", 1, 19);
    one_input(&o, NORI_FLOAT, ONE_DIMS(6), ONE_F(0, 1, 2, 3, 4, 5));
    one_absent(&o);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1), ONE_F(0.7));
    one_expect(&o, NORI_FLOAT, ONE_DIMS(4), ONE_F(0, 2, 3, 4));
    /* One scale for both axes, rounded half up. */
    one_begin(&o, "", "Resize", 1, 19);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 4), NULL);
    one_absent(&o);
    one_absent(&o);
    one_input(&o, NORI_INT64, ONE_DIMS(2), ONE_F(7, 8));
    one_s(&o, "keep_aspect_ratio_policy", "not_larger");
    one_ok(&o);
    one_shape(&o, 0, NORI_FLOAT, ONE_DIMS(4, 8));
    one_end(&o);
}

static void test_types_and_errors(void **state)
{
    (void)state;
    one o;
    one_begin(&o, "", "Upsample", 1, 9); /* asymmetric, floor */
    one_input(&o, NORI_INT32, ONE_DIMS(1, 3), ONE_F(5, 6, 7));
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(2, 1.5));
    one_expect(&o, NORI_INT32, ONE_DIMS(2, 4), ONE_F(5, 5, 6, 7, 5, 5, 6, 7));
    one_begin(&o, "", "Resize", 1, 19); /* 3.5 rounds to even and 8-bit results saturate */
    one_input(&o, NORI_UINT8, ONE_DIMS(2), ONE_F(3, 4));
    one_absent(&o);
    one_absent(&o);
    one_input(&o, NORI_INT64, ONE_DIMS(1), ONE_F(3));
    one_s(&o, "mode", "linear");
    one_expect(&o, NORI_UINT8, ONE_DIMS(3), ONE_F(3, 4, 4));
    one_begin(&o, "", "Resize", 1, 19);
    one_input(&o, NORI_FLOAT, ONE_DIMS(0, 3), NULL);
    one_absent(&o);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(2, 2));
    one_expect(&o, NORI_FLOAT, ONE_DIMS(0, 6), NULL);
    one_begin(&o, "", "Resize", 1, 19);
    one_input(&o, NORI_FLOAT, ONE_DIMS(3), NULL);
    one_absent(&o);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1), ONE_F(-1));
    one_fails(&o, NORI_ERROR_MODEL, "scale -1");
    one_begin(&o, "", "Resize", 1, 19);
    one_input(&o, NORI_FLOAT, ONE_DIMS(3), NULL);
    one_absent(&o);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(1, 1));
    one_fails(&o, NORI_ERROR_MODEL, "scales has 2 values, expected 1");
    one_begin(&o, "", "Resize", 1, 19); /* what is asked for has no elements */
    one_input(&o, NORI_FLOAT, ONE_DIMS(3), NULL);
    one_absent(&o);
    one_absent(&o);
    one_input(&o, NORI_INT64, ONE_DIMS(0), NULL);
    one_fails(&o, NORI_ERROR_MODEL, "neither scales nor sizes");
    one_begin(&o, "", "Resize", 1, 19); /* an axis of size 0 keeps it, the other says the scale */
    one_input(&o, NORI_FLOAT, ONE_DIMS(0, 2), NULL);
    one_absent(&o);
    one_absent(&o);
    one_input(&o, NORI_INT64, ONE_DIMS(2), ONE_F(7, 6));
    one_s(&o, "keep_aspect_ratio_policy", "not_larger");
    one_expect(&o, NORI_FLOAT, ONE_DIMS(0, 6), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid),
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_types_and_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_ref_text.c: reference kernels on strings, random numbers and losses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "op_harness.h"

#define V(...) ((const double[]){__VA_ARGS__})
#define T(...) ((const char *const[]){__VA_ARGS__})

static void test_concat(void **state)
{
    (void)state;
    op o;
    op_begin(&o, "", "StringConcat", 20);
    op_in_text(&o, "2x1", T("a", "b"));
    op_in_text(&o, "2", T("x", ""));
    op_expect_text(&o, 0, "2x2", T("ax", "a", "bx", "b"));
    op_end(&o);
}

static void split(const char *delimiter, int64_t most, const char *text, const char *shape,
                  const char *const *want, double count)
{
    op o;
    op_begin(&o, "", "StringSplit", 20);
    op_outputs(&o, 2);
    if (delimiter) {
        op_text(&o, "delimiter", delimiter);
    }
    if (most >= 0) {
        op_int(&o, "maxsplit", most);
    }
    op_in_text(&o, "1", &text);
    op_expect_text(&o, 0, shape, want);
    op_expect(&o, 1, NORI_INT64, "1", &count, 0);
    op_end(&o);
}

static void test_split(void **state)
{
    (void)state;
    split(",", -1, "a,b,,c", "1x4", T("a", "b", "", "c"), 4);
    split(",", -1, "", "1x1", T(""), 1);
    split("--", 1, "a--b--c", "1x2", T("a", "b--c"), 2);
    split(NULL, -1, "  a \t b ", "1x2", T("a", "b"), 2);
    split("", 1, "  a  b  c ", "1x2", T("a", "b  c "), 2);
    split(NULL, -1, "   ", "1x0", NULL, 0);
    op o;
    op_begin(&o, "", "StringSplit", 20);
    op_outputs(&o, 2);
    op_in_text(&o, "2", T("a b", "c"));
    op_expect_text(&o, 0, "2x2", T("a", "b", "c", ""));
    op_expect(&o, 1, NORI_INT64, "2", V(2, 1), 0);
    op_end(&o);
    op_begin(&o, "", "StringSplit", 20);
    op_outputs(&o, 2);
    op_in_text(&o, "0", NULL);
    op_expect_text(&o, 0, "0x0", NULL);
    op_end(&o);
}

static void normalize(const char *action, int exact, const nori__str *stop, size_t stops,
                      const char *shape, const char *const *in, const char *to,
                      const char *const *want)
{
    op o;
    op_begin(&o, "", "StringNormalizer", 10);
    op_text(&o, "case_change_action", action);
    op_int(&o, "is_case_sensitive", exact);
    op_texts(&o, "stopwords", stop, stops);
    op_in_text(&o, shape, in);
    op_expect_text(&o, 0, to, want);
    op_end(&o);
}

static void test_normalizer(void **state)
{
    (void)state;
    const nori__str stop[] = {NORI__STR("Monday")};
    normalize("UPPER", 1, stop, 1, "3", T("monday", "Monday", "z\xc3\xbcrich"), "2",
              T("MONDAY", "Z\xc3\x9cRICH"));
    normalize("LOWER", 0, stop, 1, "1x3", T("monday", "MONDAY", "\xce\xa3\xd0\x96"), "1x1",
              T("\xcf\x83\xd0\xb6"));
    normalize("NONE", 0, stop, 1, "2", T("monday", "Monday"), "1", T(""));
    normalize("UPPER", 1, NULL, 0, "1", T("a\xff\xc3"), "1", T("A\xff\xc3")); /* no UTF-8 */
    op o;
    op_begin(&o, "", "StringNormalizer", 10);
    op_in_text(&o, "2x1", T("a", "b"));
    assert_int_equal(op_status(&o), NORI_ERROR_DATA);
    op_end(&o);
}

static void begin_tfidf(op *o, const char *mode, int64_t skips)
{
    static const int64_t counts[] = {0, 4}, indexes[] = {0, 1, 2, 3, 4, 5, 6};
    static const int64_t pool[] = {2, 3, 5, 4, 5, 6, 7, 8, 6, 7};
    static const float weights[] = {1, 1, 10, 1, 100, 1, 0.5f};
    op_begin(o, "", "TfIdfVectorizer", 9);
    op_text(o, "mode", mode);
    op_int(o, "min_gram_length", 1);
    op_int(o, "max_gram_length", 2);
    op_int(o, "max_skip_count", skips);
    op_ints(o, "ngram_counts", counts, 2);
    op_ints(o, "ngram_indexes", indexes, 7);
    op_ints(o, "pool_int64s", pool, 10);
    op_floats(o, "weights", weights, 7);
}

static void test_tfidf(void **state)
{
    (void)state;
    op o;
    begin_tfidf(&o, "TF", 0);
    op_in(&o, NORI_INT32, "6", V(5, 5, 6, 7, 8, 6));
    op_expect(&o, 0, NORI_FLOAT, "7", V(0, 0, 2, 0, 1, 1, 1), 0);
    op_end(&o);
    begin_tfidf(&o, "TF", 1); /* the first 5 and the 6 two further on */
    op_in(&o, NORI_INT64, "2x3", V(5, 5, 6, 1, 2, 3));
    op_expect(&o, 0, NORI_FLOAT, "2x7", V(0, 0, 2, 0, 2, 0, 0, 1, 1, 0, 0, 0, 0, 0), 0);
    op_end(&o);
    begin_tfidf(&o, "TFIDF", 0);
    op_in(&o, NORI_INT64, "3", V(5, 5, 6));
    op_expect(&o, 0, NORI_FLOAT, "7", V(0, 0, 20, 0, 100, 0, 0), 0);
    op_end(&o);
    begin_tfidf(&o, "IDF", 0);
    op_in(&o, NORI_INT64, "3", V(5, 5, 6));
    op_expect(&o, 0, NORI_FLOAT, "7", V(0, 0, 10, 0, 100, 0, 0), 0);
    op_end(&o);
    const nori__str words[] = {NORI__STR("a"), NORI__STR("b"), NORI__STR("a"),
                                      NORI__STR("b")};
    static const int64_t counts[] = {0, 2}, indexes[] = {2, 0, 1};
    op_begin(&o, "", "TfIdfVectorizer", 9);
    op_text(&o, "mode", "TF");
    op_int(&o, "min_gram_length", 2);
    op_int(&o, "max_gram_length", 2);
    op_int(&o, "max_skip_count", 0);
    op_ints(&o, "ngram_counts", counts, 2);
    op_ints(&o, "ngram_indexes", indexes, 3);
    op_texts(&o, "pool_strings", words, 4);
    op_in_text(&o, "4", T("a", "b", "a", "b"));
    op_expect(&o, 0, NORI_FLOAT, "3", V(0, 2, 0), 0);
    op_end(&o);
    begin_tfidf(&o, "TF", 0);
    op_in(&o, NORI_FLOAT, "3", V(5, 5, 6));
    assert_int_equal(op_status(&o), NORI_ERROR_DATA);
    op_end(&o);
}

static void begin_random(op *o, const char *name, const float *seed)
{
    static const int64_t shape[] = {100, 100};
    op_begin(o, "", name, 1);
    op_ints(o, "shape", shape, 2);
    if (seed) {
        op_float(o, "seed", *seed);
    }
}

static void test_random(void **state)
{
    (void)state;
    const float one = 1, two = 2;
    const float *seeds[] = {&one, &one, &two, NULL, NULL};
    op o[5];
    for (int i = 0; i < 5; i++) {
        begin_random(&o[i], "RandomNormal", seeds[i]);
        op_float(&o[i], "mean", 3);
        op_float(&o[i], "scale", 2);
        const float *x = op_out(&o[i], 0, NORI_FLOAT, "100x100")->data;
        double sum = 0, squares = 0;
        for (int k = 0; k < 10000; k++) {
            sum += (double)x[k];
            squares += ((double)x[k] - 3) * ((double)x[k] - 3);
        }
        assert_true(fabs(sum / 10000 - 3) < 0.1); /* five standard errors */
        assert_true(fabs(squares / 10000 - 4) < 0.3);
    }
    size_t bytes = o[0].out[0]->bytes;
    assert_memory_equal(o[0].out[0]->data, o[1].out[0]->data, bytes); /* one seed, one result */
    assert_memory_not_equal(o[0].out[0]->data, o[2].out[0]->data, bytes);
    assert_memory_not_equal(o[3].out[0]->data, o[4].out[0]->data, bytes);
    for (int i = 0; i < 5; i++) {
        op_end(&o[i]);
    }
    begin_random(&o[0], "RandomUniform", &one);
    op_float(&o[0], "low", -1);
    op_float(&o[0], "high", 3);
    const float *x = op_out(&o[0], 0, NORI_FLOAT, "100x100")->data;
    double sum = 0;
    for (int k = 0; k < 10000; k++) {
        assert_true(x[k] >= -1 && x[k] <= 3);
        sum += (double)x[k];
    }
    assert_true(fabs(sum / 10000 - 1) < 0.06);
    op_end(&o[0]);
    op_begin(&o[0], "", "RandomUniformLike", 1);
    op_int(&o[0], "dtype", NORI_DOUBLE);
    op_in(&o[0], NORI_INT32, "2x3", NULL);
    op_out(&o[0], 0, NORI_DOUBLE, "2x3");
    op_end(&o[0]);
}

static void test_draws(void **state)
{
    (void)state;
    op o;
    double p[1000];
    for (int i = 0; i < 1000; i++) {
        p[i] = i < 500 ? 0 : 1;
    }
    op_begin(&o, "", "Bernoulli", 15);
    op_int(&o, "dtype", NORI_BOOL);
    op_in(&o, NORI_FLOAT, "1000", p);
    op_expect(&o, 0, NORI_BOOL, "1000", p, 0);
    op_end(&o);
    op_begin(&o, "", "Multinomial", 7);
    op_int(&o, "sample_size", 1000);
    op_float(&o, "seed", 5);
    op_in(&o, NORI_FLOAT, "1x3", V(log(0.2), -INFINITY, log(0.8)));
    const int32_t *x = op_out(&o, 0, NORI_INT32, "1x1000")->data;
    int seen[3] = {0};
    for (int i = 0; i < 1000; i++) {
        assert_true(x[i] >= 0 && x[i] < 3);
        seen[x[i]]++;
    }
    assert_int_equal(seen[1], 0);
    assert_true(abs(seen[0] - 200) < 64); /* five standard errors */
    op_end(&o);
    op_begin(&o, "", "Multinomial", 7);
    op_in(&o, NORI_FLOAT, "1x2", V(NAN, 0));
    assert_int_equal(op_status(&o), NORI_ERROR_DATA);
    op_end(&o);
}

static void test_losses(void **state)
{
    (void)state;
    op o;
    op_begin(&o, "", "NegativeLogLikelihoodLoss", 13); /* example 2 of the specification */
    op_text(&o, "reduction", "sum");
    op_in(&o, NORI_FLOAT, "2x3x2", V(1, 2, 2, 2, 3, 2, 0, 1, 2, 2, 1, 2));
    op_in(&o, NORI_INT64, "2x2", V(2, 1, 0, 2));
    op_in(&o, NORI_FLOAT, "3", V(0.2, 0.3, 0.1));
    op_expect(&o, 0, NORI_FLOAT, "", V(-1.1), 1e-6);
    op_end(&o);
    op_begin(&o, "", "SoftmaxCrossEntropyLoss", 13);
    op_outputs(&o, 2);
    op_int(&o, "ignore_index", -1);
    op_in(&o, NORI_DOUBLE, "2x2", V(1000, 1000, 5, 6));
    op_in(&o, NORI_INT32, "2", V(0, -1));
    op_expect(&o, 0, NORI_DOUBLE, "", V(0.6931471805599453), 1e-12); /* the mean over one */
    op_expect(&o, 1, NORI_DOUBLE, "2x2", V(-0.6931471805599453, -0.6931471805599453,
                                           -1.3132616875182228, -0.31326168751822286), 1e-12);
    op_end(&o);
    op_begin(&o, "", "SoftmaxCrossEntropyLoss", 13);
    op_in(&o, NORI_FLOAT, "1x2", V(1, 2));
    op_in(&o, NORI_INT64, "1", V(2));
    assert_int_equal(op_status(&o), NORI_ERROR_DATA);
    op_end(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_concat), cmocka_unit_test(test_split),
        cmocka_unit_test(test_normalizer), cmocka_unit_test(test_tfidf),
        cmocka_unit_test(test_random), cmocka_unit_test(test_draws),
        cmocka_unit_test(test_losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

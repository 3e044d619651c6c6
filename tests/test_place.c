/* Where a model belongs: the inequality with numbers worked out by hand, distributions, queues, rules,
 * where the answer turns, units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nori/place.h"

#define NEAR(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

static nori_place_question question(double edge, double cloud)
{
    nori_place_question q;
    nori_place_question_default(&q);
    q.edge.there = q.cloud.there = 1;
    nori_times_constant(&q.edge.service, edge);
    nori_times_constant(&q.cloud.service, cloud);
    return q;
}

static nori_place_answer decide(const nori_place_question *q)
{
    nori_place_answer a = {.size = sizeof(a)};
    nori_error err = {0};
    if (nori_place_decide(q, &a, &err) != NORI_OK) {
        fail_msg("%s", err.message);
    }
    return a;
}

/* ---- the inequality ---- */

static nori_place_question with_terms(double edge)
{
    nori_place_question q = question(edge, 0.008);
    nori_times_constant(&q.up, 0.030);
    nori_times_constant(&q.down, 0.012);
    q.cloud.has_queue = 1;
    nori_times_constant(&q.cloud.queue, 0.020);
    return q;
}

static void edge_wins(void **state)
{
    (void)state;
    nori_place_question q = with_terms(0.055);
    nori_place_answer a = decide(&q);
    assert_int_equal(a.place, NORI_PLACE_EDGE);
    NEAR(a.option[1].mean, 0.070, 1e-12);
    NEAR(a.gain, 0.047, 1e-12);
    NEAR(a.penalty, 0.062, 1e-12);
    NEAR(a.saved, 0.015, 1e-12);
    assert_string_equal(a.option[1].dominant, "up");
    assert_non_null(strstr(a.words, "15 ms less than the next best"));
}

static void cloud_wins(void **state)
{
    (void)state;
    nori_place_question q = with_terms(0.095);
    nori_place_answer a = decide(&q);
    assert_int_equal(a.place, NORI_PLACE_CLOUD);
    NEAR(a.gain, 0.087, 1e-12);
    NEAR(a.penalty, 0.062, 1e-12);
    NEAR(a.saved, 0.025, 1e-12);
}

static void payload_and_bandwidth(void **state)
{
    (void)state;
    nori_place_question q = question(0.050, 0.008);
    q.up_bytes = 1.5e6;
    q.up_speed = 5e6;
    q.cloud.has_queue = 1;
    nori_times_constant(&q.cloud.queue, 0.020);
    nori_place_answer a = decide(&q);
    assert_int_equal(a.place, NORI_PLACE_EDGE);
    NEAR(a.gain, 0.042, 1e-12);
    NEAR(a.penalty, 0.320, 1e-12);
    NEAR(a.saved, 0.278, 1e-12);
    /* 0.05 = 0.008 + 0.02 + 1.5e6 / B at B = 1.5e6 / 0.022; likewise D = 5e6 * 0.022 */
    assert_int_equal(a.flip[0].flips, 1);
    NEAR(a.flip[0].at, 1.5e6 / 0.022, 1);
    assert_int_equal(a.flip[1].flips, 1);
    NEAR(a.flip[1].at, 0.022 * 5e6, 1e-3);
    assert_int_equal(a.flip[2].flips, 0); /* there is no round trip to change */
}

/* ---- rules ---- */

static void rules(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        int option;
    } rows[] = {
        {"raw data may not leave", 1}, {"there is no network", 1},
        {"model and activations need 40 GB, the edge has 8 GB", 0},
        {"the round trip alone takes 40 ms, the deadline is 5 ms", 1},
        {"at most 0.1 J", 0}, {"1,000 calls cost 2, at most 1", 1},
        {"results of the cloud do not agree", 1}, {"there is no edge", 0},
        {"load 1.2", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        nori_place_question q = question(0.020, 0.010);
        q.up_bytes = 1e5;
        q.up_speed = 1e7;
        q.raw_stays = i == 0;
        q.offline = i == 1;
        q.model_bytes = i == 2 ? 40e9 : 0;
        q.edge.memory = 8e9;
        q.deadline = i == 3 ? 0.005 : 0;
        nori_times_constant(&q.rtt, i == 3 ? 0.040 : 0);
        q.most_energy = i == 4 ? 0.1 : 0;
        q.edge.energy = 0.5;
        q.most_price = i == 5 ? 0.001 : 0;
        q.cloud.price = 0.002;
        q.cloud.disagrees = i == 6;
        q.edge.there = i != 7;
        q.rate = i == 8 ? 60 : 0;
        q.cloud.servers = 4;
        nori_place_answer a = decide(&q);
        assert_int_equal(a.option[rows[i].option].possible, 0);
        assert_non_null(strstr(a.option[rows[i].option].reason, rows[i].words));
        assert_non_null(strstr(a.words, rows[i].words));
        assert_int_equal(a.place, rows[i].option == 0 ? NORI_PLACE_CLOUD : NORI_PLACE_EDGE);
    }
    nori_place_question q = question(0.020, 0.010);
    q.offline = 1;
    q.edge.there = 0;
    nori_place_answer a = decide(&q);
    assert_int_equal(a.place, NORI_PLACE_NONE);
    assert_non_null(strstr(a.words, "nowhere"));
}

/* A cloud that is faster on the mean but sometimes very late. */
static void tails(void **state)
{
    (void)state;
    nori_place_question q = question(0.060, 0);
    nori_error err = {0};
    const double p[] = {0, 0.5, 0.97, 0.98, 0.99, 1}, v[] = {0.002, 0.005, 0.010, 0.2, 0.4, 0.5};
    assert_int_equal(nori_times_percentiles(&q.cloud.service, p, v, 6, &err), NORI_OK);
    assert_int_equal(decide(&q).place, NORI_PLACE_CLOUD);
    q.deadline = 0.1;
    nori_place_answer a = decide(&q);
    assert_int_equal(a.place, NORI_PLACE_EDGE);
    NEAR(a.option[0].within, 1, 0);
    NEAR(a.option[1].within, 0.975, 0.005);
    NEAR(a.option[1].p99, 0.4, 0.02);
    q.percentile = 0.95;
    assert_int_equal(decide(&q).place, NORI_PLACE_CLOUD);
}

static void splits(void **state)
{
    (void)state;
    nori_place_question q = question(0.100, 0.010);
    q.up_bytes = 600000;
    q.up_speed = 5e6; /* 120 ms */
    q.can_split = 1;
    q.feature_bytes = 50000; /* 10 ms */
    nori_times_constant(&q.split_edge, 0.030);
    nori_times_constant(&q.split_cloud, 0.007);
    nori_place_answer a = decide(&q);
    assert_int_equal(a.place, NORI_PLACE_SPLIT);
    NEAR(a.option[2].mean, 0.047, 1e-12);
    NEAR(a.saved, 0.053, 1e-12);
    q.raw_stays = 1; /* features may leave */
    assert_int_equal(decide(&q).place, NORI_PLACE_SPLIT);
    q.features_stay = 1;
    assert_int_equal(decide(&q).place, NORI_PLACE_EDGE);
    q.features_stay = 0;
    nori_times_constant(&q.split_edge, 0.080); /* 97 ms: less than a tenth is won */
    a = decide(&q);
    assert_int_equal(a.place, NORI_PLACE_EDGE);
    assert_non_null(strstr(a.option[2].reason, "it wins less than 10 %"));
}

/* ---- queues ---- */

/* One server of 10 ms at the edge against 8 of 10 ms that are 15 ms further away. Waits of M/M/1:
 * r / (m (m - r)), 15 ms at r = 60; of M/D/1 half of that: 15 ms at r = 75. */
static void inversion(void **state)
{
    (void)state;
    for (int constant = 0; constant < 2; constant++) {
        nori_place_question q = question(0.010, 0.010);
        if (!constant) {
            nori_times_exponential(&q.edge.service, 0.010);
            nori_times_exponential(&q.cloud.service, 0.010);
        }
        q.cloud.servers = 8;
        nori_times_constant(&q.rtt, 0.015);
        q.rate = 10;
        nori_place_answer a = decide(&q);
        assert_int_equal(a.place, NORI_PLACE_EDGE);
        NEAR(a.inversion, constant ? 75 : 60, 0.3);
        q.rate = constant ? 76 : 61;
        assert_int_equal(decide(&q).place, NORI_PLACE_CLOUD);
        q.rate = constant ? 74 : 59;
        assert_int_equal(decide(&q).place, NORI_PLACE_EDGE);
        q.rate = 101; /* more than it can serve */
        a = decide(&q);
        assert_int_equal(a.option[0].possible, 0);
    }
}

static void waits(void **state)
{
    (void)state;
    nori_times service, wait;
    double load;
    nori_times_exponential(&service, 1);
    assert_int_equal(nori_queue_wait(&service, 2, 1.5, &wait, &load), 1);
    NEAR(load, 0.75, 1e-9);
    /* Erlang: B(2) = (a^2 / 2) / (1 + a + a^2 / 2) at a = 1.5, C = B / (1 - 0.75 (1 - B)) */
    double b = 1.125 / 3.625, c = b / (1 - 0.75 * (1 - b));
    NEAR(nori_times_mean(&wait), c / (2 * (1 - 0.75)), 0.01);
    NEAR(nori_times_within(&wait, 0), 1 - c, 0.01);
    nori_times_constant(&service, 1);
    assert_int_equal(nori_queue_wait(&service, 1, 0.5, &wait, &load), 1);
    NEAR(nori_times_mean(&wait), 0.5 / (2 * 0.5), 1e-9); /* rho / (2 (1 - rho)) */
    assert_int_equal(nori_queue_wait(&service, 1, 1, &wait, &load), 0);
    assert_int_equal(nori_queue_wait(&service, 3, 0, &wait, &load), 1);
    NEAR(nori_times_mean(&wait), 0, 0);
}

/* ---- distributions ---- */

static void distributions(void **state)
{
    (void)state;
    nori_times t, u, sum;
    nori_error err = {0};
    nori_times_exponential(&t, 3);
    NEAR(nori_times_mean(&t), 3, 1e-9);
    NEAR(nori_times_quantile(&t, 0.5), 3 * log(2), 0.01);
    NEAR(nori_times_cv2(&t), 1, 0.02);
    nori_times_exponential(&u, 3);
    nori_times_add(&sum, &t, &u); /* Erlang of 2: mean 6, variance 18 */
    NEAR(nori_times_mean(&sum), 6, 1e-9);
    NEAR(nori_times_cv2(&sum), 0.5, 0.02);
    NEAR(nori_times_within(&sum, 6), 1 - 3 * exp(-2), 0.01);
    double samples[1000];
    for (int i = 0; i < 1000; i++) {
        samples[i] = (i * 617) % 1000; /* 0 to 999, shuffled */
    }
    assert_int_equal(nori_times_samples(&t, samples, 1000, &err), NORI_OK);
    NEAR(nori_times_mean(&t), 499.5, 1e-9);
    NEAR(nori_times_quantile(&t, 0.9), 900, 2);
    assert_int_equal(nori_times_samples(&t, (double[]){7}, 1, &err), NORI_OK);
    NEAR(nori_times_quantile(&t, 0.01), 7, 1e-12);
    assert_int_equal(nori_times_samples(&t, samples, 0, &err), NORI_ERROR_ARGUMENT);
    err = (nori_error){0};
    assert_int_equal(nori_times_samples(&t, (double[]){1, -1}, 2, &err), NORI_ERROR_ARGUMENT);
    err = (nori_error){0};
    assert_int_equal(nori_times_percentiles(&t, (double[]){0.5, 0.4}, (double[]){1, 2}, 2, &err),
                     NORI_ERROR_ARGUMENT);
}

/* ---- units ---- */

static void units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        nori_quantity kind;
        double want; /* -1: refused */
    } rows[] = {
        {"55ms", NORI_QUANTITY_TIME, 0.055},   {"1.5 s", NORI_QUANTITY_TIME, 1.5},
        {"2min", NORI_QUANTITY_TIME, 120},     {"55", NORI_QUANTITY_TIME, -1},
        {"-5ms", NORI_QUANTITY_TIME, -1},      {"nanms", NORI_QUANTITY_TIME, -1},
        {"1.5MB", NORI_QUANTITY_BYTES, 1.5e6}, {"4GiB", NORI_QUANTITY_BYTES, 4294967296.0},
        {"5", NORI_QUANTITY_BYTES, -1},        {"5Mb", NORI_QUANTITY_BYTES, -1},
        {"5MB/s", NORI_QUANTITY_SPEED, 5e6},   {"40Mbit/s", NORI_QUANTITY_SPEED, 5e6},
        {"5Mb/s", NORI_QUANTITY_SPEED, -1},    {"5Mbps", NORI_QUANTITY_SPEED, -1},
        {"60/min", NORI_QUANTITY_RATE, 1},     {"60", NORI_QUANTITY_RATE, -1},
        {"80mJ", NORI_QUANTITY_ENERGY, 0.08},  {"", NORI_QUANTITY_TIME, -1},
        {"ms", NORI_QUANTITY_TIME, -1},        {"1e999s", NORI_QUANTITY_TIME, -1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double v = -1;
        nori_error err = {0};
        nori_status status = nori_quantity_parse(rows[i].text, rows[i].kind, &v, &err);
        assert_int_equal(status, rows[i].want < 0 ? NORI_ERROR_ARGUMENT : NORI_OK);
        NEAR(v, rows[i].want, 1e-9 * fabs(rows[i].want));
        if (strstr(rows[i].text, "Mb/s") || strstr(rows[i].text, "bps")) {
            assert_non_null(strstr(err.hint, "bits or bytes"));
        }
    }
}

static void numbers(void **state)
{
    (void)state;
    nori_place_answer a = {.size = sizeof(a)};
    nori_place_question q = question(0.01, 0.01);
    nori_error err = {0};
    q.up_bytes = -1;
    assert_int_equal(nori_place_decide(&q, &a, &err), NORI_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "up_bytes"));
    q = question(0.01, NAN);
    err = (nori_error){0};
    assert_int_equal(nori_place_decide(&q, &a, &err), NORI_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "cloud.service"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edge_wins), cmocka_unit_test(cloud_wins),
        cmocka_unit_test(payload_and_bandwidth), cmocka_unit_test(rules), cmocka_unit_test(tails),
        cmocka_unit_test(splits), cmocka_unit_test(inversion), cmocka_unit_test(waits),
        cmocka_unit_test(distributions), cmocka_unit_test(units), cmocka_unit_test(numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

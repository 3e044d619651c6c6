/* Calls of the past: the oracle against all choices there are, deadlines, switches, outages, regret. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "nori/route.h"

#define NEAR(a, b) assert_true(fabs((a) - (b)) <= 1e-9)

static nori_replay_options options_of(double deadline)
{
    nori_replay_options o;
    nori_replay_options_default(&o);
    o.policy.possible[0] = o.policy.possible[1] = 1;
    o.policy.deadline = deadline;
    return o;
}

static nori_replay_result run(const nori_replay_options *o, nori_replay_who who,
                              const nori_replay_call *calls, size_t count, nori_place *chosen)
{
    nori_replay_result r = {.size = sizeof(r)};
    nori_error err = {0};
    if (nori_replay(o, who, calls, count, chosen, &r, &err) != NORI_OK) {
        fail_msg("%s", err.message);
    }
    return r;
}

static void by_hand(void **state)
{
    (void)state;
    const nori_replay_call calls[] = {{0, {0.050, 0.020, -1}},
                                      {1, {0.050, 0.200, -1}},
                                      {2, {0.050, 0.020, -1}},
                                      {3, {0.050, -1, -1}}};
    nori_replay_options o = options_of(0.100);
    o.price[1] = 0.01;
    nori_place chosen[4];
    nori_replay_result edge = run(&o, NORI_REPLAY_EDGE, calls, 4, NULL);
    assert_int_equal(edge.hits, 4);
    NEAR(edge.mean_s, 0.050);
    nori_replay_result cloud = run(&o, NORI_REPLAY_CLOUD, calls, 4, NULL);
    assert_int_equal(cloud.hits, 2); /* the second was late, the last waited 1 s in vain */
    NEAR(cloud.cost_s, 0.02 + 0.2 + 0.02 + 1.05 + 2 * 10 * 0.1);
    NEAR(cloud.price, 0.03);
    nori_replay_result best = run(&o, NORI_REPLAY_ORACLE, calls, 4, chosen);
    NEAR(best.cost_s, 0.02 + 0.05 + 0.02 + 0.05);
    assert_int_equal(best.switches, 3);
    NEAR(best.regret_s, 0);
    NEAR(edge.regret_s, 0.06);
    assert_int_equal(chosen[0], NORI_PLACE_CLOUD);
    assert_int_equal(chosen[1], NORI_PLACE_EDGE);
    o.switch_s = 0.040; /* no change pays any more */
    best = run(&o, NORI_REPLAY_ORACLE, calls, 4, NULL);
    assert_int_equal(best.switches, 0);
    NEAR(best.cost_s, 0.2);
}

static uint32_t seed = 5;

static uint32_t draw(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(seed >> 8) * below) >> 24);
}

/* 300 short traces of whole numbers: no choice of places is cheaper than the oracle's. */
static void oracle_is_best(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        nori_replay_call calls[7];
        nori_replay_options o = options_of(draw(2) ? 30 : 0);
        size_t n = 1 + draw(7), all = 1;
        o.policy.possible[2] = 1;
        o.switch_s = draw(20);
        o.lost_s = 16;
        o.late_s = 64;
        for (size_t i = 0; i < n; i++) {
            calls[i] = (nori_replay_call){(double)i, {1 + draw(50), 1 + draw(50), 1 + draw(50)}};
            if (draw(5) == 0) {
                calls[i].seconds[1] = -1;
            }
            all *= 3;
        }
        double least = INFINITY;
        for (size_t c = 0; c < all; c++) {
            double cost = 0;
            for (size_t i = 0, left = c, before = 0; i < n; i++, left /= 3) {
                size_t place = left % 3;
                double t = calls[i].seconds[place];
                t = t < 0 ? 16 + calls[i].seconds[0] : t;
                cost += t + (o.policy.deadline > 0 && t > 30 ? 64 : 0) +
                        (i > 0 && place != before ? o.switch_s : 0);
                before = place;
            }
            least = cost < least ? cost : least;
        }
        assert_true(run(&o, NORI_REPLAY_ORACLE, calls, n, NULL).cost_s == least);
    }
}

/* A link that is good, bad, gone, and good again: the policy follows, at little regret. */
static void policy_follows(void **state)
{
    (void)state;
    static nori_replay_call calls[4000];
    for (size_t i = 0; i < 4000; i++) {
        double cloud = i < 1000 ? 0.020 : i < 2000 ? 0.120 : i < 3000 ? -1 : 0.020;
        calls[i] = (nori_replay_call){0.1 * (double)i, {0.050, cloud, -1}};
    }
    nori_replay_options o = options_of(0);
    static nori_place chosen[4000];
    nori_replay_result r = run(&o, NORI_REPLAY_POLICY, calls, 4000, chosen);
    assert_int_equal(r.lost, 0);
    assert_int_equal(chosen[900], NORI_PLACE_CLOUD);
    assert_int_equal(chosen[1900], NORI_PLACE_EDGE);
    assert_int_equal(chosen[2900], NORI_PLACE_EDGE);
    assert_int_equal(chosen[3900], NORI_PLACE_CLOUD);
    assert_true(r.switches < 10);
    nori_replay_result edge = run(&o, NORI_REPLAY_EDGE, calls, 4000, NULL);
    nori_replay_result cloud = run(&o, NORI_REPLAY_CLOUD, calls, 4000, NULL);
    NEAR(edge.regret_s, 2000 * 0.030);
    assert_true(r.regret_s < 0.25 * edge.regret_s);
    assert_true(r.regret_s < cloud.regret_s);
}

static void refusals(void **state)
{
    (void)state;
    const nori_replay_call back[] = {{1, {1, 1, 1}}, {0, {1, 1, 1}}}, odd[] = {{0, {NAN, 1, 1}}};
    nori_replay_options o = options_of(0);
    nori_replay_result r = {.size = sizeof(r)};
    assert_int_equal(nori_replay(&o, NORI_REPLAY_EDGE, back, 0, NULL, &r, NULL), NORI_ERROR_ARGUMENT);
    assert_int_equal(nori_replay(&o, NORI_REPLAY_EDGE, back, 2, NULL, &r, NULL), NORI_ERROR_ARGUMENT);
    assert_int_equal(nori_replay(&o, NORI_REPLAY_EDGE, odd, 1, NULL, &r, NULL), NORI_ERROR_ARGUMENT);
    assert_int_equal(nori_replay(&o, NORI_REPLAY_SPLIT, back, 1, NULL, &r, NULL), NORI_ERROR_ARGUMENT);
    o.lost_s = -1;
    assert_int_equal(nori_replay(&o, NORI_REPLAY_EDGE, back, 1, NULL, &r, NULL), NORI_ERROR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(oracle_is_best),
        cmocka_unit_test(policy_follows),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

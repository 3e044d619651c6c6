/* The policy alone, told what calls took; routes over a server in this process that is fast, late, gone,
 * or must not be asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "make_model.h"
#include "nori/route.h"
#include "nori/tools.h"

/* ---- the policy ---- */

static nori_policy *policy_of(double edge, double cloud, void (*change)(nori_policy_options *))
{
    nori_policy_options o;
    nori_policy *p = NULL;
    nori_policy_options_default(&o);
    o.possible[0] = o.possible[1] = o.has_prior[0] = o.has_prior[1] = 1;
    nori_times_constant(&o.prior[0], edge);
    nori_times_constant(&o.prior[1], cloud);
    if (change) {
        change(&o);
    }
    assert_int_equal(nori_policy_create(&o, &p, NULL), NORI_OK);
    return p;
}

static nori_policy_view view_of(const nori_policy *p)
{
    nori_policy_view v = {.size = sizeof(v)};
    nori_policy_look(p, &v);
    return v;
}

static void hysteresis(void **state)
{
    (void)state;
    nori_policy *p = policy_of(0.050, 0.040, NULL);
    double now = 0;
    for (int i = 0; i < 200; i++) { /* the cloud goes a little beyond the edge and back */
        nori_place place = nori_policy_choose(p, now, NULL);
        assert_int_equal(place, NORI_PLACE_CLOUD);
        nori_policy_told(p, place, i % 20 < 10 ? 0.053 : 0.048, 1, now += 0.05);
    }
    assert_int_equal(view_of(p).switches, 0);
    int calls = 0;
    while (nori_policy_choose(p, now, NULL) == NORI_PLACE_CLOUD) {
        nori_policy_told(p, NORI_PLACE_CLOUD, 0.200, 1, now += 0.2);
        calls++;
    }
    assert_in_range(calls, 1, 3);
    assert_int_equal(view_of(p).switches, 1);
    nori_policy_free(p);
}

static void explores(void **state)
{
    (void)state;
    nori_policy *p = policy_of(0.010, 0.040, NULL);
    nori_place also;
    int asked = 0;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(nori_policy_choose(p, i, &also), NORI_PLACE_EDGE);
        nori_policy_told(p, NORI_PLACE_EDGE, 0.010, 1, i);
        if (also != NORI_PLACE_NONE) {
            assert_int_equal(also, NORI_PLACE_CLOUD);
            nori_policy_told(p, also, 0.040, 1, i);
            asked++;
        }
    }
    assert_in_range(asked, 18, 22);
    /* the link got better: found out by such looks, a surprise being looked at again at once */
    int calls = 0;
    while (nori_policy_choose(p, 1000 + calls, &also) == NORI_PLACE_EDGE && calls < 1000) {
        nori_policy_told(p, NORI_PLACE_EDGE, 0.010, 1, 1000 + calls);
        if (also == NORI_PLACE_CLOUD) {
            nori_policy_told(p, also, 0.002, 1, 1000 + calls);
        }
        calls++;
    }
    assert_in_range(calls, 1, 80);
    nori_policy_free(p);
}

static void with_deadline(nori_policy_options *o)
{
    static const double shares[] = {0, 0.975, 0.985, 1}, v[] = {0.009, 0.011, 0.400, 0.400};
    o->deadline = 0.100;
    o->percentile = 0.99;
    assert_int_equal(nori_times_percentiles(&o->prior[1], shares, v, 4, NULL), NORI_OK);
}

/* A cloud of mean 18 and p99 400 ms against an edge that always takes 60, all to be done in 100. */
static void heavy_tail(void **state)
{
    (void)state;
    nori_policy *p = policy_of(0.060, 0.015, with_deadline);
    assert_true(view_of(p).mean[1] < 0.020);
    for (int i = 0; i < 500; i++) {
        nori_place also;
        assert_int_equal(nori_policy_choose(p, i, &also), NORI_PLACE_EDGE);
        nori_policy_told(p, NORI_PLACE_EDGE, 0.060, 1, i);
        if (also == NORI_PLACE_CLOUD) {
            nori_policy_told(p, also, i % 3 ? 0.010 : 0.400, 1, i);
        }
    }
    nori_policy_free(p);
}

static void circuit(void **state)
{
    (void)state;
    nori_policy *p = policy_of(0.050, 0.010, NULL);
    nori_place also;
    double now = 100;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(nori_policy_choose(p, now, NULL), NORI_PLACE_CLOUD);
        nori_policy_told(p, NORI_PLACE_CLOUD, 0.030, 0, now);
    }
    assert_true(view_of(p).open);
    assert_false(nori_policy_probe_due(p, now + 0.9));
    for (int i = 0; i < 300; i++) { /* neither a call nor a look beside */
        assert_int_equal(nori_policy_choose(p, now, &also), NORI_PLACE_EDGE);
        assert_int_equal(also, NORI_PLACE_NONE);
        nori_policy_told(p, NORI_PLACE_EDGE, 0.050, 1, now);
    }
    double wait = 1;
    for (int i = 0; i < 7; i++) { /* 1 s, then twice as long each time, at most 16 times */
        assert_false(nori_policy_probe_due(p, now + wait * 0.99));
        assert_true(nori_policy_probe_due(p, now += wait * 1.01));
        nori_policy_probed(p, 0, now);
        wait = wait * 2 > 16 ? 16 : wait * 2;
    }
    nori_policy_probed(p, 1, now);
    assert_false(view_of(p).open);
    int calls = 0;
    while (nori_policy_choose(p, now, &also) != NORI_PLACE_CLOUD && calls < 100) {
        nori_policy_told(p, NORI_PLACE_EDGE, 0.050, 1, now);
        if (also == NORI_PLACE_CLOUD) {
            nori_policy_told(p, also, 0.010, 1, now);
        }
        calls++;
    }
    assert_in_range(calls, 0, 10);
    nori_policy_told(p, NORI_PLACE_CLOUD, 0.030, 0,
                     now); /* one more failure is enough now? no: two in a row */
    nori_policy_overdue(p, NORI_PLACE_CLOUD, now);
    assert_true(view_of(p).open);
    nori_policy_free(p);
}

static void policy_refusals(void **state)
{
    (void)state;
    nori_policy_options o;
    nori_policy *p = NULL;
    nori_error err = {0};
    nori_policy_options_default(&o);
    assert_int_equal(nori_policy_create(&o, &p, &err), NORI_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "no place"));
    o.possible[0] = 1;
    o.weight = 0;
    assert_int_equal(nori_policy_create(&o, &p, NULL), NORI_ERROR_ARGUMENT);
    o.weight = 0.2;
    o.retry_s = NAN;
    assert_int_equal(nori_policy_create(&o, &p, NULL), NORI_ERROR_ARGUMENT);
}

/* ---- routes ---- */

typedef struct world {
    nori__text bytes;
    nori_model *model;
    nori_session *session;
    nori_tensor *x;
    nori_route_options o;
    nori_route *route;
    atomic_int asked, probed, second;
    atomic_int delay_ms, gone, logged;
    _Atomic uint64_t sent;
} world;

static void nap(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    nanosleep(&t, NULL);
}

/* A server that negates. */
static nori_status infer(void *user, int second, const nori_tensor *const *in, size_t n_in, nori_tensor **out,
                         size_t n_out, nori_route_stopped stopped, void *stopped_user,
                         nori_route_traffic *traffic, nori_error *err)
{
    world *w = user;
    assert_true(n_in == 1 && n_out == 1);
    w->asked++;
    w->second += second;
    traffic->sent_bytes = nori_tensor_bytes(in[0]);
    for (int i = 0; i < w->delay_ms && !stopped(stopped_user); i++) {
        nap(0.001);
    }
    if (w->gone) {
        return nori__fail(err, NORI_ERROR_UNAVAILABLE, "nobody is there");
    }
    NORI__TRY(nori_tensor_create(NULL, NORI_FLOAT, 1, nori_tensor_dims(in[0]), &out[0], err));
    traffic->received_bytes = nori_tensor_bytes(out[0]);
    for (int64_t i = 0; i < nori_tensor_elements(in[0]); i++) {
        ((float *)nori_tensor_data(out[0]))[i] = -((const float *)nori_tensor_const_data(in[0]))[i];
    }
    return NORI_OK;
}

static nori_status probe(void *user, nori_route_traffic *traffic, nori_error *err)
{
    world *w = user;
    w->probed++;
    traffic->sent_bytes = 1;
    return w->gone ? nori__fail(err, NORI_ERROR_UNAVAILABLE, "nobody is there") : NORI_OK;
}

static void note(void *user, const nori_route_record *record)
{
    world *w = user;
    w->logged++;
    w->sent += record->traffic.sent_bytes;
}

static void begin(world *w, double edge, double cloud)
{
    make m;
    nori_error err = {0};
    make_begin(&m, 17);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "8");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "8");
    make_node(&m, &m.graph, "", "Neg", "n", "x", "y");
    nori__text_init(&w->bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m.model, &w->bytes, &err), NORI_OK);
    make_end(&m);
    assert_int_equal(nori_model_load_memory(NULL, w->bytes.data, w->bytes.size, NULL, NULL, &w->model, &err),
                     NORI_OK);
    assert_int_equal(nori_session_create(w->model, NULL, &w->session, &err), NORI_OK);
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 1, (int64_t[]){8}, &w->x, &err), NORI_OK);
    for (int i = 0; i < 8; i++) {
        ((float *)nori_tensor_data(w->x))[i] = (float)i + 1;
    }
    nori_route_options_default(&w->o);
    w->o.edge = w->session;
    w->o.infer = infer;
    w->o.probe = probe;
    w->o.far_user = w;
    w->o.log = note;
    w->o.log_user = w;
    w->o.output_count = 1;
    w->o.policy.has_prior[0] = w->o.policy.has_prior[1] = 1;
    nori_times_constant(&w->o.policy.prior[0], edge);
    nori_times_constant(&w->o.policy.prior[1], cloud);
}

static void start(world *w)
{
    nori_error err = {0};
    if (nori_route_create(&w->o, &w->route, &err) != NORI_OK) {
        fail_msg("%s", err.message);
    }
}

static void end(world *w)
{
    nori_route_free(w->route);
    nori_session_free(w->session);
    nori_model_free(w->model);
    nori_tensor_free(w->x);
    nori__text_free(&w->bytes);
}

/* One call, whose answer must be right whoever gave it. */
static nori_route_result call(world *w)
{
    nori_route_result r = {.size = sizeof(r)};
    nori_tensor *y = NULL;
    nori_error err = {0};
    const nori_tensor *x = w->x;
    if (nori_route_run(w->route, &x, 1, &y, 1, &r, &err) != NORI_OK) {
        fail_msg("%s", err.message);
    }
    float sign = r.place == NORI_PLACE_SPLIT ? 1 : -1; /* both parts of these splits negate */
    for (int i = 0; i < 8; i++) {
        assert_true(((const float *)nori_tensor_const_data(y))[i] == sign * ((float)i + 1));
    }
    nori_tensor_free(y);
    return r;
}

static void goes_where_it_is_faster(void **state)
{
    (void)state;
    world w = {.delay_ms = 0};
    begin(&w, 0.5, 0.001); /* the edge is thought slow: it is not asked */
    w.o.policy.explore = 0;
    w.o.hedge_s = 5;
    start(&w);
    for (int i = 0; i < 10; i++) {
        nori_route_result r = call(&w);
        assert_int_equal(r.place, NORI_PLACE_CLOUD);
        assert_false(r.hedged);
    }
    assert_int_equal(w.asked, 10);
    assert_int_equal(w.logged, 10);
    assert_int_equal(w.sent, 10 * 32);
    end(&w);
}

static void a_late_server_is_hedged(void **state)
{
    (void)state;
    world w = {.delay_ms = 400};
    begin(&w, 0.5, 0.001);
    w.o.hedge_s = 0.010;
    w.o.policy.explore = 0;
    start(&w);
    nori_route_result r = call(&w);
    assert_int_equal(r.asked, NORI_PLACE_CLOUD);
    assert_int_equal(r.place, NORI_PLACE_EDGE);
    assert_true(r.hedged);
    assert_true(r.seconds < 0.4);
    end(&w); /* waits for the request that is under way, and gives it up */
    assert_int_equal(w.asked, 1);
}

static void a_network_that_is_gone(void **state)
{
    (void)state;
    world w = {.gone = 1};
    begin(&w, 0.5, 0.001);
    w.o.policy.retry_s = 1000;
    start(&w);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(call(&w).place, NORI_PLACE_EDGE);
    }
    assert_in_range(w.asked, 1, 2); /* two failures, and then nothing goes out any more */
    assert_int_equal(w.probed, 0);
    end(&w);
}

static void it_comes_back(void **state)
{
    (void)state;
    world w = {.gone = 1};
    begin(&w, 0.5, 0.001);
    w.o.policy.retry_s = 0.02;
    w.o.policy.prior[0].at[0] = 0.5;
    start(&w);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(call(&w).place, NORI_PLACE_EDGE);
        nap(0.005);
    }
    assert_true(w.probed > 0);
    w.gone = 0;
    nori_policy_view v = {.size = sizeof(v), .open = 1};
    for (int i = 0; i < 400 && v.open; i++) {
        call(&w);
        nap(0.005);
        nori_route_look(w.route, &v);
    }
    assert_false(v.open);
    end(&w);
}

static void privacy(void **state)
{
    (void)state;
    world w = {0};
    begin(&w, 0.5, 0.001);
    w.o.first = w.session;
    w.o.raw_stays = 1;
    start(&w);
    for (int i = 0; i < 200; i++) { /* features may leave: the split has no prior and is looked at */
        assert_int_not_equal(call(&w).place, NORI_PLACE_CLOUD);
    }
    nori_route_free(w.route);
    assert_int_equal(w.asked, w.second); /* the whole model was never asked for */
    w.asked = w.probed = w.logged = 0;
    w.o.features_stay = 1;
    start(&w);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(call(&w).place, NORI_PLACE_EDGE);
    }
    end(&w);
    assert_int_equal(w.asked + w.probed + w.logged, 0);
}

/* -(-(x)) is not -x: a split of the session and the server gives x, which shows that both ran. */
static void a_split_runs_both_parts(void **state)
{
    (void)state;
    world w = {0};
    nori_tensor *y = NULL;
    nori_route_result r = {.size = sizeof(r)};
    begin(&w, 0.5, 0.5);
    w.o.first = w.session;
    w.o.edge = NULL;
    w.o.policy.possible[2] = 1;
    start(&w);
    const nori_tensor *x = w.x;
    assert_int_equal(nori_route_run(w.route, &x, 1, &y, 1, &r, NULL), NORI_OK);
    assert_int_equal(r.place, NORI_PLACE_SPLIT);
    assert_int_equal(w.second, 1);
    assert_memory_equal(nori_tensor_const_data(y), nori_tensor_const_data(w.x), 32);
    nori_tensor_free(y);
    w.gone = 1; /* and there is nobody else to ask */
    nori_error err = {0};
    assert_int_equal(nori_route_run(w.route, &x, 1, &y, 1, &r, &err), NORI_ERROR_UNAVAILABLE);
    assert_non_null(strstr(err.message, "nobody"));
    assert_null(y);
    end(&w);
}

static void *many(void *user)
{
    for (int i = 0; i < 40; i++) {
        call(user);
    }
    return NULL;
}

static void from_several_threads(void **state)
{
    (void)state;
    world w = {.delay_ms = 2};
    pthread_t t[4];
    begin(&w, 0.003, 0.002);
    w.o.hedge_s = 0.002; /* some of each */
    w.o.policy.explore = 0.3;
    start(&w);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, many, &w), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], NULL);
    }
    end(&w);
    assert_int_equal(w.asked, w.logged - w.probed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hysteresis),      cmocka_unit_test(explores),
        cmocka_unit_test(heavy_tail),      cmocka_unit_test(circuit),
        cmocka_unit_test(policy_refusals), cmocka_unit_test(goes_where_it_is_faster),
        cmocka_unit_test(a_late_server_is_hedged), cmocka_unit_test(a_network_that_is_gone),
        cmocka_unit_test(it_comes_back),   cmocka_unit_test(privacy),
        cmocka_unit_test(a_split_runs_both_parts), cmocka_unit_test(from_several_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Cuts of a model in two: the best one against all there are on 1,000 random graphs, what a cut sends of
 * a made model with an If and constants, times given by the names of values, 8 bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "make_model.h"
#include "nori/divide.h"

#define NEAR(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))
#define MOST_NODES 12
#define MOST_VALUES 20

/* ---- the problem alone ---- */

static uint32_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(seed >> 8) * below) >> 24);
}

typedef struct graph {
    nori_divide_problem p;
    double edge[MOST_NODES], cloud[MOST_NODES];
    nori_divide_value values[MOST_VALUES];
    size_t readers[MOST_VALUES][MOST_NODES];
} graph;

/* Whole numbers, so that sums are exact and equal means equal. */
static void make_graph(graph *g)
{
    size_t n = 1 + draw(MOST_NODES), inputs = 1 + draw(3);
    memset(g, 0, sizeof(*g));
    g->p = (nori_divide_problem){.size = sizeof(g->p), .node_count = n, .edge_s = g->edge,
                              .cloud_s = g->cloud, .values = g->values, .value_count = inputs + n,
                              .far_s = draw(3) ? draw(20) : 0};
    for (size_t i = 0; i < n; i++) {
        g->edge[i] = draw(30);
        g->cloud[i] = draw(12);
    }
    for (size_t v = 0; v < inputs + n; v++) {
        nori_divide_value *value = &g->values[v];
        bool input = v < inputs;
        value->producer = input ? NORI_DIVIDE_INPUT : v - inputs;
        value->readers = g->readers[v];
        for (size_t i = input ? 0 : v - inputs + 1; i < n; i++) {
            if (draw(10) < 3) {
                g->readers[v][value->reader_count++] = i;
            }
        }
        value->up_s = draw(12) == 0 ? -1.0 : (double)draw(40);
        value->down_s = !input && draw(4) == 0 ? draw(10) : 0;
    }
}

/* Cost of a choice written down from its meaning; infinite where it is not allowed. */
static double cost_of(const graph *g, uint32_t cloud)
{
    double sum = cloud ? g->p.far_s : 0;
    for (size_t i = 0; i < g->p.node_count; i++) {
        sum += cloud >> i & 1 ? g->cloud[i] : g->edge[i];
    }
    for (size_t v = 0; v < g->p.value_count; v++) {
        const nori_divide_value *value = &g->values[v];
        bool made_there = value->producer != NORI_DIVIDE_INPUT && (cloud >> value->producer & 1);
        bool sent = false;
        for (size_t k = 0; k < value->reader_count; k++) {
            bool read_there = cloud >> value->readers[k] & 1;
            if (made_there && !read_there) {
                return INFINITY;
            }
            sent = sent || (!made_there && read_there);
        }
        if (sent) {
            sum += value->up_s < 0 ? INFINITY : value->up_s;
        }
        sum += made_there ? value->down_s : 0;
    }
    return sum;
}

static void best_of_all(void **state)
{
    (void)state;
    static graph g;
    size_t splits = 0, ends = 0;
    for (seed = 1; splits + ends < 1000;) {
        unsigned char cloud[MOST_NODES];
        double seconds = -1, best = INFINITY;
        make_graph(&g);
        for (uint32_t choice = 0; choice < (uint32_t)1 << g.p.node_count; choice++) {
            double cost = cost_of(&g, choice);
            best = cost < best ? cost : best;
        }
        assert_int_equal(nori_divide_solve(&g.p, cloud, &seconds, NULL), NORI_OK);
        uint32_t chosen = 0;
        for (size_t i = 0; i < g.p.node_count; i++) {
            chosen |= (uint32_t)cloud[i] << i;
        }
        assert_true(seconds == best);
        assert_true(cost_of(&g, chosen) == best);
        bool end = chosen == 0 || chosen == ((uint32_t)1 << g.p.node_count) - 1;
        splits += !end;
        ends += end;
    }
    assert_true(splits > 200 && ends > 200); /* the graphs are of both kinds */
}

/* Three nodes in a row that shrink what goes on: 1000, 500, 10, 10 bytes. */
static void by_hand(void **state)
{
    (void)state;
    const size_t r[3][1] = {{0}, {1}, {2}};
    const double edge[] = {1, 1, 50}, cloud[] = {0.5, 0.5, 5};
    const nori_divide_value values[] = {{NORI_DIVIDE_INPUT, r[0], 1, 100, 0}, {0, r[1], 1, 50, 0},
                                     {1, r[2], 1, 1, 0}, {2, NULL, 0, 0, 1}};
    nori_divide_problem p = {.size = sizeof(p), .node_count = 3, .edge_s = edge, .cloud_s = cloud,
                          .values = values, .value_count = 4, .far_s = 10};
    unsigned char there[3];
    double seconds;
    assert_int_equal(nori_divide_solve(&p, there, &seconds, NULL), NORI_OK);
    assert_memory_equal(there, ((unsigned char[]){0, 0, 1}), 3);
    NEAR(seconds, 1 + 1 + 5 + 1 + 1 + 10, 1e-12);
    p.far_s = 50; /* 59 against 52 on the device alone */
    assert_int_equal(nori_divide_solve(&p, there, &seconds, NULL), NORI_OK);
    assert_memory_equal(there, ((unsigned char[]){0, 0, 0}), 3);
    NEAR(seconds, 52, 1e-12);
}

static void refusals(void **state)
{
    (void)state;
    const size_t reads_itself[] = {0};
    const double t[] = {1};
    nori_divide_value value = {0, reads_itself, 1, 1, 0};
    nori_divide_problem p = {.size = sizeof(p), .node_count = 1, .edge_s = t, .cloud_s = t, .values = &value,
                          .value_count = 1};
    unsigned char there;
    double seconds;
    nori_error err = {0};
    assert_int_equal(nori_divide_solve(&p, &there, &seconds, &err), NORI_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "later node"));
    value.producer = 7;
    assert_int_equal(nori_divide_solve(&p, &there, &seconds, NULL), NORI_ERROR_ARGUMENT);
    value = (nori_divide_value){NORI_DIVIDE_INPUT, reads_itself, 1, NAN, 0};
    assert_int_equal(nori_divide_solve(&p, &there, &seconds, NULL), NORI_ERROR_ARGUMENT);
    p.value_count = 0;
    p.far_s = -1;
    assert_int_equal(nori_divide_solve(&p, &there, &seconds, NULL), NORI_ERROR_ARGUMENT);
}

/* ---- a model ---- */

typedef struct fixture {
    nori__text bytes;
    nori_model *model;
    nori_tensor *in[2];
    nori_divide *cuts;
} fixture;

/* a = Neg(x); e = Exp(w), of constants alone; i = If(b) { a + a } else { Relu(a) }; y = i * e;
 * z = Sigmoid(y) */
static void make_file(make *m, int64_t opset)
{
    make_begin(m, opset);
    make_input(m, &m->graph, "x", NORI_FLOAT, "64");
    make_input(m, &m->graph, "b", NORI_BOOL, "");
    make_output(m, &m->graph, "z", NORI_FLOAT, "64");
    nori__pb_tensor *w = MAKE_ADD(m, m->graph.initializers);
    w->name = make_str(m, "w");
    w->data_type = NORI_FLOAT;
    *MAKE_ADD(m, w->dims) = 1;
    w->floats.items = make_room(m, NULL, 0, sizeof(float));
    w->floats.count = 1;
    make_node(m, &m->graph, "", "Neg", "first", "x", "a");
    make_node(m, &m->graph, "", "Exp", "constant", "w", "e");
    nori__pb_node *n = make_node(m, &m->graph, "", "If", "choice", "b", "i");
    nori__pb_graph *yes = make_attr_graph(m, n, "then_branch");
    nori__pb_graph *no = make_attr_graph(m, n, "else_branch");
    make_node(m, yes, "", "Add", "twice", "a a", "r1");
    make_output(m, yes, "r1", NORI_FLOAT, "64");
    make_node(m, no, "", "Relu", "cut_off", "a", "r2");
    make_output(m, no, "r2", NORI_FLOAT, "64");
    make_node(m, &m->graph, "", "Mul", "scaled", "i e", "y");
    make_node(m, &m->graph, "", "Sigmoid", "last", "y", "z");
}

static void begin(fixture *f, int64_t opset)
{
    make m;
    nori_error err = {0};
    make_file(&m, opset);
    nori__text_init(&f->bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m.model, &f->bytes, &err), NORI_OK);
    make_end(&m);
    assert_int_equal(nori_model_load_memory(NULL, f->bytes.data, f->bytes.size, NULL, NULL, &f->model, &err),
                     NORI_OK);
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 1, (int64_t[]){64}, &f->in[0], &err), NORI_OK);
    assert_int_equal(nori_tensor_create(NULL, NORI_BOOL, 0, NULL, &f->in[1], &err), NORI_OK);
    for (int i = 0; i < 64; i++) {
        ((float *)nori_tensor_data(f->in[0]))[i] = (float)i / 20 - 1;
    }
    *(unsigned char *)nori_tensor_data(f->in[1]) = 1;
    nori_status s = nori_divide_create(f->model, NULL, (const nori_tensor *const *)f->in, 2, &f->cuts, &err);
    if (s != NORI_OK) {
        fail_msg("%s %s", err.where, err.message);
    }
}

static void end(fixture *f)
{
    nori_divide_free(f->cuts);
    nori_tensor_free(f->in[0]);
    nori_tensor_free(f->in[1]);
    nori_model_free(f->model);
    nori__text_free(&f->bytes);
}

static void of_a_model(void **state)
{
    (void)state;
    fixture f = {0};
    nori_divide_link link = {.size = sizeof(link)};
    nori_division cut = {.size = sizeof(cut)};
    begin(&f, 17);
    assert_int_equal(nori_divide_node_count(f.cuts), 4); /* nothing of the If's inside, no constant */
    assert_int_equal(nori_divide_at(f.cuts, 0, &link, &cut), 1);
    assert_int_equal(cut.value_count, 2); /* what the branches read of outside, and the condition */
    assert_true(cut.raw);
    assert_int_equal(cut.bytes, 64 * 4 + 1);
    assert_int_equal(cut.int8_bytes, 64 + 5 + 1);
    assert_int_equal(nori_divide_at(f.cuts, 1, &link, &cut), 1);
    assert_int_equal(cut.value_count, 1); /* not the constant, which both sides have */
    assert_string_equal(cut.values[0], "i");
    assert_false(cut.raw);
    assert_int_equal(cut.down_bytes, 64 * 4);
    assert_int_equal(nori_divide_at(f.cuts, 2, &link, &cut), 1);
    assert_string_equal(cut.values[0], "y");
    assert_int_equal(nori_divide_at(f.cuts, 3, &link, &cut), 0);
    end(&f);
}

static void times_by_name(void **state)
{
    (void)state;
    fixture f = {0};
    const char *const made[] = {"a", "i_1", "z", "of another model"};
    const double edge[] = {0.010, 0.002, 0.088, 5}, cloud[] = {0.001, 0.001, 0.002, 5};
    nori_divide_link link = {.size = sizeof(link), .up_speed = 257000, .far_s = 0.004};
    nori_division cut = {.size = sizeof(cut)};
    begin(&f, 17);
    assert_int_equal(nori_divide_times(f.cuts, 0, made, edge, 4, 0.100, NULL), NORI_OK);
    assert_int_equal(nori_divide_times(f.cuts, 1, made, cloud, 4, 0.004, NULL), NORI_OK);
    /* 257 bytes take 1 ms: after the first node 10 + 1 + 3 + 4 = 18; the input alone is as large, so all
     * on the server is 0 + 1 + 4 + 4 = 9 ms */
    assert_int_equal(nori_divide_at(f.cuts, 0, &link, &cut), 1);
    NEAR(cut.total_s, 0.018, 1e-9);
    NEAR(cut.edge_s, 0.010, 1e-9);
    assert_int_equal(nori_divide_best(f.cuts, &link, &cut, NULL), NORI_OK);
    assert_int_equal(cut.edge_nodes, 0);
    NEAR(cut.total_s, 0.009, 1e-9);
    /* inputs stay, b with them: what reads b is on the device */
    link.inputs_stay = 1;
    assert_int_equal(nori_divide_best(f.cuts, &link, &cut, NULL), NORI_OK);
    assert_int_equal(cut.edge_nodes, 3); /* the product took no time of its own: y or i, both 1 ms */
    assert_false(cut.raw);
    NEAR(cut.total_s, 0.010 + 0.002 + 256.0 / 257000 + 0.002 + 0.004, 1e-9);
    link.int8 = 1;
    assert_int_equal(nori_divide_best(f.cuts, &link, &cut, NULL), NORI_OK);
    NEAR(cut.total_s, 0.010 + 0.002 + 69.0 / 257000 + 0.002 + 0.004, 1e-9);
    assert_int_equal(nori_divide_times(f.cuts, 2, made, cloud, 4, 1, NULL), NORI_ERROR_ARGUMENT);
    end(&f);
}

static void in_8_bits(void **state)
{
    (void)state;
    fixture f = {0};
    nori_divide_link link = {.size = sizeof(link)};
    nori_division cut = {.size = sizeof(cut)};
    begin(&f, 17);
    for (size_t i = 0; nori_divide_at(f.cuts, i, &link, &cut); i++) {
        nori_agreement a = {.size = sizeof(a)};
        nori_error err = {0};
        nori_status s = nori_divide_int8(f.cuts, &a, &err);
        if (s != NORI_OK) {
            fail_msg("%s %s", err.where, err.message);
        }
        /* y spans 6.3 (a half of it): steps of 6.3 / 255, half of one at most, a slope of at most 1/4 */
        assert_int_equal(a.pairs, 1);
        assert_true(a.max_abs > 0);
        assert_true(a.max_abs <= 6.4 / 255 / 2 / 4 * 1.05);
    }
    end(&f);
    begin(&f, 10);
    assert_int_equal(nori_divide_at(f.cuts, 0, &link, &cut), 1);
    nori_agreement a = {.size = sizeof(a)};
    assert_int_equal(nori_divide_int8(f.cuts, &a, NULL), NORI_ERROR_UNSUPPORTED);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_of_all),  cmocka_unit_test(by_hand),       cmocka_unit_test(refusals),
        cmocka_unit_test(of_a_model),   cmocka_unit_test(times_by_name), cmocka_unit_test(in_8_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

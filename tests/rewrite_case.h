/* rewrite_case.h: what tests of a provider's rewriting share: outputs and inputs from a few words, and
 * which operators a rewritten graph has. Include after cmocka.h. */
#ifndef NORI_TESTS_REWRITE_CASE_H
#define NORI_TESTS_REWRITE_CASE_H

#include "model_run.h"

/* names: separated by a space; shapes are left to inference. */
static inline void rewrite_outputs(make *m, const char *names, nori_type type)
{
    for (const char *at = names; *at; at += *at == ' ') {
        char name[16];
        size_t n = strcspn(at, " ");
        snprintf(name, sizeof(name), "%.*s", (int)n, at);
        make_output(m, &m->graph, name, type, NULL);
        at += n;
    }
}

/* The main graph's operators in order are those of expected (separated by blanks, any number). */
static inline void rewrite_left(const nori__ir *ir, const char *expected, const char *what)
{
    char found[256] = "", wanted[256];
    size_t used = 0, length = 0;
    for (const nori__node *n = ir->main->first; n; n = n->next) {
        used += (size_t)snprintf(found + used, sizeof(found) - used, "%s%s", used ? " " : "",
                                 n->op_type);
        assert_true(used < sizeof(found));
    }
    for (const char *at = expected; *at; at++) {
        if (*at != ' ' || at[1] != ' ') {
            assert_true(length + 1 < sizeof(wanted));
            wanted[length++] = *at;
        }
    }
    wanted[length] = 0;
    if (!nori__same(found, wanted)) {
        print_error("%s:\n", what);
    }
    assert_string_equal(found, wanted);
}

static inline uint64_t rewrite__macs(make *m, const char *providers, int level, const nori_tensor *x)
{
    nori_costs *costs = NULL;
    nori_cost_total total = {.size = sizeof(total)};
    nori_error err = {0};
    model_open o = model_session(m, providers, level, 1);
    assert_int_equal(nori_session_costs(o.session, &x, 1, &costs, &err), NORI_OK);
    nori_costs_total(costs, &total);
    assert_int_equal(total.unknown, 0);
    nori_costs_free(costs);
    model_close(&o);
    return total.macs;
}

/* What is rewritten counts as much work as the file's own nodes. */
static inline void rewrite_work(make *m, const nori_tensor *x, const char *what)
{
    uint64_t own = rewrite__macs(m, "reference", 0, x), ours = rewrite__macs(m, "cpu", 2, x);
    if (own != ours) {
        print_error("%s: %llu multiply-adds in the file, %llu counted\n", what, (unsigned long long)own,
                    (unsigned long long)ours);
    }
    assert_true(own == ours);
}

/* A tensor of zeros: shape is "2 3 4". */
static inline nori_tensor *rewrite_input(nori_type type, const char *shape)
{
    int64_t dims[NORI_MAX_RANK];
    int rank = 0;
    nori_tensor *x = NULL;
    char *end = NULL;
    for (const char *at = shape; *at; at = *end ? end + 1 : end) {
        assert_true(rank < NORI_MAX_RANK);
        dims[rank++] = strtoll(at, &end, 10);
    }
    assert_int_equal(nori_tensor_create(NULL, type, rank, dims, &x, NULL), NORI_OK);
    return x;
}

#endif

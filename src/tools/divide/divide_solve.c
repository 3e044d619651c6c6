/* divide_solve.c: the best cut as a minimum cut. The source stands for the device, the sink for the server.
 *
 *     node i on the device costs edge_s: an edge from i to the sink; on the server: from the source to i
 *     a value made on the device and read on the server costs up_s once: producer -> value node, and from
 *         there endless edges to its readers, so that one of them on the server takes it along
 *     nothing comes back: an endless edge from each reader to the producer
 *     an output made on the server costs down_s: from the source to its producer
 *     far_s once: source -> far, and endless edges from there to every node
 *
 * Seconds become integers, so that flow ends and is exact: of a size that their sum stays below 2^60. */
#include <math.h>

#include "base/given.h"
#include "tools/divide/divides.h"

static nori_status check(const nori_divide_problem *p, size_t *edges, double *sum, nori_error *err)
{
    *edges = 4 * p->node_count + 2;
    *sum = p->far_s;
    for (size_t i = 0; i < p->node_count; i++) {
        if (!(isfinite(p->edge_s[i]) && p->edge_s[i] >= 0 && isfinite(p->cloud_s[i]) && p->cloud_s[i] >= 0)) {
            return nori__fail(err, NORI_ERROR_ARGUMENT, "node %zu takes %g and %g s, at least 0 was expected",
                              i, p->edge_s[i], p->cloud_s[i]);
        }
        *sum += p->edge_s[i] + p->cloud_s[i];
    }
    for (size_t i = 0; i < p->value_count; i++) {
        const nori_divide_value *v = &p->values[i];
        bool made = v->producer != NORI_DIVIDE_INPUT;
        if (!isfinite(v->up_s) || !isfinite(v->down_s) || v->down_s < 0 ||
            (made && v->producer >= p->node_count)) {
            return nori__fail(err, NORI_ERROR_ARGUMENT, "value %zu: its producer or its times are not valid",
                              i);
        }
        for (size_t k = 0; k < v->reader_count; k++) {
            if (v->readers[k] >= p->node_count || (made && v->readers[k] <= v->producer)) {
                return nori__fail(err, NORI_ERROR_ARGUMENT, "value %zu is read by node %zu, a later "
                                  "node than its producer was expected", i, v->readers[k]);
            }
        }
        if (v->reader_count > (SIZE_MAX / 4 - *edges - 4) / 2) {
            return nori__fail(err, NORI_ERROR_LIMIT, "the graph is too large");
        }
        *edges += 2 * v->reader_count + 2;
        *sum += (v->up_s > 0 ? v->up_s : 0) + v->down_s;
    }
    if (!isfinite(*sum) || p->far_s < 0) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "far_s is %g, at least 0 was expected", p->far_s);
    }
    return NORI_OK;
}

static double cost_of(const nori_divide_problem *p, const unsigned char *cloud)
{
    double sum = 0;
    bool any = false;
    for (size_t i = 0; i < p->node_count; i++) {
        sum += cloud[i] ? p->cloud_s[i] : p->edge_s[i];
        any = any || cloud[i];
    }
    for (size_t i = 0; i < p->value_count; i++) {
        const nori_divide_value *v = &p->values[i];
        bool here = v->producer == NORI_DIVIDE_INPUT || !cloud[v->producer], there = false;
        for (size_t k = 0; k < v->reader_count; k++) {
            there = there || cloud[v->readers[k]];
        }
        sum += here && there ? v->up_s : 0;
        sum += here ? 0 : v->down_s;
    }
    return sum + (any ? p->far_s : 0);
}

nori_status nori_divide_solve(const nori_divide_problem *p, unsigned char *cloud, double *seconds,
                              nori_error *err)
{
    NORI__GIVEN(err, p);
    NORI__GIVEN(err, cloud);
    NORI__GIVEN(err, seconds);
    size_t edges;
    double sum;
    NORI__TRY(check(p, &edges, &sum, err));
    size_t n = p->node_count, values = n, source = n + p->value_count, sink = source + 1, far = sink + 1;
    nori__flow *f = nori__flow_new(far + 1, edges);
    if (!f) {
        return nori__no_memory(err);
    }
    double scale = sum > 0 ? 0x1p59 / sum : 1;
    for (size_t i = 0; i < n; i++) {
        nori__flow_edge(f, i, sink, (int64_t)(p->edge_s[i] * scale));
        nori__flow_edge(f, source, i, (int64_t)(p->cloud_s[i] * scale));
        nori__flow_edge(f, far, i, NORI__FLOW_ENDLESS);
    }
    nori__flow_edge(f, source, far, (int64_t)(p->far_s * scale));
    for (size_t i = 0; i < p->value_count; i++) {
        const nori_divide_value *v = &p->values[i];
        bool made = v->producer != NORI_DIVIDE_INPUT;
        nori__flow_edge(f, made ? v->producer : source, values + i,
                        v->up_s < 0 ? NORI__FLOW_ENDLESS : (int64_t)(v->up_s * scale));
        for (size_t k = 0; k < v->reader_count; k++) {
            nori__flow_edge(f, values + i, v->readers[k], NORI__FLOW_ENDLESS);
            if (made) {
                nori__flow_edge(f, v->readers[k], v->producer, NORI__FLOW_ENDLESS);
            }
        }
        if (made && v->down_s > 0) {
            nori__flow_edge(f, source, v->producer, (int64_t)(v->down_s * scale));
        }
    }
    nori__flow_run(f, source, sink);
    for (size_t i = 0; i < n; i++) {
        cloud[i] = nori__flow_far(f, i);
    }
    *seconds = cost_of(p, cloud);
    nori__flow_free(f);
    return NORI_OK;
}

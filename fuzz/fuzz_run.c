/* fuzz_run.c: graphs made by bytes, run. Target `run`: neither provider does harm, and both give one type
 * and rank. Target `agree`: more nodes, and the results are the same: bit for bit for any number of
 * threads and after the way through text, to a tolerance on every level and provider. Which CPU level is
 * tried is up to NORI_CPU. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fuzz_graph.h"
#include "graph/tensor.h"
#include "nori/text.h"

static void free_all(nori_tensor **out)
{
    for (int i = 0; i < FUZZ_GRAPH_OUTPUTS; i++) {
        nori_tensor_free(out[i]);
        out[i] = NULL;
    }
}

static bool one_form(const nori_tensor *a, const nori_tensor *b)
{
    return nori_tensor_kind(a) == nori_tensor_kind(b) && nori_tensor_type(a) == nori_tensor_type(b) &&
           nori_tensor_rank(a) == nori_tensor_rank(b);
}

void fuzz_run(const uint8_t *data, size_t size)
{
    static const fuzz_way ways[] = {{"reference", 0, 1}, {"cpu", 0, 1}, {"cpu", 2, 1}};
    nori_tensor *out[3][FUZZ_GRAPH_OUTPUTS] = {{NULL}};
    bool ran[3];
    fuzz_graph g;
    if (!fuzz_graph_make(fuzz_env(), data, size, 8, &g)) {
        return;
    }
    for (int w = 0; w < 3; w++) {
        ran[w] = fuzz_graph_run(g.model, &ways[w], &g, out[w]);
        for (size_t i = 0; w > 0 && ran[0] && ran[w] && i < nori_model_output_count(g.model); i++) {
            FUZZ_HOLDS(one_form(out[w][i], out[0][i]));
        }
    }
    for (int w = 0; w < 3; w++) {
        free_all(out[w]);
    }
    fuzz_graph_free(&g);
}

/* ---- agreement ---- */

static nori_env *pooled_env(void)
{
    static nori_env *env;
    nori_env_options o;
    nori_limits limits = {.size = sizeof(limits)};
    if (!env) {
        nori_env_options_default(&o);
        o.threads = 3;
        nori_env_limits(fuzz_env(), &limits);
        FUZZ_HOLDS(nori_env_create(&o, &env, NULL) == NORI_OK);
        FUZZ_HOLDS(nori_env_set_limits(env, &limits, NULL) == NORI_OK);
    }
    return env;
}

/* The same type, shape and bytes; groups item by item. */
static bool same_bits(const nori_tensor *a, const nori_tensor *b)
{
    if (!one_form(a, b) || nori_tensor_item_count(a) != nori_tensor_item_count(b) ||
        memcmp(a->dims, b->dims, sizeof(a->dims[0]) * (size_t)nori_tensor_rank(a)) != 0) {
        return false;
    }
    if (nori_tensor_kind(a) != NORI_KIND_TENSOR || nori_tensor_type(a) == NORI_STRING) {
        return true;
    }
    return nori_tensor_bytes(a) == nori_tensor_bytes(b) &&
           (nori_tensor_bytes(a) == 0 || memcmp(nori_tensor_const_data(a), nori_tensor_const_data(b),
                                                nori_tensor_bytes(a)) == 0);
}

static bool is_float(nori_type type)
{
    return type == NORI_FLOAT || type == NORI_DOUBLE;
}

/* Within what float32 loses over 30 nodes, of the largest number there is; where one is not finite, or
 * very large, rounding decides and nothing is said. */
static bool near(const nori_tensor *a, const nori_tensor *b)
{
    double most = 0;
    if (!one_form(a, b) || nori_tensor_elements(a) != nori_tensor_elements(b)) {
        return false;
    }
    if (nori_tensor_kind(a) != NORI_KIND_TENSOR || !is_float(nori_tensor_type(a))) {
        return true;
    }
    for (int64_t i = 0; i < nori_tensor_elements(a); i++) {
        double v = fabs(nori__tensor_get_f64(a, i)), w = fabs(nori__tensor_get_f64(b, i));
        if (!(v < 1e12) || !(w < 1e12)) {
            return true;
        }
        most = v > most ? v : most;
    }
    for (int64_t i = 0; i < nori_tensor_elements(a); i++) {
        double off = fabs(nori__tensor_get_f64(a, i) - nori__tensor_get_f64(b, i));
        if (off > 1e-3 * most + 1e-3) {
            fprintf(stderr, "element %lld: %.9g and %.9g\n", (long long)i, nori__tensor_get_f64(a, i),
                    nori__tensor_get_f64(b, i));
            return false;
        }
    }
    return true;
}

/* Through text and back: the same model, so the same bits. */
static void by_text(const fuzz_graph *g, const fuzz_way *way, nori_tensor *const *want, size_t n)
{
    nori_tensor *out[FUZZ_GRAPH_OUTPUTS] = {NULL};
    nori_text_options o;
    nori_model *again = NULL;
    nori_error err = {0};
    char *text = NULL;
    size_t size = 0;
    nori_text_options_default(&o);
    o.inline_elements = INT64_MAX;
    if (nori_model_text(g->model, &o, &text, &size, NULL, &err) == NORI_OK) {
        FUZZ_HOLDS(nori_model_from_text(pooled_env(), text, size, NULL, &again, &err) == NORI_OK);
        FUZZ_HOLDS(fuzz_graph_run(again, way, g, out));
        for (size_t i = 0; i < n; i++) {
            FUZZ_HOLDS(same_bits(out[i], want[i]));
        }
    }
    free_all(out);
    nori_text_free(text);
    nori_model_free(again);
}

void fuzz_agree(const uint8_t *data, size_t size)
{
    static const fuzz_way ways[] = {{"cpu", 2, 1}, {"cpu", 2, 3}, {"cpu", 1, 1}, {"cpu", 0, 3},
                                    {"reference", 0, 1}, {"reference", 1, 3}};
    enum { WAYS = sizeof(ways) / sizeof(ways[0]) };
    nori_tensor *out[WAYS][FUZZ_GRAPH_OUTPUTS] = {{NULL}};
    bool ran[WAYS];
    fuzz_graph g;
    if (!fuzz_graph_make(pooled_env(), data, size, 30, &g)) {
        return;
    }
    size_t n = nori_model_output_count(g.model);
    for (int w = 0; w < WAYS; w++) {
        ran[w] = fuzz_graph_run(g.model, &ways[w], &g, out[w]);
    }
    FUZZ_HOLDS(ran[0] == ran[1]);
    for (size_t i = 0; ran[0] && i < n; i++) {
        FUZZ_HOLDS(same_bits(out[0][i], out[1][i]));
        for (int w = 2; w < WAYS && !g.jumps; w++) {
            fuzz_count.compared += ran[w];
            FUZZ_HOLDS(!ran[w] || near(out[w][i], out[0][i]));
        }
    }
    if (ran[0]) {
        by_text(&g, &ways[0], out[0], n);
    }
    for (int w = 0; w < WAYS; w++) {
        free_all(out[w]);
    }
    fuzz_graph_free(&g);
}

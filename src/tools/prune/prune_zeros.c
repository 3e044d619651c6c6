/* prune_zeros.c: weights of least size become zero: a share of each weight's elements, or two of
 * every four that are multiplied with neighbouring channels (the pattern of sparse tensor cores). */
#include <math.h>
#include <stdlib.h>

#include "ops/op.h"
#include "tools/prune/prune.h"

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The share of least size; among equals those that come first. */
static nori_status magnitude(nori__pruner *p, float *w, int64_t count)
{
    int64_t drop = (int64_t)floor(p->options->share * (double)count), equal;
    size_t bytes = (size_t)count * sizeof(float);
    float *sizes = nori__alloc(p->allocator, bytes);
    if (!sizes) {
        return nori__no_memory(p->err);
    }
    for (int64_t i = 0; i < count; i++) {
        sizes[i] = isnan(w[i]) ? INFINITY : fabsf(w[i]);
    }
    qsort(sizes, (size_t)count, sizeof(float), by_size);
    float edge = drop > 0 ? sizes[drop - 1] : -1;
    equal = drop;
    for (int64_t i = 0; i < drop; i++) {
        equal -= sizes[i] < edge; /* how many of the edge's own size go */
    }
    nori__release(p->allocator, sizes, bytes);
    for (int64_t i = 0; i < count; i++) {
        bool at = fabsf(w[i]) == edge && equal > 0;
        equal -= at;
        w[i] = fabsf(w[i]) < edge || at ? 0 : w[i];
    }
    return NORI_OK;
}

/* The axis along which a weight's elements are summed up. */
static int sum_axis(const nori__node *n, const nori_tensor *w)
{
    if (nori__node_is(n, NORI__OP_ONNX_Conv)) {
        return 1;
    }
    bool turned = nori__node_is(n, NORI__OP_ONNX_Gemm) && nori__attr_i(n, "transB", 0);
    return nori__node_is(n, NORI__OP_ONNX_ConvTranspose) ? 0 : turned ? 1 : w->rank - 2;
}

/* Of each four along the axis the two smaller go; what is left over stays. */
static void two_of_four(float *w, const nori_tensor *t, int axis)
{
    int64_t inner = 1, outer = 1, size = t->dims[axis];
    for (int d = 0; d < t->rank; d++) {
        outer *= d < axis ? t->dims[d] : 1;
        inner *= d > axis ? t->dims[d] : 1;
    }
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < inner; i++) {
            float *line = w + o * size * inner + i;
            for (int64_t k = 0; k + 4 <= size; k += 4) {
                for (int gone = 0; gone < 2; gone++) {
                    int64_t least = -1;
                    for (int64_t e = k; e < k + 4; e++) {
                        float v = fabsf(line[e * inner]);
                        bool better = least < 0 || v < fabsf(line[least * inner]);
                        least = v > 0 && better ? e : least;
                    }
                    int64_t zeros = 0;
                    for (int64_t e = k; e < k + 4; e++) {
                        zeros += line[e * inner] == 0;
                    }
                    if (least >= 0 && zeros < 2) {
                        line[least * inner] = 0;
                    }
                }
            }
        }
    }
}

static uint64_t zeros_of(const nori_tensor *t)
{
    uint64_t n = 0;
    const float *v = t->data;
    for (int64_t i = 0; i < t->count; i++) {
        n += v[i] == 0;
    }
    return n;
}

nori_status nori__prune_zeros(nori__pruner *p)
{
    for (nori__node *n = p->ir->main->first; n; n = n->next) {
        if (!nori__prune_weighted(p, n)) {
            continue;
        }
        nori__value *v = n->inputs[1];
        nori_tensor *t = NULL;
        const char *name = nori__arena_printf(&p->arena, "%s_pruned", v->name);
        NORI__TRY(nori__tensor_copy(p->ir->allocator, v->constant, &t, p->err));
        uint64_t before = zeros_of(t);
        nori_status s = NORI_OK;
        if (p->options->method == NORI_PRUNE_MAGNITUDE) {
            s = magnitude(p, t->data, t->count);
        } else if (t->rank >= 2) {
            two_of_four(t->data, t, sum_axis(n, t));
        }
        if (s != NORI_OK) {
            nori_tensor_free(t);
            return s;
        }
        nori_prune_node row = {.weights = (uint64_t)t->count, .zeros = zeros_of(t)};
        row.removed = row.zeros - before;
        nori__value *made = name ? nori__const_new(p->ir->main, name, t) : NULL;
        if (!made) {
            return nori__no_memory(p->err);
        }
        nori__value_replace(v, made); /* all readers: one that came before has done the same */
        nori__prune_report_node(p, n, row, NULL);
    }
    return NORI_OK;
}

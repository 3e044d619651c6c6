/* ref_random.c: RandomNormal, RandomUniform and their Like forms, Bernoulli, Multinomial.
 *
 * Element i of a result is a function of seed and i alone: any number of threads, runs or machines
 * draw the same values for one seed attribute, every run anew. Without the attribute the seed
 * comes from the clock and the result differs from run to run. Uniform values come from 53 random
 * bits in [0, 1), normal ones from pairs of them (Box and Muller, "A Note on the Generation of
 * Random Normal Deviates", 1958). ONNX prescribes no generator. A probability of NaN draws 0. */
#include <math.h>

#include "ops/families.h"
#include "providers/reference/ref.h"

typedef struct source {
    uint64_t seed;
    double a, b; /* low and width, or mean and deviation */
} source;

/* Finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
 * 2014) over a counter. */
static uint64_t mix(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* In [0, 1). */
static double unit(const source *s, uint64_t index)
{
    return (double)(mix(s->seed, index) >> 11) * 0x1p-53;
}

static uint64_t seed_of(const nori_call *call)
{
    const nori__attr *a = nori__attr_find(call->node, "seed");
    if (!a) { /* the output's place tells nodes of one run apart */
        return mix(nori__now_ns(), (uint64_t)(uintptr_t)call->out[0]);
    }
    float value = a->kind == NORI__ATTR_INT ? (float)a->v.i
                                            : nori__attr_f(call->node, "seed", 0);
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return mix(bits, 0);
}

static void uniform_line(const nori__ref_line *l)
{
    const source *s = l->user;
    double x[NORI__REF_BLOCK];
    for (int64_t at = 0; at < l->n; at += NORI__REF_BLOCK) {
        int64_t n = l->n - at < NORI__REF_BLOCK ? l->n - at : NORI__REF_BLOCK;
        for (int64_t i = 0; i < n; i++) {
            x[i] = s->a + s->b * unit(s, (uint64_t)(l->out + at + i));
        }
        nori__ref_store_f64(l->to, l->out + at, n, x);
    }
}

static void normal_line(const nori__ref_line *l)
{
    const source *s = l->user;
    double x[NORI__REF_BLOCK];
    for (int64_t at = 0; at < l->n; at += NORI__REF_BLOCK) {
        int64_t n = l->n - at < NORI__REF_BLOCK ? l->n - at : NORI__REF_BLOCK;
        for (int64_t i = 0; i < n; i++) {
            uint64_t index = (uint64_t)(l->out + at + i), pair = index & ~UINT64_C(1);
            double radius = sqrt(-2 * log(1 - unit(s, pair))); /* 1 - u is never 0 */
            double angle = 6.28318530717958647693 * unit(s, pair + 1);
            x[i] = s->a + s->b * radius * (index & 1 ? sin(angle) : cos(angle));
        }
        nori__ref_store_f64(l->to, l->out + at, n, x);
    }
}

static nori_status draw(nori_call *call, nori__ref_line_fn fn, float a, float b)
{
    source s = {seed_of(call), (double)a, (double)b};
    if (!nori__type_is_float((nori_type)call->out[0]->type)) {
        return nori__fail(call->err, NORI_ERROR_DATA, "%s draws floating-point numbers, not %s",
                          call->node->op_type, nori_type_name((nori_type)call->out[0]->type));
    }
    return nori__ref_lines(call, call->out[0], NULL, 0, fn, &s);
}

/* Also RandomUniformLike: inference has read the input's shape. */
nori_status nori__ref_RandomUniform(nori_call *call)
{
    float low = nori__attr_f(call->node, "low", 0), high = nori__attr_f(call->node, "high", 1);
    return draw(call, uniform_line, low, high - low);
}

nori_status nori__ref_RandomNormal(nori_call *call)
{
    return draw(call, normal_line, nori__attr_f(call->node, "mean", 0),
                nori__attr_f(call->node, "scale", 1));
}

static void bernoulli_line(const nori__ref_line *l)
{
    const source *s = l->user;
    double p[NORI__REF_BLOCK];
    for (int64_t at = 0; at < l->n; at += NORI__REF_BLOCK) {
        int64_t n = l->n - at < NORI__REF_BLOCK ? l->n - at : NORI__REF_BLOCK;
        nori__ref_load_f64(l->from[0], l->in[0] + at, 1, n, p);
        for (int64_t i = 0; i < n; i++) {
            p[i] = unit(s, (uint64_t)(l->out + at + i)) < p[i];
        }
        nori__ref_store_f64(l->to, l->out + at, n, p);
    }
}

nori_status nori__ref_Bernoulli(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    source s = {seed_of(call), 0, 0};
    return nori__ref_lines(call, call->out[0], call->in, 1, bernoulli_line, &s);
}

/* Adds up e^(x - largest) of a row; the total, or NaN when a row has no finite entry. */
static double row_totals(const nori_tensor *in, int64_t row, int64_t classes, double *sums)
{
    nori__ref_load_f64(in, row * classes, 1, classes, sums);
    double largest = -INFINITY, total = 0;
    for (int64_t c = 0; c < classes; c++) {
        largest = sums[c] > largest ? sums[c] : largest;
    }
    for (int64_t c = 0; c < classes; c++) {
        total += exp(sums[c] - largest);
        sums[c] = total;
    }
    return total;
}

nori_status nori__ref_Multinomial(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *in = call->in[0];
    nori_tensor *out = call->out[0];
    if (in->rank != 2 || !nori__type_is_float((nori_type)in->type)) {
        return nori__ref_bad_type(call, 0);
    }
    int64_t classes = in->dims[1], samples = out->rank == 2 ? out->dims[1] : 0;
    if (out->count == 0) {
        return NORI_OK;
    }
    size_t bytes;
    if (classes == 0 || !nori__mul_size((size_t)classes, sizeof(double), &bytes)) {
        return nori__fail(call->err, NORI_ERROR_DATA, "input 0 of Multinomial has no classes");
    }
    double *sums = nori__alloc(call->allocator, bytes);
    if (!sums) {
        return nori__no_memory(call->err);
    }
    source s = {seed_of(call), 0, 0};
    nori_status status = NORI_OK;
    for (int64_t row = 0; row < in->dims[0] && status == NORI_OK; row++) {
        double total = row_totals(in, row, classes, sums);
        if (!(total > 0) || isinf(total)) {
            status = nori__fail(call->err, NORI_ERROR_DATA,
                                "row %lld of input 0 of Multinomial is no distribution",
                                (long long)row);
        }
        for (int64_t k = 0; k < samples && status == NORI_OK; k++) {
            double u = unit(&s, (uint64_t)(row * samples + k)) * total;
            int64_t low = 0, high = classes - 1; /* the first class whose sum is beyond u */
            while (low < high) {
                int64_t mid = low + (high - low) / 2;
                if (sums[mid] > u) {
                    high = mid;
                } else {
                    low = mid + 1;
                }
            }
            nori__tensor_set_i64(out, row * samples + k, low);
        }
    }
    nori__release(call->allocator, sums, bytes);
    return status;
}

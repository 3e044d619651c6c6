/* case_data.h: the folder of a test case (model.onnx, test_data_set_0/input_N.pb, output_N.pb), its
 * values and how close they must come. Include after <stdio.h>. */
#ifndef NORI_TESTS_CASE_DATA_H
#define NORI_TESTS_CASE_DATA_H

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "graph/graph.h"
#include "nori/tools.h"

enum { CASE_VALUES = 256 };

/* The rule of ONNX's own runner, and the exceptions it makes; whole networks of the 1.23 pack hold
 * it too. */
static inline void case_tolerance(const char *name, double *atol, double *rtol)
{
    static const char *const dft[] = {"test_dft",          "test_dft_axis",
                                      "test_dft_inverse",  "test_dft_opset19",
                                      "test_dft_axis_opset19", "test_dft_inverse_opset19"};
    *atol = 1e-7;
    *rtol = 1e-3;
    for (size_t i = 0; i < NORI__COUNT(dft); i++) {
        *atol = nori__same(name, dft[i]) ? 1e-6 : *atol;
    }
    if (nori__same(name, "test_celu_bfloat16_expanded")) {
        *atol = *rtol = 1e-2;
    }
}

/* A case no right program passes, and why; NULL: none is known. It is one of an old pack only, told
 * by the attribute that is missing. */
static inline const char *case_excuse(const char *name, const nori_graph *graph)
{
    const nori_node *n = nori_graph_first(graph);
    if (nori__same(name, "test_adam_multiple") && n && nori_node_float(n, "epsilon", -1) < 0) {
        return "the expected values were made with epsilon 0.01, which the model does not say";
    }
    return NULL;
}

/* What was written as uint16 because NumPy has no bfloat16 becomes bfloat16, bit for bit. */
static inline nori_status case_retype(nori_env *env, const nori_value_info *info, nori_tensor **t,
                                      bool *retyped, nori_error *err)
{
    nori_tensor *old = *t, *other = NULL;
    *retyped = false;
    if (!old || old->kind != NORI_KIND_TENSOR || info->type != NORI_BFLOAT16 ||
        old->type != NORI_UINT16) {
        return NORI_OK;
    }
    NORI__TRY(nori_tensor_create(env, info->type, old->rank, old->dims, &other, err));
    if (old->bytes > 0) {
        memcpy(other->data, old->data, old->bytes);
    }
    nori_tensor_free(old);
    *t = other;
    *retyped = true;
    return NORI_OK;
}

/* CastLike reads the type of "like" only, and some cases store one element where their model says
 * a whole shape: the element is repeated. */
static inline nori_status case_repeat(nori_env *env, const nori_value_info *info, nori_tensor **t,
                                      nori_error *err)
{
    nori_tensor *old = *t, *other = NULL;
    if (!old || !nori__same(info->name, "like") || old->count != 1 || old->rank != 1 ||
        info->rank < 2 || nori_type_bits(old->type) < 8) {
        return NORI_OK;
    }
    NORI__TRY(nori_tensor_create(env, old->type, info->rank, info->dims, &other, err));
    for (int64_t i = 0; i < other->count; i++) {
        memcpy((char *)other->data + (size_t)i * old->bytes, old->data, old->bytes);
    }
    nori_tensor_free(old);
    *t = other;
    return NORI_OK;
}

/* True where want's bfloat16 are got's with the rest of the float cut off instead of rounded: the
 * same, or one step nearer to zero. */
static inline bool case_cut_off(const nori_tensor *got, const nori_tensor *want)
{
    const uint16_t *g = got->data, *w = want->data;
    for (int64_t i = 0; i < got->count; i++) {
        bool nan = (g[i] & 0x7fff) > 0x7f80 && (w[i] & 0x7fff) > 0x7f80;
        if (!nan && g[i] != w[i] && g[i] != w[i] + 1) {
            return false;
        }
    }
    return true;
}

/* FOLDER/WHAT_N.pb, .npy or .pb.gz; *t stays NULL when there is none. */
static inline nori_status case_read(nori_env *env, const char *folder, const char *what, size_t i,
                                    const nori_value_info *info, nori_tensor **t, bool *retyped,
                                    nori_error *err)
{
    static const char *const ends[] = {"pb", "npy", "pb.gz"};
    char path[6000];
    *t = NULL;
    for (size_t e = 0; e < NORI__COUNT(ends); e++) {
        snprintf(path, sizeof(path), "%s/%s_%zu.%s", folder, what, i, ends[e]);
        if (access(path, R_OK) == 0) {
            NORI__TRY(nori_value_read(env, path, info->kind, t, err));
            NORI__TRY(case_retype(env, info, t, retyped, err));
            return case_repeat(env, info, t, err);
        }
    }
    return NORI_OK;
}

static inline bool case_same_bits(const nori_tensor *a, const nori_tensor *b)
{
    if (a->kind != b->kind || a->type != b->type || a->count != b->count || a->rank != b->rank) {
        return false;
    }
    for (int d = 0; d < a->rank; d++) {
        if (a->dims[d] != b->dims[d]) {
            return false;
        }
    }
    for (int64_t i = 0; a->kind != NORI_KIND_TENSOR && i < a->count; i++) {
        if (!case_same_bits(((nori_tensor **)a->data)[i], ((nori_tensor **)b->data)[i])) {
            return false;
        }
    }
    if (a->kind != NORI_KIND_TENSOR || a->count == 0) {
        return true;
    }
    for (int64_t i = 0; a->type == NORI_STRING && i < a->count; i++) {
        const nori_string *x = (const nori_string *)a->data + i;
        const nori_string *y = (const nori_string *)b->data + i;
        if (x->size != y->size || memcmp(x->data, y->data, x->size) != 0) {
            return false;
        }
    }
    return a->type == NORI_STRING || memcmp(a->data, b->data, a->bytes) == 0;
}

/* ---- results that chance decides ---- */

static inline bool case_is_random(const char *name)
{
    return strncmp(name, "test_bernoulli", 14) == 0 ||
           (strncmp(name, "test_training_dropout", 21) == 0 && !strstr(name, "zero_ratio"));
}

/* Bernoulli: 0 or 1, as many ones as the probabilities promise, to 5 standard deviations. */
static inline bool case_bernoulli(const nori_tensor *p, const nori_tensor *got, char *why,
                                  size_t size)
{
    double ones = 0, mean = 0, variance = 0;
    for (int64_t i = 0; i < got->count; i++) {
        double v = nori__tensor_get_f64(got, i), q = nori__tensor_get_f64(p, i);
        if (v != 0 && v != 1) {
            snprintf(why, size, "element %lld is %g, not 0 or 1", (long long)i, v);
            return false;
        }
        ones += v;
        mean += q;
        variance += q * (1 - q);
    }
    snprintf(why, size, "%g ones, %g expected", ones, mean);
    return fabs(ones - mean) <= 5 * sqrt(variance);
}

/* Dropout: an element is 0, or scaled; the mask says which; as many as the ratio promises. */
static inline bool case_dropout(const nori_tensor *x, double ratio, const nori_tensor *got,
                                const nori_tensor *mask, char *why, size_t size)
{
    double dropped = 0, n = (double)x->count;
    for (int64_t i = 0; i < x->count; i++) {
        double v = nori__tensor_get_f64(got, i), kept = nori__tensor_get_f64(x, i) / (1 - ratio);
        bool is_kept = fabs(v - kept) <= 1e-5 * (1 + fabs(kept));
        if (!is_kept && v != 0) {
            snprintf(why, size, "element %lld is %g, not 0 or %g", (long long)i, v, kept);
            return false;
        }
        if (mask && kept != 0 && (nori__tensor_get_i64(mask, i) != 0) != is_kept) {
            snprintf(why, size, "the mask contradicts element %lld", (long long)i);
            return false;
        }
        dropped += v == 0;
    }
    snprintf(why, size, "%g of %g dropped, ratio %g", dropped, n, ratio);
    return fabs(dropped - n * ratio) <= 5 * sqrt(n * ratio * (1 - ratio));
}

static inline bool case_random(const char *name, nori_tensor *const *in, nori_tensor *const *out,
                               size_t n_out, char *why, size_t size)
{
    if (strncmp(name, "test_bernoulli", 14) == 0) {
        return case_bernoulli(in[0], out[0], why, size);
    }
    double ratio = in[1] ? nori__tensor_get_f64(in[1], 0) : 0.5;
    return case_dropout(in[0], ratio, out[0], n_out > 1 ? out[1] : NULL, why, size);
}

#endif

/* nnapi_double_bytes.c: what NNAPI asks of bytes, their scales and zero points; and how the double
 * computes with them: on integers where sums are, then rounded once to the nearest byte. */
#include "nnapi_double.h"

#include <math.h>
#include <stdlib.h>

bool is_bytes(const operand *o)
{
    return o->type == TENSOR_UINT8 || o->type == TENSOR_INT8;
}

static int32_t lowest(const operand *o)
{
    return o->type == TENSOR_UINT8 ? 0 : -128;
}

/* ---- rules ---- */

const char *nnapi_double_quantized(const operand *o)
{
    int64_t level = nnapi_double_level();
    if (is_bytes(o)) {
        return !(o->scale > 0) || !isfinite(o->scale)                      ? "a scale that is not above 0"
               : o->zero < lowest(o) || o->zero > lowest(o) + 255           ? "a zero point that is no byte"
               : o->type == TENSOR_INT8 && level < 30 ? "signed bytes are of level 30"
                                                      : NULL;
    }
    if (o->type == TENSOR_INT32) {
        return o->zero != 0 || !(o->scale >= 0) ? "a zero point, or a scale below 0, of int32" : NULL;
    }
    if (o->type == TENSOR_CHANNELS && level < 29) {
        return "scales a channel are of level 29";
    }
    return o->scale != 0 || o->zero != 0 ? "scale or zero point" : NULL;
}

const char *nnapi_double_bias(const model *m, const operation *o)
{
    const operand *x = arg(m, o, 0), *f = arg(m, o, 1), *b = arg(m, o, 2);
    if (!is_bytes(x)) {
        return NULL;
    }
    if (f->type == TENSOR_CHANNELS) {
        return !f->channels.scales ? "a filter whose scales were not given"
               : b->scale != 0     ? "a bias that has a scale though its filter has one a channel"
                                   : NULL;
    }
    float product = x->scale * f->scale;
    return fabsf(product - b->scale) > 1e-6f * fminf(product, b->scale)
               ? "a bias whose scale is not that of input times filter"
               : NULL;
}

static const char *sums_fit(const model *m, const operation *o, const operand *y)
{
    const operand *x = arg(m, o, 0), *f = arg(m, o, 1);
    const char *broken = nnapi_double_bias(m, o);
    bool narrow = nnapi_double_level() < 29 && x->type == TENSOR_UINT8;
    return broken                                    ? broken
           : narrow && !(y->scale > x->scale * f->scale) ? "an output scale not above that of the product"
                                                         : NULL;
}

static bool same_scale(const operand *a, const operand *b)
{
    return a->scale == b->scale && a->zero == b->zero;
}

const char *nnapi_double_meaning(const model *m, const operation *o)
{
    const operand *x = arg(m, o, 0), *y = &m->operands[o->out];
    bool all = true;
    if (!is_bytes(x) || !is_bytes(y)) {
        return NULL;
    }
    switch (o->rule->meaning) {
    case MEANS_SAME:
        return same_scale(x, y) ? NULL : "another scale or zero point of input and output";
    case MEANS_PRODUCT:
        return sums_fit(m, o, y);
    case MEANS_MUL:
        return y->scale > x->scale * arg(m, o, 1)->scale ? NULL
                                                         : "an output scale not above that of the product";
    case MEANS_UNIT:
        return y->scale == 1.0f / 256 && y->zero == lowest(y) ? NULL : "not in steps of 1/256 from 0 on";
    case MEANS_TANH:
        return y->scale == 1.0f / 128 && y->zero == lowest(y) + 128 ? NULL
                                                                    : "not in steps of 1/128 around 0";
    case MEANS_CONCAT:
        for (uint32_t i = 0; i + 1 < o->n_in; i++) {
            all = all && same_scale(arg(m, o, i), y);
        }
        return all || nnapi_double_level() >= 29 ? NULL : "other scales of inputs and output";
    default:
        return NULL;
    }
}

/* ---- computing ---- */

bool nnapi_double_unpack(job *j)
{
    j->counts = calloc(j->o->n_in + 1, sizeof(*j->counts));
    for (uint32_t i = 0; j->counts && i < j->o->n_in; i++) {
        const operand *x = arg(j->m, j->o, i);
        const void *from = j->data[j->o->in[i]];
        if (!is_bytes(x) && x->type != TENSOR_CHANNELS) {
            continue;
        }
        float *to = j->counts[i] = malloc((x->count + 1) * sizeof(*to));
        for (size_t k = 0; to && k < x->count; k++) {
            int32_t q = x->type == TENSOR_UINT8 ? ((const uint8_t *)from)[k] : ((const int8_t *)from)[k];
            to[k] = (float)(q - x->zero);
        }
        if (!to) {
            return false;
        }
    }
    return j->counts != NULL;
}

void nnapi_double_release(job *j)
{
    for (uint32_t i = 0; j->counts && i < j->o->n_in; i++) {
        free(j->counts[i]);
    }
    free(j->counts);
}

const float *in_data(const job *j, uint32_t i)
{
    return j->counts[i] ? j->counts[i] : j->data[j->o->in[i]];
}

const operand *out_of(const job *j)
{
    return &j->m->operands[j->o->out];
}

/* What a count of 1 stands for while the operation computes. */
static double step(const job *j)
{
    return j->o->rule->meaning == MEANS_SAME && is_bytes(out_of(j)) ? (double)out_of(j)->scale : 1;
}

double unit(const job *j, uint32_t i)
{
    return j->counts[i] ? (double)arg(j->m, j->o, i)->scale / step(j) : 1;
}

double product_unit(const job *j, size_t channel)
{
    const operand *f = arg(j->m, j->o, 1);
    return !j->counts[0] ? 1
           : unit(j, 0) * (f->type == TENSOR_CHANNELS ? (double)f->channels.scales[channel]
                                                      : (double)f->scale);
}

double bias_at(const job *j, size_t channel)
{
    const void *bias = j->data[j->o->in[2]];
    return arg(j->m, j->o, 2)->type == TENSOR_INT32 ? ((const int32_t *)bias)[channel]
                                                    : (double)((const float *)bias)[channel];
}

double fused(const job *j, int32_t code, double v)
{
    double one = 1 / step(j);
    return code == 1   ? fmax(v, 0)
           : code == 2 ? fmin(fmax(v, -one), one)
           : code == 3 ? fmin(fmax(v, 0), 6 * one)
                       : v;
}

void put(const job *j, size_t k, double v)
{
    const operand *y = out_of(j);
    void *to = j->data[j->o->out];
    if (!is_bytes(y)) {
        ((float *)to)[k] = (float)v;
        return;
    }
    double q = nearbyint(v * (step(j) / (double)y->scale)) + y->zero, low = lowest(y);
    q = q < low ? low : q > low + 255 ? low + 255 : q;
    if (y->type == TENSOR_UINT8) {
        ((uint8_t *)to)[k] = (uint8_t)q;
    } else {
        ((int8_t *)to)[k] = (int8_t)q;
    }
}

/* ref_nn.c: conversions around kernels that know one float type, and argument checks. */
#include "providers/reference/ref_nn.h"

#include "base/half.h"

#include <math.h>

void nori__nn_load_f64(const nori_tensor *t, int64_t from, int64_t count, double *out)
{
    if (t->type == NORI_DOUBLE) {
        if (count > 0) {
            memcpy(out, (const double *)t->data + from, (size_t)count * sizeof *out);
        }
    } else if (t->type == NORI_FLOAT) {
        const float *p = (const float *)t->data + from;
        for (int64_t i = 0; i < count; i++) {
            out[i] = (double)p[i];
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            out[i] = nori__tensor_get_f64(t, from + i);
        }
    }
}

void nori__nn_load_f32(const nori_tensor *t, int64_t from, int64_t count, float *out)
{
    if (t->type == NORI_FLOAT) {
        if (count > 0) {
            memcpy(out, (const float *)t->data + from, (size_t)count * sizeof *out);
        }
    } else if (t->type == NORI_FLOAT16) {
        const uint16_t *p = (const uint16_t *)t->data + from;
        for (int64_t i = 0; i < count; i++) {
            out[i] = nori__f16_to_f32(p[i]);
        }
    } else if (t->type == NORI_BFLOAT16) {
        const uint16_t *p = (const uint16_t *)t->data + from;
        for (int64_t i = 0; i < count; i++) {
            out[i] = nori__bf16_to_f32(p[i]);
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            out[i] = (float)nori__tensor_get_f64(t, from + i);
        }
    }
}

void nori__nn_load_u32(const nori_tensor *t, int64_t from, int64_t count, uint32_t *out)
{
    if (t->type == NORI_UINT8) {
        const uint8_t *p = (const uint8_t *)t->data + from;
        for (int64_t i = 0; i < count; i++) {
            out[i] = p[i];
        }
    } else if (t->type == NORI_INT8) {
        const int8_t *p = (const int8_t *)t->data + from;
        for (int64_t i = 0; i < count; i++) {
            out[i] = (uint32_t)(int32_t)p[i];
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            out[i] = (uint32_t)nori__tensor_get_i64(t, from + i);
        }
    }
}

void nori__nn_store_f64(nori_tensor *t, int64_t from, int64_t count, const double *in)
{
    if (t->type == NORI_DOUBLE) {
        if (count > 0) {
            memcpy((double *)t->data + from, in, (size_t)count * sizeof *in);
        }
    } else if (t->type == NORI_FLOAT) {
        float *p = (float *)t->data + from;
        for (int64_t i = 0; i < count; i++) {
            p[i] = (float)in[i];
        }
    } else if (t->type == NORI_FLOAT16) {
        uint16_t *p = (uint16_t *)t->data + from;
        for (int64_t i = 0; i < count; i++) {
            p[i] = nori__f64_to_f16(in[i]);
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            nori__tensor_set_f64(t, from + i, in[i]);
        }
    }
}

void nori__nn_store_f32(nori_tensor *t, int64_t from, int64_t count, const float *in)
{
    if (t->type == NORI_FLOAT) {
        if (count > 0) {
            memcpy((float *)t->data + from, in, (size_t)count * sizeof *in);
        }
    } else if (t->type == NORI_FLOAT16) {
        uint16_t *p = (uint16_t *)t->data + from;
        for (int64_t i = 0; i < count; i++) {
            p[i] = nori__f32_to_f16(in[i]);
        }
    } else if (t->type == NORI_BFLOAT16) {
        uint16_t *p = (uint16_t *)t->data + from;
        for (int64_t i = 0; i < count; i++) {
            p[i] = nori__f32_to_bf16(in[i]);
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            nori__tensor_set_f64(t, from + i, (double)in[i]);
        }
    }
}

/* ---- calls with other types ---- */

static bool is_half(const nori_tensor *t)
{
    return t && (t->type == NORI_FLOAT16 || t->type == NORI_BFLOAT16);
}

static bool converts(const nori_tensor *t, nori_type work, bool also)
{
    if (!t || t->kind != NORI_KIND_TENSOR || t->type == work) {
        return false;
    }
    return work == NORI_FLOAT ? is_half(t) : also || nori__type_is_float((nori_type)t->type);
}

static nori_status convert_in(const nori_call *call, nori_type work, uint32_t ints,
                              const nori_tensor **in)
{
    for (uint32_t i = 0; i < call->n_in; i++) {
        in[i] = call->in[i];
        if (!converts(call->in[i], work, i < 16 && (ints >> i & 1))) {
            continue;
        }
        nori_tensor *t = NULL;
        NORI__TRY(nori__tensor_new(call->allocator, work, call->in[i]->rank, call->in[i]->dims, &t,
                                   call->err));
        in[i] = t;
        if (work == NORI_FLOAT) {
            nori__nn_load_f32(call->in[i], 0, t->count, t->data);
        } else {
            nori__nn_load_f64(call->in[i], 0, t->count, t->data);
        }
    }
    return NORI_OK;
}

static nori_status convert_out(const nori_call *call, nori_type work, uint32_t ints,
                               nori_tensor **out)
{
    for (uint32_t i = 0; i < call->n_out; i++) {
        out[i] = call->out[i];
        if (converts(call->out[i], work, i < 16 && (ints >> (16 + i) & 1))) {
            nori_tensor *t = NULL;
            NORI__TRY(nori__tensor_new(call->allocator, work, call->out[i]->rank,
                                       call->out[i]->dims, &t, call->err));
            out[i] = t;
        }
    }
    return NORI_OK;
}

static nori_status run_as(nori_call *call, nori_type work, uint32_t ints, nori__run_fn body)
{
    size_t slots = (size_t)call->n_in + call->n_out + 1;
    const nori_tensor **in = nori__alloc_zero(call->allocator, slots * sizeof *in);
    if (!in) {
        return nori__no_memory(call->err);
    }
    nori_tensor **out = (nori_tensor **)(void *)(in + call->n_in);
    nori_call inner = *call;
    inner.in = in;
    inner.out = out;
    nori_status status = convert_in(call, work, ints, in);
    if (status == NORI_OK) {
        status = convert_out(call, work, ints, out);
    }
    if (status == NORI_OK) {
        status = body(&inner);
    }
    for (uint32_t i = 0; i < call->n_out; i++) {
        if (out[i] && out[i] != call->out[i]) {
            if (status == NORI_OK && work == NORI_FLOAT) {
                nori__nn_store_f32(call->out[i], 0, out[i]->count, out[i]->data);
            } else if (status == NORI_OK) {
                nori__nn_store_f64(call->out[i], 0, out[i]->count, out[i]->data);
            }
            nori_tensor_free(out[i]);
        }
    }
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (in[i] && in[i] != call->in[i]) {
            nori_tensor_free((nori_tensor *)(uintptr_t)in[i]);
        }
    }
    nori__release(call->allocator, (void *)in, slots * sizeof *in);
    return status;
}

nori_status nori__nn_half(nori_call *call, nori__run_fn body)
{
    bool any = false;
    for (uint32_t i = 0; i < call->n_in; i++) {
        any = any || is_half(call->in[i]);
    }
    for (uint32_t i = 0; i < call->n_out; i++) {
        any = any || is_half(call->out[i]);
    }
    return any ? run_as(call, NORI_FLOAT, 0, body) : body(call);
}

nori_status nori__nn_double(nori_call *call, uint32_t ints, nori__run_fn body)
{
    return run_as(call, NORI_DOUBLE, ints, body);
}

/* ---- checks ---- */

nori_status nori__nn_need(const nori_call *call, uint32_t i, const char *name, int rank)
{
    if (!nori__nn_has(call, i)) {
        return nori__fail(call->err, NORI_ERROR_DATA, "input %u (%s) is missing", i, name);
    }
    if (rank >= 0 && call->in[i]->rank != rank) {
        return nori__fail(call->err, NORI_ERROR_DATA, "input %u (%s) has rank %d, expected %d", i,
                          name, call->in[i]->rank, rank);
    }
    return NORI_OK;
}

nori_status nori__nn_type_error(const nori_call *call, uint32_t i)
{
    nori_status s = nori__fail(
        call->err, NORI_ERROR_DATA, "input %u is of type %s, which %s does not take", i,
        nori__nn_has(call, i) ? nori_type_name((nori_type)call->in[i]->type) : "(absent)",
        call->node->op_type);
    nori__hint(call->err, "`nori check` says which types each operator of the model takes");
    return s;
}

nori_status nori__nn_count(const nori_call *call, uint32_t i, const char *name, int64_t count)
{
    if (nori__nn_has(call, i) && call->in[i]->count != count) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "input %u (%s) has %lld elements, expected %lld", i, name,
                          (long long)call->in[i]->count, (long long)count);
    }
    return NORI_OK;
}

void *nori__nn_scratch(const nori_call *call, int64_t count, size_t size, size_t *bytes)
{
    if (count < 0 || (uint64_t)count > SIZE_MAX || !nori__mul_size((size_t)count, size, bytes)) {
        *bytes = 0;
        return NULL;
    }
    return nori__alloc(call->allocator, *bytes);
}

void nori__nn_range(nori_type type, double *low, double *high)
{
    static const struct {
        nori_type type;
        double low, high;
    } ranges[] = {
        {NORI_UINT8, 0, 255},     {NORI_INT8, -128, 127},      {NORI_UINT16, 0, 65535},
        {NORI_INT16, -32768, 32767}, {NORI_UINT4, 0, 15},      {NORI_INT4, -8, 7},
        {NORI_UINT2, 0, 3},       {NORI_INT2, -2, 1},
        {NORI_INT32, -2147483648.0, 2147483647.0},
    };
    *low = *high = 0;
    for (size_t i = 0; i < NORI__COUNT(ranges); i++) {
        if (ranges[i].type == type) {
            *low = ranges[i].low;
            *high = ranges[i].high;
        }
    }
}

/* ---- activations fused into a layer ---- */

nori_status nori__nn_activate(const nori_call *call, const float *p, size_t n, float *y,
                              int64_t count)
{
    const char *name = nori__attr_s(call->node, "activation", "");
    float a = n > 0 ? p[0] : 0, b = n > 1 ? p[1] : 0;
    if (nori__same(name, "Relu")) {
        for (int64_t i = 0; i < count; i++) {
            y[i] = y[i] < 0 ? 0 : y[i];
        }
    } else if (nori__same(name, "LeakyRelu")) {
        a = n > 0 ? a : 0.01f;
        for (int64_t i = 0; i < count; i++) {
            y[i] = y[i] < 0 ? a * y[i] : y[i];
        }
    } else if (nori__same(name, "Tanh")) {
        for (int64_t i = 0; i < count; i++) {
            y[i] = tanhf(y[i]);
        }
    } else if (nori__same(name, "Sigmoid")) {
        for (int64_t i = 0; i < count; i++) {
            y[i] = (float)(1 / (1 + exp(-(double)y[i])));
        }
    } else if (nori__same(name, "Clip") && n >= 2) {
        for (int64_t i = 0; i < count; i++) {
            y[i] = y[i] < a ? a : y[i] > b ? b : y[i];
        }
    } else if (nori__same(name, "HardSigmoid")) {
        a = n > 0 ? a : 0.2f;
        b = n > 1 ? b : 0.5f;
        for (int64_t i = 0; i < count; i++) {
            float v = a * y[i] + b;
            y[i] = v < 0 ? 0 : v > 1 ? 1 : v;
        }
    } else if (nori__same(name, "HardSwish")) {
        for (int64_t i = 0; i < count; i++) {
            double v = y[i], gate = v / 6 + 0.5;
            y[i] = gate <= 0 ? -0.0f : gate >= 1 ? y[i] : (float)(v * gate);
        }
    } else if (nori__same(name, "Swish")) {
        a = n > 0 ? a : 1;
        for (int64_t i = 0; i < count; i++) {
            double v = (double)y[i] / (1 + exp(-(double)a * (double)y[i]));
            y[i] = isinf(y[i]) && y[i] * a < 0 ? 0 : (float)v;
        }
    } else if (!nori__same(name, "")) {
        return nori__fail(call->err, NORI_ERROR_UNSUPPORTED, "activation \"%s\" of %s", name,
                          call->node->op_type);
    }
    return NORI_OK;
}

/* cpu_elementwise.c: float functions of one and of two arguments, Pow by a number, PRelu,
 * BatchNormalization.
 *
 * NaN goes through everything. Broadcasting is the reference iterator's; a line is a row for the
 * micro-kernels. Outputs may lie over inputs of the same size. */
#include "providers/cpu/cpu.h"
#include "providers/reference/ref.h"

#include <math.h>

#define CHEAP_GRAIN 32768 /* elements a unit */
#define DEAR_GRAIN 4096

typedef struct unary_row {
    nori__op_id op;
    nori__unary function;
    const char *attr[2];
    float otherwise[2];
} unary_row;

static const unary_row unary_rows[] = {
    {NORI__OP_ONNX_Relu, NORI__U_RELU, {NULL, NULL}, {0, 0}},
    {NORI__OP_ONNX_LeakyRelu, NORI__U_LEAKY, {"alpha", NULL}, {0.01f, 0}},
    {NORI__OP_ONNX_Clip, NORI__U_CLAMP, {NULL, NULL}, {0, 0}},
    {NORI__OP_ONNX_HardSigmoid, NORI__U_HARDSIGMOID, {"alpha", "beta"}, {0.2f, 0.5f}},
    {NORI__OP_ONNX_HardSwish, NORI__U_HARDSWISH, {NULL, NULL}, {0, 0}},
    {NORI__OP_ONNX_Sigmoid, NORI__U_SIGMOID, {NULL, NULL}, {0, 0}},
    {NORI__OP_ONNX_Tanh, NORI__U_TANH, {NULL, NULL}, {0, 0}},
    {NORI__OP_ONNX_Exp, NORI__U_EXP, {NULL, NULL}, {0, 0}},
    {NORI__OP_ONNX_Erf, NORI__U_ERF, {NULL, NULL}, {0, 0}},
    {NORI__OP_ONNX_Gelu, NORI__U_GELU, {NULL, NULL}, {0, 0}},
    {NORI__OP_ONNX_Swish, NORI__U_SILU, {"alpha", NULL}, {1, 0}},
    {NORI__OP_ONNX_Elu, NORI__U_ELU, {"alpha", NULL}, {1, 0}},
    {NORI__OP_ONNX_Sqrt, NORI__U_SQRT, {NULL, NULL}, {0, 0}},
    {NORI__OP_ONNX_Reciprocal, NORI__U_RECIPROCAL, {NULL, NULL}, {0, 0}},
    {NORI__OP_ONNX_Neg, NORI__U_NEG, {NULL, NULL}, {0, 0}},
    {NORI__OP_ONNX_Abs, NORI__U_ABS, {NULL, NULL}, {0, 0}},
    {NORI__OP_MS_FastGelu, NORI__U_GELU_TANH, {NULL, NULL}, {0, 0}},
};

typedef struct unary_job {
    void (*f)(size_t n, const float *x, float *y, const float *p);
    const float *x;
    float *y;
    float p[2];
} unary_job;

static void unary_units(void *user, int64_t begin, int64_t end, int thread)
{
    const unary_job *job = user;
    (void)thread;
    job->f((size_t)(end - begin), job->x + begin, job->y + begin, job->p);
}

/* A bound of Clip: input i, else the old attribute, else nothing. */
static bool bound(const nori_call *call, uint32_t i, const char *attr, float *value)
{
    if (!nori__cpu_has(call, i)) {
        *value = nori__attr_f(call->node, attr, *value);
        return true;
    }
    const nori_tensor *t = call->in[i];
    if (t->type != NORI_FLOAT || t->count != 1 || isnan(*(const float *)t->data)) {
        return false;
    }
    *value = *(const float *)t->data;
    return true;
}

static nori_status unary_run(const void *state, nori_call *call)
{
    const unary_row *row = NULL;
    (void)state;
    for (size_t i = 0; i < NORI__COUNT(unary_rows); i++) {
        row = unary_rows[i].op == call->node->op->id ? &unary_rows[i] : row;
    }
    const nori_tensor *x = nori__ref_in(call, 0);
    nori_tensor *y = nori__ref_out(call, 0);
    if (!row || !x || !y || x->type != NORI_FLOAT || y->type != NORI_FLOAT || x->count != y->count) {
        return nori__cpu_reference(call);
    }
    nori__unary function = row->function;
    unary_job job = {.x = x->data, .y = y->data};
    for (int i = 0; i < 2; i++) {
        job.p[i] = row->attr[i] ? nori__attr_f(call->node, row->attr[i], row->otherwise[i])
                                : row->otherwise[i];
    }
    if (function == NORI__U_CLAMP) {
        job.p[0] = -INFINITY;
        job.p[1] = INFINITY;
        if (!bound(call, 1, "min", &job.p[0]) || !bound(call, 2, "max", &job.p[1])) {
            return nori__cpu_reference(call);
        }
    } else if (function == NORI__U_GELU &&
               nori__same(nori__attr_s(call->node, "approximate", "none"), "tanh")) {
        function = NORI__U_GELU_TANH;
    }
    if (nori__node_is(call->node, NORI__OP_MS_FastGelu) && nori__cpu_has(call, 1)) {
        return nori__cpu_reference(call); /* with a bias */
    }
    job.f = nori__kernels_get()->f32_unary[function];
    bool dear = function >= NORI__U_SIGMOID && function <= NORI__U_SILU;
    if (dear) {
        nori__cpu_for(call->pool, nori__cpu_threads(call), x->count, DEAR_GRAIN, unary_units, &job);
    } else { /* what only picks or scales keeps what it is given */
        nori__parallel_for(call->pool, nori__cpu_threads(call), x->count, CHEAP_GRAIN, unary_units,
                           &job);
    }
    return NORI_OK;
}

const nori__kernel nori__cpu_unary = {.size = sizeof(nori__kernel), .run = unary_run};

/* ---- two arguments ---- */

static const struct {
    nori__op_id op;
    nori__binary function;
} binary_rows[] = {
    {NORI__OP_ONNX_Add, NORI__B_ADD}, {NORI__OP_ONNX_Sub, NORI__B_SUB},
    {NORI__OP_ONNX_Mul, NORI__B_MUL}, {NORI__OP_ONNX_Div, NORI__B_DIV},
    {NORI__OP_ONNX_Max, NORI__B_MAX}, {NORI__OP_ONNX_Min, NORI__B_MIN},
};

static void binary_line(const nori__ref_line *line)
{
    const nori__kernels *kern = nori__kernels_get();
    kern->f32_binary[*(const nori__binary *)line->user](
        (size_t)line->n, NORI__LINE_IN(line, 0, float), (size_t)line->step[0],
        NORI__LINE_IN(line, 1, float), (size_t)line->step[1], NORI__LINE_OUT(line, float));
}

static nori_status binary_run(const void *state, nori_call *call)
{
    nori__binary function = NORI__B_COUNT;
    (void)state;
    for (size_t i = 0; i < NORI__COUNT(binary_rows); i++) {
        function = binary_rows[i].op == call->node->op->id ? binary_rows[i].function : function;
    }
    if (function == NORI__B_COUNT || call->n_in != 2 || !call->in[0] || !call->in[1] ||
        !call->out[0] || call->in[0]->type != NORI_FLOAT || call->in[1]->type != NORI_FLOAT ||
        call->out[0]->type != NORI_FLOAT) {
        return nori__cpu_reference(call);
    }
    return nori__ref_lines(call, call->out[0], call->in, 2, binary_line, &function);
}

const nori__kernel nori__cpu_binary = {.size = sizeof(nori__kernel), .run = binary_run};

/* ---- Pow by 2 or 3 ---- */

#define POWER_PIECE 256

typedef struct power_job {
    const float *x;
    float *y;
    float by;
} power_job;

static void power_units(void *user, int64_t begin, int64_t end, int thread)
{
    const power_job *job = user;
    const nori__kernels *k = nori__kernels_get();
    float square[POWER_PIECE];
    (void)thread;
    for (int64_t i = begin; i < end; i += POWER_PIECE) {
        size_t n = (size_t)(end - i < POWER_PIECE ? end - i : POWER_PIECE);
        const float *x = job->x + i;
        k->f32_binary[NORI__B_MUL](n, x, 1, x, 1, square);
        if (job->by == 3) {
            k->f32_binary[NORI__B_MUL](n, square, 1, x, 1, job->y + i);
        } else {
            memcpy(job->y + i, square, n * sizeof(float));
        }
    }
}

static nori_status power_run(const void *state, nori_call *call)
{
    const nori_tensor *x = nori__ref_in(call, 0), *by = nori__ref_in(call, 1);
    nori_tensor *y = nori__ref_out(call, 0);
    (void)state;
    if (!x || !by || !y || x->type != NORI_FLOAT || by->type != NORI_FLOAT ||
        y->type != NORI_FLOAT || by->count != 1 || y->count != x->count) {
        return nori__cpu_reference(call);
    }
    power_job job = {x->data, y->data, *(const float *)by->data};
    if (job.by != 2 && job.by != 3) {
        return nori__cpu_reference(call);
    }
    nori__cpu_for(call->pool, nori__cpu_threads(call), x->count, CHEAP_GRAIN, power_units, &job);
    return NORI_OK;
}

const nori__kernel nori__cpu_power = {.size = sizeof(nori__kernel), .run = power_run};

/* ---- PRelu with one slope, or one a channel ---- */

typedef struct slope_job {
    const float *x, *slope;
    float *y;
    size_t channels, inner; /* channels: 1 where all have one slope */
} slope_job;

static void slope_units(void *user, int64_t begin, int64_t end, int thread)
{
    const slope_job *job = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t at = (size_t)u * job->inner;
        nori__kernels_get()->f32_unary[NORI__U_LEAKY](job->inner, job->x + at, job->y + at,
                                                      job->slope + (size_t)u % job->channels);
    }
}

static nori_status prelu_run(const void *state, nori_call *call)
{
    const nori_tensor *x = nori__ref_in(call, 0), *slope = nori__ref_in(call, 1);
    nori_tensor *y = nori__ref_out(call, 0);
    (void)state;
    if (!x || !slope || !y || x->type != NORI_FLOAT || slope->type != NORI_FLOAT ||
        y->type != NORI_FLOAT || x->rank < 2 || x->count == 0) {
        return nori__cpu_reference(call);
    }
    slope_job job = {x->data, slope->data, y->data, 1,
                     (size_t)(x->count / x->dims[0] / x->dims[1])};
    if (slope->count != 1) {
        int axis = slope->rank - (x->rank - 1); /* of the slopes, where channels stand */
        if (axis < 0 || axis > 1 || slope->dims[axis] != x->dims[1] ||
            slope->count != x->dims[1]) {
            return nori__cpu_reference(call);
        }
        job.channels = (size_t)x->dims[1];
    }
    int64_t grain = CHEAP_GRAIN / (int64_t)job.inner;
    nori__cpu_for(call->pool, nori__cpu_threads(call), x->dims[0] * x->dims[1],
                  grain > 0 ? grain : 1, slope_units, &job);
    return NORI_OK;
}

const nori__kernel nori__cpu_prelu = {.size = sizeof(nori__kernel), .run = prelu_run};

/* ---- BatchNormalization at inference: x * factor + shift, one of each a channel ---- */

typedef struct batch_norm_job {
    const float *x, *scale, *bias, *mean, *variance;
    float *y;
    float epsilon;
    size_t channels, inner;
} batch_norm_job;

static void batch_norm_units(void *user, int64_t begin, int64_t end, int thread)
{
    const batch_norm_job *job = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t c = (size_t)u % job->channels, at = (size_t)u * job->inner;
        double factor = job->scale[c] / sqrt((double)job->variance[c] + (double)job->epsilon);
        const float p[2] = {(float)factor, (float)(job->bias[c] - job->mean[c] * factor)};
        nori__kernels_get()->f32_unary[NORI__U_AFFINE](job->inner, job->x + at, job->y + at, p);
    }
}

static nori_status batch_norm_run(const void *state, nori_call *call)
{
    const nori_tensor *x = nori__ref_in(call, 0);
    nori_tensor *y = nori__ref_out(call, 0);
    bool fits = x && y && x->rank >= 2 && x->type == NORI_FLOAT && call->n_in >= 5 &&
                nori__attr_i(call->node, "training_mode", 0) == 0 &&
                nori__attr_i(call->node, "spatial", 1) == 1 && call->node->version >= 7;
    (void)state;
    for (uint32_t i = 1; fits && i < 5; i++) {
        fits = call->in[i] && call->in[i]->type == NORI_FLOAT && call->in[i]->count == x->dims[1];
    }
    for (uint32_t i = 1; fits && i < call->n_out; i++) {
        fits = !call->out[i];
    }
    if (!fits) {
        return nori__cpu_reference(call);
    }
    if (x->count == 0) {
        return NORI_OK;
    }
    size_t rows = (size_t)(x->dims[0] * x->dims[1]);
    batch_norm_job job = {x->data, call->in[1]->data, call->in[2]->data, call->in[3]->data,
                          call->in[4]->data, y->data,
                          nori__attr_f(call->node, "epsilon", 1e-5f), (size_t)x->dims[1],
                          (size_t)x->count / rows};
    nori__cpu_for(call->pool, nori__cpu_threads(call), (int64_t)rows, 4, batch_norm_units,
                 &job);
    return NORI_OK;
}

const nori__kernel nori__cpu_batch_norm = {.size = sizeof(nori__kernel), .run = batch_norm_run};

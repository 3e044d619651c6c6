/* serve_batch_proof.c: whether requests may be joined along axis 0. A free first axis is not enough: it
 * may be time, or rows may meet in a mean. So two small requests are run alone and as one, and their
 * rows compared, before the model is ready. */
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "serve_internal.h"

static bool axis_is_free(const nori_value_info *v, const char **axis)
{
    if (v->kind != NORI_KIND_TENSOR || v->rank < 1 || v->dims[0] >= 0) {
        return false;
    }
    const char *name = v->dim_names ? v->dim_names[0] : NULL;
    if (name && *axis && strcmp(name, *axis) != 0) {
        return false;
    }
    *axis = name ? name : *axis;
    return true;
}

bool nori__serve_batch_axis(const serve_signature *s, char *why, size_t size)
{
    const char *axis = NULL;
    for (size_t i = 0; i < s->input_count; i++) {
        if (!s->inputs[i]->optional && !axis_is_free(s->inputs[i], &axis)) {
            snprintf(why, size, "the first axis of input \"%.100s\" is not the free one of all",
                     s->inputs[i]->name);
            return false;
        }
    }
    if (s->output_count != s->session_outputs) {
        snprintf(why, size, "an output is no tensor that the protocol can say");
        return false;
    }
    for (size_t i = 0; i < s->output_count; i++) {
        /* Their names say nothing: exporters do not always see the connection. */
        const nori_value_info *v = s->outputs[i];
        if (v->rank == 0 || (v->rank > 0 && v->dims[0] >= 0)) {
            snprintf(why, size, "the first axis of output \"%.100s\" is not free", v->name);
            return false;
        }
    }
    return s->input_count > 0;
}

/* ---- the two requests ---- */

#define ROWS_A 1
#define ROWS_B 2

static double next_value(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / 16777216.0;
}

/* Numbers in [0, 1): as integers 0 and 1, which are indexes that every table has. */
static void fill(nori_tensor *t, uint32_t *state)
{
    size_t n = (size_t)nori_tensor_elements(t);
    unsigned char *data = nori_tensor_data(t);
    for (size_t i = 0; i < n; i++) {
        double v = next_value(state);
        uint64_t bit = v >= 0.5;
        uint16_t half = nori__serve_to_half(v, nori_tensor_type(t) == NORI_BFLOAT16);
        float f = (float)v;
        size_t width = nori_type_bits(nori_tensor_type(t)) / 8;
        switch (nori_tensor_type(t)) {
        case NORI_FLOAT: memcpy(data + 4 * i, &f, 4); break;
        case NORI_DOUBLE: memcpy(data + 8 * i, &v, 8); break;
        case NORI_FLOAT16:
        case NORI_BFLOAT16: memcpy(data + 2 * i, &half, 2); break;
        default: memcpy(data + width * i, &bit, width); break; /* little-endian, as tensors are */
        }
    }
}

static nori_tensor *make(const nori_value_info *v, int64_t rows, uint32_t *state, nori_error *err)
{
    nori_tensor *t = NULL;
    int64_t dims[NORI_MAX_RANK];
    for (int i = 0; i < v->rank; i++) {
        dims[i] = i == 0 ? rows : v->dims[i] >= 0 ? v->dims[i] : 8;
    }
    if (v->type == NORI_STRING) {
        nori__serve_fail(err, NORI_ERROR_UNSUPPORTED, "no texts are known that input \"%.100s\" takes",
                         v->name);
        return NULL;
    }
    if (nori_tensor_create(NULL, v->type, v->rank, dims, &t, err) == NORI_OK && nori_tensor_bytes(t) > 0) {
        fill(t, state);
    }
    return t;
}

/* Inputs of a request, of another, and of both. */
typedef struct trial {
    nori_tensor **in[3], **out[3];
} trial;

static bool allocate(const serve_signature *s, trial *t)
{
    bool fine = true;
    for (int k = 0; k < 3; k++) {
        t->in[k] = calloc(s->input_count + 1, sizeof(*t->in[k]));
        t->out[k] = calloc(s->session_outputs + 1, sizeof(*t->out[k]));
        fine = fine && t->in[k] && t->out[k];
    }
    return fine;
}

static void release(const serve_signature *s, trial *t)
{
    for (int k = 0; k < 3; k++) {
        for (size_t i = 0; t->in[k] && i < s->input_count; i++) {
            nori_tensor_free(t->in[k][i]);
        }
        for (size_t i = 0; t->out[k] && i < s->session_outputs; i++) {
            nori_tensor_free(t->out[k][i]);
        }
        free(t->in[k]);
        free(t->out[k]);
    }
}

static bool make_inputs(const serve_signature *s, trial *t, nori_error *err)
{
    static const int64_t rows[3] = {ROWS_A, ROWS_B, ROWS_A + ROWS_B};
    uint32_t state = 1;
    for (size_t i = 0; i < s->input_count; i++) {
        for (int k = 0; k < 3 && !s->inputs[i]->optional; k++) {
            t->in[k][i] = make(s->inputs[i], rows[k], &state, err);
            if (!t->in[k][i]) {
                return false;
            }
        }
        if (t->in[2][i] && nori_tensor_bytes(t->in[2][i]) > 0) {
            char *both = nori_tensor_data(t->in[2][i]);
            size_t first = nori_tensor_bytes(t->in[0][i]);
            memcpy(both, nori_tensor_const_data(t->in[0][i]), first);
            memcpy(both + first, nori_tensor_const_data(t->in[1][i]), nori_tensor_bytes(t->in[1][i]));
        }
    }
    return true;
}

/* ---- comparison ---- */

static double element(const nori_tensor *t, size_t i)
{
    const void *data = nori_tensor_const_data(t);
    uint64_t bits = 0;
    size_t width = nori_type_bits(nori_tensor_type(t)) / 8;
    switch (nori_tensor_type(t)) {
    case NORI_FLOAT: return (double)((const float *)data)[i];
    case NORI_DOUBLE: return ((const double *)data)[i];
    case NORI_FLOAT16:
    case NORI_BFLOAT16:
        return nori__serve_from_half(((const uint16_t *)data)[i],
                                     nori_tensor_type(t) == NORI_BFLOAT16);
    default: memcpy(&bits, (const char *)data + i * width, width); return (double)bits;
    }
}

static bool same_element(const nori_tensor *a, size_t i, const nori_tensor *b, size_t k)
{
    if (nori_tensor_type(a) == NORI_STRING) {
        const nori_string *x = nori_tensor_const_data(a), *y = nori_tensor_const_data(b);
        return x[i].size == y[k].size && (x[i].size == 0 || memcmp(x[i].data, y[k].data, x[i].size) == 0);
    }
    bool half = nori_tensor_type(a) == NORI_FLOAT16 || nori_tensor_type(a) == NORI_BFLOAT16;
    double x = element(a, i), y = element(b, k), tolerance = half ? 2e-2 : 1e-3;
    return (isnan(x) && isnan(y)) || x == y || fabs(x - y) <= 1e-5 + tolerance * fabs(x);
}

/* Rows of one output of a request, from `first` on in that of both. */
static bool same_rows(const nori_tensor *one, int64_t rows, const nori_tensor *both, int64_t first)
{
    if (nori_tensor_kind(one) != NORI_KIND_TENSOR || nori_tensor_rank(one) < 1 ||
        nori_tensor_rank(one) != nori_tensor_rank(both) || nori_tensor_dims(one)[0] != rows ||
        nori_tensor_dims(both)[0] != ROWS_A + ROWS_B || nori_tensor_type(one) != nori_tensor_type(both)) {
        return false;
    }
    size_t n = (size_t)nori_tensor_elements(one), row = n / (size_t)rows;
    if ((size_t)nori_tensor_elements(both) != row * (ROWS_A + ROWS_B)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!same_element(one, i, both, (size_t)first * row + i)) {
            return false;
        }
    }
    return true;
}

bool nori__serve_batch_proof(const nori_session *session, const serve_signature *s, char *why,
                             size_t size)
{
    trial t = {{NULL}, {NULL}};
    nori_error err = {0};
    bool fine = false;
    if (!nori__serve_batch_axis(s, why, size)) {
        return false;
    }
    if (!allocate(s, &t)) {
        nori__serve_oom(&err);
    } else if (make_inputs(s, &t, &err)) {
        fine = true;
        for (int k = 0; k < 3 && fine; k++) { /* the cast: running a session does not change it */
            fine = nori_session_run((nori_session *)(uintptr_t)session, (const nori_tensor *const *)t.in[k],
                                    s->input_count, t.out[k], s->session_outputs, &err) == NORI_OK;
        }
        for (size_t i = 0; i < s->session_outputs && fine; i++) {
            fine = same_rows(t.out[0][i], ROWS_A, t.out[2][i], 0) &&
                   same_rows(t.out[1][i], ROWS_B, t.out[2][i], ROWS_A);
            if (!fine) {
                snprintf(why, size, "rows of output \"%.100s\" are not the same when requests are joined",
                         nori_session_output(session, i)->name);
            }
        }
    }
    if (err.status != NORI_OK) {
        snprintf(why, size, "it could not be tried: %.200s", err.message);
    }
    release(s, &t);
    return fine;
}

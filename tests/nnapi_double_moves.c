/* nnapi_double_moves.c: operations of NNAPI that move elements. */
#include "nnapi_double.h"

#include <string.h>

static const char *shape_reshape(const model *m, const operation *o, operand *out)
{
    const operand *x = arg(m, o, 0), *s = arg(m, o, 1);
    size_t count = 1;
    if (s->rank != 1 || s->count > 4 || x->rank > 4) {
        return "more than four dimensions";
    }
    out->rank = (uint32_t)s->count;
    for (uint32_t d = 0; d < out->rank; d++) {
        if (arg_ints(m, o, 1)[d] < 1) {
            return "a dimension below 1";
        }
        out->dims[d] = (uint32_t)arg_ints(m, o, 1)[d];
        count *= out->dims[d];
    }
    return count == x->count ? NULL : "another number of elements";
}

static void run_reshape(const job *j)
{
    for (size_t i = 0; i < out_of(j)->count; i++) {
        put(j, i, (double)in_data(j, 0)[i]);
    }
}

static const char *shape_transpose(const model *m, const operation *o, operand *out)
{
    const operand *x = arg(m, o, 0), *p = arg(m, o, 1);
    unsigned seen = 0;
    if (p->rank != 1 || p->count != x->rank || x->rank > 4) {
        return "perm has another length, or there are more than four dimensions";
    }
    out->rank = x->rank;
    for (uint32_t d = 0; d < x->rank; d++) {
        int32_t from = arg_ints(m, o, 1)[d];
        if (from < 0 || from >= (int32_t)x->rank || (seen & 1u << from)) {
            return "perm is no permutation";
        }
        seen |= 1u << from;
        out->dims[d] = x->dims[from];
    }
    return NULL;
}

static void copy_strided(const job *j, size_t at, const size_t *strides)
{
    const operand *y = out_of(j);
    walk w = {.rank = y->rank};
    size_t ignored = 0;
    memcpy(w.a, strides, sizeof(w.a));
    for (size_t i = 0; i < y->count; i++) {
        put(j, i, (double)in_data(j, 0)[at]);
        walk_on(&w, y, &at, &ignored);
    }
}

static void dense(const operand *x, size_t *strides)
{
    size_t step = 1;
    for (uint32_t d = x->rank; d-- > 0;) {
        strides[d] = step;
        step *= x->dims[d];
    }
}

static void run_transpose(const job *j)
{
    const operand *x = arg(j->m, j->o, 0);
    size_t from[MAX_RANK] = {0}, strides[MAX_RANK] = {0};
    dense(x, from);
    for (uint32_t d = 0; d < x->rank; d++) {
        strides[d] = from[arg_ints(j->m, j->o, 1)[d]];
    }
    copy_strided(j, 0, strides);
}

static const char *shape_concat(const model *m, const operation *o, operand *out)
{
    const operand *x = arg(m, o, 0);
    int32_t axis = arg_int(m, o, o->n_in - 1);
    if (axis < 0 || axis >= (int32_t)x->rank) {
        return "no such axis";
    }
    like_first(m, o, out);
    for (uint32_t i = 1; i + 1 < o->n_in; i++) {
        const operand *more = arg(m, o, i);
        for (uint32_t d = 0; d < x->rank; d++) {
            if (more->rank != x->rank || (d != (uint32_t)axis && more->dims[d] != x->dims[d])) {
                return "shapes that do not go together";
            }
        }
        out->dims[axis] += more->dims[axis];
    }
    return x->rank <= 4 ? NULL : "more than four dimensions";
}

static void run_concat(const job *j)
{
    const operand *y = out_of(j);
    uint32_t axis = (uint32_t)arg_int(j->m, j->o, j->o->n_in - 1);
    size_t inner = 1, outer = 1, at = 0;
    for (uint32_t d = 0; d < y->rank; d++) {
        *(d < axis ? &outer : &inner) *= y->dims[d];
    }
    for (uint32_t i = 0; i + 1 < j->o->n_in; i++) {
        size_t size = arg(j->m, j->o, i)->count / outer;
        for (size_t k = 0; k < outer; k++) {
            for (size_t e = 0; e < size; e++) {
                put(j, k * inner + at + e, unit(j, i) * (double)in_data(j, i)[k * size + e]);
            }
        }
        at += size;
    }
}

static const char *shape_slice(const model *m, const operation *o, operand *out)
{
    const operand *x = arg(m, o, 0);
    out->rank = x->rank;
    for (uint32_t i = 1; i < 4; i++) {
        if (arg(m, o, i)->rank != 1 || arg(m, o, i)->count != x->rank || arg_int(m, o, i + 3) != 0) {
            return "limits of another length, or masks, which the double has not";
        }
    }
    for (uint32_t d = 0; d < x->rank; d++) {
        int32_t begin = arg_ints(m, o, 1)[d], end = arg_ints(m, o, 2)[d], step = arg_ints(m, o, 3)[d];
        if (step < 1 || begin < 0 || end <= begin || end > (int32_t)x->dims[d]) {
            return "limits outside of the tensor";
        }
        out->dims[d] = (uint32_t)((end - begin + step - 1) / step);
    }
    return x->rank <= 4 ? NULL : "more than four dimensions";
}

static void run_slice(const job *j)
{
    const operand *x = arg(j->m, j->o, 0);
    size_t strides[MAX_RANK] = {0}, at = 0;
    dense(x, strides);
    for (uint32_t d = 0; d < x->rank; d++) {
        at += strides[d] * (size_t)arg_ints(j->m, j->o, 1)[d];
        strides[d] *= (size_t)arg_ints(j->m, j->o, 3)[d];
    }
    copy_strided(j, at, strides);
}

static const char *shape_pad(const model *m, const operation *o, operand *out)
{
    const operand *x = arg(m, o, 0), *p = arg(m, o, 1);
    if (p->rank != 2 || p->dims[0] != x->rank || p->dims[1] != 2 || x->rank > 4) {
        return "pads are not two for each of at most four dimensions";
    }
    out->rank = x->rank;
    for (uint32_t d = 0; d < x->rank; d++) {
        if (arg_ints(m, o, 1)[2 * d] < 0 || arg_ints(m, o, 1)[2 * d + 1] < 0) {
            return "pads below 0";
        }
        out->dims[d] = x->dims[d] + (uint32_t)(arg_ints(m, o, 1)[2 * d] + arg_ints(m, o, 1)[2 * d + 1]);
    }
    return NULL;
}

static void run_pad(const job *j)
{
    const operand *x = arg(j->m, j->o, 0), *y = out_of(j);
    float value = j->o->n_in > 2 ? *(const float *)arg(j->m, j->o, 2)->value : 0;
    walk w = {.rank = x->rank};
    size_t at = 0, ignored = 0;
    dense(y, w.a);
    for (uint32_t d = 0; d < x->rank; d++) {
        at += w.a[d] * (size_t)arg_ints(j->m, j->o, 1)[2 * d];
    }
    for (size_t i = 0; i < y->count; i++) {
        put(j, i, (double)value);
    }
    for (size_t i = 0; i < x->count; i++) {
        put(j, at, (double)in_data(j, 0)[i]);
        walk_on(&w, x, &at, &ignored);
    }
}

const rule nnapi_double_moves[] = {
    {22, "RESHAPE", 27, "TI", 27, MEANS_SAME, shape_reshape, run_reshape},
    {37, "TRANSPOSE", 28, "TI", 28, MEANS_SAME, shape_transpose, run_transpose},
    {2, "CONCATENATION", 27, "T+i", 27, MEANS_CONCAT, shape_concat, run_concat},
    {35, "STRIDED_SLICE", 28, "TIIIiii", 28, MEANS_SAME, shape_slice, run_slice},
    {32, "PAD", 28, "TI", 29, MEANS_SAME, shape_pad, run_pad},
    {69, "PAD_V2", 29, "TIf", 0, MEANS_ANY, shape_pad, run_pad},
    {0, NULL, 0, NULL, 0, MEANS_ANY, NULL, NULL},
};

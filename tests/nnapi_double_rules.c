/* nnapi_double_rules.c: what operations of NNAPI take, by signature; arithmetic without windows. */
#include "nnapi_double.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- inputs by signature ---- */

const rule *nnapi_double_rule(int32_t code)
{
    for (const rule *r = nnapi_double_windows; r->name; r++) {
        if (r->code == code) {
            return r;
        }
    }
    for (const rule *r = nnapi_double_moves; r->name; r++) {
        if (r->code == code) {
            return r;
        }
    }
    for (const rule *r = nnapi_double_others; r->name; r++) {
        if (r->code == code) {
            return r;
        }
    }
    return NULL;
}

static const char *one_input(const model *m, const operation *o, uint32_t i, char want)
{
    static const struct {
        char letter;
        int32_t type;
    } types[] = {{'I', TENSOR_INT32}, {'i', INT32}, {'f', FLOAT32}, {'b', BOOL}};
    const operand *x = arg(m, o, i), *first = arg(m, o, 0);
    int64_t level = nnapi_double_level();
    bool bytes = o->rule->bytes && level >= (x->type == TENSOR_INT8 ? 30 : o->rule->bytes);
    switch (want) {
    case 'T':
        return x->type != first->type || !(x->type == TENSOR_FLOAT32 || (bytes && is_bytes(x)))
                   ? "an input has another type"
                   : NULL;
    case 'F':
        return x->type == TENSOR_CHANNELS ? (is_bytes(first) && level >= 29 ? NULL : "scales a channel")
                                          : one_input(m, o, i, 'T');
    case 'B':
        return x->type != (is_bytes(first) ? TENSOR_INT32 : TENSOR_FLOAT32) ? "an input has another type"
                                                                           : NULL;
    case 'Q':
        return bytes && is_bytes(x) ? NULL : "an input has another type";
    default:
        break;
    }
    for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++) {
        if (types[k].letter == want) {
            return x->type != types[k].type ? "an input has another type"
                   : x->value               ? NULL
                                            : "a parameter is not constant";
        }
    }
    return "a signature of the double is wrong";
}

const char *nnapi_double_inputs(const model *m, const operation *o)
{
    const char *s = o->rule->inputs;
    int64_t level = nnapi_double_level(), need = o->rule->level;
    uint32_t i = 0;
    bool ended = true;
    while (*s) {
        if (*s == '|') {
            if (i == o->n_in) {
                break;
            }
            need = s[1] == '9' ? 29 : 30;
            s += 2;
            continue;
        }
        if (i == o->n_in) {
            ended = false;
            break;
        }
        if (o->in[i] >= m->n_operands) {
            return "an input that is no operand";
        }
        const char *broken = one_input(m, o, i, *s);
        if (broken) {
            return broken;
        }
        i++;
        if (s[1] == '+') { /* as many as leave room for the rest */
            uint32_t rest = (uint32_t)strlen(s + 2);
            for (; i + rest < o->n_in; i++) {
                broken = one_input(m, o, i, *s);
                if (broken) {
                    return broken;
                }
            }
            s++;
        }
        s++;
    }
    return !ended || i != o->n_in ? "another number of inputs"
           : need > level         ? "it, or this form of it, is of a later feature level"
                                  : NULL;
}

const operand *arg(const model *m, const operation *o, uint32_t i)
{
    return &m->operands[o->in[i]];
}

int32_t arg_int(const model *m, const operation *o, uint32_t i)
{
    const operand *x = arg(m, o, i);
    return x->type == BOOL ? *(const uint8_t *)x->value : *(const int32_t *)x->value;
}

const int32_t *arg_ints(const model *m, const operation *o, uint32_t i)
{
    return arg(m, o, i)->value;
}

const char *like_first(const model *m, const operation *o, operand *out)
{
    const operand *x = arg(m, o, 0);
    out->rank = x->rank;
    memcpy(out->dims, x->dims, sizeof(x->dims));
    return x->rank <= 4 ? NULL : "more than four dimensions";
}

/* Dense strides; 0 along dimensions of 1, lined up at the end of rank. */
static void spread(const operand *x, uint32_t rank, size_t *strides)
{
    size_t step = 1;
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t at = rank - 1 - d;
        bool there = d < x->rank;
        uint32_t size = there ? x->dims[x->rank - 1 - d] : 1;
        strides[at] = size > 1 ? step : 0;
        step *= size;
    }
}

void walk_on(walk *w, const operand *y, size_t *a, size_t *b)
{
    for (uint32_t d = w->rank; d-- > 0;) {
        *a += w->a[d];
        *b += w->b[d];
        if (++w->at[d] < y->dims[d]) {
            return;
        }
        *a -= w->a[d] * y->dims[d];
        *b -= w->b[d] * y->dims[d];
        w->at[d] = 0;
    }
}

/* ---- element by element ---- */

static const char *broadcast(const model *m, const operation *o, operand *out)
{
    const operand *a = arg(m, o, 0), *b = arg(m, o, 1);
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (uint32_t d = 0; d < out->rank; d++) {
        uint32_t x = d < a->rank ? a->dims[a->rank - 1 - d] : 1;
        uint32_t y = d < b->rank ? b->dims[b->rank - 1 - d] : 1;
        if (x != y && x != 1 && y != 1) {
            return "shapes that do not go together";
        }
        out->dims[out->rank - 1 - d] = x > y ? x : y;
    }
    if (o->n_in == 3 && (arg_int(m, o, 2) < 0 || arg_int(m, o, 2) > 3)) {
        return "no such activation";
    }
    return out->rank <= 4 ? NULL : "more than four dimensions";
}

static double both(int32_t code, double a, double b)
{
    switch (code) {
    case 0: return a + b;
    case 18: return a * b;
    case 30: return a / b;
    case 36: return a - b;
    case 65: return a > b ? a : b;
    case 66: return a < b ? a : b;
    default: return a >= 0 ? a : a * b; /* PRELU */
    }
}

static void run_binary(const job *j)
{
    const operand *y = out_of(j);
    const float *a = in_data(j, 0), *b = in_data(j, 1);
    int32_t activation = j->o->n_in == 3 ? arg_int(j->m, j->o, 2) : 0;
    walk w = {.rank = y->rank};
    size_t i = 0, k = 0;
    spread(arg(j->m, j->o, 0), y->rank, w.a);
    spread(arg(j->m, j->o, 1), y->rank, w.b);
    for (size_t n = 0; n < y->count; n++) {
        double v = both(j->o->rule->code, unit(j, 0) * (double)a[i], unit(j, 1) * (double)b[k]);
        put(j, n, fused(j, activation, v));
        walk_on(&w, y, &i, &k);
    }
}

static double alone(const job *j, double v, double alpha)
{
    switch (j->o->rule->code) {
    case 8: return floor(v);
    case 14: return 1 / (1 + exp(-v));
    case 19: return fused(j, 1, v);
    case 20: return fused(j, 2, v);
    case 21: return fused(j, 3, v);
    case 28: return tanh(v);
    case 38: return fabs(v);
    case 49: return exp(v);
    case 60: return log(v);
    case 67: return -v;
    case 88: return sqrt(v);
    case 98: return v >= 0 ? v : alpha * (exp(v) - 1);
    default: return v * fmin(fmax(v + 3, 0), 6) / 6; /* HARD_SWISH */
    }
}

static void run_unary(const job *j)
{
    double alpha = j->o->n_in > 1 ? (double)*(const float *)arg(j->m, j->o, 1)->value : 0;
    for (size_t i = 0; i < out_of(j)->count; i++) {
        put(j, i, alone(j, unit(j, 0) * (double)in_data(j, 0)[i], alpha));
    }
}

/* ---- SOFTMAX, MEAN ---- */

static const char *shape_softmax(const model *m, const operation *o, operand *out)
{
    const operand *x = arg(m, o, 0);
    int32_t axis = o->n_in > 2 ? arg_int(m, o, 2) : -1;
    if (!(*(const float *)arg(m, o, 1)->value > 0)) {
        return "beta is not above 0";
    }
    if (axis < -(int32_t)x->rank || axis >= (int32_t)x->rank) {
        return "no such axis";
    }
    if (nnapi_double_level() < 29 && x->rank != 2 && x->rank != 4) {
        return "of another rank than 2 or 4 before level 29";
    }
    return like_first(m, o, out);
}

static void run_softmax(const job *j)
{
    const operand *x = arg(j->m, j->o, 0);
    double beta = unit(j, 0) * (double)*(const float *)arg(j->m, j->o, 1)->value;
    int32_t axis = j->o->n_in > 2 ? arg_int(j->m, j->o, 2) : -1;
    size_t inner = 1, n, at = (size_t)(axis < 0 ? axis + (int32_t)x->rank : axis);
    for (size_t d = at + 1; d < x->rank; d++) {
        inner *= x->dims[d];
    }
    n = x->dims[at];
    for (size_t k = 0; k < x->count / n; k++) {
        size_t base = k / inner * inner * n + k % inner;
        const float *in = in_data(j, 0) + base;
        double most = -INFINITY, sum = 0;
        for (size_t i = 0; i < n; i++) {
            most = fmax(most, (double)in[i * inner]);
        }
        for (size_t i = 0; i < n; i++) {
            sum += exp(beta * ((double)in[i * inner] - most));
        }
        for (size_t i = 0; i < n; i++) {
            put(j, base + i * inner, exp(beta * ((double)in[i * inner] - most)) / sum);
        }
    }
}

static bool is_over(const model *m, const operation *o, uint32_t d)
{
    const operand *axes = arg(m, o, 1);
    for (size_t i = 0; i < axes->count; i++) {
        int32_t axis = arg_ints(m, o, 1)[i];
        if (axis == (int32_t)d || axis + (int32_t)arg(m, o, 0)->rank == (int32_t)d) {
            return true;
        }
    }
    return false;
}

static const char *shape_mean(const model *m, const operation *o, operand *out)
{
    const operand *x = arg(m, o, 0);
    for (size_t i = 0; i < arg(m, o, 1)->count; i++) {
        int32_t axis = arg_ints(m, o, 1)[i];
        if (axis < -(int32_t)x->rank || axis >= (int32_t)x->rank) {
            return "no such axis";
        }
    }
    for (uint32_t d = 0; d < x->rank; d++) {
        if (!is_over(m, o, d)) {
            out->dims[out->rank++] = x->dims[d];
        } else if (arg_int(m, o, 2) > 0) {
            out->dims[out->rank++] = 1;
        }
    }
    if (out->rank == 0) {
        out->dims[out->rank++] = 1;
    }
    return x->rank <= 4 ? NULL : "more than four dimensions";
}

static void run_mean(const job *j)
{
    const operand *x = arg(j->m, j->o, 0), *y = out_of(j);
    double *sums = calloc(y->count, sizeof(*sums));
    size_t step = 1;
    walk w = {.rank = x->rank};
    for (uint32_t d = x->rank; d-- > 0;) {
        w.a[d] = is_over(j->m, j->o, d) ? 0 : step;
        step *= is_over(j->m, j->o, d) ? 1 : x->dims[d];
    }
    size_t at = 0, ignored = 0;
    for (size_t i = 0; sums && i < x->count; i++) {
        sums[at] += (double)in_data(j, 0)[i];
        walk_on(&w, x, &at, &ignored);
    }
    for (size_t i = 0; sums && i < y->count; i++) {
        put(j, i, sums[i] / (double)(x->count / y->count));
    }
    free(sums);
}

/* ---- products ---- */

static const char *shape_connected(const model *m, const operation *o, operand *out)
{
    const operand *x = arg(m, o, 0), *w = arg(m, o, 1), *b = arg(m, o, 2);
    if (x->rank < 2 || x->rank > 4 || w->rank != 2 || b->rank != 1) {
        return "ranks are not 2 to 4, 2 and 1";
    }
    if (x->count % w->dims[1] != 0 || b->dims[0] != w->dims[0]) {
        return "weights or bias do not fit";
    }
    if (arg_int(m, o, 3) < 0 || arg_int(m, o, 3) > 3) {
        return "no such activation";
    }
    out->rank = 2;
    out->dims[0] = (uint32_t)(x->count / w->dims[1]);
    out->dims[1] = w->dims[0];
    return NULL;
}

static void run_connected(const job *j)
{
    const operand *w = arg(j->m, j->o, 1);
    size_t units = w->dims[0], n = w->dims[1], rows = out_of(j)->dims[0];
    for (size_t r = 0; r < rows; r++) {
        for (size_t u = 0; u < units; u++) {
            double sum = bias_at(j, u);
            for (size_t i = 0; i < n; i++) {
                sum += (double)in_data(j, 0)[r * n + i] * (double)in_data(j, 1)[u * n + i];
            }
            put(j, r * units + u, fused(j, arg_int(j->m, j->o, 3), sum * product_unit(j, u)));
        }
    }
}

static const char *shape_batch(const model *m, const operation *o, operand *out)
{
    const operand *a = arg(m, o, 0), *b = arg(m, o, 1);
    if (a->rank < 2 || a->rank > 4 || b->rank != a->rank) {
        return "ranks are not the same, from 2 to 4";
    }
    if (arg_int(m, o, 2) || arg_int(m, o, 3)) {
        return "the double turns no operand";
    }
    uint32_t r = a->rank;
    out->rank = r;
    memcpy(out->dims, a->dims, sizeof(a->dims));
    out->dims[r - 1] = b->dims[r - 1];
    for (uint32_t d = 0; d + 2 < r; d++) {
        if (a->dims[d] != b->dims[d]) {
            return "batches differ";
        }
    }
    return a->dims[r - 1] == b->dims[r - 2] ? NULL : "matrices do not fit";
}

static void run_batch(const job *j)
{
    const operand *a = arg(j->m, j->o, 0), *y = out_of(j);
    size_t r = a->rank, n = a->dims[r - 1], rows = y->dims[r - 2], columns = y->dims[r - 1];
    for (size_t i = 0; i < y->count; i++) {
        size_t batch = i / (rows * columns), row = i / columns % rows, column = i % columns;
        double sum = 0;
        for (size_t k = 0; k < n; k++) {
            sum += (double)in_data(j, 0)[(batch * rows + row) * n + k] *
                   (double)in_data(j, 1)[(batch * n + k) * columns + column];
        }
        put(j, i, sum);
    }
}

/* ---- to bytes and back ---- */

static const char *shape_quantize(const model *m, const operation *o, operand *out)
{
    const operand *y = &m->operands[o->out];
    out->type = y->type;
    return !is_bytes(y)                                             ? "what comes out is not of bytes"
           : y->type == TENSOR_INT8 && nnapi_double_level() < 30 ? "signed bytes are of level 30"
                                                                    : like_first(m, o, out);
}

static const char *shape_dequantize(const model *m, const operation *o, operand *out)
{
    out->type = TENSOR_FLOAT32;
    return like_first(m, o, out);
}

static void run_convert(const job *j)
{
    for (size_t i = 0; i < out_of(j)->count; i++) {
        put(j, i, unit(j, 0) * (double)in_data(j, 0)[i]);
    }
}

const rule nnapi_double_others[] = {
    {0, "ADD", 27, "TTi", 27, MEANS_ANY, broadcast, run_binary},
    {18, "MUL", 27, "TTi", 27, MEANS_MUL, broadcast, run_binary},
    {30, "DIV", 28, "TTi", 0, MEANS_ANY, broadcast, run_binary},
    {36, "SUB", 28, "TTi", 29, MEANS_ANY, broadcast, run_binary},
    {65, "MAXIMUM", 29, "TT", 0, MEANS_ANY, broadcast, run_binary},
    {66, "MINIMUM", 29, "TT", 0, MEANS_ANY, broadcast, run_binary},
    {71, "PRELU", 29, "TT", 0, MEANS_ANY, broadcast, run_binary},
    {8, "FLOOR", 27, "T", 0, MEANS_ANY, like_first, run_unary},
    {14, "LOGISTIC", 27, "T", 27, MEANS_UNIT, like_first, run_unary},
    {19, "RELU", 27, "T", 27, MEANS_SAME, like_first, run_unary},
    {20, "RELU1", 27, "T", 27, MEANS_SAME, like_first, run_unary},
    {21, "RELU6", 27, "T", 27, MEANS_SAME, like_first, run_unary},
    {28, "TANH", 27, "T", 29, MEANS_TANH, like_first, run_unary},
    {38, "ABS", 29, "T", 0, MEANS_ANY, like_first, run_unary},
    {49, "EXP", 29, "T", 0, MEANS_ANY, like_first, run_unary},
    {60, "LOG", 29, "T", 0, MEANS_ANY, like_first, run_unary},
    {67, "NEG", 29, "T", 0, MEANS_ANY, like_first, run_unary},
    {88, "SQRT", 29, "T", 0, MEANS_ANY, like_first, run_unary},
    {98, "ELU", 30, "Tf", 0, MEANS_ANY, like_first, run_unary},
    {99, "HARD_SWISH", 30, "T", 30, MEANS_ANY, like_first, run_unary},
    {25, "SOFTMAX", 27, "Tf|9i", 27, MEANS_UNIT, shape_softmax, run_softmax},
    {31, "MEAN", 28, "TIi", 28, MEANS_SAME, shape_mean, run_mean},
    {9, "FULLY_CONNECTED", 27, "TTBi", 27, MEANS_PRODUCT, shape_connected, run_connected},
    {102, "BATCH_MATMUL", 30, "TTbb", 0, MEANS_ANY, shape_batch, run_batch},
    {72, "QUANTIZE", 29, "T", 0, MEANS_ANY, shape_quantize, run_convert},
    {6, "DEQUANTIZE", 27, "Q", 27, MEANS_ANY, shape_dequantize, run_convert},
    {0, NULL, 0, NULL, 0, MEANS_ANY, NULL, NULL},
};

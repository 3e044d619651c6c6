/* nnapi_double_rules.c: operations of NNAPI but those with windows: what they take, what comes out. */
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
    for (const rule *r = nnapi_double_others; r->name; r++) {
        if (r->code == code) {
            return r;
        }
    }
    return NULL;
}

static const char *one_input(const operand *x, char want)
{
    static const struct {
        char letter;
        int32_t type;
    } types[] = {{'T', TENSOR_FLOAT32}, {'I', TENSOR_INT32}, {'i', INT32}, {'f', FLOAT32}, {'b', BOOL}};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].letter == want) {
            if (x->type != types[i].type) {
                return "an input has another type";
            }
            return want == 'T' || x->value ? NULL : "a parameter is not constant";
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
        const char *broken = one_input(&m->operands[o->in[i]], *s);
        if (broken) {
            return broken;
        }
        i++;
        if (s[1] == '+') { /* as many as leave room for the rest */
            uint32_t rest = (uint32_t)strlen(s + 2);
            for (; i + rest < o->n_in; i++) {
                broken = one_input(&m->operands[o->in[i]], *s);
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

const float *in_data(const job *j, uint32_t i)
{
    return j->data[j->o->in[i]];
}

float *out_data(const job *j)
{
    return j->data[j->o->out];
}

const char *like_first(const model *m, const operation *o, operand *out)
{
    const operand *x = arg(m, o, 0);
    out->rank = x->rank;
    memcpy(out->dims, x->dims, sizeof(x->dims));
    return x->rank <= 4 ? NULL : "more than four dimensions";
}

float fused(int32_t code, double v)
{
    return (float)(code == 1   ? fmax(v, 0)
                   : code == 2 ? fmin(fmax(v, -1), 1)
                   : code == 3 ? fmin(fmax(v, 0), 6)
                               : v);
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

/* Calls for each element of out: positions in two inputs. */
typedef struct walk {
    uint32_t rank, at[MAX_RANK];
    size_t a[MAX_RANK], b[MAX_RANK];
} walk;

static void next(walk *w, const operand *y, size_t *a, size_t *b)
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

static const operand *out_of(const job *j)
{
    return &j->m->operands[j->o->out];
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
        out_data(j)[n] = fused(activation, both(j->o->rule->code, (double)a[i], (double)b[k]));
        next(&w, y, &i, &k);
    }
}

static double alone(int32_t code, double v, double alpha)
{
    switch (code) {
    case 8: return floor(v);
    case 14: return 1 / (1 + exp(-v));
    case 19: return fmax(v, 0);
    case 20: return fmin(fmax(v, -1), 1);
    case 21: return fmin(fmax(v, 0), 6);
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
        out_data(j)[i] = (float)alone(j->o->rule->code, (double)in_data(j, 0)[i], alpha);
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
    double beta = (double)*(const float *)arg(j->m, j->o, 1)->value;
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
            out_data(j)[base + i * inner] = (float)(exp(beta * ((double)in[i * inner] - most)) / sum);
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
        next(&w, x, &at, &ignored);
    }
    for (size_t i = 0; sums && i < y->count; i++) {
        out_data(j)[i] = (float)(sums[i] / (double)(x->count / y->count));
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
            double sum = (double)in_data(j, 2)[u];
            for (size_t i = 0; i < n; i++) {
                sum += (double)in_data(j, 0)[r * n + i] * (double)in_data(j, 1)[u * n + i];
            }
            out_data(j)[r * units + u] = fused(arg_int(j->m, j->o, 3), sum);
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
        out_data(j)[i] = (float)sum;
    }
}

/* ---- moves ---- */

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
    memcpy(out_data(j), in_data(j, 0), out_of(j)->bytes);
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
        out_data(j)[i] = in_data(j, 0)[at];
        next(&w, y, &at, &ignored);
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
            memcpy(out_data(j) + k * inner + at, in_data(j, i) + k * size, size * sizeof(float));
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
        out_data(j)[i] = value;
    }
    for (size_t i = 0; i < x->count; i++) {
        out_data(j)[at] = in_data(j, 0)[i];
        next(&w, x, &at, &ignored);
    }
}

const rule nnapi_double_others[] = {
    {0, "ADD", 27, "TTi", broadcast, run_binary},
    {18, "MUL", 27, "TTi", broadcast, run_binary},
    {30, "DIV", 28, "TTi", broadcast, run_binary},
    {36, "SUB", 28, "TTi", broadcast, run_binary},
    {65, "MAXIMUM", 29, "TT", broadcast, run_binary},
    {66, "MINIMUM", 29, "TT", broadcast, run_binary},
    {71, "PRELU", 29, "TT", broadcast, run_binary},
    {8, "FLOOR", 27, "T", like_first, run_unary},
    {14, "LOGISTIC", 27, "T", like_first, run_unary},
    {19, "RELU", 27, "T", like_first, run_unary},
    {20, "RELU1", 27, "T", like_first, run_unary},
    {21, "RELU6", 27, "T", like_first, run_unary},
    {28, "TANH", 27, "T", like_first, run_unary},
    {38, "ABS", 29, "T", like_first, run_unary},
    {49, "EXP", 29, "T", like_first, run_unary},
    {60, "LOG", 29, "T", like_first, run_unary},
    {67, "NEG", 29, "T", like_first, run_unary},
    {88, "SQRT", 29, "T", like_first, run_unary},
    {98, "ELU", 30, "Tf", like_first, run_unary},
    {99, "HARD_SWISH", 30, "T", like_first, run_unary},
    {25, "SOFTMAX", 27, "Tf|9i", shape_softmax, run_softmax},
    {31, "MEAN", 28, "TIi", shape_mean, run_mean},
    {9, "FULLY_CONNECTED", 27, "TTTi", shape_connected, run_connected},
    {102, "BATCH_MATMUL", 30, "TTbb", shape_batch, run_batch},
    {22, "RESHAPE", 27, "TI", shape_reshape, run_reshape},
    {37, "TRANSPOSE", 28, "TI", shape_transpose, run_transpose},
    {2, "CONCATENATION", 27, "T+i", shape_concat, run_concat},
    {35, "STRIDED_SLICE", 28, "TIIIiii", shape_slice, run_slice},
    {32, "PAD", 28, "TI", shape_pad, run_pad},
    {69, "PAD_V2", 29, "TIf", shape_pad, run_pad},
    {0, NULL, 0, NULL, NULL, NULL},
};

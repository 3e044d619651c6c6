/* ref_recurrent.c: RNN, GRU, LSTM.
 *
 * States and sums in double, outputs rounded once a step. Steps past a sequence's length leave Y at
 * 0 and the states as they were; a reversed direction begins at the sequence's own last step. A
 * length of 0 gives the initial states. NaN spreads as arithmetic has it. */
#include "providers/reference/ref_nn.h"

#include <math.h>

typedef enum cell_kind { CELL_RNN, CELL_GRU, CELL_LSTM } cell_kind;

/* ---- activations ---- */

typedef enum act_kind {
    ACT_RELU, ACT_TANH, ACT_SIGMOID, ACT_AFFINE, ACT_LEAKY, ACT_THRESHOLDED, ACT_SCALED_TANH,
    ACT_HARD_SIGMOID, ACT_ELU, ACT_SOFTSIGN, ACT_SOFTPLUS
} act_kind;

typedef struct act {
    act_kind kind;
    double alpha, beta;
} act;

/* What each activation is called, and its defaults; takes: how many of alpha, beta it uses. */
static const struct {
    const char *name;
    double alpha, beta;
    int takes;
} acts[] = {
    {"Relu", 0, 0, 0},           {"Tanh", 0, 0, 0},          {"Sigmoid", 0, 0, 0},
    {"Affine", 1, 0, 2},         {"LeakyRelu", 0.01, 0, 1},  {"ThresholdedRelu", 1, 0, 1},
    {"ScaledTanh", 1, 1, 2},     {"HardSigmoid", 0.2, 0.5, 2}, {"Elu", 1, 0, 1},
    {"Softsign", 0, 0, 0},       {"Softplus", 0, 0, 0},
};

static double activate(const act *a, double x)
{
    double v;
    switch (a->kind) {
    case ACT_RELU:
        return x < 0 ? 0 : x;
    case ACT_TANH:
        return tanh(x);
    case ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case ACT_AFFINE:
        return a->alpha * x + a->beta;
    case ACT_LEAKY:
        return x < 0 ? a->alpha * x : x;
    case ACT_THRESHOLDED:
        return x >= a->alpha || x != x ? x : 0;
    case ACT_SCALED_TANH:
        return a->alpha * tanh(a->beta * x);
    case ACT_HARD_SIGMOID:
        v = a->alpha * x + a->beta;
        return v < 0 ? 0 : v > 1 ? 1 : v;
    case ACT_ELU:
        return x < 0 ? a->alpha * expm1(x) : x;
    case ACT_SOFTSIGN:
        return x / (1 + fabs(x));
    default: /* ACT_SOFTPLUS */
        return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    }
}

static bool same_name(const char *text, nori__str s)
{
    size_t n = strlen(text);
    if (n != s.n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) { /* files differ in case */
        if ((text[i] | 32) != (s.p[i] | 32)) {
            return false;
        }
    }
    return true;
}

/* per: activations a direction; out has 2 * per entries. */
static nori_status read_activations(const nori_call *call, int per, int directions, act *out)
{
    static const act_kind usual[] = {ACT_SIGMOID, ACT_TANH, ACT_TANH};
    const nori__attr *names = nori__attr_find(call->node, "activations");
    size_t n_alpha, n_beta, used_alpha = 0, used_beta = 0;
    const float *alpha = nori__attr_floats(call->node, "activation_alpha", &n_alpha);
    const float *beta = nori__attr_floats(call->node, "activation_beta", &n_beta);
    bool named = names && names->kind == NORI__ATTR_STRINGS && names->count > 0;
    if (named && names->count != (size_t)(per * directions)) {
        return nori__fail(call->err, NORI_ERROR_DATA, "%zu activations, expected %d", names->count,
                          per * directions);
    }
    for (int i = 0; i < per * directions; i++) {
        size_t k = per == 1 ? ACT_TANH : usual[i % per];
        for (size_t j = 0; named && j <= NORI__COUNT(acts); j++) {
            if (j == NORI__COUNT(acts)) {
                return nori__fail(call->err, NORI_ERROR_DATA, "activation \"%.*s\" is not known",
                                  (int)names->v.strings[i].n, names->v.strings[i].p);
            }
            if (same_name(acts[j].name, names->v.strings[i])) {
                k = j;
                break;
            }
        }
        out[i] = (act){(act_kind)k, acts[k].alpha, acts[k].beta};
        if (acts[k].takes > 0 && alpha && used_alpha < n_alpha) {
            out[i].alpha = (double)alpha[used_alpha++];
        }
        if (acts[k].takes > 1 && beta && used_beta < n_beta) {
            out[i].beta = (double)beta[used_beta++];
        }
    }
    return NORI_OK;
}

/* ---- one direction ---- */

typedef struct cell {
    cell_kind kind;
    int gates, directions;
    int64_t length, batch, input, hidden, layout;
    act acts[6];
    double clip; /* 0: none */
    bool reset_after, input_forget;
    bool bytes; /* the recurrence reads the state as 8 bits, their range found in each step */
    /* Vectors of the direction at work. */
    double *x, *sums, *recurrent, *h, *c, *bias, *peephole, *read;
} cell;

static void project(const nori_tensor *t, int64_t from, int64_t rows, int64_t columns,
                    const double *v, double *out)
{
    for (int64_t r = 0; r < rows; r++, from += columns) {
        double s0 = 0, s1 = 0;
        int64_t i = 0;
        if (t->type == NORI_FLOAT) {
            const float *m = (const float *)t->data + from;
            for (; i + 2 <= columns; i += 2) {
                s0 += (double)m[i] * v[i];
                s1 += (double)m[i + 1] * v[i + 1];
            }
            s0 += i < columns ? (double)m[i] * v[i] : 0;
        } else {
            const double *m = (const double *)t->data + from;
            for (; i < columns; i++) {
                s0 += m[i] * v[i];
            }
        }
        out[r] = s0 + s1;
    }
}

static double gate(const cell *k, int dir, int which, double sum)
{
    if (k->clip > 0) {
        sum = sum < -k->clip ? -k->clip : sum > k->clip ? k->clip : sum;
    }
    int per = k->kind == CELL_RNN ? 1 : k->kind == CELL_GRU ? 2 : 3;
    return activate(&k->acts[dir * per + which], sum);
}

/* Gates in the order i, o, f, c; peepholes i, o, f. */
static void step_lstm(cell *k, int dir)
{
    int64_t n = k->hidden;
    for (int64_t j = 0; j < n; j++) {
        double sum[4];
        for (int g = 0; g < 4; g++) {
            int64_t at = g * n + j;
            sum[g] = k->sums[at] + k->recurrent[at] + k->bias[at] + k->bias[4 * n + at];
        }
        double i = gate(k, dir, 0, sum[0] + k->peephole[j] * k->c[j]);
        double f = k->input_forget ? 1 - i
                                   : gate(k, dir, 0, sum[2] + k->peephole[2 * n + j] * k->c[j]);
        double c = f * k->c[j] + i * gate(k, dir, 1, sum[3]);
        double o = gate(k, dir, 0, sum[1] + k->peephole[n + j] * c);
        k->c[j] = c;
        k->h[j] = o * activate(&k->acts[dir * 3 + 2], c);
    }
}

/* Gates in the order z, r, h. Without reset_after the h part of the recurrence waits for r. */
static void step_gru(cell *k, const nori_tensor *r_matrix, int64_t r_from, int dir)
{
    int64_t n = k->hidden;
    for (int64_t j = 0; j < 2 * n; j++) {
        k->sums[j] = gate(k, dir, 0,
                          k->sums[j] + k->recurrent[j] + k->bias[j] + k->bias[3 * n + j]);
    }
    const double *z = k->sums, *r = k->sums + n;
    double *part = k->recurrent + 2 * n;
    if (!k->reset_after) {
        for (int64_t j = 0; j < n; j++) {
            k->recurrent[j] = r[j] * k->h[j];
        }
        project(r_matrix, r_from + 2 * n * n, n, n, k->recurrent, part);
    }
    for (int64_t j = 0; j < n; j++) {
        double rb = k->bias[5 * n + j];
        double turned = k->reset_after ? r[j] * (part[j] + rb) : part[j] + rb;
        double fresh = gate(k, dir, 1, k->sums[2 * n + j] + turned + k->bias[2 * n + j]);
        k->h[j] = (1 - z[j]) * fresh + z[j] * k->h[j];
    }
}

static void step(cell *k, const nori_call *call, int dir)
{
    int64_t rows = k->gates * k->hidden, r_from = dir * rows * k->hidden;
    project(call->in[1], dir * rows * k->input, rows, k->input, k->x, k->sums);
    int64_t now = k->kind == CELL_GRU && !k->reset_after ? 2 * k->hidden : rows;
    const double *state = k->h;
    if (k->bytes) {
        for (int64_t j = 0; j < k->hidden; j++) {
            k->read[j] = (double)(float)k->h[j];
        }
        nori__nn_as_bytes(k->hidden, k->read);
        state = k->read;
    }
    project(call->in[2], r_from, now, k->hidden, state, k->recurrent);
    if (k->kind == CELL_LSTM) {
        step_lstm(k, dir);
    } else if (k->kind == CELL_GRU) {
        step_gru(k, call->in[2], r_from, dir);
    } else {
        for (int64_t j = 0; j < k->hidden; j++) {
            k->h[j] = gate(k, dir, 0,
                           k->sums[j] + k->recurrent[j] + k->bias[j] + k->bias[k->hidden + j]);
        }
    }
}

/* Index of the state of a direction and batch entry. */
static int64_t state_at(const cell *k, int dir, int64_t b)
{
    return (k->layout ? b * k->directions + dir : dir * k->batch + b) * k->hidden;
}

static void load_state(const nori_call *call, uint32_t i, int64_t at, int64_t n, double *out)
{
    memset(out, 0, (size_t)n * sizeof *out);
    if (nori__nn_has(call, i)) {
        nori__nn_load_f64(call->in[i], at, n, out);
    }
}

static nori_status run_sequence(cell *k, nori_call *call, int dir, bool reverse, int64_t b)
{
    int64_t n = k->hidden, steps = k->length;
    if (nori__nn_has(call, 4)) {
        steps = nori__tensor_get_i64(call->in[4], b);
        if (steps < 0 || steps > k->length) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "sequence length %lld of input 4, expected 0 to %lld",
                              (long long)steps, (long long)k->length);
        }
    }
    load_state(call, 5, state_at(k, dir, b), n, k->h);
    load_state(call, k->kind == CELL_LSTM ? 6 : UINT32_MAX, state_at(k, dir, b), n, k->c);
    for (int64_t t = 0; t < steps; t++) {
        int64_t at = reverse ? steps - 1 - t : t;
        int64_t from = k->layout ? b * k->length + at : at * k->batch + b;
        nori__nn_load_f64(call->in[0], from * k->input, k->input, k->x);
        step(k, call, dir);
        if (nori__nn_wants(call, 0)) {
            int64_t to = k->layout ? (b * k->length + at) * k->directions + dir
                                   : (at * k->directions + dir) * k->batch + b;
            nori__nn_store_f64(call->out[0], to * n, n, k->h);
        }
    }
    if (nori__nn_wants(call, 1)) {
        nori__nn_store_f64(call->out[1], state_at(k, dir, b), n, k->h);
    }
    if (nori__nn_wants(call, 2) && k->kind == CELL_LSTM) {
        nori__nn_store_f64(call->out[2], state_at(k, dir, b), n, k->c);
    }
    return NORI_OK;
}

/* ---- the operator ---- */

static nori_status check(const nori_call *call, cell *k)
{
    static const char *const names[] = {"X", "W", "R"};
    for (uint32_t i = 0; i < 3; i++) {
        NORI__TRY(nori__nn_need(call, i, names[i], 3));
        if (call->in[i]->type != call->in[0]->type ||
            (call->in[i]->type != NORI_FLOAT && call->in[i]->type != NORI_DOUBLE)) {
            return nori__nn_type_error(call, i);
        }
    }
    const nori_tensor *x = call->in[0], *w = call->in[1], *r = call->in[2];
    k->length = x->dims[k->layout ? 1 : 0];
    k->batch = x->dims[k->layout ? 0 : 1];
    k->input = x->dims[2];
    k->hidden = r->dims[2];
    if (k->hidden > INT32_MAX || k->input > INT64_MAX / 64) {
        return nori__fail(call->err, NORI_ERROR_DATA, "hidden size %lld is too large",
                          (long long)k->hidden);
    }
    int64_t rows = k->gates * k->hidden;
    if (w->dims[0] != k->directions || w->dims[1] != rows || w->dims[2] != k->input ||
        r->dims[0] != k->directions || r->dims[1] != rows) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "W is %lld x %lld x %lld, R is %lld x %lld x %lld; expected %d x %lld x "
                          "%lld and %d x %lld x %lld", (long long)w->dims[0],
                          (long long)w->dims[1], (long long)w->dims[2], (long long)r->dims[0],
                          (long long)r->dims[1], (long long)r->dims[2], k->directions,
                          (long long)rows, (long long)k->input, k->directions, (long long)rows,
                          (long long)k->hidden);
    }
    int64_t states = k->directions * k->batch * k->hidden;
    NORI__TRY(nori__nn_count(call, 3, "B", k->directions * 2 * rows));
    NORI__TRY(nori__nn_count(call, 4, "sequence_lens", k->batch));
    NORI__TRY(nori__nn_count(call, 5, "initial_h", states));
    if (k->kind == CELL_LSTM) {
        NORI__TRY(nori__nn_count(call, 6, "initial_c", states));
        NORI__TRY(nori__nn_count(call, 7, "P", k->directions * 3 * k->hidden));
    }
    return NORI_OK;
}

static nori_status recurrent(nori_call *call, cell_kind kind, bool bytes_read)
{
    cell k = {.kind = kind, .bytes = bytes_read, .gates = kind == CELL_LSTM ? 4 : kind == CELL_GRU ? 3 : 1};
    const char *direction = nori__attr_s(call->node, "direction", "forward");
    k.directions = nori__same(direction, "bidirectional") ? 2 : 1;
    k.layout = nori__attr_i(call->node, "layout", 0) != 0;
    k.clip = (double)nori__attr_f(call->node, "clip", 0);
    k.reset_after = nori__attr_i(call->node, "linear_before_reset", 0) != 0;
    k.input_forget = nori__attr_i(call->node, "input_forget", 0) != 0;
    NORI__TRY(check(call, &k));
    NORI__TRY(read_activations(call, kind == CELL_LSTM ? 3 : kind == CELL_GRU ? 2 : 1,
                               k.directions, k.acts));
    size_t bytes;
    int64_t n = k.hidden;
    double *room = nori__nn_scratch(call, k.input + 22 * n, sizeof *room, &bytes);
    if (!room) {
        return nori__no_memory(call->err);
    }
    k.x = room;
    k.sums = k.x + k.input;
    k.recurrent = k.sums + 4 * n;
    k.h = k.recurrent + 4 * n;
    k.c = k.h + n;
    k.bias = k.c + n;
    k.peephole = k.bias + 8 * n;
    k.read = k.peephole + 3 * n;
    if (nori__nn_wants(call, 0) && call->out[0]->bytes > 0) {
        memset(call->out[0]->data, 0, call->out[0]->bytes);
    }
    nori_status status = NORI_OK;
    for (int dir = 0; dir < k.directions; dir++) {
        bool reverse = dir == 1 || nori__same(direction, "reverse");
        load_state(call, 3, dir * 2 * k.gates * n, 2 * k.gates * n, k.bias);
        load_state(call, kind == CELL_LSTM ? 7 : UINT32_MAX, dir * 3 * n, 3 * n, k.peephole);
        for (int64_t b = 0; b < k.batch && status == NORI_OK; b++) {
            status = run_sequence(&k, call, dir, reverse, b);
        }
    }
    nori__release(call->allocator, room, bytes);
    return status;
}

static nori_status rnn(nori_call *call)
{
    return recurrent(call, CELL_RNN, false);
}

static nori_status gru(nori_call *call)
{
    return recurrent(call, CELL_GRU, false);
}

static nori_status lstm(nori_call *call)
{
    return recurrent(call, CELL_LSTM, false);
}

nori_status nori__ref_RNN(nori_call *call)
{
    return nori__nn_half(call, rnn);
}

nori_status nori__ref_GRU(nori_call *call)
{
    return nori__nn_half(call, gru);
}

nori_status nori__ref_LSTM(nori_call *call)
{
    return nori__nn_half(call, lstm);
}

nori_status nori__ref_lstm_bytes(nori_call *call)
{
    return recurrent(call, CELL_LSTM, true);
}

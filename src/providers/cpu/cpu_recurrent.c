/* cpu_recurrent.c: float LSTM, GRU and RNN with constant weights, and DynamicQuantizeLSTM, whose weights
 * are what its bytes stand for and which reads its input and state as bytes would hold them.
 *
 * The input's share of all sums is one product over many steps at once. Then the recurrence goes step
 * by step: a unit of work is two blocks of hidden units with all their gates, whose panels are
 * multiplied by the state and whose gates follow at once. Steps past a sequence's length leave Y at 0
 * and the states as they were. */
#include "providers/cpu/recurrent.h"
#include "providers/reference/ref.h"

#include <math.h>

#define CHUNK_FLOATS (256 * 1024) /* of sums of the input kept at once: in the second cache */
#define STEP_WORK (128 * 1024)    /* multiply-adds a step from which more threads take part */
#define FEW 4                     /* rows that f32_few_rows takes */
#define GATES_MAX 4
#define PIECE 1024                /* bytes on their way at once */

typedef struct recurrent_run {
    const nori__recurrent *s;
    const nori__kernels *kern;
    nori_call *call;
    size_t length, batch;
    size_t chunk;            /* steps of input sums at once */
    size_t each;             /* bytes of scratch a direction */
    size_t input_bytes;      /* and of what x stands for as bytes, behind them */
    const float *x, *h0, *c0;
    const int32_t *lengths;  /* or NULL: all steps */
    float *y, *y_h, *y_c;    /* or NULL */
    char *scratch;
} recurrent_run;

/* One direction at work. */
typedef struct direction {
    const recurrent_run *run;
    size_t index;
    bool backwards;
    int threads;
    float *sums;      /* [chunk][batch][columns], or [batch][chunk][columns] */
    float *h[2], *c;  /* [batch][hidden]: state before and after the step */
    float *reset;     /* [batch][hidden]: reset gate times state, where the h part waits; */
                      /* or what the state stands for as bytes, where those are read */
    const float *state; /* what the step reads */
    size_t t0, steps; /* the chunk */
    size_t t;         /* the step */
} direction;

static size_t units_of(const nori__recurrent *s)
{
    size_t nr = nori__kernels_get()->f32_nr;
    return (s->hidden + nr - 1) / nr;
}

/* ---- the input's share ---- */

static void input_part(const nori__product *p, size_t index, nori__product_part *part)
{
    const direction *d = p->user;
    const recurrent_run *r = d->run;
    const nori__recurrent *s = r->s;
    size_t row = s->batch_first ? index * r->length + d->t0 : d->t0 * r->batch;
    part->a = r->x + row * s->input;
    part->a_row = s->input;
    part->a_k = 1;
    part->b = s->w + d->index * s->w_step;
    part->c = d->sums + index * p->m * s->columns;
}

static void input_sums(direction *d)
{
    const recurrent_run *r = d->run;
    const nori__recurrent *s = r->s;
    size_t count = s->batch_first ? r->batch : 1, m = s->batch_first ? d->steps : d->steps * r->batch;
    const float *bias = s->bias ? s->bias + d->index * s->columns : NULL;
    if (m <= FEW) {
        nori__f32_finish f = {.col = bias};
        nori__product p = {.m = m, .user = d};
        for (size_t i = 0; i < count; i++) {
            nori__product_part part = {0};
            input_part(&p, i, &part);
            r->kern->f32_few_rows(m, s->columns, s->input, part.a, s->input, part.b, part.c,
                                  s->columns, &f);
        }
        return;
    }
    nori_call call = *r->call;
    call.threads = d->threads;
    nori__product p = {.count = count, .m = m, .n = s->columns, .k = s->input, .ldc = s->columns,
                       .col = bias, .part = input_part, .user = d};
    nori__product_run(&call, &p, NULL);
}

/* ---- one step ---- */

/* out[rows][columns] = state[rows][hidden] by one unit's panels. */
static void multiply(const recurrent_run *r, size_t rows, size_t columns, const float *state,
                     const float *panels, const float *bias, float *out, size_t ld)
{
    const nori__kernels *kern = r->kern;
    size_t k = r->s->hidden, nr = kern->f32_nr;
    nori__f32_finish f = {.col = bias};
    if (rows <= FEW) {
        kern->f32_few_rows(rows, columns, k, state, k, panels, out, ld, &f);
        return;
    }
    for (size_t j = 0; j < columns; j += nr, panels += nr * k) {
        f.col = bias ? bias + j : NULL;
        kern->f32_tile(rows, columns - j < nr ? columns - j : nr, k, state, k, 1, panels, out + j, ld,
                       &f);
    }
}

static bool active(const direction *d, size_t b)
{
    return !d->run->lengths || d->t < (size_t)d->run->lengths[b];
}

/* The gates of hidden units [j, j + n) of entry b; sums: of the recurrence. */
static void cell_step(const direction *d, size_t b, size_t j, size_t n, const float *sums,
                      const float *late)
{
    const recurrent_run *r = d->run;
    const nori__recurrent *s = r->s;
    size_t at = b * s->hidden + j, step = d->t - d->t0;
    size_t row = s->batch_first ? b * d->steps + step : step * r->batch + b;
    const float *x = d->sums + row * s->columns + j * s->gates;
    float *h = d->h[1] + at;
    if (!active(d, b)) {
        memcpy(h, d->h[0] + at, n * sizeof(float));
        return;
    }
    if (s->cell == NORI__CELL_LSTM) {
        r->kern->f32_lstm(n, x, sums, d->c + at, h);
    } else if (s->cell == NORI__CELL_GRU) {
        r->kern->f32_gru(n, x, sums, late, d->h[0] + at, h);
    } else {
        r->kern->f32_binary[NORI__B_ADD](n, x, 1, sums, 1, h);
        r->kern->f32_unary[s->function](n, h, h, NULL);
    }
    if (r->y) {
        size_t to = s->batch_first ? (b * r->length + d->t) * s->directions + d->index
                                   : (d->t * s->directions + d->index) * r->batch + b;
        memcpy(r->y + to * s->hidden + j, h, n * sizeof(float));
    }
}

/* Hidden units of one unit of work, for all entries of the batch. reset_only: GRU's first half. */
static void unit_step(const direction *d, size_t unit, bool reset_only)
{
    const recurrent_run *r = d->run;
    const nori__recurrent *s = r->s;
    size_t nr = r->kern->f32_nr, mr = r->kern->f32_mr, lanes = nr / 2, j = unit * nr;
    size_t n = s->hidden - j < nr ? s->hidden - j : nr, blocks = (n + lanes - 1) / lanes;
    size_t columns = blocks * lanes * s->early, ld = nr * s->early, k = s->hidden;
    const float *panels = s->r + d->index * s->r_step + j * s->early * k;
    const float *late = s->late ? s->late + d->index * s->late_step + j * k : NULL;
    size_t width = s->columns / s->gates * (s->late ? 1 : s->gates);
    const float *bias = s->bias_r ? s->bias_r + d->index * width + j * (s->late ? 1 : s->gates) : NULL;
    float sums[NORI__MR_MAX * GATES_MAX * NORI__NR_MAX], waited[NORI__MR_MAX * NORI__NR_MAX];
    for (size_t b = 0; b < r->batch; b += mr) {
        size_t rows = r->batch - b < mr ? r->batch - b : mr;
        multiply(r, rows, columns, d->state + b * k, panels, late ? NULL : bias, sums, ld);
        if (late && !reset_only) {
            multiply(r, rows, blocks * lanes, d->reset + b * k, late, bias, waited, nr);
        }
        for (size_t i = 0; i < rows; i++) {
            if (!reset_only) {
                cell_step(d, b + i, j, n, sums + i * ld, late ? waited + i * nr : NULL);
                continue;
            }
            size_t step = d->t - d->t0, at = (b + i) * k + j;
            size_t row = s->batch_first ? (b + i) * d->steps + step : step * r->batch + b + i;
            r->kern->f32_gru_reset(n, d->sums + row * s->columns + j * s->gates, sums + i * ld,
                                   d->h[0] + at, d->reset + at);
        }
    }
}

static void step_units(void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        unit_step(user, (size_t)u, false);
    }
}

static void reset_units(void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        unit_step(user, (size_t)u, true);
    }
}

/* Numbers as DynamicQuantizeLinear and DequantizeLinear leave them. */
static void read_as_bytes(const nori__kernels *kern, size_t n, const float *x, float *y)
{
    uint8_t bytes[PIECE];
    float low = 0, high = 0;
    kern->f32_range(n, x, &low, &high);
    float scale = high > low ? (high - low) / 255 : 1, zero = 0 - low / scale;
    int32_t z = (int32_t)rintf(zero > 0 ? (zero < 255 ? zero : 255) : 0);
    for (size_t i = 0; i < n; i += PIECE) {
        size_t m = n - i < PIECE ? n - i : PIECE;
        kern->quantize(m, x + i, scale, z, false, bytes);
        kern->dequantize(m, bytes, false, z, scale, y + i);
    }
}

static void run_step(direction *d)
{
    const recurrent_run *r = d->run;
    const nori__recurrent *s = r->s;
    d->state = d->h[0];
    if (s->as_bytes) {
        for (size_t b = 0; b < r->batch; b++) {
            read_as_bytes(r->kern, s->hidden, d->h[0] + b * s->hidden, d->reset + b * s->hidden);
        }
        d->state = d->reset;
    }
    int64_t units = (int64_t)units_of(s), grain = units;
    if (d->threads > 1 && r->batch * s->gates * s->hidden * s->hidden >= STEP_WORK) {
        grain = (units + d->threads - 1) / d->threads;
    }
    if (s->late) {
        nori__cpu_for(r->call->pool, d->threads, units, grain, reset_units, d);
    }
    nori__cpu_for(r->call->pool, d->threads, units, grain, step_units, d);
    float *before = d->h[0];
    d->h[0] = d->h[1];
    d->h[1] = before;
}

/* ---- a direction, all steps ---- */

/* Index of the state of a batch entry, in units of hidden. */
static size_t state_at(const direction *d, size_t b)
{
    const nori__recurrent *s = d->run->s;
    return s->batch_first ? b * s->directions + d->index : d->index * d->run->batch + b;
}

static void load_state(const direction *d, const float *from, float *to)
{
    size_t n = d->run->s->hidden;
    for (size_t b = 0; b < d->run->batch; b++) {
        if (from) {
            memcpy(to + b * n, from + state_at(d, b) * n, n * sizeof(float));
        } else {
            memset(to + b * n, 0, n * sizeof(float));
        }
    }
}

static void store_state(const direction *d, const float *from, float *to)
{
    size_t n = d->run->s->hidden;
    for (size_t b = 0; to && b < d->run->batch; b++) {
        memcpy(to + state_at(d, b) * n, from + b * n, n * sizeof(float));
    }
}

static void run_direction(const recurrent_run *r, size_t index, int threads)
{
    const nori__recurrent *s = r->s;
    size_t states = r->batch * s->hidden;
    float *at = (float *)(void *)(r->scratch + index * r->each);
    direction d = {.run = r, .index = index, .backwards = s->reversed || index == 1,
                   .threads = threads, .sums = at};
    at += r->chunk * r->batch * s->columns;
    d.h[0] = at;
    d.h[1] = at + states;
    d.c = at + 2 * states;
    d.reset = at + 3 * states;
    load_state(&d, r->h0, d.h[0]);
    load_state(&d, r->c0, d.c);
    /* A reversed sequence begins at its own last step: entries join as their steps come. */
    for (size_t done = 0; done < r->length; done += d.steps) {
        d.steps = r->length - done < r->chunk ? r->length - done : r->chunk;
        d.t0 = d.backwards ? r->length - done - d.steps : done;
        input_sums(&d);
        for (size_t i = 0; i < d.steps; i++) {
            d.t = d.t0 + (d.backwards ? d.steps - 1 - i : i);
            run_step(&d);
        }
    }
    store_state(&d, d.h[0], r->y_h);
    store_state(&d, d.c, r->y_c);
}

static void direction_units(void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    for (int64_t d = begin; d < end; d++) {
        run_direction(user, (size_t)d, 1);
    }
}

/* ---- the kernel ---- */

static bool counts(const nori_call *call, uint32_t i, size_t n, nori_type type)
{
    return !nori__cpu_has(call, i) ||
           (call->in[i]->type == type && (size_t)call->in[i]->count == n);
}

static float *wanted(const nori_call *call, uint32_t i)
{
    return i < call->n_out && call->out[i] ? call->out[i]->data : NULL;
}

/* False: a form, or wrong sizes, for the reference kernel. */
static bool recurrent_shapes(const nori__recurrent *s, const nori_call *call, recurrent_run *r)
{
    const nori_tensor *x = call->in[0];
    memset(r, 0, sizeof(*r));
    if (!x || x->type != NORI_FLOAT || x->rank != 3 || (size_t)x->dims[2] != s->input ||
        x->count == 0) {
        return false;
    }
    r->s = s;
    r->kern = nori__kernels_get();
    r->length = (size_t)x->dims[s->batch_first ? 1 : 0];
    r->batch = (size_t)x->dims[s->batch_first ? 0 : 1];
    size_t states = s->directions * r->batch * s->hidden, row, sums;
    if (!counts(call, 4, r->batch, NORI_INT32) || !counts(call, 5, states, NORI_FLOAT) ||
        !counts(call, 6, states, NORI_FLOAT) || !nori__mul_size(r->batch, s->columns, &row)) {
        return false;
    }
    r->chunk = CHUNK_FLOATS / row < 1 ? 1 : CHUNK_FLOATS / row;
    r->chunk = r->chunk < r->length ? r->chunk : r->length;
    if (s->as_bytes && (!nori__mul_size((size_t)x->count, sizeof(float), &r->input_bytes) ||
                     r->input_bytes >= SIZE_MAX / 4)) {
        return false;
    }
    r->input_bytes = nori__cpu_round(r->input_bytes);
    return nori__mul_size(r->chunk, row, &sums) &&
           nori__add_size(sums, 4 * r->batch * s->hidden, &sums) &&
           nori__mul_size(sums, sizeof(float), &sums) && sums < SIZE_MAX / 4 &&
           (r->each = nori__cpu_round(sums)) > 0;
}

static size_t recurrent_workspace(const void *state, const nori_call *call)
{
    recurrent_run r;
    const nori__recurrent *s = state;
    return recurrent_shapes(s, call, &r) ? r.each * s->directions + r.input_bytes : 0;
}

static nori_status recurrent_kernel(const void *state, nori_call *call)
{
    const nori__recurrent *s = state;
    recurrent_run r;
    if (!recurrent_shapes(s, call, &r)) {
        return nori__cpu_reference(call);
    }
    r.call = call;
    r.x = call->in[0]->data;
    r.lengths = nori__cpu_has(call, 4) ? call->in[4]->data : NULL;
    r.h0 = nori__cpu_has(call, 5) ? call->in[5]->data : NULL;
    r.c0 = s->cell == NORI__CELL_LSTM && nori__cpu_has(call, 6) ? call->in[6]->data : NULL;
    r.y = wanted(call, 0);
    r.y_h = wanted(call, 1);
    r.y_c = s->cell == NORI__CELL_LSTM ? wanted(call, 2) : NULL;
    for (size_t b = 0; r.lengths && b < r.batch; b++) {
        if (r.lengths[b] < 0 || (size_t)r.lengths[b] > r.length) {
            return nori__cpu_reference(call); /* it has the message */
        }
    }
    nori__cpu_scratch scratch;
    NORI__TRY(nori__cpu_take(call, r.each * s->directions + r.input_bytes, &scratch));
    r.scratch = scratch.data;
    if (s->as_bytes) {
        float *x = (float *)(void *)(r.scratch + r.each * s->directions);
        read_as_bytes(r.kern, (size_t)call->in[0]->count, r.x, x);
        r.x = x;
    }
    if (r.lengths && r.y) {
        memset(r.y, 0, call->out[0]->bytes);
    }
    int threads = nori__cpu_threads(call);
    if (s->directions == 2 && threads > 1) {
        nori__parallel_for(call->pool, 2, 2, 1, direction_units, &r);
    } else {
        for (size_t d = 0; d < s->directions; d++) {
            run_direction(&r, d, threads);
        }
    }
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}

const nori__kernel nori__cpu_dynamic_lstm = {.size = sizeof(nori__kernel),
                                             .prepare = nori__recurrent_bytes_prepare,
                                             .workspace = recurrent_workspace,
                                             .run = recurrent_kernel,
                                             .release = nori__recurrent_release};
const nori__kernel nori__cpu_recurrent = {.size = sizeof(nori__kernel),
                                          .prepare = nori__recurrent_prepare,
                                          .workspace = recurrent_workspace,
                                          .run = recurrent_kernel,
                                          .release = nori__recurrent_release,
                                          .packed_inputs = 0xe};

/* cpu_qrows.c: com.microsoft QLinearConcat and QLinearSoftmax: the same bytes as their reference
 * kernels give. */
#include "providers/cpu/integers.h"
#include "providers/cpu/qscale.h"
#include "providers/reference/ref.h"

#define PIECE 65536

/* ---- Concat: Y_scale, Y_zero, then tensor, scale, zero point of each part ---- */

/* What becomes of a part's bytes. */
typedef struct concat_part {
    bool copies; /* both are quantized alike */
    uint8_t table[256];
} concat_part;

typedef struct concat_state { /* NULL: scales are not constants, and read in each run */
    size_t bytes;
    concat_part parts[];
} concat_state;

typedef struct concat_job {
    const uint8_t *x;
    uint8_t *y;
    size_t length, step;   /* bytes of a part's run, from one to the next in y */
    size_t pieces;
    const concat_part *part;
} concat_job;

static void concat_units(void *user, int64_t begin, int64_t end, int thread)
{
    const concat_job *job = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t run = (size_t)u / job->pieces, from = (size_t)u % job->pieces * PIECE;
        size_t n = job->length - from < PIECE ? job->length - from : PIECE;
        const uint8_t *x = job->x + run * job->length + from;
        uint8_t *y = job->y + run * job->step + from;
        if (job->part->copies) {
            memcpy(y, x, n);
        } else {
            nori__kernels_get()->x8_table(n, x, job->part->table, y);
        }
    }
}

static void fill(concat_part *part, nori__qscale x, nori__qscale y, bool is_signed)
{
    part->copies = true;
    for (int i = 0; i < 256; i++) {
        int32_t q = is_signed ? (int8_t)(uint8_t)i : i;
        float v = (float)(q - x.zero) * x.scale;
        part->table[i] = nori__qscale_byte(v / y.scale, y.zero, is_signed);
        part->copies = part->copies && part->table[i] == i;
    }
}

/* A scale and its zero point that are constants of the node. */
static bool constant_scale(const nori__node *n, uint32_t scale, nori__qscale *q, nori_type *type)
{
    const nori_tensor *s = nori__value_const(nori__cpu_value(n, scale));
    const nori_tensor *z = nori__value_const(nori__cpu_value(n, scale + 1));
    if (!s || s->type != NORI_FLOAT || s->count != 1 || !z || z->count != 1 ||
        !nori__cpu_is_8bit((nori_type)z->type) || (*type != NORI_UNDEFINED &&
                                                   *type != (nori_type)z->type)) {
        return false;
    }
    *type = (nori_type)z->type;
    *q = (nori__qscale){*(const float *)s->data, (int32_t)nori__tensor_get_i64(z, 0)};
    return true;
}

/* Tables of all parts, one after another, made once where scales are constants. */
static nori_status concat_prepare(const nori__node *n, const nori_allocator *a, void **state,
                                  size_t *state_bytes, nori_error *err)
{
    nori__qscale own, q;
    nori_type type = NORI_UNDEFINED;
    size_t parts = n->input_count >= 5 && n->input_count % 3 == 2 ? n->input_count / 3 : 0;
    bool known = parts > 0 && constant_scale(n, 0, &own, &type);
    for (size_t i = 0; known && i < parts; i++) {
        known = constant_scale(n, (uint32_t)(3 + 3 * i), &q, &type);
    }
    if (!known) {
        return NORI_OK; /* the run reads them */
    }
    size_t bytes = sizeof(concat_state) + parts * sizeof(concat_part);
    concat_state *made = nori__alloc(a, bytes);
    if (!made) {
        return nori__no_memory(err);
    }
    made->bytes = bytes;
    for (size_t i = 0; i < parts; i++) {
        (void)constant_scale(n, (uint32_t)(3 + 3 * i), &q, &type);
        fill(&made->parts[i], q, own, type == NORI_INT8);
    }
    *state = made;
    *state_bytes = bytes;
    return NORI_OK;
}

static void concat_release(void *state, const nori_allocator *a)
{
    concat_state *s = state;
    nori__release(a, s, s ? s->bytes : 0);
}

static bool parts_fit(const nori_call *call, int axis)
{
    const nori_tensor *y = call->out[0];
    int64_t length = 0;
    for (uint32_t i = 2; i < call->n_in; i += 3) {
        const nori_tensor *x = call->in[i];
        if (!x || x->type != y->type || x->rank != y->rank) {
            return false;
        }
        for (int d = 0; d < y->rank; d++) {
            if (d != axis && x->dims[d] != y->dims[d]) {
                return false;
            }
        }
        length += x->dims[axis];
    }
    return length == y->dims[axis];
}

static nori_status concat_run(const void *state, nori_call *call)
{
    nori_tensor *y = call->n_out > 0 ? call->out[0] : NULL;
    const concat_state *made = state;
    concat_part room;
    nori__qscale own, part = {1, 0};
    int axis;
    if (!y || !nori__cpu_is_8bit((nori_type)y->type) || call->n_in < 5 || call->n_in % 3 != 2 ||
        nori__fix_axis(NULL, nori__attr_i(call->node, "axis", 0), y->rank, &axis) != NORI_OK ||
        !nori__qscale_read(call, 0, 1, y->type, &own) || !parts_fit(call, axis)) {
        return nori__cpu_reference(call);
    }
    for (uint32_t i = 2; i < call->n_in; i += 3) {
        if (!nori__qscale_read(call, i + 1, i + 2, y->type, &part)) {
            return nori__cpu_reference(call);
        }
    }
    nori__ref_split whole = nori__ref_split_at(y, axis);
    concat_job job = {.y = y->data, .step = (size_t)(whole.length * whole.inner)};
    for (uint32_t i = 2; i < call->n_in && y->count > 0; i += 3) {
        const nori_tensor *x = call->in[i];
        if (x->count == 0) {
            continue;
        }
        if (!made) {
            (void)nori__qscale_read(call, i + 1, i + 2, y->type, &part);
            fill(&room, part, own, y->type == NORI_INT8);
        }
        job.part = made ? &made->parts[(i - 2) / 3] : &room;
        job.x = x->data;
        job.length = (size_t)x->count / (size_t)whole.outer;
        job.pieces = (job.length + PIECE - 1) / PIECE;
        nori__parallel_for(call->pool, nori__cpu_threads(call), whole.outer * (int64_t)job.pieces,
                           (int64_t)(1 + PIECE / job.length), concat_units, &job);
        job.y += job.length;
    }
    return NORI_OK;
}

const nori__kernel nori__cpu_q8_concat = {.size = sizeof(nori__kernel),
                                          .prepare = concat_prepare,
                                          .run = concat_run,
                                          .release = concat_release};

/* ---- Softmax: X, X_scale, X_zero, Y_scale, Y_zero ---- */

#define LINES 4 /* summed side by side: each sum waits for its last addition */

typedef struct softmax_job {
    double power[256]; /* exp of so many steps below the largest */
    const uint8_t *x;
    uint8_t *y;
    size_t length, inner;
    nori__qscale out;
    bool is_signed, falling; /* powers, as they do for scales that make sense */
} softmax_job;

/* Values whose order as unsigned bytes is that of the numbers. */
static uint8_t flip(const softmax_job *job)
{
    return job->is_signed ? 0x80 : 0;
}

/* How far the values of a line reach down from the largest one. */
static int32_t softmax_reach(const softmax_job *job, const uint8_t *x, uint8_t most)
{
    uint8_t f = flip(job), least = most;
    for (size_t i = 0; i < job->length * job->inner; i += job->inner) {
        uint8_t v = x[i] ^ f;
        least = v < least ? v : least;
    }
    return most - least;
}

/* The largest of each line and the sum of its powers, in the order of the elements. */
static void softmax_sums(const softmax_job *job, const uint8_t *const x[LINES],
                         uint8_t most[LINES], double sum[LINES])
{
    const uint8_t *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3], f = flip(job);
    uint8_t m0 = 0, m1 = 0, m2 = 0, m3 = 0;
    size_t end = job->length * job->inner;
    for (size_t i = 0; i < end; i += job->inner) {
        uint8_t a = x0[i] ^ f, b = x1[i] ^ f, c = x2[i] ^ f, d = x3[i] ^ f;
        m0 = a > m0 ? a : m0;
        m1 = b > m1 ? b : m1;
        m2 = c > m2 ? c : m2;
        m3 = d > m3 ? d : m3;
    }
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (size_t i = 0; i < end; i += job->inner) {
        s0 += job->power[m0 - (x0[i] ^ f)];
        s1 += job->power[m1 - (x1[i] ^ f)];
        s2 += job->power[m2 - (x2[i] ^ f)];
        s3 += job->power[m3 - (x3[i] ^ f)];
    }
    most[0] = m0, most[1] = m1, most[2] = m2, most[3] = m3;
    sum[0] = s0, sum[1] = s1, sum[2] = s2, sum[3] = s3;
}

static uint8_t share(const softmax_job *job, int32_t below, double sum)
{
    double v = job->power[below] / sum / (double)job->out.scale;
    return nori__qscale_byte((float)v, job->out.zero, job->is_signed);
}

/* Results of all values a line may hold. A product stands for the two divisions where it lies so far
 * from a tie that both round to the same number; from the first 0 on all are 0. */
static void softmax_table(const softmax_job *job, uint8_t most, int32_t reach, double sum,
                          uint8_t table[256])
{
    const double near = 1e-4;
    double inverse = 1 / (sum * (double)job->out.scale);
    int32_t low = job->is_signed ? -128 : 0;
    uint8_t f = flip(job);
    memset(table, nori__qscale_byte(0, job->out.zero, job->is_signed), 256);
    for (int32_t below = 0; below <= reach; below++) {
        uint8_t *to = &table[(uint8_t)(most - below) ^ f];
        double v = job->power[below] * inverse + 0.5;
        if (v >= 0.5 && v < 1000) {
            int32_t whole = (int32_t)v;
            double rest = v - whole;
            if (whole == 0 && rest < 1 - near && job->falling) {
                return;
            }
            if (rest > near && rest < 1 - near) {
                int32_t q = whole + job->out.zero;
                *to = (uint8_t)(q < low ? low : q < low + 255 ? q : low + 255);
                continue;
            }
        }
        *to = share(job, below, sum);
    }
}

static void softmax_units(void *user, int64_t begin, int64_t end, int thread)
{
    const softmax_job *job = user;
    (void)thread;
    for (int64_t u = begin; u < end; u += LINES) {
        const uint8_t *x[LINES];
        size_t at[LINES], lines = end - u < LINES ? (size_t)(end - u) : LINES;
        uint8_t most[LINES], table[256];
        double sum[LINES];
        for (size_t l = 0; l < LINES; l++) { /* what lines are missing are the first one again */
            size_t unit = (size_t)u + (l < lines ? l : 0);
            at[l] = unit / job->inner * job->length * job->inner + unit % job->inner;
            x[l] = job->x + at[l];
        }
        softmax_sums(job, x, most, sum);
        for (size_t l = 0; l < lines; l++) {
            uint8_t *y = job->y + at[l];
            softmax_table(job, most[l], softmax_reach(job, x[l], most[l]), sum[l], table);
            for (size_t i = 0; i < job->length * job->inner; i += job->inner) {
                y[i] = table[x[l][i]];
            }
        }
    }
}

static nori_status softmax_run(const void *state, nori_call *call)
{
    nori_tensor *y = call->n_out > 0 ? call->out[0] : NULL;
    const nori_tensor *x = nori__ref_in(call, 0);
    nori__qscale in;
    softmax_job job;
    int axis;
    (void)state;
    if (!x || !y || !nori__cpu_is_8bit((nori_type)y->type) || x->type != y->type ||
        x->count != y->count || nori__attr_i(call->node, "opset", 13) < 13 ||
        nori__fix_axis(NULL, nori__attr_i(call->node, "axis", -1), y->rank, &axis) != NORI_OK ||
        !nori__qscale_read(call, 1, 2, y->type, &in) ||
        !nori__qscale_read(call, 3, 4, y->type, &job.out)) {
        return nori__cpu_reference(call);
    }
    nori__ref_split s = nori__ref_split_at(x, axis);
    job.x = x->data;
    job.y = y->data;
    job.length = (size_t)s.length;
    job.inner = (size_t)s.inner;
    job.is_signed = y->type == NORI_INT8;
    for (int i = 0; i < 256; i++) {
        job.power[i] = exp((double)-i * (double)in.scale);
    }
    job.falling = in.scale > 0;
    if (x->count > 0) {
        nori__parallel_for(call->pool, nori__cpu_threads(call), s.outer * s.inner,
                           LINES * (1 + 1024 / s.length), softmax_units, &job);
    }
    return NORI_OK;
}

const nori__kernel nori__cpu_q8_softmax = {.size = sizeof(nori__kernel), .run = softmax_run};

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

typedef struct softmax_job {
    double power[256]; /* exp of so many steps below the largest */
    const uint8_t *x;
    uint8_t *y;
    size_t length, inner;
    nori__qscale out;
    bool is_signed;
} softmax_job;

static int32_t number(uint8_t v, bool is_signed)
{
    return is_signed ? (int8_t)v : v;
}

static uint8_t share(const softmax_job *job, int32_t below, double sum)
{
    double v = job->power[below] / sum / (double)job->out.scale;
    return nori__qscale_byte((float)v, job->out.zero, job->is_signed);
}

static void softmax_line(const softmax_job *job, const uint8_t *x, uint8_t *y)
{
    int32_t most = -128;
    double sum = 0;
    uint8_t table[256];
    for (size_t i = 0; i < job->length; i++) {
        int32_t q = number(x[i * job->inner], job->is_signed);
        most = q > most ? q : most;
    }
    for (size_t i = 0; i < job->length; i++) {
        sum += job->power[most - number(x[i * job->inner], job->is_signed)];
    }
    if (job->length < 256) {
        for (size_t i = 0; i < job->length; i++) {
            y[i * job->inner] =
                share(job, most - number(x[i * job->inner], job->is_signed), sum);
        }
        return;
    }
    for (int32_t below = 0; below < 256; below++) {
        table[(uint8_t)(most - below)] = share(job, below, sum);
    }
    for (size_t i = 0; i < job->length; i++) {
        y[i * job->inner] = table[x[i * job->inner]];
    }
}

static void softmax_units(void *user, int64_t begin, int64_t end, int thread)
{
    const softmax_job *job = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t at = (size_t)u / job->inner * job->length * job->inner + (size_t)u % job->inner;
        softmax_line(job, job->x + at, job->y + at);
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
    if (x->count > 0) {
        nori__parallel_for(call->pool, nori__cpu_threads(call), s.outer * s.inner,
                           1 + 4096 / s.length, softmax_units, &job);
    }
    return NORI_OK;
}

const nori__kernel nori__cpu_q8_softmax = {.size = sizeof(nori__kernel), .run = softmax_run};

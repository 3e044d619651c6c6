/* cpu_qelements.c: element by element on 8-bit values: Table, com.microsoft QLinearAdd, QLinearMul. */
#include "providers/cpu/cpu.h"
#include "providers/cpu/integers.h"
#include "providers/cpu/qscale.h"
#include "providers/reference/ref.h"

#define TABLE_GRAIN 32768

typedef struct table_job {
    const uint8_t *x, *table;
    uint8_t *y;
} table_job;

static void table_units(void *user, int64_t begin, int64_t end, int thread)
{
    const table_job *job = user;
    (void)thread;
    nori__kernels_get()->x8_table((size_t)(end - begin), job->x + begin, job->table,
                                  job->y + begin);
}

static nori_status table_run(const void *state, nori_call *call)
{
    table_job job = {call->in[0]->data, call->in[1]->data, call->out[0]->data};
    (void)state;
    nori__parallel_for(call->pool, nori__cpu_threads(call), call->in[0]->count, TABLE_GRAIN,
                       table_units, &job);
    return NORI_OK;
}

const nori__kernel nori__cpu_table = {.size = sizeof(nori__kernel), .run = table_run};

/* ---- two operands: A, A_scale, A_zero, B, B_scale, B_zero, C_scale, C_zero ---- */

static void add_line(const nori__ref_line *line)
{
    nori__kernels_get()->q8_add((size_t)line->n, NORI__LINE_IN(line, 0, uint8_t),
                                (size_t)line->step[0], NORI__LINE_IN(line, 1, uint8_t),
                                (size_t)line->step[1], line->user, NORI__LINE_OUT(line, uint8_t));
}

static void mul_line(const nori__ref_line *line)
{
    nori__kernels_get()->q8_mul((size_t)line->n, NORI__LINE_IN(line, 0, uint8_t),
                                (size_t)line->step[0], NORI__LINE_IN(line, 1, uint8_t),
                                (size_t)line->step[1], line->user, NORI__LINE_OUT(line, uint8_t));
}

static nori_status binary_run(const void *state, nori_call *call)
{
    nori__qscale a, b, y;
    const nori_tensor *out = call->n_out > 0 ? call->out[0] : NULL;
    bool product = nori__node_is(call->node, NORI__OP_MS_QLinearMul);
    (void)state;
    if (!out || !nori__cpu_has(call, 0) || !nori__cpu_has(call, 3) ||
        !nori__cpu_is_8bit((nori_type)out->type) || call->in[0]->type != out->type ||
        call->in[3]->type != out->type || !nori__qscale_read(call, 1, 2, out->type, &a) ||
        !nori__qscale_read(call, 4, 5, out->type, &b) ||
        !nori__qscale_read(call, 6, 7, out->type, &y)) {
        return nori__cpu_reference(call);
    }
    nori__q8_pair q = {.a_scale = a.scale, .b_scale = b.scale, .y_scale = y.scale,
                       .a_zero = a.zero, .b_zero = b.zero, .y_zero = y.zero,
                       .is_signed = out->type == NORI_INT8};
    if (product) {
        q.y_scale = a.scale * b.scale / y.scale;
    }
    const nori_tensor *from[2] = {call->in[0], call->in[3]};
    return nori__ref_lines(call, call->out[0], from, 2, product ? mul_line : add_line, &q);
}

const nori__kernel nori__cpu_q8_binary = {.size = sizeof(nori__kernel), .run = binary_run};

/* ref_scan.c: Scan: a body run along axes of its scan inputs, of a given length. The form of
 * opset 8 has a batch axis in front of everything, and a length for each sample of the batch;
 * what a sample does not reach is zero in its scan outputs. */
#include "providers/reference/ref_control.h"

typedef struct scan {
    nori__body_runs b;
    nori_call *call;
    uint32_t n, m;  /* states, scan inputs */
    uint32_t first; /* input of the first state */
    bool old;       /* the form of opset 8 */
    int64_t length;
} scan;

static int64_t entry(const nori__node *node, const char *name, uint32_t i)
{
    size_t n;
    const int64_t *v = nori__attr_ints(node, name, &n);
    return v && i < n ? v[i] : 0;
}

static nori_status input_axis(scan *s, uint32_t i, int *axis)
{
    const nori_tensor *t = s->call->in[s->first + s->n + i];
    int64_t given = s->old ? 1 : entry(s->call->node, "scan_input_axes", i);
    return nori__ref_axis(s->call, given, t->rank, axis);
}

/* Element t of scan input i as a new tensor, of one sample in the old form. */
static nori_status element(scan *s, uint32_t i, int64_t sample, int64_t t, nori_tensor **out)
{
    const nori_tensor *in = s->call->in[s->first + s->n + i];
    int64_t dims[NORI_MAX_RANK], step[NORI_MAX_RANK];
    nori__move m = {.rank = 0};
    int axis;
    NORI__TRY(input_axis(s, i, &axis));
    const char *way = s->old ? "directions" : "scan_input_directions";
    if (entry(s->call->node, way, i) != 0) {
        t = s->length - 1 - t;
    }
    nori__ref_strides(in->rank, in->dims, step);
    m.from = t * step[axis] + (s->old ? sample * step[0] : 0);
    for (int d = s->old ? 1 : 0; d < in->rank; d++) {
        if (d != axis) {
            dims[m.rank] = m.dims[m.rank] = in->dims[d];
            m.from_step[m.rank++] = step[d];
        }
    }
    nori__ref_strides(m.rank, dims, m.to_step);
    NORI__TRY(
        nori__tensor_new(s->call->allocator, (nori_type)in->type, m.rank, dims, out, s->call->err));
    nori_status status = nori__move_all(&m, in, *out, s->call->err);
    if (status != NORI_OK) {
        nori_tensor_free(*out);
        *out = NULL;
    }
    return status;
}

/* Runs the body `length` times; b->in[0 .. n) hold the states before and after. */
static nori_status iterate(scan *s, int64_t sample, int64_t length)
{
    nori__body_runs *b = &s->b;
    for (int64_t t = 0; t < length; t++) {
        nori_status status = NORI_OK;
        for (uint32_t i = 0; i < s->m; i++) {
            b->in[s->n + i] = NULL;
        }
        for (uint32_t i = 0; status == NORI_OK && i < s->m; i++) {
            nori_tensor *part = NULL;
            status = element(s, i, sample, t, &part);
            b->in[s->n + i] = part;
        }
        if (status == NORI_OK) {
            status = nori__body_run(b);
        }
        for (uint32_t i = 0; i < s->m; i++) {
            nori_tensor_free((nori_tensor *)(uintptr_t)b->in[s->n + i]);
        }
        NORI__TRY(status);
        NORI__TRY(nori__body_push(b));
        for (uint32_t i = 0; i < s->n; i++) {
            nori_tensor_free(b->state[i]);
            b->state[i] = b->out[i];
            b->out[i] = NULL;
            b->in[i] = b->state[i];
        }
    }
    return NORI_OK;
}

static nori_status run_new(scan *s)
{
    nori_call *call = s->call;
    for (uint32_t i = 0; i < s->n; i++) {
        s->b.in[i] = call->in[i];
    }
    NORI__TRY(iterate(s, 0, s->length));
    for (uint32_t i = 0; i < s->n && i < call->n_out; i++) {
        NORI__TRY(call->exec->set(call, i, (nori_tensor *)(uintptr_t)s->b.in[i]));
    }
    for (uint32_t k = 0; k < s->b.n_scan && s->n + k < call->n_out; k++) {
        NORI__TRY(nori__body_stack(&s->b, k, s->n + k, entry(call->node, "scan_output_axes", k),
                                   entry(call->node, "scan_output_directions", k) != 0));
    }
    return NORI_OK;
}

/* Copies t into place `at` of output o, which is made when it is first written: `lead` sizes, then
 * t's shape. */
static nori_status gather_old(scan *s, nori_tensor **made, uint32_t o, int lead,
                              const int64_t *sizes, const nori_tensor *t, int64_t at)
{
    int64_t dims[NORI_MAX_RANK + 2];
    int rank = lead + t->rank;
    for (int d = 0; d < rank && d < NORI_MAX_RANK + 2; d++) {
        dims[d] = d < lead ? sizes[d] : t->dims[d - lead];
    }
    if (!*made) {
        if (rank > NORI_MAX_RANK) {
            return nori__fail(s->call->err, NORI_ERROR_LIMIT, "rank %d, at most %d is taken", rank,
                              NORI_MAX_RANK);
        }
        NORI__TRY(s->call->exec->alloc(s->call, o, (nori_type)t->type, rank, dims, made));
        NORI__TRY(nori__move_fill(NULL, 0, *made, s->call->err));
    }
    bool same = (*made)->type == t->type && (*made)->rank == rank;
    for (int d = lead; same && d < rank; d++) {
        same = (*made)->dims[d] == dims[d];
    }
    if (!same) {
        return nori__fail(s->call->err, NORI_ERROR_DATA,
                          "output %u changes its type or shape between iterations", o);
    }
    return nori__move_run(t, 0, *made, at * t->count, t->count, s->call->err);
}

static nori_status run_old_sample(scan *s, int64_t batch, int64_t sample, int64_t length,
                                  nori_tensor **made)
{
    nori_call *call = s->call;
    nori__body_runs *b = &s->b;
    int64_t sizes[2] = {batch, s->length};
    for (uint32_t i = 0; i < s->n; i++) { /* this sample of the initial state */
        const nori_tensor *in = call->in[s->first + i];
        if (in->rank < 1 || in->dims[0] != batch) {
            return nori__fail(call->err, NORI_ERROR_DATA, "state %u has no batch axis of size %lld",
                              i, (long long)batch);
        }
        nori_tensor_free(b->state[i]);
        b->state[i] = NULL;
        NORI__TRY(nori__tensor_new(call->allocator, (nori_type)in->type, in->rank - 1, in->dims + 1,
                                   &b->state[i], call->err));
        int64_t n = b->state[i]->count;
        NORI__TRY(nori__move_run(in, sample * n, b->state[i], 0, n, call->err));
        b->in[i] = b->state[i];
    }
    NORI__TRY(iterate(s, sample, length));
    for (uint32_t i = 0; i < s->n && i < call->n_out; i++) {
        NORI__TRY(gather_old(s, &made[i], i, 1, sizes, b->in[i], sample));
    }
    for (uint32_t k = 0; k < b->n_scan; k++) {
        nori__vec *items = &b->stacks[k].items;
        for (size_t t = 0; t < items->count && s->n + k < call->n_out; t++) {
            NORI__TRY(gather_old(s, &made[s->n + k], s->n + k, 2, sizes, items->items[t],
                                 sample * s->length + (int64_t)t));
        }
        nori__stack_clear(&b->stacks[k]);
    }
    return NORI_OK;
}

static nori_status run_old(scan *s)
{
    nori_call *call = s->call;
    const nori_tensor *lengths = nori__ref_in(call, 0);
    int64_t batch = call->in[s->first + s->n]->dims[0];
    nori_tensor **made = nori__arena_array(&s->b.arena, (size_t)call->n_out + 1, sizeof(*made));
    if (!made) {
        return nori__no_memory(call->err);
    }
    if (lengths && (lengths->kind != NORI_KIND_TENSOR || lengths->type != NORI_INT64 ||
                    lengths->count != batch)) {
        return nori__fail(call->err, NORI_ERROR_DATA, "sequence_lens must be %lld int64",
                          (long long)batch);
    }
    for (int64_t i = 0; i < batch; i++) {
        int64_t length = lengths ? ((const int64_t *)lengths->data)[i] : s->length;
        if (length < 0 || length > s->length) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "sequence length %lld is outside of an axis of size %lld",
                              (long long)length, (long long)s->length);
        }
        NORI__TRY(run_old_sample(s, batch, i, length, made));
    }
    for (uint32_t o = 0; o < call->n_out; o++) { /* no iteration at all: nothing tells the shape */
        if (!made[o]) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "output %u: there was no iteration, its shape is not known", o);
        }
    }
    return NORI_OK;
}

/* All scan inputs are tensors and as long as each other. */
static nori_status check(scan *s)
{
    for (uint32_t i = 0; i < s->n + s->m; i++) {
        NORI__TRY(nori__ref_need(s->call, s->first + i));
    }
    for (uint32_t i = 0; i < s->m; i++) {
        const nori_tensor *t = s->call->in[s->first + s->n + i];
        int axis;
        NORI__TRY(input_axis(s, i, &axis));
        if (i == 0) {
            s->length = t->dims[axis];
        } else if (t->dims[axis] != s->length) {
            return nori__fail(s->call->err, NORI_ERROR_DATA,
                              "scan input %u has %lld elements, the first has %lld", i,
                              (long long)t->dims[axis], (long long)s->length);
        }
        if (s->old && t->dims[0] != s->call->in[s->first + s->n]->dims[0]) {
            return nori__fail(s->call->err, NORI_ERROR_DATA, "scan input %u has another batch", i);
        }
    }
    return NORI_OK;
}

nori_status nori__ref_Scan(nori_call *call)
{
    const nori__graph *g = nori__attr_graph(call->node, "body");
    int64_t m = nori__attr_i(call->node, "num_scan_inputs", 0);
    scan s = {.call = call, .old = call->node->version < 9, .first = call->node->version < 9};
    if (!g || m < 1 || call->n_in < s.first || m > call->n_in - s.first ||
        g->input_count != call->n_in - s.first || g->output_count < g->input_count - (uint32_t)m ||
        g->output_count < call->n_out) {
        return nori__fail(call->err, NORI_ERROR_MODEL,
                          "the body's inputs or outputs do not fit the scan's");
    }
    s.m = (uint32_t)m;
    s.n = g->input_count - s.m;
    NORI__TRY(check(&s));
    nori_status status = nori__body_open(&s.b, call, g, s.n);
    if (status == NORI_OK) {
        status = s.old ? run_old(&s) : run_new(&s);
    }
    nori__body_close(&s.b);
    return status;
}

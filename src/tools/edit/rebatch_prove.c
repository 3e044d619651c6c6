/* rebatch_prove.c: rows of a larger batch against runs of their own. */
#include <stdio.h>

#include "tools/edit/rebatch.h"

#define RUNS 3
#define MOST_RUNS 8

typedef struct rows {
    nori__values inputs[MOST_RUNS], outputs[MOST_RUNS];
    nori__values batched, got;
    size_t runs;
} rows;

/* Bytes of one step along an axis, and how many steps of all stand before it. */
static void strides(const nori_tensor *t, int axis, size_t *outer, size_t *step)
{
    *outer = 1;
    for (int d = 0; d < axis; d++) {
        *outer *= (size_t)t->dims[d];
    }
    *step = *outer > 0 ? t->bytes / *outer : 0;
}

static nori_status join(nori__rebatching *r, const rows *w, size_t input, int axis, nori_tensor **out)
{
    const nori_tensor *first = w->inputs[0].tensors[input];
    int64_t dims[NORI_MAX_RANK];
    size_t outer, step;
    nori__tensor_dims(first, dims);
    if (!nori__mul_dim(dims[axis], (int64_t)w->runs, &dims[axis])) {
        return nori__fail(r->err, NORI_ERROR_LIMIT, "the batch is too large");
    }
    NORI__TRY(nori__tensor_new(r->arena->allocator, (nori_type)first->type, first->rank, dims, out,
                               r->err));
    strides(first, axis, &outer, &step);
    for (size_t o = 0; o < outer && step > 0; o++) {
        for (size_t k = 0; k < w->runs; k++) {
            memcpy((char *)(*out)->data + (o * w->runs + k) * step,
                   (const char *)w->inputs[k].tensors[input]->data + o * step, step);
        }
    }
    return NORI_OK;
}

/* Row k of what the larger batch gave, in the shape of a run of its own. */
static nori_status row_of(nori__rebatching *r, const nori_tensor *all, const nori_tensor *one, int axis,
                          size_t k, size_t runs, nori_tensor **out)
{
    size_t outer, step;
    *out = NULL;
    if (all->kind != NORI_KIND_TENSOR || one->kind != NORI_KIND_TENSOR || all->type != one->type ||
        all->rank != one->rank || all->bytes != one->bytes * runs || all->type == NORI_STRING ||
        nori_type_bits((nori_type)all->type) < 8) {
        return NORI_OK;
    }
    NORI__TRY(nori__tensor_new(r->arena->allocator, (nori_type)one->type, one->rank, one->dims, out,
                               r->err));
    strides(one, axis, &outer, &step);
    for (size_t o = 0; o < outer && step > 0; o++) {
        memcpy((char *)(*out)->data + o * step, (const char *)all->data + (o * runs + k) * step, step);
    }
    return NORI_OK;
}

static int input_axis(const nori__rebatching *r, const char *name)
{
    for (uint32_t i = 0; i < r->own->main->input_count; i++) {
        if (nori__same(r->own->main->inputs[i]->name, name)) {
            return r->axis[i];
        }
    }
    return -1;
}

static int output_axis(const nori__rebatching *r, const char *name)
{
    int axis = nori__batch_axis(r, nori__edit_value(r->more, name), NULL);
    return axis < 0 ? 0 : axis;
}

/* Runs alone: other content for what holds the batch, the same for the rest. */
static nori_status run_alone(nori__rebatching *r, rows *w)
{
    const nori_proof_options *o = &r->options->proof;
    nori_session *session = NULL;
    uint64_t ns, state = o->seed + 1;
    NORI__TRY(nori__proof_run(r->model, o, r->arena, &w->inputs[0], &w->outputs[0],
                              &r->report->proof.before_ns, r->err));
    NORI__TRY(nori__proof_session(r->model, o, &session, r->err));
    nori_status s = NORI_OK;
    for (size_t k = 1; s == NORI_OK && k < w->runs; k++) {
        nori__proof_tell(o, k, w->runs + 1, "alone");
        s = nori__values_copy(&w->inputs[0], r->arena, &w->inputs[k], r->err);
        for (size_t i = 0; s == NORI_OK && i < w->inputs[k].count; i++) {
            if (w->inputs[k].tensors[i] && input_axis(r, w->inputs[k].names[i]) >= 0) {
                nori__proof_fill(w->inputs[k].tensors[i], &state);
            }
        }
        const nori__values *sets[] = {&w->inputs[k]};
        s = s == NORI_OK ? nori__proof_feed(session, sets, 1, r->arena, &w->outputs[k], &ns, r->err) : s;
        r->report->proof.before_ns += s == NORI_OK ? ns : 0;
    }
    nori_session_free(session);
    return s;
}

static nori_status run_together(nori__rebatching *r, const nori_model *made, rows *w)
{
    const nori_proof_options *o = &r->options->proof;
    nori_session *session = NULL;
    size_t n = w->inputs[0].count;
    w->batched.names = w->inputs[0].names;
    w->batched.tensors = nori__arena_array(r->arena, n + 1, sizeof(*w->batched.tensors));
    if (!w->batched.tensors) {
        return nori__no_memory(r->err);
    }
    w->batched.count = n;
    for (size_t i = 0; i < n; i++) {
        int axis = input_axis(r, w->inputs[0].names[i]);
        const nori_tensor *t = w->inputs[0].tensors[i];
        if (t && axis >= 0) {
            NORI__TRY(join(r, w, i, axis, &w->batched.tensors[i]));
        } else if (t) {
            w->batched.tensors[i] = nori_tensor_retain(t);
        }
    }
    nori__proof_tell(o, w->runs, w->runs + 1, "together");
    NORI__TRY(nori__proof_session(made, o, &session, r->err));
    const nori__values *sets[] = {&w->batched};
    nori_status s = nori__proof_feed(session, sets, 1, r->arena, &w->got, &r->report->proof.after_ns,
                                     r->err);
    nori_session_free(session);
    if (s != NORI_OK) {
        nori__where(r->err, "a batch of %zu", w->runs);
    }
    return s;
}

static nori_status compare(nori__rebatching *r, const rows *w)
{
    nori_proof *proof = &r->report->proof;
    for (size_t i = 0; i < w->got.count; i++) {
        int axis = output_axis(r, w->got.names[i]);
        for (size_t k = 0; k < w->runs; k++) {
            const nori_tensor *want = nori__values_find(&w->outputs[k], w->got.names[i]);
            nori_tensor *row = NULL;
            if (want && w->got.tensors[i]) {
                NORI__TRY(row_of(r, w->got.tensors[i], want, axis, k, w->runs, &row));
            }
            nori__proof_compare(proof, w->got.names[i], want, row);
            nori_tensor_free(row);
        }
    }
    proof->ran = 1;
    if (!proof->agrees) {
        nori_status s = nori__fail(r->err, NORI_ERROR_UNSUPPORTED,
                                   "the model mixes the items of a batch: %zu at once do not give what "
                                   "they give alone (%s)", w->runs, proof->reason);
        nori__hint(r->err, "say which axes are the batch (--input NAME:AXIS), or feed it one at a time");
        return s;
    }
    return NORI_OK;
}

nori_status nori__batch_prove(nori__rebatching *r, const nori_model *made)
{
    const nori_proof_options *o = &r->options->proof;
    nori_proof *proof = &r->report->proof;
    rows w = {.runs = RUNS};
    nori__proof_begin(proof);
    if (r->options->batch > 0) {
        w.runs = (size_t)(r->options->batch / r->was);
    }
    if (o->skip || nori__edit_random(r->own) || w.runs > MOST_RUNS) {
        snprintf(proof->reason, sizeof(proof->reason), "%s",
                 o->skip ? "not asked for"
                 : w.runs > MOST_RUNS ? "the batch is larger than 8; a free one is proved"
                                      : "operators of chance give something else in each run");
        return NORI_OK;
    }
    nori_status s = run_alone(r, &w);
    s = s == NORI_OK ? run_together(r, made, &w) : s;
    s = s == NORI_OK ? compare(r, &w) : s;
    for (size_t k = 0; k < w.runs; k++) {
        nori__values_free(&w.inputs[k]);
        nori__values_free(&w.outputs[k]);
    }
    nori__values_free(&w.batched);
    nori__values_free(&w.got);
    return s;
}

/* serve_batch.c: runs of one request, or of several as one: rows are put behind each other along axis
 * 0, and results are cut apart the same way. Should that not work out after all, each runs alone. */
#include <stdlib.h>
#include <string.h>

#include "serve_internal.h"

int64_t nori__serve_rows(const serve_model *m, const serve_request *r)
{
    int64_t rows = -1;
    for (size_t i = 0; i < r->input_count; i++) {
        const nori_tensor *t = r->inputs[i];
        if (!t) {
            if (m->signature.inputs[i]->optional) {
                continue;
            }
            return -1;
        }
        int64_t n = nori_tensor_rank(t) > 0 ? nori_tensor_dims(t)[0] : -1;
        if (n <= 0 || (rows >= 0 && n != rows) || m->signature.inputs[i]->optional) {
            return -1; /* what has a default is of the model, not of a row */
        }
        rows = n;
    }
    return rows;
}

bool nori__serve_alike(const serve_model *m, const serve_job *a, const serve_job *b)
{
    for (size_t i = 0; i < m->signature.input_count; i++) {
        const nori_tensor *x = a->request.inputs[i], *y = b->request.inputs[i];
        if (!x || !y) {
            if (x || y) {
                return false;
            }
            continue;
        }
        int rank = nori_tensor_rank(x);
        if (rank != nori_tensor_rank(y) ||
            memcmp(nori_tensor_dims(x) + 1, nori_tensor_dims(y) + 1,
                   (size_t)(rank - 1) * sizeof(int64_t)) != 0) {
            return false;
        }
    }
    return true;
}

/* ---- one input of all ---- */

static nori_status join_strings(serve_job **jobs, size_t count, size_t input, int rank,
                                const int64_t *dims, nori_tensor **out, nori_error *err)
{
    size_t total = 0, at = 0;
    for (size_t k = 0; k < count; k++) {
        total += (size_t)nori_tensor_elements(jobs[k]->request.inputs[input]);
    }
    nori_string *all = calloc(total + 1, sizeof(*all));
    if (!all) {
        return nori__serve_oom(err);
    }
    for (size_t k = 0; k < count; k++) {
        const nori_tensor *t = jobs[k]->request.inputs[input];
        size_t n = (size_t)nori_tensor_elements(t);
        if (n > 0) {
            memcpy(all + at, nori_tensor_const_data(t), n * sizeof(*all));
        }
        at += n;
    }
    nori_status status = nori_tensor_strings(NULL, rank, dims, all, total, out, err);
    free(all);
    return status;
}

static nori_status join(serve_job **jobs, size_t count, size_t input, int64_t rows, nori_tensor **out,
                        nori_error *err)
{
    const nori_tensor *model = jobs[0]->request.inputs[input];
    int64_t dims[NORI_MAX_RANK];
    int rank = nori_tensor_rank(model);
    memcpy(dims, nori_tensor_dims(model), (size_t)rank * sizeof(*dims));
    dims[0] = rows;
    if (nori_tensor_type(model) == NORI_STRING) {
        return join_strings(jobs, count, input, rank, dims, out, err);
    }
    nori_status status = nori_tensor_create(NULL, nori_tensor_type(model), rank, dims, out, err);
    char *to = status == NORI_OK ? nori_tensor_data(*out) : NULL;
    for (size_t k = 0; k < count && to; k++) {
        const nori_tensor *t = jobs[k]->request.inputs[input];
        memcpy(to, nori_tensor_const_data(t), nori_tensor_bytes(t));
        to += nori_tensor_bytes(t);
    }
    return status;
}

/* ---- runs ---- */

/* What one run takes and gives. */
typedef struct run {
    nori_tensor **inputs, **outputs;
    serve_slice *slices; /* by output of the signature */
    int64_t rows;
    uint64_t began, joined, ran;
    nori_error err;
} run;

static void run_free(serve_model *m, run *r, bool own_inputs)
{
    for (size_t i = 0; r->inputs && own_inputs && i < m->signature.input_count; i++) {
        nori_tensor_free(r->inputs[i]);
    }
    for (size_t i = 0; r->outputs && i < m->signature.session_outputs; i++) {
        nori_tensor_free(r->outputs[i]);
    }
    free(r->inputs);
    free(r->outputs);
    free(r->slices);
}

static nori_status run_jobs(serve_model *m, serve_job **jobs, size_t count, run *r)
{
    const serve_signature *s = &m->signature;
    nori_status status = NORI_OK;
    r->began = nori__serve_now();
    r->inputs = calloc(s->input_count + 1, sizeof(*r->inputs));
    r->outputs = calloc(s->session_outputs + 1, sizeof(*r->outputs));
    r->slices = calloc(s->output_count + 1, sizeof(*r->slices));
    if (!r->inputs || !r->outputs || !r->slices) {
        return nori__serve_oom(&r->err);
    }
    for (size_t k = 0; k < count; k++) {
        r->rows += jobs[k]->rows > 0 ? jobs[k]->rows : 1;
    }
    for (size_t i = 0; i < s->input_count && status == NORI_OK; i++) {
        if (count == 1) {
            r->inputs[i] = jobs[0]->request.inputs[i];
        } else if (jobs[0]->request.inputs[i]) {
            status = join(jobs, count, i, r->rows, &r->inputs[i], &r->err);
        }
    }
    r->joined = nori__serve_now();
    if (status == NORI_OK) {
        status = nori_session_run(m->session, (const nori_tensor *const *)r->inputs, s->input_count,
                                  r->outputs, s->session_outputs, &r->err);
    }
    r->ran = nori__serve_now();
    return status;
}

/* Whether every output has the rows of all requests. */
static bool has_rows(const serve_model *m, const run *r)
{
    for (size_t i = 0; i < m->signature.output_count; i++) {
        const nori_tensor *t = r->outputs[m->signature.slots[i]];
        if (nori_tensor_kind(t) != NORI_KIND_TENSOR || nori_tensor_rank(t) == 0 ||
            nori_tensor_dims(t)[0] != r->rows) {
            return false;
        }
    }
    return true;
}

static void answer(serve_model *m, serve_job *job, run *r, int64_t first, bool whole)
{
    for (size_t i = 0; i < m->signature.output_count; i++) {
        const nori_tensor *t = r->outputs[m->signature.slots[i]];
        r->slices[i] = (serve_slice){t, first, whole ? -1 : job->rows};
        if (!t || nori_tensor_kind(t) != NORI_KIND_TENSOR || !nori__serve_word(nori_tensor_type(t))) {
            nori__serve_fail(&job->err, NORI_ERROR_UNSUPPORTED, "output \"%s\" came out as no tensor "
                             "that the protocol can say", m->signature.outputs[i]->name);
        }
    }
    if (job->err.status == NORI_OK) {
        nori__serve_answer(&m->signature, &job->request, m->name, m->version, r->slices, &job->answer,
                           &job->json_size, &job->err);
    }
    job->code = nori__serve_code(job->err.status);
    if (job->err.status == NORI_ERROR_UNSUPPORTED) {
        job->code = 500; /* not the caller's doing */
    }
}

static void count_run(serve_model *m, serve_job **jobs, size_t count, const run *r, uint64_t ended)
{
    uint64_t input = r->joined - r->began, infer = r->ran - r->joined, output = ended - r->ran;
    int64_t slot = r->rows < SERVE_BATCH_ROWS ? r->rows : SERVE_BATCH_ROWS;
    serve_batch_row *row = &m->counts.batch[slot > 0 ? slot - 1 : 0];
    pthread_mutex_lock(&m->lock);
    m->counts.runs++;
    m->counts.rows += (uint64_t)r->rows;
    row->count++;
    row->rows = r->rows > row->rows ? r->rows : row->rows;
    row->input_ns += input;
    row->infer_ns += infer;
    row->output_ns += output;
    for (size_t k = 0; k < count; k++) {
        nori__serve_count(&m->counts.queue, jobs[k]->queue_ns);
        nori__serve_count(&m->counts.input, input);
        nori__serve_count(&m->counts.infer, infer);
        nori__serve_count(&m->counts.output, output);
    }
    pthread_mutex_unlock(&m->lock);
}

/* Those whose time is over are not run; the number of those that are left. */
static size_t drop_late(serve_model *m, serve_job **jobs, size_t count)
{
    uint64_t now = nori__serve_now();
    size_t left = 0;
    for (size_t k = 0; k < count; k++) {
        jobs[k]->queue_ns = now - jobs[k]->arrived;
        if (jobs[k]->deadline && jobs[k]->deadline <= now) {
            jobs[k]->code = 504;
            nori__serve_fail(&jobs[k]->err, NORI_ERROR_CANCELLED,
                             "the request's time was over before its turn came");
            nori__serve_done(m, jobs[k]);
        } else {
            jobs[left++] = jobs[k];
        }
    }
    return left;
}

void nori__serve_run(serve_model *m, serve_job **jobs, size_t count)
{
    run r = {.rows = 0};
    count = drop_late(m, jobs, count);
    if (count == 0) {
        return;
    }
    nori_status status = run_jobs(m, jobs, count, &r);
    if (count > 1 && (status != NORI_OK || !has_rows(m, &r))) {
        /* One of them may be to blame, and the others are not to suffer for it. */
        run_free(m, &r, true);
        for (size_t k = 0; k < count; k++) {
            nori__serve_run(m, &jobs[k], 1);
        }
        return;
    }
    int64_t first = 0;
    for (size_t k = 0; k < count; k++) {
        jobs[k]->infer_ns = r.ran - r.joined;
        if (status != NORI_OK) {
            jobs[k]->err = r.err;
            jobs[k]->code = nori__serve_code(status);
        } else {
            answer(m, jobs[k], &r, first, count == 1);
            first += jobs[k]->rows;
        }
    }
    if (status == NORI_OK) {
        count_run(m, jobs, count, &r, nori__serve_now());
    }
    for (size_t k = 0; k < count; k++) {
        nori__serve_done(m, jobs[k]);
    }
    run_free(m, &r, count > 1);
}

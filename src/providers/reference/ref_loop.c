/* ref_loop.c: Loop. Without a trip count it runs until the condition fails, without a condition
 * until the count is reached, without both for ever. Zero iterations give the initial values and
 * empty scan outputs. */
#include "providers/reference/ref_control.h"

static nori_status scalar(nori_call *call, nori_type type, int64_t value, nori_tensor **out)
{
    NORI__TRY(nori__tensor_new(call->allocator, type, 0, NULL, out, call->err));
    nori__tensor_set_i64(*out, 0, value);
    return NORI_OK;
}

static nori_status read_condition(const nori_call *call, const nori_tensor *t, const char *what,
                                  bool *out)
{
    if (!t || t->kind != NORI_KIND_TENSOR || t->type != NORI_BOOL || t->count != 1) {
        return nori__fail(call->err, NORI_ERROR_DATA, "the %s must be one bool", what);
    }
    *out = *(const uint8_t *)t->data != 0;
    return NORI_OK;
}

/* One iteration: number and condition as new tensors, since the body may keep what it gets. */
static nori_status iterate(nori__body_runs *b, int64_t i, bool go, bool *again)
{
    nori_tensor *number = NULL, *cond = NULL;
    nori_status status = scalar(b->call, NORI_INT64, i, &number);
    if (status == NORI_OK) {
        status = scalar(b->call, NORI_BOOL, go, &cond);
    }
    b->in[0] = number;
    b->in[1] = cond;
    if (status == NORI_OK) {
        status = nori__body_run(b);
    }
    nori_tensor_free(number);
    nori_tensor_free(cond);
    NORI__TRY(status);
    NORI__TRY(read_condition(b->call, b->out[0], "body's condition", again));
    NORI__TRY(nori__body_push(b));
    for (uint32_t s = 1; s < b->first_scan; s++) { /* the new states become the next inputs */
        nori_tensor_free(b->state[s]);
        b->state[s] = b->out[s];
        b->out[s] = NULL;
        b->in[s + 1] = b->state[s];
    }
    return NORI_OK;
}

static nori_status loop(nori__body_runs *b)
{
    nori_call *call = b->call;
    const nori_tensor *most = nori__ref_in(call, 0), *cond = nori__ref_in(call, 1);
    int64_t trips = INT64_MAX;
    bool go = true;
    if (most) {
        if (most->kind != NORI_KIND_TENSOR || most->type != NORI_INT64 || most->count != 1) {
            return nori__fail(call->err, NORI_ERROR_DATA, "the trip count must be one int64");
        }
        trips = *(const int64_t *)most->data;
    }
    if (cond) {
        NORI__TRY(read_condition(call, cond, "condition", &go));
    }
    for (uint32_t i = 2; i < b->n_in; i++) {
        b->in[i] = call->in[i];
    }
    for (int64_t i = 0; go && i < trips; i++) {
        NORI__TRY(iterate(b, i, go, &go));
    }
    for (uint32_t s = 1; s < b->first_scan && s - 1 < call->n_out; s++) {
        const nori_tensor *t = b->in[s + 1];
        if (t) {
            NORI__TRY(call->exec->set(call, s - 1, (nori_tensor *)(uintptr_t)t));
        }
    }
    for (uint32_t k = 0; k < b->n_scan && b->first_scan - 1 + k < call->n_out; k++) {
        NORI__TRY(nori__body_stack(b, k, b->first_scan - 1 + k, 0, false));
    }
    return NORI_OK;
}

nori_status nori__ref_Loop(nori_call *call)
{
    const nori__graph *g = nori__attr_graph(call->node, "body");
    uint32_t n = call->n_in > 2 ? call->n_in - 2 : 0;
    if (!g || g->input_count != n + 2 || g->output_count < n + 1) {
        return nori__fail(call->err, NORI_ERROR_MODEL,
                          "the body's inputs or outputs do not fit the loop's");
    }
    nori__body_runs b;
    nori_status status = nori__body_open(&b, call, g, n + 1);
    if (status == NORI_OK) {
        status = loop(&b);
    }
    nori__body_close(&b);
    return status;
}

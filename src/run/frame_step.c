/* frame_step.c: one step of a plan: its tensors and memory, and what a running kernel may call. */
#include "ops/takes.h"
#include "run/frame.h"

/* ---- what kernels call ---- */

typedef struct running {
    nori__frame *frame;
    const nori__step *step;
} running;

static nori_status adopt(nori_call *call, uint32_t i, nori_tensor *t)
{
    running *r = call->run;
    uint32_t slot = i < r->step->n_out ? r->step->out[i] : NORI__NO_SLOT;
    if (slot == NORI__NO_SLOT) {
        if (!nori__vec_push(&r->frame->spare, t)) {
            nori_tensor_free(t);
            return nori__no_memory(call->err);
        }
        return NORI_OK;
    }
    nori__frame_drop(r->frame, slot);
    r->frame->now[slot] = t;
    r->frame->owned[slot] = true;
    r->frame->any_owned = true;
    return NORI_OK;
}

static nori_status exec_alloc(nori_call *call, uint32_t i, nori_type type, int rank,
                              const int64_t *dims, nori_tensor **tensor)
{
    NORI__TRY(nori__tensor_new(call->allocator, type, rank, dims, tensor, call->err));
    return adopt(call, i, *tensor);
}

static nori_status exec_set(nori_call *call, uint32_t i, nori_tensor *tensor)
{
    nori_tensor *kept = NULL;
    NORI__TRY(nori__frame_keep(call->allocator, tensor, false, &kept, call->err));
    return adopt(call, i, kept);
}

static nori_status child_frame(nori__frame *f, const nori__plan *plan, nori__frame **frame,
                               nori_error *err)
{
    for (uint32_t i = 0; i < f->n_children; i++) {
        if (f->children[i].plan == plan) {
            *frame = f->children[i].frame;
            return NORI_OK;
        }
    }
    NORI__TRY(nori__frame_create(plan, f->meter, frame, err));
    f->children[f->n_children++] = (nori__frame_child){plan, *frame};
    return NORI_OK;
}

static nori_status exec_subgraph(nori_call *call, const nori__graph *graph,
                                 const nori_tensor *const *in, uint32_t n_in, nori_tensor **out,
                                 uint32_t n_out)
{
    running *r = call->run;
    nori__frame *f = r->frame;
    const nori__plan *plan = NULL;
    for (uint32_t i = 0; i < r->step->n_sub; i++) {
        if (r->step->sub[i]->graph == graph) {
            plan = r->step->sub[i];
        }
    }
    if (!plan) {
        return nori__fail(call->err, NORI_ERROR_INTERNAL, "subgraph has no plan");
    }
    if (n_in != plan->n_in || n_out != plan->n_out) {
        return nori__fail(call->err, NORI_ERROR_MODEL,
                          "subgraph %s has %u inputs and %u outputs, its node needs %u and %u",
                          graph->name, plan->n_in, plan->n_out, n_in, n_out);
    }
    if (!nori__same(r->step->node->op_type, "If")) {
        NORI__TRY(nori__guard_iteration(f->info->guard, call->err));
    }
    nori__frame *sub = NULL;
    NORI__TRY(child_frame(f, plan, &sub, call->err));
    for (uint32_t i = 0; i < plan->n_capture; i++) {
        f->bound[i] = f->now[plan->capture_outer[i]];
    }
    for (uint32_t i = 0; i < n_out; i++) {
        out[i] = NULL;
    }
    return nori__frame_run(sub, f->info, in, f->bound, out, call->err);
}

static const nori__exec exec_functions = {exec_alloc, exec_set, exec_subgraph};

/* ---- steps ---- */

static void run_view(nori__frame *f, const nori__step *step)
{
    uint32_t slot = step->out[0];
    const nori__place *p = &f->layout.places[slot];
    if (p->how == NORI__PLACE_ALIAS) {
        f->now[slot]->data = f->now[p->alias]->data;
    }
}

static void shape_unknown(nori__shape *s)
{
    s->kind = NORI_KIND_UNKNOWN;
    s->elem = NORI_UNDEFINED;
    s->rank = -1;
    s->of = NULL;
    s->tensor = NULL;
    s->data_count = -1;
}

/* Shapes of a late step, now that its inputs are there; outputs are made. */
static nori_status prepare_late(nori__frame *f, const nori__step *step, nori_call *call)
{
    const nori__op *op = step->node->op;
    for (uint32_t i = 0; i < step->n_out; i++) {
        f->out[i] = NULL;
    }
    if (op->flags & NORI__OP_SELF_ALLOC) {
        return NORI_OK;
    }
    nori__shape *in = f->shapes, *out = f->shapes + step->n_in;
    for (uint32_t i = 0; i < step->n_in; i++) {
        shape_unknown(&in[i]);
        if (f->in[i]) {
            nori__shape_of_tensor(&in[i], f->in[i], true);
        }
    }
    for (uint32_t i = 0; i < step->n_out; i++) {
        shape_unknown(&out[i]);
    }
    nori__infer c = {.node = step->node, .in = in, .out = out, .err = call->err};
    NORI__TRY(nori__require_types(&c)); /* what a sequence held may be anything */
    NORI__TRY(op->infer(&c));
    for (uint32_t i = 0; i < step->n_out; i++) {
        int64_t dims[NORI_MAX_RANK];
        if (step->out[i] == NORI__NO_SLOT ||
            (out[i].kind != NORI_KIND_TENSOR && out[i].kind != NORI_KIND_UNKNOWN)) {
            continue;
        }
        bool group = step->n_in > 0 && f->in[0] && f->in[0]->kind != NORI_KIND_TENSOR;
        if (out[i].kind == NORI_KIND_UNKNOWN && group) {
            continue; /* a group passed through: the kernel sets it */
        }
        bool known = out[i].rank >= 0 && out[i].elem != NORI_UNDEFINED;
        for (int d = 0; known && d < out[i].rank; d++) {
            dims[d] = out[i].dims[d].value;
            known = dims[d] >= 0;
        }
        if (!known && (op->flags & NORI__OP_LATE_ALLOC)) {
            continue;
        }
        if (!known) {
            nori_status status =
                nori__fail(call->err, NORI_ERROR_DATA,
                           "the shape of output %u cannot be told from what the inputs hold", i);
            nori__hint(call->err, "a size that is negative or too large, or an input of a rank "
                                  "that the operator does not take, does that");
            return status;
        }
        NORI__TRY(exec_alloc(call, i, out[i].elem, out[i].rank, dims, &f->out[i]));
    }
    if (step->kernel->workspace) {
        call->work_size = step->kernel->workspace(step->state, call);
        if (!nori__frame_reserve(f->a, &f->scratch, &f->scratch_bytes, call->work_size)) {
            return nori__no_memory(call->err);
        }
        call->work = f->scratch;
    }
    return NORI_OK;
}

static nori_status check_made(nori__frame *f, const nori__step *step, nori_error *err)
{
    for (uint32_t i = 0; i < step->n_out; i++) {
        if (step->out[i] != NORI__NO_SLOT && !f->now[step->out[i]]) {
            return nori__fail(err, NORI_ERROR_INTERNAL, "operator %s left output %u unset",
                              step->node->op_type, i);
        }
    }
    return NORI_OK;
}

nori_status nori__frame_step(nori__frame *f, uint32_t s, nori_error *err)
{
    const nori__step *step = &f->plan->steps[s];
    uint8_t kind = f->layout.step_kind[s];
    if (kind == NORI__STEP_DONE) {
        return NORI_OK;
    }
    if (kind == NORI__STEP_VIEW) {
        run_view(f, step);
        return NORI_OK;
    }
    for (uint32_t i = 0; i < step->n_in; i++) {
        f->in[i] = step->in[i] == NORI__NO_SLOT ? NULL : f->now[step->in[i]];
    }
    running r = {f, step};
    nori_call call = {.node = step->node, .n_in = step->n_in, .n_out = step->n_out, .in = f->in,
                      .out = f->out, .exec = &exec_functions, .allocator = &f->meter->pooled,
                      .pool = f->info->pool, .threads = f->info->threads, .err = err, .run = &r};
    if (kind == NORI__STEP_LATE) {
        NORI__TRY(prepare_late(f, step, &call));
    } else {
        for (uint32_t i = 0; i < step->n_out; i++) {
            f->out[i] = step->out[i] == NORI__NO_SLOT ? NULL : f->now[step->out[i]];
        }
        call.work_size = f->layout.work_size[s];
        call.work = call.work_size ? f->block + f->layout.work_offset[s] : NULL;
    }
    if (nori__frame_can_start(f, step, kind)) {
        return nori__frame_start(f, step, &call);
    }
    NORI__TRY(step->kernel->run(step->state, &call));
    bool allocates = step->node->op && (step->node->op->flags & NORI__OP_SELF_ALLOC) != 0;
    for (uint32_t i = 0; !allocates && i < step->n_out; i++) {
        if (f->out[i]) {
            nori__tensor_clear_rest(f->out[i]);
        }
    }
    if (kind == NORI__STEP_LATE) {
        NORI__TRY(check_made(f, step, err));
    }
    return NORI_OK;
}

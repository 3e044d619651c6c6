/* frame.c: the executor: runs the steps of one plan over one memory block.
 *
 * Every slot has a current tensor: an input, a constant, a header over the block, or, for values
 * whose shape only the run can tell, a tensor the frame owns until the slot dies. */
#include "run/run.h"

typedef struct child {
    const nori__plan *plan;
    nori__frame *frame;
} child;

struct nori__frame {
    const nori__plan *plan;
    const nori_allocator *a;
    nori__arena arena;
    nori_tensor *headers; /* per slot */
    nori_tensor **now;    /* per slot: current tensor, NULL: none */
    bool *owned;          /* per slot: now[] is a reference of ours */
    bool any_owned;
    nori__layout layout;
    bool laid_out;
    int64_t *key; /* types and shapes the layout is for */
    size_t key_size, key_capacity;
    char *block;
    size_t block_bytes;
    char *scratch; /* workspace of late steps */
    size_t scratch_bytes;
    const nori_tensor **in; /* of the current step */
    nori_tensor **out;
    nori__shape *shapes;
    const nori_tensor **bound; /* captures of the subgraph being started */
    child *children;
    uint32_t n_children;
    nori__vec spare; /* outputs nobody wants, until the step ends */
    const nori__run_info *info;
};

nori_status nori__frame_create(const nori__plan *plan, const nori_allocator *a,
                               nori__frame **frame, nori_error *err)
{
    *frame = NULL;
    nori__frame *f = nori__alloc_zero(a, sizeof(*f));
    if (!f) {
        return nori__no_memory(err);
    }
    f->plan = plan;
    f->a = a;
    nori__arena_init(&f->arena, a);
    nori__vec_init(&f->spare, a);
    size_t in = 0, out = 0, subs = 0, captures = 0;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const nori__step *step = &plan->steps[s];
        in = step->n_in > in ? step->n_in : in;
        out = step->n_out > out ? step->n_out : out;
        subs += step->n_sub;
        for (uint32_t i = 0; i < step->n_sub; i++) {
            captures = step->sub[i]->n_capture > captures ? step->sub[i]->n_capture : captures;
        }
    }
    size_t slots = (size_t)plan->n_slots + 1;
    f->headers = nori__arena_array(&f->arena, slots, sizeof(*f->headers));
    f->now = nori__arena_array(&f->arena, slots, sizeof(*f->now));
    f->owned = nori__arena_array(&f->arena, slots, sizeof(*f->owned));
    f->in = nori__arena_array(&f->arena, in + 1, sizeof(*f->in));
    f->out = nori__arena_array(&f->arena, out + 1, sizeof(*f->out));
    f->shapes = nori__arena_array(&f->arena, in + out + 1, sizeof(*f->shapes));
    f->bound = nori__arena_array(&f->arena, captures + 1, sizeof(*f->bound));
    f->children = nori__arena_array(&f->arena, subs + 1, sizeof(*f->children));
    if (!f->headers || !f->now || !f->owned || !f->in || !f->out || !f->shapes || !f->bound ||
        !f->children) {
        nori__frame_free(f);
        return nori__no_memory(err);
    }
    *frame = f;
    return NORI_OK;
}

static void drop(nori__frame *f, uint32_t slot)
{
    if (f->owned[slot]) {
        nori_tensor_free(f->now[slot]);
        f->owned[slot] = false;
        f->now[slot] = NULL;
    }
}

static void drop_spare(nori__frame *f)
{
    while (f->spare.count > 0) {
        nori_tensor_free(f->spare.items[--f->spare.count]);
    }
}

static void drop_all(nori__frame *f)
{
    drop_spare(f);
    for (uint32_t i = 0; f->any_owned && i < f->plan->n_slots; i++) {
        drop(f, i);
    }
    f->any_owned = false;
}

void nori__frame_free(nori__frame *f)
{
    if (!f) {
        return;
    }
    for (uint32_t i = 0; i < f->n_children; i++) {
        nori__frame_free(f->children[i].frame);
    }
    drop_spare(f);
    nori__vec_free(&f->spare);
    if (f->laid_out) {
        nori__layout_free(&f->layout);
    }
    nori__release(f->a, f->key, f->key_capacity * sizeof(*f->key));
    nori__release(f->a, f->block, f->block_bytes);
    nori__release(f->a, f->scratch, f->scratch_bytes);
    nori__arena_free(&f->arena);
    nori__release(f->a, f, sizeof(*f));
}

size_t nori__frame_bytes(const nori__frame *f)
{
    size_t bytes = f->block_bytes + f->scratch_bytes;
    for (uint32_t i = 0; i < f->n_children; i++) {
        bytes += nori__frame_bytes(f->children[i].frame);
    }
    return bytes;
}

/* Memory of at least size bytes; what it held is not kept. */
static bool reserve(const nori_allocator *a, char **memory, size_t *have, size_t size)
{
    if (size <= *have) {
        return true;
    }
    nori__release(a, *memory, *have);
    *have = 0;
    *memory = nori__alloc(a, size);
    if (!*memory) {
        return false;
    }
    *have = size;
    return true;
}

/* ---- layout and its key ---- */

/* Walks the key entries of one tensor; with write set they are stored, else compared. */
static bool key_step(nori__frame *f, size_t *at, const nori_tensor *t, bool write)
{
    int64_t head = t && t->kind == NORI_KIND_TENSOR ? (int64_t)t->type * 64 + t->rank : -1;
    int rank = head < 0 ? 0 : t->rank;
    if (!write && *at + (size_t)rank + 1 > f->key_size) {
        return false;
    }
    if (write) {
        f->key[*at] = head;
        memcpy(&f->key[*at + 1], rank ? t->dims : &head, (size_t)rank * sizeof(int64_t));
    } else if (f->key[*at] != head ||
               (rank && memcmp(&f->key[*at + 1], t->dims, (size_t)rank * sizeof(int64_t)))) {
        return false;
    }
    *at += (size_t)rank + 1;
    return true;
}

static bool key_walk(nori__frame *f, const nori_tensor *const *inputs,
                     const nori_tensor *const *captures, bool write)
{
    size_t at = 0;
    for (uint32_t i = 0; i < f->plan->n_in; i++) {
        if (!key_step(f, &at, inputs[i], write)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < f->plan->n_capture; i++) {
        if (!key_step(f, &at, captures[i], write)) {
            return false;
        }
    }
    if (write) {
        f->key_size = at;
    }
    return at == f->key_size;
}

static nori_status lay_out(nori__frame *f, const nori_tensor *const *inputs,
                           const nori_tensor *const *captures, nori_error *err)
{
    if (f->laid_out && key_walk(f, inputs, captures, false)) {
        return NORI_OK;
    }
    if (f->laid_out) {
        nori__layout_free(&f->layout);
        f->laid_out = false;
    }
    size_t most = ((size_t)f->plan->n_in + f->plan->n_capture) * (NORI_MAX_RANK + 1) + 1;
    if (!f->key) {
        f->key = nori__alloc(f->a, most * sizeof(*f->key));
        if (!f->key) {
            return nori__no_memory(err);
        }
        f->key_capacity = most;
    }
    NORI__TRY(nori__layout_build(f->plan, f->a, inputs, captures, f->info->memory_cap, &f->layout,
                                 err));
    f->laid_out = true;
    f->key_size = 0;
    if (!reserve(f->a, &f->block, &f->block_bytes, f->layout.block_bytes)) {
        nori__layout_free(&f->layout);
        f->laid_out = false;
        return nori__no_memory(err);
    }
    key_walk(f, inputs, captures, true);
    for (uint32_t i = 0; i < f->plan->n_slots; i++) {
        const nori__place *p = &f->layout.places[i];
        f->now[i] = NULL;
        if (p->how == NORI__PLACE_KNOWN) {
            f->now[i] = p->known;
        } else if (p->how == NORI__PLACE_BLOCK || p->how == NORI__PLACE_ALIAS) {
            nori__tensor_init(&f->headers[i], p->type, p->rank, p->dims,
                              p->how == NORI__PLACE_BLOCK ? f->block + p->offset : NULL);
            f->now[i] = &f->headers[i];
        }
    }
    return NORI_OK;
}

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
    drop(r->frame, slot);
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

/* Headers over the block cannot be kept: they are copied, whatever else is shared. */
static nori_status keep(const nori_allocator *a, const nori_tensor *t, bool fresh,
                        nori_tensor **out, nori_error *err)
{
    if (!fresh && t->allocator) {
        *out = nori_tensor_retain(t);
        return NORI_OK;
    }
    return nori__tensor_copy(a, t, out, err);
}

static nori_status exec_set(nori_call *call, uint32_t i, nori_tensor *tensor)
{
    nori_tensor *kept = NULL;
    NORI__TRY(keep(call->allocator, tensor, false, &kept, call->err));
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
    NORI__TRY(nori__frame_create(plan, f->a, frame, err));
    f->children[f->n_children++] = (child){plan, *frame};
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
        f->headers[slot].data = f->now[p->alias]->data;
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
    NORI__TRY(op->infer(&c));
    for (uint32_t i = 0; i < step->n_out; i++) {
        int64_t dims[NORI_MAX_RANK];
        if (step->out[i] == NORI__NO_SLOT ||
            (out[i].kind != NORI_KIND_TENSOR && out[i].kind != NORI_KIND_UNKNOWN)) {
            continue;
        }
        bool group = f->in[0] && f->in[0]->kind != NORI_KIND_TENSOR;
        if (out[i].kind == NORI_KIND_UNKNOWN && group) {
            continue; /* a group passed through: the kernel sets it */
        }
        bool known = out[i].rank >= 0 && out[i].elem != NORI_UNDEFINED;
        for (int d = 0; known && d < out[i].rank; d++) {
            dims[d] = out[i].dims[d].value;
            known = dims[d] >= 0;
        }
        if (!known) {
            return nori__fail(call->err, NORI_ERROR_INTERNAL,
                              "the shape of output %u cannot be told", i);
        }
        NORI__TRY(exec_alloc(call, i, out[i].elem, out[i].rank, dims, &f->out[i]));
    }
    if (step->kernel->workspace) {
        call->work_size = step->kernel->workspace(step->state, call);
        if (!reserve(f->a, &f->scratch, &f->scratch_bytes, call->work_size)) {
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

static nori_status run_step(nori__frame *f, uint32_t s, nori_error *err)
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
                      .out = f->out, .exec = &exec_functions, .allocator = f->a,
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

/* ---- a whole run ---- */

/* Output slots with memory of their own get the caller's tensor, or a new one. */
static nori_status bind_outputs(nori__frame *f, nori_tensor **outputs, nori_error *err)
{
    for (uint32_t i = 0; i < f->plan->n_slots; i++) {
        const nori__place *p = &f->layout.places[i];
        if (p->how != NORI__PLACE_OUT) {
            continue;
        }
        nori_tensor *given = NULL;
        for (uint32_t o = 0; o < f->plan->n_out && !given; o++) {
            given = f->plan->out[o] == i ? outputs[o] : NULL;
        }
        if (given) {
            if (given->kind != NORI_KIND_TENSOR || given->type != p->type ||
                given->rank != p->rank || given->bytes != p->bytes ||
                memcmp(given->dims, p->dims, (size_t)p->rank * sizeof(int64_t)) != 0) {
                return nori__fail(err, NORI_ERROR_DATA,
                                  "the tensor given for output %s has another type or shape",
                                  f->plan->slots[i].value->name);
            }
            f->now[i] = given;
        } else {
            NORI__TRY(nori__tensor_new(f->a, p->type, p->rank, p->dims, &f->now[i], err));
            f->owned[i] = true;
            f->any_owned = true;
        }
    }
    return NORI_OK;
}

static nori_status copy_into(const nori_tensor *from, nori_tensor *to, const char *name,
                             nori_error *err)
{
    if (from == to) {
        return NORI_OK;
    }
    if (to->kind != from->kind || to->type != from->type || to->rank != from->rank ||
        to->type == NORI_STRING || to->kind != NORI_KIND_TENSOR ||
        memcmp(to->dims, from->dims, (size_t)to->rank * sizeof(int64_t)) != 0) {
        return nori__fail(err, NORI_ERROR_DATA,
                          "the tensor given for output %s has another type or shape", name);
    }
    if (from->bytes > 0) {
        memcpy(to->data, from->data, from->bytes);
    }
    return NORI_OK;
}

static nori_status give_outputs(nori__frame *f, nori_tensor **outputs, nori_error *err)
{
    nori_status status = NORI_OK;
    uint32_t n = f->plan->n_out, made = 0;
    uint64_t given = 0; /* the first 64 outputs; more are only made, never given back on error */
    for (; made < n && status == NORI_OK; made++) {
        uint32_t slot = f->plan->out[made];
        const nori_tensor *t = f->now[slot];
        if (!t) {
            status = nori__fail(err, NORI_ERROR_INTERNAL, "output %s was not computed",
                                f->plan->slots[slot].value->name);
        } else if (outputs[made]) {
            given |= made < 64 ? (uint64_t)1 << made : 0;
            status = copy_into(t, outputs[made], f->plan->slots[slot].value->name, err);
        } else {
            status = keep(f->a, t, !f->owned[slot], &outputs[made], err);
        }
    }
    for (uint32_t i = 0; status != NORI_OK && i < made && i < 64; i++) {
        if (!(given >> i & 1)) {
            nori_tensor_free(outputs[i]);
            outputs[i] = NULL;
        }
    }
    return status;
}

static void show_outputs(const nori__frame *f, const nori__step *step)
{
    for (uint32_t i = 0; i < step->n_out; i++) {
        uint32_t slot = step->out[i];
        if (slot != NORI__NO_SLOT && f->now[slot]) {
            f->info->watch(f->info->watch_user, f->plan->slots[slot].value->name, f->now[slot]);
        }
    }
}

static nori_status run_steps(nori__frame *f, nori_error *err)
{
    nori__step_time *times = f->info->times;
    for (uint32_t s = 0; s < f->plan->n_steps; s++) {
        const nori__step *step = &f->plan->steps[s];
        uint64_t start = times ? nori__now_ns() : 0;
        nori_status status = run_step(f, s, err);
        if (status != NORI_OK) {
            char path[256];
            nori__node_path(step->node, path, sizeof(path));
            if (!err || !err->where[0]) {
                nori__where(err, "%s", path);
            }
            return status;
        }
        if (times) {
            nori__step_time *t = &times[step->id];
            t->last_start_ns = start;
            t->last_end_ns = nori__now_ns();
            t->calls++;
            t->total_ns += t->last_end_ns - start;
        }
        if (f->info->watch) {
            show_outputs(f, step);
        }
        if (f->any_owned) {
            for (uint32_t i = 0; i < step->n_dead; i++) {
                drop(f, step->dead[i]);
            }
            drop_spare(f);
        }
    }
    return NORI_OK;
}

nori_status nori__frame_run(nori__frame *f, const nori__run_info *info,
                            const nori_tensor *const *inputs, const nori_tensor *const *captures,
                            nori_tensor **outputs, nori_error *err)
{
    const nori__plan *plan = f->plan;
    f->info = info;
    NORI__TRY(lay_out(f, inputs, captures, err));
    for (uint32_t i = 0; i < plan->n_slots; i++) {
        if (plan->slots[i].kind == NORI__SLOT_CONST) {
            f->now[i] = plan->slots[i].value->constant;
        }
    }
    for (uint32_t i = 0; i < plan->n_in; i++) {
        if (plan->slots[plan->in[i]].kind == NORI__SLOT_INPUT) {
            f->now[plan->in[i]] = (nori_tensor *)(uintptr_t)inputs[i];
        }
    }
    for (uint32_t i = 0; i < plan->n_capture; i++) {
        f->now[plan->capture[i]] = (nori_tensor *)(uintptr_t)captures[i];
    }
    nori_status status = bind_outputs(f, outputs, err);
    if (status == NORI_OK) {
        status = run_steps(f, err);
    }
    if (status == NORI_OK) {
        status = give_outputs(f, outputs, err);
    }
    drop_all(f);
    return status;
}

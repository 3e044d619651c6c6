/* frame.c: the executor: the life of a frame, and the walk over a plan's steps. */
#include "run/frame.h"

nori_status nori__frame_create(const nori__plan *plan, nori__meter *meter, nori__frame **frame,
                               nori_error *err)
{
    const nori_allocator *a = &meter->plain;
    *frame = NULL;
    nori__frame *f = nori__alloc_zero(a, sizeof(*f));
    if (!f) {
        return nori__no_memory(err);
    }
    f->plan = plan;
    f->a = a;
    f->meter = meter;
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
    size_t slots = (size_t)plan->n_slots + 1, locals = 1;
    for (uint32_t i = 0; i < plan->n_slots; i++) {
        locals += plan->slots[i].kind == NORI__SLOT_LOCAL;
    }
    f->headers = nori__arena_array(&f->arena, locals, sizeof(*f->headers));
    f->now = nori__arena_array(&f->arena, slots, sizeof(*f->now));
    f->owned = nori__arena_array(&f->arena, slots, sizeof(*f->owned));
    f->in = nori__arena_array(&f->arena, in + 1, sizeof(*f->in));
    f->out = nori__arena_array(&f->arena, out + 1, sizeof(*f->out));
    f->started.in = nori__arena_array(&f->arena, in + 1, sizeof(*f->started.in));
    f->started.out = nori__arena_array(&f->arena, out + 1, sizeof(*f->started.out));
    f->shapes = nori__arena_array(&f->arena, in + out + 1, sizeof(*f->shapes));
    f->bound = nori__arena_array(&f->arena, captures + 1, sizeof(*f->bound));
    f->children = nori__arena_array(&f->arena, subs + 1, sizeof(*f->children));
    if (!f->headers || !f->now || !f->owned || !f->in || !f->out || !f->shapes || !f->bound ||
        !f->children || !f->started.in || !f->started.out) {
        nori__frame_free(f);
        return nori__no_memory(err);
    }
    *frame = f;
    return NORI_OK;
}

void nori__frame_drop(nori__frame *f, uint32_t slot)
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
        nori__frame_drop(f, i);
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

bool nori__frame_reserve(const nori_allocator *a, char **memory, size_t *have, size_t size)
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

/* ---- a whole run ---- */

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
        nori_status status =
            f->info->guard->watches ? nori__guard_look(f->info->guard, err) : NORI_OK;
        if (status == NORI_OK && nori__frame_must_wait(f, step)) {
            status = nori__frame_wait(f, err);
        }
        status = status == NORI_OK ? nori__frame_step(f, s, err) : status;
        if (status != NORI_OK) {
            char path[256];
            nori__node_path(step->node, path, sizeof(path));
            if (!err || !err->where[0]) {
                nori__where(err, "%s", path);
            }
            nori__frame_wait(f, NULL); /* nothing is left running */
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
                nori__frame_drop(f, step->dead[i]);
            }
            drop_spare(f);
        }
    }
    return nori__frame_wait(f, err);
}

nori_status nori__frame_run(nori__frame *f, const nori__run_info *info,
                            const nori_tensor *const *inputs, const nori_tensor *const *captures,
                            nori_tensor **outputs, nori_error *err)
{
    const nori__plan *plan = f->plan;
    f->info = info;
    for (size_t i = 0; i < plan->n_loose; i++) {
        if (!nori__tensor_settle(plan->loose[i])) {
            return nori__no_memory(err);
        }
    }
    NORI__TRY(nori__frame_lay_out(f, inputs, captures, err));
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
    nori_status status = nori__frame_bind_outputs(f, outputs, err);
    if (status == NORI_OK) {
        status = run_steps(f, err);
    }
    if (status == NORI_OK) {
        status = nori__frame_give_outputs(f, outputs, err);
    }
    drop_all(f);
    return status;
}

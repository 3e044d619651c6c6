/* layout.c: the shape-dependent part of a plan: walks the steps with concrete shapes, computes at
 * once what depends on shapes alone, lets outputs share their inputs' memory where that is legal,
 * and leaves what depends on data to the run ("late"). */
#include "base/size_text.h"
#include "plan/places.h"

/* Results up to this size are computed while laying out, when all inputs are known. */
#define KNOWN_BYTES 16384u

typedef struct layouter {
    const nori__plan *plan;
    const nori_allocator *a;
    nori__layout *l;
    nori__arena *scratch; /* gone when the layout is done */
    const nori_tensor **seen; /* per slot: type and shape, NULL while unknown */
    bool *content;            /* per slot: seen's bytes are valid too */
    uint32_t *group;          /* per slot: of groups */
    nori__groups groups;
    size_t *at;               /* scratch: offsets of pieces */
    nori__shape *shapes; /* scratch for inference */
    const nori_tensor **in, **parts;
    nori_tensor **out;
    nori_error *err;
} layouter;

void nori__shape_of_tensor(nori__shape *shape, const nori_tensor *t, bool content)
{
    shape->kind = t->kind;
    shape->elem = t->type;
    shape->rank = (int8_t)t->rank;
    shape->of = NULL;
    shape->data_count = -1;
    shape->tensor = content ? t : NULL;
    for (int d = 0; d < t->rank; d++) {
        shape->dims[d] = nori__dim_of(t->dims[d]);
    }
    if (t->kind != NORI_KIND_TENSOR) {
        shape->rank = -1;
    }
}

static bool fully_known(const nori__shape *s)
{
    if (s->kind != NORI_KIND_TENSOR || s->rank < 0 || s->elem == NORI_UNDEFINED) {
        return false;
    }
    for (int d = 0; d < s->rank; d++) {
        if (s->dims[d].value < 0) {
            return false;
        }
    }
    return true;
}

static void join(layouter *w, uint32_t slot, uint32_t group)
{
    w->group[slot] = group;
    uint32_t last = w->plan->slots[slot].last_step;
    if (last != NORI__NO_SLOT) {
        nori__group_used(&w->groups, group, last);
    }
}

static bool same_size(const nori_tensor *in, const nori_tensor *out)
{
    return in->bytes == out->bytes && nori_type_bits(in->type) == nori_type_bits(out->type);
}

/* A view: the output is the input's bytes under another shape. */
static bool try_view(layouter *w, uint32_t s, const nori__step *step)
{
    if (!(step->node->op && (step->node->op->flags & NORI__OP_VIEW)) || step->n_in < 1 ||
        step->n_out < 1 || step->in[0] == NORI__NO_SLOT || step->out[0] == NORI__NO_SLOT) {
        return false;
    }
    for (uint32_t i = 1; i < step->n_out; i++) {
        if (step->out[i] != NORI__NO_SLOT) {
            return false;
        }
    }
    for (uint32_t i = 1; i < step->n_in; i++) {
        if (step->in[i] != NORI__NO_SLOT && !w->content[step->in[i]]) {
            return false; /* what the run brings may not fit: the kernel looks at it */
        }
    }
    uint32_t in = step->in[0], out = step->out[0];
    if (w->plan->slots[out].is_output || !same_size(w->seen[in], w->seen[out]) ||
        w->seen[in]->type == NORI_STRING) {
        return false;
    }
    nori__place *from = &w->l->places[in], *to = &w->l->places[out];
    if (from->how == NORI__PLACE_BLOCK) {
        to->how = NORI__PLACE_BLOCK;
        join(w, out, w->group[in]);
    } else {
        to->how = NORI__PLACE_ALIAS;
        to->alias = from->how == NORI__PLACE_ALIAS ? from->alias : in;
    }
    w->l->step_kind[s] = NORI__STEP_VIEW;
    return true;
}

/* The group output 0 may take over, or NORI__NO_GROUP. All that shares bytes with it must die here,
 * and no other input may look at the same bytes in another order. */
static uint32_t inplace_group(layouter *w, uint32_t s, const nori__step *step)
{
    if (!(step->node->op && (step->node->op->flags & NORI__OP_INPLACE))) {
        return NORI__NO_GROUP;
    }
    const nori_tensor *out = w->seen[step->out[0]];
    for (uint32_t i = 0; i < step->n_in; i++) {
        uint32_t in = step->in[i];
        if (in == NORI__NO_SLOT || w->l->places[in].how != NORI__PLACE_BLOCK ||
            !same_size(w->seen[in], out) || nori__group_last(&w->groups, w->group[in]) != s) {
            continue;
        }
        bool clash = false;
        for (uint32_t j = 0; j < step->n_in; j++) {
            uint32_t other = step->in[j];
            if (other != NORI__NO_SLOT && other != in &&
                w->l->places[other].how == NORI__PLACE_BLOCK &&
                nori__group_whole(&w->groups, w->group[other]) ==
                    nori__group_whole(&w->groups, w->group[in])) {
                clash = true;
            }
        }
        if (!clash) {
            return w->group[in];
        }
    }
    return NORI__NO_GROUP;
}

/* A part becomes a piece of a whole, if it is not yet another one's. */
static void put_piece(layouter *w, uint32_t part, uint32_t whole, size_t at)
{
    uint32_t group = w->group[part];
    if (w->l->places[part].how == NORI__PLACE_BLOCK &&
        nori__group_whole(&w->groups, group) == group &&
        group != nori__group_whole(&w->groups, w->group[whole]) &&
        w->groups.items[group].life.bytes == w->l->places[part].bytes) {
        nori__group_put(&w->groups, group, w->group[whole], at);
    }
}

/* A Slice's output stays where its input has it. */
static void place_slice(layouter *w, const nori__step *step)
{
    size_t at;
    for (uint32_t i = 1; i < step->n_in; i++) {
        if (step->in[i] != NORI__NO_SLOT && !w->content[step->in[i]]) {
            return;
        }
    }
    if (step->in[0] != NORI__NO_SLOT && step->out[0] != NORI__NO_SLOT &&
        w->l->places[step->in[0]].how == NORI__PLACE_BLOCK &&
        nori__slice_of(step, w->in, (nori_tensor *)(uintptr_t)w->seen[step->out[0]], &at)) {
        put_piece(w, step->out[0], step->in[0], at);
    }
}

/* A Concat's inputs move into its output, a Split's outputs into its input. */
static void place_pieces(layouter *w, const nori__step *step)
{
    if (nori__node_is(step->node, NORI__OP_ONNX_Slice)) {
        place_slice(w, step);
        return;
    }
    bool join_all = step->n_out == 1;
    const uint32_t *parts = join_all ? step->in : step->out;
    uint32_t count = join_all ? step->n_in : step->n_out, whole = join_all ? step->out[0] : step->in[0];
    if (step->n_in < 1 || whole == NORI__NO_SLOT || w->l->places[whole].how != NORI__PLACE_BLOCK) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        w->parts[i] = parts[i] == NORI__NO_SLOT ? NULL : w->seen[parts[i]];
    }
    if (!nori__pieces_of(step, join_all, w->seen[whole], w->parts, count, w->at)) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (w->at[i] != SIZE_MAX) {
            put_piece(w, parts[i], whole, w->at[i]);
        }
    }
}

static void place_outputs(layouter *w, uint32_t s, const nori__step *step)
{
    if (try_view(w, s, step)) {
        return;
    }
    for (uint32_t i = 0; i < step->n_out; i++) {
        uint32_t slot = step->out[i];
        if (slot == NORI__NO_SLOT) {
            continue;
        }
        nori__place *place = &w->l->places[slot];
        if (w->plan->slots[slot].is_output || w->seen[slot]->type == NORI_STRING) {
            place->how = NORI__PLACE_OUT;
            continue;
        }
        place->how = NORI__PLACE_BLOCK;
        uint32_t group = i == 0 ? inplace_group(w, s, step) : NORI__NO_GROUP;
        if (group == NORI__NO_GROUP) {
            group = nori__group_new(&w->groups, s, s, place->bytes);
        }
        join(w, slot, group);
    }
    place_pieces(w, step);
}

/* Runs a step whose inputs are all known and whose results are small. */
static nori_status compute_now(layouter *w, uint32_t s, const nori__step *step)
{
    for (uint32_t i = 0; i < step->n_in; i++) {
        if (w->in[i] && !nori__step_takes_loose(step, i) && !nori__tensor_settle(w->in[i])) {
            return nori__no_memory(w->err);
        }
    }
    for (uint32_t i = 0; i < step->n_out; i++) {
        w->out[i] = NULL;
        if (step->out[i] == NORI__NO_SLOT) {
            continue;
        }
        const nori_tensor *t = w->seen[step->out[i]];
        NORI__TRY(nori__tensor_new(w->a, t->type, t->rank, t->dims, &w->out[i], w->err));
        if (!nori__vec_push(&w->l->known, w->out[i])) {
            nori_tensor_free(w->out[i]);
            return nori__no_memory(w->err);
        }
    }
    nori_call call = {.node = step->node, .n_in = step->n_in, .n_out = step->n_out, .in = w->in,
                      .out = w->out, .allocator = w->a, .threads = 1, .err = w->err};
    if (step->kernel->workspace) {
        call.work_size = step->kernel->workspace(step->state, &call);
        call.work = nori__alloc(w->a, call.work_size);
        if (!call.work) {
            return nori__no_memory(w->err);
        }
    }
    nori_status status = step->kernel->run(step->state, &call);
    nori__release(w->a, call.work, call.work_size);
    NORI__TRY(status);
    for (uint32_t i = 0; i < step->n_out; i++) {
        if (step->out[i] != NORI__NO_SLOT) {
            nori__place *place = &w->l->places[step->out[i]];
            place->how = NORI__PLACE_KNOWN;
            place->known = w->out[i];
            w->seen[step->out[i]] = w->out[i];
            w->content[step->out[i]] = true;
        }
    }
    w->l->step_kind[s] = NORI__STEP_DONE;
    return NORI_OK;
}

/* Type and shape of an inferred output become the slot's. */
static nori_status record(layouter *w, uint32_t slot, const nori__shape *shape)
{
    int64_t *dims = nori__arena_array(&w->l->arena, (size_t)shape->rank + 1, sizeof(*dims));
    nori_tensor *t = nori__arena_alloc(w->scratch, sizeof(*t));
    if (!dims || !t) {
        return nori__no_memory(w->err);
    }
    for (int d = 0; d < shape->rank; d++) {
        dims[d] = shape->dims[d].value;
    }
    t->kind = NORI_KIND_TENSOR;
    if (!nori__tensor_reshape(t, shape->elem, shape->rank, dims)) {
        return nori__fail(w->err, NORI_ERROR_LIMIT, "value %s would be larger than memory can be",
                          w->plan->slots[slot].value->name);
    }
    nori__place *place = &w->l->places[slot];
    place->type = shape->elem;
    place->rank = shape->rank;
    place->dims = dims;
    place->bytes = t->bytes;
    w->seen[slot] = t;
    return NORI_OK;
}

static nori_status lay_step(layouter *w, uint32_t s)
{
    const nori__step *step = &w->plan->steps[s];
    const nori__op *op = step->node->op;
    nori__shape *in = w->shapes, *out = w->shapes + step->n_in;
    bool known = step->n_in > 0 && !(op && (op->flags & NORI__OP_RANDOM));
    w->l->step_kind[s] = NORI__STEP_LATE;
    if (!op || (op->flags & NORI__OP_SELF_ALLOC)) {
        return NORI_OK;
    }
    for (uint32_t i = 0; i < step->n_in; i++) {
        uint32_t slot = step->in[i];
        w->in[i] = NULL;
        memset(&in[i], 0, offsetof(nori__shape, dims));
        in[i].rank = -1;
        in[i].tensor = NULL;
        in[i].of = NULL;
        in[i].data_count = -1;
        if (slot == NORI__NO_SLOT) {
            continue;
        }
        if (!w->seen[slot]) {
            return NORI_OK;
        }
        w->in[i] = w->seen[slot];
        nori__shape_of_tensor(&in[i], w->seen[slot], w->content[slot]);
        known = known && (w->content[slot] || (i == 0 && (op->flags & NORI__OP_SHAPE)));
    }
    for (uint32_t i = 0; i < step->n_out; i++) {
        memset(&out[i], 0, offsetof(nori__shape, dims));
        out[i].rank = -1;
        out[i].of = NULL;
        out[i].tensor = NULL;
        out[i].data_count = -1;
    }
    nori__infer c = {.node = step->node, .in = in, .out = out, .err = w->err};
    NORI__TRY(op->infer(&c));
    size_t total = 0;
    for (uint32_t i = 0; i < step->n_out; i++) {
        if (step->out[i] != NORI__NO_SLOT && !fully_known(&out[i])) {
            return NORI_OK;
        }
    }
    for (uint32_t i = 0; i < step->n_out; i++) {
        if (step->out[i] != NORI__NO_SLOT) {
            NORI__TRY(record(w, step->out[i], &out[i]));
            total += w->seen[step->out[i]]->bytes < KNOWN_BYTES ? w->seen[step->out[i]]->bytes
                                                                : KNOWN_BYTES;
        }
    }
    w->l->step_kind[s] = NORI__STEP_RUN;
    if (known && total < KNOWN_BYTES) {
        return compute_now(w, s, step);
    }
    place_outputs(w, s, step);
    if (w->l->step_kind[s] == NORI__STEP_RUN && step->kernel->workspace) {
        for (uint32_t i = 0; i < step->n_out; i++) {
            w->out[i] = step->out[i] == NORI__NO_SLOT
                            ? NULL
                            : (nori_tensor *)(uintptr_t)w->seen[step->out[i]];
        }
        nori_call call = {.node = step->node, .n_in = step->n_in, .n_out = step->n_out,
                          .in = w->in, .out = w->out, .allocator = w->a,
                          .threads = w->plan->threads, .err = w->err};
        w->l->work_size[s] = step->kernel->workspace(step->state, &call);
        if (w->l->work_size[s] > 0) {
            w->l->work_offset[s] = nori__group_new(&w->groups, s, s, w->l->work_size[s]);
        }
    }
    return NORI_OK;
}

static nori_status lay_all(layouter *w, uint64_t memory_cap)
{
    const nori__plan *plan = w->plan;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        nori_status status = lay_step(w, s);
        if (status != NORI_OK) {
            char path[256];
            nori__node_path(plan->steps[s].node, path, sizeof(path));
            nori__where(w->err, "%s", path);
            return status;
        }
    }
    NORI__TRY(nori__groups_place(w->a, &w->groups, &w->l->block_bytes, w->err));
    if (memory_cap && w->l->block_bytes > memory_cap) {
        char need[NORI__SIZE_TEXT], most[NORI__SIZE_TEXT];
        nori_status status = nori__fail(
            w->err, NORI_ERROR_LIMIT, "activations need %s, the limit is %s",
            nori__size_apart(w->l->block_bytes, memory_cap, need),
            nori__size_apart(memory_cap, w->l->block_bytes, most));
        nori__hint(w->err, "%s", NORI__CAP_HINT);
        return status;
    }
    for (uint32_t i = 0; i < plan->n_slots; i++) {
        if (w->l->places[i].how == NORI__PLACE_BLOCK) {
            w->l->places[i].offset = w->groups.items[w->group[i]].life.offset;
        }
    }
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        if (w->l->work_size[s] > 0) {
            w->l->work_offset[s] = w->groups.items[w->l->work_offset[s]].life.offset;
        }
    }
    return NORI_OK;
}

nori_status nori__layout_build(const nori__plan *plan, const nori_allocator *a,
                               const nori_tensor *const *inputs,
                               const nori_tensor *const *captures, uint64_t memory_cap,
                               nori__layout *layout, nori_error *err)
{
    memset(layout, 0, sizeof(*layout));
    nori__arena_init(&layout->arena, a);
    nori__vec_init(&layout->known, a);
    nori__arena scratch;
    nori__arena_init(&scratch, a);
    uint32_t most_in = 0, most_out = 0;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        most_in = plan->steps[s].n_in > most_in ? plan->steps[s].n_in : most_in;
        most_out = plan->steps[s].n_out > most_out ? plan->steps[s].n_out : most_out;
    }
    size_t slots = (size_t)plan->n_slots + 1, steps = (size_t)plan->n_steps + 1;
    layout->places = nori__arena_array(&layout->arena, slots, sizeof(*layout->places));
    layout->step_kind = nori__arena_array(&layout->arena, steps, 1);
    layout->work_offset = nori__arena_array(&layout->arena, steps, sizeof(size_t));
    layout->work_size = nori__arena_array(&layout->arena, steps, sizeof(size_t));
    layouter w = {.plan = plan, .a = a, .l = layout, .scratch = &scratch, .err = err};
    w.seen = nori__arena_array(&scratch, slots, sizeof(*w.seen));
    w.content = nori__arena_array(&scratch, slots, sizeof(*w.content));
    w.group = nori__arena_array(&scratch, slots, sizeof(*w.group));
    /* A group a slot and one a step at most. */
    w.groups.items = nori__arena_array(&scratch, slots + steps, sizeof(*w.groups.items));
    size_t most = most_in > most_out ? most_in : most_out;
    w.at = nori__arena_array(&scratch, most + 1, sizeof(*w.at));
    w.parts = nori__arena_array(&scratch, most + 1, sizeof(*w.parts));
    w.shapes = nori__arena_array(&scratch, (size_t)most_in + most_out + 1, sizeof(*w.shapes));
    w.in = nori__arena_array(&scratch, (size_t)most_in + 1, sizeof(*w.in));
    w.out = nori__arena_array(&scratch, (size_t)most_out + 1, sizeof(*w.out));
    nori_status status = NORI_OK;
    if (!layout->places || !layout->step_kind || !layout->work_offset || !layout->work_size ||
        !w.seen || !w.content || !w.group || !w.groups.items ||
        !w.at || !w.parts || !w.shapes || !w.in || !w.out) {
        status = nori__no_memory(err);
    } else {
        for (uint32_t i = 0; i < plan->n_slots; i++) {
            if (plan->slots[i].kind == NORI__SLOT_CONST) {
                w.seen[i] = plan->slots[i].value->constant;
                w.content[i] = true;
                if (w.seen[i]->kind != NORI_KIND_TENSOR) {
                    w.seen[i] = NULL;
                }
            }
        }
        for (uint32_t i = 0; i < plan->n_in; i++) {
            const nori_tensor *t = inputs[i];
            if (plan->slots[plan->in[i]].kind == NORI__SLOT_INPUT) {
                w.seen[plan->in[i]] = t && t->kind == NORI_KIND_TENSOR ? t : NULL;
                w.content[plan->in[i]] = nori__is_default(&plan->slots[plan->in[i]], t);
            }
        }
        for (uint32_t i = 0; i < plan->n_capture; i++) {
            const nori_tensor *t = captures[i];
            w.seen[plan->capture[i]] = t && t->kind == NORI_KIND_TENSOR ? t : NULL;
        }
        status = lay_all(&w, memory_cap);
    }
    nori__arena_free(&scratch);
    if (status != NORI_OK) {
        nori__layout_free(layout);
    }
    return status;
}

void nori__layout_free(nori__layout *layout)
{
    for (size_t i = 0; i < layout->known.count; i++) {
        nori_tensor_free(layout->known.items[i]);
    }
    nori__vec_free(&layout->known);
    nori__arena_free(&layout->arena);
    memset(layout, 0, sizeof(*layout));
}

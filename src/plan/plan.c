/* plan.c: from a compiled graph to steps and slots: the part that does not depend on shapes. */
#include "base/bulk.h"
#include "ops/custom.h"
#include "plan/packed.h"
#include "base/built.h"
#include "plan/part.h"

#define LARGE_WEIGHT ((size_t)64 << 10) /* bytes of which it is worth to tell */

typedef struct planner {
    nori__arena *arena;
    const nori__plan_options *options;
    const nori__graph *graph;
    nori__plan *plan;
    uint32_t *slot_of;  /* value id -> slot + 1; 0: none */
    nori__slot *slots;  /* while growing */
    size_t n_slots, room;
    nori__vec captures; /* const nori__value * */
    nori_error *err;
} planner;

static nori_status reference_run(const void *state, nori_call *call)
{
    (void)state;
    return call->node->op->reference(call);
}

static const nori_kernel reference_kernel = {
    .size = sizeof(nori_kernel),
    .run = reference_run,
};

static nori__slot *new_slot(planner *p)
{
    if (p->n_slots == p->room) {
        const nori_allocator *a = p->options->allocator;
        size_t room = p->room ? p->room * 2 : 64, bytes;
        nori__slot *grown = room < UINT32_MAX && nori__mul_size(room, sizeof(*grown), &bytes)
                                ? nori__alloc(a, bytes)
                                : NULL;
        if (!grown) {
            return NULL;
        }
        if (p->n_slots > 0) {
            memcpy(grown, p->slots, p->n_slots * sizeof(*grown));
        }
        nori__release(a, p->slots, p->room * sizeof(*grown));
        p->slots = grown;
        p->room = room;
    }
    return &p->slots[p->n_slots++];
}

/* The slot of a value, made on first sight. */
static uint32_t slot_for(planner *p, const nori__value *v, bool *ok)
{
    if (p->slot_of[v->id]) {
        return p->slot_of[v->id] - 1;
    }
    nori__slot *slot = new_slot(p);
    if (!slot) {
        *ok = false;
        return NORI__NO_SLOT;
    }
    *slot = (nori__slot){.value = v, .last_step = NORI__NO_SLOT};
    if (nori__value_as_is(v)) {
        slot->kind = NORI__SLOT_CONST;
    } else if (v->graph != p->graph) {
        slot->kind = NORI__SLOT_CAPTURE;
        if (!nori__vec_push(&p->captures, (void *)(uintptr_t)v)) {
            *ok = false;
        }
    } else if (v->flags & NORI__VALUE_INPUT) {
        slot->kind = NORI__SLOT_INPUT;
    } else {
        slot->kind = NORI__SLOT_LOCAL;
    }
    p->slot_of[v->id] = (uint32_t)p->n_slots;
    return (uint32_t)p->n_slots - 1;
}

static nori_status slot_list(planner *p, nori__value *const *values, uint32_t count,
                             const uint32_t **out)
{
    uint32_t *list = nori__arena_raw(p->arena, count ? count : 1, sizeof(*list));
    bool ok = list != NULL;
    for (uint32_t i = 0; ok && i < count; i++) {
        list[i] = values[i] ? slot_for(p, values[i], &ok) : NORI__NO_SLOT;
    }
    *out = list;
    return ok ? NORI_OK : nori__no_memory(p->err);
}

static nori_status at_node(nori_error *err, const nori__node *node, nori_status s)
{
    char path[256];
    nori__node_path(node, path, sizeof(path));
    nori__where(err, "%s", path);
    return s;
}

/* The inputs that a kernel packs, a bit each. */
static uint32_t packed_inputs(const nori_kernel *k)
{
    return k->size >= offsetof(nori_kernel, packed_inputs) + sizeof(k->packed_inputs) ? k->packed_inputs
                                                                                       : 0;
}

static void tell_pages(const nori__plan_options *o, const nori_kernel *k, const nori__node *node, bool needed)
{
    for (uint32_t i = 0; o->pages && i < 32 && i < node->input_count; i++) {
        bool packed = packed_inputs(k) >> i & 1;
        const nori_tensor *t = packed && node->inputs[i] ? nori__value_as_is(node->inputs[i]) : NULL;
        if (t && t->bytes >= LARGE_WEIGHT) {
            o->pages(o->pages_user, nori__tensor_at(t), t->bytes, needed);
        }
    }
}

static nori_status choose_kernel(planner *p, nori__step *step)
{
    const nori__node *node = step->node;
    const nori__plan_options *o = p->options;
    if (NORI__BUILT(parts) && node->part) {
        step->kernel = &nori__part_kernel;
        step->provider = node->part->label;
        step->state = node->part; /* the session frees it: the kernel has no release */
        return NORI_OK;
    }
    if (o->packs) {
        nori__packs_at(o->packs, step->id, node);
    }
    for (size_t i = 0; i < o->n_providers; i++) {
        const nori_kernel *k = o->providers[i]->kernel
                                   ? o->providers[i]->kernel(o->provider_self[i], node)
                                   : NULL;
        if (!k) {
            continue;
        }
        if (k->prepare) {
            tell_pages(o, k, node, true);
            nori_status s =
                k->prepare(node, o->allocator, &step->state, &step->state_bytes, p->err);
            tell_pages(o, k, node, false);
            if (s == NORI_ERROR_UNSUPPORTED && (!p->err || p->err->status == NORI_OK)) {
                continue; /* not this node after all */
            }
            if (s != NORI_OK) {
                return at_node(p->err, node, s);
            }
        }
        step->kernel = k;
        step->provider = o->providers[i]->name;
        return NORI_OK;
    }
    const nori_kernel *own = nori__custom_kernel(node->op);
    if (own) {
        nori_status s = own->prepare ? own->prepare(node, o->allocator, &step->state,
                                                    &step->state_bytes, p->err)
                                     : NORI_OK;
        step->kernel = own;
        step->provider = "custom";
        return s == NORI_OK ? s : at_node(p->err, node, nori__custom_failed(node, s, p->err));
    }
    if (!node->op || !node->op->reference) {
        return at_node(p->err, node,
                       nori__fail(p->err, NORI_ERROR_UNSUPPORTED, "no provider runs operator %s",
                                  node->op_type));
    }
    step->kernel = &reference_kernel;
    step->provider = "reference";
    return NORI_OK;
}

/* Plans the subgraphs of a node and makes what they capture hidden inputs of its step. */
static nori_status plan_subgraphs(planner *p, nori__step *step, uint32_t *next_id)
{
    const nori__node *node = step->node;
    uint32_t n_sub = 0;
    for (uint32_t i = 0; i < node->attr_count; i++) {
        n_sub += node->attrs[i].kind == NORI__ATTR_GRAPH;
    }
    if (n_sub == 0) {
        return NORI_OK;
    }
    step->sub = nori__arena_array(p->arena, n_sub, sizeof(*step->sub));
    if (!step->sub) {
        return nori__no_memory(p->err);
    }
    uint32_t total = 0;
    for (uint32_t i = 0; i < node->attr_count; i++) {
        if (node->attrs[i].kind != NORI__ATTR_GRAPH) {
            continue;
        }
        nori__plan *sub = NULL;
        nori_status s = nori__plan_build(p->arena, node->attrs[i].v.graph, p->options, next_id,
                                         &sub, p->err);
        if (sub) {
            step->sub[step->n_sub++] = sub;
            p->plan->holds = true;
        }
        NORI__TRY(s);
        p->plan->state_bytes += sub->state_bytes;
        total += sub->n_capture;
    }
    uint32_t *hidden = nori__arena_array(p->arena, total ? total : 1, sizeof(*hidden));
    bool ok = hidden != NULL;
    for (uint32_t i = 0; ok && i < step->n_sub; i++) {
        nori__plan *sub = step->sub[i];
        uint32_t *outer = (uint32_t *)(uintptr_t)sub->capture_outer;
        for (uint32_t c = 0; ok && c < sub->n_capture; c++) {
            outer[c] = slot_for(p, sub->slots[sub->capture[c]].value, &ok);
            hidden[step->n_hidden++] = outer[c];
        }
    }
    step->hidden = hidden;
    return ok ? NORI_OK : nori__no_memory(p->err);
}

static void note_use(nori__plan *plan, const uint32_t *slots, uint32_t count, uint32_t step)
{
    for (uint32_t i = 0; i < count; i++) {
        if (slots[i] != NORI__NO_SLOT) {
            plan->slots[slots[i]].last_step = step;
        }
    }
}

static bool dies(const nori__slot *slot)
{
    return slot->kind == NORI__SLOT_LOCAL && !slot->is_output && slot->last_step != NORI__NO_SLOT;
}

/* Which slots die at which step. A value nobody reads dies where it is made. */
static nori_status find_deaths(planner *p)
{
    nori__plan *plan = p->plan;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const nori__step *step = &plan->steps[s];
        note_use(plan, step->out, step->n_out, s);
        note_use(plan, step->in, step->n_in, s);
        note_use(plan, step->hidden, step->n_hidden, s);
    }
    for (uint32_t i = 0; i < plan->n_out; i++) {
        plan->slots[plan->out[i]].is_output = true;
    }
    size_t all = 0;
    for (uint32_t i = 0; i < plan->n_slots; i++) {
        if (dies(&plan->slots[i])) {
            plan->steps[plan->slots[i].last_step].n_dead++;
            all++;
        }
    }
    uint32_t *dead = nori__arena_raw(p->arena, all + 1, sizeof(*dead));
    if (!dead) {
        return nori__no_memory(p->err);
    }
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        nori__step *step = &plan->steps[s];
        step->dead = dead;
        dead += step->n_dead;
        step->n_dead = 0;
    }
    for (uint32_t i = 0; i < plan->n_slots; i++) {
        if (dies(&plan->slots[i])) {
            nori__step *step = &plan->steps[plan->slots[i].last_step];
            ((uint32_t *)(uintptr_t)step->dead)[step->n_dead++] = i;
        }
    }
    return NORI_OK;
}

static nori_status finish_slots(planner *p)
{
    nori__plan *plan = p->plan;
    plan->n_slots = (uint32_t)p->n_slots;
    plan->n_capture = (uint32_t)p->captures.count;
    plan->slots = nori__arena_raw(p->arena, p->n_slots + 1, sizeof(*plan->slots));
    uint32_t *capture = nori__arena_array(p->arena, p->captures.count + 1, sizeof(*capture));
    plan->capture = capture;
    plan->capture_outer = nori__arena_array(p->arena, p->captures.count + 1, sizeof(uint32_t));
    if (!plan->slots || !capture || !plan->capture_outer) {
        return nori__no_memory(p->err);
    }
    if (p->n_slots > 0) {
        memcpy(plan->slots, p->slots, p->n_slots * sizeof(*p->slots));
    }
    for (size_t i = 0; i < p->captures.count; i++) {
        capture[i] = p->slot_of[((const nori__value *)p->captures.items[i])->id] - 1;
    }
    return find_deaths(p);
}

bool nori__step_takes_loose(const nori__step *step, uint32_t i)
{
    const nori_kernel *k = step->kernel;
    if (k == &reference_kernel) {
        return i == 0 && (step->node->op->flags & NORI__OP_LOOSE);
    }
    return step->state && i < 32 && (packed_inputs(k) >> i & 1);
}

static bool add_loose(const nori__plan *plan, uint32_t slot, nori__vec *list)
{
    if (slot == NORI__NO_SLOT || plan->slots[slot].kind != NORI__SLOT_CONST) {
        return true;
    }
    nori_tensor *t = plan->slots[slot].value->constant;
    return !t->loose || nori__vec_push(list, t);
}

/* Constants that no kernel has packed are copied to where kernels can read them, but not before the
 * first run. */
static nori_status find_loose(planner *p)
{
    nori__plan *plan = p->plan;
    nori__vec list;
    bool ok = true;
    nori__vec_init(&list, p->options->allocator);
    for (uint32_t s = 0; ok && s < plan->n_steps; s++) {
        const nori__step *step = &plan->steps[s];
        for (uint32_t i = 0; ok && i < step->n_in; i++) {
            ok = nori__step_takes_loose(step, i) || add_loose(plan, step->in[i], &list);
        }
    }
    for (uint32_t i = 0; ok && i < plan->n_out; i++) {
        ok = add_loose(plan, plan->out[i], &list);
    }
    plan->loose = nori__arena_array(p->arena, list.count + 1, sizeof(*plan->loose));
    for (; ok && plan->loose && plan->n_loose < list.count; plan->n_loose++) {
        plan->loose[plan->n_loose] = list.items[plan->n_loose];
    }
    nori__vec_free(&list);
    return ok && plan->loose ? NORI_OK : nori__no_memory(p->err);
}

static nori_status build(planner *p, uint32_t *next_id)
{
    const nori__graph *g = p->graph;
    nori__plan *plan = p->plan;
    plan->graph = g;
    plan->threads = p->options->threads;
    plan->n_in = g->input_count;
    plan->n_out = g->output_count;
    NORI__TRY(slot_list(p, g->inputs, g->input_count, &plan->in));
    plan->steps = nori__arena_raw(p->arena, (size_t)g->node_count + 1, sizeof(*plan->steps));
    if (!plan->steps) {
        return nori__no_memory(p->err);
    }
    for (nori__node *node = g->first; node; node = node->next) {
        nori__step *step = &plan->steps[plan->n_steps++];
        *step = (nori__step){.node = node}; /* here and not all at once: now it is needed */
        step->id = (*next_id)++;
        step->n_in = node->input_count;
        step->n_out = node->output_count;
        NORI__TRY(slot_list(p, node->inputs, node->input_count, &step->in));
        NORI__TRY(plan_subgraphs(p, step, next_id));
        NORI__TRY(slot_list(p, node->outputs, node->output_count, &step->out));
        nori_status s = choose_kernel(p, step);
        plan->holds = plan->holds || step->state; /* a kernel that failed may have left one, too */
        plan->state_bytes += step->state_bytes;
        NORI__TRY(s);
    }
    NORI__TRY(slot_list(p, g->outputs, g->output_count, &plan->out));
    NORI__TRY(finish_slots(p));
    return g->ir->loose ? find_loose(p) : NORI_OK;
}

nori_status nori__plan_build(nori__arena *arena, const nori__graph *graph,
                             const nori__plan_options *options, uint32_t *next_id,
                             nori__plan **plan, nori_error *err)
{
    planner p = {.arena = arena, .options = options, .graph = graph, .err = err};
    *plan = p.plan = nori__arena_alloc(arena, sizeof(nori__plan));
    size_t bytes = ((size_t)graph->ir->value_count + 1) * sizeof(*p.slot_of);
    p.slot_of = nori__alloc_zero(options->allocator, bytes);
    nori_status s = NORI_OK;
    if (!p.plan || !p.slot_of) {
        s = nori__no_memory(err);
    } else {
        nori__vec_init(&p.captures, options->allocator);
        s = build(&p, next_id);
        nori__release(options->allocator, p.slots, p.room * sizeof(*p.slots));
        nori__vec_free(&p.captures);
    }
    nori__release(options->allocator, p.slot_of, bytes);
    return s;
}

/* Subgraph depth is limited when the graph is built, so this recursion is too. */
void nori__plan_close(nori__plan *plan, const nori_allocator *a)
{
    if (!plan || !plan->holds) {
        return;
    }
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        nori__step *step = &plan->steps[s];
        if (step->kernel && step->kernel->release && step->state) {
            step->kernel->release(step->state, a);
            step->state = NULL;
        }
        for (uint32_t i = 0; i < step->n_sub; i++) {
            nori__plan_close(step->sub[i], a);
        }
    }
}

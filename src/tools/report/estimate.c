/* estimate.c: what a run of a session would take: its plan is laid out for the given shapes, as a
 * run does it first, and the cost of each step is read off. Nothing is computed but what follows
 * from shapes alone. */
#include "base/given.h"
#include "nori/tools.h"
#include "run/run.h"
#include "plan/cost.h"

struct nori_costs {
    const nori_allocator *allocator;
    nori__arena arena;
    nori_cost *rows; /* by step id */
    size_t count;
    nori_cost_total total;
    nori__map values; /* name -> const nori_tensor *, of the main graph */
};

/* The plan of one graph while it is looked at. */
typedef struct pricing {
    nori_costs *costs;
    const nori__plan *plan;
    bool inner;
    const nori_tensor **seen; /* per slot: type and shape, NULL: not known */
    nori_error *err;
} pricing;

/* A header without data in the arena; NULL: no memory, or larger than memory can be. */
static nori_tensor *header(nori__arena *arena, nori_type type, int rank, const int64_t *dims)
{
    nori_tensor *t = nori__arena_alloc(arena, sizeof(*t));
    if (!t) {
        return NULL;
    }
    t->kind = NORI_KIND_TENSOR;
    return nori__tensor_reshape(t, type, rank, dims) ? t : NULL;
}

/* From what inference told about a value; free: what a dimension of no known size becomes, or -1
 * to give up. */
static nori_tensor *from_type(nori__arena *arena, const nori__type *type, int64_t free)
{
    int64_t dims[NORI_MAX_RANK];
    if (type->kind != NORI_KIND_TENSOR || type->rank < 0 || type->elem == NORI_UNDEFINED) {
        return NULL;
    }
    for (int d = 0; d < type->rank; d++) {
        dims[d] = type->dims[d].value >= 0 ? type->dims[d].value : free;
        if (dims[d] < 0) {
            return NULL;
        }
    }
    return header(arena, (nori_type)type->elem, type->rank, dims);
}

/* What every slot holds under a layout (NULL: there is none). */
static bool look(pricing *p, const nori__layout *l, const nori_tensor *const *inputs,
                 const nori_tensor *const *captures)
{
    const nori__plan *plan = p->plan;
    nori__arena *arena = &p->costs->arena;
    p->seen = nori__arena_array(arena, (size_t)plan->n_slots + 1, sizeof(*p->seen));
    if (!p->seen) {
        return false;
    }
    for (uint32_t i = 0; i < plan->n_in; i++) {
        p->seen[plan->in[i]] = inputs[i];
    }
    for (uint32_t i = 0; i < plan->n_capture; i++) {
        p->seen[plan->capture[i]] = captures[i];
    }
    for (uint32_t i = 0; i < plan->n_slots; i++) {
        const nori__slot *slot = &plan->slots[i];
        const nori__place *place = l ? &l->places[i] : NULL;
        if (slot->kind == NORI__SLOT_CONST) {
            p->seen[i] = slot->value->constant;
        } else if (!p->seen[i] && place && place->type != NORI_UNDEFINED) {
            p->seen[i] = header(arena, (nori_type)place->type, place->rank, place->dims);
        } else if (!p->seen[i]) {
            p->seen[i] = from_type(arena, &slot->value->type, -1);
        }
        if (p->seen[i] && p->seen[i]->kind != NORI_KIND_TENSOR) {
            p->seen[i] = NULL;
        }
    }
    return true;
}

static const nori_tensor *slot_tensor(const pricing *p, uint32_t slot)
{
    return slot == NORI__NO_SLOT ? NULL : p->seen[slot];
}

/* The row of one step; kind: of nori__layout. */
static bool price(pricing *p, const nori__step *step, uint8_t kind)
{
    nori_costs *c = p->costs;
    size_t n = (size_t)step->n_in + step->n_out;
    const nori_tensor **at = nori__arena_array(&c->arena, n + 1, sizeof(*at));
    if (!at) {
        return false;
    }
    nori_cost *row = &c->rows[step->id];
    const nori__value *first = step->node->output_count > 0 ? step->node->outputs[0] : NULL;
    *row = (nori_cost){.size = sizeof(*row),
                       .node = step->node->name,
                       .output = first ? first->name : "",
                       .op = step->node->op_type,
                       .provider = step->provider,
                       .known = 1,
                       .inner = p->inner};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t slot = i < step->n_in ? step->in[i] : step->out[i - step->n_in];
        at[i] = slot_tensor(p, slot);
        if (slot == NORI__NO_SLOT) {
            continue;
        }
        row->known &= at[i] != NULL;
        if (at[i]) {
            *(i < step->n_in ? &row->read_bytes : &row->written_bytes) += at[i]->bytes;
        }
    }
    if (step->node->part) { /* the provider's own affair */
        row->known = 0;
    } else if (kind == NORI__STEP_VIEW || kind == NORI__STEP_DONE) { /* nothing is left to do */
        row->read_bytes = row->written_bytes = 0;
        row->known = 1;
    } else if (!nori__cost_macs(step->node, at, step->n_in, at + step->n_in, step->n_out,
                                &row->macs)) {
        row->known = 0;
    } else if (step->n_sub > 0) {
        row->known = 1; /* what costs is in the subgraphs' own rows */
        row->read_bytes = row->written_bytes = 0;
    }
    *(p->inner ? &c->total.inner_macs : &c->total.macs) += row->macs;
    c->total.nodes++;
    c->total.unknown += !row->known;
    c->total.late += kind == NORI__STEP_LATE && step->n_sub == 0;
    return true;
}

static nori_status price_plan(nori_costs *c, const nori__plan *plan, bool inner,
                              const nori_tensor *const *inputs, const nori_tensor *const *captures,
                              uint64_t cap, nori_error *err);

/* Inputs of a subgraph: Loop's are its count, condition and carried values; other bodies are taken
 * by what inference knows. */
static nori_status price_inner(pricing *p, const nori__step *step, const nori__plan *sub)
{
    nori__arena *arena = &p->costs->arena;
    const nori_tensor **in = nori__arena_array(arena, (size_t)sub->n_in + 1, sizeof(*in));
    const nori_tensor **caught = nori__arena_array(arena, (size_t)sub->n_capture + 1,
                                                   sizeof(*caught));
    if (!in || !caught) {
        return nori__no_memory(p->err);
    }
    for (uint32_t i = 0; i < sub->n_in; i++) {
        in[i] = from_type(arena, &sub->slots[sub->in[i]].value->type, -1);
        if (nori__node_is(step->node, NORI__OP_ONNX_Loop) && i >= 2 && i < step->n_in && !in[i]) {
            in[i] = slot_tensor(p, step->in[i]);
        }
    }
    for (uint32_t i = 0; i < sub->n_capture; i++) {
        caught[i] = slot_tensor(p, sub->capture_outer[i]);
    }
    return price_plan(p->costs, sub, true, in, caught, 0, p->err);
}

/* Subgraphs nest as deep as loading allows. */
static nori_status price_plan(nori_costs *c, const nori__plan *plan, bool inner,
                              const nori_tensor *const *inputs, const nori_tensor *const *captures,
                              uint64_t cap, nori_error *err)
{
    pricing p = {.costs = c, .plan = plan, .inner = inner, .err = err};
    nori__layout layout;
    nori_error quiet = {0}; /* carried values may grow: a body that cannot be laid out is unknown */
    nori_status status = nori__layout_build(plan, c->allocator, inputs, captures, cap, &layout,
                                            inner ? &quiet : err);
    bool laid_out = status == NORI_OK;
    if (!laid_out && (!inner || status == NORI_ERROR_MEMORY)) {
        return inner ? nori__no_memory(err) : status;
    }
    status = look(&p, laid_out ? &layout : NULL, inputs, captures) ? NORI_OK
                                                                   : nori__no_memory(err);
    for (uint32_t i = 0; status == NORI_OK && !inner && i < plan->n_slots; i++) {
        if (p.seen[i] && !nori__map_put(&c->values, plan->slots[i].value->name,
                                        (void *)(uintptr_t)p.seen[i])) {
            status = nori__no_memory(err);
        }
    }
    c->total.activation_bytes += laid_out ? layout.block_bytes : 0;
    for (uint32_t s = 0; status == NORI_OK && s < plan->n_steps; s++) {
        const nori__step *step = &plan->steps[s];
        uint8_t kind = laid_out ? layout.step_kind[s] : (uint8_t)NORI__STEP_LATE;
        status = price(&p, step, kind) ? NORI_OK : nori__no_memory(err);
        for (uint32_t k = 0; status == NORI_OK && k < step->n_sub; k++) {
            status = price_inner(&p, step, step->sub[k]);
        }
    }
    for (uint32_t i = 0; status == NORI_OK && !inner && i < plan->n_out; i++) {
        const nori_tensor *t = p.seen[plan->out[i]];
        c->total.output_bytes += t ? t->bytes : 0;
    }
    if (laid_out) {
        nori__layout_free(&layout);
    }
    return status;
}

static nori_status main_inputs(const nori_session *s, const nori_tensor *const *given, size_t count,
                               nori_costs *c, const nori_tensor ***out, nori_error *err)
{
    const nori_tensor **in = nori__arena_array(&c->arena, s->n_inputs + 1, sizeof(*in));
    *out = in;
    for (size_t i = 0; in && i < s->n_inputs; i++) {
        const nori__value *v = s->ir->main->inputs[i];
        in[i] = i < count ? given[i] : NULL;
        if (!in[i]) {
            in[i] = v->constant ? v->constant : from_type(&c->arena, &v->type, 1);
        }
        c->total.input_bytes += in[i] && in[i]->kind == NORI_KIND_TENSOR ? in[i]->bytes : 0;
    }
    return in ? NORI_OK : nori__no_memory(err);
}

nori_status nori_session_costs(const nori_session *session, const nori_tensor *const *inputs,
                               size_t input_count, nori_costs **costs, nori_error *err)
{
    NORI__GIVEN(err, session);
    NORI__GIVEN_LIST(err, inputs, input_count);
    NORI__GIVEN(err, costs);
    *costs = NULL;
    nori_costs *c = nori__alloc_zero(session->allocator, sizeof(*c));
    if (!c) {
        return nori__no_memory(err);
    }
    c->allocator = session->allocator;
    nori__arena_init(&c->arena, c->allocator);
    nori__map_init(&c->values, c->allocator);
    c->count = session->n_step_ids;
    c->rows = nori__arena_array(&c->arena, c->count + 1, sizeof(*c->rows));
    const nori_tensor **in = NULL;
    nori_status status = c->rows ? NORI_OK : nori__no_memory(err);
    if (status == NORI_OK) {
        status = main_inputs(session, inputs, inputs ? input_count : 0, c, &in, err);
    }
    if (status == NORI_OK) {
        status = price_plan(c, session->plan, false, in, NULL, session->memory_cap, err);
    }
    if (status != NORI_OK) {
        nori_costs_free(c);
        return status;
    }
    *costs = c;
    return NORI_OK;
}

void nori_costs_free(nori_costs *c)
{
    if (c) {
        nori__map_free(&c->values);
        nori__arena_free(&c->arena);
        nori__release(c->allocator, c, sizeof(*c));
    }
}

void nori_costs_total(const nori_costs *c, nori_cost_total *total)
{
    NORI__ASKED(c, );
    NORI__ASKED(total, );
    nori_cost_total t = c->total;
    t.size = total->size;
    memcpy(total, &t, t.size < sizeof(t) ? t.size : sizeof(t));
}

int nori_costs_at(const nori_costs *c, size_t index, nori_cost *cost)
{
    NORI__ASKED(c, 0);
    NORI__ASKED(cost, 0);
    if (index >= c->count) {
        return 0;
    }
    nori_cost row = c->rows[index];
    row.size = cost->size;
    memcpy(cost, &row, row.size < sizeof(row) ? row.size : sizeof(row));
    return 1;
}

const nori_tensor *nori_costs_value(const nori_costs *c, const char *name)
{
    NORI__ASKED(c, NULL);
    NORI__ASKED(name, NULL);
    return nori__map_get(&c->values, name);
}

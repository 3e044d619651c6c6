/* infer_graph.c: inference over a whole graph, in order; a node's subgraphs before the node itself,
 * with the types their inputs get from it. Walks by a stack of its own.
 *
 * What the file declares is a hint: what is inferred wins, a declaration fills in where nothing
 * was. Running again after a change starts from the declarations, never from what was inferred
 * before, so a wrong guess (a loop's first shape) cannot stay. */
#include "ops/infer_body.h"
#include "ops/resolve.h"
#include "ops/takes.h"

typedef struct frame {
    nori__graph *graph;
    nori__node *node;   /* next to be inferred; NULL: done */
    uint32_t sub;       /* state of the walk over its subgraphs */
    int carry;          /* how much carried values keep: NORI__CARRY_* */
    int loops;          /* loops around this graph */
} frame;

typedef struct inferer {
    nori__ir *ir;
    nori_error *err;
    nori__rewrite_fn before; /* called for each node when its inputs are known; may be NULL */
    nori__arena scratch;
    nori__shape *shapes;     /* inputs, then outputs of the current node */
    size_t shape_capacity;
    frame *frames;
    size_t depth, frame_capacity;
} inferer;

/* Bodies of loops further in than this are looked at once only, with open shapes: each level may
 * multiply the work by three. */
#define CAREFUL_LOOPS 3

/* ---- values to shapes and back ---- */

static void shape_of_value(nori__shape *s, const nori__value *v)
{
    s->kind = NORI_KIND_UNKNOWN;
    s->elem = NORI_UNDEFINED;
    s->rank = -1;
    s->of = NULL;
    s->tensor = NULL;
    s->data_count = -1;
    if (!v) {
        return;
    }
    s->kind = v->type.kind;
    s->elem = v->type.elem;
    s->rank = v->type.rank;
    s->of = v->type.of;
    for (int d = 0; d < s->rank; d++) {
        s->dims[d] = v->type.dims[d];
    }
    const nori_tensor *t = nori__value_as_is(v);
    if (!t && v->producer && nori__node_is(v->producer, NORI__OP_ONNX_Constant)) {
        const nori__attr *a = nori__attr_find(v->producer, "value"); /* not folded yet */
        t = a && a->kind == NORI__ATTR_TENSOR ? a->v.tensor : NULL;
    }
    if (t && t->kind == NORI_KIND_TENSOR) {
        s->tensor = t;
    }
    if (v->data && v->data_count <= NORI_MAX_RANK) {
        s->data_count = v->data_count;
        for (int i = 0; i < v->data_count; i++) {
            s->data[i] = v->data[i];
        }
    }
}

/* Says once a value that the file declares otherwise. */
static nori_status warn(inferer *w, nori__value *v, const nori__shape *s)
{
    const nori__type *t = &v->declared;
    if ((v->flags & NORI__VALUE_WARNED) || t->kind == NORI_KIND_UNKNOWN) {
        return NORI_OK;
    }
    nori_status status = NORI_OK;
    const char *what = v->flags & NORI__VALUE_OUTPUT ? "output" : "value";
    bool shapes = s->kind == NORI_KIND_TENSOR && t->kind == s->kind && t->rank >= 0 && s->rank >= 0;
    if (s->kind != t->kind || (s->elem && t->elem && s->elem != t->elem)) {
        v->flags |= NORI__VALUE_WARNED;
        status = nori__ir_warn(w->ir, "%s '%.200s' is declared as %s, the graph computes %s", what,
                               v->name, nori_type_name((nori_type)t->elem),
                               nori_type_name((nori_type)s->elem));
    } else if (shapes && s->rank != t->rank) {
        v->flags |= NORI__VALUE_WARNED;
        status = nori__ir_warn(w->ir,
                               "%s '%.200s' is declared with rank %d, the graph computes rank %d",
                               what, v->name, t->rank, s->rank);
    }
    for (int d = 0; shapes && d < s->rank && !(v->flags & NORI__VALUE_WARNED); d++) {
        int64_t is = s->dims[d].value, said = t->dims[d].value;
        if (is >= 0 && said >= 0 && is != said) {
            v->flags |= NORI__VALUE_WARNED;
            status = nori__ir_warn(w->ir,
                                   "axis %d of %s '%.200s' is declared as %lld, the graph computes "
                                   "%lld",
                                   d, what, v->name, (long long)said, (long long)is);
        }
    }
    return status == NORI_OK ? NORI_OK : nori__no_memory(w->err);
}

static bool same_dims(const nori__dim *a, const nori__dim *b, int count)
{
    for (int d = 0; d < count; d++) {
        if (a[d].value != b[d].value || a[d].name != b[d].name) {
            return false;
        }
    }
    return true;
}

/* Inferred beats declared, a symbol too: a number the file declares may be one example's. */
static nori_status put_type(inferer *w, nori__value *v, const nori__shape *s, bool hinted)
{
    const nori__type *t = &v->declared;
    v->flags &= ~(uint32_t)NORI__VALUE_HINTED;
    v->flags |= hinted ? NORI__VALUE_HINTED : 0;
    if (s->kind == NORI_KIND_UNKNOWN) {
        v->type = *t;
        v->flags |= t->kind != NORI_KIND_UNKNOWN ? NORI__VALUE_HINTED : 0;
        return NORI_OK;
    }
    NORI__TRY(warn(w, v, s));
    if (s->kind != NORI_KIND_TENSOR) {
        const nori__type *of = s->of ? s->of : t->kind == s->kind ? t->of : NULL;
        v->type = (nori__type){.kind = s->kind, .elem = s->elem, .rank = -1, .of = of};
        return NORI_OK;
    }
    bool hint = t->kind == NORI_KIND_TENSOR;
    nori_type elem = (nori_type)(s->elem ? s->elem : hint ? t->elem : NORI_UNDEFINED);
    int rank = s->rank >= 0 ? s->rank : hint ? t->rank : -1;
    v->flags |= rank != s->rank ? NORI__VALUE_HINTED : 0;
    nori__dim dims[NORI_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        dims[d] = s->rank >= 0 ? s->dims[d] : NORI__DIM_ANY;
        if (dims[d].value < 0 && !dims[d].name && hint && t->rank == rank) {
            dims[d] = t->dims[d];
            v->flags |= dims[d].value >= 0 || dims[d].name ? NORI__VALUE_HINTED : 0;
        }
    }
    nori__type *now = &v->type;
    if (now->kind == NORI_KIND_TENSOR && now->elem == elem && now->rank == rank &&
        (rank <= 0 || same_dims(now->dims, dims, rank))) {
        return NORI_OK; /* nothing new: the arena does not grow with every round */
    }
    return nori__type_set(&w->ir->arena, now, elem, rank, dims) ? NORI_OK
                                                                : nori__no_memory(w->err);
}

static nori_status put_data(inferer *w, nori__value *v, const nori__shape *s)
{
    int count = s->data_count;
    if (count < 0 || count > NORI_MAX_RANK) {
        v->data = NULL;
        v->data_count = 0;
        return NORI_OK;
    }
    if (v->data && v->data_count == count && same_dims(v->data, s->data, count)) {
        return NORI_OK;
    }
    nori__dim *data = nori__arena_array(&w->ir->arena, (size_t)count, sizeof(*data));
    if (!data) {
        return nori__no_memory(w->err);
    }
    memcpy(data, s->data, (size_t)count * sizeof(*data));
    v->data = data;
    v->data_count = count;
    return NORI_OK;
}

/* ---- one node ---- */

static bool reserve_shapes(inferer *w, size_t count)
{
    if (count > w->shape_capacity) {
        size_t capacity = count < 16 ? 16 : count * 2;
        w->shapes = nori__arena_array(&w->scratch, capacity, sizeof(*w->shapes));
        w->shape_capacity = w->shapes ? capacity : 0;
    }
    return w->shapes != NULL;
}

static nori_status infer_node(inferer *w, nori__node *node)
{
    size_t n_in = node->input_count, n_out = node->output_count;
    if (!node->op) { /* custom or unknown: what the file declares stands */
        for (size_t i = 0; i < n_out; i++) {
            if (node->outputs[i]) {
                node->outputs[i]->flags |= NORI__VALUE_HINTED;
            }
        }
        return NORI_OK;
    }
    if (!reserve_shapes(w, n_in + n_out + 1)) {
        return nori__no_memory(w->err);
    }
    nori__shape *out = w->shapes + n_in;
    bool hinted = node->op->flags & NORI__OP_CONTROL; /* bodies read more than its inputs */
    for (size_t i = 0; i < n_in; i++) {
        shape_of_value(&w->shapes[i], node->inputs[i]);
        hinted = hinted || (node->inputs[i] && (node->inputs[i]->flags & NORI__VALUE_HINTED));
    }
    for (size_t i = 0; i < n_out; i++) {
        shape_of_value(&out[i], NULL);
    }
    nori__infer c = {.node = node, .in = w->shapes, .out = out, .arena = &w->ir->arena,
                     .err = w->err};
    NORI__TRY(nori__require_types(&c));
    NORI__TRY(node->op->infer(&c));
    for (size_t i = 0; i < n_out; i++) {
        if (node->outputs[i]) {
            NORI__TRY(put_type(w, node->outputs[i], &out[i], hinted));
            NORI__TRY(put_data(w, node->outputs[i], &out[i]));
        }
    }
    return NORI_OK;
}

/* ---- the walk ---- */

static nori_status push(inferer *w, nori__graph *g, int loops)
{
    if (w->depth == w->frame_capacity) {
        size_t capacity = w->frame_capacity ? w->frame_capacity * 2 : 16;
        frame *grown = nori__arena_array(&w->scratch, capacity, sizeof(*grown));
        if (!grown) {
            return nori__no_memory(w->err);
        }
        for (size_t i = 0; i < w->depth; i++) {
            grown[i] = w->frames[i];
        }
        w->frames = grown;
        w->frame_capacity = capacity;
    }
    int carry = loops >= CAREFUL_LOOPS ? NORI__CARRY_ELEM : NORI__CARRY_SHAPE;
    w->frames[w->depth++] =
        (frame){.graph = g, .node = g->first, .loops = loops, .carry = carry};
    return NORI_OK;
}

/* Lets the rewriter have the node; nodes it puts in front come first, and it has the first of those
 * too. */
static nori_status rewrite(inferer *w, frame *f)
{
    for (nori__node *node = NULL; node != f->node;) {
        node = f->node;
        nori__node *before = node->prev;
        NORI__TRY(w->before(node, w->err));
        f->node = before ? before->next : f->graph->first;
    }
    return NORI_OK;
}

/* One step at the top frame's node: rewrite it, enter its next subgraph, or infer it. */
static nori_status step(inferer *w, frame *f)
{
    if (w->before && f->sub == 0) {
        NORI__TRY(rewrite(w, f));
    }
    nori__node *node = f->node;
    nori__graph *inner = node->attr_count > 0 ? nori__node_subgraph(node, &f->sub) : NULL;
    if (inner) {
        if (!nori__body_bind(node, inner, f->carry)) {
            return nori__no_memory(w->err);
        }
        for (uint32_t i = 0; i < inner->input_count; i++) {
            inner->inputs[i]->flags |= NORI__VALUE_HINTED; /* said by the body's author at best */
        }
        return push(w, inner, f->loops + nori__is_loop(node));
    }
    if (f->carry < NORI__CARRY_ELEM && !nori__body_settled(node)) {
        f->carry++;
        f->sub = 0;
        return NORI_OK;
    }
    NORI__TRY(infer_node(w, node));
    f->node = node->next;
    f->sub = 0;
    f->carry = f->loops >= CAREFUL_LOOPS ? NORI__CARRY_ELEM : NORI__CARRY_SHAPE;
    return NORI_OK;
}

static nori_status run(inferer *w)
{
    NORI__TRY(push(w, w->ir->main, 0));
    while (w->depth > 0) {
        frame *f = &w->frames[w->depth - 1];
        if (!f->node) {
            w->depth--;
            continue;
        }
        nori_status s = step(w, f);
        if (s != NORI_OK) {
            if (w->err && !w->err->where[0]) {
                char path[256];
                nori__node_path(f->node, path, sizeof(path));
                nori__where(w->err, "%s", path);
            }
            return s;
        }
    }
    return NORI_OK;
}

nori_status nori__infer_rewriting(nori__ir *ir, nori__rewrite_fn before, nori_error *err)
{
    inferer w = {.ir = ir, .err = err, .before = before};
    nori__arena_init(&w.scratch, ir->allocator);
    nori_status s = run(&w);
    nori__arena_free(&w.scratch);
    ir->inferred = s == NORI_OK ? ir->edits + 1 : 0;
    return s;
}

nori_status nori__infer_edited(nori__ir *ir, nori_error *err)
{
    return ir->inferred == ir->edits + 1 ? NORI_OK : nori__infer_graph(ir, err);
}

nori_status nori__infer_graph(nori__ir *ir, nori_error *err)
{
    return nori__infer_rewriting(ir, NULL, err);
}

/* infer_graph.c: inference over a whole graph, in order; subgraphs when their node is met, with
 * the types their inputs get from it. */
#include "ops/resolve.h"

typedef struct inferer {
    nori__ir *ir;
    nori_error *err;
} inferer;

static nori_status infer_nodes(inferer *w, nori__graph *g);

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
    const nori_tensor *t = nori__value_const(v);
    if (!t && v->producer && nori__node_is(v->producer, NORI__OP_ONNX_Constant)) {
        t = nori__attr_tensor(v->producer, "value"); /* not folded yet */
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

/* Inferred beats declared, but where nothing was inferred the declaration stays. */
static nori_status merge(inferer *w, nori__value *v, const nori__shape *s)
{
    nori__type *t = &v->type;
    if (s->kind == NORI_KIND_UNKNOWN) {
        return NORI_OK;
    }
    if (s->kind != NORI_KIND_TENSOR) {
        *t = (nori__type){.kind = s->kind, .elem = s->elem, .rank = -1, .of = s->of ? s->of : t->of};
        return NORI_OK;
    }
    nori__dim dims[NORI_MAX_RANK];
    int rank = s->rank >= 0 ? s->rank : t->kind == NORI_KIND_TENSOR ? t->rank : -1;
    nori_type elem = s->elem ? (nori_type)s->elem : (nori_type)t->elem;
    bool same_rank = t->kind == NORI_KIND_TENSOR && t->rank == rank;
    for (int d = 0; d < rank; d++) {
        nori__dim declared = same_rank ? t->dims[d] : NORI__DIM_ANY;
        nori__dim inferred = s->rank >= 0 ? s->dims[d] : NORI__DIM_ANY;
        bool conflict = inferred.value >= 0 && declared.value >= 0 &&
                        inferred.value != declared.value;
        if (conflict && (v->flags & NORI__VALUE_OUTPUT)) {
            nori__ir_warn(w->ir, "output %s axis %d is declared as %lld, the graph computes %lld",
                          v->name, d, (long long)declared.value, (long long)inferred.value);
        }
        dims[d] = inferred.value >= 0 || inferred.name ? inferred : declared;
    }
    if (t->kind == NORI_KIND_TENSOR && t->rank >= 0 && rank != t->rank &&
        (v->flags & NORI__VALUE_OUTPUT)) {
        nori__ir_warn(w->ir, "output %s is declared with rank %d, the graph computes rank %d",
                      v->name, t->rank, rank);
    }
    if (rank < 0) {
        *t = (nori__type){.kind = NORI_KIND_TENSOR, .elem = (uint8_t)elem, .rank = -1};
    } else if (!nori__type_set(&w->ir->arena, t, elem, rank, dims)) {
        return nori__no_memory(w->err);
    }
    if (s->data_count >= 0 && s->data_count <= NORI_MAX_RANK) {
        nori__dim *data =
            nori__arena_array(&w->ir->arena, (size_t)s->data_count + 1, sizeof(*data));
        if (!data) {
            return nori__no_memory(w->err);
        }
        for (int i = 0; i < s->data_count; i++) {
            data[i] = s->data[i];
        }
        v->data = data;
        v->data_count = s->data_count;
    }
    return NORI_OK;
}

static nori_status take_type(inferer *w, nori__value *v, const nori__type *from, int drop)
{
    if (from->kind != NORI_KIND_TENSOR || from->rank < drop) {
        if (from->kind != NORI_KIND_UNKNOWN && v->type.kind == NORI_KIND_UNKNOWN) {
            v->type = *from;
            v->type.rank = -1;
        }
        return NORI_OK;
    }
    nori__shape s;
    shape_of_value(&s, NULL);
    s.kind = NORI_KIND_TENSOR;
    s.elem = from->elem;
    s.rank = (int8_t)(from->rank - drop);
    for (int d = 0; d < s.rank; d++) {
        s.dims[d] = from->dims[d + drop];
    }
    return merge(w, v, &s);
}

/* Types that a control-flow node gives its bodies' inputs. Carried values may change their shape
 * from one iteration to the next: only the element type and rank are passed on for those. */
static nori_status bind_body(inferer *w, const nori__node *node, nori__graph *body)
{
    bool loop = nori__node_is(node, NORI__OP_ONNX_Loop);
    bool scan = nori__node_is(node, NORI__OP_ONNX_Scan);
    int64_t n_scan = nori__attr_i(node, "num_scan_inputs", 0);
    for (uint32_t i = 0; i < body->input_count; i++) {
        nori__value *v = body->inputs[i];
        if (loop && i < 2) {
            nori__dim none[1];
            if (!nori__type_set(&w->ir->arena, &v->type, i == 0 ? NORI_INT64 : NORI_BOOL, 0, none)) {
                return nori__no_memory(w->err);
            }
            continue;
        }
        uint32_t from = scan && node->version < 9 ? i + 1 : i;
        if ((!loop && !scan) || from >= node->input_count || !node->inputs[from]) {
            continue;
        }
        const nori__type *t = &node->inputs[from]->type;
        if (scan && node->version >= 9 && (int64_t)i + n_scan >= (int64_t)body->input_count) {
            size_t n_axes;
            const int64_t *axes = nori__attr_ints(node, "scan_input_axes", &n_axes);
            if (!axes || n_axes == 0 || axes[0] == 0) {
                NORI__TRY(take_type(w, v, t, 1));
            }
        } else if (t->kind == NORI_KIND_TENSOR && v->type.kind == NORI_KIND_UNKNOWN) {
            v->type.kind = NORI_KIND_TENSOR;
            v->type.elem = t->elem;
            v->type.rank = -1;
        } else if (t->kind != NORI_KIND_TENSOR) {
            NORI__TRY(take_type(w, v, t, 0));
        }
    }
    return infer_nodes(w, body);
}

static nori_status infer_node(inferer *w, nori__node *node)
{
    for (uint32_t i = 0; i < node->attr_count; i++) {
        if (node->attrs[i].kind == NORI__ATTR_GRAPH && node->attrs[i].v.graph) {
            NORI__TRY(bind_body(w, node, node->attrs[i].v.graph));
        }
    }
    if (!node->op) {
        return NORI_OK;
    }
    size_t n = (size_t)node->input_count + node->output_count + 1, bytes;
    if (!nori__mul_size(n, sizeof(nori__shape), &bytes)) {
        return nori__no_memory(w->err);
    }
    nori__shape *shapes = nori__alloc(w->ir->allocator, bytes);
    if (!shapes) {
        return nori__no_memory(w->err);
    }
    nori__shape *out = shapes + node->input_count;
    for (uint32_t i = 0; i < node->input_count; i++) {
        shape_of_value(&shapes[i], node->inputs[i]);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        shape_of_value(&out[i], NULL);
    }
    nori__infer c = {.node = node, .in = shapes, .out = out, .arena = &w->ir->arena, .err = w->err};
    nori_status s = node->op->infer(&c);
    for (uint32_t i = 0; s == NORI_OK && i < node->output_count; i++) {
        if (node->outputs[i]) {
            s = merge(w, node->outputs[i], &out[i]);
        }
    }
    nori__release(w->ir->allocator, shapes, bytes);
    return s;
}

static nori_status infer_nodes(inferer *w, nori__graph *g)
{
    for (nori__node *n = g->first; n; n = n->next) {
        nori_status s = infer_node(w, n);
        if (s != NORI_OK) {
            if (w->err && !w->err->where[0]) {
                char path[256];
                nori__node_path(n, path, sizeof(path));
                nori__where(w->err, "%s", path);
            }
            return s;
        }
    }
    return NORI_OK;
}

nori_status nori__infer_graph(nori__ir *ir, nori_error *err)
{
    inferer w = {.ir = ir, .err = err};
    return infer_nodes(&w, ir->main);
}

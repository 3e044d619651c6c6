/* narrow_write.c: one part's messages with QuantizeLinear behind what it hands over, DequantizeLinear in
 * front of what it was handed. Inside, values keep their names. */
#include "tools/edit/narrow.h"

typedef struct writing {
    nori__narrowing *n;
    size_t part;
    nori__arena arena;
    nori__pb_graph graph;
    nori__pb_node *nodes; /* those in front, the part's own, those behind */
    size_t n_nodes;
    nori__pb_value *inputs, *outputs;
    size_t n_inputs, n_outputs;
} writing;

/* ---- pieces ---- */

static nori_status add_node(writing *w, const char *op, const char *name, const char *const *in, size_t n_in,
                            const char *const *out, size_t n_out, nori__pb_attr *attr)
{
    nori__str *names = nori__arena_array(&w->arena, n_in + n_out + 1, sizeof(*names));
    if (!names) {
        return nori__no_memory(w->n->err);
    }
    for (size_t i = 0; i < n_in + n_out; i++) {
        names[i] = nori__str_of(i < n_in ? in[i] : out[i - n_in]);
    }
    nori__pb_node *node = &w->nodes[w->n_nodes++];
    *node = (nori__pb_node){.op_type = nori__str_of(op), .name = nori__str_of(name)};
    node->inputs.items = names;
    node->inputs.count = n_in;
    node->outputs.items = names + n_in;
    node->outputs.count = n_out;
    node->attrs.items = attr;
    node->attrs.count = attr != NULL;
    return NORI_OK;
}

/* A number as a node of its own: an initializer would have to be an input, too, before IR version 4. */
static nori_status add_number(writing *w, const char *name, nori_type type, const void *data, size_t bytes)
{
    nori__pb_tensor *t = nori__arena_array(&w->arena, 1, sizeof(*t));
    nori__pb_attr *attr = nori__arena_array(&w->arena, 1, sizeof(*attr));
    if (!t || !attr) {
        return nori__no_memory(w->n->err);
    }
    *t = (nori__pb_tensor){.data_type = (int32_t)type, .has_raw = true, .raw = {data, bytes}};
    *attr = (nori__pb_attr){.name = NORI__STR("value"), .kind = NORI__ATTR_TENSOR, .t = t};
    return add_node(w, "Constant", name, NULL, 0, &name, 1, attr);
}

static nori_status add_numbers(writing *w, const nori__crossing *c)
{
    NORI__TRY(add_number(w, c->scale_name, NORI_FLOAT, &c->scale, sizeof(c->scale)));
    return add_number(w, c->zero_name, NORI_UINT8, &c->zero_point, sizeof(c->zero_point));
}

/* Declares the bytes, and the scale and zero point where they are handed over as well. */
static nori_status declare(writing *w, const nori__crossing *c, nori__pb_value *list, size_t *count)
{
    static const nori__type number = {.kind = NORI_KIND_TENSOR, .elem = NORI_FLOAT, .rank = 0};
    nori__type bytes = *c->type, zero = number;
    bytes.elem = zero.elem = NORI_UINT8;
    bool ok = nori__declare(&w->arena, c->sent, &bytes, &list[(*count)++]);
    if (ok && !c->row.fixed) {
        ok = nori__declare(&w->arena, c->scale_name, &number, &list[(*count)++]) &&
             nori__declare(&w->arena, c->zero_name, &zero, &list[(*count)++]);
    }
    return ok ? NORI_OK : nori__no_memory(w->n->err);
}

/* The value of a name when it goes from part to part; NULL: it does not. */
static const nori__crossing *crossing(const writing *w, nori__str name)
{
    for (size_t i = 0; i < w->n->n_values; i++) {
        if (nori__str_is(name, w->n->values[i].name)) {
            return &w->n->values[i];
        }
    }
    return NULL;
}

/* ---- a part ---- */

static nori_status begin(writing *w)
{
    const nori__pb_graph *g = &w->graph;
    for (size_t i = 0; i < g->inputs.count; i++) {
        const nori__crossing *c = crossing(w, g->inputs.items[i].name);
        if (!c) {
            w->inputs[w->n_inputs++] = g->inputs.items[i];
            continue;
        }
        const char *const in[] = {c->sent, c->scale_name, c->zero_name};
        NORI__TRY(declare(w, c, w->inputs, &w->n_inputs));
        if (c->row.fixed) {
            NORI__TRY(add_numbers(w, c));
        }
        const char *name = nori__arena_printf(&w->arena, "%s_read", c->sent);
        NORI__TRY(name ? add_node(w, "DequantizeLinear", name, in, 3, &c->name, 1, NULL)
                       : nori__no_memory(w->n->err));
    }
    return NORI_OK;
}

static nori_status end(writing *w)
{
    const nori__pb_graph *g = &w->graph;
    for (size_t i = 0; i < g->outputs.count; i++) {
        const nori__crossing *c = crossing(w, g->outputs.items[i].name);
        if (!c || c->is_output) {
            w->outputs[w->n_outputs++] = g->outputs.items[i];
        }
        if (!c || c->row.part != w->part) {
            continue;
        }
        const char *const in[] = {c->name, c->scale_name, c->zero_name};
        const char *const out[] = {c->sent, c->scale_name, c->zero_name};
        NORI__TRY(declare(w, c, w->outputs, &w->n_outputs));
        if (c->row.fixed) {
            NORI__TRY(add_numbers(w, c));
        }
        NORI__TRY(c->row.fixed ? add_node(w, "QuantizeLinear", c->sent, in, 3, out, 1, NULL)
                               : add_node(w, "DynamicQuantizeLinear", c->sent, in, 1, out, 3, NULL));
    }
    return NORI_OK;
}

static nori_status write(writing *w, nori_model **narrow)
{
    nori__narrowing *n = w->n;
    const nori_model *part = n->parts[w->part];
    nori__pb_model model = *part->source->pb;
    w->graph = *model.graph;
    size_t own = w->graph.nodes.count;
    w->nodes = nori__arena_array(&w->arena, own + 6 * n->n_values + 1, sizeof(*w->nodes));
    w->inputs = nori__arena_array(&w->arena, w->graph.inputs.count + 3 * n->n_values, sizeof(*w->inputs));
    w->outputs = nori__arena_array(&w->arena, w->graph.outputs.count + 4 * n->n_values, sizeof(*w->outputs));
    if (!w->nodes || !w->inputs || !w->outputs) {
        return nori__no_memory(n->err);
    }
    NORI__TRY(begin(w));
    for (size_t i = 0; i < own; i++) {
        w->nodes[w->n_nodes++] = w->graph.nodes.items[i];
    }
    NORI__TRY(end(w));
    w->graph.nodes.items = w->nodes;
    w->graph.nodes.count = w->n_nodes;
    w->graph.inputs.items = w->inputs;
    w->graph.inputs.count = w->n_inputs;
    w->graph.outputs.items = w->outputs;
    w->graph.outputs.count = w->n_outputs;
    model.graph = &w->graph;
    return nori__model_from_pb(&part, 1, &model, narrow, n->err);
}

nori_status nori__narrow_write(nori__narrowing *n, size_t k, nori_model **narrow)
{
    writing w = {.n = n, .part = k};
    nori__arena_init(&w.arena, n->model->source->allocator);
    nori_status s = write(&w, narrow);
    nori__arena_free(&w.arena);
    return s;
}

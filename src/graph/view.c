/* view.c: the public, read-only views of graphs (nori/provider.h). */
#include <stdio.h>

#include "graph/internal.h"
#include "base/given.h"

const char *nori_graph_name(const nori_graph *g)
{
    NORI__ASKED(g, NULL);
    return g->name;
}

size_t nori_graph_node_count(const nori_graph *g)
{
    NORI__ASKED(g, 0);
    return g->node_count;
}

const nori_node *nori_graph_first(const nori_graph *g)
{
    NORI__ASKED(g, NULL);
    return g->first;
}

const nori_node *nori_node_next(const nori_node *n)
{
    NORI__ASKED(n, NULL);
    return n->next;
}

const nori_value *nori_graph_input(const nori_graph *g, size_t i)
{
    NORI__ASKED(g, NULL);
    return i < g->input_count ? g->inputs[i] : NULL;
}

const nori_value *nori_graph_output(const nori_graph *g, size_t i)
{
    NORI__ASKED(g, NULL);
    return i < g->output_count ? g->outputs[i] : NULL;
}

const nori_value *nori_graph_value(const nori_graph *g)
{
    NORI__ASKED(g, NULL);
    return g->values;
}

const nori_value *nori_value_next(const nori_value *v)
{
    NORI__ASKED(v, NULL);
    return v->next;
}

const char *nori_node_name(const nori_node *n)
{
    NORI__ASKED(n, NULL);
    return n->name;
}

const char *nori_node_op(const nori_node *n)
{
    NORI__ASKED(n, NULL);
    return n->op_type;
}

const char *nori_node_domain(const nori_node *n)
{
    NORI__ASKED(n, NULL);
    return n->domain;
}

int nori_node_version(const nori_node *n)
{
    NORI__ASKED(n, 0);
    return n->version;
}

void nori_node_path(const nori_node *n, char *out, size_t size)
{
    NORI__ASKED(out, );
    nori__node_path(n, out, size);
}

size_t nori_node_input_count(const nori_node *n)
{
    NORI__ASKED(n, 0);
    return n->input_count;
}

const nori_value *nori_node_input(const nori_node *n, size_t i)
{
    NORI__ASKED(n, NULL);
    return i < n->input_count ? n->inputs[i] : NULL;
}

size_t nori_node_output_count(const nori_node *n)
{
    NORI__ASKED(n, 0);
    return n->output_count;
}

const nori_value *nori_node_output(const nori_node *n, size_t i)
{
    NORI__ASKED(n, NULL);
    return i < n->output_count ? n->outputs[i] : NULL;
}

size_t nori_node_attr_count(const nori_node *n)
{
    NORI__ASKED(n, 0);
    return n->attr_count;
}

const char *nori_node_attr_name(const nori_node *n, size_t i)
{
    NORI__ASKED(n, NULL);
    return i < n->attr_count ? n->attrs[i].name : NULL;
}

void nori_node_attr_text(const nori_node *n, size_t index, char *out, size_t size)
{
    NORI__ASKED(n, );
    NORI__ASKED(out, );
    if (size == 0) {
        return;
    }
    out[0] = 0;
    if (index >= n->attr_count) {
        return;
    }
    const nori__attr *a = &n->attrs[index];
    size_t used = 0;
    switch (a->kind) {
    case NORI__ATTR_FLOAT:
        snprintf(out, size, "%g", (double)a->v.f);
        break;
    case NORI__ATTR_INT:
        snprintf(out, size, "%lld", (long long)a->v.i);
        break;
    case NORI__ATTR_STRING:
        snprintf(out, size, "\"%s\"", a->v.s);
        break;
    case NORI__ATTR_FLOATS:
    case NORI__ATTR_INTS:
        used = (size_t)snprintf(out, size, "[");
        for (size_t i = 0; i < a->count && used + 1 < size; i++) {
            int k = a->kind == NORI__ATTR_INTS
                        ? snprintf(out + used, size - used, "%s%lld", i ? ", " : "",
                                   (long long)a->v.ints[i])
                        : snprintf(out + used, size - used, "%s%g", i ? ", " : "",
                                   (double)a->v.floats[i]);
            used += k > 0 ? (size_t)k : 0;
        }
        if (used + 1 < size) {
            snprintf(out + used, size - used, "]");
        }
        break;
    case NORI__ATTR_TENSOR:
    case NORI__ATTR_SPARSE:
        snprintf(out, size, "%s tensor of %lld elements", nori_type_name(a->v.tensor->type),
                 (long long)a->v.tensor->count);
        break;
    case NORI__ATTR_GRAPH:
        snprintf(out, size, "graph of %u nodes", a->v.graph->node_count);
        break;
    default:
        snprintf(out, size, "%zu items", a->count);
    }
}

const nori_graph *nori_node_subgraph(const nori_node *n, size_t index)
{
    NORI__ASKED(n, NULL);
    for (uint32_t i = 0; i < n->attr_count; i++) {
        if (n->attrs[i].kind == NORI__ATTR_GRAPH && index-- == 0) {
            return n->attrs[i].v.graph;
        }
        for (size_t k = 0; n->attrs[i].kind == NORI__ATTR_GRAPHS && k < n->attrs[i].count; k++) {
            if (index-- == 0) {
                return n->attrs[i].v.graphs[k];
            }
        }
    }
    return NULL;
}

int64_t nori_node_int(const nori_node *n, const char *name, int64_t otherwise)
{
    NORI__ASKED(n, otherwise);
    return nori__attr_i(n, name, otherwise);
}

float nori_node_float(const nori_node *n, const char *name, float otherwise)
{
    NORI__ASKED(n, otherwise);
    return nori__attr_f(n, name, otherwise);
}

const char *nori_node_text(const nori_node *n, const char *name, const char *otherwise)
{
    NORI__ASKED(n, otherwise);
    return nori__attr_s(n, name, otherwise);
}

const int64_t *nori_node_ints(const nori_node *n, const char *name, size_t *count)
{
    NORI__ASKED(n, NULL);
    NORI__ASKED(count, NULL);
    return nori__attr_ints(n, name, count);
}

const float *nori_node_floats(const nori_node *n, const char *name, size_t *count)
{
    NORI__ASKED(n, NULL);
    NORI__ASKED(count, NULL);
    return nori__attr_floats(n, name, count);
}

const char *nori_value_name(const nori_value *v)
{
    NORI__ASKED(v, NULL);
    return v->name;
}

nori_kind nori_value_kind(const nori_value *v)
{
    NORI__ASKED(v, NORI_KIND_UNKNOWN);
    return (nori_kind)v->type.kind;
}

nori_type nori_value_type(const nori_value *v)
{
    NORI__ASKED(v, NORI_UNDEFINED);
    return (nori_type)v->type.elem;
}

int nori_value_rank(const nori_value *v)
{
    NORI__ASKED(v, -1);
    return v->type.rank;
}

int64_t nori_value_dim(const nori_value *v, int axis, const char **name)
{
    NORI__ASKED(v, -1);
    bool there = axis >= 0 && axis < v->type.rank;
    if (name) {
        *name = there ? v->type.dims[axis].name : NULL;
    }
    return there ? v->type.dims[axis].value : -1;
}

const nori_tensor *nori_value_initializer(const nori_value *v)
{
    NORI__ASKED(v, NULL);
    return v->constant; /* its data are settled when they are asked for: nori_tensor_const_data */
}

const nori_node *nori_value_producer(const nori_value *v)
{
    NORI__ASKED(v, NULL);
    return v->producer;
}

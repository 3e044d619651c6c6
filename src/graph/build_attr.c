/* build_attr.c: types, attributes and sparse tensors from the file's messages. */
#include "graph/internal.h"

nori_status nori__text_from_pb(nori__builder *b, nori__str s, const char *what, const char **text)
{
    if (s.n == 0) {
        *text = "";
        return NORI_OK;
    }
    /* Text is NUL-terminated from here on: two names that differ behind a NUL would be one. */
    if (memchr(s.p, 0, s.n)) {
        return nori__fail(b->err, NORI_ERROR_MODEL, "%s holds a NUL byte: '%.200s'", what, s.p);
    }
    *text = nori__ir_text(b->ir, s.p, s.n);
    return *text ? NORI_OK : nori__no_memory(b->err);
}

/* ---- types ---- */

static nori_status shape_from_pb(nori__builder *b, const nori__pb_shape *pb, nori__type *type)
{
    if (pb->dims.count > NORI_MAX_RANK) {
        return nori__fail(b->err, NORI_ERROR_LIMIT, "rank %zu is more than nori's limit of %d",
                          pb->dims.count, NORI_MAX_RANK);
    }
    type->rank = (int8_t)pb->dims.count;
    type->dims = nori__arena_array(&b->ir->arena, pb->dims.count, sizeof(*type->dims));
    if (!type->dims) {
        return nori__no_memory(b->err);
    }
    for (size_t i = 0; i < pb->dims.count; i++) {
        const nori__pb_dim *d = &pb->dims.items[i];
        type->dims[i] = NORI__DIM_ANY;
        if (d->has_value && d->value >= 0) {
            type->dims[i].value = d->value; /* old exporters write -1 for "any" */
        } else if (d->has_param && d->param.n > 0) {
            NORI__TRY(nori__text_from_pb(b, d->param, "a dimension's name",
                                         &type->dims[i].name));
        }
    }
    return NORI_OK;
}

nori_status nori__type_from_pb(nori__builder *b, const nori__pb_type *pb, nori__type *type)
{
    for (int depth = 0;; depth++) {
        *type = (nori__type){.kind = (uint8_t)pb->kind, .rank = -1};
        if (depth > NORI__PB_MAX_NESTING) {
            return nori__fail(b->err, NORI_ERROR_LIMIT, "types are nested more than %d deep",
                              NORI__PB_MAX_NESTING);
        }
        if (pb->elem < 0 || pb->elem >= NORI_TYPE_COUNT) {
            return nori__fail(b->err, NORI_ERROR_MODEL,
                              "element type %d is none that ONNX defines (0 to %d)", pb->elem,
                              NORI_TYPE_COUNT - 1);
        }
        type->elem = (uint8_t)pb->elem;
        if (pb->shape) {
            NORI__TRY(shape_from_pb(b, pb->shape, type));
        }
        if (!pb->of) {
            return NORI_OK;
        }
        nori__type *of = nori__arena_alloc(&b->ir->arena, sizeof(*of));
        if (!of) {
            return nori__no_memory(b->err);
        }
        type->of = of;
        type = of;
        pb = pb->of;
    }
}

/* ---- sparse ---- */

/* Position in the dense tensor of the k-th value; -1 when out of range. Indices are linear (rank
 * 1) or one row of coordinates a value (rank 2). */
static int64_t sparse_position(const nori_tensor *indices, const nori_tensor *dense, int64_t k)
{
    if (indices->rank == 1) {
        int64_t at = nori__tensor_get_i64(indices, k);
        return at >= 0 && at < dense->count ? at : -1;
    }
    int64_t at = 0;
    for (int d = 0; d < dense->rank; d++) {
        int64_t i = nori__tensor_get_i64(indices, k * dense->rank + d);
        if (i < 0 || i >= dense->dims[d]) {
            return -1;
        }
        at = at * dense->dims[d] + i;
    }
    return at;
}

static nori_status scatter(const nori_tensor *values, const nori_tensor *indices,
                           nori_tensor *dense, nori_error *err)
{
    unsigned width = nori_type_bits((nori_type)values->type) / 8;
    bool fits = values->rank == 1 && indices->type == NORI_INT64 && width > 0 &&
                ((indices->rank == 1 && indices->count == values->count) ||
                 (indices->rank == 2 && indices->dims[0] == values->count &&
                  indices->dims[1] == dense->rank));
    if (!fits) {
        return nori__fail(err, NORI_ERROR_MODEL,
                          "a sparse tensor's values must be 1-D, of whole bytes, and its int64 "
                          "indices [count] or [count, rank]");
    }
    if (dense->bytes > 0) {
        memset(dense->data, 0, dense->bytes);
    }
    for (int64_t k = 0; k < values->count; k++) {
        int64_t at = sparse_position(indices, dense, k);
        if (at < 0) {
            return nori__fail(err, NORI_ERROR_MODEL,
                              "index %lld of a sparse tensor is out of its shape", (long long)k);
        }
        memcpy((char *)dense->data + (size_t)at * width,
               (const char *)values->data + (size_t)k * width, width);
    }
    return NORI_OK;
}

nori_status nori__sparse_from_pb(const nori__ir *ir, const nori__pb_sparse *pb,
                                 nori_tensor **tensor, nori_error *err)
{
    if (!pb->values || !pb->indices || pb->dims.count > NORI_MAX_RANK) {
        return nori__fail(err, NORI_ERROR_MODEL,
                          "a sparse tensor needs values, indices and at most %d dimensions",
                          NORI_MAX_RANK);
    }
    nori_tensor *values = NULL, *indices = NULL, *dense = NULL;
    nori_status s = nori__tensor_from_pb(ir->allocator, pb->values, ir->external, &values, err);
    if (s == NORI_OK) {
        s = nori__tensor_from_pb(ir->allocator, pb->indices, ir->external, &indices, err);
    }
    if (s == NORI_OK) {
        s = nori__tensor_new(ir->allocator, (nori_type)values->type, (int)pb->dims.count,
                             pb->dims.items, &dense, err);
    }
    s = s == NORI_OK ? scatter(values, indices, dense, err) : s;
    nori_tensor_free(values);
    nori_tensor_free(indices);
    if (s != NORI_OK) {
        nori_tensor_free(dense);
        return s;
    }
    *tensor = dense;
    return NORI_OK;
}

/* ---- attributes ---- */

static nori_status own(nori__builder *b, nori_tensor *t)
{
    return nori__ir_keep(b->ir, t) ? NORI_OK : nori__no_memory(b->err);
}

static nori_status graph_attr(nori__builder *b, nori__node *node, const nori__pb_graph *pb,
                              nori__graph **graph)
{
    if (!node || !pb) {
        return nori__fail(b->err, NORI_ERROR_MODEL, "a graph attribute cannot stand here");
    }
    nori__graph *g = nori__graph_new(b->ir, node->graph, node);
    if (!g) {
        return nori__no_memory(b->err);
    }
    g->pb = pb;
    *graph = g;
    return NORI_OK;
}

static nori_status list_attr(nori__builder *b, nori__node *node, const nori__pb_attr *pb,
                             nori__attr *attr)
{
    nori__arena *arena = &b->ir->arena;
    switch (pb->kind) {
    case NORI__ATTR_FLOATS:
        attr->v.floats = pb->floats.items;
        attr->count = pb->floats.count;
        return NORI_OK;
    case NORI__ATTR_INTS:
        attr->v.ints = pb->ints.items;
        attr->count = pb->ints.count;
        return NORI_OK;
    case NORI__ATTR_STRINGS:
        attr->v.strings = pb->strings.items;
        attr->count = pb->strings.count;
        return NORI_OK;
    case NORI__ATTR_TENSORS:
        attr->v.tensors = nori__arena_array(arena, pb->tensors.count, sizeof(nori_tensor *));
        if (!attr->v.tensors) {
            return nori__no_memory(b->err);
        }
        for (; attr->count < pb->tensors.count; attr->count++) {
            nori_tensor **t = &attr->v.tensors[attr->count];
            NORI__TRY(nori__tensor_from_pb(b->ir->allocator, &pb->tensors.items[attr->count],
                                           b->ir->external, t, b->err));
            NORI__TRY(own(b, *t));
        }
        return NORI_OK;
    case NORI__ATTR_SPARSES:
        attr->v.tensors = nori__arena_array(arena, pb->sparses.count, sizeof(nori_tensor *));
        if (!attr->v.tensors) {
            return nori__no_memory(b->err);
        }
        for (; attr->count < pb->sparses.count; attr->count++) {
            nori_tensor **t = &attr->v.tensors[attr->count];
            NORI__TRY(nori__sparse_from_pb(b->ir, &pb->sparses.items[attr->count], t, b->err));
            NORI__TRY(own(b, *t));
        }
        return NORI_OK;
    case NORI__ATTR_GRAPHS:
        attr->v.graphs = nori__arena_array(arena, pb->graphs.count, sizeof(nori__graph *));
        if (!attr->v.graphs) {
            return nori__no_memory(b->err);
        }
        for (; attr->count < pb->graphs.count; attr->count++) {
            NORI__TRY(graph_attr(b, node, pb->graphs.items[attr->count],
                                 &attr->v.graphs[attr->count]));
        }
        return NORI_OK;
    default: /* TYPES: no operator has one; kept in the file's message only */
        attr->count = pb->types.count;
        return NORI_OK;
    }
}

static nori_status single_attr(nori__builder *b, nori__node *node, const nori__pb_attr *pb,
                               nori__attr *attr)
{
    nori_status status;
    switch (pb->kind) {
    case NORI__ATTR_FLOAT:
        attr->v.f = pb->f;
        return NORI_OK;
    case NORI__ATTR_INT:
        attr->v.i = pb->i;
        return NORI_OK;
    case NORI__ATTR_STRING:
        attr->v.s = nori__arena_copy(&b->ir->arena, pb->s.p, pb->s.n);
        attr->count = pb->s.n;
        return attr->v.s ? NORI_OK : nori__no_memory(b->err);
    case NORI__ATTR_TENSOR:
        if (!pb->t) {
            return nori__fail(b->err, NORI_ERROR_MODEL, "there is no tensor in it");
        }
        /* Weights, too, are kept in Constants: those may wait as initializers do. */
        status = (node && nori__same(node->op_type, "Constant") ? nori__initializer_from_pb
                                                                : nori__tensor_from_pb)(
            b->ir->allocator, pb->t, b->ir->external, &attr->v.tensor, b->err);
        b->ir->loose = b->ir->loose || (status == NORI_OK && attr->v.tensor->loose);
        return status == NORI_OK ? own(b, attr->v.tensor) : status;
    case NORI__ATTR_SPARSE:
        if (!pb->sparse) {
            return nori__fail(b->err, NORI_ERROR_MODEL, "there is no sparse tensor in it");
        }
        status = nori__sparse_from_pb(b->ir, pb->sparse, &attr->v.tensor, b->err);
        return status == NORI_OK ? own(b, attr->v.tensor) : status;
    case NORI__ATTR_GRAPH:
        return graph_attr(b, node, pb->g, &attr->v.graph);
    case NORI__ATTR_TYPE: {
        nori__type *type = nori__arena_alloc(&b->ir->arena, sizeof(*type));
        if (!type) {
            return nori__no_memory(b->err);
        }
        attr->v.type = type;
        if (!pb->tp) {
            type->rank = -1;
            return NORI_OK;
        }
        return nori__type_from_pb(b, pb->tp, type);
    }
    case NORI__ATTR_NONE:
        return NORI_OK; /* says nothing: readers get their default */
    default:
        return list_attr(b, node, pb, attr);
    }
}

nori_status nori__attr_from_pb(nori__builder *b, nori__node *node, const nori__pb_attr *pb,
                               nori__attr *attr)
{
    *attr = (nori__attr){.kind = pb->kind, .pb = pb, .name = ""};
    nori_status status = nori__text_from_pb(b, pb->name, "an attribute's name", &attr->name);
    if (status == NORI_OK && pb->ref_name.n > 0) {
        if (!b->function) {
            status = nori__fail(b->err, NORI_ERROR_MODEL,
                                "it refers to a function's attribute '%.*s' outside any function",
                                (int)(pb->ref_name.n < 200 ? pb->ref_name.n : 200),
                                pb->ref_name.p);
        } else {
            return nori__text_from_pb(b, pb->ref_name, "an attribute's name", &attr->ref);
        }
    }
    status = status == NORI_OK ? single_attr(b, node, pb, attr) : status;
    if (status != NORI_OK) {
        nori__where(b->err, "attribute '%.100s'", attr->name);
    }
    return status;
}

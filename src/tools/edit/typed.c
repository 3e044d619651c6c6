/* typed.c: a copy of a model's graph in which types are known, for tools that ask what a value is. */
#include "tools/edit/editing.h"

static nori_status fix(nori__ir *ir, const char *name, int64_t size, nori_error *err)
{
    bool found = false;
    if (size < 0) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "dimension %s cannot be %lld", name,
                          (long long)size);
    }
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__value *v = g->values; v; v = v->next) {
            nori__type *types[] = {&v->type, &v->declared};
            for (size_t k = 0; k < NORI__COUNT(types); k++) {
                for (int d = 0; types[k]->kind == NORI_KIND_TENSOR && d < types[k]->rank; d++) {
                    nori__dim *dim = &types[k]->dims[d];
                    if (dim->name && nori__same(dim->name, name)) {
                        *dim = nori__dim_of(size);
                        found = true;
                    }
                }
            }
        }
    }
    if (!found) {
        nori_status s = nori__fail(err, NORI_ERROR_ARGUMENT, "no dimension is named \"%s\"", name);
        nori__hint(err, "`nori inspect` shows the names of the model's dimensions");
        return s;
    }
    return NORI_OK;
}

nori_status nori__edit_typed_ir(const nori__ir *from, const char *const *dim_names,
                                const int64_t *dim_values, size_t dim_count, nori__ir **ir,
                                nori_error *err)
{
    NORI__TRY(nori__ir_copy(from, ir, err));
    nori_status s = NORI_OK;
    for (size_t i = 0; s == NORI_OK && i < dim_count; i++) {
        s = fix(*ir, dim_names[i], dim_values[i], err);
    }
    s = s == NORI_OK ? nori__inline_functions(*ir, err) : s;
    s = s == NORI_OK ? nori__upgrade(*ir, err) : s;
    if (s != NORI_OK) {
        nori__ir_free(*ir);
        *ir = NULL;
    }
    return s;
}

nori_status nori__edit_typed(const nori_model *model, const char *const *dim_names,
                             const int64_t *dim_values, size_t dim_count, nori__ir **ir,
                             nori_error *err)
{
    return nori__edit_typed_ir(nori__model_ir(model), dim_names, dim_values, dim_count, ir, err);
}

const nori__value *nori__edit_value(const nori__ir *typed, const char *name)
{
    return nori__map_get(nori__graph_names(typed->main), name);
}

bool nori__edit_bytes(const nori__value *v, uint64_t *bytes)
{
    int64_t dims[NORI_MAX_RANK], count;
    size_t size;
    *bytes = 0;
    if (!v || v->type.kind != NORI_KIND_TENSOR || v->type.rank < 0 || v->type.elem == NORI_STRING ||
        v->type.elem == NORI_UNDEFINED) {
        return false;
    }
    for (int d = 0; d < v->type.rank; d++) {
        dims[d] = v->type.dims[d].value; /* below 0 is refused below */
    }
    if (!nori__dims_count(v->type.rank, dims, &count) ||
        !nori__type_bytes((nori_type)v->type.elem, count, &size)) {
        return false;
    }
    *bytes = size;
    return true;
}

nori_status nori__edit_no_value(const nori__ir *ir, const char *name, nori_error *err)
{
    const nori__graph *inner = NULL;
    for (const nori__graph *g = ir->graphs; g && !inner; g = g->next_graph) {
        inner = g != ir->main && nori__map_get(nori__graph_names(g), name) ? g : NULL;
    }
    if (inner && inner->parent_node) {
        char path[256];
        nori__node_path(inner->parent_node, path, sizeof(path));
        nori_status s = nori__fail(err, NORI_ERROR_ARGUMENT,
                                   "value \"%.200s\" lies inside node %s: there it cannot be reached "
                                   "from outside", name, path);
        nori__hint(err, "take a value that the node reads, or one that it makes");
        return s;
    }
    nori_status s = nori__fail(err, NORI_ERROR_ARGUMENT, "the model has no value \"%.200s\"", name);
    nori__hint(err, "`nori inspect --nodes` lists them; names are those of nodes' outputs, not of nodes");
    return s;
}

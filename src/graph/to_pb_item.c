/* to_pb_item.c: types, values, tensors and attributes back to the file's messages. */
#include "base/byte_order.h"
#include "graph/internal.h"

void *nori__pack_room(nori__packer *p, size_t count, size_t size)
{
    void *items = nori__arena_array(p->arena, count + 1, size);
    p->ok = p->ok && items;
    return items;
}

/* ---- types and values ---- */

static nori__pb_shape *shape_to_pb(nori__packer *p, const nori__type *type)
{
    nori__pb_shape *shape = nori__pack_room(p, 1, sizeof(*shape));
    nori__pb_dim *dims = nori__pack_room(p, (size_t)type->rank, sizeof(*dims));
    if (!p->ok) {
        return NULL;
    }
    for (int i = 0; i < type->rank; i++) {
        dims[i].has_value = type->dims[i].value >= 0;
        dims[i].value = dims[i].has_value ? type->dims[i].value : 0;
        if (!dims[i].has_value && type->dims[i].name) {
            dims[i].has_param = true;
            dims[i].param = nori__str_of(type->dims[i].name);
        }
    }
    shape->dims.items = dims;
    shape->dims.count = (size_t)type->rank;
    return shape;
}

static nori__pb_type *type_to_pb(nori__packer *p, const nori__type *type)
{
    nori__pb_type *first = NULL, **to = &first;
    for (; type && p->ok; type = type->of) {
        nori__pb_type *pb = nori__pack_room(p, 1, sizeof(*pb));
        if (!p->ok) {
            break;
        }
        pb->kind = (nori_kind)type->kind;
        pb->elem = type->elem;
        pb->shape = type->rank >= 0 ? shape_to_pb(p, type) : NULL;
        *to = pb;
        to = &pb->of;
    }
    return first;
}

/* A declaration: the file's own where there is one, else what is known of the value. */
void nori__value_to_pb(nori__packer *p, const nori__value *v, nori__pb_value *pb)
{
    if (v->pb) {
        *pb = *v->pb;
        return;
    }
    nori__declare_to_pb(p, v, v->declared.kind != NORI_KIND_UNKNOWN ? &v->declared : &v->type, pb);
}

void nori__declare_to_pb(nori__packer *p, const nori__value *v, const nori__type *type,
                         nori__pb_value *pb)
{
    pb->name = nori__str_of(v->name);
    pb->type = type->kind != NORI_KIND_UNKNOWN ? type_to_pb(p, type) : NULL;
}

bool nori__declare(nori__arena *arena, const char *name, const nori__type *type, nori__pb_value *pb)
{
    nori__packer p = {.arena = arena, .ok = true};
    *pb = (nori__pb_value){.name = nori__str_of(name)};
    pb->type = type->kind != NORI_KIND_UNKNOWN ? type_to_pb(&p, type) : NULL;
    return p.ok;
}

/* ---- tensors ---- */

static void put_raw(nori__packer *p, const nori_tensor *t, nori__pb_tensor *pb)
{
    pb->has_raw = true;
    pb->raw = nori__file_bytes(p->arena, (nori_type)t->type, nori__tensor_at(t), t->bytes);
    p->ok = p->ok && pb->raw.p;
}

void nori__tensor_to_pb(nori__packer *p, const nori_tensor *t, nori__str name, nori__pb_tensor *pb)
{
    pb->name = name;
    pb->data_type = t->type;
    int64_t *dims = nori__pack_room(p, t->rank, sizeof(*dims));
    if (!p->ok) {
        return;
    }
    memcpy(dims, t->dims, (size_t)t->rank * sizeof(*dims));
    pb->dims.items = dims;
    pb->dims.count = t->rank;
    if (t->type != NORI_STRING) {
        put_raw(p, t, pb);
        return;
    }
    nori__str *strings = nori__pack_room(p, (size_t)t->count, sizeof(*strings));
    for (int64_t i = 0; p->ok && i < t->count; i++) {
        const nori_string *s = &((const nori_string *)t->data)[i];
        strings[i] = (nori__str){s->data, s->size};
    }
    pb->strings.items = strings;
    pb->strings.count = (size_t)t->count;
}

/* The message a tensor came from, whose content is still the tensor's; data kept in another file
 * moves into the message, unless the caller sees to it. */
void nori__tensor_again(nori__packer *p, const nori__pb_tensor *from, const nori_tensor *t,
                        nori__pb_tensor *pb)
{
    *pb = *from;
    if (from->data_location == 1 && !p->outside) {
        pb->data_location = 0;
        pb->head.present = 0;
        pb->external.count = 0;
        put_raw(p, t, pb);
    }
}

/* ---- attributes ---- */

static void *tensors_to_pb(nori__packer *p, nori_tensor *const *tensors, size_t count)
{
    nori__pb_tensor *list = nori__pack_room(p, count, sizeof(*list));
    for (size_t i = 0; p->ok && i < count; i++) {
        nori__tensor_to_pb(p, tensors[i], (nori__str){"", 0}, &list[i]);
    }
    return list;
}

static void graphs_to_pb(nori__packer *p, nori__graph *const *graphs, size_t count, nori__pb_attr *pb)
{
    pb->graphs.items = nori__pack_room(p, count, sizeof(*pb->graphs.items));
    pb->graphs.count = count;
    for (size_t i = 0; p->ok && i < count; i++) {
        pb->graphs.items[i] = nori__graph_to_pb(p, graphs[i]);
    }
}

void nori__attr_to_pb(nori__packer *p, const nori__attr *a, nori__pb_attr *pb)
{
    bool own = a->pb && a->pb->kind == a->kind && nori__str_is(a->pb->name, a->name) &&
               (a->ref ? nori__str_is(a->pb->ref_name, a->ref) : a->pb->ref_name.n == 0);
    if (own) {
        *pb = *a->pb;
        if (a->kind == NORI__ATTR_GRAPH) {
            pb->g = nori__graph_to_pb(p, a->v.graph);
        } else if (a->kind == NORI__ATTR_GRAPHS) {
            graphs_to_pb(p, a->v.graphs, a->count, pb);
        } else if (a->kind == NORI__ATTR_TENSOR && a->pb->t->data_location == 1) {
            pb->t = nori__pack_room(p, 1, sizeof(*pb->t));
            if (p->ok) {
                nori__tensor_again(p, a->pb->t, a->v.tensor, pb->t);
            }
        }
        return;
    }
    pb->name = nori__str_of(a->name);
    pb->ref_name = a->ref ? nori__str_of(a->ref) : (nori__str){NULL, 0};
    pb->kind = a->kind;
    switch (a->kind) {
    case NORI__ATTR_FLOAT:
        pb->f = a->v.f;
        break;
    case NORI__ATTR_INT:
        pb->i = a->v.i;
        break;
    case NORI__ATTR_STRING:
        pb->s = (nori__str){a->v.s, a->count};
        break;
    case NORI__ATTR_SPARSE: /* was made dense */
        pb->kind = NORI__ATTR_TENSOR;
        /* fall through */
    case NORI__ATTR_TENSOR:
        pb->t = tensors_to_pb(p, &a->v.tensor, 1);
        break;
    case NORI__ATTR_GRAPH:
        pb->g = nori__graph_to_pb(p, a->v.graph);
        break;
    case NORI__ATTR_FLOATS:
        pb->floats.items = (float *)(uintptr_t)a->v.floats;
        pb->floats.count = a->count;
        break;
    case NORI__ATTR_INTS:
        pb->ints.items = (int64_t *)(uintptr_t)a->v.ints;
        pb->ints.count = a->count;
        break;
    case NORI__ATTR_STRINGS:
        pb->strings.items = (nori__str *)(uintptr_t)a->v.strings;
        pb->strings.count = a->count;
        break;
    case NORI__ATTR_SPARSES:
        pb->kind = NORI__ATTR_TENSORS;
        /* fall through */
    case NORI__ATTR_TENSORS:
        pb->tensors.items = tensors_to_pb(p, a->v.tensors, a->count);
        pb->tensors.count = a->count;
        break;
    case NORI__ATTR_GRAPHS:
        graphs_to_pb(p, a->v.graphs, a->count, pb);
        break;
    case NORI__ATTR_TYPE:
        pb->tp = type_to_pb(p, a->v.type);
        break;
    case NORI__ATTR_TYPES: /* only ever kept in the file's message */
    case NORI__ATTR_NONE:
        break;
    }
}


/* graph_hash.c: a number for what a model computes, so that what was found out about one is not
 * taken for another. FNV-1a's step over words; no defence against those who look for collisions,
 * who could as well write a wrong calibration. */
#include "tools/quantize/quantize.h"

#define START 0xcbf29ce484222325u
#define PRIME 0x100000001b3u

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * PRIME;
    return h ^ h >> 29; /* the product alone never moves high bits down */
}

static uint64_t bytes(uint64_t h, const void *data, size_t size)
{
    const uint8_t *p = data;
    h = mix(h, size);
    for (; size >= 8; size -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = mix(h, word);
    }
    for (; size > 0; size--, p++) {
        h = mix(h, *p);
    }
    return h;
}

static uint64_t text(uint64_t h, const char *s)
{
    return bytes(h, s, strlen(s));
}

static uint64_t tensor(uint64_t h, const nori_tensor *t)
{
    if (!t || t->kind != NORI_KIND_TENSOR) {
        return mix(h, 0);
    }
    h = mix(h, t->type);
    h = bytes(h, t->dims, (size_t)t->rank * sizeof(int64_t));
    if (t->type != NORI_STRING) {
        return t->bytes > 0 ? bytes(h, nori__tensor_at(t), t->bytes) : h;
    }
    for (int64_t i = 0; i < t->count; i++) {
        const nori_string *s = (const nori_string *)t->data + i;
        h = bytes(h, s->data, s->size);
    }
    return h;
}

static uint64_t attribute(uint64_t h, const nori__attr *a)
{
    h = mix(text(h, a->name), a->kind);
    switch (a->kind) {
    case NORI__ATTR_FLOAT:
        return bytes(h, &a->v.f, sizeof(a->v.f));
    case NORI__ATTR_INT:
        return mix(h, (uint64_t)a->v.i);
    case NORI__ATTR_STRING:
        return bytes(h, a->v.s, a->count);
    case NORI__ATTR_FLOATS:
        return bytes(h, a->v.floats, a->count * sizeof(float));
    case NORI__ATTR_INTS:
        return bytes(h, a->v.ints, a->count * sizeof(int64_t));
    case NORI__ATTR_STRINGS:
        for (size_t i = 0; i < a->count; i++) {
            h = bytes(h, a->v.strings[i].p, a->v.strings[i].n);
        }
        return h;
    case NORI__ATTR_TENSOR:
    case NORI__ATTR_SPARSE:
        return tensor(h, a->v.tensor);
    case NORI__ATTR_TENSORS:
    case NORI__ATTR_SPARSES:
        for (size_t i = 0; i < a->count; i++) {
            h = tensor(h, a->v.tensors[i]);
        }
        return h;
    default:
        return h; /* graphs come by themselves, types change no numbers */
    }
}

static uint64_t names(uint64_t h, nori__value *const *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        h = text(h, values[i] ? values[i]->name : "");
    }
    return mix(h, count);
}

static uint64_t node(uint64_t h, const nori__node *n)
{
    h = text(text(h, n->domain), n->op_type);
    h = names(h, n->inputs, n->input_count);
    h = names(h, n->outputs, n->output_count);
    for (uint32_t i = 0; i < n->attr_count; i++) {
        h = attribute(h, &n->attrs[i]);
    }
    return h;
}

uint64_t nori__graph_hash(const nori__ir *ir)
{
    uint64_t h = START;
    for (const nori__graph *g = ir->graphs; g; g = g->next_graph) {
        uint64_t constants = 0; /* a sum: a file may list them in any order */
        h = names(h, g->inputs, g->input_count);
        h = names(h, g->outputs, g->output_count);
        for (const nori__value *v = g->values; v; v = v->next) {
            constants += v->constant ? tensor(text(START, v->name), v->constant) : 0;
        }
        h = mix(h, constants);
        for (const nori__node *n = g->first; n; n = n->next) {
            h = node(h, n);
        }
    }
    return h;
}

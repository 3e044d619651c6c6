/* place_data.c: what a model's writer does with each tensor: its data in its message, or moved out. */
#include "run/place_data.h"

#include "base/byte_order.h"

#define LARGE ((uint64_t)1 << 20) /* data from here on begins at a page, which can be mapped */

void nori__placing_init(nori__placing *s, const nori_model *model, uint64_t threshold,
                        nori__arena *arena)
{
    *s = (nori__placing){.model = model, .threshold = threshold, .arena = arena};
    nori__vec_init(&s->data, arena->allocator);
    nori__vec_init(&s->tensors, arena->allocator);
}

void nori__placing_free(nori__placing *s)
{
    for (size_t i = 0; i < s->tensors.count; i++) {
        nori_tensor_free(s->tensors.items[i]);
    }
    nori__vec_free(&s->tensors);
    nori__vec_free(&s->data);
}

static nori_status entry(nori__pb_tensor *t, const char *key, const char *value, nori_error *err)
{
    nori__pb_entry *e = &t->external.items[t->external.count++];
    e->key = nori__str_of(key);
    e->value = nori__str_of(value ? value : "");
    return value ? NORI_OK : nori__no_memory(err);
}

/* The tensor's bytes as a data file has them; of typed lists by way of a tensor. */
static nori_status bytes_of(nori__placing *s, const nori__pb_tensor *t, nori__placed *p,
                            nori_error *err)
{
    if (t->has_raw && t->raw.n > 0) {
        p->bytes = t->raw;
        return NORI_OK;
    }
    nori_tensor *made = NULL;
    NORI__TRY(nori__tensor_from_pb(s->arena->allocator, t, NULL, &made, err));
    if (!nori__vec_push(&s->tensors, made)) {
        nori_tensor_free(made);
        return nori__no_memory(err);
    }
    p->bytes = nori__file_bytes(s->arena, (nori_type)made->type, made->data, made->bytes);
    return p->bytes.p ? NORI_OK : nori__no_memory(err);
}

static nori_status move_out(nori__placing *s, nori__pb_tensor *t, bool of_file, nori_error *err)
{
    nori__placed *p = nori__arena_alloc(s->arena, sizeof(*p));
    if (!p) {
        return nori__no_memory(err);
    }
    p->of_file = of_file;
    NORI__TRY(bytes_of(s, t, p, err));
    uint64_t step = p->bytes.n >= LARGE ? 4096 : 64, over = s->end % step;
    if (s->end > UINT64_MAX / 4 || !nori__vec_push(&s->data, p)) {
        return nori__no_memory(err);
    }
    p->offset = s->end + (over ? step - over : 0);
    s->end = p->offset + p->bytes.n;
    t->external.items = nori__arena_array(s->arena, 3, sizeof(*t->external.items));
    t->external.count = 0;
    if (!t->external.items) {
        return nori__no_memory(err);
    }
    NORI__TRY(entry(t, "location", s->location, err));
    char *offset = nori__arena_printf(s->arena, "%llu", (unsigned long long)p->offset);
    NORI__TRY(entry(t, "offset", offset, err));
    NORI__TRY(entry(t, "length", nori__arena_printf(s->arena, "%zu", p->bytes.n), err));
    t->data_location = 1;
    t->has_raw = false;
    t->raw = (nori__str){NULL, 0};
    t->floats.count = t->doubles.count = t->ints.count = t->uints.count = 0;
    t->ints.packed = t->uints.packed = (nori__str){NULL, 0};
    t->head.present = 0;
    return NORI_OK;
}

/* First into the message, as the model may go elsewhere; then, where asked for, out again. */
nori_status nori__place_tensor(void *user, nori__pb_tensor *t, bool initializer,
                               nori_error *err)
{
    nori__placing *s = user;
    bool of_file = false;
    int64_t count;
    size_t bytes = 0;
    /* What has no data of its own (one of a sparse tensor that is empty) stays as it is. */
    if (!nori__dims_count((int)t->dims.count, t->dims.items, &count) ||
        t->data_type <= 0 || t->data_type >= NORI_TYPE_COUNT ||
        !nori__type_bytes((nori_type)t->data_type, count, &bytes)) {
        return NORI_OK;
    }
    if (t->data_location == 1) {
        NORI__TRY(nori__external_find(s->model->source->external, t, bytes, &t->raw, &of_file, err));
        t->has_raw = true;
        t->raw.p = t->raw.p ? t->raw.p : "";
        t->data_location = 0;
        t->external.count = 0;
        t->head.present = 0;
    }
    bool out = s->location && initializer && t->data_type != NORI_STRING && bytes > 0 &&
               bytes >= s->threshold;
    return out ? move_out(s, t, of_file, err) : NORI_OK;
}

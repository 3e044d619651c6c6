/* frame_bind.c: what a run's tensors are: the layout for the shapes at hand and the key by which it
 * is kept, the caller's outputs. */
#include "run/frame.h"

/* ---- layout and its key ---- */

/* Walks the key entries of one tensor; with write set they are stored, else compared. fixed: it is
 * the default of an input, whose content the layout rests on. */
static bool key_step(nori__frame *f, size_t *at, const nori_tensor *t, bool fixed, bool write)
{
    int64_t head = t && t->kind == NORI_KIND_TENSOR ? (int64_t)t->type * 64 + t->rank : -1;
    int rank = head < 0 ? 0 : t->rank;
    head += fixed ? INT64_C(1) << 32 : 0;
    if (!write && *at + (size_t)rank + 1 > f->key_size) {
        return false;
    }
    if (write) {
        f->key[*at] = head;
        memcpy(&f->key[*at + 1], rank ? t->dims : &head, (size_t)rank * sizeof(int64_t));
    } else if (f->key[*at] != head ||
               (rank && memcmp(&f->key[*at + 1], t->dims, (size_t)rank * sizeof(int64_t)))) {
        return false;
    }
    *at += (size_t)rank + 1;
    return true;
}

static bool key_walk(nori__frame *f, const nori_tensor *const *inputs,
                     const nori_tensor *const *captures, bool write)
{
    size_t at = 0;
    for (uint32_t i = 0; i < f->plan->n_in; i++) {
        bool fixed = nori__is_default(&f->plan->slots[f->plan->in[i]], inputs[i]);
        if (!key_step(f, &at, inputs[i], fixed, write)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < f->plan->n_capture; i++) {
        if (!key_step(f, &at, captures[i], false, write)) {
            return false;
        }
    }
    if (write) {
        f->key_size = at;
    }
    return at == f->key_size;
}

nori_status nori__frame_lay_out(nori__frame *f, const nori_tensor *const *inputs,
                                const nori_tensor *const *captures, nori_error *err)
{
    if (f->laid_out && key_walk(f, inputs, captures, false)) {
        return NORI_OK;
    }
    if (f->laid_out) {
        nori__layout_free(&f->layout);
        f->laid_out = false;
    }
    size_t most = ((size_t)f->plan->n_in + f->plan->n_capture) * (NORI_MAX_RANK + 1) + 1;
    if (!f->key) {
        f->key = nori__alloc(f->a, most * sizeof(*f->key));
        if (!f->key) {
            return nori__no_memory(err);
        }
        f->key_capacity = most;
    }
    NORI__TRY(nori__layout_build(f->plan, f->a, inputs, captures, f->info->memory_cap, &f->layout,
                                 err));
    f->laid_out = true;
    f->key_size = 0;
    if (!nori__frame_reserve(f->a, &f->block, &f->block_bytes, f->layout.block_bytes)) {
        nori__layout_free(&f->layout);
        f->laid_out = false;
        return nori__no_memory(err);
    }
    key_walk(f, inputs, captures, true);
    nori_tensor *header = f->headers; /* only local slots are placed so */
    for (uint32_t i = 0; i < f->plan->n_slots; i++) {
        const nori__place *p = &f->layout.places[i];
        f->now[i] = NULL;
        if (p->how == NORI__PLACE_KNOWN) {
            f->now[i] = p->known;
        } else if (p->how == NORI__PLACE_BLOCK || p->how == NORI__PLACE_ALIAS) {
            nori__tensor_init(header, p->type, p->rank, p->dims,
                              p->how == NORI__PLACE_BLOCK ? f->block + p->offset : NULL);
            f->now[i] = header++;
        }
    }
    return NORI_OK;
}

/* ---- outputs ---- */

nori_status nori__frame_keep(const nori_allocator *a, const nori_tensor *t, bool fresh,
                             nori_tensor **out, nori_error *err)
{
    if (!fresh && t->allocator) {
        *out = nori_tensor_retain(t);
        return NORI_OK;
    }
    return nori__tensor_copy(a, t, out, err);
}

nori_status nori__frame_bind_outputs(nori__frame *f, nori_tensor **outputs, nori_error *err)
{
    for (uint32_t i = 0; i < f->plan->n_slots; i++) {
        const nori__place *p = &f->layout.places[i];
        if (p->how != NORI__PLACE_OUT) {
            continue;
        }
        nori_tensor *given = NULL;
        for (uint32_t o = 0; o < f->plan->n_out && !given; o++) {
            given = f->plan->out[o] == i ? outputs[o] : NULL;
        }
        if (given) {
            if (given->kind != NORI_KIND_TENSOR || given->type != p->type ||
                given->rank != p->rank || given->bytes != p->bytes ||
                memcmp(given->dims, p->dims, (size_t)p->rank * sizeof(int64_t)) != 0) {
                return nori__fail(err, NORI_ERROR_DATA,
                                  "the tensor given for output %s has another type or shape",
                                  f->plan->slots[i].value->name);
            }
            f->now[i] = given;
        } else {
            NORI__TRY(nori__tensor_new(&f->meter->pooled, p->type, p->rank, p->dims, &f->now[i],
                                       err));
            f->owned[i] = true;
            f->any_owned = true;
        }
    }
    return NORI_OK;
}

static nori_status copy_into(const nori_tensor *from, nori_tensor *to, const char *name,
                             nori_error *err)
{
    if (from == to) {
        return NORI_OK;
    }
    if (to->kind != from->kind || to->type != from->type || to->rank != from->rank ||
        to->type == NORI_STRING || to->kind != NORI_KIND_TENSOR ||
        memcmp(to->dims, from->dims, (size_t)to->rank * sizeof(int64_t)) != 0) {
        return nori__fail(err, NORI_ERROR_DATA,
                          "the tensor given for output %s has another type or shape", name);
    }
    if (from->bytes > 0) {
        memcpy(to->data, from->data, from->bytes);
    }
    return NORI_OK;
}

nori_status nori__frame_give_outputs(nori__frame *f, nori_tensor **outputs, nori_error *err)
{
    nori_status status = NORI_OK;
    uint32_t n = f->plan->n_out, made = 0;
    uint64_t given = 0; /* the first 64 outputs; more are only made, never given back on error */
    for (; made < n && status == NORI_OK; made++) {
        uint32_t slot = f->plan->out[made];
        const nori_tensor *t = f->now[slot];
        if (!t) {
            status = nori__fail(err, NORI_ERROR_INTERNAL, "output %s was not computed",
                                f->plan->slots[slot].value->name);
        } else if (outputs[made]) {
            given |= made < 64 ? (uint64_t)1 << made : 0;
            status = copy_into(t, outputs[made], f->plan->slots[slot].value->name, err);
        } else {
            status = nori__frame_keep(&f->meter->pooled, t, !f->owned[slot], &outputs[made], err);
        }
    }
    for (uint32_t i = 0; status != NORI_OK && i < made && i < 64; i++) {
        if (!(given >> i & 1)) {
            nori_tensor_free(outputs[i]);
            outputs[i] = NULL;
        }
    }
    return status;
}

/* weights_file.c: named tensors of a .safetensors, .npz or .onnx file behind one face. */
#include "base/given.h"
#include "base/byte_order.h"
#include "nori/provider.h"
#include "nori/tools.h"
#include "nori/weights.h"
#include "platform/env.h"
#include "run/run.h"
#include "tools/files/safetensors.h"

typedef struct entry {
    const char *name;
    const nori__stored *stored; /* in a .safetensors file, else tensor */
    const nori_tensor *tensor;
} entry;

struct nori_weights {
    const nori_allocator *allocator;
    nori__arena arena;
    nori__map_file file;
    nori_archive *archive;
    nori_model *model;
    nori__vec list; /* entry */
    nori__map names;
};

static nori_status add(nori_weights *w, const char *name, const nori__stored *stored,
                       const nori_tensor *tensor, nori_error *err)
{
    entry *e = nori__arena_alloc(&w->arena, sizeof(*e));
    if (nori__map_get(&w->names, name)) {
        return nori__fail(err, NORI_ERROR_FORMAT, "two tensors of the file are called \"%.200s\"", name);
    }
    if (!e || !nori__vec_push(&w->list, e) || !nori__map_put(&w->names, name, e)) {
        return nori__no_memory(err);
    }
    *e = (entry){.name = name, .stored = stored, .tensor = tensor};
    return NORI_OK;
}

static nori_status open_safetensors(nori_weights *w, nori_error *err)
{
    nori__vec found;
    nori__vec_init(&found, w->allocator);
    nori_status s = nori__safetensors_read(&w->arena, w->file.data, w->file.size, &found, err);
    for (size_t i = 0; s == NORI_OK && i < found.count; i++) {
        const nori__stored *t = found.items[i];
        s = add(w, t->name, t, NULL, err);
    }
    nori__vec_free(&found);
    return s;
}

static nori_status open_archive(nori_weights *w, nori_env *env, const char *path, nori_error *err)
{
    NORI__TRY(nori_archive_read(env, path, &w->archive, err));
    nori_status s = NORI_OK;
    for (size_t i = 0; s == NORI_OK && i < nori_archive_count(w->archive); i++) {
        s = add(w, nori_archive_name(w->archive, i), NULL, nori_archive_tensor(w->archive, i), err);
    }
    return s;
}

static nori_status open_model(nori_weights *w, nori_env *env, const char *path, nori_error *err)
{
    NORI__TRY(nori_model_load(env, path, NULL, &w->model, err));
    nori_status s = NORI_OK;
    const nori__graph *g = nori__model_ir(w->model)->main;
    for (const nori__value *v = g->values; s == NORI_OK && v; v = v->next) {
        const nori_tensor *t = v->constant;
        if (!t && v->producer && nori__same(v->producer->op_type, "Constant")) {
            t = nori__attr_tensor(v->producer, "value");
        }
        if (t && t->kind == NORI_KIND_TENSOR) {
            s = nori__tensor_settle(t) ? NORI_OK : nori__no_memory(err);
        }
        if (s == NORI_OK && t && t->kind == NORI_KIND_TENSOR) {
            s = add(w, v->name, NULL, t, err);
        }
    }
    return s;
}

static nori_status open_file(nori_weights *w, nori_env *env, const char *path, nori_error *err)
{
    nori__arena_init(&w->arena, w->allocator);
    nori__vec_init(&w->list, w->allocator);
    nori__map_init(&w->names, w->allocator);
    NORI__TRY(nori__map_open(path, &w->file, err));
    const uint8_t *data = w->file.data;
    nori_status s;
    if (nori__is_safetensors(data, w->file.size)) {
        s = open_safetensors(w, err);
    } else if (w->file.size > 4 && memcmp(data, "PK", 2) == 0 && data[2] < 8 && data[3] < 9) {
        s = open_archive(w, env, path, err);
    } else {
        s = open_model(w, env, path, err);
        if (s == NORI_ERROR_FORMAT) {
            nori__hint(err, "weights are read from .safetensors, .npz and .onnx files");
        }
    }
    if (s != NORI_OK && err && !err->where[0]) {
        nori__where(err, "%s", path);
    }
    return s;
}

nori_status nori_weights_open(nori_env *env, const char *path, nori_weights **weights, nori_error *err)
{
    if (!path || !weights) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "path and weights must not be NULL");
    }
    *weights = NULL;
    const nori_allocator *a = nori__env_allocator(env);
    nori_weights *w = nori__alloc_zero(a, sizeof(*w));
    if (!w) {
        return nori__no_memory(err);
    }
    w->allocator = a;
    nori_status s = open_file(w, env, path, err);
    if (s != NORI_OK) {
        nori_weights_free(w);
        return s;
    }
    *weights = w;
    return NORI_OK;
}

void nori_weights_free(nori_weights *w)
{
    if (w) {
        const nori_allocator *a = w->allocator;
        nori__map_free(&w->names);
        nori__vec_free(&w->list);
        nori_archive_free(w->archive);
        nori_model_free(w->model);
        nori__map_close(&w->file);
        nori__arena_free(&w->arena);
        nori__release(a, w, sizeof(*w));
    }
}

size_t nori_weights_count(const nori_weights *w)
{
    NORI__ASKED(w, 0);
    return w->list.count;
}

const char *nori_weights_name(const nori_weights *w, size_t index)
{
    NORI__ASKED(w, NULL);
    return index < w->list.count ? ((const entry *)w->list.items[index])->name : NULL;
}

int nori_weights_has(const nori_weights *w, const char *name)
{
    NORI__ASKED(w, 0);
    NORI__ASKED(name, 0);
    return nori__map_get(&w->names, name) != NULL;
}

nori_status nori_weights_tensor(const nori_weights *w, const char *name, nori_tensor **tensor,
                                nori_error *err)
{
    NORI__GIVEN(err, w);
    NORI__GIVEN(err, tensor);
    const entry *e = name ? nori__map_get(&w->names, name) : NULL;
    *tensor = NULL;
    if (!e) {
        const char *first = w->list.count ? nori_weights_name(w, 0) : "";
        return nori__fail(err, NORI_ERROR_ARGUMENT,
                          "the weights have no tensor \"%.200s\"; they have %zu%s%.200s%s",
                          name ? name : "", w->list.count, w->list.count ? ", the first is \"" : "",
                          first, w->list.count ? "\"" : "");
    }
    if (e->tensor) { /* may point into the file: what is given outlives it */
        return nori__tensor_copy(w->allocator, e->tensor, tensor, err);
    }
    NORI__TRY(nori__tensor_new(w->allocator, e->stored->type, e->stored->rank, e->stored->dims, tensor,
                               err));
    if (e->stored->bytes) {
        memcpy((*tensor)->data, e->stored->data, e->stored->bytes);
        nori__order(e->stored->type, (*tensor)->data, e->stored->bytes);
    }
    uint8_t *flags = (*tensor)->data;
    for (int64_t i = 0; e->stored->type == NORI_BOOL && i < (*tensor)->count; i++) {
        flags[i] = flags[i] != 0;
    }
    return NORI_OK;
}

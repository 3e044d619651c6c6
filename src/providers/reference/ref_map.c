/* ref_map.c: maps of ai.onnx.ml: ZipMap makes them, CastMap and DictVectorizer take them. A map is
 * a group of its keys and its values, both 1-D and as long as each other. */
#include "providers/reference/ref_ml.h"

#include <errno.h>
#include <stdlib.h>
#include <stdio.h>

static nori_status key_tensor(nori_call *call, const nori__labels *l, nori_tensor **out)
{
    int64_t n = (int64_t)l->count;
    NORI__TRY(nori__tensor_new(call->allocator, l->text ? NORI_STRING : NORI_INT64, 1, &n, out,
                               call->err));
    for (int64_t i = 0; i < n; i++) {
        nori_status status = nori__labels_put(l, *out, i, i, call->err);
        if (status != NORI_OK) {
            nori_tensor_free(*out);
            *out = NULL;
            return status;
        }
    }
    return NORI_OK;
}

/* The map of one row; keys are shared by all. */
static nori_status row_map(nori_call *call, const nori__rows *x, int64_t row, nori_tensor *keys,
                           nori_tensor **map)
{
    nori_tensor *values = NULL;
    NORI__TRY(nori__tensor_new(call->allocator, NORI_FLOAT, 1, &x->width, &values, call->err));
    for (int64_t i = 0; i < x->width; i++) {
        ((float *)values->data)[i] = (float)nori__rows_get(x, row, i);
    }
    nori_status status = nori__tensor_group(call->allocator, NORI_KIND_MAP,
                                            (nori_tensor *[]){keys, values}, 2, map, call->err);
    nori_tensor_free(values);
    return status;
}

nori_status nori__ref_ml_ZipMap(nori_call *call)
{
    nori__rows x;
    nori__labels labels = nori__labels_read(call->node);
    NORI__TRY(nori__rows_of(call, &x));
    if ((int64_t)labels.count != x.width) {
        return nori__fail(call->err, NORI_ERROR_DATA, "%zu keys for %lld columns", labels.count,
                          (long long)x.width);
    }
    nori_tensor *keys = NULL, *all = NULL;
    nori__vec maps;
    nori__vec_init(&maps, call->allocator);
    nori_status status = key_tensor(call, &labels, &keys);
    for (int64_t r = 0; status == NORI_OK && r < x.n; r++) {
        nori_tensor *map = NULL;
        status = row_map(call, &x, r, keys, &map);
        if (status == NORI_OK && !nori__vec_push(&maps, map)) {
            nori_tensor_free(map);
            status = nori__no_memory(call->err);
        }
    }
    if (status == NORI_OK) {
        status = nori__tensor_group(call->allocator, NORI_KIND_SEQUENCE,
                                    (nori_tensor *const *)maps.items, maps.count, &all, call->err);
    }
    if (status == NORI_OK) {
        status = call->exec->set(call, 0, all);
    }
    nori_tensor_free(all);
    for (size_t i = 0; i < maps.count; i++) {
        nori_tensor_free(maps.items[i]);
    }
    nori__vec_free(&maps);
    nori_tensor_free(keys);
    return status;
}

/* Checks a map the caller may have made: two 1-D tensors of one length, keys int64 or strings. */
static nori_status read_map(const nori_call *call, const nori_tensor **keys,
                            const nori_tensor **values)
{
    const nori_tensor *t = nori__ref_in(call, 0);
    *keys = t && t->kind == NORI_KIND_MAP ? nori_tensor_item(t, 0) : NULL;
    *values = t && t->kind == NORI_KIND_MAP ? nori_tensor_item(t, 1) : NULL;
    if (!*keys || !*values || (*keys)->kind != NORI_KIND_TENSOR ||
        (*values)->kind != NORI_KIND_TENSOR || (*keys)->count != (*values)->count ||
        ((*keys)->type != NORI_INT64 && (*keys)->type != NORI_STRING)) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "input 0 of %s must be a map with keys of int64 or string",
                          call->node->op_type);
    }
    return NORI_OK;
}

/* Numbers to text as Python prints small ones ("%g" with all digits that matter); text to numbers
 * must be numbers through and through. */
static nori_status convert(const nori_call *call, const nori_tensor *from, int64_t i,
                           nori_tensor *to, int64_t at)
{
    char text[64], *end = text;
    if (from->type != NORI_STRING && to->type == NORI_STRING) {
        int n = from->type == NORI_INT64
                    ? snprintf(text, sizeof(text), "%lld", (long long)nori__tensor_get_i64(from, i))
                    : snprintf(text, sizeof(text), "%.9g", nori__tensor_get_f64(from, i));
        return nori__tensor_set_string(to, at, text, (size_t)n, call->err);
    }
    if (from->type != NORI_STRING) {
        nori__tensor_set_f64(to, at, nori__tensor_get_f64(from, i));
        return NORI_OK;
    }
    const nori_string *s = (const nori_string *)from->data + i;
    if (to->type == NORI_STRING) {
        return nori__tensor_set_string(to, at, s->data, s->size, call->err);
    }
    if (s->size > 0 && s->size < sizeof(text)) {
        memcpy(text, s->data, s->size);
        text[s->size] = 0;
        errno = 0;
        if (to->type == NORI_INT64) {
            nori__tensor_set_i64(to, at, strtoll(text, &end, 10));
        } else {
            nori__tensor_set_f64(to, at, strtod(text, &end));
        }
        if (*end == 0 && errno == 0) {
            return NORI_OK;
        }
    }
    return nori__fail(call->err, NORI_ERROR_DATA, "a value of the map is text that is no number");
}

nori_status nori__ref_ml_CastMap(nori_call *call)
{
    const nori_tensor *keys, *values;
    nori_tensor *out = NULL;
    NORI__TRY(read_map(call, &keys, &values));
    const char *to = nori__attr_s(call->node, "cast_to", "TO_FLOAT");
    bool sparse = nori__same(nori__attr_s(call->node, "map_form", "DENSE"), "SPARSE");
    nori_type type = nori__same(to, "TO_STRING")  ? NORI_STRING
                     : nori__same(to, "TO_INT64") ? NORI_INT64
                                                  : NORI_FLOAT;
    int64_t n = sparse ? nori__attr_i(call->node, "max_map", 1) : keys->count;
    if (keys->type != NORI_INT64 || n < 0) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "keys must be int64 and max_map not negative");
    }
    NORI__TRY(call->exec->alloc(call, 0, type, 2, (int64_t[]){1, n}, &out));
    NORI__TRY(nori__move_fill(NULL, 0, out, call->err));
    const int64_t *k = keys->data;
    for (int64_t i = 0; i < keys->count; i++) {
        int64_t at = sparse ? k[i] : 0;
        for (int64_t j = 0; !sparse && j < keys->count; j++) { /* ascending by key */
            at += k[j] < k[i] || (k[j] == k[i] && j < i);
        }
        if (at < 0 || at >= n) {
            return nori__fail(call->err, NORI_ERROR_DATA, "key %lld is outside of max_map %lld",
                              (long long)at, (long long)n);
        }
        NORI__TRY(convert(call, values, i, out, at));
    }
    return NORI_OK;
}

nori_status nori__ref_ml_DictVectorizer(nori_call *call)
{
    const nori_tensor *keys, *values;
    nori_tensor *out = NULL;
    size_t n_text, n_ints;
    const nori__str *text = nori__attr_strings(call->node, "string_vocabulary", &n_text);
    const int64_t *ints = nori__attr_ints(call->node, "int64_vocabulary", &n_ints);
    NORI__TRY(read_map(call, &keys, &values));
    bool by_text = keys->type == NORI_STRING;
    int64_t n = (int64_t)(by_text ? n_text : n_ints);
    NORI__TRY(call->exec->alloc(call, 0, (nori_type)values->type, 2, (int64_t[]){1, n}, &out));
    NORI__TRY(nori__move_fill(NULL, 0, out, call->err));
    for (int64_t i = 0; i < keys->count; i++) {
        int64_t at = 0;
        for (; at < n; at++) {
            const nori_string *s = (const nori_string *)keys->data + i;
            bool same = by_text ? text[at].n == s->size &&
                                      (s->size == 0 || memcmp(text[at].p, s->data, s->size) == 0)
                                : ints[at] == ((const int64_t *)keys->data)[i];
            if (same) {
                break;
            }
        }
        if (at == n) {
            return nori__fail(call->err, NORI_ERROR_DATA, "key %lld is not in the vocabulary",
                              (long long)i);
        }
        NORI__TRY(nori__move_run(values, i, out, at, 1, call->err));
    }
    return NORI_OK;
}

/* ref_encode.c: ai.onnx.ml on categories: LabelEncoder, CategoryMapper, OneHotEncoder. A float key
 * that is NaN matches any NaN; of equal keys the last counts. */
#include "providers/reference/ref_ml.h"

#include <math.h>

/* A list of keys or values, however it is given. */
typedef struct list {
    const nori__str *text;
    const int64_t *ints;
    const float *floats;
    const nori_tensor *tensor;
    size_t n;
} list;

static list read_list(const nori__node *node, const char *text, const char *ints,
                      const char *floats, const char *tensor)
{
    list l = {NULL, NULL, NULL, tensor ? nori__attr_tensor(node, tensor) : NULL, 0};
    if (l.tensor) {
        l.n = (size_t)l.tensor->count;
        return l;
    }
    l.text = nori__attr_strings(node, text, &l.n);
    if (!l.text || l.n == 0) {
        l.text = NULL;
        l.ints = nori__attr_ints(node, ints, &l.n);
    }
    if (!l.text && l.n == 0 && floats) {
        l.ints = NULL;
        l.floats = nori__attr_floats(node, floats, &l.n);
    }
    return l;
}

static bool is_text(const list *l)
{
    return l->text || (l->tensor && l->tensor->type == NORI_STRING);
}

static nori__str text_at(const list *l, size_t i)
{
    if (l->text) {
        return l->text[i];
    }
    const nori_string *s = (const nori_string *)l->tensor->data + i;
    return (nori__str){s->data, s->size};
}

static double real_at(const list *l, size_t i)
{
    return l->tensor ? nori__tensor_get_f64(l->tensor, (int64_t)i) : (double)l->floats[i];
}

static int64_t int_at(const list *l, size_t i)
{
    return l->tensor ? nori__tensor_get_i64(l->tensor, (int64_t)i) : l->ints[i];
}

static bool is_real(const list *l)
{
    return l->floats || (l->tensor && nori__type_is_float((nori_type)l->tensor->type));
}

static bool matches(const list *keys, size_t k, const nori_tensor *in, int64_t i)
{
    if (in->type == NORI_STRING) {
        const nori_string *s = (const nori_string *)in->data + i;
        nori__str t = text_at(keys, k);
        return t.n == s->size && (t.n == 0 || memcmp(t.p, s->data, t.n) == 0);
    }
    if (is_real(keys)) {
        double a = real_at(keys, k), b = nori__tensor_get_f64(in, i);
        return a == b || (isnan(a) && isnan(b));
    }
    return int_at(keys, k) == nori__tensor_get_i64(in, i);
}

/* The last key that matches, -1 for none. */
static int64_t look_up(const list *keys, const nori_tensor *in, int64_t i)
{
    for (size_t k = keys->n; k-- > 0;) {
        if (matches(keys, k, in, i)) {
            return (int64_t)k;
        }
    }
    return -1;
}

static nori_status put(const list *values, size_t k, nori_tensor *out, int64_t i, nori_error *err)
{
    if (out->type == NORI_STRING) {
        nori__str s = text_at(values, k);
        return nori__tensor_set_string(out, i, s.p, s.n, err);
    }
    if (is_real(values)) {
        nori__tensor_set_f64(out, i, real_at(values, k));
    } else {
        nori__tensor_set_i64(out, i, int_at(values, k));
    }
    return NORI_OK;
}

static nori_status put_default(const nori_call *call, nori_tensor *out, int64_t i)
{
    const nori_tensor *t = nori__attr_tensor(call->node, "default_tensor");
    if (t && t->count > 0 && t->type == out->type) {
        return nori__move_run(t, 0, out, i, 1, call->err);
    }
    if (out->type == NORI_STRING) {
        const char *s = nori__attr_s(call->node, "default_string", "_Unused");
        return nori__tensor_set_string(out, i, s, strlen(s), call->err);
    }
    if (nori__type_is_float((nori_type)out->type)) {
        nori__tensor_set_f64(out, i, (double)nori__attr_f(call->node, "default_float", -0.0f));
    } else {
        nori__tensor_set_i64(out, i, nori__attr_i(call->node, "default_int64", -1));
    }
    return NORI_OK;
}

static nori_status map_all(const nori_call *call, const list *keys, const list *values)
{
    const nori_tensor *in = call->in[0];
    nori_tensor *out = call->out[0];
    if (keys->n != values->n || is_text(keys) != (in->type == NORI_STRING)) {
        return nori__fail(call->err, NORI_ERROR_MODEL,
                          "%zu keys and %zu values, or keys that are not of the input's type %s",
                          keys->n, values->n, nori_type_name((nori_type)in->type));
    }
    if (!out) {
        return NORI_OK;
    }
    if (values->n > 0 && is_text(values) != (out->type == NORI_STRING)) {
        return nori__fail(call->err, NORI_ERROR_MODEL, "the values are not of the output's type");
    }
    for (int64_t i = 0; i < in->count; i++) {
        int64_t k = look_up(keys, in, i);
        NORI__TRY(k >= 0 ? put(values, (size_t)k, out, i, call->err) : put_default(call, out, i));
    }
    return NORI_OK;
}

/* Version 1: classes_strings, whose places are the integers. */
static nori_status encode_classes(const nori_call *call)
{
    const nori_tensor *in = call->in[0];
    nori_tensor *out = call->out[0];
    list keys = {NULL, NULL, NULL, NULL, 0};
    keys.text = nori__attr_strings(call->node, "classes_strings", &keys.n);
    for (int64_t i = 0; out && i < in->count; i++) {
        bool text = in->type == NORI_STRING;
        int64_t k = text ? look_up(&keys, in, i) : nori__tensor_get_i64(in, i);
        if (k < 0 || k >= (int64_t)keys.n) {
            NORI__TRY(put_default(call, out, i));
        } else if (text) {
            nori__tensor_set_i64(out, i, k);
        } else {
            NORI__TRY(put(&keys, (size_t)k, out, i, call->err));
        }
    }
    return NORI_OK;
}

nori_status nori__ref_ml_LabelEncoder(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    if (call->node->version < 2) {
        return encode_classes(call);
    }
    list keys = read_list(call->node, "keys_strings", "keys_int64s", "keys_floats", "keys_tensor");
    list values =
        read_list(call->node, "values_strings", "values_int64s", "values_floats", "values_tensor");
    return map_all(call, &keys, &values);
}

nori_status nori__ref_ml_CategoryMapper(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    list text = {NULL, NULL, NULL, NULL, 0}, ints = text;
    text.text = nori__attr_strings(call->node, "cats_strings", &text.n);
    ints.ints = nori__attr_ints(call->node, "cats_int64s", &ints.n);
    if (!text.text || !ints.ints) {
        return nori__fail(call->err, NORI_ERROR_MODEL, "cats_strings or cats_int64s is missing");
    }
    bool from_text = call->in[0]->type == NORI_STRING;
    return map_all(call, from_text ? &text : &ints, from_text ? &ints : &text);
}

nori_status nori__ref_ml_OneHotEncoder(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *in = call->in[0];
    nori_tensor *out = call->out[0];
    list cats = read_list(call->node, "cats_strings", "cats_int64s", NULL, NULL);
    bool zeros = nori__attr_i(call->node, "zeros", 1) != 0;
    if (is_text(&cats) != (in->type == NORI_STRING)) {
        return nori__ref_bad_type(call, 0);
    }
    if (!out) {
        return NORI_OK;
    }
    NORI__TRY(nori__move_fill(NULL, 0, out, call->err));
    for (int64_t i = 0; i < in->count; i++) {
        int64_t k = look_up(&cats, in, i);
        if (k < 0 && !zeros) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "element %lld is none of the %zu categories", (long long)i, cats.n);
        }
        if (k >= 0) {
            ((float *)out->data)[i * (int64_t)cats.n + k] = 1;
        }
    }
    return NORI_OK;
}

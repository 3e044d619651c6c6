/* tracer.c: what the traced function calls: constants, operations, looking at values. */
#include <stdio.h>

#include "base/byte_order.h"
#include "base/given.h"
#include "ops/op.h"
#include "ops/schema.h"
#include "platform/env.h"
#include "tools/trace/tracer.h"

void nori__tracer_init(nori_tracer *t, nori_env *env, const nori_trace_options *o, nori_error *err)
{
    const nori_allocator *a = nori__env_allocator(env);
    *t = (nori_tracer){.env = env, .allocator = a, .options = o, .err = err};
    nori__arena_init(&t->arena, a);
    nori__vec_init(&t->values, a);
    nori__vec_init(&t->ops, a);
    nori__map_init(&t->names, a);
    nori__map_init(&t->contents, a);
}

void nori__tracer_free(nori_tracer *t)
{
    for (size_t i = 0; i < t->values.count; i++) {
        nori_tensor_free(((nori_traced *)t->values.items[i])->tensor);
    }
    nori__map_free(&t->contents);
    nori__map_free(&t->names);
    nori__vec_free(&t->ops);
    nori__vec_free(&t->values);
    nori__arena_free(&t->arena);
}

bool nori__tracer_goes(const nori_tracer *t)
{
    return t && t->status == NORI_OK;
}

bool nori__tracer_stop(nori_tracer *t, nori_status status, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    if (t->status == NORI_OK) {
        va_start(args, fmt);
        vsnprintf(text, sizeof(text), fmt, args);
        va_end(args);
        t->status = nori__fail(t->err, status, "%s", text);
    }
    return false;
}

nori_status nori_tracer_fail(nori_tracer *t, nori_status status, const char *text)
{
    if (!t) {
        return NORI_ERROR_ARGUMENT;
    }
    nori__tracer_stop(t, status == NORI_OK ? NORI_ERROR_ARGUMENT : status, "%s", text ? text : "");
    return t->status;
}

void nori__tracer_note(nori_tracer *t, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    if (!t->report) {
        return;
    }
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    char *kept = nori__arena_text(&t->report->arena, text);
    if (kept && nori__vec_push(&t->report->notes, kept) && t->options->note) {
        t->options->note(t->options->note_user, kept);
    }
}

/* ---- values ---- */

static const char *free_name(nori_tracer *t, const char *name, const char *stem)
{
    const char *found = name;
    if (found && !nori__map_get(&t->names, found)) {
        return nori__arena_text(&t->arena, found);
    }
    do {
        found = nori__arena_printf(&t->arena, "%s_%zu", name ? name : stem, ++t->numbered);
    } while (found && nori__map_get(&t->names, found));
    return found;
}

nori_traced *nori__traced_new(nori_tracer *t, const char *name, const char *stem, nori_tensor *tensor)
{
    nori_traced *v = nori__tracer_goes(t) && tensor ? nori__arena_alloc(&t->arena, sizeof(*v)) : NULL;
    const char *own = v ? free_name(t, name, stem) : NULL;
    if (!own || !nori__map_put(&t->names, own, v) || !nori__vec_push(&t->values, v)) {
        nori_tensor_free(tensor);
        nori__tracer_stop(t, NORI_ERROR_MEMORY, "out of memory");
        return NULL;
    }
    *v = (nori_traced){.t = t, .name = own, .tensor = tensor};
    return v;
}

nori_traced *nori_traced_name(nori_traced *v, const char *name)
{
    NORI__ASKED(v, NULL);
    if (!v || !nori__tracer_goes(v->t)) {
        return NULL;
    }
    nori_tracer *t = v->t;
    if (!name || !name[0]) {
        nori__tracer_stop(t, NORI_ERROR_ARGUMENT, "a name for value \"%s\" was expected", v->name);
        return NULL;
    }
    nori_traced *other = nori__map_get(&t->names, name);
    if (other == v && nori__same(v->name, name)) {
        return v;
    }
    if (v->input || (other && nori__same(other->name, name))) {
        nori__tracer_stop(t, NORI_ERROR_ARGUMENT, v->input
                              ? "value \"%s\" is an input: its name is given with the example, not \"%s\""
                              : "value \"%s\" cannot be called \"%s\": another one is", v->name, name);
        return NULL;
    }
    const char *own = nori__arena_text(&t->arena, name);
    if (!own || !nori__map_put(&t->names, own, v)) {
        nori__tracer_stop(t, NORI_ERROR_MEMORY, "out of memory");
        return NULL;
    }
    v->name = own;
    return v;
}

/* ---- constants ---- */

static const char *content_key(nori_tracer *t, const nori_tensor *x)
{
    nori__hash hash = {0, 0};
    char text[NORI__HASH_TEXT];
    int64_t head[2] = {x->type, x->rank};
    nori__hash_add(&hash, head, sizeof(head));
    nori__hash_add(&hash, x->dims, x->rank * sizeof(x->dims[0]));
    if (x->type == NORI_STRING) {
        const nori_string *s = x->data;
        for (int64_t i = 0; i < x->count; i++) {
            uint64_t size = s[i].size;
            nori__hash_add(&hash, &size, sizeof(size));
            nori__hash_add(&hash, s[i].data, s[i].size);
        }
    } else if (x->bytes) {
        nori__hash_add(&hash, x->data, x->bytes);
    }
    nori__hash_text(&hash, text);
    return nori__arena_text(&t->arena, text);
}

/* A hash says where to look, not that contents are one. */
static bool same_content(const nori_tensor *a, const nori_tensor *b)
{
    bool same = a->type == b->type && a->rank == b->rank && a->bytes == b->bytes &&
                memcmp(a->dims, b->dims, a->rank * sizeof(a->dims[0])) == 0;
    const nori_string *x = a->data, *y = b->data;
    for (int64_t i = 0; same && a->type == NORI_STRING && i < a->count; i++) {
        same = x[i].size == y[i].size && (x[i].size == 0 || memcmp(x[i].data, y[i].data, x[i].size) == 0);
    }
    return same && (a->type == NORI_STRING || a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0);
}

nori_traced *nori_traced_constant(nori_tracer *t, const char *name, const nori_tensor *tensor)
{
    if (!nori__tracer_goes(t)) {
        return NULL;
    }
    if (!tensor || tensor->kind != NORI_KIND_TENSOR) {
        nori__tracer_stop(t, NORI_ERROR_ARGUMENT, "constant \"%s\": a tensor was expected",
                          name ? name : "");
        return NULL;
    }
    const char *key = content_key(t, tensor);
    nori_traced *v = key ? nori__map_get(&t->contents, key) : NULL;
    if (v && same_content(v->tensor, tensor)) {
        t->shared++;
        return v;
    }
    v = nori__traced_new(t, name, "constant", nori_tensor_retain(tensor));
    if (v && (!key || !nori__map_put(&t->contents, key, v))) {
        nori__tracer_stop(t, NORI_ERROR_MEMORY, "out of memory");
        return NULL;
    }
    return v;
}

nori_traced *nori_traced_weight(nori_tracer *t, const nori_weights *weights, const char *name)
{
    nori_tensor *tensor = NULL;
    nori_error err = {0};
    if (!nori__tracer_goes(t)) {
        return NULL;
    }
    if (!weights || nori_weights_tensor(weights, name, &tensor, &err) != NORI_OK) {
        nori__tracer_stop(t, weights ? err.status : NORI_ERROR_ARGUMENT, "%s",
                          weights ? err.message : "no weights were given");
        return NULL;
    }
    nori_traced *v = nori_traced_constant(t, name, tensor);
    nori_tensor_free(tensor);
    return v;
}

static nori_traced *own_constant(nori_tracer *t, nori_type type, int rank, int64_t count,
                                 const void *data)
{
    nori_tensor *x = NULL;
    if (!nori__tracer_goes(t)) {
        return NULL;
    }
    if (count < 0 || (count > 0 && !data)) {
        nori__tracer_stop(t, NORI_ERROR_ARGUMENT, "%lld numbers of a constant were expected, got none",
                          (long long)count);
        return NULL;
    }
    if (nori__tensor_new(t->allocator, type, rank, &count, &x, NULL) != NORI_OK) {
        nori__tracer_stop(t, NORI_ERROR_MEMORY, "out of memory");
        return NULL;
    }
    if (x->bytes) {
        memcpy(x->data, data, x->bytes);
    }
    nori_traced *v = nori_traced_constant(t, NULL, x);
    nori_tensor_free(x);
    return v;
}

nori_traced *nori_traced_float(nori_tracer *t, float value)
{
    return own_constant(t, NORI_FLOAT, 0, 1, &value);
}

nori_traced *nori_traced_ints(nori_tracer *t, const int64_t *values, size_t count)
{
    return own_constant(t, NORI_INT64, 1, (int64_t)count, values);
}

/* ---- looking ---- */

nori_type nori_traced_type(const nori_traced *v)
{
    return v ? (nori_type)v->tensor->type : NORI_UNDEFINED;
}

int nori_traced_rank(const nori_traced *v)
{
    NORI__ASKED(v, 0);
    return v && v->tensor->kind == NORI_KIND_TENSOR ? v->tensor->rank : 0;
}

int64_t nori_traced_dim(nori_traced *v, int axis)
{
    NORI__ASKED(v, 0);
    int rank = nori_traced_rank(v);
    axis += axis < 0 ? rank : 0;
    if (!v || axis < 0 || axis >= rank) {
        if (v) {
            nori__tracer_stop(v->t, NORI_ERROR_ARGUMENT, "value \"%s\" has rank %d, no axis %d", v->name,
                              rank, axis);
        }
        return 0;
    }
    if (!v->sized && v->depends && v->t->options->dynamic_axis_count > 0 && (!v->input || v->open[axis])) {
        v->sized = true;
        nori__tracer_note(v->t, "the size of axis %d of \"%s\" was read as a number (%lld): what follows "
                          "from it is frozen, should it depend on a dynamic axis", axis, v->name,
                          (long long)v->tensor->dims[axis]);
    }
    return v->tensor->dims[axis];
}

const nori_tensor *nori_traced_read(nori_traced *v)
{
    NORI__ASKED(v, NULL);
    if (!v || !nori__tracer_goes(v->t)) {
        return NULL;
    }
    if (v->depends && !v->read) {
        v->read = true;
        nori__tracer_note(v->t, "the content of \"%s\"%s%s%s was read by the function: what was decided "
                          "by it is frozen, the graph does the same for every input", v->name,
                          v->made ? " (" : "", v->made ? v->made->op : "", v->made ? ")" : "");
    }
    return v->tensor;
}

void nori_traced_text(const nori_traced *v, char *out, size_t size)
{
    NORI__ASKED(v, );
    enum { SHOWN = 8 };
    if (size == 0) {
        return;
    }
    if (!v) {
        snprintf(out, size, "no value: the trace has failed");
        return;
    }
    const nori_tensor *x = v->tensor;
    int used = snprintf(out, size, "%s %s", v->name, nori_type_name((nori_type)x->type));
    for (int d = 0; d < x->rank && used >= 0 && (size_t)used < size; d++) {
        used += snprintf(out + used, size - (size_t)used, "%s%lld%s", d ? "," : "[",
                         (long long)x->dims[d], d + 1 == x->rank ? "]" : "");
    }
    for (int64_t i = 0; x->kind == NORI_KIND_TENSOR && x->type != NORI_STRING && i < x->count &&
                        used >= 0 && (size_t)used < size; i++) {
        if (i == SHOWN) {
            snprintf(out + used, size - (size_t)used, " ...");
            break;
        }
        used += snprintf(out + used, size - (size_t)used, " %.6g", nori__tensor_get_f64(x, i));
    }
}

/* ---- operations ---- */

static bool copy_attr(nori_tracer *t, nori__recorded *r, const nori_attr *a, nori__pb_attr *pb)
{
    nori__arena *arena = &t->arena;
    const char *name = a->name ? nori__arena_text(arena, a->name) : NULL;
    size_t n = a->count;
    if (!name) {
        return nori__tracer_stop(t, NORI_ERROR_ARGUMENT, "an attribute without name");
    }
    pb->name = nori__str_of(name);
    pb->kind = (nori__pb_attr_kind)a->kind;
    pb->i = a->i;
    pb->f = a->f;
    if (!a->p && a->kind != NORI__ATTR_INT && a->kind != NORI__ATTR_FLOAT && (n || a->kind < 6)) {
        return nori__tracer_stop(t, NORI_ERROR_ARGUMENT, "attribute %s has no value", name);
    }
    bool ok = true;
    switch (pb->kind) {
    case NORI__ATTR_FLOAT:
    case NORI__ATTR_INT:
        break;
    case NORI__ATTR_STRING: {
        const char *s = nori__arena_text(arena, a->p);
        ok = s != NULL;
        pb->s = s ? nori__str_of(s) : pb->s;
        break;
    }
    case NORI__ATTR_FLOATS:
    case NORI__ATTR_INTS: {
        size_t size = a->kind == NORI__ATTR_INTS ? sizeof(int64_t) : sizeof(float);
        void *items = nori__arena_array(arena, n + 1, size);
        ok = items != NULL;
        if (ok && n) {
            memcpy(items, a->p, n * size);
        }
        if (a->kind == NORI__ATTR_INTS) {
            pb->ints.items = items;
            pb->ints.count = n;
        } else {
            pb->floats.items = items;
            pb->floats.count = n;
        }
        break;
    }
    case NORI__ATTR_STRINGS:
        pb->strings.items = nori__arena_array(arena, n + 1, sizeof(nori__str));
        pb->strings.count = n;
        for (size_t i = 0; ok && pb->strings.items && i < n; i++) {
            const char *s = nori__arena_text(arena, ((const char *const *)a->p)[i]);
            ok = s != NULL;
            pb->strings.items[i] = nori__str_of(s ? s : "");
        }
        ok = ok && pb->strings.items;
        break;
    case NORI__ATTR_TENSOR: {
        const nori_tensor *x = a->p;
        nori_traced *kept = nori__traced_new(t, NULL, "attribute", nori_tensor_retain(x));
        int64_t *dims = nori__arena_array(arena, x->rank + (size_t)1, sizeof(*dims));
        pb->t = nori__arena_alloc(arena, sizeof(*pb->t));
        ok = kept && dims && pb->t && x->kind == NORI_KIND_TENSOR && x->type != NORI_STRING;
        if (ok) {
            memcpy(dims, x->dims, x->rank * sizeof(*dims));
            *pb->t = (nori__pb_tensor){.data_type = x->type, .has_raw = true};
            pb->t->raw = nori__file_bytes(arena, (nori_type)x->type, x->data, x->bytes);
            ok = pb->t->raw.p != NULL;
            pb->t->dims.items = dims;
            pb->t->dims.count = x->rank;
        }
        break;
    }
    case NORI__ATTR_GRAPH:
        return nori__trace_graph_attr(t, r, a->p, pb);
    default:
        return nori__tracer_stop(t, NORI_ERROR_ARGUMENT, "attribute %s has kind %d, which cannot be recorded",
                                 name, a->kind);
    }
    return ok || nori__tracer_stop(t, NORI_ERROR_MEMORY, "attribute %s: out of memory, or a tensor that "
                                   "cannot be recorded", name);
}

/* "ai.onnx.ml.Scaler" to domain and operator. */
static nori__recorded *new_record(nori_tracer *t, const char *op)
{
    nori__recorded *r = nori__arena_alloc(&t->arena, sizeof(*r));
    const char *dot = op ? strrchr(op, '.') : NULL;
    if (!op || !op[0] || (dot && !dot[1])) {
        nori__tracer_stop(t, NORI_ERROR_ARGUMENT, "the name of an operator was expected");
        return NULL;
    }
    if (r) {
        r->op = nori__arena_text(&t->arena, dot ? dot + 1 : op);
        r->domain = dot ? nori__arena_copy(&t->arena, op, (size_t)(dot - op)) : "";
        r->domain = r->domain && nori__same(r->domain, "ai.onnx") ? "" : r->domain;
    }
    if (!r || !r->op || !r->domain) {
        nori__tracer_stop(t, NORI_ERROR_MEMORY, "out of memory");
        return NULL;
    }
    return r;
}

static bool fill_record(nori_tracer *t, nori__recorded *r, nori_traced *const *in, size_t n_in,
                        const nori_attr *attrs, size_t n_attrs, size_t n_out)
{
    if ((n_in && !in) || (n_attrs && !attrs)) {
        return nori__tracer_stop(t, NORI_ERROR_ARGUMENT, "%s: a list of %s was expected, got NULL", r->op,
                                 n_in && !in ? "inputs" : "attributes");
    }
    r->in = nori__arena_array(&t->arena, n_in + 1, sizeof(*r->in));
    r->out = nori__arena_array(&t->arena, n_out + 1, sizeof(*r->out));
    r->attrs = nori__arena_array(&t->arena, n_attrs + 1, sizeof(*r->attrs));
    if (!r->in || !r->out || !r->attrs || !nori__vec_push(&t->ops, r)) {
        return nori__tracer_stop(t, NORI_ERROR_MEMORY, "out of memory");
    }
    r->n_out = n_out;
    r->n_attrs = n_attrs;
    for (size_t i = 0; i < n_in; i++) {
        r->in[i] = in[i];
        r->n_in = in[i] ? i + 1 : r->n_in; /* absent ones at the end need not be written */
        if (in[i] && in[i]->t != t) {
            return nori__tracer_stop(t, NORI_ERROR_ARGUMENT,
                                     "%s: input %zu is a value of another trace", r->op, i);
        }
    }
    for (size_t i = 0; i < n_attrs; i++) {
        if (!copy_attr(t, r, &attrs[i], &r->attrs[i])) {
            return false;
        }
    }
    return true;
}

static bool record(nori_tracer *t, const char *op, nori_traced *const *in, size_t n_in,
                   const nori_attr *attrs, size_t n_attrs, nori_traced **out, size_t n_out)
{
    enum { MOST = 64 };
    nori_tensor *made[MOST] = {NULL};
    if (n_out == 0 || n_out > MOST) {
        return nori__tracer_stop(t, NORI_ERROR_ARGUMENT, "1 to %d outputs were expected", MOST);
    }
    nori__recorded *r = new_record(t, op);
    if (!r || !fill_record(t, r, in, n_in, attrs, n_attrs, n_out)) {
        return false;
    }
    bool depends = false;
    for (size_t i = 0; i < r->n_in; i++) {
        depends = depends || (r->in[i] && r->in[i]->depends);
    }
    for (size_t i = 0; i < r->n_captures; i++) {
        depends = depends || r->captures[i].value->depends;
    }
    nori_status s = nori__trace_compute(t, r, made);
    if (s != NORI_OK) {
        t->status = s;
        nori__where(t->err, "operation %zu (%s)", t->ops.count, op);
        return false;
    }
    for (size_t i = 0; i < n_out; i++) {
        out[i] = made[i] ? nori__traced_new(t, NULL, r->op, made[i]) : NULL;
        made[i] = NULL;
        if (out[i]) {
            out[i]->made = r;
            out[i]->depends = depends;
            r->out[i] = out[i];
        }
    }
    return t->status == NORI_OK;
}

nori_status nori_traced_ops(nori_tracer *t, const char *op, nori_traced *const *inputs,
                            size_t input_count, const nori_attr *attrs, size_t attr_count,
                            nori_traced **outputs, size_t output_count)
{
    for (size_t i = 0; outputs && i < output_count; i++) {
        outputs[i] = NULL;
    }
    if (!nori__tracer_goes(t)) {
        return t ? t->status : NORI_ERROR_ARGUMENT;
    }
    if (!outputs) {
        nori__tracer_stop(t, NORI_ERROR_ARGUMENT, "a list of outputs was expected, got NULL");
        return t->status;
    }
    if (!record(t, op, inputs, input_count, attrs, attr_count, outputs, output_count)) {
        for (size_t i = 0; i < output_count; i++) {
            outputs[i] = NULL;
        }
    }
    return t->status;
}

nori_traced *nori_traced_op(nori_tracer *t, const char *op, nori_traced *const *inputs,
                            size_t input_count, const nori_attr *attrs, size_t attr_count)
{
    nori_traced *out = NULL;
    nori_traced_ops(t, op, inputs, input_count, attrs, attr_count, &out, 1);
    return out;
}

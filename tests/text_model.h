/* text_model.h: small models from a line of text, with inputs and constants filled by a counter, for
 * tests that run one model on two providers. Include after make_model.h.
 *
 *     x=f2,3,5; w=F4,3,3; y=Conv x w pads=[1,1]
 *
 * Statements end with ';'. A small letter is an input of that type and shape, a capital a constant:
 * f float, u uint8, s int8, i int32, l int64. Contents may follow ':', "s=F:0.5" being a scalar and
 * "a=L2:0,1" a list. A node is "outputs=Operator inputs attributes"; '-' is an absent input, outputs
 * are separated by commas, an operator with a dot is com.microsoft's without it. Attributes are 3,
 * 0.5, [1,2] or a word. The outputs of the last node are those of the model; ".u", ".s" or ".f" behind
 * one names its type, which is float otherwise. */
#ifndef NORI_TESTS_TEXT_MODEL_H
#define NORI_TESTS_TEXT_MODEL_H

#include <stdio.h>
#include <stdlib.h>

enum { TEXT_MAX = 8 };

typedef struct text_model {
    make m;
    uint32_t counter;
    nori_tensor *in[TEXT_MAX];
    size_t n_in;
} text_model;

static inline nori_type text_type(char c)
{
    static const char letters[] = "fuslSiFUIL";
    static const nori_type types[] = {NORI_FLOAT, NORI_UINT8, NORI_INT8, NORI_INT64, NORI_INT8,
                                      NORI_INT32, NORI_FLOAT, NORI_UINT8, NORI_INT32, NORI_INT64};
    const char *at = strchr(letters, c);
    assert_true(c && at);
    return types[at - letters];
}

/* From -2 to 2, or over the range of bytes, or small integers. */
static inline double text_next(text_model *t, nori_type type)
{
    t->counter = t->counter * 1664525u + 1013904223u;
    double v = (double)(t->counter >> 8) / (1 << 24);
    return type == NORI_FLOAT   ? 4 * v - 2
           : type == NORI_UINT8 ? (double)(int)(256 * v)
           : type == NORI_INT8  ? (double)(int)(256 * v) - 128
                                : (double)(int)(2000 * v) - 1000;
}

static inline size_t text_list(const char **at, double *out, size_t most)
{
    size_t n = 0;
    while (n < most && strchr("-.0123456789", **at) && **at) {
        char *end;
        out[n++] = strtod(*at, &end);
        assert_true(end != *at);
        *at = *end == ',' ? end + 1 : end;
    }
    return n;
}

static inline void text_constant(text_model *t, const char *name, nori_type type, size_t rank,
                                 const double *dims, const double *given)
{
    nori__pb_tensor *p = MAKE_ADD(&t->m, t->m.graph.initializers);
    int64_t count = 1;
    p->name = make_str(&t->m, name);
    p->data_type = type;
    for (size_t d = 0; d < rank; d++) {
        *MAKE_ADD(&t->m, p->dims) = (int64_t)dims[d];
        count *= (int64_t)dims[d];
    }
    bool floats = type == NORI_FLOAT;
    if (floats) {
        p->floats.items = make_room(&t->m, NULL, 0, (size_t)count * sizeof(float));
        p->floats.count = (size_t)count;
    } else {
        p->ints.items = make_room(&t->m, NULL, 0, (size_t)count * sizeof(int64_t));
        p->ints.count = (size_t)count;
    }
    for (int64_t i = 0; i < count; i++) {
        double v = given ? given[i] : text_next(t, type);
        if (floats) {
            p->floats.items[i] = (float)v;
        } else {
            p->ints.items[i] = (int64_t)v;
        }
    }
}

static inline nori_tensor *text_filled(text_model *t, nori_type type, int rank, const int64_t *dims)
{
    nori_tensor *x = NULL;
    assert_int_equal(nori_tensor_create(NULL, type, rank, dims, &x, NULL), NORI_OK);
    for (int64_t i = 0; i < x->count; i++) {
        nori__tensor_set_f64(x, i, text_next(t, type));
    }
    return x;
}

/* open: sizes above 1 become names, so that they are known only when it runs. */
static inline void text_value(text_model *t, const char *name, const char *what, bool open)
{
    double dims[8], given[64];
    nori_type type = text_type(*what);
    bool constant = *what >= 'A' && *what <= 'Z';
    const char *at = what + 1;
    size_t rank = text_list(&at, dims, 8), n = 0;
    if (*at == ':') {
        at++;
        n = text_list(&at, given, 64);
    }
    if (constant) {
        text_constant(t, name, type, rank, dims, n ? given : NULL);
        return;
    }
    char shape[128] = "";
    int64_t sizes[8];
    for (size_t d = 0; d < rank; d++) {
        size_t used = strlen(shape);
        sizes[d] = (int64_t)dims[d];
        if (open && dims[d] > 1) {
            snprintf(shape + used, sizeof shape - used, "%s%s%zu", d ? " " : "", name, d);
        } else {
            snprintf(shape + used, sizeof shape - used, "%s%d", d ? " " : "", (int)dims[d]);
        }
    }
    make_input(&t->m, &t->m.graph, name, type, shape);
    assert_true(t->n_in < TEXT_MAX);
    t->in[t->n_in++] = text_filled(t, type, (int)rank, sizes);
}

static inline void text_attr(text_model *t, nori__pb_node *n, char *word)
{
    char *value = strchr(word, '=');
    double v[64];
    *value++ = 0;
    bool list = *value == '[', fraction = strchr(value, '.') != NULL;
    const char *at = value + list;
    size_t count = text_list(&at, v, 64);
    if (count == 0) {
        make_attr_text(&t->m, n, word, value);
        return;
    }
    nori__pb_attr *a = make_attr(&t->m, n, word, list       ? NORI__ATTR_INTS
                                                 : fraction ? NORI__ATTR_FLOAT
                                                            : NORI__ATTR_INT);
    a->f = (float)v[0];
    a->i = (int64_t)v[0];
    for (size_t i = 0; i < count && list; i++) {
        *MAKE_ADD(&t->m, a->ints) = (int64_t)v[i];
    }
}

static inline void text_node(text_model *t, char *outputs, char *what, bool last)
{
    char names[256] = "", inputs[256] = "", *save = NULL, *op = strtok_r(what, " ", &save), *word;
    for (char *o = outputs; o; o = strchr(o, ',') ? strchr(o, ',') + 1 : NULL) {
        size_t size = strcspn(o, ".,");
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%.*s", used ? " " : "", (int)size, o);
        if (last) {
            char name[32];
            snprintf(name, sizeof name, "%.*s", (int)size, o);
            make_output(&t->m, &t->m.graph, name, o[size] == '.' ? text_type(o[size + 1]) : NORI_FLOAT,
                        NULL);
        }
    }
    bool ms = op[strlen(op) - 1] == '.';
    if (ms) {
        op[strlen(op) - 1] = 0;
    }
    char *attrs[16];
    size_t n = 0;
    while ((word = strtok_r(NULL, " ", &save)) != NULL) {
        if (strchr(word, '=')) {
            attrs[n++] = word;
        } else {
            size_t used = strlen(inputs);
            snprintf(inputs + used, sizeof inputs - used, "%s%s", used ? " " : "", word);
        }
    }
    nori__pb_node *node = make_node(&t->m, &t->m.graph, ms ? "com.microsoft" : "", op, names, inputs,
                                    names);
    for (size_t i = 0; i < n; i++) {
        text_attr(t, node, attrs[i]);
    }
}

static inline void text_begin(text_model *t, const char *text, int64_t opset, bool open)
{
    memset(t, 0, sizeof *t);
    make_begin(&t->m, opset);
    make_import(&t->m, "com.microsoft", 1);
    t->counter = 12345;
    char copy[1024], *save = NULL;
    assert_true(strlen(text) < sizeof copy);
    memcpy(copy, text, strlen(text) + 1);
    char *s = strtok_r(copy, ";", &save);
    while (s) {
        char *next = strtok_r(NULL, ";", &save);
        s += strspn(s, " ");
        char *value = strchr(s, '=');
        assert_non_null(value);
        *value++ = 0;
        bool node = strchr(value, ' ') != NULL;
        if (node) {
            text_node(t, s, value, next == NULL);
        } else {
            text_value(t, s, value, open);
        }
        s = next;
    }
}

static inline void text_end(text_model *t)
{
    for (size_t i = 0; i < t->n_in; i++) {
        nori_tensor_free(t->in[i]);
    }
    make_end(&t->m);
}

/* A session of it on these providers; NULL with the error. */
static inline nori_session *text_session(text_model *t, const char *providers, int threads,
                                         int level, nori_error *err)
{
    nori__text bytes;
    nori_model *model = NULL;
    nori_session *session = NULL;
    nori_session_options o;
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&t->m.model, &bytes, err), NORI_OK);
    char *kept = nori__arena_copy(&t->m.arena, bytes.data, bytes.size);
    assert_non_null(kept);
    nori_session_options_default(&o);
    o.providers = providers;
    o.threads = threads;
    o.level = level;
    if (nori_model_load_memory(NULL, kept, bytes.size, NULL, NULL, &model, err) == NORI_OK) {
        nori_session_create(model, &o, &session, err);
    }
    nori_model_free(model);
    nori__text_free(&bytes);
    return session;
}

#endif

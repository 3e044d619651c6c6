/* gpu_case.h: one-node models written as a line of text, run on the reference provider and on
 * providers for devices, opencl and cuda. Include after cmocka.h and make_model.h.
 *
 * inputs, separated by blanks: 2x3 is fed, c:2x3 a constant, p:2x3 a constant above 0, s: (nothing
 * behind it) a scalar constant of 0.5, i:1,-2 constant integers, f:1,-2 integers that are fed, - absent.
 * attributes: name=1 an integer, name=0.5 a float, name=[1,2] integers, name=word a text.
 * Numbers are multiples of 1/64 that float16 holds exactly: what differs is what kernels do. */
#ifndef NORI_TESTS_GPU_CASE_H
#define NORI_TESTS_GPU_CASE_H

#include <stdio.h>
#include <stdlib.h>

#include "nori/tools.h"

#define CASE_MOST 8

typedef struct gpu_case {
    make m;
    nori_tensor *fed[CASE_MOST];
    size_t n_fed;
    uint32_t seed;
} gpu_case;

static inline double case_number(gpu_case *c, bool positive)
{
    c->seed = c->seed * 1664525u + 1013904223u;
    int k = (int)(c->seed >> 9 & 255) - 128;
    return (positive ? abs(k) + 1 : k) / 64.0;
}

/* "2x3" as "2 3" and as dims. */
static inline int case_shape(const char *text, size_t size, char *spaced, int64_t *dims)
{
    int rank = 0;
    memcpy(spaced, text, size);
    spaced[size] = 0;
    for (char *p = spaced; *p; rank++) {
        dims[rank] = strtoll(p, &p, 10);
        if (*p == 'x') {
            *p++ = ' ';
        }
    }
    return rank;
}

static inline void case_floats(gpu_case *c, const char *name, const char *shape, size_t size,
                               bool constant, bool positive)
{
    char spaced[64];
    int64_t dims[NORI_MAX_RANK];
    nori_tensor *t = NULL;
    int rank = case_shape(shape, size, spaced, dims);
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, rank, dims, &t, NULL), NORI_OK);
    float *v = nori_tensor_data(t);
    for (int64_t i = 0; i < nori_tensor_elements(t); i++) {
        v[i] = (float)case_number(c, positive);
    }
    if (constant) {
        make_weights(&c->m, &c->m.graph, name, spaced, v);
        nori_tensor_free(t);
        return;
    }
    make_input(&c->m, &c->m.graph, name, NORI_FLOAT, spaced);
    c->fed[c->n_fed++] = t;
}

static inline void case_ints(gpu_case *c, const char *name, const char *list, bool constant)
{
    int64_t v[32], n = 0;
    char *end = (char *)(uintptr_t)list, shape[16];
    while (*end && *end != ' ') {
        v[n++] = strtoll(end + (*end == ','), &end, 10);
    }
    if (constant) {
        make_ints(&c->m, &c->m.graph, name, (size_t)n, v);
        return;
    }
    nori_tensor *t = NULL;
    assert_int_equal(nori_tensor_create(NULL, NORI_INT64, 1, &n, &t, NULL), NORI_OK);
    memcpy(nori_tensor_data(t), v, (size_t)n * sizeof(*v));
    snprintf(shape, sizeof(shape), "%d", (int)n);
    make_input(&c->m, &c->m.graph, name, NORI_INT64, shape);
    c->fed[c->n_fed++] = t;
}

static inline void case_attribute(gpu_case *c, nori__pb_node *n, const char *text, size_t size)
{
    char name[64], value[64], *end;
    size_t at = strcspn(text, "=");
    int64_t list[16];
    memcpy(name, text, at);
    name[at] = 0;
    memcpy(value, text + at + 1, size - at - 1);
    value[size - at - 1] = 0;
    double number = strtod(value, &end);
    if (value[0] == '[') {
        size_t count = 0;
        for (end = value; *end && *end != ']' && end[1] != ']';) {
            list[count++] = strtoll(end + 1, &end, 10);
        }
        make_attr_ints(&c->m, n, name, count, list);
    } else if (*end) {
        make_attr_text(&c->m, n, name, value);
    } else if (strchr(value, '.')) {
        make_attr(&c->m, n, name, NORI__ATTR_FLOAT)->f = (float)number;
    } else {
        make_attr_int(&c->m, n, name, (int64_t)number);
    }
}

/* Nodes "Op" of one name, or "Op then Op": the second goes on with the first's output. */
static inline void case_begin(gpu_case *c, const char *op, const char *inputs,
                              const char *attributes, int outputs, int64_t opset)
{
    char names[256] = "", made[64] = "", name[16], first[32];
    memset(c, 0, sizeof(*c));
    c->seed = 12345;
    make_begin(&c->m, opset);
    int i = 0;
    for (const char *at = inputs; *at; i++) {
        size_t size = strcspn(at, " ");
        bool absent = size == 1 && *at == '-';
        snprintf(name, sizeof(name), "x%d", i);
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? " " : "",
                 absent ? "-" : name);
        if (at[1] == ':' && (*at == 'i' || *at == 'f')) {
            case_ints(c, name, at + 2, *at == 'i');
        } else if (at[1] == ':' && *at == 's') {
            make_weights(&c->m, &c->m.graph, name, "", (const float[]){0.5f});
        } else if (at[1] == ':') {
            case_floats(c, name, at + 2, size - 2, true, *at == 'p');
        } else if (!absent) {
            case_floats(c, name, at, size, false, false);
        }
        at += size;
        at += *at == ' ';
    }
    const char *then = strstr(op, " then ");
    for (int k = 0; k < outputs; k++) {
        snprintf(name, sizeof(name), "y%d", k);
        snprintf(made + strlen(made), sizeof(made) - strlen(made), "%s%s", k ? " " : "",
                 then ? "inner" : name);
        make_output(&c->m, &c->m.graph, name, NORI_FLOAT, NULL);
    }
    snprintf(first, sizeof(first), "%.*s", then ? (int)(then - op) : 31, op);
    nori__pb_node *n = make_node(&c->m, &c->m.graph, "", first, "node", names, made);
    for (const char *at = attributes; *at; at += strcspn(at, " "), at += *at == ' ') {
        case_attribute(c, n, at, strcspn(at, " "));
    }
    if (then) {
        make_node(&c->m, &c->m.graph, "", then + 6, "then", "inner", "y0");
    }
}

static inline void case_end(gpu_case *c)
{
    for (size_t i = 0; i < c->n_fed; i++) {
        nori_tensor_free(c->fed[i]);
    }
    make_end(&c->m);
}

/* A session of what was made; NULL with the error. options may be NULL. */
static inline nori_session *case_session(gpu_case *c, const char *providers,
                                         const nori_session_options *options, nori_error *err)
{
    nori__text bytes;
    nori_model *model = NULL;
    nori_session *session = NULL;
    nori_session_options o;
    nori_session_options_default(&o);
    if (options) {
        o = *options;
    }
    o.providers = providers;
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&c->m.model, &bytes, err), NORI_OK);
    char *kept = nori__arena_copy(&c->m.arena, bytes.data, bytes.size);
    assert_non_null(kept);
    if (nori_model_load_memory(NULL, kept, bytes.size, NULL, NULL, &model, err) == NORI_OK) {
        nori_session_create(model, &o, &session, err);
    }
    nori_model_free(model);
    nori__text_free(&bytes);
    return session;
}

/* How many nodes of the session run on a provider. */
static inline size_t case_nodes(const nori_session *s, const char *provider)
{
    size_t count = 0;
    nori_node_info info = {.size = sizeof(info)};
    for (size_t i = 0; nori_session_node(s, i, &info); i++) {
        count += strcmp(info.provider, provider) == 0;
    }
    return count;
}

/* Whether there is a device for what runs on providers; if not, says why. */
static inline bool case_device(const char *providers)
{
    gpu_case c;
    nori_error err = {0};
    case_begin(&c, "Relu", "2", "", 1, 17);
    nori_session *s = case_session(&c, providers, NULL, &err);
    if (!s) {
        print_message("skipped: no device: %s\n", err.message);
    }
    nori_session_free(s);
    case_end(&c);
    return s != NULL;
}

#endif

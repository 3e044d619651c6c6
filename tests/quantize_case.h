/* quantize_case.h: made-up samples and models for tests of the quantizer. Include after cmocka.h. */
#ifndef NORI_TESTS_QUANTIZE_CASE_H
#define NORI_TESTS_QUANTIZE_CASE_H

#include "make_model.h"
#include "nori/tools.h"

typedef struct samples {
    int rank;
    int64_t dims[4];
    size_t count;
    float low, high; /* drawn evenly between */
    uint32_t seed;
} samples;

static inline int draw(void *user, size_t index, nori_tensor **inputs, nori_error *err)
{
    samples *s = user;
    uint32_t state = s->seed + (uint32_t)index * 7919u;
    if (index >= s->count) {
        return 0;
    }
    if (nori_tensor_create(NULL, NORI_FLOAT, s->rank, s->dims, &inputs[0], err) != NORI_OK) {
        return -1;
    }
    float *v = nori_tensor_data(inputs[0]);
    for (int64_t i = 0; i < nori_tensor_elements(inputs[0]); i++) {
        state = state * 1664525u + 1013904223u;
        v[i] = s->low + (s->high - s->low) * ((float)(state >> 8) / 16777216.0f);
    }
    return 1;
}

static inline nori_model *load(make *m)
{
    nori__text bytes;
    nori_model *model = NULL;
    nori_error err = {0};
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m->model, &bytes, &err), NORI_OK);
    char *kept = nori__arena_copy(&m->arena, bytes.data, bytes.size);
    if (nori_model_load_memory(NULL, kept, bytes.size, NULL, NULL, &model, &err) != NORI_OK) {
        fail_msg("%s: %s", err.where, err.message);
    }
    nori__text_free(&bytes);
    return model;
}

/* Models of tests have little work: without this all of it would stay float. */
static inline void small_options(nori_quantize_options *o)
{
    nori_quantize_options_default(o);
    o->size_first = 1;
}

static inline nori_model *quantize(const nori_model *model, samples *from, nori_quantize_options *o,
                            nori_quantize_report **report)
{
    nori_model *made = NULL;
    nori_error err = {0};
    o->sample = draw;
    o->sample_user = from;
    if (nori_quantize(model, o, &made, report, &err) != NORI_OK) {
        fail_msg("%s: %s", err.where, err.message);
    }
    return made;
}

static inline double output_sqnr(const nori_quantize_report *r)
{
    nori_quantize_summary s = {.size = sizeof(s)};
    nori_quantize_report_summary(r, &s);
    return s.output_sqnr;
}

static inline bool node_of(const nori_quantize_report *r, const char *path, nori_quantize_node *n)
{
    n->size = sizeof(*n);
    for (size_t i = 0; nori_quantize_report_node(r, i, n); i++) {
        if (strncmp(n->path, path, strlen(path)) == 0) {
            return true;
        }
    }
    return false;
}

static inline size_t count_ops(const nori_model *m, const char *op)
{
    size_t count = 0;
    for (const nori_node *n = nori_graph_first(nori_model_graph(m)); n; n = nori_node_next(n)) {
        count += strcmp(nori_node_op(n), op) == 0;
    }
    return count;
}

static inline const nori_tensor *constant_of(const nori_model *m, const char *name)
{
    for (const nori_value *v = nori_graph_value(nori_model_graph(m)); v; v = nori_value_next(v)) {
        if (strcmp(nori_value_name(v), name) == 0) {
            return nori_value_initializer(v);
        }
    }
    return NULL;
}

#endif

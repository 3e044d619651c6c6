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

#endif

/* example.h: what the examples share: weights, the export, and the same inputs through other engines. */
#ifndef NORI_EXAMPLES_TRACE_EXAMPLE_H
#define NORI_EXAMPLES_TRACE_EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nori/nori.h>
#include <nori/tools.h>
#include <nori/trace.h>
#include <nori/weights.h>

/* Numbers between -scale and scale, the same in every run; where the file given with --weights has a
 * tensor of that name, that one. */
typedef struct example_weights {
    nori_weights *file; /* NULL: none */
    unsigned long state;
} example_weights;

static inline nori_tensor *example_numbers(unsigned long *state, int rank, const int64_t *dims, float scale)
{
    nori_tensor *x = NULL;
    if (nori_tensor_create(NULL, NORI_FLOAT, rank, dims, &x, NULL) != NORI_OK) {
        return NULL;
    }
    float *p = nori_tensor_data(x);
    for (int64_t i = 0; i < nori_tensor_elements(x); i++) {
        *state = (*state * 1664525UL + 1013904223UL) & 0xffffffffUL;
        p[i] = scale * ((float)(*state >> 8) / 8388608.0f - 1.0f);
    }
    return x;
}

static inline nori_traced *example_weight(nori_tracer *t, example_weights *w, const char *name, int rank,
                                          const int64_t *dims, float scale)
{
    if (w->file) {
        return nori_traced_weight(t, w->file, name);
    }
    /* By name, so that a second run of the function gets the same. */
    unsigned long state = 5381;
    for (const char *c = name; *c; c++) {
        state = (state * 33 + (unsigned char)*c) & 0xffffffffUL;
    }
    nori_tensor *x = example_numbers(&state, rank, dims, scale);
    nori_traced *v = x ? nori_traced_constant(t, name, x) : NULL;
    if (!x) {
        nori_tracer_fail(t, NORI_ERROR_MEMORY, "out of memory");
    }
    nori_tensor_free(x);
    return v;
}

typedef struct example {
    nori_trace_function function;
    const char *input, *output;
    int rank;
    int64_t dims[4];
    const nori_dynamic_axis *axes;
    size_t axis_count;
} example;

static inline void example_note(void *user, const char *text)
{
    (void)user;
    printf("note: %s\n", text);
}

static inline int example_error(const char *what, const nori_error *err)
{
    fprintf(stderr, "%s: %s%s%s\n%s\n", what, err->where, err->where[0] ? ": " : "", err->message, err->hint);
    return 1;
}

/* The model on another execution provider, against what the reference provider gives. */
static inline int example_compare(const nori_model *model, const char *provider, const nori_tensor *x)
{
    nori_session_options o[2];
    nori_session *session[2] = {NULL, NULL};
    nori_tensor *out[2] = {NULL, NULL};
    nori_error err = {0};
    nori_status s = NORI_OK;
    for (int i = 0; i < 2 && s == NORI_OK; i++) {
        nori_session_options_default(&o[i]);
        o[i].providers = i == 0 ? "reference" : provider;
        s = nori_session_create(model, &o[i], &session[i], &err);
        s = s == NORI_OK ? nori_session_run(session[i], &x, 1, &out[i], 1, &err) : s;
    }
    int failed = s != NORI_OK;
    if (failed) {
        example_error(provider, &err);
    } else {
        nori_difference d = {.size = sizeof(d)};
        nori_tensor_compare(out[1], out[0], 1e-5, 1e-3, &d);
        printf("%s: %s, the largest difference from reference is %.1e\n", provider,
               d.passes ? "agrees" : "DIFFERS", d.max_abs);
        failed = !d.passes;
    }
    for (int i = 0; i < 2; i++) {
        nori_tensor_free(out[i]);
        nori_session_free(session[i]);
    }
    return failed;
}

/* PROGRAM MODEL.onnx [--weights FILE]: traces, writes, and runs what was written. */
static inline int example_main(int argc, char **argv, const example *e)
{
    nori_error err = {0};
    nori_trace_options o;
    nori_trace_report *report = NULL;
    nori_model *model = NULL;
    example_weights weights = {NULL, 0};
    unsigned long state = 1;
    if ((argc != 2 && argc != 4) || (argc == 4 && strcmp(argv[2], "--weights") != 0)) {
        fprintf(stderr, "usage: %s MODEL.onnx [--weights FILE]\n", argv[0]);
        return 2;
    }
    if (argc == 4 && nori_weights_open(NULL, argv[3], &weights.file, &err) != NORI_OK) {
        return example_error(argv[3], &err);
    }
    nori_tensor *x = example_numbers(&state, e->rank, e->dims, 1);
    nori_trace_options_default(&o);
    o.input_names = &e->input;
    o.output_names = &e->output;
    o.output_count = 1;
    o.dynamic_axes = e->axes;
    o.dynamic_axis_count = e->axis_count;
    o.path = argv[1];
    o.note = example_note;
    int failed = !x || nori_trace(NULL, e->function, &weights, (const nori_tensor *const *)&x, 1, &o, &model,
                                  &report, &err) != NORI_OK;
    if (failed) {
        example_error(argv[1], &err);
    } else {
        nori_trace_summary sum = {.size = sizeof(sum)};
        nori_trace_check c = {.size = sizeof(c)};
        nori_trace_report_summary(report, &sum);
        printf("%s: operator set %d, %zu nodes, %zu initializers, %zu shared\n", argv[1], (int)sum.opset,
               sum.nodes, sum.initializers, sum.shared);
        for (size_t i = 0; nori_trace_report_check(report, i, &c); i++) {
            printf("%s: %s agrees, the largest difference is %.1e\n", c.what, c.output, c.agreement.max_abs);
        }
        failed |= example_compare(model, "cpu", x);
        if (getenv("NORI_ORT_LIBRARY")) {
            failed |= example_compare(model, "ort:cpu", x);
        } else {
            printf("ort:cpu: skipped, NORI_ORT_LIBRARY does not say where ONNX Runtime is\n");
        }
    }
    nori_trace_report_free(report);
    nori_model_free(model);
    nori_tensor_free(x);
    nori_weights_free(weights.file);
    return failed;
}

#endif

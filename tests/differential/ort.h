/* ort.h: the part of ONNX Runtime's C interface that the differential test needs: one session on
 * the CPU, one run, values to and from nori_tensor. The library is opened at run time. */
#ifndef NORI_TESTS_DIFFERENTIAL_ORT_H
#define NORI_TESTS_DIFFERENTIAL_ORT_H

#include "nori/nori.h"

enum { ORT_MAX_VALUES = 64 };

typedef enum ort_outcome {
    ORT_RAN = 0,
    ORT_REFUSED, /* no session: an operator, type or model it does not take */
    ORT_FAILED   /* a session, but the run ended in an error */
} ort_outcome;

typedef struct ort ort;

/* NULL with text in reason when the library cannot be had. Kept until the process ends. */
ort *ort_open(const char *path, char *reason, size_t reason_size);
const char *ort_version(const ort *o);

/* Loads path, runs it on inputs, returns outputs (freed by the caller). text gets the reason when
 * it does not run. names_* are in the model's order. */
ort_outcome ort_run(ort *o, const char *path, const nori_tensor *const *inputs,
                    const char *const *input_names, size_t n_in, nori_tensor **outputs,
                    const char *const *output_names, size_t n_out, char *text, size_t text_size);

#endif

/* convert.h: a model under another operator set, and who could load it. Built on nori.h; the same
 * conventions. */
#ifndef NORI_CONVERT_H
#define NORI_CONVERT_H

#include "nori/nori.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- which operator set ----------------------------------------------------------------- */

/* What was found; immutable. */
typedef struct nori_opset_report nori_opset_report;

/* The lowest operator set of ai.onnx the model could be written in, by conversion as nori_convert does
 * it, which nodes need it, and which runtimes would refuse the file as it is. Errors: UNSUPPORTED (the
 * model imports no ai.onnx), MODEL (types that cannot be), MEMORY. */
NORI_API nori_status nori_opset_find(const nori_model *model, nori_opset_report **report,
                                     nori_error *error);
NORI_API void nori_opset_report_free(nori_opset_report *report);

typedef struct nori_opset_summary {
    size_t size;        /* sizeof, set by the caller */
    int64_t opset, ir;  /* of the model */
    int64_t lowest;     /* the lowest operator set; 0: it cannot be written in any */
    int64_t lowest_ir;  /* the lowest IR version the file can have then */
} nori_opset_summary;
NORI_API void nori_opset_report_summary(const nori_opset_report *report,
                                        nori_opset_summary *summary);

/* A node that keeps the model from an operator set; strings are never NULL. */
typedef struct nori_blocker {
    size_t size; /* sizeof, set by the caller */
    const char *path, *op;
    const char *reason;
} nori_blocker;
/* Nodes that need the lowest operator set: what keeps them from the one below. 0 past the last. */
NORI_API int nori_opset_report_blocker(const nori_opset_report *report, size_t index,
                                       nori_blocker *blocker);

/* What a runtime makes of the file as it is; strings are never NULL. */
typedef struct nori_runtime_verdict {
    size_t size; /* sizeof, set by the caller */
    const char *name;
    int64_t oldest_opset, opset, ir; /* oldest and newest operator set, newest IR version it takes */
    int refuses;
    const char *reason; /* IR, opset, operator: what it refuses; "" */
    int lowest_loads;   /* 1: it would take the model at its lowest */
} nori_runtime_verdict;
NORI_API int nori_opset_report_runtime(const nori_opset_report *report, size_t index,
                                       nori_runtime_verdict *verdict);

/* ---- converting ------------------------------------------------------------------------- */

typedef struct nori_convert_options {
    size_t size;   /* sizeof, set by _default */
    int64_t opset; /* of ai.onnx, 1 to the newest known; 0: as it is */
    int lowest;    /* 1: the lowest that nori_opset_find gives; opset must be 0 */
    int64_t ir;    /* IR version of the file; 0: what the operator set needs */
} nori_convert_options;
NORI_API void nori_convert_options_default(nori_convert_options *options);

/* What became of the model, or what stands in the way; immutable. */
typedef struct nori_convert_report nori_convert_report;

/* The model under another operator set. Nodes whose form changed are rewritten where the other form
 * says the same; what need not change is kept: names, order, texts, unknown fields. The model given
 * stays as it is. Where nodes cannot be written so, all of them are blockers of the report, which is
 * then given with UNSUPPORTED too; report may be NULL. Other errors: ARGUMENT (options, an IR version
 * that lacks what the model holds), MODEL, MEMORY. */
NORI_API nori_status nori_convert(const nori_model *model, const nori_convert_options *options,
                                  nori_model **converted, nori_convert_report **report,
                                  nori_error *error);
NORI_API void nori_convert_report_free(nori_convert_report *report);
NORI_API int nori_convert_report_blocker(const nori_convert_report *report, size_t index,
                                         nori_blocker *blocker);
typedef struct nori_convert_summary {
    size_t size; /* sizeof, set by the caller */
    int64_t opset_before, opset_after, ir_before, ir_after;
    size_t nodes;     /* of all graphs, before */
    size_t rewritten; /* of them, whose form had to change */
} nori_convert_summary;
NORI_API void nori_convert_report_summary(const nori_convert_report *report,
                                          nori_convert_summary *summary);

#ifdef __cplusplus
}
#endif
#endif

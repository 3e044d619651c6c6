/* tools.h: what can be done with a model beside running it. Built on nori.h; the same conventions.
 */
#ifndef NORI_TOOLS_H
#define NORI_TOOLS_H

#include "nori/nori.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- check ------------------------------------------------------------------------------ */

typedef enum nori_severity {
    NORI_SEVERITY_INFO = 1, /* worth knowing */
    NORI_SEVERITY_WARNING,  /* valid, but likely not what was meant */
    NORI_SEVERITY_ERROR     /* not valid ONNX, or cannot run */
} nori_severity;

/* One thing the checker has to say. Strings are never NULL; hint and path may be "". */
typedef struct nori_finding {
    int severity;        /* nori_severity */
    const char *rule;    /* stable word: load operator domain opset inputs outputs attribute type
                            shape graph unused batch axis-name deprecated target */
    const char *path;    /* node or value; of the first, where a finding stands for several */
    const char *message; /* what is wrong, what was expected, what was found */
    const char *hint;    /* what to do */
} nori_finding;

/* Everything found, errors first; immutable, may be read from any thread. */
typedef struct nori_findings nori_findings;

typedef struct nori_check_options {
    size_t size;         /* sizeof, set by _default */
    const char *targets; /* comma-separated providers that must be able to run all nodes, or NULL */
    int strict;          /* 1: warnings become errors */
} nori_check_options;

NORI_API void nori_check_options_default(nori_check_options *options);
/* Everything that is wrong or remarkable about a model, at its own opset. A finding is not an
 * error of the call: NORI_OK with zero errors among the findings means the model is valid. Errors:
 * ARGUMENT (a target that is not known), MEMORY. options may be NULL. */
NORI_API nori_status nori_check(const nori_model *model, const nori_check_options *options,
                                nori_findings **findings, nori_error *error);
/* Loads and checks. What keeps the file from loading is a finding (rule "load"); errors only when
 * the file itself cannot be read (IO), ARGUMENT, MEMORY. load_options may be NULL. */
NORI_API nori_status nori_check_file(nori_env *env, const char *path,
                                     const nori_load_options *load_options,
                                     const nori_check_options *options, nori_findings **findings,
                                     nori_error *error);
NORI_API size_t nori_findings_count(const nori_findings *findings);
/* How many are of at least this severity. */
NORI_API size_t nori_findings_at_least(const nori_findings *findings, nori_severity severity);
NORI_API const nori_finding *nori_findings_at(const nori_findings *findings, size_t index);
NORI_API void nori_findings_free(nori_findings *findings);

/* ---- tensor files ----------------------------------------------------------------------- */

/* Reads a tensor from a .npy file or a serialized TensorProto (.pb), each also gzipped when nori was
 * built with zlib; told apart by content. Errors: IO, FORMAT, UNSUPPORTED (what, found, expected). */
NORI_API nori_status nori_tensor_read(nori_env *env, const char *path, nori_tensor **tensor,
                                      nori_error *error);
/* Reads a value of any kind: tensors as nori_tensor_read does; a sequence, optional or map from a
 * serialized SequenceProto, OptionalProto or MapProto, which do not say themselves what they are
 * (kind UNKNOWN: a tensor). A tensor in an .npy file where an optional is asked for becomes one. */
NORI_API nori_status nori_value_read(nori_env *env, const char *path, nori_kind kind,
                                     nori_tensor **value, nori_error *error);
/* Writes .npy or .pb, by the path's ending; the file appears whole or not at all. */
NORI_API nori_status nori_tensor_write(const nori_tensor *tensor, const char *path,
                                       nori_error *error);

/* ---- comparing -------------------------------------------------------------------------- */

/* How far got is from want, element by element: passes when kind, type and shape are equal and
 * |got - want| <= atol + rtol |want| everywhere (NaN equals NaN, infinities of one sign are equal);
 * strings and integers with zero tolerances must be equal. */
typedef struct nori_difference {
    size_t size;           /* sizeof, set by the caller */
    int passes;            /* 1: within tolerance everywhere */
    uint64_t beyond;       /* elements beyond the tolerance */
    uint64_t elements;
    double max_abs;        /* largest |got - want| */
    double max_rel;        /* largest |got - want| / max(|want|, 1e-6) */
    double rms;            /* sqrt(sum (got - want)^2 / sum want^2) */
    uint64_t worst;        /* flat index of the largest excess over the tolerance */
    double worst_got, worst_want;
    char reason[256];      /* why it cannot pass (type, shape), or empty */
} nori_difference;
NORI_API void nori_tensor_compare(const nori_tensor *got, const nori_tensor *want, double atol,
                                  double rtol, nori_difference *difference);

/* ---- measuring -------------------------------------------------------------------------- */

/* Times of one node of a session made with profile = 1, over all runs so far. */
typedef struct nori_profile_row {
    size_t size; /* sizeof, set by the caller */
    const char *node, *op, *provider;
    uint64_t calls, total_ns;
    uint64_t last_start_ns, last_end_ns; /* of the newest call, on nori_clock_ns()'s clock */
} nori_profile_row;
/* Row by index, subgraph nodes after their node; 0 past the last. */
NORI_API int nori_session_profile(const nori_session *session, size_t index,
                                  nori_profile_row *row);

/* What one node takes, by its shapes. A multiply-accumulate (a * b + c) is one MAC; operators that
 * do no products have none. Bytes are those of the node's inputs (weights too) and outputs. */
typedef struct nori_cost {
    size_t size;
    const char *node, *output, *op, *provider; /* output: name of the first one, or "" */
    int known;  /* 0: the sizes come out of the run itself, or nothing says how to count */
    int inner;  /* 1: in a subgraph, counted for one pass */
    uint64_t macs, read_bytes, written_bytes;
} nori_cost;
/* What a run would take, from the session's plan: nothing is run. */
typedef struct nori_cost_total {
    size_t size;
    uint64_t macs;             /* of the main graph */
    uint64_t inner_macs;       /* of subgraphs, each counted for one pass */
    uint64_t activation_bytes; /* the planned blocks, workspace of kernels included */
    uint64_t input_bytes, output_bytes;
    size_t nodes, unknown;     /* nodes of the plan; of these not known */
    size_t late;               /* nodes whose results get memory only while running */
} nori_cost_total;
typedef struct nori_costs nori_costs; /* immutable; any thread may read it */
/* For these inputs, of which only type and shape are looked at; where one is NULL or not given, for
 * the declared shape, free dimensions being 1. Errors: as nori_session_run finds them in shapes
 * alone. The result must not outlive the session. */
NORI_API nori_status nori_session_costs(const nori_session *session,
                                        const nori_tensor *const *inputs, size_t input_count,
                                        nori_costs **costs, nori_error *error);
NORI_API void nori_costs_free(nori_costs *costs);
NORI_API void nori_costs_total(const nori_costs *costs, nori_cost_total *total);
/* Row by index, in the order of nori_session_profile's rows; 0 past the last. */
NORI_API int nori_costs_at(const nori_costs *costs, size_t index, nori_cost *cost);
/* Type and shape of a value of the main graph in that run; it has no data. NULL: no such value in
 * the plan, or not known. Lives as long as costs. */
NORI_API const nori_tensor *nori_costs_value(const nori_costs *costs, const char *name);

NORI_API uint64_t nori_clock_ns(void);      /* monotonic */
NORI_API uint64_t nori_cpu_time_ns(void);   /* CPU time of the process */
NORI_API uint64_t nori_peak_memory(void);   /* largest resident bytes so far */

/* ---- quantizing: the arithmetic --------------------------------------------------------- */

/* How real numbers r become integers q of a type, in double:
 *     S = (r_max - r_min) / (q_max - q_min)      Z = round(q_min - r_min / S), clamped
 *     q = clamp(round_half_even(r / S) + Z)      r' = S (q - Z),  |r - r'| <= S / 2 inside the range
 * The range is widened to hold 0, so that 0 has no error. */
typedef struct nori_quant {
    size_t size;          /* sizeof, set by the caller */
    nori_type type;       /* NORI_INT2 ... NORI_INT32, signed or not */
    double scale;         /* S > 0 */
    int64_t zero_point;   /* Z, in [q_min, q_max] */
    int64_t q_min, q_max; /* of the type; a symmetric signed one leaves out its lowest value */
} nori_quant;

/* Scale and zero point for a range of reals. symmetric: Z is 0, in an unsigned type the middle of
 * it, and the range is widened to [-r, r]. A range of zero width gets scale 1. Errors: ARGUMENT (no
 * integer type of at most 32 bits; r_min > r_max; not finite). */
NORI_API nori_status nori_quant_range(nori_type type, double r_min, double r_max, int symmetric,
                                      nori_quant *quant, nori_error *error);
/* q of one number. *saturated (may be NULL) becomes 1 when it had to be clamped, else 0. NaN
 * becomes Z, saturated. */
NORI_API int64_t nori_quantize_number(const nori_quant *quant, double real, int *saturated);
NORI_API double nori_dequantize_number(const nori_quant *quant, int64_t q);

/* ---- what there is ---------------------------------------------------------------------- */

/* One operator at one version as built; 0 past the last. types: of its first constrained input,
 * comma-separated, as many as fit. kernel: the providers that run it, or "". */
typedef struct nori_capability {
    size_t size; /* sizeof, set by the caller */
    const char *domain, *op, *family;
    int since;
    char types[512];
    const char *kernel;
} nori_capability;
NORI_API int nori_capability_at(size_t index, nori_capability *capability);

/* CPU name, features, level in use and how many threads why; static or caller-held text. */
NORI_API const char *nori_cpu_name(void);
NORI_API const char *nori_cpu_features(void);
NORI_API const char *nori_cpu_level(void);
NORI_API int nori_usable_threads(char *reason, size_t size);

#ifdef __cplusplus
}
#endif
#endif

/* tools.h: what can be done with a model beside running it. Built on nori.h; the same conventions.
 */
#ifndef NORI_TOOLS_H
#define NORI_TOOLS_H

#include "nori/nori.h"
#include "nori/provider.h"

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
    const char *targets; /* comma-separated providers that must be able to run all nodes, with their
                            options as sessions take them; NULL: none */
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
/* Rows [first, first + count) along axis 0 of an .npy file, without reading the others; *rows: how
 * many there are. count may be 0. Errors: as nori_tensor_read; UNSUPPORTED too where the file is no
 * row-major array of numbers in .npy form (read it whole); ARGUMENT (rows it does not have). */
NORI_API nori_status nori_tensor_read_rows(nori_env *env, const char *path, int64_t first,
                                           int64_t count, nori_tensor **tensor, int64_t *rows,
                                           nori_error *error);
/* Writes .npy or .pb, by the path's ending; the file appears whole or not at all. Sequences,
 * optionals and maps need .pb. */
NORI_API nori_status nori_tensor_write(const nori_tensor *tensor, const char *path,
                                       nori_error *error);
/* Writes any bytes the same way: whole or not at all. */
NORI_API nori_status nori_file_write(const char *path, const void *data, size_t size,
                                     nori_error *error);

/* The arrays of a .npz archive (numpy.savez and savez_compressed, which needs zlib), in the order
 * of the file. Entries that are no .npy are passed over. _open reads their headers alone, _read all
 * of them. Errors: IO, FORMAT (damaged, wrong checksum), UNSUPPORTED (encrypted, other
 * compressions, zip64). */
typedef struct nori_archive nori_archive; /* immutable */
NORI_API nori_status nori_archive_open(nori_env *env, const char *path, nori_archive **archive,
                                       nori_error *error);
NORI_API nori_status nori_archive_read(nori_env *env, const char *path, nori_archive **archive,
                                       nori_error *error);
NORI_API void nori_archive_free(nori_archive *archive);
NORI_API size_t nori_archive_count(const nori_archive *archive);
NORI_API const char *nori_archive_name(const nori_archive *archive, size_t index); /* or NULL */
/* Name, type and shape; NULL past the last. */
NORI_API const nori_value_info *nori_archive_info(const nori_archive *archive, size_t index);
/* One array, which the caller frees. A few kilobytes may unfold to a thousand times as many: look at its
 * type and shape first. */
NORI_API nori_status nori_archive_load(const nori_archive *archive, size_t index, nori_tensor **tensor,
                                       nori_error *error);
/* Borrowed: retain what outlives the archive. NULL past the last, and after _open. */
NORI_API nori_tensor *nori_archive_tensor(const nori_archive *archive, size_t index);
/* Writes an uncompressed archive, whole or not at all. */
NORI_API nori_status nori_archive_write(const char *path, const char *const *names,
                                        const nori_tensor *const *tensors, size_t count,
                                        nori_error *error);

/* One element as a number, whatever the type: complex ones by their real part, strings as NaN.
 * index must be one of the tensor's elements. */
NORI_API double nori_tensor_number(const nori_tensor *tensor, int64_t index);
/* The same for integers and bool, which a double may not hold; other types are cut to one. */
NORI_API int64_t nori_tensor_integer(const nori_tensor *tensor, int64_t index);

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

/* ---- validating ------------------------------------------------------------------------- */

typedef struct nori_agreement_options {
    size_t size;        /* sizeof, set by _default */
    double atol, rtol;  /* an element agrees when |got - want| <= atol + rtol |want|. Below 0, as by
                           default: by the wanted type. Integers and bool: 0; floats: rtol 1e-3, or 4
                           units in the last place of a shorter type (float16 0.0039, bfloat16 0.031),
                           and atol a tenth of it */
    double max_beyond;  /* share of elements that may not; default 0 */
    double min_sqnr_db; /* also asked for when it is above 0; default 0 */
    int top_k;          /* of class scores (rank 1 or 2); default 5 */
} nori_agreement_options;
NORI_API void nori_agreement_options_default(nori_agreement_options *options);

/* How errors are spread: [0] those that are 0, [i] those below 10^(i - 12) and not counted before, the
 * last one the rest. */
#define NORI_DECADES 20

/* How well results agree, over all pairs given so far. Start zeroed but for size. */
typedef struct nori_agreement {
    size_t size;           /* sizeof, set by the caller */
    int passes;
    uint64_t pairs, elements, beyond;
    uint64_t nan_got, nan_want, inf_got, inf_want; /* counted, left out of what follows */
    double max_abs;        /* largest |got - want| */
    double max_rel;        /* largest |got - want| / max(|want|, 1e-6) */
    double rms;            /* sqrt(mean (got - want)^2) */
    double cosine;         /* of the angle between the two as vectors; 1 when both are zero */
    double sqnr_db;        /* 10 log10(sum want^2 / sum (got - want)^2); infinite when equal */
    uint64_t rows;         /* vectors of class scores */
    double top1, topk;     /* share of rows with the same first; mean share of the first k in common */
    char reason[256];      /* why a pair could not be compared (type, shape), or empty */
    double sum_error, sum_want, sum_got, sum_product, sum_top1, sum_topk; /* what has been added up */
    uint64_t decades[NORI_DECADES]; /* of |got - want|, where both are finite */
    double atol, rtol;              /* that the last pair was held to */
} nori_agreement;
/* Adds a pair. options may be NULL. */
NORI_API void nori_agreement_add(nori_agreement *agreement, const nori_tensor *got,
                                 const nori_tensor *want, const nori_agreement_options *options);

/* One optimization level against level 0, on the output that agrees least. */
typedef struct nori_level_row {
    size_t size; /* sizeof, set by the caller */
    int level;   /* 1 or 2 */
    const char *output;       /* name; lives as long as the model */
    nori_agreement agreement; /* of that output */
    char culprit[64];         /* when it does not pass: the rewrite that moved the result beyond
                                 tolerance ("fold", "rewriting by cpu"); else "" */
} nori_level_row;
/* Runs the model at levels 0, 1 and 2 with these options (their level is not looked at) and looks
 * for the culprit where results differ. Errors of any run. */
NORI_API nori_status nori_validate_levels(const nori_model *model,
                                          const nori_session_options *options,
                                          const nori_tensor *const *inputs, size_t input_count,
                                          const nori_agreement_options *agreement,
                                          nori_level_row rows[2], nori_error *error);

/* Layer by layer: values of the got side paired with values of the same name on the want side. */
typedef struct nori_layers nori_layers;
typedef struct nori_layer {
    size_t size; /* sizeof, set by the caller */
    const char *value, *op, *path; /* name; operator and path of the node that makes it */
    int has_total, has_own;
    nori_agreement total; /* as it came out: own and inherited errors */
    nori_agreement own;   /* the node alone, run on the want side's values: its own error */
} nori_layer;
/* Runs both once, at the levels the options say (0 has all of a model's values), and each node of
 * got's main graph alone: on inputs of the same name that want has, or with the nodes that make its
 * inputs from such, as QuantizeLinear and DequantizeLinear do; op and path are then those of the node
 * that does more than that. inputs fit both. */
NORI_API nori_status nori_validate_layers(const nori_model *got, const nori_model *want,
                                          const nori_session_options *got_options,
                                          const nori_session_options *want_options,
                                          const nori_tensor *const *inputs, size_t input_count,
                                          const nori_agreement_options *agreement,
                                          nori_layers **layers, nori_error *error);
/* The same with a want side that another program, or a device, has stored: values by name, those of got
 * as far as they are there. Others are not looked at. The lists must live as long as the call. */
NORI_API nori_status nori_validate_values(const nori_model *got, const char *const *names,
                                          const nori_tensor *const *values, size_t value_count,
                                          const nori_session_options *got_options,
                                          const nori_tensor *const *inputs, size_t input_count,
                                          const nori_agreement_options *agreement,
                                          nori_layers **layers, nori_error *error);
NORI_API int nori_layers_at(const nori_layers *layers, size_t index, nori_layer *layer); /* 0: past */
NORI_API void nori_layers_free(nori_layers *layers);

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

/* ---- side by side ----------------------------------------------------------------------- */

/* Two sessions of one model, measured in one process: same inputs, same number of threads, rounds
 * in turns. A machine's noise then meets both sides, and the ratio of each round says more than
 * two figures taken apart.
 *
 * A round is one block of runs of each side; who goes first changes from round to round. Before
 * each block nori sleeps until the process uses no CPU (the other side's threads may spin for
 * some milliseconds after a run, and would take the cores of this one), then runs once untimed
 * (the other side has emptied the caches). Nothing is pinned; each side spins and sleeps as it
 * likes while it runs. */
typedef struct nori_versus nori_versus;

typedef struct nori_versus_options {
    size_t size;     /* sizeof, set by _default */
    int rounds;      /* at least 7; default 9 */
    int runs;        /* in a block; 0: as many as take block_ms, the same for both sides */
    double block_ms; /* default 60 */
    double atol, rtol; /* for agreement of outputs; default 1e-3, 1e-3. atol is taken times the root
                          mean square of an output's numbers, where that is above 1 */
    void (*progress)(void *user, int round, int rounds); /* NULL: none */
    void *progress_user;
} nori_versus_options;

/* Times of one side in milliseconds. Loading is reading the model and making a session, the file
 * in the page cache and the provider's library loaded before: the median of several. */
typedef struct nori_versus_side {
    char provider[64];
    char engine[256];   /* library and version, or "" */
    double start_ms;    /* loading the provider's library, not part of load */
    double load_ms, load_cpu_ms; /* CPU: of all threads */
    double first_ms, median_ms, min_ms; /* wall, of single runs */
    double cpu_ms;      /* CPU time of a run: median of the blocks' means */
} nori_versus_side;

/* Median and quartiles, over the rounds, of first side's time / second side's time. */
typedef struct nori_versus_ratio {
    double median, low, high;
} nori_versus_ratio;

typedef struct nori_versus_report {
    size_t size; /* sizeof, set by the caller */
    int rounds, runs, loads, threads;
    nori_versus_side side[2];
    nori_versus_ratio wall, cpu; /* of the blocks' medians; of CPU time per run */
    double waited_ms;            /* slept until the process was quiet, all together */
    int agrees;                  /* 1: all outputs within tolerance */
} nori_versus_report;

NORI_API void nori_versus_options_default(nori_versus_options *options);
/* Loads the model for both sides, several times, timed. All nodes of a side must run on the
 * providers it names, else UNSUPPORTED. sides: two; their dims, level and threads should agree. */
NORI_API nori_status nori_versus_open(nori_env *env, const char *path,
                                      const nori_load_options *load,
                                      const nori_session_options *const sides[2],
                                      nori_versus **versus, nori_error *error);
NORI_API nori_session *nori_versus_session(const nori_versus *versus, int side); /* borrowed */
/* Runs the rounds. */
NORI_API nori_status nori_versus_run(nori_versus *versus, const nori_tensor *const *inputs,
                                     size_t input_count, const nori_versus_options *options,
                                     nori_versus_report *report, nori_error *error);
/* How far output index of the first side is from the second's; 0 past the last. */
NORI_API int nori_versus_output(const nori_versus *versus, size_t index, const char **name,
                                nori_difference *difference);
NORI_API void nori_versus_free(nori_versus *versus);

/* ---- quantizing: models ----------------------------------------------------------------- */

/* What was seen of every float32 value of a model while samples ran: extremes, their sums over the
 * samples, and a histogram, in memory that does not depend on how many samples there were. Equal
 * samples give equal states, bit for bit, in any order and over any number of parts that are merged
 * later. One thread at a time. */
typedef struct nori_calibration nori_calibration;

typedef struct nori_calibrate_options {
    size_t size; /* sizeof, set by _default */
    int threads; /* of the runs; 0: the environment's */
    int (*sample)(void *user, size_t index, nori_tensor **inputs, nori_error *error);
    void *sample_user; /* both as in nori_quantize_options */
    void (*progress)(void *user, const char *phase, size_t done, size_t total); /* or NULL */
    void *progress_user;
} nori_calibrate_options;
NORI_API void nori_calibrate_options_default(nori_calibrate_options *options);
/* Runs the samples. No sample at all makes an empty one, good for merging into. Errors: ARGUMENT (no
 * callback), what sample reports, and what running gives, with the sample's index. */
NORI_API nori_status nori_calibrate(const nori_model *model, const nori_calibrate_options *options,
                                    nori_calibration **calibration, nori_error *error);
NORI_API void nori_calibration_free(nori_calibration *calibration);
/* As if what from has seen had been seen by into as well. Errors: DATA (another model), MEMORY. */
NORI_API nori_status nori_calibration_merge(nori_calibration *into, const nori_calibration *from,
                                            nori_error *error);
/* Files, and the same as bytes: uint8, rank 1. Equal states are equal bytes. What is read is not
 * trusted. Errors: IO, FORMAT (no calibration, damaged), UNSUPPORTED (a newer format). */
NORI_API nori_status nori_calibration_read(nori_env *env, const char *path,
                                           nori_calibration **calibration, nori_error *error);
NORI_API nori_status nori_calibration_write(nori_calibration *calibration, const char *path,
                                            nori_error *error);
NORI_API nori_status nori_calibration_decode(nori_env *env, const void *data, size_t size,
                                             nori_calibration **calibration, nori_error *error);
NORI_API nori_status nori_calibration_encode(nori_calibration *calibration, nori_tensor **bytes,
                                             nori_error *error);
NORI_API uint64_t nori_calibration_samples(const nori_calibration *calibration);
/* Of one value, in the order of names; 0 past the last. */
typedef struct nori_calibrated {
    size_t size; /* sizeof, set by the caller */
    const char *name;
    double min, max;                 /* of the finite numbers; min > max: there were none */
    double average_min, average_max; /* means over the tensors seen */
    uint64_t count, nan, inf;        /* finite numbers, and the others */
} nori_calibrated;
NORI_API int nori_calibration_at(nori_calibration *calibration, size_t index,
                                 nori_calibrated *value);

typedef enum nori_range_method {
    NORI_RANGE_MINMAX,
    NORI_RANGE_PERCENTILE, /* all but a share of the numbers at either end */
    NORI_RANGE_ENTROPY,    /* least Kullback-Leibler divergence of the quantized histogram */
    NORI_RANGE_MSE,        /* least mean squared error */
    NORI_RANGE_AVERAGE,    /* means of every sample's least and greatest number */
    NORI_RANGE_AUTO        /* static, while searching: the one that costs least at the outputs */
} nori_range_method;

/* What is done beside rounding, each where it pays; bits of nori_quantize_options.without. */
typedef enum nori_quantize_step {
    NORI_QUANTIZE_FOLD = 1,         /* BatchNormalization and the like go into weights */
    NORI_QUANTIZE_EQUALIZE = 2,     /* channels of like range across layers (CLE) */
    NORI_QUANTIZE_SMOOTH = 4,       /* outliers of activations go into weights (SmoothQuant) */
    NORI_QUANTIZE_CORRECT_BIAS = 8, /* the mean error of a channel goes into its bias */
    NORI_QUANTIZE_ADAROUND = 16     /* weights go up or down so that a layer's sums move least */
} nori_quantize_step;

typedef enum nori_quantize_kind {
    NORI_QUANTIZE_STATIC,  /* weights and activations, ranges from samples */
    NORI_QUANTIZE_DYNAMIC, /* weights, and activations with ranges found in each run */
    NORI_QUANTIZE_WEIGHTS, /* weights alone: smaller, the sums stay float */
    NORI_QUANTIZE_FP16,    /* no integers: nodes compute in float16 where their operator's version can
                              and, with samples or a calibration, where their values fit */
    NORI_QUANTIZE_BF16     /* the same in bfloat16 */
} nori_quantize_kind;

/* Weights alone, of products: how their integers are found. */
typedef enum nori_quantize_rounding {
    NORI_ROUNDING_MSE,     /* nearest, with the scale of least squared error */
    NORI_ROUNDING_NEAREST, /* nearest, with the scale that holds all of them */
    NORI_ROUNDING_HQQ,     /* scale and zero point that leave few large errors (half-quadratic) */
    NORI_ROUNDING_GPTQ     /* what rounding does to sums over the samples goes into weights to come */
} nori_quantize_rounding;

enum { NORI_FORM_QDQ, NORI_FORM_QOPERATOR };

typedef struct nori_quantize_options {
    size_t size;                /* sizeof, set by _default */
    nori_quantize_kind kind;
    nori_type activation_type;  /* static: NORI_UINT8, or INT8, UINT16, INT16 */
    nori_type weight_type;      /* NORI_INT8, or UINT8; weights alone: also INT4, UINT4 */
    int block;                  /* weights alone: so many of a column share a scale (16, 32, 64
                                   ...); 0: a scale a column, or as per_channel says */
    int packed;                 /* weights alone: 1: products become com.microsoft MatMulNBits, which
                                   keeps the weights small in memory too */
    int symmetric_activations;  /* 1: zero point 0, or the middle of an unsigned type */
    int per_channel;            /* 1: a scale for every output channel of a weight */
    nori_range_method method;   /* of activations */
    double percentile;          /* of that method, as 99.99 */
    const char *const *exclude; /* nodes that stay float: by name, operator, or prefix with "*" */
    size_t exclude_count;
    int threads;                /* of the runs on samples; 0: the environment's */
    /* Sample index as one tensor an input of the model, in their order, each a reference the
     * quantizer frees. 1: there is one; 0: there are no more; -1: error filled. The first pass of
     * samples finds the ranges, the second what quantization cost. May be NULL where the kind is
     * not static: then the cost is not measured. */
    int (*sample)(void *user, size_t index, nori_tensor **inputs, nori_error *error);
    void *sample_user;
    /* May be NULL: called now and then. total 0: not known. */
    void (*progress)(void *user, const char *phase, size_t done, size_t total);
    void *progress_user;
    /* Static: ranges from here and not from samples, which then only measure. May be NULL. Must have
     * been made with this model, else DATA. With NORI_QUANTIZE_FP16 and BF16: values to look for
     * what lies beyond the type. */
    const nori_calibration *calibration;
    /* Static, with samples: 1 (default): steps and methods are tried on a few samples and kept where
     * they pay, and layers stay float until the budget is met. 0: all steps are done, all layers
     * that have integers get them. */
    int search;
    unsigned without;    /* of nori_quantize_step: steps not to do */
    double least_sqnr;   /* budget: dB of signal over error on the worst output; 0: none; default 20 */
    double most_top1;    /* budget: share of rows of scores whose largest may be another one; -1: none,
                            the default */
    /* Static: NORI_FORM_QOPERATOR puts QLinearConv, QLinearMatMul and moves of integers in the place
     * of the pairs around operators; microsoft 1: com.microsoft's QLinearAdd, QLinearConcat, QGemm ...
     * as well. What has no such form keeps its pairs. Measured is the other form, of the same
     * numbers. Dynamic: microsoft 1: LSTM becomes DynamicQuantizeLSTM. */
    int form, microsoft;
    int half_io; /* FP16, BF16: 1: inputs and outputs change their type as well; 0: float32 stays */
    double most_ms;      /* budget: milliseconds of a run on this machine; 0: none. Layers that integers
                            make slower stay float where it is exceeded */
    nori_quantize_rounding rounding; /* weights alone; GPTQ needs samples, others do not look at them */
    int spare_slow;      /* 1: they do in any case: what is written then depends on the machine */
    int attention;       /* dynamic: 1: products of two activations, as in attention, too */
    int size_first;      /* static, with search: 1: layers that integers make slower by a table of costs
                            (too little work, too much float around them) get integers all the same */
} nori_quantize_options;
NORI_API void nori_quantize_options_default(nori_quantize_options *options);

/* What became of the graph; immutable. */
typedef struct nori_quantize_report nori_quantize_report;
/* Makes a model whose heavy nodes compute on integers: QuantizeLinear and DequantizeLinear stand
 * around them, a form every runtime of ONNX reads; its file is written by nori_model_save. The
 * model given stays as it is. report may be NULL. Errors: ARGUMENT (options), DATA (no samples, or
 * what they are), UNSUPPORTED (an operator set below 10), and what running the samples gives. */
NORI_API nori_status nori_quantize(const nori_model *model, const nori_quantize_options *options,
                                   nori_model **quantized, nori_quantize_report **report,
                                   nori_error *error);
NORI_API void nori_quantize_report_free(nori_quantize_report *report);

/* One node of the float model; strings are never NULL. */
typedef struct nori_quantize_node {
    size_t size; /* sizeof, set by the caller */
    const char *path, *op;
    int quantized;
    const char *reason;  /* why it stays float, or "" */
    double weight_sqnr;  /* dB, of its weights alone; 0: it has none */
    /* Of weighted nodes, what follows them up to the next included; NaN: not measured. */
    double alone_sqnr;       /* dB at the worst output with this layer alone on integers: its own error */
    double float_ms, int_ms; /* of a run on this machine; int_ms: as the node ended up, or was before
                                it was spared for its time */
} nori_quantize_node;
NORI_API int nori_quantize_report_node(const nori_quantize_report *report, size_t index,
                                       nori_quantize_node *node);
/* One value that is quantized. */
typedef struct nori_quantize_value {
    size_t size; /* sizeof, set by the caller */
    const char *name;
    double seen_min, seen_max; /* over all samples */
    double low, high;          /* the range chosen */
    double scale;
    int64_t zero_point;
    double clipped;            /* share of the numbers seen that lie outside the range */
    double sqnr;               /* dB against the float model over the samples, errors of what comes
                                  before included; NaN: not measured */
    const uint64_t *counts;    /* numbers seen, in `bins` equal parts of [seen_min, seen_max] */
    size_t bins;               /* 0: there is no histogram */
} nori_quantize_value;
NORI_API int nori_quantize_report_value(const nori_quantize_report *report, size_t index,
                                        nori_quantize_value *value);
/* A step beside rounding, and what it gained: dB at the worst output over a few samples before and
 * after (NaN: not tried). */
typedef struct nori_quantize_step_row {
    size_t size; /* sizeof, set by the caller */
    const char *name;
    int kept;
    double sqnr_before, sqnr_after;
    const char *reason; /* why it was not kept, or "" */
} nori_quantize_step_row;
NORI_API int nori_quantize_report_step(const nori_quantize_report *report, size_t index,
                                       nori_quantize_step_row *row);
/* A model that was tried. */
typedef struct nori_quantize_try {
    size_t size; /* sizeof, set by the caller */
    const char *label;
    size_t spared;         /* layers that stayed float */
    double sqnr;           /* dB of the worst output over a few samples */
    double top1_changed;   /* share of rows whose largest is another one; NaN: no rows */
    double ms;             /* of a run on this machine, the least seen */
    uint64_t weight_bytes;
    int pareto;            /* no other try is as good in error, time and size and better in one */
} nori_quantize_try;
NORI_API int nori_quantize_report_try(const nori_quantize_report *report, size_t index,
                                      nori_quantize_try *row);
/* What may be done about what the report shows; NULL past the last. */
NORI_API const char *nori_quantize_report_advice(const nori_quantize_report *report, size_t index);
/* Things worth saying, NULL past the last. */
NORI_API const char *nori_quantize_report_note(const nori_quantize_report *report, size_t index);
/* Sizes of all initializers, and the outputs' agreement over the samples (dB, the worst output). */
typedef struct nori_quantize_summary {
    size_t size; /* sizeof, set by the caller */
    size_t samples, nodes, quantized_nodes;
    uint64_t weight_bytes_before, weight_bytes_after;
    double output_sqnr;
    size_t calibrated; /* samples that the ranges come from, those of a calibration given included */
    double float_ms, int_ms; /* of a run on this machine, all nodes; 0: not measured */
} nori_quantize_summary;
NORI_API void nori_quantize_report_summary(const nori_quantize_report *report,
                                           nori_quantize_summary *summary);

/* ---- pruning ---------------------------------------------------------------------------- */

typedef enum nori_prune_method {
    NORI_PRUNE_MAGNITUDE, /* a share of each weight's elements, those of least size, become zero */
    NORI_PRUNE_2_4,       /* of every four weights along the axis of the sum the two smaller do */
    NORI_PRUNE_CHANNELS   /* a share of each layer's channels, those of least weight, leave the graph:
                             shapes shrink; layers whose channels meet in sums lose the same ones */
} nori_prune_method;

typedef struct nori_prune_options {
    size_t size; /* sizeof, set by _default */
    nori_prune_method method;
    double share; /* of elements or channels, above 0 and below 1; default 0.5; not for 2:4 */
    const char *const *exclude; /* nodes left alone: by name, operator, or prefix with "*" */
    size_t exclude_count;
    int threads; /* of the runs on samples; 0: the environment's */
    int (*sample)(void *user, size_t index, nori_tensor **inputs, nori_error *error); /* or NULL */
    void *sample_user; /* both as in nori_quantize_options; they measure what pruning cost */
} nori_prune_options;
NORI_API void nori_prune_options_default(nori_prune_options *options);

typedef struct nori_prune_report nori_prune_report; /* immutable */
/* Conv, ConvTranspose, Gemm and MatMul with constant float32 weights. The model given stays as it is;
 * the result can be quantized. report may be NULL. Errors: ARGUMENT (options), MEMORY, and what running
 * the samples gives. */
NORI_API nori_status nori_prune(const nori_model *model, const nori_prune_options *options,
                                nori_model **pruned, nori_prune_report **report, nori_error *error);
NORI_API void nori_prune_report_free(nori_prune_report *report);
/* One node with weights; strings are never NULL. */
typedef struct nori_prune_node {
    size_t size; /* sizeof, set by the caller */
    const char *path, *op;
    uint64_t weights;        /* elements before */
    uint64_t zeros;          /* of them now; channels: 0 */
    uint64_t removed;        /* made zero here; channels: taken out, of readers too */
    int64_t channels_before, channels_after; /* 0: not by channels */
    const char *reason;      /* why it was left alone, or "" */
} nori_prune_node;
NORI_API int nori_prune_report_node(const nori_prune_report *report, size_t index,
                                    nori_prune_node *node);
typedef struct nori_prune_summary {
    size_t size; /* sizeof, set by the caller */
    size_t samples;
    uint64_t weights, zeros, removed; /* sums over the nodes */
    uint64_t weight_bytes_before, weight_bytes_after; /* of all constants */
    double output_sqnr; /* dB against the model given, the worst output; NaN: not measured */
} nori_prune_summary;
NORI_API void nori_prune_report_summary(const nori_prune_report *report,
                                        nori_prune_summary *summary);

/* ---- what there is ---------------------------------------------------------------------- */

/* One operator at one version as built, then those registered with the default environment; 0 past
 * the last. types: what that version lets its first input be (one of its outputs where there is
 * none), comma-separated, as many as fit. kernel: "reference" when the reference provider runs it,
 * "custom" for a registered one, else "". */
typedef struct nori_capability {
    size_t size; /* sizeof, set by the caller */
    const char *domain, *op, *family;
    int since;
    char types[512];
    const char *kernel;
} nori_capability;
NORI_API int nori_capability_at(size_t index, nori_capability *capability);
/* Which of the types a provider has a kernel of its own for, found by offering it such a node; ""
 * for none. Providers that take parts of a model (they have a claim) are asked about each model
 * only, and give "" here. Shapes and attributes may still send single nodes to reference. */
NORI_API void nori_capability_types(size_t index, const nori_provider *provider, char *types,
                                    size_t size);

/* A library that this build of nori may use: what for, and whether it was there then (have); 0
 * past the last. */
NORI_API int nori_library_at(size_t index, const char **name, const char **use, int *have);

/* CPU name, features, level in use and how many threads why; static or caller-held text. */
NORI_API const char *nori_cpu_name(void);
NORI_API const char *nori_cpu_features(void);
NORI_API const char *nori_cpu_level(void);
NORI_API int nori_usable_threads(char *reason, size_t size);

#ifdef __cplusplus
}
#endif
#endif

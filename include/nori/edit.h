/* edit.h: models made of models: cut, joined, renamed, in other shapes, optimized, their data beside
 * them. Built on nori.h; the same conventions.
 *
 * No function changes the model it is given: what it makes is a model of its own, which the caller
 * frees with nori_model_free, before or after the one it was made of (data in other files is shared).
 * What a function does not change, the new model keeps: names, order, documentation, metadata, fields
 * this build does not know. A model may be read by one thread at a time, so two calls on one model
 * may not overlap; calls on different models may. Reports are immutable and any thread may read them;
 * their strings live as long as they do. On error nothing is made. */
#ifndef NORI_EDIT_H
#define NORI_EDIT_H

#include "nori/nori.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- saving ----------------------------------------------------------------------------- */

typedef struct nori_save_options {
    size_t size;          /* sizeof, set by _default */
    const char *external; /* file for the data of large initializers, a path relative to the model's
                             folder; NULL: only where the model would be too large without */
    uint64_t threshold;   /* bytes from which on an initializer goes there; default 1024 */
    int embed;            /* 1: all in one file; LIMIT where it would be too large */
    uint64_t most;        /* largest file without external data; default 2^31 - 1, as protobuf's */
    void (*progress)(void *user, const nori_progress *progress); /* phase "write", in bytes */
    void *progress_user;
} nori_save_options;
NORI_API void nori_save_options_default(nori_save_options *options);
/* Writes a model in pieces: at no time is all of it in memory. Each file appears whole or not at all,
 * the data first. Without options this is nori_model_save: all in one file, or, where that would be
 * larger than protobuf allows, the data beside it in a file named after it with ".data" behind.
 * Errors: ARGUMENT (a path that leaves the folder, or a file this model or the one it was made of
 * reads its data from), LIMIT, IO, MEMORY. */
NORI_API nori_status nori_model_save_as(const nori_model *model, const char *path,
                                        const nori_save_options *options, nori_error *error);

/* ---- proof ------------------------------------------------------------------------------ */

/* How results of an edit are compared with the original: both are run on the same inputs, made up
 * from a seed or given by the caller. */
typedef struct nori_proof_options {
    size_t size;   /* sizeof, set by _default */
    int skip;      /* 1: nothing is run */
    uint64_t seed; /* of inputs that are made up; default 1 */
    const char *const *dim_names; /* sizes of named dimensions; others are tried out */
    const int64_t *dim_values;
    size_t dim_count;
    int threads;   /* as in nori_session_options */
    /* May be NULL. Fills one tensor for each input of the model given (the caller of this callback
     * frees them); not 0: failed, with error filled. */
    int (*sample)(void *user, nori_tensor **inputs, nori_error *error);
    void *sample_user;
    void (*progress)(void *user, const nori_progress *progress); /* phase "prove", in runs */
    void *progress_user;
} nori_proof_options;
NORI_API void nori_proof_options_default(nori_proof_options *options);

typedef struct nori_proof {
    size_t size;           /* sizeof, set by the caller */
    int ran;               /* 0: nothing was run, reason says why */
    int agrees;            /* within 1e-4 of each element and 1e-5 of the largest of its tensor;
                              integers, bool and text: equal */
    int equal;             /* bit for bit */
    uint64_t elements;     /* compared */
    double max_abs;        /* largest difference */
    uint64_t before_ns, after_ns; /* one run of each, its nodes as written (level 0) */
    char reason[256];      /* why it was not run, or what differs; "" */
} nori_proof;

/* ---- cutting ---------------------------------------------------------------------------- */

/* Where a model may be cut in two along its order of nodes: a cut is the set of values that nodes
 * before a position make and nodes behind it read (also from within subgraphs). Constants and what is
 * computed from them alone are in no cut: both parts get what they need. In a chain of blocks a cut
 * between two blocks is one value. */
typedef struct nori_cuts nori_cuts;
typedef struct nori_cut {
    size_t size;               /* sizeof, set by the caller */
    size_t nodes;              /* of the main graph in the first part: the first ones in order */
    size_t value_count;        /* made by the first part, read by the second */
    const char *const *values; /* names, in the order they are made */
    size_t input_count;        /* inputs of the model that the second part reads itself */
    const char *const *inputs;
    uint64_t bytes;            /* of values, from inferred shapes */
    uint64_t input_bytes;      /* of inputs */
    int known;                 /* 1: all sizes are; 0: bytes count those that are */
} nori_cut;
typedef struct nori_cuts_options {
    size_t size;                  /* sizeof, set by _default */
    const char *const *dim_names; /* sizes of named dimensions, as sessions take them */
    const int64_t *dim_values;
    size_t dim_count;
    size_t most_values;           /* only cuts of at most so many values; 0: all */
} nori_cuts_options;
NORI_API void nori_cuts_options_default(nori_cuts_options *options);
/* All legal cuts along the order; positions with the same values are one cut, the first. A cut through
 * a value whose type no graph input can have (none known) is left out. Errors: ARGUMENT (a dimension
 * that is not there), MODEL, UNSUPPORTED (operators whose types cannot be inferred), MEMORY. */
NORI_API nori_status nori_cuts_find(const nori_model *model, const nori_cuts_options *options,
                                    nori_cuts **cuts, nori_error *error);
NORI_API size_t nori_cuts_count(const nori_cuts *cuts);
NORI_API int nori_cuts_at(const nori_cuts *cuts, size_t index, nori_cut *cut); /* 0: past the last */
NORI_API void nori_cuts_free(nori_cuts *cuts);

/* One boundary between two parts. */
typedef struct nori_split_at {
    const char *const *values; /* names of what the part before hands over */
    size_t count;
} nori_split_at;
typedef struct nori_split_options {
    size_t size;                 /* sizeof, set by _default */
    const nori_split_at *at;     /* boundaries, from first to last: one more part than there are */
    size_t at_count;
    const char *const *first;    /* or: two parts, the first of these nodes (by name, or by the name */
    size_t first_count;          /* of one of their outputs); at_count is 0 then */
    nori_proof_options proof;
} nori_split_options;
NORI_API void nori_split_options_default(nori_split_options *options);

typedef struct nori_split_report nori_split_report;
typedef struct nori_split_part {
    size_t size;        /* sizeof, set by the caller */
    size_t nodes;       /* of the main graph */
    size_t value_count; /* handed over to a later part */
    const char *const *values;
    const uint64_t *value_bytes; /* as measured in the proof's run; else from shapes; 0: not known */
    uint64_t bytes;     /* their sum */
} nori_split_part;
/* Cuts a model into parts that run one after another: the first holds what the values of the first
 * boundary need, and so on; the last holds the rest. A part's inputs are the inputs of the model it
 * reads and the values it reads of earlier parts; its outputs are the values later parts read, then the
 * outputs of the model it makes. A boundary holds every value that later parts read (but constants).
 * Values inside an If, Loop or Scan cannot be cut at; such a node belongs to one part, with what it
 * reads from around it. A boundary that names too little is legal where nodes can go to the part before
 * instead; where that leaves nothing behind it, the error names what was missing.
 * models: at_count + 1 entries (2 for first), filled with new models. The proof runs the parts one
 * after another, nodes as written: their outputs must equal the whole's bit for bit. Errors: ARGUMENT
 * (no such value; not legal), MODEL, UNSUPPORTED, DATA (the parts differ), MEMORY. report may be NULL. */
NORI_API nori_status nori_split(const nori_model *model, const nori_split_options *options,
                                nori_model **models, nori_split_report **report,
                                nori_error *error);
NORI_API int nori_split_report_part(const nori_split_report *report, size_t index,
                                    nori_split_part *part); /* 0: past the last */
NORI_API void nori_split_report_proof(const nori_split_report *report, nori_proof *proof);
NORI_API void nori_split_report_free(nori_split_report *report);

/* ---- what parts hand over, in 8 bits ---- */

typedef struct nori_narrow_options {
    size_t size;      /* sizeof, set by _default */
    /* Samples of the whole model, as nori_quantize_options has them: scales and zero points are fixed so
     * that all that is seen fits. NULL: those of each call's own least and greatest (zero included), which
     * are then handed over beside the bytes. */
    int (*sample)(void *user, size_t index, nori_tensor **inputs, nori_error *error);
    void *sample_user;
    double tolerance; /* no element of an output may be further off than so much of the largest of its
                         tensor; default 0.05. Integers, bool and text must be equal */
    nori_proof_options proof; /* of inputs that are made up where there are no samples */
} nori_narrow_options;
NORI_API void nori_narrow_options_default(nori_narrow_options *options);

typedef struct nori_narrow_report nori_narrow_report;
/* One value that is handed over. */
typedef struct nori_narrowed {
    size_t size;                 /* sizeof, set by the caller */
    const char *value, *sent;    /* its name, and that of its bytes */
    size_t part;                 /* that makes it */
    int fixed;                   /* 1: scale and zero point are the model's; 0: each call's */
    double scale;
    int zero_point;
    double min, max;             /* seen */
    uint64_t bytes_before, bytes; /* of the last run; with scale and zero point where they are sent */
    double max_abs, sqnr_db;     /* of the value itself, over all runs */
} nori_narrowed;
/* What came of it at the outputs. */
typedef struct nori_narrow_result {
    size_t size;      /* sizeof, set by the caller */
    int ran;          /* 0: nothing was run, reason says why */
    size_t samples;   /* runs; 0 with ran: one, on inputs that were made up */
    size_t left;      /* values of other types that are handed over as they are */
    const char *output; /* the worst of them; lives as long as the report */
    double max_abs, peak, sqnr_db; /* its largest error, largest element, signal over error */
    double tolerance;
    char reason[256];
} nori_narrow_result;
/* Parts as nori_split makes them of this model, but float32 values go from part to part as uint8: their
 * maker ends in QuantizeLinear (or DynamicQuantizeLinear), each reader begins with DequantizeLinear, under
 * one name. narrow: count entries, filled with new models. The proof runs both chains of parts on the
 * samples. Errors: ARGUMENT (no float32 value goes from part to part), UNSUPPORTED (an operator set
 * below 10, without samples below 11), DATA (an output is further off than the tolerance, or there is no
 * sample), what sample reports, and what running gives, MEMORY. report may be NULL. */
NORI_API nori_status nori_narrow(const nori_model *model, const nori_model *const *parts, size_t count,
                                 const nori_narrow_options *options, nori_model **narrow,
                                 nori_narrow_report **report, nori_error *error);
NORI_API int nori_narrow_report_value(const nori_narrow_report *report, size_t index,
                                      nori_narrowed *value); /* 0: past the last */
NORI_API void nori_narrow_report_result(const nori_narrow_report *report, nori_narrow_result *result);
NORI_API void nori_narrow_report_free(nori_narrow_report *report);

/* ---- a part alone ---- */

/* The part of a model between values: inputs (of the model, or values that its nodes make; 0: all of
 * the model's inputs that are needed) to outputs (0: all of the model's). What the outputs need and
 * the inputs do not give must come from constants, or from inputs of the model, which are then kept.
 * Errors: ARGUMENT (no such value, a value inside a subgraph, an input that no output needs), MODEL,
 * MEMORY. */
NORI_API nori_status nori_extract(const nori_model *model, const char *const *inputs,
                                  size_t input_count, const char *const *outputs,
                                  size_t output_count, nori_model **part, nori_error *error);

/* ---- names ------------------------------------------------------------------------------ */

typedef enum nori_name_kind {
    NORI_NAME_VALUE, /* an input, an output or what a node makes */
    NORI_NAME_NODE,
    NORI_NAME_DIM    /* a named dimension, wherever it stands */
} nori_name_kind;
typedef struct nori_name {
    nori_name_kind kind;
    const char *from, *to;
} nori_name;
/* All at once, so that two may change places. A name that is in use is refused: two dimensions of one
 * name would be one size. Errors: ARGUMENT (no such name, in use, given twice), UNSUPPORTED (training
 * info or quantization annotations name the value), MEMORY. */
NORI_API nori_status nori_rename(const nori_model *model, const nori_name *names, size_t count,
                                 nori_model **renamed, nori_error *error);

/* ---- joining ---------------------------------------------------------------------------- */

typedef struct nori_joint {
    const char *output; /* of the first model */
    const char *input;  /* of the second, which gets it */
} nori_joint;
typedef struct nori_merge_options {
    size_t size;              /* sizeof, set by _default */
    const nori_joint *joints; /* NULL: outputs and inputs of one name */
    size_t joint_count;
    const char *prefix;       /* put before names of the second model that the first has, too; NULL:
                                 "b/" */
    int keep;                 /* 1: outputs that are joined stay outputs */
    nori_proof_options proof;
} nori_merge_options;
NORI_API void nori_merge_options_default(nori_merge_options *options);

typedef struct nori_merge_report {
    size_t size;       /* sizeof, set by the caller */
    size_t joints;     /* values handed on */
    size_t shared;     /* inputs of both, of one name and type, which became one */
    size_t renamed;    /* names of the second model that got the prefix */
    int64_t opset_a, opset_b, opset; /* of ai.onnx: before, and of the result; 0: not imported */
    int64_t ir_a, ir_b, ir;
    nori_proof proof;  /* the merged model against the two one after the other */
} nori_merge_report;
/* Two models as one: the first's nodes, then the second's; the first's inputs, then those of the
 * second that are neither joined nor, by name and type, inputs of the first; outputs likewise. Where
 * operator sets differ the older is converted to the newer, else the newer to the older; IR versions
 * become the newer of the two. Metadata of both is kept, the first's where both have a key. Errors:
 * ARGUMENT (a joint that is not there, types or sizes that differ, nothing to join), UNSUPPORTED
 * (operator sets that no conversion brings together; two different functions of one name), DATA (they
 * do not agree), MODEL, MEMORY. report may be NULL. */
NORI_API nori_status nori_merge(const nori_model *a, const nori_model *b,
                                const nori_merge_options *options, nori_model **merged,
                                nori_merge_report *report, nori_error *error);

/* ---- optimizing ------------------------------------------------------------------------- */

#define NORI_OPTIMIZE_PASSES 12
typedef struct nori_optimize_options {
    size_t size;        /* sizeof, set by _default */
    const char *passes; /* only these, comma-separated: fold, branch, identity, transpose, pad, gemm,
                           affine, same_nodes, dead, same_constants; NULL: all */
    nori_proof_options proof;
} nori_optimize_options;
NORI_API void nori_optimize_options_default(nori_optimize_options *options);

typedef struct nori_optimize_report {
    size_t size; /* sizeof, set by the caller */
    size_t nodes_before, nodes_after;         /* of all graphs */
    size_t constants_before, constants_after; /* initializers */
    uint64_t bytes_before, bytes_after;       /* of these */
    struct {
        const char *name; /* static storage; NULL: past the last */
        size_t changes;   /* nodes or constants it took out or joined */
    } passes[NORI_OPTIMIZE_PASSES];
    char left_out[32];    /* the one rewrite that moved the results, and was not used; "" */
    nori_proof proof;
} nori_optimize_report;
/* What a simplifier does, at the file's own operator set: constants are folded (none that would grow
 * the file by much), an If with a constant condition becomes its branch, nodes that do nothing and
 * parts that nobody reads go, Transposes, pads, biases and scales are joined to the standard operators
 * beside them, and what is there twice is kept once. No operator is used that ONNX does not have, and
 * quantized constants stay quantized. Inputs and outputs stay as they are; files before IR version 4
 * become 4. The result is checked, and run against the original on the same inputs: where they do not
 * agree, the rewrite that moved them is found and left out. Errors: ARGUMENT (no such pass), MODEL,
 * UNSUPPORTED (it does not run on inputs made up), DATA (it does not agree), MEMORY. */
NORI_API nori_status nori_optimize(const nori_model *model, const nori_optimize_options *options,
                                   nori_model **optimized, nori_optimize_report *report,
                                   nori_error *error);

/* ---- shapes ----------------------------------------------------------------------------- */

typedef struct nori_batch_input {
    const char *name;
    int axis;
} nori_batch_input;
typedef struct nori_rebatch_options {
    size_t size;      /* sizeof, set by _default */
    int64_t batch;    /* 0: free, under this name */
    const char *name; /* default "batch" */
    const nori_batch_input *inputs; /* which hold the batch, and where; 0: axis 0 of all of rank 2 and
                                       more where it is what the first of them has */
    size_t input_count;
    nori_proof_options proof;
} nori_rebatch_options;
NORI_API void nori_rebatch_options_default(nori_rebatch_options *options);

typedef struct nori_rebatch_report nori_rebatch_report;
typedef struct nori_rebatch_change {
    size_t size;            /* sizeof, set by the caller */
    const char *path, *what; /* of a node that was mended */
} nori_rebatch_change;
/* A model that takes any batch (or N) where it took a fixed one, usually 1. Nodes with the old size
 * written into them are mended: Reshape and Expand by constant shapes, Slice, sizes of Resize, what is
 * joined to a batch (class tokens, first states of LSTM, GRU, RNN). The proof runs three batches alone
 * and as one: each row must agree. Errors: ARGUMENT (no such input or axis), UNSUPPORTED (a node that
 * cannot take another batch, by name; items that are mixed), MODEL, MEMORY. report may be NULL. */
NORI_API nori_status nori_rebatch(const nori_model *model, const nori_rebatch_options *options,
                                  nori_model **rebatched, nori_rebatch_report **report,
                                  nori_error *error);
NORI_API int nori_rebatch_report_change(const nori_rebatch_report *report, size_t index,
                                        nori_rebatch_change *change); /* 0: past the last */
NORI_API int64_t nori_rebatch_report_before(const nori_rebatch_report *report); /* the old batch */
NORI_API void nori_rebatch_report_proof(const nori_rebatch_report *report, nori_proof *proof);
NORI_API void nori_rebatch_report_free(nori_rebatch_report *report);

typedef struct nori_axis_change {
    const char *input; /* NULL: every dimension of the old name, in the whole model */
    int axis;          /* of the input */
    const char *old;   /* name; with input NULL only */
    int64_t value;     /* 0 and more: fixed at it; -1: free, under the name */
    const char *name;  /* NULL: free without a name */
} nori_axis_change;
/* Fixes or frees dimensions of inputs, and says again what follows from them: outputs, and with infer
 * the type of every value, where they are known. The body is not changed: a free size that it has
 * written into it stays (nori_check finds such, nori_rebatch mends a batch). Errors: ARGUMENT (no such
 * input, axis or name), MODEL (sizes that do not fit), MEMORY. */
NORI_API nori_status nori_shapes(const nori_model *model, const nori_axis_change *changes,
                                 size_t count, int infer, nori_model **changed, nori_error *error);

#ifdef __cplusplus
}
#endif
#endif

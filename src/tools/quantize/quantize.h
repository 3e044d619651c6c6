/* quantize.h: the parts of the quantizer: arithmetic, what is seen of activations, ranges, and the
 * rewriting of graphs. */
#ifndef NORI_TOOLS_QUANTIZE_QUANTIZE_H
#define NORI_TOOLS_QUANTIZE_QUANTIZE_H

#include "nori/tools.h"
#include "graph/graph.h"

/* ---- arithmetic (arithmetic.c) ---- */

/* Scales are stored as float32; smaller ones would be denormal there. */
#define NORI__QUANT_LEAST_SCALE 0x1p-126f

/* False when the type is none to quantize to. */
bool nori__quant_limits(nori_type type, int64_t *q_min, int64_t *q_max);

/* ---- what is seen of one value (observer.c) ---- */

#define NORI__BINS 2048 /* on either side of 0 */
/* Below the least float32: a value that is always zero never asks for more. */
#define NORI__LEAST_EXPONENT (-170)

/* A sum of float32 numbers without any rounding, so that it is the same in any order: a signed
 * integer in units of 2^-149, lowest limb first. Holds 2^64 of the greatest. */
typedef struct nori__exact {
    uint64_t limbs[6];
} nori__exact;
void nori__exact_add(nori__exact *sum, float v); /* finite */
void nori__exact_join(nori__exact *sum, const nori__exact *other);
double nori__exact_value(const nori__exact *sum);

/* Extremes and a histogram in fixed memory. Bin i, from -NORI__BINS, counts the numbers in
 * [i * 2^exponent, (i + 1) * 2^exponent); the exponent is the least that holds everything seen,
 * and grows by joining pairs of bins, which is exact: the state depends on what was seen alone,
 * never on the order, nor on how it was split into batches or over machines. */
typedef struct nori__observer {
    double min, max;   /* of the finite numbers; min > max: none seen */
    uint64_t calls;    /* tensors with finite numbers in them */
    nori__exact low_sum, high_sum; /* of the least and the greatest number of each */
    uint64_t count;    /* finite numbers */
    uint64_t nan, inf; /* others: not in the histogram */
    uint64_t zeros;    /* exact zeros, also counted in bin 0 */
    int exponent;
    uint64_t bins[2 * NORI__BINS];
} nori__observer;

void nori__observer_init(nori__observer *o);
void nori__observer_add(nori__observer *o, const float *values, size_t count);
void nori__observer_merge(nori__observer *o, const nori__observer *other);
/* The exponent that a state with these extremes has. */
int nori__observer_exponent(double min, double max);

/* ---- what is seen of all values (calibration.c, calibration_file.c) ---- */

/* Counts stay below this, so that merging cannot overflow. */
#define NORI__MOST_SEEN ((uint64_t)1 << 60)

struct nori_calibration {
    const nori_allocator *allocator;
    nori__arena arena;
    nori__map observers; /* name -> nori__observer * */
    nori__vec names;     /* char *, sorted when they are asked for */
    bool sorted;
    uint64_t graph;      /* nori__graph_hash of the model */
    uint64_t samples;
};
nori_status nori__calibration_new(const nori_allocator *a, nori_calibration **out,
                                  nori_error *err);
/* The observer of a value, made where there is none; NULL: no memory. */
nori__observer *nori__calibration_of(nori_calibration *c, const char *name);
void nori__calibration_sort(nori_calibration *c);
/* What a model computes: operators, attributes, names and constants. Not what says nothing about
 * its numbers, as documentation, or where the weights lie (graph_hash.c). */
uint64_t nori__graph_hash(const nori__ir *ir);

/* ---- ranges (range.c) ---- */

typedef struct nori__range {
    double low, high;
    double clipped; /* share of the numbers seen that lie outside */
} nori__range;

/* The range of reals that a type should cover. percentile: as 99.99, for that method. */
nori__range nori__range_choose(const nori__observer *o, nori_range_method method,
                               double percentile, nori_type type, bool symmetric);

/* ---- the quantizer ---- */

/* What an operator means to it (roles.c). */
typedef enum nori__q_role {
    NORI__Q_FLOAT,      /* has no quantized form */
    NORI__Q_WEIGHTED,   /* Conv, ConvTranspose, Gemm, MatMul: what quantization is for */
    NORI__Q_COMPUTE,    /* computes on integers between quantized neighbours */
    NORI__Q_ACTIVATION, /* the same; behind a weighted node it becomes the clamp of its output */
    NORI__Q_PASS        /* moves values: what comes out has the scale of what goes in */
} nori__q_role;
nori__q_role nori__q_role_of(const nori__node *n);
/* How many of its first inputs carry data; the rest (shapes, axes, bounds) stay as they are. */
uint32_t nori__q_data_inputs(const nori__node *n);

typedef struct nori__q_value {
    nori__observer *seen;   /* NULL: no float32, or never computed */
    const nori__value *root; /* whose range it shares; itself where it has its own */
    bool pair;              /* gets QuantizeLinear and DequantizeLinear */
    bool replaced;          /* the pair took its name: everybody reads through it */
    bool inside;            /* between a node and its activation: stays as it is */
    bool ranged;            /* of a root: quant is set */
    nori_quant quant;
    nori__range range;
    nori__value *scale, *zero; /* constants of a root */
    nori__value *weight;       /* of a constant: what reads it as integers, see axis */
    nori_tensor *weight_scales;
    int weight_axis;
    nori__value *dynamic[3];   /* integers, scale, zero point found in each run */
    nori__value *dequantized;  /* what quantized readers take where the value itself stays float */
} nori__q_value;

typedef struct nori__quantizer {
    const nori_quantize_options *options;
    const nori_model *model;
    const nori_allocator *allocator;
    nori__ir *ir;          /* the copy that becomes the result */
    nori__arena arena;
    nori_calibration *seen; /* what the samples were; the caller's where it gave one */
    nori_range_method method; /* in use: the option's, or what the search found */
    unsigned steps;        /* of nori__q_step (search.h): what is done beside rounding */
    size_t limit;          /* samples a pass looks at; 0: all */
    nori__map units;       /* first output of a node -> nori__q_unit * (search.h) */
    nori__vec unit_list;
    nori__map channels;    /* name of a value -> nori__q_channels * (search.h) */
    nori__map roundings;   /* first output of a node -> nori__q_rounding * (search.h) */
    nori__vec rounding_list;
    nori__arena rounding_room;
    nori__q_value *values; /* by value id, as numbered before emitting */
    uint32_t n_values;
    bool *chosen;          /* by node id */
    uint32_t n_nodes;
    bool alone;            /* one layer is looked at: what it costs in time does not count */
    size_t by_cost;        /* layers that the last selection left float for what they cost */
    size_t weighed;        /* of so many */
    bool little;           /* it did so with all: integers would have won too little of the whole */
    nori_quantize_report *report;
    nori_error *err;
} nori__quantizer;

static inline nori__q_value *nori__q_of(const nori__quantizer *q, const nori__value *v)
{
    return &q->values[v->id];
}
/* The parameters of a value: its root's. */
static inline nori__q_value *nori__q_root(const nori__quantizer *q, const nori__value *v)
{
    return &q->values[q->values[v->id].root->id];
}

/* prepare.c: folds what follows a convolution into it; constants become initializers. */
nori_status nori__q_prepare(nori__quantizer *q);
/* calibrate.c: runs the samples and watches; or takes what the caller has watched before. */
nori_status nori__q_calibrate(nori__quantizer *q);
/* calibrate.c: calls use for every sample; counts them in the report's summary. */
nori_status nori__q_each_sample(nori__quantizer *q, const char *phase,
                                nori_status (*use)(void *user, nori_tensor **inputs), void *user);
/* A sample for a session of the prepared graph, some of whose inputs may have become constants:
 * in[] gets as many entries as the session has inputs. */
void nori__q_feed(const nori__quantizer *q, const nori_session *session,
                  nori_tensor *const *inputs, const nori_tensor **in);
/* measure.c: runs the samples through both models and compares. */
nori_status nori__q_measure(nori__quantizer *q, const nori_model *before,
                            const nori_model *after);
/* select.c: which nodes compute on integers, which values get a pair, who shares whose range. */
nori_status nori__q_select(nori__quantizer *q);
/* The same where only weights matter: nodes with constant float weights. */
nori_status nori__q_select_weights(nori__quantizer *q);
/* Each puts integers into the graph. emit.c: pairs; emit_dynamic.c: products of integers whose
 * ranges are found in each run; emit_weights.c: weights alone. */
nori_status nori__q_emit(nori__quantizer *q);
nori_status nori__q_emit_dynamic(nori__quantizer *q);
nori_status nori__q_emit_weights(nori__quantizer *q);
/* emit_recurrent.c: LSTM, GRU, RNN, whose weights alone become integers; _fits: they are constant. */
bool nori__q_recurrent(const nori__node *n);
bool nori__q_recurrent_fits(const nori__node *n);
nori_status nori__q_emit_recurrent(nori__quantizer *q, nori__node *n);
/* emit_qoperator.c: pairs around operators become operators on integers. */
nori_status nori__q_form_operators(nori__quantizer *q, nori_model **model);
nori_status nori__q_import_microsoft(nori__ir *ir, nori_error *err); /* quantize.c */
/* precision.c: nodes in float16 or bfloat16; then the graph's inputs and outputs too. */
nori_status nori__q_emit_half(nori__quantizer *q);
nori_status nori__q_half_io(nori__quantizer *q);
/* half_peer.c: by node id, what stays float32 so that ONNX Runtime loads the model; NULL: no memory. */
const bool *nori__q_half_crashes(nori__quantizer *q);
/* Whether an option says that a node stays float (select.c). */
bool nori__q_excluded(const nori__quantizer *q, const nori__node *n);

/* emit_common.c: what they share. All take the references of tensors given. */
/* "base_what", in the quantizer's arena; NULL: no memory. */
const char *nori__q_name(nori__quantizer *q, const char *base, const char *what);
/* Whether a node's product of a weight is plain: no alpha or beta in it. */
bool nori__q_plain(const nori__node *n);
/* The axis of a weight's output channels; -1: one scale for all. */
int nori__q_channel_axis(const nori__quantizer *q, const nori__node *n, const nori_tensor *w);
/* DequantizeLinear of constant integers in front of n. zeros may be NULL. block 0: none. */
nori_status nori__q_constant(nori__quantizer *q, nori__node *n, const char *name,
                             nori_tensor *integers, nori_tensor *scales, nori_tensor *zeros,
                             int axis, int block, nori__value **out);

/* weights.c: a constant as integers: one scale, or one for every index of axis (-1: one). Scales
 * that would make bias / (input_scale * scale) leave int32 are raised. bias may be NULL. */
typedef struct nori__q_weight {
    nori_tensor *integers, *scales, *zeros;
    double sqnr;     /* dB of this constant alone */
    size_t raised;   /* scales raised for the bias */
} nori__q_weight;
nori_status nori__q_weight_make(const nori_allocator *a, const nori_tensor *w, int axis,
                                nori_type type, bool symmetric, const nori_tensor *bias,
                                double input_scale, nori__q_weight *out, nori_error *err);
/* A bias as int32 with the scales input_scale * weight scale. */
nori_status nori__q_bias_make(const nori_allocator *a, const nori_tensor *bias,
                              const nori_tensor *weight_scales, double input_scale,
                              nori_tensor **integers, nori_tensor **scales, nori_error *err);

/* cost_report.c */
nori_quantize_report *nori__q_report_new(const nori_allocator *a);
nori_quantize_summary *nori__q_summary(nori_quantize_report *report);
/* Whether a node was quantized (fmt NULL), or why not; the last word counts. */
void nori__q_report_node(nori__quantizer *q, const nori__node *n, const char *fmt, ...)
    NORI__PRINTF(3, 4);
void nori__q_report_weight(nori__quantizer *q, const nori__node *n, double sqnr);
void nori__q_report_value(nori__quantizer *q, const nori__value *v, double sqnr);
void nori__q_note(nori__quantizer *q, const char *fmt, ...) NORI__PRINTF(2, 3);

/* prepare.c: Constant nodes of float weights become initializers, and Identity nodes that only rename
 * one go, as exporters leave them behind. */
nori_status nori__q_bare_constants(nori__ir *ir, nori_error *err);

#endif

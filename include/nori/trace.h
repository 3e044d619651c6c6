/* trace.h: the exporter of a C program. A function over real tensors is run once on example inputs; each
 * operation is computed at once, so that its result can be looked at, and recorded; what was recorded
 * becomes a checked ONNX graph. Built on nori.h; the same conventions. docs/trace.md is a tour.
 *
 *     static nori_status mlp(void *user, nori_tracer *t, nori_traced *const *in, nori_traced **out)
 *     {
 *         nori_traced *x = nori_layer_linear(t, in[0], nori_traced_weight(t, user, "fc1.weight"),
 *                                            nori_traced_weight(t, user, "fc1.bias"));
 *         out[0] = nori_layer_unary(t, "Relu", x);
 *         return NORI_OK;
 *     }
 *
 * Nothing need be checked inside the function: the first error stays, everything after it gives NULL,
 * and NULL is taken as an argument everywhere. */
#ifndef NORI_TRACE_H
#define NORI_TRACE_H

#include "nori/nori.h"
#include "nori/tools.h"
#include "nori/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A recording that goes on, and a value in it: both only good while the function runs, on its thread. */
typedef struct nori_tracer nori_tracer;
typedef struct nori_traced nori_traced;

/* inputs: one an example, in their order; outputs: as many as were named, to be filled. A status other
 * than NORI_OK ends the trace. */
typedef nori_status (*nori_trace_function)(void *user, nori_tracer *t, nori_traced *const *inputs,
                                           nori_traced **outputs);

/* ---- tracing ---------------------------------------------------------------------------- */

/* An axis of an input that may have any size. name: of the dimension, one name being one size wherever
 * it stands; NULL: made of input and axis. */
typedef struct nori_dynamic_axis {
    const char *input;
    int axis;
    const char *name;
} nori_dynamic_axis;

typedef struct nori_trace_options {
    size_t size;                      /* sizeof, set by _default */
    const char *name;                 /* of the graph; NULL: "traced" */
    const char *const *input_names;   /* one an example; NULL: input_0 ... */
    const char *const *output_names;  /* NULL: one output, "output" */
    size_t output_count;
    const nori_dynamic_axis *dynamic_axes; /* without them every size is frozen as the example has it */
    size_t dynamic_axis_count;
    int64_t opset;          /* of ai.onnx; 0: the lowest, from 7 on, that has every operator in the form
                               recorded. A higher one is noted: fewer runtimes load it */
    const char *path;       /* where the model is written; NULL: nowhere */
    const char *providers;  /* what computes; NULL: "cpu" */
    double rtol, atol;      /* that the model must agree within; default 1e-3 and 1e-5 */
    void (*note)(void *user, const char *text); /* may be NULL: notes as they are made */
    void *note_user;
} nori_trace_options;
NORI_API void nori_trace_options_default(nori_trace_options *options);

/* What came of it; immutable. */
typedef struct nori_trace_report nori_trace_report;

/* Runs the function on the examples and makes a model of what it did. The model is checked, and its
 * outputs are compared with those of the function: on the examples, and at another size of each dynamic
 * axis, where the function is run again. Then it is written, loaded back and compared once more; what
 * does not agree is not written. model and report may be NULL; a report is also given with most errors.
 * Errors: ARGUMENT (no example; names, axes, operators that are not), DATA (the model does not agree, with
 * output, size and how far), what operations give, MODEL, IO, MEMORY. */
NORI_API nori_status nori_trace(nori_env *env, nori_trace_function function, void *user,
                                const nori_tensor *const *examples, size_t example_count,
                                const nori_trace_options *options, nori_model **model,
                                nori_trace_report **report, nori_error *error);

typedef struct nori_trace_summary {
    size_t size; /* sizeof, set by the caller */
    int64_t opset, ir;
    int64_t lowest;      /* the lowest operator set that has all in the form recorded */
    size_t nodes, initializers;
    size_t shared;       /* constants that were there before, and stored once */
    size_t dropped;      /* operations that lead to no output */
    uint64_t bytes;      /* of the model */
} nori_trace_summary;
NORI_API void nori_trace_report_summary(const nori_trace_report *report,
                                        nori_trace_summary *summary);
/* What is worth knowing: control flow that was frozen, an operator set higher than need be, inputs
 * nobody uses; NULL past the last. */
NORI_API const char *nori_trace_report_note(const nori_trace_report *report, size_t index);
/* One output compared; 0 past the last. what: "example", "batch = 3", "written". */
typedef struct nori_trace_check {
    size_t size; /* sizeof, set by the caller */
    const char *what, *output;
    nori_agreement agreement;
} nori_trace_check;
NORI_API int nori_trace_report_check(const nori_trace_report *report, size_t index,
                                     nori_trace_check *check);
NORI_API void nori_trace_report_free(nori_trace_report *report);

/* ---- values ----------------------------------------------------------------------------- */

/* A constant; the tensor is retained, not copied. name: of the initializer, NULL: made up. Equal
 * constants become one. */
NORI_API nori_traced *nori_traced_constant(nori_tracer *t, const char *name,
                                           const nori_tensor *tensor);
NORI_API nori_traced *nori_traced_weight(nori_tracer *t, const nori_weights *weights,
                                         const char *name);
/* A float scalar, a list of int64: copied. */
NORI_API nori_traced *nori_traced_float(nori_tracer *t, float value);
NORI_API nori_traced *nori_traced_ints(nori_tracer *t, const int64_t *values, size_t count);
/* Gives a value the name it has in the graph; gives v. */
NORI_API nori_traced *nori_traced_name(nori_traced *v, const char *name);

/* Type and shape. A size of an axis that may change is frozen where the program uses it, and that is
 * noted: nori_layer_size is the size as a value of the graph. */
NORI_API nori_type nori_traced_type(const nori_traced *v);
NORI_API int nori_traced_rank(const nori_traced *v);
NORI_API int64_t nori_traced_dim(nori_traced *v, int axis);
/* The content, to decide by. What follows from it in the program is frozen, and noted so where the value
 * depends on an input. NULL after an error. */
NORI_API const nori_tensor *nori_traced_read(nori_traced *v);
/* "Conv_2 float32[1,8,28,28] 0.12 -0.4 ...": to be printed, cut to size; decides nothing, so not noted. */
NORI_API void nori_traced_text(const nori_traced *v, char *out, size_t size);
/* Ends the trace with an error of the function's own; returns its status. */
NORI_API nori_status nori_tracer_fail(nori_tracer *t, nori_status status, const char *text);

/* ---- operations ------------------------------------------------------------------------- */

/* An attribute; kinds are those of AttributeProto. */
typedef struct nori_attr {
    const char *name;
    int kind;
    size_t count;
    int64_t i;
    float f;
    const void *p; /* text, int64_t[], float[], const char *[], nori_tensor or text of a graph */
} nori_attr;
static inline nori_attr nori_attr_of(const char *name, int kind, size_t count, const void *p)
{
    nori_attr a = {name, kind, count, 0, 0, p};
    return a;
}
static inline nori_attr nori_attr_float(const char *name, float v)
{
    nori_attr a = nori_attr_of(name, 1, 0, NULL);
    a.f = v;
    return a;
}
static inline nori_attr nori_attr_int(const char *name, int64_t v)
{
    nori_attr a = nori_attr_of(name, 2, 0, NULL);
    a.i = v;
    return a;
}
static inline nori_attr nori_attr_text(const char *name, const char *v)
{
    return nori_attr_of(name, 3, 0, v);
}
static inline nori_attr nori_attr_tensor(const char *name, const nori_tensor *v)
{
    return nori_attr_of(name, 4, 0, v);
}
/* A graph in the textual syntax, as If, Loop and Scan have them: "then () => (float[2] y) { y = Neg(x) }".
 * Values of the trace are read by their names. */
static inline nori_attr nori_attr_graph(const char *name, const char *text)
{
    return nori_attr_of(name, 5, 0, text);
}
static inline nori_attr nori_attr_floats(const char *name, const float *v, size_t count)
{
    return nori_attr_of(name, 6, count, v);
}
static inline nori_attr nori_attr_ints(const char *name, const int64_t *v, size_t count)
{
    return nori_attr_of(name, 7, count, v);
}
static inline nori_attr nori_attr_texts(const char *name, const char *const *v, size_t count)
{
    return nori_attr_of(name, 8, count, v);
}

/* Any operator of the list in its newest form: "Conv", "com.microsoft.Gelu". Computes and records it.
 * An optional input that is absent is NULL. */
NORI_API nori_traced *nori_traced_op(nori_tracer *t, const char *op, nori_traced *const *inputs,
                                     size_t input_count, const nori_attr *attrs, size_t attr_count);
/* The same with several outputs: fills all of outputs, with NULL after an error. */
NORI_API nori_status nori_traced_ops(nori_tracer *t, const char *op, nori_traced *const *inputs,
                                     size_t input_count, const nori_attr *attrs, size_t attr_count,
                                     nori_traced **outputs, size_t output_count);
/* ---- layers ----------------------------------------------------------------------------- */

/* Each is one or several operations as above; weights as PyTorch stores them. bias, mask and the like
 * may be NULL: absent. */

/* x [.., in] times weight [out, in] transposed, plus bias [out]. */
NORI_API nori_traced *nori_layer_linear(nori_tracer *t, nori_traced *x, nori_traced *weight,
                                        nori_traced *bias);
typedef struct nori_window {
    int64_t kernel[2];   /* of pools: convolutions have it in their weight */
    int64_t stride[2];   /* 0: 1 */
    int64_t pad[4];      /* top, left, bottom, right */
    int64_t dilation[2]; /* 0: 1 */
    int64_t groups;      /* 0: 1 */
} nori_window;
/* x [n, c, h, w], weight [out, c / groups, h, w]; window may be NULL. */
NORI_API nori_traced *nori_layer_conv2d(nori_tracer *t, nori_traced *x, nori_traced *weight,
                                        nori_traced *bias, const nori_window *window);
NORI_API nori_traced *nori_layer_max_pool2d(nori_tracer *t, nori_traced *x,
                                            const nori_window *window);
NORI_API nori_traced *nori_layer_average_pool2d(nori_tracer *t, nori_traced *x,
                                                const nori_window *window);
NORI_API nori_traced *nori_layer_global_average_pool(nori_tracer *t, nori_traced *x);
/* By stored mean and variance, as in inference. */
NORI_API nori_traced *nori_layer_batch_norm(nori_tracer *t, nori_traced *x, nori_traced *scale,
                                            nori_traced *bias, nori_traced *mean,
                                            nori_traced *variance, float epsilon);
/* Over the last axes, as many as scale has. */
NORI_API nori_traced *nori_layer_layer_norm(nori_tracer *t, nori_traced *x, nori_traced *scale,
                                            nori_traced *bias, float epsilon);
/* x [steps, batch, in], weights of one direction as PyTorch has them (gates in the order input, forget,
 * cell, output): weight_ih [4 hidden, in], weight_hh [4 hidden, hidden], biases [4 hidden]; state zero at
 * first. Gives [steps, batch, hidden]. */
NORI_API nori_traced *nori_layer_lstm(nori_tracer *t, nori_traced *x, nori_traced *weight_ih,
                                      nori_traced *weight_hh, nori_traced *bias_ih,
                                      nori_traced *bias_hh);
/* softmax(q k^T / sqrt(size of a head) + mask) v by heads; q, k, v [batch, steps, heads * size]; mask is
 * added and may be absent. */
NORI_API nori_traced *nori_layer_attention(nori_tracer *t, nori_traced *q, nori_traced *k,
                                           nori_traced *v, nori_traced *mask, int64_t heads);
/* Rows of table [count, size] by ids of int64 or int32. */
NORI_API nori_traced *nori_layer_embedding(nori_tracer *t, nori_traced *table, nori_traced *ids);

/* Relu, Sigmoid, Tanh, Exp, Neg, Sqrt ...: an operator of one input without attributes. */
NORI_API nori_traced *nori_layer_unary(nori_tracer *t, const char *op, nori_traced *x);
/* Add, Sub, Mul, Div, Pow, MatMul ...: of two. */
NORI_API nori_traced *nori_layer_binary(nori_tracer *t, const char *op, nori_traced *a,
                                        nori_traced *b);
NORI_API nori_traced *nori_layer_gelu(nori_tracer *t, nori_traced *x); /* by erf */
NORI_API nori_traced *nori_layer_leaky_relu(nori_tracer *t, nori_traced *x, float alpha);
NORI_API nori_traced *nori_layer_softmax(nori_tracer *t, nori_traced *x, int64_t axis);
/* dims: 0 keeps the size x has there, -1 is what is left: so a shape need not freeze a batch. */
NORI_API nori_traced *nori_layer_reshape(nori_tracer *t, nori_traced *x, const int64_t *dims,
                                         size_t rank);
NORI_API nori_traced *nori_layer_flatten(nori_tracer *t, nori_traced *x, int64_t axis);
NORI_API nori_traced *nori_layer_transpose(nori_tracer *t, nori_traced *x, const int64_t *order,
                                           size_t rank);
NORI_API nori_traced *nori_layer_concat(nori_tracer *t, nori_traced *const *parts, size_t count,
                                        int64_t axis);
/* Elements [begin, end) of an axis; negative ones count from its end, INT64_MAX is the end. */
NORI_API nori_traced *nori_layer_slice(nori_tracer *t, nori_traced *x, int64_t axis, int64_t begin,
                                       int64_t end);
/* The mean over an axis that stays with size 1. */
NORI_API nori_traced *nori_layer_mean(nori_tracer *t, nori_traced *x, int64_t axis);
/* The size of an axis as a value of the graph, int64 of shape [1]. */
NORI_API nori_traced *nori_layer_size(nori_tracer *t, nori_traced *x, int64_t axis);

#ifdef __cplusplus
}
#endif
#endif

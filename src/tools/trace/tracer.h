/* tracer.h: a recording from the inside: values with their content, operations with their attributes. */
#ifndef NORI_TOOLS_TRACE_TRACER_H
#define NORI_TOOLS_TRACE_TRACER_H

#include "graph/tensor.h"
#include "nori/trace.h"

struct nori_traced {
    nori_tracer *t;
    const char *name;
    nori_tensor *tensor;
    struct nori__recorded *made; /* NULL: input or constant */
    bool input, depends;         /* depends: on an input */
    bool read, sized;            /* said so already */
    bool used;                   /* leads to an output */
    bool open[NORI_MAX_RANK];    /* inputs: axes that may have any size */
};

/* A value that graphs of an operation's attributes read, under the name they have for it. */
typedef struct nori__capture {
    nori__str name;
    nori_traced *value;
} nori__capture;

/* One operation. */
typedef struct nori__recorded {
    const char *op, *domain;
    nori_traced **in, **out;
    size_t n_in, n_out;
    nori__pb_attr *attrs;
    size_t n_attrs;
    nori__capture *captures;
    size_t n_captures;
    bool used;
} nori__recorded;

struct nori_tracer {
    nori_env *env;
    const nori_allocator *allocator;
    const nori_trace_options *options;
    nori__arena arena;
    nori__vec values; /* nori_traced: all, whose tensors are freed with the tracer */
    nori__vec ops;    /* nori__recorded, in order */
    nori__map names;  /* to nori_traced */
    nori__map contents; /* constants by their hash */
    nori_status status;
    nori_error *err;
    nori_trace_report *report; /* where notes go; NULL: nobody listens */
    size_t numbered, shared;
};

struct nori_trace_report {
    nori__arena arena;
    nori__vec notes;  /* char * */
    nori__vec checks; /* nori_trace_check */
    nori_trace_summary summary;
};

/* tracer.c */
void nori__tracer_init(nori_tracer *t, nori_env *env, const nori_trace_options *o, nori_error *err);
void nori__tracer_free(nori_tracer *t);
/* Fails the trace once; false. */
bool nori__tracer_stop(nori_tracer *t, nori_status status, const char *fmt, ...) NORI__PRINTF(3, 4);
void nori__tracer_note(nori_tracer *t, const char *fmt, ...) NORI__PRINTF(2, 3);
/* A value over a tensor, whose reference it takes; NULL after an error. A name that is taken gets a
 * number behind it; NULL: made of stem. */
nori_traced *nori__traced_new(nori_tracer *t, const char *name, const char *stem, nori_tensor *tensor);
/* Whether t goes on: nothing failed, and v is a value of it. */
bool nori__tracer_goes(const nori_tracer *t);

/* trace_compute.c: one operation at once; fills out with new tensors. */
nori_status nori__trace_compute(nori_tracer *t, const nori__recorded *op, nori_tensor **out);
/* The messages of an operation. names: of inputs, by their place. */
void nori__recorded_to_pb(const nori__recorded *op, nori__pb_node *pb);
/* The type of a value as it is. */
nori__pb_type *nori__trace_type(nori__arena *arena, const nori_tensor *t, bool shape);

/* trace_graphs.c: a graph from text as an attribute; what it reads from around it becomes captures. */
bool nori__trace_graph_attr(nori_tracer *t, nori__recorded *op, const char *text, nori__pb_attr *pb);
/* Names of values in the graphs of attributes become those they have now. */
void nori__trace_rename(nori_tracer *t, nori__recorded *op);

/* trace_model.c: what was recorded as a model. outputs have their names. */
nori_status nori__trace_model(nori_tracer *t, nori_traced *const *inputs, size_t n_in,
                              nori_traced *const *outputs, size_t n_out, nori_model **model);

#endif

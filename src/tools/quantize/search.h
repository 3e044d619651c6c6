/* search.h: what a static quantization tries: steps before it, methods, layers that stay float. */
#ifndef NORI_TOOLS_QUANTIZE_SEARCH_H
#define NORI_TOOLS_QUANTIZE_SEARCH_H

#include "tools/quantize/quantize.h"

/* A weighted node, and what follows it: the search moves them between integers and float together. */
typedef struct nori__q_unit {
    const char *name;  /* of the node's first output: the same in every copy of the graph */
    const char *path;  /* of the node, for people */
    const char *why;   /* why it stays float; NULL: on integers, where that fits */
    bool slow;         /* why: integers took longer; times are from then */
    bool hidden;       /* float for the moment: the search looks at others */
    double alone;      /* noise over signal at the outputs with only this on integers; < 0: not known */
    double float_ns, int_ns; /* of a run; < 0: not known */
} nori__q_unit;

/* ---- the float graph (prepare.c, equalize.c, smooth.c) ---- */

nori_status nori__q_constants(nori__quantizer *q); /* what is constant becomes an initializer */
nori_status nori__q_fold(nori__quantizer *q);      /* what scales and shifts goes into weights */

/* A node's output means another thing now: "NAME_what" says so, and nobody takes it for the float
 * model's value of the old name. Not for outputs of the graph. */
nori_status nori__q_rename(nori__quantizer *q, nori__node *n, const char *what);

/* *count: pairs of layers, products that were changed. */
nori_status nori__q_equalize(nori__quantizer *q, size_t *count);
nori_status nori__q_smooth(nori__quantizer *q, size_t *count);

/* watch.c: runs the samples (q->limit of them) through the prepared graph; watch sees every value. */
nori_status nori__q_watch(nori__quantizer *q, const char *phase,
                          void (*watch)(void *user, const char *name, const nori_tensor *t),
                          void *user);

/* ---- channels (channels.c) ---- */

/* What the samples hold in each channel of a value that a weighted node reads. */
typedef struct nori__q_channels {
    int axis;
    int64_t count;
    double *sum, *most; /* of the numbers; of their sizes */
    double numbers;     /* in each channel */
} nori__q_channels;
/* Runs the samples (q->limit of them) and fills q->channels anew. */
nori_status nori__q_see_channels(nori__quantizer *q);
/* Channels of a weighted node's input and output by its weight; 0: the weight has no such form. */
int64_t nori__q_in_channels(const nori__node *n, const nori_tensor *w);
int64_t nori__q_out_channels(const nori__node *n, const nori_tensor *w);
/* A walk over a weight in stretches that lie side by side and join one channel of the input with one
 * of the output. */
typedef struct nori__q_walk {
    int64_t at, count; /* the stretch: elements at .. at + count - 1 */
    int64_t in, out;   /* the channels it joins */
    int64_t first, second, n_first, n_second, per_group, base;
    int form;
} nori__q_walk;
nori__q_walk nori__q_walk_begin(const nori__node *n, const nori_tensor *w); /* before the first */
bool nori__q_walk_next(nori__q_walk *walk);

/* adaround.c: integers of weights that move a layer's sums over the samples least, in q->roundings;
 * weights of the graph stay as they are. *count: layers with others than the nearest; *wide: layers
 * that were too much work. */
typedef struct nori__q_rounding {
    nori_tensor *integers, *scales;
} nori__q_rounding;
nori_status nori__q_round(nori__quantizer *q, size_t *count, size_t *wide);
void nori__q_forget_roundings(nori__quantizer *q);
/* Puts them in the place of the nearest ones, where the scales are the same. */
void nori__q_take_rounding(nori__quantizer *q, const nori__node *n, nori__q_weight *made);

/* bias.c: a bias that makes up for the mean error these integers make; *bias NULL: nothing to do. */
nori_status nori__q_correct_bias(nori__quantizer *q, const nori__node *n, const nori_tensor *w,
                                 const nori__q_weight *made, int axis, const nori_tensor *old,
                                 nori_tensor **bias);

/* ---- trying ---- */

/* probe.c: a few samples with what the float model makes of them. */
typedef struct nori__q_probe {
    size_t count, n_in, n_out;
    nori_tensor **inputs, **outputs; /* [count * n_in], [count * n_out]; inputs of the model given */
    const nori_tensor **fed;         /* room for the inputs of a session */
    double float_ns;                 /* of a run of the float model, the least seen */
    size_t use;                      /* how many a score looks at; 0: all */
} nori__q_probe;
typedef struct nori__q_score {
    double sqnr;  /* dB of the worst output; NaN: no output holds floats */
    double noise; /* over signal, of that; < 0: not known */
    double top1;  /* share of rows whose largest number is another one; NaN: there are no rows */
    double ns;    /* of a run, the least seen */
} nori__q_score;
nori_status nori__q_probe_make(nori__quantizer *q, nori__q_probe *probe);
void nori__q_probe_free(nori__q_probe *probe);
nori_status nori__q_probe_score(nori__quantizer *q, const nori__q_probe *probe,
                                nori_session *session, nori__q_score *score);

typedef struct nori__q_tries {
    nori__quantizer *q;
    nori__q_probe probe;
    nori__ir *original; /* constants are initializers, nothing is folded */
    size_t wide;       /* layers that AdaRound left out, the last time */
    double stricter;   /* dB that the budget is raised by: all samples asked for it */
    struct nori__q_group *groups; /* search_layers.c; the costliest first */
    size_t n_groups;
} nori__q_tries;
/* Memory, remarks and tables of a try, which go with it. */
typedef struct nori__q_scratch {
    nori__arena arena;
    nori_quantize_report *report;
} nori__q_scratch;
nori_status nori__q_scratch_begin(nori__quantizer *q, nori__q_scratch *kept);
void nori__q_scratch_end(nori__quantizer *q, nori__q_scratch *kept);
/* A model from the prepared graph with steps, method and units as they are, and its score. label
 * not NULL: it gets a line in the report. model may be NULL. */
nori_status nori__q_attempt(nori__q_tries *t, const char *label, nori__q_score *score,
                            nori_model **model);
/* Within the budget, by so many dB. */
bool nori__q_good(const nori__quantizer *q, double stricter, const nori__q_score *score);
/* The same over all samples, which run through both models. */
nori_status nori__q_score_all(nori__quantizer *q, const nori_model *model, nori__q_score *score);

/* search.c: the whole of a static quantization; *result is the model. */
nori_status nori__q_search(nori__quantizer *q, nori_model **result);
/* search_layers.c: which layers there are, and sparing them until the budget is met. */
nori_status nori__q_find_units(nori__quantizer *q);
nori_status nori__q_spare(nori__q_tries *t, nori__q_score *score);
/* search_time.c: times of each layer, and sparing those that integers slow down, if that is asked. */
nori_status nori__q_time_layers(nori__q_tries *t);

/* costs.c: takes chosen nodes out where integers would make the whole slower, by a table of costs. */
nori_status nori__q_spare_by_cost(nori__quantizer *q);

/* ---- what it has to say (search_report.c) ---- */

/* advice.c: what the ranges, the clipping and the layers spared suggest. */
void nori__q_give_advice(nori__q_tries *t);
void nori__q_advise(nori__quantizer *q, const char *fmt, ...) NORI__PRINTF(2, 3);
void nori__q_report_step(nori__quantizer *q, const char *name, bool kept, double before,
                         double after, const char *why);
/* A step that was reported as kept is not, after all. */
void nori__q_report_no_step(nori__quantizer *q, const char *name, const char *why);
void nori__q_report_unit(nori__quantizer *q, const nori__q_unit *unit);
void nori__q_report_try(nori__q_tries *t, const char *label, const nori__q_score *score,
                        uint64_t bytes);

#endif

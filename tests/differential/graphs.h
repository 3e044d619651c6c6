/* graphs.h: random valid graphs of 1 to 30 nodes, each run in many ways that must agree.
 *
 * graph_draw.c           a graph from a seed: operators by their facts, node by node, each tried
 * graph_draw_bodies.c    If, Loop and Scan
 * graph_recipes.c        chains as networks have them: what providers fuse
 * graph_recipes_quant.c  and quantize
 * graph_case.c           a case as a thing to copy, read, write
 * graph_measure.c        what a node gives, by the reference kernels alone
 * graph_noise.c          and how far rounding could move it
 * graph_bodies.c         the same of If, Loop and Scan: turn by turn, by the nodes of their bodies
 * graph_legal.c          what kernels take and the standard does not have
 * graph_ways.c           the ways a graph is run, in processes of their own, one a CPU level
 * graph_workers.c        those processes, and what crosses to them and back
 * graph_judge.c          what is a disagreement
 * graph_shrink.c         the smallest graph that shows it
 * graph_peer.c           what is put down to ONNX Runtime
 * graph_main.c           the command nori-graphs; docs/testing.md
 *
 * Yardstick: each node alone on the reference provider, at level 0. Each value is held three times:
 * as it is, and twice with noise of some roundings added behind every node. A node whose result
 * depends on such noise by more than a little (ties, cancellation) is not drawn; what is left of it
 * widens the tolerance.
 *
 * Other sizes: inputs may have named sizes. Then there is a second set of inputs, made of the first
 * by sizes that follow from the names (graph_case_other), and one session runs both and the first
 * again. */
#ifndef NORI_TESTS_DIFFERENTIAL_GRAPHS_H
#define NORI_TESTS_DIFFERENTIAL_GRAPHS_H

#include <stdio.h>
#include <stdlib.h>

/* The maker of tests says by cmocka what fails; here memory is all that can. */
#define assert_non_null(pointer)                                                                   \
    do {                                                                                           \
        if (!(pointer)) {                                                                          \
            fprintf(stderr, "out of memory\n");                                                    \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)
#define assert_int_equal(a, b) assert_non_null((void *)(uintptr_t)((a) == (b)))
#define print_error(...) ((void)0)
#include "../make_model.h"

#include "graph/tensor.h"
#include "nori/tools.h"

enum {
    GRAPHS_VARIANTS = 3,
    GRAPHS_VALUES = 512,
    GRAPHS_INPUTS = 8,
    GRAPHS_OUTPUTS = 8,
    GRAPHS_TEXT = 512
};

/* ---- numbers ---- */

typedef struct graphs_rng {
    uint64_t state;
} graphs_rng;
static inline uint64_t graphs_next(graphs_rng *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static inline int graphs_below(graphs_rng *r, int n)
{
    return n > 0 ? (int)(graphs_next(r) % (uint64_t)n) : 0;
}
static inline bool graphs_chance(graphs_rng *r, int percent)
{
    return graphs_below(r, 100) < percent;
}
static inline double graphs_unit(graphs_rng *r) /* -1 to 1 */
{
    return (double)(int64_t)graphs_next(r) / 9223372036854775808.0;
}

/* ---- a case ---- */

/* A model as messages, and what its inputs are fed, in the order of the graph's inputs. */
typedef struct graph_case {
    make m;
    nori_tensor *in[GRAPHS_INPUTS];
    size_t n_in;
    bool moves; /* sizes with names are free: they are run under other sizes too */
} graph_case;
/* The inputs under other sizes, freed by the caller; false: nothing moves. */
bool graph_case_other(const graph_case *c, nori_tensor **in);
/* The size that stands in the second set for one of that name. */
int64_t graphs_other_size(nori__str name, int64_t size);
/* Whether a node, or one of its bodies, reads a value of that name. */
bool graphs_reads(const nori__pb_node *n, nori__str name);
void graph_case_free(graph_case *c);
/* The same in an arena of its own. */
bool graph_case_copy(const graph_case *from, graph_case *to);
/* Another model in its place: that of bytes, which are copied. */
bool graph_case_take(graph_case *c, const char *bytes, size_t size);
void graph_case_tidy(graph_case *c); /* without what nothing reads */
/* model.onnx and input_N.pb of a folder; false with why. */
bool graph_case_read(const char *folder, graph_case *c, char *why);
bool graph_case_write(const char *folder, const graph_case *c, const char *why);

/* ---- measuring ---- */

typedef struct graphs_value {
    char name[24];
    nori_tensor *v[GRAPHS_VARIANTS];
    bool constant;
    int uses;
} graphs_value;
struct graphs_values;
/* How a case is looked at. */
typedef struct graphs_look {
    uint64_t noise; /* where its random numbers begin */
    bool coarse;    /* as wide as ONNX Runtime's curves are */
    /* Told of every node that was measured, in bodies at every turn; NULL: nobody is. */
    void (*seen)(void *by, const nori__pb_node *node, struct graphs_values *all);
    void *by;
} graphs_look;
typedef struct graphs_values {
    graphs_value items[GRAPHS_VALUES];
    size_t count;
    graphs_rng noise;
    graphs_look look;
} graphs_values;
graphs_value *graphs_find(graphs_values *all, nori__str name);
/* NULL: too many. The tensor is retained. */
graphs_value *graphs_add(graphs_values *all, const char *name, nori_tensor *exact, bool constant);
void graphs_cut(graphs_values *all, size_t count); /* frees those beyond */
/* Runs one node on what is known and adds its outputs; false with why where it does not run, or
 * where its result is not worth a comparison. strict: as for drawing, else only failing counts. */
bool graphs_measure(const make *m, const nori__pb_node *node, graphs_values *all, bool strict,
                    char *why);
bool graphs_measure_bodies(const make *m, const nori__pb_node *node, graphs_values *all,
                           bool strict, char *why);
bool graphs_has_bodies(const nori__pb_node *n); /* If, Loop, Scan */
bool graphs_add_initializers(const nori__pb_graph *g, graphs_values *all, char *why);
const nori__pb_attr *graphs_attr(const nori__pb_node *n, const char *name); /* or NULL */
/* Without that axis, at one place of it; NULL: of strings, or of less than bytes. */
nori_tensor *graphs_slice(const nori_tensor *t, int axis, int64_t at);
/* Both sets of inputs: [1] is NULL where there are no other sizes, or where they do not go. */
typedef struct graphs_sets {
    graphs_values *of[2];
} graphs_sets;
/* Initializers, inputs and all nodes of a case. */
bool graphs_measure_case(const graph_case *c, graphs_sets *sets, const graphs_look *look,
                         bool strict, char *why);
void graphs_sets_free(graphs_sets *sets);
/* Whether a tensor is not what was measured, beyond the tolerance that follows from it. */
bool graphs_differ(const nori_tensor *got, const graphs_value *want, char *why);
bool graphs_same_bits(const nori_tensor *a, const nori_tensor *b, char *why);
bool graphs_one_form(const nori_tensor *a, const nori_tensor *b); /* kind, type, shape */

/* How far the result of node n may be off, as noise in one variant (graph_noise.c). */
bool graphs_sums(const nori__pb_node *n);
void graphs_move_summands(nori_tensor **t, graphs_rng *r);
/* One node may read it rounded and another not. */
bool graphs_read_apart(const nori_tensor *t, const graphs_values *all);
void graphs_move_result(const nori__pb_node *n, nori_tensor **t, graphs_values *all);
double graphs_allowed(const graphs_value *want);
/* Whether a result can be compared at all: the same in every variant but for a little. */
bool graphs_steady(const graphs_value *v, char *why);
/* Whether a node asks for one number exactly where noise may make it. */
bool graphs_at_a_jump(const nori__pb_node *n, graphs_values *all, char *why);
/* Whether the standard has such a node (graph_legal.c). */
bool graphs_legal(const make *m, const nori__pb_node *n, const graphs_values *all, char *why);
bool graphs_is_flag(const char *name, size_t length); /* an attribute of 0 or 1 */

/* ---- drawing ---- */

/* From a seed; at most so many nodes. sets: what was measured on the way; freed by the caller. */
void graph_draw(uint64_t seed, int most_nodes, graph_case *c, graphs_sets *sets);

typedef struct drawing {
    graph_case *c;
    nori__pb_graph *into; /* the graph or body that nodes are added to */
    graphs_values *all,
        *other; /* under other sizes, NULL: there are none; the same names in the same order */
    graphs_rng rng;
    int opset, most, made, next, depth;
    bool wide; /* channels and images as large as kernels of their own need */
} drawing;
/* A recipe, a node with bodies, or any node; nothing where it does not run. */
void draw_step(drawing *d);
void draw_cut(drawing *d, size_t count);
/* A node whose outputs get names; attributes are added to what is returned, then it is tried. */
nori__pb_node *draw_node(drawing *d, const char *domain, const char *op, const char *inputs,
                         int outputs);
/* Its first output; NULL: it did not run and is gone. */
graphs_value *draw_try(drawing *d);
const char *draw_constant(drawing *d, nori_type type, int rank, const int64_t *dims, double low,
                          double high);
const char *draw_ints(drawing *d, int count, const int64_t *values);
const char *draw_scalar(drawing *d, nori_type type, double value); /* of rank 0 */
/* A tensor of one of these types (bits) and a rank in this range; NULL: none. */
graphs_value *draw_value(drawing *d, uint64_t types, int least_rank, int most_rank);
void draw_attr_float(drawing *d, nori__pb_node *n, const char *name, double value);
void draw_recipe(drawing *d);
void draw_bodies(drawing *d);
void draw_quantized_chain(drawing *d);
void draw_integer_product(drawing *d);
/* Short words of recipes. */
graphs_value *draw_unary(drawing *d, const char *op, const graphs_value *x);
graphs_value *draw_binary(drawing *d, const char *op, const char *a, const char *b);
graphs_value *draw_pool(drawing *d, const graphs_value *x);
void draw_pads(drawing *d, nori__pb_node *n, int spatial, int64_t most);
void draw_each(drawing *d, nori__pb_node *n, const char *name, int spatial, int64_t value);
enum { DRAW_FLOAT = 1 << NORI_FLOAT };

/* ---- ways ---- */

/* One way's answer. */
typedef struct graphs_answer {
    char label[48];
    int group;    /* those of one group other than 0 have the same bits */
    int status;   /* nori_status; 0: ran */
    int set;      /* of the two sets of inputs */
    bool excused; /* it may say no (a conversion that cannot be, ONNX Runtime) */
    bool same;    /* the first of its group, bit for bit: no outputs then */
    char text[GRAPHS_TEXT];
    nori_tensor *out[GRAPHS_OUTPUTS];
} graphs_answer;
enum { GRAPHS_ANSWERS = 48 };
typedef struct graphs_answers {
    graphs_answer items[GRAPHS_ANSWERS];
    size_t count;
} graphs_answers;
void graphs_answers_free(graphs_answers *a);

/* What a process does: its kind and CPU level. */
typedef enum graphs_kind { GRAPHS_LEVEL, GRAPHS_CHANGES, GRAPHS_ORT } graphs_kind;
/* Runs in the worker: all ways of a kind. ort: the library. */
typedef struct graphs_feeds {
    nori_tensor *in[2][GRAPHS_INPUTS]; /* [1][0] NULL: no other sizes */
    size_t count;
} graphs_feeds;
void graphs_run_ways(graphs_kind kind, const char *ort, const nori__str *model,
                     const graphs_feeds *feeds, graphs_answers *answers);

/* What ONNX Runtime is asked about besides the graph as it is: a model made of it. */
enum { GRAPHS_PEER_WAYS = 3 };
extern const char *const graphs_peer_labels[GRAPHS_PEER_WAYS];
nori_status graphs_peer_change(int way, const nori_model *model, nori_model **made);

/* ---- workers ---- */

typedef struct graphs_workers graphs_workers;
/* program: nori-graphs itself, by a path; ort may be NULL. */
graphs_workers *graphs_workers_open(const char *program, const char *ort);
void graphs_workers_close(graphs_workers *w);
size_t graphs_workers_count(const graphs_workers *w);
const char *graphs_worker_name(const graphs_workers *w, size_t i);
bool graphs_worker_is_ort(const graphs_workers *w, size_t i);
/* Whether worker i is asked about graph n: of the CPU levels below the best, one in turn. */
bool graphs_worker_takes(const graphs_workers *w, size_t i, unsigned long long n);
/* What worker i says of a case; false: it ended over it (and was begun again). */
bool graphs_worker_ask(graphs_workers *w, size_t i, const graph_case *c, graphs_answers *answers);
/* The same in two steps, so that all are busy at once. */
bool graphs_worker_send(graphs_workers *w, size_t i, const graph_case *c);
bool graphs_worker_receive(graphs_workers *w, size_t i, graphs_answers *answers);
int graphs_worker_main(int argc, char **argv); /* nori-graphs --worker KIND [ORT] */

/* ---- judging ---- */

typedef struct graphs_fault {
    char kind[16]; /* "differs" "bits" "fails" "crashes" */
    size_t worker;
    char way[48];
    char text[GRAPHS_TEXT];
} graphs_fault;
/* Of one worker's answers; false: there is no fault. */
bool graphs_judge(const graph_case *c, const graphs_sets *sets, bool answered,
                  const graphs_answers *answers, graphs_fault *fault);
/* Whether worker i answers a case wrongly, however noise falls. */
bool graphs_faulty(graphs_workers *w, size_t i, const graph_case *c, graphs_fault *fault);
/* One node of a case or of a body in it, fed with what was measured; false: too many inputs. The
 * case must outlive it. */
bool graph_case_one(const graph_case *c, graphs_values *all, const nori__pb_node *node,
                    graph_case *one);
/* Smaller cases of the same fault, in place. */
void graphs_shrink(graphs_workers *w, graph_case *c, graphs_fault *fault);

/* ---- ONNX Runtime ---- */

/* Whether a fault of its worker is one of the places where it does not do what the standard says. */
bool graphs_peer_differs(graphs_workers *w, size_t i, const graph_case *c,
                         const graphs_fault *fault);
void graphs_peer_report(void); /* which operators those were, in this run */

#endif

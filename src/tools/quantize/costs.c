/* costs.c: which nodes integers would make slower, by a table of costs. A layer with little work, or one
 * between float nodes, loses more to quantizing and dequantizing than it wins; some operators have no
 * integer kernel that is faster. Float or integers for every node, so that the sum of what nodes and
 * changes of form cost is least: a minimum cut (R. E. Picard, H. D. Ratliff, 1975).
 *
 * The table is not measured where the quantizer runs: what is written depends on the model and its
 * samples alone. Its numbers are those of one machine (bench/int8_costs.py); where one is off by half, a
 * layer near the line falls on the other side of it, and both sides cost about the same there. */
#include <math.h>

#include "ops/op.h"
#include "tools/divide/divides.h"
#include "tools/quantize/search.h"

/* Integers must win by so much: where both take as long, float loses nothing. */
#define MARGIN 1.05
/* A byte that integers save is worth so many nanoseconds, while the whole stays faster than float. */
#define BYTE 0.05
/* What integers win of the whole run has to be more than what the table cannot know; less is worth it only
 * where it makes the weights so much smaller. */
#define LEAST_WON 0.03
#define LEAST_SAVED 0.10

/* Nanoseconds: of a run, of an element of the result, of a product that is added to it. */
typedef struct cost {
    double run, element, product;
} cost;
typedef struct costs {
    cost floats, ints;
} costs;

static const costs conv_costs = {{300, 0.50, 0.0085}, {600, 0.28, 0.0026}};
static const costs stem_costs = {{300, 0.70, 0.0110}, {600, 0.40, 0.0026}}; /* of few channels */
static const costs widening_costs = {{300, 0.28, 0.0085}, {600, 0.28, 0.0026}}; /* see widens */
static const costs conv3_costs = {{300, 0.50, 0.0040}, {600, 0.28, 0.0026}}; /* Winograd's form */
static const costs depthwise_costs = {{300, 0.05, 0.0220}, {600, 0.16, 0.0220}};
static const costs product_costs = {{80, 0.50, 0.0108}, {300, 0.50, 0.0040}};

/* Of an element of the larger of what is read and made. Zeros: the node before or behind does it. */
static const struct {
    nori__op_id id;
    costs costs;
} others[] = {
    {NORI__OP_ONNX_Add, {{100, 0.05, 0}, {300, 0.29, 0}}},
    {NORI__OP_ONNX_Mul, {{100, 0.10, 0}, {300, 0.31, 0}}},
    {NORI__OP_ONNX_Sigmoid, {{50, 0.10, 0}, {100, 0.30, 0}}},
    {NORI__OP_ONNX_LeakyRelu, {{0, 0.02, 0}, {100, 0.30, 0}}},
    {NORI__OP_ONNX_Softmax, {{100, 0.25, 0}, {300, 4.80, 0}}},
    {NORI__OP_ONNX_MaxPool, {{100, 0.20, 0}, {200, 0.15, 0}}},
    {NORI__OP_ONNX_AveragePool, {{100, 0.20, 0}, {200, 2.10, 0}}},
    {NORI__OP_ONNX_GlobalAveragePool, {{100, 0.04, 0}, {200, 0.53, 0}}},
    {NORI__OP_ONNX_Concat, {{50, 0.02, 0}, {150, 0.08, 0}}},
    {NORI__OP_ONNX_Transpose, {{100, 0.25, 0}, {100, 0.10, 0}}},
    {NORI__OP_ONNX_Split, {{50, 0.05, 0}, {50, 0.02, 0}}},
    {NORI__OP_ONNX_Slice, {{50, 0.05, 0}, {50, 0.02, 0}}},
    {NORI__OP_ONNX_DepthToSpace, {{100, 0.25, 0}, {100, 0.10, 0}}},
    {NORI__OP_ONNX_SpaceToDepth, {{100, 0.25, 0}, {100, 0.10, 0}}},
    {NORI__OP_ONNX_Resize, {{100, 0.25, 0}, {100, 0.10, 0}}},
};
static const cost to_ints = {200, 0.45, 0}, to_floats = {150, 0.30, 0};
/* Of pictures, whose channels lie otherwise on either side: last, in blocks. */
static const cost pictures_to_ints = {600, 0.80, 0}, pictures_to_floats = {450, 0.80, 0};
static const double parted = 0.30; /* of an element, where the reader would else be part of the maker */
static const cost inputs_to_ints = {200, 0.40, 0}; /* of the graph: they are nowhere else yet */
/* Pictures of the graph itself are planes outside: float kernels turn them into blocks and back, too. */
static const cost input_pictures_to_ints = {200, 0.15, 0}, output_pictures_to_floats = {150, 0.10, 0};
static const double unknown = 0.10; /* of an element, what is in no table */

/* Channels are computed in blocks of so many; those of depthwise convolutions on integers in longer ones,
 * which neighbouring pixels fill up where the kernel moves by one. */
#define BLOCK 16
#define DEEP_BLOCK 64
#define FEW 4 /* channels of a picture */

/* ---- what a node costs ---- */

/* Nodes of the main graph that read a value, by its id. */
typedef struct readers {
    nori__node **nodes;
    uint32_t *first;
} readers;

static const nori__node *only_reader(const nori__value *v, const readers *r)
{
    bool one = v && v->uses == 1 && r->first[v->id + 1] - r->first[v->id] == 1;
    return one ? r->nodes[r->first[v->id]] : NULL;
}

static bool is_depthwise(const nori__node *n)
{
    const nori_tensor *w =
        nori__node_is(n, NORI__OP_ONNX_Conv) && n->input_count > 1 ? nori__value_const(n->inputs[1]) : NULL;
    return w && w->rank == 4 && w->dims[1] == 1 &&
           (nori__attr_i(n, "group", 1) > 1 || w->dims[0] == 1); /* heads of one channel, too */
}

/* A product of channels whose result nothing but a depthwise convolution reads, behind what is done along
 * with it: float kernels make the two in one, and what is between them stays in the cache. */
static bool widens(const nori__node *n, const readers *r)
{
    static const nori__op_id between[] = {NORI__OP_ONNX_BatchNormalization, NORI__OP_ONNX_Relu,
                                          NORI__OP_ONNX_Clip, NORI__OP_ONNX_HardSwish, NORI__OP_ONNX_Pad};
    const nori_tensor *w =
        nori__node_is(n, NORI__OP_ONNX_Conv) && n->input_count > 1 ? nori__value_const(n->inputs[1]) : NULL;
    bool point = w && w->rank == 4 && w->dims[2] == 1 && w->dims[3] == 1 && nori__attr_i(n, "group", 1) == 1;
    for (int step = 0; point && step < 4; step++) {
        const nori__node *next = only_reader(n->outputs[0], r);
        bool passes = false;
        for (size_t i = 0; next && i < NORI__COUNT(between); i++) {
            passes = passes || nori__node_is(next, between[i]);
        }
        if (!next || !passes) {
            return next && is_depthwise(next);
        }
        n = next;
    }
    return false;
}

/* Elements of a value in a run, by the samples. */
static double elements(const nori__quantizer *q, const nori__value *v)
{
    const nori__observer *o = v && v->id < q->n_values ? nori__q_of(q, v)->seen : NULL;
    return o && o->calls > 0 ? (double)(o->count + o->nan + o->inf) / (double)o->calls : 0;
}

static double of(cost c, double made, double products)
{
    return c.run + c.element * made + c.product * products;
}

typedef struct pair {
    double floats, ints; /* nanoseconds */
} pair;

static pair both_of(costs c, double made, double products)
{
    return (pair){of(c.floats, made, products), of(c.ints, made, products) * MARGIN};
}

static pair conv_cost(const nori__node *n, const readers *r, const nori_tensor *w, double made, double read)
{
    double group = (double)nori__attr_i(n, "group", 1), channels = (double)w->dims[0];
    double depth = channels > 0 ? (double)w->count / channels : 0, own = channels / (group > 0 ? group : 1);
    if (nori__node_is(n, NORI__OP_ONNX_ConvTranspose)) { /* no kernel on integers: float between changes */
        double spent = of(conv_costs.floats, made, read * depth);
        return (pair){spent, spent + of(to_floats, read, 0) + of(to_ints, made, 0)};
    }
    size_t count = 0;
    const int64_t *strides = nori__attr_ints(n, "strides", &count);
    bool ones = true;
    for (size_t i = 0; i < count; i++) {
        ones = ones && strides[i] == 1;
    }
    if (is_depthwise(n)) {
        double pixels = ones && channels > 0 ? floor(DEEP_BLOCK / channels) : 1;
        double block = channels * (pixels > 1 ? pixels : 1);
        double full = block > 0 ? made * ceil(block / DEEP_BLOCK) * DEEP_BLOCK / block : made;
        return (pair){of(depthwise_costs.floats, made, made * depth),
                      of(depthwise_costs.ints, full, full * depth) * MARGIN};
    }
    double filled = own > 0 ? made * ceil(own / BLOCK) * BLOCK / own : made;
    bool three = w->rank == 4 && w->dims[2] == 3 && w->dims[3] == 3 && group == 1 && ones;
    costs c = own == channels && w->dims[1] <= FEW ? stem_costs
              : three                             ? conv3_costs
              : widens(n, r)                      ? widening_costs
                                                  : conv_costs;
    return both_of(c, filled, filled * depth);
}

static pair weighted_cost(const nori__quantizer *q, const readers *r, const nori__node *n)
{
    double made = elements(q, n->outputs[0]), read = elements(q, n->inputs[0]);
    const nori_tensor *w = nori__value_const(n->inputs[1]); /* always, while a search goes on */
    if (!w) {
        return (pair){0, 0};
    }
    if (nori__node_is(n, NORI__OP_ONNX_Conv) || nori__node_is(n, NORI__OP_ONNX_ConvTranspose)) {
        return conv_cost(n, r, w, made, read);
    }
    int64_t columns = w->rank > 0 ? w->dims[w->rank - 1] : 1;
    columns = nori__attr_i(n, "transB", 0) && w->rank > 0 ? w->dims[0] : columns;
    return both_of(product_costs, made, columns > 0 ? made * (double)w->count / (double)columns : 0);
}

static pair cost_of(const nori__quantizer *q, const readers *r, const nori__node *n)
{
    if (nori__q_role_of(n) == NORI__Q_WEIGHTED) {
        return weighted_cost(q, r, n);
    }
    double made = elements(q, n->outputs[0]), read = elements(q, n->inputs[0]);
    for (size_t i = 0; n->op && i < NORI__COUNT(others); i++) {
        if (others[i].id == n->op->id) {
            return both_of(others[i].costs, made > read ? made : read, 0);
        }
    }
    return (pair){0, 0};
}

/* Bytes that integers save. */
static double saved(const nori__node *n)
{
    const nori_tensor *w = n->input_count > 1 ? nori__value_const(n->inputs[1]) : NULL;
    return nori__q_role_of(n) == NORI__Q_WEIGHTED && w ? 3 * (double)w->count : 0;
}

/* ---- the cut ---- */

typedef struct cut {
    nori__quantizer *q;
    nori__flow *flow; /* node i + 2 is the graph's node of that id; what comes behind: values */
    size_t next;      /* of those for values */
} cut;
enum { INTS, FLOATS }; /* source and sink */

static size_t at(const cut *c, const nori__node *n)
{
    bool own = n && n->graph == c->q->ir->main && c->q->chosen[n->id];
    return own ? (size_t)n->id + 2 : FLOATS;
}

static int64_t picoseconds(double ns)
{
    return ns < 1e12 ? (int64_t)(ns * 1000) : (int64_t)1e15;
}

static nori_status find_readers(nori__quantizer *q, readers *r, size_t *uses)
{
    *uses = 0;
    r->first = nori__arena_array(&q->arena, (size_t)q->n_values + 2, sizeof(*r->first));
    uint32_t *used = nori__arena_array(&q->arena, (size_t)q->n_values + 1, sizeof(*used));
    if (!r->first || !used) {
        return nori__no_memory(q->err);
    }
    for (const nori__node *n = q->ir->main->first; n; n = n->next) {
        for (uint32_t i = 0; i < n->input_count; i++) {
            if (n->inputs[i]) {
                r->first[n->inputs[i]->id + 1]++;
                ++*uses;
            }
        }
    }
    for (uint32_t i = 0; i < q->n_values; i++) {
        r->first[i + 1] += r->first[i];
    }
    r->nodes = nori__arena_array(&q->arena, *uses + 1, sizeof(*r->nodes));
    if (!r->nodes) {
        return nori__no_memory(q->err);
    }
    for (nori__node *n = q->ir->main->first; n; n = n->next) {
        for (uint32_t i = 0; i < n->input_count; i++) {
            const nori__value *v = n->inputs[i];
            if (v) {
                r->nodes[r->first[v->id] + used[v->id]++] = n;
            }
        }
    }
    return NORI_OK;
}

static bool reads_data(const nori__node *n, const nori__value *v)
{
    for (uint32_t k = 0; k < nori__q_data_inputs(n); k++) {
        if (n->inputs[k] == v) {
            return true;
        }
    }
    return false;
}

static bool counts(const nori__quantizer *q, const nori__value *v)
{
    return !nori__value_const(v) && nori__q_of(q, v)->seen;
}

/* Whether the only reader is one that float kernels do along with the weighted node before it. */
static bool would_join(const nori__value *v, const readers *r)
{
    static const nori__op_id ids[] = {NORI__OP_ONNX_BatchNormalization, NORI__OP_ONNX_HardSwish,
                                      NORI__OP_ONNX_HardSigmoid, NORI__OP_ONNX_Relu,
                                      NORI__OP_ONNX_Clip, NORI__OP_ONNX_Sigmoid,
                                      NORI__OP_ONNX_Add, NORI__OP_ONNX_Mul};
    bool one = v->uses == 1 && r->first[v->id + 1] - r->first[v->id] == 1 && v->producer &&
               nori__q_role_of(v->producer) == NORI__Q_WEIGHTED;
    for (size_t i = 0; one && i < NORI__COUNT(ids); i++) {
        if (nori__node_is(r->nodes[r->first[v->id]], ids[i])) {
            return true;
        }
    }
    return false;
}

/* Input channels of the convolution that reads it; 0: none does. */
static int64_t channels_read(const nori__value *v, const readers *r)
{
    int64_t most = 0;
    for (uint32_t i = r->first[v->id]; i < r->first[v->id + 1]; i++) {
        const nori__node *n = r->nodes[i];
        const nori_tensor *w = nori__node_is(n, NORI__OP_ONNX_Conv) && n->inputs[0] == v
                                   ? nori__value_const(n->inputs[1])
                                   : NULL;
        int64_t channels = w && w->rank == 4 ? w->dims[1] * nori__attr_i(n, "group", 1) : 0;
        most = channels > most ? channels : most;
    }
    return most;
}

/* What a convolution makes or reads. */
static bool is_picture(const nori__value *v, const readers *r)
{
    const nori__node *maker = v->producer;
    if (maker && nori__q_role_of(maker) == NORI__Q_ACTIVATION && maker->inputs[0]) {
        maker = maker->inputs[0]->producer; /* it is done along with the convolution */
    }
    bool picture = maker && nori__node_is(maker, NORI__OP_ONNX_Conv);
    for (uint32_t i = r->first[v->id]; !picture && i < r->first[v->id + 1]; i++) {
        const nori__node *n = r->nodes[i];
        picture = nori__node_is(n, NORI__OP_ONNX_Conv) && n->inputs[0] == v;
    }
    return picture;
}

/* What a depthwise convolution reads of a product that float kernels make along with it. */
static bool narrows(const nori__value *v, const readers *r)
{
    const nori__node *reader = only_reader(v, r), *n = v->producer;
    if (!reader || !is_depthwise(reader)) {
        return false;
    }
    for (int step = 0; n && step < 4 && !nori__node_is(n, NORI__OP_ONNX_Conv); step++) {
        n = n->input_count > 0 && n->inputs[0] ? n->inputs[0]->producer : NULL;
    }
    return n && widens(n, r);
}

static double change_cost(const nori__quantizer *q, const nori__value *v, const readers *r, bool ints)
{
    double count = elements(q, v), more = !ints && would_join(v, r) ? parted * count : 0;
    bool picture = is_picture(v, r);
    cost back = picture ? pictures_to_floats : to_floats, forth = picture ? pictures_to_ints : to_ints;
    if (ints && v->producer && narrows(v, r)) {
        more += parted * count; /* the two are no longer one */
    }
    if (!v->producer) { /* few channels are read as they lie */
        forth = channels_read(v, r) > FEW ? input_pictures_to_ints : inputs_to_ints;
    }
    if (picture && v->uses > 0 && r->first[v->id + 1] == r->first[v->id]) {
        back = output_pictures_to_floats;
    }
    return of(ints ? forth : back, count, 0) + more;
}

/* What it costs where who makes a value and who reads it differ in form: once, however many read. */
static void add_value(cut *c, const nori__value *v, const readers *r)
{
    uint32_t first = r->first[v->id], end = r->first[v->id + 1];
    size_t from = at(c, v->producer), back = c->next++, forth = c->next++;
    nori__flow_edge(c->flow, back, from, picoseconds(change_cost(c->q, v, r, true)));
    nori__flow_edge(c->flow, from, forth, picoseconds(change_cost(c->q, v, r, false)));
    for (uint32_t i = first; i < end; i++) {
        const nori__node *n = r->nodes[i];
        size_t to = reads_data(n, v) ? at(c, n) : FLOATS;
        nori__flow_edge(c->flow, forth, to, NORI__FLOW_ENDLESS);
        if (to != FLOATS) { /* only weighted nodes have what they read quantized for them */
            bool weighted = nori__q_role_of(n) == NORI__Q_WEIGHTED;
            nori__flow_edge(c->flow, to, weighted ? back : from, NORI__FLOW_ENDLESS);
        }
    }
    if (end - first != v->uses) { /* an output, or a subgraph */
        nori__flow_edge(c->flow, forth, FLOATS, NORI__FLOW_ENDLESS);
    }
}

/* The chosen nodes that the cheapest cut leaves float, by id, where a byte saved is worth so much. */
static nori_status solve(nori__quantizer *q, const readers *r, size_t uses, double byte, bool *floats)
{
    size_t nodes = (size_t)q->n_nodes + 2, values = (size_t)q->n_values;
    cut c = {.q = q, .next = nodes};
    c.flow = nori__flow_new(nodes + 2 * values + 2, 2 * (size_t)q->n_nodes + 3 * values + 2 * uses + 1);
    if (!c.flow) {
        return nori__no_memory(q->err);
    }
    for (const nori__node *n = q->ir->main->first; n; n = n->next) {
        if (q->chosen[n->id]) {
            pair p = cost_of(q, r, n);
            nori__flow_edge(c.flow, INTS, (size_t)n->id + 2, picoseconds(p.floats + byte * saved(n)));
            nori__flow_edge(c.flow, (size_t)n->id + 2, FLOATS, picoseconds(p.ints));
        }
    }
    for (const nori__value *v = q->ir->main->values; v; v = v->next) {
        if (counts(q, v)) {
            add_value(&c, v, r);
        }
    }
    nori__flow_run(c.flow, INTS, FLOATS);
    for (const nori__node *n = q->ir->main->first; n; n = n->next) {
        floats[n->id] = q->chosen[n->id] && nori__flow_far(c.flow, (size_t)n->id + 2);
    }
    nori__flow_free(c.flow);
    return NORI_OK;
}

/* What integers win over all by the table, with nodes float as told: nanoseconds. */
static double won(const nori__quantizer *q, const readers *r, const bool *floats)
{
    double sum = 0;
    for (const nori__node *n = q->ir->main->first; n; n = n->next) {
        if (q->chosen[n->id] && !floats[n->id]) {
            pair p = cost_of(q, r, n);
            sum += p.floats - p.ints / MARGIN; /* as long is enough: bytes are saved */
        }
    }
    for (const nori__value *v = q->ir->main->values; v; v = v->next) {
        bool made = v->producer && v->producer->graph == q->ir->main &&
                    q->chosen[v->producer->id] && !floats[v->producer->id];
        uint32_t first = r->first[v->id], end = r->first[v->id + 1];
        bool one = false, other = end - first != v->uses; /* reads integers; reads floats */
        for (uint32_t i = first; i < end; i++) {
            const nori__node *n = r->nodes[i];
            bool ints = q->chosen[n->id] && !floats[n->id] && reads_data(n, v);
            one = one || ints;
            other = other || !ints;
        }
        if (counts(q, v) && (made ? other : one)) {
            sum -= change_cost(q, v, r, !made);
        }
    }
    return sum;
}

/* Whether that is enough of a run, or of the weights, to be worth the integers' errors. */
static bool worth(const nori__quantizer *q, const readers *r, const bool *floats)
{
    double run = 0, bytes = 0, gone = 0;
    bool any = false;
    for (const nori__node *n = q->ir->main->first; n; n = n->next) {
        double made = n->output_count > 0 && n->outputs[0] ? elements(q, n->outputs[0]) : 0;
        double known = cost_of(q, r, n).floats;
        run += known > 0 ? known : made * unknown;
        any = any || (q->chosen[n->id] && !floats[n->id]);
        gone += q->chosen[n->id] && !floats[n->id] ? saved(n) : 0;
    }
    for (const nori__value *v = q->ir->main->values; v; v = v->next) {
        const nori_tensor *t = v->uses > 0 ? nori__value_const(v) : NULL;
        bytes += t ? (double)t->bytes : 0;
    }
    return !any || won(q, r, floats) >= LEAST_WON * run || gone >= LEAST_SAVED * bytes;
}

static void report(nori__quantizer *q, const readers *r, const nori__node *n, bool little)
{
    if (little) {
        nori__q_report_node(q, n, "what all integers together would win of a run is too little");
        return;
    }
    pair p = cost_of(q, r, n);
    if (nori__q_role_of(n) != NORI__Q_WEIGHTED) {
        nori__q_report_node(q, n, "its neighbours stay float");
    } else if (p.ints >= p.floats) {
        nori__q_report_node(q, n, "it has too little work: integers are no faster");
    } else {
        nori__q_report_node(q, n, "quantizing and dequantizing around it take longer than integers win");
    }
}

nori_status nori__q_spare_by_cost(nori__quantizer *q)
{
    readers r;
    size_t uses;
    q->by_cost = q->weighed = 0;
    q->little = false;
    if (!q->options->search || q->options->size_first || q->alone) {
        return NORI_OK;
    }
    NORI__TRY(find_readers(q, &r, &uses));
    bool *floats = nori__arena_array(&q->arena, (size_t)q->n_nodes + 1, sizeof(*floats));
    if (!floats) {
        return nori__no_memory(q->err);
    }
    NORI__TRY(solve(q, &r, uses, BYTE, floats));
    if (won(q, &r, floats) <= 0) {
        NORI__TRY(solve(q, &r, uses, 0, floats));
    }
    q->little = !worth(q, &r, floats);
    for (const nori__node *n = q->ir->main->first; n; n = n->next) {
        q->weighed += q->chosen[n->id] && nori__q_role_of(n) == NORI__Q_WEIGHTED;
        if (q->chosen[n->id] && (floats[n->id] || q->little)) {
            report(q, &r, n, !floats[n->id]);
            q->chosen[n->id] = false;
            q->by_cost += nori__q_role_of(n) == NORI__Q_WEIGHTED;
        }
    }
    return NORI_OK;
}

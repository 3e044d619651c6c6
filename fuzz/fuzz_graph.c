/* fuzz_graph.c: small graphs that are valid as far as the table of facts says, made by an input's bytes:
 * operators of THE list, their required and some optional attributes, values wired to inputs of a type
 * they take. The same bytes make the same graph. */
#include "fuzz_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The maker of tests says by cmocka what fails. */
#define assert_non_null(pointer) FUZZ_HOLDS((pointer) != NULL)
#define assert_int_equal(a, b) FUZZ_HOLDS((a) == (b))
#define print_error(...) ((void)0)
#include "make_model.h"
#include "ops/op.h"
#include "ops/schema.h"

enum { VALUES = 128, INPUTS = FUZZ_GRAPH_INPUTS, OPSET = 23 };

typedef struct maker {
    make m;
    const uint8_t *at, *end;
    struct {
        char name[16];
        nori_type type; /* UNDEFINED: the graph will tell */
    } values[VALUES];
    int n_values;
    bool steps; /* some node jumps where its input moves a little */
    int n_inputs;
    nori_type in_types[INPUTS];
    int in_ranks[INPUTS];
    int64_t in_dims[INPUTS][4];
} maker;

static unsigned byte(maker *k)
{
    return k->at < k->end ? *k->at++ : 0;
}

static nori_type some_type(maker *k)
{
    static const nori_type types[] = {NORI_FLOAT, NORI_FLOAT, NORI_INT64, NORI_INT32,  NORI_BOOL,
                                      NORI_UINT8, NORI_INT8,  NORI_FLOAT16, NORI_DOUBLE, NORI_STRING};
    return types[byte(k) % NORI__COUNT(types)];
}

static int64_t some_dim(maker *k)
{
    static const int64_t dims[] = {1, 2, 3, 4, 5, 0, 7, 8};
    return dims[byte(k) % NORI__COUNT(dims)];
}

/* Integers where kernels look for edges: axes, sizes, offsets. */
static int64_t some_int(maker *k)
{
    static const int64_t far[] = {INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, (int64_t)1 << 40, -100,
                                  1000,      65536};
    unsigned b = byte(k);
    return b < 224 ? (int64_t)(b % 14) - 5 : far[b % NORI__COUNT(far)];
}

static void add_value(maker *k, const char *name, nori_type type)
{
    if (k->n_values < VALUES) {
        snprintf(k->values[k->n_values].name, sizeof(k->values[0].name), "%s", name);
        k->values[k->n_values++].type = type;
    }
}

static void shape_text(const int64_t *dims, int rank, char *text, size_t room)
{
    size_t n = 0;
    text[0] = 0;
    for (int d = 0; d < rank; d++) {
        n += (size_t)snprintf(text + n, room - n, "%s%lld", d ? " " : "", (long long)dims[d]);
    }
}

static void add_inputs(maker *k)
{
    char name[16], shape[64];
    k->n_inputs = 1 + (int)(byte(k) % INPUTS);
    for (int i = 0; i < k->n_inputs; i++) {
        k->in_types[i] = some_type(k);
        k->in_ranks[i] = (int)(byte(k) % 5);
        for (int d = 0; d < k->in_ranks[i]; d++) {
            k->in_dims[i][d] = some_dim(k);
        }
        snprintf(name, sizeof(name), "x%d", i);
        shape_text(k->in_dims[i], k->in_ranks[i], shape, sizeof(shape));
        make_input(&k->m, &k->m.graph, name, k->in_types[i], shape);
        add_value(k, name, k->in_types[i]);
    }
}

/* A constant of a type: the axes, shapes, scales and zero points that operators ask for. */
static const char *add_constant(maker *k, nori_type type)
{
    char name[16];
    unsigned count = byte(k) % 5, rank = byte(k) % 8 == 0 ? 0 : 1;
    nori__pb_tensor *t = MAKE_ADD(&k->m, k->m.graph.initializers);
    snprintf(name, sizeof(name), "c%d", k->n_values);
    t->name = make_str(&k->m, name);
    t->data_type = type;
    count = rank == 0 ? 1 : count;
    if (rank == 1) {
        *MAKE_ADD(&k->m, t->dims) = count;
    }
    for (unsigned i = 0; i < count; i++) {
        int64_t v = some_int(k);
        if (type == NORI_FLOAT) {
            *MAKE_ADD(&k->m, t->floats) = (float)v / 2;
        } else if (type == NORI_DOUBLE) {
            *MAKE_ADD(&k->m, t->doubles) = (double)v;
        } else if (type == NORI_STRING) {
            *MAKE_ADD(&k->m, t->strings) = make_str(&k->m, v & 1 ? "a b" : "");
        } else if (type == NORI_UINT64 || type == NORI_UINT32) {
            *MAKE_ADD(&k->m, t->uints) = (uint64_t)v & 255;
        } else { /* what does not fit the type is refused, which is a border too */
            *MAKE_ADD(&k->m, t->ints) = type == NORI_INT64 || byte(k) % 16 == 0 ? v : v & 1;
        }
    }
    add_value(k, name, type);
    return k->values[k->n_values - 1].name;
}

static nori_type first_of(maker *k, uint64_t types)
{
    static const nori_type liked[] = {NORI_FLOAT, NORI_INT64, NORI_INT32, NORI_UINT8,
                                      NORI_INT8,  NORI_BOOL,  NORI_STRING, NORI_DOUBLE};
    for (size_t i = 0, from = byte(k); i < NORI__COUNT(liked); i++) {
        nori_type t = liked[(from + i) % NORI__COUNT(liked)];
        if (types & ((uint64_t)1 << t)) {
            return t;
        }
    }
    return NORI_FLOAT;
}

/* A value for an input: one that is there and fits, or a constant. */
static const char *argument(maker *k, uint64_t types)
{
    unsigned how = byte(k);
    for (int tries = 0; how % 4 != 0 && tries < k->n_values; tries++) {
        int i = (int)((how / 4 + (unsigned)tries) % (unsigned)k->n_values);
        nori_type t = k->values[i].type;
        if (t == NORI_UNDEFINED || (types & ((uint64_t)1 << t))) {
            return k->values[i].name;
        }
    }
    return k->n_values < VALUES ? add_constant(k, first_of(k, types)) : k->values[0].name;
}

static void text_attr(maker *k, nori__pb_node *n, const nori__schema_attr *a)
{
    static const char *const words[] = {"NOTSET",  "VALID", "SAME_UPPER", "SAME_LOWER", "linear",   "nearest",
                                        "cubic",   "add",   "mul",        "none",       "constant", "reflect",
                                        "edge",    "wrap",  "forward",    "reverse",    "bidirectional",
                                        "ij,jk->ik", "...i->i...", "bij,bjk", "mean", "sum", "DCR",
                                        "CRD", "RGB"};
    make_attr_text(&k->m, n, a->name, words[byte(k) % NORI__COUNT(words)]);
}

static void add_attr(maker *k, nori__pb_node *n, const nori__schema_attr *a)
{
    unsigned count = 0;
    nori__pb_attr *to;
    switch (a->kind) {
    case NORI__ATTR_INT:
        make_attr_int(&k->m, n, a->name, some_int(k));
        break;
    case NORI__ATTR_FLOAT:
        make_attr(&k->m, n, a->name, NORI__ATTR_FLOAT)->f = (float)some_int(k) / 4;
        break;
    case NORI__ATTR_STRING:
        text_attr(k, n, a);
        break;
    case NORI__ATTR_INTS:
        to = make_attr(&k->m, n, a->name, NORI__ATTR_INTS);
        for (count = byte(k) % 6; count > 0; count--) {
            *MAKE_ADD(&k->m, to->ints) = some_int(k);
        }
        break;
    case NORI__ATTR_FLOATS:
        to = make_attr(&k->m, n, a->name, NORI__ATTR_FLOATS);
        for (count = byte(k) % 6; count > 0; count--) {
            *MAKE_ADD(&k->m, to->floats) = (float)some_int(k) / 4;
        }
        break;
    case NORI__ATTR_STRINGS:
        to = make_attr(&k->m, n, a->name, NORI__ATTR_STRINGS);
        for (count = byte(k) % 6; count > 0; count--) {
            *MAKE_ADD(&k->m, to->strings) = make_str(&k->m, count & 1 ? "forward" : "b");
        }
        break;
    case NORI__ATTR_TENSOR: {
        nori__pb_tensor *t = nori__arena_alloc(&k->m.arena, sizeof(*t));
        assert_non_null(t);
        t->data_type = some_type(k);
        t->data_type = t->data_type == NORI_STRING ? NORI_INT64 : t->data_type;
        *MAKE_ADD(&k->m, t->dims) = 1;
        if (t->data_type == NORI_FLOAT) {
            *MAKE_ADD(&k->m, t->floats) = 2;
        } else if (t->data_type == NORI_DOUBLE) {
            *MAKE_ADD(&k->m, t->doubles) = 2;
        } else {
            *MAKE_ADD(&k->m, t->ints) = 1;
        }
        make_attr(&k->m, n, a->name, NORI__ATTR_TENSOR)->t = t;
        break;
    }
    default: /* graphs: what needs one is refused without */
        break;
    }
}

/* The operators that can stand in such a graph, found once. */
static const nori__schema *pick(maker *k)
{
    static const nori__schema *list[1024];
    static size_t count;
    static bool filled;
    for (size_t i = 0; !filled && nori__op_at(i) && count < NORI__COUNT(list); i++) {
        const nori__op *op = nori__op_at(i);
        int64_t opset = op->domain == NORI__ONNX ? OPSET : op->domain == NORI__ML ? 5 : 1;
        const nori__schema *s = nori__schema_find(nori__domain_name(op->domain), op->name, opset);
        uint32_t flags = NORI__OP_CONTROL | NORI__OP_RANDOM; /* two runs of the latter need not agree */
        if (s && !s->deprecated && !(op->flags & flags) && nori__op_runs(op)) {
            list[count++] = s;
        }
    }
    filled = true;
    unsigned at = byte(k) << 8;
    at |= byte(k);
    return list[at % count];
}

/* Operators whose result jumps where an input moves a little, or that say how a number is stored. */
static bool jumps(const nori__schema *s)
{
    static const char *const names[] = {
        "Floor", "Ceil", "Round", "Sign", "Cast", "CastLike", "Mod", "ArgMax", "ArgMin", "TopK", "Unique",
        "NonZero", "Hardmax", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "IsNaN", "IsInf",
        "Not", "ThresholdedRelu", "Shrink", "NonMaxSuppression", "Binarizer", "BitCast", "Where", "Compress",
        "Gather", "Resize", "Upsample", "RoiAlign", "MaxRoiPool", "MaxUnpool", "GridSample", "DFT", "STFT",
        "TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor", "SVMClassifier", "LabelEncoder",
        "LinearClassifier", "SVMRegressor", "Det", "Reciprocal", "Div", "Tan", "Pow", "Log", "Asin", "Acos",
        "Acosh", "Atanh", "Sqrt", "MaxPool", "LpNormalization", "ReduceLogSum", "BitShift", "MatMulNBits"};
    bool found = strstr(s->name, "Quant") || strstr(s->name, "Integer") || strstr(s->name, "QLinear") ||
                 strstr(s->name, "Scatter") || s->domain[0];
    for (size_t i = 0; !found && i < NORI__COUNT(names); i++) {
        found = strcmp(s->name, names[i]) == 0;
    }
    return found;
}

static void add_node(maker *k, int index)
{
    const nori__schema *s = pick(k);
    char name[16];
    k->steps = k->steps || jumps(s);
    snprintf(name, sizeof(name), "n%d", index);
    nori__pb_node *n = make_node(&k->m, &k->m.graph, s->domain, s->name, name, "", "");
    unsigned n_in = s->min_in + (s->max_in > s->min_in ? byte(k) % (s->max_in - s->min_in + 1u) % 6 : 0);
    for (unsigned i = 0; i < n_in && s->n_in > 0; i++) {
        const nori__schema_arg *a = &s->in[i < s->n_in ? i : s->n_in - 1u];
        bool absent = a->option == NORI__ARG_OPTIONAL && byte(k) % 3 == 0;
        const char *from = absent ? "" : argument(k, a->types);
        *MAKE_ADD(&k->m, n->inputs) = make_str(&k->m, from);
    }
    unsigned n_out = s->min_out + (s->max_out > s->min_out && byte(k) % 3 == 0);
    for (unsigned i = 0; i < n_out || i == 0; i++) {
        snprintf(name, sizeof(name), "v%d_%u", index, i);
        *MAKE_ADD(&k->m, n->outputs) = make_str(&k->m, name);
        const nori__schema_arg *a = s->n_out ? &s->out[i < s->n_out ? i : s->n_out - 1u] : NULL;
        bool one = a && a->types && (a->types & (a->types - 1)) == 0 &&
                   a->types < (uint64_t)1 << NORI_TYPE_COUNT;
        nori_type type = NORI_UNDEFINED;
        for (int t = 1; one && t < NORI_TYPE_COUNT; t++) {
            type = a->types >> t & 1 ? (nori_type)t : type;
        }
        add_value(k, name, type);
    }
    for (unsigned i = 0; i < s->n_attr; i++) {
        if (s->attrs[i].required || byte(k) % 4 == 0) {
            add_attr(k, n, &s->attrs[i]);
        }
    }
}

static nori_tensor *feed(maker *k, nori_env *env, int i)
{
    nori_tensor *t = NULL;
    FUZZ_HOLDS(nori_tensor_create(env, k->in_types[i], k->in_ranks[i], k->in_dims[i], &t, NULL) == NORI_OK);
    for (int64_t e = 0; k->in_types[i] != NORI_STRING && e < nori_tensor_elements(t); e++) {
        nori__tensor_set_f64(t, e, k->in_types[i] == NORI_BOOL ? byte(k) & 1 : (double)(byte(k) % 9) - 3);
    }
    return t;
}

bool fuzz_graph_make(nori_env *env, const uint8_t *data, size_t size, int most_nodes, fuzz_graph *out)
{
    maker *k = calloc(1, sizeof(*k));
    nori_error err = {0};
    memset(out, 0, sizeof(*out));
    if (!k) {
        return false;
    }
    k->at = data;
    k->end = data + size;
    make_begin(&k->m, OPSET);
    make_import(&k->m, "ai.onnx.ml", 5);
    make_import(&k->m, "com.microsoft", 1);
    k->m.model.ir_version = 10;
    add_inputs(k);
    int nodes = 1 + (int)(byte(k) % (unsigned)most_nodes);
    for (int i = 0; i < nodes; i++) {
        add_node(k, i);
    }
    const nori__pb_node *last = &k->m.graph.nodes.items[nodes - 1];
    for (size_t i = 0; i < last->outputs.count && i < FUZZ_GRAPH_OUTPUTS; i++) {
        MAKE_ADD(&k->m, k->m.graph.outputs)->name = last->outputs.items[i];
    }
    nori__text_init(&out->bytes, &nori__malloc);
    FUZZ_HOLDS(nori__pb_write_model(&k->m.model, &out->bytes, &err) == NORI_OK);
    nori_status s = nori_model_load_memory(env, out->bytes.data, out->bytes.size, NULL, NULL, &out->model,
                                           &err);
    fuzz_error_holds(s, &err);
    fuzz_count.made += s == NORI_OK;
    out->jumps = k->steps;
    out->n_in = (size_t)k->n_inputs;
    for (int i = 0; s == NORI_OK && i < k->n_inputs; i++) {
        out->in[i] = feed(k, env, i);
    }
    make_end(&k->m);
    free(k);
    if (s != NORI_OK) {
        fuzz_graph_free(out);
    }
    return s == NORI_OK;
}

void fuzz_graph_free(fuzz_graph *g)
{
    for (size_t i = 0; i < FUZZ_GRAPH_INPUTS; i++) {
        nori_tensor_free(g->in[i]);
        g->in[i] = NULL;
    }
    nori_model_free(g->model);
    nori__text_free(&g->bytes);
    g->model = NULL;
}

bool fuzz_graph_run(const nori_model *model, const fuzz_way *way, const fuzz_graph *g, nori_tensor **out)
{
    nori_session *session = NULL;
    nori_session_options o;
    nori_error err = {0};
    nori_session_options_default(&o);
    o.providers = way->provider;
    o.level = way->level;
    o.threads = way->threads;
    nori_status s = nori_session_create(model, &o, &session, &err);
    fuzz_error_holds(s, &err);
    if (s == NORI_OK) {
        s = nori_session_run(session, (const nori_tensor *const *)g->in, g->n_in, out,
                             nori_session_output_count(session), &err);
        fuzz_error_holds(s, &err);
    }
    nori_session_free(session);
    fuzz_count.ran += s == NORI_OK;
    return s == NORI_OK;
}

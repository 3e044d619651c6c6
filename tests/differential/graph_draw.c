/* graph_draw.c: a graph from a seed, node by node. An operator is drawn from THE list, its inputs
 * and attributes by what the table of facts and the names say of them; the node is run at once, and
 * dropped where it does not run. Between them stand chains of graph_recipes.c. */
#include "graphs.h"

#include "ops/op.h"
#include "ops/schema.h"

/* ---- values ---- */

static int64_t some_dim(drawing *d)
{
    static const int64_t dims[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17};
    return dims[graphs_below(&d->rng, graphs_chance(&d->rng, 80) ? 7 : 10)];
}

static void fill(drawing *d, nori_tensor *t, double low, double high)
{
    bool floats = nori__type_is_float(nori_tensor_type(t));
    for (int64_t i = 0; i < nori_tensor_elements(t); i++) {
        double v = low + (high - low) * (graphs_unit(&d->rng) + 1) / 2;
        /* Sixteenths: many results are exact then, and equal numbers are met. */
        nori__tensor_set_f64(t, i, floats ? (double)(int64_t)(v * 64) / 64 : (double)(int64_t)v);
    }
}

static nori_tensor *strings(drawing *d, int rank, const int64_t *dims)
{
    static const nori_string words[] = {
        {"", 0}, {"a", 1}, {"b c", 3}, {"zebra", 5}, {"\xc3\xa9t\xc3\xa9", 5}, {"12", 2}};
    nori_string list[64];
    nori_tensor *t = NULL;
    int64_t count = 1;
    for (int i = 0; i < rank; i++) {
        count *= dims[i];
    }
    for (int64_t i = 0; i < count && i < 64; i++) {
        list[i] = words[graphs_below(&d->rng, 6)];
    }
    if (count <= 64) {
        nori_tensor_strings(NULL, rank, dims, list, (size_t)count, &t, NULL);
    }
    return t;
}

static nori_tensor *tensor(drawing *d, nori_type type, int rank, const int64_t *dims, double low,
                           double high)
{
    nori_tensor *t = NULL;
    if (type == NORI_STRING) {
        return strings(d, rank, dims);
    }
    if (nori_tensor_create(NULL, type, rank, dims, &t, NULL) == NORI_OK) {
        bool is_bool = type == NORI_BOOL;
        bool no_sign =
            type == NORI_UINT8 || type == NORI_UINT16 || type == NORI_UINT32 || type == NORI_UINT64;
        fill(d, t, is_bool || (no_sign && low < 0) ? 0 : low, is_bool ? 1.99 : high);
    }
    return t;
}

static void set_raw(make *m, nori__pb_tensor *pb, const nori_tensor *t)
{
    pb->data_type = nori_tensor_type(t);
    for (int i = 0; i < nori_tensor_rank(t); i++) {
        *MAKE_ADD(m, pb->dims) = nori_tensor_dims(t)[i];
    }
    if (nori_tensor_type(t) == NORI_STRING) {
        const nori_string *s = nori_tensor_const_data(t);
        for (int64_t i = 0; i < nori_tensor_elements(t); i++) {
            nori__str *to = MAKE_ADD(m, pb->strings);
            to->p = nori__arena_copy(&m->arena, s[i].size ? s[i].data : "", s[i].size);
            to->n = s[i].size;
        }
        return;
    }
    pb->has_raw = true;
    pb->raw.n = nori_tensor_bytes(t);
    pb->raw.p = nori__arena_copy(&m->arena, pb->raw.n ? nori_tensor_const_data(t) : "", pb->raw.n);
}

static const char *constant(drawing *d, nori_tensor *t)
{
    char name[24];
    if (!t || d->all->count == GRAPHS_VALUES) {
        nori_tensor_free(t);
        return "";
    }
    snprintf(name, sizeof(name), "c%d", d->next++);
    nori__pb_tensor *pb = MAKE_ADD(&d->c->m, d->into->initializers);
    pb->name = make_str(&d->c->m, name);
    set_raw(&d->c->m, pb, t);
    graphs_value *v = graphs_add(d->all, name, t, true);
    if (d->other) {
        graphs_add(d->other, name, t, true);
    }
    nori_tensor_free(t);
    return v->name;
}

const char *draw_constant(drawing *d, nori_type type, int rank, const int64_t *dims, double low,
                          double high)
{
    return constant(d, tensor(d, type, rank, dims, low, high));
}

const char *draw_ints(drawing *d, int count, const int64_t *values)
{
    nori_tensor *t = NULL;
    int64_t n = count;
    if (nori_tensor_create(NULL, NORI_INT64, 1, &n, &t, NULL) == NORI_OK && count > 0) {
        memcpy(nori_tensor_data(t), values, sizeof(*values) * (size_t)count);
    }
    return constant(d, t);
}

const char *draw_scalar(drawing *d, nori_type type, double value)
{
    nori_tensor *t = NULL;
    if (nori_tensor_create(NULL, type, 0, NULL, &t, NULL) == NORI_OK) {
        nori__tensor_set_f64(t, 0, value);
    }
    return constant(d, t);
}

graphs_value *draw_value(drawing *d, uint64_t types, int least_rank, int most_rank)
{
    graphs_value *found = NULL;
    int seen = 0;
    for (size_t i = 0; i < d->all->count; i++) {
        graphs_value *v = &d->all->items[i];
        int rank = nori_tensor_rank(v->v[0]);
        if (v->constant || !(types >> nori_tensor_type(v->v[0]) & 1) || rank < least_rank ||
            rank > most_rank) {
            continue;
        }
        /* What nobody has read yet is liked better: graphs become deep rather than wide. */
        seen += v->uses == 0 ? 4 : 1;
        if (graphs_below(&d->rng, seen) < (v->uses == 0 ? 4 : 1)) {
            found = v;
        }
    }
    return found;
}

/* ---- nodes ---- */

nori__pb_node *draw_node(drawing *d, const char *domain, const char *op, const char *inputs,
                         int outputs)
{
    char names[200] = "", name[24];
    size_t n = 0;
    for (int i = 0; i < outputs; i++) {
        n += (size_t)snprintf(names + n, sizeof(names) - n, "%sv%d", i ? " " : "", d->next++);
    }
    snprintf(name, sizeof(name), "n%d", d->next++);
    return make_node(&d->c->m, d->into, domain, op, name, inputs, names);
}

void draw_attr_float(drawing *d, nori__pb_node *n, const char *name, double value)
{
    make_attr(&d->c->m, n, name, NORI__ATTR_FLOAT)->f = (float)value;
}

void draw_cut(drawing *d, size_t count)
{
    graphs_cut(d->all, count);
    if (d->other) {
        graphs_cut(d->other, count);
    }
}

graphs_value *draw_try(drawing *d)
{
    char why[GRAPHS_TEXT] = "";
    size_t before = d->all->count;
    nori__pb_graph *g = d->into;
    const nori__pb_node *node = &g->nodes.items[g->nodes.count - 1];
    bool fine = d->made < d->most && graphs_measure(&d->c->m, node, d->all, true, why) &&
                (!d->other || graphs_measure(&d->c->m, node, d->other, true, why));
    if (!fine || d->all->count == before) {
        draw_cut(d, before);
        if (getenv("NORI_GRAPHS_WHY")) {
            fprintf(stderr, "%.*s: %s\n", (int)node->op_type.n, node->op_type.p, why);
        }
        g->nodes.count--;
        return NULL;
    }
    for (size_t i = 0; i < node->inputs.count; i++) {
        graphs_value *v =
            node->inputs.items[i].n ? graphs_find(d->all, node->inputs.items[i]) : NULL;
        if (v) {
            v->uses++;
        }
    }
    if (d->all->count > GRAPHS_VALUES / 2) { /* a graph of so many values is large enough */
        d->most = d->made + 1;
    }
    d->made++;
    return &d->all->items[before];
}

/* ---- by the table of facts ---- */

typedef struct one_op {
    drawing *d;
    const nori__schema *s;
    const nori_tensor *first; /* what input 0 is; NULL: a constant or nothing */
    struct {
        const char *constraint;
        nori_type type;
    } bound[8]; /* what inputs so far say of types */
    int n_bound;
} one_op;

static int first_rank(const one_op *o)
{
    return o->first ? nori_tensor_rank(o->first) : 1;
}

static int64_t some_axis(one_op *o)
{
    int rank = first_rank(o);
    return rank ? graphs_below(&o->d->rng, 2 * rank) - rank : 0;
}

static int some_axes(one_op *o, int64_t *axes)
{
    int rank = first_rank(o), count = 0;
    for (int i = 0; i < rank && i < 8; i++) {
        if (graphs_chance(&o->d->rng, 50)) {
            axes[count++] = graphs_chance(&o->d->rng, 50) ? i : i - rank;
        }
    }
    return count;
}

/* A constant input that its name describes; NULL: nothing is known of such a name. */
static const char *by_name(one_op *o, const char *name, nori_type type)
{
    drawing *d = o->d;
    int64_t v[8] = {0};
    int rank = first_rank(o);
    if (strcmp(name, "axes") == 0) {
        return draw_ints(d, some_axes(o, v), v);
    }
    if (strcmp(name, "axis") == 0) {
        return draw_scalar(d, type, (double)some_axis(o));
    }
    if (strcmp(name, "shape") == 0) {
        v[0] = graphs_chance(&d->rng, 50) ? -1 : 1;
        v[1] = v[0] < 0 ? 1 + graphs_below(&d->rng, 3) : -1;
        return draw_ints(d, 2, v);
    }
    if (strcmp(name, "K") == 0 || strcmp(name, "k") == 0) {
        v[0] = 1 + graphs_below(&d->rng, 2);
        return draw_ints(d, 1, v);
    }
    if (strcmp(name, "starts") == 0 || strcmp(name, "ends") == 0 || strcmp(name, "repeats") == 0 ||
        strcmp(name, "pads") == 0 || strcmp(name, "steps") == 0) {
        int count = strcmp(name, "pads") == 0 ? 2 * rank : rank;
        for (int i = 0; i < count && i < 8; i++) {
            v[i] = *name == 'e' ? 9 - graphs_below(&d->rng, 11) : graphs_below(&d->rng, 3);
            v[i] += strcmp(name, "repeats") == 0 || strcmp(name, "steps") == 0;
        }
        return draw_ints(d, count < 8 ? count : 8, v);
    }
    if (strstr(name, "indices") || strcmp(name, "updates_shape") == 0) {
        int64_t dims[2] = {1 + graphs_below(&d->rng, 3), 2};
        return draw_constant(d, type, graphs_below(&d->rng, 3), dims, -2, 2.9);
    }
    if (strstr(name, "scale")) {
        return draw_scalar(d, type, 0.03125 * (1 + graphs_below(&d->rng, 8)));
    }
    if (strstr(name, "zero_point")) {
        return draw_scalar(d, type, graphs_below(&d->rng, 9));
    }
    return NULL;
}

static nori_type liked(drawing *d, uint64_t types)
{
    static const nori_type order[] = {NORI_FLOAT, NORI_FLOAT,  NORI_INT64,  NORI_FLOAT,
                                      NORI_INT32, NORI_UINT8,  NORI_INT8,   NORI_FLOAT16,
                                      NORI_BOOL,  NORI_DOUBLE, NORI_STRING, NORI_UINT16,
                                      NORI_INT16, NORI_UINT32, NORI_UINT64, NORI_BFLOAT16};
    int from = graphs_below(&d->rng, NORI__COUNT(order));
    for (size_t i = 0; i < NORI__COUNT(order); i++) {
        nori_type t = order[((size_t)from + i) % NORI__COUNT(order)];
        if (types >> t & 1) {
            return t;
        }
    }
    return NORI_UNDEFINED;
}

/* Of the shape of the first input, some sizes 1, some leading ones left out. */
static const char *alike(one_op *o, nori_type type)
{
    int64_t dims[NORI_MAX_RANK];
    int rank = first_rank(o), skip = graphs_below(&o->d->rng, rank + 1);
    skip = graphs_chance(&o->d->rng, 50) ? 0 : skip;
    for (int i = skip; i < rank; i++) {
        dims[i - skip] =
            o->first && graphs_chance(&o->d->rng, 70) ? nori_tensor_dims(o->first)[i] : 1;
    }
    return draw_constant(o->d, type, rank - skip, dims, -3, 3);
}

/* A value of that type whose shape is the first input's. */
static const char *beside(one_op *o, nori_type type)
{
    for (size_t tries = o->d->all->count; tries > 0; tries--) {
        graphs_value *v = &o->d->all->items[graphs_below(&o->d->rng, (int)o->d->all->count)];
        if (!v->constant && nori_tensor_type(v->v[0]) == type &&
            nori_tensor_rank(v->v[0]) == first_rank(o) &&
            (first_rank(o) == 0 || memcmp(nori_tensor_dims(v->v[0]), nori_tensor_dims(o->first),
                                          sizeof(int64_t) * (size_t)first_rank(o)) == 0)) {
            return v->name;
        }
    }
    return NULL;
}

static const char *bind(one_op *o, const nori__schema_arg *a, nori_type type, const char *name)
{
    if (a->constraint && o->n_bound < (int)NORI__COUNT(o->bound) && name && *name) {
        o->bound[o->n_bound].constraint = a->constraint;
        o->bound[o->n_bound++].type = type;
    }
    return name;
}

static const char *argument(one_op *o, unsigned i)
{
    const nori__schema_arg *a = &o->s->in[i < o->s->n_in ? i : o->s->n_in - 1u];
    drawing *d = o->d;
    nori_type type = NORI_UNDEFINED;
    if (i == 0) {
        graphs_value *v = draw_value(d, a->types, 0, 5);
        if (v) {
            o->first = v->v[0];
            return bind(o, a, nori_tensor_type(v->v[0]), v->name);
        }
        type = liked(d, a->types);
        return type ? bind(o, a, type, draw_constant(d, type, 1, (int64_t[]){some_dim(d)}, -3, 3))
                    : NULL;
    }
    for (int k = 0; k < o->n_bound && a->constraint; k++) {
        type = strcmp(a->constraint, o->bound[k].constraint) == 0 ? o->bound[k].type : type;
    }
    type = type ? type : liked(d, a->types);
    if (!type) {
        return NULL;
    }
    const char *name = by_name(o, a->name, type);
    name = name ? name : o->first && graphs_chance(&d->rng, 60) ? beside(o, type) : NULL;
    return bind(o, a, type, name ? name : alike(o, type));
}

/* What Cast casts to, newer types as far as the operator set has them. */
static int64_t some_type(drawing *d)
{
    static const int64_t types[] = {1, 1, 6, 7, 9, 10, 11, 2, 3, 1, 4, 5, 12, 13, 16, 21, 22};
    int count = d->opset >= 21 ? 17 : d->opset >= 13 ? 15 : 14;
    return types[graphs_below(&d->rng, count)];
}

static void some_attr(one_op *o, nori__pb_node *n, const nori__schema_attr *a)
{
    static const char *const words[] = {"NOTSET", "linear",   "nearest", "cubic", "add",  "mul",
                                        "none",   "constant", "reflect", "edge",  "wrap", "mean",
                                        "sum",    "DCR",      "CRD",     "tanh"};
    drawing *d = o->d;
    make *m = &d->c->m;
    int64_t v[8];
    switch (a->kind) {
    case NORI__ATTR_INT:
        v[0] = strcmp(a->name, "axis") == 0 ? some_axis(o)
               : strcmp(a->name, "to") == 0 ? some_type(d)
               : graphs_is_flag(a->name, strlen(a->name)) ? graphs_below(&d->rng, 2)
                                                          : graphs_below(&d->rng, 3);
        make_attr_int(m, n, a->name, v[0]);
        break;
    case NORI__ATTR_FLOAT:
        draw_attr_float(d, n, a->name,
                        strstr(a->name, "eps") ? 1e-5 : (1 + graphs_below(&d->rng, 8)) / 4.0);
        break;
    case NORI__ATTR_STRING:
        make_attr_text(m, n, a->name, words[graphs_below(&d->rng, NORI__COUNT(words))]);
        break;
    case NORI__ATTR_INTS:
        if (strcmp(a->name, "perm") == 0) {
            int rank = first_rank(o) < 8 ? first_rank(o) : 8;
            for (int i = 0; i < rank; i++) {
                int j = graphs_below(&d->rng, i + 1);
                v[i] = v[j];
                v[j] = i;
            }
            make_attr_ints(m, n, a->name, (size_t)rank, v);
        } else if (strcmp(a->name, "axes") == 0) {
            int count = some_axes(o, v);
            make_attr_ints(m, n, a->name, (size_t)count, v);
        } else {
            int count = strcmp(a->name, "pads") == 0 ? 2 * (first_rank(o) - 2) : first_rank(o) - 2;
            for (int i = 0; i < count && i < 8; i++) {
                v[i] = graphs_below(&d->rng, 2) + (strcmp(a->name, "pads") != 0);
            }
            make_attr_ints(m, n, a->name, count > 0 && count < 8 ? (size_t)count : 0, v);
        }
        break;
    default:
        break;
    }
}

/* The operators that can stand in such a graph. */
static const nori__schema *pick(drawing *d)
{
    static const nori__op *list[1024];
    static size_t count;
    for (size_t i = 0; count == 0 && nori__op_at(i); i++) {
        for (; nori__op_at(i) && count < NORI__COUNT(list); i++) {
            const nori__op *op = nori__op_at(i);
            if (nori__op_runs(op) &&
                (op->domain == NORI__ONNX || op->domain == NORI__ML || op->domain == NORI__MS) &&
                !(op->flags & (NORI__OP_CONTROL | NORI__OP_RANDOM | NORI__OP_OBJECTS))) {
                list[count++] = op;
            }
        }
    }
    const nori__op *op = list[graphs_below(&d->rng, (int)count)];
    int64_t opset = op->domain == NORI__ONNX ? d->opset : op->domain == NORI__ML ? 3 : 1;
    const nori__schema *s = nori__schema_find(nori__domain_name(op->domain), op->name, opset);
    return s && !s->deprecated ? s : NULL;
}

static void any_node(drawing *d)
{
    one_op o = {.d = d};
    char inputs[GRAPHS_TEXT] = "";
    size_t n = 0;
    o.s = pick(d);
    if (!o.s || o.s->n_in == 0) {
        return;
    }
    unsigned more = o.s->max_in > o.s->min_in ? (unsigned)graphs_below(&d->rng, 3) : 0;
    unsigned n_in = o.s->min_in + more < o.s->max_in ? o.s->min_in + more : o.s->max_in;
    for (unsigned i = 0; i < n_in && i < 8; i++) {
        const char *name = argument(&o, i);
        if (!name) {
            return;
        }
        n += (size_t)snprintf(inputs + n, sizeof(inputs) - n, "%s%s", i ? " " : "",
                              *name ? name : "-");
    }
    int n_out = o.s->min_out + (o.s->max_out > o.s->min_out && graphs_chance(&d->rng, 40));
    n_out = n_out > 0 ? n_out : 1;
    nori__pb_node *node = draw_node(d, o.s->domain, o.s->name, inputs, n_out);
    for (unsigned i = 0; i < o.s->n_attr; i++) {
        if (o.s->attrs[i].required || graphs_chance(&d->rng, 25)) {
            some_attr(&o, node, &o.s->attrs[i]);
        }
    }
    if (strcmp(o.s->name, "Split") == 0 && d->opset >= 18 && n_in < 2) {
        bool drawn = graphs_attr(node, "num_outputs") != NULL;
        nori__pb_attr *parts = drawn ? (nori__pb_attr *)graphs_attr(node, "num_outputs")
                                     : make_attr(&d->c->m, node, "num_outputs", NORI__ATTR_INT);
        parts->i = n_out;
    }
    draw_try(d);
}

/* ---- the graph ---- */

static void add_input(drawing *d, int i, bool moving)
{
    static const nori_type types[] = {
        NORI_FLOAT, NORI_FLOAT,    NORI_FLOAT,   NORI_FLOAT,  NORI_INT64,  NORI_INT32,
        NORI_UINT8, NORI_INT8,     NORI_FLOAT16, NORI_BOOL,   NORI_DOUBLE, NORI_UINT16,
        NORI_INT16, NORI_BFLOAT16, NORI_UINT32,  NORI_STRING, NORI_UINT64, NORI_FLOAT};
    char name[24], shape[128] = "";
    int64_t dims[4];
    make *m = &d->c->m;
    nori_type type = types[i == 0 ? 0 : graphs_below(&d->rng, NORI__COUNT(types))];
    int rank = i == 0 || graphs_chance(&d->rng, 40) ? 4 : graphs_below(&d->rng, 5);
    size_t n = 0;
    for (int k = 0; k < rank; k++) {
        dims[k] = k == 0 && rank == 4 ? 1 + graphs_below(&d->rng, 2) : some_dim(d);
        if (d->wide && i == 0 && k > 0) {
            dims[k] = k == 1 ? (int64_t[]){3, 8, 16, 17, 32}[graphs_below(&d->rng, 5)]
                             : 11 + graphs_below(&d->rng, 5);
        }
        bool batch = moving && k == 0 && rank == 4 && graphs_chance(&d->rng, 80);
        n += batch ? (size_t)snprintf(shape + n, sizeof(shape) - n, "N%lld", (long long)dims[k])
             : graphs_chance(&d->rng, moving ? 35 : 15)
                 ? (size_t)snprintf(shape + n, sizeof(shape) - n, "%sd%d_%d", k ? " " : "", i, k)
                 : (size_t)snprintf(shape + n, sizeof(shape) - n, "%s%lld", k ? " " : "",
                                    (long long)dims[k]);
    }
    snprintf(name, sizeof(name), "x%d", i);
    make_input(m, &m->graph, name, type, shape);
    d->c->in[i] = tensor(d, type, rank, dims, -3, 3);
    if (!d->c->in[i]) { /* too many strings */
        m->graph.inputs.count--;
        return;
    }
    d->c->n_in++;
    graphs_add(d->all, name, d->c->in[i], false);
}

static void add_output(drawing *d, const graphs_value *v)
{
    char shape[256] = "";
    size_t n = 0;
    const graphs_value *w =
        d->other ? graphs_find(d->other, (nori__str){v->name, strlen(v->name)}) : v;
    for (int k = 0; k < nori_tensor_rank(v->v[0]); k++) {
        bool moves = k >= nori_tensor_rank(w->v[0]) ||
                     nori_tensor_dims(w->v[0])[k] != nori_tensor_dims(v->v[0])[k];
        n += moves || graphs_chance(&d->rng, 50)
                 ? (size_t)snprintf(shape + n, sizeof(shape) - n, "%s?", k ? " " : "")
                 : (size_t)snprintf(shape + n, sizeof(shape) - n, "%s%lld", k ? " " : "",
                                    (long long)nori_tensor_dims(v->v[0])[k]);
    }
    make_output(&d->c->m, &d->c->m.graph, v->name, nori_tensor_type(v->v[0]), shape);
}

/* The second set of inputs: what is drawn from here on runs under both. */
static void begin_other(drawing *d, graphs_sets *sets)
{
    nori_tensor *in[GRAPHS_INPUTS] = {NULL};
    if (!graph_case_other(d->c, in)) {
        return;
    }
    d->other = sets->of[1] = calloc(1, sizeof(*sets->of[1]));
    assert_non_null(d->other);
    d->other->noise.state = d->all->noise.state;
    for (size_t i = 0; i < d->c->n_in; i++) {
        graphs_add(d->other, d->all->items[i].name, in[i], false);
        nori_tensor_free(in[i]);
    }
}

void draw_step(drawing *d)
{
    int which = graphs_below(&d->rng, 100);
    if (which < (d->wide ? 60 : 35)) {
        draw_recipe(d);
    } else if (which > 94 && d->depth < 2) {
        draw_bodies(d);
    } else {
        any_node(d);
    }
}

void graph_draw(uint64_t seed, int most_nodes, graph_case *c, graphs_sets *sets)
{
    static const int opsets[] = {17, 18, 21, 13, 20, 23, 11, 12, 15, 19, 22, 9, 10, 14, 16, 8};
    graphs_values *all = calloc(1, sizeof(*all));
    drawing d = {.c = c, .into = &c->m.graph, .all = all, .rng = {seed}};
    assert_non_null(all);
    *sets = (graphs_sets){{all, NULL}};
    memset(c, 0, sizeof(*c));
    all->noise.state = seed ^ 0x5555;
    d.opset =
        opsets[graphs_chance(&d.rng, 60) ? graphs_below(&d.rng, 6) : graphs_below(&d.rng, 16)];
    d.most = 1 + graphs_below(&d.rng, most_nodes);
    d.wide = graphs_chance(&d.rng, 8);
    bool moving = graphs_chance(&d.rng, 25);
    make_begin(&c->m, d.opset);
    make_import(&c->m, "ai.onnx.ml", 3);
    make_import(&c->m, "com.microsoft", 1);
    c->m.model.ir_version = d.opset >= 21 ? 10 : 8;
    for (int i = 0, n = 1 + graphs_below(&d.rng, 4); i < n; i++) {
        add_input(&d, (int)c->n_in, moving);
    }
    c->moves = moving;
    begin_other(&d, sets);
    for (int tries = 0; d.made < d.most && tries < 12 * d.most && all->count < GRAPHS_VALUES - 64;
         tries++) {
        draw_step(&d);
    }
    /* Outputs: what nobody reads, and now and then something that somebody does. */
    for (size_t i = all->count; i > 0 && c->m.graph.outputs.count < GRAPHS_OUTPUTS - 2; i--) {
        const graphs_value *v = &all->items[i - 1];
        if (!v->constant && v->name[0] != 'x' && (v->uses == 0 || graphs_chance(&d.rng, 8))) {
            add_output(&d, v);
        }
    }
    /* Constants drawn for nodes that are gone. */
    size_t kept = 0;
    for (size_t i = 0; i < c->m.graph.initializers.count; i++) {
        const graphs_value *v = graphs_find(all, c->m.graph.initializers.items[i].name);
        if (v && v->uses > 0) {
            c->m.graph.initializers.items[kept++] = c->m.graph.initializers.items[i];
        }
    }
    c->m.graph.initializers.count = kept;
}

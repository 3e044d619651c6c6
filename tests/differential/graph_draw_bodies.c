/* graph_draw_bodies.c: If, Loop and Scan over bodies of nodes that are drawn as all others are,
 * with the values of the graphs around them in reach. A body is drawn on what its first turn sees;
 * whether all turns go well is seen when its node is tried. */
#include "graphs.h"

enum { TAKEN = 4096, MOST_MADE = 3 }; /* a value with so many uses is an output of its body */

static const uint64_t numbers = 1 << NORI_FLOAT | 1 << NORI_INT64 | 1 << NORI_INT32 |
                                1 << NORI_UINT8 | 1 << NORI_FLOAT16 | 1 << NORI_DOUBLE |
                                1 << NORI_BOOL;

typedef struct open_body {
    nori__pb_graph graph, *outer;
    size_t before, own;      /* values that were there; the first that its nodes make */
    int uses[GRAPHS_VALUES]; /* of those before */
    int made;
} open_body;

static void begin(drawing *d, open_body *b)
{
    char name[24];
    memset(b, 0, sizeof(*b));
    snprintf(name, sizeof(name), "b%d", d->next++);
    b->graph.name = make_str(&d->c->m, name);
    b->outer = d->into;
    b->before = b->own = d->all->count;
    b->made = d->made;
    for (size_t i = 0; i < b->before; i++) {
        b->uses[i] = d->all->items[i].uses;
    }
    d->into = &b->graph;
    d->depth++;
}

/* Some constants move out, to be read from there. */
static void end(drawing *d, open_body *b)
{
    nori__pb_graph *g = &b->graph;
    nori_tensor *moved[8];
    char names[8][24];
    size_t kept = 0, n = 0;
    d->into = b->outer;
    d->depth--;
    for (size_t i = 0; i < g->initializers.count; i++) {
        const graphs_value *v = graphs_find(d->all, g->initializers.items[i].name);
        if (!v || v->uses == 0) {
            continue;
        }
        if (n < NORI__COUNT(moved) && graphs_chance(&d->rng, 30)) {
            *MAKE_ADD(&d->c->m, b->outer->initializers) = g->initializers.items[i];
            snprintf(names[n], sizeof(names[n]), "%s", v->name);
            moved[n++] = nori_tensor_retain(v->v[0]);
        } else {
            g->initializers.items[kept++] = g->initializers.items[i];
        }
    }
    g->initializers.count = kept;
    draw_cut(d, b->before);
    for (size_t i = 0; i < n; i++) {
        graphs_value *v = graphs_add(d->all, names[i], moved[i], true);
        v->uses = 1;
        if (d->other) {
            graphs_add(d->other, names[i], moved[i], true);
        }
        nori_tensor_free(moved[i]);
    }
}

/* As if nothing had been drawn. */
static void give_up(drawing *d, const open_body *first)
{
    for (size_t i = 0; i < first->before; i++) {
        d->all->items[i].uses = first->uses[i];
    }
    d->made = first->made;
}

static void steps(drawing *d, int most)
{
    int until = d->made + 1 + graphs_below(&d->rng, most);
    until = until < d->most - 1 ? until : d->most - 1;
    for (int tries = 0; d->made < until && tries < 20 && d->all->count < GRAPHS_VALUES - 96;
         tries++) {
        draw_step(d);
    }
}

/* An input of the body: a value of the graph around it, or a slice of one. */
static const char *bring(drawing *d, open_body *b, const graphs_value *from, int axis)
{
    char name[24], source[24];
    graphs_values *sets[2] = {d->all, d->other};
    snprintf(name, sizeof(name), "v%d", d->next++);
    snprintf(source, sizeof(source), "%s", from->name);
    nori_type type = nori_tensor_type(from->v[0]);
    for (int s = 0; s < 2 && sets[s]; s++) {
        const graphs_value *v = graphs_find(sets[s], (nori__str){source, strlen(source)});
        graphs_value *made = v ? graphs_add(sets[s], name, NULL, false) : NULL;
        for (int k = 0; k < GRAPHS_VARIANTS; k++) {
            nori_tensor *t = !made      ? NULL
                             : axis < 0 ? nori_tensor_retain(v->v[k])
                                        : graphs_slice(v->v[k], axis, 0);
            if (!t) {
                draw_cut(d, b->before);
                return NULL;
            }
            made->v[k] = t;
        }
    }
    make_input(&d->c->m, &b->graph, name, type, NULL);
    b->own = d->all->count;
    return d->all->items[d->all->count - 1].name;
}

static const char *bring_number(drawing *d, open_body *b, nori_type type, int value)
{
    char name[24];
    nori_tensor *t = NULL;
    snprintf(name, sizeof(name), "v%d", d->next++);
    if (nori_tensor_create(NULL, type, 0, NULL, &t, NULL) == NORI_OK) {
        nori__tensor_set_i64(t, 0, value);
        graphs_add(d->all, name, t, false);
        if (d->other) {
            graphs_add(d->other, name, t, false);
        }
        nori_tensor_free(t);
    }
    make_input(&d->c->m, &b->graph, name, type, "");
    b->own = d->all->count;
    return d->all->items[d->all->count - 1].name;
}

/* One that the body's nodes made and that is no output yet; like: of this form. */
static graphs_value *of_body(drawing *d, const open_body *b, uint64_t types,
                             const nori_tensor *like)
{
    graphs_value *found = NULL;
    int seen = 0;
    for (size_t i = b->own; i < d->all->count; i++) {
        graphs_value *v = &d->all->items[i];
        if (!v->constant && v->uses < TAKEN && (types >> nori_tensor_type(v->v[0]) & 1) &&
            (!like || graphs_one_form(v->v[0], like)) && graphs_below(&d->rng, ++seen) == 0) {
            found = v;
        }
    }
    return found;
}

static void output(drawing *d, open_body *b, graphs_value *v)
{
    v->uses += TAKEN;
    make_output(&d->c->m, &b->graph, v->name, nori_tensor_type(v->v[0]), NULL);
}

static graphs_value *unary(drawing *d, const char *op, const char *x)
{
    draw_node(d, "", op, x, 1);
    return draw_try(d);
}

/* ---- If ---- */

/* A bool known before the run, or by it. */
static const char *condition(drawing *d)
{
    graphs_value *x = graphs_chance(&d->rng, 60) ? draw_value(d, DRAW_FLOAT, 0, 4) : NULL;
    char inputs[64];
    if (!x || d->most - d->made < 4) {
        return draw_scalar(d, NORI_BOOL, graphs_below(&d->rng, 2));
    }
    make_attr_int(&d->c->m, draw_node(d, "", "ReduceMax", x->name, 1), "keepdims", 0);
    x = draw_try(d);
    if (x) {
        snprintf(inputs, sizeof(inputs), "%s %s", x->name, draw_scalar(d, NORI_FLOAT, 1.03));
        draw_node(d, "", graphs_chance(&d->rng, 50) ? "Greater" : "Less", inputs, 1);
        x = draw_try(d);
    }
    return x ? x->name : draw_scalar(d, NORI_BOOL, 1);
}

static void draw_if(drawing *d)
{
    open_body yes, other;
    nori_type types[MOST_MADE];
    char on[24];
    int n = 0;
    snprintf(on, sizeof(on), "%s", condition(d));
    begin(d, &yes);
    steps(d, 4);
    for (int want = 1 + graphs_below(&d->rng, MOST_MADE); n < want; n++) {
        graphs_value *v = of_body(d, &yes, numbers, NULL);
        if (!v) {
            break;
        }
        types[n] = nori_tensor_type(v->v[0]);
        output(d, &yes, v);
    }
    end(d, &yes);
    if (n == 0) {
        give_up(d, &yes);
        return;
    }
    begin(d, &other);
    steps(d, 2);
    bool fine = true;
    for (int i = 0; fine && i < n; i++) {
        graphs_value *v = of_body(d, &other, 1u << types[i], NULL);
        graphs_value *from = v ? NULL : draw_value(d, numbers, 0, 4);
        if (from) {
            make_attr_int(&d->c->m, draw_node(d, "", "Cast", from->name, 1), "to", types[i]);
            v = draw_try(d);
        }
        fine = v != NULL;
        if (v) {
            output(d, &other, v);
        }
    }
    end(d, &other);
    nori__pb_node *node = fine ? draw_node(d, "", "If", on, n) : NULL;
    if (node) {
        bool turned = graphs_chance(&d->rng, 50);
        *make_attr_graph(&d->c->m, node, "then_branch") = turned ? other.graph : yes.graph;
        *make_attr_graph(&d->c->m, node, "else_branch") = turned ? yes.graph : other.graph;
    }
    if (!node || !draw_try(d)) {
        give_up(d, &yes);
    }
}

/* ---- Loop, Scan ---- */

/* What goes to the next turn: of the same type, mostly of the same shape. */
static bool next_of(drawing *d, open_body *b, const char *name)
{
    const graphs_value *now = graphs_find(d->all, (nori__str){name, strlen(name)});
    nori_type type = nori_tensor_type(now->v[0]);
    graphs_value *v = of_body(d, b, 1u << type, graphs_chance(&d->rng, 80) ? now->v[0] : NULL);
    v = v ? v : unary(d, "Identity", name);
    if (v) {
        output(d, b, v);
    }
    return v != NULL;
}

static int lines_of(drawing *d, open_body *b, int most)
{
    int n = 0;
    for (; n < most; n++) {
        graphs_value *v = of_body(d, b, numbers, NULL);
        if (!v) {
            break;
        }
        output(d, b, v);
    }
    return n;
}

static void draw_loop(drawing *d)
{
    open_body b;
    char inputs[128], carried[2][24], turn[24], on[24];
    int n = 1 + graphs_below(&d->rng, 2), trips = graphs_below(&d->rng, 5), lines = 0;
    size_t at = (size_t)snprintf(inputs, sizeof(inputs), "%s %s", draw_scalar(d, NORI_INT64, trips),
                                 graphs_chance(&d->rng, 50) ? "-" : draw_scalar(d, NORI_BOOL, 1));
    begin(d, &b);
    snprintf(turn, sizeof(turn), "%s", bring_number(d, &b, NORI_INT64, 0));
    snprintf(on, sizeof(on), "%s", bring_number(d, &b, NORI_BOOL, 1));
    bool fine = true;
    for (int i = 0; fine && i < n; i++) {
        graphs_value *v = draw_value(d, numbers, 0, 4);
        const char *name = v ? bring(d, &b, v, -1) : NULL;
        fine = name != NULL;
        if (fine) {
            at += (size_t)snprintf(inputs + at, sizeof(inputs) - at, " %s", v->name);
            snprintf(carried[i], sizeof(carried[i]), "%s", name);
        }
    }
    if (fine) {
        steps(d, 5);
        graphs_value *go = NULL;
        if (graphs_chance(&d->rng, 30) && d->opset >= 9) {
            char both[64];
            snprintf(both, sizeof(both), "%s %s", turn,
                     draw_scalar(d, NORI_INT64, graphs_below(&d->rng, 3)));
            draw_node(d, "", "Less", both, 1);
            go = draw_try(d);
        }
        go = go ? go : unary(d, "Identity", on);
        fine = go != NULL;
        if (fine) {
            output(d, &b, go);
        }
    }
    for (int i = 0; fine && i < n; i++) {
        fine = next_of(d, &b, carried[i]);
    }
    lines = fine && trips > 0 ? lines_of(d, &b, graphs_below(&d->rng, 3)) : 0;
    end(d, &b);
    if (fine) {
        *make_attr_graph(&d->c->m, draw_node(d, "", "Loop", inputs, n + lines), "body") = b.graph;
    }
    if (!fine || !draw_try(d)) {
        give_up(d, &b);
    }
}

static void draw_scan(drawing *d)
{
    open_body b;
    graphs_value *x = draw_value(d, numbers, 1, 4),
                 *s = graphs_chance(&d->rng, 60) ? draw_value(d, numbers, 0, 3) : NULL;
    if (!x || d->opset < 9) {
        return;
    }
    int rank = nori_tensor_rank(x->v[0]),
        axis = graphs_chance(&d->rng, 50) ? 0 : graphs_below(&d->rng, rank);
    char inputs[64], state[24] = "";
    snprintf(inputs, sizeof(inputs), "%s%s%s", s ? s->name : "", s ? " " : "", x->name);
    begin(d, &b);
    const char *name = s ? bring(d, &b, s, -1) : NULL;
    snprintf(state, sizeof(state), "%s", name ? name : "");
    bool fine = (!s || name) && bring(d, &b, x, axis) != NULL;
    int lines = 0;
    if (fine) {
        steps(d, 4);
        fine = !s || next_of(d, &b, state);
        lines = fine ? lines_of(d, &b, 1 + graphs_below(&d->rng, 2)) : 0;
    }
    end(d, &b);
    if (fine && (s || lines > 0)) {
        int64_t many[2] = {graphs_below(&d->rng, 2), graphs_below(&d->rng, 2)},
                way = graphs_below(&d->rng, 2);
        nori__pb_node *node = draw_node(d, "", "Scan", inputs, (s != NULL) + lines);
        *make_attr_graph(&d->c->m, node, "body") = b.graph;
        make_attr_int(&d->c->m, node, "num_scan_inputs", 1);
        if (axis > 0 || graphs_chance(&d->rng, 30)) {
            int64_t from = graphs_chance(&d->rng, 50) ? axis : axis - rank;
            make_attr_ints(&d->c->m, node, "scan_input_axes", 1, &from);
        }
        if (graphs_chance(&d->rng, 40)) {
            make_attr_ints(&d->c->m, node, "scan_input_directions", 1, &way);
        }
        if (lines > 0 && graphs_chance(&d->rng, 40)) {
            make_attr_ints(&d->c->m, node, "scan_output_directions", (size_t)lines, many);
        }
        if (lines > 0 && graphs_chance(&d->rng, 30)) {
            int64_t last[2] = {-1, 0};
            make_attr_ints(&d->c->m, node, "scan_output_axes", (size_t)lines, last);
        }
        fine = draw_try(d) != NULL;
    } else {
        fine = false;
    }
    if (!fine) {
        give_up(d, &b);
    }
}

void draw_bodies(drawing *d)
{
    int which = graphs_below(&d->rng, 5);
    if (d->most - d->made < 4 || d->all->count > GRAPHS_VALUES - 192) {
        return;
    }
    if (which < 2) {
        draw_if(d);
    } else if (which < 4) {
        draw_loop(d);
    } else {
        draw_scan(d);
    }
}

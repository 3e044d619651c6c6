/* graph_bodies.c: what If, Loop and Scan give: the nodes of their bodies are measured one at a
 * time, turn by turn, so no executor of bodies takes part. Names are unique over all graphs of a
 * model: the values of a body stand beside those around it while it lasts. */
#include "graphs.h"

enum { MOST_TURNS = 8, MOST_KEPT = 8 };

/* A value without a name. */
typedef struct held {
    nori_tensor *v[GRAPHS_VARIANTS];
} held;

static bool no(char *why, const char *text)
{
    snprintf(why, GRAPHS_TEXT, "%s", text);
    return false;
}

const nori__pb_attr *graphs_attr(const nori__pb_node *n, const char *name)
{
    for (size_t i = 0; i < n->attrs.count; i++) {
        if (nori__str_is(n->attrs.items[i].name, name)) {
            return &n->attrs.items[i];
        }
    }
    return NULL;
}

static int64_t entry(const nori__pb_node *n, const char *name, size_t i)
{
    const nori__pb_attr *a = graphs_attr(n, name);
    return a && i < a->ints.count ? a->ints.items[i] : 0;
}

bool graphs_has_bodies(const nori__pb_node *n)
{
    return n->domain.n == 0 &&
           (nori__str_is(n->op_type, "If") || nori__str_is(n->op_type, "Loop") ||
            nori__str_is(n->op_type, "Scan"));
}

static void let_go(held *h, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (int k = 0; k < GRAPHS_VARIANTS; k++) {
            nori_tensor_free(h[i].v[k]);
            h[i].v[k] = NULL;
        }
    }
}

static bool hold(graphs_values *all, nori__str name, held *to)
{
    const graphs_value *v = graphs_find(all, name);
    for (int k = 0; v && k < GRAPHS_VARIANTS; k++) {
        to->v[k] = nori_tensor_retain(v->v[k]);
    }
    return v != NULL;
}

static bool put(graphs_values *all, nori__str name, const held *from)
{
    char text[24];
    snprintf(text, sizeof(text), "%.*s", (int)name.n, name.p ? name.p : "");
    graphs_value *v = graphs_add(all, text, NULL, false);
    for (int k = 0; v && k < GRAPHS_VARIANTS; k++) {
        v->v[k] = nori_tensor_retain(from->v[k]);
    }
    return v != NULL;
}

static bool put_number(graphs_values *all, nori__str name, nori_type type, int64_t value)
{
    held h = {{NULL}};
    bool fine = nori_tensor_create(NULL, type, 0, NULL, &h.v[0], NULL) == NORI_OK;
    if (fine) {
        nori__tensor_set_i64(h.v[0], 0, value);
        for (int k = 1; k < GRAPHS_VARIANTS; k++) {
            h.v[k] = nori_tensor_retain(h.v[0]);
        }
        fine = put(all, name, &h);
    }
    let_go(&h, 1);
    return fine;
}

/* The number all variants have; fallback where nothing is named. */
static bool number(graphs_values *all, nori__str name, nori_type type, int64_t fallback,
                   int64_t *out, char *why)
{
    const graphs_value *v = name.n ? graphs_find(all, name) : NULL;
    *out = fallback;
    if (!v) {
        return name.n == 0 || no(why, "a count or condition that is not there");
    }
    if (nori_tensor_elements(v->v[0]) != 1 || nori_tensor_type(v->v[0]) != type) {
        return no(why, "a count or condition of another form");
    }
    *out = nori__tensor_get_i64(v->v[0], 0);
    for (int k = 1; k < GRAPHS_VARIANTS; k++) {
        if (nori__tensor_get_i64(v->v[k], 0) != *out) {
            return no(why, "noise shows");
        }
    }
    return true;
}

/* ---- lines of a tensor ---- */

typedef struct cut {
    size_t outer, length, bytes; /* bytes of what lies behind the axis */
} cut;

static bool cut_of(const nori_tensor *t, int axis, cut *c)
{
    size_t width = nori_type_bits(nori_tensor_type(t)) / 8;
    if (width == 0 || nori_tensor_type(t) == NORI_STRING || axis >= nori_tensor_rank(t) ||
        axis < 0) {
        return false;
    }
    *c = (cut){1, (size_t)nori_tensor_dims(t)[axis], width};
    for (int d = 0; d < nori_tensor_rank(t); d++) {
        if (d < axis) {
            c->outer *= (size_t)nori_tensor_dims(t)[d];
        } else if (d > axis) {
            c->bytes *= (size_t)nori_tensor_dims(t)[d];
        }
    }
    return true;
}

nori_tensor *graphs_slice(const nori_tensor *t, int axis, int64_t at)
{
    int64_t dims[NORI_MAX_RANK];
    int rank = nori_tensor_rank(t), n = 0;
    nori_tensor *made = NULL;
    cut c;
    if (!cut_of(t, axis, &c) || at < 0 || (size_t)at >= c.length) {
        return NULL;
    }
    for (int d = 0; d < rank; d++) {
        if (d != axis) {
            dims[n++] = nori_tensor_dims(t)[d];
        }
    }
    if (nori_tensor_create(NULL, nori_tensor_type(t), n, dims, &made, NULL) != NORI_OK) {
        return NULL;
    }
    for (size_t o = 0; o < c.outer && c.bytes > 0; o++) {
        memcpy((char *)nori_tensor_data(made) + o * c.bytes,
               (const char *)nori_tensor_const_data(t) + (o * c.length + (size_t)at) * c.bytes,
               c.bytes);
    }
    return made;
}

/* Lines of one form side by side along a new axis. */
static nori_tensor *stack(nori_tensor *const *lines, size_t count, int axis)
{
    int64_t dims[NORI_MAX_RANK];
    int rank = nori_tensor_rank(lines[0]);
    nori_tensor *made = NULL;
    cut c;
    if (axis < 0 || axis > rank || rank + 1 > NORI_MAX_RANK) {
        return NULL;
    }
    for (int d = 0; d <= rank; d++) {
        dims[d] = d == axis ? (int64_t)count : nori_tensor_dims(lines[0])[d > axis ? d - 1 : d];
    }
    for (size_t i = 1; i < count; i++) {
        if (!graphs_one_form(lines[i], lines[0])) {
            return NULL;
        }
    }
    if (nori_type_bits(nori_tensor_type(lines[0])) < 8 ||
        nori_tensor_create(NULL, nori_tensor_type(lines[0]), rank + 1, dims, &made, NULL) !=
            NORI_OK) {
        return NULL;
    }
    bool fine = cut_of(made, axis, &c);
    for (size_t o = 0; fine && o < c.outer && c.bytes > 0; o++) {
        for (size_t i = 0; i < count; i++) {
            memcpy((char *)nori_tensor_data(made) + (o * count + i) * c.bytes,
                   (const char *)nori_tensor_const_data(lines[i]) + o * c.bytes, c.bytes);
        }
    }
    if (!fine) {
        nori_tensor_free(made);
    }
    return fine ? made : NULL;
}

static bool stack_all(const held *lines, size_t count, int axis, bool backwards, held *to)
{
    bool fine = count > 0;
    for (int k = 0; fine && k < GRAPHS_VARIANTS; k++) {
        nori_tensor *list[MOST_TURNS];
        for (size_t i = 0; i < count; i++) {
            list[backwards ? count - 1 - i : i] = lines[i].v[k];
        }
        to->v[k] = stack(list, count, axis);
        fine = to->v[k] != NULL;
    }
    return fine;
}

/* ---- one body ---- */

typedef struct walk {
    const make *m;
    const nori__pb_node *node;
    const nori__pb_graph *body;
    graphs_values *all;
    size_t before; /* values that were there */
    bool strict;
    char *why;
    held kept[MOST_KEPT], lines[MOST_KEPT][MOST_TURNS];
    size_t n_kept, n_lines, turns;
} walk;

static bool run_body(walk *w)
{
    bool fine = graphs_add_initializers(w->body, w->all, w->why);
    for (size_t i = 0; fine && i < w->body->nodes.count; i++) {
        fine = graphs_measure(w->m, &w->body->nodes.items[i], w->all, w->strict, w->why);
    }
    return fine;
}

/* Outputs from the body's `first` on: n_kept go to the next turn, the others are lines. fixed: what
 * goes on keeps type and shape, which the standard infers of a Scan's states, not of a Loop's. */
static bool end_turn(walk *w, size_t first, bool fixed)
{
    held kept[MOST_KEPT] = {{{NULL}}};
    bool same = true;
    bool fine = w->body->outputs.count == first + w->n_kept + w->n_lines && w->turns < MOST_TURNS;
    for (size_t i = 0; fine && i < w->n_kept; i++) {
        fine = hold(w->all, w->body->outputs.items[first + i].name, &kept[i]);
        same = same && fine && fixed && graphs_one_form(kept[i].v[0], w->kept[i].v[0]);
    }
    for (size_t i = 0; fine && i < w->n_lines; i++) {
        fine = hold(w->all, w->body->outputs.items[first + w->n_kept + i].name,
                    &w->lines[i][w->turns]);
    }
    graphs_cut(w->all, w->before);
    w->turns += fine;
    let_go(w->kept, w->n_kept);
    memcpy(w->kept, kept, sizeof(kept));
    if (fine && fixed && w->n_kept > 0 && !same) {
        return no(w->why, "a state that changes its form");
    }
    return fine || no(w->why, "a body with other outputs than its node has");
}

/* What the node gives: what was kept, and lines as tensors (axes and directions as Scan has them).
 */
static bool results(walk *w)
{
    bool fine = true;
    for (size_t i = 0; fine && i < w->n_kept + w->n_lines && i < w->node->outputs.count; i++) {
        held made = {{NULL}};
        nori__str name = w->node->outputs.items[i];
        if (i >= w->n_kept) {
            size_t s = i - w->n_kept;
            int64_t axis = entry(w->node, "scan_output_axes", s);
            int rank = w->turns ? nori_tensor_rank(w->lines[s][0].v[0]) + 1 : 0;
            fine = stack_all(w->lines[s], w->turns, (int)(axis < 0 ? axis + rank : axis),
                             entry(w->node, "scan_output_directions", s) == 1, &made) ||
                   no(w->why, "lines that do not make a tensor");
        }
        fine = fine && (name.n == 0 || put(w->all, name, i < w->n_kept ? &w->kept[i] : &made));
        let_go(&made, 1);
    }
    return fine;
}

static bool of_if(walk *w)
{
    int64_t yes = 0;
    if (w->node->inputs.count != 1 ||
        !number(w->all, w->node->inputs.items[0], NORI_BOOL, 0, &yes, w->why)) {
        return false;
    }
    const nori__pb_attr *branch = graphs_attr(w->node, yes ? "then_branch" : "else_branch");
    w->body = branch ? branch->g : NULL;
    w->n_kept = w->body ? w->body->outputs.count : 0;
    return w->body && w->n_kept <= MOST_KEPT && run_body(w) && end_turn(w, 0, false) && results(w);
}

static bool of_loop(walk *w)
{
    const nori__pb_node *n = w->node;
    const nori__pb_attr *body = graphs_attr(n, "body");
    int64_t most = 0, on = 1;
    w->body = body ? body->g : NULL;
    w->n_kept = n->inputs.count >= 2 ? n->inputs.count - 2 : 0;
    if (!w->body || n->inputs.count < 2 || w->n_kept > MOST_KEPT ||
        w->body->inputs.count != 2 + w->n_kept || w->body->outputs.count < 1 + w->n_kept ||
        w->body->outputs.count - 1 - w->n_kept > MOST_KEPT) {
        return no(w->why, "a Loop whose body does not fit it");
    }
    w->n_lines = w->body->outputs.count - 1 - w->n_kept;
    bool fine = number(w->all, n->inputs.items[0], NORI_INT64, MOST_TURNS + 1, &most, w->why) &&
                number(w->all, n->inputs.items[1], NORI_BOOL, 1, &on, w->why);
    for (size_t i = 0; fine && i < w->n_kept; i++) {
        fine = hold(w->all, n->inputs.items[2 + i], &w->kept[i]);
    }
    for (int64_t turn = 0; fine && on && turn < most; turn++) {
        if (turn == MOST_TURNS) {
            return no(w->why, "too many turns");
        }
        fine = put_number(w->all, w->body->inputs.items[0].name, NORI_INT64, turn) &&
               put_number(w->all, w->body->inputs.items[1].name, NORI_BOOL, on);
        for (size_t i = 0; fine && i < w->n_kept; i++) {
            fine = put(w->all, w->body->inputs.items[2 + i].name, &w->kept[i]);
        }
        fine = fine && run_body(w) &&
               number(w->all, w->body->outputs.items[0].name, NORI_BOOL, 1, &on, w->why) &&
               end_turn(w, 1, false);
    }
    return fine && results(w);
}

static bool of_scan(walk *w)
{
    const nori__pb_node *n = w->node;
    const nori__pb_attr *body = graphs_attr(n, "body"), *count = graphs_attr(n, "num_scan_inputs");
    size_t scanned = count && count->i > 0 && count->i <= MOST_KEPT ? (size_t)count->i : 0;
    int64_t length = -1;
    w->body = body ? body->g : NULL;
    w->n_kept = n->inputs.count - scanned;
    if (!w->body || scanned == 0 || scanned > n->inputs.count || w->n_kept > MOST_KEPT ||
        w->body->inputs.count != n->inputs.count || w->body->outputs.count < w->n_kept ||
        w->body->outputs.count - w->n_kept > MOST_KEPT) {
        return no(w->why, "a Scan whose body does not fit it");
    }
    w->n_lines = w->body->outputs.count - w->n_kept;
    bool fine = true;
    for (size_t i = 0; fine && i < w->n_kept; i++) {
        fine = hold(w->all, n->inputs.items[i], &w->kept[i]);
    }
    do {
        for (size_t i = 0; fine && i < w->n_kept; i++) {
            fine = put(w->all, w->body->inputs.items[i].name, &w->kept[i]);
        }
        for (size_t i = 0; fine && i < scanned; i++) {
            held slice = {{NULL}};
            const graphs_value *v = graphs_find(w->all, n->inputs.items[w->n_kept + i]);
            int64_t axis = entry(n, "scan_input_axes", i);
            axis += axis < 0 && v ? nori_tensor_rank(v->v[0]) : 0;
            fine = v && axis >= 0 && axis < nori_tensor_rank(v->v[0]);
            int64_t size = fine ? nori_tensor_dims(v->v[0])[axis] : 0;
            fine = fine && (length < 0 || size == length) && size > 0 && size <= MOST_TURNS;
            length = size;
            bool backwards = entry(n, "scan_input_directions", i) == 1;
            int64_t at = backwards ? size - 1 - (int64_t)w->turns : (int64_t)w->turns;
            for (int k = 0; fine && k < GRAPHS_VARIANTS; k++) {
                slice.v[k] = graphs_slice(v->v[k], (int)axis, at);
                fine = slice.v[k] != NULL;
            }
            fine = fine && put(w->all, w->body->inputs.items[w->n_kept + i].name, &slice);
            let_go(&slice, 1);
        }
        if (!fine) {
            return no(w->why, "what is scanned has no few slices");
        }
        fine = run_body(w) && end_turn(w, 0, true);
    } while (fine && (int64_t)w->turns < length);
    return fine && results(w);
}

bool graphs_measure_bodies(const make *m, const nori__pb_node *node, graphs_values *all,
                           bool strict, char *why)
{
    walk *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    *w = (walk){
        .m = m, .node = node, .all = all, .before = all->count, .strict = strict, .why = why};
    bool fine = nori__str_is(node->op_type, "If")     ? of_if(w)
                : nori__str_is(node->op_type, "Loop") ? of_loop(w)
                                                      : of_scan(w);
    if (!fine) {
        graphs_cut(all, w->before);
    }
    let_go(w->kept, MOST_KEPT);
    for (size_t i = 0; i < MOST_KEPT; i++) {
        let_go(w->lines[i], MOST_TURNS);
    }
    free(w);
    return fine;
}

/* graph_peer.c: what ONNX Runtime alone sees otherwise. It differs from the standard in places
 * (docs/differences.md): what one node of the graph, or of a body at one of its turns, shows alone
 * is put down to that operator. What shows in company only has a name below, and a reason. */
#include "graphs.h"

static struct {
    char name[48];
    unsigned long count;
} differences[512];

static void put_down(const char *name, size_t length)
{
    for (size_t r = 0; r < NORI__COUNT(differences); r++) {
        if (differences[r].count == 0) {
            snprintf(differences[r].name, sizeof(differences[r].name), "%.*s", (int)length, name);
        }
        if (strlen(differences[r].name) == length &&
            memcmp(differences[r].name, name, length) == 0) {
            differences[r].count++;
            return;
        }
    }
}

void graphs_peer_report(void)
{
    for (size_t r = 0; r < NORI__COUNT(differences) && differences[r].count; r++) {
        printf("%s %s (%lu)", r ? "," : "ONNX Runtime sees otherwise in this run:",
               differences[r].name, differences[r].count);
    }
    printf("%s", differences[0].count ? "\n" : "");
}

/* ---- one node alone ---- */

typedef struct alone {
    graphs_workers *w;
    size_t worker;
    const graph_case *c;
    bool found;
} alone;

static void try_alone(void *by, const nori__pb_node *n, graphs_values *all)
{
    alone *a = by;
    graph_case one;
    graphs_fault fault;
    if (a->found || graphs_has_bodies(n) || !graph_case_one(a->c, all, n, &one)) {
        return;
    }
    a->found = graphs_faulty(a->w, a->worker, &one, &fault);
    if (a->found) {
        put_down(n->op_type.p, n->op_type.n);
    }
    graph_case_free(&one);
}

static bool shows_alone(graphs_workers *w, size_t i, const graph_case *c)
{
    alone a = {w, i, c, false};
    graphs_look look = {.noise = 5, .seen = try_alone, .by = &a};
    graphs_sets sets;
    char why[GRAPHS_TEXT] = "";
    graphs_measure_case(c, &sets, &look, false, why);
    graphs_sets_free(&sets);
    return a.found;
}

/* ---- in company ---- */

/* With ceil_mode its rules before operator set 22 count a last window that begins in the pads; its
 * kernels, as the standard, do not. The sizes behind do not fit one another then. */
static bool pool_of_pads(const nori__pb_node *n, const graphs_fault *f)
{
    const nori__pb_attr *up = graphs_attr(n, "ceil_mode");
    return up && up->i == 1 && strstr(f->text, "ShapeInferenceError");
}

typedef struct known {
    const char *name;
    bool (*fits)(const nori__pb_node *n, const graphs_fault *f);
} known;
static const known in_company[] = {{"pool with ceil_mode", pool_of_pads}};

static bool is_known(const nori__pb_graph *g, const graphs_fault *f)
{
    for (size_t i = 0; i < g->nodes.count; i++) {
        const nori__pb_node *n = &g->nodes.items[i];
        for (size_t k = 0; k < NORI__COUNT(in_company); k++) {
            if (in_company[k].fits(n, f)) {
                put_down(in_company[k].name, strlen(in_company[k].name));
                return true;
            }
        }
        for (size_t k = 0; k < n->attrs.count; k++) {
            if (n->attrs.items[k].g && is_known(n->attrs.items[k].g, f)) {
                return true;
            }
        }
    }
    return false;
}

bool graphs_peer_differs(graphs_workers *w, size_t i, const graph_case *c,
                         const graphs_fault *fault)
{
    graph_case small;
    graphs_fault left = *fault;
    bool found = shows_alone(w, i, c) || is_known(&c->m.graph, fault);
    if (!found && graph_case_copy(c, &small)) { /* with less around it, a node may show */
        graphs_shrink(w, &small, &left);
        found = shows_alone(w, i, &small);
        graph_case_free(&small);
    }
    return found;
}

/* graph_peer.c: what ONNX Runtime alone sees otherwise. It differs from the standard in places
 * (docs/differences.md): what one node of the graph, or of a body at one of its turns, shows alone
 * is put down to that operator. What shows in company only has a name below, and a reason. */
#include <unistd.h>

#include "graphs.h"
#include "platform/platform.h"

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
    const graphs_fault *fault;
    bool found;
} alone;

/* A convolution of no channels is its bias. It is left as the memory was, which shows now and then. */
static bool of_no_channels(const nori__pb_node *n, graphs_values *all)
{
    const graphs_value *w = n->inputs.count > 1 ? graphs_find(all, n->inputs.items[1]) : NULL;
    return (nori__str_is(n->op_type, "Conv") || nori__str_is(n->op_type, "ConvTranspose")) && w &&
           nori_tensor_elements(w->v[0]) == 0;
}

static void try_alone(void *by, const nori__pb_node *n, graphs_values *all)
{
    alone *a = by;
    graph_case one;
    graphs_fault fault;
    if (!a->found && strcmp(a->fault->kind, "differs") == 0 && of_no_channels(n, all)) {
        put_down("Conv of no channels", strlen("Conv of no channels"));
        a->found = true;
    }
    if (a->found || graphs_has_bodies(n) || !graph_case_one(a->c, all, n, &one)) {
        return;
    }
    a->found = graphs_faulty(a->w, a->worker, &one, &fault);
    if (a->found) {
        put_down(n->op_type.p, n->op_type.n);
    }
    graph_case_free(&one);
}

static bool shows_alone(graphs_workers *w, size_t i, const graph_case *c, const graphs_fault *fault)
{
    alone a = {w, i, c, fault, false};
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

/* ---- by itself ---- */

/* The model that a fault is about: made of the case's, or that. */
static bool take_way(graph_case *c, const graphs_fault *f)
{
    nori__text bytes;
    nori_model *model = NULL, *made = NULL;
    nori__map_file map = {NULL, 0};
    nori_status s = NORI_OK;
    char path[64];
    snprintf(path, sizeof(path), "/tmp/nori-graphs-peer-%ld.onnx", (long)getpid());
    nori__text_init(&bytes, &nori__malloc);
    for (int k = 0; k < GRAPHS_PEER_WAYS; k++) {
        if (strcmp(f->way, graphs_peer_labels[k]) == 0) {
            s = nori__pb_write_model(&c->m.model, &bytes, NULL);
            s = s ? s
                  : nori_model_load_memory(NULL, bytes.data, bytes.size, NULL, NULL, &model, NULL);
            s = s ? s : graphs_peer_change(k, model, &made);
            s = s ? s : nori_model_save(made, path, NULL);
            s = s ? s : nori__map_open(path, &map, NULL);
            s = s || graph_case_take(c, (const char *)map.data, map.size) ? s : NORI_ERROR_MODEL;
            nori__map_close(&map);
            unlink(path);
            nori_model_free(made);
            nori_model_free(model);
        }
    }
    nori__text_free(&bytes);
    c->moves = false;
    return s == NORI_OK;
}

/* Without nodes that a value does not depend on it has the right value: its memory is at fault, not
 * what nodes mean. */
static bool contradicts_itself(graphs_workers *w, size_t i, graph_case *c, const graphs_fault *f)
{
    static const char name[] = "values that depend on other nodes";
    const char *end = strchr(f->text, ':');
    nori__str output = {f->text, end ? (size_t)(end - f->text) : 0};
    graphs_look look = {.noise = 3, .coarse = true};
    graphs_sets sets = {{NULL, NULL}};
    graphs_answers answers = {.count = 0};
    char why[GRAPHS_TEXT] = "";
    nori__pb_graph *g = &c->m.graph;
    size_t before = g->nodes.count, at = 0;
    bool found = false;
    for (; at < g->outputs.count; at++) {
        if (g->outputs.items[at].name.n == output.n && output.n > 0 &&
            memcmp(g->outputs.items[at].name.p, output.p, output.n) == 0) {
            break;
        }
    }
    if (strcmp(f->kind, "differs") != 0 || at == g->outputs.count) {
        return false;
    }
    g->outputs.items[0] = g->outputs.items[at];
    g->outputs.count = 1;
    graph_case_tidy(c);
    if (g->nodes.count < before && graphs_measure_case(c, &sets, &look, false, why) &&
        graphs_worker_ask(w, i, c, &answers)) {
        const graphs_value *want = graphs_find(sets.of[0], output);
        found = want && answers.count > 0 && !answers.items[0].status && answers.items[0].out[0] &&
                !graphs_differ(answers.items[0].out[0], want, why);
    }
    if (found) {
        put_down(name, strlen(name));
    }
    graphs_answers_free(&answers);
    graphs_sets_free(&sets);
    return found;
}

bool graphs_peer_differs(graphs_workers *w, size_t i, const graph_case *c,
                         const graphs_fault *fault)
{
    graph_case other;
    graphs_fault left = *fault;
    bool found = shows_alone(w, i, c, fault) || is_known(&c->m.graph, fault);
    if (!found && graph_case_copy(c, &other)) { /* nodes as a conversion wrote them */
        found = take_way(&other, fault) && ((strcmp(fault->way, "ONNX Runtime") != 0 &&
                                             shows_alone(w, i, &other, fault)) ||
                                            contradicts_itself(w, i, &other, fault));
        graph_case_free(&other);
    }
    if (!found && graph_case_copy(c, &other)) { /* with less around it, a node may show */
        graphs_shrink(w, &other, &left);
        found = shows_alone(w, i, &other, fault);
        graph_case_free(&other);
    }
    return found;
}

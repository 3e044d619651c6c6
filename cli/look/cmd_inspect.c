/* cmd_inspect.c: what a model holds, and what a run of it would take. */
#include <stdlib.h>
#include <string.h>

#include "inspect.h"
#include "inspect_providers.h"

static const cli_option options[] = {
    {"--nodes", NULL, "every node, a line each: operator, results, MACs"},
    {"--node", "NAME", "one node, by name, output or path: all there is to know"},
    {"--graph", "dot", "the graph for Graphviz"},
    {"--text", NULL, "the model in the textual syntax of ONNX; `nori build` reads it back"},
    {"--inline", "N|all", "with --text: content of tensors of at most N elements is written out"},
    {"--providers", "LIST", "how the graph would be split over these, before anything runs"},
    CLI_PROVIDER_OPTIONS,
    CLI_DIM_OPTION,
    CLI_LOAD_OPTIONS,
    CLI_QUIET_OPTION,
    CLI_COMMON_OPTIONS,
};

static inspect_op *op_row(inspect *in, const char *domain, const char *op)
{
    for (size_t i = 0; i < in->n_ops; i++) {
        if (strcmp(in->ops[i].op, op) == 0 && strcmp(in->ops[i].domain, domain) == 0) {
            return &in->ops[i];
        }
    }
    inspect_op *more = realloc(in->ops, (in->n_ops + 1) * sizeof(*more));
    if (!more) {
        in->no_memory = true;
        return NULL;
    }
    in->ops = more;
    in->ops[in->n_ops] = (inspect_op){.domain = domain, .op = op};
    return &in->ops[in->n_ops++];
}

/* Defaults are those of the node's version: before 11 there was one way only. */
static void describe_resize(const nori_node *n, char *out, size_t size)
{
    int version = nori_node_version(n);
    bool old = strcmp(nori_node_op(n), "Upsample") == 0 || version < 11;
    const char *mode = nori_node_text(n, "mode", "nearest");
    const char *where = nori_node_text(n, "coordinate_transformation_mode",
                                       old ? "asymmetric" : "half_pixel");
    int used = snprintf(out, size, "%s: mode %s, coordinates %s", nori_node_op(n), mode, where);
    if (used > 0 && (size_t)used < size && strcmp(mode, "nearest") == 0) {
        snprintf(out + used, size - (size_t)used, ", nearest %s",
                 nori_node_text(n, "nearest_mode", old ? "floor" : "round_prefer_floor"));
    } else if (used > 0 && (size_t)used < size && strcmp(mode, "cubic") == 0) {
        snprintf(out + used, size - (size_t)used, ", cubic coefficient %g%s",
                 (double)nori_node_float(n, "cubic_coeff_a", -0.75f),
                 nori_node_int(n, "exclude_outside", 0) ? ", outside excluded" : "");
    }
    size_t end = strlen(out);
    if (nori_node_int(n, "antialias", 0) && end < size) {
        snprintf(out + end, size - end, ", antialiased");
    }
}

static void count_resize(inspect *in, const nori_node *n)
{
    char text[sizeof(in->resizes->text)];
    describe_resize(n, text, sizeof(text));
    for (size_t i = 0; i < in->n_resizes; i++) {
        if (strcmp(in->resizes[i].text, text) == 0) {
            in->resizes[i].count++;
            return;
        }
    }
    inspect_resize *more = realloc(in->resizes, (in->n_resizes + 1) * sizeof(*more));
    if (!more) {
        in->no_memory = true;
        return;
    }
    in->resizes = more;
    snprintf(more[in->n_resizes].text, sizeof(more->text), "%s", text);
    more[in->n_resizes++].count = 1;
}

/* Subgraphs nest as deep as loading allows. */
static void walk(inspect *in, const nori_graph *g)
{
    for (const nori_value *v = nori_graph_value(g); v; v = nori_value_next(v)) {
        const nori_tensor *t = nori_value_initializer(v);
        if (t) {
            uint64_t n = (uint64_t)nori_tensor_elements(t);
            in->initializers++;
            in->weight_bytes += nori_tensor_bytes(t);
            in->weight_elements += n;
            in->elements_of[nori_tensor_type(t)] += n;
        }
    }
    for (const nori_node *n = nori_graph_first(g); n; n = nori_node_next(n)) {
        const char *op = nori_node_op(n);
        inspect_op *row = op_row(in, nori_node_domain(n), op);
        in->nodes++;
        if (row) {
            row->count++;
        }
        if (nori_node_domain(n)[0] == 0 &&
            (strcmp(op, "Resize") == 0 || strcmp(op, "Upsample") == 0)) {
            count_resize(in, n);
        }
        const nori_graph *sub;
        for (size_t i = 0; (sub = nori_node_subgraph(n, i)) != NULL; i++) {
            in->subgraphs++;
            walk(in, sub);
        }
    }
}

static int by_count(const void *a, const void *b)
{
    const inspect_op *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : strcmp(x->op, y->op);
}

static int by_output(const void *a, const void *b)
{
    return strcmp(((const nori_cost *)a)->output, ((const nori_cost *)b)->output);
}

const nori_cost *inspect_cost(const inspect *in, const nori_node *node)
{
    const nori_value *out = nori_node_output_count(node) ? nori_node_output(node, 0) : NULL;
    nori_cost key = {.output = out ? nori_value_name(out) : ""};
    return in->n_rows ? bsearch(&key, in->rows, in->n_rows, sizeof(key), by_output) : NULL;
}

/* MACs of the model's own operators: the standard rewrites keep the nodes that multiply, but for
 * functions, which show as what they are made of, and old forms of operators, which got a new name. */
static void read_costs(inspect *in)
{
    nori_cost cost = {.size = sizeof(cost)};
    in->total.size = sizeof(in->total);
    nori_costs_total(in->costs, &in->total);
    in->rows = calloc(in->total.nodes + 1, sizeof(*in->rows));
    in->no_memory |= !in->rows;
    for (size_t i = 0; in->rows && nori_costs_at(in->costs, i, &cost); i++) {
        if (in->n_rows < in->total.nodes) {
            in->rows[in->n_rows++] = cost;
        }
        if (cost.macs == 0) {
            continue;
        }
        const char *domain = "";
        for (size_t k = 0; k < in->n_ops; k++) {
            domain = strcmp(in->ops[k].op, cost.op) == 0 ? in->ops[k].domain : domain;
        }
        inspect_op *row = op_row(in, domain, cost.op);
        if (row) {
            row->macs += cost.macs;
        }
    }
    if (in->n_rows > 0) {
        qsort(in->rows, in->n_rows, sizeof(*in->rows), by_output);
    }
}

/* False (and why is filled): this build cannot compile the model. Usage errors are the caller's. */
static bool plan(inspect *in, const nori_session_options *asked)
{
    nori_session_options o = *asked;
    o.threads = 1;
    nori_session *s = NULL;
    nori_costs *c = NULL;
    if (nori_session_create(in->model, &o, &s, &in->why) == NORI_OK &&
        nori_session_costs(s, NULL, 0, &c, &in->why) == NORI_OK) {
        nori_cost_total t = {.size = sizeof(t)};
        nori_memory_stats m = {.size = sizeof(m)};
        nori_costs_total(c, &t);
        nori_session_memory(s, &m);
        in->planned = true;
        in->activation_bytes = t.activation_bytes;
        in->late = t.late;
        in->packed_bytes = m.packed_bytes;
    }
    nori_costs_free(c);
    nori_session_free(s);
    return in->planned;
}

static int estimate(inspect *in)
{
    nori_session_options o;
    if (!cli_session_options(in->args, &o)) {
        return EXIT_USAGE;
    }
    bool planned = plan(in, &o);
    if (in->why.status == NORI_ERROR_ARGUMENT || in->why.status == NORI_ERROR_UNAVAILABLE) {
        return cli_fail(in->args, &in->why); /* a dimension or provider that is not there */
    }
    o.level = 1;
    o.providers = "reference"; /* packs nothing */
    o.threads = 1;
    if (planned && nori_session_create(in->model, &o, &in->session, &in->why) == NORI_OK &&
        nori_session_costs(in->session, NULL, 0, &in->costs, &in->why) == NORI_OK) {
        read_costs(in);
    }
    return EXIT_YES;
}

static void warn(void *user, const char *text)
{
    cli_warn(user, "%s", text);
}

static int answer(inspect *in)
{
    const cli_args *args = in->args;
    const char *graph = cli_value(args, "--graph"), *node = cli_value(args, "--node");
    if (graph) {
        return inspect_dot(in);
    }
    if (node) {
        if (inspect_node(in, node) == 0) {
            fprintf(stderr, "nori inspect: no node, output or path is \"%s\"; --nodes lists them\n",
                    node);
            return EXIT_NO;
        }
    } else if (cli_has(args, "--nodes")) {
        inspect_nodes(in);
    } else if (args->json) {
        inspect_json(in);
    } else {
        inspect_text(in);
        inspect_warnings(in, warn, in->args);
    }
    return EXIT_YES;
}

static int run(cli_args *args)
{
    inspect in = {.args = args};
    const char *graph = cli_value(args, "--graph");
    const char *providers = cli_value(args, "--providers");
    bool text = cli_has(args, "--text");
    int asked = (graph != NULL) + cli_has(args, "--node") + cli_has(args, "--nodes") +
                (providers != NULL) + text;
    if (args->count > 1 || asked > 1) {
        return cli_usage(args, asked > 1 ? "one of --graph, --node, --nodes, --text and "
                                           "--providers was expected"
                                         : "one model file was expected");
    }
    if (providers && cli_has(args, "--provider")) {
        return cli_usage(args, "--providers names them all: --provider means nothing with it");
    }
    if (graph && (strcmp(graph, "dot") != 0 || args->json)) {
        return cli_usage(args, args->json ? "--graph writes dot, not JSON"
                                          : "--graph: dot was expected");
    }
    if (text ? args->json : cli_has(args, "--inline")) {
        return cli_usage(args, text ? "--text writes ONNX text, not JSON"
                                    : "--inline means nothing without --text");
    }
    int code = cli_load(args, &in.model);
    if (code == EXIT_YES && text) {
        code = inspect_source(args, in.model);
        nori_model_free(in.model);
        return code;
    }
    if (code == EXIT_YES && providers) {
        code = cli_inspect_providers(args, in.model, providers);
        nori_model_free(in.model);
        return code;
    }
    if (code == EXIT_YES) {
        walk(&in, nori_model_graph(in.model));
        code = estimate(&in);
    }
    if (code == EXIT_YES && in.no_memory) {
        code = cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
    }
    if (code == EXIT_YES) {
        qsort(in.ops, in.n_ops, in.n_ops ? sizeof(*in.ops) : 1, by_count);
        code = answer(&in);
    }
    nori_costs_free(in.costs);
    nori_session_free(in.session);
    free(in.rows);
    free(in.ops);
    free(in.resizes);
    nori_model_free(in.model);
    return code;
}

const cli_verb cli_inspect = {
    "inspect", "look", "MODEL [--node NAME] [--graph dot]",
    "nodes, operators, weights, inputs and outputs, MACs and memory of a model", options, run,
    "  nori inspect model.onnx --dim batch=8\n"
    "  nori inspect model.onnx --node Conv_0\n"
    "  nori inspect model.onnx --providers ort:cuda,cpu\n"
    "  nori inspect model.onnx --text > model.txt\n"
    "  nori inspect model.onnx --graph dot | dot -Tsvg > graph.svg\n"};

/* cmd_inspect.c: what a model holds. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const cli_option options[] = {
    {"--nodes", NULL, "list every node"},
    {"--node", "NAME", "one node: attributes, inputs, outputs"},
    {"--graph", "dot", "the graph for Graphviz"},
    CLI_LOAD_OPTIONS, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

typedef struct op_count {
    const char *domain, *op;
    size_t count;
} op_count;

typedef struct summary {
    op_count *ops;
    size_t n_ops;
    size_t nodes, subgraphs, initializers;
    uint64_t weight_bytes, float_elements, weight_elements;
    bool failed;
} summary;

static void count_op(summary *s, const nori_node *n)
{
    for (size_t i = 0; i < s->n_ops; i++) {
        if (strcmp(s->ops[i].op, nori_node_op(n)) == 0 &&
            strcmp(s->ops[i].domain, nori_node_domain(n)) == 0) {
            s->ops[i].count++;
            return;
        }
    }
    op_count *more = realloc(s->ops, (s->n_ops + 1) * sizeof(*more));
    if (!more) {
        s->failed = true;
        return;
    }
    s->ops = more;
    s->ops[s->n_ops++] = (op_count){nori_node_domain(n), nori_node_op(n), 1};
}

/* Subgraphs nest as deep as loading allows. */
static void walk(summary *s, const nori_graph *g)
{
    for (const nori_value *v = nori_graph_value(g); v; v = nori_value_next(v)) {
        const nori_tensor *t = nori_value_initializer(v);
        if (t) {
            s->initializers++;
            s->weight_bytes += nori_tensor_bytes(t);
            s->weight_elements += (uint64_t)nori_tensor_elements(t);
            if (nori_tensor_type(t) == NORI_FLOAT || nori_tensor_type(t) == NORI_DOUBLE) {
                s->float_elements += (uint64_t)nori_tensor_elements(t);
            }
        }
    }
    for (const nori_node *n = nori_graph_first(g); n; n = nori_node_next(n)) {
        s->nodes++;
        count_op(s, n);
        const nori_graph *sub;
        for (size_t i = 0; (sub = nori_node_subgraph(n, i)) != NULL; i++) {
            s->subgraphs++;
            walk(s, sub);
        }
    }
}

static int by_count(const void *a, const void *b)
{
    const op_count *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : strcmp(x->op, y->op);
}

static void print_values(const nori_model *m, bool inputs)
{
    size_t n = inputs ? nori_model_input_count(m) : nori_model_output_count(m);
    for (size_t i = 0; i < n; i++) {
        const nori_value_info *v = inputs ? nori_model_input(m, i) : nori_model_output(m, i);
        char shape[512];
        cli_shape(v, shape, sizeof(shape));
        printf("  %-32s %s%s\n", v->name, shape, v->optional ? " (has a default)" : "");
    }
}

static void print_text(const nori_model *m, const summary *s)
{
    char now[32], half[32], byte[32], file[32];
    const char *domain, *key, *value, *name;
    int64_t version;
    size_t count;
    cli_bytes_text(nori_model_file_bytes(m), file, sizeof(file));
    cli_bytes_text(s->weight_bytes, now, sizeof(now));
    cli_bytes_text(s->weight_elements * 2, half, sizeof(half));
    cli_bytes_text(s->weight_elements, byte, sizeof(byte));
    printf("%s (%s)\n", nori_model_path(m), file);
    printf("IR version    %lld\n", (long long)nori_model_ir_version(m));
    printf("opsets       ");
    for (size_t i = 0; nori_model_opset(m, i, &domain, &version); i++) {
        printf("%s %s %lld", i ? "," : "", domain[0] ? domain : "ai.onnx", (long long)version);
    }
    printf("\nproducer      %s\n", nori_model_producer(m));
    printf("nodes         %zu (%zu in the main graph, %zu subgraphs)\n", s->nodes,
           nori_graph_node_count(nori_model_graph(m)), s->subgraphs);
    printf("initializers  %zu, %llu elements: %s now, %s as float16, %s as int8\n", s->initializers,
           (unsigned long long)s->weight_elements, now, half, byte);
    printf("inputs\n");
    print_values(m, true);
    printf("outputs\n");
    print_values(m, false);
    printf("operators\n");
    for (size_t i = 0; i < s->n_ops; i++) {
        printf("  %6zu  %s%s%s\n", s->ops[i].count, s->ops[i].domain, s->ops[i].domain[0] ? ":" : "",
               s->ops[i].op);
    }
    for (size_t i = 0; nori_model_function(m, i, &domain, &name, &count); i++) {
        printf("function      %s:%s of %zu nodes\n", domain, name, count);
    }
    for (size_t i = 0; nori_model_external(m, i); i++) {
        printf("external data %s\n", nori_model_external(m, i));
    }
    for (size_t i = 0; nori_model_metadata(m, i, &key, &value); i++) {
        printf("metadata      %s = %.200s\n", key, value);
    }
}

static void json_values(cli_json *j, const nori_model *m, bool inputs)
{
    size_t n = inputs ? nori_model_input_count(m) : nori_model_output_count(m);
    cli_json_array(j, inputs ? "inputs" : "outputs");
    for (size_t i = 0; i < n; i++) {
        const nori_value_info *v = inputs ? nori_model_input(m, i) : nori_model_output(m, i);
        cli_json_object(j, NULL);
        cli_json_string(j, "name", v->name);
        cli_json_string(j, "kind", cli_kind_name(v->kind));
        cli_json_string(j, "type", nori_type_name(v->type));
        cli_json_bool(j, "optional", v->optional != 0);
        if (v->rank < 0) {
            cli_json_null(j, "shape");
        } else {
            cli_json_array(j, "shape");
            for (int d = 0; d < v->rank; d++) {
                if (v->dims[d] >= 0) {
                    cli_json_int(j, NULL, v->dims[d]);
                } else if (v->dim_names[d]) {
                    cli_json_string(j, NULL, v->dim_names[d]);
                } else {
                    cli_json_null(j, NULL);
                }
            }
            cli_json_end(j);
        }
        cli_json_end(j);
    }
    cli_json_end(j);
}

static void print_json(const nori_model *m, const summary *s)
{
    const char *domain;
    int64_t version;
    cli_json j;
    cli_json_begin(&j, stdout);
    cli_json_string(&j, "path", nori_model_path(m));
    cli_json_uint(&j, "file_bytes", nori_model_file_bytes(m));
    cli_json_int(&j, "ir_version", nori_model_ir_version(m));
    cli_json_string(&j, "producer", nori_model_producer(m));
    cli_json_object(&j, "opsets");
    for (size_t i = 0; nori_model_opset(m, i, &domain, &version); i++) {
        cli_json_int(&j, domain[0] ? domain : "ai.onnx", version);
    }
    cli_json_end(&j);
    cli_json_uint(&j, "nodes", s->nodes);
    cli_json_uint(&j, "subgraphs", s->subgraphs);
    cli_json_object(&j, "initializers");
    cli_json_uint(&j, "count", s->initializers);
    cli_json_uint(&j, "elements", s->weight_elements);
    cli_json_uint(&j, "bytes", s->weight_bytes);
    cli_json_uint(&j, "bytes_float16", s->weight_elements * 2);
    cli_json_uint(&j, "bytes_int8", s->weight_elements);
    cli_json_end(&j);
    json_values(&j, m, true);
    json_values(&j, m, false);
    cli_json_object(&j, "operators");
    for (size_t i = 0; i < s->n_ops; i++) {
        char name[512];
        snprintf(name, sizeof(name), "%s%s%s", s->ops[i].domain, s->ops[i].domain[0] ? ":" : "",
                 s->ops[i].op);
        cli_json_uint(&j, name, s->ops[i].count);
    }
    cli_json_finish(&j);
}

static void value_line(const char *what, size_t i, const nori_value *v)
{
    if (!v) {
        printf("  %s %zu  (absent)\n", what, i);
        return;
    }
    printf("  %s %zu  %-32s %s[", what, i, nori_value_name(v), nori_type_name(nori_value_type(v)));
    for (int d = 0; d < nori_value_rank(v); d++) {
        const char *name;
        int64_t n = nori_value_dim(v, d, &name);
        if (n >= 0) {
            printf("%s%lld", d ? "," : "", (long long)n);
        } else {
            printf("%s%s", d ? "," : "", name ? name : "?");
        }
    }
    printf("%s]%s\n", nori_value_rank(v) < 0 ? "..." : "",
           nori_value_initializer(v) ? " initializer" : "");
}

static void print_node(const nori_node *n)
{
    char text[512];
    nori_node_path(n, text, sizeof(text));
    printf("%s\n  operator  %s%s%s, version %d\n", text, nori_node_domain(n),
           nori_node_domain(n)[0] ? ":" : "", nori_node_op(n), nori_node_version(n));
    for (size_t i = 0; i < nori_node_attr_count(n); i++) {
        nori_node_attr_text(n, i, text, sizeof(text));
        printf("  attribute %s = %s\n", nori_node_attr_name(n, i), text);
    }
    for (size_t i = 0; i < nori_node_input_count(n); i++) {
        value_line("input ", i, nori_node_input(n, i));
    }
    for (size_t i = 0; i < nori_node_output_count(n); i++) {
        value_line("output", i, nori_node_output(n, i));
    }
}

static int find_node(const nori_graph *g, const char *name)
{
    int found = 0;
    for (const nori_node *n = nori_graph_first(g); n; n = nori_node_next(n)) {
        bool is = strcmp(nori_node_name(n), name) == 0;
        for (size_t i = 0; !is && i < nori_node_output_count(n); i++) {
            const nori_value *v = nori_node_output(n, i);
            is = v && strcmp(nori_value_name(v), name) == 0;
        }
        if (is) {
            print_node(n);
            found++;
        }
        const nori_graph *sub;
        for (size_t i = 0; (sub = nori_node_subgraph(n, i)) != NULL; i++) {
            found += find_node(sub, name);
        }
    }
    return found;
}

/* A string of the dot language, which knows one escape only. */
static void dot_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        printf(*text == '"' ? "\\\"" : *text == '\\' ? "\\\\" : "%c", *text);
    }
    putchar('"');
}

static void print_dot(const nori_graph *g)
{
    printf("digraph model {\n  node [shape=box, fontname=\"sans-serif\"];\n");
    for (const nori_node *n = nori_graph_first(g); n; n = nori_node_next(n)) {
        printf("  \"n%p\" [label=", (const void *)n);
        dot_text(nori_node_op(n));
        printf("];\n");
        for (size_t i = 0; i < nori_node_input_count(n); i++) {
            const nori_value *v = nori_node_input(n, i);
            if (v && nori_value_producer(v)) {
                printf("  \"n%p\" -> \"n%p\" [label=", (const void *)nori_value_producer(v),
                       (const void *)n);
                dot_text(nori_value_name(v));
                printf("];\n");
            }
        }
    }
    printf("}\n");
}

static int run(cli_args *args)
{
    nori_model *m = NULL;
    int code = cli_load(args, &m);
    if (code != EXIT_YES) {
        return code;
    }
    summary s = {0};
    const char *graph = cli_value(args, "--graph"), *node = cli_value(args, "--node");
    walk(&s, nori_model_graph(m));
    qsort(s.ops, s.n_ops, s.n_ops ? sizeof(*s.ops) : 1, by_count);
    if (graph && strcmp(graph, "dot") == 0) {
        print_dot(nori_model_graph(m));
    } else if (graph) {
        code = cli_usage(args, "--graph %s: dot was expected", graph);
    } else if (node) {
        if (find_node(nori_model_graph(m), node) == 0) {
            fprintf(stderr, "nori inspect: no node or value is named \"%s\"\n", node);
            code = EXIT_NO;
        }
    } else if (cli_has(args, "--nodes")) {
        for (const nori_node *n = nori_graph_first(nori_model_graph(m)); n; n = nori_node_next(n)) {
            print_node(n);
        }
    } else if (args->json) {
        print_json(m, &s);
    } else {
        print_text(m, &s);
    }
    free(s.ops);
    nori_model_free(m);
    return code;
}

const cli_verb cli_inspect = {
    "inspect", "look", "MODEL [--node NAME] [--graph dot]",
    "nodes, operators, weights, inputs and outputs of a model", options, run,
    "  nori inspect model.onnx\n  nori inspect model.onnx --graph dot | dot -Tsvg > graph.svg\n"};

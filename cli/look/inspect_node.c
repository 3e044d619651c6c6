/* inspect_node.c: single nodes, one in full or all with a line each. */
#include <stdlib.h>
#include <string.h>

#include "inspect.h"

#define TEXT_SIZE 65536 /* attributes may be long lists */

void inspect_value_shape(const inspect *in, const nori_value *v, char *out, size_t size)
{
    const nori_tensor *t = nori_value_initializer(v);
    t = t || !in->costs ? t : nori_costs_value(in->costs, nori_value_name(v));
    if (t) {
        cli_tensor_shape(t, out, size);
        return;
    }
    const char *names[NORI_MAX_RANK];
    int64_t dims[NORI_MAX_RANK];
    nori_value_info info = {.kind = nori_value_kind(v), .type = nori_value_type(v),
                            .rank = nori_value_rank(v), .dims = dims, .dim_names = names};
    for (int d = 0; d < info.rank; d++) {
        dims[d] = nori_value_dim(v, d, &names[d]);
    }
    cli_shape(&info, out, size);
}

static const char *source_of(const nori_value *v)
{
    return nori_value_initializer(v)   ? "initializer"
           : !nori_value_producer(v)   ? "graph input"
                                       : "";
}

static void print_value(const inspect *in, const char *what, size_t i, const nori_value *v)
{
    char shape[512], from[512] = "";
    if (!v) {
        printf("  %s %zu  (absent)\n", what, i);
        return;
    }
    inspect_value_shape(in, v, shape, sizeof(shape));
    if (what[0] == 'i' && nori_value_producer(v)) {
        nori_node_path(nori_value_producer(v), from, sizeof(from));
    } else if (what[0] == 'i') {
        snprintf(from, sizeof(from), "%s", source_of(v));
    }
    printf("  %s %zu  %-32s %s%s%s\n", what, i, nori_value_name(v), shape, from[0] ? ", from " : "",
           from);
}

static void print_node(const inspect *in, const nori_node *n, char *text)
{
    nori_node_path(n, text, TEXT_SIZE);
    printf("%s\n  operator  %s%s%s, version %d\n", text, nori_node_domain(n),
           nori_node_domain(n)[0] ? ":" : "", nori_node_op(n), nori_node_version(n));
    for (size_t i = 0; i < nori_node_attr_count(n); i++) {
        nori_node_attr_text(n, i, text, TEXT_SIZE);
        printf("  attribute %s = %s\n", nori_node_attr_name(n, i), text);
    }
    for (size_t i = 0; i < nori_node_input_count(n); i++) {
        print_value(in, "input ", i, nori_node_input(n, i));
    }
    for (size_t i = 0; i < nori_node_output_count(n); i++) {
        print_value(in, "output", i, nori_node_output(n, i));
    }
    for (size_t i = 0; nori_node_subgraph(n, i); i++) {
        const nori_graph *g = nori_node_subgraph(n, i);
        printf("  subgraph  %s of %zu nodes\n", nori_graph_name(g), nori_graph_node_count(g));
    }
    const nori_cost *cost = inspect_cost(in, n);
    if (cost && cost->known) {
        printf("  a run     %llu MACs, reads %llu bytes, writes %llu\n",
               (unsigned long long)cost->macs, (unsigned long long)cost->read_bytes,
               (unsigned long long)cost->written_bytes);
    }
}

static void json_value(const inspect *in, cli_json *j, const nori_value *v)
{
    char shape[512];
    if (!v) {
        cli_json_null(j, NULL);
        return;
    }
    inspect_value_shape(in, v, shape, sizeof(shape));
    cli_json_object(j, NULL);
    cli_json_string(j, "name", nori_value_name(v));
    cli_json_string(j, "is", shape);
    cli_json_bool(j, "initializer", nori_value_initializer(v) != NULL);
    cli_json_end(j);
}

static void json_node(const inspect *in, cli_json *j, const nori_node *n, char *text)
{
    cli_json_object(j, NULL);
    nori_node_path(n, text, TEXT_SIZE);
    cli_json_string(j, "path", text);
    cli_json_string(j, "name", nori_node_name(n));
    cli_json_string(j, "domain", nori_node_domain(n));
    cli_json_string(j, "op", nori_node_op(n));
    cli_json_int(j, "version", nori_node_version(n));
    cli_json_object(j, "attributes");
    for (size_t i = 0; i < nori_node_attr_count(n); i++) {
        nori_node_attr_text(n, i, text, TEXT_SIZE);
        cli_json_string(j, nori_node_attr_name(n, i), text);
    }
    cli_json_end(j);
    cli_json_array(j, "inputs");
    for (size_t i = 0; i < nori_node_input_count(n); i++) {
        json_value(in, j, nori_node_input(n, i));
    }
    cli_json_end(j);
    cli_json_array(j, "outputs");
    for (size_t i = 0; i < nori_node_output_count(n); i++) {
        json_value(in, j, nori_node_output(n, i));
    }
    cli_json_end(j);
    const nori_cost *cost = inspect_cost(in, n);
    if (cost && cost->known) {
        cli_json_uint(j, "macs", cost->macs);
        cli_json_uint(j, "read_bytes", cost->read_bytes);
        cli_json_uint(j, "written_bytes", cost->written_bytes);
    }
    cli_json_end(j);
}

/* By name, by output, or by path with or without the operator behind it. */
static bool is_node(const nori_node *n, const char *name)
{
    char path[1024];
    bool is = strcmp(nori_node_name(n), name) == 0;
    for (size_t i = 0; !is && i < nori_node_output_count(n); i++) {
        const nori_value *v = nori_node_output(n, i);
        is = v && strcmp(nori_value_name(v), name) == 0;
    }
    if (!is) {
        nori_node_path(n, path, sizeof(path));
        size_t size = strlen(name);
        is = strncmp(path, name, size) == 0 &&
             (path[size] == 0 ||
              (strncmp(path + size, " (", 2) == 0 && !strstr(path + size, " > ")));
    }
    return is;
}

/* What a walk over all nodes does with each; subgraphs nest as deep as loading allows. */
typedef struct listing {
    const inspect *in;
    const char *name; /* NULL: all nodes */
    char *text;
    cli_json *json;   /* or NULL */
    int found;
} listing;

static void print_line(const listing *l, const nori_node *n)
{
    char shape[256] = "", macs[32] = "";
    const nori_value *out = nori_node_output_count(n) > 0 ? nori_node_output(n, 0) : NULL;
    nori_node_path(n, l->text, TEXT_SIZE);
    if (out) {
        inspect_value_shape(l->in, out, shape, sizeof(shape));
    }
    const nori_cost *cost = inspect_cost(l->in, n);
    if (cost && cost->known && cost->macs > 0) {
        cli_count_text(cost->macs, macs, sizeof(macs));
    }
    if (macs[0]) {
        printf("%-48s %-28s %10s MACs\n", l->text, shape, macs);
    } else {
        printf("%-48s %s\n", l->text, shape);
    }
}

static void list(listing *l, const nori_graph *g)
{
    for (const nori_node *n = nori_graph_first(g); n; n = nori_node_next(n)) {
        if (!l->name || is_node(n, l->name)) {
            l->found++;
            if (l->json) {
                json_node(l->in, l->json, n, l->text);
            } else if (l->name) {
                print_node(l->in, n, l->text);
            } else {
                print_line(l, n);
            }
        }
        const nori_graph *sub;
        for (size_t i = 0; (sub = nori_node_subgraph(n, i)) != NULL; i++) {
            list(l, sub);
        }
    }
}

int inspect_node(const inspect *in, const char *name)
{
    cli_json j;
    listing l = {.in = in, .name = name, .text = malloc(TEXT_SIZE)};
    if (!l.text) {
        return 0;
    }
    if (in->args->json) {
        l.json = &j;
        cli_json_begin_array(&j, stdout);
    }
    list(&l, nori_model_graph(in->model));
    if (l.json) {
        cli_json_finish(&j);
    }
    free(l.text);
    return l.found;
}

void inspect_nodes(const inspect *in)
{
    inspect_node(in, NULL);
}

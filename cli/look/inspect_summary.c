/* inspect_summary.c: the model as a whole, for people and as JSON. */
#include <string.h>

#include "inspect.h"
#include "nori/compile.h"

/* ---- axes that only outputs have ---- */

static bool input_has(const nori_model *m, const char *name)
{
    for (size_t i = 0; i < nori_model_input_count(m); i++) {
        const nori_value_info *v = nori_model_input(m, i);
        for (int d = 0; d < v->rank; d++) {
            if (v->dim_names[d] && strcmp(v->dim_names[d], name) == 0) {
                return true;
            }
        }
    }
    return false;
}

static void warn_axes(const inspect *in, void (*say)(void *user, const char *text), void *user)
{
    for (size_t i = 0; in->session && i < nori_session_output_count(in->session); i++) {
        const nori_value_info *said = nori_model_output(in->model, i);
        const nori_value_info *is = nori_session_output(in->session, i);
        for (int d = 0; d < said->rank && said->rank == is->rank; d++) {
            const char *name = said->dim_names[d];
            if (!name || said->dims[d] >= 0 || is->dims[d] < 0 || input_has(in->model, name)) {
                continue;
            }
            char declared[256], inferred[256], text[1024];
            cli_shape(said, declared, sizeof(declared));
            cli_shape(is, inferred, sizeof(inferred));
            snprintf(text, sizeof(text),
                     "output %s is declared %s, but computes %s: no input has an axis \"%s\"",
                     said->name, declared, inferred, name);
            say(user, text);
            break;
        }
    }
}

/* Exporters that know nothing of missing values write flags that are all zero: NaN then takes the
 * branch for "no", which is seldom what the trees were trained with. */
static void warn_trees(const nori_graph *g, void (*say)(void *user, const char *text), void *user)
{
    for (const nori_node *n = nori_graph_first(g); n; n = nori_node_next(n)) {
        size_t count = 0, set = 0;
        const int64_t *flags = nori_node_ints(n, "nodes_missing_value_tracks_true", &count);
        for (size_t i = 0; flags && i < count; i++) {
            set += flags[i] != 0;
        }
        if (flags && count > 0 && set == 0) {
            char path[512], text[768];
            nori_node_path(n, path, sizeof(path));
            snprintf(text, sizeof(text),
                     "%s: nodes_missing_value_tracks_true is zero everywhere: a missing value (NaN) "
                     "takes the false branch of every node",
                     path);
            say(user, text);
        }
        const nori_graph *sub;
        for (size_t i = 0; (sub = nori_node_subgraph(n, i)) != NULL; i++) {
            warn_trees(sub, say, user);
        }
    }
}

void inspect_warnings(const inspect *in, void (*say)(void *user, const char *text), void *user)
{
    if (!cli_has(in->args, "--dim")) { /* sizes that were asked for are no fault of the model */
        warn_axes(in, say, user);
    }
    warn_trees(nori_model_graph(in->model), say, user);
}

/* ---- for people ---- */

static void print_values(const nori_model *m, bool inputs)
{
    size_t n = inputs ? nori_model_input_count(m) : nori_model_output_count(m);
    printf(inputs ? "inputs\n" : "outputs\n");
    for (size_t i = 0; i < n; i++) {
        const nori_value_info *v = inputs ? nori_model_input(m, i) : nori_model_output(m, i);
        char shape[512];
        cli_shape(v, shape, sizeof(shape));
        printf("  %-32s %s%s\n", v->name, shape, v->optional ? " (has a default)" : "");
    }
}

/* Bytes of the weights with real numbers stored in that many bytes each; integers stay. */
static uint64_t bytes_as(const inspect *in, uint64_t each)
{
    uint64_t bytes = in->weight_bytes;
    static const nori_type reals[] = {NORI_FLOAT, NORI_DOUBLE, NORI_FLOAT16, NORI_BFLOAT16};
    for (size_t i = 0; i < sizeof(reals) / sizeof(reals[0]); i++) {
        uint64_t n = in->elements_of[reals[i]];
        bytes = bytes - n * nori_type_bits(reals[i]) / 8 + n * each;
    }
    return bytes;
}

static void print_weights(const inspect *in)
{
    char now[32], half[32], byte[32];
    cli_bytes_text(in->weight_bytes, now, sizeof(now));
    cli_bytes_text(bytes_as(in, 2), half, sizeof(half));
    cli_bytes_text(bytes_as(in, 1), byte, sizeof(byte));
    printf("initializers  %zu, %llu elements: %s now, %s as float16, %s as int8\n",
           in->initializers, (unsigned long long)in->weight_elements, now, half, byte);
    int types = 0;
    for (int t = 0; t < NORI_TYPE_COUNT; t++) {
        types += in->elements_of[t] > 0;
    }
    for (int t = 0; types > 1 && t < NORI_TYPE_COUNT; t++) {
        if (in->elements_of[t] > 0) {
            printf("              %llu of type %s\n", (unsigned long long)in->elements_of[t],
                   nori_type_name((nori_type)t));
        }
    }
}

/* "--dim height=N --dim width=N": the names of free dimensions of inputs, each once. */
static void print_free(const nori_model *m)
{
    bool any = false;
    for (size_t i = 0; i < nori_model_input_count(m); i++) {
        const nori_value_info *v = nori_model_input(m, i);
        for (int d = 0; d < v->rank; d++) {
            const char *name = v->dims[d] < 0 ? v->dim_names[d] : NULL;
            bool before = false;
            for (size_t k = 0; name && k <= i && !before; k++) {
                const nori_value_info *w = nori_model_input(m, k);
                for (int e = 0; e < (k == i ? d : w->rank) && !before; e++) {
                    before = w->dim_names[e] && strcmp(w->dim_names[e], name) == 0;
                }
            }
            if (name && !before) {
                printf("%s--dim %s=N", any ? " " : "", name);
                any = true;
            }
        }
    }
    printf(any ? "\n" : "no input has a named dimension\n");
}

static void print_run(const inspect *in)
{
    char text[32], more[32];
    if (!in->costs) {
        bool supported = in->why.status != NORI_ERROR_UNSUPPORTED;
        printf("a run         cannot be planned: %.*s\n", (int)strcspn(in->why.message, "\n"),
               in->why.message);
        if (supported) {
            printf("              free dimensions were taken as 1; other sizes: ");
            print_free(in->model);
        } else {
            printf("              `nori check` tells all about it\n");
        }
        return;
    }
    cli_count_text(in->total.macs, text, sizeof(text));
    printf("a run         %s MACs", text);
    if (in->total.inner_macs > 0) {
        cli_count_text(in->total.inner_macs, more, sizeof(more));
        printf(", and %s for each pass of its subgraphs", more);
    }
    printf("\n");
    if (in->total.unknown > 0) {
        printf("              without %zu of %zu nodes, whose sizes come out of the run\n",
               in->total.unknown, in->total.nodes);
    }
    cli_bytes_text(in->activation_bytes, text, sizeof(text));
    cli_bytes_text(in->packed_bytes, more, sizeof(more));
    printf("              %s activations at the peak, %s packed weights (planned, 1 thread)\n",
           text, more);
    if (in->late > 0) {
        printf("              without %zu node%s that get%s memory only while running\n", in->late,
               in->late == 1 ? "" : "s", in->late == 1 ? "s" : "");
    }
    cli_bytes_text(in->total.input_bytes, text, sizeof(text));
    cli_bytes_text(in->total.output_bytes, more, sizeof(more));
    printf("              %s inputs, %s outputs; free dimensions are 1 unless --dim says more\n",
           text, more);
}

/* What a plan file was made for, with semicolons between its lines. */
static bool plan_words(const nori_model *m, nori_plan_info *info, char *text, size_t size)
{
    *info = (nori_plan_info){.size = sizeof(*info)};
    if (!nori_model_plan(m, info)) {
        return false;
    }
    snprintf(text, size, "%s", info->made_for);
    for (char *c = text; *c; c++) {
        *c = *c == '\n' ? (c[1] ? ';' : 0) : *c < ' ' || *c > '~' ? '?' : *c;
    }
    return true;
}

static void print_plan(const nori_model *m)
{
    nori_plan_info info;
    char text[512], bytes[32];
    if (plan_words(m, &info, text, sizeof(text))) {
        cli_bytes_text(info.packed_bytes, bytes, sizeof(bytes));
        printf("plan          %llu blocks of packed weights, %s, for: %s\n",
               (unsigned long long)info.blocks, bytes, text);
        if (info.tuned_threads > 0) {
            printf("              tuned for %d thread%s: %llu node%s another way than usual\n",
                   info.tuned_threads, info.tuned_threads == 1 ? "" : "s",
                   (unsigned long long)info.tuned_layers, info.tuned_layers == 1 ? " goes" : "s go");
            for (const char *line = info.ways, *stop; (stop = strchr(line, '\n')); line = stop + 1) {
                printf("              %.*s\n", (int)(stop - line), line);
            }
        }
    }
}

static void json_plan(cli_json *j, const nori_model *m)
{
    nori_plan_info info;
    char text[512];
    if (plan_words(m, &info, text, sizeof(text))) {
        cli_json_object(j, "plan");
        cli_json_string(j, "made_for", text);
        cli_json_uint(j, "model_bytes", info.model_bytes);
        cli_json_uint(j, "packed_bytes", info.packed_bytes);
        cli_json_uint(j, "blocks", info.blocks);
        cli_json_int(j, "tuned_threads", info.tuned_threads);
        cli_json_uint(j, "tuned_layers", info.tuned_layers);
        cli_json_string(j, "ways", info.ways);
        cli_json_end(j);
    }
}

static void print_operators(const inspect *in)
{
    printf("operators\n");
    for (size_t i = 0; i < in->n_ops; i++) {
        const inspect_op *o = &in->ops[i];
        char name[160], macs[32];
        snprintf(name, sizeof(name), "%s%s%s", o->domain, o->domain[0] ? ":" : "", o->op);
        cli_count_text(o->macs, macs, sizeof(macs));
        if (o->macs > 0 && o->count > 0) {
            printf("  %6zu  %-32s %10s MACs\n", o->count, name, macs);
        } else if (o->macs > 0) {
            printf("       -  %-32s %10s MACs (in functions or newer forms)\n", name, macs);
        } else {
            printf("  %6zu  %s\n", o->count, name);
        }
    }
    for (size_t i = 0; i < in->n_resizes; i++) {
        printf("  %6zu  %s\n", in->resizes[i].count, in->resizes[i].text);
    }
}

void inspect_text(const inspect *in)
{
    const nori_model *m = in->model;
    const char *domain, *key, *value, *name;
    char file[32];
    int64_t version;
    size_t count;
    cli_bytes_text(nori_model_file_bytes(m), file, sizeof(file));
    printf("%s (%s)\n", nori_model_path(m), file);
    printf("IR version    %lld\n", (long long)nori_model_ir_version(m));
    printf("opsets       ");
    for (size_t i = 0; nori_model_opset(m, i, &domain, &version); i++) {
        printf("%s %s %lld", i ? "," : "", domain[0] ? domain : "ai.onnx", (long long)version);
    }
    const char *producer = nori_model_producer(m);
    printf("\nproducer      %s\n", producer[0] ? producer : "not said");
    printf("nodes         %zu (%zu in the main graph, %zu subgraph%s)\n", in->nodes,
           nori_graph_node_count(nori_model_graph(m)), in->subgraphs,
           in->subgraphs == 1 ? "" : "s");
    print_weights(in);
    print_run(in);
    print_values(m, true);
    print_values(m, false);
    print_operators(in);
    for (size_t i = 0; nori_model_function(m, i, &domain, &name, &count); i++) {
        printf("function      %s:%s of %zu nodes\n", domain, name, count);
    }
    print_plan(m);
    for (size_t i = 0; nori_model_external(m, i); i++) {
        printf("external data %s\n", nori_model_external(m, i));
    }
    for (size_t i = 0; nori_model_metadata(m, i, &key, &value); i++) {
        printf("metadata      %s = %.200s\n", key, value);
    }
}

/* ---- as JSON ---- */

static void json_shape(cli_json *j, const nori_value_info *v)
{
    if (v->rank < 0) {
        cli_json_null(j, "shape");
        return;
    }
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
        json_shape(j, v);
        cli_json_end(j);
    }
    cli_json_end(j);
}

static void json_run(cli_json *j, const inspect *in)
{
    cli_json_object(j, "run");
    cli_json_bool(j, "planned", in->costs != NULL);
    if (in->costs) {
        cli_json_uint(j, "macs", in->total.macs);
        cli_json_uint(j, "subgraph_macs", in->total.inner_macs);
        cli_json_uint(j, "unknown_nodes", in->total.unknown);
        cli_json_uint(j, "activation_bytes", in->activation_bytes);
        cli_json_uint(j, "packed_bytes", in->packed_bytes);
        cli_json_uint(j, "late_nodes", in->late);
        cli_json_uint(j, "input_bytes", in->total.input_bytes);
        cli_json_uint(j, "output_bytes", in->total.output_bytes);
    } else {
        cli_json_string(j, "reason", in->why.message);
    }
    cli_json_end(j);
}

static void json_weights(cli_json *j, const inspect *in)
{
    cli_json_object(j, "initializers");
    cli_json_uint(j, "count", in->initializers);
    cli_json_uint(j, "elements", in->weight_elements);
    cli_json_uint(j, "bytes", in->weight_bytes);
    cli_json_uint(j, "bytes_float16", bytes_as(in, 2));
    cli_json_uint(j, "bytes_int8", bytes_as(in, 1));
    cli_json_object(j, "elements_by_type");
    for (int t = 0; t < NORI_TYPE_COUNT; t++) {
        if (in->elements_of[t] > 0) {
            cli_json_uint(j, nori_type_name((nori_type)t), in->elements_of[t]);
        }
    }
    cli_json_end(j);
    cli_json_end(j);
}

static void json_operators(cli_json *j, const inspect *in)
{
    cli_json_array(j, "operators");
    for (size_t i = 0; i < in->n_ops; i++) {
        cli_json_object(j, NULL);
        cli_json_string(j, "domain", in->ops[i].domain);
        cli_json_string(j, "op", in->ops[i].op);
        cli_json_uint(j, "count", in->ops[i].count);
        cli_json_uint(j, "macs", in->ops[i].macs);
        cli_json_end(j);
    }
    cli_json_end(j);
    cli_json_array(j, "resizes");
    for (size_t i = 0; i < in->n_resizes; i++) {
        cli_json_object(j, NULL);
        cli_json_string(j, "how", in->resizes[i].text);
        cli_json_uint(j, "count", in->resizes[i].count);
        cli_json_end(j);
    }
    cli_json_end(j);
}

static void say_json(void *user, const char *text)
{
    cli_json_string(user, NULL, text);
}

void inspect_json(const inspect *in)
{
    const nori_model *m = in->model;
    const char *domain, *name, *key, *value;
    int64_t version;
    size_t count;
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
    cli_json_uint(&j, "nodes", in->nodes);
    cli_json_uint(&j, "subgraphs", in->subgraphs);
    json_weights(&j, in);
    json_run(&j, in);
    json_values(&j, m, true);
    json_values(&j, m, false);
    json_operators(&j, in);
    cli_json_array(&j, "functions");
    for (size_t i = 0; nori_model_function(m, i, &domain, &name, &count); i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "domain", domain);
        cli_json_string(&j, "name", name);
        cli_json_uint(&j, "nodes", count);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    json_plan(&j, m);
    cli_json_array(&j, "external_data");
    for (size_t i = 0; nori_model_external(m, i); i++) {
        cli_json_string(&j, NULL, nori_model_external(m, i));
    }
    cli_json_end(&j);
    cli_json_object(&j, "metadata");
    for (size_t i = 0; nori_model_metadata(m, i, &key, &value); i++) {
        cli_json_string(&j, key, value);
    }
    cli_json_end(&j);
    cli_json_array(&j, "warnings");
    inspect_warnings(in, say_json, &j);
    cli_json_finish(&j);
}

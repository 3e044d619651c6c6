/* text_write.c: a model's messages as text: header, graphs, nodes, functions. */
#include "graph/text_write.h"

static void put_entries(nori__text_out *o, const nori__pb_entry *items, size_t count)
{
    nori__put_word(o, "[");
    for (size_t i = 0; i < count; i++) {
        nori__put_word(o, i ? ", " : "");
        nori__put_quoted(o, items[i].key);
        nori__put_word(o, ": ");
        nori__put_quoted(o, items[i].value);
    }
    nori__put_word(o, "]");
}

static void put_value_note(nori__text_out *o, const nori__pb_value *v)
{
    nori__note_out note = {.doc = v->doc, .metadata = v->metadata.items,
                           .n_metadata = v->metadata.count, .head = &v->head};
    if (v->type && nori__type_has_text(v->type)) {
        note.type = v->type;
    } else if (v->type) {
        note.raw_type = v->type->head.bytes.p ? v->type->head.bytes : NORI__STR("");
    }
    nori__put_note(o, &note);
}

static void put_value(nori__text_out *o, const nori__pb_value *v)
{
    put_value_note(o, v);
    if (v->type && nori__type_has_text(v->type)) {
        nori__put_type(o, v->type);
        nori__put_word(o, " ");
    }
    nori__put_id(o, v->name);
}

static void put_values(nori__text_out *o, const char *open, const nori__pb_value *items, size_t count,
                       const char *close)
{
    nori__put_word(o, open);
    for (size_t i = 0; i < count; i++) {
        nori__put_word(o, i ? ", " : "");
        put_value(o, &items[i]);
    }
    nori__put_word(o, close);
}

static void put_names(nori__text_out *o, const nori__str *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        nori__put_word(o, i ? ", " : "");
        nori__put_id(o, items[i]);
    }
}

static bool is_plain_constant(const nori__pb_node *n)
{
    return nori__str_is(n->op_type, "Constant") &&
           (n->domain.n == 0 || nori__str_is(n->domain, "ai.onnx")) && n->outputs.count == 1;
}

/* "ai.onnx.ml" is written as it is; a part that is no identifier is quoted as a whole. */
static void put_domain(nori__text_out *o, nori__str domain)
{
    for (size_t at = 0; at < domain.n;) {
        size_t end = at;
        while (end < domain.n && domain.p[end] != '.') {
            end++;
        }
        nori__str part = {domain.p + at, end - at};
        if (part.n == 0 || end + 1 == domain.n) { /* dots that are not between names */
            nori__put_quoted(o, (nori__str){domain.p + at, domain.n - at});
            end = domain.n;
        } else {
            nori__put_id(o, part);
        }
        nori__put_word(o, ".");
        at = end + 1;
    }
}

static void put_attrs(nori__text_out *o, const nori__pb_node *n)
{
    bool any = false;
    for (size_t i = 0; i < n->attrs.count; i++) {
        const nori__pb_attr *a = &n->attrs.items[i];
        if (nori__attr_has_text(a)) {
            nori__put_word(o, any ? ", " : " <");
            nori__put_attr(o, a, o->depth == 0 && !o->inside && is_plain_constant(n) &&
                                     nori__str_is(a->name, "value"));
            any = true;
        }
    }
    nori__put_word(o, any ? ">" : "");
}

static bool has_graph(const nori__pb_node *n)
{
    for (size_t i = 0; i < n->attrs.count; i++) {
        if (n->attrs.items[i].g || n->attrs.items[i].graphs.count) {
            return true;
        }
    }
    return false;
}

static void put_node(nori__text_out *o, const nori__pb_node *n)
{
    nori__put_line(o);
    nori__put_note(o, &(nori__note_out){.doc = n->doc, .metadata = n->metadata.items,
                                        .n_metadata = n->metadata.count, .head = &n->head,
                                        .kept = {{10, n->devices.items, n->devices.count}},
                                        .node = n});
    if (n->name.n) {
        nori__put_word(o, "[");
        nori__put_id(o, n->name);
        nori__put_word(o, "] ");
    }
    put_names(o, n->outputs.items, n->outputs.count);
    nori__put_word(o, n->outputs.count ? " = " : "= ");
    put_domain(o, n->domain);
    nori__put_id(o, n->op_type);
    if (n->overload.n) {
        nori__put_word(o, ":");
        nori__put_id(o, n->overload);
    }
    bool graphs = has_graph(n); /* then the inputs, which are short, come first */
    if (!graphs) {
        put_attrs(o, n);
    }
    nori__put_word(o, n->attrs.count && !graphs ? " (" : "(");
    put_names(o, n->inputs.items, n->inputs.count);
    nori__put_word(o, ")");
    if (graphs) {
        put_attrs(o, n);
    }
}

static void put_nodes(nori__text_out *o, const nori__pb_node *items, size_t count)
{
    nori__put_word(o, " {");
    for (size_t i = 0; i < count && o->status == NORI_OK && !o->text->failed; i++) {
        put_node(o, &items[i]);
    }
    o->depth--;
    nori__put_line(o);
    o->depth++;
    nori__put_word(o, "}");
}

static void put_stored(nori__text_out *o, const nori__pb_graph *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->initializers.count && o->status == NORI_OK; i++) {
        const nori__pb_tensor *t = &g->initializers.items[i];
        nori__put_word(o, n++ ? "," : " <");
        nori__put_line(o);
        nori__put_note(o, &(nori__note_out){.doc = t->doc, .metadata = t->metadata.items,
                                            .n_metadata = t->metadata.count, .head = &t->head});
        nori__put_tensor(o, t, true, o->depth == 0);
    }
    for (size_t i = 0; i < g->sparse_initializers.count && o->status == NORI_OK; i++) {
        nori__put_word(o, n++ ? "," : " <");
        nori__put_line(o);
        nori__put_note(o, &(nori__note_out){.head = &g->sparse_initializers.items[i].head});
        nori__put_sparse(o, &g->sparse_initializers.items[i]);
    }
    for (size_t i = 0; i < g->value_info.count; i++) {
        nori__put_word(o, n++ ? "," : " <");
        nori__put_line(o);
        put_value(o, &g->value_info.items[i]);
    }
    nori__put_word(o, n ? ">" : "");
}

/* A note in front of the graph is about it: in front of its first node it would be that one's. */
static void put_graph_at(nori__text_out *o, const nori__pb_graph *g)
{
    nori__put_note(o, &(nori__note_out){
        .doc = g->doc, .metadata = g->metadata.items, .n_metadata = g->metadata.count,
        .head = &g->head, .kept = {{14, g->quantization.items, g->quantization.count}}});
    nori__put_id(o, g->name);
    put_values(o, " (", g->inputs.items, g->inputs.count, ") => ");
    put_values(o, "(", g->outputs.items, g->outputs.count, ")");
    put_stored(o, g);
    put_nodes(o, g->nodes.items, g->nodes.count);
}

void nori__put_graph(nori__text_out *o, const nori__pb_graph *g)
{
    o->depth++;
    put_graph_at(o, g);
    o->depth--;
}

static void put_opsets(nori__text_out *o, const nori__pb_opset *items, size_t count)
{
    nori__put_word(o, "opset_import: [");
    for (size_t i = 0; i < count; i++) {
        nori__put_word(o, i ? ", " : "");
        nori__put_quoted(o, items[i].domain);
        nori__text_printf(o->text, ": %lld", (long long)items[i].version);
    }
    nori__put_word(o, "]");
}

static void put_text(nori__text_out *o, const char *key, nori__str s)
{
    if (s.n) {
        nori__text_printf(o->text, ",\n    %s: ", key);
        nori__put_quoted(o, s);
    }
}

static void put_header(nori__text_out *o, const nori__pb_model *m)
{
    nori__put_note(o, &(nori__note_out){
        .head = &m->head, .kept = {{20, m->training.items, m->training.count},
                                   {26, m->configuration.items, m->configuration.count}}});
    nori__put_word(o, "<\n    ");
    if (m->ir_version) {
        nori__text_printf(o->text, "ir_version: %lld,\n    ", (long long)m->ir_version);
    }
    put_opsets(o, m->opsets.items, m->opsets.count);
    put_text(o, "producer_name", m->producer_name);
    put_text(o, "producer_version", m->producer_version);
    put_text(o, "domain", m->domain);
    if (m->model_version) {
        nori__text_printf(o->text, ",\n    model_version: %lld", (long long)m->model_version);
    }
    put_text(o, "doc_string", m->doc);
    if (m->metadata.count) {
        nori__put_word(o, ",\n    metadata_props: ");
        put_entries(o, m->metadata.items, m->metadata.count);
    }
    nori__put_word(o, "\n>\n");
}

static void put_function(nori__text_out *o, const nori__pb_function *f)
{
    nori__put_word(o, "\n\n");
    nori__put_note(o, &(nori__note_out){.metadata = f->metadata.items,
                                        .n_metadata = f->metadata.count, .head = &f->head});
    nori__put_word(o, "<\n    domain: ");
    nori__put_quoted(o, f->domain);
    nori__put_word(o, ",\n    ");
    put_opsets(o, f->opsets.items, f->opsets.count);
    put_text(o, "overload", f->overload);
    put_text(o, "doc_string", f->doc);
    nori__put_word(o, "\n>\n");
    nori__put_id(o, f->name);
    size_t n = 0;
    for (size_t i = 0; i < f->attr_names.count; i++) {
        nori__put_word(o, n++ ? ", " : " <");
        nori__put_id(o, f->attr_names.items[i]);
    }
    for (size_t i = 0; i < f->attrs.count; i++) {
        nori__put_word(o, n++ ? ", " : " <");
        nori__put_attr(o, &f->attrs.items[i], false);
    }
    nori__put_word(o, n ? "> (" : " (");
    put_names(o, f->inputs.items, f->inputs.count);
    nori__put_word(o, ") => (");
    put_names(o, f->outputs.items, f->outputs.count);
    nori__put_word(o, ")");
    for (size_t i = 0; i < f->value_info.count; i++) {
        nori__put_word(o, i ? "," : " <");
        nori__put_line(o);
        put_value(o, &f->value_info.items[i]);
    }
    nori__put_word(o, f->value_info.count ? ">" : "");
    o->inside = true;
    put_nodes(o, f->nodes.items, f->nodes.count);
    o->inside = false;
}

static uint64_t elements_of(const nori__pb_tensor *t)
{
    uint64_t n = 1;
    for (size_t i = 0; i < t->dims.count; i++) {
        uint64_t d = t->dims.items[i] > 0 ? (uint64_t)t->dims.items[i] : 0;
        n = d && n > UINT64_MAX / d ? UINT64_MAX : n * d;
    }
    return t->data_location == 1 ? 0 : n;
}

/* What a model's tensors hold together, to tell a small model. */
static int64_t most_elements(const nori__pb_graph *g, int64_t asked)
{
    enum { ALL = 65536, EACH = 64 };
    uint64_t sum = 0;
    if (asked >= 0) {
        return asked;
    }
    for (size_t i = 0; i < g->initializers.count && sum <= ALL; i++) {
        sum += elements_of(&g->initializers.items[i]) > ALL ? ALL + 1
                                                            : elements_of(&g->initializers.items[i]);
    }
    for (size_t i = 0; i < g->nodes.count && sum <= ALL; i++) {
        const nori__pb_node *n = &g->nodes.items[i];
        for (size_t k = 0; is_plain_constant(n) && k < n->attrs.count; k++) {
            const nori__pb_tensor *t = n->attrs.items[k].t;
            sum += !t ? 0 : elements_of(t) > ALL ? ALL + 1 : elements_of(t);
        }
    }
    return sum <= ALL ? INT64_MAX : EACH;
}

nori_status nori__pb_to_text(const nori__pb_model *m, int64_t inline_elements, nori__text *out,
                             nori__text_left *left, nori_error *err)
{
    nori__text_out o = {.text = out, .a = out->allocator, .err = err};
    if (!m->graph) {
        return nori__fail(err, NORI_ERROR_MODEL, "the model has no graph");
    }
    o.most = most_elements(m->graph, inline_elements);
    put_header(&o, m);
    put_graph_at(&o, m->graph);
    for (size_t i = 0; i < m->functions.count && o.status == NORI_OK; i++) {
        put_function(&o, &m->functions.items[i]);
    }
    nori__put_word(&o, "\n");
    *left = o.left;
    return o.status != NORI_OK ? o.status : out->failed ? nori__no_memory(err) : NORI_OK;
}

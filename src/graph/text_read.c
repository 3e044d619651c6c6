/* text_read.c: graphs, nodes, functions and a whole model from text. */
#include "graph/text_read.h"

typedef NORI__PB_LIST(nori__str) str_list;

static void keep_note(nori__text_in *r, const nori__note_in *n, nori__pb_head *head, nori__str *doc,
                      void *metadata)
{
    if (n->at && (n->denotation.n || n->dims.count)) {
        nori__text_fail(r, n->at, "only a value's type has denotations");
    }
    nori__text_keep(r, head, n->bytes);
    if (doc && n->doc.n) {
        *doc = n->doc;
    }
    if (metadata && n->metadata.count) {
        memcpy(metadata, &n->metadata, sizeof(n->metadata));
    }
    if ((!doc && n->doc.n) || (!metadata && n->metadata.count)) {
        nori__text_fail(r, n->at, "this has no doc_string or metadata_props of its own");
    }
}

/* ---- values ---- */

static void denote(nori__text_in *r, nori__note_in *n, nori__pb_type *type)
{
    size_t rank = type && type->shape ? type->shape->dims.count : 0;
    if (type) {
        type->denotation = n->denotation;
    }
    if ((n->denotation.n && !type) || (n->dims.count && n->dims.count != rank)) {
        nori__text_fail(r, n->at, "denotations were expected for a type of rank %zu, found %zu", rank,
                        n->dims.count);
        return;
    }
    for (size_t i = 0; i < n->dims.count; i++) {
        type->shape->dims.items[i].denotation = n->dims.items[i];
    }
    n->denotation.n = 0;
    n->dims.count = 0;
}

/* "type name" or "name". note: taken before. */
static void read_value(nori__text_in *r, nori__note_in *note, nori__pb_value *v)
{
    if (nori__text_at_type(r)) {
        v->type = nori__arena_alloc(r->arena, sizeof(*v->type));
        if (!v->type) {
            r->status = nori__no_memory(r->err);
            return;
        }
        nori__text_type(r, v->type);
    }
    v->name = nori__text_id(r, "a name, with its type in front of it,");
    denote(r, note, v->type);
    keep_note(r, note, &v->head, &v->doc, &v->metadata);
}

static void read_initializer(nori__text_in *r, nori__pb_graph *g, nori__pb_value *v)
{
    if (!v->type) {
        nori__text_fail(r, r->at, "a type was expected in front of a name that has a content");
    } else if (v->type->kind == NORI_KIND_SPARSE) {
        nori__pb_sparse *s = NORI__GROW(r, g->sparse_initializers);
        if (s) {
            nori__text_sparse_data(r, v->type, v->name, s);
            s->head = v->head;
        }
    } else {
        nori__pb_tensor *t = NORI__GROW(r, g->initializers);
        if (t) {
            t->head = v->head;
            t->name = v->name;
            t->doc = v->doc;
            memcpy(&t->metadata, &v->metadata, sizeof(t->metadata));
            nori__text_tensor_data(r, v->type, v->name, t);
        }
    }
}

/* Behind the opening bracket. inputs: a value with a content is both; else it is only stored. */
static void read_values(nori__text_in *r, nori__pb_graph *g, bool inputs, char close)
{
    for (size_t n = 0; r->status == NORI_OK && !nori__text_match(r, close); n++) {
        nori__pb_value v = {0};
        if (n && !nori__text_need(r, ',', close == ')' ? "',' or ')'" : "',' or '>'")) {
            return;
        }
        nori__note_in note = nori__text_note(r);
        read_value(r, &note, &v);
        bool content = nori__text_match(r, '=');
        if (inputs || !content) {
            nori__pb_value *to = inputs ? NORI__GROW(r, g->inputs) : NORI__GROW(r, g->value_info);
            if (to) {
                *to = v;
            }
        }
        if (content) {
            if (inputs) {
                v.doc = (nori__str){NULL, 0}; /* said of the input */
                v.metadata.count = 0;
                v.head = (nori__pb_head){0};
            }
            read_initializer(r, g, &v);
        }
    }
}

static void read_outputs(nori__text_in *r, nori__pb_graph *g)
{
    nori__text_need(r, '(', "'(' of a graph's outputs");
    for (size_t n = 0; r->status == NORI_OK && !nori__text_match(r, ')'); n++) {
        if (n && !nori__text_need(r, ',', "',' or ')'")) {
            return;
        }
        nori__note_in note = nori__text_note(r);
        nori__pb_value *v = NORI__GROW(r, g->outputs);
        if (v) {
            read_value(r, &note, v);
        }
    }
}

/* ---- nodes ---- */

/* Names; nothing between two commas is an empty one, as "" is. */
static void read_names(nori__text_in *r, const char *what, str_list *list)
{
    bool more = nori__text_at_id(r) || nori__text_peek(r) == ',';
    while (more && r->status == NORI_OK) {
        nori__str *s = NORI__GROW(r, *list);
        bool named = nori__text_at_id(r);
        nori__str v = named ? nori__text_id(r, what) : NORI__STR("");
        if (s) {
            *s = v;
        }
        more = nori__text_match(r, ',');
        if (more && named && !nori__text_at_id(r) && nori__text_peek(r) != ',') {
            more = false; /* a comma behind the last name */
        }
    }
}

static void read_attrs(nori__text_in *r, nori__pb_node *n)
{
    do {
        nori__note_in note = nori__text_note(r);
        nori__pb_attr *a = NORI__GROW(r, n->attrs);
        if (a) {
            a->name = nori__text_id(r, "an attribute's name");
            keep_note(r, &note, &a->head, &a->doc, NULL);
            nori__text_attr(r, a);
        }
    } while (r->status == NORI_OK && nori__text_match(r, ','));
    nori__text_need(r, '>', "',' or '>' of the attributes");
}

/* "domain.of.some.parts.Op:overload" */
static void read_operator(nori__text_in *r, nori__pb_node *n)
{
    nori__text domain;
    nori__text_init(&domain, &nori__malloc);
    nori__str id = nori__text_id(r, "an operator");
    for (size_t parts = 0; r->status == NORI_OK && nori__text_match(r, '.'); parts++) {
        nori__text_add(&domain, ".", parts > 0);
        nori__text_add(&domain, id.p, id.n);
        id = nori__text_id(r, "an operator behind its domain");
    }
    n->op_type = id;
    if (domain.size) {
        char *copy = domain.failed ? NULL : nori__arena_copy(r->arena, domain.data, domain.size);
        n->domain = (nori__str){copy, copy ? domain.size : 0};
        if (!copy && r->status == NORI_OK) {
            r->status = nori__no_memory(r->err);
        }
    }
    nori__text_free(&domain);
    if (nori__text_match(r, ':')) {
        n->overload = nori__text_id(r, "an overload");
    }
}

static void read_node(nori__text_in *r, nori__pb_node *n)
{
    nori__note_in note = nori__text_note(r);
    keep_note(r, &note, &n->head, &n->doc, &n->metadata);
    if (nori__text_match(r, '[')) {
        n->name = nori__text_peek(r) == ']' ? NORI__STR("") : nori__text_id(r, "a node's name");
        nori__text_need(r, ']', "']' behind a node's name");
    }
    str_list list = {0};
    read_names(r, "an output's name", &list);
    memcpy(&n->outputs, &list, sizeof(list));
    nori__text_need(r, '=', "'=' behind a node's outputs, or '}' of the graph,");
    read_operator(r, n);
    r->made = nori__str_is(n->op_type, "Constant") && n->outputs.count == 1 ? n->outputs.items[0]
                                                                           : (nori__str){NULL, 0};
    if (nori__text_match(r, '<')) {
        read_attrs(r, n);
    }
    nori__text_need(r, '(', "'(' of a node's inputs");
    str_list inputs = {0};
    read_names(r, "an input's name", &inputs);
    memcpy(&n->inputs, &inputs, sizeof(inputs));
    nori__text_need(r, ')', "',' or ')' of a node's inputs");
    if (n->attrs.count == 0 && nori__text_match(r, '<')) {
        read_attrs(r, n);
    }
    r->made = (nori__str){NULL, 0};
}

static void read_arrow(nori__text_in *r)
{
    nori__text_need(r, '=', "\"=>\"");
    if (r->status == NORI_OK && (r->at == r->end || *r->at != '>')) {
        nori__text_expected(r, "\"=>\"");
    } else if (r->status == NORI_OK) {
        r->at++;
    }
}

/* Between the braces, the first of which is yet to come. */
static void read_nodes(nori__text_in *r, void *list)
{
    NORI__PB_LIST(nori__pb_node) nodes = {0};
    nori__text_need(r, '{', "'{' of the nodes");
    while (r->status == NORI_OK && !(nori__text_peek(r) == '}' && nori__text_match(r, '}'))) {
        nori__pb_node *n = NORI__GROW(r, nodes);
        if (n) {
            read_node(r, n);
        }
    }
    memcpy(list, &nodes, sizeof(nodes));
}

void nori__text_graph(nori__text_in *r, nori__pb_graph *g)
{
    bool was_main = r->main_graph;
    nori__note_in note = nori__text_note(r);
    if (!nori__text_deeper(r)) {
        return;
    }
    r->main_graph = r->main_graph && r->depth == 1;
    keep_note(r, &note, &g->head, &g->doc, &g->metadata);
    g->name = nori__text_id(r, "a graph's name");
    nori__text_need(r, '(', "'(' of a graph's inputs");
    read_values(r, g, true, ')');
    read_arrow(r);
    read_outputs(r, g);
    if (nori__text_match(r, '<')) {
        read_values(r, g, false, '>');
    }
    read_nodes(r, &g->nodes);
    r->main_graph = was_main;
    r->depth--;
}

/* ---- functions and models ---- */

static void read_opsets(nori__text_in *r, void *list)
{
    NORI__PB_LIST(nori__pb_opset) opsets = {0};
    nori__text_need(r, '[', "'[' of the operator sets");
    while (r->status == NORI_OK && !nori__text_match(r, ']')) {
        if (opsets.count && !nori__text_need(r, ',', "',' or ']' of the operator sets")) {
            break;
        }
        nori__pb_opset *o = NORI__GROW(r, opsets);
        nori__str domain = nori__text_string(r, "a quoted domain");
        nori__text_need(r, ':', "':' and a version");
        int64_t version = nori__text_int(r, "a version");
        if (o) {
            o->domain = domain;
            o->version = version;
        }
    }
    memcpy(list, &opsets, sizeof(opsets));
}

/* One "key: value" of the header in front of a model or, of_model NULL, a function. */
static void read_header_item(nori__text_in *r, nori__pb_model *m, nori__pb_function *f)
{
    nori__str key = nori__text_word(r, "a key (ir_version, opset_import ...)");
    const struct {
        const char *key;
        nori__str *text;
        int64_t *number;
    } items[] = {
        {"ir_version", NULL, m ? &m->ir_version : NULL},
        {"model_version", NULL, m ? &m->model_version : NULL},
        {"producer_name", m ? &m->producer_name : NULL, NULL},
        {"producer_version", m ? &m->producer_version : NULL, NULL},
        {"domain", m ? &m->domain : &f->domain, NULL},
        {"doc_string", m ? &m->doc : &f->doc, NULL},
        {"overload", f ? &f->overload : NULL, NULL},
    };
    nori__text_need(r, ':', "':' behind a key");
    if (nori__str_is(key, "opset_import")) {
        read_opsets(r, m ? (void *)&m->opsets : (void *)&f->opsets);
        return;
    }
    if (nori__str_is(key, "metadata_props")) {
        nori__text_need(r, '[', "'['");
        nori__text_entries(r, m ? (void *)&m->metadata : (void *)&f->metadata);
        return;
    }
    for (size_t i = 0; i < NORI__COUNT(items); i++) {
        if (nori__str_is(key, items[i].key) && items[i].text) {
            *items[i].text = nori__text_string(r, "a quoted string");
            return;
        }
        if (nori__str_is(key, items[i].key) && items[i].number) {
            *items[i].number = nori__text_int(r, "an integer");
            return;
        }
    }
    if (r->status == NORI_OK) {
        nori__text_fail(r, key.p, "a %s has no %.*s; it has %s", m ? "model" : "function",
                        (int)(key.n < 40 ? key.n : 40), key.p,
                        m ? "ir_version, opset_import, producer_name, producer_version, domain, "
                            "model_version, doc_string, metadata_props"
                          : "domain, opset_import, overload, doc_string, metadata_props");
    }
}

static void read_header(nori__text_in *r, nori__pb_model *m, nori__pb_function *f)
{
    if (!nori__text_match(r, '<')) {
        return;
    }
    do {
        read_header_item(r, m, f);
    } while (r->status == NORI_OK && nori__text_match(r, ','));
    nori__text_need(r, '>', "',' or '>' of the header");
}

/* Names, of which some have a type that goes to the function's value_info. */
static void read_parameters(nori__text_in *r, nori__pb_function *f, void *names)
{
    str_list list = {0};
    nori__text_need(r, '(', "'(' of a function's inputs or outputs");
    for (size_t n = 0; r->status == NORI_OK && !nori__text_match(r, ')'); n++) {
        nori__pb_value v = {0};
        if (n && !nori__text_need(r, ',', "',' or ')'")) {
            break;
        }
        nori__note_in note = nori__text_note(r);
        nori__str *s = NORI__GROW(r, list);
        read_value(r, &note, &v);
        if (s) {
            *s = v.name;
        }
        nori__pb_value *to = v.type ? NORI__GROW(r, f->value_info) : NULL;
        if (to) {
            *to = v;
        }
    }
    memcpy(names, &list, sizeof(list));
}

static void read_function(nori__text_in *r, nori__pb_function *f)
{
    nori__note_in note = nori__text_note(r);
    keep_note(r, &note, &f->head, NULL, &f->metadata);
    read_header(r, NULL, f);
    f->name = nori__text_id(r, "a function's name");
    if (nori__text_match(r, '<')) {
        do {
            note = nori__text_note(r);
            nori__str name = nori__text_id(r, "the name of a function's attribute");
            int c = nori__text_peek(r);
            if (c == ':' || c == '=') {
                nori__pb_attr *a = NORI__GROW(r, f->attrs);
                if (a) {
                    a->name = name;
                    keep_note(r, &note, &a->head, &a->doc, NULL);
                    nori__text_attr(r, a);
                }
            } else {
                nori__str *s = NORI__GROW(r, f->attr_names);
                if (s) {
                    *s = name;
                }
            }
        } while (r->status == NORI_OK && nori__text_match(r, ','));
        nori__text_need(r, '>', "',' or '>' of a function's attributes");
    }
    read_parameters(r, f, &f->inputs);
    read_arrow(r);
    read_parameters(r, f, &f->outputs);
    if (nori__text_match(r, '<')) {
        nori__pb_graph values = {0};
        read_values(r, &values, false, '>');
        if (values.initializers.count || values.sparse_initializers.count) {
            nori__text_fail(r, r->at, "a function has no initializers: use a Constant node");
        }
        for (size_t i = 0; i < values.value_info.count; i++) {
            nori__pb_value *to = NORI__GROW(r, f->value_info);
            if (to) {
                *to = values.value_info.items[i];
            }
        }
    }
    read_nodes(r, &f->nodes);
}

nori_status nori__pb_from_text(nori__arena *arena, const char *text, size_t size,
                               const nori__text_fill *fill, nori__pb_model **model,
                               nori_error *err)
{
    nori_error own = {0};
    nori__text_in r = {.start = text, .at = text, .end = text + size, .arena = arena,
                       .err = err ? err : &own, .fill = fill, .main_graph = true};
    nori__pb_model *m = nori__arena_alloc(arena, sizeof(*m));
    if (!m || !(m->graph = nori__arena_alloc(arena, sizeof(*m->graph)))) {
        return nori__no_memory(err);
    }
    /* A byte order mark, as some editors put it. */
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        r.at += 3;
    }
    nori__text_peek(&r);
    if (r.note.at && r.status == NORI_OK && r.at < r.end && *r.at == '<') {
        nori__note_in note = nori__text_note(&r);
        keep_note(&r, &note, &m->head, NULL, NULL);
    }
    read_header(&r, m, NULL);
    nori__text_graph(&r, m->graph);
    r.main_graph = false;
    while (r.status == NORI_OK && nori__text_peek(&r) != 0) {
        nori__pb_function *f = NORI__GROW(&r, m->functions);
        if (f) {
            read_function(&r, f);
        }
    }
    if (r.status == NORI_OK && r.at < r.end) {
        nori__text_fail(&r, r.at, "a NUL byte stands here; a text of a model was expected");
    }
    if (r.status == NORI_OK && r.note.at) {
        nori__text_fail(&r, r.note.at, "a note stands here that is about nothing");
    }
    *model = m;
    return r.status;
}

nori_status nori__graph_from_text(nori__arena *arena, const char *text, size_t size,
                                  nori__pb_graph **graph, nori_error *err)
{
    nori_error own = {0};
    nori__text_in r = {.start = text, .at = text, .end = text + size, .arena = arena,
                       .err = err ? err : &own};
    *graph = nori__arena_alloc(arena, sizeof(**graph));
    if (!*graph) {
        return nori__no_memory(err);
    }
    nori__text_graph(&r, *graph);
    if (r.status == NORI_OK && (nori__text_peek(&r) != 0 || r.at < r.end)) {
        nori__text_expected(&r, "the end of the graph");
    }
    return r.status;
}

/* split.c: a model in parts that run one after another. Each node gets a stage; a part is the nodes of
 * one stage with the constants they read; what a later stage reads is handed over. */
#include <stdio.h>

#include "tools/edit/editing.h"
#include "base/given.h"

struct nori_split_report {
    nori__arena arena;
    nori_split_part *parts;
    size_t count;
    nori_proof proof;
};

typedef struct splitting {
    const nori_model *model;
    const nori_split_options *options;
    nori__arena *arena; /* the report's */
    nori_split_report *report;
    nori__order order;
    nori__ir *typed, *sized; /* types; the same with the dimensions that were given */
    uint32_t *stage;    /* by node; constant ones have none */
    uint32_t *reader;   /* by value: latest stage that reads it + 1; 0: none */
    uint32_t at;        /* stage of the node whose reads are looked at */
    bool *reads;        /* by value: read by the stage at hand */
    size_t parts;
    nori__value ***in, ***out; /* by part */
    size_t *n_in, *n_out, *handed;
    nori_error *err;
} splitting;

void nori_proof_options_default(nori_proof_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_proof_options){.size = sizeof(*options), .seed = 1};
}

void nori_split_options_default(nori_split_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_split_options){.size = sizeof(*options)};
    nori_proof_options_default(&options->proof);
}

/* ---- stages ---- */

static nori_status boundary_value(splitting *s, const char *name, nori__value **v)
{
    const nori__ir *ir = s->order.ir;
    *v = name ? nori__map_get(nori__graph_names(ir->main), name) : NULL;
    if (!*v) {
        return nori__edit_no_value(ir, name ? name : "", s->err);
    }
    if (!s->order.maker[(*v)->id] || s->order.made[(*v)->id]) {
        nori_status status = nori__fail(
            s->err, NORI_ERROR_ARGUMENT, "\"%.200s\" is %s: nothing has to be computed before it", name,
            s->order.made[(*v)->id] ? "a constant" : "an input of the model");
        nori__hint(s->err, "cut at values that nodes make of the inputs; --list shows the cuts");
        return status;
    }
    return NORI_OK;
}

/* The first value that a node outside would read beyond those of the boundary. */
typedef struct missing {
    const splitting *s;
    const bool *needed; /* by node: makes the boundary's values */
    nori__value *const *values;
    size_t count;
    const char *names[4];
    size_t found;
} missing;

static bool look_missing(void *user, nori__value *v)
{
    missing *m = user;
    uint32_t maker = m->s->order.maker[v->id];
    bool given = maker == 0 || m->s->order.made[v->id] || !m->needed[maker - 1];
    for (size_t i = 0; i < m->count && !given; i++) {
        given = m->values[i] == v;
    }
    for (size_t i = 0; i < m->found && !given; i++) {
        given = nori__same(m->names[i], v->name);
    }
    if (!given && m->found < NORI__COUNT(m->names)) {
        m->names[m->found++] = v->name;
    }
    return true;
}

/* Marks what the values need alone, backwards. */
static bool mark_maker(void *user, nori__value *v)
{
    missing *m = user;
    uint32_t maker = m->s->order.maker[v->id];
    if (maker > 0) {
        ((bool *)(uintptr_t)m->needed)[maker - 1] = true;
    }
    return true;
}

static nori_status nothing_left(splitting *s, nori__value *const *values, size_t count)
{
    missing m = {.s = s, .values = values, .count = count};
    bool *needed = nori__arena_array(s->arena, s->order.count + 1, sizeof(*needed));
    if (!needed) {
        return nori__no_memory(s->err);
    }
    m.needed = needed;
    for (size_t i = 0; i < count; i++) {
        needed[s->order.maker[values[i]->id] - 1] = true;
    }
    for (size_t i = s->order.count; i-- > 0;) {
        if (needed[i]) {
            nori__node_reads(s->order.nodes[i], mark_maker, &m);
        }
    }
    for (size_t i = 0; i < s->order.count; i++) {
        if (!needed[i] && !s->order.constant[i]) {
            nori__node_reads(s->order.nodes[i], look_missing, &m);
        }
    }
    char list[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < m.found && used < sizeof(list) - 1; i++) {
        int n = snprintf(list + used, sizeof(list) - used, "%s%.60s", i ? ", " : "", m.names[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    nori_status status = m.found > 0
        ? nori__fail(s->err, NORI_ERROR_ARGUMENT,
                     "a cut at %.200s%s leaves nothing behind it: what follows also reads %s%s",
                     values[0]->name, count > 1 ? " and others" : "", list,
                     m.found == NORI__COUNT(m.names) ? ", ..." : "")
        : nori__fail(s->err, NORI_ERROR_ARGUMENT, "a cut at %.200s%s leaves nothing behind it",
                     values[0]->name, count > 1 ? " and others" : "");
    nori__hint(s->err, "name all values that cross, separated by commas; --list shows the cuts");
    return status;
}

static nori_status stages_by_values(splitting *s)
{
    bool *first = nori__arena_array(s->arena, s->order.count + 1, sizeof(*first));
    if (!first) {
        return nori__no_memory(s->err);
    }
    s->parts = s->options->at_count + 1;
    for (size_t i = 0; i < s->order.count; i++) {
        s->stage[i] = UINT32_MAX;
    }
    for (size_t k = 0; k < s->options->at_count; k++) {
        const nori_split_at *at = &s->options->at[k];
        nori__value **values = nori__arena_array(s->arena, at->count + 1, sizeof(*values));
        if (!values) {
            return nori__no_memory(s->err);
        }
        for (size_t i = 0; i < at->count; i++) {
            NORI__TRY(boundary_value(s, at->values[i], &values[i]));
        }
        if (at->count == 0) {
            return nori__fail(s->err, NORI_ERROR_ARGUMENT, "boundary %zu names no value", k + 1);
        }
        size_t fresh = 0, left = 0, before = 0;
        for (size_t i = 0; i < at->count; i++) {
            before += s->stage[s->order.maker[values[i]->id] - 1] < k;
        }
        NORI__TRY(nori__order_before(&s->order, s->arena, values, at->count, first, s->err));
        for (size_t i = 0; i < s->order.count; i++) {
            bool now = first[i] && s->stage[i] == UINT32_MAX && !s->order.constant[i];
            s->stage[i] = now ? (uint32_t)k : s->stage[i];
            fresh += now;
            left += s->stage[i] == UINT32_MAX && !s->order.constant[i];
        }
        if (left == 0 && before < at->count) {
            return nothing_left(s, values, at->count);
        }
        if (fresh == 0 || before == at->count) {
            nori_status status = nori__fail(s->err, NORI_ERROR_ARGUMENT,
                                            "boundary %zu (%.200s) does not lie behind the one before it",
                                            k + 1, values[0]->name);
            nori__hint(s->err, "give the boundaries in the order in which the model runs");
            return status;
        }
    }
    for (size_t i = 0; i < s->order.count; i++) {
        s->stage[i] = s->stage[i] == UINT32_MAX ? (uint32_t)s->options->at_count : s->stage[i];
    }
    return NORI_OK;
}

static bool named(const nori__node *n, const char *name)
{
    if (n->name[0] && nori__same(n->name, name)) {
        return true;
    }
    for (uint32_t i = 0; i < n->output_count; i++) {
        if (n->outputs[i] && nori__same(n->outputs[i]->name, name)) {
            return true;
        }
    }
    return false;
}

typedef struct needing {
    const splitting *s;
    const nori__value *lacks;
} needing;

static bool look_needed(void *user, nori__value *v)
{
    needing *n = user;
    uint32_t maker = n->s->order.maker[v->id];
    if (maker > 0 && !n->s->order.made[v->id] && n->s->stage[maker - 1] != 0) {
        n->lacks = v;
        return false;
    }
    return true;
}

static nori_status stages_by_nodes(splitting *s)
{
    const nori_split_options *o = s->options;
    nori__map names;
    nori__map_init(&names, s->model->source->allocator);
    bool ok = true;
    for (size_t i = 0; i < o->first_count && ok; i++) {
        ok = nori__map_put(&names, o->first[i], (void *)(uintptr_t)o->first[i]);
    }
    size_t firsts = 0, found = 0;
    s->parts = 2;
    for (size_t i = 0; i < s->order.count && ok; i++) {
        const nori__node *n = s->order.nodes[i];
        bool first = n->name[0] && nori__map_get(&names, n->name);
        for (uint32_t k = 0; k < n->output_count && !first; k++) {
            first = n->outputs[k] && nori__map_get(&names, n->outputs[k]->name);
        }
        s->stage[i] = !first;
        found += first;
        firsts += first && !s->order.constant[i];
    }
    nori__map_free(&names);
    if (!ok) {
        return nori__no_memory(s->err);
    }
    for (size_t i = 0; i < o->first_count && found < o->first_count; i++) {
        bool any = false;
        for (size_t k = 0; k < s->order.count && !any; k++) {
            any = named(s->order.nodes[k], o->first[i]);
        }
        if (!any) {
            return nori__fail(s->err, NORI_ERROR_ARGUMENT,
                              "the model has no node named \"%.200s\", and none with that output",
                              o->first[i]);
        }
    }
    for (size_t i = 0; i < s->order.count; i++) {
        needing n = {.s = s};
        if (s->stage[i] == 0 && !s->order.constant[i]) {
            nori__node_reads(s->order.nodes[i], look_needed, &n);
        }
        if (n.lacks) {
            char path[256];
            nori__node_path(s->order.nodes[i], path, sizeof(path));
            nori_status status = nori__fail(s->err, NORI_ERROR_ARGUMENT,
                                            "node %s of the first part reads %.200s, which the second "
                                            "part would make", path, n.lacks->name);
            nori__hint(s->err, "what a node of the first part reads must be made there, too");
            return status;
        }
    }
    size_t all = 0;
    for (size_t i = 0; i < s->order.count; i++) {
        all += !s->order.constant[i];
    }
    return firsts > 0 && firsts < all
               ? NORI_OK
               : nori__fail(s->err, NORI_ERROR_ARGUMENT, "a part would have no nodes: %zu of %zu were "
                            "given for the first", firsts, all);
}

/* ---- inputs and outputs of each part ---- */

static bool note_read(void *user, nori__value *v)
{
    splitting *s = user;
    s->reads[v->id] = true;
    s->reader[v->id] = s->reader[v->id] > s->at ? s->reader[v->id] : s->at + 1;
    return true;
}

static void add(nori__value **list, size_t *n, nori__value *v)
{
    for (size_t i = 0; i < *n; i++) {
        if (list[i] == v) {
            return;
        }
    }
    list[(*n)++] = v;
}

static bool made_at(const splitting *s, const nori__value *v, size_t part)
{
    uint32_t maker = s->order.maker[v->id];
    return maker > 0 && !s->order.made[v->id] && s->stage[maker - 1] == part;
}

static nori_status part_values(splitting *s, size_t part)
{
    const nori__graph *g = s->order.ir->main;
    size_t room = (size_t)s->order.ir->value_count + 1;
    memset(s->reads, 0, room * sizeof(*s->reads));
    s->at = (uint32_t)part;
    for (size_t i = 0; i < s->order.count; i++) {
        if (!s->order.constant[i] && s->stage[i] == part) {
            nori__node_reads(s->order.nodes[i], note_read, s);
        }
    }
    size_t n_in = 0, n_out = g->output_count;
    for (size_t i = 0; i < room - 1; i++) {
        n_in += s->reads[i];
    }
    for (size_t i = 0; i < s->order.count; i++) {
        n_out += s->stage[i] == part ? s->order.nodes[i]->output_count : 0;
    }
    bool last = part + 1 == s->parts;
    s->in[part] = nori__arena_array(s->arena, n_in + g->input_count + 1, sizeof(**s->in));
    s->out[part] = nori__arena_array(s->arena, n_out + 1, sizeof(**s->out));
    if (!s->in[part] || !s->out[part]) {
        return nori__no_memory(s->err);
    }
    for (uint32_t i = 0; i < g->input_count; i++) {
        nori__value *v = g->inputs[i];
        bool through = last && (v->flags & NORI__VALUE_OUTPUT);
        if (!v->constant && (s->reads[v->id] || through)) {
            add(s->in[part], &s->n_in[part], v);
        }
    }
    for (size_t i = 0; i < s->order.count; i++) {
        const nori__node *n = s->order.nodes[i];
        for (uint32_t k = 0; k < n->output_count; k++) {
            nori__value *v = n->outputs[k];
            if (v && s->reads[v->id] && !s->order.made[v->id] && s->stage[i] < part) {
                s->in[part][s->n_in[part]++] = v;
            }
        }
    }
    return NORI_OK;
}

static nori_status part_outputs(splitting *s, size_t part)
{
    const nori__graph *g = s->order.ir->main;
    for (size_t i = 0; i < s->order.count; i++) {
        const nori__node *n = s->order.nodes[i];
        for (uint32_t k = 0; k < n->output_count; k++) {
            nori__value *v = n->outputs[k];
            if (v && made_at(s, v, part) && s->reader[v->id] > part + 1) {
                s->out[part][s->n_out[part]++] = v;
            }
        }
    }
    s->handed[part] = s->n_out[part];
    for (uint32_t i = 0; i < g->output_count; i++) {
        nori__value *v = g->outputs[i];
        bool nowhere = !s->order.maker[v->id] || s->order.made[v->id];
        if (made_at(s, v, part) || (nowhere && part + 1 == s->parts)) {
            add(s->out[part], &s->n_out[part], v);
        }
    }
    return NORI_OK;
}

/* ---- proof ---- */

static nori_status run_parts(splitting *s, nori_model **models, nori__values *inputs,
                             nori__values *made, nori_proof *proof)
{
    const nori__values *sets[64] = {inputs};
    const nori_proof_options *o = &s->options->proof;
    for (size_t k = 0; k < s->parts; k++) {
        nori_session *session = NULL;
        uint64_t ns = 0;
        nori__proof_tell(o, k + 1, s->parts + 1, "part");
        NORI__TRY(nori__proof_session(models[k], o, &session, s->err));
        nori_status status = nori__proof_feed(session, sets, k + 1, s->arena, &made[k], &ns, s->err);
        nori_session_free(session);
        if (status != NORI_OK) {
            nori__where(s->err, "part %zu", k + 1);
            return status;
        }
        proof->after_ns += ns;
        sets[k + 1] = &made[k];
        nori_split_part *row = &s->report->parts[k];
        for (size_t i = 0; i < s->handed[k]; i++) {
            const nori_tensor *t = nori__values_find(&made[k], s->out[k][i]->name);
            ((uint64_t *)(uintptr_t)row->value_bytes)[i] = t ? nori_tensor_bytes(t) : 0;
        }
    }
    return NORI_OK;
}

static nori_status prove(splitting *s, nori_model **models)
{
    const nori_proof_options *o = &s->options->proof;
    nori_proof *proof = &s->report->proof;
    nori__values inputs = {0}, whole = {0};
    nori__values *made = nori__arena_array(s->arena, s->parts, sizeof(*made));
    nori__proof_begin(proof);
    if (!made) {
        return nori__no_memory(s->err);
    }
    if (o->skip || nori__edit_random(s->order.ir) || s->parts > 63) {
        snprintf(proof->reason, sizeof(proof->reason), "%s",
                 o->skip ? "not asked for" : s->parts > 63 ? "more than 63 parts"
                 : "operators of chance give something else in each run");
        return NORI_OK;
    }
    nori__proof_tell(o, 0, s->parts + 1, "whole");
    nori_status status = nori__proof_run(s->model, o, s->arena, &inputs, &whole, &proof->before_ns,
                                         s->err);
    status = status == NORI_OK ? run_parts(s, models, &inputs, made, proof) : status;
    proof->ran = status == NORI_OK;
    for (size_t i = 0; status == NORI_OK && i < whole.count; i++) {
        const nori_tensor *got = NULL;
        for (size_t k = 0; k < s->parts && !got; k++) {
            got = nori__values_find(&made[k], whole.names[i]);
        }
        nori__proof_compare(proof, whole.names[i], whole.tensors[i], got);
    }
    if (status == NORI_OK && !proof->equal) {
        status = nori__fail(s->err, NORI_ERROR_DATA, "the parts one after another do not give what the "
                            "whole gives: %s", proof->reason);
    }
    for (size_t k = 0; k < s->parts; k++) {
        nori__values_free(&made[k]);
    }
    nori__values_free(&whole);
    nori__values_free(&inputs);
    return status;
}

/* ---- all of it ---- */

static nori_status describe(splitting *s, size_t k)
{
    nori_split_part *row = &s->report->parts[k];
    const char **names = nori__arena_array(s->arena, s->handed[k] + 1, sizeof(*names));
    uint64_t *bytes = nori__arena_array(s->arena, s->handed[k] + 1, sizeof(*bytes));
    if (!names || !bytes) {
        return nori__no_memory(s->err);
    }
    *row = (nori_split_part){.size = sizeof(*row), .value_count = s->handed[k], .values = names,
                             .value_bytes = bytes};
    for (size_t i = 0; i < s->handed[k]; i++) {
        names[i] = nori__arena_text(s->arena, s->out[k][i]->name);
        nori__edit_bytes(nori__edit_value(s->sized, s->out[k][i]->name), &bytes[i]);
        if (!names[i]) {
            return nori__no_memory(s->err);
        }
    }
    for (size_t i = 0; i < s->order.count; i++) {
        row->nodes += !s->order.constant[i] && s->stage[i] == k;
    }
    return NORI_OK;
}

static nori_status make_parts(splitting *s, nori_model **models)
{
    bool *in = nori__arena_array(s->arena, s->order.count + 1, sizeof(*in));
    if (!in) {
        return nori__no_memory(s->err);
    }
    for (size_t k = 0; k < s->parts; k++) {
        for (size_t i = 0; i < s->order.count; i++) {
            in[i] = s->stage[i] == k && !s->order.constant[i];
        }
        const char *name = nori__arena_printf(s->arena, "_part%zu", k + 1);
        nori__part_plan p = {.model = s->model, .order = &s->order, .typed = s->typed, .name = name,
                             .in = in, .inputs = s->in[k], .n_inputs = s->n_in[k],
                             .outputs = s->out[k], .n_outputs = s->n_out[k]};
        NORI__TRY(name ? describe(s, k) : nori__no_memory(s->err));
        NORI__TRY(nori__part_make(&p, &models[k], s->err));
    }
    return NORI_OK;
}

static nori_status split(splitting *s, nori_model **models)
{
    const nori_proof_options *proof = &s->options->proof;
    NORI__TRY(nori__order_find(nori__model_ir(s->model), s->arena, &s->order, s->err));
    NORI__TRY(nori__order_whole(&s->order, NULL, s->err));
    NORI__TRY(nori__edit_typed(s->model, NULL, NULL, 0, &s->typed, s->err));
    NORI__TRY(nori__edit_typed(s->model, proof->dim_names, proof->dim_values, proof->dim_count,
                               &s->sized, s->err));
    size_t values = (size_t)s->order.ir->value_count + 1;
    s->stage = nori__arena_array(s->arena, s->order.count + 1, sizeof(*s->stage));
    s->reader = nori__arena_array(s->arena, values, sizeof(*s->reader));
    s->reads = nori__arena_array(s->arena, values, sizeof(*s->reads));
    if (!s->stage || !s->reader || !s->reads) {
        return nori__no_memory(s->err);
    }
    NORI__TRY(s->options->first_count > 0 ? stages_by_nodes(s) : stages_by_values(s));
    s->in = nori__arena_array(s->arena, s->parts, sizeof(*s->in));
    s->out = nori__arena_array(s->arena, s->parts, sizeof(*s->out));
    s->n_in = nori__arena_array(s->arena, s->parts, sizeof(*s->n_in));
    s->n_out = nori__arena_array(s->arena, s->parts, sizeof(*s->n_out));
    s->handed = nori__arena_array(s->arena, s->parts, sizeof(*s->handed));
    s->report->parts = nori__arena_array(s->arena, s->parts, sizeof(*s->report->parts));
    if (!s->in || !s->out || !s->n_in || !s->n_out || !s->handed || !s->report->parts) {
        return nori__no_memory(s->err);
    }
    for (size_t k = 0; k < s->parts; k++) {
        NORI__TRY(part_values(s, k));
    }
    for (size_t k = 0; k < s->parts; k++) {
        NORI__TRY(part_outputs(s, k));
    }
    NORI__TRY(make_parts(s, models));
    NORI__TRY(prove(s, models));
    s->report->count = s->parts;
    for (size_t k = 0; k < s->parts; k++) {
        for (size_t i = 0; i < s->report->parts[k].value_count; i++) {
            s->report->parts[k].bytes += s->report->parts[k].value_bytes[i];
        }
    }
    return NORI_OK;
}

nori_status nori_split(const nori_model *model, const nori_split_options *options,
                       nori_model **models, nori_split_report **report, nori_error *err)
{
    nori_error own = {0};
    nori_split_options o;
    err = err ? err : &own;
    if (report) {
        *report = NULL;
    }
    NORI__OPTIONS(nori_split_options, o, options);
    if (!model || !models || (o.at_count == 0) == (o.first_count == 0)) {
        return nori__fail(err, NORI_ERROR_ARGUMENT,
                          "a model, room for its parts, and either boundaries or the nodes of the first "
                          "part were expected");
    }
    const nori_allocator *a = model->source->allocator;
    nori_split_report *r = nori__alloc_zero(a, sizeof(*r));
    if (!r) {
        return nori__no_memory(err);
    }
    nori__arena_init(&r->arena, a);
    splitting s = {.model = model, .options = &o, .arena = &r->arena, .report = r, .err = err};
    size_t room = o.first_count > 0 ? 2 : o.at_count + 1;
    memset(models, 0, room * sizeof(*models));
    nori_status status = split(&s, models);
    nori__ir_free(s.typed);
    nori__ir_free(s.sized);
    for (size_t i = 0; status != NORI_OK && i < room; i++) {
        nori_model_free(models[i]);
        models[i] = NULL;
    }
    if (status == NORI_OK && report) {
        *report = r;
    } else {
        nori_split_report_free(r);
    }
    return status;
}

int nori_split_report_part(const nori_split_report *r, size_t index, nori_split_part *part)
{
    NORI__ASKED(r, 0);
    NORI__ASKED(part, 0);
    if (index >= r->count) {
        return 0;
    }
    size_t size = part->size < sizeof(*part) ? part->size : sizeof(*part);
    memcpy(part, &r->parts[index], size);
    part->size = size;
    return 1;
}

void nori_split_report_proof(const nori_split_report *r, nori_proof *proof)
{
    NORI__ASKED(r, );
    NORI__ASKED(proof, );
    nori__proof_give(&r->proof, proof);
}

void nori_split_report_free(nori_split_report *r)
{
    if (r) {
        const nori_allocator *a = r->arena.allocator;
        nori__arena_free(&r->arena);
        nori__release(a, r, sizeof(*r));
    }
}

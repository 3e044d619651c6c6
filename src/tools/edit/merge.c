/* merge.c: nori_merge: two models as one, outputs of the first being inputs of the second. */
#include <stdio.h>

#include "nori/convert.h"
#include "ops/forms.h"
#include "tools/edit/names.h"

typedef struct merging {
    const nori_model *a, *b;    /* under one operator set and IR version */
    const nori_merge_options *options;
    nori_joint *joints;
    size_t n_joints;
    const char *prefix;
    nori__arena *arena;
    nori__names names;          /* of b */
    nori__map shared;           /* inputs of b that a has, too */
    nori__name_sets in_a, in_b;
    nori_merge_report *report;
    nori_error *err;
} merging;

void nori_merge_options_default(nori_merge_options *options)
{
    *options = (nori_merge_options){.size = sizeof(*options)};
    nori_proof_options_default(&options->proof);
}

/* ---- joints ---- */

static const nori_value_info *find(const nori_model *m, bool input, const char *name)
{
    size_t n = input ? nori_model_input_count(m) : nori_model_output_count(m);
    for (size_t i = 0; i < n; i++) {
        const nori_value_info *v = input ? nori_model_input(m, i) : nori_model_output(m, i);
        if (nori__same(v->name, name)) {
            return v;
        }
    }
    return NULL;
}

static nori_status check_types(merging *m, const nori_value_info *out, const nori_value_info *in)
{
    bool known = out->kind != NORI_KIND_UNKNOWN && in->kind != NORI_KIND_UNKNOWN;
    if (known && (out->kind != in->kind || (out->type && in->type && out->type != in->type))) {
        return nori__fail(m->err, NORI_ERROR_ARGUMENT,
                          "output \"%.200s\" is %s, input \"%.200s\" takes %s", out->name,
                          nori_type_name(out->type), in->name, nori_type_name(in->type));
    }
    if (out->rank >= 0 && in->rank >= 0 && out->rank != in->rank) {
        return nori__fail(m->err, NORI_ERROR_ARGUMENT,
                          "output \"%.200s\" has rank %d, input \"%.200s\" takes rank %d", out->name,
                          out->rank, in->name, in->rank);
    }
    for (int d = 0; out->rank >= 0 && d < in->rank; d++) {
        if (out->dims[d] >= 0 && in->dims[d] >= 0 && out->dims[d] != in->dims[d]) {
            nori_status s = nori__fail(m->err, NORI_ERROR_ARGUMENT,
                                       "axis %d of output \"%.200s\" is %lld, input \"%.200s\" takes "
                                       "%lld", d, out->name, (long long)out->dims[d], in->name,
                                       (long long)in->dims[d]);
            nori__hint(m->err, "make the axes fit first: nori shapes, nori rebatch");
            return s;
        }
    }
    return NORI_OK;
}

static nori_status find_joints(merging *m)
{
    const nori_merge_options *o = m->options;
    size_t room = o->joint_count + nori_model_output_count(m->a) + 1;
    m->joints = nori__arena_array(m->arena, room, sizeof(*m->joints));
    if (!m->joints) {
        return nori__no_memory(m->err);
    }
    for (size_t i = 0; i < o->joint_count; i++) {
        m->joints[m->n_joints++] = o->joints[i];
    }
    for (size_t i = 0; o->joint_count == 0 && i < nori_model_output_count(m->a); i++) {
        const char *name = nori_model_output(m->a, i)->name;
        if (find(m->b, true, name)) {
            m->joints[m->n_joints++] = (nori_joint){name, name};
        }
    }
    if (m->n_joints == 0) {
        nori_status s = nori__fail(m->err, NORI_ERROR_ARGUMENT,
                                   "no output of the first model has the name of an input of the second");
        nori__hint(m->err, "say what goes where: --map output=input");
        return s;
    }
    for (size_t i = 0; i < m->n_joints; i++) {
        const nori_joint *j = &m->joints[i];
        const nori_value_info *out = find(m->a, false, j->output), *in = find(m->b, true, j->input);
        if (!out || !in) {
            nori_status s = nori__fail(m->err, NORI_ERROR_ARGUMENT, "the %s model has no %s \"%.200s\"",
                                       out ? "second" : "first", out ? "input" : "output",
                                       out ? j->input : j->output);
            nori__hint(m->err, "a joint is an output of the first model, =, an input of the second");
            return s;
        }
        for (size_t k = 0; k < i; k++) {
            if (nori__same(m->joints[k].input, j->input)) {
                return nori__fail(m->err, NORI_ERROR_ARGUMENT,
                                  "input \"%.200s\" of the second model is given two outputs", j->input);
            }
        }
        NORI__TRY(check_types(m, out, in));
    }
    m->report->joints = m->n_joints;
    return NORI_OK;
}

/* ---- names of the second model ---- */

/* An input that both have under one name, of one type, is one input. */
static bool shared_input(const merging *m, const nori_value_info *in)
{
    const nori_value_info *other = find(m->a, true, in->name);
    bool same = other && !other->optional && !in->optional && other->kind == in->kind &&
                other->type == in->type && other->rank == in->rank;
    for (int d = 0; same && d < in->rank; d++) {
        same = other->dims[d] < 0 || in->dims[d] < 0 || other->dims[d] == in->dims[d];
    }
    return same;
}

/* Inputs of the second model that are none of the merged one's, or the first's already. */
static bool joined_input(const merging *m, nori__str name)
{
    for (size_t i = 0; i < m->n_joints; i++) {
        if (nori__str_is(name, m->joints[i].input)) {
            return true;
        }
    }
    return nori__map_get_n(&m->shared, name.p, name.n) != NULL;
}

/* Shared inputs and their named sizes keep their names. */
static nori_status find_shared(merging *m)
{
    for (size_t i = 0; i < nori_model_input_count(m->b); i++) {
        const nori_value_info *in = nori_model_input(m->b, i);
        if (joined_input(m, nori__str_of(in->name)) || !shared_input(m, in)) {
            continue;
        }
        const nori_value_info *other = find(m->a, true, in->name);
        char *name = nori__arena_text(m->arena, in->name);
        bool ok = name && nori__map_put(&m->shared, name, name) &&
                  nori__map_put(&m->names.values, name, name);
        for (int d = 0; ok && d < in->rank; d++) {
            char *from = in->dim_names[d] ? nori__arena_text(m->arena, in->dim_names[d]) : NULL;
            const char *to = other->dim_names[d] ? nori__arena_text(m->arena, other->dim_names[d]) : NULL;
            bool both = from && to && !nori__map_get(&m->names.dims, from);
            ok = !both || nori__map_put(&m->names.dims, from, (void *)(uintptr_t)to);
        }
        if (!ok) {
            return nori__no_memory(m->err);
        }
        m->report->shared++;
    }
    return NORI_OK;
}

/* A name with the prefix, and more of it until neither model has it. */
static const char *fresh(merging *m, const char *name, nori__map *a, const nori__map *b)
{
    const char *made = name;
    do {
        made = nori__arena_printf(m->arena, "%s%s", m->prefix, made);
    } while (made && (nori__map_get(a, made) || nori__map_get(b, made)));
    return made && nori__map_put(a, made, (void *)(uintptr_t)made) ? made : NULL;
}

/* Names that the first model has as well. */
static nori_status rename_clashes(merging *m, const nori__vec *list, const nori__map *own,
                                  nori__map *theirs, nori__map *to)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *name = list->items[i];
        if (!nori__map_get(theirs, name) || nori__map_get(to, name)) {
            continue;
        }
        const char *made = fresh(m, name, theirs, own);
        if (!made || !nori__map_put(to, name, (void *)(uintptr_t)made)) {
            return nori__no_memory(m->err);
        }
        m->report->renamed++;
    }
    return NORI_OK;
}

/* Joined inputs take the output's name, and their named sizes those of the output. */
static nori_status tie(merging *m)
{
    for (size_t i = 0; i < m->n_joints; i++) {
        const nori_joint *j = &m->joints[i];
        const nori_value_info *out = find(m->a, false, j->output), *in = find(m->b, true, j->input);
        char *from = nori__arena_text(m->arena, j->input), *to = nori__arena_text(m->arena, j->output);
        if (!from || !to || !nori__map_put(&m->names.values, from, to)) {
            return nori__no_memory(m->err);
        }
        for (int d = 0; out->rank >= 0 && d < in->rank; d++) {
            const char *name = in->dim_names[d], *theirs = out->dim_names[d];
            if (name && theirs && !nori__map_get(&m->names.dims, name)) {
                from = nori__arena_text(m->arena, name);
                to = nori__arena_text(m->arena, theirs);
                if (!from || !to || !nori__map_put(&m->names.dims, from, to)) {
                    return nori__no_memory(m->err);
                }
            }
        }
    }
    return NORI_OK;
}

/* ---- lists of both ---- */

static nori_status join(merging *m, const void *a, size_t na, const void *b, size_t nb, size_t size,
                        void **out)
{
    *out = nori__arena_array(m->arena, na + nb + 1, size);
    if (!*out) {
        return nori__no_memory(m->err);
    }
    if (na > 0) {
        memcpy(*out, a, na * size);
    }
    if (nb > 0) {
        memcpy((char *)*out + na * size, b, nb * size);
    }
    return NORI_OK;
}
#define JOIN(m, to, x, y)                                                                        \
    do {                                                                                         \
        void *joined;                                                                            \
        NORI__TRY(join((m), (x).items, (x).count, (y).items, (y).count, sizeof(*(to).items), &joined)); \
        (to).items = joined;                                                                     \
        (to).count = (x).count + (y).count;                                                      \
    } while (0)

static bool joined_output(const merging *m, nori__str name)
{
    for (size_t i = 0; i < m->n_joints; i++) {
        if (nori__str_is(name, m->joints[i].output)) {
            return true;
        }
    }
    return false;
}

/* What the second model brings: its inputs that are joined are no longer any. names: as they were. */
static void drop_joined(const merging *m, const nori__pb_graph *was, nori__pb_graph *b)
{
    size_t n = 0;
    for (size_t i = 0; i < was->inputs.count; i++) {
        if (!joined_input(m, was->inputs.items[i].name)) {
            b->inputs.items[n++] = b->inputs.items[i];
        }
    }
    b->inputs.count = n;
    n = 0;
    for (size_t i = 0; i < was->initializers.count; i++) { /* defaults of such inputs */
        if (!joined_input(m, was->initializers.items[i].name)) {
            b->initializers.items[n++] = b->initializers.items[i];
        }
    }
    b->initializers.count = n;
    n = 0;
    for (size_t i = 0; i < was->value_info.count; i++) {
        if (!joined_input(m, was->value_info.items[i].name)) {
            b->value_info.items[n++] = b->value_info.items[i];
        }
    }
    b->value_info.count = n;
}

static nori_status join_outputs(merging *m, const nori__pb_graph *a, const nori__pb_graph *b,
                                nori__pb_graph *to)
{
    size_t room = a->outputs.count + b->outputs.count + 1;
    nori__pb_value *out = nori__arena_array(m->arena, room, sizeof(*out));
    nori__pb_value *info = nori__arena_array(m->arena, to->value_info.count + room, sizeof(*info));
    if (!out || !info) {
        return nori__no_memory(m->err);
    }
    size_t n = 0, k = to->value_info.count;
    if (k > 0) {
        memcpy(info, to->value_info.items, k * sizeof(*info));
    }
    for (size_t i = 0; i < a->outputs.count; i++) {
        bool inner = joined_output(m, a->outputs.items[i].name) && !m->options->keep;
        bool input = false;
        for (size_t j = 0; j < a->inputs.count; j++) {
            input = input || (a->inputs.items[j].name.n == a->outputs.items[i].name.n &&
                              memcmp(a->inputs.items[j].name.p, a->outputs.items[i].name.p,
                                     a->outputs.items[i].name.n) == 0);
        }
        if (!inner) {
            out[n++] = a->outputs.items[i];
        } else if (!input) {
            info[k++] = a->outputs.items[i];
        }
    }
    for (size_t i = 0; i < b->outputs.count; i++) { /* one may be what was handed on */
        bool twice = false;
        for (size_t j = 0; j < n; j++) {
            twice = twice || (out[j].name.n == b->outputs.items[i].name.n &&
                              memcmp(out[j].name.p, b->outputs.items[i].name.p, out[j].name.n) == 0);
        }
        if (!twice) {
            out[n++] = b->outputs.items[i];
        }
    }
    to->outputs.items = out;
    to->outputs.count = n;
    to->value_info.items = info;
    to->value_info.count = k;
    return NORI_OK;
}

static bool same_str(nori__str a, nori__str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static nori_status join_functions(merging *m, const nori__pb_model *a, const nori__pb_model *b,
                                  nori__pb_model *to)
{
    JOIN(m, to->functions, a->functions, b->functions);
    size_t n = a->functions.count;
    for (size_t i = 0; i < b->functions.count; i++) {
        const nori__pb_function *f = &b->functions.items[i];
        bool there = false;
        for (size_t k = 0; k < a->functions.count && !there; k++) {
            const nori__pb_function *g = &a->functions.items[k];
            there = same_str(f->name, g->name) && same_str(f->domain, g->domain) &&
                    same_str(f->overload, g->overload);
            if (there && !same_str(f->head.bytes, g->head.bytes)) {
                return nori__fail(m->err, NORI_ERROR_UNSUPPORTED,
                                  "both models have a function %.*s, and they are not the same",
                                  NORI__NAME_N(f->name));
            }
        }
        if (!there) {
            to->functions.items[n++] = *f;
        }
    }
    to->functions.count = n;
    return NORI_OK;
}

static nori_status join_metadata(merging *m, const nori__pb_model *a, const nori__pb_model *b,
                                 nori__pb_model *to)
{
    JOIN(m, to->metadata, a->metadata, b->metadata);
    size_t n = a->metadata.count;
    for (size_t i = 0; i < b->metadata.count; i++) {
        bool there = false;
        for (size_t k = 0; k < a->metadata.count && !there; k++) {
            there = same_str(a->metadata.items[k].key, b->metadata.items[i].key);
        }
        if (!there) {
            to->metadata.items[n++] = b->metadata.items[i];
        }
    }
    to->metadata.count = n;
    return NORI_OK;
}

static bool uses_domain(const nori__ir *ir, const char *domain)
{
    for (const nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (const nori__node *n = g->first; n; n = n->next) {
            if (nori__same(n->domain, domain)) {
                return true;
            }
        }
    }
    return false;
}

static nori_status join_opsets(merging *m, const nori__pb_model *a, const nori__pb_model *b,
                               nori__pb_model *to)
{
    const nori__ir *ia = nori__model_ir(m->a), *ib = nori__model_ir(m->b);
    JOIN(m, to->opsets, a->opsets, b->opsets);
    size_t n = a->opsets.count;
    for (size_t i = 0; i < ib->opset_count; i++) {
        const char *domain = ib->opsets[i].domain;
        int64_t theirs = nori__ir_opset(ia, domain), own = ib->opsets[i].version;
        if (theirs == 0) {
            to->opsets.items[n++] = b->opsets.items[i];
            continue;
        }
        if (theirs == own) {
            continue;
        }
        if (uses_domain(ia, domain) && uses_domain(ib, domain)) {
            nori_status s = nori__fail(m->err, NORI_ERROR_UNSUPPORTED,
                                       "the models use operator sets %lld and %lld of %s, which cannot be "
                                       "brought together", (long long)theirs, (long long)own,
                                       domain[0] ? domain : "ai.onnx");
            nori__hint(m->err, "convert one of them first: nori convert --opset, or run them one after "
                               "the other");
            return s;
        }
        for (size_t k = 0; k < ia->opset_count; k++) { /* that of the one which uses it */
            if (nori__same(ia->opsets[k].domain, domain) && uses_domain(ib, domain)) {
                to->opsets.items[k].version = own;
            }
        }
    }
    to->opsets.count = n;
    return NORI_OK;
}

static nori_status build(merging *m, nori_model **merged)
{
    const nori__pb_model *a = m->a->source->pb, *b = m->b->source->pb;
    nori__pb_model to = *a;
    nori__pb_graph graph = *a->graph, *other = NULL;
    NORI__TRY(nori__name_sets_of(a->graph, m->arena, &m->in_a, m->err));
    NORI__TRY(nori__name_sets_of(b->graph, m->arena, &m->in_b, m->err));
    NORI__TRY(tie(m));
    NORI__TRY(find_shared(m));
    NORI__TRY(rename_clashes(m, &m->in_b.value_list, &m->in_b.values, &m->in_a.values,
                             &m->names.values));
    NORI__TRY(rename_clashes(m, &m->in_b.node_list, &m->in_b.nodes, &m->in_a.nodes, &m->names.nodes));
    NORI__TRY(rename_clashes(m, &m->in_b.dim_list, &m->in_b.dims, &m->in_a.dims, &m->names.dims));
    NORI__TRY(nori__names_graph(&m->names, b->graph, &other));
    drop_joined(m, b->graph, other);
    JOIN(m, graph.nodes, a->graph->nodes, other->nodes);
    JOIN(m, graph.initializers, a->graph->initializers, other->initializers);
    JOIN(m, graph.sparse_initializers, a->graph->sparse_initializers, other->sparse_initializers);
    JOIN(m, graph.inputs, a->graph->inputs, other->inputs);
    JOIN(m, graph.value_info, a->graph->value_info, other->value_info);
    JOIN(m, graph.quantization, a->graph->quantization, other->quantization);
    NORI__TRY(join_outputs(m, a->graph, other, &graph));
    NORI__TRY(join_functions(m, a, b, &to));
    NORI__TRY(join_metadata(m, a, b, &to));
    NORI__TRY(join_opsets(m, a, b, &to));
    to.training.count = 0; /* it speaks of one of the graphs */
    to.graph = &graph;
    const nori_model *from[] = {m->a, m->b};
    return nori__model_from_pb(from, 2, &to, merged, m->err);
}

/* ---- one operator set ---- */

/* Both under one operator set of ai.onnx and one IR version; made ones are freed by the caller. */
static nori_status reconcile(const nori_model *a, const nori_model *b, nori_model **made_a,
                             nori_model **made_b, nori_merge_report *r, nori_error *err)
{
    const nori__ir *ia = nori__model_ir(a), *ib = nori__model_ir(b);
    int64_t oa = nori__ir_opset(ia, ""), ob = nori__ir_opset(ib, "");
    int64_t ir = ia->ir_version > ib->ir_version ? ia->ir_version : ib->ir_version;
    r->opset_a = oa;
    r->opset_b = ob;
    r->ir_a = ia->ir_version;
    r->ir_b = ib->ir_version;
    nori_convert_options o;
    nori_convert_options_default(&o);
    int64_t to = oa > ob ? oa : ob;
    nori_error why = {0};
    nori_status s = NORI_OK;
    for (int again = 0; again < 2; again++) { /* up; then down */
        o.opset = to;
        int64_t came = to > 0 ? nori__ir_of_opset(to) : 0;
        o.ir = again == 0 && came > ir ? came : ir;
        o.ir = o.ir > 0 ? o.ir : 0;
        memset(&why, 0, sizeof(why));
        bool change_a = oa > 0 && (oa != to || ia->ir_version != o.ir);
        bool change_b = ob > 0 && (ob != to || ib->ir_version != o.ir);
        s = change_a ? nori_convert(a, &o, made_a, NULL, &why) : NORI_OK;
        s = s == NORI_OK && change_b ? nori_convert(b, &o, made_b, NULL, &why) : s;
        if (s == NORI_OK || s == NORI_ERROR_MEMORY || oa == ob) {
            break;
        }
        nori_model_free(*made_a);
        nori_model_free(*made_b);
        *made_a = *made_b = NULL;
        to = oa < ob ? oa : ob;
        to = to > 0 ? to : oa + ob;
    }
    if (s != NORI_OK) {
        s = nori__fail(err, s, "operator sets %lld and %lld cannot be brought together: %s",
                       (long long)oa, (long long)ob, why.message);
        nori__hint(err, "run the models one after the other");
        return s;
    }
    r->opset = to;
    return NORI_OK;
}

/* ---- proof ---- */

/* Values of a run of b under the names that merging gave them. */
static void merged_names(const merging *m, nori__values *v)
{
    for (size_t i = 0; i < v->count; i++) {
        const char *to = nori__map_get(&m->names.values, v->names[i]);
        v->names[i] = to ? to : v->names[i];
    }
}

/* Those of the merged model as b calls them. */
static nori_status for_b(const merging *m, const nori__values *const *sets, size_t n_sets,
                         nori__values *out)
{
    size_t n = nori_model_input_count(m->b);
    out->names = nori__arena_array(m->arena, n + 1, sizeof(*out->names));
    out->tensors = nori__arena_array(m->arena, n + 1, sizeof(*out->tensors));
    if (!out->names || !out->tensors) {
        return nori__no_memory(m->err);
    }
    for (size_t i = 0; i < n; i++) {
        const char *own = nori_model_input(m->b, i)->name;
        const char *to = nori__map_get(&m->names.values, own);
        const nori_tensor *t = NULL;
        for (size_t k = 0; k < n_sets && !t; k++) {
            t = nori__values_find(sets[k], to ? to : own);
        }
        if (t) {
            out->names[out->count] = own;
            out->tensors[out->count++] = nori_tensor_retain(t);
        }
    }
    return NORI_OK;
}

static nori_status run_both(merging *m, const nori_model *a, const nori_model *b,
                            const nori__values *inputs, nori__values *out_a, nori__values *out_b)
{
    const nori_proof_options *o = &m->options->proof;
    nori_session *first = NULL, *second = NULL;
    nori__values fed = {0};
    uint64_t ns = 0;
    nori_status s = nori__proof_session(a, o, &first, m->err);
    s = s == NORI_OK ? nori__proof_feed(first, &inputs, 1, m->arena, out_a, &ns, m->err) : s;
    m->report->proof.before_ns += ns;
    nori_session_free(first);
    const nori__values *sets[] = {out_a, inputs};
    s = s == NORI_OK ? for_b(m, sets, 2, &fed) : s;
    const nori__values *feed = &fed;
    s = s == NORI_OK ? nori__proof_session(b, o, &second, m->err) : s;
    s = s == NORI_OK ? nori__proof_feed(second, &feed, 1, m->arena, out_b, &ns, m->err) : s;
    m->report->proof.before_ns += ns;
    nori_session_free(second);
    nori__values_free(&fed);
    if (s == NORI_OK) {
        merged_names(m, out_b);
    }
    return s;
}

/* The models as they were given, one after the other, against the merged one. */
static nori_status prove(merging *m, const nori_model *a, const nori_model *b,
                         const nori_model *merged)
{
    const nori_proof_options *o = &m->options->proof;
    nori_proof *proof = &m->report->proof;
    nori__values inputs = {0}, got = {0}, out_a = {0}, out_b = {0};
    nori__proof_begin(proof);
    if (o->skip || nori__edit_random(nori__model_ir(merged))) {
        snprintf(proof->reason, sizeof(proof->reason), "%s",
                 o->skip ? "not asked for"
                         : "operators of chance give something else in each run");
        return NORI_OK;
    }
    nori_status s = nori__proof_run(merged, o, m->arena, &inputs, &got, &proof->after_ns, m->err);
    s = s == NORI_OK ? run_both(m, a, b, &inputs, &out_a, &out_b) : s;
    proof->ran = s == NORI_OK;
    for (size_t i = 0; s == NORI_OK && i < got.count; i++) {
        const nori_tensor *want = nori__values_find(&out_b, got.names[i]);
        want = want ? want : nori__values_find(&out_a, got.names[i]);
        nori__proof_compare(proof, got.names[i], want, got.tensors[i]);
    }
    if (s == NORI_OK && !proof->agrees) {
        s = nori__fail(m->err, NORI_ERROR_DATA, "the merged model does not give what the two give one "
                       "after the other: %s", proof->reason);
    }
    nori__values_free(&out_b);
    nori__values_free(&out_a);
    nori__values_free(&got);
    nori__values_free(&inputs);
    return s;
}

/* ---- all of it ---- */

nori_status nori_merge(const nori_model *a, const nori_model *b, const nori_merge_options *options,
                       nori_model **merged, nori_merge_report *report, nori_error *err)
{
    nori_error own = {0};
    nori_merge_options o;
    nori_merge_report r = {.size = sizeof(r)};
    nori__arena arena;
    nori_model *made_a = NULL, *made_b = NULL;
    err = err ? err : &own;
    if (!a || !b || !merged) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "two models and room for one were expected");
    }
    *merged = NULL;
    NORI__OPTIONS(nori_merge_options, o, options);
    NORI__TRY(reconcile(a, b, &made_a, &made_b, &r, err));
    nori__arena_init(&arena, a->source->allocator);
    merging m = {.a = made_a ? made_a : a, .b = made_b ? made_b : b, .options = &o, .arena = &arena,
                 .prefix = o.prefix && o.prefix[0] ? o.prefix : "b/", .report = &r, .err = err};
    nori__names_init(&m.names, &arena, arena.allocator, err);
    nori__map_init(&m.shared, arena.allocator);
    nori_status s = find_joints(&m);
    s = s == NORI_OK ? build(&m, merged) : s;
    s = s == NORI_OK ? prove(&m, a, b, *merged) : s;
    if (s == NORI_OK && report) {
        r.ir = nori__model_ir(*merged)->ir_version;
        size_t size = report->size < sizeof(r) ? report->size : sizeof(r);
        memcpy(report, &r, size);
        report->size = size;
    }
    if (s != NORI_OK) {
        nori_model_free(*merged);
        *merged = NULL;
    }
    if (m.in_a.values.allocator) {
        nori__name_sets_free(&m.in_a);
    }
    if (m.in_b.values.allocator) {
        nori__name_sets_free(&m.in_b);
    }
    nori__names_free(&m.names);
    nori__map_free(&m.shared);
    nori_model_free(made_b);
    nori_model_free(made_a);
    nori__arena_free(&arena);
    return s;
}

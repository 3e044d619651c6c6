/* merge.c: nori_merge: two models as one, outputs of the first being inputs of the second. */
#include <stdio.h>

#include "nori/convert.h"
#include "base/given.h"
#include "ops/forms.h"
#include "tools/edit/merging.h"

void nori_merge_options_default(nori_merge_options *options)
{
    NORI__ASKED(options, );
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

static nori_status check_types(nori__merging *m, const nori_value_info *out, const nori_value_info *in)
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

static nori_status find_joints(nori__merging *m)
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
static bool shared_input(const nori__merging *m, const nori_value_info *in)
{
    const nori_value_info *other = find(m->a, true, in->name);
    bool same = other && !other->optional && !in->optional && other->kind == in->kind &&
                other->type == in->type && other->rank == in->rank;
    for (int d = 0; same && d < in->rank; d++) {
        same = other->dims[d] < 0 || in->dims[d] < 0 || other->dims[d] == in->dims[d];
    }
    return same;
}

bool nori__merge_joined_input(const nori__merging *m, nori__str name)
{
    for (size_t i = 0; i < m->n_joints; i++) {
        if (nori__str_is(name, m->joints[i].input)) {
            return true;
        }
    }
    return nori__map_get_n(&m->shared, name.p, name.n) != NULL;
}

/* Shared inputs and their named sizes keep their names. */
static nori_status find_shared(nori__merging *m)
{
    for (size_t i = 0; i < nori_model_input_count(m->b); i++) {
        const nori_value_info *in = nori_model_input(m->b, i);
        if (nori__merge_joined_input(m, nori__str_of(in->name)) || !shared_input(m, in)) {
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
static const char *fresh(nori__merging *m, const char *name, nori__map *a, const nori__map *b)
{
    const char *made = name;
    do {
        made = nori__arena_printf(m->arena, "%s%s", m->prefix, made);
    } while (made && (nori__map_get(a, made) || nori__map_get(b, made)));
    return made && nori__map_put(a, made, (void *)(uintptr_t)made) ? made : NULL;
}

/* Names that the first model has as well. */
static nori_status rename_clashes(nori__merging *m, const nori__vec *list, const nori__map *own,
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
static nori_status tie(nori__merging *m)
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
/* ---- the merged model ---- */

static nori_status build(nori__merging *m, nori_model **merged)
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
    NORI__TRY(nori__merge_join(m, other, &graph, &to));
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
    nori__merging m = {.a = made_a ? made_a : a, .b = made_b ? made_b : b, .options = &o, .arena = &arena,
                 .prefix = o.prefix && o.prefix[0] ? o.prefix : "b/", .report = &r, .err = err};
    nori__names_init(&m.names, &arena, arena.allocator, err);
    nori__map_init(&m.shared, arena.allocator);
    nori_status s = find_joints(&m);
    s = s == NORI_OK ? build(&m, merged) : s;
    s = s == NORI_OK ? nori__merge_prove(&m, a, b, *merged) : s;
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

/* export.c: nori_trace: a function is run, what it did becomes a model, and the model has to do the same:
 * on the examples, at other sizes, and once it is written and loaded back. */
#include <stdio.h>
#include <unistd.h>

#include "graph/graph.h"
#include "base/given.h"
#include "platform/env.h"
#include "tools/trace/tracer.h"

typedef struct exporting {
    nori_env *env;
    nori_trace_function function;
    void *user;
    const nori_tensor *const *examples;
    size_t n_in, n_out;
    nori_trace_options o;
    const char **in_names, **out_names;
    nori__arena arena;
    nori_trace_report *report;
    nori_error *err;
} exporting;

void nori_trace_options_default(nori_trace_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_trace_options){.size = sizeof(*options), .rtol = 1e-3, .atol = 1e-5};
}

/* ---- names and axes ---- */

static nori_status fill_names(exporting *e)
{
    static const char *const one[] = {"output"};
    e->n_out = e->o.output_names ? e->o.output_count : 1;
    e->in_names = nori__arena_array(&e->arena, e->n_in + 1, sizeof(*e->in_names));
    e->out_names = nori__arena_array(&e->arena, e->n_out + 1, sizeof(*e->out_names));
    if (!e->in_names || !e->out_names) {
        return nori__no_memory(e->err);
    }
    if (e->n_out == 0) {
        return nori__fail(e->err, NORI_ERROR_ARGUMENT, "no output is named: a graph has at least one");
    }
    for (size_t i = 0; i < e->n_in + e->n_out; i++) {
        bool in = i < e->n_in;
        size_t k = in ? i : i - e->n_in;
        const char *name = in ? (e->o.input_names ? e->o.input_names[k] : NULL)
                              : (e->o.output_names ? e->o.output_names[k] : one[0]);
        if (in && !e->o.input_names) {
            name = nori__arena_printf(&e->arena, "input_%zu", k);
        }
        if (!name || !name[0]) {
            return nori__fail(e->err, NORI_ERROR_ARGUMENT, "%s %zu has no name", in ? "input" : "output", k);
        }
        for (size_t j = 0; j < i; j++) {
            const char *other = j < e->n_in ? e->in_names[j] : e->out_names[j - e->n_in];
            if (nori__same(name, other)) {
                return nori__fail(e->err, NORI_ERROR_ARGUMENT,
                                  "two inputs or outputs are called \"%s\"", name);
            }
        }
        *(in ? &e->in_names[k] : &e->out_names[k]) = name;
    }
    return NORI_OK;
}

static size_t input_of(const exporting *e, const char *name)
{
    size_t i = 0;
    while (name && i < e->n_in && !nori__same(e->in_names[i], name)) {
        i++;
    }
    return name ? i : e->n_in;
}

/* The dimension's name, for comparing: two axes of one name have one size. */
static bool same_dimension(const exporting *e, const nori_dynamic_axis *a, const nori_dynamic_axis *b)
{
    (void)e;
    return a == b || (a->name && b->name && nori__same(a->name, b->name));
}

static nori_status check_axes(exporting *e)
{
    for (size_t i = 0; i < e->o.dynamic_axis_count; i++) {
        const nori_dynamic_axis *a = &e->o.dynamic_axes[i];
        size_t at = input_of(e, a->input);
        if (at == e->n_in) {
            nori__text names;
            nori__text_init(&names, &nori__malloc);
            for (size_t k = 0; k < e->n_in; k++) {
                nori__text_printf(&names, "%s\"%s\"", k ? ", " : "", e->in_names[k]);
            }
            nori_status s = nori__fail(e->err, NORI_ERROR_ARGUMENT,
                                       "dynamic axis %d of \"%s\": there is no input of that name; "
                                       "there is %s",
                                       a->axis, a->input ? a->input : "", names.data ? names.data : "none");
            nori__text_free(&names);
            return s;
        }
        const nori_tensor *t = e->examples[at];
        if (t->kind != NORI_KIND_TENSOR || a->axis < 0 || a->axis >= t->rank) {
            return nori__fail(e->err, NORI_ERROR_ARGUMENT,
                              "dynamic axis %d of input \"%s\": its example has rank %d, so axes 0 to %d",
                              a->axis, a->input, t->rank, t->rank - 1);
        }
        if (a->name && !a->name[0]) {
            return nori__fail(e->err, NORI_ERROR_ARGUMENT,
                              "dynamic axis %d of input \"%s\" has an empty name", a->axis, a->input);
        }
        for (size_t k = 0; k < i; k++) {
            const nori_dynamic_axis *b = &e->o.dynamic_axes[k];
            if (nori__same(a->input, b->input) && a->axis == b->axis) {
                return nori__fail(e->err, NORI_ERROR_ARGUMENT,
                                  "dynamic axis %d of input \"%s\" is given twice", a->axis, a->input);
            }
            int64_t size = e->examples[input_of(e, b->input)]->dims[b->axis];
            if (same_dimension(e, a, b) && size != t->dims[a->axis]) {
                return nori__fail(e->err, NORI_ERROR_ARGUMENT,
                                  "dimension \"%s\" is %lld in the example of \"%s\" and %lld in that "
                                  "of \"%s\": one name is one size", a->name, (long long)size, b->input,
                                  (long long)t->dims[a->axis], a->input);
            }
        }
    }
    return NORI_OK;
}

/* ---- one run of the function ---- */

typedef struct one_run {
    nori_tracer t;
    nori_traced **in, **out;
} one_run;

static nori_status name_outputs(exporting *e, one_run *r)
{
    for (size_t i = 0; i < e->n_out; i++) {
        nori_traced *v = r->out[i];
        if (r->t.status != NORI_OK) {
            return r->t.status;
        }
        if (!v || v->t != &r->t) {
            return nori__fail(e->err, NORI_ERROR_ARGUMENT, "the function left output \"%s\" (%zu) empty",
                              e->out_names[i], i);
        }
        bool again = false;
        for (size_t k = 0; k < i; k++) {
            again = again || r->out[k] == v;
        }
        if (!v->made || again) { /* an output is something a node makes, under its own name */
            v = nori_traced_op(&r->t, "Identity", &v, 1, NULL, 0);
        }
        r->out[i] = nori_traced_name(v, e->out_names[i]);
    }
    return r->t.status;
}

/* Runs the function on these inputs. notes: whether what it does is worth noting. */
static nori_status run_function(exporting *e, const nori_tensor *const *inputs, bool notes, one_run *r)
{
    nori__tracer_init(&r->t, e->env, &e->o, e->err);
    r->t.report = notes ? e->report : NULL;
    r->in = nori__arena_array(&r->t.arena, e->n_in + 1, sizeof(nori_traced *));
    r->out = nori__arena_array(&r->t.arena, e->n_out + 1, sizeof(nori_traced *));
    if (!r->in || !r->out) {
        return nori__no_memory(e->err);
    }
    for (size_t i = 0; i < e->n_in; i++) {
        nori_traced *v = nori__traced_new(&r->t, e->in_names[i], NULL, nori_tensor_retain(inputs[i]));
        if (!v) {
            return r->t.status;
        }
        v->input = v->depends = true;
        for (size_t k = 0; k < e->o.dynamic_axis_count; k++) {
            const nori_dynamic_axis *a = &e->o.dynamic_axes[k];
            if (input_of(e, a->input) == i) {
                v->open[a->axis] = true;
            }
        }
        r->in[i] = v;
    }
    nori_status s = e->function(e->user, &r->t, r->in, r->out);
    if (r->t.status != NORI_OK) {
        return r->t.status;
    }
    if (s != NORI_OK) {
        return nori__fail(e->err, s, "the traced function gave up: %s", nori_status_text(s));
    }
    return name_outputs(e, r);
}

/* ---- does the model do the same? ---- */

static nori_status add_check(exporting *e, const char *what, size_t output, const nori_agreement *got)
{
    nori_trace_check *c = nori__arena_alloc(&e->report->arena, sizeof(*c));
    char *word = nori__arena_text(&e->report->arena, what);
    char *name = nori__arena_text(&e->report->arena, e->out_names[output]);
    if (!c || !word || !name || !nori__vec_push(&e->report->checks, c)) {
        return nori__no_memory(e->err);
    }
    *c = (nori_trace_check){.size = sizeof(*c), .what = word, .output = name, .agreement = *got};
    if (got->passes) {
        return NORI_OK;
    }
    nori_status s = nori__fail(e->err, NORI_ERROR_DATA,
                               "output \"%s\" of the model is not what the function gave (%s): %s%llu of "
                               "%llu elements beyond rtol %g + atol %g, the largest difference is %g",
                               name, word,
                               got->reason[0] ? got->reason : "", (unsigned long long)got->beyond,
                               (unsigned long long)got->elements, e->o.rtol, e->o.atol, got->max_abs);
    nori__hint(e->err, "a size or value that the C code computed is frozen in the graph; the notes of the "
                       "report say what was read. Nothing was written");
    return s;
}

static nori_status compare_run(exporting *e, const nori_model *model, const nori_tensor *const *inputs,
                               const one_run *r, const char *what)
{
    nori_session *session = NULL;
    nori_session_options o;
    nori_agreement_options how;
    nori_tensor **got = nori__arena_array(&e->arena, e->n_out + 1, sizeof(*got));
    if (!got) {
        return nori__no_memory(e->err);
    }
    nori_session_options_default(&o);
    o.providers = e->o.providers;
    nori_agreement_options_default(&how);
    how.rtol = e->o.rtol;
    how.atol = e->o.atol;
    nori_status s = nori_session_create(model, &o, &session, e->err);
    s = s == NORI_OK ? nori_session_run(session, inputs, e->n_in, got, e->n_out, e->err) : s;
    if (s != NORI_OK) {
        nori__where(e->err, "the model, %s", what);
        nori__hint(e->err, "the function itself could do this size: something in the graph is frozen");
    }
    for (size_t i = 0; s == NORI_OK && i < e->n_out; i++) {
        nori_agreement agreement = {.size = sizeof(agreement)};
        nori_agreement_add(&agreement, got[i], r->out[i]->tensor, &how);
        s = add_check(e, what, i, &agreement);
    }
    for (size_t i = 0; i < e->n_out; i++) {
        nori_tensor_free(got[i]);
    }
    nori_session_free(session);
    return s;
}

/* The example with another size of an axis: its slices again and again. */
static nori_status stretch(exporting *e, const nori_tensor *from, const int64_t *dims, nori_tensor **to)
{
    size_t item = nori_type_bits((nori_type)from->type) / 8;
    NORI__TRY(nori__tensor_new(e->report->arena.allocator, (nori_type)from->type, from->rank, dims, to,
                               e->err));
    for (int64_t i = 0; i < (*to)->count; i++) {
        int64_t rest = i, at = 0, stride = 1;
        for (int d = from->rank; d-- > 0;) {
            int64_t k = rest % dims[d];
            rest /= dims[d];
            at += (k % from->dims[d]) * stride;
            stride *= from->dims[d];
        }
        memcpy((char *)(*to)->data + (size_t)i * item, (const char *)from->data + (size_t)at * item, item);
    }
    return NORI_OK;
}

static bool can_stretch(const nori_tensor *t)
{
    return t->kind == NORI_KIND_TENSOR && t->type != NORI_STRING && t->count > 0 &&
           nori_type_bits((nori_type)t->type) >= 8;
}

/* All axes of one dynamic dimension one larger; others as in the examples. */
static nori_status check_size(exporting *e, const nori_model *model, size_t axis)
{
    const nori_dynamic_axis *a = &e->o.dynamic_axes[axis];
    nori_tensor **inputs = nori__arena_array(&e->arena, e->n_in + 1, sizeof(*inputs));
    char what[200];
    int64_t size = e->examples[input_of(e, a->input)]->dims[a->axis] + 1;
    nori_status s = inputs ? NORI_OK : nori__no_memory(e->err);
    if (a->name) {
        snprintf(what, sizeof(what), "%.100s = %lld", a->name, (long long)size);
    } else {
        snprintf(what, sizeof(what), "axis %d of %.100s = %lld", a->axis, a->input, (long long)size);
    }
    for (size_t i = 0; s == NORI_OK && i < e->n_in; i++) {
        const nori_tensor *t = e->examples[i];
        int64_t dims[NORI_MAX_RANK];
        bool changed = false;
        nori__tensor_dims(t, dims);
        for (size_t k = 0; k < e->o.dynamic_axis_count; k++) {
            const nori_dynamic_axis *b = &e->o.dynamic_axes[k];
            if (same_dimension(e, a, b) && input_of(e, b->input) == i) {
                dims[b->axis] = size;
                changed = true;
            }
        }
        if (changed && !can_stretch(t)) {
            nori__tracer_note(&(nori_tracer){.report = e->report, .options = &e->o},
                              "not compared at %s: no other example of input \"%s\" can be made", what,
                              e->in_names[i]);
            goto done;
        }
        s = changed ? stretch(e, t, dims, &inputs[i])
                    : (inputs[i] = nori_tensor_retain(t), NORI_OK);
    }
    if (s == NORI_OK) {
        one_run r;
        s = run_function(e, (const nori_tensor *const *)inputs, false, &r);
        if (s != NORI_OK) {
            nori__where(e->err, "the function again, %s", what);
            nori__hint(e->err, "an axis is dynamic only where the function takes other sizes: use sizes of "
                               "its inputs, not those of the example");
        } else {
            s = compare_run(e, model, (const nori_tensor *const *)inputs, &r, what);
        }
        nori__tracer_free(&r.t);
    }
done:
    for (size_t i = 0; inputs && i < e->n_in; i++) {
        nori_tensor_free(inputs[i]);
    }
    return s;
}

static nori_status check_model(exporting *e, const nori_model *model)
{
    nori_findings *found = NULL;
    NORI__TRY(nori_check(model, NULL, &found, e->err));
    nori_status s = NORI_OK;
    if (nori_findings_at_least(found, NORI_SEVERITY_ERROR)) {
        const nori_finding *f = nori_findings_at(found, 0);
        s = nori__fail(e->err, NORI_ERROR_MODEL, "the traced model is not valid: %s: %s", f->path,
                       f->message);
        nori__hint(e->err, "%s", f->hint);
    }
    nori_findings_free(found);
    return s;
}

static nori_status check_sizes(exporting *e, const nori_model *model)
{
    for (size_t i = 0; i < e->o.dynamic_axis_count; i++) {
        bool seen = false; /* with another axis of the same dimension */
        for (size_t k = 0; k < i; k++) {
            seen = seen || same_dimension(e, &e->o.dynamic_axes[i], &e->o.dynamic_axes[k]);
        }
        if (!seen) {
            NORI__TRY(check_size(e, model, i));
        }
    }
    return NORI_OK;
}

static nori_status write_model(exporting *e, const nori_model *model, const one_run *r)
{
    nori_model *back = NULL;
    NORI__TRY(nori_model_save(model, e->o.path, e->err));
    nori_status s = nori_model_load(e->env, e->o.path, NULL, &back, e->err);
    s = s == NORI_OK ? compare_run(e, back, e->examples, r, "written") : s;
    nori_model_free(back);
    return s;
}

static nori_status export_model(exporting *e, nori_model **model)
{
    one_run r;
    NORI__TRY(fill_names(e));
    NORI__TRY(check_axes(e));
    nori_status s = run_function(e, e->examples, true, &r);
    s = s == NORI_OK ? nori__trace_model(&r.t, r.in, e->n_in, r.out, e->n_out, model) : s;
    s = s == NORI_OK ? check_model(e, *model) : s;
    s = s == NORI_OK ? compare_run(e, *model, e->examples, &r, "example") : s;
    s = s == NORI_OK ? check_sizes(e, *model) : s;
    s = s == NORI_OK && e->o.path ? write_model(e, *model, &r) : s;
    nori__tracer_free(&r.t);
    return s;
}

static nori_status check_arguments(nori_trace_function function, const nori_tensor *const *examples,
                                   size_t count, nori_error *err)
{
    if (!function) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "a function to trace was expected, got NULL");
    }
    for (size_t i = 0; i < count && examples; i++) {
        if (!examples[i]) {
            return nori__fail(err, NORI_ERROR_ARGUMENT, "the example of input %zu is NULL", i);
        }
    }
    if (!examples || count == 0) {
        nori_status s = nori__fail(err, NORI_ERROR_ARGUMENT,
                                   "no example input: a trace is a run of the function on real tensors");
        nori__hint(err, "give one tensor for each input, of the type and shape it will have");
        return s;
    }
    return NORI_OK;
}

nori_status nori_trace(nori_env *env, nori_trace_function function, void *user,
                       const nori_tensor *const *examples, size_t example_count,
                       const nori_trace_options *options, nori_model **model,
                       nori_trace_report **report, nori_error *err)
{
    nori_error own = {0};
    nori_model *made = NULL;
    exporting e = {.env = env, .function = function, .user = user, .examples = examples,
                   .n_in = example_count, .err = err ? err : &own};
    if (model) {
        *model = NULL;
    }
    if (report) {
        *report = NULL;
    }
    NORI__TRY(check_arguments(function, examples, example_count, e.err));
    nori_trace_options_default(&e.o);
    if (options) {
        memcpy(&e.o, options, options->size < sizeof(e.o) ? options->size : sizeof(e.o));
    }
    const nori_allocator *a = nori__env_allocator(env);
    e.report = nori__alloc_zero(a, sizeof(*e.report));
    if (!e.report) {
        return nori__no_memory(e.err);
    }
    nori__arena_init(&e.report->arena, a);
    nori__vec_init(&e.report->notes, a);
    nori__vec_init(&e.report->checks, a);
    e.report->summary.size = sizeof(e.report->summary);
    nori__arena_init(&e.arena, a);
    nori_status s = export_model(&e, &made);
    nori__arena_free(&e.arena);
    if (s != NORI_OK || !model) {
        nori_model_free(made);
        made = NULL;
    }
    if (model) {
        *model = made;
    }
    if (report) {
        *report = e.report; /* also after an error: its notes say why */
    } else {
        nori_trace_report_free(e.report);
    }
    return s;
}

/* ---- the report ---- */

void nori_trace_report_summary(const nori_trace_report *r, nori_trace_summary *summary)
{
    NORI__ASKED(r, );
    NORI__ASKED(summary, );
    size_t size = summary->size < sizeof(r->summary) ? summary->size : sizeof(r->summary);
    memcpy(summary, &r->summary, size);
    summary->size = size;
}

const char *nori_trace_report_note(const nori_trace_report *r, size_t index)
{
    NORI__ASKED(r, NULL);
    return index < r->notes.count ? r->notes.items[index] : NULL;
}

int nori_trace_report_check(const nori_trace_report *r, size_t index, nori_trace_check *check)
{
    NORI__ASKED(r, 0);
    NORI__ASKED(check, 0);
    if (index >= r->checks.count) {
        return 0;
    }
    size_t size = check->size < sizeof(*check) ? check->size : sizeof(*check);
    memcpy(check, r->checks.items[index], size);
    check->size = size;
    return 1;
}

void nori_trace_report_free(nori_trace_report *r)
{
    if (r) {
        const nori_allocator *a = r->arena.allocator;
        nori__vec_free(&r->checks);
        nori__vec_free(&r->notes);
        nori__arena_free(&r->arena);
        nori__release(a, r, sizeof(*r));
    }
}

/* graph_ways.c: the ways one graph is run. A worker knows one CPU level: kernels are chosen once a
 * process.
 */
#include <unistd.h>

#include "graphs.h"
#include "nori/compile.h"
#include "nori/convert.h"
#include "nori/edit.h"
#include "nori/text.h"
#include "ort.h"
#include "platform/platform.h"

typedef struct ways {
    const nori__str *bytes;
    const graphs_feeds *feeds;
    graphs_answers *to;
} ways;

static graphs_answer *answer(ways *w, const char *label, int group)
{
    graphs_answer *a = &w->to->items[w->to->count++];
    memset(a, 0, sizeof(*a));
    snprintf(a->label, sizeof(a->label), "%s", label);
    a->group = group;
    return a;
}

static void says(graphs_answer *a, nori_status s, const nori_error *err)
{
    a->status = s;
    snprintf(a->text, sizeof(a->text), "%.200s%s%.300s", err->where, err->where[0] ? ": " : "",
             err->message);
}

/* Environments are made once: the pool has more threads than there may be processors. */
static nori_env *env(void)
{
    static nori_env *made;
    nori_env_options o;
    if (!made) {
        nori_env_options_default(&o);
        o.threads = 3;
        nori_env_create(&o, &made, NULL);
    }
    return made;
}

/* What the first of a group has said need not be said again. */
static void same_as_first(ways *w, graphs_answer *a)
{
    char why[GRAPHS_TEXT];
    for (graphs_answer *b = w->to->items; a->group && b < a; b++) {
        if (b->group != a->group || b->status) {
            continue;
        }
        a->same = !b->same;
        for (size_t k = 0; a->same && k < GRAPHS_OUTPUTS; k++) {
            a->same = (!a->out[k] && !b->out[k]) ||
                      (a->out[k] && b->out[k] && graphs_same_bits(a->out[k], b->out[k], why));
        }
        for (size_t k = 0; a->same && k < GRAPHS_OUTPUTS; k++) {
            nori_tensor_free(a->out[k]);
            a->out[k] = NULL;
        }
        return;
    }
}

static void run_set(ways *w, nori_session *session, graphs_answer *a, int set)
{
    nori_error err = {0};
    size_t n = nori_session_output_count(session);
    nori_status s = n > GRAPHS_OUTPUTS
                        ? NORI_ERROR_ARGUMENT
                        : nori_session_run(session, (const nori_tensor *const *)w->feeds->in[set],
                                           w->feeds->count, a->out, n, &err);
    a->set = set;
    says(a, s, &err);
    if (!s) {
        same_as_first(w, a);
    }
}

enum { OF_ITS_OWN = 100, OF_OTHER_SIZES = 1000 };

/* Under both sets of inputs, and the first once more. Frees the session. */
static void run_session(ways *w, const char *label, int group, nori_session *session)
{
    char text[48];
    bool moves = w->feeds->in[1][0] != NULL;
    group = group || !moves ? group : OF_ITS_OWN + (int)w->to->count;
    run_set(w, session, answer(w, label, group), 0);
    if (moves) {
        snprintf(text, sizeof(text), "%.30s, other sizes", label);
        run_set(w, session, answer(w, text, OF_OTHER_SIZES + group), 1);
        snprintf(text, sizeof(text), "%.30s, once more", label);
        run_set(w, session, answer(w, text, group), 0);
    }
    nori_session_free(session);
}

static void run(ways *w, const char *label, int group, const nori_model *model,
                const char *provider, int level, int threads)
{
    nori_session *session = NULL;
    nori_session_options o;
    nori_error err = {0};
    nori_session_options_default(&o);
    o.providers = provider;
    o.level = level;
    o.threads = threads;
    nori_status s = nori_session_create(model, &o, &session, &err);
    if (s) {
        says(answer(w, label, group), s, &err);
    } else {
        run_session(w, label, group, session);
    }
}

/* Frees the model. */
static void run_made(ways *w, const char *label, int group, nori_status s, const nori_error *err,
                     bool excused, nori_model *model, const char *provider, int level)
{
    if (s) {
        graphs_answer *a = answer(w, label, group);
        says(a, s, err);
        a->excused = excused;
    } else {
        run(w, label, group, model, provider, level, 1);
    }
    nori_model_free(model);
}

static void by_text(ways *w, const nori_model *model)
{
    nori_model *again = NULL;
    nori_text_options o;
    nori_error err = {0};
    char *text = NULL;
    size_t size = 0;
    nori_text_options_default(&o);
    o.inline_elements = INT64_MAX;
    nori_status s = nori_model_text(model, &o, &text, &size, NULL, &err);
    bool excused = s == NORI_ERROR_UNSUPPORTED;
    s = s ? s : nori_model_from_text(env(), text, size, NULL, &again, &err);
    run_made(w, "by text, cpu level 2", 1, s, &err, excused, again, "cpu", 2);
    nori_text_free(text);
}

/* Files of a moment: in memory where the system has such a folder, as saving waits for the disk. */
static const char *scratch(void)
{
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

/* A compiled plan, opened as a file or as bytes: the bits of the session that it stands for. */
static void by_plan(ways *w, const nori_model *model, bool in_memory)
{
    char path[80];
    const char *label = in_memory ? "plan of bytes, cpu level 2" : "plan, cpu level 2";
    nori_model *again = NULL;
    nori_session *session = NULL;
    nori_session_options o;
    nori_error err = {0};
    nori_plan_use use = {.size = sizeof(use)};
    nori__map_file map = {NULL, 0};
    snprintf(path, sizeof(path), "%s/nori-graphs-%ld.plan", scratch(), (long)getpid());
    nori_session_options_default(&o);
    o.threads = 1;
    nori_status s = nori_plan_write(model, &o, path, NULL, &err);
    if (!s && in_memory) {
        s = nori__map_open(path, &map, &err);
        s = s ? s : nori_model_load_memory(env(), map.data, map.size, NULL, NULL, &again, &err);
    } else if (!s) {
        s = nori_model_load(env(), path, NULL, &again, &err);
    }
    s = s ? s : nori_session_create(again, &o, &session, &err);
    if (!s && (!nori_session_plan(session, &use) || use.why_not[0])) {
        s = nori__fail(&err, NORI_ERROR_INTERNAL, "the plan is not used: %s",
                       use.why_not ? use.why_not : "");
    }
    if (s) {
        says(answer(w, label, 1), s, &err);
        nori_session_free(session);
    } else {
        run_session(w, label, 1, session);
    }
    nori_model_free(again);
    nori__map_close(&map);
    unlink(path);
}

/* A model that runs is one without errors. */
static void by_check(ways *w, const nori_model *model)
{
    nori_findings *findings = NULL;
    nori_error err = {0};
    nori_status s = nori_check(model, NULL, &findings, &err);
    if (!s && nori_findings_at_least(findings, NORI_SEVERITY_ERROR) > 0) {
        const nori_finding *f = nori_findings_at(findings, 0);
        s = nori__fail(&err, NORI_ERROR_MODEL, "%s: %s", f->path, f->message);
    }
    if (s) {
        says(answer(w, "check", 0), s, &err);
    }
    nori_findings_free(findings);
}

static void optimized(ways *w, const nori_model *model)
{
    nori_optimize_options o;
    nori_model *made = NULL;
    nori_error err = {0};
    nori_optimize_options_default(&o);
    o.proof.skip = 1;
    nori_status s = nori_optimize(model, &o, &made, NULL, &err);
    run_made(w, "optimized, reference level 0", 0, s, &err, false, made, "reference", 0);
}

static void by_files(ways *w, const nori_model *model)
{
    char folder[64], one[80], two[80], data[80];
    nori_model *beside = NULL, *whole = NULL;
    nori_save_options o;
    nori_error err = {0};
    snprintf(folder, sizeof(folder), "%s/nori-graphs-XXXXXX", scratch());
    if (!mkdtemp(folder)) {
        return;
    }
    snprintf(one, sizeof(one), "%s/a.onnx", folder);
    snprintf(two, sizeof(two), "%s/b.onnx", folder);
    snprintf(data, sizeof(data), "%s/weights", folder);
    nori_save_options_default(&o);
    o.external = "weights";
    o.threshold = 1;
    nori_status s = nori_model_save_as(model, one, &o, &err);
    s = s ? s : nori_model_load(env(), one, NULL, &beside, &err);
    if (!s) {
        nori_save_options_default(&o);
        o.embed = 1;
        nori_error other = {0};
        nori_status t = nori_model_save_as(beside, two, &o, &other);
        t = t ? t : nori_model_load(env(), two, NULL, &whole, &other);
        run_made(w, "embedded again, cpu level 2", 1, t, &other, false, whole, "cpu", 2);
    }
    run_made(w, "data beside it, cpu level 2", 1, s, &err, false, beside, "cpu", 2);
    unlink(one);
    unlink(two);
    unlink(data);
    rmdir(folder);
}

/* Other runtimes refuse two nodes of one name; the graphs that are drawn have none. */
static nori_status of_names_apart(const nori_model *model, nori_error *err)
{
    for (const nori_node *a = nori_graph_first(nori_model_graph(model)); a; a = nori_node_next(a)) {
        for (const nori_node *b = nori_node_next(a); b && nori_node_name(a)[0]; b = nori_node_next(b)) {
            if (strcmp(nori_node_name(a), nori_node_name(b)) == 0) {
                return nori__fail(err, NORI_ERROR_MODEL, "two nodes are called %s", nori_node_name(a));
            }
        }
    }
    return NORI_OK;
}

static void converted(ways *w, const nori_model *model, int64_t opset)
{
    nori_convert_options o;
    nori_model *made = NULL;
    nori_error err = {0};
    char label[48];
    nori_convert_options_default(&o);
    o.opset = opset;
    o.lowest = opset == 0;
    nori_status s = nori_convert(model, &o, &made, NULL, &err);
    s = s ? s : of_names_apart(made, &err);
    if (opset) {
        snprintf(label, sizeof(label), "under operator set %d, cpu level 2", (int)opset);
    } else {
        snprintf(label, sizeof(label), "under the lowest, reference level 0");
    }
    bool excused = s == NORI_ERROR_UNSUPPORTED || s == NORI_ERROR_ARGUMENT;
    run_made(w, label, 0, s, &err, excused, made, opset ? "cpu" : "reference", opset ? 2 : 0);
}

/* The whole graph as both branches of an If, which read inputs and initializers from outside. */
static void in_a_branch(ways *w)
{
    make outer;
    nori__pb_model *model = NULL;
    nori__pb_report report = {0};
    nori_error err = {0};
    nori__text bytes;
    nori_model *made = NULL;
    make_begin(&outer, 0);
    nori__text_init(&bytes, &nori__malloc);
    nori_status s = nori__pb_read_model(&outer.arena, (const uint8_t *)w->bytes->p, w->bytes->n,
                                        &model, &report, &err);
    if (!s) {
        nori__pb_graph *g = model->graph, inner = *g;
        memset(&inner.inputs, 0, sizeof(inner.inputs));
        memset(&inner.initializers, 0, sizeof(inner.initializers));
        inner.name = make_str(&outer, "branch");
        memset(&g->nodes, 0, sizeof(g->nodes));
        memset(&g->outputs, 0, sizeof(g->outputs));
        nori__pb_tensor *condition = MAKE_ADD(&outer, g->initializers);
        condition->name = make_str(&outer, "whether");
        condition->data_type = NORI_BOOL;
        *MAKE_ADD(&outer, condition->ints) = 1;
        nori__pb_node *n = make_node(&outer, g, "", "If", "if", "whether", "");
        for (size_t i = 0; i < inner.outputs.count; i++) {
            char name[32];
            snprintf(name, sizeof(name), "of_if_%zu", i);
            *MAKE_ADD(&outer, n->outputs) = make_str(&outer, name);
            nori__pb_value *out = MAKE_ADD(&outer, g->outputs);
            *out = inner.outputs.items[i];
            out->name = make_str(&outer, name);
        }
        *make_attr_graph(&outer, n, "then_branch") = inner;
        *make_attr_graph(&outer, n, "else_branch") = inner;
        s = nori__pb_write_model(model, &bytes, &err);
    }
    s = s ? s : nori_model_load_memory(env(), bytes.data, bytes.size, NULL, NULL, &made, &err);
    run_made(w, "in a branch, cpu level 2", 0, s, &err, false, made, "cpu", 2);
    nori__text_free(&bytes);
    make_end(&outer);
}

/* A file of the model, run by ONNX Runtime. */
static bool ort_takes(ways *w, ort *o, const char *label, const nori_model *model, bool excused)
{
    char path[80];
    const char *in[GRAPHS_INPUTS], *out[GRAPHS_OUTPUTS];
    size_t n_in = nori_model_input_count(model), n_out = nori_model_output_count(model);
    graphs_answer *a = answer(w, label, 0);
    nori_error err = {0};
    snprintf(path, sizeof(path), "%s/nori-graphs-%ld.onnx", scratch(), (long)getpid());
    for (size_t i = 0; i < n_in && i < GRAPHS_INPUTS; i++) {
        in[i] = nori_model_input(model, i)->name;
    }
    for (size_t i = 0; i < n_out && i < GRAPHS_OUTPUTS; i++) {
        out[i] = nori_model_output(model, i)->name;
    }
    nori_status s = nori_model_save(model, path, &err);
    if (s) {
        says(a, s, &err);
    } else {
        ort_outcome done = ort_run(o, path, (const nori_tensor *const *)w->feeds->in[0], in, n_in,
                                   a->out, out, n_out, a->text, sizeof(a->text));
        a->status = done == ORT_RAN ? NORI_OK : NORI_ERROR_UNSUPPORTED;
        /* An operator that it has for one operator set or type and not for another. */
        a->excused = excused || strstr(a->text, "[9] Could not find an implementation for");
    }
    unlink(path);
    return a->status == NORI_OK;
}

const char *const graphs_peer_labels[GRAPHS_PEER_WAYS] = {
    "ONNX Runtime, operator set 21", "ONNX Runtime, the lowest", "ONNX Runtime, optimized"};

nori_status graphs_peer_change(int way, const nori_model *model, nori_model **made)
{
    nori_convert_options c;
    nori_optimize_options p;
    nori_convert_options_default(&c);
    nori_optimize_options_default(&p);
    c.opset = way == 0 ? 21 : 0;
    c.lowest = way == 1;
    p.proof.skip = 1;
    return way < 2 ? nori_convert(model, &c, made, NULL, NULL)
                   : nori_optimize(model, &p, made, NULL, NULL);
}

/* What it takes, it takes too as nori writes it: under operator set 21, under the lowest (which it
 * need not know) and as optimized. */
static void by_ort(ways *w, const nori_model *model, const char *library)
{
    static ort *o;
    char reason[GRAPHS_TEXT] = "";
    if (!o && !(o = ort_open(library, reason, sizeof(reason)))) {
        graphs_answer *a = answer(w, "ONNX Runtime", 0);
        a->status = NORI_ERROR_UNAVAILABLE;
        a->excused = true;
        snprintf(a->text, sizeof(a->text), "%s", reason);
        return;
    }
    if (!ort_takes(w, o, "ONNX Runtime", model, true)) {
        return;
    }
    for (int k = 0; k < GRAPHS_PEER_WAYS; k++) {
        nori_model *made = NULL;
        if (!graphs_peer_change(k, model, &made)) { /* why not is another worker's question */
            ort_takes(w, o, graphs_peer_labels[k], made, k == 1);
        }
        nori_model_free(made);
    }
}

void graphs_run_ways(graphs_kind kind, const char *library, const nori__str *bytes,
                     const graphs_feeds *feeds, graphs_answers *answers)
{
    ways w = {bytes, feeds, answers};
    nori_model *model = NULL;
    nori_error err = {0};
    bool odd = bytes->n % 2; /* what only every other graph gets */
    nori_status s = nori_model_load_memory(env(), bytes->p, bytes->n, NULL, NULL, &model, &err);
    if (s) {
        says(answer(&w, "load", 0), s, &err);
    } else if (kind == GRAPHS_LEVEL) {
        run(&w, "cpu level 2", 1, model, "cpu", 2, 1);
        run(&w, "cpu level 2, 3 threads", 1, model, "cpu", 2, 3);
        run(&w, "cpu level 1", 2, model, "cpu", 1, 1);
        run(&w, "cpu level 1, 3 threads", 2, model, "cpu", 1, 3);
        run(&w, "cpu level 0", 0, model, "cpu", 0, 1);
        by_plan(&w, model, odd);
    } else if (kind == GRAPHS_CHANGES) {
        run(&w, "cpu level 2", 1, model, "cpu", 2, 1);
        run(&w, "reference level 2", 0, model, "reference", 2, 1);
        run(&w, "reference level 0", 0, model, "reference", 0, 1);
        by_check(&w, model);
        by_text(&w, model);
        by_files(&w, model);
        optimized(&w, model);
        converted(&w, model, odd ? 21 : 24);
        converted(&w, model, 0);
        in_a_branch(&w);
    } else {
        by_ort(&w, model, library);
    }
    nori_model_free(model);
}

void graphs_answers_free(graphs_answers *a)
{
    for (size_t i = 0; i < a->count; i++) {
        for (size_t k = 0; k < GRAPHS_OUTPUTS; k++) {
            nori_tensor_free(a->items[i].out[k]);
        }
    }
    memset(a, 0, sizeof(*a));
}

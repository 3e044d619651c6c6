/* graph_ways.c: the ways one graph is run. A worker knows one CPU level: kernels are chosen once a process.
 */
#include <unistd.h>

#include "graphs.h"
#include "nori/convert.h"
#include "nori/edit.h"
#include "nori/text.h"
#include "ort.h"

typedef struct ways {
    const nori__str *bytes;
    nori_tensor *const *in;
    size_t n_in;
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
    snprintf(a->text, sizeof(a->text), "%.200s%s%.300s", err->where, err->where[0] ? ": " : "", err->message);
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

static void run(ways *w, graphs_answer *a, const nori_model *model, const char *provider, int level,
                int threads)
{
    nori_session *session = NULL;
    nori_session_options o;
    nori_error err = {0};
    nori_session_options_default(&o);
    o.providers = provider;
    o.level = level;
    o.threads = threads;
    nori_status s = nori_session_create(model, &o, &session, &err);
    size_t n = s ? 0 : nori_session_output_count(session);
    s = s ? s
        : n > GRAPHS_OUTPUTS
            ? NORI_ERROR_ARGUMENT
            : nori_session_run(session, (const nori_tensor *const *)w->in, w->n_in, a->out, n, &err);
    says(a, s, &err);
    nori_session_free(session);
}

/* Frees the model. */
static void run_made(ways *w, const char *label, int group, nori_status s, const nori_error *err,
                     bool excused, nori_model *model, const char *provider, int level)
{
    graphs_answer *a = answer(w, label, group);
    if (s) {
        says(a, s, err);
        a->excused = excused;
    } else {
        run(w, a, model, provider, level, 1);
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

static void by_files(ways *w, const nori_model *model)
{
    char folder[] = "/tmp/nori-graphs-XXXXXX", one[64], two[64], data[64];
    nori_model *beside = NULL, *whole = NULL;
    nori_save_options o;
    nori_error err = {0};
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
    nori_status s =
        nori__pb_read_model(&outer.arena, (const uint8_t *)w->bytes->p, w->bytes->n, &model, &report, &err);
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

static void by_ort(ways *w, const nori_model *model, const char *library)
{
    static ort *o;
    char reason[GRAPHS_TEXT] = "", path[64];
    const char *in[GRAPHS_INPUTS], *out[GRAPHS_OUTPUTS];
    size_t n_in = nori_model_input_count(model), n_out = nori_model_output_count(model);
    graphs_answer *a = answer(w, "ONNX Runtime", 0);
    a->excused = true;
    if (!o && !(o = ort_open(library, reason, sizeof(reason)))) {
        a->status = NORI_ERROR_UNAVAILABLE;
        snprintf(a->text, sizeof(a->text), "%s", reason);
        return;
    }
    snprintf(path, sizeof(path), "/tmp/nori-graphs-%ld.onnx", (long)getpid());
    FILE *f = fopen(path, "wb");
    bool wrote = f && fwrite(w->bytes->p, 1, w->bytes->n, f) == w->bytes->n;
    if (f) {
        fclose(f);
    }
    for (size_t i = 0; i < n_in && i < GRAPHS_INPUTS; i++) {
        in[i] = nori_model_input(model, i)->name;
    }
    for (size_t i = 0; i < n_out && i < GRAPHS_OUTPUTS; i++) {
        out[i] = nori_model_output(model, i)->name;
    }
    ort_outcome done = wrote ? ort_run(o, path, (const nori_tensor *const *)w->in, in, n_in, a->out, out,
                                       n_out, a->text, sizeof(a->text))
                             : ORT_REFUSED;
    a->status = done == ORT_RAN ? NORI_OK : NORI_ERROR_UNSUPPORTED;
    unlink(path);
}

void graphs_run_ways(graphs_kind kind, const char *library, const nori__str *bytes, nori_tensor *const *in,
                     size_t n_in, graphs_answers *answers)
{
    ways w = {bytes, in, n_in, answers};
    nori_model *model = NULL;
    nori_error err = {0};
    nori_status s = nori_model_load_memory(env(), bytes->p, bytes->n, NULL, NULL, &model, &err);
    if (s) {
        says(answer(&w, "load", 0), s, &err);
    } else if (kind == GRAPHS_LEVEL) {
        run(&w, answer(&w, "cpu level 2", 1), model, "cpu", 2, 1);
        run(&w, answer(&w, "cpu level 2, 3 threads", 1), model, "cpu", 2, 3);
        run(&w, answer(&w, "cpu level 1", 2), model, "cpu", 1, 1);
        run(&w, answer(&w, "cpu level 1, 3 threads", 2), model, "cpu", 1, 3);
        run(&w, answer(&w, "cpu level 0", 0), model, "cpu", 0, 1);
    } else if (kind == GRAPHS_CHANGES) {
        int64_t newer = n_in % 2 ? 21 : 24;
        run(&w, answer(&w, "cpu level 2", 1), model, "cpu", 2, 1);
        run(&w, answer(&w, "reference level 2", 0), model, "reference", 2, 1);
        run(&w, answer(&w, "reference level 0", 0), model, "reference", 0, 1);
        by_text(&w, model);
        by_files(&w, model);
        converted(&w, model, newer);
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

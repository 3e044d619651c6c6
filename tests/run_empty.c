/* run_empty.c: runs test cases again with an input that has no elements: for every input and axis the
 * size there becomes 0, alone and in all inputs of the same shape. Folders come on standard input,
 * one a line; one line a case goes out, as run_cases has it:
 *
 *     VERDICT <tab> FOLDER <tab> OPSET <tab> TEXT
 *
 * Whatever is not legal must be refused by an error, and not by one of a fault in nori. Where the
 * reference provider runs, every output has the shape inference told, and the cpu provider gives the
 * same. NORI_EMPTY_JUDGE=ort:cpu asks another provider which are legal and what the shapes are; whose
 * fault a difference is, people decide. TEXT says how many of the variants ran. */
#include <stdio.h>
#include <stdlib.h>

#include <sys/wait.h>
#include <unistd.h>

#include "case_data.h"
#include "platform/platform.h"

typedef struct variant {
    uint32_t input;
    int axis;
    bool alike; /* all inputs of the shape of this one */
} variant;

typedef struct tally {
    const char *word;
    char text[1024];
    unsigned tried, ran, judged;
} tally;

static void complain(tally *t, const char *word, const variant *v, const char *fmt, ...)
    NORI__PRINTF(4, 5);
static void complain(tally *t, const char *word, const variant *v, const char *fmt, ...)
{
    char what[900];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    if (nori__same(t->word, "ok")) {
        t->word = word;
        snprintf(t->text, sizeof(t->text), "input %u axis %d%s: %s", v->input, v->axis,
                 v->alike ? " and those alike" : "", what);
    }
}

static bool same_dims(const nori_tensor *a, const nori_tensor *b)
{
    return a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(int64_t)) == 0;
}

/* The tensors of the variant: those of `from`, or empty ones. */
static bool make_inputs(nori_tensor *const *from, size_t n, const variant *v, nori_tensor **to)
{
    for (size_t i = 0; i < n; i++) {
        bool empty = i == v->input ||
                     (v->alike && from[i] && from[i]->kind == NORI_KIND_TENSOR &&
                      same_dims(from[i], from[v->input]));
        if (!empty) {
            to[i] = nori_tensor_retain(from[i]);
            continue;
        }
        int64_t dims[NORI_MAX_RANK] = {0};
        nori__tensor_dims(from[i], dims);
        dims[v->axis] = 0;
        if (nori_tensor_create(NULL, (nori_type)from[i]->type, from[i]->rank, dims, &to[i], NULL) !=
            NORI_OK) {
            return false;
        }
    }
    return true;
}

/* Shapes that authors said of outputs and of values inside, subgraphs included, are no longer true. */
static void forget_shapes(nori__pb_graph *g, bool inner, int depth)
{
    for (size_t i = 0; i < g->outputs.count; i++) {
        if (g->outputs.items[i].type) {
            g->outputs.items[i].type->shape = NULL;
        }
    }
    for (size_t i = 0; inner && i < g->inputs.count; i++) {
        if (g->inputs.items[i].type) {
            g->inputs.items[i].type->shape = NULL;
        }
    }
    g->value_info.count = 0;
    for (size_t i = 0; depth < 8 && i < g->nodes.count; i++) {
        for (size_t k = 0; k < g->nodes.items[i].attrs.count; k++) {
            nori__pb_graph *sub = g->nodes.items[i].attrs.items[k].g;
            if (sub) {
                forget_shapes(sub, true, depth + 1);
            }
        }
    }
}

/* The model with the inputs' shapes as fed, and no other shapes said. */
static nori_status edited_model(const nori__map_file *file, nori_tensor *const *in, size_t n,
                                nori__arena *arena, nori_model **model, nori_error *err)
{
    nori__pb_model *pb;
    nori__pb_report report = {0};
    nori__text bytes;
    NORI__TRY(nori__pb_read_model(arena, file->data, file->size, &pb, &report, err));
    size_t at = 0;
    for (size_t i = 0; i < pb->graph->inputs.count; i++) {
        nori__pb_type *type = pb->graph->inputs.items[i].type;
        const nori_tensor *t = at < n ? in[at] : NULL;
        at++;
        if (!type || type->kind != NORI_KIND_TENSOR || !t || !type->shape ||
            (int)type->shape->dims.count != t->rank) {
            continue;
        }
        for (int d = 0; d < t->rank; d++) {
            type->shape->dims.items[d] =
                (nori__pb_dim){.has_value = true, .value = t->dims[d]};
        }
    }
    forget_shapes(pb->graph, false, 0);
    nori__text_init(&bytes, &nori__malloc);
    nori_status s = nori__pb_write_model(pb, &bytes, err);
    char *kept = s == NORI_OK ? nori__arena_copy(arena, bytes.data, bytes.size) : NULL;
    size_t size = bytes.size;
    nori__text_free(&bytes);
    return s != NORI_OK ? s : nori_model_load_memory(NULL, kept, size, NULL, NULL, model, err);
}

static nori_status run_on(const nori_model *model, const char *provider, nori_tensor *const *in,
                          size_t n_in, nori_session **session, nori_tensor **out, nori_error *err)
{
    nori_session_options options;
    nori_session_options_default(&options);
    options.providers = provider;
    NORI__TRY(nori_session_create(model, &options, session, err));
    size_t n_out = nori_session_output_count(*session);
    return n_out > CASE_VALUES ? NORI_ERROR_LIMIT
                               : nori_session_run(*session, (const nori_tensor *const *)in, n_in,
                                                  out, n_out, err);
}

static void check_outputs(tally *t, const variant *v, const char *name, const nori_session *s,
                          nori_tensor *const *reference, nori_tensor *const *cpu)
{
    double atol, rtol;
    case_tolerance(name, &atol, &rtol);
    for (size_t i = 0; i < nori_session_output_count(s); i++) {
        const nori_value_info *info = nori_session_output(s, i);
        const nori_tensor *got = reference[i];
        nori_difference d = {.size = sizeof(d)};
        bool fits = info->rank < 0 || got->kind != NORI_KIND_TENSOR || info->rank == got->rank;
        for (int k = 0; fits && k < info->rank && got->kind == NORI_KIND_TENSOR; k++) {
            fits = info->dims[k] < 0 || info->dims[k] == got->dims[k];
        }
        if (!fits) {
            complain(t, "differs", v, "output %zu has another shape than inference says", i);
        }
        nori_tensor_compare(cpu[i], got, atol > 1e-6 ? atol : 1e-6, rtol, &d);
        if (!case_is_random(name) && !d.passes) {
            complain(t, "differs", v, "output %zu: cpu %.9g, reference %.9g %s", i, d.worst_got,
                     d.worst_want, d.reason);
        }
    }
}

static void shape_text(const nori_tensor *t, char *out, size_t size)
{
    int n = snprintf(out, size, "[");
    for (int d = 0; d < t->rank && n > 0 && (size_t)n < size; d++) {
        n += snprintf(out + n, size - (size_t)n, "%s%lld", d ? "," : "", (long long)t->dims[d]);
    }
    if (n > 0 && (size_t)n < size) {
        snprintf(out + n, size - (size_t)n, "]");
    }
}

static const char *judge; /* or NULL */

/* What another implementation makes of it: the shapes must be the same. What it refuses says nothing; what
 * only it takes is told, since a size of 0 is legal wherever nothing speaks against it. */
static void ask_judge(tally *t, const variant *v, const nori_model *model, nori_tensor *const *in, size_t n,
                    nori_tensor *const *reference, const nori_error *refused)
{
    nori_tensor *out[CASE_VALUES] = {NULL};
    nori_session *session = NULL;
    nori_error err = {0};
    if (run_on(model, judge, in, n, &session, out, &err) == NORI_OK) {
        t->judged++;
        if (refused) {
            complain(t, "differs", v, "only %s takes it: %s", judge, refused->message);
        }
        for (size_t i = 0; !refused && i < nori_session_output_count(session); i++) {
            bool tensors = reference[i]->kind == NORI_KIND_TENSOR && out[i]->kind == NORI_KIND_TENSOR;
            if (tensors && !same_dims(reference[i], out[i])) {
                char ours[200], theirs[200];
                shape_text(reference[i], ours, sizeof(ours));
                shape_text(out[i], theirs, sizeof(theirs));
                complain(t, "differs", v, "output %zu is %s, by %s %s", i, ours, judge, theirs);
            }
        }
    }
    for (size_t i = 0; i < CASE_VALUES; i++) {
        nori_tensor_free(out[i]);
    }
    nori_session_free(session);
}

static void run_variant(tally *t, const nori__map_file *file, const char *name,
                        nori_tensor *const *from, size_t n, const variant *v)
{
    static nori_tensor *in[CASE_VALUES], *out[2][CASE_VALUES];
    static const char *const providers[] = {"reference", "cpu"};
    nori_session *sessions[2] = {NULL, NULL};
    nori_status status[2] = {NORI_OK, NORI_OK};
    nori_error err[2] = {{0}, {0}};
    nori_model *model = NULL;
    nori__arena arena;
    nori__arena_init(&arena, &nori__malloc);
    if (!make_inputs(from, n, v, in)) {
        complain(t, "failed", v, "out of memory");
    } else {
        t->tried++;
        status[0] = status[1] = edited_model(file, in, n, &arena, &model, &err[0]);
    }
    for (int p = 0; model && p < 2; p++) {
        status[p] = run_on(model, providers[p], in, n, &sessions[p], out[p], &err[p]);
        if (status[p] == NORI_ERROR_INTERNAL || status[p] == NORI_ERROR_MEMORY) {
            complain(t, "failed", v, "%s: %s: %s", providers[p], nori_status_text(status[p]),
                     err[p].message);
        }
    }
    if ((status[0] == NORI_OK) != (status[1] == NORI_OK)) {
        int p = status[0] == NORI_OK;
        complain(t, "differs", v, "only %s refuses it: %s", providers[p], err[p].message);
    } else if (model && status[0] == NORI_OK) {
        t->ran++;
        check_outputs(t, v, name, sessions[0], out[0], out[1]);
    }
    if (model && judge) {
        ask_judge(t, v, model, in, n, out[0], status[0] == NORI_OK ? NULL : &err[0]);
    }
    for (size_t i = 0; i < CASE_VALUES; i++) {
        nori_tensor_free(in[i]);
        nori_tensor_free(out[0][i]);
        nori_tensor_free(out[1][i]);
        in[i] = out[0][i] = out[1][i] = NULL;
    }
    nori_session_free(sessions[0]);
    nori_session_free(sessions[1]);
    nori_model_free(model);
    nori__arena_free(&arena);
}

static void run_case(const char *folder)
{
    static nori_tensor *in[CASE_VALUES];
    char path[5000];
    tally t = {.word = "ok"};
    const char *name = strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder;
    nori_error err = {0};
    nori_model *model = NULL;
    nori__map_file file = {NULL, 0};
    snprintf(path, sizeof(path), "%s/model.onnx", folder);
    nori_status s = nori_model_load(NULL, path, NULL, &model, &err);
    if (s == NORI_OK) {
        s = nori__map_open(path, &file, &err);
    }
    size_t n = s == NORI_OK ? nori_model_input_count(model) : 0;
    n = n < CASE_VALUES ? n : CASE_VALUES;
    for (size_t i = 0; s == NORI_OK && i < n; i++) {
        bool retyped;
        char set[4200];
        snprintf(set, sizeof(set), "%.4100s/test_data_set_0", folder);
        s = case_read(NULL, set, "input", i, nori_model_input(model, i), &in[i], &retyped, &err);
    }
    if (s != NORI_OK) {
        t.word = "failed";
        snprintf(t.text, sizeof(t.text), "%.900s", err.message);
    }
    for (uint32_t i = 0; s == NORI_OK && i < n; i++) {
        for (int d = 0; in[i] && in[i]->kind == NORI_KIND_TENSOR && d < in[i]->rank; d++) {
            run_variant(&t, &file, name, in, n, &(variant){i, d, false});
            run_variant(&t, &file, name, in, n, &(variant){i, d, true});
        }
    }
    if (nori__same(t.word, "ok")) {
        snprintf(t.text, sizeof(t.text), "%s%u of %u ran", t.judged ? "judged too; " : "", t.ran, t.tried);
    }
    for (size_t i = 0; i < n; i++) {
        nori_tensor_free(in[i]);
        in[i] = NULL;
    }
    nori__map_close(&file);
    nori_model_free(model);
    for (char *p = t.text; *p; p++) {
        *p = *p == '\n' || *p == '\t' ? ' ' : *p;
    }
    printf("%s\t%s\t-\t%s\n", t.word, folder, t.text);
    fflush(stdout);
}

int main(void)
{
    char line[4096];
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = 0;
        /* In a process of its own where the judge is one that may crash: then without it. */
        judge = getenv("NORI_EMPTY_JUDGE");
        pid_t child = line[0] && judge ? fork() : -1;
        int status = 1;
        if (child == 0) {
            run_case(line);
            _exit(0);
        }
        if (line[0] && (child < 0 || waitpid(child, &status, 0) != child || status != 0)) {
            judge = NULL;
            run_case(line);
        }
    }
    return 0;
}

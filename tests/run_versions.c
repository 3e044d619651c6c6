/* run_versions.c: runs test cases of one node at every version of their operator. Most versions only
 * widen a list of types, so a case made for one is good for the others: its model is given the operator
 * set in which each of them came, and where it is valid there, the stored results must come out too.
 * Operators that changed their meaning are listed, with the version up to which they did; old forms
 * have tests of their own (test_old_forms.c). Folders come on standard input, one a line:
 *
 *     op <tab> DOMAIN <tab> OPERATOR <tab> VERSION        for every version that ran and agrees
 *     VERDICT <tab> FOLDER <tab> - <tab> TEXT             ok, differs, failed */
#include <stdio.h>

#include "case_data.h"
#include "ops/schema.h"
#include "platform/platform.h"

/* Below `version` the operator means something else than from there on. */
static const struct {
    const char *op;
    int version;
} changed[] = {
    {"Softmax", 13}, {"LogSoftmax", 13}, {"Hardmax", 13}, {"GroupNormalization", 21},
    {"PRelu", 7}, /* a slope of one axis lies along the channels, later along the last axis */
};

static bool same_meaning(const char *op, int a, int b)
{
    for (size_t i = 0; i < NORI__COUNT(changed); i++) {
        int v = changed[i].version;
        if (nori__same(changed[i].op, op) && (a < v) != (b < v)) {
            return false;
        }
    }
    return true;
}

/* The model with another operator set, which must be valid there. */
static nori_model *restamped(const nori__map_file *file, const char *domain, int64_t version,
                             nori__arena *arena)
{
    nori__pb_model *pb;
    nori__pb_report report = {0};
    nori__text bytes;
    nori_model *model = NULL;
    nori_findings *findings = NULL;
    if (nori__pb_read_model(arena, file->data, file->size, &pb, &report, NULL) != NORI_OK) {
        return NULL;
    }
    for (size_t i = 0; i < pb->opsets.count; i++) {
        if (nori__str_is(pb->opsets.items[i].domain, domain)) {
            pb->opsets.items[i].version = version;
        }
    }
    nori__text_init(&bytes, &nori__malloc);
    char *kept = nori__pb_write_model(pb, &bytes, NULL) == NORI_OK
                     ? nori__arena_copy(arena, bytes.data, bytes.size)
                     : NULL;
    if (kept) {
        nori_model_load_memory(NULL, kept, bytes.size, NULL, NULL, &model, NULL);
    }
    nori__text_free(&bytes);
    bool valid = model && nori_check(model, NULL, &findings, NULL) == NORI_OK &&
                 nori_findings_at_least(findings, NORI_SEVERITY_ERROR) == 0;
    nori_findings_free(findings);
    if (!valid) {
        nori_model_free(model);
        return NULL;
    }
    return model;
}

typedef struct stored {
    nori_tensor *in[CASE_VALUES], *out[CASE_VALUES], *want[CASE_VALUES];
} stored;

static void clear(nori_tensor **list)
{
    for (size_t i = 0; i < CASE_VALUES; i++) {
        nori_tensor_free(list[i]);
        list[i] = NULL;
    }
}

/* What differs, or "" when nothing does. */
static void run_model(const nori_model *model, const char *name, const char *provider, stored *v,
                      char *why, size_t size)
{
    double atol, rtol;
    nori_session *s = NULL;
    nori_session_options options;
    nori_error err = {0};
    case_tolerance(name, &atol, &rtol);
    nori_session_options_default(&options);
    options.providers = provider;
    nori_status status = nori_session_create(model, &options, &s, &err);
    size_t n_in = s ? nori_session_input_count(s) : 0, n_out = s ? nori_session_output_count(s) : 0;
    if (status == NORI_OK && (n_in > CASE_VALUES || n_out > CASE_VALUES)) {
        status = NORI_ERROR_LIMIT;
    }
    if (status == NORI_OK) {
        status = nori_session_run(s, (const nori_tensor *const *)v->in, n_in, v->out, n_out, &err);
    }
    if (status != NORI_OK) {
        snprintf(why, size, "%s: %.400s", provider, err.message);
    }
    for (size_t i = 0; status == NORI_OK && i < n_out; i++) {
        nori_difference d = {.size = sizeof(d)};
        nori_tensor_compare(v->out[i], v->want[i], atol, rtol, &d);
        if (!d.passes) {
            snprintf(why, size, "%s: output %zu is %.9g for %.9g %s", provider, i, d.worst_got,
                     d.worst_want, d.reason);
            break;
        }
    }
    clear(v->out);
    nori_session_free(s);
}

/* cut: the stored results are bfloat16 of another rounding (run_cases.c). */
static nori_status read_case(const char *folder, const nori_model *model, stored *v, bool *cut,
                             nori_error *err)
{
    char set[4300];
    bool retyped;
    *cut = false;
    snprintf(set, sizeof(set), "%.4100s/test_data_set_0", folder);
    size_t n_in = nori_model_input_count(model), n_out = nori_model_output_count(model);
    for (size_t i = 0; i < n_in && i < CASE_VALUES; i++) {
        NORI__TRY(case_read(NULL, set, "input", i, nori_model_input(model, i), &v->in[i], &retyped,
                            err));
    }
    for (size_t i = 0; i < n_out && i < CASE_VALUES; i++) {
        NORI__TRY(case_read(NULL, set, "output", i, nori_model_output(model, i), &v->want[i],
                            &retyped, err));
        *cut = *cut || retyped;
        if (!v->want[i]) {
            return nori__fail(err, NORI_ERROR_IO, "output_%zu is missing", i);
        }
    }
    return NORI_OK;
}

static void run_versions(const char *name, const nori__map_file *file, const nori_node *node,
                         stored *v, char *text, size_t size)
{
    const char *op = nori_node_op(node), *domain = nori_node_domain(node);
    int own = nori_node_version(node);
    const nori__schema *s;
    for (size_t i = 0; (s = nori__schema_at(i)) != NULL; i++) {
        char why[600] = "";
        if (!nori__same(s->domain, domain) || !nori__same(s->name, op) ||
            !same_meaning(op, own, s->since)) {
            continue;
        }
        nori__arena arena;
        nori__arena_init(&arena, &nori__malloc);
        nori_model *model = restamped(file, domain, s->since, &arena);
        if (model) {
            run_model(model, name, "reference", v, why, sizeof(why));
            if (!why[0]) {
                run_model(model, name, "cpu", v, why, sizeof(why));
            }
            if (!why[0]) {
                printf("op\t%s\t%s\t%d\n", domain, op, s->since);
            } else if (!text[0]) {
                snprintf(text, size, "%s %d: %s", op, s->since, why);
            }
        }
        nori_model_free(model);
        nori__arena_free(&arena);
    }
}

static void run_case(const char *folder)
{
    static stored v;
    char path[5000], text[800] = "";
    const char *name = strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder;
    bool cut = false;
    nori_error err = {0};
    nori_model *model = NULL;
    nori__map_file file = {NULL, 0};
    snprintf(path, sizeof(path), "%s/model.onnx", folder);
    nori_status s = nori_model_load(NULL, path, NULL, &model, &err);
    bool one = s == NORI_OK && nori_graph_node_count(nori_model_graph(model)) == 1 &&
               !case_is_random(name) && !case_excuse(name, nori_model_graph(model));
    if (one) {
        s = nori__map_open(path, &file, &err);
        if (s == NORI_OK) {
            s = read_case(folder, model, &v, &cut, &err);
        }
        if (s == NORI_OK && !cut) {
            run_versions(name, &file, nori_graph_first(nori_model_graph(model)), &v, text,
                         sizeof(text));
        }
    }
    for (char *p = text; *p; p++) {
        *p = *p == '\n' || *p == '\t' ? ' ' : *p;
    }
    printf("%s\t%s\t-\t%s\n", s != NORI_OK ? "failed" : text[0] ? "differs" : "ok", folder,
           s != NORI_OK ? err.message : text);
    fflush(stdout);
    clear(v.in);
    clear(v.want);
    nori__map_close(&file);
    nori_model_free(model);
}

int main(void)
{
    char line[4096];
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0]) {
            run_case(line);
        }
    }
    return 0;
}

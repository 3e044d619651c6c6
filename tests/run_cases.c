/* run_cases.c: runs folders of test cases, many in one process, for tests/run_cases.py.
 *
 *     run_cases [--provider NAME] [--threads 1,2,5] [--operators] <list
 *
 * list: a folder a line. Each runs on the provider at every number of threads; the results must
 * agree with the stored ones, and the bits must be the same for every number. One line a case:
 *
 *     VERDICT <tab> FOLDER <tab> OPSET <tab> TEXT
 *
 * VERDICT: ok; random (what chance decides: shape, type, range and statistics are right); excused
 * (the case itself is wrong, TEXT says how); differs; unstable (bits change with the threads);
 * refused (not supported, and said so); failed. With --operators lines "op DOMAIN NAME VERSION"
 * come before it: what the model's nodes are. */
#include <glob.h>
#include <stdio.h>

#include "case_data.h"

enum { MOST_THREADS = 8 };

typedef struct setting {
    const char *provider;
    int counts[MOST_THREADS], n_counts;
    nori_env *envs[MOST_THREADS];
    bool operators;
} setting;

typedef struct verdict {
    const char *word;
    char text[1024];
} verdict;

/* One data set at one number of threads. */
typedef struct values {
    nori_tensor *in[CASE_VALUES], *out[CASE_VALUES], *want[CASE_VALUES];
    bool retyped; /* the last of want was stored as uint16 */
} values;

static void free_values(values *v)
{
    for (size_t i = 0; i < CASE_VALUES; i++) {
        nori_tensor_free(v->in[i]);
        nori_tensor_free(v->out[i]);
        nori_tensor_free(v->want[i]);
    }
    memset(v, 0, sizeof(*v));
}

static void judge(verdict *v, const char *word, const char *fmt, ...) NORI__PRINTF(3, 4);
static void judge(verdict *v, const char *word, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    v->word = word;
    vsnprintf(v->text, sizeof(v->text), fmt, args);
    va_end(args);
}

static void judge_error(verdict *v, nori_status status, const nori_error *err)
{
    bool refused = status == NORI_ERROR_UNSUPPORTED || status == NORI_ERROR_UNAVAILABLE;
    judge(v, refused ? "refused" : "failed", "%s %s", err->message, err->where);
}

static bool passes(const verdict *v)
{
    return nori__same(v->word, "ok") || nori__same(v->word, "random") ||
           nori__same(v->word, "excused");
}

/* Outputs against the stored ones. */
static void compare(const char *name, const nori_session *s, values *v, verdict *said)
{
    double atol, rtol;
    char why[256] = "";
    size_t n = nori_session_output_count(s);
    bool random = case_is_random(name);
    case_tolerance(name, &atol, &rtol);
    for (size_t i = 0; i < n; i++) {
        nori_difference d = {.size = sizeof(d)};
        if (!v->want[i]) {
            judge(said, "failed", "output_%zu is missing", i);
            return;
        }
        double loose = random ? INFINITY : atol;
        nori_tensor_compare(v->out[i], v->want[i], loose, rtol, &d);
        if (!d.passes && !d.reason[0] && v->retyped &&
            case_cut_off(v->out[i], v->want[i])) {
            judge(said, "excused", "its bfloat16 are cut off from floats, not rounded");
            return;
        }
        if (!d.passes) {
            judge(said, "differs", "%s: %llu of %llu, worst %.9g for %.9g %s",
                  nori_session_output(s, i)->name, (unsigned long long)d.beyond,
                  (unsigned long long)d.elements, d.worst_got, d.worst_want, d.reason);
            return;
        }
    }
    if (random) {
        bool right = case_random(name, v->in, v->out, n, why, sizeof(why));
        judge(said, right ? "random" : "differs", "%s", why);
    }
}

static nori_status run_set(nori_session *s, const char *folder, nori_env *env, values *v,
                           nori_error *err)
{
    size_t n_in = nori_session_input_count(s), n_out = nori_session_output_count(s);
    if (n_in > CASE_VALUES || n_out > CASE_VALUES) {
        return nori__fail(err, NORI_ERROR_LIMIT, "more than %d values", CASE_VALUES);
    }
    for (size_t i = 0; i < n_in; i++) {
        NORI__TRY(case_read(env, folder, "input", i, nori_session_input(s, i), &v->in[i],
                            &v->retyped, err));
    }
    for (size_t i = 0; i < n_out; i++) {
        NORI__TRY(case_read(env, folder, "output", i, nori_session_output(s, i), &v->want[i],
                            &v->retyped, err));
    }
    return nori_session_run(s, (const nori_tensor *const *)v->in, n_in, v->out, n_out, err);
}

/* All data sets of the case on one session; bits are compared with those of first (by set). */
static void run_sets(const char *folder, const char *name, nori_session *s, nori_env *env,
                     int threads, values *first, verdict *said)
{
    static values now;
    char pattern[5000];
    glob_t found;
    snprintf(pattern, sizeof(pattern), "%s/test_data_set_*", folder);
    if (glob(pattern, 0, NULL, &found) != 0) {
        judge(said, "failed", "there is no test_data_set_0");
        return;
    }
    for (size_t set = 0; set < found.gl_pathc && passes(said); set++) {
        nori_error err = {0};
        nori_status status = run_set(s, found.gl_pathv[set], env, &now, &err);
        if (status != NORI_OK) {
            judge_error(said, status, &err);
        } else {
            compare(name, s, &now, said);
        }
        for (size_t i = 0; set == 0 && status == NORI_OK && i < CASE_VALUES; i++) {
            if (!first->out[i]) {
                first->out[i] = nori_tensor_retain(now.out[i]);
            } else if (!case_is_random(name) && !case_same_bits(first->out[i], now.out[i])) {
                judge(said, "unstable", "output %zu has other bits at %d threads", i, threads);
            }
        }
        free_values(&now);
    }
    globfree(&found);
}

static void list_operators(const nori_graph *g, int depth)
{
    for (const nori_node *n = nori_graph_first(g); n; n = nori_node_next(n)) {
        printf("op\t%s\t%s\t%d\n", nori_node_domain(n), nori_node_op(n), nori_node_version(n));
        const nori_graph *sub;
        for (size_t i = 0; depth < 8 && (sub = nori_node_subgraph(n, i)) != NULL; i++) {
            list_operators(sub, depth + 1);
        }
    }
}

/* "15", or "ai.onnx.ml 3" where the model imports no default domain. */
static void opset_text(const nori_model *m, char *out, size_t size)
{
    const char *domain;
    int64_t version;
    snprintf(out, size, "?");
    for (size_t i = 0; nori_model_opset(m, i, &domain, &version); i++) {
        bool main = domain[0] == 0 || nori__same(domain, "ai.onnx");
        if (main || out[0] == '?') {
            snprintf(out, size, "%s%s%lld", main ? "" : domain, main ? "" : " ", (long long)version);
        }
        if (main) {
            return;
        }
    }
}

static void run_case(const setting *set, const char *folder)
{
    static values first;
    char path[5000], opset[64] = "?";
    const char *name = strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder;
    verdict v = {"ok", ""};
    snprintf(path, sizeof(path), "%s/model.onnx", folder);
    for (int t = 0; t < set->n_counts && passes(&v); t++) {
        nori_error err = {0};
        nori_model *model = NULL;
        nori_session *session = NULL;
        nori_session_options options;
        nori_session_options_default(&options);
        options.providers = set->provider;
        v.word = "ok";
        nori_status status = nori_model_load(set->envs[t], path, NULL, &model, &err);
        if (status == NORI_OK && t == 0) {
            opset_text(model, opset, sizeof(opset));
        }
        const char *excuse =
            status == NORI_OK ? case_excuse(name, nori_model_graph(model)) : NULL;
        if (status == NORI_OK && t == 0 && set->operators) {
            list_operators(nori_model_graph(model), 0);
        }
        if (status == NORI_OK) {
            status = nori_session_create(model, &options, &session, &err);
        }
        if (status == NORI_OK) {
            run_sets(folder, name, session, set->envs[t], set->counts[t], &first, &v);
        } else {
            judge_error(&v, status, &err);
        }
        if (excuse && nori__same(v.word, "differs")) {
            judge(&v, "excused", "%s", excuse);
        }
        nori_session_free(session);
        nori_model_free(model);
    }
    free_values(&first);
    for (char *p = v.text; *p; p++) {
        *p = *p == '\n' || *p == '\t' ? ' ' : *p;
    }
    printf("%s\t%s\t%s\t%s\n", v.word, folder, opset, v.text);
    fflush(stdout);
}

static bool parse(int argc, char **argv, setting *set)
{
    const char *threads = "1";
    set->provider = "reference";
    for (int i = 1; i < argc; i++) {
        if (nori__same(argv[i], "--provider") && i + 1 < argc) {
            set->provider = argv[++i];
        } else if (nori__same(argv[i], "--threads") && i + 1 < argc) {
            threads = argv[++i];
        } else if (nori__same(argv[i], "--operators")) {
            set->operators = true;
        } else {
            fprintf(stderr, "run_cases: \"%s\" is not an option\n", argv[i]);
            return false;
        }
    }
    for (char *end = NULL; *threads && set->n_counts < MOST_THREADS; threads = end) {
        nori_env_options options;
        nori_error err = {0};
        nori_env_options_default(&options);
        options.threads = (int)strtol(threads, &end, 10);
        if (end == threads || options.threads < 1 ||
            nori_env_create(&options, &set->envs[set->n_counts], &err) != NORI_OK) {
            fprintf(stderr, "run_cases: --threads %s %s\n", threads, err.message);
            return false;
        }
        set->counts[set->n_counts++] = options.threads;
        end += *end == ',';
    }
    return true;
}

int main(int argc, char **argv)
{
    static setting set;
    char line[4096];
    if (!parse(argc, argv, &set)) {
        return 2;
    }
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0]) {
            run_case(&set, line);
        }
    }
    for (int t = 0; t < set.n_counts; t++) {
        nori_env_free(set.envs[t]);
    }
    return 0;
}

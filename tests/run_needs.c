/* run_needs.c: creates sessions of models at each optimization level and compares the operators they made
 * with what nori/needs.h names: a reduced build holds no others. Arguments are models; without any, models or
 * folders that hold a model.onnx come on standard input, one a line. One line a model goes out, as
 * run_cases has it:
 *
 *     VERDICT <tab> PATH <tab> - <tab> TEXT
 *
 * Models that cannot be loaded or run are none of this test's business. */
#include "needs_check.h"

static const char *check(const nori_model *model, char *text, size_t size)
{
    nori_needs *needs = NULL;
    nori_error err = {0};
    nori_need n = {.size = sizeof(n)};
    size_t count = 0, sessions = 0;
    const char *verdict = "ok";
    if (nori_needs_find(&model, 1, &needs, &err) != NORI_OK) {
        snprintf(text, size, "%.400s", err.message);
    }
    while (needs && nori_needs_at(needs, count, &n)) {
        count++;
    }
    for (int level = 0; level <= 2; level++) {
        nori_session_options o;
        nori_session *session = NULL;
        nori_session_options_default(&o);
        o.level = level;
        if (nori_session_create(model, &o, &session, NULL) != NORI_OK) {
            continue;
        }
        sessions++;
        const char *lack = needs ? needs_lack(needs, session) : "all of them";
        if (lack && nori__same(verdict, "ok")) {
            verdict = "differs";
            snprintf(text, size, "level %d: %s is not among what it needs", level, lack);
        }
        nori_session_free(session);
    }
    if (nori__same(verdict, "ok")) {
        snprintf(text, size, "%zu operators, %zu sessions", count, sessions);
    }
    nori_needs_free(needs);
    return verdict;
}

/* False: it has operators that nobody named. */
static bool run(const char *path)
{
    char file[4200], text[600] = "";
    const char *verdict = "ok";
    nori_model *model = NULL;
    nori_error err = {0};
    size_t length = strlen(path);
    bool is_file = length > 5 && nori__same(path + length - 5, ".onnx");
    snprintf(file, sizeof(file), "%s%s", path, is_file ? "" : "/model.onnx");
    if (nori_model_load(NULL, file, NULL, &model, &err) == NORI_OK) {
        verdict = check(model, text, sizeof(text));
    } else {
        snprintf(text, sizeof(text), "not loaded: %.400s", err.message);
    }
    nori_model_free(model);
    for (char *p = text; *p; p++) {
        *p = *p == '\n' || *p == '\t' ? ' ' : *p;
    }
    printf("%s\t%s\t-\t%s\n", verdict, path, text);
    fflush(stdout);
    return nori__same(verdict, "ok");
}

int main(int argc, char **argv)
{
    char line[4096];
    bool all = true;
    for (int i = 1; i < argc; i++) {
        all = run(argv[i]) && all;
    }
    while (argc < 2 && fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = 0;
        all = (!line[0] || run(line)) && all;
    }
    return all ? 0 : 1;
}

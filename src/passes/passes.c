/* passes.c: the loop that runs the standard rewrites. */
#include "passes/passes.h"

#define MAX_ROUNDS 4

bool nori__pass_listed(const char *only, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = only; p; p = strchr(p, ','), p = p ? p + 1 : NULL) {
        if (strncmp(p, name, n) == 0 && (p[n] == 0 || p[n] == ',')) {
            return true;
        }
    }
    return !only;
}

static nori_status check_names(const char *only, nori_error *err)
{
    for (const char *p = only && *only ? only : NULL; p; p = strchr(p, ','), p = p ? p + 1 : NULL) {
        bool found = memchr(p, '/', strcspn(p, ",")) != NULL; /* a provider's: its session looks */
        for (size_t i = 0; nori__pass_at(i); i++) {
            size_t n = strlen(nori__pass_at(i)->name);
            found = found || (strcspn(p, ",") == n && memcmp(p, nori__pass_at(i)->name, n) == 0);
        }
        if (!found) {
            return nori__fail(err, NORI_ERROR_ARGUMENT, "there is no rewrite \"%.*s\"",
                              (int)strcspn(p, ","), p);
        }
    }
    return NORI_OK;
}

static nori_status run(nori__ir *ir, int level, const char *only, nori__pass_check check, void *user,
                       nori_error *err)
{
    NORI__TRY(nori__infer_edited(ir, err));
    bool changed = level > 0;
    for (int round = 0; changed && round < MAX_ROUNDS; round++) {
        changed = false;
        for (size_t i = 0; nori__pass_at(i); i++) {
            const nori__pass *pass = nori__pass_at(i);
            if (pass->level > level || !nori__pass_listed(only, pass->name)) {
                continue;
            }
            nori_status s = pass->run(ir, &changed, err);
            s = s == NORI_OK && check ? check(user, pass, ir, err) : s;
            if (s != NORI_OK) {
                nori__where(err, "pass %s", pass->name);
                return s;
            }
        }
        if (changed) {
            NORI__TRY(nori__infer_graph(ir, err));
        }
    }
    return NORI_OK;
}

nori_status nori__passes_run_checked(nori__ir *ir, int level, nori__pass_check check, void *user,
                                     nori_error *err)
{
    return run(ir, level, NULL, check, user, err);
}

#ifndef NDEBUG
static nori_status verify(void *user, const nori__pass *pass, nori__ir *ir, nori_error *err)
{
    (void)user;
    (void)pass;
    return nori__ir_verify(ir, err);
}
#else
#define verify NULL
#endif

nori_status nori__passes_run(nori__ir *ir, int level, nori_error *err)
{
    return run(ir, level, NULL, verify, NULL, err);
}

nori_status nori__passes_run_only(nori__ir *ir, int level, const char *only, nori_error *err)
{
    NORI__TRY(check_names(only, err));
    return run(ir, level, only, verify, NULL, err);
}

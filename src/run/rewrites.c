/* rewrites.c: what a session's providers do to the compiled copy for themselves, at level 2. */
#include <stdio.h>

#include "passes/passes.h"
#include "run/run.h"

static bool is_named(const char *name, size_t n, const nori__builtin *b, const nori__rewrite *r,
                     char *full, size_t size)
{
    snprintf(full, size, "%s/%s", b->provider->name, r->name);
    return strlen(full) == n && memcmp(full, name, n) == 0;
}

/* A list that names rewrites of providers limits them to those; one that does not is about standard ones
 * alone. */
static bool wanted(const char *only, const char *full)
{
    return !only || !strchr(only, '/') || nori__pass_listed(only, full);
}

/* Names of providers' rewrites in a list must be of providers that the session has. */
static nori_status check_names(const nori_session *s, const char *only, nori_error *err)
{
    char full[128];
    for (const char *p = only, *next; p; p = next) {
        size_t n = strcspn(p, ",");
        next = p[n] ? p + n + 1 : NULL;
        bool found = !memchr(p, '/', n); /* a standard one */
        for (size_t i = 0; i < s->n_providers && !found; i++) {
            const nori__builtin *b = s->providers[i].builtin;
            for (const nori__rewrite *r = b ? b->rewrites : NULL; r && r->name && !found; r++) {
                found = is_named(p, n, b, r, full, sizeof(full));
            }
        }
        if (!found) {
            return nori__fail(err, NORI_ERROR_ARGUMENT, "no provider of the session has a rewrite \"%.*s\"",
                              (int)n, p);
        }
    }
    return NORI_OK;
}

nori_status nori__rewrite_for_providers(nori_session *s, const nori_session_options *o,
                                        nori_error *err)
{
    NORI__TRY(check_names(s, o->passes, err));
    for (size_t i = 0; o->level >= 2 && i < s->n_providers; i++) {
        const nori__builtin *b = s->providers[i].builtin;
        for (const nori__rewrite *r = b ? b->rewrites : NULL; r && r->name; r++) {
            char full[128];
            snprintf(full, sizeof(full), "%s/%s", b->provider->name, r->name);
            if (wanted(o->passes, full)) {
                NORI__TRY(r->infer ? nori__infer_edited(s->ir, err) : NORI_OK);
                NORI__TRY(r->run(s->ir, err));
            }
        }
        NORI__TRY(nori__infer_edited(s->ir, err));
    }
    return NORI_OK;
}

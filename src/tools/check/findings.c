/* findings.c: the list a check fills. */
#include <stdio.h>

#include "tools/check/check_internal.h"
#include "base/given.h"

typedef struct entry {
    int severity;
    const char *rule, *path, *message, *hint;
    size_t count;
} entry;

nori_findings *nori__findings_open(const nori_allocator *a, bool strict)
{
    nori_findings *f = nori__alloc_zero(a, sizeof(*f));
    if (!f) {
        return NULL;
    }
    f->allocator = a;
    f->strict = strict;
    nori__arena_init(&f->arena, a);
    nori__map_init(&f->seen, a);
    nori__vec_init(&f->entries, a);
    return f;
}

void nori_findings_free(nori_findings *f)
{
    if (f) {
        nori__vec_free(&f->entries);
        nori__map_free(&f->seen);
        nori__arena_free(&f->arena);
        nori__release(f->allocator, f, sizeof(*f));
    }
}

static void add(nori_findings *f, int severity, const char *rule, const char *path,
                const char *hint, const char *message)
{
    f->said++;
    f->faulty |= severity == NORI_SEVERITY_ERROR && !nori__same(rule, "target");
    if (f->strict && severity == NORI_SEVERITY_WARNING) {
        severity = NORI_SEVERITY_ERROR;
    }
    char *key = nori__arena_printf(&f->arena, "%d %s %s", severity, rule, message);
    entry *e = key ? nori__map_get(&f->seen, key) : NULL;
    if (e) {
        e->count++;
        return;
    }
    e = key ? nori__arena_alloc(&f->arena, sizeof(*e)) : NULL;
    char *where = nori__arena_text(&f->arena, path ? path : "");
    char *advice = nori__arena_text(&f->arena, hint ? hint : "");
    if (!e || !where || !advice) {
        f->failed = true;
        return;
    }
    /* The message is the tail of the key: past the digit, the rule and two spaces. */
    *e = (entry){.severity = severity,
                 .rule = rule,
                 .path = where,
                 .message = key + strlen(rule) + 3,
                 .hint = advice,
                 .count = 1};
    if (!nori__map_put(&f->seen, key, e) || !nori__vec_push(&f->entries, e)) {
        f->failed = true;
    }
}

void nori__found(nori_findings *f, nori_severity severity, const char *rule, const char *path,
                 const char *hint, const char *fmt, ...)
{
    char message[2048];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    add(f, severity, rule, path, hint, message);
}

void nori__found_at(nori_findings *f, nori_severity severity, const char *rule,
                    const nori__node *node, const char *hint, const char *fmt, ...)
{
    char message[2048], path[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    nori__node_path(node, path, sizeof(path));
    add(f, severity, rule, path, hint, message);
}

nori_status nori__findings_close(nori_findings *f, nori_error *err)
{
    f->count = 0;
    f->sorted = nori__arena_array(&f->arena, f->entries.count, sizeof(*f->sorted));
    if (!f->sorted) {
        return nori__no_memory(err);
    }
    for (int severity = NORI_SEVERITY_ERROR; severity >= NORI_SEVERITY_INFO; severity--) {
        for (size_t i = 0; i < f->entries.count; i++) {
            const entry *e = f->entries.items[i];
            if (e->severity != severity) {
                continue;
            }
            const char *message = e->message;
            if (e->count > 1) {
                message = nori__arena_printf(&f->arena, "%s (%zu times, the first named here)",
                                             e->message, e->count);
                f->failed |= !message;
            }
            f->sorted[f->count++] = (nori_finding){severity, e->rule, e->path, message, e->hint};
        }
    }
    return f->failed ? nori__no_memory(err) : NORI_OK;
}

size_t nori_findings_count(const nori_findings *f)
{
    NORI__ASKED(f, 0);
    return f->count;
}

size_t nori_findings_at_least(const nori_findings *f, nori_severity severity)
{
    NORI__ASKED(f, 0);
    size_t n = 0;
    while (n < f->count && f->sorted[n].severity >= (int)severity) {
        n++;
    }
    return n;
}

const nori_finding *nori_findings_at(const nori_findings *f, size_t index)
{
    NORI__ASKED(f, NULL);
    return index < f->count ? &f->sorted[index] : NULL;
}

void nori_check_options_default(nori_check_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_check_options){.size = sizeof(*options)};
}

/* check_targets.c: what cannot run, at all or on the targets the caller names, and what runs there
 * on kernels that are not the target's own. */
#include "ops/support.h"
#include "providers/providers.h"
#include "tools/check/check_internal.h"

static const char *rule_of(const nori__gap *gap)
{
    switch (gap->kind) {
    case NORI__GAP_DOMAIN:
    case NORI__GAP_IMPORT:
        return "domain";
    case NORI__GAP_OPSET:
    case NORI__GAP_NEWER:
        return "opset";
    default:
        return "operator";
    }
}

static void report(nori_findings *f, const nori__gap *gap, const char *target)
{
    const char *line = nori__gap_text(&f->arena, gap);
    if (!line) {
        f->failed = true;
        return;
    }
    const char *plural = gap->count == 1 ? "" : "s";
    if (target) {
        nori__found(f, NORI_SEVERITY_ERROR, "target", gap->path, gap->hint,
                    "target %s: %s; %zu node%s", target, line, gap->count, plural);
    } else {
        nori__found(f, NORI_SEVERITY_ERROR, rule_of(gap), gap->path, gap->hint, "%s; %zu node%s",
                    line, gap->count, plural);
    }
}

/* An error when no provider is named so; whether it can be had is asked later. */
static nori_status know_target(nori_findings *f, const char *spec, nori_error *err)
{
    char *name = nori__arena_copy(&f->arena, spec, strcspn(spec, ":"));
    if (!name) {
        return nori__no_memory(err);
    }
    if (strchr(name, '/') || nori__builtin_find(name)) {
        return NORI_OK;
    }
    nori_status s = nori__fail(err, NORI_ERROR_ARGUMENT, "target %s is not known", spec);
    nori__hint(err, "`nori doctor` lists the providers; a shared object is named by a path with a '/'");
    return s;
}

nori_status nori__check_gaps(nori_findings *f, const nori__ir *ir, const char *targets,
                             nori_error *err)
{
    nori__vec gaps;
    nori__vec_init(&gaps, f->allocator);
    nori_status status = nori__gaps_find(ir, NULL, NULL, &f->arena, &gaps, err);
    for (size_t i = 0; i < gaps.count && status == NORI_OK; i++) {
        const nori__gap *gap = gaps.items[i];
        if (gap->kind != NORI__GAP_KERNEL) {
            report(f, gap, NULL);
        }
    }
    char *list = nori__arena_text(&f->arena, targets ? targets : ""), *target;
    status = list ? status : nori__no_memory(err);
    list = list && *list ? list : NULL;
    while (status == NORI_OK && (target = nori__provider_next(&list)) != NULL) {
        const nori__builtin *b = nori__builtin_find(target);
        status = know_target(f, target, err);
        /* cpu takes what it has fast kernels for and leaves the rest to reference. */
        for (size_t i = 0; i < gaps.count && b && !b->provider->claim; i++) {
            report(f, gaps.items[i], target);
        }
    }
    nori__vec_free(&gaps);
    return status;
}

/* Whether a node is work when the model runs: views, shapes and what follows from constants alone
 * are not. */
static bool is_work(const nori__node *n)
{
    bool variable = false;
    if (!n->op || (n->op->flags & (NORI__OP_VIEW | NORI__OP_SHAPE | NORI__OP_CONTROL))) {
        return false;
    }
    for (uint32_t i = 0; i < n->input_count; i++) {
        const nori__value *v = n->inputs[i];
        variable |= v && !nori__value_as_is(v) && v->data_count <= 0;
    }
    return variable;
}

typedef struct fallback {
    const nori__node *first;
    size_t nodes;
} fallback;

static nori_status report_fallback(nori_findings *f, const nori__ir *ir, const nori_provider *p,
                                   nori_error *err)
{
    nori__map seen; /* operator -> fallback */
    nori__vec list;
    nori__map_init(&seen, f->allocator);
    nori__vec_init(&list, f->allocator);
    bool failed = false;
    for (const nori__graph *g = ir->graphs; g && !failed; g = g->next_graph) {
        for (const nori__node *n = g->first; n && !failed; n = n->next) {
            if (!is_work(n) || p->kernel(NULL, n)) {
                continue;
            }
            fallback *b = nori__map_get(&seen, n->op->name);
            if (!b) {
                b = nori__arena_alloc(&f->arena, sizeof(*b));
                failed = !b || !nori__map_put(&seen, n->op->name, b) || !nori__vec_push(&list, b);
            }
            if (b) {
                b->first = b->first ? b->first : n;
                b->nodes++;
            }
        }
    }
    for (size_t i = 0; i < list.count && !failed; i++) {
        const fallback *b = list.items[i];
        nori__found_at(f, NORI_SEVERITY_INFO, "target", b->first, NULL,
                       "target %s: %s runs on the reference kernel, which is slow; %zu node%s",
                       p->name, b->first->op->name, b->nodes, b->nodes == 1 ? "" : "s");
    }
    nori__vec_free(&list);
    nori__map_free(&seen);
    return failed ? nori__no_memory(err) : NORI_OK;
}

nori_status nori__check_fallback(nori_findings *f, const nori__ir *compiled, const char *targets,
                                 nori_error *err)
{
    char *list = nori__arena_text(&f->arena, targets ? targets : ""), *target;
    nori_status status = list ? NORI_OK : nori__no_memory(err);
    list = list && *list ? list : NULL;
    while (status == NORI_OK && (target = nori__provider_next(&list)) != NULL) {
        if (nori__same(target, "cpu")) {
            status = report_fallback(f, compiled, nori__builtin_find("cpu")->provider, err);
        }
    }
    return status;
}

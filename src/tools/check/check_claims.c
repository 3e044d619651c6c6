/* check_claims.c: targets that take sets of nodes (accelerators, other engines): what they would not
 * take of the graph as they are offered it, after the standard rewrites. */
#include "passes/passes.h"
#include "providers/providers.h"
#include "tools/check/check_internal.h"

/* What one operator was refused for. */
typedef struct refusal {
    const nori__node *first;
    const char *reason;
    size_t nodes;
} refusal;

typedef struct asking {
    nori_findings *f;
    const nori__opened *o;
    nori__map seen; /* "operator reason" -> refusal */
    nori__vec list;
    size_t nodes, inner;
} asking;

static nori_status refuse(asking *q, const nori__node *n, const char *reason, nori_error *err)
{
    const char *key = nori__arena_printf(&q->f->arena, "%s\n%s", n->op_type, reason);
    refusal *r = key ? nori__map_get(&q->seen, key) : NULL;
    if (key && !r) {
        r = nori__arena_alloc(&q->f->arena, sizeof(*r));
        if (r) {
            *r = (refusal){n, key + strlen(n->op_type) + 1, 0};
        }
        if (!r || !nori__map_put(&q->seen, key, r) || !nori__vec_push(&q->list, r)) {
            return nori__no_memory(err);
        }
    }
    if (!r) {
        return nori__no_memory(err);
    }
    r->nodes++;
    return NORI_OK;
}

static nori_status ask_node(asking *q, const nori__node *n, nori_error *err)
{
    nori_claim claim = {.size = sizeof(claim)};
    NORI__TRY(q->o->provider->claim(q->o->self, n, &claim, err));
    claim.reason[sizeof(claim.reason) - 1] = 0;
    q->nodes++;
    return claim.taken ? NORI_OK
                       : refuse(q, n, claim.reason[0] ? claim.reason : "not taken", err);
}

static nori_status ask(asking *q, const nori__ir *ir, nori_error *err)
{
    for (const nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (const nori__node *n = g->first; n; n = n->next) {
            if (g != ir->main) {
                q->inner++;
            } else {
                NORI__TRY(ask_node(q, n, err));
            }
        }
    }
    return NORI_OK;
}

static void report(asking *q)
{
    const char *label = q->o->label;
    size_t refused = 0;
    for (size_t i = 0; i < q->list.count; i++) {
        const refusal *r = q->list.items[i];
        refused += r->nodes;
        nori__found_at(q->f, NORI_SEVERITY_ERROR, "target", r->first, NULL,
                       "target %s: %s is not taken: %s; %zu node%s", label, r->first->op_type,
                       r->reason, r->nodes, r->nodes == 1 ? "" : "s");
    }
    if (q->inner > 0) {
        nori__found(q->f, NORI_SEVERITY_WARNING, "target", "", "nori's own kernels run them",
                    "target %s: %zu node%s of subgraphs are not offered to it", label, q->inner,
                    q->inner == 1 ? "" : "s");
    }
    nori__found(q->f, NORI_SEVERITY_INFO, "target", "",
                "`nori inspect --providers` shows the split and its costs",
                "target %s: %zu of %zu nodes are taken, after the standard rewrites", label,
                q->nodes - refused, q->nodes);
}

static nori_status ask_target(nori_findings *f, const nori__ir *ir, const char *spec,
                              nori_error *err)
{
    nori__opened o;
    const nori_provider_open how = {.threads = 1, .level = 2};
    NORI__TRY(nori__provider_open(spec, &how, &f->arena, &o, err));
    asking q = {.f = f, .o = &o};
    nori__map_init(&q.seen, f->allocator);
    nori__vec_init(&q.list, f->allocator);
    nori_status status = NORI_OK;
    if (o.provider->claim) {
        status = ask(&q, ir, err);
        if (status == NORI_OK) {
            report(&q);
        }
    }
    nori__vec_free(&q.list);
    nori__map_free(&q.seen);
    nori__provider_close(&o);
    return status;
}

nori_status nori__check_claims(nori_findings *f, nori__ir *compiled, const char *targets,
                               nori_error *err)
{
    char *list = nori__arena_text(&f->arena, targets ? targets : ""), *spec;
    bool ready = false;
    if (!list) {
        return nori__no_memory(err);
    }
    list = *list ? list : NULL;
    while ((spec = nori__provider_next(&list)) != NULL) {
        const nori__builtin *b = nori__builtin_find(spec);
        if (b && !b->provider->claim) { /* kernels: nori__check_gaps has told */
            continue;
        }
        if (!ready) {
            NORI__TRY(nori__passes_run_only(compiled, 1, NULL, err));
            ready = true;
        }
        NORI__TRY(ask_target(f, compiled, spec, err));
    }
    return NORI_OK;
}

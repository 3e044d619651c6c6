/* prune_report.c: what pruning took from each node. */
#include <math.h>

#include "tools/prune/prune.h"
#include "base/given.h"

nori_prune_report *nori__prune_report_new(const nori_allocator *a)
{
    nori_prune_report *r = nori__alloc_zero(a, sizeof(*r));
    if (r) {
        r->allocator = a;
        nori__arena_init(&r->arena, a);
        nori__vec_init(&r->nodes, a);
        r->summary.size = sizeof(r->summary);
        r->summary.output_sqnr = NAN;
    }
    return r;
}

void nori_prune_report_free(nori_prune_report *r)
{
    if (r) {
        nori__vec_free(&r->nodes);
        nori__arena_free(&r->arena);
        nori__release(r->allocator, r, sizeof(*r));
    }
}

void nori__prune_report_node(nori__pruner *p, const nori__node *n, nori_prune_node row,
                             const char *reason)
{
    char path[512];
    nori__arena *arena = &p->report->arena;
    nori_prune_node *e = nori__arena_alloc(arena, sizeof(*e));
    nori__node_path(n, path, sizeof(path));
    row.path = nori__arena_text(arena, path);
    row.op = nori__arena_text(arena, n->op_type);
    row.reason = nori__arena_text(arena, reason ? reason : "");
    if (e && row.path && row.op && row.reason && nori__vec_push(&p->report->nodes, e)) {
        *e = row;
    }
}

int nori_prune_report_node(const nori_prune_report *r, size_t i, nori_prune_node *node)
{
    NORI__ASKED(r, 0);
    NORI__ASKED(node, 0);
    if (i >= r->nodes.count) {
        return 0;
    }
    nori_prune_node e = *(const nori_prune_node *)r->nodes.items[i];
    e.size = node->size;
    memcpy(node, &e, node->size < sizeof(e) ? node->size : sizeof(e));
    return 1;
}

void nori_prune_report_summary(const nori_prune_report *r, nori_prune_summary *summary)
{
    NORI__ASKED(r, );
    NORI__ASKED(summary, );
    nori_prune_summary s = r->summary;
    s.size = summary->size;
    memcpy(summary, &s, summary->size < sizeof(s) ? summary->size : sizeof(s));
}

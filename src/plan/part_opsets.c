/* part_opsets.c: operator sets for nodes of a compiled copy, where old and new versions may stand
 * side by side: old forms were rewritten to the newest, what never changed its form kept its
 * version. */
#include "ops/schema.h"
#include "plan/part.h"

/* Operators whose meaning changed with no attribute or input to show it: versions from here on say
 * the same as the newest. Of others the newest takes all that older ones wrote, or they were
 * rewritten when the copy was upgraded. */
static const struct {
    const char *op;
    int from;
} changes[] = {
    {"BatchNormalization", 7}, {"Concat", 4}, {"GroupNormalization", 21}, {"Hardmax", 13},
    {"LogSoftmax", 13},        {"PRelu", 7},  {"Scan", 9},                {"Softmax", 13},
};

static int same_from(const nori__node *node)
{
    for (size_t i = 0; i < NORI__COUNT(changes); i++) {
        if (nori__same(changes[i].op, node->op_type)) {
            return changes[i].from;
        }
    }
    return 1;
}

#define MOST_DOMAINS 16

typedef struct choosing {
    nori__opset opsets[MOST_DOMAINS];
    size_t count;
    bool exact;      /* every node must have the version in force */
    const nori__node *bad;
} choosing;

static nori__opset *opset_of(choosing *c, const char *domain)
{
    for (size_t i = 0; i < c->count; i++) {
        if (nori__same(c->opsets[i].domain, domain)) {
            return &c->opsets[i];
        }
    }
    if (c->count == MOST_DOMAINS) {
        return NULL;
    }
    c->opsets[c->count] = (nori__opset){domain, 1};
    return &c->opsets[c->count++];
}

typedef void (*node_fn)(choosing *c, const nori__node *node);

/* Subgraph depth is limited when the graph is built, so this recursion is too. */
static void each_node(choosing *c, const nori__node *node, node_fn fn)
{
    uint32_t state = 0;
    fn(c, node);
    for (nori__graph *g; (g = nori__node_subgraph(node, &state)) != NULL;) {
        for (const nori__node *n = g->first; n; n = n->next) {
            each_node(c, n, fn);
        }
    }
}

static void raise(choosing *c, const nori__node *node)
{
    nori__opset *o = opset_of(c, node->domain);
    if (!o || !node->op) {
        c->bad = node;
    } else if (node->version > o->version) {
        o->version = node->version;
    }
}

static bool has_attrs(const nori__schema *s, const nori__node *node)
{
    for (uint32_t i = 0; i < node->attr_count; i++) {
        bool found = false;
        for (uint16_t k = 0; k < s->n_attr && !found; k++) {
            found = nori__same(s->attrs[k].name, node->attrs[i].name);
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

static void judge(choosing *c, const nori__node *node)
{
    const nori__opset *o = opset_of(c, node->domain);
    const nori__schema *s = o ? nori__schema_find(node->domain, node->op_type, o->version) : NULL;
    bool same = s && (s->since == node->version ||
                      (!c->exact && node->version >= same_from(node) &&
                       node->version < s->since && has_attrs(s, node)));
    if (!same) {
        c->bad = node;
    }
}

static bool all_agree(choosing *c, const nori_part *part)
{
    c->bad = NULL;
    for (uint32_t i = 0; i < part->n_nodes && !c->bad; i++) {
        each_node(c, part->nodes[i], judge);
    }
    return !c->bad;
}

nori_status nori__part_opsets(const nori_part *part, nori__arena *arena, nori__subset *set,
                              nori_error *err)
{
    choosing c = {.exact = true};
    const nori__pb_model *pb = part->ir->pb;
    /* The file's own operator sets are the first choice: engines know old ones best. */
    for (uint32_t i = 0; i < part->n_nodes && !c.bad; i++) {
        each_node(&c, part->nodes[i], raise);
    }
    choosing own = c;
    for (size_t i = 0; pb && i < pb->opsets.count; i++) {
        for (size_t k = 0; k < own.count; k++) {
            const char *domain = own.opsets[k].domain;
            bool main = !domain[0] && nori__str_is(pb->opsets.items[i].domain, "ai.onnx");
            if (main || nori__str_is(pb->opsets.items[i].domain, domain)) {
                own.opsets[k].version = pb->opsets.items[i].version;
            }
        }
    }
    if (!c.bad && all_agree(&own, part)) {
        c = own;
    } else if (!c.bad) {
        c.exact = false;
        all_agree(&c, part);
    }
    if (c.bad) {
        char path[256];
        nori__node_path(c.bad, path, sizeof(path));
        return nori__fail(err, NORI_ERROR_UNSUPPORTED,
                          "version %d of %s cannot be written beside the newer operators of the "
                          "part",
                          c.bad->version, path);
    }
    nori__opset *list = nori__arena_array(arena, c.count + 1, sizeof(*list));
    if (!list) {
        return nori__no_memory(err);
    }
    memcpy(list, c.opsets, c.count * sizeof(*list));
    set->opsets = list;
    set->n_opsets = c.count;
    return NORI_OK;
}

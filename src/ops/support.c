/* support.c: every operator of a graph that cannot run, each once, with the reason.
 *
 * Nodes of all graphs are visited in the order of ir->graphs, then bodies of the model's functions
 * that something calls. A function body is messages, not nodes: its operators are looked up under
 * the function's own opset imports. */
#include "ops/support.h"

#include "base/built.h"
#include "ops/custom.h"

#include <inttypes.h>

#ifdef NORI_REDUCED
#define LACKING "not in this reduced build"
#else
#define LACKING "no such operator"
#endif

typedef struct scan {
    const nori__ir *ir;
    nori__can_run_fn can_run;
    void *user;
    nori__arena *arena;
    nori__vec *gaps;
    nori__map seen;      /* kind, domain and operator -> nori__gap */
    nori__vec functions; /* const nori__pb_function *: called, body to be visited */
    bool failed;
} scan;

static const char *shown(const char *domain)
{
    return domain[0] ? domain : "ai.onnx";
}

static bool is_default(nori__str s)
{
    return s.n == 0 || nori__str_is(s, "ai.onnx");
}

static bool same_domain(nori__str s, const char *domain)
{
    return domain[0] ? nori__str_is(s, domain) : is_default(s);
}

/* As nori__node_resolve has it: optimizers use com.microsoft without importing it. */
static int64_t opset_of(const nori__ir *ir, const char *domain)
{
    int64_t opset = nori__ir_opset(ir, domain);
    return opset == 0 && nori__same(domain, "com.microsoft") ? 1 : opset;
}

#ifdef NORI_REDUCED
/* What to do where a reduced build lacks an operator. */
static const char *near_hint(scan *s, const char *op_type)
{
    const char *hint = nori__arena_printf(
        s->arena, "this build holds the operators of %s, made for %.300s: add %s there and build again, "
        "or use a full build", NORI_BUILT_FROM, NORI_BUILT_FOR, op_type);
    s->failed |= !hint;
    return hint;
}
#else
/* The hint for a name no opset of the domain has, or NULL. */
static const char *near_hint(scan *s, const char *op_type)
{
    const nori__schema *near = nori__near_operator(op_type);
    if (!near) {
        return NULL;
    }
    const char *hint =
        nori__arena_printf(s->arena, "%s of domain %s, from opset %d, has the closest name",
                           near->name, shown(near->domain), near->since);
    s->failed |= !hint;
    return hint;
}
#endif

/* First version of an operator, or 0. */
static int first_since(const char *domain, const char *op_type)
{
    for (int64_t v = 1; v <= nori__opset_max(domain); v++) {
        const nori__schema *schema = nori__schema_find(domain, op_type, v);
        if (schema) {
            return schema->since;
        }
    }
    return 0;
}

/* Records one use. path is copied when the operator is new. */
static void add_gap(scan *s, nori__gap_kind kind, const char *domain, const char *op_type,
                    int64_t opset, int since, const char *path)
{
    const char *key = nori__arena_printf(s->arena, "%d %" PRId64 " %s %s", (int)kind, opset,
                                         shown(domain), op_type);
    if (!key) {
        s->failed = true;
        return;
    }
    nori__gap *gap = nori__map_get(&s->seen, key);
    if (gap) {
        gap->count++;
        return;
    }
    gap = nori__arena_alloc(s->arena, sizeof(*gap));
    char *copy = nori__arena_text(s->arena, path);
    char *type = nori__arena_text(s->arena, op_type);
    char *where = nori__arena_text(s->arena, domain);
    if (!gap || !copy || !type || !where) {
        s->failed = true;
        return;
    }
    *gap = (nori__gap){.kind = kind,
                       .domain = where,
                       .op_type = type,
                       .opset = opset,
                       .since = since,
                       .count = 1,
                       .path = copy};
    if (kind == NORI__GAP_OPERATOR) {
        gap->hint = near_hint(s, op_type);
    } else if (kind == NORI__GAP_IMPORT && nori__opset_max(domain) > 0) {
        gap->hint =
            nori__arena_printf(s->arena, "add an opset import for domain %s", shown(domain));
        s->failed |= !gap->hint;
    } else if (kind == NORI__GAP_OPSET) {
        gap->hint = nori__arena_printf(s->arena, "convert the model to opset %d or newer", since);
        s->failed |= !gap->hint;
    }
    if (!nori__map_put(&s->seen, key, gap) || !nori__vec_push(s->gaps, gap)) {
        s->failed = true;
    }
}

/* Judges an operator by the facts alone; false: recorded as a gap. */
static bool known(scan *s, const char *domain, const char *op_type, int64_t opset, const char *path)
{
    int64_t newest = nori__opset_max_in(s->ir, domain);
    if (opset <= 0) {
        add_gap(s, NORI__GAP_IMPORT, domain, op_type, 0, 0, path);
        return false;
    }
    if (newest == 0) {
        add_gap(s, NORI__GAP_DOMAIN, domain, op_type, opset, 0, path);
        return false;
    }
    if (!nori__schema_in(s->ir, domain, op_type, opset)) {
        int since = first_since(domain, op_type);
        add_gap(s,
                since            ? NORI__GAP_OPSET
                : opset > newest ? NORI__GAP_NEWER
                                 : NORI__GAP_OPERATOR,
                domain, op_type, opset, since, path);
        return false;
    }
    if (opset > newest) {
        add_gap(s, NORI__GAP_NEWER, domain, op_type, opset, 0, path);
        return false;
    }
    return true;
}

/* The function of the model that a node calls, or NULL. */
static const nori__pb_function *called(const scan *s, const char *domain, nori__str op_type,
                                       nori__str overload)
{
    if (!s->ir->pb) {
        return NULL;
    }
    for (size_t i = 0; i < s->ir->pb->functions.count; i++) {
        const nori__pb_function *f = &s->ir->pb->functions.items[i];
        if (f->name.n == op_type.n && memcmp(f->name.p, op_type.p, op_type.n) == 0 &&
            same_domain(f->domain, domain) && f->overload.n == overload.n &&
            (overload.n == 0 || memcmp(f->overload.p, overload.p, overload.n) == 0)) {
            return f;
        }
    }
    return NULL;
}

static void call_function(scan *s, const nori__pb_function *f)
{
    for (size_t i = 0; i < s->functions.count; i++) {
        if (s->functions.items[i] == f) {
            return;
        }
    }
    /* The vector holds what is only read; the cast drops const for its void *. */
    s->failed |= !nori__vec_push(&s->functions, (void *)(uintptr_t)f);
}

static void visit_node(scan *s, const nori__node *node)
{
    const nori__pb_function *f =
        called(s, node->domain, nori__str_of(node->op_type), nori__str_of(node->overload));
    if (f) {
        call_function(s, f);
        return;
    }
    int64_t opset = opset_of(s->ir, node->domain);
    const nori__op *op =
        node->op ? node->op : nori__op_in(s->ir, node->domain, node->op_type, opset);
    bool runs = op && (s->can_run ? s->can_run(s->user, node) : nori__op_runs(op));
    if (runs && opset > 0 && opset <= nori__opset_max_in(s->ir, node->domain) &&
        (node->schema || nori__schema_in(s->ir, node->domain, node->op_type, opset))) {
        return; /* the usual case, without making a path */
    }
    char path[512];
    nori__node_path(node, path, sizeof(path));
    if (known(s, node->domain, node->op_type, opset, path) && !runs) {
        add_gap(s, NORI__GAP_KERNEL, node->domain, node->op_type, opset,
                nori__schema_in(s->ir, node->domain, node->op_type, opset)->since, path);
    }
}

/* One node of a function body. Whether a kernel takes it is known only when the body has been
 * expanded into the graph, so without a reference kernel it is a gap. */
static void visit_message(scan *s, const nori__pb_function *f, const nori__pb_node *pb, size_t at)
{
    const char *op_type = nori__arena_copy(s->arena, pb->op_type.p, pb->op_type.n);
    const char *domain =
        is_default(pb->domain) ? "" : nori__arena_copy(s->arena, pb->domain.p, pb->domain.n);
    if (!op_type || !domain) {
        s->failed = true;
        return;
    }
    const nori__pb_function *g = called(s, domain, pb->op_type, pb->overload);
    if (g) {
        call_function(s, g);
        return;
    }
    int64_t opset = 0;
    for (size_t i = 0; i < f->opsets.count; i++) {
        if (same_domain(f->opsets.items[i].domain, domain)) {
            opset = f->opsets.items[i].version;
        }
    }
    if (opset == 0) { /* older files leave imports to the model */
        opset = opset_of(s->ir, domain);
    }
    const char *path =
        nori__arena_printf(s->arena, "function %.*s/%.*s#%zu (%s)", (int)f->name.n, f->name.p,
                           (int)pb->name.n, pb->name.n ? pb->name.p : "", at, op_type);
    if (!path) {
        s->failed = true;
        return;
    }
    const nori__op *op = nori__op_in(s->ir, domain, op_type, opset);
    if (known(s, domain, op_type, opset, path) && !nori__op_runs(op) && !s->can_run) {
        add_gap(s, NORI__GAP_KERNEL, domain, op_type, opset,
                nori__schema_in(s->ir, domain, op_type, opset)->since, path);
    }
}

nori_status nori__gaps_find(const nori__ir *ir, nori__can_run_fn can_run, void *user,
                            nori__arena *arena, nori__vec *gaps, nori_error *err)
{
    scan s = {.ir = ir, .can_run = can_run, .user = user, .arena = arena, .gaps = gaps};
    nori__map_init(&s.seen, ir->allocator);
    nori__vec_init(&s.functions, ir->allocator);
    for (const nori__graph *g = ir->graphs; g && !s.failed; g = g->next_graph) {
        for (const nori__node *n = g->first; n && !s.failed; n = n->next) {
            visit_node(&s, n);
        }
    }
    /* The list grows while it is walked; each function is in it once. */
    for (size_t i = 0; i < s.functions.count && !s.failed; i++) {
        const nori__pb_function *f = s.functions.items[i];
        for (size_t k = 0; k < f->nodes.count && !s.failed; k++) {
            visit_message(&s, f, &f->nodes.items[k], k);
        }
    }
    nori__vec_free(&s.functions);
    nori__map_free(&s.seen);
    return s.failed ? nori__no_memory(err) : NORI_OK;
}

const char *nori__gap_text(nori__arena *arena, const nori__gap *g)
{
    const char *domain =
        g->domain[0] ? nori__arena_printf(arena, "domain %s", g->domain) : "default domain";
    if (!domain) {
        return NULL;
    }
    switch (g->kind) {
    case NORI__GAP_OPERATOR:
        return nori__arena_printf(arena, "%s, %s, opset %" PRId64 ": %s", g->op_type, domain, g->opset,
                                  LACKING);
    case NORI__GAP_OPSET:
        return nori__arena_printf(arena, "%s, %s, opset %" PRId64 ": exists only from opset %d",
                                  g->op_type, domain, g->opset, g->since);
    case NORI__GAP_DOMAIN:
        return nori__arena_printf(arena, "%s, %s, opset %" PRId64 ": the domain is not known",
                                  g->op_type, domain, g->opset);
    case NORI__GAP_IMPORT:
        return nori__arena_printf(arena,
                                  nori__opset_max(g->domain)
                                      ? "%s, %s: the domain is used but not imported"
                                      : "%s, %s: the domain is used but not imported, and "
                                        "not known",
                                  g->op_type, domain);
    case NORI__GAP_NEWER:
        return nori__arena_printf(
            arena, "%s, %s, opset %" PRId64 ": newer than the newest known, %" PRId64, g->op_type,
            domain, g->opset, nori__opset_max(g->domain));
    case NORI__GAP_KERNEL:
        break;
    }
    return nori__arena_printf(arena, "%s, %s, opset %" PRId64 ": no kernel for version %d",
                              g->op_type, domain, g->opset, g->since);
}

/* Whether one of the gaps is of this domain; NULL: every domain is asked for. */
static bool concerns(const nori__vec *gaps, const char *domain)
{
    bool any = gaps == NULL || domain[0] == 0;
    for (size_t i = 0; !any && i < gaps->count; i++) {
        any = nori__same(((const nori__gap *)gaps->items[i])->domain, domain);
    }
    return any;
}

const char *nori__imports_text(nori__arena *arena, const nori__ir *ir, const nori__vec *gaps)
{
    nori__text text;
    size_t said = 0;
    nori__text_init(&text, ir->allocator);
    nori__text_printf(&text, "IR version %" PRId64 ", opsets: ", ir->ir_version);
    for (size_t i = 0; i < ir->opset_count; i++) {
        const nori__opset *o = &ir->opsets[i];
        int64_t newest = nori__opset_max_in(ir, o->domain);
        if (!concerns(gaps, o->domain)) {
            continue;
        }
        nori__text_printf(&text, "%s%s %" PRId64, said++ ? ", " : "", shown(o->domain), o->version);
        if (newest == NORI__OPSET_ANY) {
            nori__text_printf(&text, " (registered)");
        } else if (newest) {
            nori__text_printf(&text, " (newest known %" PRId64 ")", newest);
        } else {
            nori__text_printf(&text, " (not known)");
        }
    }
    if (said == 0) {
        nori__text_printf(&text, "none");
    }
    char *copy = text.failed ? NULL : nori__arena_copy(arena, text.data, text.size);
    nori__text_free(&text);
    return copy;
}

enum { MESSAGE_ROOM = 1900 }; /* of nori_error.message, with room for a prefix */

/* The list, a line for each where there are several. Brief: no hints, and no path but the first. */
static bool list_gaps(nori__text *text, nori__arena *arena, const nori__vec *gaps,
                      const char *imports, bool brief)
{
    const char *line_break = gaps->count == 1 ? " " : "\n  ";
    nori__text_printf(text, "%zu operator%s cannot run:", gaps->count,
                      gaps->count == 1 ? "" : "s");
    for (size_t i = 0; i < gaps->count; i++) {
        const nori__gap *gap = gaps->items[i];
        const char *line = nori__gap_text(arena, gap);
        if (!line) {
            return false;
        }
        nori__text_printf(text, "%s%s (%zu node%s", line_break, line, gap->count,
                          gap->count == 1 ? "" : "s");
        if (!brief || i == 0) {
            nori__text_printf(text, "%s%s", gap->count == 1 ? ": " : ", first ", gap->path);
        }
        if (!brief && gap->hint) {
            nori__text_printf(text, "; %s", gap->hint);
        }
        nori__text_printf(text, ")");
    }
    nori__text_printf(text, "\n  the file has %s", imports);
    return !text->failed;
}

nori_status nori__require_runnable(const nori__ir *ir, nori__can_run_fn can_run, void *user,
                                   nori_error *err)
{
    nori__arena arena;
    nori__vec gaps;
    nori__text text;
    nori__arena_init(&arena, ir->allocator);
    nori__vec_init(&gaps, ir->allocator);
    nori__text_init(&text, ir->allocator);
    nori_status status = nori__gaps_find(ir, can_run, user, &arena, &gaps, err);
    if (status == NORI_OK && gaps.count > 0) {
        const char *imports = nori__imports_text(&arena, ir, &gaps);
        bool made = imports && list_gaps(&text, &arena, &gaps, imports, false);
        if (made && text.size > MESSAGE_ROOM) {
            nori__text_free(&text);
            nori__text_init(&text, ir->allocator);
            made = list_gaps(&text, &arena, &gaps, imports, true);
        }
        status =
            made ? nori__fail(err, NORI_ERROR_UNSUPPORTED, "%s", text.data) : nori__no_memory(err);
        const char *hint = ((const nori__gap *)gaps.items[0])->hint;
        if (made) {
            nori__hint(err, "%s",
                       hint ? hint
                            : "operators of your own are registered before the model is loaded "
                              "(nori_env_load_ops; the command: --ops-library)");
        }
    }
    nori__text_free(&text);
    nori__vec_free(&gaps);
    nori__arena_free(&arena);
    return status;
}

nori_status nori__require_supported(const nori__ir *ir, nori_error *err)
{
    return nori__require_runnable(ir, NULL, NULL, err);
}

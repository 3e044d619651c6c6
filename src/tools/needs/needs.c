/* needs.c: the operators of models, closed under what sessions make of them (ops/makes.h and
 * providers/cpu/cpu_makes.h). tools/gen_built.py closes a list in the same way. */
#include "nori/needs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/given.h"
#include "ops/resolve.h"
#include "run/run.h"

enum { ANY_NEWER = INT_MAX }; /* the version of what is made: the newest */

static const struct row {
    const char *step, *made, *from;
} rows[] = {
#define NORI__MAKES(step, made, from) {#step, made, from},
#include "ops/makes.h"
#include "providers/cpu/cpu_makes.h"
#undef NORI__MAKES
};

/* Domains as names of rows begin with them. */
static const struct prefix {
    const char *prefix, *domain;
} prefixes[] = {
    {"ONNX_", "ai.onnx"},
    {"ML_", "ai.onnx.ml"},
    {"TRAINING_", "ai.onnx.preview.training"},
    {"PREVIEW_", "ai.onnx.preview"},
    {"MS_", "com.microsoft"},
    {"nori_", "nori"},
    {"kernels_", NULL}, /* not an operator */
};

typedef struct need {
    const struct prefix *of;
    char *name; /* without prefix */
    const char *made_by;
    int *versions;
    size_t version_count;
} need;

struct nori_needs {
    const nori_allocator *allocator;
    nori__arena arena;
    nori__map by_name; /* "ONNX_Conv" -> need */
    nori__vec found;   /* need *, of operators alone */
    bool half, failed;
};

/* ---- the set ---- */

static const struct prefix *prefix_of(const char *name, size_t n)
{
    for (size_t i = 0; i < NORI__COUNT(prefixes); i++) {
        size_t length = strlen(prefixes[i].prefix);
        if (n > length && memcmp(name, prefixes[i].prefix, length) == 0) {
            return &prefixes[i];
        }
    }
    return NULL;
}

/* The entry of a name as rows write it; made where it is not there and a maker is named. */
static need *entry(nori_needs *s, const char *name, size_t n, const char *made_by, bool *added)
{
    const struct prefix *of = prefix_of(name, n);
    char *full = nori__arena_printf(&s->arena, "%s%.*s", of ? "" : "ONNX_", (int)n, name);
    need *known = full ? nori__map_get(&s->by_name, full) : NULL;
    if (known || !full || !added) {
        s->failed |= !full;
        return known;
    }
    of = of ? of : &prefixes[0];
    need *made = nori__arena_alloc(&s->arena, sizeof(*made));
    if (!made || !nori__map_put(&s->by_name, full, made) ||
        (of->domain && !nori__vec_push(&s->found, made))) {
        s->failed = true;
        return NULL;
    }
    *made = (need){.of = of, .name = full + strlen(of->prefix), .made_by = made_by};
    *added = true;
    return made;
}

static void add_version(nori_needs *s, need *n, int version)
{
    size_t at = 0;
    while (at < n->version_count && n->versions[at] < version) {
        at++;
    }
    if (at < n->version_count && n->versions[at] == version) {
        return;
    }
    int *grown = nori__arena_array(&s->arena, n->version_count + 1, sizeof(*grown));
    if (!grown) {
        s->failed = true;
        return;
    }
    for (size_t i = 0; i < n->version_count; i++) {
        grown[i + (i >= at)] = n->versions[i];
    }
    grown[at] = version;
    n->versions = grown;
    n->version_count++;
}

/* ---- what models have ---- */

static bool is_half(int elem)
{
    return elem == NORI_FLOAT16 || elem == NORI_BFLOAT16;
}

static void add_graph(nori_needs *s, const nori__graph *g)
{
    for (const nori__node *n = g->first; n; n = n->next) {
        bool added = false;
        char name[128];
        if (!n->op || n->op->id >= NORI__OP_COUNT) {
            continue; /* registered by the caller, who brings its kernel */
        }
        const char *domain = nori__domain_name(n->op->domain);
        for (size_t i = 0; i < NORI__COUNT(prefixes); i++) {
            if (nori__same(prefixes[i].domain, domain[0] ? domain : "ai.onnx")) {
                int length = snprintf(name, sizeof(name), "%s%s", prefixes[i].prefix, n->op->name);
                need *found = entry(s, name, (size_t)length, NULL, &added);
                if (found) {
                    add_version(s, found, n->version);
                }
                break;
            }
        }
    }
}

static void note_types(nori_needs *s, const nori__graph *g)
{
    for (const nori__value *v = g->values; v && !s->half; v = v->next) {
        s->half = v->type.kind == NORI_KIND_TENSOR && is_half(v->type.elem);
    }
}

static nori_status add_model(nori_needs *s, const nori_model *model, nori_error *err)
{
    nori__ir *ir = NULL;
    NORI__TRY(nori__ir_copy(nori__model_ir(model), &ir, err));
    nori_status status = nori__require_supported(ir, err);
    status = status == NORI_OK ? nori__inline_functions(ir, err) : status;
    for (const nori__graph *g = ir->graphs; status == NORI_OK && g; g = g->next_graph) {
        add_graph(s, g);
    }
    status = status == NORI_OK ? nori__upgrade(ir, err) : status; /* types come with it */
    for (const nori__graph *g = ir->graphs; status == NORI_OK && g; g = g->next_graph) {
        note_types(s, g);
    }
    nori__ir_free(ir);
    return status;
}

/* ---- what is made of them ---- */

/* One "NAME" or "NAME<VERSION" of a condition. */
static bool holds(nori_needs *s, const char *word, size_t n)
{
    const char *below = memchr(word, '<', n);
    if (n == 4 && memcmp(word, "half", 4) == 0) {
        return s->half;
    }
    const need *found = entry(s, word, below ? (size_t)(below - word) : n, NULL, NULL);
    int oldest = found && found->version_count > 0 ? found->versions[0] : ANY_NEWER;
    return found && (!below || oldest < (int)strtol(below + 1, NULL, 10));
}

/* Words with spaces between, of each of which one of the names with bars between must be there. */
static bool applies(nori_needs *s, const char *from)
{
    while (*from) {
        size_t word = strcspn(from, " ");
        bool one = false;
        for (size_t at = 0; at < word && !one;) {
            size_t n = strcspn(from + at, "| ");
            one = holds(s, from + at, n);
            at += n + 1;
        }
        if (!one) {
            return false;
        }
        from += word + (from[word] == ' ');
    }
    return true;
}

static void close_set(nori_needs *s)
{
    bool added = true;
    while (added && !s->failed) {
        added = false;
        for (size_t i = 0; i < NORI__COUNT(rows); i++) {
            const char *made = applies(s, rows[i].from) ? rows[i].made : "";
            while (*made) {
                size_t n = strcspn(made, " ");
                entry(s, made, n, rows[i].step, &added);
                made += n + (made[n] == ' ');
            }
        }
    }
}

static int compare(const void *a, const void *b)
{
    const need *x = *(need *const *)a, *y = *(need *const *)b;
    int order = (x->made_by != NULL) - (y->made_by != NULL);
    order = order ? order : (x->of > y->of) - (x->of < y->of);
    return order ? order : strcmp(x->name, y->name);
}

/* ---- for callers ---- */

nori_status nori_needs_find(const nori_model *const *models, size_t count, nori_needs **needs,
                            nori_error *err)
{
    NORI__GIVEN_LIST(err, models, count);
    NORI__GIVEN(err, needs);
    *needs = NULL;
    if (count == 0) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "no model was given, at least one was expected");
    }
    for (size_t i = 0; i < count; i++) {
        NORI__GIVEN(err, models[i]);
    }
    const nori_allocator *a = models[0]->source->allocator;
    nori_needs *s = nori__alloc_zero(a, sizeof(*s));
    if (!s) {
        return nori__no_memory(err);
    }
    s->allocator = a;
    nori__arena_init(&s->arena, a);
    nori__map_init(&s->by_name, a);
    nori__vec_init(&s->found, a);
    nori_status status = NORI_OK;
    for (size_t i = 0; i < count && status == NORI_OK; i++) {
        status = add_model(s, models[i], err);
    }
    if (status == NORI_OK) {
        close_set(s);
        status = s->failed ? nori__no_memory(err) : NORI_OK;
    }
    if (status != NORI_OK) {
        nori_needs_free(s);
        return status;
    }
    if (s->found.count > 0) {
        qsort(s->found.items, s->found.count, sizeof(*s->found.items), compare);
    }
    *needs = s;
    return NORI_OK;
}

void nori_needs_free(nori_needs *s)
{
    if (s) {
        const nori_allocator *a = s->allocator;
        nori__vec_free(&s->found);
        nori__map_free(&s->by_name);
        nori__arena_free(&s->arena);
        nori__release(a, s, sizeof(*s));
    }
}

int nori_needs_at(const nori_needs *s, size_t index, nori_need *out)
{
    if (!s || !out || index >= s->found.count) {
        return 0;
    }
    const need *n = s->found.items[index];
    nori_need all = {.size = out->size,
                     .domain = n->of->domain,
                     .op = n->name,
                     .made_by = n->made_by,
                     .versions = n->versions,
                     .version_count = n->version_count};
    memcpy(out, &all, all.size < sizeof(all) ? all.size : sizeof(all));
    return 1;
}

int nori_needs_half(const nori_needs *s)
{
    return s && s->half;
}

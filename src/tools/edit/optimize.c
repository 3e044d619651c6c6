/* optimize.c: nori_optimize: a graph rewritten at its file's own operator set.
 *
 * Kernels and inference know the newest form of each operator only. So what is constant, and of what
 * type and shape values are, is found on a copy in that form; values keep their names there, and by
 * them the rewrites of the file's own form learn of it. */
#include <stdio.h>

#include "nori/tools.h"
#include "base/given.h"
#include "passes/passes.h"
#include "tools/edit/optimize.h"

#define ROUNDS 4

void nori_optimize_options_default(nori_optimize_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_optimize_options){.size = sizeof(*options)};
    nori_proof_options_default(&options->proof);
}

/* ---- what is known ---- */

static nori_status learn_types(nori__ir *ir, const nori__ir *typed, nori_error *err)
{
    for (nori__value *v = ir->main->values; v; v = v->next) {
        const nori__value *t = nori__edit_value(typed, v->name);
        nori__dim dims[NORI_MAX_RANK];
        if (!t || t->type.kind != NORI_KIND_TENSOR || (v->constant && !v->producer)) {
            continue;
        }
        for (int d = 0; d < t->type.rank; d++) {
            dims[d] = (nori__dim){t->type.dims[d].value, NULL}; /* names are the copy's */
        }
        if (!nori__type_set(&ir->arena, &v->type, (nori_type)t->type.elem, t->type.rank, dims)) {
            return nori__no_memory(err);
        }
        v->flags = (v->flags & ~(uint32_t)NORI__VALUE_HINTED) | (t->flags & NORI__VALUE_HINTED);
    }
    return NORI_OK;
}

/* Nodes all of whose results are constants of the copy. */
static nori_status take_constants(nori__ir *ir, const nori__ir *folded, size_t *changes,
                                  nori_error *err)
{
    for (nori__node *n = ir->main->first, *next; n; n = next) {
        next = n->next;
        bool all = n->output_count > 0;
        for (uint32_t i = 0; i < n->output_count && all; i++) {
            const nori__value *v = n->outputs[i];
            const nori__value *f = v ? nori__edit_value(folded, v->name) : NULL;
            all = !v || (f && !f->producer && nori__value_as_is(f));
        }
        if (!all) {
            continue;
        }
        nori__value **outputs = n->outputs;
        uint32_t count = n->output_count;
        nori__node_remove(n);
        for (uint32_t i = 0; i < count; i++) {
            nori__value *v = outputs[i];
            if (!v) {
                continue;
            }
            nori_tensor *t = nori_tensor_retain(nori__edit_value(folded, v->name)->constant);
            nori__dim dims[NORI_MAX_RANK];
            if (!nori__ir_keep(ir, t)) {
                return nori__no_memory(err);
            }
            for (int d = 0; d < t->rank; d++) {
                dims[d] = nori__dim_of(t->dims[d]);
            }
            v->producer = NULL;
            v->constant = t;
            v->flags |= NORI__VALUE_INITIALIZER;
            if (!nori__type_set(&ir->arena, &v->type, (nori_type)t->type, t->rank, dims)) {
                return nori__no_memory(err);
            }
        }
        (*changes)++;
    }
    return NORI_OK;
}

/* The copy in the newest form, its constants folded. */
static nori_status look(nori__ir *ir, bool fold, nori__ir **typed, nori_error *err)
{
    bool changed = true;
    NORI__TRY(nori__edit_typed_ir(ir, NULL, NULL, 0, typed, err));
    nori_status s = NORI_OK;
    for (int i = 0; s == NORI_OK && fold && changed && i < ROUNDS; i++) {
        changed = false;
        s = nori__pass_fold(*typed, &changed, err);
        s = s == NORI_OK && changed ? nori__infer_graph(*typed, err) : s;
    }
    if (s != NORI_OK) {
        nori__ir_free(*typed);
        *typed = NULL;
    }
    return s;
}

/* ---- the list ---- */

typedef struct step {
    const char *name;
    nori_status (*pass)(nori__ir *ir, bool *changed, nori_error *err); /* one of the standard ones */
    nori_status (*own)(nori__ir *ir, size_t *changes, nori_error *err);
} step;

static const step steps[] = {
    {"fold", NULL, NULL}, /* first: what follows sees the constants */
    {"branch", nori__pass_branch, NULL},
    {"identity", nori__pass_identity, NULL},
    {"transpose", NULL, nori__opt_transposes},
    {"pad", NULL, nori__opt_pads},
    {"gemm", NULL, nori__opt_gemm},
    {"affine", nori__pass_fuse_affine, NULL},
    {"same_nodes", NULL, nori__opt_same_nodes},
    {"dead", nori__pass_dead, NULL},
    {"same_constants", NULL, nori__opt_same_constants},
};
_Static_assert(NORI__COUNT(steps) <= NORI_OPTIMIZE_PASSES, "room for all passes in the report");
#define ALL ((1u << NORI__COUNT(steps)) - 1)

static nori_status choose(const char *only, unsigned *mask, nori_error *err)
{
    *mask = only ? 0 : ALL;
    for (const char *p = only; p && *p; p += strcspn(p, ","), p += *p == ',') {
        size_t n = strcspn(p, ","), found = NORI__COUNT(steps);
        for (size_t i = 0; i < NORI__COUNT(steps); i++) {
            found = strlen(steps[i].name) == n && memcmp(steps[i].name, p, n) == 0 ? i : found;
        }
        if (found == NORI__COUNT(steps)) {
            nori_status s = nori__fail(err, NORI_ERROR_ARGUMENT, "there is no rewrite \"%.*s\"",
                                       (int)(n < 60 ? n : 60), p);
            nori__hint(err, "fold, branch, identity, transpose, pad, gemm, affine, same_nodes, dead and "
                            "same_constants are");
            return s;
        }
        *mask |= 1u << found;
    }
    return NORI_OK;
}

static size_t count_nodes(const nori__ir *ir)
{
    size_t n = 0;
    for (const nori__graph *g = ir->graphs; g; g = g->next_graph) {
        n += g->node_count;
    }
    return n;
}

static void count_constants(const nori__ir *ir, size_t *count, uint64_t *bytes)
{
    *count = 0;
    *bytes = 0;
    for (const nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (const nori__value *v = g->values; v; v = v->next) {
            bool plain = v->constant && !v->producer;
            *count += plain;
            *bytes += plain ? v->constant->bytes : 0;
        }
    }
}

static nori_status run_step(nori__ir *ir, size_t i, const nori__ir *folded, nori_optimize_report *r,
                            bool *any, nori_error *err)
{
    size_t before = count_nodes(ir), changes = 0;
    bool changed = false;
    nori_status s;
    if (steps[i].pass) {
        s = steps[i].pass(ir, &changed, err);
    } else if (steps[i].own) {
        s = steps[i].own(ir, &changes, err);
    } else {
        s = take_constants(ir, folded, &changes, err);
    }
    s = s == NORI_OK ? nori__ir_verify(ir, err) : s;
    if (s != NORI_OK) {
        nori__where(err, "rewrite %s", steps[i].name);
        return s;
    }
    size_t after = count_nodes(ir);
    r->passes[i].changes += steps[i].pass ? before - after + (changed && before == after) : changes;
    *any = *any || changed || changes > 0;
    return NORI_OK;
}

static nori_status rewrite(nori__ir *ir, unsigned mask, nori_optimize_report *r, nori_error *err)
{
    bool any = true;
    for (int round = 0; any && round < ROUNDS; round++) {
        nori__ir *folded = NULL;
        any = false;
        nori_status s = look(ir, mask & 1, &folded, err);
        s = s == NORI_OK ? learn_types(ir, folded, err) : s;
        for (size_t i = 0; s == NORI_OK && i < NORI__COUNT(steps); i++) {
            if (mask >> i & 1) {
                s = run_step(ir, i, folded, r, &any, err);
            }
        }
        nori__ir_free(folded);
        NORI__TRY(s);
    }
    return NORI_OK;
}

/* Declarations of the file stand again; what the rewrites learned was for them alone. */
static void restore_types(nori__ir *ir)
{
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__value *v = g->values; v; v = v->next) {
            if (v->pb && !(v->constant && !v->producer)) {
                v->type = v->declared;
            }
        }
    }
}

/* ---- judging ---- */

static nori_status count_errors(const nori_model *model, size_t *errors, nori_error *err)
{
    nori_findings *f = NULL;
    NORI__TRY(nori_check(model, NULL, &f, err));
    *errors = nori_findings_at_least(f, NORI_SEVERITY_ERROR);
    nori_findings_free(f);
    return NORI_OK;
}

/* One try with these rewrites; good: it is valid, and agrees where that is asked for. */
static nori_status attempt(const nori_model *model, const nori_optimize_options *o, unsigned mask,
                           nori_model **made, nori_optimize_report *r, bool *good, nori_error *err)
{
    nori__ir *ir = NULL;
    size_t had, has;
    memset(r->passes, 0, sizeof(r->passes));
    for (size_t i = 0; i < NORI__COUNT(steps); i++) {
        r->passes[i].name = steps[i].name;
    }
    NORI__TRY(nori__ir_copy(nori__model_ir(model), &ir, err));
    count_constants(ir, &r->constants_before, &r->bytes_before);
    r->nodes_before = count_nodes(ir);
    ir->ir_version = ir->ir_version < 4 ? 4 : ir->ir_version; /* new constants need not be inputs */
    nori_status s = rewrite(ir, mask, r, err);
    if (s == NORI_OK) {
        restore_types(ir);
        s = nori__model_from_ir(model, ir, made, err);
    }
    nori__ir_free(ir);
    NORI__TRY(s);
    count_constants(nori__model_ir(*made), &r->constants_after, &r->bytes_after);
    r->nodes_after = count_nodes(nori__model_ir(*made));
    NORI__TRY(count_errors(model, &had, err));
    NORI__TRY(count_errors(*made, &has, err));
    r->proof.agrees = 0;
    *good = has <= had;
    if (*good) {
        NORI__TRY(nori__proof_same(model, *made, &o->proof, &r->proof, err));
        *good = r->proof.agrees;
    } else {
        snprintf(r->proof.reason, sizeof(r->proof.reason), "the result is not valid");
    }
    return NORI_OK;
}

/* Leaves out the one rewrite without which it agrees. */
static nori_status bisect(const nori_model *model, const nori_optimize_options *o, unsigned mask,
                          nori_model **made, nori_optimize_report *r, nori_error *err)
{
    char why[256];
    snprintf(why, sizeof(why), "%s", r->proof.reason);
    for (size_t i = NORI__COUNT(steps); i-- > 0;) {
        bool good = false;
        if (!(mask >> i & 1) || r->passes[i].changes == 0) {
            continue;
        }
        nori_model_free(*made);
        *made = NULL;
        NORI__TRY(attempt(model, o, mask & ~(1u << i), made, r, &good, err));
        if (good) {
            snprintf(r->left_out, sizeof(r->left_out), "%s", steps[i].name);
            return NORI_OK;
        }
    }
    nori_status s = nori__fail(err, NORI_ERROR_DATA, "the optimized model does not agree with the "
                               "original, whichever one rewrite is left out: %s", why);
    nori__hint(err, "please report it; some rewrites alone: --passes identity,dead");
    return s;
}

nori_status nori_optimize(const nori_model *model, const nori_optimize_options *options,
                          nori_model **optimized, nori_optimize_report *report, nori_error *err)
{
    nori_error own = {0};
    nori_optimize_options o;
    nori_optimize_report r = {.size = sizeof(r)};
    unsigned mask;
    bool good = false;
    err = err ? err : &own;
    if (!model || !optimized) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "model and optimized must not be NULL");
    }
    *optimized = NULL;
    NORI__OPTIONS(nori_optimize_options, o, options);
    NORI__TRY(choose(o.passes, &mask, err));
    nori_status s = attempt(model, &o, mask, optimized, &r, &good, err);
    if (s == NORI_OK && !good) {
        s = bisect(model, &o, mask, optimized, &r, err);
    }
    if (s != NORI_OK) {
        nori_model_free(*optimized);
        *optimized = NULL;
    } else if (report) {
        size_t size = report->size < sizeof(r) ? report->size : sizeof(r);
        memcpy(report, &r, size);
        report->size = size;
    }
    return s;
}

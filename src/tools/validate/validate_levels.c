/* validate_levels.c: optimization levels against level 0, and the rewrite that is to blame. */
#include <stdio.h>

#include "base/given.h"
#include "nori/tools.h"
#include "passes/passes.h"
#include "run/run.h"

typedef struct levels {
    const nori_model *model;
    nori_session_options options;
    const nori_tensor *const *inputs;
    size_t n_in, n_out;
    const nori_agreement_options *agreement;
    const nori_allocator *a;
    nori_tensor **want; /* of level 0 */
    nori_error *err;
} levels;

static void free_all(const levels *l, nori_tensor **list)
{
    for (size_t i = 0; list && i < l->n_out; i++) {
        nori_tensor_free(list[i]);
    }
    nori__release(l->a, list, (l->n_out + 1) * sizeof(*list));
}

static nori_status run_at(levels *l, int level, const char *passes, nori_tensor ***outputs)
{
    nori_session *s = NULL;
    l->options.level = level;
    l->options.passes = passes;
    *outputs = nori__alloc_zero(l->a, (l->n_out + 1) * sizeof(**outputs));
    nori_status status = *outputs ? nori_session_create(l->model, &l->options, &s, l->err)
                                  : nori__no_memory(l->err);
    if (status == NORI_OK) {
        status = nori_session_run(s, l->inputs, l->n_in, *outputs, l->n_out, l->err);
    }
    nori_session_free(s);
    return status;
}

/* Compares a level's outputs with level 0's; row is about the one that agrees least. */
static bool judge(const levels *l, nori_tensor *const *got, nori_level_row *row)
{
    bool passes = true;
    for (size_t i = 0; i < l->n_out; i++) {
        nori_agreement a = {.size = sizeof(a)};
        nori_agreement_add(&a, got[i], l->want[i], l->agreement);
        bool worse = i == 0 || (row->agreement.passes && !a.passes) ||
                     (row->agreement.passes == a.passes && a.sqnr_db < row->agreement.sqnr_db);
        if (worse) {
            row->agreement = a;
            row->output = nori_model_output(l->model, i)->name;
        }
        passes = passes && a.passes;
    }
    return passes;
}

/* The rewrites that a session was let make, by name. */
typedef struct names {
    char text[1024];
    size_t used;
} names;

static bool add_name(names *n, const char *owner, const char *name)
{
    int more = snprintf(n->text + n->used, sizeof(n->text) - n->used, "%s%s%s%s", n->used ? "," : "",
                        owner, owner[0] ? "/" : "", name);
    n->used += more > 0 ? (size_t)more : 0;
    return n->used < sizeof(n->text);
}

/* Tries with one rewrite more; whether it is to blame. */
static nori_status blame(levels *l, int level, const char *list, const char *last,
                         nori_level_row *row)
{
    nori_tensor **got = NULL;
    nori_level_row scratch = {.size = sizeof(scratch)};
    nori_status status = run_at(l, level, list, &got);
    if (status == NORI_OK && !judge(l, got, &scratch)) {
        snprintf(row->culprit, sizeof(row->culprit), "%s", last);
    }
    free_all(l, got);
    return status;
}

/* Rewrites one after another, each with all before it: the first that fails is to blame. */
static nori_status blame_pass(levels *l, nori_level_row *row)
{
    names n = {.used = 0};
    for (size_t i = 0; nori__pass_at(i) && !row->culprit[0]; i++) {
        if (!add_name(&n, "", nori__pass_at(i)->name)) {
            return NORI_OK;
        }
        NORI__TRY(blame(l, 1, n.text, nori__pass_at(i)->name, row));
    }
    return NORI_OK;
}

/* The same over what providers do for themselves, behind all that is standard. */
static nori_status blame_own(levels *l, const nori__builtin *b, names *n, nori_level_row *row)
{
    for (const nori__rewrite *r = b ? b->rewrites : NULL; r && r->name && !row->culprit[0]; r++) {
        size_t begin = n->used ? n->used + 1 : 0; /* of the name, behind a comma */
        if (!add_name(n, b->provider->name, r->name)) {
            return NORI_OK;
        }
        NORI__TRY(blame(l, 2, n->text, n->text + begin, row));
    }
    return NORI_OK;
}

static nori_status blame_provider(levels *l, const char *list, nori_level_row *row)
{
    names n = {.used = 0};
    size_t bytes = strlen(list) + 1;
    nori_status status = NORI_OK;
    char *copy = nori__alloc(l->a, bytes), *rest = copy;
    if (!copy) {
        return nori__no_memory(l->err);
    }
    memcpy(copy, list, bytes);
    for (size_t i = 0; nori__pass_at(i); i++) {
        add_name(&n, "", nori__pass_at(i)->name);
    }
    for (char *entry; status == NORI_OK && (entry = nori__provider_next(&rest)) != NULL;) {
        entry[strcspn(entry, ":")] = 0;
        status = blame_own(l, nori__builtin_find(entry), &n, row);
    }
    nori__release(l->a, copy, bytes);
    if (status == NORI_OK && !row->culprit[0]) {
        snprintf(row->culprit, sizeof(row->culprit), "rewriting by %.*s", (int)strcspn(list, ",:"),
                 list);
    }
    return status;
}

static nori_status judge_level(levels *l, int level, const char *earlier, nori_level_row *row)
{
    nori_tensor **got = NULL;
    const char *list = l->options.providers ? l->options.providers : nori_provider_at(0)->name;
    nori_status status = run_at(l, level, NULL, &got);
    row->level = level;
    bool passes = status == NORI_OK && judge(l, got, row);
    free_all(l, got);
    NORI__TRY(status);
    if (passes) {
        return NORI_OK;
    }
    if (level == 1) {
        return blame_pass(l, row);
    }
    if (!earlier[0]) {
        return blame_provider(l, list, row);
    }
    snprintf(row->culprit, sizeof(row->culprit), "%s", earlier);
    return NORI_OK;
}

static void give(const nori_level_row *from, nori_level_row *to)
{
    size_t size = to->size < sizeof(*from) ? to->size : sizeof(*from);
    memcpy(to, from, size);
    to->size = size;
}

nori_status nori_validate_levels(const nori_model *model, const nori_session_options *options,
                                 const nori_tensor *const *inputs, size_t input_count,
                                 const nori_agreement_options *agreement, nori_level_row rows[2],
                                 nori_error *err)
{
    NORI__GIVEN(err, model);
    NORI__GIVEN_LIST(err, inputs, input_count);
    NORI__GIVEN(err, rows);
    levels l = {.model = model, .inputs = inputs, .n_in = input_count, .agreement = agreement,
                .a = model->source->allocator, .n_out = nori_model_output_count(model),
                .err = err};
    nori_level_row found[2] = {{.size = sizeof(found[0])}, {.size = sizeof(found[0])}};
    nori_session_options_default(&l.options);
    if (options) {
        memcpy(&l.options, options,
               options->size < sizeof(l.options) ? options->size : sizeof(l.options));
    }
    nori_status status = run_at(&l, 0, NULL, &l.want);
    for (int level = 1; level <= 2 && status == NORI_OK; level++) {
        status = judge_level(&l, level, found[0].culprit, &found[level - 1]);
    }
    free_all(&l, l.want);
    for (int i = 0; i < 2 && status == NORI_OK; i++) {
        give(&found[i], &rows[i]);
    }
    return status;
}

/* opset.c: nori_opset_find: the lowest operator set, found by converting to each from 1 on, and what
 * runtimes say to the file. */
#include "ops/forms.h"
#include "base/given.h"
#include "ops/schema.h"
#include "run/run.h"
#include "tools/convert/lower.h"

struct nori_opset_report {
    nori__arena arena;
    nori__vec blockers;
    nori__vec runtimes; /* nori_runtime_verdict */
    nori_opset_summary summary;
};

int nori__blocker_at(const nori__vec *blockers, size_t index, nori_blocker *blocker)
{
    if (index >= blockers->count) {
        return 0;
    }
    size_t size = blocker->size < sizeof(*blocker) ? blocker->size : sizeof(*blocker);
    memcpy(blocker, blockers->items[index], size);
    blocker->size = size;
    return 1;
}

nori_status nori__lowest_opset(const nori_model *model, nori__arena *arena, nori__vec *blockers,
                               int64_t *lowest, nori_error *err)
{
    nori_error problem = {0};
    nori_status s = NORI_OK;
    *lowest = 0;
    for (int64_t opset = 1; opset <= NORI__OPSET_MAX_ONNX && *lowest == 0; opset++) {
        nori__vec found;
        nori__vec_init(&found, arena->allocator);
        problem = (nori_error){0};
        nori__lowering l = {.opset = opset, .arena = arena, .blockers = &found, .err = &problem};
        s = nori__lower_copy(model, &l);
        nori__ir_free(l.ir);
        if (s == NORI_ERROR_MEMORY) {
            nori__vec_free(&found);
            return nori__no_memory(err);
        }
        if (s == NORI_OK && found.count == 0) {
            *lowest = opset;
            nori__vec_free(&found);
        } else { /* those of the last one tried are what keeps it from there */
            nori__vec_free(blockers);
            *blockers = found;
        }
    }
    if (*lowest == 0 && s != NORI_OK && err) {
        *err = problem; /* nothing works: the model is at fault */
    }
    return *lowest == 0 && s != NORI_OK ? s : NORI_OK;
}

static nori_status lowest_ir(const nori_model *model, nori_opset_report *r, nori_error *err)
{
    nori_convert_options o;
    nori_model *made = NULL;
    nori_convert_report *report = NULL;
    nori_convert_options_default(&o);
    o.opset = r->summary.lowest;
    NORI__TRY(nori_convert(model, &o, &made, &report, err));
    r->summary.lowest_ir = nori_model_ir_version(made);
    nori_convert_report_free(report);
    nori_model_free(made);
    return NORI_OK;
}

static nori_status ask_runtimes(const nori__ir *ir, nori_opset_report *r, nori_error *err)
{
    const nori_opset_summary *sum = &r->summary;
    for (size_t i = 0; i < nori__runtime_count(); i++) {
        nori_runtime_verdict *v = nori__arena_alloc(&r->arena, sizeof(*v));
        if (!v || !nori__vec_push(&r->runtimes, v)) {
            return nori__no_memory(err);
        }
        nori__runtime_facts(i, v);
        v->reason = nori__runtime_refusal(i, ir, sum->opset, sum->ir, &r->arena);
        const char *lowest = nori__runtime_refusal(i, ir, sum->lowest, sum->lowest_ir, &r->arena);
        if (!v->reason || !lowest) {
            return nori__no_memory(err);
        }
        v->refuses = v->reason[0] != 0;
        v->lowest_loads = sum->lowest > 0 && lowest[0] == 0;
    }
    return NORI_OK;
}

static nori_status find(const nori_model *model, nori_opset_report *r, nori_error *err)
{
    const nori__ir *from = nori__model_ir(model);
    r->summary.opset = nori__ir_opset(from, "");
    r->summary.ir = from->ir_version;
    if (r->summary.opset == 0) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED,
                          "the model imports no operator set of ai.onnx, so there is none to lower");
    }
    NORI__TRY(nori__lowest_opset(model, &r->arena, &r->blockers, &r->summary.lowest, err));
    if (r->summary.lowest > 0) {
        NORI__TRY(lowest_ir(model, r, err));
    }
    nori__ir *ir = NULL;
    NORI__TRY(nori__ir_copy(from, &ir, err));
    nori__resolve(ir);
    nori_status s = ask_runtimes(ir, r, err);
    nori__ir_free(ir);
    return s;
}

nori_status nori_opset_find(const nori_model *model, nori_opset_report **report, nori_error *err)
{
    if (!model || !report) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "model and report must not be NULL");
    }
    const nori_allocator *a = model->source->allocator;
    nori_opset_report *r = nori__alloc_zero(a, sizeof(*r));
    *report = NULL;
    if (!r) {
        return nori__no_memory(err);
    }
    nori__arena_init(&r->arena, a);
    nori__vec_init(&r->blockers, a);
    nori__vec_init(&r->runtimes, a);
    r->summary.size = sizeof(r->summary);
    nori_status s = find(model, r, err);
    if (s != NORI_OK) {
        nori_opset_report_free(r);
        return s;
    }
    *report = r;
    return NORI_OK;
}

void nori_opset_report_free(nori_opset_report *r)
{
    if (r) {
        const nori_allocator *a = r->arena.allocator;
        nori__vec_free(&r->blockers);
        nori__vec_free(&r->runtimes);
        nori__arena_free(&r->arena);
        nori__release(a, r, sizeof(*r));
    }
}

void nori_opset_report_summary(const nori_opset_report *r, nori_opset_summary *summary)
{
    NORI__ASKED(r, );
    NORI__ASKED(summary, );
    size_t size = summary->size < sizeof(r->summary) ? summary->size : sizeof(r->summary);
    memcpy(summary, &r->summary, size);
    summary->size = size;
}

int nori_opset_report_blocker(const nori_opset_report *r, size_t index, nori_blocker *blocker)
{
    NORI__ASKED(r, 0);
    NORI__ASKED(blocker, 0);
    return nori__blocker_at(&r->blockers, index, blocker);
}

int nori_opset_report_runtime(const nori_opset_report *r, size_t index,
                              nori_runtime_verdict *verdict)
{
    NORI__ASKED(r, 0);
    NORI__ASKED(verdict, 0);
    if (index >= r->runtimes.count) {
        return 0;
    }
    size_t size = verdict->size < sizeof(*verdict) ? verdict->size : sizeof(*verdict);
    memcpy(verdict, r->runtimes.items[index], size);
    verdict->size = size;
    return 1;
}

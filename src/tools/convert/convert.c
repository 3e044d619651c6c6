/* convert.c: nori_convert: a copy of the graph goes to its operator set and becomes a model. */
#include "ops/forms.h"
#include "base/given.h"
#include "ops/schema.h"
#include "run/run.h"
#include "tools/convert/lower.h"

struct nori_convert_report {
    nori__arena arena;
    nori__vec blockers; /* nori_blocker */
    nori_convert_summary summary;
};

void nori_convert_options_default(nori_convert_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_convert_options){.size = sizeof(*options)};
}

int64_t nori__least_ir(const nori__ir *ir)
{
    static const struct {
        int elem;
        int64_t ir;
    } types[] = {
        {NORI_FLOAT8E4M3FN, 9}, {NORI_FLOAT8E4M3FNUZ, 9}, {NORI_FLOAT8E5M2, 9},
        {NORI_FLOAT8E5M2FNUZ, 9}, {NORI_UINT4, 10}, {NORI_INT4, 10}, {NORI_FLOAT4E2M1, 11},
        {NORI_FLOAT8E8M0, 12}, {NORI_UINT2, 13}, {NORI_INT2, 13},
    };
    /* Before 4 every initializer is an input as well: files that are that old say so already. */
    int64_t least = ir->ir_version < 4 ? ir->ir_version : 4;
    const nori__pb_model *pb = ir->pb;
#define AT_LEAST(what, version) least = (what) && least < (version) ? (version) : least
    AT_LEAST(pb && pb->functions.count > 0, 8);
    for (const nori__graph *g = ir->graphs; g; g = g->next_graph) {
        AT_LEAST(g->pb && g->pb->sparse_initializers.count > 0, 6);
        for (const nori__value *v = g->values; v; v = v->next) {
            AT_LEAST(v->type.kind == NORI_KIND_OPTIONAL, 8);
            for (size_t i = 0; i < NORI__COUNT(types); i++) {
                AT_LEAST(v->type.elem == types[i].elem, types[i].ir);
            }
        }
    }
#undef AT_LEAST
    return least;
}

/* What has to outlast the conversion: initializers nobody reads, declarations of values. */
static void hold_unread(nori__ir *ir)
{
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__value *v = g->values; v; v = v->next) {
            v->uses += v->constant && !v->producer && v->uses == 0;
        }
    }
}

static void restore_types(nori__ir *ir)
{
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__value *v = g->values; v; v = v->next) {
            if (v->pb) {
                v->type = v->declared;
            }
        }
    }
}

nori_status nori__lower_copy(const nori_model *model, nori__lowering *l)
{
    NORI__TRY(nori__ir_copy(nori__model_ir(model), &l->ir, l->err));
    hold_unread(l->ir);
    return nori__lower(l);
}

static nori_status check_options(const nori_model *model, const nori_convert_options *o,
                                 nori_error *err)
{
    if (o->opset < 0 || o->opset > NORI__OPSET_MAX_ONNX) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "operator set %lld: 1 to %d were expected",
                          (long long)o->opset, NORI__OPSET_MAX_ONNX);
    }
    if (o->opset > 0 && o->lowest) {
        return nori__fail(err, NORI_ERROR_ARGUMENT,
                          "an operator set and the lowest one were asked for");
    }
    if ((o->opset > 0 || o->lowest) && nori__ir_opset(nori__model_ir(model), "") == 0) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED,
                          "the model imports no operator set of ai.onnx, so there is none to change");
    }
    return NORI_OK;
}

/* The IR version the file gets. */
static nori_status settle_ir(const nori__lowering *l, const nori_convert_options *o, int64_t before)
{
    nori__ir *ir = l->ir;
    int64_t least = nori__least_ir(ir), came = nori__ir_of_opset(l->opset), to = ir->ir_version;
    if (o->ir > 0) {
        to = o->ir;
    } else if (l->opset > before) {
        to = to < came ? came : to;
    } else if (l->opset < before) {
        to = to > came ? came : to;
        to = to < least ? least : to;
    }
    if (to < least || to > NORI__IR_VERSION_MAX) {
        nori_status s = nori__fail(l->err, NORI_ERROR_ARGUMENT,
                                   "IR version %lld: %lld to %d were expected, as older ones lack what "
                                   "the model holds", (long long)to, (long long)least,
                                   NORI__IR_VERSION_MAX);
        nori__hint(l->err, "leave the IR version out to get the one the operator set came with");
        return s;
    }
    ir->ir_version = to;
    return NORI_OK;
}

/* One error for all that stand in the way; as many as its text holds are named. */
static nori_status refuse(const nori_convert_report *r, int64_t opset, nori_error *err)
{
    nori__text text;
    nori__text_init(&text, &nori__malloc);
    size_t shown = 0;
    for (; shown < r->blockers.count && text.size < 1500; shown++) {
        const nori_blocker *b = r->blockers.items[shown];
        nori__text_printf(&text, "%s%s: %s", shown ? "; " : "", b->path, b->reason);
    }
    if (shown < r->blockers.count) {
        nori__text_printf(&text, "; and %zu more", r->blockers.count - shown);
    }
    nori_status s = nori__fail(err, NORI_ERROR_UNSUPPORTED,
                               "%zu node%s cannot be written under operator set %lld: %s",
                               r->blockers.count, r->blockers.count == 1 ? "" : "s",
                               (long long)opset, text.failed ? "" : text.data);
    nori__hint(err, "`nori opset` says the lowest one");
    nori__text_free(&text);
    return s;
}

static nori_status convert(const nori_model *model, const nori_convert_options *o,
                           nori_convert_report *r, nori_model **made, nori_error *err)
{
    const nori__ir *from = nori__model_ir(model);
    int64_t before = nori__ir_opset(from, ""), opset = o->opset > 0 ? o->opset : before;
    NORI__TRY(check_options(model, o, err));
    r->summary.opset_before = r->summary.opset_after = before;
    r->summary.ir_before = r->summary.ir_after = from->ir_version;
    if (o->lowest) {
        NORI__TRY(nori__lowest_opset(model, &r->arena, &r->blockers, &opset, err));
        r->blockers.count = 0; /* they block the one below */
        if (opset == 0) {
            return nori__fail(err, NORI_ERROR_UNSUPPORTED, "the model can be written in no operator set");
        }
    }
    nori__lowering l = {.opset = opset, .arena = &r->arena, .blockers = &r->blockers, .err = err};
    nori_status s = opset == before ? nori__ir_copy(from, &l.ir, err) : nori__lower_copy(model, &l);
    if (s == NORI_OK && opset == before) {
        hold_unread(l.ir);
    }
    if (s == NORI_OK && r->blockers.count > 0) {
        s = refuse(r, opset, err);
    }
    s = s == NORI_OK ? settle_ir(&l, o, before) : s;
    if (s == NORI_OK) {
        r->summary.opset_after = opset;
        r->summary.ir_after = l.ir->ir_version;
        r->summary.nodes = l.nodes;
        r->summary.rewritten = l.rewritten;
        restore_types(l.ir);
        s = nori__model_from_ir(model, l.ir, made, err);
    }
    nori__ir_free(l.ir);
    return s;
}

nori_status nori_convert(const nori_model *model, const nori_convert_options *options,
                         nori_model **converted, nori_convert_report **report, nori_error *err)
{
    nori_error own = {0};
    nori_convert_options o;
    err = err ? err : &own;
    if (!model || !converted) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "model and converted must not be NULL");
    }
    nori_convert_options_default(&o);
    if (options) {
        memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
    }
    *converted = NULL;
    if (report) {
        *report = NULL;
    }
    const nori_allocator *a = model->source->allocator;
    nori_convert_report *r = nori__alloc_zero(a, sizeof(*r));
    if (!r) {
        return nori__no_memory(err);
    }
    nori__arena_init(&r->arena, a);
    nori__vec_init(&r->blockers, a);
    r->summary.size = sizeof(r->summary);
    nori_status s = convert(model, &o, r, converted, err);
    if (report && (s == NORI_OK || s == NORI_ERROR_UNSUPPORTED)) {
        *report = r;
    } else {
        nori_convert_report_free(r);
    }
    return s;
}

void nori_convert_report_free(nori_convert_report *r)
{
    if (r) {
        const nori_allocator *a = r->arena.allocator;
        nori__vec_free(&r->blockers);
        nori__arena_free(&r->arena);
        nori__release(a, r, sizeof(*r));
    }
}

int nori_convert_report_blocker(const nori_convert_report *r, size_t index, nori_blocker *blocker)
{
    NORI__ASKED(r, 0);
    NORI__ASKED(blocker, 0);
    return nori__blocker_at(&r->blockers, index, blocker);
}

void nori_convert_report_summary(const nori_convert_report *r, nori_convert_summary *summary)
{
    NORI__ASKED(r, );
    NORI__ASKED(summary, );
    size_t size = summary->size < sizeof(r->summary) ? summary->size : sizeof(r->summary);
    memcpy(summary, &r->summary, size);
    summary->size = size;
}

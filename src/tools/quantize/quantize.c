/* quantize.c: from a float model and samples to a model on integers. */
#include <math.h>

#include "base/given.h"
#include "ops/resolve.h"
#include "run/run.h"
#include "tools/quantize/search.h"

void nori_quantize_options_default(nori_quantize_options *o)
{
    NORI__ASKED(o, );
    *o = (nori_quantize_options){.size = sizeof(*o),
                                 .activation_type = NORI_UINT8,
                                 .weight_type = NORI_INT8,
                                 .per_channel = 1,
                                 .percentile = 99.99,
                                 .method = NORI_RANGE_AUTO,
                                 .search = 1,
                                 .least_sqnr = 20,
                                 .most_top1 = -1};
}

static bool is_wide(nori_type t)
{
    return t == NORI_UINT16 || t == NORI_INT16;
}

static bool is_half_byte(nori_type t)
{
    return t == NORI_UINT4 || t == NORI_INT4;
}

static bool is_half(nori_quantize_kind kind)
{
    return kind == NORI_QUANTIZE_FP16 || kind == NORI_QUANTIZE_BF16;
}

static nori_status check_options(const nori__quantizer *q)
{
    const nori_quantize_options *o = q->options;
    nori_type a = o->activation_type, w = o->weight_type;
    bool alone = o->kind == NORI_QUANTIZE_WEIGHTS;
    if (a != NORI_UINT8 && a != NORI_INT8 && !is_wide(a)) {
        return nori__fail(q->err, NORI_ERROR_ARGUMENT,
                          "activations cannot be %s: uint8, int8, uint16 or int16 was expected",
                          nori_type_name(a));
    }
    if (w != NORI_UINT8 && w != NORI_INT8 && !(alone && is_half_byte(w))) {
        return nori__fail(q->err, NORI_ERROR_ARGUMENT, "weights cannot be %s: %s was expected",
                          nori_type_name(w),
                          alone ? "int8, uint8, int4 or uint4" : "int8 or uint8");
    }
    if (!o->sample && !o->calibration && o->kind == NORI_QUANTIZE_STATIC) {
        return nori__fail(q->err, NORI_ERROR_ARGUMENT, "samples, or a calibration, were expected");
    }
    if (o->calibration && o->kind != NORI_QUANTIZE_STATIC && !is_half(o->kind)) {
        return nori__fail(q->err, NORI_ERROR_ARGUMENT,
                          "a calibration is for static quantization and for half types: the others "
                          "look at no ranges");
    }
    if ((o->form != NORI_FORM_QDQ && (o->kind != NORI_QUANTIZE_STATIC || is_wide(a))) ||
        (o->microsoft && o->form != NORI_FORM_QOPERATOR && o->kind != NORI_QUANTIZE_DYNAMIC)) {
        return nori__fail(q->err, NORI_ERROR_ARGUMENT,
                          "the form of operators on integers is for static quantization to 8 bits, and "
                          "com.microsoft for that form and for dynamic quantization");
    }
    if (o->half_io && !is_half(o->kind)) {
        return nori__fail(q->err, NORI_ERROR_ARGUMENT, "inputs and outputs change to half types only");
    }
    if (alone && o->rounding == NORI_ROUNDING_GPTQ && !o->sample) {
        return nori__fail(q->err, NORI_ERROR_ARGUMENT, "GPTQ needs samples: it looks at what they make of "
                                                       "each product's input");
    }
    bool power = o->block >= 16 && (o->block & (o->block - 1)) == 0;
    if ((o->block != 0 && !power) || ((o->block || o->packed) && !alone) ||
        (o->packed && !o->block)) {
        return nori__fail(q->err, NORI_ERROR_ARGUMENT,
                          "blocks are for weights alone, of 16, 32, 64 ... numbers; the packed "
                          "form needs them");
    }
    return NORI_OK;
}

/* The least operator set that has the forms asked for at all, and the one that has them all. */
static void opsets_of(const nori_quantize_options *o, int64_t *must, int64_t *want,
                      const char **why)
{
    *must = *want = 10;
    *why = "QuantizeLinear";
    if (is_half(o->kind)) {
        *must = o->kind == NORI_QUANTIZE_BF16 ? 13 : 1;
        *want = o->kind == NORI_QUANTIZE_BF16 ? 22 : 1; /* 13 to 21: no convolution, no pooling */
        *why = "bfloat16 for all that computes";
    } else if (o->kind == NORI_QUANTIZE_DYNAMIC) {
        *must = *want = 11;
        *why = "DynamicQuantizeLinear";
    } else if (o->kind == NORI_QUANTIZE_STATIC && is_wide(o->activation_type)) {
        *must = *want = 21;
        *why = "16-bit integers";
    } else if (o->kind == NORI_QUANTIZE_WEIGHTS && !o->packed &&
               (o->block || is_half_byte(o->weight_type))) {
        *must = *want = 21;
        *why = o->block ? "scales in blocks" : "4-bit integers";
    } else if (o->per_channel && !o->packed) {
        *want = 13;
        *why = "scales per channel (--per-tensor does not)";
    }
}

/* Raises the operator set where a form needs it. Per channel is given up where that fails. */
static nori_status fit_opset(nori__quantizer *q)
{
    int64_t have = nori__ir_opset(q->ir, ""), must, want;
    const char *reason;
    opsets_of(q->options, &must, &want, &reason);
    if (have >= want) {
        return NORI_OK;
    }
    nori_error why = {0};
    nori__ir *copy = NULL;
    NORI__TRY(nori__ir_copy(q->ir, &copy, q->err));
    nori_status s = nori__raise_opset(copy, want, &why);
    if (s == NORI_OK) {
        nori__ir_free(q->ir);
        q->ir = copy;
        nori__q_note(q, "the operator set was raised from %lld to %lld, which has %s",
                     (long long)have, (long long)want, reason);
        return NORI_OK;
    }
    nori__ir_free(copy);
    if (s == NORI_ERROR_UNSUPPORTED && have >= must && is_half(q->options->kind)) {
        nori__q_note(q, "operator set %lld was kept, in which fewer operators take bfloat16: %s",
                     (long long)have, why.message);
        return NORI_OK;
    }
    if (s == NORI_ERROR_UNSUPPORTED && have >= must) {
        nori__q_note(q, "one scale a weight is used, as operator set %lld has none per channel: %s",
                     (long long)have, why.message);
        return NORI_OK;
    }
    nori__fail(q->err, s, "%s", why.message);
    nori__where(q->err, "%s", why.where);
    nori__hint(q->err, "export the model again with operator set %lld or newer", (long long)want);
    return s;
}

static uint64_t weight_bytes(const nori__ir *ir)
{
    uint64_t sum = 0;
    for (const nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (const nori__value *v = g->values; v; v = v->next) {
            sum += v->constant && !v->producer && v->uses > 0 ? v->constant->bytes : 0;
        }
    }
    return sum;
}

nori_status nori__q_import_microsoft(nori__ir *ir, nori_error *err)
{
    if (nori__ir_opset(ir, "com.microsoft") > 0) {
        return NORI_OK;
    }
    nori__opset *grown = nori__arena_array(&ir->arena, ir->opset_count + 1, sizeof(*grown));
    if (!grown) {
        return nori__no_memory(err);
    }
    memcpy(grown, ir->opsets, ir->opset_count * sizeof(*grown));
    grown[ir->opset_count++] = (nori__opset){"com.microsoft", 1};
    ir->opsets = grown;
    return NORI_OK;
}

static nori_status quantize(nori__quantizer *q, nori_model **result)
{
    nori_model *before = NULL;
    NORI__TRY(nori__ir_copy(nori__model_ir(q->model), &q->ir, q->err));
    NORI__TRY(nori__ir_settle(q->ir, q->err));
    NORI__TRY(check_options(q));
    NORI__TRY(fit_opset(q));
    if (q->options->kind == NORI_QUANTIZE_STATIC) {
        NORI__TRY(nori__q_constants(q));
        nori__q_summary(q->report)->weight_bytes_before = weight_bytes(q->ir);
        NORI__TRY(nori__q_search(q, result));
        nori__q_summary(q->report)->weight_bytes_after = weight_bytes(q->ir);
        return q->options->form == NORI_FORM_QOPERATOR ? nori__q_form_operators(q, result) : NORI_OK;
    }
    NORI__TRY(nori__q_prepare(q));
    nori__q_summary(q->report)->weight_bytes_before = weight_bytes(q->ir);
    nori_quantize_kind kind = q->options->kind;
    if (!is_half(kind)) {
        NORI__TRY(nori__q_select_weights(q));
    } else if (q->options->sample || q->options->calibration) {
        NORI__TRY(nori__q_calibrate(q));
    }
    NORI__TRY(nori__model_from_ir(q->model, q->ir, &before, q->err));
    nori_status s = is_half(kind)                   ? nori__q_emit_half(q)
                    : kind == NORI_QUANTIZE_DYNAMIC ? nori__q_emit_dynamic(q)
                                                    : nori__q_emit_weights(q);
    s = s == NORI_OK && q->options->packed ? nori__q_import_microsoft(q->ir, q->err) : s;
    s = s == NORI_OK ? nori__model_from_ir(q->model, q->ir, result, q->err) : s;
    s = s == NORI_OK && q->options->sample ? nori__q_measure(q, before, *result) : s;
    if (s == NORI_OK && q->options->half_io) { /* measured before: samples are float32 */
        nori_model_free(*result);
        *result = NULL;
        s = nori__q_half_io(q);
        s = s == NORI_OK ? nori__model_from_ir(q->model, q->ir, result, q->err) : s;
    }
    nori__q_summary(q->report)->weight_bytes_after = weight_bytes(q->ir);
    nori_model_free(before);
    return s;
}

nori_status nori_quantize(const nori_model *model, const nori_quantize_options *options,
                          nori_model **quantized, nori_quantize_report **report, nori_error *err)
{
    NORI__GIVEN(err, model);
    NORI__GIVEN(err, quantized);
    nori_quantize_options o;
    nori_error own = {0};
    err = err ? err : &own;
    nori_quantize_options_default(&o);
    if (options) {
        memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
    }
    *quantized = NULL;
    nori__quantizer q = {.options = &o,
                         .model = model,
                         .allocator = model->source->allocator,
                         .err = err};
    nori__arena_init(&q.arena, q.allocator);
    nori__map_init(&q.units, q.allocator);
    nori__map_init(&q.channels, q.allocator);
    nori__map_init(&q.roundings, q.allocator);
    nori__vec_init(&q.rounding_list, q.allocator);
    nori__arena_init(&q.rounding_room, q.allocator);
    nori__vec_init(&q.unit_list, q.allocator);
    q.method = o.method == NORI_RANGE_AUTO ? NORI_RANGE_MINMAX : o.method;
    q.report = nori__q_report_new(q.allocator);
    nori_status s = q.report ? quantize(&q, quantized) : nori__no_memory(err);
    nori__ir_free(q.ir);
    if (q.seen != o.calibration) {
        nori_calibration_free(q.seen);
    }
    nori__map_free(&q.units);
    nori__map_free(&q.channels);
    nori__q_forget_roundings(&q);
    nori__vec_free(&q.unit_list);
    nori__arena_free(&q.arena);
    if (s != NORI_OK) {
        nori_model_free(*quantized);
        *quantized = NULL;
    }
    if (s != NORI_OK || !report) {
        nori_quantize_report_free(q.report);
        q.report = NULL;
    }
    if (report) {
        *report = q.report;
    }
    return s;
}

/* search_report.c: what the search tried, found and advises. */
#include <math.h>
#include <stdio.h>

#include "tools/quantize/cost_report.h"
#include "base/given.h"
#include "tools/quantize/search.h"

static char *text_of(nori_quantize_report *r, const char *fmt, va_list args)
{
    char text[512];
    vsnprintf(text, sizeof(text), fmt, args);
    return nori__arena_text(&r->arena, text);
}

void nori__q_advise(nori__quantizer *q, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *copy = text_of(q->report, fmt, args);
    va_end(args);
    if (copy) {
        nori__vec_push(&q->report->advice, copy);
    }
}

void nori__q_report_step(nori__quantizer *q, const char *name, bool kept, double before,
                         double after, const char *why)
{
    nori_quantize_report *r = q->report;
    nori_quantize_step_row *row = nori__arena_alloc(&r->arena, sizeof(*row));
    if (row && nori__vec_push(&r->steps, row)) {
        *row = (nori_quantize_step_row){
            .name = name, .kept = kept, .sqnr_before = before, .sqnr_after = after, .reason = why};
    }
}

void nori__q_report_no_step(nori__quantizer *q, const char *name, const char *why)
{
    for (size_t i = 0; i < q->report->steps.count; i++) {
        nori_quantize_step_row *row = q->report->steps.items[i];
        if (nori__same(row->name, name)) {
            row->kept = false;
            row->reason = why;
        }
    }
}

void nori__q_report_unit(nori__quantizer *q, const nori__q_unit *unit)
{
    nori_quantize_node *e = nori__map_get(&q->report->by_node, unit->path);
    if (e) {
        e->alone_sqnr = unit->alone < 0 ? NAN : unit->alone > 0 ? -10 * log10(unit->alone) : INFINITY;
        e->float_ms = unit->float_ns < 0 ? NAN : unit->float_ns / 1e6;
        e->int_ms = unit->int_ns < 0 ? NAN : unit->int_ns / 1e6;
    }
}

void nori__q_report_try(nori__q_tries *t, const char *label, const nori__q_score *score,
                        uint64_t bytes)
{
    nori_quantize_report *r = t->q->report;
    nori_quantize_try *row = nori__arena_alloc(&r->arena, sizeof(*row));
    char *name = nori__arena_text(&r->arena, label);
    size_t spared = 0;
    for (size_t i = 0; i < t->q->unit_list.count; i++) {
        spared += ((const nori__q_unit *)t->q->unit_list.items[i])->why != NULL;
    }
    if (row && name && nori__vec_push(&r->tries, row)) {
        *row = (nori_quantize_try){.label = name,
                                   .spared = spared,
                                   .sqnr = score->sqnr,
                                   .top1_changed = score->top1,
                                   .ms = score->ns / 1e6,
                                   .weight_bytes = bytes};
    }
}

/* ---- for callers ---- */

int nori_quantize_report_step(const nori_quantize_report *r, size_t i, nori_quantize_step_row *row)
{
    NORI__ASKED(r, 0);
    NORI__ASKED(row, 0);
    if (i >= r->steps.count) {
        return 0;
    }
    nori_quantize_step_row e = *(const nori_quantize_step_row *)r->steps.items[i];
    e.size = row->size;
    memcpy(row, &e, row->size < sizeof(e) ? row->size : sizeof(e));
    return 1;
}

/* Nobody beats it in one thing without losing in another. */
static bool on_front(const nori_quantize_report *r, const nori_quantize_try *e)
{
    for (size_t i = 0; i < r->tries.count; i++) {
        const nori_quantize_try *o = r->tries.items[i];
        bool no_worse = o->sqnr >= e->sqnr && o->ms <= e->ms && o->weight_bytes <= e->weight_bytes;
        bool better = o->sqnr > e->sqnr || o->ms < e->ms || o->weight_bytes < e->weight_bytes;
        if (no_worse && better) {
            return false;
        }
    }
    return true;
}

int nori_quantize_report_try(const nori_quantize_report *r, size_t i, nori_quantize_try *row)
{
    NORI__ASKED(r, 0);
    NORI__ASKED(row, 0);
    if (i >= r->tries.count) {
        return 0;
    }
    nori_quantize_try e = *(const nori_quantize_try *)r->tries.items[i];
    e.size = row->size;
    e.pareto = on_front(r, r->tries.items[i]);
    memcpy(row, &e, row->size < sizeof(e) ? row->size : sizeof(e));
    return 1;
}

const char *nori_quantize_report_advice(const nori_quantize_report *r, size_t i)
{
    NORI__ASKED(r, NULL);
    return i < r->advice.count ? r->advice.items[i] : NULL;
}

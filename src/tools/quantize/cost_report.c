/* cost_report.c: what the quantizer has to say. */
#include <math.h>
#include <stdio.h>

#include "tools/quantize/cost_report.h"
#include "base/given.h"

nori_quantize_report *nori__q_report_new(const nori_allocator *a)
{
    nori_quantize_report *r = nori__alloc_zero(a, sizeof(*r));
    if (r) {
        r->allocator = a;
        nori__arena_init(&r->arena, a);
        nori__vec_init(&r->nodes, a);
        nori__vec_init(&r->values, a);
        nori__vec_init(&r->notes, a);
        nori__vec_init(&r->advice, a);
        nori__vec_init(&r->steps, a);
        nori__vec_init(&r->tries, a);
        nori__map_init(&r->by_node, a);
        r->summary.size = sizeof(r->summary);
        r->summary.output_sqnr = NAN;
    }
    return r;
}

void nori_quantize_report_free(nori_quantize_report *r)
{
    if (r) {
        nori__vec_free(&r->nodes);
        nori__vec_free(&r->values);
        nori__vec_free(&r->notes);
        nori__vec_free(&r->advice);
        nori__vec_free(&r->steps);
        nori__vec_free(&r->tries);
        nori__map_free(&r->by_node);
        nori__arena_free(&r->arena);
        nori__release(r->allocator, r, sizeof(*r));
    }
}

nori_quantize_summary *nori__q_summary(nori_quantize_report *r)
{
    return &r->summary;
}

/* Reports are best effort: what does not fit in memory is missing from them. */
static nori_quantize_node *entry(nori__quantizer *q, const nori__node *n)
{
    nori_quantize_report *r = q->report;
    char path[512];
    nori__node_path(n, path, sizeof(path));
    nori_quantize_node *e = nori__map_get(&r->by_node, path);
    if (!e) {
        char *copy = nori__arena_text(&r->arena, path);
        e = nori__arena_alloc(&r->arena, sizeof(*e));
        char *op = nori__arena_text(&r->arena, n->op_type);
        if (!e || !copy || !op || !nori__map_put(&r->by_node, copy, e) ||
            !nori__vec_push(&r->nodes, e)) {
            return NULL;
        }
        *e = (nori_quantize_node){.path = copy,
                                  .op = op,
                                  .reason = "",
                                  .alone_sqnr = NAN,
                                  .float_ms = NAN,
                                  .int_ms = NAN};
    }
    return e;
}

void nori__q_report_node(nori__quantizer *q, const nori__node *n, const char *fmt, ...)
{
    nori_quantize_node *e = entry(q, n);
    char text[256] = "";
    if (fmt) {
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof(text), fmt, args);
        va_end(args);
    }
    if (e) {
        char *copy = nori__arena_text(&q->report->arena, text);
        e->reason = copy ? copy : "";
        e->quantized = fmt == NULL;
    }
}

void nori__q_report_weight(nori__quantizer *q, const nori__node *n, double sqnr)
{
    nori_quantize_node *e = entry(q, n);
    if (e) {
        e->weight_sqnr = sqnr;
    }
}

#define BINS 64

/* The observer's bins in fewer, over what was seen; a bin goes where its middle lies. */
static const uint64_t *histogram(nori__quantizer *q, const nori__observer *o)
{
    uint64_t *counts = o->max > o->min ? nori__arena_array(&q->report->arena, BINS, sizeof(*counts)) : NULL;
    for (int i = 0; counts && i < 2 * NORI__BINS; i++) {
        double middle = ldexp((double)(i - NORI__BINS) + 0.5, o->exponent);
        double at = (middle - o->min) / (o->max - o->min) * BINS;
        counts[at < 0 ? 0 : at >= BINS ? BINS - 1 : (int)at] += o->bins[i];
    }
    return counts;
}

void nori__q_report_value(nori__quantizer *q, const nori__value *v, double sqnr)
{
    const nori__q_value *root = nori__q_root(q, v), *own = nori__q_of(q, v);
    nori_quantize_value *e = nori__arena_alloc(&q->report->arena, sizeof(*e));
    char *name = nori__arena_text(&q->report->arena, v->name);
    if (e && name && nori__vec_push(&q->report->values, e)) {
        *e = (nori_quantize_value){.name = name,
                                   .seen_min = own->seen->min,
                                   .seen_max = own->seen->max,
                                   .low = root->range.low,
                                   .high = root->range.high,
                                   .scale = root->quant.scale,
                                   .zero_point = root->quant.zero_point,
                                   .clipped = root->range.clipped,
                                   .sqnr = sqnr};
        e->counts = histogram(q, own->seen);
        e->bins = e->counts ? BINS : 0;
    }
}

void nori__q_note(nori__quantizer *q, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    char *copy = nori__arena_text(&q->report->arena, text);
    if (copy) {
        nori__vec_push(&q->report->notes, copy);
    }
}

/* ---- for callers ---- */

int nori_quantize_report_node(const nori_quantize_report *r, size_t i, nori_quantize_node *node)
{
    NORI__ASKED(r, 0);
    NORI__ASKED(node, 0);
    if (i >= r->nodes.count) {
        return 0;
    }
    nori_quantize_node e = *(const nori_quantize_node *)r->nodes.items[i];
    e.size = node->size;
    memcpy(node, &e, node->size < sizeof(e) ? node->size : sizeof(e));
    return 1;
}

int nori_quantize_report_value(const nori_quantize_report *r, size_t i, nori_quantize_value *value)
{
    NORI__ASKED(r, 0);
    NORI__ASKED(value, 0);
    if (i >= r->values.count) {
        return 0;
    }
    nori_quantize_value e = *(const nori_quantize_value *)r->values.items[i];
    e.size = value->size;
    memcpy(value, &e, value->size < sizeof(e) ? value->size : sizeof(e));
    return 1;
}

const char *nori_quantize_report_note(const nori_quantize_report *r, size_t i)
{
    NORI__ASKED(r, NULL);
    return i < r->notes.count ? r->notes.items[i] : NULL;
}

void nori_quantize_report_summary(const nori_quantize_report *r, nori_quantize_summary *summary)
{
    NORI__ASKED(r, );
    NORI__ASKED(summary, );
    nori_quantize_summary s = r->summary;
    s.size = summary->size;
    for (size_t i = 0; i < r->nodes.count; i++) {
        s.nodes++;
        s.quantized_nodes += ((const nori_quantize_node *)r->nodes.items[i])->quantized != 0;
    }
    memcpy(summary, &s, summary->size < sizeof(s) ? summary->size : sizeof(s));
}

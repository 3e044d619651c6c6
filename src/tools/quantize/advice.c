/* advice.c: what may be done about what the report shows: which option fits which finding. */
#include <math.h>

#include "tools/quantize/cost_report.h"
#include "tools/quantize/search.h"

#define FEW_SAMPLES 16
#define CLIPPED 1e-3      /* share of a value's numbers that is worth a word */
#define OUTLIERS 16.0     /* times the range that all but a thousandth of the numbers need */
#define POOR_WEIGHT 25.0  /* dB of a weight alone */
#define NAMED 3           /* values of each kind */

static double width(double low, double high)
{
    return (high > 0 ? high : 0) - (low < 0 ? low : 0);
}

/* Values whose range is far wider than nearly all their numbers need, the worst first. */
static void outliers(nori__q_tries *t)
{
    nori__quantizer *q = t->q;
    const nori__value *worst[NAMED] = {NULL};
    double ratio[NAMED] = {0};
    for (const nori__value *v = q->ir->main->values; v; v = v->next) {
        const nori__q_value *own = v->id < q->n_values ? nori__q_of(q, v) : NULL;
        if (!own || !own->pair || own->root != v || !own->ranged || own->seen->count < 1000) {
            continue;
        }
        nori__range most = nori__range_choose(own->seen, NORI_RANGE_PERCENTILE, 99.9,
                                              q->options->activation_type, false);
        double needed = width(most.low, most.high);
        double r = needed > 0 ? width(own->range.low, own->range.high) / needed : 0;
        for (int i = 0; i < NAMED && r > OUTLIERS; i++) {
            if (r > ratio[i]) {
                for (int k = NAMED - 1; k > i; k--) {
                    ratio[k] = ratio[k - 1];
                    worst[k] = worst[k - 1];
                }
                ratio[i] = r;
                worst[i] = v;
                break;
            }
        }
    }
    for (int i = 0; i < NAMED && worst[i]; i++) {
        nori__q_advise(q,
                       "%s has outliers: its range [%g, %g] is %.0f times what 99.9 %% of its numbers "
                       "need; --method percentile or mse clips them",
                       worst[i]->name, nori__q_of(q, worst[i])->range.low,
                       nori__q_of(q, worst[i])->range.high, ratio[i]);
    }
}

static void clipped(nori__q_tries *t)
{
    nori__quantizer *q = t->q;
    size_t named = 0;
    for (const nori__value *v = q->ir->main->values; v && named < NAMED; v = v->next) {
        const nori__q_value *own = v->id < q->n_values ? nori__q_of(q, v) : NULL;
        if (own && own->pair && own->root == v && own->ranged && own->range.clipped > CLIPPED) {
            nori__q_advise(q, "%.2f %% of %s are clipped to [%g, %g], seen were [%g, %g]: --method minmax "
                              "clips nothing",
                           own->range.clipped * 100, v->name, own->range.low, own->range.high,
                           own->seen->min, own->seen->max);
            named++;
        }
    }
}

static void weights(nori__q_tries *t)
{
    nori__quantizer *q = t->q;
    size_t poor = 0;
    const char *first = "";
    for (size_t i = 0; i < q->report->nodes.count; i++) {
        const nori_quantize_node *n = q->report->nodes.items[i];
        if (n->quantized && n->weight_sqnr != 0 && n->weight_sqnr < POOR_WEIGHT) {
            first = poor == 0 ? n->path : first;
            poor++;
        }
    }
    if (poor > 0 && !q->options->per_channel) {
        nori__q_advise(q, "the weights of %zu layers, %s first, are rounded coarsely by one scale each: "
                          "leave out --per-tensor",
                       poor, first);
    }
}

static void spared(nori__q_tries *t)
{
    nori__quantizer *q = t->q;
    size_t count = 0, others = 0;
    for (size_t i = 0; i < q->unit_list.count; i++) {
        const nori__q_unit *u = q->unit_list.items[i];
        count += u->why && !u->slow; /* slow ones say nothing of accuracy */
        others += u->why != NULL;
    }
    if (q->by_cost > 0) {
        nori__q_advise(q, "%zu of %zu layers stay float as integers would %s; "
                          "--size-first puts them on integers, too, for a smaller file",
                       q->by_cost, q->weighed + others,
                       q->little ? "win too little time on the whole, and save few bytes"
                                 : "make them slower");
    }
    double sqnr = nori__q_summary(q->report)->output_sqnr;
    bool wide = q->options->activation_type == NORI_INT16 || q->options->activation_type == NORI_UINT16;
    if (count > 0 && !wide) {
        nori__q_advise(q, "%zu of %zu layers stay float for the budget; --activations int16 keeps them on "
                          "integers, --budget sqnr=...dB moves the line",
                       count, q->unit_list.count);
    }
    if (count * 2 > q->unit_list.count) {
        nori__q_advise(q, "more than half of the layers stay float: the model does not take 8 bits as it is; "
                          "quantization-aware training would teach it");
    }
    if (sqnr < q->options->least_sqnr) {
        nori__q_advise(q, "%.1f dB is below the budget of %g dB: --nodes shows what each layer costs; "
                          "--exclude NAME keeps one float, --activations int16 rounds 256 times finer",
                       sqnr, q->options->least_sqnr);
    }
}

void nori__q_give_advice(nori__q_tries *t)
{
    size_t samples = nori__q_summary(t->q->report)->samples;
    if (samples > 0 && samples < FEW_SAMPLES) {
        nori__q_advise(t->q, "%zu samples say little of the ranges to come: a few dozen real inputs are "
                             "better",
                       samples);
    }
    spared(t);
    clipped(t);
    outliers(t);
    weights(t);
}

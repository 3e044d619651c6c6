/* tune_report.c: what tuning found, as callers see it, and as a plan. */
#include "base/given.h"
#include "providers/cpu/ways.h"
#include "run/plan_file.h"
#include "tools/tune/tune.h"

void nori_tuning_free(nori_tuning *t)
{
    if (t) {
        nori__arena_free(&t->arena);
        nori__release(t->a, t, sizeof(*t));
    }
}

void nori_tuning_report(const nori_tuning *t, nori_tune_report *report)
{
    NORI__ASKED(t, );
    NORI__ASKED(report, );
    nori_tune_report r = t->report;
    r.size = report->size;
    memcpy(report, &r, r.size < sizeof(r) ? r.size : sizeof(r));
}

static const char *name_of(uint32_t kind, uint32_t way)
{
    const nori__way *w = nori__way_at(kind, way);
    return w ? w->name : "";
}

int nori_tuning_layer(const nori_tuning *t, size_t index, nori_tuned_layer *layer)
{
    NORI__ASKED(t, 0);
    NORI__ASKED(layer, 0);
    if (index >= t->n_layers) {
        return 0;
    }
    const nori__tuned *l = &t->layers[index];
    const nori__tuned_pair *p = &l->pair[l->taken];
    bool changed = t->report.faster && l->taken != l->ask.usual;
    nori_tuned_layer r = {.size = layer->size,
                          .node = l->node,
                          .usual = name_of(l->ask.kind, l->ask.usual),
                          .taken = name_of(l->ask.kind, changed ? l->taken : l->ask.usual),
                          .nodes = l->nodes,
                          .usual_us = p->usual_us,
                          .taken_us = changed ? p->us : p->usual_us};
    for (uint32_t w = 0; !p->measured && w < NORI__WAYS_MOST; w++) {
        if (l->pair[w].measured) { /* it stays as it is: as one of the pairs has it */
            r.usual_us = r.taken_us = l->pair[w].usual_us;
        }
    }
    nori__layer_text(l->ask.kind, &l->ask.layer, r.layer, sizeof(r.layer));
    memcpy(layer, &r, r.size < sizeof(r) ? r.size : sizeof(r));
    return 1;
}

int nori_tuning_way(const nori_tuning *t, size_t layer, size_t index, nori_tuned_way *way)
{
    NORI__ASKED(t, 0);
    NORI__ASKED(way, 0);
    const nori__tuned *l = layer < t->n_layers ? &t->layers[layer] : NULL;
    uint32_t w = 0;
    for (size_t seen = 0; l && w < NORI__WAYS_MOST; w++) {
        if ((l->ask.fits >> w & 1) != 0 && w != l->ask.usual && seen++ == index) {
            break;
        }
    }
    if (!l || w == NORI__WAYS_MOST) {
        return 0;
    }
    const nori__tuned_pair *p = &l->pair[w];
    nori_tuned_way r = {.size = way->size, .way = name_of(l->ask.kind, w), .usual_us = p->usual_us,
                        .us = p->us, .measured = p->measured};
    memcpy(way, &r, r.size < sizeof(r) ? r.size : sizeof(r));
    return 1;
}

nori_status nori_plan_write_tuned(const nori_model *model, const nori_session_options *options,
                                  const nori_tuning *t, const char *path, nori_plan_info *info,
                                  nori_error *err)
{
    NORI__GIVEN(err, t);
    nori__ways ways = {t->entries, t->n_entries, t->report.threads};
    return nori__plan_write_with(model, options, &ways, path, info, err);
}

int nori_session_layer(const nori_session *s, size_t index, nori_tuned_layer *layer)
{
    NORI__ASKED(s, 0);
    NORI__ASKED(layer, 0);
    const nori__way_noted *noted = NULL;
    size_t count = s->packs && s->plan ? nori__ways_noted(s->packs, &noted) : 0, at = 0;
    for (size_t seen = 0; at < count; at++) {
        bool choice = (noted[at].ask.fits & (noted[at].ask.fits - 1)) != 0;
        if (choice && seen++ == index) {
            break;
        }
    }
    if (at == count) {
        return 0;
    }
    const nori__way_noted *n = &noted[at];
    nori_tuned_layer r = {.size = layer->size,
                          .node = s->steps[n->taken.step]->node->name,
                          .usual = name_of(n->ask.kind, n->ask.usual),
                          .taken = name_of(n->ask.kind, n->taken.way),
                          .nodes = 1};
    nori__layer_text(n->ask.kind, &n->ask.layer, r.layer, sizeof(r.layer));
    memcpy(layer, &r, r.size < sizeof(r) ? r.size : sizeof(r));
    return 1;
}

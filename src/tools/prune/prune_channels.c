/* prune_channels.c: channels of least weight leave the graph: of every group of layers whose results have
 * the same channels (prune_group.c) the same ones, so that shapes still fit. */
#include <math.h>
#include <stdlib.h>

#include "ops/resolve.h"
#include "tools/prune/prune.h"

/* What became of a layer; by id of the node. */
typedef struct outcome {
    nori_prune_node row;
    const char *why;
    bool known;
} outcome;

/* ---- taking channels out ---- */

static nori_status shorten(nori__pruner *p, const nori__prune_cut *c, const bool *keep, int64_t channels,
                           int64_t kept)
{
    const nori__value *v = c->node->inputs[c->input];
    const nori_tensor *t = v->constant;
    int64_t dims[NORI_MAX_RANK], outer = 1, inner = c->stretch;
    nori_tensor *made = NULL;
    for (int d = 0; d < t->rank; d++) {
        dims[d] = d == c->axis ? kept * c->stretch : t->dims[d];
        outer *= d < c->axis ? t->dims[d] : 1;
        inner *= d > c->axis ? t->dims[d] : 1;
    }
    NORI__TRY(nori__tensor_new(p->ir->allocator, NORI_FLOAT, t->rank, dims, &made, p->err));
    float *to = made->data;
    const float *from = t->data;
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < channels; i++, from += inner) {
            if (keep[i]) {
                memcpy(to, from, (size_t)inner * sizeof(float));
                to += inner;
            }
        }
    }
    const char *name = nori__arena_printf(&p->arena, "%s_pruned", v->name);
    nori__value *value = name ? nori__const_new(p->ir->main, name, made) : NULL;
    if (!name) {
        nori_tensor_free(made);
    }
    return value && nori__node_set_input(c->node, c->input, value) ? NORI_OK
                                                                   : nori__no_memory(p->err);
}

typedef struct ranked {
    double size; /* sum of |w| */
    int64_t channel;
} ranked;

static int by_size(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    int order = (x->size > y->size) - (x->size < y->size);
    return order ? order : (x->channel > y->channel) - (x->channel < y->channel);
}

/* Each layer counts alike, whatever the scale of its weights. */
static void add_sizes(const nori_tensor *t, int axis, ranked *r)
{
    int64_t channels = t->dims[axis], inner = 1;
    double all = 0;
    for (int d = axis + 1; d < t->rank; d++) {
        inner *= t->dims[d];
    }
    for (int64_t i = 0; i < t->count; i++) {
        all += fabs(nori__tensor_get_f64(t, i));
    }
    for (int64_t i = 0; i < t->count && all > 0; i++) {
        r[i / inner % channels].size += fabs(nori__tensor_get_f64(t, i)) / all;
    }
}

/* Marks the channels that stay; how many. */
static nori_status choose(nori__pruner *p, const nori__prune_group *g, bool **keep, int64_t *kept)
{
    ranked *r = nori__arena_array(&p->arena, (size_t)g->channels, sizeof(*r));
    *keep = nori__arena_array(&p->arena, (size_t)g->channels, sizeof(**keep));
    if (!r || !*keep) {
        return nori__no_memory(p->err);
    }
    for (int64_t c = 0; c < g->channels; c++) {
        r[c].channel = c;
    }
    for (size_t i = 0; i < g->layers.count; i++) {
        const nori__node *n = g->layers.items[i];
        add_sizes(n->inputs[1]->constant, nori__prune_out_axis(n), r);
    }
    qsort(r, (size_t)g->channels, sizeof(*r), by_size);
    int64_t drop = (int64_t)floor(p->options->share * (double)g->channels);
    drop = drop < g->channels ? drop : g->channels - 1;
    for (int64_t i = drop; i < g->channels; i++) {
        (*keep)[r[i].channel] = true;
    }
    *kept = g->channels - drop;
    return NORI_OK;
}

/* The channels go. What each layer loses of its own is told of it, what readers lose of the first. */
static nori_status take_out(nori__pruner *p, const nori__prune_group *g, outcome *outcomes, bool *keep,
                            int64_t kept)
{
    const nori__node *first = g->layers.items[0];
    for (size_t i = 0; i < g->layers.count; i++) {
        const nori__node *n = g->layers.items[i];
        outcomes[n->id].row.channels_after = kept;
        outcomes[n->id].why = NULL;
    }
    for (size_t i = 0; i < g->cuts.count; i++) {
        const nori__prune_cut *c = g->cuts.items[i];
        int64_t before = c->node->inputs[c->input]->constant->count;
        NORI__TRY(shorten(p, c, keep, g->channels, kept));
        bool own = outcomes[c->node->id].known && outcomes[c->node->id].row.channels_after == kept;
        outcomes[own ? c->node->id : first->id].row.removed +=
            (uint64_t)(before - c->node->inputs[c->input]->constant->count);
    }
    for (size_t i = 0; i < g->grouped.count; i++) {
        if (!nori__node_set_int(g->grouped.items[i], "group", kept)) {
            return nori__no_memory(p->err);
        }
    }
    return NORI_OK;
}

/* Of the layer and of those whose results have the same channels. */
static nori_status prune_layer(nori__pruner *p, nori__node *n, outcome *outcomes)
{
    const nori_tensor *t = n->inputs[1]->constant;
    outcome *own = &outcomes[n->id];
    own->why = nori__prune_unfit(n);
    own->known = true;
    if (own->why) {
        return NORI_OK;
    }
    nori__prune_group g;
    bool *keep = NULL;
    int64_t kept = t->dims[nori__prune_out_axis(n)];
    own->row.channels_before = own->row.channels_after = kept;
    NORI__TRY(nori__prune_group_find(p, n, &g));
    nori_status s = NORI_OK;
    if (!g.fits) {
        own->why = nori__arena_text(&p->arena, g.why);
        s = own->why ? NORI_OK : nori__no_memory(p->err);
    } else {
        for (size_t i = 0; i < g.layers.count; i++) {
            outcome *o = &outcomes[((const nori__node *)g.layers.items[i])->id];
            o->row.channels_before = o->row.channels_after = g.channels;
            o->why = "it has too few channels for one to go";
            o->known = true;
        }
        s = choose(p, &g, &keep, &kept);
        s = s == NORI_OK && kept < g.channels ? take_out(p, &g, outcomes, keep, kept) : s;
    }
    nori__prune_group_free(&g);
    return s;
}

static bool weighted(const nori__pruner *p, const nori__node *n)
{
    return n->output_count > 0 && n->outputs[0] && nori__prune_weighted(p, n);
}

nori_status nori__prune_channels(nori__pruner *p)
{
    outcome *outcomes = nori__arena_array(&p->arena, (size_t)p->ir->node_count + 1, sizeof(*outcomes));
    if (!outcomes) {
        return nori__no_memory(p->err);
    }
    NORI__TRY(nori__prune_index(p));
    for (nori__node *n = p->ir->main->first; n; n = n->next) {
        if (weighted(p, n)) {
            outcomes[n->id].row.weights = (uint64_t)n->inputs[1]->constant->count;
        }
    }
    for (nori__node *n = p->ir->main->first; n; n = n->next) {
        if (weighted(p, n) && !outcomes[n->id].known) {
            NORI__TRY(prune_layer(p, n, outcomes));
        }
    }
    for (nori__node *n = p->ir->main->first; n; n = n->next) {
        if (outcomes[n->id].known) {
            nori__prune_report_node(p, n, outcomes[n->id].row, outcomes[n->id].why);
        }
    }
    /* What was declared of inner values may be true no more. */
    for (nori__value *v = p->ir->main->values; v; v = v->next) {
        if (v->producer && !(v->flags & NORI__VALUE_OUTPUT)) {
            v->type = (nori__type){.rank = -1};
            v->declared = v->type;
            v->pb = NULL;
        }
    }
    return nori__infer_graph(p->ir, p->err);
}

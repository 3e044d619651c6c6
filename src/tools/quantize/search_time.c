/* search_time.c: what each layer takes on this machine, in float and on integers, and sparing those
 * that integers make slower. Every step of both sessions is timed over several rounds in turns, and
 * its least time counts: what else the machine does then hardly shows. */
#include <math.h>

#include "run/run.h"
#include "tools/quantize/search.h"

#define ROUNDS 7
#define MOST_TRIES 4
#define SLOWER 1.05 /* times the float layer's time: less is chance */

typedef struct timing {
    nori_session *session;
    uint64_t *least; /* ns, by step */
    nori_tensor **out;
    bool ints;
} timing;

/* Nodes and values, by name, of the layer in whose stretch of the graph they are. */
static nori_status map_names(nori__quantizer *q, nori__map *owner)
{
    nori__q_unit *unit = NULL;
    for (const nori__node *n = q->ir->main->first; n; n = n->next) {
        for (uint32_t i = 0; i < n->output_count; i++) {
            const nori__value *v = n->outputs[i];
            nori__q_unit *own = v ? nori__map_get(&q->units, v->name) : NULL;
            unit = own ? own : unit;
            if (i == 0 && unit && n->name[0] && !nori__map_put(owner, n->name, unit)) {
                return nori__no_memory(q->err);
            }
            if (v && unit && !nori__map_put(owner, v->name, unit)) {
                return nori__no_memory(q->err);
            }
        }
    }
    return NORI_OK;
}

/* The quantized graph and the provider's rewrites give names an ending. */
static nori__q_unit *named(const nori__map *owner, const char *name)
{
    static const char *const endings[] = {"_float", "_quantized", "_dequantized", "_QuantizeLinear",
                                          "_DequantizeLinear"};
    size_t size = strlen(name);
    while (size > 2 && name[size - 1] >= '0' && name[size - 1] <= '9') {
        size--; /* "__1": of a copy */
    }
    size = size > 2 && memcmp(name + size - 2, "__", 2) == 0 ? size - 2 : strlen(name);
    nori__q_unit *unit = nori__map_get(owner, name);
    unit = unit ? unit : nori__map_get_n(owner, name, size);
    for (size_t k = 0; !unit && k < NORI__COUNT(endings); k++) {
        size_t cut = strlen(endings[k]);
        bool has = size > cut && memcmp(name + size - cut, endings[k], cut) == 0;
        unit = has ? nori__map_get_n(owner, name, size - cut) : NULL;
    }
    return unit;
}

static nori__q_unit *owner_of(const nori__map *owner, const nori__node *n)
{
    nori__q_unit *unit = named(owner, n->name);
    for (uint32_t i = 0; !unit && i < n->output_count; i++) {
        unit = n->outputs[i] ? named(owner, n->outputs[i]->name) : NULL;
    }
    return unit;
}

static nori_status open(nori__q_tries *t, nori__arena *room, const nori_model *model, timing *m)
{
    nori_session_options o;
    nori_session_options_default(&o);
    o.threads = t->q->options->threads;
    o.profile = 1;
    NORI__TRY(nori_session_create(model, &o, &m->session, t->q->err));
    m->least = nori__arena_array(room, m->session->n_step_ids + 1, sizeof(*m->least));
    m->out = nori__arena_array(room, t->probe.n_out + 1, sizeof(*m->out));
    return m->least && m->out ? NORI_OK : nori__no_memory(t->q->err);
}

static nori_status run(nori__q_tries *t, timing *m)
{
    nori__q_probe *p = &t->probe;
    nori__q_feed(t->q, m->session, p->inputs, p->fed);
    nori_status s = nori_session_run(m->session, p->fed, nori_session_input_count(m->session), m->out,
                                     p->n_out, t->q->err);
    for (size_t i = 0; i < p->n_out; i++) {
        nori_tensor_free(m->out[i]);
        m->out[i] = NULL;
    }
    nori_profile_row row = {.size = sizeof(row)};
    for (size_t i = 0; s == NORI_OK && nori_session_profile(m->session, i, &row); i++) {
        uint64_t took = row.last_end_ns - row.last_start_ns;
        m->least[i] = m->least[i] == 0 || took < m->least[i] ? took : m->least[i];
    }
    return s;
}

static double add_up(const timing *m, const nori__map *owner)
{
    double total = 0;
    for (uint32_t i = 0; i < m->session->n_step_ids; i++) {
        const nori__step *step = m->session->steps[i];
        nori__q_unit *unit = step ? owner_of(owner, step->node) : NULL;
        double *to = unit && !unit->slow ? (m->ints ? &unit->int_ns : &unit->float_ns) : NULL;
        total += (double)m->least[i];
        if (to) {
            *to = (*to < 0 ? 0 : *to) + (double)m->least[i];
        }
    }
    return total;
}

/* Both models in turns; *total: float, integers. */
static nori_status measure(nori__q_tries *t, nori_model *ints, double total[2])
{
    nori__quantizer *q = t->q;
    nori_model *floats = NULL;
    nori__arena room;
    nori__map owner;
    timing m[2] = {{.ints = false}, {.ints = true}};
    nori__arena_init(&room, q->allocator);
    nori__map_init(&owner, q->allocator);
    for (size_t i = 0; i < q->unit_list.count; i++) {
        nori__q_unit *u = q->unit_list.items[i];
        if (!u->slow) { /* those keep the times that say why */
            u->float_ns = u->int_ns = -1;
        }
    }
    nori_status s = map_names(q, &owner);
    s = s == NORI_OK ? nori__model_from_ir(q->model, q->ir, &floats, q->err) : s;
    s = s == NORI_OK ? open(t, &room, floats, &m[0]) : s;
    s = s == NORI_OK ? open(t, &room, ints, &m[1]) : s;
    for (int round = 0; s == NORI_OK && round < ROUNDS; round++) {
        s = run(t, &m[round % 2]);
        s = s == NORI_OK ? run(t, &m[1 - round % 2]) : s;
    }
    for (int i = 0; s == NORI_OK && i < 2; i++) {
        total[i] = add_up(&m[i], &owner);
    }
    nori_session_free(m[0].session);
    nori_session_free(m[1].session);
    nori_model_free(floats);
    nori__map_free(&owner);
    nori__arena_free(&room);
    return s;
}

/* Layers on integers that took longer so: float from now on. */
static size_t spare_slow(nori__quantizer *q)
{
    size_t count = 0;
    for (size_t i = 0; i < q->unit_list.count; i++) {
        nori__q_unit *u = q->unit_list.items[i];
        if (!u->why && u->float_ns > 0 && u->int_ns > u->float_ns * SLOWER) {
            u->why = nori__arena_printf(&q->arena, "integers make it slower here: %.3f ms, %.3f ms in float",
                                        u->int_ns / 1e6, u->float_ns / 1e6);
            u->slow = u->why != NULL;
            count += u->slow;
        }
    }
    return count;
}

static void say(nori__q_tries *t, const double total[2])
{
    nori__quantizer *q = t->q;
    double limit = q->options->most_ms;
    nori__q_summary(q->report)->float_ms = total[0] / 1e6;
    nori__q_summary(q->report)->int_ms = total[1] / 1e6;
    if (total[1] > total[0] * SLOWER && !q->options->spare_slow) {
        nori__q_advise(q, "on this machine the model takes %.3f ms on integers and %.3f ms in float: "
                          "--spare-slow keeps float what integers make slower",
                       total[1] / 1e6, total[0] / 1e6);
    }
    if (limit > 0 && total[1] / 1e6 > limit) {
        nori__q_advise(q, "%.3f ms is above the budget of %g ms; %s", total[1] / 1e6, limit,
                       total[0] / 1e6 <= limit ? "the float model is within it"
                                               : "the float model is not within it either");
    }
}

nori_status nori__q_time_layers(nori__q_tries *t)
{
    nori__quantizer *q = t->q;
    double total[2] = {0, 0}, best = INFINITY;
    bool again = true;
    for (int i = 0; again && i < MOST_TRIES; i++) {
        nori_model *model = NULL;
        nori__q_score score;
        NORI__TRY(nori__q_attempt(t, i == 0 ? NULL : "layers that integers slow down float", &score, &model));
        nori_status s = measure(t, model, total);
        nori_model_free(model);
        NORI__TRY(s);
        bool late = q->options->most_ms > 0 && total[1] / 1e6 > q->options->most_ms;
        bool slow = q->options->spare_slow || late;
        again = slow && total[1] < best && spare_slow(q) > 0;
        best = total[1] < best ? total[1] : best;
    }
    say(t, total);
    return NORI_OK;
}

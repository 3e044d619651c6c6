/* divide_model.c: the cuts of a model: bytes from a run, times from profiles, the best and each in order. */
#include <math.h>

#include "base/given.h"
#include "run/run.h"
#include "tools/divide/divides.h"

/* ---- making ---- */

static uint64_t in_int8(const nori_tensor *t)
{
    bool is_float = t->kind == NORI_KIND_TENSOR && t->type == NORI_FLOAT;
    return is_float ? (uint64_t)t->count + 5 : t->bytes; /* and a scale and a zero point */
}

static void note(nori__divide_value *own, const nori_tensor *t)
{
    if (own && t) {
        own->bytes = t->bytes;
        own->int8_bytes = in_int8(t);
        own->seen = t->kind == NORI_KIND_TENSOR;
    }
}

static void watch(void *user, const char *value, const nori_tensor *t)
{
    nori_divide *c = user;
    note(nori__map_get(&c->by_name, value), t);
}

static nori_status run_once(nori_divide *c, const nori_tensor *const *inputs, size_t count, nori_error *err)
{
    nori_session_options o = c->options;
    nori_session *s = NULL;
    o.level = 0;
    o.watch = watch;
    o.watch_user = c;
    NORI__TRY(nori_session_create(c->model, &o, &s, err));
    c->n_in = nori_session_input_count(s);
    c->n_out = nori_session_output_count(s);
    c->inputs = nori__arena_array(&c->arena, c->n_in + 1, sizeof(*c->inputs));
    c->outputs = nori__arena_array(&c->arena, c->n_out + 1, sizeof(*c->outputs));
    nori_status status = c->inputs && c->outputs ? NORI_OK : nori__no_memory(err);
    for (size_t i = 0; status == NORI_OK && i < c->n_in && i < count; i++) {
        c->inputs[i] = inputs[i] ? nori_tensor_retain(inputs[i]) : NULL;
        note(nori__map_get(&c->by_name, nori_session_input(s, i)->name), inputs[i]);
    }
    if (status == NORI_OK) {
        status = nori_session_run(s, inputs, count, c->outputs, c->n_out, err);
    }
    for (size_t i = 0; status == NORI_OK && i < c->n_out; i++) {
        note(nori__map_get(&c->by_name, nori_session_output(s, i)->name), c->outputs[i]);
    }
    nori_session_free(s);
    return status;
}

nori_status nori_divide_create(const nori_model *model, const nori_session_options *options,
                             const nori_tensor *const *inputs, size_t count, nori_divide **cuts,
                             nori_error *err)
{
    NORI__GIVEN(err, model);
    NORI__GIVEN(err, cuts);
    NORI__GIVEN_LIST(err, inputs, count);
    nori_session_options o;
    nori_session_options_default(&o);
    nori_divide *c = nori__alloc_zero(&nori__malloc, sizeof(*c));
    if (!c) {
        return nori__no_memory(err);
    }
    if (options) {
        o.threads = options->threads;
        o.dim_names = options->dim_names;
        o.dim_values = options->dim_values;
        o.dim_count = options->dim_count;
    }
    c->model = model;
    c->options = o;
    nori__arena_init(&c->arena, &nori__malloc);
    nori__map_init(&c->by_name, &nori__malloc);
    nori_status s = nori__divide_graph(c, err);
    s = s == NORI_OK ? run_once(c, inputs, count, err) : s;
    if (s != NORI_OK) {
        nori_divide_free(c);
        return s;
    }
    *cuts = c;
    return NORI_OK;
}

void nori_divide_free(nori_divide *c)
{
    if (!c) {
        return;
    }
    for (size_t i = 0; c->inputs && i < c->n_in; i++) {
        nori_tensor_free(c->inputs[i]);
    }
    for (size_t i = 0; c->outputs && i < c->n_out; i++) {
        nori_tensor_free(c->outputs[i]);
    }
    nori__map_free(&c->by_name);
    nori__arena_free(&c->arena);
    nori__release(&nori__malloc, c, sizeof(*c));
}

size_t nori_divide_node_count(const nori_divide *c)
{
    NORI__ASKED(c, 0);
    return c->n_nodes;
}

/* ---- times ---- */

/* The producer of a value by its name; rewrites may have added an ending to it. */
static nori__divide_value *named(const nori_divide *c, const char *name)
{
    nori__divide_value *own = nori__map_get(&c->by_name, name);
    size_t size = strlen(name);
    while (!own && size > 1) {
        size--;
        own = name[size] == '_' ? nori__map_get_n(&c->by_name, name, size) : NULL;
    }
    return own;
}

nori_status nori_divide_times(nori_divide *c, int side, const char *const *values, const double *seconds,
                            size_t count, double total_s, nori_error *err)
{
    NORI__GIVEN(err, c);
    NORI__GIVEN_LIST(err, values, count);
    NORI__GIVEN_LIST(err, seconds, count);
    if (side < 0 || side > 1 || !(isfinite(total_s) && total_s >= 0)) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "side %d, %g s in all: side 0 or 1 and a time from 0 on "
                          "were expected", side, total_s);
    }
    double *to = c->seconds[side], sum = 0;
    for (size_t i = 0; i < c->n_nodes; i++) { /* the same as the device's, or all alike */
        to[i] = side == 1 && count == 0 ? c->seconds[0][i] : count == 0;
    }
    for (size_t i = 0; i < count; i++) {
        nori__divide_value *own = named(c, values[i]);
        if (!(isfinite(seconds[i]) && seconds[i] >= 0)) {
            return nori__fail(err, NORI_ERROR_ARGUMENT, "what makes %s takes %g s, at least 0 was expected",
                              values[i], seconds[i]);
        }
        if (own && own->producer != NORI_DIVIDE_INPUT) {
            to[own->producer] += seconds[i];
        }
    }
    for (size_t i = 0; i < c->n_nodes; i++) {
        sum += to[i];
    }
    for (size_t i = 0; i < c->n_nodes; i++) {
        to[i] = sum > 0 ? to[i] * (total_s / sum) : total_s / (double)c->n_nodes;
    }
    return NORI_OK;
}

/* ---- cuts ---- */

static bool read_there(const nori_divide *c, const nori__divide_value *v)
{
    for (size_t k = 0; k < v->n_readers; k++) {
        if (c->cloud[v->readers[k]]) {
            return true;
        }
    }
    return false;
}

/* Tells the cut of c->cloud. */
static void tell(nori_divide *c, const nori_divide_link *link, nori_division *out)
{
    nori_division cut = {.size = out->size, .values = c->names};
    for (size_t i = 0; i < c->n_nodes; i++) {
        cut.edge_nodes += !c->cloud[i];
        cut.cloud_nodes += c->cloud[i];
        *(c->cloud[i] ? &cut.cloud_s : &cut.edge_s) += c->seconds[c->cloud[i]][i];
    }
    for (size_t i = 0; i < c->n_values; i++) {
        const nori__divide_value *v = &c->values[i];
        bool here = v->producer == NORI_DIVIDE_INPUT || !c->cloud[v->producer];
        if (here && read_there(c, v)) {
            c->names[cut.value_count++] = v->v->name;
            cut.bytes += v->bytes;
            cut.int8_bytes += v->int8_bytes;
            cut.raw = cut.raw || v->producer == NORI_DIVIDE_INPUT;
        }
        cut.down_bytes += !here && v->output ? v->bytes : 0;
    }
    double up = (double)(link->int8 ? cut.int8_bytes : cut.bytes);
    cut.total_s = cut.edge_s + cut.cloud_s + (cut.cloud_nodes > 0 ? link->far_s : 0) +
                  (link->up_speed > 0 ? up / link->up_speed : 0) +
                  (link->down_speed > 0 ? (double)cut.down_bytes / link->down_speed : 0);
    memcpy(out, &cut, out->size < sizeof(cut) ? out->size : sizeof(cut));
}

int nori_divide_at(nori_divide *c, size_t index, const nori_divide_link *given, nori_division *cut)
{
    NORI__ASKED(c, 0);
    NORI__ASKED(cut, 0);
    nori_divide_link link = {0};
    memcpy(&link, given, given->size < sizeof(link) ? given->size : sizeof(link));
    if (index + 1 >= c->n_nodes) {
        return 0;
    }
    for (size_t i = 0; i < c->n_nodes; i++) {
        c->cloud[i] = i > index;
    }
    tell(c, &link, cut);
    return 1;
}

nori_status nori_divide_best(nori_divide *c, const nori_divide_link *given, nori_division *cut,
                             nori_error *err)
{
    NORI__GIVEN(err, c);
    NORI__GIVEN(err, given);
    NORI__GIVEN(err, cut);
    nori_divide_link link = {0};
    memcpy(&link, given, given->size < sizeof(link) ? given->size : sizeof(link));
    nori__arena scratch;
    nori__arena_init(&scratch, &nori__malloc);
    nori_divide_value *values = nori__arena_array(&scratch, c->n_values + 1, sizeof(*values));
    double total;
    if (!values) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < c->n_values; i++) {
        const nori__divide_value *v = &c->values[i];
        bool stays = (link.inputs_stay && v->producer == NORI_DIVIDE_INPUT) || (!v->seen && v->n_readers > 0);
        uint64_t bytes = link.int8 ? v->int8_bytes : v->bytes;
        values[i] = (nori_divide_value){.producer = v->producer, .readers = v->readers,
                                     .reader_count = v->n_readers};
        values[i].up_s = stays ? -1 : link.up_speed > 0 ? (double)bytes / link.up_speed : 0;
        values[i].down_s = v->output && link.down_speed > 0 ? (double)v->bytes / link.down_speed : 0;
    }
    nori_divide_problem p = {.size = sizeof(p), .node_count = c->n_nodes, .edge_s = c->seconds[0],
                          .cloud_s = c->seconds[1], .values = values, .value_count = c->n_values,
                          .far_s = link.far_s};
    nori_status s = nori_divide_solve(&p, c->cloud, &total, err);
    nori__arena_free(&scratch);
    if (s == NORI_OK) {
        tell(c, &link, cut);
    }
    return s;
}

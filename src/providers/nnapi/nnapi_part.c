/* nnapi_part.c: a part of the graph as an NNAPI model: made and compiled once, run by executions of
 * their own, so that several threads may. */
#include "providers/nnapi/nnapi_bytes.h"

void nori__na_free(void *user, void *compiled)
{
    na_self *self = user;
    na_part *p = compiled;
    if (p->compilation) {
        self->call.Compilation_free(p->compilation);
    }
    if (p->model) {
        self->call.Model_free(p->model); /* before the constants it may point to */
    }
    nori__arena_free(&p->arena);
    nori__release(&nori__malloc, p, sizeof(*p));
}

static bool make_tables(na_part *p)
{
    const nori_part *part = p->part;
    size_t n = (size_t)part->n_values + 1;
    p->forms = nori__arena_array(&p->arena, n, sizeof(*p->forms));
    p->in = nori__arena_array(&p->arena, (size_t)part->n_in + 1, sizeof(*p->in));
    p->in_number = nori__arena_array(&p->arena, (size_t)part->n_in + 1, sizeof(*p->in_number));
    p->out = nori__arena_array(&p->arena, (size_t)part->n_out + 1, sizeof(*p->out));
    if (!p->forms || !p->in || !p->in_number || !p->out ||
        !nori__links_make(&p->arena, part, &p->links)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        p->forms[i][NA_PLAIN] = p->forms[i][NA_LAST] = NA_NONE;
    }
    return true;
}

/* What a model delivers is made by an operation, and is one output only. */
static void make_output(na_part *p, uint32_t i)
{
    uint32_t value = p->part->out_values[i], out = nori__na_want(p, value, NA_PLAIN);
    na_shape s = nori__na_shape(p, value, NA_PLAIN);
    bool own = !nori__na_tensor(p, value);
    for (uint32_t k = 0; k < p->n_in; k++) {
        own = own && p->in[k] != out;
    }
    for (uint32_t k = 0; k < i; k++) {
        own = own && p->out[k] != out;
    }
    if (!own) {
        const int64_t rank[] = {s.rank};
        uint32_t in[2] = {out, nori__na_ints(p, s.d, 1, rank)};
        out = nori__na_operand_like(p, value, &s);
        nori__na_op(p, NA_RESHAPE, in, 2, out);
    }
    p->out[i] = out;
}

static void make_node(na_part *p, uint32_t at)
{
    const nori__node *n = p->part->nodes[at];
    const uint32_t *v = p->part->node_values[at];
    const na_rule *rule = nori__na_rule(n);
    na_job job = {.node = n, .in = v, .n_in = n->input_count, .out = v[n->input_count],
                  .outs = v + n->input_count};
    if (p->links.done[at]) {
        return;
    }
    if (rule && !nori__na_integers(p, &job)) {
        rule->emit(p, &job);
    } else if (!rule) {
        nori__na_refuse(p, "NNAPI has no such operator");
    }
    if (p->status != NORI_OK) {
        char path[256];
        nori__node_path(n, path, sizeof(path));
        nori__where(p->err, "%s", path);
    }
}

/* Where the driver may keep what it compiled, under a name made of the model's whole content; a
 * driver that cannot is no failure. */
static void set_cache(na_part *p)
{
    char token[NORI__HASH_TEXT];
    na_calls *c = &p->self->call;
    if (!p->self->cache_dir) {
        return;
    }
    if (!c->Compilation_setCaching) {
        nori__part_tell(p->part, "not kept: NNAPI keeps what it compiled from feature level 29 on");
        return;
    }
    nori__hash_text(&p->content, token); /* as many digits as a token has bytes */
    int result =
        c->Compilation_setCaching(p->compilation, p->self->cache_dir, (const uint8_t *)token);
    if (result == 0) {
        nori__part_tell(p->part, "left to the driver: it may keep %u node%s in %s as %.16s...; NNAPI "
                        "does not say whether it found something there",
                        p->part->n_nodes, p->part->n_nodes == 1 ? "" : "s", p->self->cache_dir, token);
    } else {
        nori__part_tell(p->part, "not kept: ANeuralNetworksCompilation_setCaching gave %d", result);
    }
}

static nori_status compile_model(na_part *p)
{
    na_calls *c = &p->self->call;
    const na_device *chosen = p->self->chosen;
    NORI__TRY(nori__na_check(p,
                             chosen ? c->Compilation_createForDevices(p->model, &chosen, 1,
                                                                      &p->compilation)
                                    : c->Compilation_create(p->model, &p->compilation),
                             "Compilation_create"));
    NORI__TRY(nori__na_check(
        p, c->Compilation_setPreference(p->compilation, NA_PREFER_FAST_SINGLE_ANSWER),
        "Compilation_setPreference"));
    set_cache(p);
    return nori__na_check(p, c->Compilation_finish(p->compilation), "Compilation_finish");
}

static nori_status compile(na_part *p)
{
    na_calls *c = &p->self->call;
    if (!make_tables(p)) {
        return nori__no_memory(p->err);
    }
    NORI__TRY(nori__na_check(p, c->Model_create(&p->model), "Model_create"));
    for (uint32_t at = 0; at < p->part->n_nodes && p->status == NORI_OK; at++) {
        make_node(p, at);
    }
    for (uint32_t i = 0; i < p->part->n_out && p->status == NORI_OK; i++) {
        make_output(p, i);
    }
    NORI__TRY(p->status);
    if (p->n_in == 0) {
        return nori__fail(p->err, NORI_ERROR_UNSUPPORTED, "NNAPI takes no model without inputs");
    }
    NORI__TRY(nori__na_check(
        p, c->Model_identifyInputsAndOutputs(p->model, p->n_in, p->in, p->part->n_out, p->out),
        "Model_identifyInputsAndOutputs"));
    NORI__TRY(nori__na_check(p, c->Model_finish(p->model), "Model_finish"));
    nori__hash_add(&p->content, p->in, p->n_in * sizeof(p->in[0]));
    nori__hash_add(&p->content, p->out, p->part->n_out * sizeof(p->out[0]));
    return compile_model(p);
}

nori_status nori__na_compile(void *self, nori_part *part, void **compiled, nori_error *err)
{
    na_part *p = nori__alloc_zero(&nori__malloc, sizeof(*p));
    if (!p) {
        return nori__no_memory(err);
    }
    p->self = self;
    p->part = part;
    p->err = err;
    nori__arena_init(&p->arena, &nori__malloc);
    nori_status status = compile(p);
    p->err = NULL;
    if (status != NORI_OK) {
        nori__na_free(self, p);
        return status;
    }
    *compiled = p;
    return NORI_OK;
}

/* ---- running ---- */

static nori_status ran(int result, const char *call, nori_call *of)
{
    return result == 0 ? NORI_OK
                       : nori__fail(nori_call_error(of), NORI_ERROR_INTERNAL,
                                    "NNAPI: ANeuralNetworks%s gives the result code %d", call, result);
}

static bool same_shape(const nori_tensor *t, int type, const na_shape *s)
{
    bool same = (int)t->type == type && t->rank == s->rank;
    for (int d = 0; d < s->rank && same; d++) {
        same = t->dims[d] == s->d[d];
    }
    return same;
}

static nori_status give_inputs(const na_part *p, na_execution *e, nori_call *call)
{
    for (uint32_t i = 0; i < p->n_in; i++) {
        uint32_t number = p->in_number[i];
        const nori_tensor *t = nori_call_input(call, number);
        const nori__value *v = p->part->in[number];
        na_shape s = {.rank = v->type.rank};
        for (int d = 0; d < s.rank; d++) {
            s.d[d] = v->type.dims[d].value;
        }
        if (!same_shape(t, v->type.elem, &s)) {
            return nori__fail(nori_call_error(call), NORI_ERROR_DATA,
                              "%s has another type or shape than the part was compiled for", v->name);
        }
        NORI__TRY(ran(p->self->call.Execution_setInput(e, (int32_t)i, NULL, t->data, t->bytes),
                      "Execution_setInput", call));
    }
    return NORI_OK;
}

static nori_status take_outputs(const na_part *p, na_execution *e, nori_call *call)
{
    for (uint32_t i = 0; i < p->part->n_out; i++) {
        na_shape s = nori__na_shape(p, p->part->out_values[i], NA_PLAIN);
        nori_type type = p->part->out[i]->type.elem;
        nori_tensor *t = nori_call_output(call, i);
        if (!t) {
            NORI__TRY(nori_call_alloc(call, i, type, s.rank, s.d, &t));
        }
        if (!same_shape(t, type, &s)) {
            return nori__fail(nori_call_error(call), NORI_ERROR_INTERNAL,
                              "%s has another shape than the part was compiled for",
                              p->part->out[i]->name);
        }
        NORI__TRY(ran(p->self->call.Execution_setOutput(e, (int32_t)i, NULL, t->data, t->bytes),
                      "Execution_setOutput", call));
    }
    return NORI_OK;
}

/* Before level 29 computing is started and waited for. */
static nori_status compute(const na_part *p, na_execution *e, nori_call *call)
{
    const na_calls *c = &p->self->call;
    if (c->Execution_compute) {
        return ran(c->Execution_compute(e), "Execution_compute", call);
    }
    na_event *event = NULL;
    NORI__TRY(ran(c->Execution_startCompute(e, &event), "Execution_startCompute", call));
    int result = c->Event_wait(event);
    c->Event_free(event);
    return ran(result, "Event_wait", call);
}

nori_status nori__na_run(void *self, void *compiled, nori_call *call)
{
    const na_part *p = compiled;
    const na_calls *c = &p->self->call;
    na_execution *e = NULL;
    (void)self;
    NORI__TRY(ran(c->Execution_create(p->compilation, &e), "Execution_create", call));
    nori_status status = give_inputs(p, e, call);
    status = status == NORI_OK ? take_outputs(p, e, call) : status;
    status = status == NORI_OK ? compute(p, e, call) : status;
    c->Execution_free(e);
    return status;
}

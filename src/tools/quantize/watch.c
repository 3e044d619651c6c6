/* watch.c: the samples through the prepared graph, every value shown to somebody. */
#include "run/run.h"
#include "tools/quantize/search.h"

typedef struct runner {
    nori__quantizer *q;
    nori_session *session;
    nori_tensor **outputs;
    const nori_tensor **in;
    void (*watch)(void *user, const char *name, const nori_tensor *t);
    void *user;
} runner;

static nori_status run_one(void *user, nori_tensor **inputs)
{
    runner *r = user;
    size_t n_in = nori_session_input_count(r->session), n_out = nori_session_output_count(r->session);
    nori__q_feed(r->q, r->session, inputs, r->in);
    for (size_t i = 0; i < n_in; i++) {
        if (r->in[i]) {
            r->watch(r->user, nori_session_input(r->session, i)->name, r->in[i]);
        }
    }
    nori_status s = nori_session_run(r->session, r->in, n_in, r->outputs, n_out, r->q->err);
    for (size_t i = 0; i < n_out; i++) {
        nori_tensor_free(r->outputs[i]);
        r->outputs[i] = NULL;
    }
    return s;
}

nori_status nori__q_watch(nori__quantizer *q, const char *phase,
                          void (*watch)(void *user, const char *name, const nori_tensor *t),
                          void *user)
{
    runner r = {.q = q, .watch = watch, .user = user};
    nori_model *model = NULL;
    nori_session_options o;
    nori__arena room;
    nori__arena_init(&room, q->allocator);
    nori_session_options_default(&o);
    o.level = 0; /* every value is there, under its own name */
    o.threads = q->options->threads;
    o.watch = watch;
    o.watch_user = user;
    nori_status s = nori__model_from_ir(q->model, q->ir, &model, q->err);
    s = s == NORI_OK ? nori_session_create(model, &o, &r.session, q->err) : s;
    if (s == NORI_OK) {
        r.outputs = nori__arena_array(&room, nori_session_output_count(r.session) + 1, sizeof(void *));
        r.in = nori__arena_array(&room, nori_session_input_count(r.session) + 1, sizeof(void *));
        size_t samples = nori__q_summary(q->report)->samples;
        s = r.outputs && r.in ? nori__q_each_sample(q, phase, run_one, &r) : nori__no_memory(q->err);
        nori__q_summary(q->report)->samples = samples; /* that is what the ranges were found from */
    }
    nori_session_free(r.session);
    nori_model_free(model);
    nori__arena_free(&room);
    return s;
}

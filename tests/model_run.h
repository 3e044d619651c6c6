/* model_run.h: a made model run once on one input, by the providers and at the level a test names; any
 * error fails the test. Include after cmocka.h and make_model.h. */
#ifndef NORI_TESTS_MODEL_RUN_H
#define NORI_TESTS_MODEL_RUN_H

#include "make_model.h"
#include "needs_check.h"
#include "nori/tools.h"

/* A made model over its bytes, which are borrowed, with a session. */
typedef struct model_open {
    nori__text bytes;
    nori_model *model;
    nori_session *session;
} model_open;

/* What the session made of the model is what a reduced build for it would hold. */
static inline void model_needs(const model_open *o)
{
    nori_needs *needs = NULL;
    const nori_model *model = o->model;
    assert_int_equal(nori_needs_find(&model, 1, &needs, NULL), NORI_OK);
    const char *lack = needs_lack(needs, o->session);
    if (lack) {
        print_error("a session made %s, which makes.h and cpu_makes.h do not say of the model\n", lack);
    }
    assert_null(lack);
    nori_needs_free(needs);
}

static inline model_open model_session(make *m, const char *providers, int level, int threads)
{
    model_open o = {0};
    nori_session_options options;
    nori_error err = {0};
    nori__text_init(&o.bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m->model, &o.bytes, &err), NORI_OK);
    nori_session_options_default(&options);
    options.providers = providers;
    options.level = level;
    options.threads = threads;
    assert_int_equal(nori_model_load_memory(NULL, o.bytes.data, o.bytes.size, NULL, NULL, &o.model, &err),
                     NORI_OK);
    nori_status status = nori_session_create(o.model, &options, &o.session, &err);
    if (status != NORI_OK) {
        print_error("%s: %s\n", err.where, err.message);
    }
    assert_int_equal(status, NORI_OK);
    model_needs(&o);
    return o;
}

static inline void model_close(model_open *o)
{
    nori_session_free(o->session);
    nori_model_free(o->model);
    nori__text_free(&o->bytes);
}

static inline void model_run(make *m, const char *providers, int level, int threads,
                             const nori_tensor *x, nori_tensor **out, size_t n_out)
{
    nori_error err = {0};
    model_open o = model_session(m, providers, level, threads);
    nori_status status = nori_session_run(o.session, &x, 1, out, n_out, &err);
    if (status != NORI_OK) {
        print_error("%s: %s\n", err.where, err.message);
    }
    assert_int_equal(status, NORI_OK);
    model_close(&o);
}

#endif

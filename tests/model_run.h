/* model_run.h: a made model run once on one input, by the providers and at the level a test names; any
 * error fails the test. Include after cmocka.h and make_model.h. */
#ifndef NORI_TESTS_MODEL_RUN_H
#define NORI_TESTS_MODEL_RUN_H

#include "make_model.h"
#include "nori/tools.h"

static inline void model_run(make *m, const char *providers, int level, int threads,
                             const nori_tensor *x, nori_tensor **out, size_t n_out)
{
    nori__text bytes;
    nori_model *model = NULL;
    nori_session *session = NULL;
    nori_session_options options;
    nori_error err = {0};
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m->model, &bytes, &err), NORI_OK);
    nori_session_options_default(&options);
    options.providers = providers;
    options.level = level;
    options.threads = threads;
    assert_int_equal(nori_model_load_memory(NULL, bytes.data, bytes.size, NULL, NULL, &model, &err),
                     NORI_OK);
    nori_status status = nori_session_create(model, &options, &session, &err);
    status = status == NORI_OK ? nori_session_run(session, &x, 1, out, n_out, &err) : status;
    if (status != NORI_OK) {
        print_error("%s: %s\n", err.where, err.message);
    }
    assert_int_equal(status, NORI_OK);
    nori_session_free(session);
    nori_model_free(model);
    nori__text_free(&bytes);
}

#endif

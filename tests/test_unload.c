/* A program that loads libnori.so by hand, lets its default pool start, closes it, and goes on while the
 * pool's threads sleep in code that dlclose() would have taken away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <string.h>
#include <time.h>

#include "nori/nori.h"

/* dlsym() gives a pointer to data; ISO C has no cast from that to a function. */
static void find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    assert_non_null(found);
    memcpy(function, &found, sizeof(found));
}

static void closed_under_its_threads(void **state)
{
    (void)state;
    nori_status (*load)(nori_env *, const char *, const nori_load_options *, nori_model **, nori_error *);
    nori_status (*create)(const nori_model *, const nori_session_options *, nori_session **, nori_error *);
    nori_status (*make)(nori_env *, nori_type, int, const int64_t *, nori_tensor **, nori_error *);
    nori_status (*run)(nori_session *, const nori_tensor *const *, size_t, nori_tensor **, size_t,
                       nori_error *);
    void (*free_tensor)(nori_tensor *), (*free_session)(nori_session *), (*free_model)(nori_model *);
    void *library = dlopen(NORI_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    assert_null(dlsym(library, "nori__pool_create")); /* what is not public is not to be had */
    assert_null(dlsym(library, "pb_decode"));
    find(library, "nori_model_load", &load);
    find(library, "nori_session_create", &create);
    find(library, "nori_tensor_create", &make);
    find(library, "nori_session_run", &run);
    find(library, "nori_tensor_free", &free_tensor);
    find(library, "nori_session_free", &free_session);
    find(library, "nori_model_free", &free_model);

    nori_model *model = NULL;
    nori_session *session = NULL;
    nori_tensor *in = NULL, *out = NULL;
    const int64_t dims[4] = {8, 1, 28, 28};
    assert_int_equal(load(NULL, NORI_EXAMPLES_DIR "/digits/digits.onnx", NULL, &model, NULL), NORI_OK);
    assert_int_equal(create(model, NULL, &session, NULL), NORI_OK);
    assert_int_equal(make(NULL, NORI_FLOAT, 4, dims, &in, NULL), NORI_OK);
    assert_int_equal(run(session, (const nori_tensor *const[]){in}, 1, &out, 1, NULL), NORI_OK);
    free_tensor(out);
    free_tensor(in);
    free_session(session);
    free_model(model);
    assert_int_equal(dlclose(library), 0);
    nanosleep(&(struct timespec){0, 20000000}, NULL); /* they wake up and fall asleep meanwhile */
    library = dlopen(NORI_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library); /* still there */
    assert_int_equal(dlclose(library), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(closed_under_its_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

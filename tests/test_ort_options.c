/* What stands behind "ort:", and where engines that compile for long keep it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "providers/ort/ort.h"

/* "key=value ..." as the engine is given them, with the folder of the session or without. */
static void check(const char *options, const char *folder, const char *want, bool keeps)
{
    ort_self self = {0};
    nori_error err = {0};
    nori_provider_open how = {.size = sizeof(how), .options = options, .cache_dir = folder};
    const char *lib = NULL;
    char have[512] = "";
    nori__arena_init(&self.arena, &nori__malloc);
    assert_int_equal(nori__ort_options(&how, &self, &lib, &err), NORI_OK);
    for (size_t i = 0, n = 0; i < self.n_options; i++) {
        n += (size_t)snprintf(have + n, sizeof(have) - n, "%s%s=%s", i ? " " : "", self.keys[i],
                              self.values[i]);
    }
    assert_string_equal(have, want);
    assert_int_equal(self.keeps, keeps);
    nori__arena_free(&self.arena);
    nori__release(&nori__malloc, self.text, self.text_size);
}

static void kept_where(void **state)
{
    (void)state;
    check("cuda:device_id=1", "/f", "device_id=1", false);
    check("cpu", "/f", "", false);
    check("tensorrt", NULL, "", false);
    check("tensorrt", "/f", "trt_engine_cache_enable=1 trt_engine_cache_path=/f", true);
    check("tensorrt:device_id=0,trt_engine_cache_path=/own", "/f",
          "device_id=0 trt_engine_cache_path=/own trt_engine_cache_enable=1", true);
    check("openvino:device_type=NPU", "/f", "device_type=NPU cache_dir=/f", true);
    check("coreml", "/f", "ModelCacheDirectory=/f", true);
    check("coreml:ModelCacheDirectory=/own", "/f", "ModelCacheDirectory=/own", false);
}

static void too_many(void **state)
{
    char options[1024] = "openvino:";
    ort_self self = {0};
    nori_error err = {0};
    nori_provider_open how = {.size = sizeof(how), .options = options, .cache_dir = "/f"};
    const char *lib = NULL;
    (void)state;
    for (size_t i = 0, n = strlen(options); i < ORT_MAX_OPTIONS; i++) {
        n += (size_t)snprintf(options + n, sizeof(options) - n, "%sk%zu=1", i ? "," : "", i);
    }
    nori__arena_init(&self.arena, &nori__malloc);
    assert_int_equal(nori__ort_options(&how, &self, &lib, &err), NORI_ERROR_ARGUMENT);
    nori__arena_free(&self.arena);
    nori__release(&nori__malloc, self.text, self.text_size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kept_where), cmocka_unit_test(too_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

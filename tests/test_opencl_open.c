/* What the provider opencl says when it cannot be had: a library, symbol, driver or device that is
 * missing, an option that is not there, a driver that ends the process. No device is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "make_model.h"
#include "gpu_case.h"

static void fails(const char *providers, nori_status status, const char *text)
{
    gpu_case c;
    nori_error err = {0};
    case_begin(&c, "Relu", "2", "", 1, 17);
    nori_session *s = case_session(&c, providers, NULL, &err);
    assert_null(s);
    assert_int_equal(err.status, status);
    if (!strstr(err.message, text)) {
        fail_msg("\"%s\" does not say \"%s\"", err.message, text);
    }
    case_end(&c);
}

static void options(void **state)
{
    (void)state;
    fails("opencl:storage=int8", NORI_ERROR_ARGUMENT, "fp32 or fp16 was expected");
    fails("opencl:costs=some", NORI_ERROR_ARGUMENT, "estimate or none was expected");
    fails("opencl:probe=maybe", NORI_ERROR_ARGUMENT, "auto, always or never was expected");
    fails("opencl:speed=1", NORI_ERROR_ARGUMENT, "opencl has no option \"speed\"");
    fails("opencl:storage", NORI_ERROR_ARGUMENT, "key=value was expected");
    fails("opencl:device=", NORI_ERROR_ARGUMENT, "a text was expected");
}

static void libraries(void **state)
{
    (void)state;
    fails("opencl:lib=/nonexistent/libOpenCL.so.1", NORI_ERROR_UNAVAILABLE,
          "/nonexistent/libOpenCL.so.1");
    fails("opencl:lib=" LACKING_OPENCL, NORI_ERROR_UNAVAILABLE,
          "lacks symbol clFlush, which OpenCL 1.2 has");
}

static void drivers(void **state)
{
    (void)state;
    unsetenv("NORI_FAKE_OPENCL");
    fails("opencl:lib=" FAKE_OPENCL, NORI_ERROR_UNAVAILABLE, "CL_PLATFORM_NOT_FOUND_KHR");
    fails("opencl:probe=always,lib=" FAKE_OPENCL, NORI_ERROR_UNAVAILABLE,
          "CL_PLATFORM_NOT_FOUND_KHR");
    setenv("NORI_FAKE_OPENCL", "abort", 1);
    fails("opencl:probe=always,lib=" FAKE_OPENCL, NORI_ERROR_UNAVAILABLE,
          "ends the process that loads it by signal 6 (it aborts)");
    unsetenv("NORI_FAKE_OPENCL");
}

/* One that cannot be had is a warning when that was asked for. */
static void fallback(void **state)
{
    (void)state;
    gpu_case c;
    nori_error err = {0};
    nori_session_options o;
    nori_session_options_default(&o);
    o.fallback = 1;
    case_begin(&c, "Relu", "2", "", 1, 17);
    nori_session *s = case_session(&c, "opencl:lib=/nonexistent/libOpenCL.so.1,cpu", &o, &err);
    assert_non_null(s);
    nori_session_free(s);
    case_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options),
        cmocka_unit_test(libraries),
        cmocka_unit_test(drivers),
        cmocka_unit_test(fallback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

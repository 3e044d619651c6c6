/* test_torture.c: memory that is not there. Each allocation of loading, compiling, running, checking,
 * writing as text, converting, calibrating, quantizing, of plans and of files of tensors fails once alone and
 * once for good: an error says so (or nothing is lost by it), all memory comes back, and sizes given back are
 * those asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nori/compile.h"
#include "nori/convert.h"
#include "nori/limits.h"
#include "nori/text.h"
#include "nori/tools.h"
#include "nori/weights.h"
#include "test_alloc.h"

static const char conv[] =
    "<ir_version: 8, opset_import: [\"\" : 13]>\n"
    "main (float[1,2,6,6] x) => (float[1,3] y)\n"
    "<float[3,2,3,3] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,"
    "1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9}, float[3] b = {1,2,3}> {\n"
    "  c = Conv <kernel_shape = [3,3], pads = [1,1,1,1]> (x, w, b)\n"
    "  r = Relu (c)\n"
    "  p = GlobalAveragePool (r)\n"
    "  y = Flatten (p)\n"
    "}\n";

static const char control[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"own\" : 1]>\n"
    "main (float[1,2,6,6] x) => (float[2] y, seq(float[1,2,6,6]) s)\n"
    "<int64 n = {3}, bool go = {1}> {\n"
    "  v = ReduceMean <axes = [0,2,3], keepdims = 0> (x)\n"
    "  y = Loop <body = body (int64 i, bool c, float[2] a) => (bool c_out, float[2] a_out) {\n"
    "    c_out = Identity (c)\n"
    "    a_out = own.Twice (a)\n"
    "  }> (n, go, v)\n"
    "  s = SequenceConstruct (x, x)\n"
    "}\n"
    "<domain: \"own\", opset_import: [\"\" : 17]>\n"
    "Twice (p) => (q) { q = Add (p, p) }\n";

/* What the nth allocation does: fails alone, or with all that follow. */
typedef struct hook {
    test_alloc counted;
    nori_allocator allocator;
    size_t calls, fail_at;
    bool once;
} hook;

static void *take(void *user, size_t size, size_t align)
{
    hook *h = user;
    h->calls++;
    bool fails = h->fail_at && (h->once ? h->calls == h->fail_at : h->calls >= h->fail_at);
    return fails ? NULL : test_alloc_alloc(&h->counted, size, align);
}

static void give(void *user, void *memory, size_t size)
{
    test_alloc_release(&((hook *)user)->counted, memory, size);
}

typedef struct job {
    const char *text;
    nori_env *env;
    nori_error err;
    nori_model *model;
} job;
typedef nori_status (*work)(job *j);

static int sample(void *user, size_t index, nori_tensor **inputs, nori_error *err)
{
    job *j = user;
    if (index == 2) {
        return 0;
    }
    if (nori_tensor_create(j->env, NORI_FLOAT, 4, (int64_t[]){1, 2, 6, 6}, &inputs[0], err) != NORI_OK) {
        return -1;
    }
    float *v = nori_tensor_data(inputs[0]);
    for (int i = 0; i < 72; i++) {
        v[i] = (float)((i * 7 + (int)index) % 13) / 6 - 1;
    }
    return 1;
}

static nori_status run_at(job *j, int level, const char *providers)
{
    nori_session *session = NULL;
    nori_session_options o;
    nori_tensor *in = NULL, *out[2] = {NULL, NULL};
    nori_session_options_default(&o);
    o.level = level;
    o.providers = providers;
    nori_status s = nori_session_create(j->model, &o, &session, &j->err);
    if (s == NORI_OK && sample(j, 0, &in, &j->err) != 1) {
        s = j->err.status;
    }
    for (int times = 0; s == NORI_OK && times < 2; times++) { /* the second with what the first kept */
        s = nori_session_run(session, (const nori_tensor *const *)&in, 1, out,
                             nori_session_output_count(session), &j->err);
        nori_tensor_free(out[0]);
        nori_tensor_free(out[1]);
        out[0] = out[1] = NULL;
    }
    nori_tensor_free(in);
    nori_session_free(session);
    return s;
}

/* Files of this program, in a folder of its own. */
static char folder[] = "/tmp/nori-torture-XXXXXX";
enum { PLAN, WRITTEN, ARCHIVE, NPY, PB, FILES };
static char files[FILES][64];

static nori_status compile(job *j)
{
    return nori_plan_write(j->model, NULL, files[WRITTEN], NULL, &j->err);
}

/* The plan in place of the model. */
static nori_status run_plan(job *j)
{
    nori_plan_use use = {.size = sizeof(use)};
    nori_session *session = NULL;
    nori_model_free(j->model);
    j->model = NULL;
    nori_status s = nori_model_load(j->env, files[PLAN], NULL, &j->model, &j->err);
    s = s == NORI_OK ? nori_session_create(j->model, NULL, &session, &j->err) : s;
    assert_true(s != NORI_OK || nori_session_plan(session, &use) == 1);
    nori_session_free(session);
    return s == NORI_OK ? run_at(j, 2, "cpu") : s;
}

/* What reads values from files. */
static nori_status read_files(job *j)
{
    nori_archive *archive = NULL;
    nori_tensor *t[4] = {NULL};
    nori_weights *weights = NULL;
    nori_status s = nori_archive_open(j->env, files[ARCHIVE], &archive, &j->err);
    s = s == NORI_OK ? nori_archive_load(archive, 1, &t[0], &j->err) : s;
    nori_archive_free(archive);
    archive = NULL;
    s = s == NORI_OK ? nori_archive_read(j->env, files[ARCHIVE], &archive, &j->err) : s;
    s = s == NORI_OK ? nori_value_read(j->env, files[NPY], NORI_KIND_OPTIONAL, &t[1], &j->err) : s;
    s = s == NORI_OK ? nori_value_read(j->env, files[PB], NORI_KIND_TENSOR, &t[2], &j->err) : s;
    int64_t rows;
    s = s == NORI_OK ? nori_tensor_read_rows(j->env, files[NPY], 0, 1, &t[3], &rows, &j->err) : s;
    s = s == NORI_OK ? nori_weights_open(j->env, files[ARCHIVE], &weights, &j->err) : s;
    nori_weights_free(weights);
    for (size_t i = 0; i < 4; i++) {
        nori_tensor_free(t[i]);
    }
    nori_archive_free(archive);
    return s;
}

static nori_status run_cpu(job *j)
{
    return run_at(j, 2, "cpu");
}

static nori_status run_reference(job *j)
{
    return run_at(j, 0, "reference");
}

static nori_status check(job *j)
{
    nori_findings *f = NULL;
    nori_status s = nori_check(j->model, NULL, &f, &j->err);
    assert_true(s == NORI_OK || !f);
    nori_findings_free(f);
    return s;
}

static nori_status as_text(job *j)
{
    char *text = NULL;
    size_t size = 0;
    nori_status s = nori_model_text(j->model, NULL, &text, &size, NULL, &j->err);
    nori_text_free(text);
    return s;
}

static nori_status convert(job *j)
{
    nori_convert_options o;
    nori_convert_report *report = NULL;
    nori_model *made = NULL;
    nori_convert_options_default(&o);
    o.opset = 18;
    nori_status s = nori_convert(j->model, &o, &made, &report, &j->err);
    nori_convert_report_free(report);
    nori_model_free(made);
    return s;
}

static nori_status calibrate(job *j)
{
    nori_calibrate_options o;
    nori_calibration *c = NULL, *again = NULL;
    nori_tensor *bytes = NULL;
    nori_calibrate_options_default(&o);
    o.sample = sample;
    o.sample_user = j;
    o.threads = 1;
    nori_status s = nori_calibrate(j->model, &o, &c, &j->err);
    s = s == NORI_OK ? nori_calibration_encode(c, &bytes, &j->err) : s;
    s = s == NORI_OK ? nori_calibration_decode(j->env, nori_tensor_const_data(bytes),
                                               nori_tensor_bytes(bytes), &again, &j->err)
                     : s;
    nori_tensor_free(bytes);
    nori_calibration_free(c);
    nori_calibration_free(again);
    return s;
}

static nori_status quantize_by(job *j, int search, nori_quantize_kind kind)
{
    nori_quantize_options o;
    nori_quantize_report *report = NULL;
    nori_model *made = NULL;
    nori_quantize_options_default(&o);
    o.sample = sample;
    o.sample_user = j;
    o.threads = 1;
    o.search = search;
    o.kind = kind;
    nori_status s = nori_quantize(j->model, &o, &made, &report, &j->err);
    nori_quantize_report_free(report);
    nori_model_free(made);
    return s;
}

static nori_status quantize(job *j)
{
    return quantize_by(j, 0, NORI_QUANTIZE_STATIC);
}

static nori_status quantize_searching(job *j)
{
    return quantize_by(j, 1, NORI_QUANTIZE_STATIC);
}

static nori_status quantize_weights(job *j)
{
    return quantize_by(j, 0, NORI_QUANTIZE_WEIGHTS);
}

static nori_status quantize_half(job *j)
{
    return quantize_by(j, 0, NORI_QUANTIZE_FP16);
}

static nori_status load_only(job *j)
{
    (void)j;
    return NORI_OK;
}

/* One go with the nth allocation failing; whether it was reached at all. */
static bool with_failure(const char *text, work does, size_t fail_at, bool once)
{
    hook h = {.fail_at = fail_at, .once = once};
    nori_env_options e;
    job j = {.text = text};
    test_alloc_init(&h.counted, 0);
    nori_env_options_default(&e);
    e.allocator = (nori_allocator){take, give, &h};
    e.threads = 1;
    nori_status s = nori_env_create(&e, &j.env, &j.err);
    s = s == NORI_OK
            ? nori_model_from_text(j.env, text, strlen(text), NULL, &j.model, &j.err)
            : s;
    s = s == NORI_OK ? does(&j) : s;
    nori_model_free(j.model);
    nori_env_free(j.env);
    bool reached = fail_at && h.calls >= fail_at;
    if (s != NORI_OK && (s != NORI_ERROR_MEMORY || !reached || !j.err.message[0])) {
        print_error("allocation %zu, %s: %s (%s) %s\n", fail_at, once ? "once" : "for good",
                    nori_status_text(s), j.err.where, j.err.message);
    }
    assert_true(s == NORI_OK || (s == NORI_ERROR_MEMORY && reached));
    assert_true(s == NORI_OK || j.err.message[0]);
    if (h.counted.live) {
        print_error("allocation %zu, %s: %zu bytes are not given back\n", fail_at,
                    once ? "once" : "for good", h.counted.live);
    }
    assert_int_equal(h.counted.live, 0);
    assert_false(h.counted.wrong_size);
    return reached;
}

/* Each of the first ones, and of the many that follow so many that a test stays short. */
static void torture(const char *what, const char *text, work does)
{
    size_t n = 0;
    assert_false(with_failure(text, does, 0, true));
    for (size_t at = 1;; at += 1 + at / 400, n++) {
        bool once = with_failure(text, does, at, true);
        bool ever = with_failure(text, does, at, false);
        if (!once && !ever) {
            break;
        }
    }
    print_message("%s: %zu failures\n", what, n);
    assert_true(n > 10);
}

static void test_conv(void **state)
{
    (void)state;
    torture("load", conv, load_only);
    torture("run on cpu", conv, run_cpu);
    torture("run on reference", conv, run_reference);
    torture("check", conv, check);
    torture("text", conv, as_text);
    torture("convert", conv, convert);
}

static void test_control(void **state)
{
    (void)state;
    torture("load", control, load_only);
    torture("run on cpu", control, run_cpu);
    torture("run on reference", control, run_reference);
    torture("check", control, check);
    torture("text", control, as_text);
}

static void test_tools(void **state)
{
    (void)state;
    torture("calibrate", conv, calibrate);
    torture("quantize", conv, quantize);
    torture("quantize, searching", conv, quantize_searching);
    torture("quantize weights", conv, quantize_weights);
    torture("quantize to halves", conv, quantize_half);
}

static int make_files(void **state)
{
    static const char *const names[FILES] = {"plan", "written", "x.npz", "x.npy", "x.pb"};
    static const char *const arrays[2] = {"a", "b"};
    (void)state;
    nori_model *m = NULL;
    nori_tensor *t = NULL;
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < FILES; i++) {
        snprintf(files[i], sizeof(files[i]), "%s/%s", folder, names[i]);
    }
    assert_int_equal(nori_model_from_text(NULL, conv, strlen(conv), NULL, &m, NULL), NORI_OK);
    assert_int_equal(nori_plan_write(m, NULL, files[PLAN], NULL, NULL), NORI_OK);
    nori_model_free(m);
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 2, (int64_t[]){2, 3}, &t, NULL), NORI_OK);
    assert_int_equal(nori_archive_write(files[ARCHIVE], arrays, (const nori_tensor *const[]){t, t}, 2, NULL),
                     NORI_OK);
    assert_int_equal(nori_tensor_write(t, files[NPY], NULL), NORI_OK);
    assert_int_equal(nori_tensor_write(t, files[PB], NULL), NORI_OK);
    nori_tensor_free(t);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        unlink(files[i]);
    }
    return rmdir(folder); /* nothing half-written is left */
}

static void test_files(void **state)
{
    (void)state;
    torture("compile", conv, compile);
    torture("run of a plan", conv, run_plan);
    torture("files of tensors", conv, read_files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_conv), cmocka_unit_test(test_control),
                                       cmocka_unit_test(test_tools), cmocka_unit_test(test_files)};
    return cmocka_run_group_tests(tests, make_files, remove_files);
}

/* Models made of models through the C interface: they outlive what they were made of, data beside them
 * is lent and not copied, files are as large as they may be, and cuts are those of the graph. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "make_model.h"
#include "nori/edit.h"
#include "nori/tools.h"
#include "run/run.h"

static char folder[] = "/tmp/nori-edit-XXXXXX";

static char *path(const char *name)
{
    static char buffers[8][128];
    static int next;
    char *p = buffers[next++ % 8];
    snprintf(p, sizeof(buffers[0]), "%s/%s", folder, name);
    return p;
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    static const char *const names[] = {"a.onnx", "a.bin", "b.onnx", "b.onnx.data", "c.onnx"};
    for (size_t i = 0; i < NORI__COUNT(names); i++) {
        unlink(path(names[i]));
    }
    return rmdir(folder);
}

static off_t size_of(const char *name)
{
    struct stat st;
    return stat(path(name), &st) == 0 ? st.st_size : -1;
}

/* y = relu(x * w) + x, w of 512 numbers; a branch of its own to a second output. */
static nori_model *model_of_two_outputs(void)
{
    make m;
    nori__text bytes;
    nori_model *loaded = NULL, *own = NULL;
    nori_error err = {0};
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "2 512");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "2 512");
    make_output(&m, &m.graph, "z", NORI_FLOAT, "2 512");
    nori__pb_tensor *w = MAKE_ADD(&m, m.graph.initializers);
    w->name = make_str(&m, "w");
    w->data_type = NORI_FLOAT;
    *MAKE_ADD(&m, w->dims) = 512;
    for (int i = 0; i < 512; i++) {
        *MAKE_ADD(&m, w->floats) = (float)(i % 9) - 4;
    }
    make_node(&m, &m.graph, "", "Mul", "Mul", "x w", "p");
    make_node(&m, &m.graph, "", "Relu", "Relu", "p", "r");
    make_node(&m, &m.graph, "", "Add", "Add", "r x", "y");
    make_node(&m, &m.graph, "", "Neg", "Neg", "p", "z");
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m.model, &bytes, &err), NORI_OK);
    assert_int_equal(nori_model_load_memory(NULL, bytes.data, bytes.size, NULL, NULL, &loaded, &err),
                     NORI_OK);
    const nori_name same[1] = {{NORI_NAME_VALUE, "p", "product"}}; /* a model with bytes of its own */
    assert_int_equal(nori_rename(loaded, same, 1, &own, &err), NORI_OK);
    nori_model_free(loaded);
    nori__text_free(&bytes);
    make_end(&m);
    return own;
}

/* What the model makes of a ramp, summed up with weights so that places count. */
static double run(const nori_model *model)
{
    nori_session *session = NULL;
    nori_tensor *x = NULL, *out[2] = {NULL, NULL};
    nori_error err = {0};
    double sum = 0;
    size_t n_out = nori_model_output_count(model);
    assert_int_equal(nori_session_create(model, NULL, &session, &err), NORI_OK);
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 2, (int64_t[]){2, 512}, &x, &err), NORI_OK);
    for (int i = 0; i < 1024; i++) {
        ((float *)nori_tensor_data(x))[i] = (float)(i % 31) / 8;
    }
    assert_int_equal(nori_session_run(session, (const nori_tensor *const[]){x}, 1, out, n_out, &err),
                     NORI_OK);
    for (size_t k = 0; k < n_out; k++) {
        for (int i = 0; i < 1024; i++) {
            sum += nori_tensor_number(out[k], i) * ((i + (int)k) % 7 + 1);
        }
        nori_tensor_free(out[k]);
    }
    nori_tensor_free(x);
    nori_session_free(session);
    return sum;
}

static void data_goes_beside_where_a_file_would_be_too_large(void **state)
{
    (void)state;
    nori_model *model = model_of_two_outputs(), *back = NULL, *renamed = NULL;
    nori_save_options o;
    nori_error err = {0};
    double want = run(model);
    nori_save_options_default(&o);
    assert_int_equal(nori_model_save_as(model, path("a.onnx"), &o, &err), NORI_OK);
    assert_int_equal(size_of("a.bin"), -1);
    assert_true(size_of("a.onnx") > 2048);
    o.most = 1000; /* as 2 GB are to a large one */
    assert_int_equal(nori_model_save_as(model, path("b.onnx"), &o, &err), NORI_OK);
    assert_int_equal(size_of("b.onnx.data"), 2048);
    assert_true(size_of("b.onnx") < 1000);
    o.embed = 1;
    assert_int_equal(nori_model_save_as(model, path("c.onnx"), &o, &err), NORI_ERROR_LIMIT);
    assert_non_null(strstr(err.hint, "external"));
    assert_int_equal(size_of("c.onnx"), -1);
    nori_model_free(model);

    /* A model made of one with data beside it: lent, and alive after it. */
    memset(&err, 0, sizeof(err));
    assert_int_equal(nori_model_load(NULL, path("b.onnx"), NULL, &back, &err), NORI_OK);
    assert_string_equal(nori_model_external(back, 0), "b.onnx.data");
    const nori_name names[2] = {{NORI_NAME_VALUE, "y", "first"}, {NORI_NAME_VALUE, "w", "weight"}};
    assert_int_equal(nori_rename(back, names, 2, &renamed, &err), NORI_OK);
    nori_model_free(back);
    assert_true(nori_model_file_bytes(renamed) < 1000);
    assert_true(run(renamed) == want);
    /* Not over the data it is read from; elsewhere it is whole. */
    nori_save_options_default(&o);
    o.external = "b.onnx.data";
    assert_int_equal(nori_model_save_as(renamed, path("c.onnx"), &o, &err), NORI_ERROR_ARGUMENT);
    memset(&err, 0, sizeof(err));
    o.external = "a.bin";
    assert_int_equal(nori_model_save_as(renamed, path("a.onnx"), &o, &err), NORI_OK);
    nori_model_free(renamed);
    unlink(path("b.onnx.data"));
    assert_int_equal(nori_model_load(NULL, path("a.onnx"), NULL, &back, &err), NORI_OK);
    assert_true(run(back) == want);
    nori_model_free(back);
}

static void cuts_and_parts(void **state)
{
    (void)state;
    nori_model *model = model_of_two_outputs(), *parts[2], *whole = NULL;
    nori_cuts *cuts = NULL;
    nori_cut cut = {.size = sizeof(cut)};
    nori_split_options o;
    nori_split_report *report = NULL;
    nori_split_part part = {.size = sizeof(part)};
    nori_proof proof = {.size = sizeof(proof)};
    nori_error err = {0};
    double want = run(model);
    assert_int_equal(nori_cuts_find(model, NULL, &cuts, &err), NORI_OK);
    assert_int_equal(nori_cuts_count(cuts), 3);
    assert_true(nori_cuts_at(cuts, 0, &cut) && cut.nodes == 1 && cut.value_count == 1 && cut.known);
    assert_string_equal(cut.values[0], "product");
    assert_int_equal(cut.bytes, 2 * 512 * 4);
    assert_true(cut.input_count == 1 && cut.input_bytes == cut.bytes);
    assert_true(nori_cuts_at(cuts, 1, &cut) && cut.value_count == 2);
    assert_false(nori_cuts_at(cuts, 3, &cut));
    nori_cuts_free(cuts);

    const char *first[] = {"product", "z"}; /* two nodes, by what they make */
    nori_split_options_default(&o);
    o.first = first;
    o.first_count = 2;
    assert_int_equal(nori_split(model, &o, parts, &report, &err), NORI_OK);
    nori_split_report_proof(report, &proof);
    assert_true(proof.ran && proof.equal && proof.elements == 2048);
    assert_true(nori_split_report_part(report, 0, &part) && part.nodes == 2 && part.value_count == 1);
    assert_int_equal(part.value_bytes[0], 4096);
    assert_false(nori_split_report_part(report, 2, &part));
    nori_split_report_free(report);
    nori_model_free(model);
    assert_int_equal(nori_model_output_count(parts[0]), 2);

    nori_merge_options mo;
    nori_merge_report merged = {.size = sizeof(merged)};
    const nori_joint joint = {"product", "product"};
    nori_merge_options_default(&mo);
    mo.joints = &joint;
    mo.joint_count = 1;
    assert_int_equal(nori_merge(parts[0], parts[1], &mo, &whole, &merged, &err), NORI_OK);
    assert_int_equal(merged.shared, 1); /* both parts read x */
    nori_model_free(parts[0]);
    nori_model_free(parts[1]);
    const char *outputs[] = {"y", "z"};
    nori_model *ordered = NULL;
    assert_int_equal(nori_extract(whole, NULL, 0, outputs, 2, &ordered, &err), NORI_OK);
    nori_model_free(whole);
    assert_true(run(ordered) == want);
    nori_model_free(ordered);
}

/* Samples of a model with one input x[2,512]: three, then none; `fail` says that the next cannot be had. */
static bool fail;
static int sample(void *user, size_t index, nori_tensor **inputs, nori_error *err)
{
    const int64_t dims[2] = {2, 512};
    (void)user;
    if (fail || index == 3) {
        return fail ? -1 : 0;
    }
    if (nori_tensor_create(NULL, NORI_FLOAT, 2, dims, &inputs[0], err) != NORI_OK) {
        return -1;
    }
    float *x = nori_tensor_data(inputs[0]);
    for (int i = 0; i < 1024; i++) {
        x[i] = (float)((i * 37 + (int)index) % 101) / 50 - 1;
    }
    return 1;
}

static void parts_in_8_bits(void **state)
{
    (void)state;
    nori_model *model = model_of_two_outputs(), *parts[2], *narrow[2];
    const char *product = "product";
    const nori_split_at at = {&product, 1};
    nori_split_options so;
    nori_narrow_options o;
    nori_narrow_report *report = NULL;
    nori_narrowed v = {.size = sizeof(v)};
    nori_narrow_result r = {.size = sizeof(r)};
    nori_error err = {0};
    nori_split_options_default(&so);
    so.at = &at;
    so.at_count = 1;
    assert_int_equal(nori_split(model, &so, parts, NULL, &err), NORI_OK);
    nori_narrow_options_default(&o);
    o.sample = sample;
    const nori_model *const in[2] = {parts[0], parts[1]};
    assert_int_equal(nori_narrow(model, in, 2, &o, narrow, &report, &err), NORI_OK);
    nori_narrow_report_result(report, &r);
    assert_true(r.ran && r.samples == 3 && r.left == 0 && r.max_abs <= 0.05 * r.peak);
    assert_true(nori_narrow_report_value(report, 0, &v) && v.fixed && v.part == 0);
    assert_false(nori_narrow_report_value(report, 1, &v));
    assert_true(v.bytes_before == 4096 && v.bytes == 1024 && v.min <= 0 && v.max >= 0);
    assert_true(v.max_abs > 0 && v.max_abs <= 0.501 * v.scale);
    assert_string_equal(nori_model_output(narrow[0], 0)->name, v.sent);
    assert_int_equal(nori_model_output(narrow[0], 0)->type, NORI_UINT8);
    nori_narrow_report_free(report);
    nori_model_free(narrow[0]);
    nori_model_free(narrow[1]);

    o.tolerance = 0; /* 8 bits cannot be exact here */
    assert_int_equal(nori_narrow(model, in, 2, &o, narrow, &report, &err), NORI_ERROR_DATA);
    assert_true(!report && !narrow[0] && !narrow[1]);
    o.tolerance = 0.05;
    fail = true;
    memset(&err, 0, sizeof(err));
    assert_int_equal(nori_narrow(model, in, 2, &o, narrow, NULL, &err), NORI_ERROR_DATA);
    fail = false;
    memset(&err, 0, sizeof(err));
    assert_int_equal(nori_narrow(model, in, 1, &o, narrow, NULL, &err), NORI_ERROR_ARGUMENT);
    nori_model_free(parts[0]);
    nori_model_free(parts[1]);
    nori_model_free(model);
}

static void options_are_looked_at(void **state)
{
    (void)state;
    nori_model *model = model_of_two_outputs(), *made[2] = {NULL, NULL};
    nori_error err = {0};
    nori_split_options so;
    nori_optimize_options oo;
    nori_rebatch_options ro;
    nori_split_options_default(&so);
    assert_int_equal(nori_split(model, &so, made, NULL, &err), NORI_ERROR_ARGUMENT);
    memset(&err, 0, sizeof(err));
    nori_optimize_options_default(&oo);
    oo.passes = "fold,nothing";
    assert_int_equal(nori_optimize(model, &oo, made, NULL, &err), NORI_ERROR_ARGUMENT);
    memset(&err, 0, sizeof(err));
    nori_rebatch_options_default(&ro);
    ro.batch = 3; /* no multiple of 2 */
    assert_int_equal(nori_rebatch(model, &ro, made, NULL, &err), NORI_ERROR_ARGUMENT);
    memset(&err, 0, sizeof(err));
    assert_int_equal(nori_shapes(model, &(nori_axis_change){.input = "x", .axis = 1, .value = -1}, 1, 1,
                                 made, &err), NORI_OK);
    assert_int_equal(nori_model_input(made[0], 0)->dims[1], -1);
    assert_int_equal(nori_model_output(made[0], 0)->dims[1], 512); /* as w has it */
    nori_model_free(made[0]);
    assert_int_equal(nori_model_save_as(model, "", NULL, NULL), NORI_ERROR_ARGUMENT);
    assert_int_equal(nori_rename(model, NULL, 1, made, NULL), NORI_ERROR_ARGUMENT);
    nori_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_goes_beside_where_a_file_would_be_too_large),
        cmocka_unit_test(cuts_and_parts),
        cmocka_unit_test(parts_in_8_bits),
        cmocka_unit_test(options_are_looked_at),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

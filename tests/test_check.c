/* The checker: faults as users meet them, each in a small model, with what must be said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "make_model.h"
#include "ops/support.h"
#include "tools/check/check_internal.h"

static nori_findings *check_with(make *m, const char *targets, int strict)
{
    nori__ir *ir = make_ir(m);
    nori_findings *found = NULL;
    nori_error err = {0};
    nori_check_options options;
    nori_check_options_default(&options);
    options.targets = targets;
    options.strict = strict;
    nori_status status = nori__check_ir(ir, &options, &found, &err);
    nori__ir_free(ir);
    if (status != NORI_OK) {
        print_error("%s\n", err.message);
    }
    assert_int_equal(status, NORI_OK);
    return found;
}

static nori_findings *check(make *m)
{
    return check_with(m, NULL, 0);
}

/* The finding of a rule whose message holds the text; NULL: none. */
static const nori_finding *find(const nori_findings *found, int severity, const char *rule,
                                const char *text)
{
    const nori_finding *f;
    for (size_t i = 0; (f = nori_findings_at(found, i)) != NULL; i++) {
        if (f->severity == severity && nori__same(f->rule, rule) && strstr(f->message, text)) {
            return f;
        }
    }
    return NULL;
}

static void must_say(const nori_findings *found, int severity, const char *rule, const char *text,
                     const char *path, const char *hint)
{
    const nori_finding *f = find(found, severity, rule, text), *g;
    for (size_t i = 0; !f && (g = nori_findings_at(found, i)) != NULL; i++) {
        print_error("%d %s: %s: %s (%s)\n", g->severity, g->rule, g->path, g->message, g->hint);
    }
    assert_non_null(f);
    assert_non_null(strstr(f->path, path));
    assert_non_null(strstr(f->hint, hint));
}

static void must_be_clean(nori_findings *found)
{
    const nori_finding *g = nori_findings_at(found, 0);
    if (nori_findings_at_least(found, NORI_SEVERITY_WARNING) > 0) {
        print_error("%s: %s: %s\n", g->rule, g->path, g->message);
    }
    assert_int_equal(nori_findings_at_least(found, NORI_SEVERITY_WARNING), 0);
    nori_findings_free(found);
}

enum { INFO = NORI_SEVERITY_INFO, WARNING = NORI_SEVERITY_WARNING, ERROR = NORI_SEVERITY_ERROR };

/* x -> Relu -> y, float [N, 4]. */
static void begin_relu(make *m, int64_t opset)
{
    make_begin(m, opset);
    make_input(m, &m->graph, "x", NORI_FLOAT, "N 4");
    make_node(m, &m->graph, "", "Relu", "relu", "x", "y");
    make_output(m, &m->graph, "y", NORI_FLOAT, "N 4");
}

static void says_nothing_about_a_valid_model(void **state)
{
    (void)state;
    make m;
    begin_relu(&m, 17);
    must_be_clean(check_with(&m, NULL, 1));
    make_end(&m);
}

/* An opset newer than known matters only to nodes that need it. */
static void newer_opset_of_an_unused_domain(void **state)
{
    (void)state;
    make m;
    begin_relu(&m, 17);
    make_import(&m, "ai.onnx.ml", 99);
    nori_findings *found = check(&m);
    must_say(found, INFO, "opset", "ai.onnx.ml 99", "ai.onnx.ml", "");
    must_be_clean(found);

    make_input(&m, &m.graph, "z", NORI_FLOAT, "N 4");
    make_node(&m, &m.graph, "ai.onnx.ml", "Scaler", "scale_it", "z", "w");
    make_output(&m, &m.graph, "w", NORI_FLOAT, NULL);
    found = check(&m);
    must_say(found, ERROR, "opset",
             "Scaler, domain ai.onnx.ml, opset 99: newer than the newest "
             "known, 5",
             "scale_it", "");
    assert_int_equal(nori_findings_at_least(found, NORI_SEVERITY_ERROR), 1);
    nori_findings_free(found);

    nori__ir *ir = make_ir(&m);
    nori_error err = {0};
    assert_int_equal(nori__require_supported(ir, &err), NORI_ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "ai.onnx.ml"));
    assert_non_null(strstr(err.message, "99"));
    assert_non_null(strstr(err.message, "newest known, 5"));
    assert_non_null(strstr(err.message, "Scaler"));
    assert_non_null(strstr(err.message, "scale_it"));
    assert_non_null(strstr(err.message, "IR version 8"));
    assert_non_null(strstr(err.message, "ai.onnx 17 (newest known 28)"));
    nori__ir_free(ir);
    make_end(&m);
}

/* Private operators in the default domain: each named once, with its number of nodes. */
static void unknown_operators_are_listed_once(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 10);
    make_import(&m, "PACTOps", 1);
    make_import(&m, "com.other", 1);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1 4");
    make_node(&m, &m.graph, "", "RMSNorm", "norm_a", "x", "a");
    make_node(&m, &m.graph, "", "RMSNorm", "norm_b", "a", "b");
    make_node(&m, &m.graph, "", "iGELU", "gelu", "b", "c0");
    make_node(&m, &m.graph, "", "iLayerNorm", "layer", "c0", "c");
    make_node(&m, &m.graph, "PACTOps", "RequantShift", "shift", "c", "d");
    make_node(&m, &m.graph, "qonnx.custom_op.general", "Quant", "quant", "d", "e");
    make_node(&m, &m.graph, "", "GridSample", "sample", "e x", "f");
    make_node(&m, &m.graph, "ai.onnx.ml", "Scaler", "scaler", "f", "y");
    make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);
    nori_findings *found = check(&m);
    must_say(found, ERROR, "operator",
             "RMSNorm, default domain, opset 10: no such operator; 2 nodes", "norm_a",
             "RMSNormalization of domain ai.onnx, from opset 23");
    must_say(found, ERROR, "operator", "iGELU, default domain, opset 10", "gelu",
             "Gelu of domain ai.onnx, from opset 20");
    must_say(found, ERROR, "operator", "iLayerNorm, default domain, opset 10", "layer",
             "LayerNormalization of domain ai.onnx, from opset 17");
    must_say(found, ERROR, "domain",
             "RequantShift, domain PACTOps, opset 1: the domain is not known", "shift", "");
    must_say(found, ERROR, "domain",
             "Quant, domain qonnx.custom_op.general: the domain is used but not imported", "quant",
             "");
    must_say(found, ERROR, "opset",
             "GridSample, default domain, opset 10: exists only from opset 16", "sample",
             "opset 16");
    must_say(found, ERROR, "domain",
             "Scaler, domain ai.onnx.ml: the domain is used but not imported", "scaler",
             "add an opset import for domain ai.onnx.ml");
    assert_int_equal(nori_findings_at_least(found, NORI_SEVERITY_ERROR), 7);
    nori_findings_free(found);

    nori__ir *ir = make_ir(&m);
    nori_error err = {0};
    assert_int_equal(nori__require_supported(ir, &err), NORI_ERROR_UNSUPPORTED);
    assert_memory_equal(err.message,
                        "7 operators cannot run:\n  RMSNorm, default domain, opset 10: "
                        "no such operator (2 nodes, first ",
                        50);
    assert_non_null(strstr(err.message, "\n  iGELU, default domain"));
    assert_non_null(strstr(err.message, "\n  the file has IR version"));
    assert_non_null(strstr(err.message, "PACTOps 1 (not known)"));
    assert_null(strstr(err.message, "com.other")); /* imported, but nothing of it is missing */
    assert_non_null(strstr(err.hint, "RMSNormalization"));
    nori__ir_free(ir);
    make_end(&m);
}

/* So many that paths do not fit: all are named all the same. */
static void long_lists_lose_paths_not_names(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1");
    char in[16] = "x", out[16] = "", op[16], name[256];
    for (int i = 0; i < 24; i++) {
        snprintf(op, sizeof(op), "Q%d", i);
        snprintf(name, sizeof(name),
                 "a_very_long_name_that_some_exporter_made_up_out_of_module_"
                 "paths_and_layer_numbers_and_other_things_number_%d",
                 i);
        snprintf(out, sizeof(out), "v%d", i);
        make_node(&m, &m.graph, "", op, name, in, out);
        memcpy(in, out, sizeof(in));
    }
    make_output(&m, &m.graph, out, NORI_FLOAT, NULL);
    nori__ir *ir = make_ir(&m);
    nori_error err = {0};
    assert_int_equal(nori__require_supported(ir, &err), NORI_ERROR_UNSUPPORTED);
    for (int i = 0; i < 24; i++) {
        snprintf(op, sizeof(op), "Q%d, ", i);
        assert_non_null(strstr(err.message, op));
    }
    assert_non_null(strstr(err.message, "other_things_number_0"));
    nori__ir_free(ir);
    make_end(&m);
}

/* Everything a model's own function hides is looked at too. */
static void function_bodies_are_judged(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 17);
    make_import(&m, "mine", 1);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1");
    make_node(&m, &m.graph, "mine", "Twice", "call", "x", "y");
    make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);
    nori__pb_function *f = MAKE_ADD(&m, m.model.functions);
    f->name = make_str(&m, "Twice");
    f->domain = make_str(&m, "mine");
    *MAKE_ADD(&m, f->inputs) = make_str(&m, "a");
    *MAKE_ADD(&m, f->outputs) = make_str(&m, "b");
    nori__pb_node *n = MAKE_ADD(&m, f->nodes);
    n->op_type = make_str(&m, "Doubble");
    nori_findings *found = check(&m);
    must_say(found, ERROR, "operator", "Doubble, default domain, opset 17", "function Twice", "");
    assert_int_equal(nori_findings_at_least(found, NORI_SEVERITY_ERROR), 1);
    nori_findings_free(found);
    make_end(&m);
}

static void equal_of_floats(make *m, int64_t opset)
{
    make_begin(m, opset);
    make_input(m, &m->graph, "x", NORI_FLOAT, "1 4");
    make_node(m, &m->graph, "", "Relu", "", "x", "r"); /* type known by the facts alone */
    make_node(m, &m->graph, "", "Equal", "/h.0/attn/Equal", "r x", "y");
    make_node(m, &m->graph, "", "Not", "not", "y", "z"); /* no fault of its own */
    make_output(m, &m->graph, "z", NORI_BOOL, NULL);
}

static void types_depend_on_the_version(void **state)
{
    (void)state;
    make m;
    equal_of_floats(&m, 10);
    nori_findings *found = check(&m);
    must_say(found, ERROR, "type",
             "Equal at version 7 takes int32, int64, bool for input A, found float32",
             "/h.0/attn/Equal", "float32 needs opset 11: nori runs it");
    nori_findings_free(found);
    make_end(&m);
    equal_of_floats(&m, 11);
    must_be_clean(check(&m));
    make_end(&m);

    make_begin(&m, 11);
    make_input(&m, &m.graph, "x", NORI_INT8, "4 4");
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof(name), "m%d", i);
        make_node(&m, &m.graph, "", "MatMul", name, "x x", name);
        make_output(&m, &m.graph, name, NORI_INT8, NULL);
    }
    found = check(&m);
    const nori_finding *f = find(found, ERROR, "type", "for input A, found int8 (3 times");
    assert_non_null(f);
    assert_non_null(strstr(f->path, "m0"));
    assert_string_equal(f->hint, "no version of MatMul takes int8 there");
    nori_findings_free(found);
    make_end(&m);
}

static void one_constraint_means_one_type(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 14);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "4");
    make_input(&m, &m.graph, "i", NORI_INT64, "4");
    make_node(&m, &m.graph, "", "Add", "sum", "x i", "y");
    make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);
    nori_findings *found = check(&m);
    must_say(found, ERROR, "type", "B (int64) and A (float32) must have one type, T", "sum", "");
    nori_findings_free(found);
    make_end(&m);
}

static void attributes_and_arity(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "4 4");
    make_ints(&m, &m.graph, "shape", 1, (int64_t[]){-1});
    nori__pb_node *n = make_node(&m, &m.graph, "", "Reshape", "re", "x shape", "a");
    make_attr_int(&m, n, "allowzero", 1);
    make_node(&m, &m.graph, "", "Concat", "cat", "a", "b");
    n = make_node(&m, &m.graph, "", "Softmax", "soft", "b", "c");
    make_attr_text(&m, n, "axis", "last");
    make_node(&m, &m.graph, "", "Clip", "clip", "c - - -", "d"); /* empty names may trail */
    make_node(&m, &m.graph, "", "Relu", "relu", "d d", "e");
    make_node(&m, &m.graph, "", "MatMul", "mat", "e", "f");
    make_node(&m, &m.graph, "", "Where", "where", "- f f", "y");
    n = make_node(&m, &m.graph, "", "Split", "split", "x", "s t");
    make_attr_ints(&m, n, "split", 2, (int64_t[]){1, 3});
    make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);
    make_output(&m, &m.graph, "s", NORI_FLOAT, NULL);
    make_output(&m, &m.graph, "t", NORI_FLOAT, NULL);
    nori_findings *found = check(&m);
    must_say(found, ERROR, "attribute", "Reshape (version 13) has no attribute allowzero", "re",
             "opset 14 and newer have it");
    must_say(found, ERROR, "attribute", "Concat (version 13) needs attribute axis (int)", "cat",
             "");
    must_say(found, ERROR, "attribute",
             "attribute axis of Softmax (version 13) must be int, found string", "soft", "");
    must_say(found, ERROR, "inputs", "Relu (version 13) takes 1 inputs, found 2", "relu", "");
    must_say(found, ERROR, "inputs", "MatMul (version 13) takes 2 inputs, found 1", "mat", "");
    must_say(found, ERROR, "inputs", "Where (version 9) needs input 0, condition", "where", "");
    must_say(found, ERROR, "attribute", "Split (version 13) has no attribute split", "split",
             "version 11 of the operator had it");
    assert_int_equal(nori_findings_at_least(found, NORI_SEVERITY_ERROR), 7);
    nori_findings_free(found);
    make_end(&m);
}

/* A fixed batch: the body bakes in what the inputs leave open. */
static void batch(make *m, const char *shape, int64_t first)
{
    make_begin(m, 13);
    make_input(m, &m->graph, "x", NORI_FLOAT, shape);
    make_node(m, &m->graph, "", "Relu", "relu", "x", "a");
    make_ints(m, &m->graph, "flat", 2, (int64_t[]){first, -1});
    make_node(m, &m->graph, "", "Reshape", "flatten", "a flat", "b");
    make_output(m, &m->graph, "b", NORI_FLOAT, NULL);
}

static void batch_baked_into_the_body(void **state)
{
    (void)state;
    make m;
    batch(&m, "N 3 2 2", 1);
    nori_findings *found = check(&m);
    must_say(found, WARNING, "batch",
             "axis 0 of input x is free, but a constant shape here fixes axis 0 at 1", "flatten",
             "dynamic batch axis");
    nori_findings_free(found);
    make_end(&m);
    batch(&m, "1 3 2 2", 1);
    found = check(&m);
    must_say(found, INFO, "batch", "axis 0 of input x is 1", "flatten", "dynamic batch axis");
    must_be_clean(found);
    make_end(&m);
    batch(&m, "N 3 2 2", 0); /* 0 copies the size */
    must_be_clean(check(&m));
    make_end(&m);
    batch(&m, "5 3 2 2", 5);
    must_be_clean(check(&m));
    make_end(&m);
}

static void axis_names_only_outputs_have(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1 4");
    make_node(&m, &m.graph, "", "Relu", "relu", "x", "y");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "batch 4");
    nori_findings *found = check(&m);
    must_say(found, WARNING, "axis-name", "axis 0 of output y is named batch", "y", "dynamic_axes");
    nori_findings_free(found);
    found = check_with(&m, NULL, 1);
    must_say(found, ERROR, "axis-name", "batch", "y", "");
    nori_findings_free(found);
    make_end(&m);
}

/* Three operators without a kernel, nested: one report with all paths. */
static void targets_see_into_loops(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 16);
    make_input(&m, &m.graph, "n", NORI_INT64, "");
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1 4");
    nori__pb_node *loop = make_node(&m, &m.graph, "", "Loop", "loop", "n - x", "y");
    nori__pb_graph *body = make_attr_graph(&m, loop, "body");
    make_input(&m, body, "i", NORI_INT64, "");
    make_input(&m, body, "go", NORI_BOOL, "");
    make_input(&m, body, "v", NORI_FLOAT, NULL);
    make_node(&m, body, "", "Identity", "keep", "go", "going");
    make_node(&m, body, "", "Scatterer", "one", "v", "a");
    make_node(&m, body, "", "Gatherer", "two", "a", "b");
    make_node(&m, body, "", "Whirl", "three", "b", "w");
    make_output(&m, body, "going", NORI_BOOL, "");
    make_output(&m, body, "w", NORI_FLOAT, NULL);
    make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);
    nori_findings *found = check_with(&m, "cpu, reference", 0);
    must_say(found, ERROR, "target", "target cpu: Scatterer", "one", "");
    must_say(found, ERROR, "target", "target cpu: Gatherer", "two", "");
    must_say(found, ERROR, "target", "target reference: Whirl", "three", "");
    must_say(found, ERROR, "target", "target reference: Whirl", "loop", "");
    nori_findings_free(found);

    nori__ir *ir = make_ir(&m);
    nori_error err = {0};
    nori_check_options options;
    nori_check_options_default(&options);
    options.targets = "cpu,abacus";
    assert_int_equal(nori__check_ir(ir, &options, &found, &err), NORI_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "abacus"));
    assert_null(found);
    nori__ir_free(ir);
    make_end(&m);
}

/* A provider that runs nothing: each known operator is a gap of the kernel kind. */
static bool nothing(void *user, const nori__node *node)
{
    (void)node;
    ++*(int *)user;
    return false;
}

static void kernels_are_asked_for(void **state)
{
    (void)state;
    make m;
    begin_relu(&m, 17);
    nori__ir *ir = make_ir(&m);
    int asked = 0;
    nori_error err = {0};
    assert_int_equal(nori__require_runnable(ir, nothing, &asked, &err), NORI_ERROR_UNSUPPORTED);
    assert_int_equal(asked, 1);
    assert_non_null(
        strstr(err.message, "Relu, default domain, opset 17: no kernel for version 14"));
    nori__ir_free(ir);
    make_end(&m);
}

/* What the optimiser and checkers of others died of. */
static void broken_nodes_are_findings(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "2 3 4");
    nori__pb_node *n = make_node(&m, &m.graph, "", "Transpose", "turn", "x", "y");
    make_attr_ints(&m, n, "perm", 2, (int64_t[]){1, 0});
    n = make_node(&m, &m.graph, "", "Einsum", "sum", "x", "z");
    make_attr_text(&m, n, "equation", "abc,cd->abd");
    n = make_node(&m, &m.graph, "", "Einsum", "none", "", "w");
    make_attr_text(&m, n, "equation", "ab->a");
    make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);
    make_output(&m, &m.graph, "z", NORI_FLOAT, NULL);
    make_output(&m, &m.graph, "w", NORI_FLOAT, NULL);
    nori_findings *found = check(&m);
    must_say(found, ERROR, "inputs", "Einsum (version 12) takes at least 1 inputs, found 0", "none",
             "");
    nori_findings_free(found);
    make_end(&m);
}

/* Inference goes on behind a node that fails: both faults are told, and the file's own words are
 * held against what is computed. */
static void every_shape_error_is_found(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "2 3");
    make_floats(&m, &m.graph, "w", 4, 5);
    make_floats(&m, &m.graph, "v", 3, 5);
    make_node(&m, &m.graph, "", "MatMul", "bad_one", "x w", "a");
    make_node(&m, &m.graph, "", "MatMul", "good", "x v", "b");
    make_node(&m, &m.graph, "", "MatMul", "bad_two", "b w", "c");
    make_output(&m, &m.graph, "a", NORI_FLOAT, NULL);
    make_output(&m, &m.graph, "b", NORI_FLOAT, "2 6");
    make_output(&m, &m.graph, "c", NORI_FLOAT, NULL);
    nori_findings *found = check(&m);
    must_say(found, ERROR, "shape", "MatMul: ", "bad_one", "");
    must_say(found, WARNING, "shape", "output b is declared [2, 6], MatMul makes [2, 5]", "good",
             "");
    size_t shape_errors = 0;
    for (size_t i = 0; i < nori_findings_at_least(found, NORI_SEVERITY_ERROR); i++) {
        const nori_finding *f = nori_findings_at(found, i);
        shape_errors += nori__same(f->rule, "shape") &&
                        (strstr(f->path, "bad_one") || strstr(f->path, "bad_two"));
    }
    assert_int_equal(shape_errors, 2);
    nori_findings_free(found);
    make_end(&m);
}

/* Through the front door: bytes that are no model, a cycle, a file that is not there. */
static void files_that_do_not_load(void **state)
{
    (void)state;
    char path[] = "/tmp/nori-check-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    make m;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1");
    make_node(&m, &m.graph, "", "Add", "first", "x b", "a");
    make_node(&m, &m.graph, "", "Neg", "second", "a", "b");
    make_output(&m, &m.graph, "b", NORI_FLOAT, NULL);
    nori__text bytes;
    nori__text_init(&bytes, &nori__malloc);
    nori_error err = {0};
    assert_int_equal(nori__pb_write_model(&m.model, &bytes, &err), NORI_OK);
    assert_int_equal(write(fd, bytes.data, bytes.size), bytes.size);
    nori_findings *found = NULL;
    assert_int_equal(nori_check_file(NULL, path, NULL, NULL, &found, &err), NORI_OK);
    assert_int_equal(nori_findings_count(found), 1);
    must_say(found, ERROR, "load", "first", "", ""); /* the cycle names its nodes */
    nori_findings_free(found);

    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, "\xff\xff\xff\xff", 4, 0), 4);
    assert_int_equal(nori_check_file(NULL, path, NULL, NULL, &found, &err), NORI_OK);
    must_say(found, ERROR, "load", "at byte", "", "");
    nori_findings_free(found);
    close(fd);
    unlink(path);

    assert_int_equal(nori_check_file(NULL, path, NULL, NULL, &found, &err), NORI_ERROR_IO);
    assert_null(found);
    nori__text_free(&bytes);
    make_end(&m);
}

static void a_file_that_loads(void **state)
{
    (void)state;
    make m;
    equal_of_floats(&m, 10);
    nori__text bytes;
    nori__text_init(&bytes, &nori__malloc);
    nori_error err = {0};
    assert_int_equal(nori__pb_write_model(&m.model, &bytes, &err), NORI_OK);
    nori_model *model = NULL;
    assert_int_equal(nori_model_load_memory(NULL, bytes.data, bytes.size, NULL, NULL, &model, &err),
                     NORI_OK);
    nori_findings *found = NULL;
    assert_int_equal(nori_check(model, NULL, &found, &err), NORI_OK);
    must_say(found, ERROR, "type", "Equal at version 7", "/h.0/attn/Equal", "opset 11");
    nori_findings_free(found);
    nori_model_free(model);
    nori__text_free(&bytes);
    make_end(&m);
}

static void unused_things_are_said_once_each(void **state)
{
    (void)state;
    make m;
    begin_relu(&m, 17);
    make_input(&m, &m.graph, "idle", NORI_FLOAT, "1");
    make_ints(&m, &m.graph, "spare", 1, (int64_t[]){1});
    make_node(&m, &m.graph, "", "Neg", "dead", "x", "nowhere");
    nori_findings *found = check(&m);
    must_say(found, INFO, "unused", "input", "idle", "");
    must_say(found, INFO, "unused", "initializer", "spare", "");
    must_say(found, INFO, "unused", "node", "dead", "");
    must_be_clean(found);
    make_end(&m);
}

static void near_names(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"relu", "Relu"},
        {"RMSNorm", "RMSNormalization"},
        {"BatchNorm", "BatchNormalization"},
        {"Convolution", "Conv"},
        {"Sofmax", "Softmax"},
        {"iLayerNorm", "LayerNormalization"},
        {"Requant", NULL},
        {"", NULL},
        {"FusedConvv", "FusedConv"},
    };
    for (size_t i = 0; i < NORI__COUNT(pairs); i++) {
        const nori__schema *near = nori__near_operator(pairs[i][0]);
        if (!pairs[i][1]) {
            if (near) {
                print_error("%s: %s\n", pairs[i][0], near->name);
            }
            assert_null(near);
        } else {
            assert_non_null(near);
            assert_string_equal(near->name, pairs[i][1]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_nothing_about_a_valid_model),
        cmocka_unit_test(newer_opset_of_an_unused_domain),
        cmocka_unit_test(unknown_operators_are_listed_once),
        cmocka_unit_test(long_lists_lose_paths_not_names),
        cmocka_unit_test(function_bodies_are_judged),
        cmocka_unit_test(types_depend_on_the_version),
        cmocka_unit_test(one_constraint_means_one_type),
        cmocka_unit_test(attributes_and_arity),
        cmocka_unit_test(batch_baked_into_the_body),
        cmocka_unit_test(axis_names_only_outputs_have),
        cmocka_unit_test(targets_see_into_loops),
        cmocka_unit_test(kernels_are_asked_for),
        cmocka_unit_test(broken_nodes_are_findings),
        cmocka_unit_test(every_shape_error_is_found),
        cmocka_unit_test(files_that_do_not_load),
        cmocka_unit_test(a_file_that_loads),
        cmocka_unit_test(unused_things_are_said_once_each),
        cmocka_unit_test(near_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

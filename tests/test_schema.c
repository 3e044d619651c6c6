/* The table of facts: lookup by version, and facts picked by hand from the specification. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ops/schema.h"

#define BIT(type) (UINT64_C(1) << (type))

static const nori__schema_attr *attr(const nori__schema *s, const char *name)
{
    for (size_t i = 0; i < s->n_attr; i++) {
        if (nori__same(s->attrs[i].name, name)) {
            return &s->attrs[i];
        }
    }
    return NULL;
}

static int since(const char *domain, const char *name, int64_t opset)
{
    const nori__schema *s = nori__schema_find(domain, name, opset);
    return s ? s->since : 0;
}

static void finds_the_version_in_force(void **state)
{
    (void)state;
    assert_int_equal(since("", "Reshape", 1), 1);
    assert_int_equal(since("", "Reshape", 4), 1);
    assert_int_equal(since("ai.onnx", "Reshape", 5), 5);
    assert_int_equal(since("", "Reshape", 13), 13);
    assert_int_equal(since("", "Reshape", 18), 14);
    assert_int_equal(since("", "Reshape", 99), 25);
    assert_int_equal(since("", "RMSNormalization", 22), 0);
    assert_int_equal(since("", "RMSNormalization", 23), 23);
    assert_int_equal(since("", "RMSNorm", 23), 0);
    assert_int_equal(since("", "Abs", 0), 0);
    assert_int_equal(since("", "Abs", INT64_MIN), 0);
    assert_int_equal(since("", "A", 20), 0);
    assert_int_equal(since("", "Zzz", 20), 0);
    assert_int_equal(since("ai.onnx.ml", "LabelEncoder", 3), 2);
    assert_int_equal(since("ai.onnx.ml", "Reshape", 3), 0);
    assert_int_equal(since("com.microsoft", "FusedConv", 1), 1);
    assert_int_equal(since("nowhere", "Reshape", 13), 0);
    /* Experimental operators have no successor: files of any opset hold them. */
    assert_int_equal(since("", "ImageScaler", 12), 1);
}

static void table_is_sorted_and_whole(void **state)
{
    (void)state;
    size_t counts[5] = {0};
    static const char *const domains[5] = {"", "ai.onnx.ml", "ai.onnx.preview",
                                           "ai.onnx.preview.training", "com.microsoft"};
    const nori__schema *last = NULL, *s;
    for (size_t i = 0; (s = nori__schema_at(i)) != NULL; i++) {
        if (last) {
            int order = strcmp(last->domain, s->domain);
            order = order ? order : strcmp(last->name, s->name);
            assert_true(order < 0 || (order == 0 && last->since < s->since));
        }
        if (!last || !nori__same(last->name, s->name) || !nori__same(last->domain, s->domain)) {
            for (size_t d = 0; d < 5; d++) {
                counts[d] += nori__same(domains[d], s->domain);
            }
        }
        assert_ptr_equal(nori__schema_find(s->domain, s->name, s->since), s);
        assert_true(s->since <= nori__opset_max(s->domain));
        assert_true(s->min_in <= s->max_in && s->min_out <= s->max_out);
        assert_true(s->max_in == 65535 || s->max_in == s->n_in);
        assert_true(s->max_out == 65535 || s->max_out == s->n_out);
        for (size_t k = 0; k < s->n_in; k++) {
            assert_true(s->in[k].types != 0);
            assert_true(k + 1 == s->n_in || s->in[k].option != NORI__ARG_VARIADIC);
            assert_true(k >= s->min_in || s->max_in == 65535 ||
                        s->in[k].option != NORI__ARG_VARIADIC);
        }
        last = s;
    }
    assert_int_equal(counts[0], 207); /* 203, three experimental ones, one of exporters alone */
    assert_int_equal(counts[1], 19);
    assert_int_equal(counts[2], 1);
    assert_int_equal(counts[3], 4);
    assert_true(counts[4] >= 8);
}

static void says_defaults_and_kinds(void **state)
{
    (void)state;
    const nori__schema *reshape = nori__schema_find("", "Reshape", 14);
    const nori__schema_attr *a = attr(reshape, "allowzero");
    assert_non_null(a);
    assert_int_equal(a->kind, NORI__ATTR_INT);
    assert_false(a->required);
    assert_string_equal(a->default_text, "0");
    assert_null(attr(nori__schema_find("", "Reshape", 13), "allowzero"));
    a = attr(nori__schema_find("", "Concat", 4), "axis");
    assert_true(a && a->required && !a->default_text);
    a = attr(nori__schema_find("", "Concat", 1), "axis");
    assert_true(a && !a->required && a->kind == NORI__ATTR_INT);
    a = attr(nori__schema_find("", "If", 11), "then_branch");
    assert_true(a && a->required && a->kind == NORI__ATTR_GRAPH);
    a = attr(nori__schema_find("", "LSTM", 14), "activations");
    assert_true(a && a->kind == NORI__ATTR_STRINGS);
    a = attr(nori__schema_find("", "BatchNormalization", 15), "epsilon");
    assert_true(a && nori__same(a->default_text, "1e-05"));
    assert_null(attr(nori__schema_find("", "Unsqueeze", 13), "axes"));
    a = attr(nori__schema_find("", "Unsqueeze", 11), "axes");
    assert_true(a && a->kind == NORI__ATTR_INTS && a->required);
}

static void says_types(void **state)
{
    (void)state;
    const nori__schema *old = nori__schema_find("", "Equal", 10);
    const nori__schema *new = nori__schema_find("", "Equal", 11);
    assert_int_equal(old->since, 7);
    assert_int_equal(new->since, 11);
    assert_true(old->in[0].types == (BIT(NORI_BOOL) | BIT(NORI_INT32) | BIT(NORI_INT64)));
    assert_true(new->in[1].types & BIT(NORI_FLOAT));
    assert_false(new->in[1].types & BIT(NORI_STRING));
    assert_true(nori__schema_find("", "Equal", 19)->in[1].types & BIT(NORI_STRING));
    assert_string_equal(old->in[0].constraint, "T");
    assert_true(old->out[0].types == BIT(NORI_BOOL));
    const nori__schema *reshape = nori__schema_find("", "Reshape", 14);
    assert_null(reshape->in[1].constraint);
    assert_true(reshape->in[1].types == BIT(NORI_INT64));
    const nori__schema *at = nori__schema_find("", "SequenceAt", 11);
    assert_true(at->in[0].types == BIT(NORI__TYPES_SEQ_TENSOR));
    assert_true(nori__schema_find("ai.onnx.ml", "ZipMap", 1)->out[0].types ==
                BIT(NORI__TYPES_SEQ_MAP));
    assert_true(nori__schema_find("ai.onnx.ml", "CastMap", 1)->in[0].types ==
                BIT(NORI__TYPES_MAP));
    uint64_t optional = nori__schema_find("", "Optional", 15)->out[0].types;
    assert_true(optional == (BIT(NORI__TYPES_OPT_TENSOR) | BIT(NORI__TYPES_OPT_SEQ)));
}

static void says_arity(void **state)
{
    (void)state;
    const nori__schema *s = nori__schema_find("", "Concat", 13);
    assert_int_equal(s->min_in, 1);
    assert_int_equal(s->max_in, 65535);
    assert_int_equal(s->in[0].option, NORI__ARG_VARIADIC);
    assert_true(s->in[0].homogeneous);
    s = nori__schema_find("", "Loop", 13);
    assert_int_equal(s->min_in, 2);
    assert_int_equal(s->in[0].option, NORI__ARG_OPTIONAL);
    assert_false(s->in[2].homogeneous);
    s = nori__schema_find("", "LSTM", 14);
    assert_int_equal(s->min_in, 3);
    assert_int_equal(s->max_in, 8);
    assert_int_equal(s->min_out, 0);
    assert_int_equal(s->max_out, 3);
    assert_true(nori__schema_find("", "Scatter", 11)->deprecated);
    assert_false(nori__schema_find("", "Scatter", 10)->deprecated);
    assert_true(nori__schema_find("", "HardSwish", 14)->function);
    assert_false(nori__schema_find("", "Conv", 11)->function);
}

static void knows_newest_opsets(void **state)
{
    (void)state;
    assert_int_equal(nori__opset_max(""), NORI__OPSET_MAX_ONNX);
    assert_int_equal(nori__opset_max("ai.onnx"), NORI__OPSET_MAX_ONNX);
    assert_int_equal(nori__opset_max("ai.onnx.ml"), NORI__OPSET_MAX_ML);
    assert_int_equal(nori__opset_max("com.microsoft"), 1);
    assert_int_equal(nori__opset_max("PACTOps"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_version_in_force), cmocka_unit_test(table_is_sorted_and_whole),
        cmocka_unit_test(says_defaults_and_kinds),    cmocka_unit_test(says_types),
        cmocka_unit_test(says_arity),                 cmocka_unit_test(knows_newest_opsets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

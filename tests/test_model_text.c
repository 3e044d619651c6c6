/* test_model_text.c: the textual form: what it reads, what it writes, what it says of mistakes, and that
 * all models there are come back to the same meaning. As a program with arguments it takes patterns of
 * files of its own: test_model_text 'DIR/...model.onnx'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <glob.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "nori/text.h"
#include "nori/weights.h"
#include "run/run.h"
#include "same_message.h"

static char *text_of(const nori_model *m, int64_t most, nori_text_left *left)
{
    nori_text_options o;
    nori_error err = {0};
    char *text = NULL;
    size_t size = 0;
    nori_text_options_default(&o);
    o.inline_elements = most;
    if (nori_model_text(m, &o, &text, &size, left, &err) != NORI_OK) {
        fail_msg("%s", err.message);
    }
    return text;
}

static nori_model *model_of(const char *text)
{
    nori_model *m = NULL;
    nori_error err = {0};
    if (nori_model_from_text(NULL, text, strlen(text), NULL, &m, &err) != NORI_OK) {
        fail_msg("%s", err.message);
    }
    return m;
}

static bool same_models(const nori_model *a, const nori_model *b)
{
    same_tensors_by_content = true;
    return same_message(&nori__pb_model_message, (const char *)a->source->pb,
                        (const char *)b->source->pb);
}

/* Text, model, text, model: the same all the way. */
static void goes_round(const char *text)
{
    nori_model *first = model_of(text);
    char *written = text_of(first, INT64_MAX, NULL);
    nori_model *second = model_of(written);
    char *again = text_of(second, INT64_MAX, NULL);
    assert_true(same_models(first, second));
    assert_string_equal(written, again);
    nori_text_free(written);
    nori_text_free(again);
    nori_model_free(first);
    nori_model_free(second);
}

#define HEAD "<ir_version: 10, opset_import: [\"\": 21, \"com.microsoft\": 1, \"my.own\": 1]>\n"

static void a_small_model(void **state)
{
    (void)state;
    /* As the syntax's own document writes one. */
    nori_model *m = model_of("<ir_version: 7, opset_import: [ \"\" : 10 ]>\n"
                             "agraph (float[N, 128] X, float[128, 10] W, float[10] B) => (float[N, 10] C)\n"
                             "{\n    T = MatMul(X, W)\n    S = Add(T, B)\n    C = Softmax(S)\n}\n");
    assert_int_equal(nori_model_input_count(m), 3);
    assert_string_equal(nori_model_input(m, 0)->dim_names[0], "N");
    assert_int_equal(nori_model_ir_version(m), 7);
    assert_int_equal(nori_graph_node_count(nori_model_graph(m)), 3);
    nori_model_free(m);
}

static void all_that_there_is(void **state)
{
    (void)state;
    goes_round(
        "#: bytes: \"a20604626f6f6b\"\n"
        "<ir_version: 10, opset_import: [\"\": 21, \"my.own\": 1], producer_name: \"a \\\"b\\\" \\\\ c\",\n"
        " producer_version: \"1\", domain: \"d.e\", model_version: -3, doc_string: \"two\nlines\",\n"
        " metadata_props: [\"k\": \"v\", \"\": \"\"]>\n"
        "#: doc_string: \"of the \\x01 graph\\n\" metadata_props: [\"a\": \"b\"]\n"
        "\"g 1\" (\n"
        "#: doc_string: \"an input\" denotation: \"TENSOR\" dim_denotations: [\"DATA_BATCH\", \"\"]\n"
        " float[N,2] x, seq(float[?,3]) s, optional(seq(int64[])) o, map(int64, float) m,\n"
        " sparse_tensor(float[3,4]) sp, bool c, float[2] d = {1, 2}, string[] \"float\") => "
        "(float[] y, z)\n"
        "<float[2] w = {1.5, -2e10}, float z0 = {-0.0}, int64[0] none = {}, string[2] st = "
        "{\"a\\\"\", \"b,}\"},\n"
        " float16[2] h = {15360, 1.5}, bfloat16[1] bf = {16256}, bool[2] b = {0, 1}, double[3] "
        "dd = {nan, inf, -inf},\n"
        " uint64[1] u = {18446744073709551615}, int64[2] i = {-9223372036854775808, 9223372036854775807},\n"
        " int4[3] i4 = {33, 3}, uint2[5] u2 = {255, 1}, float8e4m3fn[1] f8 = {56}, "
        "complex64[1] cc = {1, -2},\n"
        "#: doc_string: \"an initializer\"\n"
        " int8[2,2] q = {-128, 127, 0, 1}, sparse_tensor(float[5]) sv = float[2] {1, 2} at "
        "int64[2] {0, 3},\n"
        " float[2] inner, other>\n"
        "{\n"
        "# a comment\n"
        "  #: doc_string: \"a node\" metadata_props: [\"where\": \"here\"]\n"
        "  [\"n 1\"] inner = Add(d, w)\n"
        "  k = Constant <value: tensor = float[1,2] named {3, 4}> ()\n"
        "  sk = Constant <sparse_value = sparse_tensor(float[4]) = float[1] {7} at int64[1] {2}>()\n"
        "  y, , \"odd/name\" = my.own.Thing:two <i: int = 3, f: float = 1, big: float = 3e38, "
        "s: string = \"q\",\n"
        "     is: ints = [], fs: floats = [1, 2.5, -0.0], ss: strings = [\"\", \"x\"], t = int8 {5},\n"
        "     ts: tensors = [float[1] {1}, int64[1] a {2}], tp: type_proto = seq(float[]), tps "
        "= [float, int64[2]],\n"
        "     gs: graphs = [g1 () => (float[1] k1) {k1 = Identity(w)}, g2 () => () {}]> (inner, \"\", k)\n"
        "  z = If (c) <then_branch: graph = th () => (float[2] a) <float[2] lw = {8, 9}> { a = "
        "Add(lw, w) },\n"
        "     else_branch = el () => (float[2] a) { a = my.own.Twice <by: float = 2.0> (w) }>\n"
        "}\n"
        "#: metadata_props: [\"f\": \"g\"]\n"
        "<domain: \"my.own\", opset_import: [\"\": 21], overload: \"\", doc_string: \"twice\">\n"
        "Twice <by, plus: float = 0.5, n: int = 1> (v) => (r) <float[] t>\n"
        "{\n  t = Constant <value_float: float = @by> ()\n  r = Mul(v, t)\n}\n"
        "<domain: \"my.own\", opset_import: [\"\": 21], overload: \"two\">\n"
        "Thing (float[2] a, b, e) => (r, s, t)\n{\n r = Identity(a)\n s = Identity(a)\n t = "
        "Identity(e)\n}\n");
}

static void what_is_left_out(void **state)
{
    (void)state;
    nori_text_left left = {.size = sizeof(left)};
    nori_model *m = model_of(HEAD "g (float[3] x) => (float[3] y) <float[3] w = {1, 2, 3}, float b = {4}>\n"
                                  "{ k = Constant <value = float[3] {5, 6, 7}> ()\n t = Add(x, w)\n"
                                  " u = Add(t, k)\n y = Add(u, b) }");
    char *text = text_of(m, 1, &left);
    assert_int_equal(left.tensors, 2);
    assert_int_equal(left.elements, 6);
    assert_int_equal(left.bytes, 24);
    assert_non_null(strstr(text, "w = {...}"));
    assert_non_null(strstr(text, "b = {4}"));
    nori_model *made = NULL;
    nori_error err = {0};
    assert_int_equal(nori_model_from_text(NULL, text, strlen(text), NULL, &made, &err),
                     NORI_ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "\"w\""));
    assert_non_null(strstr(err.hint, "--weights"));
    assert_null(made);
    nori_text_free(text);
    text = text_of(m, -1, &left); /* small: all of it by itself */
    assert_int_equal(left.tensors, 0);
    nori_text_free(text);
    nori_model_free(m);
}

/* ---- mistakes ---- */

static void refuses(const char *text, nori_status status, const char *where, const char *what)
{
    nori_model *m = NULL;
    nori_error err = {0};
    nori_status s = nori_model_from_text(NULL, text, strlen(text), NULL, &m, &err);
    nori_model_free(m);
    if (s != status || !strstr(err.message, where) || !strstr(err.message, what)) {
        fail_msg("%s\ngave %d: %s\nexpected: %d %s ... %s", text, s, err.message, status, where, what);
    }
}

static void mistakes_are_named(void **state)
{
    (void)state;
    refuses("", NORI_ERROR_FORMAT, "line 1, column 1", "a graph's name was expected, the text ends");
    refuses(HEAD "g (float[2] x) => (float[2] y)\n{ y = Relu(x }", NORI_ERROR_FORMAT,
            "line 3, column 14", "')'");
    refuses(HEAD "g (float[2] x) -> (float[2] y) {}", NORI_ERROR_FORMAT, "line 2, column 16",
            "\"=>\" was expected, found \"->\"");
    refuses(HEAD "g (flaot[2] x) => () {}", NORI_ERROR_FORMAT, "line 2, column 9", "',' or ')'");
    refuses(HEAD "g () => () <float[2] w = {1}> {}", NORI_ERROR_FORMAT, "line 2, column 26",
            "the shape asks for 2 values, 1 stand");
    refuses(HEAD "g () => () <float[99999999] w = {1}> {}", NORI_ERROR_FORMAT, "column 33", "asks for");
    refuses(HEAD "g () => () <float[N] w = {1}> {}", NORI_ERROR_FORMAT, "column", "must be a number");
    refuses(HEAD "g () => () <int8[1] w = {200}> {}", NORI_ERROR_FORMAT, "column 26", "-128 to 127");
    refuses(HEAD "g () => () <int64[1] w = {1.5}> {}", NORI_ERROR_FORMAT, "column 27", "found 1.5");
    refuses(HEAD "g () => () <int64[1] w = {9223372036854775808}> {}", NORI_ERROR_FORMAT, "column 27",
            "an integer");
    refuses(HEAD "g () => () <string[1] w = {\"a}> {}", NORI_ERROR_FORMAT, "column 28", "no end");
    refuses(HEAD "g (float x) => () { y = Relu <a: inst = 1> (x) }", NORI_ERROR_FORMAT, "column 34",
            "kind (float, ints");
    refuses(HEAD "g (float x) => () { y = Relu <a = []> (x) }", NORI_ERROR_FORMAT, "column", "empty list");
    refuses(HEAD "g (float x) => () { y = Relu <a: ints = [1.5]> (x) }", NORI_ERROR_FORMAT, "column 42",
            "kind int was expected, found one of kind float");
    refuses(HEAD "g (float x) => () { y = Relu <a: int = [1]> (x) }", NORI_ERROR_FORMAT, "column",
            "one value of kind int");
    refuses("<ir_version: 10, opsets: 3>", NORI_ERROR_FORMAT, "line 1, column 18", "opset_import");
    refuses(HEAD "g () => () {} #: doc_string: \"x\"", NORI_ERROR_FORMAT, "column 15", "about nothing");
    refuses(HEAD "g () => () {\n#: doc_string: \"x\n}", NORI_ERROR_FORMAT, "line 3", "end in its line");
    refuses(HEAD "g () => () {\n#: wrong: \"x\"\n}", NORI_ERROR_FORMAT, "line 3, column 4", "a note knows");
    refuses(HEAD "g (float x) => (float y) { y = Relu(nobody) }", NORI_ERROR_MODEL, "", "nobody");
}

static void depth_is_bounded(void **state)
{
    (void)state;
    enum { DEEP = 100000 };
    static const char *const parts[][2] = {
        {"g (seq(", "seq("}, {"g () => () { y = If (c) <b = ", "g () => () { y = If (c) <b = "}};
    for (size_t k = 0; k < 2; k++) {
        nori__text text;
        nori__text_init(&text, &nori__malloc);
        nori__text_printf(&text, "%s%s", HEAD, parts[k][0]);
        for (int i = 0; i < DEEP; i++) {
            nori__text_add(&text, parts[k][1], strlen(parts[k][1]));
        }
        nori_model *m = NULL;
        nori_error err = {0};
        assert_int_equal(nori_model_from_text(NULL, text.data, text.size, NULL, &m, &err),
                         NORI_ERROR_LIMIT);
        assert_int_equal(err.status, NORI_ERROR_LIMIT);
        assert_non_null(strstr(err.message, "nested more than 64 deep"));
        nori__text_free(&text);
    }
}

/* A text cut or changed anywhere is an error or a model, never a crash. */
static void damage_is_survived(void **state)
{
    (void)state;
    static const char whole[] = HEAD
        "#: doc_string: \"d\" bytes: \"a20604626f6f6b\"\n"
        "g (float[N,2] x, seq(map(int64, float[])) s) => (float[] y) <float[2] w = {1, 2e3}, "
        "string q = {\"s\\\"\"},\n"
        " sparse_tensor(float[5]) sv = float[2] {1, 2} at int64[2] {0, 3}>\n"
        "{ [n] y = my.own.Op:o <a: ints = [1, 2], g = h () => () {}, t = int4[3] {1, 2}> (x, , w) }\n"
        "<domain: \"my.own\", opset_import: [\"\": 21]> Op <p, r: float = 1.0> (v) => (r) { r = Neg(v) }\n";
    static const char odd[] = {0, '"', '{', '}', '<', '>', '[', ']', '(', '#',
                              '\\', '-', '9', '@', (char)0xff};
    size_t n = sizeof(whole) - 1;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k <= sizeof(odd); k++) {
            char *copy = malloc(n + 1);
            nori_model *m = NULL;
            assert_non_null(copy);
            memcpy(copy, whole, n + 1);
            if (k < sizeof(odd)) {
                copy[i] = odd[k];
            }
            nori_model_from_text(NULL, copy, k < sizeof(odd) ? n : i, NULL, &m, NULL);
            nori_model_free(m);
            free(copy);
        }
    }
}

/* Points and commas are those of the syntax, not of the program's country. */
static void locale_does_not_matter(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "pl_PL.UTF-8"};
    size_t i = 0;
    while (i < 4 && !setlocale(LC_NUMERIC, names[i])) {
        i++;
    }
    if (i == 4) {
        print_message("no locale with a decimal comma is installed: not tested\n");
        skip();
    }
    nori_model *m = model_of(HEAD "g () => () <float w = {1.5}> { y = Elu <alpha = 2.25> (w) }");
    char *text = text_of(m, -1, NULL);
    setlocale(LC_NUMERIC, "C");
    assert_non_null(strstr(text, "{1.5}"));
    assert_non_null(strstr(text, "2.25"));
    nori_text_free(text);
    nori_model_free(m);
}

/* ---- models there are ---- */

static nori_tensor *fill(void *user, const char *name)
{
    nori_tensor *t = NULL;
    nori_weights_tensor(user, name, &t, NULL);
    return t;
}

typedef struct tally {
    size_t files, filled, refused;
} tally;

static void check_file(const char *path, tally *count)
{
    nori_error err = {0};
    nori_model *m = NULL, *again = NULL;
    nori_weights *w = NULL;
    nori_text_options o;
    nori_text_read_options r;
    nori_text_left left = {.size = sizeof(left)};
    char *text = NULL, folder[1024];
    size_t size = 0;
    if (nori_model_load(NULL, path, NULL, &m, &err) != NORI_OK) {
        count->refused++; /* not a model */
        return;
    }
    snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
    nori_text_options_default(&o);
    if (nori_model_text(m, &o, &text, &size, &left, &err) != NORI_OK) {
        fail_msg("%s: %s", path, err.message);
    }
    nori_text_read_options_default(&r);
    r.base_dir = folder;
    r.allow_outside = 1; /* cases may be links */
    if (left.tensors) {
        assert_int_equal(nori_weights_open(NULL, path, &w, &err), NORI_OK);
        r.fill = fill;
        r.fill_user = w;
        count->filled++;
    }
    if (nori_model_from_text(NULL, text, size, &r, &again, &err) != NORI_OK) {
        fail_msg("%s: %s", path, err.message);
    }
    if (!same_models(m, again)) {
        fail_msg("%s changed its meaning on the way through text", path);
    }
    count->files++;
    nori_text_free(text);
    nori_weights_free(w);
    nori_model_free(again);
    nori_model_free(m);
}

static tally check_pattern(const char *pattern)
{
    tally count = {0};
    glob_t found;
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            check_file(found.gl_pathv[i], &count);
        }
        globfree(&found);
    }
    print_message("%s: %zu models the same (%zu with weights of their file), %zu not models\n", pattern,
                  count.files, count.filled, count.refused);
    return count;
}

static char **patterns;

static void the_example(void **state)
{
    (void)state;
    assert_int_equal(check_pattern(NORI_EXAMPLES_DIR "/digits/*.onnx").files, 1);
}

static void those_asked_for(void **state)
{
    (void)state;
    size_t files = 0;
    for (char **p = patterns; *p; p++) {
        files += check_pattern(*p).files;
    }
    if (files == 0) {
        print_message("none of these models is here: not tested\n");
        skip();
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_model),       cmocka_unit_test(all_that_there_is),
        cmocka_unit_test(what_is_left_out),    cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(depth_is_bounded),    cmocka_unit_test(damage_is_survived),
        cmocka_unit_test(locale_does_not_matter), cmocka_unit_test(the_example),
    };
    const struct CMUnitTest given[] = {cmocka_unit_test(those_asked_for)};
    patterns = argv + 1;
    return argc > 1 ? cmocka_run_group_tests(given, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}

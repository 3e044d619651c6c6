/* test_known_faults.c: faults that other small runtimes have had, each tried on nori: an operator that is
 * not known and is passed over with a word on the terminal, arrays on the stack as large as the file says,
 * the end of a text written one byte past its allocation, indices that are trusted, a checker that
 * crashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "nori/text.h"
#include "nori/tools.h"
#include "wire.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 18]>\n"

static nori_model *from_text(const char *text)
{
    nori_model *m = NULL;
    nori_error err = {0};
    if (nori_model_from_text(NULL, text, strlen(text), NULL, &m, &err) != NORI_OK) {
        fail_msg("%s\n%s", text, err.message);
    }
    return m;
}

static nori_status session_of(const nori_model *m, const char *providers, nori_session **s, nori_error *err)
{
    nori_session_options o;
    nori_session_options_default(&o);
    o.providers = providers;
    o.threads = 1;
    *err = (nori_error){0};
    return nori_session_create(m, &o, s, err);
}

/* ---- an operator that nobody knows ---- */

/* Every one is named in one error, in bodies too; nothing is made, and nothing said on the terminal. */
static void unknown_operators(void **state)
{
    (void)state;
    nori_model *m = from_text(HEAD "main (float[2] x, bool c) => (float[2] y) {\n"
                                   "  a = Frobnicate (x)\n"
                                   "  b = Relu (a)\n"
                                   "  y = If <then_branch = t () => (float[2] p) { p = Defenestrate (b) },\n"
                                   "          else_branch = e () => (float[2] q) { q = Identity (b) }> (c)\n"
                                   "}\n");
    char said[64] = "";
    FILE *terminal = tmpfile();
    assert_non_null(terminal);
    fflush(NULL);
    int out = dup(1), both = dup(2);
    dup2(fileno(terminal), 1);
    dup2(fileno(terminal), 2);
    static const char *const providers[] = {"cpu", "reference"};
    nori_error err[2];
    nori_session *s[2] = {NULL, NULL};
    nori_status got[2];
    for (int i = 0; i < 2; i++) {
        got[i] = session_of(m, providers[i], &s[i], &err[i]);
    }
    fflush(NULL);
    dup2(out, 1);
    dup2(both, 2);
    close(out);
    close(both);
    rewind(terminal);
    size_t n = fread(said, 1, sizeof(said) - 1, terminal);
    fclose(terminal);
    if (n > 0) {
        fail_msg("the library wrote to the terminal: %s", said);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(got[i], NORI_ERROR_UNSUPPORTED);
        assert_null(s[i]);
        assert_non_null(strstr(err[i].message, "Frobnicate"));
        assert_non_null(strstr(err[i].message, "Defenestrate"));
    }
    nori_model_free(m);
}

/* ---- sizes from the file, and the stack ---- */

enum { MANY = 20000, STACK = 192 << 10 };

/* A node of many inputs, a tensor of many sizes, an attribute of many numbers: pointers to each would be
 * more than the whole stack. */
static void *on_a_small_stack(void *user)
{
    nori__text graph = wire_new(), node = wire_new(), attr = wire_new(), model = wire_new();
    nori__text opset = wire_new(), tensor = wire_new();
    (void)user;
    for (int i = 0; i < MANY; i++) {
        wire_str(&node, 1, "x");
    }
    wire_str(&node, 2, "y");
    wire_str(&node, 4, "Sum");
    wire_str(&attr, 1, "odd");
    for (int i = 0; i < MANY; i++) {
        wire_int(&attr, 8, i);
    }
    wire_int(&attr, 20, 7);
    wire_sub(&node, 5, &attr);
    wire_sub(&graph, 1, &node);
    for (int i = 0; i < MANY; i++) {
        wire_int(&tensor, 1, 1);
    }
    wire_int(&tensor, 2, NORI_FLOAT);
    wire_str(&tensor, 8, "w");
    wire_bytes(&tensor, 9, "\0\0\0\0", 4);
    wire_int(&opset, 2, 18);
    for (int with = 0; with < 2; with++) {
        nori_model *m = NULL;
        nori_error err = {0};
        model = wire_new();
        wire_int(&model, 1, 8);
        if (with) {
            wire_sub(&graph, 5, &tensor);
        }
        wire_bytes(&model, 7, graph.data, graph.size);
        wire_bytes(&model, 8, opset.data, opset.size);
        nori_status s = nori_model_load_memory(NULL, model.data, model.size, NULL, NULL, &m, &err);
        nori_findings *found = NULL;
        nori_session *session = NULL;
        if (s == NORI_OK) {
            assert_int_equal(nori_check(m, NULL, &found, &err), NORI_OK);
            assert_true(nori_findings_at_least(found, NORI_SEVERITY_ERROR) > 0);
            assert_int_not_equal(session_of(m, "cpu", &session, &err), NORI_OK);
        }
        assert_true(!with || s == NORI_ERROR_LIMIT); /* a rank of MANY */
        assert_true(err.message[0]);
        nori_findings_free(found);
        nori_model_free(m);
        nori__text_free(&model);
    }
    nori__text_free(&graph);
    nori__text_free(&opset);
    return NULL;
}

static void the_stack(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    on_a_small_stack(NULL); /* their frames are larger */
#else
    pthread_attr_t attr;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, STACK), 0);
    assert_int_equal(pthread_create(&thread, &attr, on_a_small_stack, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attr);
#endif
}

/* ---- texts at the end of memory ---- */

/* A model whose last bytes are a text attribute's, in front of a page that must not be touched: neither read
 * past its end nor terminated in place. */
static void texts_at_the_end(void **state)
{
    (void)state;
    static const char mode[] = "constant"; /* Pad's; without its end in the file */
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    nori__text attr = wire_new(), node = wire_new(), graph = wire_new(), model = wire_new();
    nori__text opset = wire_new(), input = wire_new(), type = wire_new(), tensor = wire_new();
    nori__text output = wire_new();
    wire_int(&tensor, 1, NORI_FLOAT);
    wire_bytes(&type, 1, tensor.data, tensor.size);
    wire_str(&input, 1, "x");
    wire_bytes(&input, 2, type.data, type.size);
    wire_str(&output, 1, "y");
    wire_bytes(&output, 2, type.data, type.size);
    wire_sub(&graph, 11, &input);
    wire_sub(&graph, 12, &output);
    wire_str(&node, 1, "x");
    wire_str(&node, 1, "p");
    wire_str(&node, 2, "y");
    wire_str(&node, 4, "Pad");
    nori__text pads = wire_new();
    wire_int(&pads, 1, 2);
    wire_int(&pads, 2, NORI_INT64);
    wire_str(&pads, 8, "p");
    wire_list(&pads, 9, NORI_INT64, (int64_t[]){1, 1}, 16);
    wire_sub(&graph, 5, &pads);
    wire_str(&attr, 1, "mode");
    wire_int(&attr, 20, 3);
    wire_bytes(&attr, 4, mode, sizeof(mode) - 1);
    wire_sub(&node, 5, &attr);
    wire_sub(&graph, 1, &node);
    wire_int(&opset, 2, 18);
    wire_int(&model, 1, 8);
    wire_sub(&model, 8, &opset);
    wire_sub(&model, 7, &graph);
    nori__text_free(&type);
    nori__text_free(&tensor);
    size_t pages = (model.size + page - 1) / page;
    char *memory = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    char *at = memory + pages * page - model.size;
    memcpy(at, model.data, model.size);
    assert_int_equal(mprotect(memory, pages * page, PROT_READ), 0);
    assert_int_equal(mprotect(memory + pages * page, page, PROT_NONE), 0);
    assert_memory_equal(at + model.size - 8, mode, 8);
    nori_model *m = NULL;
    nori_session *s = NULL;
    nori_tensor *x = NULL, *y = NULL;
    nori_error err = {0};
    char *text = NULL;
    size_t size;
    assert_int_equal(nori_model_load_memory(NULL, at, model.size, NULL, NULL, &m, &err), NORI_OK);
    assert_int_equal(nori_model_text(m, NULL, &text, &size, NULL, &err), NORI_OK);
    assert_non_null(strstr(text, "\"constant\""));
    assert_int_equal(session_of(m, "cpu", &s, &err), NORI_OK);
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 1, (int64_t[]){2}, &x, NULL), NORI_OK);
    ((float *)nori_tensor_data(x))[1] = 5;
    assert_int_equal(nori_session_run(s, (const nori_tensor *const[]){x}, 1, &y, 1, &err), NORI_OK);
    assert_int_equal(nori_tensor_elements(y), 4);
    assert_true(((const float *)nori_tensor_const_data(y))[2] == 5);
    for (size_t n = 0; n < model.size; n++) { /* and cut anywhere, at the end of memory again */
        nori_model *cut = NULL;
        assert_int_equal(mprotect(memory, pages * page, PROT_READ | PROT_WRITE), 0);
        memmove(memory + pages * page - n, model.data, n);
        assert_int_equal(mprotect(memory, pages * page, PROT_READ), 0);
        nori_model_load_memory(NULL, memory + pages * page - n, n, NULL, NULL, &cut, NULL);
        nori_model_free(cut);
    }
    nori_text_free(text);
    nori_tensor_free(x);
    nori_tensor_free(y);
    nori_session_free(s);
    nori_model_free(m);
    munmap(memory, (pages + 1) * page);
    nori__text_free(&model);
}

/* ---- indices ---- */

typedef struct indexed {
    const char *node;  /* reads float[3,4] x, int64 i; makes y */
    const char *shape; /* of i */
    int64_t bad[2];    /* just out of range, on either side */
} indexed;

static const indexed index_cases[] = {
    {"Gather (x, i)", "2", {3, -4}},
    {"Gather <axis = 1> (x, i)", "2", {4, -5}},
    {"GatherElements (x, i)", "2,4", {3, -4}},
    {"GatherND (x, i)", "1,2", {4, -5}},
    {"ScatterElements (x, i, u)", "2,4", {3, -4}},
    {"ScatterElements <reduction = \"add\"> (x, i, u)", "2,4", {3, -4}},
    {"Scatter (x, i, u)", "2,4", {3, -4}},
    {"ScatterND (x, i, r)", "2,1", {3, -4}},
    {"ScatterND <reduction = \"max\"> (x, i, r)", "2,1", {3, -4}},
};

static void run_index(const indexed *c, const char *provider, int64_t index, size_t at, bool constant,
                      nori_status want)
{
    char text[1024], list[256] = "";
    int64_t values[8] = {0};
    size_t n = strcmp(c->shape, "2,4") == 0 ? 8 : 2;
    values[at % n] = index;
    for (size_t i = 0; i < n; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s%lld", i ? "," : "", (long long)values[i]);
    }
    snprintf(text, sizeof(text),
             "<ir_version: 8, opset_import: [\"\" : %d]>\n"
             "main (float[3,4] x%s%s%s) => (y)\n<float[2,4] u = {1,2,3,4,5,6,7,8}, float[2,4] r = "
             "{1,2,3,4,5,6,7,8}%s%s%s%s%s> {\n  y = %s\n}\n",
             strncmp(c->node, "Scatter ", 8) == 0 ? 10 : 18, constant ? "" : ", int64[",
             constant ? "" : c->shape, constant ? "" : "] i", constant ? ", int64[" : "",
             constant ? c->shape : "", constant ? "] i = {" : "", constant ? list : "",
             constant ? "}" : "", c->node);
    nori_model *m = from_text(text);
    nori_session *s = NULL;
    nori_error err;
    nori_tensor *in[2] = {NULL, NULL}, *y = NULL;
    int64_t dims[2] = {c->shape[0] - '0', c->shape[1] ? c->shape[2] - '0' : 0};
    nori_status got = session_of(m, provider, &s, &err);
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 2, (int64_t[]){3, 4}, &in[0], NULL), NORI_OK);
    assert_int_equal(nori_tensor_create(NULL, NORI_INT64, c->shape[1] ? 2 : 1, dims, &in[1], NULL), NORI_OK);
    memcpy(nori_tensor_data(in[1]), values, n * sizeof(*values));
    if (got == NORI_OK) {
        got = nori_session_run(s, (const nori_tensor *const *)in, constant ? 1 : 2, &y, 1, &err);
    }
    bool refused = got == NORI_ERROR_DATA || got == NORI_ERROR_MODEL;
    if (want == NORI_OK ? got != NORI_OK : !refused || y || !err.message[0]) {
        fail_msg("%s, %s, index %lld at %zu, %s: %s %s", c->node, provider, (long long)index, at,
                 constant ? "constant" : "fed", nori_status_text(got), err.message);
    }
    nori_tensor_free(in[0]);
    nori_tensor_free(in[1]);
    nori_tensor_free(y);
    nori_session_free(s);
    nori_model_free(m);
}

static void indices(void **state)
{
    (void)state;
    static const char *const providers[] = {"cpu", "reference"};
    for (size_t k = 0; k < NORI__COUNT(index_cases); k++) {
        const indexed *c = &index_cases[k];
        const int64_t bad[] = {c->bad[0], c->bad[1], INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
        for (int p = 0; p < 2; p++) {
            for (int constant = 0; constant < 2; constant++) {
                run_index(c, providers[p], c->bad[0] - 1, 1, constant, NORI_OK);
                run_index(c, providers[p], c->bad[1] + 1, 1, constant, NORI_OK);
                for (size_t b = 0; b < NORI__COUNT(bad); b++) {
                    run_index(c, providers[p], bad[b], b % 2 ? 1 : 7, constant, NORI_ERROR_DATA);
                }
            }
        }
    }
}

/* ---- the checker ---- */

/* Every operator as a node that fits nothing: no inputs, one, many; attributes of its own and of others, of
 * every kind. Checking and optimizing end with a word, and a session is made or refused with one. */
static const char *const forms[] = {
    "y = %s ()",
    "y = %s (x)",
    "y = %s (x, , x)",
    "a, y, b = %s (x, x, x, x, x, x, x, x)",
    "y = %s <axis = 9223372036854775807, perm = [5,-9223372036854775808]> (x, x)",
    "y = %s <to = 99, equation = \"ij,jk,%%->z\"> (x, x)",
    "y = %s <axis = 1.5, axes = \"x\", perm = 3, kernel_shape = [0,-1], strides = [0], group = 0> (x, x)",
    "y = %s <value = 1, values = 2, body = 3, equation = \"\", mode = \"\", direction = \"\"> (x, s)",
    "y = %s <hidden_size = -1, blocksize = 0, size = 0, num_outputs = -1, k = -1, to = 0> (s, x, x)",
};

static void checker(void **state)
{
    (void)state;
    size_t tried = 0, found_errors = 0, sessions = 0;
    nori_capability c = {.size = sizeof(c)};
    for (size_t i = 0; nori_capability_at(i, &c); i++) {
        for (size_t f = 0; f < NORI__COUNT(forms); f++) {
            char node[512], text[1024], name[128];
            bool ai = !c.domain[0] || strcmp(c.domain, "ai.onnx") == 0;
            snprintf(name, sizeof(name), "%s%s%s", ai ? "" : c.domain, ai ? "" : ".", c.op);
            snprintf(node, sizeof(node), forms[f], name);
            snprintf(text, sizeof(text),
                     "<ir_version: 10, opset_import: [\"\" : 21, \"%s\" : 1]>\n"
                     "main (float[2,3] x, string[2] s) => (y) {\n  %s\n}\n",
                     ai ? "own" : c.domain, node);
            nori_model *m = NULL;
            nori_error err = {0};
            if (nori_model_from_text(NULL, text, strlen(text), NULL, &m, &err) != NORI_OK) {
                assert_true(err.message[0]);
                continue;
            }
            nori_findings *found = NULL;
            nori_session *s = NULL;
            assert_int_equal(nori_check(m, NULL, &found, &err), NORI_OK);
            tried++;
            bool errors = nori_findings_at_least(found, NORI_SEVERITY_ERROR) > 0;
            found_errors += errors;
            nori_status got = session_of(m, "cpu", &s, &err);
            if (got == NORI_ERROR_INTERNAL || (got != NORI_OK && !err.message[0])) {
                fail_msg("%s: %s %s", node, nori_status_text(got), err.message);
            }
            sessions += got == NORI_OK;
            nori_session_free(s);
            nori_findings_free(found);
            nori_model_free(m);
        }
    }
    print_message("%zu nodes: the checker refused %zu, %zu became sessions\n", tried, found_errors, sessions);
    assert_true(tried > 1200);
    assert_true(found_errors > tried / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_operators), cmocka_unit_test(the_stack), cmocka_unit_test(texts_at_the_end),
        cmocka_unit_test(indices),           cmocka_unit_test(checker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

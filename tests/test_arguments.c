/* Every public function with arguments that are NULL, out of range or no member of their enumeration, each in
 * a process of its own: it must come back, with an error where it has a status to give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arguments.h"
#include "nori/convert.h"
#include "nori/edit.h"
#include "nori/limits.h"
#include "nori/provider.h"
#include "nori/route.h"
#include "nori/tools.h"
#include "nori/weights.h"
#include "some_cases.h"

enum { FINE, WAS_TAKEN, NO_STATUS, INTERNAL, WITHOUT_TEXT, OF_NOTHING };

static objects given;

#define MAKE(call) assert_int_equal((call), NORI_OK)

static void *setup_model(const char *path)
{
    nori_model *m = NULL;
    MAKE(nori_model_load(given.env, path, NULL, &m, NULL));
    return m;
}

static int setup(void **state)
{
    static const char digits[] = NORI_EXAMPLES_DIR "/digits/digits.onnx";
    (void)state;
    nori_env_options env;
    nori_env_options_default(&env);
    env.threads = 1;
    MAKE(nori_env_create(&env, (nori_env **)&given.env, NULL));
    given.model = setup_model(digits);
    MAKE(nori_session_create(given.model, NULL, (nori_session **)&given.session, NULL));
    MAKE(nori_tensor_create(given.env, NORI_FLOAT, 4, (int64_t[]){1, 1, 28, 28},
                            (nori_tensor **)&given.tensor, NULL));
    for (size_t i = 0; i < 8; i++) {
        given.texts[i] = "x";
        given.tensors[i] = given.tensor;
    }
    MAKE(nori_weights_open(given.env, digits, (nori_weights **)&given.weights, NULL));
    MAKE(nori_cuts_find(given.model, NULL, (nori_cuts **)&given.cuts, NULL));
    MAKE(nori_session_costs(given.session, (const nori_tensor *const *)given.tensors, 1,
                            (nori_costs **)&given.costs, NULL));
    MAKE(nori_check(given.model, NULL, (nori_findings **)&given.findings, NULL));
    MAKE(nori_cancel_create(given.env, (nori_cancel **)&given.cancel, NULL));
    MAKE(nori_opset_find(given.model, (nori_opset_report **)&given.opset_report, NULL));
    nori_policy_options policy;
    nori_policy_options_default(&policy);
    policy.possible[0] = 1;
    MAKE(nori_policy_create(&policy, (nori_policy **)&given.policy, NULL));
    given.graph = (void *)nori_model_graph(given.model);
    given.node = (void *)nori_graph_first(given.graph);
    given.value = (void *)nori_graph_input(given.graph, 0);
    return 0;
}

/* Never returns: the exit status says how it went. */
static void child(const wrong_call *c)
{
    signal(SIGSEGV, SIG_DFL); /* cmocka's handlers would go on with the next test */
    signal(SIGABRT, SIG_DFL);
    signal(SIGFPE, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    alarm(60);
    long long status = c->call(&given);
    int code = status == -2 ? OF_NOTHING : FINE;
    if (status >= 0) {
        code = c->zero && status == NORI_OK                            ? WAS_TAKEN
               : strcmp(nori_status_text((nori_status)status), "unknown status") == 0 ? NO_STATUS
               : status == NORI_ERROR_INTERNAL                         ? INTERNAL
               : status != NORI_OK && given.err.status != NORI_OK && !given.err.message[0] ? WITHOUT_TEXT
                                                                                           : FINE;
    }
    _exit(code);
}

static void comes_back(void **state)
{
    static const char *const why[] = {"", "NORI_OK was returned", "what was returned is no status",
                                      "an internal error was returned", "the error has no text",
                                      "something was returned of a NULL object"};
    (void)state;
    char folder[] = "/tmp/nori-arguments-XXXXXX";
    assert_non_null(mkdtemp(folder)); /* some write a file called x */
    assert_int_equal(chdir(folder), 0);
    size_t faults = 0;
    for (size_t i = 0; i < wrong_call_count; i++) {
        const wrong_call *c = &wrong_calls[i];
        int status = 0;
        if (case_left_out(i)) {
            continue;
        }
        fflush(NULL);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            child(c);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFSIGNALED(status)) {
            print_error("%s, %s: %s\n", c->function, c->what, strsignal(WTERMSIG(status)));
        } else if (WEXITSTATUS(status) != FINE) {
            int code = WEXITSTATUS(status);
            print_error("%s, %s: %s\n", c->function, c->what,
                        code <= OF_NOTHING ? why[code] : "ended badly");
        }
        faults += status != 0;
    }
    assert_int_equal(chdir("/"), 0);
    char x[64];
    snprintf(x, sizeof(x), "%s/x", folder);
    unlink(x);
    rmdir(folder);
    assert_int_equal(faults, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(comes_back)};
    return cmocka_run_group_tests(tests, setup, NULL);
}

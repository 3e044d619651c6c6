/* cmd_serve.c: models answered over HTTP, until a signal ends it. The server is a module. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "cli_module.h"
#include "serve_job.h"

static const cli_option options[] = {
    {"--address", "ADDRESS", "numeric, to listen on (default 127.0.0.1: this machine alone)"},
    {"--port", "N", "to listen on (default 8000; 0: a free one, which is told)"},
    {"--token-file", "FILE", "its first line is the bearer token asked of callers"},
    {"--insecure", NULL, "an address that others reach, and no token"},
    {"--cert", "FILE", "certificates for TLS, PEM"},
    {"--key", "FILE", "the private key for TLS, PEM"},
    {"--explicit", NULL, "load nothing of the folder until a call asks for it"},
    {"--versions", "N", "of each model of the folder, the newest so many (default 1)"},
    {"--workers", "N", "runs of one model at once (default 1)"},
    {"--batch", "ROWS", "join requests that wait, up to so many rows a run (default 1: none)"},
    {"--batch-delay", "TIME", "how long a request waits for others, as 2ms (default: not at all)"},
    {"--queue", "N", "requests that may wait for a model; more get 503 (default 256)"},
    {"--timeout", "TIME", "of a request that names none; then 504 (default: none)"},
    {"--connections", "N", "at most (default 2048)"},
    {"--http-threads", "N", "that read and write (default: CPUs, at most 4)"},
    {"--max-header", "SIZE", "of a request (default 32Ki)"},
    {"--max-body", "SIZE", "of a request (default 64Mi)"},
    {"--max-json", "SIZE", "of the JSON in a body (default 16Mi)"},
    {"--max-held", "SIZE", "of all bodies at once; more get 503 (default 1Gi)"},
    {"--receive-timeout", "TIME", "for a request to come in whole; then 408 (default 30s)"},
    {"--idle-timeout", "TIME", "of a connection without a request (default 120s)"},
    {"--notice", "TIME", "when told to end: not ready, but still taking connections (default 0s)"},
    {"--drain", "TIME", "when told to end: for what was accepted to be answered (default 20s)"},
    {"--keep-going", NULL, "serve the rest when a model cannot be loaded (never ready then)"},
    CLI_SESSION_OPTIONS,
    CLI_OPS_OPTION,
    CLI_LIMIT_OPTION,
    CLI_QUIET_OPTION,
    CLI_COMMON_OPTIONS,
};

/* ---- the module ---- */

static int open_library(const cli_args *args, serve_library *l)
{
    int code = EXIT_YES;
    const char *(*version)(void);
    struct {
        const char *name;
        void *to;
    } functions[] = {{"nori_serve_version", &version},
                     {"nori_serve_options_default", &l->options_default},
                     {"nori_serve_start", &l->start},
                     {"nori_serve_address", &l->address},
                     {"nori_serve_wait", &l->wait},
                     {"nori_serve_stop", &l->stop},
                     {"nori_serve_free", &l->free}};
    void *module = cli_module_open(args, "nori-serve.so", false,
                                   "it comes with a nori that was built with libmicrohttpd-dev and "
                                   "libjansson-dev", &code);
    for (size_t i = 0; module && i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *symbol = cli_module_symbol(args, module, functions[i].name, &code);
        if (!symbol) {
            return code;
        }
        memcpy(functions[i].to, &symbol, sizeof(symbol)); /* ISO C has no cast to a function */
    }
    if (module && strcmp(version(), nori_version()) != 0) {
        return cli_fail_text(args, NORI_ERROR_UNAVAILABLE, "nori-serve.so is of nori %s, this is %s",
                             version(), nori_version());
    }
    return code;
}

/* ---- signals ---- */

static const int ends[] = {SIGTERM, SIGINT, SIGHUP};

/* Held back in all threads, so that the main one can wait for them. */
static void hold_signals(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        sigaddset(set, ends[i]);
    }
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* A second one ends the process at once, as it does by default. */
static void let_signals(const sigset_t *set)
{
    pthread_sigmask(SIG_UNBLOCK, set, NULL);
}

/* Connections are files to the system: as many as the hard limit allows. */
static void raise_files(serve_job *j)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)j->options.connections + 128;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) {
        return;
    }
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < wanted) {
        cli_warn(j->args, "this process may only have %llu files open: fewer connections than %d",
                 (unsigned long long)limit.rlim_cur, j->options.connections);
    }
}

/* ---- the verb ---- */

/* Until a signal comes, or what was to be loaded cannot be. */
static int stay(serve_job *j, nori_server *server, const sigset_t *set)
{
    const struct timespec tick = {0, 20000000};
    bool prepared = false;
    for (;;) {
        int got = prepared ? sigwaitinfo(set, NULL) : sigtimedwait(set, NULL, &tick);
        if (got > 0) {
            return EXIT_YES;
        }
        if (prepared || (errno != EAGAIN && errno != EINTR)) {
            continue;
        }
        nori_error err = {0};
        nori_status status = j->library.wait(server, 0, &err);
        if (status != NORI_OK && status != NORI_ERROR_CANCELLED && !cli_has(j->args, "--keep-going")) {
            return cli_fail(j->args, &err);
        }
        prepared = status != NORI_ERROR_CANCELLED;
        if (status == NORI_OK) {
            serve_say(j, "ready", j->library.address(server));
        } else if (prepared) {
            cli_warn(j->args, "not all could be loaded, the rest is served: %s", err.message);
        }
    }
}

static int serve(serve_job *j)
{
    sigset_t set;
    nori_server *server = NULL;
    nori_error err = {0};
    hold_signals(&set);
    raise_files(j);
    if (j->library.start(&j->options, &server, &err) != NORI_OK) {
        let_signals(&set);
        return cli_fail(j->args, &err);
    }
    serve_say(j, "listening", j->library.address(server));
    int code = stay(j, server, &set);
    let_signals(&set);
    size_t lost = j->library.stop(server, code == EXIT_YES ? j->notice : 0, j->drain);
    if (j->library.wait(server, 0, NULL) == NORI_ERROR_CANCELLED) {
        j->args->env = NULL; /* something is still being compiled, for minutes perhaps: the process ends
                                without waiting for it */
    } else {
        j->library.free(server);
    }
    if (code == EXIT_YES && lost > 0) {
        cli_warn(j->args, "%zu requests got no answer", lost);
        code = EXIT_NO;
    }
    return code;
}

static int run(cli_args *args)
{
    static serve_job j;
    j = (serve_job){.args = args};
    pthread_mutex_init(&j.lock, NULL);
    int code = open_library(args, &j.library);
    if (code == EXIT_YES) {
        j.library.options_default(&j.options);
        code = serve_read_options(&j);
    }
    code = code == EXIT_YES ? cli_environment(args) : code;
    if (code == EXIT_YES) {
        j.options.env = args->env;
        j.options.event = serve_on_event;
        j.options.event_user = &j;
        code = serve(&j);
    }
    free(j.token);
    free(j.certificate);
    free(j.key);
    return code;
}

const cli_verb cli_serve = {
    "serve", "ship", "MODEL|FOLDER ...", "answer over HTTP: Open Inference Protocol, version 2", options, run,
    "  nori serve model.onnx\n"
    "  nori serve faces=detector.onnx words=tagger.onnx --port 9000\n"
    "  nori serve models/ --batch 16 --batch-delay 2ms --queue 100\n"
    "  nori serve model.onnx --address 0.0.0.0 --token-file token --cert cert.pem --key key.pem\n"};

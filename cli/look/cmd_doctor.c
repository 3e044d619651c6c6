/* cmd_doctor.c: what this machine and this build can do. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

static const cli_option options[] = {CLI_COMMON_OPTIONS};

#ifdef NORI_WITH_PNG
#define HAVE_PNG 1
#else
#define HAVE_PNG 0
#endif
#ifdef NORI_WITH_JPEG
#define HAVE_JPEG 1
#else
#define HAVE_JPEG 0
#endif
#ifdef NORI_WITH_CURL
#define HAVE_CURL 1
#else
#define HAVE_CURL 0
#endif
#ifdef NORI_WITH_JANSSON
#define HAVE_JANSSON 1
#else
#define HAVE_JANSSON 0
#endif

/* The command's own libraries, then the library's; false past the last. */
static bool library_at(size_t i, const char **name, const char **use, int *have)
{
    static const struct {
        const char *name, *use;
        int have;
    } own[] = {
        {"libpng", "PNG pictures as inputs", HAVE_PNG},
        {"libjpeg", "JPEG pictures as inputs", HAVE_JPEG},
        {"libcurl", "calls to servers: profile --cloud, route", HAVE_CURL},
        {"jansson", "profiles read back, answers of servers", HAVE_JANSSON},
    };
    size_t n = sizeof(own) / sizeof(own[0]);
    if (i >= n) {
        return nori_library_at(i - n, name, use, have) != 0;
    }
    *name = own[i].name;
    *use = own[i].use;
    *have = own[i].have;
    return true;
}

/* ---- providers ---- */

typedef struct state {
    bool ready;
    char text[512]; /* engine and devices, or why it cannot be had */
} state;

static void describe(const nori_provider *p, void *self, state *s)
{
    nori_provider_info info = {.size = sizeof(info)};
    nori_error err = {0};
    s->ready = true;
    if (!p->describe || p->describe(self, &info, &err) != NORI_OK) {
        return;
    }
    int used = snprintf(s->text, sizeof(s->text), "%.200s", info.engine);
    for (size_t i = 0; i < info.device_count && used >= 0 && (size_t)used < sizeof(s->text); i++) {
        used += snprintf(s->text + used, sizeof(s->text) - (size_t)used, "%s%.60s", used ? ", " : "",
                         info.devices[i].name);
    }
}

static void open_here(const nori_provider *p, state *s)
{
    static const char *const tries[] = {"", "cpu"}; /* some need an engine to be named */
    nori_error err = {0};
    void *self = NULL;
    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        nori_provider_open how = {.size = sizeof(how), .options = tries[i], .threads = 1};
        nori_error again = {0};
        if (p->open(&how, &self, &again) == NORI_OK) {
            describe(p, self, s);
            if (p->close) {
                p->close(self);
            }
            return;
        }
        if (i == 0 || again.status != NORI_ERROR_ARGUMENT) { /* it knows no such engine */
            err = again;
        }
    }
    snprintf(s->text, sizeof(s->text), "%.500s", err.message);
}

/* In a child: some libraries end the process that loads them where they do not work. */
static void probe(const nori_provider *p, state *s)
{
    int ends[2], status = 0;
    *s = (state){.ready = !p->open};
    if (!p->open || pipe(ends) != 0) {
        return;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        open_here(p, s);
        _exit(write(ends[1], s, sizeof(*s)) == (ssize_t)sizeof(*s) ? 0 : 1);
    }
    close(ends[1]);
    bool told = child > 0 && read(ends[0], s, sizeof(*s)) == (ssize_t)sizeof(*s);
    close(ends[0]);
    if (child > 0) {
        waitpid(child, &status, 0);
    }
    if (!told) {
        s->ready = false;
        snprintf(s->text, sizeof(s->text), "it ended the process that opened it (%s %d)",
                 WIFSIGNALED(status) ? "signal" : "code",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
}

/* ---- answers ---- */

static void print_json(int threads, const char *reason)
{
    const char *name, *use;
    const nori_provider *p;
    int have;
    cli_json j;
    cli_json_begin(&j, stdout);
    cli_json_string(&j, "version", nori_version());
    cli_json_string(&j, "cpu", nori_cpu_name());
    cli_json_string(&j, "features", nori_cpu_features());
    cli_json_string(&j, "level", nori_cpu_level());
    cli_json_int(&j, "threads", threads);
    cli_json_string(&j, "threads_reason", reason);
    cli_json_object(&j, "libraries");
    for (size_t i = 0; library_at(i, &name, &use, &have); i++) {
        cli_json_bool(&j, name, have != 0);
    }
    cli_json_end(&j);
    cli_json_array(&j, "providers");
    for (size_t i = 0; (p = nori_provider_at(i)) != NULL; i++) {
        state s;
        probe(p, &s);
        cli_json_object(&j, NULL);
        cli_json_string(&j, "name", p->name);
        cli_json_string(&j, "description", p->description);
        cli_json_bool(&j, "ready", s.ready);
        cli_json_string(&j, s.ready ? "engine" : "reason", s.text);
        cli_json_end(&j);
    }
    cli_json_finish(&j);
}

static void print_text(const char *reason)
{
    const char *name, *use;
    const nori_provider *p;
    int have;
    printf("nori       %s\n", nori_version());
    printf("CPU        %s\n", nori_cpu_name());
    printf("features   %s\n", nori_cpu_features());
    printf("level      %s (NORI_CPU=" CLI_CPU_LEVELS " lowers it)\n", nori_cpu_level());
    printf("threads    %s\n", reason);
    printf("libraries\n");
    for (size_t i = 0; library_at(i, &name, &use, &have); i++) {
        printf("  %-10s %s: %s\n", name, have ? "found" : "missing when nori was built", use);
    }
    printf("providers\n");
    for (size_t i = 0; (p = nori_provider_at(i)) != NULL; i++) {
        state s;
        probe(p, &s);
        printf("  %-10s %s\n", p->name, p->description);
        printf("  %-10s %s%s%s\n", "", s.ready ? "ready" : "cannot be had", s.text[0] ? ": " : "",
               s.text);
    }
}

static int run(cli_args *args)
{
    char reason[128];
    if (args->count > 0) {
        return cli_usage(args, "no arguments were expected");
    }
    int threads = nori_usable_threads(reason, sizeof(reason));
    if (args->json) {
        print_json(threads, reason);
    } else {
        print_text(reason);
    }
    return EXIT_YES;
}

const cli_verb cli_doctor = {"doctor", "look", "", "CPU, threads, libraries and providers here",
                             options, run, "  nori doctor\n"};

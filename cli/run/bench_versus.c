/* bench_versus.c: two providers side by side on one model: the yardstick of speed claims. */
#include "bench_versus.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- memory, in children ---- */

/* Loads and runs once; the peak of a process that does nothing else. 0: it could not. */
static uint64_t load_and_run(cli_args *args, const char *providers)
{
    nori_session_options o;
    nori_model *m = NULL;
    nori_session *s = NULL;
    if (cli_load(args, &m) != EXIT_YES || !cli_session_options(args, &o)) {
        return 0;
    }
    o.providers = providers;
    if (nori_session_create(m, &o, &s, NULL) != NORI_OK) {
        return 0;
    }
    nori_model_free(m);
    size_t n_in = nori_session_input_count(s), n_out = nori_session_output_count(s);
    nori_tensor **in = calloc(n_in + 1, sizeof(*in)), **out = calloc(n_out + 1, sizeof(*out));
    bool ran = in && out &&
               cli_inputs(args, s, args->positional + 1, args->count - 1, in) == EXIT_YES &&
               nori_session_run(s, (const nori_tensor *const *)in, n_in, out, n_out, NULL) ==
                   NORI_OK;
    return ran ? nori_peak_memory() : 0; /* the process ends: nothing is freed */
}

/* Peak memory of each side cannot be told apart in one process, so a child of its own measures
 * it, before this process has threads. 0: not known. */
static uint64_t peak_in_child(cli_args *args, const char *providers)
{
    int ends[2];
    uint64_t peak = 0;
    if (pipe(ends) != 0) {
        return 0;
    }
    fflush(stdout);
    fflush(stderr);
    pid_t child = fork();
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        if (nowhere >= 0) { /* what is wrong is said by the process that measures */
            dup2(nowhere, STDOUT_FILENO);
            dup2(nowhere, STDERR_FILENO);
        }
        peak = load_and_run(args, providers);
        ssize_t written = write(ends[1], &peak, sizeof(peak));
        _exit(written == (ssize_t)sizeof(peak) ? 0 : 1);
    }
    close(ends[1]);
    if (child > 0) {
        ssize_t got;
        do {
            got = read(ends[0], &peak, sizeof(peak));
        } while (got < 0 && errno == EINTR);
        peak = got == (ssize_t)sizeof(peak) ? peak : 0;
        waitpid(child, NULL, 0);
    }
    close(ends[0]);
    return peak;
}

/* ---- what is said ---- */

/* Processes that wanted to run in the last minute, this one among them; negative: not known. */
static double machine_load(void)
{
    double load = -1;
    return getloadavg(&load, 1) == 1 ? load : -1;
}

static void json_ratio(cli_json *j, const char *key, const nori_versus_ratio *r)
{
    cli_json_object(j, key);
    cli_json_number(j, "median", r->median, 5);
    cli_json_number(j, "q1", r->low, 5);
    cli_json_number(j, "q3", r->high, 5);
    cli_json_end(j);
}

static void json_outputs(cli_json *j, const nori_versus *v)
{
    const char *name;
    nori_difference d = {.size = sizeof(d)};
    cli_json_array(j, "outputs");
    for (size_t i = 0; nori_versus_output(v, i, &name, &d); i++) {
        cli_json_object(j, NULL);
        cli_json_string(j, "name", name);
        cli_json_bool(j, "agrees", d.passes);
        cli_json_number(j, "max_abs", d.max_abs, 6);
        cli_json_number(j, "max_rel", d.max_rel, 6);
        cli_json_number(j, "rms", d.rms, 6);
        cli_json_uint(j, "beyond", d.beyond);
        cli_json_uint(j, "elements", d.elements);
        cli_json_string(j, "reason", d.reason);
        cli_json_end(j);
    }
    cli_json_end(j);
}

static void print_json(const cli_args *args, const nori_versus *v, const nori_versus_report *r,
                       const uint64_t peak[2], double load)
{
    cli_json j;
    cli_json_begin(&j, stdout);
    cli_json_string(&j, "model", args->positional[0]);
    cli_json_string(&j, "cpu", nori_cpu_name());
    cli_json_string(&j, "level", nori_cpu_level());
    cli_json_number(&j, "load_average", load >= 0 ? load : NAN, 4);
    cli_json_int(&j, "threads", r->threads);
    cli_json_int(&j, "rounds", r->rounds);
    cli_json_int(&j, "runs", r->runs);
    cli_json_int(&j, "loads", r->loads);
    cli_json_array(&j, "sides");
    for (int i = 0; i < 2; i++) {
        const nori_versus_side *s = &r->side[i];
        cli_json_object(&j, NULL);
        cli_json_string(&j, "provider", s->provider);
        cli_json_string(&j, "engine", s->engine);
        cli_json_number(&j, "start_ms", s->start_ms, 6);
        cli_json_number(&j, "load_ms", s->load_ms, 6);
        cli_json_number(&j, "load_cpu_ms", s->load_cpu_ms, 6);
        cli_json_number(&j, "first_ms", s->first_ms, 6);
        cli_json_number(&j, "median_ms", s->median_ms, 6);
        cli_json_number(&j, "min_ms", s->min_ms, 6);
        cli_json_number(&j, "cpu_ms", s->cpu_ms, 6);
        if (peak[i]) {
            cli_json_uint(&j, "peak_bytes", peak[i]);
        } else {
            cli_json_null(&j, "peak_bytes");
        }
        cli_json_end(&j);
    }
    cli_json_end(&j);
    json_ratio(&j, "ratio", &r->wall);
    json_ratio(&j, "cpu_ratio", &r->cpu);
    cli_json_number(&j, "waited_ms", r->waited_ms, 6);
    cli_json_bool(&j, "agree", r->agrees);
    json_outputs(&j, v);
    cli_json_finish(&j);
}

static void print_row(const char *what, const char *unit, double a, double b)
{
    printf("%-18s %14.3f %14.3f  %s\n", what, a, b, unit);
}

static void print_text(const nori_versus *v, const nori_versus_report *r, const uint64_t peak[2],
                       double load)
{
    const nori_versus_side *a = &r->side[0], *b = &r->side[1];
    const char *name;
    char bytes[2][32];
    nori_difference d = {.size = sizeof(d)};
    for (int i = 0; i < 2; i++) {
        cli_bytes_text(peak[i], bytes[i], sizeof(bytes[i]));
    }
    printf("%-18s %14s %14s\n", "", a->provider, b->provider);
    print_row("load", "ms, wall, median of loads", a->load_ms, b->load_ms);
    print_row("load, CPU", "ms, all threads", a->load_cpu_ms, b->load_cpu_ms);
    print_row("first run", "ms", a->first_ms, b->first_ms);
    print_row("run, median", "ms", a->median_ms, b->median_ms);
    print_row("run, min", "ms", a->min_ms, b->min_ms);
    print_row("run, CPU", "ms, all threads", a->cpu_ms, b->cpu_ms);
    printf("%-18s %14s %14s  of a process that loads and runs once\n", "peak memory",
           peak[0] ? bytes[0] : "?", peak[1] ? bytes[1] : "?");
    printf("\nratio              %.3f (quartiles %.3f to %.3f): %s takes %.3f times as long as %s\n",
           r->wall.median, r->wall.low, r->wall.high, a->provider, r->wall.median, b->provider);
    printf("ratio of CPU time  %.3f (quartiles %.3f to %.3f)\n", r->cpu.median, r->cpu.low,
           r->cpu.high);
    printf("measured           %d thread%s, %d rounds in turns of %d run%s a side, %d load%s\n",
           r->threads, r->threads == 1 ? "" : "s", r->rounds, r->runs, r->runs == 1 ? "" : "s",
           r->loads, r->loads == 1 ? "" : "s");
    printf("CPU                %s, level %s\n", nori_cpu_name(), nori_cpu_level());
    if (load > 0.5 * nori_usable_threads(NULL, 0)) {
        printf("load average       %.1f before it began: others use the cores; then only ratios of one "
               "thread's CPU time say much\n", load);
    }
    for (int i = 0; i < 2; i++) {
        if (r->side[i].engine[0]) {
            printf("%-18s %s; started in %.1f ms, not counted above\n", r->side[i].provider,
                   r->side[i].engine, r->side[i].start_ms);
        }
    }
    printf("outputs            %s\n", r->agrees ? "agree" : "DISAGREE");
    for (size_t i = 0; nori_versus_output(v, i, &name, &d); i++) {
        printf("  %-30s max abs %.3g, max rel %.3g, rms %.3g, beyond %llu of %llu%s%s\n", name,
               d.max_abs, d.max_rel, d.rms, (unsigned long long)d.beyond,
               (unsigned long long)d.elements, d.reason[0] ? ": " : "", d.reason);
    }
}

/* ---- running ---- */

static bool tolerance(const cli_args *args, const char *name, double *out)
{
    const char *text = cli_value(args, name);
    char *end;
    if (!text) {
        return true;
    }
    *out = strtod(text, &end);
    if (*text == 0 || *end || !isfinite(*out) || *out < 0) {
        cli_usage(args, "%s \"%s\": a number of at least 0 was expected", name, text);
        return false;
    }
    return true;
}

static void show_progress(void *user, int round, int rounds)
{
    cli_progress(user, "round %d of %d", round, rounds);
}

static int measure(cli_args *args, nori_versus *v, const nori_versus_options *o,
                   const uint64_t peak[2], double load)
{
    const nori_session *s = nori_versus_session(v, 0);
    size_t n_in = nori_session_input_count(s);
    nori_tensor **in = calloc(n_in + 1, sizeof(*in));
    nori_versus_report report = {.size = sizeof(report)};
    nori_error err = {0};
    int code = in ? cli_inputs(args, s, args->positional + 1, args->count - 1, in) : EXIT_BAD;
    if (code == EXIT_YES) {
        nori_status status = nori_versus_run(v, (const nori_tensor *const *)in, n_in, o, &report,
                                             &err);
        cli_progress_done(args);
        code = status == NORI_OK ? EXIT_YES : cli_fail(args, &err);
    }
    if (code == EXIT_YES) {
        if (args->json) {
            print_json(args, v, &report, peak, load);
        } else {
            print_text(v, &report, peak, load);
        }
        code = report.agrees ? EXIT_YES : EXIT_NO;
    }
    for (size_t i = 0; in && i < n_in; i++) {
        nori_tensor_free(in[i]);
    }
    free(in);
    return code;
}

int cli_bench_versus(cli_args *args)
{
    nori_session_options side[2];
    nori_versus_options o;
    nori_load_options load;
    nori_env_options e;
    nori_env *env = NULL;
    nori_versus *v = NULL;
    nori_error err = {0};
    uint64_t peak[2];
    double load_before = machine_load();
    long runs, rounds, threads;
    nori_versus_options_default(&o);
    if (args->count < 1) {
        return cli_usage(args, "a model file was expected");
    }
    if (!cli_number(args, "--runs", 1, 1000, 0, &runs) ||
        !cli_number(args, "--rounds", 7, 1000, 9, &rounds) ||
        !cli_number(args, "--threads", 1, 256, 0, &threads) ||
        !tolerance(args, "--atol", &o.atol) || !tolerance(args, "--rtol", &o.rtol) ||
        !cli_session_options(args, &side[0])) {
        return EXIT_USAGE;
    }
    side[1] = side[0];
    side[1].providers = cli_value(args, "--versus");
    for (int i = 0; i < 2; i++) {
        cli_progress(args, "measuring the memory of %s", side[i].providers ? side[i].providers : "cpu");
        peak[i] = peak_in_child(args, side[i].providers);
    }
    o.runs = (int)runs;
    o.rounds = (int)rounds;
    o.progress = show_progress;
    o.progress_user = args;
    cli_load_options(args, &load);
    if (cli_has(args, "--seal-key")) {
        return cli_usage(args, "--versus compares on models that are not sealed: --seal-key means nothing "
                               "with it");
    }
    nori_env_options_default(&e);
    e.threads = (int)threads;
    if (nori_env_create(&e, &env, &err) != NORI_OK) {
        return cli_fail(args, &err);
    }
    int code = cli_set_limits(args, env);
    if (code != EXIT_YES) {
        nori_env_free(env);
        return code;
    }
    cli_progress(args, "loading");
    nori_status status = nori_versus_open(
        env, args->positional[0], &load,
        (const nori_session_options *const[]){&side[0], &side[1]}, &v, &err);
    cli_progress_done(args);
    code = status == NORI_OK ? measure(args, v, &o, peak, load_before) : cli_fail(args, &err);
    nori_versus_free(v);
    nori_env_free(env);
    return code;
}

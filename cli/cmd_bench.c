/* cmd_bench.c: how long loading, the first run and steady runs take, and where the time goes. */
#include <stdlib.h>
#include <string.h>

#include "bench_versus.h"

static const cli_option options[] = {
    CLI_INPUT_OPTIONS,
    {"--runs", "N", "steady runs (default 20); with --versus: of a side in a round"},
    CLI_VERSUS_OPTIONS,
    {"--profile", NULL, "tables of time by node and by operator"},
    {"--trace", "FILE", "Chrome trace of the last run (chrome://tracing, Perfetto)"},
    CLI_SESSION_OPTIONS, CLI_LOAD_OPTIONS, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

typedef struct total {
    const char *name, *provider;
    uint64_t ns, calls;
} total;

static int by_time(const void *a, const void *b)
{
    const total *x = a, *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

static void print_table(const char *title, total *rows, size_t n, uint64_t all, uint64_t runs)
{
    qsort(rows, n, n ? sizeof(*rows) : 1, by_time);
    printf("\n%-44s %-10s %10s %7s %7s\n", title, "provider", "us a run", "share", "calls");
    for (size_t i = 0; i < n && i < 25; i++) {
        printf("%-44.44s %-10s %10.1f %6.1f%% %7.1f\n", rows[i].name, rows[i].provider,
               (double)rows[i].ns / 1e3 / (double)runs,
               all ? 100.0 * (double)rows[i].ns / (double)all : 0,
               (double)rows[i].calls / (double)runs);
    }
    if (n > 25) {
        printf("... and %zu more\n", n - 25);
    }
}

static int print_profile(const nori_session *s, uint64_t runs)
{
    nori_profile_row r = {.size = sizeof(r)};
    size_t n = 0, n_ops = 0;
    while (nori_session_profile(s, n, &r)) {
        n++;
    }
    total *nodes = calloc(n + 1, sizeof(*nodes)), *ops = calloc(n + 1, sizeof(*ops));
    char(*names)[96] = calloc(n + 1, sizeof(*names));
    uint64_t all = 0;
    if (!nodes || !ops || !names) {
        free(nodes);
        free(ops);
        free(names);
        return EXIT_BAD;
    }
    for (size_t i = 0; i < n; i++) {
        nori_session_profile(s, i, &r);
        snprintf(names[i], sizeof(names[i]), "%.60s (%.30s)", r.node, r.op);
        nodes[i] = (total){names[i], r.provider, r.total_ns, r.calls};
        all += r.total_ns;
        size_t k = 0;
        while (k < n_ops && (strcmp(ops[k].name, r.op) != 0 ||
                             strcmp(ops[k].provider, r.provider) != 0)) {
            k++;
        }
        if (k == n_ops) {
            ops[n_ops++] = (total){r.op, r.provider, 0, 0};
        }
        ops[k].ns += r.total_ns;
        ops[k].calls += r.calls;
    }
    print_table("node", nodes, n, all, runs);
    print_table("operator", ops, n_ops, all, runs);
    free(nodes);
    free(ops);
    free(names);
    return EXIT_YES;
}

static int write_trace(const cli_args *args, const nori_session *s, const char *path)
{
    FILE *f = fopen(path, "w");
    nori_profile_row r = {.size = sizeof(r)};
    if (!f) {
        return cli_usage(args, "%s cannot be written", path);
    }
    cli_json j;
    cli_json_begin(&j, f);
    cli_json_array(&j, "traceEvents");
    for (size_t i = 0; nori_session_profile(s, i, &r); i++) {
        if (r.calls == 0) {
            continue;
        }
        cli_json_object(&j, NULL);
        cli_json_string(&j, "name", r.node[0] ? r.node : r.op);
        cli_json_string(&j, "cat", r.op);
        cli_json_string(&j, "ph", "X");
        cli_json_number(&j, "ts", (double)r.last_start_ns / 1e3, 16);
        cli_json_number(&j, "dur", (double)(r.last_end_ns - r.last_start_ns) / 1e3, 9);
        cli_json_int(&j, "pid", 1);
        cli_json_int(&j, "tid", 1);
        cli_json_object(&j, "args");
        cli_json_string(&j, "op", r.op);
        cli_json_string(&j, "provider", r.provider);
        cli_json_end(&j);
        cli_json_end(&j);
    }
    cli_json_finish(&j);
    if (fclose(f) != 0) {
        return cli_usage(args, "%s could not be written whole", path);
    }
    return EXIT_YES;
}

static int measure(cli_args *args, nori_session *s, uint64_t load_ns, uint64_t create_ns)
{
    size_t n_in = nori_session_input_count(s), n_out = nori_session_output_count(s);
    nori_tensor **in = calloc(n_in + 1, sizeof(*in)), **out = calloc(n_out + 1, sizeof(*out));
    long runs;
    if (!in || !out || !cli_number(args, "--runs", 1, 1000000, 20, &runs)) {
        free(in);
        free(out);
        return EXIT_USAGE;
    }
    uint64_t *times = calloc((size_t)runs + 1, sizeof(*times));
    int code = times ? cli_inputs(args, s, args->positional + 1, args->count - 1, in) : EXIT_BAD;
    nori_error err = {0};
    for (long i = 0; code == EXIT_YES && i <= runs; i++) {
        uint64_t start = nori_clock_ns();
        if (nori_session_run(s, (const nori_tensor *const *)in, n_in, out, n_out, &err) != NORI_OK) {
            code = cli_fail(args, &err);
        }
        times[i] = nori_clock_ns() - start;
        if (runs >= 20 && i % (runs / 20) == 0) {
            cli_progress(args, "%3ld %% of %ld runs", 100 * i / runs, runs);
        }
    }
    cli_progress_done(args);
    if (code == EXIT_YES) {
        uint64_t first = times[0];
        nori_memory_stats m = {.size = sizeof(m)};
        char peak[32], packed[32], active[32];
        qsort(times + 1, (size_t)runs, sizeof(*times), by_value);
        nori_session_memory(s, &m);
        cli_bytes_text(nori_peak_memory(), peak, sizeof(peak));
        cli_bytes_text(m.packed_bytes, packed, sizeof(packed));
        cli_bytes_text(m.peak_activation_bytes, active, sizeof(active));
        double min = (double)times[1] / 1e6, median = (double)times[1 + runs / 2] / 1e6;
        double p95 = (double)times[1 + (runs * 95) / 100 - (runs * 95 % 100 == 0)] / 1e6;
        if (args->json) {
            cli_json j;
            cli_json_begin(&j, stdout);
            cli_json_number(&j, "load_ms", (double)load_ns / 1e6, 6);
            cli_json_number(&j, "create_ms", (double)create_ns / 1e6, 6);
            cli_json_number(&j, "first_ms", (double)first / 1e6, 6);
            cli_json_number(&j, "min_ms", min, 6);
            cli_json_number(&j, "median_ms", median, 6);
            cli_json_number(&j, "p95_ms", p95, 6);
            cli_json_int(&j, "runs", runs);
            cli_json_uint(&j, "peak_bytes", nori_peak_memory());
            cli_json_uint(&j, "packed_bytes", m.packed_bytes);
            cli_json_uint(&j, "activation_bytes", m.peak_activation_bytes);
            cli_json_string(&j, "cpu", nori_cpu_name());
            cli_json_finish(&j);
        } else {
            printf("%-12s %10.3f ms\n%-12s %10.3f ms\n%-12s %10.3f ms\n", "load",
                   (double)load_ns / 1e6, "create", (double)create_ns / 1e6, "first run",
                   (double)first / 1e6);
            printf("%-12s %10.3f ms min, %.3f median, %.3f p95 (%ld runs)\n", "steady", min, median,
                   p95, runs);
            printf("%-12s %s peak of the process; %s packed weights, %s activations\n", "memory",
                   peak, packed, active);
            printf("%-12s %s, level %s\n", "CPU", nori_cpu_name(), nori_cpu_level());
            if (cli_has(args, "--profile")) {
                code = print_profile(s, (uint64_t)runs + 1);
            }
        }
    }
    if (code == EXIT_YES && cli_value(args, "--trace")) {
        code = write_trace(args, s, cli_value(args, "--trace"));
    }
    for (size_t i = 0; i < n_in; i++) {
        nori_tensor_free(in[i]);
    }
    for (size_t i = 0; i < n_out; i++) {
        nori_tensor_free(out[i]);
    }
    free(in);
    free(out);
    free(times);
    return code;
}

static int run(cli_args *args)
{
    if (cli_has(args, "--versus")) {
        return cli_has(args, "--profile") || cli_has(args, "--trace")
                   ? cli_usage(args, "--versus cannot be had together with --profile or --trace")
                   : cli_bench_versus(args);
    }
    nori_model *m = NULL;
    nori_session *s = NULL;
    uint64_t start = nori_clock_ns();
    int code = cli_load(args, &m);
    uint64_t loaded = nori_clock_ns();
    if (code == EXIT_YES) {
        code = cli_session(args, m, cli_has(args, "--profile") || cli_has(args, "--trace"), &s);
    }
    uint64_t created = nori_clock_ns();
    if (code == EXIT_YES) {
        code = measure(args, s, loaded - start, created - loaded);
    }
    nori_session_free(s);
    nori_model_free(m);
    return code;
}

const cli_verb cli_bench = {"bench", "run", "MODEL [FILE ...]",
                            "time loading, the first run and steady runs", options, run,
                            "  nori bench model.onnx --runs 50 --profile\n"
                            "  nori bench model.onnx --versus ort:cpu --threads 2\n"};

/* cmd_bench.c: how long loading, the first run and steady runs take, and where the time goes. */
#include <stdlib.h>
#include <string.h>

#include "bench_profile.h"
#include "bench_versus.h"
#include "phases.h"

static const cli_option options[] = {
    CLI_INPUT_OPTIONS,
    {"--runs", "N", "steady runs (default 20); with --versus: of a side in a round"},
    {"--profile", NULL, "tables of time, GFLOP/s and GB/s by node and by operator"},
    {"--trace", "FILE", "Chrome trace of the last run (chrome://tracing, Perfetto)"},
    CLI_VERSUS_OPTIONS,
    CLI_SESSION_OPTIONS,
    CLI_LOAD_OPTIONS,
    CLI_QUIET_OPTION,
    CLI_COMMON_OPTIONS,
};

typedef struct bench {
    cli_args *args;
    nori_model *model;
    nori_session *session;
    nori_tensor **in, **out;
    size_t n_in, n_out;
    cli_phases phases;
    uint64_t *times; /* of the steady runs, sorted */
    long runs;
    nori_costs *costs;
} bench;

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int run_all(bench *b)
{
    nori_error err = {0};
    for (long i = 0; i <= b->runs; i++) {
        uint64_t start = nori_clock_ns();
        if (nori_session_run(b->session, (const nori_tensor *const *)b->in, b->n_in, b->out,
                             b->n_out, &err) != NORI_OK) {
            cli_progress_done(b->args);
            return cli_fail(b->args, &err);
        }
        uint64_t took = nori_clock_ns() - start;
        if (i == 0) {
            b->phases.first_ns = took;
        } else {
            b->times[i - 1] = took;
        }
        if (b->runs < 20 || i % (b->runs / 20) == 0) {
            cli_progress(b->args, "%3ld %% of %ld runs", 100 * i / b->runs, b->runs);
        }
    }
    cli_progress_done(b->args);
    qsort(b->times, (size_t)b->runs, sizeof(*b->times), by_value);
    return EXIT_YES;
}

static int prepare(bench *b)
{
    b->n_in = nori_session_input_count(b->session);
    b->n_out = nori_session_output_count(b->session);
    b->in = calloc(b->n_in + 1, sizeof(*b->in));
    b->out = calloc(b->n_out + 1, sizeof(*b->out));
    b->times = calloc((size_t)b->runs, sizeof(*b->times));
    if (!b->in || !b->out || !b->times) {
        return cli_fail_text(b->args, NORI_ERROR_MEMORY, "out of memory");
    }
    return cli_inputs(b->args, b->session, b->args->positional + 1, b->args->count - 1, b->in);
}

/* The share of runs that took at most so long: the smallest time that at least it lies under. */
static double quantile_ms(const bench *b, double share)
{
    long at = (long)(share * (double)b->runs);
    at = (double)at < share * (double)b->runs ? at : at - 1;
    return (double)b->times[at < 0 ? 0 : at] / 1e6;
}

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

static void print_json(const bench *b, const nori_memory_stats *m, const nori_cost_total *total,
                       const profile *p)
{
    cli_json j;
    cli_json_begin(&j, stdout);
    cli_phases_json(&j, &b->phases, b->session);
    cli_json_number(&j, "min_ms", ms(b->times[0]), 6);
    cli_json_number(&j, "median_ms", quantile_ms(b, 0.5), 6);
    cli_json_number(&j, "p95_ms", quantile_ms(b, 0.95), 6);
    cli_json_int(&j, "runs", b->runs);
    cli_json_int(&j, "threads", nori_env_threads(b->args->env));
    cli_json_uint(&j, "macs", total->macs);
    cli_json_uint(&j, "unknown_nodes", total->unknown);
    cli_json_uint(&j, "peak_bytes", nori_peak_memory());
    cli_json_uint(&j, "packed_bytes", m->packed_bytes);
    cli_json_uint(&j, "activation_bytes", m->peak_activation_bytes);
    cli_json_string(&j, "cpu", nori_cpu_name());
    cli_json_string(&j, "level", nori_cpu_level());
    if (p) {
        cli_profile_json(p, &j);
    }
    cli_json_finish(&j);
}

static void print_text(const bench *b, const nori_memory_stats *m, const nori_cost_total *total,
                       const profile *p)
{
    char peak[32], packed[32], active[32], macs[32];
    double median = quantile_ms(b, 0.5);
    cli_bytes_text(nori_peak_memory(), peak, sizeof(peak));
    cli_bytes_text(m->packed_bytes, packed, sizeof(packed));
    cli_bytes_text(m->peak_activation_bytes, active, sizeof(active));
    cli_count_text(total->macs, macs, sizeof(macs));
    cli_phases_print(stdout, &b->phases, b->session);
    printf("%-12s %10.3f ms min, %.3f median, %.3f p95 (%ld run%s, %d thread%s)\n", "steady",
           ms(b->times[0]), median, quantile_ms(b, 0.95), b->runs, b->runs == 1 ? "" : "s",
           nori_env_threads(b->args->env), nori_env_threads(b->args->env) == 1 ? "" : "s");
    if (total->macs > 0 && median > 0) {
        printf("%-12s %s MACs a run, %.2f GFLOP/s at the median", "work", macs,
               2 * (double)total->macs / median / 1e6);
        printf(total->unknown > 0 ? ", without %zu nodes whose sizes come out of the run\n" : "\n",
               total->unknown);
    }
    printf("%-12s %s peak of the process; ", "memory", peak);
    if (m->packed_bytes == 0 && m->peak_activation_bytes == 0) { /* one part is the whole model */
        printf("weights and activations are in the provider's hands\n");
    } else {
        printf("%s packed weights, %s activations\n", packed, active);
    }
    printf("%-12s %s, level %s\n", "CPU", nori_cpu_name(), nori_cpu_level());
    if (p) {
        cli_profile_print(p);
    }
}

static int report(bench *b)
{
    nori_error err = {0};
    nori_memory_stats m = {.size = sizeof(m)};
    nori_cost_total total = {.size = sizeof(total)};
    profile p, *shown = NULL;
    int code = EXIT_YES;
    const char *trace = cli_value(b->args, "--trace");
    if (nori_session_costs(b->session, (const nori_tensor *const *)b->in, b->n_in, &b->costs,
                           &err) != NORI_OK) {
        return cli_fail(b->args, &err);
    }
    nori_costs_total(b->costs, &total);
    nori_session_memory(b->session, &m);
    if (cli_has(b->args, "--profile")) {
        code = cli_profile_read(b->args, b->session, b->costs, (uint64_t)b->runs + 1, &p);
        shown = code == EXIT_YES ? &p : NULL;
    }
    if (code == EXIT_YES && trace) {
        code = cli_trace_write(b->args, b->session, b->costs, trace);
    }
    if (code == EXIT_YES && b->args->json) {
        print_json(b, &m, &total, shown);
    } else if (code == EXIT_YES) {
        print_text(b, &m, &total, shown);
    }
    if (shown) {
        cli_profile_free(shown);
    }
    return code;
}

static int measure(bench *b)
{
    uint64_t start = nori_clock_ns();
    int code = cli_load(b->args, &b->model);
    uint64_t loaded = nori_clock_ns();
    bool timed = cli_has(b->args, "--profile") || cli_has(b->args, "--trace");
    if (code == EXIT_YES) {
        code = cli_session(b->args, b->model, timed, &b->session);
    }
    b->phases.load_ns = loaded - start;
    b->phases.create_ns = nori_clock_ns() - loaded;
    if (code == EXIT_YES) {
        code = prepare(b);
    }
    if (code == EXIT_YES) {
        code = run_all(b);
    }
    return code == EXIT_YES ? report(b) : code;
}

static void free_tensors(nori_tensor **list, size_t count)
{
    for (size_t i = 0; list && i < count; i++) {
        nori_tensor_free(list[i]);
    }
    free(list);
}

static int run(cli_args *args)
{
    bench b = {.args = args};
    if (cli_has(args, "--versus")) {
        return cli_has(args, "--profile") || cli_has(args, "--trace")
                   ? cli_usage(args, "--versus cannot be had together with --profile or --trace")
                   : cli_bench_versus(args);
    }
    if (cli_has(args, "--rounds") || cli_has(args, "--atol") || cli_has(args, "--rtol")) {
        return cli_usage(args, "--rounds, --atol and --rtol mean something with --versus only");
    }
    if (!cli_number(args, "--runs", 1, 1000000, 20, &b.runs)) {
        return EXIT_USAGE;
    }
    int code = measure(&b);
    nori_costs_free(b.costs);
    free_tensors(b.in, b.n_in);
    free_tensors(b.out, b.n_out);
    free(b.times);
    nori_session_free(b.session);
    nori_model_free(b.model);
    return code;
}

const cli_verb cli_bench = {"bench", "run", "MODEL [FILE ...]",
                            "time loading, the first run and steady runs", options, run,
                            "  nori bench model.onnx --runs 50 --profile\n"
                            "  nori bench model.onnx --trace trace.json\n"
                            "  nori bench model.onnx --versus ort:cpu --threads 2\n"};

/* cmd_prune.c: a model with fewer weights: zeros among them, or whole channels less. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "samples.h"

static const cli_option options[] = {
    {"--output", "FILE", "the pruned model"},
    {"--method", "WORD", "magnitude (default: least elements become 0), 2:4, or channels (removed)"},
    {"--share", "X", "of elements or channels to prune (default 0.5)"},
    {"--exclude", "NAME", "node (also NAME*) or operator left alone; may be repeated"},
    CLI_SAMPLE_OPTIONS,
    {"--nodes", NULL, "show every node with weights, and why it was left alone"},
    {"--threads", "N", "threads for one run (default: what the machine allows)"},
    CLI_LOAD_OPTIONS, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

static bool read_options(const cli_args *args, nori_prune_options *o, const char **exclude)
{
    const char *method = cli_value(args, "--method"), *share = cli_value(args, "--share");
    char *end = NULL;
    long threads;
    nori_prune_options_default(o);
    if (method && strcmp(method, "2:4") == 0) {
        o->method = NORI_PRUNE_2_4;
    } else if (method && strcmp(method, "channels") == 0) {
        o->method = NORI_PRUNE_CHANNELS;
    } else if (method && strcmp(method, "magnitude") != 0) {
        cli_usage(args, "--method \"%s\": magnitude, 2:4 or channels was expected", method);
        return false;
    }
    if (share && o->method == NORI_PRUNE_2_4) {
        cli_usage(args, "--share does nothing for 2:4, which is half of the weights");
        return false;
    }
    o->share = share ? strtod(share, &end) : o->share;
    if (share && (end == share || *end || !(o->share > 0 && o->share < 1))) {
        cli_usage(args, "--share \"%s\": a number above 0 and below 1 was expected", share);
        return false;
    }
    if (!cli_number(args, "--threads", 1, 256, 0, &threads)) {
        return false;
    }
    o->threads = (int)threads;
    for (int i = 0; i < CLI_MAX_OPTIONS && cli_nth(args, "--exclude", i); i++) {
        exclude[o->exclude_count++] = cli_nth(args, "--exclude", i);
    }
    o->exclude = exclude;
    return true;
}

static void print_nodes(const nori_prune_report *r)
{
    nori_prune_node n = {.size = sizeof(n)};
    int width = 24;
    for (size_t i = 0; nori_prune_report_node(r, i, &n); i++) {
        width = cli_widen(width, n.path);
    }
    printf("\n%-*s %12s %12s %12s  %s\n", width, "node", "weights", "zeros", "channels", "why");
    for (size_t i = 0; nori_prune_report_node(r, i, &n); i++) {
        char channels[48] = "-";
        if (n.channels_before > 0) {
            snprintf(channels, sizeof(channels), "%lld of %lld", (long long)n.channels_after,
                     (long long)n.channels_before);
        }
        printf("%-*s %12llu %12llu %12s%s%s\n", width, n.path, (unsigned long long)n.weights,
               (unsigned long long)n.zeros, channels, n.reason[0] ? "  " : "", n.reason);
    }
}

static void print_text(const cli_args *args, const nori_prune_options *o,
                       const nori_prune_report *r, const char *output)
{
    nori_prune_summary s = {.size = sizeof(s)};
    nori_prune_node n = {.size = sizeof(n)};
    char before[32], after[32];
    size_t nodes = 0, left = 0;
    nori_prune_report_summary(r, &s);
    cli_bytes_text(s.weight_bytes_before, before, sizeof(before));
    cli_bytes_text(s.weight_bytes_after, after, sizeof(after));
    for (; nori_prune_report_node(r, nodes, &n); nodes++) {
        left += n.reason[0] != 0;
    }
    printf("nodes       %5zu of %zu pruned%s\n", nodes - left, nodes,
           left ? ": --nodes says why not the others" : "");
    printf("weights     %llu of %llu %s\n", (unsigned long long)s.removed,
           (unsigned long long)s.weights,
           o->method == NORI_PRUNE_CHANNELS ? "taken out" : "made zero");
    printf("bytes       %s, were %s\n", after, before);
    if (s.samples > 0 && isinf(s.output_sqnr)) {
        printf("agreement   exact on every output, over %zu samples\n", s.samples);
    } else if (s.samples > 0) {
        printf("agreement   %.1f dB of signal over error on the worst output, over %zu samples\n",
               s.output_sqnr, s.samples);
    } else {
        printf("agreement   not measured: --data or --random give samples\n");
    }
    if (cli_has(args, "--nodes")) {
        print_nodes(r);
    }
    printf("\n%s was written; next: train it some more, or nori quantize %s ...\n", output, output);
}

static void print_json(const nori_prune_report *r, const char *output)
{
    nori_prune_summary s = {.size = sizeof(s)};
    nori_prune_node n = {.size = sizeof(n)};
    cli_json j;
    nori_prune_report_summary(r, &s);
    cli_json_begin(&j, stdout);
    cli_json_string(&j, "output", output);
    cli_json_uint(&j, "samples", s.samples);
    cli_json_uint(&j, "weights", s.weights);
    cli_json_uint(&j, "zeros", s.zeros);
    cli_json_uint(&j, "removed", s.removed);
    cli_json_uint(&j, "weight_bytes_before", s.weight_bytes_before);
    cli_json_uint(&j, "weight_bytes_after", s.weight_bytes_after);
    cli_json_number(&j, "output_sqnr", s.output_sqnr, 6);
    cli_json_array(&j, "nodes");
    for (size_t i = 0; nori_prune_report_node(r, i, &n); i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "path", n.path);
        cli_json_string(&j, "op", n.op);
        cli_json_uint(&j, "weights", n.weights);
        cli_json_uint(&j, "zeros", n.zeros);
        cli_json_uint(&j, "removed", n.removed);
        cli_json_int(&j, "channels_before", n.channels_before);
        cli_json_int(&j, "channels_after", n.channels_after);
        cli_json_string(&j, "reason", n.reason);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    cli_json_finish(&j);
}

static int run(cli_args *args)
{
    const char *exclude[CLI_MAX_OPTIONS], *output = cli_value(args, "--output");
    nori_prune_options o;
    nori_model *model = NULL, *made = NULL;
    nori_prune_report *report = NULL;
    cli_samples *samples = NULL;
    nori_error err = {0};
    if (args->count != 1 || !output) {
        return cli_usage(args, "a model and --output FILE were expected");
    }
    if (!read_options(args, &o, exclude)) {
        return EXIT_USAGE;
    }
    int code = cli_load(args, &model);
    if (code == EXIT_YES && (cli_has(args, "--data") || cli_has(args, "--random"))) {
        code = cli_samples_open(args, model, &samples);
    }
    o.sample = samples ? cli_samples_get : NULL;
    o.sample_user = samples;
    if (code == EXIT_YES && nori_prune(model, &o, &made, &report, &err) != NORI_OK) {
        code = samples ? cli_samples_code(samples) : EXIT_YES; /* nothing is said twice */
        code = code == EXIT_YES ? cli_fail(args, &err) : code;
    }
    if (code == EXIT_YES && nori_model_save(made, output, &err) != NORI_OK) {
        code = cli_fail(args, &err);
    }
    if (code == EXIT_YES && args->json) {
        print_json(report, output);
    } else if (code == EXIT_YES && !args->quiet) {
        print_text(args, &o, report, output);
    }
    nori_prune_report_free(report);
    nori_model_free(made);
    cli_samples_close(samples);
    nori_model_free(model);
    return code;
}

const cli_verb cli_prune = {
    "prune", "shrink", "MODEL --output FILE", "make a model with fewer weights",
    options, run,
    "  nori prune model.onnx --output sparse.onnx --share 0.6 --data pictures/\n"
    "  nori prune model.onnx --output half.onnx --method 2:4\n"
    "  nori prune model.onnx --output thin.onnx --method channels --share 0.25 --nodes\n"
    "  nori quantize thin.onnx --output thin_int8.onnx --data pictures/\n"};

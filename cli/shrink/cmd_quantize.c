/* cmd_quantize.c: a float model and samples become a model on integers, with a report. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perturb.h"
#include "quantize_page.h"

static const cli_option options[] = {
    {"--output", "FILE", "the quantized model"},
    CLI_SAMPLE_OPTIONS,
    CLI_PERTURB_OPTION,
    {"--kind", "WORD", "static (default), dynamic (ranges in each run), weights (alone), fp16 or bf16"},
    {"--activations", "TYPE", "uint8 (default), int8, uint16 or int16"},
    {"--weights", "TYPE", "int8 (default) or uint8; weights alone: also int4, uint4"},
    {"--block", "N", "weights alone: 16, 32, 64 ... of a column share a scale"},
    {"--rounding", "WORD", "weights alone, of products: mse (default), nearest, hqq, or gptq (with samples)"},
    {"--packed", NULL, "weights alone, in blocks: products as com.microsoft MatMulNBits"},
    {"--form", "WORD", "static: qdq (default: pairs around operators) or qoperator (QLinearConv ...)"},
    {"--microsoft", NULL, "qoperator: com.microsoft's QLinearAdd, QGemm ... too; dynamic: its LSTM"},
    {"--half-io", NULL, "fp16, bf16: inputs and outputs change their type too"},
    {"--per-tensor", NULL, "one scale a weight, not one an output channel"},
    {"--symmetric", NULL, "activations with zero point 0 (unsigned types: the middle)"},
    {"--calibration", "FILE", "ranges from a file of `nori calibrate`; --data then measures only"},
    {"--method", "WORD", "ranges by minmax, percentile, entropy, mse or average; auto (default): tries"},
    {"--percentile", "P", "of that method (default 99.99)"},
    {"--exclude", "NAME", "node (also NAME*) or operator that stays float; may be repeated"},
    {"--budget", "WORD=X", "static: sqnr=20dB (default), top1=0.5%, max-latency=5ms; repeatable"},
    {"--without", "STEP", "static: not fold, equalize, smooth, bias, adaround; repeatable"},
    {"--attention", NULL, "dynamic: products of two activations, as in attention, on integers too"},
    {"--size-first", NULL, "static: integers also for layers that they make slower (too little work)"},
    {"--spare-slow", NULL, "static: layers that integers make slower on this machine stay float"},
    {"--no-search", NULL, "static: every step, every layer, whatever it costs"},
    {"--html", "FILE", "the report as a page with pictures; needs no network"},
    {"--nodes", NULL, "show every node and why it is as it is"},
    {"--values", NULL, "show every quantized value: range, scale, clipping, error"},
    {"--threads", "N", "threads for one run (default: what the machine allows)"},
    CLI_LOAD_OPTIONS, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

static bool word(const cli_args *args, const char *option, const char *const *words, int *out)
{
    const char *value = cli_value(args, option);
    for (int i = 0; value && words[i]; i++) {
        if (strcmp(words[i], value) == 0) {
            *out = i;
            return true;
        }
    }
    if (value) {
        cli_usage(args, "%s: \"%s\" is none of its words; see `nori %s --help`", option, value,
                  args->verb->name);
    }
    return !value;
}

/* "sqnr=20dB": a number with its unit. */
static bool budget(const cli_args *args, const char *text, nori_quantize_options *o)
{
    char *end = NULL;
    bool sqnr = strncmp(text, "sqnr=", 5) == 0, top1 = strncmp(text, "top1=", 5) == 0;
    double value = sqnr || top1 ? strtod(text + 5, &end) : 0;
    if (sqnr && end > text + 5 && strcmp(end, "dB") == 0 && value > 0 && value < 200) {
        o->least_sqnr = value;
        return true;
    }
    if (top1 && end > text + 5 && strcmp(end, "%") == 0 && value >= 0 && value <= 100) {
        o->most_top1 = value / 100;
        return true;
    }
    if (strncmp(text, "max-latency=", 12) == 0) {
        value = strtod(text + 12, &end);
        if (end > text + 12 && strcmp(end, "ms") == 0 && value > 0 && value < 1e9) {
            o->most_ms = value;
            return true;
        }
    }
    cli_usage(args, "--budget %s: sqnr=20dB, top1=0.5%% or max-latency=5ms was expected, with its unit",
              text);
    return false;
}

static bool search_options(const cli_args *args, nori_quantize_options *o)
{
    static const char *const steps[] = {"fold", "equalize", "smooth", "bias", "adaround"};
    const char *text;
    for (int i = 0; (text = cli_nth(args, "--budget", i)) != NULL; i++) {
        if (!budget(args, text, o)) {
            return false;
        }
    }
    for (int i = 0; (text = cli_nth(args, "--without", i)) != NULL; i++) {
        size_t k = 0;
        while (k < sizeof(steps) / sizeof(steps[0]) && strcmp(steps[k], text) != 0) {
            k++;
        }
        if (k == sizeof(steps) / sizeof(steps[0])) {
            cli_usage(args, "--without %s: fold, equalize, smooth, bias or adaround was expected", text);
            return false;
        }
        o->without |= 1u << k;
    }
    o->search = !cli_has(args, "--no-search");
    o->spare_slow = cli_has(args, "--spare-slow");
    o->size_first = cli_has(args, "--size-first");
    o->attention = cli_has(args, "--attention");
    if (o->size_first && (o->spare_slow || !o->search)) {
        cli_usage(args, "--size-first does nothing beside --no-search, and the opposite of --spare-slow");
        return false;
    }
    return true;
}

/* Options that another kind of quantization takes would do nothing. */
static bool kind_has_options(const cli_args *args, int kind, const char *word_of_kind)
{
    enum { STATIC = 1, DYNAMIC = 2, WEIGHTS = 4, HALF = 24 };
    static const struct {
        const char *option;
        int kinds;
        const char *of;
    } rows[] = {{"--activations", STATIC, "static"},
                {"--symmetric", STATIC, "static"},
                {"--method", STATIC, "static"},
                {"--percentile", STATIC, "static"},
                {"--budget", STATIC, "static"},
                {"--without", STATIC, "static"},
                {"--no-search", STATIC, "static"},
                {"--spare-slow", STATIC, "static"},
                {"--size-first", STATIC, "static"},
                {"--attention", DYNAMIC, "dynamic"},
                {"--rounding", WEIGHTS, "weights"},
                {"--calibration", STATIC | HALF, "static, fp16 and bf16"},
                {"--weights", STATIC | DYNAMIC | WEIGHTS, "static, dynamic and weights"},
                {"--per-tensor", STATIC | DYNAMIC | WEIGHTS, "static, dynamic and weights"},
                {"--block", WEIGHTS, "weights"},
                {"--packed", WEIGHTS, "weights"},
                {"--form", STATIC, "static"},
                {"--microsoft", STATIC | DYNAMIC, "static and dynamic"},
                {"--half-io", HALF, "fp16 and bf16"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (cli_has(args, rows[i].option) && !(rows[i].kinds & 1 << kind)) {
            cli_usage(args, "%s is for --kind %s; it does nothing for %s", rows[i].option, rows[i].of,
                      word_of_kind);
            return false;
        }
    }
    return true;
}

static bool read_options(const cli_args *args, nori_quantize_options *o, const char **exclude)
{
    static const char *const activations[] = {"uint8", "int8", "uint16", "int16", NULL};
    static const nori_type activation_types[] = {NORI_UINT8, NORI_INT8, NORI_UINT16, NORI_INT16};
    static const char *const weights[] = {"int8", "uint8", "int4", "uint4", NULL};
    static const nori_type weight_types[] = {NORI_INT8, NORI_UINT8, NORI_INT4, NORI_UINT4};
    static const char *const kinds[] = {"static", "dynamic", "weights", "fp16", "bf16", NULL};
    static const char *const methods[] = {"minmax", "percentile", "entropy", "mse", "average", "auto", NULL};
    static const char *const forms[] = {"qdq", "qoperator", NULL};
    static const char *const roundings[] = {"mse", "nearest", "hqq", "gptq", NULL};
    int activation = 0, weight = 0, method = NORI_RANGE_AUTO, kind = 0, rounding = 0;
    long threads, block;
    nori_quantize_options_default(o);
    if (!word(args, "--activations", activations, &activation) ||
        !word(args, "--weights", weights, &weight) || !word(args, "--form", forms, &o->form) ||
        !word(args, "--method", methods, &method) || !word(args, "--kind", kinds, &kind) ||
        !word(args, "--rounding", roundings, &rounding) ||
        !cli_number(args, "--block", 16, 65536, 0, &block) ||
        !cli_number(args, "--threads", 1, 256, 0, &threads)) {
        return false;
    }
    const char *percentile = cli_value(args, "--percentile");
    if (percentile) {
        char *end;
        o->percentile = strtod(percentile, &end);
        if (*end || !(o->percentile > 50 && o->percentile <= 100)) {
            cli_usage(args, "--percentile: a number above 50, up to 100, was expected");
            return false;
        }
        if (cli_has(args, "--method") && method != NORI_RANGE_PERCENTILE) {
            cli_usage(args, "--percentile is for --method percentile");
            return false;
        }
        method = NORI_RANGE_PERCENTILE;
    }
    if (!kind_has_options(args, kind, kinds[kind])) {
        return false;
    }
    if (!search_options(args, o)) {
        return false;
    }
    o->activation_type = activation_types[activation];
    o->kind = (nori_quantize_kind)kind;
    o->weight_type = weight_types[weight];
    o->rounding = (nori_quantize_rounding)rounding;
    o->block = (int)block;
    o->packed = cli_has(args, "--packed");
    o->microsoft = cli_has(args, "--microsoft");
    if (o->microsoft && o->form != NORI_FORM_QOPERATOR && o->kind != NORI_QUANTIZE_DYNAMIC) {
        cli_usage(args, "--microsoft is for --form qoperator and --kind dynamic");
        return false;
    }
    o->half_io = cli_has(args, "--half-io");
    o->per_channel = !cli_has(args, "--per-tensor");
    o->symmetric_activations = cli_has(args, "--symmetric");
    o->method = (nori_range_method)method;
    o->threads = (int)threads;
    for (int i = 0; i < CLI_MAX_OPTIONS && cli_nth(args, "--exclude", i); i++) {
        exclude[o->exclude_count++] = cli_nth(args, "--exclude", i);
    }
    o->exclude = exclude;
    return true;
}

static bool excludes(const char *what, const nori_node *n)
{
    size_t size = strlen(what);
    bool prefix = size > 0 && what[size - 1] == '*';
    const char *name = nori_node_name(n);
    return (prefix ? strncmp(what, name, size - 1) : strcmp(what, name)) == 0 ||
           strcmp(what, nori_node_op(n)) == 0;
}

/* A name that is mistyped would leave its node on integers. */
static int check_exclude(const cli_args *args, const nori_model *model)
{
    const char *what;
    for (int i = 0; (what = cli_nth(args, "--exclude", i)) != NULL; i++) {
        size_t nodes = 0, matched = 0;
        for (const nori_node *n = nori_graph_first(nori_model_graph(model)); n;
             n = nori_node_next(n)) {
            nodes++;
            matched += excludes(what, n);
        }
        if (matched == 0) {
            return cli_usage(args, "--exclude %s matched 0 of %zu nodes, by name or by operator; `nori "
                                   "inspect --nodes` lists them",
                             what, nodes);
        }
    }
    return EXIT_YES;
}

static void progress(void *user, const char *phase, size_t done, size_t total)
{
    const char *what = strcmp(phase, "ranges") == 0 ? "finding ranges" : "measuring the cost";
    if (total > 0) {
        cli_progress(user, "%s: sample %zu of %zu", what, done, total);
    } else {
        cli_progress(user, "%s: sample %zu", what, done);
    }
}

/* ---- the report ---- */

static void decibel(double v, char *out, size_t size)
{
    if (isnan(v)) {
        snprintf(out, size, "-");
    } else if (isinf(v)) {
        snprintf(out, size, "exact");
    } else {
        snprintf(out, size, "%.1f dB", v);
    }
}

/* What nodes compute on that did not stay float32. */
static const char *compact_word(const cli_args *args)
{
    const char *kind = cli_value(args, "--kind");
    return kind && strcmp(kind, "fp16") == 0   ? "float16"
           : kind && strcmp(kind, "bf16") == 0 ? "bfloat16"
                                               : "integers";
}

static void milliseconds(double v, char *out, size_t size)
{
    if (isnan(v)) {
        snprintf(out, size, "-");
    } else {
        snprintf(out, size, "%.3f", v);
    }
}

static void print_nodes(const cli_args *args, const nori_quantize_report *r)
{
    nori_quantize_node n = {.size = sizeof(n)};
    char sqnr[32], alone[32], floats[32], ints[32];
    int width = 24;
    for (size_t i = 0; nori_quantize_report_node(r, i, &n); i++) {
        width = cli_widen(width, n.path);
    }
    printf("\n%-*s %-8s %9s %9s %9s %9s  %s\n", width, "node", "", "weights", "alone", "float ms",
           "int ms", "why");
    for (size_t i = 0; nori_quantize_report_node(r, i, &n); i++) {
        decibel(n.quantized && n.weight_sqnr != 0 ? n.weight_sqnr : NAN, sqnr, sizeof(sqnr));
        decibel(n.alone_sqnr, alone, sizeof(alone));
        milliseconds(n.float_ms, floats, sizeof(floats));
        milliseconds(n.int_ms, ints, sizeof(ints));
        printf("%-*s %-8s %9s %9s %9s %9s%s%s\n", width, n.path,
               n.quantized ? compact_word(args) : "float", sqnr, alone, floats, ints,
               n.reason[0] ? "  " : "", n.reason);
    }
}

static void print_values(const nori_quantize_report *r)
{
    nori_quantize_value v = {.size = sizeof(v)};
    char sqnr[32];
    int width = 24;
    for (size_t i = 0; nori_quantize_report_value(r, i, &v); i++) {
        width = cli_widen(width, v.name);
    }
    printf("\n%-*s %23s %11s %5s %9s %9s\n", width, "value", "range", "scale", "zero", "clipped",
           "agreement");
    for (size_t i = 0; nori_quantize_report_value(r, i, &v); i++) {
        char range[48];
        snprintf(range, sizeof(range), "[%.4g, %.4g]", v.low, v.high);
        decibel(v.sqnr, sqnr, sizeof(sqnr));
        printf("%-*s %23s %11.5g %5lld %8.3f%% %9s\n", width, v.name, range, v.scale,
               (long long)v.zero_point, v.clipped * 100, sqnr);
    }
}

/* Why nodes stayed float, each reason once. */
static void print_reasons(const nori_quantize_report *r)
{
    nori_quantize_node n = {.size = sizeof(n)}, earlier = {.size = sizeof(earlier)};
    for (size_t i = 0; nori_quantize_report_node(r, i, &n); i++) {
        size_t count = 0;
        bool first = !n.quantized;
        for (size_t k = 0; first && nori_quantize_report_node(r, k, &earlier); k++) {
            bool same = !earlier.quantized && strcmp(earlier.reason, n.reason) == 0;
            first = !(same && k < i);
            count += same;
        }
        if (first) {
            printf("float       %5zu node%s: %s\n", count, count == 1 ? " " : "s", n.reason);
        }
    }
}

/* What was done beside rounding, and what each step gained. */
static void print_steps(const nori_quantize_report *r)
{
    nori_quantize_step_row s = {.size = sizeof(s)};
    for (size_t i = 0; nori_quantize_report_step(r, i, &s); i++) {
        if (isnan(s.sqnr_after)) {
            printf("step        %-36s not done: %s\n", s.name, s.reason);
        } else if (!isfinite(s.sqnr_after - s.sqnr_before)) { /* no error before, or none after */
            char before[32], after[32];
            decibel(s.sqnr_before, before, sizeof(before));
            decibel(s.sqnr_after, after, sizeof(after));
            printf("step        %-36s %s: %s, was %s\n", s.name, s.kept ? "kept" : "left out", after,
                   before);
        } else {
            printf("step        %-36s %s: %+.2f dB\n", s.name, s.kept ? "kept" : "left out",
                   s.sqnr_after - s.sqnr_before);
        }
    }
}

static void print_tries(const nori_quantize_report *r)
{
    nori_quantize_try t = {.size = sizeof(t)};
    char sqnr[32], size[32];
    if (!nori_quantize_report_try(r, 0, &t)) {
        return;
    }
    printf("\n%-40s %6s %9s %8s %10s %10s\n", "tried (* = best of something)", "float", "agreement", "top1",
           "ms", "weights");
    for (size_t i = 0; nori_quantize_report_try(r, i, &t); i++) {
        decibel(t.sqnr, sqnr, sizeof(sqnr));
        cli_bytes_text(t.weight_bytes, size, sizeof(size));
        printf("%c %-38s %6zu %9s ", t.pareto ? '*' : ' ', t.label, t.spared, sqnr);
        if (isnan(t.top1_changed)) {
            printf("%8s", "-");
        } else {
            printf("%7.2f%%", t.top1_changed * 100);
        }
        printf(" %10.3f %10s\n", t.ms, size);
    }
}

static void print_text(const cli_args *args, const nori_quantize_report *r, const char *output)
{
    nori_quantize_summary s = {.size = sizeof(s)};
    char before[32], after[32], sqnr[32];
    nori_quantize_report_summary(r, &s);
    cli_bytes_text(s.weight_bytes_before, before, sizeof(before));
    cli_bytes_text(s.weight_bytes_after, after, sizeof(after));
    decibel(s.output_sqnr, sqnr, sizeof(sqnr));
    if (cli_has(args, "--calibration")) {
        printf("ranges      from %zu samples\n", s.calibrated);
    }
    if (s.samples > 0) {
        printf("samples     %zu\n", s.samples);
    }
    printf("%-11s %5zu of %zu nodes\n", compact_word(args), s.quantized_nodes, s.nodes);
    print_reasons(r);
    printf("weights     %s, were %s (%.2f times smaller)\n", after, before,
           s.weight_bytes_after ? (double)s.weight_bytes_before / (double)s.weight_bytes_after : 0);
    if (s.samples > 0 && isinf(s.output_sqnr)) {
        printf("agreement   exact on every output\n");
    } else if (s.samples > 0) {
        printf("agreement   %s of signal over error on the worst output\n", sqnr);
    } else {
        printf("agreement   not measured: --data or --random give samples\n");
    }
    if (s.int_ms > 0) {
        printf("time        %.3f ms a run on this machine, %.3f ms in float\n", s.int_ms, s.float_ms);
    }
    for (size_t i = 0; nori_quantize_report_note(r, i); i++) {
        printf("note        %s\n", nori_quantize_report_note(r, i));
    }
    for (size_t i = 0; nori_quantize_report_advice(r, i); i++) {
        printf("advice      %s\n", nori_quantize_report_advice(r, i));
    }
    print_steps(r);
    print_tries(r);
    if (cli_has(args, "--nodes")) {
        print_nodes(args, r);
    }
    if (cli_has(args, "--values")) {
        print_values(r);
    }
    printf("\n%s was written; next: nori run %s ..., or nori bench %s\n", output, output, output);
}

static void warn_unchanged(const cli_args *args, const nori_quantize_report *r)
{
    nori_quantize_summary s = {.size = sizeof(s)};
    nori_quantize_report_summary(r, &s);
    if (s.quantized_nodes == 0) {
        cli_warn(args, "no node computes on %s that did not before; --nodes says why",
                 compact_word(args));
    }
}

static void print_json(const nori_quantize_report *r, const char *output)
{
    nori_quantize_summary s = {.size = sizeof(s)};
    nori_quantize_node n = {.size = sizeof(n)};
    nori_quantize_value v = {.size = sizeof(v)};
    nori_quantize_step_row step = {.size = sizeof(step)};
    nori_quantize_try t = {.size = sizeof(t)};
    cli_json j;
    nori_quantize_report_summary(r, &s);
    cli_json_begin(&j, stdout);
    cli_json_string(&j, "output", output);
    cli_json_uint(&j, "samples", s.samples);
    cli_json_uint(&j, "calibrated", s.calibrated);
    cli_json_uint(&j, "weight_bytes_before", s.weight_bytes_before);
    cli_json_uint(&j, "weight_bytes_after", s.weight_bytes_after);
    cli_json_number(&j, "output_sqnr", s.output_sqnr, 6);
    cli_json_number(&j, "float_ms", s.float_ms, 6);
    cli_json_number(&j, "int_ms", s.int_ms, 6);
    cli_json_array(&j, "nodes");
    for (size_t i = 0; nori_quantize_report_node(r, i, &n); i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "path", n.path);
        cli_json_string(&j, "op", n.op);
        cli_json_bool(&j, "quantized", n.quantized != 0);
        cli_json_string(&j, "reason", n.reason);
        cli_json_number(&j, "weight_sqnr", n.weight_sqnr, 6);
        cli_json_number(&j, "alone_sqnr", n.alone_sqnr, 6);
        cli_json_number(&j, "float_ms", n.float_ms, 6);
        cli_json_number(&j, "int_ms", n.int_ms, 6);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    cli_json_array(&j, "values");
    for (size_t i = 0; nori_quantize_report_value(r, i, &v); i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "name", v.name);
        cli_json_number(&j, "seen_min", v.seen_min, 9);
        cli_json_number(&j, "seen_max", v.seen_max, 9);
        cli_json_number(&j, "low", v.low, 9);
        cli_json_number(&j, "high", v.high, 9);
        cli_json_number(&j, "scale", v.scale, 9);
        cli_json_int(&j, "zero_point", v.zero_point);
        cli_json_number(&j, "clipped", v.clipped, 6);
        cli_json_number(&j, "sqnr", v.sqnr, 6);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    cli_json_array(&j, "steps");
    for (size_t i = 0; nori_quantize_report_step(r, i, &step); i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "name", step.name);
        cli_json_bool(&j, "kept", step.kept != 0);
        cli_json_number(&j, "sqnr_before", step.sqnr_before, 6);
        cli_json_number(&j, "sqnr_after", step.sqnr_after, 6);
        cli_json_string(&j, "reason", step.reason);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    cli_json_array(&j, "tries");
    for (size_t i = 0; nori_quantize_report_try(r, i, &t); i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "label", t.label);
        cli_json_uint(&j, "spared", t.spared);
        cli_json_number(&j, "sqnr", t.sqnr, 6);
        cli_json_number(&j, "top1_changed", t.top1_changed, 6);
        cli_json_number(&j, "ms", t.ms, 6);
        cli_json_uint(&j, "weight_bytes", t.weight_bytes);
        cli_json_bool(&j, "pareto", t.pareto != 0);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    cli_json_array(&j, "advice");
    for (size_t i = 0; nori_quantize_report_advice(r, i); i++) {
        cli_json_string(&j, NULL, nori_quantize_report_advice(r, i));
    }
    cli_json_end(&j);
    cli_json_array(&j, "notes");
    for (size_t i = 0; nori_quantize_report_note(r, i); i++) {
        cli_json_string(&j, NULL, nori_quantize_report_note(r, i));
    }
    cli_json_end(&j);
    cli_json_finish(&j);
}

static int run(cli_args *args)
{
    nori_quantize_options o;
    const char *exclude[CLI_MAX_OPTIONS], *output = cli_value(args, "--output");
    nori_model *model = NULL, *made = NULL;
    nori_quantize_report *report = NULL;
    cli_samples *samples = NULL;
    nori_calibration *calibration = NULL;
    long perturb = 0;
    nori_error err = {0};
    if (args->count != 1 || !output) {
        return cli_usage(args, "a model and --output FILE were expected");
    }
    if (!read_options(args, &o, exclude) || !cli_number(args, "--perturb", 1, 1000000, 0, &perturb)) {
        return EXIT_USAGE;
    }
    int code = cli_load(args, &model);
    code = code == EXIT_YES ? check_exclude(args, model) : code;
    const char *ranges = cli_value(args, "--calibration");
    if (code == EXIT_YES && ranges &&
        nori_calibration_read(args->env, ranges, &calibration, &err) != NORI_OK) {
        code = cli_fail(args, &err);
    }
    bool given = cli_has(args, "--data") || cli_has(args, "--random");
    if (code == EXIT_YES && (given || (o.kind == NORI_QUANTIZE_STATIC && !calibration))) {
        code = cli_samples_open(args, model, &samples);
    }
    if (code == EXIT_YES) {
        o.calibration = calibration;
        cli_perturb perturbed = {samples, nori_model_input_count(model), (size_t)perturb};
        o.sample = samples ? cli_perturb_get : NULL;
        o.sample_user = &perturbed;
        o.progress = progress;
        o.progress_user = args;
        if (nori_quantize(model, &o, &made, &report, &err) != NORI_OK) {
            cli_progress_done(args);
            code = samples ? cli_samples_code(samples) : EXIT_YES; /* nothing is said twice */
            code = code == EXIT_YES ? cli_fail(args, &err) : code;
        }
        cli_progress_done(args);
    }
    if (code == EXIT_YES) {
        warn_unchanged(args, report);
    }
    if (code == EXIT_YES && nori_model_save(made, output, &err) != NORI_OK) {
        code = cli_fail(args, &err);
    }
    if (code == EXIT_YES && args->json) {
        print_json(report, output);
    } else if (code == EXIT_YES && !args->quiet) {
        print_text(args, report, output);
    }
    if (code == EXIT_YES && cli_has(args, "--html")) {
        code = quantize_page(args, report);
    }
    nori_quantize_report_free(report);
    nori_model_free(made);
    cli_samples_close(samples);
    nori_calibration_free(calibration);
    nori_model_free(model);
    return code;
}

const cli_verb cli_quantize = {
    "quantize", "shrink", "MODEL --output FILE --data PATH", "make a model that computes on integers",
    options, run,
    "  nori quantize model.onnx --output int8.onnx --data pictures/\n"
    "  nori quantize model.onnx --output int8.onnx --data inputs.npy --method mse --values\n"
    "  nori quantize model.onnx --output int8.onnx --random 32 --exclude 'head/*'\n"
    "  nori quantize model.onnx --output int8.onnx --data inputs.npy --form qoperator\n"
    "  nori quantize model.onnx --output dynamic.onnx --kind dynamic\n"
    "  nori quantize model.onnx --output half.onnx --kind fp16 --data inputs.npy\n"
    "  nori quantize model.onnx --output int4.onnx --kind weights --weights int4 --block 32\n"};

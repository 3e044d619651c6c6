/* cmd_calibrate.c: what a model's values are on real inputs, as a file that `nori quantize` takes;
 * and such files of several machines as one. */
#include <stdlib.h>
#include <string.h>

#include "ranks.h"
#include "samples.h"

static const cli_option options[] = {
    {"--output", "FILE", "the calibration, as ranges.ncal"},
    CLI_SAMPLE_OPTIONS,
    {"--part", "K/N", "only sample K of every N (1/4 ... 4/4 on four machines)"},
    {"--merge", NULL, "the arguments are calibrations: one that has seen what all have"},
    {"--values", NULL, "show what was seen of every value"},
    {"--threads", "N", "threads for one run (default: what the machine allows)"},
    CLI_LOAD_OPTIONS, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

static void progress(void *user, const char *phase, size_t done, size_t total)
{
    (void)phase;
    (void)total;
    cli_progress(user, "finding ranges: sample %zu", done);
}

/* ---- answers ---- */

static void print_values(nori_calibration *c)
{
    nori_calibrated v = {.size = sizeof(v)};
    int width = 24;
    for (size_t i = 0; nori_calibration_at(c, i, &v); i++) {
        width = cli_widen(width, v.name);
    }
    printf("\n%-*s %12s %12s %12s %12s %12s\n", width, "value", "least", "greatest", "mean least",
           "mean great.", "numbers");
    for (size_t i = 0; nori_calibration_at(c, i, &v); i++) {
        if (v.count == 0) {
            printf("%-*s no finite number\n", width, v.name);
        } else {
            printf("%-*s %12.5g %12.5g %12.5g %12.5g %12llu\n", width, v.name, v.min, v.max,
                   v.average_min, v.average_max, (unsigned long long)v.count);
        }
    }
}

static void print_json(nori_calibration *c, const char *output)
{
    nori_calibrated v = {.size = sizeof(v)};
    cli_json j;
    cli_json_begin(&j, stdout);
    cli_json_string(&j, "output", output);
    cli_json_uint(&j, "samples", nori_calibration_samples(c));
    cli_json_array(&j, "values");
    for (size_t i = 0; nori_calibration_at(c, i, &v); i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "name", v.name);
        cli_json_number(&j, "min", v.min, 9);
        cli_json_number(&j, "max", v.max, 9);
        cli_json_number(&j, "average_min", v.average_min, 9);
        cli_json_number(&j, "average_max", v.average_max, 9);
        cli_json_uint(&j, "count", v.count);
        cli_json_uint(&j, "nan", v.nan);
        cli_json_uint(&j, "inf", v.inf);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    cli_json_finish(&j);
}

static int finish(const cli_args *args, nori_calibration *c, const char *output)
{
    nori_error err = {0};
    nori_calibrated v = {.size = sizeof(v)};
    size_t values = 0;
    if (nori_calibration_write(c, output, &err) != NORI_OK) {
        return cli_fail(args, &err);
    }
    while (nori_calibration_at(c, values, &v)) {
        values++;
    }
    if (args->json) {
        print_json(c, output);
    } else if (!args->quiet) {
        printf("samples     %llu\nvalues      %zu\n",
               (unsigned long long)nori_calibration_samples(c), values);
        if (cli_has(args, "--values")) {
            print_values(c);
        }
        printf("\n%s was written; next: nori quantize MODEL --calibration %s --output FILE\n", output,
               output);
    }
    return EXIT_YES;
}

/* ---- merging ---- */

static int run_merge(const cli_args *args, const char *output)
{
    static const char *const of_samples[] = {"--data", "--random", "--samples", "--part", "--threads"};
    for (size_t i = 0; i < sizeof(of_samples) / sizeof(of_samples[0]); i++) {
        if (cli_has(args, of_samples[i])) {
            return cli_usage(args, "%s has nothing to do with --merge: no sample is run",
                             of_samples[i]);
        }
    }
    if (args->count == 0 || !output) {
        return cli_usage(args, "calibrations to merge and --output FILE were expected");
    }
    nori_calibration *all = NULL;
    nori_error err = {0};
    nori_status s = nori_calibration_read(args->env, args->positional[0], &all, &err);
    for (int i = 1; s == NORI_OK && i < args->count; i++) {
        nori_calibration *more = NULL;
        s = nori_calibration_read(args->env, args->positional[i], &more, &err);
        if (s == NORI_OK) {
            s = nori_calibration_merge(all, more, &err);
            if (s != NORI_OK && !err.where[0]) {
                snprintf(err.where, sizeof(err.where), "%s", args->positional[i]);
            }
        }
        nori_calibration_free(more);
    }
    int code = s == NORI_OK ? finish(args, all, output) : cli_fail(args, &err);
    nori_calibration_free(all);
    return code;
}

/* ---- running ---- */

static bool part_of(const cli_args *args, size_t *part, size_t *parts)
{
    const char *text = cli_value(args, "--part");
    char *end;
    *part = 0;
    *parts = 1;
    if (!text) {
        return true;
    }
    long k = strtol(text, &end, 10), n = 0;
    if (*end == '/') {
        n = strtol(end + 1, &end, 10);
    }
    if (*end || k < 1 || n < k || n > 1000000) {
        cli_usage(args, "--part \"%s\": K/N was expected, as 1/4 for the first of four", text);
        return false;
    }
    *part = (size_t)k - 1;
    *parts = (size_t)n;
    return true;
}

/* One rank of a group shares the samples that --part leaves with the others. */
static int calibrate(cli_args *args, const nori_model *model, const cli_ranks *ranks,
                     nori_calibration **made)
{
    size_t part, parts;
    cli_samples *samples = NULL;
    nori_calibrate_options o;
    nori_error err = {0};
    if (!part_of(args, &part, &parts)) {
        return EXIT_USAGE;
    }
    long threads;
    if (!cli_number(args, "--threads", 1, 256, 0, &threads)) {
        return EXIT_USAGE;
    }
    int code = cli_samples_open(args, model, &samples);
    if (code != EXIT_YES) {
        return code;
    }
    size_t rank = (size_t)ranks->rank, size = (size_t)ranks->size;
    cli_samples_part(samples, part + rank * parts, parts * size);
    nori_calibrate_options_default(&o);
    o.threads = (int)threads;
    o.sample = cli_samples_get;
    o.sample_user = samples;
    o.progress = progress;
    o.progress_user = args;
    nori_status s = nori_calibrate(model, &o, made, &err);
    cli_progress_done(args);
    if (s != NORI_OK) {
        code = cli_samples_code(samples); /* nothing is said twice */
        code = code == EXIT_YES ? cli_fail(args, &err) : code;
    } else if (ranks->size == 1 && nori_calibration_samples(*made) == 0) {
        code = cli_usage(args, "--part %s: there are fewer samples than parts",
                         cli_value(args, "--part"));
    }
    cli_samples_close(samples);
    return code;
}

static int run(cli_args *args)
{
    const char *output = cli_value(args, "--output");
    nori_model *model = NULL;
    nori_calibration *made = NULL;
    cli_ranks ranks;
    if (cli_has(args, "--merge")) {
        return run_merge(args, output);
    }
    if (args->count != 1 || !output) {
        return cli_usage(args, "a model and --output FILE were expected");
    }
    int code = cli_ranks_begin(args, &ranks);
    if (code != EXIT_YES) {
        return code;
    }
    code = cli_load(args, &model);
    code = code == EXIT_YES ? calibrate(args, model, &ranks, &made) : code;
    code = cli_ranks_gather(args, &ranks, code, made);
    if (ranks.rank == 0 && code == EXIT_YES) {
        code = finish(args, made, output);
    }
    code = cli_ranks_end(&ranks, code);
    nori_calibration_free(made);
    nori_model_free(model);
    return code;
}

const cli_verb cli_calibrate = {
    "calibrate", "shrink", "MODEL --output FILE --data PATH", "watch a model's values on real inputs",
    options, run,
    "  nori calibrate model.onnx --output ranges.ncal --data pictures/\n"
    "  nori calibrate model.onnx --output two.ncal --data pictures/ --part 2/4\n"
    "  nori calibrate --merge one.ncal two.ncal three.ncal four.ncal --output all.ncal\n"
    "  mpirun -n 4 nori calibrate model.onnx --output all.ncal --data pictures/\n"
    "  nori quantize model.onnx --calibration all.ncal --output int8.onnx\n"};

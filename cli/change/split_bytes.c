/* split_bytes.c: parts that hand floats over in 8 bits, from samples or by each call's own range, and what
 * that costs. */
#include "split_bytes.h"

#include <stdlib.h>

bool split_bytes_check(const cli_args *args)
{
    static const char *const own[] = {"--data", "--random", "--samples", "--mean", "--std", "--range",
                                      "--bgr", "--tolerance"};
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]) && !cli_has(args, "--byte-features"); i++) {
        if (cli_has(args, own[i])) {
            cli_usage(args, "%s has a meaning with --byte-features only", own[i]);
            return false;
        }
    }
    return true;
}

static int read_tolerance(const cli_args *args, double *tolerance)
{
    const char *text = cli_value(args, "--tolerance");
    char *end = NULL;
    if (!text) {
        return EXIT_YES;
    }
    *tolerance = strtod(text, &end);
    return end != text && *end == 0 && *tolerance >= 0 && *tolerance < 1e9
               ? EXIT_YES
               : cli_usage(args, "--tolerance \"%s\": a number of at least 0 was expected", text);
}

int split_bytes_make(cli_args *args, const nori_model *model, const nori_proof_options *proof,
                     nori_model **parts, size_t count, split_bytes *b)
{
    nori_narrow_options o;
    nori_error err = {0};
    cli_samples *samples = NULL;
    nori_narrow_options_default(&o);
    int code = read_tolerance(args, &o.tolerance);
    if (code == EXIT_YES && (cli_has(args, "--data") || cli_has(args, "--random"))) {
        code = cli_samples_open(args, model, &samples);
    }
    nori_model **narrow = calloc(count, sizeof(*narrow));
    if (code == EXIT_YES && !narrow) {
        code = cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
    }
    if (code == EXIT_YES) {
        o.proof = *proof;
        o.sample = samples ? cli_samples_get : NULL;
        o.sample_user = samples;
        nori_status s = nori_narrow(model, (const nori_model *const *)parts, count, &o, narrow, &b->report,
                                    &err);
        cli_progress_done(args);
        int told = samples ? cli_samples_code(samples) : 0;
        code = s == NORI_OK ? EXIT_YES : told ? told : cli_fail(args, &err);
    }
    for (size_t i = 0; code == EXIT_YES && i < count; i++) {
        nori_model_free(parts[i]);
        parts[i] = narrow[i];
    }
    free(narrow);
    cli_samples_close(samples);
    return code;
}

void split_bytes_print(const split_bytes *b)
{
    nori_narrowed v = {.size = sizeof(v)};
    nori_narrow_result r = {.size = sizeof(r)};
    if (!b->report) {
        return;
    }
    nori_narrow_report_result(b->report, &r);
    for (size_t i = 0; nori_narrow_report_value(b->report, i, &v); i++) {
        printf("8 bits      %s as %s: ", v.value, v.sent);
        if (v.fixed) {
            printf("%.6g to %.6g, scale %.6g, zero point %d", v.min, v.max, v.scale, v.zero_point);
        } else {
            printf("scale and zero point of each call, sent along");
        }
        if (r.ran) {
            printf("; %llu bytes of %llu, off by up to %.3g (%.4g dB)", (unsigned long long)v.bytes,
                   (unsigned long long)v.bytes_before, v.max_abs, v.sqnr_db);
        }
        printf("\n");
    }
    if (r.left > 0) {
        printf("            %zu of other types as they are\n", r.left);
    }
    if (!r.ran) {
        printf("            the cost at the outputs is not known: %s\n", r.reason);
    } else if (r.output) {
        printf("            output %s off by up to %.3g of %.4g (%.4g dB) over ", r.output, r.max_abs, r.peak,
               r.sqnr_db);
        if (r.samples > 0) {
            printf("%zu sample%s; ", r.samples, r.samples == 1 ? "" : "s");
        } else {
            printf("inputs that were made up; ");
        }
        printf("%.3g of it were allowed\n", r.tolerance);
    }
}

void split_bytes_json(const split_bytes *b, cli_json *j)
{
    nori_narrowed v = {.size = sizeof(v)};
    nori_narrow_result r = {.size = sizeof(r)};
    if (!b->report) {
        return;
    }
    nori_narrow_report_result(b->report, &r);
    cli_json_object(j, "byte_features");
    cli_json_array(j, "values");
    for (size_t i = 0; nori_narrow_report_value(b->report, i, &v); i++) {
        cli_json_object(j, NULL);
        cli_json_string(j, "name", v.value);
        cli_json_string(j, "sent", v.sent);
        cli_json_uint(j, "part", v.part + 1);
        cli_json_bool(j, "fixed", v.fixed);
        if (v.fixed) {
            cli_json_number(j, "scale", v.scale, 9);
            cli_json_int(j, "zero_point", v.zero_point);
        }
        if (v.fixed || r.ran) {
            cli_json_number(j, "min", v.min, 9);
            cli_json_number(j, "max", v.max, 9);
        }
        if (r.ran) {
            cli_json_uint(j, "bytes_before", v.bytes_before);
            cli_json_uint(j, "bytes", v.bytes);
            cli_json_number(j, "max_abs", v.max_abs, 9);
            cli_json_number(j, "sqnr_db", v.sqnr_db, 6);
        }
        cli_json_end(j);
    }
    cli_json_end(j);
    cli_json_uint(j, "left", r.left);
    cli_json_bool(j, "ran", r.ran);
    cli_json_number(j, "tolerance", r.tolerance, 9);
    if (r.ran && r.output) {
        cli_json_uint(j, "samples", r.samples);
        cli_json_string(j, "output", r.output);
        cli_json_number(j, "max_abs", r.max_abs, 9);
        cli_json_number(j, "peak", r.peak, 9);
        cli_json_number(j, "sqnr_db", r.sqnr_db, 6);
    }
    cli_json_string(j, "reason", r.reason);
    cli_json_end(j);
}

void split_bytes_free(split_bytes *b)
{
    nori_narrow_report_free(b->report);
}

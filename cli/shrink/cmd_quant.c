/* cmd_quant.c: the arithmetic of quantization alone, on numbers given. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const cli_option options[] = {
    {"--min", "R", "lower end of the range of real numbers (default: of the numbers given)"},
    {"--max", "R", "upper end of it"},
    {"--type", "TYPE", "int8 (default), uint8, int16, uint16, int4, uint4, int2, uint2, int32"},
    {"--symmetric", NULL, "zero point 0 (in an unsigned type: its middle)"},
    CLI_COMMON_OPTIONS,
};

static bool number(const cli_args *args, const char *what, const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    if (end == text || *end || !isfinite(*out)) {
        cli_usage(args, "%s: a number was expected, got \"%s\"", what, text);
        return false;
    }
    return true;
}

static bool type_of(const cli_args *args, nori_type *type)
{
    const char *name = cli_value(args, "--type");
    for (int t = 1; name && t < NORI_TYPE_COUNT; t++) {
        if (strcmp(nori_type_name((nori_type)t), name) == 0) {
            *type = (nori_type)t;
            return true;
        }
    }
    if (name) {
        cli_usage(args, "--type: there is no type \"%s\"", name);
    }
    return !name;
}

/* The range: given, or that of the numbers. */
static bool range_of(const cli_args *args, const double *numbers, double *low, double *high)
{
    const char *min = cli_value(args, "--min"), *max = cli_value(args, "--max");
    if (args->count == 0 && (!min || !max)) {
        cli_usage(args, "numbers to quantize, or --min and --max, were expected");
        return false;
    }
    *low = *high = args->count > 0 ? numbers[0] : 0;
    for (int i = 0; i < args->count; i++) {
        *low = numbers[i] < *low ? numbers[i] : *low;
        *high = numbers[i] > *high ? numbers[i] : *high;
    }
    return (!min || number(args, "--min", min, low)) && (!max || number(args, "--max", max, high));
}

static void print_json(const nori_quant *q, const double *numbers, int count)
{
    cli_json j;
    cli_json_begin(&j, stdout);
    cli_json_string(&j, "type", nori_type_name(q->type));
    cli_json_number(&j, "scale", q->scale, 17);
    cli_json_int(&j, "zero_point", q->zero_point);
    cli_json_int(&j, "q_min", q->q_min);
    cli_json_int(&j, "q_max", q->q_max);
    cli_json_array(&j, "values");
    for (int i = 0; i < count; i++) {
        int saturated;
        int64_t n = nori_quantize_number(q, numbers[i], &saturated);
        double back = nori_dequantize_number(q, n);
        cli_json_object(&j, NULL);
        cli_json_number(&j, "real", numbers[i], 17);
        cli_json_int(&j, "q", n);
        cli_json_number(&j, "back", back, 17);
        cli_json_number(&j, "error", fabs(numbers[i] - back), 17);
        cli_json_bool(&j, "saturated", saturated != 0);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    cli_json_finish(&j);
}

static void print_text(const nori_quant *q, double low, double high, const double *numbers,
                       int count)
{
    int clipped = 0;
    printf("type        %s, q in [%lld, %lld]\n", nori_type_name(q->type), (long long)q->q_min,
           (long long)q->q_max);
    printf("range       [%g, %g]\n", low, high);
    printf("scale S     %.8g   (largest rounding error S/2 = %.6g)\n", q->scale, q->scale / 2);
    printf("zero point  %lld\n", (long long)q->zero_point);
    if (count > 0) {
        printf("\n%14s %8s %14s %12s\n", "real", "q", "back", "error");
    }
    for (int i = 0; i < count; i++) {
        int saturated;
        int64_t n = nori_quantize_number(q, numbers[i], &saturated);
        double back = nori_dequantize_number(q, n);
        clipped += saturated;
        printf("%14.7g %8lld %14.7g %12.4g%s\n", numbers[i], (long long)n, back,
               fabs(numbers[i] - back), saturated ? "  saturated" : "");
    }
    if (count > 0) {
        printf("\n%d of %d saturated%s\n", clipped, count,
               clipped ? ": outside the range, clamped to its end" : "");
    }
}

static int run(cli_args *args)
{
    double numbers[sizeof(args->positional) / sizeof(args->positional[0])], low, high;
    nori_type type = NORI_INT8;
    nori_quant q = {.size = sizeof(q)};
    nori_error err = {0};
    for (int i = 0; i < args->count; i++) {
        if (!number(args, "argument", args->positional[i], &numbers[i])) {
            return EXIT_USAGE;
        }
    }
    if (!type_of(args, &type) || !range_of(args, numbers, &low, &high)) {
        return EXIT_USAGE;
    }
    if (nori_quant_range(type, low, high, cli_has(args, "--symmetric"), &q, &err)) {
        return cli_usage(args, "%s", err.message);
    }
    if (args->json) {
        print_json(&q, numbers, args->count);
    } else {
        print_text(&q, low, high, numbers, args->count);
    }
    return EXIT_YES;
}

const cli_verb cli_quant = {"quant", "shrink", "[NUMBER ...]",
                            "show the arithmetic of quantization on numbers", options, run,
                            "  nori quant --min -4 --max 6 --type int8 2.5 -3.2 9.0\n"};

/* cmd_route.c: calls that go to the device or to a server by what calls have been taking. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "route_job.h"

static const cli_option options[] = {
    CLI_INPUT_OPTIONS,
    CLI_REMOTE_OPTIONS,
    {"--calls", "N", "to make (default 100)"},
    {"--seconds", "S", "to go on for, instead of a number of calls"},
    {"--rate", "RATE", "calls begin at, as 10/s (default: each when the one before is done)"},
    {"--callers", "N", "at once (default 1)"},
    {"--deadline", "TIME", "a call must be done by then"},
    {"--percentile", "P", "of calls that must keep the deadline (default 99)"},
    {"--hedge", "TIME", "the device starts when no answer came by then, or `never` (default: as measured)"},
    {"--only", "PLACE", "edge, cloud or split: all calls go there"},
    {"--first", "FILE", "the first part of a split, which `nori split` wrote; with --second"},
    {"--second", "NAME", "of the other part's model on the server"},
    {"--edge-profile", "FILE", "by `nori profile`: what to expect of the device until calls were made"},
    {"--cloud-profile", "FILE", "the same of the server; may be repeated"},
    {"--raw-stays", NULL, "the input may not leave the device"},
    {"--features-stay", NULL, "nothing computed from it may either"},
    {"--atol", "X", "answers agree with the device's own within X (default 1e-3) ..."},
    {"--rtol", "X", "... plus X of its value (1e-3); more where features go in 8 bits"},
    {"--log", "FILE", "of what left the device, a line of JSON each: bytes, never content"},
    CLI_SESSION_OPTIONS,
    CLI_LOAD_OPTIONS,
    CLI_QUIET_OPTION,
    CLI_COMMON_OPTIONS,
};

/* A time or rate of an option, above 0; false and a message. */
static bool quantity(const route_job *j, const char *name, nori_quantity kind, double *out)
{
    const char *text = cli_value(j->args, name);
    nori_error err = {0};
    if (text && (nori_quantity_parse(text, kind, out, &err) != NORI_OK || *out <= 0)) {
        cli_usage(j->args, "%s %s%s%s", name, err.message[0] ? err.message : "must be above 0",
                  err.hint[0] ? ": " : "", err.hint);
        return false;
    }
    return true;
}

static int hedge(route_job *j)
{
    const char *text = cli_value(j->args, "--hedge");
    if (text && strcmp(text, "never") == 0) {
        j->options.hedge_s = -1;
        return EXIT_YES;
    }
    return quantity(j, "--hedge", NORI_QUANTITY_TIME, &j->options.hedge_s) ? EXIT_YES : EXIT_USAGE;
}

static int only(route_job *j)
{
    static const char *const words[NORI_PLACES] = {"edge", "cloud", "split"};
    const char *text = cli_value(j->args, "--only");
    bool known = !text;
    for (int i = 0; i < NORI_PLACES && text; i++) {
        j->options.policy.possible[i] = strcmp(text, words[i]) == 0;
        known = known || j->options.policy.possible[i];
    }
    return known ? EXIT_YES : cli_usage(j->args, "--only \"%s\": edge, cloud or split was expected", text);
}

static bool tolerance(const route_job *j, const char *name, double *out)
{
    const char *text = cli_value(j->args, name);
    char *end = NULL;
    *out = text ? strtod(text, &end) : 1e-3;
    if (text && (end == text || *end || !(*out >= 0 && *out < 1e30))) {
        cli_usage(j->args, "%s \"%s\": a number of at least 0 was expected", name, text);
        return false;
    }
    return true;
}

static int numbers(route_job *j)
{
    const char *seconds = cli_value(j->args, "--seconds"), *p = cli_value(j->args, "--percentile");
    char *end;
    j->seconds = seconds ? strtod(seconds, &end) : 0;
    if (seconds && (end == seconds || *end || !(j->seconds > 0 && j->seconds < 1e7))) {
        return cli_usage(j->args, "--seconds \"%s\": a number above 0 was expected", seconds);
    }
    j->options.policy.percentile = p ? strtod(p, &end) / 100 : 0.99;
    if (p && (end == p || *end || !(j->options.policy.percentile > 0 && j->options.policy.percentile < 1))) {
        return cli_usage(j->args, "--percentile \"%s\": a number between 0 and 100 was expected", p);
    }
    if (seconds && cli_has(j->args, "--calls")) {
        return cli_usage(j->args, "--calls and --seconds both say when to end: one of them was expected");
    }
    if (!tolerance(j, "--atol", &j->atol) || !tolerance(j, "--rtol", &j->rtol) ||
        !cli_number(j->args, "--calls", 1, 10000000, 100, &j->calls) ||
        !cli_number(j->args, "--callers", 1, 256, 1, &j->callers) ||
        !quantity(j, "--rate", NORI_QUANTITY_RATE, &j->rate) ||
        !quantity(j, "--deadline", NORI_QUANTITY_TIME, &j->deadline)) {
        return EXIT_USAGE;
    }
    j->options.policy.deadline = j->deadline;
    return EXIT_YES;
}

static int read_options(route_job *j)
{
    cli_args *args = j->args;
    if (args->count < 1) {
        return cli_usage(args, "a model was expected");
    }
    nori_route_options_default(&j->options);
    j->second = cli_value(args, "--second");
    if ((j->second != NULL) != cli_has(args, "--first")) {
        return cli_usage(args, "--first FILE and --second NAME go together: the two parts of a split");
    }
    if (!cli_has(args, "--cloud") && (j->second || cli_has(args, "--token-file") || cli_has(args, "--ca") ||
                                      cli_has(args, "--cloud-model") || cli_has(args, "--timeout"))) {
        return cli_usage(args, "--cloud URL says which server");
    }
    j->options.raw_stays = cli_has(args, "--raw-stays") || cli_has(args, "--features-stay");
    j->options.features_stay = cli_has(args, "--features-stay");
    int code = numbers(j);
    code = code == EXIT_YES ? hedge(j) : code;
    return code == EXIT_YES ? only(j) : code;
}

static int run(cli_args *args)
{
    static route_job j;
    j = (route_job){.args = args, .place = {.args = args}, .refusal_lock = PTHREAD_MUTEX_INITIALIZER};
    int code = read_options(&j);
    code = code == EXIT_YES ? route_prepare(&j) : code;
    code = code == EXIT_YES ? route_calls(&j) : code;
    code = code == EXIT_YES ? route_report(&j) : code;
    route_close(&j);
    return code;
}

const cli_verb cli_route = {
    "route", "place", "MODEL [FILE ...] --cloud URL",
    "make calls, each on this device or on a server, by what calls have been taking", options, run,
    "  nori route model.onnx --cloud http://server:8000 --rate 10/s --deadline 100ms\n"
    "  nori route model.onnx --cloud http://server:8000 --edge-profile edge.json --cloud-profile cloud.json\n"
    "  nori route model.onnx --cloud http://server:8000 --first a.onnx --second b --log left.jsonl\n"
    "  nori route model.onnx --cloud http://server:8000 --raw-stays --features-stay\n"};

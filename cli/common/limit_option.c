/* limit_option.c: --limit NAME=N: what models may cost, set in the environment before they are loaded. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "nori/limits.h"
#include "nori/place.h"

typedef enum unit { COUNT, BYTES, TIME } unit;

static const struct {
    const char *name;
    size_t offset; /* of its field in nori_limits */
    unit unit;
} rows[] = {
    {"model", offsetof(nori_limits, model_bytes), BYTES},
    {"nodes", offsetof(nori_limits, nodes), COUNT},
    {"nesting", offsetof(nori_limits, nesting), COUNT},
    {"rank", offsetof(nori_limits, rank), COUNT},
    {"string", offsetof(nori_limits, string_bytes), BYTES},
    {"unfolded", offsetof(nori_limits, unfolded_bytes), BYTES},
    {"activations", offsetof(nori_limits, activation_bytes), BYTES},
    {"iterations", offsetof(nori_limits, iterations), COUNT},
    {"time", offsetof(nori_limits, run_ms), TIME},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static const char *name_at(const void *user, size_t i)
{
    (void)user;
    return i < ROWS ? rows[i].name : NULL;
}

/* "5s", "0.5s", "200ms", "200": milliseconds, of which a part counts as a whole one. */
static bool time_of(const char *text, uint64_t *out)
{
    char *end;
    double ms = strtod(text, &end), seconds;
    nori_error err;
    if (end != text && *end) {
        ms = nori_quantity_parse(text, NORI_QUANTITY_TIME, &seconds, &err) == NORI_OK ? seconds * 1e3 : 0;
    }
    if (end == text || !(ms > 0) || ms > 1e15) {
        return false;
    }
    *out = (uint64_t)ms;
    *out += ms - (double)*out > 1e-9 * ms; /* 1e-9: what 0.2 s in ms is off by */
    return true;
}

static bool count_of(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return *text >= '1' && *text <= '9' && *end == 0 && errno == 0;
}

static int take(const cli_args *args, const char *given, nori_limits *limits)
{
    const char *equals = strchr(given, '=');
    size_t n = equals ? (size_t)(equals - given) : strlen(given), i = 0;
    while (i < ROWS && (strlen(rows[i].name) != n || strncmp(rows[i].name, given, n) != 0)) {
        i++;
    }
    if (i == ROWS) {
        const char *near = cli_near(given, n, name_at, NULL);
        return cli_usage(args, "--limit %.200s: there is no such limit%s%s; there are model, nodes, "
                               "nesting, rank, string, unfolded, activations, iterations, time",
                         given, near ? "; did you mean " : "", near ? near : "");
    }
    static const char *const wanted[] = {"a whole number from 1 on", "bytes, as 64M or 64Mi",
                                         "a time, as 5s or 0.5ms"};
    const char *text = equals ? equals + 1 : "";
    uint64_t v = 0;
    bool ok = strcmp(text, "none") == 0 || (rows[i].unit == COUNT   ? count_of(text, &v)
                                            : rows[i].unit == BYTES ? cli_size_of(text, &v)
                                                                    : time_of(text, &v));
    if (!ok) {
        return cli_usage(args, "--limit %.200s: %s was expected behind %s=, or none", given,
                         wanted[rows[i].unit], rows[i].name);
    }
    memcpy((char *)limits + rows[i].offset, &v, sizeof(v));
    return EXIT_YES;
}

int cli_set_limits(const cli_args *args, nori_env *env)
{
    nori_limits limits = {.size = sizeof(limits)};
    nori_error err = {0};
    const char *given;
    nori_env_limits(env, &limits);
    for (int i = 0; (given = cli_nth(args, "--limit", i)) != NULL; i++) {
        int code = take(args, given, &limits);
        if (code != EXIT_YES) {
            return code;
        }
    }
    return nori_env_set_limits(env, &limits, &err) == NORI_OK ? EXIT_YES : cli_fail(args, &err);
}

/* cli.h: what the verbs share: options, output, exit codes. The command uses the public headers. */
#ifndef NORI_CLI_H
#define NORI_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include "nori/nori.h"
#include "nori/provider.h"
#include "nori/tools.h"

enum {
    EXIT_YES = 0,
    EXIT_NO = 1,          /* a negative answer: does not agree, has findings */
    EXIT_USAGE = 2,
    EXIT_BAD = 3,         /* bad model or data */
    EXIT_UNSUPPORTED = 4  /* not supported or not available here */
};

/* One option of a verb. value NULL: a switch. Repeated ones are kept in order. */
typedef struct cli_option {
    const char *name;  /* "--threads" */
    const char *value; /* "N", or NULL */
    const char *help;
} cli_option;

struct cli_args;
typedef struct cli_verb {
    const char *name, *group, *arguments, *summary;
    const cli_option *options; /* beside the common ones; name NULL ends */
    int (*run)(struct cli_args *args);
    const char *examples;
} cli_verb;

#define CLI_MAX_OPTIONS 256
typedef struct cli_args {
    const cli_verb *verb;
    const char *positional[64];
    int count;
    struct {
        const cli_option *option;
        const char *value;
    } given[CLI_MAX_OPTIONS];
    int n_given;
    bool json, quiet;
} cli_args;

/* Last value of an option, or NULL; the nth (0 first) occurrence. */
const char *cli_value(const cli_args *args, const char *name);
const char *cli_nth(const cli_args *args, const char *name, int n);
bool cli_has(const cli_args *args, const char *name);
/* Number of an option; false (and a message) when it is not one in [low, high]. */
bool cli_number(const cli_args *args, const char *name, long low, long high, long otherwise,
                long *out);

/* Prints an error (text or JSON as asked) and gives the exit code that fits. */
int cli_fail(const cli_args *args, const nori_error *err);
int cli_usage(const cli_args *args, const char *fmt, ...);
/* Loads args->positional[0]; warnings go to standard error. */
int cli_load(const cli_args *args, nori_model **model);
/* Session by the common options. profile: 1 to time nodes. */
int cli_session(const cli_args *args, const nori_model *model, int profile,
                nori_session **session);
bool cli_colour(FILE *f); /* a terminal, and NO_COLOR is not set */

void cli_json_text(FILE *f, const char *text); /* quoted and escaped */
void cli_bytes(uint64_t bytes, char *out, size_t size); /* "4.2 MB" */
void cli_shape(const nori_value_info *info, char *out, size_t size); /* "float32[batch,3]" */
void cli_tensor_shape(const nori_tensor *t, char *out, size_t size);

extern const cli_verb cli_inspect, cli_check, cli_run, cli_bench, cli_caps, cli_doctor;

#endif

/* cli.h: what the verbs share: options, output, exit codes. The command uses the public headers. */
#ifndef NORI_CLI_H
#define NORI_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include "json.h"
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

/* Options that several verbs take. A verb's table names all it takes: what means nothing to it is
 * refused, and help and completion show what there is. */
#define CLI_END {NULL, NULL, NULL}
#define CLI_COMMON_OPTIONS                                                                       \
    {"--json", NULL, "machine-readable output"}, {"--help", NULL, "this text"}, CLI_END
#define CLI_QUIET_OPTION {"--quiet", NULL, "only the result and errors"}
#define CLI_OPS_OPTION                                                                           \
    {"--ops-library", "FILE", "shared object with operators of your own; may be repeated"}
#define CLI_LIMIT_OPTION                                                                         \
    {"--limit", "NAME=N", "bound what models may cost: nodes, iterations, time ... (docs/limits.md)"}
#define CLI_LOAD_OPTIONS                                                                         \
    CLI_OPS_OPTION, CLI_LIMIT_OPTION,                                                            \
    {"--seal-key", "FILE", "key of a sealed model"},                                             \
    {"--strict", NULL, "unknown fields and newer IR versions are errors"},                       \
    {"--allow-outside", NULL, "external data may lie outside the model's folder"}
#define CLI_DIM_OPTION {"--dim", "NAME=N", "fix a named dimension; may be repeated"}
#define CLI_PROVIDER_OPTIONS                                                                     \
    {"--provider", "LIST", "execution providers, first choice first (default cpu)"},             \
    {"--fallback", NULL, "go on without a provider that cannot be had"},                         \
    {"--level", "0|1|2", "optimization: none, standard, provider's own (default 2)"}
#define CLI_SESSION_OPTIONS                                                                      \
    CLI_PROVIDER_OPTIONS, CLI_DIM_OPTION,                                                        \
    {"--threads", "N", "threads for one run (default: what the machine allows)"},                \
    {"--memory", "SIZE", "most a run may hold, as 64M or 64MiB; more is refused (kernels of nori's own)"},  \
    {"--cache", "DIR", "keep compiled parts and packed weights in this folder, for the next time"}

struct cli_args;
typedef struct cli_verb {
    const char *name, *group, *arguments, *summary;
    const cli_option *options; /* ends with CLI_END */
    int (*run)(struct cli_args *args);
    const char *examples; /* lines, or NULL */
} cli_verb;

#define CLI_MAX_OPTIONS 256
#define CLI_CPU_LEVELS "base|avx2|avx512|amx" /* what NORI_CPU may say */
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
    nori_env *env; /* made by cli_load */
    bool cache_told; /* a provider said what it found in the folder of --cache */
    bool guessed;  /* free dimensions of random inputs were taken as 1 */
    bool guessed_integers; /* integer inputs were random */
} cli_args;

/* The verbs, in the order of help; NULL ends (main.c). */
extern const cli_verb *const cli_verbs[];

/* ---- options ---- */

/* Last value of an option, or NULL; the nth (0 first) occurrence. */
const char *cli_value(const cli_args *args, const char *name);
const char *cli_nth(const cli_args *args, const char *name, int n);
bool cli_has(const cli_args *args, const char *name);
/* Number of an option; false (and a message) when it is not one in [low, high]. */
bool cli_number(const cli_args *args, const char *name, long low, long high, long otherwise,
                long *out);
/* What --limit says becomes the environment's: 0 or an exit code (limit_option.c). */
int cli_set_limits(const cli_args *args, nori_env *env);
bool cli_size_of(const char *text, uint64_t *out); /* the value alone; false: none */
/* Bytes: "64M", "1.5GB", "64Mi", "4096"; k M G T are powers of 1000, as sizes are printed, Ki Mi Gi Ti of
 * 1024. 0 when it is not given. */
bool cli_size(const cli_args *args, const char *name, uint64_t *out);

/* ---- answers ---- */

/* Prints an error (text or JSON as asked) and gives the exit code that fits. */
int cli_fail(const cli_args *args, const nori_error *err);
/* The same from a status and a text of the command's own. */
int cli_fail_text(const cli_args *args, nori_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int cli_usage(const cli_args *args, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_warn(const cli_args *args, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool cli_colour(FILE *f); /* a terminal, and NO_COLOR is not set */
/* Progress on standard error, when that is a terminal; done: wipes the line. */
void cli_progress(const cli_args *args, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void cli_progress_done(const cli_args *args);

/* A file made in memory first: it appears whole or not at all. */
typedef struct cli_draft {
    FILE *f;
    char *text;
    size_t size;
} cli_draft;
/* False: out of memory, and a message was given. */
bool cli_draft_begin(const cli_args *args, cli_draft *d);
/* Writes it where ok, and frees it in any case. 0 or an exit code; not ok is out of memory. */
int cli_draft_finish(const cli_args *args, cli_draft *d, const char *path, bool ok);

/* Looks at the files that options ask for before the work: 0, or an exit code where one cannot be
 * written to, would be written over while it is read, or is asked for twice. */
int cli_check_targets(const cli_args *args);

/* Opens a regular file, or also a pipe, for reading; NULL and why. */
FILE *cli_open(const char *path, bool pipe, nori_error *err);

/* ---- models ---- */

/* Limits and libraries of operators of an environment (NULL: the default one). */
int cli_load_ops(const cli_args *args, nori_env *env);
/* What CLI_LOAD_OPTIONS say (those the verb has). */
void cli_load_options(const cli_args *args, nori_load_options *options);
/* Makes args->env by what the options say; once. */
int cli_environment(cli_args *args);
/* Loads args->positional[0]; warnings go to standard error. */
int cli_load(cli_args *args, nori_model **model);
/* What CLI_SESSION_OPTIONS say (those the verb has); the lists live until the next call. */
bool cli_session_options(const cli_args *args, nori_session_options *options);
/* Says of --cache and --memory where they did not reach; cli_session does it of its session. */
void cli_session_notes(const cli_args *args, const nori_session *session);
/* Session by these options. profile: 1 to time nodes. */
int cli_session(const cli_args *args, const nori_model *model, int profile,
                nori_session **session);

/* ---- words ---- */

void cli_bytes_text(uint64_t bytes, char *out, size_t size);  /* "4.2 MB" */
void cli_count_text(uint64_t count, char *out, size_t size);  /* "4.2 M" */
void cli_shape(const nori_value_info *info, char *out, size_t size); /* "float32[batch,3]" */
void cli_tensor_shape(const nori_tensor *t, char *out, size_t size);
bool cli_is_integer(nori_type type);
/* One element of a tensor as JSON: number (null where it is not finite), bool or text. */
void cli_json_element(cli_json *w, const char *key, const nori_tensor *t, int64_t index);
/* What is no tensor (a sequence, map, optional) as JSON: group_json.c. */
void cli_json_group(cli_json *w, const char *key, const nori_tensor *t);
const char *cli_kind_name(nori_kind kind);
/* The wider of a column's width and what a text takes. Long names are not cut, as they are what other
 * commands want to be told; but one of them does not push the rest off the screen. */
int cli_widen(int width, const char *text);
/* The word of a list (NULL ends it) that a mistyped one may have been meant for, or NULL. */
const char *cli_near(const char *word, size_t size, const char *(*at)(const void *user, size_t i),
                     const void *user);

/* ---- help.c ---- */

void cli_overview(FILE *f);
void cli_verb_help(FILE *f, const cli_verb *verb);
const cli_verb *cli_find_verb(const char *name);
bool cli_ends_with(const char *text, const char *end);
const char *cli_near_verb(const char *name);
const char *cli_near_option(const cli_verb *verb, const char *name, size_t size);

#define VERB(name) extern const cli_verb cli_##name;
#include "verbs.h"
#undef VERB

#endif

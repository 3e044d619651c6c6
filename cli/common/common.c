/* common.c: what verbs share: options, errors, loading, sessions. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "key_file.h"

const char *cli_nth(const cli_args *args, const char *name, int n)
{
    for (int i = 0; i < args->n_given; i++) {
        if (strcmp(args->given[i].option->name, name) == 0 && n-- == 0) {
            return args->given[i].value ? args->given[i].value : "";
        }
    }
    return NULL;
}

const char *cli_value(const cli_args *args, const char *name)
{
    const char *last = NULL;
    for (int i = 0; i < args->n_given; i++) {
        if (strcmp(args->given[i].option->name, name) == 0) {
            last = args->given[i].value;
        }
    }
    return last;
}

bool cli_has(const cli_args *args, const char *name)
{
    return cli_nth(args, name, 0) != NULL;
}

int cli_usage(const cli_args *args, const char *fmt, ...)
{
    va_list list;
    fprintf(stderr, "nori %s: ", args->verb->name);
    va_start(list, fmt);
    vfprintf(stderr, fmt, list);
    va_end(list);
    fprintf(stderr, "\nusage: nori %s%s%s\n`nori %s --help` tells more\n", args->verb->name,
            args->verb->arguments[0] ? " " : "", args->verb->arguments, args->verb->name);
    return EXIT_USAGE;
}

bool cli_number(const cli_args *args, const char *name, long low, long high, long otherwise,
                long *out)
{
    const char *text = cli_value(args, name);
    *out = otherwise;
    if (!text) {
        return true;
    }
    char *end;
    errno = 0;
    *out = strtol(text, &end, 10);
    if (*text == 0 || *end || errno || *out < low || *out > high) {
        cli_usage(args, "%s \"%s\": a number from %ld to %ld was expected", name, text, low, high);
        return false;
    }
    return true;
}

bool cli_size_of(const char *text, uint64_t *out)
{
    char *end;
    double v = strtod(text, &end);
    if (end != text && *end) {
        static const char units[] = "kMGT"; /* of 1000 each, as sizes are printed; with i, of 1024 */
        const char *unit = strchr(units, *end == 'K' ? 'k' : *end);
        bool binary = unit && end[1] == 'i';
        for (const char *u = units; unit && u <= unit; u++) {
            v *= binary ? 1024 : 1000;
        }
        end += unit ? 1 + binary : 0;
        end += *end == 'B';
    }
    bool ok = end != text && !*end && v >= 1 && v <= 0x1p62;
    *out = ok ? (uint64_t)v : 0;
    return ok;
}

bool cli_size(const cli_args *args, const char *name, uint64_t *out)
{
    const char *text = cli_value(args, name);
    *out = 0;
    if (text && !cli_size_of(text, out)) {
        cli_usage(args, "%s \"%s\": bytes were expected, as 64M (of 1000) or 64Mi (of 1024)", name, text);
        return false;
    }
    return true;
}

/* ---- answers ---- */

static int code_of(nori_status s)
{
    switch (s) {
    case NORI_ERROR_UNSUPPORTED:
    case NORI_ERROR_UNAVAILABLE:
    case NORI_ERROR_LIMIT:
    case NORI_ERROR_MEMORY:
        return EXIT_UNSUPPORTED;
    case NORI_ERROR_ARGUMENT:
        return EXIT_USAGE;
    default:
        return EXIT_BAD;
    }
}

static void fail_json(const nori_error *err)
{
    cli_json j;
    cli_json_begin(&j, stdout);
    cli_json_object(&j, "error");
    cli_json_string(&j, "status", nori_status_text(err->status));
    cli_json_string(&j, "message", err->message);
    cli_json_string(&j, "where", err->where);
    if (err->has_offset) {
        cli_json_uint(&j, "offset", err->offset);
    }
    cli_json_string(&j, "hint", err->hint);
    cli_json_finish(&j);
}

int cli_fail(const cli_args *args, const nori_error *err)
{
    bool colour = cli_colour(stderr);
    if (args->json) {
        fail_json(err);
    }
    fflush(stdout); /* what was said before stays before */
    fprintf(stderr, "%snori: error:%s ", colour ? "\033[31m" : "", colour ? "\033[0m" : "");
    if (err->where[0]) {
        fprintf(stderr, "%s: ", err->where);
    }
    fprintf(stderr, "%s", err->message);
    if (err->has_offset) {
        fprintf(stderr, " (at byte %llu)", (unsigned long long)err->offset);
    }
    fprintf(stderr, "\n");
    if (err->hint[0]) {
        fprintf(stderr, "  hint: %s\n", err->hint);
    } else if (err->status == NORI_ERROR_MODEL || err->status == NORI_ERROR_DATA) {
        if (args->guessed) {
            fprintf(stderr, "  hint: free dimensions of random inputs were taken as 1; "
                            "--dim NAME=N and --shape say other sizes\n");
        }
        if (args->guessed_integers) {
            fprintf(stderr, "  hint: integer inputs were random, 0 to 9, which may be no index or token "
                            "of this model; --input NAME=FILE gives real ones\n");
        }
    }
    return code_of(err->status);
}

int cli_fail_text(const cli_args *args, nori_status status, const char *fmt, ...)
{
    nori_error err = {.status = status};
    va_list list;
    va_start(list, fmt);
    vsnprintf(err.message, sizeof(err.message), fmt, list);
    va_end(list);
    return cli_fail(args, &err);
}

void cli_warn(const cli_args *args, const char *fmt, ...)
{
    bool colour = cli_colour(stderr);
    if (args->quiet) {
        return;
    }
    va_list list;
    fprintf(stderr, "%snori: warning:%s ", colour ? "\033[33m" : "", colour ? "\033[0m" : "");
    va_start(list, fmt);
    vfprintf(stderr, fmt, list);
    va_end(list);
    fprintf(stderr, "\n");
}

bool cli_colour(FILE *f)
{
    const char *no = getenv("NO_COLOR");
    return isatty(fileno(f)) && !(no && no[0]);
}

void cli_progress(const cli_args *args, const char *fmt, ...)
{
    if (args->quiet || !isatty(STDERR_FILENO)) {
        return;
    }
    va_list list;
    fprintf(stderr, "\r\033[K");
    va_start(list, fmt);
    vfprintf(stderr, fmt, list);
    va_end(list);
    fflush(stderr);
}

void cli_progress_done(const cli_args *args)
{
    if (!args->quiet && isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r\033[K");
    }
}

bool cli_draft_begin(const cli_args *args, cli_draft *d)
{
    *d = (cli_draft){0};
    d->f = open_memstream(&d->text, &d->size);
    if (!d->f) {
        cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
    }
    return d->f != NULL;
}

int cli_draft_finish(const cli_args *args, cli_draft *d, const char *path, bool ok)
{
    nori_error err = {0};
    ok = ok && ferror(d->f) == 0;
    ok = fclose(d->f) == 0 && ok;
    int code = !ok ? cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory")
               : nori_file_write(path, d->text, d->size, &err) == NORI_OK ? EXIT_YES
                                                                          : cli_fail(args, &err);
    free(d->text);
    return code;
}

FILE *cli_open(const char *path, bool pipe, nori_error *err)
{
    struct stat info;
    FILE *f = NULL;
    err->status = NORI_ERROR_IO;
    /* Looked at before it is opened: opening a pipe that nobody writes to would wait for ever. */
    bool there = stat(path, &info) == 0;
    if (there && S_ISDIR(info.st_mode)) {
        snprintf(err->message, sizeof(err->message), "%s is a folder, a file was expected", path);
    } else if (there && !S_ISREG(info.st_mode) && !(pipe && S_ISFIFO(info.st_mode))) {
        snprintf(err->message, sizeof(err->message), "%s is not a regular file", path);
    } else if (!there || !(f = fopen(path, "rb"))) {
        snprintf(err->message, sizeof(err->message), "cannot open %s: %s", path, strerror(errno));
    }
    return f;
}

/* ---- models ---- */

static void log_line(void *user, nori_log_level level, const char *text)
{
    if (level == NORI_LOG_WARNING) {
        cli_warn(user, "%s", text);
    }
}

int cli_load_ops(const cli_args *args, nori_env *env)
{
    const char *path;
    int code = cli_set_limits(args, env);
    if (code != EXIT_YES) {
        return code;
    }
    for (int i = 0; (path = cli_nth(args, "--ops-library", i)) != NULL; i++) {
        nori_error err = {0};
        if (nori_env_load_ops(env, path, &err) != NORI_OK) {
            return cli_fail(args, &err);
        }
    }
    return EXIT_YES;
}

void cli_load_options(const cli_args *args, nori_load_options *o)
{
    nori_load_options_default(o);
    o->strict = cli_has(args, "--strict");
    o->allow_outside = cli_has(args, "--allow-outside");
}

/* A level that is misspelt would test nothing. */
static void warn_of_level(const cli_args *args)
{
    const char *asked = getenv("NORI_CPU");
    for (const char *at = CLI_CPU_LEVELS; asked && *at; at += *at == '|') {
        size_t n = strcspn(at, "|");
        if (strlen(asked) == n && strncmp(at, asked, n) == 0) {
            return;
        }
        at += n;
    }
    if (asked && asked[0]) {
        cli_warn(args, "NORI_CPU=%.40s is none of %s: level %s is used", asked, CLI_CPU_LEVELS,
                 nori_cpu_level());
    }
}

#define LARGE_FILE (100u << 20)

int cli_environment(cli_args *args)
{
    nori_error err = {0};
    nori_env_options e;
    long threads;
    if (!cli_number(args, "--threads", 1, 256, 0, &threads)) {
        return EXIT_USAGE;
    }
    if (args->env) {
        return EXIT_YES;
    }
    nori_env_options_default(&e);
    e.threads = (int)threads;
    e.log = log_line;
    e.log_user = args;
    warn_of_level(args);
    return nori_env_create(&e, &args->env, &err) == NORI_OK ? cli_load_ops(args, args->env)
                                                            : cli_fail(args, &err);
}

int cli_load(cli_args *args, nori_model **model)
{
    nori_error err = {0};
    nori_load_options o;
    if (args->count < 1) {
        return cli_usage(args, "a model file was expected");
    }
    int made = cli_environment(args);
    if (made != EXIT_YES) {
        return made;
    }
    cli_load_options(args, &o);
    struct stat info;
    if (stat(args->positional[0], &info) == 0 && info.st_size > LARGE_FILE) {
        cli_progress(args, "reading %s", args->positional[0]);
    }
    nori_status status = cli_open_model(args, args->env, args->positional[0], &o, model, &err);
    cli_progress_done(args);
    if (status != NORI_OK) {
        int code = cli_fail(args, &err);
        return status == NORI_ERROR_LIMIT ? EXIT_BAD : code; /* no sane file is past the limits */
    }
    return EXIT_YES; /* its warnings came by the log */
}

typedef struct dim_list {
    const char *names[CLI_MAX_OPTIONS];
    int64_t values[CLI_MAX_OPTIONS];
    char text[CLI_MAX_OPTIONS][128];
} dim_list;

/* The --dim options; 0 or an exit code. */
static int read_dims(const cli_args *args, dim_list *list, size_t *count)
{
    const char *dim;
    for (*count = 0; (dim = cli_nth(args, "--dim", (int)*count)) != NULL; ++*count) {
        const char *equals = strchr(dim, '=');
        char *end = NULL, *text = list->text[*count];
        size_t n = equals ? (size_t)(equals - dim) : 0;
        errno = 0;
        long long v = equals ? strtoll(equals + 1, &end, 10) : 0;
        if (!equals || n == 0 || n >= sizeof(list->text[0]) || equals[1] == 0 || *end || v < 0 ||
            errno) {
            return cli_usage(args, "--dim %s: NAME=N was expected, N a whole number from 0 on",
                             dim);
        }
        memcpy(text, dim, n);
        text[n] = 0;
        for (size_t i = 0; i < *count; i++) {
            if (strcmp(list->names[i], text) == 0) {
                return cli_usage(args, "--dim %s: this dimension was given before, as %lld", dim,
                                 (long long)list->values[i]);
            }
        }
        list->names[*count] = text;
        list->values[*count] = v;
    }
    return EXIT_YES;
}

/* What was found in the cache, or why not, is told in any case: it decides between milliseconds and
 * minutes. */
static void session_progress(void *user, const nori_progress *p)
{
    cli_args *args = user;
    bool whose = p->provider[0] != 0;
    if (strcmp(p->phase, "cache") == 0 && !cli_has(args, "--cache")) {
        return; /* a plan's: used, or why not as a warning by the log */
    }
    if (strcmp(p->phase, "cache") == 0) {
        args->cache_told = true;
        cli_progress_done(args);
        if (!args->quiet) {
            fprintf(stderr, "nori: cache: %s: %s\n", p->provider, p->text);
        }
    } else if (p->total == 0 || p->done < p->total) {
        cli_progress(args, "preparing: %s%s%s, %zu of %zu%s%s", p->phase, whose ? " for " : "",
                     p->provider, p->done, p->total, p->text[0] ? ": " : "", p->text);
    } else if (strcmp(p->phase, "plan") == 0) {
        cli_progress_done(args);
    }
}

bool cli_session_options(const cli_args *args, nori_session_options *o)
{
    static dim_list dims;
    long threads, level;
    nori_session_options_default(o);
    if (!cli_number(args, "--threads", 1, 256, 0, &threads) ||
        !cli_number(args, "--level", 0, 2, 2, &level) ||
        !cli_size(args, "--memory", &o->max_bytes) ||
        read_dims(args, &dims, &o->dim_count) != EXIT_YES) {
        return false;
    }
    o->threads = (int)threads;
    o->level = (int)level;
    o->providers = cli_value(args, "--provider");
    o->fallback = cli_has(args, "--fallback");
    o->progress = session_progress;
    o->progress_user = (void *)(uintptr_t)args;
    o->cache_dir = cli_value(args, "--cache");
    struct stat info;
    if (o->cache_dir && (stat(o->cache_dir, &info) != 0 || !S_ISDIR(info.st_mode))) {
        cli_usage(args, "--cache %s: a folder that exists was expected", o->cache_dir);
        return false;
    }
    o->dim_names = dims.names;
    o->dim_values = dims.values;
    return true;
}

void cli_session_notes(const cli_args *args, const nori_session *session)
{
    const char *label, *engine;
    if (cli_has(args, "--cache") && !args->cache_told && !args->quiet) {
        fprintf(stderr, "nori: cache: no provider had anything to keep\n");
    }
    for (size_t i = 0; cli_has(args, "--memory") && nori_session_provider(session, i, &label, &engine);
         i++) {
        if (engine[0]) { /* an engine of its own, which takes memory by itself */
            cli_warn(args, "--memory does not bound what %s takes", label);
        }
    }
}

int cli_session(const cli_args *args, const nori_model *model, int profile,
                nori_session **session)
{
    nori_session_options o;
    nori_error err = {0};
    if (!cli_session_options(args, &o)) {
        return EXIT_USAGE;
    }
    o.profile = profile;
    if (nori_session_create(model, &o, session, &err) != NORI_OK) {
        if (!err.where[0]) {
            snprintf(err.where, sizeof(err.where), "%s", args->positional[0]);
        }
        return cli_fail(args, &err);
    }
    cli_session_notes(args, *session);
    return EXIT_YES;
}

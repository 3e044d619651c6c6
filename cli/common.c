/* common.c: what verbs share: options, loading, sessions, errors, small formatting. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

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
    fprintf(stderr, "\nusage: nori %s %s\n`nori %s --help` tells more\n", args->verb->name,
            args->verb->arguments, args->verb->name);
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

static int code_of(nori_status s)
{
    switch (s) {
    case NORI_ERROR_UNSUPPORTED:
    case NORI_ERROR_UNAVAILABLE:
        return EXIT_UNSUPPORTED;
    case NORI_ERROR_ARGUMENT:
        return EXIT_USAGE;
    default:
        return EXIT_BAD;
    }
}

int cli_fail(const cli_args *args, const nori_error *err)
{
    if (args->json) {
        printf("{\"error\": {\"status\": ");
        cli_json_text(stdout, nori_status_text(err->status));
        printf(", \"message\": ");
        cli_json_text(stdout, err->message);
        printf(", \"where\": ");
        cli_json_text(stdout, err->where);
        if (err->has_offset) {
            printf(", \"offset\": %llu", (unsigned long long)err->offset);
        }
        printf(", \"hint\": ");
        cli_json_text(stdout, err->hint);
        printf("}}\n");
    }
    bool colour = cli_colour(stderr);
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
    }
    return code_of(err->status);
}

int cli_load(const cli_args *args, nori_model **model)
{
    if (args->count < 1) {
        return cli_usage(args, "a model file was expected");
    }
    nori_error err = {0};
    nori_load_options o;
    nori_load_options_default(&o);
    o.strict = cli_has(args, "--strict");
    o.allow_outside = cli_has(args, "--allow-outside");
    if (nori_model_load(NULL, args->positional[0], &o, model, &err) != NORI_OK) {
        return cli_fail(args, &err);
    }
    for (size_t i = 0; !args->quiet && nori_model_warning(*model, i); i++) {
        fprintf(stderr, "nori: warning: %s\n", nori_model_warning(*model, i));
    }
    return EXIT_YES;
}

int cli_session(const cli_args *args, const nori_model *model, int profile,
                nori_session **session)
{
    static const char *names[CLI_MAX_OPTIONS];
    static int64_t values[CLI_MAX_OPTIONS];
    static char text[CLI_MAX_OPTIONS][128];
    nori_session_options o;
    nori_session_options_default(&o);
    long threads, level;
    if (!cli_number(args, "--threads", 1, 256, 0, &threads) ||
        !cli_number(args, "--level", 0, 2, 2, &level)) {
        return EXIT_USAGE;
    }
    o.threads = (int)threads;
    o.level = (int)level;
    o.profile = profile;
    o.providers = cli_value(args, "--provider");
    o.fallback = cli_has(args, "--fallback");
    const char *dim;
    while ((dim = cli_nth(args, "--dim", (int)o.dim_count)) != NULL) {
        const char *equals = strchr(dim, '=');
        char *end = NULL;
        size_t n = equals ? (size_t)(equals - dim) : 0;
        long long v = equals ? strtoll(equals + 1, &end, 10) : 0;
        if (!equals || n == 0 || n >= sizeof(text[0]) || equals[1] == 0 || *end || v < 0) {
            return cli_usage(args, "--dim %s: NAME=N was expected", dim);
        }
        memcpy(text[o.dim_count], dim, n);
        text[o.dim_count][n] = 0;
        names[o.dim_count] = text[o.dim_count];
        values[o.dim_count++] = v;
    }
    o.dim_names = names;
    o.dim_values = values;
    nori_error err = {0};
    if (nori_session_create(model, &o, session, &err) != NORI_OK) {
        if (!err.where[0]) {
            snprintf(err.where, sizeof(err.where), "%s", args->positional[0]);
        }
        return cli_fail(args, &err);
    }
    return EXIT_YES;
}

void cli_json_text(FILE *f, const char *text)
{
    fputc('"', f);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\') {
            fprintf(f, "\\%c", *p);
        } else if (*p < 0x20) {
            fprintf(f, "\\u%04x", *p);
        } else {
            fputc(*p, f);
        }
    }
    fputc('"', f);
}

void cli_bytes(uint64_t bytes, char *out, size_t size)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double v = (double)bytes;
    int u = 0;
    while (v >= 1000 && u < 4) {
        v /= 1000;
        u++;
    }
    snprintf(out, size, u == 0 ? "%.0f %s" : v < 10 ? "%.2f %s" : "%.1f %s", v, units[u]);
}

static void finish_shape(char *out, size_t size, size_t used, int rank, const int64_t *dims,
                         const char *const *names)
{
    used += (size_t)snprintf(out + used, size - used, "[");
    for (int d = 0; d < rank && used + 1 < size; d++) {
        const char *comma = d ? "," : "";
        int n = dims[d] >= 0 ? snprintf(out + used, size - used, "%s%lld", comma, (long long)dims[d])
                             : snprintf(out + used, size - used, "%s%s", comma,
                                        names && names[d] ? names[d] : "?");
        used += n > 0 ? (size_t)n : 0;
    }
    if (used + 1 < size) {
        snprintf(out + used, size - used, "]");
    }
}

void cli_shape(const nori_value_info *info, char *out, size_t size)
{
    static const char *const kinds[] = {"unknown", "tensor", "sequence", "optional", "map", "sparse"};
    if (info->kind != NORI_KIND_TENSOR) {
        snprintf(out, size, "%s", kinds[info->kind]);
        return;
    }
    size_t used = (size_t)snprintf(out, size, "%s", nori_type_name(info->type));
    if (info->rank < 0) {
        snprintf(out + used, size - used, "[...]");
    } else {
        finish_shape(out, size, used, info->rank, info->dims, info->dim_names);
    }
}

void cli_tensor_shape(const nori_tensor *t, char *out, size_t size)
{
    if (nori_tensor_kind(t) != NORI_KIND_TENSOR) {
        snprintf(out, size, "group of %zu", nori_tensor_item_count(t));
        return;
    }
    size_t used = (size_t)snprintf(out, size, "%s", nori_type_name(nori_tensor_type(t)));
    finish_shape(out, size, used, nori_tensor_rank(t), nori_tensor_dims(t), NULL);
}

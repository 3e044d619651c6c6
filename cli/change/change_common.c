/* change_common.c: options and answers that the verbs that make models of models share. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"

/* ---- options ---- */

bool change_read_dims(const cli_args *args, const char *option, change_dims *dims)
{
    const char *spec;
    dims->count = 0;
    for (int i = 0; (spec = cli_nth(args, option, i)) != NULL; i++) {
        const char *equals = strrchr(spec, '=');
        char *end = NULL;
        errno = 0;
        long long size = equals ? strtoll(equals + 1, &end, 10) : -1;
        size_t n = equals ? (size_t)(equals - spec) : 0;
        bool number = equals && errno == 0 && end != equals + 1 && *end == 0 && size >= 0;
        if (!number || n == 0 || n >= sizeof(dims->text[0])) {
            cli_usage(args, "%s %s: NAME=N was expected", option, spec);
            return false;
        }
        if (dims->count == sizeof(dims->names) / sizeof(dims->names[0])) {
            cli_usage(args, "more than %zu of %s", dims->count, option);
            return false;
        }
        memcpy(dims->text[dims->count], spec, n);
        dims->text[dims->count][n] = 0;
        dims->names[dims->count] = dims->text[dims->count];
        dims->values[dims->count++] = size;
    }
    return true;
}

static void show_progress(void *user, const nori_progress *p)
{
    const cli_args *args = user;
    if (strcmp(p->phase, "write") == 0) {
        char done[32], total[32];
        if (p->total < ((size_t)64 << 20)) {
            return;
        }
        cli_bytes_text(p->done, done, sizeof(done));
        cli_bytes_text(p->total, total, sizeof(total));
        cli_progress(args, "writing %s: %s of %s", p->text, done, total);
    } else {
        cli_progress(args, "%s: %zu of %zu %s", p->phase, p->done, p->total, p->text);
    }
}

bool change_proof_options(cli_args *args, change_dims *dims, nori_proof_options *o)
{
    long seed, threads;
    nori_proof_options_default(o);
    if (!cli_number(args, "--seed", 0, 2147483647, 1, &seed) ||
        !cli_number(args, "--threads", 1, 256, 0, &threads) ||
        !change_read_dims(args, "--dim", dims)) {
        return false;
    }
    o->skip = cli_has(args, "--no-proof");
    o->seed = (uint64_t)seed;
    o->threads = (int)threads;
    o->dim_names = dims->names;
    o->dim_values = dims->values;
    o->dim_count = dims->count;
    o->progress = show_progress;
    o->progress_user = args;
    return true;
}

bool change_split_names(const cli_args *args, const char *list, change_names *names)
{
    size_t size = strlen(list) + 1, most = 1;
    for (const char *p = list; *p; p++) {
        most += *p == ',';
    }
    *names = (change_names){.items = malloc(most * sizeof(*names->items)), .text = malloc(size)};
    if (!names->items || !names->text) {
        change_free_names(names);
        cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
        return false;
    }
    memcpy(names->text, list, size);
    for (char *p = names->text; p;) {
        char *comma = strchr(p, ',');
        if (comma) {
            *comma = 0;
        }
        if (!*p) {
            change_free_names(names);
            cli_usage(args, "\"%s\" has an empty name: names separated by commas were expected", list);
            return false;
        }
        names->items[names->count++] = p;
        p = comma ? comma + 1 : NULL;
    }
    return true;
}

bool change_names_of(const cli_args *args, const char *option, change_names *names)
{
    size_t size = 1;
    const char *value;
    for (int i = 0; (value = cli_nth(args, option, i)) != NULL; i++) {
        size += strlen(value) + 1;
    }
    *names = (change_names){0};
    if (size == 1) {
        return true;
    }
    char *all = malloc(size);
    if (!all) {
        cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
        return false;
    }
    size_t used = 0;
    for (int i = 0; (value = cli_nth(args, option, i)) != NULL; i++) {
        size_t n = strlen(value);
        if (used > 0) {
            all[used++] = ',';
        }
        memcpy(all + used, value, n);
        used += n;
    }
    all[used] = 0;
    bool ok = change_split_names(args, all, names);
    free(all);
    return ok;
}

void change_free_names(change_names *names)
{
    free((void *)names->items);
    free(names->text);
    *names = (change_names){0};
}

/* ---- answers ---- */

int change_save(cli_args *args, const nori_model *model, const char *path,
                const nori_save_options *options)
{
    nori_save_options o;
    nori_error err = {0};
    nori_save_options_default(&o);
    o = options ? *options : o;
    o.progress = show_progress;
    o.progress_user = args;
    nori_status s = nori_model_save_as(model, path, &o, &err);
    cli_progress_done(args);
    return s == NORI_OK ? EXIT_YES : cli_fail(args, &err);
}

void change_print_proof(const nori_proof *p)
{
    if (!p->ran) {
        printf("proof       not run: %s\n", p->reason);
    } else if (p->equal) {
        printf("proof       %llu elements of the outputs are equal bit for bit\n",
               (unsigned long long)p->elements);
    } else {
        printf("proof       %s: %s\n", p->agrees ? "agrees within tolerance" : "DIFFERS", p->reason);
    }
}

void change_json_proof(cli_json *j, const nori_proof *p)
{
    cli_json_object(j, "proof");
    cli_json_bool(j, "ran", p->ran);
    if (p->ran) {
        cli_json_bool(j, "agrees", p->agrees);
        cli_json_bool(j, "equal", p->equal);
        cli_json_uint(j, "elements", p->elements);
        cli_json_number(j, "max_abs", p->max_abs, 9);
        cli_json_number(j, "before_ms", (double)p->before_ns / 1e6, 6);
        cli_json_number(j, "after_ms", (double)p->after_ns / 1e6, 6);
    }
    cli_json_string(j, "reason", p->reason);
    cli_json_end(j);
}

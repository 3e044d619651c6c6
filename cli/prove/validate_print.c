/* validate_print.c: agreements as tables and as JSON. */
#include "validate_print.h"

#include <math.h>
#include <stdlib.h>

#define SHOWN 20 /* layers in text; JSON has all */

/* ---- JSON ---- */

static void json_agreement(cli_json *j, const nori_agreement *a)
{
    cli_json_bool(j, "agrees", a->passes);
    cli_json_uint(j, "elements", a->elements);
    cli_json_uint(j, "beyond", a->beyond);
    cli_json_number(j, "max_abs", a->max_abs, 6);
    cli_json_number(j, "max_rel", a->max_rel, 6);
    cli_json_number(j, "rms", a->rms, 6);
    cli_json_number(j, "cosine", a->cosine, 9);
    cli_json_number(j, "sqnr_db", a->sqnr_db, 5); /* null: equal */
    cli_json_uint(j, "nan_got", a->nan_got);
    cli_json_uint(j, "nan_want", a->nan_want);
    cli_json_uint(j, "inf_got", a->inf_got);
    cli_json_uint(j, "inf_want", a->inf_want);
    if (a->rows > 0) {
        cli_json_uint(j, "rows", a->rows);
        cli_json_number(j, "top1", a->top1, 6);
        cli_json_number(j, "topk", a->topk, 6);
    }
    cli_json_string(j, "reason", a->reason);
}

/* ---- text ---- */

static void sqnr_text(const nori_agreement *a, char *out, size_t size)
{
    snprintf(out, size, isinf(a->sqnr_db) && a->sqnr_db > 0 ? "equal" : "%.1f dB", a->sqnr_db);
}

static void print_head(const char *what, int width)
{
    printf("%-*s %10s %10s %10s %9s %10s %12s\n", width, what, "max abs", "max rel", "rms", "cosine",
           "SQNR", "beyond");
}

static void print_row(const char *name, int width, const nori_agreement *a)
{
    char sqnr[32], beyond[48];
    sqnr_text(a, sqnr, sizeof(sqnr));
    snprintf(beyond, sizeof(beyond), "%llu/%llu", (unsigned long long)a->beyond,
             (unsigned long long)a->elements);
    printf("%-*s %10.3g %10.3g %10.3g %9.6f %10s %12s  %s%s\n", width, name, a->max_abs, a->max_rel,
           a->rms, a->cosine, sqnr, beyond, a->passes ? "ok" : "DISAGREES: ",
           a->passes         ? ""
           : a->reason[0]    ? a->reason
           : a->beyond       ? "beyond tolerance"
           : a->nan_got != a->nan_want ? "NaN"
                             : "SQNR");
}

bool validate_print_outputs(const cli_args *args, const nori_session *s, const validate_names *n,
                            const nori_agreement *rows, size_t count)
{
    bool all = true;
    int width = 28;
    for (size_t i = 0; i < count; i++) {
        all = all && rows[i].passes;
        width = cli_widen(width, nori_session_output(s, i)->name);
    }
    if (args->json) {
        cli_json j;
        cli_json_begin(&j, stdout);
        cli_json_bool(&j, "agree", all);
        cli_json_string(&j, "got", n->got);
        cli_json_string(&j, "want", n->want);
        cli_json_bool(&j, "random_inputs", n->random);
        cli_json_array(&j, "outputs");
        for (size_t i = 0; i < count; i++) {
            cli_json_object(&j, NULL);
            cli_json_string(&j, "name", nori_session_output(s, i)->name);
            json_agreement(&j, &rows[i]);
            cli_json_end(&j);
        }
        cli_json_finish(&j);
        return all;
    }
    if (!args->quiet) {
        const char *other = cli_value(args, "--against");
        printf("%s against %s%s%s, %llu %sinput%s\n", n->got, n->want, other ? " on " : "",
               other ? other : "", (unsigned long long)(count ? rows[0].pairs : 0),
               n->random ? "random " : "", count && rows[0].pairs == 1 ? "" : "s");
        print_head("output", width);
    }
    for (size_t i = 0; i < count && !args->quiet; i++) {
        const nori_agreement *a = &rows[i];
        print_row(nori_session_output(s, i)->name, width, a);
        if (a->rows > 0) {
            printf("  first class the same in %.1f %%, classes in common %.1f %%, of %llu rows\n",
                   100 * a->top1, 100 * a->topk, (unsigned long long)a->rows);
        }
        if (a->nan_got || a->nan_want || a->inf_got || a->inf_want) {
            printf("  NaN: %llu against %llu, infinities: %llu against %llu\n",
                   (unsigned long long)a->nan_got, (unsigned long long)a->nan_want,
                   (unsigned long long)a->inf_got, (unsigned long long)a->inf_want);
        }
    }
    printf("%s\n", all ? "agree" : "DISAGREE");
    return all;
}

bool validate_print_levels(const cli_args *args, const nori_level_row rows[2])
{
    bool all = rows[0].agreement.passes && rows[1].agreement.passes;
    if (args->json) {
        cli_json j;
        cli_json_begin(&j, stdout);
        cli_json_bool(&j, "agree", all);
        cli_json_array(&j, "levels");
        for (int i = 0; i < 2; i++) {
            cli_json_object(&j, NULL);
            cli_json_int(&j, "level", rows[i].level);
            cli_json_string(&j, "output", rows[i].output ? rows[i].output : "");
            cli_json_string(&j, "culprit", rows[i].culprit);
            json_agreement(&j, &rows[i].agreement);
            cli_json_end(&j);
        }
        cli_json_finish(&j);
        return all;
    }
    if (!args->quiet) {
        print_head("against level 0, worst output", 32);
    }
    for (int i = 0; i < 2; i++) {
        char name[160];
        snprintf(name, sizeof(name), "level %d, %.100s", rows[i].level,
                 rows[i].output ? rows[i].output : "");
        if (!args->quiet) {
            print_row(name, 32, &rows[i].agreement);
        }
        if (rows[i].culprit[0]) {
            printf("level %d: moved beyond tolerance by the rewrite \"%s\"\n", rows[i].level,
                   rows[i].culprit);
        }
    }
    printf("%s\n", all ? "agree" : "DISAGREE");
    return all;
}

/* ---- layers ---- */

/* Largest own error first; what has none is last, by its error in all. */
static int by_own(const void *x, const void *y)
{
    const nori_layer *a = *(const nori_layer *const *)x, *b = *(const nori_layer *const *)y;
    if (a->has_own != b->has_own) {
        return b->has_own - a->has_own;
    }
    double p = a->has_own ? a->own.sqnr_db : a->has_total ? a->total.sqnr_db : INFINITY;
    double q = b->has_own ? b->own.sqnr_db : b->has_total ? b->total.sqnr_db : INFINITY;
    return (p > q) - (p < q);
}

/* The first of those sorted; NULL: no layer has an error of its own. */
static const nori_layer *worst_own(const nori_layer **sorted, size_t count)
{
    const nori_layer *l = count > 0 ? sorted[0] : NULL;
    return l && l->has_own && !(isinf(l->own.sqnr_db) && l->own.sqnr_db > 0) ? l : NULL;
}

static void json_value(cli_json *j, const char *key, const nori_layer *l)
{
    if (l) {
        cli_json_string(j, key, l->value);
    } else {
        cli_json_null(j, key);
    }
}

static void json_layers(const nori_layer *list, size_t count, bool all, const nori_layer *first,
                        const nori_layer *worst)
{
    cli_json j;
    cli_json_begin(&j, stdout);
    cli_json_bool(&j, "agree", all);
    json_value(&j, "first", first);
    json_value(&j, "worst_own", worst);
    cli_json_array(&j, "layers");
    for (size_t i = 0; i < count; i++) {
        const nori_layer *l = &list[i];
        cli_json_object(&j, NULL);
        cli_json_string(&j, "value", l->value);
        cli_json_string(&j, "op", l->op);
        cli_json_string(&j, "node", l->path);
        if (l->has_own) {
            cli_json_object(&j, "own");
            json_agreement(&j, &l->own);
            cli_json_end(&j);
        }
        if (l->has_total) {
            cli_json_object(&j, "total");
            json_agreement(&j, &l->total);
            cli_json_end(&j);
        }
        cli_json_end(&j);
    }
    cli_json_finish(&j);
}

static void text_layers(const nori_layer **sorted, size_t count, const nori_layer *first)
{
    int width = 32, wide = 10;
    for (size_t i = 0; i < count && i < SHOWN; i++) {
        width = cli_widen(width, sorted[i]->value);
        wide = cli_widen(wide, sorted[i]->op);
    }
    printf("%-*s %-*s %12s %12s %12s %12s\n", width, "value, least agreeing first", wide, "operator",
           "own SQNR", "own max abs", "total SQNR", "max abs");
    for (size_t i = 0; i < count && i < SHOWN; i++) {
        const nori_layer *l = sorted[i];
        char own[32] = "-", total[32] = "-", own_abs[32] = "-", total_abs[32] = "-";
        if (l->has_own) {
            sqnr_text(&l->own, own, sizeof(own));
            snprintf(own_abs, sizeof(own_abs), "%.3g", l->own.max_abs);
        }
        if (l->has_total) {
            sqnr_text(&l->total, total, sizeof(total));
            snprintf(total_abs, sizeof(total_abs), "%.3g", l->total.max_abs);
        }
        printf("%-*s %-*s %12s %12s %12s %12s%s\n", width, l->value, wide, l->op, own, own_abs, total,
               total_abs,
               l->has_own && !l->own.passes ? "  beyond on its own" : "");
    }
    if (count > SHOWN) {
        printf("... and %zu more (--json lists all)\n", count - SHOWN);
    }
    if (first) {
        printf("first value beyond tolerance: %s, made by %s\n", first->value, first->path);
    }
    const nori_layer *worst = worst_own(sorted, count);
    if (worst) {
        printf("largest error of its own: %s, made by %s, %.1f dB\n", worst->value, worst->path,
               worst->own.sqnr_db);
    }
}

bool validate_print_layers(const cli_args *args, const nori_layers *layers)
{
    nori_layer one = {.size = sizeof(one)};
    size_t count = 0;
    while (nori_layers_at(layers, count, &one)) {
        count++;
    }
    nori_layer *list = calloc(count + 1, sizeof(*list));
    const nori_layer **sorted = calloc(count + 1, sizeof(*sorted)), *first = NULL;
    bool all = count > 0 && list && sorted;
    for (size_t i = 0; list && sorted && i < count; i++) {
        list[i].size = sizeof(list[i]);
        nori_layers_at(layers, i, &list[i]);
        sorted[i] = &list[i];
        bool bad = (list[i].has_total && !list[i].total.passes) ||
                   (list[i].has_own && !list[i].own.passes);
        first = bad && !first ? &list[i] : first;
        all = all && !bad;
    }
    if (list && sorted) {
        qsort(sorted, count, sizeof(*sorted), by_own);
    }
    if (list && sorted && args->json) {
        json_layers(list, count, all, first, worst_own(sorted, count));
    } else if (list && sorted) {
        if (!args->quiet) {
            text_layers(sorted, count, first);
        }
        printf(count == 0 ? "no value of one has the name of one of the other\n" : "%s\n",
               all ? "agree" : "DISAGREE");
    }
    free(list);
    free(sorted);
    return all;
}

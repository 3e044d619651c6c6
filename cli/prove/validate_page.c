/* validate_page.c: agreements as a page with pictures: errors by depth, how they are spread. */
#include "validate_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

#define SHOWN 100 /* rows of a table */

/* ---- a page, whole or not at all ---- */

typedef struct sheet {
    const cli_args *args;
    cli_page page;
    cli_draft draft;
} sheet;

/* False: none was asked for, or it cannot be made, which code then says. */
static bool begin(sheet *s, const cli_args *args, const char *subtitle, int *code)
{
    char title[300];
    *code = EXIT_YES;
    *s = (sheet){.args = args};
    if (!cli_has(args, "--html")) {
        return false;
    }
    if (!cli_draft_begin(args, &s->draft)) {
        *code = EXIT_UNSUPPORTED;
        return false;
    }
    snprintf(title, sizeof(title), "Agreement of %.250s", args->positional[0]);
    cli_page_begin(&s->page, s->draft.f, title, subtitle);
    return true;
}

static int finish(sheet *s)
{
    cli_page_finish(&s->page);
    return cli_draft_finish(s->args, &s->draft, cli_value(s->args, "--html"), true);
}

/* ---- rows ---- */

#define HEADS "|>SQNR|>largest error|>RMS|>cosine|>beyond tolerance|>of|verdict"

static void sqnr_cell(cli_page *p, const nori_agreement *a)
{
    if (isinf(a->sqnr_db) && a->sqnr_db > 0) {
        cli_page_cell(p, "equal");
    } else {
        cli_page_cell(p, "%.1f dB", a->sqnr_db);
    }
}

static void agreement_cells(cli_page *p, const nori_agreement *a)
{
    sqnr_cell(p, a);
    cli_page_cell(p, "%.3g", a->max_abs);
    cli_page_cell(p, "%.3g", a->rms);
    cli_page_cell(p, "%.6f", a->cosine);
    cli_page_cell(p, "%llu", (unsigned long long)a->beyond);
    cli_page_cell(p, "%llu", (unsigned long long)a->elements);
    cli_page_cell(p, "%s", a->passes ? "agrees" : "disagrees");
}

/* How the errors of one value are spread, by powers of ten. */
static void spread(cli_page *p, const char *name, const nori_agreement *a)
{
    double counts[NORI_DECADES - 1];
    char title[320];
    uint64_t all = a->decades[0];
    for (size_t i = 1; i < NORI_DECADES; i++) {
        counts[i - 1] = (double)a->decades[i];
        all += a->decades[i];
    }
    snprintf(title, sizeof(title), "%.200s: errors by size (%llu of %llu elements have none)", name,
             (unsigned long long)a->decades[0], (unsigned long long)all);
    cli_chart chart = {.title = title, .x = "log10 of the error", .y = "elements"};
    cli_page_histogram(p, &chart, -12, NORI_DECADES - 13, counts, NORI_DECADES - 1, 0, 0);
}

static bool worse(const nori_agreement *a, const nori_agreement *b)
{
    return a->passes != b->passes ? !a->passes : a->sqnr_db < b->sqnr_db;
}

static void verdict(cli_page *p, bool all)
{
    cli_page_figure(p, "verdict", "%s", all ? "agree" : "disagree");
}

static void tolerance(cli_page *p, const nori_agreement *a)
{
    cli_page_figure(p, "tolerance", "%g + %g |x|", a->atol, a->rtol);
}

/* ---- outputs, levels ---- */

int validate_page_outputs(const cli_args *args, const nori_session *s, const validate_names *n,
                          const nori_agreement *rows, size_t count)
{
    sheet sh;
    char subtitle[400];
    int code;
    bool all = true;
    size_t worst = 0;
    snprintf(subtitle, sizeof(subtitle), "%.180s against %.180s", n->got, n->want);
    if (!begin(&sh, args, subtitle, &code)) {
        return code;
    }
    for (size_t i = 0; i < count; i++) {
        all = all && rows[i].passes;
        worst = worse(&rows[i], &rows[worst]) ? i : worst;
    }
    verdict(&sh.page, all);
    if (count > 0) {
        tolerance(&sh.page, &rows[worst]);
        cli_page_figure(&sh.page, "inputs", "%llu", (unsigned long long)rows[0].pairs);
    }
    cli_page_section(&sh.page, "Outputs");
    cli_page_table(&sh.page, "output" HEADS);
    for (size_t i = 0; i < count; i++) {
        cli_page_row(&sh.page);
        cli_page_cell(&sh.page, "%s", nori_session_output(s, i)->name);
        agreement_cells(&sh.page, &rows[i]);
    }
    cli_page_table_end(&sh.page);
    for (size_t i = 0; i < count; i++) {
        const char *name = nori_session_output(s, i)->name;
        if (rows[i].reason[0]) {
            cli_page_item(&sh.page, "%s: %s", name, rows[i].reason);
        }
        if (rows[i].rows > 0) {
            cli_page_item(&sh.page, "%s: the first class is the same in %.1f %% of %llu rows, %.1f %% "
                          "of the first classes are in common", name, 100 * rows[i].top1,
                          (unsigned long long)rows[i].rows, 100 * rows[i].topk);
        }
        if (rows[i].nan_got || rows[i].nan_want || rows[i].inf_got || rows[i].inf_want) {
            cli_page_item(&sh.page, "%s: NaN %llu against %llu, infinities %llu against %llu", name,
                          (unsigned long long)rows[i].nan_got, (unsigned long long)rows[i].nan_want,
                          (unsigned long long)rows[i].inf_got, (unsigned long long)rows[i].inf_want);
        }
    }
    if (count > 0) {
        cli_page_section(&sh.page, "How the errors are spread");
        spread(&sh.page, nori_session_output(s, worst)->name, &rows[worst]);
    }
    return finish(&sh);
}

int validate_page_levels(const cli_args *args, const nori_level_row rows[2])
{
    sheet sh;
    int code;
    if (!begin(&sh, args, "optimization levels 1 and 2 against level 0", &code)) {
        return code;
    }
    verdict(&sh.page, rows[0].agreement.passes && rows[1].agreement.passes);
    tolerance(&sh.page, &rows[0].agreement);
    cli_page_section(&sh.page, "The output that agrees least, by level");
    cli_page_table(&sh.page, "level|output" HEADS "|moved by the rewrite");
    for (int i = 0; i < 2; i++) {
        cli_page_row(&sh.page);
        cli_page_cell(&sh.page, "%d", rows[i].level);
        cli_page_cell(&sh.page, "%s", rows[i].output ? rows[i].output : "");
        agreement_cells(&sh.page, &rows[i].agreement);
        cli_page_cell(&sh.page, "%s", rows[i].culprit);
    }
    cli_page_table_end(&sh.page);
    cli_page_section(&sh.page, "How the errors are spread");
    for (int i = 0; i < 2; i++) {
        char name[320];
        snprintf(name, sizeof(name), "level %d, %.250s", rows[i].level,
                 rows[i].output ? rows[i].output : "");
        spread(&sh.page, name, &rows[i].agreement);
    }
    return finish(&sh);
}

/* ---- layers ---- */

/* Decibels are capped for the picture: equal values have infinitely many. */
#define MOST_DB 200.0

static double decibels(const nori_agreement *a)
{
    return a->sqnr_db > MOST_DB ? MOST_DB : a->sqnr_db;
}

static void depth_chart(cli_page *p, const nori_layer *list, size_t count)
{
    double *x = calloc(4 * count + 1, sizeof(*x));
    const char **labels = calloc(2 * count + 1, sizeof(*labels));
    if (x && labels) {
        double *own = x + count, *own_x = x + 2 * count, *total = x + 3 * count;
        cli_series series[2] = {{"inherited and own", x, total, labels, 0},
                                {"the layer's own", own_x, own, labels + count, 0}};
        for (size_t i = 0; i < count; i++) {
            if (list[i].has_total) {
                size_t k = series[0].count++;
                x[k] = (double)i;
                total[k] = decibels(&list[i].total);
                labels[k] = list[i].value;
            }
            if (list[i].has_own) {
                size_t k = series[1].count++;
                own_x[k] = (double)i;
                own[k] = decibels(&list[i].own);
                labels[count + k] = list[i].value;
            }
        }
        cli_chart chart = {.title = "Signal to error by depth: lower is worse",
                           .x = "layer, in order of execution",
                           .y = "dB, equal values as 200"};
        cli_page_lines(p, &chart, series, 2);
    }
    free(x);
    free(labels);
}

static const nori_agreement *of_layer(const nori_layer *l)
{
    return l->has_own ? &l->own : &l->total;
}

static int by_error(const void *x, const void *y)
{
    const nori_layer *a = x, *b = y;
    const nori_agreement *p = of_layer(a), *q = of_layer(b);
    return worse(q, p) - worse(p, q);
}

static void layers_table(cli_page *p, const nori_layer *sorted, size_t count)
{
    cli_page_section(p, "Layers, least agreeing first");
    cli_page_table(p, "value|operator|made by|>own SQNR|>own largest error|>SQNR|>largest error|verdict");
    for (size_t i = 0; i < count && i < SHOWN; i++) {
        const nori_layer *l = &sorted[i];
        cli_page_row(p);
        cli_page_cell(p, "%s", l->value);
        cli_page_cell(p, "%s", l->op);
        cli_page_cell(p, "%s", l->path);
        for (int k = 0; k < 2; k++) {
            const nori_agreement *a = k ? &l->total : &l->own;
            if (k ? l->has_total : l->has_own) {
                sqnr_cell(p, a);
                cli_page_cell(p, "%.3g", a->max_abs);
            } else {
                cli_page_cell(p, "-");
                cli_page_cell(p, "-");
            }
        }
        bool own = l->has_own && !l->own.passes, all = l->has_total && !l->total.passes;
        cli_page_cell(p, "%s", own ? "beyond tolerance on its own" : all ? "inherits its error" : "agrees");
    }
    cli_page_table_end(p);
    if (count > SHOWN) {
        cli_page_text(p, "%zu more are not shown; --json lists all.", count - SHOWN);
    }
}

int validate_page_layers(const cli_args *args, const nori_layers *layers)
{
    sheet sh;
    int code;
    size_t count = 0;
    nori_layer one = {.size = sizeof(one)};
    const nori_layer *first = NULL;
    bool all = true;
    if (!begin(&sh, args, "value by value: each layer's own error, and what it inherits", &code)) {
        return code;
    }
    while (nori_layers_at(layers, count, &one)) {
        count++;
    }
    nori_layer *list = calloc(2 * count + 1, sizeof(*list)), *sorted = list ? list + count : NULL;
    for (size_t i = 0; list && i < count; i++) {
        list[i].size = sizeof(list[i]);
        nori_layers_at(layers, i, &list[i]);
        bool bad = (list[i].has_total && !list[i].total.passes) ||
                   (list[i].has_own && !list[i].own.passes);
        first = bad && !first ? &list[i] : first;
        all = all && !bad;
    }
    verdict(&sh.page, all && count > 0);
    cli_page_figure(&sh.page, "values compared", "%zu", count);
    if (first) {
        cli_page_text(&sh.page, "First value beyond tolerance: %s, made by %s.", first->value,
                      first->path);
    }
    if (list && count > 0) {
        memcpy(sorted, list, count * sizeof(*list));
        qsort(sorted, count, sizeof(*sorted), by_error);
        cli_page_section(&sh.page, "Error by depth");
        depth_chart(&sh.page, list, count);
        cli_page_section(&sh.page, "The layer that agrees least");
        spread(&sh.page, sorted[0].value, of_layer(&sorted[0]));
        layers_table(&sh.page, sorted, count);
    }
    free(list);
    return finish(&sh);
}

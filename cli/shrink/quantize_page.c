/* quantize_page.c: the report of a quantization as a page: error by depth, what each layer costs, size
 * and time before and after, what was tried, ranges and histograms. */
#include "quantize_page.h"

#include <math.h>
#include <stdlib.h>

#include "page.h"

#define CHARTED 40    /* bars: the costliest layers */
#define HISTOGRAMS 12 /* of the values that agree least */

static size_t count_nodes(const nori_quantize_report *r)
{
    nori_quantize_node n = {.size = sizeof(n)};
    size_t count = 0;
    while (nori_quantize_report_node(r, count, &n)) {
        count++;
    }
    return count;
}

static size_t count_values(const nori_quantize_report *r)
{
    nori_quantize_value v = {.size = sizeof(v)};
    size_t count = 0;
    while (nori_quantize_report_value(r, count, &v)) {
        count++;
    }
    return count;
}

/* ---- the head ---- */

static void figures(cli_page *p, const nori_quantize_report *r)
{
    nori_quantize_summary s = {.size = sizeof(s)};
    char size[32], before[32];
    nori_quantize_report_summary(r, &s);
    cli_bytes_text(s.weight_bytes_after, size, sizeof(size));
    cli_bytes_text(s.weight_bytes_before, before, sizeof(before));
    if (isfinite(s.output_sqnr)) {
        cli_page_figure(p, "signal over error, worst output", "%.1f dB", s.output_sqnr);
    }
    cli_page_figure(p, before, "%s", size);
    cli_page_figure(p, "nodes on integers", "%zu of %zu", s.quantized_nodes, s.nodes);
    if (s.int_ms > 0) {
        char label[64];
        snprintf(label, sizeof(label), "a run; %.3f ms in float", s.float_ms);
        cli_page_figure(p, label, "%.3f ms", s.int_ms);
    }
    cli_page_figure(p, "samples", "%zu", s.samples);
    static const char *const sides[] = {"before", "after"};
    static const char *const weights[] = {"weights, kB"}, *const times[] = {"a run, ms"};
    const double kb[] = {(double)s.weight_bytes_before / 1000, (double)s.weight_bytes_after / 1000};
    const double ms[] = {s.float_ms, s.int_ms};
    cli_page_bars(p, &(cli_chart){.title = "Size before and after"}, weights, kb, 1, sides, 2);
    if (s.int_ms > 0) {
        cli_page_bars(p, &(cli_chart){.title = "Time before and after, on this machine"}, times, ms, 1,
                      sides, 2);
    }
}

static void remarks(cli_page *p, const nori_quantize_report *r)
{
    for (size_t i = 0; nori_quantize_report_advice(r, i); i++) {
        cli_page_item(p, "%s", nori_quantize_report_advice(r, i));
    }
    for (size_t i = 0; nori_quantize_report_note(r, i); i++) {
        cli_page_item(p, "%s", nori_quantize_report_note(r, i));
    }
}

/* ---- error by depth ---- */

static bool depth(cli_page *p, const nori_quantize_report *r)
{
    size_t n = count_values(r);
    double *x = calloc(n + 1, sizeof(*x)), *y = calloc(n + 1, sizeof(*y));
    const char **names = calloc(n + 1, sizeof(*names));
    nori_quantize_value v = {.size = sizeof(v)};
    bool ok = x && y && names;
    for (size_t i = 0; ok && nori_quantize_report_value(r, i, &v); i++) {
        x[i] = (double)i + 1;
        y[i] = v.sqnr;
        names[i] = v.name;
    }
    if (ok) {
        cli_page_lines(p,
                       &(cli_chart){.title = "Agreement by depth: values in the order they are made, errors "
                                             "of what comes before included",
                                    .x = "value",
                                    .y = "signal over error, dB",
                                    .mark = 20,
                                    .mark_name = "an error of a tenth"},
                       &(cli_series){.name = "values", .x = x, .y = y, .labels = names, .count = n}, 1);
    }
    free(x);
    free(y);
    free(names);
    return ok;
}

/* ---- layers ---- */

typedef struct layer {
    const char *path;
    double alone, float_ms, int_ms;
} layer;

static int costlier(const void *a, const void *b)
{
    const layer *x = a, *y = b;
    return x->alone < y->alone ? -1 : x->alone > y->alone;
}

static int slower(const void *a, const void *b)
{
    const layer *x = a, *y = b;
    return x->float_ms > y->float_ms ? -1 : x->float_ms < y->float_ms;
}

static bool layers(cli_page *p, const nori_quantize_report *r)
{
    static const char *const sides[] = {"float", "as written"};
    size_t n = count_nodes(r), alone = 0, timed = 0;
    layer *cost = calloc(n + 1, sizeof(*cost)), *time = calloc(n + 1, sizeof(*time));
    const char **names = calloc(n + 1, sizeof(*names));
    double *bars = calloc(2 * n + 2, sizeof(*bars));
    nori_quantize_node e = {.size = sizeof(e)};
    bool ok = cost && time && names && bars;
    for (size_t i = 0; ok && nori_quantize_report_node(r, i, &e); i++) {
        layer l = {e.path, e.alone_sqnr, e.float_ms, e.int_ms};
        if (isfinite(l.alone)) {
            cost[alone++] = l;
        }
        if (isfinite(l.float_ms)) {
            time[timed++] = l;
        }
    }
    if (ok && alone > 0) {
        qsort(cost, alone, sizeof(*cost), costlier);
        alone = alone < CHARTED ? alone : CHARTED;
        for (size_t i = 0; i < alone; i++) {
            names[i] = cost[i].path;
            bars[i] = cost[i].alone;
        }
        cli_page_bars(p, &(cli_chart){.title = "Own error: agreement of the worst output with one layer "
                                               "alone on integers, the costliest first",
                                      .x = "dB"},
                      names, bars, alone, NULL, 0);
    }
    if (ok && timed > 0) {
        qsort(time, timed, sizeof(*time), slower);
        timed = timed < CHARTED ? timed : CHARTED;
        for (size_t i = 0; i < timed; i++) {
            names[i] = time[i].path;
            bars[2 * i] = time[i].float_ms;
            bars[2 * i + 1] = time[i].int_ms;
        }
        cli_page_bars(p, &(cli_chart){.title = "Time of layers", .x = "ms"}, names, bars, timed, sides, 2);
    }
    free(cost);
    free(time);
    free(names);
    free(bars);
    return ok;
}

/* ---- tables ---- */

static void db_cell(cli_page *p, double v)
{
    if (isnan(v)) {
        cli_page_cell(p, "-");
    } else if (isinf(v)) {
        cli_page_cell(p, "exact");
    } else {
        cli_page_cell(p, "%.1f dB", v);
    }
}

static void number_cell(cli_page *p, double v, const char *unit)
{
    if (isnan(v)) {
        cli_page_cell(p, "-");
    } else {
        cli_page_cell(p, "%.3f%s", v, unit);
    }
}

static void tried(cli_page *p, const nori_quantize_report *r)
{
    nori_quantize_step_row s = {.size = sizeof(s)};
    nori_quantize_try t = {.size = sizeof(t)};
    char size[32];
    cli_page_table(p, "step|what became of it|>gained");
    for (size_t i = 0; nori_quantize_report_step(r, i, &s); i++) {
        cli_page_row(p);
        cli_page_cell(p, "%s", s.name);
        cli_page_cell(p, "%s", s.kept ? "kept" : s.reason);
        if (isfinite(s.sqnr_after - s.sqnr_before)) {
            cli_page_cell(p, "%+.2f dB", s.sqnr_after - s.sqnr_before);
        } else {
            cli_page_cell(p, "-");
        }
    }
    cli_page_table_end(p);
    cli_page_text(p, "Tries, on a few samples; * where no other is as good in error, time and size and "
                     "better in one of them.");
    cli_page_table(p, "|try|>layers float|>agreement|>rows changed|>ms|>weights");
    for (size_t i = 0; nori_quantize_report_try(r, i, &t); i++) {
        cli_bytes_text(t.weight_bytes, size, sizeof(size));
        cli_page_row(p);
        cli_page_cell(p, "%s", t.pareto ? "*" : "");
        cli_page_cell(p, "%s", t.label);
        cli_page_cell(p, "%zu", t.spared);
        db_cell(p, t.sqnr);
        number_cell(p, t.top1_changed * 100, " %");
        cli_page_cell(p, "%.3f", t.ms);
        cli_page_cell(p, "%s", size);
    }
    cli_page_table_end(p);
}

static void nodes(cli_page *p, const nori_quantize_report *r)
{
    nori_quantize_node n = {.size = sizeof(n)};
    cli_page_table(p, "node||>weights|>alone|>float ms|>as written, ms|why float");
    for (size_t i = 0; nori_quantize_report_node(r, i, &n); i++) {
        cli_page_row(p);
        cli_page_cell(p, "%s", n.path);
        cli_page_cell(p, "%s", n.quantized ? "integers" : "float");
        db_cell(p, n.weight_sqnr == 0 ? NAN : n.weight_sqnr);
        db_cell(p, n.alone_sqnr);
        number_cell(p, n.float_ms, "");
        number_cell(p, n.int_ms, "");
        cli_page_cell(p, "%s", n.reason);
    }
    cli_page_table_end(p);
}

static void ranges(cli_page *p, const nori_quantize_report *r)
{
    nori_quantize_value v = {.size = sizeof(v)};
    cli_page_table(p, "value|>seen|>range|>scale|>zero|>clipped|>agreement");
    for (size_t i = 0; nori_quantize_report_value(r, i, &v); i++) {
        cli_page_row(p);
        cli_page_cell(p, "%s", v.name);
        cli_page_cell(p, "[%.4g, %.4g]", v.seen_min, v.seen_max);
        cli_page_cell(p, "[%.4g, %.4g]", v.low, v.high);
        cli_page_cell(p, "%.5g", v.scale);
        cli_page_cell(p, "%lld", (long long)v.zero_point);
        cli_page_cell(p, "%.3f %%", v.clipped * 100);
        db_cell(p, v.sqnr);
    }
    cli_page_table_end(p);
}

/* ---- histograms ---- */

static int less_agreed(const void *a, const void *b)
{
    const nori_quantize_value *x = a, *y = b;
    return x->sqnr < y->sqnr ? -1 : x->sqnr > y->sqnr;
}

static bool histograms(cli_page *p, const nori_quantize_report *r)
{
    size_t n = count_values(r), kept = 0;
    nori_quantize_value *v = calloc(n + 1, sizeof(*v));
    for (size_t i = 0; v && i < n; i++) {
        v[kept] = (nori_quantize_value){.size = sizeof(*v)};
        nori_quantize_report_value(r, i, &v[kept]);
        kept += v[kept].bins > 0 && isfinite(v[kept].sqnr);
    }
    if (v && kept > 0) {
        qsort(v, kept, sizeof(*v), less_agreed);
    }
    for (size_t i = 0; v && i < kept && i < HISTOGRAMS; i++) {
        double *counts = calloc(v[i].bins, sizeof(*counts));
        if (!counts) {
            free(v);
            return false;
        }
        for (size_t k = 0; k < v[i].bins; k++) {
            counts[k] = (double)v[i].counts[k];
        }
        cli_page_histogram(p, &(cli_chart){.title = v[i].name, .y = "numbers", .log_y = true}, v[i].seen_min,
                           v[i].seen_max, counts, v[i].bins, v[i].low, v[i].high);
        free(counts);
    }
    free(v);
    return v != NULL;
}

/* ---- */

int quantize_page(const cli_args *args, const nori_quantize_report *r)
{
    char title[300];
    cli_page p;
    cli_draft d;
    if (!cli_draft_begin(args, &d)) {
        return EXIT_UNSUPPORTED;
    }
    snprintf(title, sizeof(title), "%.250s on integers", args->positional[0]);
    cli_page_begin(&p, d.f, title, "What quantization cost, and what it won");
    figures(&p, r);
    remarks(&p, r);
    cli_page_section(&p, "Error");
    bool ok = depth(&p, r) && layers(&p, r);
    cli_page_section(&p, "What was tried");
    tried(&p, r);
    cli_page_section(&p, "Nodes");
    nodes(&p, r);
    cli_page_section(&p, "Ranges");
    ranges(&p, r);
    cli_page_section(&p, "Histograms of the values that agree least; the range chosen is shaded");
    ok = ok && histograms(&p, r);
    cli_page_finish(&p);
    return cli_draft_finish(args, &d, cli_value(args, "--html"), ok);
}

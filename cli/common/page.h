/* page.h: writes a report as one HTML page that needs no network: style and charts (SVG) are inside.
 * Escaping, scales, ticks and colours are its business. Call begin, then any of the rest in the order
 * they should be read, then finish; write errors show in ferror(f). */
#ifndef NORI_CLI_PAGE_H
#define NORI_CLI_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct cli_page {
    FILE *f;
    const char *heads; /* of the open table, see cli_page_table */
    int cell;          /* of the row being filled */
    bool row, list;    /* which is open */
} cli_page;

/* Texts may hold anything: they are escaped, bytes that are not UTF-8 become U+FFFD. */
void cli_page_begin(cli_page *p, FILE *f, const char *title, const char *subtitle);
void cli_page_finish(cli_page *p);
void cli_page_section(cli_page *p, const char *heading);
void cli_page_text(cli_page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A large figure with what it is below; those that follow each other share a line. */
void cli_page_figure(cli_page *p, const char *label, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Items of one list, as long as nothing else comes between. */
void cli_page_item(cli_page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* heads: "name|>bytes|>error": a column each, ">" for numbers (to the right). It must live until the
 * end. Then for each row cli_page_row and one cli_page_cell a column. */
void cli_page_table(cli_page *p, const char *heads);
void cli_page_row(cli_page *p);
void cli_page_cell(cli_page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_page_table_end(cli_page *p);

/* Values that are not finite (and, on a logarithmic axis, not above 0) are left out. */
typedef struct cli_chart {
    const char *title;
    const char *x, *y;  /* what the axes show, with unit; NULL: not written */
    bool log_y;         /* bars: of their length */
    bool dots;          /* lines: no line between the points */
    double mark;        /* a line across at this value of y, with mark_name; used if that is there */
    const char *mark_name;
} cli_chart;

/* Points of one line; the name stands in the legend where there are several. labels: NULL, or what is
 * shown when one points at a point. */
typedef struct cli_series {
    const char *name;
    const double *x, *y;
    const char *const *labels;
    size_t count;
} cli_series;
void cli_page_lines(cli_page *p, const cli_chart *chart, const cli_series *series, size_t count);

/* One bar a name, across; series_names: NULL, or as many as bars a name: values[name * n + series]. */
void cli_page_bars(cli_page *p, const cli_chart *chart, const char *const *names,
                   const double *values, size_t count, const char *const *series_names,
                   size_t n_series);

/* counts[i] of [low + i w, low + (i + 1) w), the last ending at high. keep_low < keep_high: what lies
 * between is shaded, as a range that was chosen. */
void cli_page_histogram(cli_page *p, const cli_chart *chart, double low, double high,
                        const double *counts, size_t count, double keep_low, double keep_high);

#endif

/* place_page.c: a placement as a page with pictures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"
#include "place_job.h"

static const char *const names[] = {"nowhere", "edge", "cloud", "split"};

static void options_table(cli_page *p, const place_job *j, int count)
{
    bool deadline = j->question.deadline > 0;
    cli_page_table(p, deadline ? "place|>compute ms|>up|>down|>queue|>round trip|>mean|>p50|>p95|>p99|"
                                 ">in time|verdict"
                               : "place|>compute ms|>up|>down|>queue|>round trip|>mean|>p50|>p95|>p99|"
                                 "verdict");
    for (int i = 0; i < count; i++) {
        const nori_place_option *o = &j->answer.option[i];
        const double shown[] = {o->compute, o->up, o->down, o->queue, o->rtt, o->mean, o->p50, o->p95,
                                o->p99};
        cli_page_row(p);
        cli_page_cell(p, "%s", names[o->place]);
        for (size_t k = 0; k < sizeof(shown) / sizeof(shown[0]); k++) {
            cli_page_cell(p, "%.4g", 1e3 * shown[k]);
        }
        if (deadline) {
            cli_page_cell(p, "%.2f %%", 100 * o->within);
        }
        cli_page_cell(p, "%s", !o->possible                      ? o->reason
                               : o->place == j->answer.place ? "chosen" : "possible");
    }
    cli_page_table_end(p);
}

static void totals_chart(cli_page *p, const place_job *j, int count)
{
    static double x[3][NORI_TIMES_POINTS], y[NORI_TIMES_POINTS];
    cli_series series[3];
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < NORI_TIMES_POINTS; k++) {
            x[i][k] = 1e3 * j->answer.option[i].total.at[k];
            y[k] = 100 * (k + 0.5) / NORI_TIMES_POINTS;
        }
        series[i] = (cli_series){names[j->answer.option[i].place], x[i], y, NULL, NORI_TIMES_POINTS};
    }
    cli_chart chart = {.title = "Share of calls that are done by then", .x = "ms", .y = "%"};
    cli_page_lines(p, &chart, series, (size_t)count);
}

static void sweep_chart(cli_page *p, const place_job *j)
{
    size_t n = (size_t)j->sweep.steps;
    double *x = calloc(3 * n, sizeof(*x));
    if (!x) {
        return;
    }
    const char *unit = place_sweep_unit(&j->sweep);
    double scale = strcmp(unit, "MB/s") == 0 ? 1e-6 : strcmp(unit, "kB") == 0 ? 1e-3
                   : strcmp(unit, "ms") == 0 ? 1e3 : 1;
    char title[80], axis[80];
    for (size_t i = 0; i < n; i++) {
        nori_place_answer a = {.size = sizeof(a)};
        nori_place_question q = place_step(j, (int)i, &x[i]);
        x[i] = x[i] * scale;
        x[n + i] = x[2 * n + i] = NAN;
        if (nori_place_decide(&q, &a, NULL) == NORI_OK) {
            x[n + i] = a.option[0].load < 1 ? 1e3 * a.option[0].mean : NAN;
            x[2 * n + i] = a.option[1].load < 1 ? 1e3 * a.option[1].mean : NAN;
        }
    }
    snprintf(title, sizeof(title), "Mean of a call by %s", j->sweep.what);
    snprintf(axis, sizeof(axis), "%s, %s", j->sweep.what, unit);
    const cli_series series[] = {{"edge", x, x + n, NULL, n}, {"cloud", x, x + 2 * n, NULL, n}};
    const cli_chart chart = {.title = title, .x = axis, .y = "ms", .log_y = true};
    cli_page_section(p, "Where it turns");
    cli_page_lines(p, &chart, series, 2);
    free(x);
}

int place_page(const place_job *j)
{
    const char *path = cli_value(j->args, "--html");
    const nori_place_answer *a = &j->answer;
    cli_page p;
    cli_draft d;
    if (!path) {
        return EXIT_YES;
    }
    if (!cli_draft_begin(j->args, &d)) {
        return EXIT_UNSUPPORTED;
    }
    int count = j->question.can_split ? 3 : 2;
    cli_page_begin(&p, d.f, "Placement", j->args->count ? j->args->positional[0] : "");
    cli_page_figure(&p, "place", "%s", names[a->place]);
    cli_page_figure(&p, "the cloud computes faster by", "%.4g ms", 1e3 * a->gain);
    cli_page_figure(&p, "the way there costs", "%.4g ms", 1e3 * a->penalty);
    cli_page_figure(&p, "saved against the next best", "%.4g ms", 1e3 * a->saved);
    cli_page_text(&p, "%s", a->words);
    cli_page_section(&p, "What a call takes");
    options_table(&p, j, count);
    totals_chart(&p, j, count);
    place_page_split(j, &p);
    place_page_replay(j, &p);
    if (j->sweep.what) {
        sweep_chart(&p, j);
    }
    cli_page_finish(&p);
    return cli_draft_finish(j->args, &d, path, true);
}

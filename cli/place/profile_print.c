/* profile_print.c: a profile as text and as a page with pictures. */
#include <stdlib.h>

#include "page.h"
#include "profile.h"

#define P50 8
#define P95 14
#define P99 16
#define SHOWN_NODES 30

static void line(const char *name, const profile_times *t)
{
    if (t->count > 0) {
        printf("%-16s %10.3f %10.3f %10.3f %10.3f %10.3f %8zu\n", name, 1e3 * t->mean, 1e3 * t->at[P50],
               1e3 * t->at[P95], 1e3 * t->at[P99], 1e3 * t->at[PROFILE_SHARES - 1], t->count);
    }
}

static void head(void)
{
    printf("%-16s %10s %10s %10s %10s %10s %8s\n", "ms", "mean", "p50", "p95", "p99", "most", "calls");
}

static void print_speed(const char *way, double bytes, double speed)
{
    if (speed > 0) {
        printf("%-16s %.0f bytes a call, %.4g MB/s (%.4g Mbit/s)\n", way, bytes, speed / 1e6, speed * 8e-6);
    } else {
        printf("%-16s %.0f bytes a call; how fast the way is could not be told\n", way, bytes);
    }
}

void profile_print(const profile *p)
{
    if (p->cloud) {
        printf("%s as seen from here; first answer after %.3f ms\n\n", p->url, 1e3 * p->first_s);
        head();
        line(p->reported ? "service" : "service and way", &p->service);
        line("queue", &p->queue);
        line("round trip", &p->rtt);
        line("connecting", &p->connect);
        line("way there", &p->up);
        line("way back", &p->down);
        line("a call", &p->total);
        printf("\n");
        print_speed("way there", p->up_bytes, p->up_speed);
        print_speed("way back", p->down_bytes, p->down_speed);
        if (!p->reported) {
            printf("the server tells no statistics: what it computes and the way are one term here\n");
        }
        return;
    }
    printf("cold %.3f ms: load %.3f, create %.3f, first run %.3f; %ld thread%s, %s\n\n",
           1e3 * (p->load_s + p->create_s + p->first_s), 1e3 * p->load_s, 1e3 * p->create_s,
           1e3 * p->first_s, p->threads, p->threads == 1 ? "" : "s", p->cpu);
    head();
    line("steady", &p->steady);
    for (size_t i = 0; i < p->n_callers; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%d at once", p->callers[i].callers);
        line(name, &p->callers[i].times);
    }
    line("under load", &p->loaded);
    printf("\n");
    for (size_t i = 0; i < p->n_callers; i++) {
        printf("%d at once: %.4g calls a second\n", p->callers[i].callers, p->callers[i].rate);
    }
    if (p->loaded.count > 0) {
        printf("after %.3g minutes without a pause a call takes %.3g times its steady time\n", p->minutes,
               p->steady.mean > 0 ? p->loaded.mean / p->steady.mean : 0);
    }
}

/* ---- page ---- */

static void shares_chart(cli_page *page, const profile *p)
{
    static double x[5][PROFILE_SHARES], y[PROFILE_SHARES];
    const struct {
        const char *name;
        const profile_times *t;
    } all[] = {{"steady", &p->steady}, {"under load", &p->loaded}, {"service there", &p->service},
               {"round trip", &p->rtt}, {"whole call", &p->total}};
    cli_series series[5];
    size_t n = 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        for (int k = 0; k < PROFILE_SHARES && all[i].t->count > 0; k++) {
            x[n][k] = 1e3 * all[i].t->at[k];
            y[k] = 100 * profile_shares[k];
        }
        if (all[i].t->count > 0) {
            series[n] = (cli_series){all[i].name, x[n], y, NULL, PROFILE_SHARES};
            n++;
        }
    }
    const cli_chart chart = {.title = "Share of calls that are done by then", .x = "ms", .y = "%"};
    cli_page_lines(page, &chart, series, n);
}

static void callers_chart(cli_page *page, const profile *p)
{
    double x[PROFILE_CALLERS], rate[PROFILE_CALLERS], mean[PROFILE_CALLERS];
    for (size_t i = 0; i < p->n_callers; i++) {
        x[i] = p->callers[i].callers;
        rate[i] = p->callers[i].rate;
        mean[i] = 1e3 * p->callers[i].times.mean;
    }
    const cli_series calls = {"calls", x, rate, NULL, p->n_callers};
    const cli_series times = {"mean", x, mean, NULL, p->n_callers};
    const cli_chart first = {.title = "Calls a second by callers", .x = "at once", .y = "calls/s"};
    const cli_chart second = {.title = "Mean of a call by callers", .x = "at once", .y = "ms"};
    cli_page_lines(page, &first, &calls, 1);
    cli_page_lines(page, &second, &times, 1);
}

static int slower_first(const void *a, const void *b)
{
    const profile_node *x = *(const profile_node *const *)a, *y = *(const profile_node *const *)b;
    return (x->s < y->s) - (x->s > y->s);
}

static void nodes_chart(cli_page *page, const profile *p)
{
    const profile_node **order = calloc(p->n_nodes + 1, sizeof(*order));
    const char *names[SHOWN_NODES];
    double ms[SHOWN_NODES];
    size_t n = p->n_nodes < SHOWN_NODES ? p->n_nodes : SHOWN_NODES;
    if (order) {
        for (size_t i = 0; i < p->n_nodes; i++) {
            order[i] = &p->nodes[i];
        }
        qsort(order, p->n_nodes, sizeof(*order), slower_first);
        for (size_t i = 0; i < n; i++) {
            names[i] = order[i]->value;
            ms[i] = 1e3 * order[i]->s;
        }
        const cli_chart chart = {.title = "Nodes that take longest, by the value they make", .x = "ms"};
        cli_page_bars(page, &chart, names, ms, n, NULL, 1);
    }
    free(order);
}

static void terms_chart(cli_page *page, const profile *p)
{
    static const char *const names[] = {"way there", "way back", "round trip", "queue", "service"};
    const double ms[] = {1e3 * p->up.mean, 1e3 * p->down.mean, 1e3 * p->rtt.mean, 1e3 * p->queue.mean,
                         1e3 * p->service.mean};
    const cli_chart chart = {.title = "What a call is made of, on the mean", .x = "ms"};
    cli_page_bars(page, &chart, names, ms, 5, NULL, 1);
}

int profile_page(const cli_args *args, const profile *p)
{
    const char *path = cli_value(args, "--html");
    cli_page page;
    cli_draft d;
    if (!path) {
        return EXIT_YES;
    }
    if (!cli_draft_begin(args, &d)) {
        return EXIT_UNSUPPORTED;
    }
    cli_page_begin(&page, d.f, p->cloud ? "Profile of a server" : "Profile of a device", args->positional[0]);
    if (p->cloud) {
        cli_page_figure(&page, "a call, median", "%.4g ms", 1e3 * p->total.at[P50]);
        cli_page_figure(&page, "round trip, median", "%.4g ms", 1e3 * p->rtt.at[P50]);
        cli_page_figure(&page, "way there", "%.4g MB/s", p->up_speed / 1e6);
        cli_page_figure(&page, "way back", "%.4g MB/s", p->down_speed / 1e6);
        terms_chart(&page, p);
    } else {
        cli_page_figure(&page, "cold", "%.4g ms", 1e3 * (p->load_s + p->create_s + p->first_s));
        cli_page_figure(&page, "steady, median", "%.4g ms", 1e3 * p->steady.at[P50]);
        cli_page_figure(&page, "steady, p99", "%.4g ms", 1e3 * p->steady.at[P99]);
        cli_page_figure(&page, "under load, median", "%.4g ms", 1e3 * p->loaded.at[P50]);
    }
    shares_chart(&page, p);
    if (p->n_callers > 1) {
        callers_chart(&page, p);
    }
    if (p->n_nodes > 0) {
        nodes_chart(&page, p);
    }
    cli_page_finish(&page);
    return cli_draft_finish(args, &d, path, true);
}

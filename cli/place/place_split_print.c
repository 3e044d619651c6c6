/* place_split_print.c: the split and the payload choices, as text, JSON and pictures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place_job.h"

static const char *const names[] = {"nowhere", "edge", "cloud", "split"};

/* Names that a shell would not take as one word are quoted. */
static void quoted(const char *text, char *out, size_t size)
{
    bool plain = text[0] != 0;
    for (const char *p = text; *p; p++) {
        plain = plain && ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                          (*p >= '0' && *p <= '9') || strchr("._-/,:@%+=", *p));
    }
    size_t n = 0;
    for (const char *p = plain ? "" : text; *p && n + 8 < size; p++) {
        n += (size_t)snprintf(out + n, size - n, *p == '\'' ? "'\\''" : "%c", *p);
    }
    if (plain) {
        snprintf(out, size, "%s", text);
    } else {
        memmove(out + 1, out, n);
        out[0] = '\'';
        out[n + 1] = '\'';
        out[n + 2] = 0;
    }
}

/* What to type next. */
static void command(const place_job *j, char *out, size_t size)
{
    char model[1024], at[2048];
    bool int8 = cli_has(j->args, "--byte-features");
    quoted(j->args->positional[0], model, sizeof(model));
    quoted(int8 ? j->split.best8.values : j->split.best.values, at, sizeof(at));
    snprintf(out, size, "nori split %s --at %s%s --output first.onnx --output second.onnx", model, at,
             int8 ? " --byte-features" : "");
}

static double way(const nori_division *d)
{
    return d->total_s - d->edge_s - d->cloud_s;
}

static void print_cut(const char *name, const place_cut *c, uint64_t bytes)
{
    printf("%-9s after %.120s%s: %zu nodes here, %zu there; %.6g kB sent\n%-9s %.4g + %.4g + way %.4g = "
           "%.4g ms on the mean\n", name, c->values, strlen(c->values) > 120 ? "..." : "", c->d.edge_nodes,
           c->d.cloud_nodes, (double)bytes / 1e3,
           "", 1e3 * c->d.edge_s, 1e3 * c->d.cloud_s, 1e3 * way(&c->d), 1e3 * c->d.total_s);
}

void place_print_split(const place_job *j)
{
    const place_split *s = &j->split;
    char text[4096];
    if (s->there) {
        printf("\nbest split of %zu in order%s\n", s->count,
               s->exact ? "" : "; one side alone takes less than any of all");
        print_cut("as it is", &s->best, s->best.d.bytes);
        print_cut("in 8 bits", &s->best8, s->best8.d.int8_bytes);
        if (s->int8_lacks[0]) {
            printf("%-9s its error is not known: %s\n", "", s->int8_lacks);
        } else {
            printf("%-9s outputs %s: largest error %.3g, %.4g dB\n", "",
                   s->int8.passes ? "agree" : "do not agree within 1e-3", s->int8.max_abs, s->int8.sqnr_db);
        }
        if (j->answer.place == NORI_PLACE_SPLIT) {
            command(j, text, sizeof(text));
            printf("%-9s %s\n", "next", text);
        }
    }
    for (size_t i = 0; i < j->n_payloads; i++) {
        const place_payload *p = &j->payload[i];
        printf("%s%-34s %9.0f bytes  cloud %10.4g ms  %s\n", i ? "" : "\nthe input sent as\n",
               p->what, p->bytes, 1e3 * p->cloud_s, names[p->place]);
    }
}

/* ---- JSON ---- */

static void json_cut(cli_json *w, const char *key, const place_cut *c, uint64_t bytes)
{
    cli_json_object(w, key);
    cli_json_string(w, "values", c->values);
    cli_json_uint(w, "edge_nodes", c->d.edge_nodes);
    cli_json_uint(w, "cloud_nodes", c->d.cloud_nodes);
    cli_json_uint(w, "bytes", bytes);
    cli_json_number(w, "edge_ms", 1e3 * c->d.edge_s, 6);
    cli_json_number(w, "cloud_ms", 1e3 * c->d.cloud_s, 6);
    cli_json_number(w, "mean_ms", 1e3 * c->d.total_s, 6);
    cli_json_end(w);
}

void place_json_split(const place_job *j, cli_json *w)
{
    const place_split *s = &j->split;
    char text[4096];
    if (s->there) {
        cli_json_object(w, "split");
        cli_json_bool(w, "end_is_better", !s->exact);
        json_cut(w, "best", &s->best, s->best.d.bytes);
        json_cut(w, "best_int8", &s->best8, s->best8.d.int8_bytes);
        if (s->int8_lacks[0]) {
            cli_json_string(w, "int8_unknown", s->int8_lacks);
        } else {
            cli_json_bool(w, "int8_agrees", s->int8.passes);
            cli_json_number(w, "int8_max_abs", s->int8.max_abs, 6);
            cli_json_number(w, "int8_sqnr_db", s->int8.sqnr_db, 6);
        }
        cli_json_array(w, "in_order");
        for (size_t i = 0; i < s->count; i++) {
            cli_json_object(w, NULL);
            cli_json_number(w, "mean_ms", 1e3 * s->mean[i], 6);
            cli_json_number(w, "bytes", s->bytes[i], 15);
            cli_json_end(w);
        }
        cli_json_end(w);
        if (j->answer.place == NORI_PLACE_SPLIT) {
            command(j, text, sizeof(text));
            cli_json_string(w, "next", text);
        }
        cli_json_end(w);
    }
    if (j->n_payloads > 0) {
        cli_json_array(w, "payloads");
        for (size_t i = 0; i < j->n_payloads; i++) {
            cli_json_object(w, NULL);
            cli_json_string(w, "what", j->payload[i].what);
            cli_json_number(w, "bytes", j->payload[i].bytes, 15);
            cli_json_number(w, "cloud_ms", 1e3 * j->payload[i].cloud_s, 6);
            cli_json_string(w, "place", names[j->payload[i].place]);
            cli_json_end(w);
        }
        cli_json_end(w);
    }
}

/* ---- pictures ---- */

static void split_charts(const place_job *j, cli_page *p)
{
    const place_split *s = &j->split;
    double *x = calloc(3 * s->count + 1, sizeof(*x));
    if (!x) {
        return;
    }
    for (size_t i = 0; i < s->count; i++) {
        x[i] = (double)(i + 1);
        x[s->count + i] = 1e3 * s->mean[i];
        x[2 * s->count + i] = s->bytes[i] / 1e3;
    }
    const nori_place_option *edge = &j->answer.option[0], *cloud = &j->answer.option[1];
    bool edge_first = edge->possible && (!cloud->possible || edge->mean < cloud->mean);
    const cli_series times = {"split", x, x + s->count, NULL, s->count};
    const cli_series bytes = {"sent", x, x + 2 * s->count, NULL, s->count};
    const cli_chart first = {.title = "Mean of a call, divided behind so many nodes",
                             .x = "nodes on the device",
                             .y = "ms", .log_y = true, .mark = 1e3 * (edge_first ? edge : cloud)->mean,
                             .mark_name = edge_first ? "edge alone" : "cloud alone"};
    const cli_chart second = {.title = "What is sent there", .x = "nodes on the device", .y = "kB",
                              .log_y = true};
    cli_page_lines(p, &first, &times, 1);
    cli_page_lines(p, &second, &bytes, 1);
    free(x);
}

static void cut_row(cli_page *p, const char *name, const place_cut *c, uint64_t bytes)
{
    cli_page_row(p);
    cli_page_cell(p, "%s", name);
    cli_page_cell(p, "%s", c->values);
    cli_page_cell(p, "%zu", c->d.edge_nodes);
    cli_page_cell(p, "%zu", c->d.cloud_nodes);
    cli_page_cell(p, "%.6g", (double)bytes / 1e3);
    cli_page_cell(p, "%.4g", 1e3 * c->d.edge_s);
    cli_page_cell(p, "%.4g", 1e3 * c->d.cloud_s);
    cli_page_cell(p, "%.4g", 1e3 * way(&c->d));
    cli_page_cell(p, "%.4g", 1e3 * c->d.total_s);
}

void place_page_split(const place_job *j, cli_page *p)
{
    const place_split *s = &j->split;
    char text[4096];
    if (s->there) {
        cli_page_section(p, "Divided in two");
        cli_page_table(p, "sent|behind|>nodes here|>there|>kB|>ms here|>there|>way|>mean");
        cut_row(p, "as it is", &s->best, s->best.d.bytes);
        cut_row(p, "in 8 bits", &s->best8, s->best8.d.int8_bytes);
        cli_page_table_end(p);
        if (s->int8_lacks[0]) {
            cli_page_text(p, "The error of 8 bits is not known: %s", s->int8_lacks);
        } else {
            cli_page_text(p, "In 8 bits the outputs %s: largest error %.3g, %.4g dB.",
                          s->int8.passes ? "agree" : "do not agree within 1e-3", s->int8.max_abs,
                          s->int8.sqnr_db);
        }
        if (j->answer.place == NORI_PLACE_SPLIT) {
            command(j, text, sizeof(text));
            cli_page_text(p, "Next: %s", text);
        } else {
            cli_page_text(p, "Not advised: %s.", s->exact ? j->answer.option[2].reason
                                                          : "one side alone takes less than any cut");
        }
        split_charts(j, p);
    }
    if (j->n_payloads > 0) {
        cli_page_section(p, "Other forms of the input");
        cli_page_table(p, "sent as|>bytes|>cloud ms|place");
        for (size_t i = 0; i < j->n_payloads; i++) {
            cli_page_row(p);
            cli_page_cell(p, "%s", j->payload[i].what);
            cli_page_cell(p, "%.0f", j->payload[i].bytes);
            cli_page_cell(p, "%.4g", 1e3 * j->payload[i].cloud_s);
            cli_page_cell(p, "%s", names[j->payload[i].place]);
        }
        cli_page_table_end(p);
    }
}

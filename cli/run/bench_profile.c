/* bench_profile.c: tables of time by node and operator, and traces of one run. */
#include <stdlib.h>
#include <string.h>

#include "bench_profile.h"

#define ROWS_SHOWN 25

static int by_time(const void *a, const void *b)
{
    const profile_row *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : strcmp(x->name, y->name);
}

static int by_operator(const void *a, const void *b)
{
    const profile_row *x = a, *y = b;
    int order = strcmp(x->op, y->op);
    return order ? order : strcmp(x->provider, y->provider);
}

static void add(profile_row *sum, const profile_row *row)
{
    sum->ns += row->ns;
    sum->calls += row->calls;
    sum->macs += row->macs;
    sum->bytes += row->bytes;
    sum->known &= row->known || row->calls == 0;
}

/* Rows of one operator and provider become one. */
static void sum_operators(profile *p)
{
    memcpy(p->ops, p->nodes, p->n_nodes * sizeof(*p->ops));
    qsort(p->ops, p->n_nodes, p->n_nodes ? sizeof(*p->ops) : 1, by_operator);
    for (size_t i = 0; i < p->n_nodes; i++) {
        if (p->n_ops > 0 && by_operator(&p->ops[p->n_ops - 1], &p->ops[i]) == 0) {
            add(&p->ops[p->n_ops - 1], &p->ops[i]);
            continue;
        }
        profile_row row = p->ops[i];
        snprintf(row.name, sizeof(row.name), "%s", row.op);
        row.known |= row.calls == 0;
        p->ops[p->n_ops++] = row;
    }
    qsort(p->ops, p->n_ops, p->n_ops ? sizeof(*p->ops) : 1, by_time);
}

int cli_profile_read(const cli_args *args, const nori_session *session, const nori_costs *costs,
                     uint64_t runs, profile *p)
{
    nori_profile_row r = {.size = sizeof(r)};
    nori_cost cost = {.size = sizeof(cost)};
    *p = (profile){.runs = runs};
    size_t n = 0;
    while (nori_session_profile(session, n, &r)) {
        n++;
    }
    p->nodes = calloc(n + 1, sizeof(*p->nodes));
    p->ops = calloc(n + 1, sizeof(*p->ops));
    if (!p->nodes || !p->ops) {
        cli_profile_free(p);
        return cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
    }
    for (; p->n_nodes < n && nori_session_profile(session, p->n_nodes, &r); p->n_nodes++) {
        profile_row *row = &p->nodes[p->n_nodes];
        *row = (profile_row){.op = r.op, .provider = r.provider, .ns = r.total_ns,
                             .calls = r.calls};
        bool priced = nori_costs_at(costs, p->n_nodes, &cost) != 0;
        snprintf(row->name, sizeof(row->name), "%.250s (%.100s)",
                 r.node[0] ? r.node : priced ? cost.output : "", r.op);
        row->known = priced && cost.known;
        row->macs = row->known ? cost.macs * r.calls : 0;
        row->bytes = row->known ? (cost.read_bytes + cost.written_bytes) * r.calls : 0;
        p->all_ns += r.total_ns;
    }
    sum_operators(p);
    qsort(p->nodes, p->n_nodes, p->n_nodes ? sizeof(*p->nodes) : 1, by_time);
    return EXIT_YES;
}

void cli_profile_free(profile *p)
{
    free(p->nodes);
    free(p->ops);
    *p = (profile){.nodes = NULL};
}

/* Billions a second; per nanosecond is the same. */
static double rate(const profile_row *row, uint64_t amount)
{
    return row->known && row->ns > 0 ? (double)amount / (double)row->ns : 0;
}

static void print_rate(double v)
{
    if (v > 0) {
        printf(" %8.2f", v);
    } else {
        printf(" %8s", "-");
    }
}

static void print_table(const char *title, const profile *p, const profile_row *rows, size_t n)
{
    int width = 24;
    for (size_t i = 0; i < n && i < ROWS_SHOWN; i++) {
        width = cli_widen(width, rows[i].name);
    }
    printf("\n%-*s %-10s %10s %7s %7s %9s %8s %8s\n", width, title, "provider", "us a run", "share",
           "calls", "MACs", "GFLOP/s", "GB/s");
    for (size_t i = 0; i < n && i < ROWS_SHOWN; i++) {
        const profile_row *r = &rows[i];
        char macs[32] = "-";
        if (r->known && r->macs > 0) {
            cli_count_text(r->macs / p->runs, macs, sizeof(macs));
        }
        printf("%-*s %-10s %10.1f %6.1f%% %7.1f %9s", width, r->name, r->provider,
               (double)r->ns / 1e3 / (double)p->runs,
               p->all_ns ? 100.0 * (double)r->ns / (double)p->all_ns : 0,
               (double)r->calls / (double)p->runs, macs);
        print_rate(rate(r, 2 * r->macs));
        print_rate(rate(r, r->bytes));
        printf("\n");
    }
    if (n > ROWS_SHOWN) {
        printf("... and %zu more (--json has all)\n", n - ROWS_SHOWN);
    }
}

void cli_profile_print(const profile *p)
{
    print_table("node", p, p->nodes, p->n_nodes);
    print_table("operator", p, p->ops, p->n_ops);
}

static void json_rows(cli_json *j, const char *key, const profile *p, const profile_row *rows,
                      size_t n)
{
    cli_json_array(j, key);
    for (size_t i = 0; i < n; i++) {
        const profile_row *r = &rows[i];
        cli_json_object(j, NULL);
        cli_json_string(j, "name", r->name);
        cli_json_string(j, "op", r->op);
        cli_json_string(j, "provider", r->provider);
        cli_json_number(j, "us", (double)r->ns / 1e3 / (double)p->runs, 6);
        cli_json_number(j, "calls", (double)r->calls / (double)p->runs, 6);
        if (r->known) {
            cli_json_uint(j, "macs", r->macs / p->runs);
            cli_json_uint(j, "bytes", r->bytes / p->runs);
            cli_json_number(j, "gflops", rate(r, 2 * r->macs), 4);
            cli_json_number(j, "gbytes_per_s", rate(r, r->bytes), 4);
        }
        cli_json_end(j);
    }
    cli_json_end(j);
}

void cli_profile_json(const profile *p, cli_json *j)
{
    json_rows(j, "nodes", p, p->nodes, p->n_nodes);
    json_rows(j, "operators", p, p->ops, p->n_ops);
}

/* ---- traces ---- */

static void trace_event(cli_json *j, const nori_profile_row *r, const nori_cost *cost,
                        uint64_t start_ns)
{
    cli_json_object(j, NULL);
    cli_json_string(j, "name", r->node[0] ? r->node : r->op);
    cli_json_string(j, "cat", r->op);
    cli_json_string(j, "ph", "X");
    cli_json_number(j, "ts", (double)(r->last_start_ns - start_ns) / 1e3, 16);
    cli_json_number(j, "dur", (double)(r->last_end_ns - r->last_start_ns) / 1e3, 16);
    cli_json_int(j, "pid", 1);
    cli_json_int(j, "tid", 1);
    cli_json_object(j, "args");
    cli_json_string(j, "op", r->op);
    cli_json_string(j, "provider", r->provider);
    if (cost->known) {
        cli_json_uint(j, "macs", cost->macs);
        cli_json_uint(j, "read_bytes", cost->read_bytes);
        cli_json_uint(j, "written_bytes", cost->written_bytes);
    }
    cli_json_end(j);
    cli_json_end(j);
}

/* When the newest call of the first node began: rows of a run follow each other, but nodes in a
 * branch that was not taken keep the times of an older run. */
static uint64_t trace_start(const nori_session *session)
{
    nori_profile_row r = {.size = sizeof(r)};
    uint64_t start = 0;
    for (size_t i = 0; start == 0 && nori_session_profile(session, i, &r); i++) {
        start = r.calls > 0 ? r.last_start_ns : 0;
    }
    return start;
}

int cli_trace_write(const cli_args *args, const nori_session *session, const nori_costs *costs,
                    const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f) {
        return cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
    }
    nori_profile_row r = {.size = sizeof(r)};
    nori_cost cost = {.size = sizeof(cost)};
    uint64_t start = trace_start(session);
    cli_json j;
    cli_json_begin(&j, f);
    cli_json_string(&j, "displayTimeUnit", "ns");
    cli_json_array(&j, "traceEvents");
    for (size_t i = 0; nori_session_profile(session, i, &r); i++) {
        if (r.calls > 0 && r.last_start_ns >= start && nori_costs_at(costs, i, &cost)) {
            trace_event(&j, &r, &cost, start);
        }
    }
    cli_json_finish(&j);
    bool whole = !ferror(f);
    whole = fclose(f) == 0 && whole;
    nori_error err = {0};
    int code = EXIT_YES;
    if (!whole) {
        code = cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
    } else if (nori_file_write(path, text, size, &err) != NORI_OK) {
        code = cli_fail(args, &err);
    }
    free(text);
    return code;
}

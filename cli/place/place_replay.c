/* place_replay.c: a trace of the past, a call a line, as each place would have answered it; and who would
 * have done how well. Columns have their units in their names; what a trace does not tell is as the
 * question says on the mean. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place_job.h"

enum { TIME, EDGE, CLOUD, QUEUE, RTT, UP, DOWN, UP_SPEED, DOWN_SPEED, ONLINE, COLUMNS };
static const struct {
    const char *name;
    double scale; /* to seconds, bytes a second */
} columns[COLUMNS] = {
    {"time_s", 1},   {"edge_ms", 1e-3}, {"cloud_ms", 1e-3}, {"queue_ms", 1e-3}, {"rtt_ms", 1e-3},
    {"up_ms", 1e-3}, {"down_ms", 1e-3}, {"up_MB/s", 1e6},   {"down_MB/s", 1e6}, {"online", 1},
};

typedef struct trace {
    place_job *j;
    const char *path;
    int column[64]; /* what stands there */
    size_t n_columns;
    long line;
    double (*rows)[COLUMNS]; /* NAN: not told */
    size_t count, capacity;
} trace;

static int bad_line(const trace *t, const char *what)
{
    return cli_fail_text(t->j->args, NORI_ERROR_DATA, "%s: line %ld: %s", t->path, t->line, what);
}

/* ---- reading ---- */

static char *next_cell(char **at)
{
    char *cell = *at, *end;
    if (!cell) {
        return NULL;
    }
    end = cell + strcspn(cell, ",\r\n");
    *at = *end == ',' ? end + 1 : NULL;
    *end = 0;
    while (*cell == ' ') {
        cell++;
    }
    for (size_t n = strlen(cell); n > 0 && cell[n - 1] == ' '; n--) {
        cell[n - 1] = 0;
    }
    return cell;
}

static int read_head(trace *t, char *line)
{
    char *cell;
    bool any = false;
    while ((cell = next_cell(&line)) != NULL) {
        int k = 0;
        while (k < COLUMNS && strcmp(cell, columns[k].name) != 0) {
            k++;
        }
        if (k == COLUMNS || t->n_columns == 64) {
            return cli_fail_text(
                t->j->args, NORI_ERROR_DATA,
                "%s: column \"%.40s\": time_s, edge_ms, cloud_ms, "
                "queue_ms, rtt_ms, up_ms, down_ms, up_MB/s, down_MB/s and online are known",
                t->path, cell);
        }
        t->column[t->n_columns++] = k;
        any = any || k != TIME;
    }
    return any ? EXIT_YES : bad_line(t, "a line of column names was expected, as time_s,edge_ms,cloud_ms");
}

static int read_row(trace *t, char *line)
{
    char *cell, *end;
    size_t k = 0;
    if (t->count == t->capacity) {
        size_t wanted = t->capacity ? 2 * t->capacity : 1024;
        void *grown = wanted <= SIZE_MAX / sizeof(*t->rows)
                          ? realloc(t->rows, wanted * sizeof(*t->rows))
                          : NULL;
        if (!grown) {
            return cli_fail_text(t->j->args, NORI_ERROR_MEMORY, "out of memory");
        }
        t->rows = grown;
        t->capacity = wanted;
    }
    double *row = t->rows[t->count];
    for (int i = 0; i < COLUMNS; i++) {
        row[i] = NAN;
    }
    while ((cell = next_cell(&line)) != NULL) {
        if (k == t->n_columns) {
            return bad_line(t, "more cells than columns");
        }
        int what = t->column[k++];
        if (!cell[0]) {
            continue;
        }
        errno = 0;
        double v = strtod(cell, &end);
        if (end == cell || *end || errno || !isfinite(v) || v < 0 ||
            ((what == UP_SPEED || what == DOWN_SPEED) && v == 0) || (what == ONLINE && v != 0 && v != 1)) {
            return cli_fail_text(t->j->args, NORI_ERROR_DATA,
                                 "%s: line %ld: \"%.40s\" as %s: a number of at "
                                 "least 0 was expected (speeds above 0, online 0 or 1)",
                                 t->path, t->line, cell, columns[what].name);
        }
        row[what] = v * columns[what].scale;
    }
    if (isnan(row[TIME])) {
        row[TIME] = t->count > 0 ? t->rows[t->count - 1][TIME] + 1 : 0;
    }
    if (t->count > 0 && row[TIME] < t->rows[t->count - 1][TIME]) {
        return bad_line(t, "its time is before that of the line before");
    }
    t->count++;
    return EXIT_YES;
}

static int read_trace(trace *t)
{
    nori_error err = {0};
    FILE *f = cli_open(t->path, true, &err);
    char line[4096];
    int code = f ? EXIT_YES : cli_fail(t->j->args, &err);
    while (code == EXIT_YES && fgets(line, sizeof(line), f)) {
        t->line++;
        bool whole = strchr(line, '\n') != NULL || feof(f);
        if (!whole || strlen(line) + 1 == sizeof(line)) {
            code = bad_line(t, "it is longer than 4,000 characters");
        } else if (line[strspn(line, " \r\n")] && line[0] != '#') {
            code = t->n_columns == 0 ? read_head(t, line) : read_row(t, line);
        }
    }
    if (f) {
        fclose(f);
    }
    return code != EXIT_YES || t->count > 0 ? code : bad_line(t, "there are no calls");
}

/* ---- what each place takes ---- */

static double told(const double *row, int column, double otherwise)
{
    return isnan(row[column]) ? otherwise : row[column];
}

static double over(double bytes, double speed)
{
    return speed > 0 ? bytes / speed : 0;
}

/* A side that options say nothing of takes what the trace says. */
static int side_from_trace(trace *t, int column, nori_place_side *side)
{
    profile_samples s = {0};
    profile_times times;
    for (size_t i = 0; i < t->count && !side->there; i++) {
        if (!isnan(t->rows[i][column]) && !profile_add(&s, t->rows[i][column])) {
            free(s.v);
            return cli_fail_text(t->j->args, NORI_ERROR_MEMORY, "out of memory");
        }
    }
    profile_settle(&s, &times);
    if (profile_as_times(&times, &side->service)) {
        side->there = 1;
    }
    return EXIT_YES;
}

static void call_of(const trace *t, const double *row, nori_replay_call *c)
{
    const nori_place_question *q = &t->j->question;
    double edge = nori_times_mean(&q->edge.service), cloud = nori_times_mean(&q->cloud.service);
    double there = told(row, CLOUD, cloud), here = told(row, EDGE, edge);
    double up_speed = told(row, UP_SPEED, q->up_speed), down_speed = told(row, DOWN_SPEED, q->down_speed);
    double fixed = told(row, RTT, nori_times_mean(&q->rtt)) +
                   told(row, QUEUE, q->cloud.has_queue ? nori_times_mean(&q->cloud.queue) : 0);
    double up = nori_times_mean(&q->up), back = nori_times_mean(&q->down) + over(q->down_bytes, down_speed);
    bool online = told(row, ONLINE, 1) != 0 && !q->offline;
    back = told(row, DOWN, back);
    c->at = row[TIME];
    c->seconds[0] = here;
    c->seconds[1] = online ? there + fixed + back + told(row, UP, up + over(q->up_bytes, up_speed)) : -1;
    c->seconds[2] = -1;
    if (q->can_split && online) { /* each part takes its share of its side's time */
        double first = edge > 0 ? nori_times_mean(&q->split_edge) / edge : 0;
        double rest = cloud > 0 ? nori_times_mean(&q->split_cloud) / cloud : 0;
        c->seconds[2] = first * here + rest * there + fixed + back + up + over(q->feature_bytes, up_speed);
    }
}

/* ---- who would have done how well ---- */

static bool seconds_of(const place_job *j, const char *name, double *out)
{
    const char *text = cli_value(j->args, name);
    nori_error err = {0};
    if (text && nori_quantity_parse(text, NORI_QUANTITY_TIME, out, &err) != NORI_OK) {
        cli_usage(j->args, "%s %s%s%s", name, err.message, err.hint[0] ? ": " : "", err.hint);
        return false;
    }
    return true;
}

static bool fill_options(const place_job *j, nori_replay_options *o)
{
    const nori_place_question *q = &j->question;
    nori_replay_options_default(o);
    o->policy.deadline = q->deadline;
    o->policy.percentile = q->percentile;
    for (int i = 0; i < NORI_PLACES; i++) {
        o->policy.possible[i] = j->answer.option[i].possible || (i == 2 && q->can_split && !q->features_stay);
    }
    o->price[0] = q->edge.price;
    o->price[1] = o->price[2] = q->cloud.price;
    return seconds_of(j, "--late-cost", &o->late_s) && seconds_of(j, "--switch-cost", &o->switch_s) &&
           seconds_of(j, "--lost", &o->lost_s);
}

static int replay_all(place_job *j, const nori_replay_call *calls, size_t count)
{
    static const char *const names[] = {"edge", "cloud", "split", "route", "oracle"};
    nori_replay_options o;
    nori_error err = {0};
    if (!fill_options(j, &o)) {
        return EXIT_USAGE;
    }
    for (int who = NORI_REPLAY_EDGE; who <= NORI_REPLAY_ORACLE; who++) {
        place_replayed *r = &j->replay[j->n_replays];
        if (who <= NORI_REPLAY_SPLIT && !o.policy.possible[who]) {
            continue;
        }
        r->name = names[who];
        r->placed = who <= NORI_REPLAY_SPLIT && j->answer.place == (nori_place)(who + 1);
        r->r.size = sizeof(r->r);
        if (nori_replay(&o, (nori_replay_who)who, calls, count, NULL, &r->r, &err) != NORI_OK) {
            return cli_fail(j->args, &err);
        }
        j->n_replays++;
    }
    return EXIT_YES;
}

/* Reads the trace; sides that nobody told of come from it. */
static int load(place_job *j, trace *t)
{
    int code = read_trace(t);
    code = code == EXIT_YES ? side_from_trace(t, EDGE, &j->question.edge) : code;
    return code == EXIT_YES ? side_from_trace(t, CLOUD, &j->question.cloud) : code;
}

int place_trace(place_job *j)
{
    trace t = {.j = j, .path = cli_value(j->args, "--replay")};
    int code = load(j, &t);
    j->calls = code == EXIT_YES ? calloc(t.count + 1, sizeof(*j->calls)) : NULL;
    if (code == EXIT_YES && !j->calls) {
        code = cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
    }
    j->rows = t.rows;
    j->n_calls = code == EXIT_YES ? t.count : 0;
    return code;
}

int place_replay(place_job *j)
{
    trace t = {.j = j};
    double (*rows)[COLUMNS] = j->rows;
    for (size_t i = 0; i < j->n_calls; i++) {
        call_of(&t, rows[i], &j->calls[i]);
    }
    return j->n_calls > 0 ? replay_all(j, j->calls, j->n_calls) : EXIT_YES;
}

/* ---- shown ---- */

void place_print_replay(const place_job *j)
{
    bool deadline = j->question.deadline > 0;
    if (j->n_replays == 0) {
        return;
    }
    printf("\n%zu calls of %s\n%-8s %10s %9s %9s %9s %8s %8s %11s %11s\n", j->n_calls,
           cli_value(j->args, "--replay"), "", deadline ? "in time" : "answered", "mean ms", "p99",
           "switches", "hedged", "price", "cost s", "regret s");
    for (size_t i = 0; i < j->n_replays; i++) {
        const nori_replay_result *r = &j->replay[i].r;
        printf("%-8s %8.2f %% %9.4g %9.4g %9llu %8llu %8.4g %11.6g %11.6g%s\n", j->replay[i].name,
               100.0 * (double)r->hits / (double)r->calls, 1e3 * r->mean_s, 1e3 * r->p99_s,
               (unsigned long long)r->switches, (unsigned long long)r->hedged, r->price, r->cost_s,
               r->regret_s, j->replay[i].placed ? "  placed here" : "");
    }
}

void place_json_replay(const place_job *j, cli_json *w)
{
    if (j->n_replays == 0) {
        return;
    }
    cli_json_object(w, "replay");
    cli_json_uint(w, "calls", j->n_calls);
    for (size_t i = 0; i < j->n_replays; i++) {
        const nori_replay_result *r = &j->replay[i].r;
        cli_json_object(w, j->replay[i].name);
        cli_json_uint(w, "hits", r->hits);
        cli_json_number(w, "mean_ms", 1e3 * r->mean_s, 6);
        cli_json_number(w, "p99_ms", 1e3 * r->p99_s, 6);
        cli_json_uint(w, "switches", r->switches);
        cli_json_uint(w, "hedged", r->hedged);
        cli_json_uint(w, "lost", r->lost);
        cli_json_number(w, "price", r->price, 6);
        cli_json_number(w, "cost_s", r->cost_s, 9);
        cli_json_number(w, "regret_s", r->regret_s, 9);
        cli_json_end(w);
    }
    cli_json_end(w);
}

void place_page_replay(const place_job *j, cli_page *p)
{
    const char *names[5];
    double values[5];
    if (j->n_replays == 0) {
        return;
    }
    cli_page_section(p, "Calls of the past");
    cli_page_table(p, "decided by|>in time|>mean ms|>p99|>switches|>hedged|>price|>cost s|>regret s");
    for (size_t i = 0; i < j->n_replays; i++) {
        const nori_replay_result *r = &j->replay[i].r;
        names[i] = j->replay[i].name;
        values[i] = r->regret_s;
        cli_page_row(p);
        cli_page_cell(p, "%s", j->replay[i].name);
        cli_page_cell(p, "%.2f %%", 100.0 * (double)r->hits / (double)r->calls);
        cli_page_cell(p, "%.4g", 1e3 * r->mean_s);
        cli_page_cell(p, "%.4g", 1e3 * r->p99_s);
        cli_page_cell(p, "%llu", (unsigned long long)r->switches);
        cli_page_cell(p, "%llu", (unsigned long long)r->hedged);
        cli_page_cell(p, "%.4g", r->price);
        cli_page_cell(p, "%.6g", r->cost_s);
        cli_page_cell(p, "%.6g", r->regret_s);
    }
    cli_page_table_end(p);
    const cli_chart chart = {.title = "Cost above that of an oracle that knows the future", .x = "s"};
    cli_page_bars(p, &chart, names, values, j->n_replays, NULL, 1);
}

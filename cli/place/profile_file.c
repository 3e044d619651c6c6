/* profile_file.c: a profile as JSON, written and read. Times in milliseconds, rates a second. What is
 * read may be written by hand: a time may be a number, or an object with rising "p" and "ms". */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"

/* ---- writing ---- */

static void write_times(cli_json *w, const char *key, const profile_times *t)
{
    if (t->count == 0) {
        return;
    }
    cli_json_object(w, key);
    cli_json_uint(w, "count", t->count);
    cli_json_number(w, "mean_ms", 1e3 * t->mean, 6);
    cli_json_array(w, "p");
    for (int i = 0; i < PROFILE_SHARES; i++) {
        cli_json_number(w, NULL, 100 * profile_shares[i], 6);
    }
    cli_json_end(w);
    cli_json_array(w, "ms");
    for (int i = 0; i < PROFILE_SHARES; i++) {
        cli_json_number(w, NULL, 1e3 * t->at[i], 6);
    }
    cli_json_end(w);
    cli_json_end(w);
}

static void write_device(cli_json *w, const profile *p)
{
    cli_json_string(w, "provider", p->provider ? p->provider : "");
    cli_json_string(w, "cpu", p->cpu ? p->cpu : "");
    cli_json_int(w, "threads", p->threads);
    cli_json_number(w, "memory_bytes", p->memory, 15);
    cli_json_number(w, "load_ms", 1e3 * p->load_s, 6);
    cli_json_number(w, "create_ms", 1e3 * p->create_s, 6);
    cli_json_number(w, "first_ms", 1e3 * p->first_s, 6);
    cli_json_number(w, "cold_ms", 1e3 * (p->load_s + p->create_s + p->first_s), 6);
    write_times(w, "steady", &p->steady);
    if (p->loaded.count > 0) {
        cli_json_number(w, "load_minutes", p->minutes, 6);
        write_times(w, "under_load", &p->loaded);
    }
    cli_json_array(w, "callers");
    for (size_t i = 0; i < p->n_callers; i++) {
        cli_json_object(w, NULL);
        cli_json_int(w, "callers", p->callers[i].callers);
        cli_json_number(w, "calls_per_s", p->callers[i].rate, 6);
        write_times(w, "times", &p->callers[i].times);
        cli_json_end(w);
    }
    cli_json_end(w);
    cli_json_array(w, "nodes");
    for (size_t i = 0; i < p->n_nodes; i++) {
        cli_json_object(w, NULL);
        cli_json_string(w, "value", p->nodes[i].value);
        cli_json_string(w, "op", p->nodes[i].op);
        cli_json_number(w, "ms", 1e3 * p->nodes[i].s, 6);
        cli_json_end(w);
    }
    cli_json_end(w);
}

static void write_cloud(cli_json *w, const profile *p)
{
    cli_json_string(w, "url", p->url ? p->url : "");
    cli_json_bool(w, "reported_by_server", p->reported);
    cli_json_number(w, "first_ms", 1e3 * p->first_s, 6);
    cli_json_number(w, "up_bytes", p->up_bytes, 15);
    cli_json_number(w, "down_bytes", p->down_bytes, 15);
    if (p->up_speed > 0) {
        cli_json_number(w, "up_bytes_per_s", p->up_speed, 6);
    }
    if (p->down_speed > 0) {
        cli_json_number(w, "down_bytes_per_s", p->down_speed, 6);
    }
    write_times(w, "service", &p->service);
    write_times(w, "queue", &p->queue);
    write_times(w, "rtt", &p->rtt);
    write_times(w, "connect", &p->connect);
    write_times(w, "up", &p->up);
    write_times(w, "down", &p->down);
    write_times(w, "total", &p->total);
}

void profile_write(const profile *p, FILE *f)
{
    cli_json w;
    cli_json_begin(&w, f);
    cli_json_int(&w, "nori_profile", 1);
    cli_json_string(&w, "side", p->cloud ? "cloud" : "device");
    cli_json_string(&w, "model", p->model ? p->model : "");
    cli_json_number(&w, "model_bytes", p->model_bytes, 15);
    cli_json_number(&w, "activation_bytes", p->activation_bytes, 15);
    cli_json_number(&w, "input_bytes", p->input_bytes, 15);
    cli_json_number(&w, "output_bytes", p->output_bytes, 15);
    if (p->cloud) {
        write_cloud(&w, p);
    } else {
        write_device(&w, p);
    }
    cli_json_finish(&w);
}

/* ---- reading ---- */

#ifdef NORI_WITH_JANSSON
#include <jansson.h>

/* What a file of at most so many bytes may be: nodes of the largest models fit. */
#define FILE_MOST ((size_t)64 << 20)

typedef struct reader {
    const cli_args *args;
    const char *path;
    bool ok;
} reader;

static void bad(reader *r, const char *key, const char *expected)
{
    if (r->ok) {
        cli_fail_text(r->args, NORI_ERROR_DATA, "%s: \"%s\": %s was expected", r->path, key, expected);
    }
    r->ok = false;
}

static double number(reader *r, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    if (v && (!json_is_number(v) || !isfinite(json_number_value(v)) || json_number_value(v) < 0)) {
        bad(r, key, "a number of at least 0");
    }
    return v && json_is_number(v) ? json_number_value(v) : 0;
}

static char *text(reader *r, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    if (v && !json_is_string(v)) {
        bad(r, key, "text");
    }
    return strdup(json_is_string(v) ? json_string_value(v) : "");
}

/* Other shares than ours are read off straight lines between those given. */
static void resample(profile_times *t, const double *p, const double *v, size_t count)
{
    for (int i = 0; i < PROFILE_SHARES; i++) {
        size_t k = 0;
        while (k < count && p[k] < profile_shares[i]) {
            k++;
        }
        t->at[i] = k == 0       ? v[0]
                   : k == count ? v[count - 1]
                   : v[k - 1] + (v[k] - v[k - 1]) * (profile_shares[i] - p[k - 1]) / (p[k] - p[k - 1]);
    }
}

static void times(reader *r, const json_t *o, const char *key, profile_times *t)
{
    static const char expected[] = "a number of milliseconds, or {\"p\": [50, 99], \"ms\": [5, 9]} with "
                                   "rising percentiles and times (at most 64)";
    const json_t *v = json_object_get(o, key);
    double p[64], ms[64];
    if (!v) {
        return;
    }
    if (json_is_number(v)) {
        t->count = 1;
        t->mean = number(r, o, key) / 1e3;
        for (int i = 0; i < PROFILE_SHARES; i++) {
            t->at[i] = t->mean;
        }
        return;
    }
    const json_t *shares = json_object_get(v, "p"), *values = json_object_get(v, "ms");
    size_t n = json_array_size(shares);
    if (n == 0 || n > 64 || json_array_size(values) != n) {
        bad(r, key, expected);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *a = json_array_get(shares, i), *b = json_array_get(values, i);
        p[i] = json_number_value(a) / 100;
        ms[i] = json_number_value(b) / 1e3;
        bool rising = i == 0 || (p[i] > p[i - 1] && ms[i] >= ms[i - 1]);
        if (!json_is_number(a) || !json_is_number(b) || !(p[i] >= 0 && p[i] <= 1) || !isfinite(ms[i]) ||
            ms[i] < 0 || !rising) {
            bad(r, key, expected);
            return;
        }
    }
    resample(t, p, ms, n);
    double count = number(r, v, "count");
    t->count = count >= 1 && count < 1e15 ? (size_t)count : 1;
    t->mean = number(r, v, "mean_ms") / 1e3;
    nori_times as = {{0}};
    if (json_object_get(v, "mean_ms") == NULL && profile_as_times(t, &as)) {
        t->mean = nori_times_mean(&as);
    }
}

static void read_nodes(reader *r, const json_t *list, profile *p)
{
    const json_t *o;
    size_t i, n = json_array_size(list);
    p->nodes = calloc(n + 1, sizeof(*p->nodes));
    json_array_foreach(list, i, o) {
        profile_node *node = p->nodes ? &p->nodes[i] : NULL;
        if (!node || !json_is_object(o)) {
            bad(r, "nodes", "a list of {\"value\": NAME, \"ms\": TIME}");
            return;
        }
        p->n_nodes = i + 1;
        node->value = text(r, o, "value");
        node->op = text(r, o, "op");
        node->s = number(r, o, "ms") / 1e3;
        if (!node->value || !node->op) {
            bad(r, "nodes", "a list that fits into memory");
            return;
        }
    }
}

static void read_callers(reader *r, const json_t *list, profile *p)
{
    const json_t *o;
    size_t i;
    json_array_foreach(list, i, o) {
        if (i == PROFILE_CALLERS) {
            bad(r, "callers", "a list of at most 16");
            return;
        }
        profile_callers *c = &p->callers[i];
        double n = number(r, o, "callers");
        c->callers = n >= 1 && n <= 1e6 ? (int)n : 1;
        c->rate = number(r, o, "calls_per_s");
        times(r, o, "times", &c->times);
        p->n_callers = i + 1;
    }
}

static void take(reader *r, const json_t *root, profile *p)
{
    char *side = text(r, root, "side");
    if (!side || (strcmp(side, "cloud") != 0 && strcmp(side, "device") != 0)) {
        bad(r, "side", "\"device\" or \"cloud\"");
    }
    p->cloud = side && strcmp(side, "cloud") == 0;
    free(side);
    p->model = text(r, root, "model");
    p->provider = text(r, root, "provider");
    p->cpu = text(r, root, "cpu");
    p->url = text(r, root, "url");
    const struct {
        const char *key;
        double *to, scale;
    } numbers[] = {
        {"model_bytes", &p->model_bytes, 1},   {"activation_bytes", &p->activation_bytes, 1},
        {"input_bytes", &p->input_bytes, 1},   {"output_bytes", &p->output_bytes, 1},
        {"memory_bytes", &p->memory, 1},       {"load_ms", &p->load_s, 1e-3},
        {"create_ms", &p->create_s, 1e-3},     {"first_ms", &p->first_s, 1e-3},
        {"load_minutes", &p->minutes, 1},      {"up_bytes", &p->up_bytes, 1},
        {"down_bytes", &p->down_bytes, 1},     {"up_bytes_per_s", &p->up_speed, 1},
        {"down_bytes_per_s", &p->down_speed, 1},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        *numbers[i].to = number(r, root, numbers[i].key) * numbers[i].scale;
    }
    const struct {
        const char *key;
        profile_times *to;
    } all[] = {{"steady", &p->steady}, {"under_load", &p->loaded}, {"service", &p->service},
               {"queue", &p->queue},   {"rtt", &p->rtt},           {"connect", &p->connect},
               {"up", &p->up},         {"down", &p->down},         {"total", &p->total}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        times(r, root, all[i].key, all[i].to);
    }
    p->reported = json_is_true(json_object_get(root, "reported_by_server"));
    read_callers(r, json_object_get(root, "callers"), p);
    read_nodes(r, json_object_get(root, "nodes"), p);
}

int profile_read(const cli_args *args, const char *path, profile *p)
{
    nori_error err = {0};
    json_error_t why;
    *p = (profile){0};
    FILE *f = cli_open(path, true, &err);
    if (!f) {
        return cli_fail(args, &err);
    }
    json_t *root = json_loadf(f, 0, &why);
    long end = ftell(f);
    fclose(f);
    if (!root || (end > 0 && (size_t)end > FILE_MOST)) {
        int code = root ? cli_fail_text(args, NORI_ERROR_LIMIT, "%s: no profile is so large", path)
                        : cli_fail_text(args, NORI_ERROR_FORMAT, "%s: line %d: %s; a profile of `nori "
                                        "profile` was expected", path, why.line, why.text);
        json_decref(root);
        return code;
    }
    reader r = {args, path, true};
    if (json_integer_value(json_object_get(root, "nori_profile")) != 1) {
        bad(&r, "nori_profile", "1, as `nori profile` writes it,");
    } else {
        take(&r, root, p);
    }
    json_decref(root);
    if (!r.ok) {
        profile_free(p);
    }
    return r.ok ? EXIT_YES : EXIT_BAD;
}
#else

int profile_read(const cli_args *args, const char *path, profile *p)
{
    *p = (profile){0};
    return cli_fail_text(args, NORI_ERROR_UNAVAILABLE, "%s: this nori was built without jansson: it cannot "
                         "read profiles", path);
}
#endif

/* serve_stats.c: what models did so far: as Triton's statistics extension says it, as Prometheus reads
 * it, and for who embeds the server. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "serve_internal.h"

const double nori__serve_bounds[SERVE_BUCKETS] = {1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2,
                                                  5e-2, 0.1,    0.25, 0.5,  1,      2.5,  5,    10};

void nori__serve_count(serve_times *times, uint64_t ns)
{
    size_t i = 0;
    while (i < SERVE_BUCKETS && (double)ns > nori__serve_bounds[i] * 1e9) {
        i++;
    }
    times->bucket[i]++;
    times->count++;
    times->ns += ns;
}

/* A consistent copy. */
static serve_counts copy_counts(serve_model *m, size_t *waiting, size_t *running)
{
    pthread_mutex_lock(&m->lock);
    serve_counts c = m->counts;
    *waiting = m->waiting;
    *running = m->running;
    pthread_mutex_unlock(&m->lock);
    return c;
}

int nori_serve_stats_at(nori_server *s, size_t index, nori_serve_stats *out)
{
    size_t waiting = 0, running = 0, size = out->size;
    serve_model *m = nori__serve_next(s, NULL);
    for (; m && index > 0; index--) {
        m = nori__serve_next(s, m);
    }
    if (!m) {
        return 0;
    }
    serve_counts c = copy_counts(m, &waiting, &running);
    nori_serve_stats full = {.size = size, .succeeded = c.total.count, .failed = c.failed,
                             .rejected = c.rejected, .expired = c.expired, .rows = c.rows, .runs = c.runs,
                             .queue_ns = c.queue.ns, .compute_ns = c.infer.ns, .waiting = waiting,
                             .running = running, .batches = m->batches};
    snprintf(full.model, sizeof(full.model), "%s", m->name);
    snprintf(full.version, sizeof(full.version), "%s", m->version);
    memcpy(out, &full, size < sizeof(full) ? size : sizeof(full));
    nori__serve_model_free(m);
    return 1;
}

/* ---- Triton's form ---- */

static void pair(serve_text *t, const char *name, uint64_t count, uint64_t ns, bool last)
{
    nori__serve_print(t, "\"%s\":{\"count\":%" PRIu64 ",\"ns\":%" PRIu64 "}%s", name, count, ns,
                      last ? "" : ",");
}

void nori__serve_model_stats(serve_model *m, serve_text *t)
{
    size_t waiting, running;
    bool first = true;
    serve_counts c = copy_counts(m, &waiting, &running);
    nori__serve_print(t, "{\"name\":");
    nori__serve_quote(t, m->name);
    nori__serve_print(t, ",\"version\":\"%s\",\"last_inference\":%" PRId64 ",\"inference_count\":%" PRIu64
                      ",\"execution_count\":%" PRIu64 ",\"inference_stats\":{",
                      m->version, c.last_ms, c.rows, c.runs);
    pair(t, "success", c.total.count, c.total.ns, false);
    pair(t, "fail", c.failed + c.expired + c.rejected, c.failed_ns, false);
    pair(t, "queue", c.queue.count, c.queue.ns, false);
    pair(t, "compute_input", c.input.count, c.input.ns, false);
    pair(t, "compute_infer", c.infer.count, c.infer.ns, false);
    pair(t, "compute_output", c.output.count, c.output.ns, false);
    pair(t, "cache_hit", 0, 0, false);
    pair(t, "cache_miss", 0, 0, true);
    nori__serve_print(t, "},\"batch_stats\":[");
    for (size_t i = 0; i < SERVE_BATCH_ROWS; i++) {
        const serve_batch_row *b = &c.batch[i];
        if (b->count == 0) {
            continue;
        }
        nori__serve_print(t, "%s{\"batch_size\":%" PRId64 ",", first ? "" : ",", b->rows);
        pair(t, "compute_input", b->count, b->input_ns, false);
        pair(t, "compute_infer", b->count, b->infer_ns, false);
        pair(t, "compute_output", b->count, b->output_ns, true);
        nori__serve_print(t, "}");
        first = false;
    }
    nori__serve_print(t, "],\"queue_now\":{\"waiting\":%zu,\"running\":%zu,\"capacity\":%d,\"workers\":%d}}",
                      waiting, running, m->server->options.queue, m->server->options.workers);
}

/* ---- Prometheus ---- */

typedef enum kind { COUNT_SUCCESS, COUNT_FAILED, COUNT_REJECTED, COUNT_EXPIRED, COUNT_ROWS, COUNT_RUNS,
                    WAITING, RUNNING } kind;

static uint64_t value_of(const serve_counts *c, kind k, size_t waiting, size_t running)
{
    switch (k) {
    case COUNT_SUCCESS: return c->total.count;
    case COUNT_FAILED: return c->failed;
    case COUNT_REJECTED: return c->rejected;
    case COUNT_EXPIRED: return c->expired;
    case COUNT_ROWS: return c->rows;
    case COUNT_RUNS: return c->runs;
    case WAITING: return waiting;
    default: return running;
    }
}

/* {model="...",version="..."; names only hold what needs no escape. */
static void labels(serve_text *t, const serve_model *m)
{
    nori__serve_print(t, "{model=\"%s\",version=\"%s\"", m->name, m->version);
}

static void family(serve_text *t, const char *name, const char *type, const char *help)
{
    nori__serve_print(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void per_model(serve_text *t, nori_server *s, const char *name, const char *type,
                      const char *help, kind k)
{
    family(t, name, type, help);
    for (serve_model *m = NULL; (m = nori__serve_next(s, m)) != NULL;) {
        size_t waiting, running;
        serve_counts c = copy_counts(m, &waiting, &running);
        nori__serve_print(t, "%s", name);
        labels(t, m);
        nori__serve_print(t, "} %" PRIu64 "\n", value_of(&c, k, waiting, running));
    }
}

static void histogram(serve_text *t, nori_server *s, const char *name, const char *help,
                      size_t offset)
{
    family(t, name, "histogram", help);
    for (serve_model *m = NULL; (m = nori__serve_next(s, m)) != NULL;) {
        size_t waiting, running;
        uint64_t sum = 0;
        serve_counts c = copy_counts(m, &waiting, &running);
        serve_times times;
        memcpy(&times, (const char *)&c + offset, sizeof(times));
        for (size_t k = 0; k <= SERVE_BUCKETS; k++) {
            sum += times.bucket[k];
            nori__serve_print(t, "%s_bucket", name);
            labels(t, m);
            if (k < SERVE_BUCKETS) {
                nori__serve_print(t, ",le=\"%g\"} %" PRIu64 "\n", nori__serve_bounds[k], sum);
            } else {
                nori__serve_print(t, ",le=\"+Inf\"} %" PRIu64 "\n", sum);
            }
        }
        nori__serve_print(t, "%s_sum", name);
        labels(t, m);
        nori__serve_print(t, "} %.9f\n%s_count", (double)times.ns / 1e9, name);
        labels(t, m);
        nori__serve_print(t, "} %" PRIu64 "\n", times.count);
    }
}

static void one(serve_text *t, const char *name, const char *type, const char *help, double value)
{
    family(t, name, type, help);
    nori__serve_print(t, "%s %.17g\n", name, value);
}

static void process(serve_text *t)
{
    struct rusage use;
    unsigned long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f) {
        if (fscanf(f, "%lu %lu", &pages, &resident) == 2) {
            one(t, "process_resident_memory_bytes", "gauge", "Memory the process has.",
                (double)resident * (double)sysconf(_SC_PAGESIZE));
        }
        fclose(f);
    }
    if (getrusage(RUSAGE_SELF, &use) == 0) {
        one(t, "process_cpu_seconds_total", "counter", "CPU time the process took.",
            (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6);
    }
}

void nori__serve_metrics(nori_server *s, serve_text *t)
{
    per_model(t, s, "nori_requests_success_total", "counter", "Requests answered.", COUNT_SUCCESS);
    per_model(t, s, "nori_requests_failed_total", "counter", "Requests whose run failed.",
              COUNT_FAILED);
    per_model(t, s, "nori_requests_rejected_total", "counter", "Requests refused: queue full.",
              COUNT_REJECTED);
    per_model(t, s, "nori_requests_expired_total", "counter", "Requests whose time was over.",
              COUNT_EXPIRED);
    per_model(t, s, "nori_rows_total", "counter", "Inferences: rows along a batch.", COUNT_ROWS);
    per_model(t, s, "nori_runs_total", "counter", "Runs, each of one request or several.",
              COUNT_RUNS);
    per_model(t, s, "nori_queue_size", "gauge", "Requests that wait.", WAITING);
    per_model(t, s, "nori_running", "gauge", "Requests being run.", RUNNING);
    histogram(t, s, "nori_request_duration_seconds", "Body read until answer written.",
              offsetof(serve_counts, total));
    histogram(t, s, "nori_queue_duration_seconds", "Time in the queue.",
              offsetof(serve_counts, queue));
    histogram(t, s, "nori_compute_duration_seconds", "Time of the run.",
              offsetof(serve_counts, infer));
    family(t, "nori_model_ready", "gauge", "1: the model answers.");
    for (serve_model *m = NULL; (m = nori__serve_next(s, m)) != NULL;) {
        pthread_mutex_lock(&m->lock);
        int ready = m->state == SERVE_READY;
        pthread_mutex_unlock(&m->lock);
        nori__serve_print(t, "nori_model_ready");
        labels(t, m);
        nori__serve_print(t, "} %d\n", ready);
    }
    one(t, "nori_queue_capacity", "gauge", "Requests that may wait, of each model.", s->options.queue);
    one(t, "nori_ready", "gauge", "1: the server is ready.", nori_serve_ready(s));
    pthread_mutex_lock(&s->clients_lock);
    size_t connections = s->client_count;
    pthread_mutex_unlock(&s->clients_lock);
    one(t, "nori_connections", "gauge", "Connections.", (double)connections);
    one(t, "nori_body_bytes", "gauge", "Bytes of bodies held.", (double)atomic_load(&s->body_bytes));
    family(t, "nori_http_responses_total", "counter", "Answers by class of their code.");
    for (int i = 2; i < 6; i++) {
        nori__serve_print(t, "nori_http_responses_total{code=\"%dxx\"} %" PRIu64 "\n", i,
                          (uint64_t)atomic_load(&s->http[i]));
    }
    process(t);
}

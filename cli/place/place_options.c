/* place_options.c: what `nori place` is told, as a question. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place_job.h"

/* ---- times ---- */

static bool quantity(const cli_args *args, const char *name, const char *text, nori_quantity kind,
                     double *out)
{
    nori_error err = {0};
    if (nori_quantity_parse(text, kind, out, &err) == NORI_OK) {
        return true;
    }
    cli_usage(args, "%s %s%s%s", name, err.message, err.hint[0] ? ": " : "", err.hint);
    return false;
}

static bool option(const cli_args *args, const char *name, nori_quantity kind, double *out)
{
    const char *text = cli_value(args, name);
    return !text || quantity(args, name, text, kind, out);
}

/* "p50=5ms,p99=40ms" */
static bool percentiles(const cli_args *args, const char *name, const char *text, nori_times *out)
{
    double p[16], v[16];
    char part[64];
    size_t count = 0;
    nori_error err = {0};
    while (*text && count < 16) {
        size_t n = strcspn(text, ",");
        const char *equals = memchr(text, '=', n);
        char *end = NULL;
        p[count] = *text == 'p' ? strtod(text + 1, &end) / 100 : NAN;
        if (!equals || end != equals || n - (size_t)(equals + 1 - text) >= sizeof(part)) {
            cli_usage(args, "%s \"%s\": percentiles as p50=5ms,p99=40ms were expected", name, text);
            return false;
        }
        snprintf(part, sizeof(part), "%.*s", (int)(n - (size_t)(equals + 1 - text)), equals + 1);
        if (!quantity(args, name, part, NORI_QUANTITY_TIME, &v[count++])) {
            return false;
        }
        text += n + (text[n] == ',');
    }
    if (*text) {
        cli_usage(args, "%s: at most 16 percentiles were expected", name);
        return false;
    }
    if (nori_times_percentiles(out, p, v, count, &err) != NORI_OK) {
        cli_usage(args, "%s: %s", name, err.message);
        return false;
    }
    return true;
}

/* A time that is always the same, "exp:10ms" (exponential), or percentiles. */
static bool times(const cli_args *args, const char *name, nori_times *out, int *given)
{
    const char *text = cli_value(args, name);
    double v;
    if (!text) {
        return true;
    }
    if (given) {
        *given = 1;
    }
    if (strncmp(text, "exp:", 4) == 0) {
        if (!quantity(args, name, text + 4, NORI_QUANTITY_TIME, &v)) {
            return false;
        }
        nori_times_exponential(out, v);
        return true;
    }
    if (text[0] == 'p' && strchr(text, '=')) {
        return percentiles(args, name, text, out);
    }
    if (!quantity(args, name, text, NORI_QUANTITY_TIME, &v)) {
        return false;
    }
    nori_times_constant(out, v);
    return true;
}

/* ---- the rest ---- */

static bool sides(place_job *j)
{
    nori_place_question *q = &j->question;
    const cli_args *args = j->args;
    long edge_servers, cloud_servers;
    if (!times(args, "--edge", &q->edge.service, &q->edge.there) ||
        !times(args, "--cloud", &q->cloud.service, &q->cloud.there) ||
        !times(args, "--queue", &q->cloud.queue, &q->cloud.has_queue) ||
        !times(args, "--edge-queue", &q->edge.queue, &q->edge.has_queue) ||
        !cli_number(args, "--edge-servers", 1, 1000000, 1, &edge_servers) ||
        !cli_number(args, "--cloud-servers", 1, 1000000, 1, &cloud_servers) ||
        !option(args, "--edge-memory", NORI_QUANTITY_BYTES, &q->edge.memory) ||
        !option(args, "--cloud-memory", NORI_QUANTITY_BYTES, &q->cloud.memory) ||
        !option(args, "--edge-energy", NORI_QUANTITY_ENERGY, &q->edge.energy) ||
        !option(args, "--cloud-energy", NORI_QUANTITY_ENERGY, &q->cloud.energy)) {
        return false;
    }
    q->edge.servers = cli_has(args, "--edge-servers") || !q->edge.servers ? (int)edge_servers
                                                                         : q->edge.servers;
    q->cloud.servers = cli_has(args, "--cloud-servers") || !q->cloud.servers ? (int)cloud_servers
                                                                            : q->cloud.servers;
    q->edge.disagrees = cli_has(args, "--edge-disagrees");
    q->cloud.disagrees = cli_has(args, "--cloud-disagrees");
    return true;
}

static bool link_terms(place_job *j)
{
    nori_place_question *q = &j->question;
    const cli_args *args = j->args;
    return option(args, "--speed", NORI_QUANTITY_SPEED, &q->up_speed) &&
           option(args, "--speed", NORI_QUANTITY_SPEED, &q->down_speed) &&
           option(args, "--up-speed", NORI_QUANTITY_SPEED, &q->up_speed) &&
           option(args, "--down-speed", NORI_QUANTITY_SPEED, &q->down_speed) &&
           option(args, "--up-bytes", NORI_QUANTITY_BYTES, &q->up_bytes) &&
           option(args, "--down-bytes", NORI_QUANTITY_BYTES, &q->down_bytes) &&
           times(args, "--up", &q->up, NULL) && times(args, "--down", &q->down, NULL) &&
           times(args, "--rtt", &q->rtt, NULL);
}

/* Prices are told for 1,000 calls. */
static bool price(const cli_args *args, const char *name, double *out)
{
    const char *text = cli_value(args, name);
    char *end;
    double v = text ? strtod(text, &end) : 0;
    if (text && (end == text || *end || !isfinite(v) || v < 0)) {
        cli_usage(args, "%s \"%s\": what 1,000 calls cost was expected, a number from 0 on", name, text);
        return false;
    }
    *out = v / 1000;
    return true;
}

static bool rules(place_job *j)
{
    nori_place_question *q = &j->question;
    const cli_args *args = j->args;
    const char *text = cli_value(args, "--percentile");
    if (text) {
        char *end;
        double p = strtod(text, &end);
        if (end == text || *end || !(p > 0 && p < 100)) {
            cli_usage(args, "--percentile \"%s\": a number between 0 and 100 was expected", text);
            return false;
        }
        q->percentile = p / 100;
    }
    q->raw_stays = cli_has(args, "--raw-stays");
    q->features_stay = cli_has(args, "--features-stay");
    q->offline = cli_has(args, "--offline");
    return option(args, "--rate", NORI_QUANTITY_RATE, &q->rate) &&
           option(args, "--cloud-rate", NORI_QUANTITY_RATE, &q->cloud_rate) &&
           option(args, "--deadline", NORI_QUANTITY_TIME, &q->deadline) &&
           option(args, "--model-bytes", NORI_QUANTITY_BYTES, &q->model_bytes) &&
           option(args, "--activation-bytes", NORI_QUANTITY_BYTES, &q->activation_bytes) &&
           option(args, "--max-energy", NORI_QUANTITY_ENERGY, &q->most_energy) &&
           price(args, "--edge-price", &q->edge.price) &&
           price(args, "--cloud-price", &q->cloud.price) &&
           price(args, "--max-price", &q->most_price);
}

/* Payload, size and activations as the model says, where nothing else was told. */
static int ask_model(place_job *j)
{
    nori_place_question *q = &j->question;
    nori_costs *costs = NULL;
    nori_cost_total total = {.size = sizeof(total)};
    nori_error err = {0};
    int code = cli_load(j->args, &j->model);
    code = code == EXIT_YES ? cli_session(j->args, j->model, 0, &j->session) : code;
    if (code == EXIT_YES) {
        j->n_in = nori_session_input_count(j->session);
        j->in = calloc(j->n_in + 1, sizeof(*j->in));
        code = j->in ? cli_inputs(j->args, j->session, NULL, 0, j->in)
                     : cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
    }
    if (code == EXIT_YES && nori_session_costs(j->session, (const nori_tensor *const *)j->in, j->n_in,
                                               &costs, &err) != NORI_OK) {
        code = cli_fail(j->args, &err);
    }
    if (code == EXIT_YES) {
        nori_costs_total(costs, &total);
        q->model_bytes = (double)nori_model_file_bytes(j->model);
        q->activation_bytes = (double)total.activation_bytes;
        q->up_bytes = 0;
        for (size_t i = 0; i < j->n_in; i++) { /* those with a default stay at home */
            q->up_bytes += j->in[i] ? (double)nori_tensor_bytes(j->in[i]) : 0;
        }
        q->down_bytes = (double)total.output_bytes;
    }
    nori_costs_free(costs);
    return code;
}

/* ---- sweeps ---- */

static const struct {
    const char *what;
    nori_quantity kind;
    const char *unit;
} sweeps[] = {
    {"bandwidth", NORI_QUANTITY_SPEED, "MB/s"},
    {"payload", NORI_QUANTITY_BYTES, "kB"},
    {"rtt", NORI_QUANTITY_TIME, "ms"},
    {"rate", NORI_QUANTITY_RATE, "/s"},
};

const char *place_sweep_unit(const place_sweep *s)
{
    size_t i = 0;
    while (strcmp(sweeps[i].what, s->what) != 0) {
        i++;
    }
    return sweeps[i].unit;
}

static int bad_sweep(const cli_args *args, const char *text)
{
    return cli_usage(args, "--sweep \"%s\": bandwidth, payload, rtt or rate, and a range were "
                     "expected, as bandwidth=1MB/s..50MB/s", text);
}

static int read_sweep(place_job *j)
{
    const char *text = cli_value(j->args, "--sweep");
    long steps;
    if (!cli_number(j->args, "--steps", 2, 1000, 11, &steps)) {
        return EXIT_USAGE;
    }
    if (!text) {
        return cli_has(j->args, "--steps") ? cli_usage(j->args, "--steps are those of --sweep")
                                           : EXIT_YES;
    }
    const char *equals = strchr(text, '='), *dots = equals ? strstr(equals, "..") : NULL;
    char from[64];
    if (!dots || (size_t)(dots - equals) > sizeof(from)) {
        return bad_sweep(j->args, text);
    }
    snprintf(from, sizeof(from), "%.*s", (int)(dots - equals - 1), equals + 1);
    for (size_t i = 0; i < sizeof(sweeps) / sizeof(sweeps[0]); i++) {
        if (strlen(sweeps[i].what) == (size_t)(equals - text) &&
            strncmp(sweeps[i].what, text, (size_t)(equals - text)) == 0) {
            j->sweep = (place_sweep){.what = sweeps[i].what, .steps = (int)steps};
            if (!quantity(j->args, "--sweep", from, sweeps[i].kind, &j->sweep.from) ||
                !quantity(j->args, "--sweep", dots + 2, sweeps[i].kind, &j->sweep.to)) {
                return EXIT_USAGE;
            }
            return j->sweep.from > 0 && j->sweep.to > j->sweep.from
                       ? EXIT_YES
                       : cli_usage(j->args, "--sweep \"%s\": a rising range from above 0 was expected",
                                   text);
        }
    }
    return bad_sweep(j->args, text);
}

/* Steps of equal ratio: these quantities spread over decades. */
nori_place_question place_step(const place_job *j, int i, double *value)
{
    const place_sweep *s = &j->sweep;
    nori_place_question q = j->question;
    double v = s->from * pow(s->to / s->from, (double)i / (s->steps - 1));
    *value = v;
    if (strcmp(s->what, "bandwidth") == 0) {
        q.down_speed = q.up_speed > 0 ? q.down_speed * v / q.up_speed : v;
        q.up_speed = v;
    } else if (strcmp(s->what, "payload") == 0) {
        q.up_bytes = v;
    } else if (strcmp(s->what, "rtt") == 0) {
        nori_times_constant(&q.rtt, v);
    } else {
        q.cloud_rate = q.cloud_rate > 0 ? q.cloud_rate + v - q.rate : 0;
        q.rate = v;
    }
    return q;
}

int place_read(place_job *j)
{
    nori_place_question_default(&j->question);
    int code = j->args->count > 0 ? ask_model(j) : EXIT_YES;
    if (code != EXIT_YES) {
        return code;
    }
    code = place_profiles(j);
    if (code != EXIT_YES) {
        return code;
    }
    if (!sides(j) || !link_terms(j) || !rules(j)) {
        return EXIT_USAGE;
    }
    if (cli_has(j->args, "--replay")) {
        code = place_trace(j);
        if (code != EXIT_YES) {
            return code;
        }
    } else if (cli_has(j->args, "--late-cost") || cli_has(j->args, "--switch-cost") ||
               cli_has(j->args, "--lost")) {
        return cli_usage(j->args, "--late-cost, --switch-cost and --lost are those of --replay");
    }
    if (!j->question.edge.there && !j->question.cloud.there) {
        return cli_usage(j->args, "--edge TIME and --cloud TIME were expected: what a call takes on "
                                  "the device, and on a server; or profiles of them");
    }
    const nori_place_question *q = &j->question;
    const char *swept = cli_value(j->args, "--sweep");
    bool sweeps_speed = swept && strncmp(swept, "bandwidth=", 10) == 0;
    bool free_bytes = (cli_has(j->args, "--up-bytes") && q->up_speed == 0) ||
                      (cli_has(j->args, "--down-bytes") && q->down_speed == 0);
    if (j->args->count == 0 && !sweeps_speed && free_bytes) {
        return cli_usage(j->args, "bytes without a speed cost nothing: --speed 5MB/s was expected");
    }
    code = read_sweep(j);
    code = code == EXIT_YES ? place_divide(j) : code;
    return code == EXIT_YES ? place_payloads(j) : code;
}

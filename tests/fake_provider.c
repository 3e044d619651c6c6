/* fake_provider.c: the example provider with knobs, for tests of the split over providers:
 *     copy=NS,launch=NS,cost=NS   what things cost (cost: of each node)
 *     static=1                    only nodes of known sizes
 *     low=N,high=M                the range of a dimension named "N"
 *     serial=1                    nori takes turns; two runs at once are an error
 *     refuse=1                    claims, but compiles nothing
 *     broken=1                    compiling fails outright
 *     whole=1                     takes the whole model
 *     slow=MS                     a part takes this long to compile, told in ten steps; what comes out
 *                                 is kept in the session's folder
 *     version=N                   of the engine
 *     first=MS                    the first run takes this long more
 *     wrong=1                     the kernel of Neg is: what a part with one makes is 1 % off
 * Built with WITH_QUEUE its parts are started and finished; fake_pending says how many are between. */
#include <math.h>
#include <stdatomic.h>
#include <time.h>

#define nori_provider_entry example_entry
#include "../examples/provider/elementwise.c"
#undef nori_provider_entry

typedef struct fake {
    double copy, launch, cost, fixed, low, high, serial, refuse, broken, whole, slow, version, wrong,
        first;
    nori_provider_open how;
    nori_dim_range range;
    atomic_int running, runs;
} fake;

static nori_status fake_open(const nori_provider_open *how, void **self, nori_error *err)
{
    fake *f = calloc(1, sizeof(*f));
    const char *names[] = {"copy", "launch", "cost", "static", "low", "high", "serial", "refuse",
                           "broken", "whole", "slow", "version", "wrong", "first"};
    if (!f) {
        return fail(err, NORI_ERROR_MEMORY, "out of memory", "");
    }
    double *const values[] = {&f->copy, &f->launch, &f->cost, &f->fixed, &f->low, &f->high,
                              &f->serial, &f->refuse, &f->broken, &f->whole,  &f->slow,    &f->version,
                              &f->wrong, &f->first};
    for (const char *p = how->options; *p;) {
        size_t n = strcspn(p, "="), k = 0;
        while (k < sizeof(names) / sizeof(names[0]) &&
               (strlen(names[k]) != n || strncmp(names[k], p, n) != 0)) {
            k++;
        }
        if (k == sizeof(names) / sizeof(names[0]) || p[n] != '=') {
            free(f);
            return fail(err, NORI_ERROR_ARGUMENT, "no such option: ", p);
        }
        char *end;
        *values[k] = strtod(p + n + 1, &end);
        p = *end == ',' ? end + 1 : end;
    }
    f->how = *how;
    *self = f;
    return NORI_OK;
}

static nori_status fake_describe(void *self, nori_provider_info *info, nori_error *err)
{
    fake *f = self;
    (void)err;
    snprintf(info->label, sizeof(info->label), "fake");
    snprintf(info->engine, sizeof(info->engine), "fake engine 1.%d", (int)f->version);
    info->copy_in_fixed_ns = info->copy_out_fixed_ns = f->copy;
    info->launch_ns = f->launch;
    info->serial = f->serial != 0;
    f->range = (nori_dim_range){"N", (int64_t)f->low, (int64_t)f->high};
    info->ranges = &f->range;
    info->range_count = f->high > 0;
    return NORI_OK;
}

static nori_status fake_claim(void *self, const nori_node *node, nori_claim *c, nori_error *err)
{
    fake *f = self;
    nori_status status = claim(NULL, node, c, err);
    c->cost_ns = f->cost;
    c->static_only = f->fixed != 0;
    return status;
}

static nori_status fake_claim_model(void *self, nori_part *model, nori_claim *c, nori_error *err)
{
    fake *f = self;
    c->taken = f->whole != 0;
    for (size_t i = 0; i < nori_part_node_count(model) && c->taken; i++) {
        nori_claim one = {.size = sizeof(one)};
        claim(NULL, nori_part_node(model, i), &one, err);
        c->taken = one.taken;
        snprintf(c->reason, sizeof(c->reason), "%.100s", one.reason);
    }
    return NORI_OK;
}

/* What a real engine would compile, for as long as it was asked to take. */
static void build(const fake *f)
{
    const struct timespec step = {0, (long)(f->slow * 1e5)};
    nori_progress p = {.size = sizeof(p), .phase = "compile", .provider = "fake", .total = 10,
                       .text = "kernels"};
    for (; p.done < p.total; p.done++) {
        f->how.report(f->how.report_user, &p);
        nanosleep(&step, NULL);
    }
}

static nori_status fake_compile(void *self, nori_part *part, void **compiled, nori_error *err)
{
    fake *f = self;
    const void *bytes;
    size_t size;
    if (f->refuse != 0) {
        return fail(err, NORI_ERROR_UNSUPPORTED, "the fake engine refuses", "");
    }
    if (f->broken != 0) {
        return fail(err, NORI_ERROR_UNAVAILABLE, "the fake driver is missing", "");
    }
    nori_status status = nori_part_onnx(part, &bytes, &size, err);
    if (status == NORI_OK && size == 0) {
        return fail(err, NORI_ERROR_INTERNAL, "the part has no bytes", "");
    }
    if (status == NORI_OK && f->slow > 0 && !nori_part_load(part, "knobs 1", &bytes, &size)) {
        build(f);
        nori_part_store(part, "knobs 1", "compiled", 8);
    } else if (f->slow > 0 && (size != 8 || memcmp(bytes, "compiled", 8) != 0)) {
        return fail(err, NORI_ERROR_INTERNAL, "not what was kept", "");
    }
    return status == NORI_OK ? compile(NULL, part, compiled, err) : status;
}

/* What is made by a part that computes Neg is off, where that was asked for. */
static void spoil(const fake *f, const program *p, nori_call *call)
{
    int neg = 0;
    for (size_t k = 0; k < p->steps; k++) {
        neg = neg || p->step[k].code == 'n';
    }
    for (size_t i = 0; f->wrong != 0 && neg && i < p->n_out; i++) {
        nori_tensor *t = nori_call_output(call, i);
        float *v = t ? nori_tensor_data(t) : NULL;
        for (int64_t k = 0; v && k < nori_tensor_elements(t); k++) {
            v[k] *= 1.01f;
        }
    }
}

static nori_status fake_run(void *self, void *compiled, nori_call *call)
{
    fake *f = self;
    if (atomic_fetch_add(&f->running, 1) > 0 && f->serial != 0) {
        return fail(nori_call_error(call), NORI_ERROR_INTERNAL, "two runs at once", "");
    }
    if (f->first > 0 && atomic_fetch_add(&f->runs, 1) == 0) {
        nanosleep(&(struct timespec){(time_t)(f->first / 1e3), (long)fmod(f->first, 1e3) * 1000000L}, NULL);
    }
    nori_status status = run(NULL, compiled, call);
    spoil(f, compiled, call);
    atomic_fetch_sub(&f->running, 1);
    return status;
}

#ifdef WITH_QUEUE
/* ---- on a queue ---- */

NORI_API atomic_int fake_pending; /* started and not finished */
NORI_API atomic_int fake_starts;

typedef struct pending {
    float *made[MOST];
} pending;

/* Computes at once, but keeps it: until it is finished, outputs hold NaN. */
static nori_status fake_start(void *self, void *compiled, nori_call *call, void **started)
{
    const program *p = compiled;
    pending *q = calloc(1, sizeof(*q));
    nori_status status = q ? fake_run(self, compiled, call) : NORI_ERROR_MEMORY;
    for (size_t i = 0; status == NORI_OK && i < p->n_out; i++) {
        nori_tensor *t = nori_call_output(call, i);
        size_t bytes = (size_t)nori_tensor_elements(t) * sizeof(float);
        q->made[i] = malloc(bytes + 1);
        memcpy(q->made[i], nori_tensor_data(t), bytes);
        memset(nori_tensor_data(t), 0xff, bytes);
    }
    if (status != NORI_OK) {
        free(q);
        return status;
    }
    atomic_fetch_add(&fake_pending, 1);
    atomic_fetch_add(&fake_starts, 1);
    *started = q;
    return NORI_OK;
}

static nori_status fake_finish(void *self, void *compiled, void *started, nori_call *call)
{
    const program *p = compiled;
    pending *q = started;
    (void)self;
    for (size_t i = 0; i < p->n_out; i++) {
        nori_tensor *t = nori_call_output(call, i);
        memcpy(nori_tensor_data(t), q->made[i], (size_t)nori_tensor_elements(t) * sizeof(float));
        free(q->made[i]);
    }
    free(q);
    atomic_fetch_sub(&fake_pending, 1);
    return NORI_OK;
}
#endif

static const nori_provider fake_provider = {
    .size = sizeof(nori_provider), .name = "fake", .description = "for tests", .open = fake_open,
    .close = free, .describe = fake_describe, .claim_model = fake_claim_model,
    .claim = fake_claim, .compile = fake_compile, .run = fake_run, .free_part = free_part,
#ifdef WITH_QUEUE
    .start = fake_start, .finish = fake_finish,
#endif
};

NORI_API const nori_provider *nori_provider_entry(int abi);
const nori_provider *nori_provider_entry(int abi)
{
    return example_entry(abi) ? &fake_provider : NULL;
}

/* profile_cloud.c: the other side, seen from here: round trip, setting a connection up, the way of real
 * bytes there and back, and what the server's statistics say it took itself. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"
#include "remote.h"

#define CONNECTS 5
#define TRIPS 25
#define PAD_LEAST ((size_t)64 << 10) /* bytes that are sent along to find the speed of a way ... */
#define PAD_MOST ((size_t)4 << 20)
#define PAD_SHOWS 0.04               /* ... doubled until they cost so many seconds */

typedef struct far {
    profile_job *j;
    remote *r;
    remote_call call;
    nori_tensor **out;
} far;

static nori_status infer(far *f, size_t request, size_t both, remote_times *t, nori_error *err)
{
    f->call.pad_request = request;
    f->call.pad_both = both;
    nori_status s = remote_infer(f->r, &f->call, f->out, t, err);
    for (size_t i = 0; i < f->j->n_out; i++) {
        nori_tensor_free(f->out[i]);
        f->out[i] = NULL;
    }
    return s;
}

/* Connections of their own, then trips over one that stands. */
static nori_status trips(far *f, nori_error *err)
{
    profile *p = &f->j->p;
    profile_samples connect = {0}, rtt = {0};
    nori_status s = NORI_OK;
    remote_times t;
    for (int i = 0; s == NORI_OK && i < CONNECTS; i++) {
        remote *own = NULL;
        if (remote_open(f->j->args, f->j->args->positional[0], &own) != EXIT_YES) {
            s = remote_fail(err, NORI_ERROR_MEMORY, "out of memory");
            break;
        }
        s = remote_get(own, "/v2/health/live", NULL, &t, NULL, err);
        if (s == NORI_OK && !profile_add(&connect, t.connect)) {
            s = remote_fail(err, NORI_ERROR_MEMORY, "out of memory");
        }
        remote_free(own);
    }
    for (int i = 0; s == NORI_OK && i <= TRIPS; i++) {
        s = remote_get(f->r, "/v2/health/live", NULL, &t, NULL, err);
        if (s == NORI_OK && i > 0 && !profile_add(&rtt, t.total)) {
            s = remote_fail(err, NORI_ERROR_MEMORY, "out of memory");
        }
    }
    profile_settle(&connect, &p->connect);
    profile_settle(&rtt, &p->rtt);
    return s;
}

/* Bytes a second of a way from what more bytes cost: the slope leaves out all that is there without
 * them. both: bytes that come back, too, whose way there costs `known` seconds a byte. 0: it does not
 * show, or the server takes no such request. */
static double slope(far *f, bool both, double known)
{
    for (size_t pad = PAD_LEAST; pad <= PAD_MOST; pad *= 4) {
        double least[2] = {INFINITY, INFINITY};
        for (int i = 0; i < 6; i++) {
            size_t with = i % 2 ? pad : 0;
            remote_times t;
            nori_error err = {0};
            if (infer(f, both ? 0 : with, both ? with : 0, &t, &err) != NORI_OK) {
                return 0;
            }
            if (both && with && t.body_received < with) {
                return 0; /* this server does not repeat the id */
            }
            least[i % 2] = t.total < least[i % 2] ? t.total : least[i % 2];
        }
        double more = least[1] - least[0] - known * (double)pad;
        if ((more > PAD_SHOWS || pad == PAD_MOST) && more > 0) {
            return (double)pad / more;
        }
    }
    return 0;
}

/* Calls one after another, each between two looks at the server's counters. What the way took is the
 * rest; it is shared out by bytes and speeds. */
static nori_status calls(far *f, nori_error *err)
{
    profile *p = &f->j->p;
    profile_samples service = {0}, queue = {0}, total = {0}, up = {0}, down = {0};
    remote_stats before, after;
    remote_times t;
    nori_error none = {0};
    double trip = p->rtt.at[8], up_cost = p->up_speed > 0 ? 1 / p->up_speed : 0;
    double down_cost = p->down_speed > 0 ? 1 / p->down_speed : 0;
    p->reported = remote_statistics(f->r, &before, &none) == NORI_OK;
    nori_status s = NORI_OK;
    for (long i = 0; s == NORI_OK && i < f->j->runs; i++) {
        s = infer(f, 0, 0, &t, err);
        double own = 0, waited = 0;
        if (s == NORI_OK && p->reported && remote_statistics(f->r, &after, &none) == NORI_OK &&
            after.calls > before.calls) { /* others may call at the same time: their mean */
            double n = (double)(after.calls - before.calls);
            own = (double)(after.compute_ns - before.compute_ns) / n / 1e9;
            waited = (double)(after.queue_ns - before.queue_ns) / n / 1e9;
            before = after;
        }
        if (s != NORI_OK) {
            break;
        }
        double way = t.total - trip - own - waited;
        double back = (double)t.body_received * down_cost, there = (double)t.body_sent * up_cost;
        double share = there + back > 0 ? there / (there + back)
                                        : (double)t.body_sent /
                                              ((double)t.body_sent + (double)t.body_received);
        p->up_bytes = (double)t.body_sent;
        p->down_bytes = (double)t.body_received;
        if (!profile_add(&service, p->reported ? own : way) || !profile_add(&queue, waited) ||
            !profile_add(&total, t.total) || !profile_add(&up, p->reported ? way * share : there) ||
            !profile_add(&down, p->reported ? way * (1 - share) : back)) {
            s = remote_fail(err, NORI_ERROR_MEMORY, "out of memory");
        }
        cli_progress(f->j->args, "call %ld of %ld", i + 1, f->j->runs);
    }
    cli_progress_done(f->j->args);
    profile_settle(&service, &p->service);
    profile_settle(&queue, &p->queue);
    profile_settle(&total, &p->total);
    profile_settle(&up, &p->up);
    profile_settle(&down, &p->down);
    return s;
}

static nori_status measure(far *f, nori_error *err)
{
    profile *p = &f->j->p;
    remote_times t;
    nori_status s = trips(f, err);
    s = s == NORI_OK ? infer(f, 0, 0, &t, err) : s; /* the first one may load the model there */
    if (s == NORI_OK) {
        p->first_s = t.total;
        p->up_speed = slope(f, false, 0);
        p->down_speed = slope(f, true, p->up_speed > 0 ? 1 / p->up_speed : 0);
        s = calls(f, err);
    }
    return s;
}

int profile_cloud(profile_job *j)
{
    far f = {.j = j};
    nori_error err = {0};
    int code = remote_open(j->args, j->args->positional[0], &f.r);
    if (code != EXIT_YES) {
        return code;
    }
    j->p.cloud = true;
    j->p.url = strdup(remote_url(f.r));
    const nori_value_info **in = calloc(j->n_in + 1, sizeof(*in)), **out = calloc(j->n_out + 1,
                                                                                sizeof(*out));
    f.out = calloc(j->n_out + 1, sizeof(*f.out));
    if (!in || !out || !f.out || !j->p.url) {
        code = cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
    } else {
        for (size_t i = 0; i < j->n_in; i++) {
            in[i] = nori_session_input(j->session, i);
        }
        for (size_t i = 0; i < j->n_out; i++) {
            out[i] = nori_session_output(j->session, i);
        }
        f.call = (remote_call){.inputs = in, .tensors = (const nori_tensor *const *)j->in,
                               .n_in = j->n_in, .outputs = out, .n_out = j->n_out};
        code = measure(&f, &err) == NORI_OK ? EXIT_YES : cli_fail(j->args, &err);
    }
    free(in);
    free(out);
    free(f.out);
    remote_free(f.r);
    return code;
}

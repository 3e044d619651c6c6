/* place_print.c: a placement as text and as JSON. */
#include <math.h>
#include <string.h>

#include "place_job.h"

static const char *const names[] = {"nowhere", "edge", "cloud", "split"};

/* At a load of 1 or more a queue grows without end: what it is part of has no number. */
static double told(const nori_place_option *o, double v)
{
    return o->load >= 1 ? NAN : v;
}

/* ---- JSON ---- */

static void json_option(cli_json *w, const nori_place_option *o, bool deadline)
{
    cli_json_object(w, names[o->place]);
    cli_json_bool(w, "possible", o->possible);
    cli_json_string(w, "reason", o->reason);
    cli_json_number(w, "compute_ms", 1e3 * o->compute, 6);
    cli_json_number(w, "up_ms", 1e3 * o->up, 6);
    cli_json_number(w, "down_ms", 1e3 * o->down, 6);
    cli_json_number(w, "queue_ms", told(o, 1e3 * o->queue), 6);
    cli_json_number(w, "rtt_ms", 1e3 * o->rtt, 6);
    cli_json_number(w, "mean_ms", told(o, 1e3 * o->mean), 6);
    cli_json_number(w, "p50_ms", told(o, 1e3 * o->p50), 6);
    cli_json_number(w, "p95_ms", told(o, 1e3 * o->p95), 6);
    cli_json_number(w, "p99_ms", told(o, 1e3 * o->p99), 6);
    if (deadline) {
        cli_json_number(w, "within_deadline", told(o, o->within), 6);
    }
    cli_json_number(w, "load", o->load, 4);
    cli_json_string(w, "dominant", o->dominant ? o->dominant : "");
    cli_json_end(w);
}

static int print_json(const place_job *j)
{
    const nori_place_answer *a = &j->answer;
    cli_json w;
    cli_json_begin(&w, stdout);
    cli_json_string(&w, "place", names[a->place]);
    cli_json_number(&w, "gain_ms", 1e3 * a->gain, 6);
    cli_json_number(&w, "penalty_ms", 1e3 * a->penalty, 6);
    cli_json_number(&w, "saved_ms", 1e3 * a->saved, 6);
    cli_json_object(&w, "options");
    for (int i = 0; i < (j->question.can_split ? 3 : 2); i++) {
        json_option(&w, &a->option[i], j->question.deadline > 0);
    }
    cli_json_end(&w);
    cli_json_array(&w, "flips");
    for (int i = 0; i < 4; i++) {
        if (a->flip[i].flips) {
            cli_json_object(&w, NULL);
            cli_json_string(&w, "what", a->flip[i].what);
            cli_json_number(&w, "now", a->flip[i].now, 6);
            cli_json_number(&w, "at", a->flip[i].at, 6);
            cli_json_end(&w);
        }
    }
    cli_json_end(&w);
    if (a->inversion > 0) {
        cli_json_number(&w, "inversion_per_s", a->inversion, 5);
    }
    place_json_split(j, &w);
    place_json_replay(j, &w);
    if (j->sweep.what) {
        cli_json_array(&w, j->sweep.what);
        for (int i = 0; i < j->sweep.steps; i++) {
            double v;
            nori_place_question q = place_step(j, i, &v);
            nori_place_answer b = {.size = sizeof(b)};
            if (nori_place_decide(&q, &b, NULL) == NORI_OK) {
                cli_json_object(&w, NULL);
                cli_json_number(&w, "value", v, 6);
                cli_json_string(&w, "place", names[b.place]);
                cli_json_number(&w, "edge_ms", told(&b.option[0], 1e3 * b.option[0].mean), 6);
                cli_json_number(&w, "cloud_ms", told(&b.option[1], 1e3 * b.option[1].mean), 6);
                cli_json_end(&w);
            }
        }
        cli_json_end(&w);
    }
    cli_json_string(&w, "words", a->words);
    cli_json_finish(&w);
    return a->place == NORI_PLACE_NONE ? EXIT_NO : EXIT_YES;
}

/* ---- text ---- */

static void print_inequality(const place_job *j)
{
    const nori_place_option *e = &j->answer.option[0], *c = &j->answer.option[1];
    const nori_place_answer *a = &j->answer;
    static const char *const verdict[2][2] = {
        {"the edge wins", "by time alone the edge would win"},
        {"the cloud wins", "by time alone the cloud would win"}};
    bool edge = a->gain < a->penalty;
    if (e->load >= 1 || c->load >= 1) { /* a term of it has no end */
        return;
    }
    printf("t_edge - t_cloud  %s  up + down + queue + round trip\n", edge ? "<" : ">=");
    printf("%.4g - %.4g = %.4g ms  %s  %.4g + %.4g + %.4g + %.4g = %.4g ms: %s\n\n",
           1e3 * (e->compute + e->queue), 1e3 * c->compute, 1e3 * a->gain, edge ? "<" : ">=",
           1e3 * c->up, 1e3 * c->down, 1e3 * c->queue, 1e3 * c->rtt, 1e3 * a->penalty,
           verdict[!edge][!(edge ? e : c)->possible]);
}

static void print_cell(int width, double v)
{
    if (isnan(v)) {
        printf(" %*s", width, "-");
    } else {
        printf(" %*.4g", width, v);
    }
}

static void print_options(const place_job *j)
{
    bool deadline = j->question.deadline > 0;
    printf("%-6s %10s %9s %9s %9s %9s %10s %10s %10s%s\n", "", "compute", "up", "down", "queue",
           "rtt", "mean ms", "p95", "p99", deadline ? "  in time" : "");
    for (int i = 0; i < (j->question.can_split ? 3 : 2); i++) {
        const nori_place_option *o = &j->answer.option[i];
        const double cells[] = {o->compute,          o->up,           o->down,
                                told(o, o->queue),   o->rtt,          told(o, o->mean),
                                told(o, o->p95),     told(o, o->p99)};
        bool there = i == 0 ? j->question.edge.there : j->question.cloud.there;
        printf("%-6s", names[o->place]);
        for (int k = 0; k < 8; k++) {
            print_cell(k == 0 || k > 4 ? 10 : 9, there ? 1e3 * cells[k] : NAN);
        }
        if (deadline && there && !isnan(told(o, 0))) {
            printf(" %7.2f %%", 100 * o->within);
        } else if (deadline) {
            printf(" %9s", "-");
        }
        printf("%s%s\n", o->possible ? "" : "  no: ", o->reason);
    }
}

static void print_flips(const nori_place_answer *a)
{
    static const struct {
        double scale;
        const char *unit;
    } shown[] = {{1e-6, "MB/s"}, {1e-3, "kB"}, {1e3, "ms"}, {1, "calls/s"}};
    bool any = false;
    for (int i = 0; i < 4; i++) {
        const nori_place_flip *f = &a->flip[i];
        if (f->flips) {
            printf("%s", any ? "" : "\nthe answer turns, all else unchanged,\n");
            any = true;
            printf("  at a %-10s of %.4g %s, now %.4g (%.3g times)\n", f->what, f->at * shown[i].scale,
                   shown[i].unit, f->now * shown[i].scale, f->at / f->now);
        }
    }
    if (a->inversion > 0) {
        printf("%s  from %.4g calls a second the device's own queue makes it lose\n",
               any ? "" : "\n", a->inversion);
    }
}

static void print_sweep(const place_job *j)
{
    const char *unit = place_sweep_unit(&j->sweep);
    double scale = strcmp(unit, "MB/s") == 0 ? 1e-6 : strcmp(unit, "kB") == 0 ? 1e-3
                   : strcmp(unit, "ms") == 0 ? 1e3 : 1;
    printf("\n%9s %-4s %12s %12s  place\n", j->sweep.what, unit, "edge ms", "cloud ms");
    for (int i = 0; i < j->sweep.steps; i++) {
        double v;
        nori_place_question q = place_step(j, i, &v);
        nori_place_answer b = {.size = sizeof(b)};
        if (nori_place_decide(&q, &b, NULL) == NORI_OK) {
            printf("%14.4g", v * scale);
            print_cell(12, told(&b.option[0], 1e3 * b.option[0].mean));
            print_cell(12, told(&b.option[1], 1e3 * b.option[1].mean));
            printf("  %s\n", names[b.place]);
        }
    }
}

int place_print(const place_job *j)
{
    const nori_place_question *q = &j->question;
    if (j->args->json) {
        return print_json(j);
    }
    if (!j->args->quiet) {
        if (q->edge.there && q->cloud.there) {
            print_inequality(j);
        }
        print_options(j);
        print_flips(&j->answer);
        place_print_split(j);
        place_print_replay(j);
        if (j->sweep.what) {
            print_sweep(j);
        }
        printf("\n");
    }
    printf("%s\n", j->answer.words);
    return j->answer.place == NORI_PLACE_NONE ? EXIT_NO : EXIT_YES;
}

/* graph_main.c: nori-graphs, random graphs run in many ways.
 *
 *     nori-graphs [--count N] [--seed N] [--nodes N] [--ort LIBRARY] [--keep FOLDER] [--state FILE]
 *     nori-graphs [--ort LIBRARY] --replay FOLDER ...     cases that were kept; a folder holds
 * model.onnx and input_N.pb
 *
 * The first fault of each kind is made small and kept in FOLDER/SEED; exit code 1 then. --state
 * continues where the last run with that file ended, and adds up what was run without a fault. */
#include <errno.h>
#include <malloc.h>
#include <unistd.h>

#include "graphs.h"

static struct {
    long count;
    unsigned long long seed;
    int nodes, most_faults;
    bool shrink;
    const char *ort, *keep, *state;
} o = {100, 1, 30, 5, true, NULL, "/tmp/nori-graphs", NULL};

/* What was run over all runs with one state file. */
static struct {
    unsigned long long next, graphs, nodes, clean, faults, runs, unsteady, ort_ran;
} total;

static void load_state(void)
{
    FILE *f = o.state ? fopen(o.state, "r") : NULL;
    total.next = o.seed;
    if (f) {
        if (fscanf(f,
                   "next %llu graphs %llu nodes %llu clean %llu faults %llu runs %llu unsteady "
                   "%llu ort %llu",
                   &total.next, &total.graphs, &total.nodes, &total.clean, &total.faults,
                   &total.runs, &total.unsteady, &total.ort_ran) != 8) {
            fprintf(stderr, "nori-graphs: %s is no state\n", o.state);
            exit(2);
        }
        fclose(f);
    }
}

static void save_state(void)
{
    char path[4200];
    if (!o.state) {
        return;
    }
    snprintf(path, sizeof(path), "%s.new", o.state);
    FILE *f = fopen(path, "w");
    bool fine = f != NULL;
    if (f) {
        fprintf(f,
                "next %llu graphs %llu nodes %llu clean %llu faults %llu runs %llu unsteady %llu "
                "ort %llu\n",
                total.next, total.graphs, total.nodes, total.clean, total.faults, total.runs,
                total.unsteady, total.ort_ran);
        fine = fclose(f) == 0 && rename(path, o.state) == 0;
    }
    if (!fine) { /* a count that is lost is worth nothing */
        fprintf(stderr, "nori-graphs: %s cannot be written: %s\n", o.state, strerror(errno));
        exit(2);
    }
}

static void show(const graph_case *c, const graphs_fault *f, const char *worker)
{
    printf("  %s: %s by %s: %s\n ", f->kind, worker, f->way, f->text);
    for (size_t i = 0; i < c->m.graph.nodes.count; i++) {
        printf(" %.*s", (int)c->m.graph.nodes.items[i].op_type.n,
               c->m.graph.nodes.items[i].op_type.p);
    }
    printf("\n");
    fflush(stdout);
}

static void keep(const char *name, graphs_workers *w, graph_case *c, graphs_fault *f)
{
    char folder[4200], why[2 * GRAPHS_TEXT];
    const char *worker = graphs_worker_name(w, f->worker);
    graph_case_write(o.keep, c, "cases of nori-graphs\n");
    snprintf(folder, sizeof(folder), "%s/%s", o.keep, name);
    snprintf(why, sizeof(why), "%s: %s by %s: %s\n", f->kind, worker, f->way, f->text);
    graph_case_write(folder, c, why);
    printf("%s: %zu nodes\n", folder, c->m.graph.nodes.count);
    show(c, f, worker);
    if (o.shrink) {
        graphs_shrink(w, c, f);
        snprintf(folder, sizeof(folder), "%s/%s-small", o.keep, name);
        snprintf(why, sizeof(why), "%s: %s by %s: %s\n", f->kind, worker, f->way, f->text);
        graph_case_write(folder, c, why);
        printf("%s: %zu nodes\n", folder, c->m.graph.nodes.count);
        show(c, f, worker);
    }
}

/* Runs a case by all workers, or by those that take graph n; whether it is free of faults. sets:
 * what was measured; freed. */
static bool try_case(graphs_workers *w, graph_case *c, graphs_sets *sets, const char *name,
                     bool everywhere, unsigned long long n)
{
    bool clean = true;
    size_t suspect = SIZE_MAX;
    for (size_t i = 0; i < graphs_workers_count(w); i++) {
        if (everywhere || graphs_worker_takes(w, i, n)) {
            graphs_worker_send(w, i, c);
        }
    }
    for (size_t i = 0; i < graphs_workers_count(w); i++) {
        graphs_answers answers;
        graphs_fault fault;
        if (!everywhere && !graphs_worker_takes(w, i, n)) {
            continue;
        }
        bool answered = graphs_worker_receive(w, i, &answers);
        for (size_t k = 0; k < answers.count; k++) {
            total.runs += answers.items[k].status == 0;
            total.ort_ran += graphs_worker_is_ort(w, i) && answers.items[k].status == 0;
        }
        if (suspect == SIZE_MAX && graphs_judge(c, sets, answered, &answers, &fault) &&
            (answered || !graphs_worker_is_ort(w, i))) {
            suspect = i;
        }
        graphs_answers_free(&answers);
    }
    graphs_sets_free(sets);
    if (suspect != SIZE_MAX) {
        graphs_fault fault;
        if (!graphs_faulty(w, suspect, c, &fault)) {
            total.unsteady++;
        } else if (!graphs_worker_is_ort(w, suspect) || !graphs_peer_differs(w, suspect, c, &fault)) {
            keep(name, w, c, &fault);
            clean = false;
        }
    }
    return clean;
}

static int replay(graphs_workers *w, int count, char **folders)
{
    int bad = 0;
    o.shrink = false;
    for (int i = 0; i < count; i++) {
        graph_case c;
        char why[GRAPHS_TEXT] = "";
        if (!graph_case_read(folders[i], &c, why)) {
            printf("%s: %s\n", folders[i], why);
            return 2;
        }
        graphs_sets sets;
        graphs_look look = {.noise = 99};
        bool fine = graphs_measure_case(&c, &sets, &look, false, why);
        if (fine) {
            fine = try_case(w, &c, &sets, "replayed", true, 0);
        } else {
            printf("%s: does not run by itself: %s\n", folders[i], why);
            graphs_sets_free(&sets);
        }
        printf("%s: %s\n", folders[i], fine ? "agrees" : "DISAGREES");
        bad += !fine;
        graph_case_free(&c);
    }
    return bad ? 1 : 0;
}

static int random_graphs(graphs_workers *w)
{
    int faults = 0;
    for (long k = 0; k < o.count && faults < o.most_faults; k++) {
        graph_case c;
        graphs_sets sets;
        char name[32];
        unsigned long long seed = total.next;
        total.next++;
        snprintf(name, sizeof(name), "%llu", seed);
        graph_draw(seed, o.nodes, &c, &sets);
        if (c.m.graph.outputs.count > 0) {
            size_t nodes = c.m.graph.nodes.count;
            bool clean = try_case(w, &c, &sets, name, false, seed);
            faults += !clean;
            total.faults += !clean;
            total.graphs++;
            total.nodes += nodes;
            total.clean = clean ? total.clean + 1 : 0;
        } else {
            graphs_sets_free(&sets);
        }
        graph_case_free(&c);
        if (k % 50 == 49 || k + 1 == o.count || faults == o.most_faults) {
            save_state();
        }
    }
    printf("%llu graphs of %.1f nodes, %llu runs, %llu by ONNX Runtime, %llu unsteady; %llu "
           "faults, %llu graphs "
           "since the last\n",
           total.graphs, total.graphs ? (double)total.nodes / (double)total.graphs : 0.0,
           total.runs, total.ort_ran, total.unsteady, total.faults, total.clean);
    graphs_peer_report();
    return faults ? 1 : 0;
}

static unsigned long long number(const char *name, const char *text)
{
    char *end = NULL;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno) {
        fprintf(stderr, "nori-graphs: %s takes a number, not %s\n", name, text);
        exit(2);
    }
    return n;
}

int main(int argc, char **argv)
{
    int first = 1, code;
    /* Sessions come and go by the thousand: their memory stays with the process. */
    mallopt(M_TRIM_THRESHOLD, 1 << 28);
    mallopt(M_MMAP_THRESHOLD, 1 << 26);
    mallopt(M_MXFAST, 0);
    if (argc > 1 && strcmp(argv[1], "--worker") == 0) {
        return graphs_worker_main(argc, argv);
    }
    bool cases = false;
    for (first = 1; first < argc && !cases; first += 2) {
        const char *name = argv[first], *value = first + 1 < argc ? argv[first + 1] : NULL;
        if (value && strcmp(name, "--replay") == 0) {
            cases = true; /* all that follows are folders */
            first--;
        } else if (value && strcmp(name, "--count") == 0) {
            o.count = (long)number(name, value);
        } else if (value && strcmp(name, "--seed") == 0) {
            o.seed = number(name, value);
        } else if (value && strcmp(name, "--nodes") == 0) {
            o.nodes = (int)number(name, value);
        } else if (value && strcmp(name, "--faults") == 0) {
            o.most_faults = (int)number(name, value);
        } else if (value && strcmp(name, "--ort") == 0) {
            o.ort = value;
        } else if (value && strcmp(name, "--keep") == 0) {
            o.keep = value;
        } else if (value && strcmp(name, "--state") == 0) {
            o.state = value;
        } else {
            fprintf(stderr,
                    "usage: nori-graphs [--count N] [--seed N] [--nodes N] [--faults N] [--ort "
                    "LIBRARY]\n"
                    "                   [--keep FOLDER] [--state FILE] [--replay FOLDER ...]\n");
            return 2;
        }
    }
    if (o.ort && access(o.ort, R_OK) != 0) {
        fprintf(stderr, "nori-graphs: %s: %s\n", o.ort, strerror(errno));
        return 2;
    }
    if (!cases) {
        load_state();
        save_state();
    }
    graphs_workers *w = graphs_workers_open(argv[0], o.ort);
    code = cases ? replay(w, argc - first, argv + first) : random_graphs(w);
    graphs_workers_close(w);
    return code;
}

/* graph_workers.c: processes that run graphs: one for each CPU level, one for what changes a model,
 * one for ONNX Runtime. What crosses is a length and bytes; tensors are TensorProto messages. A
 * process that ends over a graph is begun again. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graphs.h"
#include "platform/platform.h"
#include "tools/files/group_file.h"

enum { MOST_WORKERS = NORI__CPU_LEVELS + 2, SECONDS = 60 };

typedef struct worker {
    const char *name, *level;
    graphs_kind kind;
    pid_t process;
    int to, from;
} worker;

struct graphs_workers {
    worker items[MOST_WORKERS];
    size_t count;
    const char *program, *ort;
};

/* ---- bytes ---- */

static bool put(int fd, const void *bytes, size_t size)
{
    for (const char *p = bytes; size > 0;) {
        ssize_t n = write(fd, p, size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        p += n;
        size -= (size_t)n;
    }
    return true;
}

static bool get(int fd, void *bytes, size_t size)
{
    for (char *p = bytes; size > 0;) {
        ssize_t n = read(fd, p, size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        p += n;
        size -= (size_t)n;
    }
    return true;
}

static bool put_block(int fd, const void *bytes, size_t size)
{
    uint64_t n = size;
    return put(fd, &n, sizeof(n)) && put(fd, bytes, size);
}

/* Freed by the caller. */
static char *get_block(int fd, size_t *size)
{
    uint64_t n = 0;
    char *bytes = get(fd, &n, sizeof(n)) && n < (1u << 28) ? malloc(n + 1) : NULL;
    if (bytes && !get(fd, bytes, (size_t)n)) {
        free(bytes);
        bytes = NULL;
    }
    *size = (size_t)n;
    return bytes;
}

/* A tensor, or nothing. */
static bool put_tensor(int fd, const nori_tensor *t)
{
    nori__text out;
    nori__text_init(&out, &nori__malloc);
    bool some =
        t && nori_tensor_kind(t) == NORI_KIND_TENSOR && nori__value_write(t, &out, NULL) == NORI_OK;
    bool fine = put_block(fd, some ? out.data : "", some ? out.size : 0);
    nori__text_free(&out);
    return fine;
}

static bool get_tensor(int fd, nori_tensor **t)
{
    size_t size = 0;
    char *bytes = get_block(fd, &size);
    bool fine = bytes != NULL;
    *t = NULL;
    if (size > 0 && fine) {
        nori__arena arena;
        nori__pb_tensor *pb = NULL;
        nori_tensor *over = NULL;
        nori__arena_init(&arena, &nori__malloc);
        fine = nori__pb_read_tensor(&arena, (const uint8_t *)bytes, size, &pb, NULL) == NORI_OK &&
               nori__tensor_from_pb(&nori__malloc, pb, NULL, &over, NULL) == NORI_OK &&
               nori__tensor_copy(&nori__malloc, over, t, NULL) == NORI_OK;
        nori_tensor_free(over);
        nori__arena_free(&arena);
    }
    free(bytes);
    return fine;
}

/* ---- the worker's side ---- */

static bool serve(int in, int out, graphs_kind kind, const char *ort)
{
    graphs_answers answers = {.count = 0};
    graphs_feeds feeds = {.count = 0};
    uint64_t counts[2] = {0}; /* inputs, sets of them */
    size_t size = 0;
    char *bytes = get_block(in, &size);
    bool fine =
        bytes && get(in, counts, sizeof(counts)) && counts[0] <= GRAPHS_INPUTS && counts[1] <= 2;
    feeds.count = fine ? (size_t)counts[0] : 0;
    for (uint64_t i = 0; fine && i < counts[0] * counts[1]; i++) {
        fine = get_tensor(in, &feeds.in[i / counts[0]][i % counts[0]]);
    }
    if (fine) {
        nori__str model = {bytes, size};
        alarm(SECONDS); /* a run without end is a fault too */
        graphs_run_ways(kind, ort, &model, &feeds, &answers);
        alarm(0);
        uint64_t count = answers.count;
        fine = put(out, &count, sizeof(count));
        for (size_t i = 0; fine && i < answers.count; i++) {
            graphs_answer head = answers.items[i];
            memset(head.out, 0, sizeof(head.out));
            fine = put(out, &head, sizeof(head));
            for (size_t k = 0; fine && !head.same && !head.status && k < GRAPHS_OUTPUTS; k++) {
                fine = put_tensor(out, answers.items[i].out[k]);
            }
        }
    }
    graphs_answers_free(&answers);
    for (size_t i = 0; i < 2 * (size_t)GRAPHS_INPUTS; i++) {
        nori_tensor_free(feeds.in[i / GRAPHS_INPUTS][i % GRAPHS_INPUTS]);
    }
    free(bytes);
    return fine;
}

int graphs_worker_main(int argc, char **argv)
{
    /* Standard output carries answers: whatever a library may print must not reach it. */
    int out = dup(1);
    if (argc < 3 || out < 0 || dup2(2, 1) < 0) {
        return 2;
    }
    graphs_kind kind = (graphs_kind)strtol(argv[2], NULL, 10);
    while (serve(0, out, kind, argc > 3 ? argv[3] : NULL)) {
    }
    return 0;
}

/* ---- the asking side ---- */

static void begin(graphs_workers *w, worker *k)
{
    int to[2], from[2];
    char kind[8];
    if (pipe(to) != 0 || pipe(from) != 0) {
        fprintf(stderr, "nori-graphs: no pipe: %s\n", strerror(errno));
        exit(2);
    }
    snprintf(kind, sizeof(kind), "%d", (int)k->kind);
    k->process = fork();
    if (k->process == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        for (int fd = 3; fd < 64; fd++) {
            close(fd);
        }
        setenv("NORI_CPU", k->level, 1);
        execl(w->program, "nori-graphs", "--worker", kind, k->kind == GRAPHS_ORT ? w->ort : NULL,
              (char *)NULL);
        _exit(2);
    }
    close(to[0]);
    close(from[1]);
    k->to = to[1];
    k->from = from[0];
}

static void end(worker *k)
{
    int status = 0;
    close(k->to);
    close(k->from);
    if (k->process > 0) {
        waitpid(k->process, &status, 0);
    }
}

graphs_workers *graphs_workers_open(const char *program, const char *ort)
{
    graphs_workers *w = calloc(1, sizeof(*w));
    nori__cpu_level best = nori__cpu_level_get();
    assert_non_null(w);
    signal(SIGPIPE, SIG_IGN);
    w->program = program;
    w->ort = ort;
    for (int l = (int)best; l >= 0; l--) {
        const char *name = nori__cpu_level_name((nori__cpu_level)l);
        w->items[w->count++] = (worker){name, name, GRAPHS_LEVEL, 0, -1, -1};
    }
    w->items[w->count++] =
        (worker){"changes", nori__cpu_level_name(best), GRAPHS_CHANGES, 0, -1, -1};
    if (ort) {
        w->items[w->count++] = (worker){"ort", "base", GRAPHS_ORT, 0, -1, -1};
    }
    for (size_t i = 0; i < w->count; i++) {
        begin(w, &w->items[i]);
    }
    return w;
}

void graphs_workers_close(graphs_workers *w)
{
    for (size_t i = 0; i < w->count; i++) {
        end(&w->items[i]);
    }
    free(w);
}

size_t graphs_workers_count(const graphs_workers *w)
{
    return w->count;
}

const char *graphs_worker_name(const graphs_workers *w, size_t i)
{
    return w->items[i].name;
}

bool graphs_worker_is_ort(const graphs_workers *w, size_t i)
{
    return w->items[i].kind == GRAPHS_ORT;
}

bool graphs_worker_takes(const graphs_workers *w, size_t i, unsigned long long n)
{
    size_t levels = 0;
    while (levels < w->count && w->items[levels].kind == GRAPHS_LEVEL) {
        levels++;
    }
    return i == 0 || i >= levels || n % (levels - 1) == i - 1;
}

bool graphs_worker_send(graphs_workers *w, size_t i, const graph_case *c)
{
    worker *k = &w->items[i];
    nori__text bytes;
    nori_tensor *other[GRAPHS_INPUTS] = {NULL};
    uint64_t counts[2] = {c->n_in, 1 + (c->n_in > 0 && graph_case_other(c, other))};
    nori__text_init(&bytes, &nori__malloc);
    nori__pb_model model = c->m.model;
    model.graph = (nori__pb_graph *)&c->m.graph; /* a copied case: its own graph */
    bool fine = nori__pb_write_model(&model, &bytes, NULL) == NORI_OK &&
                put_block(k->to, bytes.data, bytes.size) && put(k->to, counts, sizeof(counts));
    for (size_t n = 0; fine && n < c->n_in; n++) {
        fine = put_tensor(k->to, c->in[n]);
    }
    for (size_t n = 0; n < c->n_in; n++) {
        fine = fine && (counts[1] < 2 || put_tensor(k->to, other[n]));
        nori_tensor_free(other[n]);
    }
    nori__text_free(&bytes);
    return fine;
}

bool graphs_worker_receive(graphs_workers *w, size_t i, graphs_answers *answers)
{
    worker *k = &w->items[i];
    uint64_t count = 0;
    memset(answers, 0, sizeof(*answers));
    bool fine = get(k->from, &count, sizeof(count)) && count <= GRAPHS_ANSWERS;
    for (; fine && answers->count < count;) {
        graphs_answer *a = &answers->items[answers->count];
        fine = get(k->from, a, sizeof(*a));
        memset(a->out, 0, sizeof(a->out));
        answers->count += fine;
        for (size_t n = 0; fine && !a->same && !a->status && n < GRAPHS_OUTPUTS; n++) {
            fine = get_tensor(k->from, &a->out[n]);
        }
    }
    if (!fine) {
        graphs_answers_free(answers);
        end(k);
        begin(w, k);
    }
    return fine;
}

bool graphs_worker_ask(graphs_workers *w, size_t i, const graph_case *c, graphs_answers *answers)
{
    graphs_worker_send(w, i, c);
    return graphs_worker_receive(w, i, answers);
}

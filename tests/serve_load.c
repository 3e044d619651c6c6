/* serve_load.c: asks a server by many connections at once, for tests of `nori serve`:
 *     serve_load HOST PORT CONNECTIONS SECONDS THREADS FILE [any]
 * FILE is one request as it goes over the wire; a connection sends it again as soon as the answer is
 * there. Every answer is read whole, and those of code 200 must all be the same bytes after the head, or
 * with "any" (joined requests: sums in another order) as many.
 * Prints one line of JSON: counts, and times of answers in microseconds. A connection that ends, an
 * answer cut short or of another content is an error. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROOM 262144

typedef struct link {
    int fd;
    size_t sent, got, head, need; /* head 0: the answer's is not read yet */
    int code;
    double began;
    char *in;
} link_t;

typedef struct worker {
    pthread_t thread;
    int count;
    unsigned long ok, refused, other, errors, reconnects;
    unsigned long times[2000];
    char why[200];
    char *body; /* of the first good answer */
    size_t body_size;
} worker;

static struct sockaddr_in target;
static char *request;
static size_t request_size;
static double end_time;
static bool any;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fault(worker *w, const char *why)
{
    w->errors++;
    if (!w->why[0]) {
        snprintf(w->why, sizeof(w->why), "%s (%s)", why, strerror(errno));
    }
}

/* A slot of 5 percent each, from a microsecond on. */
static int slot_of(double us)
{
    int slot = 0;
    for (double bound = 1; bound < us && slot < 1999; bound *= 1.05) {
        slot++;
    }
    return slot;
}

static bool open_link(worker *w, link_t *l, int poll)
{
    const int on = 1;
    l->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    l->sent = l->got = l->head = 0;
    if (l->fd < 0) {
        fault(w, "no socket");
        return false;
    }
    setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(l->fd, (struct sockaddr *)&target, sizeof(target)) != 0 && errno != EINPROGRESS) {
        fault(w, "no connection");
        close(l->fd);
        l->fd = -1;
        return false;
    }
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = l};
    epoll_ctl(poll, EPOLL_CTL_ADD, l->fd, &e);
    l->began = now();
    return true;
}

static void reopen(worker *w, link_t *l, int poll, const char *why)
{
    if (why) {
        fault(w, why);
    }
    w->reconnects++;
    close(l->fd);
    l->fd = -1;
    if (now() < end_time) {
        open_link(w, l, poll);
    }
}

static bool send_more(worker *w, link_t *l, int poll)
{
    while (l->sent < request_size) {
        ssize_t n = send(l->fd, request + l->sent, request_size - l->sent, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == ENOTCONN)) {
            return true;
        }
        if (n <= 0) {
            reopen(w, l, poll, "sending failed");
            return false;
        }
        l->sent += (size_t)n;
    }
    return true;
}

/* Reads the head; false: it is none. */
static bool read_head(link_t *l)
{
    l->in[l->got] = 0;
    char *end = strstr(l->in, "\r\n\r\n");
    if (!end) {
        return l->got < 8192;
    }
    l->code = 0;
    const char *length = NULL;
    for (char *p = l->in; p < end; p = strstr(p, "\r\n") + 2) {
        length = strncasecmp(p, "content-length:", 15) == 0 ? p + 15 : length;
    }
    if (sscanf(l->in, "HTTP/1.%*d %d", &l->code) != 1 || !length) {
        return false;
    }
    l->head = (size_t)(end - l->in) + 4;
    l->need = l->head + strtoul(length, NULL, 10);
    return l->need < ROOM;
}

/* An answer that is whole. */
static void count(worker *w, link_t *l)
{
    size_t size = l->need - l->head;
    w->times[slot_of((now() - l->began) * 1e6)]++;
    if (l->code == 200) {
        if (!w->body) {
            w->body = malloc(size + 1);
            memcpy(w->body, l->in + l->head, size);
            w->body_size = size;
        }
        if (w->body_size != size || (!any && memcmp(w->body, l->in + l->head, size) != 0)) {
            fault(w, "an answer of other content");
        } else {
            w->ok++;
        }
    } else if (l->code == 503) {
        w->refused++;
    } else {
        w->other++;
        snprintf(w->why, sizeof(w->why), "code %d", l->code);
    }
}

static void receive(worker *w, link_t *l, int poll)
{
    for (;;) {
        ssize_t n = recv(l->fd, l->in + l->got, ROOM - 1 - l->got, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (n <= 0) {
            bool between = l->got == 0 && l->sent == 0;
            reopen(w, l, poll, between ? NULL : n == 0 ? "the connection ended" : "receiving failed");
            return;
        }
        l->got += (size_t)n;
        if (l->head == 0 && !read_head(l)) {
            reopen(w, l, poll, "the answer's head cannot be read");
            return;
        }
        if (l->head > 0 && l->got >= l->need) {
            bool close_it = strcasestr(l->in, "connection: close") != NULL;
            count(w, l);
            l->got = l->head = l->sent = 0;
            if (now() >= end_time) {
                close(l->fd);
                l->fd = -1;
                return;
            }
            if (close_it) {
                reopen(w, l, poll, NULL);
                return;
            }
            l->began = now();
            if (!send_more(w, l, poll)) {
                return;
            }
        }
    }
}

static void *work(void *user)
{
    worker *w = user;
    int poll = epoll_create1(EPOLL_CLOEXEC);
    link_t *links = calloc((size_t)w->count, sizeof(*links));
    struct epoll_event events[256];
    for (int i = 0; i < w->count; i++) {
        links[i].in = malloc(ROOM);
        links[i].fd = -1;
        open_link(w, &links[i], poll);
    }
    while (now() < end_time + 10) {
        int open = 0;
        int n = epoll_wait(poll, events, 256, 50);
        for (int i = 0; i < n; i++) {
            link_t *l = events[i].data.ptr;
            if (l->fd >= 0 && send_more(w, l, poll) && l->fd >= 0) {
                receive(w, l, poll);
            }
        }
        for (int i = 0; i < w->count && now() >= end_time; i++) {
            open += links[i].fd >= 0;
        }
        if (now() >= end_time && open == 0) {
            break;
        }
    }
    for (int i = 0; i < w->count; i++) {
        if (links[i].fd >= 0) {
            fault(w, "no answer within ten seconds of the end");
            close(links[i].fd);
        }
        free(links[i].in);
    }
    close(poll);
    free(links);
    return NULL;
}

static double percentile(const unsigned long *times, unsigned long total, double share)
{
    unsigned long seen = 0;
    double bound = 1;
    for (int i = 0; i < 2000; i++, bound *= 1.05) {
        seen += times[i];
        if ((double)seen >= share * (double)total) {
            return bound;
        }
    }
    return bound;
}

int main(int argc, char **argv)
{
    worker workers[64];
    worker sum;
    struct rlimit files = {65536, 65536};
    memset(workers, 0, sizeof(workers));
    memset(&sum, 0, sizeof(sum));
    any = argc == 8 && strcmp(argv[7], "any") == 0;
    if (argc != 7 && !any) {
        fprintf(stderr, "serve_load HOST PORT CONNECTIONS SECONDS THREADS FILE [any]\n");
        return 2;
    }
    if (setrlimit(RLIMIT_NOFILE, &files) != 0) {
        getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    target.sin_family = AF_INET;
    target.sin_port = htons((uint16_t)atoi(argv[2]));
    int connections = atoi(argv[3]), threads = atoi(argv[5]);
    FILE *f = fopen(argv[6], "rb");
    request = malloc(ROOM);
    if (inet_pton(AF_INET, argv[1], &target.sin_addr) != 1 || !f || !request || threads < 1 || threads > 64) {
        fprintf(stderr, "a numeric address, a file and 1 to 64 threads were expected\n");
        return 2;
    }
    request_size = fread(request, 1, ROOM, f);
    fclose(f);
    double began = now();
    end_time = began + atof(argv[4]);
    for (int i = 0; i < threads; i++) {
        workers[i].count = connections / threads + (i < connections % threads);
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (int i = 0; i < threads; i++) {
        worker *w = &workers[i];
        pthread_join(w->thread, NULL);
        sum.ok += w->ok;
        sum.refused += w->refused;
        sum.other += w->other;
        sum.errors += w->errors;
        sum.reconnects += w->reconnects;
        for (int k = 0; k < 2000; k++) {
            sum.times[k] += w->times[k];
        }
        if (w->why[0]) {
            memcpy(sum.why, w->why, sizeof(sum.why));
        }
        if (!any && workers[0].body && w->body && (w->body_size != workers[0].body_size ||
                                           memcmp(w->body, workers[0].body, w->body_size) != 0)) {
            sum.errors++;
        }
        free(i > 0 ? w->body : NULL);
    }
    free(workers[0].body);
    unsigned long total = sum.ok + sum.refused + sum.other;
    printf("{\"seconds\": %.2f, \"ok\": %lu, \"refused\": %lu, \"other\": %lu, \"errors\": %lu, "
           "\"reconnects\": %lu, \"p50_us\": %.0f, \"p99_us\": %.0f, \"why\": \"%s\"}\n",
           now() - began, sum.ok, sum.refused, sum.other, sum.errors, sum.reconnects,
           percentile(sum.times, total, 0.5), percentile(sum.times, total, 0.99), sum.why);
    free(request);
    return 0;
}

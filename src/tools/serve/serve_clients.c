/* serve_clients.c: the connections there are, and those that are too slow: a request must come in
 * within a time of its own, however often a byte of it comes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "serve_exchange.h"

static void unlink_client(nori_server *s, serve_client *c)
{
    if (c->before) {
        c->before->next = c->next;
    } else {
        s->clients = c->next;
    }
    if (c->next) {
        c->next->before = c->before;
    }
    s->client_count--;
}

/* Under the lock: while a client is in the list its socket is open. */
static void cut(nori_server *s, serve_client *c, int code, const char *text)
{
    char answer[512], body[256];
    const char *phrase = code == 400   ? "Bad Request"
                         : code == 408 ? "Request Timeout"
                         : code == 413 ? "Content Too Large"
                                       : "Service Unavailable";
    if (c->cut) {
        return;
    }
    c->cut = true;
    int n = snprintf(body, sizeof(body), "{\"error\":\"%s\"}\n", text);
    n = snprintf(answer, sizeof(answer), "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n"
                 "Content-Length: %d\r\nConnection: close\r\n\r\n%s", code, phrase, n, body);
    if (!s->options.certificate && n > 0 && (size_t)n < sizeof(answer)) {
        /* One that takes no answer either is none the wiser. */
        ssize_t sent = send(c->fd, answer, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)sent;
    }
    shutdown(c->fd, SHUT_RDWR);
}

/* A connection that the library ends without an answer, though the caller is still there: what came
 * was no request at all. */
static bool deserves_answer(nori_server *s, const serve_client *c)
{
    char byte;
    ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    bool there = n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
    double age = (double)(nori__serve_now() - c->since) / 1e9;
    return there && c->doing == SERVE_IDLE && !c->cut && !c->last && !atomic_load(&s->stopping) &&
           age < s->options.receive_timeout && age < s->options.idle_timeout;
}

void nori__serve_on_connection(void *user, struct MHD_Connection *connection, void **context,
                               enum MHD_ConnectionNotificationCode what)
{
    nori_server *s = user;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        serve_client *c = *context;
        if (c) {
            pthread_mutex_lock(&s->clients_lock);
            if (deserves_answer(s, c)) {
                atomic_fetch_add(&s->http[4], 1);
                cut(s, c, 400, "this is no HTTP request");
            }
            unlink_client(s, c);
            pthread_mutex_unlock(&s->clients_lock);
            free(c);
            *context = NULL;
        }
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    serve_client *c = info ? calloc(1, sizeof(*c)) : NULL;
    *context = c; /* NULL: its requests are turned away */
    if (c) {
        c->fd = info->connect_fd;
        c->since = nori__serve_now();
        pthread_mutex_lock(&s->clients_lock);
        c->next = s->clients;
        if (c->next) {
            c->next->before = c;
        }
        s->clients = c;
        s->client_count++;
        pthread_mutex_unlock(&s->clients_lock);
    }
}

void nori__serve_doing(nori_server *s, serve_client *c, serve_doing doing)
{
    if (c) {
        pthread_mutex_lock(&s->clients_lock);
        c->doing = doing;
        c->asked = c->asked || doing == SERVE_RECEIVING;
        c->since = nori__serve_now();
        pthread_mutex_unlock(&s->clients_lock);
    }
}

void nori__serve_last(nori_server *s, serve_client *c)
{
    if (c) {
        pthread_mutex_lock(&s->clients_lock);
        c->last = true;
        pthread_mutex_unlock(&s->clients_lock);
    }
}

void nori__serve_cut(nori_server *s, serve_client *c, int code, const char *text)
{
    if (c) {
        pthread_mutex_lock(&s->clients_lock);
        cut(s, c, code, text);
        pthread_mutex_unlock(&s->clients_lock);
    }
}

void nori__serve_watch_clients(nori_server *s, uint64_t now)
{
    uint64_t receive = (uint64_t)(s->options.receive_timeout * 1e9);
    uint64_t idle = (uint64_t)(s->options.idle_timeout * 1e9);
    pthread_mutex_lock(&s->clients_lock);
    for (serve_client *c = s->clients; c; c = c->next) {
        uint64_t age = now > c->since ? now - c->since : 0;
        bool receiving = c->doing == SERVE_RECEIVING || (c->doing == SERVE_IDLE && !c->asked);
        if (receiving && age > receive && !c->cut) {
            atomic_fetch_add(&s->http[4], 1);
            cut(s, c, 408, "the request did not come in whole within the time for it");
        } else if ((c->doing == SERVE_IDLE && age > idle) ||
                   (c->doing == SERVE_SENDING && age > 4 * receive)) {
            shutdown(c->fd, SHUT_RDWR);
        }
    }
    pthread_mutex_unlock(&s->clients_lock);
}

bool nori__serve_idle(nori_server *s)
{
    const uint64_t quiet = 200000000;
    uint64_t now = nori__serve_now();
    bool idle = atomic_load(&s->exchanges) == 0;
    pthread_mutex_lock(&s->clients_lock);
    for (serve_client *c = s->clients; c && idle; c = c->next) {
        idle = c->cut || (c->doing == SERVE_IDLE && now > c->since && now - c->since > quiet);
    }
    pthread_mutex_unlock(&s->clients_lock);
    return idle;
}

/* ---- the thread that looks at clocks ---- */

static void expire_jobs(nori_server *s, uint64_t now, uint64_t *next)
{
    for (serve_model *m = NULL; (m = nori__serve_next(s, m)) != NULL;) {
        uint64_t at = nori__serve_expire(m, now);
        *next = at < *next ? at : *next;
    }
}

static void *watch(void *user)
{
    nori_server *s = user;
    pthread_mutex_lock(&s->lock);
    while (!s->watch_ends) {
        struct timespec t = {(time_t)(s->watch_at / 1000000000u), (long)(s->watch_at % 1000000000u)};
        if (nori__serve_now() < s->watch_at) {
            pthread_cond_timedwait(&s->watch_wake, &s->lock, &t);
            continue;
        }
        uint64_t now = nori__serve_now(), next = now + 250000000u;
        s->watch_at = next; /* deadlines that come from here on move it again */
        pthread_mutex_unlock(&s->lock);
        nori__serve_watch_clients(s, now);
        expire_jobs(s, now, &next);
        pthread_mutex_lock(&s->lock);
        s->watch_at = next < s->watch_at ? next : s->watch_at;
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void nori__serve_watch(nori_server *s, uint64_t deadline)
{
    pthread_mutex_lock(&s->lock);
    if (deadline < s->watch_at) {
        s->watch_at = deadline;
        pthread_cond_signal(&s->watch_wake);
    }
    pthread_mutex_unlock(&s->lock);
}

nori_status nori__serve_watcher(nori_server *s, nori_error *err)
{
    if (pthread_create(&s->watcher, NULL, watch, s) != 0) {
        return nori__serve_fail(err, NORI_ERROR_MEMORY, "no thread could be started to watch deadlines");
    }
    s->has_watcher = true;
    return NORI_OK;
}

void nori__serve_watcher_end(nori_server *s)
{
    if (s->has_watcher) {
        pthread_mutex_lock(&s->lock);
        s->watch_ends = true;
        pthread_cond_signal(&s->watch_wake);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->watcher, NULL);
        s->has_watcher = false;
    }
}

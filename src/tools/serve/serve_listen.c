/* serve_listen.c: the socket and the daemon of libmicrohttpd. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve_http.h"

typedef union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} address;

static bool read_address(const char *text, int port, address *a, socklen_t *size, bool *local)
{
    memset(a, 0, sizeof(*a));
    if (strcmp(text, "localhost") == 0) {
        text = "127.0.0.1";
    }
    if (inet_pton(AF_INET, text, &a->v4.sin_addr) == 1) {
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = htons((uint16_t)port);
        *size = sizeof(a->v4);
        *local = (ntohl(a->v4.sin_addr.s_addr) >> 24) == 127;
        return true;
    }
    if (inet_pton(AF_INET6, text, &a->v6.sin6_addr) == 1) {
        a->v6.sin6_family = AF_INET6;
        a->v6.sin6_port = htons((uint16_t)port);
        *size = sizeof(a->v6);
        *local = IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
        return true;
    }
    return false;
}

static nori_status open_socket(nori_server *s, const address *a, socklen_t size, int *out,
                               nori_error *err)
{
    const int on = 1;
    address got;
    socklen_t got_size = sizeof(got);
    int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    }
    if (fd < 0 || bind(fd, &a->any, size) != 0 || listen(fd, 4096) != 0 ||
        getsockname(fd, &got.any, &got_size) != 0) {
        int code = errno;
        if (fd >= 0) {
            close(fd);
        }
        if (code == EADDRINUSE) {
            nori__serve_hint(err, "another program listens there: choose another port, or 0 for a free one");
        }
        return nori__serve_fail(err, NORI_ERROR_IO, "cannot listen on %s port %d: %s", s->options.address,
                                s->options.port, strerror(code));
    }
    s->port = ntohs(a->any.sa_family == AF_INET6 ? got.v6.sin6_port : got.v4.sin_port);
    *out = fd;
    return NORI_OK;
}

/* One struct for each of the options that are set. */
#define OPTION(what, number, pointer) \
    (struct MHD_OptionItem){MHD_OPTION_##what, (intptr_t)(number), (void *)(pointer)}

static void quiet(void *user, const char *format, va_list list)
{
    (void)user;
    (void)format;
    (void)list;
}

static nori_status start_daemon(nori_server *s, int fd, sa_family_t family, nori_error *err)
{
    const nori_serve_options *o = &s->options;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
                     MHD_USE_TURBO |
                     (family == AF_INET6 ? MHD_USE_IPv6 : 0) | (o->certificate ? MHD_USE_TLS : 0);
    struct MHD_OptionItem options[12];
    size_t n = 0;
    options[n++] = OPTION(STRICT_FOR_CLIENT, 1, NULL);
    options[n++] = OPTION(LISTEN_SOCKET, fd, NULL);
    options[n++] = OPTION(CONNECTION_MEMORY_LIMIT, o->header_bytes, NULL);
    options[n++] = OPTION(CONNECTION_LIMIT, o->connections, NULL);
    options[n++] = OPTION(CONNECTION_TIMEOUT, (unsigned)(o->idle_timeout + 1), NULL);
    if (o->http_threads > 1) {
        options[n++] = OPTION(THREAD_POOL_SIZE, o->http_threads, NULL);
    }
    if (o->certificate) {
        options[n++] = OPTION(HTTPS_MEM_CERT, 0, (uintptr_t)o->certificate);
        options[n++] = OPTION(HTTPS_MEM_KEY, 0, (uintptr_t)o->key);
        options[n++] = OPTION(HTTPS_PRIORITIES, 0, (uintptr_t)"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2");
    }
    options[n] = OPTION(END, 0, NULL);
    s->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, nori__serve_handle, s, MHD_OPTION_EXTERNAL_LOGGER, quiet, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, nori__serve_on_completed, s, MHD_OPTION_NOTIFY_CONNECTION,
        nori__serve_on_connection, s, MHD_OPTION_URI_LOG_CALLBACK, nori__serve_on_uri, s,
        MHD_OPTION_ARRAY, options, MHD_OPTION_END);
    if (s->daemon) {
        return NORI_OK;
    }
    close(fd);
    return nori__serve_fail(err, o->certificate ? NORI_ERROR_ARGUMENT : NORI_ERROR_MEMORY, "%s",
                            o->certificate ? "the server cannot start: certificate and key do not fit "
                                             "each other, or are not PEM"
                                           : "the server cannot start: no threads or no memory");
}

nori_status nori__serve_listen(nori_server *s, nori_error *err)
{
    const nori_serve_options *o = &s->options;
    address a;
    socklen_t size = 0;
    bool local = false;
    int fd = -1;
    if (!read_address(o->address, o->port, &a, &size, &local)) {
        nori__serve_hint(err, "127.0.0.1, ::1, or 0.0.0.0 for all of this machine's");
        return nori__serve_fail(err, NORI_ERROR_ARGUMENT, "\"%.100s\" is no numeric address", o->address);
    }
    if (!local && !o->token && !o->insecure) {
        nori__serve_hint(err, "ask callers for a token, or say that anyone may call (insecure)");
        return nori__serve_fail(err, NORI_ERROR_ARGUMENT,
                                "others than this machine reach %s, and no token is asked of them",
                                o->address);
    }
    if (o->certificate && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES) {
        return nori__serve_fail(err, NORI_ERROR_UNAVAILABLE, "this libmicrohttpd was built without TLS");
    }
    s->no_memory = nori__serve_no_memory();
    nori_status status = s->no_memory ? open_socket(s, &a, size, &fd, err) : nori__serve_oom(err);
    if (status == NORI_OK) {
        status = start_daemon(s, fd, a.any.sa_family, err);
    }
    bool v6 = a.any.sa_family == AF_INET6;
    snprintf(s->url, sizeof(s->url), "%s://%s%s%s:%d", o->certificate ? "https" : "http", v6 ? "[" : "",
             o->address, v6 ? "]" : "", s->port);
    return status;
}

void nori__serve_quiesce(nori_server *s)
{
    int listening = MHD_quiesce_daemon(s->daemon);
    if (listening < 0) {
        return;
    }
    for (;;) {
        address from;
        socklen_t size = sizeof(from);
        int fd = accept4(listening, &from.any, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno == EINTR || errno == ECONNABORTED) {
                continue;
            }
            break;
        }
        MHD_add_connection(s->daemon, fd, &from.any, size); /* closes it where it cannot */
    }
    /* Callers are turned away from now on. It is closed when the daemon's threads, which may still be
     * about to let go of it, have ended. */
    shutdown(listening, SHUT_RD);
    s->listening = listening;
}

void nori__serve_hang_up(nori_server *s)
{
    if (s->daemon) {
        MHD_stop_daemon(s->daemon);
        s->daemon = NULL;
    }
    if (s->no_memory) {
        MHD_destroy_response(s->no_memory);
        s->no_memory = NULL;
    }
    if (s->listening >= 0) {
        close(s->listening);
        s->listening = -1;
    }
}

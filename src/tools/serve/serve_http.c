/* serve_http.c: requests as libmicrohttpd hands them over: headers looked at, bodies gathered, answers
 * sent. Its threads never run a model: a connection sleeps while its job is with a worker. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "serve_http.h"

/* ---- headers ---- */

static const char *header(serve_exchange *x, const char *name)
{
    return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

/* A number of digits alone. */
static bool read_size(const char *text, uint64_t *out)
{
    char *end;
    size_t n = strspn(text, "0123456789");
    *out = n > 0 && n < 20 ? strtoull(text, &end, 10) : 0;
    return n > 0 && n < 19 && !text[n];
}

static bool has_token(serve_exchange *x)
{
    const char *token = x->server->options.token, *given = header(x, "Authorization");
    if (!token) {
        return true;
    }
    if (!given || strncasecmp(given, "Bearer ", 7) != 0) {
        return false;
    }
    return nori__serve_same(token, strlen(token), given + 7, strlen(given + 7));
}

static bool is_local_name(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t n = strlen(names[i]);
        if (strncasecmp(host, names[i], n) == 0 && (!host[n] || host[n] == ':')) {
            return true;
        }
    }
    return false;
}

/* Pages of other origins may not call: a browser names the origin. A name that was made to point here
 * is one, too, so without a token only this machine's own names count. */
static bool fits_origin(serve_exchange *x)
{
    const char *origin = header(x, "Origin"), *host = header(x, "Host");
    const char *from = origin ? strstr(origin, "://") : NULL;
    if (!origin) {
        return true;
    }
    if (!from || !host || strcasecmp(from + 3, host) != 0) {
        return false;
    }
    return x->server->options.token || x->server->options.insecure || is_local_name(host);
}

static bool read_headers(serve_exchange *x)
{
    uint64_t number = 0;
    const char *json = header(x, "Inference-Header-Content-Length");
    const char *timeout = header(x, "Request-Timeout-Ms");
    x->json_size = SERVE_ALL_JSON;
    if (json) {
        if (!read_size(json, &number) || number > SIZE_MAX / 2) {
            nori__serve_refuse(x, 400, "the header Inference-Header-Content-Length is no number of bytes");
            return false;
        }
        x->json_size = (size_t)number;
    }
    if (timeout && (!read_size(timeout, &number) || number == 0 || number > UINT64_C(1) << 40)) {
        nori__serve_refuse(x, 400, "the header Request-Timeout-Ms is no number of milliseconds from 1 on");
        return false;
    }
    x->header_timeout_ns = timeout ? number * 1000000 : 0;
    return true;
}

/* ---- bodies ---- */

/* Room for a body, charged before it comes. It begins so that binary data behind the JSON are aligned. */
static bool reserve(serve_exchange *x, size_t size)
{
    nori_server *s = x->server;
    size_t shift = x->json_size == SERVE_ALL_JSON ? 0 : (64 - x->json_size % 64) % 64;
    size_t more = size - x->charged;
    if (atomic_fetch_add(&s->body_bytes, more) + more > s->options.memory_bytes) {
        atomic_fetch_sub(&s->body_bytes, more);
        return false;
    }
    x->charged += more;
    char *body = aligned_alloc(64, (size + shift + 64) / 64 * 64);
    if (!body) {
        return false;
    }
    if (x->size > 0) {
        memcpy(body + shift, x->data, x->size);
    }
    free(x->body);
    x->body = body;
    x->data = body + shift;
    x->room = size;
    return true;
}

static const char too_busy[] = "the server holds as many bytes of requests as it may";

static bool begin_body(serve_exchange *x)
{
    nori_server *s = x->server;
    const nori_serve_options *o = &s->options;
    const char *length = header(x, "Content-Length"), *coding = header(x, "Content-Encoding");
    uint64_t size = 0;
    if (coding && strcasecmp(coding, "identity") != 0) {
        nori__serve_refuse(x, 415, "the body is encoded (\"%.40s\"), which is not supported", coding);
        return false;
    }
    if (length && !read_size(length, &size)) {
        nori__serve_refuse(x, 400, "the header Content-Length is no number of bytes");
        return false;
    }
    size_t json = x->json_size == SERVE_ALL_JSON ? (size_t)size : x->json_size;
    if (size > o->body_bytes || (x->route.call == CALL_INFER && json > o->json_bytes)) {
        bool all = size > o->body_bytes;
        nori__serve_refuse(x, 413, "the %s has %" PRIu64 " bytes, at most %zu are taken",
                           all ? "body" : "JSON of the body", all ? size : (uint64_t)json,
                           all ? o->body_bytes : o->json_bytes);
        return false;
    }
    if (x->route.call != CALL_INFER && size > 65536) {
        nori__serve_refuse(x, 413, "a body of %" PRIu64 " bytes means nothing here", size);
        return false;
    }
    if (size > 0 && !reserve(x, (size_t)size)) {
        nori__serve_refuse(x, 503, "%s", too_busy);
        return false;
    }
    return true;
}

/* More of a body; false: the connection is cut off. */
static bool add_body(serve_exchange *x, const char *bytes, size_t size)
{
    nori_server *s = x->server;
    const size_t most = x->route.call == CALL_INFER ? s->options.body_bytes : 65536;
    if (x->code != 0) { /* already refused: what comes is not kept */
        return true;
    }
    if (size > most - x->size) {
        atomic_fetch_add(&s->http[4], 1);
        nori__serve_cut(s, x->client, 413, "the body is larger than what is taken");
        return false;
    }
    if (x->size + size > x->room) { /* its length was not told */
        size_t room = x->room < 32768 ? 65536 : 2 * x->room;
        room = room < x->size + size ? x->size + size : room;
        if (!reserve(x, room < most ? room : most)) {
            atomic_fetch_add(&s->http[5], 1);
            nori__serve_cut(s, x->client, 503, too_busy);
            return false;
        }
    }
    memcpy(x->data + x->size, bytes, size);
    x->size += size;
    return true;
}

/* JSON whose length was not told before it came. */
static bool json_fits(serve_exchange *x)
{
    if (x->route.call == CALL_INFER && x->json_size == SERVE_ALL_JSON &&
        x->size > x->server->options.json_bytes) {
        nori__serve_refuse(x, 413, "the JSON of the body has %zu bytes, at most %zu are taken", x->size,
                           x->server->options.json_bytes);
        return false;
    }
    return true;
}

/* ---- answers ---- */

static bool add_text(struct MHD_Response *r, const char *name, const char *value)
{
    return MHD_add_response_header(r, name, value) == MHD_YES;
}

static bool add_number(struct MHD_Response *r, const char *name, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    return add_text(r, name, text);
}

/* false: out of memory; an answer without one of its headers may mean something else. */
static bool add_headers(serve_exchange *x, struct MHD_Response *r)
{
    char text[160];
    bool ok = add_text(r, "Content-Type", x->type) && add_text(r, "X-Content-Type-Options", "nosniff");
    if (x->reply_json) {
        ok = ok && add_number(r, "Inference-Header-Content-Length", x->reply_json);
    }
    if (x->retry_after) {
        ok = ok && add_number(r, "Retry-After", (uint64_t)x->retry_after);
    }
    if (x->code == 405) {
        ok = ok && add_text(r, "Allow", nori__serve_allowed(x->route.call));
    }
    if (x->code == 401) {
        ok = ok && add_text(r, "WWW-Authenticate", "Bearer");
    }
    if (x->timed) {
        snprintf(text, sizeof(text), "queue;dur=%.3f, compute;dur=%.3f", (double)x->queue_ns / 1e6,
                 (double)x->infer_ns / 1e6);
        ok = ok && add_text(r, "Server-Timing", text);
    }
    if (x->page) {
        ok = ok && add_text(r, "Content-Security-Policy",
                            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                            "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; "
                            "frame-ancestors 'none'");
        ok = ok && add_text(r, "Referrer-Policy", "no-referrer");
    }
    ok = ok && add_text(r, "Cache-Control", x->page ? "no-cache" : "no-store");
    if (atomic_load(&x->server->stopping) > 1) {
        ok = ok && add_text(r, "Connection", "close");
    }
    return ok;
}

struct MHD_Response *nori__serve_no_memory(void)
{
    static const char text[] = "{\"error\":\"out of memory\"}\n";
    struct MHD_Response *r =
        MHD_create_response_from_buffer(sizeof(text) - 1, (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
    if (r && (MHD_add_response_header(r, "Content-Type", "application/json") != MHD_YES ||
              MHD_add_response_header(r, "Retry-After", "1") != MHD_YES)) {
        MHD_destroy_response(r);
        r = NULL;
    }
    return r;
}

static serve_client *client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static enum MHD_Result send_no_memory(nori_server *s, struct MHD_Connection *connection)
{
    atomic_fetch_add(&s->http[5], 1);
    nori__serve_last(s, client_of(connection)); /* a body that is still to come is not waited for */
    return MHD_queue_response(connection, 503, s->no_memory);
}

static enum MHD_Result send_answer(serve_exchange *x)
{
    struct MHD_Response *r;
    if (x->reply.failed && !x->fixed) {
        nori__serve_doing(x->server, x->client, SERVE_SENDING);
        return send_no_memory(x->server, x->connection);
    }
    if (x->fixed) {
        /* Static bytes: the library does not write into what is persistent. */
        r = MHD_create_response_from_buffer(x->fixed_size, (void *)(uintptr_t)x->fixed,
                                            MHD_RESPMEM_PERSISTENT);
    } else {
        r = MHD_create_response_from_buffer(x->reply.size, x->reply.data ? x->reply.data : x->no_body,
                                            x->reply.data ? MHD_RESPMEM_MUST_FREE
                                                          : MHD_RESPMEM_PERSISTENT);
        x->reply.data = r && x->reply.data ? NULL : x->reply.data;
    }
    if (!r || !add_headers(x, r)) {
        if (r) {
            MHD_destroy_response(r);
        }
        nori__serve_doing(x->server, x->client, SERVE_SENDING);
        return send_no_memory(x->server, x->connection);
    }
    int class = x->code / 100;
    atomic_fetch_add(&x->server->http[class > 1 && class < 6 ? class : 5], 1);
    if (x->last || atomic_load(&x->server->stopping) > 1) {
        nori__serve_last(x->server, x->client);
    }
    nori__serve_doing(x->server, x->client, SERVE_SENDING);
    enum MHD_Result result = MHD_queue_response(x->connection, (unsigned)x->code, r);
    MHD_destroy_response(r);
    return result;
}

/* ---- the way of a request ---- */

/* Looks at the first line and the headers. early: no need to wait for the body to say no. */
static void look(serve_exchange *x, const char *url, const char *method, bool *early)
{
    bool post = strcmp(method, "POST") == 0;
    *early = true;
    x->get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    if (x->cut_path) {
        nori__serve_refuse(x, 400, "the path holds a zero byte");
    } else if (!nori__serve_route(url, &x->route)) {
        nori__serve_refuse(x, 404, "there is nothing at %.200s", url);
    } else if (!nori__serve_is_open(x->route.call) && !has_token(x)) {
        nori__serve_refuse(x, 401, "a bearer token is needed, and it is not this one");
    } else if (!x->get && !fits_origin(x)) {
        nori__serve_refuse(x, 403, "pages of another origin may not call this server");
    } else if (strcmp(nori__serve_allowed(x->route.call), "POST") == 0 ? !post
               : x->route.call == CALL_INDEX                          ? !post && !x->get
                                                                      : !x->get) {
        nori__serve_refuse(x, 405, "%.20s is not what this path takes: %s", method,
                           nori__serve_allowed(x->route.call));
    } else if (read_headers(x) && begin_body(x)) {
        *early = false;
    }
}

enum MHD_Result nori__serve_handle(void *user, struct MHD_Connection *connection, const char *url,
                                   const char *method, const char *version, const char *bytes,
                                   size_t *size, void **context)
{
    serve_exchange *x = *context;
    bool early = false;
    if (!x || !x->client) { /* out of memory when it came in */
        return send_no_memory(user, connection);
    }
    x->connection = connection;
    if (!x->routed) {
        x->routed = true;
        look(x, url, method, &early);
        bool has_body = header(x, "Content-Length") || header(x, "Transfer-Encoding");
        const char *after = header(x, "Connection");
        x->last = strcmp(version, "HTTP/1.1") != 0 || (early && has_body) ||
                  (after && strcasestr(after, "close") != NULL);
        return early && has_body && x->code != 0 ? send_answer(x) : MHD_YES;
    }
    if (*size > 0) {
        bool fine = add_body(x, bytes, *size);
        *size = 0;
        return fine ? MHD_YES : MHD_NO;
    }
    if (x->waiting) {
        x->waiting = false;
        nori__serve_finish(x);
        return send_answer(x);
    }
    nori__serve_doing(x->server, x->client, SERVE_WORKING);
    if (x->code == 0 && json_fits(x)) {
        nori__serve_act(x);
    }
    return x->waiting ? MHD_YES : send_answer(x);
}

void *nori__serve_on_uri(void *user, const char *uri, struct MHD_Connection *connection)
{
    nori_server *s = user;
    serve_exchange *x = calloc(1, sizeof(*x));
    if (x) {
        x->cut_path = strstr(uri, "%00") != NULL; /* unescaped, it would end there */
        x->server = s;
        x->client = client_of(connection);
        x->type = "application/json";
        atomic_fetch_add(&s->exchanges, 1);
        nori__serve_doing(s, x->client, SERVE_RECEIVING);
    }
    return x;
}

void nori__serve_on_completed(void *user, struct MHD_Connection *connection, void **context,
                              enum MHD_RequestTerminationCode how)
{
    nori_server *s = user;
    serve_exchange *x = *context;
    (void)connection;
    (void)how;
    if (!x) {
        return;
    }
    if (x->job) { /* the connection was lost, and found so after it was woken */
        nori__serve_finish(x);
    }
    nori__serve_doing(s, x->client, SERVE_IDLE);
    atomic_fetch_sub(&s->body_bytes, x->charged);
    free(x->body);
    free(x->reply.data);
    free(x);
    *context = NULL;
    atomic_fetch_sub(&s->exchanges, 1);
}

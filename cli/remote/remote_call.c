/* remote_call.c: one call to a server by libcurl: connections that are kept, times, what went over the
 * wire. */
#include "remote.h"

#if defined(NORI_WITH_CURL) && defined(NORI_WITH_JANSSON)
#include <stdlib.h>
#include <string.h>

#include "remote_curl.h"

#define curl remote_curl_functions
#define ANSWER_MOST ((size_t)1 << 31) /* bytes of an answer that are taken */

typedef struct answer {
    char *body;
    size_t size, capacity;
    size_t head; /* of Inference-Header-Content-Length; SIZE_MAX: none */
    bool failed; /* out of memory, or too much */
    uint64_t sent, received; /* headers and bodies, as they went */
    char why[CURL_ERROR_SIZE]; /* of a call that got no answer, or "" */
} answer;

/* Called with all that goes over a connection. */
static int count_bytes(CURL *c, curl_infotype kind, char *data, size_t size, void *user)
{
    answer *a = user;
    (void)c, (void)data;
    a->sent += kind == CURLINFO_HEADER_OUT || kind == CURLINFO_DATA_OUT ? size : 0;
    a->received += kind == CURLINFO_HEADER_IN || kind == CURLINFO_DATA_IN ? size : 0;
    return 0;
}

static size_t take_body(char *data, size_t one, size_t n, void *user)
{
    answer *a = user;
    size_t bytes = one * n;
    if (a->size + bytes + 1 > a->capacity) {
        size_t wanted = 2 * (a->size + bytes) + 4096;
        char *grown = wanted <= ANSWER_MOST ? realloc(a->body, wanted) : NULL;
        if (!grown) {
            a->failed = true;
            return 0;
        }
        a->body = grown;
        a->capacity = wanted;
    }
    memcpy(a->body + a->size, data, bytes);
    a->size += bytes;
    a->body[a->size] = 0;
    return bytes;
}

static size_t take_header(char *data, size_t one, size_t n, void *user)
{
    static const char name[] = "inference-header-content-length:";
    answer *a = user;
    size_t bytes = one * n, k = sizeof(name) - 1;
    char digits[24];
    if (bytes > k && strncasecmp(data, name, k) == 0) {
        size_t rest = bytes - k < sizeof(digits) - 1 ? bytes - k : sizeof(digits) - 1;
        memcpy(digits, data + k, rest);
        digits[rest] = 0;
        a->head = (size_t)strtoull(digits, NULL, 10);
    }
    return bytes;
}

static int look(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const remote_stop *stop = user;
    (void)a, (void)b, (void)c, (void)d;
    return stop->stopped(stop->user);
}

static CURL *take_connection(remote *r)
{
    pthread_mutex_lock(&r->lock);
    CURL *c = r->n_idle > 0 ? r->idle[--r->n_idle] : NULL;
    pthread_mutex_unlock(&r->lock);
    return c ? c : curl.easy_init();
}

static void give_connection(remote *r, CURL *c)
{
    pthread_mutex_lock(&r->lock);
    if (r->n_idle < IDLE_MOST) {
        r->idle[r->n_idle++] = c;
        c = NULL;
    }
    pthread_mutex_unlock(&r->lock);
    if (c) {
        curl.easy_cleanup(c);
    }
}

static double seconds(CURL *c, CURLINFO what)
{
    curl_off_t us = 0;
    curl.easy_getinfo(c, what, &us);
    return (double)us / 1e6;
}

static void read_times(CURL *c, const answer *a, remote_times *t)
{
    curl_off_t up = 0, down = 0;
    long connects = 0;
    curl.easy_getinfo(c, CURLINFO_SIZE_UPLOAD_T, &up);
    curl.easy_getinfo(c, CURLINFO_SIZE_DOWNLOAD_T, &down);
    curl.easy_getinfo(c, CURLINFO_NUM_CONNECTS, &connects);
    double plain = seconds(c, CURLINFO_CONNECT_TIME_T), secure = seconds(c, CURLINFO_APPCONNECT_TIME_T);
    double ready = connects > 0 ? (secure > plain ? secure : plain) : 0; /* sending comes behind it */
    *t = (remote_times){.connect = ready,
                        .waited = seconds(c, CURLINFO_STARTTRANSFER_TIME_T) - ready,
                        .total = seconds(c, CURLINFO_TOTAL_TIME_T) - ready,
                        .body_sent = (uint64_t)up,
                        .body_received = (uint64_t)down,
                        .sent = a->sent,
                        .received = a->received};
}

/* Headers of a request; false: out of memory. */
static bool make_headers(const remote *r, size_t head, bool binary, struct curl_slist **list)
{
    char length[64];
    snprintf(length, sizeof(length), "Inference-Header-Content-Length: %zu", head);
    const char *const lines[] = {
        "Expect:", r->authorization, binary ? length : NULL,
        binary ? "Content-Type: application/octet-stream" : "Content-Type: application/json"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct curl_slist *grown = lines[i] ? curl.slist_append(*list, lines[i]) : *list;
        if (lines[i] && !grown) {
            return false;
        }
        *list = grown;
    }
    return true;
}

static void configure(CURL *c, const remote *r, const char *url, double timeout, answer *a,
                      const remote_stop *stop)
{
    curl.easy_reset(c); /* keeps its connections */
    curl.easy_setopt(c, CURLOPT_ERRORBUFFER, a->why);
    double limit = timeout > 0 ? timeout : r->timeout;
    curl.easy_setopt(c, CURLOPT_URL, url);
    curl.easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl.easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl.easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(limit * 1000 < 1 ? 1 : limit * 1000));
    curl.easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
    curl.easy_setopt(c, CURLOPT_WRITEDATA, a);
    curl.easy_setopt(c, CURLOPT_HEADERFUNCTION, take_header);
    curl.easy_setopt(c, CURLOPT_HEADERDATA, a);
    curl.easy_setopt(c, CURLOPT_VERBOSE, 1L); /* to the function that counts, nowhere else */
    curl.easy_setopt(c, CURLOPT_DEBUGFUNCTION, count_bytes);
    curl.easy_setopt(c, CURLOPT_DEBUGDATA, a);
    curl.easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (r->ca) {
        curl.easy_setopt(c, CURLOPT_CAINFO, r->ca);
    }
    if (stop) {
        curl.easy_setopt(c, CURLOPT_XFERINFOFUNCTION, look);
        curl.easy_setopt(c, CURLOPT_XFERINFODATA, (void *)(uintptr_t)stop);
        curl.easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    }
}

/* What the server says of a refusal: {"error": "..."}, or the beginning of whatever it says. */
static nori_status refused(const char *url, long status, const answer *a, nori_error *err)
{
    return remote_fail(err, NORI_ERROR_UNAVAILABLE, "%s answered %ld: %.300s", url, status,
                       a->body && a->size > 0 ? a->body : "nothing more was said");
}

/* Why there was no answer, and what to do. Texts are those of OpenSSL, GnuTLS and libcurl itself. */
static nori_status unanswered(const remote *r, const char *url, CURLcode code, const char *why,
                              nori_error *err)
{
    const char *hint = "";
    if (code == CURLE_PEER_FAILED_VERIFICATION) {
        hint = strstr(why, "expired") ? "the server needs a new certificate"
               : strstr(why, "match") ? "call the server by the name or address that its certificate has"
               : r->ca ? "--ca FILE must hold the server's own certificate, or that of who signed it"
                       : "--ca FILE names the certificate to trust: the server's own, or that of who signed "
                         "it";
    } else if (code == CURLE_SSL_CACERT_BADFILE) {
        hint = "--ca: a file of PEM certificates was expected";
    } else if (code == CURLE_SSL_CONNECT_ERROR) {
        hint = "a server without TLS is called by http://";
    } else if (code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR) {
        hint = "a server with TLS is called by https://";
    } else if (code == CURLE_COULDNT_CONNECT) {
        hint = "does a server listen there? nori serve does";
    }
    nori_status s = remote_fail(err, NORI_ERROR_UNAVAILABLE, "%s: %s", url,
                                why[0] ? why : curl.easy_strerror(code));
    if (err && !err->hint[0]) {
        snprintf(err->hint, sizeof(err->hint), "%s", hint);
    }
    return s;
}

/* One request: a GET where body is NULL. On success the answer's body is the caller's. */
static nori_status call_server(remote *r, const char *path, const char *body, size_t size, size_t head,
                               double timeout, const remote_stop *stop, answer *a, remote_times *times,
                               nori_error *err)
{
    char url[2048];
    long status = 0;
    struct curl_slist *headers = NULL;
    *a = (answer){.head = SIZE_MAX};
    if ((size_t)snprintf(url, sizeof(url), "%s%s", r->url, path) >= sizeof(url)) {
        return remote_fail(err, NORI_ERROR_ARGUMENT, "the server's address is too long");
    }
    CURL *c = take_connection(r);
    if (!c || !make_headers(r, head, body && head < size, &headers)) {
        curl.slist_free_all(headers);
        if (c) {
            give_connection(r, c);
        }
        return remote_fail(err, NORI_ERROR_MEMORY, "out of memory");
    }
    configure(c, r, url, timeout, a, stop);
    curl.easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    if (body) {
        curl.easy_setopt(c, CURLOPT_POST, 1L);
        curl.easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
        curl.easy_setopt(c, CURLOPT_POSTFIELDS, body);
    }
    CURLcode code = curl.easy_perform(c);
    curl.easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    read_times(c, a, times);
    curl.easy_setopt(c, CURLOPT_ERRORBUFFER, NULL);
    nori_status s = NORI_OK;
    if (a->failed) {
        s = remote_fail(err, NORI_ERROR_MEMORY, "the answer of %s is too large to be held", url);
    } else if (code == CURLE_ABORTED_BY_CALLBACK) {
        s = remote_fail(err, NORI_ERROR_CANCELLED, "the call to %s was given up", url);
    } else if (code != CURLE_OK) {
        s = unanswered(r, url, code, a->why, err);
    } else if (status < 200 || status >= 300) {
        s = refused(url, status, a, err);
    }
    curl.slist_free_all(headers);
    give_connection(r, c);
    if (s != NORI_OK) {
        free(a->body);
        a->body = NULL;
    }
    return s;
}

nori_status remote_get(remote *r, const char *path, char **body, remote_times *times,
                       const remote_stop *stop, nori_error *err)
{
    answer a;
    remote_times own;
    nori_status s = call_server(r, path, NULL, 0, 0, 0, stop, &a, times ? times : &own, err);
    if (s == NORI_OK && body) {
        *body = a.body ? a.body : calloc(1, 1);
        return *body ? NORI_OK : remote_fail(err, NORI_ERROR_MEMORY, "out of memory");
    }
    free(a.body);
    return s;
}

nori_status remote_infer(remote *r, const remote_call *call, nori_tensor **outs, remote_times *times,
                         nori_error *err)
{
    char path[1100], *body = NULL;
    size_t size = 0, head = 0;
    answer a;
    snprintf(path, sizeof(path), "/v2/models/%s/infer", call->model ? call->model : r->model);
    nori_status s = remote_encode(call, &body, &size, &head, err);
    if (s == NORI_OK) {
        s = call_server(r, path, body, size, head, call->timeout, call->stop, &a, times, err);
    }
    if (s == NORI_OK) {
        s = remote_decode(call, a.body ? a.body : "", a.size, a.head == SIZE_MAX ? a.size : a.head,
                          outs, err);
        free(a.body);
    }
    free(body);
    return s;
}

nori_status remote_statistics(remote *r, remote_stats *stats, nori_error *err)
{
    char path[1100], *body = NULL;
    snprintf(path, sizeof(path), "/v2/models/%s/stats", r->model);
    nori_status s = remote_get(r, path, &body, NULL, NULL, err);
    s = s == NORI_OK ? remote_decode_stats(body, r->model, stats, err) : s;
    free(body);
    return s;
}

#endif

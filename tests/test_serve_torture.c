/* A server whose allocations fail while requests come: each one alone, then every so many with several
 * callers at once, then those of the HTTP library as well. Each answer is right or says 5xx and why; the
 * server stays; nothing that was taken stays taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "failing_malloc.h"
#include "nori/serve.h"

#define DIGITS NORI_EXAMPLES_DIR "/digits/digits.onnx"
#define PIXELS 784
#define MOST_POINTS 4000

typedef struct request {
    const char *name;
    char bytes[12000];
    size_t size;
    long stride; /* of the allocations that fail, where there are thousands */
} request;

typedef struct answer {
    int status; /* 0: the connection ended without one */
    size_t size;
    char bytes[1 << 17];
} answer;

static nori_server *server;
static char folder[64];
static request requests[12];
static size_t request_count;
static float right[10]; /* logits of the picture */

/* ---- calling ---- */

static void ask(const request *r, answer *a)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)nori_serve_port(server))};
    const struct timeval patience = {20, 0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a->status = 0;
    a->size = 0;
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    for (size_t sent = 0; sent < r->size;) {
        ssize_t n = send(fd, r->bytes + sent, r->size - sent, MSG_NOSIGNAL);
        if (n <= 0) {
            break; /* refused before all of it was there: the answer waits */
        }
        sent += (size_t)n;
    }
    for (ssize_t n = 1; n > 0 && a->size < sizeof(a->bytes) - 1; a->size += n > 0 ? (size_t)n : 0) {
        n = recv(fd, a->bytes + a->size, sizeof(a->bytes) - 1 - a->size, 0);
    }
    a->bytes[a->size] = 0;
    if (a->size > 12 && memcmp(a->bytes, "HTTP/1.1 ", 9) == 0) {
        a->status = atoi(a->bytes + 9);
    }
    close(fd);
}

static void add(const char *name, long stride, const char *method, const char *path, const char *json,
                const void *data, size_t bytes)
{
    request *r = &requests[request_count++];
    char binary[80] = "";
    size_t n = strlen(json);
    if (data) {
        snprintf(binary, sizeof(binary), "Inference-Header-Content-Length: %zu\r\n", n);
    }
    int head = snprintf(r->bytes, sizeof(r->bytes), "%s %s HTTP/1.1\r\nHost: localhost\r\n%s"
                        "Content-Length: %zu\r\nConnection: close\r\n\r\n%s", method, path, binary, n + bytes,
                        json);
    assert_true(head > 0 && (size_t)head + bytes < sizeof(r->bytes));
    if (data) {
        memcpy(r->bytes + head, data, bytes);
    }
    r->size = (size_t)head + bytes;
    r->name = name;
    r->stride = stride;
}

static const request *named(const char *name)
{
    size_t i = 0;
    while (strcmp(requests[i].name, name) != 0) {
        i++;
    }
    return &requests[i];
}

/* 200 and, of the binary call, the numbers; or 5xx with words. none: the library that reads HTTP may have
 * ended the connection without an answer, or read too little of the request. */
/* Rows that were run with others may differ in their last bits. */
static bool same_logits(const answer *a)
{
    float got[10];
    bool same = a->size > sizeof(got);
    memcpy(got, a->bytes + (same ? a->size - sizeof(got) : 0), sizeof(got));
    for (int i = 0; i < 10 && same; i++) {
        same = fabsf(got[i] - right[i]) <= 1e-4f * (1 + fabsf(right[i]));
    }
    return same;
}

static bool fits(const request *r, const answer *a, bool none)
{
    if (none && (a->status == 0 || strstr(a->bytes, "this is no HTTP request"))) {
        return true;
    }
    if (a->status == 200) {
        return strcmp(r->name, "binary") != 0 || same_logits(a);
    }
    const char *body = strstr(a->bytes, "\r\n\r\n");
    return a->status >= 500 && body && strstr(body, "\"error\":\"") &&
           (a->status != 503 || strstr(a->bytes, "Retry-After: ") || strstr(a->bytes, "Connection: close"));
}

static void judge(const request *r, const answer *a, bool none, long point)
{
    if (!fits(r, a, none)) {
        fail_msg("%s, allocation %ld: %d: %s", r->name, point, a->status, a->bytes);
    }
}

static void works(void)
{
    static answer a;
    for (size_t i = 0; i < request_count; i++) {
        ask(&requests[i], &a);
        if (a.status != 200) {
            fail_msg("%s: %d: %s", requests[i].name, a.status, a.bytes);
        }
        judge(&requests[i], &a, false, 0);
    }
}

/* Blocks taken when nothing goes on: connections are let go of a little later than they end. */
static long at_rest(long wanted)
{
    const struct timespec tick = {0, 5000000};
    long now = failing_live();
    for (int i = 0, same = 0; i < 400 && same < 40 && (wanted == 0 || now > wanted); i++) {
        nanosleep(&tick, NULL);
        long next = failing_live();
        same = next == now ? same + (wanted == 0) : 0;
        now = next;
    }
    return now;
}

/* ---- the tests ---- */

static int begin(void **state)
{
    (void)state;
    static float picture[PIXELS];
    static char json[9000], file[128];
    static answer a;
    nori_serve_options o;
    nori_error err = {0};
    size_t n = 0;
    failing_spare_thread();
    snprintf(folder, sizeof(folder), "/tmp/nori-serve-torture-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof(file), "%s/digits.onnx", folder);
    assert_int_equal(symlink(DIGITS, file), 0);
    nori_serve_options_default(&o);
    o.port = 0;
    o.repository = folder;
    o.batch = 8;
    if (nori_serve_start(&o, &server, &err) != NORI_OK || nori_serve_wait(server, -1, &err) != NORI_OK) {
        fail_msg("%s", err.message);
    }
    n = (size_t)snprintf(json, sizeof(json), "{\"id\":\"one\",\"inputs\":[{\"name\":\"image\",\"datatype\":"
                         "\"FP32\",\"shape\":[1,1,28,28],\"data\":[");
    for (int i = 0; i < PIXELS; i++) {
        picture[i] = (float)(i * 37 % 256) / 255.0f;
        n += (size_t)snprintf(json + n, sizeof(json) - n, "%s%d.5", i ? "," : "", i % 7);
    }
    snprintf(json + n, sizeof(json) - n, "]}]}");
    add("json", 1, "POST", "/v2/models/digits/infer", json, NULL, 0);
    add("binary", 1, "POST", "/v2/models/digits/infer",
        "{\"inputs\":[{\"name\":\"image\",\"datatype\":\"FP32\",\"shape\":[1,1,28,28],\"parameters\":"
        "{\"binary_data_size\":3136}}],\"parameters\":{\"binary_data_output\":true}}",
        picture, sizeof(picture));
    add("metadata", 1, "GET", "/v2/models/digits", "", NULL, 0);
    add("config", 1, "GET", "/v2/models/digits/config", "", NULL, 0);
    add("stats", 1, "GET", "/v2/models/digits/stats", "", NULL, 0);
    add("all stats", 1, "GET", "/v2/models/stats", "", NULL, 0);
    add("metrics", 1, "GET", "/metrics", "", NULL, 0);
    add("index", 1, "POST", "/v2/repository/index", "{}", NULL, 0);
    add("ready", 1, "GET", "/v2/health/ready", "", NULL, 0);
    add("unload", 1, "POST", "/v2/repository/models/digits/unload", "{}", NULL, 0);
    add("load", 29, "POST", "/v2/repository/models/digits/load", "{}", NULL, 0);
    ask(named("binary"), &a);
    assert_int_equal(a.status, 200);
    memcpy(right, a.bytes + a.size - sizeof(right), sizeof(right));
    works();
    return 0;
}

static int end(void **state)
{
    (void)state;
    char file[128];
    size_t lost = nori_serve_stop(server, 0, 5);
    nori_serve_free(server);
    snprintf(file, sizeof(file), "%s/digits.onnx", folder);
    unlink(file);
    rmdir(folder);
    return lost != 0;
}

/* Each allocation of each request fails once. */
static long pass(bool none)
{
    static answer a;
    long points = 0;
    for (size_t i = 0; i < request_count; i++) {
        const request *r = &requests[i];
        long failures = 1;
        for (long k = 1; failures > 0 && k < MOST_POINTS * r->stride; k += r->stride) {
            failing_arm(k, false);
            ask(r, &a);
            failures = failing_disarm();
            judge(r, &a, none, k);
            if (failures == 0 && a.status != 200) {
                fail_msg("%s, without a failure: %d: %s", r->name, a.status, a.bytes);
            }
            points += failures;
            if (strcmp(r->name, "unload") == 0) { /* so that there is something to unload */
                ask(named("load"), &a);
                assert_int_equal(a.status, 200);
            } else if (strcmp(r->name, "load") == 0) {
                ask(named("unload"), &a);
                ask(named("binary"), &a);
                assert_true(a.status == 404 || a.status == 503);
            }
        }
        ask(named("load"), &a);
        assert_int_equal(a.status, 200);
    }
    works();
    return points;
}

/* A point that keeps a block keeps one in each pass; what libraries keep for later they keep once. */
static void passes(bool none)
{
    long before = at_rest(0), after = before + 1, points = 0;
    for (int i = 0; i < 5 && after > before; i++) {
        before = i > 0 ? after : before;
        points = pass(none);
        after = at_rest(before);
        print_message("%ld allocations failed, each alone; %ld blocks taken before, %ld after\n", points,
                      before, after);
    }
    assert_true(points > 100);
    assert_true(after <= before);
}

static void each_alone(void **state)
{
    (void)state;
    failing_spare_library("libmicrohttpd");
    passes(false);
}

static void also_of_the_http_library(void **state)
{
    (void)state;
    failing_spare_library(NULL);
    passes(true);
}

/* ---- many at once ---- */

static void *call_on(void *user)
{
    failing_spare_thread();
    answer *a = calloc(1, sizeof(*a));
    long *counts = user; /* of right answers, of refusals, of others */
    for (int i = 0; a && i < 60; i++) {
        const request *r = named(i % 3 ? "binary" : "json");
        ask(r, a);
        bool fine = fits(r, a, false);
        counts[!fine ? 2 : a->status != 200]++;
        if (!fine) {
            print_error("%s: %d: %s\n", r->name, a->status, a->bytes);
        }
    }
    free(a);
    return NULL;
}

static void together(long every)
{
    pthread_t threads[6];
    long counts[6][3] = {{0}}, fine = 0, refused = 0;
    failing_arm(every, true);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, call_on, counts[i]), 0);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
        fine += counts[i][0];
        refused += counts[i][1];
    }
    long failures = failing_disarm();
    print_message("every %ldth failed (%ld): %ld answers, %ld refusals\n", every, failures, fine,
                  refused);
    assert_int_equal(fine + refused, 360);
    assert_true(failures > 0 && refused > 0 && (fine > 0 || every < 500));
    works();
}

static void every_so_many(void **state)
{
    (void)state;
    failing_spare_library("libmicrohttpd");
    const long every[] = {5, 17, 101, 997};
    long before = at_rest(0), after = before + 1;
    for (int i = 0; i < 5 && after > before; i++) {
        before = i > 0 ? after : before;
        for (size_t k = 0; k < sizeof(every) / sizeof(every[0]); k++) {
            together(every[k]);
        }
        after = at_rest(before);
        print_message("%ld blocks taken before, %ld after\n", before, after);
    }
    assert_true(after <= before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_alone),
        cmocka_unit_test(every_so_many),
        cmocka_unit_test(also_of_the_http_library),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

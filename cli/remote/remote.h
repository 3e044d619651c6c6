/* remote.h: a server that speaks the Open Inference Protocol v2, over HTTP. One object may be used by
 * several threads at once: each call takes a connection of its own, kept alive between calls. */
#ifndef NORI_CLI_REMOTE_H
#define NORI_CLI_REMOTE_H

#include "cli.h"

typedef struct remote remote;

/* Options of verbs that call a server; spliced into their tables. */
#define CLI_REMOTE_OPTIONS                                                                       \
    {"--cloud", "URL", "of the server: http://host:8000, or .../v2/models/NAME"},                \
    {"--cloud-model", "NAME", "of the model there (default: the file's name)"},                  \
    {"--token-file", "FILE", "with the bearer token that the server asks for"},                  \
    {"--ca", "FILE", "certificates of who may sign for the server"},                             \
    {"--timeout", "TIME", "of one call to the server (default 10s)"}

/* The server of --cloud. model: the path of the file that runs there. 0 or an exit code. */
int remote_open(const cli_args *args, const char *model, remote **r);
void remote_free(remote *r);
const char *remote_url(const remote *r);   /* without the model */
const char *remote_model(const remote *r); /* its name there */
double remote_timeout(const remote *r);    /* seconds */

/* Where the time of one call went, as the client saw it, in seconds; what went over the wire. */
typedef struct remote_times {
    double connect; /* setting the connection up: TCP, and TLS where it is asked for; 0: it was there */
    double waited;  /* from the request being ready to go to the answer's first byte */
    double total;   /* from then to its last */
    uint64_t sent, received;           /* bytes, headers of HTTP included */
    uint64_t body_sent, body_received; /* bodies alone */
} remote_times;

/* Something that is asked while a call goes on: 1 stops it (CANCELLED). */
typedef struct remote_stop {
    int (*stopped)(void *user);
    void *user;
} remote_stop;

/* GET of a path below the server, as "/v2/health/live"; body may be NULL, else the caller frees it.
 * Errors: UNAVAILABLE (no answer, or one that says no), with what the server said. */
nori_status remote_get(remote *r, const char *path, char **body, remote_times *times,
                       const remote_stop *stop, nori_error *err);

/* What a call asks for. names: of inputs and outputs, as the server knows them. */
typedef struct remote_call {
    const char *model; /* NULL: that of remote_open */
    const nori_value_info *const *inputs;
    const nori_tensor *const *tensors; /* NULL entries are left out */
    size_t n_in;
    const nori_value_info *const *outputs;
    size_t n_out;
    size_t pad_request; /* blanks added to the request: bytes that cost only their way there */
    size_t pad_both;    /* characters of the request's id, which the answer repeats */
    double timeout;     /* seconds; 0: that of --timeout */
    const remote_stop *stop; /* or NULL */
} remote_call;
/* Runs the model there; outs[i] become new tensors. Binary tensors are used both ways. */
nori_status remote_infer(remote *r, const remote_call *call, nori_tensor **outs, remote_times *times,
                         nori_error *err);

/* What the server counted so far for the model, in nanoseconds. */
typedef struct remote_stats {
    uint64_t calls, queue_ns, compute_ns; /* compute: input, inference and output together */
} remote_stats;
nori_status remote_statistics(remote *r, remote_stats *stats, nori_error *err);

/* ---- remote_body.c: requests and answers as bytes ---- */

/* The body of a call; *head: bytes of its JSON, which the binary tensors follow. */
nori_status remote_encode(const remote_call *call, char **body, size_t *size, size_t *head,
                          nori_error *err);
/* head: bytes of JSON in front of binary tensors; size when the answer has none of these. */
nori_status remote_decode(const remote_call *call, const char *body, size_t size, size_t head,
                          nori_tensor **outs, nori_error *err);
/* Of a statistics document. */
nori_status remote_decode_stats(const char *text, const char *model, remote_stats *stats,
                                nori_error *err);

/* Fills an error of the command's own. */
nori_status remote_fail(nori_error *err, nori_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif

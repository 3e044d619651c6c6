/* serve.h: models answered over HTTP by the Open Inference Protocol, version 2 (docs/serve.md).
 *
 * A library of its own, libnori_serve: the core needs none of what it needs (libmicrohttpd, jansson).
 * A server has threads of its own: these functions return at once but for those that say they wait. */
#ifndef NORI_SERVE_H
#define NORI_SERVE_H

#include "nori/nori.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef NORI_SERVE_API
#define NORI_SERVE_API NORI_API
#endif

/* "0.1.0": of the library; static storage. */
NORI_SERVE_API const char *nori_serve_version(void);

/* What happens in a server, for logs. Strings are only good during the call. */
typedef struct nori_serve_event {
    size_t size;
    const char *what;    /* preparing, cache, ready, failed, unloaded, note, stopping, stopped */
    const char *model;   /* or "" */
    const char *version; /* or "" */
    const char *text;    /* for people, or "" */
    size_t done, total;  /* preparing: steps of its phase; total 0: not known */
} nori_serve_event;

typedef struct nori_serve_options {
    size_t size;              /* sizeof, set by _default */
    nori_env *env;            /* NULL: the default one */
    const char *address;      /* numeric; default "127.0.0.1". One that other machines reach is refused
                                 without a token, unless insecure is set */
    int port;                 /* 0: a free one; default 8000 */
    int insecure;
    const char *token;        /* bearer token asked of every call but health; NULL: none */
    const char *certificate;  /* PEM text of the certificates and ... */
    const char *key;          /* ... of the private key: TLS. NULL: none */
    const char *const *models; /* files, "NAME=FILE" or "FILE" (its name without the ending) ... */
    size_t model_count;
    const char *repository;   /* ... and a folder NAME/VERSION/model.onnx or NAME.onnx; or NULL */
    int explicit_load;        /* 1: of the folder nothing is loaded until asked for */
    int versions;             /* of each model of the folder, the newest so many; default 1 */
    const nori_session_options *session; /* NULL: defaults. What it points at must outlive
                                 the server; progress is not used: see event */
    int workers;              /* runs of one model at once; default 1 */
    int batch;                /* rows that one run may join, of several requests; default 1: none */
    double batch_delay;       /* seconds a request may wait for others to join; default 0 */
    int queue;                /* requests that may wait for a model, more get 503; default 256 */
    double timeout;           /* seconds a request may take where it does not say; 0: any */
    int connections;          /* at most; default 2048 */
    int http_threads;         /* 0: as the machine has CPUs, at most 4 */
    size_t header_bytes;      /* of a request; default 32 KiB */
    size_t body_bytes;        /* of a request; default 64 MiB */
    size_t json_bytes;        /* of the JSON in a body, which takes many times its size; default 16 MiB */
    size_t memory_bytes;      /* of all bodies being read or waiting; more get 503; default 1 GiB */
    double receive_timeout;   /* seconds for a request to come in whole; default 30 */
    double idle_timeout;      /* seconds a connection may stay without a request; default 120 */
    void (*event)(void *user, const nori_serve_event *event); /* from any thread; or NULL */
    void *event_user;
} nori_serve_options;
NORI_SERVE_API void nori_serve_options_default(nori_serve_options *options);

/* Shared by any threads. */
typedef struct nori_server nori_server;

/* Listens, and begins to load what is to be loaded: until that is done calls get 503 and readiness is
 * false. Options are copied. Errors: ARGUMENT, IO (address in use), UNAVAILABLE (no TLS), MEMORY. */
NORI_SERVE_API nori_status nori_serve_start(const nori_serve_options *options, nori_server **server,
                                            nori_error *error);
/* "http://127.0.0.1:8000", good until free. */
NORI_SERVE_API const char *nori_serve_address(const nori_server *server);
NORI_SERVE_API int nori_serve_port(const nori_server *server);
/* 1: all that was to be loaded is, and the server is not stopping. */
NORI_SERVE_API int nori_serve_ready(const nori_server *server);
/* Waits until everything was tried to be loaded (seconds < 0: as long as it takes). The first that
 * could not be loaded is the error; CANCELLED when the time is over. */
NORI_SERVE_API nori_status nori_serve_wait(nori_server *server, double seconds, nori_error *error);
/* Graceful end: readiness false, for `notice` seconds new connections are still taken (what balances
 * load looks away in that time), then what was accepted is answered, for at most `drain` seconds.
 * Waits. Gives the number of requests that got no answer. */
NORI_SERVE_API size_t nori_serve_stop(nori_server *server, double notice, double drain);
/* Stops at once if it was not stopped. Accepts NULL. */
NORI_SERVE_API void nori_serve_free(nori_server *server);

/* What a loaded model did so far; times are sums in nanoseconds. */
typedef struct nori_serve_stats {
    size_t size; /* sizeof, set by the caller */
    char model[256], version[32];
    uint64_t succeeded, failed, rejected, expired; /* requests: answered, 4xx/5xx by running, 503, 504 */
    uint64_t rows, runs;    /* inferences (a batch of 4 is 4) and runs of the session */
    uint64_t queue_ns, compute_ns;
    uint64_t waiting, running; /* requests now */
    int batches;            /* 1: requests may be joined */
} nori_serve_stats;
/* By index; 0 past the last. */
NORI_SERVE_API int nori_serve_stats_at(nori_server *server, size_t index, nori_serve_stats *stats);

#ifdef __cplusplus
}
#endif
#endif

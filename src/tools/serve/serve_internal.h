/* serve_internal.h: the server's objects and who may touch them.
 *
 * A request comes in on a thread of libmicrohttpd (serve_http.c), is read there (serve_parse.c) and
 * becomes a job in its model's queue (serve_queue.c); a worker of the model takes it, alone or with
 * others of its shape (serve_batch.c), runs it, writes the answer and wakes the connection. Models are
 * loaded by one thread (serve_load.c). Locks, in the order they may be taken: server, model. */
#ifndef NORI_SERVE_INTERNAL_H
#define NORI_SERVE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "nori/serve.h"
#include "serve_protocol.h"

typedef struct serve_model serve_model;
typedef struct serve_client serve_client;

/* ---- statistics ---- */

#define SERVE_BUCKETS 16 /* of a histogram of times; one more for what is beyond */
extern const double nori__serve_bounds[SERVE_BUCKETS]; /* seconds */

typedef struct serve_times {
    uint64_t count, ns;
    uint64_t bucket[SERVE_BUCKETS + 1];
} serve_times;
void nori__serve_count(serve_times *times, uint64_t ns);

#define SERVE_BATCH_ROWS 32 /* rows of a run that are counted one by one; more are the last */
typedef struct serve_batch_row {
    uint64_t count, input_ns, infer_ns, output_ns;
    int64_t rows;
} serve_batch_row;

/* Of a model, under its lock. The times of a request: in the queue, making tensors of several requests
 * one, running, cutting results apart and writing them; and all of it, from the last byte on. */
typedef struct serve_counts {
    serve_times queue, input, infer, output, total;
    uint64_t failed, failed_ns, rejected, expired, rows, runs;
    int64_t last_ms; /* since 1970 */
    serve_batch_row batch[SERVE_BATCH_ROWS];
} serve_counts;

uint64_t nori__serve_now(void); /* nanoseconds of a clock that only goes on */

/* ---- jobs ---- */

/* One infer request on its way. The connection owns it; while queued or running the model has it. */
typedef struct serve_job {
    struct serve_job *next;
    serve_request request;
    int64_t rows;      /* along axis 0, when the model has rows; else -1 */
    uint64_t arrived, taken, started, ended; /* ns */
    uint64_t deadline; /* 0: none */
    uint64_t queue_ns, infer_ns;
    int code;          /* of HTTP, when done */
    serve_text answer;
    size_t json_size;
    nori_error err;
    void (*done)(void *user); /* by the worker; the job may be gone when it returns */
    void *user;
} serve_job;

/* ---- models ---- */

typedef enum serve_state { SERVE_LOADING, SERVE_READY, SERVE_FAILED, SERVE_CLOSED } serve_state;

/* Where a file was when it was loaded, to see whether it is another one now. */
typedef struct serve_stamp {
    int64_t size, mtime_ns;
    uint64_t inode;
} serve_stamp;

struct serve_model {
    serve_model *next;   /* in the server's list, under its lock */
    nori_server *server;
    char *name, *version, *path;
    int64_t number;      /* of the version */
    uint64_t serial;     /* rises with each model of the list */
    serve_stamp stamp;
    atomic_int refs;
    /* Made by the loader, then constant: */
    nori_session *session;
    serve_signature signature;
    bool has_rows;       /* the first axis of everything is a free one: rows are counted */
    bool batches;        /* and requests are joined along it */
    char batch_why[300]; /* where it does not, though it was asked for */
    /* Under the lock: */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    serve_state state;
    char reason[2600];   /* why it is not ready */
    char phase[400];     /* what is being prepared */
    serve_job *first, *last;
    size_t waiting, running, gathering;
    size_t reserved;     /* places in the queue for requests that are being read */
    int workers;         /* threads that live */
    serve_counts counts;
};

/* A new one with one reference, not in any list. NULL: out of memory. */
serve_model *nori__serve_model_new(nori_server *s, const char *name, const char *version,
                                   const char *path);
void nori__serve_model_free(serve_model *m); /* gives a reference back */
/* Loads, compiles, proves batching. The model's state and reason follow. */
nori_status nori__serve_prepare(serve_model *m, nori_error *err);
/* Whether rows can be joined, found by doing it. */
bool nori__serve_batch_proof(const nori_session *session, const serve_signature *signature, char *why,
                             size_t size);
/* Whether the first axis of all inputs and outputs is one free size. */
bool nori__serve_batch_axis(const serve_signature *signature, char *why, size_t size);

/* ---- queue ---- */

typedef enum serve_place { SERVE_PLACE, SERVE_FULL, SERVE_GONE } serve_place;
/* A place in the queue: what has one is done, whatever happens to the model meanwhile. */
serve_place nori__serve_reserve(serve_model *m);
void nori__serve_unreserve(serve_model *m);
/* A job takes the place. Its times are set. */
void nori__serve_push(serve_model *m, serve_job *job);
bool nori__serve_workers(serve_model *m, nori_error *err); /* starts them */
/* No more jobs; those there are are done, then the workers end. */
void nori__serve_close(serve_model *m);
/* All that wait fail with 503. */
size_t nori__serve_give_up(serve_model *m);
/* Fails what is beyond its deadline; the time of the next one, or UINT64_MAX. */
uint64_t nori__serve_expire(serve_model *m, uint64_t now);
void nori__serve_done(serve_model *m, serve_job *job); /* counts it and calls done */

/* Runs jobs as one (count 1: as it is) and finishes each. */
void nori__serve_run(serve_model *m, serve_job **jobs, size_t count);
/* Whether two jobs may run as one. */
bool nori__serve_alike(const serve_model *m, const serve_job *a, const serve_job *b);
/* Rows of a job along axis 0, -1: its inputs do not have one number of them. */
int64_t nori__serve_rows(const serve_model *m, const serve_request *r);
int nori__serve_code(nori_status status);

/* ---- server ---- */

/* What the loader is to do; NULL name: all there is to load at the start. done is called once, when it
 * was done or never will be. */
typedef struct serve_task {
    struct serve_task *next;
    char *name;
    void (*done)(void *user, const nori_error *err); /* or NULL */
    void *user;
} serve_task;

struct nori_server {
    nori_serve_options options; /* texts copied */
    nori_session_options session;
    char **models;              /* copied */
    char url[160];
    int port;
    void *daemon;               /* struct MHD_Daemon */
    void *no_memory;            /* struct MHD_Response: the answer that takes no memory to make */
    int listening;              /* socket, after the daemon let go of it; -1 */
    atomic_int starting;        /* 1 until all was tried to be loaded */
    atomic_int start_failed;    /* 1: something of it could not be */
    atomic_int stopping;        /* 1: readiness is false; 2: answers close their connection */
    atomic_size_t body_bytes;   /* of all bodies held */
    atomic_size_t exchanges;    /* requests between their first byte seen and their last sent */
    atomic_uint_fast64_t http[6]; /* answers by class: 2xx at [2] ... */
    atomic_uint_fast64_t lost;  /* requests that got no answer */
    pthread_mutex_t lock;
    pthread_cond_t changed;     /* something below, or a worker ended */
    serve_model *list;          /* under the lock, as all that follows */
    uint64_t linked;            /* models that were in the list so far */
    nori_error start_error;
    serve_task *first_task, *last_task, *now_task; /* now: being done */
    uint64_t watch_at;          /* when the watcher wakes, ns */
    pthread_cond_t watch_wake;
    bool loader_ends, watch_ends;
    size_t live_models;         /* made and not yet freed */
    pthread_t loader, watcher;
    bool has_loader, has_watcher;
    serve_client *clients;      /* under clients_lock, which is taken alone */
    pthread_mutex_t clients_lock;
    size_t client_count;
};

void nori__serve_tell(nori_server *s, const char *what, const char *model, const char *version,
                      size_t done, size_t total, const char *format, ...) SERVE_PRINTF(7, 8);

/* The models of the list one by one, the newest first, each with a reference that the next call gives
 * back: begin with NULL. Takes no memory, and the list may change meanwhile. */
serve_model *nori__serve_next(nori_server *s, serve_model *after);
/* A model by name and version (NULL: the newest ready one, else the newest), with a reference; NULL:
 * none. */
serve_model *nori__serve_find(nori_server *s, const char *name, const char *version);
void nori__serve_unlink(nori_server *s, serve_model *m); /* out of the list; its reference is given back */

/* ---- loader ---- */

nori_status nori__serve_loader(nori_server *s, nori_error *err); /* starts its thread */
void nori__serve_loader_end(nori_server *s);
void nori__serve_loader_stop(nori_server *s); /* what is not done never will be; does not wait */
/* false: out of memory, or the server is ending. */
bool nori__serve_load(nori_server *s, const char *name, void (*done)(void *user, const nori_error *err),
                      void *user);
nori_status nori__serve_unload(nori_server *s, const char *name, nori_error *err);

/* ---- models on disk ---- */

typedef struct serve_file {
    char *name, *version, *path;
    int64_t number;
} serve_file;
typedef struct serve_files {
    serve_file *items;
    size_t count, room;
} serve_files;
/* All there are, by name, the newest version first; name: only that one, or NULL. */
nori_status nori__serve_scan(const nori_server *s, const char *name, serve_files *files,
                             nori_error *err);
void nori__serve_files_free(serve_files *files);
bool nori__serve_stamp(const char *path, serve_stamp *stamp);

/* ---- what calls without a body say ---- */

void nori__serve_metrics(nori_server *s, serve_text *t);
void nori__serve_model_stats(serve_model *m, serve_text *t);
void nori__serve_index(nori_server *s, bool ready_only, serve_text *t);
void nori__serve_metadata(serve_model *m, serve_text *t);
void nori__serve_config(serve_model *m, serve_text *t);
void nori__serve_readiness(nori_server *s, serve_text *t);

/* ---- http ---- */

nori_status nori__serve_listen(nori_server *s, nori_error *err);
void nori__serve_quiesce(nori_server *s); /* takes what the kernel has accepted, then no more */
void nori__serve_hang_up(nori_server *s); /* nobody may wait for an answer any more */
/* Clients that are too slow are told so and cut off. */
void nori__serve_watch_clients(nori_server *s, uint64_t now);
/* No request is on its way, and no connection did anything for a while. */
bool nori__serve_idle(nori_server *s);
nori_status nori__serve_watcher(nori_server *s, nori_error *err); /* starts its thread */
void nori__serve_watcher_end(nori_server *s);
void nori__serve_watch(nori_server *s, uint64_t deadline); /* it is to wake by then */
/* The page: its files by path, or NULL. */
const char *nori__serve_page(const char *path, size_t *size, const char **type);

#endif

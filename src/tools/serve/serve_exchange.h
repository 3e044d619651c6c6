/* serve_exchange.h: one request and its answer, as files that know of HTTP see it. */
#ifndef NORI_SERVE_EXCHANGE_H
#define NORI_SERVE_EXCHANGE_H

#include <microhttpd.h>

#include "serve_internal.h"

/* What a connection is doing. Under the server's clients_lock. */
typedef enum serve_doing {
    SERVE_IDLE,      /* nothing, or it began the first line of a request */
    SERVE_RECEIVING, /* a request comes in */
    SERVE_WORKING,   /* it is worked on */
    SERVE_SENDING    /* the answer goes out */
} serve_doing;

struct serve_client {
    serve_client *next, *before;
    int fd;
    serve_doing doing;
    uint64_t since; /* ns */
    bool cut;       /* off: it was told that it is too slow */
    bool asked;     /* it began a request, now or before */
    bool last;      /* the connection ends behind the answer that it was given last */
};
void nori__serve_last(nori_server *s, serve_client *c);
void nori__serve_doing(nori_server *s, serve_client *c, serve_doing doing);
/* Says no on the socket itself, and hangs up: while a body comes in the library cannot answer. */
void nori__serve_cut(nori_server *s, serve_client *c, int code, const char *text);
void nori__serve_on_connection(void *user, struct MHD_Connection *connection, void **context,
                               enum MHD_ConnectionNotificationCode what);

/* What a path asks for. */
typedef enum serve_call {
    CALL_NONE,
    CALL_LIVE,
    CALL_READY,
    CALL_SERVER,
    CALL_MODEL,
    CALL_MODEL_READY,
    CALL_MODEL_STATS,
    CALL_MODEL_CONFIG,
    CALL_INFER,
    CALL_ALL_STATS,
    CALL_INDEX,
    CALL_LOAD,
    CALL_UNLOAD,
    CALL_METRICS,
    CALL_PAGE
} serve_call;

typedef struct serve_route {
    serve_call call;
    char name[256], version[32]; /* version "": none was named */
} serve_route;
/* false: there is nothing at this path. */
bool nori__serve_route(const char *path, serve_route *route);
/* "GET", "POST" or both, as Allow says it. */
const char *nori__serve_allowed(serve_call call);
bool nori__serve_is_open(serve_call call); /* without a token */

typedef struct serve_exchange {
    nori_server *server;
    struct MHD_Connection *connection;
    serve_client *client;
    serve_route route;
    bool routed;      /* the first line and the headers were looked at */
    bool get;         /* GET or HEAD */
    bool cut_path;    /* it holds a zero byte */
    bool last;        /* the caller wants no more than this answer, or will not get more */
    char *body, *data; /* allocated; where it begins */
    char no_body[1];
    size_t size, room, charged;
    size_t json_size; /* of the header, or SERVE_ALL_JSON */
    uint64_t header_timeout_ns;
    serve_model *model; /* a reference, while a job is with it */
    serve_job *job;
    bool waiting;     /* suspended: a job or a load is on its way */
    /* The answer: */
    int code;
    const char *type; /* of its content */
    serve_text reply;
    size_t reply_json; /* Inference-Header-Content-Length, or 0 */
    const void *fixed; /* instead of reply: static bytes */
    size_t fixed_size;
    int retry_after;  /* seconds; 0: not said */
    bool page;        /* headers of pages */
    bool timed;       /* queue_ns and infer_ns are said */
    uint64_t queue_ns, infer_ns;
    nori_error load_error;
} serve_exchange;

/* Answers with an error. */
void nori__serve_refuse(serve_exchange *x, int code, const char *format, ...) SERVE_PRINTF(3, 4);
void nori__serve_refuse_error(serve_exchange *x, int code, const nori_error *err);
/* The whole request is there: fills the answer, or sets waiting (the connection is then suspended). */
void nori__serve_act(serve_exchange *x);
/* What was waited for is there: fills the answer. */
void nori__serve_finish(serve_exchange *x);

#endif

/* serve_job.h: what the files of `nori serve` share. */
#ifndef NORI_CLI_SERVE_JOB_H
#define NORI_CLI_SERVE_JOB_H

#include <pthread.h>

#include "cli.h"
#include "nori/serve.h"

/* Functions of libnori_serve, from its module. */
typedef struct serve_library {
    void (*options_default)(nori_serve_options *);
    nori_status (*start)(const nori_serve_options *, nori_server **, nori_error *);
    const char *(*address)(const nori_server *);
    nori_status (*wait)(nori_server *, double, nori_error *);
    size_t (*stop)(nori_server *, double, double);
    void (*free)(nori_server *);
} serve_library;

typedef struct serve_job {
    cli_args *args;
    serve_library library;
    nori_serve_options options;
    nori_session_options session;
    const char *models[64];
    char *token, *certificate, *key; /* read from files */
    double notice, drain;
    pthread_mutex_t lock; /* of what is written */
    char phase[64];       /* that was told last, and when */
    double told;
} serve_job;

/* Options into job->options; 0 or an exit code. Files are read. */
int serve_read_options(serve_job *j);
/* What happens, as lines on standard error, or with --json as objects on standard output. */
void serve_on_event(void *user, const nori_serve_event *e);
void serve_say(serve_job *j, const char *what, const char *address);

#endif

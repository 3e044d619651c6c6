/* profile.h: times of a model on this device, or on a server as this device sees it: measured, written
 * and read again. Seconds and bytes here; the file says milliseconds. */
#ifndef NORI_CLI_PROFILE_H
#define NORI_CLI_PROFILE_H

#include "cli.h"
#include "nori/place.h"

/* Shares at which times are kept, in [0, 1]. */
#define PROFILE_SHARES 21
extern const double profile_shares[PROFILE_SHARES];

typedef struct profile_times {
    size_t count; /* 0: not measured */
    double mean;
    double at[PROFILE_SHARES];
} profile_times;

/* Measurements of one kind as they come. */
typedef struct profile_samples {
    double *v;
    size_t count, capacity;
} profile_samples;
bool profile_add(profile_samples *s, double v); /* false: out of memory */
/* Their times; empties the list. */
void profile_settle(profile_samples *s, profile_times *out);
/* As a distribution that `nori place` adds up; false: not measured, or not rising. */
bool profile_as_times(const profile_times *p, nori_times *out);

#define PROFILE_CALLERS 16
typedef struct profile_callers {
    int callers;
    double rate; /* calls a second, all together */
    profile_times times;
} profile_callers;

typedef struct profile_node {
    char *value;   /* that it makes: the first one */
    char *op;
    double s;      /* of one run */
} profile_node;

typedef struct profile {
    bool cloud;
    char *model, *provider, *cpu, *url;
    long threads;
    double model_bytes, activation_bytes, input_bytes, output_bytes, memory;
    double load_s, create_s, first_s, minutes;
    profile_times steady, loaded; /* a call's service: alone, and after minutes of load */
    profile_callers callers[PROFILE_CALLERS];
    size_t n_callers;
    profile_node *nodes;
    size_t n_nodes;
    /* A server's: as its statistics report them, and the way there. */
    profile_times service, queue, rtt, connect, total, up, down;
    double up_bytes, down_bytes, up_speed, down_speed; /* bodies; bytes/s, 0: could not be told */
    bool reported; /* service and queue come from the server's statistics */
} profile;
void profile_free(profile *p);

/* What profiling is asked for. */
typedef struct profile_job {
    cli_args *args;
    nori_model *model;
    nori_session *session;
    nori_tensor **in;
    size_t n_in, n_out;
    long runs;
    double minutes;
    profile p;
} profile_job;
int profile_device(profile_job *j); /* profile_device.c */
int profile_load(profile_job *j);   /* profile_load.c: under load, and with several callers */
int profile_cloud(profile_job *j);  /* profile_cloud.c */

void profile_write(const profile *p, FILE *f);                  /* profile_file.c */
int profile_read(const cli_args *args, const char *path, profile *p);
void profile_print(const profile *p);                           /* profile_print.c */
int profile_page(const cli_args *args, const profile *p);       /* --html */

#endif

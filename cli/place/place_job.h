/* place_job.h: what the files of `nori place` share. */
#ifndef NORI_CLI_PLACE_JOB_H
#define NORI_CLI_PLACE_JOB_H

#include "cli.h"
#include "inputs.h"
#include "nori/divide.h"
#include "page.h"
#include "nori/route.h"
#include "profile.h"

/* One quantity that goes through a range while all else stays. */
typedef struct place_sweep {
    const char *what;  /* bandwidth payload rtt rate; NULL: none was asked for */
    double from, to;
    int steps;
} place_sweep;

/* One way to divide the model. */
typedef struct place_cut {
    char *values; /* names of what is sent, with commas between */
    nori_division d; /* d.values is not kept */
} place_cut;

typedef struct place_split {
    bool there;          /* there is a cut with nodes on both sides, and times of nodes */
    bool exact;          /* the best of all cuts is one of these; else an end is better than any */
    place_cut best, best8; /* as the values are, and with floats in 8 bits */
    nori_agreement int8; /* of outputs, best8 sent in 8 bits */
    char int8_lacks[256]; /* why it is not known, or "" */
    double *mean, *bytes; /* of the cuts in the order of the file: seconds in all, bytes sent */
    size_t count;
} place_split;

#define PLACE_PAYLOADS 6
typedef struct place_payload {
    const char *what;
    double bytes;
    nori_place place; /* the decision with it */
    double cloud_s;
} place_payload;

/* One decider over the calls of --replay. */
typedef struct place_replayed {
    const char *name;
    bool placed; /* it is where the question's answer puts all calls */
    nori_replay_result r;
} place_replayed;

#define PLACE_SPEEDS 13
#define PLACE_TRIPS 9
typedef struct place_cell {
    double speed, trip;
    nori_place place;
    double mean[3]; /* NAN: not possible */
} place_cell;

typedef struct place_job {
    cli_args *args;
    nori_place_question question;
    nori_place_answer answer;
    place_sweep sweep;
    nori_model *model;     /* with session and inputs: where a model was given */
    nori_session *session;
    nori_tensor **in;
    size_t n_in;
    place_split split;
    place_payload payload[PLACE_PAYLOADS];
    size_t n_payloads;
    nori_replay_call *calls; /* of --replay */
    void *rows;              /* as they stand there: place_replay.c's */
    size_t n_calls;
    place_replayed replay[5];
    size_t n_replays;
    profile edge, cloud, cloud_own; /* of --edge-profile and --cloud-profile: what is there */
} place_job;

/* place_options.c: fills question and sweep. 0 or an exit code, as the rest. */
int place_read(place_job *j);
/* The question with the sweep's quantity at step i, and that value. */
nori_place_question place_step(const place_job *j, int i, double *value);
const char *place_sweep_unit(const place_sweep *s);

/* place_profile.c: what the profiles say, as a question; frees them. */
int place_profiles(place_job *j);
void place_free(place_job *j);

/* place_split.c: where the model is divided best; becomes the question's split. */
int place_divide(place_job *j);
/* place_payload.c: other forms of the same input. */
int place_payloads(place_job *j);
void place_print_split(const place_job *j);
void place_json_split(const place_job *j, cli_json *w);
void place_page_split(const place_job *j, cli_page *p);

/* place_replay.c: reads the trace before the question is asked; and has it decided after. */
int place_trace(place_job *j);
int place_replay(place_job *j);
void place_print_replay(const place_job *j);
void place_json_replay(const place_job *j, cli_json *w);
void place_page_replay(const place_job *j, cli_page *p);
/* place_table.c: decisions over the link's speed and round trip. */
void place_table(const place_job *j, place_cell table[PLACE_SPEEDS][PLACE_TRIPS]);
int place_policy(const place_job *j); /* --policy */
void place_header_table(const place_job *j, FILE *f);

int place_print(const place_job *j);  /* place_print.c: text or JSON */
int place_page(const place_job *j);   /* place_page.c: --html */
int place_header(const place_job *j); /* place_header.c: --header */

#endif

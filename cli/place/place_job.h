/* place_job.h: what the files of `nori place` share. */
#ifndef NORI_CLI_PLACE_JOB_H
#define NORI_CLI_PLACE_JOB_H

#include "cli.h"
#include "profile.h"

/* One quantity that goes through a range while all else stays. */
typedef struct place_sweep {
    const char *what;  /* bandwidth payload rtt rate; NULL: none was asked for */
    double from, to;
    int steps;
} place_sweep;

typedef struct place_job {
    cli_args *args;
    nori_place_question question;
    nori_place_answer answer;
    place_sweep sweep;
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

int place_print(const place_job *j);  /* place_print.c: text or JSON */
int place_page(const place_job *j);   /* place_page.c: --html */
int place_header(const place_job *j); /* place_header.c: --header */

#endif

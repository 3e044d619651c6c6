/* run_job.h: what the files of `nori run` share. */
#ifndef NORI_CLI_RUN_JOB_H
#define NORI_CLI_RUN_JOB_H

#include "inputs.h"

#define TOP_MOST 1000 /* classes shown */

typedef struct run_job {
    cli_args *args;
    nori_session *session;
    size_t n_in, n_out;
    nori_tensor **inputs, **outputs, **wanted; /* NULL entries: none */
    char **labels;
    size_t n_labels;
    long top;
} run_job;

/* Runs once; outputs of the run before are freed. 0 or an exit code, as all of these give. */
int run_once(run_job *job);

/* outputs.c */
int run_check_targets(const run_job *job); /* whether --output can be done, before the run */
int run_write_outputs(const run_job *job);
int run_show_outputs(const run_job *job);

/* test_data.c: runs every folder of --test-data and compares. */
int run_test_data(run_job *job);

#endif

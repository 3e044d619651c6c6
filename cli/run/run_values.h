/* run_values.h: the values in between of a run, kept as they are made and written as an .npz. */
#ifndef NORI_CLI_RUN_VALUES_H
#define NORI_CLI_RUN_VALUES_H

#include "cli.h"
#include "nori/tools.h"

typedef struct run_values {
    char **names;
    nori_tensor **tensors;
    size_t count;
    bool failed; /* out of memory */
} run_values;

/* For nori_session_options.watch. Text, and what has parts of a byte, has no form in an .npz: passed over. */
void run_values_keep(void *values, const char *name, const nori_tensor *tensor);
/* An exit code. */
int run_values_write(const cli_args *args, const run_values *values, const char *path);
void run_values_free(run_values *values);

#endif

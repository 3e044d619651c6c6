/* compile_tune.h: compile --tune: which way each layer goes, measured on this machine. */
#ifndef NORI_CLI_COMPILE_TUNE_H
#define NORI_CLI_COMPILE_TUNE_H

#include "cli.h"
#include "inputs.h"
#include "nori/compile.h"

#define CLI_TUNE_OPTIONS                                                                         \
    {"--tune", NULL, "measure the ways of each layer on this machine, and keep the fastest"},    \
    {"--seconds", "N", "with --tune: about the most it may take (default 20)"},                  \
    {"--threads", "N", "with --tune: threads to measure with (default: what the machine allows)"}

/* An option that means something with --tune only, or NULL. */
const char *cli_tune_option_alone(const cli_args *args);
/* 0 or an exit code. */
int cli_tune(cli_args *args, const nori_model *model, const nori_session_options *o, nori_tuning **tuning);
void cli_tune_print(const nori_tuning *tuning);
void cli_tune_json(cli_json *j, const nori_tuning *tuning);

#endif

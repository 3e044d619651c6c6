/* validate_print.h: what `nori validate` says. Each gives whether all agree. */
#ifndef NORI_CLI_VALIDATE_PRINT_H
#define NORI_CLI_VALIDATE_PRINT_H

#include "inputs.h"

typedef struct validate_names {
    const char *got, *want;
    bool random; /* inputs were made up: what they show need not be so on real ones */
} validate_names;

bool validate_print_outputs(const cli_args *args, const nori_session *s, const validate_names *n,
                            const nori_agreement *rows, size_t count);
bool validate_print_levels(const cli_args *args, const nori_level_row rows[2]);
bool validate_print_layers(const cli_args *args, const nori_layers *layers);

#endif

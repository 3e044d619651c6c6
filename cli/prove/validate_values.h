/* validate_values.h: inner values that another program, or a device, has stored, by name. */
#ifndef NORI_CLI_VALIDATE_VALUES_H
#define NORI_CLI_VALIDATE_VALUES_H

#include "cli.h"
#include "nori/tools.h"

typedef struct validate_values {
    nori_archive *archive;
    char **names;
    nori_tensor **tensors;
    size_t count;
} validate_values;

/* Whether a path is one of values (a folder, an .npz) and not of a model. */
bool validate_values_are(const char *path);
/* Reads them: all of an archive, or from a folder the files that have names of the model's values. An exit
 * code; free in any case. */
int validate_values_read(const cli_args *args, const nori_model *model, const char *path,
                         validate_values *values);
void validate_values_free(validate_values *values);
/* A value by name; NULL: there is none. */
nori_tensor *validate_values_find(const validate_values *values, const char *name);

#endif

/* change.h: what the verbs that make models of models share. */
#ifndef NORI_CLI_CHANGE_H
#define NORI_CLI_CHANGE_H

#include "cli.h"
#include "nori/edit.h"

#define CLI_PROOF_OPTIONS                                                                         \
    {"--no-proof", NULL, "do not run both on the same inputs to see that they agree"},            \
    {"--seed", "N", "of the inputs that are made up for the proof (default 1)"},                  \
    {"--threads", "N", "threads for one run (default: what the machine allows)"}

/* Dimensions given with --dim, kept while the options are used. */
typedef struct change_dims {
    const char *names[64];
    int64_t values[64];
    size_t count;
    char text[64][128];
} change_dims;
/* Reads NAME=N of every --dim. False: a message was given. */
bool change_read_dims(const cli_args *args, const char *option, change_dims *dims);
/* What CLI_PROOF_OPTIONS and --dim say (those the verb has). */
bool change_proof_options(cli_args *args, change_dims *dims, nori_proof_options *o);
/* Names in a list at commas, and those of every occurrence of an option; NULL: a message was given.
 * Both the list and its text are the caller's to free with change_free_names. */
typedef struct change_names {
    const char **items;
    size_t count;
    char *text;
} change_names;
bool change_split_names(const cli_args *args, const char *list, change_names *names);
bool change_names_of(const cli_args *args, const char *option, change_names *names);
void change_free_names(change_names *names);

/* Writes a model, with progress where it takes long. 0 or an exit code. */
int change_save(cli_args *args, const nori_model *model, const char *path,
                const nori_save_options *options);
void change_print_proof(const nori_proof *p);
void change_json_proof(cli_json *j, const nori_proof *p);

#endif

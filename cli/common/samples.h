/* samples.h: many inputs, one after another, for verbs that calibrate or measure. */
#ifndef NORI_CLI_SAMPLES_H
#define NORI_CLI_SAMPLES_H

#include "inputs.h"

#define CLI_SAMPLE_OPTIONS                                                                       \
    {"--data", "PATH", "folder, .npy or .npz of many, or list of files (.txt); may be repeated"}, \
    {"--random", "N", "this many random samples, where there is no --data (default 0)"},         \
    {"--samples", "N", "at most this many (default 1000)"},                                      \
    {"--mean", "A,B,C", "of picture values after scaling to 0..1 (default 0)"},                  \
    {"--std", "A,B,C", "of picture values after scaling to 0..1 (default 1)"},                   \
    {"--range", "255|1", "pictures as 0..255 or 0..1 (default 1)"},                              \
    {"--bgr", NULL, "pictures in the channel order blue, green, red"}

typedef struct cli_samples cli_samples;
/* Finds what --data names. 0 or an exit code (a message was given). */
int cli_samples_open(cli_args *args, const nori_model *model, cli_samples **samples);
size_t cli_samples_count(const cli_samples *samples);
/* Keeps sample part, part + parts, part + 2 parts ... of what there is; part below parts. */
void cli_samples_part(cli_samples *samples, size_t part, size_t parts);
/* Fits nori_quantize_options.sample; user is the cli_samples. */
int cli_samples_get(void *user, size_t index, nori_tensor **inputs, nori_error *error);
/* The exit code of the sample that could not be read, whose message was given; else 0. */
int cli_samples_code(const cli_samples *samples);
void cli_samples_close(cli_samples *samples);

#endif

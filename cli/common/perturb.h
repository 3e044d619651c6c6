/* perturb.h: more samples from a few: each again, somewhat changed. */
#ifndef NORI_CLI_PERTURB_H
#define NORI_CLI_PERTURB_H

#include "samples.h"

#define CLI_PERTURB_OPTION                                                                      \
    {"--perturb", "N", "go on with changed copies of the samples until there are N"}

typedef struct cli_perturb {
    cli_samples *samples;
    size_t inputs; /* of the model */
    size_t wanted; /* samples in all; 0: those that are there */
} cli_perturb;
/* Fits nori_quantize_options.sample; user is the cli_perturb. Sample i, past the k that are there, is
 * sample i % k with another brightness and some noise, from seed i; the same every time. Numbers stay
 * within what the tensor held, exact zeros stay (padding, states), and so do integers and tensors of
 * a few numbers (thresholds, sizes). */
int cli_perturb_get(void *user, size_t index, nori_tensor **inputs, nori_error *error);

#endif

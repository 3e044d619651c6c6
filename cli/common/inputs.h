/* inputs.h: where the inputs of a run come from. */
#ifndef NORI_CLI_INPUTS_H
#define NORI_CLI_INPUTS_H

#include "cli.h"

/* Options of verbs that feed a model; spliced into their tables. */
#define CLI_INPUT_OPTIONS                                                                        \
    {"--input", "[NAME=]FILE", ".npy, .npz, .pb(.gz), .png, .jpg, .raw; may be repeated"},       \
    {"--shape", "[NAME=]N,N..", "of random inputs whose dimensions are free; may be repeated"},  \
    {"--seed", "N", "random inputs where none is given, from this seed (default 1)"},            \
    {"--mean", "A,B,C", "of picture values after scaling to 0..1 (default 0)"},                  \
    {"--std", "A,B,C", "of picture values after scaling to 0..1 (default 1)"},                   \
    {"--range", "255|1", "pictures as 0..255 or 0..1 (default 1)"},                              \
    {"--bgr", NULL, "pictures in the channel order blue, green, red"}

/* Fills inputs[] (one per session input; NULL: optional, not given). Dimensions of no fixed size
 * become 1 in random inputs unless --dim says otherwise. 0 or an exit code. */
int cli_inputs(cli_args *args, const nori_session *session, const char *const *files,
               int n_files, nori_tensor **inputs);
/* One file as a tensor for an input: picture, raw, or a tensor file. 0 or an exit code. */
int cli_read_input(cli_args *args, const char *path, const nori_value_info *info,
                   nori_tensor **tensor);
/* A tensor of the input's type and shape with deterministic pseudo-random content. */
int cli_random(cli_args *args, const nori_value_info *info, uint64_t seed,
               nori_tensor **tensor);
/* A tensor of one element for an input declared a scalar: exporters' test data often have [1]. It
 * is taken as the scalar, with a warning. */
int cli_fit_scalar(const cli_args *args, const nori_value_info *info, nori_tensor **tensor);
/* Reads a picture into a tensor for the input: resized (bilinear), laid out, normalized. */
int cli_picture(const cli_args *args, const char *path, const nori_value_info *info,
                nori_tensor **tensor);
bool cli_is_picture(const char *path);
int cli_picture_channels(const nori_value_info *info); /* 1 or 3; 0: pictures do not fit it */

/* How pictures become numbers: (v * scale - mean) / std. */
typedef struct picture_options {
    double mean[3], std[3], scale;
    bool bgr;
} picture_options;

/* False (and a message): an option of pictures has a value it cannot have. */
bool cli_picture_options(const cli_args *args, picture_options *o);
/* Bytes of a picture's tensor as a JPEG of this quality; 0: it is no picture, or there is no libjpeg. */
uint64_t cli_jpeg_bytes(const nori_tensor *t, const nori_value_info *info, const picture_options *o,
                        int quality);
/* An input could not be made: the error, with its shape and size where memory was the reason. */
int cli_fail_input(const cli_args *args, const nori_value_info *info, int rank,
                   const int64_t *dims, nori_error *err);

#endif

/* split_bytes.h: `nori split --byte-features`: parts that hand floats over in 8 bits. */
#ifndef NORI_CLI_SPLIT_BYTES_H
#define NORI_CLI_SPLIT_BYTES_H

#include "change.h"
#include "samples.h"

#define SPLIT_BYTES_OPTIONS                                                                        \
    {"--byte-features", NULL, "hand floats over in 8 bits, by the range of each call ..."},        \
    CLI_SAMPLE_OPTIONS,                                                                            \
    {"--tolerance", "X", "with --byte-features: outputs may be off by X of their largest (0.05)"}

typedef struct split_bytes {
    nori_narrow_report *report; /* NULL: not asked for */
} split_bytes;
/* Whether options of it stand there without it; a message was given then. */
bool split_bytes_check(const cli_args *args);
/* Puts the narrow parts in the place of the others. 0 or an exit code. */
int split_bytes_make(cli_args *args, const nori_model *model, const nori_proof_options *proof,
                     nori_model **parts, size_t count, split_bytes *b);
void split_bytes_print(const split_bytes *b);
void split_bytes_json(const split_bytes *b, cli_json *j);
void split_bytes_free(split_bytes *b);

#endif

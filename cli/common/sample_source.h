/* sample_source.h: one file or folder that samples come from; samples.c strings them together. */
#ifndef NORI_CLI_SAMPLE_SOURCE_H
#define NORI_CLI_SAMPLE_SOURCE_H

#include "inputs.h"

typedef enum source_kind {
    SOURCE_FILE,   /* a picture or tensor: one sample, of the first input */
    SOURCE_ARRAY,  /* an array of many samples of the first input */
    SOURCE_ARCHIVE, /* an .npz: an array for every input, of one or many samples */
    SOURCE_SET,    /* a folder of input_N files */
    SOURCE_RANDOM  /* made up */
} source_kind;

typedef struct source {
    source_kind kind;
    char *path;
    bool whole;          /* an array is one sample where the input takes it as it is */
    size_t first, count; /* its samples among all */
} source;

/* What is kept open from sample to sample. */
typedef struct source_reader {
    cli_args *args;
    const nori_model *model;
    int code; /* of a sample that failed with a message of its own */
    char *open_path;
    nori_tensor *array; /* where it cannot be read by rows */
    nori_archive *archive;
    nori_tensor **arrays; /* of the archive, one an input; NULL until a sample needs it */
} source_reader;

/* Finds out how many samples an array or archive holds. 0 or an exit code. bytes: set when one holds
 * 8-bit pictures for a float input. */
int cli_source_array(source_reader *r, source *s, bool *bytes);
int cli_source_archive(source_reader *r, source *s, bool *bytes);
/* Sample row of a source: 1, or -1 with the error filled. */
int cli_source_read(source_reader *r, const source *s, size_t row, nori_tensor **inputs,
                    nori_error *err);
void cli_source_close(source_reader *r);

#endif

/* fuzz.h: the targets: each takes any bytes, does all with them that a user's file could have done, and
 * returns. A fault is a crash, a report of a sanitizer, memory or time beyond what limits say.
 *
 * libFuzzer runs one target a program (libfuzzer.c, preset `fuzz`); nori-fuzz (replay.c) runs any of them
 * on files, which is how AFL++ feeds them and how tests keep what was found. docs/hardening.md. */
#ifndef NORI_FUZZ_H
#define NORI_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "nori/limits.h"

/* Where the server was built. */
#ifdef NORI_FUZZ_SERVER
#define FUZZ_SERVER_TARGETS(X)                                                                   \
    X(request, "the body of a request; first two bytes: what the header says of it")
#else
#define FUZZ_SERVER_TARGETS(X)
#endif
/* A row a target: X(name, what its bytes are). */
#define FUZZ_TARGETS(X)                                                                          \
    X(wire, "a model's messages: read, written, read again to the same bytes")                   \
    X(load, "a model file: loaded, checked, compiled with every pass, run, converted")                \
    X(plan, "a compiled plan, its hash put right: loaded, compiled, run")                        \
    X(run, "choices a small valid graph is made by, run on reference and cpu")                   \
    X(agree, "the same with more nodes: one result for all threads, levels, providers, by text")  \
    X(text, "a model as text: read, written, read again")                                        \
    X(npy, "a .npy file")                                                                        \
    X(npz, "a .npz archive")                                                                     \
    X(pb, "a TensorProto, SequenceProto, OptionalProto or MapProto; first byte: which")          \
    X(weights, "a .safetensors file")                                                            \
    X(picture, "a PNG or JPEG picture as an input")                                              \
    X(calibration, "a calibration file")                                                         \
    X(cache, "a file of the folder of compiled parts")                                           \
    X(quantity, "a number with its unit, as place files and options have them")                  \
    X(profile, "a profile of a device or a server")                                              \
    FUZZ_SERVER_TARGETS(X)

typedef void (*fuzz_target)(const uint8_t *data, size_t size);
#define FUZZ_DECLARE(name, what) void fuzz_##name(const uint8_t *data, size_t size);
FUZZ_TARGETS(FUZZ_DECLARE)
#undef FUZZ_DECLARE

/* An environment with bounds that a run of milliseconds keeps; made once. */
nori_env *fuzz_env(void);
/* The bytes as a file that functions can open by the path given; NULL: the system has none to give.
 * fuzz_file_close gives it back. */
typedef struct fuzz_file {
    int fd;
    char path[64];
} fuzz_file;
const char *fuzz_file_open(fuzz_file *file, const uint8_t *data, size_t size);
void fuzz_file_close(fuzz_file *file);
/* The command's own words on standard error go nowhere between the two: the stream alone, since reports of
 * sanitizers and the fuzzer's own go to file 2. */
void fuzz_silent(void);
void fuzz_aloud(void);
/* Of graphs made by bytes, which of them came how far: a target that only ever is refused tries nothing. */
typedef struct fuzz_counts {
    unsigned long made, ran, compared;
} fuzz_counts;
extern fuzz_counts fuzz_count;
/* What must hold; ends the process where it does not, which fuzzers take for a finding. */
#define FUZZ_HOLDS(condition)                                      \
    do {                                                           \
        if (!(condition)) {                                        \
            fuzz_broken(#condition, __FILE__, __LINE__);           \
        }                                                          \
    } while (0)
void fuzz_broken(const char *what, const char *file, int line);
/* An error has a status, a terminated message, and is one of those that bytes may cause. */
void fuzz_error_holds(nori_status status, const nori_error *err);

#endif

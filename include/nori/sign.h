/* sign.h: models that never are a file, that say who made them, that only a key opens. Built on nori.h;
 * the same conventions. docs/sign.md has the formats and the commands.
 *
 * Signatures and seals need the module nori-sodium (libsodium), loaded when first used; without it those
 * functions are UNAVAILABLE and say so. Reading by callback needs nothing. */
#ifndef NORI_SIGN_H
#define NORI_SIGN_H

#include "nori/nori.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- reading by callback ---------------------------------------------------------------- */

/* Where a model's bytes come from: a package, flash memory, a decoder. */
typedef struct nori_reader {
    size_t size;          /* sizeof, set by _default */
    uint64_t bytes;       /* the model has */
    /* As pread: up to count bytes from offset on; how many were read. 0: there are no more, -1: error
     * (filled, or a plain one is made). Fewer than asked for is no error: the rest is asked for again. */
    int64_t (*read)(void *user, uint64_t offset, void *to, size_t count, nori_error *error);
    void *user;
    const char *base_dir; /* where external data is looked for; NULL refuses it */
} nori_reader;
NORI_API void nori_reader_default(nori_reader *reader);
/* Reads the whole model into memory of env, which model and sessions keep. options may be NULL. Errors:
 * as nori_model_load; IO: fewer bytes came than were promised. */
NORI_API nori_status nori_model_load_from(nori_env *env, const nori_reader *reader,
                                          const nori_load_options *options, nori_model **model,
                                          nori_error *error);

/* ---- signatures (Ed25519) --------------------------------------------------------------- */

enum { NORI_PUBLIC_KEY_BYTES = 32, NORI_SECRET_KEY_BYTES = 64, NORI_SEAL_KEY_BYTES = 32 };

/* A new pair. */
NORI_API nori_status nori_sign_keys(unsigned char public_key[NORI_PUBLIC_KEY_BYTES],
                                    unsigned char secret_key[NORI_SECRET_KEY_BYTES],
                                    nori_error *error);
/* Writes the signature of a model file and of every file of external data it names, as text. Errors: as
 * nori_model_load; UNSUPPORTED (a location with a line break), UNAVAILABLE. */
NORI_API nori_status nori_model_sign(nori_env *env, const char *path,
                                     const unsigned char secret_key[NORI_SECRET_KEY_BYTES],
                                     const char *signature_path, nori_error *error);
/* OK: the files are, byte for byte, those that were signed with the key's other half. Errors: DATA (they
 * are not: which of them changed, or another key signed), FORMAT (no signature), UNAVAILABLE. */
NORI_API nori_status nori_model_verify(nori_env *env, const char *path,
                                       const unsigned char public_key[NORI_PUBLIC_KEY_BYTES],
                                       const char *signature_path, nori_error *error);

/* ---- sealed models (XChaCha20-Poly1305) ------------------------------------------------- */

/* Gives the key of a sealed model; 0, or -1 (error filled, or a plain one is made). The copy nori has is
 * overwritten as soon as the model is open. */
typedef int (*nori_key_function)(void *user, unsigned char key[NORI_SEAL_KEY_BYTES],
                                 nori_error *error);
/* A new key. */
NORI_API nori_status nori_seal_key(unsigned char key[NORI_SEAL_KEY_BYTES], nori_error *error);
/* Writes a model file sealed; it must load, and have no external data (UNSUPPORTED). */
NORI_API nori_status nori_model_seal(nori_env *env, const char *path,
                                     const unsigned char key[NORI_SEAL_KEY_BYTES],
                                     const char *sealed_path, nori_error *error);
/* Opens one in memory: its content is never on disk. Errors: as nori_model_load; DATA: the key is not
 * that of the file, or a bit of the file changed. */
NORI_API nori_status nori_model_load_sealed(nori_env *env, const char *path, nori_key_function key,
                                            void *user, const nori_load_options *options,
                                            nori_model **model, nori_error *error);
/* Whether a file begins as a sealed model does; 0 where it cannot be read. */
NORI_API int nori_model_is_sealed(const char *path);

#ifdef __cplusplus
}
#endif
#endif

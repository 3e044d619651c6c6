/* module.h: what an operator module and the library say to each other.
 *
 * What needs a library of its own (picture formats, regular expressions, signatures) lives in shared
 * objects that are loaded when it is first used, so that the core needs none of them. A
 * module uses no symbol of nori's: what it needs comes as functions and buffers. It exports one
 * function, nori_module(). */
#ifndef NORI_PROVIDERS_MODULES_MODULE_H
#define NORI_PROVIDERS_MODULES_MODULE_H

#include <stddef.h>
#include <stdint.h>

/* Raised when anything below changes; a module of another version is refused. */
#define NORI__MODULE_VERSION 2u

/* An encoded picture, to be decoded to 8-bit RGB, rows from the top, 3 bytes a pixel, no padding.
 * Transparency is dropped, not blended. */
typedef struct nori__picture {
    const uint8_t *bytes;
    size_t size;
    /* Called once, when the size is known: room for height * width * 3 bytes, or NULL. */
    uint8_t *(*begin)(void *user, uint64_t height, uint64_t width);
    void *user;
    char *why; /* gets what is wrong with the picture, terminated */
    size_t why_size;
} nori__picture;

/* Signatures and seals. Functions that can fail give 1, or 0. */
typedef struct nori__secrets {
    size_t seal_extra; /* bytes a sealed content is longer by */
    size_t nonce_bytes;
    void (*random)(void *to, size_t size);
    void (*hash)(const void *bytes, size_t size, unsigned char out[32]);
    int (*sign_keys)(unsigned char public_key[32], unsigned char secret_key[64]);
    int (*sign)(const void *bytes, size_t size, const unsigned char secret_key[64],
                unsigned char out[64]);
    int (*verify)(const void *bytes, size_t size, const unsigned char public_key[32],
                  const unsigned char signature[64]);
    /* head is not sealed, but a change of it is noticed. out: size + seal_extra bytes. */
    int (*seal)(const void *bytes, size_t size, const void *head, size_t head_size,
                const unsigned char *nonce, const unsigned char key[32], unsigned char *out);
    int (*open)(const unsigned char *sealed, size_t size, const void *head, size_t head_size,
                const unsigned char *nonce, const unsigned char key[32], unsigned char *out);
    void (*wipe)(void *bytes, size_t size);
} nori__secrets;

typedef struct nori__module {
    uint32_t version; /* NORI__MODULE_VERSION */
    /* Pictures: 1, or 0 with why filled (left empty when begin gave NULL). NULL: no such module. */
    int (*decode)(const nori__picture *picture);
    /* Regular expressions: a compiled pattern, or NULL with why filled. NULL: no such module. */
    void *(*compile)(const char *pattern, size_t size, char *why, size_t why_size);
    /* 1: the whole text matches, 0: it does not, -1 with why filled: that cannot be told. */
    int (*match)(void *compiled, const char *text, size_t size, char *why, size_t why_size);
    void (*discard)(void *compiled);
    const nori__secrets *secrets; /* NULL: no such module */
} nori__module;

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const nori__module *nori_module(void);

#endif

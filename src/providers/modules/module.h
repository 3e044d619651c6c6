/* module.h: what an operator module and the library say to each other.
 *
 * Operators that need a library of their own (picture formats, regular expressions) live in shared
 * objects that are loaded when such an operator first runs, so that the core needs none of them. A
 * module uses no symbol of nori's: what it needs comes as functions and buffers. It exports one
 * function, nori_module(). */
#ifndef NORI_PROVIDERS_MODULES_MODULE_H
#define NORI_PROVIDERS_MODULES_MODULE_H

#include <stddef.h>
#include <stdint.h>

/* Raised when anything below changes; a module of another version is refused. */
#define NORI__MODULE_VERSION 1u

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

typedef struct nori__module {
    uint32_t version; /* NORI__MODULE_VERSION */
    /* Pictures: 1, or 0 with why filled (left empty when begin gave NULL). NULL: no such module. */
    int (*decode)(const nori__picture *picture);
    /* Regular expressions: a compiled pattern, or NULL with why filled. NULL: no such module. */
    void *(*compile)(const char *pattern, size_t size, char *why, size_t why_size);
    /* 1: the whole text matches, 0: it does not, -1 with why filled: that cannot be told. */
    int (*match)(void *compiled, const char *text, size_t size, char *why, size_t why_size);
    void (*discard)(void *compiled);
} nori__module;

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const nori__module *nori_module(void);

#endif

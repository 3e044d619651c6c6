/* kept.h: files that keep what was made once, and say what for. Their form is in kept.c. */
#ifndef NORI_PLATFORM_KEPT_H
#define NORI_PLATFORM_KEPT_H

#include "platform/platform.h"

typedef enum nori__kept {
    NORI__KEPT_HIT,
    NORI__KEPT_NONE,  /* there is no such file: why says so */
    NORI__KEPT_OTHER, /* made for something else: "was made for ..., now it is ..." */
    NORI__KEPT_BAD    /* damaged, or of another version of nori */
} nori__kept;
/* HIT: the content, until the file is closed. Else nothing stays open, and why (room bytes) is told. */
nori__kept nori__kept_open(const char *path, const char *made_for, nori__map_file *file,
                           const void **bytes, size_t *size, char *why, size_t room);
nori_status nori__kept_write(const nori_allocator *a, const char *path, const char *made_for,
                             const void *bytes, size_t size, nori_error *err);

#endif

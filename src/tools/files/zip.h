/* zip.h: the part of the ZIP format that .npz archives use: stored and deflated entries, no
 * encryption, no volumes, nothing past 4 GB (APPNOTE 6.3, sections 4.3 and 4.4). */
#ifndef NORI_TOOLS_FILES_ZIP_H
#define NORI_TOOLS_FILES_ZIP_H

#include "base/base.h"

typedef struct nori__zip_entry {
    nori__str name;   /* as in the file, not terminated */
    nori__str packed; /* its bytes as they stand */
    bool deflated;
    uint32_t size, crc; /* of the content */
} nori__zip_entry;

typedef struct nori__zip {
    nori__zip_entry *entries; /* in the arena; point into the file */
    size_t count;
} nori__zip;

bool nori__is_zip(const uint8_t *data, size_t size);
/* Reads the directory; all offsets and sizes are checked against the bytes there are. */
nori_status nori__zip_read(nori__arena *arena, const uint8_t *data, size_t size, nori__zip *zip,
                           nori_error *err);
/* Content of an entry, its checksum compared. Stored ones are pointed at, *owned is NULL; else
 * *owned is memory of a, *size bytes. */
nori_status nori__zip_content(const nori_allocator *a, const nori__zip_entry *entry,
                              const uint8_t **data, size_t *size, void **owned, nori_error *err);
/* The first *n bytes of an entry's content, or as many as it has: *n says how many. */
nori_status nori__zip_begin_of(const nori__zip_entry *entry, void *out, size_t *n, nori_error *err);

/* Writing, all stored: entries one after another, then the end. */
typedef struct nori__zip_writer {
    nori__text *out;
    nori__text directory;
    size_t count;
} nori__zip_writer;
void nori__zip_begin(nori__zip_writer *w, const nori_allocator *a, nori__text *out);
nori_status nori__zip_add(nori__zip_writer *w, const char *name, const void *data, size_t size,
                          nori_error *err);
/* Frees the writer, also after an error. */
nori_status nori__zip_end(nori__zip_writer *w, nori_error *err);

#endif

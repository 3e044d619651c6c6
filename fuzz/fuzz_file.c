/* fuzz_file.c: files of tensors, calibrations, caches, quantities. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nori/place.h"
#include "nori/tools.h"
#include "nori/weights.h"
#include "platform/kept.h"
#include "tools/files/group_file.h"
#include "tools/files/npy.h"
#include "tools/files/safetensors.h"
#include "tools/files/zip.h"

/* Every byte of a tensor is there, which a sanitizer checks when they are added up. */
static unsigned touch(const nori_tensor *t)
{
    unsigned sum = 0;
    const uint8_t *bytes = nori_tensor_const_data(t);
    size_t n = nori_tensor_bytes(t);
    for (size_t i = 0; i < n; i++) {
        sum += bytes[i];
    }
    for (size_t i = 0; i < nori_tensor_item_count(t); i++) {
        const nori_tensor *item = nori_tensor_item(t, i);
        sum += item ? (unsigned)nori_tensor_bytes(item) : 0;
    }
    return sum;
}

/* Read back from what is written of it, the same type, shape and bytes. */
static void npy_again(const nori_tensor *t)
{
    nori__text out;
    nori_tensor *again = NULL;
    nori_error err = {0};
    nori__text_init(&out, &nori__malloc);
    if (nori__npy_write(t, &out, &err) == NORI_OK) {
        FUZZ_HOLDS(nori__npy_read(&nori__malloc, (const uint8_t *)out.data, out.size, &again, &err) ==
                   NORI_OK);
        FUZZ_HOLDS(nori_tensor_bytes(again) == nori_tensor_bytes(t) &&
                   nori_tensor_rank(again) == nori_tensor_rank(t));
        FUZZ_HOLDS(nori_tensor_bytes(t) == 0 || nori_tensor_type(t) == NORI_STRING ||
                   memcmp(nori_tensor_const_data(again), nori_tensor_const_data(t),
                          nori_tensor_bytes(t)) == 0);
    }
    nori_tensor_free(again);
    nori__text_free(&out);
}

void fuzz_npy(const uint8_t *data, size_t size)
{
    nori_tensor *t = NULL;
    int64_t rows = 0;
    nori_error err = {0};
    if (!nori__is_npy(data, size)) {
        return;
    }
    nori_status s = nori__npy_read(&nori__malloc, data, size, &t, &err);
    fuzz_error_holds(s, &err);
    if (s == NORI_OK) {
        touch(t);
        npy_again(t);
    }
    nori_tensor_free(t);
    t = NULL;
    err = (nori_error){0};
    s = nori__npy_rows(&nori__malloc, data, size, size > 80 ? data[80] % 4 : 0, 1, &t, &rows, &err);
    fuzz_error_holds(s, &err);
    nori_tensor_free(t);
}

void fuzz_npz(const uint8_t *data, size_t size)
{
    fuzz_file file;
    nori_archive *archive = NULL;
    nori_error err = {0};
    const char *path = fuzz_file_open(&file, data, size);
    if (!path) {
        return;
    }
    nori_status s = nori_archive_read(fuzz_env(), path, &archive, &err);
    fuzz_error_holds(s, &err);
    for (size_t i = 0; s == NORI_OK && i < nori_archive_count(archive); i++) {
        FUZZ_HOLDS(nori_archive_name(archive, i) != NULL);
        touch(nori_archive_tensor(archive, i));
    }
    nori_archive_free(archive);
    fuzz_file_close(&file);
}

void fuzz_pb(const uint8_t *data, size_t size)
{
    static const nori_kind kinds[] = {NORI_KIND_UNKNOWN, NORI_KIND_SEQUENCE, NORI_KIND_OPTIONAL,
                                      NORI_KIND_MAP};
    fuzz_file file;
    nori_tensor *value = NULL;
    nori_error err = {0};
    const char *path = size > 0 ? fuzz_file_open(&file, data + 1, size - 1) : NULL;
    if (!path) {
        return;
    }
    nori_status s = nori_value_read(fuzz_env(), path, kinds[data[0] % 4], &value, &err);
    fuzz_error_holds(s, &err);
    if (s == NORI_OK) {
        nori__text out;
        touch(value);
        nori__text_init(&out, &nori__malloc);
        nori__value_write(value, &out, &err);
        nori__text_free(&out);
    }
    nori_tensor_free(value);
    fuzz_file_close(&file);
}

void fuzz_weights(const uint8_t *data, size_t size)
{
    fuzz_file file;
    nori_weights *weights = NULL;
    nori_error err = {0};
    const char *path = fuzz_file_open(&file, data, size);
    if (!path) {
        return;
    }
    nori_status s = nori_weights_open(fuzz_env(), path, &weights, &err);
    fuzz_error_holds(s, &err);
    for (size_t i = 0; s == NORI_OK && i < nori_weights_count(weights); i++) {
        nori_tensor *t = NULL;
        if (nori_weights_tensor(weights, nori_weights_name(weights, i), &t, &err) == NORI_OK) {
            touch(t);
        }
        nori_tensor_free(t);
    }
    nori_weights_free(weights);
    fuzz_file_close(&file);
}

/* The checksum at the end, which no change of bytes would get past. */
static void seal(uint8_t *p, size_t size)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i + 8 < size; i++) {
        h = (h ^ p[i]) * 0x100000001b3u;
    }
    for (size_t i = 0; i < 8 && size >= 8; i++) {
        p[size - 8 + i] = (uint8_t)(h >> 8 * i);
    }
}

void fuzz_calibration(const uint8_t *data, size_t size)
{
    for (int sealed = 0; sealed < 2; sealed++) {
        nori_calibration *c = NULL;
        nori_tensor *bytes = NULL;
        nori_error err = {0};
        nori_calibrated value = {.size = sizeof(value)};
        uint8_t *copy = malloc(size ? size : 1);
        if (!copy) {
            return;
        }
        memcpy(copy, data, size);
        if (sealed) {
            seal(copy, size);
        }
        nori_status s = nori_calibration_decode(fuzz_env(), copy, size, &c, &err);
        fuzz_error_holds(s, &err);
        if (s == NORI_OK) {
            for (size_t i = 0; nori_calibration_at(c, i, &value); i++) {
                FUZZ_HOLDS(value.name != NULL);
            }
            FUZZ_HOLDS(nori_calibration_merge(c, c, &err) == NORI_OK || err.message[0]);
            nori_calibration_encode(c, &bytes, &err);
        }
        nori_tensor_free(bytes);
        nori_calibration_free(c);
        free(copy);
    }
}

void fuzz_cache(const uint8_t *data, size_t size)
{
    fuzz_file file;
    char made_for[32] = "", why[128];
    size_t n = size > 56 ? size - 56 : 0;
    nori__map_file mapped = {0};
    const void *bytes = NULL;
    size_t content = 0;
    const char *path = fuzz_file_open(&file, data, size);
    if (!path) {
        return;
    }
    n = n < sizeof(made_for) - 1 ? n : sizeof(made_for) - 1;
    memcpy(made_for, n ? data + 56 : data, n);
    for (int k = 0; k < 2; k++) {
        nori__kept found = nori__kept_open(path, k ? made_for : "engine 1", &mapped, &bytes, &content,
                                           why, sizeof(why));
        if (found == NORI__KEPT_HIT) {
            FUZZ_HOLDS((const uint8_t *)bytes >= mapped.data &&
                       content <= mapped.size - (size_t)((const uint8_t *)bytes - mapped.data));
            nori__map_close(&mapped);
        } else {
            FUZZ_HOLDS(memchr(why, 0, sizeof(why)) != NULL);
        }
    }
    fuzz_file_close(&file);
}

void fuzz_quantity(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    double value = 0;
    if (!text) {
        return;
    }
    memcpy(text, data, size);
    text[size] = 0;
    for (int kind = NORI_QUANTITY_TIME; kind <= NORI_QUANTITY_ENERGY; kind++) {
        nori_error err = {0};
        nori_status s = nori_quantity_parse(text, (nori_quantity)kind, &value, &err);
        fuzz_error_holds(s, &err);
        FUZZ_HOLDS(s != NORI_OK || value >= 0);
    }
    free(text);
}

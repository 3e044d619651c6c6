/* calibration_file.c: a calibration as bytes; the format is told in docs/calibration.md. Equal
 * states have equal bytes: names are sorted, numbers have one form. Bytes are not trusted. */
#include <math.h>

#include "base/given.h"
#include "platform/env.h"
#include "platform/platform.h"
#include "tools/quantize/quantize.h"

#define MAGIC "nori-cal"
#define VERSION 1
#define LONGEST_NAME 65535
#define HEADER 40

/* FNV-1a over all bytes before it: finds damage, not malice. */
static uint64_t checksum(const uint8_t *p, size_t size)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) {
        h = (h ^ p[i]) * 0x100000001b3u;
    }
    return h;
}

/* ---- writing ---- */

static void put(nori__text *t, uint64_t v, int size)
{
    char b[8];
    for (int i = 0; i < size; i++) {
        b[i] = (char)(uint8_t)(v >> 8 * i);
    }
    nori__text_add(t, b, (size_t)size);
}

static void put_double(nori__text *t, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    put(t, bits, 8);
}

/* Seven bits a byte, lowest first; the top bit says that more follow. */
static void put_varint(nori__text *t, uint64_t v)
{
    for (; v >= 128; v >>= 7) {
        put(t, (v & 127) | 128, 1);
    }
    put(t, v, 1);
}

static void put_exact(nori__text *t, const nori__exact *e)
{
    for (int i = 0; i < 6; i++) {
        put(t, e->limbs[i], 8);
    }
}

static void put_observer(nori__text *t, const char *name, const nori__observer *o)
{
    int first = 0, end = 2 * NORI__BINS;
    while (first < end && o->bins[first] == 0) {
        first++;
    }
    while (end > first && o->bins[end - 1] == 0) {
        end--;
    }
    put(t, strlen(name), 4);
    nori__text_add(t, name, strlen(name));
    put_double(t, o->min);
    put_double(t, o->max);
    put(t, o->calls, 8);
    put(t, o->count, 8);
    put(t, o->nan, 8);
    put(t, o->inf, 8);
    put(t, o->zeros, 8);
    put_exact(t, &o->low_sum);
    put_exact(t, &o->high_sum);
    put(t, (uint64_t)(int64_t)o->exponent, 4);
    put(t, (uint64_t)(end == first ? 0 : first), 4);
    put(t, (uint64_t)(end - first), 4);
    for (int i = first; i < end; i++) {
        put_varint(t, o->bins[i]);
    }
}

nori_status nori_calibration_encode(nori_calibration *c, nori_tensor **bytes, nori_error *err)
{
    NORI__GIVEN(err, c);
    NORI__GIVEN(err, bytes);
    nori__text t;
    nori__text_init(&t, c->allocator);
    nori__calibration_sort(c);
    nori__text_add(&t, MAGIC, 8);
    put(&t, VERSION, 4);
    put(&t, 0, 4);
    put(&t, c->graph, 8);
    put(&t, c->samples, 8);
    put(&t, c->names.count, 8);
    for (size_t i = 0; i < c->names.count; i++) {
        put_observer(&t, c->names.items[i], nori__map_get(&c->observers, c->names.items[i]));
    }
    if (!t.failed) {
        put(&t, checksum((const uint8_t *)t.data, t.size), 8);
    }
    int64_t size = (int64_t)t.size;
    nori_status s = t.failed ? nori__no_memory(err)
                             : nori__tensor_new(c->allocator, NORI_UINT8, 1, &size, bytes, err);
    if (s == NORI_OK) {
        memcpy((*bytes)->data, t.data, t.size);
    }
    nori__text_free(&t);
    return s;
}

nori_status nori_calibration_write(nori_calibration *c, const char *path, nori_error *err)
{
    NORI__GIVEN(err, c);
    NORI__GIVEN(err, path);
    nori_tensor *bytes = NULL;
    NORI__TRY(nori_calibration_encode(c, &bytes, err));
    nori_status s = nori_file_write(path, bytes->data, bytes->bytes, err);
    nori_tensor_free(bytes);
    return s;
}

/* ---- reading ---- */

typedef struct reader {
    const uint8_t *data;
    size_t size, at;
    nori_error *err;
} reader;

static nori_status damaged(reader *r, const char *what)
{
    nori__fail(r->err, NORI_ERROR_FORMAT, "the calibration is damaged: %s", what);
    nori__offset(r->err, r->at);
    return NORI_ERROR_FORMAT;
}

static nori_status get(reader *r, int size, uint64_t *out)
{
    if (r->size - r->at < (size_t)size) {
        return damaged(r, "it ends too early");
    }
    *out = 0;
    for (int i = 0; i < size; i++) {
        *out |= (uint64_t)r->data[r->at++] << 8 * i;
    }
    return NORI_OK;
}

static nori_status get_count(reader *r, uint64_t *out)
{
    NORI__TRY(get(r, 8, out));
    return *out < NORI__MOST_SEEN ? NORI_OK : damaged(r, "a count is too large");
}

static nori_status get_double(reader *r, double *out)
{
    uint64_t bits;
    NORI__TRY(get(r, 8, &bits));
    memcpy(out, &bits, sizeof(bits));
    return NORI_OK;
}

static nori_status get_exact(reader *r, nori__exact *e)
{
    for (int i = 0; i < 6; i++) {
        NORI__TRY(get(r, 8, &e->limbs[i]));
    }
    return NORI_OK;
}

static nori_status get_varint(reader *r, uint64_t *out)
{
    uint64_t byte = 128;
    *out = 0;
    for (int shift = 0; byte & 128; shift += 7) {
        NORI__TRY(get(r, 1, &byte));
        *out |= shift < 63 ? (byte & 127) << shift : 0;
        if (shift > 56 || (shift > 0 && byte == 0)) {
            return damaged(r, "a count of the histogram has no proper form");
        }
    }
    return NORI_OK;
}

/* The numbers of a state have to fit each other: what reads them later does not look again. */
static nori_status judge(reader *r, const nori__observer *o, uint64_t sum)
{
    if (o->count == 0) {
        bool none = isinf(o->min) && o->min > 0 && isinf(o->max) && o->max < 0 && o->calls == 0 &&
                    o->zeros == 0 && sum == 0 && o->exponent == NORI__LEAST_EXPONENT;
        return none ? NORI_OK : damaged(r, "it counts no numbers, but has some");
    }
    bool finite = isfinite(o->min) && isfinite(o->max) && o->min <= o->max &&
                  fabs(o->min) <= 0x1.fffffep127 && fabs(o->max) <= 0x1.fffffep127 &&
                  (double)(float)o->min == o->min && (double)(float)o->max == o->max;
    if (!finite) {
        return damaged(r, "a range is none of float32 numbers");
    }
    if (sum != o->count || o->calls == 0 || o->calls > o->count ||
        o->zeros > o->bins[NORI__BINS]) {
        return damaged(r, "the histogram does not add up");
    }
    if (o->exponent != nori__observer_exponent(o->min, o->max)) {
        return damaged(r, "the histogram does not fit the range");
    }
    int64_t low = (int64_t)floor(ldexp(o->min, -o->exponent)) + NORI__BINS;
    int64_t high = (int64_t)floor(ldexp(o->max, -o->exponent)) + NORI__BINS;
    for (int i = 0; i < 2 * NORI__BINS; i++) {
        bool end = i == low || i == high;
        if ((end && o->bins[i] == 0) || ((i < low || i > high) && o->bins[i] > 0)) {
            return damaged(r, "the histogram does not fit the range");
        }
    }
    double calls = (double)o->calls, mean_low = nori__exact_value(&o->low_sum) / calls;
    double mean_high = nori__exact_value(&o->high_sum) / calls, slack = 1e-9;
    double wide = fabs(o->min) > fabs(o->max) ? fabs(o->min) : fabs(o->max);
    bool inside = mean_low >= o->min - wide * slack && mean_low <= mean_high + wide * slack &&
                  mean_high <= o->max + wide * slack;
    return inside ? NORI_OK : damaged(r, "the averages lie outside the range");
}

static nori_status get_observer(reader *r, nori_calibration *c, const char **last)
{
    uint64_t size, first, count, exponent, sum = 0;
    NORI__TRY(get(r, 4, &size));
    if (size == 0 || size > LONGEST_NAME || r->size - r->at < size ||
        memchr(r->data + r->at, 0, (size_t)size)) {
        return damaged(r, "a name was expected");
    }
    const char *name = nori__arena_copy(&c->arena, (const char *)r->data + r->at, (size_t)size);
    r->at += (size_t)size;
    if (name && *last && strcmp(*last, name) >= 0) {
        return damaged(r, "names are not in order, or twice");
    }
    nori__observer *o = name ? nori__calibration_of(c, name) : NULL;
    if (!o) {
        return nori__no_memory(r->err);
    }
    *last = name;
    NORI__TRY(get_double(r, &o->min));
    NORI__TRY(get_double(r, &o->max));
    NORI__TRY(get_count(r, &o->calls));
    NORI__TRY(get_count(r, &o->count));
    NORI__TRY(get_count(r, &o->nan));
    NORI__TRY(get_count(r, &o->inf));
    NORI__TRY(get_count(r, &o->zeros));
    NORI__TRY(get_exact(r, &o->low_sum));
    NORI__TRY(get_exact(r, &o->high_sum));
    NORI__TRY(get(r, 4, &exponent));
    NORI__TRY(get(r, 4, &first));
    NORI__TRY(get(r, 4, &count));
    o->exponent = (int)(int32_t)(uint32_t)exponent;
    if (first > 2 * NORI__BINS || count > 2 * NORI__BINS - first || (count == 0 && first > 0)) {
        return damaged(r, "the histogram has more bins than there are");
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t n;
        NORI__TRY(get_varint(r, &n));
        o->bins[first + i] = n;
        sum += n;
        if (n > o->count || sum > o->count || (n == 0 && (i == 0 || i + 1 == count))) {
            return damaged(r, "the histogram does not add up");
        }
    }
    return judge(r, o, sum);
}

static nori_status get_all(reader *r, nori_calibration *c)
{
    uint64_t version, zero, values, end;
    const char *last = NULL;
    if (r->size < 8 || memcmp(r->data, MAGIC, 8) != 0) {
        nori__fail(r->err, NORI_ERROR_FORMAT, "the file is no calibration");
        nori__hint(r->err, "nori calibrate makes them");
        return NORI_ERROR_FORMAT;
    }
    r->at = 8;
    NORI__TRY(get(r, 4, &version));
    if (version != VERSION) {
        nori__fail(r->err, NORI_ERROR_UNSUPPORTED,
                   "the calibration has version %llu of its format, this nori reads version %d",
                   (unsigned long long)version, VERSION);
        nori__hint(r->err, "calibrate again with this nori");
        return NORI_ERROR_UNSUPPORTED;
    }
    if (r->size < HEADER + 8) {
        return damaged(r, "it ends too early");
    }
    r->size -= 8;
    reader tail = {r->data, r->size + 8, r->size, r->err};
    NORI__TRY(get(&tail, 8, &end));
    if (end != checksum(r->data, r->size)) {
        return damaged(r, "its checksum is wrong");
    }
    NORI__TRY(get(r, 4, &zero));
    NORI__TRY(get(r, 8, &c->graph));
    NORI__TRY(get_count(r, &c->samples));
    NORI__TRY(get(r, 8, &values));
    if (zero != 0) {
        return damaged(r, "a reserved field is not zero");
    }
    for (uint64_t i = 0; i < values; i++) {
        NORI__TRY(get_observer(r, c, &last));
    }
    c->sorted = true;
    return r->at == r->size ? NORI_OK : damaged(r, "more bytes follow than it tells of");
}

nori_status nori_calibration_decode(nori_env *env, const void *data, size_t size,
                                    nori_calibration **calibration, nori_error *err)
{
    NORI__GIVEN_LIST(err, data, size);
    NORI__GIVEN(err, calibration);
    reader r = {data, size, 0, err};
    *calibration = NULL;
    nori_calibration *c;
    NORI__TRY(nori__calibration_new(nori__env_allocator(env), &c, err));
    nori_status s = get_all(&r, c);
    if (s != NORI_OK) {
        nori_calibration_free(c);
        return s;
    }
    *calibration = c;
    return NORI_OK;
}

nori_status nori_calibration_read(nori_env *env, const char *path, nori_calibration **calibration,
                                  nori_error *err)
{
    NORI__GIVEN(err, path);
    NORI__GIVEN(err, calibration);
    nori__map_file file;
    *calibration = NULL;
    NORI__TRY(nori__map_open(path, &file, err));
    nori_status s = nori_calibration_decode(env, file.data, file.size, calibration, err);
    nori__map_close(&file);
    if (s != NORI_OK) {
        nori__where(err, "%s", path);
    }
    return s;
}

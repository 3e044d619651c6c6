/* save.c: writing a model: all in one file, or the data of its initializers in another beside it.
 *
 * The messages are copied as far as tensors lie in them (bytes are pointed at), each tensor is given
 * its place, and the result goes out piece by piece. Data that lies in a mapped file is given back to
 * the system behind the writer, so that a model larger than memory passes through. */
#include <stdio.h>
#include <stdlib.h>

#include "nori/edit.h"
#include "base/given.h"
#include "run/place_data.h"

#define BUFFER ((size_t)1 << 16)
#define PIECE ((size_t)1 << 22)

typedef struct saving {
    nori__placing to;     /* the data of initializers */
    const nori_save_options *options;
    const char *path;
    nori__out_file *out;
    uint8_t *buffer;
    size_t held;
    uint64_t done, total;
    nori_error *err;
} saving;

void nori_save_options_default(nori_save_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_save_options){.size = sizeof(*options), .threshold = 1024, .most = INT32_MAX};
}

/* ---- writing ---- */

static void tell(saving *s, size_t more)
{
    nori_progress p = {.size = sizeof(p), .phase = "write", .provider = "", .text = s->path};
    s->done += more;
    p.done = (size_t)s->done;
    p.total = (size_t)s->total;
    if (s->options->progress) {
        s->options->progress(s->options->progress_user, &p);
    }
}

static bool is_zero(const char *p, size_t n)
{
    return n > 0 && p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

/* Pages of nothing but zeros are left as holes. */
static nori_status write_data(saving *s, const nori__placed *p)
{
    for (size_t at = 0; at < p->bytes.n;) {
        size_t n = p->bytes.n - at < PIECE ? p->bytes.n - at : PIECE;
        const char *piece = p->bytes.p + at;
        NORI__TRY(n >= BUFFER && is_zero(piece, n) ? nori__out_zeros(s->out, n, s->err)
                                                   : nori__out_write(s->out, piece, n, s->err));
        if (p->of_file) {
            nori__map_relax_range(piece, n);
        }
        at += n;
        tell(s, n);
    }
    return NORI_OK;
}

static nori_status finish(saving *s, nori_status status)
{
    if (status == NORI_OK) {
        status = nori__out_commit(s->out, s->err);
    } else {
        nori__out_abort(s->out);
    }
    s->out = NULL;
    return status;
}

static nori_status write_data_file(saving *s, const char *path)
{
    uint64_t at = 0;
    nori_status status = nori__out_open(s->to.arena->allocator, path, &s->out, s->err);
    if (status != NORI_OK) {
        return status;
    }
    for (size_t i = 0; status == NORI_OK && i < s->to.data.count; i++) {
        const nori__placed *p = s->to.data.items[i];
        status = nori__out_zeros(s->out, p->offset - at, s->err);
        status = status == NORI_OK ? write_data(s, p) : status;
        at = p->offset + p->bytes.n;
    }
    return finish(s, status);
}

static bool flush(saving *s)
{
    size_t n = s->held;
    s->held = 0;
    return n == 0 || nori__out_write(s->out, s->buffer, n, s->err) == NORI_OK;
}

/* What was written of mapped files need not stay in memory. */
static void relax(const nori__source *source)
{
    if (source) {
        nori__external_relax(source->external);
        relax(source->parents[0]);
        relax(source->parents[1]);
    }
}

static bool sink(void *user, const void *bytes, size_t size)
{
    saving *s = user;
    if (s->held + size <= BUFFER) {
        memcpy(s->buffer + s->held, bytes, size);
        s->held += size;
        return true;
    }
    if (!flush(s)) {
        return false;
    }
    if (size <= BUFFER) {
        return sink(user, bytes, size);
    }
    for (size_t at = 0; at < size; at += PIECE) {
        size_t n = size - at < PIECE ? size - at : PIECE;
        if (nori__out_write(s->out, (const char *)bytes + at, n, s->err) != NORI_OK) {
            return false;
        }
        relax(s->to.model->source);
        tell(s, n);
    }
    return true;
}

static nori_status write_model(saving *s, const nori__pb_model *pb)
{
    size_t size;
    s->buffer = nori__arena_alloc(s->to.arena, BUFFER);
    if (!s->buffer) {
        return nori__no_memory(s->err);
    }
    NORI__TRY(nori__out_open(s->to.arena->allocator, s->path, &s->out, s->err));
    nori_status status = nori__pb_write_model_to(pb, s->to.arena->allocator, sink, s, &size, s->err);
    status = status == NORI_OK && !flush(s) ? NORI_ERROR_IO : status;
    return finish(s, status);
}

/* ---- which way ---- */

static nori_status too_large(const saving *s, uint64_t size, const char *what)
{
    nori_status status = nori__fail(s->err, NORI_ERROR_LIMIT,
                                    "%s would have %llu bytes%s, a file of this kind has at most %llu",
                                    s->path, (unsigned long long)size, what,
                                    (unsigned long long)s->options->most);
    nori__hint(s->err, "write the data beside it: nori convert --external FILE, external in the API");
    return status;
}

static const char *folder_path(saving *s, const char *location)
{
    const char *slash = strrchr(s->path, '/');
    return slash ? nori__arena_printf(s->to.arena, "%.*s%s", (int)(slash - s->path) + 1, s->path, location)
                 : nori__arena_text(s->to.arena, location);
}

static bool same_path(const char *a, const char *b)
{
    char *x = a[0] ? realpath(a, NULL) : NULL, *y = b[0] ? realpath(b, NULL) : NULL;
    bool same = nori__same(a, b) || (x && y && nori__same(x, y));
    free(x);
    free(y);
    return same;
}

static bool reads(const nori__source *source, const char *path, const char *model)
{
    return source && ((nori__external_reads(source->external, path) && !same_path(source->path, model)) ||
                      same_path(source->path, path) || reads(source->parents[0], path, model) ||
                      reads(source->parents[1], path, model));
}

static nori_status check_location(saving *s, const char **data_path)
{
    const char *why = nori__external_bad_location(nori__str_of(s->to.location));
    if (why) {
        nori_status status = nori__fail(s->err, NORI_ERROR_ARGUMENT,
                                        "the file for external data \"%.200s\" %s; a path relative to "
                                        "the model's folder was expected", s->to.location, why);
        nori__hint(s->err, "it is always kept beside the model: give its name alone");
        return status;
    }
    *data_path = folder_path(s, s->to.location);
    if (!*data_path) {
        return nori__no_memory(s->err);
    }
    if (same_path(*data_path, s->path) || reads(s->to.model->source, *data_path, s->path)) {
        nori_status status = nori__fail(s->err, NORI_ERROR_ARGUMENT,
                                        "external data cannot be written to %s: %s", *data_path,
                                        same_path(*data_path, s->path)
                                            ? "that is the model itself"
                                            : "the model that was read has its data there");
        nori__hint(s->err, "give the data, or the model, another name");
        return status;
    }
    return NORI_OK;
}

static nori_status save(saving *s)
{
    const nori_save_options *o = s->options;
    const nori__pb_model *pb = s->to.model->source->pb;
    nori__pb_model *whole = NULL;
    const char *data_path = NULL;
    size_t size = 0;
    NORI__TRY(nori__pb_each_tensor(s->to.arena, pb, nori__place_tensor, &s->to, &whole, s->err));
    NORI__TRY(nori__pb_write_model_to(whole, s->to.arena->allocator, NULL, NULL, &size, s->err));
    if (o->embed && size > o->most) {
        return too_large(s, size, "");
    }
    s->total = size;
    if (o->external || (!o->embed && size > o->most)) {
        const char *slash = strrchr(s->path, '/');
        s->to.location = o->external ? o->external
                                  : nori__arena_printf(s->to.arena, "%s.data", slash ? slash + 1 : s->path);
        if (!s->to.location) {
            return nori__no_memory(s->err);
        }
        NORI__TRY(check_location(s, &data_path));
        NORI__TRY(nori__pb_each_tensor(s->to.arena, pb, nori__place_tensor, &s->to, &whole, s->err));
        NORI__TRY(nori__pb_write_model_to(whole, s->to.arena->allocator, NULL, NULL, &size, s->err));
        if (size > o->most) {
            return too_large(s, size, " even without the data of its initializers");
        }
        NORI__TRY(s->to.data.count > 0 ? write_data_file(s, data_path) : NORI_OK);
    }
    return write_model(s, whole);
}

nori_status nori_model_save_as(const nori_model *model, const char *path,
                               const nori_save_options *options, nori_error *err)
{
    nori_error own = {0};
    nori_save_options o;
    nori__arena arena;
    err = err ? err : &own;
    if (!model || !path || !path[0]) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "a model and a path to write it to were expected");
    }
    nori_save_options_default(&o);
    if (options) {
        memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
    }
    if (o.embed && o.external) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "data inside and in a file beside was asked for");
    }
    nori__arena_init(&arena, model->source->allocator);
    saving s = {.options = &o, .path = path, .err = err};
    nori__placing_init(&s.to, model, o.threshold, &arena);
    nori_status status = save(&s);
    nori__placing_free(&s.to);
    nori__arena_free(&arena);
    return status;
}

nori_status nori_model_save(const nori_model *model, const char *path, nori_error *err)
{
    return nori_model_save_as(model, path, NULL, err);
}

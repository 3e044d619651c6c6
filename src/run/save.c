/* save.c: writing a model: all in one file, or the data of its initializers in another beside it.
 *
 * The messages are copied as far as tensors lie in them (bytes are pointed at), each tensor is given
 * its place, and the result goes out piece by piece. Data that lies in a mapped file is given back to
 * the system behind the writer, so that a model larger than memory passes through. */
#include <stdio.h>
#include <stdlib.h>

#include "nori/edit.h"
#include "run/run.h"

#define BUFFER ((size_t)1 << 16)
#define PIECE ((size_t)1 << 22)
#define LARGE ((uint64_t)1 << 20) /* data from here on begins at a page, which can be mapped */

/* One initializer's bytes in the data file. */
typedef struct placed {
    nori__str bytes;
    uint64_t offset;
    bool of_file;
} placed;

typedef struct saving {
    const nori_model *model;
    const nori_save_options *options;
    const char *path;
    const char *location; /* of the data; NULL: all in one file */
    nori__arena *arena;
    nori__vec data;       /* placed * */
    nori__vec tensors;    /* made on the way */
    uint64_t end;         /* of the data so far */
    nori__out_file *out;
    uint8_t *buffer;
    size_t held;
    uint64_t done, total;
    nori_error *err;
} saving;

void nori_save_options_default(nori_save_options *options)
{
    *options = (nori_save_options){.size = sizeof(*options), .threshold = 1024, .most = INT32_MAX};
}

/* ---- where each tensor goes ---- */

static nori_status entry(saving *s, nori__pb_tensor *t, const char *key, const char *value)
{
    nori__pb_entry *e = &t->external.items[t->external.count++];
    e->key = nori__str_of(key);
    e->value = nori__str_of(value ? value : "");
    return value ? NORI_OK : nori__no_memory(s->err);
}

/* The tensor's bytes as a data file has them; of typed lists by way of a tensor. */
static nori_status bytes_of(saving *s, const nori__pb_tensor *t, placed *p)
{
    if (t->has_raw && t->raw.n > 0) {
        p->bytes = t->raw;
        return NORI_OK;
    }
    nori_tensor *made = NULL;
    NORI__TRY(nori__tensor_from_pb(s->arena->allocator, t, NULL, &made, s->err));
    if (!nori__vec_push(&s->tensors, made)) {
        nori_tensor_free(made);
        return nori__no_memory(s->err);
    }
    p->bytes = (nori__str){made->data, made->bytes};
    return NORI_OK;
}

static nori_status move_out(saving *s, nori__pb_tensor *t, bool of_file)
{
    placed *p = nori__arena_alloc(s->arena, sizeof(*p));
    if (!p) {
        return nori__no_memory(s->err);
    }
    p->of_file = of_file;
    NORI__TRY(bytes_of(s, t, p));
    uint64_t step = p->bytes.n >= LARGE ? 4096 : 64, over = s->end % step;
    if (s->end > UINT64_MAX / 4 || !nori__vec_push(&s->data, p)) {
        return nori__no_memory(s->err);
    }
    p->offset = s->end + (over ? step - over : 0);
    s->end = p->offset + p->bytes.n;
    t->external.items = nori__arena_array(s->arena, 3, sizeof(*t->external.items));
    t->external.count = 0;
    if (!t->external.items) {
        return nori__no_memory(s->err);
    }
    NORI__TRY(entry(s, t, "location", s->location));
    NORI__TRY(entry(s, t, "offset", nori__arena_printf(s->arena, "%llu",
                                                       (unsigned long long)p->offset)));
    NORI__TRY(entry(s, t, "length", nori__arena_printf(s->arena, "%zu", p->bytes.n)));
    t->data_location = 1;
    t->has_raw = false;
    t->raw = (nori__str){NULL, 0};
    t->floats.count = t->doubles.count = t->ints.count = t->uints.count = 0;
    t->head.present = 0;
    return NORI_OK;
}

/* First into the message, as the model may go elsewhere; then, where asked for, out again. */
static nori_status place(void *user, nori__pb_tensor *t, bool initializer, nori_error *err)
{
    saving *s = user;
    bool of_file = false;
    int64_t count;
    size_t bytes = 0;
    /* What has no data of its own (one of a sparse tensor that is empty) stays as it is. */
    if (!nori__dims_count((int)t->dims.count, t->dims.items, &count) ||
        t->data_type <= 0 || t->data_type >= NORI_TYPE_COUNT ||
        !nori__type_bytes((nori_type)t->data_type, count, &bytes)) {
        return NORI_OK;
    }
    if (t->data_location == 1) {
        NORI__TRY(nori__external_find(s->model->source->external, t, bytes, &t->raw, &of_file, err));
        t->has_raw = true;
        t->raw.p = t->raw.p ? t->raw.p : "";
        t->data_location = 0;
        t->external.count = 0;
        t->head.present = 0;
    }
    bool out = s->location && initializer && t->data_type != NORI_STRING && bytes > 0 &&
               bytes >= s->options->threshold;
    return out ? move_out(s, t, of_file) : NORI_OK;
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
static nori_status write_data(saving *s, const placed *p)
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
    nori_status status = nori__out_open(s->arena->allocator, path, &s->out, s->err);
    if (status != NORI_OK) {
        return status;
    }
    for (size_t i = 0; status == NORI_OK && i < s->data.count; i++) {
        const placed *p = s->data.items[i];
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
        relax(s->model->source);
        tell(s, n);
    }
    return true;
}

static nori_status write_model(saving *s, const nori__pb_model *pb)
{
    size_t size;
    s->buffer = nori__arena_alloc(s->arena, BUFFER);
    if (!s->buffer) {
        return nori__no_memory(s->err);
    }
    NORI__TRY(nori__out_open(s->arena->allocator, s->path, &s->out, s->err));
    nori_status status = nori__pb_write_model_to(pb, s->arena->allocator, sink, s, &size, s->err);
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
    return slash ? nori__arena_printf(s->arena, "%.*s%s", (int)(slash - s->path) + 1, s->path, location)
                 : nori__arena_text(s->arena, location);
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
    const char *why = nori__external_bad_location(nori__str_of(s->location));
    if (why) {
        nori_status status = nori__fail(s->err, NORI_ERROR_ARGUMENT,
                                        "the file for external data \"%.200s\" %s; a path relative to "
                                        "the model's folder was expected", s->location, why);
        nori__hint(s->err, "it is always kept beside the model: give its name alone");
        return status;
    }
    *data_path = folder_path(s, s->location);
    if (!*data_path) {
        return nori__no_memory(s->err);
    }
    if (same_path(*data_path, s->path) || reads(s->model->source, *data_path, s->path)) {
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
    const nori__pb_model *pb = s->model->source->pb;
    nori__pb_model *whole = NULL;
    const char *data_path = NULL;
    size_t size = 0;
    NORI__TRY(nori__pb_each_tensor(s->arena, pb, place, s, &whole, s->err));
    NORI__TRY(nori__pb_write_model_to(whole, s->arena->allocator, NULL, NULL, &size, s->err));
    if (o->embed && size > o->most) {
        return too_large(s, size, "");
    }
    s->total = size;
    if (o->external || (!o->embed && size > o->most)) {
        const char *slash = strrchr(s->path, '/');
        s->location = o->external ? o->external
                                  : nori__arena_printf(s->arena, "%s.data", slash ? slash + 1 : s->path);
        if (!s->location) {
            return nori__no_memory(s->err);
        }
        NORI__TRY(check_location(s, &data_path));
        NORI__TRY(nori__pb_each_tensor(s->arena, pb, place, s, &whole, s->err));
        NORI__TRY(nori__pb_write_model_to(whole, s->arena->allocator, NULL, NULL, &size, s->err));
        if (size > o->most) {
            return too_large(s, size, " even without the data of its initializers");
        }
        NORI__TRY(s->data.count > 0 ? write_data_file(s, data_path) : NORI_OK);
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
    saving s = {.model = model, .options = &o, .path = path, .arena = &arena, .err = err};
    nori__vec_init(&s.data, arena.allocator);
    nori__vec_init(&s.tensors, arena.allocator);
    nori_status status = save(&s);
    for (size_t i = 0; i < s.tensors.count; i++) {
        nori_tensor_free(s.tensors.items[i]);
    }
    nori__vec_free(&s.tensors);
    nori__vec_free(&s.data);
    nori__arena_free(&arena);
    return status;
}

nori_status nori_model_save(const nori_model *model, const char *path, nori_error *err)
{
    return nori_model_save_as(model, path, NULL, err);
}

/* load_from.c: models whose bytes a callback gives. */
#include "base/given.h"
#include "onnx/model_limits.h"
#include "platform/env_limits.h"
#include "run/run.h"
#include "tools/sign/secrets.h"

void nori_reader_default(nori_reader *reader)
{
    NORI__ASKED(reader, );
    *reader = (nori_reader){.size = sizeof(*reader)};
}

static nori_status read_all(const nori_reader *r, nori__text *bytes, nori_error *err)
{
    nori_error own = {0};
    for (uint64_t done = 0; done < r->bytes;) {
        size_t left = (size_t)(r->bytes - done);
        int64_t n = r->read(r->user, done, bytes->data + done, left, &own);
        if (n < 0 || (uint64_t)n > left) {
            nori_status status = own.status ? own.status : NORI_ERROR_IO;
            return nori__fail(err, status, "%s", own.message[0] ? own.message
                                                 : n < 0 ? "the model's reader failed"
                                                         : "the reader gave more than was asked for");
        }
        if (n == 0) {
            return nori__fail(err, NORI_ERROR_IO,
                              "the model's reader promised %llu bytes, %llu came",
                              (unsigned long long)r->bytes, (unsigned long long)done);
        }
        done += (uint64_t)n;
    }
    return NORI_OK;
}

nori_status nori_model_load_from(nori_env *env, const nori_reader *reader,
                                 const nori_load_options *options, nori_model **model,
                                 nori_error *err)
{
    NORI__GIVEN(err, reader);
    NORI__GIVEN(err, model);
    nori_reader r;
    nori_load_options o;
    nori__text bytes;
    *model = NULL;
    nori_reader_default(&r);
    nori_load_options_default(&o);
    if (!reader) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "a reader was expected");
    }
    memcpy(&r, reader, reader->size < sizeof(r) ? reader->size : sizeof(r));
    if (options) {
        memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
    }
    if (!r.read) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "the reader has no function to read by");
    }
    uint64_t most = o.max_bytes ? o.max_bytes : nori__env_limits(env)->model_bytes;
    if (most > 0 && r.bytes > most) { /* before memory is asked for */
        return nori__past_limit(err, "bytes of the model", r.bytes, most,
                                o.max_bytes ? "max_bytes" : "model_bytes", "model");
    }
    nori__text_init(&bytes, nori__env_allocator(env));
    if (r.bytes > SIZE_MAX / 2 || !nori__text_reserve(&bytes, (size_t)r.bytes)) {
        return nori__no_memory(err);
    }
    nori_status s = read_all(&r, &bytes, err);
    if (s == NORI_OK) {
        bytes.size = (size_t)r.bytes;
        s = nori__model_from_bytes(env, &bytes, r.base_dir, &o, model, err);
    }
    nori__text_free(&bytes);
    return s;
}

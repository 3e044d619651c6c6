/* remote_body.c: requests and answers of the protocol as bytes: JSON first, then the tensors in the
 * order it names them, as their bytes are. What a server answers is not trusted. */
#include "remote.h"

#ifdef NORI_WITH_JANSSON
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Names of element types in the protocol. */
static const struct {
    nori_type type;
    const char *name;
} types[] = {
    {NORI_BOOL, "BOOL"},     {NORI_UINT8, "UINT8"},   {NORI_UINT16, "UINT16"},
    {NORI_UINT32, "UINT32"}, {NORI_UINT64, "UINT64"}, {NORI_INT8, "INT8"},
    {NORI_INT16, "INT16"},   {NORI_INT32, "INT32"},   {NORI_INT64, "INT64"},
    {NORI_FLOAT16, "FP16"},  {NORI_FLOAT, "FP32"},    {NORI_DOUBLE, "FP64"},
    {NORI_BFLOAT16, "BF16"},
};

static const char *type_word(nori_type type)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].type == type) {
            return types[i].name;
        }
    }
    return NULL;
}

static nori_type type_of(const char *word)
{
    for (size_t i = 0; word && i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(types[i].name, word) == 0) {
            return types[i].type;
        }
    }
    return NORI_UNDEFINED;
}

/* ---- requests ---- */

static void write_id(cli_json *w, const remote_call *call)
{
    char *id = call->pad_both ? malloc(call->pad_both + 1) : NULL;
    if (id) {
        memset(id, 'x', call->pad_both);
        id[call->pad_both] = 0;
        cli_json_string(w, "id", id);
        free(id);
    }
}

static nori_status write_head(const remote_call *call, FILE *f, nori_error *err)
{
    cli_json w;
    cli_json_begin(&w, f);
    write_id(&w, call);
    cli_json_array(&w, "inputs");
    for (size_t i = 0; i < call->n_in; i++) {
        const nori_tensor *t = call->tensors[i];
        if (!t) {
            continue;
        }
        const char *word = type_word(nori_tensor_type(t));
        if (nori_tensor_kind(t) != NORI_KIND_TENSOR || !word) {
            return remote_fail(err, NORI_ERROR_UNSUPPORTED, "input %s of type %s cannot be sent to a "
                               "server: tensors of numbers can", call->inputs[i]->name,
                               nori_type_name(nori_tensor_type(t)));
        }
        cli_json_object(&w, NULL);
        cli_json_string(&w, "name", call->inputs[i]->name);
        cli_json_string(&w, "datatype", word);
        cli_json_array(&w, "shape");
        for (int d = 0; d < nori_tensor_rank(t); d++) {
            cli_json_int(&w, NULL, nori_tensor_dims(t)[d]);
        }
        cli_json_end(&w);
        cli_json_object(&w, "parameters");
        cli_json_uint(&w, "binary_data_size", nori_tensor_bytes(t));
        cli_json_end(&w);
        cli_json_end(&w);
    }
    cli_json_end(&w);
    cli_json_array(&w, "outputs");
    for (size_t i = 0; i < call->n_out; i++) {
        cli_json_object(&w, NULL);
        cli_json_string(&w, "name", call->outputs[i]->name);
        cli_json_object(&w, "parameters");
        cli_json_bool(&w, "binary_data", true);
        cli_json_end(&w);
        cli_json_end(&w);
    }
    cli_json_end(&w);
    cli_json_finish(&w);
    for (size_t i = 0; i < call->pad_request; i++) {
        fputc(' ', f);
    }
    return NORI_OK;
}

nori_status remote_encode(const remote_call *call, char **body, size_t *size, size_t *head,
                          nori_error *err)
{
    *body = NULL;
    FILE *f = open_memstream(body, size);
    if (!f) {
        return remote_fail(err, NORI_ERROR_MEMORY, "out of memory");
    }
    nori_status s = write_head(call, f, err);
    fflush(f);
    *head = *size;
    for (size_t i = 0; s == NORI_OK && i < call->n_in; i++) {
        const nori_tensor *t = call->tensors[i];
        if (t && nori_tensor_bytes(t) > 0) {
            fwrite(nori_tensor_const_data(t), 1, nori_tensor_bytes(t), f);
        }
    }
    bool bad = ferror(f) != 0;
    if ((fclose(f) != 0 || bad) && s == NORI_OK) {
        s = remote_fail(err, NORI_ERROR_MEMORY, "out of memory");
    }
    return s;
}

/* ---- answers ---- */

static nori_status wrong(nori_error *err, const char *what)
{
    return remote_fail(err, NORI_ERROR_FORMAT, "the server's answer does not fit the protocol: %s", what);
}

/* Numbers written out, in lists of any depth. */
static bool take_numbers(const json_t *list, nori_tensor *t, int64_t *at, int depth)
{
    const json_t *v;
    size_t i;
    json_array_foreach(list, i, v) {
        if (json_is_array(v)) {
            if (depth >= NORI_MAX_RANK || !take_numbers(v, t, at, depth + 1)) {
                return false;
            }
            continue;
        }
        if (*at >= nori_tensor_elements(t) || !(json_is_number(v) || json_is_boolean(v))) {
            return false;
        }
        double d = json_is_boolean(v) ? json_is_true(v) : json_number_value(v);
        void *data = nori_tensor_data(t);
        switch (nori_tensor_type(t)) {
        case NORI_FLOAT: ((float *)data)[*at] = (float)d; break;
        case NORI_DOUBLE: ((double *)data)[*at] = d; break;
        case NORI_INT64: ((int64_t *)data)[*at] = json_integer_value(v); break;
        case NORI_INT32: ((int32_t *)data)[*at] = (int32_t)json_integer_value(v); break;
        case NORI_INT8: ((int8_t *)data)[*at] = (int8_t)json_integer_value(v); break;
        case NORI_UINT8: ((uint8_t *)data)[*at] = (uint8_t)json_integer_value(v); break;
        case NORI_BOOL: ((uint8_t *)data)[*at] = d != 0; break;
        default: return false;
        }
        *at += 1;
    }
    return true;
}

/* One output: its bytes begin at *at of the binary part. */
static nori_status take_output(const json_t *o, const char *data, size_t left, size_t *used,
                               nori_tensor **out, nori_error *err)
{
    const json_t *shape = json_object_get(o, "shape"), *v;
    const json_t *bytes = json_object_get(json_object_get(o, "parameters"), "binary_data_size");
    const char *word = json_string_value(json_object_get(o, "datatype"));
    nori_type type = type_of(word);
    int64_t dims[NORI_MAX_RANK], at = 0;
    size_t i;
    *used = 0;
    if (type == NORI_UNDEFINED || !json_is_array(shape) || json_array_size(shape) > NORI_MAX_RANK) {
        return remote_fail(err, NORI_ERROR_FORMAT, "the server's answer has an output of type %.40s or "
                           "with a shape that nori does not know", word ? word : "(none)");
    }
    json_array_foreach(shape, i, v) {
        dims[i] = json_is_integer(v) ? json_integer_value(v) : -1;
        if (dims[i] < 0) {
            return wrong(err, "a dimension below 0");
        }
    }
    if (bytes) { /* looked at before memory is taken: the shape is the server's word */
        double elements = 1;
        for (i = 0; i < json_array_size(shape); i++) {
            elements *= (double)dims[i];
        }
        *used = json_is_integer(bytes) && json_integer_value(bytes) >= 0
                    ? (size_t)json_integer_value(bytes) : SIZE_MAX;
        if (*used > left || elements * nori_type_bits(type) / 8 != (double)*used) {
            return wrong(err, "an output's bytes are not those of its shape");
        }
    }
    nori_status s = nori_tensor_create(NULL, type, (int)json_array_size(shape), dims, out, err);
    if (s != NORI_OK) {
        return s;
    }
    if (bytes) {
        if (*used > 0) {
            memcpy(nori_tensor_data(*out), data, *used);
        }
        return NORI_OK;
    }
    if (!json_is_array(json_object_get(o, "data")) ||
        !take_numbers(json_object_get(o, "data"), *out, &at, 0) || at != nori_tensor_elements(*out)) {
        return wrong(err, "an output's numbers are not those of its shape");
    }
    return NORI_OK;
}

static nori_status take_outputs(const remote_call *call, const json_t *root, const char *data,
                                size_t left, nori_tensor **outs, nori_error *err)
{
    const json_t *o;
    size_t i;
    json_array_foreach(json_object_get(root, "outputs"), i, o) {
        const char *name = json_string_value(json_object_get(o, "name"));
        nori_tensor *t = NULL;
        size_t used, k = 0;
        nori_status s = take_output(o, data, left, &used, &t, err);
        data += s == NORI_OK ? used : 0;
        left -= s == NORI_OK ? used : 0;
        while (k < call->n_out && (!name || strcmp(name, call->outputs[k]->name) != 0)) {
            k++;
        }
        if (s != NORI_OK || k == call->n_out || outs[k]) {
            nori_tensor_free(t);
            if (s != NORI_OK) {
                return s;
            }
            continue; /* one that was not asked for */
        }
        outs[k] = t;
    }
    for (size_t k = 0; k < call->n_out; k++) {
        if (!outs[k]) {
            return remote_fail(err, NORI_ERROR_FORMAT, "the server's answer has no output %s",
                               call->outputs[k]->name);
        }
    }
    return NORI_OK;
}

nori_status remote_decode(const remote_call *call, const char *body, size_t size, size_t head,
                          nori_tensor **outs, nori_error *err)
{
    if (head > size) {
        return wrong(err, "its JSON is said to be longer than it is");
    }
    json_error_t why;
    json_t *root = json_loadb(body, head, 0, &why);
    if (!root) {
        return wrong(err, why.text);
    }
    for (size_t i = 0; i < call->n_out; i++) {
        outs[i] = NULL;
    }
    nori_status s = take_outputs(call, root, body + head, size - head, outs, err);
    for (size_t i = 0; s != NORI_OK && i < call->n_out; i++) {
        nori_tensor_free(outs[i]);
        outs[i] = NULL;
    }
    json_decref(root);
    return s;
}

static uint64_t counted(const json_t *stats, const char *what, const char *field)
{
    const json_t *v = json_object_get(json_object_get(stats, what), field);
    return json_is_integer(v) && json_integer_value(v) > 0 ? (uint64_t)json_integer_value(v) : 0;
}

nori_status remote_decode_stats(const char *text, const char *model, remote_stats *stats,
                                nori_error *err)
{
    json_error_t why;
    json_t *root = json_loads(text, 0, &why);
    const json_t *row, *list = json_object_get(root, "model_stats");
    size_t i;
    bool found = false;
    *stats = (remote_stats){0};
    json_array_foreach(list, i, row) {
        const char *name = json_string_value(json_object_get(row, "name"));
        const json_t *s = json_object_get(row, "inference_stats");
        if (name && strcmp(name, model) == 0 && s) { /* versions add up */
            found = true;
            stats->calls += counted(s, "success", "count");
            stats->queue_ns += counted(s, "queue", "ns");
            stats->compute_ns += counted(s, "compute_input", "ns") + counted(s, "compute_infer", "ns") +
                                 counted(s, "compute_output", "ns");
        }
    }
    json_decref(root);
    return found ? NORI_OK
                 : remote_fail(err, NORI_ERROR_FORMAT, "the server's statistics do not tell of %s", model);
}
#else

nori_status remote_encode(const remote_call *call, char **body, size_t *size, size_t *head,
                          nori_error *err)
{
    (void)call, (void)body, (void)size, (void)head;
    return remote_fail(err, NORI_ERROR_UNAVAILABLE, "this nori was built without jansson");
}

nori_status remote_decode(const remote_call *call, const char *body, size_t size, size_t head,
                          nori_tensor **outs, nori_error *err)
{
    (void)call, (void)body, (void)size, (void)head, (void)outs;
    return remote_fail(err, NORI_ERROR_UNAVAILABLE, "this nori was built without jansson");
}

nori_status remote_decode_stats(const char *text, const char *model, remote_stats *stats,
                                nori_error *err)
{
    (void)text, (void)model, (void)stats;
    return remote_fail(err, NORI_ERROR_UNAVAILABLE, "this nori was built without jansson");
}
#endif

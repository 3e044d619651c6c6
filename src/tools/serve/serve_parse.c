/* serve_parse.c: the body of an infer request, read and checked once, here. What comes out are tensors
 * that fit the model as far as its signature says; sizes that depend on each other are the run's to
 * check. Data of tensors is serve_elements.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve_elements.h"

/* What is being read. */
typedef struct reader {
    const serve_signature *signature;
    char *binary; /* behind the JSON */
    size_t left;
    bool no_length; /* the header that would tell where the JSON ends was not given */
    serve_request *request;
    nori_error *err;
} reader;

void nori__serve_request_free(serve_request *r)
{
    for (size_t i = 0; r->inputs && i < r->input_count; i++) {
        nori_tensor_free(r->inputs[i]);
    }
    free(r->inputs);
    free(r->wanted);
    free(r->id);
    memset(r, 0, sizeof(*r));
}

/* ---- names ---- */

/* Names of a side, for messages; cut to size. */
static void list_names(const nori_value_info *const *values, size_t count, char *out, size_t size)
{
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < count && n < size; i++) {
        int wrote = snprintf(out + n, size - n, "%s%s", i ? ", " : "", values[i]->name);
        n += wrote > 0 ? (size_t)wrote : 0;
    }
}

static bool find_value(const nori_value_info *const *values, size_t count, const json_t *name,
                       size_t *index)
{
    const char *text = json_string_value(name);
    size_t size = json_string_length(name);
    for (size_t i = 0; i < count; i++) {
        if (strlen(values[i]->name) == size && memcmp(values[i]->name, text, size) == 0) {
            *index = i;
            return true;
        }
    }
    return false;
}

static nori_status no_such(reader *r, const char *side, const json_t *name, bool input)
{
    char names[300];
    const serve_signature *s = r->signature;
    list_names(input ? s->inputs : s->outputs, input ? s->input_count : s->output_count, names,
               sizeof(names));
    return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT, "the model has no %s \"%.200s\"; it has: %s",
                            side, json_string_value(name), names);
}

/* ---- shapes ---- */

static nori_status wrong_shape(reader *r, const nori_value_info *v, const int64_t *dims, int rank)
{
    char got[200] = "", want[300] = "";
    size_t g = 0, w = 0;
    for (int i = 0; i < rank && g < sizeof(got); i++) {
        int n = snprintf(got + g, sizeof(got) - g, "%s%" PRId64, i ? "," : "", dims[i]);
        g += n > 0 ? (size_t)n : 0;
    }
    for (int i = 0; i < v->rank && w < sizeof(want); i++) {
        int n = v->dims[i] >= 0
                    ? snprintf(want + w, sizeof(want) - w, "%s%" PRId64, i ? "," : "", v->dims[i])
                    : snprintf(want + w, sizeof(want) - w, "%s%.40s", i ? "," : "",
                               v->dim_names && v->dim_names[i] ? v->dim_names[i] : "any");
        w += n > 0 ? (size_t)n : 0;
    }
    return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT,
                            "input \"%s\" has shape [%s], the model expects [%s]", v->name, got, want);
}

/* Reads the shape and the number of elements it holds. */
static nori_status read_shape(reader *r, const json_t *tensor, const nori_value_info *v,
                              int64_t dims[NORI_MAX_RANK], int *rank, uint64_t *count)
{
    const json_t *shape = json_object_get(tensor, "shape");
    if (!json_is_array(shape) || json_array_size(shape) > NORI_MAX_RANK) {
        return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT,
                                "\"shape\" of input \"%s\" must be a list of at most %d sizes", v->name,
                                NORI_MAX_RANK);
    }
    bool empty = false, fits = true;
    *rank = (int)json_array_size(shape);
    for (int i = 0; i < *rank; i++) {
        const json_t *d = json_array_get(shape, (size_t)i);
        if (!json_is_integer(d) || json_integer_value(d) < 0) {
            return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT,
                                    "size %d of \"shape\" of input \"%s\" is not a whole number from 0 on",
                                    i, v->name);
        }
        dims[i] = json_integer_value(d);
        empty = empty || dims[i] == 0;
        fits = fits && (v->rank != *rank || v->dims[i] < 0 || v->dims[i] == dims[i]);
    }
    if (!fits || (v->rank >= 0 && v->rank != *rank)) {
        return wrong_shape(r, v, dims, *rank);
    }
    *count = empty ? 0 : 1;
    for (int i = 0; i < *rank && !empty; i++) {
        if (*count > (UINT64_C(1) << 48) / (uint64_t)dims[i]) {
            return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT,
                                    "\"shape\" of input \"%s\" holds more elements than any machine",
                                    v->name);
        }
        *count *= (uint64_t)dims[i];
    }
    return NORI_OK;
}

/* ---- parameters ---- */

/* What would change the meaning and is not there is refused; what is not known is left alone. */
static nori_status refuse_parameters(reader *r, const json_t *parameters, const char *where)
{
    static const char *const refused[] = {"shared_memory_region", "classification", "sequence_id"};
    if (parameters && !json_is_object(parameters)) {
        return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT, "\"parameters\" of %s must be an object",
                                where);
    }
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        const json_t *p = json_object_get(parameters, refused[i]);
        if (p && !(json_is_integer(p) && json_integer_value(p) == 0)) {
            return nori__serve_fail(r->err, NORI_ERROR_UNSUPPORTED,
                                    "parameter \"%s\" of %s is not supported", refused[i], where);
        }
    }
    return NORI_OK;
}

static nori_status read_flag(reader *r, const json_t *parameters, const char *name, bool *flag)
{
    const json_t *p = json_object_get(parameters, name);
    if (p && !json_is_boolean(p)) {
        return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT, "parameter \"%s\" must be true or false",
                                name);
    }
    *flag = p ? json_is_true(p) : *flag;
    return NORI_OK;
}

static nori_status read_timeout(reader *r, const json_t *parameters)
{
    const json_t *p = json_object_get(parameters, "timeout");
    if (p && (!json_is_integer(p) || json_integer_value(p) < 0)) {
        return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT,
                                "parameter \"timeout\" must be a whole number of microseconds");
    }
    r->request->timeout_us = p ? json_integer_value(p) : 0;
    return NORI_OK;
}

/* ---- inputs ---- */

/* The next bytes behind the JSON, as an input's "binary_data_size" says. */
static nori_status take_binary(reader *r, const json_t *size, const nori_value_info *v, char **bytes,
                               size_t *taken)
{
    if (r->no_length) {
        return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT,
                                "input \"%s\" has binary data, which needs the header "
                                "Inference-Header-Content-Length", v->name);
    }
    if (!json_is_integer(size) || json_integer_value(size) < 0) {
        return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT,
                                "\"binary_data_size\" of input \"%s\" must be a number of bytes", v->name);
    }
    if ((uint64_t)json_integer_value(size) > r->left) {
        return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT,
                                "input \"%s\" wants %" PRId64 " bytes of binary data, %zu are left of "
                                "the body", v->name, (int64_t)json_integer_value(size), r->left);
    }
    *taken = (size_t)json_integer_value(size);
    *bytes = r->binary;
    r->binary += *taken;
    r->left -= *taken;
    return NORI_OK;
}

static nori_status read_input(reader *r, const json_t *tensor)
{
    const json_t *name = json_object_get(tensor, "name");
    const json_t *type = json_object_get(tensor, "datatype");
    const json_t *parameters = json_object_get(tensor, "parameters");
    const json_t *data = json_object_get(tensor, "data");
    const json_t *binary = json_is_object(parameters) ? json_object_get(parameters, "binary_data_size")
                                                      : NULL;
    serve_elements e = {.err = r->err};
    size_t index = 0;
    if (!json_is_object(tensor) || !json_is_string(name) || !json_is_string(type)) {
        return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT,
                                "each of \"inputs\" must be an object with the texts \"name\" and "
                                "\"datatype\"");
    }
    if (!find_value(r->signature->inputs, r->signature->input_count, name, &index)) {
        return no_such(r, "input", name, true);
    }
    e.info = r->signature->inputs[index];
    e.type = nori__serve_type(json_string_value(type), json_string_length(type));
    if (r->request->inputs[index]) {
        return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT, "input \"%s\" is given twice",
                                e.info->name);
    }
    if (e.type == NORI_UNDEFINED || e.type != e.info->type) {
        const char *word = nori__serve_word(e.info->type);
        return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT,
                                "input \"%s\" has datatype \"%.40s\", the model expects %s",
                                e.info->name, json_string_value(type),
                                word ? word : "what the protocol has no word for");
    }
    nori_status status = read_shape(r, tensor, e.info, e.dims, &e.rank, &e.count);
    if (status == NORI_OK) {
        status = refuse_parameters(r, parameters, "an input");
    }
    if (status == NORI_OK && (data != NULL) == (binary != NULL)) {
        status = nori__serve_fail(r->err, NORI_ERROR_ARGUMENT,
                                  "input \"%s\" needs one of \"data\" and the parameter "
                                  "\"binary_data_size\"", e.info->name);
    }
    if (status == NORI_OK && binary) {
        status = take_binary(r, binary, e.info, &e.bytes, &e.size);
    }
    if (status == NORI_OK) {
        status = binary ? nori__serve_bytes(&e, &r->request->inputs[index])
                        : nori__serve_data(&e, data, &r->request->inputs[index]);
    }
    return status;
}

static nori_status read_inputs(reader *r, const json_t *root)
{
    const json_t *inputs = json_object_get(root, "inputs");
    if (!json_is_array(inputs)) {
        return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT,
                                "the request has no list \"inputs\" of tensors");
    }
    for (size_t i = 0; i < json_array_size(inputs); i++) {
        nori_status status = read_input(r, json_array_get(inputs, i));
        if (status != NORI_OK) {
            return status;
        }
    }
    if (r->left > 0) {
        return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT,
                                "%zu bytes of binary data belong to no input", r->left);
    }
    for (size_t i = 0; i < r->signature->input_count; i++) {
        if (!r->request->inputs[i] && !r->signature->inputs[i]->optional) {
            return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT, "input \"%s\" is missing",
                                    r->signature->inputs[i]->name);
        }
    }
    return NORI_OK;
}

/* ---- outputs ---- */

static nori_status want_all(reader *r, bool binary)
{
    for (size_t i = 0; i < r->signature->output_count; i++) {
        r->request->wanted[i] = (serve_wanted){i, binary};
    }
    r->request->wanted_count = r->signature->output_count;
    return NORI_OK;
}

static nori_status read_output(reader *r, const json_t *output, bool binary)
{
    const json_t *name = json_object_get(output, "name");
    const json_t *parameters = json_object_get(output, "parameters");
    serve_request *q = r->request;
    size_t index = 0;
    if (!json_is_object(output) || !json_is_string(name)) {
        return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT,
                                "each of \"outputs\" must be an object with the text \"name\"");
    }
    if (!find_value(r->signature->outputs, r->signature->output_count, name, &index)) {
        return no_such(r, "output", name, false);
    }
    for (size_t i = 0; i < q->wanted_count; i++) {
        if (q->wanted[i].output == index) {
            return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT, "output \"%s\" is asked for twice",
                                    r->signature->outputs[index]->name);
        }
    }
    nori_status status = refuse_parameters(r, parameters, "an output");
    status = status ? status : read_flag(r, parameters, "binary_data", &binary);
    if (status == NORI_OK) {
        q->wanted[q->wanted_count++] = (serve_wanted){index, binary};
    }
    return status;
}

static nori_status read_outputs(reader *r, const json_t *root, bool binary)
{
    const json_t *outputs = json_object_get(root, "outputs");
    if (!outputs || (json_is_array(outputs) && json_array_size(outputs) == 0)) {
        return want_all(r, binary);
    }
    if (!json_is_array(outputs)) {
        return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT, "\"outputs\" must be a list");
    }
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        nori_status status = read_output(r, json_array_get(outputs, i), binary);
        if (status != NORI_OK) {
            return status;
        }
    }
    return NORI_OK;
}

/* ---- the whole ---- */

static nori_status read_root(reader *r, const json_t *root)
{
    const json_t *id = json_object_get(root, "id");
    const json_t *parameters = json_object_get(root, "parameters");
    bool binary = false;
    if (!json_is_object(root)) {
        return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT, "the request must be a JSON object");
    }
    if (id && !json_is_string(id)) {
        return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT, "\"id\" must be a text");
    }
    if (id && !(r->request->id = strdup(json_string_value(id)))) {
        return nori__serve_oom(r->err);
    }
    nori_status status = refuse_parameters(r, parameters, "the request");
    status = status ? status : read_flag(r, parameters, "binary_data_output", &binary);
    status = status ? status : read_timeout(r, parameters);
    status = status ? status : read_inputs(r, root);
    return status ? status : read_outputs(r, root, binary);
}

/* A body that is the one input's bytes: its shape follows from their number. */
static nori_status read_raw(reader *r)
{
    serve_elements e = {.err = r->err, .bytes = r->binary, .size = r->left, .count = 1};
    size_t needed = 0, index = 0;
    int free_axis = -1;
    for (size_t i = 0; i < r->signature->input_count; i++) {
        if (!r->signature->inputs[i]->optional) {
            needed++;
            index = i;
        }
    }
    if (needed != 1) {
        return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT,
                                "a body without JSON is for models of one input, this one has %zu", needed);
    }
    e.info = r->signature->inputs[index];
    e.type = e.info->type;
    e.rank = e.info->rank;
    uint64_t fixed = nori_type_bits(e.type) / 8;
    bool one = e.rank >= 0 && fixed > 0;
    for (int i = 0; i < e.rank && one; i++) {
        e.dims[i] = e.info->dims[i];
        if (e.dims[i] < 0) {
            one = free_axis < 0;
            free_axis = i;
        } else {
            one = e.dims[i] > 0 && fixed <= (UINT64_C(1) << 48) / (uint64_t)e.dims[i];
            fixed *= one ? (uint64_t)e.dims[i] : 1;
        }
    }
    if (!one) {
        return nori__serve_fail(r->err, NORI_ERROR_ARGUMENT,
                                "the shape of input \"%s\" does not follow from its bytes: send JSON with "
                                "\"shape\"", e.info->name);
    }
    if (free_axis >= 0) {
        e.dims[free_axis] = (int64_t)(e.size / fixed);
    }
    for (int i = 0; i < e.rank; i++) {
        e.count *= (uint64_t)e.dims[i];
    }
    nori_status status = nori__serve_bytes(&e, &r->request->inputs[index]);
    return status ? status : want_all(r, true);
}

nori_status nori__serve_parse(const serve_signature *signature, void *body, size_t size,
                              size_t json_size, serve_request *request, nori_error *err)
{
    nori_error unwanted = {0};
    reader r = {.signature = signature, .request = request, .err = err ? err : &unwanted};
    memset(request, 0, sizeof(*request));
    r.no_length = json_size == SERVE_ALL_JSON;
    json_size = r.no_length ? size : json_size;
    if (json_size > size) {
        return nori__serve_fail(r.err, NORI_ERROR_ARGUMENT,
                                "Inference-Header-Content-Length is %zu, the body has %zu bytes", json_size,
                                size);
    }
    request->input_count = signature->input_count;
    request->inputs = calloc(signature->input_count + 1, sizeof(*request->inputs));
    request->wanted = calloc(signature->output_count + 1, sizeof(*request->wanted));
    nori_status status = request->inputs && request->wanted ? NORI_OK : nori__serve_oom(r.err);
    r.binary = (char *)body + json_size;
    r.left = size - json_size;
    if (status == NORI_OK && json_size == 0 && !r.no_length) {
        status = read_raw(&r);
    } else if (status == NORI_OK) {
        json_t *root = nori__serve_json(body, json_size, JSON_ALLOW_NUL, r.err);
        status = root ? read_root(&r, root) : r.err->status;
        json_decref(root);
    }
    if (status != NORI_OK) {
        nori__serve_request_free(request);
    }
    return status;
}

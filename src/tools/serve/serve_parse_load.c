/* serve_parse_load.c: the small bodies of repository calls. */
#include "serve_elements.h"

/* The object of a body; NULL for an empty one, and on error. */
static nori_status read(const void *body, size_t size, json_t **root, nori_error *err)
{
    *root = NULL;
    if (size == 0) {
        return NORI_OK;
    }
    *root = nori__serve_json(body, size, 0, err);
    if (!*root) {
        return err->status;
    }
    if (!json_is_object(*root)) {
        json_decref(*root);
        *root = NULL;
        return nori__serve_fail(err, NORI_ERROR_ARGUMENT, "the request must be a JSON object");
    }
    return NORI_OK;
}

nori_status nori__serve_parse_index(const void *body, size_t size, bool *ready_only, nori_error *err)
{
    json_t *root;
    nori_status status = read(body, size, &root, err);
    const json_t *ready = json_object_get(root, "ready");
    if (status == NORI_OK && ready && !json_is_boolean(ready)) {
        status = nori__serve_fail(err, NORI_ERROR_ARGUMENT, "\"ready\" must be true or false");
    }
    *ready_only = json_is_true(ready);
    json_decref(root);
    return status;
}

nori_status nori__serve_parse_load(const void *body, size_t size, nori_error *err)
{
    json_t *root;
    nori_status status = read(body, size, &root, err);
    const json_t *parameters = json_object_get(root, "parameters");
    bool none = !parameters || (json_is_object(parameters) && json_object_size(parameters) == 0);
    if (status == NORI_OK && !none) {
        status = nori__serve_fail(err, NORI_ERROR_UNSUPPORTED,
                                  "parameters of load are not supported: files are loaded as they are");
    }
    json_decref(root);
    return status;
}

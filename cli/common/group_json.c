/* group_json.c: values that are no tensors as JSON: sequences as arrays, maps as objects, optionals
 * as their item or null. They nest no deeper than the model declares. */
#include "cli.h"

bool cli_is_integer(nori_type type)
{
    switch (type) {
    case NORI_UINT8:
    case NORI_INT8:
    case NORI_UINT16:
    case NORI_INT16:
    case NORI_INT32:
    case NORI_INT64:
    case NORI_UINT32:
    case NORI_UINT64:
    case NORI_UINT4:
    case NORI_INT4:
    case NORI_UINT2:
    case NORI_INT2:
        return true;
    default:
        return false;
    }
}

void cli_json_element(cli_json *w, const char *key, const nori_tensor *t, int64_t i)
{
    nori_type type = nori_tensor_type(t);
    if (type == NORI_STRING) {
        const nori_string *s = (const nori_string *)nori_tensor_const_data(t) + i;
        cli_json_bytes(w, key, s->data, s->size);
    } else if (type == NORI_BOOL) {
        cli_json_bool(w, key, nori_tensor_integer(t, i) != 0);
    } else if (type == NORI_UINT64) {
        cli_json_uint(w, key, (uint64_t)nori_tensor_integer(t, i));
    } else if (cli_is_integer(type)) {
        cli_json_int(w, key, nori_tensor_integer(t, i));
    } else {
        cli_json_number(w, key, nori_tensor_number(t, i), type == NORI_DOUBLE ? 17 : 9);
    }
}

/* JSON has text keys only: integers are written as text, strings are cut to what a key may be. */
static void key_text(const nori_tensor *keys, int64_t i, char *out, size_t size)
{
    if (nori_tensor_type(keys) == NORI_STRING) {
        const nori_string *s = (const nori_string *)nori_tensor_const_data(keys) + i;
        snprintf(out, size, "%.*s", (int)(s->size < size ? s->size : size - 1), s->data);
    } else {
        snprintf(out, size, "%lld", (long long)((const int64_t *)nori_tensor_const_data(keys))[i]);
    }
}

static void map(cli_json *w, const char *key, const nori_tensor *t)
{
    const nori_tensor *keys = nori_tensor_item(t, 0), *values = nori_tensor_item(t, 1);
    cli_json_object(w, key);
    for (int64_t i = 0; keys && values && i < nori_tensor_elements(keys); i++) {
        char name[1024];
        key_text(keys, i, name, sizeof(name));
        cli_json_element(w, name, values, i);
    }
    cli_json_end(w);
}

void cli_json_group(cli_json *w, const char *key, const nori_tensor *t)
{
    switch (nori_tensor_kind(t)) {
    case NORI_KIND_MAP:
        map(w, key, t);
        break;
    case NORI_KIND_OPTIONAL:
        if (nori_tensor_item_count(t) == 0) {
            cli_json_null(w, key);
        } else {
            cli_json_group(w, key, nori_tensor_item(t, 0));
        }
        break;
    case NORI_KIND_SEQUENCE:
        cli_json_array(w, key);
        for (size_t i = 0; i < nori_tensor_item_count(t); i++) {
            cli_json_group(w, NULL, nori_tensor_item(t, i));
        }
        cli_json_end(w);
        break;
    default: /* elements in order */
        cli_json_array(w, key);
        for (int64_t i = 0; i < nori_tensor_elements(t); i++) {
            cli_json_element(w, NULL, t, i);
        }
        cli_json_end(w);
        break;
    }
}

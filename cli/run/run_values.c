/* run_values.c: what `nori run --values` writes: the input of `nori validate --against` elsewhere. */
#include "run_values.h"

#include <stdlib.h>
#include <string.h>

static nori_tensor *copy_of(const nori_tensor *t)
{
    nori_tensor *copy = NULL;
    if (nori_tensor_create(NULL, nori_tensor_type(t), nori_tensor_rank(t), nori_tensor_dims(t), &copy,
                           NULL) == NORI_OK &&
        nori_tensor_bytes(t) > 0) {
        memcpy(nori_tensor_data(copy), nori_tensor_const_data(t), nori_tensor_bytes(t));
    }
    return copy;
}

/* Where a name stands; a new place where it has none. NULL: out of memory. */
static nori_tensor **place_of(run_values *v, const char *name)
{
    for (size_t i = 0; i < v->count; i++) {
        if (strcmp(v->names[i], name) == 0) {
            return &v->tensors[i]; /* of an earlier round of a loop */
        }
    }
    char **names = realloc(v->names, (v->count + 1) * sizeof(*names));
    v->names = names ? names : v->names;
    nori_tensor **tensors = realloc(v->tensors, (v->count + 1) * sizeof(*tensors));
    v->tensors = tensors ? tensors : v->tensors;
    char *own = names && tensors ? strdup(name) : NULL;
    if (!own) {
        return NULL;
    }
    v->names[v->count] = own;
    v->tensors[v->count] = NULL;
    return &v->tensors[v->count++];
}

void run_values_keep(void *values, const char *name, const nori_tensor *t)
{
    run_values *v = values;
    nori_type type = nori_tensor_type(t);
    if (nori_tensor_kind(t) != NORI_KIND_TENSOR || type == NORI_STRING || nori_type_bits(type) < 8 ||
        !name[0] || v->failed) {
        return;
    }
    nori_tensor **place = place_of(v, name), *copy = place ? copy_of(t) : NULL;
    v->failed = !copy;
    if (copy) {
        nori_tensor_free(*place);
        *place = copy;
    }
}

int run_values_write(const cli_args *args, const run_values *v, const char *path)
{
    nori_error err = {0};
    if (v->failed) {
        return cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
    }
    return nori_archive_write(path, (const char *const *)v->names, (const nori_tensor *const *)v->tensors,
                              v->count, &err) == NORI_OK
               ? EXIT_YES
               : cli_fail(args, &err);
}

void run_values_free(run_values *v)
{
    for (size_t i = 0; i < v->count; i++) {
        free(v->names[i]);
        nori_tensor_free(v->tensors[i]);
    }
    free(v->names);
    free(v->tensors);
}

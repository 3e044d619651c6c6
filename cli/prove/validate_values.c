/* validate_values.c: inner values stored by name: the arrays of an .npz, or files of a folder. A value
 * "/conv1/Conv_output_0" is conv1/Conv_output_0.npy, .pb or .pb.gz of the folder, which is also what an
 * unpacked .npz has. */
#include "validate_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "nori/provider.h"

bool validate_values_are(const char *path)
{
    struct stat s;
    size_t size = strlen(path);
    return (size > 4 && strcmp(path + size - 4, ".npz") == 0) ||
           (stat(path, &s) == 0 && S_ISDIR(s.st_mode));
}

static bool add(validate_values *v, const char *name, nori_tensor *tensor)
{
    char **names = realloc(v->names, (v->count + 1) * sizeof(*names));
    v->names = names ? names : v->names;
    nori_tensor **tensors = realloc(v->tensors, (v->count + 1) * sizeof(*tensors));
    v->tensors = tensors ? tensors : v->tensors;
    char *copy = strdup(name);
    if (!names || !tensors || !copy) {
        free(copy);
        nori_tensor_free(tensor);
        return false;
    }
    v->names[v->count] = copy;
    v->tensors[v->count++] = tensor;
    return true;
}

static int out_of_memory(const cli_args *args)
{
    return cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
}

static int take_archive(const cli_args *args, const char *path, validate_values *v)
{
    nori_error err = {0};
    const char *name;
    if (nori_archive_read(NULL, path, &v->archive, &err) != NORI_OK) {
        return cli_fail(args, &err);
    }
    for (size_t i = 0; i < nori_archive_count(v->archive); i++) {
        name = nori_archive_name(v->archive, i);
        nori_tensor *t = nori_archive_tensor(v->archive, i);
        if (name && t && !add(v, name, nori_tensor_retain(t))) {
            return out_of_memory(args);
        }
    }
    return EXIT_YES;
}

/* Names of models are not trusted: none leads out of the folder. */
static bool stays_inside(const char *name)
{
    for (const char *at = name; *at;) {
        size_t size = strcspn(at, "/\\");
        if (size == 2 && at[0] == '.' && at[1] == '.') {
            return false;
        }
        at += size + (at[size] != 0);
    }
    return *name != 0;
}

static int take_file(const cli_args *args, const char *folder, const char *name, validate_values *v)
{
    static const char *const endings[] = {"npy", "pb", "pb.gz"};
    nori_error err = {0};
    struct stat s;
    size_t size = strlen(folder) + strlen(name) + 16;
    const char *inside = name + strspn(name, "/");
    char *path = stays_inside(inside) ? malloc(size) : NULL;
    int code = path || !stays_inside(inside) ? EXIT_YES : out_of_memory(args);
    for (size_t i = 0; path && i < sizeof(endings) / sizeof(endings[0]); i++) {
        nori_tensor *t = NULL;
        snprintf(path, size, "%s/%s.%s", folder, inside, endings[i]);
        if (stat(path, &s) != 0) {
            continue;
        }
        code = nori_tensor_read(NULL, path, &t, &err) != NORI_OK ? cli_fail(args, &err)
               : !add(v, name, t)                                ? out_of_memory(args)
                                                                 : EXIT_YES;
        break;
    }
    free(path);
    return code;
}

static int take_folder(const cli_args *args, const nori_model *model, const char *path,
                       validate_values *v)
{
    int code = EXIT_YES;
    const nori_value *value = nori_graph_value(nori_model_graph(model));
    for (; value && code == EXIT_YES; value = nori_value_next(value)) {
        bool constant = nori_value_initializer(value) != NULL; /* its own are right */
        code = constant ? EXIT_YES : take_file(args, path, nori_value_name(value), v);
    }
    return code;
}

int validate_values_read(const cli_args *args, const nori_model *model, const char *path,
                         validate_values *v)
{
    struct stat s;
    memset(v, 0, sizeof(*v));
    bool folder = stat(path, &s) == 0 && S_ISDIR(s.st_mode);
    int code = folder ? take_folder(args, model, path, v) : take_archive(args, path, v);
    if (code == EXIT_YES && v->count == 0) {
        return cli_fail_text(args, NORI_ERROR_DATA,
                             "%s holds no values: NAME.npy, NAME.pb or arrays NAME, as the model's "
                             "values are called, were expected", path);
    }
    return code;
}

void validate_values_free(validate_values *v)
{
    for (size_t i = 0; i < v->count; i++) {
        free(v->names[i]);
        nori_tensor_free(v->tensors[i]);
    }
    free(v->names);
    free(v->tensors);
    nori_archive_free(v->archive);
}

nori_tensor *validate_values_find(const validate_values *v, const char *name)
{
    for (size_t i = 0; i < v->count; i++) {
        if (strcmp(v->names[i], name) == 0) {
            return v->tensors[i];
        }
    }
    return NULL;
}

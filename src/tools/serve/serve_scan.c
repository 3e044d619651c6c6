/* serve_scan.c: which models there are: files that were named, and a folder of them,
 * NAME/VERSION/model.onnx (VERSION a number from 1 on) or NAME.onnx, which is version 1. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "serve_internal.h"

void nori__serve_files_free(serve_files *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free(f->items[i].name);
        free(f->items[i].version);
        free(f->items[i].path);
    }
    free(f->items);
    memset(f, 0, sizeof(*f));
}

static nori_status add(serve_files *f, const char *name, const char *version, const char *path,
                       nori_error *err)
{
    if (f->count == f->room) {
        size_t room = f->room ? 2 * f->room : 8;
        serve_file *items = realloc(f->items, room * sizeof(*items));
        if (!items) {
            return nori__serve_oom(err);
        }
        f->items = items;
        f->room = room;
    }
    serve_file *item = &f->items[f->count];
    *item = (serve_file){strdup(name), strdup(version), strdup(path), strtoll(version, NULL, 10)};
    f->count++;
    return item->name && item->version && item->path ? NORI_OK : nori__serve_oom(err);
}

/* Names stand in addresses: letters, digits and . _ - +, no dot first. */
static bool good_name(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+");
    return n > 0 && n < 200 && !name[n] && name[0] != '.';
}

/* A number from 1 on, as it is written without zeros before it. */
static bool good_version(const char *name)
{
    size_t n = strspn(name, "0123456789");
    return n > 0 && n <= 18 && !name[n] && name[0] != '0';
}

static bool ends_onnx(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, ".onnx") == 0;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

#define PATH_SIZE 4096

/* path/name in out; false where it does not fit. */
static bool join(char *out, const char *path, const char *name)
{
    int n = snprintf(out, PATH_SIZE, "%s/%s", path, name);
    return n > 0 && n < PATH_SIZE;
}

/* The model of a version's folder: model.onnx, else the only file that ends so. */
static bool version_file(const char *folder, char *out)
{
    char only[PATH_SIZE];
    int count = 0;
    if (join(out, folder, "model.onnx") && is_file(out)) {
        return true;
    }
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        if (ends_onnx(e->d_name) && e->d_name[0] != '.' && join(only, folder, e->d_name) && is_file(only)) {
            memcpy(out, only, PATH_SIZE);
            count++;
        }
    }
    if (d) {
        closedir(d);
    }
    return count == 1;
}

static nori_status scan_versions(const char *folder, const char *name, serve_files *files,
                                 nori_error *err)
{
    char path[PATH_SIZE], file[PATH_SIZE];
    DIR *d = opendir(folder);
    nori_status status = NORI_OK;
    for (struct dirent *e; d && status == NORI_OK && (e = readdir(d)) != NULL;) {
        if (good_version(e->d_name) && join(path, folder, e->d_name) && is_folder(path) &&
            version_file(path, file)) {
            status = add(files, name, e->d_name, file, err);
        }
    }
    if (d) {
        closedir(d);
    }
    return status;
}

static nori_status scan_folder(const char *folder, const char *wanted, serve_files *files,
                               nori_error *err)
{
    char path[PATH_SIZE], name[300];
    DIR *d = opendir(folder);
    nori_status status = NORI_OK;
    if (!d) {
        nori__serve_hint(err, "a folder with NAME/VERSION/model.onnx or NAME.onnx was expected");
        return nori__serve_fail(err, NORI_ERROR_IO, "the folder %s cannot be read", folder);
    }
    for (struct dirent *e; status == NORI_OK && (e = readdir(d)) != NULL;) {
        if (strlen(e->d_name) >= sizeof(name) || !join(path, folder, e->d_name)) {
            continue;
        }
        bool flat = ends_onnx(e->d_name) && is_file(path);
        memcpy(name, e->d_name, strlen(e->d_name) + 1);
        name[strlen(name) - (flat ? 5 : 0)] = 0;
        if (!good_name(name) || (wanted && strcmp(wanted, name) != 0)) {
            continue;
        }
        if (flat) {
            status = add(files, name, "1", path, err);
        } else if (is_folder(path)) {
            status = scan_versions(path, name, files, err);
        }
    }
    closedir(d);
    return status;
}

/* "NAME=FILE" or "FILE"; a file that is named has one version. */
static nori_status named(const char *text, const char *wanted, serve_files *files, nori_error *err)
{
    char name[300];
    const char *equals = strchr(text, '='), *slash = strrchr(text, '/');
    bool has_name = equals && !memchr(text, '/', (size_t)(equals - text));
    const char *from = has_name ? text : slash ? slash + 1 : text;
    size_t n = has_name ? (size_t)(equals - text) : strlen(from);
    n = n < sizeof(name) ? n : sizeof(name) - 1;
    memcpy(name, from, n);
    name[n] = 0;
    if (!has_name && ends_onnx(name)) {
        name[n - 5] = 0;
    }
    if (!good_name(name)) {
        nori__serve_hint(err, "name it by NAME=FILE");
        return nori__serve_fail(err, NORI_ERROR_ARGUMENT,
                                "\"%.200s\" cannot be a model's name in an address: letters, digits and "
                                "._-+ can", name);
    }
    return wanted && strcmp(wanted, name) != 0 ? NORI_OK
                                               : add(files, name, "1", has_name ? equals + 1 : text, err);
}

static int by_name_newest(const void *a, const void *b)
{
    const serve_file *x = a, *y = b;
    int names = strcmp(x->name, y->name);
    return names ? names : x->number > y->number ? -1 : x->number < y->number;
}

nori_status nori__serve_scan(const nori_server *s, const char *name, serve_files *files,
                             nori_error *err)
{
    nori_status status = NORI_OK;
    memset(files, 0, sizeof(*files));
    for (size_t i = 0; i < s->options.model_count && status == NORI_OK; i++) {
        status = named(s->models[i], name, files, err);
    }
    if (status == NORI_OK && s->options.repository) {
        status = scan_folder(s->options.repository, name, files, err);
    }
    if (status == NORI_OK && files->count > 1) {
        qsort(files->items, files->count, sizeof(*files->items), by_name_newest);
    }
    for (size_t i = 1; i < files->count && status == NORI_OK; i++) {
        const serve_file *a = &files->items[i - 1], *b = &files->items[i];
        if (by_name_newest(a, b) == 0) {
            nori__serve_hint(err, "name one of them by NAME=FILE");
            status = nori__serve_fail(err, NORI_ERROR_ARGUMENT, "two models are called \"%s\": %s and %s",
                                      a->name, a->path, b->path);
        }
    }
    if (status != NORI_OK) {
        nori__serve_files_free(files);
    }
    return status;
}

/* module_load.c: finds operator modules and loads each once.
 *
 * Looked for by full path only, never by the system's search path: in the folder the environment
 * variable NORI_MODULES names (then nowhere else), in modules/ and nori/ beside the program or
 * library this code is in, in the library folder of the tree it is installed in, and where it was
 * configured to be installed. */
#include "providers/modules/module_load.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "platform/platform.h"

enum { PATH_SIZE = 4096 };

/* The only state outside environments, as the libraries behind it are the process's: filled once a
 * name, never emptied. */
static struct {
    const char *name, *library;
    const nori__module *module;
} known[] = {
    {"png", "libpng", NULL},    {"jpeg", "libjpeg-turbo (libturbojpeg)", NULL},
    {"tiff", "libtiff", NULL},  {"webp", "libwebp", NULL},
    {"jpeg2000", "OpenJPEG", NULL}, {"regex", "PCRE2", NULL},
    {"sodium", "libsodium", NULL},
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The folder of the program or library that holds this code; "" when it cannot be told. */
static void own_folder(char *out)
{
    Dl_info info;
    out[0] = 0;
    if (dladdr((void *)(uintptr_t)&known, &info) && info.dli_fname && strchr(info.dli_fname, '/')) {
        snprintf(out, PATH_SIZE, "%s", info.dli_fname);
    } else { /* a program found through PATH is known by its bare name only */
        ssize_t n = readlink("/proc/self/exe", out, PATH_SIZE - 1);
        out[n > 0 ? n : 0] = 0;
    }
    char *slash = strrchr(out, '/');
    *(slash ? slash : out) = 0;
}

/* The i-th place to look in, or false past the last. */
static bool place(size_t i, char *out)
{
    const char *set = secure_getenv("NORI_MODULES");
    if (set && set[0]) {
        snprintf(out, PATH_SIZE, "%s", set);
        return i == 0;
    }
    static const char *const beside[] = {"modules", "nori", NORI_MODULES_FROM_BIN};
    char own[PATH_SIZE];
    if (i < NORI__COUNT(beside)) {
        own_folder(own);
        int n = own[0] ? snprintf(out, PATH_SIZE, "%s/%s", own, beside[i]) : -1;
        out[n > 0 && n < PATH_SIZE ? n : 0] = 0;
        return true;
    }
    snprintf(out, PATH_SIZE, "%s", NORI_MODULES_DIR);
    return i == NORI__COUNT(beside);
}

static nori_status load(const char *path, const nori__module **module, nori_error *err)
{
    typedef const nori__module *(*entry)(void);
    void *library = nori__library_open(path, err);
    if (!library) {
        return NORI_ERROR_UNAVAILABLE;
    }
    void *symbol = nori__library_symbol(library, "nori_module", err);
    if (symbol) {
        entry get;
        memcpy(&get, &symbol, sizeof(get)); /* ISO C has no cast from data to function */
        *module = get();
        if (*module && (*module)->version == NORI__MODULE_VERSION) {
            return NORI_OK;
        }
        nori__fail(err, NORI_ERROR_UNAVAILABLE, "module %s is of another version of nori", path);
        nori__hint(err, "install the modules of the version that runs");
    }
    *module = NULL;
    nori__library_close(library);
    return NORI_ERROR_UNAVAILABLE;
}

static nori_status find(const char *name, const char *library, const nori__module **module,
                        nori_error *err)
{
    char folder[PATH_SIZE], path[PATH_SIZE], looked[1024] = "";
    for (size_t i = 0; place(i, folder); i++) {
        int n = snprintf(path, sizeof(path), "%s/nori-%s.so", folder, name);
        if (!folder[0] || n >= (int)sizeof(path)) {
            continue;
        }
        if (access(path, R_OK) == 0) {
            nori_status s = load(path, module, err);
            if (s != NORI_OK) {
                nori__hint(err, "is the library %s installed?", library);
            }
            return s;
        }
        size_t used = strlen(looked);
        snprintf(looked + used, sizeof(looked) - used, "%s%.250s", used ? ", " : "", folder);
    }
    nori_status s = nori__fail(err, NORI_ERROR_UNAVAILABLE,
                               "the module nori-%s.so is not there; looked in %s", name, looked);
    nori__hint(err, "it comes with a nori that was built with %s; the environment variable "
               "NORI_MODULES names the folder of modules", library);
    return s;
}

nori_status nori__module_get(const char *name, const nori__module **module, nori_error *err)
{
    nori_status s = NORI_ERROR_INTERNAL;
    *module = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < NORI__COUNT(known); i++) {
        if (nori__same(known[i].name, name)) {
            s = known[i].module ? NORI_OK
                                : find(name, known[i].library, &known[i].module, err);
            *module = known[i].module;
        }
    }
    pthread_mutex_unlock(&lock);
    return s;
}

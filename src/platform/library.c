/* library.c: shared objects loaded at run time. */
#include "platform/platform.h"

#include <dlfcn.h>
#include <string.h>

/* dlerror begins with the path, as the message here does. */
static const char *past_path(const char *why, const char *path)
{
    size_t n = strlen(path);
    return why && strncmp(why, path, n) == 0 && strncmp(why + n, ": ", 2) == 0 ? why + n + 2 : why;
}

void *nori__library_open(const char *path, nori_error *err)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = past_path(dlerror(), path);
        nori__fail(err, NORI_ERROR_UNAVAILABLE, "cannot load library %s: %s", path,
                   why ? why : "unknown reason");
    }
    return library;
}

void *nori__library_symbol(void *library, const char *name, nori_error *err)
{
    dlerror();
    void *symbol = dlsym(library, name);
    if (!symbol) {
        const char *why = dlerror();
        nori__fail(err, NORI_ERROR_UNAVAILABLE, "the library lacks symbol %s: %s", name,
                   why ? why : "not found");
    }
    return symbol;
}

void nori__library_close(void *library)
{
    if (library) {
        dlclose(library);
    }
}

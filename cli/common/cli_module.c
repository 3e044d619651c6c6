/* cli_module.c: finds and opens modules of the command. */
#include "cli_module.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE 4096

/* The i-th folder to look in. */
static bool place(int i, char *out)
{
    static const char *const beside[] = {"modules", "nori", NORI_MODULES_FROM_BIN};
    const char *set = getenv("NORI_MODULES");
    char own[PATH_SIZE];
    if (set && set[0]) {
        snprintf(out, PATH_SIZE, "%s", set);
        return i == 0;
    }
    if (i < 3) {
        ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
        own[n > 0 ? n : 0] = 0;
        char *slash = strrchr(own, '/');
        *(slash ? slash : own) = 0;
        int size = snprintf(out, PATH_SIZE, "%s/%s", own, beside[i]);
        out[size > 0 && size < PATH_SIZE ? size : 0] = 0;
        return true;
    }
    snprintf(out, PATH_SIZE, "%s", NORI_MODULES_DIR);
    return i == 3;
}

void *cli_module_open(const cli_args *args, const char *file, bool global, const char *lacking, int *code)
{
    char folder[PATH_SIZE], path[PATH_SIZE + 256];
    for (int i = 0; place(i, folder); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, file);
        if (!folder[0] || access(path, R_OK) != 0) {
            continue;
        }
        void *module = dlopen(path, RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
        if (!module) {
            *code = cli_fail_text(args, NORI_ERROR_UNAVAILABLE, "%s cannot be loaded: %s", path,
                                  dlerror());
        }
        return module;
    }
    *code = cli_fail_text(args, NORI_ERROR_UNAVAILABLE, "the module %s is not there: %s", file, lacking);
    return NULL;
}

void *cli_module_symbol(const cli_args *args, void *module, const char *name, int *code)
{
    void *symbol = dlsym(module, name);
    if (!symbol) {
        *code = cli_fail_text(args, NORI_ERROR_UNAVAILABLE, "the module is of another version of nori: %s",
                              dlerror());
    }
    return symbol;
}

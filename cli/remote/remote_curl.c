/* remote_curl.c: loads libcurl. */
#ifdef NORI_WITH_CURL
#include <dlfcn.h>
#include <string.h>

#include "remote_curl.h"

remote_curl remote_curl_functions;

int remote_curl_load(const cli_args *args)
{
    static const char *const files[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.4.dylib"};
    const struct {
        const char *name;
        void *to;
    } functions[] = {
        {"curl_global_init", &remote_curl_functions.global_init},
        {"curl_easy_init", &remote_curl_functions.easy_init},
        {"curl_easy_setopt", &remote_curl_functions.easy_setopt},
        {"curl_easy_getinfo", &remote_curl_functions.easy_getinfo},
        {"curl_easy_perform", &remote_curl_functions.easy_perform},
        {"curl_easy_reset", &remote_curl_functions.easy_reset},
        {"curl_easy_cleanup", &remote_curl_functions.easy_cleanup},
        {"curl_easy_strerror", &remote_curl_functions.easy_strerror},
        {"curl_slist_append", &remote_curl_functions.slist_append},
        {"curl_slist_free_all", &remote_curl_functions.slist_free_all},
    };
    void *library = NULL;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && !library; i++) {
        library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (!library) {
        return cli_fail_text(args, NORI_ERROR_UNAVAILABLE,
                             "libcurl.so.4 cannot be loaded, and servers not be "
                             "called: %s (Debian: apt-get install libcurl4)",
                             dlerror());
    }
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *symbol = dlsym(library, functions[i].name);
        if (!symbol) {
            return cli_fail_text(args, NORI_ERROR_UNAVAILABLE, "libcurl lacks %s",
                                 functions[i].name);
        }
        memcpy(functions[i].to, &symbol,
               sizeof(symbol)); /* ISO C has no cast from data to function */
    }
    return EXIT_YES;
}
#else
/* ISO C wants something in every file. */
typedef int remote_curl_is_not_there;
#endif

/* serve_page.c: the page for people. Its files are page/, made into bytes by the build. */
#include <string.h>

#include "serve_internal.h"
#include "serve_page_files.h"

const char *nori__serve_page(const char *path, size_t *size, const char **type)
{
    static const struct {
        const char *path, *type;
        const unsigned char *bytes;
        size_t size;
    } files[] = {
        {"/", "text/html; charset=utf-8", page_html, sizeof(page_html)},
        {"/page.js", "text/javascript; charset=utf-8", page_js, sizeof(page_js)},
        {"/page.css", "text/css; charset=utf-8", page_css, sizeof(page_css)},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (strcmp(files[i].path, path) == 0) {
            *size = files[i].size;
            *type = files[i].type;
            return (const char *)files[i].bytes;
        }
    }
    return NULL;
}

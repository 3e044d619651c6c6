/* remote_error.c: errors of calls, in words that say what to do. */
#include <stdarg.h>
#include <string.h>

#include "remote.h"

nori_status remote_fail(nori_error *err, nori_status status, const char *fmt, ...)
{
    va_list list;
    if (err && err->status == NORI_OK) {
        err->status = status;
        va_start(list, fmt);
        vsnprintf(err->message, sizeof(err->message), fmt, list);
        va_end(list);
    }
    return status;
}

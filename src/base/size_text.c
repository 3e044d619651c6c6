/* size_text.c: numbers of bytes for messages. */
#include "base/size_text.h"

#include <stdio.h>

const char *nori__size_text(uint64_t bytes, char out[NORI__SIZE_TEXT])
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double v = (double)bytes / 1000;
    size_t unit = 0;
    if (bytes < 10000) {
        snprintf(out, NORI__SIZE_TEXT, "%u bytes", (unsigned)bytes);
        return out;
    }
    while (v >= 999.5 && unit + 1 < NORI__COUNT(units)) {
        v /= 1000;
        unit++;
    }
    snprintf(out, NORI__SIZE_TEXT, "%.*f %s", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, units[unit]);
    return out;
}

const char *nori__size_apart(uint64_t bytes, uint64_t other, char out[NORI__SIZE_TEXT])
{
    char text[NORI__SIZE_TEXT];
    if (bytes != other && nori__same(nori__size_text(bytes, out), nori__size_text(other, text))) {
        snprintf(out, NORI__SIZE_TEXT, "%llu bytes", (unsigned long long)bytes);
        return out;
    }
    return nori__size_text(bytes, out);
}

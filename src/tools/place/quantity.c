/* quantity.c: numbers with units, as people write them. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/given.h"
#include "base/base.h"
#include "nori/place.h"

typedef struct unit {
    const char *name;
    double scale;
} unit;

static const unit times[] = {{"ns", 1e-9}, {"us", 1e-6}, {"\xc2\xb5s", 1e-6}, {"ms", 1e-3},
                             {"s", 1},     {"min", 60},  {"h", 3600},         {NULL, 0}};
static const unit sizes[] = {{"B", 1},         {"kB", 1e3},       {"MB", 1e6},       {"GB", 1e9},
                             {"TB", 1e12},     {"KiB", 0x1p10},   {"MiB", 0x1p20},   {"GiB", 0x1p30},
                             {"TiB", 0x1p40},  {NULL, 0}};
static const unit speeds[] = {{"B/s", 1},          {"kB/s", 1e3},        {"MB/s", 1e6},
                              {"GB/s", 1e9},       {"KiB/s", 0x1p10},    {"MiB/s", 0x1p20},
                              {"GiB/s", 0x1p30},   {"bit/s", 1.0 / 8},   {"kbit/s", 1e3 / 8},
                              {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8},  {NULL, 0}};
static const unit rates[] = {{"/s", 1}, {"/min", 1.0 / 60}, {"/h", 1.0 / 3600}, {NULL, 0}};
static const unit energies[] = {{"uJ", 1e-6}, {"\xc2\xb5J", 1e-6}, {"mJ", 1e-3}, {"J", 1}, {NULL, 0}};

static const struct {
    const unit *units;
    const char *what, *examples;
} kinds[] = {
    [NORI_QUANTITY_TIME] = {times, "a time", "12ms, 1.5s or 3min"},
    [NORI_QUANTITY_BYTES] = {sizes, "a size", "600kB, 1.5MB or 4GiB"},
    [NORI_QUANTITY_SPEED] = {speeds, "a speed", "5MB/s (bytes) or 40Mbit/s (bits)"},
    [NORI_QUANTITY_RATE] = {rates, "a rate", "30/s or 600/min"},
    [NORI_QUANTITY_ENERGY] = {energies, "an energy", "80mJ"},
};

nori_status nori_quantity_parse(const char *text, nori_quantity kind, double *value,
                                nori_error *err)
{
    NORI__GIVEN(err, text);
    NORI__GIVEN(err, value);
    if ((size_t)kind >= NORI__COUNT(kinds)) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "quantity %d is not known", (int)kind);
    }
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    bool number = end != text && errno == 0 && isfinite(v) && v >= 0;
    while (*end == ' ') {
        end++;
    }
    for (const unit *u = kinds[kind].units; u->name && number; u++) {
        if (nori__same(u->name, end)) {
            *value = v * u->scale;
            return NORI_OK;
        }
    }
    nori_status status = nori__fail(err, NORI_ERROR_ARGUMENT, "\"%.60s\": %s with its unit was expected, "
                                    "as %s", text, kinds[kind].what, kinds[kind].examples);
    if (number && *end == 0) {
        nori__hint(err, "the unit is missing");
    } else if (kind == NORI_QUANTITY_SPEED &&
               (strstr(end, "b/") || strstr(end, "bps") || strstr(end, "Bps"))) {
        nori__hint(err, "this could mean bits or bytes: write Mbit/s or MB/s");
    }
    return status;
}

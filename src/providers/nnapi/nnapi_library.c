/* nnapi_library.c: loading the library of NNAPI, and telling what it can. */
#include <stdio.h>

#include "providers/nnapi/nnapi.h"

typedef void (*plain_fn)(void);

static const struct {
    int level;
    const char *symbol;
    size_t offset;
} symbols[] = {
#define NA_ROW(level, name, arguments) {level, "ANeuralNetworks" #name, offsetof(na_calls, name)},
    NA_CALLS(NA_ROW) NA_VOID_CALLS(NA_ROW)
#undef NA_ROW
};

static plain_fn find(void *library, const char *symbol)
{
    nori_error ignored = {0};
    void *data = nori__library_symbol(library, symbol, &ignored);
    plain_fn code = NULL;
    if (data) {
        memcpy(&code, &data, sizeof(code)); /* C has no cast from data to code */
    }
    return code;
}

/* The library says it itself since level 31; before, by what it exports. */
static int64_t level_of(void *library)
{
    int64_t (*ask)(void) = (int64_t(*)(void))find(library, "ANeuralNetworks_getRuntimeFeatureLevel");
    return ask                                                                        ? ask()
           : find(library, "ANeuralNetworksMemoryDesc_create")                         ? 30
           : find(library, "ANeuralNetworks_getDeviceCount")                           ? 29
           : find(library, "ANeuralNetworksModel_relaxComputationFloat32toFloat16")    ? 28
                                                                                      : 27;
}

static nori_status fill(na_self *self, const char *path, nori_error *err)
{
    if (!find(self->library, "ANeuralNetworksModel_create")) {
        return nori__fail(err, NORI_ERROR_UNAVAILABLE,
                          "library %s lacks symbol ANeuralNetworksModel_create: it is not NNAPI", path);
    }
    self->level = level_of(self->library);
    if (self->level < NA_OLDEST) {
        nori__fail(err, NORI_ERROR_UNAVAILABLE,
                   "NNAPI of library %s has feature level %lld, at least %d (Android 9) was expected",
                   path, (long long)self->level, NA_OLDEST);
        nori__hint(err, "--fallback goes on without it");
        return NORI_ERROR_UNAVAILABLE;
    }
    for (size_t i = 0; i < NORI__COUNT(symbols); i++) {
        plain_fn code = symbols[i].level > self->level ? NULL : find(self->library, symbols[i].symbol);
        if (!code && symbols[i].level <= self->level) {
            return nori__fail(err, NORI_ERROR_UNAVAILABLE,
                              "library %s lacks symbol %s, which feature level %lld has", path,
                              symbols[i].symbol, (long long)self->level);
        }
        memcpy((char *)&self->call + symbols[i].offset, &code, sizeof(code));
    }
    return NORI_OK;
}

/* One of the devices, by name: it may be of a lower level than the library. */
static nori_status choose(na_self *self, nori_error *err)
{
    char list[512] = "";
    size_t used = 0;
    uint32_t count = 0;
    if (self->level < 29) {
        return nori__fail(err, NORI_ERROR_UNAVAILABLE,
                          "NNAPI of feature level %lld does not tell its devices: device=%s needs 29",
                          (long long)self->level, self->device_want);
    }
    if (self->call._getDeviceCount(&count) != 0) {
        count = 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        na_device *d = NULL;
        const char *name = NULL;
        int64_t level = 0;
        if (self->call._getDevice(i, &d) != 0 || self->call.Device_getName(d, &name) != 0 || !name ||
            self->call.Device_getFeatureLevel(d, &level) != 0) {
            continue;
        }
        if (nori__same(name, self->device_want)) {
            self->chosen = d;
            self->level = level < self->level ? level : self->level;
            return NORI_OK;
        }
        used += used < sizeof(list) ? (size_t)snprintf(list + used, sizeof(list) - used, "%s%.100s",
                                                       used ? ", " : "", name)
                                    : 0;
    }
    nori__fail(err, NORI_ERROR_UNAVAILABLE, "NNAPI has no device \"%s\"", self->device_want);
    nori__hint(err, "there are: %s", list);
    return NORI_ERROR_UNAVAILABLE;
}

nori_status nori__na_load(na_self *self, nori_error *err)
{
    const char *path = self->lib ? self->lib : "libneuralnetworks.so";
    nori_error why = {0};
    self->library = nori__library_open(path, &why);
    if (!self->library) {
        nori__fail(err, NORI_ERROR_UNAVAILABLE, "NNAPI is not here: %s", why.message);
        nori__hint(err, "Android has libneuralnetworks.so since 8.1; lib=PATH names another; --fallback "
                        "goes on without it");
        return NORI_ERROR_UNAVAILABLE;
    }
    nori_status status = fill(self, path, err);
    return status == NORI_OK && self->device_want ? choose(self, err) : status;
}

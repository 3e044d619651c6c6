/* ort_library.c: finding and loading a libonnxruntime, and taking its calls from the table. */
#include <stdio.h>
#include <stdlib.h>

#include "providers/ort/ort.h"

typedef void (*slot_fn)(void);

/* OrtApiBase: the one exported symbol gives it. */
typedef struct api_base {
    const slot_fn *(*get_api)(uint32_t version);
    const char *(*get_version)(void);
} api_base;

static const char *const usual_names[] = {
#ifdef __APPLE__
    "libonnxruntime.dylib", "libonnxruntime.1.dylib",
#else
    "libonnxruntime.so.1", "libonnxruntime.so",
#endif
};

static nori_status open_any(ort_library *l, nori_error *err)
{
    nori_error why = {0};
    char tried[1024] = "";
    size_t used = 0;
    for (size_t i = 0; i < NORI__COUNT(usual_names); i++) {
        why = (nori_error){0};
        l->handle = nori__library_open(usual_names[i], &why);
        if (l->handle) {
            snprintf(l->path, sizeof(l->path), "%s", usual_names[i]);
            return NORI_OK;
        }
        used += used < sizeof(tried) ? (size_t)snprintf(tried + used, sizeof(tried) - used, "%s%.300s",
                                                        i ? "; " : "", why.message)
                                     : 0;
    }
    nori__fail(err, NORI_ERROR_UNAVAILABLE, "ONNX Runtime is not here: %s", tried);
    nori__hint(err, "name the library by lib=PATH or NORI_ORT_LIBRARY; tools/get_ort.sh fetches one");
    return NORI_ERROR_UNAVAILABLE;
}

static nori_status open_library(const char *path, ort_library *l, nori_error *err)
{
    const char *set = getenv("NORI_ORT_LIBRARY");
    path = path ? path : set && *set ? set : NULL;
    if (!path) {
        return open_any(l, err);
    }
    snprintf(l->path, sizeof(l->path), "%s", path);
    l->handle = nori__library_open(path, err);
    return l->handle ? NORI_OK : NORI_ERROR_UNAVAILABLE;
}

static nori_status take_calls(ort_library *l, nori_error *err)
{
    nori_error why = {0};
    void *symbol = nori__library_symbol(l->handle, "OrtGetApiBase", &why);
    if (!symbol) {
        return nori__fail(err, NORI_ERROR_UNAVAILABLE,
                          "library %s lacks symbol OrtGetApiBase: it is not an ONNX Runtime",
                          l->path);
    }
    const api_base *(*get_base)(void);
    memcpy(&get_base, &symbol, sizeof(get_base)); /* C has no cast from data to code */
    const api_base *base = get_base();
    int major = 0, minor = 0;
    snprintf(l->version, sizeof(l->version), "%s", base->get_version());
    if (sscanf(l->version, "%d.%d", &major, &minor) != 2 || major != 1 || minor < ORT_OLDEST) {
        return nori__fail(err, NORI_ERROR_UNAVAILABLE,
                          "library %s is ONNX Runtime %s, version 1.%d or newer was expected",
                          l->path, l->version, ORT_OLDEST);
    }
    const slot_fn *slots = base->get_api(ORT_OLDEST);
    if (!slots) {
        return nori__fail(err, NORI_ERROR_UNAVAILABLE,
                          "ONNX Runtime %s of %s does not serve version %d of its interface",
                          l->version, l->path, ORT_OLDEST);
    }
#define ORT_TAKE(slot, name, result, arguments) \
    l->api.name = (result(*) arguments)slots[slot];
    ORT_CALLS(ORT_TAKE)
#undef ORT_TAKE
    return NORI_OK;
}

nori_status nori__ort_load(const char *path, ort_library *l, nori_error *err)
{
    NORI__TRY(open_library(path, l, err));
    nori_status status = take_calls(l, err);
    if (status != NORI_OK) {
        nori__library_close(l->handle);
        l->handle = NULL;
    }
    return status;
}

nori_status nori__ort_check(const ort_api *api, ort_status *status, nori_status as, nori_error *err)
{
    if (!status) {
        return NORI_OK;
    }
    nori__fail(err, as, "ONNX Runtime: %s", api->GetErrorMessage(status));
    api->ReleaseStatus(status);
    return as;
}

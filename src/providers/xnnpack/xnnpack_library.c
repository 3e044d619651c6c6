/* xnnpack_library.c: loading libXNNPACK. */
#include "providers/xnnpack/xnnpack_calls.h"

#include <pthread.h>

#include "platform/platform.h"
#include "providers/xnnpack/xnnpack.h"

xp_calls nori__xp_calls;

static const char *const names[] = {
#ifdef __APPLE__
    "libXNNPACK.dylib",
#else
    "libXNNPACK.so.0", "libXNNPACK.so",
#endif
};

static const struct {
    const char *symbol;
    size_t offset;
} symbols[] = {
    {"xnn_initialize", offsetof(xp_calls, initialize)},
    {"xnn_run_operator", offsetof(xp_calls, run_operator)},
    {"xnn_delete_operator", offsetof(xp_calls, delete_operator)},
    {"pthreadpool_create", offsetof(xp_calls, pool_create)}, /* of a library XNNPACK loads */
    {"pthreadpool_destroy", offsetof(xp_calls, pool_destroy)},
#define ROWS(name)                                           \
    {"xnn_create_" #name, offsetof(xp_calls, create_##name)}, \
    {"xnn_setup_" #name, offsetof(xp_calls, setup_##name)},
#define UNARY_ROWS(onnx, name) ROWS(name)
    XP_PLAIN_UNARY(UNARY_ROWS)
    XP_OPERATORS(ROWS)
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded;

static nori_status fill(void *library, const char *name, xp_calls *calls, nori_error *err)
{
    nori_error why = {0};
    for (size_t i = 0; i < NORI__COUNT(symbols); i++) {
        void *symbol = nori__library_symbol(library, symbols[i].symbol, &why);
        if (!symbol) {
            nori__fail(err, NORI_ERROR_UNAVAILABLE, "library %s lacks symbol %s", name,
                       symbols[i].symbol);
            nori__hint(err, "nori calls XNNPACK as it was in 2022 (Debian 12: libxnnpack0), whose "
                            "functions later versions changed");
            return NORI_ERROR_UNAVAILABLE;
        }
        memcpy((char *)calls + symbols[i].offset, &symbol, sizeof(symbol));
    }
    enum xnn_status status = calls->initialize(NULL);
    if (status != xnn_status_success) {
        nori__fail(err, NORI_ERROR_UNAVAILABLE, "XNNPACK: xnn_initialize says %s (%d)",
                   nori__xp_status_text(status), (int)status);
        nori__hint(err, "it wants SSE2 on x86 and NEON on ARM; --fallback goes on without it");
        return NORI_ERROR_UNAVAILABLE;
    }
    return NORI_OK;
}

static nori_status load(nori_error *err)
{
    void *library = NULL;
    nori_error why = {0};
    size_t i = 0;
    while (i < NORI__COUNT(names) && !(library = nori__library_open(names[i], i ? NULL : &why))) {
        i++;
    }
    if (!library) {
        nori__fail(err, NORI_ERROR_UNAVAILABLE, "XNNPACK is not here: %s", why.message);
        nori__hint(err, "Debian's package is libxnnpack0; --fallback goes on without it");
        return NORI_ERROR_UNAVAILABLE;
    }
    xp_calls calls = {0};
    nori_status status = fill(library, names[i], &calls, err);
    if (status == NORI_OK) {
        nori__xp_calls = calls; /* the library stays: its threads may sleep in its code */
        loaded = true;
    } else {
        nori__library_close(library);
    }
    return status;
}

nori_status nori__xp_load(nori_error *err)
{
    pthread_mutex_lock(&lock);
    nori_status status = loaded ? NORI_OK : load(err);
    pthread_mutex_unlock(&lock);
    return status;
}

/* xnnpack_provider.c: XNNPACK as an execution provider: opening and describing it. */
#include <stdio.h>

#include "providers/providers.h"
#include "providers/xnnpack/xnnpack.h"

static void xp_close(void *user)
{
    xp_self *self = user;
    pthreadpool_destroy(self->pool); /* NULL is fine; XNNPACK itself stays initialized */
    nori__release(&nori__malloc, self, sizeof(*self));
}

/* XNNPACK has threads of its own kind, as many as the session's runs may use. Its results do not
 * depend on their number: they share out rows and columns of results, never a sum. */
static nori_status xp_open(const nori_provider_open *how, void **user, nori_error *err)
{
    if (how->options[0]) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "provider xnnpack takes no options, found \"%s\"",
                          how->options);
    }
    enum xnn_status status = xnn_initialize(NULL);
    if (status != xnn_status_success) {
        nori__fail(err, NORI_ERROR_UNAVAILABLE, "XNNPACK: xnn_initialize says %s (%d)",
                   nori__xp_status_text(status), (int)status);
        nori__hint(err, "it wants SSE2 on x86 and NEON on ARM; --fallback goes on without it");
        return NORI_ERROR_UNAVAILABLE;
    }
    xp_self *self = nori__alloc_zero(&nori__malloc, sizeof(*self));
    if (!self) {
        return nori__no_memory(err);
    }
    if (how->threads > 1) {
        self->pool = pthreadpool_create((size_t)how->threads);
        if (!self->pool) {
            xp_close(self);
            return nori__fail(err, NORI_ERROR_UNAVAILABLE, "XNNPACK: no pool of %d threads",
                              how->threads);
        }
    }
    snprintf(self->device_name, sizeof(self->device_name), "%d thread%s", how->threads,
             how->threads == 1 ? "" : "s");
    *user = self;
    return NORI_OK;
}

/* The costs are estimates: inputs and outputs are copied once, many are turned on the way. */
static nori_status xp_describe(void *user, nori_provider_info *info, nori_error *err)
{
    xp_self *self = user;
    (void)err;
    self->device = (nori_device){.size = sizeof(self->device), .name = self->device_name,
                                 .kind = "cpu", .memory = "host"};
    snprintf(info->engine, sizeof(info->engine), "XNNPACK, operators of 2022");
    info->devices = &self->device;
    info->device_count = 1;
    info->copy_in_bytes_per_s = info->copy_out_bytes_per_s = 2e10;
    info->launch_ns = 1e3;
    info->serial = 1; /* operators hold the pointers of one run */
    return NORI_OK;
}

const nori_provider nori__xnnpack_provider = {
    .size = sizeof(nori_provider),
    .name = "xnnpack",
    .description = "XNNPACK of 2022: floats and int8, channels last inside a part",
    .open = xp_open,
    .close = xp_close,
    .describe = xp_describe,
    .claim = nori__xp_claim,
    .compile = nori__xp_compile,
    .run = nori__xp_run,
    .free_part = nori__xp_free,
};

/* xnnpack_provider.c: XNNPACK as an execution provider: opening and describing it. */
#include <stdio.h>
#include <stdlib.h>

#include "providers/providers.h"
#include "providers/xnnpack/xnnpack.h"

#define LAUNCH_US 5

static void xp_close(void *user)
{
    xp_self *self = user;
    XNN(pool_destroy)(self->pool); /* NULL is fine; XNNPACK itself stays initialized */
    nori__release(&nori__malloc, self, sizeof(*self));
}

static nori_status read_options(const char *options, double *launch_us, nori_error *err)
{
    char *end = NULL;
    const char *key = "launch_us=";
    if (!*options) {
        return NORI_OK;
    }
    if (strncmp(options, key, strlen(key)) == 0) {
        *launch_us = strtod(options + strlen(key), &end);
        if (end != options + strlen(key) && !*end && *launch_us >= 0 && *launch_us <= 1e9) {
            return NORI_OK;
        }
    }
    nori__fail(err, NORI_ERROR_ARGUMENT, "provider xnnpack has no option \"%s\"", options);
    nori__hint(err, "there is launch_us=N, what the start of a part is taken to cost; 0 gives it "
                    "every node it can take");
    return NORI_ERROR_ARGUMENT;
}

/* XNNPACK has threads of its own kind, as many as the session's runs may use. Its results do not
 * depend on their number: they share out rows and columns of results, never a sum. */
static nori_status xp_open(const nori_provider_open *how, void **user, nori_error *err)
{
    double launch_us = LAUNCH_US;
    NORI__TRY(read_options(how->options, &launch_us, err));
    NORI__TRY(nori__xp_load(err));
    xp_self *self = nori__alloc_zero(&nori__malloc, sizeof(*self));
    if (!self) {
        return nori__no_memory(err);
    }
    self->launch_ns = launch_us * 1e3;
    if (how->threads > 1) {
        self->pool = XNN(pool_create)((size_t)how->threads);
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
    info->copy_in_bytes_per_s = info->copy_out_bytes_per_s = 1e10;
    info->launch_ns = self->launch_ns;
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

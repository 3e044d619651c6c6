/* ocl_cache.c: built programs kept in the session's cache folder, a file a program, storage and
 * device. A file is good for the driver and the sources it was made by; what else is found there is
 * told, and made anew. A device that does not take its own binary back counts as damage. */
#include <stdio.h>

#include "platform/kept.h"
#include "providers/opencl/opencl.h"

static void tell(const ocl_self *self, const char *fmt, ...) NORI__PRINTF(2, 3);
static void tell(const ocl_self *self, const char *fmt, ...)
{
    char text[768];
    va_list list;
    if (!self->telling) {
        return;
    }
    va_start(list, fmt);
    vsnprintf(text, sizeof(text), fmt, list);
    va_end(list);
    nori_progress p = {.size = sizeof(p), .phase = "cache", .provider = "opencl", .text = text};
    self->report(self->report_user, &p);
}

/* Which file, and what it must be made for. False: there is no folder, or no memory. */
static bool name_file(const ocl_self *self, const char *name, nori__str source, nori__text *path,
                      nori__text *made_for)
{
    nori__hash device = {0}, code = {0};
    char text[NORI__HASH_TEXT];
    if (!self->cache_dir) {
        return false;
    }
    nori__hash_add(&device, self->platform_name, strlen(self->platform_name));
    nori__hash_add(&device, self->device_name, strlen(self->device_name));
    nori__hash_text(&device, text);
    nori__text_printf(path, "%s/opencl-%s-%s-%s.noripart", self->cache_dir, name,
                      self->half ? "fp16" : "fp32", text);
    nori__hash_add(&code, source.p, source.n);
    nori__hash_text(&code, text);
    nori__text_printf(made_for, "driver %s\n%s\n%s\n%s\nsource %s", self->driver_version,
                      self->device_version, self->platform_version, self->device_name, text);
    return !path->failed && !made_for->failed;
}

static ocl_program *load(ocl_self *self, const char *path, const char *made_for, const char *name)
{
    nori__map_file file = {0};
    const void *bytes = NULL;
    size_t size = 0;
    char why[512];
    switch (nori__kept_open(path, made_for, &file, &bytes, &size, why, sizeof(why))) {
    case NORI__KEPT_HIT:
        break;
    case NORI__KEPT_NONE:
        tell(self, "miss: nothing is kept for kernels \"%s\" (%s)", name, why);
        return NULL;
    case NORI__KEPT_OTHER:
        tell(self, "miss: what is kept for kernels \"%s\" %s", name, why);
        return NULL;
    default:
        tell(self, "miss: %s: %s", why, path);
        return NULL;
    }
    int32_t code = 0, taken = 0;
    const unsigned char *binary = bytes;
    ocl_program *program = self->api.clCreateProgramWithBinary(self->context, 1, &self->device, &size,
                                                               &binary, &taken, &code);
    if (program && taken == 0) {
        code = self->api.clBuildProgram(program, 1, &self->device, NULL, NULL, NULL);
    }
    if (program && (taken != 0 || code != 0)) {
        self->api.clReleaseProgram(program);
        program = NULL;
    }
    if (program) {
        tell(self, "hit: %s, %zu bytes", path, size);
    } else {
        tell(self, "miss: the device does not take the file kept for kernels \"%s\" (%s): %s", name,
             nori__ocl_word(taken ? taken : code), path);
    }
    nori__map_close(&file);
    return program;
}

ocl_program *nori__ocl_cached(ocl_self *self, const char *name, nori__str source)
{
    nori__text path, made_for;
    ocl_program *program = NULL;
    nori__text_init(&path, &nori__malloc);
    nori__text_init(&made_for, &nori__malloc);
    if (name_file(self, name, source, &path, &made_for)) {
        program = load(self, path.data, made_for.data, name);
    }
    nori__text_free(&path);
    nori__text_free(&made_for);
    return program;
}

/* The program's binary for its one device, in fresh memory; NULL: it has none. */
static unsigned char *binary_of(ocl_self *self, ocl_program *program, size_t *size)
{
    *size = 0;
    if (self->api.clGetProgramInfo(program, OCL_PROGRAM_BINARY_SIZES, sizeof(*size), size, NULL) != 0 ||
        *size == 0) {
        return NULL;
    }
    unsigned char *bytes = nori__alloc(&nori__malloc, *size);
    if (bytes && self->api.clGetProgramInfo(program, OCL_PROGRAM_BINARIES, sizeof(bytes), &bytes,
                                            NULL) != 0) {
        nori__release(&nori__malloc, bytes, *size);
        bytes = NULL;
    }
    return bytes;
}

void nori__ocl_keep(ocl_self *self, ocl_program *program, const char *name, nori__str source)
{
    nori__text path, made_for;
    size_t size = 0;
    nori_error err = {0};
    nori__text_init(&path, &nori__malloc);
    nori__text_init(&made_for, &nori__malloc);
    if (name_file(self, name, source, &path, &made_for)) {
        unsigned char *bytes = binary_of(self, program, &size);
        if (!bytes) {
            tell(self, "not kept: the driver gives no binary of kernels \"%s\"", name);
        } else if (nori__kept_write(&nori__malloc, path.data, made_for.data, bytes, size, &err) ==
                   NORI_OK) {
            tell(self, "kept: %s, %zu bytes", path.data, size);
        } else {
            tell(self, "not kept: %s", err.message);
        }
        nori__release(&nori__malloc, bytes, size);
    }
    nori__text_free(&path);
    nori__text_free(&made_for);
}

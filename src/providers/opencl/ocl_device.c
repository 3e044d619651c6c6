/* ocl_device.c: choosing a device among those of all platforms, and what it can do. */
#include <stdio.h>

#include "providers/opencl/opencl.h"

#define MOST 16 /* platforms, and devices of one, that are looked at */

static void platform_text(const ocl_self *self, ocl_platform *p, uint32_t what, char *out,
                          size_t size)
{
    if (self->api.clGetPlatformInfo(p, what, size, out, NULL) != 0) {
        snprintf(out, size, "?");
    }
    out[size - 1] = 0;
}

static void device_text(const ocl_self *self, ocl_device *d, uint32_t what, char *out, size_t size)
{
    if (self->api.clGetDeviceInfo(d, what, size, out, NULL) != 0) {
        snprintf(out, size, "?");
    }
    out[size - 1] = 0;
}

/* A number of any of the widths the interface has; 0 when it cannot be told. */
static uint64_t device_number(const ocl_self *self, ocl_device *d, uint32_t what, size_t width)
{
    uint64_t wide = 0;
    uint32_t narrow = 0;
    void *at = width == sizeof(wide) ? (void *)&wide : (void *)&narrow;
    if (self->api.clGetDeviceInfo(d, what, width, at, NULL) != 0) {
        return 0;
    }
    return width == sizeof(wide) ? wide : narrow;
}

static const char *kind_word(uint64_t type)
{
    return type & OCL_DEVICE_TYPE_GPU ? "gpu" : type & OCL_DEVICE_TYPE_CPU ? "cpu" : "npu";
}

/* Higher is chosen; 0: not wanted, or of no use. */
static int rank_device(const ocl_self *self, ocl_device *d, const char *name)
{
    uint64_t type = device_number(self, d, OCL_DEVICE_TYPE, sizeof(uint64_t));
    const char *want = self->device_want;
    if (want && !nori__same(want, kind_word(type)) && !strstr(name, want)) {
        return 0;
    }
    if (!device_number(self, d, OCL_DEVICE_AVAILABLE, sizeof(uint32_t)) ||
        !device_number(self, d, OCL_DEVICE_COMPILER, sizeof(uint32_t))) {
        return 0;
    }
    return type & OCL_DEVICE_TYPE_GPU ? 3 : type & OCL_DEVICE_TYPE_CPU ? 1 : 2;
}

/* list: every device seen, for the error when none is taken. */
static void look_at_platform(ocl_self *self, ocl_platform *p, int *best, char *list, size_t size)
{
    ocl_device *devices[MOST] = {NULL};
    uint32_t count = 0;
    char platform[128], name[128];
    platform_text(self, p, OCL_PLATFORM_NAME, platform, sizeof(platform));
    int32_t code = self->api.clGetDeviceIDs(p, UINT32_MAX, MOST, devices, &count);
    size_t used = strlen(list);
    if (code != 0) {
        snprintf(list + used, size - used, "%s%s: %s", used ? "; " : "", platform,
                 nori__ocl_word(code));
        return;
    }
    for (uint32_t i = 0; i < count && i < MOST; i++) {
        device_text(self, devices[i], OCL_DEVICE_NAME, name, sizeof(name));
        used = strlen(list);
        snprintf(list + used, size - used, "%s%s of %s", used ? "; " : "", name, platform);
        bool wanted = !self->platform_want || strstr(platform, self->platform_want);
        int rank = wanted ? rank_device(self, devices[i], name) : 0;
        if (rank > *best) {
            *best = rank;
            self->platform = p;
            self->device = devices[i];
            snprintf(self->gpu.device_name, sizeof(self->gpu.device_name), "%s", name);
            snprintf(self->platform_name, sizeof(self->platform_name), "%s", platform);
        }
    }
}

static nori_status choose(ocl_self *self, nori_error *err)
{
    ocl_platform *platforms[MOST] = {NULL};
    uint32_t count = 0;
    int best = 0;
    char list[768] = "";
    int32_t code = self->api.clGetPlatformIDs(MOST, platforms, &count);
    if (code != 0 || count == 0) {
        nori__fail(err, NORI_ERROR_UNAVAILABLE,
                   "OpenCL: %s finds no platform (%s): no driver is installed", self->path,
                   nori__ocl_word(code ? code : -1001));
        nori__hint(err, "drivers are listed in /etc/OpenCL/vendors; Debian's pocl-opencl-icd is one "
                        "for CPUs");
        return NORI_ERROR_UNAVAILABLE;
    }
    for (uint32_t i = 0; i < count && i < MOST; i++) {
        look_at_platform(self, platforms[i], &best, list, sizeof(list));
    }
    if (self->device) {
        return NORI_OK;
    }
    nori__fail(err, NORI_ERROR_UNAVAILABLE,
               "OpenCL: no device that compiles kernels%s%s%s%s; there are: %s",
               self->device_want ? " matches device=" : "",
               self->device_want ? self->device_want : "",
               self->platform_want ? " on platform=" : "",
               self->platform_want ? self->platform_want : "", list[0] ? list : "none");
    nori__hint(err, "device= takes cpu, gpu, npu or part of a name");
    return NORI_ERROR_UNAVAILABLE;
}

/* "OpenCL 1.2 vendor's words": the numbers. */
static nori_status check_version(const ocl_self *self, nori_error *err)
{
    int major = 0, minor = 0;
    if (sscanf(self->device_version, "OpenCL %d.%d", &major, &minor) == 2 &&
        (major > 1 || (major == 1 && minor >= 2))) {
        return NORI_OK;
    }
    return nori__fail(err, NORI_ERROR_UNAVAILABLE,
                      "OpenCL: device %s of %s has \"%s\", OpenCL 1.2 or newer was expected",
                      self->gpu.device_name, self->platform_name, self->device_version);
}

/* Multiply-accumulates a unit of a GPU makes in a cycle, of which plain kernels reach a part: 4 of
 * 16 to 128. One core of nori's own makes 25 thousand million a second (plan/cost.c). */
static double guess_speed(uint64_t units, uint64_t mhz, bool cpu)
{
    double each = cpu ? 1 : 4;
    return ((double)(units ? units : 1) * (double)(mhz ? mhz : 500) * each) / 25000;
}

static nori_status look_closer(ocl_self *self, nori_error *err)
{
    ocl_device *d = self->device;
    uint64_t type = device_number(self, d, OCL_DEVICE_TYPE, sizeof(uint64_t));
    device_text(self, d, OCL_DEVICE_VERSION, self->device_version, sizeof(self->device_version));
    device_text(self, d, OCL_DRIVER_VERSION, self->driver_version, sizeof(self->driver_version));
    platform_text(self, self->platform, OCL_PLATFORM_VERSION, self->platform_version,
                  sizeof(self->platform_version));
    NORI__TRY(check_version(self, err));
    self->gpu.is_cpu = (type & OCL_DEVICE_TYPE_CPU) != 0;
    /* Each is a compilation; CPUs gain little by it. */
    self->gpu.chains = self->gpu.chains_set ? self->gpu.chains : !self->gpu.is_cpu;
    self->unified = device_number(self, d, OCL_DEVICE_UNIFIED_MEMORY, sizeof(uint32_t)) != 0;
    self->gpu.max_alloc = device_number(self, d, OCL_DEVICE_MAX_ALLOC, sizeof(uint64_t));
    self->global_memory = device_number(self, d, OCL_DEVICE_GLOBAL_MEMORY, sizeof(uint64_t));
    self->gpu.local_memory = device_number(self, d, OCL_DEVICE_LOCAL_MEMORY, sizeof(uint64_t));
    self->gpu.group_size = (size_t)device_number(self, d, OCL_DEVICE_GROUP_SIZE, sizeof(size_t));
    if (self->api.clGetDeviceInfo(d, OCL_DEVICE_ITEM_SIZES, sizeof(self->gpu.item_sizes),
                                  self->gpu.item_sizes, NULL) != 0 ||
        !self->gpu.group_size) {
        return nori__fail(err, NORI_ERROR_UNAVAILABLE,
                          "OpenCL: device %s does not tell its work-group sizes",
                          self->gpu.device_name);
    }
    self->gpu.speed = guess_speed(device_number(self, d, OCL_DEVICE_COMPUTE_UNITS, sizeof(uint32_t)),
                              device_number(self, d, OCL_DEVICE_CLOCK_MHZ, sizeof(uint32_t)),
                              self->gpu.is_cpu);
    self->described = (nori_device){.size = sizeof(self->described),
                                    .name = self->gpu.device_name,
                                    .kind = kind_word(type),
                                    .memory = self->unified ? "shared" : "device",
                                    .memory_bytes = self->global_memory};
    return NORI_OK;
}

nori_status nori__ocl_find_device(ocl_self *self, nori_error *err)
{
    int32_t code = 0;
    const float zero = 0;
    NORI__TRY(choose(self, err));
    NORI__TRY(look_closer(self, err));
    self->context = self->api.clCreateContext(NULL, 1, &self->device, NULL, NULL, &code);
    NORI__TRY(nori__ocl_check(self, self->context ? 0 : code, "clCreateContext",
                              NORI_ERROR_UNAVAILABLE, err));
    self->queue = self->api.clCreateCommandQueue(self->context, self->device, 0, &code);
    NORI__TRY(nori__ocl_check(self, self->queue ? 0 : code, "clCreateCommandQueue",
                              NORI_ERROR_UNAVAILABLE, err));
    self->gpu.zero = nori__gpu_floats(&self->gpu, &zero, 1, err);
    return self->gpu.zero ? NORI_OK : NORI_ERROR_UNAVAILABLE;
}

/* opencl.h: what the files of opencl/ share: the driver of gpu/ for OpenCL 1.2 devices.
 *
 * No header of OpenCL is used and nothing is linked: the loader (libOpenCL.so.1) is opened when a
 * session asks for the provider, and what is declared here are the numbers and signatures of its
 * stable C interface.
 *
 * Open finds loader, platform and device (ocl_provider.c, ocl_library.c, ocl_device.c); programs are
 * built or taken from the cache (ocl_program.c, ocl_binary.c); ocl_driver.c has the rest of what gpu/
 * asks for: memory, kernels, their start. */
#ifndef NORI_PROVIDERS_OPENCL_OPENCL_H
#define NORI_PROVIDERS_OPENCL_OPENCL_H

#include "providers/gpu/gpu.h"

/* ---- the interface of OpenCL ---- */

typedef struct ocl_platform ocl_platform;
typedef struct ocl_device ocl_device;
typedef struct ocl_context ocl_context;
typedef struct ocl_queue ocl_queue;
typedef gpu_mem ocl_mem;
typedef struct ocl_program ocl_program;
typedef gpu_kernel ocl_kernel;

enum {
    OCL_DEVICE_TYPE_CPU = 1 << 1,
    OCL_DEVICE_TYPE_GPU = 1 << 2,
    OCL_DEVICE_TYPE_ACCELERATOR = 1 << 3,
    OCL_PLATFORM_VERSION = 0x0901,
    OCL_PLATFORM_NAME = 0x0902,
    OCL_DEVICE_TYPE = 0x1000,
    OCL_DEVICE_COMPUTE_UNITS = 0x1002,
    OCL_DEVICE_GROUP_SIZE = 0x1004,
    OCL_DEVICE_ITEM_SIZES = 0x1005,
    OCL_DEVICE_CLOCK_MHZ = 0x100C,
    OCL_DEVICE_MAX_ALLOC = 0x1010,
    OCL_DEVICE_GLOBAL_MEMORY = 0x101F,
    OCL_DEVICE_LOCAL_MEMORY = 0x1023,
    OCL_DEVICE_COMPILER = 0x1028,
    OCL_DEVICE_AVAILABLE = 0x1027,
    OCL_DEVICE_NAME = 0x102B,
    OCL_DRIVER_VERSION = 0x102D,
    OCL_DEVICE_VERSION = 0x102F,
    OCL_DEVICE_UNIFIED_MEMORY = 0x1035,
    OCL_MEM_READ_WRITE = 1,
    OCL_MEM_READ_ONLY = 1 << 2,
    OCL_MEM_ALLOC_HOST = 1 << 4,
    OCL_MEM_COPY_HOST = 1 << 5,
    OCL_MAP_READ = 1,
    OCL_MAP_WRITE_INVALIDATE = 1 << 2,
    OCL_PROGRAM_BINARY_SIZES = 0x1165,
    OCL_PROGRAM_BINARIES = 0x1166,
    OCL_BUILD_LOG = 0x1183,
    OCL_KERNEL_GROUP_SIZE = 0x11B0
};

/* The calls used, all of OpenCL 1.2 or older: name, result, arguments. */
#define OCL_CALLS(X)                                                                              \
    X(clGetPlatformIDs, int32_t, (uint32_t, ocl_platform **, uint32_t *))                         \
    X(clGetPlatformInfo, int32_t, (ocl_platform *, uint32_t, size_t, void *, size_t *))           \
    X(clGetDeviceIDs, int32_t, (ocl_platform *, uint64_t, uint32_t, ocl_device **, uint32_t *))   \
    X(clGetDeviceInfo, int32_t, (ocl_device *, uint32_t, size_t, void *, size_t *))               \
    X(clCreateContext, ocl_context *,                                                             \
      (const intptr_t *, uint32_t, ocl_device *const *,                                           \
       void (*)(const char *, const void *, size_t, void *), void *, int32_t *))                  \
    X(clReleaseContext, int32_t, (ocl_context *))                                                 \
    X(clCreateCommandQueue, ocl_queue *, (ocl_context *, ocl_device *, uint64_t, int32_t *))      \
    X(clReleaseCommandQueue, int32_t, (ocl_queue *))                                              \
    X(clCreateBuffer, ocl_mem *, (ocl_context *, uint64_t, size_t, void *, int32_t *))            \
    X(clReleaseMemObject, int32_t, (ocl_mem *))                                                   \
    X(clCreateProgramWithSource, ocl_program *,                                                   \
      (ocl_context *, uint32_t, const char **, const size_t *, int32_t *))                        \
    X(clCreateProgramWithBinary, ocl_program *,                                                   \
      (ocl_context *, uint32_t, ocl_device *const *, const size_t *, const unsigned char **,      \
       int32_t *, int32_t *))                                                                     \
    X(clBuildProgram, int32_t,                                                                    \
      (ocl_program *, uint32_t, ocl_device *const *, const char *,                                \
       void (*)(ocl_program *, void *), void *))                                                  \
    X(clGetProgramInfo, int32_t, (ocl_program *, uint32_t, size_t, void *, size_t *))             \
    X(clGetProgramBuildInfo, int32_t,                                                             \
      (ocl_program *, ocl_device *, uint32_t, size_t, void *, size_t *))                          \
    X(clReleaseProgram, int32_t, (ocl_program *))                                                 \
    X(clCreateKernel, ocl_kernel *, (ocl_program *, const char *, int32_t *))                     \
    X(clReleaseKernel, int32_t, (ocl_kernel *))                                                   \
    X(clSetKernelArg, int32_t, (ocl_kernel *, uint32_t, size_t, const void *))                    \
    X(clGetKernelWorkGroupInfo, int32_t,                                                          \
      (ocl_kernel *, ocl_device *, uint32_t, size_t, void *, size_t *))                           \
    X(clEnqueueNDRangeKernel, int32_t,                                                            \
      (ocl_queue *, ocl_kernel *, uint32_t, const size_t *, const size_t *, const size_t *,       \
       uint32_t, const void *, void **))                                                          \
    X(clEnqueueMapBuffer, void *,                                                                 \
      (ocl_queue *, ocl_mem *, uint32_t, uint64_t, size_t, size_t, uint32_t, const void *,        \
       void **, int32_t *))                                                                       \
    X(clEnqueueUnmapMemObject, int32_t,                                                           \
      (ocl_queue *, ocl_mem *, void *, uint32_t, const void *, void **))                          \
    X(clFlush, int32_t, (ocl_queue *))                                                            \
    X(clFinish, int32_t, (ocl_queue *))

typedef struct ocl_api {
#define OCL_FIELD(name, result, arguments) result(*name) arguments;
    OCL_CALLS(OCL_FIELD)
#undef OCL_FIELD
} ocl_api;

/* ---- one session's provider ---- */

typedef struct ocl_self {
    gpu_self gpu; /* first: gpu/ sees no more */
    void *library; /* never closed: drivers leave threads and exit handlers behind */
    ocl_api api;
    char path[256];
    const char *lib, *platform_want, *device_want;
    enum { OCL_PROBE_AUTO, OCL_PROBE_ALWAYS, OCL_PROBE_NEVER } probe;

    ocl_platform *platform;
    ocl_device *device;
    ocl_context *context;
    ocl_queue *queue;
    char platform_name[128], platform_version[160], device_version[160];
    char driver_version[128];
    bool unified;
    uint64_t global_memory;
    nori_device described;
} ocl_self;

/* ocl_driver.c */
extern const gpu_driver nori__ocl_driver;
/* ocl_library.c */
nori_status nori__ocl_load(ocl_self *self, nori_error *err);
const char *nori__ocl_word(int32_t code); /* "CL_OUT_OF_RESOURCES" */
/* NORI_OK for 0; else status with what, the code's word and the device. */
nori_status nori__ocl_check(const ocl_self *self, int32_t code, const char *what,
                            nori_status status, nori_error *err);
/* ocl_probe.c: whether loading ends the process; told by a child that tries. */
nori_status nori__ocl_probe(const ocl_self *self, nori_error *err);
/* ocl_options.c */
nori_status nori__ocl_options(ocl_self *self, const nori_provider_open *how, nori_error *err);
/* ocl_device.c: platform, device, what they can do, context and queue. */
nori_status nori__ocl_find_device(ocl_self *self, nori_error *err);
/* ocl_program.c: builds what is not yet there; errors begin the build log. */
nori_status nori__ocl_program(gpu_self *self, gpu_source which, nori_error *err);
/* ocl_binary.c: a program from the cache, or NULL; and keeping one. */
ocl_program *nori__ocl_cached(ocl_self *self, const char *name, nori__str source);
void nori__ocl_keep(ocl_self *self, ocl_program *program, const char *name, nori__str source);

#endif

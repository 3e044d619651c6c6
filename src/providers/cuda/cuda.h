/* cuda.h: what the files of cuda/ share: the driver of gpu/ for NVIDIA's devices.
 *
 * No header of CUDA is used and nothing is linked: the driver (libcuda.so.1) and the compiler of kernels
 * (libnvrtc.so) are opened when a session asks for the provider, cuBLASLt and cuDNN where they are there.
 * What is declared here are the numbers and signatures of their stable C interfaces.
 *
 * Open finds libraries and device (cuda_provider.c, cuda_options.c, cuda_library.c, cuda_device.c); programs
 * are compiled for the device's architecture or taken from the cache (cuda_program.c); cuda_driver.c has
 * memory and kernels, cuda_launch.c their start, one by one or as a graph recorded before. Products and
 * convolutions are NVIDIA's libraries' where those are (cuda_libraries.c, cuda_blas.c, cuda_dnn.c). */
#ifndef NORI_PROVIDERS_CUDA_CUDA_H
#define NORI_PROVIDERS_CUDA_CUDA_H

#include "providers/gpu/gpu.h"

/* ---- the interfaces ---- */

typedef struct cuda_context cuda_context;
typedef struct cuda_stream cuda_stream;
typedef struct cuda_module cuda_module;
typedef struct cuda_function cuda_function;
typedef struct cuda_graph cuda_graph;
typedef struct cuda_exec cuda_exec; /* a graph ready to run */
typedef struct nvrtc_program nvrtc_program;
typedef uint64_t cuda_address; /* CUdeviceptr on 64-bit hosts */

enum {
    CUDA_MAX_THREADS = 1, /* of a block; the device attributes from here */
    CUDA_MAX_BLOCK_X = 2,
    CUDA_MAX_BLOCK_Y = 3,
    CUDA_MAX_BLOCK_Z = 4,
    CUDA_SHARED_MEMORY = 8, /* of a block */
    CUDA_CLOCK_KHZ = 13,
    CUDA_PROCESSORS = 16,
    CUDA_INTEGRATED = 18,
    CUDA_MAJOR = 75,
    CUDA_MINOR = 76,
    CUDA_FUNCTION_MAX_THREADS = 0, /* a function attribute */
    CUDA_STREAM_NON_BLOCKING = 1,
    CUDA_CAPTURE_THREAD = 1, /* calls of other threads do not disturb a capture */
    CUDA_NO_DEVICE = 100,
    CUDA_DRIVER_NEEDED = 11040 /* 11.4: cuGraphInstantiateWithFlags */
};

/* The calls used: name, result, arguments. Names with _v2 are what programs built since CUDA 4 call. */
#define CUDA_CALLS(X)                                                                              \
    X(cuInit, int, (unsigned))                                                                     \
    X(cuDriverGetVersion, int, (int *))                                                            \
    X(cuGetErrorName, int, (int, const char **))                                                   \
    X(cuDeviceGetCount, int, (int *))                                                              \
    X(cuDeviceGet, int, (int *, int))                                                              \
    X(cuDeviceGetName, int, (char *, int, int))                                                    \
    X(cuDeviceGetAttribute, int, (int *, int, int))                                                \
    X(cuDeviceTotalMem_v2, int, (size_t *, int))                                                   \
    X(cuDevicePrimaryCtxRetain, int, (cuda_context **, int))                                       \
    X(cuDevicePrimaryCtxRelease_v2, int, (int))                                                    \
    X(cuCtxPushCurrent_v2, int, (cuda_context *))                                                  \
    X(cuCtxPopCurrent_v2, int, (cuda_context **))                                                  \
    X(cuStreamCreate, int, (cuda_stream **, unsigned))                                             \
    X(cuStreamDestroy_v2, int, (cuda_stream *))                                                    \
    X(cuStreamSynchronize, int, (cuda_stream *))                                                   \
    X(cuMemAlloc_v2, int, (cuda_address *, size_t))                                                \
    X(cuMemFree_v2, int, (cuda_address))                                                           \
    X(cuMemAllocHost_v2, int, (void **, size_t))                                                   \
    X(cuMemFreeHost, int, (void *))                                                                \
    X(cuMemcpyHtoDAsync_v2, int, (cuda_address, const void *, size_t, cuda_stream *))              \
    X(cuMemcpyDtoHAsync_v2, int, (void *, cuda_address, size_t, cuda_stream *))                    \
    X(cuModuleLoadData, int, (cuda_module **, const void *))                                       \
    X(cuModuleUnload, int, (cuda_module *))                                                        \
    X(cuModuleGetFunction, int, (cuda_function **, cuda_module *, const char *))                   \
    X(cuFuncGetAttribute, int, (int *, int, cuda_function *))                                      \
    X(cuLaunchKernel, int,                                                                         \
      (cuda_function *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,      \
       cuda_stream *, void **, void **))                                                           \
    X(cuStreamBeginCapture_v2, int, (cuda_stream *, int))                                          \
    X(cuStreamEndCapture, int, (cuda_stream *, cuda_graph **))                                     \
    X(cuGraphInstantiateWithFlags, int, (cuda_exec **, cuda_graph *, unsigned long long))          \
    X(cuGraphDestroy, int, (cuda_graph *))                                                         \
    X(cuGraphLaunch, int, (cuda_exec *, cuda_stream *))                                            \
    X(cuGraphExecDestroy, int, (cuda_exec *))

#define NVRTC_CALLS(X)                                                                             \
    X(nvrtcVersion, int, (int *, int *))                                                           \
    X(nvrtcGetErrorString, const char *, (int))                                                    \
    X(nvrtcGetNumSupportedArchs, int, (int *))                                                     \
    X(nvrtcGetSupportedArchs, int, (int *))                                                        \
    X(nvrtcCreateProgram, int,                                                                     \
      (nvrtc_program **, const char *, const char *, int, const char *const *,                     \
       const char *const *))                                                                       \
    X(nvrtcDestroyProgram, int, (nvrtc_program **))                                                \
    X(nvrtcCompileProgram, int, (nvrtc_program *, int, const char *const *))                       \
    X(nvrtcGetProgramLogSize, int, (nvrtc_program *, size_t *))                                    \
    X(nvrtcGetProgramLog, int, (nvrtc_program *, char *))                                          \
    X(nvrtcGetPTXSize, int, (nvrtc_program *, size_t *))                                           \
    X(nvrtcGetPTX, int, (nvrtc_program *, char *))                                                 \
    X(nvrtcGetCUBINSize, int, (nvrtc_program *, size_t *))                                         \
    X(nvrtcGetCUBIN, int, (nvrtc_program *, char *))

typedef struct cuda_api {
#define CUDA_FIELD(name, result, arguments) result(*name) arguments;
    CUDA_CALLS(CUDA_FIELD)
    NVRTC_CALLS(CUDA_FIELD)
#undef CUDA_FIELD
} cuda_api;

/* ---- one session's provider ---- */

typedef struct cuda_blas cuda_blas; /* cuda_blas.c */
typedef struct cuda_dnn cuda_dnn;   /* cuda_dnn.c */

typedef struct cuda_self {
    gpu_self gpu; /* first: gpu/ sees no more */
    void *library, *compiler; /* never closed: drivers leave threads and exit handlers behind */
    cuda_api api;
    char path[256], compiler_path[256];
    const char *lib, *nvrtc, *blas_want, *dnn_want; /* options */
    int device_want;
    bool graphs;

    int device, driver_version, arch; /* arch: 10 * major + minor */
    int compiler_version[2];
    bool retained;
    cuda_context *context;
    cuda_stream *stream;
    uint64_t memory;
    bool integrated;
    void *staging; /* memory of the host that copies pass through, pinned */
    size_t staging_size;
    cuda_blas *blas; /* NULL: own kernels multiply */
    cuda_dnn *dnn;   /* NULL: own kernels convolve */
    char libraries[320]; /* what computes products and convolutions, in words */
    nori_device described;
} cuda_self;

/* cuda_library.c */
nori_status nori__cuda_load(cuda_self *self, nori_error *err);
/* NORI_OK for 0; else status with what, the code's name and number, and the device. */
nori_status nori__cuda_check(const cuda_self *self, int code, const char *what, nori_status status,
                             nori_error *err);
/* cuda_options.c */
nori_status nori__cuda_options(cuda_self *self, const nori_provider_open *how, nori_error *err);
/* cuda_device.c: device, what it can do, context and stream. */
nori_status nori__cuda_find_device(cuda_self *self, nori_error *err);
/* cuda_program.c: builds what is not yet there; errors begin the compiler's log. */
nori_status nori__cuda_program(gpu_self *self, gpu_source which, nori_error *err);

/* cuda_library.c: the first of names that opens, or want when that is given; its path. tried: what each
 * says. And a symbol of it, as *to; false: it lacks it. */
void *nori__cuda_open_first(const char *want, const char *const *names, size_t count, char path[256],
                            char *tried, size_t size);
bool nori__cuda_symbol(void *library, const char *name, void *to);

/* cuda_libraries.c: cuBLASLt and cuDNN where they are; a library that was asked for and cannot be had is
 * an error. Called with the context current. */
nori_status nori__cuda_find_libraries(cuda_self *self, nori_error *err);
void nori__cuda_drop_libraries(cuda_self *self);
/* A library that is there and does not start: an error when it was asked for by path (want), else text says
 * that own kernels compute, and why. */
nori_status nori__cuda_without(const char *want, nori_status status, const nori_error *why, char *text,
                               size_t size, nori_error *err);
/* A product or convolution that one of them does. */
typedef struct cuda_call cuda_call;
struct cuda_call {
    nori_status (*run)(cuda_self *self, const cuda_call *call, nori_error *err);
    void (*drop)(cuda_self *self, cuda_call *call);
};
/* cuda_blas.c, cuda_dnn.c: text says what was found, or why there is none. */
nori_status nori__cuda_blas_open(cuda_self *self, char *text, size_t size, nori_error *err);
void nori__cuda_blas_close(cuda_self *self);
void *nori__cuda_product(gpu_self *self, const gpu_product *p, nori_error *err);
nori_status nori__cuda_dnn_open(cuda_self *self, char *text, size_t size, nori_error *err);
void nori__cuda_dnn_close(cuda_self *self);
void *nori__cuda_convolution(gpu_self *self, const gpu_convolution *c, nori_error *err);
void nori__cuda_drop_call(gpu_self *self, void *call);

/* cuda_driver.c */
extern const gpu_driver nori__cuda_driver;
#define CUDA_ARGUMENTS 20
struct gpu_kernel {
    cuda_function *function;
    unsigned shared; /* bytes of a block */
    uint32_t used;   /* arguments set, a bit each: memory of a block is none */
    unsigned char argument[CUDA_ARGUMENTS][32];
};

/* cuda_launch.c */
nori_status nori__cuda_enqueue(gpu_self *self, gpu_layout *layout, nori_error *err);
void nori__cuda_forget(gpu_self *self, gpu_layout *layout);

#endif

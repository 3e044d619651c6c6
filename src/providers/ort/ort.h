/* ort.h: what the files of ort/ share: ONNX Runtime through its C API, loaded when asked for.
 *
 * No header of ONNX Runtime is used: its API is a table of functions to which later versions only
 * append, so a slot number and a signature are all it takes. Handles stay opaque. */
#ifndef NORI_PROVIDERS_ORT_ORT_H
#define NORI_PROVIDERS_ORT_ORT_H

#include "plan/part.h"
#include "providers/providers.h"

typedef struct ort_status ort_status; /* NULL: fine */
typedef struct ort_env ort_env;
typedef struct ort_session ort_session;
typedef struct ort_session_options ort_session_options;
typedef struct ort_value ort_value;
typedef struct ort_memory ort_memory;
typedef struct ort_allocator ort_allocator;
typedef struct ort_shape ort_shape;         /* type and shape of a tensor */
typedef struct ort_settings ort_settings;   /* of the CUDA or TensorRT provider */
typedef const char *const *ort_texts;

/* ONNXType, of values; element types are numbered as in onnx.proto. */
enum { ORT_TENSOR = 1, ORT_SEQUENCE = 2, ORT_MAP = 3, ORT_OPTIONAL = 6 };

/* The calls used: slot, name, result, arguments. All slots are there from version 1.17 on. */
#define ORT_OLDEST 17
#define ORT_CALLS(X)                                                                              \
    X(2, GetErrorMessage, const char *, (const ort_status *))                                     \
    X(3, CreateEnv, ort_status *, (int level, const char *id, ort_env **))                        \
    X(7, CreateSession, ort_status *,                                                             \
      (const ort_env *, const char *path, const ort_session_options *, ort_session **))           \
    X(8, CreateSessionFromArray, ort_status *,                                                    \
      (const ort_env *, const void *, size_t, const ort_session_options *, ort_session **))       \
    X(9, Run, ort_status *,                                                                       \
      (ort_session *, const void *run_options, ort_texts in_names, const ort_value *const *in,    \
       size_t n_in, ort_texts out_names, size_t n_out, ort_value **out))                          \
    X(10, CreateSessionOptions, ort_status *, (ort_session_options **))                           \
    X(22, SetSessionLogSeverityLevel, ort_status *, (ort_session_options *, int))                 \
    X(23, SetSessionGraphOptimizationLevel, ort_status *, (ort_session_options *, int))           \
    X(24, SetIntraOpNumThreads, ort_status *, (ort_session_options *, int))                       \
    X(25, SetInterOpNumThreads, ort_status *, (ort_session_options *, int))                       \
    X(48, CreateTensorAsOrtValue, ort_status *,                                                   \
      (ort_allocator *, const int64_t *dims, size_t rank, int type, ort_value **))                \
    X(49, CreateTensorWithDataAsOrtValue, ort_status *,                                           \
      (const ort_memory *, void *data, size_t bytes, const int64_t *dims, size_t rank, int type,  \
       ort_value **))                                                                             \
    X(51, GetTensorMutableData, ort_status *, (ort_value *, void **))                             \
    X(53, GetStringTensorDataLength, ort_status *, (const ort_value *, size_t *))                 \
    X(54, GetStringTensorContent, ort_status *,                                                   \
      (const ort_value *, void *bytes, size_t size, size_t *offsets, size_t count))               \
    X(60, GetTensorElementType, ort_status *, (const ort_shape *, int *))                         \
    X(61, GetDimensionsCount, ort_status *, (const ort_shape *, size_t *))                        \
    X(62, GetDimensions, ort_status *, (const ort_shape *, int64_t *, size_t))                    \
    X(65, GetTensorTypeAndShape, ort_status *, (const ort_value *, ort_shape **))                 \
    X(67, GetValueType, ort_status *, (const ort_value *, int *))                                 \
    X(69, CreateCpuMemoryInfo, ort_status *, (int allocator, int memory, ort_memory **))          \
    X(78, GetAllocatorWithDefaultOptions, ort_status *, (ort_allocator **))                       \
    X(80, GetValue, ort_status *, (const ort_value *, int index, ort_allocator *, ort_value **))  \
    X(81, GetValueCount, ort_status *, (const ort_value *, size_t *))                             \
    X(82, CreateValue, ort_status *, (const ort_value *const *, size_t, int type, ort_value **))  \
    X(92, ReleaseEnv, void, (ort_env *))                                                          \
    X(93, ReleaseStatus, void, (ort_status *))                                                    \
    X(94, ReleaseMemoryInfo, void, (ort_memory *))                                                \
    X(95, ReleaseSession, void, (ort_session *))                                                  \
    X(96, ReleaseValue, void, (ort_value *))                                                      \
    X(99, ReleaseTensorTypeAndShapeInfo, void, (ort_shape *))                                     \
    X(100, ReleaseSessionOptions, void, (ort_session_options *))                                  \
    X(124, AddFreeDimensionOverrideByName, ort_status *,                                          \
      (ort_session_options *, const char *name, int64_t value))                                   \
    X(125, GetAvailableProviders, ort_status *, (char ***, int *))                                \
    X(126, ReleaseAvailableProviders, ort_status *, (char **, int))                               \
    X(130, AddSessionConfigEntry, ort_status *,                                                   \
      (ort_session_options *, const char *key, const char *value))                                \
    X(170, SessionOptionsAppendExecutionProvider_TensorRT_V2, ort_status *,                       \
      (ort_session_options *, const ort_settings *))                                              \
    X(171, CreateTensorRTProviderOptions, ort_status *, (ort_settings **))                        \
    X(172, UpdateTensorRTProviderOptions, ort_status *,                                           \
      (ort_settings *, ort_texts keys, ort_texts values, size_t))                                 \
    X(174, ReleaseTensorRTProviderOptions, void, (ort_settings *))                                \
    X(192, HasValue, ort_status *, (const ort_value *, int *))                                    \
    X(204, SessionOptionsAppendExecutionProvider_CUDA_V2, ort_status *,                           \
      (ort_session_options *, const ort_settings *))                                              \
    X(205, CreateCUDAProviderOptions, ort_status *, (ort_settings **))                            \
    X(206, UpdateCUDAProviderOptions, ort_status *,                                               \
      (ort_settings *, ort_texts keys, ort_texts values, size_t))                                 \
    X(208, ReleaseCUDAProviderOptions, void, (ort_settings *))                                    \
    X(216, SessionOptionsAppendExecutionProvider, ort_status *,                                   \
      (ort_session_options *, const char *name, ort_texts keys, ort_texts values, size_t))        \
    X(252, GetResizedStringTensorElementBuffer, ort_status *,                                     \
      (ort_value *, size_t index, size_t size, char **))                                          \
    X(275, SessionOptionsAppendExecutionProvider_OpenVINO_V2, ort_status *,                       \
      (ort_session_options *, ort_texts keys, ort_texts values, size_t))

typedef struct ort_api {
#define ORT_FIELD(slot, name, result, arguments) result(*name) arguments;
    ORT_CALLS(ORT_FIELD)
#undef ORT_FIELD
} ort_api;

/* A library that was loaded. It is never unloaded: threads and exit handlers of its own may
 * outlive the last session. */
typedef struct ort_library {
    void *handle;
    ort_api api;
    char path[512];   /* as it was found */
    char version[32]; /* "1.30.0" */
} ort_library;

/* Execution providers ONNX Runtime may have. */
typedef struct ort_engine {
    const char *name;   /* as the user writes it behind "ort:" */
    const char *listed; /* as GetAvailableProviders says it */
    const char *append; /* for the general append call; NULL: a call of its own */
    const char *kind;   /* of device */
    double copy_fixed_ns, copy_bytes_per_s, launch_ns; /* orders of magnitude, for the split */
} ort_engine;

#define ORT_MAX_OPTIONS 48

/* A provider as one session has it: "ort:cuda:lib=/opt/libonnxruntime.so,device_id=1". */
typedef struct ort_self {
    ort_library library;
    const ort_engine *engine;
    ort_env *env;
    ort_memory *memory;
    int threads, level;
    bool parts_only;
    bool keeps; /* the engine keeps files in the session's folder */
    char *text; /* the options, cut into the strings below; text_size bytes */
    size_t text_size;
    const char *keys[ORT_MAX_OPTIONS], *values[ORT_MAX_OPTIONS]; /* for the engine */
    size_t n_options;
    const char *config_keys[ORT_MAX_OPTIONS], *config_values[ORT_MAX_OPTIONS]; /* "session...." */
    size_t n_config;
    nori_device device;
    ort_session *model_session; /* made when the model was claimed, for compiling it */
    nori__arena arena;
    nori__map verdicts;         /* kind of node -> const char *: "" or why it is not taken */
} ort_self;

/* ort_library.c. path NULL: $NORI_ORT_LIBRARY, then the usual names. */
nori_status nori__ort_load(const char *path, ort_library *library, nori_error *err);
/* Turns a status into an error and releases it; NULL is fine. */
nori_status nori__ort_check(const ort_api *api, ort_status *status, nori_status as,
                            nori_error *err);

/* ort_options.c */
nori_status nori__ort_options(const nori_provider_open *how, ort_self *self, const char **lib,
                              nori_error *err);
/* UNAVAILABLE, with what the library has, when it was built without the engine. */
nori_status nori__ort_has_engine(const ort_self *self, nori_error *err);
nori_status nori__ort_session_options(const ort_self *self, const nori_part *part,
                                      ort_session_options **options, nori_error *err);

/* A session for a part; UNSUPPORTED with ONNX Runtime's words. */
nori_status nori__ort_session(const ort_self *self, nori_part *part, ort_session **session,
                              nori_error *err);

/* ort_claim.c */
nori_status nori__ort_claim(void *self, const nori_node *node, nori_claim *claim, nori_error *err);

/* ort_value.c. Tensors go in over nori's memory; what comes out is wrapped where it lies. */
nori_status nori__ort_value_in(const ort_self *self, const nori_tensor *t, ort_value **value,
                               nori_error *err);
/* Takes the value; tensor keeps it until it is freed. */
nori_status nori__ort_value_out(const ort_self *self, ort_value *value, nori_tensor **tensor,
                                nori_error *err);

#endif

/* nnapi_abi.h: what nori uses of Android's neural network interface (NNAPI), as its C library has it
 * on every device: numbers and calls are fixed for ever, so that no header of the platform is needed.
 * Feature levels count as Android's own versions: 28 is Android 9, 29 Android 10, 30 Android 11. */
#ifndef NORI_PROVIDERS_NNAPI_NNAPI_ABI_H
#define NORI_PROVIDERS_NNAPI_NNAPI_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct na_model na_model;
typedef struct na_compilation na_compilation;
typedef struct na_execution na_execution;
typedef struct na_event na_event;
typedef struct na_device na_device;

typedef struct na_type {
    int32_t type; /* NA_FLOAT32 ... */
    uint32_t rank;
    const uint32_t *dims;
    float scale;
    int32_t zero_point;
} na_type;

/* Scales of an operand of type NA_TENSOR_PER_CHANNEL, one for each index of a dimension. */
typedef struct na_channels {
    uint32_t dim, count;
    const float *scales;
} na_channels;

/* Types of operands. Those of bytes stand for (byte - zero point) * scale; PER_CHANNEL is int8 of zero
 * point 0. */
enum {
    NA_FLOAT32 = 0,
    NA_INT32 = 1,
    NA_TENSOR_FLOAT32 = 3,
    NA_TENSOR_INT32 = 4,
    NA_TENSOR_UINT8 = 5,
    NA_BOOL = 6,
    NA_TENSOR_PER_CHANNEL = 11, /* from level 29 on */
    NA_TENSOR_INT8 = 14         /* from level 30 on */
};

/* Operations. */
enum {
    NA_ADD = 0,
    NA_AVERAGE_POOL_2D = 1,
    NA_CONCATENATION = 2,
    NA_CONV_2D = 3,
    NA_DEPTHWISE_CONV_2D = 4,
    NA_DEPTH_TO_SPACE = 5,
    NA_DEQUANTIZE = 6,
    NA_FLOOR = 8,
    NA_FULLY_CONNECTED = 9,
    NA_LOGISTIC = 14,
    NA_MAX_POOL_2D = 17,
    NA_MUL = 18,
    NA_RELU = 19,
    NA_RELU1 = 20,
    NA_RELU6 = 21,
    NA_RESHAPE = 22,
    NA_RESIZE_BILINEAR = 23,
    NA_SOFTMAX = 25,
    NA_TANH = 28,
    NA_DIV = 30,
    NA_MEAN = 31,
    NA_PAD = 32,
    NA_STRIDED_SLICE = 35,
    NA_SUB = 36,
    NA_TRANSPOSE = 37,
    NA_ABS = 38,
    NA_EXP = 49,
    NA_GROUPED_CONV_2D = 55,
    NA_LOG = 60,
    NA_MAXIMUM = 65,
    NA_MINIMUM = 66,
    NA_NEG = 67,
    NA_PAD_V2 = 69,
    NA_PRELU = 71,
    NA_QUANTIZE = 72,
    NA_SQRT = 88,
    NA_RESIZE_NEAREST_NEIGHBOR = 94,
    NA_ELU = 98,
    NA_HARD_SWISH = 99,
    NA_BATCH_MATMUL = 102
};

/* Activations that end an operation. */
enum { NA_FUSED_NONE = 0, NA_FUSED_RELU = 1, NA_FUSED_RELU1 = 2, NA_FUSED_RELU6 = 3 };

enum { NA_PREFER_FAST_SINGLE_ANSWER = 1 };

enum { NA_TOKEN_BYTES = 32, NA_COPIED_BYTES = 128 }; /* values up to this are copied at once */

/* Each call: level that brought it, name without the prefix ANeuralNetworks, arguments. Those
 * of the first list give back 0 or what went wrong. */
#define NA_CALLS(C)                                                                              \
    C(27, Model_create, (na_model **))                                                           \
    C(27, Model_addOperand, (na_model *, const na_type *))                                       \
    C(27, Model_setOperandValue, (na_model *, int32_t, const void *, size_t))                    \
    C(27, Model_addOperation,                                                                    \
      (na_model *, int32_t, uint32_t, const uint32_t *, uint32_t, const uint32_t *))             \
    C(27, Model_identifyInputsAndOutputs,                                                        \
      (na_model *, uint32_t, const uint32_t *, uint32_t, const uint32_t *))                      \
    C(27, Model_finish, (na_model *))                                                            \
    C(27, Compilation_create, (na_model *, na_compilation **))                                   \
    C(27, Compilation_setPreference, (na_compilation *, int32_t))                                \
    C(27, Compilation_finish, (na_compilation *))                                                \
    C(27, Execution_create, (na_compilation *, na_execution **))                                 \
    C(27, Execution_setInput, (na_execution *, int32_t, const na_type *, const void *, size_t))  \
    C(27, Execution_setOutput, (na_execution *, int32_t, const na_type *, void *, size_t))       \
    C(27, Execution_startCompute, (na_execution *, na_event **))                                 \
    C(27, Event_wait, (na_event *))                                                              \
    C(29, Model_setOperandSymmPerChannelQuantParams,                                             \
      (na_model *, int32_t, const na_channels *))                                                \
    C(29, Execution_compute, (na_execution *))                                                   \
    C(29, Compilation_setCaching, (na_compilation *, const char *, const uint8_t *))             \
    C(29, _getDeviceCount, (uint32_t *))                                                         \
    C(29, _getDevice, (uint32_t, na_device **))                                                  \
    C(29, Device_getName, (const na_device *, const char **))                                    \
    C(29, Device_getFeatureLevel, (const na_device *, int64_t *))                                \
    C(29, Compilation_createForDevices,                                                          \
      (na_model *, const na_device *const *, uint32_t, na_compilation **))
#define NA_VOID_CALLS(C)                        \
    C(27, Model_free, (na_model *))             \
    C(27, Compilation_free, (na_compilation *)) \
    C(27, Execution_free, (na_execution *))     \
    C(27, Event_free, (na_event *))

typedef struct na_calls {
#define NA_FIELD(level, name, arguments) int(*name) arguments;
    NA_CALLS(NA_FIELD)
#undef NA_FIELD
#define NA_FIELD(level, name, arguments) void(*name) arguments;
    NA_VOID_CALLS(NA_FIELD)
#undef NA_FIELD
} na_calls;

#endif

/* xnnpack_calls.h: what is called of libXNNPACK, which is loaded when the provider is first opened: nori
 * starts without it and is packed without it. Types are those of the header nori was built with. */
#ifndef NORI_PROVIDERS_XNNPACK_XNNPACK_CALLS_H
#define NORI_PROVIDERS_XNNPACK_XNNPACK_CALLS_H

#include <xnnpack.h>

#include "base/base.h"

/* Operators of one float operand without parameters: ONNX's name, XNNPACK's. */
#define XP_PLAIN_UNARY(X)             \
    X(Abs, abs_nc_f32)                \
    X(Neg, negate_nc_f32)             \
    X(Floor, floor_nc_f32)            \
    X(Ceil, ceiling_nc_f32)           \
    X(Round, bankers_rounding_nc_f32) \
    X(Sqrt, square_root_nc_f32)       \
    X(Sigmoid, sigmoid_nc_f32)        \
    X(HardSwish, hardswish_nc_f32)

/* Others: each has a create and a setup. */
#define XP_OPERATORS(X) \
    X(add_nd_f32) \
    X(subtract_nd_f32) \
    X(multiply_nd_f32) \
    X(divide_nd_f32) \
    X(maximum_nd_f32) \
    X(minimum_nd_f32) \
    X(clamp_nc_f32) \
    X(elu_nc_f32) \
    X(leaky_relu_nc_f32) \
    X(prelu_nc_f32) \
    X(softmax_nc_f32) \
    X(square_nc_f32) \
    X(convolution2d_nhwc_f32) \
    X(deconvolution2d_nhwc_f32) \
    X(fully_connected_nc_f32) \
    X(average_pooling2d_nhwc_f32) \
    X(max_pooling2d_nhwc_f32) \
    X(global_average_pooling_nwc_f32) \
    X(resize_bilinear2d_nhwc_f32) \
    X(constant_pad_nd_x32) \
    X(convert_nc_f32_qs8) \
    X(convert_nc_qs8_f32) \
    X(add_nd_qs8) \
    X(subtract_nd_qs8) \
    X(multiply_nd_qs8) \
    X(elu_nc_qs8) \
    X(sigmoid_nc_qs8) \
    X(tanh_nc_qs8) \
    X(leaky_relu_nc_qu8) \
    X(softmax_nc_qu8) \
    X(convolution2d_nhwc_qs8) \
    X(convolution2d_nhwc_qc8) \
    X(convolution2d_nhwc_qu8) \
    X(average_pooling2d_nhwc_qu8) \
    X(max_pooling2d_nhwc_s8) \
    X(global_average_pooling_nwc_qs8)

typedef struct xp_calls {
    NORI__TYPEOF(xnn_initialize) *initialize;
    NORI__TYPEOF(xnn_run_operator) *run_operator;
    NORI__TYPEOF(xnn_delete_operator) *delete_operator;
    NORI__TYPEOF(pthreadpool_create) *pool_create;
    NORI__TYPEOF(pthreadpool_destroy) *pool_destroy;
#define XP_MEMBERS(name)                                \
    NORI__TYPEOF(xnn_create_##name) *create_##name;     \
    NORI__TYPEOF(xnn_setup_##name) *setup_##name;
#define XP_UNARY_MEMBERS(onnx, name) XP_MEMBERS(name)
    XP_PLAIN_UNARY(XP_UNARY_MEMBERS)
    XP_OPERATORS(XP_MEMBERS)
#undef XP_UNARY_MEMBERS
#undef XP_MEMBERS
} xp_calls;

/* Filled once by nori__xp_load and never changed: a table of functions like that of kernels. */
extern xp_calls nori__xp_calls;
#define XNN(name) (nori__xp_calls.name)

/* Loads the library and initializes it, once. UNAVAILABLE with the library or symbol missing. */
nori_status nori__xp_load(nori_error *err);

#endif

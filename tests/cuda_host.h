/* cuda_host.h: the words that CUDA C adds, for a compiler of C++ on the host: before the kernels that the
 * double of NVIDIA's libraries has built in (cuda_kernels.cpp) and before those it compiles when a test
 * runs (cuda_made.c). */
#ifndef NORI_TESTS_CUDA_HOST_H
#define NORI_TESTS_CUDA_HOST_H

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "cuda_double.h"

#define __global__
#define __device__
#define __shared__ static
#define ROOM float *room = emulated_room;

struct dim3 {
    unsigned x, y, z;
};
static dim3 threadIdx, blockIdx, blockDim;
struct float4 {
    float x, y, z, w;
};
struct int4 {
    int x, y, z, w;
};
struct int2 {
    int x, y;
};
static float emulated_room[12 * 1024];

static inline float4 make_float4(float x, float y, float z, float w)
{
    return float4{x, y, z, w};
}
static inline int min(int a, int b)
{
    return a < b ? a : b;
}
static inline float __int_as_float(int bits)
{
    float v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

/* ---- a kernel and its parameters ---- */

template <typename T> struct is_pointer {
    static const int value = 0;
};
template <typename T> struct is_pointer<T *> {
    static const int value = 1;
};

template <typename... A, size_t... I>
static void call_with(void (*f)(A...), void **parameters, std::index_sequence<I...>)
{
    f(*static_cast<A *>(parameters[I])...);
}

template <typename... A> static void call(void (*f)(A...), void **parameters)
{
    call_with(f, parameters, std::index_sequence_for<A...>());
}

template <typename... A>
static double_kernel describe(const char *name, void (*)(A...), void (*run)(void **), int barriers)
{
    return double_kernel{
        name, int(sizeof...(A)), {sizeof(A)...}, {is_pointer<A>::value...}, run, barriers, nullptr};
}

#define KERNEL(name, barriers) \
    describe(#name, name, [](void **parameters) { call(name, parameters); }, barriers)

#endif

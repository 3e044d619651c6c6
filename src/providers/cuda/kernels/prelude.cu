/* prelude.cu: stands before the kernels of gpu/kernels and makes their OpenCL C CUDA C: functions without
 * a word are for the device (--device-as-default-execution-space), pointers need no address space, vectors
 * get the arithmetic they lack here. No header is included: NVRTC has none that are sure to be found. */
#define NORI_CUDA
#define __kernel extern "C" __global__
#define __global
#define __local
#define CLK_LOCAL_MEM_FENCE
#define barrier(what) __syncthreads()

/* The group's local memory is not a parameter here, and a grid has at most 65535 planes: more are several
 * launches, each told its first. */
#define ROOM_PARAMETER
#ifndef ROOM
#define ROOM extern __shared__ float room[];
#endif
#define SHARED __shared__
#define PLANE (first_plane + (int)(blockIdx.z * blockDim.z + threadIdx.z))
#define FIRST_PLANE , int first_plane
#define get_global_id(d) ((int)GLOBAL_ID_##d)
#define GLOBAL_ID_0 (blockIdx.x * blockDim.x + threadIdx.x)
#define GLOBAL_ID_1 (blockIdx.y * blockDim.y + threadIdx.y)
#define get_group_id(d) ((int)blockIdx.x)
#define get_local_id(d) ((int)threadIdx.x)
#define get_local_size(d) ((int)blockDim.x)

/* float, whatever a host's headers make of the short names. */
#define exp expf
#define log logf
#define sqrt sqrtf
#define fabs fabsf
#define floor floorf
#define ceil ceilf
#define rint rintf
#define erf erff
#define expm1 expm1f
#define log1p log1pf
#define tanh tanhf
#define sin sinf
#define cos cosf
#define pow powf
#define fmax fmaxf
#define copysign copysignf
#undef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#undef isnan
#define isnan(x) ((x) != (x))
#undef isinf
#define isinf(x) (fabsf(x) == INFINITY)

struct int8 {
    int s0, s1, s2, s3, s4, s5, s6, s7;
};

#define FLOAT4(a, b, c, d) make_float4(a, b, c, d)
inline __device__ float4 operator*(float4 v, float by)
{
    return make_float4(v.x * by, v.y * by, v.z * by, v.w * by);
}
inline __device__ float4 operator*(float by, float4 v)
{
    return v * by;
}
inline __device__ void operator+=(float4 &v, float4 w)
{
    v.x += w.x;
    v.y += w.y;
    v.z += w.z;
    v.w += w.w;
}
/* Not at multiples of 16 bytes always. */
inline __device__ float4 vload4(int at, const float *p)
{
    p += at * 4;
    return make_float4(p[0], p[1], p[2], p[3]);
}
inline __device__ void vstore4(float4 v, int at, float *p)
{
    p += at * 4;
    p[0] = v.x;
    p[1] = v.y;
    p[2] = v.z;
    p[3] = v.w;
}

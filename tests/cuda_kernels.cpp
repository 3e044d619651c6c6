/* cuda_kernels.cpp: the kernels of the provider cuda, compiled for the host. The words that CUDA C adds are
 * macros and variables; threads of a block that wait for each other are contexts taking turns on one
 * thread. Slow, and only as parallel as a test needs. */
#include <ucontext.h>

#include "cuda_host.h"

/* ---- threads of a block ---- */

#define MOST_THREADS 1024
#define STACK (64 * 1024)

static ucontext_t scheduler, threads[MOST_THREADS];
static char *stacks;
static unsigned current;
static bool finished[MOST_THREADS];
static const double_kernel *running;
static void **running_parameters;

static void __syncthreads()
{
    swapcontext(&threads[current], &scheduler);
}

static void begin_thread()
{
    running->run(running_parameters);
    finished[current] = true;
}

static void place(unsigned i)
{
    current = i;
    threadIdx.x = i % blockDim.x;
    threadIdx.y = i / blockDim.x % blockDim.y;
    threadIdx.z = i / blockDim.x / blockDim.y;
}

/* Apart: to the compiler getcontext may return twice, as setjmp does. */
static __attribute__((noinline)) void prepare_thread(unsigned i)
{
    getcontext(&threads[i]);
    threads[i].uc_stack.ss_sp = stacks + size_t(i) * STACK;
    threads[i].uc_stack.ss_size = STACK;
    threads[i].uc_link = &scheduler;
    makecontext(&threads[i], begin_thread, 0);
    finished[i] = false;
}

static const char *run_waiting_block(unsigned count)
{
    stacks = stacks ? stacks : static_cast<char *>(malloc(size_t(MOST_THREADS) * STACK));
    for (unsigned i = 0; i < count; i++) {
        prepare_thread(i);
    }
    for (;;) {
        unsigned done = 0;
        for (unsigned i = 0; i < count; i++) {
            place(i);
            swapcontext(&scheduler, &threads[i]);
            done += finished[i];
        }
        if (done == count) {
            return nullptr;
        }
        if (done != 0) {
            return "some threads of a block wait where others have ended";
        }
    }
}

/* ---- the sources ---- */

#include "providers/gpu/gpu_numbers.h"
#define GPU_NUMBER(name) UNARY_##name,
enum { GPU_UNARY(GPU_NUMBER) };
#undef GPU_NUMBER
#define GPU_NUMBER(name) BINARY_##name,
enum { GPU_BINARY(GPU_NUMBER) };
#undef GPU_NUMBER
#define GPU_NUMBER(name) REDUCE_##name,
enum { GPU_REDUCE(GPU_NUMBER) };
#undef GPU_NUMBER
#define GPU_NUMBER(name) POOL_##name,
enum { GPU_POOL(GPU_NUMBER) };
#undef GPU_NUMBER

#include "providers/cuda/kernels/prelude.cu"

#include "providers/gpu/kernels/common.cl"

#include "providers/gpu/kernels/elementwise.cl"

#include "providers/gpu/kernels/conv.cl"

#include "providers/cuda/kernels/conv_tiles.cu"

#include "providers/gpu/kernels/gemm.cl"

#include "providers/cuda/kernels/gemm_tiles.cu"

#include "providers/gpu/kernels/pool.cl"

#include "providers/gpu/kernels/rows.cl"

#include "providers/gpu/kernels/move.cl"

#include "providers/gpu/kernels/attention.cl"

/* ---- their table ---- */

static const double_kernel kernels[] = {
    KERNEL(unary_plain, 0),     KERNEL(binary_same, 0),      KERNEL(binary_broadcast, 0),
    KERNEL(channel_affine, 0),  KERNEL(conv_direct, 0),      KERNEL(conv_pointwise, 0),
    KERNEL(conv_depthwise, 0),  KERNEL(conv_transposed, 0),  KERNEL(conv_tiles, 1),
    KERNEL(gemm_packed, 0),     KERNEL(gemm_strided, 0),     KERNEL(gemm_tiles, 1),
    KERNEL(pool_window, 0),     KERNEL(reduce_lines, 0),     KERNEL(reduce_rows, 1),
    KERNEL(softmax_lines, 0),   KERNEL(softmax_rows, 1),     KERNEL(normalize_rows, 1),
    KERNEL(copy_strided, 0),    KERNEL(take_axis, 0),        KERNEL(blend_axis, 0),
    KERNEL(attend, 1),
};

const double_kernel *double_find(const char *name)
{
    for (const double_kernel &k : kernels) {
        if (strcmp(k.name, name) == 0) {
            return &k;
        }
    }
    return nullptr;
}

const char *double_run(const double_kernel *k, const unsigned grid[3], const unsigned block[3],
                       size_t shared, void **parameters)
{
    unsigned count = block[0] * block[1] * block[2];
    const char *wrong = shared > sizeof(emulated_room) ? "a block wants more memory than there is"
                                                       : nullptr;
    blockDim = dim3{block[0], block[1], block[2]};
    running = k;
    running_parameters = parameters;
    for (blockIdx.z = 0; blockIdx.z < grid[2]; blockIdx.z++) {
        for (blockIdx.y = 0; blockIdx.y < grid[1]; blockIdx.y++) {
            for (blockIdx.x = 0; blockIdx.x < grid[0] && !wrong; blockIdx.x++) {
                if (k->barriers) {
                    wrong = run_waiting_block(count);
                    continue;
                }
                for (unsigned i = 0; i < count; i++) {
                    place(i);
                    if (k->place) {
                        const unsigned at[3][3] = {{threadIdx.x, threadIdx.y, threadIdx.z},
                                                   {blockIdx.x, blockIdx.y, blockIdx.z},
                                                   {blockDim.x, blockDim.y, blockDim.z}};
                        k->place(at);
                    }
                    k->run(parameters);
                }
            }
        }
    }
    return wrong;
}

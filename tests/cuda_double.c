/* cuda_double.c: a library with the calls of NVIDIA's driver and of NVRTC that nori uses, and no device: it
 * looks at every call and runs kernels on the host (cuda_kernels.cpp). As on a device, nothing that is
 * started happens before it is waited for; a call against the rules is an error, and counted.
 *
 * Looked at: a context is current; handles are alive; copies and pointers given to kernels lie within
 * memory that is allocated; nothing is written behind it; grids, blocks and their memory are within the
 * device's limits; parameters are as many as the kernel has; nothing waits while a graph is recorded.
 * Built with WITHOUT_REPLAY it lacks a symbol. Here are the driver's calls; cuda_double_device.c has what
 * they work on, cuda_double_code.c code and its compiler. */
#include "cuda_double_state.h"

/* ---- the driver ---- */

int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    if (double_is("none") || double_is("init")) {
        return double_is("none") ? NO_DEVICE : 999;
    }
    now.initialized = flags == 0;
    return now.initialized ? 0 : wrong(INVALID_VALUE, "cuInit takes no flags");
}

int cuGetErrorName(int code, const char **name);
int cuGetErrorName(int code, const char **name)
{
    static const struct {
        int code;
        const char *name;
    } names[] = {{1, "CUDA_ERROR_INVALID_VALUE"},   {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {3, "CUDA_ERROR_NOT_INITIALIZED"}, {100, "CUDA_ERROR_NO_DEVICE"},
                 {200, "CUDA_ERROR_INVALID_IMAGE"}, {201, "CUDA_ERROR_INVALID_CONTEXT"},
                 {400, "CUDA_ERROR_INVALID_HANDLE"}, {500, "CUDA_ERROR_NOT_FOUND"},
                 {719, "CUDA_ERROR_LAUNCH_FAILED"}, {999, "CUDA_ERROR_UNKNOWN"},
                 {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].code == code) {
            *name = names[i].name;
            return 0;
        }
    }
    return INVALID_VALUE;
}

CALL(cuDriverGetVersion, (int *version), { *version = double_is("old") ? 11020 : 12040; })
CALL(cuDeviceGetCount, (int *count), { *count = 1; })
CALL(cuDeviceGet, (int *device, int ordinal), {
    CHECK(ordinal == 0, INVALID_VALUE, "there is one device")
    *device = 7; /* not the ordinal */
})
CALL(cuDeviceGetName, (char *name, int size, int device), {
    CHECK(device == 7, INVALID_VALUE, "no such device")
    snprintf(name, (size_t)size, "Double of a device");
})
CALL(cuDeviceGetAttribute, (int *v, int what, int device), {
    CHECK(device == 7, INVALID_VALUE, "no such device")
    *v = what == 1 || what == 2 || what == 3 ? MOST_BLOCK : what == 4 ? 64 : what == 8 ? MOST_SHARED
         : what == 13 ? 1500000 : what == 16 ? 10 : what == 75 ? 8 : what == 76 ? 6 : 0;
})
CALL(cuDeviceTotalMem_v2, (size_t *bytes, int device), {
    CHECK(device == 7, INVALID_VALUE, "no such device")
    *bytes = (size_t)4 << 30;
})
CALL(cuDevicePrimaryCtxRetain, (void **context, int device), {
    CHECK(device == 7, INVALID_VALUE, "no such device")
    *context = &now.context;
    add("contexts", 1);
})
CALL(cuDevicePrimaryCtxRelease_v2, (int device), {
    CHECK(device == 7, INVALID_VALUE, "no such device")
    add("contexts", -1);
})
CALL(cuCtxPushCurrent_v2, (void *context), {
    CHECK(context == &now.context, INVALID_CONTEXT, "no such context")
    double_current += code == 0;
})
CALL(cuCtxPopCurrent_v2, (void **context), {
    NEED_CONTEXT
    *context = &now.context;
    double_current -= code == 0;
})
CALL(cuStreamCreate, (void **stream, unsigned flags), {
    NEED_CONTEXT
    CHECK(flags <= 1, INVALID_VALUE, "no such flags of a stream")
    *stream = &now.stream;
    add("streams", 1);
})
CALL(cuStreamDestroy_v2, (void *stream), {
    NEED_CONTEXT
    NEED_STREAM
    add("streams", -1);
})
CALL(cuStreamSynchronize, (void *stream), {
    NEED_CONTEXT
    NEED_STREAM
    CHECK(!now.capturing, CAPTURING, "a wait while a graph is recorded")
    code = code ? code : run_queue();
})
CALL(cuMemAlloc_v2, (uint64_t *at, size_t bytes), {
    void *p = NULL;
    CHECK(!now.capturing, CAPTURING, "memory is allocated while a graph is recorded")
    code = code ? code : allocate(&p, bytes, false);
    *at = (uint64_t)(uintptr_t)p;
})
CALL(cuMemFree_v2, (uint64_t at), {
    code = run_queue();
    int freed = give_back((void *)(uintptr_t)at, false);
    code = code ? code : freed;
})
CALL(cuMemAllocHost_v2, (void **at, size_t bytes), { code = allocate(at, bytes, true); })
CALL(cuMemFreeHost, (void *at), {
    code = run_queue();
    int freed = give_back(at, true);
    code = code ? code : freed;
})
CALL(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, void *stream), {
    void *at = (void *)(uintptr_t)to;
    NEED_CONTEXT
    NEED_STREAM
    CHECK(!now.capturing, CAPTURING, "a copy while a graph is recorded")
    CHECK(block_with(at, bytes, false), INVALID_VALUE, "a copy goes beyond memory of the device")
    code = code ? code : later(at, from, bytes);
})
CALL(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, void *stream), {
    void *at = (void *)(uintptr_t)from;
    NEED_CONTEXT
    NEED_STREAM
    CHECK(!now.capturing, CAPTURING, "a copy while a graph is recorded")
    CHECK(block_with(at, bytes, false), INVALID_VALUE, "a copy comes from beyond memory of the device")
    CHECK(block_with(to, bytes, true), INVALID_VALUE, "a copy goes to memory that is not pinned")
    code = code ? code : later(to, at, bytes);
})

/* ---- graphs ---- */

CALL(cuStreamBeginCapture_v2, (void *stream, int how), {
    NEED_CONTEXT
    NEED_STREAM
    CHECK(!now.capturing && how >= 0 && how <= 2, INVALID_VALUE, "a recording cannot begin")
    now.capturing = code == 0;
})
CALL(cuStreamEndCapture, (void *stream, void **graph), {
    list *g = calloc(1, sizeof(*g));
    NEED_STREAM
    CHECK(now.capturing && g, INVALID_VALUE, "no recording ends")
    if (g) {
        g->first = now.recorded.first;
        now.recorded.first = NULL;
    }
    now.capturing = false;
    *graph = g;
    add("graphs", 1);
})
CALL(cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags), {
    list *e = calloc(1, sizeof(*e));
    CHECK(e && flags == 0, INVALID_VALUE, "a graph cannot be made ready")
    for (const step *s = ((list *)graph)->first; s && e; s = s->next) {
        step *mine = malloc(sizeof(*mine));
        if (mine) {
            *mine = *s;
            put(e, mine);
        }
    }
    *exec = e;
    add("graphs", 1);
})
static void free_graph(void *graph)
{
    drop(graph);
    free(graph);
    add("graphs", -1);
}
CALL(cuGraphDestroy, (void *graph), { free_graph(graph); })
CALL(cuGraphExecDestroy, (void *exec), { free_graph(exec); })
#ifndef WITHOUT_REPLAY
CALL(cuGraphLaunch, (void *exec, void *stream), {
    NEED_CONTEXT
    NEED_STREAM
    for (const step *s = ((list *)exec)->first; s && code == 0; s = s->next) {
        step *mine = malloc(sizeof(*mine));
        code = mine ? 0 : OUT_OF_MEMORY;
        if (mine) {
            *mine = *s;
            put(&now.queue, mine);
        }
    }
    add("replays", 1);
})
#endif

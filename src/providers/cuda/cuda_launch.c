/* cuda_launch.c: starting a layout's kernels. The first run starts them one by one; the second records
 * them as a graph, since the shapes came again; from then on a run is one call (graphs=0: never). */
#include "providers/cuda/cuda.h"

#define MOST_PLANES 65535u /* of a grid, in y and z */

static nori_status launch(cuda_self *self, const gpu_launch *l, nori_error *err)
{
    gpu_kernel *k = l->kernel;
    if (l->call) {
        const cuda_call *call = l->call;
        return call->run(self, call, err);
    }
    void *parameters[CUDA_ARGUMENTS + 1];
    size_t grid[3], count = 0;
    int32_t first = 0;
    for (uint32_t i = 0; i < CUDA_ARGUMENTS; i++) {
        if (k->used >> i & 1) {
            parameters[count++] = k->argument[i];
        }
    }
    parameters[count] = &first; /* read by kernels that have planes; others have no such parameter */
    for (int d = 0; d < 3; d++) {
        grid[d] = l->global[d] / l->local[d];
    }
    if (grid[0] > INT32_MAX || grid[1] > MOST_PLANES) {
        return nori__fail(err, NORI_ERROR_LIMIT, "CUDA: a grid of %zu by %zu blocks is too large",
                          grid[0], grid[1]);
    }
    for (size_t z = 0; z < grid[2]; z += MOST_PLANES) {
        size_t planes = grid[2] - z < MOST_PLANES ? grid[2] - z : MOST_PLANES;
        first = (int32_t)(z * l->local[2]);
        int code = self->api.cuLaunchKernel(k->function, (unsigned)grid[0], (unsigned)grid[1],
                                            (unsigned)planes, (unsigned)l->local[0],
                                            (unsigned)l->local[1], (unsigned)l->local[2], k->shared,
                                            self->stream, parameters, NULL);
        NORI__TRY(nori__cuda_check(self, code, "cuLaunchKernel", NORI_ERROR_DATA, err));
    }
    return NORI_OK;
}

static nori_status launch_all(cuda_self *self, const gpu_layout *y, nori_error *err)
{
    for (size_t i = 0; i < y->launches.count; i++) {
        NORI__TRY(launch(self, y->launches.items[i], err));
    }
    return NORI_OK;
}

static nori_status record(cuda_self *self, gpu_layout *y, nori_error *err)
{
    cuda_graph *graph = NULL;
    cuda_exec *exec = NULL;
    NORI__TRY(nori__cuda_check(self,
                               self->api.cuStreamBeginCapture_v2(self->stream, CUDA_CAPTURE_THREAD),
                               "cuStreamBeginCapture", NORI_ERROR_DATA, err));
    nori_status status = launch_all(self, y, err);
    int code = self->api.cuStreamEndCapture(self->stream, &graph); /* ended in any case */
    status = status != NORI_OK
                 ? status
                 : nori__cuda_check(self, code, "cuStreamEndCapture", NORI_ERROR_DATA, err);
    if (status == NORI_OK) {
        status = nori__cuda_check(self, self->api.cuGraphInstantiateWithFlags(&exec, graph, 0),
                                  "cuGraphInstantiateWithFlags", NORI_ERROR_DATA, err);
    }
    if (graph) {
        self->api.cuGraphDestroy(graph);
    }
    y->recorded = status == NORI_OK ? exec : NULL;
    return status;
}

nori_status nori__cuda_enqueue(gpu_self *user, gpu_layout *y, nori_error *err)
{
    cuda_self *self = (cuda_self *)user;
    if (y->launches.count == 0) {
        return NORI_OK;
    }
    if (!self->graphs || y->runs == 0) {
        return launch_all(self, y, err);
    }
    if (!y->recorded) {
        NORI__TRY(record(self, y, err));
    }
    return nori__cuda_check(self, self->api.cuGraphLaunch(y->recorded, self->stream), "cuGraphLaunch",
                            NORI_ERROR_DATA, err);
}

void nori__cuda_forget(gpu_self *user, gpu_layout *y)
{
    ((cuda_self *)user)->api.cuGraphExecDestroy(y->recorded);
    y->recorded = NULL;
}

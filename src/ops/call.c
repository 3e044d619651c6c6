/* call.c: what a kernel may ask of the run it is in: the public face of struct nori_call. */
#include "ops/op.h"

const nori_node *nori_call_node(const nori_call *call)
{
    return call->node;
}

const nori_tensor *nori_call_input(const nori_call *call, size_t index)
{
    return index < call->n_in ? call->in[index] : NULL;
}

nori_tensor *nori_call_output(const nori_call *call, size_t index)
{
    return index < call->n_out ? call->out[index] : NULL;
}

void *nori_call_workspace(const nori_call *call)
{
    return call->work;
}

nori_error *nori_call_error(const nori_call *call)
{
    return call->err;
}

void nori_call_parallel(nori_call *call, int64_t count, int64_t grain,
                        void (*body)(void *user, int64_t begin, int64_t end, int thread),
                        void *user)
{
    int threads = call->threads > 0 ? call->threads : nori__pool_threads(call->pool);
    nori__parallel_for(call->pool, threads, count, grain, body, user);
}

nori_status nori_call_alloc(nori_call *call, size_t index, nori_type type, int rank,
                            const int64_t *dims, nori_tensor **tensor)
{
    *tensor = NULL;
    if (!call->exec || index >= call->n_out) {
        return nori__fail(call->err, NORI_ERROR_ARGUMENT, "there is no output %zu to make here",
                          index);
    }
    return call->exec->alloc(call, (uint32_t)index, type, rank, dims, tensor);
}

nori_status nori_call_set(nori_call *call, size_t index, nori_tensor *tensor)
{
    if (!call->exec || index >= call->n_out) {
        return nori__fail(call->err, NORI_ERROR_ARGUMENT, "there is no output %zu to set here",
                          index);
    }
    return call->exec->set(call, (uint32_t)index, tensor);
}

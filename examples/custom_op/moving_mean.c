/* moving_mean.c: an operator of one's own, as a library that `nori run --ops-library` and
 * nori_env_load_ops() open: MovingMean of domain example.nori, the mean of every `window` values
 * next to each other along the last axis.
 *
 *     X [..., n] float32 or float64  ->  Y [..., n - window + 1] of the same type
 *
 * docs/add_custom_op.md goes through it. */
#include <stdlib.h>

#include <nori/provider.h>

/* What is read once, when a model that uses the operator is compiled. */
typedef struct moving_mean {
    int64_t window;
} moving_mean;

static nori_status prepare(const nori_node *node, const nori_allocator *allocator, void **state,
                           size_t *state_bytes, nori_error *error)
{
    moving_mean *m = allocator->alloc(allocator->user, sizeof(*m), sizeof(void *));
    if (!m) {
        return nori_error_set(error, NORI_ERROR_MEMORY, "out of memory");
    }
    m->window = nori_node_int(node, "window", 0);
    *state = m;
    *state_bytes = sizeof(*m);
    return NORI_OK;
}

static void release(void *state, const nori_allocator *allocator)
{
    allocator->release(allocator->user, state, sizeof(moving_mean));
}

/* One run; rows are shared among the threads. */
typedef struct job {
    int64_t window, in, out; /* values in a row */
    const void *x;
    void *y;
} job;

static void rows_f32(void *user, int64_t begin, int64_t end, int thread)
{
    const job *j = user;
    (void)thread;
    for (int64_t i = begin * j->out; i < end * j->out; i++) {
        const float *x = (const float *)j->x + i / j->out * j->in + i % j->out;
        double sum = 0;
        for (int64_t k = 0; k < j->window; k++) {
            sum += x[k];
        }
        ((float *)j->y)[i] = (float)(sum / (double)j->window);
    }
}

static void rows_f64(void *user, int64_t begin, int64_t end, int thread)
{
    const job *j = user;
    (void)thread;
    for (int64_t i = begin * j->out; i < end * j->out; i++) {
        const double *x = (const double *)j->x + i / j->out * j->in + i % j->out;
        double sum = 0;
        for (int64_t k = 0; k < j->window; k++) {
            sum += x[k];
        }
        ((double *)j->y)[i] = sum / (double)j->window;
    }
}

static nori_status run(const void *state, nori_call *call)
{
    const moving_mean *m = state;
    const nori_tensor *x = nori_call_input(call, 0);
    nori_tensor *y = nori_call_output(call, 0);
    int last = nori_tensor_rank(x) - 1;
    job j = {m->window, nori_tensor_dims(x)[last], nori_tensor_dims(y)[last],
             nori_tensor_const_data(x), nori_tensor_data(y)};
    int64_t rows = j.out > 0 ? nori_tensor_elements(y) / j.out : 0;
    nori_call_parallel(call, rows, 16, nori_tensor_type(x) == NORI_FLOAT ? rows_f32 : rows_f64, &j);
    return NORI_OK;
}

/* Called while the model loads, with what is known of X, and again for new shapes. */
static nori_status infer(nori_infer *c)
{
    int64_t dims[NORI_MAX_RANK], window = nori_node_int(nori_infer_node(c), "window", 0);
    int rank = nori_infer_rank(c, 0);
    if (window < 1) {
        return nori_error_set(nori_infer_error(c), NORI_ERROR_MODEL,
                              "window is %lld, expected at least 1", (long long)window);
    }
    for (int d = 0; d < rank; d++) {
        dims[d] = nori_infer_dim(c, 0, d);
    }
    if (rank == 0 || (rank > 0 && dims[rank - 1] >= 0 && dims[rank - 1] < window)) {
        return nori_error_set(nori_infer_error(c), NORI_ERROR_MODEL,
                              "input 0 has %lld values along its last axis, window is %lld",
                              (long long)(rank ? dims[rank - 1] : 0), (long long)window);
    }
    if (rank > 0 && dims[rank - 1] >= 0) {
        dims[rank - 1] -= window - 1;
    }
    return nori_infer_output(c, 0, nori_infer_type(c, 0), rank, dims);
}

/* The one symbol that nori looks for. */
NORI_API nori_status nori_register_ops(nori_env *env, nori_error *error);

nori_status nori_register_ops(nori_env *env, nori_error *error)
{
    static const nori_op_arg x = {
        "X", NORI_TYPE_BIT(NORI_FLOAT) | NORI_TYPE_BIT(NORI_DOUBLE), "T", NORI_OP_REQUIRED};
    static const nori_op_arg y = {
        "Y", NORI_TYPE_BIT(NORI_FLOAT) | NORI_TYPE_BIT(NORI_DOUBLE), "T", NORI_OP_REQUIRED};
    static const nori_op_attr window = {"window", NORI_ATTR_INT, 1};
    static const nori_kernel kernel = {
        .size = sizeof(kernel), .prepare = prepare, .run = run, .release = release};
    nori_custom_op op = {.size = sizeof(op),
                         .domain = "example.nori",
                         .name = "MovingMean",
                         .since = 1,
                         .inputs = &x,
                         .n_inputs = 1,
                         .outputs = &y,
                         .n_outputs = 1,
                         .attributes = &window,
                         .n_attributes = 1,
                         .infer = infer,
                         .kernel = &kernel};
    return nori_env_register_op(env, &op, error);
}

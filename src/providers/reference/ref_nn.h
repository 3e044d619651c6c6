/* ref_nn.h: what the reference kernels of networks' layers (convolution, products, pooling,
 * normalisation, resizing, recurrence, attention) share.
 *
 * A kernel is written for FLOAT or DOUBLE, or both by including its body twice; half types reach it
 * through nori__nn_half, and kernels written for DOUBLE alone get everything through
 * nori__nn_double. Both convert inputs and outputs around the call, so that results are rounded
 * once. */
#ifndef NORI_PROVIDERS_REFERENCE_REF_NN_H
#define NORI_PROVIDERS_REFERENCE_REF_NN_H

#include "ops/families.h"
#include "ops/window.h"

/* Runs body with FLOAT16 and BFLOAT16 inputs and outputs as FLOAT; the call itself where none is.
 */
nori_status nori__nn_half(nori_call *call, nori__run_fn body);
/* Runs body with every float input and output as DOUBLE. Bit i of ints: input i, and bit 16 + i:
 * output i, becomes DOUBLE even if it is an integer. */
nori_status nori__nn_double(nori_call *call, uint32_t ints, nori__run_fn body);

/* Elements of a tensor as double, float, or int32 bits, whatever its type. */
void nori__nn_load_f64(const nori_tensor *t, int64_t from, int64_t count, double *out);
void nori__nn_load_f32(const nori_tensor *t, int64_t from, int64_t count, float *out);
void nori__nn_load_u32(const nori_tensor *t, int64_t from, int64_t count, uint32_t *out);
void nori__nn_store_f64(nori_tensor *t, int64_t from, int64_t count, const double *in);
void nori__nn_store_f32(nori_tensor *t, int64_t from, int64_t count, const float *in);

static inline bool nori__nn_has(const nori_call *call, uint32_t i)
{
    return i < call->n_in && call->in[i];
}
static inline bool nori__nn_wants(const nori_call *call, uint32_t i)
{
    return i < call->n_out && call->out[i];
}
static inline int nori__nn_threads(const nori_call *call)
{
    return call->threads > 0 ? call->threads : nori__pool_threads(call->pool);
}

/* Errors of type DATA that say input, found and expected. rank -1: any. */
nori_status nori__nn_need(const nori_call *call, uint32_t i, const char *name, int rank);
nori_status nori__nn_type_error(const nori_call *call, uint32_t i);
/* in[i] (if there) must have count elements. */
nori_status nori__nn_count(const nori_call *call, uint32_t i, const char *name, int64_t count);

/* Scratch of count * size bytes from the call's allocator; *bytes is for nori__release. */
void *nori__nn_scratch(const nori_call *call, int64_t count, size_t size, size_t *bytes);

/* Wraps: exact where the tensor exists, 0 where any is 0. */
static inline int64_t nori__nn_product(const int64_t *dims, int from, int to)
{
    uint64_t n = 1;
    for (int d = from; d < to; d++) {
        n *= (uint64_t)dims[d];
    }
    return (int64_t)n;
}

/* Saturates a value that is already rounded to the range of an 8- or 16-bit integer type. */
static inline double nori__nn_clamp(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}
void nori__nn_range(nori_type type, double *low, double *high);

/* Attribute "activation" (absent: none) on y in place; p: its n parameters, defaults where missing.
 */
nori_status nori__nn_activate(const nori_call *call, const float *p, size_t n, float *y,
                              int64_t count);

/* ---- recurrence (ref_recurrent.c, ref_ms_lstm.c) ---- */

/* LSTM whose recurrence reads the state of an entry of the batch as 8 bits, as nori__nn_as_bytes has it. */
nori_status nori__ref_lstm_bytes(nori_call *call);
/* Numbers (of float32) as DynamicQuantizeLinear and DequantizeLinear leave them. */
void nori__nn_as_bytes(int64_t n, double *v);

/* ---- convolution (ref_conv.c) ---- */

/* One convolution over ready memory. Weight [M, C / group, kernel]; bias may be NULL. */
typedef struct nori__ref_conv_work {
    nori__window w; /* with pads resolved */
    int64_t batch, channels, made, group;
    int64_t in[NORI__SPATIAL], out[NORI__SPATIAL];
    const void *x, *weight, *bias;
    void *y;
} nori__ref_conv_work;
/* Geometry from shapes; error when they do not agree. */
nori_status nori__ref_conv_setup(nori_call *call, const nori_tensor *x, const nori_tensor *weight,
                                 const nori_tensor *y, nori__ref_conv_work *work);
nori_status nori__ref_conv_u32(nori_call *call, nori__ref_conv_work *work);

/* Kernel positions (all dimensions but the last) that fall inside the input for output row `row`:
 * offsets in an input channel and in the kernel. Returns how many. */
int64_t nori__nn_conv_places(const nori__ref_conv_work *c, int64_t row, int64_t *offsets,
                             int64_t *places);

/* ---- matrix products (ref_gemm.c) ---- */

/* y[batch][m][n] = sum over k of a[m][k] * b[k][n]; strides in elements. */
typedef struct nori__ref_product_work {
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col; /* one of b_row, b_col is 1 */
    int n_batch;
    int64_t batch[NORI_MAX_RANK], a_batch[NORI_MAX_RANK], b_batch[NORI_MAX_RANK];
    const void *a, *b;
    void *y; /* dense */
} nori__ref_product_work;
/* MatMul's shapes with broadcasting and 1-D operands. */
nori_status nori__ref_product_setup(nori_call *call, const nori_tensor *a, const nori_tensor *b,
                                    const nori_tensor *y, nori__ref_product_work *work);
void nori__ref_product_f32(nori_call *call, const nori__ref_product_work *work);
void nori__ref_product_f64(nori_call *call, const nori__ref_product_work *work);
void nori__ref_product_u32(nori_call *call, const nori__ref_product_work *work);
void nori__ref_product_u64(nori_call *call, const nori__ref_product_work *work);

#endif

/* cpu.h: what the files of the cpu provider share. */
#ifndef NORI_PROVIDERS_CPU_CPU_H
#define NORI_PROVIDERS_CPU_CPU_H

#include "kernels/kernels.h"
#include "ops/op.h"
#include "providers/cpu/cpu_kernels.h"

/* ---- scratch ---- */

/* Scratch of a run: the planned workspace, or an allocation where that is too small. */
typedef struct nori__cpu_scratch {
    void *data;
    void *owned;
    size_t bytes;
} nori__cpu_scratch;
nori_status nori__cpu_take(nori_call *call, size_t bytes, nori__cpu_scratch *s);
void nori__cpu_give(nori_call *call, nori__cpu_scratch *s);
static inline int nori__cpu_threads(const nori_call *call)
{
    int n = call->threads > 0 ? call->threads : nori__pool_threads(call->pool);
    return n < 1 ? 1 : n;
}
/* nori__parallel_for for bodies of floats: they take subnormal numbers as zero, and make none, on
 * every thread. Trained weights and activations that fade hold such numbers, and each costs the CPU a
 * hundred cycles. */
void nori__cpu_for(nori__pool *pool, int max_threads, int64_t count, int64_t grain, nori__body body,
                   void *user);
static inline size_t nori__cpu_round(size_t bytes) /* to whole cache lines */
{
    return (bytes + 63) & ~(size_t)63;
}
/* The reference kernel of the node: for the rare forms a kernel does not take at run time. */
nori_status nori__cpu_reference(nori_call *call);
/* A node's kernel does not take it: said before anything was done. */
#define NORI__NOT_TAKEN NORI_ERROR_UNSUPPORTED

static inline bool nori__cpu_has(const nori_call *call, uint32_t i)
{
    return i < call->n_in && call->in[i];
}
static inline bool nori__cpu_is_f32(const nori__node *node, uint32_t i)
{
    return i < node->input_count && node->inputs[i] && node->inputs[i]->type.elem == NORI_FLOAT;
}
static inline const nori__value *nori__cpu_value(const nori__node *node, uint32_t i)
{
    return i < node->input_count ? node->inputs[i] : NULL;
}

/* What v holds unless a caller says otherwise: its constant, or an input's default. Weights are
 * packed from it; a kernel that finds another tensor in a run packs that one, or hands over. */
static inline const nori_tensor *nori__cpu_default(const nori__value *v)
{
    return v ? v->constant : NULL;
}

/* ---- activations ---- */

/* An activation at the end of a product: a clamp inside the tiles, or a function over the rows. */
typedef struct nori__activation {
    bool clamp;
    float low, high;
    bool apply;
    nori__unary function;
    float p[2];
} nori__activation;
/* Reads activation and activation_params; false: not known. */
bool nori__activation_read(const nori__node *node, nori__activation *act);
bool nori__activation_named(const nori__node *node, const char *activation, const char *params,
                            nori__activation *act); /* the same from attributes of other names */
/* What those attributes would say of an activation node, with up to 2 parameters; NULL: not one. */
const char *nori__activation_of(const nori__node *n, float *p, size_t *n_p);

/* ---- products (product.c) ---- */

/* Operands of one of several products of the same sizes. */
typedef struct nori__product_part {
    const float *a;   /* packed panels, each of depth k; or, if a_row is not 0, element (i, p) of */
    size_t a_row, a_k; /* a matrix as it is, at a[i * a_row + p * a_k] */
    const float *b;   /* packed panels, or NULL: p->pack is asked */
    float *c;
    const float *row; /* added to rows, or NULL */
    const float *add; /* added, laid out like c, or NULL */
} nori__product_part;

/* c = activation(a * b + row + col + add): count products in one go. The order of each element's
 * sums depends on k alone, not on threads or on how the work is cut. */
typedef struct nori__product nori__product;
struct nori__product {
    size_t count, m, n, k;
    size_t ldc;
    size_t chunk;     /* columns a unit, in eighths of the usual; 0: as usual */
    const float *col; /* added to columns, or NULL */
    nori__activation act;
    void (*part)(const nori__product *p, size_t index, nori__product_part *part);
    /* Packs rows [k0, k0 + kc) of one panel of B; out has nr elements of slack. */
    void (*pack)(const nori__product *p, size_t index, size_t k0, size_t kc, size_t panel,
                 float *out);
    const void *user;
};
size_t nori__product_bytes(const nori__product *p, int threads); /* scratch it needs */
void nori__product_run(nori_call *call, const nori__product *p, void *scratch);

/* Elements of A packed in panels of mr rows (of B in panels of nr columns). 0: overflow. */
size_t nori__packed_a(size_t m, size_t k);
size_t nori__packed_b(size_t n, size_t k);
/* a[i * row + p * col] -> panels; a and b may stand at any address. */
void nori__pack_a(size_t m, size_t k, const float *a, size_t row, size_t col, float *out);
/* b[p * row + j * col] -> panels. */
void nori__pack_b(size_t n, size_t k, const float *b, size_t row, size_t col, float *out);

/* ---- integer products (sproduct.c): the same for int16 pairs; sums are exact modulo 2^32 ---- */

typedef struct nori__sproduct nori__sproduct;
struct nori__sproduct {
    size_t count, m, n, k;
    /* Operands of product index: packed A; packed B or NULL (pack is asked); where sums go, row
     * stride n, or NULL: finish gets them. */
    void (*part)(const nori__sproduct *p, size_t index, const int16_t **a, const int16_t **b,
                 int32_t **c);
    /* Packs pairs [p0, p0 + pc) of one panel of B; out has a panel row of slack. */
    void (*pack)(const nori__sproduct *p, size_t index, size_t p0, size_t pc, size_t panel,
                 int16_t *out);
    /* n finished sums of a row, from column col on. */
    void (*finish)(const nori__sproduct *p, size_t index, size_t row, size_t col, size_t n,
                   const int32_t *sums);
    const void *user;
};
size_t nori__sproduct_bytes(const nori__sproduct *p, int threads);
void nori__sproduct_run(nori_call *call, const nori__sproduct *p, void *scratch);
/* Bytes of a packed left operand; 0: overflow. */
size_t nori__spacked_a(size_t m, size_t k);

/* An 8-bit integer type? */
static inline bool nori__cpu_is_8bit(nori_type t)
{
    return t == NORI_UINT8 || t == NORI_INT8;
}

/* ---- kernels, by file ---- */
extern const nori__kernel nori__cpu_conv, nori__cpu_matmul, nori__cpu_unary, nori__cpu_binary,
    nori__cpu_batch_norm, nori__cpu_softmax, nori__cpu_layer_norm, nori__cpu_skip_norm,
    nori__cpu_instance_norm, nori__cpu_reduce, nori__cpu_pool, nori__cpu_resize, nori__cpu_transpose,
    nori__cpu_qconv, nori__cpu_qmatmul, nori__cpu_quantize, nori__cpu_dequantize,
    nori__cpu_cast, nori__cpu_dynamic_quantize, nori__cpu_recurrent, nori__cpu_dynamic_lstm,
    nori__cpu_power, nori__cpu_prelu,
    nori__cpu_tree;

#endif

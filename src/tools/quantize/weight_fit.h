/* weight_fit.h: integers of a weight whose sums stay float. */
#ifndef NORI_TOOLS_QUANTIZE_WEIGHT_FIT_H
#define NORI_TOOLS_QUANTIZE_WEIGHT_FIT_H

#include "tools/quantize/quantize.h"

/* Rows and columns of a weight, as the product sees it: column j is what makes output j. */
typedef struct nori__q_matrix {
    const nori_tensor *w;
    int64_t rows, columns, row_step, column_step;
} nori__q_matrix;

/* Integers of it, blocks of a column sharing a scale. All in memory of one arena. */
typedef struct nori__q_fitted {
    nori__arena arena;
    int64_t block, blocks; /* rows in a block; blocks in a column */
    nori_quant *quants;    /* [columns * blocks] */
    int32_t *integers;     /* [columns * rows] */
    double sqnr;           /* dB of the weight alone */
} nori__q_fitted;

/* weight_fit.c: block 0: all rows. factor: of GPTQ, or NULL. Free out->arena, also after an error. */
nori_status nori__q_fit(nori__quantizer *q, const nori__q_matrix *m, int64_t block, nori_type type,
                        bool symmetric, const double *factor, nori__q_fitted *out);

/* hessian.c: sums of products x x^T of what samples feed into products, for GPTQ. */
typedef struct nori__q_hessian {
    int64_t size;
    double *sums; /* [size * size], the upper half; later the factor that GPTQ goes by */
    double rows;
} nori__q_hessian;
/* For the inputs of chosen products, as many as fit the memory; others stay NULL in q->hessians. */
nori_status nori__q_see_products(nori__quantizer *q, nori__arena *arena, nori__map *hessians);
/* The upper Cholesky factor of the inverse, damped; false: no memory, or not to be had. */
bool nori__q_hessian_factor(const nori_allocator *a, nori__q_hessian *h);

#endif

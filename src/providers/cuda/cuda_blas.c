/* cuda_blas.c: products by cuBLASLt, in fp32 without TF32. The library counts columns first: a matrix
 * whose rows lie one behind the other is its transpose there, so y = a b is told as y' = b' a'. Numbers
 * and signatures are those of its stable C interface. */
#include <stdio.h>

#include "providers/cuda/cuda.h"

#define WORKSPACE ((size_t)8 << 20)

enum {
    BLAS_FLOAT = 0,      /* a type of data */
    BLAS_COMPUTE_32F = 68,
    BLAS_PLAIN = 0,      /* operations */
    BLAS_TURNED = 1,
    BLAS_TURN_A = 3,     /* attributes of a product */
    BLAS_TURN_B = 4,
    BLAS_EPILOGUE = 7,
    BLAS_BIAS = 8,
    BLAS_BATCHES = 5,    /* attributes of a matrix */
    BLAS_BATCH_STRIDE = 6,
    BLAS_MOST_WORKSPACE = 1, /* an attribute of a preference */
    BLAS_END_NONE = 1,   /* epilogues */
    BLAS_END_RELU = 2,
    BLAS_END_BIAS = 4,
    BLAS_END_BIAS_RELU = 6
};

typedef struct blas_handle blas_handle;
typedef struct blas_product blas_product;
typedef struct blas_matrix blas_matrix;
typedef struct blas_preference blas_preference;

typedef struct blas_algorithm {
    uint64_t data[8];
} blas_algorithm;

typedef struct blas_answer {
    blas_algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} blas_answer;

#define BLAS_CALLS(X)                                                                              \
    X(cublasLtGetVersion, size_t, (void))                                                          \
    X(cublasLtCreate, int, (blas_handle **))                                                       \
    X(cublasLtDestroy, int, (blas_handle *))                                                       \
    X(cublasLtMatmulDescCreate, int, (blas_product **, int, int))                                  \
    X(cublasLtMatmulDescDestroy, int, (blas_product *))                                            \
    X(cublasLtMatmulDescSetAttribute, int, (blas_product *, int, const void *, size_t))            \
    X(cublasLtMatrixLayoutCreate, int, (blas_matrix **, int, uint64_t, uint64_t, int64_t))         \
    X(cublasLtMatrixLayoutDestroy, int, (blas_matrix *))                                           \
    X(cublasLtMatrixLayoutSetAttribute, int, (blas_matrix *, int, const void *, size_t))           \
    X(cublasLtMatmulPreferenceCreate, int, (blas_preference **))                                   \
    X(cublasLtMatmulPreferenceDestroy, int, (blas_preference *))                                   \
    X(cublasLtMatmulPreferenceSetAttribute, int, (blas_preference *, int, const void *, size_t))   \
    X(cublasLtMatmulAlgoGetHeuristic, int,                                                         \
      (blas_handle *, blas_product *, blas_matrix *, blas_matrix *, blas_matrix *, blas_matrix *,  \
       blas_preference *, int, blas_answer *, int *))                                              \
    X(cublasLtMatmul, int,                                                                         \
      (blas_handle *, blas_product *, const void *, const void *, blas_matrix *, const void *,     \
       blas_matrix *, const void *, const void *, blas_matrix *, void *, blas_matrix *,            \
       const blas_algorithm *, void *, size_t, cuda_stream *))

struct cuda_blas {
#define BLAS_FIELD(name, result, arguments) result(*name) arguments;
    BLAS_CALLS(BLAS_FIELD)
#undef BLAS_FIELD
    blas_handle *handle;
    blas_preference *preference;
    gpu_mem *workspace; /* one stream: what runs has it alone */
    char path[256];
};

/* One product, ready to start. */
typedef struct product {
    cuda_call call; /* first */
    blas_product *what;
    blas_matrix *b, *a, *y;
    blas_algorithm algorithm;
    gpu_product p;
} product;

/* ---- the library ---- */

static nori_status fill(cuda_blas *blas, void *library, nori_error *err)
{
#define BLAS_TAKE(name, result, arguments)                                                        \
    if (!nori__cuda_symbol(library, #name, &blas->name)) {                                        \
        return nori__fail(err, NORI_ERROR_UNAVAILABLE, "library %s lacks symbol %s, which "       \
                          "cuBLASLt of CUDA 11 has", blas->path, #name);                          \
    }
    BLAS_CALLS(BLAS_TAKE)
#undef BLAS_TAKE
    return NORI_OK;
}

static nori_status check(const cuda_blas *blas, int code, const char *what, nori_error *err)
{
    return code == 0 ? NORI_OK
                     : nori__fail(err, NORI_ERROR_UNAVAILABLE,
                                  "CUDA: %s gave %d (%s); cuda:cublaslt=none does without", what, code,
                                  blas->path);
}

static nori_status begin(cuda_self *self, cuda_blas *blas, nori_error *err)
{
    const size_t most = WORKSPACE;
    NORI__TRY(check(blas, blas->cublasLtCreate(&blas->handle), "cublasLtCreate", err));
    NORI__TRY(check(blas, blas->cublasLtMatmulPreferenceCreate(&blas->preference),
                    "cublasLtMatmulPreferenceCreate", err));
    NORI__TRY(check(blas,
                    blas->cublasLtMatmulPreferenceSetAttribute(blas->preference, BLAS_MOST_WORKSPACE,
                                                               &most, sizeof(most)),
                    "cublasLtMatmulPreferenceSetAttribute", err));
    blas->workspace = nori__gpu_buffer(&self->gpu, WORKSPACE, err);
    return blas->workspace ? NORI_OK : NORI_ERROR_MEMORY;
}

nori_status nori__cuda_blas_open(cuda_self *self, char *text, size_t size, nori_error *err)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"};
    char tried[512] = "";
    if (self->blas_want && nori__same(self->blas_want, "none")) {
        return NORI_OK;
    }
    cuda_blas *blas = nori__alloc_zero(&nori__malloc, sizeof(*blas));
    if (!blas) {
        return nori__no_memory(err);
    }
    void *library = nori__cuda_open_first(self->blas_want, names, NORI__COUNT(names), blas->path, tried,
                                          sizeof(tried));
    if (!library) {
        nori__release(&nori__malloc, blas, sizeof(*blas));
        return self->blas_want ? nori__fail(err, NORI_ERROR_UNAVAILABLE, "cuBLASLt is not here: %s", tried)
                               : NORI_OK;
    }
    self->blas = blas;
    nori_error why = {0};
    nori_status status = fill(blas, library, &why);
    status = status == NORI_OK ? begin(self, blas, &why) : status;
    if (status != NORI_OK) {
        nori__cuda_blas_close(self);
        return nori__cuda_without(self->blas_want, status, &why, text, size, err);
    }
    size_t version = blas->cublasLtGetVersion();
    snprintf(text, size, "cuBLASLt %zu.%zu", version / 10000, version % 10000 / 100);
    return NORI_OK;
}

void nori__cuda_blas_close(cuda_self *self)
{
    cuda_blas *blas = self->blas;
    if (!blas) {
        return;
    }
    nori__gpu_release(&self->gpu, blas->workspace);
    if (blas->preference) {
        blas->cublasLtMatmulPreferenceDestroy(blas->preference);
    }
    if (blas->handle) {
        blas->cublasLtDestroy(blas->handle);
    }
    nori__release(&nori__malloc, blas, sizeof(*blas));
    self->blas = NULL;
}

/* ---- a product ---- */

static void drop(cuda_self *self, cuda_call *call)
{
    const cuda_blas *blas = self->blas;
    product *c = (product *)(void *)call;
    blas_matrix *all[] = {c->a, c->b, c->y};
    for (size_t i = 0; i < NORI__COUNT(all); i++) {
        if (all[i]) {
            blas->cublasLtMatrixLayoutDestroy(all[i]);
        }
    }
    if (c->what) {
        blas->cublasLtMatmulDescDestroy(c->what);
    }
    nori__release(&nori__malloc, c, sizeof(*c));
}

static nori_status run(cuda_self *self, const cuda_call *call, nori_error *err)
{
    const cuda_blas *blas = self->blas;
    const product *c = (const product *)(const void *)call;
    const float none = 0;
    return check(blas,
                 blas->cublasLtMatmul(blas->handle, c->what, &c->p.alpha, c->p.b, c->b, c->p.a, c->a, &none,
                                      c->p.y, c->y, c->p.y, c->y, &c->algorithm, blas->workspace, WORKSPACE,
                                      self->stream),
                 "cublasLtMatmul", err);
}

/* How a matrix of rows and columns (strides in elements) is told: as it lies, its rows are columns there.
 * False: neither rows nor columns lie together. */
typedef struct seen {
    uint64_t rows, columns;
    int64_t apart;
    int operation;
} seen;

static bool see(int64_t rows, int64_t columns, int64_t by_row, int64_t by_column, seen *s)
{
    if (by_column == 1 && by_row >= columns) {
        *s = (seen){(uint64_t)columns, (uint64_t)rows, by_row, BLAS_PLAIN};
        return true;
    }
    if (by_row == 1 && by_column >= rows) {
        *s = (seen){(uint64_t)rows, (uint64_t)columns, by_column, BLAS_TURNED};
        return true;
    }
    return false;
}

static int make_matrix(const cuda_blas *blas, const seen *s, int64_t count, int64_t stride, blas_matrix **m)
{
    int32_t batches = (int32_t)count;
    int code = blas->cublasLtMatrixLayoutCreate(m, BLAS_FLOAT, s->rows, s->columns, s->apart);
    if (code == 0 && count > 1) {
        code = blas->cublasLtMatrixLayoutSetAttribute(*m, BLAS_BATCHES, &batches, sizeof(batches));
        code = code ? code
                    : blas->cublasLtMatrixLayoutSetAttribute(*m, BLAS_BATCH_STRIDE, &stride, sizeof(stride));
    }
    return code;
}

static int describe(const cuda_blas *blas, product *c, const seen *a, const seen *b)
{
    const gpu_product *p = &c->p;
    int32_t end = p->bias ? (p->relu ? BLAS_END_BIAS_RELU : BLAS_END_BIAS)
                          : (p->relu ? BLAS_END_RELU : BLAS_END_NONE);
    const seen y = {(uint64_t)p->n, (uint64_t)p->m, p->n, BLAS_PLAIN};
    int32_t turn_b = b->operation, turn_a = a->operation;
    int code = blas->cublasLtMatmulDescCreate(&c->what, BLAS_COMPUTE_32F, BLAS_FLOAT);
#define SET(attribute, value)                                                                   \
    code = code ? code                                                                          \
                : blas->cublasLtMatmulDescSetAttribute(c->what, attribute, &(value), sizeof(value))
    SET(BLAS_TURN_A, turn_b); /* the library's first matrix is b */
    SET(BLAS_TURN_B, turn_a);
    SET(BLAS_EPILOGUE, end);
    if (p->bias) {
        SET(BLAS_BIAS, p->bias);
    }
#undef SET
    code = code ? code : make_matrix(blas, b, p->count, p->by_b, &c->b);
    code = code ? code : make_matrix(blas, a, p->count, p->by_a, &c->a);
    return code ? code : make_matrix(blas, &y, p->count, p->m * p->n, &c->y);
}

void *nori__cuda_product(gpu_self *user, const gpu_product *p, nori_error *err)
{
    cuda_self *self = (cuda_self *)user;
    const cuda_blas *blas = self->blas;
    seen a, b;
    blas_answer answer = {0};
    int found = 0;
    if (p->m < 1 || p->n < 1 || p->k < 1 || p->count < 1 || p->count > INT32_MAX ||
        !see(p->m, p->k, p->a_row, p->a_k, &a) || !see(p->k, p->n, p->b_k, p->b_column, &b)) {
        return NULL;
    }
    product *c = nori__alloc_zero(&nori__malloc, sizeof(*c));
    if (!c) {
        nori__no_memory(err);
        return NULL;
    }
    c->call = (cuda_call){run, drop};
    c->p = *p;
    nori_status status = check(blas, describe(blas, c, &a, &b), "describing a product to cuBLASLt", err);
    int code = status == NORI_OK
                   ? blas->cublasLtMatmulAlgoGetHeuristic(blas->handle, c->what, c->b, c->a, c->y, c->y,
                                                          blas->preference, 1, &answer, &found)
                   : 1;
    if (code != 0 || found < 1 || answer.state != 0 || answer.workspace > WORKSPACE) {
        drop(self, &c->call); /* own kernels then, unless describing failed */
        return NULL;
    }
    c->algorithm = answer.algorithm;
    return c;
}

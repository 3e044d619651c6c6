/* cuda_libraries_double.c: the calls of cuBLASLt and cuDNN that nori uses, for the double of NVIDIA's
 * libraries (cuda_double.c). Looked at: handles are alive, the context is current; matrices are as large as
 * their operation wants, leading dimensions reach over a column, batches follow each other; everything a
 * product or convolution touches is memory of the device, lies at multiples of 16 bytes, and is not both
 * read and written; the workspace is as large as the algorithm said. Then they compute, in double.
 * CUDA_DOUBLE_REFUSE: "product" or "convolution", for which no algorithm is found. Built with
 * WITHOUT_MATMUL it lacks a symbol. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_double.h"

enum { NOT_INITIALIZED = 1, ALLOC_FAILED = 3, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
#define MOST_ALIVE 1024
#define NEED(what, text)                                  \
    if (!(what)) {                                        \
        return double_wrong(INVALID_VALUE, text);         \
    }

/* ---- what is alive ---- */

static void *alive[MOST_ALIVE];

static int is_alive(const void *p)
{
    for (int i = 0; i < MOST_ALIVE; i++) {
        if (p && alive[i] == p) {
            return 1;
        }
    }
    return 0;
}

static int create(void **made, size_t size)
{
    for (int i = 0; i < MOST_ALIVE; i++) {
        if (!alive[i]) {
            *made = alive[i] = calloc(1, size);
            double_add("handles", *made != NULL);
            return *made ? 0 : ALLOC_FAILED;
        }
    }
    return ALLOC_FAILED;
}

static int destroy(void *p)
{
    for (int i = 0; i < MOST_ALIVE; i++) {
        if (p && alive[i] == p) {
            alive[i] = NULL;
            free(p);
            double_add("handles", -1);
            return 0;
        }
    }
    return double_wrong(INVALID_VALUE, "what is destroyed is not alive");
}

static int refused(const char *what)
{
    const char *text = getenv("CUDA_DOUBLE_REFUSE");
    return text && strcmp(text, what) == 0;
}

/* ---- cuBLASLt ---- */

typedef struct product {
    int compute, scale, turn_a, turn_b, end;
    const float *bias;
} product;

typedef struct matrix {
    int type;
    uint64_t rows, columns;
    int64_t apart, stride;
    int32_t count;
} matrix;

typedef struct answer {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} answer;

#define ALGORITHM 0xa190 /* any other is not one of ours */
#define BLAS_WORKSPACE 4096

size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void)
{
    return 120405;
}

int cublasLtCreate(void **handle);
int cublasLtCreate(void **handle)
{
    NEED(double_context(), "cublasLtCreate without a context")
    return create(handle, 8);
}

#define DESTROY(name)   \
    int name(void *p);  \
    int name(void *p)   \
    {                   \
        return destroy(p); \
    }
DESTROY(cublasLtDestroy)
DESTROY(cublasLtMatmulDescDestroy)
DESTROY(cublasLtMatrixLayoutDestroy)
DESTROY(cublasLtMatmulPreferenceDestroy)

int cublasLtMatmulDescCreate(void **made, int compute, int scale);
int cublasLtMatmulDescCreate(void **made, int compute, int scale)
{
    NEED(compute == 68 && scale == 0, "a product is not in fp32")
    int code = create(made, sizeof(product));
    if (code == 0) {
        *(product *)*made = (product){.compute = compute, .scale = scale, .end = 1};
    }
    return code;
}

int cublasLtMatmulDescSetAttribute(void *p, int attribute, const void *value, size_t size);
int cublasLtMatmulDescSetAttribute(void *p, int attribute, const void *value, size_t size)
{
    product *d = p;
    int32_t v = 0;
    NEED(is_alive(p), "an attribute of no product")
    if (attribute == 8) {
        NEED(size == sizeof(void *), "a bias is a pointer")
        memcpy(&d->bias, value, size);
        return 0;
    }
    NEED(size == sizeof(v), "an attribute of another size")
    memcpy(&v, value, size);
    NEED(attribute == 3 || attribute == 4 || attribute == 7, "no such attribute of a product")
    NEED(attribute == 7 ? v == 1 || v == 2 || v == 4 || v == 6 : v == 0 || v == 1, "no such value")
    *(attribute == 3 ? &d->turn_a : attribute == 4 ? &d->turn_b : &d->end) = v;
    return 0;
}

int cublasLtMatrixLayoutCreate(void **made, int type, uint64_t rows, uint64_t columns, int64_t apart);
int cublasLtMatrixLayoutCreate(void **made, int type, uint64_t rows, uint64_t columns, int64_t apart)
{
    NEED(type == 0, "a matrix is not of floats")
    NEED(rows > 0 && columns > 0, "a matrix is empty")
    NEED(apart >= (int64_t)rows, "a leading dimension does not reach over a column")
    int code = create(made, sizeof(matrix));
    if (code == 0) {
        *(matrix *)*made = (matrix){type, rows, columns, apart, 0, 1};
    }
    return code;
}

int cublasLtMatrixLayoutSetAttribute(void *p, int attribute, const void *value, size_t size);
int cublasLtMatrixLayoutSetAttribute(void *p, int attribute, const void *value, size_t size)
{
    matrix *m = p;
    NEED(is_alive(p), "an attribute of no matrix")
    NEED((attribute == 5 && size == 4) || (attribute == 6 && size == 8), "no such attribute of a matrix")
    if (attribute == 5) {
        memcpy(&m->count, value, size);
    } else {
        memcpy(&m->stride, value, size);
    }
    return 0;
}

int cublasLtMatmulPreferenceCreate(void **made);
int cublasLtMatmulPreferenceCreate(void **made)
{
    return create(made, sizeof(size_t));
}

int cublasLtMatmulPreferenceSetAttribute(void *p, int attribute, const void *value, size_t size);
int cublasLtMatmulPreferenceSetAttribute(void *p, int attribute, const void *value, size_t size)
{
    NEED(is_alive(p) && attribute == 1 && size == sizeof(size_t), "no such preference")
    memcpy(p, value, size);
    return 0;
}

/* What the four matrices must be to each other. */
static int fit(const product *d, const matrix *a, const matrix *b, const matrix *c, const matrix *y)
{
    NEED(is_alive(d) && is_alive(a) && is_alive(b) && is_alive(c) && is_alive(y),
         "a product of what is not alive")
    uint64_t m = d->turn_a ? a->columns : a->rows, k = d->turn_a ? a->rows : a->columns;
    uint64_t n = d->turn_b ? b->rows : b->columns;
    NEED(k == (d->turn_b ? b->columns : b->rows), "matrices do not fit each other")
    NEED(y->rows == m && y->columns == n && c->rows == m && c->columns == n, "a result of another size")
    NEED(a->count == y->count && b->count == y->count && c->count == y->count, "batches differ")
    NEED(y->count == 1 || y->stride >= y->apart * (int64_t)y->columns, "results overlap")
    NEED(!(d->end & 4) || d->bias, "an epilogue wants a bias")
    return 0;
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *what, void *a, void *b, void *c, void *y,
                                   void *preference, int most, answer *answers, int *found);
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *what, void *a, void *b, void *c, void *y,
                                   void *preference, int most, answer *answers, int *found)
{
    *found = 0;
    NEED(is_alive(handle) && is_alive(preference) && most > 0, "no handle, or no preference")
    int code = fit(what, a, b, c, y);
    if (code != 0 || refused("product")) {
        return code ? code : NOT_SUPPORTED;
    }
    NEED(*(size_t *)preference >= BLAS_WORKSPACE, "less workspace than any algorithm wants")
    *answers = (answer){.algorithm = {ALGORITHM}, .workspace = BLAS_WORKSPACE};
    *found = 1;
    return 0;
}

typedef struct multiplying {
    product d;
    matrix a, b, y;
    const float *pa, *pb;
    float *py, alpha;
} multiplying;

static const char *multiply(const void *what)
{
    const multiplying *w = what;
    const product *d = &w->d;
    uint64_t k = d->turn_a ? w->a.rows : w->a.columns;
    for (int64_t z = 0; z < w->y.count; z++) {
        const float *a = w->pa + z * w->a.stride, *b = w->pb + z * w->b.stride;
        float *y = w->py + z * w->y.stride;
        for (int64_t j = 0; j < (int64_t)w->y.columns; j++) {
            for (int64_t i = 0; i < (int64_t)w->y.rows; i++) {
                double sum = 0;
                for (int64_t e = 0; e < (int64_t)k; e++) {
                    double p = (double)a[d->turn_a ? e + i * w->a.apart : i + e * w->a.apart];
                    sum += p * (double)b[d->turn_b ? j + e * w->b.apart : e + j * w->b.apart];
                }
                sum = sum * (double)w->alpha + (d->end & 4 ? (double)d->bias[i] : 0);
                y[i + j * w->y.apart] = (float)(d->end & 2 && sum < 0 ? 0 : sum);
            }
        }
    }
    return NULL;
}

/* All that a matrix's batches lie over. */
static int lies(const float *p, const matrix *m, const char *text)
{
    int64_t last = (m->count - 1) * m->stride + ((int64_t)m->columns - 1) * m->apart + (int64_t)m->rows;
    NEED((uintptr_t)p % 16 == 0, "a matrix does not lie at a multiple of 16 bytes")
    NEED(double_within(p, (size_t)last * sizeof(float)), text)
    return 0;
}

#ifdef WITHOUT_MATMUL /* the library of this kind lacks one symbol */
#define cublasLtMatmul cuda_double_hidden_matmul
#endif
int cublasLtMatmul(void *handle, void *what, const float *alpha, const float *a, const matrix *ma,
                   const float *b, const matrix *mb, const float *beta, const float *c, const matrix *mc,
                   float *y, const matrix *my, const uint64_t *algorithm, void *workspace, size_t bytes,
                   void *stream);
int cublasLtMatmul(void *handle, void *what, const float *alpha, const float *a, const matrix *ma,
                   const float *b, const matrix *mb, const float *beta, const float *c, const matrix *mc,
                   float *y, const matrix *my, const uint64_t *algorithm, void *workspace, size_t bytes,
                   void *stream)
{
    NEED(is_alive(handle) && double_context() && double_stream(stream), "a product without its handle, "
         "context or stream")
    int code = fit(what, ma, mb, mc, my);
    code = code ? code : lies(a, ma, "a product reads beyond memory of the device");
    code = code ? code : lies(b, mb, "a product reads beyond memory of the device");
    code = code ? code : lies(y, my, "a product writes beyond memory of the device");
    if (code != 0) {
        return code;
    }
    const product *d = what;
    NEED(algorithm && algorithm[0] == ALGORITHM, "an algorithm that was not found for this")
    NEED(bytes >= BLAS_WORKSPACE && (uintptr_t)workspace % 16 == 0 && double_within(workspace, bytes),
         "a workspace too small, or not of the device")
    NEED(*beta == 0 && c == y && y != a && y != b, "what is written is read")
    NEED(!(d->end & 4) || double_within(d->bias, my->rows * sizeof(float)), "a bias beyond memory")
    const multiplying w = {*d, *ma, *mb, *my, a, b, y, *alpha};
    double_add("products", 1);
    return double_later(multiply, &w, sizeof(w));
}

/* ---- cuDNN ---- */

typedef struct tensor {
    int n, c, h, w;
} tensor;

typedef struct filter {
    int k, c, h, w;
} filter;

typedef struct window {
    int pad[2], stride[2], dilation[2], groups, math;
} window;

typedef struct dnn_answer {
    int algorithm, status;
    float time;
    size_t memory;
    int deterministic, math, reserved[3];
} dnn_answer;

#define DNN_WORKSPACE 2048
#define DNN_ALGORITHM 6

size_t cudnnGetVersion(void);
size_t cudnnGetVersion(void)
{
    return 8907;
}

int cudnnCreate(void **handle);
int cudnnCreate(void **handle)
{
    NEED(double_context(), "cudnnCreate without a context")
    return create(handle, sizeof(void *));
}

int cudnnSetStream(void *handle, void *stream);
int cudnnSetStream(void *handle, void *stream)
{
    NEED(is_alive(handle) && double_stream(stream), "no handle, or no stream")
    memcpy(handle, &stream, sizeof(stream));
    return 0;
}

DESTROY(cudnnDestroy)
DESTROY(cudnnDestroyTensorDescriptor)
DESTROY(cudnnDestroyFilterDescriptor)
DESTROY(cudnnDestroyConvolutionDescriptor)
#define CREATE(name, type)              \
    int name(void **made);              \
    int name(void **made)               \
    {                                   \
        return create(made, sizeof(type)); \
    }
CREATE(cudnnCreateTensorDescriptor, tensor)
CREATE(cudnnCreateFilterDescriptor, filter)
CREATE(cudnnCreateConvolutionDescriptor, window)

int cudnnSetTensor4dDescriptor(void *p, int format, int type, int n, int c, int h, int w);
int cudnnSetTensor4dDescriptor(void *p, int format, int type, int n, int c, int h, int w)
{
    NEED(is_alive(p) && format == 0 && type == 0, "no tensor of floats, channels first")
    NEED(n > 0 && c > 0 && h > 0 && w > 0, "a tensor is empty")
    *(tensor *)p = (tensor){n, c, h, w};
    return 0;
}

int cudnnSetFilter4dDescriptor(void *p, int type, int format, int k, int c, int h, int w);
int cudnnSetFilter4dDescriptor(void *p, int type, int format, int k, int c, int h, int w)
{
    NEED(is_alive(p) && format == 0 && type == 0, "no filter of floats, channels first")
    NEED(k > 0 && c > 0 && h > 0 && w > 0, "a filter is empty")
    *(filter *)p = (filter){k, c, h, w};
    return 0;
}

int cudnnSetConvolution2dDescriptor(void *p, int pad_h, int pad_w, int step_h, int step_w, int high, int wide,
                                    int mode, int type);
int cudnnSetConvolution2dDescriptor(void *p, int pad_h, int pad_w, int step_h, int step_w, int high, int wide,
                                    int mode, int type)
{
    NEED(is_alive(p) && mode == 1 && type == 0, "no correlation in fp32")
    NEED(pad_h >= 0 && pad_w >= 0 && step_h > 0 && step_w > 0 && high > 0 && wide > 0, "no such window")
    *(window *)p = (window){{pad_h, pad_w}, {step_h, step_w}, {high, wide}, 1, 0};
    return 0;
}

int cudnnSetConvolutionGroupCount(void *p, int groups);
int cudnnSetConvolutionGroupCount(void *p, int groups)
{
    NEED(is_alive(p) && groups > 0, "no such groups")
    ((window *)p)->groups = groups;
    return 0;
}

int cudnnSetConvolutionMathType(void *p, int math);
int cudnnSetConvolutionMathType(void *p, int math)
{
    NEED(is_alive(p) && math >= 0 && math <= 3, "no such arithmetic")
    ((window *)p)->math = math;
    return 0;
}

static int made(int in, int pad, int kernel, int dilation, int stride)
{
    return (in + 2 * pad - ((kernel - 1) * dilation + 1)) / stride + 1;
}

static int windows_fit(const tensor *x, const filter *w, const window *v, const tensor *y)
{
    NEED(is_alive(x) && is_alive(w) && is_alive(v) && is_alive(y), "a convolution of what is not alive")
    NEED(x->c == w->c * v->groups && w->k % v->groups == 0, "filters do not fit their groups")
    NEED(y->n == x->n && y->c == w->k, "a result of another size")
    NEED(y->h == made(x->h, v->pad[0], w->h, v->dilation[0], v->stride[0]) &&
             y->w == made(x->w, v->pad[1], w->w, v->dilation[1], v->stride[1]),
         "a result of another size than the window makes")
    NEED(v->math == 3, "arithmetic other than fp32 may be used")
    return 0;
}

int cudnnGetConvolutionForwardAlgorithm_v7(void *handle, void *x, void *w, void *v, void *y, int most,
                                           int *found, dnn_answer *answers);
int cudnnGetConvolutionForwardAlgorithm_v7(void *handle, void *x, void *w, void *v, void *y, int most,
                                           int *found, dnn_answer *answers)
{
    *found = 0;
    NEED(is_alive(handle) && most >= 3, "no handle, or no room for answers")
    int code = windows_fit(x, w, v, y);
    if (code != 0 || refused("convolution")) {
        return code ? code : NOT_SUPPORTED;
    }
    /* one that is not supported, one on tensor cores, and one to take */
    answers[0] = (dnn_answer){.algorithm = 4, .status = 9};
    answers[1] = (dnn_answer){.algorithm = 1, .math = 1};
    answers[2] = (dnn_answer){.algorithm = DNN_ALGORITHM, .memory = DNN_WORKSPACE, .math = 3};
    *found = 3;
    return 0;
}

typedef struct convolving {
    tensor x, y;
    filter w;
    window v;
    const float *px, *pw;
    float *py;
} convolving;

static double convolve_at(const convolving *c, int n, int k, int h, int w)
{
    int per = c->w.k / c->v.groups, first = k / per * c->w.c;
    double sum = 0;
    for (int i = 0; i < c->w.c; i++) {
        for (int r = 0; r < c->w.h; r++) {
            for (int s = 0; s < c->w.w; s++) {
                int row = h * c->v.stride[0] - c->v.pad[0] + r * c->v.dilation[0];
                int column = w * c->v.stride[1] - c->v.pad[1] + s * c->v.dilation[1];
                if (row >= 0 && row < c->x.h && column >= 0 && column < c->x.w) {
                    double e = (double)c->px[((n * c->x.c + first + i) * c->x.h + row) * c->x.w + column];
                    sum += e * (double)c->pw[((k * c->w.c + i) * c->w.h + r) * c->w.w + s];
                }
            }
        }
    }
    return sum;
}

static const char *convolve(const void *what)
{
    const convolving *c = what;
    int count = c->y.n * c->y.c * c->y.h * c->y.w;
    for (int i = 0; i < count; i++) {
        int w = i % c->y.w, h = i / c->y.w % c->y.h, k = i / c->y.w / c->y.h % c->y.c;
        c->py[i] = (float)convolve_at(c, i / c->y.w / c->y.h / c->y.c, k, h, w);
    }
    return NULL;
}

static int tensor_lies(const float *p, const tensor *t)
{
    size_t count = (size_t)t->n * (size_t)t->c * (size_t)t->h * (size_t)t->w;
    NEED((uintptr_t)p % 16 == 0 && double_within(p, count * sizeof(float)),
         "a convolution goes beyond memory of the device")
    return 0;
}

int cudnnConvolutionForward(void **handle, const float *alpha, const tensor *mx, const float *x,
                            const filter *mw, const float *w, const window *v, int algorithm,
                            void *workspace, size_t bytes, const float *beta, const tensor *my, float *y);
int cudnnConvolutionForward(void **handle, const float *alpha, const tensor *mx, const float *x,
                            const filter *mw, const float *w, const window *v, int algorithm,
                            void *workspace, size_t bytes, const float *beta, const tensor *my, float *y)
{
    NEED(is_alive(handle) && double_context() && double_stream(*handle), "a convolution without its handle, "
         "context or stream")
    int code = windows_fit(mx, mw, v, my);
    code = code ? code : tensor_lies(x, mx);
    code = code ? code : tensor_lies(w, &(tensor){mw->k, mw->c, mw->h, mw->w});
    code = code ? code : tensor_lies(y, my);
    if (code != 0) {
        return code;
    }
    NEED(algorithm == DNN_ALGORITHM && *alpha == 1 && *beta == 0 && y != x && y != w,
         "an algorithm that was not found, or what is written is read")
    NEED(bytes >= DNN_WORKSPACE && double_within(workspace, bytes), "a workspace too small")
    const convolving c = {*mx, *my, *mw, *v, x, w, y};
    double_add("convolutions", 1);
    return double_later(convolve, &c, sizeof(c));
}

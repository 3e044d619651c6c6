/* cuda_dnn.c: convolutions by cuDNN (8 or newer), in fp32 without TF32; bias and what follows are a kernel
 * of nori's own. Numbers and signatures are those of its stable C interface. */
#include <stdio.h>

#include "providers/cuda/cuda.h"

#define ALGORITHMS 8
#define MOST_WORKSPACE ((size_t)256 << 20)

enum {
    DNN_FLOAT = 0,
    DNN_CHANNELS_FIRST = 0,
    DNN_CORRELATION = 1, /* what ONNX calls convolution */
    DNN_ANY_MATH = 0,    /* what an answer may say of an algorithm without tensor cores */
    DNN_PLAIN_MATH = 3,  /* multiply and add in fp32, no tensor cores: asked for */
    DNN_OLDEST = 8000
};

typedef struct dnn_handle dnn_handle;
typedef struct dnn_tensor dnn_tensor;
typedef struct dnn_filter dnn_filter;
typedef struct dnn_window dnn_window;

typedef struct dnn_answer {
    int algorithm, status;
    float time;
    size_t memory;
    int deterministic, math, reserved[3];
} dnn_answer;

#define DNN_CALLS(X)                                                                               \
    X(cudnnGetVersion, size_t, (void))                                                             \
    X(cudnnCreate, int, (dnn_handle **))                                                           \
    X(cudnnDestroy, int, (dnn_handle *))                                                           \
    X(cudnnSetStream, int, (dnn_handle *, cuda_stream *))                                          \
    X(cudnnCreateTensorDescriptor, int, (dnn_tensor **))                                           \
    X(cudnnSetTensor4dDescriptor, int, (dnn_tensor *, int, int, int, int, int, int))               \
    X(cudnnDestroyTensorDescriptor, int, (dnn_tensor *))                                           \
    X(cudnnCreateFilterDescriptor, int, (dnn_filter **))                                           \
    X(cudnnSetFilter4dDescriptor, int, (dnn_filter *, int, int, int, int, int, int))               \
    X(cudnnDestroyFilterDescriptor, int, (dnn_filter *))                                           \
    X(cudnnCreateConvolutionDescriptor, int, (dnn_window **))                                      \
    X(cudnnSetConvolution2dDescriptor, int, (dnn_window *, int, int, int, int, int, int, int, int)) \
    X(cudnnSetConvolutionGroupCount, int, (dnn_window *, int))                                     \
    X(cudnnSetConvolutionMathType, int, (dnn_window *, int))                                       \
    X(cudnnDestroyConvolutionDescriptor, int, (dnn_window *))                                      \
    X(cudnnGetConvolutionForwardAlgorithm_v7, int,                                                 \
      (dnn_handle *, const dnn_tensor *, const dnn_filter *, const dnn_window *, const dnn_tensor *, \
       int, int *, dnn_answer *))                                                                  \
    X(cudnnConvolutionForward, int,                                                                \
      (dnn_handle *, const void *, const dnn_tensor *, const void *, const dnn_filter *, const void *, \
       const dnn_window *, int, void *, size_t, const void *, const dnn_tensor *, void *))

struct cuda_dnn {
#define DNN_FIELD(name, result, arguments) result(*name) arguments;
    DNN_CALLS(DNN_FIELD)
#undef DNN_FIELD
    dnn_handle *handle;
    char path[256];
};

/* One convolution, ready to start. */
typedef struct convolution {
    cuda_call call; /* first */
    dnn_tensor *x, *y;
    dnn_filter *w;
    dnn_window *window;
    int algorithm;
    gpu_mem *workspace; /* its own: others' may be recorded with theirs */
    size_t workspace_bytes;
    gpu_convolution c;
} convolution;

/* ---- the library ---- */

static nori_status fill(cuda_dnn *dnn, void *library, nori_error *err)
{
#define DNN_TAKE(name, result, arguments)                                                          \
    if (!nori__cuda_symbol(library, #name, &dnn->name)) {                                          \
        return nori__fail(err, NORI_ERROR_UNAVAILABLE, "library %s lacks symbol %s, which cuDNN 8 " \
                          "has", dnn->path, #name);                                                \
    }
    DNN_CALLS(DNN_TAKE)
#undef DNN_TAKE
    return NORI_OK;
}

static nori_status check(const cuda_dnn *dnn, int code, const char *what, nori_error *err)
{
    return code == 0 ? NORI_OK
                     : nori__fail(err, NORI_ERROR_UNAVAILABLE,
                                  "CUDA: %s gave %d (%s); cuda:cudnn=none does without", what, code,
                                  dnn->path);
}

/* 8907 is 8.9.7, 90100 is 9.1.0. */
static nori_status begin(cuda_self *self, cuda_dnn *dnn, char *text, size_t size, nori_error *err)
{
    size_t version = dnn->cudnnGetVersion(), major = version < 10000 ? 1000 : 10000;
    snprintf(text, size, "cuDNN %zu.%zu", version / major, version % major / 100);
    if (version < DNN_OLDEST) {
        return nori__fail(err, NORI_ERROR_UNAVAILABLE, "library %s is %s, cuDNN 8 or newer was expected",
                          dnn->path, text);
    }
    NORI__TRY(check(dnn, dnn->cudnnCreate(&dnn->handle), "cudnnCreate", err));
    return check(dnn, dnn->cudnnSetStream(dnn->handle, self->stream), "cudnnSetStream", err);
}

nori_status nori__cuda_dnn_open(cuda_self *self, char *text, size_t size, nori_error *err)
{
    static const char *const names[] = {"libcudnn.so.9", "libcudnn.so.8"};
    char tried[512] = "";
    if (self->dnn_want && nori__same(self->dnn_want, "none")) {
        return NORI_OK;
    }
    cuda_dnn *dnn = nori__alloc_zero(&nori__malloc, sizeof(*dnn));
    if (!dnn) {
        return nori__no_memory(err);
    }
    void *library = nori__cuda_open_first(self->dnn_want, names, NORI__COUNT(names), dnn->path, tried,
                                          sizeof(tried));
    if (!library) {
        nori__release(&nori__malloc, dnn, sizeof(*dnn));
        return self->dnn_want ? nori__fail(err, NORI_ERROR_UNAVAILABLE, "cuDNN is not here: %s", tried)
                              : NORI_OK;
    }
    self->dnn = dnn;
    nori_error why = {0};
    nori_status status = fill(dnn, library, &why);
    status = status == NORI_OK ? begin(self, dnn, text, size, &why) : status;
    if (status != NORI_OK) {
        nori__cuda_dnn_close(self);
        return nori__cuda_without(self->dnn_want, status, &why, text, size, err);
    }
    return NORI_OK;
}

void nori__cuda_dnn_close(cuda_self *self)
{
    cuda_dnn *dnn = self->dnn;
    if (dnn && dnn->handle) {
        dnn->cudnnDestroy(dnn->handle);
    }
    nori__release(&nori__malloc, dnn, sizeof(*dnn));
    self->dnn = NULL;
}

/* ---- a convolution ---- */

static void drop(cuda_self *self, cuda_call *call)
{
    const cuda_dnn *dnn = self->dnn;
    convolution *c = (convolution *)(void *)call;
    nori__gpu_release(&self->gpu, c->workspace);
    if (c->window) {
        dnn->cudnnDestroyConvolutionDescriptor(c->window);
    }
    if (c->w) {
        dnn->cudnnDestroyFilterDescriptor(c->w);
    }
    if (c->x) {
        dnn->cudnnDestroyTensorDescriptor(c->x);
    }
    if (c->y) {
        dnn->cudnnDestroyTensorDescriptor(c->y);
    }
    nori__release(&nori__malloc, c, sizeof(*c));
}

static nori_status run(cuda_self *self, const cuda_call *call, nori_error *err)
{
    const cuda_dnn *dnn = self->dnn;
    const convolution *c = (const convolution *)(const void *)call;
    const float one = 1, none = 0;
    return check(dnn,
                 dnn->cudnnConvolutionForward(dnn->handle, &one, c->x, c->c.x, c->w, c->c.w, c->window,
                                              c->algorithm, c->workspace, c->workspace_bytes, &none, c->y,
                                              c->c.y),
                 "cudnnConvolutionForward", err);
}

static int set_tensor(const cuda_dnn *dnn, dnn_tensor **t, int64_t n, int64_t c, const int64_t size[2])
{
    int code = dnn->cudnnCreateTensorDescriptor(t);
    return code ? code
                : dnn->cudnnSetTensor4dDescriptor(*t, DNN_CHANNELS_FIRST, DNN_FLOAT, (int)n, (int)c,
                                                  (int)size[0], (int)size[1]);
}

static int describe(const cuda_dnn *dnn, convolution *c)
{
    const gpu_convolution *g = &c->c;
    int code = set_tensor(dnn, &c->x, g->batch, g->groups * g->in, g->size);
    code = code ? code : set_tensor(dnn, &c->y, g->batch, g->groups * g->out, g->made);
    code = code ? code : dnn->cudnnCreateFilterDescriptor(&c->w);
    code = code ? code
                : dnn->cudnnSetFilter4dDescriptor(c->w, DNN_FLOAT, DNN_CHANNELS_FIRST,
                                                  (int)(g->groups * g->out), (int)g->in,
                                                  (int)g->kernel[0], (int)g->kernel[1]);
    code = code ? code : dnn->cudnnCreateConvolutionDescriptor(&c->window);
    code = code ? code
                : dnn->cudnnSetConvolution2dDescriptor(
                      c->window, (int)g->pad[0], (int)g->pad[1], (int)g->stride[0], (int)g->stride[1],
                      (int)g->dilation[0], (int)g->dilation[1], DNN_CORRELATION, DNN_FLOAT);
    code = code ? code : dnn->cudnnSetConvolutionGroupCount(c->window, (int)g->groups);
    return code ? code : dnn->cudnnSetConvolutionMathType(c->window, DNN_PLAIN_MATH);
}

/* The first that works without tensor cores and in what memory may be had; -1: none. */
static int choose(const cuda_dnn *dnn, const convolution *c, size_t *bytes)
{
    dnn_answer answers[ALGORITHMS];
    int found = 0;
    if (dnn->cudnnGetConvolutionForwardAlgorithm_v7(dnn->handle, c->x, c->w, c->window, c->y, ALGORITHMS,
                                                    &found, answers) != 0) {
        return -1;
    }
    for (int i = 0; i < found && i < ALGORITHMS; i++) {
        if (answers[i].status == 0 && answers[i].memory <= MOST_WORKSPACE &&
            (answers[i].math == DNN_PLAIN_MATH || answers[i].math == DNN_ANY_MATH)) {
            *bytes = answers[i].memory;
            return answers[i].algorithm;
        }
    }
    return -1;
}

void *nori__cuda_convolution(gpu_self *user, const gpu_convolution *given, nori_error *err)
{
    cuda_self *self = (cuda_self *)user;
    const cuda_dnn *dnn = self->dnn;
    bool empty = given->batch < 1 || given->in < 1 || given->out < 1;
    for (int d = 0; d < 2; d++) {
        empty = empty || given->size[d] < 1 || given->made[d] < 1;
    }
    convolution *c = empty ? NULL : nori__alloc_zero(&nori__malloc, sizeof(*c));
    if (!c) {
        if (!empty) {
            nori__no_memory(err);
        }
        return NULL;
    }
    c->call = (cuda_call){run, drop};
    c->c = *given;
    nori_status status = check(dnn, describe(dnn, c), "describing a convolution to cuDNN", err);
    c->algorithm = status == NORI_OK ? choose(dnn, c, &c->workspace_bytes) : -1;
    if (c->algorithm >= 0 && c->workspace_bytes > 0) {
        c->workspace = nori__gpu_buffer(user, c->workspace_bytes, err);
    }
    if (c->algorithm < 0 || (c->workspace_bytes > 0 && !c->workspace)) {
        drop(self, &c->call);
        return NULL;
    }
    return c;
}

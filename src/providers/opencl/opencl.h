/* opencl.h: what the files of opencl/ share: parts of a graph on an OpenCL 1.2 device.
 *
 * No header of OpenCL is used and nothing is linked: the loader (libOpenCL.so.1) is opened when a
 * session asks for the provider, and what is declared here are the numbers and signatures of its
 * stable C interface.
 *
 * Flow: open finds loader, platform and device (ocl_open.c); claim looks operators up in one table
 * (ocl_ops.c); compile packs weights and builds programs (ocl_part.c, ocl_program.c); the first run
 * with new input shapes lays the part out: buffers and kernels with their arguments
 * (ocl_layout.c, op_*.c); every run copies in, enqueues, copies out (ocl_run.c). */
#ifndef NORI_PROVIDERS_OPENCL_OPENCL_H
#define NORI_PROVIDERS_OPENCL_OPENCL_H

#include "plan/part.h"
#include "providers/providers.h"

/* ---- the interface of OpenCL ---- */

typedef struct ocl_platform ocl_platform;
typedef struct ocl_device ocl_device;
typedef struct ocl_context ocl_context;
typedef struct ocl_queue ocl_queue;
typedef struct ocl_mem ocl_mem;
typedef struct ocl_program ocl_program;
typedef struct ocl_kernel ocl_kernel;

enum {
    OCL_DEVICE_TYPE_CPU = 1 << 1,
    OCL_DEVICE_TYPE_GPU = 1 << 2,
    OCL_DEVICE_TYPE_ACCELERATOR = 1 << 3,
    OCL_PLATFORM_VERSION = 0x0901,
    OCL_PLATFORM_NAME = 0x0902,
    OCL_DEVICE_TYPE = 0x1000,
    OCL_DEVICE_COMPUTE_UNITS = 0x1002,
    OCL_DEVICE_GROUP_SIZE = 0x1004,
    OCL_DEVICE_ITEM_SIZES = 0x1005,
    OCL_DEVICE_CLOCK_MHZ = 0x100C,
    OCL_DEVICE_MAX_ALLOC = 0x1010,
    OCL_DEVICE_GLOBAL_MEMORY = 0x101F,
    OCL_DEVICE_LOCAL_MEMORY = 0x1023,
    OCL_DEVICE_COMPILER = 0x1028,
    OCL_DEVICE_AVAILABLE = 0x1027,
    OCL_DEVICE_NAME = 0x102B,
    OCL_DRIVER_VERSION = 0x102D,
    OCL_DEVICE_VERSION = 0x102F,
    OCL_DEVICE_UNIFIED_MEMORY = 0x1035,
    OCL_MEM_READ_WRITE = 1,
    OCL_MEM_READ_ONLY = 1 << 2,
    OCL_MEM_ALLOC_HOST = 1 << 4,
    OCL_MEM_COPY_HOST = 1 << 5,
    OCL_MAP_READ = 1,
    OCL_MAP_WRITE_INVALIDATE = 1 << 2,
    OCL_PROGRAM_BINARY_SIZES = 0x1165,
    OCL_PROGRAM_BINARIES = 0x1166,
    OCL_BUILD_LOG = 0x1183,
    OCL_KERNEL_GROUP_SIZE = 0x11B0
};

/* The calls used, all of OpenCL 1.2 or older: name, result, arguments. */
#define OCL_CALLS(X)                                                                              \
    X(clGetPlatformIDs, int32_t, (uint32_t, ocl_platform **, uint32_t *))                         \
    X(clGetPlatformInfo, int32_t, (ocl_platform *, uint32_t, size_t, void *, size_t *))           \
    X(clGetDeviceIDs, int32_t, (ocl_platform *, uint64_t, uint32_t, ocl_device **, uint32_t *))   \
    X(clGetDeviceInfo, int32_t, (ocl_device *, uint32_t, size_t, void *, size_t *))               \
    X(clCreateContext, ocl_context *,                                                             \
      (const intptr_t *, uint32_t, ocl_device *const *,                                           \
       void (*)(const char *, const void *, size_t, void *), void *, int32_t *))                  \
    X(clReleaseContext, int32_t, (ocl_context *))                                                 \
    X(clCreateCommandQueue, ocl_queue *, (ocl_context *, ocl_device *, uint64_t, int32_t *))      \
    X(clReleaseCommandQueue, int32_t, (ocl_queue *))                                              \
    X(clCreateBuffer, ocl_mem *, (ocl_context *, uint64_t, size_t, void *, int32_t *))            \
    X(clReleaseMemObject, int32_t, (ocl_mem *))                                                   \
    X(clCreateProgramWithSource, ocl_program *,                                                   \
      (ocl_context *, uint32_t, const char **, const size_t *, int32_t *))                        \
    X(clCreateProgramWithBinary, ocl_program *,                                                   \
      (ocl_context *, uint32_t, ocl_device *const *, const size_t *, const unsigned char **,      \
       int32_t *, int32_t *))                                                                     \
    X(clBuildProgram, int32_t,                                                                    \
      (ocl_program *, uint32_t, ocl_device *const *, const char *,                                \
       void (*)(ocl_program *, void *), void *))                                                  \
    X(clGetProgramInfo, int32_t, (ocl_program *, uint32_t, size_t, void *, size_t *))             \
    X(clGetProgramBuildInfo, int32_t,                                                             \
      (ocl_program *, ocl_device *, uint32_t, size_t, void *, size_t *))                          \
    X(clReleaseProgram, int32_t, (ocl_program *))                                                 \
    X(clCreateKernel, ocl_kernel *, (ocl_program *, const char *, int32_t *))                     \
    X(clReleaseKernel, int32_t, (ocl_kernel *))                                                   \
    X(clSetKernelArg, int32_t, (ocl_kernel *, uint32_t, size_t, const void *))                    \
    X(clGetKernelWorkGroupInfo, int32_t,                                                          \
      (ocl_kernel *, ocl_device *, uint32_t, size_t, void *, size_t *))                           \
    X(clEnqueueNDRangeKernel, int32_t,                                                            \
      (ocl_queue *, ocl_kernel *, uint32_t, const size_t *, const size_t *, const size_t *,       \
       uint32_t, const void *, void **))                                                          \
    X(clEnqueueMapBuffer, void *,                                                                 \
      (ocl_queue *, ocl_mem *, uint32_t, uint64_t, size_t, size_t, uint32_t, const void *,        \
       void **, int32_t *))                                                                       \
    X(clEnqueueUnmapMemObject, int32_t,                                                           \
      (ocl_queue *, ocl_mem *, void *, uint32_t, const void *, void **))                          \
    X(clFlush, int32_t, (ocl_queue *))                                                            \
    X(clFinish, int32_t, (ocl_queue *))

typedef struct ocl_api {
#define OCL_FIELD(name, result, arguments) result(*name) arguments;
    OCL_CALLS(OCL_FIELD)
#undef OCL_FIELD
} ocl_api;

/* ---- numbers shared with the kernels: they are told as UNARY_Relu and so on ---- */

#define OCL_UNARY(X)                                                                              \
    X(Identity) X(Relu) X(LeakyRelu) X(Clip) X(Sigmoid) X(Tanh) X(HardSigmoid) X(HardSwish)       \
    X(Swish) X(Mish) X(Gelu) X(GeluTanh) X(Elu) X(Celu) X(Selu) X(ThresholdedRelu) X(Softplus)    \
    X(Softsign) X(Exp) X(Log) X(Sqrt) X(Reciprocal) X(Abs) X(Neg) X(Floor) X(Ceil) X(Round)       \
    X(Sign) X(Erf) X(Sin) X(Cos)
#define OCL_BINARY(X) X(Add) X(Sub) X(Mul) X(Div) X(Pow) X(Max) X(Min) X(PRelu)
#define OCL_REDUCE(X)                                                                             \
    X(Sum) X(Mean) X(Max) X(Min) X(Prod) X(L1) X(L2) X(SumSquare) X(LogSum)
#define OCL_POOL(X) X(max) X(average)
#define OCL_NUMBER(name) UNARY_##name,
typedef enum ocl_unary { OCL_UNARY(OCL_NUMBER) UNARY_COUNT } ocl_unary;
#undef OCL_NUMBER
#define OCL_NUMBER(name) BINARY_##name,
typedef enum ocl_binary { OCL_BINARY(OCL_NUMBER) BINARY_COUNT } ocl_binary;
#undef OCL_NUMBER
#define OCL_NUMBER(name) REDUCE_##name,
typedef enum ocl_reduce { OCL_REDUCE(OCL_NUMBER) REDUCE_COUNT } ocl_reduce;
#undef OCL_NUMBER
#define OCL_NUMBER(name) POOL_##name,
typedef enum ocl_pool { OCL_POOL(OCL_NUMBER) POOL_COUNT } ocl_pool;
#undef OCL_NUMBER

/* Programs: kernels/<name>.cl, each behind kernels/common.cl. */
#define OCL_PROGRAMS(X) X(elementwise) X(conv) X(gemm) X(pool) X(rows) X(move)
#define OCL_NUMBER(name) OCL_IN_##name,
typedef enum ocl_source { OCL_PROGRAMS(OCL_NUMBER) OCL_SOURCES } ocl_source;
#undef OCL_NUMBER

/* ---- one session's provider ---- */

typedef struct ocl_self {
    void *library; /* never closed: drivers leave threads and exit handlers behind */
    ocl_api api;
    char path[256];
    char *text; /* options, cut into strings; text_size bytes */
    size_t text_size;
    const char *lib, *platform_want, *device_want;
    bool half;      /* storage=fp16 */
    bool free_cost; /* costs=none */
    bool costs_set;
    enum { OCL_PROBE_AUTO, OCL_PROBE_ALWAYS, OCL_PROBE_NEVER } probe;
    const char *cache_dir; /* in text, behind the options; NULL: none */
    void (*report)(void *user, const nori_progress *progress);
    void *report_user;
    bool telling; /* while a part is compiled: report may be called */

    ocl_platform *platform;
    ocl_device *device;
    ocl_context *context;
    ocl_queue *queue;
    char platform_name[128], platform_version[160], device_name[128], device_version[160];
    char driver_version[128];
    bool is_cpu, unified;
    uint64_t max_alloc, global_memory, local_memory;
    size_t group_size, item_sizes[3];
    double speed; /* times one core of nori's own, an order of magnitude */
    nori_device described;

    ocl_program *programs[OCL_SOURCES];
    ocl_mem *zero; /* one float 0: where a kernel wants a bias and there is none */
    /* One queue and one set of buffers a part: whoever runs or lays out holds this. */
    pthread_mutex_t lock;
} ocl_self;

/* ocl_library.c */
nori_status nori__ocl_load(ocl_self *self, nori_error *err);
const char *nori__ocl_word(int32_t code); /* "CL_OUT_OF_RESOURCES" */
/* NORI_OK for 0; else status with what, the code's word and the device. */
nori_status nori__ocl_check(const ocl_self *self, int32_t code, const char *what,
                            nori_status status, nori_error *err);
/* ocl_probe.c: whether loading ends the process; told by a child that tries. */
nori_status nori__ocl_probe(const ocl_self *self, nori_error *err);
/* ocl_options.c */
nori_status nori__ocl_options(ocl_self *self, const nori_provider_open *how, nori_error *err);
/* ocl_device.c: platform, device, what they can do, context and queue. */
nori_status nori__ocl_find_device(ocl_self *self, nori_error *err);
/* ocl_program.c: builds what is not yet there; errors begin the build log. */
nori_status nori__ocl_program(ocl_self *self, ocl_source which, nori_error *err);

/* ocl_cache.c: a program kept for this device, driver and source, or NULL; and keeping one. Without a
 * folder nothing is looked for nor kept. Reasons go to the session's progress. */
ocl_program *nori__ocl_cached(ocl_self *self, const char *name, nori__str source);
void nori__ocl_keep(ocl_self *self, ocl_program *program, const char *name, nori__str source);

/* ocl_memory.c. Device memory filled with count floats as they are, or as activations are stored. */
ocl_mem *nori__ocl_floats(ocl_self *self, const float *v, size_t count, nori_error *err);
ocl_mem *nori__ocl_stored(ocl_self *self, const float *v, size_t count, nori_error *err);
ocl_mem *nori__ocl_ints(ocl_self *self, const int32_t *v, size_t count, nori_error *err);
ocl_mem *nori__ocl_buffer(ocl_self *self, size_t bytes, nori_error *err);

/* ---- parts ---- */

/* A fused function of one number. */
typedef struct ocl_then {
    int kind;
    float a, b;
} ocl_then;

typedef struct ocl_op ocl_op;

/* A node of a part that gets kernels of its own. */
typedef struct ocl_node {
    uint32_t at; /* in the part */
    const nori__node *node;
    const ocl_op *op;
    uint32_t *in, *out; /* numbers of values; UINT32_MAX: absent. out[0] is behind what was fused */
    ocl_then then;
    ocl_mem *packed[3]; /* weights in the kernels' order, made once */
    int form;           /* of the packed weights: the operator's own numbers */
} ocl_node;

typedef struct ocl_layout ocl_layout;
#define OCL_LAYOUTS 4 /* kept for a part; the oldest goes */

typedef struct ocl_part {
    const nori_part *part;
    ocl_node *nodes;
    uint32_t n_nodes;
    uint32_t *last_use;   /* by value: index of the last node that reads it; n_nodes: an output */
    bool *host_only;      /* by input of the part: its content decides shapes */
    ocl_mem **constants;  /* by value: uploaded as stored when first needed */
    ocl_layout *layouts[OCL_LAYOUTS]; /* the newest first */
    nori__arena arena;
} ocl_part;

/* ---- operators ---- */

/* What a claim looks at. */
typedef struct ocl_ask {
    const nori__node *node;
    const ocl_self *self;
    char *reason;
    size_t reason_size;
} ocl_ask;

typedef struct ocl_lower ocl_lower;

struct ocl_op {
    const char *name;
    ocl_source source;
    bool then; /* takes a fused function of one number behind it */
    int kind;  /* for kernels that serve several operators */
    /* All may be NULL: nothing to ask beyond what holds for all, nothing to pack. */
    bool (*takes)(const ocl_ask *ask);
    nori_status (*pack)(ocl_self *self, ocl_node *n, nori_error *err);
    /* Emits kernels for concrete shapes. */
    void (*lower)(ocl_lower *l, const ocl_node *n);
};

/* ocl_ops.c */
const ocl_op *nori__ocl_op(const nori__node *node);
nori_status nori__ocl_claim(void *self, const nori_node *node, nori_claim *claim, nori_error *err);
bool nori__ocl_no(const ocl_ask *ask, const char *fmt, ...) NORI__PRINTF(2, 3); /* false */
static inline const nori_tensor *nori__ocl_const(const nori__node *node, uint32_t i)
{
    return i < node->input_count ? nori__value_const(node->inputs[i]) : NULL;
}
static inline bool nori__ocl_has(const nori__node *node, uint32_t i)
{
    return i < node->input_count && node->inputs[i] != NULL;
}
/* Whether the input is absent or constant. */
bool nori__ocl_fixed(const ocl_ask *ask, uint32_t i, const char *name);
/* A node's function of one number, when it is one (op_unary.c). */
bool nori__ocl_then(const nori__node *node, ocl_then *then);
/* Elements of a constant as float, count of them in fresh memory; NULL: out of memory. */
float *nori__ocl_take_floats(const nori_tensor *t, size_t count, nori_error *err);
static inline void nori__ocl_give_floats(float *v, size_t count)
{
    nori__release(&nori__malloc, v, count * sizeof(*v));
}

/* ---- laying out (ocl_layout.c): what op_*.c call; the first error stays and silences the rest ---- */

typedef struct ocl_shape {
    int rank;
    int64_t dims[NORI_MAX_RANK];
    int64_t count;
} ocl_shape;

nori_error *nori__ocl_error(ocl_lower *l);
bool nori__ocl_bad(const ocl_lower *l);
void nori__ocl_fail(ocl_lower *l, nori_status status);
const ocl_shape *nori__ocl_in_shape(ocl_lower *l, const ocl_node *n, uint32_t i);
const ocl_shape *nori__ocl_out_shape(ocl_lower *l, const ocl_node *n, uint32_t i);
ocl_mem *nori__ocl_in(ocl_lower *l, const ocl_node *n, uint32_t i);
ocl_mem *nori__ocl_out(ocl_lower *l, const ocl_node *n, uint32_t i);
/* Output 0 is input 0 seen in another shape. */
void nori__ocl_alias(ocl_lower *l, const ocl_node *n);
/* Elements that live until the node is done. */
ocl_mem *nori__ocl_scratch(ocl_lower *l, int64_t count);
/* Numbers that live as long as the layout. */
ocl_mem *nori__ocl_table(ocl_lower *l, const int32_t *v, size_t count);
ocl_mem *nori__ocl_weights(ocl_lower *l, const float *v, size_t count);
ocl_mem *nori__ocl_zero(ocl_lower *l); /* one float 0 */
void *nori__ocl_host_room(ocl_lower *l, size_t count, size_t size); /* zeroed, until the layout is made */
/* Content of an integer input: constant or fed by the host. NULL: absent. */
const nori_tensor *nori__ocl_content(ocl_lower *l, const ocl_node *n, uint32_t i);
/* Integer input i as a table of indices below size, negative ones counted from the end; checked on
 * the host, on each run when it is fed. */
ocl_mem *nori__ocl_indices(ocl_lower *l, const ocl_node *n, uint32_t i, int64_t size);

/* A kernel: begin, arguments in order, end. Local sizes are chosen to fit the device. */
void nori__ocl_kernel(ocl_lower *l, ocl_source source, const char *name);
void nori__ocl_mem(ocl_lower *l, ocl_mem *mem);
void nori__ocl_int(ocl_lower *l, int64_t v);
void nori__ocl_float(ocl_lower *l, float v);
void nori__ocl_int2(ocl_lower *l, int64_t a, int64_t b);
void nori__ocl_int4(ocl_lower *l, int64_t a, int64_t b, int64_t c, int64_t d);
void nori__ocl_int8(ocl_lower *l, const int64_t v[8]);
void nori__ocl_local(ocl_lower *l); /* a float of local memory for each work-item */
static inline void nori__ocl_fused(ocl_lower *l, const ocl_node *n)
{
    nori__ocl_int(l, n->then.kind);
    nori__ocl_float(l, n->then.a);
    nori__ocl_float(l, n->then.b);
}
/* Work-items along each axis (rounded up to work-groups). */
void nori__ocl_items(ocl_lower *l, int64_t x, int64_t y, int64_t z);
/* One work-group for each row of n elements. */
void nori__ocl_rows(ocl_lower *l, int64_t rows, int64_t n);

/* Copies by strides, over the row-major sizes of a box; collapses what lies together. */
typedef struct ocl_copy {
    int rank;
    int64_t sizes[2 * NORI_MAX_RANK], by_x[2 * NORI_MAX_RANK], by_y[2 * NORI_MAX_RANK];
    int64_t start_x, start_y;
} ocl_copy;
void nori__ocl_copy(ocl_lower *l, ocl_mem *x, ocl_mem *y, const ocl_copy *c); /* op_move.c */
void nori__ocl_strides(const ocl_shape *s, int64_t *strides);
int64_t nori__ocl_product(const int64_t *dims, int from, int to);

/* ---- layouts and runs ---- */

/* What a run writes before it enqueues. */
typedef struct ocl_feed {
    uint32_t input; /* of the part */
    ocl_mem *mem;
    int64_t limit; /* indices below this; 0: activations */
    const nori__node *node; /* that looks up */
} ocl_feed;

typedef struct ocl_launch {
    ocl_kernel *kernel;
    size_t global[3], local[3];
} ocl_launch;

struct ocl_layout {
    nori__arena arena;
    uint32_t n_in;
    ocl_shape *in;           /* by input of the part: rank -1 where none was fed */
    nori_tensor **content;   /* copies of what decides shapes, or NULL */
    nori__vec mems;          /* ocl_mem *: all that is released with the layout */
    nori__vec feeds;         /* ocl_feed * */
    nori__vec launches;      /* ocl_launch * */
    ocl_shape *out;          /* by output of the part */
    ocl_mem **out_mem;
};

nori_status nori__ocl_lay_out(ocl_self *self, ocl_part *p, const nori_tensor *const *in,
                              ocl_layout **layout, nori_error *err);
void nori__ocl_layout_free(ocl_self *self, ocl_layout *layout);

/* ocl_part.c */
nori_status nori__ocl_compile(void *self, nori_part *part, void **compiled, nori_error *err);
void nori__ocl_free_part(void *self, void *compiled);
/* ocl_run.c */
nori_status nori__ocl_run(void *self, void *compiled, nori_call *call);

/* The tables of op_*.c, each ending in a row without a name. */
extern const ocl_op nori__ocl_unary_ops[], nori__ocl_binary_ops[], nori__ocl_conv_ops[],
    nori__ocl_gemm_ops[], nori__ocl_pool_ops[], nori__ocl_row_ops[], nori__ocl_norm_ops[],
    nori__ocl_move_ops[], nori__ocl_resize_ops[];

#endif

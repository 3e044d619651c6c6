/* gpu.h: what providers for devices with memory and kernels of their own share: parts of a graph as
 * lists of kernels. A driver (opencl/, cuda/) is a table of functions for one interface to devices.
 *
 * Flow: claim looks operators up in one table (gpu_ops.c); compile packs weights and builds programs
 * (gpu_part.c); the first run with new input shapes lays the part out: buffers and kernels with their
 * arguments (gpu_layout.c, op_*.c); every run copies in, enqueues, copies out (gpu_run.c). Kernels are
 * written once, in OpenCL C that a prelude makes CUDA C (kernels/). */
#ifndef NORI_PROVIDERS_GPU_GPU_H
#define NORI_PROVIDERS_GPU_GPU_H

#include "plan/part.h"
#include "providers/gpu/gpu_numbers.h"
#include "providers/providers.h"

/* ---- numbers shared with the kernels: they are told as UNARY_Relu and so on ---- */

#define GPU_NUMBER(name) UNARY_##name,
typedef enum gpu_unary { GPU_UNARY(GPU_NUMBER) UNARY_COUNT } gpu_unary;
#undef GPU_NUMBER
#define GPU_NUMBER(name) BINARY_##name,
typedef enum gpu_binary { GPU_BINARY(GPU_NUMBER) BINARY_COUNT } gpu_binary;
#undef GPU_NUMBER
#define GPU_NUMBER(name) REDUCE_##name,
typedef enum gpu_reduce { GPU_REDUCE(GPU_NUMBER) REDUCE_COUNT } gpu_reduce;
#undef GPU_NUMBER
#define GPU_NUMBER(name) POOL_##name,
typedef enum gpu_pool { GPU_POOL(GPU_NUMBER) POOL_COUNT } gpu_pool;
#undef GPU_NUMBER

/* Programs: kernels/<name>.cl, each behind kernels/common.cl; from GPU_SOURCES on those that were made
 * for a part (gpu_source.c). */
#define GPU_PROGRAMS(X) X(elementwise) X(conv) X(gemm) X(pool) X(rows) X(move) X(attention)
#define GPU_NUMBER(name) GPU_IN_##name,
enum { GPU_PROGRAMS(GPU_NUMBER) GPU_SOURCES };
#undef GPU_NUMBER
typedef int gpu_source;

typedef struct gpu_program {
    char name[40];
    nori__text body; /* of one that was made */
    void *built;     /* the driver's own; NULL: not yet */
} gpu_program;

/* ---- one session's provider, and its driver ---- */

typedef struct gpu_mem gpu_mem;       /* memory on the device */
typedef struct gpu_kernel gpu_kernel; /* a kernel with its arguments */
typedef struct gpu_self gpu_self;
typedef struct gpu_layout gpu_layout;
typedef struct gpu_launch gpu_launch;

/* count products of m rows by n columns, k summed; strides in elements, each from its product's begin. */
typedef struct gpu_product {
    int64_t m, n, k, count;
    gpu_mem *a, *b, *y, *bias; /* bias: one number a column, or NULL */
    int64_t a_row, a_k, b_k, b_column, by_a, by_b;
    float alpha;
    bool relu; /* behind it */
} gpu_product;

/* A convolution of two dimensions without bias: groups * out filters of [in][kh][kw], groups apart. */
typedef struct gpu_convolution {
    int64_t batch, groups, in, out;
    int64_t size[2], made[2], kernel[2], stride[2], dilation[2], pad[2]; /* pads are the same at the end */
    gpu_mem *x, *w, *y;
} gpu_convolution;

typedef struct gpu_driver {
    const char *name, *title; /* "opencl", "OpenCL" */
    /* Around every use of the device by a thread. May be NULL. */
    nori_status (*enter)(gpu_self *self, nori_error *err);
    void (*leave)(gpu_self *self);
    /* bytes > 0; content: constant, or NULL: written and read by runs. */
    gpu_mem *(*make)(gpu_self *self, size_t bytes, const void *content, nori_error *err);
    void (*release)(gpu_self *self, gpu_mem *mem);
    /* Builds a program that is not yet there (nori__gpu_program); errors begin the build log. */
    nori_status (*program)(gpu_self *self, gpu_source which, nori_error *err);
    gpu_kernel *(*kernel)(gpu_self *self, gpu_source source, const char *name, nori_error *err);
    nori_status (*argument)(gpu_self *self, gpu_kernel *kernel, uint32_t at, size_t size,
                            const void *v, nori_error *err); /* v NULL: local memory */
    size_t (*group_limit)(gpu_self *self, gpu_kernel *kernel); /* 0: unknown */
    void (*drop_kernel)(gpu_self *self, gpu_kernel *kernel);
    /* Memory where the host sees it, to write all of it or to read it. */
    void *(*map)(gpu_self *self, gpu_mem *mem, bool write, size_t bytes, nori_error *err);
    nori_status (*unmap)(gpu_self *self, gpu_mem *mem, void *at, bool write, size_t bytes,
                         nori_error *err);
    /* A library of the device's maker does it, or NULL: own kernels do, or err is set. May be NULL. */
    void *(*product)(gpu_self *self, const gpu_product *p, nori_error *err);
    void *(*convolution)(gpu_self *self, const gpu_convolution *c, nori_error *err);
    void (*drop_call)(gpu_self *self, void *call); /* what these two gave */
    /* Starts a layout's launches, in order. */
    nori_status (*enqueue)(gpu_self *self, gpu_layout *layout, nori_error *err);
    void (*finish)(gpu_self *self);                       /* waits until nothing is left running */
    void (*forget)(gpu_self *self, gpu_layout *layout);   /* its recorded; may be NULL */
} gpu_driver;

/* First in a driver's own. */
struct gpu_self {
    const gpu_driver *driver;
    bool half;      /* activations and weights are stored as float16 */
    bool free_cost; /* costs=none */
    bool costs_set, chains_set;
    bool tiles;     /* kernels whose groups share tiles of products are worth it */
    bool products, convolutions; /* the driver has a library for them */
    bool chains;                 /* functions one behind the other become one kernel, made for them */
    const char *cache_dir; /* NULL: none */
    char *text;            /* options, cut into strings; text_size bytes */
    size_t text_size;
    void (*report)(void *user, const nori_progress *progress);
    void *report_user;
    bool telling; /* while a part is compiled: report may be called */

    char device_name[128];
    bool is_cpu;
    uint64_t max_alloc, local_memory; /* bytes; max_alloc 0: unknown */
    size_t group_size, item_sizes[3];
    double speed; /* times one core of nori's own, an order of magnitude */
    gpu_mem *zero; /* one float 0: where a kernel wants a bias and there is none */
    gpu_program programs[GPU_SOURCES];
    nori__vec made; /* gpu_program *: from GPU_SOURCES on */
    /* One queue and one set of buffers a part: whoever runs or lays out holds this. */
    pthread_mutex_t lock;
};

/* The driver's enter and leave, where it has them. */
nori_status nori__gpu_enter(gpu_self *self, nori_error *err);
void nori__gpu_leave(gpu_self *self);
/* With a lock and a default of everything; and what a driver's close does last but for freeing. */
void nori__gpu_begin(gpu_self *self, const gpu_driver *driver, const nori_provider_open *how);
void nori__gpu_end(gpu_self *self);

/* gpu_options.c: key=value, comma-separated; costs= is taken there, the rest by take. Values live as long
 * as self. */
typedef nori_status (*gpu_take_option)(gpu_self *self, const char *key, const char *value,
                                       nori_error *err);
nori_status nori__gpu_options(gpu_self *self, const nori_provider_open *how, gpu_take_option take,
                              nori_error *err);
nori_status nori__gpu_bad_value(const gpu_self *self, const char *key, const char *value,
                                const char *expected, nori_error *err);

/* gpu_source.c: a program's text, numbers defined in front; its name; the first lines of what a
 * compiler says, on one line. */
nori_status nori__gpu_source(gpu_self *self, gpu_source which, nori__text *t, nori_error *err);
void nori__gpu_name_programs(gpu_self *self);
gpu_program *nori__gpu_program(gpu_self *self, gpu_source which);
/* Programs that are there, built or not: which counts from 0 to below it. */
gpu_source nori__gpu_program_count(const gpu_self *self);
/* A program of this body, behind the common text and functions of numbers: the same for the same body.
 * Built when it comes back. */
nori_status nori__gpu_make_program(gpu_self *self, const char *kind, nori__str body, gpu_source *which,
                                   nori_error *err);
void nori__gpu_first_lines(const char *log, char *out, size_t size);

/* gpu_cache.c: compiled programs kept in the session's cache folder. made_for is what a file is good
 * for beyond its source: driver and device, as lines; device names the file. Without a folder nothing is
 * looked for nor kept. Reasons go to the session's progress. */
typedef struct gpu_kept {
    const char *name, *device, *made_for;
    nori__str source;
} gpu_kept;
/* True: use(user, bytes, size, why) took what is kept; it says why it does not. */
bool nori__gpu_cached(gpu_self *self, const gpu_kept *k,
                      bool (*use)(void *user, const void *bytes, size_t size, char why[128]),
                      void *user);
/* bytes NULL: there are none to keep, which is told. */
void nori__gpu_keep(gpu_self *self, const gpu_kept *k, const void *bytes, size_t size);

/* gpu_memory.c. Device memory filled with count floats as they are, or as activations are stored. */
gpu_mem *nori__gpu_floats(gpu_self *self, const float *v, size_t count, nori_error *err);
gpu_mem *nori__gpu_stored(gpu_self *self, const float *v, size_t count, nori_error *err);
gpu_mem *nori__gpu_ints(gpu_self *self, const int32_t *v, size_t count, nori_error *err);
gpu_mem *nori__gpu_buffer(gpu_self *self, size_t bytes, nori_error *err);
void nori__gpu_release(gpu_self *self, gpu_mem *mem); /* may be NULL */

/* ---- parts ---- */

/* A fused function of one number. */
typedef struct gpu_then {
    int kind;
    float a, b;
} gpu_then;

typedef struct gpu_op gpu_op;

/* A node of a part that gets kernels of its own. */
typedef struct gpu_node {
    uint32_t at; /* in the part */
    const nori__node *node;
    const gpu_op *op;
    uint32_t *in, *out; /* numbers of values; UINT32_MAX: absent. out[0] is behind what was fused */
    uint32_t n_in, n_out; /* out lies behind in */
    void *more;         /* of operators that stand for several nodes: their own */
    gpu_then then;
    gpu_mem *packed[3]; /* weights in the kernels' order, made once */
    int form;           /* of the packed weights: the operator's own numbers */
} gpu_node;

#define GPU_LAYOUTS 4 /* kept for a part; the oldest goes */

typedef struct gpu_part {
    const nori_part *part;
    gpu_node *nodes;
    uint32_t n_nodes;
    uint32_t *last_use;   /* by value: index of the last node that reads it; n_nodes: an output */
    bool *host_only;      /* by input of the part: its content decides shapes */
    gpu_mem **constants;  /* by value: uploaded as stored when first needed */
    gpu_layout *layouts[GPU_LAYOUTS]; /* the newest first */
    nori__arena arena;
} gpu_part;

/* ---- operators ---- */

/* What a claim looks at. */
typedef struct gpu_ask {
    const nori__node *node;
    const gpu_self *self;
    char *reason;
    size_t reason_size;
} gpu_ask;

typedef struct gpu_lower gpu_lower;

struct gpu_op {
    const char *name;
    gpu_source source;
    bool then; /* takes a fused function of one number behind it */
    int kind;  /* for kernels that serve several operators */
    /* All may be NULL: nothing to ask beyond what holds for all, nothing to pack. */
    bool (*takes)(const gpu_ask *ask);
    nori_status (*pack)(gpu_self *self, gpu_node *n, nori_error *err);
    /* Emits kernels for concrete shapes. */
    void (*lower)(gpu_lower *l, const gpu_node *n);
};

/* gpu_ops.c */
const gpu_op *nori__gpu_op(const nori__node *node);
nori_status nori__gpu_claim(void *self, const nori_node *node, nori_claim *claim, nori_error *err);
bool nori__gpu_no(const gpu_ask *ask, const char *fmt, ...) NORI__PRINTF(2, 3); /* false */
static inline const nori_tensor *nori__gpu_const(const nori__node *node, uint32_t i)
{
    return i < node->input_count ? nori__value_const(node->inputs[i]) : NULL;
}
static inline bool nori__gpu_has(const nori__node *node, uint32_t i)
{
    return i < node->input_count && node->inputs[i] != NULL;
}
/* Whether the input is absent or constant. */
bool nori__gpu_fixed(const gpu_ask *ask, uint32_t i, const char *name);
/* The number of a node's function of two numbers; -1: it is none (op_binary.c). */
int nori__gpu_binary_kind(const nori__node *node);
/* A node's function of one number, when it is one (op_unary.c). */
bool nori__gpu_then(const nori__node *node, gpu_then *then);
/* Elements of a constant as float, count of them in fresh memory; NULL: out of memory. */
float *nori__gpu_take_floats(const nori_tensor *t, size_t count, nori_error *err);
static inline void nori__gpu_give_floats(float *v, size_t count)
{
    nori__release(&nori__malloc, v, count * sizeof(*v));
}

/* ---- laying out (gpu_layout.c): what op_*.c call; the first error stays and silences the rest ---- */

typedef struct gpu_shape {
    int rank;
    int64_t dims[NORI_MAX_RANK];
    int64_t count;
} gpu_shape;

nori_error *nori__gpu_error(gpu_lower *l);
const char *nori__gpu_title(const gpu_lower *l); /* of the driver */
bool nori__gpu_bad(const gpu_lower *l);
void nori__gpu_fail(gpu_lower *l, nori_status status);
const gpu_shape *nori__gpu_in_shape(gpu_lower *l, const gpu_node *n, uint32_t i);
const gpu_shape *nori__gpu_out_shape(gpu_lower *l, const gpu_node *n, uint32_t i);
gpu_mem *nori__gpu_in(gpu_lower *l, const gpu_node *n, uint32_t i);
gpu_mem *nori__gpu_out(gpu_lower *l, const gpu_node *n, uint32_t i);
/* Output 0 is input 0 seen in another shape. */
void nori__gpu_alias(gpu_lower *l, const gpu_node *n);
/* Elements that live until the node is done. */
gpu_mem *nori__gpu_scratch(gpu_lower *l, int64_t count);
/* Numbers that live as long as the layout. */
gpu_mem *nori__gpu_table(gpu_lower *l, const int32_t *v, size_t count);
gpu_mem *nori__gpu_weights(gpu_lower *l, const float *v, size_t count);
gpu_mem *nori__gpu_zero(gpu_lower *l); /* one float 0 */
void *nori__gpu_host_room(gpu_lower *l, size_t count, size_t size); /* zeroed, until the layout is made */
/* Content of an integer input: constant or fed by the host. NULL: absent. */
const nori_tensor *nori__gpu_content(gpu_lower *l, const gpu_node *n, uint32_t i);
/* Integer input i as a table of indices below size, negative ones counted from the end; checked on
 * the host, on each run when it is fed. */
gpu_mem *nori__gpu_indices(gpu_lower *l, const gpu_node *n, uint32_t i, int64_t size);

/* A kernel: begin, arguments in order, end. Local sizes are chosen to fit the device. */
void nori__gpu_kernel(gpu_lower *l, gpu_source source, const char *name);
void nori__gpu_mem(gpu_lower *l, gpu_mem *mem);
void nori__gpu_int(gpu_lower *l, int64_t v);
void nori__gpu_float(gpu_lower *l, float v);
void nori__gpu_int2(gpu_lower *l, int64_t a, int64_t b);
void nori__gpu_int4(gpu_lower *l, int64_t a, int64_t b, int64_t c, int64_t d);
void nori__gpu_int8(gpu_lower *l, const int64_t v[8]);
void nori__gpu_local(gpu_lower *l); /* a float of local memory for each work-item */
static inline void nori__gpu_fused(gpu_lower *l, const gpu_node *n)
{
    nori__gpu_int(l, n->then.kind);
    nori__gpu_float(l, n->then.a);
    nori__gpu_float(l, n->then.b);
}
/* Work-items along each axis (rounded up to work-groups). */
void nori__gpu_items(gpu_lower *l, int64_t x, int64_t y, int64_t z);
/* One work-group for each row of n elements. */
void nori__gpu_rows(gpu_lower *l, int64_t rows, int64_t n);
/* Whether the device has kernels whose groups share tiles. */
bool nori__gpu_tiles(const gpu_lower *l);
/* By the driver's library. False: it has none, or not for this. */
bool nori__gpu_by_library(gpu_lower *l, const gpu_product *p, const gpu_convolution *c);
/* Groups along each axis, of a fixed number of work-items in a line. */
void nori__gpu_groups(gpu_lower *l, int64_t x, int64_t y, int64_t z, size_t items);

/* Copies by strides, over the row-major sizes of a box; collapses what lies together. */
typedef struct gpu_copy {
    int rank;
    int64_t sizes[2 * NORI_MAX_RANK], by_x[2 * NORI_MAX_RANK], by_y[2 * NORI_MAX_RANK];
    int64_t start_x, start_y;
} gpu_copy;
void nori__gpu_copy(gpu_lower *l, gpu_mem *x, gpu_mem *y, const gpu_copy *c); /* op_move.c */
/* Strides with which s goes along the 8 last axes of a result; 0: repeated. */
void nori__gpu_spread(const gpu_shape *s, int64_t by[8]);
void nori__gpu_strides(const gpu_shape *s, int64_t *strides);
int64_t nori__gpu_product(const int64_t *dims, int from, int to);

/* ---- layouts and runs ---- */

/* What a run writes before it enqueues. */
typedef struct gpu_feed {
    uint32_t input; /* of the part */
    gpu_mem *mem;
    int64_t limit; /* indices below this; 0: activations */
    const nori__node *node; /* that looks up */
} gpu_feed;

struct gpu_launch {
    gpu_kernel *kernel;
    void *call; /* in place of a kernel: what the driver's product or convolution gave */
    size_t global[3], local[3];
};

struct gpu_layout {
    nori__arena arena;
    uint32_t n_in;
    gpu_shape *in;           /* by input of the part: rank -1 where none was fed */
    nori_tensor **content;   /* copies of what decides shapes, or NULL */
    nori__vec mems;          /* gpu_mem *: all that is released with the layout */
    nori__vec feeds;         /* gpu_feed * */
    nori__vec launches;      /* gpu_launch * */
    void *recorded;          /* the driver's own, made of launches */
    uint32_t runs;           /* done with it; stays at 2 */
    gpu_shape *out;          /* by output of the part */
    gpu_mem **out_mem;
};

nori_status nori__gpu_lay_out(gpu_self *self, gpu_part *p, const nori_tensor *const *in,
                              gpu_layout **layout, nori_error *err);
void nori__gpu_layout_free(gpu_self *self, gpu_layout *layout);

/* gpu_part.c */
nori_status nori__gpu_compile(void *self, nori_part *part, void **compiled, nori_error *err);
void nori__gpu_free_part(void *self, void *compiled);
/* gpu_run.c */
nori_status nori__gpu_run(void *self, void *compiled, nori_call *call);
nori_status nori__gpu_start(void *self, void *compiled, nori_call *call, void **started);
nori_status nori__gpu_finish(void *self, void *compiled, void *started, nori_call *call);

/* The tables of op_*.c, each ending in a row without a name. */
extern const gpu_op nori__gpu_unary_ops[], nori__gpu_binary_ops[], nori__gpu_conv_ops[],
    nori__gpu_gemm_ops[], nori__gpu_pool_ops[], nori__gpu_row_ops[], nori__gpu_norm_ops[],
    nori__gpu_move_ops[], nori__gpu_resize_ops[], nori__gpu_attention_ops[];

/* Operators that stand for several nodes. Each looks for its own, beginning or ending at a node of the
 * part, and gives what it found as a node; taken marks nodes that are spoken for already. */
bool nori__gpu_find_attention(const gpu_self *self, gpu_part *p, uint32_t softmax, bool *taken,
                              gpu_node *found);
bool nori__gpu_find_chain(const gpu_self *self, gpu_part *p, uint32_t first, bool *taken,
                          gpu_node *found);
/* gpu_part.c: the one node of the part that reads a value nobody else sees, from a position on, and as
 * which input; UINT32_MAX: there is none. */
uint32_t nori__gpu_only_reader(const nori_part *part, uint32_t from, uint32_t value, uint32_t *input);
/* The node of the part that makes a value, or UINT32_MAX. */
uint32_t nori__gpu_maker(const nori_part *part, uint32_t value);

#endif

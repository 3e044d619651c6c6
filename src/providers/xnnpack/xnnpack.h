/* xnnpack.h: what the files of the xnnpack provider share.
 *
 * A part becomes a list of steps over buffers. A step is an XNNPACK operator, made once with its
 * weights packed, or a move of bytes; XNNPACK's own subgraphs are not used, for what they lack
 * (Transpose, Concat, averages of int8) would cut parts to pieces. For a set of input shapes all
 * shapes are inferred, buffers get offsets in one block, and the operators are set up; this is kept
 * until other shapes come. A part runs in one thread at a time, since operators hold pointers.
 *
 * A value may lie in several forms, each made when a step first wants it: as ONNX has it, channels
 * last (XP_LAST: what XNNPACK's convolutions and pools take), and, for 8-bit values, with its sign bit
 * flipped (XP_FLIP), which turns uint8 into int8 of a zero point 128 less and back. */
#ifndef NORI_PROVIDERS_XNNPACK_XNNPACK_H
#define NORI_PROVIDERS_XNNPACK_XNNPACK_H

#include "providers/part_links.h"
#include "providers/xnnpack/xnnpack_calls.h"

#define XP_NONE UINT32_MAX
#define XP_RANK XNN_MAX_TENSOR_DIMS

enum { XP_LAST = 1, XP_FLIP = 2, XP_FORMS = 4 };

typedef struct xp_self {
    pthreadpool_t pool; /* NULL: one thread */
    nori_device device;
    char device_name[32];
    double launch_ns;
} xp_self;

typedef struct xp_shape {
    int rank;
    size_t d[XP_RANK];
    size_t count;
} xp_shape;

typedef struct xp_buffer {
    uint32_t value;        /* whose shape it has; XP_NONE: that of fixed */
    unsigned form, width;  /* width: bytes an element */
    uint32_t alias;        /* buffer whose bytes it shares, or XP_NONE */
    void *fixed;           /* a constant's bytes */
    size_t fixed_bytes;
    xp_shape fixed_shape;
    uint32_t first, last;  /* steps it lives in */
    uint8_t *data;         /* where it is now */
} xp_buffer;

/* A copy with strides, in elements; dims are those of what is copied. */
typedef struct xp_move {
    int rank;
    size_t dims[2 * XP_RANK], in[2 * XP_RANK], out[2 * XP_RANK];
    size_t in_at, out_at;
    unsigned width;
    bool flip;
} xp_move;

typedef struct xp_part xp_part;
typedef struct xp_step xp_step;
struct xp_step {
    const nori__node *node;
    /* Shapes and places are known: makes op when it depends on them, sets it up. */
    nori_status (*setup)(xp_part *p, xp_step *s, nori_error *err);
    /* NULL: op is run. */
    nori_status (*run)(xp_part *p, xp_step *s, nori_call *call);
    xnn_operator_t op;
    bool idle; /* nothing to compute at these shapes */
    uint32_t n_in, out;
    uint32_t *in;
    void *args; /* of the step's kind, zeroed, in the part's arena */
};

struct xp_part {
    xp_self *self;
    nori_part *part;
    nori__arena arena;
    nori__vec buffers, steps; /* xp_buffer *, xp_step * */
    uint32_t (*forms)[XP_FORMS]; /* per value: its buffers, or XP_NONE */
    xp_shape *shapes;         /* per value, for the shapes at hand */
    nori__links links;
    bool failed;              /* out of memory while making steps */
    xp_shape *key;            /* of the inputs that are set up now; n_in */
    bool ready;
    uint8_t *block;
    size_t block_bytes;
};

/* A node as the makers of steps see it: in and out may be 8-bit values on the other side of
 * DequantizeLinear and QuantizeLinear. */
typedef struct xp_job {
    const nori__node *node;
    uint32_t at; /* position in the part */
    const uint32_t *in;
    uint32_t n_in, out;
} xp_job;

/* An operator this provider takes. */
typedef struct xp_rule {
    const char *domain, *name;
    const char *(*claim)(const nori__node *n); /* NULL: taken; else the reason why not */
    nori_status (*emit)(xp_part *p, const xp_job *j, nori_error *err);
} xp_rule;
const xp_rule *nori__xp_rule(const nori__node *n); /* NULL: none */

/* ---- xnnpack_claim.c ---- */
nori_status nori__xp_claim(void *self, const nori_node *node, nori_claim *claim, nori_error *err);
const nori__value *nori__xp_in(const nori__node *n, uint32_t i); /* NULL: absent */
const nori_tensor *nori__xp_const(const nori__node *n, uint32_t i); /* NULL: absent or not constant */
bool nori__xp_is_8bit(const nori__value *v);
/* A tensor of the type (0: float or 8-bit) and a known rank from low to XP_RANK. */
bool nori__xp_is(const nori__value *v, nori_type type, int low);
/* The value of a one-element constant input; absent: otherwise. False: not constant. */
bool nori__xp_scalar(const nori__node *n, uint32_t i, float otherwise, float *out);

/* A constant, or what DequantizeLinear makes of one; else NULL. *made is freed by the caller. */
const nori_tensor *nori__xp_weights(const nori__node *n, uint32_t i, nori_tensor **made);
/* Whether there is one: of this type and rank (0: any), for claims. */
bool nori__xp_has_weights(const nori__node *n, uint32_t i, int rank);

/* ---- xnnpack_value.c: making buffers and steps. XP_NONE and NULL: out of memory ---- */
uint32_t nori__xp_want(xp_part *p, uint32_t value, unsigned form);
uint32_t nori__xp_make(xp_part *p, uint32_t value, unsigned form); /* what a step will write */
uint32_t nori__xp_scratch(xp_part *p, uint32_t value, unsigned form, unsigned width);
bool nori__xp_share(xp_part *p, uint32_t value, unsigned form, uint32_t buffer);
uint32_t nori__xp_fixed(xp_part *p, const xp_shape *shape, unsigned width, const void *data);
/* XP_LAST when the value lies channels last now, else 0; the sign stays as it is. */
unsigned nori__xp_layout(const xp_part *p, uint32_t value);
bool nori__xp_has(const xp_part *p, uint32_t value, unsigned form);
const nori__value *nori__xp_value(const xp_part *p, uint32_t value);
const nori_tensor *nori__xp_tensor(const xp_part *p, uint32_t value); /* constant's, or NULL */
int nori__xp_rank(const xp_part *p, uint32_t value);
/* A step of one node over buffers in[]; NULL when any of them is XP_NONE. */
xp_step *nori__xp_step(xp_part *p, const nori__node *node, const uint32_t *in, uint32_t n_in,
                       uint32_t out, size_t args,
                       nori_status (*setup)(xp_part *, xp_step *, nori_error *));
/* What a node makes after an activation that follows it, whose limits come back; that node is done
 * then. */
uint32_t nori__xp_clamp(xp_part *p, uint32_t out, float *low, float *high);
/* Limits of a Relu or Clip with constant limits; false: it is none. */
bool nori__xp_limits(const nori__node *n, float *low, float *high);

/* While setting up. */
static inline xp_buffer *nori__xp_buffer(const xp_part *p, uint32_t i)
{
    return p->buffers.items[i];
}
xp_shape nori__xp_shape(const xp_part *p, uint32_t buffer); /* as it lies in memory */
uint8_t *nori__xp_data(const xp_part *p, uint32_t buffer);
static inline float *nori__xp_floats(const xp_part *p, uint32_t buffer)
{
    return (float *)(void *)nori__xp_data(p, buffer);
}
static inline int8_t *nori__xp_bytes(const xp_part *p, uint32_t buffer)
{
    return (int8_t *)nori__xp_data(p, buffer);
}
static inline pthreadpool_t nori__xp_pool(const xp_part *p)
{
    return p->self->pool;
}

/* ---- xnnpack_move.c ---- */
void nori__xp_move_run(const xp_move *m, const void *in, void *out, nori_call *call);
/* Axis i of what is copied is axis perm[i] of a dense tensor of the shape. */
void nori__xp_move_turned(xp_move *m, const xp_shape *in, const int *perm);
/* From one layout of a value of this ONNX shape to another. */
void nori__xp_move_layout(xp_move *m, const xp_shape *shape, unsigned from, unsigned to);
xp_step *nori__xp_step_move(xp_part *p, const nori__node *node, uint32_t in, uint32_t out,
                            size_t args,
                            nori_status (*setup)(xp_part *, xp_step *, nori_error *));

/* ---- xnnpack_part.c ---- */
nori_status nori__xp_compile(void *self, nori_part *part, void **compiled, nori_error *err);
nori_status nori__xp_run(void *self, void *compiled, nori_call *call);
void nori__xp_free(void *self, void *compiled);
/* Error for a call of XNNPACK's that failed, by name; as: what it means here. */
nori_status nori__xp_check(enum xnn_status s, const char *call, const nori__node *node,
                           nori_error *err);
const char *nori__xp_status_text(enum xnn_status s);
/* Drops the operator of other shapes before a new one is made. */
void nori__xp_drop(xp_step *s);

#define XP_TRY(call_of_xnnpack, node, err) \
    NORI__TRY(nori__xp_check(call_of_xnnpack, #call_of_xnnpack, node, err))

/* xnnpack_binary.c: the layout two operands share, and one of them in it. */
unsigned nori__xp_binary_form(const xp_part *p, const uint32_t *in, int rank);
uint32_t nori__xp_binary_operand(xp_part *p, uint32_t value, unsigned form, int rank);

/* ---- xnnpack_conv.c, xnnpack_pool.c: windows over one or two dimensions ---- */

typedef struct xp_window {
    uint32_t begin[2], end[2], kernel[2], stride[2], dilation[2]; /* of height and width */
    bool ceil;
    bool transposed;
    uint32_t groups;
    size_t group_in, group_out;
} xp_window;
/* The reason it is not taken, or NULL. weight: where the kernel's sizes stand, or NULL. */
const char *nori__xp_window(const nori__node *n, const nori_tensor *weight, xp_window *w);
/* That of a product with a matrix [in][out], or turned: 1 x 1 over rows. */
void nori__xp_window_rows(const nori_tensor *matrix, bool turned, xp_window *w);
/* Batch, height, width and channels of what lies channels last. */
typedef struct xp_image {
    size_t n, h, w, c;
} xp_image;
xp_image nori__xp_image(const xp_part *p, uint32_t buffer);
/* Copies weights of width bytes to [groups * out][h][w][in]; in: memory of weight->bytes. */
void nori__xp_pack(const nori_tensor *weight, const xp_window *w, unsigned width, void *out);
/* Sets up any kind of convolution that op is. */
typedef enum xp_kind { XP_F32, XP_QS8, XP_QC8, XP_QU8 } xp_kind;
xp_step *nori__xp_conv_step(xp_part *p, const nori__node *n, uint32_t in, uint32_t out,
                            const xp_window *w, xp_kind kind);

/* ---- rules, by family; see xnnpack_claim.c ---- */
#define XP_RULE(name)                              \
    const char *nori__xp_claim_##name(const nori__node *n); \
    nori_status nori__xp_emit_##name(xp_part *p, const xp_job *j, nori_error *err);
XP_RULE(conv)
XP_RULE(conv_transpose)
XP_RULE(product)
XP_RULE(pool)
XP_RULE(global_pool)
XP_RULE(unary)
XP_RULE(clip)
XP_RULE(prelu)
XP_RULE(pow)
XP_RULE(softmax)
XP_RULE(binary)
XP_RULE(batch_norm)
XP_RULE(hard_sigmoid)
XP_RULE(reshape)
XP_RULE(transpose)
XP_RULE(concat)
XP_RULE(slice)
XP_RULE(split)
XP_RULE(pad)
XP_RULE(resize)
XP_RULE(depth_to_space)
XP_RULE(quantize)
XP_RULE(dequantize)
XP_RULE(qlinear_conv)
XP_RULE(qlinear_product)
XP_RULE(qlinear_binary)
XP_RULE(qlinear_unary)
XP_RULE(qlinear_pool)
#undef XP_RULE

/* xnnpack_qdq.c: makes a node between DequantizeLinear and QuantizeLinear in integers. *taken tells
 * whether it did. */
nori_status nori__xp_integers(xp_part *p, const xp_job *j, bool *taken, nori_error *err);

#endif

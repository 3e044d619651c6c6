/* nnapi.h: what the files of the nnapi provider share.
 *
 * A part becomes one NNAPI model of fixed shapes: its values are operands, its nodes operations, its
 * constants are kept by the part as long as the model lives. A value may be there in two forms, each
 * made when an operation first wants it: plain, as ONNX has it, and, for three and four dimensions,
 * channels last, which NNAPI's convolutions, pools and resizing take; lines are pictures of height 1 to
 * them. Inputs and outputs are plain: what turns them is a TRANSPOSE in the model, which the device
 * runs. Bytes: nnapi_bytes.h. */
#ifndef NORI_PROVIDERS_NNAPI_NNAPI_H
#define NORI_PROVIDERS_NNAPI_NNAPI_H

#include "providers/nnapi/nnapi_abi.h"
#include "providers/part_links.h"

#define NA_NONE UINT32_MAX
#define NA_OWN (-1)
#define NA_RANK 4
#define NA_OLDEST 28 /* TRANSPOSE and SUB came then */

enum { NA_PLAIN, NA_LAST, NA_FORMS };

typedef struct na_self {
    na_calls call;
    void *library;
    int64_t level;
    const na_device *chosen; /* NULL: the system chooses */
    bool free_cost; /* the option costs=none */
    char *text; /* the options; the next three point into it */
    size_t text_bytes;
    const char *lib, *device_want, *cache_dir;
    nori_device device;
    char device_name[128];
} na_self;

typedef struct na_part {
    na_self *self;
    nori_part *part;
    nori__arena arena; /* constants, too */
    na_model *model;
    na_compilation *compilation;
    uint32_t (*forms)[NA_FORMS]; /* per value: operands, or NA_NONE */
    nori__links links;
    uint32_t operands;           /* made so far */
    uint32_t *in, *in_number, n_in; /* the model's inputs: operand, number in the part */
    uint32_t *out;                  /* the model's outputs, as many as the part's */
    nori__hash content;             /* of all that was told to the model: names it in the cache */
    nori_status status;             /* the first failure; all that makes operands then does nothing */
    nori_error *err;
} na_part;

/* A node as rules see it. */
typedef struct na_job {
    const nori__node *node;
    const uint32_t *in; /* values by number */
    uint32_t n_in, out;
    const uint32_t *outs;
} na_job;

/* An operator this provider takes. */
typedef struct na_rule {
    const char *domain, *name;
    int level; /* the least that has it */
    int bytes; /* the least that has it on bytes that keep their scale; 0: none, NA_OWN: claim says */
    const char *(*claim)(const na_self *self, const nori__node *n); /* NULL: taken; else why not */
    void (*emit)(na_part *p, const na_job *j);
} na_rule;
const na_rule *nori__na_rule(const nori__node *n); /* NULL: none */

/* ---- nnapi_library.c ---- */
nori_status nori__na_load(na_self *self, nori_error *err);

/* ---- nnapi_claim.c ---- */
nori_status nori__na_claim(void *self, const nori_node *node, nori_claim *claim, nori_error *err);
const nori__value *nori__na_in(const nori__node *n, uint32_t i); /* NULL: absent */
const nori_tensor *nori__na_const(const nori__node *n, uint32_t i); /* NULL: absent or not constant */
const nori_tensor *nori__na_floats(const nori__node *n, uint32_t i); /* the same, of floats only */
/* Weights: constant floats, or the constant (of bytes or int32) of the DequantizeLinear that makes
 * them; NULL: neither. The second gives floats in any case; *made, if not NULL, is the caller's. */
const nori_tensor *nori__na_weights(const nori__node *n, uint32_t i);
const nori_tensor *nori__na_weight_floats(const nori__node *n, uint32_t i, nori_tensor **made);
/* Floats of a known shape without zeros; rank 0: any that NNAPI has (constants may be scalars). */
bool nori__na_is(const nori__value *v, int rank);
bool nori__na_is_bytes(const nori__value *v, int rank); /* the same of int8 and uint8 */
bool nori__na_known(const nori__value *v, int rank);    /* the same of any type */
bool nori__na_takes(const na_self *self, const nori__node *n);
bool nori__na_scalar(const nori__node *n, uint32_t i, float otherwise, float *out);
int nori__na_axis(int64_t axis, int rank); /* -1: does not fit */

/* ---- nnapi_value.c ---- */
typedef struct na_shape {
    int rank;
    int64_t d[NA_RANK];
    int64_t count;
} na_shape;
na_shape nori__na_shape(const na_part *p, uint32_t value, int form); /* scalars: [1] */
const nori_tensor *nori__na_tensor(const na_part *p, uint32_t value); /* NULL: not constant */
nori_status nori__na_check(na_part *p, int result, const char *call); /* keeps the failure */
void nori__na_refuse(na_part *p, const char *why);
uint32_t nori__na_operand(na_part *p, const na_shape *shape); /* of floats, to be written */
/* Of value's type and scale, and another shape than value has. */
uint32_t nori__na_operand_like(na_part *p, uint32_t value, const na_shape *shape);
uint32_t nori__na_int(na_part *p, int64_t value);
uint32_t nori__na_float(na_part *p, float value);
uint32_t nori__na_bool(na_part *p, bool value);
uint32_t nori__na_ints(na_part *p, const int64_t *values, int rank, const int64_t *dims);
/* Zeros that live as long as the part; NULL: failed. */
float *nori__na_room(na_part *p, int64_t count);
void *nori__na_bytes_room(na_part *p, int64_t count, size_t size);
uint32_t nori__na_constant(na_part *p, const na_shape *shape, const float *room);
/* Of another type; channels: of NA_TENSOR_PER_CHANNEL, else NULL. */
uint32_t nori__na_constant_of(na_part *p, const na_type *type, const na_shape *shape,
                              const na_channels *channels, const void *room, size_t bytes);
/* A constant as value, in a form. */
uint32_t nori__na_constant_form(na_part *p, uint32_t value, int form, const nori_tensor *t);
void nori__na_op(na_part *p, int32_t code, const uint32_t *in, uint32_t n_in, uint32_t out);
uint32_t nori__na_want(na_part *p, uint32_t value, int form);
uint32_t nori__na_make(na_part *p, uint32_t value, int form); /* what an operation will write */
void nori__na_share(na_part *p, uint32_t value, int form, uint32_t operand);
int nori__na_layout(const na_part *p, uint32_t value); /* the form that is there; best plain */
int nori__na_axis_in(int form, int rank, int axis);    /* where an axis of ONNX lies */
/* Out of value's one reader when that is an activation NNAPI fuses, which is then done. */
uint32_t nori__na_fuse(na_part *p, uint32_t value, int *fused);

/* ---- operations that more than one rule makes ---- */
/* A picture or a line for an operation on pictures, channels last; what such a one writes for a value, and
 * what is done when it has been told to. */
uint32_t nori__na_picture(na_part *p, uint32_t value);
uint32_t nori__na_make_picture(na_part *p, uint32_t value);
void nori__na_picture_made(na_part *p, uint32_t value, uint32_t picture);
/* A node's convolution; weight: [out][in][h][w]. in: x channels last, filter and bias as NNAPI has them. */
void nori__na_add_conv(na_part *p, const nori__node *n, const nori_tensor *weight, const uint32_t *in,
                       int fused, uint32_t out);
/* FULLY_CONNECTED of four inputs to out, reshaped where out is no matrix. */
void nori__na_add_connected(na_part *p, const uint32_t *in, int64_t units, uint32_t out);
/* NA_PLAIN or NA_LAST: how both operands of a result of a rank lie best. */
int nori__na_binary_form(const na_part *p, const uint32_t *in, int rank);
void nori__na_add_softmax(na_part *p, uint32_t in, uint32_t out, int axis);
const char *nori__na_softmax_fits(const na_self *self, int rank, int axis);
bool nori__na_depthwise(const nori__node *n, const nori_tensor *weight);
const char *nori__na_conv_fits(const na_self *self, const nori__node *n, const nori_tensor *weight,
                               const nori_tensor *bias);

/* ---- nnapi_part.c ---- */
nori_status nori__na_compile(void *self, nori_part *part, void **compiled, nori_error *err);
nori_status nori__na_run(void *self, void *compiled, nori_call *call);
void nori__na_free(void *self, void *compiled);

/* ---- rules ---- */
#define NA_RULES(R)                                                                                 \
    R(conv) R(pool) R(global_pool) R(resize) R(product) R(binary) R(unary) R(clip) R(softmax)       \
    R(prelu) R(batch_norm) R(hard_sigmoid) R(mean) R(reshape) R(transpose) R(concat) R(slice)       \
    R(split) R(pad) R(depth_to_space) R(quantize) R(dequantize) R(qlinear_conv)                     \
    R(qlinear_product) R(qlinear_binary) R(qlinear_unary) R(qlinear_pool) R(qlinear_concat)
#define NA_DECLARE(family)                                                           \
    const char *nori__na_claim_##family(const na_self *self, const nori__node *n);    \
    void nori__na_emit_##family(na_part *p, const na_job *j);
NA_RULES(NA_DECLARE)
#undef NA_DECLARE
/* NA_FUSED_* of Relu, Clip from 0 to 6 and from -1 to 1; NA_FUSED_NONE: another. */
int nori__na_activation(const nori__node *n);

#endif

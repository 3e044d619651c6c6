/* blocked.h: convolutional networks over activations in channel blocks.
 *
 * A value [N, C, H, W] has a twin [N, C / block, H, W, block] (C rounded up), block being the lanes
 * of this CPU's vectors. blocked_rewrite.c puts operators of the domain "nori" over twins in the
 * place of standard ones, with Block and Unblock where a plain value meets a blocked one;
 * blocked_ops.c says what they are. Lanes past C hold anything: nothing reads them but what works
 * lane by lane. Only the cpu provider makes such nodes, and only it runs them. */
#ifndef NORI_PROVIDERS_CPU_BLOCKED_H
#define NORI_PROVIDERS_CPU_BLOCKED_H

#include "ops/window.h"
#include "providers/cpu/cpu.h"
#include "providers/cpu/ways.h"

/* Ids past those of the list. */
typedef enum nori__blocked_id {
    NORI__BLOCKED_FROM = NORI__OP_COUNT + 1, /* Block: plain to blocked */
    NORI__BLOCKED_TO,                        /* Unblock: attribute channels */
    NORI__BLOCKED_CONV,  /* X (blocked, or plain with few channels), W, B, Z (blocked), as FusedConv */
    NORI__BLOCKED_TURNED, /* ConvTranspose of blocked X, W, B; activation */
    NORI__BLOCKED_EXPAND, /* X, W, B of a 1 x 1 convolution, W, B of the depthwise one after it, whose
                             attributes it has; expand_activation and expand_params of the first */
    NORI__BLOCKED_STEM, /* plain X with few channels, W, B of a convolution, then a MaxPool, whose
                           attributes it has; conv_window (strides, dilations, pads before and after),
                           conv_activation, conv_params of the first */
    NORI__BLOCKED_POOL,  /* attribute average, else those of the pools */
    NORI__BLOCKED_MEAN,  /* over height and width, which stay as 1 */
    NORI__BLOCKED_SCALE, /* X times a blocked value of one pixel */
    NORI__BLOCKED_NORM,  /* BatchNormalization with plain parameters, and activation as FusedConv */
    NORI__BLOCKED_LEAKY, /* PRelu with plain slopes: one, or one a channel */
    NORI__BLOCKED_RESIZE /* of height and width; attribute channels, else as Resize */
} nori__blocked_id;
const nori__op *nori__blocked_op(nori__blocked_id id);
const nori__kernel *nori__blocked_kernel(const nori__node *node); /* NULL: not such a node */

static inline bool nori__blocked_is(const nori__node *n, nori__blocked_id id)
{
    return n->op && (int)n->op->id == (int)id;
}
static inline size_t nori__div_up(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

extern const nori__kernel nori__blocked_from, nori__blocked_to, nori__blocked_conv,
    nori__blocked_turned, nori__blocked_expand, nori__blocked_stem, nori__blocked_pool, nori__blocked_mean,
    nori__blocked_scale, nori__blocked_norm,
    nori__blocked_leaky, nori__blocked_resize;

/* ---- convolution ---- */

/* Some terms of the sums over channels and kernel positions, short enough for a pair's weights to
 * stay in the first cache. */
typedef struct nori__bconv_chunk {
    size_t first, terms, lanes; /* terms of equal lanes */
    size_t before;              /* lanes in front of it */
} nori__bconv_chunk;

typedef enum nori__bconv_how {
    NORI__BCONV_DIRECT,    /* all kinds: terms of a channel block and a kernel position */
    NORI__BCONV_WINOGRAD,  /* 3 x 3, stride 1: F(4 x 4, 3 x 3) */
    NORI__BCONV_WINOGRAD2, /* F(2 x 2, 3 x 3) */
    NORI__BCONV_DEPTHWISE
} nori__bconv_how;

/* What prepare makes. Output blocks go in pairs, the last of a group may be alone. */
typedef struct nori__bconv {
    nori__bconv_how how;
    const nori__way *way;     /* lines and spans of its kind */
    bool planes;              /* the input is plain: a term is one channel at one position */
    nori__activation act;
    size_t block;             /* channels a block */
    size_t made, group, per_group; /* output channels, groups, input channels a group */
    size_t kernel[2];
    size_t blocks, pairs;     /* of a group's output */
    size_t lanes;             /* of all chunks: products an output */
    nori__bconv_chunk *chunks;
    size_t n_chunks, terms;
    const nori_tensor *from[2]; /* weight and bias as they were when packed; bias may be NULL */
    float *weights, *bias;    /* bias: zeros where there is none */
    size_t weights_bytes, bias_bytes, chunks_bytes;
} nori__bconv;

/* Which form a state is made for; the rest follows from the weight. */
typedef struct nori__bconv_form {
    nori__bconv_how how;
    const nori__way *way;     /* NULL: nothing special */
    bool planes;
    size_t group;
    nori__activation act;
} nori__bconv_form;
nori_status nori__bconv_make(const nori__bconv_form *form, const nori_tensor *weight,
                             const nori_tensor *bias, const nori_allocator *a, nori__bconv **out,
                             nori_error *err);
void nori__bconv_free(nori__bconv *s, const nori_allocator *a); /* NULL is fine */
size_t nori__bconv_bytes(const nori__bconv *s);
/* What choosing its way may know of a convolution before a run: sizes of a node with weight [made,
 * channels a group, kernel], whose input x is plain or blocked. */
nori__layer nori__bconv_layer(const nori__node *node, const nori_tensor *weight, size_t group);
/* The window of a node for sizes of a run; false: they do not agree with the node. */
bool nori__bconv_window(const nori__bconv *s, const nori__node *node, const int64_t *in,
                        const int64_t *out, nori__block_window *g);

/* One run. */
typedef struct nori__bconv_run {
    const nori__bconv *s;
    const float *x, *add;
    float *y;
    size_t batch, x_blocks;   /* input blocks (planes: channels) */
    nori__block_window g;
    size_t span, spans;       /* pixels, rows or tiles a unit; how many units to a plane */
    size_t share, shares;     /* pairs a unit; how many units share a span */
    size_t x_plane, x_batch, y_plane, y_batch; /* floats */
    bool flat, copied;        /* 1 x 1: a plane is one line; pads: rows are copied with them */
    bool gathered;            /* the copy has the pixels of each kernel column side by side */
    size_t copy_rows, copy_width; /* of a unit's copy; gathered: rows of one place in the stride */
    size_t step;              /* floats between inputs of neighbouring pixels */
    int threads;              /* no more than the work is worth */
    int64_t grain;            /* units at a time */
    int64_t *offset;          /* of terms */
    size_t offset_bytes, thread_bytes;
    char *work;               /* thread_bytes a thread */
} nori__bconv_run;

/* Fill span, share and sizes of scratch; false: too large. Work on units [begin, end). */
bool nori__bconv_direct_plan(nori__bconv_run *r, int threads);
void nori__bconv_direct_units(void *run, int64_t begin, int64_t end, int thread);
void nori__bconv_direct_offsets(nori__bconv_run *r);
/* The same for up to so many rows of all channels at a time, which go to row to of r->y. copy:
 * thread_bytes. */
bool nori__bconv_direct_rows_plan(nori__bconv_run *r, size_t rows);
void nori__bconv_direct_rows(const nori__bconv_run *r, size_t image, size_t first, size_t n, size_t to,
                             float *copy);
bool nori__bconv_winograd_plan(nori__bconv_run *r, int threads);
void nori__bconv_winograd_offsets(nori__bconv_run *r);
void nori__bconv_winograd_units(void *run, int64_t begin, int64_t end, int thread);
bool nori__bconv_depthwise_plan(nori__bconv_run *r, int threads);
void nori__bconv_depthwise_units(void *run, int64_t begin, int64_t end, int thread);

/* Cuts terms of equal lanes into chunks that follow *count others; done: the terms and lanes before
 * them, counted on. Room is needed for as many chunks as terms. */
void nori__bconv_cut(size_t block, size_t terms, size_t lanes, nori__bconv_chunk *chunks,
                     size_t *count, nori__bconv_chunk *done);

/* Packs weights [made][per_group][3][3]; NULL: no memory. */
float *nori__bconv_winograd_pack(const nori__bconv *s, const nori_allocator *a, const float *w,
                                 size_t *bytes);

/* A unit's place: image, span and share. */
static inline void nori__bconv_unit(const nori__bconv_run *r, int64_t u, size_t *image,
                                    size_t *span, size_t *share)
{
    size_t unit = (size_t)u;
    *share = unit % r->shares;
    *span = unit / r->shares % r->spans;
    *image = unit / r->shares / r->spans;
}
/* What units cost, in cycles, roughly: sums of a line (pixel, row, tile) by a pair; what each line
 * costs a unit besides (copies, transforms); what a pair's weights cost a unit to come by. */
typedef struct nori__bconv_cost {
    double pair, line, weights;
} nori__bconv_cost;
typedef struct nori__bconv_cut_up {
    size_t lines, pairs;
    size_t most;    /* lines whose data stay in the cache */
    size_t quantum; /* spans are multiples of it */
    nori__bconv_cost cost;
} nori__bconv_cut_up;
/* Sets span, spans, share and shares (bconv_split.c). */
void nori__bconv_split(nori__bconv_run *r, const nori__bconv_cut_up *how, int threads);
/* pixels of a line by blocks, in tiles of about equal size. x, y: of the line's first pixel, and so
 * is finish->add. line: of lines that use these weights. */
void nori__bconv_line(const nori__bconv_chunk *c, size_t pixels, size_t blocks,
                      const int64_t *offset, const float *x, size_t step, const float *w,
                      size_t line, size_t lines, float *y, size_t y_block,
                      const nori__block_finish *finish);

#endif

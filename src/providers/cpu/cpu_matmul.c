/* cpu_matmul.c: float MatMul, Gemm, com.microsoft FusedGemm, and the Product of joined.h.
 *
 * A constant right operand is packed once; then up to four rows are multiplied straight from the
 * input, each panel read once. Otherwise rows are read as they are, or copied per run where their
 * distance does not suit the cache; a right operand that is not constant is packed panel by panel
 * where it is used. */
#include "plan/packed.h"
#include "providers/cpu/joined.h"
#include "providers/cpu/ways.h"
#include "providers/reference/ref_nn.h"

#define CROWDED_STEP 512 /* floats between rows: lines at the same place of few sets of the cache */
#define LINE 16     /* floats of a cache line */
#define FEW_GRAIN 4 /* panels a unit */
#define COPY_GRAIN 32 /* rows a unit */

typedef struct matmul_state {
    nori__activation act;
    const nori__way *way; /* of a product by a constant */
    float *weights;    /* panels of the right operand, or NULL: not constant */
    size_t weights_bytes;
    size_t n, k;       /* of the constant operand */
    bool a_turned, b_turned;
    float alpha, beta;
} matmul_state;

static void matmul_release(void *state, const nori_allocator *a)
{
    matmul_state *s = state;
    if (s) {
        nori__release(a, s->weights, s->weights_bytes);
        nori__release(a, s, sizeof(*s));
    }
}

/* Packs a constant right operand [k, n], or [n, k] when turned, times alpha. */
static nori_status pack_weights(matmul_state *s, const nori_tensor *b, const nori_allocator *a,
                                nori_error *err)
{
    size_t rows = (size_t)b->dims[b->rank - 2], cols = (size_t)b->dims[b->rank - 1];
    s->k = s->b_turned ? cols : rows;
    s->n = s->b_turned ? rows : cols;
    size_t total = nori__packed_b(s->n, s->k);
    if (total == 0) {
        return nori__no_memory(err);
    }
    s->weights_bytes = total * sizeof(float);
    bool ready;
    s->weights = nori__packed(a, s->weights_bytes, &ready);
    if (!s->weights || ready) {
        return s->weights ? NORI_OK : nori__no_memory(err);
    }
    nori__pack_b(s->n, s->k, nori__tensor_at(b), s->b_turned ? 1 : cols, s->b_turned ? cols : 1, s->weights);
    if (s->alpha != 1) {
        for (size_t i = 0; i < total; i++) {
            s->weights[i] *= s->alpha;
        }
    }
    return NORI_OK;
}

static nori__layer matmul_layer(const nori__node *node, const nori_tensor *b, const matmul_state *s)
{
    nori__layer l = nori__layer_unknown();
    const nori__type *x = &node->inputs[0]->type;
    l.channels = b->dims[s->b_turned ? 1 : 0];
    l.made = b->dims[s->b_turned ? 0 : 1];
    l.joined = 2 * s->a_turned + (nori__cpu_value(node, 3) != NULL) + 4 * s->act.clamp +
               8 * (s->act.apply ? 1 + (int64_t)s->act.function : 0);
    l.out[0] = x->rank >= 1 ? 1 : -1; /* rows of all batches in one */
    for (int d = 0; d < x->rank; d++) {
        bool depth = d == x->rank - (s->a_turned && x->rank >= 2 ? 2 : 1);
        int64_t size = depth ? 1 : x->dims[d].value;
        l.out[0] = l.out[0] < 0 || size < 0 || (size > 0 && l.out[0] > INT64_MAX / size)
                       ? -1
                       : l.out[0] * size;
    }
    return l;
}

static nori_status matmul_prepare(const nori__node *node, const nori_allocator *a, void **state,
                                  size_t *state_bytes, nori_error *err)
{
    bool product = nori__joined_is(node, NORI__JOINED_PRODUCT);
    bool gemm = !product && !nori__node_is(node, NORI__OP_ONNX_MatMul);
    const nori_tensor *b = nori__value_as_is(nori__cpu_value(node, 1));
    matmul_state read = {.alpha = 1, .beta = 1};
    if (gemm) {
        read.alpha = nori__attr_f(node, "alpha", 1);
        read.beta = nori__attr_f(node, "beta", 1);
        read.a_turned = nori__attr_i(node, "transA", 0) != 0;
        read.b_turned = nori__attr_i(node, "transB", 0) != 0;
    }
    if ((gemm || product) && !nori__activation_read(node, &read.act)) {
        return NORI__NOT_TAKEN;
    }
    bool pack = b && b->rank == 2 && b->count > 0;
    if (b && !pack && !nori__tensor_settle(b)) {
        return nori__no_memory(err);
    }
    if ((!pack && read.alpha != 1) || (read.beta != 1 && node->input_count > 2)) {
        return NORI__NOT_TAKEN;
    }
    matmul_state *s = nori__alloc_zero(a, sizeof(*s));
    if (!s) {
        return nori__no_memory(err);
    }
    *s = read;
    if (pack) {
        nori__layer l = matmul_layer(node, b, &read);
        s->way = nori__way_for(a, NORI__WAYS_PRODUCT, &l);
    }
    nori_status status = pack ? pack_weights(s, b, a, err) : NORI_OK;
    if (status != NORI_OK) {
        matmul_release(s, a);
        return status;
    }
    *state = s;
    *state_bytes = s->weights_bytes + sizeof(*s);
    return NORI_OK;
}

/* ---- one run ---- */

typedef struct matmul_run {
    const matmul_state *s;
    nori__product product;
    nori__ref_product_work w; /* operands, strides, batch */
    const float *row, *col, *add;
    bool few;
    size_t apart, copied;     /* a copy of A: floats between rows, and in all of it; 0: none */
    size_t a_bytes;
    float *a;
} matmul_run;

/* Offsets of operands in batch entry index. */
static void batch_at(const nori__ref_product_work *w, size_t index, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int d = w->n_batch - 1; d >= 0; d--) {
        int64_t i = (int64_t)(index % (size_t)w->batch[d]);
        index /= (size_t)w->batch[d];
        *a += i * w->a_batch[d];
        *b += i * w->b_batch[d];
    }
}

static void matmul_part(const nori__product *p, size_t index, nori__product_part *part)
{
    const matmul_run *r = p->user;
    if (r->copied > 0) {
        part->a = r->a + index * r->copied;
        part->a_row = r->apart;
        part->a_k = 1;
    } else {
        int64_t a, b;
        batch_at(&r->w, index, &a, &b);
        part->a = (const float *)r->w.a + a;
        part->a_row = (size_t)r->w.a_row;
        part->a_k = (size_t)r->w.a_col;
    }
    part->b = r->s->weights;
    part->c = (float *)r->w.y + index * p->m * p->n;
    part->row = r->row;
    part->add = r->add;
}

static void matmul_pack_b(const nori__product *p, size_t index, size_t k0, size_t kc, size_t panel,
                          float *out)
{
    const matmul_run *r = p->user;
    const nori__kernels *kern = nori__kernels_get();
    size_t nr = kern->f32_nr, j = panel * nr, count = p->n - j < nr ? p->n - j : nr;
    int64_t a, b;
    batch_at(&r->w, index, &a, &b);
    kern->f32_pack(nr, kc, count,
                   (const float *)r->w.b + b + (int64_t)k0 * r->w.b_row + (int64_t)j * r->w.b_col,
                   (size_t)r->w.b_row, (size_t)r->w.b_col, out);
}

static void copy_a_units(void *user, int64_t begin, int64_t end, int thread)
{
    const matmul_run *r = user;
    const nori__product *p = &r->product;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t index = (size_t)u / p->m, i = (size_t)u % p->m;
        int64_t a, b;
        batch_at(&r->w, index, &a, &b);
        if (p->k > 0) {
            memcpy(r->a + index * r->copied + i * r->apart,
                   (const float *)r->w.a + a + (int64_t)i * r->w.a_row, p->k * sizeof(float));
        }
    }
}

static void few_units(void *user, int64_t begin, int64_t end, int thread)
{
    const matmul_run *r = user;
    const nori__product *p = &r->product;
    const nori__kernels *kern = nori__kernels_get();
    size_t from = (size_t)begin * kern->f32_nr, to = (size_t)end * kern->f32_nr;
    to = to < p->n ? to : p->n;
    nori__f32_finish f = {.row = r->row, .col = r->col ? r->col + from : NULL,
                          .add = r->add ? r->add + from : NULL, .ld_add = p->n,
                          .clamp = p->act.clamp, .low = p->act.low, .high = p->act.high};
    float *y = (float *)r->w.y + from;
    (void)thread;
    kern->f32_few_rows(p->m, to - from, p->k, r->w.a, (size_t)r->w.a_row,
                       r->s->weights + from * p->k, y, p->n, &f);
    for (size_t i = 0; p->act.apply && i < p->m; i++) {
        kern->f32_unary[p->act.function](to - from, y + i * p->n, y + i * p->n, p->act.p);
    }
}

/* Sizes and strides; false: a form for the reference kernel. */
static bool matmul_shapes(const matmul_state *s, const nori_call *call, matmul_run *r)
{
    const nori_tensor *a = call->in[0], *b = call->in[1], *y = call->out[0];
    nori_call quiet = *call;
    quiet.err = NULL;
    memset(r, 0, sizeof(*r));
    r->s = s;
    if (!a || !b || a->type != NORI_FLOAT || b->type != NORI_FLOAT || y->type != NORI_FLOAT) {
        return false;
    }
    nori__ref_product_work *w = &r->w;
    if (!nori__joined_is(call->node, NORI__JOINED_PRODUCT) &&
        !nori__node_is(call->node, NORI__OP_ONNX_MatMul)) {
        if (a->rank != 2 || b->rank != 2) {
            return false;
        }
        w->m = a->dims[s->a_turned];
        w->k = a->dims[!s->a_turned];
        w->n = b->dims[!s->b_turned];
        w->a_row = s->a_turned ? 1 : w->k;
        w->a_col = s->a_turned ? w->m : 1;
        w->b_row = s->b_turned ? 1 : w->n;
        w->b_col = s->b_turned ? w->k : 1;
        if (b->dims[s->b_turned] != w->k) {
            return false;
        }
    } else if (nori__ref_product_setup(&quiet, a, b, y, w) != NORI_OK) {
        return false;
    }
    if (s->weights && ((size_t)w->n != s->n || (size_t)w->k != s->k)) {
        return false;
    }
    size_t count = (size_t)nori__nn_product(w->batch, 0, w->n_batch);
    if (s->weights && w->n_batch > 0) { /* rows of all batches in one */
        w->m *= (int64_t)count;
        w->n_batch = 0;
        count = 1;
    }
    r->product = (nori__product){.count = count, .m = (size_t)w->m, .n = (size_t)w->n,
                                 .k = (size_t)w->k, .ldc = (size_t)w->n, .act = s->act,
                                 .chunk = s->way ? s->way->spans : 0,
                                 .part = matmul_part, .pack = s->weights ? NULL : matmul_pack_b,
                                 .user = r};
    r->few = s->weights && w->m <= NORI__ROWS_FEW && w->a_col == 1 && s->way->form == NORI__ROWS_BY_DISTANCE;
    /* Rows are read where they are, unless they lie so that they push each other out of the cache. */
    int rows = s->way ? s->way->form : NORI__ROWS_BY_DISTANCE;
    if (r->few || r->product.m == 1 || w->a_col != 1 || rows == NORI__ROWS_AS_THEY_ARE ||
        (rows == NORI__ROWS_BY_DISTANCE && w->a_row % CROWDED_STEP != 0)) {
        return true;
    }
    r->apart = r->product.k + LINE;
    return nori__mul_size(r->apart, r->product.m, &r->copied) &&
           nori__mul_size(r->copied, count, &r->a_bytes) &&
           nori__mul_size(r->a_bytes, sizeof(float), &r->a_bytes);
}

static size_t matmul_scratch(const matmul_run *r, int threads)
{
    return r->few ? 0 : nori__cpu_round(r->a_bytes) + nori__product_bytes(&r->product, threads);
}

static int matmul_threads(const matmul_state *s, const nori_call *call)
{
    int threads = nori__cpu_threads(call);
    return s->way ? nori__way_threads(s->way, threads) : threads;
}

static size_t matmul_workspace(const void *state, const nori_call *call)
{
    matmul_run r;
    return matmul_shapes(state, call, &r) ? matmul_scratch(&r, matmul_threads(state, call)) : 0;
}

/* The addend of Gemm: one value a column, one a row, or a whole matrix. */
static bool take_addend(const nori_call *call, matmul_run *r)
{
    const nori_tensor *c = nori__cpu_has(call, 2) ? call->in[2] : NULL;
    if (!c) {
        return true;
    }
    int64_t rows = c->rank > 1 ? c->dims[c->rank - 2] : 1, cols = c->rank ? c->dims[c->rank - 1] : 1;
    if (c->type != NORI_FLOAT || c->rank > 2) {
        return false;
    }
    if (rows == 1 && cols == r->w.n) {
        r->col = c->data;
    } else if (cols == 1 && rows == r->w.m) {
        r->row = c->data;
    } else if (rows == r->w.m && cols == r->w.n) {
        r->add = c->data;
    } else {
        return false;
    }
    return true;
}

/* What a Product adds. */
static bool take_sums(const nori_call *call, matmul_run *r)
{
    const nori_tensor *bias = nori__cpu_has(call, 2) ? call->in[2] : NULL;
    const nori_tensor *sum = nori__cpu_has(call, 3) ? call->in[3] : NULL;
    r->col = bias ? bias->data : NULL;
    r->add = sum ? sum->data : NULL;
    return (!bias || bias->count == r->w.n) && (!sum || sum->count == call->out[0]->count);
}

static nori_status matmul_kernel(const void *state, nori_call *call)
{
    matmul_run r;
    bool product = nori__joined_is(call->node, NORI__JOINED_PRODUCT);
    if (!matmul_shapes(state, call, &r) || !(product ? take_sums : take_addend)(call, &r)) {
        return product ? nori__fail(call->err, NORI_ERROR_DATA,
                                    "operands of a product and what is added do not fit")
                       : nori__cpu_reference(call);
    }
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    r.w.a = call->in[0]->data;
    r.w.b = call->in[1]->data;
    r.w.y = call->out[0]->data;
    r.product.col = r.col;
    int threads = matmul_threads(state, call);
    nori_call own = *call;
    own.threads = threads;
    size_t nr = nori__kernels_get()->f32_nr;
    if (r.few) {
        nori__cpu_for(call->pool, threads, (int64_t)((r.product.n + nr - 1) / nr), FEW_GRAIN,
                     few_units, &r);
        return NORI_OK;
    }
    nori__cpu_scratch scratch;
    NORI__TRY(nori__cpu_take(call, matmul_scratch(&r, threads), &scratch));
    r.a = scratch.data;
    if (r.copied > 0) {
        nori__cpu_for(call->pool, threads, (int64_t)(r.product.count * r.product.m), COPY_GRAIN,
                     copy_a_units, &r);
    }
    nori__product_run(&own, &r.product, (char *)scratch.data + nori__cpu_round(r.a_bytes));
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}

const nori__kernel nori__cpu_matmul = {.size = sizeof(nori__kernel),
                                       .prepare = matmul_prepare,
                                       .workspace = matmul_workspace,
                                       .run = matmul_kernel,
                                       .release = matmul_release,
                                       .packed_inputs = 0x2};

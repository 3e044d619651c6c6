/* ref_conv_transpose.c: ConvTranspose and Col2Im, both the sum of windows laid over an output.
 *
 * Sums in double, rounded once. An output that no input reaches is the bias (0 for Col2Im). With
 * empty inputs the output is the bias. */
#include "providers/reference/ref_nn.h"

typedef struct transpose_job {
    const nori__ref_conv_work *c;
    int64_t *lists;
    int64_t positions;
    double *acc; /* a row of the output for each thread */
} transpose_job;

/* Kernel positions (all dimensions but the last) from which an input reaches output row `row`. */
static int64_t transpose_places(const nori__ref_conv_work *c, int64_t row, int64_t *offsets,
                                int64_t *places)
{
    int last = c->w.n - 1;
    int64_t out[NORI__SPATIAL], k[NORI__SPATIAL] = {0}, n = 0;
    for (int d = last - 1; d >= 0; d--) {
        out[d] = row % c->out[d];
        row /= c->out[d];
    }
    for (;;) {
        int64_t offset = 0, place = 0;
        bool inside = true;
        for (int d = 0; d < last && inside; d++) {
            int64_t i = out[d] + c->w.begin[d] - k[d] * c->w.dilation[d];
            inside = i >= 0 && i % c->w.stride[d] == 0 && i / c->w.stride[d] < c->in[d];
            offset = inside ? (offset + i / c->w.stride[d]) * c->in[d + 1] : 0;
            place = (place + k[d]) * c->w.kernel[d + 1];
        }
        if (inside) {
            offsets[n] = offset;
            places[n++] = place;
        }
        int d = last - 1;
        while (d >= 0 && ++k[d] == c->w.kernel[d]) {
            k[d--] = 0;
        }
        if (d < 0) {
            return n;
        }
    }
}

#define T float
#define NAME(x) x##_f32
#include "providers/reference/ref_conv_transpose_body.h"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
#include "providers/reference/ref_conv_transpose_body.h"
#undef T
#undef NAME

static nori_status transpose_setup(nori_call *call, nori__ref_conv_work *c)
{
    const nori_tensor *x = call->in[0], *weight = call->in[1], *y = call->out[0];
    memset(c, 0, sizeof *c);
    if (x->rank < 3 || weight->rank != x->rank) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "input of rank %d and weight of rank %d, expected equal and at least 3",
                          x->rank, weight->rank);
    }
    NORI__TRY(nori__window_read(call->node, call->err, x->rank - 2, weight->dims + 2, &c->w));
    c->group = nori__attr_i(call->node, "group", 1);
    c->batch = x->dims[0];
    c->channels = x->dims[1];
    c->made = y->dims[1];
    if (c->group < 1 || c->channels % c->group != 0 || weight->dims[0] != c->channels ||
        c->made % c->group != 0 || weight->dims[1] != c->made / c->group) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "%lld channels, %lld groups and a weight of %lld x %lld do not agree",
                          (long long)c->channels, (long long)c->group,
                          (long long)weight->dims[0], (long long)weight->dims[1]);
    }
    for (int d = 0; d < c->w.n; d++) {
        c->in[d] = x->dims[d + 2];
        NORI__TRY(nori__window_out_transposed(&c->w, call->node, call->err, d, c->in[d],
                                              &c->out[d]));
        if (c->out[d] != y->dims[d + 2]) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "output axis %d has size %lld, expected %lld", d + 2,
                              (long long)y->dims[d + 2], (long long)c->out[d]);
        }
        if (c->channels == 0) {
            c->w.kernel[d] = 1;
        }
    }
    return nori__nn_count(call, 2, "B", c->made);
}

static nori_status transpose_run(nori_call *call, const nori__ref_conv_work *c, nori__body body)
{
    int last = c->w.n - 1, threads = nori__nn_threads(call);
    int64_t units = c->batch * c->made * nori__nn_product(c->out, 0, last);
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    transpose_job job = {c, NULL, nori__nn_product(c->w.kernel, 0, last), NULL};
    size_t list_bytes = 0, acc_bytes = 0;
    int64_t pairs, sums;
    nori_status status = NORI_OK;
    if (nori__mul_dim(job.positions, 2 * (int64_t)threads, &pairs) &&
        nori__mul_dim(c->out[last], threads, &sums)) {
        job.lists = nori__nn_scratch(call, pairs, sizeof *job.lists, &list_bytes);
        job.acc = nori__nn_scratch(call, sums, sizeof *job.acc, &acc_bytes);
    }
    if (job.lists && job.acc) {
        nori__parallel_for(call->pool, threads, units, 4, body, &job);
    } else {
        status = nori__no_memory(call->err);
    }
    nori__release(call->allocator, job.lists, list_bytes);
    nori__release(call->allocator, job.acc, acc_bytes);
    return status;
}

static nori_status conv_transpose(nori_call *call)
{
    nori__ref_conv_work c;
    NORI__TRY(nori__nn_need(call, 0, "X", -1));
    NORI__TRY(nori__nn_need(call, 1, "W", -1));
    nori_type type = (nori_type)call->in[0]->type;
    for (uint32_t i = 0; i < 3; i++) {
        if (nori__nn_has(call, i) &&
            (call->in[i]->type != type || (type != NORI_FLOAT && type != NORI_DOUBLE))) {
            return nori__nn_type_error(call, i);
        }
    }
    NORI__TRY(transpose_setup(call, &c));
    c.x = call->in[0]->data;
    c.weight = call->in[1]->data;
    c.bias = nori__nn_has(call, 2) ? call->in[2]->data : NULL;
    c.y = call->out[0]->data;
    return transpose_run(call, &c, type == NORI_FLOAT ? transpose_units_f32 : transpose_units_f64);
}

nori_status nori__ref_ConvTranspose(nori_call *call)
{
    return nori__nn_half(call, conv_transpose);
}

/* ---- Col2Im: [N, C * block, L] summed into [N, C, image...] ---- */

/* Window of the unfolding, its block taken from input 2; out[d]: blocks along d. */
static nori_status col2im_setup(nori_call *call, nori__window *w, int64_t *blocks)
{
    int n = call->out[0]->rank - 2;
    int64_t kernel[NORI__SPATIAL], total = 1, size = 1;
    for (int d = 0; d < n; d++) {
        kernel[d] = nori__tensor_get_i64(call->in[2], d);
    }
    NORI__TRY(nori__window_read(call->node, call->err, n, kernel, w));
    for (int d = 0; d < n; d++) {
        NORI__TRY(nori__window_out(w, call->err, d, call->out[0]->dims[d + 2], &blocks[d]));
        if (!nori__mul_dim(total, blocks[d], &total) || !nori__mul_dim(size, kernel[d], &size)) {
            return nori__fail(call->err, NORI_ERROR_DATA, "too many blocks");
        }
    }
    const nori_tensor *x = call->in[0];
    int64_t expected;
    if (x->rank != 3 || !nori__mul_dim(size, call->out[0]->dims[1], &expected) ||
        x->dims[1] != expected || x->dims[2] != total) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "input 0 does not have %lld columns of %lld values a channel",
                          (long long)total, (long long)size);
    }
    return NORI_OK;
}

static nori_status col2im(nori_call *call)
{
    nori__window w;
    int64_t blocks[NORI__SPATIAL] = {0}, k[NORI__SPATIAL] = {0};
    NORI__TRY(nori__nn_need(call, 0, "input", 3));
    NORI__TRY(nori__nn_need(call, 1, "image_shape", 1));
    NORI__TRY(nori__nn_need(call, 2, "block_shape", 1));
    NORI__TRY(nori__nn_count(call, 2, "block_shape", call->out[0]->rank - 2));
    NORI__TRY(col2im_setup(call, &w, blocks));
    const double *x = call->in[0]->data;
    double *y = call->out[0]->data;
    const int64_t *image = call->out[0]->dims + 2;
    int64_t plane = nori__nn_product(image, 0, w.n), total = call->in[0]->dims[2];
    int64_t rows = call->in[0]->dims[0] * call->in[0]->dims[1];
    int64_t size = nori__nn_product(w.kernel, 0, w.n);
    for (int64_t i = 0; i < call->out[0]->count; i++) {
        y[i] = 0;
    }
    for (int64_t row = 0; row < rows && total > 0; row++, x += total) {
        int64_t b[NORI__SPATIAL] = {0}, rest = row % size;
        for (int d = w.n - 1; d >= 0; d--) {
            k[d] = rest % w.kernel[d];
            rest /= w.kernel[d];
        }
        for (int64_t l = 0; l < total; l++) {
            int64_t place = 0;
            bool inside = true;
            for (int d = 0; d < w.n && inside; d++) {
                int64_t i = b[d] * w.stride[d] + k[d] * w.dilation[d] - w.begin[d];
                inside = i >= 0 && i < image[d];
                place = inside ? place * image[d] + i : 0;
            }
            if (inside) {
                y[row / size * plane + place] += x[l];
            }
            for (int d = w.n - 1; d >= 0 && ++b[d] == blocks[d]; d--) {
                b[d] = 0;
            }
        }
    }
    return NORI_OK;
}

nori_status nori__ref_Col2Im(nori_call *call)
{
    return nori__nn_double(call, 1u | 1u << 16, col2im);
}

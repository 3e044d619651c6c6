/* infer_ms.c: types and shapes of com.microsoft operators on quantized tensors, pools and crops;
 * attention has infer_ms_attention.c, plain products infer_gemm.c. What nori does not run is refused
 * here, so that a model that uses it does not load: UNSUPPORTED, with the nearest that runs. */
#include "ops/families.h"
#include "ops/window.h"

static const nori__dim any = {-1, NULL};

static nori_status rank_error(nori__infer *c, uint32_t i, const char *expected)
{
    return nori__fail(c->err, NORI_ERROR_MODEL, "input %u has rank %d, expected %s", i,
                      nori__in_rank(c, i), expected);
}

/* Input i, where its shape is known, must have count elements. */
static nori_status need_count(nori__infer *c, uint32_t i, const char *name, int64_t count)
{
    int64_t have = 1;
    int rank = nori__in_rank(c, i);
    for (int d = 0; d < rank; d++) {
        int64_t n = c->in[i].dims[d].value;
        if (n < 0 || !nori__mul_dim(have, n, &have)) {
            return NORI_OK;
        }
    }
    return rank < 0 || have == count
               ? NORI_OK
               : nori__fail(c->err, NORI_ERROR_MODEL,
                            "input %u (%s) has %lld elements, expected %lld", i, name,
                            (long long)have, (long long)count);
}

static bool power_of_two(int64_t v)
{
    return v > 0 && (v & (v - 1)) == 0;
}

static nori_status bad_bits(nori__infer *c, int64_t bits)
{
    nori_status s = nori__fail(c->err, NORI_ERROR_UNSUPPORTED,
                               "%s, com.microsoft version 1, with bits %lld", c->node->op_type,
                               (long long)bits);
    nori__hint(c->err, "weights of 2, 4 and 8 bits run; quantize to one of these");
    return s;
}

static nori_status bad_block(nori__infer *c, int64_t block)
{
    return nori__fail(c->err, NORI_ERROR_MODEL,
                      "block_size is %lld, expected a power of two from 16 on", (long long)block);
}

/* ---- FusedConv, FusedGemm: Conv and Gemm, then an activation ---- */

static nori_status check_fused(nori__infer *c)
{
    static const char *const known[] = {"",        "Relu",        "LeakyRelu", "Tanh", "Sigmoid",
                                        "Clip",    "HardSigmoid", "HardSwish", "Swish"};
    const char *name = nori__attr_s(c->node, "activation", "");
    nori_type elem = nori__in_elem(c, 0);
    size_t i = 0, n = 0;
    while (i < NORI__COUNT(known) && !nori__same(known[i], name)) {
        i++;
    }
    if (i == NORI__COUNT(known)) {
        nori_status s = nori__fail(c->err, NORI_ERROR_UNSUPPORTED,
                                   "%s, com.microsoft version 1, with activation \"%s\"",
                                   c->node->op_type, name);
        nori__hint(c->err, "Relu, LeakyRelu, Tanh, Sigmoid, Clip, HardSigmoid, HardSwish and Swish "
                           "run inside it; others as a node behind it");
        return s;
    }
    if (elem != NORI_UNDEFINED && elem != NORI_FLOAT && elem != NORI_FLOAT16 &&
        elem != NORI_BFLOAT16) {
        nori_status s = nori__fail(c->err, NORI_ERROR_UNSUPPORTED,
                                   "%s, com.microsoft version 1, of %s", c->node->op_type,
                                   nori_type_name(elem));
        nori__hint(c->err, "float32 and float16 run; other types without the activation inside");
        return s;
    }
    nori__attr_floats(c->node, "activation_params", &n);
    bool limits = n >= 2 || (nori__attr_find(c->node, "activation_alpha") &&
                             nori__attr_find(c->node, "activation_beta"));
    return !nori__same(name, "Clip") || limits
               ? NORI_OK
               : nori__fail(c->err, NORI_ERROR_MODEL, "activation Clip has no two limits");
}

nori_status nori__infer_ms_fused_conv(nori__infer *c)
{
    NORI__TRY(check_fused(c));
    return nori__infer_conv(c);
}

nori_status nori__infer_ms_fused_gemm(nori__infer *c)
{
    NORI__TRY(check_fused(c));
    return nori__infer_gemm(c);
}

/* ---- MatMulNBits: A, B, scales, zero_points, g_idx, bias ---- */

static nori_status check_nbits(nori__infer *c, int64_t k, int64_t n)
{
    int64_t bits = nori__attr_i(c->node, "bits", 4);
    int64_t block = nori__attr_i(c->node, "block_size", 0), cells, bytes, zeros;
    if (bits != 2 && bits != 4 && bits != 8) {
        return bad_bits(c, bits);
    }
    if (block < 16 || !power_of_two(block) || block > INT32_MAX) {
        return bad_block(c, block);
    }
    int64_t packed = nori__attr_i(c->node, "weight_prepacked", 0);
    if (packed != 0) {
        nori_status s = nori__fail(c->err, NORI_ERROR_UNSUPPORTED,
                                   "MatMulNBits, com.microsoft version 1, with weight_prepacked "
                                   "%lld: a layout of one kind of GPU",
                                   (long long)packed);
        nori__hint(c->err, "export the model without prepacking: weight_prepacked 0 runs");
        return s;
    }
    if (k < 1 || n < 1) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "K is %lld and N is %lld, expected at least 1",
                          (long long)k, (long long)n);
    }
    int64_t blocks = (k - 1) / block + 1;
    if (!nori__mul_dim(n, blocks, &cells) || !nori__mul_dim(cells, block / 8 * bits, &bytes)) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "K %lld and N %lld are too large",
                          (long long)k, (long long)n);
    }
    zeros = nori__in_elem(c, 3) == NORI_UINT8 ? n * ((blocks * bits + 7) / 8) : cells;
    NORI__TRY(need_count(c, 1, "B", bytes));
    NORI__TRY(need_count(c, 2, "scales", cells));
    NORI__TRY(need_count(c, 5, "bias", n));
    return nori__in_elem(c, 3) == NORI_UNDEFINED ? NORI_OK : need_count(c, 3, "zero_points", zeros);
}

nori_status nori__infer_ms_matmul_nbits(nori__infer *c)
{
    int64_t k = nori__attr_i(c->node, "K", 0), n = nori__attr_i(c->node, "N", 0);
    int rank = nori__in_rank(c, 0);
    nori__dim dims[NORI_MAX_RANK];
    NORI__TRY(check_nbits(c, k, n));
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    if (rank < 0) {
        return NORI_OK;
    }
    int64_t row = rank > 0 ? c->in[0].dims[rank - 1].value : 0;
    if (rank == 0 || (row >= 0 && row != k)) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "A (input 0) has rows of %lld, K is %lld",
                          (long long)row, (long long)k);
    }
    memcpy(dims, c->in[0].dims, sizeof dims);
    dims[rank - 1] = nori__dim_of(n);
    nori__out_set(c, 0, nori__in_elem(c, 0), rank, dims);
    return NORI_OK;
}

/* ---- GatherBlockQuantized: data, indices, scales, zero_points ---- */

static nori_status check_gather(nori__infer *c, int rank, int gather, int quant)
{
    int64_t block = nori__attr_i(c->node, "block_size", 128);
    int64_t bits = nori__attr_i(c->node, "bits", 4);
    nori_type type = nori__in_elem(c, 0);
    bool bytes = type == NORI_UINT8, ints = bytes || type == NORI_INT4 || type == NORI_UINT4;
    if (bytes && bits != 2 && bits != 4 && bits != 8) {
        return bad_bits(c, bits);
    }
    if ((block < 16 || !power_of_two(block)) && (ints || block != 0)) {
        return bad_block(c, block);
    }
    if (!ints && nori__has_in(c, 3)) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "zero_points (input 3) cannot go with data of type %s",
                          nori_type_name(type));
    }
    if (bytes && (gather != 0 || (bits < 8 && quant != rank - 1))) {
        nori_status s = nori__fail(c->err, NORI_ERROR_UNSUPPORTED,
                                   "GatherBlockQuantized, com.microsoft version 1, of uint8 with "
                                   "gather_axis %d and quantize_axis %d",
                                   gather, quant);
        nori__hint(c->err, "gather_axis 0 and, below 8 bits, the last axis as quantize_axis run");
        return s;
    }
    return NORI_OK;
}

nori_status nori__infer_ms_gather_block(nori__infer *c)
{
    int rank = nori__in_rank(c, 0), at = nori__in_rank(c, 1), gather, quant;
    nori_type elem = nori__in_elem(c, 2), data = nori__in_elem(c, 0);
    nori__dim dims[2 * NORI_MAX_RANK], last;
    nori__out_elem(c, 0, elem);
    if (rank < 0 || data == NORI_UNDEFINED) {
        return NORI_OK;
    }
    NORI__TRY(
        nori__fix_axis(c->err, nori__attr_i(c->node, "gather_axis", 0), rank, &gather));
    NORI__TRY(
        nori__fix_axis(c->err, nori__attr_i(c->node, "quantize_axis", 1), rank, &quant));
    NORI__TRY(check_gather(c, rank, gather, quant));
    if (at < 0) {
        return NORI_OK;
    }
    if (rank + at - 1 > NORI_MAX_RANK) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "the result would have rank %d", rank + at - 1);
    }
    int64_t per = data == NORI_UINT8 ? 8 / nori__attr_i(c->node, "bits", 4) : 1;
    last = c->in[0].dims[rank - 1];
    last = per > 1 && last.value >= 0 ? nori__dim_of(last.value * per) : per > 1 ? any : last;
    int out = 0;
    for (int d = 0; d < rank; d++) {
        for (int i = 0; d == gather && i < at; i++) {
            dims[out++] = c->in[1].dims[i];
        }
        if (d != gather) {
            dims[out++] = d == rank - 1 ? last : c->in[0].dims[d];
        }
    }
    nori__out_set(c, 0, elem, out, dims);
    return NORI_OK;
}

/* ---- pools with channels first or last ---- */

/* Runs a shape rule for channels-first tensors on input 0 with its channels at the end. */
static nori_status channels_last(nori__infer *c, nori__infer_fn rule)
{
    int rank = nori__in_rank(c, 0);
    if (rank < 3) {
        return rank < 0 ? rule(c) : rank_error(c, 0, "at least 3 (batch, space, channels)");
    }
    nori__shape in = c->in[0], *out = &c->out[0];
    nori__infer inner = *c;
    nori__dim channels = in.dims[rank - 1];
    memmove(in.dims + 2, in.dims + 1, (size_t)(rank - 2) * sizeof channels);
    in.dims[1] = channels;
    in.tensor = NULL;
    inner.in = &in;
    NORI__TRY(rule(&inner));
    if (out->rank == rank) {
        channels = out->dims[1];
        memmove(out->dims + 1, out->dims + 2, (size_t)(rank - 2) * sizeof channels);
        out->dims[rank - 1] = channels;
    }
    return NORI_OK;
}

nori_status nori__infer_ms_nhwc_pool(nori__infer *c)
{
    return channels_last(c, nori__infer_pool);
}

nori_status nori__infer_ms_qlinear_pool(nori__infer *c)
{
    bool last = nori__attr_i(c->node, "channels_last", 0) != 0;
    return last ? channels_last(c, nori__infer_pool) : nori__infer_pool(c);
}

nori_status nori__infer_ms_qlinear_global(nori__infer *c)
{
    bool last = nori__attr_i(c->node, "channels_last", 0) != 0;
    return last ? channels_last(c, nori__infer_global_pool) : nori__infer_global_pool(c);
}

/* ---- CropAndResize: X, rois, batch_indices, crop_size ---- */

nori_status nori__infer_ms_crop(nori__infer *c)
{
    const char *mode = nori__attr_s(c->node, "mode", "bilinear");
    nori__dim size[2] = {any, any};
    if (!nori__same(mode, "bilinear") && !nori__same(mode, "nearest")) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "mode is \"%s\", expected bilinear or nearest", mode);
    }
    int xr = nori__in_rank(c, 0), rr = nori__in_rank(c, 1);
    if ((xr >= 0 && xr != 4) || (rr >= 0 && rr != 2)) {
        return rank_error(c, xr >= 0 && xr != 4 ? 0 : 1, xr >= 0 && xr != 4 ? "4" : "2");
    }
    int known = nori__in_data(c, 3, size, 2);
    for (int i = 0; i < known; i++) {
        if (known != 2 || size[i].value == 0 || size[i].value < -1) {
            return nori__fail(c->err, NORI_ERROR_MODEL,
                              "crop_size (input 3) is not two positive sizes");
        }
    }
    nori__dim dims[4] = {rr >= 0 ? c->in[1].dims[0] : any, xr >= 0 ? c->in[0].dims[1] : any,
                         size[0], size[1]};
    nori__out_set(c, 0, nori__in_elem(c, 0), 4, dims);
    return NORI_OK;
}

/* ---- quantized Where and Concat ---- */

/* Inputs: condition, X, x_scale, x_zero, Y, y_scale, y_zero, z_scale, z_zero. */
nori_status nori__infer_ms_qlinear_where(nori__infer *c)
{
    nori__shape out;
    nori__out_elem(c, 0, nori__in_elem(c, 1));
    if (nori__in_rank(c, 0) < 0 || nori__in_rank(c, 1) < 0 || nori__in_rank(c, 4) < 0) {
        return NORI_OK;
    }
    NORI__TRY(nori__broadcast(c, &c->in[0], &c->in[1], memset(&out, 0, sizeof out)));
    out.kind = NORI_KIND_TENSOR;
    NORI__TRY(nori__broadcast(c, &out, &c->in[4], &out));
    nori__out_set(c, 0, nori__in_elem(c, 1), out.rank, out.dims);
    return NORI_OK;
}

/* Inputs: Y_scale, Y_zero, then tensor, scale and zero point of each part. */
nori_status nori__infer_ms_qlinear_concat(nori__infer *c)
{
    uint32_t n = c->node->input_count;
    nori_type elem = nori__in_elem(c, 1);
    nori__dim dims[NORI_MAX_RANK];
    int axis, rank = nori__in_rank(c, 2);
    nori__out_elem(c, 0, elem);
    if (n < 5 || (n - 2) % 3 != 0) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "%u inputs are not a scale, a zero point and threes of tensor, scale and "
                          "zero point", n);
    }
    if (rank < 0) {
        return NORI_OK;
    }
    NORI__TRY(nori__fix_axis(c->err, nori__attr_i(c->node, "axis", 0), rank, &axis));
    memcpy(dims, c->in[2].dims, sizeof dims);
    for (uint32_t i = 5; i < n; i += 3) {
        int other = nori__in_rank(c, i);
        if (other < 0) {
            dims[axis] = any;
            continue;
        }
        if (other != rank) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "input %u has rank %d, expected %d", i,
                              other, rank);
        }
        int64_t one = c->in[i].dims[axis].value, all = dims[axis].value;
        bool known = one >= 0 && all >= 0 && nori__add_i64(all, one, &all);
        dims[axis] = known ? nori__dim_of(all) : any;
        for (int d = 0; d < rank; d++) {
            nori__dim dim = c->in[i].dims[d];
            if (d != axis && dim.value >= 0 && dims[d].value >= 0 && dim.value != dims[d].value) {
                return nori__fail(c->err, NORI_ERROR_MODEL,
                                  "input %u has size %lld on axis %d, expected %lld", i,
                                  (long long)dim.value, d, (long long)dims[d].value);
            }
            dims[d] = d != axis && dims[d].value < 0 ? dim : dims[d];
        }
    }
    nori__out_set(c, 0, elem, rank, dims);
    return NORI_OK;
}

nori_status nori__infer_ms_inverse(nori__infer *c)
{
    int rank = nori__in_rank(c, 0);
    nori__out_like(c, 0, 0);
    if (rank >= 0 && rank < 2) {
        return rank_error(c, 0, "at least 2");
    }
    const nori__dim *d = c->in[0].dims;
    if (rank > 0 && d[rank - 1].value >= 0 && d[rank - 2].value >= 0 &&
        d[rank - 1].value != d[rank - 2].value) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "input 0 is not made of square matrices");
    }
    return NORI_OK;
}

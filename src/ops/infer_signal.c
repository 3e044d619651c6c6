/* infer_signal.c: shapes of Fourier transforms, windows and mel matrices. */
#include "ops/families.h"

static const nori__dim any = {-1, NULL};

/* A scalar input's content; otherwise when absent, -1 when not known. */
static nori_status scalar(nori__infer *c, uint32_t i, int64_t otherwise, const char *name,
                          int64_t *out)
{
    nori__dim d[1];
    *out = otherwise;
    if (!nori__has_in(c, i)) {
        return NORI_OK;
    }
    int n = nori__in_data(c, i, d, 1);
    *out = -1;
    if (c->in[i].tensor && c->in[i].tensor->count == 1) {
        int64_t v = nori__tensor_get_i64(c->in[i].tensor, 0);
        if (v < 0 || v > INT32_MAX) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "%s (input %u) is %lld", name, i,
                              (long long)v);
        }
        *out = v;
    } else if (n == 1) {
        *out = d[0].value;
    }
    return NORI_OK;
}

nori_status nori__infer_dft(nori__infer *c)
{
    nori__dim dims[NORI_MAX_RANK];
    int rank = nori__in_rank(c, 0), axis;
    nori_type elem = nori__in_elem(c, 0);
    bool old = c->node->version > 0 && c->node->version < 20;
    bool inverse = nori__attr_i(c->node, "inverse", 0) != 0;
    bool onesided = nori__attr_i(c->node, "onesided", 0) != 0;
    nori__out_elem(c, 0, elem);
    if (rank < 0) {
        return NORI_OK;
    }
    int64_t length, at = nori__attr_i(c->node, "axis", 1);
    if (!old && nori__has_in(c, 2)) {
        if (!c->in[2].tensor || c->in[2].tensor->count != 1) {
            return NORI_OK;
        }
        at = nori__tensor_get_i64(c->in[2].tensor, 0);
    } else if (!old) {
        at = -2;
    }
    NORI__TRY(nori__fix_axis(c->err, at, rank, &axis));
    if (axis == rank - 1) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "axis %d is the one of real and imaginary parts", axis);
    }
    memcpy(dims, c->in[0].dims, (size_t)rank * sizeof dims[0]);
    int64_t size = dims[axis].value;
    int64_t usual = inverse && onesided ? (size > 0 ? 2 * (size - 1) : size) : size;
    NORI__TRY(scalar(c, 1, usual, "dft_length", &length));
    if (length >= 0 && onesided && !inverse) {
        length = length / 2 + 1;
    }
    /* An unknown length keeps its name only where it is the input's. */
    if (length >= 0 || nori__has_in(c, 1) || onesided) {
        dims[axis] = length >= 0 ? nori__dim_of(length) : any;
    }
    dims[rank - 1] = nori__dim_of(inverse && onesided ? 1 : 2);
    nori__out_set(c, 0, elem, rank, dims);
    return NORI_OK;
}

nori_status nori__infer_stft(nori__infer *c)
{
    nori__dim dims[4] = {any, any, any, nori__dim_of(2)};
    nori_type elem = nori__in_elem(c, 0);
    int rank = nori__in_rank(c, 0);
    int64_t step, length = -1, usual = -1;
    if (rank >= 0 && rank != 2 && rank != 3) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "input 0 has rank %d, expected 3", rank);
    }
    NORI__TRY(scalar(c, 1, -1, "frame_step", &step));
    if (nori__has_in(c, 2) && nori__in_rank(c, 2) == 1) {
        usual = c->in[2].dims[0].value;
    }
    NORI__TRY(scalar(c, 3, usual, "frame_length", &length));
    if (rank >= 0) {
        dims[0] = c->in[0].dims[0];
        int64_t size = c->in[0].dims[1].value;
        if (step == 0) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "frame_step is 0");
        }
        if (size >= 0 && step > 0 && length >= 0) {
            dims[1] = nori__dim_of(size < length ? 0 : (size - length) / step + 1);
        }
    }
    if (length >= 0) {
        dims[2] = nori__dim_of(nori__attr_i(c->node, "onesided", 1) ? length / 2 + 1 : length);
    }
    nori__out_set(c, 0, elem, 4, dims);
    return NORI_OK;
}

static nori_status output_type(nori__infer *c, nori_type *type)
{
    int64_t t = nori__attr_i(c->node, "output_datatype", NORI_FLOAT);
    if (t <= 0 || t >= NORI_TYPE_COUNT) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "output_datatype is %lld", (long long)t);
    }
    *type = (nori_type)t;
    return NORI_OK;
}

nori_status nori__infer_window(nori__infer *c)
{
    nori_type type = NORI_FLOAT;
    int64_t size = -1;
    NORI__TRY(output_type(c, &type));
    NORI__TRY(scalar(c, 0, -1, "size", &size));
    nori__dim dims[1] = {size >= 0 ? nori__dim_of(size) : any};
    nori__out_set(c, 0, type, 1, dims);
    return NORI_OK;
}

nori_status nori__infer_mel(nori__infer *c)
{
    nori_type type = NORI_FLOAT;
    int64_t bands = -1, length = -1;
    NORI__TRY(output_type(c, &type));
    NORI__TRY(scalar(c, 0, -1, "num_mel_bins", &bands));
    NORI__TRY(scalar(c, 1, -1, "dft_length", &length));
    nori__dim dims[2] = {length >= 0 ? nori__dim_of(length / 2 + 1) : any,
                         bands >= 0 ? nori__dim_of(bands) : any};
    nori__out_set(c, 0, type, 2, dims);
    return NORI_OK;
}

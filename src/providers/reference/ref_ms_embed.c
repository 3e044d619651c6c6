/* ref_ms_embed.c: com.microsoft EmbedLayerNormalization, the first layer of BERT-like models. In
 * double, rounded once. */
#include "providers/reference/ref_nn.h"

#include <math.h>

/* Inputs: input_ids, segment_ids, word, position and segment embeddings, gamma, beta, mask,
 * position_ids. */

/* Adds row `row` of table i to sum; false when there is no such row. */
static bool add_row(const nori_call *call, uint32_t i, int64_t row, int64_t n, double *sum)
{
    const nori_tensor *t = call->in[i];
    if (row < 0 || row >= t->dims[0]) {
        return false;
    }
    for (int64_t j = 0; j < n; j++) {
        sum[j] += ((const double *)t->data)[row * n + j];
    }
    return true;
}

static nori_status embed_token(nori_call *call, int64_t b, int64_t s, int64_t length, int64_t n,
                               double *y)
{
    int64_t token = b * length + s, position = s;
    const nori_tensor *positions = nori__nn_has(call, 8) ? call->in[8] : NULL;
    if (positions) {
        position = nori__tensor_get_i64(positions, positions->count == length ? s : token);
    }
    memset(y, 0, (size_t)n * sizeof *y);
    bool found = add_row(call, 2, nori__tensor_get_i64(call->in[0], token), n, y) &&
                 add_row(call, 3, position, n, y);
    if (found && nori__nn_has(call, 4)) {
        int64_t segment = nori__nn_has(call, 1) ? nori__tensor_get_i64(call->in[1], token) : 0;
        found = add_row(call, 4, segment, n, y);
    }
    if (!found) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "token %lld of sequence %lld names a row that an embedding does not have",
                          (long long)s, (long long)b);
    }
    if (nori__nn_wants(call, 2)) {
        memcpy((double *)call->out[2]->data + token * n, y, (size_t)n * sizeof *y);
    }
    double mean = 0, squares = 0;
    for (int64_t j = 0; j < n; j++) {
        mean += y[j] / (double)n;
    }
    for (int64_t j = 0; j < n; j++) {
        squares += (y[j] - mean) * (y[j] - mean);
    }
    double inverse = 1 / sqrt(squares / (double)n +
                              (double)nori__attr_f(call->node, "epsilon", 1e-12f));
    const double *gamma = call->in[5]->data;
    const double *beta = nori__nn_has(call, 6) ? call->in[6]->data : NULL;
    for (int64_t j = 0; j < n; j++) {
        y[j] = (y[j] - mean) * inverse * gamma[j] + (beta ? beta[j] : 0);
    }
    return NORI_OK;
}

static nori_status embed(nori_call *call)
{
    NORI__TRY(nori__nn_need(call, 0, "input_ids", 2));
    NORI__TRY(nori__nn_need(call, 2, "word_embedding", 2));
    NORI__TRY(nori__nn_need(call, 3, "position_embedding", 2));
    NORI__TRY(nori__nn_need(call, 5, "gamma", 1));
    int64_t batch = call->in[0]->dims[0], length = call->in[0]->dims[1];
    int64_t n = call->in[2]->dims[1];
    for (uint32_t i = 2; i < 7; i++) {
        bool table = i < 5;
        if (nori__nn_has(call, i) &&
            (call->in[i]->type != NORI_DOUBLE || call->in[i]->rank != (table ? 2 : 1) ||
             call->in[i]->dims[table ? 1 : 0] != n)) {
            return nori__fail(call->err, NORI_ERROR_DATA, "input %u does not have rows of %lld", i,
                              (long long)n);
        }
    }
    NORI__TRY(nori__nn_count(call, 1, "segment_ids", batch * length));
    NORI__TRY(nori__nn_count(call, 7, "mask", batch * length));
    if (nori__nn_has(call, 8) && call->in[8]->count != length) {
        NORI__TRY(nori__nn_count(call, 8, "position_ids", batch * length));
    }
    for (int64_t b = 0; b < batch; b++) {
        int64_t valid = 0;
        for (int64_t s = 0; s < length; s++) {
            NORI__TRY(embed_token(call, b, s, length, n,
                                  (double *)call->out[0]->data + (b * length + s) * n));
            valid += nori__nn_has(call, 7) &&
                     nori__tensor_get_i64(call->in[7], b * length + s) == 1;
        }
        if (nori__nn_wants(call, 1)) {
            ((int32_t *)call->out[1]->data)[b] = (int32_t)valid;
        }
    }
    return NORI_OK;
}

nori_status nori__ref_ms_EmbedLayerNormalization(nori_call *call)
{
    return nori__nn_double(call, 0, embed);
}

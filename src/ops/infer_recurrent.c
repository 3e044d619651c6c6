/* infer_recurrent.c: shapes of RNN, GRU, LSTM, com.microsoft DynamicQuantizeLSTM. Y is [length,
 * directions, batch, hidden], with layout 1 [batch, length, directions, hidden]; the states lose the
 * length. */
#include "ops/families.h"

static const nori__dim any = {-1, NULL};

/* turned: W and R hold a column a gate, not a row. */
static nori_status recurrent(nori__infer *c, int gates, bool turned)
{
    nori_type elem = nori__in_elem(c, 0);
    int64_t layout = nori__attr_i(c->node, "layout", 0), hidden;
    const char *direction = nori__attr_s(c->node, "direction", "forward");
    nori__dim n_dir = nori__dim_of(nori__same(direction, "bidirectional") ? 2 : 1);
    if (n_dir.value == 1 && !nori__same(direction, "forward") &&
        !nori__same(direction, "reverse")) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "direction is \"%s\", expected forward, reverse or bidirectional",
                          direction);
    }
    for (uint32_t i = 0; i < 3; i++) {
        int rank = nori__in_rank(c, i);
        if (rank >= 0 && rank != 3) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "input %u has rank %d, expected 3", i,
                              rank);
        }
    }
    nori__dim length = any, batch = any, h = any;
    if (nori__in_rank(c, 0) == 3) {
        length = c->in[0].dims[layout ? 1 : 0];
        batch = c->in[0].dims[layout ? 0 : 1];
    }
    if (nori__in_rank(c, 2) == 3) {
        h = c->in[2].dims[turned ? 1 : 2];
        nori__dim rows = c->in[2].dims[turned ? 2 : 1];
        if (h.value >= 0 && rows.value >= 0 && rows.value != gates * h.value) {
            return nori__fail(c->err, NORI_ERROR_MODEL,
                              "input 2 (R) has %lld %s, expected %d times %lld",
                              (long long)rows.value, turned ? "columns" : "rows", gates, (long long)h.value);
        }
    }
    hidden = nori__attr_i(c->node, "hidden_size", h.value);
    if (h.value >= 0 && hidden != h.value) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "hidden_size is %lld but R is made for %lld",
                          (long long)hidden, (long long)h.value);
    }
    h = hidden >= 0 ? nori__dim_of(hidden) : any;
    nori__dim y[2][4] = {{length, n_dir, batch, h}, {batch, length, n_dir, h}};
    nori__dim s[2][3] = {{n_dir, batch, h}, {batch, n_dir, h}};
    nori__out_set(c, 0, elem, 4, y[layout != 0]);
    for (uint32_t o = 1; o < c->node->output_count; o++) {
        nori__out_set(c, o, elem, 3, s[layout != 0]);
    }
    return NORI_OK;
}

nori_status nori__infer_rnn(nori__infer *c)
{
    return recurrent(c, 1, false);
}

nori_status nori__infer_gru(nori__infer *c)
{
    return recurrent(c, 3, false);
}

nori_status nori__infer_lstm(nori__infer *c)
{
    return recurrent(c, 4, false);
}

nori_status nori__infer_ms_dynamic_lstm(nori__infer *c)
{
    return recurrent(c, 4, true);
}

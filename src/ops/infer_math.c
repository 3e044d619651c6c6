/* infer_math.c: shapes of elementwise operators that infer.c's general functions do not cover. */
#include "ops/families.h"

/* IsInf, IsNaN: the shape of input 0, booleans. */
nori_status nori__infer_classify(nori__infer *c)
{
    nori__out_like(c, 0, 0);
    nori__out_elem(c, 0, NORI_BOOL);
    return NORI_OK;
}

/* Where: three shapes broadcast, the type of the choices. */
nori_status nori__infer_where(nori__infer *c)
{
    NORI__TRY(nori__infer_compare(c));
    nori_type elem = nori__in_elem(c, 1);
    nori__out_elem(c, 0, elem ? elem : nori__in_elem(c, 2));
    return NORI_OK;
}

/* One entry of shape arithmetic; false when nothing can be said. */
static bool combine(const char *op, nori__dim x, nori__dim y, nori__dim *out)
{
    bool known = x.value >= 0 && y.value >= 0;
    int64_t v = -1;
    switch (op[0]) {
    case 'A': /* Add */
        if (known && nori__add_i64(x.value, y.value, &v)) {
            *out = nori__dim_of(v);
        } else {
            *out = x.value == 0 ? y : y.value == 0 ? x : NORI__DIM_ANY;
        }
        return true;
    case 'S': /* Sub; a negative result has no place here */
        *out = known ? nori__dim_of(x.value - y.value) : y.value == 0 ? x : NORI__DIM_ANY;
        return !known || x.value >= y.value;
    case 'M': /* Mul */
        if (known && nori__mul_dim(x.value, y.value, &v)) {
            *out = nori__dim_of(v);
        } else {
            *out = x.value == 1 ? y : y.value == 1 ? x : NORI__DIM_ANY;
        }
        return true;
    default: /* Div */
        *out = known && y.value > 0 ? nori__dim_of(x.value / y.value)
               : y.value == 1       ? x
                                    : NORI__DIM_ANY;
        return true;
    }
}

/* Add, Sub, Mul, Div: broadcasting; and on small integers, which are mostly pieces of shapes, the
 * content as far as it is known. */
nori_status nori__infer_arithmetic(nori__infer *c)
{
    NORI__TRY(nori__infer_broadcast(c));
    nori_type elem = nori__in_elem(c, 0);
    if (c->node->input_count != 2 || c->node->output_count == 0 ||
        (elem != NORI_INT64 && elem != NORI_INT32)) {
        return NORI_OK;
    }
    nori__dim x[NORI_MAX_RANK], y[NORI_MAX_RANK], out[NORI_MAX_RANK];
    int nx = nori__in_data(c, 0, x, NORI_MAX_RANK), ny = nori__in_data(c, 1, y, NORI_MAX_RANK);
    if (nx < 0 || ny < 0 || (nx != ny && nx != 1 && ny != 1) || c->out[0].rank > 1) {
        return NORI_OK;
    }
    int n = nx == 1 ? ny : nx;
    for (int i = 0; i < n; i++) {
        nori__dim a = x[nx == 1 ? 0 : i], b = y[ny == 1 ? 0 : i];
        bool negative = (c->in[0].tensor && a.value < 0) || (c->in[1].tensor && b.value < 0);
        if (negative || !combine(c->node->op_type, a, b, &out[i])) {
            return NORI_OK;
        }
    }
    for (int i = 0; i < n; i++) {
        c->out[0].data[i] = out[i];
    }
    c->out[0].data_count = n;
    return NORI_OK;
}

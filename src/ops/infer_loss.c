/* infer_loss.c: shapes of loss operators. */
#include "ops/families.h"

/* Output 0: a scalar, or with reduction "none" one loss a label; output 1: like the scores. */
nori_status nori__infer_loss(nori__infer *c)
{
    const char *reduction = nori__attr_s(c->node, "reduction", "mean");
    int rank = nori__in_rank(c, 0), labels = nori__in_rank(c, 1);
    if (rank >= 0 && rank < 2) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "input 0 has rank %d, expected at least 2 (batch, classes ...)", rank);
    }
    if (rank >= 0 && labels >= 0 && labels != rank - 1) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "input 1 has rank %d, expected %d", labels,
                          rank - 1);
    }
    if (!nori__same(reduction, "none")) {
        if (!nori__same(reduction, "mean") && !nori__same(reduction, "sum")) {
            return nori__fail(c->err, NORI_ERROR_MODEL,
                              "attribute reduction is \"%s\", expected none, mean or sum",
                              reduction);
        }
        nori__out_set(c, 0, nori__in_elem(c, 0), 0, NULL);
    } else if (labels >= 0) {
        nori__out_set(c, 0, nori__in_elem(c, 0), labels, c->in[1].dims);
    } else {
        nori__out_elem(c, 0, nori__in_elem(c, 0));
    }
    nori__out_like(c, 1, 0);
    return NORI_OK;
}

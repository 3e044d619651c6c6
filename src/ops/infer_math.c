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

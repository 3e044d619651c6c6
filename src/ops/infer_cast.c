/* infer_cast.c: types of Cast, CastLike, BitCast. Shapes stay; small integer content passes
 * through integer casts, since exporters cast pieces of shapes to and fro. */
#include "ops/families.h"

static nori_status target(nori__infer *c, nori_type *to)
{
    static const struct {
        const char *name;
        nori_type type;
    } old[] = {{"FLOAT", NORI_FLOAT},     {"DOUBLE", NORI_DOUBLE}, {"FLOAT16", NORI_FLOAT16},
               {"INT8", NORI_INT8},       {"INT16", NORI_INT16},   {"INT32", NORI_INT32},
               {"INT64", NORI_INT64},     {"UINT8", NORI_UINT8},   {"UINT16", NORI_UINT16},
               {"UINT32", NORI_UINT32},   {"UINT64", NORI_UINT64}, {"BOOL", NORI_BOOL}};
    int64_t type = nori__attr_i(c->node, "to", 0);
    const char *text = nori__attr_s(c->node, "to", ""); /* Cast-1 names the type */
    for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++) {
        type = nori__same(text, old[i].name) ? (int64_t)old[i].type : type;
    }
    if (type <= NORI_UNDEFINED || type >= NORI_TYPE_COUNT) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "attribute to is %lld, expected the number of an element type",
                          (long long)type);
    }
    *to = (nori_type)type;
    return NORI_OK;
}

static nori_status cast_to(nori__infer *c, nori_type to)
{
    nori__out_like(c, 0, 0);
    nori__out_elem(c, 0, to);
    nori_type from = nori__in_elem(c, 0);
    bool wide = (to == NORI_INT64 || to == NORI_INT32) && (from == NORI_INT64 || from == NORI_INT32);
    nori__dim data[NORI_MAX_RANK];
    int n = wide && c->node->output_count > 0 && !c->in[0].tensor
                ? nori__in_data(c, 0, data, NORI_MAX_RANK) : -1;
    for (int i = 0; i < n; i++) {
        if (to == NORI_INT32 && data[i].value > INT32_MAX) {
            return NORI_OK;
        }
        c->out[0].data[i] = data[i];
    }
    if (n >= 0) {
        c->out[0].data_count = n;
    }
    return NORI_OK;
}

nori_status nori__infer_cast(nori__infer *c)
{
    nori_type to = NORI_UNDEFINED;
    NORI__TRY(target(c, &to));
    return cast_to(c, to);
}

nori_status nori__infer_cast_like(nori__infer *c)
{
    return cast_to(c, nori__in_elem(c, 1));
}

nori_status nori__infer_bit_cast(nori__infer *c)
{
    nori_type to = NORI_UNDEFINED, from = nori__in_elem(c, 0);
    NORI__TRY(target(c, &to));
    if (to == NORI_STRING || from == NORI_STRING ||
        (from && nori_type_bits(from) != nori_type_bits(to))) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "BitCast from %s to %s: the types must have one width",
                          nori_type_name(from), nori_type_name(to));
    }
    nori__out_like(c, 0, 0);
    nori__out_elem(c, 0, to);
    return NORI_OK;
}

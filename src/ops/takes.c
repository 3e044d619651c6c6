/* takes.c: element types against the facts of an operator. */
#include "ops/takes.h"

#include <stdio.h>

#define BIT(n) (UINT64_C(1) << (n))

static const char *const kind_words[] = {
    [NORI__TYPES_SEQ_TENSOR - 32] = "sequence of tensors",
    [NORI__TYPES_SEQ_MAP - 32] = "sequence of maps",
    [NORI__TYPES_OPT_TENSOR - 32] = "optional tensor",
    [NORI__TYPES_OPT_SEQ - 32] = "optional sequence",
    [NORI__TYPES_MAP - 32] = "map",
    [NORI__TYPES_SPARSE - 32] = "sparse tensor",
};

uint64_t nori__types_of(nori_kind kind, nori_type elem, const nori__type *of)
{
    bool open = !of || of->kind == NORI_KIND_UNKNOWN;
    switch (kind) {
    case NORI_KIND_TENSOR:
        return elem > 0 && elem < NORI_TYPE_COUNT ? BIT(elem) : 0;
    case NORI_KIND_SEQUENCE:
        return open ? BIT(NORI__TYPES_SEQ_TENSOR) | BIT(NORI__TYPES_SEQ_MAP)
                    : BIT(of->kind == NORI_KIND_MAP ? NORI__TYPES_SEQ_MAP : NORI__TYPES_SEQ_TENSOR);
    case NORI_KIND_OPTIONAL:
        return open ? BIT(NORI__TYPES_OPT_TENSOR) | BIT(NORI__TYPES_OPT_SEQ)
                    : BIT(of->kind == NORI_KIND_SEQUENCE ? NORI__TYPES_OPT_SEQ : NORI__TYPES_OPT_TENSOR);
    case NORI_KIND_MAP:
        return BIT(NORI__TYPES_MAP);
    case NORI_KIND_SPARSE:
        return BIT(NORI__TYPES_SPARSE);
    default:
        return 0;
    }
}

void nori__types_text(uint64_t types, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (unsigned i = 1; i < 32 + NORI__COUNT(kind_words); i++) {
        if (!(types & BIT(i))) {
            continue;
        }
        const char *word = i < NORI_TYPE_COUNT ? nori_type_name((nori_type)i)
                           : i >= 32           ? kind_words[i - 32]
                                               : "?";
        int n = snprintf(out + at, size - at, "%s%s", at ? ", " : "", word);
        if (n < 0 || (size_t)n >= size - at) {
            return;
        }
        at += (size_t)n;
    }
}

const nori__schema_arg *nori__schema_arg_at(const nori__schema_arg *args, unsigned n, uint32_t i)
{
    if (i < n) {
        return &args[i];
    }
    return n > 0 && args[n - 1].option == NORI__ARG_VARIADIC ? &args[n - 1] : NULL;
}

static nori_status refuse(const nori__infer *c, uint32_t i, const nori__schema_arg *arg,
                          uint64_t found)
{
    char is[128], takes[512];
    nori__types_text(found, is, sizeof(is));
    nori__types_text(arg->types, takes, sizeof(takes));
    nori_status s = nori__fail(c->err, NORI_ERROR_MODEL, "input %u (%s) of %s is %s; it takes %s", i,
                               arg->name, c->node->op_type, is, takes);
    nori__hint(c->err, "`nori check` lists everything that is wrong with the model");
    return s;
}

nori_status nori__require_types(const nori__infer *c)
{
    const nori__schema *s = c->node->schema;
    for (uint32_t i = 0; s && i < c->node->input_count; i++) {
        const nori__shape *in = &c->in[i];
        uint64_t found = nori__types_of((nori_kind)in->kind, (nori_type)in->elem, in->of);
        const nori__schema_arg *arg = nori__schema_arg_at(s->in, s->n_in, i);
        if (!found || !arg || (arg->types & found)) {
            continue;
        }
        /* Later versions mostly took more types; kernels take what the newest does. */
        const nori__schema *newest =
            nori__schema_find(s->domain, s->name, nori__opset_max(s->domain));
        const nori__schema_arg *now =
            newest ? nori__schema_arg_at(newest->in, newest->n_in, i) : NULL;
        if (!now || !(now->types & found)) {
            return refuse(c, i, now ? now : arg, found);
        }
    }
    return NORI_OK;
}

/* op.c: the list of operators as a table, and its lookup. */
#include "ops/op.h"

#include "base/built.h"
#include "ops/families.h"

#define nori__ref_none NULL

static const nori__op ops[] = {
#define NORI__OP(domain, name, family, flags, infer, reference) \
    NORI__IF_BUILT(domain##_##name, {NORI__OP_##domain##_##name, NORI__##domain, #name, family, flags, \
                                     infer, reference},)
#include "ops/op_list.h"
#undef NORI__OP
};

static const char *const domain_names[NORI__DOMAINS] = {
    "", "ai.onnx.ml", "ai.onnx.preview.training", "ai.onnx.preview", "com.microsoft",
};

const char *nori__domain_name(nori__domain domain)
{
    return (unsigned)domain < NORI__DOMAINS ? domain_names[domain] : "?";
}

const nori__op *nori__op_at(size_t index)
{
    return index < NORI__COUNT(ops) ? &ops[index] : NULL;
}

/* The list is sorted by name within a domain: binary search inside the domain's range. */
const nori__op *nori__op_find(const char *domain, const char *name)
{
    if (nori__same(domain, "ai.onnx")) {
        domain = "";
    }
    int d = 0;
    while (d < NORI__DOMAINS && !nori__same(domain, domain_names[d])) {
        d++;
    }
    size_t low = 0, high = NORI__COUNT(ops);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = (int)ops[mid].domain - d;
        if (order == 0) {
            order = strcmp(ops[mid].name, name);
        }
        if (order == 0) {
            return &ops[mid];
        }
        if (order < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return NULL;
}

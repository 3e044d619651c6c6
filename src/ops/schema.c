/* schema.c: lookup in the table of facts (schema.inc). Rows are sorted by domain, name and since,
 * in byte order, so one binary search finds the newest version an opset allows. */
#include "ops/schema.h"

#ifdef NORI_REDUCED
#include "nori_schema.inc" /* the rows of the operators that are built */
#else
#include "ops/schema.inc"
#endif

static const char *plain_domain(const char *domain)
{
    return nori__same(domain, "ai.onnx") ? "" : domain;
}

/* Order of row s against (domain, name, since). */
static int compare(const nori__schema *s, const char *domain, const char *name, int64_t since)
{
    int order = strcmp(s->domain, domain);
    if (order == 0) {
        order = strcmp(s->name, name);
    }
    if (order == 0) {
        order = s->since < since ? -1 : s->since > since;
    }
    return order;
}

const nori__schema *nori__schema_find(const char *domain, const char *name, int64_t opset)
{
    domain = plain_domain(domain);
    /* The first row past (domain, name, opset); the one before it is the answer or another's. */
    size_t low = 0, high = NORI__COUNT(schemas);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (compare(&schemas[mid], domain, name, opset) <= 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    if (low == 0) {
        return NULL;
    }
    const nori__schema *found = &schemas[low - 1];
    return nori__same(found->domain, domain) && nori__same(found->name, name) ? found : NULL;
}

const nori__schema *nori__schema_at(size_t index)
{
    return index < NORI__COUNT(schemas) ? &schemas[index] : NULL;
}

int64_t nori__opset_max(const char *domain)
{
    static const struct {
        const char *domain;
        int64_t version;
    } known[] = {
        {"", NORI__OPSET_MAX_ONNX}, {"ai.onnx.ml", NORI__OPSET_MAX_ML},
        {"ai.onnx.preview", 1}, {"ai.onnx.preview.training", 1}, {"com.microsoft", 1},
    };
    domain = plain_domain(domain);
    for (size_t i = 0; i < NORI__COUNT(known); i++) {
        if (nori__same(known[i].domain, domain)) {
            return known[i].version;
        }
    }
    return 0;
}

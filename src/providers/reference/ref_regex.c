/* ref_regex.c: RegexFullMatch, by the operator module "regex", which says what it takes. */
#include "ops/families.h"
#include "providers/modules/module_load.h"
#include "providers/reference/ref.h"

nori_status nori__ref_RegexFullMatch(nori_call *call)
{
    const nori__attr *pattern = nori__attr_find(call->node, "pattern");
    const nori__module *module;
    char why[256] = "";
    NORI__TRY(nori__ref_need(call, 0));
    if (call->in[0]->type != NORI_STRING) {
        return nori__ref_bad_type(call, 0);
    }
    if (!pattern || pattern->kind != NORI__ATTR_STRING) {
        return nori__fail(call->err, NORI_ERROR_MODEL, "RegexFullMatch needs attribute pattern");
    }
    NORI__TRY(nori__module_get("regex", &module, call->err));
    void *compiled = module->compile(pattern->v.s, pattern->count, why, sizeof(why));
    if (!compiled) {
        return nori__fail(call->err, NORI_ERROR_MODEL, "pattern \"%.100s\" is not valid: %s",
                          pattern->v.s, why);
    }
    const nori_string *text = call->in[0]->data;
    uint8_t *out = call->out[0]->data;
    nori_status s = NORI_OK;
    for (int64_t i = 0; s == NORI_OK && i < call->in[0]->count; i++) {
        int is = module->match(compiled, text[i].data, text[i].size, why, sizeof(why));
        out[i] = is > 0;
        if (is < 0) {
            s = nori__fail(call->err, NORI_ERROR_LIMIT, "element %lld cannot be matched: %s",
                           (long long)i, why);
        }
    }
    module->discard(compiled);
    return s;
}

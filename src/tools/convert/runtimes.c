/* runtimes.c: the table of runtimes, and what they refuse a file for.
 *
 * A runtime takes files up to the IR version of the ONNX release it was built with, and operator sets
 * up to that release's. The rows: what Microsoft documents of Windows ML and of ONNX Runtime by
 * version, with the IR version of that ONNX release. */
#include "ops/schema.h"
#include "tools/convert/lower.h"

typedef struct runtime {
    const char *name;
    int oldest, opset, ir;
    bool microsoft; /* has the operators of com.microsoft, and others that are not ONNX's */
} runtime;

static const runtime runtimes[] = {
    {"Windows ML, Windows 10 1809", 7, 7, 3, false},
    {"Windows ML, Windows 10 1903", 7, 8, 3, false},
    {"Windows ML, Windows 10 2004", 7, 9, 4, false},
    {"Windows ML, Windows 11", 7, 12, 7, false},
    {"ONNX Runtime 1.6", 7, 13, 7, true},
    {"ONNX Runtime 1.8", 7, 14, 7, true},
    {"ONNX Runtime 1.10", 7, 15, 8, true},
    {"ONNX Runtime 1.12", 7, 17, 8, true},
    {"ONNX Runtime 1.14", 7, 18, 8, true},
    {"ONNX Runtime 1.17", 7, 20, 9, true},
    {"ONNX Runtime 1.18", 7, 21, 10, true},
    {"ONNX Runtime 1.22", 7, 23, 11, true},
    {"nori", 1, NORI__OPSET_MAX_ONNX, NORI__IR_VERSION_MAX, true},
};

size_t nori__runtime_count(void)
{
    return NORI__COUNT(runtimes);
}

void nori__runtime_facts(size_t index, nori_runtime_verdict *v)
{
    const runtime *r = &runtimes[index];
    *v = (nori_runtime_verdict){.size = sizeof(*v), .name = r->name, .oldest_opset = r->oldest,
                                .opset = r->opset, .ir = r->ir, .reason = ""};
}

static bool is_function(const nori__ir *ir, const nori__node *n)
{
    for (size_t i = 0; ir->pb && i < ir->pb->functions.count; i++) {
        const nori__pb_function *f = &ir->pb->functions.items[i];
        if (nori__str_is(f->name, n->op_type) && nori__str_is(f->domain, n->domain)) {
            return true;
        }
    }
    return false;
}

/* An operator the runtime has in no version: of another domain, or newer than all it knows. */
static const nori__node *foreign(const nori__ir *ir, const runtime *r)
{
    for (const nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (const nori__node *n = g->first; n; n = n->next) {
            bool ml = nori__same(n->domain, "ai.onnx.ml");
            bool has = ml || (nori__same(n->domain, "com.microsoft") && r->microsoft);
            if (n->domain[0] == 0) {
                const nori__schema *s = nori__schema_find("", n->op_type, r->opset);
                has = s && (!s->runtime || s->deprecated || r->microsoft);
            }
            if (!has && !is_function(ir, n)) {
                return n;
            }
        }
    }
    return NULL;
}

const char *nori__runtime_refusal(size_t index, const nori__ir *ir, int64_t opset,
                                  int64_t ir_version, nori__arena *arena)
{
    const runtime *r = &runtimes[index];
    nori__text text;
    nori__text_init(&text, arena->allocator);
    const char *between = "";
    if (ir_version > r->ir) {
        nori__text_printf(&text, "IR version %lld, it reads up to %d", (long long)ir_version, r->ir);
        between = "; ";
    }
    if (opset > r->opset || opset < r->oldest) {
        nori__text_printf(&text, "%soperator set %lld, it takes %d to %d", between, (long long)opset,
                          r->oldest, r->opset);
        between = "; ";
    }
    const nori__node *n = foreign(ir, r);
    if (n) {
        nori__text_printf(&text, "%soperator %s%s%s", between, n->domain, n->domain[0] ? "." : "",
                          n->op_type);
    }
    const char *copy = text.failed ? NULL : nori__arena_copy(arena, text.size ? text.data : "",
                                                             text.size);
    nori__text_free(&text);
    return copy;
}

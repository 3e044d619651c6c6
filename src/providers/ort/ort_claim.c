/* ort_claim.c: which nodes ONNX Runtime takes. It cannot be asked, only tried: one session for one
 * node of each kind (operator, version, types), remembered. */
#include <stdio.h>

#include "providers/ort/ort.h"

static void add_type(nori__text *key, const nori__value *v)
{
    nori__text_printf(key, " %d.%d", v ? v->type.kind : -1, v ? v->type.elem : 0);
}

static nori_status kind_of(const nori__node *node, nori__text *key, nori_error *err)
{
    nori__text_printf(key, "%s %s %d:", node->domain, node->op_type, node->version);
    for (uint32_t i = 0; i < node->input_count; i++) {
        add_type(key, node->inputs[i]);
    }
    nori__text_printf(key, " >");
    for (uint32_t i = 0; i < node->output_count; i++) {
        add_type(key, node->outputs[i]);
    }
    return key->failed ? nori__no_memory(err) : NORI_OK;
}

/* Makes a session of the node alone; why gets ONNX Runtime's reason. */
static nori_status try_node(const ort_self *self, const nori__node *node, nori_error *why)
{
    nori__ir *ir = node->graph->ir;
    nori__arena arena;
    nori_part *part = NULL;
    ort_session *session = NULL;
    size_t bytes = ((size_t)ir->value_count + 1) * sizeof(uint32_t);
    uint32_t *scratch = nori__alloc_zero(&nori__malloc, bytes);
    if (!scratch) {
        return nori__no_memory(why);
    }
    nori__arena_init(&arena, &nori__malloc);
    nori__node *nodes[1] = {(nori__node *)(uintptr_t)node}; /* only looked at */
    nori_status status =
        nori__part_of_nodes(&arena, &nori__malloc, ir, nodes, 1, scratch, &part, why);
    if (status == NORI_OK) {
        status = nori__ort_session(self, part, &session, why);
    }
    if (session) {
        self->library.api.ReleaseSession(session);
    }
    if (part) {
        nori__part_free(part);
    }
    nori__arena_free(&arena);
    nori__release(&nori__malloc, scratch, bytes);
    return status;
}

static nori_status judge(ort_self *self, const nori__node *node, const char *kind,
                         const char **verdict, nori_error *err)
{
    nori_error why = {0};
    nori_status status = try_node(self, node, &why);
    if (status != NORI_OK && status != NORI_ERROR_UNSUPPORTED) {
        return nori__fail(err, status, "%s", why.message);
    }
    char *key = nori__arena_text(&self->arena, kind);
    *verdict = nori__arena_text(&self->arena, status == NORI_OK ? "" : why.message);
    return key && *verdict && nori__map_put(&self->verdicts, key, (void *)(uintptr_t)*verdict)
               ? NORI_OK
               : nori__no_memory(err);
}

nori_status nori__ort_claim(void *user, const nori_node *node, nori_claim *claim, nori_error *err)
{
    ort_self *self = user;
    nori__text kind;
    nori__text_init(&kind, &nori__malloc);
    nori_status status = kind_of(node, &kind, err);
    const char *verdict = status == NORI_OK ? nori__map_get(&self->verdicts, kind.data) : NULL;
    if (status == NORI_OK && !verdict) {
        status = judge(self, node, kind.data, &verdict, err);
    }
    nori__text_free(&kind);
    if (status == NORI_OK) {
        claim->taken = !*verdict;
        snprintf(claim->reason, sizeof(claim->reason), "%.*s", (int)sizeof(claim->reason) - 1,
                 verdict);
    }
    return status;
}

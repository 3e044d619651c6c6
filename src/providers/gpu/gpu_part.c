/* gpu_part.c: compiling a part: its operators, what is fused, weights packed, programs built. */
#include "providers/gpu/gpu.h"

static uint32_t number_of_out(const nori_part *part, uint32_t at, uint32_t i)
{
    return part->node_values[at][part->nodes[at]->input_count + i];
}

static bool is_output(const nori_part *part, uint32_t value)
{
    for (uint32_t i = 0; i < part->n_out; i++) {
        if (part->out_values[i] == value) {
            return true;
        }
    }
    return false;
}

uint32_t nori__gpu_only_reader(const nori_part *part, uint32_t from, uint32_t value, uint32_t *input)
{
    uint32_t reader = UINT32_MAX;
    if (is_output(part, value)) {
        return UINT32_MAX;
    }
    for (uint32_t n = from + 1; n < part->n_nodes; n++) {
        for (uint32_t i = 0; i < part->nodes[n]->input_count; i++) {
            if (part->node_values[n][i] != value) {
                continue;
            }
            if (reader != UINT32_MAX) {
                return UINT32_MAX;
            }
            reader = n;
            *input = i;
        }
    }
    return reader;
}

uint32_t nori__gpu_maker(const nori_part *part, uint32_t value)
{
    for (uint32_t n = 0; n < part->n_nodes; n++) {
        for (uint32_t i = 0; i < part->nodes[n]->output_count; i++) {
            if (value != UINT32_MAX && number_of_out(part, n, i) == value) {
                return n;
            }
        }
    }
    return UINT32_MAX;
}

/* A function of one number behind a node, which that computes with it; UINT32_MAX: none. */
static uint32_t function_behind(const nori_part *part, uint32_t at, uint32_t value, const bool *taken,
                                gpu_then *then)
{
    uint32_t input = 0, next = nori__gpu_only_reader(part, at, value, &input);
    return next != UINT32_MAX && input == 0 && !taken[next] && nori__gpu_then(part->nodes[next], then)
               ? next
               : UINT32_MAX;
}

static nori_status take_node(const gpu_self *self, gpu_part *p, uint32_t at, bool *taken, nori_error *err)
{
    const nori_part *part = p->part;
    const nori__node *node = part->nodes[at];
    gpu_node *n = &p->nodes[p->n_nodes++];
    size_t count = (size_t)node->input_count + node->output_count;
    n->at = at;
    n->node = node;
    n->op = nori__gpu_op(node);
    n->n_in = node->input_count;
    n->n_out = node->output_count;
    n->in = nori__arena_array(&p->arena, count + 1, sizeof(*n->in));
    if (!n->in) {
        return nori__no_memory(err);
    }
    if (!n->op) {
        return nori__fail(err, NORI_ERROR_INTERNAL, "%s got %s, which it does not take",
                          self->driver->name, node->op_type);
    }
    memcpy(n->in, part->node_values[at], count * sizeof(*n->in));
    n->out = n->in + n->n_in;
    if (n->op->then) {
        uint32_t next = function_behind(part, at, n->out[0], taken, &n->then);
        if (next != UINT32_MAX) {
            taken[next] = true;
            n->out[0] = number_of_out(part, next, 0);
        }
    }
    return NORI_OK;
}

/* What stands for several nodes comes where the last of them was: all it reads is there by then. */
static nori_status take_nodes(const gpu_self *self, gpu_part *p, nori_error *err)
{
    const nori_part *part = p->part;
    size_t size = (size_t)part->n_nodes + 1;
    bool *taken = nori__arena_array(&p->arena, size, sizeof(*taken));
    gpu_node *joined = nori__arena_array(&p->arena, size, sizeof(*joined)); /* by last node */
    gpu_node found;
    p->nodes = nori__arena_array(&p->arena, size, sizeof(*p->nodes));
    if (!taken || !joined || !p->nodes) {
        return nori__no_memory(err);
    }
    for (uint32_t i = 0; i < part->n_nodes; i++) {
        if (nori__gpu_find_attention(self, p, i, taken, &found)) {
            joined[found.at] = found;
        }
    }
    for (uint32_t i = 0; i < part->n_nodes; i++) {
        if (!taken[i] && nori__gpu_find_chain(self, p, i, taken, &found)) {
            joined[found.at] = found;
        }
        if (joined[i].op) {
            p->nodes[p->n_nodes++] = joined[i];
        } else if (!taken[i]) {
            NORI__TRY(take_node(self, p, i, taken, err));
        }
    }
    return NORI_OK;
}

/* Which inputs of the part decide shapes: integers that some node reads otherwise than Gather reads
 * its indices. */
static void mark_host_only(gpu_part *p)
{
    const nori_part *part = p->part;
    for (uint32_t k = 0; k < part->n_in; k++) {
        const nori__value *v = part->in[k];
        for (uint32_t n = 0; n < part->n_nodes && v->type.elem != NORI_FLOAT; n++) {
            for (uint32_t i = 0; i < part->nodes[n]->input_count; i++) {
                bool index = i == 1 && nori__same(part->nodes[n]->op_type, "Gather");
                if (part->nodes[n]->inputs[i] == v && !index) {
                    p->host_only[k] = true;
                }
            }
        }
    }
}

static nori_status prepare(gpu_self *self, gpu_part *p, nori_error *err)
{
    const nori_part *part = p->part;
    size_t values = (size_t)part->n_values + 1;
    p->last_use = nori__arena_array(&p->arena, values, sizeof(*p->last_use));
    p->constants = nori__arena_array(&p->arena, values, sizeof(*p->constants));
    p->host_only = nori__arena_array(&p->arena, (size_t)part->n_in + 1, sizeof(*p->host_only));
    if (!p->last_use || !p->constants || !p->host_only) {
        return nori__no_memory(err);
    }
    NORI__TRY(take_nodes(self, p, err));
    mark_host_only(p);
    for (uint32_t k = 0; k < p->n_nodes; k++) {
        gpu_node *n = &p->nodes[k];
        for (uint32_t i = 0; i < n->n_in; i++) {
            if (n->in[i] != UINT32_MAX) {
                p->last_use[n->in[i]] = k;
            }
        }
        NORI__TRY(self->driver->program(self, n->op->source, err));
        if (n->op->pack) {
            nori_status status = n->op->pack(self, n, err);
            if (status != NORI_OK) {
                char path[256];
                nori__node_path(n->node, path, sizeof(path));
                nori__where(err, "%s", path);
                return status;
            }
        }
    }
    for (uint32_t i = 0; i < part->n_out; i++) {
        p->last_use[part->out_values[i]] = p->n_nodes;
    }
    return self->driver->program(self, GPU_IN_move, err); /* copies serve many operators */
}

nori_status nori__gpu_compile(void *user, nori_part *part, void **compiled, nori_error *err)
{
    gpu_self *self = user;
    gpu_part *p = nori__alloc_zero(&nori__malloc, sizeof(*p));
    if (!p) {
        return nori__no_memory(err);
    }
    p->part = part;
    nori__arena_init(&p->arena, &nori__malloc);
    self->telling = true;
    nori_status status = nori__gpu_enter(self, err);
    if (status == NORI_OK) {
        status = prepare(self, p, err);
        nori__gpu_leave(self);
    }
    self->telling = false;
    if (status != NORI_OK) {
        nori__gpu_free_part(self, p);
        return status;
    }
    *compiled = p;
    return NORI_OK;
}

void nori__gpu_free_part(void *user, void *compiled)
{
    gpu_self *self = user;
    gpu_part *p = compiled;
    /* Where the device cannot be reached any more, what lies on it is lost already. */
    bool entered = nori__gpu_enter(self, NULL) == NORI_OK;
    for (int i = 0; i < GPU_LAYOUTS; i++) {
        nori__gpu_layout_free(self, p->layouts[i]);
    }
    for (uint32_t i = 0; p->constants && i < p->part->n_values; i++) {
        nori__gpu_release(self, p->constants[i]);
    }
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        for (size_t k = 0; k < NORI__COUNT(p->nodes[i].packed); k++) {
            nori__gpu_release(self, p->nodes[i].packed[k]);
        }
    }
    if (entered) {
        nori__gpu_leave(self);
    }
    nori__arena_free(&p->arena);
    nori__release(&nori__malloc, p, sizeof(*p));
}

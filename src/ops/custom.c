/* custom.c: the registry of an environment: operators that callers add at run time, from code or
 * from shared objects. Entries are copied, only ever added and stay until the environment goes, so
 * graphs may point at them; readers take no lock. */
#include "ops/custom.h"

#include <pthread.h>
#include <stdatomic.h>

#include "platform/env.h"

typedef struct custom {
    nori__op op; /* first: an operator of this id is one of these */
    nori__schema schema;
    nori_kernel kernel;
    _Atomic(struct custom *) next;
} custom;

typedef struct registry {
    nori__arena arena;
    pthread_mutex_t lock;    /* of who adds */
    _Atomic(custom *) first; /* in the order of registration */
    nori__vec libraries;     /* opened by nori_env_load_ops */
} registry;

/* What libraries of operators call and nothing here may: a program that links the static library
 * takes only what is referred to, so that it is referred to. */
void (*const nori__offered[])(void) = {
    (void (*)(void))nori_call_alloc,
    (void (*)(void))nori_infer_node,
    (void (*)(void))nori_node_ints,
    (void (*)(void))nori_tensor_create,
};

static void *make_registry(const nori_allocator *a)
{
    registry *r = nori__alloc_zero(a, sizeof(*r));
    if (r) {
        nori__arena_init(&r->arena, a);
        nori__vec_init(&r->libraries, a);
        pthread_mutex_init(&r->lock, NULL);
    }
    return r;
}

static void free_registry(void *kept)
{
    registry *r = kept;
    const nori_allocator *a = r->arena.allocator;
    for (size_t i = 0; i < r->libraries.count; i++) {
        nori__library_close(r->libraries.items[i]);
    }
    nori__vec_free(&r->libraries);
    nori__arena_free(&r->arena);
    pthread_mutex_destroy(&r->lock);
    nori__release(a, r, sizeof(*r));
}

static registry *registry_of(nori_env *env)
{
    static const nori__env_part part = {make_registry, free_registry};
    return nori__env_kept(env, &part);
}

const void *nori__registry_of(nori_env *env)
{
    return registry_of(env);
}

static custom *first_of(const void *kept)
{
    const registry *r = kept;
    return r ? atomic_load_explicit(&r->first, memory_order_acquire) : NULL;
}

static custom *after(const custom *c)
{
    return atomic_load_explicit(&c->next, memory_order_acquire);
}

/* The form in force under an opset: the newest that is not newer. */
static const custom *find(const void *kept, const char *domain, const char *name, int64_t opset)
{
    const custom *best = NULL;
    for (const custom *c = first_of(kept); c; c = after(c)) {
        if (c->schema.since <= opset && nori__same(c->schema.name, name) &&
            nori__same(c->schema.domain, domain) &&
            (!best || c->schema.since > best->schema.since)) {
            best = c;
        }
    }
    return best;
}

const nori__op *nori__op_in(const nori__ir *ir, const char *domain, const char *name, int64_t opset)
{
    const nori__op *op = nori__op_find(domain, name);
    if (op || !ir) {
        return op;
    }
    const custom *c = find(ir->custom, domain, name, opset);
    return c ? &c->op : NULL;
}

const nori__schema *nori__schema_in(const nori__ir *ir, const char *domain, const char *name,
                                    int64_t opset)
{
    const nori__schema *s = nori__schema_find(domain, name, opset);
    if (s || !ir || nori__op_find(domain, name)) {
        return s;
    }
    const custom *c = find(ir->custom, domain, name, opset);
    return c ? &c->schema : NULL;
}

int64_t nori__opset_max_in(const nori__ir *ir, const char *domain)
{
    int64_t newest = nori__opset_max(domain);
    for (const custom *c = ir ? first_of(ir->custom) : NULL; c && newest == 0; c = after(c)) {
        newest = nori__same(c->schema.domain, domain) ? NORI__OPSET_ANY : 0;
    }
    return newest;
}

const nori_kernel *nori__custom_kernel(const nori__op *op)
{
    return op && op->id == NORI__OP_CUSTOM ? &((const custom *)(const void *)op)->kernel : NULL;
}

nori_status nori__custom_failed(const nori__node *node, nori_status status, nori_error *err)
{
    return nori__fail(err, status, "operator %s of domain %s gave no reason", node->op_type,
                      node->domain);
}

const nori__schema *nori__custom_at(nori_env *env, size_t index)
{
    const custom *c = first_of(nori__env_kept(env, NULL));
    while (c && index-- > 0) {
        c = after(c);
    }
    return c ? &c->schema : NULL;
}

int nori_env_op(nori_env *env, size_t index, const char **domain, const char **name, int *since)
{
    const nori__schema *s = nori__custom_at(env, index);
    if (s) {
        *domain = s->domain;
        *name = s->name;
        *since = s->since;
    }
    return s != NULL;
}

/* ---- running one outside a plan (folding): prepare, run and release at once ---- */

static nori_status run_once(nori_call *call)
{
    const nori_kernel *k = nori__custom_kernel(call->node->op);
    nori_call inner = *call;
    void *state = NULL;
    size_t bytes = 0;
    nori_status s =
        k->prepare ? k->prepare(call->node, call->allocator, &state, &bytes, call->err) : NORI_OK;
    if (s == NORI_OK) {
        inner.work_size = k->workspace ? k->workspace(state, call) : 0;
        inner.work = inner.work_size ? nori__alloc(call->allocator, inner.work_size) : NULL;
        s = inner.work || !inner.work_size ? k->run(state, &inner) : nori__no_memory(call->err);
        nori__release(call->allocator, inner.work, inner.work_size);
    }
    if (k->release && state) {
        k->release(state, call->allocator);
    }
    return s == NORI_OK ? s : nori__custom_failed(call->node, s, call->err);
}

/* ---- registration ---- */

static nori_status refuse(const nori_custom_op *op, nori_error *err, const char *why)
{
    return nori__fail(err, NORI_ERROR_ARGUMENT, "custom operator %s of domain %s: %s",
                      op->name ? op->name : "(no name)", op->domain ? op->domain : "(none)", why);
}

static nori_status check_args(const nori_custom_op *op, const nori_op_arg *args, size_t n,
                              nori_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!args[i].name || !args[i].name[0]) {
            return refuse(op, err, "an input or output has no name");
        }
        if (args[i].option == NORI_OP_VARIADIC && i + 1 < n) {
            return refuse(op, err, "only the last input or output may be variadic");
        }
        if (args[i].types >> NORI_TYPE_COUNT) {
            return refuse(op, err, "an input or output has types that do not exist");
        }
    }
    return NORI_OK;
}

static nori_status check_op(const nori_custom_op *op, nori_error *err)
{
    if (!op->name || !op->name[0] || !op->domain) {
        return refuse(op, err, "name and domain must be set");
    }
    if (!op->domain[0] || nori__same(op->domain, "ai.onnx")) {
        return refuse(op, err, "the domain belongs to ONNX; take one of your own");
    }
    if (nori__op_find(op->domain, op->name)) {
        return refuse(op, err, "nori has an operator of that name");
    }
    if (op->since < 1) {
        return refuse(op, err, "since is below 1");
    }
    if (!op->kernel || !op->kernel->run) {
        return refuse(op, err, "a kernel with run must be set");
    }
    if (op->kernel->prepare && !op->kernel->release) {
        return refuse(op, err, "a kernel with prepare needs release");
    }
    if (!op->infer && !(op->flags & NORI_OP_DYNAMIC)) {
        return refuse(op, err, "infer must be set, or NORI_OP_DYNAMIC");
    }
    if (op->n_outputs < 1 || op->n_inputs > 1000 || op->n_outputs > 1000) {
        return refuse(op, err, "1 to 1000 outputs and at most 1000 inputs were expected");
    }
    if (op->flags & ~(unsigned)(NORI_OP_INPLACE | NORI_OP_DYNAMIC | NORI_OP_RANDOM)) {
        return refuse(op, err, "flags has bits that mean nothing");
    }
    NORI__TRY(check_args(op, op->inputs, op->n_inputs, err));
    NORI__TRY(check_args(op, op->outputs, op->n_outputs, err));
    for (size_t i = 0; i < op->n_attributes; i++) {
        if (!op->attributes[i].name || !op->attributes[i].name[0]) {
            return refuse(op, err, "an attribute has no name");
        }
    }
    return NORI_OK;
}

/* Arguments as facts; how many must be there goes to *least, how many may to *most. */
static const nori__schema_arg *copy_args(nori__arena *a, const nori_op_arg *from, size_t n,
                                         uint16_t *least, uint16_t *most)
{
    nori__schema_arg *to = nori__arena_array(a, n ? n : 1, sizeof(*to));
    *least = 0;
    *most = (uint16_t)n;
    for (size_t i = 0; to && i < n; i++) {
        to[i].name = nori__arena_text(a, from[i].name);
        to[i].constraint = from[i].constraint ? nori__arena_text(a, from[i].constraint) : NULL;
        to[i].types = from[i].types ? from[i].types : (UINT64_C(1) << NORI_TYPE_COUNT) - 2;
        to[i].option = (uint8_t)from[i].option;
        to[i].homogeneous = from[i].constraint != NULL;
        if (!to[i].name || (from[i].constraint && !to[i].constraint)) {
            return NULL;
        }
        *least = from[i].option == NORI_OP_REQUIRED ? (uint16_t)(i + 1) : *least;
        *most = from[i].option == NORI_OP_VARIADIC ? UINT16_MAX : *most;
    }
    return to;
}

static const nori__schema_attr *copy_attrs(nori__arena *a, const nori_op_attr *from, size_t n)
{
    nori__schema_attr *to = nori__arena_array(a, n ? n : 1, sizeof(*to));
    for (size_t i = 0; to && i < n; i++) {
        to[i].name = nori__arena_text(a, from[i].name);
        to[i].kind = (nori__pb_attr_kind)from[i].kind;
        to[i].required = from[i].required != 0;
        if (!to[i].name) {
            return NULL;
        }
    }
    return to;
}

static custom *copy_op(nori__arena *a, const nori_custom_op *op)
{
    custom *c = nori__arena_alloc(a, sizeof(*c));
    if (!c) {
        return NULL;
    }
    nori__schema *s = &c->schema;
    s->domain = nori__arena_text(a, op->domain);
    s->name = nori__arena_text(a, op->name);
    s->since = op->since;
    s->in = copy_args(a, op->inputs, op->n_inputs, &s->min_in, &s->max_in);
    s->out = copy_args(a, op->outputs, op->n_outputs, &s->min_out, &s->max_out);
    s->attrs = copy_attrs(a, op->attributes, op->n_attributes);
    s->n_in = (uint16_t)op->n_inputs;
    s->n_out = (uint16_t)op->n_outputs;
    s->n_attr = (uint16_t)op->n_attributes;
    size_t kernel = op->kernel->size;
    memcpy(&c->kernel, op->kernel, kernel < sizeof(c->kernel) ? kernel : sizeof(c->kernel));
    c->op = (nori__op){.id = NORI__OP_CUSTOM,
                       .domain = NORI__DOMAINS,
                       .name = s->name,
                       .family = "custom",
                       .flags = op->flags,
                       .infer = op->infer ? op->infer : nori__infer_none,
                       .reference = run_once};
    return s->domain && s->name && s->in && s->out && s->attrs ? c : NULL;
}

static nori_status add(registry *r, const nori_custom_op *op, nori_error *err)
{
    _Atomic(custom *) *end = &r->first;
    for (custom *c = first_of(r); c; c = after(c)) {
        end = &c->next;
        if (c->schema.since == op->since && nori__same(c->schema.name, op->name) &&
            nori__same(c->schema.domain, op->domain)) {
            return refuse(op, err, "there already is one of this name and version");
        }
    }
    custom *c = copy_op(&r->arena, op);
    if (!c) {
        return nori__no_memory(err);
    }
    atomic_store_explicit(end, c, memory_order_release);
    return NORI_OK;
}

nori_status nori_env_register_op(nori_env *env, const nori_custom_op *given, nori_error *err)
{
    nori_custom_op op = {.size = sizeof(op)};
    if (!given || given->size < sizeof(given->size)) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "a custom operator must have its size set");
    }
    memcpy(&op, given, given->size < sizeof(op) ? given->size : sizeof(op));
    NORI__TRY(check_op(&op, err));
    registry *r = registry_of(env);
    if (!r) {
        return nori__no_memory(err);
    }
    pthread_mutex_lock(&r->lock);
    nori_status s = add(r, &op, err);
    pthread_mutex_unlock(&r->lock);
    return s;
}

nori_status nori_env_load_ops(nori_env *env, const char *path, nori_error *err)
{
    union { /* an object pointer is what the system gives for a function */
        void *symbol;
        nori_register_ops_fn call;
    } entry;
    registry *r = registry_of(env);
    if (!r) {
        return nori__no_memory(err);
    }
    void *library = nori__library_open(path, err);
    if (!library) {
        nori__hint(err, "name a path (./ops.so); a symbol of nori's that is undefined: the program "
                        "must offer it (link with -rdynamic, or use libnori.so)");
        return NORI_ERROR_UNAVAILABLE;
    }
    entry.symbol = nori__library_symbol(library, "nori_register_ops", err);
    nori_status s = entry.symbol ? entry.call(env, err) : NORI_ERROR_UNAVAILABLE;
    if (!entry.symbol) {
        nori__hint(err, "a library of operators exports nori_register_ops (nori/provider.h)");
    }
    if (s != NORI_OK) {
        nori__fail(err, s, "nori_register_ops gave no reason");
        nori__where(err, "%s", path);
    }
    /* Kept after a failure too: operators it registered before are in the registry. */
    pthread_mutex_lock(&r->lock);
    bool kept = nori__vec_push(&r->libraries, library);
    pthread_mutex_unlock(&r->lock);
    return s != NORI_OK || kept ? s : nori__no_memory(err);
}

/* validate_layers.c: two models value by value, or one and values that something else has stored. The
 * want side's values are kept; the got side's are
 * compared as they are made (own and inherited errors together), then each of its nodes is run
 * alone on the want side's values, which leaves its own error; where the want side lacks its inputs,
 * with the nodes that make them (stretch.c). */
#include "base/given.h"
#include "nori/tools.h"
#include "run/run.h"
#include "tools/validate/stretch.h"

struct nori_layers {
    const nori_allocator *a;
    nori__arena arena;
    nori__map wanted;  /* value name -> kept * */
    nori__vec kept;
    nori__map by_name; /* value name -> nori_layer * */
    nori__vec rows;    /* nori_layer *, in order of execution */
    const nori_agreement_options *agreement;
    bool failed;       /* out of memory in a callback */
};

/* ---- the want side ---- */

typedef struct kept {
    nori_tensor *tensor;
    nori_tensor *other; /* the same in another float type; NULL: not asked for */
} kept;

static const nori_tensor *wanted(const nori_layers *l, const char *name)
{
    const kept *k = nori__map_get(&l->wanted, name);
    return k ? k->tensor : NULL;
}

/* Whether one may stand for the other, rounded: models of half floats have the names of float32 ones. */
static bool alike(int a, int b)
{
    return a == b || (nori__type_is_float((nori_type)a) && nori__type_is_float((nori_type)b));
}

/* The value in another float type; as it is where it has that type, or none of that kind. */
static const nori_tensor *wanted_as(nori_layers *l, const char *name, int type)
{
    kept *k = nori__map_get(&l->wanted, name);
    const nori_tensor *t = k ? k->tensor : NULL;
    if (!t || t->kind != NORI_KIND_TENSOR || t->type == type || !alike(t->type, type)) {
        return t;
    }
    if (!k->other || k->other->type != type) {
        nori_tensor_free(k->other);
        k->other = NULL;
        if (nori__tensor_new(l->a, (nori_type)type, t->rank, t->dims, &k->other, NULL) != NORI_OK) {
            l->failed = true;
            return NULL;
        }
        for (int64_t i = 0; i < t->count; i++) {
            nori__tensor_set_f64(k->other, i, nori__tensor_get_f64(t, i));
        }
    }
    return k->other;
}

static kept *new_kept(nori_layers *l, const char *name)
{
    kept *k = nori__arena_alloc(&l->arena, sizeof(*k));
    char *key = nori__arena_text(&l->arena, name);
    bool ok = k && key && nori__vec_push(&l->kept, k) && nori__map_put(&l->wanted, key, k);
    return ok ? k : NULL;
}

/* A copy that shares no item of a group: what a watcher is shown is gone after the run. Recurses as
 * deep as groups nest, which making them limits. */
static nori_status copy_all(const nori_allocator *a, const nori_tensor *from, nori_tensor **copy)
{
    NORI__TRY(nori__tensor_copy(a, from, copy, NULL));
    for (size_t i = 0; i < nori_tensor_item_count(from); i++) {
        nori_tensor **item = (nori_tensor **)(*copy)->data + i, *own = NULL;
        nori_status status = copy_all(a, *item, &own);
        if (status != NORI_OK) {
            nori_tensor_free(*copy);
            *copy = NULL;
            return status;
        }
        nori_tensor_free(*item);
        *item = own;
    }
    return NORI_OK;
}

static void keep_value(void *user, const char *name, const nori_tensor *tensor)
{
    nori_layers *l = user;
    kept *k = nori__map_get(&l->wanted, name);
    k = k ? k : new_kept(l, name);
    if (!k) {
        l->failed = true;
        return;
    }
    nori_tensor_free(k->tensor); /* of an earlier round of a loop */
    nori_tensor_free(k->other);
    k->tensor = k->other = NULL;
    l->failed = l->failed || copy_all(l->a, tensor, &k->tensor) != NORI_OK;
}

static nori_status run_once(nori_session *s, const nori_tensor *const *inputs, size_t count,
                            nori_error *err)
{
    size_t bytes = (s->n_outputs + 1) * sizeof(nori_tensor *);
    nori_tensor **outputs = nori__alloc_zero(s->allocator, bytes);
    nori_status status =
        outputs ? nori_session_run(s, inputs, count, outputs, s->n_outputs, err) : nori__no_memory(err);
    for (size_t i = 0; outputs && i < s->n_outputs; i++) {
        nori_tensor_free(outputs[i]);
    }
    nori__release(s->allocator, outputs, bytes);
    return status;
}

static nori_status run_watched(nori_layers *l, const nori_model *model, nori_session_options o,
                               void (*watch)(void *, const char *, const nori_tensor *),
                               const nori_tensor *const *inputs, size_t count, nori_error *err)
{
    nori_session *s = NULL;
    o.watch = watch;
    o.watch_user = l;
    nori_status status = nori_session_create(model, &o, &s, err);
    if (status == NORI_OK) {
        status = run_once(s, inputs, count, err);
    }
    nori_session_free(s);
    return status == NORI_OK && l->failed ? nori__no_memory(err) : status;
}

/* ---- the got side ---- */

static void compare_value(void *user, const char *name, const nori_tensor *tensor)
{
    nori_layers *l = user;
    nori_layer *row = nori__map_get(&l->by_name, name);
    const nori_tensor *want = row ? wanted_as(l, name, tensor->type) : NULL;
    if (want) {
        row->total = (nori_agreement){.size = sizeof(row->total)}; /* the last round counts */
        nori_agreement_add(&row->total, tensor, want, l->agreement);
        row->has_total = 1;
    }
}

/* Rows of the values that a node makes. heart: whose work they are. *any: there are some. */
static nori_status add_rows(nori_layers *l, const nori__node *n, const nori__node *heart, bool *any,
                            nori_error *err)
{
    char path[256];
    nori__node_path(heart, path, sizeof(path));
    *any = false;
    for (uint32_t i = 0; i < n->output_count; i++) {
        if (!n->outputs[i] || !wanted(l, n->outputs[i]->name)) {
            continue;
        }
        nori_layer *row = nori__arena_alloc(&l->arena, sizeof(*row));
        if (!row) {
            return nori__no_memory(err);
        }
        row->size = sizeof(*row);
        row->value = nori__arena_text(&l->arena, n->outputs[i]->name);
        row->op = nori__arena_text(&l->arena, heart->op_type);
        row->path = nori__arena_text(&l->arena, path);
        if (!row->value || !row->op || !row->path || !nori__vec_push(&l->rows, row) ||
            !nori__map_put(&l->by_name, row->value, row)) {
            return nori__no_memory(err);
        }
        *any = true;
    }
    return NORI_OK;
}

/* ---- one node alone ---- */

/* Inputs of the part from the want side; false: it lacks one. */
static bool gather(nori_layers *l, const nori_part *part, const nori_tensor **in)
{
    for (uint32_t i = 0; i < part->n_in; i++) {
        in[i] = wanted_as(l, part->in[i]->name, part->in[i]->type.elem);
        in[i] = in[i] ? in[i] : part->in[i]->constant; /* an input left at its default */
        if (!in[i]) {
            return false;
        }
    }
    return true;
}

static nori_status run_part(nori_layers *l, nori_part *part, const nori__node *node,
                            const nori_session_options *o, const nori_tensor *const *in,
                            nori_error *err)
{
    const void *bytes;
    size_t size;
    nori_model *model = NULL;
    nori_session *s = NULL;
    nori_tensor *few[16] = {NULL};
    NORI__TRY(nori_part_onnx(part, &bytes, &size, err));
    nori_status status = part->n_out <= NORI__COUNT(few)
                             ? nori_model_load_memory(NULL, bytes, size, NULL, NULL, &model, err)
                             : NORI_ERROR_UNSUPPORTED;
    if (status == NORI_OK) {
        status = nori_session_create(model, o, &s, err);
    }
    if (status == NORI_OK) {
        status = nori_session_run(s, in, part->n_in, few, part->n_out, err);
    }
    for (uint32_t i = 0; i < part->n_out && status == NORI_OK; i++) {
        nori_layer *row = nori__map_get(&l->by_name, part->out[i]->name);
        if (row && part->out[i]->producer == node) { /* others have had their turn */
            row->own.size = sizeof(row->own);
            const nori_tensor *want = wanted_as(l, row->value, few[i]->type);
            if (want) {
                nori_agreement_add(&row->own, few[i], want, l->agreement);
                row->has_own = 1;
            }
        }
    }
    for (size_t i = 0; i < NORI__COUNT(few); i++) {
        nori_tensor_free(few[i]);
    }
    nori_session_free(s);
    nori_model_free(model);
    return status;
}

/* A node that cannot be run alone (its types are not known, say) has no own error: not a failure. */
static nori_status run_alone(nori_layers *l, nori__ir *ir, nori__node *node, const nori__vec *nodes,
                             uint32_t *scratch, const nori_session_options *o, nori_error *err)
{
    nori__arena arena;
    nori_part *part = NULL;
    nori_error why = {0};
    nori__arena_init(&arena, l->a);
    nori_status status = nori__part_of_nodes(&arena, l->a, ir, (nori__node *const *)nodes->items,
                                             (uint32_t)nodes->count, scratch, &part, err);
    const nori_tensor **in =
        part ? nori__arena_array(&arena, (size_t)part->n_in + 1, sizeof(*in)) : NULL;
    if (status == NORI_OK && in && gather(l, part, in)) {
        nori_status ran = run_part(l, part, node, o, in, &why);
        status = ran == NORI_ERROR_MEMORY ? nori__no_memory(err) : NORI_OK;
    } else if (status == NORI_OK && !in) {
        status = nori__no_memory(err);
    }
    if (part) {
        nori__part_free(part);
    }
    nori__arena_free(&arena);
    return status;
}

/* A value of the same name and, where both are known, type, or both of floats. */
static bool is_known(void *user, const nori__value *v)
{
    const nori_tensor *want = wanted(user, v->name);
    return want && (v->type.elem == NORI_UNDEFINED || alike(v->type.elem, nori_tensor_type(want)));
}

static nori_status one_layer(nori_layers *l, nori__ir *ir, nori__node *n, nori__stretches *s,
                             uint32_t *scratch, const nori_session_options *o, nori_error *err)
{
    bool found, any;
    NORI__TRY(nori__stretch_to(s, n, &found, err));
    NORI__TRY(add_rows(l, n, found ? nori__stretch_heart(s, n) : n, &any, err));
    return any && found ? run_alone(l, ir, n, &s->nodes, scratch, o, err) : NORI_OK;
}

/* Nodes as they are at level 0, whatever levels are compared. */
static nori_status each_alone(nori_layers *l, const nori_model *model, nori_session_options o,
                              nori_error *err)
{
    nori_session *plain = NULL;
    nori_session_options as_is = o;
    as_is.providers = "reference";
    as_is.level = 0;
    as_is.split_only = 1;
    NORI__TRY(nori_session_create(model, &as_is, &plain, err));
    o.dim_count = 0; /* already fixed in what is taken from plain */
    nori__ir *ir = plain->ir;
    size_t bytes = ((size_t)ir->value_count + 1) * sizeof(uint32_t);
    uint32_t *scratch = nori__alloc_zero(l->a, bytes);
    nori__stretches s = {.known = is_known, .user = l};
    nori_status status = nori__stretches_begin(&s, l->a, ir, err);
    status = status == NORI_OK && !scratch ? nori__no_memory(err) : status;
    for (nori__node *n = ir->main->first; n && status == NORI_OK; n = n->next) {
        status = one_layer(l, ir, n, &s, scratch, &o, err);
    }
    nori__stretches_end(&s);
    nori__release(l->a, scratch, bytes);
    nori_session_free(plain);
    return status == NORI_OK && l->failed ? nori__no_memory(err) : status;
}

/* ---- the whole ---- */

/* The want side: a model, or (NULL) values that are there already. */
typedef struct want_side {
    const nori_model *model;
    nori_session_options options;
    const char *const *names;
    const nori_tensor *const *values;
    size_t count;
} want_side;

static nori_status validate(nori_layers *l, const nori_model *got, const want_side *want,
                            nori_session_options go, const nori_tensor *const *inputs, size_t count,
                            nori_error *err)
{
    const nori_model *names = want->model ? want->model : got;
    for (size_t i = 0; i < count && i < names->n_inputs; i++) {
        if (inputs[i]) {
            keep_value(l, names->inputs[i].name, inputs[i]);
        }
    }
    for (size_t i = 0; i < want->count; i++) {
        if (want->names[i] && want->values[i]) {
            keep_value(l, want->names[i], want->values[i]);
        }
    }
    if (want->model) {
        NORI__TRY(run_watched(l, want->model, want->options, keep_value, inputs, count, err));
    }
    if (l->failed) {
        return nori__no_memory(err);
    }
    NORI__TRY(each_alone(l, got, go, err));
    return run_watched(l, got, go, compare_value, inputs, count, err);
}

static nori_session_options complete(const nori_session_options *o)
{
    nori_session_options all;
    nori_session_options_default(&all);
    if (o) {
        memcpy(&all, o, o->size < sizeof(all) ? o->size : sizeof(all));
    }
    return all;
}

static nori_status compare(const nori_model *got, const want_side *want,
                           const nori_session_options *got_options, const nori_tensor *const *inputs,
                           size_t input_count, const nori_agreement_options *agreement,
                           nori_layers **layers, nori_error *err)
{
    const nori_allocator *a = got->source->allocator;
    nori_layers *l = nori__alloc_zero(a, sizeof(*l));
    if (!l) {
        return nori__no_memory(err);
    }
    l->a = a;
    l->agreement = agreement;
    nori__arena_init(&l->arena, a);
    nori__map_init(&l->wanted, a);
    nori__map_init(&l->by_name, a);
    nori__vec_init(&l->rows, a);
    nori__vec_init(&l->kept, a);
    nori_status status = validate(l, got, want, complete(got_options), inputs, input_count, err);
    l->agreement = NULL; /* the caller's */
    if (status != NORI_OK) {
        nori_layers_free(l);
        return status;
    }
    *layers = l;
    return NORI_OK;
}

nori_status nori_validate_layers(const nori_model *got, const nori_model *want,
                                 const nori_session_options *got_options,
                                 const nori_session_options *want_options,
                                 const nori_tensor *const *inputs, size_t input_count,
                                 const nori_agreement_options *agreement, nori_layers **layers,
                                 nori_error *err)
{
    NORI__GIVEN(err, got);
    NORI__GIVEN(err, want);
    NORI__GIVEN_LIST(err, inputs, input_count);
    NORI__GIVEN(err, layers);
    *layers = NULL;
    want_side side = {.model = want, .options = complete(want_options)};
    return compare(got, &side, got_options, inputs, input_count, agreement, layers, err);
}

nori_status nori_validate_values(const nori_model *got, const char *const *names,
                                 const nori_tensor *const *values, size_t value_count,
                                 const nori_session_options *got_options,
                                 const nori_tensor *const *inputs, size_t input_count,
                                 const nori_agreement_options *agreement, nori_layers **layers,
                                 nori_error *err)
{
    NORI__GIVEN(err, got);
    NORI__GIVEN_LIST(err, names, value_count);
    NORI__GIVEN_LIST(err, values, value_count);
    NORI__GIVEN_LIST(err, inputs, input_count);
    NORI__GIVEN(err, layers);
    *layers = NULL;
    want_side side = {.names = names, .values = values, .count = value_count};
    return compare(got, &side, got_options, inputs, input_count, agreement, layers, err);
}

int nori_layers_at(const nori_layers *l, size_t index, nori_layer *layer)
{
    NORI__ASKED(l, 0);
    NORI__ASKED(layer, 0);
    if (index >= l->rows.count) {
        return 0;
    }
    const nori_layer *row = l->rows.items[index];
    size_t size = layer->size < sizeof(*row) ? layer->size : sizeof(*row);
    memcpy(layer, row, size);
    layer->size = size;
    return 1;
}

void nori_layers_free(nori_layers *l)
{
    if (!l) {
        return;
    }
    for (size_t i = 0; i < l->kept.count; i++) {
        nori_tensor_free(((kept *)l->kept.items[i])->tensor);
        nori_tensor_free(((kept *)l->kept.items[i])->other);
    }
    nori__vec_free(&l->kept);
    nori__map_free(&l->wanted);
    nori__map_free(&l->by_name);
    nori__vec_free(&l->rows);
    nori__arena_free(&l->arena);
    const nori_allocator *a = l->a;
    nori__release(a, l, sizeof(*l));
}

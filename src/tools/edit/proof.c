/* proof.c: running models before and after an edit on the same inputs. Inputs that nobody gives are
 * made up: sizes that are free are tried out, from a list, until the model runs. */
#include <math.h>
#include <stdio.h>

#include "nori/limits.h"
#include "nori/tools.h"
#include "tools/edit/editing.h"

/* Sizes for free axes but the first, which is 1 item; what convolutions of pictures and of time, and
 * lengths of text, mostly take. */
static const int64_t sizes[] = {16, 64, 256, 8, 32, 128, 512, 1, 1024};
#define SHORT_NS ((uint64_t)200000000)
#define MADE_UP_TURNS 10000
static const int64_t integers[] = {10, 2}; /* integers are below: indices must be in range */

void nori__proof_begin(nori_proof *proof)
{
    *proof = (nori_proof){.size = sizeof(*proof), .agrees = 1, .equal = 1};
}

void nori__proof_give(const nori_proof *proof, nori_proof *out)
{
    size_t size = out->size < sizeof(*proof) ? out->size : sizeof(*proof);
    memcpy(out, proof, size);
    out->size = size;
}

void nori__proof_tell(const nori_proof_options *o, size_t done, size_t total, const char *text)
{
    nori_progress p = {.size = sizeof(p), .phase = "prove", .provider = "", .done = done,
                       .total = total, .text = text};
    if (o->progress) {
        o->progress(o->progress_user, &p);
    }
}

bool nori__edit_random(const nori__ir *ir)
{
    for (const nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (const nori__node *n = g->first; n; n = n->next) {
            if (n->op && (n->op->flags & NORI__OP_RANDOM)) {
                return true;
            }
        }
    }
    return false;
}

/* ---- running ---- */

nori_status nori__proof_session(const nori_model *model, const nori_proof_options *o,
                                nori_session **session, nori_error *err)
{
    nori_session_options so;
    nori_session_options_default(&so);
    so.level = 0;
    so.threads = o->threads;
    return nori_session_create(model, &so, session, err);
}

void nori__values_free(nori__values *v)
{
    for (size_t i = 0; i < v->count; i++) {
        nori_tensor_free(v->tensors[i]);
    }
    v->count = 0;
}

const nori_tensor *nori__values_find(const nori__values *v, const char *name)
{
    for (size_t i = 0; i < v->count; i++) {
        if (v->tensors[i] && nori__same(v->names[i], name)) {
            return v->tensors[i];
        }
    }
    return NULL;
}

static bool values_room(nori__values *v, size_t count, nori__arena *arena)
{
    v->names = nori__arena_array(arena, count + 1, sizeof(*v->names));
    v->tensors = nori__arena_array(arena, count + 1, sizeof(*v->tensors));
    v->count = v->names && v->tensors ? count : 0;
    return v->names && v->tensors;
}

/* bounds: NULL, or what a run may cost. ns: NULL where nobody asks for the time. */
static nori_status run(nori_session *session, const nori_run_options *bounds,
                       const nori_tensor *const *in, size_t n_in, nori__arena *arena,
                       nori__values *outputs, uint64_t *ns, nori_error *err)
{
    size_t n = nori_session_output_count(session);
    if (!values_room(outputs, n, arena)) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < n; i++) {
        outputs->names[i] = nori__arena_text(arena, nori_session_output(session, i)->name);
        if (!outputs->names[i]) {
            return nori__no_memory(err);
        }
    }
    uint64_t start = nori__now_ns();
    nori_status s = nori_session_run_with(session, bounds, in, n_in, outputs->tensors, n, err);
    uint64_t took = nori__now_ns() - start;
    if (ns) {
        *ns = took;
    }
    if (s == NORI_OK && ns && took < SHORT_NS) { /* the first run makes its memory: the second is timed */
        nori_tensor **again = nori__arena_array(arena, n + 1, sizeof(*again));
        start = nori__now_ns();
        if (again && nori_session_run_with(session, bounds, in, n_in, again, n, NULL) == NORI_OK) {
            *ns = nori__now_ns() - start;
        }
        for (size_t i = 0; again && i < n; i++) {
            nori_tensor_free(again[i]);
        }
    }
    return s;
}

nori_status nori__proof_feed(nori_session *session, const nori__values *const *sets, size_t n_sets,
                             nori__arena *arena, nori__values *outputs, uint64_t *ns,
                             nori_error *err)
{
    size_t n = nori_session_input_count(session);
    const nori_tensor **in = nori__arena_array(arena, n + 1, sizeof(*in));
    if (!in) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n_sets && !in[i]; k++) {
            in[i] = nori__values_find(sets[k], nori_session_input(session, i)->name);
        }
    }
    return run(session, NULL, in, n, arena, outputs, ns, err);
}

/* ---- inputs ---- */

static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void fill(nori_tensor *t, uint64_t *state, int64_t below)
{
    for (int64_t i = 0; i < t->count; i++) {
        uint64_t r = next(state);
        if (nori__type_is_float((nori_type)t->type)) {
            nori__tensor_set_f64(t, i, (double)(r >> 11) * 0x1p-53);
        } else if (t->type == NORI_BOOL) {
            nori__tensor_set_i64(t, i, (int64_t)(r & 1));
        } else if (t->type == NORI_UINT8 || t->type == NORI_INT8) {
            nori__tensor_set_i64(t, i, (int64_t)(r & 127));
        } else if (nori_type_bits((nori_type)t->type) >= 8 && t->type != NORI_STRING) {
            nori__tensor_set_i64(t, i, (int64_t)(r % (uint64_t)below));
        }
    }
}

void nori__proof_fill(nori_tensor *t, uint64_t *state)
{
    fill(t, state, integers[NORI__COUNT(integers) - 1]);
}

nori_status nori__values_copy(const nori__values *from, nori__arena *arena, nori__values *to,
                              nori_error *err)
{
    if (!values_room(to, from->count, arena)) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < from->count; i++) {
        to->names[i] = from->names[i];
        if (from->tensors[i]) {
            NORI__TRY(nori__tensor_copy(arena->allocator, from->tensors[i], &to->tensors[i], err));
        }
    }
    return NORI_OK;
}

static int64_t size_of(const nori_value_info *info, int d, const nori_proof_options *o, int64_t free_size)
{
    if (info->dims[d] >= 0) {
        return info->dims[d];
    }
    for (size_t i = 0; info->dim_names[d] && i < o->dim_count; i++) {
        if (nori__same(info->dim_names[d], o->dim_names[i])) {
            return o->dim_values[i];
        }
    }
    return d == 0 && info->rank > 1 ? 1 : free_size;
}

static nori_status make_inputs(const nori_session *session, const nori_proof_options *o,
                               int64_t free_size, int64_t below, nori__values *inputs, bool *any_free,
                               bool *any_integer, nori_error *err)
{
    uint64_t state = o->seed;
    for (size_t i = 0; i < inputs->count; i++) {
        const nori_value_info *info = nori_session_input(session, i);
        int64_t dims[NORI_MAX_RANK];
        if (info->optional) {
            continue; /* its default is used */
        }
        if (info->kind != NORI_KIND_TENSOR || info->rank < 0 || info->type == NORI_STRING) {
            nori_status s = nori__fail(err, NORI_ERROR_UNSUPPORTED,
                                       "input \"%s\" cannot be made up: it is no tensor of numbers of a "
                                       "known rank", info->name);
            nori__hint(err, "give samples, or leave the proof out");
            return s;
        }
        for (int d = 0; d < info->rank; d++) {
            dims[d] = size_of(info, d, o, free_size);
            *any_free = *any_free || (info->dims[d] < 0 && dims[d] == free_size);
        }
        *any_integer = *any_integer || !nori__type_is_float(info->type);
        NORI__TRY(nori_tensor_create(session->env, info->type, info->rank, dims, &inputs->tensors[i],
                                     err));
        fill(inputs->tensors[i], &state, below);
    }
    return NORI_OK;
}

static nori_status try_out(nori_session *session, const nori_proof_options *o, nori__arena *arena,
                           nori__values *inputs, nori__values *outputs, uint64_t *ns, nori_error *err)
{
    nori_error first = {0};
    nori_run_options bounds; /* inputs that were made up can ask a Loop for 2^63 turns */
    nori_run_options_default(&bounds);
    bounds.iterations = MADE_UP_TURNS;
    bool any_free = false, any_integer = false;
    for (size_t i = 0; i < NORI__COUNT(sizes) && (i == 0 || any_free); i++) {
        for (size_t k = 0; k < NORI__COUNT(integers) && (k == 0 || any_integer); k++) {
            nori_error why = {0};
            nori__values_free(inputs);
            nori__values_free(outputs);
            inputs->count = nori_session_input_count(session);
            memset(inputs->tensors, 0, inputs->count * sizeof(*inputs->tensors));
            nori_status s = make_inputs(session, o, sizes[i], integers[k], inputs, &any_free,
                                        &any_integer, &why);
            if (s == NORI_OK) {
                s = run(session, &bounds, (const nori_tensor *const *)inputs->tensors, inputs->count, arena,
                        outputs, ns, &why);
            }
            if (s == NORI_OK) {
                return NORI_OK;
            }
            if (s == NORI_ERROR_MEMORY || s == NORI_ERROR_UNSUPPORTED) {
                *err = err->status == NORI_OK ? why : *err;
                return s;
            }
            first = first.status == NORI_OK ? why : first;
        }
    }
    nori_status s = nori__fail(err, NORI_ERROR_UNSUPPORTED,
                               "the model does not run on inputs that were made up (%.600s: %.600s)",
                               first.where, first.message);
    nori__hint(err, "give samples, or the sizes of its named dimensions, or leave the proof out");
    return s;
}

nori_status nori__proof_run(const nori_model *model, const nori_proof_options *o,
                            nori__arena *arena, nori__values *inputs, nori__values *outputs,
                            uint64_t *ns, nori_error *err)
{
    nori_session *session = NULL;
    NORI__TRY(nori__proof_session(model, o, &session, err));
    size_t n = nori_session_input_count(session);
    nori_status s = values_room(inputs, n, arena) ? NORI_OK : nori__no_memory(err);
    for (size_t i = 0; s == NORI_OK && i < n; i++) {
        inputs->names[i] = nori__arena_text(arena, nori_session_input(session, i)->name);
        s = inputs->names[i] ? NORI_OK : nori__no_memory(err);
    }
    if (s == NORI_OK && o->sample) {
        if (o->sample(o->sample_user, inputs->tensors, err) != 0) {
            s = nori__fail(err, NORI_ERROR_DATA, "the sample could not be had");
        }
        s = s == NORI_OK ? run(session, NULL, (const nori_tensor *const *)inputs->tensors, n, arena,
                               outputs, ns, err) : s;
    } else if (s == NORI_OK) {
        s = try_out(session, o, arena, inputs, outputs, ns, err);
    }
    nori_session_free(session);
    return s;
}

/* ---- comparing ---- */

double nori__proof_peak(const nori_tensor *t)
{
    double peak = 0;
    for (int64_t i = 0; i < t->count; i++) {
        double v = fabs(nori__tensor_get_f64(t, i));
        peak = isfinite(v) && v > peak ? v : peak;
    }
    return peak;
}

static bool same_bits(const nori_tensor *a, const nori_tensor *b)
{
    if (a->kind != b->kind || a->type != b->type || a->rank != b->rank || a->count != b->count ||
        memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(*a->dims)) != 0) {
        return false;
    }
    if (a->kind != NORI_KIND_TENSOR || a->type == NORI_STRING) {
        nori_difference d = {.size = sizeof(d)};
        nori_tensor_compare(b, a, 0, 0, &d);
        return d.passes != 0;
    }
    return a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0;
}

void nori__proof_compare(nori_proof *proof, const char *name, const nori_tensor *want,
                         const nori_tensor *got)
{
    if (!got || !want) {
        proof->agrees = proof->equal = 0;
        snprintf(proof->reason, sizeof(proof->reason), "output %.200s was not made", name);
        return;
    }
    proof->elements += (uint64_t)(want->kind == NORI_KIND_TENSOR ? want->count : 1);
    if (same_bits(want, got)) {
        return;
    }
    nori_difference d = {.size = sizeof(d)};
    bool floats = want->kind != NORI_KIND_TENSOR || nori__type_is_float((nori_type)want->type);
    double peak = want->kind == NORI_KIND_TENSOR && floats ? nori__proof_peak(want) : 0;
    nori_tensor_compare(got, want, floats ? 1e-5 * peak : 0, floats ? 1e-4 : 0, &d);
    proof->max_abs = d.max_abs > proof->max_abs ? d.max_abs : proof->max_abs;
    if (proof->agrees && (proof->equal || !d.passes)) { /* the first that differs, or does not agree */
        snprintf(proof->reason, sizeof(proof->reason),
                 "output %.60s: %.80s%llu of %llu elements beyond tolerance, largest difference %.3g",
                 name, d.reason, (unsigned long long)d.beyond, (unsigned long long)d.elements, d.max_abs);
    }
    proof->equal = 0;
    proof->agrees = proof->agrees && d.passes;
}

nori_status nori__proof_same(const nori_model *before, const nori_model *after,
                             const nori_proof_options *o, nori_proof *proof, nori_error *err)
{
    nori__arena arena;
    nori__values inputs = {0}, want = {0}, got = {0};
    nori_session *session = NULL;
    nori__proof_begin(proof);
    if (o->skip || nori__edit_random(nori__model_ir(before))) {
        snprintf(proof->reason, sizeof(proof->reason), "%s",
                 o->skip ? "not asked for"
                         : "operators of chance give something else in each run");
        return NORI_OK;
    }
    nori__arena_init(&arena, before->source->allocator);
    nori__proof_tell(o, 0, 2, "before");
    nori_status s = nori__proof_run(before, o, &arena, &inputs, &want, &proof->before_ns, err);
    nori__proof_tell(o, 1, 2, "after");
    s = s == NORI_OK ? nori__proof_session(after, o, &session, err) : s;
    if (s == NORI_OK) {
        const nori__values *sets[] = {&inputs};
        s = nori__proof_feed(session, sets, 1, &arena, &got, &proof->after_ns, err);
    }
    for (size_t i = 0; s == NORI_OK && i < want.count; i++) {
        nori__proof_compare(proof, want.names[i], want.tensors[i],
                            nori__values_find(&got, want.names[i]));
    }
    proof->ran = s == NORI_OK;
    nori__proof_tell(o, 2, 2, "");
    nori_session_free(session);
    nori__values_free(&got);
    nori__values_free(&want);
    nori__values_free(&inputs);
    nori__arena_free(&arena);
    return s;
}

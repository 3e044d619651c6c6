/* merge_prove.c: two models, run one after the other, against the merged one. */
#include <stdio.h>

#include "tools/edit/merging.h"

/* Values of a run of b under the names that merging gave them. */
static void merged_names(const nori__merging *m, nori__values *v)
{
    for (size_t i = 0; i < v->count; i++) {
        const char *to = nori__map_get(&m->names.values, v->names[i]);
        v->names[i] = to ? to : v->names[i];
    }
}

/* Those of the merged model as b calls them. */
static nori_status for_b(const nori__merging *m, const nori__values *const *sets, size_t n_sets,
                         nori__values *out)
{
    size_t n = nori_model_input_count(m->b);
    out->names = nori__arena_array(m->arena, n + 1, sizeof(*out->names));
    out->tensors = nori__arena_array(m->arena, n + 1, sizeof(*out->tensors));
    if (!out->names || !out->tensors) {
        return nori__no_memory(m->err);
    }
    for (size_t i = 0; i < n; i++) {
        const char *own = nori_model_input(m->b, i)->name;
        const char *to = nori__map_get(&m->names.values, own);
        const nori_tensor *t = NULL;
        for (size_t k = 0; k < n_sets && !t; k++) {
            t = nori__values_find(sets[k], to ? to : own);
        }
        if (t) {
            out->names[out->count] = own;
            out->tensors[out->count++] = nori_tensor_retain(t);
        }
    }
    return NORI_OK;
}

static nori_status run_both(nori__merging *m, const nori_model *a, const nori_model *b,
                            const nori__values *inputs, nori__values *out_a, nori__values *out_b)
{
    const nori_proof_options *o = &m->options->proof;
    nori_session *first = NULL, *second = NULL;
    nori__values fed = {0};
    uint64_t ns = 0;
    nori_status s = nori__proof_session(a, o, &first, m->err);
    s = s == NORI_OK ? nori__proof_feed(first, &inputs, 1, m->arena, out_a, &ns, m->err) : s;
    m->report->proof.before_ns += ns;
    nori_session_free(first);
    const nori__values *sets[] = {out_a, inputs};
    s = s == NORI_OK ? for_b(m, sets, 2, &fed) : s;
    const nori__values *feed = &fed;
    s = s == NORI_OK ? nori__proof_session(b, o, &second, m->err) : s;
    s = s == NORI_OK ? nori__proof_feed(second, &feed, 1, m->arena, out_b, &ns, m->err) : s;
    m->report->proof.before_ns += ns;
    nori_session_free(second);
    nori__values_free(&fed);
    if (s == NORI_OK) {
        merged_names(m, out_b);
    }
    return s;
}

nori_status nori__merge_prove(nori__merging *m, const nori_model *a, const nori_model *b,
                         const nori_model *merged)
{
    const nori_proof_options *o = &m->options->proof;
    nori_proof *proof = &m->report->proof;
    nori__values inputs = {0}, got = {0}, out_a = {0}, out_b = {0};
    nori__proof_begin(proof);
    if (o->skip || nori__edit_random(nori__model_ir(merged))) {
        snprintf(proof->reason, sizeof(proof->reason), "%s",
                 o->skip ? "not asked for"
                         : "operators of chance give something else in each run");
        return NORI_OK;
    }
    nori_status s = nori__proof_run(merged, o, m->arena, &inputs, &got, &proof->after_ns, m->err);
    s = s == NORI_OK ? run_both(m, a, b, &inputs, &out_a, &out_b) : s;
    proof->ran = s == NORI_OK;
    for (size_t i = 0; s == NORI_OK && i < got.count; i++) {
        const nori_tensor *want = nori__values_find(&out_b, got.names[i]);
        want = want ? want : nori__values_find(&out_a, got.names[i]);
        nori__proof_compare(proof, got.names[i], want, got.tensors[i]);
    }
    if (s == NORI_OK && !proof->agrees) {
        s = nori__fail(m->err, NORI_ERROR_DATA, "the merged model does not give what the two give one "
                       "after the other: %s", proof->reason);
    }
    nori__values_free(&out_b);
    nori__values_free(&out_a);
    nori__values_free(&got);
    nori__values_free(&inputs);
    return s;
}

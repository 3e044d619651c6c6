/* cpu_compare.h: one operator on the cpu provider against the reference kernel, with the harness of
 * op_harness.h. Include after cmocka.h. */
#ifndef NORI_TESTS_CPU_COMPARE_H
#define NORI_TESTS_CPU_COMPARE_H

#include "op_harness.h"
#include "providers/cpu/cpu_kernels.h"

static uint64_t cpu__seed = 1;

/* In [-1, 1), or whole numbers in [low, high] for integers. */
static inline double cpu_random(void)
{
    cpu__seed = cpu__seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(cpu__seed >> 11) / (double)(1ll << 52) - 1;
}

static inline void cpu_in(op *o, nori_type type, const char *shape)
{
    nori_tensor *t = op_tensor(type, shape, NULL);
    for (int64_t i = 0; i < t->count; i++) {
        double v = cpu_random();
        v = type == NORI_UINT8  ? floor((v + 1) * 128)
            : type == NORI_INT8 ? floor(v * 128)
            : type == NORI_INT32 ? floor(v * 1000)
                                 : v;
        nori__tensor_set_f64(t, i, v);
    }
    op_give(o, t);
}

/* Declares types and contents (bit i of constants: input i) as a compiled graph has them. */
static inline void cpu__declare(op *o, uint32_t constants)
{
    static nori__dim dims[2 * OP_MOST][NORI_MAX_RANK];
    for (uint32_t i = 0; i < 2 * OP_MOST; i++) {
        nori_tensor *t = i < OP_MOST ? o->in[i] : o->out[i - OP_MOST];
        if (t) {
            nori__value *v = &o->values[i];
            v->type.kind = NORI_KIND_TENSOR;
            v->type.elem = t->type;
            v->type.rank = (int8_t)t->rank;
            v->type.dims = dims[i];
            for (int d = 0; d < t->rank; d++) {
                dims[i][d] = nori__dim_of(t->dims[d]);
            }
            v->constant = i < OP_MOST && (constants >> i & 1) ? t : NULL;
        }
    }
}

static inline bool cpu__near(double got, double want, double tolerance)
{
    return isnan(want) ? isnan(got)
           : isinf(want) || isinf(got) ? got == want
                                       : fabs(got - want) <= tolerance * fmax(1, fabs(want));
}

/* Runs the reference kernel, then the provider's with 1, 2 and 5 threads, with the workspace it
 * asked for and without: near the reference, equal in bits among themselves. Guards around outputs
 * and workspace must stay. taken: the provider must have a kernel for the node. */
static inline void cpu_compare(op *o, uint32_t constants, double tolerance, bool taken)
{
    if (op_status(o) != NORI_OK) {
        print_error("%s: %s\n", o->node.op_type, o->err.message);
    }
    assert_int_equal(op_status(o), NORI_OK);
    cpu__declare(o, constants);
    const nori__kernel *k = nori__cpu_kernel(&o->node);
    void *state = NULL;
    size_t state_bytes = 0;
    if (k && k->prepare) {
        nori_status s = k->prepare(&o->node, &nori__malloc, &state, &state_bytes, &o->err);
        assert_true(s == NORI_OK || s == NORI_ERROR_UNSUPPORTED);
        k = s == NORI_OK ? k : NULL;
    }
    if (!k) {
        assert_false(taken);
        return;
    }
    assert_true(taken);
    nori__pool *pool = NULL;
    assert_int_equal(nori__pool_create(&nori__malloc, 5, &pool, NULL), NORI_OK);
    nori_tensor *first[OP_MOST] = {0};
    for (int round = 0; round < 4; round++) {
        nori_tensor *out[OP_MOST] = {0};
        uint8_t *guarded[OP_MOST] = {0};
        for (uint32_t i = 0; i < o->node.output_count; i++) {
            if (!o->out[i]) {
                continue;
            }
            assert_int_equal(nori__tensor_copy(&nori__malloc, o->out[i], &out[i], NULL), NORI_OK);
            guarded[i] = malloc(out[i]->bytes + 128);
            memset(guarded[i], 0xa5, out[i]->bytes + 128);
        }
        nori_tensor shells[OP_MOST];
        nori_tensor *outs[OP_MOST] = {0};
        for (uint32_t i = 0; i < o->node.output_count; i++) {
            if (out[i]) {
                nori__tensor_init(&shells[i], (nori_type)out[i]->type, out[i]->rank, out[i]->dims,
                                  guarded[i] + 64);
                outs[i] = &shells[i];
            }
        }
        nori_call call = {.node = &o->node, .n_in = o->node.input_count,
                          .n_out = o->node.output_count,
                          .in = (const nori_tensor *const *)o->in, .out = outs,
                          .allocator = &nori__malloc, .pool = pool,
                          .threads = round == 0 ? 1 : round == 1 ? 2 : 5, .err = &o->err, .run = o};
        size_t bytes = k->workspace && round < 3 ? k->workspace(state, &call) : 0;
        uint8_t *work = bytes ? aligned_alloc(64, (bytes + 127) / 64 * 64) : NULL;
        if (bytes) {
            memset(work, 0xff, (bytes + 127) / 64 * 64);
        }
        call.work = work;
        call.work_size = bytes;
        nori_status status = k->run(state, &call);
        if (status != NORI_OK) {
            print_error("%s: %s\n", o->node.op_type, o->err.message);
        }
        assert_int_equal(status, NORI_OK);
        for (size_t g = bytes; bytes && g < (bytes + 127) / 64 * 64; g++) {
            assert_int_equal(work[g], 0xff);
        }
        free(work);
        for (uint32_t i = 0; i < o->node.output_count; i++) {
            if (!out[i]) {
                continue;
            }
            for (size_t g = 0; g < 64; g++) {
                assert_int_equal(guarded[i][g], 0xa5);
                assert_int_equal(guarded[i][64 + out[i]->bytes + g], 0xa5);
            }
            if (out[i]->bytes > 0) {
                memcpy(out[i]->data, guarded[i] + 64, out[i]->bytes);
            }
            free(guarded[i]);
            for (int64_t e = 0; e < out[i]->count; e++) {
                double got = nori__tensor_get_f64(out[i], e);
                double want = nori__tensor_get_f64(o->out[i], e);
                if (!cpu__near(got, want, tolerance)) {
                    print_error("%s output %u element %lld of %lld: %.9g, reference %.9g\n",
                                o->node.op_type, i, (long long)e, (long long)out[i]->count, got,
                                want);
                }
                assert_true(cpu__near(got, want, tolerance));
            }
            if (first[i]) {
                assert_memory_equal(first[i]->data, out[i]->data, out[i]->bytes);
                nori_tensor_free(out[i]);
            } else {
                first[i] = out[i];
            }
        }
    }
    for (int i = 0; i < OP_MOST; i++) {
        nori_tensor_free(first[i]);
    }
    nori__pool_free(pool);
    if (k->release) {
        k->release(state, &nori__malloc);
    }
}

#endif

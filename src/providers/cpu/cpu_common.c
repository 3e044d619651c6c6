/* cpu_common.c: what the cpu provider's kernels share: scratch, falling back, activations. */
#include "providers/cpu/cpu.h"

#include <math.h>

nori_status nori__cpu_take(nori_call *call, size_t bytes, nori__cpu_scratch *s)
{
    *s = (nori__cpu_scratch){call->work, NULL, bytes};
    if (bytes > call->work_size || (bytes > 0 && !call->work)) {
        s->owned = s->data = nori__alloc(call->allocator, bytes);
        if (!s->data) {
            return nori__no_memory(call->err);
        }
    }
    return NORI_OK;
}

void nori__cpu_give(nori_call *call, nori__cpu_scratch *s)
{
    if (s->owned) {
        nori__release(call->allocator, s->owned, s->bytes);
    }
}

nori_status nori__cpu_reference(nori_call *call)
{
    for (uint32_t i = 0; i < call->n_in; i++) { /* kernels that pack may have left it in the file */
        if (call->in[i] && !nori__tensor_settle(call->in[i])) {
            return nori__no_memory(call->err);
        }
    }
    return call->node->op->reference(call);
}

bool nori__activation_read(const nori__node *node, nori__activation *act)
{
    return nori__activation_named(node, "activation", "activation_params", act);
}

bool nori__activation_named(const nori__node *node, const char *activation, const char *params,
                            nori__activation *act)
{
    const char *name = nori__attr_s(node, activation, "");
    size_t n;
    const float *p = nori__attr_floats(node, params, &n);
    n = p ? n : 0;
    float one_by_one[2]; /* as FusedGemm has them */
    if (n == 0 && nori__attr_find(node, "activation_alpha")) {
        one_by_one[0] = nori__attr_f(node, "activation_alpha", 0);
        one_by_one[1] = nori__attr_f(node, "activation_beta", 0);
        n = nori__attr_find(node, "activation_beta") ? 2 : 1;
        p = one_by_one;
    }
    memset(act, 0, sizeof(*act));
    act->apply = true;
    if (nori__same(name, "")) {
        act->apply = false;
    } else if (nori__same(name, "Relu")) {
        act->apply = false;
        act->clamp = true;
        act->high = (float)INFINITY;
    } else if (nori__same(name, "Clip") && n >= 2) {
        act->apply = false;
        act->clamp = true;
        act->low = p[0];
        act->high = p[1];
    } else if (nori__same(name, "LeakyRelu")) {
        act->function = NORI__U_LEAKY;
        act->p[0] = n > 0 ? p[0] : 0.01f;
    } else if (nori__same(name, "Sigmoid")) {
        act->function = NORI__U_SIGMOID;
    } else if (nori__same(name, "Tanh")) {
        act->function = NORI__U_TANH;
    } else if (nori__same(name, "HardSigmoid")) {
        act->function = NORI__U_HARDSIGMOID;
        act->p[0] = n > 0 ? p[0] : 0.2f;
        act->p[1] = n > 1 ? p[1] : 0.5f;
    } else if (nori__same(name, "HardSwish")) {
        act->function = NORI__U_HARDSWISH;
    } else if (nori__same(name, "Swish")) {
        act->function = NORI__U_SILU;
        act->p[0] = n > 0 ? p[0] : 1;
    } else if (nori__same(name, "Gelu")) {
        act->function = NORI__U_GELU;
    } else if (nori__same(name, "GeluTanh")) {
        act->function = NORI__U_GELU_TANH;
    } else {
        return false;
    }
    return true;
}

/* ---- subnormal numbers ---- */

#if defined(__SSE2__)
#include <xmmintrin.h>
typedef unsigned float_mode;
static float_mode flush_on(void)
{
    float_mode old = _mm_getcsr();
    _mm_setcsr(old | 0x8040); /* results to zero, operands are zero */
    return old;
}
static void flush_off(float_mode old)
{
    _mm_setcsr(old);
}
#elif defined(__aarch64__)
typedef uint64_t float_mode;
static float_mode flush_on(void)
{
    float_mode old;
    __asm__ volatile("mrs %0, fpcr" : "=r"(old));
    __asm__ volatile("msr fpcr, %0" : : "r"(old | (uint64_t)1 << 24));
    return old;
}
static void flush_off(float_mode old)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(old));
}
#else
typedef int float_mode;
static float_mode flush_on(void)
{
    return 0;
}
static void flush_off(float_mode old)
{
    (void)old;
}
#endif

typedef struct flushed {
    nori__body body;
    void *user;
} flushed;

static void flushed_units(void *user, int64_t begin, int64_t end, int thread)
{
    const flushed *f = user;
    float_mode old = flush_on();
    f->body(f->user, begin, end, thread);
    flush_off(old);
}

void nori__cpu_for(nori__pool *pool, int max_threads, int64_t count, int64_t grain, nori__body body,
                   void *user)
{
    flushed f = {body, user};
    nori__parallel_for(pool, max_threads, count, grain, flushed_units, &f);
}

/* passes.c: the list of passes and the loop that runs them. */
#include "passes/passes.h"

#define MAX_ROUNDS 4

static const nori__pass passes[] = {
    {"branch", 1, nori__pass_branch},
    {"fold", 1, nori__pass_fold},
    {"identity", 1, nori__pass_identity},
    {"fuse_affine", 1, nori__pass_fuse_affine},
    {"dead", 1, nori__pass_dead},
};

const nori__pass *nori__pass_at(size_t index)
{
    return index < NORI__COUNT(passes) ? &passes[index] : NULL;
}

nori_status nori__passes_run_checked(nori__ir *ir, int level, nori__pass_check check, void *user,
                                     nori_error *err)
{
    NORI__TRY(nori__infer_graph(ir, err));
    bool changed = level > 0;
    for (int round = 0; changed && round < MAX_ROUNDS; round++) {
        changed = false;
        for (size_t i = 0; i < NORI__COUNT(passes); i++) {
            if (passes[i].level > level) {
                continue;
            }
            nori_status s = passes[i].run(ir, &changed, err);
            s = s == NORI_OK && check ? check(user, &passes[i], ir, err) : s;
            if (s != NORI_OK) {
                nori__where(err, "pass %s", passes[i].name);
                return s;
            }
        }
        if (changed) {
            NORI__TRY(nori__infer_graph(ir, err));
        }
    }
    return NORI_OK;
}

#ifndef NDEBUG
static nori_status verify(void *user, const nori__pass *pass, nori__ir *ir, nori_error *err)
{
    (void)user;
    (void)pass;
    return nori__ir_verify(ir, err);
}
#else
#define verify NULL
#endif

nori_status nori__passes_run(nori__ir *ir, int level, nori_error *err)
{
    return nori__passes_run_checked(ir, level, verify, NULL, err);
}

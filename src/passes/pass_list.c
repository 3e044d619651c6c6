/* pass_list.c: the list of standard rewrites, in the order they run. */
#include "passes/passes.h"

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

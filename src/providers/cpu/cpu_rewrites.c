/* cpu_rewrites.c: what the cpu provider does to the compiled copy for itself, in order.
 * `nori validate --levels` names the one that moved a result. */
#include "base/built.h"
#include "providers/cpu/cpu_kernels.h"
#include "providers/cpu/lastc.h"
#include "providers/providers.h"

const nori__rewrite nori__cpu_rewrites[] = {
    NORI__IF_BUILT(rewrite_half_islands, {"half_islands", nori__cpu_half_islands, false},)
    NORI__IF_BUILT(rewrite_pads, {"pads", nori__cpu_fuse_pads, false},)
    /* Activations are seen as one. */
    NORI__IF_BUILT(rewrite_patterns, {"patterns", nori__cpu_fuse_patterns, false},)
    NORI__IF_BUILT(rewrite_integers, {"integers", nori__cpu_integers, false},)
    NORI__IF_BUILT(rewrite_lastc, {"lastc", nori__cpu_lastc, false},)
    NORI__IF_BUILT(rewrite_fuse, {"fuse", nori__cpu_fuse, false},)
    /* A joined node's output is its last one's. */
    NORI__IF_BUILT(rewrite_block, {"block", nori__cpu_block, true},)
    {NULL, NULL, false},
};

/* cpu_rewrites.c: what the cpu provider does to the compiled copy for itself, in order.
 * `nori validate --levels` names the one that moved a result. */
#include "providers/cpu/cpu_kernels.h"
#include "providers/cpu/lastc.h"
#include "providers/providers.h"

const nori__rewrite nori__cpu_rewrites[] = {
    {"half_islands", nori__cpu_half_islands, false},
    {"pads", nori__cpu_fuse_pads, false},
    {"patterns", nori__cpu_fuse_patterns, false}, /* activations are seen as one */
    {"integers", nori__cpu_integers, false},
    {"lastc", nori__cpu_lastc, false},
    {"fuse", nori__cpu_fuse, false},
    {"block", nori__cpu_block, true}, /* a joined node's output is its last one's */
    {NULL, NULL, false},
};

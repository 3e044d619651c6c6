/* gpu_lower.h: the state of laying a part out, for gpu_layout.c (buffers, the whole) and gpu_kernel.c
 * (kernels and their arguments). Operators see only what gpu.h declares. */
#ifndef NORI_PROVIDERS_GPU_GPU_LOWER_H
#define NORI_PROVIDERS_GPU_GPU_LOWER_H

#include "providers/gpu/gpu.h"

/* A buffer while laying out. */
typedef struct gpu_held {
    gpu_mem *mem;
    size_t bytes;
    uint32_t users; /* values that are seen in it; 0: free for others */
    bool fixed;     /* a constant's: never free */
} gpu_held;

struct gpu_lower {
    gpu_self *self;
    gpu_part *p;
    gpu_layout *layout;
    nori__arena arena;   /* until the layout is made */
    const nori_tensor *const *fed; /* by input of the part */
    gpu_shape *shapes;   /* by value */
    gpu_held **at;         /* by value */
    nori__vec buffers;
    gpu_held *scratch[NORI_MAX_RANK];  /* of the node at hand */
    uint32_t n_scratch;
    gpu_kernel *kernel;  /* being set up */
    uint32_t argument, local_at;
    bool bad;
    nori_error *err;
};

gpu_layout *nori__gpu_layout_new(const nori_part *part); /* its lists may be NULL */
void nori__gpu_no_memory(gpu_lower *l);
void nori__gpu_drop_kernel(gpu_lower *l); /* that was set up and not launched; may be none */

#endif

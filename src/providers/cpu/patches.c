/* patches.c: geometry of convolutions for gathering patches into panels. */
#include "providers/cpu/patches.h"

bool nori__patches_set(nori__patches *g, const nori__ref_conv_work *w)
{
    memset(g, 0, sizeof(*g));
    g->in_size = g->out_size = g->padded_size = 1;
    bool plain = true;
    if (w->w.n > 3) {
        return false;
    }
    for (int d = 0; d < 3; d++) {
        int from = d - (3 - w->w.n);
        bool there = from >= 0;
        g->kernel[d] = there ? (size_t)w->w.kernel[from] : 1;
        g->stride[d] = there ? (size_t)w->w.stride[from] : 1;
        g->dilation[d] = there ? (size_t)w->w.dilation[from] : 1;
        g->in[d] = there ? (size_t)w->in[from] : 1;
        g->out[d] = there ? (size_t)w->out[from] : 1;
        if (there && (w->w.begin[from] < 0 || w->w.end[from] < 0)) {
            return false;
        }
        g->pad[d] = there ? (size_t)w->w.begin[from] : 0;
        size_t need = (g->out[d] > 0 ? (g->out[d] - 1) * g->stride[d] : 0) +
                      (g->kernel[d] - 1) * g->dilation[d] + 1;
        g->padded[d] = need > g->in[d] + g->pad[d] ? need : g->in[d] + g->pad[d];
        g->in_size *= g->in[d];
        g->out_size *= g->out[d];
        if (!nori__mul_size(g->padded_size, g->padded[d], &g->padded_size)) {
            return false;
        }
        plain = plain && g->stride[d] == 1 && g->kernel[d] == 1;
        g->copied = g->copied || g->padded[d] != g->in[d];
    }
    g->pointwise = plain && !g->copied;
    return g->padded_size < (size_t)INT64_MAX / 64 / ((size_t)w->channels + 1);
}

size_t nori__patches_pieces(const nori__patches *g, size_t j, size_t count, size_t *from,
                            int64_t *where)
{
    size_t pieces = 0;
    for (size_t done = 0; done < count;) {
        size_t w = (j + done) % g->out[2], row = (j + done) / g->out[2];
        size_t h = row % g->out[1], d = row / g->out[1];
        from[pieces] = done;
        where[pieces++] = (int64_t)((d * g->stride[0] * g->padded[1] + h * g->stride[1]) *
                                        g->padded[2] + w * g->stride[2]);
        done += g->out[2] - w;
    }
    return pieces;
}

void nori__patches_offsets(const nori__patches *g, size_t channels, int64_t *offset)
{
    for (size_t c = 0; c < channels; c++) {
        for (size_t d = 0; d < g->kernel[0]; d++) {
            for (size_t h = 0; h < g->kernel[1]; h++) {
                for (size_t w = 0; w < g->kernel[2]; w++) {
                    *offset++ = (int64_t)(c * g->padded_size +
                                          (d * g->dilation[0] * g->padded[1] +
                                           h * g->dilation[1]) * g->padded[2] + w * g->dilation[2]);
                }
            }
        }
    }
}

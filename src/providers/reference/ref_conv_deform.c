/* ref_conv_deform.c: DeformConv, in double, rounded once. A sampling point reads zeros outside the
 * input; a NaN offset samples nothing. */
#include "providers/reference/ref_nn.h"

#include <math.h>

typedef struct deform {
    nori__ref_conv_work c;
    int64_t groups, kernel_size, in_size, out_size; /* groups: of offsets */
    const double *offset, *mask;
} deform;

/* n-linear interpolation of one channel. */
static double interpolate(const deform *f, const double *x, const double *at)
{
    int n = f->c.w.n;
    double sum = 0;
    for (uint32_t corner = 0; corner < 1u << n; corner++) {
        double w = 1;
        int64_t place = 0;
        for (int d = 0; d < n && w != 0; d++) {
            double low = floor(at[d]), ratio = at[d] - low;
            bool upper = corner >> d & 1;
            double i = upper ? low + 1 : low;
            w *= upper ? ratio : 1 - ratio;
            if (!(i >= 0 && i < (double)f->c.in[d])) {
                w = 0;
                break;
            }
            place = place * f->c.in[d] + (int64_t)i;
        }
        if (w != 0) {
            sum += w * x[place];
        }
    }
    return sum;
}

/* Sum over the kernel of one output's channel group; o: output place, coordinates in out. */
static double one_output(const deform *f, int64_t image, int64_t made, int64_t place,
                         const int64_t *out)
{
    const nori__ref_conv_work *c = &f->c;
    int n = c->w.n;
    int64_t per_group = c->channels / c->group, first = made / (c->made / c->group) * per_group;
    double sum = c->bias ? ((const double *)c->bias)[made] : 0;
    int64_t k[NORI__SPATIAL] = {0};
    for (int64_t p = 0; p < f->kernel_size; p++) {
        int64_t seen = -1;
        double at[NORI__SPATIAL], weight = 1;
        for (int64_t ic = 0; ic < per_group; ic++) {
            int64_t g = (first + ic) / (c->channels / f->groups);
            if (g != seen) { /* offsets are shared by the channels of a group */
                seen = g;
                int64_t base = (image * f->groups + g) * f->kernel_size + p;
                for (int d = 0; d < n; d++) {
                    at[d] = (double)(out[d] * c->w.stride[d] - c->w.begin[d] +
                                     k[d] * c->w.dilation[d]) +
                            f->offset[(base * n + d) * f->out_size + place];
                }
                weight = f->mask ? f->mask[base * f->out_size + place] : 1;
            }
            const double *x =
                (const double *)c->x + (image * c->channels + first + ic) * f->in_size;
            double w = ((const double *)c->weight)[(made * per_group + ic) * f->kernel_size + p];
            sum += w * weight * interpolate(f, x, at);
        }
        for (int d = n - 1; d >= 0 && ++k[d] == c->w.kernel[d]; d--) {
            k[d] = 0;
        }
    }
    return sum;
}

static void outputs(void *user, int64_t begin, int64_t end, int thread)
{
    const deform *f = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        int64_t out[NORI__SPATIAL], place = u % f->out_size, rest = place;
        for (int d = f->c.w.n - 1; d >= 0; d--) {
            out[d] = rest % f->c.out[d];
            rest /= f->c.out[d];
        }
        int64_t plane = u / f->out_size;
        ((double *)f->c.y)[u] = one_output(f, plane / f->c.made, plane % f->c.made, place, out);
    }
}

static nori_status deform_conv(nori_call *call)
{
    static const char *const names[] = {"X", "W", "offset"};
    deform f;
    memset(&f, 0, sizeof f);
    for (uint32_t i = 0; i < 3; i++) {
        NORI__TRY(nori__nn_need(call, i, names[i], -1));
        if (call->in[i]->type != NORI_DOUBLE) {
            return nori__nn_type_error(call, i);
        }
    }
    NORI__TRY(nori__ref_conv_setup(call, call->in[0], call->in[1], call->out[0], &f.c));
    int n = f.c.w.n;
    f.groups = nori__attr_i(call->node, "offset_group", 1);
    f.kernel_size = nori__nn_product(f.c.w.kernel, 0, n);
    f.in_size = nori__nn_product(f.c.in, 0, n);
    f.out_size = nori__nn_product(f.c.out, 0, n);
    if (f.groups < 1 || f.c.channels % f.groups != 0) {
        return nori__fail(call->err, NORI_ERROR_DATA, "offset_group is %lld for %lld channels",
                          (long long)f.groups, (long long)f.c.channels);
    }
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    int64_t masks = f.c.batch * f.groups * f.kernel_size * f.out_size;
    NORI__TRY(nori__nn_count(call, 2, "offset", masks * n));
    NORI__TRY(nori__nn_count(call, 3, "B", f.c.made));
    NORI__TRY(nori__nn_count(call, 4, "mask", masks));
    f.c.x = call->in[0]->data;
    f.c.weight = call->in[1]->data;
    f.c.bias = nori__nn_has(call, 3) ? call->in[3]->data : NULL;
    f.c.y = call->out[0]->data;
    f.offset = call->in[2]->data;
    f.mask = nori__nn_has(call, 4) ? call->in[4]->data : NULL;
    nori__parallel_for(call->pool, nori__nn_threads(call), call->out[0]->count, 16, outputs, &f);
    return NORI_OK;
}

nori_status nori__ref_DeformConv(nori_call *call)
{
    return nori__nn_double(call, 0, deform_conv);
}

/* residual.c: a small residual network, traced with a batch and a size of pictures that may change. */
#include "example.h"

static nori_traced *weight_of(nori_tracer *t, void *w, const char *block, const char *name, int rank,
                              const int64_t *dims)
{
    char full[64];
    snprintf(full, sizeof(full), "%s.%s", block, name);
    return example_weight(t, w, full, rank, dims, 0.3f);
}

/* Convolution and batch norm; the variance is a square, so that it is never negative. */
static nori_traced *conv_norm(nori_tracer *t, void *w, nori_traced *x, const char *block, int64_t from,
                              int64_t to, int64_t kernel, int64_t stride)
{
    const int64_t shape[] = {to, from, kernel, kernel}, p = kernel / 2;
    const nori_window window = {.stride = {stride, stride}, .pad = {p, p, p, p}};
    nori_traced *v = weight_of(t, w, block, "deviation", 1, shape);
    v = nori_layer_binary(t, "Mul", v, v);
    x = nori_layer_conv2d(t, x, weight_of(t, w, block, "weight", 4, shape), NULL, &window);
    return nori_layer_batch_norm(t, x, weight_of(t, w, block, "scale", 1, shape),
                                 weight_of(t, w, block, "bias", 1, shape),
                                 weight_of(t, w, block, "mean", 1, shape), v, 1e-3f);
}

static nori_traced *block(nori_tracer *t, void *w, nori_traced *x, const char *name, int64_t from, int64_t to,
                          int64_t stride)
{
    char part[64];
    snprintf(part, sizeof(part), "%s.1", name);
    nori_traced *y = nori_layer_unary(t, "Relu", conv_norm(t, w, x, part, from, to, 3, stride));
    snprintf(part, sizeof(part), "%s.2", name);
    y = conv_norm(t, w, y, part, to, to, 3, 1);
    if (stride != 1 || from != to) { /* a size of the program, not of the input: nothing is frozen by it */
        snprintf(part, sizeof(part), "%s.skip", name);
        x = conv_norm(t, w, x, part, from, to, 1, stride);
    }
    return nori_layer_unary(t, "Relu", nori_layer_binary(t, "Add", y, x));
}

static nori_status residual(void *user, nori_tracer *t, nori_traced *const *in, nori_traced **out)
{
    static const int64_t head[] = {10, 16};
    const nori_window pool = {.kernel = {2, 2}, .stride = {2, 2}};
    nori_traced *x = nori_layer_unary(t, "Relu", conv_norm(t, user, in[0], "stem", 3, 8, 3, 1));
    x = nori_layer_max_pool2d(t, x, &pool);
    x = block(t, user, x, "block1", 8, 8, 1);
    x = block(t, user, x, "block2", 8, 16, 2);
    x = nori_layer_flatten(t, nori_layer_global_average_pool(t, x), 1);
    out[0] = nori_layer_linear(t, x, example_weight(t, user, "head.weight", 2, head, 0.3f),
                               example_weight(t, user, "head.bias", 1, head, 0.1f));
    return NORI_OK;
}

int main(int argc, char **argv)
{
    static const nori_dynamic_axis axes[] = {
        {"picture", 0, "batch"}, {"picture", 2, "height"}, {"picture", 3, "width"}};
    const example e = {residual, "picture", "logits", 4, {1, 3, 24, 32}, axes, 3};
    return example_main(argc, argv, &e);
}

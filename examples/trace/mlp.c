/* mlp.c: a network of three layers for 28 x 28 pictures, traced: see CMakeLists.txt. */
#include "example.h"

enum { PIXELS = 784, HIDDEN = 64, CLASSES = 10 };

static nori_status mlp(void *user, nori_tracer *t, nori_traced *const *in, nori_traced **out)
{
    static const int64_t first[] = {HIDDEN, PIXELS}, second[] = {HIDDEN, HIDDEN}, last[] = {CLASSES, HIDDEN};
    nori_traced *x = nori_layer_flatten(t, in[0], 1);
    x = nori_layer_linear(t, x, example_weight(t, user, "fc1.weight", 2, first, 0.1f),
                          example_weight(t, user, "fc1.bias", 1, first, 0.1f));
    x = nori_traced_name(nori_layer_unary(t, "Relu", x), "hidden");
    x = nori_layer_linear(t, x, example_weight(t, user, "fc2.weight", 2, second, 0.2f),
                          example_weight(t, user, "fc2.bias", 1, second, 0.1f));
    x = nori_layer_unary(t, "Relu", x);
    x = nori_layer_linear(t, x, example_weight(t, user, "head.weight", 2, last, 0.3f),
                          example_weight(t, user, "head.bias", 1, last, 0.1f));
    out[0] = nori_layer_softmax(t, x, -1);
    return NORI_OK;
}

int main(int argc, char **argv)
{
    static const nori_dynamic_axis batch = {"pixels", 0, "batch"};
    const example e = {mlp, "pixels", "probabilities", 4, {2, 1, 28, 28}, &batch, 1};
    return example_main(argc, argv, &e);
}

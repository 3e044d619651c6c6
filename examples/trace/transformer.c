/* transformer.c: one block of a transformer encoder, traced with a batch and a length that may change. */
#include "example.h"

enum { SIZE = 32, INNER = 64, HEADS = 4 };

static nori_traced *project(nori_tracer *t, void *w, nori_traced *x, const char *name, int64_t from,
                            int64_t to)
{
    char full[64];
    const int64_t shape[] = {to, from};
    snprintf(full, sizeof(full), "%s.weight", name);
    nori_traced *weight = example_weight(t, w, full, 2, shape, 0.2f);
    snprintf(full, sizeof(full), "%s.bias", name);
    return nori_layer_linear(t, x, weight, example_weight(t, w, full, 1, shape, 0.1f));
}

static nori_traced *norm(nori_tracer *t, void *w, nori_traced *x, const char *name)
{
    char full[64];
    const int64_t shape[] = {SIZE};
    snprintf(full, sizeof(full), "%s.scale", name);
    nori_traced *scale = example_weight(t, w, full, 1, shape, 1);
    snprintf(full, sizeof(full), "%s.bias", name);
    return nori_layer_layer_norm(t, x, scale, example_weight(t, w, full, 1, shape, 0.1f), 1e-5f);
}

static nori_status encoder(void *user, nori_tracer *t, nori_traced *const *in, nori_traced **out)
{
    nori_traced *x = in[0], *h = norm(t, user, x, "norm1");
    h = nori_layer_attention(t, project(t, user, h, "query", SIZE, SIZE),
                             project(t, user, h, "key", SIZE, SIZE),
                             project(t, user, h, "value", SIZE, SIZE), NULL, HEADS);
    x = nori_layer_binary(t, "Add", x, project(t, user, h, "output", SIZE, SIZE));
    h = nori_layer_gelu(t, project(t, user, norm(t, user, x, "norm2"), "up", SIZE, INNER));
    out[0] = nori_layer_binary(t, "Add", x, project(t, user, h, "down", INNER, SIZE));
    return NORI_OK;
}

int main(int argc, char **argv)
{
    static const nori_dynamic_axis axes[] = {{"states", 0, "batch"}, {"states", 1, "length"}};
    const example e = {encoder, "states", "encoded", 3, {1, 7, SIZE, 0}, axes, 2};
    return example_main(argc, argv, &e);
}

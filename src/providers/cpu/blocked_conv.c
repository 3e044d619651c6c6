/* blocked_conv.c: which convolutions go over channel blocks, and how: alone, or a depthwise one joined
 * with the 1 x 1 one in front of it, the first one with the MaxPool behind it. */
#include "providers/cpu/blocked_rules.h"

/* Up to so many channels a convolution reads plain images: blocks would be mostly empty. */
#define FEW_CHANNELS 4

/* Groups that fall on whole blocks of outputs, and on inputs that do not cross blocks. */
static bool groups_fit(const nori_tensor *w, int64_t group, int64_t channels)
{
    int64_t c = (int64_t)nori__kernels_get()->block, each = w->dims[1], made = w->dims[0];
    if (group == 1) {
        return channels == each;
    }
    if (group < 1 || made % group != 0 || each * group != channels) {
        return false;
    }
    if (each == 1) {
        return made == channels;
    }
    return made / group % c == 0 && (each % c == 0 || c % each == 0);
}

static bool conv_fits(const nori__node *n)
{
    const nori_tensor *w = nori__cpu_default(nori__cpu_value(n, 1));
    const nori__value *bias = nori__cpu_value(n, 2), *sum = nori__cpu_value(n, 3);
    nori__activation act;
    if ((!nori__node_is(n, NORI__OP_ONNX_Conv) && !nori__node_is(n, NORI__OP_MS_FusedConv)) ||
        !w || w->type != NORI_FLOAT || w->rank != 4 || w->count == 0 ||
        !nori__is_image(n->inputs[0]) || !nori__is_image(n->outputs[0]) || !nori__activation_read(n, &act)) {
        return false;
    }
    const nori_tensor *t = nori__cpu_default(bias);
    if ((bias && (!t || t->type != NORI_FLOAT || t->count != w->dims[0])) ||
        (sum && (!nori__is_image(sum) || nori__value_as_is(sum)))) {
        return false;
    }
    return groups_fit(w, nori__attr_i(n, "group", 1), n->inputs[0]->type.dims[1].value) &&
           nori__given_pads(n, w->dims + 2);
}

/* The 1 x 1 convolution that makes n's input for n alone, both with weights that never change. */
static nori__node *expansion(const nori__twins *b, const nori__node *n)
{
    const nori__value *x = n->inputs[0];
    const nori__value *t = nori__twin_of(b, x);
    nori__node *e = t && t->uses == 0 && x->uses == 1 && !(x->flags & NORI__VALUE_OUTPUT)
                        ? t->producer
                        : NULL;
    if (!e || !nori__blocked_is(e, NORI__BLOCKED_CONV) || e->input_count > 3 ||
        e->inputs[0]->type.rank != 5 || nori__attr_i(e, "group", 1) != 1) {
        return NULL;
    }
    const nori_tensor *w = nori__value_as_is(e->inputs[1]), *d = nori__value_as_is(n->inputs[1]);
    const nori__value *bias[2] = {nori__input(e, 2), nori__input(n, 2)};
    nori__window window;
    if (!w || !d || w->dims[2] != 1 || w->dims[3] != 1 || d->dims[1] != 1 ||
        d->dims[0] != w->dims[0] || nori__attr_i(n, "group", 1) != w->dims[0] ||
        nori__input(n, 3) ||
        (bias[0] && !nori__value_as_is(bias[0])) || (bias[1] && !nori__value_as_is(bias[1])) ||
        nori__window_read(e, NULL, 2, w->dims + 2, &window) != NORI_OK) {
        return NULL;
    }
    for (int i = 0; i < 2; i++) {
        if (window.stride[i] != 1 || window.begin[i] != 0 || window.end[i] != 0) {
            return NULL;
        }
    }
    return e;
}

static nori__node *join_expansion(nori__twins *b, nori__node *n, nori__node *e)
{
    nori__value *in[5] = {e->inputs[0], e->inputs[1], nori__input(e, 2), n->inputs[1],
                          nori__input(n, 2)};
    const char *name = nori__attr_s(e, "activation", "");
    size_t n_p;
    const float *p = nori__attr_floats(e, "activation_params", &n_p);
    b->twin[n->inputs[0]->id] = NULL;
    nori__node *made = nori__put_blocked(b, n, NORI__BLOCKED_EXPAND, in, 5);
    if (made) {
        nori__node_remove(e);
        if (!nori__node_set_text(made, "expand_activation", name) ||
            (p && n_p > 0 && !nori__node_set_floats(made, "expand_params", p, n_p))) {
            nori__no_memory(b->err);
            return NULL;
        }
    }
    return made;
}

/* The convolution over a plain image that makes the MaxPool n's input for n alone. */
static nori__node *first_conv(const nori__twins *b, const nori__node *n, nori__window *w)
{
    const nori__value *x = n->inputs[0], *t = nori__twin_of(b, x);
    nori__node *e = t && t->uses == 0 && x->uses == 1 && !(x->flags & NORI__VALUE_OUTPUT)
                        ? t->producer
                        : NULL;
    if (!e || !nori__blocked_is(e, NORI__BLOCKED_CONV) || e->inputs[0]->type.rank != 4 ||
        nori__input(e, 3)) {
        return NULL;
    }
    const nori_tensor *weight = nori__value_as_is(e->inputs[1]);
    const nori__value *bias = nori__input(e, 2);
    nori__window pool;
    if (!weight || (bias && !nori__value_as_is(bias)) || n->output_count != 1 ||
        nori__window_read(e, NULL, 2, weight->dims + 2, w) != NORI_OK ||
        nori__window_read(n, NULL, 2, NULL, &pool) != NORI_OK || !nori__given_pads(n, NULL) ||
        w->auto_pad > NORI__PAD_VALID || pool.auto_pad > NORI__PAD_VALID) {
        return NULL;
    }
    for (int i = 0; i < 2; i++) { /* windows that lie in pads alone are left to the pool */
        if (pool.begin[i] >= pool.kernel[i] || pool.end[i] >= pool.kernel[i]) {
            return NULL;
        }
    }
    return e;
}

nori__node *nori__block_stem(nori__twins *b, nori__node *n)
{
    nori__window w;
    nori__node *e = first_conv(b, n, &w);
    if (!e) {
        return NULL;
    }
    nori__value *in[3] = {e->inputs[0], e->inputs[1], nori__input(e, 2)};
    int64_t window[8] = {w.stride[0], w.stride[1], w.dilation[0], w.dilation[1],
                         w.begin[0], w.begin[1], w.end[0], w.end[1]};
    const char *name = nori__attr_s(e, "activation", "");
    size_t n_p;
    const float *p = nori__attr_floats(e, "activation_params", &n_p);
    b->twin[n->inputs[0]->id] = NULL;
    nori__node *made = nori__put_blocked(b, n, NORI__BLOCKED_STEM, in, in[2] ? 3 : 2);
    if (made) {
        nori__node_remove(e);
        if (!nori__node_set_ints(made, "conv_window", window, 8) ||
            !nori__node_set_text(made, "conv_activation", name) ||
            (p && n_p > 0 && !nori__node_set_floats(made, "conv_params", p, n_p))) {
            nori__no_memory(b->err);
            return NULL;
        }
    }
    return made;
}

static nori__node *put_conv(nori__twins *b, nori__node *n)
{
    nori__node *e = expansion(b, n);
    if (e) {
        return join_expansion(b, n, e);
    }
    nori__value *x = n->inputs[0], *sum = nori__input(n, 3);
    bool plain = !nori__twin_of(b, x) && x->type.dims[1].value <= FEW_CHANNELS &&
                 nori__attr_i(n, "group", 1) == 1;
    nori__value *in[4] = {plain ? x : nori__twin_made(b, x, n), n->inputs[1], nori__input(n, 2),
                          sum ? nori__twin_made(b, sum, n) : NULL};
    if (!in[0] || (sum && !in[3])) {
        return NULL;
    }
    return nori__put_blocked(b, n, NORI__BLOCKED_CONV, in, sum ? 4 : in[2] ? 3 : 2);
}

static bool turned_fits(const nori__node *n)
{
    const nori_tensor *w = nori__cpu_default(nori__cpu_value(n, 1));
    const nori_tensor *bias = nori__cpu_default(nori__cpu_value(n, 2));
    nori__window window;
    if (!nori__node_is(n, NORI__OP_ONNX_ConvTranspose) || !w || w->type != NORI_FLOAT ||
        w->rank != 4 || w->count == 0 || !nori__is_image(n->inputs[0]) ||
        !nori__is_image(n->outputs[0]) ||
        nori__attr_i(n, "group", 1) != 1 || w->dims[0] != n->inputs[0]->type.dims[1].value ||
        (nori__cpu_value(n, 2) &&
         (!bias || bias->type != NORI_FLOAT || bias->count != w->dims[1])) ||
        !nori__given_pads(n, w->dims + 2) ||
        nori__window_read(n, NULL, 2, w->dims + 2, &window) != NORI_OK) {
        return false;
    }
    return window.dilation[0] == 1 && window.dilation[1] == 1 && window.stride[0] <= 16 &&
           window.stride[1] <= 16;
}

static nori__node *put_turned(nori__twins *b, nori__node *n)
{
    nori__value *in[3] = {nori__twin_made(b, n->inputs[0], n), n->inputs[1], nori__input(n, 2)};
    return in[0] ? nori__put_blocked(b, n, NORI__BLOCKED_TURNED, in, in[2] ? 3 : 2) : NULL;
}

nori__node *nori__block_conv(nori__twins *b, nori__node *n)
{
    return conv_fits(n) ? put_conv(b, n) : turned_fits(n) ? put_turned(b, n) : NULL;
}

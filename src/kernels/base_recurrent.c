/* base_recurrent.c: gates of LSTM and GRU in plain C; see f32_lstm and f32_gru in kernels.h. */
#include "kernels/internal.h"

#include <math.h>

#define LANES 4 /* half of f32_nr at this level */

static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* Index of hidden unit j's sum of a gate. */
static size_t at(size_t j, size_t gates, size_t gate)
{
    return (j / LANES * gates + gate) * LANES + j % LANES;
}

static void f32_lstm(size_t n, const float *x, const float *r, float *c, float *h)
{
    for (size_t j = 0; j < n; j++) {
        size_t p = at(j, 4, 0);
        float i = sigmoid(x[p] + r[p]);
        float o = sigmoid(x[p + LANES] + r[p + LANES]);
        float f = sigmoid(x[p + 2 * LANES] + r[p + 2 * LANES]);
        c[j] = f * c[j] + i * tanhf(x[p + 3 * LANES] + r[p + 3 * LANES]);
        h[j] = o * tanhf(c[j]);
    }
}

static void f32_gru_reset(size_t n, const float *x, const float *r, const float *h, float *out)
{
    for (size_t j = 0; j < n; j++) {
        out[j] = sigmoid(x[at(j, 3, 1)] + r[at(j, 2, 1)]) * h[j];
    }
}

static void f32_gru(size_t n, const float *x, const float *r, const float *late, const float *h,
                    float *out)
{
    size_t gates = late ? 2 : 3;
    for (size_t j = 0; j < n; j++) {
        float z = sigmoid(x[at(j, 3, 0)] + r[at(j, gates, 0)]);
        float part = late ? late[j]
                          : sigmoid(x[at(j, 3, 1)] + r[at(j, 3, 1)]) * r[at(j, 3, 2)];
        float fresh = tanhf(x[at(j, 3, 2)] + part);
        out[j] = z * (h[j] - fresh) + fresh;
    }
}

void nori__base_recurrent(nori__kernels *k)
{
    k->f32_lstm = f32_lstm;
    k->f32_gru_reset = f32_gru_reset;
    k->f32_gru = f32_gru;
}

/* recurrent.h: what the files of the LSTM, GRU and RNN kernel share. */
#ifndef NORI_PROVIDERS_CPU_RECURRENT_H
#define NORI_PROVIDERS_CPU_RECURRENT_H

#include "providers/cpu/cpu.h"

typedef enum nori__cell { NORI__CELL_RNN, NORI__CELL_GRU, NORI__CELL_LSTM } nori__cell;

/* Packed weights. Rows of W and R are gates of hidden units; here they are columns in the order
 * [units / lanes][gates][lanes], lanes being half a panel, so that two blocks of units with all their
 * gates are a whole number of panels: a unit of work. */
typedef struct nori__recurrent {
    nori__cell cell;
    nori__unary function; /* RNN's */
    size_t gates, directions, hidden, input;
    bool reversed, batch_first;
    bool as_bytes;        /* input and state are read as 8 bits, their range found in each run */
    size_t early;         /* gates of R at once: 2 for GRU whose h part waits for its reset gate */
    size_t columns;       /* of all gates, to whole blocks of lanes */
    float *w, *r, *late;  /* panels a direction; late: of the h part */
    size_t w_step, r_step, late_step;
    float *bias;          /* columns a direction: both biases, but for GRU's h part of R */
    float *bias_r;        /* columns of r (late: of late) added to the recurrence, or NULL */
    float *room;          /* all of these */
    size_t bytes;
} nori__recurrent;

/* Which cells are taken: constant weights, the usual activations, no clip, no peepholes. */
nori_status nori__recurrent_prepare(const nori__node *node, const nori_allocator *a, void **state,
                                    size_t *state_bytes, nori_error *err);
/* The same for com.microsoft DynamicQuantizeLSTM. */
nori_status nori__recurrent_bytes_prepare(const nori__node *node, const nori_allocator *a, void **state,
                                          size_t *state_bytes, nori_error *err);
void nori__recurrent_release(void *state, const nori_allocator *a);

#endif

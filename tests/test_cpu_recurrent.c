/* test_cpu_recurrent.c: LSTM, GRU and RNN of the cpu provider against the reference kernels: sizes
 * around the width of a vector, directions, layouts, lengths, states; and what is left to the
 * reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cpu_compare.h"

typedef struct form {
    const char *direction;
    int64_t layout, length, batch, input, hidden;
    bool bias, lengths, states;
    uint32_t wanted; /* bit i: output i */
} form;

static void give(op *o, const char *shape, double scale)
{
    cpu_in(o, NORI_FLOAT, shape);
    nori_tensor *t = o->in[o->node.input_count - 1];
    for (int64_t i = 0; i < t->count; i++) {
        ((float *)t->data)[i] *= (float)scale;
    }
}

static void give_lengths(op *o, const form *f)
{
    nori_tensor *t;
    assert_int_equal(nori__tensor_new(&nori__malloc, NORI_INT32, 1, &f->batch, &t, NULL), NORI_OK);
    for (int64_t b = 0; b < f->batch; b++) { /* all of it, nothing, and lengths between */
        ((int32_t *)t->data)[b] = (int32_t)(b % 3 == 0 ? f->length : b % 3 == 1 ? 0 : f->length / 2);
    }
    op_give(o, t);
}

static void begin(op *o, const char *name, const form *f)
{
    int gates = name[0] == 'L' ? 4 : name[0] == 'G' ? 3 : 1;
    int directions = f->direction[0] == 'b' ? 2 : 1, h = (int)f->hidden, b = (int)f->batch;
    char shape[64];
    op_begin(o, "", name, 14);
    op_int(o, "hidden_size", f->hidden);
    op_text(o, "direction", f->direction);
    op_int(o, "layout", f->layout);
    snprintf(shape, sizeof(shape), "%dx%dx%d", f->layout ? b : (int)f->length,
             f->layout ? (int)f->length : b, (int)f->input);
    give(o, shape, 1);
    snprintf(shape, sizeof(shape), "%dx%dx%d", directions, gates * h, (int)f->input);
    give(o, shape, 0.5);
    snprintf(shape, sizeof(shape), "%dx%dx%d", directions, gates * h, h);
    give(o, shape, 2.0 / (4 + h));
    snprintf(shape, sizeof(shape), "%dx%d", directions, 2 * gates * h);
    if (f->bias) {
        give(o, shape, 0.5);
    } else {
        op_give(o, NULL);
    }
    if (f->lengths) {
        give_lengths(o, f);
    } else {
        op_give(o, NULL);
    }
    snprintf(shape, sizeof(shape), "%dx%dx%d", f->layout ? b : directions,
             f->layout ? directions : b, h);
    for (int i = 0; f->states && i < (gates == 4 ? 2 : 1); i++) {
        give(o, shape, 1);
    }
    op_outputs(o, gates == 4 ? 3 : 2);
    for (uint32_t i = 0; i < o->node.output_count; i++) {
        o->made[i] = f->wanted >> i & 1 ? o->made[i] : NULL;
    }
}

static const uint32_t weights = 2 | 4 | 8; /* W, R, B are constants */
static const char *const cells[] = {"LSTM", "GRU", "GRU", "RNN"}; /* the second resets after */

static void forms(void **state)
{
    (void)state;
    static const form all[] = {
        {"forward", 0, 5, 1, 3, 1, true, false, false, 7},
        {"forward", 0, 1, 1, 8, 16, true, false, true, 7},
        {"forward", 0, 6, 1, 7, 33, true, false, true, 7},
        {"forward", 0, 3, 2, 40, 48, false, false, false, 1},
        {"reverse", 0, 7, 3, 5, 17, true, true, true, 7},
        {"bidirectional", 0, 7, 4, 5, 31, true, true, true, 7},
        {"bidirectional", 1, 4, 3, 6, 32, true, true, true, 7},
        {"forward", 1, 9, 5, 4, 15, true, false, true, 6},
        {"reverse", 1, 3, 2, 9, 64, false, true, false, 3},
        {"bidirectional", 0, 2, 19, 3, 9, true, true, true, 7},
        {"forward", 0, 4, 15, 10, 65, true, false, false, 7},
    };
    for (size_t i = 0; i < NORI__COUNT(all); i++) {
        for (size_t c = 0; c < NORI__COUNT(cells); c++) {
            op o;
            begin(&o, cells[c], &all[i]);
            op_int(&o, "linear_before_reset", c == 1);
            cpu_compare(&o, weights, 5e-6, true);
            op_end(&o);
        }
    }
}

/* Long enough for several chunks of input sums, wide enough for threads to share a step. */
static void large(void **state)
{
    (void)state;
    static const form all[] = {
        {"reverse", 0, 40, 40, 3, 56, true, true, true, 7},
        {"forward", 1, 3, 2, 5, 200, true, false, true, 7},
    };
    for (size_t i = 0; i < NORI__COUNT(all); i++) {
        for (size_t c = 0; c < NORI__COUNT(cells); c++) {
            op o;
            begin(&o, cells[c], &all[i]);
            op_int(&o, "linear_before_reset", c == 1);
            cpu_compare(&o, weights, 2e-5, true);
            op_end(&o);
        }
    }
}

static const nori__str names[] = {{"sigmoid", 7}, {"Tanh", 4}, {"tanh", 4}, {"Sigmoid", 7},
                                  {"Softsign", 8}, {"Tanh", 4}, {"Relu", 4}, {"relu", 4}};

static void activations(void **state)
{
    (void)state;
    static const form one = {"forward", 0, 4, 2, 6, 19, true, false, true, 7};
    static const form two = {"bidirectional", 0, 4, 2, 6, 19, true, false, true, 7};
    static const struct {
        const char *cell;
        const form *form;
        size_t from, count;
        bool taken;
    } cases[] = {
        {"LSTM", &one, 0, 3, true},  {"LSTM", &one, 3, 3, false}, {"GRU", &one, 0, 2, true},
        {"GRU", &one, 4, 2, false},  {"RNN", &one, 1, 1, true},   {"RNN", &one, 7, 1, true},
        {"RNN", &two, 6, 2, true},   {"RNN", &two, 5, 2, false},  {"RNN", &one, 4, 1, false},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        op o;
        begin(&o, cases[i].cell, cases[i].form);
        op_texts(&o, "activations", names + cases[i].from, cases[i].count);
        cpu_compare(&o, weights, 5e-6, cases[i].taken);
        op_end(&o);
    }
}

static void left_to_the_reference(void **state)
{
    (void)state;
    static const form f = {"forward", 0, 4, 2, 6, 19, true, false, true, 7};
    op o;
    begin(&o, "LSTM", &f);
    op_float(&o, "clip", 0.5f);
    cpu_compare(&o, weights, 1e-6, false);
    op_end(&o);
    begin(&o, "LSTM", &f);
    op_int(&o, "input_forget", 1);
    cpu_compare(&o, weights, 1e-6, false);
    op_end(&o);
    begin(&o, "LSTM", &f);
    give(&o, "1x57", 1);
    cpu_compare(&o, weights | 1 << 7, 1e-6, false);
    op_end(&o);
    begin(&o, "GRU", &f); /* R is not constant */
    cpu_compare(&o, 2 | 8, 1e-6, false);
    op_end(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms),
        cmocka_unit_test(large),
        cmocka_unit_test(activations),
        cmocka_unit_test(left_to_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* nnapi_double_model.c: the calls of NNAPI that make a model, of operands and operations. */
#include "nnapi_double.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ANeuralNetworksModel_create(model **m)
{
    MAY_REFUSE("ANeuralNetworksModel_create");
    *m = calloc(1, sizeof(**m));
    nnapi_double_note(NULL);
    nnapi_double_lives(*m != NULL);
    return *m ? OK : OUT_OF_MEMORY;
}

void ANeuralNetworksModel_free(model *m)
{
    if (!m) {
        return;
    }
    if (m->users > 0) {
        nnapi_double_fault(0, "Model_free: a compilation of it is there still");
    }
    for (uint32_t i = 0; i < m->n_operands; i++) {
        if (m->operands[i].kept) {
            free((void *)(uintptr_t)m->operands[i].value);
        }
        free((void *)(uintptr_t)m->operands[i].channels.scales);
    }
    for (uint32_t i = 0; i < m->n_operations; i++) {
        free(m->operations[i].in);
    }
    free(m->operands);
    free(m->operations);
    free(m->in);
    free(m->out);
    free(m->order);
    free(m);
    nnapi_double_lives(-1);
}

int ANeuralNetworksModel_addOperand(model *m, const operand_type *t)
{
    MAY_REFUSE("ANeuralNetworksModel_addOperand");
    NEED(m && t, UNEXPECTED_NULL, "addOperand: NULL");
    NEED(!m->finished, BAD_STATE, "addOperand: the model is finished");
    bool scalar = t->type == FLOAT32 || t->type == INT32 || t->type == BOOL;
    bool bytes = t->type == TENSOR_UINT8 || t->type == TENSOR_INT8 || t->type == TENSOR_CHANNELS;
    NEED(scalar || bytes || t->type == TENSOR_FLOAT32 || t->type == TENSOR_INT32, BAD_DATA,
         "addOperand: type %d is none that is known here", t->type);
    NEED(t->type != BOOL || nnapi_double_level() >= 29, BAD_DATA, "addOperand: BOOL is of level 29");
    NEED(!scalar || t->rank == 0, BAD_DATA, "addOperand: a scalar of rank %u", t->rank);
    NEED(scalar || (t->rank > 0 && t->rank <= MAX_RANK && t->dims), BAD_DATA,
         "addOperand: a tensor of rank %u", t->rank);
    operand o = {.type = t->type, .rank = t->rank, .count = 1, .writer = NONE, .scale = t->scale,
                 .zero = t->zero_point};
    const char *broken = nnapi_double_quantized(&o);
    NEED(!broken, BAD_DATA, "addOperand: %s (type %d)", broken, t->type);
    for (uint32_t d = 0; d < t->rank; d++) {
        NEED(t->dims[d] > 0, BAD_DATA, "addOperand: dimension %u is unknown", d);
        o.dims[d] = t->dims[d];
        o.count *= t->dims[d];
    }
    o.bytes = o.count * (t->type == BOOL || bytes ? 1 : 4);
    operand *more = realloc(m->operands, (m->n_operands + 1) * sizeof(*more));
    if (!more) {
        return OUT_OF_MEMORY;
    }
    m->operands = more;
    m->operands[m->n_operands++] = o;
    return OK;
}

int ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model *m, int32_t index,
                                                             const channel_type *c)
{
    NEED(m && c && c->scales, UNEXPECTED_NULL, "SymmPerChannelQuantParams: NULL");
    NEED(nnapi_double_level() >= 29, BAD_DATA, "SymmPerChannelQuantParams: it is of level 29");
    NEED(!m->finished, BAD_STATE, "SymmPerChannelQuantParams: the model is finished");
    NEED(index >= 0 && (uint32_t)index < m->n_operands, BAD_DATA,
         "SymmPerChannelQuantParams: no operand %d", index);
    operand *o = &m->operands[index];
    NEED(o->type == TENSOR_CHANNELS, BAD_DATA, "SymmPerChannelQuantParams: operand %d has one scale",
         index);
    NEED(c->dim < o->rank && c->count == o->dims[c->dim], BAD_DATA,
         "SymmPerChannelQuantParams: %u scales do not fit dimension %u", c->count, c->dim);
    for (uint32_t i = 0; i < c->count; i++) {
        NEED(c->scales[i] > 0, BAD_DATA, "SymmPerChannelQuantParams: scale %u is not above 0", i);
    }
    float *copy = malloc(c->count * sizeof(*copy));
    if (!copy) {
        return OUT_OF_MEMORY;
    }
    memcpy(copy, c->scales, c->count * sizeof(*copy));
    free((void *)(uintptr_t)o->channels.scales);
    o->channels = (channel_type){c->dim, c->count, copy};
    return OK;
}

static uint64_t sum_of(const void *data, size_t size)
{
    const uint8_t *p = data;
    uint64_t sum = 1469598103934665603u;
    for (size_t i = 0; i < size; i++) {
        sum = (sum ^ p[i]) * 1099511628211u;
    }
    return sum;
}

/* Up to 128 bytes are copied; the rest stays the caller's and must not change. */
int ANeuralNetworksModel_setOperandValue(model *m, int32_t index, const void *data, size_t size)
{
    MAY_REFUSE("ANeuralNetworksModel_setOperandValue");
    NEED(m && data, UNEXPECTED_NULL, "setOperandValue: NULL");
    NEED(!m->finished, BAD_STATE, "setOperandValue: the model is finished");
    NEED(index >= 0 && (uint32_t)index < m->n_operands, BAD_DATA, "setOperandValue: no operand %d",
         index);
    operand *o = &m->operands[index];
    NEED(!o->value, BAD_DATA, "setOperandValue: operand %d has one", index);
    NEED(o->writer == NONE, BAD_DATA, "setOperandValue: operand %d is written", index);
    NEED(size == o->bytes, BAD_DATA, "setOperandValue: operand %d has %zu bytes, not %zu", index,
         o->bytes, size);
    o->value = data;
    if (size <= 128) {
        void *copy = malloc(size);
        if (!copy) {
            return OUT_OF_MEMORY;
        }
        memcpy(copy, data, size);
        o->value = copy;
        o->kept = true;
    } else {
        o->sum = sum_of(data, size);
    }
    return OK;
}

int ANeuralNetworksModel_addOperation(model *m, int32_t code, uint32_t n_in, const uint32_t *in,
                                      uint32_t n_out, const uint32_t *out)
{
    MAY_REFUSE("ANeuralNetworksModel_addOperation");
    NEED(m && in && out, UNEXPECTED_NULL, "addOperation: NULL");
    NEED(!m->finished, BAD_STATE, "addOperation: the model is finished");
    operation o = {.rule = nnapi_double_rule(code), .n_in = n_in, .out = out[0]};
    NEED(o.rule, BAD_DATA, "addOperation: no operation %d", code);
    NEED(n_out == 1, BAD_DATA, "%s: %u outputs", o.rule->name, n_out);
    for (uint32_t i = 0; i < n_in + 1; i++) {
        uint32_t at = i < n_in ? in[i] : out[0];
        NEED(at < m->n_operands, BAD_DATA, "%s: no operand %u", o.rule->name, at);
    }
    operand *y = &m->operands[out[0]];
    NEED(y->writer == NONE && !y->value, BAD_DATA, "%s: operand %u is written twice", o.rule->name,
         out[0]);
    o.in = malloc((n_in + 1) * sizeof(*in));
    operation *more = realloc(m->operations, (m->n_operations + 1) * sizeof(*more));
    if (!o.in || !more) {
        free(o.in);
        m->operations = more ? more : m->operations;
        return OUT_OF_MEMORY;
    }
    memcpy(o.in, in, n_in * sizeof(*in));
    m->operations = more;
    m->operations[m->n_operations++] = o;
    const char *broken = nnapi_double_inputs(m, &o);
    NEED(!broken, BAD_DATA, "%s: %s", o.rule->name, broken);
    operand want = {.type = arg(m, &o, 0)->type};
    broken = o.rule->shape(m, &o, &want);
    NEED(!broken, BAD_DATA, "%s: %s", o.rule->name, broken);
    bool same = y->type == want.type && y->rank == want.rank;
    for (uint32_t d = 0; same && d < want.rank; d++) {
        same = y->dims[d] == want.dims[d];
    }
    NEED(same, BAD_DATA, "%s: its output has another type or shape than follows from its inputs",
         o.rule->name);
    broken = nnapi_double_meaning(m, &o);
    NEED(!broken, BAD_DATA, "%s: %s", o.rule->name, broken);
    y->writer = (int)m->n_operations - 1;
    char note[64];
    snprintf(note, sizeof(note), "%s%s ", o.rule->name, is_bytes(arg(m, &o, 0)) ? "*" : "");
    nnapi_double_note(note);
    return OK;
}

static uint32_t *copy_of(const uint32_t *list, uint32_t n)
{
    uint32_t *copy = malloc((n + 1) * sizeof(*copy));
    if (copy) {
        memcpy(copy, list, n * sizeof(*copy));
    }
    return copy;
}

int ANeuralNetworksModel_identifyInputsAndOutputs(model *m, uint32_t n_in, const uint32_t *in,
                                                  uint32_t n_out, const uint32_t *out)
{
    MAY_REFUSE("ANeuralNetworksModel_identifyInputsAndOutputs");
    NEED(m && in && out, UNEXPECTED_NULL, "identifyInputsAndOutputs: NULL");
    NEED(!m->finished && !m->identified, BAD_STATE, "identifyInputsAndOutputs: too late");
    NEED(n_in > 0 && n_out > 0, BAD_DATA, "identifyInputsAndOutputs: none");
    for (uint32_t i = 0; i < n_in; i++) {
        NEED(in[i] < m->n_operands, BAD_DATA, "input %u: no operand %u", i, in[i]);
        operand *o = &m->operands[in[i]];
        NEED(!o->value && o->writer == NONE && !o->in, BAD_DATA,
             "input %u: operand %u is constant, written or twice an input", i, in[i]);
        o->in = true;
    }
    for (uint32_t i = 0; i < n_out; i++) {
        NEED(out[i] < m->n_operands, BAD_DATA, "output %u: no operand %u", i, out[i]);
        operand *o = &m->operands[out[i]];
        NEED(o->writer != NONE && !o->out, BAD_DATA,
             "output %u: operand %u is not written by an operation, or twice an output", i, out[i]);
        o->out = true;
    }
    m->in = copy_of(in, n_in);
    m->out = copy_of(out, n_out);
    m->n_in = n_in;
    m->n_out = n_out;
    m->identified = true;
    return m->in && m->out ? OK : OUT_OF_MEMORY;
}

/* Operations may come in any order: rounds until all of them ran. */
static bool put_in_order(model *m)
{
    bool *there = calloc(m->n_operands + 1, sizeof(*there));
    bool *taken = calloc(m->n_operations + 1, sizeof(*taken)), more = true;
    uint32_t n = 0;
    m->order = calloc(m->n_operations + 1, sizeof(*m->order));
    for (uint32_t i = 0; there && i < m->n_operands; i++) {
        there[i] = m->operands[i].value || m->operands[i].in;
    }
    while (there && taken && m->order && more) {
        more = false;
        for (uint32_t k = 0; k < m->n_operations; k++) {
            const operation *o = &m->operations[k];
            bool ready = !taken[k];
            for (uint32_t i = 0; ready && i < o->n_in; i++) {
                ready = there[o->in[i]];
            }
            if (ready) {
                m->order[n++] = k;
                taken[k] = there[o->out] = more = true;
            }
        }
    }
    free(there);
    free(taken);
    return n == m->n_operations;
}

#ifdef LACKING /* the library of this kind lacks one symbol */
#define ANeuralNetworksModel_finish nnapi_double_hidden_finish
#endif
int ANeuralNetworksModel_finish(model *m)
{
    MAY_REFUSE("ANeuralNetworksModel_finish");
    NEED(m, UNEXPECTED_NULL, "Model_finish: NULL");
    NEED(!m->finished, BAD_STATE, "Model_finish: twice");
    NEED(m->identified, BAD_STATE, "Model_finish: inputs and outputs are not identified");
    NEED(put_in_order(m), BAD_DATA, "Model_finish: an operand is read that nothing writes");
    for (uint32_t i = 0; i < m->n_in; i++) {
        bool read = false;
        for (uint32_t k = 0; k < m->n_operations && !read; k++) {
            for (uint32_t a = 0; a < m->operations[k].n_in; a++) {
                read = read || m->operations[k].in[a] == m->in[i];
            }
        }
        NEED(read, BAD_DATA, "Model_finish: input %u is read by nothing", i);
    }
    m->finished = true;
    return OK;
}

int nnapi_double_values(const model *m)
{
    for (uint32_t i = 0; i < m->n_operands; i++) {
        const operand *o = &m->operands[i];
        NEED(!o->value || o->kept || sum_of(o->value, o->bytes) == o->sum, BAD_DATA,
             "operand %u: its value, given by reference, has changed", i);
    }
    return OK;
}

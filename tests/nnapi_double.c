/* nnapi_double.c: the calls of NNAPI: in which order they may come, what they may be given. */
#include "nnapi_double.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

typedef struct compilation {
    model *m;
    bool finished, preferred, cached;
    int users; /* executions */
} compilation;

typedef struct execution {
    compilation *c;
    const void **in;
    void **out;
    bool started;
    int result;
} execution;

typedef struct event {
    execution *e;
    bool waited;
} event;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int faults, live, computed;
static char last[256], token_text[65], made[4096];

/* ---- what tests ask ---- */

int nnapi_double_faults(void)
{
    return faults;
}

const char *nnapi_double_last(void)
{
    return last;
}

int nnapi_double_live(void)
{
    return live;
}

int nnapi_double_computed(void)
{
    return computed;
}

/* Operations of the last model, in order: "QUANTIZE CONV_2D* "; a star: on bytes. */
const char *nnapi_double_made(void)
{
    return made;
}

const char *nnapi_double_token(void)
{
    return token_text;
}

/* ---- faults ---- */

int nnapi_double_fault(int result, const char *format, ...)
{
    const char *path = getenv("NNAPI_DOUBLE_LOG");
    va_list list;
    pthread_mutex_lock(&lock);
    va_start(list, format);
    vsnprintf(last, sizeof(last), format, list);
    va_end(list);
    faults++;
    FILE *f = path ? fopen(path, "a") : NULL;
    if (f) {
        fprintf(f, "%s\n", last);
        fclose(f);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static bool refused(const char *call)
{
    const char *name = getenv("NNAPI_DOUBLE_REFUSE");
    return name && strcmp(name, call) == 0;
}

int64_t nnapi_double_level(void)
{
    const char *text = getenv("NNAPI_DOUBLE_LEVEL");
    return text ? strtoll(text, NULL, 10) : 30;
}

static void count(int *what, int by)
{
    pthread_mutex_lock(&lock);
    *what += by;
    pthread_mutex_unlock(&lock);
}

#define NEED(condition, result, ...)                      \
    do {                                                  \
        if (!(condition)) {                               \
            return nnapi_double_fault(result, __VA_ARGS__); \
        }                                                 \
    } while (0)
#define MAY_REFUSE(call)      \
    do {                      \
        if (refused(call)) {  \
            return OP_FAILED; \
        }                     \
    } while (0)

int64_t ANeuralNetworks_getRuntimeFeatureLevel(void)
{
    return nnapi_double_level();
}

/* ---- devices: one ---- */

static int the_device;

int ANeuralNetworks_getDeviceCount(uint32_t *n)
{
    *n = 1;
    return OK;
}

int ANeuralNetworks_getDevice(uint32_t i, void **device)
{
    NEED(i == 0, BAD_DATA, "getDevice: there is no device %u", i);
    *device = &the_device;
    return OK;
}

int ANeuralNetworksDevice_getName(const void *device, const char **name)
{
    NEED(device == &the_device, BAD_DATA, "getName: no device");
    *name = "double";
    return OK;
}

int ANeuralNetworksDevice_getFeatureLevel(const void *device, int64_t *level)
{
    NEED(device == &the_device, BAD_DATA, "getFeatureLevel: no device");
    *level = nnapi_double_level();
    return OK;
}

/* ---- models ---- */

int ANeuralNetworksModel_create(model **m)
{
    MAY_REFUSE("ANeuralNetworksModel_create");
    *m = calloc(1, sizeof(**m));
    made[0] = 0;
    count(&live, *m != NULL);
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
    count(&live, -1);
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
    size_t used = strlen(made);
    snprintf(made + used, sizeof(made) - used, "%s%s ", o.rule->name, is_bytes(arg(m, &o, 0)) ? "*" : "");
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

static int check_values(const model *m)
{
    for (uint32_t i = 0; i < m->n_operands; i++) {
        const operand *o = &m->operands[i];
        NEED(!o->value || o->kept || sum_of(o->value, o->bytes) == o->sum, BAD_DATA,
             "operand %u: its value, given by reference, has changed", i);
    }
    return OK;
}

/* ---- compilations ---- */

int ANeuralNetworksCompilation_create(model *m, compilation **c)
{
    MAY_REFUSE("ANeuralNetworksCompilation_create");
    NEED(m && c, UNEXPECTED_NULL, "Compilation_create: NULL");
    NEED(m->finished, BAD_STATE, "Compilation_create: the model is not finished");
    *c = calloc(1, sizeof(**c));
    if (!*c) {
        return OUT_OF_MEMORY;
    }
    (*c)->m = m;
    count(&m->users, 1);
    count(&live, 1);
    return OK;
}

int ANeuralNetworksCompilation_createForDevices(model *m, const void *const *devices, uint32_t n,
                                                compilation **c)
{
    NEED(n == 1 && devices && devices[0] == &the_device, BAD_DATA, "createForDevices: no device");
    return ANeuralNetworksCompilation_create(m, c);
}

void ANeuralNetworksCompilation_free(compilation *c)
{
    if (!c) {
        return;
    }
    if (c->users > 0) {
        nnapi_double_fault(0, "Compilation_free: an execution of it is there still");
    }
    count(&c->m->users, -1);
    count(&live, -1);
    free(c);
}

int ANeuralNetworksCompilation_setPreference(compilation *c, int32_t preference)
{
    NEED(c && !c->finished, BAD_STATE, "setPreference: the compilation is finished");
    NEED(preference >= 0 && preference <= 2, BAD_DATA, "setPreference: there is no %d", preference);
    c->preferred = true;
    return OK;
}

int ANeuralNetworksCompilation_setCaching(compilation *c, const char *folder, const uint8_t *token)
{
    struct stat info;
    NEED(c && folder && token, UNEXPECTED_NULL, "setCaching: NULL");
    NEED(!c->finished && !c->cached, BAD_STATE, "setCaching: too late, or twice");
    NEED(stat(folder, &info) == 0 && S_ISDIR(info.st_mode), BAD_DATA, "setCaching: no folder %s",
         folder);
    for (int i = 0; i < 32; i++) {
        snprintf(token_text + 2 * i, 3, "%02x", token[i]);
    }
    c->cached = true;
    return OK;
}

int ANeuralNetworksCompilation_finish(compilation *c)
{
    MAY_REFUSE("ANeuralNetworksCompilation_finish");
    NEED(c && !c->finished, BAD_STATE, "Compilation_finish: twice");
    c->finished = true;
    return check_values(c->m);
}

/* ---- executions ---- */

int ANeuralNetworksExecution_create(compilation *c, execution **e)
{
    MAY_REFUSE("ANeuralNetworksExecution_create");
    NEED(c && e, UNEXPECTED_NULL, "Execution_create: NULL");
    NEED(c->finished, BAD_STATE, "Execution_create: the compilation is not finished");
    *e = calloc(1, sizeof(**e));
    if (!*e) {
        return OUT_OF_MEMORY;
    }
    (*e)->c = c;
    (*e)->in = calloc(c->m->n_in, sizeof(void *));
    (*e)->out = calloc(c->m->n_out, sizeof(void *));
    count(&c->users, 1);
    count(&live, 1);
    return (*e)->in && (*e)->out ? OK : OUT_OF_MEMORY;
}

void ANeuralNetworksExecution_free(execution *e)
{
    if (!e) {
        return;
    }
    count(&e->c->users, -1);
    count(&live, -1);
    free(e->in);
    free(e->out);
    free(e);
}

/* The operand an execution's input or output is, once the call is looked at. */
static int bound(const execution *e, bool in, int32_t i, const operand_type *t, const void *data,
                 size_t size)
{
    const char *call = in ? "setInput" : "setOutput";
    NEED(e && data, UNEXPECTED_NULL, "%s: NULL", call);
    NEED(!e->started, BAD_STATE, "%s: it was started", call);
    const model *m = e->c->m;
    NEED(i >= 0 && (uint32_t)i < (in ? m->n_in : m->n_out), BAD_DATA, "%s: no %d", call, i);
    const operand *o = &m->operands[in ? m->in[i] : m->out[i]];
    NEED(!t || t->type == o->type, BAD_DATA, "%s %d: another type", call, i);
    NEED(size == o->bytes, BAD_DATA, "%s %d: %zu bytes, not %zu", call, i, size, o->bytes);
    NEED(!(in ? e->in[i] : e->out[i]), BAD_STATE, "%s %d: twice", call, i);
    return OK;
}

int ANeuralNetworksExecution_setInput(execution *e, int32_t i, const operand_type *t, const void *data,
                                      size_t size)
{
    MAY_REFUSE("ANeuralNetworksExecution_setInput");
    int result = bound(e, true, i, t, data, size);
    if (result == OK) {
        e->in[i] = data;
    }
    return result;
}

int ANeuralNetworksExecution_setOutput(execution *e, int32_t i, const operand_type *t, void *data,
                                       size_t size)
{
    MAY_REFUSE("ANeuralNetworksExecution_setOutput");
    int result = bound(e, false, i, t, data, size);
    if (result == OK) {
        e->out[i] = data;
    }
    return result;
}

/* Data of every operand: constants and what the execution was given lie where they are. */
static bool place(const execution *e, void **data)
{
    const model *m = e->c->m;
    for (uint32_t i = 0; i < m->n_in; i++) {
        data[m->in[i]] = (void *)(uintptr_t)e->in[i];
    }
    for (uint32_t i = 0; i < m->n_out; i++) {
        data[m->out[i]] = e->out[i];
    }
    for (uint32_t i = 0; i < m->n_operands; i++) {
        const operand *o = &m->operands[i];
        if (o->value) {
            data[i] = (void *)(uintptr_t)o->value;
        } else if (!data[i] && !(data[i] = malloc(o->bytes))) {
            return false;
        }
    }
    return true;
}

static int compute(execution *e)
{
    const model *m = e->c->m;
    int result = check_values(m);
    void **data = calloc(m->n_operands + 1, sizeof(*data));
    if (result == OK && (!data || !place(e, data))) {
        result = OUT_OF_MEMORY;
    }
    for (uint32_t k = 0; k < m->n_operations && result == OK; k++) {
        job j = {m, &m->operations[m->order[k]], data, NULL};
        if (nnapi_double_unpack(&j)) {
            j.o->rule->run(&j);
        } else {
            result = OUT_OF_MEMORY;
        }
        nnapi_double_release(&j);
    }
    for (uint32_t i = 0; data && i < m->n_operands; i++) {
        const operand *o = &m->operands[i];
        if (!o->value && !o->in && !o->out) {
            free(data[i]);
        }
    }
    free(data);
    count(&computed, 1);
    return result;
}

static int start(execution *e)
{
    NEED(e, UNEXPECTED_NULL, "compute: NULL");
    NEED(!e->started, BAD_STATE, "compute: an execution runs once");
    e->started = true;
    for (uint32_t i = 0; i < e->c->m->n_in; i++) {
        NEED(e->in[i], BAD_STATE, "compute: input %u is not set", i);
    }
    for (uint32_t i = 0; i < e->c->m->n_out; i++) {
        NEED(e->out[i], BAD_STATE, "compute: output %u is not set", i);
    }
    return OK;
}

int ANeuralNetworksExecution_compute(execution *e)
{
    MAY_REFUSE("ANeuralNetworksExecution_compute");
    int result = start(e);
    return result == OK ? compute(e) : result;
}

int ANeuralNetworksExecution_startCompute(execution *e, event **v)
{
    MAY_REFUSE("ANeuralNetworksExecution_startCompute");
    int result = start(e);
    *v = result == OK ? calloc(1, sizeof(**v)) : NULL;
    if (*v) {
        (*v)->e = e;
        count(&live, 1);
    }
    return *v ? OK : result == OK ? OUT_OF_MEMORY : result;
}

int ANeuralNetworksEvent_wait(event *v)
{
    NEED(v && !v->waited, BAD_STATE, "Event_wait: no event, or twice");
    v->waited = true;
    return compute(v->e);
}

void ANeuralNetworksEvent_free(event *v)
{
    if (v && !v->waited) {
        nnapi_double_fault(0, "Event_free: nobody waited for it");
    }
    count(&live, -(v != NULL));
    free(v);
}

/* nnapi_double.c: the calls of NNAPI: in which order they may come, what they may be given. Those that make
 * models are in nnapi_double_model.c. */
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

static void count(int *what, int by)
{
    pthread_mutex_lock(&lock);
    *what += by;
    pthread_mutex_unlock(&lock);
}

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

void nnapi_double_lives(int by)
{
    count(&live, by);
}

void nnapi_double_note(const char *name)
{
    size_t used = name ? strlen(made) : 0;
    snprintf(made + used, sizeof(made) - used, "%s", name ? name : "");
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

bool nnapi_double_refused(const char *call)
{
    const char *name = getenv("NNAPI_DOUBLE_REFUSE");
    return name && strcmp(name, call) == 0;
}

int64_t nnapi_double_level(void)
{
    const char *text = getenv("NNAPI_DOUBLE_LEVEL");
    return text ? strtoll(text, NULL, 10) : 30;
}

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
    return nnapi_double_values(c->m);
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
    int result = nnapi_double_values(m);
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

/* cuda_double_device.c: the device of the double: memory with guards behind it, and what is started, which
 * happens when it is waited for. As on a device, a call against the rules is counted. */
#include <pthread.h>

#include "cuda_double_state.h"

state now;
_Thread_local int double_current;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char complaint[256], mode[16];

static struct {
    const char *name;
    long count;
} counts[] = {{"allocations", 0}, {"pinned", 0},   {"modules", 0},  {"streams", 0}, {"graphs", 0},
              {"contexts", 0},    {"launches", 0}, {"replays", 0},  {"compiles", 0}, {"loads", 0},
              {"bytes in", 0},    {"bytes out", 0}, {"wrong", 0},    {"handles", 0}, {"products", 0},
              {"convolutions", 0}};

static long *count_of(const char *what)
{
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        if (strcmp(counts[i].name, what) == 0) {
            return &counts[i].count;
        }
    }
    return NULL;
}

void add(const char *what, long n)
{
    *count_of(what) += n;
}

int wrong(int code, const char *what)
{
    if (!complaint[0]) {
        snprintf(complaint, sizeof(complaint), "%s", what);
    }
    add("wrong", 1);
    return code;
}

void double_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void double_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

long cuda_double_count(const char *what)
{
    double_lock();
    const long *n = count_of(what);
    long result = n ? *n : -1;
    double_unlock();
    return result;
}

const char *cuda_double_complaint(void)
{
    return complaint;
}

void cuda_double_mode(const char *text)
{
    snprintf(mode, sizeof(mode), "%s", text);
}

bool double_is(const char *text)
{
    return strcmp(mode, text) == 0;
}

/* ---- memory ---- */

/* The allocation that holds bytes from at on; NULL: none. */
block *block_with(const void *at, size_t bytes, bool host)
{
    for (block *b = now.blocks; b; b = b->next) {
        const unsigned char *p = at;
        if (b->host == host && p >= b->data && p <= b->data + b->bytes &&
            bytes <= (size_t)(b->data + b->bytes - p)) {
            return b;
        }
    }
    return NULL;
}

int allocate(void **at, size_t bytes, bool host)
{
    if (double_current == 0) {
        return wrong(INVALID_CONTEXT, "memory is allocated without a context");
    }
    if (double_is("memory") || bytes == 0) {
        return bytes ? OUT_OF_MEMORY : wrong(INVALID_VALUE, "no bytes are allocated");
    }
    block *b = calloc(1, sizeof(*b));
    unsigned char *data = malloc(bytes + GUARD);
    if (!b || !data) {
        free(b);
        free(data);
        return OUT_OF_MEMORY;
    }
    memset(data, 0x7f, bytes); /* what is read before it is written is large, and not 0 */
    memset(data + bytes, 0xa5, GUARD);
    *b = (block){.next = now.blocks, .bytes = bytes, .data = data, .host = host};
    now.blocks = b;
    *at = data;
    add(host ? "pinned" : "allocations", 1);
    return 0;
}

int give_back(void *at, bool host)
{
    for (block **p = &now.blocks; *p; p = &(*p)->next) {
        block *b = *p;
        if (b->data != at || b->host != host) {
            continue;
        }
        int code = double_current ? 0 : wrong(INVALID_CONTEXT, "memory is freed without a context");
        for (int i = 0; i < GUARD; i++) {
            if (b->data[b->bytes + (size_t)i] != 0xa5) {
                code = wrong(LAUNCH_FAILED, "something wrote behind an allocation");
                break;
            }
        }
        *p = b->next;
        free(b->data);
        free(b);
        add(host ? "pinned" : "allocations", -1);
        return code;
    }
    return wrong(INVALID_VALUE, "what is freed is not allocated");
}

/* ---- what is started ---- */

void put(list *l, step *s)
{
    if (!l->first) {
        l->end = &l->first;
    }
    s->next = NULL;
    *l->end = s;
    l->end = &s->next;
}

void drop(list *l)
{
    while (l->first) {
        step *next = l->first->next;
        free(l->first);
        l->first = next;
    }
}

static int copy(const step *s)
{
    block *to = block_with(s->to, s->bytes, false), *from = block_with(s->from, s->bytes, false);
    bool in = to != NULL;
    if (!to && !from) {
        return wrong(INVALID_VALUE, "a copy does not lie within memory of the device");
    }
    memcpy(s->to, s->from, s->bytes);
    add(in ? "bytes in" : "bytes out", (long)s->bytes);
    return 0;
}

static int start_kernel(const step *s)
{
    void *parameters[DOUBLE_PARAMETERS];
    for (int i = 0; i < s->kernel->count; i++) {
        void *at;
        parameters[i] = (void *)(uintptr_t)s->values[i];
        memcpy(&at, s->values[i], sizeof(at));
        if (s->kernel->pointers[i] && !block_with(at, 1, false)) {
            char text[128];
            snprintf(text, sizeof(text), "parameter %d of %s points to no memory of the device", i,
                     s->kernel->name);
            return wrong(LAUNCH_FAILED, text);
        }
    }
    const char *bad = double_run(s->kernel, s->grid, s->threads, s->shared, parameters);
    return bad ? wrong(LAUNCH_FAILED, bad) : 0;
}

int run_queue(void)
{
    int code = 0;
    for (const step *s = now.queue.first; s && code == 0; s = s->next) {
        const char *bad = s->act ? s->act(s->values) : NULL;
        code = bad          ? wrong(LAUNCH_FAILED, bad)
               : s->act     ? 0
               : s->kernel  ? start_kernel(s)
                            : copy(s);
    }
    drop(&now.queue);
    return code;
}

int later(const void *to, const void *from, size_t bytes)
{
    step *s = calloc(1, sizeof(*s));
    if (!s) {
        return OUT_OF_MEMORY;
    }
    s->to = (void *)(uintptr_t)to;
    s->from = (void *)(uintptr_t)from;
    s->bytes = bytes;
    put(&now.queue, s);
    return 0;
}

/* ---- for other libraries ---- */

int double_wrong(int code, const char *what)
{
    double_lock();
    wrong(code, what);
    double_unlock();
    return code;
}

int double_context(void)
{
    return double_current > 0;
}

int double_stream(const void *stream)
{
    return stream == &now.stream;
}

int double_within(const void *at, size_t bytes)
{
    double_lock();
    int within = block_with(at, bytes, false) != NULL;
    double_unlock();
    return within;
}

void double_add(const char *what, long n)
{
    double_lock();
    add(what, n);
    double_unlock();
}

int double_later(const char *(*act)(const void *what), const void *what, size_t size)
{
    step *s = calloc(1, sizeof(*s));
    if (!s || size > sizeof(s->values)) {
        free(s);
        return OUT_OF_MEMORY;
    }
    s->act = act;
    memcpy(s->values, what, size);
    double_lock();
    put(now.capturing ? &now.recorded : &now.queue, s);
    double_unlock();
    return 0;
}

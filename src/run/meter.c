/* meter.c: see meter.h. Pieces kept are looked for among those of the same power of two, newest
 * first, and no further than a few: kernels ask for the same sizes in the same order. */
#include "base/size_text.h"
#include "plan/plan.h"
#include "run/meter.h"

#define LOOK_AT 64u
/* Kept at most: this, and half of what runs have in use at once. */
#define SPARE_ALWAYS ((size_t)1 << 20)

static unsigned class_of(size_t size)
{
    unsigned n = 0;
    while (size > 1 && n + 1 < NORI__METER_CLASSES) {
        size >>= 1;
        n++;
    }
    return n;
}

static void give_to_base(nori__meter *m, const nori__spare *s)
{
    m->spare -= s->size;
    m->base->release(m->base->user, s->memory, s->size);
}

/* Pieces given back in runs before that one. */
static void drop_older(nori__meter *m, uint64_t run)
{
    for (unsigned c = 0; m->spare > 0 && c < NORI__METER_CLASSES; c++) {
        nori__spares *list = &m->classes[c];
        size_t kept = 0;
        for (size_t i = 0; i < list->count; i++) {
            if (list->items[i].run < run) {
                give_to_base(m, &list->items[i]);
            } else {
                list->items[kept++] = list->items[i];
            }
        }
        list->count = kept;
    }
}

static void *take_spare(nori__meter *m, size_t size, size_t align)
{
    nori__spares *list = &m->classes[class_of(size)];
    for (size_t i = list->count, looked = 0; i-- > 0 && looked < LOOK_AT; looked++) {
        nori__spare s = list->items[i];
        if (s.size == size && s.align >= align) {
            list->items[i] = list->items[--list->count];
            m->spare -= size;
            return s.memory;
        }
    }
    return NULL;
}

static bool within(const nori__meter *m, size_t size)
{
    size_t held = m->live + m->spare;
    return m->cap == 0 || (held <= m->cap && size <= m->cap - held);
}

static void *counted_alloc(nori__meter *m, size_t size, size_t align, bool pooled)
{
    pthread_mutex_lock(&m->lock);
    void *memory = pooled ? take_spare(m, size, align) : NULL;
    if (!memory) {
        if (!within(m, size)) {
            drop_older(m, UINT64_MAX);
        }
        if (within(m, size)) {
            memory = m->base->alloc(m->base->user, size, align);
        } else if (m->refused == 0) {
            m->refused = size;
            m->refused_live = m->live;
        }
    }
    if (memory) {
        m->live += size;
        m->most = m->live > m->most ? m->live : m->most;
    }
    pthread_mutex_unlock(&m->lock);
    return memory;
}

static bool grow(nori__meter *m, nori__spares *list)
{
    size_t capacity = list->capacity ? list->capacity * 2 : 8;
    nori__spare *items = nori__alloc(m->base, capacity * sizeof(*items));
    if (!items) {
        return false;
    }
    if (list->count > 0) {
        memcpy(items, list->items, list->count * sizeof(*items));
    }
    nori__release(m->base, list->items, list->capacity * sizeof(*items));
    list->items = items;
    list->capacity = capacity;
    return true;
}

static void *plain_alloc(void *user, size_t size, size_t align)
{
    return counted_alloc(user, size, align, false);
}

static void *pooled_alloc(void *user, size_t size, size_t align)
{
    return counted_alloc(user, size, align, true);
}

static void plain_release(void *user, void *memory, size_t size)
{
    nori__meter *m = user;
    pthread_mutex_lock(&m->lock);
    m->live -= size;
    pthread_mutex_unlock(&m->lock);
    m->base->release(m->base->user, memory, size);
}

/* How a piece is aligned can be seen, but not how it was asked for: 64 is the most anybody asks. */
static size_t alignment(const void *memory)
{
    uintptr_t at = (uintptr_t)memory;
    return at % 64 == 0 ? 64 : (size_t)(at & (~at + 1));
}

static void pooled_release(void *user, void *memory, size_t size)
{
    nori__meter *m = user;
    bool kept = false;
    pthread_mutex_lock(&m->lock);
    m->live -= size;
    nori__spares *list = &m->classes[class_of(size)];
    if (m->spare <= SPARE_ALWAYS + m->most / 2 && size <= SPARE_ALWAYS + m->most / 2 - m->spare &&
        (list->count < list->capacity || grow(m, list))) {
        list->items[list->count++] = (nori__spare){memory, size, alignment(memory), m->run};
        m->spare += size;
        kept = true;
    }
    pthread_mutex_unlock(&m->lock);
    if (!kept) {
        m->base->release(m->base->user, memory, size);
    }
}

void nori__meter_init(nori__meter *m, const nori_allocator *base, uint64_t cap)
{
    memset(m, 0, sizeof(*m));
    m->plain = (nori_allocator){plain_alloc, plain_release, m};
    m->pooled = (nori_allocator){pooled_alloc, pooled_release, m};
    m->base = base;
    m->cap = cap;
    pthread_mutex_init(&m->lock, NULL);
}

void nori__meter_close(nori__meter *m)
{
    drop_older(m, UINT64_MAX);
    for (unsigned c = 0; c < NORI__METER_CLASSES; c++) {
        nori__release(m->base, m->classes[c].items,
                      m->classes[c].capacity * sizeof(*m->classes[c].items));
    }
    pthread_mutex_destroy(&m->lock);
}

void nori__meter_begin(nori__meter *m)
{
    m->run++;
    m->most = m->live;
    m->refused = 0;
}

void nori__meter_end(nori__meter *m)
{
    drop_older(m, m->run);
}

static void forget(nori__meter *m, size_t size)
{
    pthread_mutex_lock(&m->lock);
    m->live -= size;
    pthread_mutex_unlock(&m->lock);
}

/* A tensor whose bytes are somebody else's, who is not held by it. */
static bool is_view(const nori_tensor *t)
{
    return t->kind == NORI_KIND_TENSOR && t->bytes > 0 && !t->release &&
           nori__tensor_footprint(t) == sizeof(*t);
}

static nori_status deep_copy(const nori_allocator *a, const nori_tensor *from, nori_tensor **out,
                             nori_error *err)
{
    NORI__TRY(nori__tensor_copy(a, from, out, err));
    nori_status status = NORI_OK;
    nori_tensor **items = (*out)->data;
    for (size_t i = 0; i < nori_tensor_item_count(*out) && status == NORI_OK; i++) { /* as deep as it nests */
        nori_tensor *own = NULL;
        status = deep_copy(a, items[i], &own, err);
        if (status == NORI_OK) {
            nori_tensor_free(items[i]);
            items[i] = own;
        }
    }
    if (status != NORI_OK) {
        nori_tensor_free(*out);
        *out = NULL;
    }
    return status;
}

nori_status nori__meter_let_go(nori__meter *m, nori_tensor **tensor, nori_error *err)
{
    nori_tensor *t = *tensor;
    if (!t) {
        return NORI_OK;
    }
    if ((t->allocator != &m->plain && t->allocator != &m->pooled) || is_view(t)) {
        nori_tensor *own = NULL;
        NORI__TRY(deep_copy(m->base, t, &own, err));
        nori_tensor_free(t);
        *tensor = own;
        return NORI_OK;
    }
    t->allocator = m->base;
    forget(m, nori__tensor_footprint(t));
    nori_tensor **items = t->data;
    for (size_t i = 0; i < nori_tensor_item_count(t); i++) {
        NORI__TRY(nori__meter_let_go(m, &items[i], err));
    }
    return NORI_OK;
}

nori_status nori__meter_explain(const nori__meter *m, nori_status status, nori_error *err)
{
    if (status != NORI_ERROR_MEMORY || m->refused == 0) {
        return status;
    }
    if (err) {
        char where[sizeof(err->where)];
        char need[NORI__SIZE_TEXT], have[NORI__SIZE_TEXT], most[NORI__SIZE_TEXT];
        memcpy(where, err->where, sizeof(where));
        err->status = NORI_OK;
        nori__fail(err, NORI_ERROR_LIMIT,
                   "the run needs %s beside the %s it holds, the limit is %s",
                   nori__size_apart(m->refused, m->cap, need), nori__size_text(m->refused_live, have),
                   nori__size_apart(m->cap, m->refused, most));
        if (where[0]) {
            nori__where(err, "%s", where);
        }
        nori__hint(err, "%s", NORI__CAP_HINT);
    }
    return NORI_ERROR_LIMIT;
}

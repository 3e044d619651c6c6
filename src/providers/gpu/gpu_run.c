/* gpu_run.c: one run of a part: find its layout, copy in, enqueue, copy out.
 *
 * A session has one queue, and a layout one set of buffers, so runs take turns: the lock of the
 * provider is held from copying in to copying out, while whoever started may do other things. Buffers are
 * mapped, not copied to and from: where host and device share memory that costs no second copy. */
#include "base/half.h"
#include "providers/gpu/gpu.h"

static bool fits(const gpu_part *p, const gpu_layout *y, const nori_tensor *const *in)
{
    for (uint32_t i = 0; i < p->part->n_in; i++) {
        const nori_tensor *t = in[i];
        if ((t ? t->rank : -1) != y->in[i].rank) {
            return false;
        }
        if (t && memcmp(t->dims, y->in[i].dims, (size_t)t->rank * sizeof(t->dims[0])) != 0) {
            return false;
        }
        if (t && y->content[i] &&
            (t->type != y->content[i]->type ||
             (t->bytes > 0 && memcmp(t->data, y->content[i]->data, t->bytes) != 0))) {
            return false;
        }
    }
    return true;
}

/* The newest layout comes first, the oldest goes. */
static nori_status layout_for(gpu_self *self, gpu_part *p, nori_call *call, gpu_layout **layout)
{
    int k = 0;
    while (k < GPU_LAYOUTS && p->layouts[k] && !fits(p, p->layouts[k], call->in)) {
        k++;
    }
    gpu_layout *y = k < GPU_LAYOUTS ? p->layouts[k] : NULL;
    if (!y) {
        NORI__TRY(nori__gpu_lay_out(self, p, call->in, &y, nori_call_error(call)));
        k = k < GPU_LAYOUTS ? k : GPU_LAYOUTS - 1;
        nori__gpu_layout_free(self, p->layouts[k]);
    }
    memmove(p->layouts + 1, p->layouts, (size_t)k * sizeof(p->layouts[0]));
    p->layouts[0] = *layout = y;
    return NORI_OK;
}

static nori_status put_indices(const gpu_feed *f, const nori_tensor *t, int32_t *to,
                               nori_error *err)
{
    for (int64_t i = 0; i < t->count; i++) {
        int64_t at = nori__tensor_get_i64(t, i);
        if (at < -f->limit || at >= f->limit) {
            char path[256];
            nori__node_path(f->node, path, sizeof(path));
            nori__fail(err, NORI_ERROR_DATA,
                       "index %lld at place %lld, expected within an axis of %lld", (long long)at,
                       (long long)i, (long long)f->limit);
            nori__where(err, "%s", path);
            return NORI_ERROR_DATA;
        }
        to[i] = (int32_t)(at < 0 ? at + f->limit : at);
    }
    return NORI_OK;
}

static nori_status copy_in(gpu_self *self, const gpu_feed *f, const nori_tensor *t, nori_error *err)
{
    size_t count = (size_t)t->count;
    if (count == 0) {
        return NORI_OK;
    }
    size_t bytes = count * (self->half && !f->limit ? 2 : 4);
    void *at = self->driver->map(self, f->mem, true, bytes, err);
    nori_status status = at ? NORI_OK : NORI_ERROR_DATA;
    if (at && f->limit) {
        status = put_indices(f, t, at, err);
    } else if (at && self->half) {
        const float *from = t->data;
        for (size_t i = 0; i < count; i++) {
            ((uint16_t *)at)[i] = nori__f32_to_f16(from[i]);
        }
    } else if (at) {
        memcpy(at, t->data, t->bytes);
    }
    nori_status unmapped = at ? self->driver->unmap(self, f->mem, at, true, bytes, err) : NORI_OK;
    return status != NORI_OK ? status : unmapped;
}

static nori_status copy_out(gpu_self *self, gpu_mem *mem, nori_tensor *t, nori_error *err)
{
    size_t count = (size_t)t->count;
    if (count == 0) {
        return NORI_OK;
    }
    size_t bytes = count * (self->half ? 2 : 4);
    void *at = self->driver->map(self, mem, false, bytes, err);
    if (!at) {
        return NORI_ERROR_DATA;
    }
    if (self->half) {
        float *to = t->data;
        for (size_t i = 0; i < count; i++) {
            to[i] = nori__f16_to_f32(((const uint16_t *)at)[i]);
        }
    } else {
        memcpy(t->data, at, t->bytes);
    }
    return self->driver->unmap(self, mem, at, false, bytes, err);
}

static nori_status outputs(gpu_self *self, const gpu_part *p, const gpu_layout *y, nori_call *call)
{
    for (uint32_t i = 0; i < p->part->n_out; i++) {
        nori_tensor *t = nori_call_output(call, i);
        const gpu_shape *s = &y->out[i];
        if (!t) {
            NORI__TRY(nori_call_alloc(call, i, NORI_FLOAT, s->rank, s->dims, &t));
        }
        if (t->count != s->count) {
            return nori__fail(nori_call_error(call), NORI_ERROR_INTERNAL,
                              "%s: output %u has %lld elements, %lld were expected",
                              self->driver->title, i, (long long)s->count, (long long)t->count);
        }
        NORI__TRY(copy_out(self, y->out_mem[i], t, nori_call_error(call)));
    }
    return NORI_OK;
}

static nori_status begin(gpu_self *self, gpu_part *p, nori_call *call, gpu_layout **layout)
{
    gpu_layout *y = NULL;
    NORI__TRY(layout_for(self, p, call, &y));
    *layout = y;
    for (size_t i = 0; i < y->feeds.count; i++) {
        const gpu_feed *f = y->feeds.items[i];
        NORI__TRY(copy_in(self, f, call->in[f->input], nori_call_error(call)));
    }
    NORI__TRY(self->driver->enqueue(self, y, nori_call_error(call)));
    y->runs += y->runs < 2;
    return NORI_OK;
}

/* The lock is held from here to finish: buffers and queue are this run's. */
nori_status nori__gpu_start(void *user, void *compiled, nori_call *call, void **started)
{
    gpu_self *self = user;
    gpu_layout *y = NULL;
    pthread_mutex_lock(&self->lock);
    nori_status status = nori__gpu_enter(self, nori_call_error(call));
    if (status == NORI_OK) {
        status = begin(self, compiled, call, &y);
        if (status != NORI_OK) {
            self->driver->finish(self); /* nothing of this run is left when the next one begins */
        }
        nori__gpu_leave(self);
    }
    if (status != NORI_OK) {
        pthread_mutex_unlock(&self->lock);
    }
    *started = y;
    return status;
}

nori_status nori__gpu_finish(void *user, void *compiled, void *started, nori_call *call)
{
    gpu_self *self = user;
    nori_status status = nori__gpu_enter(self, nori_call_error(call));
    if (status == NORI_OK) {
        status = outputs(self, compiled, started, call);
        if (status != NORI_OK) {
            self->driver->finish(self);
        }
        nori__gpu_leave(self);
    }
    pthread_mutex_unlock(&self->lock);
    return status;
}

nori_status nori__gpu_run(void *user, void *compiled, nori_call *call)
{
    void *started = NULL;
    NORI__TRY(nori__gpu_start(user, compiled, call, &started));
    return nori__gpu_finish(user, compiled, started, call);
}

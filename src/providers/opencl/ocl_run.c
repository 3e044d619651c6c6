/* ocl_run.c: one run of a part: find its layout, copy in, enqueue, copy out.
 *
 * A session has one queue, and a layout one set of buffers, so runs take turns: the lock of the
 * provider is held from copying in to copying out. Buffers are mapped, not copied to and from: where
 * host and device share memory that costs no second copy. */
#include "base/half.h"
#include "providers/opencl/opencl.h"

static bool fits(const ocl_part *p, const ocl_layout *y, const nori_tensor *const *in)
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
static nori_status layout_for(ocl_self *self, ocl_part *p, nori_call *call, ocl_layout **layout)
{
    int k = 0;
    while (k < OCL_LAYOUTS && p->layouts[k] && !fits(p, p->layouts[k], call->in)) {
        k++;
    }
    ocl_layout *y = k < OCL_LAYOUTS ? p->layouts[k] : NULL;
    if (!y) {
        NORI__TRY(nori__ocl_lay_out(self, p, call->in, &y, nori_call_error(call)));
        k = k < OCL_LAYOUTS ? k : OCL_LAYOUTS - 1;
        nori__ocl_layout_free(self, p->layouts[k]);
    }
    memmove(p->layouts + 1, p->layouts, (size_t)k * sizeof(p->layouts[0]));
    p->layouts[0] = *layout = y;
    return NORI_OK;
}

static void *map(ocl_self *self, ocl_mem *mem, uint64_t how, size_t bytes, nori_error *err)
{
    int32_t code = 0;
    void *at = self->api.clEnqueueMapBuffer(self->queue, mem, 1, how, 0, bytes, 0, NULL, NULL, &code);
    nori__ocl_check(self, at ? 0 : code ? code : -12, "clEnqueueMapBuffer", NORI_ERROR_DATA, err);
    return at;
}

static nori_status unmap(ocl_self *self, ocl_mem *mem, void *at, nori_error *err)
{
    return nori__ocl_check(self,
                           self->api.clEnqueueUnmapMemObject(self->queue, mem, at, 0, NULL, NULL),
                           "clEnqueueUnmapMemObject", NORI_ERROR_DATA, err);
}

static nori_status put_indices(const ocl_feed *f, const nori_tensor *t, int32_t *to,
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

static nori_status copy_in(ocl_self *self, const ocl_feed *f, const nori_tensor *t, nori_error *err)
{
    size_t count = (size_t)t->count;
    if (count == 0) {
        return NORI_OK;
    }
    void *at = map(self, f->mem, OCL_MAP_WRITE_INVALIDATE, count * (self->half && !f->limit ? 2 : 4),
                   err);
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
    nori_status unmapped = at ? unmap(self, f->mem, at, err) : NORI_OK;
    return status != NORI_OK ? status : unmapped;
}

static nori_status copy_out(ocl_self *self, ocl_mem *mem, nori_tensor *t, nori_error *err)
{
    size_t count = (size_t)t->count;
    if (count == 0) {
        return NORI_OK;
    }
    void *at = map(self, mem, OCL_MAP_READ, count * (self->half ? 2 : 4), err);
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
    return unmap(self, mem, at, err);
}

static nori_status enqueue(ocl_self *self, const ocl_layout *y, nori_error *err)
{
    for (size_t i = 0; i < y->launches.count; i++) {
        const ocl_launch *l = y->launches.items[i];
        NORI__TRY(nori__ocl_check(self,
                                  self->api.clEnqueueNDRangeKernel(self->queue, l->kernel, 3, NULL,
                                                                   l->global, l->local, 0, NULL,
                                                                   NULL),
                                  "clEnqueueNDRangeKernel", NORI_ERROR_DATA, err));
    }
    return nori__ocl_check(self, self->api.clFlush(self->queue), "clFlush", NORI_ERROR_DATA, err);
}

static nori_status outputs(ocl_self *self, const ocl_part *p, const ocl_layout *y, nori_call *call)
{
    for (uint32_t i = 0; i < p->part->n_out; i++) {
        nori_tensor *t = nori_call_output(call, i);
        const ocl_shape *s = &y->out[i];
        if (!t) {
            NORI__TRY(nori_call_alloc(call, i, NORI_FLOAT, s->rank, s->dims, &t));
        }
        if (t->count != s->count) {
            return nori__fail(nori_call_error(call), NORI_ERROR_INTERNAL,
                              "OpenCL: output %u has %lld elements, %lld were expected", i,
                              (long long)s->count, (long long)t->count);
        }
        NORI__TRY(copy_out(self, y->out_mem[i], t, nori_call_error(call)));
    }
    return NORI_OK;
}

static nori_status run_locked(ocl_self *self, ocl_part *p, nori_call *call)
{
    ocl_layout *y = NULL;
    NORI__TRY(layout_for(self, p, call, &y));
    for (size_t i = 0; i < y->feeds.count; i++) {
        const ocl_feed *f = y->feeds.items[i];
        NORI__TRY(copy_in(self, f, call->in[f->input], nori_call_error(call)));
    }
    NORI__TRY(enqueue(self, y, nori_call_error(call)));
    return outputs(self, p, y, call);
}

nori_status nori__ocl_run(void *user, void *compiled, nori_call *call)
{
    ocl_self *self = user;
    pthread_mutex_lock(&self->lock);
    nori_status status = run_locked(self, compiled, call);
    if (status != NORI_OK) {
        self->api.clFinish(self->queue); /* nothing of this run is left when the next one begins */
    }
    pthread_mutex_unlock(&self->lock);
    return status;
}

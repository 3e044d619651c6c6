/* gpu_kernel.c: kernels of a layout: arguments in order, groups that fit the device. */
#include "providers/gpu/gpu_lower.h"

static void argument(gpu_lower *l, size_t size, const void *v)
{
    if (!l->bad && l->self->driver->argument(l->self, l->kernel, l->argument, size, v, l->err) !=
                       NORI_OK) {
        nori__gpu_fail(l, NORI_ERROR_INTERNAL);
    }
    l->argument++;
}

void nori__gpu_kernel(gpu_lower *l, gpu_source source, const char *name)
{
    if (l->bad) {
        return;
    }
    l->argument = 0;
    l->local_at = UINT32_MAX;
    if (l->self->driver->program(l->self, source, l->err) != NORI_OK) {
        nori__gpu_fail(l, NORI_ERROR_UNAVAILABLE);
        return;
    }
    l->kernel = l->self->driver->kernel(l->self, source, name, l->err);
    if (!l->kernel) {
        nori__gpu_fail(l, NORI_ERROR_INTERNAL);
    }
}

void nori__gpu_mem(gpu_lower *l, gpu_mem *mem)
{
    argument(l, sizeof(mem), &mem);
}

void nori__gpu_int(gpu_lower *l, int64_t v)
{
    int32_t narrow = (int32_t)v;
    argument(l, sizeof(narrow), &narrow);
}

void nori__gpu_float(gpu_lower *l, float v)
{
    argument(l, sizeof(v), &v);
}

void nori__gpu_int2(gpu_lower *l, int64_t a, int64_t b)
{
    argument(l, 8, (const int32_t[]){(int32_t)a, (int32_t)b});
}

void nori__gpu_int4(gpu_lower *l, int64_t a, int64_t b, int64_t c, int64_t d)
{
    argument(l, 16, (const int32_t[]){(int32_t)a, (int32_t)b, (int32_t)c, (int32_t)d});
}

void nori__gpu_int8(gpu_lower *l, const int64_t v[8])
{
    int32_t narrow[8];
    for (int i = 0; i < 8; i++) {
        narrow[i] = (int32_t)v[i];
    }
    argument(l, sizeof(narrow), narrow);
}

void nori__gpu_local(gpu_lower *l)
{
    l->local_at = l->argument++;
}

/* The most work-items of one group that this kernel takes on this device. */
static size_t group_limit(gpu_lower *l)
{
    size_t most = l->self->driver->group_limit(l->self, l->kernel);
    most = most ? most : 1;
    return most < l->self->group_size ? most : l->self->group_size;
}

static size_t power_below(size_t want, size_t limit)
{
    size_t n = 1;
    while (n < want && n * 2 <= limit) {
        n *= 2;
    }
    return n;
}

void nori__gpu_drop_kernel(gpu_lower *l)
{
    if (l->kernel) {
        l->self->driver->drop_kernel(l->self, l->kernel);
        l->kernel = NULL;
    }
}

static void launch(gpu_lower *l, const size_t global[3], const size_t local[3])
{
    gpu_launch *launch = nori__arena_alloc(&l->layout->arena, sizeof(*launch));
    if (!launch || !nori__vec_push(&l->layout->launches, launch)) {
        nori__gpu_no_memory(l);
        nori__gpu_drop_kernel(l);
        return;
    }
    launch->kernel = l->kernel;
    l->kernel = NULL;
    for (int d = 0; d < 3; d++) {
        launch->local[d] = local[d];
        launch->global[d] = (global[d] + local[d] - 1) / local[d] * local[d];
    }
}

/* Drivers for CPUs compile a kernel again for every group size, so they get one; GPUs get groups
 * that fit what there is to do. */
void nori__gpu_items(gpu_lower *l, int64_t x, int64_t y, int64_t z)
{
    if (l->bad || x <= 0 || y <= 0 || z <= 0) { /* nothing to do for an empty tensor */
        nori__gpu_drop_kernel(l);
        return;
    }
    const gpu_self *self = l->self;
    size_t limit = group_limit(l), most = limit < 64 ? limit : 64, local[3] = {1, 1, 1};
    bool line = y == 1 && z == 1;
    size_t width = line ? 64 : self->is_cpu ? 8 : (size_t)x < 16 ? (size_t)x : 16;
    local[0] = power_below(width, most < self->item_sizes[0] ? most : self->item_sizes[0]);
    if (!line && !self->is_cpu) {
        size_t rest = most / local[0];
        local[1] = power_below((size_t)y, rest < self->item_sizes[1] ? rest : self->item_sizes[1]);
    }
    launch(l, (const size_t[]){(size_t)x, (size_t)y, (size_t)z}, local);
}

void nori__gpu_rows(gpu_lower *l, int64_t rows, int64_t n)
{
    if (l->bad || rows <= 0) {
        nori__gpu_drop_kernel(l);
        return;
    }
    size_t limit = group_limit(l), room = (size_t)(l->self->local_memory / sizeof(float));
    limit = limit < room || room == 0 ? limit : room;
    limit = limit < l->self->item_sizes[0] ? limit : l->self->item_sizes[0];
    size_t want = l->self->is_cpu || n < 64 ? 64 : n < 1024 ? (size_t)n / 4 : 256;
    size_t items = power_below(want, limit);
    uint32_t at = l->local_at;
    if (at != UINT32_MAX) {
        l->argument = at;
        argument(l, items * sizeof(float), NULL);
    }
    if (l->bad) {
        nori__gpu_drop_kernel(l);
        return;
    }
    launch(l, (const size_t[]){(size_t)rows * items, 1, 1}, (const size_t[]){items, 1, 1});
}

void nori__gpu_groups(gpu_lower *l, int64_t x, int64_t y, int64_t z, size_t items)
{
    if (l->bad || x <= 0 || y <= 0 || z <= 0) {
        nori__gpu_drop_kernel(l);
        return;
    }
    if (group_limit(l) < items) {
        nori__fail(l->err, NORI_ERROR_UNSUPPORTED, "%s: a kernel wants groups of %zu, %s takes %zu",
                   l->self->driver->title, items, l->self->device_name, group_limit(l));
        nori__gpu_fail(l, NORI_ERROR_UNSUPPORTED);
        nori__gpu_drop_kernel(l);
        return;
    }
    launch(l, (const size_t[]){(size_t)x * items, (size_t)y, (size_t)z},
           (const size_t[]){items, 1, 1});
}

bool nori__gpu_tiles(const gpu_lower *l)
{
    return l->self->tiles;
}

bool nori__gpu_by_library(gpu_lower *l, const gpu_product *p, const gpu_convolution *c)
{
    const gpu_driver *driver = l->self->driver;
    if (l->bad || !(p ? l->self->products : l->self->convolutions)) {
        return false;
    }
    void *call = p ? driver->product(l->self, p, l->err) : driver->convolution(l->self, c, l->err);
    if (l->err->status != NORI_OK) {
        nori__gpu_fail(l, l->err->status);
    }
    if (!call) {
        return l->bad;
    }
    gpu_launch *launch = nori__arena_alloc(&l->layout->arena, sizeof(*launch));
    if (!launch || !nori__vec_push(&l->layout->launches, launch)) {
        driver->drop_call(l->self, call);
        nori__gpu_no_memory(l);
        return true;
    }
    *launch = (gpu_launch){.call = call};
    return true;
}

/* gpu_source.c: the text of a program. Sources are in kernels/, embedded when nori is built
 * (kernels.cmake); the numbers they share with C are defined in front of them. */
#include <stdio.h>

#include "gpu_kernels.h"
#include "providers/gpu/gpu.h"

static const char *const names[] = {
#define GPU_NAME(name) #name,
    GPU_PROGRAMS(GPU_NAME)
};

static void define_numbers(const gpu_self *self, nori__text *t)
{
#define GPU_NUMBER(name) nori__text_printf(t, "#define UNARY_" #name " %d\n", (int)UNARY_##name);
    GPU_UNARY(GPU_NUMBER)
#undef GPU_NUMBER
#define GPU_NUMBER(name) nori__text_printf(t, "#define BINARY_" #name " %d\n", (int)BINARY_##name);
    GPU_BINARY(GPU_NUMBER)
#undef GPU_NUMBER
#define GPU_NUMBER(name) nori__text_printf(t, "#define REDUCE_" #name " %d\n", (int)REDUCE_##name);
    GPU_REDUCE(GPU_NUMBER)
#undef GPU_NUMBER
#define GPU_NUMBER(name) nori__text_printf(t, "#define POOL_" #name " %d\n", (int)POOL_##name);
    GPU_POOL(GPU_NUMBER)
#undef GPU_NUMBER
    nori__text_printf(t, "%s#line 1\n", self->half ? "#define NORI_HALF\n" : "");
}

gpu_program *nori__gpu_program(gpu_self *self, gpu_source which)
{
    return which < GPU_SOURCES ? &self->programs[which] : self->made.items[which - GPU_SOURCES];
}

gpu_source nori__gpu_program_count(const gpu_self *self)
{
    return GPU_SOURCES + (gpu_source)self->made.count;
}

nori_status nori__gpu_source(gpu_self *self, gpu_source which, nori__text *t, nori_error *err)
{
    const nori__text *made = which < GPU_SOURCES ? NULL : &nori__gpu_program(self, which)->body;
    static const struct {
        const unsigned char *text;
        size_t size;
    } sources[] = {
#define GPU_TEXT(name) {gpu_kernels_##name, sizeof(gpu_kernels_##name)},
        GPU_PROGRAMS(GPU_TEXT)
#undef GPU_TEXT
    };
    define_numbers(self, t);
    nori__text_add(t, (const char *)gpu_kernels_common, sizeof(gpu_kernels_common));
    nori__text_add(t, (const char *)sources[made ? GPU_IN_elementwise : which].text,
                   sources[made ? GPU_IN_elementwise : which].size);
    if (made) {
        nori__text_add(t, made->data, made->size);
    }
    return t->failed ? nori__no_memory(err) : NORI_OK;
}

void nori__gpu_name_programs(gpu_self *self)
{
    for (int i = 0; i < GPU_SOURCES; i++) {
        snprintf(self->programs[i].name, sizeof(self->programs[i].name), "%s", names[i]);
    }
}

static gpu_source find_made(const gpu_self *self, nori__str body)
{
    for (size_t i = 0; i < self->made.count; i++) {
        const gpu_program *p = self->made.items[i];
        if (p->body.size == body.n && memcmp(p->body.data, body.p, body.n) == 0) {
            return GPU_SOURCES + (gpu_source)i;
        }
    }
    return -1;
}

nori_status nori__gpu_make_program(gpu_self *self, const char *kind, nori__str body, gpu_source *which,
                                   nori_error *err)
{
    nori__hash hash = {0};
    char text[NORI__HASH_TEXT];
    *which = find_made(self, body);
    if (*which >= 0) {
        return NORI_OK;
    }
    gpu_program *p = nori__alloc_zero(&nori__malloc, sizeof(*p));
    if (!p || !nori__vec_push(&self->made, p)) {
        nori__release(&nori__malloc, p, sizeof(*p));
        return nori__no_memory(err);
    }
    nori__hash_add(&hash, body.p, body.n);
    nori__hash_text(&hash, text);
    snprintf(p->name, sizeof(p->name), "%.15s-%.16s", kind, text);
    nori__text_init(&p->body, &nori__malloc);
    nori__text_add(&p->body, body.p, body.n);
    *which = nori__gpu_program_count(self) - 1;
    return p->body.failed ? nori__no_memory(err) : self->driver->program(self, *which, err);
}

void nori__gpu_first_lines(const char *log, char *out, size_t size)
{
    size_t used = 0;
    int lines = 0;
    for (const char *p = log; *p && lines < 6 && used + 3 < size; p++) {
        if (*p == '\n') {
            lines++;
            out[used++] = ' ';
            out[used++] = '|';
        }
        out[used++] = *p == '\n' || *p == '\t' ? ' ' : *p;
    }
    out[used] = 0;
}

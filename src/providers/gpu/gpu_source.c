/* gpu_source.c: the text of a program. Sources are in kernels/, embedded when nori is built
 * (kernels.cmake); the numbers they share with C are defined in front of them. */
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

nori_status nori__gpu_source(const gpu_self *self, gpu_source which, nori__text *t, nori_error *err)
{
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
    nori__text_add(t, (const char *)sources[which].text, sources[which].size);
    return t->failed ? nori__no_memory(err) : NORI_OK;
}

const char *nori__gpu_source_name(gpu_source which)
{
    return names[which];
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

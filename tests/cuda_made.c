/* cuda_made.c: kernels that nori writes while it runs, for the double of NVIDIA's libraries: compiled for
 * the host and loaded. DOUBLE_CXX is the compiler, DOUBLE_INCLUDE where cuda_host.h is. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_double.h"

typedef struct made {
    struct made *next;
    char *source;
    const double_kernel *kernel; /* NULL: does not compile */
} made;

static made *all; /* whoever calls holds the double's lock */

static int write_source(const char *path, const char *name, const char *source)
{
    FILE *f = fopen(path, "w");
    if (!f) {
        return 0;
    }
    fprintf(f,
            "#include \"cuda_host.h\"\n%s\n"
            "static const double_kernel made = KERNEL(%s, 0);\n"
            "static void place(const unsigned at[3][3])\n{\n"
            "    threadIdx = dim3{at[0][0], at[0][1], at[0][2]};\n"
            "    blockIdx = dim3{at[1][0], at[1][1], at[1][2]};\n"
            "    blockDim = dim3{at[2][0], at[2][1], at[2][2]};\n}\n"
            "extern \"C\" void double_made(double_kernel *k)\n{\n    *k = made;\n    k->place = place;\n}\n",
            source, name);
    return fclose(f) == 0;
}

static const double_kernel *load(const char *path)
{
    static double_kernel kernels[256]; /* as many as tests make */
    static size_t used;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "double_made") : NULL;
    void (*fill)(double_kernel *);
    if (!symbol || used == sizeof(kernels) / sizeof(kernels[0])) {
        return NULL;
    }
    memcpy(&fill, &symbol, sizeof(fill));
    fill(&kernels[used]);
    return &kernels[used++];
}

static const double_kernel *compile(const char *name, const char *source)
{
    char folder[] = "/tmp/nori-cuda-XXXXXX", in[64], out[64], command[1024];
    const double_kernel *k = NULL;
    if (!mkdtemp(folder)) {
        return NULL;
    }
    snprintf(in, sizeof(in), "%s/kernel.cpp", folder);
    snprintf(out, sizeof(out), "%s/kernel.so", folder);
    snprintf(command, sizeof(command), "%s -std=c++14 -w -fPIC -shared -I%s -o %s %s", DOUBLE_CXX,
             DOUBLE_INCLUDE, out, in);
    if (write_source(in, name, source) && system(command) == 0) {
        k = load(out);
    }
    unlink(in);
    unlink(out);
    rmdir(folder);
    return k;
}

const double_kernel *double_make(const char *name, const char *source)
{
    for (const made *m = all; m; m = m->next) {
        if (strcmp(m->source, source) == 0) {
            return m->kernel;
        }
    }
    made *m = calloc(1, sizeof(*m));
    char *copy = strdup(source);
    if (!m || !copy) {
        free(m);
        free(copy);
        return NULL;
    }
    *m = (made){.next = all, .source = copy, .kernel = compile(name, source)};
    all = m;
    return m->kernel;
}

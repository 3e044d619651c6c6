/* failing_malloc.c: see the header. The program's malloc goes before the C library's, whose own functions
 * are still there under other names. */
#include "failing_malloc.h"

#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
extern void __libc_free(void *memory);

#define SEEN __attribute__((visibility("default"), noinline))

static atomic_long live, asked, failed, step;
static atomic_bool armed, repeats;
static _Thread_local bool spared;
static struct {
    uintptr_t from, to;
} library;

void failing_spare_thread(void)
{
    spared = true;
}

static int look(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    if (!info->dlpi_name || !strstr(info->dlpi_name, user)) {
        return 0;
    }
    library.from = UINTPTR_MAX;
    library.to = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            uintptr_t to = from + info->dlpi_phdr[i].p_memsz;
            library.from = from < library.from ? from : library.from;
            library.to = to > library.to ? to : library.to;
        }
    }
    return 1;
}

void failing_spare_library(const char *name)
{
    library.from = library.to = 0;
    if (name) {
        dl_iterate_phdr(look, (void *)(uintptr_t)name);
    }
}

void failing_arm(long nth, bool again)
{
    atomic_store(&asked, 0);
    atomic_store(&failed, 0);
    atomic_store(&step, nth);
    atomic_store(&repeats, again);
    atomic_store(&armed, true);
}

long failing_disarm(void)
{
    atomic_store(&armed, false);
    return atomic_load(&failed);
}

long failing_live(void)
{
    return atomic_load(&live);
}

static bool fails(const void *caller)
{
    uintptr_t from = (uintptr_t)caller;
    if (!atomic_load_explicit(&armed, memory_order_relaxed) || spared ||
        (from >= library.from && from < library.to)) {
        return false;
    }
    long n = atomic_fetch_add(&asked, 1) + 1, nth = atomic_load(&step);
    bool now = atomic_load(&repeats) ? n % nth == 0 : n == nth;
    if (now) {
        atomic_fetch_add(&failed, 1);
        errno = ENOMEM;
    }
    return now;
}

static void *counted(void *memory)
{
    if (memory) {
        atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    }
    return memory;
}

SEEN void *malloc(size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : counted(__libc_malloc(size));
}

SEEN void *calloc(size_t count, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : counted(__libc_calloc(count, size));
}

SEEN void *realloc(void *memory, size_t size)
{
    if ((size > 0 || !memory) && fails(__builtin_return_address(0))) {
        return NULL;
    }
    void *moved = __libc_realloc(memory, size);
    if (memory && size == 0) {
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    }
    return memory ? moved : counted(moved);
}

SEEN void *memalign(size_t align, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : counted(__libc_memalign(align, size));
}

SEEN void *aligned_alloc(size_t align, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : counted(__libc_memalign(align, size));
}

SEEN int posix_memalign(void **memory, size_t align, size_t size)
{
    void *made = fails(__builtin_return_address(0)) ? NULL : counted(__libc_memalign(align, size));
    if (made) {
        *memory = made;
    }
    return made ? 0 : ENOMEM;
}

SEEN void free(void *memory)
{
    if (memory) {
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
        __libc_free(memory);
    }
}

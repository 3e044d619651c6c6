/* clock.c: time and memory figures of the process. */
#include "platform/platform.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

static uint64_t read_clock(clockid_t id)
{
    struct timespec t = {0};
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t nori__now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t nori__cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t nori__peak_bytes(void)
{
#ifdef __linux__
    /* Not ru_maxrss: that one counts what the parent had when it forked us. */
    FILE *f = fopen("/proc/self/status", "re");
    if (f) {
        char line[256];
        unsigned long long kib = 0;
        while (fgets(line, sizeof(line), f) && sscanf(line, "VmHWM: %llu", &kib) != 1) {
        }
        fclose(f);
        if (kib > 0) {
            return (uint64_t)kib * 1024u;
        }
    }
#endif
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) {
        return 0;
    }
#ifdef __APPLE__
    return (uint64_t)usage.ru_maxrss;
#else
    return (uint64_t)usage.ru_maxrss * 1024u; /* Linux counts KiB */
#endif
}

/* cpu.c: what the CPU can do, and how many of them we may use. */
#include "platform/platform.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __linux__
#include <sched.h>
#endif
#if defined(__x86_64__) || defined(__i386__)
#define X86 1
#include <cpuid.h>
#endif

static struct {
    pthread_once_t once;
    nori__cpu_level level;
    char name[64];
    char features[256];
} cpu = {.once = PTHREAD_ONCE_INIT};

static void add_feature(const char *name)
{
    size_t used = strlen(cpu.features);
    snprintf(cpu.features + used, sizeof(cpu.features) - used, "%s%s", used ? " " : "", name);
}

#ifdef X86
typedef struct regs {
    unsigned a, b, c, d;
} regs;

static regs cpuid(unsigned leaf, unsigned sub)
{
    regs r = {0, 0, 0, 0};
    __cpuid_count(leaf, sub, r.a, r.b, r.c, r.d);
    return r;
}

/* Register state the system saves: without it, wide registers must not be used. */
static unsigned long long saved_state(void)
{
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (unsigned long long)high << 32 | low;
}

static nori__cpu_level detect(void)
{
    regs top = cpuid(0, 0), ext = cpuid(0x80000000u, 0);
    if (ext.a >= 0x80000004u) {
        for (unsigned i = 0; i < 3; i++) {
            regs r = cpuid(0x80000002u + i, 0);
            memcpy(cpu.name + 16 * i, &r, 16);
        }
    }
    regs one = cpuid(1, 0), seven = top.a >= 7 ? cpuid(7, 0) : (regs){0, 0, 0, 0};
    bool os = one.c >> 27 & 1;
    unsigned long long state = os ? saved_state() : 0;
    bool ymm = (state & 6) == 6, zmm = (state & 0xe6) == 0xe6;
    bool avx2 = ymm && (one.c >> 28 & 1) && (one.c >> 12 & 1) && (one.c >> 29 & 1) &&
                (seven.b >> 5 & 1);
    bool avx512 = avx2 && zmm && (seven.b >> 16 & 1) && (seven.b >> 17 & 1) &&
                  (seven.b >> 30 & 1) && (seven.b >> 31 & 1);
    bool vnni = avx512 && (seven.c >> 11 & 1);
    add_feature("sse2");
    if (one.c >> 19 & 1) {
        add_feature("sse4.1");
    }
    if (avx2) {
        add_feature("avx2 fma f16c");
    }
    if (avx512) {
        add_feature("avx512f/bw/dq/vl");
    }
    if (vnni) {
        add_feature("avx512vnni");
    }
    if (avx512 && (seven.d >> 24 & 1)) {
        add_feature("amx-tile");
    }
    return vnni ? NORI__CPU_AVX512 : avx2 ? NORI__CPU_AVX2 : NORI__CPU_BASE;
}
#else
static nori__cpu_level detect(void)
{
#ifdef __aarch64__
    add_feature("neon");
    snprintf(cpu.name, sizeof(cpu.name), "64-bit Arm");
#else
    snprintf(cpu.name, sizeof(cpu.name), "unknown");
#endif
    return NORI__CPU_BASE;
}
#endif

static void detect_once(void)
{
    cpu.level = detect();
    const char *mask = getenv("NORI_CPU");
    for (int l = 0; mask && l < NORI__CPU_LEVELS; l++) {
        if (nori__same(mask, nori__cpu_level_name((nori__cpu_level)l)) &&
            l < (int)cpu.level) {
            cpu.level = (nori__cpu_level)l;
        }
    }
}

nori__cpu_level nori__cpu_level_get(void)
{
    pthread_once(&cpu.once, detect_once);
    return cpu.level;
}

const char *nori__cpu_level_name(nori__cpu_level level)
{
    static const char *const names[NORI__CPU_LEVELS] = {"base", "avx2", "avx512"};
    return (unsigned)level < NORI__CPU_LEVELS ? names[level] : "?";
}

const char *nori__cpu_name(void)
{
    pthread_once(&cpu.once, detect_once);
    return cpu.name;
}

const char *nori__cpu_features(void)
{
    pthread_once(&cpu.once, detect_once);
    return cpu.features;
}

/* ---- how many ---- */

static bool read_line(const char *root, const char *path, char *line, size_t size)
{
    char full[1024];
    if (snprintf(full, sizeof(full), "%s%s", root ? root : "", path) >= (int)sizeof(full)) {
        return false;
    }
    FILE *f = fopen(full, "re");
    if (!f) {
        return false;
    }
    bool ok = fgets(line, (int)size, f) != NULL;
    fclose(f);
    return ok;
}

/* CPUs that quota / period amounts to, rounded up; 0: no quota. */
static int quota_cpus(long long quota, long long period)
{
    if (quota <= 0 || period <= 0) {
        return 0;
    }
    long long n = quota / period + (quota % period != 0);
    return n > 0 && n < 4096 ? (int)n : 0;
}

/* The smallest quota of a control group and its parents. */
static int group_quota(const char *root, const char *group, bool v2)
{
    char path[512], line[128];
    int least = 0;
    if (snprintf(path, sizeof(path), "%s", group) >= (int)sizeof(path) - 64) {
        return 0;
    }
    for (;;) {
        char file[640];
        long long quota = 0, period = 100000;
        int n = 0;
        if (v2) {
            snprintf(file, sizeof(file), "/sys/fs/cgroup%s/cpu.max", path);
            if (read_line(root, file, line, sizeof(line)) &&
                sscanf(line, "%lld %lld", &quota, &period) == 2) {
                n = quota_cpus(quota, period);
            }
        } else {
            snprintf(file, sizeof(file), "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", path);
            bool ok = read_line(root, file, line, sizeof(line)) &&
                      sscanf(line, "%lld", &quota) == 1;
            snprintf(file, sizeof(file), "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", path);
            if (ok && read_line(root, file, line, sizeof(line)) &&
                sscanf(line, "%lld", &period) == 1) {
                n = quota_cpus(quota, period);
            }
        }
        if (n > 0 && (least == 0 || n < least)) {
            least = n;
        }
        char *slash = strrchr(path, '/');
        if (!slash) {
            return least;
        }
        *slash = 0;
    }
}

static int cgroup_cpus(const char *root)
{
    char full[1024], line[512];
    int least = 0;
    snprintf(full, sizeof(full), "%s/proc/self/cgroup", root ? root : "");
    FILE *f = fopen(full, "re");
    if (!f) {
        return group_quota(root, "", true);
    }
    while (fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = 0;
        char *first = strchr(line, ':'), *second = first ? strchr(first + 1, ':') : NULL;
        if (!second) {
            continue;
        }
        *second = 0;
        bool v2 = first[1] == 0;
        bool v1 = strstr(first + 1, "cpu") != NULL && strstr(first + 1, "cpuset") != first + 1;
        int n = v2 || v1 ? group_quota(root, nori__same(second + 1, "/") ? "" : second + 1, v2) : 0;
        if (n > 0 && (least == 0 || n < least)) {
            least = n;
        }
    }
    fclose(f);
    return least;
}

int nori__usable_cpus(const char *root, char *reason, size_t reason_size)
{
    int n = 0;
    const char *why = "processors online";
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        n = CPU_COUNT(&set);
        why = "the affinity mask allows that many";
    }
#endif
    if (n < 1) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        n = online > 0 && online < 4096 ? (int)online : 1;
    }
    int quota = cgroup_cpus(root);
    if (quota > 0 && quota < n) {
        n = quota;
        why = "the control group's CPU quota allows that many";
    }
    if (reason && reason_size > 0) {
        snprintf(reason, reason_size, "%d: %s", n, why);
    }
    return n;
}

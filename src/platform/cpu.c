/* cpu.c: what the CPU can do, and how many of them we may use. */
#include "base/built.h"
#include "platform/platform.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
#endif
#if defined(__linux__) && defined(__aarch64__)
#include <sys/auxv.h>
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

#if defined(X86) || defined(__aarch64__)
static void add_feature(const char *name)
{
    size_t used = strlen(cpu.features);
    snprintf(cpu.features + used, sizeof(cpu.features) - used, "%s%s", used ? " " : "", name);
}
#endif

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
        size_t pad = strspn(cpu.name, " "), size = strlen(cpu.name + pad);
        memmove(cpu.name, cpu.name + pad, size + 1);
        while (size > 0 && cpu.name[size - 1] == ' ') {
            cpu.name[--size] = 0;
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
    if (avx2 && (seven.a > 0) && (cpuid(7, 1).a >> 4 & 1)) {
        add_feature("avxvnni");
    }
    if (avx512 && (seven.a > 0) && (cpuid(7, 1).a >> 5 & 1)) {
        add_feature("avx512bf16");
    }
    bool vbmi = vnni && (seven.c >> 1 & 1); /* wherever there are tiles, unless it was masked */
    bool tiles = vbmi && (state >> 17 & 3) == 3 && (seven.d >> 24 & 1) && (seven.d >> 25 & 1);
    if (tiles) {
        add_feature("amx-int8");
    }
    return tiles ? NORI__CPU_AMX : vnni ? NORI__CPU_AVX512 : avx2 ? NORI__CPU_AVX2 : NORI__CPU_BASE;
}
#else
static nori__cpu_level detect(void)
{
#ifdef __aarch64__
    add_feature("neon");
#ifdef __linux__
    /* Bits of the kernel's interface, by number: not every C library has their names. */
    unsigned long one = getauxval(AT_HWCAP), two = getauxval(AT_HWCAP2);
    if (one >> 10 & 1) {
        add_feature("fp16");
    }
    if (one >> 20 & 1) {
        add_feature("dotprod");
    }
    if (two >> 13 & 1) {
        add_feature("i8mm");
    }
#endif
    snprintf(cpu.name, sizeof(cpu.name), "64-bit Arm");
#else
    snprintf(cpu.name, sizeof(cpu.name), "unknown");
#endif
    return NORI__CPU_BASE;
}
#endif

/* The state of tiles is large, so Linux saves it only for processes that asked for it. */
static bool tiles_granted(void)
{
#if defined(__linux__) && defined(__x86_64__) && defined(SYS_arch_prctl)
    enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM: older headers lack the name */
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
#else
    return false;
#endif
}

/* The highest level this build has kernels for; it has those below, too. */
static nori__cpu_level built_level(void)
{
    return NORI__BUILT(level_amx)      ? NORI__CPU_AMX
           : NORI__BUILT(level_avx512) ? NORI__CPU_AVX512
           : NORI__BUILT(level_avx2)   ? NORI__CPU_AVX2
                                       : NORI__CPU_BASE;
}

static void detect_once(void)
{
    cpu.level = detect();
    if (cpu.level > built_level()) {
        cpu.level = built_level();
    }
    const char *mask = getenv("NORI_CPU");
    for (int l = 0; mask && l < NORI__CPU_LEVELS; l++) {
        if (nori__same(mask, nori__cpu_level_name((nori__cpu_level)l)) &&
            l < (int)cpu.level) {
            cpu.level = (nori__cpu_level)l;
        }
    }
    if (cpu.level == NORI__CPU_AMX && !tiles_granted()) {
        cpu.level = NORI__CPU_AVX512;
    }
}

nori__cpu_level nori__cpu_level_get(void)
{
    pthread_once(&cpu.once, detect_once);
    return cpu.level;
}

const char *nori__cpu_level_name(nori__cpu_level level)
{
    static const char *const names[NORI__CPU_LEVELS] = {"base", "avx2", "avx512",
                                                         "amx"};
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

#define PATH_SIZE 4096
#define NO_QUOTA 0.0

static FILE *open_under(const char *root, const char *path)
{
    char full[PATH_SIZE + 256];
    int n = snprintf(full, sizeof(full), "%s%s", root ? root : "", path);
    return n >= 0 && n < (int)sizeof(full) ? fopen(full, "re") : NULL;
}

/* Reads one or two numbers from the start of a file; returns how many. */
static int read_numbers(const char *root, const char *path, long long *a, long long *b)
{
    FILE *f = open_under(root, path);
    int n = f ? fscanf(f, "%lld %lld", a, b) : 0;
    if (f) {
        fclose(f);
    }
    return n < 0 ? 0 : n;
}

/* The quota of one control group in CPUs. */
static double read_quota(const char *root, const char *mount, const char *group)
{
    char file[PATH_SIZE + 128];
    long long quota = 0, period = 0, unused;
    int n = snprintf(file, sizeof(file), "%s%s/cpu.max", mount, group);
    if (n >= (int)sizeof(file)) {
        return NO_QUOTA;
    }
    n = read_numbers(root, file, &quota, &period); /* "max 100000" has no number first */
    if (n == 1) {
        period = 100000;
    } else if (n == 0) {
        snprintf(file, sizeof(file), "%s%s/cpu.cfs_quota_us", mount, group);
        int ok = read_numbers(root, file, &quota, &unused);
        snprintf(file, sizeof(file), "%s%s/cpu.cfs_period_us", mount, group);
        if (ok < 1 || read_numbers(root, file, &period, &unused) < 1) {
            return NO_QUOTA;
        }
    }
    return quota > 0 && period > 0 ? (double)quota / (double)period : NO_QUOTA;
}

static void keep_less(double *least, double quota)
{
    if (quota > 0 && (*least <= 0 || quota < *least)) {
        *least = quota;
    }
}

/* The smallest quota of a control group and those it is in. In a container the path may be the
 * host's and lead nowhere: then the walk ends at the mount, which is the container's own. */
static void walk_up(const char *root, const char *mount, const char *group, double *least)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s", group);
    for (;;) {
        char *slash = strrchr(path, '/');
        if (slash && slash[1] == 0) { /* "/", or a slash at the end */
            *slash = 0;
            continue;
        }
        keep_less(least, read_quota(root, mount, path));
        if (!slash) {
            return;
        }
        *slash = 0;
    }
}

/* Whether a comma-separated list of v1 controllers holds cpu. */
static bool has_cpu(const char *list)
{
    while (*list) {
        size_t n = strcspn(list, ",");
        if (n == 3 && memcmp(list, "cpu", 3) == 0) {
            return true;
        }
        list += n + (list[n] == ',');
    }
    return false;
}

/* Lines of /proc/self/cgroup: "0::/group" (v2), "4:cpu,cpuacct:/group" (v1). */
static double cgroup_quota(const char *root)
{
    char line[PATH_SIZE];
    double least = NO_QUOTA;
    FILE *f = open_under(root, "/proc/self/cgroup");
    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = 0;
        char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
        if (!group) {
            continue;
        }
        *list++ = 0;
        *group++ = 0;
        if (*list == 0) {
            walk_up(root, "/sys/fs/cgroup", group, &least);
        } else if (has_cpu(list)) {
            char mount[256];
            walk_up(root, "/sys/fs/cgroup/cpu", group, &least);
            int n = snprintf(mount, sizeof(mount), "/sys/fs/cgroup/%s", list);
            if (n < (int)sizeof(mount) && !nori__same(list, "cpu")) {
                walk_up(root, mount, group, &least);
            }
        }
    }
    if (f) {
        fclose(f);
    }
    return least;
}

/* CPUs in the mask of the calling thread; 0: not known. Under another root, and on machines with
 * more CPUs than cpu_set_t holds, as /proc says it of the process. */
static int affinity_cpus(const char *root)
{
#ifdef __linux__
    cpu_set_t set;
    if (!root && sched_getaffinity(0, sizeof(set), &set) == 0) {
        return CPU_COUNT(&set);
    }
#endif
    int n = 0;
    char line[PATH_SIZE];
    FILE *f = open_under(root, "/proc/self/status");
    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, "Cpus_allowed:", 13) == 0) {
            for (const char *p = line + 13; *p; p++) { /* hexadecimal digits, commas */
                const char *digits = "0123456789abcdef", *d = strchr(digits, *p);
                for (int bits = d ? (int)(d - digits) : 0; bits; bits &= bits - 1) {
                    n++;
                }
            }
            break;
        }
    }
    if (f) {
        fclose(f);
    }
    return n;
}

int nori__usable_cpus(const char *root, char *reason, size_t reason_size)
{
    int n = affinity_cpus(root);
    const char *what = n > 0 ? "affinity mask of" : "online are";
    if (n < 1) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        n = online > 0 && online < 1 << 20 ? (int)online : 1;
    }
    double quota = cgroup_quota(root);
    bool capped = quota > 0 && quota < n;
    if (capped) {
        n = (int)quota + ((double)(int)quota < quota); /* rounded up: at least 1, at most n */
    }
    if (reason && reason_size > 0) {
        if (capped) {
            snprintf(reason, reason_size, "%d: cgroup quota of %.2f CPUs", n, quota);
        } else {
            snprintf(reason, reason_size, "%d: %s %d CPU%s", n, what, n, n == 1 ? "" : "s");
        }
    }
    return n;
}

/* env_limits.c: what limits are when nobody said anything, and how much memory there is. */
#include "platform/env_limits.h"
#include "base/given.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define GB ((uint64_t)1 << 30)

/* The number a file of a cgroup holds; 0: none, or "max". */
static uint64_t number_in(const char *root, const char *path)
{
    char name[512], line[64] = "";
    snprintf(name, sizeof(name), "%s%s", root ? root : "", path);
    FILE *f = fopen(name, "r");
    if (!f) {
        return 0;
    }
    char *got = fgets(line, sizeof(line), f);
    fclose(f);
    return got ? strtoull(line, NULL, 10) : 0;
}

uint64_t nori__machine_bytes(const char *root)
{
    static const char *const files[] = {"/sys/fs/cgroup/memory.max",
                                        "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    for (size_t i = 0; i < NORI__COUNT(files); i++) {
        uint64_t group = number_in(root, files[i]);
        if (group > 0 && (bytes == 0 || group < bytes)) {
            bytes = group;
        }
    }
    return bytes;
}

void nori_limits_default(nori_limits *limits)
{
    NORI__ASKED(limits, );
    *limits = (nori_limits){
        .size = sizeof(*limits),
        .model_bytes = 64 * GB,
        .nodes = 1000000, /* the largest published models have some 100,000 */
        .nesting = 64,
        .rank = NORI_MAX_RANK,
        .string_bytes = GB,
        .unfolded_bytes = GB,
        .activation_bytes = nori__machine_bytes(NULL),
        .iterations = 100000000, /* the emptiest body takes half a minute for these */
    };
}

void nori_env_limits(const nori_env *env, nori_limits *limits)
{
    NORI__ASKED(limits, );
    size_t size = limits->size < sizeof(*limits) ? limits->size : sizeof(*limits);
    memcpy(limits, nori__env_limits(env), size);
    limits->size = size;
}

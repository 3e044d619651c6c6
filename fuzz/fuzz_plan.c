/* fuzz_plan.c: plan files. A hash stands before most of what they say: it is put right first, as an enemy
 * would, so that what lies behind it is met. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "run/plan_file.h"

enum { ALIGN = 4096 };

/* Size and hash that belong to these bytes, where the head names parts that there are. */
static void put_right(uint8_t *data, size_t size)
{
    nori__plan_head head;
    nori__str part[NORI__PLAN_PART_COUNT];
    char hash[NORI__HASH_TEXT];
    if (size < sizeof(head)) {
        return;
    }
    memcpy(&head, data, sizeof(head));
    memcpy(head.magic, NORI__PLAN_MAGIC, sizeof(head.magic));
    head.version = NORI__PLAN_VERSION;
    head.bytes = size;
    if (head.part[NORI__PLAN_BLOCKS].at <= size) { /* what was cut off or put in is the blocks' */
        head.part[NORI__PLAN_BLOCKS].size = size - head.part[NORI__PLAN_BLOCKS].at;
    }
    for (int i = 0; i < NORI__PLAN_PART_COUNT; i++) {
        if (head.part[i].at > size || head.part[i].size > size - head.part[i].at) {
            return;
        }
        part[i] = (nori__str){(const char *)data + head.part[i].at, (size_t)head.part[i].size};
    }
    nori__plan_hash(&head, part, hash);
    memcpy(head.hash, hash, sizeof(head.hash));
    memcpy(data, &head, sizeof(head));
}

/* Aligned, so that blocks are used where they lie; in memory of its own, so that what is read beyond
 * it is seen. Loaded, compiled and run as any model. */
void fuzz_plan(const uint8_t *data, size_t size)
{
    uint8_t *copy = aligned_alloc(ALIGN, (size / ALIGN + 1) * ALIGN);
    if (!copy) {
        return;
    }
    if (size > 0) {
        memcpy(copy, data, size);
    }
    put_right(copy, size);
    fuzz_load(copy, size);
    free(copy);
}

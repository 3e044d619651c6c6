/* plan_file.c: the form of plan files: opening one, and what its blocks were made for. */
#include "run/plan_file.h"

#include <stdio.h>

#include "kernels/kernels.h"
#include "nori_build.h"

static const char *const names[NORI__PLAN_PART_COUNT] = {"text",  "messages", "ways",
                                                         "table", "data",     "blocks"};

static nori_status damaged(nori_error *err, uint64_t at, const char *fmt, ...) NORI__PRINTF(3, 4);
static nori_status damaged(nori_error *err, uint64_t at, const char *fmt, ...)
{
    char text[256];
    va_list list;
    va_start(list, fmt);
    vsnprintf(text, sizeof(text), fmt, list);
    va_end(list);
    nori_status s = nori__fail(err, NORI_ERROR_FORMAT, "the plan is damaged: %s", text);
    nori__offset(err, at);
    nori__hint(err, "make it again from the model: nori compile");
    return s;
}

void nori__plan_hash(const nori__plan_head *head, const nori__str *part, char out[NORI__HASH_TEXT])
{
    nori__hash h = {0};
    nori__hash_add(&h, head, offsetof(nori__plan_head, hash));
    for (int i = NORI__PLAN_TEXT; i <= NORI__PLAN_TABLE; i++) {
        nori__hash_add(&h, part[i].p, part[i].n);
    }
    nori__hash_text(&h, out);
}

/* Parts follow one another, within the file and where they may begin. */
static nori_status find_parts(const nori__plan_head *head, const char *data, size_t size,
                              nori__plan_file *plan, nori_error *err)
{
    uint64_t end = sizeof(*head);
    if (head->bytes != size) {
        return damaged(err, offsetof(nori__plan_head, bytes),
                       "it was written with %llu bytes and has %zu", (unsigned long long)head->bytes,
                       size);
    }
    for (int i = 0; i < NORI__PLAN_PART_COUNT; i++) {
        uint64_t at = head->part[i].at, bytes = head->part[i].size;
        uint64_t step = i >= NORI__PLAN_DATA ? NORI__PLAN_PAGE : i == NORI__PLAN_TABLE ? 8 : 1;
        uint64_t where = offsetof(nori__plan_head, part) + (uint64_t)i * sizeof(head->part[0]);
        if (at < end || at > size || bytes > size - at || at % step != 0) {
            return damaged(err, where, "its %s of %llu bytes cannot begin at byte %llu", names[i],
                           (unsigned long long)bytes, (unsigned long long)at);
        }
        plan->part[i] = (nori__str){data + at, (size_t)bytes};
        end = at + bytes;
    }
    return end == size ? NORI_OK
                       : damaged(err, end, "%llu bytes belong to nothing",
                                 (unsigned long long)(size - end));
}

static nori_status find_ways(nori__arena *arena, nori__plan_file *plan, nori_error *err)
{
    nori__str ways = plan->part[NORI__PLAN_WAYS];
    uint32_t head[2] = {0, 0};
    size_t rest = ways.n < sizeof(head) ? 0 : ways.n - sizeof(head);
    plan->n_ways = rest / sizeof(*plan->ways);
    nori__way_entry *copy = nori__arena_array(arena, plan->n_ways + 1, sizeof(*copy));
    if (!copy) {
        return nori__no_memory(err);
    }
    if (ways.n >= sizeof(head)) {
        memcpy(head, ways.p, sizeof(head));
        memcpy(copy, ways.p + sizeof(head), plan->n_ways * sizeof(*copy));
    }
    plan->ways = copy;
    plan->tuned_threads = head[0];
    bool whole = ways.n == 0 || (ways.n >= sizeof(head) && rest % sizeof(*copy) == 0 && head[0] > 0 &&
                                 head[0] <= INT32_MAX && head[1] == 0);
    return whole && nori__ways_check(copy, plan->n_ways)
               ? NORI_OK
               : damaged(err, (uint64_t)(ways.p - plan->part[NORI__PLAN_TEXT].p) + sizeof(nori__plan_head),
                         "its list of ways is none");
}

/* The table, aligned for its entries wherever the file lies in memory. */
static nori_status find_table(nori__arena *arena, nori__plan_file *plan, nori_error *err)
{
    nori__str table = plan->part[NORI__PLAN_TABLE];
    plan->count = table.n / sizeof(*plan->entries);
    plan->entries = (const void *)table.p;
    if ((uintptr_t)table.p % _Alignof(nori__pack_entry) != 0) {
        nori__pack_entry *copy = nori__arena_array(arena, plan->count + 1, sizeof(*copy));
        if (!copy) {
            return nori__no_memory(err);
        }
        memcpy(copy, table.p, table.n);
        plan->entries = copy;
    }
    return table.n % sizeof(*plan->entries) == 0 &&
                   nori__packs_check(plan->entries, plan->count, plan->part[NORI__PLAN_BLOCKS].n)
               ? NORI_OK
               : damaged(err, (uint64_t)(table.p - plan->part[NORI__PLAN_TEXT].p) + sizeof(nori__plan_head),
                         "its table does not fit its blocks");
}

nori_status nori__plan_open(nori__arena *arena, const void *data, size_t size,
                            nori__plan_file **out, nori_error *err)
{
    nori__plan_head head;
    char hash[NORI__HASH_TEXT];
    nori__plan_file *plan = nori__arena_alloc(arena, sizeof(*plan));
    *out = plan;
    if (!plan) {
        return nori__no_memory(err);
    }
    if (size < sizeof(head)) {
        return damaged(err, size, "%zu bytes of its head of %zu are there", size, sizeof(head));
    }
    memcpy(&head, data, sizeof(head));
    if (head.version != NORI__PLAN_VERSION || head.unused != 0) {
        nori_status s = nori__fail(err, NORI_ERROR_FORMAT,
                                   "the plan has form %u, this build reads form %u", head.version,
                                   NORI__PLAN_VERSION);
        nori__hint(err, "make it again from the model: nori compile");
        return s;
    }
    NORI__TRY(find_parts(&head, data, size, plan, err));
    nori__plan_hash(&head, plan->part, hash);
    if (memcmp(hash, head.hash, sizeof(head.hash)) != 0) {
        return damaged(err, offsetof(nori__plan_head, hash),
                       "the hash of its head, messages and table is another");
    }
    NORI__TRY(find_ways(arena, plan, err));
    return find_table(arena, plan, err);
}

/* ---- what it was made for ---- */

char *nori__plan_made_for(nori__arena *arena, const nori_session_options *o)
{
    nori__text t;
    nori__text_init(&t, arena->allocator);
    nori__text_printf(&t, "nori %s %s\ncpu %s%s\nproviders %s\nlevel %d\n", nori_version(),
                      NORI_BUILD, nori__cpu_level_name(nori__cpu_level_get()),
                      nori__kernels_get()->u8_pairs ? " without dot products" : "",
                      o->providers ? o->providers : "cpu", o->level);
    if (o->passes) {
        nori__text_printf(&t, "passes %s\n", o->passes);
    }
    for (size_t i = 0; i < o->dim_count; i++) {
        nori__text_printf(&t, "dim %s=%lld\n", o->dim_names[i], (long long)o->dim_values[i]);
    }
    char *copy = t.failed ? NULL : nori__arena_copy(arena, t.data, t.size);
    nori__text_free(&t);
    return copy;
}

/* A line of text as far as it can be shown. */
static nori__str line_at(nori__str *text)
{
    nori__str line = *text;
    const char *end = line.n > 0 ? memchr(line.p, '\n', line.n) : NULL;
    line.n = end ? (size_t)(end - line.p) : line.n;
    text->p += line.n + (end ? 1 : 0);
    text->n -= line.n + (end ? 1 : 0);
    for (size_t i = 0; i < line.n; i++) {
        line.n = line.p[i] < ' ' || line.p[i] > '~' || i == 80 ? i : line.n;
    }
    return line;
}

void nori__plan_difference(nori__str was, const char *now, char *out, size_t room)
{
    nori__str rest = nori__str_of(now), a, b;
    do {
        a = line_at(&was);
        b = line_at(&rest);
    } while (was.n + rest.n > 0 && a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0));
    snprintf(out, room, "it was made for \"%.*s\", now it is \"%.*s\"", (int)a.n, a.n ? a.p : "",
             (int)b.n, b.n ? b.p : "");
}

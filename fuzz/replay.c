/* replay.c: nori-fuzz, any target on files.
 *
 *     nori-fuzz TARGET [FILE|FOLDER ...]        each file once; standard input where none is given
 *     nori-fuzz --mutate N SEED TARGET FILE...  each file, then N changed ones drawn from SEED
 *     nori-fuzz --list
 *
 * AFL++: afl-fuzz -i seeds -o found -x fuzz.dict -- nori-fuzz TARGET @@, with nori built by
 * afl-clang-fast; the loop that feeds one process many inputs is used there. */
#include "fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST ((size_t)1 << 20)

static const struct {
    const char *name, *what;
    fuzz_target run;
} targets[] = {
#define ROW(name, what) {#name, what, fuzz_##name},
    FUZZ_TARGETS(ROW)
#undef ROW
};
enum { COUNT = sizeof(targets) / sizeof(targets[0]) };

typedef struct input {
    uint8_t *data;
    size_t size;
} input;

typedef struct inputs {
    input *items;
    size_t count;
} inputs;

static void take(inputs *all, FILE *f)
{
    uint8_t *data = malloc(LARGEST);
    input *more = realloc(all->items, (all->count + 1) * sizeof(*more));
    if (!data || !more) {
        fprintf(stderr, "nori-fuzz: out of memory\n");
        exit(2);
    }
    all->items = more;
    size_t size = fread(data, 1, LARGEST, f);
    /* Of exactly its size, so that reading past the end is seen. */
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact) {
        exit(2);
    }
    memcpy(exact, data, size);
    free(data);
    all->items[all->count++] = (input){exact, size};
}

static void take_path(inputs *all, const char *path)
{
    struct stat info;
    char inner[4096];
    DIR *folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode) ? opendir(path) : NULL;
    FILE *f = folder ? NULL : fopen(path, "rb");
    if (f) {
        take(all, f);
        fclose(f);
    } else if (!folder) {
        fprintf(stderr, "nori-fuzz: cannot open %s\n", path);
        exit(2);
    }
    for (struct dirent *e; folder && (e = readdir(folder)) != NULL;) {
        if (e->d_name[0] != '.') {
            snprintf(inner, sizeof(inner), "%s/%s", path, e->d_name);
            take_path(all, inner);
        }
    }
    if (folder) {
        closedir(folder);
    }
}

/* ---- changes ---- */

static uint64_t state;
static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return below ? (uint32_t)(state >> 33) % below : 0;
}

/* One to four changes of the kinds fuzzers make: bits, edges of numbers, pieces moved, cut, doubled. */
static size_t change(uint8_t *p, size_t n, size_t room, const inputs *all)
{
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe, 0x10, 0x20};
    for (uint32_t k = draw(4) + 1; k > 0 && n > 0; k--) {
        size_t at = draw((uint32_t)n), len = 1 + draw((uint32_t)(n - at > 64 ? 64 : n - at));
        const input *other = &all->items[draw((uint32_t)all->count)];
        switch (draw(7)) {
        case 0:
            p[at] ^= (uint8_t)(1u << draw(8));
            break;
        case 1:
            p[at] = edges[draw(sizeof(edges))];
            break;
        case 2:
            p[at] = (uint8_t)(p[at] + draw(9) - 4);
            break;
        case 3: /* cut */
            memmove(p + at, p + at + len, n - at - len);
            n -= len;
            break;
        case 4: /* doubled */
            if (n + len <= room) {
                memmove(p + at + len, p + at, n - at);
                n += len;
            }
            break;
        case 5: /* from another */
            if (other->size > 0) {
                size_t from = draw((uint32_t)other->size);
                len = len < other->size - from ? len : other->size - from;
                memcpy(p + at, other->data + from, len);
            }
            break;
        default:
            for (size_t i = 0; i < len; i++) {
                p[at + i] = (uint8_t)draw(256);
            }
        }
    }
    return n;
}

static void mutate(fuzz_target run, const inputs *all, long count)
{
    for (long i = 0; i < count && all->count > 0; i++) {
        const input *from = &all->items[draw((uint32_t)all->count)];
        size_t room = from->size + 256;
        uint8_t *work = malloc(room);
        if (!work) {
            exit(2);
        }
        memcpy(work, from->data, from->size);
        size_t n = change(work, from->size, room, all);
        uint8_t *exact = malloc(n ? n : 1);
        if (!exact) {
            exit(2);
        }
        memcpy(exact, work, n);
        free(work);
        const char *keep = getenv("NORI_FUZZ_LAST"); /* what a crash was about */
        FILE *f = keep ? fopen(keep, "wb") : NULL;
        if (f) {
            fwrite(exact, 1, n, f);
            fclose(f);
        }
        run(exact, n);
        free(exact);
    }
}

#ifdef __AFL_LOOP
/* AFL++'s macro is one of the compiler's extensions, which -Wpedantic is told here. */
#define NEXT_INPUT() (__extension__ __AFL_LOOP(1000))
#endif

int main(int argc, char **argv)
{
    inputs all = {0};
    long count = 0;
    int at = 1;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < COUNT; i++) {
            printf("%s\t%s\n", targets[i].name, targets[i].what);
        }
        return 0;
    }
    if (argc > 3 && strcmp(argv[1], "--mutate") == 0) {
        count = strtol(argv[2], NULL, 10);
        state = strtoull(argv[3], NULL, 10);
        at = 4;
    }
    size_t t = 0;
    while (t < COUNT && (at >= argc || strcmp(targets[t].name, argv[at]) != 0)) {
        t++;
    }
    if (t == COUNT) {
        fprintf(stderr, "usage: nori-fuzz [--mutate N SEED] TARGET [FILE|FOLDER ...] | --list\n");
        return 2;
    }
#ifdef __AFL_LOOP
    while (NEXT_INPUT()) {
        all.count = 0;
#endif
        for (int i = at + 1; i < argc; i++) {
            take_path(&all, argv[i]);
        }
        if (at + 1 == argc) {
            take(&all, stdin);
        }
        for (size_t i = 0; i < all.count; i++) {
            targets[t].run(all.items[i].data, all.items[i].size);
        }
        mutate(targets[t].run, &all, count);
        for (size_t i = 0; i < all.count; i++) {
            free(all.items[i].data);
        }
#ifdef __AFL_LOOP
    }
#endif
    printf("%s: %zu files, %ld changed ones\n", targets[t].name, all.count, count);
    if (fuzz_count.made > 0) {
        printf("graphs: %lu valid, %lu runs, %lu outputs compared by value\n", fuzz_count.made,
               fuzz_count.ran, fuzz_count.compared);
    }
    free(all.items);
    return 0;
}

/* samples.c: samples from files, read one at a time so that memory does not grow with them. */
#include "samples.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sample_source.h"

#define PATH_SIZE 4096

struct cli_samples {
    source_reader reader;
    source *sources;
    size_t count, room;
    size_t found, most; /* samples */
    size_t part, parts;
    bool pictures, bytes; /* what options of pictures can do something to */
};

/* ---- finding ---- */

static int no_memory(const cli_samples *s)
{
    return cli_fail_text(s->reader.args, NORI_ERROR_MEMORY, "out of memory");
}

/* Room for another source; it counts once add_samples was called. */
static source *next_source(cli_samples *s, source_kind kind, const char *path)
{
    if (s->count == s->room) {
        size_t room = s->room ? s->room * 2 : 64;
        source *grown = realloc(s->sources, room * sizeof(*grown));
        if (!grown) {
            return NULL;
        }
        s->sources = grown;
        s->room = room;
    }
    size_t size = strlen(path) + 1;
    source *to = &s->sources[s->count];
    *to = (source){.kind = kind, .path = malloc(size), .first = s->found, .count = 1};
    if (!to->path) {
        return NULL;
    }
    memcpy(to->path, path, size);
    s->count++; /* its path is freed from now on */
    return to;
}

static void add_samples(cli_samples *s, source *from)
{
    size_t left = s->most - s->found;
    from->count = from->count < left ? from->count : left;
    s->found += from->count;
}

static bool is_sample(const char *name)
{
    return cli_is_picture(name) || cli_ends_with(name, ".npy") || cli_ends_with(name, ".npz") ||
           cli_ends_with(name, ".pb") || cli_ends_with(name, ".pb.gz") || cli_ends_with(name, ".raw");
}

static int add_single(cli_samples *s, source_kind kind, const char *path)
{
    if (s->found == s->most) {
        return EXIT_YES;
    }
    source *from = next_source(s, kind, path);
    if (!from) {
        return no_memory(s);
    }
    s->pictures |= kind == SOURCE_FILE && cli_is_picture(path);
    add_samples(s, from);
    return EXIT_YES;
}

/* A file of any kind. whole: one of many, as those of a folder are. */
static int add_file(cli_samples *s, const char *path, bool whole)
{
    bool archive = cli_ends_with(path, ".npz"), array = cli_ends_with(path, ".npy");
    if (s->found == s->most || (!archive && !array)) {
        return add_single(s, SOURCE_FILE, path);
    }
    source *from = next_source(s, archive ? SOURCE_ARCHIVE : SOURCE_ARRAY, path);
    if (!from) {
        return no_memory(s);
    }
    from->whole = whole;
    int code = archive ? cli_source_archive(&s->reader, from, &s->bytes)
                       : cli_source_array(&s->reader, from, &s->bytes);
    add_samples(s, from);
    return code;
}

/* In the order of names, so that a folder gives the same samples everywhere. */
static int add_folder(cli_samples *s, const char *path)
{
    struct dirent **names = NULL;
    int n = scandir(path, &names, NULL, alphasort), code = EXIT_YES;
    bool sets = false;
    char full[PATH_SIZE];
    if (n < 0) {
        return cli_fail_text(s->reader.args, NORI_ERROR_IO, "%s cannot be read", path);
    }
    for (int pass = 0; code == EXIT_YES && pass < 2; pass++) { /* folders of a set first */
        for (int i = 0; code == EXIT_YES && i < n && (pass == 0 || !sets); i++) {
            const char *name = names[i]->d_name;
            bool set = strncmp(name, "test_data_set_", 14) == 0;
            snprintf(full, sizeof(full), "%s/%s", path, name);
            if (pass == 0 && set) {
                sets = true;
                code = add_single(s, SOURCE_SET, full);
            } else if (pass == 1 && strncmp(name, "output_", 7) != 0 && is_sample(name)) {
                if (strncmp(name, "input_", 6) == 0) { /* the folder is one set itself */
                    code = add_single(s, SOURCE_SET, path);
                    break;
                }
                code = add_file(s, full, true);
            }
        }
    }
    for (int i = 0; i < n; i++) {
        free(names[i]);
    }
    free(names);
    return code;
}

static int add_path(cli_samples *s, const char *path, bool whole);

/* A path a line, from the list's folder where it is not absolute; "#" begins a remark. */
static int add_list(cli_samples *s, const char *path)
{
    nori_error err = {0};
    FILE *f = cli_open(path, false, &err);
    char line[PATH_SIZE], full[2 * PATH_SIZE];
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0, code = EXIT_YES;
    if (!f) {
        return cli_fail(s->reader.args, &err);
    }
    for (size_t number = 1; code == EXIT_YES && fgets(line, sizeof(line), f); number++) {
        size_t n = strlen(line);
        if (n + 1 == sizeof(line)) {
            code = cli_fail_text(s->reader.args, NORI_ERROR_DATA, "%s: line %zu is too long", path,
                                 number);
            break;
        }
        while (n > 0 && strchr("\r\n\t ", line[n - 1])) {
            line[--n] = 0;
        }
        if (n == 0 || line[0] == '#') {
            continue;
        }
        snprintf(full, sizeof(full), "%.*s%s", line[0] == '/' ? 0 : folder, path, line);
        if (cli_ends_with(full, ".txt")) {
            code = cli_fail_text(s->reader.args, NORI_ERROR_DATA,
                                 "%s: line %zu names another list; samples were expected", path,
                                 number);
        } else {
            code = add_path(s, full, true);
        }
    }
    fclose(f);
    return code;
}

static int add_path(cli_samples *s, const char *path, bool whole)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return cli_fail_text(s->reader.args, NORI_ERROR_IO, "%s cannot be found", path);
    }
    if (S_ISDIR(st.st_mode)) {
        return add_folder(s, path);
    }
    return cli_ends_with(path, ".txt") ? add_list(s, path) : add_file(s, path, whole);
}

/* ---- what was found ---- */

/* An option that can do nothing is a mistake: of the data, or of the option. */
static int check_options(const cli_samples *s)
{
    static const char *const of_pictures[] = {"--mean", "--std", "--bgr", "--range"};
    for (size_t i = 0; i < sizeof(of_pictures) / sizeof(of_pictures[0]); i++) {
        bool range = strcmp(of_pictures[i], "--range") == 0;
        if (cli_has(s->reader.args, of_pictures[i]) && !s->pictures && !(range && s->bytes)) {
            return cli_usage(s->reader.args, "%s is for pictures, and none of the samples is one%s",
                             of_pictures[i],
                             range ? "" : ": bring arrays into their range before they are saved");
        }
    }
    const nori_value_info *in =
        nori_model_input_count(s->reader.model) > 0 ? nori_model_input(s->reader.model, 0) : NULL;
    if (cli_has(s->reader.args, "--bgr") && in && cli_picture_channels(in) == 1) {
        return cli_usage(s->reader.args, "--bgr swaps channels, and input \"%s\" has one channel",
                         in->name);
    }
    return EXIT_YES;
}

/* One file cannot feed several inputs. */
static int check_inputs(const cli_samples *s)
{
    size_t needed = 0;
    const nori_model *m = s->reader.model;
    for (size_t i = 0; i < nori_model_input_count(m); i++) {
        needed += !nori_model_input(m, i)->optional;
    }
    for (size_t i = 0; i < s->count; i++) {
        if (needed > 1 && (s->sources[i].kind == SOURCE_FILE || s->sources[i].kind == SOURCE_ARRAY)) {
            return cli_usage(s->reader.args,
                             "%s is for one input, and the model has %zu: give an .npz with an array "
                             "for each, or folders with input_0.pb, input_1.pb ...",
                             s->sources[i].path, needed);
        }
    }
    return EXIT_YES;
}

static int find(cli_samples *s, long random)
{
    cli_args *args = s->reader.args;
    int code = EXIT_YES;
    for (int i = 0; code == EXIT_YES && cli_nth(args, "--data", i); i++) {
        code = add_path(s, cli_nth(args, "--data", i), false);
    }
    if (code == EXIT_YES && s->found == 0 && random > 0) {
        source *from = next_source(s, SOURCE_RANDOM, "");
        if (!from) {
            return no_memory(s);
        }
        from->count = (size_t)random;
        add_samples(s, from);
    }
    if (code == EXIT_YES && s->found == 0) {
        return cli_usage(args, "no samples: --data PATH names real inputs (a folder of pictures or "
                               "tensor files, an .npy or .npz, a list), --random N makes some up");
    }
    code = code == EXIT_YES ? check_inputs(s) : code;
    return code == EXIT_YES ? check_options(s) : code;
}

int cli_samples_open(cli_args *args, const nori_model *model, cli_samples **samples)
{
    long most, random;
    picture_options pictures;
    *samples = NULL;
    if (!cli_picture_options(args, &pictures) ||
        !cli_number(args, "--samples", 1, 100000000, 1000, &most) ||
        !cli_number(args, "--random", 0, 1000000, 0, &random)) {
        return EXIT_USAGE;
    }
    cli_samples *s = calloc(1, sizeof(*s));
    if (!s) {
        return cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
    }
    *s = (cli_samples){
        .reader = {.args = args, .model = model}, .most = (size_t)most, .parts = 1};
    int code = find(s, random);
    if (code != EXIT_YES) {
        cli_samples_close(s);
        return code;
    }
    *samples = s;
    return EXIT_YES;
}

int cli_samples_code(const cli_samples *s)
{
    return s->reader.code;
}

size_t cli_samples_count(const cli_samples *s)
{
    return s->found > s->part ? (s->found - s->part - 1) / s->parts + 1 : 0;
}

void cli_samples_part(cli_samples *s, size_t part, size_t parts)
{
    s->part = part;
    s->parts = parts;
}

void cli_samples_close(cli_samples *s)
{
    for (size_t i = 0; s && i < s->count; i++) {
        free(s->sources[i].path);
    }
    if (s) {
        cli_source_close(&s->reader);
        free(s->sources);
        free(s);
    }
}

int cli_samples_get(void *user, size_t index, nori_tensor **inputs, nori_error *err)
{
    cli_samples *s = user;
    if (index >= cli_samples_count(s)) {
        return 0;
    }
    index = s->part + index * s->parts;
    size_t low = 0, high = s->count; /* the last source that begins at or before index */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        *(s->sources[middle].first <= index ? &low : &high) = middle;
    }
    return cli_source_read(&s->reader, &s->sources[low], index - s->sources[low].first, inputs, err);
}

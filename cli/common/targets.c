/* targets.c: the files a verb was asked to write, looked at before any work is done: a place that
 * cannot be written to is told at once, not after minutes, and no file that is read is written over. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

static const char *const writes[] = {"--output", "--html", "--header", "--trace", "--policy", NULL};
static const char *const reads[] = {"--input", "--against", "--calibration", "--labels",
                                    "--outputs", "--data", "--edge-profile", "--cloud-profile",
                                    "--picture", "--replay", "--key", "--seal-key", NULL};

static bool among(const char *const *list, const char *name)
{
    while (*list && strcmp(*list, name) != 0) {
        list++;
    }
    return *list != NULL;
}

/* Of "NAME=FILE" the file; a file's own name may have a '=', too, so both readings are compared. */
static const char *file_of(const char *spec)
{
    const char *equals = strrchr(spec, '=');
    return equals && equals[1] ? equals + 1 : spec;
}

static bool same_file(const char *x, const char *y)
{
    struct stat a, b;
    return stat(x, &a) == 0 && stat(y, &b) == 0 && S_ISREG(a.st_mode) && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static bool same_target(const char *x, const char *y)
{
    return same_file(x, y) || same_file(file_of(x), y) || same_file(x, file_of(y)) ||
           same_file(file_of(x), file_of(y));
}

/* Ranges may be merged into one of those they come from, and a model may go to another opset in its
 * place: the new file says what the old one said. */
static bool in_place(const cli_args *args)
{
    return args->verb == &cli_convert || (args->verb == &cli_calibrate && cli_has(args, "--merge"));
}

static int check_overwrites(const cli_args *args, const char *option, const char *path)
{
    for (int i = 0; i < args->count && !in_place(args); i++) {
        if (same_target(path, args->positional[i])) {
            return cli_usage(args, "%s %s would write over %s, which is read; give it another name",
                             option, path, args->positional[i]);
        }
    }
    for (int i = 0; i < args->n_given; i++) {
        const char *name = args->given[i].option->name;
        if (among(reads, name) && same_target(path, args->given[i].value)) {
            return cli_usage(args, "%s %s would write over what %s reads; give it another name", option,
                             path, name);
        }
    }
    return EXIT_YES;
}

/* The folder is looked at only: nothing is made before there is something to write. */
static int check_folder(const cli_args *args, const char *path)
{
    struct stat info;
    char folder[4096];
    const char *slash = strrchr(path, '/');
    if (stat(path, &info) == 0) {
        return S_ISDIR(info.st_mode)
                   ? cli_fail_text(args, NORI_ERROR_IO, "cannot write %s: it is a folder", path)
                   : EXIT_YES;
    }
    if (!slash || slash == path || (size_t)(slash - path) >= sizeof(folder)) {
        return EXIT_YES;
    }
    snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
    int why = stat(folder, &info) != 0 ? errno : S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
    return why ? cli_fail_text(args, NORI_ERROR_IO, "cannot create %s: %s", path, strerror(why))
               : EXIT_YES;
}

int cli_check_targets(const cli_args *args)
{
    for (int i = 0; i < args->n_given; i++) {
        const char *option = args->given[i].option->name, *path = args->given[i].value;
        if (!among(writes, option)) {
            continue;
        }
        int code = check_overwrites(args, option, path);
        if (code == EXIT_YES && !strchr(path, '=')) {
            code = check_folder(args, path);
        }
        for (int k = 0; k < i && code == EXIT_YES; k++) {
            const char *other = args->given[k].value;
            if (among(writes, args->given[k].option->name) &&
                (strcmp(path, other) == 0 || same_target(path, other))) {
                code = cli_usage(args, "%s and %s both name %s", args->given[k].option->name, option,
                                 path);
            }
        }
        if (code != EXIT_YES) {
            return code;
        }
    }
    return EXIT_YES;
}

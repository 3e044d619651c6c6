/* cmd_build.c: a model from its text, as `nori inspect --text` writes it or a person does. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "nori/text.h"
#include "nori/weights.h"

static const cli_option options[] = {
    {"--output", "FILE", "the model; -o for short"},
    {"--weights", "FILE", "content for tensors written as {...}: .onnx, .safetensors, .npz"},
    {"--allow-outside", NULL, "external data may lie outside the text's folder"},
    CLI_OPS_OPTION, CLI_LIMIT_OPTION,
    CLI_QUIET_OPTION,
    CLI_COMMON_OPTIONS,
};

enum { MOST = 1 << 30 }; /* bytes of a text */

static char *read_text(const cli_args *args, const char *path, size_t *size)
{
    nori_error err = {0};
    FILE *f = cli_open(path, true, &err);
    char *text = NULL;
    size_t room = 0;
    *size = 0;
    while (f && !feof(f) && !ferror(f)) {
        if (*size == room) {
            char *more = room < MOST ? realloc(text, room ? 2 * room : 65536) : NULL;
            if (!more) {
                free(text);
                fclose(f);
                cli_fail_text(args, room < MOST ? NORI_ERROR_MEMORY : NORI_ERROR_LIMIT,
                              "%s: %s", path, room < MOST ? "out of memory" : "a text of more than 1 GiB");
                return NULL;
            }
            text = more;
            room = room ? 2 * room : 65536;
        }
        *size += fread(text + *size, 1, room - *size, f);
    }
    if (!f) {
        cli_fail(args, &err);
        return NULL;
    }
    bool failed = ferror(f) != 0;
    fclose(f);
    if (failed) {
        cli_fail_text(args, NORI_ERROR_IO, "%s could not be read", path);
        free(text);
        return NULL;
    }
    return text;
}

static nori_tensor *fill(void *user, const char *name)
{
    nori_tensor *t = NULL;
    return nori_weights_tensor(user, name, &t, NULL) == NORI_OK ? t : NULL;
}

/* The folder a path lies in; the caller frees it. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + (slash == path) : 1;
    char *out = malloc(n + 1);
    if (out) {
        memcpy(out, slash ? path : ".", n);
        out[n] = 0;
    }
    return out;
}

static size_t node_count(const nori_model *model)
{
    return nori_graph_node_count(nori_model_graph(model));
}

static void print(const cli_args *args, const nori_model *model, const char *output)
{
    struct stat made;
    uint64_t size = stat(output, &made) == 0 ? (uint64_t)made.st_size : 0;
    if (args->json) {
        cli_json j;
        cli_json_begin(&j, stdout);
        cli_json_string(&j, "output", output);
        cli_json_uint(&j, "nodes", node_count(model));
        cli_json_uint(&j, "bytes", size);
        cli_json_finish(&j);
    } else if (!args->quiet) {
        char bytes[32];
        cli_bytes_text(size, bytes, sizeof(bytes));
        printf("%s was written: %zu node%s, %s; next: nori check %s\n", output, node_count(model),
               node_count(model) == 1 ? "" : "s", bytes, output);
    }
}

static int run(cli_args *args)
{
    const char *output = cli_value(args, "--output"), *weights = cli_value(args, "--weights");
    nori_text_read_options o;
    nori_weights *w = NULL;
    nori_model *model = NULL;
    nori_error err = {0};
    size_t size = 0;
    if (args->count != 1 || !output) {
        return cli_usage(args, "a text and --output FILE were expected");
    }
    const char *path = args->positional[0];
    int code = cli_load_ops(args, NULL);
    if (code != EXIT_YES) {
        return code;
    }
    char *text = read_text(args, path, &size);
    char *folder = folder_of(path);
    nori_text_read_options_default(&o);
    o.base_dir = folder;
    o.allow_outside = cli_has(args, "--allow-outside");
    code = text ? EXIT_YES : EXIT_BAD;
    if (text && weights && nori_weights_open(NULL, weights, &w, &err) != NORI_OK) {
        code = cli_fail(args, &err);
    }
    if (w) {
        o.fill = fill;
        o.fill_user = w;
    }
    if (code == EXIT_YES && nori_model_from_text(NULL, text, size, &o, &model, &err) != NORI_OK) {
        if (!err.where[0]) {
            snprintf(err.where, sizeof(err.where), "%.500s", path);
        }
        code = cli_fail(args, &err);
    }
    const char *said;
    for (size_t i = 0; model && (said = nori_model_warning(model, i)) != NULL; i++) {
        cli_warn(args, "%s", said);
    }
    if (code == EXIT_YES && nori_model_save(model, output, &err) != NORI_OK) {
        code = cli_fail(args, &err);
    }
    if (code == EXIT_YES) {
        print(args, model, output);
    }
    nori_model_free(model);
    nori_weights_free(w);
    free(folder);
    free(text);
    return code;
}

const cli_verb cli_build = {"build", "change", "TEXT --output FILE",
                            "a model from its text, as `nori inspect --text` writes it", options, run,
                            "  nori inspect model.onnx --text > model.txt\n"
                            "  nori build model.txt -o again.onnx\n"
                            "  nori build large.txt --weights large.onnx -o changed.onnx\n"};

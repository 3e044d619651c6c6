/* graph_case.c: a case as a thing to copy, read and write. */
#include <sys/stat.h>

#include "graphs.h"
#include "nori/text.h"

/* The model of bytes that live in the case's arena. */
static bool take_model(graph_case *c, const char *bytes, size_t size)
{
    nori__pb_model *model = NULL;
    nori__pb_report report = {0};
    char *own = nori__arena_copy(&c->m.arena, bytes, size);
    assert_non_null(own);
    if (nori__pb_read_model(&c->m.arena, (const uint8_t *)own, size, &model, &report, NULL) != NORI_OK ||
        !model->graph) {
        return false;
    }
    c->m.graph = *model->graph;
    c->m.model = *model;
    c->m.model.graph = &c->m.graph;
    return true;
}

bool graph_case_copy(const graph_case *from, graph_case *to)
{
    nori__text bytes;
    nori__pb_model model = from->m.model;
    nori__pb_graph graph = from->m.graph;
    memset(to, 0, sizeof(*to));
    make_begin(&to->m, 0);
    nori__text_init(&bytes, &nori__malloc);
    model.graph = &graph;
    bool fine =
        nori__pb_write_model(&model, &bytes, NULL) == NORI_OK && take_model(to, bytes.data, bytes.size);
    nori__text_free(&bytes);
    for (size_t i = 0; fine && i < from->n_in; i++) {
        to->in[to->n_in++] = nori_tensor_retain(from->in[i]);
    }
    return fine;
}

void graph_case_free(graph_case *c)
{
    for (size_t i = 0; i < c->n_in; i++) {
        nori_tensor_free(c->in[i]);
        c->in[i] = NULL;
    }
    c->n_in = 0;
    make_end(&c->m);
}

static char *whole_file(const char *path, size_t *size)
{
    struct stat info;
    FILE *f = fopen(path, "rb");
    char *bytes = f && fstat(fileno(f), &info) == 0 ? malloc((size_t)info.st_size + 1) : NULL;
    *size = bytes ? fread(bytes, 1, (size_t)info.st_size, f) : 0;
    if (f) {
        fclose(f);
    }
    return bytes;
}

bool graph_case_read(const char *folder, graph_case *c, char *why)
{
    char path[4200];
    size_t size = 0;
    memset(c, 0, sizeof(*c));
    make_begin(&c->m, 0);
    snprintf(path, sizeof(path), "%s/model.onnx", folder);
    char *bytes = whole_file(path, &size);
    bool fine = bytes && take_model(c, bytes, size) && c->m.graph.inputs.count <= GRAPHS_INPUTS;
    free(bytes);
    for (size_t i = 0; fine && i < c->m.graph.inputs.count; i++) {
        nori_error err = {0};
        snprintf(path, sizeof(path), "%s/input_%zu.pb", folder, i);
        fine = nori_tensor_read(NULL, path, &c->in[i], &err) == NORI_OK;
        c->n_in += fine;
    }
    if (!fine) {
        snprintf(why, GRAPHS_TEXT, "cannot be read: %.200s", path);
        graph_case_free(c);
    }
    return fine;
}

static bool put_file(const char *folder, const char *name, const char *bytes, size_t size)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    bool fine = f && fwrite(bytes, 1, size, f) == size;
    return f && fclose(f) == 0 && fine;
}

bool graph_case_write(const char *folder, const graph_case *c, const char *why)
{
    nori__text bytes;
    nori__pb_model model = c->m.model;
    nori__pb_graph graph = c->m.graph;
    nori_model *loaded = NULL;
    nori_text_options o;
    char path[4200], *text = NULL;
    size_t size = 0;
    mkdir(folder, 0777);
    nori__text_init(&bytes, &nori__malloc);
    model.graph = &graph;
    bool fine = nori__pb_write_model(&model, &bytes, NULL) == NORI_OK &&
                put_file(folder, "model.onnx", bytes.data, bytes.size);
    nori_text_options_default(&o);
    o.inline_elements = INT64_MAX;
    if (nori_model_load_memory(NULL, bytes.data, bytes.size, NULL, NULL, &loaded, NULL) == NORI_OK &&
        nori_model_text(loaded, &o, &text, &size, NULL, NULL) == NORI_OK) {
        put_file(folder, "model.txt", text, size);
    }
    nori_text_free(text);
    nori_model_free(loaded);
    nori__text_free(&bytes);
    for (size_t i = 0; fine && i < c->n_in; i++) {
        snprintf(path, sizeof(path), "%s/input_%zu.pb", folder, i);
        fine = nori_tensor_write(c->in[i], path, NULL) == NORI_OK;
    }
    return put_file(folder, "why.txt", why, strlen(why)) && fine;
}
